#!/usr/bin/python3
"""The check `mark`: what was let through is all that counts, and it is never forgotten; and what counts in its place when
the store has lost it."""

from intents import ROUTES, Gateway, close, grant, parse, same_stripe, texts_of
from lua_test import EPOCH, IDENTITY, RECORD, STRIPES, TOKEN_LAST, Holder, Lease, Resource, Store, check, check_equal, main, stripe_do, test, text

STORE = Store()
NOW, MARKS_MAX, MARKS_KEPT = 1000000, 4096, 3584


OTHER = "another-store".ljust(24, "-")
OWN, FOREIGN = "mark", f"mark {OTHER}"
WHOSE = {"check": OWN}


def begin(check=FOREIGN, floor=TOKEN_LAST):
    """A gateway, and a lease of which this store knows nothing: the tokens are another store's, or its own, of which some went by mark before."""
    WHOSE["check"] = check
    STORE.begin(NOW, floor)
    STORE.redis("HSET", RECORD, "routes", ROUTES)
    lease = Lease(STORE, "orders:42")
    if check == OWN:
        STORE.redis("HSET", marks_key(lease), "", "0 0")
    return Gateway(STORE), lease


def one(token, hold=None, epoch=EPOCH, mode="exclusive"):
    return Holder(token, epoch, hold or f"hold-{token:07}", mode)


def admit(gate, lease, holder, kind="a"):
    return gate.admit(lease, holder, kind, check=WHOSE["check"])


def passes(gate, lease, holder, mark=None):
    """It is let through; the mark is then that of it, or this one."""
    reply = admit(gate, lease, holder)
    check_equal([reply[0], reply[2]], ["sending", mark or holder.token], f"{holder.token}")
    close(STORE, ("close", lease, reply[3]))


def reads(gate, lease, holder, mark):
    check_equal(gate.read(lease, holder, check=WHOSE["check"])[::2], ["accepted", mark], f"{holder.token}")


def refused(gate, lease, holder, reason, mark, epoch=EPOCH, deeds="wr"):
    """Both a write and a read, and nothing is changed."""
    wanted = ["refused", lease.seq(), reason, mark, epoch, mark, ""]
    if "w" in deeds:
        for kind in "oa":
            check_equal(STORE.unchanged_by(lambda kind=kind: admit(gate, lease, holder, kind)), wanted, f"{holder.token}")
    if "r" in deeds:
        check_equal(STORE.unchanged_by(lambda: gate.read(lease, holder, check=WHOSE["check"])), wanted, f"{holder.token}")


def marks_key(lease):
    return lease.stripe + ":marks" + (f":{OTHER}" if WHOSE["check"] == FOREIGN else "")


def marks(lease):
    found = STORE.dump(marks_key(lease)).get(marks_key(lease), {})
    return {one: mark for one, mark in found.items() if one or WHOSE["check"] == FOREIGN}


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
def what_is_stored_goes_by_the_same_marks_and_whatever_acts_raises_them():
    for check in (FOREIGN, OWN):
        _, lease = begin(check)
        it = Resource(lease)

        def by(token, mode="exclusive", check=check, **more):
            return one(token, mode=f"{mode}\n{check}", **more)

        def fenced_off(token, mark, mode="exclusive", reason="stale-token", deeds=(it.write, it.remove, it.check, it.read_fenced)):
            for deed in deeds:
                reply = STORE.unchanged_by(lambda deed=deed: deed(by(token, mode)))
                check_equal(reply, ["refused", lease.seq(), reason, mark, EPOCH, mark, ""], f"{deed.__name__} {token}")
        check_equal(it.write(by(33))[::2], ["written", 201, 33])
        fenced_off(32, 33)
        for token, deed, reply, at in ((34, it.write, "written", 4), (35, it.check, "accepted", 2), (36, it.read_fenced, "found", 2),
                                       (37, it.remove, "removed", 2)):
            told = deed(by(token))
            check_equal([told[0], told[at]], [reply, token])
            fenced_off(token - 1, token)
        fenced_off(38, 37, "shared", "wrong-mode", (it.write, it.remove, it.check))
        check_equal(marks(lease), {lease.name: f"{EPOCH} 37 hold-0000037"})
        read = STORE.call("gateway/scripts/read.lua", it.keys[:2], lease.name, "", check)
        check_equal([read[0], read[2], it.read()[2]], ["missing", 37, 0])
        admits = [admit(Gateway(STORE), lease, one(token))[0] for token in (36, 37)]
        check_equal(admits, ["refused", "sending"])  # a route of the same lease


