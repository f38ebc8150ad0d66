"""What the tests of libpawl are made of: a real lease service and gateway, a relay in front of each that holds or cuts a
connection at a chosen byte, and a C program that uses the library as it is told."""

import atexit
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

from world import BUILD, World, wait_until  # noqa: F401
from world.listening import Listening
from world.process import die_with_parent
from world.relay import shut, whole_request

DEADLINE_S = 30
_folder = tempfile.mkdtemp(prefix="pawl-client-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)


def now_ms():
    """The library's own clock."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000


def until_ms(at_ms):
    wait_until(lambda: now_ms() >= at_ms, f"the clock shows {at_ms}")


def sanitizers():
    """The flags of the sanitizers that the library was built with, and its compiler."""
    text = (BUILD / "flags.txt").read_text(encoding="utf-8").split()
    return text[0], [one for one in text if one.startswith("-fsanitize=")]


def compile_c(source, *flags, compiler=None, library=("-lpawl",)):
    """The program that was made of it, against the library of this build."""
    own, watched = sanitizers()
    program = os.path.join(_folder, os.path.basename(str(source)).replace(".", "_"))
    subprocess.run([compiler or own, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", *watched, *flags, "-I", str(ROOT),
                    "-o", program, str(source), f"-L{BUILD}", f"-Wl,-rpath,{BUILD}", *library, "-pthread"], check=True)
    return program


# -- the network

class Plan:
    """What becomes of one connection.

    request: how many bytes of the request go through before the line is cut; None: all of it.
    answer: the same of the answer; of TLS that is an end without its word. canned: instead of asking anybody, this is the
    answer.
    before: is called when the whole head of the request has come, before it goes on.
    behind: is called when the answer has come, before it goes on; of a canned one when it has gone."""

    def __init__(self, request=None, answer=None, canned=None, before=None, behind=None):
        self.request, self.answer, self.canned = request, answer, canned
        self.before, self.behind = before, behind


CUT_AT_ONCE = Plan(request=0)
CUT_IN_REQUEST = Plan(request=40)
CUT_BEFORE_ANSWER = Plan(answer=0)
CUT_IN_ANSWER = Plan(answer=30)


def canned(status, body=b"", kind="application/json", *headers):
    lines = [f"HTTP/1.1 {status} Some", f"Content-Length: {len(body)}", f"Content-Type: {kind}", *headers]
    return Plan(canned="\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def problem(status, code, **members):
    text = "".join(f',"{name}":{value}' for name, value in members.items())
    return canned(status, f'{{"type":"/problems/{code}","code":"{code}","status":{status},"detail":"d"{text}}}'.encode(), "application/problem+json")


class Line(Listening):
    """In front of a service. Each connection carries one request and takes the next plan; without plans all goes through."""

    def __init__(self, port, path=None, tls=None):
        """path: of a unix socket to listen at; tls: an SSLContext."""
        self.to, self.plans, self.requests, self.tls = port, [], [], tls
        self.lock = threading.Condition()
        self.dark = False
        self.held = []
        self.listen(path, scheme="https" if tls else "http")

    def _serve(self, near):
        if self.port:
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.lock:
            plan = self.plans.pop(0) if self.plans else Plan()
            if self.dark:
                self.held.append(near)
                self.lock.notify_all()
                return
        try:
            near = self.tls.wrap_socket(near, server_side=True) if self.tls else near
            self._carry(near, plan)
        except OSError:
            pass
        finally:
            shut(near)  # it may be read from: closing alone would not end that
            near.close()

    def _carry(self, near, plan):
        request = b"" if plan.request == 0 and plan.before is None else whole_request(near)
        with self.lock:
            self.requests.append(request)
            self.lock.notify_all()
        if plan.before:
            plan.before()
        if plan.canned is not None:
            near.sendall(plan.canned[:plan.answer])
            if plan.behind:
                plan.behind()
            if self.tls and plan.answer is None:
                near.unwrap()
            elif not self.tls:
                near.shutdown(socket.SHUT_WR)
                near.recv(1)
            return
        if plan.request == 0:
            return
        with socket.create_connection(("127.0.0.1", self.to)) as far:
            far.sendall(request[:plan.request])
            if plan.request is not None:
                return
            if not self.tls:
                threading.Thread(target=self._watch, args=(near, far), daemon=True).start()
            self._answer(near, far, plan)

    @staticmethod
    def _watch(near, far):
        """A client that leaves, in order or with a reset, is seen by the service."""
        try:
            leaves = not near.recv(1)
        except OSError as error:
            leaves = isinstance(error, ConnectionResetError)  # and not that it was closed here
        if leaves:
            shut(far)

    @staticmethod
    def _answer(near, far, plan):
        first, went = True, 0
        while piece := far.recv(65536):
            if first and plan.behind:
                plan.behind()
            first = False
            if plan.answer is not None:
                piece = piece[:plan.answer - went]
            near.sendall(piece)
            went += len(piece)
            if plan.answer is not None and went >= plan.answer:
                return
            if Line._is_whole(piece):
                return

    @staticmethod
    def _is_whole(piece):
        """Small answers come in one piece, and the services leave the connection open."""
        head, found, body = piece.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        return bool(found) and len(body) >= (int(length.group(1)) if length else 0)

    def plan(self, *plans):
        with self.lock:
            self.plans, self.requests = list(plans), []

    def go_dark(self):
        """New connections are taken and never answered."""
        with self.lock:
            self.dark = True

    def go_on(self):
        with self.lock:
            self.dark = False
            held, self.held = self.held, []
        for one in held:
            one.close()


# -- the program

class Program:
    """Runs commands of program.c."""

    binary = None

    def __init__(self, before=(), cancel=False):
        if Program.binary is None:
            Program.binary = compile_c(ROOT / "tests/client/program.c", "-std=c11", "-D_GNU_SOURCE")
        self.cancel = os.pipe() if cancel else None
        arguments = [str(self.cancel[0])] if cancel else []
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*before, Program.binary, *arguments], stdin=subprocess.PIPE, env=clean,
                                        stdout=subprocess.PIPE, stderr=self.errors, preexec_fn=die_with_parent,
                                        pass_fds=self.cancel[:1] if cancel else ())

    def send(self, command):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline().decode()
        if not line:
            raise AssertionError(f"the program ended with {self.process.wait(DEADLINE_S)}: {self.told()}")
        return {name: value for name, _, value in (word.partition("=") for word in line.split())}

    def __call__(self, command):
        self.send(command)
        return self.answer()

    def told(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def end(self):
        """Its exit status, when it has given everything back."""
        self.process.stdin.close()
        status = self.process.wait(DEADLINE_S)
        if self.cancel:
            for one in self.cancel:
                with contextlib.suppress(OSError):
                    os.close(one)
        self.process.stdout.close()
        return status


@contextlib.contextmanager
def program(lease, gateway, *, attempts=3, timeout=5000, cancel=False, before=(), **more):
    one = Program(before, cancel)
    try:
        words = "".join(f" {name}={value}" for name, value in more.items())
        opened = one(f"open lease={lease} gateway={gateway} attempts={attempts} timeout={timeout}{words}")
        if opened["outcome"] != "OK":
            raise AssertionError(f"open: {opened}")
        yield one
        status = one.end()
        if status != 0:
            raise AssertionError(f"the program ended with {status}: {one.told()[-3000:]}")
    finally:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
