"""One who waits in line for a lease, or for several, on a connection of its own."""

import threading
import time

import pycurl

from .record import stripe_key
from .tap import check, check_equal
from .wait import wait_until
from .world import Daemon


def lease_id_of(holder):
    """The lease_id that a waiter of this name asks with."""
    return (holder + "-").ljust(22, "x")


def line_key(name, kind):
    """Of what the store keeps beside a lease for those who wait for it."""
    return f"{stripe_key(name)}:{kind}:{name}"


def nothing_is_left_of_the_line(world, *names):
    for name in names:
        left = [world.redis("EXISTS", line_key(name, kind)) for kind in "qw"]
        check_equal(left + [world.redis("ZSCORE", "pawl:{store}:alarm", name)], [0, 0, None], name)


class Waiter(threading.Thread):
    """Acquires with wait_ms and keeps the answer; it is in line when the constructor returns, or was already answered.
    client: a client, or the daemon to ask. names: of one lease, or the list of several; ask: the body's other members."""

    def __init__(self, world, client, names, holder, headers=(), in_line=True, **ask):
        super().__init__(daemon=True)
        self.client = world.client(client) if isinstance(client, Daemon) else client
        self.headers, self.answer, self.ended = headers, None, None
        self.body = {"holder": holder, "lease_id": lease_id_of(holder), "wait_ms": 60000, "ttl_ms": 60000} | ask
        self.path, self.name_asked = (f"/v1/leases/{names}", names) if isinstance(names, str) else ("/v1/leases", names[0])
        if not isinstance(names, str):
            self.body["names"] = names
        before = self._waiting() if in_line else 0
        self.begun = time.monotonic()
        self.start()
        if in_line:
            wait_until(lambda: self.answer is not None or self._waiting() > before, f"{holder} is in line")

    def _waiting(self):
        """Asked where it waits: on that link to the store the answer comes behind that to the waiter."""
        return self.client("GET", f"/v1/leases/{self.name_asked}").json["waiting"]

    def run(self):
        try:
            self.answer = self.client("POST", self.path, self.headers, self.body)
        except pycurl.error:
            pass  # its instance was killed
        self.ended = time.monotonic()

    def answered(self, deadline_s=20):
        self.join(deadline_s)
        check(self.answer is not None, f"{self.body['holder']} is not answered")
        return self.answer

    def told(self, status=201, code=None):
        """The body of its answer, which must be this one."""
        answer = self.answered()
        check_equal((answer.status, answer.code), (status, code), repr(answer))
        return answer.json
