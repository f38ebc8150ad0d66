#!/usr/bin/python3
"""Every reply and every branch of admit.lua: who may begin a new life of the store, from which numbers, and what survives."""

from lua_test import EPOCH, IDENTITY, RECORD, STRIPES, TOKEN_LAST, Lease, check, check_equal, main, stripe_do, test, text
from members import Life, Member, all_in, alone, company, founder, grant, unchanged_by

LIFE = Life()
NOW = 1000000
UNIX = NOW // 1000  # what the clock of these tests says in seconds: above any epoch that a test uses


def restarted(*members, saved=None):
    """Redis has restarted, and all of these have reported."""
    LIFE.restart(saved)
    reported(*members)


def reported(*members):
    for one in members:
        check_equal(one.pulse(), "gated", one.name)


def admitted(member, how, absent="", when="now"):
    """The counter that the new life begins with."""
    reply = member.admit(when)
    check_equal([reply[0], reply[2], reply[4]], ["admitted", how, absent])
    check_equal([LIFE.record("epoch", "how", "gate", "why"), LIFE.stripe("epoch")],
                [[reply[1], how, "", ""], reply[1]])
    return int(reply[3])


# -- the new life

@test
def a_store_that_lost_nothing_is_admitted_as_complete():
    a, b, g = company(LIFE)
    tokens = [grant(LIFE, a, name) for name in ("orders:1", "orders:2")]
    all_in(a, b, g)
    seqs, roll = LIFE.seqs(), int(LIFE.record("roll"))
    LIFE.redis("EXPIRE", STRIPES[3], 1000)
    restarted(a, b, g)
    check_equal((tokens, a.admit("wait")), ([1, 1], ["admitted", str(UNIX), "complete", "100", ""]))
    check_equal(LIFE.record("epoch", "run", "roll", "alive", "ceiling", "gate", "gaterun", "why", "how", "open"),
                [str(UNIX), LIFE.run_and_stream(), str(roll + 1), str(EPOCH), "100", "", "", "", "complete", "0"])
    check_equal([LIFE.stripe(field) for field in ("id", "epoch", "counter", "ceiling", "alive", "clock")],
                [IDENTITY, str(UNIX), "100", "100", str(EPOCH), "0"])
    check_equal(LIFE.seqs(), [seq + 1 for seq in seqs])
    check_equal(LIFE.redis("TTL", STRIPES[3]), -1)
    for one in (a, b, g):
        check_equal(LIFE.member(one.name, "state", "epoch", "beats", "incarnation", "since", "rgate"),
                    ["in", str(UNIX), "0", one.incarnation, str(roll + 1), None], one.name)
    all_in(a, b, g)
    check_equal((LIFE.record("ceiling"), grant(LIFE, b, "orders:3")), ("200", 101))


@test
def all_holds_end_when_somebody_was_not_asked():
    a, b, g = company(LIFE)
    restarted(a, b)
    check_equal(admitted(a, "incomplete", "gate-g"), 100)
    check_equal((LIFE.record("alive"), LIFE.stripe("alive")), (str(UNIX), str(UNIX)))
    check_equal((LIFE.listed(), g.pulse()), (["lease-a", "lease-b"], "pending"))
    all_in(a, b, g)


@test
def while_there_is_time_a_store_that_may_prove_complete_waits_for_the_members():
    a, b, g = company(LIFE)
    restarted(a, b)
    check_equal(unchanged_by(LIFE, lambda: a.admit("wait")), ["members-missing", "gate-g"])
    g.pulse()
    admitted(a, "complete", when="wait")
    a, b, g = company(LIFE)
    b.seen[0] += 1  # it cannot be complete any more: there is nothing to wait for
    restarted(a, b)
    admitted(a, "incomplete", "gate-g", when="wait")


