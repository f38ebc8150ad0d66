#!/usr/bin/python3
"""test_takeover.py - who may take over when the primary is gone: three real Redises, promoted by hand; and what the one of before answers."""

import re
import signal
import time

from world import World, check, check_equal, check_in, main, of_time, test, test_in, wait_until
from world.asking import Later
from world.ports import own_port
from world.sentinel import FAILOVER_S, Sentinel, Watched
from world.trio import Line, Load, Trio, is_behind


@test_in(lambda: Trio(keep_wait="2s"))  # else one that stands still is taken out before the primary is killed
def nothing_that_was_acknowledged_is_lost_with_the_primary(world):
    load = Load(world)
    wait_until(lambda: len(load.written) > 100, "there is a load")
    world.kill_primary_ahead()
    world.promote(1, 2)
    before = len(load.written)
    wait_until(lambda: len(load.written) > before + 30, "the load goes on at the one that was promoted")
    load.end()
    load.is_kept()
    check_equal(set(load.others) - {503, 504}, set())
    world.wait_kept(1, 2)
    check_in('"proof":"complete"', world.lease_daemon.log())


@test_in(Trio)
def a_node_that_was_promoted_stays_in_the_set_while_the_primary_of_before_goes_on(world):
    held = world.acquire("job", ttl_ms=600000)
    world.nodes[1]("REPLICAOF", "NO", "ONE")
    began = time.monotonic()
    wait_until(lambda: world.lease("GET", "/readyz").code == "store-not-kept" and time.monotonic() > began + 1, "nothing is answered, and nobody taken out")
    world.nodes[0].kill()
    world.promote(1, 2)
    world.granted("other")
    check_equal(world.look("job")["holders"][0]["token"], held["token"])
    world.wait_kept(1, 2)


