"""What the scripts of intents are to do, told once more and as plainly as can be: intents in memory, without texts or bounds.
tests/scripts/test_intent_walk.py compares."""

import dataclasses


@dataclasses.dataclass
class Open:
    name: str
    token: tuple  # (epoch, token)
    seq: int
    state: str
    kind: str
    gateway: str
    incarnation: str
    id: str
    unknown: str
    at: int
    leaps: int = None

    def text(self):
        parts = [self.name, f"{self.token[0]:015}", f"{self.token[1]:015}", f"{self.seq:016}", self.state, self.kind, self.gateway,
                 self.incarnation, self.id, self.unknown, str(self.at)]
        return " ".join(parts + ([str(self.leaps)] if self.state == "d" else []))


STEP_MS = 2000  # by so much the clock may be stepped unnoticed: it does not count for a grace
BUT = {"o": "", "o+": "", "o~": "", "c": "cka"}  # whom a write of this kind does not wait for; the others wait for nobody


def grace_of(unknown):
    return int(unknown[1:]) if unknown.startswith("g") else None


class IntentModel:
    """One stripe. holds: {name: ((epoch, token), deadline or None)}, of the last grant; what a script changes raises seq."""

    def __init__(self, now):
        self.now, self.leaps, self.alive = now, 0, 0
        self.intents, self.doubt, self.holds, self.marks = [], {}, {}, {}

    # -- what the scripts have in common

    def reason(self, name, token):
        last, deadline = self.holds[name]
        if token < last:
            return "stale-token"
        return None if deadline and self.now < deadline and token[0] >= self.alive else "lease-expired"

    def passed(self, name, token):
        mark = self.marks.get(name, (0, 0))
        self.marks[name] = max(mark if mark[0] >= self.alive else (0, 0), token)

    def dead_for(self, at, leaps):
        return self.now - at - (self.leaps - leaps) - STEP_MS

    def doubtful(self, unknown):
        grace = grace_of(unknown)
        return [who for who, dead in self.doubt.items() if not (dead and grace is not None and self.dead_for(*dead) >= grace)]

    def is_over(self, one):
        grace = grace_of(one.unknown)
        return one.state == "d" and grace is not None and self.dead_for(one.at, one.leaps) >= grace

    def in_front(self, name, token, serial_before=None, but=""):
        """Takes out what need not be waited for; the first that must be. serial_before: equal tokens count up to this seq."""
        first = None
        for one in sorted(self.intents, key=Open.text):
            equal = one.token == token and serial_before is not None and one.seq < serial_before
            if one.name != name or not (one.token < token or equal):
                continue
            if one.state == "q" and not equal or self.is_over(one):
                self.intents.remove(one)
            elif one.kind[0] not in but:
                first = first or one.text()
        return first

    def change(self, one, state):
        one.state, one.at, one.leaps = state, self.now, self.leaps if state == "d" else None

    # -- the scripts; each returns the word, and what else the walk compares

    def admit(self, name, token, kind, gateway, incarnation, number, unknown, seq):
        """seq: that of the stripe after the script, if it records."""
        if self.reason(name, token):
            return ["refused", self.reason(name, token)]
        waits = kind not in "ka"
        if waits and self.doubtful(unknown):
            return ["in-doubt"]
        first = self.in_front(name, token, 1 << 60 if kind == "o+" else None, BUT[kind]) if waits else None
        self.passed(name, token)
        one = Open(name, token, seq, "q" if first else "s", kind, gateway, incarnation, number, unknown, self.now)
        self.intents.append(one)
        return ["queued", one.text(), first] if first else ["sending", one.text()]

    def find(self, one):
        """The same intent, as it stands now."""
        key = (one.name, one.token, one.seq, one.gateway, one.incarnation, one.id)
        return next((other for other in self.intents
                     if (other.name, other.token, other.seq, other.gateway, other.incarnation, other.id) == key), None)

    def promote(self, told):
        one, reason = self.find(told), self.reason(told.name, told.token)
        if one and one.state == "s":
            return ["sending", one.text()]
        if not one or one.state != "q":
            return ["cancelled", reason or ""]
        if reason:
            self.intents.remove(one)
            return ["refused", reason]
        if self.doubtful(told.unknown):
            return ["queued", one.text(), "store"]
        first = self.in_front(one.name, one.token, one.seq if one.kind == "o+" else None, BUT[one.kind])
        if first:
            return ["queued", one.text(), first]
        self.change(one, "s")
        return ["sending", one.text()]

    def check(self, told):
        one = self.find(told)
        if self.reason(told.name, told.token) or self.doubt or not one or one.state != "s":
            return ["missing"]
        self.passed(told.name, told.token)
        return ["sending"]

    def read(self, name, token, unknown):
        if self.reason(name, token):
            return ["refused", self.reason(name, token)]
        self.passed(name, token)
        first = self.in_front(name, token, but="k")
        return ["wait", "store"] if self.doubtful(unknown) else ["wait", first] if first else ["accepted"]

    def close(self, word, told):
        one, gone = self.find(told), []
        if word == "unknown":
            if one and one.state == "s":
                self.change(one, "u")
                one.kind = told.kind
                return 1
            return 0
        if one:
            gone.append(one)
        if word == "settle":
            gone += [other for other in self.intents
                     if other.name == told.name and other.kind == "c" and other.token < told.token]
        for other in gone:
            self.intents.remove(other)
        return len(gone)

    def forget(self, name, gateway, incarnation, number):
        gone = [one for one in self.intents if (one.name, one.gateway, one.incarnation, one.id) == (name, gateway, incarnation, number)]
        for one in gone:
            self.intents.remove(one)
        return len(gone)

    def takeover(self, gateway, living):
        theirs = [one for one in self.intents if one.gateway == gateway and one.incarnation != living]
        for one in theirs:
            if one.state == "q" or one.state != "d" and one.kind in "ka":
                self.intents.remove(one)
            elif one.state != "d":
                self.change(one, "d")
        return sorted(one.text() for one in theirs if one.state == "d")

    def again(self, told):
        found = self.find(told)
        if found and not (found.state == "q" and told.state != "q"):
            return 0
        if found:
            self.intents.remove(found)
        one = dataclasses.replace(told)
        if one.state == "d":
            self.change(one, "d")
        self.intents.append(one)
        return 1

    def dead(self, gateway, living):
        return self.lost(gateway, {who.split(" ")[1] for who in self.doubt if who.startswith(gateway + " ")} - {living})

    def lost(self, gateway, named):
        for incarnation in named:
            self.doubt[f"{gateway} {incarnation}"] = self.doubt.get(f"{gateway} {incarnation}") or (self.now, self.leaps)
        return sorted(named)

    def resolve(self, name):
        gone = [one for one in self.intents if one.name == name and one.state in "ud"]
        for one in gone:
            self.intents.remove(one)
        return len(gone)
