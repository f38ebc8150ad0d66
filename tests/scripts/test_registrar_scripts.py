#!/usr/bin/python3
"""A store of which a majority of the registrars admits (docs/decisions/0044): heartbeat.lua, admit.lua and recover.lua."""

import copy

from lua_test import EPOCH, IDENTITY, RECORD, check, check_equal, main, test, text
from members import Life, Member, all_in, board, founder, unchanged_by

LIFE = Life()
NOW = 1000000
DOUBT = RECORD + ":doubt"


def restarted(*members, saved=None):
    """Redis has restarted, and these have reported."""
    LIFE.restart(saved)
    for one in members:
        check_equal(one.pulse(), "gated", one.name)


def admitted(member, how, absent=""):
    """The counter that the new epoch begins with."""
    reply = member.admit()
    check_equal((reply[0], reply[2], reply[4]), ("admitted", how, absent))
    return int(reply[3])


def beat(*members):
    for _ in range(4):
        for one in members:
            one.pulse()


def lost():
    """Redis has lost everything; an operator has made the skeleton of it."""
    LIFE.redis("FLUSHALL")
    LIFE.at(NOW)
    LIFE.run("api/cli/scripts/skeleton.lua", [RECORD], IDENTITY, 1, "gate-0")


@test
def the_first_lease_services_become_the_registrars_and_then_their_majority_counts():
    a = founder(LIFE, registrars=3)
    all_in(a)
    check_equal((LIFE.record("registrars", "majority"), a.disk.registrars()), (["3 lease-a", ""], []))
    b, c, d = (Member(LIFE, f"lease-{name}") for name in "bcd")
    all_in(a, b)
    check_equal(a.reply[14:], [0, "", []])
    all_in(a, b, c)
    check_equal(LIFE.record("registrars", "majority"), ["3 lease-a lease-b lease-c", "1"])
    all_in(a, b, c, d)
    check_equal((a.disk.registrars(), d.disk.registrars()), (["lease-a", "lease-b", "lease-c"],) * 2)
    check_equal((LIFE.record("registrars"), a.reply[14:]), ("3 lease-a lease-b lease-c", [3, "", []]))
    LIFE.at(NOW + 10001)
    beat(a, c)
    check_equal(a.reply[14:16], [3, "lease-b"])


@test
def a_majority_does_not_count_before_it_covers_what_may_be_granted():
    a = founder(LIFE, registrars=3)
    all_in(a)
    b, c = Member(LIFE, "lease-b"), Member(LIFE, "lease-c")
    all_in(a, b)
    LIFE.redis("HSET", RECORD, "ceiling", 150)
    c.pulse(), a.pulse(), b.pulse()
    a.recording = b.recording = False
    a.disk.floor = b.disk.floor = 100  # c alone covers it
    beat(a, b, c)
    check_equal((LIFE.state("lease-c"), LIFE.record("registrars", "majority")), ("in", ["3 lease-a lease-b lease-c", ""]))
    b.disk.floor = 150
    beat(b, a)
    check_equal(LIFE.record("majority"), "1")


@test
def two_of_three_admit_and_one_does_not():
    a, b, c, g = board(LIFE)
    restarted(a, g)
    check_equal(unchanged_by(LIFE, a.admit), ["registrars-missing", 1, 2, "lease-b,lease-c"])
    check_equal(b.pulse(), "gated")
    check_equal(admitted(a, "incomplete", "lease-c"), 100)
    all_in(a, b, g)
    check_equal(([LIFE.state(one.name) for one in (a, b, g)], c.pulse()), (["in"] * 3, "pending"))
    all_in(a, b, c, g)
    restarted(a, b, c, g)
    admitted(c, "complete")


