"""bench_world.py - the processes of the benchmark: Redis, the services, nginx, and what each of them used."""

import contextlib
import ctypes
import json
import os
import re
import resource
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from world.ports import own_port  # noqa: E402  pylint: disable=wrong-import-position

TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 20
PR_SET_PDEATHSIG = 1


class Broken(Exception):
    """Something did not work; there is nothing to measure then."""


def raise_open_files():
    """10,000 connections need as many descriptors on both sides."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def until(what, true, patience_s=PATIENCE_S, pause_s=0.01):
    deadline = time.monotonic() + patience_s
    while not true():
        if time.monotonic() > deadline:
            raise Broken(f"{what}: not within {patience_s} s")
        time.sleep(pause_s)


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def status_of(url):
    try:
        with urllib.request.urlopen(url, timeout=2, context=ssl._create_unverified_context()) as answer:  # pylint: disable=protected-access
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def cpu_of_one(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


class Process:
    """A child that ends with this process. Its stderr is kept in a file, and can be waited for."""

    running = []

    @classmethod
    def all_cpu_s(cls):
        """Also of those that wait for their turn."""
        return sum(process.cpu_s() for process in cls.running)

    def __init__(self, name, argv, directory, env=None):
        self.name = name
        self.log = os.path.join(directory, f"{name}.log")
        self.lines = []
        self.child = subprocess.Popen(argv, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, preexec_fn=die_with_parent, env=env)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.running.append(self)

    def _read(self):
        with open(self.log, "ab") as log:
            for line in self.child.stdout:
                log.write(line)
                if len(self.lines) < 200:
                    self.lines.append(line.decode(errors="replace"))

    def said(self, pattern):
        """The first match in what it printed; waits for it."""
        def found():
            if self.child.poll() is not None:
                self.reader.join()
                if not any(re.search(pattern, line) for line in self.lines):
                    raise Broken(f"{self.name} ended with {self.child.returncode}:\n" + "".join(self.lines))
            return any(re.search(pattern, line) for line in self.lines)
        until(f"{self.name} saying {pattern}", found)
        return next(m for m in (re.search(pattern, line) for line in self.lines) if m)

    def cpu_s(self):
        """Of it and of its children: nginx works in one."""
        pid = self.child.pid
        total = cpu_of_one(pid)
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                return total + sum(cpu_of_one(child) for child in file.read().split())
        except OSError:
            return total

    def rss_bytes(self):
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1]) * 1024

    def stop(self):
        if self in self.running:
            self.running.remove(self)
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(timeout=15)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        self.reader.join()


@contextlib.contextmanager
def running(process):
    try:
        yield process
    finally:
        process.stop()


class Redis(Process):
    """Private, with an append-only file on the disk that the directory is on.

    The file is never rewritten while it is measured: a rewrite takes one of the two cores at a moment of its own
    choosing, from both sides alike."""

    def __init__(self, directory, more=()):
        self.place = os.path.join(directory, "redis")
        os.mkdir(self.place)
        self.port = own_port()
        self.argv = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.place, "--save", "",
                     "--appendonly", "yes", "--appendfsync", "always", "--aof-load-truncated", "no",
                     "--auto-aof-rewrite-percentage", "0", *more]
        self.to = f"127.0.0.1:{self.port}"
        self.url = f"redis://{self.to}"
        self.start()
        self.said("Ready to accept connections")

    def start(self):
        """Also again, with the files that it left: a redis-server that does not serve yet."""
        super().__init__("redis", self.argv, self.place)

    def kill(self):
        self.running.remove(self)
        self.child.kill()
        self.child.wait()
        self.reader.join()

    def serves(self):
        """Whether it answers, and not that it is still loading."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as sock:
                sock.sendall(b"PING\r\n")
                return sock.recv(64).startswith(b"+PONG")
        except OSError:
            return False

    def ask(self, *words):
        """One command, its answer as redis-cli prints it."""
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], check=True, capture_output=True,
                              text=True, errors="replace").stdout.strip()

    def used_memory(self):
        return int(re.search(r"^used_memory:(\d+)", self.ask("INFO", "memory"), re.M)[1])

    def scripts_run(self):
        """How many scripts it has run, and for how many microseconds, those that come as text too."""
        told = self.ask("INFO", "commandstats")
        found = re.findall(r"^cmdstat_(?:eval|evalsha|fcall)(?:_ro)?:calls=(\d+),usec=(\d+)", told, re.M)
        return sum(int(calls) for calls, _ in found), sum(int(usec) for _, usec in found)

    def work(self):
        """How many scripts it has run, and the CPU seconds that it has used."""
        return self.scripts_run()[0], sum(float(s) for s in re.findall(r"^used_cpu_(?:sys|user):([\d.]+)",
                                                                       self.ask("INFO", "cpu"), re.M))

    def slow_scripts(self):
        """[(microseconds, arguments)] of the scripts in its slow log, the latest first."""
        entries = json.loads(self.ask("--json", "SLOWLOG", "GET", "-1"))
        return [(entry[2], entry[3]) for entry in entries if entry[3][0].upper().startswith(("EVAL", "FCALL"))]


