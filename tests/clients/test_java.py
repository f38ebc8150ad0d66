#!/usr/bin/python3
"""The Java client, api/clients/java/Pawl.java: every scenario, and that it compiles without a warning."""

import atexit
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from xml.etree import ElementTree

import clients_test  # finds the service tests' own package
import scenarios
from clients_test import AFTER, BEFORE, MUTE, ROOT, Agent, HttpRelay, Say, check, check_equal, check_in, nobody, skip, test, wait_until
from scenarios import every, force, granted, outcome, problem, scenario, wait_past

MISSING = None if shutil.which("javac") and shutil.which("java") else "there is no JDK"
CLASSES = tempfile.mkdtemp(prefix="pawl-java-")
atexit.register(shutil.rmtree, CLASSES, ignore_errors=True)
# Its own proxies are properties, not variables.
ARGV = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dhttp.proxyHost=127.0.0.1", "-Dhttp.proxyPort=9",
        "-cp", CLASSES, "Agent"]


POM, MAVEN = ElementTree.parse(ROOT / "api/clients/java/pom.xml").getroot(), "{http://maven.apache.org/POM/4.0.0}"


def of_pom(path):
    return POM.findtext("/".join(MAVEN + name for name in path.split("/")))


def compiled(source=ROOT / "api/clients/java" / of_pom("build/plugins/plugin/configuration/includes/include"), to=CLASSES):
    """With what the pom says."""
    return subprocess.run(["javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "--release",
                           of_pom("properties/maven.compiler.release"), "-Xlint:all", "-Werror", "-encoding", "UTF-8", "-d", to,
                           str(source), str(clients_test.HERE / "Agent.java")],
                          capture_output=True, text=True, check=False, timeout=60, env=clients_test.environment())


def short_sliced():
    """The agent, but its slices have 3 s."""
    text = (ROOT / "api/clients/java/Pawl.java").read_text(encoding="utf-8")
    check_in("SLICE_MS = 20_000;", text)
    source = pathlib.Path(CLASSES, "short/Pawl.java")
    source.parent.mkdir()
    source.write_text(text.replace("SLICE_MS = 20_000;", "SLICE_MS = 3_000;"), encoding="utf-8")
    check_equal(compiled(source, str(source.parent)).returncode, 0)
    return [str(source.parent) if word == CLASSES else word for word in ARGV]


DONE = None if MISSING else compiled()


@test
def it_compiles_for_java_17_without_a_warning():
    if MISSING:
        skip(MISSING)
    check_equal((DONE.returncode, DONE.stdout + DONE.stderr), (0, ""))


@test
def its_pom_names_its_sources_and_pawls_version():
    check_equal((of_pom("version"), of_pom("properties/maven.compiler.release"), of_pom("build/sourceDirectory")),
                ((ROOT / "VERSION").read_text(encoding="utf-8").strip(), "17", "${project.basedir}"))
    check_equal([path.name for path in (ROOT / "api/clients/java").rglob("*.java")],
                [one.text for one in POM.iter(MAVEN + "include")])


scenarios.begin(ARGV, MISSING, sockets=False)

@scenario
def try_lock_is_false_only_when_it_is_certainly_not_granted(world, agent, lease, _gateway):
    name = world.name()
    other = world.acquire(name)
    check_equal(agent.ask("acquire", hold="h", name=name, **{"try": 0})["granted"], "0")
    check_equal(agent.ask("acquire", hold="h", name=name, **{"try": 100})["granted"], "0")
    world.release(name, other)
    lease.begin(AFTER, AFTER, AFTER)
    outcome(agent.ask("acquire", hold="h", name=name, **{"try": 0}), "unknown")


@scenario
def who_does_not_own_it_cannot_unlock_it(world, agent, _lease, _gateway):
    granted(agent, world.name())
    outcome(agent.ask("release", hold="h"), "ok")
    outcome(agent.ask("release", hold="h"), "not-owner")


