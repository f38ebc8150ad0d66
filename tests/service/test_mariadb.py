#!/usr/bin/python3
"""The fence inside of MariaDB (deploy/mariadb), on a real server: what passes, what waits, what is refused, and what an
application may not do. The database is set up with the very lines of the README."""

import base64
import concurrent.futures
import hashlib
import hmac
import itertools
import os
import re
import subprocess

from world import BUILD, ROOT, Keys, World, check, check_equal, check_in, main, signed_token, test, wait_until
from world.mariadb import PrivateMariadb
from world.sql import SqlError, quoted, texts_that_are_no_token

SQL = ROOT / "deploy" / "mariadb" / "pawl.sql"
README = ROOT / "deploy" / "mariadb" / "README.md"
ISOLATIONS = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
STALE, REQUIRED, MALFORMED = "PW412", "PW428", "PW400"
SIGNATURE, OF_OTHER, LEASE, MODE = "PW40S", "PW40T", "PW40L", "PW40M"
AGAIN, DENIED, PARAMETER, NO_TRANSACTION = "40001", "42000", "22023", "25000"

# What a user has before Pawl comes.
SHOP = """
CREATE DATABASE shop;
CREATE USER shop_app@localhost;
CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, state TEXT, version INT NOT NULL DEFAULT 0) ENGINE = InnoDB;
CREATE TABLE shop.order_lines (order_id BIGINT, line INT) ENGINE = InnoDB;
CREATE TABLE shop.prices (id BIGINT PRIMARY KEY, price BIGINT) ENGINE = InnoDB;
CREATE TABLE shop.plain (id BIGINT PRIMARY KEY, state TEXT, version INT NOT NULL DEFAULT 0) ENGINE = InnoDB;
CREATE TABLE shop.audit (number BIGINT AUTO_INCREMENT PRIMARY KEY, token BIGINT, seen BIGINT) ENGINE = InnoDB;
"""


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", README.read_text(), re.S)


STORE, OTHER = "Zk3v9a1BQ2x8Zk3v9a1BQ2x8", "another-store".ljust(24, "-")  # the README's, and one that is not


