#!/usr/bin/python3
"""test_judge.py - the judge of pawl drill finds each wrong that was planted, and nothing in a clean history."""

import history as h
from judge import ALLOWABLE, NEVER, Judge
from load import LEASES, LOADED
from world import check, check_equal, main, test
from world.record import stripe_of

TTL_MS = 1000
STRIPES = (7, 7, 8)  # leases 0 and 1 share one

# Histories, in the order in which they were told: KIND LEASE HOLD TOKEN [VALUE] (read LEASE VALUE), parted by semicolons. An event
# takes two places, its beginning and its end, one directly after the other, and 10 ms, unless begun=, begun_ms= or told_ms= say
# otherwise; wait= are ms before it.
CLEAN = {
    "an ordinary history is counted":
        "grant 0 1 34; write 0 1 34 1; grant 0 2 0 end=held; renew 0 1 34; write 0 1 34 2; read 0 2; release 0 1 34;"
        "write 0 1 34 3 end=over; grant 0 3 35; write 0 1 34 4 end=over; write 0 3 35 5; read 0 5; grant 1 4 0 end=not-done",
    "an expired hold makes room for another": "grant 0 1 34; grant 0 2 35 wait=1000; write 0 1 34 1 end=over",
    "what was begun before the newer grant was announced is not stale":
        "grant 0 1 34; grant 0 2 35 wait=900 told_ms=1120; write 0 1 34 1 begun=3",
    "a repeated acquire is the same grant":
        "grant 0 1 34 end=unknown; grant 0 1 34 begun=1 begun_ms=0; grant 0 1 34; write 0 1 34 1",
    # It came late; so it was released; so it was renewed.
    "what has no known end is held against nobody":
        "grant 0 1 34; write 0 1 34 1 end=unknown; write 0 1 34 2; read 0 1; release 0 1 34 end=unknown; grant 0 2 35;"
        "grant 2 3 0 end=unknown; grant 2 4 9; renew 2 4 9 end=unknown; write 2 4 9 3 wait=10000",
    "a renewal lengthens what a hold may do": "grant 0 1 34; renew 0 1 34 wait=900; write 0 1 34 1 wait=900",
    "other stripes may have the same numbers": "grant 0 1 34; grant 2 2 34",
    "a higher epoch with a higher number goes forward": "grant 0 1 34; release 0 1 34; grant 0 2 1035 epoch=6",
    "a hold may write until its ttl and the slack are over": "grant 0 1 34; write 0 1 34 1 wait=1250",
    "a grant that was begun before the store had to refuse may have happened before":
        "grant 0 1 34; closed 0 0 0; grant 2 2 35 begun=3; opened 0 0 0; grant 1 3 36",
    "of two writes at the same time either may be read": "grant 0 1 34; write 0 1 34 1; write 0 1 34 2 begun=3; read 0 1",
}
PLANTED = [
    ("a number that was granted twice in a stripe, of another lease", "twice", "grant 0 1 34; grant 1 2 34"),
    ("a number that comes again in a later epoch", "twice", "grant 0 1 34; grant 1 2 34 epoch=6"),
    ("a lease_id that was granted twice", "twice", "grant 0 1 34; grant 0 1 35"),
    ("a grant that went back", "regressed", "grant 0 1 34; release 0 1 34; grant 0 2 33"),
    ("a lower number in a higher epoch", "regressed", "grant 0 1 34; release 0 1 34; grant 0 2 1 epoch=6"),
    ("a higher number in a lower epoch", "regressed", "grant 0 1 34; release 0 1 34; grant 0 2 35 epoch=4"),
    ("a stale write that was let in", "stale", "grant 0 1 34; grant 0 2 35 wait=1000; write 0 1 34 1"),
    ("a write of a hold that the store had lost", "stale", "grant 0 1 34; all-over 0 0 0; write 0 1 34 1"),
    ("a refused value that is read", "stale", "grant 0 1 34; write 0 1 34 1 end=not-done; read 0 1"),
    ("a released hold that writes", "revived", "grant 0 1 34; release 0 1 34; write 0 1 34 1"),
    ("a hold that was told to be over and is renewed", "revived",
     "grant 0 1 34; write 0 1 34 1 end=over wait=1000; renew 0 1 34"),
    ("a hold that outlives its ttl", "outlived", "grant 0 1 34; write 0 1 34 1 wait=1251"),
    ("two holders at once", "overlapped", "grant 0 1 34; grant 0 2 35 wait=1000; renew 0 1 34"),
    ("a grant by a store that had to refuse", "unadmitted",
     "grant 0 1 34; closed 0 0 0; grant 2 2 35; opened 0 0 0; grant 1 3 36"),
    ("an odd answer", "odd", "grant 0 1 34; write 0 1 34 1 end=odd"),
    ("an acknowledged write that is gone", "lost", "grant 0 1 34; write 0 1 34 1; read 0 0"),
    ("an older write that is read again", "lost", "grant 0 1 34; write 0 1 34 1; write 0 1 34 2; read 0 1"),
    ("a value that nobody wrote", "lost", "grant 0 1 34; write 0 1 34 1; read 0 77"),
    ("a hold that was told twice to be over before its time, which counts once", "ended_early",
     "grant 0 1 34; write 0 1 34 1; renew 0 1 34 end=over; renew 0 1 34 end=over"),
    ("a hold in whose time another was granted", "ended_early", "grant 0 1 34; write 0 1 34 1; grant 0 2 35"),
    ("a grant that is announced after its successor", "ended_early", "grant 0 2 35; write 0 2 35 1; grant 0 1 34 begun=0"),
]