@test
def only_one_admission_comes_of_one_gating_and_only_of_reports_to_it_on_the_redis_that_was_gated():
    a, b, g = company(LIFE)
    check_equal(unchanged_by(LIFE, lambda: a.admit(gate="")), ["moved"])
    check_equal(unchanged_by(LIFE, lambda: a.admit(gate="gate-1")), ["moved"])
    restarted(a, b, g)
    check_equal(unchanged_by(LIFE, lambda: a.admit(gate="another")), ["moved"])
    a.identity = "11:other"
    check_equal(unchanged_by(LIFE, a.admit), ["moved"])
    a.identity = IDENTITY
    LIFE.restart()  # before the pulse that would notice it
    check_equal(unchanged_by(LIFE, a.admit), ["moved"])
    reported(a, b, g)
    admitted(b, "complete")
    check_equal(unchanged_by(LIFE, a.admit), ["moved"])
    a, b, g = company(LIFE)
    restarted(a, b, g)
    restarted(a, g)
    check_equal(unchanged_by(LIFE, a.admit), ["floors-missing", "lease-b"])


# -- what makes it incomplete, each by itself

def recreated():
    LIFE.redis("HSET", RECORD, "gate", "gate-0", "why", "empty")
    for stripe in STRIPES:
        stripe_do(LIFE.redis, "HSET", stripe, "epoch", -EPOCH)


LOSSES = (  # what happened, who was not asked; with two lease services and a gateway that report
    ("one did not report", "gate-g", lambda a, b, g: vars(g).update(unreported=True)),
    ("it is another process now", "gate-g", lambda a, b, g: g.start()),
    ("a lease service is another process now", "lease-b", lambda a, b, g: b.start()),
    ("the admitting one is another process now", "lease-a", lambda a, b, g: a.start()),
    ("one saw more in the first stripe", "", lambda a, b, g: vars(g).update(seen=[g.seen[0] + 1, *g.seen[1:]])),
    ("one saw more in the last stripe", "", lambda a, b, g: vars(b).update(seen=[*b.seen[:255], b.seen[255] + 1])),
    ("one knew a later life", "", lambda a, b, g: vars(g).update(epoch=EPOCH + 1, seen=[0] * 256)),
    ("one saw an unsafe setting", "", lambda a, b, g: vars(g).update(doubt="doubt")),
    ("the store was recreated", "", lambda a, b, g: recreated()),
    ("a pending gateway did not report", "gate-x", lambda a, b, g: Member(LIFE, "gate-x", "gateway").pulse()),
)


@test
def each_loss_by_itself_makes_it_incomplete():
    for what, absent, happens in LOSSES:
        a, b, g = company(LIFE)
        g.unreported = False
        happens(a, b, g)
        restarted(a, b, *([] if g.unreported else [g]))
        check_equal(a.admit()[2::2], ["incomplete", absent], what)
        check_equal(LIFE.record("alive"), LIFE.record("epoch"), what)
        for one in (a, b, g):
            above = [seq > seen for seq, seen in zip(LIFE.seqs(), one.seen or [0] * 256)]
            check(all(above), f"a sequence number is not above what {one.name} saw: {what}")


def damages():
    """Each before the restart; none of them is seen in what the members report."""
    yield "a stripe without an alive", ("HDEL", STRIPES[200], "alive")
    yield "a stripe without a counter", ("HDEL", STRIPES[200], "counter")
    yield "a stripe of another epoch", ("HSET", STRIPES[1], "epoch", EPOCH - 1)
    yield "a stripe of another store", ("HSET", STRIPES[1], "id", "11:other")
    yield "a stripe that was never changed and is gone", ("DEL", STRIPES[1])
    yield "a record without an epoch", ("HDEL", RECORD, "epoch")
    yield "a record without an id", ("HDEL", RECORD, "id")
    yield "a record that is gone", ("DEL", RECORD)


@test
def each_damage_by_itself_makes_it_incomplete_and_is_mended():
    for what, command in damages():
        for moment in ("before", "after"):
            a, b, g = company(LIFE)
            if moment == "after":
                restarted(a, b, g)
                stripe_do(LIFE.redis, *command)
                reported(a, b, g)
            else:
                stripe_do(LIFE.redis, *command)
                restarted(a, b, g)
            check_equal(a.admit()[2::2], ["incomplete", ""], f"{what}, {moment} the restart")
            check_equal([LIFE.stripe(field) for field in ("id", "alive", "counter")], [IDENTITY, str(UNIX), "100"], what)
            all_in(a, b, g)