class Shop:
    """The database of the README, set up by its lines when the first test needs it."""

    def __init__(self):
        self.server = self.failure = None
        self.sessions = []
        self.numbers = itertools.count(1)

    def open(self):
        """Once; what went wrong then goes wrong for each test."""
        if self.failure is not None:
            raise self.failure
        if self.server is None:
            try:
                self._set_up()
            except Exception as error:
                self.failure = error
                raise
        return self

    def _set_up(self):
        self.server = PrivateMariadb()
        self.keys = Keys("k1", "k2")
        self.keys_file = os.path.join(self.server.folder, "keys")
        self.server.client(text=SHOP)
        check_equal(self.shell(blocks("sh")[0]), "")
        check_equal(self.load_keys(self.keys.text()), "")
        check_equal(self.shell(blocks("sh")[2]), "")
        self.server.client(text=blocks("sql")[0] + blocks("sql")[2])
        self.admin = self.session("root")

    def shell(self, block):
        """What goes wrong when the server's administrator types a block of the README; "" if nothing does."""
        client = f"mariadb --no-defaults --socket={self.server.socket} -u root"
        block = block.replace("/etc/pawl/keys", self.keys_file)
        done = subprocess.run(["sh", "-e"], input=re.sub("^mariadb", client, block), capture_output=True, text=True,
                              timeout=30, check=False, cwd=ROOT)
        return "" if done.returncode == 0 else done.stderr

    def load_keys(self, text):
        with open(self.keys_file, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return self.shell(blocks("sh")[1])

    def session(self, user="shop_app", database="shop"):
        session = self.server.session(user, database)
        self.sessions.append(session)
        return session

    def end_sessions(self):
        for session in self.sessions:
            if session is not self.admin:
                session.close()
        self.sessions = [self.admin]

    def close(self):
        if self.server is not None:
            for session in self.sessions:
                session.close()
            self.server.close()


SHOP_DB = Shop()


def shop_test(function):
    """A test whose sessions end with it."""
    def run():
        SHOP_DB.open()
        try:
            function()
        finally:
            SHOP_DB.end_sessions()
    run.__name__ = function.__name__
    return test(run)


class Order:
    """A row of its own, its lease, and tokens for it."""

    def __init__(self, table="orders"):
        self.table, self.id = table, next(SHOP_DB.numbers)
        self.lease = f"order:{self.id}"
        one = SHOP_DB.admin
        if table == "orders":
            begin(one, self.fence(1))
        one(f"INSERT INTO {table} (id, state) VALUES ({self.id}, 'new')")
        one("COMMIT")
        one("SET @pawl_token = NULL")

    def token(self, number, epoch=1, **more):
        return signed_token(SHOP_DB.keys, self.lease, number, epoch, **more)

    def fence(self, number, epoch=1, **more):
        return call(self.token(number, epoch, **more), self.lease)

    def set(self, state):
        return f"UPDATE {self.table} SET state = '{state}' WHERE id = {self.id}"

    def state(self):
        return SHOP_DB.admin.value(f"SELECT state FROM {self.table} WHERE id = {self.id}")

    def mark(self):
        rows = SHOP_DB.admin(f"SELECT epoch, token FROM pawl.marks WHERE lease = '{self.lease}'")
        return tuple(int(number) for number in rows[0]) if rows else None


def call(token, lease):
    return f"CALL pawl.pawl_fence({literal(token)}, {literal(lease)})"


def literal(text):
    return quoted(text.replace("\\", "\\\\") if text else text)


def remember(token):
    return f"SET @pawl_token = {literal(token)}"


def begin(session, *statements, isolation="READ COMMITTED"):
    session(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
    session("START TRANSACTION")
    for statement in statements:
        session(statement)


def state_of(session, statement):
    """The SQLSTATE that it ends with, or None."""
    try:
        session(statement)
        return None
    except SqlError as error:
        return error.state


def fenced(session, statement, isolation="READ COMMITTED"):
    """The SQLSTATE of a fence in a transaction of its own, which is committed if it passes."""
    begin(session, isolation=isolation)
    state = state_of(session, statement)
    session("COMMIT" if state is None else "ROLLBACK")
    return state


def answer_state(session):
    try:
        session.answer()
        return None
    except SqlError as error:
        return error.state


def wait_until_it_waits(session):
    """For a row lock that somebody else has. InnoDB looks anew only when nobody has asked it for 0.1 s (tried)."""
    asked = f"SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = {session.id} AND trx_state = 'LOCK WAIT'"

    def waits():
        SHOP_DB.admin("DO SLEEP(0.11)")
        return SHOP_DB.admin.value(asked) != "0"
    wait_until(waits, "the session waits for another")


# -- HMAC-SHA256 out of SHA2()


@shop_test
def the_mac_is_that_of_rfc_4231():
    def mac(key, content):
        key = f"X'{key.hex()}'"
        return SHOP_DB.admin.value(f"SELECT LOWER(HEX(pawl.mac(pawl.pad({key}, 0x36), pawl.pad({key}, 0x5c), X'{content.hex()}')))")
    long = (b"This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed "
            b"before being used by the HMAC algorithm.")
    for key, content, wanted in (
            (b"\x0b" * 20, b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
            (b"\xaa" * 20, b"\xdd" * 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
            (bytes(range(1, 26)), b"\xcd" * 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
            (b"\xaa" * 131, b"Test Using Larger Than Block-Size Key - Hash Key First",
             "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
            (b"\xaa" * 131, long, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2")):
        check_equal(mac(key, content), wanted)
    for size in (16, 63, 64, 65, 128, 1024):
        key, content = os.urandom(size - 1) + b"\0", b" " + os.urandom(200) + b" \0"
        check_equal(mac(key, content), hmac.new(key, content, hashlib.sha256).hexdigest(), f"a key of {size} bytes")


# -- what the lease service signs


@test
def the_tokens_of_the_lease_service_pass_and_the_older_holder_is_refused():
    shop, world = SHOP_DB.open(), World()
    try:
        check_equal(shop.load_keys(world.keys.text()), "")
        named(world.keys.store)
        name = f"order:{next(shop.numbers)}"
        id_ = name.split(":")[1]
        first = world.acquire(name, ttl_ms=100)
        one, other = shop.session(), shop.session()

        def write(session, grant, statement):
            begin(session)
            state = state_of(session, call(grant["fencing_token"], name)) or state_of(session, statement)
            session("COMMIT" if state is None else "ROLLBACK")
            return state
        check_equal(write(one, first, f"INSERT INTO orders (id, state) VALUES ({id_}, 'first')"), None)
        wait_until(lambda: world.look(name)["state"] == "free", "the hold runs out")
        second = world.acquire(name)
        # The guarantee is mark: until the newcomer has written, the older one still passes.
        check_equal(write(one, first, f"UPDATE orders SET state = 'late' WHERE id = {id_}"), None)
        check_equal(write(other, second, f"UPDATE orders SET state = 'second' WHERE id = {id_}"), None)
        check_equal(write(one, first, f"UPDATE orders SET state = 'stale' WHERE id = {id_}"), STALE)
        check_equal(shop.admin.value(f"SELECT state FROM orders WHERE id = {id_}"), "second")
        shared = world.acquire(world.name(), mode="shared")
        check_equal(fenced(one, call(shared["fencing_token"], shared["lease"])), MODE)
    finally:
        shop.end_sessions()
        world.close()
        named(STORE)
        check_equal(shop.load_keys(shop.keys.text()), "")


@shop_test
def a_line_of_pawl_keygen_is_a_key_here_too():
    made = subprocess.run([BUILD / "pawl", "keygen", "--kid", "made"], capture_output=True, text=True, check=True, timeout=10)
    try:
        check_equal(SHOP_DB.load_keys("# a comment, with a backslash \\\n\n" + made.stdout), "")
        keys = Keys()
        keys.keys = [("made", base64.b64decode(made.stdout.split(":")[1]))]
        check_equal(fenced(SHOP_DB.session(), call(signed_token(keys, "made:1", 1, 1), "made:1")), None)
    finally:
        check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text()), "")


@shop_test
def all_keys_of_the_file_verify_and_one_that_was_taken_out_does_not():
    one, order = SHOP_DB.session(), Order()
    check_equal(fenced(one, order.fence(2, kid="k1")), None)
    check_equal(fenced(one, order.fence(3, kid="k2")), None)
    try:
        check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text().split("\n")[1]), "")
        check_equal(fenced(one, order.fence(4, kid="k1")), SIGNATURE)
        check_equal(fenced(one, order.fence(4, kid="k2")), None)
    finally:
        check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text()), "")
    check_equal(fenced(one, order.fence(5, kid="k1")), None)


@shop_test
def a_bad_key_file_is_refused_by_its_line_without_a_word_of_it_and_the_old_keys_stay():
    good, short = base64.b64encode(bytes(range(16))).decode(), base64.b64encode(b"x" * 15).decode()
    longest = base64.b64encode(b"x" * 1025).decode()
    before = SHOP_DB.admin("SELECT kid, HEX(inner_pad), HEX(outer_pad) FROM pawl.keys ORDER BY kid")
    bad = {f"k9:{good}\nk9:{good}\n": "line 2 of the key file: this kid", f"k9:{short}\n": "line 1 of the key file: the key is",
           f"#\n\nk9 {good}\n": "line 3 of the key file: a key is", f"k9: {good}\n": "line 1", f"{'k' * 33}:{good}\n": "line 1",
           f"k9:{good[:-1]}\n": "line 1", f"k9:{good[:-3]}x==\n": "spare bits", f":{good}\n": "line 1", f"k/9:{good}\n": "line 1",
           f"k9:{longest}\n": "16 to 1,024", "# nothing\n\n": "there is no key", "": "there is no key", f"k9:{good}\r\n": "line 1"}
    for text, why in bad.items():
        said = SHOP_DB.load_keys(text)
        check_in(why, said, repr(text))
        check(good[:8] not in said and short[:8] not in said, f"{text!r} is quoted: {said}")
    check_equal(SHOP_DB.admin("SELECT kid, HEX(inner_pad), HEX(outer_pad) FROM pawl.keys ORDER BY kid"), before)
    check_equal(SHOP_DB.admin("SELECT line FROM pawl.key_file"), [])


# -- the one text


@shop_test
def only_the_canonical_text_is_read():
    order, one = Order(), SHOP_DB.session()
    for flags in ("", "MULTILINE,EXTENDED,DOTALL,UNGREEDY"):
        one(f"SET default_regex_flags = '{flags}'")
        for text in texts_that_are_no_token(SHOP_DB.keys, order.lease):
            check(text != order.token(34), text)
            check_equal(fenced(one, call(text, order.lease)), MALFORMED, repr(text))
    check_equal(order.mark(), (1, 1))
    check_equal(fenced(one, order.fence(34)), None)


@shop_test
def the_texts_of_the_fuzzers_corpus_are_read_as_the_gateway_reads_them():
    one, read = SHOP_DB.session(), {}
    for path in sorted((ROOT / "tests" / "fuzz" / "corpus" / "token").iterdir()):
        text = path.read_text()
        read[path.name] = fenced(one, call(text, re.search(r'lease="([^"]+)"', text)[1]))
    good = {name for name, state in read.items() if state == SIGNATURE}  # canonical, and of keys that we do not have
    check_equal(good, {"good", "largest", "other-kid", "permits", "shared", "smallest"})
    check_equal({state for name, state in read.items() if name not in good}, {MALFORMED})


@shop_test
def no_token_passes_with_a_byte_changed_left_out_or_put_in():
    order, one = Order(), SHOP_DB.session()
    good = order.token(34)
    passed = set()
    begin(one)
    for at in range(len(good)):
        for new in (good[:at] + good[at + 1:], good[:at] + good[at] + good[at:], good[:at] + "0" + good[at + 1:],
                    good[:at] + ("A" if good[at] != "A" else "B") + good[at + 1:]):
            if new != good and state_of(one, call(new, order.lease)) is None:
                passed.add(new)
    one("COMMIT")
    check_equal(passed, set())
    check_equal(order.mark(), (1, 1))


@shop_test
def every_limit_is_accepted_at_its_end():
    one, keys = SHOP_DB.session(), Keys()
    keys.keys = [("K._-" + "k" * 28, bytes(range(64)))]
    try:
        check_equal(SHOP_DB.load_keys(keys.text()), "")
        for lease, number, epoch, hold in (("n" * 128, 999999999999999, 999999999999999, "_-0Az_-0Az_-0Az9"), ("0", 1, 1, "0" * 12),
                                           ("A._:-", 1, 1, "-" * 13)):
            check_equal(fenced(one, call(signed_token(keys, lease, number, epoch, hold=hold), lease)), None)
            check_equal(SHOP_DB.admin(f"SELECT epoch, token FROM pawl.marks WHERE lease = '{lease}'"), [(str(epoch), str(number))])
    finally:
        check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text()), "")


