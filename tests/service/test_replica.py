#!/usr/bin/python3
"""Replication around the store: a primary that was a copy's replica for a while, a new replication stream in which nothing
is lost, and an address behind which there is no primary at all."""

import atexit
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from world import BUILD, DEADLINE_S, DURABLE, Client, Keys, PrivateRedis, World, check, check_equal, check_in, die_with_parent, \
    keeps_within, main, run_daemon, test, wait_until
from world.asking import Later
from world.ports import own_port
from world.trio import Node

NAMES = [f"job:{number}" for number in range(12)]
FREE = [f"free:{number}" for number in range(12)]
FOLDER = tempfile.mkdtemp()
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
KEYS = os.path.join(FOLDER, "keys")
Keys().write(KEYS)
UNAVAILABLE_MS = 1500  # of 503 for a stream that is new, and complete


def settings(port, *more):
    """A copy takes some 100 ms at least: a look each 50 ms falls into it."""
    return [*DURABLE, "--port", str(port), "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0", "--rdb-key-save-delay",
            "500", "--repl-timeout", "10", *more]


def replication(redis, field):
    return re.search(rf"^{field}:(.*?)\r?$", redis("INFO", "replication").decode(), re.MULTILINE).group(1)


def epoch_of(world):
    return int(world.redis("HGET", "pawl:{store}", "epoch"))


def members_of(world):
    return {member.decode() for member in world.redis("SMEMBERS", "pawl:{store}:members")}


def is_admitted(world):
    """The stream that goes on now, not one of before."""
    run, gate = world.redis("HMGET", "pawl:{store}", "run", "gate")
    return gate == b"" and run.decode().endswith(replication(world.redis, "master_replid"))


def is_copied(redis):
    return replication(redis, "role") == "slave" and replication(redis, "master_link_status") == "up"


class Grants:
    """Whoever was told a token of a lease; nobody else may be told the same."""

    def __init__(self):
        self.told, self.twice = {}, []

    def take(self, name, client):
        """The grant, given back again; None when there was none."""
        answer = client("POST", f"/v1/leases/{name}", body={"ttl_ms": 60000})
        if answer.status != 201:
            return None
        grant = answer.json
        key = (name, grant["epoch"], grant["token"])
        if self.told.setdefault(key, grant["lease_id"]) != grant["lease_id"]:
            self.twice.append(key)
        return grant


def requests(world, daemon, method, paths, headers=(), body=b""):
    """One connection for each, which the daemon has answered once; returns what sends the requests, and what reads the
    answers."""
    socks = [world.raw(daemon) for _ in paths]
    for sock in socks:
        sock.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        check_equal(sock.answer("GET", "/livez").status, 200)

    def send():
        for sock, path, more in zip(socks, paths, headers or [""] * len(paths)):
            sock.send(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body)

    return send, lambda: [sock.answer(method, path) for sock, path in zip(socks, paths)]


