#!/usr/bin/python3
"""Every reply and every branch of heartbeat.lua and member_leave.lua."""

import re

from lua_test import EPOCH, IDENTITY, MEMBERS, RECORD, STRIPES, TOKEN_LAST, check, check_equal, main, stripe_do, test
from members import LEAVE, PULSE, Life, Member, all_in, alone, company, founder, grant, unchanged_by

LIFE = Life()
NOW = 1000000
DAY_MS = 86400000


def rolls(*members):
    return [int(LIFE.member(one.name, "roll")) for one in members]


# -- who joins, and when

@test
def the_first_lease_service_takes_the_place_that_the_new_store_lists():
    a = founder(LIFE)
    reply = a.ask()
    check_equal(reply[:11], ["in", EPOCH, IDENTITY, 2, 100, str(NOW), [a.line()], 1, "100", "0", [0] * 256])
    used = int(re.search(rb"\r\nused_memory:(\d+)", LIFE.redis("INFO", "memory")).group(1))
    check(used / 2 < int(reply[11]) < used * 2 and reply[12] == "0", f"in use {reply[11:]}, says INFO {used}")
    check_equal(LIFE.member("lease-a", "state", "epoch", "beats", "floor", "roll", "since", "at", "who"),
                ["in", str(EPOCH), "1", "100", "0", "2", str(NOW), "pawl-lease lease-a"])
    check_equal(a.ask()[7], 2)


@test
def a_service_without_an_access_file_reports_at_a_shut_gate_and_is_not_let_in_where_one_is_needed():
    a = founder(LIFE)
    check_equal((a.pulse(), a.pulse()), ("in", "in"))
    LIFE.redis("HSET", RECORD, "access", "1")
    check_equal(LIFE.run(PULSE, [RECORD], *a.arguments()), ["open"])
    LIFE.restart()
    check_equal(a.pulse(), "gated")
    gate = LIFE.member("lease-a", "rgate")
    LIFE.redis("HDEL", f"{RECORD}:m:lease-a", "rgate")
    check_equal(LIFE.run(PULSE, [RECORD], *a.arguments())[0], "gated")
    check_equal(LIFE.member("lease-a", "rgate"), gate, "the others wait for its report")


@test
def the_place_of_a_directory_that_never_began_may_be_taken_and_that_of_one_that_has_begun_is_not():
    founder(LIFE)
    b, c = Member(LIFE, "lease-b"), Member(LIFE, "lease-c")
    check_equal((b.pulse(), b.pulse()), ("pending", "in"))
    check_equal((LIFE.listed(), b.disk.lists()), (["lease-b"], ["lease-b"]))
    check_equal((c.pulse(), c.pulse()), ("pending", "pending"), "nobody has vouched for it yet")
    late = Member(LIFE, "lease-a")
    late.disk.floor = 100
    check_equal(late.pulse(), "pending")
    all_in(b, c, late)
    a = alone(LIFE)
    check_equal(a.leave(), "out")
    b = Member(LIFE, "lease-b")
    check_equal((b.pulse(), b.pulse()), ("pending", "pending"))


@test
def a_directory_that_never_began_admits_nothing_and_a_process_that_knows_no_store_takes_any():
    a = founder(LIFE)
    LIFE.restart()
    check_equal((a.pulse(), a.pulse()), ("gated", "gated"))
    check_equal(a.admit(), ["floors-missing", "unknown"])
    a = founder(LIFE)
    a.identity = ""
    check_equal(a.pulse(), "in")


@test
def a_gateway_is_pending_until_the_lease_service_has_told_a_roll_that_contains_it():
    a = alone(LIFE)
    g = Member(LIFE, "gate-g", "gateway")
    check_equal(g.ask(), ["pending", EPOCH, IDENTITY, 3, 100, str(NOW), [a.line(), g.line()]])
    a.pulse()  # is given the list, and records it
    check_equal((a.disk.roll, a.disk.list, g.pulse()), (3, [g.line(), a.line()], "pending"))
    a.pulse()  # tells so
    check_equal(g.pulse(), "in")


@test
def a_lease_service_with_a_fresh_directory_is_vouched_for_and_records_the_list_itself():
    a = alone(LIFE)
    b = Member(LIFE, "lease-b")
    b.recording, b.disk.floor = False, 100
    check_equal(b.pulse(), "pending")
    a.pulse()
    a.pulse()
    check_equal(b.pulse(), "pending", "it has not recorded a list itself")
    b.recording = True
    check_equal((b.pulse(), b.pulse()), ("pending", "in"))
    check_equal(sorted(b.disk.lists()), ["lease-a", "lease-b"])


