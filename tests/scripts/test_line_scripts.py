#!/usr/bin/python3
"""Waiting, sharing, re-entry: what the scripts of one lease do when more than one wants it."""

from lua_test import EMPTY, EPOCH, REMEMBER_MS, STRIPES, TOKEN_LAST, Lease, RedisError, Store, check, check_equal, main, stripe_do, test, text
from several import ALARM, DESK, All, Ear, desk_lives, desk_of, desk_says, hold_of, line_of, ring, wait

STORE = Store()
NOW = 1000000
CLAIM_MS, DESK_MS = 3000, 3000
OTHER_DESK = "pawl:{08}:d:desk-2"


def begin(name="orders:42"):
    """An empty store, and a desk that lives."""
    STORE.begin(NOW)
    desk_lives(STORE)
    return Lease(STORE, name)


def held(name="orders:42", **more):
    """Held by id-a."""
    lease = begin(name)
    check_equal(lease.acquire("id-a", hold_of("id-a"), **more)[0], "granted")
    return lease


def at(ms, *desks):
    """The store's time; these desks say that they live."""
    STORE.at(NOW + ms)
    for desk in desks:
        desk_lives(STORE, desk)


def ask(lease, lease_id, **more):
    return lease.acquire(lease_id, hold_of(lease_id), lease_id, **more)


def claim(lease, lease_id, hold=None):
    return lease.run("claim", lease_id, hold or hold_of(lease_id), "grant")


def leave(lease, lease_id, how="late", hold=None, keep=0):
    return lease.run("leave", lease_id, hold or hold_of(lease_id), "grant", how, keep)


def hand_on(lease, may="grant"):
    return lease.run("handoff", may)


def alarm_of(lease):
    score = text(STORE.redis("ZSCORE", ALARM, lease.name))
    return None if score is None else int(score)


def holders(lease):
    """Who holds, claimed or not."""
    return [one[1] for one in lease.look()[7]]


def ends(lease):
    """What the history says: (type, token)."""
    return [tuple(item.split("\t")[1:3]) for item in lease.happened()]


def only_stripes_are_left(lease, after_ms):
    at(after_ms)
    lease.sweep()
    check_equal(sorted(set(STORE.dump()) - {DESK, OTHER_DESK}), EMPTY)


# -- waiting

@test
def one_who_may_wait_gets_in_line_and_one_who_may_not_is_told_who_holds():
    lease = held()
    check_equal(STORE.unchanged_by(lambda: ask(lease, "id-b")), ["held", 1, 1, "ada", 1000])
    reply, changes = STORE.changed_by(lambda: ask(lease, "id-c", desk=DESK, wid="7"))
    check_equal(reply, ["queued", 2])
    tag = lease.stripe
    check_equal(sorted(changes), sorted([f"{tag}:q:{lease.name}", f"{tag}:w:{lease.name}", lease.key, ALARM]))
    check_equal((changes[ALARM][1], lease.look()[6]), ({lease.name: NOW + 1000}, 1))


@test
def release_hands_the_lease_to_the_first_in_line_and_wakes_nobody_else():
    lease, ear = held(), None
    for i, lease_id in enumerate(("id-b", "id-c", "id-d")):
        wait(lease, lease_id, str(i))
    ear = Ear(STORE)
    reply, changes = STORE.changed_by(lambda: lease.release("id-a"))
    # Who releases is told as well.
    check_equal((reply, ear.heard()), (["released", 5, "", DESK, "granted 0"], ["granted 0"]))
    check_equal((holders(lease), line_of(lease)), (["id-b"], ["id-c", "id-d"]))
    check_equal(ends(lease), [("granted", "1"), ("released", "1"), ("granted", "2")])
    check(changes[lease.stripe][1]["counter"] == "2", "one token")


@test
def what_expires_is_handed_on_when_the_alarm_rings_in_the_step_that_finds_it():
    lease = held()
    wait(lease, "id-b")
    at(999, DESK)
    check_equal((ring(STORE), holders(lease)), ([], ["ada"]))
    at(1000, DESK)
    check_equal((ring(STORE), holders(lease)), ([lease.name], ["id-b"]))
    check_equal(ends(lease), [("granted", "1"), ("expired", "1"), ("granted", "2")])


@test
def every_script_that_finds_the_hold_over_hands_the_lease_on():
    deeds = {"acquire": lambda lease: ask(lease, "id-z"), "renew": lambda lease: lease.renew("id-a"),
             "release": lambda lease: lease.release("id-a"), "look": Lease.look, "sweep": Lease.sweep, "hand_on": hand_on,
             "leave": lambda lease: leave(lease, "id-x"), "claim": lambda lease: claim(lease, "id-x"),
             "force": lambda lease: lease.run("force_release", "grant", 99, "")}
    for name, deed in deeds.items():
        lease, ear = held(), Ear(STORE)
        wait(lease, "id-b")
        at(1000, DESK)
        deed(lease)
        check_equal((ear.heard(), lease.field("i"), line_of(lease)), (["granted 1"], "id-b", []), name)


@test
def a_newcomer_does_not_overtake_the_line_even_where_it_would_fit():
    lease = held()
    wait(lease, "id-b")
    at(1000, DESK)
    check_equal(ask(lease, "id-z")[0], "held")
    lease = held()
    wait(lease, "id-b")
    at(1000, DESK)
    check_equal(ask(lease, "id-z", desk=DESK, wid="9")[0], "queued")
    check_equal((holders(lease), line_of(lease)), (["id-b"], ["id-z"]))
    lease = begin()  # a lock delay: free, but nobody's
    ask(lease, "id-a", delay=5000)
    at(1000, DESK)
    wait(lease, "id-b")
    at(6000, DESK)
    check_equal(ask(lease, "id-z")[:3:2], ["held", 2], "it went to the one who waits")
    lease = begin()
    ask(lease, "id-a", mode="shared")
    wait(lease, "id-w")
    check_equal(ask(lease, "id-r", mode="shared")[0], "held")
    check_equal(ask(lease, "id-r", mode="shared", desk=DESK, wid="2")[0], "queued")
    lease.release("id-a")
    check_equal(holders(lease), ["id-w"])


@test
def the_claim_makes_a_hold_of_a_grant_for_its_whole_ttl():
    lease = held()
    wait(lease, "id-b", ttl=700, meta='{"a":1}')
    lease.release("id-a")
    at(100)
    check_equal(lease.renew("id-b")[::2], ["lost", "unknown"], "not before the claim")
    check_equal(lease.release("id-b")[::2], ["lost", "unknown"], "not before the claim")
    check_equal(claim(lease, "id-b"), ["claimed", 4, 2, EPOCH, hold_of("id-b"), "id-b", 700, 700, 1, '{"a":1}', "exclusive"])
    check_equal((lease.field("d"), STORE.dump()[lease.due][lease.name]), (str(NOW + 800), NOW + 800))
    at(799)
    check_equal(lease.renew("id-b")[0], "renewed")


