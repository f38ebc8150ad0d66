#!/usr/bin/python3
"""Several operations in one call (shared/member/scripts/lib/batch.lua) are the same ones, one behind the other.

    WALK_SEED=N WALK_STEPS=N tests/scripts/test_batch_scripts.py     other random calls, or more of them"""

import json
import os
import pathlib
import random
import re

from intents import Gateway, same_stripe
from lua_test import ASKED, EPOCH, RECORD, Holder, Lease, RedisError, Resource, Store, check, check_equal, check_in, main, test, text

SEED, STEPS = int(os.environ.get("WALK_SEED", 3)), int(os.environ.get("WALK_STEPS", 900))
ROOT = pathlib.Path(__file__).resolve().parents[2]
NOW, DESK, FIRST = 1000000, "pawl:{08}:d:desk-1", "orders:42"
NAMES = [FIRST, *same_stripe(FIRST, 1), "orders:43"]
KINDS = ("acquire", "acquire", "acquire", "renew", "release", "release", "claim", "check", "write", "write", "read",
         "read_fenced", "remove", "intent_admit", "intent_admit", "intent_close")
# The first words, and some of what is refused, that must have come up.
HAPPENS = ("acquire granted", "acquire replayed", "acquire entered", "acquire queued", "acquire held", "acquire over",
           "acquire not-ours", "acquire not-admitted", "acquire error", "renew renewed", "renew lost", "release released",
           "release left", "release lost", "claim claimed", "check accepted", "check refused", "write written", "write refused",
           "write mismatch", "read found", "read missing", "read_fenced found", "remove removed", "intent_admit sending",
           "intent_admit queued", "intent_admit refused", "intent_close closed", "acquire not-yours", "renew not-yours",
           "release not-yours", "claim not-yours", "write not-yours", "remove not-yours", "check not-yours",
           "intent_admit not-yours")


class Taken(Exception):
    """A call that is not made: its parts."""


class Taking(Store):
    """A store that makes no call, but tells which one it would make."""

    def __init__(self):  # pylint: disable=super-init-not-called
        self.redis = None

    def call(self, path, keys, *args):
        raise Taken(path, keys, args)


def parts_of(deed, *args, **named):
    try:
        deed(*args, **named)
    except Taken as taken:
        return taken.args
    raise AssertionError("it made no call")