@shop_test
def the_refusals_come_in_the_gateways_order_each_with_its_sqlstate_and_code():
    order, one = Order(), SHOP_DB.session()
    fenced(one, order.fence(10))
    other = order.lease + "0"
    begin(one)
    for statement, state, code in (
            (call(None, order.lease), REQUIRED, "token-required"), (call("", order.lease), MALFORMED, "malformed-token"),
            (call(signed_token(Keys("k1"), other, 3, 1, mode="shared"), order.lease), SIGNATURE, "bad-signature"),
            (order.fence(3, kid="k2").replace('kid="k2"', 'kid="k3"'), SIGNATURE, "bad-signature"),
            (call(signed_token(SHOP_DB.keys, other, 3, 1, mode="shared", store=OTHER), order.lease), OF_OTHER, "wrong-store"),
            (call(signed_token(SHOP_DB.keys, other, 3, 1, mode="shared"), order.lease), LEASE, "wrong-lease"),
            (call(signed_token(SHOP_DB.keys, order.lease.upper(), 3, 1), order.lease), LEASE, "wrong-lease"),
            (order.fence(3, mode="shared"), MODE, "wrong-mode"), (order.fence(3, mode="permits"), MODE, "wrong-mode"),
            (order.fence(3), STALE, "stale-token: token 3 of epoch 1 is older than 10 of epoch 1")):
        error = one.error(statement)
        check_equal(error.state, state, statement)
        check(error.message.startswith(code) and ". ROLLBACK" in error.message, error.message)
        check_equal(state_of(one, order.set("ignored")), REQUIRED, "who was refused and writes on")
    one("COMMIT")
    check_equal((order.mark(), order.state()), ((1, 10), "new"))


@shop_test
def a_name_that_is_none_of_a_lease_is_the_callers_mistake():
    one = SHOP_DB.session()
    for lease in (None, "", "a/b", "-a", "a b", "a ", "n" * 129, "ä", "a\n"):
        check_equal(fenced(one, call(None, lease)), PARAMETER, repr(lease))


# -- the mark


@shop_test
def a_mark_rises_stays_for_an_equal_token_and_keeps_out_what_is_older():
    order, one = Order(), SHOP_DB.session()
    for isolation in ISOLATIONS:
        base = order.mark()[1]
        for number, state, mark in ((5, None, 5), (5, None, 5), (4, STALE, 5), (7, None, 7), (6, STALE, 7), (5, STALE, 7)):
            check_equal(fenced(one, order.fence(base + number), isolation), state, f"{isolation}: {number}")
            check_equal(order.mark(), (1, base + mark))


@shop_test
def the_epoch_decides_before_the_number():
    order, one = Order(), SHOP_DB.session()
    check_equal(fenced(one, order.fence(99, epoch=2)), None)
    check_equal(fenced(one, order.fence(100, epoch=1)), STALE)
    check_equal(fenced(one, order.fence(2, epoch=3)), None)
    check_equal(fenced(one, order.fence(999999999999999, epoch=2)), STALE)
    check_equal(order.mark(), (3, 2))


