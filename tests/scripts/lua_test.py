"""Scripts on a private Redis whose clock the test sets: expiry is tested without waiting."""

import atexit
import contextlib
import importlib.util
import itertools
import json
import pathlib
import re
import shutil
import tempfile

import msgpack

ROOT = pathlib.Path(__file__).resolve().parents[2]

from world.record import record_of, record_packed, record_read, record_set, stripe_do, stripe_fields, stripe_key, stripe_of  # noqa: F401
from world.redis import Connection, PrivateRedis, RedisError  # noqa: F401
from world.tap import check, check_equal, check_in, main, test  # noqa: F401

TOKEN_LAST = 999999999999999
REMEMBER_MS = 1000
STRIPE_FIELDS = ["id", "epoch", "seq", "counter", "ceiling", "clock", "alive"]
EPOCH = 7
IDENTITY = "11:" + "store-1".ljust(24, "-")
FIRST = "lease-a"  # the member that a new store lists
CALL = "shared/member/scripts/lib/call.lua"
RECORD, MEMBERS = "pawl:{store}", "pawl:{store}:members"
STRIPES = [f"pawl:{{{i:02x}}}" for i in range(256)]
EMPTY = sorted(STRIPES + [RECORD, MEMBERS, RECORD + ":m:" + FIRST])  # the keys of a store without leases
ASKED = {"acquire", "acquire_all", "again", "claim", "claim_all", "leave", "leave_all", "release", "renew", "session_end",
         "session_look", "session_open", "session_renew"}
DUMP = """local whole = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
    local kind = #key == 9 and 'hash' or redis.call('TYPE', key).ok
    whole[#whole + 1] = { key, kind, cmsgpack.pack(kind == 'hash' and redis.call('HGETALL', key)
        or kind == 'zset' and redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
        or kind == 'set' and redis.call('SMEMBERS', key) or kind == 'list' and redis.call('LRANGE', key, 0, -1) or {}) }
end
return cmsgpack.pack(whole)"""


