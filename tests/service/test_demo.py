#!/usr/bin/python3
"""test_demo.py - pawl dev and pawl demo: what they start works, and is gone when they are, however they end."""

import concurrent.futures
import glob
import json
import os
import pty
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

from world import (BUILD, ROOT, check, check_equal, check_in, main, of_time, test, wait_until)
from world.process import die_with_parent
from world.running import children, lives, name_of
from world.wait import DEADLINE_S

PAWL = str(BUILD / "pawl")
FREE_PORTS = ["--listen-lease", "127.0.0.1:0", "--listen-gateway", "127.0.0.1:0"]
DEMO_DEADLINE_S = 90  # it takes about 10 s; under the sanitizers, beside other tests, longer
AT_ONCE = 4           # demos that are played side by side
TTL = "1200ms"

folder = tempfile.mkdtemp(prefix="pawl-test-")


def environment(**more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith("PAWL_") and name not in ("NOTIFY_SOCKET", "NO_COLOR", "LC_ALL", "LANG", "LC_CTYPE")}
    return {**clean, "LC_ALL": "C.UTF-8", "TMPDIR": folder, **more}


def path(name):
    return os.path.join(folder, name)


def temporary_directories():
    """Of running clusters: each has a directory of its own while it runs."""
    return glob.glob(path("pawl-??????"))


def wait_gone(pids):
    wait_until(lambda: not any(map(lives, pids)), f"{pids} have ended")


class Running:
    """pawl, its two outputs read as they come."""

    program = PAWL

    def __init__(self, *words, **variables):
        self.news, self.text, self.open = threading.Condition(), "", 2
        self.process = subprocess.Popen([self.program, *words], env=environment(**variables), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=die_with_parent)
        for stream in (self.process.stdout, self.process.stderr):
            threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream):
        for line in stream:
            with self.news:
                self.text += line.decode(errors="replace")
                self.news.notify_all()
        with self.news:
            self.open -= 1
            self.news.notify_all()

    def said(self, text, deadline_s=DEADLINE_S):
        """Waits until it has said this; all that it said."""
        end = time.monotonic() + deadline_s
        with self.news:
            while text not in self.text:
                if not self.open or not self.news.wait(max(0, end - time.monotonic())):
                    raise AssertionError(f"did not say {text!r}, but: {self.text}")
            return self.text

    def wait(self, deadline_s=DEADLINE_S):
        """Its exit status, when all that it said has been read."""
        status = self.process.wait(deadline_s)
        end = time.monotonic() + deadline_s
        with self.news:
            while self.open and self.news.wait(max(0, end - time.monotonic())):
                pass
        return status

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.wait()


class Dev(Running):
    """pawl dev that is ready."""

    def __init__(self, *words, **variables):
        super().__init__("dev", *FREE_PORTS, *words, **variables)
        text = self.said("Ctrl-C ends it all")
        self.lease_url = re.search(r"lease service +(http://\S+)", text).group(1)
        self.gateway_url = re.search(r"gateway +(http://\S+)", text).group(1)

    def shows_its_pages(self):
        """Both are there, and those of the gateway lead to the others."""
        for url in (pages := re.search(r"web pages +(\S+) +(\S+)", self.text).groups()):
            with urllib.request.urlopen(url, timeout=DEADLINE_S) as page:
                check_in(b"app.js", page.read())
        with urllib.request.urlopen(pages[1].replace("/ui/", "/v1/overview"), timeout=DEADLINE_S) as said:
            check_equal([one["ui"] for one in json.load(said)["members"] if one["kind"] == "lease"], [pages[0]])

    def children(self):
        """{name: pid} of what runs."""
        return {name_of(pid): pid for pid in children(self.process.pid)}

    def shell(self, script):
        done = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, timeout=4 * DEADLINE_S, check=False,
                              env=environment(PAWL_LEASE_URL=self.lease_url, PAWL_GATEWAY_URL=self.gateway_url))
        check_equal(done.returncode, 0, f"{script}: {done.stdout}{done.stderr}")
        return done.stdout