@shop_test
def what_is_rolled_back_has_moved_nothing():
    order, one = Order(), SHOP_DB.session()
    begin(one, order.fence(9), order.set("gone"))
    one("ROLLBACK")
    check_equal((order.mark(), order.state()), ((1, 1), "new"))
    check_equal(fenced(one, order.fence(5)), None)


@shop_test
def a_lease_in_another_case_is_another_lease():
    one = SHOP_DB.session()
    for lease in ("Case:1", "case:1", "CASE:1"):
        check_equal(fenced(one, call(signed_token(SHOP_DB.keys, lease, 5, 1), lease)), None)
    check_equal(SHOP_DB.admin.value("SELECT COUNT(*) FROM pawl.marks WHERE LOWER(lease) = 'case:1'"), "3")


@shop_test
def without_a_transaction_there_is_nothing_to_fence():
    order, one = Order(), SHOP_DB.session()
    check_equal(state_of(one, order.fence(5)), NO_TRANSACTION)
    one("SET autocommit = 0")
    one(order.fence(5))
    one(order.set("5"))
    one("COMMIT")
    check_equal((order.mark(), order.state()), ((1, 5), "5"))


# -- two at once


@shop_test
def a_newer_holder_waits_for_the_older_ones_end_sees_its_write_and_shuts_it_out():
    for isolation in ISOLATIONS:
        order, old, new = Order(), SHOP_DB.session(), SHOP_DB.session()
        begin(old, order.fence(33), order.set("33"), isolation=isolation)
        begin(new, isolation=isolation)
        new.start(order.fence(34))
        wait_until_it_waits(new)
        old("COMMIT")
        new.answer()
        check_equal(new.value(f"SELECT state FROM orders WHERE id = {order.id}"), "33", isolation)
        new(order.set("34"))
        begin(old, isolation=isolation)
        old.start(order.fence(33))
        wait_until_it_waits(old)
        new("COMMIT")
        check_equal(answer_state(old), STALE, isolation)
        old("ROLLBACK")
        check_equal((order.mark(), order.state()), ((1, 34), "34"))


@shop_test
def an_older_holder_that_waited_for_a_newer_one_passes_only_if_that_was_rolled_back():
    for isolation in ISOLATIONS:
        for ending, wanted in (("COMMIT", STALE), ("ROLLBACK", None)):
            order, old, new = Order(), SHOP_DB.session(), SHOP_DB.session()
            begin(new, order.fence(34), isolation=isolation)
            begin(old, isolation=isolation)
            old.start(order.fence(33))
            wait_until_it_waits(old)
            new(ending)
            check_equal(answer_state(old), wanted, f"{isolation}, {ending}")


@shop_test
def at_a_leases_first_write_too_the_older_waits_and_is_refused():
    for isolation in ISOLATIONS:
        lease = f"first:{next(SHOP_DB.numbers)}"
        old, new = SHOP_DB.session(), SHOP_DB.session()
        calls = [call(signed_token(SHOP_DB.keys, lease, number, 1), lease) for number in (33, 34)]
        begin(old, "SELECT COUNT(*) FROM plain", isolation=isolation)
        begin(new, calls[1], isolation=isolation)
        old.start(calls[0])
        wait_until_it_waits(old)
        new("COMMIT")
        check_equal(answer_state(old), STALE, isolation)


@shop_test
def a_snapshot_older_than_the_last_fenced_write_does_not_pass():
    for setting, wanted in (("SET innodb_snapshot_isolation = OFF", AGAIN), ("SET innodb_snapshot_isolation = ON", "HY000")):
        for mine, theirs in ((34, 34), (35, 34), (33, 34)):
            order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
            one(setting)
            begin(one, f"SELECT state FROM orders WHERE id = {order.id}", isolation="REPEATABLE READ")
            begin(other, order.fence(theirs), order.set("theirs"))
            other("COMMIT")
            check_equal(state_of(one, order.fence(mine)), STALE if mine < theirs and wanted == AGAIN else wanted,
                        f"{setting}: {mine} after {theirs}")
            one("ROLLBACK")
            check_equal(fenced(one, order.fence(mine), "REPEATABLE READ"), STALE if mine < theirs else None)
    fresh = f"fresh:{next(SHOP_DB.numbers)}"
    one("SET innodb_snapshot_isolation = OFF")
    begin(one, "SELECT COUNT(*) FROM plain", isolation="REPEATABLE READ")
    check_equal(fenced(other, call(signed_token(SHOP_DB.keys, fresh, 1, 1), fresh)), None)
    check_equal(state_of(one, call(signed_token(SHOP_DB.keys, fresh, 2, 1), fresh)), AGAIN, "a mark that is not in the snapshot")


@shop_test
def two_with_the_same_token_go_one_after_the_other():
    for isolation in ISOLATIONS:
        order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
        check_equal(fenced(one, order.fence(5)), None)
        begin(one, order.fence(5), isolation=isolation)  # equal to the mark: it does not rise
        begin(other, isolation=isolation)
        other.start(order.fence(5))
        wait_until_it_waits(other)
        one(order.set("one"))
        one("COMMIT")
        check_equal(answer_state(other), None, isolation)
        check_equal(other.value(f"SELECT state FROM orders WHERE id = {order.id}"), "one")


@shop_test
def other_leases_do_not_wait():
    for isolation in ISOLATIONS:
        order, neighbour, one, other = Order(), Order(), SHOP_DB.session(), SHOP_DB.session()
        other("SET innodb_lock_wait_timeout = 1")
        begin(one, order.fence(5), order.set("5"), isolation=isolation)
        begin(other, neighbour.fence(5), neighbour.set("5"), isolation=isolation)
        other("COMMIT")
        # New marks on both sides of the one that is held: no gap is locked.
        for fresh in (order.lease[:-1] + "-", order.lease + "-", order.lease + "0-"):
            check_equal(fenced(other, call(signed_token(SHOP_DB.keys, fresh, 1, 1), fresh), isolation), None, f"{isolation}: {fresh}")
        one("COMMIT")


