#!/usr/bin/python3
"""test_run_faults.py - pawl run: whatever fails, the command is over before somebody else can hold the lease, and the
status says what happened."""

import os
import re
import signal
import subprocess
import threading
import time

from world import World, check, check_equal, check_in, main, of_time, skip, test, wait_until
from world.cli import Cli
from world.ports import nobody
from world.running import Network, Run, children, group_lives, lives, state_of

world = World()
pawl = Cli(world)

TTL_MS = 2000
TTL = ["--ttl", f"{TTL_MS}ms"]
WAITS = ["sh", "-c", "echo $$; exec sleep 60"]
STUBBORN = ["sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1; done"]
POLITE = ["sh", "-c", "trap 'echo told; exit 0' TERM; echo $$; while :; do sleep 1; done"]  # the signal ends the sleep, too


def now_ms():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000


def until(milliseconds):
    """Until so much time has passed."""
    end = now_ms() + milliseconds
    wait_until(lambda: now_ms() >= end, f"{milliseconds} ms")


class Next:
    """Waits in line, and looks at the process group of before in the instant in which it is granted the lease."""

    def __init__(self, name, group):
        self.name, self.group, self.alive, self.granted = name, group, None, threading.Event()
        threading.Thread(target=self._wait, daemon=True).start()
        wait_until(lambda: world.look(name).get("waiting"), "the next one waits")

    def _wait(self):
        world.acquire(self.name, wait_ms=15000)
        self.alive = group_lives(self.group)
        self.granted.set()

    def met_nobody(self):
        check(self.granted.wait(20), "the next one is granted the lease")
        check(not self.alive, "the command of before still ran when the next one was granted the lease")


def begun(*words, command=WAITS, network=None, ttl=TTL, **more):
    """(pawl run, the process group of its command, the lease's name)"""
    name = world.name()
    run = Run(pawl, name, *ttl, *words, "--", *command, **({"PAWL_LEASE_URL": network.url} if network else {}), **more)
    return run, run.number(), name


# -- the service, at the start


@test
def a_service_that_is_not_there_or_refuses_at_the_start_is_125_and_nothing_runs():
    for mode, told in (("refuse", ""), (503, "It is so"), (504, "")):
        network, name = Network(world.lease_daemon), world.name()
        network.fail(mode)
        done = pawl("run", name, "-w", "300ms", "echo", "ran", status=125, PAWL_LEASE_URL=network.url)
        check_equal(done.stdout, "", str(mode))
        check_in("was not started", done.stderr)
        check_in(told, done.stderr)
        check_equal(world.look(name)["state"], "free")
    check_in("pawl dev starts one", pawl("run", "x", "-n", "echo", "ran", status=125, PAWL_LEASE_URL=nobody()).stderr)
    pawl("run", "x", "--", "echo", "ran", status=125, PAWL_LEASE_URL="no address")


@test
def a_grant_whose_answer_was_lost_is_given_back():
    network, name = Network(world.lease_daemon), world.name()
    network.fail("hang")
    run = Run(pawl, name, "--", "echo", "ran", PAWL_LEASE_URL=network.url)
    wait_until(lambda: network.requests, "it asks")
    run.send(signal.SIGINT)
    check_equal(run.end(130), "")
    check_equal(world.look(name)["state"], "free")


@test
def what_is_not_known_of_a_request_is_not_said_to_be_certain_because_the_next_was_not_sent():
    network, name = Network(world.lease_daemon), world.name()
    grant = world.acquire(name)
    run = Run(pawl, name, "-w", "2s", "--", "echo", "ran", PAWL_LEASE_URL=network.url)
    wait_until(lambda: world.look(name).get("waiting"), "it waits")
    network.go()
    check_equal(run.end(125), "")
    check_in("not known how an earlier attempt ended", "".join(run.err))
    world.release(name, grant)


# -- the service, while the command runs


@test
@of_time
def a_service_that_is_gone_for_good_ends_every_command_in_time():
    """76, and nothing of it runs when the next one is granted the lease. All at once: each takes its ttl."""
    closes_all = ["/usr/bin/python3", "-c", "import os,time; print(os.getpid(), flush=True); os.closerange(0, 4096); time.sleep(60)"]
    has_children = ["sh", "-c", "echo $$; (trap '' TERM; sleep 60; sleep 60) & sh -c 'sleep 60' & wait"]
    runs = []
    for mode, words, command, said in (*((mode, (), POLITE, "told\n") for mode in ("refuse", "hang", 503, 504)),
                                       ("refuse", ("--on-lost", "kill"), POLITE, ""), ("refuse", (), STUBBORN, ""),
                                       ("refuse", (), closes_all, ""), ("refuse", (), has_children, "")):
        network = Network(world.lease_daemon)
        run, group, name = begun(*words, network=network, command=command)
        runs.append((f"{mode} {words} {command}", said, run, group, Next(name, group)))
        network.fail(mode)
    for what, said, run, group, after in runs:
        check_equal(run.end(76), said, what)
        check(not group_lives(group), what)
        check_in("could not be renewed in time", run.said(), what)
        after.met_nobody()


