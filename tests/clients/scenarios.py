"""scenarios.py - what every small client must do, whatever its language: begin(argv) starts its agent, and the tests below
are then those of the file that calls it. Its requests go through two relays; everybody else's do not."""

import atexit
import json
import os
import pathlib
import random
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time

from clients_test import AFTER, BEFORE, BUILD, DEADLINE_S, DURING, MUTE, ROOT, TRICKLE, Agent, Daemon, Flood, HttpRelay, Pass, Raw, Say, World, \
    certificate, check, check_equal, check_in, given, nobody, of_time, skip, test, wait_until
from world.ports import swallowing
from world.quorum import Quorum
from world.waiting import Waiter

CLIENT, WAITING, SEED = {}, [], random.randrange(1000)


def agents(argv):
    return argv if callable(argv) else lambda *how, **env: Agent(argv, *how, **env)


def begin(argv, missing=None, renews=True, enters=True, sessions=True, attempts=3):
    """missing: why the language cannot be run here; all tests are then not run. renews, enters, sessions (and several leases
    at once, and events): what the client has. attempts: how often it asks."""
    CLIENT.update(missing=missing, renews=renews, enters=enters, sessions=sessions, attempts=attempts)
    for run, needs in WAITING:
        if not needs or CLIENT[needs]:
            test(run)
    if missing:
        return
    CLIENT["world"] = world = World(gateway_flags=["--max-body", "100000"])
    CLIENT["lease"], CLIENT["gateway"] = HttpRelay(world.lease_daemon.port), HttpRelay(world.gateway_daemon.port)
    CLIENT["make"] = agents(argv)
    atexit.register(CLIENT["lease"].close)
    atexit.register(CLIENT["gateway"].close)
    agent_begins()


def agent_begins():
    CLIENT["agent"] = CLIENT["make"](CLIENT["lease"].url, CLIENT["gateway"].url)
    # The first request of a program that has just begun may take longer than others may.
    if CLIENT["agent"].ask("acquire", hold="first", name=CLIENT["world"].name())["outcome"] == "ok":
        CLIENT["agent"].ask("release", hold="first")


def end():
    if not CLIENT["missing"]:
        CLIENT["agent"].end()
        CLIENT["world"].close()


def scenario(function, needs=None):
    """A test of the client; with nothing planned. Its parameters name what of CLIENT it is given."""
    def run():
        if CLIENT["missing"]:
            skip(CLIENT["missing"])
        CLIENT["lease"].begin()
        CLIENT["gateway"].begin()
        try:
            given(function, **CLIENT)
        except Exception:
            CLIENT["agent"].kill()  # it would renew what it still holds beside the tests that follow
            CLIENT["lease"].begin()
            agent_begins()
            raise
    run.__name__, run.steps = function.__name__, function
    run = of_time(run)
    if CLIENT:
        return test(run)
    WAITING.append((run, needs))
    return run


def with_renewal(function):
    return scenario(function, "renews")


def outcome(told, wanted, code=None):
    check_equal(told["outcome"], wanted, f"{told}")
    if code is not None:
        check_equal(told["code"], code, f"{told}")


def granted(agent, name, hold="h", **ask):
    told = agent.ask("acquire", hold=hold, name=name, **ask)
    outcome(told, "ok")
    return told


def holders(world, name):
    return [(one["holder"], one["token"]) for one in world.look(name)["holders"]]


def history(world, name):
    return [item["type"] for item in world.lease("GET", f"/v1/leases/{name}/history").json["items"]]


def force(world, name):
    check_equal(world.lease("POST", f"/v1/leases/{name}/force-release", body={"reason": "a test"}).status, 200)


def every(fault):
    """For each attempt of a call."""
    return [fault] * CLIENT["attempts"]


def wait_past(when):
    wait_until(lambda: time.monotonic() > when, "time passes")


def problem(status, code, retryable=True, told=None, **headers):
    body = {"type": f"/problems/{code}", "title": "t", "status": status, "detail": "d", "code": code, "retryable": retryable, **(told or {})}
    return Say(status, json.dumps(body).encode(), **headers)


MINE = "mine-" + "x" * 22


def grant(name, **other):
    """A grant as Pawl would tell it, but for what is other."""
    told = {"lease": name, "token": 1, "fencing_token": f'1;lease="{name}"', "lease_id": MINE, "holder": "anonymous",
            "mode": "exclusive", "holds": 1, "epoch": 1, "ttl_ms": 1000, "expires_in_ms": 1000, "renew_in_ms": 333,
            "waited_ms": 0}
    return Say(200, json.dumps({**told, **other}).encode(), "application/json")


