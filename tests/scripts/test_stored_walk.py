#!/usr/bin/python3
"""A random walk of what is stored under the leases of one stripe, by the check `live` and by marks, of the store's own tokens
and of another's, with Idempotency-Keys, preconditions, deletions that are remembered, losses, and so few marks that they are
dropped all the time: the scripts and a model agree at every step, and nothing stale gets in. PAWL_SEED and PAWL_STEPS repeat one."""

import os
import random

from intents import same_stripe
from lua_test import EPOCH, RECORD, REMEMBER_MS, Holder, Lease, Resource, Store, check, check_equal, check_in, main, stripe_do, test, text

SEED = int(os.environ.get("PAWL_SEED", random.SystemRandom().randrange(1 << 32)))
STEPS = int(os.environ.get("PAWL_STEPS", 3000))
NOW, TTL = 1000000, 1000
MARKS, FEW = "gateway/scripts/lib/marks.lua", ("MARKS_MAX, MARKS_KEPT, MARKS_DROPPED_AT_ONCE = 4096, 3584, 256",
                                               "MARKS_MAX, MARKS_KEPT, MARKS_DROPPED_AT_ONCE = 5, 4, 1")
OTHER = "another-store".ljust(24, "-")
LIVE, MARK, FOREIGN = "live", "mark", f"mark {OTHER}"
CHECKS = (LIVE, LIVE, LIVE, MARK, FOREIGN)


class Grant(Holder):
    def __init__(self, lease_id, deadline, **more):
        super().__init__(**more)
        self.lease_id, self.deadline, self.is_over, self.at = lease_id, deadline, False, (self.epoch, self.token)

    def by(self, how):
        return Holder(self.token, self.epoch, self.hold, f"{self.mode}\n{how}")


class Marks:
    """What was let through by tokens of one store, as far as it is known; truly: and was lost."""

    def __init__(self, key, names):
        self.key, self.names, self.floor, self.truly = key, names, (), {name: (0, 0) for name in names}
        self.forget()

    def forget(self):
        self.exclusive, self.shared = ({name: (0, 0) for name in self.names} for _ in range(2))

    def passes(self, name, grant):
        seen = self.shared if grant.mode == "shared" else self.exclusive
        seen[name], self.truly[name] = max(seen[name], grant.at), max(self.truly[name], grant.at)

    def is_below(self, name, grant, floor):
        known = self.exclusive[name] if grant.mode == "shared" else max(self.exclusive[name], self.shared[name])
        return grant.at < max(known, floor)


class Version:
    """What stands under a key, or was deleted and is remembered. made: the request that did it, if it had a key."""

    def __init__(self, is_here, etag="", body="", kind="", made=None, due=0):
        self.is_here, self.etag, self.body, self.kind, self.made, self.due = is_here, etag, body, kind, made, due