@shop_test
def a_prepared_xa_transaction_keeps_the_row_until_it_is_decided():
    for decision, mark in (("XA COMMIT", (1, 5)), ("XA ROLLBACK", (1, 1))):
        order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
        for statement in ("XA START 'x'", order.fence(5), order.set("prepared"), "XA END 'x'", "XA PREPARE 'x'"):
            one(statement)
        begin(other)
        other.start(order.fence(4))
        wait_until_it_waits(other)
        one(f"{decision} 'x'")
        check_equal(answer_state(other), STALE if mark == (1, 5) else None, decision)
        other("ROLLBACK")
        check_equal(order.mark(), mark)


@shop_test
def under_load_no_older_token_writes_after_a_newer_one_and_no_update_is_lost():
    order = Order("plain")
    writers, rounds = 4, 40
    sessions = [SHOP_DB.session() for _ in range(writers)]
    tokens = itertools.count(2)

    def write(session, number, isolation):
        """Reads, counts up and writes; tells whether that was committed."""
        begin(session, isolation=isolation)
        state = state_of(session, order.fence(number))
        if state is None:
            count = int(session.value(f"SELECT version FROM plain WHERE id = {order.id}")) + 1
            state = state_of(session, f"UPDATE plain SET version = {count} WHERE id = {order.id}")
        state = state or state_of(session, f"INSERT INTO audit (token, seen) VALUES ({number}, {order.id})")
        session("COMMIT" if state is None else "ROLLBACK")
        check(state in (None, STALE, AGAIN), state)
        return state is None

    def work(index):
        written = 0
        for turn in range(rounds):
            number = next(tokens)
            # Some try twice with one token, as a holder does.
            written += write(sessions[index], number, ISOLATIONS[(index + turn) % 4])
            written += turn % 3 == 0 and write(sessions[index], number, ISOLATIONS[turn % 4])
        return written
    with concurrent.futures.ThreadPoolExecutor(writers) as pool:
        written = sum(pool.map(work, range(writers)))
    landed = [int(row[0]) for row in SHOP_DB.admin(f"SELECT token FROM audit WHERE seen = {order.id} ORDER BY number")]
    check_equal(landed, sorted(landed), "the order in which they wrote")
    check_equal(len(landed), written)
    check(len(set(landed)) > rounds / 2, f"only {len(set(landed))} wrote")
    check_equal(SHOP_DB.admin.value(f"SELECT version FROM plain WHERE id = {order.id}"), str(written))


# -- what a call alone does not cover, and the triggers do


@shop_test
def without_the_triggers_a_rollback_to_a_savepoint_undoes_the_fence_unnoticed():
    order, one, other = Order("plain"), SHOP_DB.session(), SHOP_DB.session()
    begin(one, "SAVEPOINT s", order.fence(33), "ROLLBACK TO SAVEPOINT s")
    check_equal(order.mark(), None)
    one(order.set("33"))
    one("COMMIT")
    check_equal((order.state(), order.mark()), ("33", None))  # this is the hole: the write has no mark
    check_equal(fenced(other, order.fence(5)), None)


@shop_test
def with_the_triggers_the_write_after_a_rollback_to_a_savepoint_fences_anew():
    order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
    begin(one, "SAVEPOINT s", order.fence(33), order.set("undone"), "ROLLBACK TO SAVEPOINT s")
    check_equal(order.mark(), (1, 1))
    one(order.set("33"))
    begin(other)
    other.start(order.fence(34))
    wait_until_it_waits(other)
    one("COMMIT")
    other.answer()
    other("COMMIT")
    check_equal((order.mark(), order.state()), ((1, 34), "33"))
    begin(one, "SAVEPOINT s")
    for _ in range(2):
        check_equal(state_of(one, order.set("stale")), STALE)
        one("ROLLBACK TO SAVEPOINT s")


@shop_test
def a_commit_that_a_statement_brings_along_does_not_let_a_write_through_unfenced():
    order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
    begin(one, order.fence(33), "SET autocommit = 1")
    SHOP_DB.admin("GRANT CREATE, DROP ON shop.scratch TO shop_app@localhost")
    one("CREATE TABLE scratch (id INT)")
    check_equal(fenced(other, order.fence(34)), None)
    check_equal(state_of(one, order.set("stale")), STALE)
    one("DROP TABLE scratch")


@shop_test
def who_swallows_the_refusal_and_writes_on_is_refused_by_the_triggers():
    order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
    check_equal(fenced(other, order.fence(34)), None)
    swallow = f"""BEGIN NOT ATOMIC
        BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; {order.fence(33)}; END;
        {order.set('stale')}; END"""
    begin(one)
    check_equal(state_of(one, swallow), REQUIRED)
    one(remember(order.token(33)))
    check_equal(state_of(one, order.set("stale")), STALE)
    check_equal(state_of(one, f"UPDATE IGNORE orders SET state = 'stale' WHERE id = {order.id}"), STALE)
    one("COMMIT")
    check_equal(order.state(), "new")


@shop_test
def a_lock_wait_that_timed_out_does_not_let_a_write_through():
    order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
    begin(other, order.fence(34))
    one("SET innodb_lock_wait_timeout = 0")
    begin(one)
    check_equal(state_of(one, order.fence(33)), "HY000")
    check_equal(state_of(one, order.set("late")), REQUIRED)
    one(remember(order.token(33)))
    check_equal(state_of(one, order.set("late")), "HY000")
    other("COMMIT")
    one("COMMIT")
    check_equal(order.state(), "new")


