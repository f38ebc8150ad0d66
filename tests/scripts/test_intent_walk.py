#!/usr/bin/python3
"""A random walk of several gateways, the leases of one stripe, an upstream and a store that loses what is open: the scripts
and a model agree at every step, and nothing stale lands at the upstream. PAWL_SEED and PAWL_STEPS repeat one."""

import os
import random

from intent_model import IntentModel, Open, grace_of
from intents import DOUBT, ROUTES, Gateway, close, parse, same_stripe, script, texts_of
from lua_test import EPOCH, RECORD, Holder, Lease, Store, check, check_equal, main, stripe_do, test, text

SEED = int(os.environ.get("PAWL_SEED", random.SystemRandom().randrange(1 << 32)))
STEPS = int(os.environ.get("PAWL_STEPS", 4000))
NOW, TTL, GRACE = 1000000, 30000, 500
POLICIES = ("h", "p", f"g{GRACE}", f"g{GRACE}")


class Flight:
    """A request on its way to the upstream: it lands once, or never."""

    def __init__(self, request, version):
        self.request, self.version, self.ends = request, version, None


class Request:
    """What a process knows of one of its requests. state: queued | may send | sent | over; of one whose intent stays open
    also idle: it has ended. via: by whose intent it goes."""

    def __init__(self, process, told, via=None):
        self.process, self.told, self.state, self.text, self.via = process, told, "queued", told.text(), via or self
        self.version = None
        self.under_way, self.unsure, self.is_usable = 1, [], told.kind == "o~" and not via


class Process:
    """One incarnation of a gateway."""

    def __init__(self, store, name, number):
        self.gate = Gateway(store, name, f"life-{number}")
        self.requests, self.custody, self.former, self.lives = [], {}, [], True

    def open(self):
        return [one for one in self.requests if one.state != "over" and one.via is one]


class Upstream:
    """Its own order of arrival: what must not land is a failure of the test."""

    def __init__(self, names):
        self.flights, self.version = [], {name: 0 for name in names}
        self.ordered = {name: (0, 0) for name in names}  # the highest ordered write that landed, or fenced read that was answered
        self.read = {name: (0, 0) for name in names}

    def land(self, flight):
        """Whether it is applied."""
        self.flights.remove(flight)
        one = flight.request.told
        if one.kind == "c" and flight.version != self.version[one.name]:
            return False
        self.version[one.name] += 1
        if one.kind[0] in "oc":
            check(one.token >= self.read[one.name], f"{one} lands after a fenced read with {self.read[one.name]}")
            check(one.token >= self.ordered[one.name], f"{one} lands after {self.ordered[one.name]}")
        if one.kind[0] == "o":
            self.ordered[one.name] = max(self.ordered[one.name], one.token)
        return True