def refused(*words, status, **variables):
    """pawl dev that does not start: what it said."""
    running = Running("dev", *words, **variables)
    check_equal(running.wait(), status, running.text)
    return running.text


# -- dev


@test
def what_dev_says_to_type_works_when_it_is_pasted():
    dev = Dev(PAWL_ACCESS_TOKEN="pawl_secret", PAWL_ACCESS_TOKEN_FILE="/nowhere")
    check_equal(set(dev.children()), {"redis-server", "pawl-lease", "pawl-gateway"})
    for name, pid in dev.children().items():
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
            check("PAWL_ACCESS" not in file.read(), f"{name} knows what only dev was told")
    dev.shows_its_pages()
    curl = [line for line in dev.text.splitlines() if re.match(r"TOKEN=|curl ", line)]
    check_equal(len(curl), 4, dev.text)
    out = dev.shell("\n".join(curl))
    check(out.startswith("packed\n{") and '"state":"held"' in out, out)
    typed = [line for line in dev.text.splitlines() if re.match(r"export |eval |echo |\S*/pawl ", line)]
    check_equal(len(typed), 6, dev.text)
    check_in("orders:43 released", dev.shell("\n".join(typed)))
    check_equal(dev.end(), 0, dev.text)


@test
def a_program_whose_path_a_shell_would_not_take_is_called_by_its_name():
    class Odd(Dev):
        program = os.path.join(path("a;b"), "pawl")
    os.mkdir(path("a;b"))
    shutil.copy(PAWL, Odd.program)
    dev = Odd(PATH=f"{BUILD}:{os.environ['PATH']}")
    check_in('\neval "$(pawl acquire orders:43', dev.text)
    check_equal(dev.end(), 0, dev.text)