@test
def a_block_counts_when_two_of_three_have_recorded_it_and_any_two_know_of_it():
    a, b, c, _ = board(LIFE)
    old = LIFE.save()
    LIFE.at(NOW + 10001)  # c stands still from here on
    while int(LIFE.record("ceiling")) < 200:
        LIFE.redis("HSET", "pawl:{3f}", "counter", LIFE.record("ceiling"))
        beat(a, b)
    floors = sorted((one.disk.floor for one in (a, b, c)), reverse=True)
    check_equal((floors[1] >= 200, floors[2]), (True, 100))
    restarted(c, a, saved=old)
    check(admitted(c, "incomplete", "gate-g,lease-b") >= 200, "a floor of a")
    a, b, c, _ = board(LIFE)
    a.disk.floor = 100000  # only one has recorded it
    beat(a)
    check_equal(int(LIFE.record("ceiling")) < 100000, True)
    d = Member(LIFE, "lease-d")
    all_in(a, b, c, d)
    b.recording = c.recording = False
    d.disk.floor = 100000
    beat(a, b, c, d)
    check_equal(int(LIFE.record("ceiling")) < 100000, True, "of one that is no registrar")


@test
def a_registrar_that_is_not_in_yet_does_not_count():
    a, b, c, _ = board(LIFE)
    c.disk.floor = 5000
    restarted(a, b)
    admitted(a, "incomplete", "gate-g,lease-c")
    all_in(a, b)
    b.disk.floor, c.recording = 5000, False
    beat(c, b)
    check_equal((LIFE.state("lease-c"), int(LIFE.record("ceiling")) < 5000), ("pending", True))


@test
def a_newcomer_is_in_when_two_of_three_have_recorded_it():
    a, b, c, _ = board(LIFE)
    LIFE.at(NOW + 10001)
    h = Member(LIFE, "gate-h", "gateway")
    h.pulse()
    b.recording = c.recording = False
    beat(a, b, c)
    check_equal(h.pulse(), "pending")
    b.recording = True
    beat(a, b)
    check_equal(h.pulse(), "in")


@test
def a_majority_is_in_force_for_those_who_do_not_know_it_yet():
    a = founder(LIFE, registrars=3)
    b, c = Member(LIFE, "lease-b"), Member(LIFE, "lease-c")
    all_in(a, b)
    c.pulse(), a.pulse(), b.pulse(), c.pulse()
    c.recording = a.recording = False  # neither of these has recorded it
    beat(a, b, c)
    check_equal(([one.disk.registrars() for one in (a, c)], b.disk.registrars()), ([[], []], ["lease-a", "lease-b", "lease-c"]))
    lost()
    restarted(a, c)
    check_equal(a.admit(), ["floors-missing", "lease-b"])
    check_equal(c.admit()[0], "floors-missing")
    b.pulse()
    admitted(c, "incomplete")
    check_equal(LIFE.record("registrars", "majority"), ["3 lease-a lease-b lease-c", "1"])


@test
def the_registrars_come_back_out_of_the_state_directories():
    a, b, c, _ = board(LIFE)
    lost()
    restarted(b, c)
    admitted(b, "incomplete", "gate-g,lease-a")
    check_equal((LIFE.record("registrars", "majority"), a.pulse()), (["3 lease-a lease-b lease-c", "1"], "pending"))
    all_in(a, b, c)


@test
def that_a_majority_counts_is_known_by_a_registrars_directory_only():
    a = founder(LIFE, registrars=3)
    b, c, d = (Member(LIFE, f"lease-{name}") for name in "bcd")
    all_in(a, b)
    c.pulse(), a.pulse(), b.pulse(), c.pulse()
    for one in (a, b, c):
        one.recording = False
    beat(a, b, c)
    d.pulse()
    check_equal((LIFE.record("majority"), [one.disk.registrars() for one in (a, b, c)], len(d.disk.registrars())), ("1", [[]] * 3, 3))
    restarted(a, b)  # the store says so
    check_equal((a.admit(), b.admit()), (["floors-missing", "lease-c"],) * 2)
    lost()
    restarted(a, b, d)  # and one that is no registrar
    check_equal((a.admit(), d.admit()[0]), (["floors-missing", "lease-c"], "floors-missing"))


@test
def what_was_before_a_recover_is_known_to_be_over():
    a, b, c, g = board(LIFE)
    recovered()
    beat(c, b, a, g)
    lost()
    b.disk.list = [line for line in b.disk.list if not line.startswith("registrar")]
    a.disk.list.extend(f"registrar lease-{name} 0 0" for name in "abc" if not a.disk.registrars())
    a.disk.epoch -= 1  # as it was before
    restarted(a, b)
    check_equal(a.admit()[0], "floors-missing")


