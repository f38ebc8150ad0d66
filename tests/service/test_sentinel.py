#!/usr/bin/python3
"""The primary that sentinels watch: found, followed when another node is promoted, and no sentinel is trusted alone. The
nodes and the sentinels are real."""

import json
import os
import socket
import threading

from world import DURABLE, PrivateRedis, World, check, check_equal, check_in, main, of_time, run_daemon, test, test_in, wait_until
from world.asking import Later
from world.certificate import certificate
from world.listening import Listening
from world.ports import own_port
from world.relay import pump
from world.sentinel import FAILOVER_S, Sentinel, Watched, fresh, is_copied, replica_of, settings
from world.trio import Load


class One(World):
    """A store of one node, which sentinels may watch."""
    init_flags = ("--copies", "1")


def pawl_status(url, *flags):
    return run_daemon("pawl", "store", "status", "--redis", url, "--store-timeout", "1s", *flags, deadline_s=60)


@test_in(lambda: Watched("--threads", "2"))
def the_services_follow_the_primary_there_and_back(world):
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


@test_in(Watched)
def a_primary_that_breaks_its_connections_is_found_again_and_no_failover_is_counted(world):
    world.redis("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    for client in (world.lease, world.gateway):
        wait_until(lambda client=client: client.metric("pawl_store_reconnects_total") >= 1, "it has connected anew")
    world.follows(0)


@test_in(Watched)
def a_former_primary_that_is_back_is_not_taken_while_the_primary_stands_still_for_a_moment(world):
    world.redis.kill()
    world.follows(1)
    world.sentinel.kill()  # else it is a replica soon
    world.redis.start(settings(world.port))
    asked = lambda: int(world.redis("INFO", "stats").split(b"total_connections_received:")[1].split()[0])  # noqa: E731
    before = asked()
    fresh(world.replica, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    world.replica.stop()
    wait_until(lambda: asked() >= before + 4, "both have asked it twice")
    world.replica.go_on()
    world.wait_ready()
    for daemon in (world.lease_daemon, world.gateway_daemon):
        check_equal(world.seen(daemon), [world.replica_port])


@test
def a_primary_that_goes_on_answering_is_left_when_more_sentinels_name_another():
    later = own_port()
    world = Watched(more_sentinels=f",127.0.0.1:{later}", copies=2)  # with 1 the set would shrink to the former one
    epoch = world.replica("HGET", "pawl:{store}", "epoch")
    world.replica("REPLICAOF", "NO", "ONE")
    world.sentinel.kill()
    world.sentinel = Sentinel(world.folder, world.replica_port, port=later)
    wait_until(lambda: world.replica("HGET", "pawl:{store}", "epoch") > epoch, "it is admitted there", FAILOVER_S)
    wait_until(lambda: world.redis("PUBSUB", "NUMPAT") == 0, "the former one is left")
    check_equal(world.redis("HGET", "pawl:{store}", "epoch"), epoch, "at the former one")
    world.redis("REPLICAOF", "127.0.0.1", world.replica_port)  # with one copy alone nothing is answered
    world.follows(1)
    world.close()


@test_in(Watched)
def a_former_primary_that_is_back_is_not_taken_again_by_a_sentinel_that_goes_on_naming_it(world):
    world.sentinel.kill()
    world.sentinel = Sentinel(world.folder, world.port, world.known, port=world.sentinel.port, quorum=2)  # it promotes nobody
    world.hears(1)
    world.redis.kill()
    world.replica("REPLICAOF", "NO", "ONE")
    world.follows(1)
    world.redis.start(settings(world.port))
    world.sentinel.kill()
    world.hears(0)
    world.sentinel.start()  # it is asked again
    world.hears(1)
    for _ in range(2):
        world.follows(1)
    check_equal([world.seen(one) for one in (world.lease_daemon, world.gateway_daemon)], [[world.replica_port]] * 2)


@test_in(Watched)
def a_sentinel_whose_password_has_changed_is_not_heard_on_the_connection_of_before(world):
    with socket.create_connection(("127.0.0.1", world.sentinel.port)) as operator:
        for rules, heard in ((b"resetpass >new", 0), (b"nopass", 1)):
            operator.sendall(b"ACL SETUSER default " + rules + b"\r\n")
            check_equal(operator.recv(100), b"+OK\r\n")
            world.redis("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")  # the sentinels are asked at once, else each 10 s
            world.hears(heard)
    world.follows(0)


@test_in(Watched)
def nothing_is_refused_while_the_sentinels_are_gone_and_the_primary_answers(world):
    world.sentinel.kill()
    world.hears(0)
    world.follows(0)
    late = world.daemon("pawl-lease")  # it starts, and says why it does not serve
    client = world.client(late)
    check_equal(world.check_of(client), "store-electing")
    check_in("No primary of main is known: 0 of 1 sentinels are heard", client("GET", "/readyz").json["detail"])
    world.sentinel.start()
    wait_until(client.is_ready, "it has found it", FAILOVER_S)


@test_in(Watched)
def store_status_says_what_each_node_is_and_which_of_them_may_take_over(world):
    primary, replica = (f"127.0.0.1:{port}" for port in (world.port, world.replica_port))

    def seen(status=0):
        done = pawl_status(world.url, "-o", "json")
        check_equal(done.returncode, status, done.stderr)
        return json.loads(done.stdout)

    def fails(why, status=0):
        return wait_until(lambda: (report := seen(status))["failover"] == {"may": [], "may_not": [{"node": replica, "why": why}]} and report,
                          f"it may not take over: {why}", FAILOVER_S)

    report = seen()
    check_equal([report[name] for name in ("form", "primary", "stream", "copies", "kept", "away", "registrars", "failover")],
                ["sentinel", primary, world.replica("INFO", "replication").decode().split("master_replid:")[1].split()[0], 1, [primary, replica], [], [],
                 {"may": [replica], "may_not": []}])
    check_equal([(one["node"], one["role"], one["unsafe"], one["kept"], one["offset"] > 0) for one in report["nodes"]],
                [(primary, "master", None, True, True), (replica, "slave", None, True, True)])
    check(report["nodes"][0]["lag_ms"] is None and report["nodes"][1]["lag_ms"] >= 0, report["nodes"])
    check_in(f"failover   {replica} may take over", pawl_status(world.url).stdout)
    world.replica("CONFIG", "SET", "appendfsync", "everysec")
    report = fails("unsafe")
    check_equal([report["away"][0][name] for name in ("node", "why")], [replica, "unsafe"])
    check(0 <= report["away"][0]["since_ms"] < FAILOVER_S * 1000 and report["kept"] == [primary], report["away"])
    check_in("appendfsync is everysec", report["nodes"][1]["unsafe"])
    check_in(f"failover   {replica} may not (unsafe, away for ", pawl_status(world.url).stdout)
    check_in(f"away: {replica} (unsafe); what is answered has 1 copies", report["findings"][0]["what"])
    world.replica("CONFIG", "SET", "appendfsync", "always")
    wait_until(lambda: seen()["failover"]["may"] == [replica], "it may again", FAILOVER_S)
    world.replica("CONFIG", "SET", "replica-priority", 0)
    fails("priority-0")
    world.replica.kill()
    fails("unreachable")
    world.redis("HSET", "pawl:{store}", "copies", 2)
    check_in("must have 2 copies, and there are nodes for 1: nothing is answered (store-not-kept)", fails("unreachable", 1)["findings"][0]["what"])


@test_in(lambda: Watched(copies=2))
def doctor_says_what_of_nodes_and_sentinels_would_stop_a_failover(world):
    def problems(url=world.url):
        done = run_daemon("pawl", "doctor", "-o", "json", "--redis", url, "--lease-url", world.lease.url, "--gateway-url", world.gateway.url,
                          deadline_s=60)
        return " | ".join(one["what"] for one in json.loads(done.stdout)["findings"] if one["status"] == "problem")

    said = problems()
    for part in ("the loss of either stops grants", "0 registrars: ", "of 1 sentinels: they are all on one host"):
        check_in(part, said)
    check("repl-backlog-size" not in said, said)
    check("even" not in said and "majority" not in said and "replica-priority" not in said and "repl-diskless-load" not in said, said)
    other = Sentinel(world.folder, world.port, world.known)
    world.replica("CONFIG", "SET", "repl-diskless-load", "swapdb")
    world.replica("CONFIG", "SET", "replica-priority", 0)
    world.replica("CONFIG", "SET", "repl-backlog-size", "16384")  # the least; less than 60 s of heartbeats
    for part in ("their number is even", "their quorum is less than a majority", "its replica-priority is 0", "repl-diskless-load is not disabled",
                 "its repl-backlog-size of 16384 bytes is less than 60 s"):
        wait_until(lambda part=part: part in problems(), part, FAILOVER_S)
    other.kill()
    away = f"127.0.0.1:{own_port()}"
    check_in(f"sentinel {away} does not answer", problems(f"sentinel://{away},127.0.0.1:{world.sentinel.port}/main"))
    world.replica("CONFIG", "SET", "appendfsync", "everysec")
    check_in("appendfsync is everysec", problems())
    lease = world.lease("GET", "/v1/overview").json["service"]["id"]
    for registrars, wrong in ((f"3 {lease} gone-1 gone-2", False), (f"1 {lease}", True)):
        world.redis("HSET", "pawl:{store}", "registrars", registrars)
        check_equal(f"1 of {registrars[0]} are on the host of 127.0.0.1:{world.port}" in problems(), wrong)


@test_in(Watched)
def a_sentinel_that_names_a_replica_or_knows_no_such_name_leads_nowhere(world):
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


@test_in(Watched)
def another_store_is_not_ours_whoever_names_it(world):
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


@test_in(One)
def sentinels_and_nodes_have_passwords_of_their_own_and_speak_tls(world):
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

        def says_so(kind=kind, flags=flags, status=status, says=says):  # within a second, if the machine does nothing else
            done = pawl_status(f"{kind}://pawl@localhost:{sentinel.port}/main", *flags)
            return done.returncode == status and says in done.stderr

        wait_until(says_so, f"{status} and {says} of {kind} {flags}", FAILOVER_S)
    world.flags[1] = f"sentinels://pawl@localhost:{sentinel.port}/main"
    daemon = world.daemon("pawl-lease", "--redis-password-file", files["nodes"], "--sentinel-password-file", files["sentinels"], "--redis-ca", pem)
    wait_until(world.client(daemon).is_ready, "it has found it", FAILOVER_S)
    sentinel.kill()


def failover(world, *flags, url=None):
    done = run_daemon("pawl", "store", "failover", "--redis", url or world.url, "--wait", f"{FAILOVER_S}s", *flags, deadline_s=90)
    return done.returncode, done.stdout + done.stderr


@test_in(Watched)
@of_time
def an_operator_makes_the_other_node_the_primary_and_nobody_is_left_in_doubt(world):
    held = world.acquire("job", ttl_ms=600000)
    there = f"127.0.0.1:{world.replica_port}"
    for flags, url, status, says in ((("--to", f"127.0.0.1:{world.port}"), None, 1, "no node of the in-sync set"),
                                     ((), f"redis://127.0.0.1:{world.port}", 78, "has to be sentinel://")):
        code, said = failover(world, *flags, url=url)
        check_equal((code, says in said), (status, True), said)
    load = Load(world)
    wait_until(lambda: len(load.written) > 50, "there is a load")
    code, said = failover(world, "--to", there)
    check_equal((code, f"{there} is the store" in said), (0, True), said)
    before = len(load.written)
    wait_until(lambda: len(load.written) > before + 20, "the load goes on there", FAILOVER_S)
    load.end()
    load.is_kept()
    check_equal(set(load.others) - {503}, set(), "all else was certainly not done")
    check_equal([one["token"] for one in world.look("job")["holders"]], [held["token"]])
    check_equal(world.seen(world.lease_daemon), [world.replica_port])


@test_in(lambda: Watched(copies=2))
def a_failover_is_over_when_what_is_answered_has_its_copies_there(world):
    world.replica("CONFIG", "SET", "repl-diskless-sync-delay", "600")  # for so long the former primary has no copy of it
    world.replica("CONFIG", "SET", "repl-backlog-size", "16384")
    command = Later(failover, world)
    wait_until(lambda: world.check_of(world.lease) == "store-not-kept", "the former primary has no copy", FAILOVER_S)
    check(command.answer is None, "it waits for that")
    fresh(world.replica, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
    code, said = command.get(FAILOVER_S)
    check_equal((code, "is the store" in said, "nothing is answered" in said), (0, True, False), said)
    world.wait_ready()


@test
def a_failover_is_refused_beside_an_outsider_and_fails_when_another_node_came_than_was_wanted():
    world = Watched()
    folder, wanted = os.path.join(world.folder, "third"), f"127.0.0.1:{world.replica_port}"
    os.mkdir(folder)
    third = PrivateRedis(folder, settings(own_port(), *replica_of(world.port), "--appendonly", "no", "--replica-priority", "1"))
    wait_until(lambda: is_copied(third), "it copies the primary")
    code, said = failover(world, "--to", wanted)
    check_equal((code, "is not in the in-sync set, and may be chosen; nothing was changed" in said), (1, True), said)
    third("CONFIG", "SET", "appendonly", "yes")
    world.wait_kept(3)
    world.sentinel.kill()
    port = int(third("CONFIG", "GET", "port")[1])
    world.sentinel = Sentinel(world.folder, world.port, world.known, f"sentinel known-replica main 127.0.0.1 {port}", port=world.sentinel.port)
    world.hears(1)
    code, said = failover(world, "--to", wanted)
    check_equal((code, f"127.0.0.1:{port} is the store" in said, f"another one than {wanted}" in said), (1, True, True), said)
    world.close()
    third.close()


@test_in(Watched)
@of_time
def when_no_sentinel_begins_a_failover_all_goes_on_at_the_former_primary(world):
    epoch = int(world.redis("HGET", "pawl:{store}", "epoch"))
    world.sentinel.kill()
    world.sentinel = Sentinel(world.folder, world.port, world.known, "user default on nopass ~* &* +@all -sentinel|failover",
                              port=world.sentinel.port)
    world.hears(1)
    for _ in range(3):
        code, said = failover(world)
        if "nothing was changed" not in said:
            break
        world.wait_kept(2)  # a node was away for a moment, and comes back
    check_equal((code, "no sentinel begins a failover" in said), (1, True), said)
    world.follows(0)
    check(int(world.redis("HGET", "pawl:{store}", "epoch")) > epoch, "the gate was shut, and is open again")


class Deaf(Listening):
    """In front of a sentinel: what it answers to being asked to begin a failover is lost."""

    def __init__(self, port):
        self.to, self.deaf_to = port, []
        self.listen()

    def _serve(self, near):
        far = socket.create_connection(("127.0.0.1", self.to))
        threading.Thread(target=pump, args=(near, far, lambda piece: self.deaf_to.append(far) if b"FAILOVER" in piece else None), daemon=True).start()
        pump(far, near, lambda _: far not in self.deaf_to)


@test_in(Watched)
@of_time
def a_failover_of_which_the_answer_was_lost_is_followed_to_its_end(world):
    line, there = Deaf(world.sentinel.port), f"127.0.0.1:{world.replica_port}"
    code, said = failover(world, url=f"sentinel://127.0.0.1:{line.port}/main")
    check_equal((len(line.deaf_to), code, f"{there} is the store" in said, "go on with the primary that is" in said), (1, 0, True, False), said)
    line.close()


class Twice(Deaf):
    """In front of a sentinel: somebody else has just asked it to begin a failover, too."""

    def _serve(self, near):
        far = socket.create_connection(("127.0.0.1", self.to))
        threading.Thread(target=pump, args=(near, far, self.goes_on), daemon=True).start()
        pump(far, near)

    def goes_on(self, piece):
        if b"FAILOVER" in piece:
            with socket.create_connection(("127.0.0.1", self.to)) as other:
                other.sendall(b"SENTINEL FAILOVER main\r\n")
                self.deaf_to.append(other.recv(100))


@test_in(Watched)
@of_time
def a_failover_that_a_sentinel_has_begun_for_somebody_else_is_followed_too(world):
    line, there = Twice(world.sentinel.port), f"127.0.0.1:{world.replica_port}"
    code, said = failover(world, url=f"sentinel://127.0.0.1:{line.port}/main")
    check_equal((line.deaf_to, code, f"{there} is the store" in said, "go on with the primary that is" in said), ([b"+OK\r\n"], 0, True, False), said)
    line.close()


@test
def a_form_that_cannot_be_is_refused():
    port = own_port()
    for url, flags, says in (("sentinel://127.0.0.1", (), "needs the name of the primary"),
                             (f"redis://127.0.0.1:{port}", ("--sentinel-password-file", "/dev/null"), "of use with sentinel://"),
                             (f"sentinel://127.0.0.1:{port}/main", ("--redis-ca", "/dev/null"), "of use with rediss:// and sentinels:// only")):
        done = pawl_status(url, *flags)
        check_equal(done.returncode, 78, done.stderr)
        check_in(says, done.stderr)


main(parts=3)