@test
def a_grant_that_nobody_claims_goes_on_to_the_next_after_three_seconds_and_was_never_a_hold():
    lease, ear = held(), Ear(STORE)
    wait(lease, "id-b", "1")
    wait(lease, "id-c", "2")
    lease.release("id-a")
    at(CLAIM_MS - 1, DESK)
    ring(STORE)
    check_equal(holders(lease), ["id-b"])
    at(CLAIM_MS, DESK)
    check_equal((ring(STORE), holders(lease), ear.heard()), ([lease.name], ["id-c"], ["granted 1", "granted 2"]))
    check_equal(claim(lease, "id-b"), ["lost", lease.seq(), "unknown"])
    check_equal(ends(lease)[2:], [("granted", "2"), ("returned", "2"), ("granted", "3")])
    lease = held()
    wait(lease, "id-b")
    lease.release("id-a")
    at(CLAIM_MS)
    check_equal(lease.look()[2], "free")
    check_equal(claim(lease, "id-b")[::2], ["lost", "unknown"])
    check_equal(lease.release("id-b")[::2], ["lost", "unknown"])
    check_equal(ask(lease, "id-b")[0], "granted", "no hold-over: its lease_id may be used")
    jobs = held("jobs")
    wait(All(STORE, "never-held", "jobs"), "id-b")
    jobs.release("id-a")
    at(CLAIM_MS)
    lease = Lease(STORE, "never-held")
    check_equal((lease.look()[2], ask(lease, "id-b")[0]), ("free", "granted"), "it was never a hold's")


@test
def nobody_at_a_dead_desk_is_handed_anything_or_gets_in_line_and_the_dead_are_taken_out():
    lease = held(ttl=60000)
    desk_lives(STORE, OTHER_DESK)
    wait(lease, "id-b", "1")
    wait(lease, "id-c", "2", desk=OTHER_DESK)
    at(DESK_MS, OTHER_DESK)
    lease.release("id-a")
    check_equal(holders(lease), ["id-b"], "silent for no longer than it may be")
    lease = held(ttl=60000)
    desk_lives(STORE, OTHER_DESK)
    wait(lease, "id-b", "1")
    wait(lease, "id-c", "2", desk=OTHER_DESK)
    at(DESK_MS + 1, OTHER_DESK)
    lease.release("id-a")
    check_equal((holders(lease), line_of(lease)), (["id-c"], []))
    lease = held(ttl=60000)
    wait(lease, "id-b", "1")
    STORE.redis("DEL", DESK)
    lease.release("id-a")
    check_equal((lease.look()[2], line_of(lease), alarm_of(lease)), ("free", [], None))
    lease = held()
    at(0, OTHER_DESK)
    at(DESK_MS + 1, OTHER_DESK)
    lease.renew("id-a")
    lease.acquire("id-b", hold_of("id-b"), ttl=9000)
    check_equal(STORE.unchanged_by(lambda: ask(lease, "id-c", desk=DESK, wid="1")), ["desk-gone", lease.seq()])
    check_equal(ask(lease, "id-c", desk="pawl:{00}:d:nobody", wid="1")[0], "desk-gone")


@test
def the_second_of_one_lease_id_takes_the_place_over_and_the_first_is_told():
    lease, ear = held(), Ear(STORE)
    wait(lease, "id-b", "1")
    wait(lease, "id-c", "2")
    reply = lease.acquire("id-b", "hold-second-", "again", desk=DESK, wid="3")
    check_equal((reply[0], ear.heard(), line_of(lease)), ("queued", ["superseded 1"], ["id-b", "id-c"]))
    check_equal(leave(lease, "id-b")[0], "superseded", "the first")
    lease.release("id-a")
    check_equal(ear.heard(), ["granted 3"])
    check_equal(claim(lease, "id-b")[0], "superseded", "the first")
    check_equal(claim(lease, "id-b", "hold-second-")[0], "claimed")
    lease, ear = begin(), Ear(STORE)
    ask(lease, "id-a", mode="shared")
    wait(lease, "id-w", "1")
    check_equal(lease.acquire("id-w", "hold-second-", "w", mode="shared", desk=DESK, wid="2")[0], "queued")
    check_equal((ring(STORE), ear.heard()), ([lease.name], ["superseded 1", "granted 2"]))


@test
def a_second_request_is_handed_what_the_first_has_not_claimed():
    for mode in ({}, {"mode": "shared"}):
        lease, ear = held(), Ear(STORE)
        wait(lease, "id-b", "1", **mode)
        lease.release("id-a")
        reply = lease.acquire("id-b", "hold-second-", "again", **mode)
        check_equal(reply[:1] + reply[4:5], ["claimed", "hold-second-"])
        check_equal((ear.heard(), claim(lease, "id-b")[0]), (["granted 1", "superseded 1"], "superseded"))
        check_equal(leave(lease, "id-b", "gone")[0], "superseded")
        check_equal(lease.field("h"), "hold-second-", "by this the gateway knows it")
        check_equal(lease.release("id-b", "hold-second-")[0], "released")
        only_stripes_are_left(lease, REMEMBER_MS + 1)


@test
def leaving_in_every_state():
    lease = held()
    wait(lease, "id-b")
    reply, changes = STORE.changed_by(lambda: leave(lease, "id-b"))
    check_equal(reply, ["left", 3, "", 1, "ada", 1000, "", 0], "in line: who holds")
    check_equal((line_of(lease), alarm_of(lease), lease.field("w")), ([], None, None))
    check_equal(STORE.unchanged_by(lambda: leave(lease, "id-b")), reply, "not in line any more")

    for how, wanted in (("late", "granted"), ("gone", "left")):
        lease, ear = held(), Ear(STORE)
        wait(lease, "id-b", "1"), wait(lease, "id-c", "2")
        lease.release("id-a")
        check_equal(leave(lease, "id-b", how)[0], wanted, "granted")
        check_equal(ear.heard(), ["granted 1"] + (["granted 2"] if how == "gone" else []))
        check_equal(claim(lease, "id-b")[0], "claimed" if how == "late" else "lost", how)
    check_equal(ends(lease)[3:], [("returned", "2"), ("granted", "3")])

    check_equal(leave(begin(), "id-b"), ["left", 0, "", 0, "", 0, "", 0], "nothing is known of the lease")
    lease = begin()
    ask(lease, "id-a", mode="shared")
    wait(lease, "id-w", "1"), wait(lease, "id-r", "2", mode="shared")
    leave(lease, "id-w")
    check_equal(sorted(holders(lease)), ["id-a", "id-r"])


