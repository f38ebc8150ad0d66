"""fence_scenarios.py - what the fence inside of a database does, whatever the server: what passes, what waits, what is
refused. The file that imports them says by SHOP_DB.driver on which server, and adds what only that one can do."""

import base64
import concurrent.futures
import itertools
import os
import re
import subprocess

from world import BUILD, ROOT, Keys, World, check, check_equal, check_in, given, gives, signed_token, test, wait_until
from world.sql import SqlError, texts_that_are_no_token

STALE, REQUIRED, MALFORMED = "PW412", "PW428", "PW400"
SIGNATURE, OF_OTHER, LEASE, MODE = "PW40S", "PW40T", "PW40L", "PW40M"
AGAIN, PARAMETER = "40001", "22023"
STORE, OTHER = "Zk3v9a1BQ2x8Zk3v9a1BQ2x8", "another-store".ljust(24, "-")  # the README's, and one that is not


class Shop:
    """The database of the README, set up by its lines when the first test needs it."""

    def __init__(self):
        self.server = self.failure = self.driver = None
        self.sessions = []
        self.numbers = itertools.count(1)

    def open(self):
        """Once; what went wrong then goes wrong for each test."""
        if self.failure is not None:
            raise self.failure
        if self.server is None:
            try:
                self.server = self.driver.start()
                self.keys = Keys("k1", "k2")
                self.keys_file = os.path.join(self.server.folder, "keys")
                self.keys.write(self.keys_file)
                self.driver.set_up()
                self.admin = self.session(self.driver.administrator)
            except Exception as error:
                self.failure = error
                raise
        return self

    def blocks(self, kind):
        """Those of the README."""
        return re.findall(rf"```{kind}\n(.*?)```", self.driver.readme.read_text(), re.S)

    def shell(self, block, database="shop"):
        """What goes wrong when the server's administrator types a block of the README; "" if nothing does."""
        block, env = self.driver.typed(block.replace("/etc/pawl/keys", self.keys_file).replace("-d shop", f"-d {database}"))
        done = subprocess.run(["sh", "-e"], input=block, capture_output=True, text=True, timeout=30, check=False, cwd=ROOT,
                              env={**os.environ, **env})
        return "" if done.returncode == 0 else done.stderr

    def load_keys(self, text, database="shop"):
        """The error of loading a key file with this text, "" if there is none."""
        with open(self.keys_file, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return self.shell(self.blocks("sh")[1], database)

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
            given(function)
        finally:
            SHOP_DB.end_sessions()
    run.__name__ = function.__name__
    return test(run)


class Order:
    """A row of its own, its lease, and tokens for it."""

    def __init__(self, table="orders"):
        self.table, self.id = table, next(SHOP_DB.numbers)
        self.lease = f"order:{self.id}"
        one = SHOP_DB.session() if table == "orders" else SHOP_DB.admin
        begin(one, *[self.fence(1)] * (table == "orders"), f"INSERT INTO {table} (id, state) VALUES ({self.id}, 'new')")
        one("COMMIT")

    def token(self, number, epoch=1, **more):
        return signed_token(SHOP_DB.keys, self.lease, number, epoch, **more)

    def fence(self, number, epoch=1, **more):
        return call(self.token(number, epoch, **more), self.lease)

    def set(self, state):
        return f"UPDATE {self.table} SET state = '{state}' WHERE id = {self.id}"

    def state(self, session=None):
        return (session or SHOP_DB.admin).value(f"SELECT state FROM {self.table} WHERE id = {self.id}")

    def mark(self):
        rows = SHOP_DB.admin(f"SELECT epoch, token FROM pawl.marks WHERE lease = '{self.lease}'")
        return tuple(int(number) for number in rows[0]) if rows else None


gives.update(order=Order, one=SHOP_DB.session, other=SHOP_DB.session)


def literal(text):
    return SHOP_DB.driver.literal(text)


def call(token, lease):
    return SHOP_DB.driver.call.format(literal(token), literal(lease))


def remember(token):
    """The writes of this transaction are fenced with it, whatever becomes of its calls."""
    return SHOP_DB.driver.remember.format(literal(token))


def named(store, session=None):
    (session or SHOP_DB.admin)(SHOP_DB.driver.name.format(literal(store)))


def begin(session, *statements, isolation="READ COMMITTED"):
    SHOP_DB.driver.begin(session, isolation)
    for statement in statements:
        session(statement)


def state_of(session, statement):
    """The SQLSTATE that it ends with, or None."""
    try:
        session(statement)
        return None
    except SqlError as error:
        return error.state


def fenced(session, *statements, isolation="READ COMMITTED"):
    """The SQLSTATE of the first that is refused, in a transaction of their own, which is committed if all pass."""
    begin(session, isolation=isolation)
    state = next(filter(None, (state_of(session, statement) for statement in statements)), None)
    session("COMMIT" if state is None else "ROLLBACK")
    return state


def answer_state(session):
    try:
        session.answer()
        return None
    except SqlError as error:
        return error.state


def wait_until_it_waits(session):
    """For a row lock that somebody else has."""
    wait_until(lambda: SHOP_DB.driver.waits(session), "the session waits for another")


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
            return fenced(session, call(grant["fencing_token"], name), statement)
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
def all_keys_of_the_file_verify_and_one_that_was_taken_out_does_not(one, order):
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
    before = SHOP_DB.admin(SHOP_DB.driver.keys)
    check_equal([row[0] for row in before], ["k1", "k2"])
    bad = {f"k9:{good}\nk9:{good}\n": "line 2 of the key file: this kid", f"k9:{short}\n": "line 1 of the key file: the key is",
           f"#\n\nk9 {good}\n": "line 3 of the key file: a key is", f"k9: {good}\n": "line 1", f"{'k' * 33}:{good}\n": "line 1",
           f"k9:{good[:-1]}\n": "line 1", f"k9:{good[:-3]}x==\n": "spare bits", f":{good}\n": "line 1", f"k/9:{good}\n": "line 1",
           f"k9:{longest}\n": "16 to 1,024", "# nothing\n\n": "there is no key", "": "there is no key"}
    bad |= {f"k9:{good}\r\n": "line 1"} if SHOP_DB.driver.keys_end_in_lf else {}
    for text, why in bad.items():
        said = SHOP_DB.load_keys(text)
        check_in(why, said, repr(text))
        check(good[:8] not in said and short[:8] not in said, f"{text!r} is quoted: {said}")
    check_equal(SHOP_DB.admin(SHOP_DB.driver.keys), before)
    check_equal(SHOP_DB.admin("SELECT line FROM pawl.key_file"), [])


# -- the one text


@shop_test
def only_the_canonical_text_is_read(order, one):
    for setting in SHOP_DB.driver.readings:
        one(setting)
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
def no_token_passes_with_a_byte_changed_left_out_or_put_in(order, one):
    good = order.token(34)
    passed = set()
    one(SHOP_DB.driver.outside)
    for at in range(len(good)):
        for new in (good[:at] + good[at + 1:], good[:at] + good[at] + good[at:], good[:at] + "0" + good[at + 1:],
                    good[:at] + ("A" if good[at] != "A" else "B") + good[at + 1:]):
            if new != good and state_of(one, call(new, order.lease)) is None:
                passed.add(new)
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
            begin(one)
            check_equal(one(call(signed_token(keys, lease, number, epoch, hold=hold), lease)), SHOP_DB.driver.gives(number))
            one("COMMIT")
            check_equal(SHOP_DB.admin(f"SELECT epoch, token FROM pawl.marks WHERE lease = '{lease}'"), [(str(epoch), str(number))])
    finally:
        check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text()), "")