@test
def a_newcomer_stays_pending_until_all_live_ones_have_recorded_it_and_its_floor_is_high_enough():
    a, b, _ = company(LIFE)
    c = Member(LIFE, "lease-c")
    b.recording = False
    for _ in range(3):
        c.pulse(), a.pulse(), b.pulse()
    check_equal((c.pulse(), rolls(a)[0] > rolls(b)[0]), ("pending", True))
    LIFE.at(NOW + 10001)  # b pulses no more: it is not live
    a.pulse()
    check_equal(c.pulse(), "in")
    a = alone(LIFE, floor=1000)
    b = Member(LIFE, "lease-b")
    for _ in range(3):
        b.pulse(), a.pulse()
        b.disk.floor = 999
    check_equal(b.pulse(), "pending")
    b.disk.floor = 1000
    check_equal(b.pulse(), "in")


@test
def nobody_gets_in_while_no_lease_service_lives():
    for how in ("stopped", "left"):
        a = alone(LIFE)
        if how == "left":
            check_equal(a.leave(), "out")
        LIFE.at(NOW + 10001)
        b, g = Member(LIFE, "lease-b"), Member(LIFE, "gate-g", "gateway")
        check_equal([one.pulse() for one in (b, g) * 4], ["pending"] * 8, how)
        a.start()
        all_in(a, b, g)


@test
def a_process_with_the_state_directory_of_another_takes_its_place_and_that_is_told_so():
    a, b, g = company(LIFE)
    grant(LIFE, a, "orders:42")
    for one in (b, g):
        before = int(LIFE.record("roll"))
        one.start()
        check_equal((one.pulse(), one.seen), ("in", LIFE.seqs()))
        check_equal(one.reply[3], before + 1, "the roll")
        check(one.line() in one.reply[6], f"{one.line()} is not in {one.reply[6]}")
    a, b, _ = company(LIFE)
    old = Member(LIFE, "lease-b")
    old.__dict__.update({name: getattr(b, name) for name in ("incarnation", "epoch", "beats", "seen", "disk")})
    b.start()
    check_equal(b.pulse(), "in")
    check_equal(unchanged_by(LIFE, old.ask), ["superseded"])
    check_equal((a.pulse(), b.pulse()), ("in", "in"))


@test
def a_member_that_was_forgotten_is_told_so_changes_nothing_and_stands_in_no_list():
    a, b, g = company(LIFE)
    LIFE.redis("HSET", f"{RECORD}:m:gate-g", "state", "forgotten")
    check_equal(unchanged_by(LIFE, g.ask), ["forgotten"])
    g.start()
    check_equal(unchanged_by(LIFE, g.ask), ["forgotten"])
    g.epoch, g.seen = EPOCH, [9] * 256  # what it knows is not asked for any more
    check_equal(unchanged_by(LIFE, g.ask), ["forgotten"])
    check_equal(a.ask()[6], [a.line(), b.line()])


@test
def an_entry_raises_the_roll_above_any_that_the_newcomer_has_recorded():
    a = alone(LIFE)
    b = Member(LIFE, "lease-b")
    b.disk.roll, b.recording = 57, False  # of a life that was lost
    b.pulse()
    check_equal((LIFE.member("lease-b", "since"), LIFE.record("roll")), ("58", "58"))
    a.pulse(), a.pulse()
    check_equal(b.pulse(), "pending")


@test
def after_a_recovery_the_first_lease_service_needs_nobody_to_vouch_for_it_and_each_lifts_the_counters_to_its_floor():
    founder(LIFE, floor=50)
    LIFE.redis("HSET", RECORD, "open", "1")
    LIFE.redis("HSET", STRIPES[3], "counter", 70)
    g, b, c = Member(LIFE, "gate-g", "gateway"), Member(LIFE, "lease-b"), Member(LIFE, "lease-c")
    b.disk.floor, b.recording, c.disk.floor = 60, False, 65
    b.disk.epoch = c.disk.epoch = EPOCH - 1
    check_equal((g.pulse(), LIFE.record("open")), ("pending", "1"))
    check_equal((b.pulse(), b.pulse(), LIFE.record("open")), ("pending", "pending", "0"), "not before it has recorded it")
    check_equal(LIFE.stripe("counter"), ["60", "70"])
    check_equal((c.pulse(), c.pulse(), LIFE.stripe("counter")), ("pending", "pending", ["65", "70"]), "only one is the first")
    b.start()  # died before it was in: the next with its directory goes on as the first
    b.recording = True
    check_equal((b.pulse(), b.pulse()), ("pending", "in"))
    all_in(b, c, g)


