"""The record of a lease as the store has it (shared/member/scripts/lib/hold.lua), read and written past all scripts."""

import zlib

import msgpack

# What of a stripe's fields is one text, "life" (shared/member/scripts/lib/stripe.lua).
LIFE_PARTS = ("id", "epoch", "alive", "clock", "ceiling")
# The parts of the text, by one letter each; those behind them have theirs in front. Numbers, and what always is there.
PARTS, NUMBERS, ALWAYS = "stehidkpDoIlgnmE", "tedkpDlgnNjb", "stehid"
SWAP = """if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1"""
INTENTS = """local found = {}
for stripe = 0, 255 do
    for _, text in ipairs(redis.call('ZRANGE', string.format('pawl:{%02x}:i', stripe), 0, -1)) do
        found[#found + 1] = text
    end
end
return found"""


def stripe_of(name):
    return zlib.crc32(name.encode()) & 0xFF


def stripe_key(name):
    return f"pawl:{{{stripe_of(name):02x}}}"


def stripe_fields(fields):
    """The fields of a stripe, those that are one text by themselves."""
    life = dict(zip(LIFE_PARTS, fields.get("life", "").split(" ")))
    return {name: value for name, value in fields.items() if name != "life"} | {name: part for name, part in life.items() if part}


def stripe_do(redis, *words):
    """A command, as if each field of a stripe were one by itself."""
    word, key, *fields = (*words, None, None)[:max(len(words), 2)]
    named = dict(zip(fields[::2], fields[1::2])) if word == "HSET" else dict.fromkeys(fields) if word == "HDEL" else {}
    changed = {name: value for name, value in named.items() if name in LIFE_PARTS}
    if not changed or key.count("{") != 1 or not key.endswith("}") or key == "pawl:{store}":
        return redis(*words)
    parts = dict(zip(LIFE_PARTS, (redis("HGET", key, "life") or b"    ").decode().split(" "))) | changed
    for name in named.keys() - changed.keys():
        redis(word, key, name, *([named[name]] if word == "HSET" else []))
    return redis("HSET", key, "life", " ".join("" if part is None else str(part) for part in parts.values()))


def open_intents(redis):
    """Of all leases, the words of each: the first is its lease."""
    return [text.decode().split(" ") for text in redis("EVAL", INTENTS, 0)]


def record_field(name, lease_id=None):
    """lease_id: of the one of its many holds that is meant."""
    return f"h:{name}/{lease_id}" if lease_id else f"l:{name}"


def record_read(packed):
    """The parts that there are, by their letters, as texts."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(packed.encode() if isinstance(packed, str) else packed)
    parts = list(unpacker)
    fixed = {letter: part for letter, part in zip(PARTS, parts) if part or letter in ALWAYS}
    if "l" in fixed:
        fixed.setdefault("g", fixed["d"] - fixed["l"])
    more = parts[len(PARTS):]
    return {letter: str(part) for letter, part in (fixed | dict(zip(more[::2], more[1::2]))).items()}


def record_packed(parts, *behind):
    """behind: values that follow, whatever they are."""
    def value(letter, none=""):
        part = parts.get(letter, none)
        return int(part) if letter in NUMBERS else str(part)
    fixed = [value(letter, 0) if letter in NUMBERS else value(letter) for letter in PARTS]
    more = [one for letter in parts if letter not in PARTS for one in (letter, value(letter))]
    return b"".join(msgpack.packb(one) for one in [*fixed, *more, *behind])


def record_of(redis, name, lease_id=None):
    """{}: there is none."""
    packed = redis("HGET", stripe_key(name), record_field(name, lease_id))
    return record_read(packed) if packed else {}


def record_set(redis, name, lease_id=None, **parts):
    """In one step, whoever else writes it meanwhile; None takes a part away. A record that is not there is one that nobody
    holds."""
    place, done = [stripe_key(name), record_field(name, lease_id)], 0
    while not done:
        before = redis("HGET", *place) or b""
        known = record_read(before) if before else dict(zip("stehid", ["none", 0, 0, "", "", 0]))
        known = {letter: part for letter, part in (known | parts).items() if part is not None}
        done = redis("EVAL", SWAP, 1, *place, before, record_packed(known))
