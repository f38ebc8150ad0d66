#!/usr/bin/python3
"""A node of a quorum (lease/quorum/scripts/): locks, votes, barriers, quarantine."""

import atexit
import pathlib
import shutil
import tempfile

from lua_test import PrivateRedis, ROOT, RedisError, _tool, check_equal, main, test, text

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
    return ask("commit", attempt, token, ttl, "about", "who", name=name, **more)


def renew(lease_id, ttl="", attempt="", who="who", name="a", **more):
    return ask("renew", lease_id, ttl, attempt, who, name=name, **more)


def release(lease_id, attempt="", who="who", name="a", **more):
    return ask("release", lease_id, attempt, who, name=name, **more)


def hold(attempt, token, ttl=3000, name="a", told="", **more):
    return ask("raise", token, attempt, "id-" + attempt, ttl, "about", "who", told, name=name, **more)


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
            (lambda: lock("2", "id-2"), ["held", "0", "id", "1", "", "1000", "1000", "", "", "0"]), (lambda: commit("2", "1"), ["lost"]),
            (lambda: renew("id"), ["lost", "0"]), (lambda: commit("1", "1", ttl=5001), ["too-long", "5000"]),
            (lambda: commit("1", "999999999999998"), ["voted"]), (lambda: commit("1", "999999999999998"), ["lost"]),
            (lambda: lock("2"), ["held", "999999999999998", "id", "1", "999999999999998", "3000", "3000", "about", "who", "0"]),
            (lambda: renew("id-2"), ["lost", "999999999999998"]), (lambda: renew("id", 5001), ["too-long", "5000"]), (lambda: renew("id", attempt="2"), ["lost", "999999999999998"]),
            (lambda: renew("id", who="other"), ["not-yours"]), (lambda: release("id", who=""), ["not-yours"]),
            (lambda: renew("id", 4000), ["renewed", "999999999999998", "id", "1", "999999999999998", "4000", "4000", "about", "who", "0"]),
            (lambda: renew("id", attempt="1")[:7], ["renewed", "999999999999998", "id", "1", "999999999999998", "4000", "4000"]),
            (lambda: release("id", "2"), ["lost"]), (lambda: release("id-2"), ["lost"]),
            (lambda: release("id", "1"), ["released"]), (lambda: release("id"), ["released"]), (lambda: release("id", who="other"), ["not-yours"]), (lambda: renew("id"), ["lost", "999999999999998"]),
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
    check_equal([renew("id"), release("id")], [["lost", "1"], ["lost"]])
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
    check_equal(ask("barrier"), ["barred", "4"])
    check_equal(commit("1", "1"), ["lost"])
    check_equal(renew("id", name="b")[0], "renewed")


@test
def a_look_says_who_holds_and_changes_nothing():
    begin()
    check_equal(ask("look", name="a"), ["free", "0"])
    lock("1")
    check_equal(ask("look", name="a"), ["held", "0", "id", "1", "", "1000", "1000", "", "", "0"])
    commit("1", "4")
    at(1002000)
    check_equal(ask("look", name="a"), ["held", "4", "id", "1", "4", "1000", "3000", "about", "who", "2000"])
    at(1003000)
    check_equal(ask("look", name="a"), ["free", "4"])


@test
def a_number_of_elsewhere_is_above_what_was_locked_and_a_hold_of_elsewhere_takes_no_others_place():
    begin()
    for name, token in (("a", "5"), ("b", "3"), ("b", "7"), ("b", "6")):
        check_equal(ask("raise", token, name=name), ["raised"])
    check_equal([lock("1"), lock("1", name="b"), lock("1", name="c")], [["locked", "5"], ["locked", "7"], ["locked", "7"]])
    ask("raise", "8", name="a")
    check_equal([commit("1", "8"), hold("2", "9"), ask("look", name="a")[3:5]], [["lost"], ["raised"], ["1", ""]])
    check_equal([hold("1", "9"), ask("look", name="a")[1:5]], [["raised"], ["9", "id-1", "1", "9"]])  # its own late lock
    at(1003000)
    check_equal([hold("2", "8"), ask("look", name="a")], [["raised"], ["free", "9"]])
    check_equal([hold("2", "10", ttl=5001), ask("look", name="a")], [["raised"], ["free", "10"]])
    check_equal([hold("2", "10"), ask("look", name="a")[1:6]], [["raised"], ["10", "id-2", "2", "10", "3000"]])
    check_equal(renew("id-2")[0], "renewed")
    ask("raise", "12", name="a")
    check_equal([release("id-2"), hold("2", "10"), ask("look", name="a")], [["released"], ["raised"], ["free", "12"]])  # late
    check_equal([hold("3", "11", told="11"), ask("look", name="a")], [["raised"], ["free", "12"]])
    check_equal([hold("3", "11", told="12"), ask("look", name="a")[1:5]], [["raised"], ["12", "id-3", "3", "11"]])  # the number is not of a hold
    check_equal([release("id-3"), hold("3", "11", told="12"), ask("look", name="a")], [["released"], ["raised"], ["free", "12"]])


@test
def a_release_is_said_again_also_behind_a_number_of_elsewhere():
    begin()
    lock("1"), commit("1", "4"), release("id"), ask("raise", "9", name="a")
    check_equal([release("id"), release("id-2"), lock("2")], [["released"], ["lost"], ["locked", "9"]])
    commit("2", "10")
    at(1003000)
    ask("raise", "12", name="a")
    check_equal(release("id"), ["lost"])  # that hold ended by itself