@test
def who_leaves_gives_back_a_claimed_hold_only_if_nobody_was_told_of_it():
    heard = {"nobody": lambda lease: None, "replay": lambda lease: ask(lease, "id-b"), "renew": lambda lease: lease.renew("id-b"),
             "re-entry": lambda lease: ask(lease, "id-b", reentrant=True)}
    for name, hear in heard.items():
        lease = held()
        wait(lease, "id-b")
        lease.release("id-a")
        check_equal(claim(lease, "id-b")[0], "claimed")
        hear(lease)
        check_equal(leave(lease, "id-b", "gone")[0], "left" if name == "nobody" else "superseded", name)
        check_equal(lease.look()[2], "free" if name == "nobody" else "held", name)


# -- a release where who is first stands

def handed(*waiters, **more):
    """id-a has released at the desk where id-b is first in line, and the others behind it."""
    lease = held()
    for i, lease_id in enumerate(("id-b", *waiters)):
        wait(lease, lease_id, str(i + 1), **more)
    reply = lease.release("id-a", desk=DESK)
    check_equal(reply[0], "handed")
    return lease, reply


def again(lease, lease_id, desk=OTHER_DESK, wid="9", hold=None):
    return lease.run("again", lease_id, hold or hold_of(lease_id), "grant", desk, wid)


@test
def a_release_grants_to_who_is_first_at_its_own_desk_in_its_own_step_claimed_and_untold():
    lease = held()
    wait(lease, "id-b", "1", ttl=60000, meta='{"a":1}'), wait(lease, "id-c", "2")
    ear = Ear(STORE)
    check_equal(lease.release("id-a", desk=DESK),
                ["handed", 4, 2, EPOCH, hold_of("id-b"), "id-b", 60000, 60000, 1, '{"a":1}', "exclusive", "", "1", "id-b", 0])
    check_equal((ear.heard(), line_of(lease)), ([], ["id-c"]))
    check_equal((lease.field("c"), lease.field("d"), lease.field("t")), ("", str(NOW + 60000), "2"))
    check_equal(ends(lease), [("granted", "1"), ("released", "1"), ("granted", "2")])
    at(59999, DESK)
    ring(STORE)
    check_equal((lease.renew("id-b")[0], lease.field("c")), ("renewed", None), "it is a hold")
    check_equal(lease.release("id-b", desk=DESK)[::12], ["handed", "2"])
    check_equal((lease.release("id-c", desk=DESK), line_of(lease)), (["released", lease.seq(), ""], []), "nobody waits")


@test
def whoever_else_is_first_is_offered_the_lease():
    cases = {"at another desk": {"desk": OTHER_DESK}, "shared": {"mode": "shared"}, "permits": {"mode": "permits", "permits": 2},
             "a long ttl": {"ttl": 60001}, "several": {"all": ["jobs"]}}
    for name, terms in cases.items():
        lease, others, desk = held(), terms.pop("all", []), terms.get("desk", DESK)
        desk_lives(STORE, OTHER_DESK)
        wait(All(STORE, lease.name, *others) if others else lease, "id-b", "1", **terms)
        ear = Ear(STORE, desk)
        reply, many = lease.release("id-a", desk=DESK), "id-b" if "mode" in terms else None
        check_equal((reply[0], reply[3:], ear.heard()), ("released", [desk, "granted 1"], ["granted 1"]), name)
        check_equal((lease.field("c", many), lease.field("d", many)), (f"{desk} 1", str(NOW + CLAIM_MS)), name)
    for may in ("full", "hold-off"):
        lease = held()
        wait(lease, "id-b")
        check_equal((lease.release("id-a", may=may, desk=DESK)[0], line_of(lease)), ("released", ["id-b"]), may)
    lease = held()
    wait(lease, "id-b", "1"), at(DESK_MS + 1)  # the lease's ttl is over, too
    check_equal((lease.release("id-a", desk=DESK)[0], holders(lease), line_of(lease)), ("lost", [], []), "a dead desk")
    lease = held()
    wait(lease, "id-b")
    check_equal((lease.release("id-x", desk=DESK)[0], lease.release("id-a")[0]), ("lost", "released"), "no desk is named")


@test
def what_a_release_has_granted_is_claimed_again_under_its_own_name_and_given_back_until_somebody_was_told():
    lease, _ = handed("id-c")
    check_equal(leave(lease, "id-b", "late")[0], "granted")
    at(100, DESK)
    for _ in range(2):
        check_equal(claim(lease, "id-b")[::7], ["claimed", 900], "its time goes on")
    check_equal((leave(lease, "id-b", "gone")[0], holders(lease)), ("left", ["id-c"]))
    check_equal(ends(lease)[2:], [("granted", "2"), ("returned", "2"), ("granted", "3")])
    check_equal(ask(lease, "id-b", desk=DESK, wid="8")[0], "queued", "it never was a hold")

    lease, _ = handed("id-c")
    check_equal(lease.acquire("id-b", "hold-second-", "id-b")[:5:4], ["replayed", hold_of("id-b")], "a second request")
    check_equal(leave(lease, "id-b", "gone")[0], "superseded", "it was told")
    check_equal((claim(lease, "id-b")[0], claim(lease, "id-b", "hold-second-")[0]), ("claimed", "superseded"))


@test
def who_is_asked_for_after_a_lost_reply_has_it_or_stands_in_its_place_elsewhere():
    lease, _ = handed("id-c", "id-d")
    desk_lives(STORE, OTHER_DESK)
    check_equal(again(lease, "id-b")[:5:4], ["claimed", hold_of("id-b")])
    check_equal((again(lease, "id-c"), line_of(lease)), (["queued", lease.seq()], ["id-c", "id-d"]), "in its place")
    check_equal(again(lease, "id-c", hold="hold-another")[0], "superseded", "a second request waits there")
    check_equal((again(lease, "id-x"), line_of(lease)), (["lost", lease.seq(), "unknown"], ["id-c", "id-d"]), "it waits no more")
    ear = Ear(STORE, OTHER_DESK)
    check_equal(lease.release("id-b", desk=DESK)[3:], [OTHER_DESK, "granted 9"], "a release that runs late grants nothing there")
    check_equal((ear.heard(), holders(lease), claim(lease, "id-c")[0]), (["granted 9"], ["id-c"], "claimed"))

    lease = held()
    wait(lease, "id-b")
    at(1000, DESK, OTHER_DESK)
    ear = Ear(STORE, OTHER_DESK)
    check_equal((again(lease, "id-b")[0], ear.heard()), ("queued", ["granted 9"]), "the lease is free by now")


