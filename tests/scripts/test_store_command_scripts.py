#!/usr/bin/python3
"""test_store_command_scripts.py - the scripts of pawl store, together with those by which services join and admit."""

import sys

sys.dont_write_bytecode = True

from lua_test import TOKEN_LAST, Store, check, check_equal, main, record_packed, stripe_do, stripe_fields, test  # noqa: E402

RECORD = "pawl:{store}"
ID = "8:store-aaaaaaaaaaaaaaaaaa"
EPOCH, BLOCK, FRESH_MS = 7, 1000, 10000

store = Store()
here = {}


def redis(*words):
    return store.redis(*words)


def run(script, *args):
    return store.run(f"api/cli/scripts/{script}.lua", [RECORD], *args)


def hash_of(key):
    flat = [one.decode() for one in redis("HGETALL", key)]
    return dict(zip(flat[::2], flat[1::2]))


def record():
    return hash_of(RECORD)


def stripe(i):
    return stripe_fields(hash_of(f"pawl:{{{i:02x}}}"))


def lease(name="job", **parts):
    """One that nobody holds, in the stripe 3f whatever its name."""
    known = {"s": "released", "t": 0, "e": EPOCH, "h": "", "i": "", "d": 0} | parts
    redis("HSET", "pawl:{3f}", f"l:{name}", record_packed(known))


def empty(now=1000000):
    redis("FLUSHALL")
    redis("SET", "test:clock", now)
    info = redis("INFO", "server").decode()
    here["run_id"] = info.split("run_id:")[1].split("\r\n")[0]
    here["run"] = f"{here['run_id']} {store.replid()}"


def begin(floor=BLOCK):
    """A store of which member one knows."""
    empty()
    check_equal(store.run("lease/scripts/init_store.lua", [RECORD], ID, EPOCH, here["run_id"], "one", floor), ["created"])


class Service:
    """What a process does with the scripts of its own, as shared/member/scripts/heartbeat.lua says."""

    all = {}

    def __init__(self, member, role="lease", floor=BLOCK, listed=(), epoch=0):
        self.id, self.role, self.floor, self.listed, self.epoch = member, role, floor, list(listed), epoch
        self.incarnation, self.beats, self.roll, self.run = member + "-1", 0, 0, here["run_id"]
        self.passed, self.seqs = 0, ""
        Service.all[member] = self

    def pulse(self):
        reply = store.run("shared/member/scripts/heartbeat.lua", [RECORD], ID, self.run, self.id, self.role, self.incarnation,
                          self.epoch, self.beats, self.floor, self.roll, BLOCK, 0, f"pawl-{self.role} {self.id}",
                          "gate-" + self.id, self.seqs, self.passed, "", ",".join(self.listed), "settled", 0, "")
        if reply[0] in ("in", "pending"):
            self.roll, self.floor = reply[3], max(self.floor, reply[4])
            self.listed = [one for one in reply[6] if self.role == "lease"]
        if reply[0] == "in":
            self.epoch, self.beats = reply[1], reply[7]
        return reply

    def comes(self):
        """Pulses until it is in and has told what it has recorded."""
        for _ in range(3):
            reply = self.pulse()
        check_equal(reply[0], "in", f"{self.id}: {reply[:3]}")
        return self

    def admits(self):
        """As the state directories of all that are asked record it."""
        for _ in range(8):
            reply = store.run("lease/scripts/admit.lua", [RECORD], ID, self.run, record()["gate"], self.id, "now")
            if reply[0] == "record":
                self.listed = reply[1]
                self.pulse()
            elif reply[0] != "unrecorded":
                return reply
            for other in map(Service.all.get, reply[1].split(",") if reply[0] == "unrecorded" else []):
                told = store.run("lease/scripts/admit.lua", [RECORD], ID, self.run, record()["gate"], other.id, "now")
                check_equal(told[0], "record")
                other.listed = told[1]
                other.pulse()
        raise AssertionError(reply)


def two_services():
    begin()
    one = Service("one").comes()
    two = Service("two")
    two.pulse()
    for _ in range(3):
        one.pulse()
        two.pulse()
    check_equal(two.pulse()[0], "in")
    one.pulse()
    return one, two


