#!/usr/bin/python3
"""libpawl and the command line: who asks, who hears of it, and what becomes of who is not known or may not."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from client_world import Line, Plan, Program, World, problem, program, until_ms, now_ms, wait_until
from world import BUILD, check, check_equal, check_in, main, run_daemon, test

WORLD = World()
LEASE, GATEWAY = Line(WORLD.lease_daemon.port), Line(WORLD.gateway_daemon.port)
FOLDER = Path(tempfile.mkdtemp(prefix="pawl-access-"))
ACCESS = "pawl_" + "S" * 43 + "_012345"
THERE = LEASE.url.replace("127.0.0.1", "0.0.0.0")  # which is this machine, but who knows that
NOT_KNOWN, MAY_NOT, NOT_YOURS = problem(401, "unauthenticated"), problem(403, "forbidden"), problem(403, "not-yours")


def plan(*plans):
    LEASE.plan(*plans)
    GATEWAY.plan()


def authorizations(*lines):
    """As they were sent, or None."""
    found = [re.search(rb"(?i)\r\nauthorization: *(.*)\r\n", request) for line in lines for request in line.requests]
    return [one and one[1].decode() for one in found]


def pawl(*words, status=0, **more):
    """Of which nobody hears the access token."""
    told = run_daemon("pawl", *words, environment={"PAWL_LEASE_URL": LEASE.url, "PAWL_GATEWAY_URL": GATEWAY.url, **more}, deadline_s=60)
    check_equal(told.returncode, status, told.stderr)
    check(ACCESS not in told.stdout + told.stderr, told.stderr)
    return told


# -- libpawl


@test
def an_access_token_goes_with_every_request_of_the_library(name):
    plan()
    with program(LEASE.url, GATEWAY.url, access=ACCESS) as run:
        for command in (f"acquire {name}", f"put {name} body=x", f"get {name}", "renew", f"look {name}", "release"):
            check_equal(run(command)["outcome"], "OK", command)
    check_equal(authorizations(LEASE, GATEWAY), [f"Bearer {ACCESS}"] * 6)


@test
def an_address_where_others_hear_the_access_token_cannot_be_used():
    plan()
    one = Program()
    for lease, more, outcome in ((THERE, "", "NOT_DONE"), (THERE, "plaintext=1", "OK"), (LEASE.url, "", "OK"),
                                 ("https://example.org", "", "OK"), ("unix:/nowhere", "", "OK"), ("http://example.org", "", "NOT_DONE"),
                                 (LEASE.url, "cert=x", "NOT_DONE"), ("unix:nowhere", "", "NOT_DONE")):
        told = one(f"open lease={lease} gateway={GATEWAY.url} access={ACCESS} {more}")
        check_equal((told["outcome"], told["code"]), (outcome, "" if outcome == "OK" else "bad-argument"), f"{lease} {more}")
    check_equal(one.end(), 0)
    check_equal(LEASE.requests, [])


@test
def a_guard_is_not_lost_by_a_refusal_and_goes_on_with_a_new_access_token():
    name, file = WORLD.name(), FOLDER / "token"
    file.write_text("first\n")
    plan()
    with program(LEASE.url, GATEWAY.url, access_file=file) as run:
        check_equal(run(f"guard {name} ttl=1500")["outcome"], "OK")
        plan(*[NOT_KNOWN, MAY_NOT, NOT_YOURS] * 99)
        wait_until(lambda: len(LEASE.requests) >= 3, "it asks again")
        file.write_text(ACCESS)
        plan()
        wait_until(lambda: len(LEASE.requests) >= 2, "it renews")
        check_equal(set(authorizations(LEASE)), {f"Bearer {ACCESS}"})
        until_ms(now_ms() + 1500)
        check_equal(run("enter")["outcome"], "OK")
        plan(*[NOT_KNOWN] * 999)
        wait_until(lambda: run("state")["lost"] == "1", "it is lost")
        told = run("leave")
        check_equal((told["outcome"], told["code"]), ("LOST", "deadline-passed"))
        plan()
        run("close")


@test
def a_file_without_an_access_token_sends_nothing():
    plan()
    with program(LEASE.url, GATEWAY.url, access_file=FOLDER / "none") as run:
        told = run(f"acquire {WORLD.name()}")
        check_equal((told["outcome"], told["code"]), ("NOT_DONE", "not-sent"))
    check_equal(LEASE.requests, [])


# -- pawl


@test
def who_is_not_known_or_may_not_is_told_at_once_and_is_77(name):
    for answer, code in ((NOT_KNOWN, "unauthenticated"), (MAY_NOT, "forbidden"), (NOT_YOURS, "not-yours"), (problem(403, "newer"), "newer")):
        for words in (("get", name), ("acquire", name), ("acquire", name, "--wait", "10s"), ("release", name), ("ls",)):
            plan(answer)
            check_in(code, pawl(*words, status=77, PAWL_LEASE_ID="x" * 22, PAWL_ACCESS_TOKEN=ACCESS).stderr)
            check_equal(authorizations(LEASE), [f"Bearer {ACCESS}"], "asked once")
    plan(problem(403, "forbidden", identity='"billing"', verb='"look"', lease='"orders:1"'))
    told = pawl("get", name, status=77).stderr
    check_in("who asked: billing", told)
    check_in("which needs: look", told)


@test
def the_access_token_comes_from_a_flag_a_file_or_the_environment():
    name, file, other = WORLD.name(), FOLDER / "pawl", FOLDER / "other"
    file.write_text(ACCESS)
    other.write_text("other\n")
    for words, more in (((), {"PAWL_ACCESS_TOKEN": ACCESS}), ((), {"PAWL_ACCESS_TOKEN_FILE": file}),
                        (("--access-token-file", file), {"PAWL_ACCESS_TOKEN_FILE": other, "PAWL_ACCESS_TOKEN": "another"})):
        plan()
        pawl("get", name, *words, **more)
        pawl(*words, "get", name, **more)
        check_equal(authorizations(LEASE), [f"Bearer {ACCESS}"] * 2)
    plan()
    check_in("access token", pawl("get", name, status=69, PAWL_ACCESS_TOKEN="a b").stderr)
    check_equal(LEASE.requests, [])


@test
def an_access_token_goes_to_no_other_machine_in_plain_text():
    plan()
    for command in (("get", "x"), ("acquire", "x"), ("ls",)):
        told = pawl(*command, status=64, PAWL_LEASE_URL=THERE, PAWL_ACCESS_TOKEN=ACCESS)
        check_in("--allow-plaintext", told.stderr)
    pawl("run", "x", "true", status=125, PAWL_LEASE_URL=THERE, PAWL_ACCESS_TOKEN=ACCESS)
    check_equal(LEASE.requests, [])
    for words, more in ((("--allow-plaintext",), {}), ((), {"PAWL_ALLOW_PLAINTEXT": "true"})):
        plan(MAY_NOT)
        pawl("get", "x", *words, status=77, PAWL_LEASE_URL=THERE, PAWL_ACCESS_TOKEN=ACCESS, **more)
        check_equal(authorizations(LEASE), [f"Bearer {ACCESS}"])


@test
def a_trace_has_the_variable_and_not_the_access_token_and_does_the_same():
    name, path = WORLD.name(), str(FOLDER / "traced")
    line = Line(WORLD.lease_daemon.port, path)
    told = pawl("get", name, "--trace", PAWL_LEASE_URL=line.url, PAWL_ACCESS_TOKEN=ACCESS)
    check_in("$PAWL_ACCESS_TOKEN", told.stderr)
    again = subprocess.run(["sh", "-c", told.stderr], env={**os.environ, "PAWL_ACCESS_TOKEN": ACCESS}, capture_output=True, text=True,
                           timeout=60, check=False)
    check_in(f'"lease":"{name}"', again.stdout)
    check_equal(authorizations(line), [f"Bearer {ACCESS}"] * 2)
    line.close()


@test
def a_unix_socket_is_an_address():
    name, lease, gateway = WORLD.name(), Line(WORLD.lease_daemon.port, str(FOLDER / "l")), Line(WORLD.gateway_daemon.port, str(FOLDER / "g"))
    more = {"PAWL_LEASE_URL": lease.url, "PAWL_GATEWAY_URL": gateway.url + "/", "PAWL_ACCESS_TOKEN": ACCESS}
    script = f"'{BUILD}/pawl' put {name} /etc/passwd && '{BUILD}/pawl' cat {name}"
    check_in("root:", pawl("run", name, "sh", "-c", script, **more).stdout)
    check_equal(authorizations(lease, gateway), [f"Bearer {ACCESS}"] * 2 + [None] * 2)
    check(all(b"\r\nHost: localhost\r\n" in one for one in lease.requests + gateway.requests), "as a service of this machine")
    for line in (lease, gateway):
        line.close()
    check_in("cannot be reached", pawl("get", name, status=69, PAWL_LEASE_URL="unix:/nowhere").stderr)
    for bad in ("unix:nowhere", "unix:/" + "x" * 120, "unix:/a:b"):
        pawl("get", name, status=64, PAWL_LEASE_URL=bad)


@test
def run_hands_no_access_token_to_its_command():
    plan()
    (FOLDER / "token").write_text(ACCESS)
    script = 'echo "${PAWL_ACCESS_TOKEN-none} ${PAWL_ACCESS_TOKEN_FILE-none} $PAWL_TOKEN"'
    told = pawl("run", WORLD.name(), "--access-token-file", FOLDER / "token", "--", "sh", "-c", script, PAWL_ACCESS_TOKEN=ACCESS)
    check_equal(told.stdout.split()[:2], ["none", str(FOLDER / "token")])
    told = pawl("run", WORLD.name(), "true", status=125, PAWL_ACCESS_TOKEN_FILE=str(FOLDER / "gone"))
    check_in("Is --access-token-file", told.stderr)


@test
def run_that_is_not_known_or_may_not_is_125_and_runs_nothing():
    for answer in (NOT_KNOWN, MAY_NOT, NOT_YOURS):
        plan(answer)
        check_equal(pawl("run", WORLD.name(), "echo", "ran", status=125).stdout, "")


@test
def run_that_is_not_known_any_more_ends_its_command_by_the_deadline_and_is_76():
    began = now_ms()
    plan(Plan(), *[NOT_KNOWN] * 999)
    told = pawl("run", WORLD.name(), "--ttl", "1500ms", "--", "sh", "-c", "exec sleep 60", status=76)
    check(now_ms() - began < 10000, "long after the deadline")
    check_in("lost", told.stderr)
    plan()


main(LEASE.close, GATEWAY.close, WORLD.close)
