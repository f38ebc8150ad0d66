#!/usr/bin/python3
"""What every script on a stripe asks first, and what becomes of holds, marks and keys when a new life has begun."""

from lua_test import EPOCH, IDENTITY, REMEMBER_MS, STRIPE_FIELDS, STRIPES, Holder, Lease, Resource, check, check_equal, main, \
    stripe_do, test
from members import Life, all_in, company, grant, unchanged_by
from several import Session, desk_of, desk_says, hold_of, line_of

LIFE = Life()
NOW = 1000000
ADA, TTL = Holder(1), 600000
NEW = NOW // 1000  # the epoch after the first admission
MANY = {"shared": {"mode": "shared"}, "permits": {"mode": "permits", "permits": 3}}
DIGEST, CROWD = "d" * 24, 90  # CROWD: more than a script ends at once, and no more than the floor allows


def deeds(lease):
    """Every script on a stripe, by name."""
    resource = Resource(lease, "/a")
    resource.notes = False
    return {
        "acquire": lease.acquire, "renew": lease.renew, "release": lease.release, "look": lease.look, "list": lease.list,
        "sweep": lease.sweep, "ready": lambda: LIFE.call("shared/member/scripts/ready.lua", [lease.stripe]),
        "write": lambda: resource.write(ADA), "remove": lambda: resource.remove(ADA), "read": resource.read,
        "read_fenced": lambda: resource.read_fenced(ADA), "check": lambda: resource.check(ADA), "mark": resource.mark,
        "forget": resource.forget}


def scripts():
    """Every script that works on a stripe."""
    found = [one.path for one in LIFE.library.operations if one.on == "stripe"]
    check(len(found) > 20, found)
    return found


def refused_by_all(lease, wanted, **known):
    """What a script is asked to do does not matter: it looks at nothing else before."""
    before = LIFE.dump()
    for path in scripts():
        with LIFE.calling(**known):
            check_equal(LIFE.call(path, lease.keys * 2, *["1"] * 16), [wanted], f"{path} {known}")
    check_equal(LIFE.dump(), before, f"{known}")


def begin():
    """A lease that ada holds with token 1, a resource that she wrote, and a process of each kind."""
    a, b, g = company(LIFE)
    lease = Lease(LIFE, "orders:42")
    check_equal(grant(LIFE, a, lease.name, ttl=5000), 1)
    resource = Resource(lease, "/a")
    check_equal(g.do(resource.write, ADA, "tag-1", key="key-1", digest="digest-1")[0], "written")
    all_in(a, b, g)
    return lease, resource, (a, b, g)


def new_life(how, members, saved=None):
    """Redis has restarted, with a proof that it is complete or without; with its data or those of before."""
    if saved is None:
        all_in(*members)
    LIFE.restart(saved)
    members[0].doubt = "doubt" if how == "incomplete" and saved is None else ""
    check_equal([one.pulse() for one in members], ["gated"] * len(members))
    check_equal(members[0].admit()[2], how)
    members[0].doubt = ""
    all_in(*members)


def with_holds_ended():
    """As begin(), and then Redis has restarted without a proof that it is complete."""
    lease, resource, members = begin()
    new_life("incomplete", members)
    return lease, resource


# -- what every script asks first

@test
def every_script_runs_for_a_caller_of_this_life_who_has_seen_no_more_than_there_is():
    for known in ({}, {"seen": 0}, {"at_least": NOW - 1}):
        lease, _, _ = begin()
        for name, deed in deeds(lease).items():
            with LIFE.calling(**known):
                check(deed()[0] not in ("not-ours", "not-admitted"), f"{name} {known}")


@test
def every_script_refuses_a_stripe_with_a_missing_field_or_of_another_schema_and_changes_nothing():
    lease = Lease(LIFE, "orders:42")
    for damage in (["DEL"], *(["HDEL", field] for field in STRIPE_FIELDS), *(
            ["HSET", "id", one] for one in ("1" + IDENTITY[2:], "6" + IDENTITY[2:], IDENTITY[3:], IDENTITY + "x"))):
        LIFE.begin(NOW)
        lease.acquire()
        LIFE.at(NOW + 5000)
        stripe_do(LIFE.redis, damage[0], lease.stripe, *damage[1:])
        refused_by_all(lease, "not-ours")