# -- nobody may act

@test
def an_empty_redis_and_another_store_or_schema_are_told_and_not_touched():
    a = alone(LIFE)
    LIFE.redis("FLUSHALL")
    LIFE.at(NOW)
    check_equal(unchanged_by(LIFE, a.ask), ["empty"])
    a.start()
    check_equal(unchanged_by(LIFE, a.ask), ["empty"])
    a = alone(LIFE)
    a.identity = "11:other"
    check_equal(unchanged_by(LIFE, a.ask), ["another", IDENTITY])
    for identity in ("1" + IDENTITY[2:], "22" + IDENTITY[2:]):
        for key in STRIPES + [RECORD]:
            stripe_do(LIFE.redis, "HSET", key, "id", identity)
        for a.identity in ("", identity):
            check_equal(unchanged_by(LIFE, a.ask), ["another", identity])


@test
def another_run_id_or_stream_shuts_every_stripe_and_a_second_member_finds_the_same_gating():
    a, b, _ = company(LIFE)
    LIFE.restart()
    reply = a.ask()
    gate = LIFE.record("gate")
    check_equal(reply, ["gated", EPOCH, gate, "restarted", "", ""])
    check(gate.startswith("gate-"), gate)
    check_equal(LIFE.record("gaterun", "run", "why"), [LIFE.run_and_stream(), f"run-1 {LIFE.replid()}", "restarted"])
    check_equal(LIFE.stripe("epoch"), str(-EPOCH))
    check_equal(b.ask(), reply)
    a, b, _ = company(LIFE)
    LIFE.new_stream()
    check_equal((a.pulse(), a.reply[3]), ("gated", "restarted"))
    first = a.gate
    LIFE.new_stream()
    check_equal((a.admit(), b.pulse(), b.reply[3]), (["moved"], "gated", "restarted"))
    check(b.gate != first, "the same gating")


@test
def on_a_replica_that_can_be_written_to_nobody_acts_and_nothing_is_admitted():
    a, b, _ = company(LIFE)
    LIFE.redis("CONFIG", "SET", "replica-read-only", "no")
    LIFE.redis("REPLICAOF", "127.0.0.1", 1)
    try:
        for one in (a, b):
            check_equal((one.pulse(), one.admit()), ("gated", ["moved"]))
    finally:
        LIFE.redis("REPLICAOF", "NO", "ONE")
        LIFE.redis("CONFIG", "SET", "replica-read-only", "yes")


@test
def of_two_that_report_under_one_id_the_later_directory_counts_and_nothing_is_proven():
    for order in (1, -1):
        _, b, _ = company(LIFE)
        copy = Member(LIFE, "lease-b")
        copy.disk.__dict__.update(b.disk.__dict__)
        copy.pulse(), copy.pulse()
        copy.disk.floor = 200
        LIFE.restart()
        for one in [copy, b][::order]:
            one.pulse()
        check_equal(LIFE.member("lease-b", "rfloor", "rroll", "rdoubt"), ["200", str(copy.disk.roll), "doubt"], f"order {order}")


@test
def a_report_has_all_that_a_member_knows_but_is_taken_only_when_it_is_whole():
    _, b, g = company(LIFE)
    LIFE.restart()
    g.seen[7], g.passed, g.doubt = 5, 33, "doubt"
    check_equal((g.pulse(settled=""), LIFE.member("gate-g", "rgate")), ("gated", None))
    g.pulse()
    check_equal(LIFE.member("gate-g", "rgate", "rincarnation", "repoch", "rseqs", "rpassed", "rdoubt", "rlist", "rroll"),
                [g.gate, g.incarnation, str(EPOCH), " ".join(map(str, g.seen)), "33", "doubt", "", "0"])
    check_equal(LIFE.member("gate-g", "state", "incarnation"), ["in", g.incarnation], "what it was before")
    b.pulse()
    check_equal(LIFE.member("lease-b", "rfloor", "rlist", "rroll"), ["100", ",".join(b.disk.list), str(b.disk.roll)])
    stranger = Member(LIFE, "gate-x", "gateway")
    stranger.pulse()
    check_equal((LIFE.state("gate-x"), LIFE.member("gate-x", "rgate", "repoch")), (None, [g.gate, "0"]))