@test_in(lambda: Trio(keep_wait="2s"))
def a_node_that_was_promoted_stays_in_the_set_when_its_connections_are_ended_as_a_sentinel_does(world):
    world.acquire("job", ttl_ms=600000)
    world.nodes[1]("REPLICAOF", "NO", "ONE")
    began = time.monotonic()
    wait_until(lambda: world.lease("GET", "/readyz").code == "store-not-kept" and time.monotonic() > began + 1, "nothing is answered")
    began = time.monotonic()
    while time.monotonic() < began + 1:
        world.nodes[1]("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    world.nodes[0].kill()
    world.promote(1, 2)
    world.granted("other")


@test_in(Trio)
def a_node_that_was_promoted_stays_in_the_set_when_who_would_take_it_out_stood_still_before_it_was_asked(world):
    world.acquire("job", ttl_ms=600000)
    world.nodes[1]("REPLICAOF", "NO", "ONE")
    world.nodes[1].stop()
    wait_until(lambda: "absent" in str(world.lease("GET", "/readyz").json.get("away")), "it is missed", again_ms=5)
    world.lease_daemon.send(signal.SIGSTOP)
    began = time.monotonic()
    wait_until(lambda: time.monotonic() > began + 1.5, "it stands still for longer than such a node is waited for")
    world.lease_daemon.send(signal.SIGCONT)
    world.nodes[1].go_on()
    wait_until(lambda: world.lease("GET", "/readyz").code == "store-not-kept" and time.monotonic() > began + 3, "nothing is answered")
    world.nodes[0].kill()
    world.promote(1, 2)
    world.granted("other")


@test_in(lambda: Trio(copies=1))
def one_that_is_promoted_before_the_one_before_it_was_admitted_is_admitted_with_all_that_was_acknowledged(world):
    held = world.acquire("job", ttl_ms=600000)
    world.lease_daemon.process.send_signal(signal.SIGSTOP)
    world.nodes[0].kill()
    world.promote(1, 2)
    wait_until(lambda: world.nodes[2]("HGET", "pawl:{store}", "gate"), "the gateway has asked it")
    world.nodes[1].kill()
    world.promote(2)
    world.lease_daemon.process.send_signal(signal.SIGCONT)
    world.granted("other")
    check_equal(world.look("job")["holders"][0]["token"], held["token"])


@test_in(Trio)
def the_other_replica_is_not_taken_out_with_the_dead_primary_before_it_is_led_to_the_new_one(world):
    began = int(world.redis("HGET", "pawl:{store}", "epoch"))
    world.nodes[0].kill()
    world.promote(1)
    wait_until(lambda: all(one["since_ms"] > 1500 for one in world.lease("GET", "/readyz").json.get("away") or [{"since_ms": 0}]), "both are away")
    epoch = int(world.redis("HGET", "pawl:{store}", "epoch"))
    world.nodes[2].copy(world.redis.port)
    world.granted("job")
    check(epoch == int(world.redis("HGET", "pawl:{store}", "epoch")) > began, "it has not joined anew")
    world.wait_kept(1, 2)


@test_in(Trio)
def a_primary_that_is_started_again_in_its_place_goes_on_while_all_remember_and_else_is_behind(world):
    held = world.acquire("job", ttl_ms=600000)
    world.nodes[0].kill()
    world.nodes[0].start()
    world.granted("other")
    check_equal([one["token"] for one in world.look("job")["holders"]], [held["token"]])
    world.wait_kept(0, 1, 2)
    for node in (0, 2):
        world.nodes[node].kill()
    world.nodes[0].start()
    start_anew(world)
    is_behind(world, 0)
    check(re.search("make a node of the in-sync set the primary.*accept-loss", world.pawl("store", "status").stdout.lower(), re.S), "what to do")
    done = world.pawl("store", "recover", "--floor", "900000000", "--yes")
    check_equal(done.returncode, 0, done.stdout + done.stderr)
    check(world.granted("job")["token"] > 900000000, "by an operator's word")
    world.wait_kept(0, 1)


def connects(node):
    said = node("INFO", "stats")
    return sum(int(re.search(rb"\n%s:(\d+)" % name, said)[1]) for name in (b"sync_full", b"sync_partial_ok"))


@test_in(lambda: Trio(keep_wait="2s"))
def a_copy_is_asked_anew_at_another_primary_also_when_as_many_have_connected_there(world):
    world.acquire("before")
    wanted, (_, primary, copy) = connects(world.nodes[0]), world.nodes
    world.nodes[0].kill()
    primary("REPLICAOF", "NO", "ONE")
    while (now := connects(primary)) < wanted:
        copy("CONFIG", "SET", "rdb-key-save-delay", 30000 if now == wanted - 1 else 0)
        copy("REPLICAOF", "NO", "ONE")
        copy("SET", "other", "content")  # so it copies all
        copy.copy(primary.port)
        wait_until(lambda: b"state=online" in primary("INFO", "replication") and connects(primary) > now, "it is back")
    wait_until(lambda: b"aof_rewrite_in_progress:1" in copy("INFO", "persistence"), "what it has is not on its disk yet")
    copy.stop()  # what it has said of itself is of before
    world.promote(1)
    began = time.monotonic()
    wait_until(lambda: world.lease("GET", "/readyz").code == "store-not-kept" and time.monotonic() > began + 1.2, "the store is admitted")
    copy.go_on()
    wait_until(lambda: world.lease("POST", f"/v1/leases/{world.name()}", body={}).status == 201, "it is answered again")
    check_in(b"aof_rewrite_in_progress:0", copy("INFO", "persistence"))


def leads_elsewhere(world, number):
    """By hand, while connections that stand stay where they are (a name in the DNS, a TCP proxy), and the former primary goes on as a replica."""
    wait_until(lambda: len(world.record()[0].split()) == 6 and world.record()[2] == "", "all are in the set")
    primary = world.redis = world.nodes[number]
    world.line.to = primary.port
    primary("REPLICAOF", "NO", "ONE")
    for node in world.nodes:
        if node is not primary:
            node.copy(primary.port)


THREADS = ("--threads", "3")


@test_in(lambda: Trio(lease_flags=THREADS, gateway_flags=THREADS))
def all_is_answered_at_an_address_that_leads_to_another_primary_while_the_former_one_lives_on(world):
    for number in (1, 2, 0, 1):
        leads_elsewhere(world, number)
        held = world.granted(world.name(), ttl_ms=600000)
        path, token = f"/v1/resources/{held['lease']}", {"Fencing-Token": held["fencing_token"]}
        wait_until(lambda: world.gateway("PUT", path, token, b"x").status in (201, 204), "the gateway is answered, too")


@test_in(Trio)
def who_waits_and_who_listens_is_at_the_primary_to_which_an_address_leads_while_the_former_one_lives_on(world):
    before = world.granted("job", ttl_ms=600000)
    ear = world.listening("?lease=job")
    ear.until(b"listening")
    leads_elsewhere(world, 1)
    wait_until(lambda: world.lease("POST", "/v1/leases/job", body={"wait_ms": 100}).status == 409, "one can wait again")
    world.nodes[0].copy(1)  # nobody: what is told from now on it does not hear of
    wait_until(lambda: world.lease("DELETE", "/v1/leases/job", {"Lease-Id": before["lease_id"]}).status in (204, 410), "it is released")
    world.granted("job")
    said = ear.rest()  # the stream ends, and whoever comes back hears what it has missed
    last = said.rpartition(b"\nid: ")[2].split(b"\n")[0].decode()
    wait_until(lambda: b"event: granted" in world.listening(f"?lease=job&since={last}").until(b"\n\n"), "the grant is heard")


def start_anew(world):
    """The services, which remember what is in their state directories."""
    for daemon in world.daemons:
        daemon.kill()
    world.daemons.clear()
    world.lease_daemon, world.gateway_daemon = world.daemon("pawl-lease"), world.daemon("pawl-gateway")
    world.lease, world.gateway = world.client(world.lease_daemon), world.client(world.gateway_daemon)


@test_in(Trio)
def all_nodes_were_off_and_holds_survive_when_the_services_were_not_and_else_end(world):
    held = world.acquire("job", ttl_ms=600000)
    check_equal(world.gateway("PUT", "/v1/resources/job", {"Fencing-Token": held["fencing_token"]}, b"x").status, 201)
    for proof in ("complete", "incomplete"):
        for node in world.nodes:
            node.kill()
        for node in world.nodes:
            node.start()
        for node, line in zip(world.nodes[1:], world.copied_by):
            node.copy(line.port)
        if proof == "incomplete":
            start_anew(world)
        world.wait_kept(0, 1, 2, deadline_s=30)
        check_in(f'"proof":"{proof}"', world.lease_daemon.log())
        check_equal([one["token"] for one in world.look("job")["holders"]], [held["token"]] if proof == "complete" else [])
    check(world.granted("job")["token"] > held["token"], "its token rises")
    check_equal(world.gateway("GET", "/v1/resources/job").body, b"x")


@test_in(lambda: Trio(settings=((), ("--replica-priority", "0"))))
def a_node_outside_of_the_set_is_the_store_by_an_operators_word_and_no_other_one_is_from_then_on(world):
    node, = world.called(0)
    stored = world.granted("job", ttl_ms=600000)
    check_equal(world.gateway("PUT", "/v1/resources/job", {"Fencing-Token": stored["fencing_token"]}, b"kept").status, 201)
    wait_until(lambda: world.nodes[2]("DBSIZE") == world.nodes[0]("DBSIZE"), "it has that")
    refused = world.pawl("store", "accept-loss", node, "--yes")
    check_equal(refused.returncode, 1, refused.stdout)
    check_in("was not found to be behind", refused.stderr)
    world.copied_by[1].flows.clear()
    lost = world.granted("late", ttl_ms=600000)
    world.nodes[0].kill()
    world.copied_by[1].lead_to(world.copied_by[1].to)
    world.promote(2)
    is_behind(world, 2)
    for words, status, says in (((node,), 64, "--yes"), ((world.called(1)[0], "--yes"), 1, f"is not the primary, that is {node}")):
        refused = world.pawl("store", "accept-loss", *words)
        check_equal((refused.returncode, says in refused.stderr), (status, True), refused.stderr)
    is_behind(world, 2)
    done = world.pawl("store", "accept-loss", node, "--yes")
    check_equal(done.returncode, 0, done.stdout + done.stderr)
    for says in (r"It lacks [1-9]\d* changes", "is the store: epoch", "all holds have ended"):
        check(re.search(says, done.stdout), f"{says}: {done.stdout}")
    world.lease_daemon.line(lambda line: "store-loss-accepted" in line, "that it has learned of it")
    wait_until(lambda: world.lease.metric("pawl_store_losses_total") == 1, "it is counted")
    world.nodes[1].copy(world.nodes[2].port)
    world.wait_kept(0, 1)
    check_equal((world.look("job")["holders"], world.look("late")["holders"]), ([], []))
    check(world.granted("late")["token"] > lost["token"], "no token comes twice")
    check_equal(world.gateway("GET", "/v1/resources/job").body, b"kept")
    world.nodes[2].kill()
    world.nodes[0].start()
    world.promote(0)
    is_behind(world, 0)


@test_in(lambda: Trio(settings=((), ("--replica-priority", "0"))))
def who_would_recover_an_outsider_that_nobody_admits_hears_that_a_node_of_the_set_may_have_more(world):
    world.nodes[0].kill()
    world.promote(2)
    is_behind(world, 2)
    world.lease_daemon.kill()
    said = wait_until(lambda: "No lease service has come" in (said := world.pawl("store", "status").stdout) and said, "it is not counted any more")
    check(re.search("not in the in-sync set.*\n  First of all stop this Redis", said), said)
    done = world.pawl("store", "recover", "--floor", "5000000")
    check_equal((done.returncode, "a node of the set may have it" in done.stderr), (64, True), done.stderr)


@test_in(lambda: Trio(settings=((), ("--replica-priority", "0"))))
def a_node_of_the_set_that_has_copied_a_replica_which_lags_is_behind(world):
    world.wait_kept(0, 1)
    world.copied_by[1].flows.clear()
    world.acquire("job", ttl_ms=600000)
    world.nodes[1].copy(world.nodes[2].port)
    wait_until(lambda: b"master_link_status:up" in world.nodes[1]("INFO", "replication"), "it has copied it")
    world.nodes[0].kill()
    world.promote(1)
    is_behind(world, 1)


@test_in(lambda: Trio(copies=1, settings=((), ("--replica-priority", "0"))))
def a_node_of_the_set_that_has_copied_an_outsider_is_not_named_among_those_to_be_made_the_primary(world):
    world.wait_kept(0, 1)
    world.nodes[2]("REPLICAOF", "NO", "ONE")
    world.nodes[2]("SET", "other", "content")
    world.nodes[0].copy(world.nodes[2].port)
    wait_until(lambda: world.nodes[0]("EXISTS", "other"), "it has what the outsider has")
    world.nodes[0]("REPLICAOF", "NO", "ONE")
    is_behind(world, 0)
    own, other = world.called(0, 1)
    for client in (world.lease, world.gateway):
        said, _, in_set = wait_until(lambda: own in (said := client("GET", "/readyz").json["detail"].partition("In the set are"))[0] and said,  # noqa: B023
                                     "it says that this one may lack something")
        check(own not in in_set, in_set)
        if in_set:
            check_in(other, in_set)
        else:  # it stood still, and was taken out before
            check_in("No other node is in the set: pawl store accept-loss", said)


@test_in(lambda: Trio(copies=1))
def an_address_that_leads_from_the_only_one_of_the_set_to_another_that_was_started_again_leads_to_one_that_is_behind(world):
    token = {"Fencing-Token": world.granted("job", ttl_ms=600000)["fencing_token"]}
    check_equal(world.gateway("PUT", "/v1/resources/job", token, b"before").status, 201)
    for node in world.nodes[1:]:
        node.kill()
    world.wait_kept(0)
    check_equal(world.gateway("PUT", "/v1/resources/job", token, b"kept").status, 204)
    world.nodes[0].kill()
    world.nodes[2].start()  # as a primary, with what it has
    world.line.lead_to(world.nodes[2].port)
    is_behind(world, 2)
    world.nodes[2].kill()
    world.nodes[0].start()
    world.line.lead_to(world.nodes[0].port)
    wait_until(lambda: world.gateway("GET", "/v1/resources/job").status == 200, "its own is admitted")
    check_equal(world.gateway("GET", "/v1/resources/job").body, b"kept")


@test_in(lambda: Trio(copies=1, replicas=0))
def an_address_that_has_led_to_another_store_for_a_while_is_followed_back(world):
    other, port = World(), own_port()
    other.redis("CONFIG", "SET", "port", port)
    world.line.lead_to(port)
    for client in (world.lease, world.gateway):
        wait_until(lambda client=client: client("GET", "/readyz").code == "store-not-ours", "it is at another one")
    world.line.to = world.redis.port  # of whoever connects from now on
    wait_until(lambda: world.lease.is_ready() and world.gateway.is_ready(), "both are at their own")
    other.close()


@test
def a_node_whose_address_leads_to_another_one_is_not_taken_for_it():
    lines = [Line(0), Line(0)]  # else the run_id of a stale one would stand for what the other acknowledges
    world = Trio(copies=1, begins_whole=False, settings=[("--replica-announce-ip", "127.0.0.1", "--replica-announce-port", str(line.port)) for line in lines])
    for places, said in (((2, 1), ["announces-another"] * 2), ((1, 2), [])):
        for line, place in zip(lines, places):
            line.lead_to(world.nodes[place].port)
        wait_until(lambda said=said: [one["why"] for one in world.lease("GET", "/readyz").json.get("away", [{"why": ""}])] == said, f"away: {said}")
    check_equal(len(world.lease("GET", "/readyz").json["kept"]), 3)
    world.close()


def beats(world):
    return [world.redis("HGET", b"pawl:{store}:m:" + member, "beats") for member in sorted(world.redis("SMEMBERS", "pawl:{store}:members"))]


@test_in(lambda: Trio(copies=1, settings=((), ("--replica-priority", "0"))))
def a_gateway_that_comes_late_to_what_was_accepted_ends_no_hold_of_then(world):
    world.wait_kept(0, 1)
    token = {"Fencing-Token": world.granted("job", ttl_ms=600000)["fencing_token"]}
    wait_until(lambda: world.nodes[2]("DBSIZE") == world.nodes[0]("DBSIZE"), "it has that")
    world.copied_by[1].flows.clear()
    for text in b"abcdefgh":
        check(world.gateway("PUT", "/v1/resources/job", token, bytes([text])).status in (201, 204), "it is written")
    world.nodes[0].kill()
    world.gateway_daemon.process.send_signal(signal.SIGSTOP)
    world.copied_by[1].lead_to(world.copied_by[1].to)
    world.promote(2)
    wait_until(lambda: world.lease("GET", "/readyz").code == "store-behind", "it says that it is behind")
    done = world.pawl("store", "accept-loss", world.called(0)[0], "--yes")
    check_equal(done.returncode, 0, done.stdout + done.stderr)
    held = world.granted("later", ttl_ms=600000)
    world.gateway_daemon.process.send_signal(signal.SIGCONT)
    wait_until(lambda: world.gateway("GET", "/v1/resources/none").status == 404, "the gateway is there")
    before = beats(world)
    wait_until(lambda: all(one != then for one, then in zip(beats(world), before)), "each has said what it has seen")
    check_equal([one["token"] for one in world.look("later")["holders"]], [held["token"]])


# -- the lease on an epoch (docs/decisions/0050): nothing is answered of a primary that may have been deposed

@test_in(Watched)
@of_time
def a_gateway_that_is_left_at_a_former_primary_answers_nothing_of_it_after_3_s(world):
    token = {"Fencing-Token": world.acquire("left", ttl_ms=600000)["fencing_token"]}
    check(write(world, token).status < 300, "it writes")
    world.sentinel.kill()
    world.kill(world.lease_daemon)  # else it would take the replica out of the set
    world.replica("REPLICAOF", "NO", "ONE")
    alone_s, told_s, refused = time.monotonic(), 0, None
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


def write(world, token):
    return world.gateway("PUT", "/v1/resources/left", token, b"x")


@test_in(lambda: Watched("--store-timeout", "20s"))
def a_call_that_was_under_way_when_the_lease_on_the_epoch_ended_is_not_answered(world):
    token = {"Fencing-Token": world.acquire("left", ttl_ms=600000)["fencing_token"]}
    world.sentinel.kill()
    world.redis.stop()
    waits, acquires = Later(write, world, token), Later(world.lease, "POST", "/v1/leases/late", body={})
    is_over(world, world.gateway, world.lease)
    world.redis.go_on()
    for answer in (waits.get(), acquires.get()):  # 503: the heartbeat was answered first, and Redis itself has refused
        check_in((answer.status, answer.code), ((504, "outcome-unknown"), (503, "store-unavailable")))
    wait_until(lambda: write(world, token).status < 300, "and goes on")
    check(acquires.answer.status == 504 or world.lease("GET", "/v1/leases/late").json["token"] == 0, "nothing was granted")


@test_in(Watched)
def an_event_that_comes_when_the_lease_on_the_epoch_is_over_ends_the_stream(world):
    world.replica.kill()
    world.wait_kept(1)  # else the event waits for its copies
    stream = world.listening()
    stream.until(b" 200 ")
    world.primary()("HSET", "pawl:{store}", "majority", "1", "registrars", "1 nobody")  # who would have to echo
    is_over(world, world.lease)
    world.primary()("PUBLISH", "pawl:e:unheard", "00 1.1.1\trefused\t1\t\t\t5\t")
    check(b"unheard" not in stream.rest(), "the stream ends without what came too late")


@test_in(lambda: Watched("--store-timeout", "20s", copies=2))  # so that the replica is not taken out
def an_event_whose_copies_come_when_the_lease_on_the_epoch_is_over_ends_the_stream(world):
    stream = world.listening()
    stream.until(b" 200 ")
    world.replica.stop()
    world.primary()("PUBLISH", "pawl:e:unheard", "00 1.1.1\trefused\t1\t\t\t5\t")
    world.primary()("HSET", "pawl:{store}", "majority", "1", "registrars", "1 nobody")
    is_over(world, world.lease)
    world.replica.go_on()
    check(b"unheard" not in stream.rest(), "the stream ends without it")


def is_over(world, *clients):
    for client in clients:
        wait_until(lambda client=client: world.check_of(client) == "store-not-admitted", "the lease is over")


main(parts=2)