@test
@of_time
def a_command_that_ignores_the_signal_has_kill_after_and_then_is_killed():
    network = Network(world.lease_daemon)
    run, group, name = begun("--kill-after", "1s", "--signal", "USR1", network=network,
                             command=["sh", "-c", "trap 'echo told; date +%s%N' USR1; trap '' TERM; echo $$; while :; do sleep 0.01; done"])
    after = Next(name, group)
    network.fail("refuse")
    told = run.end(76).split()
    took_ms = (time.time_ns() - int(told[1])) / 1e6
    check(told[0] == "told" and 600 < took_ms < 1900, f"killed after {took_ms:.0f} ms")
    after.met_nobody()


@test
@of_time
def on_lost_warn_lets_it_run_on_and_says_so():
    for own, wanted in ((0, 76), (3, 3)):
        network = Network(world.lease_daemon)
        run, group, _ = begun("--on-lost", "warn", network=network, stdin=subprocess.PIPE,
                              command=["sh", "-c", f"echo $$; read x; exit {own}"])
        network.fail("refuse")
        wait_until(lambda run=run: "runs on, unprotected" in run.said(), "it is told")
        check(group_lives(group))
        run.type_line()
        run.end(wanted)


@test
@of_time
def a_service_that_is_back_before_the_deadline_loses_nothing():
    runs = []
    for mode in ("refuse", "hang", 503, 504):
        network = Network(world.lease_daemon)
        run, group, _ = begun(network=network)
        network.fail(mode)
        runs.append((mode, run, group))
        threading.Timer(TTL_MS * 0.4 / 1000, network.fail, ("pass",)).start()
    until(TTL_MS * 1.4)
    for mode, run, group in runs:
        check(group_lives(group), mode)
        run.send(signal.SIGTERM)
        run.end(143)
        check_equal(run.said(), "")