@test
def a_primary_that_copied_an_older_replica_while_nobody_looked_grants_nothing_and_lets_nothing_through():
    """All within what is one turn for those that were stopped; no connection of theirs breaks. When they go on, a pulse is
    not due yet: nothing but the calls themselves finds it out."""
    port, copy_port, at_once = own_port(), own_port(), ["--rdb-key-save-delay", "0"]
    world = World(redis_settings=settings(port, *at_once))
    before = members_of(world)
    idle_daemon = world.daemon("pawl-lease")  # has seen nothing of what the first one tells
    idle = world.client(idle_daemon)
    copy = PrivateRedis(tempfile.mkdtemp(dir=world.folder), settings(copy_port, "--replicaof", "127.0.0.1", str(port), *at_once))
    wait_until(lambda: is_copied(copy), "the copy is one")
    wait_until(lambda: is_admitted(world) and all(one.is_ready() for one in (world.lease, idle, world.gateway)), "all are ready")
    member, = members_of(world) - before
    grants = Grants()
    held = {name: grants.take(name, world.lease) for name in NAMES}
    wait_until(lambda: replication(copy, "slave_repl_offset") == replication(world.redis, "master_repl_offset"),
               "the copy has it all")
    acquire, acquired = requests(world, idle_daemon, "POST", [f"/v1/leases/{name}" for name in FREE],
                                 ["Content-Type: application/json\r\n"] * len(FREE), b'{"ttl_ms":60000}')
    write, written = requests(world, world.gateway_daemon, "PUT", [f"/v1/resources/{name}" for name in NAMES],
                              [f"Fencing-Token: {held[name]['fencing_token']}\r\n" for name in NAMES], b"stale")
    links = [client.metric("pawl_store_reconnects_total") for client in (idle, world.gateway)]
    stopped = (idle_daemon, world.gateway_daemon)
    world.gateway_daemon.send(signal.SIGSTOP)
    pulses = world.redis("HGET", f"pawl:{{store}}:m:{member}", "beats")
    wait_until(lambda: world.redis("HGET", f"pawl:{{store}}:m:{member}", "beats") != pulses, "it has just pulsed")
    idle_daemon.send(signal.SIGSTOP)
    copy("REPLICAOF", "NO", "ONE")
    for name, grant in held.items():  # behind the copy's back, and behind theirs
        check_equal(world.lease("DELETE", f"/v1/leases/{name}", {"Lease-Id": grant["lease_id"]}).status, 204)
    for name in FREE:
        check(grants.take(name, world.lease), "a free lease is granted")
    world.lease_daemon.send(signal.SIGSTOP)
    world.redis("REPLICAOF", "127.0.0.1", copy_port)
    wait_until(lambda: is_copied(world.redis), "the primary has copied the copy")
    world.redis("REPLICAOF", "NO", "ONE")
    acquire(), write()
    for daemon in (*stopped, world.lease_daemon):
        daemon.send(signal.SIGCONT)
    check_equal([(answer.status, answer.code) for answer in acquired() + written()],
                [(503, "store-not-admitted")] * (len(FREE) + len(NAMES)))
    check_equal([client.metric("pawl_store_reconnects_total") for client in (idle, world.gateway)], links)
    world.wait_ready(world.lease, idle, world.gateway)
    for name in FREE:
        grants.take(name, idle)
    check_equal(grants.twice, [], "one token for two holders")
    copy.close()
    world.close()


class Load:
    """Renews what is held, without a pause; notes what was refused and for how long nothing was possible."""

    def __init__(self, world, held):
        self.world, self.held, self.over = world, held, False
        self.refused, self.longest_ms, self.done = [], 0.0, time.monotonic()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        client = Client("lease", self.world.lease_daemon.url, World.contract)
        while not self.over:
            for name, grant in self.held.items():
                answer = client("PUT", f"/v1/leases/{name}", {"Lease-Id": grant["lease_id"]})
                now = time.monotonic()
                if answer.status == 200:
                    self.longest_ms, self.done = max(self.longest_ms, (now - self.done) * 1000), now
                elif answer.code not in ("store-unavailable", "store-not-admitted", "outcome-unknown"):
                    self.refused.append(answer)

    def end(self):
        self.over = True
        self.thread.join()
        return self.longest_ms


