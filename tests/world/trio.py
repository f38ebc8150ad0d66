"""A primary, its replicas, and services that answer when all of the in-sync set have a copy."""

import concurrent.futures
import os
import socket
import threading

from .listening import Listening
from .ports import own_port
from .redis import DURABLE, PrivateRedis
from .relay import pump, shut
from .tap import check, check_equal, check_in
from .wait import wait_until
from .world import World, run_daemon

CLIENTS = 8


class Line(Listening):
    """The one address of whoever is the primary; or what a replica copies it by, which can stand still."""

    def __init__(self, port):
        self.to, self.pairs, self.flows = port, [], threading.Event()
        self.flows.set()
        self.listen()

    def meet(self, far):
        """What stands still when the line is cut is lost."""
        self.flows.wait()
        return any(far in pair for pair in self.pairs)

    def _serve(self, near):
        try:
            far = socket.create_connection(("127.0.0.1", self.to))
        except OSError:
            near.close()
            return
        self.pairs.append((near, far))
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=pump, args=(source, sink, lambda _: self.meet(far)), daemon=True).start()

    def lead_to(self, port):
        self.to = port
        pairs, self.pairs = self.pairs, []
        self.flows.set()
        shut(*sum(pairs, ()))


class Node(PrivateRedis):
    def __init__(self, folder, settings=None, environment=None):
        os.mkdir(folder)
        self.port = own_port()
        self.settings = [*DURABLE, "--port", str(self.port), "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0", *(settings or [])]
        super().__init__(folder, environment=environment)

    def start(self, settings=None):
        super().start([*self.settings, *(settings or [])])

    def copy(self, port):
        self("REPLICAOF", "127.0.0.1", port)


class Trio(World):
    """A primary, two replicas, a lease service, a gateway. It begins when all that may take over are in the set."""

    def __init__(self, copies=2, replicas=2, settings=((), ()), keep_wait="500ms", store_timeout="4s", begins_whole=True, **more):
        self.copies, self.replicas, self.own = copies, replicas, settings
        super().__init__("--store-timeout", store_timeout, "--keep-wait", keep_wait, redis_settings=[], **more)
        if begins_whole:
            self.wait_kept(0, *(number for number in range(1, 1 + replicas) if "--replica-priority" not in settings[number - 1]))

    def init_store(self):
        self.redis.close()
        self.nodes = [Node(f"{self.folder}/node-{number}", ([], *self.own)[number]) for number in range(1 + self.replicas)]
        self.redis = self.nodes[0]
        self.copied_by = [Line(self.redis.port) for _ in self.nodes[1:]]
        for node, line in zip(self.nodes[1:], self.copied_by):
            node.copy(line.port)
        wait_until(lambda: self.redis("INFO", "replication").count(b"state=online") == self.replicas, "all are online")
        self.line = Line(self.redis.port)
        self.flags[1] = f"redis://127.0.0.1:{self.line.port}"
        self.init_flags = ("--copies", str(self.copies), "--state-dir", f"{self.folder}/pawl-lease-1")
        super().init_store()

    def daemon(self, name, *flags):
        number = 1 + sum(daemon.name == name for daemon in self.daemons)
        return super().daemon(name, "--state-dir", f"{self.folder}/{name}-{number}", *flags)

    def called(self, *numbers):
        return [f"127.0.0.1:{self.nodes[number].port if number else self.line.port}" for number in numbers]

    def wait_kept(self, *numbers, deadline_s=15):
        """Until these are the set, as both services and the record have it, and nothing is under way."""
        def is_kept():
            lease, gateway = (client("GET", "/readyz").json for client in (self.lease, self.gateway))
            record = self.record()
            return (lease["status"] == gateway["status"] == "ready" and sorted(lease.get("kept", [])) == sorted(gateway.get("kept", [])) == sorted(self.called(*numbers))
                    and sorted(node.split("/")[0] for node in record[0].split()[3:]) == sorted(self.called(*numbers))
                    and record[1] == " ".join(record[0].split()[3:]) and record[2] == "")
        wait_until(is_kept, f"the set is {numbers}", deadline_s)

    def record(self):
        return [(value or b"").decode() for value in self.redis("HMGET", "pawl:{store}", "insync", "needed", "growing")]

    def kill_primary_ahead(self):
        """It has done more than the replicas have, and what is on the way to them is lost with it."""
        for line in self.copied_by:
            line.flows.clear()
        has = self.nodes[1]("INFO", "replication").split(b"slave_repl_offset:")[1].split()[0]
        wait_until(lambda: int(self.redis("INFO", "replication").split(b"master_repl_offset:")[1].split()[0]) > int(has) + 1000,
                   "it is ahead of the replicas")
        self.redis.kill()
        for line in self.copied_by:
            line.lead_to(line.to)

    def promote(self, number, *others):
        """As an operator does."""
        self.redis = self.nodes[number]
        self.redis("REPLICAOF", "NO", "ONE")
        for other in others:
            self.nodes[other].copy(self.redis.port)
        self.line.lead_to(self.redis.port)

    def close(self):
        super().close()
        for node in self.nodes:
            node.close()

    def pawl(self, *words):
        return run_daemon("pawl", *words, *self.flags[:2])


class Load:
    """Clients that acquire a lease and write a resource, each time others; what was acknowledged."""

    def __init__(self, world):
        self.world, self.granted, self.written, self.others, self.is_over = world, {}, {}, [], threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(number,), daemon=True) for number in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, client):
        count = 0
        while not self.is_over.wait(0.005):
            name, count = f"load:{client}-{count}", count + 1
            got = self.world.lease("POST", f"/v1/leases/{name}", body={"ttl_ms": 600000})
            if got.status != 201:
                self.others.append(got.status)
                continue
            self.granted[name] = got.json["token"]
            put = self.world.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": got.json["fencing_token"]}, name.encode())
            if put.status in (201, 204):
                self.written[name] = put.header("ETag")
            else:
                self.others.append(put.status)

    def end(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def is_kept(self):
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            held = pool.map(lambda name: [one["token"] for one in self.world.look(name)["holders"]], self.granted)
            stored = pool.map(lambda name: self.world.gateway("GET", f"/v1/resources/{name}").header("ETag"), self.written)
            check_equal(list(held), [[token] for token in self.granted.values()], "what is held")
            check_equal(list(stored), list(self.written.values()), "what is stored")


def is_behind(world, number):
    """Whether all calls are refused, for the Redis that is the primary by now may lack something."""
    for client, call in ((world.lease, ("POST", "/v1/leases/behind")), (world.gateway, ("GET", "/v1/resources/none"))):
        wait_until(lambda client=client: client("GET", "/readyz").code == "store-behind", "it says that it is behind")
        check_in("in-sync set", detail := client("GET", "/readyz").json["detail"])
        check("In the set are" not in detail or "stop this one" in detail, detail)
        answer = client(*call, body={} if call[0] == "POST" else None)
        check_equal((answer.status, answer.code), (503, "store-behind"), number)