@test
def a_gating_belongs_to_the_redis_that_it_was_made_on():
    a, b, _ = company(LIFE)
    LIFE.restart()
    a.pulse(), b.pulse()
    first = a.gate
    LIFE.restart()  # with the reports of before, which may be of another past
    check_equal((a.pulse(), a.reply[3]), ("gated", "restarted"))
    check(a.gate != first, "the same name")
    check_equal(LIFE.member("lease-b", "rgate"), first)
    check_equal(a.admit(gate=first), ["moved"])
    check_equal(a.admit(), ["floors-missing", "lease-b"])


@test
def what_was_lost_or_damaged_stays_the_reason_through_another_restart():
    for why in ("empty", "damaged"):
        a = alone(LIFE)
        LIFE.restart()
        a.pulse()
        LIFE.redis("HSET", RECORD, "why", why)
        LIFE.restart()
        check_equal(a.pulse() and a.reply[3], why)


@test
def a_process_that_knows_more_than_the_store_shuts_it_and_one_of_an_older_life_does_not():
    member = f"{RECORD}:m:lease-b"
    for what, more, *commands in (  # more epochs, pulses, and changes of the first and the last stripe
            ("a later epoch", (1, 0, 0, 0)), ("a pulse was lost", (0, 1, 0, 0)), ("a change was lost", (0, 0, 0, 1)),
            ("its place was lost", (0, 0, 0, 0), ("DEL", member), ("SREM", MEMBERS, "lease-b")),
            ("a change was lost and its place taken", (0, 0, 1, 0), ("HSET", member, "incarnation", "another"))):
        _, b, _ = company(LIFE)
        check_equal(b.pulse(), "in")
        for command in commands:
            LIFE.redis(*command)
        known = (b.epoch, b.beats, b.seen[0], b.seen[255])
        b.epoch, b.beats, b.seen[0], b.seen[255] = map(sum, zip(known, more))
        check_equal(b.ask()[::3], ["gated", "behind"], what)
        check_equal(LIFE.stripe("epoch"), str(-EPOCH), what)
    a, b, _ = company(LIFE)
    b.epoch, b.beats, b.seen = EPOCH - 1, 99, [99] * 256
    b.incarnation = "lease-b-older"
    check_equal((b.pulse(), a.pulse()), ("in", "in"))


def damages():
    """(what, how): each of them is noticed by itself."""
    for field in ("id", "epoch", "seq", "counter", "ceiling", "clock", "alive"):
        yield f"a stripe without {field}", ("HDEL", STRIPES[200], field)
        yield f"a stripe whose {field} is junk", ("HSET", STRIPES[200], field, "junk")
    for field in ("epoch", "alive", "clock", "ceiling"):
        for junk in ("inf", "nan", "0x10", "1e3"):
            yield f"a stripe whose {field} is {junk}", ("HSET", STRIPES[200], field, junk)
    yield "a stripe that is gone", ("DEL", STRIPES[17])
    yield "a stripe whose life is junk", ("HSET", STRIPES[17], "life", "junk")
    yield "a stripe of another epoch", ("HSET", STRIPES[255], "epoch", EPOCH - 1)
    yield "a stripe with a negative counter", ("HSET", STRIPES[255], "counter", -1)
    yield "a stripe that is shut", ("HSET", STRIPES[0], "epoch", -EPOCH)
    for field in ("id", "epoch", "run", "roll", "time", "alive", "clock", "ceiling"):
        yield f"a record without {field}", ("HDEL", RECORD, field)
    yield "a record of another epoch", ("HSET", RECORD, "epoch", EPOCH - 1)
    yield "a record that is gone", ("DEL", RECORD)
    yield "a member that is gone", ("DEL", RECORD + ":m:gate-g")
    for field in ("role", "incarnation", "epoch", "state", "beats", "floor", "roll", "since"):
        yield f"a member without {field}", ("HDEL", RECORD + ":m:gate-g", field)