@test
def every_script_refuses_a_caller_of_another_store_schema_or_life_or_who_has_seen_more():
    lease, _, _ = begin()
    for identity in ("11:other", "4" + IDENTITY[2:], "", IDENTITY[3:]):
        refused_by_all(lease, "not-ours", identity=identity)
    lease, _, _ = begin()
    for epoch in (EPOCH + 1, EPOCH - 1, 0, -EPOCH):
        refused_by_all(lease, "not-admitted", epoch=epoch)
    lease, _, _ = begin()
    check_equal(lease.seq(), 2)
    refused_by_all(lease, "not-admitted", seen=3)


@test
def every_script_refuses_a_caller_of_another_replication_stream():
    lease, _, _ = begin()
    for stream in ("0" * 40, LIFE.stream[:-1], LIFE.stream.upper() + "0", "%x+", " "):
        refused_by_all(lease, "not-admitted", stream=stream)
    before = LIFE.replid()
    LIFE.new_stream()  # a copy of another Redis for a moment; nobody was there to see it
    try:
        refused_by_all(lease, "not-admitted", stream=before)
        refused_by_all(lease, "not-admitted", epoch=EPOCH + 1, stream=LIFE.replid())
    finally:
        LIFE.stream = LIFE.replid()


@test
def every_script_of_every_stripe_is_refused_while_the_store_is_shut():
    lease, _, (a, b, g) = begin()
    LIFE.restart()
    g.pulse()
    refused_by_all(lease, "not-admitted")
    for stripe in STRIPES:
        check_equal(LIFE.call("shared/member/scripts/ready.lua", [stripe]), ["not-admitted"], stripe)
    a.pulse(), b.pulse()
    a.admit()
    check_equal(LIFE.call("shared/member/scripts/ready.lua", [lease.stripe])[0], "ours")
    refused_by_all(lease, "not-admitted", epoch=EPOCH)


@test
def the_stores_time_is_never_below_the_bound_that_the_caller_knows():
    lease, _, _ = begin()
    LIFE.at(NOW - 900000)
    with LIFE.calling(at_least=NOW + 4999):
        check_equal(lease.look()[7][0][2], 1)
    with LIFE.calling(at_least=NOW + 5000):
        check_equal(lease.look()[2], "free")
    check_equal(lease.field("d"), str(NOW + 5000 + REMEMBER_MS))
    LIFE.at(NOW + 100)
    with LIFE.calling(at_least=NOW):
        lease.acquire("id-b", ttl=1000)
    check_equal(lease.field("d"), str(NOW + 1100))


# -- a complete one: everything stays

@test
def holds_marks_and_keys_survive_a_complete_restart_with_their_epoch():
    lease, resource, members = begin()
    new_life("complete", members)
    check_equal(lease.look()[2:5] + lease.look()[7][0][:2], ["held", 1, EPOCH, 1, "ada"])
    check_equal(resource.mark()[2:5], [1, EPOCH, 1])
    check_equal(lease.renew(ttl=5000)[2:5], [1, EPOCH, "hold-aaaaaaa"])
    check_equal(lease.acquire()[0], "replayed")
    check_equal(resource.write(ADA, "tag-2", key="key-1", digest="digest-1")[::3], ["repeated", "tag-1"])
    check_equal(resource.write(ADA, "tag-2", key="key-1", digest="another")[0], "key-reused")
    check_equal(resource.write(ADA, "tag-2")[0], "written")
    check_equal(lease.release()[0], "released")
    check_equal(lease.acquire("id-b", "hold-bbbbbbb")[:4], ["granted", lease.seq(), 101, NEW])
    check_equal(resource.write(ADA)[2], "stale-token")
    check_equal(resource.write(Holder(101, NEW, "hold-bbbbbbb"))[0], "written")


# -- an incomplete one: all holds end, each when somebody comes to it

