"""The clients of a drill: their requests, each of which goes into the history with its end, and the threads that acquire, write,
pause, renew and release all the while."""

import dataclasses
import random
import re
import string
import threading
import traceback

import pycurl

from history import (ACQUIRE, HELD, NOT_DONE, ODD, OK, OVER, READ, RELEASE, RENEW, UNKNOWN, WRITE, Event, now_ms)

# The second three are in the stripes of the first three: they share a counter with them. The others are for accidents.
LEASES = ("drill:orders", "drill:mail", "drill:stock", "drill:orders-386", "drill:mail-62", "drill:stock-60",
          "drill:long", "drill:revived", "drill:probe", "drill:spare", *(f"drill:held-{number}" for number in range(8)))
LOADED = 6
LONG, SPARE, PROBE, SPARES = 6, 7, 8, range(10, 18)
REQUEST_S = 4
ID_LETTERS = string.ascii_letters + string.digits + "-_"
OLD_HOLDS = 24  # that a client remembers, of whatever age
TTL_MIN_MS, TTL_SHORT_MS, TTL_MAX_MS = 300, 600, 2000
REPEATS = 8     # of an acquire without a known end


@dataclasses.dataclass(slots=True)
class Hold:
    """As its holder knows it."""
    lease: int
    number: int      # Event.hold
    lease_id: str
    ttl_ms: int
    token: int = 0
    epoch: int = 0
    begun: int = 0   # of the first acquire; 0: not asked yet
    begun_ms: int = 0
    until_ms: int = 0  # counted from the sending
    fencing_token: str = ""


def end_of(kind, status, code):
    if status < 300 or (status == 404 and kind == READ):
        return OK
    if status == 409:
        return OVER if code == "hold-over" else HELD
    return {410: OVER, 412: OVER, 503: NOT_DONE, 504: UNKNOWN}.get(status, ODD)


class Client:
    """Belongs to one thread. It proposes its own lease_ids, so that an acquire without a known end can be repeated and is then
    the same hold. service: the lease service that it asks; None: another each time; gateway: in the same way."""

    def __init__(self, number, seed, world, history, service=None, gateway=None):
        self.number, self.world, self.history, self.service, self.gateway = number, world, history, service, gateway
        self.random = random.Random(f"{seed} client {number}")
        self.code = ""  # of the last problem

    def _exchange(self, event, method, headers, body=None):
        """Sends it, and fills in its end; the answer, None without one."""
        if not event.begun:
            event.begun, event.begun_ms = self.history.place(), now_ms()
        if event.kind in (WRITE, READ):
            room, service = "resources", self.gateway or self.random.choice(self.world.gateways)
        else:
            room, service = "leases", self.service or self.random.choice(self.world.leases)
        try:
            answer = service.http(method, f"/v1/{room}/{LEASES[event.lease]}", headers, body, held=False)
            event.code = answer.code or "" if answer.status >= 300 else ""
            event.end = end_of(event.kind, answer.status, event.code)
        except pycurl.error as error:
            answer, event.end = None, (NOT_DONE if error.args[0] == pycurl.E_COULDNT_CONNECT else UNKNOWN)
        self.code = event.code
        return answer

    def _told(self, event):
        self.history.tell(event)
        return event.end

    def _event(self, kind, hold, **more):
        return Event(kind, client=self.number, lease=hold.lease, hold=hold.number, token=hold.token, epoch=hold.epoch,
                     **{"ttl_ms": hold.ttl_ms, **more})

    def new_hold(self, lease, ttl_ms):
        """A new lease_id and number, nothing asked yet."""
        return Hold(lease, next(self.history.holds), "".join(self.random.choices(ID_LETTERS, k=22)), ttl_ms)

    def acquire(self, hold):
        """Or, of the same hold, its repetition."""
        event = self._event(ACQUIRE, hold, begun=hold.begun, begun_ms=hold.begun_ms)
        answer = self._exchange(event, "POST", {},
                                {"holder": f"drill-{self.number}", "ttl_ms": hold.ttl_ms, "lease_id": hold.lease_id})
        hold.begun, hold.begun_ms = event.begun, event.begun_ms
        if event.end == OK:
            try:
                grant = answer.json
                hold.token, hold.epoch, hold.fencing_token = grant["token"], grant["epoch"], grant["fencing_token"]
                hold.until_ms = event.begun_ms + hold.ttl_ms
                event.token, event.epoch = hold.token, hold.epoch
            except (ValueError, KeyError):
                event.end = ODD  # a 2xx without a token is one that nobody can use
        return self._told(event)

    def renew(self, hold, ttl_ms=None):
        event = self._event(RENEW, hold, ttl_ms=ttl_ms or hold.ttl_ms)
        answer = self._exchange(event, "PUT", {"Lease-Id": hold.lease_id}, {"ttl_ms": event.ttl_ms})
        if event.end == OK:
            hold.ttl_ms, hold.until_ms = event.ttl_ms, event.begun_ms + event.ttl_ms
            try:  # one that came back with another token would be another hold
                event.end = OK if answer.json["token"] == hold.token else ODD
            except (ValueError, KeyError):
                event.end = ODD
        return self._told(event)

    def release(self, hold):
        event = self._event(RELEASE, hold)
        self._exchange(event, "DELETE", {"Lease-Id": hold.lease_id})
        return self._told(event)

    def write(self, hold):
        """To the lease's resource, a value that names this write."""
        event = self._event(WRITE, hold, value=next(self.history.values))
        self._exchange(event, "PUT", {"Fencing-Token": hold.fencing_token, "Content-Type": "text/plain"},
                       f"{event.value} with token {hold.token} of epoch {hold.epoch}".encode())
        return self._told(event)

    def read(self, lease):
        event = Event(READ, client=self.number, lease=lease)
        answer = self._exchange(event, "GET", {})
        if event.end == OK and answer.status == 200:
            number = re.match(rb"[1-9]\d*", answer.body)
            event.value, event.end = (int(number[0]), OK) if number else (0, ODD)
        return self._told(event)


