#!/usr/bin/python3
"""What a daemon and a service manager say to each other: sockets that are passed (sd_listen_fds), and what is told
(sd_notify). systemd is not there: its side is played here."""

import ctypes
import datetime
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

from world import BUILD, ROOT, Daemon, World, check, check_equal, check_in, keeps_within, main, of_time, run_daemon, skip, test, wait_until
from world.access import write_private
from world.process import die_with_parent, with_proc

WORLD = World()
BOTH = ("pawl-lease", "pawl-gateway")
CONFIG = 78
DEADLINE_S = 15
# Puts the sockets where they belong, says whose they are, and becomes the daemon: the pid stays.
STARTER = ("import os,sys\n"
           "fds=[int(n) for n in sys.argv[1].split(',') if n]\n"
           "kept=[os.dup2(os.dup(fd), 100+i) for i,fd in enumerate(fds)]\n"
           "for i,fd in enumerate(kept): os.dup2(fd,3+i); os.set_inheritable(3+i,True); os.close(fd)\n"
           "os.environ['LISTEN_PID']=sys.argv[2].replace('SELF',str(os.getpid()))\n"
           "os.environ['WATCHDOG_PID']=sys.argv[3].replace('SELF',str(os.getpid()))\n"
           "os.execv(sys.argv[4],sys.argv[4:])\n")


def listening(address="127.0.0.1", family=socket.AF_INET, kind=socket.SOCK_STREAM, listens=True):
    one = socket.socket(family, kind)
    one.bind((address, 0) if family != socket.AF_UNIX else address)
    if listens and kind == socket.SOCK_STREAM:
        one.listen(64)
    return one


class Activated(Daemon):
    """A daemon that is started as systemd does it: with sockets."""

    def __init__(self, name, sockets, *flags, pid="SELF", watchdog_pid="SELF", environment=None):
        variables = {"LISTEN_FDS": str(len(sockets)), "LISTEN_FDNAMES": ":".join("http" for _ in sockets), **(environment or {})}
        self.sockets = [one.fileno() for one in sockets]
        self.who = (pid, watchdog_pid)
        super().__init__(name, *flags, environment=variables)

    def command(self):
        return ["/usr/bin/python3", "-c", STARTER, ",".join(map(str, self.sockets)), *self.who, str(BUILD / self.name), *self.flags]

    def start(self, settings):
        return subprocess.Popen(self.command(), env=settings, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, preexec_fn=die_with_parent, start_new_session=True, pass_fds=self.sockets)


def refused(name, sockets, *flags, environment=None):
    """How it ends when it does not want what it is given."""
    numbers = [one.fileno() for one in sockets]
    variables = {"LISTEN_FDS": str(len(sockets)), "LISTEN_FDNAMES": ":".join(f"door{i}" for i in range(len(sockets))),
                 **(environment or {}), "STATE_DIRECTORY": os.path.join(WORLD.folder, "refused")}
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PAWL_") and key != "NOTIFY_SOCKET"}
    return subprocess.run(["/usr/bin/python3", "-c", STARTER, ",".join(map(str, numbers)), "SELF", "SELF", str(BUILD / name), *flags],
                          env={**clean, **variables}, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
                          preexec_fn=die_with_parent, pass_fds=numbers)


