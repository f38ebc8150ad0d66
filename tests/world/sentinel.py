"""A primary and a replica of it, watched by a sentinel; all are real. The services find the primary by it."""

import json
import os
import signal
import subprocess
import tempfile

from .asking import Later
from .ports import own_port
from .process import die_with_parent
from .redis import DURABLE, Connection, PrivateRedis
from .tap import check, check_equal
from .wait import DEADLINE_S, wait_until
from .world import World

FAILOVER_S = 40  # a machine that does much else


def settings(port, *more):
    return [*DURABLE, "--port", str(port), "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0", "--repl-backlog-ttl", "0",
            *more]


def replica_of(port):
    return ["--replicaof", "127.0.0.1", str(port)]


def fresh(redis, *words, timeout_s=DEADLINE_S):
    """On a connection of its own: a sentinel ends those of a node that it makes a replica. None: nobody answers."""
    try:
        connection = Connection(redis.path, timeout_s)
        said = connection(*words)
        connection.close()
        return said
    except OSError:
        return None


def is_copied(redis):
    return b"master_link_status:up" in (fresh(redis, "INFO", "replication") or b"")


class Sentinel:
    """One process; alone it is a majority."""

    def __init__(self, folder, watched, *lines, port=None, port_word="port", quorum=1):
        self.port, self.conf = port or own_port(), tempfile.mkstemp(dir=folder, suffix=".conf")[1]
        with open(self.conf, "w", encoding="ascii") as file:
            file.write("\n".join([
                f"{port_word} {self.port}", "bind 127.0.0.1", f"dir {folder}", f"logfile {self.conf}.log",
                f"sentinel monitor main 127.0.0.1 {watched} {quorum}", "sentinel down-after-milliseconds main 1500",
                "sentinel failover-timeout main 3000", *lines, ""]))
        self.start()

    def start(self):
        self.process = subprocess.Popen(["redis-server", self.conf, "--sentinel"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=die_with_parent, start_new_session=True)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Watched(World):
    """A primary, a replica of it, and a sentinel; the services find the primary by it."""

    def __init__(self, *flags, more_sentinels="", copies=1, **more):
        self.port, self.replica_port, self.more_sentinels = own_port(), own_port(), more_sentinels
        self.init_flags = ("--copies", str(copies))
        super().__init__(*flags, redis_settings=settings(self.port), **more)
        self.wait_kept(2)
        self.follows(0)

    def wait_kept(self, count):
        """So many may take over, and both services know it."""
        wait_until(lambda: {len(client.ready().get("kept", ())) for client in (self.lease, self.gateway)} == {count} and
                   fresh(self.primary(), "HGET", "pawl:{store}", "growing") == b"", f"{count} may take over", FAILOVER_S)

    def init_store(self):
        os.mkdir(os.path.join(self.folder, "replica"))
        self.replica = PrivateRedis(os.path.join(self.folder, "replica"), settings(self.replica_port, *replica_of(self.port)))
        wait_until(lambda: is_copied(self.replica), "the replica is one")
        super().init_store()  # of the stream that the first replica has begun, and is sent after its first acknowledgement
        wait_until(lambda: self.replica("EXISTS", "pawl:{store}"), "the replica has the store")
        self.known = f"sentinel known-replica main 127.0.0.1 {self.replica_port}"  # else it has to ask the primary first
        self.sentinel = Sentinel(self.folder, self.port, self.known)
        self.flags[1] = self.url = f"sentinel://127.0.0.1:{self.sentinel.port}{self.more_sentinels}/main"

    def daemon(self, name, *flags):
        """In a state directory of its own; of the first lease service it is the one of --init-store."""
        number = sum(one.name == name for one in self.daemons)
        return super().daemon(name, "--state-dir", os.path.join(self.folder, "redis", f"state-{name}-{number}"), *flags)

    def wait_ready(self, *clients):
        wait_until(lambda: all(client.is_ready() for client in clients or (self.lease, self.gateway)), "all are ready", FAILOVER_S)

    def hears(self, count):
        for client in (self.lease, self.gateway):
            wait_until(lambda client=client: client("GET", "/readyz").json.get("sentinels", {}).get("heard") == count and
                       client.metric('pawl_store_sentinels{what="heard"}') == count, f"{count} are heard")

    def close(self):
        self.replica.process.send_signal(signal.SIGCONT)
        super().close()
        self.replica.close()
        self.sentinel.kill()

    def check_of(self, client):
        answer = client("GET", "/readyz")
        return answer.json["check"] if answer.status == 503 else None

    def electing(self):
        for client in (self.lease, self.gateway):
            wait_until(lambda client=client: self.check_of(client) == "store-electing", "it says that there is no primary", FAILOVER_S)
            check_equal(client("GET", "/readyz").code, "store-unavailable")

    def follows(self, failovers):
        """Both serve, a waiter is handed a lease (the subscribers are at the same node), and that was counted."""
        try:
            self.wait_ready()
        except TimeoutError:
            said = [client("GET", "/readyz").body for client in (self.lease, self.gateway)]
            with open(self.sentinel.conf + ".log", encoding="utf-8") as log:
                check(self.lease.is_ready() and self.gateway.is_ready(), f"{said} {log.read()[-1500:]}")
        wait_until(self.hands_on, "a waiter is handed a lease", FAILOVER_S)
        for daemon, client in ((self.lease_daemon, self.lease), (self.gateway_daemon, self.gateway)):
            counted = wait_until(lambda client=client: client.metric("pawl_store_failovers_total") >= failovers and
                                 client.metric("pawl_store_failovers_total") + 1, "it was counted") - 1
            wait_until(lambda daemon=daemon, counted=counted: len(self.seen(daemon)) >= counted, "each has a line")
            check(failovers > 0 or counted == 0, f"{counted} failovers were seen")

    def hands_on(self):
        """None: an epoch began meanwhile, or is to begin."""
        name = self.name()
        grant = self.lease("POST", f"/v1/leases/{name}", body={})
        waiter = self.waits(name) if grant.status == 201 else None
        if waiter:
            wait_until(lambda: self.lease("DELETE", f"/v1/leases/{name}", {"Lease-Id": grant.json["lease_id"]}).status != 503, "it is released")
            check(waiter.get().status in (201, 503), repr(waiter.answer))
        return waiter and waiter.answer.status == 201

    def waits(self, name):
        """None: at a worker to which the store can send nothing yet."""
        waiter = Later(self.lease, "POST", f"/v1/leases/{name}", body={"wait_ms": 20000})
        wait_until(lambda: self.waiting(name) == 1 or waiter.answer, "it waits, or is refused")
        check(waiter.answer is None or waiter.answer.code == "store-unavailable", repr(waiter.answer))
        return None if waiter.answer else waiter

    @staticmethod
    def seen(daemon):
        """Who became primary: the ports, in order. On a busy machine a sentinel may promote somebody for no reason."""
        return [json.loads(line)["port"] for line in daemon.log().splitlines() if "store-failover-seen" in line]

    def primary(self):
        ports = [self.port, *self.seen(self.lease_daemon)]
        return (self.redis, self.replica)[ports[-1] == self.replica_port]

    def is_replica(self, node):
        wait_until(lambda: is_copied(node) or self.primary() is node, "it is a replica", FAILOVER_S)
        self.wait_kept(2)
