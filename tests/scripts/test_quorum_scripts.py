#!/usr/bin/python3
"""A node of a quorum (lease/quorum/scripts/): locks, votes, barriers, quarantine."""

import atexit
import pathlib
import shutil
import tempfile

from lua_test import PrivateRedis, ROOT, _tool, check_equal, main, test, text

PLACE = tempfile.mkdtemp(prefix="pawl-quorum-")
atexit.register(shutil.rmtree, PLACE, ignore_errors=True)
REDIS = PrivateRedis(PLACE, ["--save", "", "--appendonly", "no"])
atexit.register(REDIS.close)
CALL = "lease/quorum/scripts/lib/call.lua"
CLOCK = pathlib.Path(PLACE) / "call.lua"
CLOCK.write_text((ROOT / CALL).read_text(encoding="utf-8") + "local function clock_ms() return tonumber(redis.call('GET', 'test:clock')) end\n",
                 encoding="utf-8")
TOOL = _tool()
LIBRARY = TOOL.Library({CALL: str(CLOCK)}, which=TOOL.QUORUM)
REDIS("FUNCTION", "LOAD", LIBRARY.text)
NODE, RUN, MAX_TTL = "store-1/1", "run-1", 5000


def ask(script, *args, name="", run=RUN, seen=0, node=NODE):
    keys = ["pawl:{node}", *([f"pawl:{{node}}:{name}"] if name else [])]
    return text(REDIS("FCALL", f"{LIBRARY.hash}_{script}", len(keys), *keys, node, run, seen, *args))


def lock(attempt, lease_id="id", name="a", **more):
    return ask("lock", attempt, lease_id, 1000, name=name, **more)


def commit(attempt, token, ttl=3000, name="a", **more):
    return ask("commit", attempt, token, ttl, "about", name=name, **more)


def begin(now=1000000):
    REDIS("FLUSHALL")
    at(now)
    check_equal(ask("create", MAX_TTL), ["created"])


def at(now):
    REDIS("SET", "test:clock", now)


@test
def a_lease_is_locked_voted_for_renewed_and_released_and_its_number_stays():
    begin()
    for what, wanted in (
            (lambda: ask("create", MAX_TTL), ["there"]), (lambda: lock("1"), ["locked", "0"]),
            (lambda: lock("2", "id-2"), ["held", "id", "1", "", "1000", ""]), (lambda: commit("2", "1"), ["lost"]),
            (lambda: ask("renew", "id", 3000, name="a"), ["lost"]), (lambda: commit("1", "1", ttl=5001), ["too-long", "5000"]),
            (lambda: commit("1", "999999999999998"), ["voted"]), (lambda: commit("1", "999999999999998"), ["lost"]),
            (lambda: lock("2"), ["held", "id", "1", "999999999999998", "3000", "about"]),
            (lambda: ask("renew", "id-2", 3000, name="a"), ["lost"]), (lambda: ask("renew", "id", 5001, name="a"), ["too-long", "5000"]),
            (lambda: ask("renew", "id", 4000, name="a"), ["renewed", "1", "999999999999998"]),
            (lambda: ask("release", "id", "2", name="a"), ["lost"]), (lambda: ask("release", "id-2", "", name="a"), ["lost"]),
            (lambda: ask("release", "id", "1", name="a"), ["released"]), (lambda: ask("release", "id", "", name="a"), ["lost"]),
            (lambda: lock("3"), ["locked", "999999999999998"])):
        check_equal(what(), wanted)


@test
def a_lock_and_a_hold_end_by_the_clock_and_another_attempt_of_the_lease_id_is_another():
    begin()
    lock("1")
    at(1001000)
    check_equal(commit("1", "1"), ["lost"])
    check_equal(lock("2"), ["locked", "0"])
    check_equal(commit("1", "1"), ["lost"])
    check_equal(commit("2", "1"), ["voted"])
    at(1004000)
    check_equal(ask("renew", "id", 1, name="a"), ["lost"])
    check_equal(lock("3"), ["locked", "1"])


@test
def a_lease_that_the_node_does_not_know_has_the_highest_number_of_all():
    begin()
    for name, token in (("a", "7"), ("b", "3")):
        lock("1", name=name)
        commit("1", token, name=name)
    check_equal(lock("2", name="c"), ["locked", "7"])
    REDIS("DEL", "pawl:{node}:b")
    check_equal(lock("2", name="b"), ["locked", "7"])


@test
def a_barrier_ends_what_is_locked_and_spares_what_is_held():
    begin()
    lock("1"), lock("1", name="b"), commit("1", "4", name="b")
    check_equal(ask("barrier"), ["barred", "4", "5000"])
    check_equal(commit("1", "1"), ["lost"])
    check_equal(ask("renew", "id", 3000, name="b")[0], "renewed")


@test
def a_node_that_has_restarted_was_wiped_or_is_behind_answers_nothing_until_it_is_healed():
    for lost, run, seen in ((lambda: None, "run-2", 0), (lambda: (REDIS("FLUSHALL"), at(1000000)), RUN, 0), (lambda: None, RUN, 8)):
        begin()
        lock("1"), commit("1", "7")
        lost()
        for again in (seen, 0):  # whoever asks next, and has seen less
            check_equal([lock("2", name="b", run=run, seen=again), commit("1", "8", run=run), ask("barrier", run=run),
                         ask("renew", "id", 1, name="a", run=run), ask("release", "id", "", name="a", run=run)], [["quarantine"]] * 5)
        check_equal(ask("heal", "q1", "9", MAX_TTL, run=run), ["other"])
        check_equal(ask("quarantine", "q1", run=run), ["quarantine", "q1", "0"])
        at(1004999)
        check_equal(ask("quarantine", "q2", run=run), ["quarantine", "q1", "4999"])
        check_equal(ask("heal", "q1", "9", MAX_TTL, run=run), ["wait", "1"])
        at(1005000)
        check_equal([ask("heal", "q2", "9", MAX_TTL, run=run), ask("heal", "q1", "9", MAX_TTL, run="run-3")], [["other"]] * 2)
        check_equal(ask("heal", "q1", "9", MAX_TTL, run=run, seen=seen), ["healed"])
        check_equal(ask("quarantine", "q3", run=run, seen=seen), ["well"])
        check_equal(ask("heal", "q1", "9", MAX_TTL, run=run), ["other"])
        at(1000000)  # also a hold of before counts for nothing
        check_equal(lock("3", run=run), ["locked", "9"])


@test
def another_node_answers_nothing():
    begin()
    check_equal([lock("1", node="store-1/2"), ask("quarantine", "q", node="store-1/2"), ask("barrier", node="x")], [["not-ours"]] * 3)


if __name__ == "__main__":
    main()
