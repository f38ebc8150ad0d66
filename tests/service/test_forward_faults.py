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

import signal
import threading
import time

from world import check, check_equal, main, staged, test_in, wait_until
from world.asking import Later
from world.relay import FROM_REDIS, TO_REDIS
from world.upstream import route

EACH = 20
STATES = ("asked", "recorded", "queued", "sent", "answered", "unknown")
BEAT_MS = 10_000  # the longest after which anybody takes a gateway for silent (FRESH_MS in shared/member/scripts/lib/call.lua)
GRACE_MS = 1000
PATIENT_S = 60  # a client that gives up by itself is no gateway that does


class Write(Later):
    """A request of a client that never gives up by itself."""

    def __init__(self, send, path, grant, body, client):
        self.body = body
        super().__init__(send, path, grant, body, client)

    @property
    def status(self):
        return self.answer.status if self.answer else self.error and "gone"

    def end(self, deadline_s=30):
        self.thread.join(deadline_s)
        check(self.status is not None, f"{self.body} was not answered")
        return self.status


def lease_of(body):
    """By its state and number."""
    return tuple(body.split(b":")[1:3])


class Stage(staged.Stage):
    """A third gateway, too. sent: the writes so far."""

    def __init__(self):
        super().__init__(lambda upstream: [route(upstream, "/w/{id}", "job:{id}", unknown={"grace_ms": GRACE_MS}, timeout_ms=60_000)],
                         patient_s=PATIENT_S)
        self.names, self.grants = {}, {}
        self.start()
        self.third = self.world.client(self.world.daemon("pawl-gateway", "--routes", self.table, "--threads", "2"))
        self.third.deadline_s = PATIENT_S

    def start(self, *flags):
        super().start("--store-timeout", "60s", *flags)
        self.ready()

    def lease(self, state, number):
        name = self.names.setdefault((state, number), self.world.name("job"))
        return name, "/w/" + name.split(":", 1)[1]

    def write(self, client, state, number, grant, kind):
        body = f"{kind}:{state}:{number}:{grant['token']}:{len(self.sent)}".encode()
        self.sent.append(Write(self.send, self.lease(state, number)[1], grant, body, client))
        return self.sent[-1]

    def grant(self, state, number):
        """The next hold; the one before is released."""
        name, _ = self.lease(state, number)
        if name in self.grants:
            self.world.release(name, self.grants[name])
        self.grants[name] = self.world.acquire(name, ttl_ms=600_000)
        return self.grants[name]

    def texts(self, state):
        return self.states(*(self.lease(state, number)[0] for number in range(EACH)))

    def hanging(self, state):
        """What the upstream has not answered, in order."""
        return sorted(body for body in self.upstream.hanging if lease_of(body)[0] == state)

    def go_on(self, bodies):
        for body in bodies:
            self.go(body)

    def bring_about(self):
        """EACH requests in each of the states, all at one moment."""
        def many(state, kind, client=self.near):
            return [self.write(client, state, number, self.grant(state, number), kind) for number in range(EACH)]

        for one in many("unknown", "reset"):
            check_equal(one.end(), 504)
        sent = many("sent", "hang")
        older = many("queued", "hang", self.far)
        for one in sent + older:
            self.hangs(one.body)
        many("queued", "new")
        answered = many("answered", "hang")
        for one in answered:
            self.hangs(one.body)
        wait_until(lambda: self.texts("queued") == ["q"] * EACH + ["s"] * EACH, "the newer ones are queued")
        wait_until(lambda: self.texts("unknown") == ["u"] * EACH, "the ends of those are unknown")
        grants = {state: [self.grant(state, number) for number in range(EACH)] for state in ("recorded", "asked")}
        replies = self.relay.hold(FROM_REDIS, b"")
        for number in range(EACH):
            self.write(self.near, "recorded", number, grants["recorded"][number], "new")
        wait_until(lambda: self.texts("recorded") == ["s"] * EACH, "they are recorded as being sent")
        requests = self.relay.hold(TO_REDIS, b"")
        for number in range(EACH):
            self.write(self.near, "asked", number, grants["asked"][number], "new")
        wait_until(lambda: self.near.metric("pawl_gateway_forwarding") == 5 * EACH, "they are at the gateway")
        self.go_on([one.body for one in answered])
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
                client = self.third if tries[one] % 2 else self.far
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
        applied = {}
        for token, body in self.upstream.applied:
            applied.setdefault(lease_of(body), []).append((token, body))
        for lease, writes in applied.items():
            tokens = [token for token, _ in writes]
            check_equal(tokens, sorted(tokens), f"{lease}: {writes}")
        for one in self.sent:
            times = sum(body == one.body for _, body in self.upstream.applied)
            if one.status == 200:
                check_equal(times, 1, f"{one.body} was acknowledged")
            elif one.status not in (504, "gone"):
                check_equal(times, 0, f"{one.body} was refused with {one.status}")
            check(times <= 1, f"{one.body} was applied {times} times")


