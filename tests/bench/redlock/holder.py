"""holder.py - a worker that locks with Redlock as it was published, or with Pawl on a quorum: what hazards orders on standard
input, a line each, answered with yes or no. argv: "published", its name, ttl in ms, socket of the resource, sockets of the
nodes; or "pawl", name, ttl, socket of the gateway, address of the lease service."""

import pathlib
import socket
import sys
import time

from pairs import ask, lock, unlock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "api/clients/python"))

from pawl import Pawl, PawlError  # noqa: E402


class Node:
    """Asked on a connection that is made again after each failure."""

    def __init__(self, path, timeout_s=0.1):
        self.path, self.timeout_s, self.connection = path, timeout_s, None

    def __call__(self, *words):
        try:
            if self.connection is None:
                self.connection = socket.socket(socket.AF_UNIX)
                self.connection.settimeout(self.timeout_s)
                self.connection.connect(self.path)
            if said := ask(self.connection, *words):
                return said
        except OSError:
            pass
        self.connection.close()
        self.connection = None
        return None


class Published:
    def __init__(self, name, ttl_ms, resource, *nodes):
        self.name, self.ttl_ms, self.resource, self.nodes = name, int(ttl_ms), Node(resource, 60), [Node(path) for path in nodes]
        self.value, self.end = None, 0

    def lock(self):
        began = time.monotonic()
        self.value = lock(self.nodes, "job", self.ttl_ms)
        self.end = began + self.ttl_ms / 1000
        return self.value is not None

    def look(self):
        return time.monotonic() < self.end

    def write(self):
        return self.resource("SET", "written", self.name) is not None

    def unlock(self):
        unlock(self.nodes, "job", self.value)
        return True


class OnPawl:
    def __init__(self, name, ttl_ms, gateway, lease):
        self.name, self.ttl_s, self.pawl, self.hold = name, int(ttl_ms) / 1000, Pawl(lease, f"unix:{gateway}"), None

    def lock(self):
        self.hold = self.pawl.acquire("job", ttl=self.ttl_s, renew=False)
        return True

    def look(self):
        return self.hold.remaining() > 0

    def write(self):
        """Past the client's own look at its clock: what refuses is the gateway."""
        self.pawl.put("job", self.name.encode(), self.hold.fencing_token)
        return True

    def unlock(self):
        self.hold.release()
        return True


def main():
    holder = {"published": Published, "pawl": OnPawl}[sys.argv[1]](*sys.argv[2:])
    for order in sys.stdin:
        try:
            did = getattr(holder, order.strip())()
        except PawlError:
            did = False
        print("yes" if did else "no", flush=True)


main()
