#!/usr/bin/python3
"""Sessions: what every script on one replies, and what their end is to the leases held through them."""

import itertools

from intents import same_stripe
from lua_test import EPOCH, REMEMBER_MS, Holder, Lease, Resource, Store, check, check_equal, main, test
from several import ALARM, DESK, SECRET, SESSION_ID, All, Ear, Session, desk_lives, hold_of, line_of, ring
from several import wait as wait_as

STORE = Store()
NOW, TTL = 1000000, 5000
OF_STRIPE = same_stripe(SESSION_ID, 3, "{:022}")


def begin(ttl=TTL):
    STORE.begin(NOW)
    session = Session(STORE)
    check_equal(session.open(ttl=ttl)[0], "opened")
    desk_lives(STORE)
    return session


def hold(session, name="orders:42", lease_id="id-a", status="granted", **more):
    lease = Lease(STORE, name)
    check_equal(lease.acquire(lease_id, ttl=1000, **session.terms(**more))[0], status)
    return lease


def wait(lease, lease_id="id-w", wid="1", session=None, **more):
    """Somebody waits in line at a desk that lives."""
    terms = {"desk": DESK, "wid": wid, **(session.terms() if session else {}), **more}
    check_equal(lease.acquire(lease_id, hold=hold_of(lease_id), holder="bob", **terms)[0], "queued")


def hand_on(lease):
    return lease.run("handoff", "grant")


def at(now):
    STORE.at(now)
    desk_lives(STORE)


def state(lease):
    """(state, holder or None), as a look tells."""
    looked = lease.look()
    return looked[2], looked[7][0][1] if looked[7] else None


def unclaimed(lease):
    return lease.field("c")


@test
def who_waits_with_a_session_is_offered_the_lease_also_where_it_was_released():
    session = begin()
    lease = hold(session)
    wait(lease, "id-w", "1", session)
    check_equal(lease.release("id-a", desk=DESK)[::3], ["released", DESK])
    check_equal(lease.field("c"), f"{DESK} 1")


# -- the session by itself

@test
def a_session_is_opened_with_what_it_needs_and_no_id_is_given_twice():
    STORE.begin(NOW)
    session = Session(STORE)
    reply, changes = STORE.changed_by(lambda: session.open(meta='{"a":1}'))
    check_equal(reply, ["opened", 1])
    check_equal(changes[session.key][1], {
        "s": "live", "c": SECRET, "o": "ada", "m": '{"a":1}', "l": str(TTL), "g": str(NOW), "d": str(NOW + TTL),
        "e": str(EPOCH)})
    check_equal(changes[session.keys[1]][1], {session.member: NOW + TTL})
    check_equal(len(changes), 2)
    session = begin()
    check_equal(STORE.unchanged_by(lambda: session.run("open", "d" * 22, "eve", 100, ""))[0], "taken")


@test
def a_renewal_and_a_look_tell_all_but_the_secret_and_change_the_deadline_or_nothing():
    session = begin()
    hold(session)
    at(NOW + 3000)
    reply, changes = STORE.changed_by(session.renew)
    check_equal(reply, ["renewed", 2, TTL, TTL, 3000, "ada", "", ["orders:42/id-a"]])
    check_equal(list(changes), [session.key])
    check_equal(session.field("d"), str(NOW + 3000 + TTL))
    session = begin()
    hold(session)
    at(NOW + 1000)
    reply = STORE.unchanged_by(session.look)
    check_equal(reply, ["looked", 1, TTL, TTL - 1000, 1000, "ada", "", ["orders:42/id-a"]])
    check(SECRET not in str(reply), "the secret is told")


@test
def another_secret_changes_nothing_whether_the_session_lives_or_not():
    session = begin()
    lease = hold(session)
    for now in (NOW, NOW + TTL):
        STORE.at(now)
        session.look()
        check_equal(STORE.unchanged_by(lambda: session.renew("x" * 22))[0], "not-yours")
        check_equal(STORE.unchanged_by(lambda: session.end("x" * 22))[0], "not-yours")
        other = Lease(STORE, "other")
        refused = STORE.unchanged_by(lambda o=other: o.acquire("id-b", session=session.key, secret="x" * 22))
        check_equal(refused[0], "not-yours")
    check_equal(lease.look()[2], "free")
    session = begin()
    lease = hold(session)
    wrong = {"session": session.key, "secret": "x" * 22}
    check_equal(STORE.unchanged_by(lambda: lease.acquire("id-a", **wrong))[0], "not-yours")


