#!/usr/bin/python3
"""Every reply of every script in lease/scripts."""

import random

from intents import same_stripe
from lua_test import EMPTY, EPOCH, FIRST, IDENTITY, MEMBERS, RECORD, REMEMBER_MS, ROOT, STRIPE_FIELDS, STRIPES, TOKEN_LAST, \
    Holder, Lease, Resource, Store, check, check_equal, main, record_packed, stripe_do, test, text
from several import Session

STORE = Store()
NOW = 1000000


def begin(name="orders:42"):
    STORE.begin(NOW)
    return Lease(STORE, name)


# -- the store itself

@test
def init_store_makes_256_whole_stripes_the_record_and_the_first_member():
    STORE.redis("FLUSHALL")
    STORE.at(NOW)
    check_equal(STORE.init(floor=500), ["created"])
    epoch = str(EPOCH)
    wanted = {stripe: {"id": IDENTITY, "epoch": epoch, "seq": "0", "counter": "0", "ceiling": "500", "clock": "0",
                       "alive": epoch} for stripe in STRIPES}
    wanted[RECORD] = {"id": IDENTITY, "epoch": epoch, "run": f"run-1 {STORE.replid()}", "roll": "1", "time": str(NOW), "alive": epoch,
                      "clock": "0", "ceiling": "500", "gate": "", "gaterun": "", "why": "", "open": "0",
                      "how": "initialised", "registrars": "0", "majority": ""}
    wanted[MEMBERS] = {FIRST}
    wanted[f"{RECORD}:m:{FIRST}"] = {
        "role": "lease", "incarnation": "-" * 16, "epoch": epoch, "state": "out", "beats": "0", "floor": "500",
        "roll": "1", "since": "1", "at": "0", "who": "pawl-lease --init-store"}
    check_equal(STORE.dump(), wanted)


@test
def init_store_changes_nothing_where_there_is_a_store_or_a_part_of_one():
    begin()
    check_equal(STORE.unchanged_by(lambda: STORE.init("11:other", 9)), ["exists", IDENTITY])
    for key, field in (("pawl:{ff}", "seq"), ("pawl:{80}", "epoch"), (RECORD, "roll"), ("pawl:{node}", "id")):
        STORE.redis("FLUSHALL")
        STORE.at(NOW)
        stripe_do(STORE.redis, "HSET", key, field, 5)
        check_equal(STORE.unchanged_by(lambda: STORE.init("11:other", 9)), ["exists", ""], key)
    STORE.redis("FLUSHALL")
    STORE.at(NOW)
    STORE.redis("HSET", "pawl:{81}", "id", "7:as-it-was-before")
    check_equal(STORE.unchanged_by(lambda: STORE.init("11:other", 9)), ["exists", "7:as-it-was-before"])
    STORE.redis("FLUSHALL")
    STORE.at(NOW)
    STORE.redis("SADD", MEMBERS, "somebody")
    check_equal(STORE.unchanged_by(lambda: STORE.init("11:other", 9)), ["exists", ""], MEMBERS)


@test
def every_script_refuses_a_stripe_whose_numbers_are_none():
    numbers = [field for field in STRIPE_FIELDS if field != "id"]
    for field, value in [(field, value) for field in numbers for value in ("", "junk")] + [("counter", "-1")]:
        lease = begin()
        lease.acquire(), lease.acquire()  # in both releases
        sound = STORE.redis("HMGET", lease.stripe, "life", "seq", "counter")
        stripe_do(STORE.redis, "HSET", lease.stripe, field, value)
        before = STORE.dump()
        check_equal([lease.acquire(), lease.acquire()], [["not-ours"]] * 2, f"{field} is {value!r}")
        check_equal(STORE.dump(), before, f"{field} is {value!r}")
        STORE.redis("HSET", lease.stripe, "life", sound[0], "seq", sound[1], "counter", sound[2])
        check_equal([lease.acquire()[0], lease.acquire()[0]], ["replayed"] * 2, f"{field} was {value!r}")


# -- acquire

