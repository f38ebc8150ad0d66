#!/usr/bin/python3
"""The fence inside of PostgreSQL (deploy/postgres), on a real server: what passes, what waits, what is refused, and what
an application may not do. The database is set up with the very lines of the README."""

import base64
import concurrent.futures
import itertools
import os
import re
import subprocess

from world import BUILD, ROOT, Keys, World, check, check_equal, check_in, main, signed_token, test, wait_until
from world.postgres import PrivatePostgres
from world.sql import SqlError, quoted, texts_that_are_no_token

SQL = ROOT / "deploy" / "postgres" / "pawl.sql"
README = ROOT / "deploy" / "postgres" / "README.md"
ISOLATIONS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
STALE, REQUIRED, MALFORMED = "PW412", "PW428", "PW400"
SIGNATURE, OF_OTHER, LEASE, MODE = "PW40S", "PW40T", "PW40L", "PW40M"
AGAIN, DENIED, PREREQUISITE, PARAMETER = "40001", "42501", "55000", "22023"

# What a user has before Pawl comes.
SHOP = """
CREATE ROLE shop_owner;
CREATE ROLE shop_app LOGIN;
CREATE ROLE reader LOGIN IN ROLE pg_read_all_data, pg_write_all_data;
GRANT CREATE ON DATABASE shop TO shop_owner;
GRANT CREATE, USAGE ON SCHEMA public TO shop_owner;
SET ROLE shop_owner;
CREATE TABLE orders (id bigint PRIMARY KEY, state text, version integer NOT NULL DEFAULT 0);
CREATE TABLE prices (id bigint PRIMARY KEY, price bigint);
CREATE TABLE plain (id bigint PRIMARY KEY, state text, version integer NOT NULL DEFAULT 0);
CREATE TABLE audit (number bigserial PRIMARY KEY, token bigint, seen bigint);
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON orders, prices, plain, audit TO shop_app;
GRANT USAGE ON SEQUENCE audit_number_seq TO shop_app;
"""


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
        self.server = PrivatePostgres()
        self.keys = Keys("k1", "k2")
        self.keys_file = os.path.join(self.server.folder, "keys")
        self.keys.write(self.keys_file)
        self.server.create_database("shop")
        self.server.psql(text=SHOP, database="shop")
        for kind, block in re.findall(r"```(sh|sql)\n(.*?)```", README.read_text(), re.S)[:6]:
            if kind == "sh":
                self.shell(block)
            else:
                owner = "" if block.startswith("GRANT") else "SET ROLE shop_owner;"
                self.server.psql("-v", "ON_ERROR_STOP=1", text=owner + block, database="shop")
        self.admin = self.session("postgres")

    def shell(self, block, database="shop"):
        """What a shell says to a block of the README; the server's superuser types it."""
        block = block.replace("/etc/pawl/keys", self.keys_file).replace("-d shop", f"-d {database}")
        done = subprocess.run(["sh", "-e"], input=block, capture_output=True, text=True, timeout=30, check=False, cwd=ROOT,
                              env={**os.environ, "PGHOST": self.server.folder, "PGUSER": "postgres"})
        check_equal(done.returncode, 0, done.stderr)
        return done.stdout

    def load_keys(self, text, database="shop"):
        """The error of loading a key file with this text, "" if there is none."""
        block = re.findall(r"```sh\n(.*?)```", README.read_text(), re.S)[1]
        with open(self.keys_file, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        block = block.replace("/etc/pawl/keys", self.keys_file).replace("-d shop", f"-d {database}")
        done = subprocess.run(["sh", "-e"], input=block, capture_output=True, text=True, timeout=30, check=False,
                              env={**os.environ, "PGHOST": self.server.folder, "PGUSER": "postgres"})
        return "" if done.returncode == 0 else done.stderr

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
        if table == "orders":
            one = SHOP_DB.session()
            one(f"BEGIN; {self.fence(1)}; INSERT INTO orders VALUES ({self.id}, 'new'); COMMIT")
        else:
            SHOP_DB.admin(f"INSERT INTO {table} VALUES ({self.id}, 'new')")

    def token(self, number, epoch=1, **more):
        return signed_token(SHOP_DB.keys, self.lease, number, epoch, **more)

    def fence(self, number, epoch=1, **more):
        return f"SELECT pawl.pawl_fence({quoted(self.token(number, epoch, **more))}, '{self.lease}')"

    def set(self, state):
        return f"UPDATE {self.table} SET state = '{state}' WHERE id = {self.id}"

    def state(self):
        return SHOP_DB.admin.value(f"SELECT state FROM {self.table} WHERE id = {self.id}")

    def mark(self):
        rows = SHOP_DB.admin(f"SELECT epoch, token FROM pawl.marks WHERE lease = '{self.lease}'")
        return tuple(int(number) for number in rows[0]) if rows else None


def begin(session, *statements, isolation="READ COMMITTED"):
    session(f"BEGIN ISOLATION LEVEL {isolation}")
    for statement in statements:
        session(statement)


def state_of(session, statement):
    """The SQLSTATE that it ends with, or None."""
    try:
        session(statement)
        return None
    except SqlError as error:
        return error.state


def answer_state(session):
    try:
        session.answer()
        return None
    except SqlError as error:
        return error.state


def wait_until_it_waits(session):
    """For a row lock that somebody else has."""
    asked = f"SELECT cardinality(pg_blocking_pids({session.pid}))"
    wait_until(lambda: SHOP_DB.admin.value(asked) != "0", "the session waits for another")


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
            state = state_of(session, f"SELECT pawl.pawl_fence({quoted(grant['fencing_token'])}, '{name}')")
            state = state or state_of(session, statement)
            session("COMMIT" if state is None else "ROLLBACK")
            return state
        check_equal(write(one, first, f"INSERT INTO orders VALUES ({id_}, 'first')"), None)
        wait_until(lambda: world.look(name)["state"] == "free", "the hold runs out")
        second = world.acquire(name)
        # The guarantee is mark: until the newcomer has written, the older one still passes.
        check_equal(write(one, first, f"UPDATE orders SET state = 'late' WHERE id = {id_}"), None)
        check_equal(write(other, second, f"UPDATE orders SET state = 'second' WHERE id = {id_}"), None)
        check_equal(write(one, first, f"UPDATE orders SET state = 'stale' WHERE id = {id_}"), STALE)
        check_equal(shop.admin.value(f"SELECT state FROM orders WHERE id = {id_}"), "second")
        shared = world.acquire(world.name(), mode="shared")
        check_equal(state_of(one, f"SELECT pawl.pawl_fence({quoted(shared['fencing_token'])}, '{shared['lease']}')"), MODE)
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
        one = SHOP_DB.session()
        one(f"SELECT pawl.pawl_fence({quoted(signed_token(keys, 'made:1', 1, 1))}, 'made:1')")
    finally:
        check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text()), "")


