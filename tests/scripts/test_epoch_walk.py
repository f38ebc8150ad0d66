#!/usr/bin/python3
"""A random walk through everything that can happen to a store and its members, and what must hold at every step.

    WALK_SEED=N WALK_STEPS=N tests/scripts/test_epoch_walk.py     another walk, or a longer one

What is acknowledged counts; a reply may be lost, what it did stays. The world knows what the store may have forgotten."""

import itertools
import os
import random

from lua_test import IDENTITY, RECORD, STRIPES, Holder, Lease, Resource, check, check_equal, check_in, main, test
from members import Life, Member

USUAL = (4, 3000)  # the walk of which it is known what happens in it
SEED, STEPS = int(os.environ.get("WALK_SEED", USUAL[0])), int(os.environ.get("WALK_STEPS", USUAL[1]))
HAPPENS = ("acquire granted", "acquire not-admitted", "admit admitted complete", "admit admitted incomplete",
           "admit floors-missing", "admit members-missing", "admit record", "admit unrecorded", "directory lost", "leave left",
           "pulse in", "pulse pending", "recover", "restart with less", "set back", "write written",
           "write refused stale-token", "write refused lease-expired")
LEASES = [f"orders:{i}" for i in range(4)]
EVERYBODY = "whichever_it_was whichever_it_was"
BLOCK, STUCK_STEPS, KEPT = 4, 100, 6


class Epoch:
    """One life of the store: the highest sequence numbers that anybody was told of."""

    def __init__(self, number):
        self.number, self.seen = number, [0] * 256


class Process(Member):
    """dozes: until that step; linked: its links stand since a pulse that was answered with "in"."""

    def __init__(self, world, name, role):
        super().__init__(world.life, name, role, BLOCK)
        self.is_up, self.dozes, self.linked, self.reported = True, 0, False, False