@test
def a_single_stripe_that_was_set_back_or_a_report_that_was_deleted_makes_it_incomplete():
    a, b, g = company(LIFE)
    lease = Lease(LIFE, "orders:42")
    grant(LIFE, a, "orders:42")
    all_in(a, b, g)
    LIFE.redis("HSET", lease.stripe, "seq", 0, "counter", 0)
    reported(b, a, g)
    check_equal(LIFE.record("why"), "behind")
    admitted(b, "incomplete")
    a, b, g = company(LIFE)
    restarted(a, b, g)
    LIFE.redis("DEL", RECORD + ":m:gate-g")
    admitted(a, "incomplete", "gate-g")


# -- whose floors it takes

@test
def nobody_admits_without_the_floors_of_all_that_its_state_directory_lists_and_its_own():
    a, b, g = company(LIFE)
    restarted(a, g)
    check_equal(unchanged_by(LIFE, a.admit), ["floors-missing", "lease-b"])
    b.start()  # another process, the same state directory
    reported(b)
    admitted(a, "incomplete", "lease-b")
    a, b, g = company(LIFE)
    restarted(b, g)
    a.gate = b.gate
    check_equal(unchanged_by(LIFE, a.admit), ["floors-missing", "lease-a"])


@test
def the_lists_of_those_that_are_listed_count_as_well():
    a, b, g = company(LIFE)
    LIFE.at(NOW + 10001)  # a stands still from here on
    c = Member(LIFE, "lease-c")
    all_in_without(a, b, c, g)
    check_equal(b.leave(), "left")
    check_equal((sorted(a.disk.lists()), "lease-c" in b.disk.lists()), (["lease-a", "lease-b"], True))
    restarted(a, g)
    check_equal(a.admit(), ["floors-missing", "lease-b"])
    b.start()
    reported(b)
    check_equal(a.admit(), ["floors-missing", "lease-c"])
    c.disk.floor = 5000
    reported(c)
    check_equal(admitted(a, "incomplete", "lease-b"), 5000)


def all_in_without(_still, *others):
    for _ in range(5):
        for one in others:
            one.pulse()
    check_equal([LIFE.state(one.name) for one in others], ["in"] * len(others))


@test
def an_idle_instance_with_an_old_floor_can_not_let_tokens_come_again():
    a = founder(LIFE)
    b = Member(LIFE, "lease-b")
    all_in(a, b)
    old = LIFE.save()
    LIFE.at(NOW + 10001)  # a stands still
    for i in range(120):
        if i % 40 == 0:
            b.pulse(), b.pulse()
        grant(LIFE, b, "orders:42", f"id-{i}", ttl=100)
        check_equal(b.do(Lease(LIFE, "orders:42").release, f"id-{i}")[0], "released")
    LIFE.restart(old)
    reported(a)
    check_equal((a.disk.floor, a.admit()), (100, ["floors-missing", "lease-b"]))
    reported(b)
    check(admitted(a, "incomplete") >= 120, "tokens of before")


@test
def a_fresh_state_directory_admits_nothing_whoever_is_there():
    a, b, _ = company(LIFE)
    fresh = Member(LIFE, "lease-x")
    restarted(fresh)
    check_equal(unchanged_by(LIFE, fresh.admit), ["floors-missing", "lease-a,lease-b"])
    reported(a, b)
    check_equal(fresh.admit()[0], "floors-missing")
    founder(LIFE)
    LIFE.redis("DEL", f"{RECORD}:m:lease-a", f"{RECORD}:members")
    restarted(fresh)
    check_equal(unchanged_by(LIFE, fresh.admit), ["floors-missing", "unknown"])


