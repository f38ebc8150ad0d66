"""The processes of one drill: a private redis-server, lease services, a gateway, and what happens to them from outside.

  FOLDER/appendonlydir/   Redis' data      FOLDER/copy-NAME/   copies of it, which only a Redis that does not run is given back
  FOLDER/lease-0/         state directory of lease service 0, and so on; FOLDER/gateway/ the gateway's
  FOLDER/keys, redis.log, lease-0.log ...  the key file; all that a process said, over its restarts

Whatever does not come about is an exception, Wrong where there is more to tell. Only the main thread starts processes."""

import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pycurl

from load import REQUEST_S
from world import Client, Daemon, Keys, run_daemon, wait_until
from world.redis import PrivateRedis

READY_MS, GRANT_MS, ADMIT_MS, REFUSE_MS = 20000, 15000, 15000, 5000
RUN_S = 30
TAIL_BYTES = 1 << 20
SOCKET_PATH_MAX = 107  # unix(7)


class Wrong(Exception):
    """Something that must hold did not, or a process did not do what it must."""


class Cannot(Exception):
    """This machine cannot play it. Never a success."""


class Interrupted(BaseException):
    """By a signal."""


def wait_for(event, limit_ms, otherwise, again_ms=10):
    """What event() gives, as soon as that is true; otherwise() is the sentence that is told when it never is."""
    try:
        return wait_until(event, "", limit_ms / 1000, again_ms)
    except TimeoutError:
        raise Wrong(otherwise()) from None


def wait_ms(ms):
    """Lets time pass."""
    time.sleep(ms / 1000)


def run(*command, text=""):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=RUN_S,
                          check=False)
    if done.returncode:
        raise Wrong(f"{' '.join(command[:2])}: exit status {done.returncode}; it said: {done.stdout[-600:]}")


def delete(path):
    """Everything in a directory, and the directory; a service that runs may put files into it meanwhile."""
    def is_gone():
        shutil.rmtree(path, ignore_errors=True)
        return not os.path.exists(path)
    wait_for(is_gone, REFUSE_MS, lambda: f"{path} cannot be deleted")


NUMBERS = itertools.count(1)


class Service:
    """Its port is the kernel's choice, new at each start: clients take `http` anew each time. Its address is its own: a port that
    it has left may be another service's by the time that a client asks. before, environment and url may be changed before the
    next start; url None: that of the stage's one Redis."""

    def __init__(self, stage, program, name, flags):
        self.stage, self.program, self.name, self.flags = stage, program, name, flags
        self.state = self.seen_at = os.path.join(stage.folder, name)  # for the service; for us
        self.before, self.environment, self.url = (), {}, None
        self.address = f"127.{1 + os.getpid() // 256 % 254}.{os.getpid() % 256}.{next(NUMBERS)}"
        self.daemon, self.http, self.runs_before = None, None, []

    def start(self):
        """Returns when it listens; that it is ready is another question."""
        stage = self.stage
        daemon = Daemon(self.program, "--listen", f"{self.address}:0", "--redis", self.url or stage.redis.url, "--keys", stage.keys,
                        "--log-format", "text", "--state-dir", self.state, *self.flags, environment=self.environment, before=self.before)
        self.runs_before.append(daemon)
        self.daemon, self.http = daemon, Client(self.name, daemon.url, None, REQUEST_S, fresh=True)

    def runs(self):
        return self.daemon.process.poll() is None

    def kill(self):
        self.daemon.kill()

    def end(self):
        self.daemon.end()

    def stop(self):
        """Returns when it stands still."""
        self.daemon.send(signal.SIGSTOP)
        wait_for(lambda: os.waitid(os.P_PID, self.daemon.process.pid, os.WSTOPPED | os.WNOHANG), REFUSE_MS,
                 lambda: f"{self.name} did not stand still")

    def go_on(self):
        self.daemon.send(signal.SIGCONT)

    # -- what it says

    def readyz(self):
        """(status, body); 0: no answer."""
        try:
            answer = self.http("GET", "/readyz", held=False)
            return answer.status, answer.body.decode(errors="replace")
        except pycurl.error:
            return 0, ""

    def _wait_readyz(self, fits, what, limit_ms):
        wait_for(lambda: fits(*self.readyz()), limit_ms,
                 lambda: f"/readyz of {self.name} did not come to {what} within {limit_ms} ms; it says: {self.readyz()}")

    def wait_ready(self, limit_ms=READY_MS):
        self._wait_readyz(lambda status, _: status == 200, "200", limit_ms)

    def wait_unready(self, text, limit_ms):
        """Until its answer is another and has this text in it: "store-not-ours"."""
        self._wait_readyz(lambda status, body: status not in (0, 200) and text in body, text, limit_ms)

    def read_state(self):
        """What its state directory has recorded."""
        return State(self.seen_at)

    def run_store(self, *words):
        """`pawl store` as an operator would run it on its host: whether it was done, and what it said."""
        done = run_daemon("pawl", "store", *words, "--redis", self.stage.redis.url, "--state-dir", self.state, deadline_s=RUN_S)
        return done.returncode == 0, done.stdout + done.stderr

    def recover(self):
        done, said = self.run_store("recover")
        if not done:
            raise Wrong(f"pawl store recover: {said[-600:]}")

    def insist(self, *words):
        """The same again and again until it is taken: for 10 s a member that died counts as one that lives."""
        said = [""]

        def is_taken():
            done, said[0] = self.run_store(*words)
            return done
        wait_for(is_taken, 25000, lambda: f"pawl store {words[0]} is refused: {said[0][-500:]}", again_ms=500)


