#!/usr/bin/python3
"""The check `mark`: what was let through is all that counts, and it is never forgotten."""

from intents import ROUTES, Gateway, close, grant, parse, same_stripe, script, texts_of
from lua_test import EPOCH, RECORD, Holder, Lease, Resource, Store, check, check_equal, main, test

STORE = Store()
NOW, MARKS_MAX, MARKS_KEPT = 1000000, 4096, 3584


def begin():
    """A gateway, and a lease of which this store knows nothing."""
    STORE.begin(NOW)
    STORE.redis("HSET", RECORD, "routes", ROUTES)
    return Gateway(STORE), Lease(STORE, "orders:42")


def one(token, hold=None, epoch=EPOCH, mode="exclusive"):
    return Holder(token, epoch, hold or f"hold-{token:07}", mode)


def admit(gate, lease, holder, kind="a"):
    return gate.admit(lease, holder, kind, check="mark")


def passes(gate, lease, holder, mark=None):
    """It is let through; the mark is then that of it, or this one."""
    reply = admit(gate, lease, holder)
    check_equal([reply[0], reply[2]], ["sending", mark or holder.token], f"{holder.token}")
    close(STORE, ("close", lease, reply[3]))


def reads(gate, lease, holder, mark):
    check_equal(gate.read(lease, holder, check="mark")[::2], ["accepted", mark], f"{holder.token}")


def refused(gate, lease, holder, reason, mark, epoch=EPOCH, deeds="wr"):
    """Both a write and a read, and nothing is changed."""
    wanted = ["refused", lease.seq(), reason, mark, epoch, mark, ""]
    if "w" in deeds:
        for kind in "oa":
            check_equal(STORE.unchanged_by(lambda kind=kind: admit(gate, lease, holder, kind)), wanted, f"{holder.token}")
    if "r" in deeds:
        check_equal(STORE.unchanged_by(lambda: gate.read(lease, holder, check="mark")), wanted, f"{holder.token}")


def marks(lease):
    return STORE.dump(lease.stripe + ":marks").get(lease.stripe + ":marks", {})


@test
def what_is_let_through_fences_what_is_older_and_nothing_else():
    gate, lease = begin()
    passes(gate, lease, one(33))
    passes(gate, lease, one(33))
    refused(gate, lease, one(32), "stale-token", 33)
    passes(gate, lease, one(40))
    refused(gate, lease, one(33), "stale-token", 40)
    refused(gate, lease, one(900, epoch=EPOCH - 1), "stale-token", 40)
    passes(gate, lease, one(1, epoch=EPOCH + 5))
    refused(gate, lease, one(900), "stale-token", 1, EPOCH + 5)
    check_equal(marks(lease), {lease.name: f"{EPOCH + 5} 1 hold-0000001"})
    passes(gate, Lease(STORE, same_stripe(lease.name, 1)[0]), one(2))


@test
def the_same_number_under_the_name_of_another_hold_was_never_issued():
    gate, lease = begin()
    passes(gate, lease, one(33))
    refused(gate, lease, one(33, "hold-xxxxxxx"), "unissued-token", 33)
    refused(gate, lease, one(33, mode="shared"), "unissued-token", 33, deeds="r")
    reads(gate, lease, one(35, mode="shared"), 35)
    refused(gate, lease, one(35, "hold-xxxxxxx"), "unissued-token", 35)


@test
def one_of_many_may_only_read_and_is_compared_with_exclusive_tokens_only():
    gate, lease = begin()
    for mode in ("shared", "permits"):
        refused(gate, lease, one(5, mode=mode), "wrong-mode", 0, 0, deeds="w")
    reads(gate, lease, one(35, mode="shared"), 35)
    reads(gate, lease, one(34, mode="shared"), 35)
    reads(gate, lease, one(36, mode="permits"), 36)
    passes(gate, lease, one(40))
    check_equal(marks(lease), {lease.name: f"{EPOCH} 40 hold-0000040"})
    refused(gate, lease, one(36, mode="shared"), "stale-token", 40, deeds="r")


@test
def after_a_read_by_one_of_many_no_older_write_lands():
    gate, lease = begin()
    passes(gate, lease, one(33))
    reads(gate, lease, one(35, mode="shared"), 35)
    refused(gate, lease, one(33), "stale-token", 35)
    refused(gate, lease, one(34), "stale-token", 35)
    passes(gate, lease, one(36))


@test
def a_read_raises_the_mark_and_waits_for_older_writes():
    gate, lease = begin()
    first = admit(gate, lease, one(33), "o")[3]
    check_equal(gate.read(lease, one(34), check="mark"), ["wait", lease.seq() + 0, 34, first])
    refused(gate, lease, one(33), "stale-token", 34)
    close(STORE, ("close", lease, first))
    reads(gate, lease, one(34), 34)