@test
def acquire_grants_a_free_lease_and_keeps_what_it_needs():
    lease = begin()
    reply, changes = STORE.changed_by(lambda: lease.acquire(meta='{"a":1}'))
    check_equal(reply, ["granted", 1, 1, EPOCH, 1000, 1000])
    check_equal(changes[lease.key][1], {
        "s": "held", "t": "1", "e": str(EPOCH), "h": "hold-aaaaaaa", "i": "id-a", "d": str(NOW + 1000), "o": "ada",
        "l": "1000", "g": str(NOW), "n": "1", "m": '{"a":1}', "E": "1.1"})
    check_equal(changes[lease.due][1], {lease.name: NOW + 1000})
    check_equal(changes[lease.stripe][1]["counter"], "1")
    check_equal(lease.run("history", "grant")[3], [f"{EPOCH}.1.1\tgranted\t1\tada\t{NOW}\t\x1ft1000"])
    check_equal(sorted(changes), sorted([lease.stripe, lease.due, lease.key]), "a list would cost as much as the lease")
    lease = begin()
    tokens = []
    for name in sorted(same_stripe(lease.name, 5)):
        one = Lease(STORE, name)
        tokens.append(one.acquire("id-" + name)[2])
        one.release("id-" + name)
        tokens.append(one.acquire("id2-" + name)[2])
    check_equal(tokens, list(range(1, 11)))


@test
def a_lease_that_is_held_is_its_holders_until_the_deadline_and_then_anybodys():
    lease = begin()
    lease.acquire(meta='{"a":1}')
    STORE.at(NOW + 400)
    replay = STORE.unchanged_by(lambda: lease.acquire(hold="hold-bbbbbbb", holder="other", ttl=99999, meta="{}"))
    check_equal(replay, ["replayed", 1, 1, EPOCH, "hold-aaaaaaa", "ada", 1000, 600, 1, '{"a":1}', "exclusive"])
    STORE.at(NOW + 999)
    check_equal(STORE.unchanged_by(lambda: lease.acquire("id-b")), ["held", 1, 1, "ada", 1])
    check_equal(lease.look()[2], "held")
    STORE.at(NOW + 1000)
    check_equal(lease.acquire("id-b", "hold-bbbbbbb", "bob"), ["granted", 2, 2, EPOCH, 1000, 1000])
    check_equal(STORE.dump()[lease.key], {
        "s": "held", "t": "2", "e": str(EPOCH), "h": "hold-bbbbbbb", "i": "id-b", "d": str(NOW + 2000),
        "D": str(NOW + 1000), "o": "bob", "l": "1000", "g": str(NOW + 1000), "n": "1", "E": "2.2"}, "nothing of before")
    STORE.at(NOW + 2000)
    check_equal(lease.look(), ["looked", 3, "free", 2, EPOCH, "", 0, []])


@test
def the_last_token_is_exact_and_no_token_comes_after_it():
    lease = begin()
    stripe_do(STORE.redis, "HSET", lease.stripe, "counter", TOKEN_LAST - 1, "ceiling", TOKEN_LAST + 9)
    check_equal(lease.acquire(), ["granted", 1, TOKEN_LAST, EPOCH, 1000, 1000])
    check_equal((lease.field("t"), lease.look()[3]), (str(TOKEN_LAST), TOKEN_LAST))
    check_equal(lease.acquire(may="hold-off")[0], "replayed", "also while grants are held off")
    lease.release()
    check_equal(STORE.unchanged_by(lambda: lease.acquire("id-b")), ["exhausted", 2])
    other = Lease(STORE, same_stripe(lease.name, 1)[0])
    check_equal(other.acquire("id-c"), ["exhausted", 2])
    check_equal(other.record(), {}, "a record was left behind")


@test
def a_grant_that_is_held_off_changes_nothing_but_what_had_expired():
    lease = begin()
    check_equal(STORE.unchanged_by(lambda: lease.acquire(may="hold-off")), ["held-off", 0])
    lease.acquire()
    check_equal(lease.acquire("id-b", may="hold-off")[0], "held")
    STORE.at(NOW + 1000)
    check_equal(lease.acquire("id-b", may="hold-off"), ["held-off", 2])
    check_equal(lease.field("s"), "expired")


@test
def no_token_above_the_ceiling_is_granted():
    lease = begin()
    stripe_do(STORE.redis, "HSET", lease.stripe, "ceiling", 1)
    check_equal(lease.acquire(), ["granted", 1, 1, EPOCH, 1000, 1000])
    check_equal(lease.acquire()[0], "replayed")
    check_equal(lease.acquire("id-b")[0], "held")
    STORE.at(NOW + 1000)
    reply, changes = STORE.changed_by(lambda: lease.acquire("id-b"))
    check_equal((reply, sorted(changes)), (["ceiling", 2], sorted([lease.key, lease.history])))
    check_equal(STORE.unchanged_by(lambda: lease.acquire("id-b", may="hold-off")), ["held-off", 2])
    STORE.redis("HSET", lease.stripe, "counter", 5)  # lifted, before a floor above it was recorded
    check_equal(STORE.unchanged_by(lambda: lease.acquire("id-b")), ["ceiling", 2])
    stripe_do(STORE.redis, "HSET", lease.stripe, "ceiling", 6)
    check_equal([lease.acquire("id-b")[2], lease.acquire("id-b")[0], lease.acquire("id-c")[0]], [6, "replayed", "held"])