@shop_test
def all_keys_of_the_file_verify_and_one_that_was_taken_out_does_not():
    one, order = SHOP_DB.session(), Order()
    one(order.fence(2, kid="k1"))
    one(order.fence(3, kid="k2"))
    try:
        check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text().split("\n")[1]), "")
        check_equal(state_of(one, order.fence(4, kid="k1")), SIGNATURE)
        one(order.fence(4, kid="k2"))
    finally:
        check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text()), "")
    one(order.fence(5, kid="k1"))


@shop_test
def a_bad_key_file_is_refused_by_its_line_without_a_word_of_it_and_the_old_keys_stay():
    good, short = base64.b64encode(bytes(range(16))).decode(), base64.b64encode(b"x" * 15).decode()
    longest = base64.b64encode(b"x" * 1025).decode()
    bad = {f"k9:{good}\nk9:{good}\n": "line 2 of the key file: this kid", f"k9:{short}\n": "line 1 of the key file: the key is",
           f"#\n\nk9 {good}\n": "line 3 of the key file: a key is", f"k9: {good}\n": "line 1", f"{'k' * 33}:{good}\n": "line 1",
           f"k9:{good[:-1]}\n": "line 1", f"k9:{good[:-3]}x==\n": "spare bits", f":{good}\n": "line 1", f"k/9:{good}\n": "line 1",
           f"k9:{longest}\n": "16 to 1,024", "# nothing\n\n": "there is no key", "": "there is no key"}
    for text, why in bad.items():
        said = SHOP_DB.load_keys(text)
        check_in(why, said, repr(text))
        check(good[:8] not in said and short[:8] not in said, f"{text!r} is quoted: {said}")
    check_equal(SHOP_DB.admin("SELECT kid, encode(secret, 'hex') FROM pawl.keys ORDER BY kid"),
                [(kid, key.hex()) for kid, key in SHOP_DB.keys.keys])
    check_equal(SHOP_DB.admin("SELECT line FROM pawl.key_file"), [])


# -- the one text


@shop_test
def only_the_canonical_text_is_read():
    order, one = Order(), SHOP_DB.session()
    for text in texts_that_are_no_token(SHOP_DB.keys, order.lease):
        check(text != order.token(34), text)
        check_equal(state_of(one, f"SELECT pawl.pawl_fence({quoted(text)}, '{order.lease}')"), MALFORMED, repr(text))
    check_equal(order.mark(), (1, 1))
    one(order.fence(34))


@shop_test
def the_texts_of_the_fuzzers_corpus_are_read_as_the_gateway_reads_them():
    one, read = SHOP_DB.session(), {}
    for path in sorted((ROOT / "tests" / "fuzz" / "corpus" / "token").iterdir()):
        text = path.read_text()
        lease = re.search(r'lease="([^"]+)"', text)
        read[path.name] = state_of(one, f"SELECT pawl.pawl_fence({quoted(text)}, '{lease[1]}')")
    good = {name for name, state in read.items() if state == SIGNATURE}  # canonical, and of keys that we do not have
    check_equal(good, {"good", "largest", "other-kid", "permits", "shared", "smallest"})
    check_equal({state for name, state in read.items() if name not in good}, {MALFORMED})


@shop_test
def no_token_passes_with_a_byte_changed_left_out_or_put_in():
    order, one = Order(), SHOP_DB.session()
    good = order.token(34)
    passed = set()
    for at in range(len(good)):
        for new in (good[:at] + good[at + 1:], good[:at] + good[at] + good[at:], good[:at] + "0" + good[at + 1:],
                    good[:at] + ("A" if good[at] != "A" else "B") + good[at + 1:]):
            if new != good and state_of(one, f"SELECT pawl.pawl_fence({quoted(new)}, '{order.lease}')") is None:
                passed.add(new)
    check_equal(passed, set())
    check_equal(order.mark(), (1, 1))


@shop_test
def every_limit_is_accepted_at_its_end():
    one = SHOP_DB.session()
    keys = Keys()
    keys.keys = [("K._-" + "k" * 28, bytes(range(64)))]
    try:
        check_equal(SHOP_DB.load_keys(keys.text()), "")
        for lease, number, epoch, hold in (("n" * 128, 999999999999999, 999999999999999, "_-0Az_-0Az_-0Az9"), ("0", 1, 1, "0" * 12),
                                           ("A._:-", 1, 1, "-" * 13)):
            text = signed_token(keys, lease, number, epoch, hold=hold)
            check_equal(one.value(f"SELECT pawl.pawl_fence({quoted(text)}, '{lease}')"), str(number))
    finally:
        check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text()), "")