@shop_test
def the_refusals_come_in_the_gateways_order_each_with_its_sqlstate_code_and_facts(order, one):
    check_equal(fenced(one, order.fence(10)), None)
    other = order.lease + "0"
    of_other = signed_token(SHOP_DB.keys, other, 3, 1, mode="shared", store=OTHER)
    presented = {"presented_token": 3, "presented_epoch": 1}
    for statement, state, code, facts in (
            (call(None, order.lease), REQUIRED, "token-required", {}), (call("", order.lease), MALFORMED, "malformed-token", {}),
            (call(signed_token(Keys("k1"), other, 3, 1, mode="shared"), order.lease), SIGNATURE, "bad-signature", presented),
            (order.fence(3, kid="k2").replace('kid="k2"', 'kid="k3"'), SIGNATURE, "bad-signature", presented),
            (call(of_other, order.lease), OF_OTHER, "wrong-store", presented),
            (call(signed_token(SHOP_DB.keys, other, 3, 1, mode="shared"), order.lease), LEASE, "wrong-lease", presented),
            (call(signed_token(SHOP_DB.keys, order.lease.upper(), 3, 1), order.lease), LEASE, "wrong-lease", presented),
            (order.fence(3, mode="shared"), MODE, "wrong-mode", presented), (order.fence(3, mode="permits"), MODE, "wrong-mode", presented),
            (order.fence(3), STALE, "stale-token", {**presented, "mark": 10, "mark_epoch": 1})):
        begin(one)
        error = one.error(statement)
        check_equal(error.state, state, statement)
        check(error.message.startswith(code + ": "), error.message)
        SHOP_DB.driver.check_refusal(error, {"code": code, "lease": order.lease, **facts})
        check_equal(state_of(one, order.set("ignored")), SHOP_DB.driver.after_error or REQUIRED, "who was refused and writes on")
        one("COMMIT")
    check_equal((order.mark(), order.state()), ((1, 10), "new"))