@test
def a_session_that_nobody_opened_is_unknown():
    STORE.begin(NOW)
    session = Session(STORE)
    for deed in (session.renew, session.look, session.end):
        check_equal(STORE.unchanged_by(deed)[::2], ["lost", "unknown"])
    lease = Lease(STORE, "orders:42")
    check_equal(STORE.unchanged_by(lambda: lease.acquire(**session.terms()))[0], "session-lost")


@test
def an_operator_ends_a_session_without_its_secret_and_hears_how_many_leases_it_held():
    session = begin()
    leases = [hold(session, f"orders:{number}") for number in range(5)]
    leases[0].run("force_release", "grant", "", "")
    STORE.at(NOW + 1)
    with STORE.asking("ops"):
        check_equal(session.end("", most=3)[2:], ["more", 4], "whoever frees them")
        check_equal(state(leases[4]), ("free", None), "in that very step")
        check_equal(session.end("", most=100)[2:], ["", 0])
    check_equal(([session.field("s"), session.renew()[2], session.end("")[2:]]), ["released", "released", ["", 0]])
    session = begin()
    leases = [hold(session, f"orders:{number}") for number in range(3)]
    leases[0].run("force_release", "grant", "", "")
    check_equal(session.end("", most=100)[2:], ["", 2])
    session = begin()
    at(NOW + TTL)
    check_equal(session.end("")[::2], ["lost", "expired"])
    check_equal(Session(STORE, "t" * 22).end("")[::2], ["lost", "unknown"])


@test
def sessions_that_live_are_listed_in_the_order_of_their_ids_with_how_much_they_hold():
    def listed(after="", limit=100, search=""):
        return STORE.call("lease/scripts/session_list.lua", session.keys[:2], after, REMEMBER_MS, limit, search)[2:5]
    session = begin()
    check_equal(session.stripe, Session(STORE, OF_STRIPE[0]).stripe)
    others = [Session(STORE, name) for name in OF_STRIPE]
    with STORE.asking("ann"):
        others[0].open("bob", 3000, '{"a":1}')
    others[1].open(ttl=200)
    check_equal(others[2].open(ttl=9000)[0], "opened")
    others[2].end()
    leases = [hold(session, f"orders:{number}") for number in range(3)]
    leases[0].run("force_release", "grant", "", "")
    taken = Lease(STORE, "orders:9")
    taken.acquire("id-x", hold_of("id-x"), ttl=9000)
    wait(taken, session=session)
    taken.release("id-x")
    check(unclaimed(taken), "it is no hold of the session yet")
    at(NOW + 200)
    wanted = sorted([[session.id, "", "ada", "", TTL, TTL - 200, 200, 2, 1], [others[0].id, "ann", "bob", '{"a":1}', 3000, 2800, 200, 0, 0]])
    reply = listed()
    check_equal(reply, ["", wanted, NOW + 200])
    check_equal(others[1].field("s"), "expired", "found over, and said so")
    check_equal(STORE.unchanged_by(lambda: ["x", int(STORE.redis("HGET", session.stripe, "seq")), listed()])[2], reply)
    check_equal(listed(search=f"0 {session.id}"), reply, "ZSCAN may meet one twice")
    check_equal(listed(limit=1)[:2], [wanted[0][0], wanted[:1]])
    check_equal(listed(after=wanted[0][0])[:2], ["", wanted[1:]])
    many = {f":s:{number:022}": NOW for number in range(300)}
    STORE.redis("ZADD", session.stripe + ":due", *(word for name, score in many.items() for word in (score, name)))
    check_equal(listed()[:2], [f"{95:022}", []], "no more in one step")