@shop_test
def the_refusals_come_in_the_gateways_order_each_with_its_sqlstate_code_and_facts():
    order, one = Order(), SHOP_DB.session()
    one(order.fence(10))
    other = order.lease + "0"
    forged = signed_token(Keys("k1"), other, 3, 1, mode="shared")
    for statement, state, code, facts in (
            (f"SELECT pawl.pawl_fence(NULL, '{order.lease}')", REQUIRED, "token-required", {}),
            (f"SELECT pawl.pawl_fence('', '{order.lease}')", MALFORMED, "malformed-token", {}),
            (f"SELECT pawl.pawl_fence({quoted(forged)}, '{order.lease}')", SIGNATURE, "bad-signature",
             {"presented_token": 3, "presented_epoch": 1}),
            (order.fence(3, kid="k2").replace('kid="k2"', 'kid="k3"'), SIGNATURE, "bad-signature",
             {"presented_token": 3, "presented_epoch": 1}),
            (f"SELECT pawl.pawl_fence({quoted(signed_token(SHOP_DB.keys, other, 3, 1, mode='shared', store=OTHER))}, '{order.lease}')", OF_OTHER,
             "wrong-store", {"presented_token": 3, "presented_epoch": 1}),
            (f"SELECT pawl.pawl_fence({quoted(signed_token(SHOP_DB.keys, other, 3, 1, mode='shared'))}, '{order.lease}')", LEASE,
             "wrong-lease", {"presented_token": 3, "presented_epoch": 1}),
            (order.fence(3, mode="shared"), MODE, "wrong-mode", {"presented_token": 3, "presented_epoch": 1}),
            (order.fence(3, mode="permits"), MODE, "wrong-mode", {"presented_token": 3, "presented_epoch": 1}),
            (order.fence(3), STALE, "stale-token", {"presented_token": 3, "presented_epoch": 1, "mark": 10, "mark_epoch": 1})):
        error = one.error(statement)
        check_equal(error.state, state, statement)
        check(error.message.startswith(code + ": "), error.message)
        check_equal(error.detail, {"code": code, "lease": order.lease, **facts})
        check(error.hint.startswith("Nothing was changed. "), error.hint)
    check_equal(order.mark(), (1, 10))


@shop_test
def a_name_that_is_none_of_a_lease_is_the_callers_mistake():
    one = SHOP_DB.session()
    for lease in (None, "", "a/b", "-a", "a b", "n" * 129, "ä", "a\n"):
        check_equal(state_of(one, f"SELECT pawl.pawl_fence(NULL, {quoted(lease)})"), PARAMETER, repr(lease))


# -- the mark


@shop_test
def a_mark_rises_stays_for_an_equal_token_and_keeps_out_what_is_older():
    order, one = Order(), SHOP_DB.session()
    for number, state, mark in ((5, None, 5), (5, None, 5), (4, STALE, 5), (7, None, 7), (6, STALE, 7), (5, STALE, 7)):
        check_equal(state_of(one, order.fence(number)), state, str(number))
        check_equal(order.mark(), (1, mark))


@shop_test
def the_epoch_decides_before_the_number():
    order, one = Order(), SHOP_DB.session()
    one(order.fence(99, epoch=2))
    check_equal(state_of(one, order.fence(100, epoch=1)), STALE)
    one(order.fence(2, epoch=3))
    check_equal(state_of(one, order.fence(999999999999999, epoch=2)), STALE)
    check_equal(order.mark(), (3, 2))


@shop_test
def what_is_rolled_back_has_moved_nothing():
    order, one = Order(), SHOP_DB.session()
    begin(one, order.fence(9), order.set("gone"))
    one("ROLLBACK")
    check_equal((order.mark(), order.state()), ((1, 1), "new"))
    one(order.fence(5))


@shop_test
def a_lease_that_was_only_refused_has_no_mark():
    one = SHOP_DB.session()
    forged = signed_token(Keys("k1"), "never:1", 3, 1)
    check_equal(state_of(one, f"SELECT pawl.pawl_fence({quoted(forged)}, 'never:1')"), SIGNATURE)
    check_equal(SHOP_DB.admin("SELECT FROM pawl.marks WHERE lease = 'never:1'"), [])


# -- two at once


@shop_test
def a_newer_holder_waits_for_the_older_ones_end_sees_its_write_and_shuts_it_out():
    order, old, new = Order(), SHOP_DB.session(), SHOP_DB.session()
    begin(old, order.fence(33), order.set("33"))
    begin(new)
    new.start(order.fence(34))
    wait_until_it_waits(new)
    old("COMMIT")
    new.answer()
    check_equal(new.value(f"SELECT state FROM orders WHERE id = {order.id}"), "33")
    new(order.set("34"))
    old.start(order.fence(33))
    wait_until_it_waits(old)
    new("COMMIT")
    check_equal(answer_state(old), STALE)
    check_equal((order.mark(), order.state()), ((1, 34), "34"))


@shop_test
def an_older_holder_that_waited_for_a_newer_one_passes_only_if_that_was_rolled_back():
    for isolation in ISOLATIONS:
        for ending, wanted in (("COMMIT", STALE if isolation == "READ COMMITTED" else AGAIN), ("ROLLBACK", None)):
            order, old, new = Order(), SHOP_DB.session(), SHOP_DB.session()
            begin(new, order.fence(34), isolation=isolation)
            begin(old, isolation=isolation)
            old.start(order.fence(33))
            wait_until_it_waits(old)
            new(ending)
            check_equal(answer_state(old), wanted, f"{isolation}, {ending}")
            old("ROLLBACK")
            check_equal(state_of(old, order.fence(33)), STALE if wanted else None, "tried again")


@shop_test
def at_a_leases_first_write_too_the_older_waits_and_is_refused():
    for isolation in ISOLATIONS:
        lease = f"first:{next(SHOP_DB.numbers)}"
        old, new = SHOP_DB.session(), SHOP_DB.session()
        calls = [f"SELECT pawl.pawl_fence({quoted(signed_token(SHOP_DB.keys, lease, number, 1))}, '{lease}')" for number in (33, 34)]
        begin(old, "SELECT 1", isolation=isolation)
        begin(new, calls[1], isolation=isolation)
        old.start(calls[0])
        wait_until_it_waits(old)
        new("COMMIT")
        check_equal(answer_state(old), STALE if isolation == "READ COMMITTED" else AGAIN, isolation)


