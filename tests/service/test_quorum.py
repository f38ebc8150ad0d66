#!/usr/bin/python3
"""test_quorum.py - two lease services on three Redis that know nothing of each other: the interface."""

import functools
import hashlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

from world import Client, Daemon, World, check, check_equal, check_in, main, of_time, read_token, run_daemon, signed_token, test, test_in, wait_until
from world.access import identities, new_token, reloaded, write_private
from world.asking import Later, refused
from world.cli import Cli
from world.process import die_with_parent
from world.quorum import IN_MEMORY, MAX_TTL_MS, Quorum
from world.redis import PrivateRedis
from world.relay import FROM_REDIS, TO_REDIS, Hold, Relay
from world.upstream import Upstream, route, routes_file
from world.world import BUILD


@test
def what_redis_is_given_must_be_three_five_or_seven_that_differ_and_of_a_lease_service():
    one, two, three = (f"unix:///nowhere/{number}" for number in range(3))
    for name, words, says in (
            ("pawl-lease", [one, two], "3, 5 or 7"), ("pawl-lease", [one, two, one], "twice"),
            ("pawl-lease", [one, two, three, one + "4"], "3, 5 or 7"), ("pawl-lease", [one, two, "sentinel://x/y"], "nothing beside it"),
            ("pawl-lease", [f"{one}{number}" for number in range(9)], "3, 5 or 7"), ("pawl-gateway", [one, two, three], "takes one")):
        done = run_daemon(name, *(word for url in words for word in ("--redis", url)), "--keys", "none")
        check_equal(done.returncode, 78, str(done))
        check_in(says, done.stderr)
    for words in (["--redis", one, "--max-ttl", "5m", "--init-store"],
                  [*(word for url in (one, two, three) for word in ("--redis", url)), "--max-ttl", "5m"],
                  [*(word for url in (one, two, three) for word in ("--redis", url)), "--registrars", "3", "--init-store"],
                  [*(word for url in (one, two, three) for word in ("--redis", url)), "--copies", "2", "--init-store"]):
        check_equal(run_daemon("pawl-lease", *words).returncode, 78, str(words))


@test_in(Quorum)
def a_lease_is_granted_told_again_renewed_looked_at_and_released(world, name):
    check_equal(world.look(name)["state"], "free")
    grant = world.acquire(name, holder="me", meta={"a": 1})
    check_equal([grant[what] for what in ("token", "epoch", "holder", "meta", "mode", "ttl_ms")], [1, 1, "me", {"a": 1}, "exclusive", MAX_TTL_MS])
    check(0 < grant["expires_in_ms"] < MAX_TTL_MS - 3, str(grant))
    check(world.keys.verifies(grant["fencing_token"]))
    check_equal(read_token(grant["fencing_token"])["store"], world.keys.store)
    held = world.lease("POST", f"/v1/leases/{name}", body={})
    check_equal([held.status, held.json["code"], held.json["holder"], held.json["token"]], [409, "lease-held", "me", 1])
    again = world.acquire(name, 200, client=world.both()[1], lease_id=grant["lease_id"])
    check_equal([again[what] for what in ("token", "holder", "meta", "fencing_token")],
                [grant[what] for what in ("token", "holder", "meta", "fencing_token")])
    look = world.look(name)
    check_equal([look["state"], look["token"], look["holders"][0]["holder"], look["holders"][0]["meta"]], ["held", 1, "me", {"a": 1}])
    ids = {"Lease-Id": grant["lease_id"], "Fencing-Token": grant["fencing_token"]}
    renewed = world.lease("PUT", f"/v1/leases/{name}", ids, body={"ttl_ms": 300})
    check_equal([renewed.status, renewed.json["token"], renewed.json["ttl_ms"], renewed.json["holder"]], [200, 1, 300, "me"])
    other = world.lease("PUT", f"/v1/leases/{world.name()}", ids, body={})
    check_equal([other.status, other.json["code"]], [403, "wrong-lease"])
    ids["Fencing-Token"] = signed_token(world.keys, name, 1, 1, read_token(grant["fencing_token"])["hold"], store="B" * 24)
    check_equal([world.lease(method, f"/v1/leases/{name}", ids).code for method in ("PUT", "DELETE")], ["wrong-store"] * 2)
    ids["Fencing-Token"] = grant["fencing_token"]
    check_equal([world.lease("DELETE", f"/v1/leases/{name}", {**ids, **key}).status for key in ({"Idempotency-Key": "k"}, {"Idempotency-Key": "k"}, {})], [204] * 3)
    lost = world.lease("PUT", f"/v1/leases/{name}", ids, body={})
    check_equal([lost.status, lost.json["code"], lost.json["ended"]], [410, "lease-lost", "unknown"])
    check_equal(world.acquire(name)["token"], 2)