@test
@of_time
def the_example_shows_a_stale_write_refused_in_front_of_a_service_that_knows_nothing_of_tokens():
    data = path("example")
    for _ in range(2):  # the second time the example is elsewhere: the routes are others
        dev = Dev("--example", "--data", data)
        check(not re.search(r"gateway +\| \S+ (warn|error)", dev.text), dev.text)
        check_in(f"Redis          unix://{data}/redis.sock", dev.text)
        dev.shows_its_pages()
        check_equal((os.path.exists(f"{data}/redis.sock"), temporary_directories()), (True, []))
        typed = [line for line in dev.text.splitlines() if re.match(r"take\(|write\(|[AB]=|write |curl ", line)]
        check_equal(len(typed), 6, dev.text)
        for _ in range(2):  # as often as one likes
            said = dev.shell("\n".join(typed)).replace("\n 412", " 412").splitlines()  # a problem ends its line
            check_equal((said[:2], said[3:]), (["written 200"] * 2, ["by B"]), str(said))
            check(re.search(r'"code":"stale-token".* 412$', said[2]) is not None, said[2])
        port = int(re.search(r"http://127.0.0.1:(\d+)", typed[-1]).group(1))
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as sender:
            sender.sendall(b"PUT /orders/7 HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (2 ** 64 - 1))
            check_equal(sender.recv(1), b"", "so long a body is refused before it has come")
        check_equal(dev.end(), 0, dev.text)


@test
def dev_forwards_by_the_routes_in_a_file():
    file = path("routes.json")
    check_in("cannot be read", refused(*FREE_PORTS, "--routes", file, status=78))
    with open(file, "w", encoding="ascii") as stream:
        json.dump({"routes": [{"match": "/x/{id}/**", "lease": "x:{id}", "upstream": "http://127.0.0.1:9", "guarantee": "ordered"}]}, stream)
    refused(*FREE_PORTS, "--routes", file, "--example", status=64)
    dev = Dev("--routes", file)
    check_in(f"routes         {file}", dev.text)
    check_in("token-required", dev.shell(f"curl -sS -X PUT -d a {dev.gateway_url}/x/1"))
    out = dev.shell("\n".join(line for line in dev.text.splitlines() if re.match(r"TOKEN=|curl ", line)))
    check_in('"lease":"x:7"', out)
    check_in("upstream", out)
    check_equal(dev.end(), 0, dev.text)


@test
def dev_ends_its_children_however_it_ends_and_leaves_nothing():
    for number, stopped in ((signal.SIGTERM, False), (signal.SIGTERM, True), (signal.SIGINT, False), (signal.SIGHUP, False), (signal.SIGKILL, False)):
        dev, is_killed = Dev(), number == signal.SIGKILL
        running = dev.children()
        check_equal(len(temporary_directories()), 1)
        if stopped:
            os.kill(running["pawl-gateway"], signal.SIGSTOP)
        check_equal(dev.end(number), -number if is_killed else 0, dev.text)
        wait_gone(running.values())
        check_equal(len(temporary_directories()), is_killed)
    for left in temporary_directories():
        shutil.rmtree(left)


@test
def a_child_that_ends_by_itself_takes_the_others_along():
    for name, told in (("pawl-lease", "lease has ended by itself"), ("pawl-gateway", "gateway has ended by itself"),
                       ("redis-server", "redis has ended by itself")):
        dev = Dev()
        running = dev.children()
        os.kill(running[name], signal.SIGKILL)
        check_equal(dev.wait(), 70, dev.text)
        check_in(told, dev.text)
        wait_gone(running.values())
        check_equal(temporary_directories(), [])


@test
def dev_hears_of_the_end_of_its_children_though_its_parent_did_not_care():
    class Deaf(Dev):
        program = path("deaf")
    with open(Deaf.program, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\ntrap '' CHLD\nexec {PAWL} \"$@\"\n")
    os.chmod(Deaf.program, 0o700)
    check_equal(Deaf().end(), 0)


@test
def a_taken_port_is_said_clearly_and_is_78():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        check_in(f"{address} is taken", refused("--listen-lease", address, "--listen-gateway", "127.0.0.1:0", status=78))
        check_in("--listen-gateway", refused("--listen-lease", "127.0.0.1:0", "--listen-gateway", address, status=78))
    dev = Dev()
    address = dev.lease_url.removeprefix("http://")
    check_in(f"{address} is taken", refused("--listen-lease", address, "--listen-gateway", "127.0.0.1:0", status=78))
    check_equal(dev.end(), 0)
    for bad in ("", "127.0.0.1", "127.0.0.1:x", ":8700", "localhost:0", "127.0.0.1:99999", "[::1:0", "256.0.0.1:0"):
        refused(f"--listen-lease={bad or ':'}", "--listen-gateway", "127.0.0.1:0", status=78)
    check_equal(temporary_directories(), [])


@test
def data_keeps_a_resource_and_the_keys_across_two_runs_and_ends_every_hold():
    data = path("data")
    dev = Dev("--data", data)
    check_equal(os.stat(os.path.join(data, "keys")).st_mode & 0o777, 0o600)
    check_equal(os.stat(data).st_mode & 0o777, 0o700)
    left = dev.shell(f'eval "$({PAWL} acquire orders:1 --ttl 1h -o env)"; printf kept | {PAWL} put orders:1 >&2; '
                     'printf "%s\n%s" "$PAWL_LEASE_ID" "$PAWL_FENCING_TOKEN"')
    lease_id, token = left.splitlines()
    check_in("another pawl dev is using", refused(*FREE_PORTS, "--data", data, status=78))
    check_equal(dev.end(), 0, dev.text)
    dev = Dev("--data", data)
    check_equal(dev.shell(f"{PAWL} cat orders:1"), "kept")
    # Every process has restarted, so nobody is left who could say that the store has lost nothing.
    said = dev.shell(f"export PAWL_FENCING_TOKEN='{token}' PAWL_LEASE_ID={lease_id}\n"
                     f"printf again | {PAWL} put orders:1 2>&1 || echo $?; {PAWL} release orders:1 2>&1 || echo $?; "
                     f"unset PAWL_LEASE_ID; {PAWL} acquire orders:1 >/dev/null && echo granted")
    for word in ("lease-expired", "store-restarted", "76", "granted"):
        check_in(word, said)
    pids = dev.children().values()
    dev.end(signal.SIGKILL)
    wait_gone(pids)
    dev = Dev("--data", data)
    check_equal(dev.shell(f"{PAWL} cat orders:1"), "kept")
    check_equal(dev.end(), 0, dev.text)
    for left in temporary_directories():
        shutil.rmtree(left)


@test
def a_data_directory_may_be_called_what_means_something_in_a_url():
    data = path("a b%41?c=1#d:e@f")
    dev = Dev("--data", data)
    check_in("/a%20b%2541%3Fc%3D1%23d:e%40f/redis.sock", dev.text)
    check(os.path.exists(os.path.join(data, "redis.sock")), dev.text)
    check_equal(dev.end(), 0, dev.text)


@test
def keys_that_no_disk_had_room_for_are_made_anew():
    data = path("full")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
    done = subprocess.run([PAWL, "dev", *FREE_PORTS, "--data", data], env=environment(), preexec_fn=limit, capture_output=True,
                          text=True, timeout=DEADLINE_S, check=False)
    check_equal(done.returncode, 78, done.stderr)
    check_in("could not be written: File too large", done.stderr)
    check_equal(Dev("--data", data).end(), 0)


@test
def a_directory_that_is_not_ours_or_has_lost_something_is_refused():
    foreign = path("foreign")
    os.mkdir(foreign)
    with open(os.path.join(foreign, "thesis.txt"), "w", encoding="ascii") as file:
        file.write("do not touch")
    check_in("neither empty", refused(*FREE_PORTS, "--data", foreign, status=78))
    check_equal(os.listdir(foreign), ["thesis.txt"])
    refused(*FREE_PORTS, "--data", os.path.join(foreign, "thesis.txt"), status=78)
    refused(*FREE_PORTS, "--data", path("no/such/parent"), status=78)
    data = path("lost")
    check_equal(Dev("--data", data).end(), 0)
    os.rename(os.path.join(data, "keys"), path("keys-elsewhere"))
    check_in("keys is gone", refused(*FREE_PORTS, "--data", data, status=78))
    os.rename(path("keys-elsewhere"), os.path.join(data, "keys"))
    shutil.rmtree(os.path.join(data, "appendonlydir"))
    check_in("is lost", refused(*FREE_PORTS, "--data", data, status=78))
    check_equal(temporary_directories(), [])


@test
def without_redis_server_dev_says_what_to_install():
    said = refused(*FREE_PORTS, status=78, PATH="/nonexistent")
    check("redis-server" in said and "apt-get install" in said, said)


# -- the demo


def on_terminal(*flags, **variables):
    """(exit status, text) of the demo on a terminal of 80 columns."""
    parent, child = pty.openpty()
    process = subprocess.Popen([PAWL, "demo", "stale-holder", *flags], stdin=subprocess.DEVNULL, stdout=child, stderr=child,
                               env=environment(TERM="xterm", **variables), preexec_fn=die_with_parent)
    os.close(child)
    data = b""
    try:
        while more := os.read(parent, 65536):
            data += more
    except OSError:  # EIO: the other side is closed
        pass
    os.close(parent)
    return process.wait(DEMO_DEADLINE_S), data.decode().replace("\r\n", "\n")


def piped(*flags):
    running = Running("demo", "stale-holder", *flags)
    return running.wait(DEMO_DEADLINE_S), running.text


def played(demo, **variables):
    """What it said, with a longer ttl on a machine that is too slow for the first one."""
    status, text = demo(**variables)
    if status != 0:
        status, text = demo("--ttl", "5s", **variables)
    check_equal(status, 0, text)
    return text


def check_in_order(text, *parts):
    at = 0
    for part in parts:
        found = text.find(part, at)
        check(found >= 0, f"{part!r} is not where it should be in:\n{text}")
        at = found + len(part)


def check_story(text):
    """Both parts, in this order."""
    check_in_order(text, "Without the fence", "is stopped (SIGSTOP", "it is taken", "goes on (SIGCONT)", 'A  writes "packed, says A"\n',
                   'B  reads  "packed, says A"\n', "B's work is lost", "With the fence", "is stopped (SIGSTOP", "held by A",
                   "goes on (SIGCONT)", 'A  writes "packed, says A": refused, 412 stale-token', 'B  reads  "shipped, says B"\n',
                   'B  writes "delivered, says B"\n', 'B  reads  "delivered, says B"\n', "below the stairs: refused",
                   "The fence held")


@test
def the_demo_loses_work_without_the_fence_and_none_with_it():
    with concurrent.futures.ThreadPoolExecutor() as pool:  # side by side, because each takes its time
        plays = [pool.submit(played, on_terminal, LC_ALL="C"), pool.submit(played, on_terminal, NO_COLOR="1"), pool.submit(played, piped)]
        coloured, quiet, unseen = [play.result() for play in plays]
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    for text in (unseen, plain, quiet):
        check_story(text)
        check("\x1b" not in text and max(map(len, text.splitlines())) <= 90, text)
    check(coloured.isascii() and "\x1b[" in coloured)
    for glyph in "━╱╌●✕░┏·":
        check_in(glyph, unseen)
    check(re.search(r"refused X|X A, token", plain), plain)
    check_equal(temporary_directories(), [])


def listed():
    """[(hazard, its line)]"""
    running = Running("demo")
    check_equal(running.wait(), 0, running.text)
    return [tuple(line.split(None, 1)) for line in running.text.splitlines()]


# What must be seen of each, in this order: of the recipe's failure, then of Pawl.
# The end of a hold and the grant that follows it are told as their answers come: in either order.
SEEN = {
    "stale-holder": ("is stopped", "B's work is lost", "refused, 412 stale-token", "The fence held"),
    "clock-jump": ("jumps forward by 36", "Both held it at once", "jumps forward by 36", "refused, 412 stale-token",
                   "The fence held"),
    "slow-network": ("keeps", "bytes arrive", "B's work is lost", "keeps", "bytes arrive", "refused, 412 stale-token", "The fence held"),
    "crash-before-expire": ("SETNX", "is killed", "in vain", "Redis says -1", "wait for ever", "is killed", "token 2", "Pawl held"),
    "timestamp-lock": ("overwrote the other's end", "held by A", 'writes "packed, says A"', "gives it back", "412 stale-token",
                       "Pawl held"),
    "wrong-release": ("DEL removes 1 key", "C  gets the lock", "GET says", "is stopped", "DEL removes 1 key", "C  gets the lock",
                      "the lease is over: lease-lost", "held by B", 'B  writes "shipped', "C  gets the lease", "Pawl held"),
    "failover": ("is promoted", "Redis says 0", "B's work is lost", "is promoted", "refused, 412 stale-token", "The fence held"),
    "redlock-pause": ("majority", "is stopped", "B's work is lost", "refused, 412 stale-token", "on a quorum", "is stopped",
                      "jumps forward by 36", "token 2", "refused, 412 stale-token", "Two held it at once", "The fence held"),
    "late-unlock": ('writes "packed, says A"', "is told only now", "refused, 412 stale-token", "the lease is over: lease-lost",
                    "The fence held"),
    "read-lock-starvation": ("in vain", "every reader who came later passed it by", "C  gets the lease", 'C  writes "news',
                             "B  gets the lease", "Pawl held"),
}


@test
def every_hazard_fails_the_recipe_and_does_not_fail_pawl():
    names = [name for name, _ in listed()]
    check_equal(sorted(names), sorted(SEEN))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        def play(name):
            for ttl in (TTL, "3s"):  # on a machine that is too slow for the first one
                demo = Running("demo", name, "--ttl", ttl)
                status = demo.wait(DEMO_DEADLINE_S)
                if status == 0:
                    break
            return name, status, demo.text
        for name, status, text in pool.map(play, sorted(names, key=lambda name: name != "redlock-pause")):  # the longest first
            check_equal(status, 0, f"{name}: {text}")
            check_in_order(text, *SEEN[name])
            check(max(map(len, text.splitlines())) <= 90, text)
    check_equal(temporary_directories(), [])


@test
def every_hazard_has_its_section_and_every_section_its_hazard():
    with open(ROOT / "docs/hazards.md", encoding="utf-8") as file:
        page = file.read()
    sections = re.findall(r"^## `([a-z-]+)`$", page, re.MULTILINE)
    check_equal(sections, [name for name, _ in listed()])
    for section in re.split(r"^## `", page, flags=re.MULTILINE)[1:]:
        section = section.split("\n## ")[0]
        for part in ("**The recipe.**", "**Why it fails.**", "**Pawl.**", "**Sources.**"):
            check_in(part, section)
        # Both pictures, as printed: lanes for the recipe, stairs for Pawl.
        check(section.count("```\n") % 2 == 0 and section.count("0 s") >= 2, section)
        check_in("token │", section)


@test
def a_demo_that_is_interrupted_or_killed_takes_its_workers_along_even_a_stopped_one():
    for number, status in ((signal.SIGINT, 1), (signal.SIGKILL, -signal.SIGKILL)):
        demo = Running("demo", "stale-holder")
        demo.said("is stopped (SIGSTOP", DEMO_DEADLINE_S)
        pids = children(demo.process.pid)
        check_equal(len(pids), 7)  # Redis, both services, the recipe's Redis, three workers
        check_equal(demo.end(number), status, demo.text)
        wait_gone(pids)
    for left in temporary_directories():
        shutil.rmtree(left)


@test
def a_demo_whose_gateway_dies_does_not_count_as_good():
    demo = Running("demo", "stale-holder")
    demo.said("With the fence", DEMO_DEADLINE_S)
    os.kill(next(pid for pid in children(demo.process.pid) if name_of(pid) == "pawl-gateway"), signal.SIGKILL)
    check_equal(demo.wait(DEMO_DEADLINE_S), 1, demo.text)
    check_in("gateway has ended by itself", demo.text)
    check("The fence held" not in demo.text)


@test
def a_recipe_that_does_not_fail_is_not_called_good():
    """A library that shifts no clock in the place of the shim: then the recipe holds, and the demo has shown nothing."""
    harmless = glob.glob("/lib/*/libm.so.6")[0]
    for name, told in (("timestamp-lock", "it went otherwise than it should"), ("clock-jump", "did not jump")):
        demo = Running("demo", name, "--shim", harmless, "--ttl", TTL)
        check_equal(demo.wait(DEMO_DEADLINE_S), 1, demo.text)
        check_in(told, demo.text)
        check("held:" not in demo.text, demo.text)
    check_equal(temporary_directories(), [])


@test
def what_cannot_be_played_says_why():
    no_shim = ["--shim", path("no-such-shim.so")]
    for words, status, told in (*(([name, *no_shim], 78, "shim") for name in ("clock-jump", "timestamp-lock", "redlock-pause")),
                                *((["stale-holder", "--ttl", ttl], 64, "ttl") for ttl in ("10ms", "2m", "soon")),
                                (["stale-hodler"], 64, "did you mean"), (["frobnicate"], 64, "read-lock-starvation")):
        demo = Running("demo", *words)
        check_equal(demo.wait(), status, demo.text)
        check_in(told, demo.text)
    check_equal(temporary_directories(), [])


def close():
    wait_until(lambda: not temporary_directories(), "every temporary directory is gone")
    shutil.rmtree(folder)


main(close, parts=3)