@shop_test
def a_name_that_is_none_of_a_lease_is_the_callers_mistake(one):
    for lease in (None, "", "a/b", "-a", "a b", "a ", "n" * 129, "ä", "a\n"):
        check_equal(fenced(one, call(None, lease)), PARAMETER, repr(lease))


# -- the mark


@shop_test
def a_mark_rises_stays_for_an_equal_token_and_keeps_out_what_is_older(order, one):
    for isolation in SHOP_DB.driver.isolations:
        base = order.mark()[1]
        for number, state, mark in ((5, None, 5), (5, None, 5), (4, STALE, 5), (7, None, 7), (6, STALE, 7), (5, STALE, 7)):
            check_equal(fenced(one, order.fence(base + number), isolation=isolation), state, f"{isolation}: {number}")
            check_equal(order.mark(), (1, base + mark))


@shop_test
def the_epoch_decides_before_the_number(order, one):
    check_equal(fenced(one, order.fence(99, epoch=2)), None)
    check_equal(fenced(one, order.fence(100, epoch=1)), STALE)
    check_equal(fenced(one, order.fence(2, epoch=3)), None)
    check_equal(fenced(one, order.fence(999999999999999, epoch=2)), STALE)
    check_equal(order.mark(), (3, 2))


@shop_test
def what_is_rolled_back_has_moved_nothing(order, one):
    begin(one, order.fence(9), order.set("gone"))
    one("ROLLBACK")
    check_equal((order.mark(), order.state()), ((1, 1), "new"))
    check_equal(fenced(one, order.fence(5)), None)


@shop_test
def a_lease_that_was_only_refused_has_no_mark():
    forged = signed_token(Keys("k1"), "never:1", 3, 1)
    check_equal(fenced(SHOP_DB.session(), call(forged, "never:1")), SIGNATURE)
    check_equal(SHOP_DB.admin("SELECT token FROM pawl.marks WHERE lease = 'never:1'"), [])


@shop_test
def a_lease_in_another_case_is_another_lease(one):
    for lease in ("Case:1", "case:1", "CASE:1"):
        check_equal(fenced(one, call(signed_token(SHOP_DB.keys, lease, 5, 1), lease)), None)
    check_equal(SHOP_DB.admin.value("SELECT COUNT(*) FROM pawl.marks WHERE LOWER(lease) = 'case:1'"), "3")


