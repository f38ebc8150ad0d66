#!/usr/bin/python3
"""test_store_command.py - pawl store against private Redis servers: alone, and with the real services."""

import json
import os
import shutil
import signal
import tempfile

from world import PrivateRedis, World, check, check_equal, check_in, main, run_daemon, test, wait_until
from world.cli import typed
from world.record import record_packed
from world.world import Daemon

ID = "AAAAAAAAAAAAAAAAAAAAAAAA"
HEADER = ('{};lease="orders:42";store="AAAAAAAAAAAAAAAAAAAAAAAA";mode=exclusive;epoch={};hold="Zk3v9a1BQ2x8";kid="k1";'
          'sig=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:')

folder = tempfile.mkdtemp(prefix="pawl-store-")
os.mkdir(os.path.join(folder, "redis"))
alone = PrivateRedis(os.path.join(folder, "redis"))
# Of who has no state directory of a lease service.
BESIDE = {"STATE_DIRECTORY": os.path.join(folder, "no-state-directory")}
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")} | BESIDE
worlds = []


def pawl(*words, status=0, **variables):
    """pawl store; its exit status must be this one."""
    done = run_daemon("pawl", "store", *words, environment=BESIDE | variables)
    check_equal(done.returncode, status, f"exit status of {words}: {done.stdout}{done.stderr}")
    return done


def at(redis, *words):
    return [*words, "--redis", redis.url]


def seen(redis, *words, status=0):
    return json.loads(pawl(*at(redis, "status", "-o", "json", *words), status=status).stdout)


def told(report):
    return " ".join(one["what"] + " " + one["todo"] for one in report["findings"])


def keys_file():
    file = os.path.join(folder, "keys")
    run_daemon("pawl", "keygen", "--out", file)
    return file


def empty():
    alone("FLUSHALL")
    return alone


class Services(World):
    """A store with its services, and what an operator says to it on the machine of the lease service."""

    def __init__(self, **more):
        super().__init__(**more)
        worlds.append(self)

    def state_directory(self, number=0):
        return os.path.join(os.path.dirname(self.redis.path), f"state-pawl-lease-{number}")

    def pawl(self, *words, status=0):
        return pawl(*at(self.redis, *words), "--state-dir", self.state_directory(), status=status)

    def seen(self, status=0):
        return seen(self.redis, "--state-dir", self.state_directory(), status=status)

    def wait_status(self, status, what):
        def fits():
            done = run_daemon("pawl", *at(self.redis, "store", "status", "-o", "json"), environment=BESIDE)
            return done.returncode == status and json.loads(done.stdout)

        return wait_until(fits, what)


# -- what is typed


@test
def what_is_mistyped_is_told():
    check_in("missing argument: COMMAND; see pawl store --help", pawl(status=64).stderr)
    check_in("did you mean pawl store status?", pawl("statsu", status=64).stderr)
    check_in("did you mean --floor", pawl("recover", "--flor", "5", status=64).stderr)
    check_in("missing argument: ID", pawl("forget", status=64).stderr)
    for floor in ("0", "-1", "01", "1e6", "1000000000000000", ""):
        check_in("--floor is a whole number", pawl("recover", "--floor", floor, status=64).stderr)
    for token in ("0", "x", "5;lease=", HEADER.format(5, 0)):
        check_in("--seen takes", pawl("recover", "--floor", "5", "--seen", token, status=64).stderr)
        check_in("--seen takes", pawl("recover", "--floor", "5", f"--seen={token}", status=64).stderr)
    check_in("go with --floor", pawl("recover", "--seen", "5", status=64).stderr)
    check_in("--store-id is 24 characters", pawl("recover", "--store-id", "short", status=64).stderr)
    check_in("--store-timeout", pawl("status", "--store-timeout", "2h", status=64).stderr)