@test
def a_newcomer_that_nobody_has_recorded_may_admit_and_one_that_never_recorded_stops_nobody():
    a = alone(LIFE)
    x = Member(LIFE, "lease-x")
    check_equal((x.pulse(), sorted(x.disk.lists()), a.disk.lists()), ("pending", ["lease-a", "lease-x"], ["lease-a"]))
    restarted(a, x)
    admitted(x, "complete")
    check_equal((LIFE.listed(), x.pulse(), a.pulse()), (["lease-a"], "pending", "in"))
    all_in(a, x)
    a = alone(LIFE)
    x = Member(LIFE, "lease-x")
    x.recording = False
    x.pulse()
    a.pulse()
    check_equal((sorted(a.disk.lists()), x.disk.list), (["lease-a", "lease-x"], []))
    restarted(a, x)
    check_equal(x.admit()[0], "floors-missing")
    admitted(a, "complete")
    check_equal((LIFE.listed(), x.pulse()), (["lease-a"], "pending"))


@test
def a_lease_service_that_is_in_nobodys_list_is_dropped_and_must_join():
    a, b, _ = company(LIFE)
    old = LIFE.save()
    check_equal(b.leave(), "left")
    all_in(a)
    b.start()
    restarted(a, b, saved=old)  # the store says that b is in; no list that counts does
    admitted(a, "incomplete", "gate-g,lease-b")
    check_equal((LIFE.listed(), b.pulse()), (["lease-a"], "pending"))
    LIFE.at(NOW + 10001)
    check_equal([b.pulse() for _ in range(3)], ["pending"] * 3)
    a.pulse(), a.pulse()
    check_equal((b.pulse(), LIFE.state("lease-b")), ("in", "in"))


@test
def a_gateway_is_in_only_when_a_state_directory_lists_it_and_must_then_be_asked():
    a, b, g = company(LIFE)
    x = Member(LIFE, "gate-x", "gateway")  # new: the store alone knows it
    x.pulse()
    restarted(a, b, g, x)
    admitted(a, "complete")
    check_equal((g.pulse(), x.pulse()), ("in", "pending"))
    all_in(a, b, g, x)
    g.start()
    restarted(a, b, g, x)
    admitted(a, "incomplete", "gate-g")
    check_equal((g.pulse(), x.pulse()), ("pending", "in"))
    a, b, _ = company(LIFE)
    old = LIFE.save()
    x = Member(LIFE, "gate-x", "gateway")
    all_in(a, b, x)
    LIFE.restart(old)
    a.start(), b.start()
    reported(a, b)
    check_equal(a.admit()[4], "gate-g,gate-x,lease-a,lease-b")


@test
def one_that_was_forgotten_or_has_left_is_not_asked_and_joins_anew():
    a, b, g = company(LIFE)
    LIFE.redis("HSET", f"{RECORD}:m:gate-g", "state", "forgotten")
    LIFE.redis("HINCRBY", RECORD, "roll", 1)
    all_in(a, b)
    restarted(a, b)
    admitted(a, "complete")
    check_equal((LIFE.listed(), g.pulse()), (["lease-a", "lease-b"], "pending"))
    a, b, g = company(LIFE)
    check_equal((g.leave(), b.leave()), ("left", "left"))
    all_in(a)
    restarted(a)
    admitted(a, "complete")


# -- from which numbers

@test
def every_counter_goes_above_every_floor_counter_ceiling_and_token_that_was_let_through():
    for what, highest in (("the floor of another", lambda b, g, stranger: vars(b.disk).update(floor=700)),
                          ("the floor of a stranger", lambda b, g, stranger: vars(stranger.disk).update(floor=700)),
                          ("a counter", lambda b, g, stranger: LIFE.redis("HSET", STRIPES[99], "counter", 700)),
                          ("the ceiling", lambda b, g, stranger: LIFE.redis("HSET", RECORD, "ceiling", 700)),
                          ("let through", lambda b, g, stranger: vars(g).update(passed=700))):
        a, b, g = company(LIFE)
        stranger = Member(LIFE, "lease-x")
        highest(b, g, stranger)
        restarted(a, b, g, stranger)
        check_equal(a.admit()[3], "700", what)
        check_equal((LIFE.stripe("counter"), LIFE.stripe("ceiling"), LIFE.record("ceiling")), ("700",) * 3, what)
        reply = a.do(Lease(LIFE, "orders:42").acquire) if a.pulse() == "in" else []
        check_equal(reply[:1], ["ceiling"], "before a floor above it is recorded")
        all_in(a, b, g)
        a.pulse(), b.pulse()
        check_equal(grant(LIFE, a, "orders:42"), 701)


