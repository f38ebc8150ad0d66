#!/usr/bin/python3
"""The scripts of pawl store, together with those by which services join and admit."""

from lua_test import EPOCH, IDENTITY, MEMBERS, RECORD, TOKEN_LAST, RedisError, check, check_equal, main, record_packed, stripe_do, stripe_fields, test, text
from members import Life, Member, all_in

LIFE = Life()
NOW, BLOCK, FRESH_MS, OTHER_RUN = 1000000, 1000, 10000, "b" * 40
ONE, TWO = (f"lease {name} -" for name in ("one", "two"))  # lines of a state directory's list


def redis(*words):
    return LIFE.redis(*words)


def run(script, *args):
    return LIFE.run(f"api/cli/scripts/{script}.lua", [RECORD], *args)


def hash_of(key):
    flat = text(redis("HGETALL", key))
    return dict(zip(flat[::2], flat[1::2]))


def stripe(i, *fields):
    found = stripe_fields(hash_of(f"pawl:{{{i:02x}}}"))
    return tuple(found[field] for field in fields)


def lease(name="job", **parts):
    """One that nobody holds, in the stripe 3f whatever its name."""
    known = {"s": "released", "t": 0, "e": EPOCH, "h": "", "i": "", "d": 0} | parts
    redis("HSET", "pawl:{3f}", f"l:{name}", record_packed(known))


def empty():
    redis("FLUSHALL")
    LIFE.at(NOW)
    LIFE.run_id = redis("INFO", "server").decode().split("run_id:")[1].split("\r\n")[0]


def begin(floor=BLOCK):
    """A store of which member one knows."""
    empty()
    check_equal(LIFE.init(run=LIFE.run_id, member="one", floor=floor), ["created"])


def service(name, role="lease", floor=BLOCK, listed=()):
    one = Member(LIFE, name, role, BLOCK)
    one.disk.floor, one.disk.list = floor, list(listed)
    return one


def two_services(*more):
    """Both are in, and so are these."""
    begin()
    members = service("one"), service("two"), *more
    all_in(members[0])
    all_in(*members)
    return members


def silent(*but):
    """All have been silent for so long that they may be forgotten, but these."""
    LIFE.at(NOW + FRESH_MS + 1)
    for one in but:
        one.pulse()


def gated(*members):
    """Redis is another process, and these have reported to it."""
    LIFE.run_id = OTHER_RUN
    check_equal([one.pulse() for one in members], ["gated"] * len(members))


class Seen:
    """What status.lua says; it changes nothing."""

    def __init__(self):
        before = LIFE.dump()
        word, facts, members, self.asked, self.waiting, self.doubts, _, _ = run("status")
        check_equal((word, LIFE.dump()), ("status", before))
        self.facts = dict(zip(facts[::2], facts[1::2]))
        self.members = {one["id"]: one for one in (dict(zip(one[::2], one[1::2])) for one in members)}


def seen(*names):
    """Some of the facts."""
    facts = Seen().facts
    return tuple(facts[name] for name in names)


def scanned(how="look"):
    """All pages: (highest token, its lease, highest epoch, keys with a TTL, wrong key)."""
    cursor, top, lease, epoch, ending, wrong = "0", 0, "", 0, 0, ""
    while True:
        reply = LIFE.run("api/cli/scripts/scan.lua", [], cursor, how)
        check_equal(reply[0], "page")
        cursor = reply[1]
        if reply[2] > top:
            top, lease = reply[2], reply[3]
        epoch, ending, wrong = max(epoch, reply[4]), ending + reply[5], reply[7] or wrong
        if cursor == "0":
            return top, lease, epoch, ending, wrong


def recover(floor, expected="", fresh="11:fresh-aaaaaaaaaaaaaaaaaa", epoch=0, force=""):
    return run("recover", expected, fresh, floor, epoch, force)


def skeleton(identity=IDENTITY, epoch=1700000000, gate="gate-x"):
    return run("skeleton", identity, epoch, gate)


def forget(name):
    return run("forget_member", name)


def refused(action, *wanted, what=""):
    """It says so and changes nothing."""
    before = LIFE.dump()
    check_equal((action(), LIFE.dump()), (list(wanted), before), what)


# -- status

@test
def an_empty_redis_is_told_as_empty_and_a_store_of_another_schema_as_another():
    empty()
    check_equal(seen("kind", "identity", "redis_run"), ("empty", "", LIFE.run_and_stream()))
    check_equal(seen("redis_role", "redis_policy", "redis_aof"), ("master", "noeviction", "0"))
    check_equal((Seen().members, Seen().asked, Seen().waiting), ({}, 0, []))
    for left, identity in ((["id", "store-1", "schema", 1], "store-1"), (["counter", 5], "")):
        empty()
        redis("HSET", "pawl:{00}", *left)
        check_equal(seen("kind", "identity"), ("another", identity))


