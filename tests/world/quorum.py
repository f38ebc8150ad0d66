"""Two lease services on Redis that know nothing of each other, each by lines of its own that can be parted."""

import json
import os
import tempfile

from .redis import PrivateRedis
from .relay import Relay
from .shim import Shim
from .tap import check_equal, check_in
from .wait import wait_until
from .world import BUILD, World, run_daemon

IN_MEMORY = ["--save", "", "--appendonly", "no"]
MAX_TTL_MS = 400


class Quorum(World):
    """self.redis is none: self.nodes are. Both services are lease services. troubled: the clock of each node can be shifted
    (self.clocks), and the line from each service to each node be parted (self.lines[service][node])."""

    def __init__(self, *flags, count=3, troubled=False, max_ttl_ms=MAX_TTL_MS):
        self.max_ttl_ms = max_ttl_ms
        self.nodes, self.clocks, self.lines = [], [], []
        for _ in range(count):
            folder = tempfile.mkdtemp(prefix="pawl-node-")
            self.clocks += [Shim(BUILD / "torture" / "shim.so", os.path.join(folder, "shim"))] if troubled else []
            self.nodes.append(PrivateRedis(folder, IN_MEMORY, self.clocks[-1].environment if troubled else None))
        if troubled:
            self.lines = [[Relay(node, f".line-{service}") for node in self.nodes] for service in range(2)]
        super().__init__(*flags, redis_settings=IN_MEMORY)

    def init_store(self):
        self.flags[:2] = [word for node in self.nodes for word in ("--redis", node.url)]
        done = self.make("--max-ttl", f"{self.max_ttl_ms}ms")
        check_equal(done.returncode, 0, str(done))
        check_in(f"created on {len(self.nodes)} nodes", done.stdout)
        self.keys.store = self.nodes[0]("HGET", "pawl:{node}", "id").decode().split("/")[0]

    def make(self, *words):
        return run_daemon("pawl-lease", *self.flags[:2 * len(self.nodes)], "--init-store", *words)

    def daemon(self, name, *flags, side=None):
        if self.lines:
            lines = self.lines[len(self.daemons) if side is None else side]
            self.flags[:2 * len(lines)] = [word for line in lines for word in ("--redis", line.url)]
        return super().daemon("pawl-lease", *flags)

    def restart(self, side):
        """The first service, or the second, was killed: another one, on the lines of that one."""
        daemon = self.daemon("pawl-lease", side=side)
        if side == 0:
            self.lease_daemon, self.lease = daemon, self.client(daemon)
        else:
            self.gateway_daemon = daemon

    def both(self):
        return self.lease, self.client(self.gateway_daemon)

    def ready(self):
        return self.lease("GET", "/readyz").json

    def pawl(self, *words, status=0, of=("store",)):
        done = run_daemon("pawl", *of, *words, *self.flags[:2 * len(self.nodes)], "--store-timeout", "500ms", deadline_s=60)
        check_equal(done.returncode, status, str(done))
        return done

    def seen(self, status=0):
        return json.loads(self.pawl("status", "-o", "json", status=status).stdout)

    def wait_states(self, *states):
        """Of its nodes, as the services see them: a node that was emptied has its number from them."""
        for one in self.both():
            wait_until(lambda one=one: one("GET", "/readyz").json.get("nodes") == list(states), "the services see it")

    def wait_well(self):
        self.wait_states(*["well"] * len(self.nodes))

    def close(self):
        super().close()
        for line in sum(self.lines, []):
            line.close()
        for node in self.nodes:
            node.close()
