#!/usr/bin/python3
"""What becomes of shared holds, permits, sessions, keys, grants that nobody has claimed and those who wait when a new life
of the store has begun: all of it stays when the store proves that it is complete; else every hold is over."""

from lua_test import EPOCH, REMEMBER_MS, Holder, Lease, Resource, check, check_equal, main, stripe_of, test
from members import Life, all_in, company

LIFE = Life()
NOW = 1000000
NEW = NOW // 1000  # the epoch after the first admission
TTL = 600000
MANY = {"shared": {"mode": "shared"}, "permits": {"mode": "permits", "permits": 3}}
DIGEST = "d" * 24
CROWD = 90  # more than a script ends at once, and no more than the floor allows


def hold_name(lease_id):
    return f"hold-{lease_id}".ljust(12, "-")


def acquire(lease, lease_id, may="grant", **terms):
    return lease.acquire(lease_id, hold_name(lease_id), lease_id, TTL, may=may, **terms)


def granted(lease, lease_id, **terms):
    reply = acquire(lease, lease_id, **terms)
    check_equal(reply[0], "granted", lease_id)
    return Holder(reply[2], reply[3], hold_name(lease_id), terms.get("mode", "exclusive"))


def begin():
    """A lease, a resource under it, and a process of each kind."""
    members = company(LIFE)
    lease = Lease(LIFE, "orders:42")
    return lease, Resource(lease, "/a"), members


def new_life(how, members):
    """Redis has restarted, with a proof that it is complete or without."""
    all_in(*members)
    LIFE.restart()
    for one in members:
        check_equal(one.pulse(), "gated")
    members[0].doubt = "" if how == "complete" else "doubt"
    members[0].pulse()
    check_equal(members[0].admit()[2], how)
    members[0].doubt = ""
    all_in(*members)


class Session:
    def __init__(self):
        stripe = f"pawl:{{{stripe_of('S1'):02x}}}"
        self.keys = [stripe, stripe + ":due", stripe + ":s:S1"]
        self.terms = {"session": self.keys[2], "secret": "secret"}

    def run(self, script, *args):
        return LIFE.call(f"lease/scripts/session_{script}.lua", self.keys, "S1", REMEMBER_MS, *args)

    def open(self):
        check_equal(self.run("open", "secret", "ada", TTL, "")[0], "opened")
        return self

    def renew(self):
        return self.run("renew", "secret")


class Desk:
    """Where clients wait; it lives as long as it beats."""

    def __init__(self, name="D1"):
        self.name = name
        stripe = f"pawl:{{{stripe_of(name):02x}}}"
        self.keys = [stripe, stripe + ":due", f"{stripe}:d:{name}"]
        self.beat("open")

    def beat(self, word="beat"):
        return LIFE.call("lease/scripts/inbox_heartbeat.lua", self.keys, self.name, word)[0]

    def queue(self, lease, lease_id, wid="1", **terms):
        check_equal(acquire(lease, lease_id, desk=self.keys[2], wid=wid, **terms)[0], "queued", lease_id)


def line_of(lease):
    return [one.decode() for one in LIFE.redis("ZRANGE", f"{lease.stripe}:q:{lease.name}", 0, -1)]


def holders(lease):
    """The token and the holder of each hold."""
    return sorted([one[0], one[1]] for one in lease.look()[-1])


# -- a complete one: everything stays

@test
def shared_holds_and_permits_survive_a_complete_restart():
    for kind, terms in MANY.items():
        lease, resource, members = begin()
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
        lease, resource, members = begin()
        session = Session().open()
        ada = granted(lease, "ada", **session.terms, **terms)
        new_life("complete", members)
        check_equal(session.renew()[0], "renewed")
        check_equal(resource.read_fenced(ada)[0], "missing")
        check_equal(acquire(lease, "ada", **session.terms, **terms)[0], "replayed")
        check_equal(session.run("end", "secret", "grant", 100)[0], "ended")
        check_equal(resource.read_fenced(ada)[0], "refused")


@test
def keys_of_a_hold_survive_a_complete_restart():
    lease, _, members = begin()
    granted(lease, "ada", reentrant=True, key="k-1", digest=DIGEST)
    check_equal(acquire(lease, "ada", reentrant=True, key="k-2", digest=DIGEST)[8], 2)
    check_equal(lease.release("ada", key="k-3", digest=DIGEST)[::2], ["left", 1])
    new_life("complete", members)
    check_equal(acquire(lease, "ada", reentrant=True, key="k-2", digest=DIGEST)[::8], ["replayed", 2])
    check_equal(acquire(lease, "ada", reentrant=True, key="k-2", digest="another")[0], "key-reused")
    check_equal(lease.release("ada", key="k-3", digest=DIGEST)[::2], ["left", 1])


@test
def a_grant_that_nobody_has_claimed_can_be_claimed_after_a_complete_restart():
    lease, resource, members = begin()
    desk = Desk()
    granted(lease, "ada")
    desk.queue(lease, "bob")
    lease.release("ada")
    new_life("complete", members)
    check_equal(lease.run("claim", "bob", hold_name("bob"), "grant")[:3:2], ["claimed", 2])
    check_equal(resource.write(Holder(2, EPOCH, hold_name("bob")))[0], "written")