@test
def a_hold_of_before_ends_in_the_very_step_that_finds_it():
    endings = {  # what its holder or another is told
        "look": ["looked", "free", 1, EPOCH, "", 0, []], "renew": ["lost", "store-restarted"],
        "release": ["lost", "store-restarted"], "acquire": ["over", "store-restarted"]}
    for name, wanted in endings.items():
        lease, _ = with_holds_ended()
        check_equal(lease.field("s"), "held", "it ends lazily")
        reply, changes = LIFE.changed_by(deeds(lease)[name])
        check_equal(reply[:1] + reply[2:], wanted, name)
        check_equal(sorted(changes), sorted([lease.key, lease.due, f"{lease.stripe}:e:{lease.name}"]), name)
        check_equal([lease.field("s"), lease.field("d")], ["store-restarted", str(NOW + REMEMBER_MS)], name)
        check_equal(lease.renew()[::2], ["lost", "store-restarted"], name)


@test
def a_hold_of_before_is_void_in_the_very_step_that_finds_it_for_those_who_may_not_free_the_lease():
    for name in ("list", "write", "remove", "check", "read_fenced"):
        lease, _ = with_holds_ended()
        reply, changes = LIFE.changed_by(deeds(lease)[name])
        check_equal(reply[::2], ["listed", ""] if name == "list" else ["refused", "lease-expired", EPOCH, ""], name)
        check_equal(list(changes), [lease.key], name)
        check_equal([lease.field("s"), lease.field("v")], ["held", "store-restarted"], name)
        check_equal(lease.renew()[::2], ["lost", "store-restarted"], name)
        check_equal(lease.field("s"), "store-restarted", name)


@test
def a_lease_that_was_held_before_is_free_for_another_then_swept_and_told_as_ended_by_the_restart():
    lease, _ = with_holds_ended()
    check_equal(lease.acquire("id-b", "hold-bbbbbbb", "bob")[:4], ["granted", lease.seq(), 101, NEW])
    check_equal(lease.acquire()[::3], ["held", "bob"])
    check_equal(lease.renew()[::2], ["lost", "unknown"])
    lease, _ = with_holds_ended()
    check_equal(lease.sweep()[2:], [0, 0])
    LIFE.at(NOW + 5000)
    check_equal((lease.sweep()[2:], lease.field("s")), ([1, 1], "store-restarted"))
    LIFE.at(NOW + 5000 + REMEMBER_MS)
    check_equal((lease.sweep()[2:], lease.field("s")), ([1, 0], None))
    lease, _ = with_holds_ended()
    LIFE.at(NOW + 60000)
    check_equal(lease.renew()[::2], ["lost", "store-restarted"])


@test
def a_hold_that_was_over_before_stays_as_it_ended_and_one_that_survived_ends_with_the_next_restart():
    lease, _, members = begin()
    lease.release()
    new_life("incomplete", members)
    check_equal(lease.renew()[::2], ["lost", "released"])
    check_equal(lease.release()[0], "released")
    lease, resource, members = begin()
    new_life("complete", members)
    new_life("incomplete", members)
    check_equal(lease.look()[2:5], ["free", 1, EPOCH])
    check_equal(resource.write(ADA)[2], "lease-expired")


@test
def marks_of_before_are_void():
    lease, resource = with_holds_ended()
    check_equal(unchanged_by(LIFE, resource.mark)[2:5], [0, 0, 1])
    check_equal(unchanged_by(LIFE, resource.read)[2], 0)
    check_equal(resource.write(ADA)[2:], ["lease-expired", 1, EPOCH, 0, ""])
    check_equal(lease.acquire("id-b", "hold-bbbbbbb")[2], 101)
    bob = Holder(101, NEW, "hold-bbbbbbb")
    check_equal(resource.check(bob)[2], 101)
    check_equal(resource.mark()[2:5], [101, NEW, 101])