@test
def a_new_stream_in_which_nothing_is_lost_ends_no_hold_and_is_admitted_in_time():
    port = own_port()
    world = World(redis_settings=settings(port, "--repl-backlog-ttl", "1"))
    held = {name: world.acquire(name, ttl_ms=600000) for name in NAMES}
    backup = os.path.join(world.folder, "backup.rdb")
    load, before = Load(world, held), (epoch_of(world), replication(world.redis, "master_replid"))

    def back_up_and_wait():
        """The backup begins a new stream; a second without a replica ends it, and begins another one."""
        load.longest_ms, epoch = 0.0, epoch_of(world)
        subprocess.run(["redis-cli", "-p", str(port), "--rdb", backup], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        wait_until(lambda: epoch_of(world) >= epoch + 2, "a new epoch for each stream")
        world.wait_ready()
        return load.longest_ms

    keeps_within(UNAVAILABLE_MS, back_up_and_wait, "503 while a new stream is admitted")
    load.end()
    check_equal(load.refused, [], "of holds that nothing has ended")
    check(replication(world.redis, "master_replid") != before[1], "another stream")
    check_equal(world.redis("HGET", "pawl:{store}", "how"), b"complete")
    for name, grant in held.items():
        token = {"Fencing-Token": grant["fencing_token"]}
        check_in(world.gateway("PUT", f"/v1/resources/{name}", token, b"x").status, (201, 204))
    world.close()


# -- an address behind which there is no primary

def sentinel(folder, port):
    """redis-sentinel, which is redis-server by another name."""
    path = os.path.join(folder, "sentinel.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor primary 127.0.0.1 1 1\n")
    process = subprocess.Popen(["redis-server", path, "--sentinel"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, preexec_fn=die_with_parent, start_new_session=True)
    ask = ["redis-cli", "-p", str(port), "SENTINEL", "MASTERS"]
    wait_until(lambda: "primary" in subprocess.run(ask, capture_output=True, text=True, check=False).stdout, "a Sentinel")
    return process


def told_by_all(url, sentence, *flags):
    """Init, both daemons, status and doctor say it without waiting, and what to do."""
    flags = ["--redis", url, "--store-timeout", "60s", *flags]
    pawl = functools.partial(subprocess.run, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S,
                             check=False)
    for done in (run_daemon("pawl-lease", *flags, "--init-store"),
                 run_daemon("pawl-lease", *flags, "--keys", KEYS, "--listen", "127.0.0.1:0"),
                 run_daemon("pawl-gateway", *flags, "--keys", KEYS, "--listen", "127.0.0.1:0"),
                 pawl([str(BUILD / "pawl"), "store", "status", *flags])):
        check_equal(done.returncode, 78, f"{sentence}: {done}")
        check_in(sentence, done.stderr)
        check_in("Name ", done.stderr)
    found = json.loads(pawl([str(BUILD / "pawl"), "doctor", *flags, "-o", "json"]).stdout)["findings"]
    found = [(one["what"], one["remedy"][:5]) for one in found if one["check"] == "redis"]
    check_equal([(sentence in what, remedy) for what, remedy in found], [(True, "Name ")], str(found))


@test
def a_store_is_made_when_there_are_as_many_nodes_as_copies():
    folder = tempfile.mkdtemp(dir=FOLDER)
    primary, other = (Node(os.path.join(folder, name)) for name in ("primary", "other"))
    flags = ["--redis", primary.url, "--state-dir", os.path.join(folder, "state"), "--copies", "2", "--init-store", "--store-timeout"]
    done = run_daemon("pawl-lease", *flags, "300ms")
    check_equal((done.returncode, "of 2 nodes for --copies 2 there are only 1" in done.stderr, primary("DBSIZE")), (78, True, 0), done.stderr)
    late = Later(run_daemon, "pawl-lease", *flags, "15s")
    wait_until(lambda: primary("CLIENT", "LIST", "TYPE", "normal").count(b"id=") > 1, "it is there")
    other.copy(primary.port)
    check_equal(late.get().returncode, 0)


@test
def what_can_be_no_store_is_named_at_once_by_all_who_are_given_its_address():
    for sentence, more in (("this is a replica of 127.0.0.1:1.", ["--replicaof", "127.0.0.1", "1"]),
                           ("this Redis runs in cluster mode, which this version", ["--cluster-enabled", "yes", "--cluster-port", str(own_port())])):
        redis = PrivateRedis(tempfile.mkdtemp(dir=FOLDER), settings(own_port(), *more))
        told_by_all(redis.url, sentence)
        if "cluster" in sentence:
            redis("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            wait_until(lambda: b"cluster_state:ok" in redis("CLUSTER", "INFO"), "a whole cluster of one")
            told_by_all(redis.url, sentence)
        redis.close()
    folder, port = tempfile.mkdtemp(dir=FOLDER), own_port()
    process, secret = sentinel(folder, port), os.path.join(folder, "secret")
    with open(secret, "w", encoding="utf-8") as file:
        file.write("of Redis, and the Sentinel has none\n")
    told_by_all(f"redis://127.0.0.1:{port}", "this is a Sentinel")
    told_by_all(f"redis://127.0.0.1:{port}", "this is a Sentinel", "--redis-password-file", secret)
    process.kill()
    process.wait()


main(parts=2)