# -- the clock

@test
def what_was_told_to_be_over_never_lives_again_by_the_clock_or_its_offset():
    lease = begin()
    for tell in (lease.look, lambda: lease.renew(), lambda: lease.release(), lambda: lease.acquire("id-a"), lease.sweep,
                 lease.list, lambda: lease.acquire("id-z", may="hold-off")):
        lease = begin()
        lease.acquire()
        STORE.at(NOW + 1000)
        tell()
        STORE.at(NOW)
        check_equal(lease.look()[2], "free")
        check_equal(lease.renew()[::2], ["lost", "expired"])
    lease = begin()
    lease.acquire()
    stripe_do(STORE.redis, "HSET", lease.stripe, "clock", 999)
    check_equal(lease.look()[2], "held")
    stripe_do(STORE.redis, "HSET", lease.stripe, "clock", 1000)
    check_equal(lease.look()[2], "free")
    lease = begin()
    stripe_do(STORE.redis, "HSET", lease.stripe, "clock", -500)
    lease.acquire()
    check_equal(lease.field("d"), str(NOW + 500))


@test
def the_real_clock_is_redis_time_in_milliseconds():
    begin()
    call = (ROOT / "shared/member/scripts/lib/call.lua").read_text(encoding="utf-8")
    before = STORE.redis("TIME")
    clock = call[call.index("local function clock_ms()"):]
    told = int(STORE.redis("EVAL", clock + "\nreturn string.format('%.0f', clock_ms())", 0))
    after = STORE.redis("TIME")
    check(int(before[0]) * 1000 + int(before[1]) // 1000 <= told <= int(after[0]) * 1000 + int(after[1]) // 1000,
          f"{before} {told} {after}")


# -- renew

@test
def renew_and_release_by_anyone_but_the_holder_change_nothing():
    for word in ("renew", "release"):
        lease = begin()
        deed = getattr(lease, word)
        check_equal(STORE.unchanged_by(deed), ["lost", 0, "unknown"], word)
        lease.acquire()
        check_equal(STORE.unchanged_by(lambda: deed("id-b")), ["lost", 1, "unknown"], word)
        check_equal(STORE.unchanged_by(lambda: deed(hold="hold-bbbbbbb")), ["lost", 1, "unknown"], word)
        check_equal((lease.look()[2], deed(hold="hold-aaaaaaa")[0]), ("held", {"renew": "renewed", "release": "released"}[word]))


# -- look and list

def held_by(lease):
    """Of each that holds: name of the hold, session, ttl, ms since the last renewal, for how long it waited."""
    return [one[7:] for one in lease.run("look", "grant")[7]]


@test
def look_tells_how_each_hold_is_kept():
    lease = begin()
    session = Session(STORE)
    session.open(ttl=4000)
    lease.acquire("id-a", "hold-aaaaaaa", ttl=1000, mode="shared")
    STORE.at(NOW + 300)
    lease.acquire("id-b", "hold-bbbbbbb", "bob", ttl=9, mode="shared", **session.terms())
    check_equal(held_by(lease), [["hold-aaaaaaa", "", 1000, 300, 0], ["hold-bbbbbbb", session.id, 4000, 0, 0]])
    STORE.at(NOW + 400)
    lease.renew("id-a", 2000)
    session.renew()
    STORE.at(NOW + 450)
    check_equal(held_by(lease), [["hold-aaaaaaa", "", 2000, 50, 0], ["hold-bbbbbbb", session.id, 4000, 50, 0]])
    lease = begin()
    desk = "pawl:{00}:d:desk-1"
    STORE.redis("HSET", desk, "at", NOW)
    lease.acquire()
    lease.acquire("id-b", "hold-bbbbbbb", "bob", ttl=9000, desk=desk, wid="1")
    STORE.at(NOW + 100)
    lease.release()
    STORE.at(NOW + 110)
    check_equal(held_by(lease), [["hold-bbbbbbb", "", 9000, 10, 100]], "for 3 s, until it is claimed")
    lease.run("claim", "id-b", "hold-bbbbbbb", "grant")
    STORE.at(NOW + 150)
    check_equal(held_by(lease), [["hold-bbbbbbb", "", 9000, 40, 100]])


