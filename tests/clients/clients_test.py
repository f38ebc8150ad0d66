"""clients_test.py - what the tests of the small clients share: a world, a relay on the way to it that can break every
request in turn, and an agent: a program in the client's language that does what one line on its stdin says, and answers in
one line."""

import contextlib
import os
import pathlib
import queue
import signal
import socket
import struct
import subprocess
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

from world import BUILD, ROOT as TREE, Daemon, World, check, check_equal, check_in, given, main, of_time, skip, test, wait_until  # noqa: F401
from world.ports import nobody  # noqa: F401
from world.certificate import certificate  # noqa: F401
from world.listening import Listening
from world.process import die_with_parent
from world.relay import shut, whole_request

METHODS = (b"GET ", b"PUT ", b"POST ", b"DELETE ")
DEADLINE_S = 15


class Pass:
    """Nothing happens to it; but it may be held back on its way there or back until go()."""

    def __init__(self, there=False, back=False):
        self.there, self.back = there, back
        self.met, self.goes = threading.Event(), threading.Event()

    def go(self):
        self.goes.set()

    def hold(self):
        self.met.set()
        self.goes.wait(DEADLINE_S)


class Say:
    """Answered by the relay itself; the service never sees it."""
    stays = False

    def __init__(self, status, body=b"", kind="application/problem+json", **more):
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in more.items())
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{lines}Connection: close\r\n\r\n"
        self.data = head.encode() + body


class Raw(Say):
    """The same, with bytes that need not be HTTP. stays: it does not end with them."""

    def __init__(self, data, stays=False):  # pylint: disable=super-init-not-called
        self.data, self.stays = data, stays


class Flood:
    """An answer without an end; `sent`: what went out of it until the client had enough."""

    HEAD = b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nETag: \"e\"\r\nFencing-Mark: 1\r\n" \
        b"Transfer-Encoding: chunked\r\n\r\n"
    MOST = 400 << 20

    def __init__(self):
        self.sent = 0

    def pour(self, near):
        near.sendall(self.HEAD)
        piece = b"10000\r\n" + bytes(65536) + b"\r\n"
        while self.sent < self.MOST:
            near.sendall(piece)
            self.sent += len(piece)


TIMEOUT_MS = 800  # of one request of an agent
BEFORE, DURING, AFTER, MUTE, TRICKLE = "before", "during", "after", "mute", "trickle"


class HttpRelay(Listening):
    """In front of a service. `plan`: what becomes of the next requests, one for each; behind its end all pass.
    `seen`: all requests that came; `refused`: how many connections found nobody; `answered`: whether anything was."""

    def __init__(self, port, path=None, tls=None):
        """path: of a unix socket to listen at; tls: an SSLContext."""
        self.to, self.plan, self.seen, self.refused, self.answered, self.tls = port, [], [], 0, False, tls
        self.near = set()  # who is connected
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.listen(path, scheme="https" if tls else "http")

    def _serve(self, near):
        try:
            near = self.tls.wrap_socket(near, server_side=True) if self.tls else near
        except OSError:
            return
        try:
            far = socket.create_connection(("127.0.0.1", self.to))
        except OSError:
            self.refused += 1
            reset(near)
            return
        self.near.add(near)
        state = {"act": None}
        threading.Thread(target=self._back, args=(near, far, state), daemon=True).start()
        try:
            while piece := near.recv(65536):
                if piece.startswith(METHODS):
                    piece = whole_request(near, piece)
                    with self.lock:
                        self.seen.append(piece.decode("latin-1"))
                        state["act"] = self.plan.pop(0) if self.plan else None
                if not self._there(near, far, state["act"], piece):
                    return
        except OSError:
            pass
        self.near.discard(near)
        close(far)

    def cut(self):
        """Every connection that is open."""
        for one in list(self.near):
            self.near.discard(one)
            with contextlib.suppress(OSError):  # it has ended just now
                reset(one)

    def _there(self, near, far, act, piece):
        """False when the connection has ended."""
        if act == BEFORE:
            reset(near)
            close(far)
            return False
        if act == MUTE:
            self.ended.wait(DEADLINE_S)
        if isinstance(act, Flood):
            act.pour(near)
        if isinstance(act, Say):
            near.sendall(act.data)
            if not act.stays:
                near.shutdown(socket.SHUT_WR)  # a reset would take from it what was not read yet
            near.settimeout(DEADLINE_S)
            while near.recv(65536):
                pass
            close(near)
            close(far)
            return False
        if isinstance(act, Pass) and act.there:
            act.hold()
        far.sendall(piece)
        return True

    def _back(self, near, far, state):
        try:
            while piece := far.recv(65536):
                act, self.answered = state["act"], True
                if act == DURING:
                    near.sendall(piece[:len(piece) - 20])
                if act in (DURING, AFTER):
                    reset(near)
                    break
                if act == TRICKLE:
                    for one in piece:
                        near.sendall(bytes([one]))
                        if self.ended.wait(0.1):
                            break
                if isinstance(act, Pass) and act.back:
                    act.hold()
                near.sendall(piece)
        except OSError:
            pass
        close(near)
        close(far)

    def methods(self):
        return [head.split(" ", 1)[0] for head in self.seen]

    def begin(self, *plan):
        with self.lock:
            self.plan, self.seen, self.answered = list(plan), [], False

    def close(self):
        self.ended.set()
        super().close()


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    close(sock)


def close(sock):
    shut(sock)
    sock.close()


def environment(**more):
    """Of a client: nothing of Pawl's from outside; and a proxy that nobody listens at, so that whoever asks the
    environment for one gets nowhere."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        clean[name] = "http://127.0.0.1:9"
    clean.pop("no_proxy", None)
    clean.pop("NO_PROXY", None)
    return {**clean, **more}


class Agent:
    """`argv LEASE_URL GATEWAY_URL TIMEOUT_MS`. It reads "verb key=value..." (tabs between) and answers "= key=value...", and says
    "! key=value..." when a hold is told to be lost."""

    def __init__(self, argv, lease_url, gateway_url, timeout_ms=TIMEOUT_MS, **env):
        self.process = subprocess.Popen([*argv, lease_url, gateway_url, str(timeout_ms)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment(**env), preexec_fn=die_with_parent, start_new_session=True)
        self.answers, self.losses, self.news = queue.Queue(), [], threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            kind, *pairs = line.decode().rstrip("\n").split("\t")
            told = dict(pair.split("=", 1) for pair in pairs)
            if kind == "!":
                with self.news:
                    self.losses.append(told)
                    self.news.notify_all()
            else:
                self.answers.put(told)
        self.answers.put({"outcome": "the agent has ended"})

    def send(self, verb, **args):
        line = "\t".join([verb, *(f"{key}={value}" for key, value in args.items())])
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        return self.answers.get(timeout=DEADLINE_S)

    def ask(self, verb, **args):
        self.send(verb, **args)
        return self.answer()

    def lost(self, hold, count=1):
        """Waits until this hold was told to be lost; how often."""
        with self.news:
            if not self.news.wait_for(lambda: len(self._of(hold)) >= count, DEADLINE_S):
                raise TimeoutError(f"{hold} was not told to be lost; told: {self.losses}")
            return self._of(hold)

    def _of(self, hold):
        return [one for one in self.losses if one["hold"] == hold]

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.stdin.close()
        check_equal(self.process.wait(DEADLINE_S), 0, "the agent's status")
