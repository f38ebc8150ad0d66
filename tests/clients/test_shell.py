#!/usr/bin/python3
"""The shell recipe, api/clients/shell/pawl-lease.sh: the scenarios of a client that renews when it is told to, and its run."""

import contextlib
import functools
import json
import os
import pathlib
import queue
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import clients_test  # finds the service tests' own package
import scenarios
from clients_test import AFTER, ROOT, Say, check, check_equal, check_in, skip, wait_until
from scenarios import fencing_token, force, history, scenario
from world.running import works

SCRIPT = str(ROOT / "api/clients/shell/pawl-lease.sh")
OUTCOMES = {0: "ok", 1: "not-done", 64: "mistake", 69: "not-done", 74: "unknown", 75: "held", 76: "lost"}
MISSING = next((f"there is no {one}" for one in ("curl", "jq") if not shutil.which(one)), None)


class ShellAgent:
    """What an agent is, made of calls of the script: a hold is the environment that acquire prints."""

    def __init__(self, lease_url, gateway_url, timeout_ms=clients_test.TIMEOUT_MS, script=SCRIPT, **env):
        self.settings = {"PAWL_LEASE_URL": lease_url, "PAWL_GATEWAY_URL": gateway_url, "TIMEOUT_MS": str(timeout_ms),
                         "ATTEMPTS": "2", **env}
        self.script = script
        self.holds, self.answers, self.goes, self.running = {}, queue.Queue(), threading.Event(), []
        self.goes.set()

    def call(self, hold, *words, stdin=b"", **more):
        env = clients_test.environment(**self.settings, **(self.holds.get(hold) or {}), **more)
        return subprocess.run([self.script, *words], input=stdin, capture_output=True, env=env, timeout=30, check=False)

    def keep(self, hold, text):
        found = dict(one.removeprefix("export ").split("=", 1) for one in shlex.split(text, posix=True) if "=" in one)
        self.holds.setdefault(hold, {}).update(found)

    def ask(self, verb, hold=None, **given):
        if verb == "acquire":
            self.holds[hold] = {}
        words, more, stdin = self.words(verb, given)
        done = self.call(hold, *words, stdin=stdin, **more)
        said, errors = done.stdout.decode(), done.stderr.decode()
        problem = re.match(r"pawl-lease: ([a-z-]+): ", errors)
        how = re.search(r"\(ended: (.*)\)", errors)
        who = re.search(r"\(holder: (.*)\)", errors)
        told = {"outcome": OUTCOMES.get(done.returncode, str(done.returncode)), "code": problem.group(1) if problem else errors,
                "retryable": str(int(done.returncode == 69)), "holder": who.group(1) if who else "",
                "ended": how.group(1) if how else "", "etag": said.strip(),
                "body": said}
        if verb == "release" and told["outcome"] == "ok":
            self.holds[hold]["LEASE_DEADLINE_MS"] = "0"
        if verb in ("acquire", "renew") and said:
            self.keep(hold, said)
            told["token"] = self.holds[hold].get("PAWL_TOKEN")
            told["fencing"] = self.holds[hold].get("PAWL_FENCING_TOKEN")
            said = str(int(self.holds[hold]["LEASE_DEADLINE_MS"]) - time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000)
            verb = "remaining"
        if verb == "remaining":
            told["remaining_ms"] = said.strip()
        return told

    @staticmethod
    def words(verb, given):
        if verb == "acquire":
            more = {name: given[key] for name, key in (("MODE", "mode"), ("PROPOSED_LEASE_ID", "lease_id")) if key in given}
            return [verb, given["name"], str(given.get("ttl_ms", 30000)), str(given.get("wait_ms", 0)),
                    given.get("holder", "")], more, b""
        if verb == "put":
            key = given.get("idempotency_key")
            return [verb, given["key"].replace("NO-UTF-8", "\udcff")], {"IDEMPOTENCY_KEY": key} if key else {}, given["body"].encode()
        return [verb, *(str(one) for one in given.values())], {}, b""

    def send(self, verb, **given):
        """In order; while stopped, what was sent waits: no process of it runs then."""
        before = self.running[-1] if self.running else None

        def work():
            if before:
                before.join()
            self.goes.wait()
            self.answers.put(self.ask(verb, **given))
        self.running.append(threading.Thread(target=work, daemon=True))
        self.running[-1].start()

    def answer(self):
        return self.answers.get(timeout=30)

    def stop(self):
        self.goes.clear()

    def go_on(self):
        self.goes.set()

    def kill(self):
        pass

    def end(self):
        pass


scenarios.begin(ShellAgent, MISSING, renews=False, enters=False, sessions=False, attempts=2)


