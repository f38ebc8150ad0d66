#!/usr/bin/python3
"""Whose it is: every script that acts for a lease_id or a session, asked by the identity that began it, by another, by nobody,
and by a service that judges nobody (lease/scripts/lib/own_hold.lua); and the fence of who may write with its own holds only."""

import json

from intents import Gateway, open_of, parse, script
from lua_test import EPOCH, REMEMBER_MS, Holder, Lease, Resource, Store, check, check_equal, check_in, main, test, text
from several import DESK, SESSION_ID, All, Ear, Session, desk_lives, hold_of
from several import wait as wait_as

STORE = Store()
NOW, NAME = 1000000, "orders:42"
WAITS = {"desk": DESK, "wid": "1"}
US = "\x1f"


def begin():
    STORE.begin(NOW)
    desk_lives(STORE)
    return Lease(STORE, NAME)


def held(lease=None, lease_id="id-a", **more):
    lease = lease or begin()
    check_equal(lease.acquire(lease_id, hold_of(lease_id), ttl=100000, **more)[0], "granted")
    return lease


def waiting(ttl=100000, **more):
    """Somebody else's hold, and id-w waits behind it."""
    lease = begin()
    with STORE.asking(None):
        held(lease, "id-x")
    check_equal(lease.acquire("id-w", hold_of("id-w"), ttl=ttl, **WAITS, **more)[0], "queued")
    return lease


def offered(**more):
    """It was handed to id-w, which has yet to claim it."""
    lease = waiting(**more)
    with STORE.asking(None):
        check_equal(lease.release("id-x")[0], "released")
    return lease


def ended(how, **more):
    lease = held(**more)
    if how == "released":
        lease.release()
    STORE.at(NOW + 100000)
    with STORE.asking(None):
        lease.look()
    return lease


def many(how=None):
    """id-a has one of two permits; how: had it."""
    lease = held(mode="permits", permits=2)
    with STORE.asking(None):
        held(lease, "id-b", mode="permits", permits=2)
    if how:
        lease.release()
    return lease


def several(queued=False, handed=False):
    leases = All(begin() and STORE, NAME, "a", "b")
    if queued:
        with STORE.asking(None):
            held(leases.leases[1], "id-x")
        wait_as(leases, "id-w", ttl=100000)
    else:
        check_equal(leases.acquire(ttl=100000)[0], "granted")
    if handed:
        with STORE.asking(None):
            leases.leases[1].release("id-x")
    return leases


def session(over=False):
    begin()
    one = Session(STORE)
    check_equal(one.open(ttl=5000)[0], "opened")
    if over:
        STORE.at(NOW + 5000)
        with STORE.asking(None):
            one.look()
    return one


