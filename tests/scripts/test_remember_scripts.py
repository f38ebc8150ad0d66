#!/usr/bin/python3
"""What is over and remembered: how much it is, and what of it is forgotten early. The bound is the service's."""

from lua_test import STRIPES, Lease, Store, check, check_equal, main, record_packed, test, text
from several import desk_lives, hold_of, wait

STORE = Store()
NOW, REMEMBER, LEAST = 10000000, 600000, 60000


def run(script, lease, *args):
    return STORE.call(f"lease/scripts/{script}.lua", lease.keys, *args)


def early(lease, keep=LEAST, most=100, first=0):
    return run("sweep_early", lease, most, REMEMBER, keep, first)[2:]


def sampled(stripe=0, count=64):
    return STORE.call("lease/scripts/remembered.lua", [STRIPES[stripe]], stripe, REMEMBER, count)[2:]


def remembered(stripe=0, count=64):
    """[(bytes, for how many ms it is over), ...] of some stripes."""
    flat = sampled(stripe, count)[0]
    return list(zip(flat[::2], flat[1::2]))


def begin(name="orders:42"):
    STORE.begin(NOW)
    desk_lives(STORE)
    return Lease(STORE, name)


class Remembering(Lease):
    """A lease of a service that remembers for REMEMBER."""

    def run(self, script, *args):
        return self.store.call(f"lease/scripts/{script}.lua", self.keys, self.name, REMEMBER, *args)


def released(**more):
    lease = Remembering(STORE, begin().name)
    lease.acquire(ttl=5000, **more)
    lease.release(how_many="all")
    return lease


def held():
    lease = released()
    lease.acquire("id-b", ttl=LEAST + 1)
    return lease


def shared():
    lease = released()
    for one in ("id-b", "id-c"):
        lease.acquire(one, hold_of(one), ttl=LEAST + 1, mode="shared")
    lease.release("id-b")
    return lease


def waited_for():
    lease = released()
    lease.acquire("id-b", ttl=5000)
    wait(lease, "id-w")
    lease.release("id-b", may="hold-off")
    return lease


def delayed():
    lease = Remembering(STORE, begin().name)
    lease.acquire(ttl=5000, delay=100000)
    STORE.at(NOW + 5000)
    lease.sweep()
    lease.look()
    STORE.at(NOW)
    return lease


def remembered_for_less():
    """By another service, which says 10 s only: by the time when it is to be forgotten it would be over for long."""
    lease = released()
    lease.set(d=NOW + 10000)
    return lease


def used_again():
    """The keys of a hold that is over are those of the one that has its lease_id now."""
    lease = released(key="key-1", digest="d")
    lease.acquire("id-b", ttl=1000)
    lease.release("id-b")
    lease.acquire("id-a", ttl=LEAST + 1)
    STORE.redis("ZREM", lease.due, lease.name)
    return lease


# A lease, for how long it is over, and whether it is forgotten then.
CASES = [("over for long enough", released, LEAST, True), ("not yet", released, LEAST - 1, False), ("held", held, LEAST, False),
         ("one of many is held", shared, LEAST, False), ("waited for", waited_for, LEAST, False),
         ("delayed", delayed, LEAST + 5000, False), ("its delay is over", delayed, 110000, True),
         ("remembered for less, not yet", remembered_for_less, LEAST - 1, False),
         ("remembered for less", remembered_for_less, LEAST, True), ("its keys are used again", used_again, LEAST, False)]


@test
def what_is_over_for_long_enough_is_forgotten_early_and_nothing_else():
    for what, make, after, goes in CASES:
        lease = make()
        STORE.at(NOW + after)
        before = STORE.dump()
        check_equal(early(lease, keep=1000), [-1, int(goes)], what)
        left = {key: value for key, value in STORE.dump().items() if lease.name in key}
        if goes:
            check_equal((left, STORE.redis("EXISTS", lease.due)), ({}, 0), what)
        else:
            check_equal(STORE.dump(), before, what)


@test
def the_keys_of_a_hold_go_with_it():
    lease = released(key="key-1", digest="d")
    key = f"{lease.stripe}:k:{lease.name}/id-a"
    check_equal(STORE.redis("EXISTS", key), 1)
    STORE.at(NOW + LEAST)
    check_equal((early(lease), STORE.redis("EXISTS", key, lease.due)), ([-1, 2], 0))


