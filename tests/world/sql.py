"""What the two databases have in common: a user who is not root, a folder for him, and a command-line client that is
spoken to over pipes, so that a statement can be left waiting."""

import json
import os
import pwd
import select
import shutil
import stat
import subprocess
import tempfile
import time

from .process import die_with_parent
from .signature import read_token, signed_token
from .tap import skip
from .wait import DEADLINE_S, wait_until


class SqlError(Exception):
    """What the server refused: its SQLSTATE, and all that it said."""

    def __init__(self, state, message, detail=None, hint=None):
        super().__init__(f"{state}: {message}")
        self.state, self.message, self.hint = state, message, hint
        self.detail = json.loads(detail) if detail and detail.startswith("{") else detail


def user_for_server(name):
    """Database servers refuse to run as root. Keywords for subprocess: the package's own user, or who we are."""
    if os.geteuid() != 0:
        return {}
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        skip(f"there is no user {name}: the server's package is not installed")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def folder_for_server(prefix, who):
    """A new folder that belongs to who; the way to it is opened for him where a folder is ours alone."""
    folder = tempfile.mkdtemp(prefix=prefix)
    if who:
        above = os.path.dirname(folder)
        while above != "/" and not os.stat(above).st_mode & stat.S_IXOTH:
            os.chmod(above, os.stat(above).st_mode | stat.S_IXOTH)
            above = os.path.dirname(above)
        os.chown(folder, who["user"], who["group"])
    return folder


def quoted(text):
    """A literal of standard SQL; what is quoted here has no backslash."""
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


class CommandLine:
    """A client program that reads statements and says them and their end on one pipe."""

    def __init__(self, argv, end_of):
        """end_of(word): the line that makes the client print word."""
        self.end_of, self.count, self.rest = end_of, 0, b""
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        preexec_fn=die_with_parent, start_new_session=True)

    def send(self, statement):
        self.count += 1
        self.process.stdin.write(f"{statement}\n{self.end_of(self._word())}\n".encode())
        self.process.stdin.flush()

    def _word(self):
        return f"end-of-{self.count}"

    def answer(self, deadline_s=DEADLINE_S):
        """The lines that the last statement gave; waits for its end."""
        end = time.monotonic() + deadline_s
        mark = self._word().encode() + b"\n"
        poll = select.poll()
        poll.register(self.process.stdout, select.POLLIN)
        while not (self.rest.startswith(mark) or b"\n" + mark in self.rest):
            if not poll.poll(max(0, (end - time.monotonic()) * 1000)):
                raise TimeoutError(f"the statement has not ended; so far: {self.rest[-500:]!r}")
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                raise ConnectionError(f"the client ended: {self.rest[-500:]!r}")
            self.rest += more
        told, self.rest = self.rest.removesuffix(mark), b""
        return told.decode(errors="backslashreplace").splitlines()

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(DEADLINE_S)
        finally:
            self.process.kill()
            self.process.stdout.close()
            self.process.wait()


class SqlServer:
    """A private server in a folder of its own; who it runs as, folder, log and end_by, the signal, are those of the database."""

    def start(self, argv, deadline_s=DEADLINE_S):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                                            preexec_fn=die_with_parent, start_new_session=True, **self.who)
        wait_until(self._answers, f"{argv[0]} answers (see {self.log})", deadline_s)

    def _answers(self):
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                raise RuntimeError(f"the server ended: {log.read()[-2000:]}")
        return subprocess.run(self.ping(), capture_output=True, check=False).returncode == 0

    def run(self, argv, text=None):
        done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=90, check=False, cwd=self.folder,
                              env={**os.environ, "TMPDIR": self.folder}, preexec_fn=die_with_parent, **self.who)
        if done.returncode != 0:
            raise RuntimeError(f"{argv[0]}: {(done.stdout + done.stderr)[-1500:]}")
        return done.stdout

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(self.end_by)
            self.process.wait(DEADLINE_S)
        shutil.rmtree(self.folder, ignore_errors=True)