class Walk:
    def __init__(self, seed):
        self.random, self.store, self.model = random.Random(seed), Store(), IntentModel(NOW)
        self.store.begin(NOW)
        self.store.redis("HSET", RECORD, "routes", ROUTES)
        first = "orders:42"
        names = [first, *same_stripe(first, 2), *same_stripe(first, 1, first + ".{}")]
        self.leases = {name: Lease(self.store, name) for name in names}
        self.policy = dict(zip(names, POLICIES))
        self.upstream, self.holders, self.epoch, self.number = Upstream(names), {name: [] for name in names}, EPOCH, 0
        self.stripe, self.gates, self.words, self.told = self.leases[first].stripe, {}, {}, []
        for name in ("gate-a", "gate-b", "gate-c"):
            self.start(name)
        for name in names:
            self.grant(name)

    def unique(self):
        self.number += 1
        return self.number

    def living(self):
        return [one for one in self.gates.values() if one.lives]

    def run(self, name, *args):
        return self.store.call(script(name), [self.stripe], *args)

    # -- time, leases

    def time_step(self):
        ms = self.random.choice((1, 1, 7, 40, 100, 300, GRACE - 1, GRACE))
        self.model.now += ms
        if self.random.random() < 0.03:  # a leap, in which nothing happens: a pulse has noted it
            self.model.now += 5000
            self.model.leaps += 5000
            self.store.redis("HINCRBY", RECORD, "leaps", 5000)
        self.store.at(self.model.now)
        passed = self.model.now - self.model.leaps
        self.upstream.flights = [one for one in self.upstream.flights if one.ends is None or passed < one.ends]

    def grant(self, name):
        lease, number = self.leases[name], self.unique()
        if name in self.model.holds and not self.model.reason(name, self.model.holds[name][0]):
            lease.release(lease.field("i"))
        hold = f"hold-{number:07}"
        reply = lease.acquire(f"id-{number}", hold, ttl=TTL)
        check_equal(reply[0], "granted", name)
        self.holders[name] = self.holders[name][-3:] + [Holder(reply[2], self.epoch, hold)]
        self.model.holds[name] = ((self.epoch, reply[2]), self.model.now + TTL)
        return "granted", "granted"

    def release(self, name):
        lease = self.leases[name]
        last, _ = self.model.holds[name]
        live = self.model.reason(name, last) is None
        word = lease.release(lease.field("i"))[0]
        self.model.holds[name] = (last, None)
        check(word == "released" or not live, f"{name}: {word}")
        return "released", "released"

    def holder(self, name):
        """Mostly the last one."""
        return self.holders[name][-1] if self.random.random() < 0.8 else self.random.choice(self.holders[name])

    # -- requests; each returns (what the script said, what the model says)

    def told_is(self, process, reply, wanted):
        """A request goes on as it was told."""
        parts = parse(wanted[1])
        one = Open(parts.name, (parts.epoch, parts.token), *parts[3:])
        request = Request(process, one)
        request.version = self.upstream.version[one.name]  # of which a conditional one has asked before it was admitted
        request.state = "may send" if wanted[0] == "sending" else "queued"
        process.requests.append(request)
        return [reply[0], *reply[3:5 if wanted[0] == "queued" else 4]]

    def admit(self, name):
        process, holder = self.random.choice(self.living()), self.holder(name)
        kind = self.random.choice(("o", "o", "o~", "o~", "o+", "c", "k", "a"))
        gate, token, seq = process.gate, (holder.epoch, holder.token), self.leases[name].seq() + 1
        reply = gate.admit(self.leases[name], holder, kind, self.policy[name])
        number = f"w0.{gate.number}"
        wanted = self.model.admit(name, token, kind, gate.name, gate.incarnation, number, self.policy[name], seq)
        if wanted[0] in ("sending", "queued"):
            if self.random.random() < 0.1:  # the reply is lost
                return self.forget(name, process, number)
            return self.told_is(process, reply, wanted), wanted
        return [reply[0], reply[2]] if wanted[0] == "refused" else reply[:1], wanted

    def forget(self, name, process, number):
        gate = process.gate
        reply = close(self.store, ("forget", self.leases[name], f"{name} {gate.name} {gate.incarnation} {number}"))
        return ["forgotten", reply[2]], ["forgotten", self.model.forget(name, gate.name, gate.incarnation, number)]

    def request(self, *wanted):
        """One of a living process, in one of these states."""
        found = [one for process in self.living() for one in process.requests if one.state in wanted]
        return self.random.choice(found) if found else None

    def promote(self, _):
        request = self.request("queued")
        if not request:
            return "idle", "idle"
        told, name = request.told, request.told.name
        holder = next((one for one in self.holders[name] if (one.epoch, one.token) == told.token), None)
        if not holder:
            return self.end(request, "close")
        reply = request.process.gate.promote(self.leases[name], holder, request.text, told.unknown)
        wanted = self.model.promote(told)
        if wanted[0] in ("cancelled", "refused"):
            request.state = "over"
            return [reply[0], reply[2]], wanted
        if wanted[0] == "sending" and self.random.random() < 0.9:  # else the reply is lost
            request.state, request.text = "may send", reply[3]
        return [reply[0], *reply[3:3 + len(wanted) - 1]], wanted

    def sticky(self, *states):
        found = [one for process in self.living() for one in process.requests if one.is_usable and one.state in states]
        return self.random.choice(found) if found else None

    def check(self, _):
        """A later write, by the intent that its worker has open."""
        sticky = self.sticky("may send", "sent", "idle")
        holder = sticky and next((one for one in self.holders[sticky.told.name] if (one.epoch, one.token) == sticky.told.token), None)
        if not holder:
            return "idle", "idle"
        reply = sticky.process.gate.check(self.leases[sticky.told.name], holder, sticky.text)
        wanted = self.model.check(sticky.told)
        if wanted == ["missing"]:
            sticky.is_usable = False
        elif self.random.random() < 0.9:  # else the reply is lost
            request = Request(sticky.process, sticky.told, sticky)
            request.state = "may send"
            sticky.process.requests.append(request)
            sticky.under_way += 1
        return reply[:1], wanted

    def close(self, _):
        """The last word on one that stayed open: nothing of it is under way."""
        found = [one for process in self.living() for one in process.requests if one.state == "idle" and not one.under_way]
        return self.close_sticky(self.random.choice(found)) if found else ("idle", "idle")

    def close_sticky(self, sticky):
        if sticky.unsure and sticky.told.kind == "o~":
            sticky.text = sticky.text.replace(" o~ ", f" o~{','.join(sticky.unsure)} ")
            sticky.told.kind += ",".join(sticky.unsure)
        sticky.is_usable, sticky.state = False, "idle" if sticky.unsure else "over"
        return self.say(sticky, "unknown" if sticky.unsure else "close")

    def read(self, name):
        holder = self.holder(name)
        token = (holder.epoch, holder.token)
        reply = self.random.choice(self.living()).gate.read(self.leases[name], holder, self.policy[name])
        wanted = self.model.read(name, token, self.policy[name])
        if wanted[0] == "accepted":
            self.upstream.read[name] = max(self.upstream.read[name], token)
            late = [one.request.told for one in self.upstream.flights if self.is_stale(one, name, token)]
            check(not late, f"a read with {token} is answered, and {late} may land after it")
            return reply[:1], wanted
        return [reply[0], reply[2] if wanted[0] == "refused" else reply[3]], wanted

    def is_stale(self, flight, name, token):
        one = flight.request.told
        could_land = one.kind != "c" or flight.version == self.upstream.version[name]
        return one.name == name and one.token < token and one.kind[0] in "oc" and could_land

    def send(self, _):
        request = self.request("may send")
        if not request:
            return "idle", "idle"
        if self.random.random() < 0.1:
            return self.end(request, "close")  # no connection could be made
        name, token = request.told.name, request.told.token
        if request.told.kind[0] == "o":
            late = [one.request.told for one in self.upstream.flights if self.is_stale(one, name, token)]
            check(not late, f"{request.told} is sent, and {late} may land after it")
        request.state = "sent"
        self.upstream.flights.append(Flight(request, request.via.version))
        return "sent", "sent"

    def arrive(self, _):
        """A request lands and is answered, or lands and the answer is lost, or is lost; or it takes its time."""
        if not self.upstream.flights:
            return "idle", "idle"
        flight, fate = self.random.choice(self.upstream.flights), self.random.random()
        request = flight.request
        if fate < 0.05:
            self.upstream.flights.remove(flight)
        elif fate < 0.9:
            applied = self.upstream.land(flight)
            if fate < 0.75 and request.process.lives:
                return self.end(request, "settle" if applied and request.told.kind == "c" else "close")
        if request.process.lives:
            return self.end(request, "unknown")
        return "arrived", "arrived"

    def end(self, request, word):
        sticky = request.via
        if request.state == "queued" or sticky.told.kind[:2] != "o~":
            request.state = request.state if word == "unknown" else "over"
            return self.say(request, word)
        if request.state in ("idle", "over"):
            return "late", "late"  # its end is not known any more
        request.state = "idle" if request is sticky else "over"
        sticky.under_way -= 1
        if word == "unknown":
            sticky.unsure.append(f"0.{self.unique()}")
            sticky.is_usable = False
        return self.close_sticky(sticky) if sticky.under_way == 0 and not sticky.is_usable else ("left", "left")

    def say(self, request, word):
        """It is said to the store, once or twice, with the text of now or of before."""
        told = self.random.choice((request.told.text(), request.text))
        lease = self.leases[request.told.name]
        said = close(self.store, *[(word, lease, told)] * self.random.choice((1, 1, 2)))
        return [word, said[2]], [word, self.model.close(word, request.told)]

    # -- deaths, operators, losses

    def start(self, name):
        """A process begins, and takes over from the one before, which is known to be dead."""
        before = self.gates.get(name)
        process = self.gates[name] = Process(self.store, name, self.unique())
        if not before:
            return [], []
        process.former = before.former + [before.gate.incarnation]
        reply, living = process.gate.takeover(self.stripe), process.gate.incarnation
        wanted = self.model.takeover(name, living)
        process.custody = {one: parse(one) for one in wanted}
        doubtful = self.run("unreported_dead", name, living, "all")
        passed = self.model.now - self.model.leaps
        for flight in self.upstream.flights:
            grace = grace_of(flight.request.told.unknown)
            if flight.request.process is not process and flight.request.process.gate.name == name and grace and not flight.ends:
                flight.ends = passed + grace
        return [sorted(reply[2]), doubtful[2]], [wanted, self.model.dead(name, living)]

    def crash(self, _):
        process = self.random.choice(list(self.gates.values()))
        if not process.lives:
            return self.start(process.gate.name)
        process.lives = len(self.living()) == 1  # one is left to ask
        return "crashed", "crashed"

    def flies(self, name=None, gateway=None, dead_only=False):
        """Whether something may still land, of this lease, or of this gateway's dead."""
        return any((name in (None, one.request.told.name)) and gateway in (None, one.request.process.gate.name)
                   and not (dead_only and one.request.process.lives) for one in self.upstream.flights)

    def resolve(self, name):
        """An operator who has made sure that nothing of the lease is on its way any more."""
        if self.flies(name):
            return "idle", "idle"
        reply = self.run("intent_resolve", name, "", "")
        return ["resolved", reply[2]], ["resolved", self.model.resolve(name)]

    def clear(self, _):
        """The same, of dead incarnations that are in doubt."""
        dead = [who for who, since in self.model.doubt.items() if since]
        who = self.random.choice(dead) if dead else None
        if not who or self.flies(gateway=who.split(" ")[0], dead_only=True):
            return "idle", "idle"
        del self.model.doubt[who]
        return ["left", self.run("unreported_leave", *who.split(" "), "", self.epoch, 0)[2]], ["left", len(self.model.doubt)]

    def lose(self, _):
        """The store has lost what is open, or a part of it, and begins a life that is not proven complete."""
        if self.random.random() < 0.8:
            return "idle", "idle"
        lost = [one for one in self.model.intents if self.random.random() < 0.7]
        for one in lost:
            self.store.redis("ZREM", self.stripe + ":i", one.text())
            self.model.intents.remove(one)
        self.epoch += 1
        self.model.alive = self.epoch
        stripe_do(self.store.redis, "HSET", self.stripe, "epoch", self.epoch, "alive", self.epoch)
        self.store.redis("HSET", RECORD, "epoch", self.epoch)
        if all(one.lives for one in self.gates.values()) and self.random.random() < 0.5:
            self.store.redis("DEL", DOUBT)
            self.model.doubt.clear()
        for name, process in self.gates.items():
            who = f"{name} {process.gate.incarnation}"
            if who not in self.model.doubt:
                self.model.doubt[who] = None
                self.store.redis("HSET", DOUBT, who, f"open {self.epoch}")
        return "lost", "lost"

    def again(self, _):
        """A gateway says all that it has open, and of its dead, and is in doubt no more."""
        who = [one for one in self.living() if f"{one.gate.name} {one.gate.incarnation}" in self.model.doubt]
        if not who:
            return "idle", "idle"
        process = self.random.choice(who)
        gate, said, wanted = process.gate, 0, 0
        mine = [(one.told.name, one.text) for one in process.open()]
        for name, told in mine + [(parts.name, told) for told, parts in process.custody.items()]:
            parts = parse(told)
            said += gate.again(self.leases[name], told)[2]
            wanted += self.model.again(Open(parts.name, (parts.epoch, parts.token), *parts[3:]))
        former = [one for one in process.former if self.flies(gateway=gate.name, dead_only=True)]
        dead = self.run("unreported_dead", gate.name, gate.incarnation, "lost", *former)[2]
        check_equal(dead, self.model.lost(gate.name, former))
        del self.model.doubt[f"{gate.name} {gate.incarnation}"]
        left = self.run("unreported_leave", gate.name, gate.incarnation, "", self.epoch, 0)[2]
        return [said, left], [wanted, len(self.model.doubt)]

    # -- what must be so after each step

    def check_all(self, what):
        texts = texts_of(self.store, self.leases["orders:42"])
        check_equal(texts, sorted(one.text() for one in self.model.intents), what)
        doubt = text(self.store.redis("HGETALL", DOUBT))
        wanted = {who: "dead {} {}".format(*since) if since else "open" for who, since in self.model.doubt.items()}
        check_equal({who: state.rpartition(" ")[0] for who, state in zip(doubt[::2], doubt[1::2])}, wanted, what)
        for name, mark in self.model.marks.items():
            check_equal((self.leases[name].field("p"), self.leases[name].field("k")), tuple(map(str, mark)), what)

    def step(self, number):
        deeds = ((self.admit, 10), (self.promote, 8), (self.send, 8), (self.arrive, 8), (self.read, 3), (self.grant, 2.5), (self.check, 6), (self.close, 3),
                 (self.release, 0.2), (self.crash, 0.6), (self.resolve, 2.5), (self.clear, 2), (self.lose, 0.35), (self.again, 4))
        if self.random.random() < 0.2:
            self.time_step()
        deed = self.random.choices([one for one, _ in deeds], [weight for _, weight in deeds])[0]
        name = self.random.choice(list(self.leases))
        seq, before = self.leases[name].seq(), texts_of(self.store, self.leases[name])
        said, wanted = deed(name)
        what = f"step {number}: {deed.__name__} of {name} at {self.model.now}"
        check_equal(said, wanted, what)
        if isinstance(wanted, list):
            key = f"{deed.__name__} {wanted[0] if isinstance(wanted[0], str) else ''}".strip()
            self.words[key] = self.words.get(key, 0) + 1
        if before != texts_of(self.store, self.leases[name]) and deed.__name__ != "lose":
            check(self.leases[name].seq() > seq, f"{what}: changed, and the sequence number did not rise")
        self.check_all(what)


@test
def scripts_and_model_agree_at_every_step_and_nothing_stale_lands():
    print(f"# seed {SEED}, {STEPS} steps", flush=True)
    walk = Walk(SEED)
    for number in range(STEPS):
        walk.step(number)
    print("# " + ", ".join(f"{what} {count}" for what, count in sorted(walk.words.items())))
    check(STEPS < 4000 or len(walk.words) >= 18, sorted(walk.words))


main()