PERMITS = {"mode": "permits", "permits": 2}
# {what: (how it begins, asked by its owner; the call; the word that whoever may gets)}
DEEDS = {
    "renew": (held, Lease.renew, "renewed"),
    "release": (held, Lease.release, "released"),
    "replay": (held, lambda lease: lease.acquire(hold="hold-ccccccc"), "replayed"),
    "re-entry": (held, lambda lease: lease.acquire(hold="hold-ccccccc", reentrant=True), "entered"),
    "another mode": (held, lambda lease: lease.acquire(hold="hold-ccccccc", mode="shared"), "differs"),
    "acquire with a lease_id that had it": (lambda: ended("released"), lambda lease: lease.acquire(hold="hold-ccccccc"), "over"),
    "acquire with one whose hold ran out": (lambda: ended("expired"), lambda lease: lease.acquire(hold="hold-ccccccc"), "over"),
    "renew what ran out": (lambda: ended("expired"), Lease.renew, "lost"),
    "release what was released": (lambda: ended("released"), Lease.release, "released"),
    "renew of one of many": (many, Lease.renew, "renewed"),
    "release of one of many": (many, Lease.release, "released"),
    "replay of one of many": (many, lambda lease: lease.acquire(hold="hold-ccccccc", **PERMITS), "replayed"),
    "renew what was one of many": (lambda: many("released"), Lease.renew, "lost"),
    "acquire with what was one of many": (lambda: many("released"), lambda lease: lease.acquire(hold="hold-ccccccc", **PERMITS), "over"),
    "wait again": (waiting, lambda lease: lease.acquire("id-w", "hold-ccccccc", **WAITS), "queued"),
    "ask without waiting": (waiting, lambda lease: lease.acquire("id-w", "hold-ccccccc"), "held"),
    "claim": (offered, lambda lease: lease.run("claim", "id-w", hold_of("id-w"), "grant"), "claimed"),
    "claim of another request": (offered, lambda lease: lease.run("claim", "id-w", "hold-ccccccc", "grant"), "superseded"),
    "again": (waiting, lambda lease: lease.run("again", "id-w", hold_of("id-w"), "grant", DESK, "2"), "queued"),
    "again of another request": (waiting, lambda lease: lease.run("again", "id-w", "hold-ccccccc", "grant", DESK, "2"), "superseded"),
    "leave late": (offered, lambda lease: lease.run("leave", "id-w", hold_of("id-w"), "grant", "late", 0), "granted"),
    "leave": (waiting, lambda lease: lease.run("leave", "id-w", hold_of("id-w"), "grant", "gone", 0), "left"),
    "take up what was offered": (offered, lambda lease: lease.acquire("id-w", "hold-ccccccc", ttl=100000), "claimed"),
    "replay of several": (several, lambda leases: leases.acquire(hold="hold-ccccccc"), "replayed"),
    "several, waiting again": (lambda: several(queued=True), lambda leases: leases.acquire("id-w", "hold-ccccccc", **WAITS), "queued"),
    "claim of several": (lambda: several(queued=True, handed=True), lambda leases: leases.claim("id-w"), "claimed"),
    "leave of several": (lambda: several(queued=True), lambda leases: leases.leave("gone", "id-w"), "left"),
    "one of several": (several, lambda leases: leases.leases[2].renew(), "renewed"),
    "wait for one of several": (lambda: several(queued=True), lambda leases: leases.leases[2].acquire("id-w", "hold-ccccccc"), "held"),
    "session's renewal": (session, Session.renew, "renewed"),
    "session's look": (session, Session.look, "looked"),
    "session's end": (session, Session.end, "ended"),
    "renewal of a session that is over": (lambda: session(over=True), Session.renew, "lost"),
    "look at a session that is over": (lambda: session(over=True), Session.look, "lost"),
    "acquire through a session": (session, lambda one: Lease(STORE, NAME).acquire(**one.terms()), "granted"),
    "acquire several through a session": (session, lambda one: All(STORE, NAME, "a").acquire(**one.terms()), "granted"),
}


@test
def what_is_anothers_is_not_yours_for_each_script_and_nothing_else_is_told_or_changed():
    for what, (start, deed, word) in DEEDS.items():
        for owner in (None, "", "ada"):
            for asker in (None, "ada", "bob", ""):
                with STORE.asking(owner):
                    one = start()
                with STORE.asking(asker):
                    if owner == "ada" and asker in ("bob", ""):
                        reply = STORE.unchanged_by(lambda deed=deed, one=one: deed(one))
                        check_equal((reply[0], len(reply)), ("not-yours", 2), f"{what}: {owner!r} asked by {asker!r}")
                    else:
                        check_equal(deed(one)[0], word, f"{what}: {owner!r} asked by {asker!r}")


@test
def whose_it_was_is_known_for_as_long_as_anything_of_it_is_and_then_it_is_lost_as_ever():
    with STORE.asking("ada"):
        lease = ended("released")
    with STORE.asking("bob"):
        check_equal(lease.renew()[0], "not-yours")
        held(lease, "id-b")
        check_equal(lease.renew()[::2], ["lost", "unknown"])
    lease = begin()
    with STORE.asking("ada"):
        held(lease)
    with STORE.asking("bob"):
        lease.acquire("id-b", hold_of("id-b"), **WAITS)
    with STORE.asking("ada"):
        check_equal([lease.release(desk=DESK)[0] for _ in "12"], ["handed", "released"])
    with STORE.asking("bob"):
        check_equal((lease.renew()[0], lease.release()[0], lease.release("id-b")[0]), ("not-yours", "not-yours", "released"))
    lease = begin()
    with STORE.asking("ada"):
        held(lease, mode="shared")
    with STORE.asking("bob"):
        held(lease, "id-b", mode="shared")
        check_equal((lease.renew()[0], lease.release("id-b")[0]), ("not-yours", "released"))
        check_equal(lease.renew()[0], "not-yours", "that of bob was the last one that ended")
    with STORE.asking("ada"):
        check_equal((lease.renew("id-b")[0], lease.release()[0]), ("not-yours", "released"))