@test
def a_store_in_order_is_told_with_its_members():
    two_services(service("gate", "gateway"))
    redis("HSET", "pawl:{3f}", "counter", 12)
    check_equal(seen("kind", "identity", "sound", "gate", "how"), ("store", IDENTITY, 1, "", "initialised"))
    check_equal(seen("epoch", "run", "top", "top_stripe"), (EPOCH, LIFE.run_and_stream(), 12, "pawl:{3f}"))
    check_equal(seen("ceiling", "clock", "shut", "absent", "record"), (BLOCK, 0, 0, 0, 1))
    members = Seen().members
    check_equal({name: one["role"] for name, one in members.items()}, {"one": "lease", "two": "lease", "gate": "gateway"})
    check_equal({(one["state"], one["live"], one["age"]) for one in members.values()}, {("in", 1, 0)})
    check_equal((members["one"]["floor"], members["one"]["who"]), (BLOCK, "pawl-lease one"))
    silent()
    check_equal((Seen().members["one"]["live"], Seen().members["one"]["age"]), (0, FRESH_MS + 1))


@test
def a_gated_store_is_told_with_those_that_it_waits_for_as_the_admission_does():
    one, two = two_services()
    gated(one)
    check_equal(seen("gate", "why", "shut"), (one.gate, "restarted", 256))
    check_equal((Seen().asked, Seen().waiting, one.admit()), (1, ["two"], ["floors-missing", "two"]))
    check_equal([Seen().members[name]["reported"] for name in ("one", "two")], [1, 0])
    gated(two)
    check_equal((Seen().asked, Seen().waiting), (2, []))
    silent()
    check_equal(Seen().asked, 0, "nobody is there who could admit")


@test
def a_lease_service_whose_list_is_empty_may_not_admit():
    begin()
    new = service("new")
    gated(new)
    check_equal((Seen().asked, Seen().waiting, new.admit()), (1, ["one"], ["floors-missing", "one"]))
    redis("DEL", RECORD + ":m:one")
    redis("SREM", MEMBERS, "one")
    check_equal((Seen().asked, Seen().waiting, new.admit()), (1, [], ["floors-missing", "unknown"]))
    gated(service("one", listed=[ONE, TWO]))
    check_equal((Seen().asked, Seen().waiting), (1, ["two"]), "the one that waits for somebody is told")


@test
def damage_is_told_with_what_is_missing():
    for damage, wanted in ((["DEL", "pawl:{3f}", "pawl:{40}"], {"sound": 0, "absent": 2, "first_absent": "pawl:{3f}"}),
                           (["DEL", RECORD], {"kind": "store", "identity": IDENTITY, "sound": 0, "record": 0}),
                           (["HDEL", "pawl:{ff}", "counter"], {"sound": 0, "absent": 0}),
                           (["HSET", "pawl:{3f}", "epoch", -EPOCH], {"sound": 0, "shut": 1})):
        begin()
        stripe_do(redis, *damage)
        check_equal(seen(*wanted), tuple(wanted.values()), f"{damage}")


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
    for key in ("pawl:{07}", RECORD, MEMBERS, "pawl:{3f}:k:job/id"):
        redis("EXPIRE", key, 1000)
    redis("SET", "foreign", 1, "EX", 1000)
    check_equal([scanned(how)[3] for how in ("look", "look", "persist", "look")], [4, 4, 4, 0], "a look changes nothing")
    check(redis("TTL", "foreign") > 0, "what is not ours is left alone")


@test
def a_key_of_the_wrong_type_is_named():
    of_a_lease = [f"pawl:{{3f}}:{letter}:job" for letter in "xnqwkefdsy"]
    for key in ("pawl:{3f}", RECORD, MEMBERS, RECORD + ":alarm", "pawl:{3f}:due", "pawl:{3f}:w:job:gone", *of_a_lease):
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
    check_equal(skeleton(), ["made"])
    check_equal((LIFE.record("gate", "why", "epoch"), stripe(9, "epoch")), (["gate-x", "empty", "1700000000"], ("-1700000000",)))
    one = service("one", floor=5000, listed=[ONE])
    check_equal((one.pulse(), LIFE.record("gate")), ("gated", "gate-x"))
    word, epoch, how, top, _ = one.admit()
    check_equal((word, epoch, how, top), ("admitted", "1700000001", "incomplete", "5000"))
    check_equal((stripe(0, "counter"), stripe(255, "alive"), stripe(3, "epoch")), (("5000",), (epoch,), (epoch,)))
    all_in(one)
    check_equal(seen("sound", "gate", "top"), (1, "", 5000))


