#!/usr/bin/python3
"""The in-sync set (docs/decisions/0047): heartbeat.lua and admit.lua, on a Redis that can copy another one."""

import copy
import re

from lua_test import EPOCH, RECORD, check, check_equal, main, test
from members import Life, Member, all_in, founder, grant

LIFE = Life()
NOW = 1000000
FIRST, SECOND, THIRD = "here:1/run-1", "there:2/run-2", "there:3/run-3"


def record(*fields):
    return LIFE.record(*fields)


def insync():
    """Generation and nodes of the set that is to be recorded, the nodes that are waited for, the one that is added."""
    text, needed, growing = record("insync", "needed", "growing")
    return [int(text.split()[1]), text.split()[3:], needed.split(), growing]


def wishes(member, wish, roll=None):
    """What it asks for, by the list that it knows."""
    member.wish = f"{member.reply[3] if roll is None else roll} {wish}"
    member.pulse()
    member.wish = ""


def grow(member, node, *members):
    wishes(member, f"grow {node}")
    all_in(*members or [member])
    wishes(member, f"grown {node}")
    all_in(*members or [member])


def trio(copies=2, registrars=0):
    """Lease services, and a set of three nodes."""
    a = founder(LIFE, copies=copies, registrars=registrars)
    all_in(a)
    others = [Member(LIFE, f"lease-{name}") for name in "bc"[:2 * bool(registrars)]]
    all_in(a, *others)
    for node in (SECOND, THIRD):
        grow(a, node, a, *others)
    check_equal(insync(), [2, [FIRST, SECOND, THIRD], [FIRST, SECOND, THIRD], ""])
    return a, *others


def promoted(run, of_stream=True):
    """Redis is another node now. of_stream: its lineage is that of the recorded set; else it has copied another one since."""
    LIFE.new_stream()
    LIFE.run_id = run
    if not of_stream:
        LIFE.new_stream()


def gated(*members):
    """Each has reported, and promised before."""
    for _ in range(4):
        for one in members:
            check_equal(one.pulse(), "gated")


@test
def a_store_without_copies_has_no_set_and_says_nothing_of_one():
    a = founder(LIFE)
    all_in(a)
    check_equal((record("copies", "insync", "ballot"), a.reply[16]), ([None, None, None], []))
    check(not any(line.startswith("insync") for line in a.disk.list), a.disk.list)
    LIFE.restart()
    check_equal(a.pulse(), "gated")
    check_equal((a.reply[4:], a.disk.promise), (["", ""], ""))


@test
def a_primary_that_was_started_again_is_admitted_by_the_memory_of_all_or_as_the_only_one():
    a = founder(LIFE, copies=1)
    all_in(a)
    LIFE.run_id = "run-7"
    gated(a)
    check_equal(a.admit()[2], "complete")
    all_in(a)
    check_equal(insync()[1], ["here:1/run-7"])


@test
def the_only_one_of_its_set_is_no_node_of_before_to_which_its_address_leads_now():
    for knows, word in ((False, "behind"), (True, "admitted")):
        a, = trio(copies=1)
        before = record("insync", "needed", "changed", "roll")
        a.node = "here:1"
        wishes(a, f"shrink {SECOND} {THIRD}")
        all_in(a)
        check_equal(insync()[1], [FIRST])
        if not knows:  # its disk is of when it was in the set
            LIFE.redis("HSET", RECORD, *sum(zip(("insync", "needed", "changed", "roll"), before), ()))
        LIFE.run_id = "run-7"
        a.start()
        gated(a)
        check_equal(a.admit()[0], word)