class State:
    """The high-water file (shared/member/state_file.h)."""

    def __init__(self, folder):
        path = pathlib.Path(folder) / "high-water"
        lines = [line.split(" ") for line in path.read_text(encoding="ascii").splitlines()]
        if lines[0][:2] != ["pawl", "high-water"] or lines[-1][0] != "checksum":
            raise Wrong(f"{path} cannot be read: {lines}")
        self.member = next(line[1] for line in lines if line[0] == "id")
        self.floor = next(int(line[1]) for line in lines if line[0] == "floor")
        self.members = [line[2] for line in lines if line[0] == "member"]


class Stage:
    """token_block and flags are for all lease services, flags for the gateway, too; redis_environment is of redis-server.
    gateways are those that clients ask."""

    init_flags = ()

    def __init__(self, folder, services=2, token_block=1000, appendfsync="always", flags=(), redis_environment=None):
        self.folder, self.flags, self.token_block = folder, list(flags), ["--token-block", str(token_block)]
        self.appendfsync, self.load_truncated, self.torn = appendfsync, "no", 0
        self.data, self.redis = os.path.join(folder, "appendonlydir"), None
        self.keys = os.path.join(folder, "keys")
        self.leases = [Service(self, "pawl-lease", f"lease-{number}", [*self.token_block, *flags]) for number in range(services)]
        self.gateway = Service(self, "pawl-gateway", "gateway", self.flags)
        self.services, self.gateways = [*self.leases, self.gateway], [self.gateway]
        if len(os.path.join(folder, "r.sock")) > SOCKET_PATH_MAX:
            raise Wrong(f"{folder} is too long for the address of a socket: name a shorter directory")
        Keys("drill").write(self.keys)
        self.redis_environment = redis_environment

    def open(self):
        """Redis, the store, the services and the gateway, all ready."""
        self.open_store()
        for service in [*self.leases, self.gateway]:
            service.start()
            service.wait_ready()

    def open_store(self):
        self.redis = PrivateRedis(self.folder, self.settings(), self.redis_environment)
        self.init_store(self.leases[0].state)

    def close(self):
        for service in self.services:
            if service.daemon is not None:
                service.kill()
            with open(os.path.join(self.folder, service.name + ".log"), "w", encoding="utf-8") as file:
                file.write("".join(daemon.log() + "\n" for daemon in service.runs_before))
        if self.redis is not None:
            self.kill_redis()

    def wait_all_ready(self, limit_ms=READY_MS):
        for service in [*self.leases, self.gateway]:
            if service.runs() or service is self.gateway:
                service.wait_ready(limit_ms)

    def init_store(self, state):
        done = run_daemon("pawl-lease", "--redis", self.redis.url, "--init-store", "--state-dir", state, *self.token_block,
                          *self.flags, *self.init_flags, deadline_s=RUN_S)
        if done.returncode:
            raise Wrong(f"pawl-lease --init-store: {done.stderr[-600:]}")

    # -- Redis

    def settings(self):
        # The last: so that loading stays fast, and kills hit a rewrite now and then.
        return ["--save", "", "--appendonly", "yes", "--appendfsync", self.appendfsync, "--aof-load-truncated", self.load_truncated,
                "--auto-aof-rewrite-min-size", "4mb"]

    def kill_redis(self):
        if self.redis.process.poll() is None:
            os.killpg(self.redis.process.pid, signal.SIGKILL)  # it may have a child that rewrites its file
        self.redis.kill()

    def start_redis(self):
        """False: it has refused to."""
        try:
            self.redis.start(self.settings())
        except RuntimeError:
            return False
        return True

    def return_redis(self):
        """After a kill, as an operator would do it: when Redis refuses to start because the kill came in the middle of a write
        to its file, redis-check-aof takes the torn command away, which nobody was told of; counted in torn."""
        if self.start_redis():
            return
        self.fix_aof()
        self.torn += 1
        if not self.start_redis():
            log = pathlib.Path(self.folder, "redis.log").read_text(encoding="utf-8", errors="replace")
            raise Wrong(f"redis did not start; its last words: {log[-400:]}")

    def _must_rest(self):
        if self.redis.process.poll() is None:
            raise Wrong("Redis runs: its data cannot be changed")

    def copy(self, name):
        return os.path.join(self.folder, f"copy-{name}")

    def copy_data(self, name):
        shutil.rmtree(self.copy(name), ignore_errors=True)
        shutil.copytree(self.data, self.copy(name))

    def put_back(self, name):
        self._must_rest()
        shutil.rmtree(self.data)
        shutil.copytree(self.copy(name), self.data)

    # -- its append-only file

    def aof(self):
        """(path, size) of the newest file of increments, by the manifest, which has them in the order in which they were begun."""
        manifest = pathlib.Path(self.data, "appendonly.aof.manifest").read_text(encoding="ascii")
        names = [words[1] for words in map(str.split, manifest.splitlines()) if words[0] == "file" and words[-1] == "i"]
        path = os.path.join(self.data, names[-1])
        return path, os.stat(path).st_size

    def wait_aof(self, text, limit_ms=ADMIT_MS):
        """Until this text is in its last bytes; aof() of then."""
        def has():
            path, size = self.aof()
            with open(path, "rb") as file:
                file.seek(max(0, size - TAIL_BYTES))
                return (path, size) if text.encode() in file.read(min(size, TAIL_BYTES)) else None
        return wait_for(has, limit_ms, lambda: f"Redis did not write its file within {limit_ms} ms")

    def cut_aof(self, path, size):
        """As a machine that dies does: everything behind size is gone."""
        self._must_rest()
        os.truncate(path, size)

    def fix_aof(self):
        run("redis-check-aof", "--fix", os.path.join(self.data, "appendonly.aof.manifest"), text="y\n")

    def rewrite_aof(self):
        """Now, so that it is short."""
        def is_done():
            told = self.redis("INFO", "persistence")
            return b"aof_rewrite_in_progress:0" in told and b"aof_rewrite_scheduled:0" in told
        self.redis("BGREWRITEAOF")
        wait_for(is_done, ADMIT_MS, lambda: "Redis did not rewrite its file in time")
