"""Several leases at once: the scripts that take all or none, those that wait for them, and sessions."""

import json

from lua_test import REMEMBER_MS, STRIPES, Lease, Store, check, check_equal, stripe_of, text
from world.redis import Connection

DESK, ALARM = "pawl:{07}:d:desk-1", "pawl:{store}:alarm"
SESSION_ID, SECRET = "s" * 22, "c" * 22


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


class Session:
    """One session of the store, and every script on it."""

    def __init__(self, store, name=SESSION_ID, secret=SECRET):
        self.store, self.id, self.secret = store, name, secret
        self.stripe = f"pawl:{{{stripe_of(name):02x}}}"
        self.key, self.holds, self.member = f"{self.stripe}:s:{name}", f"{self.stripe}:y:{name}", f":s:{name}"
        self.keys = [self.stripe, self.stripe + ":due", self.key]

    def run(self, script, *args):
        return self.store.call(f"lease/scripts/session_{script}.lua", self.keys, self.id, REMEMBER_MS, *args)

    def open(self, holder="ada", ttl=5000, meta=""):
        return self.run("open", self.secret, holder, ttl, meta)

    def renew(self, secret=None):
        return self.run("renew", secret or self.secret)

    def look(self):
        return self.run("look")

    def end(self, secret=None, most=100, may="grant"):
        return self.run("end", self.secret if secret is None else secret, may, most)

    def sweep(self, most=100):
        return self.store.call("lease/scripts/sweep.lua", self.keys[:2], most, REMEMBER_MS, "grant")

    def terms(self, **more):
        """What an acquire with this session has beside the usual."""
        return {"session": self.key, "secret": self.secret, **more}

    def field(self, name):
        return text(self.store.redis("HGET", self.key, name))

    def held(self):
        """Names of the leases that it holds and of those that it lost, as told by a renewal."""
        told = self.renew()[7]
        return sorted(one.split("/")[0] for one in told if one.find("/") > 0), sorted(
            one for one in told if "/" not in one)

    def due(self):
        score = self.store.redis("ZSCORE", self.stripe + ":due", self.member)
        return int(score) if score is not None else None


def line_of(lease):
    """The lease_ids of those who wait for one lease, first come first."""
    return text(lease.store.redis("ZRANGE", f"{lease.stripe}:q:{lease.name}", 0, -1))


def wait(leases, lease_id, wid="1", desk=DESK, hold=None, **more):
    """Somebody gets in line, for several or for one."""
    reply = leases.acquire(lease_id, hold or hold_of(lease_id), lease_id, desk=desk, wid=wid, **more)
    check_equal(reply[0], "queued", lease_id)


def desk_lives(store, desk=DESK):
    store.redis("HSET", desk, "at", int(store.redis("GET", "test:clock")))


def desk_of(name):
    """Its key."""
    return f"pawl:{{{stripe_of(name):02x}}}:d:{name}"


def desk_says(store, desk, what="beat"):
    """As the service whose desk it is does; the first word of the answer."""
    stripe, _, name = desk.partition(":d:")
    return store.call("lease/scripts/inbox_heartbeat.lua", [stripe, stripe + ":due", desk], name, what)[0]


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


class Told:
    """What happens to some leases, as it is published at once; and whether their histories say the same. So little is kept
    that some is always dropped."""

    def __init__(self, store, names):
        self.store, self.hub, self.of = store, Connection(store.redis.path), {name: {} for name in names}
        self.hub("PSUBSCRIBE", "pawl:e:*")
        for stripe in STRIPES:
            store.redis("HSET", stripe, "listen", 10 ** 14)  # a time that never comes

    @staticmethod
    def store():
        return Store.with_text("shared/member/scripts/lib/history.lua", "HISTORY_MIN, HISTORY_LOOK = 32, 16, 16384, 2, 4",
                               "HISTORY_MIN, HISTORY_LOOK = 8, 4, 60, 2, 4")

    @staticmethod
    def read(packed):
        """(its id, the rest, of what is behind its reason each by itself)"""
        identity, *parts, reason = packed.split("\t")
        return tuple(int(part) for part in identity.split(".")), [*parts, *sorted(reason.split("\x1f"))]

    def hear(self):
        """Of each lease the ids rise."""
        self.store.redis("PUBLISH", "pawl:e:none", "end")
        while True:
            _, _, channel, message = text(self.hub._reply())
            if message == "end":
                return
            if not message.endswith(" line"):
                told, (identity, rest) = self.of[channel.split(":", 2)[2]], self.read(message[3:])
                check(identity > max(told, default=(0,)), f"{channel}: {identity} after {max(told, default=None)}")
                told[identity] = rest

    def compare(self, name, reply, counts):
        """The reply of history.lua, which may have made something happen: all is as it was told, and behind an id that was told
        nothing is missing, unless it is said."""
        self.hear()
        told, items = self.of[name], [self.read(item) for item in reply[3]]
        dropped, ids = [tuple(int(part) for part in one.split(".")) for one in reply[4]], [identity for identity, _ in items]
        check_equal(ids, sorted(set(ids)), name)
        check_equal([told.get(identity) for identity in ids], [rest for _, rest in items], name)
        known = min((one for one in ids + dropped if one in told and one >= max(dropped, default=one)), default=(10 ** 14,))
        check_equal([one for one in ids if one > known], [one for one in told if one > known], f"{name}: behind {known}")
        for what, is_so in (("history", ids), ("history of a part", dropped)):
            counts[what] = counts.get(what, 0) + bool(is_so)


def forgotten(store, *sets):
    """All of them released, and remembered for as long as it must be: every key that is left but the stripes'."""
    store.at(int(store.redis("GET", "test:clock")) + REMEMBER_MS + 1)
    for leases in sets:
        for lease in leases.leases:
            lease.sweep()