@test
def a_long_index_is_searched_in_steps_and_each_session_that_stays_is_listed_once():
    def more(*args):
        number = next(numbers)
        STORE.redis("ZADD", session.stripe + ":due", *(word for i in range(1000) for word in (NOW + TTL, f"job:{number}:{i}")))
        others[0].renew()
        return STORE.call("lease/scripts/session_list.lua", session.keys[:2], args[0], REMEMBER_MS, 2, args[1])[2:]
    session, numbers = begin(), itertools.count()
    others = [Session(STORE, name) for name in OF_STRIPE]
    for one in others:
        one.open(ttl=TTL)
    many = [word for number in range(4000) for word in (NOW, f":s:z{number:021}")]
    STORE.redis("ZADD", session.stripe + ":due", *many)
    after, search, listed, steps = "", "", [], 0
    while (after or not steps) and after[:1] != "z":
        after, items, _, search = more(after, search)
        check(len(search) <= 24 + 48 * 23 - 1 and not (search and items), search)
        listed, steps = listed + [item[0] for item in items], steps + 1
    check_equal(listed, sorted(one.id for one in (session, *others)))
    check(steps > 12, f"{steps} steps for three times 5,000")


@test
def nothing_is_granted_through_a_session_that_is_over_though_nobody_has_noted_it():
    session = begin()
    lease = Lease(STORE, "orders:42")
    lease.acquire("id-x", ttl=60000)
    wait(lease, session=session)
    STORE.at(NOW + TTL - 1)
    hold(session, "another")
    at(NOW + TTL)
    check_equal(Lease(STORE, "third").acquire("id-b", **session.terms())[0], "session-lost")
    check_equal(Lease(STORE, "third").acquire("id-b", desk=DESK, wid="9", **session.terms())[0], "session-lost")
    lease.release("id-x")
    check_equal((unclaimed(lease), state(lease)[0]), (None, "free"), "the waiter's session is over, too")


@test
def what_was_told_to_be_over_never_lives_again_though_the_clock_goes_back():
    for deed in (Session.look, Session.renew, Session.end, Session.sweep):
        session = begin()
        STORE.at(NOW + TTL)
        deed(session)
        STORE.at(NOW)
        check_equal(session.renew()[::2], ["lost", "expired"], deed.__name__)
    session = begin()
    lease = hold(session)
    STORE.at(NOW + TTL)
    check_equal(lease.renew()[::2], ["lost", "session"])
    STORE.at(NOW + TTL - 10)
    check_equal(session.held(), ([], ["orders:42"]))


@test
def a_session_that_is_over_is_remembered_and_then_forgotten_and_one_that_lives_is_looked_at_again():
    session = begin()
    hold(session)
    STORE.at(NOW + TTL)
    session.sweep()
    check_equal(session.due(), NOW + TTL + REMEMBER_MS)
    STORE.at(NOW + TTL + REMEMBER_MS - 1)
    session.sweep()
    check_equal(session.look()[::2], ["lost", "expired"])
    STORE.at(NOW + TTL + REMEMBER_MS)
    session.sweep()
    check_equal(session.look()[::2], ["lost", "unknown"])
    check_equal((session.due(), STORE.redis("EXISTS", session.key, session.holds)), (None, 0))
    session = begin()
    STORE.at(NOW + 4000)
    session.renew()
    STORE.at(NOW + TTL)
    session.sweep()
    check_equal((session.due(), session.look()[0]), (NOW + 4000 + TTL, "looked"))


# -- leases held through it

@test
def a_lease_lives_as_long_as_its_session_and_its_own_ttl_does_not_count():
    session = begin()
    lease = hold(session)
    check_equal(lease.look()[7][0][2], TTL)
    for step in range(1, 5):
        at(NOW + step * 4000)
        check_equal(session.renew()[0], "renewed")
        check_equal(lease.look()[7][0][2], TTL)
    at(NOW + 16000 + TTL - 1)
    check_equal(lease.look()[2], "held")
    at(NOW + 16000 + TTL)
    check_equal(lease.look()[2], "free")
    session = begin()
    at(NOW + 1000)
    granted = Lease(STORE, "orders:42").acquire(ttl=99, **session.terms())
    check_equal((granted[0], granted[4], granted[5]), ("granted", TTL - 1000, TTL))


MODES = ({}, {"mode": "shared"}, {"mode": "permits", "permits": 2})


@test
def a_hold_of_an_expired_session_is_over_for_everybody_before_anything_is_swept():
    for mode in MODES:
        for first in ("renew", "release", "look", "acquire"):
            session = begin()
            lease = hold(session, **mode)
            at(NOW + TTL)
            if first == "renew":
                check_equal(lease.renew()[::2], ["lost", "session"], f"{mode}")
            elif first == "release":
                check_equal(lease.release()[::2], ["lost", "session"], f"{mode}")
            elif first == "look":
                check_equal(state(lease), ("free", None), f"{mode}")
            else:
                check_equal(lease.acquire("id-b", **mode)[0], "granted", f"{mode}")