@test
def a_step_looks_at_a_bounded_number_and_goes_on_behind_what_stays():
    begin()
    stripe = STRIPES[1]
    for i in range(30):
        over = i % 3 > 0
        STORE.redis("HSET", stripe, f"l:n{i:02}", record_packed(
            {"s": "released" if over else "held", "t": 0, "e": 0, "h": "h", "i": "i", "d": NOW + i + (100 if over else 900000)}))
        STORE.redis("ZADD", stripe + ":due", NOW + i, f"n{i:02}")
    lease = Lease(STORE, "x")
    lease.keys = [stripe, stripe + ":due"]
    check_equal([early(lease, most=12), early(lease, most=12, first=4), early(lease, most=12, first=8)], [[4, 8], [8, 8], [-1, 4]])
    check_equal(sorted(text(STORE.redis("ZRANGE", stripe + ":due", 0, -1))), [f"n{i:02}" for i in range(0, 30, 3)])
    check_equal(early(lease, most=12), [-1, 0])


@test
def a_record_that_another_release_wrote_is_in_nobodys_way():
    lease = released()
    lease.set(Z=1)
    STORE.at(NOW + LEAST)
    check_equal((early(lease), remembered(int(lease.stripe[6:8], 16), 1)), ([-1, 0], []))


@test
def a_sample_says_how_much_is_over_and_for_how_long():
    for what, make, after, goes in CASES[:-1]:
        lease = make()
        STORE.at(NOW + after)
        told = remembered(int(lease.stripe[6:8], 16), 1)
        if goes:
            check_equal(len(told), 1, what)
            true = STORE.redis("MEMORY", "USAGE", lease.history, "SAMPLES", 0) + 400
            check(true / 2 < told[0][0] < true * 2, f"{what}: {told}, really about {true}")
            check(told[0][1] >= LEAST, what)
        else:
            check(all(age < LEAST for _, age in told), f"{what}: {told}")
    lease = released(key="key-1", digest="d")
    check_equal(len(remembered(int(lease.stripe[6:8], 16), 1)), 2, "its keys, too")


@test
def a_sample_counts_what_is_held_exactly_while_it_is_few_and_about_when_it_is_many():
    for what, make, wanted in (("released", released, 0), ("held", held, 1000), ("one of many is held", shared, 1000), ("delayed", delayed, 0)):
        lease = make()
        check_equal(sampled(int(lease.stripe[6:8], 16), 1)[1], wanted, what)
    begin()
    for i in range(1000):  # each fourth is over
        record = {"s": "released" if i % 4 == 0 else "held", "t": 0, "e": 0, "h": "h", "i": "i", "d": NOW + 900000}
        STORE.redis("HSET", STRIPES[5], f"l:n{i:04}", record_packed(record))
        STORE.redis("ZADD", STRIPES[5] + ":due", NOW + 900000, f"n{i:04}")
    counts = []
    for i in range(100):
        STORE.at(NOW + i)
        counts.append(sampled(5, 1)[1])
    check(abs(sum(counts) / 100 - 750000) < 50000 and set(counts) <= {0, 250000, 500000, 750000, 1000000}, counts)


@test
def a_few_of_many_stand_for_all():
    begin()
    for stripe, count in ((5, 1000), (6, 100)):
        for i in range(count):
            STORE.redis("HSET", STRIPES[stripe], f"l:n{i:04}", record_packed(
                {"s": "released", "t": 0, "e": 0, "h": "h", "i": "i", "d": NOW + REMEMBER - 1000 * i}))
            STORE.redis("ZADD", STRIPES[stripe] + ":due", NOW + REMEMBER - 1000 * i, f"n{i:04}")
    one = remembered(6, 1)[0][0] / 25
    told = remembered(0, 64)
    check_equal(len(told), 8)
    check(abs(sum(size for size, _ in told) - one * 1100) < one * 11, told)
    ages = sorted(age for size, age in told if size > one * 100)
    check(all(i * 250000 <= ages[i] < (i + 1) * 250000 for i in range(4)), ages)
    check_equal(remembered(7, 64), [])


main()