@test
def a_key_of_before_is_void_but_a_write_that_was_done_is_still_told_as_done():
    lease, resource = with_holds_ended()
    check_equal(unchanged_by(LIFE, lambda: resource.write(ADA, "tag-2", key="key-1", digest="digest-1"))[::3],
                ["repeated", "tag-1"])
    lease.acquire("id-b", "hold-bbbbbbb")
    bob = Holder(101, NEW, "hold-bbbbbbb")
    check_equal(resource.write(ADA, "tag-2", key="key-1", digest="digest-1")[0], "repeated")
    check_equal(resource.write(bob, "tag-2", key="key-1", digest="another")[0], "written")
    lease, resource = with_holds_ended()
    lease.acquire("id-b", "hold-bbbbbbb")
    check_equal(resource.write(bob, "tag-2", key="key-1", digest="digest-1")[::3], ["written", "tag-2"])


@test
def a_released_hold_that_an_older_store_brings_back_from_the_dead_never_writes():
    lease, resource, members = begin()
    old = LIFE.save()
    check_equal(members[0].do(lease.release)[0], "released")
    new_life("incomplete", members, old)
    check_equal(lease.field("s"), "held")
    for name in ("write", "remove", "check", "read_fenced"):
        check_equal(deeds(lease)[name]()[2], "lease-expired", name)
    check_equal(lease.renew()[0], "lost")
    check_equal(resource.read()[3], "tag-1")


@test
def a_token_that_the_store_has_forgotten_is_expired_and_not_called_unissued():
    lease, resource, members = begin()
    old = LIFE.save()
    members[0].do(lease.release)
    check_equal(grant(LIFE, members[1], lease.name, "id-b", "hold-bbbbbbb"), 2)
    bob = Holder(2, hold="hold-bbbbbbb")
    check_equal(members[2].do(resource.write, bob, "tag-2")[0], "written")
    new_life("incomplete", members, old)
    check_equal(resource.write(bob)[2], "lease-expired")
    check_equal(resource.write(Holder(500, EPOCH))[2], "lease-expired", "nobody knows what that life granted")
    check_equal(resource.write(Holder(500, NEW))[2], "unissued-token")
    check_equal(lease.acquire("id-c", "hold-ccccccc")[2], 101)
    check_equal((resource.write(bob)[2], resource.write(ADA)[2]), ("stale-token", "stale-token"))


@test
def a_store_that_is_behind_is_refused_at_once_and_shut_by_the_next_pulse():
    lease, _, (a, b, g) = begin()
    old = LIFE.save()
    a.do(lease.release)
    grant(LIFE, a, lease.name, "id-b")
    LIFE.put_back(old)  # a machine set back with its memory: the run_id is the same
    check_equal(a.do(lease.acquire, "id-c"), ["not-admitted"])
    check_equal((a.pulse(), a.reply[3]), ("gated", "behind"))
    check_equal((b.pulse(), g.pulse(), a.admit()[2]), ("gated", "gated", "incomplete"))


@test
def no_script_rests_on_a_time_that_is_far_ahead_of_what_the_caller_knows():
    LIFE.begin(NOW)
    lease = Lease(LIFE, "orders:42")
    with LIFE.calling(at_least=NOW - 2000):
        check_equal(lease.acquire(ttl=5000)[0], "granted")
    refused_by_all(lease, "clock", at_least=NOW - 2001)


def empty():
    """A lease, a resource under it, and a process of each kind."""
    members = company(LIFE)
    lease = Lease(LIFE, "orders:42")
    return lease, Resource(lease, "/a"), members


def session_opens():
    session = Session(LIFE)
    check_equal(session.open(ttl=TTL)[0], "opened")
    return session


def acquire(lease, lease_id, may="grant", **terms):
    return lease.acquire(lease_id, hold_of(lease_id), lease_id, TTL, may=may, **terms)


def granted(lease, lease_id, **terms):
    reply = acquire(lease, lease_id, **terms)
    check_equal(reply[0], "granted", lease_id)
    return Holder(reply[2], reply[3], hold_of(lease_id), terms.get("mode", "exclusive"))


class Desk:
    """Where clients wait; it lives as long as it beats."""

    def __init__(self):
        self.key = desk_of("D1")
        self.beat("open")

    def beat(self, word="beat"):
        return desk_says(LIFE, self.key, word)

    def queue(self, lease, lease_id, wid="1", **terms):
        check_equal(acquire(lease, lease_id, desk=self.key, wid=wid, **terms)[0], "queued", lease_id)