def events_of(history):
    events, place, ms = [], 0, 0
    for line in filter(None, history.split(";")):
        kind, *words = line.split()
        more = dict(word.split("=") for word in words if "=" in word)
        numbers = [int(word) for word in words if "=" not in word]
        ms += int(more.pop("wait", 0))
        event = h.Event({"grant": h.ACQUIRE}.get(kind, kind), epoch=5, ttl_ms=TTL_MS, begun=place + 1, told=place + 2, begun_ms=ms,
                        told_ms=ms + 10)
        for name, number in zip(("lease", "value") if kind == "read" else ("lease", "hold", "token", "value"), numbers):
            setattr(event, name, number)
        for name, text in more.items():
            setattr(event, name, text if name == "end" else int(text))
        event.client = event.hold
        events.append(event)
        place, ms = place + 2, ms + 10
    return events


def judged(history, allowed=()):
    return Judge(events_of(history), STRIPES.__getitem__, allowed=allowed)


def wrongs(judge):
    return {name: judge.counts[name] for name in NEVER + ALLOWABLE if judge.counts[name]}


@test
def nothing_is_found_in_a_clean_history():
    for sentence, history in CLEAN.items():
        judge = judged(history)
        check_equal((wrongs(judge), judge.first), ({}, ""), sentence)


@test
def an_ordinary_history_is_good_and_everything_in_it_is_counted():
    judge = judged(CLEAN["an ordinary history is counted"])
    check(judge.is_good)
    check_equal({name: count for name, count in judge.counts.items() if count},
                {"grants": 2, "writes": 3, "reads": 2, "renewals": 1, "releases": 1, "refused": 3, "fenced_off": 2, "not_done": 1})
    check_equal(judged(CLEAN["a repeated acquire is the same grant"]).counts["unknown"], 1)


@test
def a_history_in_which_nothing_was_granted_or_nothing_written_is_not_good():
    check(not judged("").is_good)
    check(not judged("grant 0 1 34").is_good)


@test
def each_planted_wrong_is_found_once_and_told():
    for sentence, name, history in PLANTED:
        judge = judged(history)
        check_equal(wrongs(judge), {name: 1}, sentence)
        check(judge.first and not judge.is_good, sentence)


@test
def what_an_accident_may_do_is_counted_and_no_fault():
    for sentence, name, history in PLANTED:
        judge = judged(history, ALLOWABLE)
        check_equal(wrongs(judge), {name: 1}, sentence)
        check_equal((judge.first == "", judge.is_good), (name in ALLOWABLE,) * 2, sentence)


@test
def leases_of_the_load_share_counters_two_by_two():
    stripes = [stripe_of(name) for name in LEASES[:LOADED]]
    half = LOADED // 2
    check_equal(stripes[:half], stripes[half:])
    check_equal(len(set(stripes)), half)


main()