@test
def ordered_writes_queue_and_are_promoted_or_fenced_off_by_the_mark():
    gate, lease = begin()
    first = admit(gate, lease, one(33), "o")[3]
    second = admit(gate, lease, one(34), "o")
    check_equal((second[0], second[4]), ("queued", first))
    third = admit(gate, lease, one(35), "a")
    check_equal(third[0], "sending")
    check_equal(gate.promote(lease, one(34), second[3], check="mark")[::2], ["refused", "stale-token", EPOCH, ""])
    check_equal(texts_of(STORE, lease), [first, third[3]])
    fourth = admit(gate, lease, one(36), "o")
    for text in (first, third[3]):
        check_equal(gate.promote(lease, one(36), fourth[3], check="mark")[0], "queued")
        close(STORE, ("close", lease, text))
    check_equal(gate.promote(lease, one(36), fourth[3], check="mark")[::2][:2], ["sending", 36])
    check_equal([parse(text).token for text in texts_of(STORE, lease)], [36])


@test
def what_the_lease_says_of_its_holds_does_not_count():
    gate, lease = begin()
    ada = grant(lease, 1)
    grant(lease, 2)
    passes(gate, lease, ada)
    check_equal(gate.admit(lease, ada)[2], "stale-token")


@test
def what_the_other_check_has_let_through_counts():
    gate, lease = begin()
    ada = grant(lease, 1)
    passes(gate, lease, ada)
    bob = grant(lease, 2)
    check_equal(gate.admit(lease, bob)[0], "sending")
    check_equal(admit(gate, lease, ada)[2], "stale-token")
    passes(gate, lease, bob)


@test
def a_mark_outlives_its_lease_and_a_life_of_the_store():
    gate, lease = begin()
    passes(gate, lease, grant(lease, 1))
    lease.release("id-1")
    STORE.at(NOW + 100000)
    lease.sweep()
    check_equal(lease.field("s"), None)
    STORE.redis("HSET", lease.stripe, "alive", EPOCH + 1)
    refused(gate, lease, one(0), "stale-token", 1)


@test
def the_mark_is_told_whichever_check_has_raised_it():
    gate, lease = begin()
    told = lambda: Resource(lease).mark()[2:]
    check_equal(told(), [0, 0, 0])
    passes(gate, lease, one(33, "hold-9"))
    check_equal(told(), [33, EPOCH, 0])
    reads(gate, lease, one(35, mode="shared"), 35)
    check_equal(told(), [35, EPOCH, 0])
    STORE.redis("HSET", lease.stripe, "counter", 99)
    check_equal(gate.admit(lease, grant(lease, 100))[0], "sending")
    check_equal(told(), [100, EPOCH, 100])
    passes(gate, lease, one(7, epoch=EPOCH + 1))
    check_equal(told(), [7, EPOCH + 1, 100])


def fill(lease, names, epoch_of=lambda number: EPOCH):
    """As many marks as there may be; the token of each is its place."""
    values = [part for number, name in enumerate(names, 1)
              for part in (name, f"{epoch_of(number)} {number} hold-{number:07}")]
    for start in range(0, len(values), 1000):
        STORE.redis("HSET", lease.stripe + ":marks", *values[start:start + 1000])


@test
def when_there_are_too_many_the_lowest_are_dropped_and_all_below_them_is_stale():
    gate, lease = begin()
    fill(lease, [f"x{i}" for i in range(MARKS_MAX)])
    passes(gate, lease, one(2))  # it is one of the lowest itself
    check_equal(len(marks(lease)), MARKS_MAX + 1)
    passes(gate, Lease(STORE, same_stripe(lease.name, 1)[0]), one(5000))
    left = marks(lease)
    floor = left.pop("")
    check_equal(len(left), MARKS_KEPT)
    cut = MARKS_MAX + 2 - MARKS_KEPT - 1  # two were there with token 2
    check_equal(floor, f"{EPOCH} {cut}")
    check_equal(min(int(value.split()[1]) for value in left.values()), cut + 1)
    refused(gate, lease, one(cut - 1), "stale-token", 0, 0)
    refused(gate, lease, one(cut - 1, mode="shared"), "stale-token", 0, 0, deeds="r")
    passes(gate, lease, one(cut))
    check_equal(len(marks(lease)), MARKS_KEPT + 2)


@test
def the_epochs_of_marks_come_before_their_numbers_when_some_are_dropped():
    gate, lease = begin()
    fill(lease, [f"x{i}" for i in range(MARKS_MAX + 1)], lambda number: EPOCH + (number <= 100))
    passes(gate, lease, one(1, epoch=EPOCH + 2))
    left = marks(lease)
    check_equal((left.pop(""), len(left)), (f"{EPOCH} {100 + MARKS_MAX + 2 - MARKS_KEPT}", MARKS_KEPT))
    check(all(f"x{i}" in left for i in range(100)), "later epochs were dropped")


@test
def the_stripe_must_be_ours():
    gate, lease = begin()
    STORE.redis("HDEL", lease.stripe, "counter")
    check_equal([gate.read(lease, one(1), check="mark"), admit(gate, lease, one(1))], [["not-ours"]] * 2)
    check_equal(script("mark"), "gateway/scripts/mark.lua")


main()