@test
def one_of_several_without_memory_is_when_all_others_of_the_set_are_heard_and_nobody_has_more():
    def said(*names, more=0, identity=None):
        seqs = LIFE.seqs()
        seqs[7] += more
        return ",".join(f"{name} {identity or a.identity} {' '.join(map(str, seqs))}" for name in names)

    for is_remembered in (True, False):
        a, = trio()
        LIFE.run_id = "run-7"
        a.seen[7] += 1
        if not is_remembered:
            a.start()
        gated(a)
        others = ("there:2", "there:3")
        for a.said in ("", said("there:2"), said(*others, more=1), said(*others, identity="11:other"),
                       said(*others).rpartition(" ")[0], *([said(*others)] if is_remembered else [])):
            check_equal(a.admit()[0], "behind", a.said)
        a.node, a.said = "elsewhere:1", said("here:1", *others)
        check_equal(a.admit()[0], "behind", "it is not of the set")
    a.node, a.said = "here:1", said(*others)
    now = LIFE.redis("HGET", RECORD, "insync")
    LIFE.redis("HSET", RECORD, "insync", f"{EPOCH - 1} 0{now[now.index(b' ', now.index(b' ') + 1):].decode()}")
    check_equal(a.admit()[0], "behind", "its disk was set back to before the record")
    LIFE.redis("HSET", RECORD, "insync", now)
    reply = a.admit()
    check_equal((reply[0], reply[2]), ("admitted", "incomplete"))
    all_in(a)
    check_equal(insync()[1], ["here:1/run-7"])


@test
def the_first_node_is_this_redis_and_a_member_learns_who_must_acknowledge():
    a = founder(LIFE, copies=2)
    all_in(a)
    check_equal(insync(), [0, [FIRST], [FIRST], ""])
    check_equal(a.reply[16], ["2", "", "", FIRST])
    check_equal([line for line in a.disk.list if line.startswith("insync")], [f"insync {EPOCH} 0 {LIFE.replid()}/2 {FIRST}"])
    g = Member(LIFE, "gate-g", "gateway")
    all_in(a, g)
    check_equal(g.reply[16], a.reply[16])


@test
def a_node_is_waited_for_at_once_and_in_the_set_when_it_has_acknowledged():
    a = founder(LIFE, copies=2)
    all_in(a)
    wishes(a, f"grow {SECOND}")
    check_equal(insync(), [0, [FIRST], [FIRST, SECOND], SECOND])
    check_equal((a.reply[0], a.reply[1], a.reply[16]), ("in", EPOCH + 1, ["2", "", SECOND, FIRST, SECOND]))
    check_equal(LIFE.stripe("epoch"), str(EPOCH + 1))  # what is called in the epoch of before is refused
    wishes(a, f"grow {THIRD}")
    check_equal(insync(), [0, [FIRST], [FIRST, SECOND], SECOND])
    wishes(a, f"grown {THIRD}")
    check_equal(insync()[3], SECOND)
    wishes(a, f"grown {SECOND}")
    check_equal(insync(), [1, [FIRST, SECOND], [FIRST, SECOND], ""])
    all_in(a)
    wishes(a, f"grow {THIRD}")
    wishes(a, f"drop {THIRD}")
    check_equal(insync(), [1, [FIRST, SECOND], [FIRST, SECOND], ""])


@test
def one_that_was_added_joins_until_a_majority_has_recorded_it():
    a, b, c = trio(registrars=3)
    fourth = "there:4/run-4"
    wishes(a, f"grow {fourth}")
    all_in(a, b, c)
    for one in (a, b, c):
        one.recording = False
    wishes(a, f"grown {fourth}")
    for one in (a, b, c, a):
        one.pulse()
    check_equal((insync()[3], record("added"), a.reply[16][2:]), ("", fourth, [fourth, FIRST, SECOND, THIRD, fourth]))
    a.recording = b.recording = True
    for one in (a, b, a, b):
        one.pulse()
    check_equal((record("added"), b.reply[16][2:]), ("", ["", FIRST, SECOND, THIRD, fourth]))


@test
def a_shrink_is_in_force_when_a_majority_has_recorded_it():
    a, b, c = trio(registrars=3)
    for one in (a, b, c):
        one.recording = False
    wishes(a, f"shrink {THIRD}")
    check_equal(insync(), [3, [FIRST, SECOND], [FIRST, SECOND, THIRD], ""])
    for one in (a, b, c, a):
        one.pulse()
    a.recording = True
    a.pulse()
    a.pulse()
    check_equal(insync()[2], [FIRST, SECOND, THIRD])
    b.recording = True
    b.pulse()
    b.pulse()
    check_equal(insync()[2], [FIRST, SECOND])