class Manager:
    """The other end of $NOTIFY_SOCKET."""

    def __init__(self, path=None):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(DEADLINE_S)
        self.path = path or os.path.join(WORLD.folder, f"notify-{time.monotonic_ns()}")
        self.socket.bind("\0" + self.path[1:] if self.path[0] == "@" else self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def told(self):
        return self.socket.recv(4096).decode()

    def forget(self):
        """What was told and is not read yet."""
        self.socket.setblocking(False)
        try:
            while self.socket.recv(4096):
                pass
        except BlockingIOError:
            self.socket.settimeout(DEADLINE_S)


def answers(port, host="127.0.0.1"):
    with socket.create_connection((host, port), DEADLINE_S) as one:
        one.settimeout(DEADLINE_S)
        one.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return one.recv(4096).startswith(b"HTTP/1.1 200 ")


# -- sockets

@test
def a_socket_that_is_passed_takes_the_place_of_listen():
    for name in BOTH:
        with listening() as given:
            daemon = Activated(name, [given], *WORLD.flags)
            check_equal((daemon.host, daemon.port), ("127.0.0.1", given.getsockname()[1]))
            check(answers(daemon.port))
            check_equal(daemon.end(), 0)


@test
def who_connects_while_it_is_started_anew_waits_and_is_answered():
    with listening() as given:
        port = given.getsockname()[1]
        daemon = Activated("pawl-lease", [given], *WORLD.flags)
        check(answers(port))
        check_equal(daemon.end(), 0)
        with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as early:
            early.settimeout(DEADLINE_S)
            early.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            again = Activated("pawl-lease", [given], *WORLD.flags)
            check(early.recv(4096).startswith(b"HTTP/1.1 200 "), "was not answered")
        check_equal(again.end(), 0)


@test
def threads_share_one_socket_and_several_sockets_are_all_served():
    with listening() as one, listening("::1", socket.AF_INET6) as two:
        daemon = Activated("pawl-lease", [one, two], *WORLD.flags, "--threads", "5")
        for _ in range(20):
            check(answers(one.getsockname()[1]))
            check(answers(two.getsockname()[1], "::1"))
        check_equal(daemon.end(), 0)
        alone = Activated("pawl-lease", [one], *WORLD.flags, "--threads", "4")
        for _ in range(20):
            check(answers(one.getsockname()[1]))
        check_equal(alone.end(), 0)


@test
def sockets_of_somebody_else_are_not_taken():
    with listening() as given:
        for pid in (str(os.getpid()), ""):
            daemon = Activated("pawl-lease", [given], *WORLD.flags, pid=pid)
            check(daemon.port != given.getsockname()[1], f"LISTEN_PID={pid!r}")
            check_equal(daemon.end(), 0)


@test
def a_socket_that_others_can_reach_is_refused_like_such_an_address():
    for address, family in (("0.0.0.0", socket.AF_INET), ("::", socket.AF_INET6)):
        with listening() as first, listening(address, family) as given:
            done = refused("pawl-lease", [first, given], *WORLD.flags, "--threads", "2")
            check_equal(done.returncode, CONFIG, done.stderr)
            check_in("descriptor 4 (door1)", done.stderr)
            check_in("--allow-anonymous", done.stderr)
    with listening("0.0.0.0") as given:
        access = os.path.join(WORLD.folder, "access.json")
        write_private(pathlib.Path(access), {"identities": {"me": {"uids": [1]}}, "rules": [{"who": ["me"], "may": ["observe"]}]})
        done = refused("pawl-lease", [given], *WORLD.flags, "--access", access)
        check_equal((done.returncode, "--tls-cert" in done.stderr), (CONFIG, True), done.stderr)
        own = World()  # a store that --access has used takes no service without it
        for world, flags in ((WORLD, ["--allow-anonymous"]), (own, ["--access", access, "--allow-plaintext"])):
            daemon = Activated("pawl-lease", [given], *world.flags, *flags)
            check_equal(daemon.host, "0.0.0.0")
            check(answers(daemon.port))
            check_equal(daemon.end(), 0)
        own.close()


@test
def what_is_no_listening_tcp_socket_is_refused_by_its_name():
    unix = os.path.join(WORLD.folder, "unix-socket")
    with listening(listens=False) as silent, listening(kind=socket.SOCK_DGRAM) as udp, listening(unix, socket.AF_UNIX) as local, \
            open(os.devnull, "rb") as no_socket:
        for wrong in (silent, udp, local, no_socket):
            done = refused("pawl-gateway", [wrong], *WORLD.flags)
            check_equal(done.returncode, CONFIG, done.stderr)
            check_in("(door0) cannot be used: it is not a listening TCP socket", done.stderr)
            check_equal(done.stderr.count("\n"), 1, done.stderr)


@test
def more_sockets_than_threads_and_a_number_that_is_none_are_refused():
    with listening() as one, listening() as two:
        done = refused("pawl-lease", [one, two], *WORLD.flags)
        check_equal(done.returncode, CONFIG, done.stderr)
        check_in("--threads", done.stderr)
        for count in ("-1", "x", "", "65", "99999999999"):
            done = refused("pawl-lease", [one], *WORLD.flags, environment={"LISTEN_FDS": count})
            check_equal(done.returncode, CONFIG, f"{count} {done.stderr}")
            check_in("LISTEN_FDS", done.stderr)
        daemon = Activated("pawl-lease", [one], *WORLD.flags, environment={"LISTEN_FDS": "0"})
        check(daemon.port != one.getsockname()[1])
        check_equal(daemon.end(), 0)


# -- what is told

def reloaded(daemon):
    return [json.loads(line) for line in list(daemon.lines) if "keys-reloaded" in (line or "")]


@test
def it_tells_that_it_is_ready_that_it_reloads_and_that_it_stops_in_this_order():
    for name in BOTH:
        for path in (None, f"@pawl-test-{os.getpid()}-{name}"):
            with Manager(path) as manager:
                daemon = Daemon(name, *WORLD.flags, environment={"NOTIFY_SOCKET": manager.path})
                check_equal(manager.told(), "READY=1")
                check(answers(daemon.port), "was not ready")
                before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
                daemon.send(signal.SIGHUP)
                match = re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)", manager.told())
                check(match, "RELOADING=1 with its time")
                check(before <= int(match.group(1)) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000, match.group(1))
                check_equal(manager.told(), "READY=1")
                daemon.send(signal.SIGTERM)
                check_equal(manager.told(), "STOPPING=1")
                check_equal(daemon.end(), 0)