def state_of(directory, name):
    """The state directory of a service; pawl-lease --init-store begins that of pawl-lease."""
    return os.path.join(directory, name, "state")


class Service(Process):
    """pawl-lease or pawl-gateway, ready."""

    def __init__(self, program, name, directory, redis, keys, more=()):
        place = os.path.join(directory, name)
        os.makedirs(place, exist_ok=True)
        super().__init__(name, [program, "--listen", "127.0.0.1:0", "--redis", redis.url, "--keys", keys,
                                "--state-dir", state_of(directory, name), *more],
                         place, env={"PATH": os.environ["PATH"]})
        scheme, self.to = self.said(r"listening on (https?)://(127\.0\.0\.1:\d+)").groups()
        until(f"{name} being ready", lambda: status_of(f"{scheme}://{self.to}/readyz") == 200)


NGINX_CONF = """
worker_processes 1;
daemon off;
pid {place}/nginx.pid;
error_log stderr warn;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_max_body_size 0;
    proxy_request_buffering off;
    proxy_max_temp_file_size 0;
    client_body_temp_path {place}/body;
    proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/fastcgi;
    uwsgi_temp_path {place}/uwsgi;
    scgi_temp_path {place}/scgi;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
    upstream idle {{
        server {upstream};
        keepalive 512;
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://idle;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }}
    }}
}}
"""


class Nginx(Process):
    """One worker, connections kept on both sides, in front of an upstream that does nothing."""

    def __init__(self, directory, upstream):
        place = os.path.join(directory, "nginx")
        os.mkdir(place)
        port = own_port()
        conf = os.path.join(place, "nginx.conf")
        with open(conf, "w", encoding="ascii") as file:
            file.write(NGINX_CONF.format(place=place, port=port, upstream=upstream))
        super().__init__("nginx", ["nginx", "-p", place, "-c", conf, "-e", "stderr"], place)
        self.to = f"127.0.0.1:{port}"
        until("nginx answering", lambda: answers(port))


class Upstream(Process):
    """The upstream that does nothing."""

    def __init__(self, program, directory):
        super().__init__("upstream", [program], directory)
        self.to = "127.0.0.1:" + self.said(r"^(\d+)$")[1]


class Idle:
    """Connections that have had one answer and are silent since."""

    def __init__(self, load, to, connections, path):
        self.child = subprocess.Popen([load, "--to", to, "--job", "idle", "--connections", str(connections),
                                       "--names", str(connections), "--path", path], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        ready, _, _ = select.select([self.child.stdout], [], [], PATIENCE_S)
        if not ready or self.child.stdout.readline() != "ready\n":
            self.child.kill()
            raise Broken("the idle connections could not be opened")

    def open_at_the_end(self):
        out, _ = self.child.communicate(timeout=PATIENCE_S)
        return json.loads(out)["open"]


def busy_of_machine_s():
    """CPU seconds that anybody used since the machine started: all but idle and waiting for the disk."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(x) for x in file.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS
