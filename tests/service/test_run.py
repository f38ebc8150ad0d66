#!/usr/bin/python3
"""test_run.py - pawl run: the command's status, streams, signals and terminal are as if there were no pawl run."""

import json
import os
import pty
import pwd
import re
import select
import signal
import subprocess
import sys
import time

from world import World, check, check_equal, check_in, main, of_time, skip, test, test_in, wait_until
from world.cli import PAWL, Cli
from world.running import BARE, Run, children, group_lives, lives, state_of, works
from world.wait import DEADLINE_S

world = World()
pawl = Cli(world)

WAITS = ["sh", "-c", "echo $$; exec sleep 60"]


def free(name):
    return world.look(name)["state"] == "free"


# -- its status


@test
def the_status_is_the_commands_own_or_128_and_its_signal_and_the_lease_is_free_afterwards():
    ends = [(f"exit {status}", status) for status in (0, 1, 3, 75, 76, 125, 255)]
    ends += [(f"ulimit -c 0; kill -{int(number)} $$", 128 + number) for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV)]
    for command, status in ends:
        name = world.name()
        pawl("run", name, "--", "sh", "-c", command, status=status)
        check(free(name))


@test
def what_cannot_be_found_is_127_and_what_cannot_be_executed_126(name):
    check_in("no-such-program", pawl("run", name, "--", "no-such-program", status=127).stderr)
    pawl("run", name, "--", "/etc/passwd", status=126)
    pawl("run", name, "--", "/", status=126)
    pawl("run", name, "--", "/etc/passwd/x", status=126)
    pawl("run", name, "--", "x" * 5000, status=126)
    pawl("run", name, "--", "", status=127)
    pawl("run", name, "--", "ls", status=127, PATH="/nowhere")
    check(free(name))


@test
def a_script_without_its_first_line_is_run_by_the_shell(name):
    script = os.path.join(world.folder, "script")
    with open(script, "w", encoding="utf-8") as file:
        file.write("echo $PAWL_LEASE $1\n")
    os.chmod(script, 0o755)
    check_equal(pawl("run", name, "--", script, "a").stdout, f"{name} a\n")


@test
def a_wrong_command_line_is_125_and_nothing_is_run():
    for words in (["a/b", "--", "echo"], ["x"], ["x", "--"], ["--", "echo"], ["x", "--mode", "none", "echo"],
                  ["x", "-n", "-w", "1s", "--", "echo"], ["x", "--signal", "NONE", "--", "echo"],
                  ["x", "--on-lost", "cry", "--", "echo"], ["x", "--ttl", "2s", "--kill-after", "1500ms", "--", "echo"],
                  ["x", "--nowhere", "--", "echo"], ["x", "--ttl", "1ms", "--", "echo"], ["x", "-w", "0", "--", "echo"],
                  ["x", "-w", "500", "--", "echo"], ["x", "--ttl", "25h", "--", "echo"], ["", "--", "echo"], ["x" * 129, "--", "echo"],
                  ["\u00e9", "--", "echo"], ["x", "--signal", "0", "--", "echo"], ["x", "--holder", "a\nb", "--", "echo"],
                  ["x", "--ttl", "--", "echo"], ["x", "--nowhere", "echo"], ["x", "--mode", "shared", "--permits", "2", "echo"]):
        check_equal(pawl("run", *words, status=125).stdout, "", str(words))
    pawl("run", "x", "--", "echo", status=125, PAWL_NOBODY_KNOWS="1")
    check_in("Exit status", pawl("run", "--help").stdout)


@test
def the_command_needs_no_line_in_front_of_it_and_all_that_follows_is_its_own():
    for words in (["echo"], ["-n", "echo"], ["-w", "5s", "--", "echo"], ["--", "echo"]):
        check_equal(pawl("run", world.name(), *words, "--ttl", "-n", "--", "-x").stdout, "--ttl -n -- -x\n")
    check_equal(pawl("run", "-n", world.name(), "--ttl", "5s", "echo", "a").stdout, "a\n")


# -- the lease


@test
def it_is_held_while_the_command_runs_in_the_mode_that_is_asked_for_by_user_host_and_pid_or_who_is_named():
    own = rf"{pwd.getpwuid(os.getuid()).pw_name}@.+:\d+"
    for words, mode, holder in (([], "exclusive", own), (["--mode", "shared"], "shared", own), (["--permits", "2"], "permits", own),
                                (["--holder", "Zoë"], "exclusive", "Zoë")):
        name = world.name()
        held = json.loads(pawl("run", name, *words, PAWL, "get", name, "-o", "json", USER="").stdout)["holders"][0]
        check_equal(held["mode"], mode)
        check(re.fullmatch(holder, held["holder"]), held["holder"])