@test
def a_password_in_the_command_line_is_refused_and_not_repeated():
    done = pawl("status", "--redis", "redis://:s3cret@127.0.0.1:1", status=78)
    check_in("--redis-password-file", done.stderr)
    check("s3cret" not in done.stderr, done.stderr)
    check_in("redis://", pawl("status", "--redis", "nonsense", status=78).stderr)
    check_in("cannot be reached",
             pawl("status", "--store-timeout", "200ms", status=69, PAWL_REDIS="redis://:s3cret@127.0.0.1:1").stderr)


@test
def the_password_comes_from_a_file():
    path = os.path.join(folder, "password")
    with open(path, "w", encoding="ascii") as file:
        file.write("s3cret\n")
    empty()("CONFIG", "SET", "requirepass", "s3cret")
    try:
        check_in("--redis-password-file", pawl(*at(alone, "status"), "--store-timeout", "300ms", status=69).stderr)
        pawl(*at(alone, "status"), "--redis-password-file", path, status=78)
        check_in(path + "-none", pawl(*at(alone, "status"), "--redis-password-file", path + "-none", status=78).stderr)
    finally:
        alone("CONFIG", "SET", "requirepass", "")


# -- a Redis without services


@test
def a_redis_that_cannot_be_reached_is_told_as_such():
    for words in (["status"], ["recover"], ["recover", "--floor", "5", "--yes"], ["forget", "x"]):
        done = pawl(*words, "--redis", f"unix://{folder}/none", "--store-timeout", "200ms", status=69)
        check(done.stderr.startswith("pawl: certainly not done: the store cannot be reached"), done.stderr)
    done = pawl("status", "--redis", f"unix://{folder}/none", "--store-timeout", "200ms", "-o", "json", status=69)
    check_equal(json.loads(done.stdout)["outcome"], "not-done")


@test
def a_script_without_a_known_end_may_have_changed_something_if_it_changes_anything():
    """Redis stops it in the middle: this user may not run all of its commands."""
    empty()("ACL", "SETUSER", "default", "-exists", "-time", "-hget", "-hgetall", "-hmget")
    try:
        done = pawl(*at(alone, "status"), "-o", "json", status=69)
        check(done.stderr.startswith("pawl: certainly not done: the store did not run "), done.stderr)
        check_equal(json.loads(done.stdout)["outcome"], "not-done")
        done = pawl(*at(alone, "forget", "x"), status=69)
        check(done.stderr.startswith("pawl: may have been done: the store did not run "), done.stderr)
    finally:
        alone("ACL", "SETUSER", "default", "+@all")


@test
def a_store_is_made_once_and_not_beside_a_service_that_runs():
    directory = os.path.join(folder, "made")
    words = ["init", "--redis", empty().url, "--state-dir", directory]
    check_in("created, epoch", pawl(*words).stdout)
    check_in("belongs to the store", pawl(*words, status=1).stderr)
    check_in("has a store already", pawl("init", *at(alone), "--state-dir", directory + "2", status=1).stderr)
    check_in("allow-unsafe-redis", pawl("init", "--help").stdout)
    check_in("unknown flag --redsi; did you mean --redis?", pawl("init", "--redsi", "x", status=64).stderr)
    daemon = Daemon("pawl-lease", *at(alone), "--state-dir", directory, "--keys", keys_file(), "--listen", "127.0.0.1:0")
    check_in("Stop it first", pawl(*words, status=78).stderr)
    check_equal(daemon.end(), 0)


@test
def an_empty_redis_is_told_as_such():
    report = seen(empty(), status=78)
    check_equal((report["state"], report["store"], report["state_dir"]["found"]), ("empty", "", "none"))
    check_in("pawl store init", told(report))
    check_in("REFUSED: this Redis has no store", pawl(*at(alone, "status"), status=78).stdout)
    check_in("has no store", pawl(*at(alone, "forget", "x"), status=78).stderr)
    alone("CONFIG", "SET", "aof-load-truncated", "yes")
    check_in("aof-load-truncated is yes, must be no", told(seen(alone, status=78)))
    alone("CONFIG", "SET", "aof-load-truncated", "no")


