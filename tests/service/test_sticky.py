#!/usr/bin/python3
"""An intent that stays open over the writes of one worker: what goes by it, who waits for it, and how it ends."""

import contextlib
import re
import threading

from world import TO_REDIS, Daemon, check, check_equal, check_in, function_of, gives, main, staged, test, wait_until
from world.relay import FROM_REDIS
from world.upstream import route, routes_file

CHECK = function_of("intent_check")
ANY = ["any write of this token through this gateway"]


def routes(upstream):
    return [route(upstream, "/w/{id}/**", "job:{id}", reads="fenced", timeout_ms=20_000),
            route(upstream, "/serial/{id}", "job:{id}", serial=True, timeout_ms=20_000),
            route(upstream, "/grace/{id}", "grace:{id}", unknown={"grace_ms": 1000}, timeout_ms=20_000),
            route(upstream, "/mark/{id}", "mark:{id}", check="mark", timeout_ms=20_000),
            route(upstream, "/probed/{id}", "job:{id}", unknown={"probe": "GET /applied/{id}"}, timeout_ms=20_000),
            route(upstream, "/checked/{id}", "checked:{id}", guarantee="committed", upstream_checks=True, timeout_ms=20_000),
            route(upstream, "/plain/{id}", "plain:{id}", guarantee="admitted", timeout_ms=20_000)]


class Stage(staged.Stage):
    def __init__(self):
        super().__init__(routes)
        self.other_table = routes_file(self.folder, self.routes[:1], "other.json")
        self.start()

    def start(self, *flags):
        """Until what its predecessors had open was looked at: a store that is lost before that leaves them in doubt."""
        taken_over = self.relay.hold(TO_REDIS, function_of("unreported_leave"))
        super().start(*flags)
        taken_over.wait_met()
        taken_over.go()
        self.ready()

    def intents(self, name):
        return self.far("GET", f"/v1/intents/{name}").json["items"]

    def none(self, name):
        wait_until(lambda: not self.intents(name), f"no intent of {name} is open")

    def hold(self, stem="job"):
        """A grant, its lease's name, and the path of a resource of it."""
        name = self.world.name(stem)
        return self.world.acquire(name), name, f"/{'w' if stem == 'job' else stem}/{name.split(':')[1]}" + "/x" * (stem == "job")

    def next(self, name, grant):
        self.world.release(name, grant)
        return self.world.acquire(name)

    def busy(self, path, grant, body=b"hang"):
        """The third write hangs at the upstream, sent by an intent that stays open; its thread."""
        for one in (b"1", b"2"):
            check_equal(self.send(path, grant, one).status, 200)
        told = self.later(path, grant, body)
        self.hangs(body)
        wait_until(lambda: len(self.intents(grant["lease"])) == 1,
                   "that of the first write is closed")
        return told

    def fcalls(self):
        said = self.redis("INFO", "commandstats").decode()
        return int(re.search(r"^cmdstat_fcall:calls=(\d+)", said, re.M)[1])

    def passed(self, ms):
        """So much of Redis' time goes by."""
        def now():
            seconds, us = self.redis("TIME")
            return int(seconds) * 1000 + int(us) // 1000
        begun = now()
        wait_until(lambda: now() - begun > ms, f"{ms} ms go by")

    def applied(self):
        return [body for _, body in self.upstream.applied]


STAGE = Stage()
gives.update(held=STAGE.hold, grant=lambda held: held[0], name=lambda held: held[1], path=lambda held: held[2])


def in_order(*bodies):
    """These were applied last, in this order."""
    check_equal(STAGE.applied()[-len(bodies):], list(bodies))


# -- what goes by it

@test
def a_hold_that_writes_often_asks_once_before_each_write_and_never_after_one(grant, name, path):
    before = STAGE.fcalls()
    for i in range(1000):
        check_equal(STAGE.send(path, grant, b"%d" % i).status, 200)
    count = STAGE.fcalls() - before
    print(f"# {count} scripts for 1,000 writes", flush=True)
    check(count < 1500, count)  # with those that are always there; 2,000 when each write has an intent of its own
    check_equal([(one["sticky"], one["requests"]) for one in STAGE.intents(name)][:1] or [(True, ANY)], [(True, ANY)])
    STAGE.none(name)


@test
def what_is_not_ordered_or_serial_or_probed_has_an_intent_for_each_write():
    for stem in ("serial", "probed", "checked", "plain"):
        grant, name, path = STAGE.hold("job" if stem in ("serial", "probed") else stem)
        path = f"/{stem}/{name.split(':')[1]}"
        told = STAGE.busy(path, grant, b"hang " + stem.encode())
        items = STAGE.intents(name)
        hung = next(each for each in STAGE.upstream.requests if each.body == b"hang " + stem.encode())
        check_equal([f"{one['gateway']}-{one['incarnation']}-{one.get('request')}" for one in items], [hung.header("Pawl-Request-Id")], stem)
        STAGE.go(b"hang " + stem.encode())
        STAGE.ended(told, 200)
        STAGE.none(name)


