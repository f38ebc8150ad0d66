#!/usr/bin/python3
"""test_run_escape.py - pawl run against what tries to get away from it, where it may do less, and where nobody reads
what it says; and what --trace tells."""

import atexit
import contextlib
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from world import World, check, check_equal, check_in, main, of_time, skip, test, wait_until
from world.cli import PAWL, Cli
from world.process import die_with_parent
from world.running import BARE, Network, Run, children, group_lives, lives, state_of, works
from world.wait import DEADLINE_S

world = World()
pawl = Cli(world)

HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
CAUGHT = "what leaves the command's process group is "


def own_cgroup():
    """The folder of this process' cgroup of version 2; None: there is none here."""
    own = re.search(r"^0::(/.*)$", pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8"), re.M)
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if own and not own.group(1).startswith("/..") and os.path.exists(root + "/cgroup.procs"):
            return root + own.group(1).rstrip("/")
    return None


@contextlib.contextmanager
def cgroup_below(name):
    """A cgroup of the test's own in which the kernel can end another as a whole; None: none can be had here."""
    path = f"{own_cgroup()}/{name}-{os.getpid()}"
    try:
        os.mkdir(path)
    except OSError:
        yield None
        return
    try:
        yield path if os.path.exists(path + "/cgroup.kill") else None
    finally:
        wait_until(lambda: not list(pathlib.Path(path).glob("pawl-run-*/")), "what was made in it is gone")
        wait_until(lambda: not pathlib.Path(path, "cgroup.procs").read_text(encoding="utf-8"), "it is empty")
        os.rmdir(path)


@functools.cache
def folder_of_everybody():
    """With a pawl in it that any user may run, wherever the build is; TMPDIR may be closed to others, /tmp is not."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pawl-everybody-", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    shutil.copy(PAWL, folder / "pawl")
    return folder


def must_be_root():
    if os.geteuid() != 0 or not works(*AS_NOBODY, "true"):
        skip("only root can become another user")
    if not works(*AS_NOBODY, str(folder_of_everybody() / "pawl"), "--version"):
        skip("another user can run nothing in /tmp")


def full_pipe():
    """(to read, to write): nothing fits into it any more."""
    out, into = os.pipe()
    os.set_blocking(into, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(into, b"." * 4096)
    os.set_blocking(into, True)
    return out, into


def read_rest(out):
    with open(out, "rb") as file:
        return file.read().lstrip(b".").decode()


class Unread:
    """pawl run whose standard error nobody reads, until end()."""

    def __init__(self, *words, script):
        self.name, (self.out, into) = world.name(), full_pipe()
        self.process = subprocess.Popen([PAWL, "run", self.name, *words, "--", sys.executable, "-c", script],
                                        env=pawl.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=into,
                                        text=True, preexec_fn=die_with_parent)
        os.close(into)
        self.group = int(self.process.stdout.readline())

    def end(self, status):
        said = read_rest(self.out)
        check_equal(self.process.wait(DEADLINE_S), status, said)
        return said


# -- who gets away


JOINS = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN if sys.argv[1] == "stubborn" else lambda *_: (print("told", flush=True), os._exit(0)))
print(os.getpid(), flush=True)
os.setpgid(0, os.getpgid(os.getppid()))
print("joined", flush=True)
while True:
    signal.pause()
"""


@test
@of_time
def a_command_that_joins_another_process_group_is_signalled_and_killed():
    for before in [[], BARE] if works(*BARE, "true") else [[]]:
        for kind, said in (("polite", "told\n"), ("stubborn", "")):
            network = Network(world.lease_daemon)
            run = Run(pawl, world.name(), "--ttl", "1500ms", "--", sys.executable, "-c", JOINS, kind, before=before,
                      PAWL_LEASE_URL=network.url)
            pid = run.number()
            check_equal(run.line(), "joined")
            check(state_of(pid)[1] != pid)
            network.fail("refuse")
            check_equal(run.end(76), said)
            check(not lives(pid))


@test
def a_grant_that_is_over_before_the_command_was_started_starts_nothing(name):
    grant = world.acquire(name)
    # "warn": nobody kills it, so it would certainly be seen.
    # The thread sanitizer takes a thread of the parent, which ended before the fork, for one that the child has leaked.
    options = os.environ.get("TSAN_OPTIONS", "") + ":report_thread_leaks=0"
    run = Run(pawl, name, "--ttl", "300ms", "--on-lost", "warn", "--", "echo", "ran", TSAN_OPTIONS=options)
    wait_until(lambda: world.look(name).get("waiting"), "it waits")
    run.send(signal.SIGSTOP)
    wait_until(lambda: state_of(run.pid)[0] == "T", "it is stopped")
    world.release(name, grant)
    wait_until(lambda: world.look(name)["token"] > grant["token"] and world.look(name)["state"] == "free", "its hold is over")
    run.send(signal.SIGCONT)
    check_equal(run.end(76), "")
    check_in("lost", run.said())


@contextlib.contextmanager
def program_that_becomes_root():
    """setpriv(1) as a program that belongs to root and becomes it: there no longer than it must be, and never where
    others than the user that is tried here can come to it, also when this test is killed."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pawl-becomes-", dir="/tmp"))
    program = folder / "becomes"
    try:
        os.chown(folder, NOBODY, NOBODY)
        check_equal(folder.stat().st_mode & 0o7777, 0o700)
        shutil.copy(shutil.which("setpriv"), program)
        program.chmod(0o4755)
        if not works(*AS_NOBODY, str(program), "--reuid=0", "--clear-groups", "true"):
            skip("programs do not become their owner here")
        yield program
    finally:
        shutil.rmtree(folder)


def begun_as_nobody(url, script, becomes):
    """pawl run of another user, without a cgroup, and a shell script in which $BECOMES begins a command as root."""
    begin = [*BARE, *AS_NOBODY] if works(*BARE, "true") else AS_NOBODY
    environment = pawl.environment(PAWL_LEASE_URL=url, BECOMES=f"{becomes} --reuid=0 --clear-groups")
    return subprocess.Popen([*begin, str(folder_of_everybody() / "pawl"), "run", world.name(), "--ttl", "1s", "--", "sh", "-c", script],
                            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=die_with_parent)


@test
def a_command_that_became_another_user_for_good_is_told_to_run_on():
    must_be_root()
    network = Network(world.lease_daemon)
    with program_that_becomes_root() as becomes:
        process = begun_as_nobody(network.url, "exec $BECOMES sh -c 'echo $$; read x; exit 0'", becomes)
        pid = int(process.stdout.readline())
    network.fail("refuse")
    said = ""
    while "still runs, unprotected" not in said:
        line = process.stderr.readline()
        check(line, said)
        said += line
    check(lives(pid))
    check_in("it can be neither signalled nor killed", said)
    check("is signalled now" not in said, said)
    process.stdin.close()
    check_equal(process.wait(DEADLINE_S), 76)


@test
def what_became_another_user_and_is_left_behind_is_no_success():
    must_be_root()
    for own, wanted in ((0, 125), (3, 3)):
        with program_that_becomes_root() as becomes:
            process = begun_as_nobody(world.lease_daemon.url, f"($BECOMES sh -c 'echo $$; exec sleep 60' &); read x; exit {own}", becomes)
            stray = int(process.stdout.readline())
        process.stdin.write("\n")
        process.stdin.flush()
        said = ""
        while "runs on, unprotected" not in said:
            line = process.stderr.readline()
            check(line, said)
            said += line
        check_equal(process.wait(DEADLINE_S), wanted, said)
        check(lives(stray))
        os.kill(stray, signal.SIGKILL)
        wait_until(lambda stray=stray: not lives(stray), "it ends")


@test
def without_proc_nobody_is_found_and_what_is_left_behind_is_no_success():
    if not works(*BARE, "umount", "-l", "/proc"):
        skip("mounts of our own are not allowed here")
    no_leaks = {"before": BARE, "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"}  # they are sought in /proc
    check_equal(Run(pawl, world.name(), "--", "umount", "-l", "/proc", **no_leaks).end(0), "")
    run = Run(pawl, world.name(), "--", "sh", "-c",
              "umount -l /proc; setsid sh -c 'echo $$; exec sleep 60 >/dev/null 2>&1' & read x", stdin=subprocess.PIPE, **no_leaks)
    stray = run.number()
    run.type_line()
    run.end(125)
    check_in("runs on, unprotected", run.said())
    os.kill(stray, signal.SIGKILL)


# seccomp(2): from now on pidfd_send_signal(2) (424) with a flag, its fourth argument, is what it was before Linux 6.9.
OLD_KERNEL = [sys.executable, "-c", """
import ctypes, os, sys
code = b"".join(number.to_bytes(2, "little") + bytes((yes, no)) + value.to_bytes(4, "little") for number, yes, no, value in (
    (0x20, 0, 0, 0), (0x15, 0, 3, 424), (0x20, 0, 0, 16 + 3 * 8), (0x15, 1, 0, 0), (0x06, 0, 0, 0x50000 + 22), (0x06, 0, 0, 0x7fff0000)))
room = ctypes.create_string_buffer(code)
filter = (len(code) // 8).to_bytes(8, "little") + ctypes.addressof(room).to_bytes(8, "little")
prctl = ctypes.CDLL(None).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, filter, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""]
# The first process of a process namespace of its own: it waits for every orphan, and says which number the next one gets.
KILLED = """
import os, pathlib, signal, subprocess, sys
from world import wait_until
from world.running import children, group_lives, name_of, state_of

what, pawl, name = sys.argv[1:]
script = {"stranger": "", "rest": "(trap '' HUP TERM; sleep 600; sleep 600) & "}[what] + "echo $$; exec sleep 600"
run = subprocess.Popen([pawl, "run", name, "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
dog = wait_until(lambda: next((one for one in children(run.pid) if name_of(one) == "pawl-watchdog"), None), "there is a watchdog")
os.kill(dog, signal.SIGSTOP)
wait_until(lambda: state_of(dog)[0] == "T", "it is stopped")
print("stopped", flush=True)
pid = int(run.stdout.readline())
run.kill()
run.wait()
os.waitpid(pid, 0)
if what == "stranger":
    pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
    stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    print(stranger.pid == pid, flush=True)
print(group_lives(pid), flush=True)
os.kill(dog, signal.SIGCONT)
os.waitpid(dog, 0)
if what == "stranger":
    print(stranger.communicate(b"lives")[0], flush=True)  # who is being killed says nothing any more
else:
    wait_until(lambda: not group_lives(pid), "nothing of the group is left")
    print("gone", flush=True)
"""


def killed_while_the_watchdog_stood_still(what, before=()):
    """pawl run; its watchdog stands still since before the command was begun, and goes on when that is gone as well."""
    apart = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--pid", "--fork", "--kill-child", "--mount-proc"]
    if not works(*apart, *BARE, "test", "-w", "/proc/sys/kernel/ns_last_pid"):
        skip("no process namespace in which numbers can be chosen can be had here")
    name = world.name()
    grant = world.acquire(name)
    process = subprocess.Popen([*before, *apart, *BARE, sys.executable, "-B", "-c", KILLED, what, PAWL, name],
                               env={**pawl.environment(), "PYTHONPATH": HERE}, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
    check_equal(process.stdout.readline(), "stopped\n")
    wait_until(lambda: world.look(name).get("waiting"), "it waits")
    world.release(name, grant)
    said = process.stdout.read()
    process.wait(DEADLINE_S)
    return said


@test
def a_stranger_who_got_the_number_of_the_command_is_let_alone():
    for before in ([], OLD_KERNEL):
        check_equal(killed_while_the_watchdog_stood_still("stranger", before), "True\nTrue\nb'lives'\n", before)


@test
def the_group_of_a_command_that_is_gone_is_killed_with_pawl_run():
    for before in ([], OLD_KERNEL):
        check_equal(killed_while_the_watchdog_stood_still("rest", before), "True\ngone\n", before)


@test
def the_hang_up_of_the_terminal_ends_the_command_and_gives_the_lease_back():
    name, (parent, child) = world.name(), os.openpty()
    process = subprocess.Popen(["setsid", "--ctty", "sh", "-c", f"{PAWL} run {name} -- sh -c 'echo ready=$$.; exec sleep 60'; exit $?"], stdin=child,
                               stdout=child, stderr=child, env=pawl.environment(), preexec_fn=die_with_parent)
    os.close(child)
    text = ""
    while not re.search(r"ready=\d+\.", text):
        text += os.read(parent, 4096).decode()
    pid = int(re.search(r"ready=(\d+)", text).group(1))
    os.close(parent)
    wait_until(lambda: not lives(pid), "the command ends")
    wait_until(lambda: world.look(name)["state"] == "free", "the lease is given back")
    process.wait(DEADLINE_S)


# -- nobody reads standard error


ENDS = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: (print("told", flush=True), os._exit(0)))
print(os.getpid(), flush=True)
while True:
    signal.pause()
"""


@test
def a_watchdog_that_is_killed_ends_the_command_also_when_nobody_reads_what_is_said():
    run = Unread("--ttl", "60s", script=ENDS)
    dog = next(one for one in children(run.process.pid) if one != run.group)
    os.kill(dog, signal.SIGKILL)
    wait_until(lambda: not group_lives(run.group), "the command is killed")
    wait_until(lambda: world.look(run.name)["state"] == "free", "the lease is given back")
    check_in("the watchdog has gone", run.end(125))


@test
@of_time
def a_hold_that_is_ended_by_force_ends_the_command_also_when_nobody_reads_what_is_said():
    run, begun = Unread("--ttl", "12s", "--kill-after", "100ms", script=ENDS), time.monotonic()
    world.lease("POST", f"/v1/leases/{run.name}/force-release", body={})
    check_equal(run.process.stdout.readline(), "told\n")
    check(time.monotonic() - begun < 8, "it was signalled only because nothing was renewed")
    wait_until(lambda: not group_lives(run.group), "the command has ended")
    check_in("is lost", run.end(76))


@test
@of_time
def a_trace_that_nobody_reads_keeps_no_renewal_back():
    run = Unread("--trace", "--ttl", "3s", script="import os, sys; print(os.getpid(), flush=True); sys.stdin.read()")
    end = time.monotonic() + 4.5
    wait_until(lambda: time.monotonic() > end, "longer than the ttl")
    check(group_lives(run.group))
    check_equal(world.look(run.name)["state"], "held")
    run.process.stdin.close()
    check("lost" not in run.end(0))


# -- who may do less


def catches(*words, before=(), program=PAWL):
    """What a run says about it, and whether what leaves the process group while it runs is killed at the end."""
    script = "cat /proc/self/cgroup; (setsid sh -c 'echo stray=$$; exec sleep 60 >/dev/null 2>&1' &); read x"
    process = subprocess.Popen([*before, str(program), "run", world.name(), *words, "--", "sh", "-c", script], env=pawl.environment(),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
    out = ""
    while "stray=" not in out:
        line = process.stdout.readline()
        check(line, out)
        out += line
    stray = int(re.search(r"stray=(\d+)", out).group(1))
    said = process.communicate("\n", timeout=DEADLINE_S)[1]
    check_equal(process.returncode, 0, said)
    told = [line.partition(CAUGHT)[2] for line in said.splitlines() if CAUGHT in line]
    survived = lives(stray)
    if survived:
        os.kill(stray, signal.SIGKILL)
    return told, not survived, "pawl-run-" in out


@test
def what_catches_strays_is_told_once_with_trace_and_it_does():
    told, caught, inside = catches("--trace")
    check_equal(len(told), 1, told)
    check(told[0].startswith("caught by the cgroup /" if inside else "caught when the command has ended"), told)
    check(caught)
    check_equal(catches(), ([], True, inside))


@test
def without_any_cgroup_that_is_told_and_orphans_are_caught():
    if not works(*BARE, "true"):
        skip("mounts of our own are not allowed here")
    told, caught, inside = catches("--trace", before=BARE)
    check(not inside)
    check_in("caught when the command has ended, and only while pawl run lives; there is no cgroup (none of version 2", told[0])
    check(caught)
    # Who had children before may not call an orphan the command's, and says so.
    had = ["sh", "-c", "setpriv --pdeathsig KILL sleep 60 >/dev/null 2>&1 & exec \"$@\"", "sh"]
    told, caught, _ = catches(before=[*BARE, *had])
    check_equal((len(told), caught), (1, False), told)
    check_in("not caught: there is no cgroup", told[0])


@test
def another_user_without_rights_to_a_cgroup_is_told_so_and_orphans_are_caught():
    must_be_root()
    program = folder_of_everybody() / "pawl"
    told, caught, inside = catches("--trace", before=AS_NOBODY, program=program)
    check(not inside)
    check_in("there is no cgroup (it could not be made: Permission denied)" if own_cgroup() else "there is no cgroup (none of version 2", told[0])
    check(caught)


@test
def another_user_with_a_cgroup_that_was_delegated_uses_it():
    must_be_root()
    program = folder_of_everybody() / "pawl"
    with cgroup_below("delegated") as path:
        if path is None:
            told, caught, inside = catches("--trace", before=AS_NOBODY, program=program)
            check_in("there is no cgroup (", told[0])
            check_equal((caught, inside), (True, False))
            skip("no cgroup of version 2 can be delegated here; the fall-back was tried instead")
        for one in (path, path + "/cgroup.procs", path + "/cgroup.subtree_control", path + "/cgroup.threads"):
            os.chown(one, NOBODY, NOBODY)
        enter = ["sh", "-c", f"echo $$ > {path}/cgroup.procs; exec \"$@\"", "sh", *AS_NOBODY]
        told, caught, inside = catches("--trace", before=enter, program=program)
        check_in(f"caught by the cgroup {path}/pawl-run-", told[0])
        check_equal((caught, inside), (True, True))


@test
def a_cgroup_that_somebody_left_behind_is_passed_by():
    with cgroup_below("left") as path:
        if path is None:
            check_equal(catches("--trace")[1:], (True, False))
            skip("no cgroup of our own can be had here; the fall-back was tried instead")
        enter = ["sh", "-c", f"echo $$ > {path}/cgroup.procs; mkdir {path}/pawl-run-$$; exec \"$@\"", "sh"]
        told, caught, inside = catches("--trace", before=enter)
        left, = pathlib.Path(path).glob("pawl-run-*/")
        os.rmdir(left)
        check_equal((told, caught, inside), ([f"caught by the cgroup {left}.1"], True, True))


# -- --trace


@test
@of_time
def trace_tells_every_request_and_no_secret():
    network, name = Network(world.lease_daemon), world.name()
    run = Run(pawl, name, "--trace", "--ttl", "600ms", "--holder", "it's me", "--", "sh", "-c", "echo $PAWL_FENCING_TOKEN; read x; exit 0",
              stdin=subprocess.PIPE, PAWL_LEASE_URL=network.url)
    token = run.line()
    wait_until(lambda: sum(one.startswith(b"PUT ") for one in network.requests) >= 2, "it was renewed twice")
    run.process.stdin.close()
    run.end(0)
    lines = [line for line in run.said().splitlines() if line.startswith("curl ")]
    asked = [re.search(r" -X (\w+) ", line).group(1) for line in lines]
    check_equal(asked, ["POST", *["PUT"] * (len(asked) - 2), "DELETE"])
    seen = [re.match(rb"\w+", one).group(0).decode() for one in network.requests if re.match(rb"\w+ /v1/", one)]
    given_up = asked[:-2] + asked[-1:]  # a renewal that was told, when the command ended before it was sent
    check_in(seen, (asked, given_up))
    check(all(line.endswith(f" '{network.url}/v1/leases/{name}'") for line in lines), lines)
    check_in('"holder":"it\'\\\'\'s me"', lines[0])
    sent = b"".join(network.requests)
    lease_ids = {one.decode() for one in re.findall(rb"(?i)lease-id: *([\w-]+)", sent)}
    check_equal(len(lease_ids), 1, sent)
    signature = token.partition("sig=")[2]
    check(signature and not any(secret in run.said() for secret in (token, signature, *lease_ids)), run.said())
    check_equal(run.said().count("$PAWL_LEASE_ID"), len(lines))
    check_equal(run.said().count("$PAWL_FENCING_TOKEN"), len(lines) - 1)


@test
def trace_tells_the_look_of_nobody_and_refusals_as_ever(name):
    world.acquire(name, holder="Ann")
    done = pawl("run", name, "-n", "--trace", "--", "echo", "ran", status=75)
    check_equal((done.stdout, done.stderr.count("curl ")), ("", 1))
    check_in("held by Ann", done.stderr)


main(world.close)