class Walk:
    """Two stores: one gets batches, the other one call after the other."""

    def __init__(self, seed):
        self.random, self.stores, self.now, self.number = random.Random(seed), (Store(), Store()), NOW, 0
        self.leases = [Lease(Taking(), name) for name in NAMES]
        self.gateway = Gateway(self.leases[0].store)
        self.holds, self.queued, self.tokens, self.texts, self.counts = {}, {}, {}, [], {}
        for store in self.stores:
            store.begin(NOW)
            store.redis("HSET", DESK, "at", NOW)
            store.redis("HSET", RECORD, "run", "the same")  # else each has the stream of its own Redis

    def call(self):
        """(kind, lease, parts of a call): any, with what was told before."""
        kind, lease, some = self.random.choice(KINDS), self.random.choice(self.leases), self.random.choice
        lease_id = f"id-{self.random.randrange(5)}"
        known = self.tokens.get(lease.name, [Holder(1)])
        holder = known[-1] if self.random.random() < 0.8 else some(known)
        holder = Holder(holder.token, holder.epoch, holder.hold, holder.mode + some(["", "", "", " ada", " bob"]))
        resource = Resource(lease, some(["", "/a", "/b"]))
        may, keyed = some(["grant"] * 8 + ["hold-off", "full"]), some([{}, {}, {}, {"key": some("kl"), "digest": some("de")}])
        if kind == "acquire":
            self.number += 1
            hold = self.holds[lease.name, lease_id] = f"hold-{self.number:07}"
            more = some([{}, {}, {}, {"reentrant": True}, {"mode": "shared"}, {"mode": "permits", "permits": 2}, {"delay": 300}])
            more = more | keyed | (some([{}, {"desk": DESK, "wid": str(self.number)}]))
            return kind, lease, parts_of(lease.acquire, lease_id, hold, "ada", some([100, 1000, 60000]), some(["", '{"a":1}']), may, **more)
        waits = some(self.queued.get(lease.name, [("id-w", "hold-w")])[-3:])
        hold = some(["", "", self.holds.get((lease.name, lease_id), "hold-unknown")])
        deeds = {"renew": lambda: lease.renew(lease_id, some(["", 500]), hold, may),
                 "release": lambda: lease.release(lease_id, hold, may, some(["one", "all"]), **keyed),
                 "claim": lambda: lease.run("claim", *waits, may),
                 "check": lambda: resource.check(holder),
                 "write": lambda: resource.write(holder, f"tag-{self.number}", b"v" * self.random.randrange(40),
                                                 if_match=some(["", "", '"tag-1"', "*"]), **keyed),
                 "read": lambda: resource.read(some(["", "*", '"x"'])),
                 "read_fenced": lambda: resource.read_fenced(holder), "remove": lambda: resource.remove(holder, **keyed),
                 "intent_admit": lambda: self.gateway.admit(lease, holder, some(["o", "o", "o+", "c", "k"])),
                 "intent_close": lambda: lease.store.call(
                     "gateway/scripts/intent_close.lua", [lease.stripe],
                     f"1 {some(['close', 'close', 'settle', 'unknown'])} " + some(self.texts or ["x 1 1 1 s o a b c h 1"]))}
        return kind, lease, parts_of(deeds[kind])

    def asked(self):
        """The same call, and who asks: as if --access came and went."""
        kind, lease, (path, keys, args) = self.call()
        who = self.random.choice([None, None, None, "", "ada", "ada", "bob"]) if kind in ASKED else None
        return kind, lease, (path, keys, args if who is None else (*args, who))

    def fault(self):
        """By hand: something that is no list, no line; a record of another release; a full list; or all is mended."""
        lease = self.random.choice(self.leases)
        for store in self.stores:
            store.redis("DEL", *[one for lease in self.leases for one in (lease.history, lease.stripe + ":q:" + lease.name)])
        which = self.random.choice(["history", "line", "record", "full", "mended", "mended", "mended"])
        for store in self.stores:
            if which in ("history", "line"):
                store.redis("SET", lease.history if which == "history" else lease.stripe + ":q:" + lease.name, "by hand")
            elif which == "record":
                store.redis("HSET", lease.stripe, "l:" + lease.name, "another\trelease")
            elif which == "full":
                store.redis("RPUSH", lease.history, *[f"{EPOCH}.0.{i}\tgranted\t1\tx\t1\t" for i in range(40)])
            else:
                for one in self.leases:
                    if b"\trelease" in (store.redis("HGET", one.stripe, "l:" + one.name) or b""):
                        store.redis("HDEL", one.stripe, "l:" + one.name)

    def learn(self, kind, lease, parts, reply):
        word = "error" if isinstance(reply, RedisError) else reply[0]
        word = "not-yours" if word == "refused" and reply[2] == "not-yours" else word
        self.counts[f"{kind} {word}"] = self.counts.get(f"{kind} {word}", 0) + 1
        if word in ("granted", "claimed", "entered"):
            hold = parts[2][3] if word == "granted" else reply[4]
            mode = json.loads(parts[2][8]).get("mode", "exclusive") if kind == "acquire" and parts[2][8] else "exclusive"
            self.tokens.setdefault(lease.name, []).append(Holder(reply[2], reply[3], hold, mode))
        if word == "queued" and kind == "acquire":
            self.queued.setdefault(lease.name, []).append(parts[2][2:4])
        if kind == "intent_admit" and word in ("sending", "queued"):
            self.texts.append(reply[3])

    def step(self):
        if self.random.random() < 0.1:
            self.fault()
        if self.random.random() < 0.5:
            self.now += self.random.choice([1, 50, 400, 3100])
            for store in self.stores:
                store.at(self.now)
                store.redis("HSET", DESK, "at", self.now - self.random.choice([0, 0, 0, 5000]) if store is self.stores[0] else
                            self.stores[0].redis("HGET", DESK, "at"))
        calls = [self.asked() for _ in range(self.random.randrange(1, 12))]
        # A caller knows what it knew before the batch; now and then more than there is.
        caller = self.random.choice([{"seen": 0}] * 20 + [{"seen": 10**9}, {"epoch": EPOCH + 1}, {"stream": "0" * 40}])
        batch, alone = self.stores
        with batch.calling(**caller), alone.calling(**caller):
            told = batch.batch(*[parts for _, _, parts in calls])
            for (kind, lease, parts), reply in zip(calls, told):
                try:
                    wanted = alone.call(parts[0], parts[1], *parts[2])
                except RedisError as error:
                    wanted = error
                check_equal(isinstance(reply, RedisError), isinstance(wanted, RedisError), f"{kind} {parts}: {reply} {wanted}")
                if not isinstance(reply, RedisError):
                    check_equal(reply, wanted, f"{kind} {parts}")
                self.learn(kind, lease, parts, reply)