@test
def a_grant_that_comes_back_was_no_hold_and_the_one_before_it_is_the_last_again():
    for desk, more in (("", {}), ("", {"mode": "shared"}), (DESK, {})):
        lease = held()
        wait(lease, "id-b", **more)
        lease.release("id-a", desk=desk)
        check_equal((leave(lease, "id-b", "gone")[0], lease.look()[2]), ("left", "free"))
        check_equal((ask(lease, "id-a")[::2], lease.renew("id-a")[::2]), (["over", "released"], ["lost", "released"]), desk + f"{more}")
        check_equal([lease.release("id-a", hold)[0] for hold in ("", hold_of("id-a"), hold_of("id-b"))], ["released", "released", "lost"])
        check_equal(ask(lease, "id-b")[0], "granted")
        check_equal((lease.release("id-b")[0], lease.release("id-a")[0]), ("released", "lost"))
        only_stripes_are_left(lease, REMEMBER_MS + 1)
    lease = held()
    wait(lease, "id-b")
    at(1000, DESK)
    ring(STORE)
    at(1000 + CLAIM_MS, DESK)
    check_equal((ring(STORE), lease.renew("id-a")[::2], ask(lease, "id-a")[0]), ([], ["lost", "expired"], "over"))


@test
def who_released_is_told_so_again_also_while_the_one_has_it_to_whom_it_was_handed_on():
    for desk in ("", DESK):  # offered, or granted in the release's step
        lease = held()
        wait(lease, "id-b")
        lease.release("id-a", desk=desk)
        for _ in ("no answer has named it", "held, and renewed"):
            for hold, word in (("", "released"), (hold_of("id-a"), "released"), (hold_of("id-b"), "lost")):
                check_equal(STORE.unchanged_by(lambda lease=lease, hold=hold: lease.release("id-a", hold, desk=DESK))[0], word, desk)
            check_equal((lease.renew("id-a")[::2], ask(lease, "id-a", desk=DESK, wid="7")[::2]), (["lost", "released"], ["over", "released"]))
            check_equal((holders(lease), line_of(lease)), (["id-b"], []))
            claim(lease, "id-b"), lease.renew("id-b")
        check_equal((lease.release("id-b")[0], lease.release("id-a")[0]), ("released", "lost"))


# -- places that outlive their connection

def places(lease):
    """{lease_id: until when its place is kept}, since NOW."""
    flat = text(STORE.redis("ZRANGE", f"{lease.stripe}:p:{lease.name}", 0, -1, "WITHSCORES"))
    return {flat[i]: int(flat[i + 1]) - NOW for i in range(0, len(flat), 2)}


def kept(keep=4000, **more):
    """id-a holds; id-b has left and keeps its place in front of id-c, who waits at OTHER_DESK."""
    lease = held(ttl=100000)
    desk_lives(STORE, OTHER_DESK)
    wait(lease, "id-b", "1", keep=keep, **more), wait(lease, "id-c", "2", desk=OTHER_DESK)
    check_equal(leave(lease, "id-b", keep=keep), ["left", lease.seq(), "", 1, "ada", 100000, "", keep])
    check_equal((line_of(lease), places(lease)), (["id-b", "id-c"], {"id-b": keep}))
    return lease


@test
def a_kept_place_is_offered_the_lease_for_three_seconds_and_never_granted_in_a_releases_step():
    lease, ear = kept(), Ear(STORE)
    check_equal((lease.release("id-a", desk=DESK)[0], holders(lease), ear.heard()), ("released", ["id-b"], ["granted 1"]))
    check_equal((lease.field("d"), line_of(lease), places(lease)), (str(NOW + CLAIM_MS), ["id-c"], {}))
    at(CLAIM_MS, DESK, OTHER_DESK)
    check_equal((ring(STORE), holders(lease)), ([lease.name], ["id-c"]))
    check_equal(ask(lease, "id-b", desk=DESK, wid="3", keep=4000)[0], "queued", "it never was a hold")

    lease = kept()
    lease.release("id-a", desk=DESK)
    at(2999, DESK)
    check_equal(lease.acquire("id-b", "hold-second-", "id-b")[:5:4], ["claimed", "hold-second-"], "it has come back")


@test
def look_tells_who_is_in_line_since_when_and_until_when():
    told = lambda: [lease.run("look", "grant")[12] for lease in (first, second)]
    first = held(ttl=100000)
    second = Lease(STORE, "orders:43")
    wait(first, "id-b", "1", wait=500, keep=4000)
    at(10, DESK)
    check_equal(ask(first, "id-c", desk=DESK, wid="2", mode="shared")[0], "queued")
    check_equal(told(), [[["id-b", "", "exclusive", NOW, NOW + 500], ["id-c", "", "shared", NOW + 10, 0]], []])
    at(400, DESK)
    leave(first, "id-b", keep=4000)
    check_equal(told()[0][0], ["id-b", "", "exclusive", NOW, NOW + 4400], "its place is kept")
    wait(first, "id-b", "3", wait=600, keep=4000)
    check_equal(told()[0][0], ["id-b", "", "exclusive", NOW, NOW + 1000], "it is the same place")
    both = All(STORE, "orders:42", "orders:43")
    wait(both, "id-d", "4", wait=50)
    at(430, DESK)
    wait(both, "id-d", "5", wait=50)
    check_equal([one[-1] for one in told()], [["id-d", "", "exclusive", NOW + 400, NOW + 480]] * 2)
    for number in range(120):
        ask(first, f"id-{number}", desk=DESK, wid=str(10 + number))
    check_equal((len(told()[0]), first.look()[6]), (100, 123))


@test
def the_same_lease_id_takes_its_place_up_again_at_whatever_desk():
    lease = kept()
    check_equal(ask(lease, "id-b")[0], "held", "one who does not wait changes nothing")
    check_equal(places(lease), {"id-b": 4000})
    check_equal(lease.acquire("id-b", "hold-second-", "id-b", desk=OTHER_DESK, wid="7", keep=50)[0], "queued")
    check_equal((line_of(lease), places(lease)), (["id-b", "id-c"], {}))
    check_equal(lease.release("id-a", desk=OTHER_DESK)[::12], ["handed", "7"], "and it is there")