@test
def the_command_finds_lease_and_tokens_and_no_lease_id(name):
    out = pawl("run", name, "--", "env", PAWL_LEASE_ID="x" * 22, PAWL_TOKEN="7").stdout
    found = dict(line.split("=", 1) for line in out.splitlines() if line.startswith("PAWL_"))
    check_equal((found["PAWL_LEASE"], found["PAWL_TOKEN"]), (name, "1"))
    check_in(name, found["PAWL_FENCING_TOKEN"])
    check("PAWL_LEASE_ID" not in found, found)
    check_equal(out.count("PAWL_TOKEN="), 1)
    pawl("run", name, "--", "sh", "-c", f"echo packed | {PAWL} put {name}")
    check_equal(pawl("cat", name).stdout, "packed\n")


@test
def the_token_of_another_hold_does_not_take_the_place_of_the_commands_own():
    """A file that is set for others, and the end of a hold of pawl-lease.sh."""
    name, file = world.name(), os.path.join(world.folder, "token")
    with open(file, "w", encoding="ascii") as other:
        other.write(json.loads(pawl("acquire", world.name(), "-o", "json").stdout)["fencing_token"])
    out = pawl("run", name, "--", "sh", "-c", f"echo packed | {PAWL} put {name} && echo ${{LEASE_DEADLINE_MS-none}}",
               PAWL_TOKEN_FILE=file, LEASE_DEADLINE_MS="999999999999").stdout
    check_equal((pawl("cat", name).stdout, out.splitlines()[-1]), ("packed\n", "none"))


@test
def held_by_another_is_75_at_once_or_when_the_wait_is_over(name):
    world.acquire(name, holder="Ann")
    check_in("held by Ann", pawl("run", name, "-n", "--", "echo", "ran", status=75).stderr)
    done = pawl("run", name, "-w", "300ms", "--", "echo", "ran", status=75)
    check_equal(done.stdout, "")


@test
def a_signal_while_it_waits_ends_it_and_it_leaves_the_line():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        name = world.name()
        grant = world.acquire(name)
        run = Run(pawl, name, "--", "echo", "ran")
        wait_until(lambda name=name: world.look(name).get("waiting"), "it waits")
        run.send(number)
        check_equal(run.end(128 + number), "")
        wait_until(lambda name=name: not world.look(name).get("waiting"), "it has left the line")
        world.release(name, grant)
        check(free(name))


# -- signals


@test
def signals_are_passed_on_and_the_command_decides():
    for number, word in ((signal.SIGHUP, "HUP"), (signal.SIGUSR1, "USR1"), (signal.SIGUSR2, "USR2"), (signal.SIGTERM, "TERM"),
                         (signal.SIGINT, "INT"), (signal.SIGQUIT, "QUIT"), (signal.SIGWINCH, "WINCH")):
        run = Run(pawl, world.name(), "--", "sh", "-c", f"trap 'echo got; exit 7' {word}; echo $$; while :; do sleep 0.01; done")
        run.number()
        run.send(number)
        check_equal(run.end(7), "got\n", word)


def ignoring(*numbers):
    """As nohup(1), and a script's "&", begin what they begin."""
    return ["sh", "-c", f"trap '' {' '.join(str(int(one)) for one in numbers)}; exec \"$@\"", "sh"]


IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


@test
def a_signal_that_the_caller_ignores_ends_nobody_who_waits():
    for number in IGNORED:
        name = world.name()
        grant = world.acquire(name)
        run = Run(pawl, name, "--", "echo", "ran", before=ignoring(number))
        wait_until(lambda name=name: world.look(name).get("waiting"), "it waits")
        run.send(number)
        world.release(name, grant)
        check_equal(run.end(0), "ran\n", number)
    # Another one still does.
    name = world.name()
    world.acquire(name)
    run = Run(pawl, name, "--", "echo", "ran", before=ignoring(*IGNORED))
    wait_until(lambda: world.look(name).get("waiting"), "it waits")
    run.send(signal.SIGUSR1)
    run.end(128 + signal.SIGUSR1)


HEARS = """
import signal, sys, time
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGWINCH):
    signal.signal(number, lambda number, _: print(int(number), flush=True))
signal.signal(signal.SIGUSR2, lambda *_: sys.exit(0))
print("ready", flush=True)
while True:
    time.sleep(60)
"""


