#!/usr/bin/python3
"""A gateway that is killed, or stopped for longer than every grace and heartbeat, at each state that an intent can have.

The states, and how a request is brought there (gateway/forward/forward.h):

  asked      its admission is on its way to the store
  recorded   the store says "sending", the gateway does not know it yet: nothing has left
  queued     it waits for an older write that another gateway has sent
  sent       the upstream has it, and does not answer
  answered   the client has its answer, the store does not know of it yet
  unknown    the connection broke: nobody will learn its end
"""

import os
import signal
import tempfile
import threading
import time

from world import World, check, check_equal, main, test_in, wait_until
from world.client import Client
from world.relay import FROM_REDIS, TO_REDIS, Relay
from world.world import Daemon
from world.upstream import Upstream, route, routes_file

EACH = 20
STATES = ("asked", "recorded", "queued", "sent", "answered", "unknown")
BEAT_MS = 10_000  # the longest after which anybody takes a gateway for silent (FRESH_MS in shared/member/scripts/lib/call.lua)
GRACE_MS = 1000
PATIENT_S = 60  # a client that gives up by itself is no gateway that does


class Book:
    """The upstream's own order of arrival, for each lease; and what its writes were told."""

    def __init__(self):
        self.lock = threading.Condition()
        self.applied, self.hanging, self.fates = {}, {}, {}

    def act(self, upstream, request):
        kind = request.body.split(b":", 1)[0]
        if kind == b"hang":
            fate = threading.Event()
            with self.lock:
                self.hanging[request.body] = fate
                self.lock.notify_all()
            fate.wait(60)
            if self.fates.get(request.body) == "dropped":
                request.connection.close()
                return
        self.apply(request)
        if kind == b"reset":
            request.connection.reset()
            return
        Upstream.obey(upstream, request)

    def apply(self, request):
        with self.lock:
            self.applied.setdefault(request.target, []).append((request.token, request.body))

    def has(self, bodies):
        with self.lock:
            held = self.lock.wait_for(lambda: all(body in self.hanging for body in bodies), 20)
        check(held, f"not all have come: {sorted(bodies)[:3]} ...")

    def go_on(self, bodies, fate="answered"):
        with self.lock:
            for body in bodies:
                self.fates[body] = fate
                if body in self.hanging:
                    self.hanging[body].set()


class Write:
    """A request of a client that never gives up by itself."""

    def __init__(self, client, target, grant, body):
        self.target, self.token, self.body, self.status = target, grant["token"], body, None
        self.thread = threading.Thread(target=self._run, args=(client, grant["fencing_token"]), daemon=True)
        self.thread.start()

    def _run(self, client, token):
        try:
            answer = client("PUT", self.target, [("Fencing-Token", token)], self.body, held=False)
            self.status = answer.status
        except Exception:  # pylint: disable=broad-except
            self.status = "gone"

    def end(self, deadline_s=30):
        self.thread.join(deadline_s)
        check(self.status is not None, f"{self.target} {self.body} was not answered")
        return self.status