@test
def a_place_is_taken_up_again_whatever_keeps_newcomers_out():
    many = {"mode": "permits", "permits": 2}
    for what in ("mismatch", "held-off", "ceiling"):
        lease = held(ttl=100000)
        wait(lease, "id-p", "1", mode="permits", permits=3), wait(lease, "id-b", "2", keep=4000, **many)
        lease.release("id-a"), claim(lease, "id-p")
        may = "hold-off" if what == "held-off" else "grant"
        if what != "mismatch":
            leave(lease, "id-b", keep=4000)
            stripe_do(STORE.redis, "HSET", lease.stripe, "ceiling", 2 if what == "ceiling" else TOKEN_LAST)
            lease.release("id-p", may=may)
        check_equal((lease.look(may)[2], line_of(lease)), ("held" if what == "mismatch" else "free", ["id-b"]), what)
        check_equal(ask(lease, "id-z", desk=DESK, wid="3", may=may, mode="permits", permits=2)[0], what)
        check_equal(lease.acquire("id-b", "hold-second-", "id-b", may=may, desk=DESK, wid="4", keep=4000, **many)[0], "queued", what)
        check_equal((line_of(lease), places(lease)), (["id-b"], {}), what)


@test
def a_place_is_kept_for_as_long_as_it_was_asked_for_and_then_passed_over_and_not_kept_again():
    for when, first in ((3999, "id-b"), (4000, "id-c")):
        lease = kept()
        at(when, DESK, OTHER_DESK)
        lease.release("id-a", desk=DESK)
        check_equal((holders(lease), places(lease)), ([first], {}), when)
    lease = kept()
    wait(lease, "id-d", "3", keep=5000)
    leave(lease, "id-d", keep=5000)
    check_equal(lease.acquire("id-b", "hold-second-", "id-b", desk=OTHER_DESK, wid="7")[0], "queued")
    for when, left in ((4999, ["id-b", "id-c", "id-d"]), (5000, ["id-b", "id-c"])):
        at(when, DESK, OTHER_DESK)
        ring(STORE)
        check_equal((line_of(lease), lease.look()[6]), (left, len(left)), "also while it is held, and behind others")

    lease = held()
    wait(lease, "id-b", "1")
    check_equal((leave(lease, "id-b", keep=0)[7], line_of(lease)), (0, []), "it was not asked for")
    lease = held()
    wait(lease, "id-b", "1", keep=4000)
    check_equal((leave(lease, "id-b", "gone", keep=0)[7], line_of(lease), places(lease)), (0, [], {}), "it may not have it any more")
    lease = kept(keep=50)
    at(50, OTHER_DESK)
    check_equal((leave(lease, "id-b", "gone", keep=50)[7], line_of(lease), places(lease)), (0, ["id-c"], {}))


@test
def a_place_outlives_its_desk_for_as_long_as_that_is_known_to_have_lived():
    for ends_at, how in ((DESK_MS, "silent"), (-1, "closed")):
        for late, wanted in ((0, ["id-b"]), (1, ["id-c"])):
            lease = held(ttl=100000)
            desk_lives(STORE, OTHER_DESK)
            wait(lease, "id-b", "1", keep=4000), wait(lease, "id-c", "2", desk=OTHER_DESK)
            if how == "closed":
                desk_says(STORE, DESK, "close")
            at(ends_at + 4000 - 1 + late, OTHER_DESK)
            lease.release("id-a", desk=DESK)
            check_equal(holders(lease), wanted, f"{how}, {late}")
    lease = held()
    wait(lease, "id-b", "1", keep=4000)
    STORE.redis("DEL", DESK)
    check_equal((lease.release("id-a")[0], holders(lease)), ("released", []), "nobody knows when it lived")


@test
def what_was_granted_to_one_that_has_gone_and_keeps_its_place_is_offered_to_it():
    lease, _ = handed("id-c", keep=4000)
    check_equal((leave(lease, "id-b", "gone", keep=4000)[0], lease.field("d")), ("left", str(NOW + CLAIM_MS)))
    check_equal((holders(lease), lease.renew("id-b")[0], claim(lease, "id-b", "hold-another")[0]), (["id-b"], "lost", "superseded"))
    at(1000, DESK)
    check_equal(lease.acquire("id-b", "hold-second-", "id-b")[:5:4], ["claimed", "hold-second-"])
    check_equal(lease.field("d"), str(NOW + 2000))
    lease, _ = handed("id-c", keep=4000)
    leave(lease, "id-b", "gone", keep=4000)
    at(CLAIM_MS, DESK)
    check_equal((ring(STORE), holders(lease), ends(lease)[3]), ([lease.name], ["id-c"], ("returned", "2")))
    lease = held()
    wait(lease, "id-b", keep=4000)
    lease.release("id-a")
    at(1000, DESK)
    check_equal((leave(lease, "id-b", "gone", keep=4000)[0], lease.field("d")), ("left", str(NOW + CLAIM_MS)), "an offer stays one")


@test
def so_many_places_of_a_lease_are_kept_and_no_more():
    lease = held(ttl=100000)
    for i in range(1002):
        wait(lease, f"id-{i}", "1", keep=60000 if i else 10)
    check_equal([leave(lease, f"id-{i}", keep=60000)[7] for i in (0, 1)], [10, 60000])
    STORE.redis("ZADD", f"{lease.stripe}:p:{lease.name}", *(one for i in range(2, 1000) for one in (NOW + 60000, f"id-{i}")))
    check_equal((leave(lease, "id-1000", keep=60000)[7], len(line_of(lease))), (0, 1001))
    at(10, DESK)
    check_equal((leave(lease, "id-1001", keep=60000)[7], len(line_of(lease))), (60000, 1000), "one that is over makes room")


@test
def nothing_is_handed_on_while_grants_are_held_off_or_no_token_may_be_given():
    lease = held()
    wait(lease, "id-b")
    check_equal(lease.release("id-a", may="hold-off")[0], "released")
    check_equal((lease.look(may="hold-off")[2], line_of(lease), alarm_of(lease)), ("free", ["id-b"], NOW + 1000))
    check_equal(ask(lease, "id-z")[0], "held")
    check_equal(holders(lease), ["id-b"])
    lease = held()
    wait(lease, "id-b")
    stripe_do(STORE.redis, "HSET", lease.stripe, "ceiling", 1)
    lease.release("id-a")
    check_equal((line_of(lease), alarm_of(lease)), (["id-b"], NOW + 50))
    stripe_do(STORE.redis, "HSET", lease.stripe, "ceiling", TOKEN_LAST)
    at(50, DESK)
    check_equal((ring(STORE), holders(lease)), ([lease.name], ["id-b"]))


