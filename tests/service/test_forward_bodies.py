#!/usr/bin/python3
"""Long, slow and broken bodies of forwarded requests; upstreams that never answer; what the log says of all that.

Nobody who drips, dies or sends nonsense in the middle of a body leaves work for an operator: nothing was sent on."""

import contextlib
import json
import os
import pathlib
import tempfile
import threading
import time

from world import FROM_REDIS, Daemon, Relay, World, check, check_equal, check_in, main, of_time, test, wait_until
from world.asking import Later, refused
from world.ports import nobody
from world.shim import Suspension
from world.upstream import Connection, Upstream, route, routes_file


def act(upstream, request):
    end = request.target.rpartition("/")[2]
    if end == "hang":
        try:
            request.connection.more()
        except OSError:
            hung_up.append(request.target)
    elif end == "reset":
        request.connection.reset()
    elif end == "nonsense":
        request.connection.send(b"HTTP/1.1 two hundred\r\n\r\n")
    elif end == "long":
        request.connection.send(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n")
    elif end == "busy":
        request.connection.answer(503)
    elif end == "closed":
        request.connection.close()
    else:
        upstream.obey(request)


UPSTREAM, hung_up = Upstream(act), []
FOLDER = tempfile.mkdtemp(prefix="pawl-bodies-")
LIMIT = 100_000
ROUTES = [
    route(UPSTREAM, "/whole/{id}/**", "whole:{id}", max_body=4 << 20, timeout_ms=500),
    route(UPSTREAM, "/limited/{id}/**", "limited:{id}", max_body=LIMIT),
    route(UPSTREAM, "/doubt/{id}", "doubt:{id}", max_body=LIMIT, body="stream", incomplete="in-doubt"),
    route(UPSTREAM, "/never/{id}", "never:{id}", max_body=LIMIT, body="stream", incomplete="never-applied"),
    route(UPSTREAM, "/search/{id}", "search:{id}", read_methods=["POST"]),
    route(UPSTREAM, "/patient/{id}/**", "patient:{id}", timeout_ms=60_000),
    route(UPSTREAM, "/", "root"),
    {**route(UPSTREAM, "/nobody/{id}", "nobody:{id}"), "upstream": nobody()},
]
TABLE = routes_file(FOLDER, ROUTES)
FLAGS = ["--routes", TABLE, "--body-timeout", "700ms", "--max-body-disk", "1MiB"]
WORLD = World(gateway_flags=FLAGS)
World.contract.forwards = True


class Holder:
    def __init__(self, stem, name=None):
        self.name = name or WORLD.name(stem)
        self.path = "/" + self.name.replace(":", "/")
        self.grant = WORLD.acquire(self.name, ttl_ms=600_000)

    def successor(self):
        WORLD.release(self.name, self.grant)
        return Holder(None, self.name)

    def send(self, body=b"x", rest="", headers=(), client=None):
        fence = [("Fencing-Token", self.grant["fencing_token"]), *headers]
        return (client or WORLD.gateway)("PUT", self.path + rest, fence, body)

    def raw(self, framing, body=b"", daemon=None):
        raw = WORLD.raw(daemon or WORLD.gateway_daemon)
        raw.send(f"PUT {self.path} HTTP/1.1\r\nHost: localhost\r\nFencing-Token: {self.grant['fencing_token']}\r\n{framing}\r\n\r\n")
        raw.send(body)
        return raw


def intents(name):
    return WORLD.gateway("GET", f"/v1/intents/{name}", held=False).json["items"]


def states(name, *wanted):
    wait_until(lambda: [one["state"] for one in intents(name)] == list(wanted), f"the intents of {name} are {wanted}")


def told(raw):
    """(status, code, Fencing-Status, detail) of what a raw client gets."""
    line, headers = raw.head()
    fields = dict(headers)
    text = raw.take(int(fields.get("Content-Length", 0)))
    body = json.loads(text) if "json" in fields.get("Content-Type", "") else {}
    return int(line.split(" ")[1]), body.get("code"), fields.get("Fencing-Status", ""), body.get("detail")


def nothing_is_left(one, count):
    """Nothing was sent, nothing is open, and the next holder writes at once."""
    check_equal((len(UPSTREAM.requests), intents(one.name)), (count, []))
    check_equal(one.successor().send().status, 200)


def under_way(count, client=None):
    return (client or WORLD.gateway).metric("pawl_gateway_forwarding") == count


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def drip(raw, drop):
    """One after the other until the server has had enough of it."""
    pause = threading.Event()
    for _ in range(400):
        raw.socket.settimeout(0.02)
        try:
            raw._more()  # pylint: disable=protected-access
            break
        except TimeoutError:
            raw.send(drop)
            pause.wait(0.01)
    raw.socket.settimeout(15)


CHUNKED = "Transfer-Encoding: chunked"
BEGINNINGS = (("Content-Length: 1000", b"x", b"x"), ("Content-Length: 1000000", b"x" * 70_000, b"x"),
              (CHUNKED, chunk(b"x"), chunk(b"x")), (CHUNKED, chunk(b"x" * 70_000), chunk(b"x")))


# -- taken whole

@test
def who_drips_is_told_408_and_has_sent_nothing_on():
    for framing, begin, drop in BEGINNINGS:
        one, count = Holder("whole"), len(UPSTREAM.requests)
        raw, connections = one.raw(framing, begin), UPSTREAM.connections
        drip(raw, drop)
        check_equal(told(raw)[:2], (408, "request-timeout"), framing)
        check_equal(UPSTREAM.connections, connections, "a connection was made")
        nothing_is_left(one, count)


@test
def an_upload_that_is_killed_in_the_middle_leaves_nothing():
    for framing, begin, _ in BEGINNINGS:
        one, count = Holder("whole"), len(UPSTREAM.requests)
        raw = one.raw(framing, begin)
        wait_until(lambda begin=begin: len(begin) < 65536 or under_way(1), "it is taken")
        raw.vanish()
        wait_until(lambda: under_way(0), "it is over")
        nothing_is_left(one, count)


@test
def a_route_may_take_the_place_of_the_index():
    for method in ("GET", "OPTIONS"):
        raw = WORLD.raw(WORLD.gateway_daemon)
        raw.send(f"{method} / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(lambda: (UPSTREAM.requests[-1].method, UPSTREAM.requests[-1].target) == (method, "/"), "it is forwarded")
        raw.close()


@test
def a_body_in_chunks_beyond_the_routes_limit_is_413_and_nothing_was_sent():
    one, count = Holder("limited"), len(UPSTREAM.requests)
    answer = one.send(b"x" * (LIMIT + 1), headers=[("Transfer-Encoding", "chunked")])
    check_equal(answer.status, 413)
    check_in(f"may have {LIMIT} bytes (max_body of the route)", answer.json["detail"])
    status, code, fence, _ = told(one.raw(CHUNKED, chunk(b"x" * 70_000) + chunk(b"x" * (LIMIT - 70_000 + 1)) + b"0\r\n\r\n"))
    check_equal((status, code), (413, "too-large"))
    check_in("verdict=refused; reason=too-large", fence)
    nothing_is_left(one, count)
    check_equal(Holder("limited").send(b"x" * LIMIT, headers=[("Transfer-Encoding", "chunked")]).status, 200)


@test
def a_malformed_chunk_is_400_and_nothing_was_sent():
    for begin in (b"", chunk(b"x" * 70_000)):
        one, count = Holder("whole"), len(UPSTREAM.requests)
        check_equal(told(one.raw(CHUNKED, begin + b"zz\r\nxx\r\n0\r\n\r\n"))[0], 400)
        nothing_is_left(one, count)


@test
def a_malformed_chunk_behind_what_was_streamed_is_no_refusal():
    one = Holder("doubt")
    raw = one.raw(CHUNKED, chunk(b"x" * 100_000))
    wait_until(lambda: intents(one.name) != [], "it was let through")
    raw.send(b"zz\r\n")
    check(raw.is_closed(), raw.buffer)
    states(one.name, "unknown")


@test
def what_comes_behind_a_body_and_finds_no_memory_is_503_only_if_nothing_was_sent_on():
    small = Daemon("pawl-gateway", *WORLD.flags, "--routes", TABLE, "--max-body-memory", str(128 << 10))
    client, stored = WORLD.client(small), Holder("stored")
    wait_until(lambda: client("GET", "/readyz", held=False).status == 200, "it is ready")

    def goes_too_far(stem):
        one = Holder(stem)
        raw = one.raw("Content-Length: 71000", b"x" * 70_000, small)  # 64 KiB of it stay in memory
        wait_until(lambda: under_way(1, client), "it is taken")
        wait_until(lambda: stem == "whole" or intents(one.name) != [], "it is let through")
        other = WORLD.raw(small)
        other.send(f"PUT /v1/resources/{stored.name} HTTP/1.1\r\nHost: localhost\r\nFencing-Token: {stored.grant['fencing_token']}\r\n"
                   "Content-Length: 64000\r\nExpect: 100-continue\r\n\r\n")
        check_in(" 100 ", other.head()[0], "that one has the rest of the memory")
        raw.send(b"x" * 1000 + b"GET /" + b"x" * 8000)
        return one, raw, other

    def goes_too_far_in_a_stream():
        one, raw, other = goes_too_far("doubt")
        is_closed = raw.is_closed()
        raw.vanish()
        other.vanish()
        wait_until(lambda: under_way(0, client), "it is over")
        return is_closed and one  # else the upstream had taken enough by then

    count = len(UPSTREAM.requests)
    one, raw, other = goes_too_far("whole")
    check_equal(told(raw)[:2], (503, "overloaded"))
    nothing_is_left(one, count)
    other.vanish()
    states(wait_until(goes_too_far_in_a_stream, "there is no room").name, "unknown")
    check_equal(small.end(), 0)


@test
def a_long_body_goes_out_whole_with_its_length():
    body = os.urandom(1 << 20)
    for headers in ([], [("Transfer-Encoding", "chunked")]):
        one = Holder("patient")
        check_equal(one.send(body, headers=headers).status, 200)
        got = UPSTREAM.requests[-1]
        check_equal((got.header("Content-Length"), got.header("Transfer-Encoding"), got.body == body),
                    (str(len(body)), None, True))
        check_equal(list(pathlib.Path(WORLD.folder).rglob("body-*")), [], "a file has a name")
        states(one.name)


@test
def the_body_of_a_read_without_a_token_is_passed_on_as_it_comes():
    count = len(UPSTREAM.requests)
    answer = WORLD.gateway("POST", "/search/1", [("Transfer-Encoding", "chunked")], b"x" * 300_000)
    got = UPSTREAM.got(count + 1)
    check_equal((answer.status, got.header("Transfer-Encoding"), len(got.body)), (200, "chunked", 300_000))


@test
def a_body_for_which_there_is_no_room_is_certainly_not_sent():
    one, count = Holder("patient"), len(UPSTREAM.requests)
    answer = one.send(b"x" * (2 << 20), headers=[("Transfer-Encoding", "chunked")])
    check_equal((answer.status, answer.code), (503, "overloaded"))
    status, _, _, detail = told(one.raw(f"Content-Length: {2 << 20}", b"x" * 80_000))
    check_equal(status, 413)
    check_in("may have 1048576 bytes (--max-body-disk)", detail)
    nothing_is_left(one, count)
    # And all of it is given back, or the second of these would not fit.
    check_equal([Holder("patient").send(b"x" * 700_000).status for _ in range(2)], [200, 200])
    gateway = Daemon("pawl-gateway", *WORLD.flags, *FLAGS, environment={"STATE_DIRECTORY": "", "TMPDIR": FOLDER + "/none"})
    client = WORLD.client(gateway)
    one, count = Holder("patient"), len(UPSTREAM.requests)
    answer = one.send(b"x" * 100_000, client=client)
    check_equal((answer.status, answer.code), (503, "overloaded"))
    check_in("No such file", gateway.line(lambda line: "overloaded" in line, "why"))
    nothing_is_left(one, count)
    check_equal(gateway.end(), 0)


@test
def a_body_that_is_being_taken_does_not_keep_the_gateway_from_ending():
    gateway = Daemon("pawl-gateway", *WORLD.flags, "--routes", TABLE)
    wait_until(lambda: WORLD.client(gateway)("GET", "/readyz", held=False).status == 200, "it is ready")
    raw = Holder("whole").raw("Content-Length: 1000000", b"x" * 70_000, gateway)
    wait_until(lambda: under_way(1, WORLD.client(gateway)), "it is taken")
    check_equal((gateway.end(), told(raw)[:2]), (0, (503, "draining")))


# -- streamed

SEEN, ENDED, EARLY, MORE = bytearray(), threading.Event(), threading.Event(), Connection.more


def keep(connection):
    before = len(connection.buffer)
    try:
        MORE(connection)
        SEEN.extend(connection.buffer[before:])
        if EARLY.is_set() and len(SEEN) > 70_000:
            EARLY.clear()
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nha")
    except OSError:
        ENDED.set()
        raise


Connection.more = keep


def streamed(stem, framing, end):
    """The holder whose streamed body ended so, and what it was told."""
    one = Holder(stem)
    SEEN.clear()
    ENDED.clear()
    raw = one.raw(framing, chunk(b"x" * 80_000) if framing == CHUNKED else b"x" * 80_000)
    states(one.name, "sending")
    wait_until(lambda: len(SEEN) > 70_000, "the upstream has a part")
    got = end(raw)
    check(ENDED.wait(15), "the connection was not closed")
    check(not bytes(SEEN).endswith(b"0\r\n\r\n"), "an unfinished request was given an end")
    return one, got


silent = told


def killed(raw):
    raw.vanish()


def too_long(raw):
    raw.send(chunk(b"x" * 40_000))
    return told(raw)


@test
def an_unfinished_stream_is_in_doubt_where_its_route_says_so():
    for framing, end in (("Content-Length: 99000", silent), ("Content-Length: 99000", killed), (CHUNKED, silent),
                         (CHUNKED, killed), (CHUNKED, too_long)):
        one, got = streamed("doubt", framing, end)
        if got:
            check_equal(got[:2], (504, "outcome-unknown"), f"{framing} {end}")
            check_in("verdict=unknown", got[2])
        states(one.name, "unknown")


@test
def an_unfinished_stream_was_never_applied_where_its_owner_says_so():
    for framing, end, status in (("Content-Length: 99000", silent, 408), (CHUNKED, killed, None), (CHUNKED, silent, 408),
                                 (CHUNKED, too_long, 413)):
        one, got = streamed("never", framing, end)
        if got:
            check_equal(got[0], status, f"{framing} {end}")
            check_in("guarantee=ordered;assumes=incomplete", got[2])
            check(status != 413 or f"may have {LIMIT} bytes" in got[3], f"{got}")
        states(one.name)
        answer = one.successor().send()
        check_equal(answer.status, 200)
        check_in("guarantee=ordered;assumes=incomplete", answer.header("Fencing-Status"))


@test
def an_upstream_that_has_begun_to_answer_may_have_applied_something():
    EARLY.set()
    one, got = streamed("never", "Content-Length: 99000", silent)
    check_equal(got[:2], (504, "outcome-unknown"))
    states(one.name, "unknown")


# -- an operator can always end a doubt

def resolve(one, number, more="", client=None):
    return (client or WORLD.gateway)("POST", f"/v1/intents/{one.name}/resolve?id={number}{more}")


@test
@of_time
def an_upstream_that_never_answers_is_given_up():
    one = Holder("whole")
    answer = one.send(rest="/hang")
    check_equal((answer.status, answer.code), (504, "outcome-unknown"))
    states(one.name, "sending")
    states(one.name, "unknown")
    wait_until(lambda: f"{one.path}/hang" in hung_up, "the connection is closed")
    number = intents(one.name)[0]["id"]
    check_equal(resolve(one, number).json, {"resolved": 1, "sending": 0})
    check_equal(one.successor().send().status, 200)


@test
def what_is_being_sent_is_given_up_and_resolved_by_force():
    away = WORLD.another("pawl-gateway", *FLAGS)
    one = Holder("patient")
    write = Later(one.send, rest="/hang")
    states(one.name, "sending")
    number = intents(one.name)[0]["id"]
    check_equal(resolve(one, number).json, {"resolved": 0, "sending": 1})
    check_equal(resolve(one, number, "&force=true", away).json, {"resolved": 1, "sending": 0})
    check_in(f"{one.path}/hang", hung_up, "the connection is closed before it is resolved")
    refused(write.get(), 504, "outcome-unknown")
    states(one.name)
    check_equal(one.successor().send().status, 200)
    check_equal([WORLD.gateway("POST", f"/v1/intents/a/resolve?{query}").status for query in
                 ("force=true", "id=1&force=false", "id=1&force")], [400] * 3)


def time_to_give_up():
    one = Holder("patient")
    write = Later(one.send, rest="/hang")
    states(one.name, "sending")
    number, begin = intents(one.name)[0]["id"], time.monotonic()
    check_equal(resolve(one, number, "&force=true").json, {"resolved": 1, "sending": 0})
    took = time.monotonic() - begin
    write.get()
    return took


@test
def what_is_given_up_is_resolved_at_once():
    """Where others have the machine, too, not each time. Asked for every 400 ms, it would never be that soon."""
    took = []
    while len(took) < 10 and not (took and min(took) < 0.3):
        took.append(time_to_give_up())
    check(min(took) < 0.3, took)


@contextlib.contextmanager
def behind_a_relay(*flags, **more):
    """The client of a gateway with its own way to Redis, and that."""
    with contextlib.closing(Relay(WORLD.redis)) as relay:
        late = Daemon("pawl-gateway", "--redis", relay.url, *WORLD.flags[2:], *FLAGS, *flags, **more)
        client = WORLD.client(late)
        WORLD.wait_ready(client)
        yield relay, client
        check_equal(late.end(), 0)


@test
def what_an_operator_gave_up_stays_open_until_its_gateway_has_heard_and_is_not_sent_so_late():
    with behind_a_relay("--store-timeout", "20s") as (relay, client):
        one, count, heard = Holder("patient"), len(UPSTREAM.requests), relay.hold(FROM_REDIS, b"$7\r\nsending\r\n")
        write = Later(one.send, client=client)
        heard.wait_met()
        check_equal(resolve(one, intents(one.name)[0]["id"], "&force=true").json, {"resolved": 0, "sending": 1})
        heard.go()
        refused(write.get(), 503, "store-unavailable")
        states(one.name)
        nothing_is_left(one, count)


@test
def what_was_let_through_before_the_machine_was_suspended_is_not_sent_after_it():
    """CLOCK_MONOTONIC stands still meanwhile, and an operator may have given up a gateway that was silent."""
    suspension = Suspension(20)
    with behind_a_relay(environment=suspension.environment) as (relay, client):
        one, count, heard = Holder("patient"), len(UPSTREAM.requests), relay.hold(FROM_REDIS, b"$7\r\nsending\r\n")
        write = Later(one.send, client=client)
        heard.wait_met()
        suspension.is_over()
        heard.go()
        refused(write.get(), 503, "store-unavailable")
        states(one.name)
        nothing_is_left(one, count)


# -- the log

@test
def the_log_says_who_was_refused_and_which_limit_or_error_it_was():
    begin = len(WORLD.gateway_daemon.lines)
    for stem, rest, status, why in (("nobody", "", 502, "Connection refused"), ("whole", "/hang", 504, "timeout_ms"),
                                    ("patient", "/reset", 504, "reset"), ("patient", "/nonsense", 504, "status"),
                                    ("patient", "/long", 504, "long"), ("patient", "/busy", 504, "503"),
                                    ("patient", "/closed", 504, "closed")):
        one = Holder(stem)
        answer = one.send(rest=rest)
        check_equal(answer.status, status, rest)
        line = WORLD.gateway_daemon.line(lambda line, one=one: f"{one.path}" in line and one.name in line, "it", begin)
        check_in(why, line)
        check_in(why, answer.json["detail"])
        for part in ("PUT", "127.0.0.1", answer.code):
            check_in(part, line)
        check("sig=" not in line and one.grant["lease_id"] not in line, line)


def close():
    UPSTREAM.close()
    check_equal(UPSTREAM.wrong, [])
    WORLD.close()


main(close)