@test
def a_batch_is_the_same_calls_one_by_one_whatever_they_are_and_find():
    walk = Walk(SEED)
    for i in range(STEPS):
        walk.step()
        if i % 30 == 29:
            one, other = (store.dump() for store in walk.stores)
            check_equal({key: (one.get(key), other.get(key)) for key in one.keys() | other.keys() if one.get(key) != other.get(key)},
                        {}, f"step {i}")
    if (SEED, STEPS) == (3, 900):
        for one in HAPPENS:
            check_in(one, walk.counts)


STORE = Store()


def begin():
    STORE.begin(NOW)
    return Lease(STORE, FIRST)


def acquire(name, lease_id="id-a", hold="hold-aaaaaaa", **more):
    return parts_of(Lease(Taking(), name).acquire, lease_id, hold, ttl=1000, **more)


@test
def what_comes_later_in_a_batch_finds_what_came_before():
    begin()
    told = STORE.batch(acquire(FIRST), acquire(FIRST, "id-b"), parts_of(Lease(Taking(), FIRST).release), acquire(FIRST, "id-b", "hold-bbbbbbb"))
    check_equal([reply[:3] for reply in told],
                [["granted", 1, 1], ["held", 1, 1], ["released", 2, ""], ["granted", 3, 2]])


@test
def each_of_a_batch_is_asked_what_its_caller_has_seen_and_was_admitted_to():
    begin()
    for known in ({"seen": 5}, {"epoch": EPOCH + 1}, {"stream": "0" * 40}, {"identity": "6:other"}):
        calls = [acquire(f"job:{i}", "id") for i in range(3)]
        before, seen = STORE.known, iter(({}, known, {}))
        STORE.known = lambda keys, before=before, seen=seen: before(keys) | next(seen)
        told = [reply[0] for reply in STORE.batch(*calls)]
        STORE.known = before
        check_equal(told[1], "not-ours" if "identity" in known else "not-admitted", known)
        check_equal([told[0] in ("granted", "replayed"), told[2] in ("granted", "replayed")], [True, True], known)


@test
def each_of_a_batch_happens_at_the_time_that_its_caller_knows():
    begin()
    leases = [Lease(STORE, f"job:{i}") for i in range(3)]
    STORE.batch(*[acquire(lease.name) for lease in leases])
    known, times = STORE.known, iter((0, NOW + 1500, 0))
    STORE.known = lambda keys: known(keys) | {"at_least": next(times)}
    STORE.batch(*[parts_of(Lease(Taking(), lease.name).release) for lease in leases])
    STORE.known = known
    check_equal([lease.happened()[1].split("\t")[4] for lease in leases], [str(NOW), str(NOW + 1500), str(NOW)])


@test
def what_fails_in_a_batch_fails_alone_and_whatever_it_says_comes_back_in_its_place():
    lease = begin()
    other = "orders:43"
    STORE.redis("SET", lease.history, "no list")
    lease.run("acquire", "id-a", "hold-aaaaaaa", "ada", 1000, "", "grant", "")
    told = STORE.batch(acquire(other, "id-1"), parts_of(Lease(Taking(), FIRST).release), acquire("orders:44", "id-2"))
    check_equal([told[0][0], told[2][0]], ["granted", "granted"])
    check(isinstance(told[1], RedisError) and "WRONGTYPE" in str(told[1]), told)


@test
def a_batch_in_which_much_is_to_be_done_leaves_the_rest_to_be_asked_for_again():
    lease = begin()
    for i in range(200):
        lease.acquire(f"id-{i}", f"hold-{i:07}", ttl=100, mode="shared")
    STORE.at(NOW + 500)
    look = parts_of(Lease(Taking(), FIRST).renew, "id-0")
    told = [reply[0] for reply in STORE.batch(*[look] * 6)]  # each ends 64 holds that are over
    check_equal(told, ["lost", "lost"] + ["again"] * 4)
    check_equal(STORE.redis("ZCARD", lease.stripe + ":x:" + FIRST), 200 - 128)
    check_equal([reply[0] for reply in STORE.batch(*[acquire(f"plain:{i}", f"id-{i}") for i in range(64)])], ["granted"] * 64)


@test
def as_many_hand_offs_as_a_service_puts_into_a_batch_all_happen():
    begin()
    STORE.redis("HSET", DESK, "at", NOW)
    most = int(re.search(r"BATCH_MAX = (\d+)", (ROOT / "shared/store/redis.c").read_text(encoding="utf-8"))[1])
    names = [f"job:{i}" for i in range(most)]
    STORE.batch(*[acquire(name) for name in names])
    waits = [parts_of(Lease(Taking(), name).acquire, "id-w", f"hold-{i:07}", "ada", 1000, "", "grant", desk=DESK, wid=str(i))
             for i, name in enumerate(names)]
    check_equal([reply[0] for reply in STORE.batch(*waits)], ["queued"] * most)
    told = [reply[0] for reply in STORE.batch(*[parts_of(Lease(Taking(), name).release) for name in names])]
    check_equal(told, told[:1] * most)
    check(told[0] != "again")


@test
def a_look_at_many_intents_is_much_to_do():
    lease = begin()
    STORE.redis("ZADD", lease.stripe + ":i", *(word for i in range(600) for word in (
        0, f"{FIRST} {EPOCH:015} {1:015} {i:016} s o gate-b life-1 w{i} h {NOW}")))
    forget = "gateway/scripts/intent_close.lua", [lease.stripe], [f"1 forget {FIRST} gate-a life-1 w0.1"]
    check_equal([reply[0] for reply in STORE.batch(*[forget] * 4)], ["closed", "closed", "again", "again"])


@test
def a_batch_that_redis_refuses_is_refused_as_a_whole_before_the_first():
    begin()
    STORE.redis("CONFIG", "SET", "maxmemory", 1)
    try:
        text(STORE.batch(acquire(FIRST), parts_of(Lease(Taking(), FIRST).release)))
        check(False, "it ran")
    except RedisError as refused:
        check_equal(("OOM" in str(refused), "script: " in str(refused)), (True, False), str(refused))
    finally:
        STORE.redis("CONFIG", "SET", "maxmemory", 0)
    check_equal(STORE.redis("HGET", Lease(STORE, FIRST).stripe, "seq"), b"0")


if __name__ == "__main__":
    main()