class Seen:
    """What status.lua tells."""

    def __init__(self):
        word, facts, members, asked, self.waiting, self.doubts = run("status")
        check_equal(word, "status")
        self.facts = dict(zip(facts[::2], facts[1::2]))
        self.members = {}
        for one in members:
            member = dict(zip(one[::2], one[1::2]))
            self.members[member["id"]] = member
        self.asked = asked

    def __getitem__(self, name):
        return self.facts[name]


def seen():
    before = store.dump()
    found = Seen()
    check_equal(store.dump(), before, "status.lua changed something")
    return found


def scanned(how="look"):
    """All pages: (highest token, its lease, highest epoch, keys with a TTL, wrong key)."""
    cursor, top, lease, epoch, ending, wrong = "0", 0, "", 0, 0, ""
    while True:
        reply = store.run("api/cli/scripts/scan.lua", [], cursor, how)
        check_equal(reply[0], "page")
        cursor = reply[1]
        if reply[2] > top:
            top, lease = reply[2], reply[3]
        epoch, ending, wrong = max(epoch, reply[4]), ending + reply[5], reply[7] or wrong
        if cursor == "0":
            return top, lease, epoch, ending, wrong


def recover(floor, expected="", fresh="8:fresh-aaaaaaaaaaaaaaaaaa", epoch=0, force=""):
    return run("recover", expected, fresh, floor, epoch, force)


def refused(action, *wanted):
    """It says so and changes nothing."""
    before = store.dump()
    check_equal(action(), list(wanted))
    check_equal(store.dump(), before, "something was changed")


# -- status


@test
def an_empty_redis_is_told_as_empty():
    empty()
    found = seen()
    check_equal((found["kind"], found["identity"], found["redis_run"]), ("empty", "", here["run"]))
    check_equal((found["redis_role"], found["redis_policy"], found["redis_aof"]), ("master", "noeviction", "0"))
    check_equal((found.members, found.asked, found.waiting), ({}, 0, []))


@test
def a_store_of_another_schema_is_told_as_another():
    empty()
    redis("HSET", "pawl:{00}", "id", "store-1", "schema", 1)
    check_equal((seen()["kind"], seen()["identity"]), ("another", "store-1"))
    redis("DEL", "pawl:{00}")
    redis("HSET", "pawl:{00}", "counter", 5)
    check_equal((seen()["kind"], seen()["identity"]), ("another", ""))


@test
def a_store_in_order_is_told_with_its_members():
    one, two = two_services()
    gateway = Service("gate", "gateway")
    for _ in range(2):
        gateway.pulse()
        one.pulse()
        two.pulse()
    redis("HSET", "pawl:{3f}", "counter", 12)
    found = seen()
    check_equal((found["kind"], found["identity"], found["sound"], found["gate"], found["how"]),
                ("store", ID, 1, "", "initialised"))
    check_equal((found["epoch"], found["run"], found["top"], found["top_stripe"]), (EPOCH, here["run"], 12, "pawl:{3f}"))
    check_equal((found["ceiling"], found["clock"], found["shut"], found["absent"], found["record"]), (BLOCK, 0, 0, 0, 1))
    check_equal(sorted(found.members), ["gate", "one", "two"])
    check_equal([found.members[name]["role"] for name in ("one", "gate")], ["lease", "gateway"])
    check_equal({(one["state"], one["live"], one["age"]) for one in found.members.values()}, {("in", 1, 0)})
    check_equal((found.members["one"]["floor"], found.members["one"]["who"]), (BLOCK, "pawl-lease one"))
    store.at(1000000 + FRESH_MS + 1)
    check_equal((seen().members["one"]["live"], seen().members["one"]["age"]), (0, FRESH_MS + 1))


@test
def a_gated_store_is_told_with_the_one_that_it_waits_for():
    one, _ = two_services()
    one.run = "b" * 40
    check_equal(one.pulse()[0], "gated")
    found = seen()
    check_equal((found["gate"], found["why"], found["shut"]), ("gate-one", "restarted", 256))
    check_equal((found.asked, found.waiting), (1, ["two"]))
    check_equal([found.members[name]["reported"] for name in ("one", "two")], [1, 0])
    check_equal(one.admits(), ["floors-missing", "two"])