@test_in(Stage)
def a_gateway_killed_at_each_state_lets_nothing_stale_land_and_the_newer_get_on_after_the_grace(stage):
    stage.bring_about()
    stage.daemon.kill()
    stage.relay.cut()
    # What it had sent is applied now, or never: that is what a grace assumes.
    sent = stage.hanging(b"sent")
    stage.upstream.dropped.update(sent[1::2])
    stage.go_on(sent + stage.hanging(b"queued"))  # the latter are the other gateway's
    threads, told, deadline = stage.newer()
    stage.start()
    stage.everybody(threads, told, deadline)
    stage.judge()
    wait_until(lambda: all(stage.texts(state) == [] for state in STATES), "no intent is left")


@test_in(Stage)
def a_gateway_stopped_for_longer_than_every_grace_and_heartbeat_sends_nothing_stale_when_it_goes_on(stage):
    replies, requests = stage.bring_about()
    stage.daemon.send(signal.SIGSTOP)
    threads, told, deadline = stage.newer()
    over = threading.Event()
    over.wait((BEAT_MS + GRACE_MS) / 1000 + 0.5)  # time itself is what is tested
    early = {one for one in told if one[0] != "waited"}
    check_equal({state for state, _ in early} - {"asked"}, set(), "only what nothing older is open for gets on meanwhile")
    replies.go()
    requests.go()
    stage.daemon.send(signal.SIGCONT)
    stage.go_on(list(stage.upstream.hanging))
    for state in ("unknown",):  # nobody will ever learn how these ended: an operator looks
        for number in range(EACH):
            name, _ = stage.lease(state, number)
            done = stage.far("POST", f"/v1/intents/{name}/resolve", held=False)
            check_equal(done.status, 200)
    stage.everybody(threads, told, deadline)
    stage.judge()
    wait_until(lambda: all(stage.texts(state) == [] for state in STATES), "no intent is left")


@test_in(Stage)
def a_gateway_that_is_asked_to_end_answers_what_is_under_way_and_its_successor_knows_what_it_left(stage):
    grant = stage.grant("sent", 0)
    one = stage.write(stage.near, "sent", 0, grant, "hang")
    stage.hangs(one.body)
    waits = stage.write(stage.far, "sent", 0, stage.grant("sent", 0), "new")
    wait_until(lambda: stage.texts("sent") == ["q", "s"], "the newer one waits")
    check_equal(stage.daemon.end(), 0)  # within the five seconds that end() gives
    check_equal(one.end(), 504)
    check_equal(waits.end(), 503)
    check_equal(stage.texts("sent"), ["u"])
    stage.start()
    wait_until(lambda: stage.texts("sent") == ["d"], "the successor has taken over")
    newest = stage.grant("sent", 0)
    wait_until(lambda: stage.write(stage.near, "sent", 0, newest, "new").end() == 200, "after the grace it goes on")
    stage.upstream.dropped.add(one.body)
    stage.judge()


main()