@test
def look_and_list_tell_of_delay_permits_and_refusals():
    lease = begin()
    lease.acquire(ttl=100, mode="permits", permits=3, delay=5000)
    check_equal(lease.run("look", "grant")[8:12], [0, 3, 0, NOW])
    Resource(lease).check(Holder(99))
    check_equal(lease.run("look", "grant")[8:12], [0, 3, 1, NOW])
    STORE.at(NOW + 200)
    wanted = ["delayed", 1, EPOCH, "", 0, [], 4900]
    check_equal(lease.list(state="delayed")[3][0][1:8], wanted, "before it was noted")
    check_equal(lease.run("look", "grant")[2:9], wanted)
    check_equal(lease.list(state="delayed")[3][0][1:8], wanted)


@test
def list_finds_those_that_one_holds():
    lease = begin()
    names = sorted(same_stripe(lease.name, 4))
    for name, holder in zip(names, ("ada", "bob", "ada")):
        Lease(STORE, name).acquire("id-" + name, holder=holder)
    shared = Lease(STORE, names[3])
    for i in range(40):
        shared.acquire(f"id-{i}", f"hold-{i:07}", "bob" if i == 39 else f"eve-{i}", ttl=1000 + i, mode="shared")
    listed = lambda holder: [item[0] for item in STORE.unchanged_by(lambda: lease.list(holder=holder))[3]]
    check_equal([listed(holder) for holder in ("ada", "bob", "zoe", "")], [names[::2], names[1::2], [], names])
    check_equal([len(lease.list(holder=holder)[3][-1][6]) for holder in ("bob", "")], [16, 16])
    check_equal(lease.list(holder="ada", limit=1)[2], names[0])


@test
def list_gives_the_held_leases_of_a_stripe_in_the_order_of_their_names():
    lease = begin()
    names = sorted(same_stripe(lease.name, 6))
    for i, name in enumerate(reversed(names)):
        Lease(STORE, name).acquire("id-" + name, ttl=500 + 100 * i)
    Lease(STORE, names[0]).release("id-" + names[0])
    STORE.at(NOW + 500)  # the last name's ttl was the shortest
    reply, changes = STORE.changed_by(lease.list)
    check_equal([reply[0], reply[2]], ["listed", ""])
    check_equal([item[0] for item in reply[3]], names[1:5])
    hold = [5, "ada", 400, 500, 1, "", "", "hold-aaaaaaa", "", 900, 500, 0]
    check_equal(reply[3][0], [names[1], "held", 5, EPOCH, "exclusive", 0, [hold], 0, 0, 0])
    check_equal(list(changes), [f"{lease.stripe}:l:{names[5]}"])
    check_equal([STORE.dump()[f"{lease.stripe}:l:{names[5]}"][field] for field in "sv"], ["held", "expired"], "void, not freed")


@test
def list_looks_at_a_bounded_number_of_records_in_one_step():
    lease = begin()
    STORE.redis("EVAL", """for i = 1, 1500 do
        local name = string.format('x%04d', i)
        redis.call('HSET', KEYS[1], 'l:' .. name, ARGV[1])
        redis.call('ZADD', KEYS[2], 9999999, name) end""", 2, lease.stripe, lease.due,
                record_packed(dict(zip("stehid", ["released", 0, EPOCH, "h", "i", 9999999]))))
    reply = lease.list()
    check_equal(reply[2:], ["x0096", []])
    check_equal(lease.list(after="x0096")[2:], ["x0192", []])
    check_equal(lease.list(after="x1450")[2:], ["", []])


