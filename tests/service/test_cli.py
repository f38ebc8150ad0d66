#!/usr/bin/python3
"""test_cli.py - the commands of pawl against the real services, and against servers that misbehave."""

import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import socket
import stat
import struct
import shutil
import subprocess
import termios
import threading

from world import BUILD, World, check, check_equal, check_in, main, skip, test
from world.cli import PAWL, Cli, Server, response
from world.process import die_with_parent
from world.wait import DEADLINE_S, wait_until

COMMANDS = ["dev", "demo", "acquire", "renew", "release", "get", "ls", "sessions", "watch", "history", "force-release",
            "put", "cat", "rm", "resolve", "routes", "access", "keygen", "verify", "doctor", "completion"]

world = World()
pawl = Cli(world)
environment, begin = pawl.environment, pawl.start


def acquired(name, *words, **variables):
    """The grant."""
    return json.loads(pawl("acquire", name, "-o", "json", *words, **variables).stdout)


def path(name):
    return os.path.join(world.folder, name)


def forwarded(daemon, request):
    """What the daemon answers to this very request."""
    with socket.create_connection((daemon.host, daemon.port), timeout=DEADLINE_S) as connection:
        connection.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
        answer = b""
        while more := connection.recv(65536):
            answer += more
        return answer


# -- what it says of itself


@test
def help_of_every_command_begins_with_examples():
    check(pawl("--help").stdout.startswith("Examples:\n  pawl "))
    for command in COMMANDS:
        text = pawl(command, "--help").stdout
        check(text.startswith("Examples:\n  "), f"{command}: {text[:60]!r}")
        check_in(f"Usage: pawl {command} ", text)
        check_in(f"  {command} ", pawl("--help").stdout)
        check_equal(pawl("help", command).stdout, text)
    check_equal(pawl("help", "store", "status").stdout, pawl("store", "status", "--help").stdout)
    check_in("did you mean pawl run?", pawl("help", "rnu", status=64).stderr)
    check(re.fullmatch(r"pawl \d+\.\d+\.\d+\S*\n", pawl("--version").stdout), pawl("--version").stdout)


