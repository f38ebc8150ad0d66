#!/usr/bin/python3
"""test_insync.py - who must have a copy of what is answered: three real Redises."""

import re
import select
import signal
import time

from world import World, check, check_equal, check_in, main, test, test_in, wait_until
from world.asking import Later, path
from world.redis import Connection
from world.trio import Load, Trio
from world.waiting import Waiter


@test_in(lambda: Trio(store_timeout="20s"))
def a_frozen_replica_is_taken_out_and_is_back_within_five_seconds_of_being_in_step(world):
    wait_until(lambda: world.lease.ready().get("away") == [], "nobody is away")
    check([client.metric("pawl_store_kept") for client in (world.lease, world.gateway)] == [3, 3], "of three")
    wait_until(lambda: world.lease.metric("pawl_store_keep_seconds_count") > 0, "an answer has waited for them")
    world.nodes[2].stop()
    load = Load(world)
    wait_until(lambda: len(load.written) > 50, "answers go on without it")
    load.end()
    check_equal(set(load.others), set())
    world.wait_kept(0, 1)
    check_in(world.called(2)[0], str(world.lease("GET", "/readyz").json["away"]))
    check_equal([world.lease.metric(f'pawl_store_nodes{{state="{state}"}}') for state in ("kept", "away", "other")], [2, 1, 0])
    for client in (world.lease, world.gateway):
        said = client("GET", "/v1/overview").json["condition"]
        check_equal(said["code"], "node-away")
        check_in(world.called(2)[0], said["detail"])
    world.nodes[2].go_on()
    world.wait_kept(0, 1, 2, deadline_s=5)
    check_equal(world.lease("GET", "/v1/overview").json["condition"], None)
    world.nodes[2].stop()
    world.copied_by[1].lead_to(world.redis.port)  # it is away, and does not say that it is not promoted
    world.wait_kept(0, 1, deadline_s=8)


def wait_stopped_as_it_joins(world):
    """Before it can have acknowledged what it is waited for; again if the machine was slow."""
    def is_stopped():
        world.nodes[1].go_on()
        world.nodes[1]("CONFIG", "SET", "replica-priority", 0)
        world.wait_kept(0)
        world.nodes[1]("CONFIG", "SET", "replica-priority", 100)
        looked = [0.0, 0.0]  # when the last look began, and the one before, which did not find it yet
        wait_until(lambda: looked.append(time.monotonic()) or world.record()[2], "it is waited for", again_ms=1)
        world.nodes[1].stop()
        return time.monotonic() - looked[-2] < 0.02 and world.record()[2]
    wait_until(is_stopped, "it is stopped in time", 60)


@test_in(lambda: Trio(copies=1, replicas=1, settings=(("--replica-priority", "0"), ())))
def a_node_that_stands_still_while_it_joins_is_not_in_the_set(world):
    wait_stopped_as_it_joins(world)
    wait_until(lambda: world.record()[2] == "", "it is given up, or in the set")
    check_equal([node.split("/")[0] for node in world.record()[0].split()[3:]], world.called(0))
    world.acquire("job")


@test_in(lambda: Trio(copies=1, replicas=1, settings=(("--replica-priority", "0"), ()), keep_wait="1500ms"))
def what_a_node_had_when_it_joined_before_says_nothing_to_a_service_that_was_stopped(world):
    other = world.daemon("pawl-lease")
    wait_until(lambda: world.client(other)("GET", "/readyz").status == 200, "it is in")
    for is_first in (True, False):
        wait_stopped_as_it_joins(world)
        if is_first:
            wait_until(lambda: '"joins":"127' in other.log().rpartition("store-kept-changed")[2], "it knows")
            knows = time.monotonic()
            wait_until(lambda: time.monotonic() > knows + 0.5, "and since when it is waited for")
        other.send(signal.SIGSTOP if is_first else signal.SIGCONT)
        wait_until(lambda: world.record()[2] == "", "it is given up, or in the set")
        check_equal([node.split("/")[0] for node in world.record()[0].split()[3:]], world.called(0))
        world.nodes[1].go_on()
    world.wait_kept(0, 1)