@test
def a_long_line_is_handed_on_in_steps_and_nobody_is_forgotten():
    lease = held()
    for i in range(200):
        wait(lease, f"r{i:03d}", str(i), mode="shared")
    reply, steps = lease.release("id-a"), 1
    while reply[2] == "more":
        check_equal(alarm_of(lease), NOW, "an alarm too, if whoever was told dies")
        reply, steps = hand_on(lease), steps + 1
    check_equal((len(holders(lease)), line_of(lease)), (200, []))
    check(3 <= steps <= 8, f"{steps} steps")
    at(CLAIM_MS)
    for _ in range(10):
        hand_on(lease)
    check_equal(lease.look()[2], "free", "all of them returned")
    only_stripes_are_left(lease, CLAIM_MS + REMEMBER_MS + 1)


@test
def a_crowd_of_the_dead_is_taken_out_in_steps():
    lease = held(ttl=60000)
    desk_lives(STORE, OTHER_DESK)
    for i in range(2500):
        ask(lease, f"d{i}", desk=OTHER_DESK, wid=str(i))
    wait(lease, "id-b")
    at(DESK_MS + 1, DESK)
    check_equal(lease.release("id-a")[2], "more")
    check_equal((hand_on(lease)[2], hand_on(lease)[2], holders(lease)), ("more", "", ["id-b"]))


@test
def who_left_or_joined_in_a_long_line_costs_no_more_commands_than_in_a_short_one():
    seen = []
    for size in (10, 2000):
        lease = held(ttl=60000)
        for i in range(size):
            ask(lease, f"w{i}", desk=DESK, wid=str(i))
        seen.append([STORE.commands_of(deed)[0] for deed in (
            lambda: ask(lease, "new", desk=DESK, wid="x"), lambda: leave(lease, f"w{size // 2}"), lambda: lease.release("id-a"))])
    check_equal(seen[1], seen[0])


# -- shared, permits

@test
def permits_are_never_more_than_said_and_each_expires_for_itself():
    lease = begin()
    check_equal([ask(lease, one, mode="permits", permits=2, ttl=ttl)[0] for one, ttl in (("a", 500), ("b", 900), ("c", 900))],
                ["granted", "granted", "held"])
    check_equal(ask(lease, "d", mode="permits", permits=3)[::2], ["mismatch", 2])
    check_equal(ask(lease, "e", mode="shared")[0], "held")
    wait(lease, "c", "1", mode="permits", permits=2)
    wait(lease, "f", "2", mode="permits", permits=2)
    at(500, DESK)
    check_equal((ring(STORE), sorted(holders(lease)), line_of(lease)), ([lease.name], ["b", "c"], ["f"]))
    check_equal(lease.renew("a")[::2], ["lost", "expired"])
    claim(lease, "c")
    check_equal(lease.release("c")[0], "released")
    check_equal(sorted(holders(lease)), ["b", "f"])
    lease = begin()
    ask(lease, "a", mode="shared", ttl=500), ask(lease, "b", mode="shared", ttl=800)
    check_equal((lease.field("d"), STORE.dump()[lease.due][lease.name]), (str(NOW + 500), NOW + 500))
    lease.renew("a", 2000)
    check_equal((lease.field("d"), STORE.dump()[lease.due][lease.name]), (str(NOW + 800), NOW + 500), "early, never late")
    at(800)
    check_equal(lease.sweep()[2:], [1, 1])
    check_equal((holders(lease), STORE.dump()[lease.due][lease.name]), (["a"], NOW + 2000))


@test
def one_of_many_that_released_may_say_so_again_also_when_a_grant_has_come_back():
    lease = begin()
    ask(lease, "a", mode="shared"), ask(lease, "b", mode="shared")
    check_equal(lease.release("a", hold_of("a"))[0], "released")
    check_equal([lease.release("a")[0], lease.release("a", hold_of("a"))[0]], ["released", "released"])
    check_equal(lease.release("a", hold_of("b"))[::2], ["lost", "unknown"])
    check_equal(ask(lease, "a", mode="shared")[::2], ["over", "released"])
    lease.release("b")
    check_equal([lease.release("b", hold_of("b"))[0], lease.release("a")[0]], ["released", "lost"])
    check_equal(ask(lease, "c")[0], "granted")
    check_equal(lease.release("c", hold_of("c"))[0], "released")
    lease = begin()
    ask(lease, "a", mode="permits", permits=2), ask(lease, "b", mode="permits", permits=2)
    wait(lease, "c", "1", mode="permits", permits=2)
    lease.release("a")
    check_equal(leave(lease, "c", "gone")[0], "left")
    check_equal(lease.release("a")[0], "released")
    lease.release("b")
    only_stripes_are_left(lease, REMEMBER_MS + 1)


@test
def what_a_look_at_many_told_to_be_over_never_lives_again_nor_do_those_that_were_too_many_to_end():
    for tell in (Lease.look, Lease.list, lambda one: ask(one, "z"), Lease.sweep, lambda one: one.renew("a")):
        lease = begin()
        ask(lease, "a", mode="shared", ttl=500), ask(lease, "b", mode="shared", ttl=5000)
        at(500)
        tell(lease)
        at(0)
        check_equal((holders(lease), lease.renew("a")[0]), (["b"], "lost"))
    lease = begin()
    for i in range(70):
        ask(lease, f"r{i}", mode="shared", ttl=500)
    at(500)
    check_equal(lease.look()[7], [])
    at(0)
    check_equal((lease.look()[7], lease.renew("r69")[0], ask(lease, "new")[0]), ([], "lost", "granted"))


@test
def more_lapsed_holds_than_one_script_ends_let_nobody_in_before_all_are_ended():
    lease = begin()
    for i in range(150):
        ask(lease, f"p{i}", mode="permits", permits=150, ttl=500)
    at(500)
    check_equal(ask(lease, "new", mode="permits", permits=150)[0], "held")
    check_equal(lease.look()[7], [], "all of them are over")
    check_equal(ask(lease, "new", mode="permits", permits=150)[0], "granted")
    check_equal(len(ends(lease)) > 0 and lease.look()[7][0][1], "new")
    check_equal(STORE.redis("ZCARD", f"{lease.stripe}:x:{lease.name}"), 1)


@test
def who_holds_is_listed_though_more_lapsed_holds_stand_in_front_of_it_than_one_script_ends():
    lease = begin()
    for i in range(150):
        ask(lease, f"p{i}", mode="permits", permits=150, ttl=5000 if i == 7 else 500)
    at(500)
    for holder in ("", "p7"):
        check_equal([(one[0], one[1], [who[0] for who in one[6]]) for one in lease.list(holder=holder)[3]], [(lease.name, "held", [8])], holder)