@shop_test
def every_way_to_write_a_guarded_row_is_fenced():
    order, one = Order(), SHOP_DB.session()
    check_equal(fenced(one, order.fence(34)), None)
    fresh = next(SHOP_DB.numbers)
    path = os.path.join(SHOP_DB.server.folder, "rows")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{fresh}\tx\n")
    one.close()
    SHOP_DB.sessions.remove(one)
    one = SHOP_DB.session()
    ways = {
        "update": order.set("x"), "delete": f"DELETE FROM orders WHERE id = {order.id}",
        "insert": f"INSERT INTO orders (id, state) VALUES ({fresh}, 'x')",
        "upsert": f"INSERT INTO orders (id, state) VALUES ({order.id}, 'x') ON DUPLICATE KEY UPDATE state = 'x'",
        "replace": f"REPLACE INTO orders (id, state) VALUES ({order.id}, 'x')",
        "insert ignore": f"INSERT IGNORE INTO orders (id, state) VALUES ({fresh}, 'x')",
        "join": f"UPDATE orders AS o JOIN plain AS p ON TRUE SET o.state = 'x' WHERE o.id = {order.id}",
        "multi delete": f"DELETE o FROM orders AS o WHERE o.id = {order.id}",
        "load": f"LOAD DATA INFILE '{path}' INTO TABLE orders (id, state)",
        "returning": f"DELETE FROM orders WHERE id = {order.id} RETURNING id",
        "prepared": f"EXECUTE IMMEDIATE \"{order.set('x')}\"",
    }
    Order("plain")  # for the join
    for way, statement in ways.items():
        who = SHOP_DB.admin if way == "load" else one  # it needs FILE
        begin(who, "SET @pawl_token = NULL")
        check_equal(state_of(who, statement), REQUIRED, way)
        who(remember(order.token(33)))
        check_equal(state_of(who, statement), LEASE if way in ("insert", "insert ignore", "load") else STALE, way)
        who("COMMIT")
    check_equal(order.state(), "new")
    check_equal(SHOP_DB.admin(f"SELECT id FROM orders WHERE id = {fresh}"), [])
    check_equal(state_of(one, "TRUNCATE orders"), DENIED)


@shop_test
def of_many_rows_none_is_written_if_one_is_refused():
    one, order, other = SHOP_DB.session(), Order(), Order()
    begin(one, order.fence(5))
    check_equal(state_of(one, f"UPDATE orders SET state = 'x' WHERE id IN ({order.id}, {other.id})"), LEASE)
    one("COMMIT")
    check_equal((order.state(), other.state()), ("new", "new"))


@shop_test
def a_row_moves_to_another_lease_only_with_the_tokens_of_both():
    order, target, one = Order(), Order(), SHOP_DB.session()
    begin(one, target.fence(5), f"DELETE FROM orders WHERE id = {target.id}")
    one("COMMIT")
    for holder in (order, target):
        begin(one, holder.fence(9))
        check_equal(state_of(one, f"UPDATE orders SET id = {target.id} WHERE id = {order.id}"), LEASE)
        one("ROLLBACK")
    begin(one, order.fence(9), f"DELETE FROM orders WHERE id = {order.id}", target.fence(9),
          f"INSERT INTO orders (id, state) VALUES ({target.id}, 'moved')")
    one("COMMIT")
    check_equal((target.state(), order.mark(), target.mark()), ("moved", (1, 9), (1, 9)))


@shop_test
def the_token_stays_with_the_connection_until_it_is_taken_away():
    order, one = Order(), SHOP_DB.session()
    begin(one, order.fence(5))
    one("COMMIT")
    check_equal(state_of(one, order.set("leftover")), None)  # as the README says
    one("SET @pawl_token = NULL")
    check_equal(state_of(one, order.set("x")), REQUIRED)


@shop_test
def a_mark_is_found_by_its_index_and_no_other_is_locked():
    order, other, one, two = Order(), Order(), SHOP_DB.session(), SHOP_DB.session()
    begin(one, order.fence(5))
    locked = SHOP_DB.admin.value(f"SELECT trx_rows_locked FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = {one.id}")
    check(int(locked) <= 3, f"{locked} rows are locked")  # the mark twice, and the key
    two("SET innodb_lock_wait_timeout = 1")
    check_equal(fenced(two, other.fence(5)), None)


@shop_test
def a_fixed_lease_and_a_column_of_another_name_guard_too():
    order, one = Order(), SHOP_DB.session()
    check_equal(state_of(one, "INSERT INTO prices VALUES (1, 1)"), REQUIRED)
    begin(one, call(signed_token(SHOP_DB.keys, "prices", 9, 1), "prices"), "INSERT INTO prices VALUES (1, 1), (2, 2)")
    one("COMMIT")
    one(remember(signed_token(SHOP_DB.keys, "prices", 8, 1)))
    check_equal(state_of(one, "DELETE FROM prices"), STALE)
    begin(one, order.fence(5), f"INSERT INTO order_lines VALUES ({order.id}, 1)")
    check_equal(state_of(one, f"INSERT INTO order_lines VALUES ({order.id}0, 1)"), LEASE)
    check_equal(state_of(one, "INSERT INTO order_lines VALUES (NULL, 1)"), PARAMETER)
    one("COMMIT")


@shop_test
def a_table_whose_writes_cannot_be_undone_is_refused_and_one_that_became_so_is_found():
    admin = SHOP_DB.admin
    guard = "CALL pawl.pawl_guard('shop', {}, {})"
    for engine in ("MyISAM", "Aria", "MEMORY"):
        admin(f"CREATE OR REPLACE TABLE odd (id INT, day DATE) ENGINE = {engine}")
        check_equal(state_of(admin, guard.format("'odd'", "'odd:{id}'")), PARAMETER, engine)
    admin("CREATE OR REPLACE TABLE odd (id INT, day DATE) ENGINE = InnoDB")
    for table, template in (("'none'", "'a'"), ("'odd'", "'a:{day}'"), ("'odd'", "'a:{none}'"), ("'odd'", "'a:{id}{id}'"),
                            ("'odd'", "'a:{id'"), ("'odd'", "'a:{id`)); DROP TABLE odd; -- }'"), ("NULL", "'a'")):
        check_equal(state_of(admin, guard.format(table, template)), PARAMETER, f"{table} {template}")
    check_equal(admin("SELECT trigger_name FROM information_schema.triggers WHERE event_object_table = 'odd'"), [])
    found = blocks("sql")[1].rstrip().rstrip(";")
    admin(guard.format("'odd'", "'odd:{id}'"))
    check_equal(admin(found), [])
    admin("ALTER TABLE odd ENGINE = Aria")
    check_equal(admin(found), [("shop", "odd", "Aria", "3")])
    admin("ALTER TABLE odd ENGINE = InnoDB; DROP TRIGGER pawl_update_odd")
    check_equal(admin(found), [("shop", "odd", "InnoDB", "2")])
    admin("DROP TABLE odd")