@test
def the_numbers_end_exactly_at_the_end_of_the_range():
    a, b, g = company(LIFE)
    b.disk.floor = TOKEN_LAST + 1
    restarted(a, b, g)
    check_equal(admitted(a, "complete"), TOKEN_LAST)
    all_in(a, b, g)
    check_equal((LIFE.stripe("counter"), LIFE.stripe("ceiling")), (str(TOKEN_LAST), str(TOKEN_LAST)))
    check_equal(a.do(Lease(LIFE, "orders:42").acquire)[0], "exhausted")
    a, b, g = company(LIFE)
    b.disk.floor = TOKEN_LAST - 3
    restarted(a, b, g)
    admitted(a, "complete")
    for _ in range(2):
        all_in(a, b, g)
    lease, replies = Lease(LIFE, "orders:42"), []
    for i in range(5):
        replies.append(a.do(lease.acquire, f"id-{i}"))
        a.do(lease.release, f"id-{i}")
    check_equal([reply[0] for reply in replies], ["granted"] * 3 + ["exhausted"] * 2)
    check_equal([reply[2] for reply in replies[:3]], [TOKEN_LAST - 2, TOKEN_LAST - 1, TOKEN_LAST])


@test
def the_epoch_is_above_every_epoch_that_anybody_knew_and_not_below_the_unix_time():
    for known, wanted in ((EPOCH + 1, UNIX), (UNIX - 1, UNIX), (UNIX, UNIX + 1), (UNIX + 500, UNIX + 501)):
        a, b, g = company(LIFE)
        g.epoch = known
        restarted(a, b, g)
        check_equal(a.admit()[1], str(wanted), f"{known} was known")
        a, b, g = company(LIFE)
        b.disk.epoch = known  # in the state directory of a process that has only just started
        b.start()
        restarted(a, b, g)
        check_equal(a.admit()[1], str(wanted), f"{known} was recorded")


@test
def the_roll_and_every_sequence_number_are_above_all_that_was_reported_of_this_life():
    a, b, g = company(LIFE)
    b.disk.roll = 900
    restarted(a, b, g)
    a.admit()
    check_equal(LIFE.record("roll"), "901")
    a, b, g = company(LIFE)
    b.seen[5], g.seen[5], g.seen[6] = 40, 50, 60
    restarted(a, b, g)
    admitted(a, "incomplete")
    check_equal(LIFE.seqs()[4:8], [1, 51, 61, 1])
    a, b, g = company(LIFE)
    g.epoch, g.seen = EPOCH - 1, [90] * 256
    restarted(a, b, g)
    admitted(a, "complete")
    check_equal(LIFE.stripe("seq"), "1")


@test
def a_forgotten_one_is_not_waited_for_but_all_that_it_led_to_are():
    a, b, g = company(LIFE)
    LIFE.at(NOW + 20000)
    all_in(a, g)
    roll = int(LIFE.record("roll")) + 1
    LIFE.redis("HSET", f"{RECORD}:m:lease-b", "state", "forgotten", "since", roll)  # as pawl store forget does
    LIFE.redis("HSET", RECORD, "roll", roll)
    restarted(a, g)
    check("lease-b" in a.disk.lists(), "it has not recorded the change yet")
    admitted(a, "complete")
    a, y, g = company(LIFE)
    k = Member(LIFE, "lease-k")
    LIFE.at(NOW + 20000)
    all_in(a, k)  # lease-b stands still: it does not know of lease-k
    LIFE.at(NOW + 40000)
    all_in(k)
    roll = int(LIFE.record("roll")) + 1
    LIFE.redis("HSET", f"{RECORD}:m:lease-a", "state", "forgotten", "since", roll)
    LIFE.redis("HSET", RECORD, "roll", roll)
    restarted(y)
    check_equal((sorted(y.disk.lists()), y.admit()), (["lease-a", "lease-b"], ["floors-missing", "lease-k"]))
    a, b, g = company(LIFE)
    LIFE.redis("HSET", f"{RECORD}:m:lease-b", "state", "forgotten", "since", a.disk.roll)
    restarted(a, g)
    check_equal(a.admit(), ["floors-missing", "lease-b"])