# -- two at once


@shop_test
def a_newer_holder_waits_for_the_older_ones_end_sees_its_write_and_shuts_it_out():
    for isolation in SHOP_DB.driver.looks_again:
        order, old, new = Order(), SHOP_DB.session(), SHOP_DB.session()
        begin(old, order.fence(33), order.set("33"), isolation=isolation)
        begin(new, isolation=isolation)
        new.start(order.fence(34))
        wait_until_it_waits(new)
        old("COMMIT")
        new.answer()
        check_equal(order.state(new), "33", isolation)
        new(order.set("34"))
        begin(old, isolation=isolation)
        old.start(order.fence(33))
        wait_until_it_waits(old)
        new("COMMIT")
        check_equal(answer_state(old), STALE, isolation)
        old("ROLLBACK")
        check_equal((order.mark(), order.state()), ((1, 34), "34"))


def after_commit(isolation, state):
    """What becomes of a call that has waited for a commit: state, where the server looks again."""
    return state if isolation in SHOP_DB.driver.looks_again else AGAIN


@shop_test
def an_older_holder_that_waited_for_a_newer_one_passes_only_if_that_was_rolled_back():
    for isolation in SHOP_DB.driver.isolations:
        for ending, wanted in (("COMMIT", after_commit(isolation, STALE)), ("ROLLBACK", None)):
            order, old, new = Order(), SHOP_DB.session(), SHOP_DB.session()
            begin(new, order.fence(34), isolation=isolation)
            begin(old, isolation=isolation)
            old.start(order.fence(33))
            wait_until_it_waits(old)
            new(ending)
            check_equal(answer_state(old), wanted, f"{isolation}, {ending}")
            old("ROLLBACK")
            check_equal(fenced(old, order.fence(33)), STALE if wanted else None, "tried again")


@shop_test
def at_a_leases_first_write_too_the_older_waits_and_is_refused():
    for isolation in SHOP_DB.driver.isolations:
        lease = f"first:{next(SHOP_DB.numbers)}"
        old, new = SHOP_DB.session(), SHOP_DB.session()
        calls = [call(signed_token(SHOP_DB.keys, lease, number, 1), lease) for number in (33, 34)]
        begin(old, "SELECT COUNT(*) FROM plain", isolation=isolation)
        begin(new, calls[1], isolation=isolation)
        old.start(calls[0])
        wait_until_it_waits(old)
        new("COMMIT")
        check_equal(answer_state(old), after_commit(isolation, STALE), isolation)


@shop_test
def a_snapshot_older_than_the_last_fenced_write_does_not_pass():
    for setting, isolation, of_older, of_others in SHOP_DB.driver.snapshots:
        for mine, theirs in ((33, 34), (34, 34), (35, 34)):
            order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
            one(setting)
            begin(one, f"SELECT state FROM orders WHERE id = {order.id}", isolation=isolation)
            begin(other, order.fence(theirs), order.set("theirs"))
            other("COMMIT")
            check_equal(state_of(one, order.fence(mine)), of_older if mine < theirs else of_others, f"{setting}, {isolation}: {mine} after {theirs}")
            one("ROLLBACK")
            check_equal(fenced(one, order.fence(mine), isolation=isolation), STALE if mine < theirs else None)


@shop_test
def two_with_the_same_token_go_one_after_the_other():
    for isolation in SHOP_DB.driver.isolations:
        order, one, other = Order(), SHOP_DB.session(), SHOP_DB.session()
        check_equal(fenced(one, order.fence(5)), None)
        begin(one, order.fence(5), isolation=isolation)  # equal to the mark: it does not rise
        begin(other, isolation=isolation)
        other.start(order.fence(5))
        wait_until_it_waits(other)
        one(order.set("one"))
        one("COMMIT")
        check_equal(answer_state(other), after_commit(isolation, None), isolation)
        if isolation in SHOP_DB.driver.looks_again:
            check_equal(order.state(other), "one")