@shop_test
def a_snapshot_older_than_the_last_fenced_write_does_not_pass():
    for isolation in ISOLATIONS[1:]:
        for mine, theirs in ((33, 34), (34, 34), (35, 34)):
            order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
            begin(one, f"SELECT state FROM orders WHERE id = {order.id}", isolation=isolation)
            begin(other, order.fence(theirs), order.set("theirs"))
            other("COMMIT")
            check_equal(state_of(one, order.fence(mine)), AGAIN, f"{isolation}: {mine} after {theirs}")
            one("ROLLBACK")
            check_equal(state_of(one, order.fence(mine)), STALE if mine < theirs else None)


@shop_test
def two_with_the_same_token_go_one_after_the_other():
    for isolation, wanted in zip(ISOLATIONS, (None, AGAIN, AGAIN)):
        order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
        begin(one, order.fence(5), isolation=isolation)
        one("COMMIT")
        begin(one, order.fence(5), isolation=isolation)  # equal to the mark: it does not rise
        begin(other, isolation=isolation)
        other.start(order.fence(5))
        wait_until_it_waits(other)
        one(order.set("one"))
        one("COMMIT")
        check_equal(answer_state(other), wanted, isolation)
        if wanted is None:
            check_equal(other.value(f"SELECT state FROM orders WHERE id = {order.id}"), "one")


@shop_test
def other_leases_do_not_wait():
    order, neighbour, one, other = Order(), Order(), SHOP_DB.session(), SHOP_DB.session()
    begin(one, order.fence(5), order.set("5"))
    begin(other, neighbour.fence(5), neighbour.set("5"))
    other("COMMIT")
    fresh = f"fresh:{next(SHOP_DB.numbers)}"
    other(f"SELECT pawl.pawl_fence({quoted(signed_token(SHOP_DB.keys, fresh, 1, 1))}, '{fresh}')")
    one("COMMIT")


@shop_test
def a_transaction_that_was_prepared_keeps_the_row_until_it_is_decided():
    for decision, mark in (("COMMIT PREPARED", (1, 5)), ("ROLLBACK PREPARED", (1, 1))):
        order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
        begin(one, order.fence(5), order.set("prepared"))
        one("PREPARE TRANSACTION 'p'")
        one.close()
        SHOP_DB.sessions.remove(one)
        begin(other)
        other.start(order.fence(4))
        wait_until_it_waits(other)
        SHOP_DB.session()(f"{decision} 'p'")
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
            written += write(sessions[index], number, ISOLATIONS[(index + turn) % 3])
            written += turn % 3 == 0 and write(sessions[index], number, ISOLATIONS[turn % 3])
        return written
    with concurrent.futures.ThreadPoolExecutor(writers) as pool:
        written = sum(pool.map(work, range(writers)))
    landed = [int(row[0]) for row in SHOP_DB.admin(f"SELECT token FROM audit WHERE seen = {order.id} ORDER BY number")]
    check_equal(landed, sorted(landed), "the order in which they wrote")
    check_equal(len(landed), written)
    check(len(set(landed)) > rounds / 2, f"only {len(set(landed))} wrote")
    check_equal(SHOP_DB.admin.value(f"SELECT version FROM plain WHERE id = {order.id}"), str(written))


# -- what a call alone does not cover, and the trigger does


@shop_test
def without_the_trigger_a_rollback_to_a_savepoint_undoes_the_fence_unnoticed():
    order, one, other = Order("plain"), SHOP_DB.session(), SHOP_DB.session()
    begin(one, "SAVEPOINT s", order.fence(33), "ROLLBACK TO SAVEPOINT s")
    other(order.fence(34))
    one(order.set("33"))
    one("COMMIT")
    check_equal(order.state(), "33")  # this is the hole
    check_equal(order.mark(), (1, 34))


@shop_test
def with_the_trigger_a_rollback_to_a_savepoint_takes_the_token_away_too():
    order, one = Order(), SHOP_DB.session()
    begin(one, "SAVEPOINT s", order.fence(33), "ROLLBACK TO SAVEPOINT s")
    check_equal(state_of(one, order.set("33")), REQUIRED)
    one("ROLLBACK")
    check_equal((order.mark(), order.state()), ((1, 1), "new"))


@shop_test
def a_token_from_before_the_savepoint_is_fenced_anew_by_the_write():
    order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
    keep = f"SELECT set_config('pawl.token', {quoted(order.token(33))}, true)"
    begin(one, keep, "SAVEPOINT s", order.fence(33), order.set("undone"), "ROLLBACK TO SAVEPOINT s")
    check_equal(order.mark(), (1, 1))
    one(order.set("33"))
    begin(other)
    other.start(order.fence(34))
    wait_until_it_waits(other)  # the row is taken again
    one("COMMIT")
    other.answer()
    other("COMMIT")
    check_equal((order.mark(), order.state()), ((1, 34), "33"))
    begin(one, keep, "SAVEPOINT s")
    check_equal(state_of(one, order.set("stale")), STALE)
    one("ROLLBACK TO SAVEPOINT s")
    check_equal(state_of(one, order.set("stale")), STALE)


@shop_test
def a_write_that_is_undone_takes_its_mark_along_and_one_that_stays_keeps_it():
    order, one = Order(), SHOP_DB.session()
    keep = f"SELECT set_config('pawl.token', {quoted(order.token(33))}, true)"
    begin(one, keep, order.set("stays"), "SAVEPOINT s", order.set("undone"), "ROLLBACK TO SAVEPOINT s")
    one("COMMIT")
    check_equal((order.mark(), order.state()), ((1, 33), "stays"))


@shop_test
def who_swallows_the_refusal_and_writes_on_is_refused_by_the_trigger():
    order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
    other(order.fence(34))
    swallow = f"""DO $$ BEGIN
        BEGIN PERFORM pawl.pawl_fence({quoted(order.token(33))}, '{order.lease}'); EXCEPTION WHEN OTHERS THEN NULL; END;
        {order.set('stale')}; END $$"""
    check_equal(state_of(one, swallow), REQUIRED)
    begin(one, f"SELECT set_config('pawl.token', {quoted(order.token(33))}, true)")
    check_equal(state_of(one, swallow), STALE)
    one("ROLLBACK")
    check_equal(order.state(), "new")