# -- who has to say again what it has sent

DOUBT = RECORD + ":doubt"


def in_doubt():
    flat = text(LIFE.redis("HGETALL", DOUBT))
    return dict(zip(flat[::2], flat[1::2]))


def named(*members):
    """In doubt, by a life above all that were known."""
    return {f"{one.name} {one.incarnation}": f"open {EPOCH + 1}" for one in members}


@test
def after_a_life_that_is_not_proven_complete_every_gateway_of_before_is_in_doubt_and_no_other():
    a, b, g = company(LIFE)
    x = Member(LIFE, "gate-x", "gateway")
    all_in(a, b, g, x)
    pending = Member(LIFE, "gate-y", "gateway")
    pending.pulse()
    restarted(a, b, g)  # one that has reported, too: what it has sent may be lost
    admitted(a, "incomplete", "gate-x,gate-y")
    check_equal(in_doubt(), named(g, x, pending))
    a, b, g = company(LIFE)
    LIFE.redis("HSET", DOUBT, "gate-z life-0", "dead 5 0 3")
    restarted(a, b, g)
    admitted(a, "complete")
    check_equal(in_doubt(), {"gate-z life-0": "dead 5 0 3"})
    a, b, g = company(LIFE)
    LIFE.redis("HSET", DOUBT, "gate-z life-0", "open 3", f"{g.name} {g.incarnation}", "dead 5 0 3")
    restarted(a, g)
    b.start()
    reported(b)
    admitted(a, "incomplete", "lease-b")
    check_equal(in_doubt(), {"gate-z life-0": f"open {EPOCH + 1}", f"{g.name} {g.incarnation}": f"dead 5 0 {EPOCH + 1}"})


@test
def a_gateway_of_which_only_a_list_or_its_own_report_tells_is_in_doubt_and_so_is_its_successors_predecessor():
    a, b, g = company(LIFE)
    restarted(a, b)
    LIFE.redis("DEL", RECORD + ":m:gate-g")
    LIFE.redis("SREM", RECORD + ":members", "gate-g")
    admitted(a, "incomplete", "gate-g")
    check_equal(in_doubt(), named(g))
    a, b, g = company(LIFE)
    for one in (a, b):
        one.disk.list = [line for line in one.disk.list if "gate-g" not in line]
    LIFE.redis("DEL", RECORD + ":m:gate-g")
    LIFE.redis("SREM", RECORD + ":members", "gate-g")
    g.seen[0] += 1
    restarted(a, b, g)
    admitted(a, "incomplete")
    check_equal(in_doubt(), named(g))
    a, b, g = company(LIFE)
    former = named(g)
    g.start()
    restarted(a, b, g)
    admitted(a, "incomplete", "gate-g")
    check_equal(in_doubt(), former)  # the successor was never admitted: it has sent nothing


@test
def a_gateway_that_left_or_was_forgotten_is_in_no_doubt():
    a, b, g = company(LIFE)
    check_equal(g.leave(), "left")
    all_in(a, b)
    b.seen[0] += 1
    restarted(a, b)
    admitted(a, "incomplete")
    check_equal(in_doubt(), {})
    a, b, g = company(LIFE)
    LIFE.redis("HSET", f"{RECORD}:m:gate-g", "state", "forgotten", "since", int(LIFE.record("roll")) + 1)
    LIFE.redis("HINCRBY", RECORD, "roll", 1)
    b.seen[0] += 1
    restarted(a, b)
    admitted(a, "incomplete")
    check_equal(in_doubt(), {})


# -- a store that has lost who is in doubt, too

ELSE = "gate-z life-0"
EVERYBODY = "whichever_it_was whichever_it_was"