@test
def a_set_shrinks_not_below_copies_nor_while_it_changes_nor_by_what_is_over():
    a, = trio()
    wishes(a, f"shrink {SECOND} {THIRD}")
    check_equal(insync()[0], 2)
    wishes(a, f"shrink {SECOND}", a.reply[3] - 1)
    check_equal(insync()[0], 2)
    a.recording = False
    wishes(a, f"shrink {SECOND}")
    wishes(a, "shrink here:9/run-9")
    check_equal(insync(), [3, [FIRST, THIRD], [FIRST, SECOND, THIRD], ""])
    wishes(a, "asked 7")
    check_equal(record("syncs"), "7")


@test
def one_that_was_started_again_is_taken_out_also_when_too_few_are_left():
    a, = trio()
    a.recording = False
    wishes(a, f"gone {FIRST} {SECOND} {THIRD}")
    check_equal(insync()[0], 2)
    wishes(a, f"gone {SECOND} {THIRD}")
    check_equal(insync(), [3, [FIRST], [FIRST, SECOND, THIRD], ""])


@test
def a_node_of_the_set_is_admitted_and_complete_without_those_who_are_not_heard():
    a, = trio()
    g = Member(LIFE, "gate-g", "gateway")
    all_in(a, g)
    stream, alive = LIFE.replid(), record("alive")
    promoted("run-2")
    gated(a)
    check_equal(a.disk.promise, f"{record('ballot')} {record('gate')}")
    reply = a.admit()
    check_equal((reply[0], reply[2], reply[4]), ("admitted", "complete", "gate-g"))
    check(LIFE.replid() != stream, stream)
    check_equal(record("alive", "insync", "needed"),
                [alive, f"{reply[1]} 0 {LIFE.replid()}/2 {FIRST} {SECOND} {THIRD}", f"{FIRST} {SECOND} {THIRD}"])
    all_in(a)
    check_equal(a.reply[16][3], SECOND)


@test
def no_other_one_is():
    for run, of_stream in (("run-9", True), ("run-2", False)):
        a, = trio()
        promoted(run, of_stream)
        gated(a)
        check_equal(a.admit()[0], "behind", run)
        check_equal(a.ask()[5], f"here:1/{run} {FIRST} {SECOND} {THIRD}")


@test
def one_that_has_copied_another_of_the_set_which_was_promoted_and_asked_but_not_admitted_is():
    def admission(*hops, newest=0):
        a, = trio()
        for run, of_stream, is_asked in hops:
            promoted(run, of_stream)
            if is_asked:
                gated(a)
        a.disk.list = [re.sub(r"^(insync \d+) 2 ", rf"\1 {2 + newest} ", line) for line in a.disk.list]
        gated(a)
        return a.admit()[:3:2]

    second, third = ("run-2", True, True), ("run-3", True, False)
    check_equal(admission(second, third), ["admitted", "complete"])
    check_equal(admission(second, ("run-3", True, True), second), ["admitted", "complete"])
    check_equal(admission(("run-2", True, False), third)[0], "behind", "nobody has asked it")
    check_equal(admission(("run-9", True, True), third)[0], "behind", "the first is not in the set")
    check_equal(admission(("run-2", False, True), third)[0], "behind", "the first has copied another")
    check_equal(admission(second, ("run-3", False, False))[0], "behind", "the second has copied another")
    check_equal(admission(second, ("run-9", True, False))[0], "behind", "the second is not in the set")
    check_equal(admission(second, third, newest=1)[0], "behind", "a later set is recorded, of which it says nothing")


@test
def one_that_was_taken_out_is_not():
    a, = trio()
    wishes(a, f"shrink {THIRD}")
    all_in(a)
    promoted("run-3")
    gated(a)
    check_equal(a.admit()[0], "behind")


@test
def a_report_is_a_promise_which_is_on_disk_before_it_and_acts_in_no_epoch_of_before():
    a, b, c = trio(registrars=3)
    saved = LIFE.save()
    LIFE.run_id = "run-2"
    a.recording = False
    gated(a)
    check_equal(LIFE.member("lease-a", "rgate"), None)
    a.recording = True
    gated(a)
    check_equal(LIFE.member("lease-a", "rgate"), record("gate"))
    LIFE.put_back(saved)
    LIFE.run_id = "run-1"
    check_equal((b.pulse(), a.pulse()), ("in", "gated"))
    check(int(record("ballot")) > int(a.disk.promise.split()[0]) - 1, a.disk.promise)


