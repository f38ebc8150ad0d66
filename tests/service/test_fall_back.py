#!/usr/bin/python3
"""A Redis whose content falls back while the same process runs on: no number comes twice, nothing revived writes."""

import signal

from world import World, check, check_equal, main, test, wait_until
from world.asking import path
from world.record import stripe_key
from world.redis import PUT_BACK, SAVE



def put(world, name, grant, body=b"x"):
    return world.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": grant["fencing_token"]}, body)


def granted(world, name):
    """A grant, as soon as there is one."""
    return wait_until(lambda: (answer := world.lease("POST", path(name))).status == 201 and answer.json, f"{name} is granted")


def hold_and_release(world):
    """(a hold that was released after the content was copied, all tokens granted since, the copy)"""
    old = world.acquire("pay:1", ttl_ms=600000)
    check_equal(put(world, "pay:1", old).status, 201)
    saved = world.redis("EVAL", SAVE, 0)
    world.release("pay:1", old)
    tokens = [old["token"]]
    for _ in range(5):
        grant = world.acquire("pay:1")
        tokens.append(grant["token"])
        world.release("pay:1", grant)
    return old, tokens, saved


def wait_for_pulses(world):
    """Until every service has looked at the whole store once more."""
    members = [f"pawl:{{store}}:m:{one.decode()}" for one in world.redis("SMEMBERS", "pawl:{store}:members")]
    before = {one: int(world.redis("HGET", one, "beats")) for one in members}
    for one in members:
        wait_until(lambda one=one: int(world.redis("HGET", one, "beats")) > before[one] + 1, "a pulse")


@test
def old_content_put_back_while_every_service_is_stopped_or_dead_revives_nothing():
    for number in (signal.SIGTERM, signal.SIGKILL):
        world = World()
        old, tokens, saved = hold_and_release(world)
        for daemon in (world.lease_daemon, world.gateway_daemon):
            daemon.end(number)
        world.redis("EVAL", PUT_BACK, 0, *saved)
        world.lease_daemon, world.gateway_daemon = world.daemon("pawl-lease"), world.daemon("pawl-gateway")
        world.lease, world.gateway = world.client(world.lease_daemon), world.client(world.gateway_daemon)
        grant = granted(world, "pay:2")
        check(grant["token"] > max(tokens), f"a token came again: {grant} after {tokens}")
        if number == signal.SIGTERM:  # what was killed has not said what it had seen
            check(grant["epoch"] > old["epoch"], f"{grant} after {old}")
            check_equal(put(world, "pay:1", old, b"stale").status, 412)
            check_equal(world.lease("PUT", path("pay:1"), {"Lease-Id": old["lease_id"]}).code, "lease-lost")
            check(granted(world, "pay:1")["token"] > max(tokens), "a token came again")
        world.close()


@test
def old_content_put_back_while_the_services_run_revives_nothing():
    world = World()
    old, tokens, saved = hold_and_release(world)
    wait_for_pulses(world)
    world.redis("EVAL", PUT_BACK, 0, *saved)
    check(put(world, "pay:1", old, b"stale").status != 204, "a released hold wrote")
    check(granted(world, "pay:1")["token"] > max(tokens), "a token came again")
    check_equal(wait_until(lambda: (answer := put(world, "pay:1", old, b"stale")).status != 503 and answer.status,
                           "the gateway is back"), 412)
    world.close()


@test
def a_counter_that_somebody_has_set_back_hands_out_no_number_again():
    world = World()
    tokens = []
    for _ in range(10):
        grant = world.acquire("pay:1")
        tokens.append(grant["token"])
        world.release("pay:1", grant)
    world.redis("HSET", stripe_key("pay:1"), "counter", 0)
    grant = granted(world, "pay:1")
    check(grant["token"] > max(tokens), f"{grant['token']} after {tokens}")
    world.close()


main(parts=2)
