#!/usr/bin/python3
"""Whoever waits, when something breaks: the line to the store, the instance, the clock; what of his client: tests/component/test_wait_walk.c.

The instance under test reaches Redis by a relay, which holds back or cuts what passes at the chosen moment; another
instance, straight on the same Redis, serves everybody else."""

import contextlib
import json
import os
import signal
import time

from world import BUILD, FROM_REDIS, TO_REDIS, Daemon, Relay, World, check, check_equal, check_in, function_of, keeps_within, main, of_time, \
    test, wait_until
from world.asking import Later, path, refused
from world.record import record_of, stripe_key
from world.shim import Shim
from world.waiting import Waiter, lease_id_of

WORLD = World("--store-timeout", "30s")
RELAY = Relay(WORLD.redis)
CLAIM, RELEASE = function_of("claim") + b"\r\n", function_of("release") + b"\r\n"
# What a test holds back it cuts, too: no answer is to be lost because the disk, or the relay, stood still for two seconds.
ASIDE_FLAGS = ["--keys", WORLD.keys_file, "--listen", "127.0.0.1:0", "--store-timeout", "30s"]
BUSY_S = 3.0  # docs/contract.md: nobody waits longer for a dead waiter
SLACK_MS = 500  # what a busy machine may add
AT_ONCE_S = 2.0  # without the wait for somebody who is dead


def aside(*flags, environment=None):
    """An instance behind the relay."""
    daemon = Daemon("pawl-lease", "--redis", RELAY.url, *ASIDE_FLAGS, *flags, environment=environment)
    WORLD.daemons.append(daemon)
    WORLD.wait_ready(WORLD.client(daemon))
    return daemon


ASIDE = aside()