def holders(lease):
    """The token and the holder of each hold."""
    return sorted([one[0], one[1]] for one in lease.look()[-1])


# -- shared holds, permits, sessions, keys, those who wait: a complete one keeps them

@test
def what_a_restart_has_ended_counts_for_no_quota_though_nobody_has_looked_at_it_since():
    _, _, members = begin()
    counted = lambda stripe: LIFE.call("lease/scripts/use_again.lua", [stripe])[2]  # noqa: E731
    look = lambda stripe: LIFE.call("shared/member/scripts/use_look.lua", [stripe], int(stripe[6:8], 16), 1, "hs")[-1]  # noqa: E731
    one, many, session = Lease(LIFE, "job:1"), Lease(LIFE, "job:2"), Session(LIFE)
    stripes = [one.stripe, many.stripe, session.stripe]
    with LIFE.asking("ada"):
        for stripe in stripes:
            look(stripe)
        check_equal(one.acquire(ttl=TTL)[0], "granted")
        for lease_id in ("id-a", "id-b"):
            check_equal(many.acquire(lease_id, hold_of(lease_id), ttl=TTL, mode="shared")[0], "granted")
        check_equal(session.open(ttl=TTL)[0], "opened")
        check_equal([look(stripe) for stripe in stripes], [["hada", 1], ["hada", 2], ["sada", 1]])
        new_life("incomplete", members)
        check_equal([(counted(stripe), look(stripe)) for stripe in stripes], [(1, [])] * 3)
        check_equal(one.acquire("id-c", hold_of("id-c"), ttl=TTL)[0], "granted", "what was held ends now, and is taken away once")
        many.look(), session.sweep()
        check_equal([(counted(stripe), look(stripe)) for stripe in stripes], [(0, ["hada", 1]), (0, []), (0, [])])


@test
def shared_holds_and_permits_survive_a_complete_restart():
    for kind, terms in MANY.items():
        lease, resource, members = empty()
        ann, ben = granted(lease, "ann", **terms), granted(lease, "ben", **terms)
        new_life("complete", members)
        check_equal(holders(lease), [[1, "ann"], [2, "ben"]], kind)
        check_equal((resource.read_fenced(ann)[2], resource.read_fenced(ben)[2], resource.read_fenced(ann)[2]), (1, 2, 2), kind)
        check_equal(resource.write(ann)[2], "wrong-mode", kind)
        check_equal(lease.renew("ann", TTL)[2:4], [1, EPOCH], kind)
        check_equal(granted(lease, "cyd", **terms).epoch, NEW, kind)
        check_equal(resource.read_fenced(ann)[0], "missing", f"{kind}: one of another epoch shares it")
        check_equal(acquire(lease, "dan", mode="permits", permits=3)[0], "held", f"{kind}: all three permits are taken")


@test
def a_session_and_its_holds_survive_a_complete_restart():
    for terms in ({}, *MANY.values()):
        lease, resource, members = empty()
        session = session_opens()
        ada = granted(lease, "ada", **session.terms(), **terms)
        new_life("complete", members)
        check_equal(session.renew()[0], "renewed")
        check_equal(resource.read_fenced(ada)[0], "missing")
        check_equal(acquire(lease, "ada", **session.terms(), **terms)[0], "replayed")
        check_equal(session.end()[0], "ended")
        check_equal(resource.read_fenced(ada)[0], "refused")


@test
def a_grant_that_nobody_has_claimed_and_those_who_wait_stay_through_a_complete_restart():
    lease, resource, members = empty()
    desk = Desk()
    granted(lease, "ada")
    desk.queue(lease, "bob")
    lease.release("ada")
    new_life("complete", members)
    check_equal(lease.run("claim", "bob", hold_of("bob"), "grant")[:3:2], ["claimed", 2])
    check_equal(resource.write(Holder(2, EPOCH, hold_of("bob")))[0], "written")
    lease, _, members = empty()
    desk = Desk()
    granted(lease, "ada")
    for lease_id in ("bob", "cyd"):
        desk.queue(lease, lease_id)
    new_life("complete", members)
    desk.beat()
    check_equal(line_of(lease), ["bob", "cyd"])
    check_equal(lease.release("ada")[0], "released")
    check_equal(lease.run("claim", "bob", hold_of("bob"), "grant")[:4:1][0::2], ["claimed", 101])