@shop_test
def a_cascade_runs_no_trigger_as_the_readme_says():
    admin, one, order = SHOP_DB.admin, SHOP_DB.session(), Order()
    admin("""CREATE TABLE parent (id BIGINT PRIMARY KEY) ENGINE = InnoDB;
        CREATE TABLE child (id BIGINT, FOREIGN KEY (id) REFERENCES parent (id) ON DELETE CASCADE) ENGINE = InnoDB;
        CALL pawl.pawl_guard('shop', 'child', 'order:{id}')""")
    begin(one, order.fence(5), f"INSERT INTO parent VALUES ({order.id})", f"INSERT INTO child VALUES ({order.id})")
    one("COMMIT")
    one("SET @pawl_token = NULL")
    one("DELETE FROM parent")
    check_equal(one("SELECT * FROM child"), [])
    admin("DROP TABLE child, parent")


# -- what an application may not do


@shop_test
def an_application_can_neither_lower_a_mark_nor_read_a_key_nor_replace_the_fence():
    order, one = Order(), SHOP_DB.session()
    attempts = (
        "SELECT * FROM pawl.keys", "SELECT * FROM pawl.marks", "SELECT * FROM pawl.key_file", "UPDATE pawl.marks SET token = 1",
        f"CALL pawl.pawl_store('{OTHER}')", f"UPDATE pawl.store SET id = '{OTHER}'", "DELETE FROM pawl.store", "SELECT * FROM pawl.store",
        "DELETE FROM pawl.marks", "TRUNCATE pawl.marks", "INSERT INTO pawl.marks VALUES ('a', 1, 1, 1)", "LOCK TABLES pawl.marks WRITE",
        "INSERT INTO pawl.keys VALUES ('mine', '0', '0')", "INSERT INTO pawl.key_file (line) VALUES ('x')", "DROP TABLE pawl.marks",
        "CREATE TEMPORARY TABLE pawl.marks (lease INT)", "CREATE TEMPORARY TABLE pawl.keys (kid INT)", "RENAME TABLE pawl.marks TO shop.marks",
        "CREATE TABLE pawl.mine (id INT)", "CREATE VIEW pawl.mine AS SELECT 1", "ALTER TABLE pawl.marks DROP PRIMARY KEY",
        "CALL pawl.pass(NULL, 'a')", "CALL pawl.pawl_fenced_write('a')", "CALL pawl.read_keys()", "SELECT pawl.pad('a', 1)",
        "SELECT pawl.mac('a', 'b', 'c')", "CALL pawl.refuse('stale-token', '')", "SELECT pawl.is_signed('a')",
        "CALL pawl.pawl_guard('shop', 'orders', 'mine')", "DROP PROCEDURE pawl.pawl_fence", "DROP PROCEDURE pawl.pass",
        "CREATE OR REPLACE PROCEDURE pawl.pass(a TEXT, b TEXT) SELECT 1", "CREATE FUNCTION pawl.mine() RETURNS INT RETURN 1",
        "ALTER PROCEDURE pawl.pawl_fence SQL SECURITY INVOKER", "DROP TRIGGER pawl_update_orders", "DROP DATABASE pawl",
        "CREATE TRIGGER mine BEFORE UPDATE ON pawl.marks FOR EACH ROW SET NEW.token = 1", "SET ROLE pawl_owner", "SELECT * FROM mysql.proc",
        "SET GLOBAL innodb_rollback_on_timeout = 0", "ALTER TABLE orders ENGINE = MyISAM", "DROP TABLE orders", "SET sql_log_bin = 0",
        "GRANT SELECT ON pawl.keys TO shop_app@localhost", "CREATE DEFINER = pawl_owner@localhost VIEW mine AS SELECT * FROM pawl.keys",
        "HANDLER pawl.keys OPEN", "LOAD DATA INFILE '/etc/passwd' INTO TABLE pawl.keys", "FLUSH TABLES pawl.marks",
        "CREATE PROCEDURE mine() SQL SECURITY DEFINER SELECT * FROM pawl.keys",
    )
    for statement in attempts:
        error = one.error(statement)
        check(error.state in (DENIED, "28000", "HY000", "OP000"), f"{statement}: {error}")
        check(re.search("denied|Access|Invalid role|read only|SUPER", error.message), f"{statement}: {error}")
    for text in one("SHOW CREATE PROCEDURE pawl.pawl_fence"):
        check("pass" not in str(text), "the body of the fence is shown")
    check_equal(order.mark(), (1, 1))
    check_equal(fenced(one, order.fence(2)), None)
    check_equal(fenced(one, order.fence(1)), STALE)


@shop_test
def nobody_logs_in_as_the_owner():
    for user in ("pawl_owner",):
        try:
            SHOP_DB.server.client("-e", "SELECT 1", user=user)
        except RuntimeError as error:
            check(re.search("ERROR (1045|4151)", str(error)), str(error))
        else:
            raise AssertionError(f"{user} got in")


@shop_test
def settings_of_the_session_change_nothing():
    order, one = Order(), SHOP_DB.session()
    check_equal(fenced(one, order.fence(34)), None)
    for setting in ("sql_mode = ''", "sql_mode = 'ANSI,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,PAD_CHAR_TO_FULL_LENGTH'",
                    "sql_mode = 'ORACLE'", "NAMES latin1", "NAMES utf8mb4 COLLATE utf8mb4_general_ci", "sql_select_limit = 0",
                    "default_regex_flags = 'EXTENDED,MULTILINE'", "check_constraint_checks = 0", "unique_checks = 0", "foreign_key_checks = 0",
                    "sql_safe_updates = 1", "sql_auto_is_null = 1", "collation_connection = 'ucs2_general_ci'", "tx_isolation = 'READ-UNCOMMITTED'",
                    "old_mode = ''", "max_sp_recursion_depth = 0", "div_precision_increment = 0"):
        one(f"SET {setting}")
        begin(one, isolation="REPEATABLE READ")
        check_equal(state_of(one, order.fence(33)), STALE, setting)
        check_equal(state_of(one, call(signed_token(Keys("k1"), order.lease, 99, 1), order.lease)), SIGNATURE, setting)
        check_equal(state_of(one, order.set("unfenced")), REQUIRED, setting)
        check_equal(state_of(one, order.fence(34)), None, setting)
        one("ROLLBACK")
        one("SET sql_mode = DEFAULT")
    check_equal((order.mark(), order.state()), ((1, 34), "new"))


