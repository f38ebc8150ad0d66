#!/usr/bin/python3
"""A random walk of those who want several leases, and those who want one, with a session or without, over few leases.

    WALK_SEED=N WALK_STEPS=N tests/scripts/test_all_walk.py     another walk, or a longer one

At every step: whoever waits holds nothing, whoever was handed on holds all; of two in the same lines one is in front in
each; tokens rise; nobody whose turn it is goes without. At the end everybody who waits gets his turn."""

import os
import random

from lua_test import EMPTY, REMEMBER_MS, Lease, check, check_equal, main, test, text
from several import ALARM, All, Ear, Session, Told, forgotten, line_of, ring

SEED, STEPS = int(os.environ.get("WALK_SEED", 8)), int(os.environ.get("WALK_STEPS", 600))
NAMES = ["a", "b", "c", "d", "e"]
DESKS = ["pawl:{07}:d:desk-1", "pawl:{08}:d:desk-2"]
MODES = [{}, {}, {}, {"mode": "shared"}, {"mode": "shared"}, {"mode": "permits", "permits": 2}]
HAPPENS = ("granted at once", "queued for several", "queued for one", "claimed several", "claimed one", "gone", "late",
           "superseded", "not claimed in time", "a desk dies", "expired", "delayed", "released", "forced", "replayed",
           "a session ends", "a session is over", "session lost")
SESSION_MS = 2500


class Waiter:
    """Somebody with a lease_id. names: what he wants; state: "waits" | "told" | "holds"."""

    def __init__(self, store, number, names, more):
        self.id, self.hold, self.names, self.more = f"id-{number}", f"hold-{number:07}", names, more
        self.leases = All(store, *names) if len(names) > 1 else Lease(store, names[0])
        self.wid, self.desk, self.state, self.has = str(number), None, None, set(names)
        self.session = more.get("session")

    def acquire(self, ttl, **wait):
        return self.leases.acquire(self.id, self.hold, self.id, ttl, **self.more, **wait)

    def claim(self):
        if len(self.names) > 1:
            return self.leases.claim(self.id, self.hold)
        return self.leases.run("claim", self.id, self.hold, "grant")

    def leave(self, how):
        if len(self.names) > 1:
            return self.leases.leave(how, self.id, self.hold)
        return self.leases.run("leave", self.id, self.hold, "grant", how, 0)