@test_in(lambda: Trio(replicas=1, settings=(("--replica-priority", "0"), ()), begins_whole=False))
def one_that_joins_is_no_copy_before_it_may_take_over(world):
    wait_until(lambda: all(client("GET", "/readyz").code == "store-not-kept" for client in (world.lease, world.gateway)), "it is alone")
    world.nodes[1]("CONFIG", "SET", "replica-priority", 100)
    wait_until(lambda: world.record()[2], "it is waited for", again_ms=1)
    world.lease_daemon.send(signal.SIGSTOP)
    wait_until(lambda: '"joins":"127' in world.gateway_daemon.log(), "the gateway knows")
    answer = world.gateway("GET", "/v1/resources/none")
    if any(world.redis("HMGET", "pawl:{store}", "growing", "added")):  # else it was stopped too late
        check_equal(answer.code, "store-not-kept")
    world.lease_daemon.send(signal.SIGCONT)
    world.wait_kept(0, 1)
    world.acquire("job")


@test_in(Trio)
def a_node_that_is_gone_is_forgotten_and_not_while_it_is_there_or_needed(world):
    gone, other = world.called(2)[0], world.called(1)[0]

    def away():
        return [{one["node"] for one in client.ready().get("away", ())} for client in (world.lease, world.gateway)]

    def forget(node, status, says):
        done = world.pawl("store", "node", "forget", node)
        check_equal((done.returncode, says in done.stdout + done.stderr), (status, True), done.stdout + done.stderr)

    forget(gone, 1, "it is connected")
    forget(world.called(0)[0], 1, "it is connected")
    forget("127.0.21.9:6379", 1, "not in the in-sync set")
    world.nodes[2].kill()
    world.wait_kept(0, 1)
    wait_until(lambda: away() == [{gone}] * 2, "it is away")
    forget(gone, 0, "not named as away")
    wait_until(lambda: away() == [set()] * 2, "it is forgotten")
    world.nodes[2].start()
    world.nodes[2].copy(world.copied_by[1].port)
    world.wait_kept(0, 1, 2)
    world.nodes[2].kill()
    wait_until(lambda: away() == [{gone}] * 2, "it is away again")
    world.nodes[1].kill()
    wait_until(lambda: world.lease("GET", "/readyz").code == "store-not-kept", "too few are left")
    forget(other, 1, "fewer nodes than --copies")


@test_in(Trio)
def with_too_few_copies_nothing_is_answered(world):
    token = {"Fencing-Token": world.acquire("stored", ttl_ms=600000)["fencing_token"]}
    for node in world.nodes[1:]:
        node.stop()
    answer = world.gateway("PUT", "/v1/resources/stored", token, b"x")
    check_equal((answer.status, answer.code), (504, "outcome-unknown"))
    for client in (world.lease, world.gateway):
        wait_until(lambda client=client: client("GET", "/readyz").code == "store-not-kept", "too few have a copy")
        said = client("GET", "/readyz").json
        check_equal((said["kept"][0], {one["node"] for one in said["away"]}), (world.called(0)[0], {world.called(1)[0], world.called(2)[0]}))
    for client, call in ((world.lease, ("POST", "/v1/leases/job", (), {})), (world.gateway, ("PUT", "/v1/resources/stored", token, b"y")),
                         (world.gateway, ("GET", "/v1/resources/stored"))):
        answer = client(*call)
        check_equal((answer.status, answer.code), (503, "store-not-kept"), call[:2])
    wait_until(lambda: world.pawl("store", "status").returncode == 1, "so does pawl store status")
    wait_until(lambda: all(one["since_ms"] > 2000 for one in world.lease("GET", "/readyz").json["away"]), "they are away for long")
    check_equal(sorted(node.split("/")[0] for node in world.record()[1].split()), sorted(world.called(0, 1, 2)), "either may take over")
    world.nodes[1].go_on()
    world.granted("job")
    world.wait_kept(0, 1)
    world.nodes[2].go_on()
    world.wait_kept(0, 1, 2)
    check_equal(world.gateway("GET", "/v1/resources/stored").body, b"x")