@test
def the_gateway_refuses_the_token_of_an_expired_session_in_the_same_step_and_ever_after():
    session = begin()
    gate = Resource(hold(session))
    at(NOW + TTL - 1)
    check_equal(gate.write(Holder(1))[0], "written")
    at(NOW + TTL)
    check_equal(gate.write(Holder(1))[2], "lease-expired")
    check_equal(gate.lease.field("v"), "session")
    session = begin()
    lease = hold(session)
    STORE.at(NOW + TTL)
    check_equal(Resource(lease).check(Holder(1))[2], "lease-expired")
    STORE.at(NOW)
    check_equal(lease.renew()[::2], ["lost", "session"])
    check_equal(session.held(), ([], ["orders:42"]), "the session lives, and names it as lost")
    for mode, wanted in zip(MODES, ("lease-expired", "stale-token", "stale-token")):
        for end in (lambda one: at(NOW + TTL), Session.end, lambda one: STORE.redis("DEL", one.key)):
            for deed in ("write", "remove", "read_fenced", "check"):
                session = begin()
                gate = Resource(hold(session, **mode))
                end(session)
                check_equal(getattr(gate, deed)(Holder(1, mode=mode.get("mode", "exclusive")))[2], wanted, f"{mode} {deed}")


@test
def a_lease_of_a_lost_session_is_delayed_from_the_loss_on_and_one_of_a_deleted_session_is_not():
    for mode in MODES:
        for swept in (False, True):
            session = begin()
            at(NOW + 3000)
            lease = hold(session, delay=700, **mode)
            check_equal(session.renew()[0], "renewed")
            lost_at = NOW + 3000 + TTL
            at(lost_at)
            if swept:
                session.look()
            at(lost_at + 300)
            check_equal(state(lease), ("delayed", None), f"{mode} {swept}")
            at(lost_at + 699)
            check_equal(lease.acquire("id-b")[0::4], ["held", 1], f"{mode} {swept}")
            at(lost_at + 700)
            check_equal(lease.acquire("id-b")[0], "granted", f"{mode} {swept}")
        session = begin()
        lease = hold(session, delay=700, **mode)
        session.end()
        check_equal(state(lease), ("free", None), f"{mode}")
    session = begin()
    lease = hold(session, delay=700)
    STORE.redis("DEL", session.key, session.holds)
    at(NOW + 100000)
    check_equal(state(lease), ("delayed", None))
    check_equal(lease.renew()[::2], ["lost", "session"])
    at(NOW + 100700)
    check_equal(state(lease), ("free", None))


@test
def renewing_and_re_entering_a_lease_of_a_session_leave_its_time():
    for mode in MODES:
        session = begin()
        lease = hold(session, **mode)
        at(NOW + 1000)
        reply = STORE.unchanged_by(lambda held=lease: held.renew(ttl=90000))
        check_equal((reply[0], reply[6], reply[7]), ("renewed", TTL, TTL - 1000), f"{mode}")
    session = begin()
    lease = hold(session)
    at(NOW + 1000)
    entered = lease.acquire("id-a", ttl=90000, **session.terms(reentrant=True, own_ttl=True))
    check_equal((entered[0], entered[6], entered[7], entered[8]), ("entered", TTL, TTL - 1000, 2))
    check_equal(lease.release()[::2], ["left", 1])
    check_equal(session.held(), (["orders:42"], []))
    check_equal(lease.release()[0], "released")
    check_equal(session.held(), ([], []))


@test
def a_replay_with_another_session_or_none_differs():
    session = begin()
    other = Session(STORE, "t" * 22)
    other.open()
    lease = hold(session)
    check_equal(hold(session, status="replayed").name, lease.name)
    hold(other, status="differs")
    check_equal(lease.acquire("id-a")[0], "differs")
    plain = Lease(STORE, "plain")
    plain.acquire("id-a")
    hold(session, "plain", status="differs")
    check_equal(session.held(), (["orders:42"], []))
    check_equal(other.held(), ([], []))