class World:
    def __init__(self, seed):
        self.random, self.store, self.now, self.number = random.Random(seed), Told.store(), 1000000, 0
        self.store.begin(self.now)
        self.leases = {name: Lease(self.store, name) for name in NAMES}
        self.ears = [Ear(self.store, desk) for desk in DESKS]
        self.dead = {}  # desk -> since when
        self.people, self.tokens, self.counts = [], {name: 0 for name in NAMES}, {}
        self.stripes = {lease.stripe for lease in self.leases.values()}
        self.sessions, self.silent = {}, set()  # key -> one that lives; keys of those that nobody renews any more
        self.beat()
        self.published = Told(self.store, NAMES)

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def those(self, *states):
        return [one for one in self.people if one.state in states]

    def some(self, *states):
        fit = self.those(*states)
        return self.random.choice(fit) if fit else None

    def beat(self):
        for desk in DESKS:
            if desk not in self.dead:
                self.store.redis("HSET", desk, "at", self.now)

    def pass_time(self, ms):
        for part in [1000] * (ms // 1000) + [ms % 1000]:
            self.now += part
            self.store.at(self.now)
            self.beat()
            for key, one in list(self.sessions.items()):
                if key not in self.silent:
                    check_equal(one.renew()[0], "renewed", key)
                elif one.look()[0] == "lost":
                    del self.sessions[key]
                    self.count("a session is over")
            ring(self.store)

    def session_step(self):
        """One is opened, ends, or is renewed no more."""
        if len(self.sessions) < 2:
            self.number += 1
            one = Session(self.store, f"session-{self.number}".ljust(22, "x"))
            check_equal(one.open(ttl=SESSION_MS)[0], "opened")
            self.sessions[one.key] = one
            self.stripes.add(one.stripe)
            return
        key = self.random.choice(sorted(self.sessions))
        if self.random.random() < 0.5:
            self.silent.add(key)
            return
        one = self.sessions.pop(key)
        reply = one.end(most=self.random.choice((1, 2, 64)))
        while reply[2] == "more":
            reply = one.end()
        check_equal(reply[0], "ended", key)
        self.count("a session ends")
        ring(self.store)

    def history(self):
        name = self.random.choice(NAMES)
        self.published.compare(name, self.leases[name].run("history", "grant"), self.counts)

    def sweep(self, count=2):
        for stripe in self.random.sample(sorted(self.stripes), count):
            self.store.call("lease/scripts/sweep.lua", [stripe, stripe + ":due"], 100, REMEMBER_MS, "grant")
        ring(self.store)

    def has_session(self, one):
        return one.session is None or one.session in self.sessions and self.sessions[one.session].look()[0] == "looked"

    # -- what happens

    def ask(self, more=None):
        self.number += 1
        names = self.random.sample(NAMES, self.random.choice((1, 2, 2, 3, 4)))
        one = Waiter(self.store, self.number, names, dict(self.random.choice(MODES) if more is None else more))
        if self.random.random() < 0.15:
            one.more["delay"] = 200
        if more is None and self.sessions and self.random.random() < 0.3:
            session = self.sessions[self.random.choice(sorted(self.sessions))]
            one.more |= session.terms()
            one.session = session.key
        self.send(one)

    def send(self, one):
        one.desk = self.random.choice([desk for desk in DESKS if desk not in self.dead])
        before = {name: line_of(self.leases[name]) for name in one.names}
        reply = one.acquire(self.random.choice((300, 1000, 4000)), desk=one.desk, wid=one.wid)
        overtaken = [other for name in one.names for other in line_of(self.leases[name]) if other in before[name]]
        check(reply[0] != "granted" or not overtaken, f"{one.id} has overtaken {overtaken}")
        if reply[0] in ("granted", "queued", "claimed"):  # claimed: what it has asked for before came just now
            one.state = "waits" if reply[0] == "queued" else "holds"
            self.people.append(one)
            self.count("granted at once" if reply[0] != "queued"
                       else "queued for several" if len(one.names) > 1 else "queued for one")
        else:
            check_equal(reply[0], "mismatch" if self.has_session(one) else reply[0])

    def ask_again(self):
        """The same lease_id, for the same leases or others, while it waits or holds."""
        before = self.some("waits", "holds")
        if before is None or not before.has >= set(before.names):
            return
        self.number += 1
        change = before.state == "waits" and self.random.random() < 0.5
        names = self.random.sample(NAMES, self.random.choice((1, 2, 3))) if change else before.names
        one = Waiter(self.store, self.number, names, before.more)
        one.id, one.desk = before.id, before.desk
        if before.state == "holds":
            if one.acquire(500)[0] == "replayed":
                self.count("replayed")
        elif set(names) & set(before.names) and one.desk not in self.dead:
            self.send(one)

    def hear(self):
        for desk, ear in zip(DESKS, self.ears):
            for message in ear.heard():
                word, wid = message.split(" ")
                one = next((one for one in self.those("waits", "told") if one.wid == wid), None)
                if one and word == "superseded":
                    self.people.remove(one)
                    self.count("superseded")
                elif one and word == "session-lost":
                    check(not self.has_session(one), one.id)
                    self.people.remove(one)
                    self.count("session lost")
                elif one and one.desk == desk and word == "granted":
                    one.state = "told"

    def claim(self):
        one = self.some("told")
        if one is None:
            return
        reply = one.claim()
        if reply[0] == "claimed":
            one.state = "holds"
            self.count("claimed several" if len(one.names) > 1 else "claimed one")
        else:
            self.people.remove(one)
            self.count("not claimed in time")

    def leave(self):
        one, how = self.some("waits", "told"), self.random.choice(("gone", "late"))
        if one is None:
            return
        reply = one.leave(how)
        if reply[0] != "granted":
            check_equal(reply[0], "left")
            self.people.remove(one)
            self.count(how)

    def release(self):
        one = self.some("holds")
        if one is None:
            return
        name = self.random.choice(sorted(one.has))
        reply = self.leases[name].release(one.id)
        self.count("released" if reply[0] == "released" else "expired")
        one.has.discard(name)
        if not one.has:
            self.people.remove(one)

    def force(self):
        lease = self.leases[self.random.choice(NAMES)]
        lease.run("force_release", "grant", "", "")
        self.count("forced")

    def wait(self):
        self.pass_time(self.random.choice((10, 50, 200, 900, 3000)))

    def die(self):
        """A desk dies, and comes back under the same name long after: in the service it gets another one."""
        if self.dead:
            return
        desk = self.random.choice(DESKS)
        self.dead[desk] = self.now
        self.store.redis("HDEL", desk, "at")
        self.people = [one for one in self.people if one.desk != desk or one.state == "holds"]
        self.pass_time(1000)
        for lease in self.leases.values():
            lease.run("handoff", "grant")
        ring(self.store)
        for ear in self.ears:
            if ear.desk == desk:
                ear.heard()
        gone = [one for name in NAMES for one in line_of(self.leases[name]) if not self.known(one)]
        if not gone:
            del self.dead[desk]
        self.beat()
        self.count("a desk dies")

    def known(self, lease_id):
        return any(one.id == lease_id for one in self.people)

    def step(self):
        acts = [self.ask] * 5 + [self.claim] * 6 + [self.release] * 6 + [self.wait] * 4 + [self.leave, self.ask_again, self.sweep]
        acts += [self.session_step] if self.random.random() < 0.5 else []
        acts += [self.force] if self.random.random() < 0.3 else []
        acts += [self.die] if self.random.random() < 0.4 else []
        acts += [self.history] * 2
        self.random.choice(acts)()
        if self.dead:
            gone = [one for name in NAMES for one in line_of(self.leases[name]) if not self.known(one)]
            if not gone:
                self.dead.clear()
                self.beat()
        self.hear()

    # -- what must hold

    def holders(self, name):
        """{lease_id: whether it is unclaimed} of those who hold it now."""
        lease = self.leases[name]
        if lease.field("s") != "held":
            return {}
        ids = text(self.store.redis("ZRANGE", f"{lease.stripe}:x:{name}", 0, -1)) if lease.field("M") else [None]
        holds = [lease.record(one) for one in ids]
        return {one["i"]: "c" in one for one in holds if self.is_live(one)}

    def is_live(self, hold):
        if "v" in hold or "x" in hold and self.store.redis("HGET", hold["x"], "s") != b"live":
            return False
        until = self.store.redis("HGET", hold["x"], "d") if "x" in hold else hold["d"]
        return int(until) > self.now and ("x" not in hold or not hold.get("c") or int(hold["d"]) > self.now)

    def is_free_for(self, one, name, holders):
        lease = self.leases[name]
        if int(lease.field("b") or 0) > self.now:
            return False
        if not holders[name]:
            return True
        mode, permits = lease.field("M"), int(lease.field("N") or 0)
        if mode is None or mode != one.more.get("mode"):
            return False
        return mode == "shared" or permits == one.more["permits"] and len(holders[name]) < permits

    def check(self):
        holders = {name: self.holders(name) for name in NAMES}
        lines = {name: line_of(self.leases[name]) for name in NAMES}
        for one in self.those("waits"):
            has = [name for name in one.names if one.id in holders[name]]
            check_equal(has, [], f"{one.id} waits for {one.names}")
            check_equal([name for name in NAMES if one.id in lines[name]], sorted(one.names), one.id)
        for name, line in lines.items():
            for other in NAMES:
                both = [one for one in line if one in lines[other]]
                check_equal(both, [one for one in lines[other] if one in line], f"order in {name} and {other}")
        for one in self.those("waits"):
            turn = all(lines[name][0] == one.id and self.is_free_for(one, name, holders) for name in one.names)
            rings = any(int(self.store.redis("ZSCORE", ALARM, name) or self.now + 1) <= self.now for name in one.names)
            check(not turn or rings or one.desk in self.dead or not self.has_session(one), f"{one.id} could have {one.names}, and has not")
        self.check_parts(holders)
        for name, lease in self.leases.items():
            token = int(lease.field("t") or 0)
            check(token == 0 or token >= self.tokens[name], f"{name}: token {token} after {self.tokens[name]}")
            self.tokens[name] = max(token, self.tokens[name])  # 0: it is forgotten
            if int(lease.field("b") or 0) > self.now:
                self.count("delayed")
        waiting = {name for name in NAMES if lines[name]}
        check(waiting <= set(text(self.store.redis("ZRANGE", ALARM, 0, -1))), f"an alarm for each of {waiting}")

    def check_parts(self, holders):
        """What was handed on and not claimed is there as a whole, unless an administrator or the time has ended it."""
        for one in self.those("told"):
            has = [name for name in one.names if holders[name].get(one.id)]
            if not self.counts.get("forced") and has:
                check_equal(has, one.names, f"{one.id} was handed on")
        for name in NAMES:
            modes = {one.more.get("mode") for one in self.those("holds") if one.id in holders[name]}
            check(len(modes) <= 1, f"{name} is held in {modes}")
            check(len(holders[name]) <= 1 or modes != {None}, f"{name} is held by {sorted(holders[name])}")


def walk(world, steps):
    for step in range(steps):
        try:
            world.step()
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {SEED}, step {step}: {error}") from error


def come_to_an_end(world):
    """Nobody comes any more; whoever holds releases. How many of those who waited got their turn."""
    served = 0
    lost = world.counts.get("session lost", 0)
    for _ in range(400):
        world.hear()
        for one in world.those("told"):
            check_equal(one.claim()[0], "claimed", one.id)
            one.state, served = "holds", served + 1
        for one in world.those("holds"):
            for name in sorted(one.has):
                world.leases[name].release(one.id)
            world.people.remove(one)
        world.pass_time(50)
        world.hear()
        if not world.people:
            break
    return served + world.counts.get("session lost", 0) - lost


@test
def nobody_gets_a_part_nobody_is_overtaken_and_everybody_gets_his_turn():
    world = World(SEED)
    walk(world, STEPS)
    world.pass_time(4000)  # what was handed on to somebody who has not claimed it
    world.hear()
    for one in world.those("told"):
        if one.claim()[0] != "claimed":
            world.people.remove(one)
        else:
            one.state = "holds"
    waits = len(world.those("waits"))
    served = come_to_an_end(world)
    check_equal(served, waits)
    check_equal([line_of(lease) for lease in world.leases.values()], [[]] * len(NAMES))
    for _ in range(4):
        world.silent |= world.sessions.keys()
        world.pass_time(SESSION_MS)
        world.sweep(len(world.stripes))
    for _ in range(2):
        forgotten(world.store, All(world.store, *NAMES))
    left = world.store.dump().keys() - set(DESKS)
    check_equal(sorted(left), EMPTY)
    if "WALK_SEED" not in os.environ and "WALK_STEPS" not in os.environ:
        check(served > 0, "somebody waits at the end")
        check_equal(sorted(set(HAPPENS) - world.counts.keys()), [], f"did not happen; did: {world.counts}")


if __name__ == "__main__":
    main()
