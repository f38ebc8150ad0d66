"""A private Redis, keys, pawl-lease and pawl-gateway, in a directory and process groups of their own."""

import atexit
import base64
import hashlib
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from .client import Client, Raw
from .contract import Contract
from .process import die_with_parent
from .redis import PrivateRedis
from .signature import Keys
from .tap import lease_name, witnesses
from .wait import DEADLINE_S, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PAWL_BUILD") or ROOT / "build")

LISTENING = re.compile(r"^listening on (https?)://(.*):(\d+)$")
SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:")


_in_use = {}  # state directory -> the process that was given it last
_elsewhere = tempfile.mkdtemp(prefix="pawl-state-")
atexit.register(shutil.rmtree, _elsewhere, ignore_errors=True)


def state_directory(name, flags):
    """A directory for this daemon beside its Redis' socket: the one of the daemon before it, if that one has ended."""
    flags = list(flags)
    url = flags[len(flags) - 1 - flags[::-1].index("--redis") + 1] if "--redis" in flags else ""
    folder = os.path.dirname(url.removeprefix("unix://")) if url.startswith("unix:///") else _elsewhere
    folder = folder if os.path.isdir(folder) else _elsewhere
    for number in itertools.count():
        path = os.path.join(folder, f"state-{name}-{number}")
        if path not in _in_use or _in_use[path].poll() is not None:
            return path