@test
def a_hold_keeps_who_began_it_and_tells_it_beside_the_holder():
    with STORE.asking("ada"):
        lease = held()
        check_equal(lease.field("I"), "ada")
        for reply in (lease.acquire(hold="hold-ccccccc"), lease.renew()):
            check_equal(reply[11:], ["ada"])
    check_equal(lease.look()[7][0][6:], ["ada"])
    check_equal(lease.list()[3][0][6][0][6], "ada")
    lease.release()
    check_equal([item.split("\t")[3] for item in lease.run("history", "grant")[3]], [f"ada{US}ada"] * 2)
    check_equal((lease.field("s"), lease.field("I"), lease.field("o")), ("released", "ada", None))
    for who in (None, ""):
        with STORE.asking(who):
            lease = held()
            check_equal((lease.field("I"), lease.look()[7][0][6:], lease.renew()[11:]), (None, [], []))
    with STORE.asking("bob"):
        check_equal((lease.renew()[11:], lease.field("I")), ([], None), "what nobody began stays nobody's")


@test
def what_is_waited_for_is_held_by_who_waited_by_whichever_way_it_is_granted():
    with STORE.asking("ada"):
        lease = offered()
        check_equal(lease.run("claim", "id-w", hold_of("id-w"), "grant")[11:], ["ada"])
        lease = waiting(ttl=1000)
    with STORE.asking(None):
        handed = lease.release("id-x", desk=DESK)
    check_equal((handed[0], handed[11:]), ("handed", ["", "1", "id-w", 0, "ada"]))
    check_equal(lease.field("I"), "ada")
    with STORE.asking("ada"):
        leases = several(queued=True, handed=True)
        check_equal([one[11] for one in leases.claim("id-w")[2]], ["ada"] * 3)
        check_equal([one[11] for one in several().acquire()[2]], ["ada"] * 3)
        leases = All(begin() and STORE, NAME, "a")
        check_equal([one[11] for one in leases.acquire()[2]], ["ada"] * 2)
    check_equal([one.field("I") for one in leases.leases], ["ada"] * 2)


@test
def events_say_who_began_the_hold():
    begin()
    STORE.call("lease/scripts/listen.lua", ["pawl:{00}"], 60000)
    ear = Ear(STORE, "pawl:e:" + NAME)
    with STORE.asking("ada"):
        held(Lease(STORE, NAME)).release()
    check_equal([item.split("\t")[3] for item in ear.heard()], [f"ada{US}ada"] * 2)


@test
def a_session_has_the_identity_of_who_opened_it_and_its_holds_that_of_who_asked():
    with STORE.asking("ada"):
        one = session()
        check_equal((one.field("i"), one.renew()[8:], one.look()[8:]), ("ada", ["ada"], ["ada"]))
        check_equal(one.renew("x" * 22)[0], "not-yours", "its secret is another")
    one = session()
    check_equal((one.field("i"), one.renew()[8:]), (None, []))
    with STORE.asking("bob"):
        lease = Lease(STORE, NAME)
        lease.acquire(**one.terms())
        check_equal((lease.field("I"), one.renew()[8:]), ("bob", []))
    check_in(SESSION_ID, one.key)


# -- the fence of who may write with its own holds only

def own(identity, token=1, **more):
    return Holder(token, hold=hold_of("id-a"), mode="exclusive " + identity, **more)


def fenced(owner):
    with STORE.asking(owner):
        return held()


