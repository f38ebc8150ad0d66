"""A server behind the gateway that does what the test says, and keeps what it has applied in the order of arrival."""

import json
import os
import socket
import struct
import threading

from .client import Message
from .listening import Listening
from .wait import DEADLINE_S


class Request(Message):
    def __init__(self, method, target, headers, body, connection):
        self.method, self.target, self.headers, self.body, self.connection = method, target, headers, body, connection

    def values(self, name):
        """As an application sees them that takes "_" for "-"."""
        return [value for one, value in self.headers if one.lower().replace("_", "-") == name.lower()]

    @property
    def token(self):
        text = self.header("Fencing-Token")
        return int(text.split(";")[0]) if text else None

    def __repr__(self):
        return f"{self.method} {self.target} {self.headers} {self.body[:100]!r}"


class Connection:
    def __init__(self, upstream, sock):
        self.upstream, self.socket, self.buffer, self.certificate = upstream, sock, b"", None

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("closed")
        self.buffer += data

    def take(self, count):
        while len(self.buffer) < count:
            self.more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def line(self):
        while b"\r\n" not in self.buffer:
            self.more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def request(self):
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        method, target, version = lines[0].split(" ")
        assert version == "HTTP/1.1", lines[0]
        self.upstream.begun.append(target)
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]
        names = {name.lower(): value for name, value in headers}
        assert not ("content-length" in names and "transfer-encoding" in names), headers
        body = b""
        if "transfer-encoding" in names:
            assert names["transfer-encoding"] == "chunked", names
            while True:
                size = int(self.line(), 16)
                body += self.take(size)
                assert self.line() == b"" if size else True
                if size == 0:
                    break
            while self.line() != b"":
                pass
        elif "content-length" in names:
            body = self.take(int(names["content-length"]))
        return Request(method, target, headers, body, self)

    def send(self, data):
        self.socket.sendall(data)

    def answer(self, status=200, headers=(), body=b"ok", reason="Is So"):
        head = f"HTTP/1.1 {status} {reason}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers)
        if status != 204 and status != 304:
            head += f"Content-Length: {len(body)}\r\n"
        self.send(head.encode("latin-1") + b"\r\n" + (body if status not in (204, 304) else b""))

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Upstream(Listening):
    """act(request): what it does with a request; by default it applies writes and answers 200. Runs on a thread for each
    connection. Everything that came whole is in `requests`, its target already from its head on in `begun`; what was applied, by
    apply(), in `applied`. tls: a context of ssl."""

    def __init__(self, act=None, path=None, tls=None):
        self.act, self.tls = act or Upstream.obey, tls
        self.lock = threading.Condition()
        self.requests, self.begun, self.applied, self.connections, self.wrong = [], [], [], 0, []
        self.listen(path, scheme="https" if tls else "http")

    def _serve(self, sock):
        connection = Connection(self, sock)
        with self.lock:
            self.connections += 1
        if self.port:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if self.tls:
                connection.socket = self.tls.wrap_socket(connection.socket, server_side=True)
                connection.certificate = connection.socket.getpeercert()  # also of one that has ended meanwhile
            while True:
                request = connection.request()
                with self.lock:
                    self.requests.append(request)
                    self.lock.notify_all()
                self.act(self, request)
        except (OSError, ConnectionError):
            pass
        except AssertionError as error:
            self.wrong.append(repr(error))
        finally:
            connection.socket.close()

    def apply(self, request):
        with self.lock:
            self.applied.append((request.token, request.body))
            self.lock.notify_all()

    def obey(self, request):
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            self.apply(request)
        request.connection.answer(200, [("Content-Type", "text/plain")], b"" if request.method == "HEAD" else b"done")

    def got(self, count):
        """Waits until so many requests have come; the last of them."""
        with self.lock:
            if not self.lock.wait_for(lambda: len(self.requests) >= count, DEADLINE_S):
                raise TimeoutError(f"{len(self.requests)} requests came, not {count}: {self.requests}")
            return self.requests[count - 1]


def routes_file(folder, routes, name="routes.json"):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"routes": routes}, file)
    return path


def route(upstream, match, lease, guarantee="ordered", **more):
    return {"match": match, "lease": lease, "upstream": upstream.url, "guarantee": guarantee, **more}