def raw_waiter(name, who, wait_ms=60000):
    """A client that can be cut off at any moment."""
    raw = WORLD.raw(ASIDE)
    body = json.dumps({"holder": who, "lease_id": lease_id_of(who), "wait_ms": wait_ms, "ttl_ms": 60000})
    raw.send(f"POST /v1/leases/{name} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             f"Content-Length: {len(body)}\r\n\r\n{body}")
    return raw


def history(name):
    return [(item["type"], item["holder"]) for item in WORLD.lease("GET", f"/v1/leases/{name}/history").json["items"]]


def store_ms():
    seconds, micros = WORLD.redis("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


def check_waited(name, released_ms):
    """By the store's own times: when the lease that was released then was handed to who has it now."""
    waited_ms = int(record_of(WORLD.redis, name)["g"]) - released_ms
    check(waited_ms < BUSY_S * 1000 + SLACK_MS, f"the next one waited {waited_ms} ms")


def everything_ends(name, next_one):
    """The other instance's waiter gets the lease at once, and afterwards nothing is left."""
    begun = time.monotonic()
    answer = next_one.answered()
    check_equal(answer.status, 201)
    check(time.monotonic() - begun < AT_ONCE_S, f"the next one waited {time.monotonic() - begun:.2f} s")
    check_equal(WORLD.holder(name), next_one.body["holder"])
    WORLD.release(name, answer.json)
    look = WORLD.look(name)
    check_equal((look["state"], look["waiting"]), ("free", 0))


@test
def alarms_that_somebody_has_put_there_by_hand_are_in_nobodys_way(name):
    for bad in ("x" * 200, "", "a/b"):
        WORLD.redis("ZADD", "pawl:{store}:alarm", 1, bad)
    WORLD.acquire(name, ttl_ms=300)
    check_equal(Waiter(WORLD, WORLD.lease, name, "bob").answered().status, 201)
    check_equal([daemon.process.poll() for daemon in WORLD.daemons], [None] * len(WORLD.daemons))
    WORLD.redis("ZREM", "pawl:{store}:alarm", "x" * 200, "", "a/b")


# -- the client goes

@test
def a_client_that_goes_while_it_waits_is_out_of_the_line_within_100_ms():
    def took_ms(how):
        name = WORLD.name()
        grant = WORLD.acquire(name, holder="A", ttl_ms=60000)
        client = raw_waiter(name, "gone")
        wait_until(lambda: WORLD.waiting(name) == 1, "it is in line")
        begun = time.monotonic()
        client.vanish() if how == "reset" else client.close()
        wait_until(lambda: WORLD.redis("ZCARD", f"{stripe_key(name)}:q:{name}") == 0, "it is out of the line")
        took = (time.monotonic() - begun) * 1000
        WORLD.release(name, grant)
        check(("granted", "gone") not in history(name), history(name))
        return took
    for how in ("close", "reset"):
        keeps_within(100, lambda how=how: took_ms(how), f"out of the line after {how}")


# -- the line to the store breaks


@test
def a_line_that_is_cut_while_a_claim_is_under_way_is_an_unknown_outcome_and_the_retry_tells():
    for what, pattern, direction in (("not yet there", CLAIM, TO_REDIS), ("done", b"claimed", FROM_REDIS)):
        name = WORLD.name()
        grant = WORLD.acquire(name, holder="A", ttl_ms=60000)
        cut_off = Waiter(WORLD, ASIDE, name, "cut-off")
        hold = RELAY.hold(direction, pattern)
        WORLD.release(name, grant)
        hold.wait_met()
        RELAY.cut()
        refused(cut_off.answered(), 504, "outcome-unknown")
        again = WORLD.lease("POST", path(name), body=cut_off.body)
        check_in(again.status, (200, 201), what)
        if what == "done":
            check_equal((again.status, again.json["token"]), (200, grant["token"] + 1))
        WORLD.release(name, again.json)
        WORLD.wait_ready(WORLD.client(ASIDE))


# -- a release where they wait

CROWD = 20


def crowd(name, daemon=None, **ask):
    """A holds; twenty wait where it will release. The grant, the waiters, and what begins the release."""
    grant = WORLD.acquire(name, holder="A", ttl_ms=60000)
    waiters = [Waiter(WORLD, daemon or ASIDE, name, f"w{number:02}", **ask) for number in range(CROWD)]
    return grant, waiters, lambda: Later(WORLD.client(daemon or ASIDE), "DELETE", path(name), {"Lease-Id": grant["lease_id"]})


def send_release(daemon, name, grant):
    raw = WORLD.raw(daemon)
    raw.send(f"DELETE /v1/leases/{name} HTTP/1.1\r\nHost: localhost\r\nLease-Id: {grant['lease_id']}\r\n\r\n")
    return raw


@test
@of_time
def a_release_that_is_sent_again_takes_nothing_back_that_somebody_was_told_of():
    alone, names = aside("--threads", "1"), [WORLD.name(), WORLD.name()]
    grants = [WORLD.acquire(name, holder="A", ttl_ms=60000) for name in names]
    waiter = Waiter(WORLD, alone, names[0], "B")
    hold = RELAY.hold(TO_REDIS, function_of("batch"))
    alone.send(signal.SIGSTOP)  # both in one turn
    sent = [send_release(alone, name, grant) for name, grant in zip(names, grants)]
    alone.send(signal.SIGCONT)
    hold.wait_met()
    channels = lambda: set(WORLD.redis("PUBSUB", "CHANNELS", "pawl:{*}:d:*"))  # noqa: E731
    before = channels()
    WORLD.redis("CLIENT", "KILL", "TYPE", "pubsub")  # all desks close, and open anew: that one behind the batch
    wait_until(lambda: sum(WORLD.redis("EXISTS", key) for key in channels() - before) >= len(before) - 1, "other desks are open again")
    wait_until(lambda: len(channels()) >= len(before), "it listens, too")
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: len(channels() - before) == len(before), "it is another desk", deadline_s=1)
    is_early = len(channels() - before) == len(before)  # then the waiter is asked for, and what answers the release takes it back
    try:
        WORLD.redis("CONFIG", "SET", "maxmemory", "1")  # the batch is refused, each of it goes alone
        again = RELAY.hold(TO_REDIS, RELEASE)
        hold.go()
        again.wait_met()
        again.go()
        told = waiter.answered()
        check_equal([answer.answer("DELETE", path(name)).status for answer, name in zip(sent, names)], [204, 204])
    finally:
        WORLD.redis("CONFIG", "SET", "maxmemory", "0")
        wait_until(lambda: WORLD.lease("POST", f"/v1/leases/{WORLD.name()}", body={}).status == 201, "there is room")
    check_equal((told.status, WORLD.holder(names[0]), is_early), (201, "B", False), told.body)
    check_equal([kind for kind, _ in history(names[0])], ["granted", "released", "granted"])
    check_equal(alone.end(), 0)


# -- the instance goes

@test
@of_time
def an_instance_that_is_killed_between_a_release_and_its_reply_keeps_the_next_for_one_ttl_and_a_retry_has_it():
    name, doomed = WORLD.name(), aside()
    grant, waiters, release = crowd(name, doomed, ttl_ms=1500)
    hold = RELAY.hold(FROM_REDIS, b"handed")
    release()
    hold.wait_met()
    doomed.kill()
    hold.go()
    again = WORLD.lease("POST", path(name), body=waiters[0].body)
    check_equal((again.status, again.json["token"], again.json["holder"]), (200, grant["token"] + 1, "w00"))
    next_one = Waiter(WORLD, WORLD.lease_daemon, name, "B")
    begun = time.monotonic()
    check_equal(next_one.answered().status, 201)
    check(time.monotonic() - begun < 1.5 + BUSY_S + SLACK_MS / 1000, "it waited for more than a ttl and a dead desk")
    everything_ends(name, next_one)


@test
@of_time
def an_instance_that_is_killed_with_a_grant_in_flight_and_many_who_wait_keeps_the_next_waiting_three_seconds_at_most(name):
    doomed = aside()
    grant = WORLD.acquire(name, holder="A", ttl_ms=60000)
    for number in range(20):
        Waiter(WORLD, doomed, name, f"doomed-{number}")
    next_one = Waiter(WORLD, WORLD.lease_daemon, name, "B")
    hold = RELAY.hold(FROM_REDIS, b"granted ")
    released_ms = store_ms()
    WORLD.release(name, grant)
    hold.wait_met()
    doomed.kill()
    hold.go()
    next_one.answered()
    check_waited(name, released_ms)
    everything_ends(name, next_one)
    check_in(("returned", "doomed-0"), history(name))


# -- clocks of the instances

SHIM = BUILD / "torture" / "shim.so"


@test
@of_time
def instances_whose_clocks_are_an_hour_apart_serve_one_line(name):
    check(SHIM.exists(), f"{SHIM} is missing: make shim makes it")
    shims = [Shim(SHIM, os.path.join(WORLD.folder, f"shim{number}")) for number in (0, 1)]
    for shim, shift_s in zip(shims, (-1800, 1800)):
        shim.set(clock_s=shift_s)
    behind, ahead = (aside(environment=shim.environment) for shim in shims)
    grant = WORLD.acquire(name, client=WORLD.client(behind), holder="A", ttl_ms=1000)
    waiters = [Waiter(WORLD, one, name, f"w{number}", ttl_ms=300) for number, one in enumerate((ahead, behind, ahead, behind))]
    tokens = [grant["token"]]
    for waiter in waiters: # each hold ends by its ttl: nobody releases
        check_equal(waiter.answered().status, 201)
        tokens.append(waiter.answer.json["token"])
    check_equal(tokens, list(range(tokens[0], tokens[0] + 5)), "first come, first served, and nobody twice")
    granted = [item["at_ms"] for item in WORLD.lease("GET", f"/v1/leases/{name}/history").json["items"]
               if item["type"] == "granted"]
    took_ms = granted[-1] - granted[0]
    check(took_ms < 1000 + 3 * 300 + 1000, f"it took {took_ms} ms")
    for one, shim in zip((behind, ahead), shims):
        check_equal(one.end(), 0)
        check(shim.counts()[1] > 0, "the clock was never asked for")


main(WORLD.close, parts=2)