@test
def pawl_drill_runs_the_drill_or_names_the_package_that_has_it():
    check_in("flushall ", pawl("drill", "--list").stdout)
    alone = shutil.copy(PAWL, os.path.join(world.folder, "alone"))
    done = subprocess.run([alone, "drill", "--list"], env=environment(), capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    check_equal((done.returncode, done.stdout, done.stderr),
                (78, "", "pawl: pawl-drill is not installed: the package pawl-lab has it\n"))


@test
def what_is_mistyped_unknown_abbreviated_or_incomplete_is_an_error_that_says_what_was_probably_meant():
    for words, said in ((["acquier", "a"], "unknown command acquier; did you mean pawl acquire?"), (["lls"], "did you mean pawl ls?"),
                        (["acquire", "a", "--tll", "3s"], "unknown flag --tll; did you mean --ttl?"), ([], "missing argument: COMMAND;"),
                        (["acquire"], "missing argument: NAME;"), (["acquire", "a", "b"], "unexpected argument: b;"),
                        (["acquire", "a", "b", "c"], "unexpected argument: b;"), (["acquire", "a", "--ttl"], "needs a value"),
                        (["acquire", "a", "--hold", "me"], "--hold"), (["acquire", "a", "--hold=me"], "--hold"),
                        (["ls", "a"], "unexpected argument: a;"), (["--frobnicate", "ls"], "--frobnicate")):
        check_in(said, pawl(*words, status=64).stderr)
    check("did you mean" not in pawl("frobnicate", status=64).stderr)
    for secret in ("--lease-id", "--token", "--fencing-token"):
        error = pawl("renew", "a", f"{secret}=hush-hush-hush-hush-hush", status=64).stderr
        check("hush" not in error, error)


@test
def a_value_that_does_not_fit_is_an_error():
    for words in (["acquire", "a", "--ttl", "soon"], ["acquire", "a", "--ttl", "0"], ["acquire", "a", "-o", "yaml"],
                  ["resolve", "a", "-o", "env"], ["ls", "--limit", "0"], ["ls", "--limit", "-1"], ["ls", "--limit", "7x"],
                  ["acquire", "a", "--meta", "[1]"], ["acquire", "a", "--meta", "{"], ["acquire", "a", "--holder", ""],
                  ["acquire", "a", "--holder", "x" * 129], ["acquire", "a b"], ["acquire", ""], ["get", "a/b"],
                  ["--lease-url", "ftp://x", "ls"], ["ls", "--lease-url", "http://me:pw@127.0.0.1:1"]):
        check(pawl(*words, status=64).stderr.startswith("pawl: "), str(words))
    check_in("unit", pawl("acquire", "a", "--ttl", "300", status=64).stderr)
    check_in("to not wait, leave it out", pawl("acquire", "a", "-w", "0s", status=64).stderr)
    check_in("to not wait, use --no-wait", pawl("run", "a", "-w", "0s", "true", status=125).stderr)
    for key in ("a//b", "a/../b", "/a", "a/\n"):
        pawl("cat", key, status=64)
    pawl("acquire", "a", "--ttl", "99ms", status=64)  # the service's own limit
    pawl("acquire", "a", "--ttl", "25h", status=64)


@test
def an_unknown_variable_of_ours_is_an_error_and_a_daemons_is_not():
    error = pawl("ls", status=78, PAWL_HOLDR="me").stderr
    check_in("PAWL_HOLDR", error)
    check_in("did you mean PAWL_HOLDER?", error)
    pawl("ls", status=78, PAWL_XYZZY="")
    for daemon in ("pawl-lease", "pawl-gateway"):
        usage = subprocess.run([BUILD / daemon, "--help"], capture_output=True, text=True, check=True).stdout
        flags = set(re.findall(r"^  --([\w-]+)", usage, re.M)) - {"help", "version", "check-config", "init-store", "registrars", "max-ttl", "floor"}
        check("redis" in flags, usage)
        pawl("ls", **{"PAWL_" + flag.upper().replace("-", "_"): "x" for flag in flags})
    pawl("ls", status=64, PAWL_OUTPUT="yaml")


@test
def flags_beat_the_environment_and_those_before_the_command_count_too(name):
    acquired(name, "--holder", "flag", PAWL_HOLDER="variable", PAWL_TTL="1h")
    look = world.look(name)
    check_equal(look["holders"][0]["holder"], "flag")
    check(look["holders"][0]["expires_in_ms"] > 3000000, str(look))
    dead = "http://127.0.0.1:1"
    pawl("--lease-url", world.lease.url, "get", name, PAWL_LEASE_URL=dead)
    pawl("--lease-url", dead, "get", name, "--lease-url", world.lease.url)
    pawl("--lease-url", dead, "get", name, status=69)


# -- leases


@test
def env_output_is_understood_by_a_shell_and_enough_to_go_on():
    name = world.name("it")
    script = f"""set -eu
        eval "$({PAWL} acquire {name} --ttl 10m -o env)"
        test "$PAWL_LEASE" = {name}
        echo "token $PAWL_TOKEN"
        printf 'packed' | {PAWL} put {name}/box
        {PAWL} renew {name} --ttl 5m -o env >/dev/null
        {PAWL} cat {name}/box --fenced
        {PAWL} rm {name}/box
        {PAWL} release {name}"""
    status, said, error = pawl.shell(script)
    check_equal((status, error), (0, ""))
    check(re.match(r"token \d+\n", said), said)
    check_in(f"packed{name}/box deleted\n{name} released\n", said)


@test
def env_output_is_lines_of_a_name_and_a_quoted_value():
    lines = pawl("acquire", world.name(), "-o", "env").stdout.splitlines()
    values = dict(line.split("=", 1) for line in lines[:-1])
    check_equal(sorted(values), ["LEASE_GRANT", "LEASE_HOLDS", "PAWL_FENCING_TOKEN", "PAWL_LEASE", "PAWL_LEASE_ID", "PAWL_TOKEN"])
    for value in values.values():
        check(value.startswith("'") and value.endswith("'") and len(shlex.split(value)) == 1, value)
    check_equal(lines[-1], "export PAWL_LEASE PAWL_TOKEN PAWL_FENCING_TOKEN PAWL_LEASE_ID")


@test
def two_that_inherit_the_hold_of_one_lease_keep_each_other_out_of_another(name):
    one = f'(eval "$({PAWL} acquire {world.name()} -o env)" && echo in)'
    first = f'eval "$({PAWL} acquire {name} -o env)"'
    check_equal(pawl.shell(f"{first}; {one}; {one}")[:2], (75, "in\n"))
    check_in("another lease", pawl("renew", name, status=76, PAWL_LEASE="other", PAWL_LEASE_ID="A" * 22).stderr)


@test
def a_hostile_service_cannot_make_the_shell_run_anything():
    grant = GRANT | {"lease": "x", "fencing_token": "a\\'b#';touch${IFS}pwned;'`id`$(touch${IFS}pwned)'"}

    def answer(request):
        grant["lease_id"] = proposed(request)
        return response(201, json.dumps(grant).encode())
    server = Server(answer)
    done = subprocess.run(["sh", "-c", f'eval "$({PAWL} acquire x -o env)"; printf "%s|%s|%s" "$PAWL_LEASE" '
                           '"$PAWL_FENCING_TOKEN" "$PAWL_LEASE_ID"'], env=environment(PAWL_LEASE_URL=server.url),
                          capture_output=True, text=True, timeout=DEADLINE_S, check=False, cwd=world.folder)
    check_equal(done.stdout, f'{grant["lease"]}|{grant["fencing_token"]}|{grant["lease_id"]}', done.stderr)
    check(not os.path.exists(path("pwned")))


@test
def a_grant_that_is_over_when_it_is_read_is_not_told_as_one(name):
    before = world.acquire(name)
    waiter = begin("acquire", name, "-w", "10s", "--ttl", "100ms", "-o", "env")
    wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
    waiter.send_signal(signal.SIGSTOP)
    world.release(name, before)
    wait_until(lambda: (world.look(name)["state"], world.look(name)["token"]) == ("free", before["token"] + 1), "its hold is over")
    waiter.send_signal(signal.SIGCONT)
    out, error = waiter.communicate(timeout=DEADLINE_S)
    check_equal(waiter.returncode, 76, error)
    check(out.startswith("unset") and out.endswith("(exit 76)\n"), out)


@test
def text_output_shows_no_secret():
    name, file = world.name(), path("hush")
    text = pawl("acquire", name, "--lease-id-file", file, "--holder", "me").stdout
    lease_id = read(file)
    told = [text, pawl("get", name).stdout, pawl("ls").stdout, pawl("renew", name, "--lease-id-file", file).stdout,
            pawl("acquire", name, status=75).stderr, pawl("release", name, "--lease-id-file", file).stdout]
    for one in told:
        check_in(name, one)
        check(lease_id not in one and "sig=" not in one, one)
    check_in("--lease-id-file", pawl("acquire", world.name()).stderr, "it was not kept")


@test
def json_output_is_the_services_own(name):
    grant = acquired(name, "--meta", '{"a":[1,2]}', "--ttl", "20s")
    check_equal((grant["lease"], grant["meta"], grant["ttl_ms"]), (name, {"a": [1, 2]}, 20000))
    look = json.loads(pawl("get", name, "-o", "json").stdout)
    check_equal(look["token"], grant["token"])
    renewed = json.loads(pawl("renew", name, "-o", "json", PAWL_LEASE_ID=grant["lease_id"]).stdout)
    check_equal(renewed["token"], grant["token"])
    check_equal(pawl("release", name, "-o", "json", PAWL_LEASE_ID=grant["lease_id"]).stdout, "")


@test
def a_lost_hold_is_76_for_renew_release_and_acquire(name):
    grant = acquired(name)
    pawl("release", name, PAWL_LEASE_ID=grant["lease_id"])
    pawl("release", name, PAWL_LEASE_ID=grant["lease_id"])  # once more does no harm
    pawl("renew", name, status=76, PAWL_LEASE_ID=grant["lease_id"])
    pawl("release", name, status=76, PAWL_LEASE_ID="A" * 22)
    check_in("unset it", pawl("acquire", name, status=76, PAWL_LEASE_ID=grant["lease_id"]).stderr)


@test
def without_what_it_needs_or_with_a_bad_one_nothing_is_sent():
    server = Server(lambda request: None)
    for words, variables in ((["renew", "a"], {}), (["release", "a"], {}), (["renew", "a"], {"PAWL_LEASE_ID": "short"}),
                             (["release", "a"], {"PAWL_LEASE_ID": "x" * 22 + "\r\nX: y"}),
                             (["release", "a", "--lease-id-file", path("none")], {}),
                             (["put", "a"], {}), (["rm", "a"], {}), (["cat", "a", "--fenced"], {}),
                             (["acquire", "a"], {"PAWL_GATEWAY_URL": "gateway"}),
                             (["put", "a"], {"PAWL_FENCING_TOKEN": "1;x\nY: z"})):
        pawl(*words, status=64, **{"PAWL_LEASE_URL": server.url, "PAWL_GATEWAY_URL": server.url, **variables})
    check_equal(server.requests, [])


@test
def a_lease_id_file_is_ours_alone_and_proves_the_hold():
    name, file = world.name(), path("own")
    first = acquired(name, "--lease-id-file", file)
    check_equal(os.stat(file).st_mode & 0o777, 0o600)
    check_equal(acquired(name, "--lease-id-file", file)["token"], first["token"])  # the same grant again
    pawl("release", name, "--lease-id-file", file)
    second = acquired(name, "--lease-id-file", file)  # its hold is over: a new lease_id takes its place
    check(second["token"] > first["token"] and second["lease_id"] != first["lease_id"], str(second))
    pawl("release", name, "--lease-id-file", file)


@test
def what_an_earlier_env_output_left_does_not_stand_in_the_way(name):
    script = f"""eval "$({PAWL} acquire {name} -o env)"; one=$PAWL_TOKEN
        eval "$({PAWL} acquire {name} -o env)"; again=$PAWL_TOKEN
        {PAWL} release {name} >/dev/null
        eval "$({PAWL} acquire {name} -o env)"; two=$PAWL_TOKEN
        {PAWL} release {name} >/dev/null && echo "$one $again $two" """
    status, said, error = pawl.shell(f"set -eu; {script}")
    check_equal((status, error.count("is held already by this lease_id")), (0, 1), error)
    one, again, two = map(int, said.split())
    check(one == again < two, said)


@test
def a_hold_of_before_is_told_apart_from_a_new_one():
    name, file = world.name(), path("shared")
    first = pawl("acquire", name, "--lease-id-file", file, "-o", "json")
    check_equal((first.stderr, json.loads(first.stdout)["grant"], json.loads(first.stdout)["holds"]), ("", "new", 1))
    for kind in ("text", "json", "env"):
        again = pawl("acquire", name, "--lease-id-file", file, "-o", kind)
        check_in(f"{name} is held already by this lease_id: hold count 1.", again.stderr)
        check_in("each needs one of its own", again.stderr)
        check_in({"text": "is held already", "json": '"grant":"same"}\n', "env": "LEASE_GRANT='same'\n"}[kind], again.stdout)
    pawl("release", name, "--lease-id-file", file)
    over = pawl("acquire", name, "--lease-id-file", file, "-o", "env")
    check_in("LEASE_GRANT='new'\nLEASE_HOLDS='1'\n", over.stdout)
    check_equal(over.stderr, "")


@test
def who_shares_a_file_finds_in_it_the_lease_id_that_was_granted():
    """Also when all replace one whose hold is over, or make it, in the same moment."""
    name, file = world.name(), path("crowd")
    for _ in range(4):
        crowd = [begin("acquire", name, "--lease-id-file", file, "-o", "json") for _ in range(6)]
        answers = [one.communicate(timeout=DEADLINE_S)[0] for one in crowd]
        kept = read(file)
        granted = {json.loads(answer)["lease_id"] for one, answer in zip(crowd, answers) if one.returncode == 0}
        check_equal(granted, {kept})
        pawl("release", name, "--lease-id-file", file)


def written(file, text):
    with open(file, "w", encoding="ascii") as stream:
        stream.write(text + "\n")


def read(file):
    with open(file, encoding="ascii") as stream:
        return stream.read().strip()


def proposed(request):
    return json.loads(request.partition(b"\r\n\r\n")[2])["lease_id"]


GRANT = {"lease": "a", "token": 1, "epoch": 1, "mode": "exclusive", "fencing_token": "1;x", "holds": 1, "ttl_ms": 1000,
         "expires_in_ms": 1000, "renew_in_ms": 333, "waited_ms": 0}


def grant_of(request, status=201):
    return response(status, json.dumps(GRANT | {"lease_id": proposed(request)}).encode())


@test
def who_was_faster_at_the_file_is_joined_not_pushed_out():
    """Two find that its hold is over; the other has put a new lease_id there before this one can."""
    file, others = path("race"), "B" * 22
    written(file, "A" * 22)

    def over(request):
        if proposed(request) == "A" * 22:
            written(file, others)
            return problem_of(409, "hold-over")
        return grant_of(request, 200)
    server = Server(over)
    done = pawl("acquire", "a", "--lease-id-file", file, "-o", "json", PAWL_LEASE_URL=server.url)
    check_equal([proposed(request) for request in server.requests], ["A" * 22, others])
    check_equal((read(file), json.loads(done.stdout)["grant"]), (others, "same"))


@test
def a_refused_acquire_takes_no_file_away_that_has_anothers_lease_id():
    file, others = path("others"), "B" * 22
    server = Server(lambda request: written(file, others) or problem_of(409, "lease-held"))
    pawl("acquire", "a", "--lease-id-file", file, status=75, PAWL_LEASE_URL=server.url)
    check_equal(read(file), others)


@test
def a_file_that_was_taken_away_meanwhile_is_there_when_it_was_granted():
    file, mine = path("away"), "A" * 22
    written(file, mine)
    server = Server(lambda request: os.unlink(file) or grant_of(request))
    pawl("acquire", "a", "--lease-id-file", file, PAWL_LEASE_URL=server.url)
    check_equal(read(file), mine)


@test
def a_folder_that_a_stranger_keeps_locked_holds_nobody_up_for_ever():
    name, folder = world.name(), path("kept")
    os.mkdir(folder)
    holder = os.open(folder, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        check_equal(acquired(name, "--lease-id-file", os.path.join(folder, "id"))["lease_id"], read(os.path.join(folder, "id")))
    finally:
        os.close(holder)


@test
def a_hold_that_may_be_of_this_very_command_is_not_said_to_be_older():
    file, left = path("maybe"), [None]
    written(file, "A" * 22)
    server = Server(lambda request: left.pop() if left else grant_of(request, 200))
    done = pawl("acquire", "a", "--lease-id-file", file, "-o", "env", PAWL_LEASE_URL=server.url)
    check_in("perhaps since before this command", done.stderr)
    left, file = [None], path("certainly")
    server = Server(lambda request: left.pop() if left else grant_of(request, 200))
    done = pawl("acquire", "a", "--lease-id-file", file, "-o", "env", PAWL_LEASE_URL=server.url)
    check_equal(done.stderr, "")  # the lease_id is new: it can only be of the first attempt
    check_in("LEASE_GRANT='new'", done.stdout)


# -- acquire: in line, beside others


def in_line(name):
    wait_until(lambda: world.look(name)["waiting"] == 1, f"one stands in line for {name}")


def ended(process, status=0):
    out, error = process.communicate(timeout=DEADLINE_S)
    check_equal(process.returncode, status, out + error)
    return out, error


@test
def on_a_terminal_it_is_shown_who_is_waited_for_in_one_line():
    long = "n" * 90
    for columns, stem, holder, line in ((120, "job", "Ann\u202eOther", r"waiting for job:\d+: held by Ann\?Other for .+ in line"),
                                        (60, "job", "Ann\u202eOther", r"job:\d+: held by Ann\?Other, \d+ s left; 1 in line"),
                                        (60, "job", long, r"job:\d+: held by n+, \d+ s left; 1 in line"),
                                        (60, long, "me", r"n+: held by me, \d+ s left; 1 in line")):
        name = world.name(stem)
        mine = acquired(name, "--holder", holder)
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        waiter = subprocess.Popen([PAWL, "acquire", name, "-w", "1h", "-o", "json"], env=environment(), stdin=child, stdout=subprocess.PIPE,
                                  stderr=child, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(child)
        text = ""
        while " in line" not in text:
            check(select.select([parent], [], [], DEADLINE_S)[0], f"it says who is waited for; it said {text!r}")
            text += os.read(parent, 65536).decode()
        shown = text.removeprefix("\r\x1b[K").partition("\r")[0]
        check(re.fullmatch(line, shown) and len(shown) < columns, f"{shown!r} in {columns} columns")
        world.release(name, mine)
        check_equal(json.loads(waiter.communicate(timeout=DEADLINE_S)[0])["grant"], "new")
        os.close(parent)


@test
def a_lease_that_another_holds_and_a_wait_that_is_over_are_75_and_leave_nothing_behind():
    name, file = world.name(), path("over")
    acquired(name, "--holder", "somebody else")
    for words, said in ((["-w", "50ms"], ("wait-timeout",)), ([], ("somebody else", "lease-held", "Try again", name, "wait in line with --wait."))):
        error = pawl("acquire", name, *words, "--lease-id-file", file, status=75).stderr
        for part in said:
            check_in(part, error)
        check_equal((world.look(name)["waiting"], os.path.exists(file)), (0, False))
    pawl("acquire", name, "--lease-id-file", path("no/such/folder"), status=1)


@test
def a_wait_whose_answer_does_not_come_is_unknown_and_each_attempt_waits_for_what_is_left():
    for last in (problem_of(409, "wait-timeout"), problem_of(409, "superseded"), None):
        server = Server(lambda request, last=last: None if len(server.requests) < 3 else last)
        error = pawl("acquire", "a", "-w", "600ms", "--lease-id-file", path("line"), status=69, PAWL_LEASE_URL=server.url).stderr
        check(error.startswith(UNKNOWN), error)
        check(os.path.exists(path("line")))
        os.unlink(path("line"))
        asks = [json.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests]
        waits = [ask["wait_ms"] for ask in asks]
        check(600 >= waits[0] > waits[1] > waits[2] >= 1 and len({ask["lease_id"] for ask in asks}) == 1, asks)


@test
def a_wait_that_is_longer_than_one_request_is_asked_for_in_slices_that_keep_the_place():
    name, daemon = world.name(), world.lease_daemon

    def too_short(request):
        return problem_of(409, "wait-timeout") if len(server.requests) < 3 else forwarded(daemon, request)
    server = Server(too_short)
    grant = acquired(name, "-w", "2h", PAWL_LEASE_URL=server.url)
    asks = [json.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests]
    check_equal([(ask["lease_id"], ask["keep_place_ms"]) for ask in asks], [(grant["lease_id"], 30000)] * 3)
    check(all(15000 <= ask["wait_ms"] <= 20000 for ask in asks), asks)


@test
def a_list_whose_cursors_go_round_in_a_circle_ends_with_an_error():
    for again in (1, 3, 40):
        def page(request, again=again):
            come = len(server.requests)
            turn = come if come < 5 else 5 + (come - 5) % again
            return response(200, json.dumps({"items": [], "next_cursor": f"cursor{turn}"}).encode())
        server = Server(page)
        check_in("a cursor twice", pawl("ls", status=70, PAWL_LEASE_URL=server.url).stderr)
        check(len(server.requests) < 16 + 4 * again, f"{len(server.requests)} pages")


@test
def who_takes_the_place_in_the_line_keeps_the_file():
    name, file = world.name(), path("place")
    mine = acquired(name)
    first = begin("acquire", name, "-w", "1h", "--lease-id-file", file)
    in_line(name)
    second = begin("acquire", name, "-w", "1h", "--lease-id-file", file, "-o", "json")
    check_in("superseded", ended(first, status=1)[1])
    in_line(name)
    check(os.path.exists(file), "the second can be released, should it be granted and then killed")
    world.release(name, mine)
    grant = json.loads(ended(second)[0])
    check_equal(read(file), grant["lease_id"])


@test
def what_may_be_granted_is_given_back_before_a_signal_of_the_last_moment_ends_the_command():
    def answer(request):
        if request.startswith(b"POST") and b"keep_place_ms" not in request:  # it leaves the line
            waiter.send_signal(signal.SIGTERM)
    server = Server(answer)
    waiter = begin("acquire", "a", "-w", "300ms", PAWL_LEASE_URL=server.url)
    ended(waiter, status=-signal.SIGTERM)
    check(server.requests[-1].startswith(b"DELETE "), str(server.requests))


@test
def shared_permits_and_lock_delay_are_asked_for(name):
    acquired(name, "--mode", "shared")
    check_equal(acquired(name, "--mode", "shared")["mode"], "shared")
    pawl("acquire", name, "--mode", "exclusive", status=75)
    name = world.name()
    check_equal([acquired(name, "--permits", "2")["mode"] for _ in range(2)], ["permits"] * 2)
    pawl("acquire", name, "--permits", "2", status=75)
    pawl("acquire", name, "--permits", "3", status=1)
    name = world.name()
    acquired(name, "--ttl", "100ms", "--lock-delay", "10m")
    wait_until(lambda: world.look(name)["state"] == "delayed", "it is delayed after the loss")
    for words in (["--mode", "permits"], ["--mode", ""], ["--permits", "0"], ["--permits", "2", "--mode", "shared"],
                  ["--permits", "1000001"], ["--wait", "0s"], ["-w", "30"], ["--lock-delay", "11m"], ["--keep-place", "61s"]):
        pawl("acquire", world.name(), *words, status=64)


# -- answers that do not come


UNKNOWN, NOT_DONE = "pawl: may have been done: ", "pawl: certainly not done: "  # the first words of a 69


def check_69(words, phrase, url):
    """It begins with this phrase, and -o json, where there is one, has a member that says the same."""
    more = {"PAWL_LEASE_URL": url, "PAWL_GATEWAY_URL": url, "PAWL_LEASE_ID": "A" * 22, "PAWL_FENCING_TOKEN": "1"}
    done = pawl(*words, status=69, **more)
    check(done.stderr.startswith(phrase), f"{words}: {done.stderr}")
    check_equal(done.stdout, "", f"{words}")
    if words[0] == "cat":
        return
    told = pawl(*words, "-o", "json", status=69, **more).stdout
    check_equal(json.loads(told)["outcome"], "unknown" if phrase == UNKNOWN else "not-done", f"{words}: {told}")


@test
def an_unknown_end_is_69_and_says_so_and_what_cannot_be_repeated_is_sent_once():
    for words, times in ((["acquire", "a"], 2), (["acquire", "a", "-w", "1ms"], 2), (["renew", "a"], 2), (["release", "a"], 1),
                         (["put", "a"], 1), (["rm", "a"], 1), (["cat", "a", "--fenced"], 1), (["force-release", "a", "--yes"], 1)):
        server = Server(lambda request: None)
        pawl(*words, status=69, PAWL_LEASE_URL=server.url, PAWL_GATEWAY_URL=server.url, PAWL_LEASE_ID="A" * 22,
             PAWL_FENCING_TOKEN="1")
        check_equal(len(server.requests), times, str(words))
        check_69(words, UNKNOWN, server.url)


@test
def a_read_without_an_answer_was_certainly_not_done():
    server = Server(lambda request: None)
    for words in (["get", "a"], ["ls"], ["history", "a"], ["cat", "a"], ["watch", "a"]):
        check_69(words, NOT_DONE, server.url)


@test
def what_a_service_says_of_a_69_is_told_the_same_way():
    for status, code, phrase in ((503, "store-unavailable", NOT_DONE), (503, "draining", NOT_DONE), (504, "outcome-unknown", UNKNOWN),
                                 (503, "of-a-later-version", NOT_DONE), (502, "of-a-later-version", UNKNOWN)):
        server = Server(lambda request, status=status, code=code: problem_of(status, code))
        for words in (["renew", "a"], ["release", "a"], ["put", "a"]):
            check_69(words, phrase, server.url)
        check_69(["get", "a"], NOT_DONE, server.url)
        said = pawl("get", "a", status=69, PAWL_LEASE_URL=server.url).stderr
        check_equal(": T\n  D\n" in said, code != "outcome-unknown", said)  # not: certainly not done, it may have happened
        told = json.loads(pawl("put", "a", "-o", "json", status=69, PAWL_GATEWAY_URL=server.url, PAWL_FENCING_TOKEN="1").stdout)
        check_equal((told["code"], told["why"]), (code, "D"))


def problem_of(status, code, **members):
    told = {"type": f"/problems/{code}", "title": "T", "status": status, "detail": "D", "code": code}
    told.update(members)
    return response(status, json.dumps(told).encode(), "Content-Type: application/problem+json")


@test
def a_refusal_of_a_repeat_is_no_refusal_and_keeps_the_lease_id():
    file = path("doubt")
    for answers in ([None, problem_of(409, "lease-held")], [None, problem_of(422, "out-of-range")],
                    [response(404, b"<html>")] * 2, [response(302)] * 2, [response(413)] * 2,
                    [response(200, b"{}"), problem_of(409, "lease-held")], [response(409, b'{"code":"lease-held"}')] * 2):
        server = Server(lambda request, left=list(answers): left.pop(0))
        error = pawl("acquire", "a", "--lease-id-file", file, status=69, PAWL_LEASE_URL=server.url).stderr
        check(error.startswith(UNKNOWN), error)
        check(os.path.exists(file), f"{answers}")
        os.unlink(file)
    for refusal in (problem_of(422, "out-of-range"), problem_of(503, "store-unavailable")):  # each is run twice, for text and for JSON
        server = Server(lambda request, left=[None, refusal] * 2: left.pop(0))
        check_69(["renew", "a"], UNKNOWN, server.url)


@test
def a_refusal_is_told_as_an_object_too_and_in_the_words_of_the_command_line(name):
    acquired(name, "--holder", "me", "--ttl", "20s")
    for words, status, members in ((["acquire", name], 75, {"code": "lease-held", "holder": "me", "token": 1}),
                                   (["acquire", name, "-w", "50ms"], 75, {"code": "wait-timeout", "holder": "me"}),
                                   (["put", name], 64, {"code": "malformed-token"}), (["rm", name], 64, {"code": "malformed-token"}),
                                   (["renew", name], 76, {"code": "lease-lost", "ended": "unknown"})):
        told = json.loads(pawl(*words, "-o", "json", status=status, PAWL_LEASE_ID="A" * 22, PAWL_FENCING_TOKEN="1").stdout)
        check_equal({"outcome": told["outcome"]} | {name: told[name] for name in members}, {"outcome": "refused"} | members)
        check_equal(told["why"], told["detail"])
        check(told["code"] != "lease-held" or 10000 < told["expires_in_ms"] <= 20000, told)
    server = Server(lambda request: problem_of(401, "unauthenticated", why="expired"))
    text = pawl("get", "a", "-o", "json", status=77, PAWL_LEASE_URL=server.url).stdout
    check_equal((text.count('"why"'), json.loads(text)["why"]), (1, "expired"))
    check_in("--ttl must be 100ms to 1d.", pawl("acquire", name, "--ttl", "1ms", status=64).stderr)


@test
def a_lost_acquire_that_nobody_can_release_is_given_back():
    name, daemon = world.name(), world.lease_daemon

    def lose_the_grants(request):
        answer = forwarded(daemon, request)
        return answer if request.startswith(b"DELETE") else None
    server = Server(lose_the_grants)
    error = pawl("acquire", name, "-o", "env", status=69, PAWL_LEASE_URL=server.url).stderr
    check_in("until its ttl", error)
    check_equal(world.look(name)["state"], "free")
    server = Server(lambda request: None)
    check_in("may be held until its ttl", pawl("acquire", name, status=69, PAWL_LEASE_URL=server.url).stderr)


@test
def a_service_that_is_not_there_is_69_and_certainly_nothing_happened():
    for words in (["acquire", "a"], ["acquire", "a", "-w", "1ms"], ["renew", "a"], ["release", "a"], ["get", "a"], ["ls"],
                  ["history", "a"], ["watch", "a"], ["force-release", "a", "--yes"], ["put", "a"], ["cat", "a"],
                  ["cat", "a", "--fenced"], ["rm", "a"]):
        check_69(words, NOT_DONE, "http://127.0.0.1:1")
    check_in("certainly not done", pawl("ls", "--lease-url", "http://no-such-host.invalid", status=69).stderr)


@test
def proxies_and_redirects_are_not_followed(name):
    dead = "http://127.0.0.1:1"
    pawl("get", name, http_proxy=dead, all_proxy=dead, HTTP_PROXY=dead, ALL_PROXY=dead)
    target = Server(lambda request: response(200, b"{}"))
    server = Server(lambda request: response(307, b"", f"Location: {target.url}/"))
    pawl("get", name, status=69, PAWL_LEASE_URL=server.url)
    check_equal(target.requests, [])


@test
def a_list_with_what_is_no_name_of_a_lease_is_not_pawls():
    """A shell would complete it."""
    for name in ("a b", "a'b", "$(id)", "a\tb", ""):
        body = json.dumps({"items": [{"lease": "a", "state": "free"}, {"lease": name, "state": "free"}], "next_cursor": None})
        server = Server(lambda request, body=body: response(200, body.encode()))
        check_equal(pawl("ls", status=69, PAWL_LEASE_URL=server.url).stdout, "")


@test
def an_answer_that_is_not_pawls_is_told_as_such():
    server = Server(lambda request: response(404, b"<html>nothing here</html>"))
    check_in("not as Pawl does", pawl("get", "a", status=69, PAWL_LEASE_URL=server.url).stderr)
    for foreign in (response(200, b"<html>hello</html>"), response(200, b"{}"), response(204), response(404, b"<html>"),
                    response(201, b"", 'ETag: "e"'), response(401), response(405), response(429)):
        server = Server(lambda request, foreign=foreign: foreign)
        for words in (["get", "a"], ["ls"], ["history", "a"], ["cat", "a"], ["put", "a"], ["rm", "a"], ["renew", "a"],
                      ["release", "a"], ["force-release", "a", "--yes"], ["resolve", "a", "--all", "--yes"], ["watch", "a"],
                      ["routes"], ["routes", "adopt"]):
            if words[0] == "release" and b" 204 " in foreign:
                continue  # nothing but the status tells whose it is
            done = pawl(*words, status=69, PAWL_LEASE_URL=server.url, PAWL_GATEWAY_URL=server.url, PAWL_LEASE_ID="A" * 22,
                        PAWL_FENCING_TOKEN="1")
            check_equal(done.stdout, "", f"{words}")
            check_in("not as Pawl does", done.stderr)
            changes = words[0] in ("put", "rm", "renew", "release", "force-release", "resolve") or words == ["routes", "adopt"]
            check(done.stderr.startswith(UNKNOWN if changes else NOT_DONE), f"{words}: {done.stderr}")


@test
def what_is_said_of_another_lease_is_no_answer():
    look = {"lease": "b", "state": "free", "token": 0, "epoch": 1, "mode": None, "holders": [], "waiting": 0}
    server = Server(lambda request: response(200, json.dumps(look).encode()))
    check_in("not as Pawl does", pawl("get", "a", status=69, PAWL_LEASE_URL=server.url).stderr)
    check_in("b is free", pawl("get", "b", PAWL_LEASE_URL=server.url).stdout)


@test
def control_characters_of_a_service_do_not_reach_the_terminal():
    evil = "\x1b]0;owned\x07\x9b31m\n\u202e\u2066\u200b\u2028\ufeff"
    server = Server(lambda request: problem_of(409, "lease-held", title=evil, detail=evil, holder=evil, instance=evil))
    known = Server(lambda request: response(200, json.dumps({"identity": evil, "by": evil, "hash": "h", "may": [evil]}).encode()))
    for done in (pawl("acquire", "a", status=75, PAWL_LEASE_URL=server.url),
                 pawl("access", "whoami", PAWL_LEASE_URL=known.url, PAWL_GATEWAY_URL=known.url)):
        check(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", done.stdout + done.stderr),
              repr(done.stdout + done.stderr))


@test
def a_holder_cannot_look_like_another(name):
    acquired(name, "--holder", "admin\u202e7-nimda")  # the service takes it; it is not shown as it wants to be
    for text in (pawl("get", name).stdout, pawl("ls", "--prefix", name).stdout, pawl("history", name).stdout,
                 on_a_terminal("ls", "--prefix", name), on_a_terminal("history", name), pawl("acquire", name, status=75).stderr):
        check_in("admin?7-nimda", text)
    check_in("admin\u202e7-nimda", pawl("get", name, "-o", "json").stdout)
    name = world.name()
    mine = token_of(acquired(name))
    for command in ("put", "rm"):
        check(pawl(command, f"{name}/a\u202eb", **mine).stdout.startswith(f"{name}/a?b "), command)


@test
def what_was_done_is_not_told_as_refused_when_the_output_cannot_be_written(name):
    mine = acquired(name)
    variables = {"PAWL_LEASE_ID": mine["lease_id"], **token_of(mine)}
    for words in (["put", name], ["put", name, "-o", "json"], ["renew", name], ["renew", name, "-o", "json"], ["rm", name],
                  ["release", name], ["force-release", name, "--yes"]):
        check_in(f"pawl: may have been done: {words[0]} {name}: it was done", pawl.unread(*words, status=69, **variables))
    check_equal(world.look(name)["state"], "free")
    pawl.unread("get", "a", "-o", "json")


class Echoed(Server):
    """Keeps what comes behind the request."""

    def _serve(self, connection):
        connection.settimeout(DEADLINE_S)
        connection.recv(65536)
        behind = b""
        try:
            connection.sendall(self.answer(b""))
            behind = connection.recv(65536)
        except ConnectionError:
            pass
        self.requests.append(behind)
        connection.close()


@test
def a_closed_output_is_not_the_connection():
    server = Echoed(lambda request: response(200, b"secret" * 100000, 'ETag: "e"', "Fencing-Mark: 1"))
    for streams, status in ((">&-", 69), ("2>&- >/dev/null", 0), ("<&- >&- 2>&-", 69)):
        check_equal(pawl.shell(f"{PAWL} cat a {streams}", PAWL_GATEWAY_URL=server.url)[0], status, streams)
    wait_until(lambda: len(server.requests) == 3, "all were served")
    check_equal(server.requests, [b""] * 3)


@test
def a_grant_that_could_not_be_told_is_given_back():
    for kind in ("env", "json"):
        name = world.name()
        check_in("given back", pawl.unread("acquire", name, "-o", kind))
        check_equal(world.look(name)["state"], "free")
    name = world.name()
    mine = acquired(name)
    pawl.unread("acquire", name, "-o", "env", PAWL_LEASE_ID=mine["lease_id"])  # it was held before: it stays
    check_equal((world.look(name)["token"], world.look(name)["state"]), (mine["token"], "held"))
    name = world.name()  # a pipe whose reader has gone
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([PAWL, "acquire", name, "-o", "env"], env=environment(), stdin=subprocess.DEVNULL, stdout=writer,
                          stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False)
    os.close(writer)
    check_equal((done.returncode, world.look(name)["state"]), (1, "free"), done.stderr)


@test
def env_output_of_a_failure_ends_the_eval_with_its_status(name):
    acquired(name)

    def shell(text, **variables):
        return pawl.shell(text, **variables)[:2]
    left = {"PAWL_LEASE": name, "PAWL_TOKEN": "1", "PAWL_FENCING_TOKEN": "1", "PAWL_LEASE_ID": "A" * 22}
    one = f'eval "$({PAWL} acquire {name} -o env)"'
    check_equal(shell(f'{one}; echo "$? ${{PAWL_TOKEN-none}} ${{PAWL_LEASE_ID-none}}"', **left), (0, "75 none none\n"))
    check_equal(shell(f"set -e; {one}; echo on"), (75, ""))
    check_equal(shell(f"{one} || echo held"), (0, "held\n"))
    dead = f'eval "$({PAWL} acquire {name} --output=env --lease-url http://127.0.0.1:1)"'
    check_equal(shell(f'{dead}; echo "$? ${{PAWL_TOKEN-none}} ${{PAWL_LEASE_ID-none}}"', **left), (0, f"69 none {'A' * 22}\n"))
    check_equal(shell(f'set -e; eval "$({PAWL} acquire {name} --tll 3s -o env)"; echo on'), (64, ""))
    check_equal(shell(f'eval "$({PAWL} release {name} -o env)"; echo "$? ${{PAWL_LEASE_ID-none}}"', **left), (0, "76 none\n"))
    check_equal(shell(f'eval "$({PAWL} renew {name} -o env --lease-url http://127.0.0.1:1)"; echo "$? $PAWL_LEASE_ID"', **left),
                (0, f"69 {'A' * 22}\n"))


@test
def env_output_of_a_command_that_a_signal_ends_ends_the_eval_too():
    """In the line, in a request that nobody answers, and while it is in doubt what became of it: nothing must look as if it were done."""
    name, left = world.name(), {"PAWL_LEASE": "old", "PAWL_TOKEN": "1", "PAWL_FENCING_TOKEN": "1", "PAWL_LEASE_ID": "A" * 22}
    acquired(name)
    asked, over = threading.Semaphore(0), threading.Event()

    def answer(_):
        asked.release()
        over.wait(DEADLINE_S)
    silent = Server(answer)

    def told(words, ready, **variables):
        script = f"""eval "$(sh -c 'echo $PPID >&2'; exec {PAWL} {words} -o env)"
            echo "$? ${{PAWL_TOKEN-none}} ${{PAWL_LEASE_ID-none}}\""""
        shell = subprocess.Popen(["sh", "-c", script], env=environment(**{**left, **variables}), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        pid = int(shell.stderr.readline())
        ready()
        os.kill(pid, signal.SIGTERM)
        return shell.communicate(timeout=DEADLINE_S)[0]
    asks = {"PAWL_LEASE_URL": silent.url, "PAWL_GATEWAY_URL": silent.url}
    is_asked = lambda: check(asked.acquire(timeout=DEADLINE_S))  # noqa: E731
    try:
        check_equal(told(f"acquire {name} -w 10m", lambda: wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")),
                    f"143 none {'A' * 22}\n")
        for words in (f"acquire {name}", f"renew {name}", f"release {name}", f"put {name}"):
            check_equal(told(words, is_asked, **asks), f"143 {'none' if 'acquire' in words else '1'} {'A' * 22}\n", words)
    finally:
        over.set()


@test
def what_a_command_that_sets_nothing_says_when_it_fails_is_its_own():
    """Whatever its words are, and though all is to be told for eval."""
    for words, status in ((["run", world.name(), "--", "sh", "-c", "echo mine; exit 7", "get"], 7), (["ls", "--prefix", "put", "release"], 64),
                          (["history", "acquire", "--lease-url", "http://127.0.0.1:1"], 69)):
        check_equal(pawl(*words, status=status, PAWL_OUTPUT="env").stdout, "mine\n" if status == 7 else "", f"{words}")
    pawl("--lease-url", world.lease.url, "run", world.name(), "true", status=125, PAWL_XYZZY="")


@test
def a_users_language_with_letters_of_its_own_changes_no_variable():
    made = subprocess.run(["localedef", "-i", "tr_TR", "-f", "UTF-8", path("tr_TR.UTF-8")], check=False, capture_output=True)
    if not os.path.isdir(path("tr_TR.UTF-8")):
        skip(f"no such language here: {made.stderr[-200:]}")
    name, turkish = world.name(), {"LOCPATH": world.folder, "LC_ALL": "tr_TR.UTF-8",  # "i" is no "I" in small letters there
                                   "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"}  # newlocale(3) frees no LOCPATH
    mine = acquired(name, **turkish)
    file = path("turkish")
    written(file, mine["lease_id"])
    check_equal(pawl("release", name, PAWL_LEASE_ID_FILE=file, **turkish).stdout, f"{name} released\n")


@test
def a_lease_id_file_that_is_no_regular_file_is_refused_before_anything_is_sent():
    server = Server(lambda request: None)
    fifo, link, folder, device = path("fifo"), path("link"), path("folder"), path("device")
    os.mkfifo(fifo)
    os.symlink(fifo, link)
    os.mkdir(folder)
    try:  # without the check, root would lose the machine's own
        os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except PermissionError:
        device = "/dev/null"
    for file in (device, fifo, link, folder):
        for command in ("acquire", "renew", "release"):
            check_in("no regular file", pawl(command, "a", "--lease-id-file", file, status=64, PAWL_LEASE_URL=server.url).stderr)
    check_equal(server.requests, [])
    check_equal(os.readlink(link), fifo)


# -- resources


def token_of(grant):
    return {"PAWL_FENCING_TOKEN": grant["fencing_token"]}


@test
def any_bytes_come_back_as_they_were(name):
    mine = token_of(acquired(name))
    for number, body in enumerate((b"", b"\0", os.urandom(100000), b"a\r\nb\n\n", bytes(range(256)) * 4000)):
        pawl("put", f"{name}/{number}", stdin=body, **mine)
        check_equal(pawl("cat", f"{name}/{number}").raw, body)
    file = path("body")
    with open(file, "wb") as stream:
        stream.write(b"from a file")
    pawl("put", f"{name}/f", file, "--type", "text/x-test; charset=utf-8", **mine)
    answer = world.gateway("GET", f"/v1/resources/{name}/f")
    check_equal((answer.body, answer.header("Content-Type")), (b"from a file", "text/x-test; charset=utf-8"))
    pawl("put", f"{name}/f", path("none"), status=1, **mine)
    pawl("put", f"{name}/f", world.folder, status=1, **mine)


@test
def a_key_of_any_characters_means_the_same_resource_everywhere(name):
    mine = token_of(acquired(name))
    pawl("put", f"{name}/a b%41+é?x=1#y&z;'\"", stdin=b"odd", **mine)
    encoded = f"/v1/resources/{name}/a%20b%2541%2B%C3%A9%3Fx%3D1%23y%26z%3B%27%22"
    check_equal(world.gateway("GET", encoded).body, b"odd")
    check_equal(pawl("cat", f"{name}/a b%41+é?x=1#y&z;'\"").raw, b"odd")


@test
def a_stale_token_is_76_a_forged_one_77_another_leases_1():
    name, other = world.name(), world.name()
    old = acquired(name)
    pawl("release", name, PAWL_LEASE_ID=old["lease_id"])
    expired = pawl("put", name, status=76, stdin=b"late", **token_of(old)).stderr
    check_in("lease-expired", expired)
    new = acquired(name)
    pawl("put", name, stdin=b"new", **token_of(new))
    error = pawl("put", name, status=76, stdin=b"late", **token_of(old)).stderr
    for part in ("stale-token", f"token sent: {old['token']}", f"current token: {new['token']}"):
        check_in(part, error)
    forged = new["fencing_token"].replace(f'{new["token"]};', f'{new["token"] + 1};', 1)
    pawl("put", name, status=77, stdin=b"x", PAWL_FENCING_TOKEN=forged)
    pawl("put", other, status=1, stdin=b"x", **token_of(new))
    pawl("put", name, status=64, stdin=b"x", PAWL_FENCING_TOKEN="nonsense")
    pawl("rm", name, status=76, **token_of(old))
    check_equal(pawl("cat", name).raw, b"new")
    pawl("cat", name, "--fenced", status=76, **token_of(old))
    check_equal(pawl("cat", name, **token_of(old)).raw, b"new")  # without --fenced no token is sent
    check_equal(pawl("cat", name, "--fenced", **token_of(new)).raw, b"new")


@test
def a_token_comes_from_a_file_too():
    name, file = world.name(), path("token")
    written(file, acquired(name)["fencing_token"])
    pawl("put", name, "--token-file", file, stdin=b"x")
    pawl("cat", name, "--fenced", "--token-file", file)
    pawl("rm", name, "--token-file", file)
    pawl("rm", name, "--token-file", file, status=1)
    pawl("cat", name, status=1)


@test
def conditions_and_repeats_are_passed_on(name):
    mine = token_of(acquired(name))
    etag = re.search(r'ETag ("\S+")\n$', pawl("put", name, "--if-none-match", "*", stdin=b"1", **mine).stdout).group(1)
    check_in("etag-mismatch", pawl("put", name, "--if-none-match", "*", status=1, stdin=b"2", **mine).stderr)
    pawl("put", name, "--if-match", '"AAAAAAAAAAAAAAAA"', status=1, stdin=b"2", **mine)
    pawl("put", name, "--if-match", etag, stdin=b"2", **mine)
    first = pawl("put", name, "--idempotency-key", "k1", stdin=b"3", **mine).stdout
    check_equal(pawl("put", name, "--idempotency-key", "k1", stdin=b"3", **mine).stdout, first)
    pawl("put", name, "--idempotency-key", "k1", status=64, stdin=b"4", **mine)
    pawl("put", name, "--idempotency-key", "not visible", status=64, stdin=b"4", **mine)
    pawl("put", name, "--type", "a\nb: c", status=64, stdin=b"4", **mine)
    pawl("rm", name, "--if-match", etag, status=1, **mine)
    check_equal(pawl("cat", name).raw, b"3")


# -- lists


def on_a_terminal(*words):
    text, error = pawl.shown(*words)
    check_equal(error, "")
    return text


@test
def ls_is_a_table_on_a_terminal_and_tabs_elsewhere():
    stem = world.name("table")
    acquired(f"{stem}:a", "--holder", "Zoë")
    acquired(f"{stem}:long-name", "--holder", "b")
    lines = pawl("ls", "--prefix", stem).stdout.splitlines()
    check_equal([line.split("\t")[:2] for line in sorted(lines)], [[f"{stem}:a", "held"], [f"{stem}:long-name", "held"]])
    check_equal({line.count("\t") for line in lines}, {5})
    check(all(text.isdigit() for line in lines for text in line.split("\t")[4:]), lines)  # milliseconds
    table = on_a_terminal("ls", "--prefix", stem).splitlines()
    check(table[0].startswith("LEASE "), str(table))
    column = table[0].index("HELD FOR")
    for line in table[1:]:
        check_equal((line[column - 1], line[column] != " "), (" ", True), line)


@test
def ls_follows_the_cursor_to_the_end_and_stops_at_the_limit():
    def item(number):
        return {"lease": f"n{number}", "state": "held", "token": number,
                "holders": [{"holder": "h", "expires_in_ms": 1, "held_for_ms": 1}]}

    def page(request):
        cursor = re.search(rb"cursor=(\d+)", request)
        begin = int(cursor.group(1)) if cursor else 0
        limit = int(re.search(rb"limit=(\d+)", request).group(1))
        items = [item(number) for number in range(begin, min(begin + min(limit, 3), 8))]
        rest = {"next_cursor": str(begin + len(items))} if begin + len(items) < 8 else {"next_cursor": None}
        return response(200, json.dumps({"items": items, **rest}).encode())
    server = Server(page)

    def names(*words):
        return [line.split("\t")[0] for line in pawl("ls", *words, PAWL_LEASE_URL=server.url).stdout.splitlines()]
    check_equal(names(), [f"n{number}" for number in range(8)])
    check_equal(names("--limit", "5"), [f"n{number}" for number in range(5)])
    check_equal(names("--limit", "3"), ["n0", "n1", "n2"])
    pages = pawl("ls", "-o", "json", PAWL_LEASE_URL=server.url).stdout.splitlines()
    check_equal([one["lease"] for line in pages for one in json.loads(line)["items"]], names())


@test
def get_shows_who_holds_and_that_nobody_does(name):
    check_equal(pawl("get", name).stdout, f"{name} is free\n")
    grant = acquired(name, "--holder", "Zoë & co", "--meta", '{"pid":7}')
    text = pawl("get", name).stdout
    for part in (f"{name} is held", "Zoë & co", f"token {grant['token']}", '{"pid":7}'):
        check_in(part, text)


main(world.close)