class World:
    def __init__(self, seed, registrars=0):
        self.random, self.life = random.Random(seed), Life()
        self.life.begin(floor=BLOCK, registrars=registrars)
        self.registrars = registrars
        self.step, self.now, self.names, self.gated_since = 0, 1000000, 0, 0
        self.epoch, self.epochs, self.told = Epoch(1), 1, 1  # of the store; how many; the latest that anybody was told of
        self.tokens = {name: [] for name in LEASES}  # acknowledged: [Holder], the last may be released
        self.released, self.top, self.saved, self.counts = set(), 0, [], {}
        self.disks, self.doubtful = {}, set()
        self.members = [self.newcomer("lease") for _ in range(4 if registrars else 3)] + [self.newcomer("gateway") for _ in range(2)]
        self.members[0].disk.floor = BLOCK  # --init-store notes no list

    def newcomer(self, role):
        self.names += 1
        one = Process(self, f"{role}-{chr(96 + self.names) if self.names < 27 else self.names}", role)
        if role == "lease":
            self.disks[one.name] = one.disk
        return one

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def chance(self, part):
        return self.random.random() < part

    def some(self, role=None):
        """A process that runs, or None."""
        fit = [one for one in self.members if one.is_up and one.dozes <= self.step and role in (None, one.role)]
        return self.random.choice(fit) if fit else None

    # -- what members do

    def pulse(self, one=None):
        one = one or self.some()
        if one is None:
            return
        one.recording = self.chance(0.85)
        settled = "settled" if self.chance(0.9) else ""
        reply = one.ask(settled)
        if self.chance(0.05):
            self.count("lost pulse")
            one.linked = False
            return
        one.learn(reply)
        one.linked = reply[0] == "in"
        self.count(f"pulse {reply[0]}")
        if reply[0] == "in":
            self.told = max(self.told, self.epoch.number)
            self.epoch.seen = [max(pair) for pair in zip(self.epoch.seen, reply[10])]
        elif reply[0] == "gated":
            self.gated(one, settled)
        elif reply[0] == "empty":
            made = self.life.run("api/cli/scripts/skeleton.lua", [RECORD], IDENTITY, 5000 + self.epochs, f"gate-0{self.step}")
            check_equal(made, ["made"])
        elif reply[0] == "forgotten":  # as its operator is told: with another state directory
            self.replace(one)

    def gated(self, one, settled):
        one.reported = one.gate if settled else one.reported
        if one.reported == one.gate and one.role == "lease":
            self.admit(one)

    def admit(self, one):
        before = self.life.seqs()
        reply = one.ask_to_admit(self.random.choice(("wait", "now")))
        self.count(f"admit {reply[0]}" + (f" {reply[2]}" if reply[0] == "admitted" else ""))
        if reply[0] == "record" and self.chance(0.8):
            one.disk.list = reply[1]
            if one.pulse() == "gated":
                self.admit(one)
            return
        if reply[0] != "admitted":
            return
        if reply[2] == "complete":
            check(self.epoch.number >= self.told, f"complete, but a later life was lived: step {self.step}")
            lost = [i for i in range(256) if before[i] < self.epoch.seen[i]]
            check(not lost, f"complete, but somebody saw more in the stripes {lost}: step {self.step}")
        check(int(reply[3]) >= self.top, f"counters begin at {reply[3]}, {self.top} was granted: step {self.step}")
        self.check_doubts()
        self.epochs += 1
        self.epoch = Epoch(self.epochs)

    def check_doubts(self):
        """Nobody settles anything here: who is in doubt once is so for ever, whatever the store has lost since."""
        doubts = {one.decode() for one in self.life.redis("HKEYS", RECORD + ":doubt")}
        forgotten = self.doubtful - doubts
        check(not forgotten or EVERYBODY in doubts, f"{sorted(forgotten)} are in doubt no more: step {self.step}")
        self.doubtful = doubts

    def acquire(self):
        one = self.some("lease")
        if one is None or not one.linked:
            return
        name, hold = self.random.choice(LEASES), f"hold-{self.step:07}"
        gate = self.life.record("gate")
        lease = Lease(self.life, name)
        with one.knows(lease.stripe):
            reply = lease.acquire(f"id-{self.step}", hold, one.name, ttl=self.random.choice((100, 100, 30000)))
        self.count(f"acquire {reply[0]}")
        if reply[0] == "granted":
            check(not gate, f"granted while the store was shut: step {self.step}")
        if not self.answered(one, lease.stripe, reply):
            return
        if reply[0] == "granted":
            self.granted(name, Holder(reply[2], reply[3], hold))
        if reply[0] == "granted" and self.chance(0.6):
            with one.knows(lease.stripe):
                reply = lease.release(f"id-{self.step}")
            if self.answered(one, lease.stripe, reply) and reply[0] == "released":
                self.released.add(hold)

    def answered(self, one, stripe, reply):
        """Whether the reply came; what it tells then is known to its process, and to the world."""
        if self.chance(0.08):
            one.linked = False
            return False
        if len(reply) > 1:
            i = STRIPES.index(stripe)
            one.seen[i] = max(one.seen[i], reply[1])
            self.epoch.seen[i] = max(self.epoch.seen[i], reply[1])
        return True

    def granted(self, name, holder):
        before = self.tokens[name]
        check(not before or holder.token > before[-1].token,
              f"{name}: {holder.token} after {before[-1].token if before else 0}: step {self.step}")
        before.append(holder)
        self.top = max(self.top, holder.token)

    def write(self):
        one = self.some("gateway")
        name = self.random.choice(LEASES)
        if one is None or not one.linked or not self.tokens[name]:
            return
        holder = self.random.choice(self.tokens[name][-3:])
        lease = Lease(self.life, name)
        with one.knows(lease.stripe):
            reply = Resource(lease).write(holder, f"tag-{self.step}")
        self.count(f"write {reply[0]}" + (f" {reply[2]}" if reply[0] == "refused" else ""))
        if reply[0] == "written":
            check(holder is self.tokens[name][-1], f"{name}: a stale write was let in: step {self.step}")
            check(holder.hold not in self.released, f"{name}: a released hold has written: step {self.step}")
        if self.answered(one, lease.stripe, reply) and reply[0] == "written":
            one.passed = max(one.passed, holder.token)

    # -- what happens to them

    def kill(self):
        one = self.some()
        if one is None:
            return
        self.count("kill")
        one.start()
        one.linked, one.reported = False, False
        one.is_up = self.chance(0.7)
        if one.role == "gateway" and self.chance(0.3):
            self.replace(one)  # without a state directory it is somebody else then

    def replace(self, one):
        """Its state directory is gone for good, or it never had one."""
        self.disks.pop(one.name, None)
        self.members[self.members.index(one)] = self.newcomer(one.role)

    def lose_a_directory(self):
        leases = [one for one in self.members if one.role == "lease"]
        self.count("directory lost")
        self.replace(self.random.choice(leases))

    def leave(self):
        one = self.some()
        if one is None or not one.linked:
            return
        left = one.leave()
        self.count(f"leave {left}")
        one.start()
        one.linked, one.is_up, one.reported = False, False, False
        if left == "left" and self.chance(0.6):
            self.replace(one)  # its state directory is not needed any more

    def begin(self):
        down = [one for one in self.members if not one.is_up]
        if down:
            self.random.choice(down).is_up = True

    def doze(self):
        one = self.some()
        if one is not None:
            one.dozes = self.step + self.random.choice((10, 60, 120))

    def forget(self):
        """What the operator does about a member that is gone for good: as api/cli/scripts/forget_member.lua."""
        here = {one.name for one in self.members}
        ids, floors = self.life.listed(), [int(self.life.member(one.name, "floor") or 0) for one in self.members
                                           if one.is_up and one.linked and one.role == "lease"]
        gone = [name for name in ids if name not in here and self.life.state(name) != "forgotten"]
        gate, run, ceiling = self.life.record("gate", "run", "ceiling")
        if gone and not gate and run == self.life.run_and_stream() and max(floors, default=-1) >= int(ceiling):
            self.count("forget")
            self.life.redis("HSET", f"{RECORD}:m:{gone[0]}", "state", "forgotten")
            self.life.redis("HINCRBY", RECORD, "roll", 1)

    def change_registrars(self):
        deed, run = self.random.choice(("add", "add", "remove")), self.life.record("run")
        names = [one.name for one in self.members if one.role == "lease"] + (self.life.record("registrars") or "").split()[1:]
        if run != self.life.run_and_stream():
            return
        self.life.redis("HSET", RECORD, "run", self.life.real_run())  # the command asks Redis itself
        reply = self.life.run("api/cli/scripts/registrar.lua", [RECORD], deed, self.random.choice(names))
        self.life.redis("HSET", RECORD, "run", run)
        self.count(f"{deed} {reply[0]}")

    def recover(self):
        """What the operator does when a state directory that is needed is gone: all that did not report are given up."""
        self.count("recover")
        floor, reply, gate = max(self.top, 1), ["too-low", 0], self.life.record("gate")
        heard = {one.name for one in self.members if one.is_up and one.reported == gate
                 and self.now - int(self.life.member(one.name, "at") or 0) <= 10000}
        while reply[0] == "too-low":
            floor = max(floor, reply[1])
            reply = self.life.run("api/cli/scripts/recover.lua", [RECORD], IDENTITY, IDENTITY, floor, 5000 + self.epochs, "")
        check_equal(reply[0], "recovered")
        self.life.redis("HSET", RECORD, "run", self.life.run_and_stream())
        for one in list(self.members):
            if one.role == "lease" and one.name not in heard:
                self.replace(one)
        for name in set(self.disks) - {one.name for one in self.members}:
            del self.disks[name]
        self.epochs += 1
        self.epoch = Epoch(self.epochs)

    # -- what happens to Redis

    def save(self):
        self.saved = (self.saved + [(self.life.save(), self.epoch, list(self.epoch.seen))])[-KEPT:]

    def restart(self, saved=None):
        """With what it had, or with less: a cut file, a backup."""
        if saved is None and self.saved and self.chance(0.6):
            saved = self.random.choice(self.saved)
        self.count("restart with less" if saved else "restart")
        self.life.restart(saved and saved[0])
        self.epoch = saved[1] if saved else self.epoch
        for one in self.members:
            one.linked = False

    def set_back(self):
        """A machine set back with its memory: noticed by whoever has pulsed since, and speaks first."""
        awake = [one for one in self.members if one.is_up and one.linked and one.dozes <= self.step]
        if not awake or not self.saved:
            return
        self.count("set back")
        for one in self.members:
            one.linked = False
        for one in awake:
            self.pulse(one)
        first = self.random.choice(awake)
        saved = self.random.choice(self.saved)
        knows = first.linked and first.epoch == int(self.life.record("epoch"))
        self.life.put_back(saved[0])
        self.epoch = saved[1]
        if knows:  # the others go on as if nothing had happened
            check_equal(first.ask("")[0], "gated", f"step {self.step}")
            return
        self.life.restart()
        for one in self.members:
            one.linked = False

    def restart_in_peace(self):
        """Everybody has had the time to pulse before it, and to report after it; perhaps something is lost all the same."""
        awake = [one for one in self.members if one.is_up and one.dozes <= self.step]
        for one in awake * 3:
            self.pulse(one)
        self.save()
        for _ in range(self.random.choice((0, 0, 1))):
            self.acquire()
        self.restart(self.saved[-1])
        for one in awake * 2:
            self.pulse(one)

    def damage(self):
        stripe = self.random.choice(STRIPES)
        command = self.random.choice((("DEL", stripe), ("HDEL", stripe, "counter"), ("DEL", RECORD), ("FLUSHALL",),
                                      ("HDEL", stripe, "seq"), ("HDEL", RECORD, "ceiling")))
        self.count(f"damage {command[0]}")
        self.life.redis(*command)
        self.life.at(self.now)
        for one in self.members:
            one.linked = False  # else what is between here and the next pulse is refused by one stripe only

    def clock(self):
        self.now += self.random.choice((-86400000, 86400000, 30000, 12000, -12000))
        self.now = max(self.now, 1000000)
        self.life.at(self.now)

    # -- the walk

    def check_state_directories(self):
        """Whoever of those that are left may begin: some of them has a floor above all tokens."""
        for count in range(1, len(self.disks) + 1):
            for names in itertools.combinations(self.disks, count):
                floor = max(self.disks[name].floor for name in names)
                check(floor >= self.top or not any(self.may_begin(name, names) for name in names),
                      f"{names} may begin with {floor}, {self.top} was granted: step {self.step}")

    def may_begin(self, asker, names):
        """Whether this one finds all that it needs in these state directories."""
        known = [self.disks[name] for name in names if name in self.disks[name].registrars()]
        newest = max(known, key=lambda disk: (disk.epoch, disk.roll), default=None)
        if newest and all(self.disks[name].registrars() or self.disks[name].epoch <= newest.epoch for name in names):
            registrars = newest.registrars()
            return len(set(registrars) & set(names)) > len(registrars) / 2
        if asker not in self.disks[asker].lists():
            return False
        reached = todo = {asker}
        while todo and reached <= set(names):
            todo = {other for name in todo for other in self.disks[name].lists()} - reached
            reached = reached | todo
        return reached <= set(names)

    def go(self, steps):
        deeds = {self.pulse: 40, self.acquire: 35, self.write: 12, self.save: 2, self.kill: 0.8, self.begin: 5,
                 self.leave: 1, self.doze: 1, self.forget: 3, self.restart: 0.7, self.restart_in_peace: 0.7,
                 self.change_registrars: 3 if self.registrars else 0, self.set_back: 0.3, self.damage: 0.15, self.clock: 0.4, self.lose_a_directory: 0.08}
        for self.step in range(steps):
            self.now += self.random.choice((1, 20, 150, 600))
            self.life.at(self.now)
            self.random.choices(list(deeds), list(deeds.values()))[0]()
            self.check_state_directories()
            if not self.life.record("gate"):
                self.gated_since = self.step
            if self.step - self.gated_since > STUCK_STEPS:
                self.recover()


def walk(happens, **named):
    world = World(SEED, **named)
    world.go(STEPS)
    told = ", ".join(f"{what} {count}" for what, count in sorted(world.counts.items()))
    print(f"# seed {SEED}, {STEPS} steps: {told}", flush=True)
    for what in happens if (SEED, STEPS) == USUAL else ():
        check_in(what, world.counts)


@test
def nothing_that_happens_makes_a_token_come_twice_or_a_loss_be_called_complete():
    walk(HAPPENS)


@test
def a_majority_of_registrars_is_enough_for_the_same():
    walk([what for what in HAPPENS if what != "admit floors-missing"] + ["add changed", "admit registrars-missing", "remove changed"],
         registrars=3)


main()