@test
def it_waits_for_those_that_are_listed_by_those_that_are_listed():
    begin()
    one = Service("one", listed=["lease one -", "lease two -", "gateway gate -"])
    two = Service("two", listed=["lease one -", "lease two -", "lease three -"])
    one.run = two.run = "b" * 40
    one.pulse()
    check_equal(seen().waiting, ["two"])
    two.pulse()
    check_equal(seen().waiting, ["three"])
    check_equal(one.admits(), ["floors-missing", "three"])
    three = Service("three", listed=["lease two -", "lease three -"])
    three.run = one.run
    three.pulse()
    check_equal((seen().asked, seen().waiting), (2, []))
    check_equal(one.admits()[0], "admitted")


@test
def a_lease_service_that_is_gone_since_it_reported_cannot_admit():
    begin()
    one = Service("one", listed=["lease two -"])
    one.run = "b" * 40
    one.pulse()
    check_equal(seen().asked, 1)
    store.at(1000000 + FRESH_MS + 1)
    check_equal(seen().asked, 0, "nobody is there who could admit")


@test
def a_lease_service_whose_list_is_empty_may_not_admit():
    begin()
    new = Service("new")
    new.run = "b" * 40
    new.pulse()
    check_equal((seen().asked, seen().waiting), (1, ["one"]))
    check_equal(new.admits(), ["floors-missing", "one"])
    redis("DEL", RECORD + ":m:one")
    redis("SREM", RECORD + ":members", "one")
    check_equal((seen().asked, seen().waiting), (1, []))
    check_equal(new.admits(), ["floors-missing", "unknown"])
    other = Service("one", listed=["lease one -", "lease two -"])
    other.run = new.run
    other.pulse()
    check_equal((seen().asked, seen().waiting), (1, ["two"]), "the one that waits for somebody is told")


@test
def damage_is_told_with_what_is_missing():
    begin()
    redis("DEL", "pawl:{3f}", "pawl:{40}")
    check_equal((seen()["sound"], seen()["absent"], seen()["first_absent"]), (0, 2, "pawl:{3f}"))
    begin()
    redis("DEL", RECORD)
    check_equal((seen()["kind"], seen()["identity"], seen()["sound"], seen()["record"]), ("store", ID, 0, 0))
    begin()
    redis("HDEL", "pawl:{ff}", "counter")
    check_equal((seen()["sound"], seen()["absent"]), (0, 0))
    begin()
    stripe_do(redis, "HSET", "pawl:{3f}", "epoch", -EPOCH)
    check_equal((seen()["sound"], seen()["shut"]), (0, 1))


# -- scan


@test
def the_highest_token_or_mark_of_any_lease_is_found():
    begin()
    check_equal(scanned(), (0, "", 0, 0, ""))
    for i in range(1500):
        lease(f"n:{i}", s="held", t=i)
    lease("a:b:due", t=2000)
    check_equal(scanned(), (2000, "a:b:due", EPOCH, 0, ""))
    lease("marked", s="expired", t=5, k=3000, p=EPOCH + 2)
    check_equal(scanned(), (3000, "marked", EPOCH + 2, 0, ""))
    redis("HSET", "pawl:{fe}", "l:of another release", record_packed({"s": "lent", "t": 4000, "e": EPOCH + 3}, "Z"))
    check_equal(scanned(), (4000, "of another release", EPOCH + 3, 0, ""))


@test
def keys_with_a_ttl_are_counted_and_cured_on_demand():
    begin()
    redis("HSET", "pawl:{3f}:k:job/id", "k", "v")
    for key in ("pawl:{07}", RECORD, RECORD + ":members", "pawl:{3f}:k:job/id"):
        redis("EXPIRE", key, 1000)
    redis("SET", "foreign", 1, "EX", 1000)
    check_equal(scanned()[3], 4)
    check_equal(scanned()[3], 4, "a look changes nothing")
    check_equal(scanned("persist")[3], 4)
    check_equal(scanned()[3], 0)
    check(redis("TTL", "foreign") > 0, "what is not ours is left alone")


@test
def a_key_of_the_wrong_type_is_named():
    of_a_lease = [f"pawl:{{3f}}:{letter}:job" for letter in "xnqwkefdsy"]
    for key in ("pawl:{3f}", RECORD, RECORD + ":members", RECORD + ":alarm", "pawl:{3f}:due", "pawl:{3f}:w:job:gone", *of_a_lease):
        begin()
        redis("DEL", key)
        redis("SET", key, "x")
        check_equal(scanned()[4], key)
    begin()
    for key in of_a_lease + [RECORD + ":alarm"]:
        letter = key.split(":")[2][0]
        word, *rest = ("RPUSH", "x") if letter in "ef" else ("ZADD", 1, "x") if letter in "xqa" else ("HSET", "t", 1)
        redis(word, key, *rest)
    check_equal(scanned()[4], "", "all of them as they are")
    redis("LPUSH", "pawl:{3f}:later", "x")
    check_equal(scanned()[4], "", "what this release does not know is no fault")


