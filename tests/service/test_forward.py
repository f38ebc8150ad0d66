#!/usr/bin/python3
"""pawl-gateway in front of an HTTP upstream: what is forwarded, in which order, and what is said of its end."""

import contextlib
import json
import os
import re
import tempfile
import threading

from world import BUILD, TO_REDIS, Daemon, Relay, World, check, check_equal, check_in, function_of, gives, main, of_time, test, wait_until
from world.asking import Later, refused
from world.ports import nobody
from world.process import memory_kib
from world.record import open_intents, record_set, stripe_key
from world.upstream import Upstream, route, routes_file

UPSTREAM = Upstream()


FOLDER = tempfile.mkdtemp(prefix="pawl-routes-")
SOCKET_UPSTREAM = Upstream(path=os.path.join(FOLDER, "up.sock"))
ROUTES = [
    route(UPSTREAM, "/orders/{id}/**", "order:{id}", timeout_ms=2000),
    route(UPSTREAM, "/fenced/{id}/**", "fenced:{id}", reads="fenced", timeout_ms=2000),
    route(UPSTREAM, "/serial/{id}", "serial:{id}", serial=True, timeout_ms=5000),
    route(UPSTREAM, "/probed/{id}", "probed:{id}", unknown={"probe": "GET /applied/{id}"}, timeout_ms=1000),
    route(UPSTREAM, "/headed/{id}", "headed:{id}", unknown={"probe": "HEAD /applied/{id}"}, timeout_ms=1000),
    route(UPSTREAM, "/grace/{id}", "grace:{id}", unknown={"grace_ms": 1000}, timeout_ms=1000),
    route(UPSTREAM, "/checked/{id}", "checked:{id}", guarantee="committed", upstream_checks=True, timeout_ms=1000),
    route(UPSTREAM, "/matched/{id}", "matched:{id}", guarantee="committed", if_match=True, timeout_ms=2000),
    route(UPSTREAM, "/unsure/{id}", "unsure:{id}", guarantee="committed", if_match=True, unsure_statuses=[412]),
    route(UPSTREAM, "/streamed/{id}/**", "streamed:{id}", body="stream", incomplete="in-doubt", timeout_ms=2000),
    route(UPSTREAM, "/long/{id}/**", "long:{id}", body="stream", incomplete="in-doubt"),
    route(UPSTREAM, "/versions/{id}", "versions:{id}", guarantee="committed", if_match=True, body="stream", incomplete="in-doubt"),
    route(UPSTREAM, "/plain/{id}", "plain:{id}", guarantee="admitted", timeout_ms=1000),
    route(UPSTREAM, "/final/{id}", "final:{id}", unsure_statuses=[], timeout_ms=2000),
    route(UPSTREAM, "/small/{id}", "small:{id}", max_body=1000, timeout_ms=2000),
    route(SOCKET_UPSTREAM, "/sock/{id}", "sock:{id}", timeout_ms=2000),
    {**route(UPSTREAM, "/prefixed/{id}/**", "prefixed:{id}"), "upstream": UPSTREAM.url + "/api"},
    {**route(UPSTREAM, "/gone/{id}", "gone:{id}"), "upstream": nobody()},
]
TABLE = routes_file(FOLDER, ROUTES)
WORLD = World(gateway_flags=["--routes", TABLE])


class Holder:
    def __init__(self, name, **ask):
        self.name = name
        self.grant = WORLD.acquire(name, **ask)
        self.token, self.header = self.grant["token"], self.grant["fencing_token"]

    def successor(self, **ask):
        WORLD.release(self.name, self.grant)
        return Holder(self.name, **ask)


def holder(stem):
    name = WORLD.name(stem)
    return Holder(name), name.split(":", 1)[1]


gives.update(held=lambda: holder("order"), one=lambda held: held[0], key=lambda held: held[1])


def send(method, target, token=None, body=None, headers=(), client=None):
    fence = [("Fencing-Token", token.header)] if token else []
    return (client or WORLD.gateway)(method, target, fence + list(headers), body, held=False)


class Acting:
    """The upstream acts so within the block."""

    def __init__(self, act, upstream=UPSTREAM):
        self.act, self.upstream = act, upstream

    def __enter__(self):
        self.upstream.act = self.act
        return self.upstream

    def __exit__(self, *_):
        self.upstream.act = Upstream.obey


@contextlib.contextmanager
def stalling():
    """The upstream gets to a body "old" only when the event that it gives is set."""
    go = threading.Event()

    def act(upstream, request):
        if request.body == b"old":
            check(go.wait(20), "nobody let it go on")
        Upstream.obey(upstream, request)
    with Acting(act):
        yield go


def scripts_run():
    return int(re.search(r"^cmdstat_fcall:calls=(\d+)", WORLD.redis("INFO", "commandstats").decode(), re.M)[1])


def intents(name):
    return WORLD.gateway("GET", f"/v1/intents/{name}", held=False).json["items"]


@contextlib.contextmanager
def another_gateway(redis):
    daemon = Daemon("pawl-gateway", "--redis", redis.url, "--keys", WORLD.keys_file, "--listen", "127.0.0.1:0", "--routes", TABLE)
    client = WORLD.client(daemon)
    wait_until(lambda: client("GET", "/readyz", held=False).status == 200, "the other gateway is ready")
    yield client
    check_equal(daemon.end(), 0)


def no_intents(name):
    wait_until(lambda: intents(name) == [], f"no intent of {name} is open")


def last(upstream=UPSTREAM):
    return upstream.requests[-1]


# -- what is forwarded

@test
def a_write_is_forwarded_with_its_token_and_answered_as_the_upstream_answers(one, key):
    answer = send("PUT", f"/orders/{key}/lines?x=1&y=%2F", one, b"two boxes", [("Content-Type", "text/plain")])
    check_equal((answer.status, answer.body, answer.header("Content-Type")), (200, b"done", "text/plain"), repr(answer))
    check_equal(answer.header("Fencing-Status"),
                f"pawl; verdict=accepted; token={one.token}; mark={one.token}; guarantee=ordered")
    got = last()
    check_equal((got.method, got.target, got.body), ("PUT", f"/orders/{key}/lines?x=1&y=%2F", b"two boxes"))
    check_equal((got.header("Fencing-Token"), got.header("Content-Type")), (one.header, "text/plain"))
    check_equal(got.header("Host"), f"127.0.0.1:{UPSTREAM.port}")
    check(len(got.header("Pawl-Request-Id")) > 30, got.header("Pawl-Request-Id"))
    check_equal(got.header("X-Forwarded-For"), "127.0.0.1")
    check_in("for=127.0.0.1", got.header("Forwarded"))
    no_intents(one.name)


