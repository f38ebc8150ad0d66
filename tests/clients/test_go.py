#!/usr/bin/python3
"""The Go client, api/clients/go: every scenario, and what only Go has."""

import atexit
import itertools
import os
import shutil
import subprocess
import tempfile

import clients_test  # finds the service tests' own package
import scenarios
from clients_test import MUTE, ROOT, HttpRelay, Say, check_equal, check_in, skip, test, wait_until
from scenarios import force, granted, outcome, scenario

MISSING = None if shutil.which("go") else "there is no go"
FOLDER = tempfile.mkdtemp(prefix="pawl-go-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
HERE, CLIENT_FOLDER = clients_test.HERE / "go", ROOT / "api/clients/go"


def tool(*argv, folder=HERE):
    """Nothing is fetched: the standard library is all that there is."""
    env = clients_test.environment(GOCACHE=os.path.expanduser("~/.cache/pawl/go"), GOPATH=f"{FOLDER}/path", GOPROXY="off", GOTOOLCHAIN="local")
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=120, env=env)
    return done.returncode, done.stdout + done.stderr


def built_in(folder):
    check_equal(tool("go", "build", "-o", f"{folder}/agent", ".", folder=f"{folder}/tests/clients/go"), (0, ""))
    return [f"{folder}/agent"]


DONE = None if MISSING else tool("go", "build", "-o", f"{FOLDER}/agent", ".")


@test
def it_builds_with_the_standard_library_alone_and_is_formatted():
    if MISSING:
        skip(MISSING)
    check_equal(DONE, (0, ""))
    check_equal(tool("gofmt", "-l", str(CLIENT_FOLDER), str(HERE)), (0, ""))
    check_equal(tool("go", "list", "-m", "all", folder=CLIENT_FOLDER), (0, "pawl\n"))


scenarios.begin([f"{FOLDER}/agent"], MISSING, enters=False)


@scenario
def a_round_tripper_adds_the_token_and_a_stale_answer_is_a_loss(world, agent, gateway, name):
    granted(agent, name, hold="t", ttl_ms=60000)
    url = f"{gateway.url}/v1/resources/{name}"
    check_equal(agent.ask("request", hold="t", url=url, body="x")["status"], "201")
    force(world, name)
    check_equal(agent.ask("request", hold="t", url=url, body="stale")["status"], "412")
    check_equal([one["code"] for one in agent.lost("t")], ["lease-expired"])
    outcome(agent.ask("request", hold="t", url=url, body="stale"), "lost")
    check_equal(gateway.methods(), ["PUT", "PUT"], "the third was not sent")


@scenario
def a_round_tripper_tells_the_gateway_alone_who_asks_and_not_after_a_redirect(world, lease, gateway):
    name, aside = world.name(), scenarios.known(lease.url, gateway.url, PAWL_ACCESS_TOKEN=scenarios.ACCESS)
    granted(aside, name, hold="who", ttl_ms=60000)
    lease.begin()
    gateway.begin(None, Say(307, b"", Location=f"{gateway.url}/v1/resources/{name}/2"))
    for url in (f"{gateway.url}/v1/resources/{name}", f"{gateway.url}/v1/resources/{name}/1", f"{lease.url}/v1/leases"):
        outcome(aside.ask("request", hold="who", url=url, body="x"), "ok")
    check_equal([f"Pawl-Authorization: Bearer {scenarios.ACCESS}" in head for head in gateway.seen + lease.seen], [True, True, False, False])
    outcome(aside.ask("release", hold="who"), "ok")
    aside.end()


@scenario
def a_round_tripper_reaches_a_gateway_at_a_unix_socket(world, lease):
    with tempfile.TemporaryDirectory(prefix="pawl-go-") as folder:
        relay = HttpRelay(world.gateway_daemon.port, f"{folder}/gateway")
        name, aside = world.name(), scenarios.known(lease.url, relay.url, PAWL_ACCESS_TOKEN=scenarios.ACCESS)
        granted(aside, name, hold="there", ttl_ms=60000)
        told = aside.ask("request", hold="there", url=f"http://gateway.localhost/v1/resources/{name}", body="x")
        check_equal(told["status"], "201")
        for line in ("Host: localhost", f"Pawl-Authorization: Bearer {scenarios.ACCESS}", "Fencing-Token: "):
            check_in(f"\r\n{line}", relay.seen[0])
        outcome(aside.ask("release", hold="there"), "ok")
        aside.end()
        relay.close()


@scenario
def a_context_that_ends_gives_up_and_leaves_no_place_behind(world, agent, lease, name):
    other = world.acquire(name)
    for wait_ms in (60000, 600000):
        lease.begin()
        told = agent.ask("acquire", hold="h", name=name, wait_ms=wait_ms, cancel_ms=300)
        outcome(told, "unknown", "aborted")
        check_equal(lease.methods(), ["POST", "POST", "DELETE"])
        check_equal(world.look(name)["waiting"], 0)
    world.release(name, other)


scenario(scenarios.who_gives_up_between_two_requests_is_told_unknown_and_leaves_no_hold_behind)


@scenario
def who_is_told_that_nothing_is_left_finds_it_marked_as_lost(world, agent, lease):
    def spun(number):
        """Of a grant that was answered before its ttl was over."""
        lease.begin(None, *[MUTE] * 9)
        is_granted = agent.ask("acquire", hold=f"spin{number}", name=world.name(), ttl_ms=100)["outcome"] == "ok"
        return is_granted and outcome(agent.ask("spin", hold=f"spin{number}"), "ok") is None
    count = itertools.count()
    for _ in range(12):  # the race is lost at every other end
        wait_until(lambda: spun(next(count)), "it is granted in time")


@scenario
def events_from_a_cursor_that_cannot_be_sent_are_a_mistake(agent):
    outcome(agent.ask("events", hold="since", since="1\0"), "ok")
    outcome(agent.lost("since")[0], "mistake")


scenarios.short_sliced("api/clients/go", "go", built_in)
scenarios.one_after_the_other()


if __name__ == "__main__":
    clients_test.main(scenarios.end, parts=2)