# -- lock delay

@test
def a_lock_delay_after_expiry_keeps_all_out_and_the_lease_remembered():
    lease = begin()
    ask(lease, "id-a", delay=2000)
    wait(lease, "id-b")
    at(1500, DESK)  # found half a second late: it counts from the deadline
    ring(STORE)
    check_equal((lease.look()[2], ask(lease, "id-z")), ("delayed", ["held", lease.seq(), 1, "", 1500]))
    check_equal(alarm_of(lease), NOW + 2500, "nobody is granted, and who is first is looked after")
    at(2500, DESK)
    at(2999, DESK)
    check_equal((ring(STORE), lease.look()[2]), ([lease.name], "delayed"))
    at(3000, DESK)
    check_equal((ring(STORE), holders(lease)), ([lease.name], ["id-b"]))
    lease = begin()
    ask(lease, "id-a", delay=10000)
    at(1000)
    lease.sweep()
    at(10999)
    check_equal((lease.sweep()[2], ask(lease, "id-b")[0]), (0, "held"))
    only_stripes_are_left(lease, 11000)


@test
def the_delay_of_one_of_many_holds_for_all_and_a_list_knows_of_one_that_nobody_has_noted():
    lease = begin()
    ask(lease, "a", mode="shared", ttl=500, delay=2000), ask(lease, "b", mode="shared", ttl=60000)
    at(500)
    check_equal(ask(lease, "c", mode="shared")[0], "held")
    lease.release("b")
    check_equal((ask(lease, "c")[0], lease.look()[2], lease.list(state="delayed")[3][0][:2]),
                ("held", "delayed", [lease.name, "delayed"]))
    at(2500)
    check_equal(ask(lease, "c")[0], "granted")
    check_equal(lease.field("b"), None)
    lease = begin()
    ask(lease, "id-a", delay=60000)
    at(1000)
    check_equal([one[0] for one in lease.list(state="delayed")[3]], [lease.name])
    check_equal(lease.list(state="held")[3], [])
    check_equal((lease.field("s"), lease.field("v")), ("held", "expired"))


# -- re-entry and Idempotency-Keys

@test
def re_entry_counts_up_and_release_counts_down():
    lease = held()
    at(400)
    reply = ask(lease, "id-a", reentrant=True)
    check_equal(reply[:1] + reply[2:], ["entered", 1, EPOCH, hold_of("id-a"), "ada", 1000, 1000, 2, "", "exclusive"])
    check_equal(ask(lease, "id-a")[8], 2, "a replay does not count")
    check_equal(ask(lease, "id-a", reentrant=True, own_ttl=True, ttl=300)[6:9], [300, 300, 3])
    at(500)
    check_equal(ask(lease, "id-a", reentrant=True)[6:9], [300, 300, 4], "who says no ttl keeps the one of before")
    check_equal([lease.release("id-a")[::2] for _ in range(3)] + [lease.release("id-a")[0] for _ in range(2)],
                [["left", 3], ["left", 2], ["left", 1], "released", "released"])
    lease = held()
    ask(lease, "id-a", reentrant=True)
    check_equal([lease.release("id-a", how_many="all")[0], lease.look()[2]], ["released", "free"])


@test
def a_retried_request_with_a_key_counts_once_and_another_under_it_is_refused():
    for more in ({}, {"mode": "shared"}):
        lease = begin()
        ask(lease, "id-a", key="k1", digest="d1", **more)
        check_equal(ask(lease, "id-a", reentrant=True, key="k1", digest="d1", **more)[::8], ["replayed", 1], "its first grant")
        for _ in range(2):
            check_equal(ask(lease, "id-a", reentrant=True, key="k2", digest="d2", **more)[8], 2)
        check_equal(STORE.unchanged_by(lambda: ask(lease, "id-a", reentrant=True, key="k2", digest="x", **more))[0], "key-reused")
        for _ in range(2):
            check_equal(lease.release("id-a", key="k3", digest="d3")[::2], ["left", 1])
        check_equal(lease.release("id-a", key="k2", digest="d3")[0], "key-reused")
        for _ in range(2):
            check_equal(lease.release("id-a", key="k4", digest="d4")[0], "released")
        check_equal(lease.release("id-a", key="k3", digest="d3")[::2], ["left", 1], "also when it is over")
        only_stripes_are_left(lease, REMEMBER_MS)
    lease = held()
    check_equal(ask(lease, "id-a", key="k", digest="d")[0], "replayed")
    check_equal(ask(lease, "id-a", reentrant=True, key="k", digest="other")[0], "key-reused")
    lease.release("id-a")
    only_stripes_are_left(lease, REMEMBER_MS)


@test
def a_thousand_keys_are_kept_and_no_more_and_those_of_one_that_holds_again_are_not_forgotten_under_it():
    lease = held()
    for i in range(1000):
        ask(lease, "id-a", reentrant=True, key=f"k{i}", digest="d")
    check_equal(STORE.unchanged_by(lambda: ask(lease, "id-a", reentrant=True, key="more", digest="d"))[0], "keys-full")
    check_equal(STORE.unchanged_by(lambda: lease.release("id-a", key="more", digest="d"))[0], "keys-full")
    check_equal(lease.release("id-a", how_many="all")[0], "released")
    only_stripes_are_left(lease, REMEMBER_MS)
    lease = begin()
    ask(lease, "id-a", key="k1", digest="d1")
    lease.release("id-a")
    ask(lease, "id-b"), lease.release("id-b")
    ask(lease, "id-a", key="k2", digest="d2", ttl=50000)
    at(REMEMBER_MS)
    lease.sweep()
    check_equal(ask(lease, "id-a", reentrant=True, key="k2", digest="d2")[8], 1)
    lease.release("id-a")
    at(4 * REMEMBER_MS)
    lease.sweep()
    only_stripes_are_left(lease, 6 * REMEMBER_MS)


# -- force-release