@test
def a_skeleton_is_made_anew_only_while_nobody_has_come_to_it():
    empty()
    skeleton("11:mistyped")
    check_equal(skeleton(epoch=1600000000, gate="gate-y"), ["made"])
    check_equal((LIFE.record("id", "gate", "epoch"), stripe(7, "id")), ([IDENTITY, "gate-y", "1700000000"], (IDENTITY,)))
    service("one").pulse()
    refused(lambda: skeleton("11:mistyped", gate="gate-z"), "exists", IDENTITY)


@test
def a_skeleton_is_refused_where_any_part_of_a_store_is():
    begin()
    refused(lambda: skeleton("11:other", 1), "exists", IDENTITY)
    for left in (["HSET", "pawl:{3f}", "counter", 9], ["HSET", RECORD, "epoch", 9], ["SADD", MEMBERS, "one"]):
        empty()
        redis(*left)
        refused(lambda: skeleton("11:other", 1), "exists", "")


@test
def of_a_node_of_a_quorum_no_store_is_made():
    empty()
    redis("HSET", "pawl:{node}", "id", "A" * 24 + "/1")
    refused(lambda: skeleton("11:" + "A" * 24, 1), "exists", "A" * 24 + "/1")
    for expected in ("", "11:" + "A" * 24):
        refused(lambda expected=expected: recover(5000, expected=expected, fresh="11:" + "A" * 24), "another", "A" * 24 + "/1")
    check_equal(seen("kind", "identity"), ("another", "A" * 24 + "/1"))
    redis("DEL", "pawl:{node}")


# -- recover

@test
def recovery_begins_a_new_life_above_the_floor_in_which_nothing_of_before_lives():
    one, _ = two_services()
    redis("HSET", "pawl:{3f}", "counter", 900)
    run_of_redis = LIFE.run_and_stream()
    gated(one)
    roll = int(LIFE.record("roll"))
    check_equal(recover(5000, epoch=1700000000), ["recovered", 1700000001, IDENTITY, 2, 5000])
    epoch = "1700000001"
    for i in (0, 0x3f, 255):
        check_equal(stripe(i, "id", "epoch", "alive", "counter", "ceiling"), (IDENTITY, epoch, epoch, "5000", "5000"))
    check_equal(LIFE.record("id", "run", "gate", "how", "open", "epoch", "alive", "lost", "roll"),
                [IDENTITY, run_of_redis, "", "recovered", "1", epoch, epoch, epoch, str(roll + 1)])
    check_equal(redis("EXISTS", MEMBERS, RECORD + ":m:one"), 0)
    check_equal(seen("sound", "gate"), (1, ""))


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
def a_store_in_order_is_recovered_by_force_only_or_when_no_lease_service_lives():
    for is_silent in (False, True):
        begin()
        all_in(service("one"))
        if is_silent:
            silent()
        else:
            refused(lambda: recover(5000), "in-order")
        check_equal(recover(5000, force="" if is_silent else "force")[0], "recovered")


@test
def another_store_is_not_recovered():
    begin()
    refused(lambda: recover(5000, expected="11:other"), "another", IDENTITY)
    check_equal(recover(5000, expected=IDENTITY)[0], "recovered")
    empty()
    redis("HSET", "pawl:{00}", "id", "store-1", "schema", 1)
    refused(lambda: recover(5000), "another", "store-1")


@test
def missing_parts_are_made_and_numbers_that_are_none_are_replaced():
    begin()
    redis("DEL", "pawl:{3f}", RECORD)
    redis("HSET", "pawl:{40}", "counter", "many")
    redis("EXPIRE", "pawl:{41}", 1000)
    check_equal(recover(5000)[:3], ["recovered", EPOCH + 1, IDENTITY])
    check_equal((seen("sound"), stripe(0x3f, "counter"), stripe(0x40, "counter")), ((1,), ("5000",), ("5000",)))
    check_equal(redis("TTL", "pawl:{41}"), -1)