@test
def of_many_in_a_stripe_each_that_stays_is_listed_once_in_the_order_of_names_however_long_these_are():
    lease, chosen = begin(), random.Random(7)
    names = {"n" + "".join(chosen.choices("0123456789", k=chosen.choice((5, 30, 127)))) for _ in range(2500)}
    lease.acquire("id-a", ttl=100000)
    STORE.redis("EVAL", """local text = redis.call('HGET', KEYS[1], 'l:' .. ARGV[1])
        for i = 2, #ARGV do
            redis.call('HSET', KEYS[1], 'l:' .. ARGV[i], text)
            redis.call('ZADD', KEYS[2], 9999999, ARGV[i]) end""", 2, lease.stripe, lease.due, lease.name, *names)
    listed, after = [], ""
    while after or not listed:
        reply = lease.list(prefix="n", after=after, limit=1000)
        check(len(reply[3]) <= 96, "no more in one step")
        listed, after = listed + [item[0] for item in reply[3]], reply[2]
        STORE.redis("ZREM", lease.due, *(f"m{number}" for number in range(1000)))
        STORE.redis("ZADD", lease.due, *(word for number in range(chosen.randrange(1, 1000)) for word in (NOW, f"m{number}")))
    check_equal(listed, sorted(names))


# -- the record

def foreign_texts(lease):
    """What a record may be that this release has not written, or that says more than its stripe has granted."""
    parts = lease.record()
    whole = STORE.redis("HGET", lease.stripe, "l:" + lease.name)
    for what, *behind in (("an unknown letter", "Z", "1"), ("a letter without a value", "v"), ("a value without a letter", 1, 1),
                          ("a number that is none", "j", "soon"), ("a text that is none", "v", 1)):
        yield what, record_packed(parts, *behind)
    yield "another state", record_packed(parts | {"s": "frozen"})
    yield "a later token", record_packed(parts | {"t": 2})
    yield "a later life", record_packed(parts | {"e": EPOCH + 1})
    yield "no number", whole.replace(b"held\x01", b"held\xa1x", 1)
    yield "a number as text", whole.replace(b"held\x01", b"held\xa11", 1)
    yield "below zero", whole.replace(b"held\x01", b"held\xff", 1)
    yield "no text", whole.replace(b"\xa4id-a", b"\x07", 1)
    yield "half of it", whole[:-3]
    yield "nothing", ""
    yield "of before", f"held\t1\t{EPOCH}\thold-aaaaaaa\tid-a\t{NOW}\t\t\t\tada\t\t1000\t{NOW}\t1\t"


@test
def a_record_that_this_release_has_not_written_ends_every_script_before_its_first_write():
    lease = begin()
    lease.acquire(meta='{"a":1}')
    at_the_gate = Resource(lease)
    for what, packed in list(foreign_texts(lease)):
        STORE.redis("HSET", lease.stripe, "l:" + lease.name, packed)
        for script in (lease.acquire, lambda: lease.acquire("id-b"), lease.renew, lease.release, lease.look,
                       lambda: lease.run("claim", "id-a", "hold-aaaaaaa", "grant"),
                       lambda: lease.run("leave", "id-a", "hold-aaaaaaa", "grant", "gone", 0),
                       lambda: lease.run("force_release", "grant", "", ""), lambda: lease.run("handoff", "grant"),
                       lambda: lease.run("history", "grant"), lambda: at_the_gate.check(Holder(1))):
            check_equal(STORE.unchanged_by(script), ["not-ours"], what)


@test
def a_record_that_this_release_has_not_written_is_in_nobodys_way():
    for many, damage in (({}, {"Z": 1}), ({"mode": "shared"}, {"Z": 1}), ({"mode": "shared"}, {"t": 99}),
                         ({"mode": "permits", "permits": 2}, {"s": "junk"})):
        lease = begin()
        other, free = (Lease(STORE, name) for name in sorted(same_stripe(lease.name, 2)))
        other.acquire("id-b", ttl=600)
        free.acquire("id-c", ttl=100000)
        if many:
            lease.acquire("id-0", "hold-0000000", ttl=400, **many)
        lease.acquire(ttl=500, **many)
        meant = "id-a" if many else None
        lease.set(meant, **damage)
        foreign = lease.record(meant)
        check_equal([name for name, *_ in lease.list()[3]], [other.name, free.name])
        STORE.at(NOW + 500)
        for script in (lease.look, lease.acquire, lambda: lease.run("handoff", "grant")):
            check_equal(STORE.unchanged_by(script), ["not-ours"], "its own lease is none")
        STORE.at(NOW + 600)
        check_equal(lease.sweep()[2:], [2, 1])
        check_equal((lease.record(meant), other.field("s")), (foreign, "expired"))
        check_equal(STORE.dump()[lease.due][lease.name], NOW + 600 + REMEMBER_MS)
        check_equal([name for name, *_ in lease.list()[3]], [free.name])


