"""Gateways as the store sees them: what they send to upstreams, and how they record it."""

import collections

from lua_test import EPOCH, RECORD, Holder, stripe_of

ROUTES, DOUBT = "r" * 43, RECORD + ":doubt"
Intent = collections.namedtuple("Intent", "name epoch token seq state kind gateway incarnation id unknown at leaps")


def parse(text):
    """The parts of an intent's text (gateway/scripts/lib/intent.lua), numbers as numbers; their widths are as they should."""
    parts = text.split(" ")
    widths = [len(part) for part in parts[1:4]]
    if widths != [15, 15, 16] or len(parts) != (12 if parts[4] == "d" else 11) or parts[4] not in "qsud":
        raise AssertionError(f"no text of an intent: {text}")
    numbers = [int(part) for part in parts[1:4]]
    return Intent(parts[0], *numbers, *parts[4:10], int(parts[10]), int(parts[11]) if parts[4] == "d" else None)


def same_stripe(name, count, pattern="n{}"):
    """Names of leases in the stripe of this one."""
    names = (pattern.format(i) for i in range(100000))
    return [other for other, _ in zip((one for one in names if stripe_of(one) == stripe_of(name)), range(count))]


def script(name):
    return f"gateway/scripts/{name}.lua"


def fence(lease, holder):
    return [lease.name, holder.token, holder.epoch, holder.hold, holder.mode]


class Gateway:
    """One incarnation of a gateway. Its scripts, and the texts that it was told."""

    def __init__(self, store, name="gate-a", incarnation="life-1", routes=ROUTES):
        self.store, self.name, self.incarnation, self.routes, self.number = store, name, incarnation, routes, 0

    def arguments(self, lease, holder, kind, unknown, check, number):
        return [*fence(lease, holder), check, self.routes, kind, self.name, self.incarnation, number, unknown]

    def admit(self, lease, holder, kind="o", unknown="h", check="live"):
        self.number += 1
        return self.store.call(script("intent_admit"), [lease.stripe],
                               *self.arguments(lease, holder, kind, unknown, check, f"w0.{self.number}"))

    def promote(self, lease, holder, told, unknown="h", check="live"):
        """told: the text that it was told when it was queued."""
        parts = parse(told)
        return self.store.call(script("intent_promote"), [lease.stripe],
                               *self.arguments(lease, holder, parts.kind, unknown, check, parts.id), told)

    def check(self, lease, holder, told, check="live"):
        return self.store.call(script("intent_check"), [lease.stripe], *fence(lease, holder), check, self.routes, told)

    def read(self, lease, holder, unknown="h", check="live"):
        return self.store.call(script("intent_read"), [lease.stripe], *fence(lease, holder), check, self.routes,
                               unknown)

    def takeover(self, stripe, living=None, behind="", most=1000, dead=()):
        """What a successor does, or an operator with living \"\". dead: those that are known to be, else all others."""
        return self.store.call(script("intent_takeover"), [stripe], self.name,
                               self.incarnation if living is None else living, behind, most, *dead)

    def again(self, lease, *texts):
        return self.store.call(script("intent_again"), [lease.stripe], *texts)


def close(store, *items):
    """(word, lease, text), ... in one call."""
    keys = list(dict.fromkeys(lease.stripe for _, lease, _ in items))
    return store.call(script("intent_close"), keys,
                      *[f"{keys.index(lease.stripe) + 1} {word} {text}" for word, lease, text in items])


def texts_of(store, lease):
    """Of the open intents of the lease's stripe, in the order of the bytes."""
    return [one.decode() for one in store.redis("ZRANGE", lease.stripe + ":i", 0, -1)]


def open_of(store, lease):
    """The open intents of the lease, in order."""
    return [one for one in map(parse, texts_of(store, lease)) if one.name == lease.name]


def grant(lease, number, ttl=1000000):
    """The lease goes to somebody new: the holder at the gate."""
    before = lease.field("i")
    if before:
        lease.release(before, may="hold-off")
    hold = f"hold-{number:07}"
    return Holder(lease.acquire(f"id-{number}", hold, ttl=ttl)[2], hold=hold, epoch=int(lease.field("e") or EPOCH))