@shop_test
def other_leases_do_not_wait():
    for isolation in SHOP_DB.driver.looks_again:
        order, neighbour, one, other = Order(), Order(), SHOP_DB.session(), SHOP_DB.session()
        other(SHOP_DB.driver.impatient)
        begin(one, order.fence(5), order.set("5"), isolation=isolation)
        begin(other, neighbour.fence(5), neighbour.set("5"), isolation=isolation)
        other("COMMIT")
        # New marks on both sides of the one that is held: no gap is locked.
        for fresh in (order.lease[:-1] + "-", order.lease + "-", order.lease + "0-"):
            check_equal(fenced(other, call(signed_token(SHOP_DB.keys, fresh, 1, 1), fresh), isolation=isolation), None, f"{isolation}: {fresh}")
        one("COMMIT")


@shop_test
def a_transaction_that_was_prepared_keeps_the_row_until_it_is_decided():
    for decision, mark in (("COMMIT", (1, 5)), ("ROLLBACK", (1, 1))):
        order, other = Order(), SHOP_DB.session()
        one, statement = SHOP_DB.driver.prepare(decision, order.fence(5), order.set("prepared"))
        begin(other)
        other.start(order.fence(4))
        wait_until_it_waits(other)
        one(statement)
        check_equal(answer_state(other), STALE if mark == (1, 5) else None, decision)
        other("ROLLBACK")
        check_equal(order.mark(), mark)


@shop_test
def under_load_no_older_token_writes_after_a_newer_one_and_no_update_is_lost():
    order, isolations = Order("plain"), SHOP_DB.driver.isolations
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
            written += write(sessions[index], number, isolations[(index + turn) % len(isolations)])
            written += turn % 3 == 0 and write(sessions[index], number, isolations[turn % len(isolations)])
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
def a_token_from_before_the_savepoint_is_fenced_anew_by_the_write(order, one, other):
    keep = SHOP_DB.driver.keep.format(literal(order.token(33)))
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
    for _ in range(2):
        check_equal(state_of(one, order.set("stale")), STALE)
        one("ROLLBACK TO SAVEPOINT s")


@shop_test
def every_way_to_write_a_guarded_row_is_fenced():
    order, fresh = Order(), next(SHOP_DB.numbers)
    check_equal(fenced(SHOP_DB.session(), order.fence(34)), None)
    Order("plain")  # for a join
    ways = {"update": order.set("x"), "delete": f"DELETE FROM orders WHERE id = {order.id}",
            "insert": f"INSERT INTO orders (id, state) VALUES ({fresh}, 'x')", "truncate": "TRUNCATE orders", **SHOP_DB.driver.ways(order, fresh)}
    states = {"truncate": (SHOP_DB.driver.truncated,) * 2, **dict.fromkeys(("insert", "insert ignore", "copy"), (REQUIRED, SHOP_DB.driver.inserted))}
    one, admin = SHOP_DB.session(), SHOP_DB.session(SHOP_DB.driver.administrator)
    for way, statement in ways.items():
        who = admin if way == "copy" else one  # only the administrator reads files
        for token, state in zip((None, order.token(33)), states.get(way, (REQUIRED, STALE))):
            begin(who, remember(token))
            check_equal(state_of(who, statement), state, way)
            who("COMMIT")
    check_equal(order.state(), "new")
    check_equal(SHOP_DB.admin(f"SELECT id FROM orders WHERE id = {fresh}"), [])


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
def a_read_only_transaction_cannot_pass(order, one):
    one("START TRANSACTION READ ONLY")
    check_equal(state_of(one, order.fence(34)), "25006")


# -- whose tokens they are


@shop_test
def the_tokens_of_one_store_are_taken_and_the_marks_of_each_are_its_own(order, one):
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
    for wrong in ("", "s" * 23, "s" * 25, "s" * 23 + ".", STORE + "\n", None):
        check_equal(state_of(SHOP_DB.admin, SHOP_DB.driver.name.format(literal(wrong))), PARAMETER, wrong)