@test
def who_is_told_that_there_is_nothing_to_delete_fences_what_would_still_come():
    for check in (FOREIGN, OWN):
        _, lease = begin(check)
        it = Resource(lease)
        it.check(one(33, mode=f"exclusive\n{check}"))
        check_equal(it.remove(one(34, mode=f"exclusive\n{check}")), ["missing", lease.seq(), 34])
        check_equal(it.write(one(33, mode=f"exclusive\n{check}"))[2], "stale-token", check)


@test
def a_repetition_by_a_newer_token_fences_what_is_older_as_the_write_itself_would():
    for check in (FOREIGN, OWN):
        _, lease = begin(check)
        it = Resource(lease)

        def by(token, check=check):
            return one(token, mode=f"exclusive\n{check}")
        for token, (deed, reply, at) in enumerate(((it.write, "written", 4), (it.write, "repeated", 4), (it.remove, "removed", 2), (it.remove, "repeated", 4)), 33):
            told = deed(by(token), key=f"of {deed.__name__}", digest="d")
            check_equal([told[0], told[1], told[at]], [reply, lease.seq(), token])
            check_equal(it.write(by(token - 1))[2], "stale-token", f"{reply} {token}")


@test
def the_same_number_under_the_name_of_another_hold_was_never_issued():
    gate, lease = begin()
    passes(gate, lease, one(33))
    refused(gate, lease, one(33, "hold-xxxxxxx"), "unissued-token", 33)
    refused(gate, lease, one(33, mode="shared"), "unissued-token", 33, deeds="r")
    reads(gate, lease, one(35, mode="shared"), 35)
    refused(gate, lease, one(35, "hold-xxxxxxx"), "unissued-token", 35)


@test
def one_of_many_may_only_read_is_compared_with_exclusive_tokens_only_and_fences_older_writes():
    gate, lease = begin()
    for mode in ("shared", "permits"):
        refused(gate, lease, one(5, mode=mode), "wrong-mode", 0, 0, deeds="w")
    reads(gate, lease, one(35, mode="shared"), 35)
    reads(gate, lease, one(34, mode="shared"), 35)
    reads(gate, lease, one(36, mode="permits"), 36)
    passes(gate, lease, one(40))
    check_equal(marks(lease), {lease.name: f"{EPOCH} 40 hold-0000040"})
    refused(gate, lease, one(36, mode="shared"), "stale-token", 40, deeds="r")
    gate, lease = begin()
    passes(gate, lease, one(33))
    reads(gate, lease, one(35, mode="shared"), 35)
    refused(gate, lease, one(33), "stale-token", 35)
    refused(gate, lease, one(34), "stale-token", 35)
    passes(gate, lease, one(36))


@test
def ordered_writes_queue_and_are_promoted_or_fenced_off_by_the_mark():
    gate, lease = begin()
    first = admit(gate, lease, one(33), "o")[3]
    second = admit(gate, lease, one(34), "o")
    check_equal((second[0], second[4]), ("queued", first))
    third = admit(gate, lease, one(35), "a")
    check_equal(third[0], "sending")
    check_equal(gate.promote(lease, one(34), second[3], check=WHOSE["check"])[::2], ["refused", "stale-token", EPOCH, ""])
    check_equal(texts_of(STORE, lease), [first, third[3]])
    fourth = admit(gate, lease, one(36), "o")
    for text in (first, third[3]):
        check_equal(gate.promote(lease, one(36), fourth[3], check=WHOSE["check"])[0], "queued")
        close(STORE, ("close", lease, text))
    check_equal(gate.promote(lease, one(36), fourth[3], check=WHOSE["check"])[::2][:2], ["sending", 36])
    check_equal([parse(text).token for text in texts_of(STORE, lease)], [36])