# -- and after an incomplete one every hold is over

@test
def shared_holds_and_permits_of_before_are_over():
    for kind, terms in MANY.items():
        lease, resource, members = empty()
        ann, ben = granted(lease, "ann", **terms), granted(lease, "ben", **terms)
        new_life("incomplete", members)
        for holder in (ann, ben):
            check_equal([resource.read_fenced(holder)[2], resource.write(holder)[2], resource.check(holder)[2]],
                        ["stale-token"] * 3, kind)
        check_equal(lease.renew("ben")[::2], ["lost", "store-restarted"], kind)
        check_equal(lease.renew("ann")[0], "lost", kind)
        check_equal((lease.look()[2], acquire(lease, "ben", **terms)[0]), ("free", "over"), kind)
        cyd = granted(lease, "cyd")
        check_equal((cyd.token, cyd.epoch, resource.write(cyd)[0]), (101, NEW, "written"), kind)
        check_equal([resource.read_fenced(holder)[2] for holder in (ann, ben)], ["stale-token"] * 2, kind)


@test
def whoever_joins_after_it_does_not_bring_back_those_of_before():
    for kind, terms in MANY.items():
        lease, resource, members = empty()
        terms = {**terms, "permits": CROWD} if kind == "permits" else terms
        dead = [granted(lease, f"n{i}", **terms) for i in range(CROWD)]
        new_life("incomplete", members)
        for _ in range(6):  # a script ends a bounded number of them
            reply = acquire(lease, "new", **terms)
            if reply[0] == "granted":
                break
            check_equal(reply[0], "held", kind)
        check_equal(reply[::3], ["granted", NEW], kind)
        check_equal(holders(lease), [[reply[2], "new"]], kind)
        check(all(resource.read_fenced(one)[2] == "stale-token" for one in dead[::10]), kind)
        check_equal(LIFE.redis("ZCARD", f"{lease.stripe}:x:{lease.name}"), 1, f"{kind}: permits or places are still taken")
        check_equal(lease.release("new")[0], "released", kind)
        check_equal(lease.look()[2], "free", kind)


@test
def one_who_waits_for_all_who_share_to_go_need_not_wait_for_those_of_before():
    lease, _, members = empty()
    for i in range(CROWD):
        granted(lease, f"n{i}", mode="shared")
    new_life("incomplete", members)
    desk = Desk()
    reply = acquire(lease, "bob", desk=desk.key, wid="1")
    check(reply[0] in ("granted", "queued"), reply)
    for _ in range(6):
        if lease.run("handoff", "grant")[2] != "more":
            break
    check_equal([name for _, name in holders(lease)], ["bob"])


@test
def a_session_of_before_is_over_and_nothing_can_be_acquired_with_it():
    for terms in ({}, *MANY.values()):
        lease, resource, members = empty()
        session = session_opens()
        ada = granted(lease, "ada", **session.terms(), **terms)
        new_life("incomplete", members)
        check_equal(resource.read_fenced(ada)[0], "refused")
        check_equal(lease.renew("ada")[::2], ["lost", "store-restarted"])
        check_equal(acquire(Lease(LIFE, "orders:43"), "bob", **session.terms(), **terms)[0], "session-lost")
        check_equal(session.renew()[::2], ["lost", "store-restarted"])
        check_equal(granted(lease, "cyd").epoch, NEW)