@shop_test
def every_way_to_write_a_guarded_row_is_fenced():
    order, one = Order(), SHOP_DB.session()
    one(order.fence(34))
    fresh = next(SHOP_DB.numbers)
    ways = {
        "update": order.set("x"),
        "delete": f"DELETE FROM orders WHERE id = {order.id}",
        "insert": f"INSERT INTO orders VALUES ({fresh}, 'x')",
        "upsert": f"INSERT INTO orders VALUES ({order.id}, 'x') ON CONFLICT (id) DO UPDATE SET state = 'x'",
        "merge": f"MERGE INTO orders USING (SELECT {order.id} AS id) AS s ON orders.id = s.id WHEN MATCHED THEN UPDATE SET state = 'x'",
        "cte": f"WITH w AS (UPDATE orders SET state = 'x' WHERE id = {order.id} RETURNING 1) SELECT * FROM w",
        "copy": f"COPY orders (id, state) FROM PROGRAM 'printf {fresh},x' (FORMAT csv)",
        "truncate": "TRUNCATE orders",
    }
    stale = order.token(33)
    for way, statement in ways.items():
        who = SHOP_DB.session("postgres") if way == "copy" else one  # only a superuser copies from a program
        begin(who)
        check_equal(state_of(who, statement), PARAMETER if way == "truncate" else REQUIRED, way)
        who("ROLLBACK")
        begin(who, f"SELECT set_config('pawl.token', {quoted(stale)}, true)")
        check_equal(state_of(who, statement), {"insert": LEASE, "copy": LEASE, "truncate": PARAMETER}.get(way, STALE), way)
        who("ROLLBACK")
    check_equal(order.state(), "new")
    check_equal(SHOP_DB.admin(f"SELECT FROM orders WHERE id = {fresh}"), [])


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
          f"INSERT INTO orders VALUES ({target.id}, 'moved')")
    one("COMMIT")
    check_equal((target.state(), order.mark(), target.mark()), ("moved", (1, 9), (1, 9)))


@shop_test
def a_token_set_for_a_transaction_is_gone_after_it():
    order, one = Order(), SHOP_DB.session()
    begin(one, order.fence(33), order.set("33"))
    one("COMMIT")
    check_equal(state_of(one, order.set("after")), REQUIRED)


@shop_test
def many_rows_in_one_transaction_move_the_mark_once():
    one, lease = SHOP_DB.session(), "prices"
    token = signed_token(SHOP_DB.keys, lease, 7, 1)
    SHOP_DB.admin("CREATE TABLE rows (id bigint); GRANT ALL ON rows TO shop_app; CREATE TRIGGER pawl_fence AFTER INSERT ON rows "
                  "FOR EACH ROW EXECUTE FUNCTION pawl.pawl_fenced_write('prices')")
    begin(one, f"SELECT pawl.pawl_fence({quoted(token)}, '{lease}')")
    place = one.value("SELECT 1") and SHOP_DB.admin
    one("INSERT INTO rows SELECT generate_series(1, 1000)")
    one("COMMIT")
    # The page of the mark holds a few versions and not a thousand.
    check(int(place.value("SELECT pg_relation_size('pawl.marks')")) <= 5 * 8192, "the marks have grown")
    one("TRUNCATE rows")


# -- how a trigger is attached


@shop_test
def a_fixed_lease_is_checked_once_for_each_statement():
    one = SHOP_DB.session()
    token = signed_token(SHOP_DB.keys, "prices", 9, 1)
    check_equal(state_of(one, "INSERT INTO prices VALUES (1, 1)"), REQUIRED)
    begin(one, f"SELECT pawl.pawl_fence({quoted(token)}, 'prices')", "INSERT INTO prices SELECT generate_series(1, 100), 1",
          "TRUNCATE prices")
    one("COMMIT")
    begin(one, f"SELECT set_config('pawl.token', {quoted(signed_token(SHOP_DB.keys, 'prices', 8, 1))}, true)")
    check_equal(state_of(one, "DELETE FROM prices WHERE false"), STALE)


@shop_test
def what_another_trigger_makes_of_the_row_is_what_counts():
    order, target, one = Order(), Order(), SHOP_DB.session()
    begin(one, target.fence(5), f"DELETE FROM orders WHERE id = {target.id}")
    one("COMMIT")
    SHOP_DB.admin(f"""CREATE FUNCTION public.turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := {target.id}; RETURN NEW; END $$;
        CREATE TRIGGER zzz BEFORE UPDATE ON orders FOR EACH ROW WHEN (NEW.state = 'turn') EXECUTE FUNCTION public.turn()""")
    try:
        begin(one, order.fence(6))
        check_equal(state_of(one, order.set("turn")), LEASE)
        one("ROLLBACK")
    finally:
        SHOP_DB.admin("DROP TRIGGER zzz ON orders; DROP FUNCTION public.turn")


@shop_test
def a_cascade_and_a_write_straight_into_a_partition_are_fenced():
    SHOP_DB.admin("""
        CREATE TABLE parent (id bigint PRIMARY KEY);
        CREATE TABLE child (id bigint REFERENCES parent ON DELETE CASCADE) PARTITION BY RANGE (id);
        CREATE TRIGGER pawl_fence AFTER INSERT OR UPDATE OR DELETE ON child FOR EACH ROW EXECUTE FUNCTION pawl.pawl_fenced_write('order:{id}');
        CREATE TABLE child_1 PARTITION OF child FOR VALUES FROM (0) TO (1000000);
        GRANT ALL ON parent, child, child_1 TO shop_app""")
    order, one = Order(), SHOP_DB.session()
    begin(one, order.fence(5), f"INSERT INTO parent VALUES ({order.id})", f"INSERT INTO child VALUES ({order.id})")
    one("COMMIT")
    check_equal(state_of(one, f"DELETE FROM parent WHERE id = {order.id}"), REQUIRED)
    check_equal(state_of(one, f"INSERT INTO child_1 VALUES ({order.id})"), REQUIRED)
    check_equal(state_of(one, f"DELETE FROM child_1 WHERE id = {order.id}"), REQUIRED)
    begin(one, order.fence(5), f"DELETE FROM parent WHERE id = {order.id}")
    one("COMMIT")