@shop_test
def a_read_only_transaction_cannot_pass():
    order, one = Order(), SHOP_DB.session()
    one("START TRANSACTION READ ONLY")
    check_equal(state_of(one, order.fence(34)), "25006")


@shop_test
def under_locked_tables_the_fence_is_not_passed_over():
    SHOP_DB.admin("GRANT LOCK TABLES ON shop.* TO shop_app@localhost")
    order, one = Order(), SHOP_DB.session()
    one("LOCK TABLES orders WRITE")
    check_equal(state_of(one, order.set("x")), REQUIRED)
    check(state_of(one, order.fence(34)) is not None, "a fence passed under LOCK TABLES")
    one(remember(order.token(34)))
    one(order.set("34"))
    one("UNLOCK TABLES")
    check_equal((order.mark(), order.state()), ((1, 34), "34"))


# -- whose tokens they are


def named(store):
    SHOP_DB.admin(f"CALL pawl.pawl_store('{store}')")


@shop_test
def the_tokens_of_one_store_are_taken_and_the_marks_of_each_are_its_own():
    order, one = Order(), SHOP_DB.session()
    check_equal(fenced(one, order.fence(34)), None)
    check_equal(fenced(one, order.fence(99, store=OTHER)), OF_OTHER)
    named(OTHER)
    try:
        check_equal(fenced(one, order.fence(99)), OF_OTHER)
        check_equal(fenced(one, order.fence(5, store=OTHER)), None)
        check_equal(fenced(one, order.fence(4, store=OTHER)), STALE)
    finally:
        named(STORE)
    check_equal(fenced(one, order.fence(33)), STALE)
    for wrong in ("''", f"'{'s' * 23}'", f"'{'s' * 25}'", f"'{'s' * 23}.'", f"'{STORE}\\n'", "NULL"):
        check_equal(state_of(SHOP_DB.admin, f"CALL pawl.pawl_store({wrong})"), PARAMETER, wrong)


@shop_test
def another_store_is_named_when_nobody_is_fenced_by_this_one_any_more():
    for isolation in ISOLATIONS:
        order, one, two, old = Order(), SHOP_DB.session(), SHOP_DB.session("root"), SHOP_DB.session()
        begin(old, isolation=isolation)
        old("SELECT COUNT(*) FROM orders")  # its snapshot
        old("COMMIT") if isolation == "SERIALIZABLE" else None  # it has locked what the other writes
        begin(one, order.fence(34), order.set("34"), isolation=isolation)
        two.start(f"CALL pawl.pawl_store('{OTHER}')")
        wait_until_it_waits(two)
        one("COMMIT")
        two.answer()
        try:
            check_equal(fenced(old, order.fence(35), isolation) if isolation == "SERIALIZABLE" else state_of(old, order.fence(35)),
                        OF_OTHER, isolation)
        finally:
            old("ROLLBACK")
            named(STORE)


@shop_test
def where_no_store_is_named_no_token_is_taken_and_the_marks_of_before_are_those_of_the_first_that_is():
    order, one = Order(), SHOP_DB.session()
    check_equal(fenced(one, order.fence(34)), None)
    SHOP_DB.admin("DELETE FROM pawl.store")
    SHOP_DB.admin(f"UPDATE pawl.marks SET store = '' WHERE lease = '{order.lease}'")
    try:
        check_equal(fenced(one, order.fence(35)), OF_OTHER)
    finally:
        named(STORE)
    check_equal(fenced(one, order.fence(33)), STALE)
    check_equal(fenced(one, order.fence(34)), None)


# -- installing it


@shop_test
def it_may_be_installed_again_and_keeps_its_marks_and_keys():
    order, one = Order(), SHOP_DB.session()
    check_equal(fenced(one, order.fence(34)), None)
    check_equal(SHOP_DB.shell(blocks("sh")[0]), "")
    check_equal(order.mark(), (1, 34))
    again = SHOP_DB.session()
    check_equal(fenced(again, order.fence(33)), STALE)
    check_equal(fenced(again, order.fence(35)), None)


# -- beside a version column


def read_version(session, order):
    return int(session.value(f"SELECT version FROM {order.table} WHERE id = {order.id}"))


def write_version(session, order, state, version):
    """The optimistic lock: how many rows it wrote."""
    session(f"UPDATE {order.table} SET state = '{state}', version = version + 1 WHERE id = {order.id} AND version = {version}")
    return int(session.value("SELECT ROW_COUNT()"))


@shop_test
def a_version_column_lets_a_stale_holder_write_that_reads_again_and_the_fence_does_not():
    for table, landed in (("plain", 1), ("orders", STALE)):
        order, old, new = Order(table), SHOP_DB.session(), SHOP_DB.session()
        begin(new, order.fence(34))
        check_equal(write_version(new, order, "34", read_version(new, order)), 1)
        new("COMMIT")
        begin(old, remember(order.token(33)))
        version = read_version(old, order)  # it does not know that its hold is over, and reads what is there
        try:
            check_equal(write_version(old, order, "33", version), landed)
        except SqlError as error:
            check_equal(error.state, landed)
        old("ROLLBACK")


@shop_test
def the_fence_alone_loses_an_update_of_one_holders_two_threads_that_read_first_and_the_version_column_does_not():
    order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
    seen = read_version(one, order), read_version(other, order)
    for session, text in ((one, "one"), (other, "other")):
        begin(session, order.fence(5), order.set(text))
        session("COMMIT")
    check_equal(order.state(), "other")  # what one wrote is lost: other never saw it
    begin(one, order.fence(5))
    check_equal(write_version(one, order, "one", seen[0]), 1)
    one("COMMIT")
    begin(other, order.fence(5))
    check_equal(write_version(other, order, "other", seen[1]), 0)


if __name__ == "__main__":
    main(SHOP_DB.close)