@test
def a_signal_that_the_caller_ignores_is_not_passed_on_to_a_command_that_hears_it():
    run = Run(pawl, world.name(), "--", sys.executable, "-c", HEARS, before=ignoring(signal.SIGHUP, signal.SIGTERM, signal.SIGWINCH))
    check_equal(run.line(), "ready")
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGWINCH, signal.SIGINT):
        run.send(number)
    check_equal(run.line(), str(int(signal.SIGINT)))  # the others would be waiting there as well, HUP before it
    run.send(signal.SIGUSR2)
    check_equal(run.end(0), "")


@test
@of_time
def a_command_stopped_by_hand_keeps_its_lease(name):
    run = Run(pawl, name, "--ttl", "1500ms", "--", *WAITS)
    pid = run.number()
    os.kill(pid, signal.SIGSTOP)
    end = time.monotonic() + 3
    wait_until(lambda: time.monotonic() > end, "twice the ttl")
    check_equal(state_of(pid)[0], "T")
    check_equal(world.look(name)["state"], "held")
    os.kill(pid, signal.SIGCONT)
    run.send(signal.SIGTERM)
    run.end(143)


@test
def the_command_has_the_signal_mask_and_ignored_signals_of_the_caller():
    shows = ["grep", "^Sig[BI]", "/proc/self/status"]
    plain = subprocess.run(shows, capture_output=True, text=True, check=True, timeout=DEADLINE_S).stdout
    check_equal(pawl("run", world.name(), "--", *shows).stdout, plain)
    before = ["env", "--ignore-signal=HUP,INT,PIPE,TSTP,CHLD"]
    both = [subprocess.run([*before, *words, *shows], env=pawl.environment(), capture_output=True, text=True, check=True,
                           timeout=DEADLINE_S).stdout for words in ([], [PAWL, "run", world.name(), "--"])]
    check_equal(both[1], both[0])
    check_equal(int(re.search(r"SigIgn:\s*(\w+)", both[1]).group(1), 16) & 0x91003, 0x91003)


# -- streams


@test
def standard_input_and_output_are_the_commands_and_no_descriptor_is_ours():
    done = pawl("run", world.name(), "--", "sh", "-c", "cat; echo wrong >&2", stdin="some\nlines")
    check_equal((done.stdout, done.stderr), ("some\nlines", "wrong\n"))
    probe = "n=3; while [ $n -lt 40 ]; do [ -e /proc/$$/fd/$n ] && echo $n; n=$((n + 1)); done; exit 0"
    check_equal(pawl("run", world.name(), "--", "sh", "-c", probe).stdout, "")


@test
def closed_streams_stay_closed():
    for closed, shows in (("<&-", "0"), (">&-", "1"), ("2>&-", "2"), ("<&- >&- 2>&-", "0 1 2")):
        probe = f"for n in {shows}; do [ -e /proc/$$/fd/$n ] && exit 9; done; exit 5"
        done = subprocess.run(["sh", "-c", f"\"$@\" {closed}", "sh", PAWL, "run", world.name(), "--", "sh", "-c", probe],
                              env=pawl.environment(), capture_output=True, timeout=DEADLINE_S, check=False)
        check_equal(done.returncode, 5, closed)
    # Without a cgroup the watchdog's socket would be the first to get one of their numbers.
    if works(*BARE, "true"):
        done = subprocess.run([*BARE, "sh", "-c", "\"$@\" <&- >&- 2>&-", "sh", PAWL, "run", world.name(), "--", "sh", "-c", "exit 6"],
                              env=pawl.environment(), capture_output=True, timeout=DEADLINE_S, check=False)
        check_equal(done.returncode, 6)


# -- what it leaves behind