@test
def an_administrator_ends_every_hold_or_the_one_with_the_token_however_many_they_are():
    lease, ear = held(), Ear(STORE)
    wait(lease, "id-b")
    check_equal(STORE.unchanged_by(lambda: lease.run("force_release", "grant", 9, "x"))[:1], ["moved-on"])
    check_equal(lease.run("force_release", "grant", 1, "stuck")[::3], ["forced", 1])
    check_equal((ear.heard(), lease.renew("id-a")[::2]), (["granted 1"], ["lost", "forced"]))
    check_equal(lease.happened()[1].split("\t")[1:3] + ["stuck"], ["forced", "1", "stuck"])
    check_equal(lease.run("force_release", "grant", "", "")[::3], ["forced", 2], "one that is not claimed, too")
    check_equal(claim(lease, "id-b")[::2], ["lost", "forced"])
    check_equal(lease.run("force_release", "grant", "", "")[::3], ["forced", 0])
    check_equal(lease.run("force_release", "grant", 2, "")[:3:2], ["moved-on", 2])
    check_equal(begin().run("force_release", "grant", 1, "")[:3], ["moved-on", 0, 0])
    lease = begin()
    for i in range(600):
        ask(lease, f"r{i}", mode="shared", ttl=1000 + i)
    check_equal(lease.run("force_release", "grant", 600, "")[::3], ["forced", 600])
    check_equal((lease.renew("r599")[::2], lease.renew("r598")[0]), (["lost", "forced"], "renewed"))
    replies = [lease.run("force_release", "grant", "", "") for _ in range(3)]
    check_equal([reply[2] for reply in replies], ["rest", "rest", ""])
    check_equal(lease.look()[2], "free")
    only_stripes_are_left(lease, REMEMBER_MS + 1)


# -- what is void, and what is forgotten

@test
def a_void_hold_is_over_whatever_the_clock_does_and_is_ended_as_it_was_found():
    lease = held()
    lease.set(v="expired")  # as the gateway says it
    check_equal((lease.renew("id-a")[::2], lease.look()[2]), (["lost", "expired"], "free"))
    check_equal(lease.field("v"), None)
    lease = begin()
    ask(lease, "id-a", mode="shared"), ask(lease, "id-b", mode="shared")
    lease.set("id-a", v="expired")
    check_equal((lease.renew("id-a")[::2], holders(lease)), (["lost", "expired"], ["id-b"]))
    check_equal(ask(lease, "id-a", mode="shared")[0], "over")


@test
def a_lease_that_somebody_waits_for_is_not_forgotten_and_afterwards_it_is():
    lease = held()
    wait(lease, "id-b", ttl=1000)
    lease.release("id-a", may="hold-off")
    for second in range(1, 20):
        at(second * 1000, DESK)
        lease.sweep(may="hold-off")
    check_equal(line_of(lease), ["id-b"])
    leave(lease, "id-b")
    only_stripes_are_left(lease, 22000)


@test
def a_desk_that_fell_silent_is_swept_away_and_one_that_lives_stays():
    def left_by_sweeps():
        for desk in desks:
            STORE.call("lease/scripts/sweep.lua", [desk[:9], desk[:9] + ":due"], 10, REMEMBER_MS, "grant")
        return [desk in STORE.dump() for desk in desks]

    begin()
    desks = lives, silent = desk_of("one"), desk_of("two")
    check_equal([desk_says(STORE, desk, "open") for desk in desks], ["beats"] * 2)
    for ms in range(3000, 60001, 3000):
        at(ms)
        check_equal(desk_says(STORE, lives), "beats")
    check_equal(left_by_sweeps(), [True, True], "a place may be kept that was there")
    for ms in (120001, 180002):
        at(ms)
        check_equal(left_by_sweeps(), [ms < 180000, False], ms)
    check_equal((desk_says(STORE, silent), desk_says(STORE, lives, "close"), desk_says(STORE, lives)), ("late", "closed", "late"))
    STORE.redis("DEL", DESK)
    check_equal(sorted(STORE.dump()), EMPTY)


@test
def alarms_that_are_due_are_told_in_order_and_when_the_next_one_is():
    lease = begin()
    alarm = lambda most=100: STORE.call("lease/scripts/alarm.lua", [lease.stripe, ALARM], most)  # noqa: E731
    check_equal(alarm(), ["alarms", 0, -1, []])
    STORE.redis("ZADD", ALARM, NOW - 5, "b", NOW, "a", NOW + 7, "c")
    check_equal(STORE.unchanged_by(alarm), ["alarms", 0, 7, ["b", "a"]])
    check_equal(alarm(1)[3], ["b"])
    check_equal(Lease(STORE, "a").run("handoff", "grant")[0], "handed-on")
    check_equal(sorted(STORE.dump()[ALARM]), ["b", "c"], "of a lease that nobody waits for")


@test
def only_stripes_with_something_to_sweep_are_named_and_naming_them_changes_nothing():
    begin()
    look = lambda first=64, index="due": STORE.call("shared/member/scripts/due.lua", [STRIPES[first]], first, 64, index)  # noqa: E731
    for stripe, index, at in ((63, "due", NOW), (64, "due", NOW), (65, "due", NOW + 1), (66, "gone", NOW - 1), (127, "due", 5)):
        STORE.redis("ZADD", f"{STRIPES[stripe]}:{index}", at, "a", NOW + 9, "b")
    check_equal(STORE.unchanged_by(look), ["due", 0, [64, 127]])
    check_equal((look(64, "gone"), look(0), look(128)), (["due", 0, [66]], ["due", 0, [63]], ["due", 0, []]))
    STORE.redis("EXPIRE", STRIPES[70], 1000)
    STORE.redis("DEL", STRIPES[71])
    STORE.redis("SET", f"{STRIPES[72]}:due", "no index")
    check_equal(STORE.unchanged_by(look), ["due", 0, [64, 70, 71, 72, 127]], "for the sweep to cure, or to speak of")


@test
def a_script_that_meets_full_memory_tells_nobody_anything():
    lease = held()
    wait(lease, "id-b", "1"), wait(lease, "id-c", "2")
    lease.release("id-a")
    ear, before = Ear(STORE), STORE.dump()
    for deed in (lambda: lease.acquire("id-b", "hold-second-", "again"),
                 lambda: lease.acquire("id-c", "hold-second-", "again", desk=DESK, wid="3")):
        STORE.redis("CONFIG", "SET", "maxmemory", 1)
        try:
            deed()
            check(False, "it went through")
        except RedisError as error:
            check("OOM" in str(error), str(error))
        finally:
            STORE.redis("CONFIG", "SET", "maxmemory", 0)
        check_equal((STORE.dump(), ear.heard()), (before, []))


@test
def a_desk_that_nobody_listens_at_does_not_live():
    store = Store()
    store.begin()
    desk, other = desk_of("D9"), desk_of("D9x")
    check_equal(desk_says(store, desk, "open"), "beats")
    store.ears("PUNSUBSCRIBE", "pawl:{*}:d:*")
    check_equal(desk_says(store, desk), "late")
    check_equal(text(store.redis("HGET", desk, "at")), str(NOW - DESK_MS - 1), "it lived until just now")
    check_equal((desk_says(store, other, "open"), store.redis("EXISTS", other)), ("late", 0))


main()