def runs(name, ttl_ms, wait_ms, *command, aside=None, stderr=subprocess.PIPE):
    settings = (aside or scenarios.CLIENT["agent"]).settings
    return subprocess.Popen([SCRIPT, "run", name, str(ttl_ms), str(wait_ms), "--", *command], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=stderr, env=clients_test.environment(**settings),
                            start_new_session=True)


@scenario
def run_holds_it_while_the_command_runs_and_has_its_status(world, name):
    done = runs(name, 60000, 0, "sh", "-c", 'read -r word; echo "$word $PAWL_LEASE $PAWL_TOKEN ${LC_ALL-none}"; exit 7')
    wait_until(lambda: world.look(name)["state"] == "held", "it holds")
    token = world.look(name)["token"]
    out, _ = done.communicate(b"hello\n", timeout=15)
    check_equal((done.returncode, out.decode()), (7, f"hello {name} {token} {os.environ.get('LC_ALL', 'none')}\n"))
    check_equal(history(world, name), ["granted", "released"])
    world.acquire(name)
    late = runs(name, 3000, 0, "echo", "ran")
    check_equal((late.wait(15), late.stdout.read()), (75, b""))


@scenario
def run_that_is_interrupted_ends_the_command_and_gives_the_lease_back(world, lease):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        name = world.name()
        done = runs(name, 60000, 0, "sh", "-c", "echo up; exec tail -f /dev/null")
        check_equal(done.stdout.readline(), b"up\n")
        done.send_signal(number)
        check_equal((done.wait(15), last_words(done), world.look(name)["state"]), (128 + number, b"", "free"))
    check_equal(fencing_token(lease.seen[-1]) is None, False)


@scenario
def run_renews_and_stops_the_command_when_the_hold_is_lost(world, lease, name):
    lease.begin(None, None, AFTER)
    done = runs(name, 3000, 0, "sh", "-c", "exec tail -f /dev/null")
    wait_until(lambda: lease.methods().count("PUT") >= 4, "it renews, also after a lost answer")
    check(done.poll() is None, "it still runs")
    check_equal(history(world, name), ["granted"])
    force(world, name)
    check_equal(done.wait(15), 76)
    check_in(b"lease-lost", done.stderr.read())


@scenario
def run_goes_on_though_a_renewal_is_not_answered(world, lease, gateway):
    lease.begin(None, scenarios.MUTE)
    done = runs(world.name(), 6000, 0, "sh", "-c", "exec tail -f /dev/null", aside=ShellAgent(lease.url, gateway.url, 30000))
    wait_until(lambda: lease.methods().count("PUT") >= 3 or done.poll() is not None, "it renews again")
    check(done.poll() is None, "it still runs")
    done.terminate()
    check_equal(done.wait(15), 143)


@scenario
def run_stops_the_command_though_nobody_reads_what_it_says(world):
    name, (reader, writer) = world.name(), os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, b"x" * 4096):
            pass
    os.set_blocking(writer, True)
    done = runs(name, 1500, 0, "sh", "-c", "echo $$; exec tail -f /dev/null", stderr=writer)
    os.close(writer)
    command = int(done.stdout.readline())
    force(world, name)
    wait_until(lambda: not os.path.exists(f"/proc/{command}"), "the command ends")
    os.read(reader, 1 << 20)
    check_equal(done.wait(15), 76)
    os.close(reader)


@scenario
def run_stops_the_command_at_the_deadline_when_the_service_is_gone(world, name):
    victim = clients_test.Daemon("pawl-lease", *world.flags)
    aside = ShellAgent(victim.url, victim.url)
    done = runs(name, 1000, 0, "sh", "-c", "echo up; exec tail -f /dev/null", aside=aside)
    check_equal(done.stdout.readline(), b"up\n")
    victim.send(signal.SIGKILL)
    begun = time.monotonic()
    check_equal(done.wait(15), 76)
    check(time.monotonic() - begun < 6, "at the deadline")


scenarios.short_sliced("api/clients/shell", None, lambda folder: functools.partial(ShellAgent, script=f"{folder}/api/clients/shell/pawl-lease.sh"))

NO_SETPRIV = subprocess.run(["setpriv", "--pdeathsig", "KILL", "true"], check=False, capture_output=True).returncode != 0 \
    if shutil.which("setpriv") else True


def last_words(process):
    """All that is still said until nobody is left who could."""
    found = queue.Queue()
    threading.Thread(target=lambda: found.put(process.stdout.read()), daemon=True).start()
    return found.get(timeout=15)