def no_answers():
    """What no Pawl would answer, in all sorts."""
    ok, deep = b"HTTP/1.1 200 X\r\nETag: \"e\"\r\nFencing-Mark: 1\r\nFencing-Status: pawl;\r\n", b"[" * 200000
    return [Raw(b"GARBAGE " * 100), Raw(ok + b"Content-Length: abc\r\n\r\n{}"),
            Raw(ok + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n"),
            Raw(ok + b"Content-Type: text/plain\r\n\r\nhalf a bo"), Say(409, deep), Say(201, deep, "application/json"),
            Raw(ok + b"Content-Length: 100\r\n\r\n"), Raw(b"HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", stays=True),
            Raw(b"HTTP/1.1 103 X\r\n\r\n"), Raw(ok + b"X: y\r\n" * 100000 + b"\r\n"), Raw(b"")]


# -- without faults


@scenario
def a_granted_lease_writes_reads_removes_and_its_release_frees_it(world, agent, gateway, name):
    told = granted(agent, name, holder="h é 1")
    check_equal(holders(world, name), [("h é 1", int(told["token"]))])
    outcome(agent.ask("put", hold="h", key=f"{name}/a b", body="x y"), "ok")
    check_equal(agent.ask("get", hold="h", key=f"{name}/a b")["body"], "x y")
    check_equal(world.gateway("GET", f"/v1/resources/{name}/a%20b").body, b"x y")
    outcome(agent.ask("delete", hold="h", key=f"{name}/a b"), "ok")
    outcome(agent.ask("delete", hold="h", key=f"{name}/a b"), "not-done", "not-found")
    outcome(agent.ask("release", hold="h"), "ok")
    check_equal(world.look(name)["state"], "free")
    check_equal(int(agent.ask("remaining", hold="h")["remaining_ms"]), 0)
    outcome(agent.ask("put", hold="h", key=name, body="x"), "lost")
    check_equal(gateway.methods(), ["PUT", "GET", "DELETE", "DELETE"], "after the release nothing is sent")


@scenario
def renew_and_release_send_the_fencing_token(world, agent, lease):
    told = granted(agent, world.name())
    outcome(agent.ask("renew", hold="h", ttl_ms=20000), "ok")
    outcome(agent.ask("release", hold="h"), "ok")
    check_equal(lease.methods(), ["POST", "PUT", "DELETE"])
    check_equal([fencing_token(head) for head in lease.seen[1:]], [told["fencing"]] * 2)


def fencing_token(request):
    """As it was sent, or None."""
    found = re.search(r"(?i)\r\nfencing-token: *(.*)\r\n", request)
    return found and found[1]


@with_renewal
def a_release_of_what_is_lost_sends_the_fencing_token(world, agent, lease, name):
    told = granted(agent, name, hold="over", ttl_ms=1500)
    force(world, name)
    agent.lost("over")
    lease.begin()
    outcome(agent.ask("release", hold="over"), "lost")
    check_equal([fencing_token(head) for head in lease.seen], [told["fencing"]])


@scenario
def what_another_holds_is_told_as_held_and_by_whom(world, agent, lease, name):
    world.acquire(name, holder="somebody")
    told = agent.ask("acquire", hold="h", name=name)
    outcome(told, "held", "lease-held")
    check_equal(told["holder"], "somebody")
    check_equal(lease.methods(), ["POST"], "asked once")


@scenario
def a_wait_that_is_over_is_held(world, agent, name):
    world.acquire(name)
    outcome(agent.ask("acquire", hold="h", name=name, wait_ms=100), "held", "wait-timeout")
    check_equal(world.look(name)["waiting"], 0)


@scenario
def who_waits_is_granted_and_what_was_waited_does_not_count(world, agent, name):
    other = world.acquire(name)
    agent.send("acquire", hold="h", name=name, wait_ms=8000, ttl_ms=3000)
    wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
    wait_past(time.monotonic() + 1.4)
    released = time.monotonic()
    world.release(name, other)
    told = agent.answer()
    outcome(told, "ok")
    check(2000 - (time.monotonic() - released) * 1000 < int(told["remaining_ms"]) <= 3000, f"{told}")  # 1600 with what was waited
    agent.ask("release", hold="h")


@scenario
def on_a_quorum_it_waits_is_granted_and_gives_back(gateway):
    quorum = Quorum(max_ttl_ms=5000)
    agent, name = CLIENT["make"](quorum.lease_daemon.url, gateway.url), quorum.name()
    told = [agent.ask("acquire", hold="h", name=name, mode="shared") for _ in range(2)][1]  # the first one: agent_begins()
    outcome(told, "not-done", "not-in-quorum-mode")
    quorum.acquire(name, ttl_ms=300)
    granted(agent, name, ttl_ms=5000, wait_ms=8000)
    outcome(agent.ask("release", hold="h"), "ok")
    check_equal(quorum.acquire(name)["token"], 3, "free at once")
    agent.end()
    quorum.close()


def asked(relay):
    """What was asked for in each acquire, as (wait_ms, keep_place_ms)."""
    bodies = [text for text in relay.seen if text.startswith("POST ")]
    return [tuple(int((re.search(rf'"{key}": *([0-9]+)', text) or [0, 0])[1]) for key in ("wait_ms", "keep_place_ms"))
            for text in bodies]


@scenario
def a_long_wait_is_asked_for_in_slices_and_keeps_its_place(agent, lease, name):
    lease.begin(problem(409, "wait-timeout", told={"place_kept_ms": 20000}), *[problem(503, "store-not-admitted")] * 3)  # Redis was restarted
    granted(agent, name, wait_ms=60000)
    check_equal([keep for _, keep in asked(lease)], [20000] * 5)
    check(all(10000 < wait <= 20000 for wait, _ in asked(lease)), f"{asked(lease)}")
    agent.ask("release", hold="h")


@scenario
def who_waits_keeps_its_place_however_often_its_connection_is_cut(world, agent, lease, name):
    first = world.acquire(name)
    agent.send("acquire", hold="h", name=name, wait_ms=60000)
    wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
    behind = Waiter(world, world.lease_daemon, name, "behind")
    for count in (2, 3):
        lease.cut()
        wait_until(lambda: len(lease.seen) >= count, "it asks again")  # pylint: disable=cell-var-from-loop
    chance = random.Random(SEED)
    for _ in range(8):
        wait_past(time.monotonic() + chance.uniform(0, 0.2))
        lease.cut()
    wait_until(lambda: world.look(name)["waiting"] == 2, "they wait")
    world.release(name, first)
    told = agent.answer()
    outcome(told, "ok")
    check_equal(holders(world, name), [("anonymous", int(told["token"]))], f"seed {SEED}")
    outcome(agent.ask("release", hold="h"), "ok")
    check(behind.told()["token"] > int(told["token"]), f"first come, first served, seed {SEED}")
    world.release(name, behind.told())


@scenario
def who_waits_sits_out_a_restart_and_keeps_its_place(world, name):
    first = world.acquire(name)
    victim = Daemon("pawl-lease", *world.flags)
    relay = HttpRelay(victim.port)
    aside = CLIENT["make"](relay.url, relay.url)
    aside.send("acquire", hold="h", name=name, wait_ms=60000)
    wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
    behind = Waiter(world, world.lease_daemon, name, "behind")
    victim.end()
    wait_until(lambda: len(relay.seen) >= 1 and relay.refused >= 1, "it asks, and nobody is there")
    again = Daemon("pawl-lease", *world.flags)
    relay.to = again.port
    world.release(name, first)
    told = aside.answer()
    outcome(told, "ok")
    check_equal(holders(world, name), [("anonymous", int(told["token"]))])
    outcome(aside.ask("release", hold="h"), "ok")
    world.release(name, behind.told())
    aside.end()
    relay.close()
    check_equal(again.end(), 0)


def short_sliced(client, agent, begins):
    """begins(folder): how an agent of the copy there is begun, whose client has slices of 3 s; agent: what of tests/clients it needs."""
    def a_break_late_in_a_slice_is_sat_out_from_then_on(world):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / client, os.path.join(folder, client), ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
            for file in (one for one in pathlib.Path(folder, client).iterdir() if one.is_file()):
                file.write_text(re.sub(r"(?i)(slice(_ms)? *= *)20(?=[ _0])", r"\g<1>3", file.read_text(encoding="utf-8")), encoding="utf-8")
            if agent:
                place = pathlib.Path(folder, "tests/clients", agent)
                place.parent.mkdir(parents=True)
                (shutil.copytree if (ROOT / "tests/clients" / agent).is_dir() else shutil.copy)(ROOT / "tests/clients" / agent, place)
            sits_a_late_break_out(world, agents(begins(folder)))
    scenario(a_break_late_in_a_slice_is_sat_out_from_then_on)


def sits_a_late_break_out(world, make):
    name = world.name()
    first = world.acquire(name)
    relay = HttpRelay(world.lease_daemon.port)
    aside = make(relay.url, relay.url)
    aside.send("acquire", hold="h", name=name, wait_ms=60000)
    wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
    wait_past(time.monotonic() + 2.4)
    there, relay.to = relay.to, int(nobody().rsplit(":", 1)[1])
    relay.cut()
    wait_until(lambda: relay.refused >= 4, "it asks, and nobody is there")
    check(all(wait <= 3000 for wait, _ in asked(relay)), "its slices are short")
    world.release(name, first)
    relay.to = there
    outcome(aside.answer(), "ok")
    outcome(aside.ask("release", hold="h"), "ok")
    aside.end()
    relay.close()


def who_gives_up_between_two_requests_is_told_unknown_and_leaves_no_hold_behind(world, agent, lease, name):
    """Of those that can be given up: in the pause before the sixth attempt, which would be granted."""
    lease.begin(*[problem(503, "store-not-admitted")] * 5)
    outcome(agent.ask("acquire", hold="h", name=name, wait_ms=60000, cancel_ms=720), "unknown", "aborted")
    check_equal(world.look(name)["state"], "free")


@scenario
def a_wait_that_is_over_leaves_no_place_behind(world, agent, lease, name):
    world.acquire(name)
    agent.send("acquire", hold="h", name=name, wait_ms=1000)
    wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
    lease.cut()
    outcome(agent.answer(), "unknown")
    check_equal(asked(lease)[-1], (1, 0), "the last one gives the place back")
    check_equal(world.look(name)["waiting"], 0)


@scenario
def a_shared_hold_is_shared(agent, name):
    granted(agent, name, mode="shared")
    granted(agent, name, hold="i", mode="shared")
    outcome(agent.ask("put", hold="h", key=name, body="x"), "not-done", "wrong-mode")
    agent.ask("release", hold="h")
    agent.ask("release", hold="i")


@scenario
def a_mistake_of_the_callers_sends_nothing(world, agent, lease, gateway, name):
    outcome(agent.ask("acquire", hold="h", name="no/name"), "mistake")
    outcome(agent.ask("acquire", hold="h", name=world.name(), lease_id="short"), "mistake")
    outcome(agent.ask("acquire", hold="h", name=world.name(), ttl_ms=1), "mistake")
    check_equal(lease.methods(), [])
    granted(agent, name)
    for key in (f"{name}/../other", f"{name}//x", f"{name}/NO-UTF-8", ""):
        outcome(agent.ask("put", hold="h", key=key, body="x"), "mistake")
    check_equal(gateway.methods(), [])
    agent.ask("release", hold="h")
    for odd in ("?x=1", "#x"):
        aside = CLIENT["make"](lease.url + odd, gateway.url)
        outcome(aside.ask("acquire", hold="h", name=world.name()), "mistake")
        aside.end()
    check_equal(lease.methods()[-1], "DELETE")


# -- acquire, and what the wire does to it


@scenario
def an_acquire_whose_answer_is_lost_is_asked_again_and_granted_once(world, agent, lease):
    for fault in (BEFORE, DURING, AFTER, MUTE) if CLIENT["renews"] else (DURING, AFTER):
        name = world.name()
        lease.begin(fault)
        told = granted(agent, name, ttl_ms=20000)
        check_equal(lease.methods()[:2], ["POST", "POST"], fault)
        check_equal(history(world, name), ["granted"], fault)
        check_equal([token for _, token in holders(world, name)], [int(told["token"])])
        agent.ask("release", hold="h")


@scenario
def the_deadline_counts_from_when_the_request_was_sent(world, agent, lease):
    held_back = Pass(back=True)
    lease.begin(held_back)
    sent = time.monotonic()
    agent.send("acquire", hold="h", name=world.name(), ttl_ms=20000)
    held_back.met.wait(10)
    wait_past(time.monotonic() + 0.5)
    held_back.go()
    told = agent.answer()
    outcome(told, "ok")
    check(19500 - (time.monotonic() - sent) * 1000 < int(told["remaining_ms"]) <= 19500, f"{told}")
    agent.ask("release", hold="h")


@scenario
def an_acquire_without_any_answer_is_unknown_and_given_back(world, agent, lease, name):
    lease.begin(*every(AFTER))
    outcome(agent.ask("acquire", hold="h", name=name, ttl_ms=60000), "unknown")
    check_equal(lease.methods(), every("POST") + ["DELETE"])
    wait_until(lambda: world.look(name)["state"] == "free", "it was given back")


@scenario
def a_lease_id_of_the_callers_is_not_given_back(world, agent, lease):
    name, mine = world.name(), "mine-" + "x" * 22
    lease.begin(*every(AFTER))
    outcome(agent.ask("acquire", hold="h", name=name, lease_id=mine), "unknown")
    token = world.look(name)["token"]
    check_equal(int(granted(agent, name, lease_id=mine)["token"]), token, "the same hold")
    agent.ask("release", hold="h")
    outcome(agent.ask("acquire", hold="h", name=name, lease_id=mine), "lost", "hold-over")


@with_renewal
def a_grant_that_came_too_late_is_given_back_unless_the_lease_id_was_proposed(world, agent, lease):
    for more, methods in (({}, ["POST", "DELETE"]), ({"lease_id": MINE}, ["POST"])):
        late = Pass(back=True)
        lease.begin(late)
        agent.send("acquire", hold="h", name=world.name(), ttl_ms=200, **more)
        late.met.wait(10)
        wait_past(time.monotonic() + 0.3)
        late.go()
        outcome(agent.answer(), "lost", "deadline-passed")
        check_equal(lease.methods(), methods)


@scenario
def a_refusal_after_a_lost_answer_is_unknown(world, agent, lease, name):
    late = Pass(there=True)
    lease.begin(late)
    agent.send("acquire", hold="h", name=name)
    late.met.wait(10)
    world.acquire(name, holder="somebody")
    told = agent.answer()
    outcome(told, "unknown")
    late.go()


@scenario
def nobody_there_is_certainly_not_done(world):
    with swallowing() as deaf:
        for url in (nobody(), f"http://127.0.0.1:{deaf}"):
            aside = CLIENT["make"](url, url)
            told = [aside.ask("acquire", hold="h", name=world.name()) for _ in range(2)][1]  # the first one: agent_begins()
            outcome(told, "not-done", "not-sent")
            check_equal(told["retryable"], "1")
            aside.end()


@scenario
def slow_bytes_do_not_stretch_the_time_limit(world, agent, lease):
    lease.begin(TRICKLE, *every(AFTER)[1:])
    begun = time.monotonic()
    outcome(agent.ask("acquire", hold="h", name=world.name(), ttl_ms=300), "unknown")
    check(time.monotonic() - begun < 10, "took longer than all attempts may; the answer would take 40 s")


@scenario
def each_answer_is_told_as_what_it_is(world, agent, lease, name):
    refused = [(problem(503, "store-unavailable"), "not-done"), (problem(504, "outcome-unknown"), "unknown"),
               (problem(500, "internal", False), "unknown"), (Say(503, b"<html>", "text/html"), "unknown"),
               (Say(502, b"<html>", "text/html"), "unknown"), (Say(201, b"{", "application/json"), "unknown"),
               (Say(201, b'{"token":"1"}', "application/json"), "unknown"), (Say(302, b""), "unknown"),
               (problem(422, "out-of-range", False), "not-done"), (Say(400, b""), "unknown"),
               (Say(404, b"not Pawl", "text/html"), "unknown"),
               (Say(429, b'{"code":"rate-limited","status":429}'), "unknown"), (Say(401, b"", "text/html"), "unknown"),
               (problem(409, "superseded", False), "not-done"), (problem(409, "hold-over", False), "lost"),
               (problem(409, "wait-timeout"), "held")]
    for said, wanted in refused if CLIENT["renews"] else refused[1:4] + refused[5:8:2]:  # a shell is slow
        lease.begin(*every(said))
        told = agent.ask("acquire", hold="h", name=name)
        check_equal(told["outcome"], wanted, f"{said.data[:400]}")
        check_equal(world.look(name)["state"], "free")
    lease.begin(problem(503, "store-unavailable"))
    granted(agent, name)
    lease.begin(problem(504, "outcome-unknown"), problem(409, "lease-held"))
    outcome(agent.ask("acquire", hold="i", name=world.name()), "unknown")
    agent.ask("release", hold="h")


@scenario
def a_service_that_is_killed_while_one_waits_is_never_a_refusal(world, name):
    world.acquire(name)
    victim = Daemon("pawl-lease", *world.flags)
    relay = HttpRelay(victim.port)
    aside = CLIENT["make"](relay.url, relay.url)
    aside.send("acquire", hold="h", name=name, wait_ms=1200)
    wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
    victim.kill()
    told = aside.answer()
    outcome(told, "unknown")
    aside.end()
    relay.close()


@scenario
def what_somebody_between_answers_is_no_end(world, agent, lease, gateway, name):
    granted(agent, name, ttl_ms=60000)
    foreign = [Say(200, b""), Say(200, b"{}", "application/json"), Say(201, b"<html>", "text/html"), Say(204, b""),
               Say(404, b"<html>", "text/html"), Say(403, b""), Say(413, b""), Say(405, b'{"code":"not-found"}')]
    for said in foreign if CLIENT["renews"] else foreign[::3]:
        for words in ({"body": "x"}, None, {}):
            gateway.begin(*every(said))
            if words is None:
                told = agent.ask("delete", hold="h", key=name)
            else:
                told = agent.ask("put" if words else "get", hold="h", key=name, **words)
            outcome(told, "unknown")
    check_equal(world.gateway("GET", f"/v1/resources/{name}").status, 404)
    lease.begin(*every(Say(200, b"<html>", "text/html")))
    outcome(agent.ask("release", hold="h"), "unknown")


@scenario
def what_is_no_http_or_no_json_is_unknown(agent, lease, gateway, name):
    granted(agent, name, ttl_ms=600000)
    for said in no_answers() if CLIENT["renews"] else no_answers()[:4]:
        lease.begin(*every(said))
        outcome(agent.ask("acquire", hold="i", name=f"{name}-other"), "unknown")
        check_equal(lease.methods(), every("POST") + ["DELETE"], "it is given back")
        gateway.begin(*every(said))
        outcome(agent.ask("put", hold="h", key=name, body="x"), "unknown")
        check_equal(gateway.methods(), ["PUT"], f"{said.data[:40]}")
        gateway.begin(*every(said))
        outcome(agent.ask("get", hold="h", key=name), "unknown")
    lease.begin()
    outcome(agent.ask("release", hold="h"), "ok")


@scenario
def a_grant_beyond_the_limits_is_unknown(agent, lease, name):
    others = [{"expires_in_ms": 86400001}, {"expires_in_ms": 9 * 10**18}, {"expires_in_ms": 10**400}, {"expires_in_ms": -1},
              {"expires_in_ms": 1e3 + 0.5}, {"expires_in_ms": True}, {"waited_ms": 10**400}, {"token": 10**15},
              {"fencing_token": "1\r\nX: y"}, {"fencing_token": ""}, {"fencing_token": "1;x=\u00e9"}, {"lease_id": "x" * 22},
              {"lease": "other"}, {"token": 0}, {"ttl_ms": 0}]
    for other in others if CLIENT["renews"] else others[2:9:6] + others[-2:]:
        lease.begin(*every(grant(name, **other)))
        outcome(agent.ask("acquire", hold="i", name=name, lease_id=MINE), "unknown")


@scenario
def an_answer_without_an_end_is_unknown_and_not_kept(lease, gateway, name):
    patient = CLIENT["make"](lease.url, gateway.url, 10000)  # on a slow machine, too, it could take more than it may
    granted(patient, name, ttl_ms=60000)
    flood = Flood()
    gateway.begin(flood, *every(BEFORE)[1:])
    outcome(patient.ask("get", hold="h", key=name), "unknown")
    under_way = sum(int(pathlib.Path(f"/proc/sys/net/ipv4/tcp_{one}mem").read_text(encoding="ascii").split()[2]) for one in "rw")
    check(flood.sent < (66 << 20) + under_way, f"it took {flood.sent >> 20} MiB: more than 64, and what the kernel may keep under way")
    patient.ask("release", hold="h")
    patient.end()


@scenario
def a_redirect_is_not_followed(agent, lease, gateway, name):
    granted(agent, name, ttl_ms=60000)
    for status in (301, 302, 307, 308) if CLIENT["renews"] else (307,):
        gateway.begin(*every(Say(status, b"", Location=f"{lease.url}/v1/resources/{name}")))
        lease.begin(*every(Say(status, b"", Location=f"{gateway.url}/v1/leases/{name}-x")))
        outcome(agent.ask("put", hold="h", key=name, body="x"), "unknown")
        outcome(agent.ask("get", hold="h", key=name), "unknown")
        check_equal(lease.methods(), [], "the lease service was not asked instead")
        gateway.begin()
        outcome(agent.ask("acquire", hold="i", name=f"{name}-x", lease_id=MINE), "unknown")
        check_equal(gateway.methods(), [], "the gateway was not asked instead")
    lease.begin()
    agent.ask("release", hold="h")


@scenario
def however_long_it_is_told_to_wait_it_does_not(world, agent, lease):
    for again in ("100000", "-1", "never") if CLIENT["renews"] else ("100000",):
        lease.begin(*every(problem(503, "overloaded", Retry_After=again)))
        told = agent.ask("acquire", hold="i", name=world.name())
        outcome(told, "not-done", "overloaded")
        check_equal((told["retryable"], lease.methods()), ("1", every("POST")))


# -- renew and release


@scenario
def a_shorter_renewal_without_an_answer_or_under_another_token_is_unknown_and_brings_the_end_nearer(world, agent, lease):
    for ttl_ms, is_answered in ((3000, False), (5000, True)):
        name = world.name()
        token = int(granted(agent, name, lease_id=MINE, ttl_ms=60000)["token"])
        lease.begin(*every(grant(name, token=token + 1, ttl_ms=86400000, expires_in_ms=86400000) if is_answered else AFTER))
        outcome(agent.ask("renew", hold="h", ttl_ms=ttl_ms), "unknown")
        left = int(agent.ask("remaining", hold="h")["remaining_ms"])
        check(left <= ttl_ms, f"{left} ms left")
        if CLIENT["renews"] and not is_answered:
            wait_until(lambda: len(lease.methods()) > CLIENT["attempts"], "it is renewed before that")
            outcome(agent.ask("check", hold="h"), "ok")
        agent.ask("release", hold="h")


@with_renewal
def a_renewal_that_is_answered_with_garbage_is_tried_again(world, agent, lease):
    granted(agent, world.name(), hold="g", ttl_ms=3000)
    lease.begin(*no_answers()[1:5:3], no_answers()[2])
    wait_until(lambda: lease.methods().count("PUT") >= 4, "it renews again")
    outcome(agent.ask("check", hold="g"), "ok")
    agent.ask("release", hold="g")


@with_renewal
def a_renewal_that_nobody_answers_leaves_time_for_another(world, lease, gateway):
    """However long an attempt may take: a third of the ttl is enough for this one."""
    aside = CLIENT["make"](lease.url, gateway.url, timeout_ms=30000)
    granted(aside, world.name(), hold="g", ttl_ms=6000)
    lease.begin(MUTE)
    wait_until(lambda: lease.methods().count("PUT") >= 2 and int(aside.ask("remaining", hold="g")["remaining_ms"]) > 4000,
               "it renews again")
    outcome(aside.ask("check", hold="g"), "ok")
    aside.ask("release", hold="g")
    aside.end()


@with_renewal
def renewals_that_trickle_do_not_hide_the_deadline(world, agent, lease):
    lease.begin(None, *[TRICKLE] * 50)
    granted(agent, world.name(), hold="slow", ttl_ms=900)
    begun = time.monotonic()
    check_equal([one["code"] for one in agent.lost("slow")], ["deadline-passed"])
    check(time.monotonic() - begun < 10, "told long after the deadline; an answer takes 40 s")
    check_equal(int(agent.ask("remaining", hold="slow")["remaining_ms"]), 0)


@scenario
def a_release_whose_answer_is_lost_is_asked_again(world, agent, lease):
    for fault in (BEFORE, DURING, AFTER):
        name = world.name()
        granted(agent, name)
        lease.begin(fault)
        outcome(agent.ask("release", hold="h"), "ok")
        check_equal(lease.methods(), ["DELETE", "DELETE"], fault)
        check_equal(world.look(name)["state"], "free")


@scenario
def what_comes_before_an_answer_is_none(world, agent, lease):
    granted(agent, world.name())
    lease.begin(Raw(b"HTTP/1.1 102 X\r\n\r\nHTTP/1.1 103 X\r\nLink: </a>\r\n\r\nHTTP/1.1 204 X\r\n\r\n"))
    outcome(agent.ask("release", hold="h"), "ok")
    check_equal(lease.methods(), ["DELETE"])


@scenario
def a_release_without_any_answer_is_unknown(world, agent, lease):
    granted(agent, world.name(), ttl_ms=3000)
    lease.begin(MUTE, *every(AFTER)[1:])
    outcome(agent.ask("release", hold="h"), "unknown")


@scenario
def a_release_of_what_was_ended_by_force_is_lost(world, agent, name):
    granted(agent, name, ttl_ms=60000)
    force(world, name)
    told = agent.ask("release", hold="h")
    outcome(told, "lost", "lease-lost")
    check_equal(told["ended"], "forced")


@with_renewal
def a_shorter_renewal_brings_the_end_nearer_while_it_is_under_way(world, lease, gateway):
    aside, late, begun = CLIENT["make"](lease.url, gateway.url, timeout_ms=30000), Pass(back=True), time.monotonic()
    granted(aside, world.name(), ttl_ms=60000)
    lease.begin(late)
    aside.send("renew", hold="h", ttl_ms=500)
    check_equal([one["code"] for one in aside.lost("h")], ["deadline-passed"])
    check(time.monotonic() - begun < DEADLINE_S - 3, "its answer came")
    late.go()
    outcome(aside.answer(), "lost")
    aside.end()


@with_renewal
def a_shorter_renewal_that_was_not_done_changes_nothing(agent, lease, name):
    granted(agent, name, ttl_ms=60000)
    lease.begin(*[problem(503, "overloaded")] * 9)
    outcome(agent.ask("renew", hold="h", ttl_ms=1000), "not-done")
    left = int(agent.ask("remaining", hold="h")["remaining_ms"])
    check(left > 40000, f"{left} ms left")
    lease.begin()
    agent.ask("release", hold="h")


@with_renewal
def a_shorter_renewal_that_arrives_late_does_not_end_it_unseen(world, agent, lease, name):
    granted(agent, name, ttl_ms=60000)
    late = Pass(there=True)
    lease.begin(late, *[BEFORE] * 9)
    outcome(agent.ask("renew", hold="h", ttl_ms=2000), "unknown")
    lease.begin()
    outcome(agent.ask("renew", hold="h", ttl_ms=60000), "ok")
    left = int(agent.ask("remaining", hold="h")["remaining_ms"])
    check(0 < left <= 2000, f"{left} ms left")
    late.go()
    wait_until(lambda: world.look(name)["holders"][0]["expires_in_ms"] <= 2000, "it arrives")
    renewals = lease.methods().count("PUT")
    wait_until(lambda: lease.methods().count("PUT") > renewals + 3, "it is renewed for longer than those 2 s")
    outcome(agent.ask("check", hold="h"), "ok")
    agent.ask("release", hold="h")


@with_renewal
def a_hold_outlives_its_ttl_because_it_is_renewed(world, agent, lease, name):
    told = granted(agent, name, ttl_ms=1200)
    lease.begin(Pass(), AFTER, Pass(), BEFORE)
    wait_until(lambda: lease.methods().count("PUT") >= 6, "it renews, also after a lost answer")
    check_equal([token for _, token in holders(world, name)], [int(told["token"])])
    outcome(agent.ask("check", hold="h"), "ok")
    agent.ask("release", hold="h")
    check_equal(history(world, name), ["granted", "released"])


@with_renewal
def a_hold_that_is_ended_by_force_is_told_once_and_writes_no_more(world, agent, gateway, name):
    granted(agent, name, hold="forced", ttl_ms=1500)
    force(world, name)
    check_equal([one["code"] for one in agent.lost("forced")], ["lease-lost"])
    check_equal(int(agent.ask("remaining", hold="forced")["remaining_ms"]), 0)
    outcome(agent.ask("put", hold="forced", key=name, body="x"), "lost")
    check_equal(gateway.methods(), [], "nothing was sent")
    outcome(agent.ask("release", hold="forced"), "lost")
    check_equal(len(agent.lost("forced")), 1)


@with_renewal
def a_hold_is_lost_at_its_deadline_when_the_service_is_killed(world, name):
    victim = Daemon("pawl-lease", *world.flags)
    aside = CLIENT["make"](victim.url, CLIENT["gateway"].url)
    granted(aside, name, hold="k", ttl_ms=900)
    victim.send(signal.SIGKILL)
    check_equal([one["code"] for one in aside.lost("k")], ["deadline-passed"])
    check_equal(int(aside.ask("remaining", hold="k")["remaining_ms"]), 0)
    outcome(aside.ask("put", hold="k", key=name, body="x"), "lost")
    aside.end()


@with_renewal
def a_loss_is_told_also_to_who_releases_at_once(world, agent):
    holds = [f"now{number}" for number in range(5)]
    outcome(agent.ask("session", hold="now-s", ttl_ms=1500), "ok")
    granted(agent, world.name(), hold="now-in", session="now-s")
    for hold in holds:
        granted(agent, world.name(), hold=hold, ttl_ms=1500)
    agent.stop()
    wait_past(time.monotonic() + 1.6)
    for hold in ["now-s"] + holds:
        agent.send("release", hold=hold)
    agent.go_on()
    check_equal([agent.answer()["outcome"] for _ in range(6)], ["lost"] * 6)
    check_equal([one["code"] for hold in ["now-s", "now-in"] + holds for one in agent.lost(hold)], ["deadline-passed"] * 7)


@with_renewal
def a_renewal_that_is_answered_too_late_does_not_bring_it_back(world, agent, lease):
    late = Pass(back=True)
    granted(agent, world.name(), hold="late", ttl_ms=600)
    lease.begin(late, *[MUTE] * 20)
    late.met.wait(10)
    agent.lost("late")
    late.go()
    lease.begin()
    check_equal(int(agent.ask("remaining", hold="late")["remaining_ms"]), 0)
    outcome(agent.ask("check", hold="late"), "lost")
    check_equal(len(agent.lost("late")), 1)


@scenario
def a_client_that_stood_still_past_its_ttl_knows_at_once(world, agent, gateway, name):
    granted(agent, name, hold="still", ttl_ms=1500)
    agent.stop()
    other = world.acquire(name, holder="next", wait_ms=5000)
    agent.send("remaining", hold="still")
    agent.send("put", hold="still", key=name, body="stale")
    agent.go_on()
    check_equal(int(agent.answer()["remaining_ms"]), 0)
    outcome(agent.answer(), "lost")
    check_equal(gateway.methods(), [], "nothing was sent")
    if CLIENT["renews"]:
        check_equal(len(agent.lost("still")), 1)
    outcome(agent.ask("release", hold="still"), "lost")
    check_equal(holders(world, name), [("next", other["token"])], "the next one's hold stands")


# -- through the gateway


@scenario
def a_write_of_who_was_fenced_off_is_lost(world, agent, gateway, name):
    granted(agent, name, hold="off", ttl_ms=60000)
    force(world, name)
    world.acquire(name)
    outcome(agent.ask("put", hold="off", key=name, body="x"), "lost", "stale-token")
    if CLIENT["renews"]:
        check_equal(len(agent.lost("off")), 1)
    outcome(agent.ask("put", hold="off", key=name, body="x"), "lost")
    if CLIENT["renews"]:
        check_equal(gateway.methods(), ["PUT"], "the second was not sent")


@scenario
def a_write_without_an_answer_is_unknown_and_is_not_repeated(agent, gateway, name):
    granted(agent, name)
    outcome(agent.ask("put", hold="h", key=name, body="first"), "ok")
    for fault in (BEFORE, DURING, AFTER, MUTE):
        gateway.begin(fault)
        outcome(agent.ask("put", hold="h", key=name, body=fault), "unknown")
        check_equal(gateway.methods(), ["PUT"], fault)
    gateway.begin(problem(504, "outcome-unknown"))
    outcome(agent.ask("put", hold="h", key=name, body="x"), "unknown")
    gateway.begin(problem(503, "store-unavailable"))
    outcome(agent.ask("put", hold="h", key=name, body="x"), "not-done", "store-unavailable")
    check_equal(gateway.methods(), ["PUT"])
    agent.ask("release", hold="h")


@scenario
def a_write_with_a_key_is_repeated_and_done_once(world, agent, gateway, name):
    granted(agent, name)
    gateway.begin(AFTER)
    told = agent.ask("put", hold="h", key=name, body="once", idempotency_key="k-1")
    outcome(told, "ok")
    check_equal(gateway.methods(), ["PUT", "PUT"])
    check_equal(world.gateway("GET", f"/v1/resources/{name}").header("ETag"), told["etag"])
    agent.ask("release", hold="h")


@scenario
def a_refusal_of_a_repeated_write_is_unknown(agent, gateway, name):
    granted(agent, name, hold="r", ttl_ms=60000)
    gateway.begin(BEFORE, problem(412, "stale-token", False))
    outcome(agent.ask("put", hold="r", key=name, body="x", idempotency_key="k-2"), "unknown")
    if CLIENT["renews"]:
        outcome(agent.ask("put", hold="r", key=name, body="x"), "lost")
    agent.ask("release", hold="r")


# -- entering again, and leaving


def entered(function):
    return scenario(function, "enters")


@entered
def the_last_who_leaves_releases(world, agent, lease, name):
    granted(agent, name)
    outcome(agent.ask("enter", hold="h"), "ok")
    check_equal(lease.methods(), ["POST"], "the counts are the process' own")
    outcome(agent.ask("release", hold="h"), "ok")
    check_equal(world.look(name)["state"], "held")
    outcome(agent.ask("release", hold="h"), "ok")
    check_equal(world.look(name)["state"], "free")


@with_renewal
def leaving_the_block_releases_however_it_is_left(world, agent):
    for body, raised in (("well", "nothing"), ("badly", "body")):
        name = world.name()
        told = agent.ask("inside", name=name, ttl_ms=60000, body=body)
        check_equal(told["still"], "1", f"{told}")
        check_equal(world.look(name)["state"], "held")
        agent.send("go on")
        check_equal(agent.answer()["raised"], raised)
        check_equal(world.look(name)["state"], "free")


@with_renewal
def leaving_the_block_tells_a_loss(world, agent, name):
    agent.ask("inside", name=name, ttl_ms=60000, body="well")
    force(world, name)
    agent.send("go on")
    outcome(agent.answer(), "lost")
    agent.ask("inside", name=name, ttl_ms=60000, body="badly")
    force(world, name)
    agent.send("go on")
    check_in("raised", agent.answer(), "what the body raised comes first")


# -- who asks


ACCESS = "pawl_" + "S" * 43 + "_012345"


def authorizations(*relays):
    """As they were sent, or None."""
    found = [re.search(r"(?i)\r\nauthorization: *(.*)\r\n", head) for relay in relays for head in relay.seen]
    return [one and one[1] for one in found]


def known(lease_url, gateway_url, **env):
    """An agent of its own; it may need long for its first request."""
    return CLIENT["make"](lease_url, gateway_url, 10000, **env)


def who(status, code):
    return problem(status, code, False)


@scenario
def an_access_token_goes_with_every_request_and_after_no_redirect(world, agent, lease, gateway):
    name, aside = world.name(), known(lease.url, gateway.url, PAWL_ACCESS_TOKEN=ACCESS)
    granted(aside, name, ttl_ms=60000)
    outcome(aside.ask("put", hold="h", key=name, body="x"), "ok")
    outcome(aside.ask("get", hold="h", key=name), "ok")
    outcome(aside.ask("renew", hold="h", ttl_ms=60000), "ok")
    check_equal(authorizations(lease, gateway), [f"Bearer {ACCESS}"] * 4)
    gateway.begin(*every(Say(307, b"", Location=f"{lease.url}/v1/leases/{name}")))
    lease.begin()
    outcome(aside.ask("get", hold="h", key=name), "unknown")
    check_equal(lease.methods(), [], "nobody else was asked")
    gateway.begin()
    outcome(aside.ask("release", hold="h"), "ok")
    aside.end()
    lease.begin()
    outcome(granted(agent, name) and agent.ask("release", hold="h"), "ok")
    check_equal(authorizations(lease), [None, None], "nobody says who it is unless it is told to")


@scenario
def an_access_token_file_is_read_again_for_each_request(lease, gateway, name):
    with tempfile.TemporaryDirectory(prefix="pawl-access-") as folder:
        file = pathlib.Path(folder, "token")
        aside = known(f"{lease.url}/", f"{gateway.url}//", PAWL_ACCESS_TOKEN_FILE=str(file))
        told = aside.ask("acquire", hold="h", name=name)
        outcome(told, "not-done", "not-sent")
        for text, sent in (("first\r\n", "Bearer first"), (ACCESS, f"Bearer {ACCESS}"), ("a b", None), ("a\nX: y", None)):
            file.write_text(text, encoding="utf-8")
            lease.begin()
            told = aside.ask("acquire", hold="h", name=name, ttl_ms=60000)
            outcome(told, "ok" if sent else "not-done", None if sent else "not-sent")
            check_equal(authorizations(lease), [sent] if sent else [])
            if sent:
                outcome(aside.ask("get", hold="h", key=name), "not-done", "not-found")
                aside.ask("release", hold="h")
        aside.end()


@scenario
def an_access_token_is_sent_to_no_other_machine_in_plain_text(world, lease, gateway):
    there = lease.url.replace("127.0.0.1", "0.0.0.0")  # which is this machine, but who knows that
    for lease_url, gateway_url in ((there, gateway.url), (lease.url, "http://127.0.0.1.example"), (lease.url, "http://localhost:1@a.example")):
        aside = known(lease_url, gateway_url, PAWL_ACCESS_TOKEN=ACCESS)
        told = aside.ask("acquire", hold="h", name=world.name())
        outcome(told, "mistake")
        check(ACCESS not in str(told), f"{told}")
        aside.end()
    check_equal(lease.methods(), [])
    lease.begin(*every(who(401, "unauthenticated")))
    aside = known(there, gateway.url, PAWL_ACCESS_TOKEN=ACCESS, ALLOW_PLAINTEXT="1", PAWL_ALLOW_PLAINTEXT="true")
    outcome(aside.ask("acquire", hold="h", name=world.name()), "not-done", "unauthenticated")
    check_equal(authorizations(lease), [f"Bearer {ACCESS}"])
    aside.end()


@scenario
def who_is_not_known_or_may_not_is_told_at_once(world, agent, lease, gateway, name):
    for status, code in ((401, "unauthenticated"), (403, "forbidden"), (403, "not-yours")):
        lease.begin(who(status, code))
        told = agent.ask("acquire", hold="i", name=world.name(), wait_ms=5000)
        outcome(told, "not-done", code)
        check_equal((told["retryable"], lease.methods()), ("0", ["POST"]), "asked once")
    granted(agent, name, ttl_ms=60000)
    gateway.begin(who(403, "forbidden"))
    outcome(agent.ask("put", hold="h", key=name, body="x", idempotency_key="k"), "not-done", "forbidden")
    lease.begin(who(403, "not-yours"))
    outcome(agent.ask("renew", hold="h", ttl_ms=60000), "not-done", "not-yours")
    outcome(agent.ask("release", hold="h"), "ok")
    check_equal(lease.methods(), ["PUT", "DELETE"], "asked once")


@with_renewal
def who_is_not_known_any_more_holds_until_the_deadline_and_may_be_known_again(agent, lease, name):
    granted(agent, name, hold="known", ttl_ms=1500)
    lease.begin(who(401, "unauthenticated"), who(403, "forbidden"), who(403, "not-yours"))
    wait_until(lambda: lease.methods().count("PUT") >= 4, "it asks again")
    outcome(agent.ask("check", hold="known"), "ok")
    wait_past(time.monotonic() + 1.5)
    outcome(agent.ask("check", hold="known"), "ok")
    lease.begin(*[who(401, "unauthenticated")] * 99)
    check_equal([one["code"] for one in agent.lost("known")], ["deadline-passed"])
    lease.begin()
    outcome(agent.ask("release", hold="known"), "lost")


def asides(lease_url, gateway_url, name, **env):
    """What another agent is told when it acquires; then it writes and releases."""
    aside = known(lease_url, gateway_url, **env)
    told = aside.ask("acquire", hold="h", name=name, ttl_ms=60000)
    if told["outcome"] == "ok":
        outcome(aside.ask("put", hold="h", key=name, body="x"), "ok")
        outcome(aside.ask("release", hold="h"), "ok")
    aside.end()
    return told


def aside_over(world, lease, gateway, **env):
    """Acquires, writes and releases over these two relays."""
    told = asides(lease.url, gateway.url, world.name(), PAWL_ACCESS_TOKEN=ACCESS, **env)
    if told["outcome"] == "ok":
        check_equal(authorizations(lease, gateway), [f"Bearer {ACCESS}"] * 3)
    for one in (lease, gateway):
        one.close()
    return told


def a_unix_socket_is_an_address(world):
    with tempfile.TemporaryDirectory(prefix="pawl-unix-") as folder:
        relays = [HttpRelay(daemon.port, f"{folder}/{kind}") for daemon, kind in
                  ((world.lease_daemon, "lease"), (world.gateway_daemon, "gateway"))]
        outcome(aside_over(world, *relays), "ok")
        for relay in relays:
            check_in("\r\nHost: localhost\r\n", relay.seen[0])


scenario(a_unix_socket_is_an_address)


@scenario
def each_end_is_told_over_a_unix_socket_as_over_a_network(world):
    with tempfile.TemporaryDirectory(prefix="pawl-unix-") as folder:
        lease, gateway = (HttpRelay(daemon.port, f"{folder}/{kind}") for daemon, kind in
                          ((world.lease_daemon, "lease"), (world.gateway_daemon, "gateway")))
        aside, name = CLIENT["make"](lease.url, gateway.url), world.name()
        ends = [an_acquire_without_any_answer_is_unknown_and_given_back, a_write_without_an_answer_is_unknown_and_is_not_repeated]
        if CLIENT["sessions"]:  # the shell has curl read all answers, whatever they come over
            ends += [an_acquire_whose_answer_is_lost_is_asked_again_and_granted_once, a_refusal_after_a_lost_answer_is_unknown,
                     slow_bytes_do_not_stretch_the_time_limit, what_is_no_http_or_no_json_is_unknown, an_answer_without_an_end_is_unknown_and_not_kept,
                     events_go_on_behind_the_last_one_after_a_break]
        for steps in ends:
            lease.begin()
            gateway.begin()
            given(steps.steps, **{**CLIENT, "agent": aside, "lease": lease, "gateway": gateway})
        lease.begin()
        granted(aside, name, ttl_ms=60000)
        chunks = Flood.HEAD + b"3;x=y\r\nabc\r\n03\r\ndef\r\n"
        trailer = b"A: b\r\n" if CLIENT["renews"] else b""  # the shell takes an answer with one for cut off
        for said, wanted in ((chunks + b"0\r\n" + trailer + b"\r\n", "ok"), (chunks, "unknown"), (chunks + b"x\r\n\r\n", "unknown")):
            gateway.begin(*every(Raw(said)))
            told = aside.ask("get", hold="h", key=name)
            check((told["outcome"], told.get("body") or "abcdef") == (wanted, "abcdef"), f"{said}: {told}")
        aside.ask("release", hold="h")
        aside.end()
        for one in (lease, gateway):
            one.close()
        aside = CLIENT["make"](f"unix:{folder}/nobody", f"unix:{folder}/{'x' * 200}")
        outcome(aside.ask("acquire", hold="h", name=name), "not-done", "not-sent")
        aside.end()


def shows(server, own):
    """What a server of this certificate does its TLS with that wants this other one of its clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*server)
    context.load_verify_locations(own[0])
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@scenario
def a_certificate_is_shown_to_who_is_trusted(world):
    with tempfile.TemporaryDirectory(prefix="pawl-certs-") as folder:
        server, own = certificate(folder, "server", "IP:127.0.0.1"), certificate(folder, "own", "DNS:me", "clientAuth")
        shown = {"PAWL_CERT": own[0], "PAWL_CERT_KEY": own[1]}
        locked = pathlib.Path(folder, "locked.key")
        locked.write_bytes(subprocess.run(["openssl", "pkey", "-in", own[1], "-aes256", "-passout", "pass:x"], capture_output=True, check=True).stdout)
        for env, is_good in (({"PAWL_CACERT": server[0], **shown}, True), ({"PAWL_CACERT": server[0]}, False),
                             ({"PAWL_CACERT": server[0], "PAWL_CERT": own[0], "PAWL_CERT_KEY": str(locked)}, False), (shown, False)):
            relays = [HttpRelay(daemon.port, tls=shows(server, own)) for daemon in (world.lease_daemon, world.gateway_daemon)]
            told = aside_over(world, *relays, **env)
            check_equal(told["outcome"] == "ok", is_good, f"{told}")
            check(is_good or not relays[0].seen, "nothing was asked")
        outcome(told, "not-done", "not-sent")  # its certificate is none that we trust


@scenario
def certificates_are_read_again_and_a_half_renewed_set_is_not_used(world):
    with tempfile.TemporaryDirectory(prefix="pawl-certs-") as folder:
        (server, own), (server2, own2) = [(certificate(folder, f"server{i}", "IP:127.0.0.1"), certificate(folder, f"own{i}", "DNS:me", "clientAuth"))
                                          for i in range(2)]
        relays = [HttpRelay(daemon.port, tls=shows(server, own)) for daemon in (world.lease_daemon, world.gateway_daemon)]
        aside = known(relays[0].url, relays[1].url, PAWL_CACERT=server[0], PAWL_CERT=own[0], PAWL_CERT_KEY=own[1])
        name = world.name()
        for step in ("first", "half", "renewed"):
            if step == "half":
                os.rename(own2[0], own[0])
            elif step == "renewed":
                os.rename(own2[1], own[1])
                os.rename(server2[0], server[0])
            for relay in relays:
                relay.cut()
                if step == "renewed":
                    relay.tls = shows((server[0], server2[1]), own)
            if step != "half" or CLIENT["sessions"]:  # curl would use it
                outcome(aside.ask("acquire", hold="h", name=name, ttl_ms=60000), "ok")
                outcome(aside.ask("put", hold="h", key=name, body="x"), "ok")
                outcome(aside.ask("release", hold="h"), "ok")
            for file in (server[0], *own) if step == "first" and CLIENT["sessions"] else ():
                good = pathlib.Path(file).read_bytes()
                for torn in (b"", b"x", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"):
                    pathlib.Path(file).write_bytes(torn)
                    for relay in relays:
                        relay.cut()
                    outcome(aside.ask("acquire", hold="h", name=name, ttl_ms=60000), "ok")
                    outcome(aside.ask("release", hold="h"), "ok")
                pathlib.Path(file).write_bytes(good)
        aside.end()
        for relay in relays:
            relay.close()


def swap_again_and_again(pairs, ends):
    """Of each two files the contents, and back."""
    chance = random.Random(SEED)
    while not ends.is_set():
        for one, other in pairs * 2:
            os.rename(one, f"{one}.aside")
            os.rename(other, one)
            os.rename(f"{one}.aside", other)
            ends.wait(chance.uniform(0, 0.005))


@scenario
def a_certificate_may_be_renewed_at_any_moment(world):
    with tempfile.TemporaryDirectory(prefix="pawl-certs-") as folder:
        server, *both = certificate(folder, "server", "IP:127.0.0.1"), *(certificate(folder, f"own{i}", "DNS:me", "clientAuth") for i in range(2))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*server)
        context.verify_mode = ssl.CERT_REQUIRED
        for own in both:
            context.load_verify_locations(own[0])
        relay, ends = HttpRelay(world.lease_daemon.port, tls=context), threading.Event()
        aside = known(relay.url, relay.url, PAWL_CACERT=server[0], PAWL_CERT=both[0][0], PAWL_CERT_KEY=both[0][1])
        swaps = threading.Thread(target=swap_again_and_again, args=(list(zip(*both)), ends))
        for number in range(20 if CLIENT["sessions"] else 0):  # curl would use one half
            relay.cut()
            outcome(aside.ask("acquire", hold="h", name=world.name(), ttl_ms=60000), "ok")
            if number == 0:
                swaps.start()
        ends.set()
        if CLIENT["sessions"]:
            swaps.join()
        aside.end()
        relay.close()


@scenario
def the_services_own_tls_is_verified_and_knows_an_access_token_and_a_certificate():
    with tempfile.TemporaryDirectory(prefix="pawl-certs-") as folder:
        server, own = certificate(folder, "server", "IP:127.0.0.1"), certificate(folder, "own", "DNS:me", "clientAuth")
        token, line = subprocess.run([BUILD / "pawl", "access", "new", "token"], capture_output=True, text=True, check=True).stdout.splitlines()
        access = pathlib.Path(folder, "access.json")
        access.write_text(f'{{"identities": {{{line}, "own": {{"certs": ["dns:me"]}}}}, "rules": [{{"who": ["known"], "may": ["acquire", "write-own"], "on": ["{{me}}:*"]}}]}}')
        access.chmod(0o600)
        safe = World("--access", str(access), "--tls-cert", server[0], "--tls-key", server[1], "--tls-client-ca", own[0])
        urls = safe.lease_daemon.url, safe.gateway_daemon.url
        trusts, shown = {"PAWL_CACERT": server[0]}, {"PAWL_CERT": own[0], "PAWL_CERT_KEY": own[1]}
        for name, env, is_good in (("token:1", {**trusts, "PAWL_ACCESS_TOKEN": token}, True), ("own:1", {**trusts, **shown}, True),
                                   ("token:2", {"PAWL_ACCESS_TOKEN": token}, False)):
            told = asides(*urls, name, **env)
            check_equal(told["outcome"] == "ok", is_good, f"{name}: {told}")
        safe.close()


# -- sessions, several at once, events


def with_sessions(function):
    return scenario(function, "sessions")


@with_sessions
def what_is_acquired_in_a_session_lives_and_ends_with_it(world, agent, lease, gateway):
    name, other = world.name(), world.name()
    outcome(agent.ask("session", hold="s", ttl_ms=1500), "ok")
    granted(agent, name, session="s", ttl_ms=100)
    granted(agent, other, hold="i", session="s")
    wait_until(lambda: lease.methods().count("PUT") >= 4, "it is renewed")
    check_equal([head.split(" ", 2)[1].split("/")[2] for head in lease.seen if head.startswith("PUT")][:4], ["sessions"] * 4)
    outcome(agent.ask("check", hold="h"), "ok")
    check(0 < int(agent.ask("remaining", hold="i")["remaining_ms"]) <= 1500, "as long as the session")
    outcome(agent.ask("put", hold="h", key=name, body="x"), "ok")
    outcome(agent.ask("release", hold="h"), "ok")
    check_equal((world.look(name)["state"], world.look(other)["state"]), ("free", "held"))
    outcome(agent.ask("release", hold="s"), "ok")
    check_equal((history(world, other), world.look(other)["state"]), (["granted", "released"], "free"))
    lease.begin()
    outcome(agent.ask("release", hold="i"), "ok")
    check_equal(lease.methods(), [], "it has ended")
    outcome(agent.ask("put", hold="i", key=other, body="x"), "lost")
    check_equal(gateway.methods(), ["PUT"])


@with_sessions
def a_lease_that_a_session_lost_is_told_and_the_others_stay(world, agent):
    name, other = world.name(), world.name()
    outcome(agent.ask("session", hold="s2", ttl_ms=1500), "ok")
    granted(agent, name, hold="taken", session="s2")
    granted(agent, other, hold="stays", session="s2")
    force(world, name)
    check_equal([one["code"] for one in agent.lost("taken")], ["lease-lost"])
    outcome(agent.ask("check", hold="taken"), "lost")
    outcome(agent.ask("check", hold="stays"), "ok")
    outcome(agent.ask("release", hold="s2"), "ok")


@with_sessions
def a_session_that_is_over_is_lost_and_all_of_its_leases_with_it(world, agent, lease, gateway):
    for session, ttl_ms, said, code in (("s3", 900, [MUTE] * 9, "deadline-passed"), ("s4", 1500, [problem(410, "session-lost", False)], "session-lost")):
        name, hold = world.name(), f"in-{session}"
        outcome(agent.ask("session", hold=session, ttl_ms=ttl_ms), "ok")
        granted(agent, name, hold=hold, session=session, ttl_ms=60000)
        lease.begin(*said)
        check_equal([one["code"] for one in agent.lost(session) + agent.lost(hold)], [code] * 2)
        check_equal(int(agent.ask("remaining", hold=hold)["remaining_ms"]), 0)
        outcome(agent.ask("put", hold=hold, key=name, body="x"), "lost")
        check_equal(gateway.methods(), [], "nothing was sent")
        lease.begin()
        outcome(agent.ask("release", hold=session), "lost")
        wait_until(lambda: world.look(name)["state"] == "free", "it was ended all the same")  # pylint: disable=cell-var-from-loop


@with_sessions
def several_are_granted_all_or_none(world, agent, lease):
    names = [world.name() for _ in range(3)]
    first = world.acquire(names[2])
    outcome(agent.ask("acquire_all", hold="a", names=" ".join(names)), "held", "lease-held")
    check_equal([world.look(name)["state"] for name in names], ["free", "free", "held"])
    agent.send("acquire_all", hold="a", names=" ".join(names), wait_ms=8000)
    wait_until(lambda: world.look(names[0])["waiting"] == 1, "it waits")
    world.release(names[2], first)
    told = agent.answer()
    outcome(told, "ok")
    check_equal([str(world.look(name)["token"]) for name in names], told["tokens"].split(" "))
    lease.begin(AFTER)
    outcome(agent.ask("release", hold="a"), "ok")
    check_equal([world.look(name)["state"] for name in names], ["free"] * 3)
    lease.begin(*every(AFTER))
    outcome(agent.ask("acquire_all", hold="a", names=" ".join(names), ttl_ms=60000), "unknown")
    wait_until(lambda: [world.look(name)["state"] for name in names] == ["free"] * 3, "they were given back")


@with_sessions
def events_go_on_behind_the_last_one_after_a_break(world, agent, lease, name):
    outcome(agent.ask("events", hold="e", name=name), "ok")
    wait_until(lambda: lease.methods() == ["GET"] and lease.answered, "it listens")
    first = world.acquire(name)
    agent.lost("e")
    lease.begin(BEFORE, BEFORE)
    lease.cut()
    world.release(name, first)
    world.release(name, world.acquire(name))
    check_equal([one["code"] for one in agent.lost("e", 4)], ["granted", "released", "granted", "released"])


@with_sessions
def events_that_cannot_be_made_up_for_are_told_as_missed(world, agent, lease, name):
    lease.begin(Say(204), problem(410, "cursor-expired", False))
    outcome(agent.ask("events", hold="none", name=name), "ok")
    check_equal([one["code"] for one in agent.lost("none")], ["bad-answer"])
    outcome(agent.ask("events", hold="m", name=name, since="00.1.1.1"), "ok")
    agent.lost("m")
    world.release(name, world.acquire(name))
    check_equal([one["code"] for one in agent.lost("m", 3)], ["missed", "granted", "released"])


def apart(world):
    """An agent of its own, that nobody has listened with, and its relay; patient: the first request of a JVM takes its time."""
    relay = HttpRelay(world.lease_daemon.port)
    return CLIENT["make"](relay.url, relay.url, 10000), relay


@with_sessions
def events_go_on_whatever_somebody_between_answers_and_end_with_a_refusal(world):
    name, (aside, lease) = world.name(), apart(world)
    outcome(aside.ask("events", hold="e", name=name), "ok")
    wait_until(lambda: lease.methods() == ["GET"] and lease.answered, "it listens")
    first = world.acquire(name)
    aside.lost("e")
    lease.begin(Say(502, b"<html>", "text/html"), Say(404, b"<html>", "text/html"), problem(500, "internal", False))
    lease.cut()
    wait_until(lambda: len(lease.seen) >= 4 and lease.answered, "it listens again")
    world.release(name, first)
    aside.lost("e", 2)
    lease.begin(Say(200, b'id: 1.1.1.1\r\ndata: {"type":"rewritten"}\r\n\r\n', "text/event-stream"), problem(403, "forbidden", False))
    lease.cut()
    check_equal([one["code"] for one in aside.lost("e", 4)], ["granted", "released", "rewritten", "forbidden"])
    aside.end()
    lease.close()


# -- how what may be held is given back


def several_are_given_back_within_the_time_of_one_attempt(world, agent, lease):
    lease.begin(*every(AFTER), *[MUTE] * 3)
    outcome(agent.ask("acquire_all", hold="a", names=" ".join(world.name() for _ in range(3))), "unknown")
    check_equal(lease.methods(), every("POST") + ["DELETE"])


def what_may_be_held_is_given_back_though_nobody_answers_who_leaves_the_line(world, agent, lease):
    lease.begin(*[MUTE] * 9)
    outcome(agent.ask("acquire", hold="h", name=world.name(), wait_ms=1), "unknown")
    check_equal(lease.methods(), every("POST") + ["POST", "DELETE"])


def one_after_the_other():
    """Of those that give several back so."""
    scenario(several_are_given_back_within_the_time_of_one_attempt)
    scenario(what_may_be_held_is_given_back_though_nobody_answers_who_leaves_the_line)