@test
def what_the_lease_says_of_its_holds_does_not_count_and_what_the_other_check_has_let_through_does():
    gate, lease = begin(OWN)
    ada = grant(lease, 1)
    grant(lease, 2)
    passes(gate, lease, ada)
    check_equal(gate.admit(lease, ada)[2], "stale-token")
    gate, lease = begin(OWN)
    ada = grant(lease, 1)
    passes(gate, lease, ada)
    bob = grant(lease, 2)
    check_equal(gate.admit(lease, bob)[0], "sending")
    check_equal(admit(gate, lease, ada)[2], "stale-token")
    passes(gate, lease, bob)
    gate, lease = begin(OWN)
    ada, bob = grant(lease, 1), grant(lease, 2)
    check_equal(gate.admit(lease, bob)[0], "sending")
    check_equal((marks(lease), admit(gate, lease, ada)[2]), ({lease.name: f"{EPOCH} 2 {bob.hold}"}, "stale-token"))
    STORE.redis("HDEL", marks_key(lease), lease.name)
    check_equal(admit(gate, lease, ada)[2], "stale-token", "the lease says it, too")


@test
def a_mark_outlives_its_lease_and_a_life_of_the_store():
    gate, lease = begin(OWN)
    passes(gate, lease, grant(lease, 1))
    lease.release("id-1")
    STORE.at(NOW + 100000)
    lease.sweep()
    check_equal(lease.field("s"), None)
    stripe_do(STORE.redis, "HSET", lease.stripe, "alive", EPOCH + 1)
    refused(gate, lease, one(0), "stale-token", 1)
    refused(gate, lease, one(1, "hold-0000001"), "lease-expired", 1)


def outlives(gate, lease, ada, bob):
    """What bob's token 2 has let through is known when nothing of the lease is."""
    lease.release("id-2")
    STORE.at(NOW + 100000)
    lease.sweep()
    check_equal(lease.field("s"), None)
    refused(gate, lease, ada, "stale-token", 2)
    passes(gate, lease, bob)


@test
def what_the_other_check_has_let_through_outlives_its_lease_where_it_is_known_by_mark():
    for mode in ("exclusive", "exclusive bob"):  # he may write with holds of his own only
        gate, lease = begin(OWN)
        ada = grant(lease, 1)
        passes(gate, lease, ada)
        lease.release("id-1")
        bob = Holder(lease.run("acquire", "id-2", "hold-0000002", "bob", 1000, "", "grant", "", "bob")[2], hold="hold-0000002")
        check_equal(gate.admit(lease, one(bob.token, bob.hold, mode=mode), "a")[0], "sending")
        check_equal(marks(lease), {lease.name: f"{EPOCH} 2 {bob.hold}"})
        outlives(gate, lease, ada, bob)


@test
def what_went_by_live_alone_outlives_its_lease_where_any_goes_by_mark():
    for way in ("admit", "read", "check", "write", "read_fenced"):
        gate, lease = begin(OWN)
        ada = grant(lease, 1)
        lease.release("id-1")
        bob = grant(lease, 2)
        stored = one(bob.token, bob.hold, mode="exclusive")
        {"admit": lambda: gate.admit(lease, bob, "a"), "read": lambda: gate.read(lease, bob),
         "check": lambda: Resource(lease).check(stored), "write": lambda: Resource(lease).write(stored),
         "read_fenced": lambda: Resource(lease).read_fenced(stored)}[way]()
        check_equal(marks(lease), {lease.name: f"{EPOCH} 2 {bob.hold}"}, way)
        outlives(gate, lease, ada, bob)