@test
def a_registrar_that_was_away_is_recorded_by_a_majority_before_it_is_in_again():
    a, b, c, g = board(LIFE)
    restarted(a, b, g)
    admitted(a, "incomplete", "lease-c")
    all_in(a, b, g)
    check_equal([c.line() in one.disk.list for one in (a, b)], [False, False])
    saved = LIFE.save()
    restarted(a, c, g)
    admitted(a, "incomplete", "lease-b")
    check_equal((LIFE.state("lease-c"), c.line() in a.disk.list), ("in", True))
    LIFE.restart(saved)  # whatever c has done since
    for one in (b, a, g):
        one.pulse()
    admitted(b, "incomplete", "lease-c")


@test
def one_that_comes_back_is_in_though_a_third_is_dead():
    a, b, c, g = board(LIFE)
    restarted(a, b, g)
    admitted(a, "incomplete", "lease-c")
    all_in(a, b, g)
    LIFE.at(NOW + 10001)  # b is dead, and has recorded nothing of what follows
    beat(c, a)
    check_equal((LIFE.state("lease-c"), LIFE.state("lease-b")), ("in", "in"))
    h = Member(LIFE, "gate-h", "gateway")
    beat(h, a, c)
    check_equal(h.pulse(), "in")


@test
def a_registrar_whose_directory_was_set_back_does_not_count():
    for roll, floor in ((1, 0), (0, 1)):
        for store in (lambda: None, lost):  # seen by the store, and by another one's directory only
            a, b, c, _ = board(LIFE)
            all_in(a, b, c)
            c.disk.roll, c.disk.floor = c.disk.roll - roll, c.disk.floor - floor
            c.start()
            store()
            restarted(a, c)
            check_equal(a.admit(), ["registrars-missing", 1, 2, "lease-b,lease-c"])
            b.pulse()
            admitted(a, "incomplete", "gate-g,lease-c")


@test
def what_was_seen_of_a_registrar_outlives_an_admission_without_it():
    a, b, c, _ = board(LIFE)
    all_in(a, b, c)
    old = copy.deepcopy(c.disk)
    c.disk.floor = 5000
    beat(c, a, b)
    restarted(a, b)
    admitted(a, "incomplete", "gate-g,lease-c")
    all_in(a, b)
    check(f"registrar lease-c {c.disk.roll} 5000" in a.disk.list, a.disk.list)
    c.disk = old
    c.start()
    lost()
    restarted(a, c)
    check_equal(a.admit()[:3], ["registrars-missing", 1, 2])


@test
def a_gateway_that_only_one_of_them_has_recorded_joins_anew():
    a, b, c, _ = board(LIFE)
    h = Member(LIFE, "gate-h", "gateway")
    h.pulse()
    b.recording = c.recording = False
    beat(a, b, c)
    check_equal((h.line() in a.disk.list, h.line() in b.disk.list, h.pulse()), (True, False, "pending"))
    restarted(a, b, c, h)
    check_equal(a.admit()[0], "admitted")
    check_equal(LIFE.state("gate-h"), "pending")


@test
def doubts_need_to_be_recorded_by_two_of_three():
    a, b, c, g = board(LIFE)
    g.seen[0] += 1
    restarted(a, b, c, g)
    check_equal((a.ask_to_admit()[0], a.records(), a.ask_to_admit()), ("record", True, ["unrecorded", "lease-b,lease-c"]))
    check_equal((b.records(), a.ask_to_admit()[0], len(c.disk.list)), (True, "admitted", 7))
    check_equal(text(LIFE.redis("HKEYS", DOUBT)), [f"gate-g {g.incarnation}"])


@test
def a_registrar_stays_one_when_it_leaves_and_is_not_forgotten():
    a, b, c, g = board(LIFE)
    d = Member(LIFE, "lease-d")
    all_in(a, b, c, d, g)
    check_equal((c.leave(), d.leave(), LIFE.listed()), ("out", "left", ["gate-g", "lease-a", "lease-b", "lease-c"]))
    LIFE.at(NOW + 10001)
    forget = [LIFE.run("api/cli/scripts/forget_member.lua", [RECORD], name) for name in ("lease-c", "lease-b")]
    check_equal(forget, [["registrar"]] * 2)
    c.start()
    all_in(a, b, c, g)