@scenario
def lock_waits_until_it_is_granted(world, agent, _lease, _gateway):
    name = world.name()
    other = world.acquire(name)
    agent.send("acquire", hold="h", name=name, wait_ms="forever")
    wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
    world.release(name, other)
    outcome(agent.answer(), "ok")
    outcome(agent.ask("release", hold="h"), "ok")


@scenario
def a_lost_hold_is_released_with_its_token(world, agent, lease, _gateway):
    name = world.name()
    told = granted(agent, name, hold="over", ttl_ms=60000)
    force(world, name)
    outcome(agent.ask("renew", hold="over", ttl_ms=60000), "lost")
    outcome(agent.ask("release", hold="over"), "lost")
    check_in(f"Fencing-Token: {told['fencing']}", lease.seen[-1])


@scenario
def several_are_given_back_within_the_time_of_one_attempt(world, agent, lease, _gateway):
    lease.begin(*every(AFTER), *[MUTE] * 3)
    outcome(agent.ask("acquire_all", hold="a", names=" ".join(world.name() for _ in range(3))), "unknown")
    check_equal(lease.methods(), every("POST") + ["DELETE"])


def apart(world):
    """An agent of its own, that nobody has listened with, and its relay."""
    relay = HttpRelay(world.lease_daemon.port)
    return scenarios.CLIENT["make"](relay.url, relay.url), relay


@scenario
def events_go_on_after_an_answer_of_somebody_between_and_end_with_a_refusal(world, _agent, _lease, _gateway):
    name, (agent, relay) = world.name(), apart(world)
    outcome(agent.ask("events", hold="b", name=name), "ok")
    wait_until(lambda: relay.answered, "it listens")
    first = world.acquire(name)
    agent.lost("b")
    relay.begin(Say(502, b"<html>", "text/html"), problem(500, "internal", False))
    relay.cut()
    world.release(name, first)
    agent.lost("b", 2)
    relay.begin(problem(403, "forbidden", False))
    relay.cut()
    check_equal([one["code"] for one in agent.lost("b", 3)], ["granted", "released", "forbidden"])
    agent.end()
    relay.close()


@scenario
def events_can_be_interrupted_and_close_their_connection(world, _agent, _lease, _gateway):
    agent, relay = apart(world)
    outcome(agent.ask("events", hold="i", name=world.name()), "ok")
    wait_until(lambda: relay.answered, "it listens")
    outcome(agent.ask("interrupt", hold="i"), "ok")
    check_equal([one["code"] for one in agent.lost("i")], ["interrupted"])
    wait_until(lambda: not relay.near, "it is closed")
    agent.end()
    relay.close()


@scenario
def an_interrupted_thread_that_locks_pauses_all_the_same(world, agent, lease, _gateway):
    lease.begin(*[BEFORE] * 4)
    begun = time.monotonic()
    check_equal(agent.ask("lock_interrupted", name=world.name())["interrupted"], "1", "it stands")
    check(time.monotonic() - begun > 0.7, "asked without a pause")


@scenario
def a_restart_late_in_a_slice_is_sat_out_from_when_it_broke(world, _agent, _lease, _gateway):
    name, relay = world.name(), HttpRelay(world.lease_daemon.port)
    first, agent = world.acquire(name), Agent(short_sliced(), relay.url, relay.url)
    agent.send("acquire", hold="h", name=name, wait_ms=60000)
    wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
    wait_past(time.monotonic() + 2)
    relay.to = int(nobody().rsplit(":", 1)[1])
    relay.cut()
    wait_past(time.monotonic() + 1.2)  # past the slice
    count = relay.refused
    wait_until(lambda: relay.refused > count, "it still asks")
    relay.to = world.lease_daemon.port
    world.release(name, first)
    outcome(agent.answer(), "ok")
    agent.end()
    relay.close()


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    clients_test.main(scenarios.end)