class Stage:
    """One store, three gateways; the first sees the store through a relay."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="pawl-faults-")
        self.upstream, self.book = Upstream(), Book()
        self.upstream.act = self.book.act
        self.table = routes_file(self.folder, [route(self.upstream, "/w/{id}", "job:{id}", unknown={"grace_ms": GRACE_MS},
                                                     timeout_ms=60_000)])
        self.world = World(gateway_flags=["--routes", self.table])
        self.relay = Relay(self.world.redis)
        self.first = self.start()
        self.third = self.world.client(self.world.daemon("pawl-gateway", "--routes", self.table, "--threads", "2"))
        self.third.deadline_s = self.world.gateway.deadline_s = PATIENT_S
        self.writes, self.names = [], {}

    def start(self):
        flags = ["--redis", self.relay.url, "--keys", self.world.keys_file, "--listen", "127.0.0.1:0", "--routes", self.table,
                 "--state-dir", os.path.join(self.folder, "first"), "--store-timeout", "60s"]
        self.first_daemon = Daemon("pawl-gateway", *flags)
        self.world.daemons.append(self.first_daemon)
        client = Client("gateway", self.first_daemon.url, World.contract, PATIENT_S)
        wait_until(lambda: client("GET", "/readyz", held=False).status == 200, "the first gateway is ready")
        return client

    def lease(self, state, number):
        name = self.names.setdefault((state, number), self.world.name("job"))
        return name, "/w/" + name.split(":", 1)[1]

    def write(self, client, state, number, grant, kind):
        _, target = self.lease(state, number)
        body = f"{kind}:{state}:{number}:{grant['token']}:{len(self.writes)}".encode()
        one = Write(client, target, grant, body)
        self.writes.append(one)
        return one

    def grant(self, state, number):
        """The next hold; the one before is released."""
        name, _ = self.lease(state, number)
        found = getattr(self, "grants", None) or {}
        before = found.get(name)
        if before:
            self.world.release(name, before)
        found[name] = self.world.acquire(name, ttl_ms=600_000)
        self.grants = found
        return found[name]

    def texts(self, state):
        names = {self.lease(state, number)[0] for number in range(EACH)}
        found = []
        for ss in range(256):
            for text in self.world.redis("ZRANGE", f"pawl:{{{ss:02x}}}:i", "0", "-1"):
                words = text.decode().split(" ")
                if words[0] in names:
                    found.append(words[4])
        return sorted(found)

    def bring_about(self):
        """EACH requests in each of the states, all at one moment."""
        def many(state, kind, client=self.first):
            return [self.write(client, state, number, self.grant(state, number), kind) for number in range(EACH)]

        for one in many("unknown", "reset"):
            check_equal(one.end(), 504)
        sent = many("sent", "hang")
        older = many("queued", "hang", self.world.gateway)
        self.book.has([one.body for one in sent + older])
        many("queued", "new")
        answered = many("answered", "hang")
        self.book.has([one.body for one in answered])
        wait_until(lambda: self.texts("queued") == ["q"] * EACH + ["s"] * EACH, "the newer ones are queued")
        wait_until(lambda: self.texts("unknown") == ["u"] * EACH, "the ends of those are unknown")
        grants = {state: [self.grant(state, number) for number in range(EACH)] for state in ("recorded", "asked")}
        replies = self.relay.hold(FROM_REDIS, b"")
        for number in range(EACH):
            self.write(self.first, "recorded", number, grants["recorded"][number], "new")
        wait_until(lambda: self.texts("recorded") == ["s"] * EACH, "they are recorded as being sent")
        requests = self.relay.hold(TO_REDIS, b"")
        for number in range(EACH):
            self.write(self.first, "asked", number, grants["asked"][number], "new")
        wait_until(lambda: self.first.metric("pawl_gateway_forwarding") == 5 * EACH, "they are at the gateway")
        self.book.go_on([one.body for one in answered])
        for one in answered:
            check_equal(one.end(), 200)
        hit = {state: len(self.texts(state)) for state in STATES}
        check_equal(hit, {"asked": 0, "recorded": EACH, "queued": 2 * EACH, "sent": EACH, "answered": EACH, "unknown": EACH})
        print(f"# {EACH} intents in each of the states {', '.join(STATES)}", flush=True)
        return replies, requests

    def newer(self, deadline_s=40):
        """Somebody else holds every lease, and writes through the other gateway until it is told that it is done."""
        todo = [(state, number) for state in STATES for number in range(EACH)]
        grants = {one: self.grant(*one) for one in todo}
        told, tries, again = {}, {}, threading.Event()

        def push(one):
            while one not in told:
                tries[one] = tries.get(one, 0) + 1
                client = self.third if tries[one] % 2 else self.world.gateway
                status = self.write(client, *one, grants[one], "new").end()
                if status == 503:
                    told.setdefault(("waited", one[0]), 0)
                    told[("waited", one[0])] += 1
                    again.wait(0.2)  # as a client would: the answer is retryable
                else:
                    told[one] = status
        threads = [threading.Thread(target=push, args=(one,), daemon=True) for one in todo]
        for thread in threads:
            thread.start()
        return threads, told, time.monotonic() + deadline_s

    @staticmethod
    def everybody(threads, told, deadline):
        for thread in threads:
            thread.join(max(0, deadline - time.monotonic()))
        wrong = {one: told.get(one) for one in [(s, n) for s in STATES for n in range(EACH)] if told.get(one) != 200}
        check_equal(wrong, {}, "everybody gets on")

    def judge(self):
        """Tokens never go down; what was acknowledged is there once, and nothing twice; what was refused is not there."""
        for target, applied in self.book.applied.items():
            tokens = [token for token, _ in applied]
            check_equal(tokens, sorted(tokens), f"{target}: {applied}")
        for one in self.writes:
            times = sum(body == one.body for _, body in self.book.applied.get(one.target, []))
            if one.status == 200:
                check_equal(times, 1, f"{one.body} was acknowledged")
            elif one.status not in (504, "gone"):
                check_equal(times, 0, f"{one.body} was refused with {one.status}")
            check(times <= 1, f"{one.body} was applied {times} times")

    def close(self):
        self.relay.close()
        self.world.close()
        self.upstream.close()


@test_in(Stage)
def a_gateway_killed_at_each_state_lets_nothing_stale_land_and_the_newer_get_on_after_the_grace(stage):
    stage.bring_about()
    stage.first_daemon.process.kill()
    stage.first_daemon.process.wait()
    stage.relay.cut()
    # What it had sent is applied now, or never: that is what a grace assumes.
    sent = sorted(body for body in stage.book.hanging if body.split(b":")[1] == b"sent")
    stage.book.go_on(sent[::2])
    stage.book.go_on(sent[1::2], "dropped")
    stage.book.go_on([body for body in stage.book.hanging if body.split(b":")[1] == b"queued"])  # the other gateway's
    threads, told, deadline = stage.newer()
    stage.first = stage.start()
    stage.everybody(threads, told, deadline)
    stage.judge()
    wait_until(lambda: all(stage.texts(state) == [] for state in STATES), "no intent is left")


@test_in(Stage)
def a_gateway_stopped_for_longer_than_every_grace_and_heartbeat_sends_nothing_stale_when_it_goes_on(stage):
    replies, requests = stage.bring_about()
    stage.first_daemon.send(signal.SIGSTOP)
    threads, told, deadline = stage.newer()
    over = threading.Event()
    over.wait((BEAT_MS + GRACE_MS) / 1000 + 0.5)  # time itself is what is tested
    early = {one for one in told if one[0] != "waited"}
    check_equal({state for state, _ in early} - {"asked"}, set(), "only what nothing older is open for gets on meanwhile")
    replies.go()
    requests.go()
    stage.first_daemon.send(signal.SIGCONT)
    stage.book.go_on(list(stage.book.hanging))
    for state in ("unknown",):  # nobody will ever learn how these ended: an operator looks
        for number in range(EACH):
            name, _ = stage.lease(state, number)
            done = stage.world.gateway("POST", f"/v1/intents/{name}/resolve", held=False)
            check_equal(done.status, 200)
    stage.everybody(threads, told, deadline)
    stage.judge()
    wait_until(lambda: all(stage.texts(state) == [] for state in STATES), "no intent is left")


@test_in(Stage)
def a_gateway_that_is_asked_to_end_answers_what_is_under_way_and_its_successor_knows_what_it_left(stage):
    grant = stage.grant("sent", 0)
    one = stage.write(stage.first, "sent", 0, grant, "hang")
    stage.book.has([one.body])
    waits = stage.write(stage.world.gateway, "sent", 0, stage.grant("sent", 0), "new")
    wait_until(lambda: stage.texts("sent") == ["q", "s"], "the newer one waits")
    check_equal(stage.first_daemon.end(), 0)  # within the five seconds that end() gives
    check_equal(one.end(), 504)
    check_equal(waits.end(), 503)
    check_equal(stage.texts("sent"), ["u"])
    stage.first = stage.start()
    wait_until(lambda: stage.texts("sent") == ["d"], "the successor has taken over")
    newest = stage.grant("sent", 0)
    wait_until(lambda: stage.write(stage.first, "sent", 0, newest, "new").end() == 200, "after the grace it goes on")
    stage.book.go_on([one.body], "dropped")
    stage.judge()


main()