class Walk:
    def __init__(self, seed):
        self.random, self.store, self.now, self.epoch, self.number = random.Random(seed), Store.with_text(MARKS, *FEW), NOW, EPOCH, 0
        self.store.begin(NOW)
        first = "orders:42"
        names = [first, *same_stripe(first, 8)]
        self.leases = {name: Lease(self.store, name) for name in names}
        self.stripe = self.leases[first].stripe
        self.resources = {name + rest: Resource(lease, rest) for name, lease in self.leases.items() for rest in ("", "/lines/7")}
        self.grants, self.words, self.named = {name: [] for name in names}, {}, (0, 0)  # named: by an operator, None: it is to be
        own = Marks(self.stripe + ":marks", names)
        self.marks = {LIVE: own, MARK: own, FOREIGN: Marks(f"{self.stripe}:marks:{OTHER}", names)}
        self.versions, self.asked = {key: Version(False) for key in self.resources}, []

    def unique(self):
        self.number += 1
        return self.number

    # -- time, leases, losses

    def is_live(self, grant):
        return not grant.is_over and self.now < grant.deadline and grant.epoch == self.epoch

    def time_step(self):
        self.now += self.random.choice((1, 1, 50, 50, 300, TTL - 1, REMEMBER_MS, TTL + REMEMBER_MS))
        self.store.at(self.now)

    def grant(self, key):
        name = self.resources[key].lease.name
        lease, number, mode = self.leases[name], self.unique(), self.random.choice(("exclusive", "exclusive", "exclusive", "shared"))
        live = [one for one in self.grants[name] if self.is_live(one)]
        for one in live if "exclusive" in (mode, *(one.mode for one in live)) else []:
            check_equal(lease.release(one.lease_id)[0], "released")
            one.is_over = True
        hold, more = f"hold-{number:07}", {"mode": mode} if mode == "shared" else {}
        ttl = self.random.choice((TTL, 400 * TTL, 400 * TTL))
        reply = lease.acquire(f"id-{number}", hold, ttl=ttl, **more)
        check_equal(reply[0], "granted")
        self.grants[name] = self.grants[name][-5:] + [Grant(f"id-{number}", self.now + ttl, token=reply[2], epoch=self.epoch, hold=hold, mode=mode)]
        return "granted", "granted"

    def release(self, key):
        name = self.resources[key].lease.name
        for one in self.grants[name]:
            if self.is_live(one):
                check_equal(self.leases[name].release(one.lease_id)[0], "released")
                one.is_over = True
        return "released", "released"

    def sweep(self, key):
        self.resources[key].lease.sweep()
        forgotten = [one for one, version in self.versions.items() if version.made and not version.is_here and version.due <= self.now]
        check_equal(self.resources[key].forget()[2], len(forgotten))
        for one in forgotten:
            self.versions[one] = Version(False)
        return "swept", "swept"

    def lose(self, _):
        """A life that is not proven complete: all holds of before are over, what they had as a key is void, and marks may be gone."""
        self.epoch, self.named = self.epoch + 1, None
        stripe_do(self.store.redis, "HSET", self.stripe, "epoch", self.epoch, "alive", self.epoch)
        self.store.redis("HSET", RECORD, "epoch", self.epoch, "lost", self.epoch)
        for marks in self.marks.values() if self.random.random() < 0.5 else []:
            self.store.redis("DEL", marks.key)
            marks.floor = ()
            marks.forget()
        return "lost", "lost"

    def name(self, _):
        """An operator has looked at the other store."""
        if self.named is not None:
            return "idle", "idle"
        self.named = max(self.marks[FOREIGN].truly.values())
        reply = self.store.run("api/cli/scripts/marks.lua", [RECORD], OTHER, *self.named, "force")
        return reply, ["named", str(self.epoch)]

    # -- what is asked

    def reason(self, name, grant, how, deed):
        """Why it is refused: one of these; nothing: it is let through."""
        if how == LIVE:
            if self.is_live(grant):
                return ("wrong-mode",) if grant.mode == "shared" and deed != "read" else ()
            return ("stale-token", "lease-expired")
        if grant.mode == "shared" and deed != "read":
            return ("wrong-mode",)
        marks = self.marks[how]
        if how == FOREIGN:
            is_below = marks.is_below(name, grant, max(marks.floor, self.named or (0, 0)))
            return ("stale-token",) if is_below else ("marks-lost",) if self.named is None else ()
        granted = (self.epoch, int(self.store.redis("HGET", self.stripe, "counter")))  # a floor, until the first has gone by mark
        is_last = self.resources[name].mark()[4] == grant.token
        if marks.is_below(name, grant, (0, 0) if is_last else marks.floor or granted):
            return ("stale-token", "lease-expired")
        return ("lease-expired", "stale-token") if grant.epoch < self.epoch else ()

    def passes(self, name, grant, how):
        if how != LIVE and grant.mode != "shared":
            check(grant.at >= self.marks[how].truly[name], f"{grant.at} of {name} passes by {how} after {self.marks[how].truly[name]}")
        self.marks[how].passes(name, grant)

    def matches(self, version, if_match, if_none_match):
        def lists(tags, weakly):
            return tags == "*" or any(tag == f'"{version.etag}"' or weakly and tag == f'W/"{version.etag}"' for tag in tags.split(", "))
        return (not if_match or version.is_here and lists(if_match, False)) and not (if_none_match and version.is_here and lists(if_none_match, True))

    def tags(self, version):
        own = version.etag or "none-0"
        return self.random.choice(("",) * 8 + ("*", f'"{own}"', f'W/"{own}"', f'"other-1", "{own}"', '"other-1"'))

    def change(self, key):
        """A PUT or a DELETE: a new one, or one of before again, by the same token or another."""
        resource, version, number = self.resources[key], self.versions[key], self.unique()
        name, before = resource.lease.name, [one for one in self.asked if one["on"] == key]
        if not self.grants[name]:
            return "idle", "idle"
        grant = self.grants[name][-1] if self.random.random() < 0.8 else self.random.choice(self.grants[name])
        how = self.random.choice(CHECKS)
        if before and self.random.random() < 0.4:
            asked = self.random.choice(before)
            grant = asked["grant"] if self.random.random() < 0.5 else grant
        else:
            asked = {"on": key, "grant": grant, "deletes": self.random.random() < 0.3, "key": self.random.choice(("", "", "k1", "k2")),
                     "if_match": self.tags(version), "if_none_match": self.tags(version), "body": f"body {number}"}
            self.asked = self.asked[-60:] + [asked]
        digest = asked["key"] and (asked["deletes"] and "deletes" or asked["body"])
        given = {"if_match": asked["if_match"], "if_none_match": asked["if_none_match"], "key": asked["key"], "digest": digest}
        wanted = self.changed(key, version, grant, how, asked, digest, number)
        if asked["deletes"]:
            reply = resource.remove(grant.by(how), **given)
        else:
            reply = resource.write(grant.by(how), f"tag-{number}", asked["body"], kind="text/x", **given)
        if reply[0] == "refused":
            check_in(reply[2], wanted[1:])
            return ["refused"], wanted[:1]
        return [reply[0], *(reply[2:4] if reply[0] in ("written", "repeated") else [])], wanted

    def changed(self, key, version, grant, how, asked, digest, number):
        """What the model says, and does."""
        name, made = self.resources[key].lease.name, version.made
        same = asked["key"] and made and made["key"] == asked["key"]
        if same and made["digest"] == digest and made["grant"] is grant:
            return ["repeated", made["answer"], version.etag]
        reasons = self.reason(name, grant, how, "write")
        if reasons:
            return ["refused", *reasons]
        if same and (made["grant"].epoch == self.epoch or how == FOREIGN):
            if made["digest"] != digest:
                return ["key-reused"]
            self.passes(name, grant, how)
            return ["repeated", made["answer"], version.etag]
        if not self.matches(version, asked["if_match"], asked["if_none_match"]):
            return ["mismatch"]
        if asked["deletes"] and not version.is_here:
            if how != LIVE:
                self.passes(name, grant, how)
            return ["missing"]
        self.passes(name, grant, how)
        answer = 201 if not version.is_here and not asked["deletes"] else 204
        made = {"key": asked["key"], "digest": digest, "grant": grant, "answer": answer} if asked["key"] else None
        if asked["deletes"]:
            self.versions[key] = Version(False, made=made, due=self.now + REMEMBER_MS)
            return ["removed"]
        self.versions[key] = Version(True, f"tag-{number}", asked["body"], "text/x", made)
        return ["written", answer, f"tag-{number}"]

    def look(self, key):
        """A fenced read, or the check endpoint."""
        resource, version = self.resources[key], self.versions[key]
        name, how, deed = resource.lease.name, self.random.choice(CHECKS), self.random.choice(("read", "check"))
        if not self.grants[name]:
            return "idle", "idle"
        grant = self.random.choice(self.grants[name][-3:])
        reasons = self.reason(name, grant, how, deed)
        reply = resource.read_fenced(grant.by(how)) if deed == "read" else resource.check(grant.by(how))
        if reply[0] == "refused":
            check_in(reply[2], reasons)
            return ["refused"], ["refused"]
        if not reasons:
            self.passes(name, grant, how)
        return [reply[0]], ["refused" if reasons else "accepted" if deed == "check" else "found" if version.is_here else "missing"]

    # -- what must be so after each step

    def check_all(self, key, what):
        version, resource = self.versions[key], self.resources[key]
        told = resource.read()
        if version.is_here:
            check_equal([told[0], *told[3:]], ["found", version.etag, version.kind, "", version.body], what)
            check_equal(resource.read(f'"{version.etag}"')[0], "unchanged", what)
        else:
            check_equal(told[0], "missing", what)
        here = {one: its for one, its in self.versions.items() if its.is_here}
        listed = self.store.call("gateway/scripts/resource_list.lua", [resource.lease.stripe, resource.lease.resources], "", "", 1000)
        check_equal([(one[0], one[1], one[2]) for one in listed[3]], [(one, len(here[one].body), here[one].etag) for one in sorted(here)], what)
        own = [len(its.body) for one, its in here.items() if one.split("/")[0] == resource.lease.name]
        check_equal(resource.mark()[5:], [len(own), sum(own)], what)
        for how in (MARK, FOREIGN):
            marks = self.marks[how]
            floor = tuple(int(one) for one in (text(self.store.redis("HGET", marks.key, "")) or "").split())
            check(floor >= marks.floor, f"{what}: the floor of {marks.floor} was lowered to {floor}")
            marks.floor = floor

    def step(self, number):
        deeds = ((self.change, 20), (self.look, 6), (self.grant, 2), (self.release, 0.4), (self.sweep, 3), (self.lose, 0.06), (self.name, 0.5))
        if self.random.random() < 0.07:
            self.time_step()
        deed = self.random.choices([one for one, _ in deeds], [weight for _, weight in deeds])[0]
        key = self.random.choice(list(self.resources))
        said, wanted = deed(key)
        what = f"step {number}: {deed.__name__} of {key} at {self.now}"
        check_equal(said, wanted, what)
        word = f"{deed.__name__} {wanted[0] if isinstance(wanted, list) else wanted}"
        self.words[word] = self.words.get(word, 0) + 1
        self.check_all(key, what)


@test
def scripts_and_model_agree_at_every_step_and_nothing_stale_gets_in():
    print(f"# seed {SEED}, {STEPS} steps", flush=True)
    walk = Walk(SEED)
    for number in range(STEPS):
        walk.step(number)
    print("# " + ", ".join(f"{what} {count}" for what, count in sorted(walk.words.items())))
    check(STEPS < 3000 or len(walk.words) >= 16, sorted(walk.words))


main()
