#!/usr/bin/python3
"""What a review found: promises that were broken where two things that are right by themselves met."""

from lua_test import REMEMBER_MS, Lease, Store, check_equal, main, stripe_of, test, text
from several import ALARM, All, Ear, desk_lives, hold_of, line_of, ring, wait

STORE = Store()
NOW, CLAIM_MS = 1000000, 3000


def some(*names):
    STORE.begin(NOW)
    desk_lives(STORE)
    return All(STORE, *names)


def at(now):
    STORE.at(now)
    desk_lives(STORE)


def released(leases, lease_id):
    for lease in leases.leases:
        check_equal(lease.release(lease_id)[0], "released", lease.name)


def all_held_by(leases, lease_id):
    check_equal(leases.states(), {one.name: ("held", lease_id) for one in leases.leases})


def history(lease):
    """(what, token, holder) of all that happened, oldest first."""
    return [tuple(item.split("\t")[1:4]) for item in lease.happened()]


class Session:
    def __init__(self, ttl, name="s" * 22, secret="c" * 22):
        self.stripe, self.member, self.name, self.secret = f"pawl:{{{stripe_of(name):02x}}}", f":s:{name}", name, secret
        self.key = self.stripe + self.member
        check_equal(self.run("open", secret, "ada", ttl, "")[0], "opened")

    def run(self, script, *args):
        return STORE.call(f"lease/scripts/session_{script}.lua", [self.stripe, self.stripe + ":due", self.key], self.name,
                          REMEMBER_MS, *args)

    def terms(self):
        return {"session": self.key, "secret": self.secret}


# -- who has been told keeps what he was told

@test
def a_retry_that_was_told_of_all_keeps_them_when_the_request_of_before_is_gone():
    leases = some("a", "b")
    leases.acquire("id-x")
    wait(leases, "id-a")
    released(leases, "id-x")
    check_equal(leases.claim("id-a")[0], "claimed")
    told = leases.acquire("id-a", hold="hold-again--")
    check_equal((told[0], [one[4] for one in told[2]]), ("replayed", [hold_of("id-a")] * 2))
    check_equal(leases.leave("gone", "id-a")[0], "superseded")
    all_held_by(leases, "id-a")
    check_equal([lease.renew("id-a")[0] for lease in leases.leases], ["renewed"] * 2)


# -- what one lease's line is handed, the others' lines have too: the script reads them again

@test
def what_goes_back_goes_to_the_next_for_all_and_nobody_overtakes_him_in_the_line_of_the_second():
    for second, third in (({}, {}), ({"mode": "shared"}, {}), ({}, {"mode": "shared"})):
        leases = some("a", "b")
        b = leases.leases[1]
        leases.acquire("id-x")
        wait(leases, "w1", "1")
        wait(leases, "w2", "2", **second)
        wait(b, "w3", "3", **third)
        released(leases, "id-x")
        ear = Ear(STORE)
        check_equal(leases.leave("gone", "w1")[0], "left")
        check_equal((ear.heard(), leases.lines()), (["granted 2"], {"a": [], "b": ["w3"]}), f"{second} {third}")
        ear.close()
        check_equal(b.run("claim", "w3", hold_of("w3"), "grant")[0], "lost")
        check_equal([one[2] for one in leases.claim("w2")[2]], [3, 3])
        check_equal(history(b), [("granted", "1", "ada"), ("released", "1", "ada"), ("granted", "2", "w1"),
                                 ("returned", "2", "w1"), ("granted", "3", "w2")])


@test
def what_is_granted_as_another_leaves_whose_time_is_up_is_not_ended_in_the_same_step():
    leases = some("a", "b")
    leases.acquire("id-x", ttl=1000)
    wait(leases, "w1", "1")
    wait(leases, "w2", "2")
    at(NOW + 1000)
    ear = Ear(STORE)
    check_equal(leases.leave("late", "w1")[0], "left")
    check_equal(ear.heard(), ["granted 2"])
    ear.close()
    all_held_by(leases, "w2")
    for lease in leases.leases:
        check_equal(history(lease), [("granted", "1", "ada"), ("expired", "1", "ada"), ("granted", "2", "w2")], lease.name)
    check_equal([one[2] for one in leases.claim("w2")[2]], [2, 2])


@test
def what_is_granted_as_another_claims_too_late_is_not_ended_in_the_same_step():
    leases = some("a", "b")
    leases.acquire("id-x")
    wait(leases, "w1", "1")
    wait(leases, "w2", "2")
    released(leases, "id-x")
    at(NOW + CLAIM_MS)
    ear = Ear(STORE)
    check_equal(leases.claim("w1")[0], "lost")
    check_equal(ear.heard(), ["granted 2"])
    ear.close()
    all_held_by(leases, "w2")
    for lease in leases.leases:
        check_equal(history(lease)[2:], [("granted", "2", "w1"), ("returned", "2", "w1"), ("granted", "3", "w2")],
                    lease.name)
    check_equal([one[2] for one in leases.claim("w2")[2]], [3, 3])


# -- sessions

@test
def who_waits_is_woken_though_somebody_else_noticed_that_the_session_was_ended():
    leases = some("a", "b")
    session = Session(ttl=600000)
    for i, lease in enumerate(leases.leases):
        check_equal(lease.acquire("id-a", hold_of("id-a"), **session.terms())[0], "granted")
        wait(lease, f"w{i}", str(i))
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
        leases = some("a", "b")
        session = Session(ttl=5000)
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


if __name__ == "__main__":
    main()