@test
def what_it_leaves_in_its_group_is_killed_before_the_lease_is_free(name):
    run = Run(pawl, name, "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
    stray = run.number()
    run.end(0)
    check(not lives(stray))
    check(free(name))


@test
def without_a_cgroup_nothing_escapes_either_while_pawl_run_lives():
    if not works(*BARE, "true"):
        skip("mounts of our own are not allowed here")
    away = "exec >/dev/null 2>&1; (setsid sleep 60 & setsid sh -c \"sleep 60 & exec sleep 60\" &)"
    run = Run(pawl, world.name(), "--", "sh", "-c", f"cat /proc/self/cgroup; sh -c '{away}'; sleep 60 >/dev/null 2>&1 & echo $$; read x; exit 4",
              before=BARE, stdin=subprocess.PIPE)
    out = [run.line()]
    while not out[-1].isdigit():
        out.append(run.line())
    check(not any("pawl-run" in line for line in out), out)
    dog = run.dog()
    adopted = wait_until(lambda: len(found := [one for one in children(run.pid) if one not in (dog, int(out[-1]))]) >= 2 and found,
                         "what has forked away is there")
    run.type_line()
    run.end(4)
    check(not any(lives(one) for one in adopted))
    check(not group_lives(int(out[-1])))


@test
def children_that_were_there_before_pawl_run_are_let_alone(name):
    done = subprocess.run(["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!; exec \"$@\"", "sh", PAWL, "run", name, "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!; exit 3"],
                          env=pawl.environment(), capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    check_equal(done.returncode, 3)
    before, stray = map(int, done.stdout.split())
    check(lives(before))
    check(not lives(stray))
    os.kill(before, signal.SIGKILL)


@test
def the_cgroup_and_the_watchdog_are_gone_afterwards():
    run = Run(pawl, world.name(), "--", "sh", "-c", "grep -o '/.*pawl-run.*' /proc/self/cgroup; echo end; read x", stdin=subprocess.PIPE)
    path = run.line()
    dog = run.dog()
    check_equal(len(children(run.pid)), 2)
    run.type_line()
    run.end(0)
    wait_until(lambda: not lives(dog), "the watchdog ends")
    if path != "end":
        check(not any(os.path.exists(root + path) for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")))


@test
def the_cgroups_of_a_pawl_run_within_it_are_gone_too_when_all_is_killed():
    name, tell = world.name(), "grep -o '/.*pawl-run.*' /proc/self/cgroup"
    run = Run(pawl, name, "--ttl", "3s", "--on-lost", "kill", "--", "sh", "-c", f'{tell}; exec "$@"', "sh", PAWL, "run", world.name(), "--",
              "sh", "-c", f"{tell}; echo end; exec sleep 60")
    paths = list(iter(run.line, "end"))
    world.lease("POST", f"/v1/leases/{name}/force-release", body={})
    run.end(76)
    check_equal([path for path in paths for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified") if os.path.exists(root + path)], [])


# -- a terminal


class Shell:
    """An interactive bash on a terminal of its own, in which pawl run is a job."""

    def __init__(self):
        self.parent, child = pty.openpty()
        self.text = ""
        self.process = subprocess.Popen(["bash", "--norc", "--noprofile", "-i"], stdin=child, stdout=child, stderr=child,
                                        env=pawl.environment(PS1="$ ", TERM="dumb", HISTFILE=""), preexec_fn=self._lead)
        os.close(child)
        self.prompt()

    @staticmethod
    def _lead():
        import fcntl
        import termios
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def see(self, wanted):
        """Waits until it is shown; gives all that was shown since the last time."""
        end = time.monotonic() + DEADLINE_S
        while wanted not in self.text:
            if time.monotonic() > end:
                raise TimeoutError(f"{wanted!r} is not shown: {self.text!r}")
            if select.select([self.parent], [], [], 0.1)[0]:
                self.text += os.read(self.parent, 65536).decode(errors="replace")
        seen, _, self.text = self.text.partition(wanted)
        return seen + wanted

    def type(self, text):
        os.write(self.parent, text.encode())

    def prompt(self):
        """What is typed before it is there may be lost: with ^C, and when bash takes the terminal back."""
        return self.see("$ ")

    def run(self, *words):
        self.type(f"{PAWL} run {' '.join(words)}\n")

    def status(self, wanted):
        self.prompt()
        self.type("echo stat\"\"us=$?.\n")
        self.see("status=")
        check_equal(self.see(".\r\n"), f"{wanted}.\r\n", "its status")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.parent)


@test_in(Shell)
def ctrl_c_reaches_the_command_once_and_once_again(shell):
    # Not a shell: dash, hit between the echo and the fork, waits for its child first.
    shell.run(world.name(), "--", sys.executable + " -c 'import signal; signal.signal(2, signal.SIG_DFL); print(\"rea\" + \"dy\", flush=True); signal.pause()'")
    shell.see("ready")
    shell.type("\x03")
    shell.status(130)
    shell.prompt()
    shell.run(world.name(), "--", "sh -c 'trap \"trap - INT; echo on\"\"ce\" INT; echo rea\"\"dy; while :; do sleep 0.05; done'")
    shell.see("ready")
    shell.type("\x03")
    shell.see("once")
    shell.type("\x03")
    shell.status(130)


@test_in(Shell)
def the_command_reads_from_the_terminal_and_gets_its_end_of_input(shell):
    shell.run(world.name(), "--", "sh -c 'echo rea\"\"dy; read x; echo got=$x; cat; exit 6'")
    shell.see("ready")
    shell.type("word\n")
    shell.see("got=word")
    shell.type("\x04")
    shell.status(6)


@test_in(Shell)
def ctrl_z_stops_the_job_and_fg_goes_on_with_it(shell, name):
    shell.run(name, "--", "sh -c 'echo rea\"\"dy=$$.; read x; echo got=$x'")
    pid = int(re.search(r"ready=(\d+)", shell.see(".\r\n")).group(1))
    for _ in range(2):
        wait_until(lambda: os.tcgetpgrp(shell.parent) == pid and state_of(pid)[0] == "S", "it reads from the terminal")
        shell.type("\x1a")
        shell.see("is not renewed")
        shell.see("Stopped")
        shell.prompt()
        check_equal(world.look(name)["state"], "held")
        shell.type("fg\n")
        shell.see("fg\r\n")
    shell.type("word\n")
    shell.see("got=word")
    shell.status(0)


@test_in(Shell)
def beside_others_in_a_pipe_it_leaves_them_the_terminal(shell):
    shell.run(world.name(), "--", "sh -c 'echo out; exec sleep 60' | (read x; echo heard $x; read y < /dev/tty; echo typed $y; cat)")
    shell.see("heard out\r\n")
    shell.type("word\n")
    shell.see("typed word")
    shell.type("\x03")
    shell.see("^C")
    shell.prompt()
    shell.run(world.name(), "--", "sh -c 'echo out; read x; echo got=$x' | cat")
    shell.see("out\r\n")
    shell.type("word\n")
    shell.see("got=word")
    shell.status(0)


@test_in(Shell)
def in_the_background_it_runs_and_comes_to_the_front(shell):
    shell.run(world.name(), "--", "sh -c 'read x; echo got=$x' &")
    shell.prompt()
    wait_until(lambda: (shell.type("jobs\n"), "Stopped" in shell.prompt())[1], "it stops to read")
    shell.type("fg\n")
    shell.see("fg\r\n")
    shell.type("word\n")
    shell.see("got=word")


@test_in(Shell)
def the_terminal_of_a_command_that_is_killed_is_as_before(shell):
    shell.run(world.name(), "--", "sh -c 'stty -icanon -echo; echo rea\"\"dy; kill -9 $$'")
    shell.see("ready")
    shell.prompt()
    shell.type("stty -a; echo e\"\"nd\n")
    shown = shell.see("end\r\n")
    check(" icanon" in shown and " echo " in shown, shown)


@test
def while_it_waits_a_terminal_shows_who_holds_it_and_nobody_else_is_told(name):
    shell = Shell()
    grant = world.acquire(name, holder="Ann Other")
    shell.run(name, "--", "echo r\"\"an")
    shell.see(f"{name}: held by Ann Other, ")
    world.release(name, grant)
    shell.see("\r\x1b[K")
    check("in line" not in shell.see("ran\r\n").rpartition("\x1b[K")[2])
    shell.status(0)
    shell.prompt()
    grant = world.acquire(name)
    shell.run(name, "--", "echo r\"\"an")
    shell.see(" in line")
    shell.type("\x03")
    shell.status(130)
    shell.close()
    check_equal(pawl("run", name, "-w", "1500ms", "--", "true", status=75).stderr.count("\x1b"), 0)


@test_in(Shell)
def a_terminal_that_stands_still_keeps_no_command_from_running(shell):
    """Ctrl-S, or nobody who reads what it shows: else the lease is renewed, and nothing runs."""
    name, file = world.name(), os.path.join(world.folder, "ran")
    grant = world.acquire(name)
    terminal = os.open(os.readlink(f"/proc/{shell.process.pid}/fd/0"), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    shell.run(name, "--", f"touch {file}")
    shell.see(" in line")
    shell.type("\x13")
    wait_until(lambda: not select.select([], [terminal], [], 0)[1], "it takes no more")
    world.release(name, grant)
    wait_until(lambda: os.path.exists(file), "the command runs")
    wait_until(lambda: world.look(name)["state"] == "free", "the lease is given back")
    os.close(terminal)
    shell.type("\x11")
    shell.status(0)


@test_in(Shell)
def who_waits_in_the_background_is_not_stopped_by_what_it_showed(shell):
    name, file = world.name(), os.path.join(world.folder, "in-the-background")
    grant = world.acquire(name)
    shell.type("stty tostop\n")
    shell.prompt()
    shell.run(name, "--", f"touch {file}")
    shell.see(" in line")
    shell.type("\x1a")
    shell.see("Stopped")
    shell.prompt()
    shell.type("bg; echo on\"\"ward\n")
    shell.see("onward")
    world.release(name, grant)
    wait_until(lambda: os.path.exists(file), "the command runs")
    wait_until(lambda: world.look(name)["state"] == "free", "the lease is given back")


main(world.close)