@test
def an_upstream_on_a_unix_socket_is_as_good():
    one, key = holder("sock")
    check_equal(send("POST", f"/sock/{key}", one, b"x").status, 200)
    check_equal(SOCKET_UPSTREAM.applied[-1], (one.token, b"x"))


@test
def a_connection_that_may_be_a_clients_by_its_authorization_is_nobody_elses():
    """RFC 4559, 6: with these schemes an upstream may take all that follows on the connection for that client's."""
    for shown, is_kept in (("Basic YTpi", True), ("NTLM TlRMTVNTUAAB", False), ("negotiate YTpi", False)):
        send("GET", "/orders/nobody/lines", None, headers=[("Authorization", shown)])
        before = last().connection
        send("GET", "/orders/nobody/lines")
        check_equal(last().connection is before, is_kept, shown)


@test
def what_an_upstream_leaves_of_a_body_is_not_its_next_request(one, key):
    """RFC 9110, 9.3.1: many take no body of a GET off the connection, and would do what stands in it."""
    for method, body, is_kept in (("GET", None, True), ("GET", b"x", False), ("OPTIONS", b"x", False), ("DELETE", None, True),
                                  ("DELETE", b"x", False), ("PUT", b"x", True)):
        check_equal(send(method, f"/orders/{key}/x", one if method in ("PUT", "DELETE") else None, body).status, 200)
        check_equal(last().header("Connection"), None if is_kept else "close", f"{method} {body}")


@test
def what_an_upstream_sends_behind_a_head_is_not_its_next_answer():
    """A body behind HEAD, which came late, was the answer to another's write."""
    one, key = holder("matched")

    def careless(_, request):
        if request.method == "HEAD":
            request.connection.send(b'HTTP/1.1 200 OK\r\nETag: "1"\r\nContent-Length: 27\r\n\r\n')
        else:
            request.connection.answer(200, [], b"")
    with Acting(careless):
        for _ in range(2):
            check_equal(send("PUT", f"/matched/{key}", one, b"x").status, 200)
    got = UPSTREAM.requests[-4:]
    check_equal([one.method for one in got], ["HEAD", "PUT", "HEAD", "PUT"])
    check_equal([one.connection is got[place].connection for one, place in zip(got, (1, 0, 0, 1))], [False, False, True, True])


@test
def an_open_read_needs_no_token():
    answer = send("GET", "/orders/nobody/lines")
    check_equal((answer.status, answer.body, answer.header("Fencing-Status")), (200, b"done", None))
    check(last().header("Fencing-Token") is None, "a token came from nowhere")


@test
def a_write_needs_the_live_token_of_its_lease(one, key):
    count = len(UPSTREAM.requests)
    refused(send("PUT", f"/orders/{key}/a", None, b"x"), 428, "token-required")
    other, _ = holder("order")
    refused(send("PUT", f"/orders/{key}/a", other, b"x"), 403, "wrong-lease")
    two = one.successor()
    answer = send("PUT", f"/orders/{key}/a", one, b"x")
    refused(answer, 412, "stale-token")
    noted = WORLD.lease("GET", f"/v1/leases/{two.name}/history").json["items"][-1]
    check_equal((noted["type"], noted["resource"], noted["instance"]), ("refused", f"/orders/{key}/a", answer.json["instance"]))
    WORLD.release(two.name, two.grant)
    refused(send("DELETE", f"/orders/{key}/a", two), 412, "lease-expired")
    check_equal(len(UPSTREAM.requests), count)


@test
def what_no_route_matches_is_not_found_and_what_is_ambiguous_is_refused():
    check_equal(send("GET", "/nowhere").status, 404)
    check_equal(send("GET", "/").json["name"], "pawl-gateway", "the index stands where no route does")
    one, key = holder("order")
    for path in (f"/orders/{key}/../x", f"/orders/{key}/%2e%2e/x", f"/orders//{key}", f"/orders/{key}%2Fx",
                 f"/orders/{key}/a%00", f"/orders/{key}/a%5Cb", "/orders/%20/x"):
        answer = send("PUT", path, one, b"x")
        check_in(answer.status, (400, 404), f"{path}: {answer}")
    check_equal(send("TRACE", f"/orders/{key}/x", one).status, 400)
    check_equal(send("GET", f"/orders/{key}/x", None, None, [("Upgrade", "websocket"), ("Connection", "Upgrade")]).status, 400)


