"""A relay in front of a private Redis, which can hold back what passes, or cut the line, at a chosen moment."""

import functools
import os
import re
import socket
import subprocess
import threading

from .listening import Listening
from .wait import DEADLINE_S

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TO_REDIS, FROM_REDIS = "to redis", "from redis"


def pump(source, sink, meet=None, met=None):
    """Carries what comes from source to sink until one of them ends, and then ends both. meet(piece) is called before a
    piece goes on, and keeps it when it gives False; met(piece) when it has."""
    try:
        while piece := source.recv(65536):
            if meet is not None and meet(piece) is False:
                continue
            sink.sendall(piece)
            if met is not None:
                met(piece)
    except OSError:
        pass
    shut(source, sink)


def shut(*sockets):
    """Nothing passes them any more; whoever reads from one, or is its other side, learns that."""
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:  # it is closed already
            pass


def whole_request(source, data=b""):
    """The next request, with its body, of which this has come already; less when it ends before."""
    while b"\r\n\r\n" not in data:
        piece = source.recv(65536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    missing = int(length[1]) - len(body) if length else 0
    while missing > 0 and (piece := source.recv(missing)):
        data, missing = data + piece, missing - len(piece)
    return data


def function_of(script):
    """What a service asks Redis to run: claim, for example, as bytes to look for on the line."""
    whole = subprocess.run([os.path.join(ROOT, "deploy/build/scripts.py"), "library"], check=True, capture_output=True, cwd=ROOT).stdout
    return whole.split(b"\n")[0].split(b"pawl_")[1] + b"_" + script.encode()


class Hold:
    """The first piece that fits, and all behind it on its connection, waits until go() or until the line is cut."""

    def __init__(self, direction, pattern):
        self.direction, self.pattern = direction, pattern
        self._met, self._go = threading.Event(), threading.Event()

    def wait_met(self, deadline_s=DEADLINE_S):
        if not self._met.wait(deadline_s):
            raise TimeoutError(f"{self.pattern!r} did not pass {self.direction} within {deadline_s} s")

    def go(self):
        self._go.set()

    def meet(self, direction, piece):
        if direction == self.direction and not self._met.is_set() and self.pattern in piece:
            self._met.set()
            self._go.wait()


class Relay(Listening):
    """Listens beside Redis' own socket; as good as it for a service. A pattern must not be cut by the reads of the
    relay: it looks at each piece as it comes, which for Redis on one machine is at least a whole command."""

    def __init__(self, redis, name=".relay", to=None):
        """to: another place than Redis' own, with host and port"""
        self.to, self.path = to or redis.path, redis.path + name
        self.lock, self.holds, self.pairs, self.is_parted = threading.Lock(), [], [], False
        self.listen(self.path)
        self.url = "unix://" + self.path

    def _serve(self, near):
        is_local = isinstance(self.to, str)
        far = socket.socket(socket.AF_UNIX if is_local else socket.AF_INET)
        try:
            if self.is_parted:
                raise OSError
            far.connect(self.to)
        except OSError:
            near.close()
            return
        with self.lock:
            self.pairs.append((near, far))
        for source, sink, direction in ((near, far, TO_REDIS), (far, near, FROM_REDIS)):
            threading.Thread(target=pump, args=(source, sink, functools.partial(self._meet, direction)), daemon=True).start()

    def _meet(self, direction, piece):
        with self.lock:
            holds = list(self.holds)
        for hold in holds:
            hold.meet(direction, piece)
        return not self.is_parted

    def part(self):
        """Nothing passes any more, and nobody is told."""
        self.is_parted = True

    def join(self):
        """New connections are as good as ever; what was sent on the old ones is lost."""
        self.is_parted = False
        self.cut()

    def hold(self, direction, pattern):
        """From now on."""
        hold = Hold(direction, pattern)
        with self.lock:
            self.holds.append(hold)
        return hold

    def cut(self):
        """Ends all connections that stand; new ones are taken. What is held back is lost."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
            holds, self.holds = self.holds, []
        shut(*sum(pairs, ()))
        for hold in holds:
            hold.go()

    def close(self):
        super().close()
        os.unlink(self.path)
        self.cut()