@shop_test
def a_trigger_that_is_attached_in_another_way_lets_nothing_through():
    one = SHOP_DB.session()
    token = f"SELECT set_config('pawl.token', {quoted(signed_token(SHOP_DB.keys, 'odd', 5, 1))}, true)"
    ways = (("BEFORE INSERT ON odd FOR EACH ROW", "'odd'", PREREQUISITE), ("AFTER INSERT ON odd FOR EACH ROW", "", PREREQUISITE),
            ("AFTER INSERT ON odd FOR EACH ROW", "'odd', 'odd'", PREREQUISITE), ("AFTER INSERT ON odd FOR EACH ROW", "'a:{none}'", "42703"),
            ("AFTER INSERT ON odd FOR EACH ROW", "'a:{day}'", "42804"), ("AFTER INSERT ON odd FOR EACH ROW", "'a:{id}{id}'", PARAMETER),
            ("AFTER INSERT ON odd FOR EACH ROW", "'a:{id'", PARAMETER), ("AFTER INSERT ON odd FOR EACH ROW", "'{none_yet}'", PARAMETER),
            ("BEFORE INSERT ON odd FOR EACH STATEMENT", "'a:{id}'", PARAMETER), ("AFTER INSERT ON odd FOR EACH ROW", "'a:{words}'", PARAMETER))
    SHOP_DB.admin("CREATE TABLE odd (id bigint, day date, none_yet text, words text); GRANT ALL ON odd TO shop_app")
    for how, argument, state in ways:
        SHOP_DB.admin(f"CREATE TRIGGER pawl_fence {how} EXECUTE FUNCTION pawl.pawl_fenced_write({argument})")
        begin(one, token)
        check_equal(state_of(one, "INSERT INTO odd VALUES (1, '2026-01-01', NULL, 'two words')"), state, f"{how} {argument}")
        one("ROLLBACK")
        SHOP_DB.admin("DROP TRIGGER pawl_fence ON odd")
    check_equal(SHOP_DB.admin("SELECT FROM odd"), [])


# -- what an application may not do


@shop_test
def an_application_can_neither_lower_a_mark_nor_read_a_key_nor_replace_the_fence():
    order, one = Order(), SHOP_DB.session()
    attempts = (
        "SELECT * FROM pawl.keys", "SELECT * FROM pawl.marks", "SELECT * FROM pawl.key_file", "UPDATE pawl.marks SET token = 1",
        "DELETE FROM pawl.marks", "TRUNCATE pawl.marks", "INSERT INTO pawl.marks VALUES ('a', 1, 1, '1')", "LOCK TABLE pawl.marks",
        "INSERT INTO pawl.keys VALUES ('mine', '0123456789abcdef')", "INSERT INTO pawl.key_file (line) VALUES ('x')",
        f"SELECT pawl.pawl_store('{OTHER}')", f"UPDATE pawl.store SET id = '{OTHER}'", "DELETE FROM pawl.store", "SELECT pawl.own_store()",
        "COPY pawl.keys TO STDOUT", f"SELECT pawl.raise_mark('{STORE}', '{order.lease}', 1, 1)", "SELECT pawl.mac('a', 'b')", "SELECT pawl.read_keys()",
        "SELECT pawl.is_signed('a', 'k1', 'AAAA')", "SELECT pawl.refuse('stale-token', '', '{}')",
        "CREATE OR REPLACE FUNCTION pawl.pawl_fence(fencing_token text, lease text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "CREATE FUNCTION pawl.pawl_fence(fencing_token unknown, lease unknown) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "CREATE FUNCTION pawl.pawl_fence(fencing_token varchar, lease varchar) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "DROP FUNCTION pawl.pawl_fence(text, text)", "ALTER FUNCTION pawl.pawl_fence(text, text) RESET ALL", "DROP SCHEMA pawl CASCADE",
        "ALTER FUNCTION pawl.pawl_fence(text, text) SECURITY INVOKER", "DROP EXTENSION pgcrypto CASCADE", "CREATE TABLE pawl.mine (id int)",
        "CREATE TRIGGER mine BEFORE UPDATE ON pawl.marks FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE RULE mine AS ON UPDATE TO pawl.marks DO INSTEAD NOTHING", "ALTER TABLE pawl.marks DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE orders DISABLE TRIGGER pawl_fence", "DROP TRIGGER pawl_fence ON orders", "ALTER TABLE orders DISABLE TRIGGER ALL",
        "SET ROLE pawl_owner", "SET ROLE shop_owner", "SET session_replication_role = replica", "GRANT pawl_owner TO shop_app",
        "SET SESSION AUTHORIZATION pawl_owner", "CREATE TABLE x (a text REFERENCES pawl.marks)",
    )
    secrets = [key.hex() for _, key in SHOP_DB.keys.keys]
    for statement in attempts:
        begin(one)
        error = one.error(statement)
        one("ROLLBACK")
        check(error.state in (DENIED, "42939", "2BP01"), f"{statement}: {error}")
        check(not any(secret in str(vars(error)) for secret in secrets), statement)
    check_equal(order.mark(), (1, 1))
    one(order.fence(2))
    check_equal(state_of(one, order.fence(1)), STALE)


@shop_test
def those_who_may_read_and_write_all_data_see_no_key_and_move_no_mark():
    order, reader = Order(), SHOP_DB.session("reader")
    for table in ("keys", "marks", "key_file"):
        check_equal(reader(f"SELECT * FROM pawl.{table}"), [])
    reader("UPDATE pawl.marks SET token = 0")
    reader("DELETE FROM pawl.marks")
    check_equal(state_of(reader, "INSERT INTO pawl.marks VALUES ('a', 1, 1, '1')"), DENIED)
    check_equal(state_of(reader, "INSERT INTO pawl.keys VALUES ('mine', '0123456789abcdef')"), DENIED)
    check_equal(state_of(reader, "TRUNCATE pawl.marks"), DENIED)
    check_equal(order.mark(), (1, 1))