class Stops(Exception):
    """The load is to end."""


RUNS, PAUSES, STOPS = "runs", "pauses", "stops"


class Load:
    """The threads. The seed decides what each client does next, not when it is answered."""

    def __init__(self, world, history, clients, seed):
        self.changed, self.state, self.busy, self.broken = threading.Condition(), RUNS, 0, ""
        self.threads = [threading.Thread(target=Worker(self, Client(number + 1, seed, world, history)).run, daemon=True)
                        for number in range(clients)]
        for thread in self.threads:
            thread.start()

    def _change(self, state):
        with self.changed:
            self.state = state
            self.changed.notify_all()

    def pause(self):
        """No client begins anything from here on, until resume(); returns when none is under way."""
        self._change(PAUSES)
        with self.changed:
            self.changed.wait_for(lambda: self.busy == 0)

    def resume(self):
        self._change(RUNS)

    def stop(self):
        """Until the last thread has ended."""
        self._change(STOPS)
        for thread in self.threads:
            thread.join()
        if self.broken:
            raise AssertionError(f"a client of the drill broke: {self.broken}")


class Worker:
    """Once and again something that clients do: looks at a resource; tries a write with the token of a hold of long ago; acquires,
    writes, now and then renews, and then does one of: release, release and write all the same, pause longer than the ttl and
    write all the same, leave it to expire."""

    def __init__(self, load, client):
        self.load, self.client, self.random, self.old = load, client, client.random, []

    def run(self):
        try:
            while True:
                self._wait_turn()
                try:
                    self._turn()
                    self._wait_ms(1, 12)
                finally:
                    with self.load.changed:
                        self.load.busy -= 1
                        self.load.changed.notify_all()
        except Stops:
            pass
        except Exception:  # pylint: disable=broad-except # told by stop()
            self.load.broken = traceback.format_exc()

    def _wait_turn(self):
        load = self.load
        with load.changed:
            load.changed.wait_for(lambda: load.state != PAUSES)
            if load.state == STOPS:
                raise Stops
            load.busy += 1

    def _wait_ms(self, low, high):
        with self.load.changed:
            if self.load.changed.wait_for(lambda: self.load.state == STOPS, self.random.randint(low, high) / 1000):
                raise Stops

    def _turn(self):
        what = self.random.randrange(100)
        if what < 8:
            self.client.read(self.random.randrange(LOADED))
        elif what >= 18:
            self._hold_lease()
        elif self.old:
            self.client.write(self.random.choice(self.old))

    def _hold_lease(self):
        ttl_ms = self.random.randint(TTL_MIN_MS, self.random.choice([TTL_MAX_MS] + 3 * [TTL_SHORT_MS]))
        hold = self.client.new_hold(self.random.randrange(LOADED), ttl_ms)
        if self._acquire(hold):
            for _ in range(self.random.randint(1, 3)):
                self._wait_ms(1, 12)
                self.client.write(hold)
            if self.random.randrange(5) == 0:
                self.client.renew(hold)
            self._give_up(hold)
            self._remember(hold)

    def _acquire(self, hold):
        """An acquire without a known end is repeated: with the same lease_id it is the same hold."""
        end = self.client.acquire(hold)
        unknown, repeats = end == UNKNOWN, 0
        while unknown and repeats < REPEATS:
            self._wait_ms(5, 40)
            end, repeats = self.client.acquire(hold), repeats + 1
            unknown = end in (UNKNOWN, NOT_DONE)
        if end != OK:
            self._wait_ms(5, 40)
        return end == OK

    def _give_up(self, hold):
        how = self.random.randrange(100)
        if how < 82:
            self.client.release(hold)
        if 70 <= how < 82:
            self.client.write(hold)
        if 82 <= how < 94 and hold.ttl_ms <= TTL_SHORT_MS:
            left_ms = max(0, hold.until_ms - now_ms())
            self._wait_ms(left_ms + 1, left_ms + 400)
            self.client.write(hold)

    def _remember(self, hold):
        if len(self.old) < OLD_HOLDS:
            self.old.append(hold)
        else:
            self.old[self.random.randrange(OLD_HOLDS)] = hold