class SqlSession:
    """One connection; start(), answer() and line are those of the server."""

    def __call__(self, statement):
        self.start(statement)
        return self.answer()

    def value(self, statement):
        return self(statement)[0][0]

    def error(self, statement):
        """The error that the statement must end with."""
        try:
            rows = self(statement)
        except SqlError as error:
            return error
        raise AssertionError(f"{statement[:200]} went through: {rows}")

    def close(self):
        self.line.close()


def texts_that_are_no_token(keys, lease):
    """Signed with the right key k1 over what is in front of ;sig=, and still not the one canonical text."""
    good = signed_token(keys, lease, 34, 1)
    signed = read_token(good)["signed"]

    def resigned(text, kid="k1"):
        return f"{text};sig=:{keys.mac(kid, text)}:"
    changes = [("34;", "034;"), ("34;", "0;"), ("34;", "-34;"), ("34;", "+34;"), ("34;", "34.0;"), ("34;", " 34;"), ("34;", "34 ;"),
               ("34;", "1000000000000000;"), ("34;", ";"), ("34;", "3４;"), (";lease", "; lease"), (";lease", ";Lease"), (";mode=", "; mode="),
               ("exclusive", "Exclusive"), ("exclusive", '"exclusive"'), ("exclusive", "any"), ("exclusive", ""), (";mode=exclusive", ""),
               ("epoch=1", "epoch=0"), ("epoch=1", "epoch=01"), ("epoch=1", "epoch=1000000000000000"), ("epoch=1", "epoch=-1"), (";epoch=1", ""),
               (";epoch=1", ";epoch=1;epoch=1"), ("AAAAAAAAAAAA", "A" * 11), ("AAAAAAAAAAAA", "A" * 17), ("AAAAAAAAAAAA", "AAAAAAAAAAA."),
               (';hold="AAAAAAAAAAAA"', ""), ('"k1"', '""'), ('"k1"', '"' + "k" * 33 + '"'), ('"k1"', "k1"), ('"k1"', '"k/1"'), (';kid="k1"', ""),
               (";lease=", ";a=1;lease="), (f'"{lease}"', '""'), (f'"{lease}"', '"-a"'), (f'"{lease}"', '"' + "n" * 129 + '"'),
               (f'"{lease}"', lease), (f';store="{keys.store}"', ""), (f';store="{keys.store}"', ';store=""'), (keys.store, keys.store + "s"), (keys.store, "s" * 23),
               (keys.store, "s" * 23 + "."), (";store=", ";Store="), (";store=", f';store="{keys.store}";store='), (f'"{lease}"', '"a/b"'), (f'"{lease}"', '"ä"'), (f'"{lease}"', '"a\\"b"')]
    texts = [resigned(signed.replace(old, new, 1)) for old, new in changes]
    named, mode = f';lease="{lease}"', ";mode=exclusive"
    texts.append(resigned(signed.replace(named, "").replace(mode, mode + named)))
    texts.append(resigned(signed.replace(named, "").replace(mode, named + mode)))  # its store in front of its lease
    sig = good[good.index(";sig="):]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    spare = alphabet[alphabet.index(sig[-3]) + 1]
    texts += ["", " ", "34", good + " ", " " + good, good + "\n", "\n" + good, good + ";", good + "," + good, good + good, signed, signed + ";sig=::",
              good[:-1], good[:-2], good[:-2] + ":", signed + sig.replace("=:", ":").replace(";sig:", ";sig=:"), signed + sig[:-3] + spare + "=:",
              signed + sig[:-2] + "==:", signed + sig.replace("sig=:", "sig="), signed + ";" + sig, good + ";x=1",
              signed + sig[:10] + "-" + sig[11:], signed + sig[:10] + " " + sig[11:], good.upper(), good + "x" * 2000, good.replace(";", "\n;", 1)]
    return texts