@shop_test
def a_role_that_may_create_roles_gets_around_it_in_postgresql_15_as_the_readme_says():
    SHOP_DB.admin("CREATE ROLE maker LOGIN CREATEROLE")
    maker = SHOP_DB.session("maker")
    old = int(SHOP_DB.admin.value("SHOW server_version_num")) < 160000
    check_equal(state_of(maker, "GRANT pawl_owner TO maker"), None if old else DENIED)
    SHOP_DB.admin("REVOKE pawl_owner FROM maker")


@shop_test
def nothing_that_an_application_puts_in_front_of_the_names_is_taken():
    order, one = Order(), SHOP_DB.session()
    SHOP_DB.admin("CREATE SCHEMA evil AUTHORIZATION shop_app; GRANT TEMPORARY ON DATABASE shop TO shop_app")
    one(order.fence(34))
    one("""
        GRANT USAGE ON SCHEMA evil TO PUBLIC;
        CREATE TEMP TABLE marks (lease text PRIMARY KEY, epoch bigint, token bigint, moved_by xid8);
        CREATE TEMP TABLE keys (kid text, secret bytea);
        INSERT INTO keys VALUES ('k9', '0123456789abcdef');
        CREATE FUNCTION evil.string_to_array(text, text) RETURNS text[] LANGUAGE sql AS $$ SELECT ARRAY['99', '', '', '', '', '', ''] $$;
        CREATE FUNCTION evil.format(text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'SELECT 1' $$;
        CREATE FUNCTION evil.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT '' $$;
        CREATE FUNCTION evil.hmac(bytea, bytea, text) RETURNS bytea LANGUAGE sql AS $$ SELECT ''::bytea $$;
        CREATE FUNCTION evil.is_true(bigint, bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
        CREATE FUNCTION evil.is_false(bigint, bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
        CREATE FUNCTION evil.same(bytea, bytea) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
        CREATE FUNCTION evil.same(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
        CREATE FUNCTION evil.differs(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
        CREATE OPERATOR evil.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.is_true);
        CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.is_false);
        CREATE OPERATOR evil.= (LEFTARG = bytea, RIGHTARG = bytea, FUNCTION = evil.same);
        CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.same);
        CREATE OPERATOR evil.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.differs);
        CREATE OPERATOR evil.~ (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.same);
        CREATE DOMAIN evil.bigint AS pg_catalog.int8 DEFAULT 1""")
    for path in ("evil, pg_temp, pg_catalog, pawl", "pg_temp, evil, public, pg_catalog", "''"):
        one(f"SET search_path = {path}")
        check_equal(state_of(one, order.fence(33)), STALE, path)
        forged = signed_token(Keys("k1"), order.lease, 99, 1)
        check_equal(state_of(one, f"SELECT pawl.pawl_fence({quoted(forged)}, '{order.lease}')"), SIGNATURE, path)
        other = signed_token(SHOP_DB.keys, "other", 99, 1)
        check_equal(state_of(one, f"SELECT pawl.pawl_fence({quoted(other)}, '{order.lease}')"), LEASE, path)
        check_equal(state_of(one, "UPDATE public.orders SET state = 'evil' WHERE id OPERATOR(pg_catalog.=) " + str(order.id)), REQUIRED, path)
    one("RESET search_path")
    check_equal((order.mark(), order.state()), ((1, 34), "new"))


@shop_test
def a_cast_of_the_applications_own_runs_with_the_applications_rights():
    one = SHOP_DB.session()
    SHOP_DB.admin("CREATE SCHEMA mine AUTHORIZATION shop_app")
    one("""
        GRANT USAGE ON SCHEMA mine TO PUBLIC;
        CREATE TYPE mine.t AS (a int);
        CREATE FUNCTION mine.text_of(mine.t) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as %', current_user; END $$;
        CREATE CAST (mine.t AS text) WITH FUNCTION mine.text_of(mine.t) AS IMPLICIT;
        CREATE TABLE mine.guarded (id mine.t);
        CREATE TRIGGER pawl_fence AFTER INSERT ON mine.guarded FOR EACH ROW EXECUTE FUNCTION pawl.pawl_fenced_write('a:{id}')""")
    check_equal(one.error("INSERT INTO mine.guarded VALUES (ROW(1))").message, "as shop_app")


@shop_test
def settings_of_the_session_change_nothing():
    order, one = Order(), SHOP_DB.session()
    one(order.fence(34))
    for setting in ("standard_conforming_strings = off", "transform_null_equals = on", "row_security = off", "escape_string_warning = off",
                    "bytea_output = 'escape'", "DateStyle = 'German'", "check_function_bodies = off", "enable_indexscan = off",
                    "client_encoding = 'LATIN1'", "quote_all_identifiers = on", "backslash_quote = on", "array_nulls = off"):
        one(f"SET {setting}")
    check_equal(state_of(one, order.fence(33)), STALE)
    check_equal(state_of(one, f"SELECT pawl.pawl_fence({quoted(signed_token(Keys('k1'), order.lease, 99, 1))}, '{order.lease}')"), SIGNATURE)
    begin(one, order.fence(35), order.set("35"))
    one("COMMIT")
    check_equal((order.mark(), order.state()), ((1, 35), "35"))


@shop_test
def a_read_only_transaction_cannot_pass():
    order, one = Order(), SHOP_DB.session()
    one("BEGIN READ ONLY")
    check_equal(state_of(one, order.fence(34)), "25006")


# -- whose tokens they are


def named(store):
    SHOP_DB.admin(f"SELECT pawl.pawl_store('{store}')")


@shop_test
def the_tokens_of_one_store_are_taken_and_the_marks_of_each_are_its_own():
    order, one = Order(), SHOP_DB.session()
    one(order.fence(34))
    check_equal(state_of(one, order.fence(99, store=OTHER)), OF_OTHER)
    named(OTHER)
    try:
        check_equal(state_of(one, order.fence(99)), OF_OTHER)
        one(order.fence(5, store=OTHER))
        check_equal(state_of(one, order.fence(4, store=OTHER)), STALE)
    finally:
        named(STORE)
    check_equal(state_of(one, order.fence(33)), STALE)
    for wrong in ("", "s" * 23, "s" * 25, "s" * 23 + ".", STORE + "\n"):
        check_equal(state_of(SHOP_DB.admin, f"SELECT pawl.pawl_store('{wrong}')"), PARAMETER, wrong)
    check_equal(state_of(SHOP_DB.admin, "SELECT pawl.pawl_store(NULL)"), PARAMETER)