@test
def a_single_write_has_an_intent_of_its_own(grant, name, path):
    told = STAGE.later(path, grant, b"hang alone")
    STAGE.hangs(b"hang alone")
    check_equal([("request" in one, "sticky" in one) for one in STAGE.intents(name)], [(True, False)])
    STAGE.go(b"hang alone")
    STAGE.ended(told, 200)


# -- who waits for it

@test
def a_newer_write_waits_for_what_goes_by_it_at_whichever_gateway_and_comes_behind_it():
    for stem, client in (("job", STAGE.far), ("grace", STAGE.far), ("mark", STAGE.far), ("job", STAGE.near), ("mark", STAGE.near)):
        grant, name, path = STAGE.hold(stem)
        body = b"hang old " + name.encode()
        old = STAGE.busy(path, grant, body)
        check_equal([(one["state"], one.get("requests")) for one in STAGE.intents(name)], [("sending", ANY)], stem)
        grant = STAGE.next(name, grant)
        new = STAGE.later(path, grant, b"new", client=client)
        wait_until(lambda: len(STAGE.intents(name)) == 2, "the newer one is queued")
        STAGE.passed(100)
        check_equal([one["state"] for one in STAGE.intents(name)], ["sending", "queued"])
        STAGE.go(body)
        STAGE.ended(old, 200)
        STAGE.ended(new, 200)
        in_order(body, b"new")
        STAGE.none(name)


@test
def a_newer_fenced_read_waits_for_what_goes_by_it(grant, name, path):
    old = STAGE.busy(path, grant, b"hang before the read")
    read = STAGE.later(path, STAGE.next(name, grant), None, client=STAGE.far, method="GET")
    STAGE.passed(100)
    check(read.answer is None, "it did not wait")
    STAGE.go(b"hang before the read")
    STAGE.ended(old, 200)
    STAGE.ended(read, 200)


@test
def one_that_is_idle_is_closed_after_a_while_and_when_somebody_asks():
    for client in (STAGE.near, STAGE.far):
        grant, name, path = STAGE.hold()
        for one in (b"1", b"2", b"3"):
            check_equal(STAGE.send(path, grant, one).status, 200)
        grant = STAGE.next(name, grant)
        check_equal(STAGE.send(path, grant, b"4", client=client).status, 200)
        in_order(b"3", b"4")
    for one in (b"5", b"6"):
        STAGE.send(path, grant, one)
    STAGE.none(name)


@test
def while_a_check_is_under_way_it_is_not_closed(grant, name, path):
    for one in (b"1", b"2"):
        check_equal(STAGE.send(path, grant, one).status, 200)
    passed = STAGE.relay.hold(FROM_REDIS, b"*3\r\n$7\r\nsending\r\n")
    old = STAGE.later(path, grant, b"late")
    passed.wait_met()
    new = STAGE.later(path, STAGE.next(name, grant), b"new", client=STAGE.far)
    wait_until(lambda: len(STAGE.intents(name)) == 2, "the newer one is queued")
    STAGE.passed(300)
    check(new.answer is None, "the newer one did not wait")
    passed.go()
    STAGE.ended(old, 200)
    STAGE.ended(new, 200)
    in_order(b"late", b"new")


@test
def a_check_that_comes_when_the_intent_is_gone_or_the_hold_is_over_sends_nothing(grant, name, path):
    for one in (b"1", b"2"):
        check_equal(STAGE.send(path, grant, one).status, 200)
    asks = STAGE.relay.hold(TO_REDIS, CHECK)
    old = STAGE.later(path, grant, b"stale")
    asks.wait_met()
    gateway = STAGE.intents(name)[0]["gateway"]
    grant = STAGE.next(name, grant)
    check_equal(STAGE.far("POST", f"/v1/gateways/{gateway}/dead?force=true", held=False).status, 200)
    check_equal(STAGE.far("POST", f"/v1/intents/{name}/resolve", held=False).status, 200)
    check_equal(STAGE.send(path, grant, b"new", client=STAGE.far).status, 200)
    asks.go()
    STAGE.ended(old, 412)
    check_equal(old.answer.code, "stale-token")
    in_order(b"new")


class Stream:
    """Writes of one token, one behind the other, until the block ends: its intent is never idle."""

    def __init__(self, path, grant):
        self.path, self.grant, self.answers, self.stops = path, grant, [], threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self.stops.wait(0.01):
            answer = STAGE.send(self.path, self.grant, b"stream")
            self.answers.append(answer.status if answer.status == 200 else answer.code)

    def __enter__(self):
        self.thread.start()
        wait_until(lambda: len(self.answers) > 10, "some are answered")
        return self

    def __exit__(self, *_):
        self.stops.set()
        self.thread.join(30)