@test
def headers_of_one_hop_stay_and_nobody_speaks_in_the_gateways_name(one, key):
    send("POST", f"/orders/{key}/x", one, b"x", [
        ("Connection", "X-Mine"), ("X-Mine", "1"), ("Keep-Alive", "1"), ("TE", "trailers"), ("Pawl-Request-Id", "forged"),
        ("X-HTTP-Method-Override", "DELETE"), ("X_HTTP_Method_Override", "DELETE"), ("Fencing_Token", "99"), ("Fencing-Status", "pawl; verdict=accepted"), ("X-Yours", "2"),
        ("X-Forwarded-For", "10.0.0.1"), ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")])
    got = last()
    names = {name.lower() for name, _ in got.headers}
    for gone in ("x-mine", "keep-alive", "te", "x-http-method-override", "fencing-status", "proxy-connection", "x_http_method_override",
                 "fencing_token"):
        check(gone not in names, f"{gone} came through: {got.headers}")
    check(got.header("Pawl-Request-Id") != "forged", "a forged request id came through")
    check_equal((got.header("X-Yours"), got.header("X-Forwarded-For")), ("2", "127.0.0.1"))
    check_in("0af7651916cd43dd", got.header("traceparent"))


@test
def no_page_of_an_upstream_takes_over_the_whole_address(one, key):
    with Acting(lambda _, request: request.connection.answer(200, [("service-worker-allowed", "/"), ("Service-Worker", "x")], b"")):
        got = send("PUT", f"/orders/{key}/x", one, b"x")
    check_equal((got.status, got.header("Service-Worker-Allowed"), got.header("Service-Worker")), (200, None, "x"))
    check_equal(WORLD.gateway("GET", "/ui/").status, 404, "no page of Pawl's has its origin")


@test
def a_uri_in_a_header_goes_on_as_the_upstream_has_it_or_the_request_does_not():
    one, key = holder("prefixed")
    mine, at, up = f"/prefixed/{key}", f"http://127.0.0.1:{WORLD.gateway_daemon.port}", f"{UPSTREAM.url}/api"
    for name, value, wanted in (
            ("Destination", f"{mine}/%78", f"/api{mine}/x"), ("Destination", f"{at}{mine}/x", f"{up}{mine}/x"),
            ("Destination", f"{at.replace('http', 'HTTPS')}{mine}", f"{up}{mine}"),
            ("If", '(<urn:a> ["b"]) (Not <http://x/y>)', '(<urn:a> ["b"]) (Not <http://x/y>)'),
            ("If", f'<{mine}/%78> (<urn:a>)\t(["b"]) <{at}{mine}> (Not <c:d>)', f'</api{mine}/x> (<urn:a>)\t(["b"]) <{up}{mine}> (Not <c:d>)'),
            ("Lock-Token", f"<{mine}/lock>", f"</api{mine}/lock>"),
            # Nobody's, another's, or read in two ways.
            ("Destination", at, None), ("Destination", f"ftp{at[4:]}{mine}", None), ("Destination", f"{mine}-other", None),
            ("Destination", f"{mine}/x?y", None), ("Destination", f"/prefixed/x/../{key}", None), ("Destination", "/orders/1", None),
            ("Lock-Token", "<urn:a>", None), ("Lock-Token", f"{mine}/lock", None), ("Lock-Token", "<>", None),
            ("If", f"{mine} (<a:b>)", None), ("If", "(<a:b>", None), ("If", "<a:b", None), ("If", ")", None), ("If", "((<a:b>))", None),
            ("If", '(["a(b"])', None), ("If", '(["<"]) </orders/1> ["x"])', None), ("If", '(["a)"]) </orders/1> (["b"])', None),
            ("If", f"<{mine}> (<a:b>) </orders/1> (<a:b>)", None)):
        for method, token in (("PUT", one), ("GET", None)):
            count = len(UPSTREAM.requests)
            answer = send(method, f"{mine}/y", token, b"x" if token else None, [(name, value)])
            if wanted is None:
                refused(answer, 400, "invalid-request")
                check_equal(len(UPSTREAM.requests), count, value)
            else:
                check_equal((answer.status, last().header(name)), (200, wanted))


@test
def answers_lose_what_is_of_one_hop_and_keep_the_rest():
    def act(upstream, request):
        request.connection.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 201 Created\r\nX-A: 1\r\nSet-Cookie: a=1\r\n"
                                b"Set-Cookie: b=2\r\nConnection: X-Hop\r\nX-Hop: 1\r\nFencing-Status: forged\r\nLocation: /y\r\n"
                                b"Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n")
    one, key = holder("order")
    with Acting(act):
        answer = send("POST", f"/orders/{key}/x", one, b"x")
    check_equal((answer.status, answer.body, answer.header("X-A"), answer.header("X-Hop")), (201, b"abcde", "1", None))
    check_equal([value for name, value in answer.headers if name == "Set-Cookie"], ["a=1", "b=2"])
    check_in("verdict=accepted", answer.header("Fencing-Status"))
    check_equal((answer.header("Location"), answer.header("Cache-Control")), ("/y", "max-age=60"))
    no_intents(one.name)


@test
def a_forwarded_answer_says_itself_how_it_may_be_cached():
    def bare(_, request):
        request.connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + (b"" if request.method == "HEAD" else b"ok"))

    def long(_, request):
        request.connection.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"x" * 100_000)
        request.connection.close()
    one, key = holder("order")
    def lasting(_, request):
        request.connection.answer(200, [("cache-control", "public, max-age=60"), ("X-Accel-Expires", "60")], b"ok")
    tells_apart = "Fencing-Token, Pawl-Authorization"
    for act, method, token, cache, vary in (
            (bare, "GET", None, None, tells_apart), (bare, "HEAD", None, None, tells_apart), (long, "GET", None, None, tells_apart),
            (bare, "PUT", one, None, None), (lasting, "GET", None, "public, max-age=60", tells_apart), (lasting, "GET", one, "no-store", None),
            (bare, "GET", one, "no-store", None), (long, "GET", one, "no-store", None)):
        with Acting(act):
            answer = send(method, f"/orders/{key}/x", token, b"x" if method == "PUT" else None)
        check_equal((answer.status, answer.header("Cache-Control"), answer.header("Vary")), (200, cache, vary), f"{method} {answer}")
        check_equal(answer.header("X-Accel-Expires"), "60" if act is lasting and token is None else None)
    check_equal(send("PUT", f"/orders/{key}/x", None, b"x").header("Cache-Control"), "no-store")
    with Acting(lambda _, request: request.connection.close()):
        for method, token, status in (("GET", None, 502), ("PUT", one, 504)):
            answer = send(method, f"/orders/{key}/x", token)
            check_equal((answer.status, answer.header("Cache-Control")), (status, "no-store"))


# -- the end of a write

@test
def nothing_sent_is_502_and_leaves_no_intent():
    one, key = holder("gone")
    refused(send("PUT", f"/gone/{key}", one, b"x"), 502, "upstream-unavailable")
    no_intents(one.name)


def unknown_end(act, stem="order", tail="/x"):
    """A write whose end is not known; then a newer one."""
    one, key = holder(stem)
    path = {"order": f"/orders/{key}{tail}"}.get(stem, f"/{stem}/{key}")
    with Acting(act):
        answer = send("PUT", path, one, b"old")
    return one, path, answer


@test
def an_upstream_that_applies_and_closes_leaves_the_newer_write_in_doubt_until_it_is_resolved():
    def act(upstream, request):
        upstream.apply(request)
        request.connection.close()
    one, path, answer = unknown_end(act)
    refused(answer, 504, "outcome-unknown")
    wait_until(lambda: [i["state"] for i in intents(one.name)] == ["unknown"], "the intent is unknown")
    check_equal(send("PUT", path, one, b"same token").status, 200)  # its own later writes are not ordered
    two = one.successor()
    count = len(UPSTREAM.requests)
    refused(send("PUT", path, two, b"new"), 503, "in-doubt")
    check_equal(len(UPSTREAM.requests), count)
    done = WORLD.gateway("POST", f"/v1/intents/{one.name}/resolve", held=False)
    check_equal((done.status, done.json["resolved"]), (200, 1), repr(done))
    check_equal(send("PUT", path, two, b"new").status, 200)
    check_equal([token for token, _ in UPSTREAM.applied[-3:]], [one.token, one.token, two.token])
    no_intents(one.name)