@test
def of_what_was_granted_before_the_first_that_goes_by_mark_only_the_last_of_a_lease_passes():
    """What went by live before is not kept, and the lease's record may be forgotten."""
    gate, lease = begin(OWN)
    STORE.redis("DEL", marks_key(lease))
    other, third = (Lease(STORE, one) for one in same_stripe(lease.name, 2))
    ada, bob = grant(lease, 1), grant(lease, 2)
    check_equal((gate.admit(lease, bob)[0], marks(lease)), ("sending", {}))
    lease.release("id-2")
    STORE.at(NOW + 100000)
    lease.sweep()
    check_equal(lease.field("s"), None)
    cy, di = grant(other, 3), grant(third, 4)
    refused(gate, lease, ada, "stale-token", 0, 0)
    for _ in range(2):
        passes(gate, other, cy)
        check_equal(text(STORE.redis("HGET", marks_key(lease), "")), f"{EPOCH} 4")
        passes(gate, third, di)
    refused(gate, lease, ada, "stale-token", 0, 0)
    refused(gate, lease, bob, "stale-token", 0, 0)
    eve = grant(lease, 5)
    grant(lease, 6)
    passes(gate, lease, eve)  # a new grant is known from its first use on


@test
def the_mark_is_told_whichever_check_has_raised_it():
    gate, lease = begin(OWN)
    told = lambda: Resource(lease).mark()[2:5]
    check_equal(told(), [0, 0, 0])
    passes(gate, lease, one(33, "hold-9"))
    check_equal(told(), [33, EPOCH, 0])
    reads(gate, lease, one(35, mode="shared"), 35)
    check_equal(told(), [35, EPOCH, 0])
    STORE.redis("HSET", lease.stripe, "counter", 99)
    check_equal(gate.admit(lease, grant(lease, 100))[0], "sending")
    check_equal(told(), [100, EPOCH, 100])
    passes(gate, lease, one(101, epoch=EPOCH))
    check_equal(told(), [101, EPOCH, 100])


def fill(lease, names, epoch_of=lambda number: EPOCH):
    """As many marks as there may be; the token of each is its place."""
    values = [part for number, name in enumerate(names, 1)
              for part in (name, f"{epoch_of(number)} {number} hold-{number:07}")]
    for start in range(0, len(values), 1000):
        STORE.redis("HSET", marks_key(lease), *values[start:start + 1000])


@test
def when_there_are_too_many_the_lowest_are_dropped_by_epoch_and_number_and_all_below_them_is_stale():
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
    gate, lease = begin()
    fill(lease, [f"x{i}" for i in range(MARKS_MAX + 1)], lambda number: EPOCH + (number <= 100))
    passes(gate, lease, one(1, epoch=EPOCH + 2))
    left = marks(lease)
    check_equal((left.pop(""), len(left)), (f"{EPOCH} {100 + MARKS_MAX + 2 - MARKS_KEPT}", MARKS_KEPT))
    check(all(f"x{i}" in left for i in range(100)), "later epochs were dropped")


@test
def what_was_dropped_stays_dropped_whatever_older_tokens_the_other_check_lets_through():
    gate, lease = begin(OWN)
    fill(lease, [f"x{i}" for i in range(MARKS_MAX)])
    STORE.redis("HSET", marks_key(lease), "", f"{EPOCH} 2000")  # dropped before: those below it went by live since, with holds of long ago
    refused(gate, lease, one(1999), "stale-token", 0, 0)
    ada = grant(lease, 1)
    check_equal(gate.admit(lease, ada, "a")[0], "sending")
    check(len(marks(lease)) < MARKS_MAX, "there were too many")
    check_equal(text(STORE.redis("HGET", marks_key(lease), "")), f"{EPOCH} 2000")
    refused(gate, Lease(STORE, same_stripe(lease.name, 1)[0]), one(1999), "stale-token", 0, 0)


# -- whose tokens they are

@test
def the_marks_of_each_store_are_its_own():
    gate, lease = begin(OWN)
    passes(gate, lease, one(33))
    WHOSE["check"] = FOREIGN
    passes(gate, lease, one(2, epoch=1))
    refused(gate, lease, one(1, epoch=1), "stale-token", 2, 1)
    check_equal(marks(lease), {lease.name: "1 2 hold-0000002"})
    WHOSE["check"] = f"mark {IDENTITY[3:]}"  # its own, by name
    refused(gate, lease, one(32), "stale-token", 33)
    check_equal(Resource(lease).mark()[2:5], [33, EPOCH, 0])