@test_in(Quorum)
def what_is_not_there_is_said_and_what_is_wrong_before_that(world):
    headers = {"Lease-Id": "A" * 22}
    for method, path, extra, body, status, code in (
            ("POST", "/v1/leases/a%2Fb", {}, {"wait_ms": 5}, 400, "invalid-request"),
            ("POST", "/v1/leases/a", {}, {"ttl_ms": 5, "wait_ms": 5}, 422, "out-of-range"),
            ("POST", "/v1/leases/a", {}, {"mode": "shared"}, 501, "not-in-quorum-mode"),
            ("POST", "/v1/leases/a", {}, {"permits": 2}, 501, "not-in-quorum-mode"),
            ("POST", "/v1/leases/a", {}, {"reentrant": True}, 501, "not-in-quorum-mode"),
            ("POST", "/v1/leases/a", {}, {"lock_delay_ms": 1}, 501, "not-in-quorum-mode"),
            ("POST", "/v1/leases/a", {}, {"session": "s" * 16}, 501, "not-in-quorum-mode"),
            ("POST", "/v1/leases/a", {"Idempotency-Key": "k"}, {"lease_id": "A" * 22}, 501, "not-in-quorum-mode"),
            ("POST", "/v1/leases/a", {}, {"wait_ms": 5, "keep_place_ms": 5}, 400, "invalid-request"),
            ("POST", "/v1/leases/a", {}, {"wait_ms": 5, "mode": "exclusive"}, 201, None),
            ("POST", "/v1/leases/b", {}, {"permits": 1}, 201, None),
            ("POST", "/v1/leases/c", {}, {"ttl_ms": MAX_TTL_MS + 1}, 422, "out-of-range"),
            ("PUT", "/v1/leases/c", headers, {"ttl_ms": MAX_TTL_MS + 1}, 422, "out-of-range"),
            ("PUT", "/v1/leases/c", {}, {}, 400, "invalid-request"), ("DELETE", "/v1/leases/c", {}, None, 400, "invalid-request"),
            ("DELETE", "/v1/leases/c?all=true", headers, None, 501, "not-in-quorum-mode"),
            ("DELETE", "/v1/leases/c?all=false", headers, None, 400, "invalid-request"),
            ("DELETE", "/v1/leases/c?al=true", headers, None, 400, "invalid-request"),
            ("PUT", "/v1/leases/c?all=true", headers, {}, 400, "invalid-request"), ("GET", "/v1/leases/c?all=true", {}, None, 400, "invalid-request"),
            ("DELETE", "/v1/leases/c", {**headers, "Idempotency-Key": "k" * 129}, None, 400, "invalid-request"),
            ("DELETE", "/v1/leases/c", {**headers, "Idempotency-Key": "k"}, None, 410, "lease-lost"),
            ("DELETE", "/v1/leases/c", headers, None, 410, "lease-lost"),
            ("POST", "/v1/leases/a/force-release", {}, {}, 501, "not-in-quorum-mode"),
            ("GET", "/v1/leases/a/history", {}, None, 501, "not-in-quorum-mode"), ("GET", "/v1/events", {}, None, 501, "not-in-quorum-mode"),
            ("GET", "/v1/leases", {}, None, 501, "not-in-quorum-mode"), ("POST", "/v1/leases", {}, {"names": ["a"]}, 501, "not-in-quorum-mode"),
            ("POST", "/v1/sessions", {}, {}, 501, "not-in-quorum-mode"), ("GET", "/v1/sessions", {}, None, 501, "not-in-quorum-mode"),
            ("GET", "/v1/overview", {}, None, 501, "not-in-quorum-mode"), ("GET", "/v1/nothing", {}, None, 404, "not-found")):
        answer = world.lease(method, path, extra, body=body) if body is not None else world.lease(method, path, extra)
        check_equal([answer.status, (answer.json or {}).get("code")], [status, code], f"{method} {path} {body}")


