#!/usr/bin/python3
"""What is kept of a lease's history, in which order, how much of it, and what history.lua says of what is not."""

from lua_test import EMPTY, EPOCH, RECORD, STRIPES, Holder, Lease, Resource, Store, check, check_equal, main, stripe_do, stripe_of, test, text
from several import Session

STORE = Store()
NOW = 1000000
KEPT, REFUSED = 32, 16  # at least so many of the last
SLACK = 12  # and at most so many more, the mark among them
ALL = 16384  # of one list, in one stripe


def begin(name="orders:42"):
    STORE.begin(NOW)
    return Lease(STORE, name)


def history(lease, may="grant"):
    """(items as lists of their parts, ids of the newest that were dropped)."""
    reply = lease.run("history", may)
    check_equal((reply[0], reply[1]), ("history", lease.seq()))
    return [item.split("\t") for item in reply[3]], reply[4]


def kinds(lease):
    return [item[1] for item in history(lease)[0]]


def numbers(identity):
    return tuple(int(part) for part in identity.split("."))


def in_and_out(lease, number):
    lease_id = f"id-{number}"
    check_equal(lease.acquire(lease_id, f"hold-{number:07}")[0], "granted")
    check_equal(lease.release(lease_id)[0], "released")


@test
def grants_and_ends_are_told_with_who_when_and_why_and_in_order():
    lease = begin()
    lease.acquire(holder="ada")
    STORE.at(NOW + 10)
    lease.release()
    lease.acquire("id-b", "hold-bbbbbbb", "bob")
    STORE.at(NOW + 20)
    lease.run("force_release", "grant", "", "stuck in a pit")
    wanted = [[f"{EPOCH}.1.1", "granted", "1", "ada", str(NOW), "\x1ft1000"],
              [f"{EPOCH}.2.1", "released", "1", "ada", str(NOW + 10), ""],
              [f"{EPOCH}.3.1", "granted", "2", "bob", str(NOW + 10), "\x1ft1000"],
              [f"{EPOCH}.4.1", "forced", "2", "bob", str(NOW + 20), "stuck in a pit"]]
    check_equal(history(lease), (wanted, []))
    lease = begin()
    check_equal(STORE.unchanged_by(lambda: lease.run("history", "grant"))[2:], ["", [], [], NOW])
    lease = begin()
    desk = "pawl:{00}:d:desk-1"
    STORE.redis("HSET", desk, "at", NOW)
    lease.acquire()
    lease.acquire("id-b", "hold-bbbbbbb", "bob", desk=desk, wid="1")
    lease.release()
    items, _ = history(lease)
    check_equal([(item[0], item[1]) for item in items[1:]], [(f"{EPOCH}.3.1", "released"), (f"{EPOCH}.3.2", "granted")])


@test
def items_say_for_how_long_a_hold_was_waited_for_granted_and_kept():
    def said():
        return [(item[1], item[5]) for item in history(lease)[0]]
    lease = begin()
    desk = "pawl:{00}:d:desk-1"
    STORE.redis("HSET", desk, "at", NOW)
    lease.acquire(ttl=500)
    lease.acquire("id-b", "hold-bbbbbbb", "bob", desk=desk, wid="1")
    STORE.at(NOW + 100)
    lease.renew(ttl=500)
    STORE.at(NOW + 200)
    lease.release()
    wanted = [("granted", "\x1ft500"), ("released", f"\x1fr{NOW + 100}\x1ft500"), ("granted", "\x1ft1000\x1fw200")]
    check_equal(said(), wanted)
    STORE.at(NOW + 210)
    lease.run("claim", "id-b", "hold-bbbbbbb", "grant")
    for ttl in (2000, 3000):
        lease.renew("id-b", ttl)
        wanted[2] = ("granted", "\x1fw200\x1ft1000")
        check_equal(said(), wanted, "what was granted, whatever it is now")
    STORE.at(NOW + 9999)
    check_equal(said(), wanted + [("expired", f"\x1fr{NOW + 210}\x1ft3000")])
    lease = begin()
    lease.acquire(mode="shared", desk=desk)
    STORE.at(NOW + 100)
    lease.renew()
    lease.release()
    lease.acquire("id-n", "hold-nnnnnnn", mode="permits", permits=2)
    lease.release("id-n")
    check_equal(said(), [("granted", "\x1ft1000\x1fmshared"), ("released", f"\x1fr{NOW + 100}\x1ft1000"),
                         ("granted", "\x1ft1000\x1fmpermits"), ("released", "")])