@test
def what_is_missing_or_inconsistent_shuts_the_store():
    a, _, _ = company(LIFE)
    saved = LIFE.save()
    for what, command in damages():
        LIFE.put_back(saved)
        stripe_do(LIFE.redis, *command)
        check_equal(a.ask(), ["gated", EPOCH, LIFE.record("gate"), "damaged", "", ""], what)
        check_equal(LIFE.stripe("epoch"), str(-EPOCH), what)


@test
def a_gate_that_was_erased_and_a_stripe_that_was_opened_are_shut_again():
    a = alone(LIFE)
    LIFE.restart()
    a.pulse()
    LIFE.redis("HDEL", RECORD, "gate")
    check_equal(a.ask(), ["gated", EPOCH, LIFE.record("gate"), "damaged", "", ""])
    a = founder(LIFE)
    LIFE.restart()
    a.pulse()
    stripe_do(LIFE.redis, "HSET", STRIPES[5], "epoch", EPOCH)
    check_equal(a.ask(), ["gated", EPOCH, LIFE.record("gate"), "damaged", "", ""])
    check_equal(LIFE.stripe("epoch"), str(-EPOCH))


# -- the ceiling

@test
def the_ceiling_is_the_lowest_floor_of_the_live_lease_services_and_never_falls():
    a, b, g = company(LIFE)
    c = Member(LIFE, "lease-c")  # pending: its floor does not count
    c.recording = False
    a.recording = b.recording = False
    c.pulse()

    def told(*floors):
        for one, floor in zip((a, b, g), floors):
            one.disk.floor = floor
            one.pulse()
        return LIFE.record("ceiling"), LIFE.stripe("ceiling")
    check_equal(told(300, 200, 150), ("200", "200"))
    check_equal(told(300, 250, 0), ("250", "250"))
    check_equal(told(200, 210), ("250", "250"), "it fell")
    check_equal(told(400, 260), ("260", "260"))
    LIFE.at(NOW + 10000)
    check_equal(told(500), ("260", "260"), "b still counts as live")
    LIFE.at(NOW + 10001)
    check_equal(told(500), ("500", "500"))
    check_equal((b.pulse(), b.reply[8]), ("in", "500"), "one that comes back late")


@test
def the_floor_to_record_is_a_block_ahead_when_half_of_it_is_used():
    a = founder(LIFE)
    a.recording = False
    near_the_end = ((TOKEN_LAST - 101, TOKEN_LAST - 1), (TOKEN_LAST - 50, TOKEN_LAST), (TOKEN_LAST, TOKEN_LAST))
    for counter, wanted in ((0, 100), (50, 100), (51, 151), (100, 200)) + near_the_end:
        LIFE.redis("HSET", STRIPES[9], "counter", counter)
        check_equal(a.ask()[4], wanted, f"counter {counter}")
    a = founder(LIFE, floor=0, block=1)
    tokens = []
    for i in range(3):
        all_in(a)
        a.pulse()
        tokens.append(grant(LIFE, a, "orders:42", f"id-{i}", ttl=100))
        LIFE.at(NOW + 200 * (i + 1))
    check_equal((tokens, a.disk.floor), ([1, 2, 3], 3))


# -- the clock

@test
def a_clock_that_went_back_is_corrected_once_in_every_stripe_and_fifty_ms_are_tolerated():
    a, b, _ = company(LIFE)
    LIFE.at(NOW - DAY_MS)
    check_equal((a.pulse(), a.reply[5], a.reply[9]), ("in", str(NOW), str(DAY_MS)))
    check_equal((LIFE.stripe("clock"), LIFE.record("clock")), (str(DAY_MS), str(DAY_MS)))
    for one in (a, b):
        check_equal((one.pulse(), one.reply[5], one.reply[9]), ("in", str(NOW), "0"))
    a = alone(LIFE)
    LIFE.at(NOW - 50)
    check_equal((a.pulse(), a.reply[5], a.reply[9], LIFE.stripe("clock")), ("in", str(NOW), "0", "0"))


@test
def a_clock_that_went_forward_is_never_corrected_and_stays_ahead_when_it_comes_back():
    a = alone(LIFE)
    LIFE.at(NOW + DAY_MS)
    check_equal((a.pulse(), a.reply[5], a.reply[9], LIFE.stripe("clock")), ("in", str(NOW + DAY_MS), "0", "0"))
    LIFE.at(NOW + 20)
    check_equal((a.pulse(), a.reply[5], a.reply[9]), ("in", str(NOW + DAY_MS), str(DAY_MS - 20)))
    LIFE.at(NOW + DAY_MS)
    check_equal((a.pulse(), a.reply[5], LIFE.stripe("clock")), ("in", str(NOW + 2 * DAY_MS - 20), str(DAY_MS - 20)))


