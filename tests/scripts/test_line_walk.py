#!/usr/bin/python3
"""A random walk over everything that clients, desks and services may do with some leases and their lines, compared with a
model step by step. PAWL_SEED and PAWL_STEPS repeat one."""

import os
import random

from intents import same_stripe
from line_model import DESK_MS, NO_DESK, PLACE_MS, LeaseModel, World
from lua_test import EMPTY, EPOCH, RECORD, REMEMBER_MS, Holder, Lease, Resource, check, check_equal, main, test, text
from several import Told, desk_of, desk_says
from world.redis import Connection

SEED = int(os.environ.get("PAWL_SEED", random.SystemRandom().randrange(1 << 32)))
STEPS = int(os.environ.get("PAWL_STEPS", 2500))
NOW = 1000000
ALARM = "pawl:{store}:alarm"
IDS = [f"id-{i}" for i in range(10)]
WHO = ["ada", "bob", ""]
KINDS = [{}, {}, {}, {"mode": "shared"}, {"mode": "shared"}, {"mode": "permits", "permits": 2},
         {"mode": "permits", "permits": 3}]


class Tokens:
    """Of one stripe."""

    def __init__(self):
        self.last = 0

    def next(self):
        self.last += 1
        return self.last


class Walk:
    def __init__(self, seed):
        self.random, self.store, self.world = random.Random(seed), Told.store(), World(NOW)
        self.store.begin(NOW)
        names = same_stripe("orders:42", 2) + ["orders:42", "jobs"]
        self.leases = {name: Lease(self.store, name) for name in names}
        tokens = {one.stripe: Tokens() for one in self.leases.values()}
        self.models = {name: LeaseModel(self.world, tokens[one.stripe], REMEMBER_MS) for name, one in self.leases.items()}
        self.ear = Connection(self.store.redis.path)
        self.ear("PSUBSCRIBE", "pawl:{*}:d:*")
        self.published = Told(self.store, names)
        self.seen = {name: 0 for name in names}  # highest token
        self.asked = {name: [] for name in names}  # (lease_id, name of the hold) of those who wait, or did
        self.given = {name: [] for name in names}  # of those, who was handed it and may claim
        self.number, self.words, self.desks, self.wids, self.keeps = 0, {}, [], {}, {}
        self.judges, self.lost = seed % 2 == 0, set()  # lost: names of holds of an epoch before
        self.listed = set()  # those of which a list has ended what a restart had: handed on when the alarm rings
        self.handed = None  # (desk, message) that the last release was told
        for _ in range(3):
            self.open_desk()
        self.count_uses()

    def unique(self):
        self.number += 1
        return self.number

    # -- desks and time

    def open_desk(self):
        desk = desk_of(f"desk-{self.unique()}")
        check_equal(desk_says(self.store, desk, "open"), "beats")
        self.desks.append(desk)
        self.world.desks[desk] = self.world.now

    def desk_step(self):
        desk = self.random.choice(self.desks)
        if self.random.random() < 0.15:
            self.desks.remove(desk)  # silent from now on
            if self.random.random() < 0.3:
                check_equal(desk_says(self.store, desk, "close"), "closed")
                self.world.dies(desk)
            self.open_desk()
        self.beats()

    def beats(self):
        for desk in list(self.desks):
            lives = self.world.lives(desk)
            check_equal(desk_says(self.store, desk), "beats" if lives else "late", desk)
            if lives:
                self.world.desks[desk] = self.world.now
            else:
                self.desks.remove(desk)
                self.open_desk()

    def time_step(self):
        ms = self.random.choice((1, 1, 7, 7, 40, 40, 100, 300, 999, 1000, 3000))
        self.count_uses()
        for _ in range(ms // 1500 + 1):
            self.world.now += max(1, ms // (ms // 1500 + 1))
            self.store.at(self.world.now)
            if self.random.random() < 0.95:
                self.beats()

    def count_uses(self):
        """Somebody looks, by each of the two libraries."""
        for _ in range(2):
            self.store.call("shared/member/scripts/use_look.lua", ["pawl:{00}"], 0, 1, "h", "")

    # -- clients; each returns (what the script said, what the model says)

    def holder(self, name):
        """Often one who holds."""
        return self.random.choice(list(self.models[name].holds) * 5 + IDS)

    def is_refused(self, name, lease_id):
        """Whether it is another's than who asks from now on: mostly it is its own."""
        mine = WHO[int(lease_id[3:]) % len(WHO)]
        self.store.asker = self.random.choice([mine] * 12 + WHO) if self.judges else None
        return self.models[name].is_anothers(lease_id, self.store.asker)

    def name_of(self, name, lease_id):
        """Of the hold that is meant, or of any."""
        model = self.models[name]
        known = [one[2] for one in model.known() if one[0] == lease_id] + [one.name for one in model.holds.values() if one.lease_id == lease_id]
        return self.random.choice(["", "", "hold-another", *known, *known])

    def acquire(self, name):
        lease_id = self.random.choice(IDS + list(self.models[name].holds) + list(self.models[name].line))
        more = dict(self.random.choice(KINDS))
        terms = dict(more, hold=f"hold-{self.unique():07d}", ttl=self.random.choice((100, 1000, 5000, 60000, 60001)))
        if self.random.random() < 0.3:
            terms["delay"] = self.random.choice((50, 400, 2000))
        if self.random.random() < 0.1:
            terms["reentrant"] = True
        if self.random.random() < 0.8:
            dead = [desk for desk in self.world.desks if not self.world.lives(desk)]
            terms["desk"] = self.random.choice(dead if dead and self.random.random() < 0.1 else self.desks)
            terms["wid"] = str(self.unique())
            if self.random.random() < 0.3:
                terms["keep"] = self.keeps[lease_id, terms["hold"]] = self.random.choice((50, 4000, 60000))
        if self.random.random() < 0.3:
            terms |= {"key": self.random.choice("kl"), "digest": self.random.choice("ddde")}
        ttl, hold = terms["ttl"], terms["hold"]
        refused = self.is_refused(name, lease_id)
        given = {key: value for key, value in terms.items() if key not in ("ttl", "hold")}
        full = self.random.random() < 0.1
        wanted = ["not-yours"] if refused else self.models[name].acquire(lease_id, terms | {"who": self.store.asker or ""}, full)
        if wanted == ["queued"]:
            self.asked[name] = self.asked[name][-20:] + [(lease_id, hold)]
            self.wids[terms["desk"], "granted " + terms["wid"]] = (name, lease_id, hold)
        reply = self.leases[name].acquire(lease_id, hold, "ada", ttl, may="full" if full else "grant", **given)
        if reply[0] in ("claimed", "replayed", "entered"):
            return [reply[0], reply[2], reply[4], reply[7], reply[8]], wanted
        return {"granted": [reply[0], *reply[2::2]], "held": [reply[0], *reply[2:3]]}.get(reply[0], reply[:1] + reply[2:]), wanted

    def told(self, reply):
        """The parts of a grant that the model knows of, or word and reason."""
        return [reply[0], reply[2], reply[4], reply[7], reply[8]] if len(reply) > 8 else reply[:1] + reply[2:]

    def waiter(self, name):
        if self.given[name] and self.random.random() < 0.5:
            return self.given[name].pop(self.random.randrange(len(self.given[name])))
        return self.random.choice(self.asked[name][-8:] or [(IDS[0], "hold-nobody")])

    def claim(self, name):
        lease_id, hold = self.given[name].pop() if self.given[name] and self.random.random() < 0.8 else self.waiter(name)
        wanted = ["not-yours"] if self.is_refused(name, lease_id) else self.models[name].claim(lease_id, hold)
        return self.told(self.leases[name].run("claim", lease_id, hold, "grant")), wanted

    def again(self, name):
        (lease_id, hold), desk, wid = self.waiter(name), self.random.choice(self.desks), str(self.unique())
        refused = self.is_refused(name, lease_id)
        wanted = ["not-yours"] if refused else self.models[name].again_at(lease_id, hold, desk, wid)
        self.wids[desk, f"granted {wid}"] = (name, lease_id, hold)
        return self.told(self.leases[name].run("again", lease_id, hold, "grant", desk, wid)), wanted

    def leave(self, name):
        (lease_id, hold), how = self.waiter(name), self.random.choice(("late", "gone"))
        keep = self.keeps.get((lease_id, hold), 0)
        wanted = ["not-yours"] if self.is_refused(name, lease_id) else self.models[name].leave(lease_id, hold, how, keep)
        reply = self.leases[name].run("leave", lease_id, hold, "grant", how, keep)
        return reply[:1] + reply[3:4] + reply[7:], wanted

    def release(self, name):
        lease_id, how_many = self.holder(name), self.random.choice(("one", "all"))
        first = next(iter(self.models[name].line.values()), {"desk": ""})
        desk = self.random.choice(self.desks + ["", first["desk"], first["desk"]])
        refused, hold, model = self.is_refused(name, lease_id), self.name_of(name, lease_id), self.models[name]
        key = {"key": self.random.choice("klmn"), "digest": self.random.choice("ddde")} if self.random.random() < 0.3 else {}
        reply = self.leases[name].release(lease_id, hold, how_many=how_many, desk=desk, **key)
        self.handed = tuple(reply[3:5]) if len(reply) == 5 and reply[3] else None
        known = key and model.keys.get(lease_id, {}).get(key["key"])
        if refused or self.judges and model.is_strange(lease_id) and not known:
            return self.told(reply), ["not-yours"] if refused else ["lost", "unknown"]
        wanted = model.release(lease_id, hold, how_many == "all", desk, **key)
        if reply[0] == "handed":
            self.given[name] = self.given[name][-5:] + [(reply[13], reply[4])]
            check_equal(self.wids.pop((desk, f"granted {reply[12]}"))[1:], (reply[13], reply[4]))
            return self.told(reply), wanted
        return [reply[0]] + [one for one in reply[2:3] if one != ""], wanted

    def renew(self, name):
        lease_id, ttl = self.holder(name), self.random.choice((100, 2000))
        refused, hold = self.is_refused(name, lease_id), self.name_of(name, lease_id)
        wanted = ["not-yours"] if refused else self.models[name].renew(lease_id, hold, ttl)
        return self.told(self.leases[name].renew(lease_id, ttl, hold)), wanted

    def force(self, name):
        token = self.random.choice(["", ""] + [one.token for one in self.models[name].holds.values()] + [1])
        reply = self.leases[name].run("force_release", "grant", token, "because")
        return [reply[0], reply[-1] if reply[0] == "forced" else reply[2]], self.models[name].force(token)

    def look(self, name):
        reply, wanted = self.leases[name].look(), self.models[name].look()
        check_equal(reply[6], len(self.models[name].line), "how many wait")
        return [*reply[2:4], sorted(one[0] for one in reply[7])], wanted

    def history(self, name):
        reply, wanted = self.leases[name].run("history", "grant"), self.models[name].look()
        self.published.compare(name, reply, self.words)
        return wanted, wanted

    def refuse(self, name):
        """A gateway notes what it has refused."""
        holder = Holder(self.random.choice([1, self.seen[name], *(one.token for one in self.models[name].holds.values())]), EPOCH, "hold-another")
        reply = Resource(self.leases[name]).note(holder, ["refused", 0, self.random.choice(("stale-token", "unissued-token")), self.seen[name]])
        return reply[:1], ["noted"]

    def list(self, name):
        """What is over is void; one of many is ended. Page by page, what is in that state is listed once."""
        state, items, after = self.random.choice(("held", "waiting", "delayed")), [], ""
        while True:
            reply = self.leases[name].list(state=state, after=after, limit=self.random.choice((1, 2, 100)))
            items, after = items + reply[3], reply[2]
            if after == "":
                break
        for one, model in self.models.items():
            of_stripe = self.leases[one].stripe == self.leases[name].stripe
            if of_stripe and model.mode == "exclusive" and (model.line or state != "waiting"):
                for hold in [hold for hold in model.holds.values() if not hold.lives(self.world.now)]:
                    hold.is_void("expired")
            if of_stripe and model.mode != "exclusive" and (model.line or state != "waiting"):
                if any(hold.how for hold in model.holds.values()):
                    self.listed.add(one)
                model.settle()
        wanted = {one: self.state_of(one) for one, lease in self.leases.items() if lease.stripe == self.leases[name].stripe}
        in_it = sorted(one for one, its in wanted.items() if its == state or state == "waiting" and self.models[one].line)
        check_equal([(one[0], one[1], one[5]) for one in items], [(one, wanted[one], len(self.models[one].line)) for one in in_it], state)
        return "listed", "listed"

    def state_of(self, name):
        """As a list has it: of what is exclusive and over nobody has begun the delay yet."""
        model, now = self.models[name], self.world.now
        if any(hold.lives(now) for hold in model.holds.values()):
            return "held"
        over = [hold for hold in model.holds.values() if "delay" in hold.terms and hold.how != "returned"]
        until = max([model.delayed_until] + [min(now, hold.deadline) + hold.terms["delay"] for hold in over])
        return "delayed" if now < until else "free"

    # -- services

    def restart(self, _):
        """Another epoch, and perhaps without what was held. Then it is counted anew who holds how much."""
        stripes, is_complete = [f"pawl:{{{i:02x}}}" for i in range(256)], self.random.random() < 0.3
        store, epoch, alive, clock, ceiling = text(self.store.redis("HGET", stripes[0], "life")).split(" ")
        epoch = str(int(epoch) + 1)
        for stripe in stripes:
            self.store.redis("HSET", stripe, "life", " ".join((store, epoch, alive if is_complete else epoch, clock, ceiling)))
        self.store.redis("HSET", RECORD, "epoch", epoch)
        for model in self.models.values() if not is_complete else []:
            model.restart()
            self.lost |= {one.name for one in model.holds.values()}
        for stripe in {lease.stripe for lease in self.leases.values()}:
            self.store.call("lease/scripts/use_again.lua", [stripe])
        return 0, 0

    def ring(self, _):
        """All alarms that are due; afterwards nobody waits for what he could have."""
        for name in text(self.store.redis("ZRANGEBYSCORE", ALARM, "-inf", self.world.now)):
            check_equal(self.leases[name].run("handoff", "grant")[::2], ["handed-on", ""])
            self.models[name].hand_on()
            self.listed.discard(name)
        for name, model in self.models.items():
            if name in self.listed:
                continue
            living = [terms for terms in model.line.values() if model.stands(terms)]
            first = next(iter(model.line.values()), None)
            check(not (first and model.stands(first) and model.fits(first)), f"{name}: {first} could have it")
            check(model.holds or self.world.now < model.delayed_until or not living or first not in living,
                  f"{name} is free, and {living} wait")
        return 0, 0

    def sweep(self, name):
        lease = self.leases[name]
        due = text(self.store.redis("ZRANGEBYSCORE", lease.due, "-inf", self.world.now))
        reply = lease.sweep()
        for one in due:
            if one.startswith(":k:") and one[3:].split("/")[0] in self.models:
                self.models[one[3:].split("/")[0]].forget_keys(one.split("/")[1])
            elif one in self.models:
                self.models[one].sweep()
            elif one.startswith(":d:") and self.world.now - self.world.desks.get(lease.stripe + one, 0) > DESK_MS + PLACE_MS:
                self.world.desks.pop(lease.stripe + one, None)
        return reply[0], "swept"

    # -- what must be so after each step

    def check_messages(self, what):
        heard = []
        self.store.redis("PUBLISH", "pawl:{00}:d:none", "end")
        while True:
            _, _, desk, message = text(self.ear._reply())
            if message == "end":
                break
            if message != "beat" and not desk.endswith(NO_DESK):
                heard.append((desk, message))
            if (desk, message) in self.wids:
                name, lease_id, hold = self.wids.pop((desk, message))
                self.given[name] = self.given[name][-5:] + [(lease_id, hold)]
        check_equal(heard, self.world.told, what)
        check_equal(self.handed in heard or self.handed is None, True, what)  # who releases is told no more than the desk
        self.handed = None
        self.world.told.clear()

    def raw_holds(self, lease, keys):
        """Records of those who hold, live or not."""
        record = keys.get(lease.key, {})
        many = [value for key, value in keys.items() if key.startswith(f"{lease.stripe}:h:{lease.name}/")]
        check(not many or record.get("M"), f"{lease.name} has {many}, but {record}")
        check_equal(len(many), len(keys.get(f"{lease.stripe}:x:{lease.name}", {})), "the index")
        check_equal(2 * len(many), len(keys.get(f"{lease.stripe}:n:{lease.name}", {})), "the names")
        return many if record.get("M") else [record] if record.get("s") == "held" else []

    def check_lease(self, name, keys, what):
        lease, model = self.leases[name], self.models[name]
        raw = self.raw_holds(lease, keys)
        live = [one for one in raw if self.world.now < int(one["d"])]
        mode = keys.get(lease.key, {}).get("M", "exclusive")
        check(len(live) <= {"exclusive": 1, "shared": 99, "permits": model.permits}[mode], f"{what}: {live}")
        check_equal(sorted((one["i"], int(one["t"]), int(one["d"]), one["h"], int(one["n"])) for one in raw),
                    sorted((one.lease_id, one.token, one.deadline, one.name, one.entered) for one in model.holds.values()), what)
        known = {one.split("/")[1]: list(value) for one, value in keys.items() if one.startswith(f"{lease.stripe}:k:{name}/")}
        check_equal({one: sorted(value) for one, value in known.items()}, {one: sorted(value) for one, value in model.keys.items()}, what)
        line = keys.get(f"{lease.stripe}:q:{name}", {})
        check_equal([one for one, _ in sorted(line.items(), key=lambda item: (item[1], item[0]))], list(model.line), what)
        check_equal(sorted(keys.get(f"{lease.stripe}:w:{name}", {})), sorted(line), what)
        check_equal({one: int(at) for one, at in keys.get(f"{lease.stripe}:p:{name}", {}).items()},
                    {one: terms["until"] for one, terms in model.line.items() if "until" in terms}, what)
        alarm = keys.get(ALARM, {}).get(name)
        check_equal(alarm is not None, bool(line), f"{what}: alarm")
        if line:
            latest = max((one.deadline for one in model.holds.values()), default=0) if model.mode == "exclusive" else 0
            check(alarm <= max(latest, self.world.now + 1000), f"{what}: the alarm rings at {alarm}")
        token = int(keys.get(lease.key, {}).get("t", 0))
        check_equal(token, model.token, what)
        check(token in (0, self.seen[name]) or token > self.seen[name], f"{what}: {token} after {self.seen[name]}")
        self.seen[name] = max(self.seen[name], token)

    def check_uses(self, keys, what):
        for stripe in {lease.stripe for lease in self.leases.values()}:
            uses = {}
            for name in [name for name, lease in self.leases.items() if lease.stripe == stripe]:
                for who in [one.who for one in self.models[name].holds.values() if one.who and one.name not in self.lost]:
                    uses["h" + who] = str(int(uses.get("h" + who, 0)) + 1)
            check_equal(keys.get(f"{stripe}:o", {}), uses, what)

    def check_all(self, what):
        self.check_messages(what)
        keys = self.store.dump("pawl:{*}:*")
        for stripe in {lease.stripe for lease in self.leases.values()}:
            keys |= self.store.dump(stripe)
        for name in self.leases:
            self.check_lease(name, keys, what)
        self.check_uses(keys, what)

    # --

    def step(self, number):
        deeds = ((self.acquire, 10), (self.claim, 4), (self.again, 1), (self.leave, 1.5), (self.release, 4), (self.renew, 2), (self.force, 0.4),
                 (self.look, 1), (self.history, 1), (self.refuse, 1), (self.list, 0.5), (self.restart, 0.2), (self.ring, 3), (self.sweep, 1))
        if self.random.random() < 0.25:
            self.time_step()
        if self.random.random() < 0.04:
            self.desk_step()
        deed = self.random.choices([one for one, _ in deeds], [weight for _, weight in deeds])[0]
        name = self.random.choice(list(self.leases))
        said, wanted = deed(name)
        what = f"step {number}: {deed.__name__} of {name} at {self.world.now}: {said}"
        check_equal(said, wanted, what)
        key = f"{deed.__name__} {wanted[0] if isinstance(wanted, list) else ''}".strip()
        self.words[key] = self.words.get(key, 0) + 1
        self.check_all(what)

    def finish(self):
        """All is left and released; nothing stays."""
        self.world.now += 2 * DESK_MS + PLACE_MS + 1  # nobody lives, and no place is kept
        self.store.at(self.world.now)
        self.count_uses()
        for lease in self.leases.values():
            lease.run("force_release", "grant", "", "")
        self.world.now += 60000 + 2000 + REMEMBER_MS + 1
        self.store.at(self.world.now)
        for stripe in {key[:9] for key in text(self.store.redis("KEYS", "pawl:{*:due"))}:
            self.store.call("lease/scripts/sweep.lua", [stripe, stripe + ":due"], 100, REMEMBER_MS, "grant")
        check_equal(sorted(self.store.dump()), EMPTY)


@test
def scripts_and_model_agree_at_every_step_and_nothing_is_left_at_the_end():
    print(f"# seed {SEED}, {STEPS} steps", flush=True)
    walk = Walk(SEED)
    for number in range(STEPS):
        walk.step(number)
    walk.finish()
    print("# " + ", ".join(f"{what} {count}" for what, count in sorted(walk.words.items())))
    check(EPOCH and len(walk.words) > 25, sorted(walk.words))


main()