@test
def a_key_of_a_lease_that_somebody_else_made_is_in_nobodys_way():
    for kind in "xneqw":
        lease = begin()
        other = Lease(STORE, same_stripe(lease.name, 1)[0])
        other.acquire("id-b", ttl=600)
        lease.acquire(ttl=500, mode="shared", desk="pawl:{07}:d:desk-1", wid="1")
        lease.set(w=1)
        STORE.redis("SET", f"{lease.stripe}:{kind}:{lease.name}", "foreign")
        STORE.at(NOW + 600)
        check_equal(lease.sweep()[2], 2, kind)
        check_equal(other.field("s"), "expired", kind)


@test
def a_record_says_what_it_says_whatever_bytes_are_in_it_and_no_key_leaves_its_stripe():
    lease = begin()
    meta = '{"a":"%\\t=\u00e9",\n"b":1}'
    lease.acquire(holder="a=b%d \u00e9", meta=meta)
    check_equal(lease.look()[7], [[1, "a=b%d \u00e9", 1000, 0, 1, meta]])
    other = Lease(STORE, same_stripe(lease.name, 1)[0])
    other.acquire("id-b", meta='{"a":\t1}')
    check_equal(other.look()[7][0][5], '{"a":\t1}')
    lease = begin()
    lease.acquire()
    tags = {key[:9] for key in text(STORE.redis("KEYS", "pawl:*:*")) if not key.startswith(RECORD)}
    check_equal(tags, {lease.stripe})


@test
def the_due_index_is_only_brought_forward_and_the_sweep_sets_it_anew():
    lease = begin()
    lease.acquire(ttl=500)
    due = lambda: (STORE.dump()[lease.due][lease.name], int(lease.field("d")))  # noqa: E731
    check_equal(due(), (NOW + 500, NOW + 500))
    lease.renew(ttl=900)
    check_equal(due(), (NOW + 500, NOW + 900), "too early is no harm")
    lease.renew(ttl=200)
    check_equal(due(), (NOW + 200, NOW + 200), "too late would be")
    lease.renew(ttl=700)
    STORE.at(NOW + 200)
    check_equal(lease.sweep()[2:], [1, 0])
    check_equal(due(), (NOW + 700, NOW + 700))
    lease.release()
    check_equal(due(), (NOW + 700, NOW + 200 + REMEMBER_MS))
    lease.acquire("id-b", ttl=100)
    check_equal(due(), (NOW + 300, NOW + 300))


# -- sweep

@test
def sweep_ends_what_expired_and_later_forgets_it_whole():
    lease = begin()
    lease.acquire(meta="{}")
    check_equal(STORE.unchanged_by(lease.sweep), ["swept", 1, 0, 0])
    STORE.at(NOW + 999)
    check_equal(lease.sweep(), ["swept", 1, 0, 0])
    STORE.at(NOW + 1000)
    check_equal(lease.sweep(), ["swept", 2, 1, 1])
    check_equal(lease.field("s"), "expired")
    STORE.at(NOW + 1000 + REMEMBER_MS - 1)
    check_equal(lease.sweep(), ["swept", 2, 0, 0])
    STORE.at(NOW + 1000 + REMEMBER_MS)
    check_equal(lease.sweep(), ["swept", 3, 1, 0])
    check_equal(sorted(STORE.dump()), EMPTY)
    check_equal(lease.look(), ["looked", 3, "free", 0, EPOCH, "", 0, []])
    check_equal((lease.acquire()[2], lease.release()[0]), (2, "released"))
    STORE.at(NOW + 1000 + 2 * REMEMBER_MS)
    check_equal((lease.sweep()[2:], sorted(STORE.dump())), ([1, 0], EMPTY))


@test
def sweep_takes_no_more_than_it_was_told_and_trusts_the_record_and_not_the_index():
    lease = begin()
    names = sorted(same_stripe(lease.name, 5))
    for name in names:
        Lease(STORE, name).acquire("id-" + name)
    STORE.at(NOW + 1000)
    check_equal(lease.sweep(3), ["swept", 6, 3, 3])
    check_equal(lease.sweep(3), ["swept", 7, 2, 2])
    check_equal(lease.sweep(3), ["swept", 7, 0, 0])
    lease = begin()
    lease.acquire()
    STORE.redis("ZADD", lease.due, NOW - 5, lease.name)
    STORE.redis("ZADD", lease.due, NOW - 5, "orphan")
    check_equal(lease.sweep()[2:], [2, 0])
    check_equal(lease.look()[2], "held")
    check_equal(STORE.dump()[lease.due], {lease.name: NOW + 1000})


main()