def answer(status, kind, body, more=""):
    return (f"HTTP/1.1 {status} Such\r\nContent-Type: {kind}\r\nConnection: close\r\n{more}"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


def problem(status, code):
    return f'{{"type":"/problems/{code}","code":"{code}","status":{status},"retryable":false,"detail":"It is so."}}'


NO_WORD = {
    "retry after a day": answer(503, "application/problem+json", problem(503, "store-unavailable"), "Retry-After: 100000\r\n"),
    "unauthenticated": answer(401, "application/problem+json", problem(401, "unauthenticated")),
    "a page of somebody else": answer(409, "text/html", "<html>lease-lost</html>"),
    "gone, says somebody else": answer(410, "text/html", "<html>lease-lost</html>"),
    "gone, without Pawl's kind": answer(410, "application/json", problem(410, "lease-lost")),
    "another grant": answer(200, "application/json", '{"lease":"other","token":1}'),
    "garbage": b"\0\1\2 garbage\r\n\r\n",
    "a part": b"HTTP/1.1 200 OK\r\nContent-Le",
}


@test
def an_answer_that_is_no_word_about_the_hold_neither_ends_nor_lengthens_it():
    runs = []
    for what, bad in NO_WORD.items():  # all at once: each takes nearly as long as the ttl
        network = Network(world.lease_daemon)
        run, group, _ = begun(network=network, command=POLITE, ttl=["--ttl", "8s"])
        before = len(network.requests)
        network.fail(bad)
        runs.append((what, network, run, group, before))
    back, gone = runs[::2], runs[1::2]
    for what, network, _, _, before in back + gone:
        wait_until(lambda network=network, before=before: len(network.requests) > before + 1, f"was answered so twice: {what}")
        if what in list(NO_WORD)[::2]:  # it is one of those that come back
            network.fail("pass")
    for what, _, run, _, _ in gone:
        check_equal(run.end(76), "told\n", what)
        check_in("could not be renewed in time", run.said(), what)
    for what, _, run, group, _ in back:
        check(group_lives(group), what)
        run.send(signal.SIGTERM)
        check_equal(run.end(0), "told\n", what)
        check("lost" not in run.said(), what)


@test
def a_loss_that_a_service_tells_ends_the_command_at_once():
    network = Network(world.lease_daemon)
    run, _, _ = begun(network=network, command=POLITE, ttl=["--ttl", "8s"])
    network.fail(answer(410, "application/problem+json", problem(410, "lease-lost")))
    check_equal(run.end(76), "told\n")
    check_in("is lost: It is so.", run.said())


@test
@of_time
def a_service_that_is_back_after_the_signal_spares_nobody():
    network = Network(world.lease_daemon)
    run, group, name = begun(network=network, command=["sh", "-c", "trap 'echo told' TERM; echo $$; while :; do sleep 0.01; done"])
    after = Next(name, group)
    network.fail("refuse")
    check_equal(run.line(), "told")
    network.fail("pass")
    run.end(76)
    check(not group_lives(group))
    after.met_nobody()


@test
def a_hold_that_is_ended_by_force_ends_the_command():
    runs = []
    for command, said in ((POLITE, "told\n"), (STUBBORN, "")):
        run, group, name = begun(command=command, ttl=["--ttl", "8s"])  # 2 s from the signal to the kill
        runs.append((said, run, group))
        world.lease("POST", f"/v1/leases/{name}/force-release", body={})
    for said, run, group in runs:
        check_equal(run.end(76), said)
        check(not group_lives(group))
        check_in("lost", run.said())


@test
def a_loss_that_shows_only_at_the_release_is_told():
    run, _, name = begun(ttl=["--ttl", "60s"], command=["sh", "-c", "echo $$; read x; exit 0"], stdin=subprocess.PIPE)
    world.lease("POST", f"/v1/leases/{name}/force-release", body={})
    run.type_line()
    run.end(76)
    check_in("over before the command was", run.said())


@test
@of_time
def a_release_that_nobody_answers_keeps_the_status_and_nobody_waiting():
    runs = []
    for mode in ("hang", "refuse", 503):
        network = Network(world.lease_daemon)
        run, _, _ = begun(ttl=["--ttl", "60s"], network=network, command=["sh", "-c", "echo $$; read x; exit 5"], stdin=subprocess.PIPE)
        network.fail(mode)
        runs.append((mode, now_ms(), run))
        run.type_line()
    for mode, began, run in runs:
        run.end(5)
        check(now_ms() - began < 8000, mode)
        check(not any(os.path.exists(f"{root}/pawl-run-{run.pid}") for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")))
        check_in("was not given back", run.said())


# -- the command


@test
def a_command_that_forks_away_is_ended_where_there_is_a_cgroup():
    network = Network(world.lease_daemon)
    run, _, name = begun(network=network, command=[
        "sh", "-c", "echo $$; cat /proc/self/cgroup; setsid sh -c '(trap \"\" TERM HUP; echo end; sh -c \"echo \\$\\$; exec sleep 60\") &'; sleep 60"])
    lines = [run.line()]
    while lines[-1] != "end":
        lines.append(run.line())
    stray = run.number()
    if not any("pawl-run-" in line for line in lines):
        os.kill(stray, signal.SIGKILL)
        run.send(signal.SIGTERM)
        run.end(143)
        skip("no cgroup of our own can be had here")
    after = Next(name, state_of(stray)[1])
    network.fail("refuse")
    run.end(76)
    after.met_nobody()
    check(not lives(stray))


# -- pawl run, and its watchdog


@test
def pawl_run_that_is_stopped_does_not_keep_the_command_alive():
    for command in (WAITS, STUBBORN):
        run, group, name = begun(command=command)
        after = Next(name, group)
        run.send(signal.SIGSTOP)
        after.met_nobody()
        run.send(signal.SIGCONT)
        run.end(76)


@test
def a_command_that_ended_in_time_while_pawl_run_was_stopped_has_its_own_status():
    run, group, name = begun(command=["sh", "-c", "echo $$; read x; exit 3"], ttl=["--ttl", "4s"], stdin=subprocess.PIPE)
    after = Next(name, group)
    run.send(signal.SIGSTOP)
    run.type_line()
    wait_until(lambda: not group_lives(group), "the command has ended")
    check(not after.granted.is_set(), "in time")
    after.met_nobody()
    run.send(signal.SIGCONT)
    run.end(3)


@test
def when_everything_stood_still_the_command_is_killed_as_soon_as_it_goes_on():
    run, group, name = begun(command=STUBBORN)
    dog = run.dog()
    for pid in (run.pid, dog):
        os.kill(pid, signal.SIGSTOP)
    os.killpg(group, signal.SIGSTOP)
    wait_until(lambda: world.look(name)["state"] == "free", "the hold is over")
    check(group_lives(group))
    for pid in (dog, run.pid):
        os.kill(pid, signal.SIGCONT)
    run.end(76)  # the command itself was never continued
    check(not group_lives(group))


@test
def a_stopped_watchdog_alone_is_no_loss_and_pawl_run_kills_in_its_place():
    network = Network(world.lease_daemon)
    run, group, name = begun(network=network, command=STUBBORN)
    dog = run.dog()
    os.kill(dog, signal.SIGSTOP)
    network.fail("refuse")
    wait_until(lambda: not group_lives(group), "it is killed")
    run.end(76)
    os.kill(dog, signal.SIGCONT)
    wait_until(lambda: not lives(dog), "the watchdog ends")


STAMPS = """
import os, select, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.pwrite(file, b"%20d" % time.clock_gettime_ns(time.CLOCK_BOOTTIME), 0)
print(os.getpid(), flush=True)
while True:
    select.select([], [], [], 0.0005)
    os.pwrite(file, b"%20d" % time.clock_gettime_ns(time.CLOCK_BOOTTIME), 0)
"""


@test
def without_its_watchdog_a_command_writes_nothing_after_the_next_one_was_told_that_it_holds():
    runs = []
    for number in range(6):
        network, file = Network(world.lease_daemon), os.path.join(world.folder, f"stamps-{number}")
        # Half a margin is 100 ms then: for so long a machine that runs all tests at once may keep pawl run from a processor.
        run, _, name = begun(network=network, ttl=["--ttl", "4s"], command=["/usr/bin/python3", "-c", STAMPS, file])
        dog, told = run.dog(), []
        os.kill(dog, signal.SIGSTOP)

        def next_one(name=name, told=told):
            world.acquire(name, wait_ms=15000)
            told.append(time.clock_gettime_ns(time.CLOCK_BOOTTIME))

        waits = threading.Thread(target=next_one, daemon=True)
        waits.start()
        wait_until(lambda name=name: world.look(name).get("waiting"), "the next one waits")
        network.fail("refuse")
        runs.append((run, dog, file, waits, told))
    for run, dog, file, waits, told in runs:
        waits.join(20)
        os.kill(dog, signal.SIGCONT)  # nobody else would, and it would stay for ever
        run.end(76)
        wait_until(lambda dog=dog: not lives(dog), "the watchdog ends")
        with open(file, encoding="ascii") as stamps:
            last = int(stamps.read())
        check(last < told[0], f"it wrote {(last - told[0]) / 1e6} ms after the next one was told")


@test
def pawl_run_that_is_killed_takes_the_command_with_it():
    run, group, _ = begun(command=["sh", "-c", "trap '' TERM HUP INT; sh -c 'trap \"\" TERM; sleep 60; sleep 60' & echo $$; sleep 60"],
                          ttl=["--ttl", "60s"])
    dog = run.dog()
    run.send(signal.SIGKILL)
    run.process.wait()
    wait_until(lambda: not group_lives(group), "all of it is killed", 3)
    wait_until(lambda: not lives(dog), "the watchdog ends")
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        check(not os.path.exists(f"{root}/pawl-run-{run.pid}"))


@test
def pawl_run_that_is_killed_while_it_waits_leaves_nothing_but_a_place_that_costs_the_next_three_seconds_at_most(name):
    grant = world.acquire(name)
    run = Run(pawl, name, "--", "echo", "ran")
    wait_until(lambda: world.look(name).get("waiting"), "it waits")
    dog = run.dog()
    run.send(signal.SIGKILL)
    check_equal(run.process.stdout.read(), "")
    run.process.wait()
    wait_until(lambda: not lives(dog), "the watchdog ends")
    world.release(name, grant)
    world.release(name, world.acquire(name, wait_ms=5000))


@test
def a_watchdog_that_is_killed_ends_the_command_and_is_125():
    run, group, name = begun(command=STUBBORN, ttl=["--ttl", "60s"])
    os.kill(run.dog(), signal.SIGKILL)
    run.end(125)
    check(not group_lives(group))
    check_in("watchdog", run.said())
    check_equal(world.look(name)["state"], "free")


@test
def the_watchdog_hears_no_signal_and_has_nothing_open():
    run, _, _ = begun(ttl=["--ttl", "60s"])
    dog = run.dog()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTSTP, signal.SIGUSR1, signal.SIGALRM, signal.SIGVTALRM):
        os.kill(dog, number)
    check_equal(state_of(dog)[2], dog)  # a session of its own
    wait_until(lambda: state_of(dog)[0] == "S", "it sleeps")
    files = [os.readlink(f"/proc/{dog}/fd/{fd}") for fd in os.listdir(f"/proc/{dog}/fd")]
    check(not [one for one in files if not re.match(r"/dev/null|socket:|anon_inode:\[(timerfd|pidfd)\]|pidfd:|/sys/fs/cgroup/", one)],
          str(files))
    check(lives(dog))
    check_equal(len(children(run.pid)), 2)
    run.send(signal.SIGTERM)
    run.end(143)


main(world.close, parts=4)