@test
def a_step_back_is_measured_against_what_this_process_or_any_other_knows():
    a, b, _ = company(LIFE)
    LIFE.at(NOW + 500)
    a.pulse()
    for late, corrected in ((51, "51"), (0, "0")):
        LIFE.at(NOW + 500 - late)
        check_equal((b.pulse(), b.reply[9]), ("in", corrected))
    b.at_least = NOW + 600
    LIFE.at(NOW + 549 - 51)
    check_equal((b.pulse(), b.reply[5], b.reply[9]), ("in", str(NOW + 600), "51"))


@test
def time_that_may_not_have_passed_is_counted():
    a, b, _ = company(LIFE)
    check_equal(LIFE.record("leaps"), None)
    LIFE.at(NOW + 2000)
    check_equal((a.pulse(), LIFE.record("leaps")), ("in", None))
    LIFE.at(NOW + 4001)
    check_equal((b.pulse(), LIFE.record("leaps"), a.pulse(), LIFE.record("leaps")), ("in", "2001", "in", "2001"))
    LIFE.at(NOW + DAY_MS)
    check_equal((a.pulse(), LIFE.record("leaps")), ("in", str(2001 + DAY_MS - 4001)))
    LIFE.at(NOW + 20)  # back again: the offset rises, the time does not leap
    check_equal((b.pulse(), LIFE.record("leaps"), LIFE.record("time")), ("in", str(2001 + DAY_MS - 4001), str(NOW + DAY_MS)))


# -- leave

@test
def the_last_lease_service_stays_listed_as_out_and_is_in_again_with_its_next_pulse():
    for other in ("is not live", "has a lower floor than the ceiling", "has a lower floor than a counter", "is a gateway"):
        a, b, g = company(LIFE)
        if other == "is not live":
            LIFE.at(NOW + 10001)
            b.pulse()
        elif other == "is a gateway":
            check_equal(a.leave(), "left")
        elif other == "has a lower floor than the ceiling":
            LIFE.redis("HSET", f"{RECORD}:m:lease-a", "floor", 99)
        else:
            LIFE.redis("HSET", STRIPES[1], "counter", 101)
        roll = int(LIFE.record("roll"))
        check_equal((b.leave(), LIFE.state("lease-b"), int(LIFE.record("roll"))), ("out", "out", roll + 1), other)
        check(b.line() in g.ask()[6], "it is not in the list")
    a = alone(LIFE)
    check_equal(a.leave(), "out")
    roll = int(LIFE.record("roll"))
    check_equal((a.pulse(), LIFE.state("lease-a"), a.reply[3]), ("in", "in", roll + 1))


@test
def leave_of_anybody_else_or_while_the_store_is_shut_changes_nothing():
    for wrong in ({"incarnation": "another"}, {"epoch": EPOCH - 1}, {"identity": "11:other"}, {"name": "nobody"}):
        _, b, _ = company(LIFE)
        vars(b).update(wrong)
        check_equal(unchanged_by(LIFE, b.leave), "not-a-member", wrong)
    for what, shut in (("gated", lambda: [LIFE.restart(), Member(LIFE, "gate-x", "gateway").pulse()]),
                       ("restarted and not gated", LIFE.restart), ("another stream", LIFE.new_stream),
                       ("forgotten", lambda: LIFE.redis("HSET", f"{RECORD}:m:lease-b", "state", "forgotten")),
                       ("wiped", lambda: [LIFE.redis("FLUSHALL"), LIFE.at(NOW)])):
        _, b, _ = company(LIFE)
        shut()
        check_equal(unchanged_by(LIFE, b.leave), "not-a-member", what)


# -- what was put back or overwritten while nobody, or only one, was there to see it

@test
def what_this_process_has_granted_or_its_directory_has_seen_is_believed():
    a = alone(LIFE)
    a.granted = [5] + [0] * 255
    LIFE.redis("HSET", STRIPES[0], "counter", 5)
    check_equal(a.pulse(), "in")
    LIFE.redis("HSET", STRIPES[0], "counter", 4)
    check_equal((a.pulse(), LIFE.record("why")), ("gated", "behind"))
    for later in ("epoch", "roll"):
        a = alone(LIFE)
        a.leave()
        a.start()
        setattr(a.disk, later, getattr(a.disk, later) + 5)
        check_equal((a.pulse(), LIFE.record("why")), ("gated", "behind"), later)