@test_in(lambda: Trio(replicas=1, store_timeout="1s"))
def while_a_node_that_is_needed_has_nothing_on_its_disk_nothing_is_answered(world):
    world.wait_kept(0, 1)
    world.nodes[1]("CONFIG", "SET", "appendonly", "no")
    wait_until(lambda: world.lease("POST", "/v1/leases/none", body={}).code == "store-not-kept", "nothing is answered")
    check_in("on their disks", world.lease("GET", "/readyz").json["detail"])
    done = world.pawl("store", "status")
    check_equal((done.returncode, "(no-aof)" in done.stdout, "are possible" in done.stdout), (1, True, False), done.stdout)
    world.nodes[1]("CONFIG", "SET", "appendonly", "yes")
    world.redis("CONFIG", "RESETSTAT")
    world.granted("job")
    world.redis("EVAL", "for i = 1, 1000 do redis.call('SET', 'pad' .. i, i) end", 0)
    world.nodes[1]("CONFIG", "SET", "rdb-key-save-delay", "30000")  # of what it copies anew, and of what it begins to write
    world.nodes[1]("CONFIG", "SET", "appendonly", "no")
    wait_until(lambda: "no-aof" in world.lease("GET", "/readyz").body.decode(), "it was seen")
    world.nodes[1]("CONFIG", "SET", "appendonly", "yes")
    wait_until(lambda: world.lease("POST", "/v1/leases/none", body={"ttl_ms": 100}).code == "store-not-kept", "nothing is answered before its first rewrite is over")
    world.nodes[1]("CONFIG", "SET", "appendonly", "no")
    world.nodes[1]("CONFIG", "SET", "rdb-key-save-delay", "0")
    world.nodes[1]("CONFIG", "SET", "appendonly", "yes")
    world.granted("other")
    world.nodes[1]("CONFIG", "SET", "rdb-key-save-delay", "30000")
    world.nodes[1]("REPLICAOF", "NO", "ONE")
    world.nodes[1]("SET", "own", "stream")
    world.nodes[1].copy(world.copied_by[0].port)
    wait_until(lambda: "known whether" in world.lease("GET", "/readyz").json.get("detail", ""), "it is in step, and has not all on its disk")
    wait_until(lambda: (done := world.pawl("store", "status")).returncode == 1 and "(rewriting)" in done.stdout, "so does pawl store status")
    world.redis("CONFIG", "RESETSTAT")  # replicas have connected as often as when it was asked last
    wait_until(lambda: b"cmdstat_wait" in (said := world.redis("INFO", "commandstats")) and int(said.split(b"cmdstat_wait:calls=")[1].split(b",")[0]) > 10,
               "the services have looked")
    check_equal(world.lease("POST", "/v1/leases/none", body={}).code, "store-not-kept")
    world.nodes[1]("CONFIG", "SET", "rdb-key-save-delay", "0")


@test_in(Trio)
def a_node_that_comes_back_takes_the_place_of_one_that_acknowledges_and_keeps_nothing(world):
    world.nodes[2].kill()
    world.wait_kept(0, 1)
    world.nodes[1]("CONFIG", "SET", "appendonly", "no")
    wait_until(lambda: world.lease("GET", "/readyz").code == "store-not-kept", "nothing is answered")
    world.nodes[2].start()
    world.nodes[2].copy(world.copied_by[1].port)
    world.wait_kept(0, 2)
    world.granted("job")


@test_in(lambda: Trio(settings=((), ("--replica-priority", "0"))))
def one_that_announces_the_address_of_a_node_of_the_set_does_not_stand_for_it(world):
    world.nodes[2]("CONFIG", "SET", "replica-announce-port", world.nodes[1].port)
    world.nodes[2]("REPLICAOF", "NO", "ONE")
    world.nodes[2].copy(world.copied_by[1].port)
    wait_until(lambda: world.redis("INFO", "replication").count(b"port=%d,state=online" % world.nodes[1].port) == 2, "both have one address")
    world.granted("before")
    world.nodes[1]("REPLICAOF", "127.0.0.1", world.nodes[1].port)  # it copies nobody
    wait_until(lambda: world.lease("POST", "/v1/leases/none", body={}).code == "store-not-kept", "nothing is answered")
    world.nodes[1].copy(world.copied_by[0].port)
    world.granted("job")


@test
def a_store_that_was_made_anew_in_an_emptied_redis_goes_on_with_its_copies():
    for how in ((), ("--floor", "900000000", "--yes")):
        world = Trio()
        world.wait_kept(0, 1, 2)
        world.acquire("job")
        world.redis("FLUSHALL")
        done = world.pawl("store", "recover", "--state-dir", f"{world.folder}/pawl-lease-1", *how)
        check_equal(done.returncode, 0, done.stdout + done.stderr)
        world.wait_kept(0, 1, 2)
        world.granted("job")
        for node in world.nodes[1:]:
            node.stop()
        wait_until(lambda: world.lease("POST", "/v1/leases/other", body={}).code == "store-not-kept", "too few have a copy")
        for node in world.nodes[1:]:
            node.go_on()
        world.close()


