"""pawl as a person or a script types it."""

import os
import pty
import re
import select
import subprocess
import time

from .listening import Listening
from .process import die_with_parent
from .tap import check_equal
from .wait import DEADLINE_S
from .world import BUILD

PAWL = str(BUILD / "pawl")


class Cli:
    """Runs pawl against the services of a world; nothing of Pawl's from outside gets in."""

    def __init__(self, world):
        self.world = world

    def environment(self, **more):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith("PAWL_") and not name.lower().endswith("_proxy")}
        return {**clean, "PAWL_LEASE_URL": self.world.lease.url, "PAWL_GATEWAY_URL": self.world.gateway.url, **more}

    def __call__(self, *words, status=0, stdin="", **variables):
        """Not on a terminal; its exit status must be this one. What it said is text, and bytes under .raw."""
        done = subprocess.run([PAWL, *words], env=self.environment(**variables), input=stdin.encode() if isinstance(stdin, str) else stdin,
                              capture_output=True, timeout=DEADLINE_S, check=False)
        done.raw, done.stdout, done.stderr = done.stdout, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        check_equal(done.returncode, status, f"exit status of {words}: {done.stdout}{done.stderr}")
        return done

    def unread(self, *words, status=1, **variables):
        """Its output cannot be written: its exit status must be this one; what it says."""
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PAWL, *words], env=self.environment(**variables), stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False)
        check_equal(done.returncode, status, f"exit status of {words}: {done.stderr}")
        return done.stderr

    def shell(self, script, **variables):
        """What sh makes of it: (its exit status, its output, its errors)."""
        done = subprocess.run(["sh", "-c", script], env=self.environment(**variables), capture_output=True, text=True, timeout=DEADLINE_S,
                              check=False)
        return done.returncode, done.stdout, done.stderr

    def start(self, *words, **variables):
        return subprocess.Popen([PAWL, *words], env=self.environment(**variables), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)

    def shown(self, *words):
        """(what it shows on a terminal, what it says to standard error, which is none); its exit status must be 0."""
        parent, child = pty.openpty()
        process = subprocess.Popen([PAWL, *words], env=self.environment(), stdin=subprocess.DEVNULL, stdout=child,
                                   stderr=subprocess.PIPE, preexec_fn=die_with_parent)
        os.close(child)
        text = b""
        try:
            while more := os.read(parent, 65536):
                text += more
        except OSError:  # EIO: the other side is closed
            pass
        os.close(parent)
        error = process.communicate(timeout=DEADLINE_S)[1].decode()
        check_equal(process.returncode, 0, f"exit status of {words}: {text}{error}")
        return text.decode().replace("\r\n", "\n"), error

    def on_terminal(self, *words, answers=(), status=0, **variables):
        """On a terminal of its own: what is shown there. answers: (text to wait for, what is typed
        then, or what gives that), in turn."""
        parent, child = pty.openpty()
        process = subprocess.Popen([PAWL, *words], env=self.environment(**variables), stdin=child, stdout=child, stderr=child,
                                   start_new_session=True)
        os.close(child)
        text, seen, answers, end = "", 0, list(answers), time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            if answers and answers[0][0] in text[seen:]:
                seen = len(text)
                _, answer = answers.pop(0)
                os.write(parent, ((answer() if callable(answer) else answer) + "\n").encode())
            if not select.select([parent], [], [], 0.1)[0]:
                continue
            try:
                more = os.read(parent, 65536)
            except OSError:  # EIO: the other side is closed
                break
            text += more.decode(errors="replace").replace("\r\n", "\n")
        os.close(parent)
        check_equal(process.wait(DEADLINE_S), status, f"exit status of {words}: {text}")
        return text


class Server(Listening):
    """In the place of a service: answers each request, which it keeps, with what answer(request) gives; None closes without
    a word."""

    def __init__(self, answer):
        self.answer, self.requests = answer, []
        self.listen()

    def _serve(self, connection):
        with connection:
            connection.settimeout(DEADLINE_S)
            request = b""
            while not self._whole(request):
                more = connection.recv(65536)
                if not more:
                    break
                request += more
            self.requests.append(request)
            answer = self.answer(request)
            if answer is not None:
                connection.sendall(answer)

    @staticmethod
    def _whole(request):
        head, end, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        return bool(end) and len(body) >= (int(length.group(1)) if length else 0)


def response(status, body=b"", *headers):
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def typed(words, answer, environment):
    """(exit status, all output) of pawl with its input from a terminal in which somebody types the answer."""
    primary, secondary = pty.openpty()
    process = subprocess.Popen([PAWL, *words], env=environment, stdin=secondary, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               preexec_fn=die_with_parent)
    os.close(secondary)
    os.write(primary, answer)
    said = process.communicate(timeout=DEADLINE_S)[0].decode()
    os.close(primary)
    return process.returncode, said