@test
def it_is_ready_again_when_the_files_are_read_and_not_before():
    """A second SIGHUP comes while not every worker has been seen with what the first one has read."""
    for name in BOTH:
        with Manager(None) as manager:
            daemon = Daemon(name, *WORLD.flags, environment={"NOTIFY_SOCKET": manager.path})
            check_equal(manager.told(), "READY=1")
            for count in (1, 2):
                daemon.send(signal.SIGHUP)
                check_in("RELOADING=1", manager.told())
                check_equal(manager.told(), "READY=1")
                ready = datetime.datetime.now(datetime.timezone.utc)
                wait_until(lambda: len(reloaded(daemon)) == count, "the keys are read")
                check(datetime.datetime.fromisoformat(reloaded(daemon)[-1]["time"].replace("Z", "+00:00")) <= ready, "was ready before")
            check_equal(daemon.end(), 0)


@test
def nobody_who_listens_is_no_fault_of_the_daemon():
    for path in ("/nonexistent/socket", "@nobody-is-here", "/" + 200 * "x"):
        daemon = Daemon("pawl-lease", *WORLD.flags, environment={"NOTIFY_SOCKET": path})
        check(answers(daemon.port))
        check_equal(daemon.end(), 0)


def until_told(manager):
    """How long the watchdog waits for the next, in milliseconds."""
    begun = time.monotonic()
    check_equal(manager.told(), "WATCHDOG=1")
    return (time.monotonic() - begun) * 1000


@test
def the_watchdog_hears_of_it_at_least_twice_in_its_time():
    for threads in ("1", "4"):
        with Manager() as manager:
            daemon = Activated("pawl-lease", [], *WORLD.flags, "--threads", threads, environment={
                "NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1200000"})
            check_equal(manager.told(), "READY=1")
            check_equal(manager.told(), "WATCHDOG=1")
            keeps_within(600, lambda: until_told(manager), "between two of them")
            check_equal(daemon.end(), 0)


class Stopped:
    """All threads of a process but the first stand still."""

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17  # ptrace(2)

    def __init__(self, pid):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.tids = [int(one) for one in os.listdir(f"/proc/{pid}/task") if int(one) != pid]

    def __enter__(self):
        for tid in self.tids:
            if self.libc.ptrace(self.SEIZE, tid, None, None) != 0 or self.libc.ptrace(self.INTERRUPT, tid, None, None) != 0:
                raise OSError(ctypes.get_errno(), "ptrace")
            os.waitpid(tid, 0x40000000)  # __WALL
        return self

    def __exit__(self, *_):
        for tid in self.tids:
            if self.libc.ptrace(self.DETACH, tid, None, None) != 0:
                raise OSError(ctypes.get_errno(), "ptrace")


def heard_within(manager, seconds):
    """What was told in that time, as far as it is of the watchdog."""
    heard = []
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        manager.socket.settimeout(left)
        try:
            heard.append(manager.told())
        except (socket.timeout, BlockingIOError):
            break
    manager.socket.settimeout(DEADLINE_S)
    return heard