@test
def a_session_holds_ten_thousand_leases_and_no_more():
    session = begin()
    for first in range(0, 9999, 1111):
        STORE.redis("HSET", session.holds, *(x for i in range(first, first + 1111) for x in (f"n{i}/{'i' * 22}", "00")))
    check_equal(STORE.redis("HLEN", session.holds), 9999)
    hold(session)
    hold(session, "another", status="session-full")
    hold(session, status="replayed")


# -- what a renewal names

@test
def a_renewal_names_what_is_held_now():
    session = begin()
    names = [f"n{i}" for i in range(300)]
    leases = [hold(session, name) for name in names]
    check_equal(session.held(), (sorted(names), []))
    for lease in leases[:100]:
        check_equal(lease.release()[0], "released")
    check_equal(session.held(), (sorted(names[100:]), []))


@test
def what_was_forced_away_is_named_until_it_is_acquired_anew_with_the_session():
    for mode in MODES:
        session = begin()
        lease, other = hold(session, **mode), hold(session, "other")
        check_equal(lease.run("force_release", "grant", "", "why")[0], "forced")
        for _ in range(2):
            check_equal(session.held(), (["other"], ["orders:42"]), f"{mode}")
        lease.acquire("id-b")
        lease.release("id-b")
        check_equal(session.held(), (["other"], ["orders:42"]), f"{mode}")
        hold(session, lease_id="id-c", **mode)
        check_equal(session.held(), (["orders:42", "other"], []), f"{mode}")
        lease.release("id-c")
        check_equal(session.held(), (["other"], []), f"{mode}")
        other.release()
    session = begin()
    lease = hold(session, mode="permits", permits=2)
    hold(session, lease_id="id-b", mode="permits", permits=2)
    check_equal(session.held(), (["orders:42", "orders:42"], []))
    check_equal(lease.run("force_release", "grant", "1", "")[0], "forced")
    check_equal(session.held(), (["orders:42"], ["orders:42"]))
    session = begin()
    lease = hold(session)
    lease.run("force_release", "grant", "", "")
    lease.acquire("id-x")
    wait(lease, session=session)
    lease.release("id-x")
    check_equal(session.held(), ([], ["orders:42"]))
    check_equal(lease.run("claim", "id-w", "hold-id-w---", "grant")[0], "claimed")
    check_equal(session.held(), (["orders:42"], []))


@test
def a_grant_that_nobody_claimed_yet_is_named_only_after_the_claim_and_leaves_nothing_else():
    for mode in MODES:
        session = begin()
        lease = Lease(STORE, "orders:42")
        lease.acquire("id-x")
        wait(lease, session=session, **mode)
        lease.release("id-x")
        check(STORE.redis("HEXISTS", session.holds, "/orders:42/id-w") == 1, "the grant hangs on no session")
        check_equal(session.held(), ([], []), f"{mode}")
        claimed = lease.run("claim", "id-w", "hold-id-w---", "grant")
        check_equal((claimed[0], claimed[6], claimed[7]), ("claimed", TTL, TTL), f"{mode}")
        check_equal(session.held(), (["orders:42"], []), f"{mode}")
        at(NOW + 4000)
        session.renew()
        check_equal(lease.look()[7][0][2], TTL, f"{mode}: it lives as long as the session")
        check_equal(session.end()[2], "", f"{mode}")
        check_equal(STORE.redis("EXISTS", session.holds), 0, f"{mode}")
    session = begin()
    lease = Lease(STORE, "orders:42")
    lease.acquire("id-x")
    wait(lease, session=session)
    lease.release("id-x")
    at(NOW + 3000)
    hand_on(lease)
    check_equal(STORE.redis("EXISTS", session.holds), 0)
    lease.acquire("id-y")
    wait(lease, session=session)
    lease.release("id-y")
    check_equal(lease.run("force_release", "grant", "", "")[0], "forced")
    check_equal(session.held(), ([], []), "it never was a hold: nobody has lost it")


@test
def what_was_claimed_for_one_that_has_gone_and_keeps_its_place_hangs_on_its_session_as_an_offer():
    for mode in MODES:
        session = begin()
        lease = Lease(STORE, "orders:42")
        lease.acquire("id-x")
        wait(lease, session=session, keep=4000, **mode)
        lease.release("id-x")
        lease.run("claim", "id-w", "hold-id-w---", "grant")
        check_equal(lease.run("leave", "id-w", "hold-id-w---", "grant", "gone", 4000)[0], "left", f"{mode}")
        check_equal((session.held(), STORE.redis("HEXISTS", session.holds, "/orders:42/id-w")), (([], []), 1), f"{mode}")
        reply = lease.acquire("id-w", "hold-again--", **session.terms(**mode))
        check_equal((reply[0], reply[7], session.held()), ("claimed", TTL, (["orders:42"], [])), f"{mode}")
        lease.run("leave", "id-w", "hold-again--", "grant", "gone", 4000)
        check_equal(session.held(), (["orders:42"], []), f"{mode}: it was told")


