#!/usr/bin/python3
"""The Java client, api/clients/java/Pawl.java: every scenario, and that it compiles without a warning."""

import atexit
import shutil
import subprocess
import sys
import tempfile

import clients_test  # finds the service tests' own package
import scenarios
from clients_test import AFTER, ROOT, check_equal, skip, test, wait_until
from scenarios import granted, outcome, scenario

MISSING = None if shutil.which("javac") and shutil.which("java") else "there is no JDK"
CLASSES = tempfile.mkdtemp(prefix="pawl-java-")
atexit.register(shutil.rmtree, CLASSES, ignore_errors=True)
# Its own proxies are properties, not variables.
ARGV = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dhttp.proxyHost=127.0.0.1", "-Dhttp.proxyPort=9",
        "-cp", CLASSES, "Agent"]


def compiled():
    return subprocess.run(["javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "--release", "17", "-Xlint:all", "-Werror", "-encoding", "UTF-8", "-d", CLASSES,
                           str(ROOT / "api/clients/java/Pawl.java"), str(clients_test.HERE / "Agent.java")],
                          capture_output=True, text=True, check=False, timeout=60, env=clients_test.environment())


DONE = None if MISSING else compiled()


@test
def it_compiles_for_java_17_without_a_warning():
    if MISSING:
        skip(MISSING)
    check_equal((DONE.returncode, DONE.stdout + DONE.stderr), (0, ""))


scenarios.begin(ARGV, MISSING)

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


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    clients_test.main(scenarios.end, parts=2)
