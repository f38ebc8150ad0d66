#!/usr/bin/python3
"""The primary that sentinels watch: found, followed when another node is promoted, and no sentinel is trusted alone. The
nodes and the sentinels are real."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from world import BUILD, DEADLINE_S, DURABLE, PrivateRedis, World, check, check_equal, check_in, main, test, wait_until  # noqa: E402
from world.certificate import certificate  # noqa: E402
from world.ports import own_port  # noqa: E402
from world.process import die_with_parent  # noqa: E402
from world.redis import Connection  # noqa: E402
from world.asking import Later  # noqa: E402

os.environ["SENTINEL_UNKEPT"] = "1"  # until there is --copies
FAILOVER_S = 40  # a machine that does much else


def settings(port, *more):
    return [*DURABLE, "--port", str(port), "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0", "--repl-backlog-ttl", "0",
            *more]


def replica_of(port):
    return ["--replicaof", "127.0.0.1", str(port)]


def is_copied(redis):
    """On a connection of its own: a sentinel ends those of a node that it makes a replica."""
    try:
        connection = Connection(redis.path)
        said = connection("INFO", "replication")
        connection.close()
        return b"master_link_status:up" in said
    except OSError:
        return False


class Sentinel:
    """One process; alone it is a majority."""

    def __init__(self, folder, watched, *lines, port=None, port_word="port"):
        self.port, self.conf = port or own_port(), tempfile.mkstemp(dir=folder, suffix=".conf")[1]
        with open(self.conf, "w", encoding="ascii") as file:
            file.write("\n".join([
                f"{port_word} {self.port}", "bind 127.0.0.1", f"dir {folder}", f"logfile {self.conf}.log",
                f"sentinel monitor main 127.0.0.1 {watched} 1", "sentinel down-after-milliseconds main 1500",
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

    def __init__(self, *flags, more_sentinels="", **more):
        self.port, self.replica_port, self.more_sentinels = own_port(), own_port(), more_sentinels
        super().__init__(*flags, redis_settings=settings(self.port), **more)

    def init_store(self):
        os.mkdir(os.path.join(self.folder, "replica"))
        self.replica = PrivateRedis(os.path.join(self.folder, "replica"), settings(self.replica_port, *replica_of(self.port)))
        wait_until(lambda: is_copied(self.replica), "the replica is one")
        super().init_store()  # of the stream that the first replica has begun
        self.sentinel = Sentinel(self.folder, self.port)
        self.flags[1] = self.url = f"sentinel://127.0.0.1:{self.sentinel.port}{self.more_sentinels}/main"

    def daemon(self, name, *flags):
        """In a state directory of its own; of the first lease service it is the one of --init-store."""
        number = sum(one.name == name for one in self.daemons)
        return super().daemon(name, "--state-dir", os.path.join(self.folder, "redis", f"state-{name}-{number}"), *flags)

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
        wait_until(lambda: self.lease.is_ready() and self.gateway.is_ready(), "both are ready", FAILOVER_S)
        name = self.name()
        grant = wait_until(lambda: (lambda answer: answer.json if answer.status == 201 else None)(
            self.lease("POST", f"/v1/leases/{name}", body={})), "a lease is granted", FAILOVER_S)
        waiter = Later(self.lease, "POST", f"/v1/leases/{name}", body={"wait_ms": 20000})
        wait_until(lambda: self.waiting(name) == 1, "one waits")
        self.release(name, grant)
        check_equal(waiter.get().status, 201)
        for daemon, client in ((self.lease_daemon, self.lease), (self.gateway_daemon, self.gateway)):
            counted = wait_until(lambda client=client: client.metric("pawl_store_failovers_total") >= failovers and
                                 client.metric("pawl_store_failovers_total") + 1, "it was counted") - 1
            wait_until(lambda daemon=daemon, counted=counted: len(self.seen(daemon)) >= counted, "each has a line")
            check(failovers > 0 or counted == 0, f"{counted} failovers were seen")

    @staticmethod
    def seen(daemon):
        """Who became primary: the ports, in order. On a busy machine a sentinel may promote somebody for no reason."""
        return [json.loads(line)["port"] for line in daemon.log().splitlines() if "store-failover-seen" in line]

    def primary(self):
        ports = [self.port, *self.seen(self.lease_daemon)]
        return (self.redis, self.replica)[ports[-1] == self.replica_port]

    def is_replica(self, node):
        wait_until(lambda: is_copied(node) or self.primary() is node, "it is a replica", FAILOVER_S)


def pawl_status(url, *flags):
    return subprocess.run([str(BUILD / "pawl"), "store", "status", "--redis", url, "--store-timeout", "1s", *flags], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False, preexec_fn=die_with_parent)


@test
def the_services_follow_the_primary_there_and_back():
    world = Watched("--threads", "2")
    world.follows(0)
    check_equal(world.lease("GET", "/readyz").json["sentinels"], {"heard": 1, "of": 1})
    world.redis.kill()
    world.electing()
    world.follows(1)
    check_equal(world.seen(world.lease_daemon)[0], world.replica_port)
    world.redis.start(settings(world.port))  # as a primary, until the sentinel has seen it
    world.is_replica(world.redis)
    world.follows(1)
    stopped = world.primary()
    stopped.stop()  # its connections stand
    world.electing()
    world.follows(2)
    stopped.go_on()
    world.is_replica(stopped)
    world.follows(2)
    world.close()


@test
def a_primary_that_breaks_its_connections_is_found_again_and_no_failover_is_counted():
    world = Watched()
    world.follows(0)
    world.redis("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    for client in (world.lease, world.gateway):
        wait_until(lambda client=client: client.metric("pawl_store_reconnects_total") >= 1, "it has connected anew")
    world.follows(0)
    world.close()


@test
def a_primary_that_goes_on_answering_is_left_when_more_sentinels_name_another():
    later = own_port()
    world = Watched(more_sentinels=f",127.0.0.1:{later}")
    world.follows(0)
    epoch = world.replica("HGET", "pawl:{store}", "epoch")
    world.replica("REPLICAOF", "NO", "ONE")
    world.sentinel.kill()
    world.sentinel = Sentinel(world.folder, world.replica_port, port=later)
    wait_until(lambda: world.replica("HGET", "pawl:{store}", "epoch") > epoch, "it is admitted there", FAILOVER_S)
    world.follows(1)
    check_equal((world.redis("HGET", "pawl:{store}", "epoch"), world.redis("PUBSUB", "NUMPAT")), (epoch, 0), "at the former one")
    world.close()


@test
def a_gateway_that_is_left_at_a_former_primary_answers_nothing_of_it_after_3_s():
    world = Watched()
    world.follows(0)
    token = {"Fencing-Token": world.acquire("left", ttl_ms=600000)["fencing_token"]}
    check(write(world, token).status < 300, "it writes")
    world.sentinel.kill()
    world.replica("REPLICAOF", "NO", "ONE")
    world.lease_daemon.kill()
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
    world.close()


def write(world, token):
    return world.gateway("PUT", "/v1/resources/left", token, b"x")


@test
def a_call_that_was_under_way_when_the_lease_on_the_epoch_ended_is_unknown():
    world = Watched("--store-timeout", "20s")
    world.follows(0)
    token = {"Fencing-Token": world.acquire("left", ttl_ms=600000)["fencing_token"]}
    world.sentinel.kill()
    with socket.create_connection((world.lease_daemon.host, world.lease_daemon.port), DEADLINE_S) as stream:
        stream.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        check_in(b" 200 ", stream.recv(65536))
        told(world, token)
        check(b"unheard" not in b"".join(iter(lambda: stream.recv(65536), b"")), "the stream ends without what came too late")
    world.close()


def told(world, token):
    """What is answered of what was sent to a primary that stands still until the lease is over."""
    world.redis.stop()
    waits, acquires = Later(write, world, token), Later(world.lease, "POST", "/v1/leases/late", body={})
    world.redis.connection.socket.sendall(b'PUBLISH pawl:e:unheard "00 1.1.1\\trefused\\t1\\t\\t5\\t"\r\n')
    wait_until(lambda: world.check_of(world.gateway) == "store-not-admitted", "the lease is over")
    world.redis.go_on()
    for answer in (waits.get(), acquires.get()):
        check_equal((answer.status, answer.code), (504, "outcome-unknown"))
    wait_until(lambda: write(world, token).status < 300, "and goes on")


@test
def nothing_is_refused_while_the_sentinels_are_gone_and_the_primary_answers():
    world = Watched()
    world.follows(0)
    world.sentinel.kill()
    for client in (world.lease, world.gateway):
        wait_until(lambda client=client: client("GET", "/readyz").json.get("sentinels") == {"heard": 0, "of": 1}, "none is heard")
    world.follows(0)
    late = world.daemon("pawl-lease")  # it starts, and says why it does not serve
    client = world.client(late)
    check_equal(world.check_of(client), "store-electing")
    check_in("No primary of main is known: 0 of 1 sentinels are heard", client("GET", "/readyz").json["detail"])
    world.sentinel.start()
    wait_until(client.is_ready, "it has found it", FAILOVER_S)
    world.close()


@test
def a_sentinel_that_names_a_replica_or_knows_no_such_name_leads_nowhere():
    world = Watched()
    misled = Sentinel(world.folder, world.replica_port)
    at_misled, at_good = f"127.0.0.1:{misled.port}", f"127.0.0.1:{world.sentinel.port}"
    for places, status, says in ((f"{at_good}/main", 0, ""), (f"{at_good}/other", 69, "does not know other"),
                                 (f"{at_misled}/main", 69, "says that it is no master"),
                                 (f"{at_misled},{at_good}/main", 0, ""), (f"127.0.0.1:{own_port()},{at_good}/main", 0, ""),
                                 (f"127.0.0.1:{own_port()}/main", 69, "Connection refused")):
        done = pawl_status(f"sentinel://{places}")
        check_equal(done.returncode, status, f"{places}: {done.stderr}")
        check_in(says, done.stderr)
    world.flags[1] = f"sentinel://{at_misled}/main"
    check_equal(world.check_of(world.client(world.daemon("pawl-lease"))), "store-electing")
    misled.kill()
    world.close()


@test
def another_store_is_not_ours_whoever_names_it():
    world = Watched()
    world.follows(0)
    other = World()  # of another identity
    port = own_port()
    other.redis("CONFIG", "SET", "port", port)
    world.sentinel.kill()
    world.sentinel = Sentinel(world.folder, port)
    url = f"sentinel://127.0.0.1:{world.sentinel.port}/main"
    world.lease_daemon.end()
    world.gateway_daemon.end()
    world.flags[1] = url
    world.daemons.clear()
    client = world.client(world.daemon("pawl-lease"))
    wait_until(lambda: world.check_of(client) == "store-not-ours", "it is another store", FAILOVER_S)
    other.close()
    world.close()


@test
def sentinels_and_nodes_have_passwords_of_their_own_and_speak_tls():
    world = World()
    pem, key = certificate(world.folder, "node", "DNS:localhost,IP:127.0.0.1")
    tls = ["tls-cert-file", pem, "tls-key-file", key, "tls-ca-cert-file", pem, "tls-auth-clients", "no", "tls-replication", "yes"]
    port, files = own_port(), {}
    world.redis.kill()
    world.redis.start([*DURABLE, "--tls-port", str(port), *[f"--{word}" if index % 2 == 0 else word for index, word in enumerate(tls)],
                       "--user", "pawl", "on", ">nodes", "~*", "&*", "+@all"])
    for text in ("nodes", "sentinels", "wrong"):
        files[text] = os.path.join(world.folder, text)
        with open(files[text], "w", encoding="ascii") as file:
            file.write(text + "\n")
    sentinel = Sentinel(world.folder, port, "port 0", "requirepass sentinels", "sentinel auth-user main pawl", "sentinel auth-pass main nodes",
                        *[" ".join(pair) for pair in zip(tls[::2], tls[1::2])], port_word="tls-port")
    for kind, nodes, of_sentinels, ca, status, says in (
            ("sentinels", "nodes", "sentinels", pem, 0, ""), ("sentinels", "nodes", "wrong", pem, 69, "refuses AUTH: WRONGPASS"),
            ("sentinels", "nodes", None, pem, 69, "refuses to answer: NOAUTH"), ("sentinels", "wrong", "sentinels", pem, 69, "refuses AUTH: WRONGPASS"),
            ("sentinels", "nodes", "sentinels", None, 69, "cannot be reached"), ("sentinel", "nodes", "sentinels", None, 69, "")):
        flags = ["--redis-password-file", files[nodes], *(["--sentinel-password-file", files[of_sentinels]] if of_sentinels else []),
                 *(["--redis-ca", ca] if ca else [])]
        done = wait_until(lambda kind=kind, flags=flags, status=status: (lambda done: done if done.returncode == status else None)(
            pawl_status(f"{kind}://pawl@localhost:{sentinel.port}/main", *flags)), f"exit status {status} of {kind} {flags}", FAILOVER_S)
        check_in(says, done.stderr)
    world.flags[1] = f"sentinels://pawl@localhost:{sentinel.port}/main"
    daemon = world.daemon("pawl-lease", "--redis-password-file", files["nodes"], "--sentinel-password-file", files["sentinels"], "--redis-ca", pem)
    wait_until(world.client(daemon).is_ready, "it has found it", FAILOVER_S)
    sentinel.kill()
    world.close()


@test
def a_form_that_cannot_be_is_refused():
    port = own_port()
    for url, flags, says in (("sentinel://127.0.0.1", (), "needs the name of the primary"),
                             (f"redis://127.0.0.1:{port}", ("--sentinel-password-file", "/dev/null"), "of use with sentinel://"),
                             (f"sentinel://127.0.0.1:{port}/main", ("--redis-ca", "/dev/null"), "of use with rediss:// and sentinels:// only")):
        done = pawl_status(url, *flags)
        check_equal(done.returncode, 78, done.stderr)
        check_in(says, done.stderr)


main()