def on_disk(member):
    """The doubts that its state directory has: {who: life}."""
    return {" ".join(line.split(" ")[1:3]): int(line.split(" ")[3]) for line in member.disk.list if line.startswith("doubt ")}


def lost_once():
    """Two lease services, whose directories say that a gateway is in doubt of which nobody else knows any more."""
    a, b, g = company(LIFE)
    g.seen[0] += 1
    restarted(a, b, g)
    admitted(a, "incomplete")
    all_in(a, b)
    LIFE.redis("SREM", RECORD + ":members", g.name)
    LIFE.redis("DEL", f"{RECORD}:m:{g.name}")
    all_in(a, b)
    for one in (a, b):
        check_equal((on_disk(one), one.disk.lists()), ({f"{g.name} {g.incarnation}": EPOCH + 1}, ["lease-a", "lease-b"]))
    return a, b, f"{g.name} {g.incarnation}"


@test
def who_is_in_doubt_in_any_state_directory_is_so_however_often_the_store_is_lost():
    for who_knows, how in ((0, "complete"), (1, "complete"), (0, "incomplete"), (1, "incomplete")):
        *both, gone = lost_once()
        for _ in range(3):
            LIFE.redis("DEL", DOUBT)
            both[1 - who_knows].disk.list = [line for line in both[1 - who_knows].disk.list if not line.startswith("doubt ")]
            both[0].doubt = "doubt" if how == "incomplete" else ""
            restarted(*both)
            admitted(both[0], how)
            both[0].doubt = ""
            life = EPOCH if how == "complete" else int(both[0].disk.epoch)
            check_equal(in_doubt(), {gone: f"open {life + 1}"}, f"{who_knows} {how}")
            all_in(*both)
            check_equal([list(on_disk(one)) for one in both], [[gone], [gone]])


@test
def the_gate_opens_when_every_lease_service_that_has_reported_has_recorded_who_is_in_doubt():
    a, b, g = company(LIFE)
    g.seen[0] += 1
    restarted(a, b, g)
    for one, other in ((a, b), (b, a)):
        told = unchanged_by(LIFE, one.ask_to_admit)
        check_equal((told[0], told[1][-1]), ("record", f"doubt {g.name} {g.incarnation} {EPOCH + 1}"))
        one.disk.list = told[1]
        check_equal(unchanged_by(LIFE, one.ask_to_admit)[0], "record")  # what is on disk counts when it is reported
        one.pulse()
        if one is a:
            check_equal(unchanged_by(LIFE, one.ask_to_admit), ["unrecorded", other.name])
    check_equal((in_doubt(), a.ask_to_admit()[0]), ({}, "admitted"))
    check_equal(in_doubt(), named(g))


@test
def a_newcomer_with_an_empty_directory_records_who_is_in_doubt_before_the_gate_opens():
    for is_silent in (False, True):
        a, b, gone = lost_once()
        c = Member(LIFE, "lease-c")
        restarted(a, b, c)
        if is_silent:  # it has no part in this life before it has recorded the list
            LIFE.redis("HSET", RECORD + ":m:lease-c", "at", NOW - 60000)
        check_equal(a.ask_to_admit("now")[0], "admitted" if is_silent else "unrecorded")
        if not is_silent:
            check(c.records(), "it is told though it may not admit")
            check_equal((list(on_disk(c)), a.ask_to_admit()[0]), ([gone], "admitted"))
        check_equal(LIFE.state("lease-c"), None, "it joins anew")


@test
def a_lease_service_that_is_needed_is_waited_for_however_long_it_is_silent():
    a, b, _ = company(LIFE)
    b.seen[0] += 1
    restarted(a, b)
    LIFE.redis("HSET", RECORD + ":m:lease-b", "at", NOW - 60000)
    check(a.records(), "who is in doubt")
    check_equal(a.ask_to_admit(), ["unrecorded", "lease-b"])