@test
def a_forwarded_write_of_unknown_end_is_not_to_be_sent_again_as_it_is():
    go = threading.Event()

    def close(_, request):
        if request.method == "HEAD":
            request.connection.answer(200, [("ETag", '"1"')], b"")
        else:
            request.connection.close()

    def stall(_, request):
        check(go.wait(20), "nobody let it go on")
        request.connection.answer(200)
    for act, stem in ((close, "plain"), (stall, "plain"), (close, "checked"), (close, "matched"), (close, "grace")):
        one, key = holder(stem)
        with Acting(act):
            answer = send("PUT", f"/{stem}/{key}", one, b"x")
        refused(answer, 504, "outcome-unknown")
        check_equal(answer.json["retryable"], False, repr(answer))
        WORLD.contract.forwards = True
        WORLD.contract.hold("gateway", "PUT", f"/{stem}/{key}", [("Fencing-Token", one.header)], answer)
        WORLD.contract.forwards = False
    go.set()


@test
def a_reset_half_an_answer_and_an_intermediarys_502_are_no_end():
    def reset(_, request):
        request.connection.reset()

    def half(upstream, request):
        upstream.apply(request)
        request.connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        request.connection.close()

    def half_chunked(upstream, request):
        upstream.apply(request)
        request.connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        request.connection.close()

    def proxy(_, request):
        request.connection.answer(502, [], b"bad gateway")
    for act in (reset, half, proxy):  # what is no answer at all: tests/unit/test_answer.c, tests/component/test_upstream.c
        one, path, answer = unknown_end(act)
        refused(answer, 504, "outcome-unknown")
        wait_until(lambda one=one: [i["state"] for i in intents(one.name)] == ["unknown"], f"{act.__name__}: unknown")
        refused(send("PUT", path, one.successor(), b"new"), 503, "in-doubt")
    one, key = holder("order")
    with Acting(half_chunked):
        try:
            answer = send("PUT", f"/orders/{key}/x", one, b"old")
            refused(answer, 504, "outcome-unknown")
        except Exception as error:  # pylint: disable=broad-except
            check_in("18", repr(error), "a cut answer")  # CURLE_PARTIAL_FILE
    wait_until(lambda: [i["state"] for i in intents(one.name)] == ["unknown"], "half a chunked answer: unknown")


@test
def accepted_is_passed_on_and_leaves_the_intent_open():
    def act(_, request):
        request.connection.answer(202, [], b"later")
    one, path, answer = unknown_end(act)
    check_equal((answer.status, answer.body), (202, b"later"))
    wait_until(lambda: [i["state"] for i in intents(one.name)] == ["unknown"], "202 is no end")
    refused(send("PUT", path, one.successor(), b"new"), 503, "in-doubt")


@test
def a_route_may_say_that_every_status_is_the_origins_own():
    def act(_, request):
        request.connection.answer(503, [], b"I am full")
    one, path, answer = unknown_end(act, "final")
    check_equal((answer.status, answer.body), (503, b"I am full"))
    no_intents(one.name)
    check_equal(send("PUT", path, one.successor(), b"new").status, 200)


@test
def a_late_answer_closes_what_the_client_was_told_is_unknown():
    go = threading.Event()

    def act(upstream, request):
        check(go.wait(20), "nobody let it go on")
        Upstream.obey(upstream, request)
    one, path, answer = unknown_end(act, "grace")
    refused(answer, 504, "outcome-unknown")
    two = one.successor()
    check_equal([i["state"] for i in intents(one.name)], ["sending"])
    go.set()
    no_intents(one.name)
    answer = send("PUT", path, two, b"new")
    check_equal(answer.status, 200)
    check_in("guarantee=ordered;assumes=grace", answer.header("Fencing-Status"))
    check_equal([token for token, _ in UPSTREAM.applied[-2:]], [one.token, two.token])


@test
@of_time
def a_refusal_that_cannot_be_noted_is_told_all_the_same_and_in_time():
    with contextlib.closing(Relay(WORLD.redis)) as relay, another_gateway(relay) as gateway:
        for method, stem, fails in (("GET", "fenced", "script"), ("PUT", "order", "script"), ("PUT", "order", "silence"), ("PUT", "order", "line")):
            wait_until(gateway.is_ready, "its link stands, also after a silence")
            one, key = holder(stem)
            two, list_key = one.successor(), f"{stripe_key(one.name)}:f:{one.name}"
            notes = relay.hold(TO_REDIS, function_of("refusal_note"))
            write = Later(send, method, f"/{stem.replace('order', 'orders')}/{key}/x", one, b"old" if method == "PUT" else None, client=gateway)
            notes.wait_met()
            if fails == "script":
                WORLD.redis("SET", list_key, "no list")
                notes.go()
            elif fails == "line":
                relay.cut()
            answer = refused(write.get(3), 412, "stale-token", current_token=two.token)  # --store-timeout, and a machine that is busy
            check_in("; verdict=refused; reason=stale-token", answer.header("Fencing-Status"), fails)
            notes.go()
            WORLD.redis("DEL", list_key)


@test
def a_newer_write_waits_for_the_older_one_and_goes_on_when_it_has_ended(one, key):
    path = f"/orders/{key}/x"
    relay = Relay(WORLD.redis)
    asks_again = relay.hold(TO_REDIS, function_of("intent_promote"))
    with stalling() as go, another_gateway(relay) as gateway:
        old = Later(send, "PUT", path, one, b"old", client=gateway)
        wait_until(lambda: any(r.body == b"old" and r.target == path for r in UPSTREAM.requests), "the old one has come")
        two = one.successor()
        new = Later(send, "PUT", path, two, b"new", client=gateway)
        asks_again.wait_met()
        check_equal([i["state"] for i in intents(one.name)], ["sending", "queued"])
        check(not any(r.body == b"new" and r.target == path for r in UPSTREAM.requests), "the new one was sent on")
        go.set()
        check_equal(old.get().status, 200)
        asks_again.go()
        check_equal(new.get().status, 200)
        no_intents(one.name)
    relay.close()
    check_equal([token for token, _ in UPSTREAM.applied[-2:]], [one.token, two.token])


@test
def a_queued_write_whose_hold_is_over_is_never_sent(one, key):
    path = f"/orders/{key}/x"
    with stalling() as go:
        old = Later(send, "PUT", path, one, b"old")
        wait_until(lambda: any(r.body == b"old" and r.target == path for r in UPSTREAM.requests), "the old one has come")
        two = one.successor()
        new = Later(send, "PUT", path, two, b"new")
        wait_until(lambda: [i["state"] for i in intents(one.name)] == ["sending", "queued"], "the new one is queued")
        three = two.successor()
        newest = Later(send, "PUT", path, three, b"newest")
        answer = new.get()  # it may have been looked at between the release and the next grant
        check_equal(answer.status, 412, repr(answer))
        check_in(answer.code, ("lease-expired", "stale-token"))
        go.set()
        check_equal((old.get().status, newest.get().status), (200, 200))
    check_equal([body for _, body in UPSTREAM.applied[-2:]], [b"old", b"newest"])
    no_intents(one.name)