@test
def a_gate_begins_an_epoch_above_all_that_is_promised_to_others():
    a, b, c = trio(registrars=3)
    LIFE.run_id = "run-2"
    gated(b)
    ballot, gate = record("ballot", "gate")
    a.disk.promise = f"{ballot} gate-of-another"
    a.pulse()
    check_equal(int(record("ballot")), int(ballot) + 1)
    check(record("gate") != gate, gate)
    check_equal(LIFE.member("lease-a", "rgate"), None)


@test
def the_gate_opens_when_a_majority_has_recorded_the_new_set():
    a, b, c = trio(registrars=3)
    promoted("run-2")
    gated(a, b)
    check_equal(a.ask_to_admit()[0], "record")
    check_equal(record("gate") != "", True)
    a.disk.list = a.ask_to_admit()[1]
    a.pulse()
    check_equal(a.ask_to_admit()[:2], ["unrecorded", "lease-b"])
    b.admit()
    check_equal(record("gate"), "")


@test
def the_newest_set_that_anybody_reports_counts():
    a, b, c = trio(registrars=3)
    old = list(a.disk.list), a.disk.roll
    wishes(a, f"shrink {THIRD}")
    all_in(a, b, c)
    g = Member(LIFE, "gate-g", "gateway")
    promoted("run-3")
    g.disk.list = [line for line in a.disk.list if line.startswith("insync")]
    for one in (a, b):
        one.disk.list, one.disk.roll = old
    gated(a, b, g)
    check_equal(a.admit()[0] in ("behind", "registrars-missing"), True)


@test
def a_record_from_before_the_first_node_was_named_lets_nobody_take_over():
    for knows in range(3):  # in whichever order Lua goes through them
        founder(LIFE, copies=1, registrars=3)
        members = [Member(LIFE, name) for name in ("lease-a", "lease-b", "lease-c")]
        check_equal(members[1].pulse(), "pending")
        nameless = [line for line in members[1].disk.list if line.startswith("insync")]
        check_equal(nameless, [f"insync {EPOCH} 0 {LIFE.replid()}/1"])
        all_in(*members)
        check_equal(insync()[:2], [0, [FIRST]])
        for one in members[:knows] + members[knows + 1:]:
            one.disk.list = [line for line in one.disk.list if not line.startswith("insync")] + nameless
        promoted("run-9")
        gated(*members)
        check_equal(members[knows].ask_to_admit()[0], "behind", knows)


@test
def a_node_of_the_set_stays_complete_at_another_gate_of_its_stream():
    for stream, how in ((LIFE.replid, "complete"), (LIFE.new_stream, "incomplete")):
        a, b, c = trio(registrars=3)
        promoted("run-2")
        gated(a, b)
        check_equal(a.records(), True)
        stream()
        c.disk.promise = f"{record('ballot')} gate-of-another"
        c.pulse()
        gated(a, b)
        check_equal([a.ask_to_admit()[0] for _ in range(2)], ["record"] * 2)
        reply = a.admit()
        check_equal((reply[0], reply[2], reply[4]), ("admitted", how, "lease-c"))


@test
def by_an_operators_word_the_set_begins_anew_above_what_was_promised():
    a, = trio()
    promoted("run-9")
    gated(a)
    check_equal(a.admit()[0], "behind")
    ballot = int(record("ballot"))
    reply = LIFE.run("api/cli/scripts/recover.lua", [RECORD], "", "11:fresh", 5000, 1, "")
    check(reply[0] == "recovered" and reply[1] > ballot, (reply, ballot))
    LIFE.run_id = LIFE.real_run().split()[0]
    all_in(a)
    check_equal((insync(), record("insync").split()[0]), ([0, [f"here:1/{LIFE.run_id}"], [f"here:1/{LIFE.run_id}"], ""], str(reply[1])))


def emptied(copies=2):
    """Redis has lost everything; three who know of the set, and one who does not."""
    members = trio(copies=copies, registrars=3)
    LIFE.redis("FLUSHALL")
    LIFE.at(NOW)
    return *members, Member(LIFE, "lease-new")