@test
def those_who_wait_keep_their_places_and_are_handed_on_to_after_a_complete_restart():
    lease, _, members = begin()
    desk = Desk()
    granted(lease, "ada")
    for lease_id in ("bob", "cyd"):
        desk.queue(lease, lease_id)
    new_life("complete", members)
    desk.beat()
    check_equal(line_of(lease), ["bob", "cyd"])
    check_equal(lease.release("ada")[0], "released")
    check_equal(lease.run("claim", "bob", hold_name("bob"), "grant")[:4:1][0::2], ["claimed", 101])


# -- an incomplete one: every hold is over

@test
def shared_holds_and_permits_of_before_are_over():
    for kind, terms in MANY.items():
        lease, resource, members = begin()
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
        lease, resource, members = begin()
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
    lease, _, members = begin()
    for i in range(CROWD):
        granted(lease, f"n{i}", mode="shared")
    new_life("incomplete", members)
    desk = Desk()
    reply = acquire(lease, "bob", desk=desk.keys[2], wid="1")
    check(reply[0] in ("granted", "queued"), reply)
    for _ in range(6):
        if lease.run("handoff", "grant")[2] != "more":
            break
    check_equal([name for _, name in holders(lease)], ["bob"])


@test
def a_session_of_before_is_over_and_nothing_can_be_acquired_with_it():
    for terms in ({}, *MANY.values()):
        lease, resource, members = begin()
        session = Session().open()
        ada = granted(lease, "ada", **session.terms, **terms)
        new_life("incomplete", members)
        check_equal(resource.read_fenced(ada)[0], "refused")
        check_equal(lease.renew("ada")[::2], ["lost", "store-restarted"])
        check_equal(acquire(Lease(LIFE, "orders:43"), "bob", **session.terms, **terms)[0], "session-lost")
        check_equal(session.renew()[::2], ["lost", "store-restarted"])
        check_equal(granted(lease, "cyd").epoch, NEW)


@test
def a_session_that_nobody_comes_to_is_swept_and_its_holds_with_it():
    lease, _, members = begin()
    session = Session().open()
    granted(lease, "ada", **session.terms)
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
def keys_of_a_hold_of_before_are_void():
    lease, _, members = begin()
    granted(lease, "ada", reentrant=True, key="k-1", digest=DIGEST)
    acquire(lease, "ada", reentrant=True, key="k-2", digest=DIGEST)
    check_equal(lease.release("ada", key="k-3", digest=DIGEST)[::2], ["left", 1])
    new_life("incomplete", members)
    check_equal(lease.release("ada", key="k-3", digest=DIGEST)[::2], ["lost", "store-restarted"])
    check_equal(lease.release("ada", key="k-3", digest="another")[::2], ["lost", "store-restarted"])
    check_equal(acquire(lease, "ada", reentrant=True, key="k-2", digest="another")[::2], ["over", "store-restarted"])


@test
def a_release_of_before_that_was_done_is_told_as_done_without_its_key():
    lease, _, members = begin()
    granted(lease, "ada")
    check_equal(lease.release("ada", key="k-1", digest=DIGEST)[0], "released")
    new_life("incomplete", members)
    check_equal(lease.release("ada", key="k-1", digest=DIGEST)[0], "released")


@test
def a_grant_of_before_that_nobody_had_claimed_goes_on_and_was_never_a_hold():
    for mode in ({}, *MANY.values()):
        lease, resource, members = begin()
        desk = Desk()
        granted(lease, "ada")
        desk.queue(lease, "bob", **mode)
        desk.queue(lease, "cyd", "2")
        lease.release("ada")
        new_life("incomplete", members)
        desk.beat()
        check_equal(lease.run("claim", "bob", hold_name("bob"), "grant")[0], "lost")
        check_equal(resource.read_fenced(Holder(2, EPOCH, hold_name("bob"), mode.get("mode", "exclusive")))[0], "refused")
        check_equal(lease.run("claim", "cyd", hold_name("cyd"), "grant")[:3:2], ["claimed", 101])
        lease.release("cyd")
        check_equal(granted(lease, "bob").token, 102)


@test
def those_who_waited_before_are_handed_on_to_if_their_desk_lives_and_else_passed_over():
    for lives in (True, False):
        lease, _, members = begin()
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


@test
def who_waited_with_a_session_of_before_is_passed_over():
    lease, _, members = begin()
    desk, session = Desk(), Session().open()
    granted(lease, "ada")
    desk.queue(lease, "bob", **session.terms)
    desk.queue(lease, "cyd", "2")
    new_life("incomplete", members)
    desk.beat()
    lease.look()
    check_equal(lease.run("claim", "cyd", hold_name("cyd"), "grant")[0], "claimed")


@test
def a_lock_delay_counts_after_an_incomplete_restart_and_one_that_ran_goes_on():
    lease, _, members = begin()
    granted(lease, "ada", delay=5000)
    new_life("incomplete", members)
    check_equal(acquire(lease, "bob")[::4], ["held", 5000])
    new_life("incomplete", members)
    LIFE.at(NOW + 4999)
    check_equal(acquire(lease, "bob")[::4], ["held", 1])
    LIFE.at(NOW + 5000)
    granted(lease, "bob")


main()