@scenario
def run_killed_without_a_word_takes_the_command_with_it(world):
    if NO_SETPRIV:
        skip("there is no setpriv --pdeathsig")
    done = runs(world.name(), 60000, 0, "sh", "-c", "echo up; exec tail -f /dev/null")
    check_equal(done.stdout.readline(), b"up\n")
    done.kill()
    done.wait(15)
    check_equal(last_words(done), b"", "the command ends, too")


@contextlib.contextmanager
def beside(agent, programs, **env):
    """An agent that finds these programs first, {name: shell script}; and their folder."""
    with tempfile.TemporaryDirectory(prefix="pawl-beside-") as folder:
        for name, text in programs.items():
            file = pathlib.Path(folder, name)
            file.write_text(f"#!/bin/sh\n{text.format(folder=folder)}\n", encoding="utf-8")
            file.chmod(0o755)
        yield ShellAgent(agent.settings["PAWL_LEASE_URL"], agent.settings["PAWL_GATEWAY_URL"], PATH=f"{folder}:{os.environ['PATH']}", **env), folder


LATE = f"""if [ "$3" != true ]; then
    parent=$PPID
    echo here
    while kill -0 "$parent" 2> /dev/null; do sleep 0.01; done
fi
exec {shutil.which("setpriv")} "$@\""""


@scenario
def run_killed_before_the_command_has_begun_lets_it_not_begin(world, agent):
    if NO_SETPRIV:
        skip("there is no setpriv --pdeathsig")
    with beside(agent, {"setpriv": LATE}) as (slow, _):
        done = runs(world.name(), 60000, 0, "echo", "ran", aside=slow)
        check_equal(done.stdout.readline(), b"here\n")
        done.kill()
        done.wait(15)
        check_equal(last_words(done), b"", "it did not run")


@scenario
def run_without_setpriv_runs_the_command_all_the_same(world, agent):
    with beside(agent, {"setpriv": "exit 1"}) as (bare, _):
        done = runs(world.name(), 3000, 0, "echo", "ran", aside=bare)
        check_equal((done.wait(15), done.stdout.read()), (0, b"ran\n"))


@scenario
def what_cannot_be_written_or_executed_is_not_sent(world, agent, lease):
    for tool in ("jq", "curl"):
        with beside(agent, {tool: "exit 127"}) as (bare, _):
            scenarios.outcome(bare.ask("acquire", hold="h", name=world.name()), "not-done", "not-sent")
    bare = ["unshare", "--mount", "sh", "-c", "umount -l /proc && exec \"$@\"", "sh"]  # without its clock
    if works(*bare, "true"):
        check_equal(subprocess.run([*bare, SCRIPT, "acquire", world.name()], env=clients_test.environment(**agent.settings),
                                   capture_output=True, check=False).returncode, 69)
    check_equal(lease.methods(), [])


@scenario
def the_lease_id_is_on_no_command_line(world, agent):
    name, spies = world.name(), {one: f'echo "{one} $*" >> {{folder}}/log\nexec {shutil.which(one)} "$@"'
                                 for one in ("curl", "jq", "grep", "od", "tail", "cat")}
    with beside(agent, spies, PAWL_ACCESS_TOKEN=scenarios.ACCESS) as (spied, folder):
        scenarios.granted(spied, name)
        scenarios.outcome(spied.ask("renew", hold="h", ttl_ms=20000), "ok")
        scenarios.outcome(spied.ask("put", hold="h", key=name, body="x"), "ok")
        scenarios.outcome(spied.ask("release", hold="h"), "ok")
        said = pathlib.Path(folder, "log").read_text(encoding="utf-8")
    check_in("curl ", said)
    check(spied.holds["h"]["PAWL_LEASE_ID"] not in said, "the lease_id was on a command line")
    check(scenarios.ACCESS not in said, "the access token was on a command line")


@scenario
def run_hands_no_access_token_to_its_command(world, agent):
    aside = ShellAgent(agent.settings["PAWL_LEASE_URL"], agent.settings["PAWL_GATEWAY_URL"], PAWL_ACCESS_TOKEN=scenarios.ACCESS)
    done = runs(world.name(), 3000, 0, "sh", "-c", 'echo "${PAWL_ACCESS_TOKEN-none}"', aside=aside)
    check_equal(done.communicate(timeout=15)[0], b"none\n")


@scenario
def a_grant_that_could_not_be_told_is_given_back(world, agent):
    name, proposed = world.name(), world.name()
    settings = clients_test.environment(**agent.settings)
    with open("/dev/full", "wb") as full:
        for lease, more, told in ((name, {}, 1), (proposed, {"PROPOSED_LEASE_ID": "C" * 22}, 74)):
            done = subprocess.run([SCRIPT, "acquire", lease], stdout=full, stderr=subprocess.PIPE, env={**settings, **more},
                                  timeout=30, check=False)
            check_equal(done.returncode, told, done.stderr.decode())
    check_equal((world.look(name)["state"], world.look(proposed)["state"]), ("free", "held"))