def changes(*rows, run=None):
    """Who beats until all have recorded all (a tuple) or for a while (a list), and deeds with what they are answered."""
    for row in rows:
        if not isinstance(row, str):
            (all_in if isinstance(row, tuple) else beat)(*row)
            continue
        LIFE.redis("HSET", RECORD, "run", run or LIFE.real_run())
        deed, name, *reply = row.split()
        check_equal(" ".join(map(str, LIFE.run("api/cli/scripts/registrar.lua", [RECORD], deed, *name.split("/")))), " ".join(reply), row)
        LIFE.redis("HSET", RECORD, "run", LIFE.run_and_stream())


@test
def a_lost_registrar_is_replaced_by_adding_another_and_then_removing_it():
    a, b, c, g = board(LIFE)
    d = Member(LIFE, "lease-d")
    all_in(a, b, c, d, g)
    LIFE.at(NOW + 10001)  # c is gone
    changes("add lease-d unrecorded", (a, b, d, g), "add lease-a already", "add lease-x unknown", "add gate-g unknown",
            "add lease-d/lease-x other", "add lease-d/lease-d other", "add lease-b/lease-c already",
            "add lease-d/lease-c changed 4 3", "remove lease-c unrecorded",  # nobody has recorded the fourth yet
            (a, b, d, g), "remove lease-c changed 3 2", "remove lease-c already", (a, b, d, g))
    check_equal(d.disk.registrars(), ["lease-a", "lease-b", "lease-d"])
    restarted(b, d)
    check_equal(b.admit()[0], "admitted")


@test
def a_registrar_knows_that_it_is_not_alone_before_it_is_none():
    a, b, c, _ = board(LIFE)
    changes((a, b, c), "remove lease-a changed 2 2", (b, c), "remove lease-b changed 1 1", (c, a))
    check_equal(c.disk.registrars(), ["lease-c"])
    changes("add lease-a changed 2 2", [a], "remove lease-c unrecorded", [c], "remove lease-c changed 1 1")
    check_equal(len(c.disk.registrars()), 2)


@test
def who_would_be_in_a_majority_must_have_recorded_all_that_counts():
    a, b, c, _ = board(LIFE)
    c.disk.floor = 50
    LIFE.redis("HSET", RECORD, "ceiling", 150)
    a.disk.floor = b.disk.floor = 150
    c.recording = False
    changes([a, b, c], "remove lease-a unrecorded", "remove lease-c changed 2 2",  # b and c would be the majority
            (a, b), "remove lease-b changed 1 1", [a, b], "remove lease-a last", "add lease-b changed 2 2")
    LIFE.redis("HSET", RECORD, "registrars", "6 1 2 3 4 5 6")
    changes("add lease-b full")
    changes("add lease-b gated", run="another")
    changes((founder(LIFE),), "add lease-a none")
    LIFE.redis("HSET", RECORD, "id", "5:another")
    changes("add lease-a another 5:another")
    LIFE.redis("FLUSHALL")
    changes("add lease-a empty")


def recovered(floor=5000, how="force"):
    reply = LIFE.run("api/cli/scripts/recover.lua", [RECORD], IDENTITY, IDENTITY, floor, EPOCH, how)
    check_equal(reply[0], "recovered")
    LIFE.redis("HSET", RECORD, "run", LIFE.run_and_stream())


@test
def after_recover_nothing_is_granted_until_too_few_are_left_that_could_admit_what_was_before():
    a, b, c, g = board(LIFE)
    recovered()
    check_equal(LIFE.record("registrars", "majority", "before"), ["3", "", "2 lease-a lease-b lease-c"])
    d = Member(LIFE, "lease-d")
    beat(d, g)
    check_equal((LIFE.record("ceiling"), LIFE.state("lease-d"), g.pulse()), ("5000", "in", "pending"))
    beat(a, d)
    check_equal((LIFE.record("ceiling"), g.pulse()), ("5000", "pending"))
    beat(b, a, d, g)
    check(int(LIFE.record("ceiling")) > 5000, "b knows, too")
    all_in(a, b, d, g, c)
    check_equal(LIFE.record("registrars", "majority"), ["3 lease-d lease-a lease-b", "1"])
    LIFE.at(NOW + 10001)
    beat(a)
    recovered(50000)
    check_equal(LIFE.record("before"), "2 lease-a")  # the others are silent: the operator gives them up


