"""What the clients of a drill were told, in the order in which they were told it.

There is one order: places are numbers that rise with each beginning and each end of a request of any client. That a grant was
announced before a write was begun is `grant.told < write.begun`, and then it was so in real time too."""

import dataclasses
import itertools
import threading
import time

ACQUIRE, RENEW, RELEASE, WRITE, READ = "acquire", "renew", "release", "write", "read"
# What the accident says, at one place (begun == told): every hold that was announced before is over, for the store lost it;
# from CLOSED to OPENED no grant, renewal or write may be acknowledged.
ALL_OVER, CLOSED, OPENED = "all-over", "closed", "opened"

OK = "ok"              # 2xx: granted, renewed, released, written, read
HELD = "held"          # 409: another has it
OVER = "over"          # told that the hold is over: 410, or 412 of the fence (stale, expired, unissued)
ODD = "odd"            # refused in a way that no accident explains: 400, 401, 403, 500, ...
NOT_DONE = "not-done"  # it certainly did not happen: 503, or nobody listened
UNKNOWN = "unknown"    # it may have happened: 504, a broken connection


def now_ms():
    return int(time.monotonic() * 1000)


@dataclasses.dataclass(slots=True)
class Event:
    kind: str
    end: str = OK
    client: int = 0
    lease: int = 0
    hold: int = 0      # number of the acquire: one for each lease_id; 0: none
    token: int = 0     # of the grant, or that a renewal, release or write was made with; 0: none
    epoch: int = 0
    begun: int = 0     # places; of a repeated acquire, begun is that of the first try
    told: int = 0
    begun_ms: int = 0  # now_ms()
    told_ms: int = 0
    ttl_ms: int = 0    # of a grant, or that was asked for with a renewal
    value: int = 0     # number of the write; of a read: of the write whose value was there, 0: none
    code: str = ""     # of the problem


class History:
    """For any thread."""

    def __init__(self):
        self.events = []  # ordered by told
        self.changed = threading.Condition()
        self.places, self.holds, self.values = itertools.count(1), itertools.count(1), itertools.count(1)
        self.grants, self.last_grant_begun, self.highest_token = 0, 0, 0

    def place(self):
        """For the beginning of a request, and for "since now"."""
        with self.changed:
            return next(self.places)

    def tell(self, event):
        """Fills in when it was told."""
        with self.changed:
            event.told, event.told_ms = next(self.places), now_ms()
            self.events.append(event)
            if event.kind == ACQUIRE and event.end == OK:
                self.grants += 1
                self.last_grant_begun = max(self.last_grant_begun, event.begun)
                self.highest_token = max(self.highest_token, event.token)
                self.changed.notify_all()

    def mark(self, kind):
        """ALL_OVER, CLOSED, OPENED; its place."""
        with self.changed:
            place = next(self.places)
            self.events.append(Event(kind, begun=place, told=place, begun_ms=now_ms(), told_ms=now_ms()))
            return place

    def wait_grant(self, since, until_ms):
        """For a grant that was asked for after the place since: when the first was told; None: none came."""
        with self.changed:
            self.changed.wait_for(lambda: self.last_grant_begun > since, max(0, until_ms - now_ms()) / 1000)
            told = itertools.takewhile(lambda one: one.told > since, reversed(self.events))
            return min((one.told_ms for one in told if one.kind == ACQUIRE and one.end == OK and one.begun > since), default=None)

    def write(self, path):
        """As the judge saw it, a line for each event."""
        names = [field.name for field in dataclasses.fields(Event)]
        with open(path, "w", encoding="utf-8") as file:
            file.write(" ".join(names) + "\n")
            for event in self.events:
                file.write(" ".join(str(getattr(event, name)) for name in names) + "\n")