def _tool():
    spec = importlib.util.spec_from_file_location("scripts_tool", ROOT / "deploy" / "build" / "scripts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text(reply):
    """A reply with its texts as str, where they are UTF-8."""
    if isinstance(reply, list):
        return [text(one) for one in reply]
    if isinstance(reply, bytes):
        try:
            return reply.decode()
        except UnicodeDecodeError:
            return reply
    return reply


def packed(name, keys, args):
    """A call as shared/store/wire.c packs it."""
    texts = [one if isinstance(one, bytes) else str(one) for one in (*keys, *args)]
    numbers = [int(one) if one.isdigit() else one for one in texts[-2:]]
    return b"".join(msgpack.packb(one, use_bin_type=False) for one in (name, len(keys), *texts[:-2], *numbers))


def version_parts(fields):
    """Those of a stored version (gateway/scripts/lib/version.lua) that there are, by one letter each; v: its body."""
    parts = dict(zip("zebnckqatph", fields["z"].split("\n"))) | {"v": fields.get("v", "")}
    check_equal(int(parts.pop("b")), len(parts["v"].encode()), "bytes")
    return {letter: part for letter, part in parts.items() if part or letter == "v" and parts["z"] == "here"}


def dumped(key, kind, flat):
    """[(name, value)] of a key, as Store.dump() has it."""
    if kind == "zset":
        return [(key, {name: int(score) for name, score in zip(flat[::2], flat[1::2])})]
    if kind == "set" or kind == "list":
        return [(key, set(flat) if kind == "set" else flat)]
    if kind != "hash":
        return [(key, kind)] if key != "test:clock" else []
    whole = dict(zip(flat[::2], flat[1::2]))
    if key[9:12] == ":r:":
        return [(key, version_parts(whole))]
    records = [field for field in whole if key.count(":") == 1 and field[:2] in ("l:", "h:")]
    found = [(f"{key}:{field}", record_read(whole.pop(field))) for field in records]
    return [(key, stripe_fields(whole) if key in STRIPES else whole), *found]


class Store:
    def __init__(self, replace=None):
        """replace: {a file of the library: the one in its place}"""
        self.replace = replace or {}
        self.folder = tempfile.mkdtemp(prefix="pawl-lua-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.redis = PrivateRedis(self.folder, ["--save", "", "--appendonly", "no"])
        atexit.register(self.redis.close)
        # A desk that nobody listens at does not live (inbox_heartbeat.lua). The messages stay in the socket until somebody reads.
        self.ears = Connection(self.redis.path)
        self.ears("PSUBSCRIBE", "pawl:{*}:d:*")
        self.call_file = pathlib.Path(self.folder) / "call.lua"
        self.tool, self.caller, self.dumped, self.asker = _tool(), {}, {}, None
        # Two releases of one schema by turns, as in a rolling upgrade: whatever is tested is tested of both.
        self.libraries = itertools.cycle([self.made_library(), self.made_library(" -- the next release")])
        self.library = next(self.libraries)
        self.stream = self.replid()
        self.flags = {one.name: one.flags for one in self.library.operations}
        self.twice = {one.name for one in self.library.operations if one.twice}
        self.batched = {one.name for one in self.library.operations if one.batch}

    @classmethod
    def with_text(cls, path, before, after):
        """One whose library has another text in this file."""
        whole = (ROOT / path).read_text(encoding="utf-8")
        check_equal(whole.count(before), 1, path)
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder) / "other.lua"
            other.write_text(whole.replace(before, after), encoding="utf-8")
            return cls({path: str(other)})

    def made_library(self, more=""):
        clock = f"local function clock_ms() return tonumber(redis.call('GET', 'test:clock')) end{more}\n"
        self.call_file.write_text((ROOT / CALL).read_text(encoding="utf-8") + clock, encoding="utf-8")
        library = self.tool.Library({CALL: str(self.call_file), **self.replace})
        self.redis("FUNCTION", "LOAD", library.text)
        return library

    def run(self, path, keys, *args):
        """As the services do: what Redis refuses to begin because it takes no write may still have an answer."""
        name = pathlib.Path(path).stem
        self.library = next(self.libraries)
        call = [0, packed(name, keys, args)] if name in self.batched else [len(keys), *keys, *args]
        try:
            return text(self.redis("FCALL", f"{self.library.hash}_{name}", *call))
        except RedisError as refused:
            first = refused
            if not str(refused).startswith(("OOM", "NOREPLICAS")) or name not in self.twice:
                raise
        try:
            return text(self.redis("FCALL", f"{self.library.hash}_{name}_ro", *call))
        except RedisError as refused:
            if "Write commands are not allowed" in str(refused):
                raise RedisError(str(first)) from refused
            raise

    def call(self, path, keys, *args):
        """A script on a stripe, KEYS[1], with the last arguments that the services add: of a caller that knows what
        the store has, or what calling() says."""
        return self.run(path, keys, *args, *self.asked_by(path), *self.own_arguments(**self.known(keys)))

    def asked_by(self, path):
        """Who asks, of what acts for a lease_id or a session (lease/scripts/lib/own_hold.lua)."""
        return [self.asker] if self.asker is not None and pathlib.Path(path).stem in ASKED else []

    @contextlib.contextmanager
    def asking(self, who):
        """None: nobody judges; "": nobody."""
        before, self.asker = self.asker, who
        try:
            yield
        finally:
            self.asker = before

    def known(self, keys):
        return {"identity": IDENTITY, "epoch": self.redis("HGET", RECORD, "epoch") or 0,
                 "seen": self.redis("HGET", keys[0], "seq") or 0, "at_least": 0} | self.caller

    def batch(self, *calls):
        """The replies to these (path, keys, args), which go as one."""
        self.library = next(self.libraries)
        return text(self.redis("FCALL", self.library.hash + "_batch", 0, *[
            packed(pathlib.Path(path).stem, keys, [*args, *self.own_arguments(**self.known(keys))]) for path, keys, args in calls]))

    def own_arguments(self, identity, epoch, seen, at_least, stream=None):
        """What stripe.lua wants behind all others."""
        return [f"master_replid:{stream or self.stream} {identity} {int(epoch)}", seen, at_least]

    @contextlib.contextmanager
    def calling(self, **known):
        """identity, epoch, stream, seen, at_least: what the caller knows instead."""
        before, self.caller = self.caller, self.caller | known
        try:
            yield
        finally:
            self.caller = before

    def begin(self, now=1000000, floor=TOKEN_LAST, registrars=0, copies=0):
        """An empty store with all its stripes."""
        self.redis("FLUSHALL")
        self.redis("SET", "test:clock", now)
        self.caller = {}
        check_equal(self.init(floor=floor, registrars=registrars, copies=copies), ["created"])

    def init(self, identity=IDENTITY, epoch=EPOCH, run="run-1", member=FIRST, floor=TOKEN_LAST, registrars=0, copies=0):
        return self.run("lease/scripts/init_store.lua", [RECORD], identity, epoch, run, member, floor, registrars, copies)

    def at(self, now):
        self.redis("SET", "test:clock", now)

    def replid(self):
        return re.search(r"master_replid:(\w+)", self.redis("INFO", "replication").decode()).group(1)

    def dump(self, pattern="*"):
        """Everything but the clock of the test, or what matches; each record as a key of its own, "STRIPE:FIELD"."""
        whole = {}
        for key, kind, flat in msgpack.unpackb(self.redis("EVAL", DUMP, 0, pattern), raw=True):
            if (key, flat) not in self.dumped:  # of two dumps most keys are the same
                self.dumped[key, flat] = dumped(text(key), text(kind), text(msgpack.unpackb(flat, raw=True)))
            for name, value in self.dumped[key, flat]:
                whole[name] = value.copy() if not isinstance(value, str) else value
        return whole

    def changed_by(self, action):
        """(reply, what is different after it as {key: (before, after)}); the stripe's seq rose by one if anything is, else
        it did not."""
        before = self.dump()
        reply = action()
        after = self.dump()
        changes = {}
        for key in before.keys() | after.keys():
            if before.get(key) != after.get(key):
                changes[key] = (before.get(key), after.get(key))
        stripes = [key for key in changes if key.count(":") == 1]
        others = [key for key in changes if key.count(":") > 1]
        check(len(stripes) == (1 if others else 0), f"{others} changed, and the stripes {stripes}")
        for key in stripes:
            old, new = dict(changes[key][0]), dict(changes[key][1])
            check_equal(int(new.pop("seq")), int(old.pop("seq")) + 1, "sequence number")
            check_equal(reply[1], int(after[key]["seq"]), "sequence number in the reply")
            del changes[key]
            if old != new:
                changes[key] = (old, new)
        return reply, changes

    def unchanged_by(self, action):
        reply, changes = self.changed_by(action)
        check_equal(changes, {}, f"after {reply}")
        return reply

    def commands_of(self, action):
        """(how many commands it runs, what it gives): what its time is made of, and unlike it the same on every machine."""
        def count():
            stats = self.redis("INFO", "commandstats").decode()
            return sum(int(calls) for calls in re.findall(r"^cmdstat_.*?calls=(\d+)", stats, re.M))
        before = count()
        reply = action()
        return count() - before, reply


class Lease:
    """One lease of a store, and every script on it."""

    def __init__(self, store, name):
        self.store, self.name = store, name
        tag = stripe_key(name)
        self.stripe, self.due, self.key = tag, tag + ":due", f"{tag}:l:{name}"
        self.gone, self.resources = tag + ":gone", tag + ":r:"
        self.history, self.refusals = f"{tag}:e:{name}", f"{tag}:f:{name}"
        self.keys = [self.stripe, self.due]

    def record(self, lease_id=None):
        """The parts of its record, or of the one of its many holds, by their letters; {}: there is none."""
        return record_of(self.store.redis, self.name, lease_id)

    def field(self, letter, lease_id=None):
        return self.record(lease_id).get(letter)

    def set(self, lease_id=None, **parts):
        """Writes these parts; None takes one away."""
        record_set(self.store.redis, self.name, lease_id, **parts)

    def happened(self):
        """The items of its grants and ends, oldest first: the list, and that of the grant that its record has."""
        items, one = text(self.store.redis("LRANGE", self.history, 0, -1)), self.record()
        return items + [f"{one['e']}.{one['E']}\tgranted\t{one['t']}\t{one['o']}\t{one['g']}\t\x1ft{one['l']}"] if "E" in one else items

    def seq(self):
        return int(self.store.redis("HGET", self.stripe, "seq"))

    def run(self, script, *args):
        """A script of the lease service on this lease: its name, and what comes behind name and remember_ms."""
        return self.store.call(f"lease/scripts/{script}.lua", self.keys, self.name, REMEMBER_MS, *args)

    def acquire(self, lease_id="id-a", hold="hold-aaaaaaa", holder="ada", ttl=1000, meta="", may="grant", **more):
        """more: what few ask for (lease/scripts/lib/grant.lua)."""
        return self.run("acquire", lease_id, hold, holder, ttl, meta, may, json.dumps(more) if more else "")

    def renew(self, lease_id="id-a", ttl="", hold="", may="grant"):
        return self.run("renew", lease_id, ttl, hold, may)

    def release(self, lease_id="id-a", hold="", may="grant", how_many="one", key="", digest="", desk=""):
        return self.run("release", lease_id, hold, may, how_many, key, digest, desk)

    def look(self, may="grant"):
        """What most tests are about: of a holder no more than its identity, if it has one."""
        reply = self.run("look", may)
        return reply[:7] + [[one[:7] if one[6] else one[:6] for one in told] for told in reply[7:8]]

    def list(self, prefix="", after="", limit=100, state="held", holder=""):
        """In as many steps as the search takes; what the last one says."""
        search = ""
        while True:
            reply = self.store.call("lease/scripts/list.lua", self.keys, prefix, REMEMBER_MS, after, limit, state, holder, search)
            check(len(reply[5]) < 1022 and not (reply[5] and reply[3]), reply)
            if reply[5] == "":
                return reply[:4]
            after, search = reply[2], reply[5]

    def sweep(self, most=100, may="grant"):
        return self.store.call("lease/scripts/sweep.lua", self.keys, most, REMEMBER_MS, may)


class Holder:
    """A token at the gate: who presents it."""

    def __init__(self, token, epoch=EPOCH, hold="hold-aaaaaaa", mode="exclusive"):
        self.token, self.epoch, self.hold, self.mode = token, epoch, hold, mode


class Resource:
    """One resource under a lease, and every script of the gateway on it."""
    notes = True

    def __init__(self, lease, rest=""):
        self.lease, self.store, self.name = lease, lease.store, lease.name + rest
        self.key = lease.resources + self.name
        self.keys = [lease.stripe, self.key, lease.gone]

    def fence(self, holder):
        return [self.lease.name, holder.token, holder.epoch, holder.hold, holder.mode]

    def fenced(self, script, keys, holder, *args):
        """The reply; what was refused is noted as a gateway does, when the fence says so."""
        reply = self.store.call(f"gateway/scripts/{script}.lua", self.keys[:keys], *self.fence(holder), *args)
        if reply[7:] != ["note"] or not self.notes:
            return reply
        return ["refused", self.note(holder, reply)[1], *reply[2:7]]

    def note(self, holder, reply, instance="0a-1", asked=None):
        return self.store.call("gateway/scripts/refusal_note.lua", self.keys[:1], *self.fence(holder), reply[2], reply[3], "gate-1",
                              instance, self.name if asked is None else asked)

    def write(self, holder, etag="tag-1", body=b"value", if_match="", if_none_match="", key="", digest="", kind="text/x",
              encoding=""):
        return self.fenced("write", 3, holder, self.name, if_match, if_none_match, key, digest, etag, kind, encoding, body)

    def remove(self, holder, if_match="", if_none_match="", key="", digest=""):
        return self.fenced("remove", 3, holder, self.name, if_match, if_none_match, key, digest, REMEMBER_MS)

    def read(self, if_none_match=""):
        return self.store.call("gateway/scripts/read.lua", self.keys[:2], self.lease.name, if_none_match)

    def read_fenced(self, holder, if_none_match=""):
        return self.fenced("read_fenced", 2, holder, if_none_match)

    def check(self, holder):
        return self.fenced("check", 1, holder)

    def mark(self):
        return self.store.call("gateway/scripts/mark.lua", self.keys[:1], self.lease.name)

    def forget(self, most=100):
        return self.store.call("gateway/scripts/forget.lua", [self.lease.stripe, self.lease.gone], most)
