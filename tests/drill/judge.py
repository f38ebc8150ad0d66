"""What a history says about the services: pure, from events to counts.

"Announced" means told to the client that asked. What must always be 0:
  twice        grants of one stripe with the same number, whatever the epoch, that are not the same hold
  regressed    grants whose number or epoch is not above (the epoch: not below) that of a grant of the same lease that had been
               announced before this one was asked for
  stale        writes that were let in though they were begun after a newer grant of the lease had been announced, or after the
               store had lost their hold (ALL_OVER); values that are read though their write was refused
  revived      writes let in, or renewals, begun after their holder had been told that the hold is over, or had released it
  outlived     writes let in, or renewals, begun more than slack_ms after the hold's ttl, counted from the moment at which its
               grant or last renewal was told
  overlapped   renewals begun after a newer grant of the lease had been announced: two holders at once
  unadmitted   grants, renewals and writes between CLOSED and OPENED
  odd          answers that no accident explains: the drill itself is at fault, or the service
What an accident may allow:
  lost         acknowledged writes that a later read contradicts
  ended_early  holds of which their holder was told, or of which another's announced grant shows, that they ended before their
               ttl, counted from the sending of the acquire or of the last renewal, without a release: grants that were lost

A request without a known end may have happened at any time from its beginning on, and is never held against anybody."""

import bisect
import collections
import dataclasses

import history as h

SLACK_MS = 250
DONE = ("grants", "writes", "reads", "renewals", "releases")
# Fenced off or held; of these, writes that were told that their hold is over; 503; 504 and broken connections.
NOT_DONE = ("refused", "fenced_off", "not_done", "unknown")
NEVER = ("twice", "regressed", "stale", "revived", "outlived", "overlapped", "unadmitted", "odd")
ALLOWABLE = ("lost", "ended_early")


@dataclasses.dataclass(slots=True)
class Hold:
    """As its holder was told of it."""
    grant: h.Event = None  # None: never announced
    let_go: int = 0        # where its holder began to give it back, or a renewal without a known end; 0: never
    over: int = 0          # where its holder was told that it is over, or had released it; 0: not yet
    at_least_ms: int = 0   # until when it was promised: counted from the sending
    at_most_ms: int = 0    # until when it can have lasted: counted from the answer
    lost: bool = False     # counted as ended early

    def lasts(self, event):
        self.at_least_ms, self.at_most_ms = event.begun_ms + event.ttl_ms, event.told_ms + event.ttl_ms


# The greatest (epoch, token), the greatest number of whatever epoch, the latest beginning.
Peak = collections.namedtuple("Peak", "highest any_token latest_begun")
NONE = Peak((0, 0), 0, 0)


class Peaks:
    """What had been announced at any place of a history; events are added in the order in which they were told."""

    def __init__(self):
        self.told, self.peaks = [], []

    def add(self, event):
        last = self.peaks[-1] if self.peaks else NONE
        self.told.append(event.told)
        self.peaks.append(Peak(max(last.highest, of(event)), max(last.any_token, event.token), max(last.latest_begun, event.begun)))

    def before(self, place):
        at = bisect.bisect_left(self.told, place)
        return self.peaks[at - 1] if at else NONE


def of(event):
    """Tokens compare so."""
    return event.epoch, event.token


