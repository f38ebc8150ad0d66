#!/usr/bin/python3
"""The Java client, api/clients/java/Pawl.java: every scenario, and that it compiles without a warning."""

import atexit
import os
import shutil
import subprocess
import tempfile
import time
from xml.etree import ElementTree

import clients_test  # finds the service tests' own package
import scenarios
from clients_test import AFTER, BEFORE, ROOT, Agent, HttpRelay, check, check_equal, skip, test, wait_until
from scenarios import granted, outcome, scenario, wait_past

MISSING = None if shutil.which("javac") and shutil.which("java") else "there is no JDK"
IS_FIRST = "TEST_CLASSES" not in os.environ  # of the parts of this program, which all use what the first one has compiled
CLASSES = os.environ.setdefault("TEST_CLASSES", tempfile.mkdtemp(prefix="pawl-java-"))
if IS_FIRST:
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


def compiled_in(folder):
    check_equal(compiled(f"{folder}/api/clients/java/Pawl.java", folder).returncode, 0)
    return [folder if word == CLASSES else word for word in ARGV]


DONE = compiled() if IS_FIRST and not MISSING else None


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


scenarios.begin(ARGV, MISSING)

@scenario
def try_lock_is_false_only_when_it_is_certainly_not_granted(world, agent, lease, name):
    other = world.acquire(name)
    check_equal(agent.ask("acquire", hold="h", name=name, **{"try": 0})["granted"], "0")
    check_equal(agent.ask("acquire", hold="h", name=name, **{"try": 100})["granted"], "0")
    world.release(name, other)
    lease.begin(AFTER, AFTER, AFTER)
    outcome(agent.ask("acquire", hold="h", name=name, **{"try": 0}), "unknown")


@scenario
def who_does_not_own_it_cannot_unlock_it(world, agent):
    granted(agent, world.name())
    outcome(agent.ask("release", hold="h"), "ok")
    outcome(agent.ask("release", hold="h"), "not-owner")


@scenario
def lock_and_the_longest_duration_wait_until_it_is_granted(world, agent, name):
    for wait in ("forever", "ever"):
        other = world.acquire(name)
        agent.send("acquire", hold="h", name=name, wait_ms=wait)
        wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
        world.release(name, other)
        outcome(agent.answer(), "ok")
        outcome(agent.ask("release", hold="h"), "ok")
    outcome(agent.ask("acquire", hold="h", name=name, ttl_ms="ever"), "mistake")


@scenario
def events_can_be_interrupted_and_close_their_connection(world):
    agent, relay = scenarios.apart(world)
    outcome(agent.ask("events", hold="i", name=world.name()), "ok")
    wait_until(lambda: relay.answered, "it listens")
    outcome(agent.ask("interrupt", hold="i"), "ok")
    check_equal([one["code"] for one in agent.lost("i")], ["interrupted"])
    wait_until(lambda: not relay.near, "it is closed")
    agent.end()
    relay.close()


@scenario
def an_interrupted_thread_that_locks_pauses_all_the_same(world, agent, lease):
    lease.begin(*[BEFORE] * 4)
    begun = time.monotonic()
    check_equal(agent.ask("lock_interrupted", name=world.name())["interrupted"], "1", "it stands")
    check(time.monotonic() - begun > 0.7, "asked without a pause")


@scenario
def a_renewal_for_which_there_is_no_thread_is_tried_again(world, name):
    if os.getuid() != 0:
        skip("the threads of a user of its own are counted")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    with tempfile.TemporaryDirectory(prefix="pawl-unix-") as folder:
        relay = HttpRelay(world.lease_daemon.port, f"{folder}/lease")
        agent = Agent([*nobody, "prlimit", "--nproc=150", ARGV[0], "-Xlog:disable", *ARGV[1:]], relay.url, relay.url)
        granted(agent, name, ttl_ms=3000)
        granted_at = time.monotonic()
        threads = "import threading, time\nfor _ in range(150):\n threading.Thread(target=time.sleep, args=[60]).start()\nprint()\n"
        with subprocess.Popen([*nobody, "python3", "-c", threads], stdout=subprocess.PIPE) as others:
            others.stdout.readline()
            wait_past(granted_at + 1.3)
            others.kill()
        wait_past(granted_at + 3)
        check(int(agent.ask("remaining", hold="h")["remaining_ms"]) > 0, "it was renewed since")
        agent.end()
        relay.close()


scenarios.short_sliced("api/clients/java", None, compiled_in)
scenarios.one_after_the_other()


if __name__ == "__main__":
    clients_test.main(scenarios.end, parts=2)