@test
def of_its_own_nothing_passes_above_the_ceiling_nor_above_its_epoch_and_of_another_store_anything_does():
    gate, lease = begin(OWN, floor=50)
    stripe_do(STORE.redis, "HSET", lease.stripe, "alive", EPOCH - 1)
    for beyond in (one(51), one(51, epoch=EPOCH - 1), one(TOKEN_LAST), one(1, epoch=EPOCH + 1), one(1, epoch=TOKEN_LAST)):
        for mode in ("exclusive", "shared"):
            refused(gate, lease, one(beyond.token, epoch=beyond.epoch, mode=mode), "unissued-token", 0, 0,
                    deeds="wr" if mode == "exclusive" else "r")
    passes(gate, lease, one(50, epoch=EPOCH - 1))
    passes(gate, lease, one(50))
    gate, lease = begin(FOREIGN, floor=50)
    passes(gate, lease, one(TOKEN_LAST, epoch=EPOCH))
    passes(gate, lease, one(1, epoch=TOKEN_LAST))


# -- what was let through is lost

def lose(epoch):
    """This store has begun a life without proof of being complete."""
    for stripe in STRIPES:
        stripe_do(STORE.redis, "HSET", stripe, "epoch", epoch, "alive", epoch)
    STORE.redis("HSET", RECORD, "epoch", epoch, "lost", epoch)


def name(epoch, token, force="", store=OTHER):
    return STORE.run("api/cli/scripts/marks.lua", [RECORD], store, epoch, token, force)


@test
def after_a_loss_nothing_of_its_own_from_before_it_passes():
    gate, lease = begin(OWN)
    passes(gate, lease, one(33))
    lose(EPOCH + 5)
    STORE.redis("DEL", marks_key(lease))
    for epoch in (EPOCH, EPOCH + 4):
        refused(gate, lease, one(900, epoch=epoch), "lease-expired", 0, 0)
        refused(gate, lease, one(900, epoch=epoch, mode="shared"), "stale-token", 0, 0, deeds="r")
    passes(gate, lease, one(1, epoch=EPOCH + 5))


@test
def after_a_loss_nothing_of_another_store_passes_until_somebody_names_a_token():
    gate, lease = begin()
    passes(gate, lease, one(33, epoch=100))
    for life in (EPOCH + 5, EPOCH + 15):  # with what is left of the marks, and without
        lose(life)
        refused(gate, lease, one(900, epoch=TOKEN_LAST), "marks-lost", 33, 100)
        refused(gate, lease, one(32, epoch=100), "stale-token", 33, 100)
        check_equal(name(100, 60), ["named", str(life)])
        refused(gate, lease, one(59, epoch=100), "stale-token", 33, 100)
        passes(gate, lease, one(60, epoch=100))
        refused(gate, Lease(STORE, f"orders:{life}"), one(59, epoch=100), "stale-token", 0, 0)
        passes(gate, Lease(STORE, f"orders:{life}"), one(60, epoch=100))
        STORE.redis("DEL", marks_key(lease))
        refused(gate, lease, one(59, epoch=100), "stale-token", 0, 0)
        lose(life + 1)  # what was named was of the loss before
        refused(gate, lease, one(900, epoch=100), "marks-lost", 0, 0)
        STORE.redis("HSET", marks_key(lease), lease.name, "100 33 hold-0000033")
    gate, lease = begin()
    check_equal(name(5, 5), ["not-lost"])
    passes(gate, lease, one(1, epoch=1))


@test
def what_was_named_is_raised_and_lowered_by_force_only():
    begin()
    lose(9)
    check_equal(name(5, 100, store=IDENTITY[3:]), ["own"])
    check_equal(name(5, 100), ["named", "9"])
    for lower in ((5, 99), (4, 101)):
        check_equal(name(*lower), ["lower", 5, 100])
    check_equal([name(5, 100), name(6, 1), name(5, 7, "force")], [["named", "9"]] * 3)
    check_equal(STORE.dump(RECORD + ":marks")[RECORD + ":marks"], {OTHER: "9 5 7"})
    STORE.redis("FLUSHALL")
    check_equal(name(5, 5), ["empty"])


main()
