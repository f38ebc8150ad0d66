"""Two clients: libcurl, which does what clients do, and a raw socket, which does what no client should."""

import contextlib
import io
import itertools
import json
import re
import socket
import threading
import time

import pycurl

from .wait import DEADLINE_S


class Message:
    """What has headers."""

    def header(self, name):
        """The only one of this name, or None."""
        found = [value for one, value in self.headers if one.lower() == name.lower()]
        if len(found) > 1:
            raise AssertionError(f"the header {name} came {len(found)} times: {found}")
        return found[0] if found else None


class Answer(Message):
    def __init__(self, status, headers, body, took_s=0.0):
        self.status, self.headers, self.body, self.took_s = status, headers, body, took_s

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """Of the problem; None when it is none."""
        problem = (self.header("Content-Type") or "").startswith("application/problem+json")
        return self.json["code"] if problem and self.body else None

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:300]!r}"


def _header_lines(headers):
    # libcurl: "Name;" sends an empty value, "Name:" none at all.
    lines = [f"{name}: {value}" if value else f"{name};" for name, value in headers]
    given = {name.lower() for name, _ in headers}
    return lines + [f"{name}:" for name in ("Expect", "Content-Type", "Accept", "User-Agent") if name.lower() not in given]


class Client:
    """libcurl, one connection for each thread. Every answer is held against the contract. fresh: each request has a connection of
    its own, so that libcurl sends nothing twice, as it does on one that the server has closed."""

    def __init__(self, service, url, contract, deadline_s=DEADLINE_S, fresh=False):
        self.service, self.url, self.contract = service, url, contract
        self.deadline_s, self.fresh = deadline_s, fresh
        self.own = threading.local()

    def _handle(self):
        if not hasattr(self.own, "curl"):
            self.own.curl = pycurl.Curl()
        curl = self.own.curl
        curl.reset()
        return curl

    def __call__(self, method, target, headers=(), body=None, held=True):
        """headers: dict or list of pairs. body: bytes, or anything else for JSON (with its Content-Type)."""
        headers = list(headers.items()) if isinstance(headers, dict) else list(headers)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            if not any(name.lower() == "content-type" for name, _ in headers):
                headers.append(("Content-Type", "application/json"))
        answer = self._perform(method, target, headers, body)
        if held:
            self.contract.hold(self.service, method, target, headers, answer)
        return answer

    def is_ready(self):
        return self("GET", "/readyz", held=False).status == 200

    def ready(self):
        """What /readyz says when it is 200; else {}."""
        answer = self("GET", "/readyz")
        return answer.json if answer.status == 200 else {}

    def metric(self, series):
        """The sum of what is told of it, or of its variants."""
        text = self("GET", "/metrics", held=False).body.decode()
        return sum(float(value) for value in re.findall(rf"^{re.escape(series)}(?:\{{.*\}})? (\S+)$", text, re.M))

    def roaming(self):
        """The same at a service with --trusted-proxy 127.0.0.1: each request is said to come from an address of its own."""
        return Roaming(self.service, self.url, self.contract, self.deadline_s, self.fresh)

    def _perform(self, method, target, headers, body):
        curl, received, lines = self._handle(), io.BytesIO(), []
        curl.setopt(pycurl.URL, self.url + target)
        curl.setopt(pycurl.PATH_AS_IS, 1)
        curl.setopt(pycurl.NOPROXY, "*")
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.TIMEOUT_MS, self.deadline_s * 1000)
        curl.setopt(pycurl.FORBID_REUSE, self.fresh)
        curl.setopt(pycurl.HTTPHEADER, [line.encode() for line in _header_lines(headers)])
        curl.setopt(pycurl.HEADERFUNCTION, lines.append)
        curl.setopt(pycurl.WRITEDATA, received)
        if method == "HEAD":
            curl.setopt(pycurl.NOBODY, 1)
        elif body is not None:
            curl.setopt(pycurl.POST, 1)
            curl.setopt(pycurl.POSTFIELDS, body)
        curl.setopt(pycurl.CUSTOMREQUEST, method)
        begun = time.monotonic()
        curl.perform()
        status = curl.getinfo(pycurl.RESPONSE_CODE)
        return Answer(status, _last_headers(lines), received.getvalue(), time.monotonic() - begun)


class Roaming(Client):
    count = itertools.count()

    def _perform(self, method, target, headers, body):
        number = next(self.count)
        return super()._perform(method, target, [*headers, ("X-Forwarded-For", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")], body)


def _last_headers(lines):
    """Of the last answer: interim ones (100) come before it."""
    headers = []
    for line in lines:
        text = line.decode("latin-1").rstrip("\r\n")
        if text.startswith("HTTP/"):
            headers = []
        elif ":" in text:
            name, _, value = text.partition(":")
            headers.append((name, value.strip()))
    return headers


class Closed(Exception):
    """The server closed the connection instead of answering."""


class Raw:
    """A socket. What is sent is exactly what the test says."""

    def __init__(self, service, port, contract, deadline_s=DEADLINE_S):
        self.service, self.contract = service, contract
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=deadline_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def send(self, data):
        """False when the server has closed already: then its answer, if any, is still to be read."""
        try:
            self.socket.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def _more(self):
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError as error:
            raise Closed("connection reset") from error
        if not data:
            raise Closed(f"closed after {self.buffer!r}")
        self.buffer += data

    def until(self, what):
        """Reads until this has come; all that is there."""
        while what not in self.buffer:
            self._more()
        return self.buffer

    def rest(self):
        """All that still comes, until the end."""
        with contextlib.suppress(Closed):
            while True:
                self._more()
        return self.buffer

    def take(self, count):
        """The next so many bytes."""
        while len(self.buffer) < count:
            self._more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def head(self):
        """(status line, headers) of the next answer, interim or not."""
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        pairs = [line.partition(":") for line in lines[1:]]
        return lines[0], [(name, value.strip()) for name, _, value in pairs]

    def answer(self, method="GET", target="/", headers=(), before_routing=False):
        """The next final answer, held against the contract as that to method and target."""
        line, received = self.head()
        while line.startswith("HTTP/1.1 100"):
            line, received = self.head()
        version, status, _ = (line + " ").split(" ", 2)
        if version not in ("HTTP/1.1", "HTTP/1.0"):
            raise AssertionError(f"not an answer: {line}")
        answer = Answer(int(status), received, b"")
        length = answer.header("Content-Length")
        if answer.header("Transfer-Encoding") is not None:
            raise AssertionError(f"chunked: {answer}")
        if method != "HEAD" and answer.status not in (204, 304) and length is None:
            raise AssertionError(f"no Content-Length: {answer}")
        if method != "HEAD" and answer.status not in (204, 304):
            answer.body = self.take(int(length))
        self.contract.hold(self.service, method, target, headers, answer, before_routing)
        return answer

    def is_closed(self):
        """Waits for the server's end; True when nothing but it came."""
        try:
            self._more()
        except Closed:
            return self.buffer == b""
        return False

    def end_sending(self):
        self.socket.shutdown(socket.SHUT_WR)

    def vanish(self):
        """Leaves with a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.socket.close()

    def close(self):
        self.socket.close()