@test
def who_may_write_with_its_own_holds_only_is_refused_with_anothers_and_with_nobodys():
    for owner, asker in ((None, "ada"), ("", "ada"), ("ada", "bob"), ("bob", "ada"), ("ada", "ad"), ("ada", "ada")):
        lease = fenced(owner)
        for deed in (lambda who, to=Resource(lease): to.write(who), lambda who, to=Resource(lease): to.remove(who),
                     lambda who, to=lease: Gateway(STORE).admit(to, who)):
            reply = deed(own(asker))
            if owner == asker:
                check_in(reply[0], ("written", "removed", "sending"), f"{owner} {asker}")
            else:
                check_equal((reply[0], reply[2:]), ("refused", ["not-yours", 1, EPOCH, 0, ""]), f"{owner} {asker}")
        check_equal((lease.refusals, STORE.redis("EXISTS", lease.refusals)), (lease.refusals, int(owner != asker)))


@test
def not_yours_comes_behind_the_fence_and_in_front_of_the_key_and_the_version():
    lease = fenced("ada")
    to = Resource(lease)
    check_equal(to.write(own("ada"), key="k", digest="d")[0], "written")
    check_equal(to.write(own("bob"), key="k", digest="other")[2], "not-yours")
    check_equal(to.write(own("bob"), if_match='"none"')[2], "not-yours")
    check_equal(Resource(lease, "/none").remove(own("bob"))[2], "not-yours")
    check_equal(to.write(own("bob", token=2))[2], "unissued-token")
    with STORE.asking("ada"):
        lease.release()
    check_equal(to.write(own("bob"))[2], "lease-expired")
    held(lease, "id-b")
    check_equal(to.write(own("bob"))[2], "stale-token")
    shared = held(lease=Lease(STORE, "x"), mode="shared")
    holder = Holder(shared.look()[3], hold=hold_of("id-a"), mode="shared bob")
    check_equal(Resource(shared).write(holder)[2], "wrong-mode")
    with STORE.asking(None):
        shared.release()
    check_equal(Resource(shared).write(holder)[2], "stale-token")


@test
def an_open_intent_lets_nothing_through_that_its_own_admission_would_not():
    lease, gate = fenced("ada"), Gateway(STORE)
    opened = gate.admit(lease, own("ada"), "o~")
    check_equal(opened[0], "sending")
    check_equal((gate.check(lease, own("ada"), opened[3])[0], gate.check(lease, own("bob"), opened[3])[0]), ("sending", "missing"))
    queued = gate.admit(lease, own("ada"), "o+")
    check_equal(queued[0], "queued")
    check_equal(gate.promote(lease, own("bob"), queued[3])[::2], ["refused", "not-yours", EPOCH, ""])
    check_equal([one.kind for one in open_of(STORE, lease)], ["o~"], "and it was taken out")


@test
def an_intent_says_who_began_the_hold_and_its_grace_is_what_it_was():
    lease, gate = fenced("ada"), Gateway(STORE)
    first = gate.admit(lease, Holder(1, hold=hold_of("id-a")), unknown="g500")
    check_equal(parse(first[3]).unknown, "g500@ada")
    gate.takeover(lease.stripe, living="")
    with STORE.asking("ada"):
        lease.release()
    held(lease, "id-b")
    newer = Holder(2, hold=hold_of("id-b"))
    check_equal(gate.admit(lease, newer)[0], "queued")
    STORE.at(NOW + 2501)
    check_equal(gate.admit(lease, newer)[0], "sending")
    check_equal([one.unknown for one in open_of(STORE, lease)], ["h"] * 2, "nobody's has nothing behind it")
    check_equal(text(STORE.call(script("intent_list"), [lease.stripe], NAME, "", 10))[0], "listed")


@test
def a_service_that_judges_nobody_writes_and_tells_not_one_byte_more():
    lease = held()
    raw = STORE.redis("HGET", lease.stripe, "l:" + NAME)
    check(b"ada" in raw and b"\x1f" not in raw, raw)
    waits = waiting()
    check_equal("identity" in json.loads(STORE.redis("HGET", f"{waits.stripe}:w:{NAME}", "id-w")), False)
    check_equal(len(Session(STORE).open()), 2)
    check_equal(sorted(text(STORE.redis("HKEYS", Session(STORE).key))), ["c", "d", "e", "g", "l", "o", "s"])
    check(REMEMBER_MS)


main()