@test
def a_skeleton_of_a_store_has_the_copies_that_state_directories_know_of():
    a, b, c, new = emptied(copies=3)
    LIFE.run("api/cli/scripts/skeleton.lua", [RECORD], a.identity, 1, "gate-0")
    new.pulse()
    check_equal((LIFE.member("lease-new", "rgate") == record("gate"), record("copies")), (True, None))
    gated(a, b)
    check_equal((record("copies"), a.disk.promise), ("3", f"{record('ballot')} {record('gate')}"))
    check(LIFE.member("lease-new", "rgate") != record("gate"), "it has promised nothing")
    check_equal(a.admit()[0], "admitted")
    a.copies = b.copies = c.copies = "s"
    all_in(a, b, c)
    check_equal((record("copies"), insync()[1], a.reply[16][0]), ("3", [FIRST, SECOND, THIRD], "3"))


@test
def so_has_one_that_begins_by_an_operators_word():
    a, b, c, new = emptied(copies=3)
    LIFE.run("api/cli/scripts/recover.lua", [RECORD], "", a.identity, 5000, 5000, "")
    LIFE.run_id = LIFE.real_run().split()[0]
    all_in(new)
    check_equal((record("copies"), record("epoch")), (None, "5001"))
    all_in(a, b, c, new)
    check_equal((record("copies"), insync()[1], new.reply[16][0]), ("3", [f"here:1/{LIFE.run_id}"], "3"))
    check_equal(record("epoch"), "5002")  # what is called without a set is refused


@test
def a_store_that_was_made_anew_on_another_redis_is_behind_all_the_same():
    a, b, *_ = emptied()
    LIFE.run_id = LIFE.real_run().split()[0]
    LIFE.run("api/cli/scripts/skeleton.lua", [RECORD], a.identity, 1, "gate-0")
    gated(a, b)
    check_equal(a.admit()[0], "behind")
    check_equal(accept_loss(accept_loss()[1]), ["ordered"])
    check_equal(a.admit()[::2][:2], ["admitted", "accepted"])


def accept_loss(loss="", node="here:1"):
    return LIFE.run("api/cli/scripts/accept_loss.lua", [RECORD], node, loss)


def behind(*members):
    """Redis is a node outside of the set; the loss that can be accepted."""
    promoted(LIFE.real_run().split()[0])
    gated(*members)
    check_equal(members[0].admit()[0], "behind")
    return accept_loss()[1]


@test
def one_that_is_behind_is_admitted_by_an_order_for_this_very_gate_epoch_and_loss():
    a, = trio()
    token = grant(LIFE, a, "job")
    check_equal(accept_loss(), ["in-step"])
    words = behind(a).split()
    recorded, = [line.split()[1:] for line in a.disk.list if line.startswith("insync")]
    check_equal((words, accept_loss()[3]), ([*record("gate", "ballot"), *recorded], 0))
    check_equal(accept_loss(node="here:9"), ["primary", "here:1"])
    for index in range(len(words)):
        wrong = " ".join([*words[:index], words[index] + "7", *words[index + 1:]])
        check_equal(accept_loss(wrong), ["moved"])
        LIFE.redis("HSET", RECORD, "order", wrong)
        check_equal(a.admit()[0], "behind", wrong)
    check_equal(accept_loss(" ".join(words)), ["ordered"])
    reply = a.admit()
    check_equal((reply[0], reply[2], int(reply[3]) > token), ("admitted", "accepted", True))
    check_equal(record("alive", "how", "order", "accepted", "proven"), [str(reply[1]), "accepted", "", "", ""])
    all_in(a)
    check_equal(insync(), [0, [f"here:1/{LIFE.run_id}"], [f"here:1/{LIFE.run_id}"], ""])


@test
def what_was_begun_by_an_order_ends_all_holds_also_at_another_gate():
    a, b, c = trio(registrars=3)
    check_equal(accept_loss(behind(a, b, c)), ["ordered"])
    check_equal(a.records(), True)
    LIFE.new_stream()
    gated(a, b, c)
    check_equal((a.records(), b.records(), a.ask_to_admit()[2]), (True, True, "accepted"))