@test
def what_is_not_ours_is_told_and_left_alone():
    empty()("HSET", "pawl:{00}", "id", "store-1", "schema", 1)
    check_in("schema 11", told(seen(alone, status=78)))
    for words in (["recover"], ["recover", "--floor", "5", "--yes"], ["forget", "x"]):
        pawl(*at(alone, *words), status=78)
    check_equal(alone("KEYS", "*"), [b"pawl:{00}"])
    empty()("SET", "pawl:{3f}", "x")
    check_in("the key pawl:{3f} is a string", told(seen(alone, status=78)))
    pawl(*at(alone, "recover", "--floor", "5", "--yes"), status=78)
    check_equal(alone("GET", "pawl:{3f}"), b"x")


@test
def a_skeleton_needs_an_id_and_says_who_is_missing():
    empty()
    done = pawl(*at(alone, "recover"), status=1)
    check_in("which store is it?", done.stderr)
    check_in("N must not be below any token", done.stderr)
    check_equal(alone("DBSIZE"), 0)
    done = pawl(*at(alone, "recover", "--store-id", ID, "--wait", "100ms"), status=1)
    check_in("is not admitted yet", done.stderr)
    check_in("No lease service has come", done.stderr)
    report = seen(alone, status=1)
    check_equal((report["state"], report["why"], report["store"]), ("gated", "empty", ID))
    other = ID.replace("A", "B")
    done = pawl(*at(alone, "recover", "--store-id", other, "--wait", "100ms"), status=1)
    check_in(f"store {other} is made anew", done.stdout)
    check_equal(seen(alone, status=1)["store"], other)


@test
def recovery_asks_before_it_ends_every_hold():
    words = at(empty(), "recover", "--floor", "7000")
    check_in("say --yes", pawl(*words, status=64).stderr)
    status, said = typed(["store", *words], b"no\n", CLEAN)
    check_equal((status, alone("DBSIZE")), (1, 0), said)
    check_in('Type "yes"', said)
    status, said = typed(["store", *words], b"yes\n", CLEAN)
    check_equal(status, 0, said)
    check_in("tokens go on above 7000", said)
    check_equal(alone("HGET", "pawl:{3f}", "counter"), b"7000")


@test
def recovery_gives_an_empty_redis_an_id_and_an_epoch_above_all_that_were_seen():
    token = HEADER.format(6000, 99999999999)
    pawl(*at(empty(), "recover", "--floor", "7000", "--yes", "--store-id", ID, "--seen", token))
    report = seen(alone, status=1)
    check_equal((report["store"], report["epoch"], report["counter"]), (ID, 100000000000, 7000))
    check_in("the first that comes may join", told(report))
    pawl(*at(empty(), "recover", "--floor", "7000", "--yes"))
    check_equal(len(seen(alone, status=1)["store"]), 24)


@test
def a_floor_that_is_too_low_is_refused_with_the_numbers():
    pawl(*at(empty(), "recover", "--floor", "7000", "--yes"))
    alone("HSET", "pawl:{3f}", "counter", 7100)
    alone("HSET", "pawl:{3f}", "l:orders:42", record_packed({"s": "released", "t": 7200, "e": 5, "k": 7300, "p": 5}))
    before = alone("HGETALL", "pawl:{3f}")
    seen_tokens = ["--seen", "7400", "--seen", HEADER.format(7500, 5)]
    done = pawl(*at(alone, "recover", "--floor", "6999", "--yes", *seen_tokens), status=1)
    for part in ("7100: granted, says the counter of stripe pawl:{3f}",
                 "7300: granted or let through, says the record of lease orders:42", "7000: reserved, says the store",
                 "7400: seen", "7500: seen", "at least 7500"):
        check_in(part, done.stderr)
    check_equal(alone("HGETALL", "pawl:{3f}"), before)
    pawl(*at(alone, "recover", "--floor", "7500", "--yes"))
    check_in("only 1 tokens will be left", pawl(*at(empty(), "recover", "--floor", "999999999999998", "--yes")).stderr)
    pawl(*at(alone, "recover", "--floor", "999999999999999", "--yes"))