@test
def writes_of_one_token_go_side_by_side_unless_the_route_is_serial():
    for stem, path_of, at_once in (("order", lambda key: f"/orders/{key}/x", 2), ("serial", lambda key: f"/serial/{key}", 1)):
        go, inside = threading.Event(), []

        def act(upstream, request, go=go, inside=inside):
            inside.append(request)
            check(go.wait(20), "nobody let it go on")
            Upstream.obey(upstream, request)
        one, key = holder(stem)
        with Acting(act):
            both = [Later(send, "PUT", path_of(key), one, body) for body in (b"a", b"b")]
            wait_until(lambda: len(intents(one.name)) == 2, "both are recorded")
            wait_until(lambda: len(inside) == at_once, f"{stem}: {at_once} at once")
            states = sorted(i["state"] for i in intents(one.name))
            check_equal(states, ["sending", "sending"] if at_once == 2 else ["queued", "sending"])
            go.set()
            check_equal([late.get().status for late in both], [200, 200])
        no_intents(one.name)


@test
def a_probe_closes_only_what_it_shows_to_be_applied():
    applied, lost = {}, []

    def act(upstream, request):
        if request.target.startswith("/applied/"):
            known = request.header("Pawl-Request-Id") in applied
            request.connection.answer(200 if known else 404, [("Pawl-Applied", request.header("Pawl-Request-Id"))] if known
                                      else [("Pawl-Applied", "other")], b"")
        elif request.body == b"old":
            lost.append(request.header("Pawl-Request-Id"))
            upstream.apply(request)
            request.connection.close()
        else:
            Upstream.obey(upstream, request)
    one, key = holder("probed")
    path = f"/probed/{key}"
    with Acting(act), another_gateway(WORLD.redis) as gateway:  # nothing but this is in its list
        refused(send("PUT", path, one, b"old", client=gateway), 504, "outcome-unknown")
        two = one.successor()
        refused(send("PUT", path, two, b"new", client=gateway), 503, "in-doubt")
        wait_until(lambda: len(intents(one.name)) == 1, "only the one of unknown end is left")  # a closer gathers
        wait_until(lambda: gateway.metric("pawl_gateway_intents") == 1, "it is in the list")
        seen = gateway("GET", f"/v1/intents/{one.name}").json["items"][0]
        check_equal((seen["probe"]["said"], abs(seen["probe"]["at_ms"] - seen["at_ms"]) < 5000), ("404, without Pawl-Applied of this write", True))
        check_equal(WORLD.gateway("GET", f"/v1/intents/{one.name}").json["items"][0]["probe"], None, "another process's")
        applied[lost[0]] = True
        check_equal(send("PUT", path, two, b"new", client=gateway).status, 200)
        no_intents(one.name)
        # 3 s after its start the gateway looks by itself what others have ended
        wait_until(lambda: gateway.metric("pawl_gateway_intents") == 0, "what a probe has shown is not remembered", deadline_s=1)


@test
def a_probe_is_sent_with_the_method_that_the_route_says():
    for stem, method in (("probed", "GET"), ("headed", "HEAD")):
        def act(upstream, request):
            if request.target.startswith("/applied/"):
                request.connection.answer(200, [("Pawl-Applied", request.header("Pawl-Request-Id"))], b"")
            elif request.body == b"old":
                request.connection.close()
            else:
                Upstream.obey(upstream, request)
        one, key = holder(stem)
        with Acting(act):
            refused(send("PUT", f"/{stem}/{key}", one, b"old"), 504, "outcome-unknown")
            check_equal(send("PUT", f"/{stem}/{key}", one.successor(), b"new").status, 200)
        check_equal({r.method for r in UPSTREAM.requests if r.target == f"/applied/{key}"}, {method})


@test
def where_the_upstream_checks_or_the_check_is_all_an_older_write_is_not_waited_for():
    for stem, guarantee in (("checked", "committed"), ("plain", "admitted")):
        one, key = holder(stem)
        with stalling() as go:
            old = Later(send, "PUT", f"/{stem}/{key}", one, b"old")
            wait_until(lambda one=one: len(intents(one.name)) == 1, "the old one is recorded")
            answer = send("PUT", f"/{stem}/{key}", one.successor(), b"new")
            check_equal(answer.status, 200)
            check_in(f"guarantee={guarantee}", answer.header("Fencing-Status"))
            go.set()
            old.get()
        check_equal([body for _, body in UPSTREAM.applied[-2:]], [b"new", b"old"])  # that is what it is
        refused(send("PUT", f"/{stem}/{key}", one, b"late"), 412, "stale-token")
        no_intents(one.name)


# -- if_match

class Versions:
    """An upstream that keeps one value for each target, with strong ETags that never come again."""

    def __init__(self):
        self.values, self.count, self.lock = {}, 0, threading.Lock()
        self.before_write = None

    def __call__(self, upstream, request):
        with self.lock:
            version = self.values.get(request.target)
        etag = [("ETag", version)] if version else []
        if request.method in ("GET", "HEAD"):
            request.connection.answer(200 if version else 404, etag, b"")
            return
        if self.before_write:
            self.before_write(request)
        with self.lock:
            now = self.values.get(request.target)
            wanted, none = request.header("If-Match"), request.header("If-None-Match")
            good = now is None and none == "*" or now is not None and wanted == now
            if good:
                self.count += 1
                self.values[request.target] = f'"{self.count}"'
                upstream.apply(request)
        request.connection.answer(204 if good else 412, [], b"")


@test
def a_conditional_write_carries_the_version_that_was_there_before_it_was_admitted():
    one, key = holder("matched")
    with Acting(Versions()):
        answer = send("PUT", f"/matched/{key}", one, b"1")
        check_equal(answer.status, 204)
        check_in("guarantee=committed", answer.header("Fencing-Status"))
        check_equal((last().header("If-None-Match"), last().header("If-Match")), ("*", None))
        check_equal(send("PUT", f"/matched/{key}", one, b"2", [("Accept-Encoding", "gzip")]).status, 204)
        check_equal([got.header("Accept-Encoding") for got in UPSTREAM.requests[-2:]], [None, "gzip"], "the ETag of what is not encoded")
        first = last().header("If-Match")
        check_equal(send("PUT", f"/matched/{key}", one, b"3", [("If-Match", first)]).status, 412)
        check_equal(send("PUT", f"/matched/{key}?x=1", one, b"4").status, 400)
    no_intents(one.name)