@shop_test
def another_store_is_named_when_nobody_is_fenced_by_this_one_any_more():
    for isolation in SHOP_DB.driver.isolations:
        order, one, two = Order(), SHOP_DB.session(), SHOP_DB.session(SHOP_DB.driver.administrator)
        old, late = SHOP_DB.session(), SHOP_DB.session()
        begin(old, "SELECT COUNT(*) FROM orders", isolation=isolation)  # its snapshot
        locks = isolation in SHOP_DB.driver.reads_lock
        if locks:  # what the other writes
            old("COMMIT")
        begin(one, order.fence(34), order.set("34"), isolation=isolation)
        two.start(SHOP_DB.driver.name.format(literal(OTHER)))
        wait_until_it_waits(two)
        begin(late, isolation=isolation)
        late.start(call(signed_token(SHOP_DB.keys, "late", 1, 1), "late"))
        wait_until_it_waits(late)  # behind it: else it would wait for ever where somebody always writes
        one("COMMIT")
        two.answer()
        try:
            check_equal(answer_state(late), after_commit(isolation, OF_OTHER), isolation)
            state = fenced(old, order.fence(35), isolation=isolation) if locks else state_of(old, order.fence(35))
            check_equal(state, after_commit(isolation, OF_OTHER), isolation)
        finally:
            old("ROLLBACK")
            late("ROLLBACK")
            named(STORE)


@shop_test
def another_store_is_named_when_what_was_prepared_is_decided():
    fresh = f"first:{next(SHOP_DB.numbers)}"
    for fence in (Order().fence(5), call(signed_token(SHOP_DB.keys, fresh, 1, 1), fresh)):
        admin = SHOP_DB.session(SHOP_DB.driver.administrator)
        one, statement = SHOP_DB.driver.prepare("COMMIT", fence)
        admin.start(SHOP_DB.driver.name.format(literal(OTHER)))
        wait_until_it_waits(admin)
        one(statement)
        admin.answer()
        named(STORE)


@shop_test
def where_no_store_is_named_no_token_is_taken_and_the_marks_of_before_are_those_of_the_first_that_is(order, one):
    check_equal(fenced(one, order.fence(34)), None)
    SHOP_DB.admin("DELETE FROM pawl.store")
    SHOP_DB.admin(f"UPDATE pawl.marks SET store = '' WHERE lease = '{order.lease}'")
    try:
        check_equal(fenced(one, order.fence(35)), OF_OTHER)
    finally:
        named(STORE)
    check_equal(fenced(one, order.fence(33)), STALE)
    check_equal(fenced(one, order.fence(34)), None)


@shop_test
def it_may_be_installed_again_and_keeps_its_marks_and_keys(order):
    check_equal(fenced(SHOP_DB.session(), order.fence(34)), None)
    SHOP_DB.driver.install()
    check_equal(order.mark(), (1, 34))
    again = SHOP_DB.session()
    check_equal(fenced(again, order.fence(33)), STALE)
    check_equal(fenced(again, order.fence(35)), None)


# -- beside a version column


def read_version(session, order):
    return int(session.value(f"SELECT version FROM {order.table} WHERE id = {order.id}"))


def write_version(session, order, state, version):
    """The optimistic lock: how many rows it wrote."""
    return SHOP_DB.driver.rows_of(session, f"UPDATE {order.table} SET state = '{state}', version = version + 1 "
                                  f"WHERE id = {order.id} AND version = {version}")


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
def the_fence_alone_loses_an_update_of_one_holders_two_threads_that_read_first_and_the_version_column_does_not(order, one, other):
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
def who_fences_first_and_reads_then_loses_nothing_without_a_version_column(order, one, other):
    begin(one, order.fence(5))
    begin(other)
    other.start(order.fence(5))
    wait_until_it_waits(other)
    one(order.set(f"{read_version(one, order)}+one"))
    one("COMMIT")
    other.answer()
    check_equal(order.state(other), "0+one")
    other("COMMIT")
