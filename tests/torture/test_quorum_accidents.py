#!/usr/bin/python3
"""test_quorum_accidents.py - what happens to a quorum under load: tokens rise, and nobody holds with another.

$PAWL_ROUNDS: how many wipes and restarts, of three nodes and of five, as many at a time as may be lost; for each two another accident."""

import collections
import os
import random
import threading
import time

import pycurl

from world import check, check_equal, main, of_time, test, test_in, wait_until
from world.quorum import IN_MEMORY, MAX_TTL_MS, Quorum

CLIENTS, HOUR_S = 8, 3600
DRIFT = 0.004  # one clock goes by so much too fast, the next one too slow: under 1 % together
ROUND = ("wiped", "killed", "stopped", "wiped", "killed", "parted", "wiped", "killed", "jumped", "wiped", "killed", "service killed")


class Load:
    """Clients of two lease services, who want one lease; what was wrong with what they were told."""

    def __init__(self, world):
        self.world, self.tokens, self.wrong, self.lock, self.stop = world, [0], [], threading.Lock(), threading.Event()
        self.jumped, self.seen = False, []  # two holders at once, when a clock has jumped: that is not promised
        self.until = {}  # of each client: when its hold is over by its own clock, counted from when it asked
        self.clients = list(world.both())
        self.workers = [threading.Thread(target=self._work, args=(who,), daemon=True) for who in range(CLIENTS)]
        for worker in self.workers:
            worker.start()

    def _work(self, who):
        while not self.stop.wait(0.01):
            try:
                self._hold_once(who, self.clients[who % 2])
            except pycurl.error:  # its service was killed
                pass

    def _hold_once(self, who, client):
        highest, began = max(self.tokens), time.monotonic()
        answer = client("POST", "/v1/leases/job", body={"ttl_ms": MAX_TTL_MS})
        if answer.status != 201:
            self.wrong.extend([] if answer.status in (409, 503, 504) else [str(answer)])
            return
        token, over = answer.json["token"], began + answer.json["expires_in_ms"] / 1000
        with self.lock:
            if token <= highest or token in self.tokens:
                self.wrong.append(f"token {token}, when {highest} had been granted")
            (self.seen if self.jumped else self.wrong).extend(
                f"{who} holds with {other}, token {token}" for other, others in self.until.items() if time.monotonic() < min(over, others))
            self.tokens.append(token)
            self.until[who] = over
        self.stop.wait(random.random() / 50)
        is_left = random.random() < 0.1  # it ends by itself
        with self.lock:
            self.until[who] = self.until[who] if is_left else 0
        if not is_left:
            client("DELETE", "/v1/leases/job", {"Lease-Id": answer.json["lease_id"]})

    def wait_grants(self, more=3):
        count = len(self.tokens)
        wait_until(lambda: len(self.tokens) >= count + more, "it goes on")

    def end(self):
        self.stop.set()
        for worker in self.workers:
            worker.join()


class Accidents:
    """Each to some nodes of world, as many as may be lost; it ends when all are well again."""

    def __init__(self, world, load):
        self.world, self.load, self.shifts = world, load, [0.0] * len(world.nodes)
        self.drifter = threading.Thread(target=self._drift, daemon=True)
        self.drifter.start()

    def _drift(self):
        begin = time.monotonic()
        while not self.load.stop.wait(0.01):
            for number, clock in enumerate(self.world.clocks):
                clock.set(self.shifts[number] + (DRIFT, -DRIFT)[number % 2] * (time.monotonic() - begin))

    def play(self, what, number):
        count = len(self.world.nodes)
        some = [(number + one) % count for one in range(count // 2)]
        getattr(self, what.replace(" ", "_"))([self.world.nodes[one] for one in some], some)
        self.world.wait_well()

    def wiped(self, nodes, _):
        for node in nodes:
            node("FLUSHALL")
        self._healed(nodes)

    def killed(self, nodes, _):
        for node in nodes:
            node.kill()
        self.load.wait_grants()
        for node in nodes:
            node.start(IN_MEMORY)
        self._healed(nodes)

    def _healed(self, nodes):
        self.load.wait_grants()
        for node in nodes:
            wait_until(lambda node=node: (node("HGET", "pawl:{node}", "run") or b"not healed") in node("INFO", "server"), "it is healed")

    def stopped(self, nodes, _):
        for node in nodes:
            node.stop()
        self.load.wait_grants()
        for node in nodes:
            node.go_on()

    def parted(self, _, some):
        """Each service from nodes of its own."""
        lines = [line for service, lines in enumerate(self.world.lines) for line in lines[service:service + len(some)]]
        for line in lines:
            line.part()
        self.load.wait_grants()
        for line in lines:
            line.join()

    def jumped(self, _, some):
        """What is held may be over at one of the few nodes that know of it."""
        self.load.jumped = True
        for one in some:
            self.shifts[one] += random.choice((HOUR_S, -HOUR_S))
        begin = time.monotonic()
        wait_until(lambda: time.monotonic() > begin + 2 * MAX_TTL_MS / 1000, "what was held then is over")
        self.load.jumped = False
        self.load.wait_grants()

    def service_killed(self, _, some):
        side = some[0] % 2
        (self.world.lease_daemon, self.world.gateway_daemon)[side].kill()
        self.load.wait_grants()
        self.world.restart(side)
        self.load.clients = list(self.world.both())


def play(count, rounds):
    world = Quorum("--store-timeout", "500ms", "--threads", "2", count=count, troubled=True)
    load = Load(world)
    accidents, played = Accidents(world, load), collections.Counter()
    for number in range(rounds * 3 // 2):
        played[ROUND[number % len(ROUND)]] += 1
        accidents.play(ROUND[number % len(ROUND)], number)
    load.end()
    accidents.drifter.join()
    check_equal(load.wrong, [])
    print(f"# {count} nodes: {dict(played)}, {len(load.tokens) - 1} grants, the last token is {max(load.tokens)}, "
          f"{len(load.seen)} times two held it after a jump")
    world.close()


@test
def tokens_rise_and_nobody_holds_with_another_whatever_happens_to_as_many_nodes_as_may_be_lost():
    for count in (3, 5):
        play(count, int(os.environ.get("PAWL_ROUNDS", "16")) // 2)


@test_in(lambda: Quorum(troubled=True))
@of_time
def when_more_clocks_jump_two_hold_it_and_the_later_one_has_the_greater_token(world):
    began = time.monotonic()
    first = world.acquire("job")
    check_equal(world.lease("POST", "/v1/leases/job", body={}).status, 409)
    for clock in world.clocks[:2]:
        clock.set(HOUR_S)
    second = world.acquire("job")
    check(time.monotonic() < began + first["expires_in_ms"] / 1000, "the first one holds by its own clock, too")
    check(second["token"] > first["token"], f"{second} {first}")


if __name__ == "__main__":
    main()