class Judge:
    """stripe_of(lease) is the counter that a lease shares. allowed: of ALLOWABLE, what is counted all the same, but not told as
    the first wrong thing, and is no fault."""

    def __init__(self, events, stripe_of, slack_ms=SLACK_MS, allowed=()):
        self.stripe_of, self.slack_ms, self.allowed = stripe_of, slack_ms, allowed
        self.counts = dict.fromkeys(DONE + NOT_DONE + NEVER + ALLOWABLE, 0)
        self.first = ""  # the first wrong thing of those that are not allowed, as a sentence
        self.holds, self.written = collections.defaultdict(Hold), {}
        self.grants, self.writes = collections.defaultdict(Peaks), collections.defaultdict(Peaks)
        self.last = {}  # the grant of each lease with the greatest (epoch, token) so far
        self.all_over = self.closed = self.opened = 0  # the last places of these marks; 0: none
        for event in events:
            self._index(event)
        self._judge_tokens(events)
        for event in events:
            self._judge_told(event)

    @property
    def is_good(self):
        """Whether everything that must be 0 is, and something happened at all."""
        wrong = sum(self.counts[name] for name in NEVER + ALLOWABLE if name not in self.allowed)
        return wrong == 0 and self.counts["grants"] > 0 and self.counts["writes"] > 0

    def _wrong(self, name, event, sentence):
        self.counts[name] += 1
        if name not in self.allowed and not self.first:
            self.first = (f"client {event.client}, lease {event.lease}, token {event.token} of epoch {event.epoch}, "
                          f"places {event.begun} to {event.told}: {sentence}")

    def _index(self, event):
        hold = self.holds[event.hold]
        if event.kind == h.ACQUIRE and event.end == h.OK and hold.grant is None:
            hold.grant = event
        gives_back = event.kind == h.RELEASE and event.end != h.NOT_DONE
        unclear = event.kind == h.RENEW and event.end == h.UNKNOWN
        if (gives_back or unclear) and (hold.let_go == 0 or event.begun < hold.let_go):
            hold.let_go = event.begun
        if event.kind == h.WRITE:
            self.written[event.value] = event

    def _judge_tokens(self, events):
        """Numbers that came twice."""
        issued = sorted((one for one in events if one.kind == h.ACQUIRE and one.end == h.OK),
                        key=lambda one: (self.stripe_of(one.lease), one.token, one.told))
        for before, grant in zip(issued, issued[1:]):
            if (self.stripe_of(before.lease), before.token) == (self.stripe_of(grant.lease), grant.token) and \
                    before.hold != grant.hold:
                self._wrong("twice", grant, f"the same number was granted to client {before.client} at place {before.told} "
                                            f"(epoch {before.epoch})")

    def _judge_told(self, event):
        """One request after the other: what had been announced when it was begun is found by its place."""
        if event.end == h.OK:
            self._told_well(event)
        elif event.end == h.OVER:
            hold = self.holds[event.hold]
            self.counts["refused"] += 1
            self.counts["fenced_off"] += event.kind == h.WRITE
            self._hold_ended(hold, event)
            hold.over = hold.over or event.told
        elif event.end == h.ODD:
            self._wrong("odd", event, f"refused: {event.code}")
        else:
            self.counts[{h.HELD: "refused", h.NOT_DONE: "not_done", h.UNKNOWN: "unknown"}[event.end]] += 1

    def _told_well(self, event):
        if event.kind in (h.ALL_OVER, h.CLOSED, h.OPENED):
            setattr(self, event.kind.replace("-", "_"), event.told)
            return
        {h.ACQUIRE: self._told_acquire, h.RENEW: self._told_renew, h.RELEASE: self._told_release, h.WRITE: self._told_write,
         h.READ: self._told_read}[event.kind](event)
        if event.kind in (h.ACQUIRE, h.RENEW, h.WRITE) and self.opened < self.closed < event.begun:
            self._wrong("unadmitted", event, "acknowledged while the store had to refuse")

    def _told_acquire(self, event):
        hold, before = self.holds[event.hold], self.grants[event.lease].before(event.begun)
        self.counts["grants"] += 1
        if hold.grant is not event:
            if hold.grant.token != event.token:
                self._wrong("twice", event, f"its lease_id had been granted token {hold.grant.token} before")
            return  # a replay: it has nothing new
        if event.token <= before.any_token or event.epoch < before.highest[0]:
            self._wrong("regressed", event, f"granted after token {before.highest[1]} (the highest: {before.any_token}) of "
                                            f"epoch {before.highest[0]} had been announced")
        hold.lasts(event)
        last = self.last.get(event.lease)
        if last is None or of(event) > of(last):
            if last is not None:
                self._hold_ended(self.holds[last.hold], event)
            self.last[event.lease] = event
        elif last.told > event.begun:
            self._hold_ended(hold, last)  # it was announced too late: another had come already
        self.grants[event.lease].add(event)

    def _told_renew(self, event):
        self.counts["renewals"] += 1
        self._judge_let_in(event)
        self.holds[event.hold].lasts(event)

    def _told_write(self, event):
        self.counts["writes"] += 1
        self._judge_let_in(event)
        self.writes[event.lease].add(event)

    def _told_release(self, event):
        hold = self.holds[event.hold]
        self.counts["releases"] += 1
        hold.over = hold.over or event.told

    def _told_read(self, event):
        """A write that may have happened at any time from its beginning on contradicts nothing."""
        write = self.written.get(event.value) if event.value else None
        latest = self.writes[event.lease].before(event.begun).latest_begun
        self.counts["reads"] += 1
        if write is None:
            if event.value or latest:
                self._wrong("lost", event, "read nothing of what had been written")
        elif write.end == h.OK:
            if latest > write.told:
                self._wrong("lost", event, f"read write {event.value}, though another had been begun after it, at place {latest}, "
                                           "and acknowledged")
        elif write.end != h.UNKNOWN:
            self._wrong("stale", event, f"read write {event.value}, which had been refused ({write.code})")

    def _judge_let_in(self, event):
        """What holds for everything that is let in with a hold: renewals and writes."""
        hold, newer = self.holds[event.hold], self.grants[event.lease].before(event.begun).highest
        if newer > of(event):
            self._wrong("stale" if event.kind == h.WRITE else "overlapped", event,
                        f"let in though token {newer[1]} of epoch {newer[0]} had been announced")
        if hold.grant is not None and hold.grant.told < self.all_over < event.begun:
            self._wrong("stale", event, f"let in though the store had lost all holds at place {self.all_over}")
        if 0 < hold.over < event.begun:
            self._wrong("revived", event, f"let in though its hold was over at place {hold.over}")
        if hold.grant is not None and hold.let_go == 0 and event.begun_ms > hold.at_most_ms + self.slack_ms:
            self._wrong("outlived", event, f"let in {event.begun_ms - hold.at_most_ms} ms after the end of its ttl")

    def _hold_ended(self, hold, shown_by):
        let_go = 0 < hold.let_go < shown_by.told
        if hold.grant is None or hold.lost or let_go or hold.over or shown_by.told_ms >= hold.at_least_ms:
            return
        hold.lost = True
        self._wrong("ended_early", hold.grant, f"the hold had ended {hold.at_least_ms - shown_by.told_ms} ms before its time, as "
                                               f"client {shown_by.client} was told ({shown_by.code or 'granted'})")