@test
def what_a_client_says_of_the_version_is_read_as_for_a_stored_resource():
    one, key = holder("matched")
    path, now = f"/matched/{key}", '"1"'
    with Acting(Versions()) as upstream:
        check_equal(send("PUT", path, one, b"1", [("If-None-Match", "*")]).status, 204)
        for status, *fields in ((412, ("If-None-Match", "*")), (412, ("If-None-Match", f'"0", W/{now}')), (412, ("If-Match", f"W/{now}")),
                                (400, ("If-None-Match", "1")), (400, ("If-None-Match", '"0"'), ("If-None-Match", now)), (400, ("If-Match", now), ("If-Match", now))):
            check_equal(send("PUT", path, one, b"2", fields).status, status, str(fields))
        check_equal(send("PUT", path, one, b"2", [("If-Match", f'"0" ,{now}'), ("If-None-Match", 'W/"0"')]).status, 204)
        upstream.act.values[path] = '"3", "4"'
        check_equal(send("PUT", path, one, b"3").status, 502, "two versions are none")
    check_equal([body for _, body in UPSTREAM.applied[-2:]], [b"1", b"2"])


@test
def a_412_that_says_nothing_of_the_end_does_not_send_a_write_again():
    one, key = holder("unsure")
    versions, count = Versions(), len(UPSTREAM.requests)
    versions.before_write = lambda request: versions.values.update({request.target: '"between"'})
    with Acting(versions):
        refused(send("PUT", f"/unsure/{key}", one, b"x"), 504, "outcome-unknown")
    check_equal([got.method for got in UPSTREAM.requests[count:]], ["HEAD", "PUT"])


@test
def a_conditional_write_that_stalls_does_not_land_after_a_newer_one():
    versions, go, one_key = Versions(), threading.Event(), holder("matched")
    one, key = one_key

    def stall(request):
        if request.body == b"old":
            check(go.wait(20), "nobody let it go on")
    versions.before_write = stall
    with Acting(versions):
        check_equal(send("PUT", f"/matched/{key}", one, b"first").status, 204)
        old = Later(send, "PUT", f"/matched/{key}", one, b"old")
        wait_until(lambda: any(r.body == b"old" for r in UPSTREAM.requests[-5:]), "the old one has come")
        two = one.successor()
        check_equal(send("PUT", f"/matched/{key}", two, b"new").status, 204)
        go.set()
        refused(old.get(), 412, "stale-token")  # it tries again, and is refused
    check_equal([body for _, body in UPSTREAM.applied[-2:]], [b"first", b"new"])
    no_intents(one.name)


# -- plain fencing, and no more than a check

@test
def a_long_conditional_write_is_tried_again_unless_a_part_of_it_has_gone_by():
    for stem, status in (("matched", 204), ("versions", 412)):
        versions, body, others = Versions(), os.urandom(200_000), ['"between"']
        one, key = holder(stem)
        with Acting(versions):
            check_equal(send("PUT", f"/{stem}/{key}", one, b"first").status, 204)

            def somebody_else(request, versions=versions, others=others):
                if len(request.body) > 1000 and others:
                    versions.values[request.target] = others.pop()
            versions.before_write = somebody_else
            count = len(UPSTREAM.applied)
            check_equal(send("PUT", f"/{stem}/{key}", one, body).status, status)
            check_equal(len(UPSTREAM.applied), count + (status == 204))
            check_equal(send("PUT", f"/{stem}/{key}", one, body).status, 204)
            check_equal(UPSTREAM.applied[-1], (one.token, body))
        no_intents(one.name)


# -- fenced reads

@test
def a_fenced_read_waits_for_older_writes_and_then_none_lands():
    one, key = holder("fenced")
    path = f"/fenced/{key}/x"
    refused(send("GET", path), 428, "token-required")
    with stalling() as go:
        old = Later(send, "PUT", path, one, b"old")
        wait_until(lambda: len(intents(one.name)) == 1, "the old one is recorded")
        two = one.successor()
        begun = scripts_run()
        read = Later(send, "GET", path, two)
        wait_until(lambda: scripts_run() > begun + 5, "it has asked again and again")
        check(read.answer is None, "the read did not wait")
        go.set()
        check_equal((old.get().status, read.get().status), (200, 200))
        refused(send("PUT", path, one, b"late"), 412, "stale-token")
    check_in("guarantee=ordered", read.answer.header("Fencing-Status"))


# -- bodies

@test
def long_bodies_are_streamed_both_ways():
    sizes = []

    def act(upstream, request):
        sizes.append((len(request.body), request.header("Content-Length"), request.header("Transfer-Encoding")))
        upstream.apply(request)
        request.connection.answer(200, [], request.body[::-1])
    one, key = holder("long")
    body = os.urandom(3 << 20)
    with Acting(act):
        answer = send("PUT", f"/long/{key}/x", one, body)
        check_equal((answer.status, answer.body == body[::-1]), (200, True))
        answer = send("PUT", f"/long/{key}/x", one, body, [("Transfer-Encoding", "chunked")])
        check_equal((answer.status, answer.body == body[::-1]), (200, True))
    check_equal(sizes, [(len(body), str(len(body)), None), (len(body), None, "chunked")])
    no_intents(one.name)


@test
def a_body_beyond_the_routes_limit_is_refused_before_anything_is_sent():
    one, key = holder("small")
    count = len(UPSTREAM.requests)
    answer = send("PUT", f"/small/{key}", one, b"x" * 1001)
    check_equal(answer.status, 413)
    check_in("may have 1000 bytes (max_body of the route)", answer.json["detail"])
    raw = WORLD.raw(WORLD.gateway_daemon)
    raw.send(f"PUT /small/{key} HTTP/1.1\r\nHost: localhost\r\nFencing-Token: {one.header}\r\nContent-Length: 70000\r\n\r\nxx")
    check_in(" 413 ", raw.head()[0], "at once: what is announced is enough")
    raw.close()
    check_equal(len(UPSTREAM.requests), count)
    check_equal(send("PUT", f"/small/{key}", one, b"x" * 1000).status, 200)