@test
def a_hold_comes_to_a_node_that_knows_of_none_only_if_nobody_has_voted_there_since():
    begin()
    ask("raise", "12", name="other")
    check_equal(renew("id-1", name="new"), ["lost", "12"])
    check_equal([hold("1", "3", name="new"), ask("look", name="new")], [["raised"], ["free", "12"]])
    check_equal([hold("1", "3", name="new", told="12"), ask("look", name="new")[1:5]], [["raised"], ["12", "id-1", "1", "3"]])
    for name in ("newer", "forgotten"):
        check_equal(renew("id-1", name=name)[0], "lost")
        number = int(lock("2", "id-2", name=name)[1])
        check_equal([commit("2", number + 1, name=name), release("id-2", name=name)], [["voted"], ["released"]])
        if name == "forgotten":  # a minute later
            REDIS("DEL", f"pawl:{{node}}:{name}")
        check_equal([hold("1", "3", name=name, told=number), ask("look", name=name)], [["raised"], ["free", str(number + 1)]])


@test
def a_node_that_has_restarted_was_wiped_or_is_behind_answers_nothing_until_it_is_healed():
    for lost, run, seen in ((lambda: None, "run-2", 0), (lambda: (REDIS("FLUSHALL"), at(1000000)), RUN, 0), (lambda: None, RUN, 8)):
        begin()
        lock("1"), commit("1", "7")
        lost()
        highest = str(max(seen, int(REDIS("HGET", "pawl:{node}", "highest") or 0)))
        for again in (seen, 0):  # whoever asks next, and has seen less
            check_equal([lock("2", name="b", run=run, seen=again), commit("1", "8", run=run), ask("barrier", run=run),
                         renew("id", run=run), release("id", run=run), ask("look", name="a", run=run), hold("3", "9", run=run)],
                        [["quarantine"]] * 7)
        check_equal(ask("heal", "q1", "9", MAX_TTL, run=run), ["other"])
        check_equal(ask("quarantine", "q1", "", MAX_TTL, run=run), ["quarantine", highest, "5000", "q1", "0"])
        at(1004999)
        check_equal(ask("quarantine", "q2", "", MAX_TTL, run=run), ["quarantine", highest, "5000", "q1", "4999"])
        check_equal(ask("heal", "q1", "9", MAX_TTL, run=run), ["wait", "1"])
        at(1005000)
        check_equal([ask("heal", "q2", "9", MAX_TTL, run=run), ask("heal", "q1", "9", MAX_TTL, run="run-3")], [["other"]] * 2)
        check_equal(ask("heal", "q1", "9", MAX_TTL, run=run, seen=seen), ["healed"])
        check_equal(ask("quarantine", "q3", "", MAX_TTL, run=run, seen=seen), ["well", "9", "5000"])
        check_equal(ask("heal", "q1", "9", MAX_TTL, run=run), ["other"])
        at(1000000)  # also a hold of before counts for nothing
        check_equal(lock("3", run=run), ["locked", "9"])


@test
def what_the_clock_has_gone_back_behind_lasts_no_longer_than_it_was_to():
    begin()
    lock("1"), lock("2", name="b"), commit("2", "4", name="b")
    ask("quarantine", "q1", "", MAX_TTL, run="run-2")
    at(1000)
    check_equal([ask("quarantine", one, "", MAX_TTL, run="run-2")[3:] for one in ("q2", "q3")], [["q2", "0"]] * 2)
    REDIS("HSET", "pawl:{node}", "run", RUN)
    check_equal([ask("look", name=name)[5:] for name in ("a", "b")], [["1000", "1000", "", "", "0"], ["3000", "3000", "about", "who", "0"]])
    at(4000)
    check_equal([lock("3", name=name)[0] for name in ("a", "b")], ["locked"] * 2)


@test
def a_node_that_is_behind_knows_again_what_was_seen_of_it_whoever_heals_it():
    begin()
    check_equal(ask("look", name="a", seen=8), ["quarantine"])
    check_equal(ask("quarantine", "q", "", MAX_TTL)[:2], ["quarantine", "8"])
    at(1005000)
    check_equal([ask("heal", "q", "7", MAX_TTL), lock("1", seen=8)], [["healed"], ["locked", "8"]])


@test
def a_full_redis_keeps_gives_back_and_heals_and_grants_nothing():
    begin()
    lock("1"), commit("1", "7"), lock("2", name="b")

    def when_full(*deeds):
        REDIS("CONFIG", "SET", "maxmemory", 1)
        try:
            return [deed()[0] for deed in deeds]
        except RedisError as refused:
            return str(refused)[:3]
        finally:
            REDIS("CONFIG", "SET", "maxmemory", 0)
    check_equal([when_full(lambda: lock("3", name="c")), when_full(lambda: commit("2", "8", name="b"))], ["OOM"] * 2)
    check_equal(when_full(lambda: renew("id", 4000), lambda: release("id"), lambda: ask("barrier")), ["renewed", "released", "barred"])
    ask("quarantine", "q", "", MAX_TTL, run="run-2")
    at(1005000)
    check_equal(when_full(lambda: ask("heal", "q", "7", MAX_TTL, run="run-2")), ["healed"])


@test
def another_node_answers_nothing():
    begin()
    check_equal([lock("1", node="store-1/2"), ask("quarantine", "q", "", 0, node="store-1/2"), ask("barrier", node="x")], [["not-ours"]] * 3)


if __name__ == "__main__":
    main()
