#!/usr/bin/python3
"""The lease on an epoch (docs/decisions/0050): nothing is answered of a primary that may have been deposed."""

import time

from world import check, check_equal, check_in, main, of_time, test_in, wait_until
from world.asking import Later
from world.sentinel import FAILOVER_S, Sentinel, Watched


@test_in(Watched)
@of_time
def a_gateway_that_is_left_at_a_former_primary_answers_nothing_of_it_after_3_s(world):
    token = {"Fencing-Token": world.acquire("left", ttl_ms=600000)["fencing_token"]}
    check(write(world, token).status < 300, "it writes")
    world.sentinel.kill()
    world.lease_daemon.kill()  # else it would take the replica out of the set
    world.replica("REPLICAOF", "NO", "ONE")
    alone_s, told_s, refused = time.monotonic(), 0, None
    world.daemons.remove(world.lease_daemon)
    world.sentinel = Sentinel(world.folder, world.replica_port)
    world.flags[1] = f"sentinel://127.0.0.1:{world.sentinel.port}/main"
    there = world.client(world.daemon("pawl-lease"))
    while not there.is_ready() and time.monotonic() < alone_s + FAILOVER_S:
        answer = write(world, token)
        if answer.status < 300:
            told_s = time.monotonic() - alone_s
        else:
            refused = answer
    check_equal((refused.status, refused.code, there.is_ready()), (503, "store-not-admitted", True))
    check(told_s < 3.1, f"it has answered for {told_s:.2f} s")
    check_equal([write(world, token).code for _ in range(20)], ["store-not-admitted"] * 20, "the other epoch has begun")


def write(world, token):
    return world.gateway("PUT", "/v1/resources/left", token, b"x")


@test_in(lambda: Watched("--store-timeout", "20s"))
def a_call_that_was_under_way_when_the_lease_on_the_epoch_ended_is_not_answered(world):
    token = {"Fencing-Token": world.acquire("left", ttl_ms=600000)["fencing_token"]}
    world.sentinel.kill()
    world.redis.stop()
    waits, acquires = Later(write, world, token), Later(world.lease, "POST", "/v1/leases/late", body={})
    is_over(world, world.gateway, world.lease)
    world.redis.go_on()
    for answer in (waits.get(), acquires.get()):  # 503: the heartbeat was answered first, and Redis itself has refused
        check_in((answer.status, answer.code), ((504, "outcome-unknown"), (503, "store-unavailable")))
    wait_until(lambda: write(world, token).status < 300, "and goes on")
    check(acquires.answer.status == 504 or world.lease("GET", "/v1/leases/late").json["token"] == 0, "nothing was granted")


@test_in(Watched)
def an_event_that_comes_when_the_lease_on_the_epoch_is_over_ends_the_stream(world):
    world.replica.kill()
    world.wait_kept(1)  # else the event waits for its copies
    stream = world.listening()
    stream.until(b" 200 ")
    world.primary()("HSET", "pawl:{store}", "majority", "1", "registrars", "1 nobody")  # who would have to echo
    is_over(world, world.lease)
    world.primary()("PUBLISH", "pawl:e:unheard", "00 1.1.1\trefused\t1\t\t\t5\t")
    check(b"unheard" not in stream.rest(), "the stream ends without what came too late")


@test_in(lambda: Watched("--store-timeout", "20s", copies=2))  # so that the replica is not taken out
def an_event_whose_copies_come_when_the_lease_on_the_epoch_is_over_ends_the_stream(world):
    stream = world.listening()
    stream.until(b" 200 ")
    world.replica.stop()
    world.primary()("PUBLISH", "pawl:e:unheard", "00 1.1.1\trefused\t1\t\t\t5\t")
    world.primary()("HSET", "pawl:{store}", "majority", "1", "registrars", "1 nobody")
    is_over(world, world.lease)
    world.replica.go_on()
    check(b"unheard" not in stream.rest(), "the stream ends without it")


def is_over(world, *clients):
    for client in clients:
        wait_until(lambda client=client: world.check_of(client) == "store-not-admitted", "the lease is over")


main()