@test
@of_time
def a_long_body_may_take_longer_than_the_upstream_has_for_its_answer():
    one, key = holder("streamed")  # timeout_ms is 2,000
    raw, half, pause = WORLD.raw(WORLD.gateway_daemon), b"x" * 100_000, threading.Event()
    raw.send(f"PUT /streamed/{key} HTTP/1.1\r\nHost: localhost\r\nFencing-Token: {one.header}\r\nContent-Length: 500000\r\n\r\n")
    for _ in range(5):
        raw.send(half)
        pause.wait(0.5)  # time itself is what is tested
    check_in(" 200 ", raw.head()[0])
    check_equal(UPSTREAM.applied[-1][1], half * 5)
    no_intents(one.name)


@test
def a_long_body_whose_client_has_left_while_it_waited_is_not_sent():
    one, key = holder("streamed")
    path = f"/streamed/{key}/x"
    with stalling() as go:
        old = Later(send, "PUT", path, one, b"old")
        wait_until(lambda: [i["state"] for i in intents(one.name)] == ["sending"], "the old one is being sent")
        two = one.successor()
        raw = WORLD.raw(WORLD.gateway_daemon)
        raw.send(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nFencing-Token: {two.header}\r\nContent-Length: 1000000\r\n\r\n")
        raw.send(b"x" * 70_000)
        wait_until(lambda: [i["state"] for i in intents(one.name)] == ["sending", "queued"], "the new one is queued")
        raw.vanish()
        go.set()
        check_equal(old.get().status, 200)
        no_intents(one.name)
    check_equal(UPSTREAM.begun.count(path), 1)


def expecting(path, token_lines, body=b"hello"):
    """A write whose client waits for 100 Continue: (status line, headers, socket)."""
    raw = WORLD.raw(WORLD.gateway_daemon)
    raw.send(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\n{token_lines}Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n")
    return raw, *raw.head()


@test
def a_write_whose_head_alone_is_refused_is_not_told_to_go_on(one, key):
    other, _ = holder("order")
    path, count = f"/orders/{key}/x", len(UPSTREAM.requests)
    flipped = "A" if one.header[-5] != "A" else "B"
    forged = one.header[:-5] + flipped + one.header[-4:]
    twice = f"Fencing-Token: {one.header}\r\n" * 2
    for lines, status, code in (("", 428, "token-required"), ("Fencing-Token: 1\r\n", 400, "malformed-token"), (twice, 400, "malformed-token"),
                                (f"Fencing-Token: {forged}\r\n", 403, "bad-signature"), (f"Fencing-Token: {other.header}\r\n", 403, "wrong-lease")):
        for sends_anyway in (False, True):
            raw, line, headers = expecting(path, lines)
            check_in(f" {status} ", line, f"{lines}: {line}")
            names = {name.lower(): value for name, value in headers}
            check_in(f"reason={code}", names["fencing-status"])
            check_equal(names["connection"], "close")
            if sends_anyway:
                raw.send(b"hello")
            else:
                raw.end_sending()
            check_equal(json.loads(raw.take(int(names["content-length"])))["code"], code)
            raw.close()
    check_equal((len(UPSTREAM.requests), intents(one.name)), (count, []))


@test
def a_write_with_a_good_token_is_told_to_go_on_and_a_stale_one_is_refused_behind_it(one, key):
    path = f"/orders/{key}/x"
    raw, line, _ = expecting(path, f"Fencing-Token: {one.header}\r\n")
    check_in(" 100 ", line)
    count = len(UPSTREAM.requests)
    check_equal((intents(one.name), count), ([], len(UPSTREAM.requests)), "something was sent on before the body had come")
    raw.send(b"hello")
    check_in(" 200 ", raw.head()[0])
    check_equal((last().body, last().header("Expect")), (b"hello", None))
    one.successor()
    raw, line, _ = expecting(path, f"Fencing-Token: {one.header}\r\n")
    check_in(" 100 ", line)  # only the store knows
    raw.send(b"hello")
    check_in(" 412 ", raw.head()[0])
    check_equal(len(UPSTREAM.requests), count + 1)


@test
def a_long_head_of_an_answer_is_passed_on_and_the_connection_closed_behind_it():
    for size, fits in ((2000, True), (9000, True), (32000, True), (33000, False)):
        def act(upstream, request, size=size):
            upstream.apply(request)
            fields = [(f"X-{number}", "v" * 1990) for number in range(size // 2000)] + [("X-Rest", "r" * (size % 2000))]
            request.connection.answer(200, fields, b"y" * (100_000 if "long" in request.target else 5))
        with Acting(act):
            for method, path, length in (("PUT", "x", 5), ("PUT", "long", 100_000), ("GET", "x", 5), ("GET", "long", 100_000)):
                one, key = holder("order")
                raw = WORLD.raw(WORLD.gateway_daemon)
                fence = f"Fencing-Token: {one.header}\r\nContent-Length: 1\r\n\r\nz" if method == "PUT" else "\r\n"
                raw.send(f"{method} /orders/{key}/{path} HTTP/1.1\r\nHost: localhost\r\n{fence}")
                line, headers = raw.head()
                if not fits:
                    check_in(" 504 " if method == "PUT" else " 502 ", line, f"{method} {size}")
                    continue
                check_in(" 200 ", line, f"{method} {size} {raw.buffer[:300]}")
                check_equal(sum(len(value) for name, value in headers if name.startswith("X-")), size // 2000 * 1990 + size % 2000)
                check_equal((raw.take(length), raw.buffer), (b"y" * length, b""))
                check_equal(dict(headers).get("Connection", "").lower() == "close", size > 4096, f"{size}")
                if size > 4096:
                    check(raw.is_closed())
                else:
                    raw.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    check_equal(raw.answer("GET", "/livez").status, 200)
                raw.close()
                if method == "PUT":
                    wait_until(lambda one=one: intents(one.name) == [], "its intent is closed")


@test
def a_hundred_headers_go_there_and_back_in_their_order():
    many = [(f"X-{number}", f"v {number}") for number in range(100)] + [("Cookie", "a=b; c=d"), ("cookie", "e=f"), ("X-0", "again")]
    def act(upstream, request):
        upstream.apply(request)
        request.connection.answer(200, many)
    one, key = holder("order")
    with Acting(act):
        done = send("PUT", f"/orders/{key}/x", one, b"x", headers=many)
    check_equal(done.status, 200)
    own = [name for name, _ in many]
    for got in (last().headers, done.headers):
        check_equal([pair for pair in got if pair[0] in own], many)


@test
def a_head_of_32_kib_goes_on_whole(one, key):
    for path in ("x", "x?" + "q" * 20_000):
        head = f"PUT /orders/{key}/{path} HTTP/1.1\r\nHost: localhost\r\nFencing-Token: {one.header}\r\nContent-Length: 1\r\nX-Long: "
        long = "v" * (32768 - len(head) - 4)
        for more, status in (("", 200), ("v", 431)):
            raw = WORLD.raw(WORLD.gateway_daemon)
            raw.send(f"{head}{long}{more}\r\n\r\nz")
            check_in(f" {status} ", raw.head()[0])
            raw.close()
        check_equal((last().header("X-Long"), last().target, last().body), (long, f"/orders/{key}/{path}", b"z"))


@test
def a_head_that_the_upstreams_name_makes_too_long_is_refused_behind_the_fence(one, key):
    tag = f"<http://a/orders/{key}/x>"
    raw, count = WORLD.raw(WORLD.gateway_daemon), len(UPSTREAM.requests)
    raw.send(f"PUT /orders/{key}/x HTTP/1.1\r\nHost: a\r\nFencing-Token: {one.header}\r\nContent-Length: 1\r\nIf: {tag * (32000 // len(tag))}\r\n\r\nz")
    WORLD.contract.forwards = True
    answer = raw.answer("PUT", f"/orders/{key}/x")
    WORLD.contract.forwards = False
    refused(answer, 431, "header-too-large", lease=one.name, presented_token=one.token)
    check_equal(answer.header("Fencing-Status"), f"pawl; verdict=refused; reason=header-too-large; token={one.token}")
    check_equal(len(UPSTREAM.requests), count)
    wait_until(lambda: intents(one.name) == [], "nothing is open")
    raw.close()


# -- the store

@test
def a_store_that_turns_unsafe_forwards_no_ordered_write(one, key):

    def noticed(setting, fits):
        """Settings are read every 10 s, and by whoever connects (tests/component/test_store_safety.c)."""
        WORLD.redis("CONFIG", "SET", "appendfsync", setting)
        WORLD.redis("CLIENT", "KILL", "TYPE", "normal")
        wait_until(lambda: all(fits(one("GET", "/readyz", held=False)) for one in (WORLD.gateway, WORLD.lease)), "both have noticed")
    noticed("everysec", lambda answer: b"appendfsync" in answer.body)
    count = len(UPSTREAM.requests)
    refused(send("PUT", f"/orders/{key}/x", one, b"x"), 503, "store-unsafe")
    check_equal(len(UPSTREAM.requests), count)
    noticed("always", lambda answer: answer.status == 200)
    check_equal(send("PUT", f"/orders/{key}/x", one, b"x").status, 200)


@test
def a_refusal_that_cannot_be_told_ends_its_request_all_the_same(one, key):
    one.successor()
    record_set(WORLD.redis, one.name, o="h" * 200)  # by hand: no holder is so long
    refused(send("PUT", f"/orders/{key}/x", one, b"x"), 500, "internal")
    wait_until(lambda: WORLD.gateway.metric("pawl_gateway_forwarding") == 0, "nothing of it is left")
    record_set(WORLD.redis, one.name, o="h")


# -- reload

@test
def another_table_is_served_only_when_it_was_adopted(one, key):
    check_equal(send("PUT", f"/orders/{key}/x", one, b"x").status, 200)
    before = WORLD.gateway("GET", "/v1/routes", held=False).json["hash"]
    routes_file(FOLDER, [route(UPSTREAM, "/new/{id}", "new:{id}")] + ROUTES)
    begin = len(WORLD.gateway_daemon.lines)
    WORLD.gateway_daemon.send(1)
    WORLD.gateway_daemon.line(lambda line: "routes-reloaded" in line, "that the routes are new", begin)
    check(WORLD.gateway("GET", "/v1/routes", held=False).json["hash"] != before, "the table of before would be adopted")
    wait_until(lambda: send("PUT", f"/orders/{key}/x", one, b"x").code == "routes-differ", "the other workers have it, too")
    for name, *_ in open_intents(WORLD.redis):
        for intent in intents(name):
            WORLD.gateway("POST", f"/v1/intents/{name}/resolve?id={intent['id']}", held=False)
    adopted = []

    def adopt():
        adopted.append(WORLD.gateway("POST", "/v1/routes/adopt", held=False))
        return adopted[-1].status == 200
    wait_until(adopt, "what has just ended is closed, and the table adopted")
    check_equal(adopted[-1].json["before"], before)
    check_equal(send("PUT", f"/orders/{key}/x", one, b"x").status, 200)


@test
def a_table_that_is_read_again_and_again_takes_no_more_room():
    """SIGHUP is for certificates, too."""
    many = routes_file(FOLDER, [route(UPSTREAM, f"/many-{i}/{{id}}", f"many-{i}:{{id}}") for i in range(200)], "many.json")
    daemon = Daemon("pawl-gateway", *WORLD.flags, "--routes", many)

    def read_again(times):
        for _ in range(times):
            begin = len(daemon.lines)
            daemon.send(1)
            daemon.line(lambda line: "routes-reloaded" in line, "that the routes are new", begin)  # pylint: disable=cell-var-from-loop
        return memory_kib(daemon.process)
    kib = read_again(10)
    read_again(40)
    if "-fsanitize" not in (BUILD / "flags.txt").read_text(encoding="ascii"):  # which keeps what is freed
        wait_until(lambda: memory_kib(daemon.process) < kib + 4096, "those of before are gone")
    check_equal(daemon.end(), 0)


@test
def a_table_that_cannot_be_used_changes_nothing():
    before, missing = WORLD.gateway("GET", "/v1/routes", held=False).json["hash"], os.path.join(FOLDER, "no-ca.pem")
    safe = {"match": "/safe", "lease": "safe", "upstream": "https://h", "upstream_tls": {"ca_file": missing}, "guarantee": "admitted"}
    for text, why in ((json.dumps({"routes": [*ROUTES, safe]}), f"routes[{len(ROUTES)}] (/safe): upstream_tls.ca_file: the file {missing}"), ("{", "")):
        with open(TABLE, "w", encoding="utf-8") as file:
            file.write(text)
        begin = len(WORLD.gateway_daemon.lines)
        WORLD.gateway_daemon.send(1)
        check_in(why, WORLD.gateway_daemon.line(lambda line: "routes-not-reloaded" in line, "that the routes are as before", begin))
        check_equal(WORLD.gateway("GET", "/v1/routes", held=False).json["hash"], before)


@test
def the_upstream_was_never_sent_anything_malformed():
    check_equal((UPSTREAM.wrong, SOCKET_UPSTREAM.wrong), ([], []))


main(WORLD.close)