@test_in(Trio)
def two_replicas_that_were_started_again_at_once_are_back_under_their_new_run_ids(world):
    held = world.acquire("job", ttl_ms=600000)
    for node in world.nodes[1:]:
        node.kill()
    wait_until(lambda: world.lease("GET", "/readyz").code == "store-not-kept", "too few have a copy")
    for node, line in zip(world.nodes[1:], world.copied_by):
        node.start()
        node.copy(line.port)
    world.wait_kept(0, 1, 2)
    check_equal(world.look("job")["holders"][0]["token"], held["token"])


# -- what waits for the set beside answers: events, and what ends a wait in line

SILENT_S = 0.5  # what waits for nobody comes sooner
FLOOD = "for n = 1, 4500 do redis.call('PUBLISH', 'pawl:e:flood', '00 1.' .. n .. '.1\trefused\t1\t\t5\t' .. string.rep('x', 1000)) end"


def is_silent(raw):
    check_equal(select.select([raw.socket], [], [], SILENT_S)[0], [], "nothing has come")


class Ear:
    """Hears what the primary publishes when it does."""

    def __init__(self, world, pattern):
        self.connection = Connection(world.redis.path)
        self.connection("PSUBSCRIBE", pattern)

    def hears(self, what):
        while what not in self.connection._reply()[3]:  # pylint: disable=protected-access
            pass


@test_in(lambda: Trio(copies=3))
def an_event_and_one_of_before_are_told_when_every_node_of_the_set_has_what_they_tell_of(world):
    stream, ear = world.listening(), Ear(world, "pawl:e:*")
    stream.until(b"\n\n")
    world.acquire("x")
    first = re.search(rb"id: (\S+)", stream.until(b'"x"'))[1].decode()
    world.nodes[2].stop()
    granted = Later(world.lease, "POST", path("early"), body={})
    ear.hears(b"granted")
    is_silent(stream)
    replayed = world.listening(f"?lease=x&since={first}")
    is_silent(replayed)
    world.nodes[2].go_on()
    stream.until(b'"early"')
    check_equal(granted.get().status, 201)
    check_in(b" 200 ", replayed.until(b"\n\n"))


@test_in(World)
def with_one_node_an_event_is_told_at_once_and_costs_no_command(world):
    def asked():
        said = world.redis("INFO", "commandstats").decode()
        return sum(int(calls) for calls in re.findall(r"cmdstat_(?:ping|role|wait):calls=(\d+)", said))

    stream, count = world.listening(), 60
    stream.until(b"\n\n")
    before = asked()
    for number in range(1, 1 + count):
        world.redis("PUBLISH", "pawl:e:flood", f"00 1.{number}.1\trefused\t1\t\t5\tnumber-{number}.")
        stream.until(f"number-{number}.".encode())
    check(asked() - before < count / 2, "that of the subscribers, each second")


@test_in(lambda: Trio(copies=3))
def a_stream_ends_without_the_event_that_has_no_copies_in_time(world):
    stream, ear = world.listening(), Ear(world, "pawl:e:*")
    stream.until(b"\n\n")
    world.nodes[2].stop()
    granted = Later(world.lease, "POST", path("late"), body={})
    ear.hears(b"granted")
    check(b"late" not in stream.rest(), "it was told")
    check_equal(granted.get().status, 504)
    world.nodes[2].go_on()
    wait_until(lambda: world.lease("GET", path("late")).status == 200, "it goes on")
    stream = world.listening()
    stream.until(b"\n\n")
    world.acquire("x")
    stream.until(b'"x"')


@test_in(lambda: Trio(copies=3, store_timeout="60s"))
def a_stream_ends_when_more_than_its_bound_waits_for_copies(world):
    stream = world.listening()
    stream.until(b"\n\n")
    world.nodes[2].stop()
    world.redis("EVAL", FLOOD, 0)
    told = stream.rest()
    check(b"flood" not in told and b"alive" not in told, f"it was told, or waited for its deadline: {told}")
    world.nodes[2].go_on()


@test_in(lambda: Trio(copies=3))
def a_waiter_that_is_superseded_hears_so_when_every_node_of_the_set_has_that(world):
    world.acquire("job", ttl_ms=600000)
    first, ear = Waiter(world, world.lease, "job", "ada"), Ear(world, "pawl:{*")
    world.nodes[2].stop()
    second = Waiter(world, world.lease, "job", "ada", in_line=False)
    ear.hears(b"superseded")
    first.join(SILENT_S)
    check(first.answer is None, repr(first.answer))
    world.nodes[2].go_on()
    first.told(409, "superseded")
    check(second.answer is None, repr(second.answer))


main(parts=3)
