#!/usr/bin/python3
"""What identities use, as the scripts count it (shared/member/scripts/lib/use.lua): after whatever happened it is what is in
the records, which is counted anew by use_again.lua and stored_again.lua; and which is refused for a quota, last."""

import random

from lua_test import REMEMBER_MS, Holder, Lease, Resource, Store, check, check_equal, main, test, text
from several import DESK, All, Session, desk_lives, hold_of, ring

STORE = Store()
NOW, NAMES, IDS, WHO = 1000000, ["orders:1", "orders:2", "job:3"], ["id-a", "id-b", "id-c", "id-d"], ["ada", "bob", ""]
LOOKED_MS, LATER = 60000, 10**10
MODES = [{}, {}, {"mode": "shared"}, {"mode": "permits", "permits": 2}]


def counted(stripe, service="lease"):
    """What the script that counts anew has found wrong."""
    reply = STORE.call("lease/scripts/use_again.lua" if service == "lease" else "gateway/scripts/stored_again.lua", [stripe])
    check_equal(reply[0], "counted")
    return reply[2]


def look(first=0, kinds="hsb"):
    """By services of both releases."""
    one, other = (STORE.call("shared/member/scripts/use_look.lua", [f"pawl:{{{first:02x}}}"], first, 32, kinds) for _ in range(2))
    check_equal(one, other)
    return one


def begin():
    """An empty store in which somebody looks at what is used."""
    STORE.begin(NOW)
    look()


def used():
    """{KIND IDENTITY: number} of the whole store, as use_look.lua says it."""
    flat, whole = [], {}
    for first in range(0, 256, 32):
        flat += look(first)[2]
    for field, number in zip(flat[::2], flat[1::2]):
        whole[field] = whole.get(field, 0) + number
    return whole


def step(chance, leases, pair, session):
    """Something that may begin or end a hold or a session."""
    lease, lease_id = chance.choice(leases), chance.choice(IDS)
    more = {**chance.choice(MODES), **({"desk": DESK, "wid": "7"} if chance.random() < 0.5 else {})}
    if chance.random() < 0.2:
        more |= session.terms()
    deeds = [lambda: lease.acquire(lease_id, hold_of(lease_id), ttl=chance.choice([500, 5000]), **more)] * 4 + [
        lambda: lease.release(lease_id), lambda: lease.release(lease_id, desk=DESK), lambda: lease.renew(lease_id), lease.look, lease.sweep, session.sweep,
        lambda: pair.acquire(lease_id, ttl=1000), lambda: pair.acquire(lease_id, desk=DESK, wid="8"),
        lambda: lease.run("claim", lease_id, hold_of(lease_id), "grant"),
        lambda: lease.run("leave", lease_id, hold_of(lease_id), "grant", "gone", 0),
        lambda: lease.run("force_release", "grant", "", ""), session.open, session.end, lambda: ring(STORE)]
    return chance.choice(deeds)()


@test
def whatever_happened_what_is_counted_is_what_is_in_the_records():
    seen = set()
    for seed in range(6):
        chance, now = random.Random(seed), NOW
        begin()
        leases, session = [Lease(STORE, name) for name in NAMES], Session(STORE)
        pair = All(STORE, *NAMES[:2])
        for number in range(120):
            now += chance.choice([1, 1, 1, 50, 700, 3000] + [REMEMBER_MS] * (number % 20 == 0))
            STORE.at(now)
            look()
            desk_lives(STORE)
            with STORE.asking(chance.choice(WHO)):
                reply = step(chance, leases, pair, session)
            now_used = used()
            for stripe in {one.stripe for one in [*leases, session]}:
                check_equal(counted(stripe), 0, f"seed {seed}, step {number}, after {reply}: {now_used}")
            seen |= {(field, count) for field, count in now_used.items()}
    check({("hada", 2), ("hbob", 1), ("sada", 1), ("sbob", 1)} <= seen, f"{seen}")