@test
def an_end_says_which_lock_delay_began_with_it_and_since_when_if_that_was_before():
    def delayed(at, delay=2000, session=None, renewed=0, end=lambda lease: None, **terms):
        """What its end has behind the reason, noted at that time."""
        STORE.begin(NOW)
        lease = Lease(STORE, "orders:42")
        check(not session or session.open(ttl=1000)[0] == "opened", session)
        lease.acquire(ttl=1000, delay=delay, **(session.terms() if session else {}), **terms)
        STORE.at(NOW + renewed)
        check(not renewed or lease.renew(ttl=1500)[0] == "renewed", renewed)
        STORE.at(NOW + at)
        end(lease)
        return history(lease)[0][-1][5]
    late = f"\x1fd2000\x1fl{NOW + 1000}"
    for terms in ({}, {"mode": "shared"}, {"mode": "permits", "permits": 3}, {"session": Session(STORE)}):
        check_equal([delayed(at, **terms) for at in (1000, 1400, 9000)], ["\x1fd2000", late, late], terms)
        check_equal(delayed(1400, delay=0, **terms), "", terms)
    check_equal(delayed(2000, renewed=400), f"\x1fr{NOW + 400}\x1ft1500\x1fd2000\x1fl{NOW + 1900}", "by the ttl of the renewal")
    check_equal(delayed(10, end=Lease.release), "")
    check_equal(delayed(10, end=lambda lease: lease.run("force_release", "grant", "", "stuck")), "stuck")
    session = Session(STORE)
    check_equal(delayed(10, session=session, end=lambda lease: session.end()), "")


@test
def a_hold_that_is_over_is_ended_and_handed_on_before_the_history_is_told():
    lease = begin()
    lease.acquire(ttl=1000)
    STORE.at(NOW + 999)
    STORE.unchanged_by(lambda: lease.run("history", "grant"))
    STORE.at(NOW + 1000)
    reply, changes = STORE.changed_by(lambda: lease.run("history", "grant"))
    check_equal([item.split("\t")[1] for item in reply[3]], ["granted", "expired"])
    check(lease.key in changes and lease.history in changes, changes)
    STORE.unchanged_by(lambda: lease.run("history", "grant"))
    lease = begin()
    desk = "pawl:{00}:d:desk-1"
    STORE.redis("HSET", desk, "at", NOW + 900)
    lease.acquire(ttl=1000)
    check_equal(lease.acquire("id-b", "hold-bbbbbbb", "bob", desk=desk, wid="1")[0], "queued")
    STORE.at(NOW + 1000)
    check_equal([item[1] for item in history(lease, "hold-off")[0]], ["granted", "expired"])
    check_equal(kinds(lease), ["granted", "expired", "granted"])


@test
def refusals_stand_where_they_happened():
    lease = begin()
    resource = Resource(lease)
    for number in range(12):  # so that "7.10.1" stands behind "7.9.1"
        lease.acquire(f"id-{number}", f"hold-{number:07}", ttl=60000)
        STORE.at(NOW + number * 1000)
        check_equal(resource.write(Holder(99))[2], "unissued-token")
        lease.release(f"id-{number}")
    items, dropped = history(lease)
    check_equal(dropped, [])
    check_equal([item[1] for item in items], ["granted", "refused", "released"] * 12)
    ids = [numbers(item[0]) for item in items]
    check_equal(ids, sorted(ids))


@test
def the_newest_that_was_dropped_is_known():
    lease = begin()
    every, dropped_before = [], []
    for number in range(60):
        in_and_out(lease, number)
        items, dropped = history(lease)
        every += [item for item in items if item not in every][-2:]
        check_equal(items, every[-len(items):], "the last ones, whole")
        check(len(items) == len(every) or KEPT <= len(items) <= KEPT + SLACK, f"{len(items)} of {len(every)}")
        wanted = [every[-len(items) - 1][0]] if len(items) < len(every) else []
        check_equal(dropped, wanted, f"{len(items)} of {len(every)} are kept")
        check(dropped >= dropped_before or numbers(dropped[0]) >= numbers(dropped_before[0]), dropped)
        dropped_before = dropped


@test
def each_list_knows_what_it_has_dropped_itself():
    lease = begin()
    resource = Resource(lease)
    lease.acquire(ttl=10000000)
    for number in range(40):
        STORE.at(NOW + number * 1000)
        resource.check(Holder(99))
    items, dropped = history(lease)
    refusals = [item for item in items if item[1] == "refused"]
    check(REFUSED <= len(refusals) <= REFUSED + SLACK, len(refusals))
    check_equal(items[0][1], "granted", "refusals push no grant out")
    check_equal(dropped, [f"{EPOCH}.{numbers(refusals[0][0])[1] - 1}.1"])
    lease.release()
    for number in range(40):
        in_and_out(lease, number)
    check_equal(len(history(lease)[1]), 2)


@test
def with_many_leases_in_a_stripe_each_keeps_less():
    lease = begin()
    for number in range(20):
        in_and_out(lease, number)
    many = ALL // 4
    for first in range(0, many, 1000):
        STORE.redis("ZADD", lease.due, *(word for i in range(first, first + 1000) for word in (NOW + 10 ** 9, f"lease-{i}")))
    for number in range(20, 30):
        in_and_out(lease, number)
        size = STORE.redis("LLEN", lease.history)
    check(3 <= size <= 4 + SLACK, size)
    items, dropped = history(lease)
    check_equal((len(items), len(dropped)), (size - 1, 1))