@test
def a_serial_write_of_the_same_token_is_not_kept_waiting_for_ever(grant, name, path):
    with Stream(path, grant) as stream:
        check_equal(STAGE.send(f"/serial/{name.split(':')[1]}", grant, b"serial", client=STAGE.far).status, 200)
    check_equal(set(stream.answers), {200})


@test
def other_routes_are_adopted_though_writes_never_cease(grant, name, path):
    other = Daemon("pawl-gateway", "--redis", STAGE.redis.url, "--keys", STAGE.world.keys_file, "--listen", "127.0.0.1:0",
                   "--routes", STAGE.other_table)
    client = STAGE.world.client(other)
    with Stream(path, grant) as stream:
        wait_until(lambda: client("POST", "/v1/routes/adopt", held=False).status == 200, "they are adopted")
        wait_until(lambda: stream.answers[-1] == "routes-differ", "the others serve no more")
    STAGE.none(name)
    check_equal(STAGE.far("POST", "/v1/routes/adopt", held=False).status, 200)
    check_equal(other.end(), 0)


# -- how it ends

@test
def an_unknown_end_ends_its_use_and_is_told_when_nothing_of_it_is_under_way(grant, name, path):
    old = STAGE.busy(path, grant, b"hang beside")
    check_equal(STAGE.send(path, grant, b"reset").status, 504)
    check_equal([(one["state"], one["requests"]) for one in STAGE.intents(name)], [("sending", ANY)])
    other = STAGE.later(path, grant, b"hang after it")
    STAGE.hangs(b"hang after it")
    check_equal([(one["state"], one["requests"]) for one in STAGE.intents(name)], [("sending", ANY)] * 2)
    for told, body in ((old, b"hang beside"), (other, b"hang after it")):
        STAGE.go(body)
        STAGE.ended(told, 200)
    wait_until(lambda: "unknown" in [one["state"] for one in STAGE.intents(name)], "it is unknown")
    wait_until(lambda: len(STAGE.intents(name)) == 1, "the other one is closed")
    [one] = STAGE.intents(name)
    reset = next(each for each in STAGE.upstream.requests if each.body == b"reset" and each.target == path)
    check_equal([f"{one['gateway']}-{one['incarnation']}-{each}" for each in one["requests"]], [reset.header("Pawl-Request-Id")])
    check_in(one["requests"][0], STAGE.pawl("resolve", name))
    grant = STAGE.next(name, grant)
    check_equal(STAGE.send(path, grant, b"new").code, "in-doubt")
    STAGE.pawl("resolve", name, "--id", one["id"], "--yes")
    check_equal(STAGE.send(path, grant, b"new").status, 200)


@test
def at_most_sixteen_numbers_are_told():
    grant, name, path = STAGE.hold("grace")
    for one in (b"1", b"2"):
        check_equal(STAGE.send(path, grant, one).status, 200)
    bodies = [b"hang %d" % i for i in range(18)]
    writes = [STAGE.later(path, grant, body) for body in bodies]
    for body in bodies:
        STAGE.hangs(body)
    check_equal(len(STAGE.intents(name)), 1)
    for connection in [each.connection for each in STAGE.upstream.requests if each.body in bodies]:
        connection.reset()
    for told in writes:
        STAGE.ended(told, 504)
    wait_until(lambda: [one["state"] for one in STAGE.intents(name)] == ["unknown"], "it is unknown")
    requests = STAGE.intents(name)[0]["requests"]
    check_equal((len(set(requests)), requests[-1]), (17, "more"))
    STAGE.far("POST", f"/v1/intents/{name}/resolve", held=False)


@test
def a_gateway_that_ends_closes_what_is_idle():
    check_equal(STAGE.daemon.end(), 0)
    STAGE.threads = "4"
    over = threading.Event()
    try:
        for _ in range(4):  # each worker looks once whether all is done; most of the time such an intent is open there, and idle
            STAGE.start()
            grant, name, path = STAGE.hold()
            over.clear()

            def writes(path=path, grant=grant):
                with contextlib.suppress(Exception):
                    while STAGE.send(path, grant, b"x").status == 200 and not over.wait(0.01):
                        pass
            writers = [threading.Thread(target=writes, daemon=True) for _ in range(8)]
            for writer in writers:
                writer.start()
            wait_until(lambda name=name: len([one for one in STAGE.intents(name) if one.get("requests") == ANY]) > 1, "several are open", again_ms=5)
            check_equal(STAGE.daemon.end(), 0)
            over.set()
            for writer in writers:
                writer.join()
            check_equal(STAGE.intents(name), [])
    finally:
        over.set()
        STAGE.daemon.end()
        STAGE.threads = "1"
        STAGE.start()


