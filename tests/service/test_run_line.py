#!/usr/bin/python3
"""test_run_line.py - pawl run and pawl acquire in line: the order holds, whatever happens to connections, to the service
and to Redis meanwhile."""

import functools
import itertools
import json
import os
import random
import signal
import threading

from world import Client, World, check, check_equal, check_in, main, test, test_in, wait_until
from world.cli import Cli
from world.running import Network, Run

COUNT, SEED = 6, random.randrange(1000)
world = World()
pawl = Cli(world)


def acquired(own, name, process):
    """The end of pawl acquire, whose lease is released."""
    said, error = process.communicate(timeout=50)
    check_equal(process.returncode, 0, error)
    own.release(name, json.loads(said))


def line_of(own, name, count):
    """The networks of so many that stand in line, in their order, and what waits for the end of each."""
    networks, ends = [], []
    for number in range(count):
        network, holder = Network(own.lease_daemon), ["--holder", f"w{number}"]
        if number % 2:
            process = Cli(own).start("acquire", name, "-w", "1m", "-o", "json", *holder, PAWL_LEASE_URL=network.url)
            ends.append(functools.partial(acquired, own, name, process))
        else:
            run = Run(Cli(own), name, *holder, "echo", "ran", PAWL_LEASE_URL=network.url)
            ends.append(lambda run=run: check_equal(run.end(0, 50), "ran\n"))
        networks.append(network)
        wait_until(lambda number=number: own.look(name).get("waiting") == number + 1, f"w{number} is in line")
    return networks, ends


def order(own, name):
    """Who was granted the lease, in turn; one that came back for its grant counts once."""
    items = own.lease("GET", f"/v1/leases/{name}/history").json["items"]
    return [holder for holder, _ in itertools.groupby(item["holder"] for item in items if item["type"] == "granted")]


def restarted(own, networks, how):
    own.lease_daemon.end(how)
    own.lease_daemon = own.daemon("pawl-lease")
    own.lease = Client("lease", own.lease_daemon.url, World.contract)
    for network in networks:
        network.to = (own.lease_daemon.host, own.lease_daemon.port)
        network.fail("pass")


@test
def the_order_in_line_holds_though_connections_are_cut_at_random():
    name, chance, over = world.name(), random.Random(SEED), threading.Event()
    grant = world.acquire(name, holder="first")
    networks, ends = line_of(world, name, COUNT)

    def cut():
        while not over.wait(chance.uniform(0.01, 0.1)):
            chance.choice(networks).fail("pass")
    cutting = threading.Thread(target=cut, daemon=True)
    cutting.start()
    wait_until(lambda: sum(len(network.requests) for network in networks) > 4 * COUNT, "all have come again")
    world.release(name, grant)
    for end in ends:
        end()
    over.set()
    cutting.join()
    check_equal(order(world, name), ["first", *(f"w{number}" for number in range(COUNT))], f"seed {SEED}")


@test_in(World)
def the_order_in_line_holds_over_restarts_of_the_service_and_of_redis_and_who_comes_meanwhile_is_served(own):
    name = own.name()
    grant = own.acquire(name, holder="first", ttl_ms=60000)
    networks, ends = line_of(own, name, 3)
    restarted(own, networks, signal.SIGKILL)
    restarted(own, networks, signal.SIGTERM)
    own.redis.kill()
    late = Run(Cli(own), own.name(), "echo", "served", PAWL_LEASE_URL=networks[0].url)
    own.redis.start()
    check_equal(late.end(0), "served\n")
    wait_until(lambda: own.lease("GET", "/readyz").status == 200, "the store is admitted")
    own.lease("DELETE", f"/v1/leases/{name}", {"Lease-Id": grant["lease_id"]})  # its hold may have ended with Redis
    for end in ends:
        end()
    check_equal(order(own, name)[-3:], ["w0", "w1", "w2"])


@test
def who_gives_up_leaves_no_place_behind(name):
    world.acquire(name)
    for words, status in ((["acquire", name, "-w", "100ms"], 75), (["run", name, "-w", "100ms", "true"], 75)):
        pawl(*words, status=status)
        check_equal(world.look(name)["waiting"], 0, str(words))
    for number in (signal.SIGINT, signal.SIGTERM):
        for words, status in ((["acquire", name, "-w", "1m"], -number), (["run", name, "true"], 128 + number)):
            process = pawl.start(*words)
            wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
            process.send_signal(number)
            check_equal((process.communicate(timeout=20), process.returncode)[1], status, str(words))
            check_equal(world.look(name)["waiting"], 0, str(words))
            network = Network(world.lease_daemon)
            network.fail(503)
            process = pawl.start(*words, PAWL_LEASE_URL=network.url)
            wait_until(lambda network=network: len(network.requests) > 3, "it tries again and again")
            process.send_signal(number)
            check_equal((process.communicate(timeout=20), process.returncode)[1], status, str(words))


@test
def who_gives_up_does_not_wait_long_for_a_service_that_is_silent():
    network = Network(world.lease_daemon)
    network.fail("hang")
    process = pawl.start("acquire", world.name(), "-w", "1m", PAWL_LEASE_URL=network.url)
    wait_until(lambda: network.requests, "it has asked")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)  # to leave the line and to give back what may be held take a second each
    check_equal((process.returncode, [request[:6] for request in network.requests[1:]]), (-signal.SIGTERM, [b"POST /", b"DELETE"]))


@test
def a_place_that_was_asked_for_stays_when_the_command_gives_up():
    name, file = world.name(), f"{world.folder}/place"
    world.acquire(name)
    told = pawl("acquire", name, "-w", "100ms", "--keep-place", "20s", "--lease-id-file", file, status=75)
    check_in("is kept", told.stderr)
    check(os.path.exists(file), "the lease_id to come back with")
    check_equal(world.look(name)["waiting"], 1)


main(world.close, parts=2)