@test
def of_many_holds_each_counts_for_its_own_identity_and_without_one_nothing_is_counted():
    begin()
    lease = Lease(STORE, NAMES[0])
    for lease_id, who in (("id-a", "ada"), ("id-b", "ada"), ("id-c", "bob"), ("id-d", ""), ("id-e", None)):
        with STORE.asking(who):
            check_equal(lease.acquire(lease_id, hold_of(lease_id), mode="shared")[0], "granted")
    check_equal(used(), {"hada": 2, "hbob": 1})
    with STORE.asking("ada"):
        lease.release("id-a")
    check_equal(used(), {"hada": 1, "hbob": 1})
    STORE.at(NOW + 5000)
    lease.look()
    check_equal(used(), {})
    check_equal(STORE.redis("KEYS", "pawl:*:o"), [])
    with STORE.asking(None):
        check_equal(STORE.changed_by(lambda: lease.acquire("id-f", hold_of("id-f")))[1].keys() & {lease.stripe + ":o"}, set())


@test
def nothing_is_counted_where_nobody_looks_and_who_looks_again_is_told():
    STORE.begin(LATER)
    lease, session = Lease(STORE, NAMES[0]), Session(STORE)
    with STORE.asking("ada"):
        lease.acquire(ttl=10 * LOOKED_MS)
        session.open()
    check_equal(STORE.redis("KEYS", "pawl:*:o"), [])
    check_equal([look(kinds=kinds)[0] for kinds in ("hs", "hs", "b", "hsb")], ["new", "looked", "new", "looked"])
    check_equal((counted(lease.stripe), counted(session.stripe), used()), (1, 1, {"hada": 1, "sada": 1}))
    STORE.at(LATER + LOOKED_MS - 1)
    check_equal((lease.release()[0], used()), ("released", {"sada": 1}))
    STORE.at(LATER + 2 * LOOKED_MS)
    session.end()
    check_equal((look()[0], counted(session.stripe)), ("new", 1))


@test
def what_is_wrong_is_counted_anew():
    begin()
    lease, session = Lease(STORE, NAMES[0]), Session(STORE)
    with STORE.asking("ada"):
        lease.acquire()
        session.open()
    for stripe, wrong in ((lease.stripe, {"hada": 7, "hbob": 1}), (session.stripe, {"sada": 3, "sbob": -1})):
        STORE.redis("HSET", stripe + ":o", *sum(([field, count] for field, count in wrong.items()), []), "bada", 5)
        check_equal((counted(stripe), counted(stripe)), (2, 0))
        STORE.redis("HDEL", stripe + ":o", "bada")
    check_equal(used(), {"hada": 1, "sada": 1})
    STORE.redis("DEL", lease.stripe + ":o")
    check_equal((counted(lease.stripe), used()["hada"]), (1, 1))
    STORE.redis("DEL", lease.stripe + ":o")
    STORE.redis("SET", lease.stripe + ":o", "not ours")
    with STORE.asking("ada"):
        check_equal(lease.acquire("id-b", hold_of("id-b"), mode="shared")[0], "held")
        check_equal(lease.release()[0], "released", "what cannot be counted stops nothing")
        check_equal(lease.acquire("id-b", hold_of("id-b"))[0], "granted")
    check_equal((used(), counted(lease.stripe), used()), ({"sada": 1}, 1, {"hada": 1, "sada": 1}))


# -- what is stored


def write(resource, holder, who, body, room="", key=""):
    return STORE.call("gateway/scripts/write.lua", resource.keys, *resource.fence(holder), resource.name, "", "", key, "digest" if key else "",
                     "tag-1", "text/x", "", body, *([] if who is None else ["", who, room]))