@test_in(Quorum)
@of_time
def a_store_is_made_of_empty_nodes_that_can_be_reached_and_once(world):
    done = world.make()
    check_equal([done.returncode, "r.sock has a store already" in done.stderr], [78, True], str(done))
    two, one, three = (["--redis", world.nodes[i].url] for i in (1, 0, 2))
    daemon = Daemon("pawl-lease", *two, *one, *three, *world.flags[6:])
    daemon.line(lambda line: "store-not-ready" in line and "they say that they are numbers 2, 1, 3" in line, "it is logged")
    daemon.end()
    world.nodes[0].kill()
    done = world.make("--store-timeout", "300ms")
    check_equal([done.returncode, done.stderr.count("node 1"), done.stderr.count("cannot be reached")], [69, 1, 1], str(done))
    world.nodes[0].start(IN_MEMORY)
    world.wait_well()


@test_in(functools.partial(Quorum, count=5))
def a_part_of_the_nodes_or_more_of_them_is_not_the_store(world):
    more = [PrivateRedis(tempfile.mkdtemp(prefix="pawl-node-"), IN_MEMORY) for _ in range(2)]
    for urls in ([one.url for one in world.nodes[:3]], [one.url for one in world.nodes + more]):
        daemon = Daemon("pawl-lease", *sum((["--redis", url] for url in urls), []), *world.flags[10:])
        daemon.line(lambda line: "store-not-ready" in line and "another number of nodes" in line, "it is logged")
        check_equal(world.client(daemon)("POST", "/v1/leases/x", body={}).code, "store-not-ours")
        daemon.end()
    for one in more:
        one.kill()
    world.wait_well()


@test_in(Quorum)
def a_node_that_was_wiped_is_in_quarantine_for_the_longest_ttl_and_two_stop_everything(world):
    world.nodes[1]("FLUSHALL")
    world.acquire("y")
    shown = wait_until(lambda: world.ready().get("quarantine"), "it is seen")
    check_equal(shown[0]["node"], 2)
    check(0 <= shown[0]["for_ms"] <= MAX_TTL_MS, str(shown))
    world.acquire(world.name())
    world.wait_well()
    world.nodes[0].kill(), world.nodes[2].kill()
    gone = wait_until(lambda: (one := world.lease("POST", "/v1/leases/x", body={})).status == 503 and one, "it is refused")
    check_equal(gone.json["code"], "store-unavailable")
    wait_until(lambda: world.ready().get("check") == "store-connecting", "readyz says so, too")
    world.nodes[0].start(IN_MEMORY), world.nodes[2].start(IN_MEMORY)
    wait_until(lambda: world.ready().get("check") == "store-not-ours", "they have lost what they had")
    check(world.ready()["detail"].endswith("2 are in quarantine, 0 are not of this store. Too few are left that could say what the others have lost."), "a whole sentence")
    check_equal([world.lease.metric(f'pawl_store_nodes{{state="{state}"}}') for state in ("well", "quarantine", "gone")], [1, 2, 0])
    check_equal([world.ready()["nodes"], [one["node"] for one in world.ready()["quarantine"]]], [["quarantine", "well", "quarantine"], [1, 3]])
    check_equal(world.lease("POST", "/v1/leases/x", body={}).json["code"], "store-not-ours")
    done = world.make("--floor", "1")
    check_equal([done.returncode, "node 2 knows of token 2, above --floor" in done.stderr], [1, True], str(done))
    done = world.make("--floor", "1000")
    check_equal([done.returncode, f"{world.keys.store} goes on above 1000" in done.stdout], [0, True], str(done))
    check_in("until the longest ttl is over", done.stderr)
    world.wait_well()
    check_equal(world.acquire("x")["token"], 1001)
    check_equal(world.make("--floor", "2000").returncode, 1)
    for node in world.nodes:
        node("FLUSHALL")
    world.wait_states("quarantine", "quarantine", "quarantine")
    check_equal(world.make("--floor", "3000").returncode, 0)
    world.wait_well()
    check_equal(world.acquire("x")["token"], 3001)