# -- the skeleton


@test
def a_skeleton_is_gated_until_a_lease_service_admits_it_above_its_floor():
    empty()
    check_equal(run("skeleton", ID, 1700000000, "gate-x"), ["made"])
    check_equal((record()["gate"], record()["why"], record()["epoch"], stripe(9)["epoch"]),
                ("gate-x", "empty", "1700000000", "-1700000000"))
    one = Service("one", floor=5000, listed=["lease one -"])
    check_equal(one.pulse()[0], "gated")
    check_equal(record()["gate"], "gate-x")
    word, epoch, how, top, _ = one.admits()
    check_equal((word, epoch, how, top), ("admitted", "1700000001", "incomplete", "5000"))
    check_equal((stripe(0)["counter"], stripe(255)["alive"], stripe(3)["epoch"]), ("5000", epoch, epoch))
    one.comes()
    check_equal((seen()["sound"], seen()["gate"], seen()["top"]), (1, "", 5000))


@test
def a_skeleton_waits_for_the_floor_of_everybody_that_is_listed():
    empty()
    run("skeleton", ID, 1700000000, "gate-x")
    one = Service("one", listed=["lease one -", "lease two -"])
    one.pulse()
    check_equal(one.admits(), ["floors-missing", "two"])
    check_equal(seen().waiting, ["two"])


@test
def a_skeleton_is_made_anew_only_while_nobody_has_come_to_it():
    empty()
    run("skeleton", "8:mistyped", 1700000000, "gate-x")
    check_equal(run("skeleton", ID, 1600000000, "gate-y"), ["made"])
    check_equal((record()["id"], record()["gate"], record()["epoch"], stripe(7)["id"]), (ID, "gate-y", "1700000000", ID))
    Service("one").pulse()
    refused(lambda: run("skeleton", "8:mistyped", 1700000000, "gate-z"), "exists", ID)


@test
def a_skeleton_is_refused_where_any_part_of_a_store_is():
    begin()
    refused(lambda: run("skeleton", "8:other", 1, "gate-x"), "exists", ID)
    for left in (["HSET", "pawl:{3f}", "counter", 9], ["HSET", RECORD, "epoch", 9], ["SADD", RECORD + ":members", "one"]):
        empty()
        redis(*left)
        refused(lambda: run("skeleton", "8:other", 1, "gate-x"), "exists", "")


# -- recover


@test
def recovery_begins_a_new_life_above_the_floor_in_which_nothing_of_before_lives():
    one, _ = two_services()
    redis("HSET", "pawl:{3f}", "counter", 900)
    one.run = "b" * 40
    one.pulse()
    before = record()
    word, epoch, identity, gone, floor = recover(5000, epoch=1700000000)
    check_equal((word, epoch, identity, gone, floor), ("recovered", 1700000001, ID, 2, 5000))
    for i in (0, 0x3f, 255):
        got = stripe(i)
        check_equal((got["id"], got["epoch"], got["alive"], got["counter"], got["ceiling"]),
                    (ID, str(epoch), str(epoch), "5000", "5000"))
    got = record()
    check_equal((got["id"], got["run"], got["gate"], got["how"], got["open"], got["epoch"], got["alive"],
                 got["lost"]), (ID, here["run"], "", "recovered", "1", str(epoch), str(epoch), str(epoch)))
    check_equal(int(got["roll"]), int(before["roll"]) + 1)
    check_equal((redis("EXISTS", RECORD + ":members"), redis("EXISTS", RECORD + ":m:one")), (0, 0))
    check_equal((seen()["sound"], seen()["gate"]), (1, ""))


@test
def after_recovery_the_first_lease_service_joins_and_the_second_is_vouched_for():
    begin()
    recover(5000, force="force")
    one, two = Service("three", floor=0), Service("four", floor=0)
    one.comes()
    check_equal(two.pulse()[0], "pending")
    check_equal(record()["open"], "0")
    for _ in range(3):
        one.pulse()
        two.pulse()
    check_equal(two.pulse()[0], "in")
    check(int(record()["ceiling"]) > 5000, "grants are possible again")