@scenario
def what_a_renewal_found_lost_has_nothing_left(world, agent, name):
    scenarios.granted(agent, name, ttl_ms=60000)
    force(world, name)
    scenarios.outcome(agent.ask("renew", hold="h"), "lost")
    check_equal(int(agent.ask("remaining", hold="h")["remaining_ms"]), 0)
    scenarios.outcome(agent.ask("put", hold="h", key=name, body="x"), "lost", "deadline-passed")


@scenario
def run_hands_nothing_of_another_hold_to_its_command(world, agent):
    """Else what it asks with would be another's, and what it takes its own once more: the inner one would release it."""
    name, others = world.name(), ("PAWL_LEASE_ID", "LEASE_DEADLINE_MS", "PAWL_TOKEN_FILE", "PROPOSED_LEASE_ID")
    aside = ShellAgent(agent.settings["PAWL_LEASE_URL"], agent.settings["PAWL_GATEWAY_URL"], PAWL_LEASE_ID="A" * 22,
                       LEASE_DEADLINE_MS="999999999999", PAWL_TOKEN_FILE="/dev/null", PROPOSED_LEASE_ID="B" * 22)
    found = " ".join(f"${{{one}-none}}" for one in others)
    done = runs(name, 60000, 0, "sh", "-c", f'echo "{found}"; {SCRIPT} run {name} 3000 0 -- echo ran; echo $?', aside=aside)
    check_equal(done.communicate(timeout=15)[0], b"none none none none\n75\n")
    check_equal(history(world, name), ["granted", "released"])


def says(status, told):
    return Say(status, json.dumps(told).replace('"1e9"', "1e9").encode(), "application/problem+json")


@scenario
def what_an_answer_says_is_never_run(world, lease, gateway):
    name, over = world.name(), {"type": "/problems/wait-timeout", "status": 409, "code": "wait-timeout"}
    once = ShellAgent(lease.url, gateway.url)
    once.settings["ATTEMPTS"] = "1"

    def acquires(wanted, *said, **more):
        lease.begin(*said)
        told = once.ask("acquire", hold="h", name=name, **{"lease_id": scenarios.MINE, "wait_ms": 5000, **more})
        scenarios.outcome(told, wanted)
        return told
    with tempfile.TemporaryDirectory(prefix="pawl-run-") as folder:
        mark = os.path.join(folder, "mark")
        words = ["1", "touch", mark]
        for odd in (words, {"a": words}, f"1; touch {mark}", f"a[$(touch {mark})]", f"'; touch {mark}; '", [words]):
            told = acquires("held", says(409, {**over, **dict.fromkeys(("place_kept_ms", "retryable", "detail", "holder", "ended"), odd)}))
            check_equal(told["code"], "wait-timeout")
        text = json.dumps(words, separators=(",", ":"))
        acquires("unknown", says(409, {**over, "code": words, "type": f"/problems/{text}"}), wait_ms=0)
        for member in ("token", "fencing_token", "lease", "lease_id", "ttl_ms", "expires_in_ms", "waited_ms"):
            acquires("unknown", scenarios.grant(name, **{member: words}), wait_ms=0)
        good = json.loads(scenarios.grant(name).data.partition(b"\r\n\r\n")[2])
        two = json.dumps(good) + json.dumps({**good, "token": ["1", "PATH=/nowhere"]})
        acquires("unknown", Say(200, two.encode(), "application/json"), wait_ms=0)
        acquires("ok", says(409, {**over, "place_kept_ms": "1e9"}), says(409, {**over, "place_kept_ms": 10**400}),
                 says(200, {**good, "ttl_ms": "1e9", "expires_in_ms": 1e3, "token": 7.0}))
        check_equal(set(once.holds["h"]) - {"LEASE_DEADLINE_MS"}, {"PAWL_LEASE", "PAWL_LEASE_ID", "PAWL_TOKEN", "PAWL_FENCING_TOKEN"})
        check_equal(once.holds["h"]["PAWL_TOKEN"], "7")
        once.holds["h"]["LEASE_DEADLINE_MS"] = "9" * 14
        for odd in (words, "x", 0):
            lease.begin(says(200, {"holds": odd}))
            scenarios.outcome(once.ask("release", hold="h"), "unknown")
        check_equal(os.listdir(folder), [], "an answer was run")


if __name__ == "__main__":
    clients_test.main(scenarios.end, parts=2)