@test_in(Quorum)
def pawl_store_status_says_what_each_node_is_and_recover_ends_the_quarantine_of_most(world):
    world.acquire("job")
    world.wait_well()
    report = world.seen()
    check_equal([report["form"], report["store"], report["well"], report["majority"], report["findings"]], ["quorum", world.keys.store, 3, 2, []])
    check_equal([(one["number"], one["state"], one["for_ms"], one["max_ttl_ms"], one["maxmemory_policy"]) for one in report["nodes"]],
                [(number, "well", None, MAX_TTL_MS, "noeviction") for number in (1, 2, 3)])
    check(max(one["highest"] for one in report["nodes"]) == 1 and {one["epoch"] for one in report["nodes"]} == {1}, "the token's, not the node's own")
    check_in("Grants are possible.", world.pawl("status").stdout)
    world.nodes[2]("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    findings = [one["what"] for one in json.loads(world.pawl("-o", "json", "--probe", "--lease-url", world.lease_daemon.url, of=("doctor",), status=1).stdout)["findings"]]
    check(not any("did not grant" in what for what in findings), str(findings))
    check_in("has a store already", world.pawl("init", "--max-ttl", "1s", status=78).stderr)
    for says, count in (("all 3 nodes of the quorum are well", 1), ("maxmemory-policy is allkeys-lru", 1), ("r.sock agrees with this machine's", 3)):
        check_equal(sum(says in what for what in findings), count, f"{says}: {findings}")
    for words, says in ((["history"], "a quorum has no pawl store history"), (["failover"], "a quorum has no pawl store failover"),
                        (["accept-loss", "a:1", "--yes"], "a quorum has no pawl store accept-loss"),
                        (["marks", "--of", "A" * 24, "--at", "1.5"], "a quorum has no pawl store marks"), (["recover", "--yes"], "--floor N"),
                        (["recover", "--floor", "5", "--force", "--yes"], "nothing beside it"),
                        (["recover", "--floor", "5", "--wait", "5s", "--yes"], "nothing beside it"), (["recover", "--floor", "5"], "say --yes")):
        check_in(says, world.pawl(*words, status=64).stderr)
    check_equal(world.pawl("recover", "--floor", "5", "--yes", status=1).stderr, "pawl-lease: most nodes are well; nothing was changed\n")
    for daemon in world.daemons:
        daemon.kill()
    world.nodes[0]("HSET", "pawl:{node}", "id", "A" * 24 + "/1/3")
    check_equal([one["state"] for one in world.seen()["nodes"]], ["not-ours", "well", "well"])
    world.nodes[0]("HSET", "pawl:{node}", "id", world.keys.store + "/1/3", "run", "of before")
    world.nodes[1]("HSET", "pawl:{node}", "run", "of before")
    report = world.seen(1)
    check_equal([(one["state"], one["for_ms"]) for one in report["nodes"]], [("quarantine", MAX_TTL_MS)] * 2 + [("well", None)])
    check_in("1 of 3 nodes are well, and 2 must be", report["findings"][-1]["what"])
    check_in("goes on above 1000", world.pawl("recover", "--floor", "1000", "--yes").stdout)
    check(world.seen()["well"] >= 2 and max(one["highest"] for one in world.seen()["nodes"]) == 1000, str(world.seen()))
    world.nodes[0].kill(), world.nodes[2].kill()
    check_equal([one["state"] for one in world.seen(69)["nodes"]], ["gone", "new", "gone"])
    world.nodes[0].start(IN_MEMORY), world.nodes[2].start(IN_MEMORY)
    check_in("pawl store init", world.seen(78)["findings"][-1]["todo"])


@test_in(Quorum)
def of_two_who_make_a_store_at_once_one_is_told_that_nothing_was_created(world):
    for daemon in world.daemons:
        daemon.kill()
    for node in world.nodes:
        node("FLUSHALL")
    line = Relay(world.nodes[2])
    asked, answer = line.hold(TO_REDIS, b"EXISTS"), Hold(FROM_REDIS, b":0\r\n")
    words = [word for url in (world.nodes[0].url, world.nodes[1].url, line.url) for word in ("--redis", url)]
    late = Later(run_daemon, "pawl-lease", *words, "--init-store", "--store-timeout", "30s")
    asked.wait_met()
    line.holds.append(answer)
    asked.go()
    answer.wait_met()
    check_equal(world.make().returncode, 0)
    answer.go()
    done = late.get()
    check_equal((done.returncode, "nothing was created" in done.stderr, "FLUSHALL" in done.stderr), (78, True, False), str(done))
    line.close()


@test_in(Quorum)
def a_recovery_needs_no_more_than_most_nodes_and_one_that_was_killed_halfway_is_repeated(world):
    world.acquire("job")
    world.nodes[2].kill()
    for node in world.nodes[:2]:
        node.kill(), node.start(IN_MEMORY)
    world.wait_states("quarantine", "quarantine", "gone")
    line = Relay(world.nodes[1])
    heal = line.hold(TO_REDIS, b"5000007")
    killed = subprocess.Popen([BUILD / "pawl-lease", "--redis", world.nodes[0].url, "--redis", line.url, "--redis", world.nodes[2].url,
                               "--init-store", "--floor", "5000007"], preexec_fn=die_with_parent, stderr=subprocess.DEVNULL)
    heal.wait_met()
    wait_until(lambda: world.nodes[0]("HGET", "pawl:{node}", "highest") == b"5000007" and world.nodes[0]("HEXISTS", "pawl:{node}", "run"), "one is healed")
    killed.kill(), killed.wait()
    line.close()
    done = world.make("--floor", "5000007")
    check_equal((done.returncode, "goes on above 5000007" in done.stdout), (0, True), str(done))
    world.wait_states("well", "well", "gone")
    check_equal(world.acquire("job")["token"], 5000008)


@test_in(Quorum)
def of_two_recoveries_at_once_the_higher_number_counts(world):
    lines = [Relay(node) for node in world.nodes]
    for node in world.nodes:  # all at once: most that are well would heal the first
        node.kill()
    for node in world.nodes:
        node.start(IN_MEMORY)
    world.wait_states("quarantine", "quarantine", "quarantine")
    heals = [line.hold(TO_REDIS, b"2000000007") for line in lines]
    higher = Later(run_daemon, "pawl-lease", *[word for line in lines for word in ("--redis", line.url)], "--init-store",
                   "--floor", "2000000007", "--store-timeout", "30s")
    for heal in heals:
        heal.wait_met()
    check_in("goes on above 1000", world.make("--floor", "1000").stdout)
    for heal in heals:
        heal.go()
    done = higher.get()
    check_equal((done.returncode, "goes on above 2000000007" in done.stdout), (0, True), str(done))
    world.wait_well()
    check_equal(world.acquire("job")["token"], 2000000008)
    for line in lines:
        line.close()


@test_in(Quorum)
def a_node_that_lives_and_lets_nobody_in_is_told_as_such(world):
    world.nodes[1]("CONFIG", "SET", "requirepass", "other")
    world.nodes[2]("REPLICAOF", "127.0.0.1", 1)
    told = [one["what"] for one in world.seen(69)["findings"]]
    for number, says in ((1, "NOAUTH"), (2, "this is a replica")):
        check(any(f"node {number + 1}, {world.nodes[number].path}, is gone: " in what and says in what for what in told), str(told))
    world.nodes[1]("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wait_until(lambda: "NOAUTH" in world.ready().get("detail", ""), "a service says so, too")
    world.lease_daemon.line(lambda line: '"node-gone","node":2' in line, "that it is gone")


@test_in(Quorum)
def an_address_that_has_led_to_another_node_for_a_while_is_followed_back(world):
    line = Relay(world.nodes[1])
    line.to, world.flags[3] = world.nodes[0].path, line.url
    client = world.client(world.daemon("pawl-lease"))
    for states, to in ((["well", "not-ours", "well"], world.nodes[1].path), (["well"] * 3, None)):
        wait_until(lambda states=states: client("GET", "/readyz").json.get("nodes") == states, f"it sees {states}")
        line.to = to
    line.close()


@test_in(Quorum)
def nodes_that_are_named_in_another_order_are_not_taken_for_new_ones(world):
    world.flags[1], world.flags[3] = world.flags[3], world.flags[1]
    report = world.seen(78)
    check_equal([one["state"] for one in report["nodes"]], ["not-ours"] * 3)
    check_in("in the order in which the store was made", report["findings"][0]["todo"])
    check_in("in the order in which it was made", report["findings"][-1]["todo"])


@test_in(Quorum)
def nodes_that_are_well_and_take_no_writes_are_told(world):
    world.wait_well()
    for count, node in enumerate(world.nodes[:2]):
        node("CONFIG", "SET", "maxmemory", 1)
        report = world.seen(count)
        check_equal((report["well"], [one["what"] for one in report["findings"] if "is full" in one["what"]]),
                    (3, [f"node {at + 1}, {world.nodes[at].path}: Redis is full: it uses all of its maxmemory" for at in range(count + 1)]))
    check_in("1 of 3 nodes are well and take writes, and 2 must", report["findings"][-1]["what"])
    check_equal(world.lease("POST", "/v1/leases/none", body={}).status, 503)
    check("are possible" not in world.pawl("status", status=1).stdout, "it is not said")
    wait_until(lambda: world.ready().get("checks", {}).get("store") == "store-full", "a service says so, too")
    for node in world.nodes[:2]:
        node("CONFIG", "SET", "maxmemory", 0, "min-replicas-to-write", 1)
    wait_until(lambda: world.ready().get("check") == "store-refuses-writes", "it says that most take no writes")
    for node in world.nodes[:2]:
        node("CONFIG", "SET", "min-replicas-to-write", 0)
    wait_until(lambda: world.lease("GET", "/readyz").status == 200, "they do again")


@test_in(Quorum)
def a_node_that_is_named_alone_is_no_empty_redis_and_nothing_is_made_of_it(world):
    world.acquire("job")
    before = sorted(world.nodes[0]("KEYS", "*"))
    one = ["--redis", world.nodes[0].url, "--state-dir", os.path.join(os.path.dirname(world.nodes[0].path), "none")]
    for words in (["status"], ["recover", "--store-id", world.keys.store, "--wait", "1s"],
                  ["recover", "--store-id", world.keys.store, "--floor", "1000000", "--yes"], ["recover", "--floor", "1000000", "--yes"]):
        done = run_daemon("pawl", "store", *words, *one)
        check_equal((done.returncode, f"a node of a quorum ({world.keys.store}/1/3)" in done.stdout + done.stderr), (78, True), str(done))
    check_equal(sorted(world.nodes[0]("KEYS", "*")), before)
    world.acquire("other")


@test_in(lambda: Quorum(max_ttl_ms=60000))
def who_waits_is_granted_at_a_random_moment_or_its_time_is_up(world):
    first = world.acquire("job", holder="me", ttl_ms=1000)
    late = world.lease("POST", "/v1/leases/job", body={"wait_ms": 1})
    check_equal([late.status, late.json["code"], late.json["holder"], late.json["token"]], [409, "wait-timeout", "me", 1])
    body = {"wait_ms": 20000, "keep_place_ms": 20000, "lease_id": "w" * 22, "holder": "w", "meta": {"b": 2}}
    grants = [one.get(30) for one in [Later(one, "POST", "/v1/leases/job", body=body) for one in world.both()]]
    check_equal(sorted(one.status for one in grants), [200, 201], "one lease_id is one hold")
    for one in grants:
        check_equal([one.json[what] for what in ("token", "lease_id", "holder", "meta")], [2, "w" * 22, "w", {"b": 2}])
    new = next(one for one in grants if one.status == 201).json
    check(new["token"] > first["token"] and 0 < new["waited_ms"] <= 20000 and new["expires_in_ms"] <= new["ttl_ms"], str(new))


@test_in(lambda: Quorum(max_ttl_ms=60000))
def who_waits_is_sent_away_by_a_service_that_stops_and_leaves_with_its_connection(world):
    world.acquire("job", ttl_ms=60000)
    other = world.both()[1]
    line = socket.create_connection(("127.0.0.1", world.gateway_daemon.port))
    body = json.dumps({"wait_ms": 60000}).encode()
    line.sendall(b"POST /v1/leases/job HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    waits = Later(other, "POST", "/v1/leases/job", body={"wait_ms": 60000})

    def counted(what):
        return sum(int(text.split()[-1]) for text in other("GET", "/metrics").body.decode().splitlines() if f'"{what}"' in text and text.startswith("pawl_"))
    wait_until(lambda: counted("queued") == 2, "both wait")
    line.close()
    wait_until(lambda: counted("gone") == 1, "it has left")
    world.gateway_daemon.end()
    refused(waits.get(), 503, "draining")


@test_in(Quorum)
@of_time
def pawl_waits_until_it_is_granted_or_its_time_is_up(world):
    pawl = Cli(world)
    grant = world.acquire("job")
    check_in("job is held by anonymous", pawl("run", "--wait", "100ms", "job", "--", "true", status=75).stderr)
    for words in (["run", "--wait", "10s", "job", "--", "echo", "held"], ["run", "-n", "job", "--", "echo", "held"]):
        done = pawl(*words)
        check_equal([done.stdout, done.stderr], ["held\n", ""], "given back, too")
    check(world.look("job")["token"] > grant["token"])
    world.acquire("job")
    check_in("FENCING", pawl("acquire", "--wait", "10s", "-o", "env", "job").stdout)
    check_in("wait-timeout", pawl("acquire", "--wait", "200ms", "job", status=75).stderr)


def judged(*names):
    """(access tokens, rules, access file) by which these may do everything that is there."""
    tokens, path = {name: new_token() for name in names}, pathlib.Path(tempfile.mkdtemp(prefix="pawl-access-")) / "access.json"
    rules = [{"who": [who], "may": ["acquire", "look", "observe"], "on": ["*"]} for who in names]
    write_private(path, {"identities": identities(tokens), "rules": rules})
    return tokens, rules, path


@test
def a_hold_is_for_the_identity_that_acquired_it():
    tokens, rules, path = judged("a", "b")
    world = Quorum("--access", str(path), max_ttl_ms=60000)

    def ask(who, method, body=None, at="/v1/leases/job", **headers):
        more = {} if body is None else {"body": body}
        return world.lease(method, at, {"Authorization": f"Bearer {tokens[who]}", **headers}, **more)
    wait_until(lambda: world.lease("GET", "/readyz").status == 200, "it is ready")
    grant = ask("a", "POST", {}).json
    check_equal([grant["holder"], grant["identity"]], ["a", "a"])
    ids = {"Lease-Id": grant["lease_id"]}
    check_equal([ask("b", "PUT", {}, **ids).code, ask("b", "DELETE", **ids).code, ask("b", "POST", {"lease_id": grant["lease_id"]}).code],
                ["not-yours"] * 3)
    check_equal([ask("a", "PUT", {}, **ids).json["identity"], ask("b", "GET").json["holders"][0]["identity"]], ["a", "a"])
    waits = Later(ask, "b", "POST", {"wait_ms": 30000})
    wait_until(lambda: 'what="queued"} 1' in ask("a", "GET", at="/metrics").body.decode(), "it waits")
    write_private(path, {"identities": identities({"a": tokens["a"]}), "rules": rules[:1]})
    world.lease_daemon.send(signal.SIGHUP)
    refused(waits.get(), 403, "forbidden")
    check_equal([ask("a", "DELETE", **ids).status, world.lease("GET", "/v1/leases/job").status], [204, 401])
    world.close()


@test
def what_nobody_began_is_renewed_and_released_by_any_identity():
    tokens, _, path = judged("a")
    world = Quorum(max_ttl_ms=60000)
    wait_until(lambda: world.lease("GET", "/readyz").status == 200, "it is ready")
    grant = world.acquire("job")
    judging = world.another("pawl-lease", "--access", str(path))
    wait_until(lambda: world.lease("GET", "/readyz").code == "store-not-ours", "one without --access serves it no more")
    check_in("with --access", world.lease("GET", "/readyz").json["detail"])
    refused(world.lease("POST", "/v1/leases/job", body={}), 503, "store-not-ours")
    everybody = world.another("pawl-lease", "--allow-anonymous")
    shown = {"Authorization": f"Bearer {tokens['a']}"}
    ids = {**shown, "Lease-Id": grant["lease_id"]}
    world.nodes[2]("DEL", "pawl:{node}:job")
    renewed, again = judging("PUT", "/v1/leases/job", ids, body={}), judging("POST", "/v1/leases/job", shown, body={"lease_id": grant["lease_id"]})
    check_equal([(one.status, one.json.get("token"), one.json.get("identity")) for one in (renewed, again)], [(200, grant["token"], None)] * 2)
    wait_until(lambda: world.nodes[2]("HGET", "pawl:{node}:job", "attempt"), "the renewal has brought it")
    check_equal([node("HGET", "pawl:{node}:job", "who") for node in world.nodes], [b""] * 3, "it is nobody's as before")
    check_equal(everybody("PUT", "/v1/leases/job", {"Lease-Id": grant["lease_id"]}, body={}).status, 200)
    check_equal(judging("DELETE", "/v1/leases/job", ids).status, 204)
    world.close()


def denied_when_it_is_granted(is_lost):
    """is_lost: and no node hears that it gives it back."""
    tokens, rules, path = judged("a", "b")
    world = Quorum("--access", str(path), "--store-timeout", "5s", max_ttl_ms=60000, troubled=is_lost)

    def ask(who, method="POST", body=None, at="/v1/leases/job", of=world.lease):
        return of(method, at, {"Authorization": f"Bearer {tokens[who]}"}, **({} if body is None else {"body": body}))
    wait_until(lambda: all(one("GET", "/readyz").status == 200 for one in world.both()), "they are ready")
    ends = time.monotonic() + ask("a", body={"ttl_ms": 1500}).json["ttl_ms"] / 1000
    waits = Later(ask, "b", body={"wait_ms": 30000, "ttl_ms": 60000})
    wait_until(lambda: 'what="queued"} 1' in ask("a", "GET", at="/metrics").body.decode(), "it waits")
    for node in world.nodes:
        node.stop()
    wait_until(lambda: time.monotonic() > ends, "the hold is over, and it has asked again", 5)
    write_private(path, {"identities": identities(tokens), "rules": rules[:1]})
    reloaded(world.lease_daemon)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    wait_until(lambda: ask("a", "GET", at="/v1/access").json["hash"] == digest, "it judges by the new rules")
    for line in world.lines[0] if is_lost else ():
        line.hold(TO_REDIS, b"_release")
    for node in world.nodes:
        node.go_on()
    if is_lost:
        refused(waits.get(), 504, "outcome-unknown")
        refused(ask("a", of=world.both()[1]), 409, "lease-held")
    else:
        refused(waits.get(), 403, "forbidden", identity="b", verb="acquire", lease="job")
        check_equal(ask("a").status, 201, "nobody holds it")
    world.close()


@test
@of_time
def who_waits_and_may_not_have_the_lease_any_more_gives_it_back_when_it_is_granted():
    for is_lost in (False, True):
        denied_when_it_is_granted(is_lost)


@test
def a_gateway_with_a_store_of_its_own_refuses_who_is_older_than_what_has_passed():
    world, upstream = Quorum(), Upstream()
    own = ["--redis", world.redis.url, "--allow-unsafe-redis"]
    check_equal(run_daemon("pawl-lease", *own, "--init-store").returncode, 0)
    table = routes_file(tempfile.mkdtemp(prefix="pawl-routes-"), [
        route(upstream, "/jobs/{id}", "job:{id}", guarantee="admitted", check="mark", store=world.keys.store)])
    own += ["--keys", world.keys_file, "--listen", "127.0.0.1:0"]
    for wrong in (["--check-store", world.keys.store], ["--check", "mark", "--check-store", "short"], ["--check", "dead"]):
        check_equal(run_daemon("pawl-gateway", *own, *wrong).returncode, 78, str(wrong))
    world.daemons += [Daemon("pawl-lease", *own),
                      Daemon("pawl-gateway", *own, "--routes", table, "--check", "mark", "--check-store", world.keys.store)]
    gateway = Client("gateway", world.daemons[-1].url, World.contract)
    wait_until(gateway.is_ready, "it is ready")
    old = world.acquire("job:1")
    world.release("job:1", old)
    new = world.acquire("job:1")
    answers = [gateway("PUT", "/jobs/1", {"Fencing-Token": grant["fencing_token"]}, b"x", held=False) for grant in (old, new, old)]
    check_equal([(answer.status, answer.code) for answer in answers], [(200, None), (200, None), (412, "stale-token")])
    check_in("guarantee=admitted;assumes=mark", answers[1].header("Fencing-Status"))
    path = "/v1/resources/job:2/x"
    old = world.acquire("job:2")
    world.release("job:2", old)
    new = world.acquire("job:2")
    for grant, method, at, status, code in (
            (old, "PUT", path, 201, None), (old, "PUT", path, 204, None), (new, "PUT", path, 204, None), (old, "PUT", path, 412, "stale-token"),
            (old, "DELETE", path, 412, "stale-token"), (old, "GET", path, 412, "stale-token"), (old, "GET", "/v1/check/job:2", 403, "stale-token"),
            (new, "GET", "/v1/check/job:2", 200, None), (new, "GET", path, 200, None), (new, "DELETE", path, 204, None)):
        answer = gateway(method, at, {"Fencing-Token": grant["fencing_token"]}, *([b"x"] if method == "PUT" else []))
        check_equal([answer.status, answer.code], [status, code], f"{method} {at} {grant['token']}")
        guarantee = "admitted" if "check" in at else "committed"
        check(code or answer.header("Fencing-Status").endswith(f"guarantee={guarantee};assumes=mark"), str(answer))
    check_equal(gateway("GET", path).header("Fencing-Mark"), str(new["token"]))
    other = Client("lease", world.daemons[-2].url, World.contract)("POST", "/v1/leases/job:2", body={}).json
    check_equal(gateway("PUT", path, {"Fencing-Token": other["fencing_token"]}, b"x").code, "wrong-store")
    world.close()
    upstream.close()


main(parts=2)