@test
@of_time
def the_watchdog_hears_nothing_while_any_thread_stands_still():
    with Manager() as manager:
        daemon = Activated("pawl-lease", [], *WORLD.flags, "--threads", "3", environment={
            "NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "900000"})
        check_equal(manager.told(), "READY=1")
        check_equal(manager.told(), "WATCHDOG=1")
        with Stopped(daemon.process.pid):
            manager.forget()
            # What was seen before they stopped may still be told, once.
            heard = heard_within(manager, 1.5)
            check(len(heard) <= 1, f"heard {heard}")
        check_equal(manager.told(), "WATCHDOG=1")
        check_equal(daemon.end(), 0)


@test
def a_manager_that_listens_and_does_not_read_stops_nothing():
    for name in BOTH:
        with Manager() as manager:
            daemon = Activated(name, [], *WORLD.flags, environment={
                "NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "300000"})
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
                other.setblocking(False)
                try:
                    while other.sendto(b"x", manager.path):
                        pass
                except BlockingIOError:
                    pass  # its queue is full
            began = time.monotonic()
            while time.monotonic() < began + 1:  # some times of the watchdog
                check(answers(daemon.port))
            check_equal(daemon.end(), 0)


@test
def without_an_interval_or_with_another_process_in_mind_the_watchdog_hears_nothing():
    for pid, variables in (("SELF", {}), ("1", {"WATCHDOG_USEC": "300000"}), ("SELF", {"WATCHDOG_USEC": "x"})):
        with Manager() as manager:
            daemon = Activated("pawl-lease", [], *WORLD.flags, watchdog_pid=pid, environment={
                "NOTIFY_SOCKET": manager.path, **variables})
            check_equal(manager.told(), "READY=1")
            wait_until(lambda: answers(daemon.port), "it serves")
            check_equal(heard_within(manager, 0.5), [], f"{pid} {variables}")
            check_equal(daemon.end(), 0)


# -- credentials

@test
def an_empty_password_file_is_no_password():
    path = os.path.join(WORLD.folder, "credential")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n")
    daemon = Daemon("pawl-lease", *WORLD.flags, environment={"PAWL_REDIS_PASSWORD_FILE": path})
    check_equal(WORLD.client(daemon)("GET", "/readyz").status, 200)
    check_equal(daemon.end(), 0)


# -- units

def units(end):
    return sorted((ROOT / "deploy/systemd").glob(f"*{end}"))


def as_installed(place):
    """The units as make install writes them, with programs that are there."""
    made = []
    for unit in [*units(".service"), *units(".socket")]:
        made.append(pathlib.Path(place) / unit.name)
        made[-1].write_text(unit.read_text(encoding="utf-8").replace("@bindir@", str(BUILD)), encoding="utf-8")
    return [str(one) for one in made]


def analyze(*arguments):
    try:
        return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        return skip("there is no systemd-analyze")


@test
def the_exposure_of_each_service_is_under_2():
    for unit in as_installed(WORLD.folder):
        if unit.endswith(".service"):
            done = analyze("security", "--offline=true", "--threshold=20", unit)
            match = re.search(r"exposure level for \S+: (\d+\.\d)", done.stdout)
            check(match, done.stdout + done.stderr)
            check(float(match.group(1)) < 2.0 and done.returncode == 0, f"{unit}: {match.group(1)}")


@test
def systemd_finds_nothing_wrong_with_the_units():
    done = analyze("verify", "--man=no", "--recursive-errors=no", *as_installed(WORLD.folder))
    check_equal((done.returncode, done.stdout + done.stderr), (0, ""))


@test
def the_units_ask_for_what_the_services_speak():
    for unit in units(".service"):
        text = unit.read_text(encoding="utf-8")
        name = unit.stem.removeprefix("pawl-")
        for line in ("Type=notify", "User=pawl", "LoadCredential=keys:/etc/pawl/keys", f"StateDirectory=pawl/{name}",
                     f"ExecStart=@bindir@/pawl-{name} --config /etc/pawl/{name}.conf", "RestartPreventExitStatus=78", "StartLimitIntervalSec=0"):
            check_in(f"\n{line}\n", text, unit.name)
        check("PrivateUsers=yes" not in text, f"{unit.name}: the uids of an access file are others then")
        check_in(f"\nRuntimeDirectory=pawl-{name}\n", text, unit.name)
        check(int(re.search(r"^WatchdogSec=(\d+)$", text, re.MULTILINE).group(1)) >= 5, unit.name)
    for unit in units(".socket"):
        check(re.search(r"^ListenStream=127\.0\.0\.1:", unit.read_text(encoding="utf-8"), re.MULTILINE), unit.name)


@test
def under_its_unit_a_gateway_knows_those_before_it_that_this_boot_proves_dead():
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    seen = re.search(r"^ProcSubset=(\w+)$", (ROOT / "deploy/systemd/pawl-gateway.service").read_text(encoding="utf-8"), re.MULTILINE)
    place = pathlib.Path(WORLD.folder) / "under-its-unit"
    place.mkdir(mode=0o700)
    gateway = Daemon("pawl-gateway", *WORLD.flags, "--state-dir", str(place), before=with_proc(seen.group(1) if seen else "all"))
    wait_until(lambda: WORLD.client(gateway)("GET", "/readyz", held=False).status == 200, "it is ready")
    line = (place / "incarnations").read_text(encoding="ascii")
    check_equal(line.split()[1][:18], boot[:18])  # behind that is which directory it is
    check_equal(gateway.end(), 0)


@test
def the_settings_that_are_installed_are_good():
    for name in BOTH:
        path = ROOT / "deploy/systemd" / f"{name.removeprefix('pawl-')}.conf"
        done = run_daemon(name, "--config", str(path), "--keys", WORLD.keys_file, "--check-config")
        check_equal((done.returncode, done.stderr), (0, ""))


main(WORLD.close, parts=3)