@test
def the_history_goes_with_the_lease():
    lease = begin()
    resource = Resource(lease)
    in_and_out(lease, 1)
    resource.check(Holder(99))
    check_equal(STORE.redis("EXISTS", lease.history, lease.refusals), 2)
    STORE.at(NOW + 10000)
    lease.sweep()
    check_equal(sorted(key.decode() for key in STORE.redis("KEYS", "pawl:*")), EMPTY)
    check_equal(history(lease), ([], []))


def listen(ms=1000):
    return STORE.call("lease/scripts/listen.lua", [STRIPES[0]], ms)


@test
def what_is_kept_is_also_told_to_those_who_listen():
    lease = begin()
    ear = type(STORE.redis.connection)(STORE.redis.path)
    ear("SUBSCRIBE", f"pawl:e:{lease.name}")
    in_and_out(lease, 0)  # nobody has said that he listens
    STORE.begin(NOW)
    check_equal(listen()[2:5], [0, NOW, NOW + 1000])
    STORE.at(NOW + 1000)
    in_and_out(lease, 1)
    STORE.at(NOW + 1001)
    in_and_out(lease, 2)
    told = [text(ear._reply())[2] for _ in range(2)]  # pylint: disable=protected-access
    ear.socket.setblocking(False)
    try:
        check_equal(ear.socket.recv(1), b"", "told behind it")
    except BlockingIOError:
        pass
    stripe = f"{stripe_of(lease.name):02x}"
    check(STRIPES[stripe_of(lease.name)] == lease.stripe, lease.stripe)
    check_equal(told, [f"{stripe} " + "\t".join(item) for item in history(lease)[0][:2]])
    ear.close()


@test
def the_time_until_which_somebody_listens_only_rises_in_every_stripe():
    def times():
        return {int(STORE.redis("HGET", stripe, "listen")) for stripe in STRIPES}
    begin()
    check_equal((listen(9000)[2:5], times()), ([0, NOW, NOW + 9000], {NOW + 9000}))
    check_equal((listen(1000)[2:5], times()), ([NOW + 9000, NOW, NOW + 9000], {NOW + 9000}), "another's")
    STORE.at(NOW + 4501)
    check_equal((listen(9000)[2:5], times()), ([NOW + 9000, NOW + 4501, NOW + 13501], {NOW + 13501}))
    STORE.redis("HDEL", STRIPES[7], "listen")
    STORE.redis("HSET", STRIPES[9], "listen", NOW + 20000)
    check_equal(listen(9000)[2:5], [0, NOW + 4501, NOW + 13501], "what one stripe has lost is said")
    check_equal(times(), {NOW + 13501, NOW + 20000})
    STORE.redis("DEL", STRIPES[7])
    check_equal(listen(9000)[2:5], [NOW + 13501, NOW + 4501, NOW + 13501])
    check_equal(STORE.redis("EXISTS", STRIPES[7]), 0, "a stripe that is lost is not made")


# -- what an operator has noted

def note(mode):
    return STORE.run("api/cli/scripts/set_history.lua", [RECORD], mode)


@test
def ends_alone_are_noted_or_nothing_and_a_change_forgets_what_was_before():
    lease = begin()
    other = Lease(STORE, "orders:43")
    in_and_out(lease, 1), in_and_out(other, 1)
    check_equal((note(""), note("all"), kinds(lease)), (["history", "all", 0], ["history", "all", 0], ["granted", "released"]))
    before = lease.seq()
    check_equal((note("ends"), note("")), (["history", "ends", 1], ["history", "ends", 0]))
    check_equal(history(lease), ([], [f"{EPOCH}.{before}.0"]), "what came after an id of before cannot be told")
    in_and_out(lease, 2)
    Resource(lease).check(Holder(2))
    check_equal(kinds(lease), ["released"])
    check_equal(history(other)[0], [])
    note("off")
    for one in (lease, other):
        in_and_out(one, 3)
        check_equal(one.run("history", "grant")[0], "off")
    check_equal(listen(), ["off", int(STORE.redis("HGET", STRIPES[0], "seq"))])
    kept = STORE.redis("LRANGE", lease.history, 0, -1)
    in_and_out(lease, 4)
    check_equal(STORE.redis("LRANGE", lease.history, 0, -1), kept, "nothing is noted")
    note("all")
    in_and_out(lease, 5)
    check_equal(kinds(lease), ["granted", "released"])
    check_equal(listen()[5], f"all {EPOCH}.0")
    begin()
    for stripe in STRIPES:
        stripe_do(STORE.redis, "HSET", stripe, "id", "5:another")
    STORE.redis("HSET", RECORD, "id", "5:another")
    check_equal(STORE.unchanged_by(lambda: note("off")), ["another", "5:another"])


if __name__ == "__main__":
    main()