# -- with the services


@test
def a_store_in_order_is_shown_with_its_members():
    world = Services()
    world.acquire("job")
    report = world.wait_status(0, "the store is in order")
    check_equal((report["state"], report["why"], report["findings"]), ("admitted", "", []))
    check_equal(sorted(one["role"] for one in report["members"]), ["gateway", "lease"])
    check_equal({(one["state"], one["live"]) for one in report["members"]}, {("in", True)})
    check_equal(report["redis"]["run_id"], report["redis"]["admitted_run_id"])
    check(0 < report["counter"] < report["ceiling"], report)
    mine = world.seen()["state_dir"]
    check_equal((mine["store"], mine["found"]), (report["store"], "read"))
    check(mine["floor"] >= report["ceiling"], mine)
    text = world.pawl("status").stdout
    for part in (f"store      {report['store']}", "state      admitted", "appendfsync always", "Grants and writes are"):
        check_in(part, text)


@test
def who_lived_when_a_store_was_recovered_and_does_not_know_of_it_yet_is_named():
    world = Services()
    other = world.daemon("pawl-lease")
    who = f"pawl-lease pid {other.process.pid} "
    one = wait_until(lambda: [one["id"] for one in world.seen()["members"] if who in one["who"] and one["state"] == "in"], "it is in")
    other.send(signal.SIGSTOP)
    pawl(*at(world.redis, "recover", "--floor", "50000000", "--yes", "--force"))
    wait_until(lambda: "know of it yet: " + one[0] in told(world.wait_status(1, "nothing is granted")), "it is named")
    other.send(signal.SIGCONT)
    world.granted("job")
    check("know of it" not in told(world.wait_status(0, "all are in")), "it knows")


@test
def a_store_that_is_there_is_not_recovered_by_accident():
    world = Services()
    world.wait_status(0, "the store is in order")
    grant = world.acquire("job")
    check_in("this store is not lost", world.pawl("recover", status=1).stderr)
    check_in("is too low", world.pawl("recover", "--floor", "1", "--yes", status=1).stderr)
    check_in("this store is in order", world.pawl("recover", "--floor", "50000000", "--yes", status=1).stderr)
    check_equal(world.look("job")["token"], grant["token"])
    world.pawl("recover", "--floor", "50000000", "--yes", "--force")
    after = world.granted("job")
    check(after["token"] > 50000000 and after["epoch"] > grant["epoch"], after)


@test
def a_gateway_that_is_gone_is_forgotten():
    world = Services()
    other = world.daemon("pawl-gateway")
    wait_until(lambda: len(world.seen()["members"]) == 3, "three members")
    pid = str(other.process.pid)
    world.kill(other)
    gone = [one["id"] for one in world.seen()["members"] if pid in one["who"].replace(",", " ").split()]
    check_equal(len(gone), 1, world.seen()["members"])
    check_in("it lives", world.pawl("forget", gone[0], status=1).stderr)
    # As if more than ten seconds had passed.
    world.redis("HSET", "pawl:{store}:m:" + gone[0], "at", 1)
    check_in(f"pawl store forget {gone[0]}", told(world.seen()))
    check_in("is forgotten", world.pawl("forget", gone[0]).stdout)
    check_in("forgotten already", world.pawl("forget", gone[0], status=1).stderr)
    check_equal(told(world.seen()), "")
    check_in("no such member", world.pawl("forget", "nobody", status=1).stderr)


def close():
    for world in worlds:
        world.close()
    alone.close()
    shutil.rmtree(folder, ignore_errors=True)


main(close)