@test
def an_empty_redis_is_recovered_under_the_given_identity():
    empty()
    check_equal(recover(TOKEN_LAST, fresh="11:mine", epoch=1700000000), ["recovered", 1700000001, "11:mine", 0, TOKEN_LAST])
    check_equal((stripe(0, "id", "counter"), LIFE.record("ceiling")), (("11:mine", str(TOKEN_LAST)), str(TOKEN_LAST)))
    check_equal(hash_of(RECORD + ":doubt"), {"whichever_it_was whichever_it_was": "open 1700000001"})  # who had sent what nobody knows
    check(seen("sound")[0])


# -- forget

@test
def a_member_that_is_gone_is_forgotten_and_leaves_the_list():
    one, two = two_services()
    silent(one)
    roll = int(LIFE.record("roll"))
    check_equal(forget("two"), ["forgotten", "lease", "pawl-lease two"])
    check_equal((LIFE.state("two"), LIFE.record("roll")), ("forgotten", str(roll + 1)))
    one.pulse()
    check_equal(one.disk.lists(), ["one"])
    refused(lambda: forget("two"), "already")
    check_equal(two.ask(), ["forgotten"], "it is not let in again")


@test
def who_may_be_needed_is_not_forgotten():
    floor = ["HSET", RECORD + ":m:one", "floor"]
    for make, name, *wanted in (
            (lambda: [gated(two_services()[0]), silent()], "two", "gated"),
            (lambda: [begin(), redis("HSET", RECORD, "run", OTHER_RUN), silent()], "one", "gated"),
            (lambda: [begin(), redis("DEL", "pawl:{3f}")], "one", "gated"),
            (lambda: [silent(two_services()[0]), redis(*floor, BLOCK - 1)], "two", "last"),
            (lambda: [two_services(), silent()], "two", "last"), (begin, "one", "last"),
            (lambda: [two_services(), LIFE.at(NOW + FRESH_MS)], "two", "fresh", FRESH_MS), (two_services, "three", "unknown"),
            (empty, "one", "empty"),
            (lambda: [empty(), redis("HSET", "pawl:{00}", "id", "store-1", "schema", 1)], "one", "another", "store-1")):
        make()
        refused(lambda: forget(name), *wanted, what=f"{name}: {wanted}")  # noqa: B023 - called at once
    silent(two_services()[0])
    redis(*floor, BLOCK)
    check_equal(forget("two")[0], "forgotten")


@test
def a_gateway_is_forgotten_even_with_no_lease_service_alive_and_every_hold_lives_on_in_a_new_epoch():
    begin()
    one, gateway = service("one"), service("gate", "gateway")
    all_in(one, gateway)
    epoch, alive = int(LIFE.record("epoch")), LIFE.record("alive")
    silent()
    for state, wanted in (("s", ["open", 1]), ("q", ["open", 1]), ("u", None), ("d", None)):
        text = f"job {1:015d} {1:015d} {1:016d} {state} o %s life-1 w0.1 h 1{' 0' if state == 'd' else ''}"
        redis("ZADD", "pawl:{3f}:i", 0, text % "gate", 0, text % "gate-b")
        if wanted:
            refused(lambda: forget("gate"), *wanted, what=state)
            redis("DEL", "pawl:{3f}:i")
    check_equal(forget("gate"), ["forgotten", "gateway", "pawl-gateway gate"])
    check_equal((LIFE.record("epoch", "alive"), stripe(7, "epoch")), ([str(epoch + 1), alive], (str(epoch + 1),)))
    check_equal((LIFE.member("one", "epoch"), one.pulse()), (str(epoch + 1), "in"))


@test
def a_gateway_whose_open_writes_cannot_be_read_is_not_forgotten():
    begin()
    all_in(service("one"), service("gate", "gateway"))
    silent()
    redis("ZADD", "pawl:{3f}:i", 0, f"job {1:015d} {1:015d} {1:016d} s o gate life-1 w0.1 h 1")
    redis("ACL", "SETUSER", "default", "-zrange")
    before = LIFE.record("epoch", "roll")
    try:
        forget("gate")
        check(False, "it was forgotten")
    except RedisError:
        check_equal((LIFE.record("epoch", "roll"), LIFE.member("gate", "state")), (before, "in"))
    finally:
        redis("ACL", "SETUSER", "default", "+@all")
    check_equal(forget("gate"), ["open", 1])


@test
def a_newcomer_that_never_came_in_is_forgotten_only_while_another_is_in():
    begin()
    for name in ("one", "late"):
        service(name).pulse()
    check_equal(Seen().members["late"]["state"], "pending")
    silent()
    for state, word in (("out", "last"), ("in", "forgotten")):
        redis("HSET", RECORD + ":m:one", "state", state)
        check_equal(forget("late")[0], word)


main()
