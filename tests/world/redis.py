"""A private redis-server on a unix socket, and just enough of a client to look into it."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile

from .process import die_with_parent
from .wait import DEADLINE_S, wait_until

DURABLE = ["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--aof-load-truncated", "no"]
# All of Pawl's content at this moment; and put back, in the place of what is there.
SAVE = """local saved = {}
for _, key in ipairs(redis.call('KEYS', 'pawl:*')) do
    saved[#saved + 1] = key
    saved[#saved + 1] = redis.call('DUMP', key)
end
return saved"""
PUT_BACK = """for _, key in ipairs(redis.call('KEYS', 'pawl:*')) do
    redis.call('DEL', key)
end
for i = 1, #ARGV, 2 do
    redis.call('RESTORE', ARGV[i], 0, ARGV[i + 1])
end"""


class RedisError(Exception):
    pass


class Connection:
    """RESP2, one command at a time."""

    def __init__(self, path, timeout_s=DEADLINE_S):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout_s)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def __call__(self, *words):
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        return self._reply()

    def _reply(self):
        said = self._part()
        if isinstance(said, RedisError):
            raise said
        return said

    def _part(self):
        """In a list an error is one reply among others."""
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("redis closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.file.read(size + 2)[:-2]
        if kind == b":":
            return int(rest)
        if kind == b"*":
            return None if int(rest) < 0 else [self._part() for _ in range(int(rest))]
        if kind == b"+":
            return rest.decode()
        return RedisError(rest.decode() if kind == b"-" else f"an unexpected reply: {line!r}")


class PrivateRedis:
    """Keeps its data in folder, so that it can be killed and started again on them."""

    def __init__(self, folder, settings=None, environment=None):
        self.folder, self.environment = folder, {**os.environ, **(environment or {})}
        self.path = os.path.join(folder, "r.sock")
        self.url = "unix://" + self.path
        self.process = None
        self.connection = None
        self.start(settings)

    def start(self, settings=None):
        log = os.path.join(self.folder, "redis.log")
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.path, "--dir", self.folder, "--logfile", log]
            + (DURABLE if settings is None else settings),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment,
            preexec_fn=die_with_parent, start_new_session=True)
        wait_until(self._answers, f"redis-server answers (see {log})")
        self.connection = Connection(self.path)

    def _answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"redis-server ended with {self.process.returncode}")
        try:
            connection = Connection(self.path)
            pong = connection("PING") == "PONG"
            # Loading its file it would say -LOADING; the first rewrite of the file may still be pending.
            pending = b"aof_rewrite_in_progress:1" in connection("INFO", "persistence")
            connection.close()
            return pong and not pending
        except (OSError, RedisError):
            return False

    def __call__(self, *words):
        return self.connection(*words)

    def kill(self):
        """As if the machine had lost power; but what is on disk stays."""
        self.process.kill()
        self.process.wait()
        self.connection.close()

    def restart(self, change=lambda data: None):
        """change(data): of the folder with its content, while it does not run."""
        self.kill()
        change(os.path.join(self.folder, "appendonlydir"))
        self.start()

    def keep(self):
        """A copy of what its file has now; it is restarted."""
        kept = os.path.join(tempfile.mkdtemp(prefix="kept-", dir=self.folder), "data")
        self.restart(lambda data: shutil.copytree(data, kept))
        return kept

    def set_back(self, kept):
        def change(data):
            shutil.rmtree(data)
            shutil.copytree(kept, data)
        self.restart(change)

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.connection is not None:
            self.connection.close()
