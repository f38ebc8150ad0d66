"""What the scripts of a lease are to do, told once more and as plainly as can be: leases in memory, without keys, indexes,
bounds or alarms. tests/scripts/test_line_walk.py compares."""

import dataclasses

CLAIM_MS, DESK_MS, HANDED_TTL_MS, PLACE_MS = 3000, 3000, 60000, 60000
NO_DESK = ":d:-"
NOBODY = (None, None, None, "")  # lease_id, how it ended, name and identity of a hold that ended last


@dataclasses.dataclass
class Hold:
    lease_id: str
    name: str
    token: int
    deadline: int
    terms: dict
    desk: object = None  # (desk, wid) while nobody has claimed it
    untold: bool = False  # claimed, and nobody was told
    entered: int = 1
    who: str = ""  # began it
    how: str = ""  # it is over, though its deadline may not have come

    def lives(self, now):
        return now < self.deadline and not self.how

    def is_void(self, how):
        if not self.how:
            self.how = "returned" if self.desk else how


class World:
    """The clock, the desks, and what was told to them."""

    def __init__(self, now):
        self.now, self.desks, self.told = now, {}, []

    def dies(self, desk):
        self.desks[desk] = min(self.desks[desk], self.now - DESK_MS - 1)

    def lives(self, desk):
        return desk in self.desks and self.now - self.desks[desk] <= DESK_MS


