"""Lease services and gateways as the store sees them: what each knows, has on disk, and sends with its pulses."""

import itertools

from lua_test import IDENTITY, MEMBERS, RECORD, STRIPES, Lease, Resource, Store, check_equal, stripe_fields, text
from world.redis import PUT_BACK, SAVE

PULSE, LEAVE = (f"shared/member/scripts/{name}.lua" for name in ("heartbeat", "member_leave"))
ADMIT = "lease/scripts/admit.lua"
SEQS = "local s = {} for i = 1, #KEYS do s[i] = tonumber(redis.call('HGET', KEYS[i], 'seq')) or 0 end return s"
FIELDS = "local f = {} for i = 1, #KEYS do f[i] = redis.call('HMGET', KEYS[i], 'life', ARGV[1]) end return f"
_numbers = itertools.count(1)


class Life(Store):
    """A store whose Redis restarts when the test says so, with its data of now or of a moment that was saved."""

    def __init__(self):
        super().__init__()
        self.run_id, self.processes = "run-1", {}

    def begin(self, now=1000000, floor=100, registrars=0, copies=0):
        super().begin(now, floor, registrars, copies)
        self.run_id = "run-1"

    def restart(self, saved=None):
        """Redis is another process: with its data, or with those of before."""
        if saved is not None:
            self.put_back(saved)
        self.run_id = f"run-{next(_numbers)}"

    def run_and_stream(self):
        """What an admission is for (shared/member/scripts/lib/stripe.lua)."""
        return f"{self.run_id} {self.replid()}"

    def real_run(self):
        """The same, as Redis itself has it."""
        return self.redis("INFO", "server").decode().split("run_id:")[1].split("\r\n")[0] + " " + self.replid()

    def new_stream(self):
        """The same process goes on with another replication stream; its data are the same."""
        self.redis("REPLICAOF", "127.0.0.1", 1)
        self.redis("REPLICAOF", "NO", "ONE")

    def save(self):
        return self.redis("EVAL", SAVE, 0)

    def put_back(self, saved):
        self.redis("EVAL", PUT_BACK, 0, *saved)

    def record(self, *fields):
        """One field of the record, or several."""
        values = text(self.redis("HMGET", RECORD, *fields))
        return values[0] if len(fields) == 1 else values

    def member(self, name, *fields):
        values = text(self.redis("HMGET", f"{RECORD}:m:{name}", *fields))
        return values[0] if len(fields) == 1 else values

    def state(self, name):
        return self.member(name, "state")

    def listed(self):
        return sorted(text(self.redis("SMEMBERS", MEMBERS)))

    def stripe(self, field):
        """What this field is in the stripes: one value if it is the same in all."""
        found = text(self.redis("EVAL", FIELDS, len(STRIPES), *STRIPES, field))
        values = {stripe_fields({"life": life or ""}).get(field, own) for life, own in found}
        return values.pop() if len(values) == 1 else sorted(values, key=str)

    def seqs(self):
        return self.redis("EVAL", SEQS, len(STRIPES), *STRIPES)


class Directory:
    """A state directory: what outlives a process."""

    def __init__(self):
        self.floor, self.roll, self.list, self.epoch, self.promise = 0, 0, [], 0, ""

    def lists(self):
        """The ids of the lease services that stand in it."""
        return [line.split()[1] for line in self.list if line.startswith("lease ")]

    def registrars(self):
        return [line.split()[1] for line in self.list if line.startswith("registrar ")]


def keep_registrars(before, lines):
    """A list with the highest numbers that were seen of each registrar."""
    def numbers(line, of):
        words = line.split()
        return [int(word) for word in words[2:]] if words[:2] == ["registrar", of] else [0, 0]

    kept = []
    for line in lines:
        if line.startswith("registrar "):
            of = line.split()[1]
            seen = [max(pair) for pair in zip(*(numbers(one, of) for one in [*before, line]))]
            line = f"registrar {of} {seen[0]} {seen[1]}"
        kept.append(line)
    return kept