@test
def a_session_that_nobody_comes_to_is_swept_and_its_holds_with_it():
    lease, _, members = empty()
    session = session_opens()
    granted(lease, "ada", **session.terms())
    new_life("incomplete", members)
    LIFE.at(NOW + TTL)
    for keys in (session.keys, lease.keys) * 3:
        LIFE.call("lease/scripts/sweep.lua", keys[:2], 100, REMEMBER_MS, "grant")
    LIFE.at(NOW + TTL + 10 * REMEMBER_MS)
    for keys in (session.keys, lease.keys) * 3:
        LIFE.call("lease/scripts/sweep.lua", keys[:2], 100, REMEMBER_MS, "grant")
    left = {key for key in LIFE.dump() if key.count(":") > 1 and not key.startswith("pawl:{store}")}
    check_equal(left, set())


@test
def keys_of_a_hold_of_before_are_void_but_a_release_that_was_done_is_told_as_done():
    lease, _, members = empty()
    granted(lease, "ada", reentrant=True, key="k-1", digest=DIGEST)
    acquire(lease, "ada", reentrant=True, key="k-2", digest=DIGEST)
    check_equal(lease.release("ada", key="k-3", digest=DIGEST)[::2], ["left", 1])
    new_life("incomplete", members)
    check_equal(lease.release("ada", key="k-3", digest=DIGEST)[::2], ["lost", "store-restarted"])
    check_equal(lease.release("ada", key="k-3", digest="another")[::2], ["lost", "store-restarted"])
    check_equal(acquire(lease, "ada", reentrant=True, key="k-2", digest="another")[::2], ["over", "store-restarted"])
    lease, _, members = empty()
    granted(lease, "ada")
    check_equal(lease.release("ada", key="k-1", digest=DIGEST)[0], "released")
    new_life("incomplete", members)
    check_equal(lease.release("ada", key="k-1", digest=DIGEST)[0], "released")


@test
def a_grant_of_before_that_nobody_had_claimed_goes_on_and_was_never_a_hold():
    for mode in ({}, *MANY.values()):
        lease, resource, members = empty()
        desk = Desk()
        granted(lease, "ada")
        desk.queue(lease, "bob", **mode)
        desk.queue(lease, "cyd", "2")
        lease.release("ada")
        new_life("incomplete", members)
        desk.beat()
        check_equal(lease.run("claim", "bob", hold_of("bob"), "grant")[0], "lost")
        check_equal(resource.read_fenced(Holder(2, EPOCH, hold_of("bob"), mode.get("mode", "exclusive")))[0], "refused")
        check_equal(lease.run("claim", "cyd", hold_of("cyd"), "grant")[:3:2], ["claimed", 101])
        lease.release("cyd")
        check_equal(granted(lease, "bob").token, 102)


@test
def those_who_waited_before_are_handed_on_to_if_desk_and_session_live_and_else_passed_over():
    for lives in (True, False):
        lease, _, members = empty()
        desk = Desk()
        granted(lease, "ada")
        desk.queue(lease, "bob")
        new_life("incomplete", members)
        LIFE.at(NOW + 3001)
        if lives:
            desk.beat("open")
        check_equal(lease.run("handoff", "grant")[0], "handed-on")
        check_equal(line_of(lease), [])
        check_equal(holders(lease), [[101, "bob"]] if lives else [])
    lease, _, members = empty()
    desk, session = Desk(), session_opens()
    granted(lease, "ada")
    desk.queue(lease, "bob", **session.terms())
    desk.queue(lease, "cyd", "2")
    new_life("incomplete", members)
    desk.beat()
    lease.look()
    check_equal(lease.run("claim", "cyd", hold_of("cyd"), "grant")[0], "claimed")


@test
def a_lock_delay_counts_after_an_incomplete_restart_and_one_that_ran_goes_on():
    lease, _, members = empty()
    granted(lease, "ada", delay=5000)
    new_life("incomplete", members)
    check_equal(acquire(lease, "bob")[::4], ["held", 5000])
    check_equal(lease.run("history", "grant")[3][-1].split("\t")[1::4], ["store-restarted", "\x1fd5000"])
    new_life("incomplete", members)
    LIFE.at(NOW + 4999)
    check_equal(acquire(lease, "bob")[::4], ["held", 1])
    LIFE.at(NOW + 5000)
    granted(lease, "bob")


main()