class LeaseModel:
    def __init__(self, world, tokens, remember_ms):
        self.world, self.tokens, self.remember_ms = world, tokens, remember_ms
        self.keys = {}  # lease_id -> {Idempotency-Key: (holds after its request, digest)}
        self.forget()

    def forget(self):
        self.holds, self.line, self.token, self.delayed_until, self.forget_at = {}, {}, 0, 0, 0
        self.mode, self.permits = None, 0  # of those who hold
        self.last = self.before = NOBODY  # before: what was handed on

    # -- what the scripts have in common

    def end(self, hold, how):
        del self.holds[hold.lease_id]
        if how in ("expired", "store-restarted") and "delay" in hold.terms:
            self.delayed_until = max(self.delayed_until, min(self.world.now, hold.deadline) + hold.terms["delay"])
        if how != "returned":
            self.last = (hold.lease_id, how, hold.name, hold.who)
        elif self.mode == "exclusive":
            self.last = self.before if self.before[0] else (hold.lease_id, None, hold.name, hold.who)
        if not self.holds:
            self.mode = None
            self.forget_at = max(self.world.now + self.remember_ms, self.delayed_until)

    def settle(self):
        for hold in sorted(self.holds.values(), key=lambda one: (one.deadline, one.lease_id)):
            if not hold.lives(self.world.now):
                hold.is_void("expired")
                self.end(hold, hold.how)

    def fits(self, terms):
        if self.world.now < self.delayed_until:
            return False
        if self.mode is None:
            return True
        wanted = terms.get("mode", "exclusive")
        return wanted == self.mode and (wanted == "shared" or wanted == "permits" and terms["permits"] == self.permits
                                        and len(self.holds) < self.permits)

    def grant(self, lease_id, terms, desk=None, untold=False):
        self.token = self.tokens.next()
        deadline = self.world.now + (CLAIM_MS if desk else terms["ttl"])
        if self.mode is None:
            self.mode, self.permits = terms.get("mode", "exclusive"), terms.get("permits", 0)
            self.before = self.last if self.last[1] and (desk or untold) else NOBODY
            self.last = NOBODY if self.mode == "exclusive" else self.before
        self.holds[lease_id] = Hold(lease_id, terms["hold"], self.token, deadline, terms, desk, untold, who=terms["who"])
        if "key" in terms:
            self.remember(self.holds[lease_id], terms["key"], terms["digest"])
        return self.holds[lease_id]

    def remember(self, hold, key, digest):
        self.keys.setdefault(hold.lease_id, {})[key] = (hold.entered, digest)

    def forget_keys(self, lease_id):
        """When they are due."""
        if lease_id not in self.holds:
            del self.keys[lease_id]

    def stands(self, terms):
        """Whether it is not passed over."""
        alive = self.world.lives(terms["desk"])
        if "until" not in terms and (alive or "keep" not in terms):
            return alive
        return self.world.now < terms.get("until", self.world.desks.get(terms["desk"], -DESK_MS) + DESK_MS + terms.get("keep", 0))

    def forget_places(self):
        for lease_id in [one for one, terms in self.line.items() if terms.get("until", self.world.now + 1) <= self.world.now]:
            del self.line[lease_id]

    def turn(self, own_desk=None):
        """The first in line who lives, and those behind who go together with him. own_desk: of a release; the hold that it
        grants to one who stands there."""
        while self.line:
            self.settle()
            lease_id, terms = next(iter(self.line.items()))
            desk = (terms["desk"], terms["wid"])
            if not self.stands(terms):
                del self.line[lease_id]
            elif self.fits(terms):
                del self.line[lease_id]
                if desk[0] == own_desk and not {"mode", "until"} & set(terms) and self.world.lives(own_desk) \
                        and terms["ttl"] + terms.get("delay", 0) <= HANDED_TTL_MS:
                    return self.grant(lease_id, terms, untold=True)
                self.grant(lease_id, terms, desk)
                self.world.told.append((desk[0], "granted " + desk[1]))
                if self.mode == "exclusive":
                    break
            else:
                break
        return None

    def claim_it(self, hold):
        hold.desk, hold.untold, hold.deadline = None, True, self.world.now + hold.terms["ttl"]

    def live(self, lease_id):
        hold = self.holds.get(lease_id)
        return hold if hold and hold.lives(self.world.now) else None

    def known(self):
        """What its record says of holds that are over."""
        return [self.before, self.last] if self.mode == "exclusive" else [self.last]

    def ended(self, lease_id, name=""):
        return next((how for one, how, hold, _ in self.known() if one == lease_id and name in ("", hold)), None)

    def is_anothers(self, lease_id, asker):
        whose = [who for one, _, _, who in self.known() if one == lease_id]
        whose += [one[lease_id].who for one in [self.holds] if lease_id in one]
        whose += [one[lease_id]["who"] for one in [self.line] if lease_id in one]
        return asker is not None and any(one not in ("", asker) for one in whose)

    def is_strange(self, lease_id):
        """Who judges says no more to it than that (own_hold.strange())."""
        return lease_id not in [one[0] for one in self.known()] and lease_id not in self.holds and lease_id not in self.line

    def told(self, word, hold):
        hold.untold = hold.untold and word in ("claimed", "handed")
        return [word, hold.token, hold.name, hold.deadline - self.world.now, hold.entered]

    def restart(self):
        """The store may have lost something: all that is held is over."""
        for hold in self.holds.values():
            hold.is_void("store-restarted")
        self.keys = {lease_id: dict.fromkeys(known) for lease_id, known in self.keys.items()}

    # -- the scripts

    def acquire(self, lease_id, terms, full=False):
        """full: there is no room for anything new, but others may hand it on."""
        self.settle()
        if self.mode != "exclusive" and not full:
            self.turn()
        hold = self.live(lease_id)
        if hold:
            return self.again(hold, terms)
        how = self.ended(lease_id)
        if how:
            if not full:
                self.turn()
            return ["over", how]
        has_place = "desk" in terms and lease_id in self.line
        if not has_place and self.mode == terms.get("mode") == "permits" and terms["permits"] != self.permits:
            return ["mismatch", self.permits]
        if full and not has_place and self.fits(terms):
            return ["held-off"]
        if self.fits(terms) and not self.line:
            hold = self.grant(lease_id, terms)
            return ["granted", hold.token, terms["ttl"]]
        if "desk" not in terms:
            return ["held", self.token]
        if not self.world.lives(terms["desk"]):
            return ["desk-gone"]
        if full and not has_place:
            return ["held-off"]
        if lease_id in self.line:
            before = self.line[lease_id]
            self.world.told.append((before["desk"], "superseded " + before["wid"]))
        self.line[lease_id] = terms
        return ["queued"]

    def again(self, hold, terms):
        known = self.keys.get(hold.lease_id, {}).get(terms.get("key"))
        if known and known[1] != terms["digest"]:
            return ["key-reused"]
        reply = self.once_more(hold, terms, known)
        if "key" in terms and not known and reply[0] != "differs":
            self.remember(hold, terms["key"], terms["digest"])
        return reply[:4] + [known[0]] if known and reply[0] != "differs" else reply

    def once_more(self, hold, terms, known):
        if self.mode != terms.get("mode", "exclusive") or self.mode == "permits" and terms["permits"] != self.permits:
            return ["differs"]
        if hold.desk:
            if hold.desk[0] != NO_DESK:
                self.world.told.append((hold.desk[0], "superseded " + hold.desk[1]))
            hold.name = terms["hold"]
            self.claim_it(hold)
            hold.untold = False
            return self.told("claimed", hold)
        if terms.get("reentrant") and not known:
            hold.entered += 1
            hold.deadline = self.world.now + hold.terms["ttl"]
            return self.told("entered", hold)
        return self.told("replayed", hold)

    def claim(self, lease_id, name):
        hold = self.live(lease_id)
        if hold and hold.desk and hold.name == name:
            self.claim_it(hold)
        if hold:
            return self.told("claimed", hold) if hold.name == name else ["superseded"]
        self.settle()
        how = self.ended(lease_id)
        self.turn()
        return ["lost", how or "unknown"]

    def again_at(self, lease_id, name, desk, wid):
        terms = None if self.live(lease_id) else self.line.get(lease_id)
        if terms and terms["hold"] == name:
            terms |= {"desk": desk, "wid": wid}
        reply = ["superseded"] if terms and terms["hold"] != name else self.claim(lease_id, name)
        return ["queued"] if terms and terms["hold"] == name else reply

    def leave(self, lease_id, name, how, keep):
        hold, terms = self.live(lease_id), self.line.get(lease_id)
        if hold and hold.name != name or terms and terms["hold"] != name:
            return ["superseded"]
        if hold and how == "late":
            return ["granted"]
        if hold and not (hold.desk or hold.untold):
            return ["superseded"]
        if hold and keep:
            if hold.untold:
                hold.desk, hold.untold, hold.deadline = (NO_DESK, "0"), False, self.world.now + CLAIM_MS
        elif hold:
            self.end(hold, "returned")
        kept = terms.get("keep", 0) if terms else 0
        if kept:
            self.forget_places()
            kept = kept if lease_id in self.line else 0
            terms["until"] = self.world.now + kept
        else:
            self.line.pop(lease_id, None)
        self.settle()
        self.turn()
        return ["left", self.token, kept]

    def release(self, lease_id, name, all_of_it, desk, key="", digest=""):
        hold, known = self.live(lease_id), self.keys.get(lease_id, {}).get(key)
        if known:
            return ["key-reused"] if known[1] != digest else ["left", known[0]] if known[0] else ["released"]
        if hold and not hold.desk and name in ("", hold.name):
            hold.entered = 0 if all_of_it else hold.entered - 1
            if key:
                self.remember(hold, key, digest)
            if hold.entered:
                hold.untold = False
                return ["left", hold.entered]
            self.end(hold, "released")
            handed = self.turn(desk)
            return self.told("handed", handed) if handed else ["released"]
        self.settle()
        how = self.ended(lease_id, name)
        self.turn()
        return ["released"] if how == "released" else ["lost", how or "unknown"]

    def renew(self, lease_id, name, ttl):
        hold = self.live(lease_id)
        if hold and not hold.desk and name in ("", hold.name):
            hold.terms = dict(hold.terms, ttl=ttl)
            hold.deadline = self.world.now + ttl
            return self.told("renewed", hold)
        self.settle()
        how = self.ended(lease_id, name)
        self.turn()
        return ["lost", how or "unknown"]

    def force(self, token):
        self.settle()
        ended = [one for one in self.holds.values() if token in ("", one.token)]
        for hold in sorted(ended, key=lambda one: (one.deadline, one.lease_id)):
            self.end(hold, "forced")
        self.turn()
        if token != "" and not ended:
            return ["moved-on", self.token]
        return ["forced", max([one.token for one in ended], default=0)]

    def look(self):
        self.settle()
        self.turn()
        state = "held" if self.holds else "delayed" if self.world.now < self.delayed_until else "free"
        return [state, self.token, sorted(one.token for one in self.holds.values())]

    def hand_on(self):
        self.settle()
        self.forget_places()
        self.turn()
        return ["handed-on"]

    def sweep(self):
        """When it is due."""
        if not (self.holds or self.line or self.world.now < self.forget_at):
            self.forget()
            return
        self.settle()
        self.turn()