@test
def a_doubt_that_is_begun_again_is_of_the_new_life_and_a_settled_one_leaves_the_directories():
    a, b, g = company(LIFE)
    LIFE.redis("HSET", DOUBT, f"{g.name} {g.incarnation}", "open 3", ELSE, "dead 5 0 4")
    g.seen[0] += 1
    restarted(a, b, g)
    admitted(a, "incomplete")
    check_equal(in_doubt(), {f"{g.name} {g.incarnation}": f"open {EPOCH + 1}", ELSE: f"dead 5 0 {EPOCH + 1}"})
    a, b, gone = lost_once()
    reply = LIFE.call("gateway/scripts/unreported_leave.lua", ["pawl:{00}"], *gone.split(" "), "", LIFE.record("epoch"), 0)
    check_equal((reply[2], list(on_disk(a))), (0, [gone]))
    all_in(a, b)
    check_equal((on_disk(a), on_disk(b)), ({}, {}))


@test
def that_everybody_is_dead_is_known_of_one_life_only():
    for how in ("complete", "incomplete"):
        a, b, g = company(LIFE)
        LIFE.redis("HSET", DOUBT, EVERYBODY, "dead 5 0 4")
        g.seen[0] += 1 if how == "incomplete" else 0
        restarted(a, b, g)
        admitted(a, how)
        check_equal(in_doubt()[EVERYBODY], "dead 5 0 4" if how == "complete" else f"open {EPOCH + 1}")


@test
def a_life_is_above_all_that_have_begun_a_doubt_also_those_that_never_came():
    a, b, g = company(LIFE)
    for one in (a, b):
        one.disk.list.append(f"doubt {ELSE} {UNIX + 50}")
    g.seen[0] += 1
    restarted(a, b, g)
    admitted(a, "incomplete")
    check_equal((LIFE.record("epoch"), in_doubt()),
                (str(UNIX + 50), {ELSE: f"open {UNIX + 50}", f"{g.name} {g.incarnation}": f"open {UNIX + 50}"}))


@test
def a_directory_with_a_doubt_of_a_later_life_is_not_told_what_this_one_has_settled():
    a, b, g = company(LIFE)
    a.disk.list.append(f"doubt {ELSE} {EPOCH}")
    all_in(a, b, g)
    check_equal(on_disk(a), {}, "of this life: it was settled")
    a.disk.list.append(f"doubt {ELSE} {EPOCH + 1}")
    check_equal((a.pulse(), LIFE.record("why"), on_disk(a)), ("gated", "behind", {ELSE: EPOCH + 1}))


@test
def with_more_doubts_than_a_directory_has_room_for_everybody_is_in_doubt():
    for count, everybody in ((255, 0), (256, 1), (600, 1)):
        a, b, g = company(LIFE)
        all_in(a, b, g)
        for i in range(count - 1):
            LIFE.redis("HSET", DOUBT, f"gate-h life-{i:03}", f"open {i % 5}")
        g.seen[0] += 1
        restarted(a, b, g)
        admitted(a, "incomplete")
        wanted = min(count, 255) + everybody
        for one in (a, b):
            check_equal((len(on_disk(one)), on_disk(one).get(EVERYBODY)), (wanted, EPOCH + 1 if everybody else None), count)
        check_equal((len(in_doubt()), EVERYBODY in in_doubt()), (count + everybody, bool(everybody)))
        LIFE.redis("DEL", DOUBT)
        all_in(a, b)
        check_equal(on_disk(a), {}, "and what was settled is gone")


@test
def after_a_recovery_with_a_floor_nobody_is_in_before_it_has_recorded_that_everybody_is_in_doubt():
    a, b, _ = lost_once()
    LIFE.redis("FLUSHALL")
    LIFE.at(NOW)
    recovered = LIFE.run("api/cli/scripts/recover.lua", [RECORD], "", IDENTITY, 5000, UNIX, "")
    check_equal(recovered[0], "recovered")
    LIFE.redis("HSET", RECORD, "run", LIFE.run_and_stream())
    a.recording = False
    check_equal([a.pulse() for _ in range(3)], ["pending"] * 3)
    a.recording = True
    a.pulse()
    check_equal((on_disk(a), a.pulse()), ({EVERYBODY: recovered[1]}, "in"))


main()