# -- those who wait

@test
def an_expired_sessions_lease_goes_to_the_next_when_its_alarm_rings():
    for mode in MODES:
        session = begin()
        lease = hold(session, **mode)
        wait(lease)
        rings = int(STORE.redis("ZSCORE", "pawl:{store}:alarm", lease.name))
        check(rings <= NOW + TTL, f"{mode}: the alarm rings at {rings}")
        at(NOW + TTL)
        check_equal(hand_on(lease)[0], "handed-on")
        check_equal(unclaimed(lease), DESK + " 1", f"{mode}")
        check_equal(state(lease), ("held", "bob"), f"{mode}")
    session = begin()
    lease = hold(session)
    wait(lease)
    at(NOW + 4000)
    session.renew()
    at(NOW + TTL)
    hand_on(lease)
    check_equal(int(STORE.redis("ZSCORE", "pawl:{store}:alarm", lease.name)), NOW + 4000 + TTL)
    check_equal(state(lease), ("held", "ada"))


@test
def a_waiter_whose_session_ended_is_passed_over_and_told():
    session = begin()
    lease = Lease(STORE, "orders:42")
    lease.acquire("id-x", ttl=60000)
    wait(lease, "id-1", "1", session)
    wait(lease, "id-2", "2")
    session.end()
    ear = Ear(STORE)
    lease.release("id-x")
    heard = ear.heard()
    check_equal(heard, ["session-lost 1", "granted 2"])
    check_equal(unclaimed(lease), DESK + " 2")


@test
def the_sweep_sets_the_lease_of_a_renewed_session_to_its_new_deadline():
    session = begin()
    for mode in MODES:
        lease = hold(session, "n" + mode.get("mode", ""), **mode)
    at(NOW + 4000)
    session.renew()
    at(NOW + TTL)
    for mode in MODES:
        lease = Lease(STORE, "n" + mode.get("mode", ""))
        check_equal(lease.sweep()[3], 0)
        check_equal(int(STORE.redis("ZSCORE", lease.due, lease.name)), NOW + 4000 + TTL, f"{mode}")
        check_equal(lease.look()[2], "held", f"{mode}")


# -- the end by its owner

@test
def after_the_end_no_lease_is_held_before_any_of_them_was_freed():
    session = begin()
    leases = [hold(session, f"n{i}", **mode) for i, mode in enumerate(MODES)]
    gate = Resource(leases[0])
    session.run("end", SECRET, "grant", 1)
    check_equal(gate.check(Holder(1))[2], "lease-expired")
    for lease in leases:
        check_equal(lease.renew()[::2], ["lost", "released"])


@test
def the_end_frees_its_leases_and_hands_them_on_a_few_at_a_time():
    for mode in MODES:
        session = begin()
        leases = [hold(session, f"n{i}", **mode) for i in range(10)]
        for i, lease in enumerate(leases):
            wait(lease, "id-w", str(i))
        steps = 0
        while session.end(most=4)[2] == "more":
            steps += 1
        check_equal(steps, 2, f"{mode}")
        check_equal([unclaimed(lease) for lease in leases], [f"{DESK} {i}" for i in range(10)], f"{mode}")
        check_equal(STORE.redis("EXISTS", session.holds), 0)
    session = begin()
    lease = hold(session)
    for i in range(70):
        wait(lease, f"id-{i:03}", str(i), mode="shared")
    check_equal(session.end()[2], "")
    check_equal(int(STORE.redis("ZSCORE", "pawl:{store}:alarm", lease.name)), NOW)
    hand_on(lease)
    check_equal(STORE.redis("ZCARD", f"{lease.stripe}:x:{lease.name}"), 70)
    session = begin()
    lease = hold(session, mode="shared")
    lease.acquire("id-b", holder="bob", ttl=60000, mode="shared")
    session.end()
    check_equal(state(lease), ("held", "bob"))
    session = begin()
    lease = hold(session)
    wait(lease)
    session.end(may="hold-off")
    check_equal((unclaimed(lease), state(lease)[0]), (None, "held"))
    check_equal(unclaimed(lease), DESK + " 1", "a look that may grant hands it on")


