"""Several leases at once: the scripts that take all or none, and whoever waits for them."""

import json

from lua_test import REMEMBER_MS, Lease, check, check_equal, text
from world.redis import Connection

DESK, ALARM = "pawl:{07}:d:desk-1", "pawl:{store}:alarm"


def hold_of(lease_id):
    return "hold-" + lease_id.ljust(7, "-")


class All:
    """Some leases of a store, in the order in which they are asked for."""

    def __init__(self, store, *names):
        self.store, self.leases = store, [Lease(store, name) for name in names]
        self.home, self.list = self.leases[0], [[one.stripe, one.name] for one in self.leases]

    def acquire(self, lease_id="id-a", hold=None, holder="ada", ttl=1000, meta="", may="grant", **more):
        return self.home.run("acquire_all", lease_id, hold or hold_of(lease_id), holder, ttl, meta, may,
                             json.dumps({**more, "all": self.list}))

    def claim(self, lease_id="id-a", hold=None, may="grant"):
        return self.home.run("claim_all", lease_id, hold or hold_of(lease_id), may, json.dumps(self.list))

    def leave(self, how, lease_id="id-a", hold=None, may="grant"):
        return self.home.run("leave_all", lease_id, hold or hold_of(lease_id), may, how, json.dumps(self.list))

    # -- what is asked of the leases

    def states(self):
        """{name: (state, lease_id of who holds it exclusively)}"""
        return {one.name: (one.field("s"), one.field("i")) for one in self.leases}

    def lines(self):
        return {one.name: line_of(one) for one in self.leases}


def line_of(lease):
    """The lease_ids of those who wait for one lease, first come first."""
    return text(lease.store.redis("ZRANGE", f"{lease.stripe}:q:{lease.name}", 0, -1))


def wait(leases, lease_id, wid="1", desk=DESK, hold=None, **more):
    """Somebody gets in line, for several or for one."""
    reply = leases.acquire(lease_id, hold or hold_of(lease_id), lease_id, desk=desk, wid=wid, **more)
    check_equal(reply[0], "queued", lease_id)


def desk_lives(store, desk=DESK):
    store.redis("HSET", desk, "at", int(store.redis("GET", "test:clock")))


def ring(store):
    """Looks at each lease whose alarm is due, as a service does; their names."""
    due = text(store.redis("ZRANGEBYSCORE", ALARM, "-inf", int(store.redis("GET", "test:clock"))))
    for name in due:
        lease = Lease(store, name)
        check_equal(lease.run("handoff", "grant")[0], "handed-on", name)
    return due


class Ear:
    """What is told to a desk, but that it beats."""

    def __init__(self, store, desk=DESK):
        self.store, self.desk, self.connection = store, desk, Connection(store.redis.path)
        self.connection("SUBSCRIBE", desk)

    def heard(self):
        """Everything since the last time, in order."""
        self.store.redis("PUBLISH", self.desk, "end")
        heard = []
        while True:
            kind, _, message = text(self.connection._reply())
            check(kind == "message", kind)
            if message == "end":
                return heard
            if message != "beat":
                heard.append(message)

    def close(self):
        self.connection.close()


def forgotten(store, *sets):
    """All of them released, and remembered for as long as it must be: every key that is left but the stripes'."""
    store.at(int(store.redis("GET", "test:clock")) + REMEMBER_MS + 1)
    for leases in sets:
        for lease in leases.leases:
            lease.sweep()
