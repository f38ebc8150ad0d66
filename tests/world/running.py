"""pawl run as a process among others: what it started, what of that still lives, and a network that can fail."""

import os
import pathlib
import signal
import socket
import subprocess
import threading

from .cli import PAWL
from .listening import Listening
from .ports import own_port
from .process import die_with_parent
from .relay import pump, shut
from .tap import check_equal
from .wait import DEADLINE_S, wait_until


# Where there is no cgroup.
BARE = ["unshare", "--mount", "sh", "-c",
        "umount -l /sys/fs/cgroup/unified >/dev/null 2>&1; umount -l /sys/fs/cgroup >/dev/null 2>&1; exec \"$@\"", "sh"]


def works(*command):
    return subprocess.run(command, capture_output=True, check=False, timeout=DEADLINE_S).returncode == 0


def state_of(pid):
    """(state, process group, session, parent) of /proc/PID/stat; None: there is no such process."""
    try:
        rest = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return rest[0], int(rest[2]), int(rest[3]), int(rest[1])


def lives(pid):
    found = state_of(pid)
    return found is not None and found[0] not in "ZX"


def group_lives(group):
    """Whether anything of a process group runs; what is dead and not waited for does not."""
    for name in os.listdir("/proc"):
        found = state_of(name) if name.isdigit() else None
        if found is not None and found[1] == group and found[0] not in "ZX":
            return True
    return False


def children(pid):
    return [int(one) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for one in (task / "children").read_text().split()]


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


class Run:
    """pawl run under way; what the command says on its standard output comes line by line."""

    def __init__(self, cli, *words, before=(), stdin=subprocess.DEVNULL, **variables):
        self.process = subprocess.Popen([*before, PAWL, "run", *words], env=cli.environment(**variables), stdin=stdin,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        self.pid, self.err = self.process.pid, []
        self.reader = threading.Thread(target=lambda: self.err.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def number(self):
        return int(self.line())

    def dog(self):
        return wait_until(lambda: next((one for one in children(self.pid) if name_of(one) == "pawl-watchdog"), None),
                          "there is a watchdog")

    def type_line(self):
        """What a command in a pipe has waited for."""
        self.process.stdin.write("\n")
        self.process.stdin.close()

    def said(self):
        return "".join(self.err)

    def send(self, number):
        self.process.send_signal(number)

    def end(self, status, deadline_s=DEADLINE_S):
        """Its exit status must be this one; gives the rest of what the command said."""
        out = self.process.stdout.read() if status is not None else ""
        got = self.process.wait(deadline_s)
        self.reader.join(deadline_s)
        check_equal(got, status, f"exit status, having said {self.said()}")
        return out

    def kill(self):
        for one in [self.pid]:
            try:
                os.kill(one, signal.SIGCONT)
                os.kill(one, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Network(Listening):
    """In front of the lease service. mode: "pass"; "refuse" closes what comes; "hang" takes it and never answers; a
    number answers with that problem, bytes are the answer; also for connections that are open. "mute" passes requests on
    and keeps what comes back."""

    def __init__(self, daemon):
        self.to, self.mode, self.requests, self.answers = (daemon.host, daemon.port), "pass", [], []
        self.open, self.lock = set(), threading.Lock()
        self.listen(port=own_port())  # ours also while nobody listens there

    def _serve(self, near):
        try:
            if self.mode == "refuse":
                pass
            elif self.mode == "hang":
                with self.lock:
                    self.open.add(near)
                self.requests.append(near.recv(65536))
                near.recv(1)
            elif isinstance(self.mode, int):
                self._answer(near, self.mode)
            elif isinstance(self.mode, bytes):
                self.requests.append(near.recv(65536))
                near.sendall(self.mode)
            else:
                self._relay(near)
        except OSError:
            pass
        with self.lock:
            self.open.discard(near)
        near.close()

    def _answer(self, near, status):
        self.requests.append(near.recv(65536))
        code = {503: "store-unavailable", 504: "outcome-unknown"}[status]
        body = f'{{"type":"/problems/{code}","code":"{code}","status":{status},"retryable":true,"detail":"It is so."}}'.encode()
        near.sendall(f"HTTP/1.1 {status} Such\r\nContent-Type: application/problem+json\r\nConnection: close\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def _relay(self, near):
        far = socket.create_connection(self.to)
        with self.lock:
            self.open |= {near, far}
        back = threading.Thread(target=pump, args=(far, near, lambda _: self.mode != "mute", self.answers.append), daemon=True)
        back.start()
        pump(near, far, self.requests.append)
        back.join()
        with self.lock:
            self.open -= {near, far}
        far.close()

    def go(self):
        """As a service that was killed: nobody listens any more."""
        self.close()
        self.fail("refuse")

    def fail(self, mode):
        self.mode = mode
        with self.lock:
            shut(*self.open)