@test
def a_heartbeat_counts_when_a_majority_has_read_of_it_and_said_so():
    a, b, c, g = members = board(LIFE)
    for one in members:
        one.leased = True
    g.pulse()
    sent = g.sent
    check_equal((g.pulse(), g.echoed), ("in", 0))
    a.pulse()  # has read of it
    check_equal((g.pulse(), g.echoed), ("in", 0))
    a.pulse()  # and says so
    check_equal((g.pulse(), g.echoed), ("in", 0), "one of three")
    b.pulse(), b.pulse()
    g.pulse()
    check(sent < g.echoed < g.sent, "what two of them have read of, and no more")
    echoed = g.echoed
    a.pulse(), a.pulse(), a.pulse()
    check_equal((g.pulse(), g.echoed), ("in", max(echoed, sent + 3)), "b has read of no later one")
    g.start()  # another process, whose numbers begin anew
    for _ in range(2):
        g.pulse()
    check_equal(g.echoed, 0, "they were another's")
    b.pulse(), b.pulse(), c.pulse(), c.pulse()
    g.pulse()
    check_equal((g.echoed > 0, a.pulse(), "gate-g" in a.reply[17]), (True, "in", True))
    LIFE.at(NOW + 10001)
    check_equal((a.pulse(), "lease-a" in a.reply[17], "gate-g" in a.reply[17]), ("in", True, False), "who is gone is not named")
    check_equal(unleased(a, b, c), "in")


def unleased(*members):
    """Who has no lease sends, and gets, what it always did."""
    for one in members:
        one.leased = False
    reply = members[0].ask()
    check_equal(len(reply), 17)
    return reply[0]


@test
def whoever_is_not_heard_is_waited_for_until_a_majority_has_echoed_nothing_for_long():
    a, b, c, g = members = board(LIFE)
    for one in members:
        one.leased = True
    beat(*members)
    restarted(a, b, c, g)
    admitted(a, "complete")  # all are heard: nobody waits
    all_in(*members)
    restarted(a, b)
    check_equal(unchanged_by(LIFE, a.admit), ["echoes-young"])
    for quiet in ((3299, 3300), (3300, 3299), (3300, 0)):
        a.quiet_ms, b.quiet_ms = quiet
        check_equal((a.pulse(), b.pulse()), ("gated", "gated"))
        check_equal(unchanged_by(LIFE, a.admit), ["echoes-young"], quiet)
    check_equal(c.pulse(), "gated")
    c.quiet_ms = 3300  # two of three; of the third it does not matter
    check_equal(c.pulse(), "gated")
    admitted(a, "incomplete", "gate-g")


@test
def without_registrars_one_echo_is_enough_and_all_must_be_quiet():
    a = founder(LIFE)
    b, g = Member(LIFE, "lease-b"), Member(LIFE, "gate-g", "gateway")
    all_in(a, b, g)
    a.leased = b.leased = g.leased = True
    g.pulse(), b.pulse(), b.pulse()
    g.pulse()
    check(g.echoed > 0, "b has read of it")
    restarted(a, b)
    a.quiet_ms = 3300
    a.pulse()
    check_equal(unchanged_by(LIFE, a.admit), ["echoes-young"])
    b.quiet_ms = 3300
    b.pulse()
    admitted(a, "incomplete", "gate-g")


@test
def without_registrars_all_that_live_must_know_of_a_recover():
    a = founder(LIFE)
    b, c = Member(LIFE, "lease-b"), Member(LIFE, "lease-c")
    all_in(a, b, c)
    recovered()
    beat(c, b)
    check_equal(LIFE.record("ceiling"), "5000")
    beat(a, b, c)
    check(int(LIFE.record("ceiling")) > 5000, "all know")


main()