@test
def a_lease_service_that_comes_back_goes_on_above_all_that_was_reserved():
    a, b, g = company(LIFE)
    grant(LIFE, a, "orders:1")
    all_in(a, b, g)
    g.start()
    check_equal((g.pulse(), LIFE.stripe("counter") == "100"), ("in", False))
    a.start()
    check_equal((a.pulse(), LIFE.stripe("counter")), ("in", "100"))


@test
def a_ceiling_that_somebody_has_written_into_a_stripe_is_put_right():
    a = alone(LIFE)
    for wrong in ("61", "999999"):
        stripe_do(LIFE.redis, "HSET", STRIPES[9], "ceiling", wrong)
        check_equal((a.pulse(), LIFE.stripe("ceiling")), ("in", "100"), wrong)


@test
def nobody_joins_while_something_of_a_former_life_is_under_way():
    a, b, _ = company(LIFE)
    c = Member(LIFE, "lease-c")
    b.start()
    for one in (b, c):
        check_equal(unchanged_by(LIFE, lambda one=one: one.ask(settled="")), ["unsettled"], one.name)
    check_equal((a.pulse(settled=""), b.pulse(), c.pulse()), ("in", "in", "pending"))


@test
def leaving_tells_what_is_to_be_recorded_at_the_end():
    a, b, g = company(LIFE)
    reply = LIFE.run(LEAVE, [RECORD], b.identity, b.name, b.incarnation, b.epoch, LIFE.run_id)
    check_equal(reply, ["left", int(LIFE.record("roll")), "100", [g.line(), a.line()]])
    reply = LIFE.run(LEAVE, [RECORD], a.identity, a.name, a.incarnation, a.epoch, LIFE.run_id)
    check_equal(reply, ["out", int(LIFE.record("roll")), "100", [g.line(), a.line()]])
    a, b, g = company(LIFE)
    for one, left in ((g, ["lease-a", "lease-b"]), (b, ["lease-a"])):
        roll = int(LIFE.record("roll"))
        check_equal((one.leave(), LIFE.listed(), int(LIFE.record("roll"))), ("left", left, roll + 1))
        check(not LIFE.redis("EXISTS", f"{RECORD}:m:{one.name}"), "its record is left")
    check_equal(a.ask()[6], [a.line()])
    a = alone(LIFE)
    b = Member(LIFE, "lease-b")
    b.pulse()
    b.epoch = EPOCH
    check_equal((b.leave(), LIFE.listed()), ("left", ["lease-a"]))


# -- the bars of an overview

@test
def what_members_count_is_added_up_by_bars_and_the_ring_forgets():
    def look():
        reply = LIFE.run("shared/member/scripts/overview.lua", [RECORD])
        return [int(one) for one in reply[7]], [reply[6][at:at + 5] for at in range(0, len(reply[6]), 7)]

    a = founder(LIFE)
    check_equal(a.pulse(), "in")
    bar, first = NOW // 5000, look()
    check_equal(first, ([], [["lease-a", "lease", "in", "pawl-lease lease-a", "1.2.3 5000"]]))
    for given, shown in ((f"{bar} 3 0 2", [bar, 3, 0, 2]), (f"{bar} 1 4 0", [bar, 4, 4, 2]), ("", [bar, 4, 4, 2]),
                         (f"{bar + 4} 9 9 9", [bar, 4, 4, 2]), ("x 1 1 1", [bar, 4, 4, 2])):
        a.bar = given
        check_equal((a.pulse(), look()[0]), ("in", shown), given)
    LIFE.at(NOW + 120 * 5000)
    a.bar = f"{bar + 120} 1 0 0"
    check_equal((a.pulse(), look()[0]), ("in", [bar + 120, 1, 0, 0]))
    LIFE.redis("HSET", "pawl:{store}:bars", (bar + 120) % 120, "by hand")
    check_equal((a.pulse(), look()[0]), ("in", [bar + 120, 1, 0, 0]))
    LIFE.redis("DEL", "pawl:{store}:bars")
    LIFE.redis("SET", "pawl:{store}:bars", "by hand")
    check_equal((a.pulse(), look()[0]), ("in", []))


main()