@shop_test
def another_store_is_named_when_nobody_is_fenced_by_this_one_any_more():
    for isolation in ISOLATIONS:
        order, one, two, old = Order(), SHOP_DB.session(), SHOP_DB.session("postgres"), SHOP_DB.session()
        old(f"BEGIN ISOLATION LEVEL {isolation}")
        old("SELECT 1 FROM orders LIMIT 1")  # its snapshot
        begin(one, order.fence(34), order.set("34"))
        two.start(f"SELECT pawl.pawl_store('{OTHER}')")
        wait_until_it_waits(two)
        one("COMMIT")
        two.answer()
        try:
            check_equal(state_of(old, order.fence(35)), OF_OTHER if isolation == "READ COMMITTED" else AGAIN, isolation)
        finally:
            named(STORE)


@shop_test
def where_no_store_is_named_no_token_is_taken_and_the_marks_of_before_are_those_of_the_first_that_is():
    order, one = Order(), SHOP_DB.session()
    one(order.fence(34))
    SHOP_DB.admin(f"DELETE FROM pawl.store; UPDATE pawl.marks SET store = '' WHERE lease = '{order.lease}'")
    try:
        check_equal(state_of(one, order.fence(35)), OF_OTHER)
    finally:
        named(STORE)
    check_equal(state_of(one, order.fence(33)), STALE)
    one(order.fence(34))


# -- installing it


@shop_test
def it_may_be_installed_again_and_keeps_its_marks_and_keys():
    order, one = Order(), SHOP_DB.session()
    one(order.fence(34))
    SHOP_DB.server.load(SQL, "shop")
    check_equal(order.mark(), (1, 34))
    check_equal(state_of(one, order.fence(33)), STALE)


@shop_test
def it_is_not_installed_where_somebody_else_could_reach_in():
    SHOP_DB.server.create_database("foreign_schema")
    SHOP_DB.server.psql("-c", "CREATE SCHEMA pawl", database="foreign_schema")

    def refusal(database):
        try:
            SHOP_DB.server.load(SQL, database)
        except RuntimeError as error:
            return str(error)
        return ""
    check_in("not of pawl_owner", refusal("foreign_schema"))
    SHOP_DB.admin("GRANT pawl_owner TO shop_app")
    try:
        check_in("shop_app is a member of pawl_owner", refusal("shop"))
    finally:
        SHOP_DB.admin("REVOKE pawl_owner FROM shop_app")


@shop_test
def pgcrypto_in_another_schema_is_taken_where_it_is_and_cannot_be_swapped():
    SHOP_DB.server.create_database("elsewhere")
    SHOP_DB.server.psql("-c", 'CREATE SCHEMA "Tools"', "-c", 'CREATE EXTENSION pgcrypto SCHEMA "Tools"',
                        "-c", 'GRANT USAGE ON SCHEMA "Tools" TO PUBLIC', database="elsewhere")
    SHOP_DB.server.load(SQL, "elsewhere")
    check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text(), "elsewhere"), "")
    admin = SHOP_DB.session("postgres", "elsewhere")
    admin(f"SELECT pawl.pawl_store('{STORE}')")
    call = f"SELECT pawl.pawl_fence({quoted(signed_token(SHOP_DB.keys, 'a', 5, 1))}, 'a')"
    admin(call)
    check_equal(state_of(admin, "DROP EXTENSION pgcrypto"), "2BP01")
    admin('ALTER EXTENSION pgcrypto SET SCHEMA public')
    admin(call)


@shop_test
def a_dump_takes_the_marks_along():
    order = Order()
    SHOP_DB.session()(order.fence(34))
    SHOP_DB.server.create_database("restored")
    SHOP_DB.server.psql("-v", "ON_ERROR_STOP=1", text=SHOP_DB.server.dump("shop", "--exclude-table-data=pawl.keys"), database="restored")
    one = SHOP_DB.session(database="restored")
    check_equal(state_of(one, order.fence(34)), SIGNATURE)
    check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text(), "restored"), "")
    check_equal(state_of(one, order.fence(33)), STALE)
    check_equal(state_of(one, order.set("x")), REQUIRED)
    begin(one, order.fence(34), order.set("34"))
    one("COMMIT")


# -- beside a version column


def read_version(session, order):
    return int(session.value(f"SELECT version FROM {order.table} WHERE id = {order.id}"))


def write_version(session, order, state, version):
    """The optimistic lock: how many rows it wrote."""
    return len(session(f"UPDATE {order.table} SET state = '{state}', version = version + 1 WHERE id = {order.id} AND version = {version} "
                       "RETURNING version"))


@shop_test
def a_version_column_lets_a_stale_holder_write_that_reads_again_and_the_fence_does_not():
    for table, landed in (("plain", 1), ("orders", STALE)):
        order, old, new = Order(table), SHOP_DB.session(), SHOP_DB.session()
        begin(new, order.fence(34))
        check_equal(write_version(new, order, "34", read_version(new, order)), 1)
        new("COMMIT")
        begin(old, f"SELECT set_config('pawl.token', {quoted(order.token(33))}, true)")
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


@shop_test
def who_fences_first_and_reads_then_loses_nothing_without_a_version_column():
    order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
    begin(one, order.fence(5))
    begin(other)
    other.start(order.fence(5))
    wait_until_it_waits(other)
    one(order.set(f"{read_version(one, order)}+one"))
    one("COMMIT")
    other.answer()
    check_equal(other.value(f"SELECT state FROM orders WHERE id = {order.id}"), "0+one")
    other("COMMIT")


if __name__ == "__main__":
    main(SHOP_DB.close)