@test
def an_operator_gives_up_all_that_goes_by_it(grant, name, path):
    told = STAGE.busy(path, grant, b"hang until given up")
    [one] = STAGE.intents(name)
    answer = STAGE.far("POST", f"/v1/intents/{name}/resolve?id={one['id']}&force=true", held=False)
    check_equal((answer.status, answer.json), (200, {"resolved": 1, "sending": 0}))
    STAGE.ended(told, 504)
    check_equal(STAGE.send(path, STAGE.next(name, grant), b"new", client=STAGE.far).status, 200)


@test
def one_of_a_gateway_that_is_said_to_be_dead_is_used_no_more(grant, name, path):
    told = STAGE.busy(path, grant, b"hang of the dead")
    gateway = STAGE.intents(name)[0]["gateway"]
    check_equal(STAGE.far("POST", f"/v1/gateways/{gateway}/dead?force=true", held=False).json, {"intents": 1, "in_doubt": 0})
    check_equal([(one["state"], one["requests"]) for one in STAGE.intents(name)], [("dead", ANY)])
    check_in(ANY[0], STAGE.pawl("resolve", name))
    check_equal(STAGE.send(path, grant, b"alive").status, 200)
    check_equal([one["state"] for one in STAGE.intents(name)][:1], ["dead"])
    STAGE.go(b"hang of the dead")
    STAGE.ended(told, 200)
    STAGE.none(name)


@test
def a_store_that_loses_it_is_told_again_and_no_newer_write_overtakes_what_goes_by_it(grant, name, path):
    old = STAGE.busy(path, grant, b"hang over the loss")
    store = STAGE.redis("HGET", "pawl:{store}", "id").decode().split(":", 1)[1]
    STAGE.redis("FLUSHALL")
    STAGE.pawl("store", "recover", "--store-id", store, "--yes")
    STAGE.ready()
    grant = STAGE.world.acquire(name)
    new = STAGE.later(path, grant, b"new", client=STAGE.far)
    wait_until(lambda: [(one["state"], one["requests"]) for one in STAGE.intents(name)][:1] == [("sending", ANY)], "the store is told of it again")
    STAGE.go(b"hang over the loss")
    STAGE.ended(old, 200)
    if new.get(30).status != 200:
        check_equal(new.answer.code, "in-doubt")
        wait_until(lambda: STAGE.send(path, grant, b"new", client=STAGE.far).status == 200, "nobody is in doubt any more")
    in_order(b"hang over the loss", b"new")


@test
def workers_of_one_process_have_one_each_and_a_newer_write_waits_for_all(grant, name, path):
    STAGE.daemon.end()
    STAGE.threads = "2"
    STAGE.start()
    bodies = [b"hang %d of many" % i for i in range(12)]
    for one in (b"1", b"2", b"3", b"4"):
        [STAGE.ended(told, 200) for told in [STAGE.later(path, grant, one) for _ in range(6)]]
    writes = [STAGE.later(path, grant, body) for body in bodies]
    for body in bodies:
        STAGE.hangs(body)
    workers = {each.header("Pawl-Request-Id").split("-")[-1].split(".")[0] for each in STAGE.upstream.requests if each.body in bodies}
    grant = STAGE.next(name, grant)
    new = STAGE.later(path, grant, b"new")
    for body, told in zip(bodies, writes):
        check(b"new" != STAGE.applied()[-1], f"it did not wait for {body}, of workers {workers}")
        STAGE.go(body)
        STAGE.ended(told, 200)
    STAGE.ended(new, 200)
    in_order(b"new")
    check_equal(len(workers), 2)
    STAGE.none(name)


@test
def a_killed_gateway_leaves_it_in_doubt_whether_it_was_idle_or_not():
    for is_busy in (True, False):
        for _ in range(20):  # until it is killed while that one alone is open
            grant, name, path = STAGE.hold()
            body = b"hang at the end of %s" % name.encode()
            if is_busy:
                STAGE.busy(path, grant, body)
            else:
                STAGE.send(path, grant, b"1")
                STAGE.send(path, grant, b"2")
            STAGE.daemon.kill()
            is_open = [one.get("sticky") for one in STAGE.intents(name)] == [True]
            if is_busy:
                STAGE.go(body)
            STAGE.start()
            if is_open:
                break
        wait_until(lambda: [(one["state"], one["requests"]) for one in STAGE.intents(name)] == [("dead", ANY)], "it is dead")
        grant = STAGE.next(name, grant)
        check_equal(STAGE.send(path, grant, b"new", client=STAGE.far).code, "in-doubt")
        check_equal(STAGE.far("POST", f"/v1/intents/{name}/resolve", held=False).json["resolved"], 1)
        check_equal(STAGE.send(path, grant, b"new").status, 200)


main(STAGE.close)