def _environment(name, flags, extra=None):
    """Nothing of Pawl's from outside gets in."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_") and name != "NOTIFY_SOCKET"}
    return {**clean, "STATE_DIRECTORY": state_directory(name, flags), **(extra or {})}


def run_daemon(name, *flags, environment=None, deadline_s=DEADLINE_S, before=()):
    """For what ends by itself: CompletedProcess with text."""
    return subprocess.run([*before, str(BUILD / name), *flags], env=_environment(name, flags, environment), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=deadline_s, check=False)


def what_the_dead_said():
    """The last words of daemons that nobody ended; of each once."""
    for daemon in [one for one in _daemons if one.process.poll() not in (None, 0, -signal.SIGKILL, -signal.SIGTERM)]:
        _daemons.remove(daemon)
        daemon.reader.join(DEADLINE_S)
        yield f"{daemon.name} ended with {daemon.process.returncode}, having said:"
        yield from daemon.last_words().splitlines()


_daemons = []
witnesses.append(what_the_dead_said)


class Daemon:
    """A running daemon; its standard error is read line by line. before: words in front of its own."""

    def __init__(self, name, *flags, environment=None, before=()):
        self.name, self.flags, self.before = name, flags, before
        self.lines, self.news = [], threading.Condition()
        settings = _environment(name, flags, environment)
        self.process = self.start(settings)
        _in_use[settings["STATE_DIRECTORY"]] = self.process
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        _daemons.append(self)
        atexit.register(self.kill)
        match = LISTENING.match(self.line(LISTENING.match, "that it listens"))
        self.host, self.port = match.group(2), int(match.group(3))
        self.url = f"{match.group(1)}://{self.host}:{self.port}"

    @property
    def pages_url(self):
        """Where its web pages are, with --ui-listen."""
        return self.line(lambda line: line.startswith("web pages on "), "where its pages are").rpartition(" ")[2]

    def start(self, settings):
        return subprocess.Popen([*self.before, str(BUILD / self.name), *self.flags], env=settings, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=die_with_parent,
                                start_new_session=True)

    def _read(self):
        for line in self.process.stderr:
            with self.news:
                self.lines.append(line.decode(errors="backslashreplace").rstrip("\n"))
                self.news.notify_all()
        with self.news:
            self.lines.append(None)
            self.news.notify_all()

    def line(self, fits, what, begin=0, deadline_s=DEADLINE_S):
        """The first line from begin on that fits; waits for it."""
        end = time.monotonic() + deadline_s
        with self.news:
            while True:
                for line in self.lines[begin:]:
                    if line is not None and fits(line):
                        return line
                if None in self.lines or not self.news.wait(max(0, end - time.monotonic())):
                    raise TimeoutError(f"{self.name} did not say {what}; it said {self.lines[-20:]}")

    def log(self):
        """All that was said so far, as one text."""
        with self.news:
            return "\n".join(line for line in self.lines if line is not None)

    def send(self, number):
        self.process.send_signal(number)

    def end(self, number=signal.SIGTERM, deadline_s=DEADLINE_S):
        """Asks it to end; its exit status. Raises what a sanitizer found."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.ended(deadline_s)

    def ended(self, deadline_s=DEADLINE_S):
        status = self.process.wait(deadline_s)
        self.reader.join(deadline_s)
        if SANITIZER.search(self.log()):
            raise AssertionError(f"{self.name}: {self.last_words()}")
        return status

    def last_words(self):
        """What a sanitizer found, or the end of what was said."""
        log = self.log()
        found = SANITIZER.search(log)
        return log[found.start():][:3500] if found else log[-3000:]

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class World:
    """Everything that a test needs. Flags given here come after the usual ones."""

    contract, init_flags = None, ()

    def __init__(self, *flags, lease_flags=(), gateway_flags=(), redis_settings=None, init_store=True):
        if World.contract is None:
            World.contract = Contract()
        self.folder = tempfile.mkdtemp(prefix="pawl-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.daemons = []
        (pathlib.Path(self.folder) / "redis").mkdir()
        self.redis = PrivateRedis(os.path.join(self.folder, "redis"), redis_settings)
        atexit.register(self.redis.close)
        self.keys = Keys()
        self.keys_file = os.path.join(self.folder, "keys")
        self.keys.write(self.keys_file)
        self.flags = ["--redis", self.redis.url, "--keys", self.keys_file, "--listen", "127.0.0.1:0", *flags]
        if init_store:
            self.init_store()
        self.lease_daemon = self.daemon("pawl-lease", *lease_flags)
        self.gateway_daemon = self.daemon("pawl-gateway", *gateway_flags)
        self.lease = Client("lease", self.lease_daemon.url, World.contract)
        self.gateway = Client("gateway", self.gateway_daemon.url, World.contract)

    def init_store(self):
        done = run_daemon("pawl-lease", *self.flags[:2], "--init-store", "--allow-unsafe-redis", *self.init_flags)
        if done.returncode != 0:
            raise AssertionError(f"--init-store: {done}")
        self.keys.store = self.redis("HGET", "pawl:{store}", "id").decode().split(":", 1)[1]

    def digest(self, secret):
        """What the store knows of a lease_id, or of the secret of a session."""
        made = hashlib.blake2b(secret.encode(), digest_size=16, key=self.keys.store.encode()).digest()
        return base64.urlsafe_b64encode(made).decode().rstrip("=")

    def daemon(self, name, *flags):
        daemon = Daemon(name, *self.flags, *flags)
        self.daemons.append(daemon)
        return daemon

    def kill(self, daemon):
        daemon.kill()
        self.daemons.remove(daemon)

    def client(self, daemon):
        return Client(daemon.name.removeprefix("pawl-"), daemon.url, World.contract)

    def another(self, name, *flags):
        """The client of another daemon, when that is ready."""
        client = self.client(self.daemon(name, *flags))
        self.wait_ready(client)
        return client

    def raw(self, daemon=None, deadline_s=DEADLINE_S):
        daemon = daemon or self.lease_daemon
        return Raw(daemon.name.removeprefix("pawl-"), daemon.port, World.contract, deadline_s)

    def listening(self, query=""):
        """A raw client of GET /v1/events."""
        raw = self.raw()
        raw.send(f"GET /v1/events{query} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return raw

    def name(self, stem="job"):
        """A lease name that no other test uses."""
        return lease_name(stem)

    def acquire(self, name, status=201, client=None, **ask):
        """The grant, as a dictionary."""
        answer = (client or self.lease)("POST", f"/v1/leases/{name}", body=ask)
        if answer.status != status:
            raise AssertionError(f"acquire {name}: wanted {status}, got {answer}")
        return answer.json

    def granted(self, name, **ask):
        """The grant, as soon as there is one."""
        return wait_until(lambda: (answer := self.lease("POST", f"/v1/leases/{name}", body=ask)).status == 201 and answer.json, f"{name} is granted")

    def release(self, name, grant):
        answer = self.lease("DELETE", f"/v1/leases/{name}", {"Lease-Id": grant["lease_id"]})
        if answer.status != 204:
            raise AssertionError(f"release {name}: {answer}")

    def look(self, name):
        return self.lease("GET", f"/v1/leases/{name}").json

    def waiting(self, name):
        return self.look(name)["waiting"]

    def holder(self, name):
        holders = self.look(name)["holders"]
        return holders[0]["holder"] if holders else None

    def wait_ready(self, *clients):
        """Until these are, or both services."""
        wait_until(lambda: all(client.is_ready() for client in clients or (self.lease, self.gateway)), "all are ready")

    def close(self):
        """Ends everything, all daemons at once. One that does not end with 0 is a failure."""
        alive = [daemon for daemon in self.daemons if daemon.process.poll() is None]
        for daemon in alive:
            daemon.send(signal.SIGTERM)
        for daemon in alive:
            status = daemon.ended()
            if status != 0:
                raise AssertionError(f"{daemon.name} ended with {status}: {daemon.log()[-2000:]}")
        self.redis.close()
        shutil.rmtree(self.folder, ignore_errors=True)