@test
def the_epoch_rises_above_everything_that_is_known():
    for setup in (["HSET", RECORD, "epoch", 90], ["HSET", "pawl:{3f}", "epoch", -90], ["HSET", "pawl:{3f}", "alive", 90],
                  ["HSET", RECORD, "alive", 90], ["HSET", RECORD + ":m:one", "repoch", 90]):
        begin()
        stripe_do(redis, *setup)
        check_equal(recover(5000)[:2], ["recovered", 91], str(setup))
    begin()
    check_equal(recover(5000, epoch=99)[:2], ["recovered", 100])


@test
def a_floor_below_anything_that_the_store_knows_is_refused():
    for setup in (["HSET", "pawl:{3f}", "counter", 6000], ["HSET", "pawl:{3f}", "ceiling", 6000],
                  ["HSET", RECORD, "ceiling", 6000], ["HSET", RECORD + ":m:one", "floor", 6000],
                  ["HSET", RECORD + ":m:one", "rfloor", 6000], ["HSET", RECORD + ":m:one", "rpassed", 6000]):
        begin()
        stripe_do(redis, *setup)
        refused(lambda: recover(5999), "too-low", 6000)
        check_equal(recover(6000)[0], "recovered", str(setup))


@test
def a_store_in_order_is_recovered_by_force_only():
    begin()
    Service("one").comes()
    refused(lambda: recover(5000), "in-order")
    check_equal(recover(5000, force="force")[0], "recovered")


@test
def a_store_without_a_living_lease_service_is_recovered_without_force():
    begin()
    Service("one").comes()
    store.at(1000000 + FRESH_MS + 1)
    check_equal(recover(5000)[0], "recovered")


@test
def another_store_is_not_recovered():
    begin()
    refused(lambda: recover(5000, expected="8:other"), "another", ID)
    check_equal(recover(5000, expected=ID)[0], "recovered")
    empty()
    redis("HSET", "pawl:{00}", "id", "store-1", "schema", 1)
    refused(lambda: recover(5000), "another", "store-1")


@test
def missing_parts_are_made_and_numbers_that_are_none_are_replaced():
    begin()
    redis("DEL", "pawl:{3f}", RECORD)
    redis("HSET", "pawl:{40}", "counter", "many")
    redis("EXPIRE", "pawl:{41}", 1000)
    check_equal(recover(5000)[:3], ["recovered", EPOCH + 1, ID])
    check_equal((seen()["sound"], stripe(0x3f)["counter"], stripe(0x40)["counter"]), (1, "5000", "5000"))
    check_equal(redis("TTL", "pawl:{41}"), -1)


@test
def an_empty_redis_is_recovered_under_the_given_identity():
    empty()
    check_equal(recover(TOKEN_LAST, fresh="8:mine", epoch=1700000000), ["recovered", 1700000001, "8:mine", 0, TOKEN_LAST])
    check_equal((stripe(0)["id"], stripe(0)["counter"], record()["ceiling"]), ("8:mine", str(TOKEN_LAST), str(TOKEN_LAST)))
    check_equal(hash_of(RECORD + ":doubt"), {"whichever_it_was whichever_it_was": "open 1700000001"})  # who had sent what nobody knows
    check(seen()["sound"])


@test
def a_process_of_before_cannot_go_on_after_recovery():
    one, _ = two_services()
    keys = ["pawl:{3f}"]
    check_equal(store.run("shared/member/scripts/ready.lua", keys, *store.own_arguments(ID, EPOCH, 0, 0))[0], "ours")
    recover(5000, force="force")
    check_equal(store.run("shared/member/scripts/ready.lua", keys, *store.own_arguments(ID, EPOCH, 0, 0)), ["not-admitted"])
    check_equal(one.comes().epoch, EPOCH + 1, "it comes anew")


# -- forget


@test
def a_member_that_is_gone_is_forgotten_and_leaves_the_list():
    one, _ = two_services()
    store.at(1000000 + FRESH_MS + 1)
    one.pulse()
    roll = int(record()["roll"])
    check_equal(run("forget_member", "two"), ["forgotten", "lease", "pawl-lease two"])
    check_equal((hash_of(RECORD + ":m:two")["state"], int(record()["roll"])), ("forgotten", roll + 1))
    listed = one.pulse()[6]
    check_equal([line.split()[1] for line in listed], ["one"])
    refused(lambda: run("forget_member", "two"), "already")