class Member:
    """A process. What it records is on disk when its pulse has been answered, unless recording says otherwise."""

    def __init__(self, life, name, role="lease", block=100):
        self.life, self.name, self.role, self.block = life, name, role, block
        life.processes[name] = self
        self.disk = Directory()
        self.identity, self.recording, self.doubt, self.at_least, self.bar = IDENTITY, True, "", 0, ""
        self.copies, self.node, self.wish, self.said = "", "here:1", "", ""  # said: by the other nodes of the in-sync set
        self.leased = False  # with the lease on the epoch (docs/decisions/0050)
        self.start()

    def start(self):
        """A new process: all that was only in memory is gone."""
        self.incarnation = f"{self.name}-{next(_numbers)}"
        self.epoch, self.beats, self.seen, self.passed, self.granted = 0, 0, [], 0, []
        self.gate, self.reply, self.stream = "", [], None
        self.sent, self.echo, self.quiet_ms, self.echoed = 0, "", 0, 0

    def line(self):
        return f"{self.role} {self.name} {self.incarnation}"

    def arguments(self, settled="settled", access=""):
        return [self.identity, self.life.run_id, self.name, self.role, self.incarnation, self.epoch, self.beats,
                self.disk.floor, self.disk.roll, self.block, self.at_least, f"pawl-{self.role} {self.name}",
                f"gate-{next(_numbers)}", " ".join(map(str, self.seen)), self.passed, self.doubt, ",".join(self.disk.list),
                settled, self.disk.epoch, " ".join(map(str, self.granted)), access, "1.2.3 5000", self.bar, self.disk.promise,
                self.copies, self.node, self.wish, *([self.sent, self.echo, self.quiet_ms] if self.leased else [])]

    def ask(self, settled="settled"):
        """The reply to a pulse, from which nothing is learned."""
        return self.life.run(PULSE, [RECORD], *self.arguments(settled))

    def pulse(self, settled="settled"):
        """The first word of the reply, after all was done that it asks for."""
        self.sent += 1
        self.learn(self.ask(settled))
        return self.reply[0]

    def learn(self, reply):
        self.reply = reply
        if reply[0] == "in":
            self.beats = reply[7]
            self.seen = reply[10] if self.epoch != reply[1] else [max(pair) for pair in zip(self.seen, reply[10])]
            self.epoch, self.stream = reply[1], reply[13]
        if reply[0] == "in" and self.leased:
            self.echo, self.echoed = reply[17] if self.role == "lease" else "", reply[18]
        if reply[0] == "gated":
            self.gate = reply[2]
            if reply[4] and self.role == "lease" and self.recording:
                self.disk.promise = f"{reply[4]} {reply[2]}"
        if reply[0] in ("in", "pending") and self.recording:
            self.record(reply)

    def record(self, reply):
        """What the state directory of a lease service keeps, in one write; a gateway keeps its id only."""
        if self.role == "lease":
            self.disk.floor, self.disk.roll = max(self.disk.floor, reply[4]), reply[3]
            self.disk.list = keep_registrars(self.disk.list, reply[6])
            self.disk.epoch = reply[1]

    def ask_to_admit(self, when="now", gate=None):
        """The reply of one call."""
        return self.life.run(ADMIT, [RECORD], self.identity, self.life.run_id, self.gate if gate is None else gate, self.name,
                             when, self.node, "lease" if self.leased else "", self.said)

    def records(self, when="now"):
        """Whether its state directory had to record who is in doubt; it has, and has reported that."""
        reply = self.ask_to_admit(when)
        if reply[0] == "record":
            self.disk.list = reply[1]
            self.pulse()
        return reply[0] == "record"

    def admit(self, when="now", gate=None):
        """The end of it, when everybody has recorded whom the new life puts in doubt."""
        for _ in range(8):
            reply = self.ask_to_admit(when, gate)
            if reply[0] == "unrecorded":
                others = [self.life.processes[name] for name in reply[1].split(",")]
                check_equal([other.records(when) for other in others], [True] * len(others), reply[1])
            elif not (reply[0] == "record" and self.records(when)):
                return reply
        raise AssertionError(reply)

    def leave(self):
        return self.life.run(LEAVE, [RECORD], self.identity, self.name, self.incarnation, self.epoch,
                             self.life.run_id)[0]

    def knows(self, key, at_least=0):
        """As the caller of a script on this stripe."""
        seen = self.seen[STRIPES.index(key)] if self.seen else 0
        return self.life.calling(identity=self.identity, epoch=self.epoch, stream=self.stream, seen=seen, at_least=at_least)

    def do(self, deed, *args, **named):
        """One of a lease's or a resource's scripts, with what this process knows; it learns from the answer."""
        thing = deed.__self__
        key = thing.lease.stripe if isinstance(thing, Resource) else thing.stripe
        with self.knows(key):
            reply = deed(*args, **named)
        if len(reply) > 1:
            i = STRIPES.index(key)
            self.seen[i] = max(self.seen[i], reply[1])
        return reply


def all_in(*members):
    """Pulses until all of them are in, and the store was told that the state directories are up to date."""
    life = members[0].life
    for _ in range(8):
        words = {one.pulse() for one in members}
        leases = [one for one in members if one.role == "lease"]
        told = [life.member(one.name, "roll", "floor") == [life.record("roll"), str(one.disk.floor)] for one in leases]
        if words == {"in"} and all(told):
            return
    raise AssertionError(f"{[(one.name, one.reply) for one in members]}")


def grant(life, member, name, lease_id="id-a", hold="hold-aaaaaaa", **named):
    """The token that this process grants."""
    lease = Lease(life, name)
    reply = member.do(lease.acquire, lease_id, hold, **named)
    check_equal(reply[0], "granted", name)
    return reply[2]


def founder(life, floor=100, block=100, registrars=0, copies=0):
    """A new store, and the lease service whose state directory was the first."""
    life.begin(floor=floor, registrars=registrars, copies=copies)
    first = Member(life, "lease-a", block=block)
    first.disk.floor = floor  # --init-store notes no list: it may admit nothing before it has begun
    return first


def alone(life, **named):
    """A new store, and its only lease service, which is in."""
    first = founder(life, **named)
    all_in(first)
    return first


def company(life, floor=100):
    """Two lease services and a gateway, all in."""
    first = founder(life, floor)
    second, gate = Member(life, "lease-b"), Member(life, "gate-g", "gateway")
    all_in(first, second, gate)
    return first, second, gate


def board(life, floor=100):
    """Three registrars of which a majority counts, and a gateway, all in."""
    first = founder(life, floor, registrars=3)
    others = Member(life, "lease-b"), Member(life, "lease-c"), Member(life, "gate-g", "gateway")
    all_in(first, *others)
    return first, *others


def unchanged_by(life, action):
    before = life.dump()
    reply = action()
    check_equal(life.dump(), before, f"after {reply}")
    return reply
