"""The processes of a drill of failovers: three Redis with one store, three sentinels that watch them, three lease services, which
are its registrars, and a gateway.

  FOLDER/node-0/ ...  what a Redis has; the rest as in stage.py"""

import json
import os
import random
import signal

from stage import ADMIT_MS, READY_MS, Service, Stage, run, wait_for
from world.ports import own_port
from world.redis import RedisError
from world.sentinel import Sentinel, fresh, replica_of
from world.shim import Shim
from world.trio import Node

ASK_S = 2
BACK_MS = 60000  # until the sentinels have made a node that is back a replica, and it is in the set
JOIN_MS = 5000   # of these, from its link being in step on (docs/contract.md)
# What a sentinel may do that is to learn nothing: neither of other nodes nor of other sentinels.
SETTINGS = ["--repl-backlog-ttl", "0", "--user", "deaf", "on", "nopass", "-@all", "+ping", "+client"]


def ask(node, *words):
    """None: it does not answer, or not yet."""
    try:
        return fresh(node, *words, timeout_s=ASK_S)
    except RedisError:
        return None


def role(node):
    return (ask(node, "ROLE") or [b""])[0]


def copies(node, primary):
    """That a node copies this one."""
    ask(node, "REPLICAOF", "127.0.0.1", primary.port)


def is_copied(node):
    return b"master_link_status:up" in (ask(node, "INFO", "replication") or b"")


class Three(Stage):
    """redis is the node that was primary when settled() said so last. shim: each node has a clock of its own, in clocks."""

    init_flags = ("--registrars", "3", "--copies", "2")

    def __init__(self, folder, shim=None):
        super().__init__(folder, services=3)
        self.clocks = [Shim(shim, os.path.join(folder, f"clock-{number}")) for number in range(3)] if shim else []
        self.nodes, self.sentinels, self.ports, self.survived = [], [], [own_port() for _ in range(3)], 0
        for service in self.services:
            service.url = f"sentinel://{','.join(f'127.0.0.1:{port}' for port in self.ports)}/main"
        self.left, self.its_sentinel = Service(self, "pawl-gateway", "left", self.flags), None
        self.services.append(self.left)

    def open_store(self):
        for number in range(3):
            environment = self.clocks[number].environment if self.clocks else None
            self.nodes.append(Node(os.path.join(self.folder, f"node-{number}"), SETTINGS, environment))
        self.redis = self.nodes[0]
        for node in self.nodes[1:]:
            copies(node, self.redis)
        wait_for(lambda: all(map(is_copied, self.nodes[1:])), READY_MS, lambda: "the replicas did not copy the primary")
        self.init_store(self.leases[0].state)
        self.watch(self.redis)

    def close(self):
        super().close()
        self.end_watch()
        for node in self.nodes:
            self.kill(node)
        if self.its_sentinel is not None:
            self.its_sentinel.kill()

    # -- nodes

    def kill(self, node):
        if node.process.poll() is None:
            os.killpg(node.process.pid, signal.SIGKILL)
        node.kill()

    def start(self, node, primary=None, *more):
        """To copy the primary; without one as a primary."""
        settings = [*(replica_of(primary.port) if primary else []), *more]
        try:
            node.start(settings)
        except RuntimeError:
            run("redis-check-aof", "--fix", os.path.join(self.data_of(node), "appendonly.aof.manifest"), text="y\n")
            self.torn += 1
            node.start(settings)

    @staticmethod
    def data_of(node):
        return os.path.join(node.folder, "appendonlydir")

    def others(self, node):
        """In any order."""
        return random.sample([one for one in self.nodes if one is not node], 2)

    def primary(self):
        """Of the nodes that say so the one with the newest epoch."""
        masters = [node for node in self.nodes if role(node) == b"master"]
        return max(masters, key=lambda node: int(ask(node, "HGET", "pawl:{store}", "epoch") or 0), default=None)

    # -- who may take over

    def wait_kept(self, *nodes, limit_ms=BACK_MS):
        """Until these are the set, for all services, and nobody is about to join."""
        wanted = sorted(f"127.0.0.1:{node.port}" for node in nodes)

        def said():
            return [(service.name, *service.readyz()) for service in [*self.leases, self.gateway] if service.runs()]

        def is_kept():
            primary = self.primary()
            return (primary and all(status == 200 and sorted(json.loads(body).get("kept", [])) == wanted for _, status, body in said())
                    and ask(primary, "HGET", "pawl:{store}", "growing") == b"")
        wait_for(is_kept, limit_ms, lambda: f"the set did not become {wanted} within {limit_ms} ms: {said()}", again_ms=50)

    def settled(self):
        """The primary, when all three are in the set."""
        self.wait_kept(*self.nodes)
        self.redis = self.primary()
        return self.redis

    # -- sentinels

    def watch(self, primary):
        """By three that know each other and nothing of before: the priorities that they know are those of now."""
        self.end_watch()
        replicas = [f"sentinel known-replica main 127.0.0.1 {node.port}" for node in self.nodes if node is not primary]
        for port in self.ports:
            others = [f"sentinel known-sentinel main 127.0.0.1 {other} {other:040x}" for other in self.ports if other != port]
            self.sentinels.append(Sentinel(self.folder, primary.port, f"sentinel myid {port:040x}", *replicas, *others, port=port,
                                           quorum=2))

    def end_watch(self):
        for sentinel in self.sentinels:
            sentinel.kill()
        self.sentinels = []

    def prefer(self, node, primary):
        """From now on sentinels promote it, until it is started again."""
        ask(node, "CONFIG", "SET", "replica-priority", 1)
        self.watch(primary)

    # -- a gateway that is left at a node

    def leave(self, node):
        """It hears of nothing but this node: by a sentinel that hears of nothing else, either. Clients ask it, too."""
        self.its_sentinel = Sentinel(self.folder, node.port, "sentinel auth-user main deaf", "sentinel auth-pass main any", quorum=9)
        self.left.url = f"sentinel://127.0.0.1:{self.its_sentinel.port}/main"
        self.left.start()
        self.left.wait_ready(ADMIT_MS)
        self.gateways = [self.gateway, self.left]

    def leave_no_more(self):
        self.gateways = [self.gateway]
        self.left.kill()
        self.its_sentinel.kill()