@test
def nobody_admits_the_former_primary_while_another_node_is_being_promoted():
    def failover(what, node="", gate="gate-f"):
        return LIFE.run("api/cli/scripts/failover.lua", [RECORD], node, what, gate, 90000)

    a = founder(LIFE, copies=1)
    all_in(a)
    check_equal((accept_loss(behind(a)), a.admit()[0]), (["ordered"], "admitted"))  # this very Redis is the only node
    all_in(a)
    grow(a, SECOND)
    for node, says in (("there:2", ["away", "there:2"]), ("", ["away", "there:2"]), ("here:1", ["outside"]), ("there:9", ["outside"])):
        check_equal(failover("shut", node), says, node)
    for field in ("growing", "added"):
        LIFE.redis("HSET", RECORD, field, SECOND)
        check_equal(failover("shut"), ["changing"], field)
        LIFE.redis("HSET", RECORD, field, "")
    epoch = record("epoch")
    check_equal(failover("look")[:3], ["at", int(epoch), 1])
    check_equal(failover("look")[6], 0, "a node has no copy")
    LIFE.redis("HSET", RECORD, "run", "another")
    check_equal(failover("shut"), ["gated"])
    gated(a)
    for gate, till, word in (("gate-of-another", NOW + 5000, "admitted"), (None, NOW, "admitted"), (None, NOW + 10001, "admitted"),
                             (None, NOW + 1, "failover"), (None, NOW + 10000, "failover")):
        saved = LIFE.save()
        LIFE.redis("HSET", RECORD, "failover", f"{gate or record('gate')} {till}")
        disk = copy.deepcopy(a.disk)
        check_equal(a.admit()[0], word, (gate, till))
        LIFE.put_back(saved)
        a.disk = disk
    LIFE.redis("HSET", RECORD, "failover", f"{record('gate')} {NOW + 10000}")
    check_equal((failover("open"), a.admit()[0]), (["opened"], "failover"), "it is another operator's")
    check_equal((failover("open", gate=record("gate")), a.admit()[0]), (["opened"], "admitted"))


@test
def how_much_is_missing_is_what_services_have_seen():
    a, = trio()
    saved = LIFE.save()
    for name in ("one", "two"):
        grant(LIFE, a, name)
    LIFE.put_back(saved)
    behind(a)
    check_equal(accept_loss()[3], 2)
    LIFE.redis("HSET", f"{RECORD}:m:lease-a", "repoch", a.epoch + 1)
    check_equal(accept_loss()[3], -1)


@test
def who_was_told_another_number_of_copies_is_refused():
    a = founder(LIFE, copies=2)
    all_in(a)
    a.copies = "3"
    check_equal(a.ask(), ["copies", "2"])
    for told in ("2", "2s", "s"):
        a.copies = told
        check_equal(a.pulse(), "in", told)
    b = founder(LIFE)
    for told, wanted in (("2", "copies"), ("s", "copies"), ("1s", "copies"), ("1", "in")):
        b.copies = told
        check_equal(b.ask()[0], wanted, told)


def told():
    """What pawl store status has of nodes (in the set, for how long they are out of it), and of registrars."""
    nodes, registrars = ([dict(zip(one[::2], one[1::2])) for one in part]
                         for part in LIFE.run("api/cli/scripts/status.lua", [RECORD], "here:1")[6:])
    return ([(one["node"], one["run"], one["kept"], one["gone"]) for one in nodes],
            [(one["id"], one["live"], one["promise"], one["generation"]) for one in registrars])


@test
def status_names_the_nodes_since_when_one_is_out_and_what_registrars_have_recorded():
    members = trio(registrars=3)
    names = [one.name for one in members]
    a, *_ = members
    check_equal(told(), ([("here:1", "run-1", 1, -1), ("there:2", "run-2", 1, -1), ("there:3", "run-3", 1, -1)],
                         [(name, 1, 0, 2) for name in names]))
    wishes(a, f"shrink {THIRD}")
    all_in(*members)
    LIFE.at(1004000)
    check_equal(told(), ([("here:1", "run-1", 1, -1), ("there:2", "run-2", 1, -1), ("there:3", "", 0, 4000)], [(name, 1, 0, 3) for name in names]))
    grow(a, "there:3/run-9", *members)
    check_equal(told()[0][2], ("there:3", "run-9", 1, -1))
    LIFE.new_stream()
    gated(a)
    check_equal([one[2] for one in told()[1]], [int(LIFE.record("ballot")), 0, 0])


main()