@test
def a_record_that_another_release_wrote_is_not_in_the_way_of_the_end():
    for ends in (lambda session: session.end(), lambda session: session.sweep()):  # pylint: disable=unnecessary-lambda
        session = begin()
        leases = [hold(session, f"n{i}") for i in range(3)]
        leases[1].set(Z="of tomorrow")
        STORE.at(NOW + TTL)
        ends(session)
        session.sweep()
        check_equal([lease.field("s") for lease in leases], ["session", "held", "session"])
        check_equal((leases[1].field("Z"), STORE.redis("EXISTS", session.holds)), ("of tomorrow", 0))


@test
def a_session_that_was_ended_stays_ended_for_its_secret_as_long_as_it_is_remembered():
    session = begin()
    check_equal(session.end()[::2], ["ended", ""])
    check_equal(STORE.unchanged_by(session.end)[::2], ["ended", ""])
    check_equal(session.renew()[::2], ["lost", "released"])
    check_equal(session.look()[::2], ["lost", "released"])
    STORE.at(NOW + REMEMBER_MS)
    session.sweep()
    check_equal(session.end()[::2], ["lost", "unknown"])


@test
def the_sweep_frees_what_an_end_or_the_deadline_has_left_a_bounded_number_at_a_time():
    session = begin(ttl=86400000)
    leases = [hold(session, f"n{i}") for i in range(150)]
    for i, lease in enumerate(leases):
        wait(lease, "id-w", str(i))
    check_equal(session.end(most=1)[2], "more")
    check_equal(session.due(), NOW)
    swept = [session.sweep(most=7) for _ in range(3)]
    check_equal([one[2] for one in swept[:2]], [7, 7], "it says that it must be run again at once")
    check(swept[2][2] < 7, f"{swept}")
    check_equal([unclaimed(lease) for lease in leases], [f"{DESK} {i}" for i in range(150)])
    check_equal(session.due(), NOW + REMEMBER_MS)
    session = begin()
    leases = [hold(session, f"n{i}", **mode) for i, mode in enumerate(MODES)]
    STORE.at(NOW + TTL)
    session.sweep()
    for lease in leases:
        check_equal(lease.field("s"), "session")
    check_equal(STORE.redis("EXISTS", session.holds), 0)


# -- restarts

@test
def who_waits_is_woken_though_somebody_else_noticed_that_the_session_was_ended():
    session, leases = begin(ttl=600000), All(STORE, "a", "b")
    for i, lease in enumerate(leases.leases):
        check_equal(lease.acquire("id-a", hold_of("id-a"), **session.terms())[0], "granted")
        wait_as(lease, f"w{i}", str(i))
    check_equal(session.run("end", session.secret, "grant", 1)[::2], ["ended", "more"])  # one of the two is handed on
    STORE.at(NOW + 10)
    check_equal(leases.acquire("id-z")[0], "held")
    check_equal([int(STORE.redis("ZSCORE", ALARM, one.name)) for one in leases.leases if line_of(one)], [NOW + 10])
    at(NOW + 10)
    check_equal(len(ring(STORE)), 1)
    check_equal(leases.states(), {"a": ("held", "w0"), "b": ("held", "w1")})


@test
def a_session_that_was_told_to_be_lost_lives_no_more_though_the_clock_steps_back():
    for is_all in (False, True):
        session, leases = begin(), All(STORE, "a", "b")
        held = Lease(STORE, "c")
        held.acquire("id-c", hold_of("id-c"), **session.terms())
        at(NOW + 5000)
        told = (leases if is_all else leases.home).acquire("id-a", hold_of("id-a"), **session.terms())
        check_equal(told[0], "session-lost")
        check_equal(int(STORE.redis("ZSCORE", session.stripe + ":due", session.member)), NOW + 5000)
        at(NOW + 4990)
        check_equal(session.run("renew", session.secret)[::2], ["lost", "expired"])
        check_equal(held.renew("id-c")[::2], ["lost", "session"])
        check_equal(leases.home.acquire("id-b", hold_of("id-b"), **session.terms())[0], "session-lost")


main()