@test
def bytes_are_of_who_wrote_last_and_nothing_more_is_stored_without_one():
    begin()
    lease = Lease(STORE, NAMES[0])
    with STORE.asking(None):
        holder = Holder(lease.acquire(ttl=100000)[2])
    one, other = Resource(lease, "/a"), Resource(lease, "/b")
    check_equal(write(one, holder, None, b"12345")[0], "written")
    plain = STORE.redis("HGET", one.key, "z")
    check(b"@" not in plain, f"{plain}")
    for number, (resource, who, body, wanted) in enumerate((
            (one, "ada", b"12345", {"bada": 5}), (other, "bob", b"123", {"bada": 5, "bbob": 3}), (one, "bob", b"1", {"bbob": 4}),
            (one, "bob", b"123", {"bbob": 6}), (one, "", b"123", {"bbob": 3}), (other, None, b"1", {}), (one, "a.b-c_D", b"1", {"ba.b-c_D": 1}))):
        check_equal(write(resource, holder, who, body, key=f"key-{number}" if number % 2 else "")[0], "written")
        check_equal((used(), counted(lease.stripe, "gateway")), (wanted, 0))
    STORE.redis("HSET", lease.stripe + ":o", "bada", 9, "hada", 2)
    check_equal((counted(lease.stripe, "gateway"), used()), (1, {"ba.b-c_D": 1, "hada": 2}))
    check_equal((one.remove(holder)[0], used()), ("removed", {"hada": 2}))
    check_equal(STORE.redis("HSET", one.key, "z", plain), 1)
    check_equal(one.read()[0], "found")


@test
def a_write_that_is_too_much_is_refused_last_and_one_that_takes_no_more_is_not():
    begin()
    lease = Lease(STORE, NAMES[0])
    with STORE.asking(None):
        holder = Holder(lease.acquire(ttl=100000)[2])
    one = Resource(lease, "/a")
    check_equal(STORE.unchanged_by(lambda: write(one, holder, "ada", b"12345", 4))[0], "quota")
    check_equal(write(one, holder, "ada", b"12345", 5)[0], "written")
    check_equal(write(one, holder, "ada", b"12345", -7)[0], "written")
    check_equal(write(one, holder, "ada", b"123456", -7)[0], "quota")
    check_equal(write(one, holder, "bob", b"1", 0)[0], "quota")
    check_equal(write(one, holder, "", b"1234567", "")[0], "written")
    check_equal(write(one, Holder(holder.token, hold="hold-zzzzzzz"), "bob", b"1", 0)[0], "refused")


# -- what is new


@test
def what_has_no_room_is_refused_last_and_only_what_is_new():
    STORE.begin(NOW)
    desk_lives(STORE)
    lease, pair, waits = Lease(STORE, NAMES[0]), All(STORE, *NAMES[1:]), {"desk": DESK, "wid": "1"}
    for over in ("held", "waiting"):
        check_equal(STORE.unchanged_by(lambda: lease.acquire("id-n", may="hold-off", over=over))[0], "held-off")  # noqa: B023
    check_equal(STORE.unchanged_by(lambda: lease.acquire("id-n", over="held")), ["quota", lease.seq()])
    check_equal(STORE.unchanged_by(lambda: pair.acquire("id-n", over="held"))[0], "quota")
    check_equal(lease.acquire(over="waiting", **waits)[0], "granted", "nobody need wait")
    check_equal(lease.acquire(over="held")[0], "replayed")
    check_equal(pair.acquire(over="waiting", **waits)[0], "granted")
    check_equal(pair.acquire(over="held")[0], "replayed")
    for one in (lease, pair):
        check_equal(STORE.unchanged_by(lambda: one.acquire("id-b", over="held"))[0], "held", "without waiting")  # noqa: B023
        for over in ("held", "waiting"):
            check_equal(STORE.unchanged_by(lambda: one.acquire("id-b", over=over, **waits))[0], "quota")  # noqa: B023
        check_equal(one.acquire("id-b", **waits)[0], "queued")
        for over in ("held", "waiting"):
            check_equal(one.acquire("id-b", over=over, **waits)[0], "queued", "its own place")
    packed = text(STORE.redis("HGET", f"{lease.stripe}:w:{lease.name}", "id-b"))
    check("over" not in packed, packed)


if __name__ == "__main__":
    main()