@test
def the_floor_of_a_forgotten_lease_service_is_not_waited_for():
    one, _ = two_services()
    store.at(1000000 + FRESH_MS + 1)
    one.pulse()
    run("forget_member", "two")
    one.pulse()
    one.run = "b" * 40
    check_equal(one.pulse()[0], "gated")
    check_equal(seen().waiting, [])
    check_equal(one.admits()[0], "admitted")


@test
def a_forgotten_process_that_comes_back_is_not_let_in():
    one, two = two_services()
    store.at(1000000 + FRESH_MS + 1)
    one.pulse()
    run("forget_member", "two")
    check_equal(two.pulse(), ["forgotten"])


@test
def who_pulsed_lately_is_not_forgotten():
    two_services()
    store.at(1000000 + FRESH_MS)
    refused(lambda: run("forget_member", "two"), "fresh", FRESH_MS)


@test
def nobody_is_forgotten_while_the_store_is_gated():
    one, _ = two_services()
    one.run = "b" * 40
    one.pulse()
    store.at(1000000 + FRESH_MS + 1)
    refused(lambda: run("forget_member", "two"), "gated")
    begin()
    redis("HSET", RECORD, "run", "b" * 40)
    store.at(1000000 + FRESH_MS + 1)
    refused(lambda: run("forget_member", "one"), "gated")
    begin()
    redis("DEL", "pawl:{3f}")
    refused(lambda: run("forget_member", "one"), "gated")


@test
def the_last_lease_service_is_not_forgotten():
    two_services()
    store.at(1000000 + FRESH_MS + 1)
    refused(lambda: run("forget_member", "two"), "last")
    begin()
    refused(lambda: run("forget_member", "one"), "last")


@test
def a_lease_service_is_not_forgotten_while_the_floor_of_the_living_one_is_too_low():
    one, _ = two_services()
    store.at(1000000 + FRESH_MS + 1)
    one.pulse()
    redis("HSET", RECORD + ":m:one", "floor", BLOCK - 1)
    refused(lambda: run("forget_member", "two"), "last")
    redis("HSET", RECORD + ":m:one", "floor", BLOCK)
    check_equal(run("forget_member", "two")[0], "forgotten")


@test
def a_gateway_is_forgotten_even_with_no_lease_service_alive():
    begin()
    one, gateway = Service("one").comes(), Service("gate", "gateway")
    gateway.pulse()
    one.pulse()
    one.pulse()
    store.at(1000000 + FRESH_MS + 1)
    check_equal(run("forget_member", "gate"), ["forgotten", "gateway", "pawl-gateway gate"])


@test
def a_newcomer_that_never_came_in_is_forgotten_only_while_another_is_in():
    begin()
    Service("one").pulse()
    Service("late").pulse()
    check_equal(seen().members["late"]["state"], "pending")
    store.at(1000000 + FRESH_MS + 1)
    store.redis("HSET", RECORD + ":m:one", "state", "out")
    check_equal(run("forget_member", "late"), ["last"])
    store.redis("HSET", RECORD + ":m:one", "state", "in")
    check_equal(run("forget_member", "late")[0], "forgotten")


@test
def forgetting_begins_a_new_epoch_in_which_every_hold_lives_on():
    begin()
    one = Service("one")
    one.pulse()
    Service("gate", "gateway").pulse()
    epoch, alive = int(record()["epoch"]), record()["alive"]
    store.at(1000000 + FRESH_MS + 1)
    check_equal(run("forget_member", "gate")[0], "forgotten")
    check_equal((int(record()["epoch"]), record()["alive"], stripe(7)["epoch"]),
                (epoch + 1, alive, str(epoch + 1)))
    check_equal((hash_of(RECORD + ":m:one")["epoch"], one.pulse()[0]), (str(epoch + 1), "in"))


@test
def whoever_is_not_a_member_is_not_forgotten():
    two_services()
    refused(lambda: run("forget_member", "three"), "unknown")
    empty()
    refused(lambda: run("forget_member", "one"), "empty")
    redis("HSET", "pawl:{00}", "id", "store-1", "schema", 1)
    refused(lambda: run("forget_member", "one"), "another", "store-1")


if __name__ == "__main__":
    main()
