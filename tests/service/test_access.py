#!/usr/bin/python3
"""Who may do what, with --access: every address and verb for each kind of caller, the order of what is refused, SIGHUP."""

import base64
import contextlib
import hashlib
import http.client
import itertools
import json
import os
import pathlib
import secrets
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time

from world import BUILD, TO_REDIS, World, check, check_equal, check_in, function_of, main, test, test_in, wait_until
from world.access import identities, new_token, reloaded, sha256, write_private
from world.asking import Later, refused
from world.client import Client
from world.ports import own_port
from world.process import die_with_parent, memory_kib
from world.record import stripe_do, stripe_key
from world.relay import Relay
from world.staged import Hanging
from world.upstream import Upstream, route, routes_file
from world.wait import keeps_within
from world.world import Daemon, run_daemon

FOLDER = tempfile.mkdtemp(dir=os.environ["TMPDIR"])
FILE = pathlib.Path(FOLDER, "access.json")
SANITIZED = "-fsanitize" in (BUILD / "flags.txt").read_text(encoding="ascii")  # then times and memory are theirs
VERBS = ["acquire", "look", "force-release", "read", "write-own", "write", "check", "resolve"]


TOKENS = {name: new_token() for name in ("all", "none", "right", "other", "ops", "app")}


def rules(*extra):
    return {"identities": identities(TOKENS) | {"socket": {"uids": [os.getuid()]}}, "rules": [
        {"who": ["all"], "may": [*VERBS, "session", "observe", "operate"], "on": ["*"]},
        {"who": ["app"], "may": ["acquire", "look", "read", "write-own", "session"], "on": ["{me}:*"]},
        {"who": ["socket"], "may": ["acquire"], "on": ["sock:*"]}, *extra]}


def bearer(name, field="Authorization"):
    return {field: f"Bearer {TOKENS[name]}"}


write_private(FILE, rules())
UPSTREAM, ELSEWHERE = Upstream(), Hanging()
TABLE = routes_file(FOLDER, [route(UPSTREAM, "/orders/{id}/**", "orders:{id}"),
                             route(UPSTREAM, "/theirs/{id}/**", "orders:{id}", credential="upstream"),
                             route(UPSTREAM, "/marked/{id}/**", "marked:{id}", check="mark", guarantee="admitted"),
                             route(ELSEWHERE, "/elsewhere/{id}/**", "orders:{id}", check="mark", timeout_ms=20_000)])
SOCKET = os.path.join(FOLDER, "lease.sock")
WORLD = World("--access", str(FILE), "--trusted-proxy", "127.0.0.1", lease_flags=["--listen-unix", SOCKET], gateway_flags=["--routes", TABLE])
WORLD.contract.forwards = True
WORLD.lease, WORLD.gateway = WORLD.lease.roaming(), WORLD.gateway.roaming()
DAEMONS = (WORLD.lease_daemon, WORLD.gateway_daemon)


def reload(document):
    write_private(FILE, document)
    for daemon in DAEMONS:
        reloaded(daemon)
    digest = hashlib.sha256(FILE.read_bytes()).hexdigest()
    for client in (WORLD.lease, WORLD.gateway):
        wait_until(lambda: client("GET", "/v1/access", bearer("all")).json["hash"] == digest, "it judges")  # pylint: disable=cell-var-from-loop


def unauthenticated(answer, why):
    refused(answer, 401, "unauthenticated", why=why)
    shown = "" if why == "none" else ', error="invalid_token"'
    check_equal(answer.header("WWW-Authenticate"), f'Bearer realm="pawl"{shown}')


def acquire(who, lease, **ask):
    answer = WORLD.lease("POST", f"/v1/leases/{lease}", bearer(who), body=ask)
    check_equal(answer.status, 201, f"{answer}")
    return answer.json


# -- every address


def operations():
    """(client, method, path, verb, place) of all that is described in api/openapi.yaml."""
    for template, item in WORLD.contract.document["paths"].items():
        for method, one in item.items():
            if not isinstance(one, dict) or "x-needs" not in one:
                continue
            verb, _, place = one["x-needs"].partition(" ")
            for service in ("lease", "gateway"):
                if {service, "health"} & set(one["tags"]):
                    yield getattr(WORLD, service), method.upper(), template, verb, place


def filled(template, lease):
    path = template.replace("{name}", lease).replace("{lease}", lease).replace("{key}", lease + "/a")
    path = path.replace("{rest}", "a/b").replace("{code}", "forbidden").replace("{file}", "pawl.css")
    return path.replace("/v1/sessions/{id}", "/v1/sessions/" + "s" * 20).replace("{id}", "0123456789abcdef")


def needed(verb, place, lease):
    """What a file must have so that it may do just this, or None."""
    on = [] if verb in ("session", "observe", "operate") else [lease if place in ("name", "key", "hold", "body") else "*"]
    return {"who": ["right"], "may": [verb], **({"on": on} if on else {})}


def ask(client, method, path, lease, headers):
    body = {"names": [lease]} if (method, path) == ("POST", "/v1/leases") else None
    return client(method, path + ("?since=1.1.1" if path == "/v1/events" else ""), headers, body=body)


@test
def every_address_is_only_for_who_may():
    """nobody, a wrong, a malformed, one with no rule, one with a rule for another name, and the right one."""
    every, count = list(operations()), 0
    lease = WORLD.name("matrix")
    reload(rules(*[{**needed(verb, place, lease)} for _, _, _, verb, place in every if verb not in ("open", "known")],
                 {"who": ["other"], "may": VERBS, "on": ["elsewhere:*"]}))
    for client, method, template, verb, place in every:
        path, nothing_listed = filled(template, lease), {"Authorization": f"Bearer {new_token()}"}
        malformed = {"Authorization": f"Bearer {TOKENS['all'][:-1]}x"}
        if verb == "open":
            for headers in ({}, nothing_listed, malformed) if (client, path) != (WORLD.gateway, "/") else ({},):
                at_forwards = path.startswith("/ui") and client is WORLD.gateway  # has no pages
                check(ask(client, method, path, lease, headers).status in ((404,) if at_forwards else (200, 303, 503)), f"{method} {path}")
            continue
        unauthenticated(ask(client, method, path, lease, {}), "none")
        unauthenticated(ask(client, method, path, lease, nothing_listed), "unknown")
        unauthenticated(ask(client, method, path, lease, malformed), "malformed")
        count += 1
        right = ask(client, method, path, lease, bearer("right"))
        check(right.code not in ("unauthenticated", "forbidden"), f"{method} {path}: {right}")
        if verb == "known" or place == "hold":
            check(ask(client, method, path, lease, bearer("none")).code not in ("unauthenticated", "forbidden"), f"{method} {path}")
            continue
        told = lease if place in ("name", "key", "body") else None
        refused(ask(client, method, path, lease, bearer("none")), 403, "forbidden", identity="none", verb=verb, lease=told)
        if place in ("name", "key", "body"):
            refused(ask(client, method, path, lease, bearer("other")), 403, "forbidden", identity="other", verb=verb, lease=lease)
    check(count > 25, f"{count} addresses")
    reload(rules())


@test
def what_is_not_listed_tells_nobody_that_it_is_not():
    for client in (WORLD.lease, WORLD.gateway):
        unauthenticated(client("GET", "/v1/nothing"), "none")
        unauthenticated(client("PATCH", "/v1/leases"), "none")
        unauthenticated(client("GET", "/orders/1/%ff"), "none")
        check_equal(client("GET", "/v1/nothing", bearer("none")).status, 404)
        check_equal(client("OPTIONS", "/v1/access").status, 204)
    check_equal(WORLD.lease("PATCH", "/v1/leases", bearer("none")).status, 405)


# -- the order of what is refused


@test
def who_asks_comes_before_the_name_and_that_before_query_type_length_and_body():
    lease = "app:1"
    for path, headers, body, status, code in (
            ("/v1/leases/app%2F1", {}, b"{", 401, "unauthenticated"), ("/v1/leases/app%2F1", bearer("app"), b"{", 400, "invalid-request"),
            ("/v1/leases/other:1", bearer("app"), b"{", 403, "forbidden"), ("/v1/leases/other:1?x=1", bearer("app"), b"", 403, "forbidden"),
            ("/v1/leases/other:1", {**bearer("app"), "Content-Type": "text/plain"}, b"x", 403, "forbidden"),
            (f"/v1/leases/{lease}?x=1", bearer("app"), b"", 400, "invalid-request"),
            (f"/v1/leases/{lease}", {**bearer("app"), "Content-Type": "text/plain"}, b"x", 415, "unsupported-media-type")):
        answer = WORLD.lease("POST", path, headers, body=body)
        check_equal((answer.status, answer.code), (status, code), f"{path}")
    for who, status in ((None, "401"), ("app", "403")):
        raw = WORLD.raw(WORLD.gateway_daemon)
        shown = f"Authorization: Bearer {TOKENS[who]}\r\n" if who else ""
        raw.send(f"PUT /v1/resources/other:1/a HTTP/1.1\r\nHost: localhost\r\n{shown}Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n")
        check_in(f" {status} ", raw.head()[0])
        raw.close()


@test
def a_name_that_exists_is_refused_like_one_that_does_not():
    there, not_there = WORLD.name("hidden"), WORLD.name("hidden")
    acquire("all", there)
    for path in ("/v1/leases/{}", "/v1/leases/{}/history", "/v1/events?lease={}"):
        answers = [WORLD.lease("GET", path.format(one), bearer("app")) for one in (there, not_there)]
        bodies = [answer.body.replace(one.encode(), b"N") for answer, one in zip(answers, (there, not_there))]
        bodies = [json.loads(body) for body in bodies]
        for body in bodies:
            body.pop("instance")
        check_equal(bodies[0], bodies[1])
        check_equal(answers[0].status, 403)


@test
def every_name_of_several_must_be_allowed():
    answer = WORLD.lease("POST", "/v1/leases", bearer("app"), body={"names": ["app:1", "app:2", "ap:3", "z"]})
    refused(answer, 403, "forbidden", verb="acquire", lease="ap:3", identity="app")
    check_equal(WORLD.lease("POST", "/v1/leases", bearer("app"), body={"names": [WORLD.name("app"), WORLD.name("app")]}).status, 201)


# -- credentials


@test
def the_first_credential_that_is_there_decides_alone():
    look = "/v1/leases/app:9"
    good, bad = bearer("app"), {"Authorization": "Bearer " + new_token()}
    check_equal(WORLD.lease("GET", look, {**bearer("app", "Pawl-Authorization"), **bad}).status, 200)
    unauthenticated(WORLD.lease("GET", look, {"Pawl-Authorization": bad["Authorization"], **good}), "unknown")
    for value in ("Basic YTpi", "Bearer", "Bearer x", "Bearer " + TOKENS["app"] + " x", TOKENS["app"], "Bearer pawl_"):
        unauthenticated(WORLD.lease("GET", look, {"Authorization": value}), "malformed")
    check_equal(WORLD.lease("GET", look, {"Authorization": "bearer  " + TOKENS["app"]}).status, 200)
    for field in ("Authorization", "Pawl-Authorization"):
        answer = WORLD.lease("GET", look, [(field, "Bearer " + TOKENS["app"])] * 2)
        check_equal((answer.status, answer.code), (400, "invalid-request"))
    for client, path in ((WORLD.lease, "/v1/leases?prefix=app&access_token="), (WORLD.gateway, "/orders/1/a?x=1&access_token=")):
        for shown in (TOKENS["all"], TOKENS["all"].replace("_", "%5F"), "%70" + TOKENS["all"][1:], "x;t=" + TOKENS["all"], "1&" + TOKENS["all"]):
            count = len(UPSTREAM.requests)
            check_equal((client("GET", path + shown, bearer("all")).status, len(UPSTREAM.requests)), (400, count), shown)


def over_socket(method, target, *lines, body="", path=SOCKET):
    """(status, body) of a request over the unix socket."""
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(20)
        one.connect(path)
        head = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {len(body)}" if body else "", *lines]
        one.sendall(("\r\n".join(filter(None, head)) + "\r\n\r\n" + body).encode())
        text = b""
        while more := one.recv(65536):
            text += more
    head, _, content = text.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), json.loads(content) if content else None


@test
def the_kernel_says_who_is_at_the_other_end_of_a_unix_socket():
    check_in(f"listening on unix:{SOCKET}", WORLD.lease_daemon.log())
    check_equal(os.stat(SOCKET).st_mode & 0o777, 0o660)
    status, body = over_socket("GET", "/v1/access")
    check_equal((status, body["identity"], body["by"], body["may"]), (200, "socket", "socket", ["acquire"]))
    check_equal(over_socket("POST", f"/v1/leases/{WORLD.name('sock')}")[0], 201)
    check_equal(over_socket("POST", f"/v1/leases/{WORLD.name('other')}")[0], 403)
    status, body = over_socket("GET", "/v1/access", f"Authorization: Bearer {TOKENS['app']}")
    check_equal((body["identity"], body["by"]), ("app", "access-token"))
    check_equal(over_socket("GET", "/v1/access", "Authorization: Bearer " + new_token())[0], 401)
    without = rules()
    without["identities"]["socket"] = {"uids": [os.getuid() + 1]}
    reload(without)
    status, body = over_socket("GET", "/v1/access")
    check_equal((status, body["why"]), (401, "none"), "a uid of no identity has shown nothing")
    reload(rules())


@test
def a_caller_learns_who_it_is_and_what_it_may():
    told = WORLD.lease("GET", "/v1/access", bearer("app")).json
    check_equal((told["identity"], told["by"], told["may"]), ("app", "access-token", ["acquire", "look", "read", "write-own", "session"]))
    check_equal(told["hash"], hashlib.sha256(FILE.read_bytes()).hexdigest())
    check_equal(WORLD.gateway("GET", "/v1/access?lease=other:1", bearer("app")).json["may"], ["session"])
    check_equal(WORLD.lease("GET", "/v1/access", bearer("none")).json["may"], [])
    check_equal(WORLD.lease("GET", "/v1/access?lease=%00", bearer("app")).status, 400)
    uses = f'pawl_access_token_uses_total{{token="{sha256(TOKENS["right"])[7:15]}"}} '
    before = WORLD.lease("GET", "/metrics", bearer("all")).body.decode()
    check_in(f'pawl_access_file_info{{hash="{told["hash"]}"}} 1', before)
    for _ in range(3):
        WORLD.lease("GET", "/v1/access", bearer("right"))
    after = WORLD.lease("GET", "/metrics", bearer("all")).body.decode()
    check_equal(int(after.partition(uses)[2].split()[0]) - int(before.partition(uses)[2].split()[0]), 3)


@test
def pawl_access_whoami_asks_both_services():
    token = pathlib.Path(FOLDER, "app-token")
    token.write_text(TOKENS["app"] + "\n", encoding="ascii")
    token.chmod(0o600)
    urls = ["--lease-url", WORLD.lease.url, "--gateway-url", WORLD.gateway.url]

    def whoami(*arguments):
        return run_daemon("pawl", "access", "whoami", *urls, *arguments)
    done = whoami("--access-token-file", str(token), "app:1")
    line = "{}: app, by access-token; may acquire look read write-own session\n"
    check_equal((done.returncode, done.stdout), (0, line.format("lease service") + line.format("gateway")), done.stderr)
    done = whoami("--access-token-file", str(token), "other:1")
    check_equal(done.stdout.splitlines()[0], "lease service: app, by access-token; may session")
    check_equal(whoami().returncode, 77)


# -- nobody


@test
def nobody_may_what_a_rule_for_nobody_says_and_gets_401_for_the_rest():
    reload(rules({"who": ["nobody"], "may": ["acquire", "look"], "on": ["free:*"]}, {"who": ["nobody"], "may": ["observe"]}))
    free = WORLD.name("free")
    grant = WORLD.lease("POST", f"/v1/leases/{free}").json
    check_equal(WORLD.lease("GET", f"/v1/leases/{free}").status, 200)
    unauthenticated(WORLD.lease("GET", f"/v1/leases/{free}", {"Authorization": "Bearer " + new_token()}), "unknown")
    unauthenticated(WORLD.lease("POST", f"/v1/leases/{WORLD.name('app')}"), "none")
    unauthenticated(WORLD.lease("POST", "/v1/sessions"), "none")
    unauthenticated(WORLD.lease("GET", "/v1/nothing"), "none")
    check_equal(WORLD.lease("GET", "/metrics").status, 200)
    check_equal(WORLD.lease("PUT", f"/v1/leases/{free}", {"Lease-Id": grant["lease_id"]}).status, 200)
    unauthenticated(WORLD.lease("DELETE", f"/v1/leases/{WORLD.name('app')}", {"Lease-Id": grant["lease_id"]}), "none")
    check_equal(WORLD.lease("DELETE", f"/v1/leases/{free}", {"Lease-Id": grant["lease_id"]}).status, 204)
    reload(rules())


# -- identity: whose a hold is


def header(grant):
    return {"Fencing-Token": grant["fencing_token"]}


@test
def a_hold_is_its_identitys_whoever_knows_its_lease_id():
    lease = WORLD.name("app")
    grant = acquire("app", lease)
    check_equal((grant["identity"], grant["holder"]), ("app", "app"))
    mine = {"Lease-Id": grant["lease_id"]}
    for method in ("PUT", "DELETE"):
        refused(WORLD.lease(method, f"/v1/leases/{lease}", {**bearer("all"), **mine}), 403, "not-yours")
    refused(WORLD.lease("POST", f"/v1/leases/{lease}", bearer("all"), body={"lease_id": grant["lease_id"]}), 403, "not-yours")
    check_equal(WORLD.lease("PUT", f"/v1/leases/{lease}", {**bearer("app"), **mine}).status, 200)
    look = WORLD.lease("GET", f"/v1/leases/{lease}", bearer("all")).json["holders"][0]
    check_equal((look["identity"], look["holder"]), ("app", "app"))
    new = new_token()
    document = rules()
    document["identities"]["app"]["access_tokens"] = [sha256(new)]
    reload(document)
    check_equal(WORLD.lease("PUT", f"/v1/leases/{lease}", {"Authorization": f"Bearer {new}", **mine}).status, 200, "another credential of the same")
    unauthenticated(WORLD.lease("PUT", f"/v1/leases/{lease}", {**bearer("app"), **mine}), "unknown")
    check_equal(WORLD.lease("DELETE", f"/v1/leases/{lease}", {"Authorization": f"Bearer {new}", **mine}).status, 204)
    reload(rules())


@test
def who_may_not_look_is_told_a_holder_but_no_identity():
    reload(rules({"who": ["right"], "may": ["acquire", "write"], "on": ["app:*"]}))
    for asked, told in (({}, None), ({"holder": "other"}, None), ({"holder": "worker-7"}, "worker-7")):
        lease = WORLD.name("app")
        mine = acquire("app", lease, **asked)
        for who, holder in (("right", told), ("all", mine["holder"])):
            for path, body in ((f"/v1/leases/{lease}", {}), (f"/v1/leases/{lease}", {"wait_ms": 1}), ("/v1/leases", {"names": [lease, WORLD.name("app")]})):
                answer = WORLD.lease("POST", path, bearer(who), body=body)
                check_equal((answer.status, answer.json["holder"]), (409, holder), f"{answer}")
                check(who == "all" or '"app"' not in answer.body.decode(), f"{answer}")
        WORLD.lease("POST", f"/v1/leases/{lease}/force-release", bearer("all"))
        acquire("app", lease, **asked)
        for who, holder in (("right", told), ("all", mine["holder"])):
            answer = WORLD.gateway("PUT", f"/v1/resources/{lease}/a", {**bearer(who), **header(mine)}, body=b"x")
            check_equal((answer.status, answer.json.get("holder")), (412, holder), f"{answer}")
    reload(rules())


@test
def write_own_is_for_the_token_of_a_hold_of_ones_own():
    reload(rules({"who": ["right"], "may": ["write-own", "acquire", "read"], "on": ["app:*", "orders:*"]},
                 {"who": ["nobody"], "may": ["write-own", "read"], "on": ["app:*"]}))
    lease = WORLD.name("app")
    for key in (f"/v1/resources/{lease}/a",):
        theirs = acquire("app", lease)
        check_equal(WORLD.gateway("PUT", key, {**bearer("app"), **header(theirs)}, body=b"1").status, 201)
        refused(WORLD.gateway("PUT", key, {**bearer("right"), **header(theirs)}, body=b"2"), 403, "not-yours")
        refused(WORLD.gateway("DELETE", key, {**bearer("right"), **header(theirs)}), 403, "not-yours")
        unauthenticated(WORLD.gateway("PUT", key, header(theirs), body=b"2"), "none")
        check_equal(WORLD.gateway("GET", key, bearer("app")).body, b"1")
        check_equal(WORLD.gateway("PUT", key, {**bearer("all"), **header(theirs)}, body=b"3").status, 204, "write is for any token")
    order = WORLD.name("orders")
    theirs, path = acquire("all", order), f"/orders/{order.partition(':')[2]}/x"
    count = len(UPSTREAM.requests)
    refused(WORLD.gateway("PUT", path, {**bearer("right"), **header(theirs)}, body=b"2"), 403, "not-yours")
    check_equal(len(UPSTREAM.requests), count)
    WORLD.lease("POST", f"/v1/leases/{order}/force-release", bearer("all"))
    own = acquire("right", order)
    check_equal(WORLD.gateway("PUT", path, {**bearer("right"), **header(own)}, body=b"2").status, 200)
    check_equal(WORLD.gateway("PUT", path, {**bearer("all"), **header(own)}, body=b"2").status, 200)
    marked = f"/marked/{order.partition(':')[2]}/x"
    refused(WORLD.gateway("PUT", marked, {**bearer("right"), **header(own)}, body=b"2"), 403, "forbidden", verb="write")
    by_mark = WORLD.another("pawl-gateway", "--check", "mark")
    kept = f"/v1/resources/{order}/x"
    for method, body, status in (("PUT", {"body": b"2"}, 201), ("DELETE", {}, 204)):
        refused(by_mark(method, kept, {**bearer("right"), **header(own)}, **body), 403, "forbidden", verb="write")
        check_equal(by_mark(method, kept, {**bearer("all"), **header(own)}, **body).status, status)
    reload(rules())


@test
def write_own_goes_on_beside_an_intent_that_stays_open_and_knows_no_identity():
    reload(rules({"who": ["right"], "may": ["write-own", "acquire", "read"], "on": ["orders:*"]}))
    order = WORLD.name("orders")
    own, rest = acquire("right", order), order.partition(":")[2] + "/x"
    one = WORLD.another("pawl-gateway", "--threads", "1", "--routes", TABLE)

    def put(who, path, body):
        return one("PUT", path + rest, [*bearer(who).items(), *header(own).items()], body, held=False)
    check_equal([put("all", "/elsewhere/", b"1").status, put("all", "/elsewhere/", b"2").status], [200, 200])
    told = Later(put, "all", "/elsewhere/", b"hang")
    wait_until(lambda: b"hang" in ELSEWHERE.hanging, "it has come")
    check(any(item.get("sticky") for item in one("GET", f"/v1/intents/{order}", bearer("all")).json["items"]), "none stays open")
    check_equal(put("right", "/orders/", b"own").status, 200)
    ELSEWHERE.hanging[b"hang"].set()
    check_equal(told.get().status, 200)
    reload(rules())


@test
def who_waits_is_judged_when_the_rules_change_and_when_it_is_granted():
    lease = WORLD.name("app")
    held = acquire("all", lease)
    client = WORLD.client(WORLD.lease_daemon)
    waiting = Later(client, "POST", f"/v1/leases/{lease}", bearer("app"), body={"wait_ms": 60000})
    wait_until(lambda: WORLD.lease("GET", f"/v1/leases/{lease}", bearer("all")).json["waiting"] == 1, "it waits")
    less = rules()
    less["rules"] = [rule for rule in less["rules"] if rule["who"] != ["app"]]
    reload(less)
    refused(waiting.get(), 403, "forbidden", identity="app", verb="acquire", lease=lease)
    check_equal(WORLD.lease("GET", f"/v1/leases/{lease}", bearer("all")).json["waiting"], 0)
    check_equal(WORLD.lease("PUT", f"/v1/leases/{lease}", {**bearer("all"), "Lease-Id": held["lease_id"]}).status, 200)
    reload(rules())


# -- what takes several steps


@contextlib.contextmanager
def at_a_relay(program="pawl-lease", *flags):
    """A service with its own way to Redis: that, its client, and what makes it judge by another file."""
    relay = Relay(WORLD.redis)
    daemon = Daemon(program, "--redis", relay.url, *WORLD.flags[2:], "--threads", "1", *flags)
    client = WORLD.client(daemon)
    wait_until(lambda: client("GET", "/readyz").status == 200, "it is ready")

    def judge_by(document):
        write_private(FILE, document)
        reloaded(daemon)
        digest = hashlib.sha256(FILE.read_bytes()).hexdigest()
        wait_until(lambda: client("GET", "/v1/access", bearer("all")).json["hash"] == digest, "it judges")
    relay.daemon = daemon
    try:
        yield relay, client, judge_by
        check_equal(daemon.end(), 0)
    finally:
        relay.close()
        reload(rules())


def judged_in_the_midst(called, method, target, before, after, *flags, program="pawl-lease", **more):
    """What "right" hears, whose request has called this function of Redis when the rules become others."""
    reload(before)
    with at_a_relay(program, *flags) as (relay, client, judge_by):
        call = relay.hold(TO_REDIS, called)
        asked = Later(client, method, target, bearer("right"), **more)
        call.wait_met()
        judge_by(after)
        call.go()
        return asked.get()


def without_its_credential(may):
    return {**rules(may), "identities": rules()["identities"] | identities({"right": new_token()})}


def outcome_unknown(answer):
    check_equal((answer.status, answer.code), (504, "outcome-unknown"))


@test
def several_that_wait_for_their_turn_are_judged_when_it_comes():
    may = {"who": ["right"], "may": ["acquire"], "on": ["job:*"]}
    reload(rules(may))
    leases = [WORLD.name(), WORLD.name()]
    with at_a_relay() as (relay, client, judge_by):
        turn = relay.hold(TO_REDIS, function_of("acquire_all"))
        first = Later(client, "POST", "/v1/leases", bearer("all"), body={"names": [WORLD.name()]})
        turn.wait_met()
        waits = Later(client, "POST", "/v1/leases", bearer("right"), body={"names": leases})
        wait_until(lambda: 'what="granted"} 0' in client("GET", "/metrics", bearer("all")).body.decode(), "both are there")
        judge_by(rules({**may, "on": leases[:1]}))
        turn.go()
        check_equal(first.get().status, 201)
        refused(waits.get(), 403, "forbidden", identity="right", verb="acquire", lease=leases[1])


def waits_for_a_higher_floor():
    """False: it did not wait for one."""
    reload(rules({"who": ["right"], "may": ["acquire"], "on": ["job:*"]}))
    lease = WORLD.name()
    acquire("all", lease, ttl_ms=100)
    with at_a_relay() as (relay, client, judge_by):
        call = relay.hold(TO_REDIS, function_of("acquire"))
        waits = Later(client, "POST", f"/v1/leases/{lease}", bearer("right"))
        call.wait_met()
        judge_by(rules())
        wait_until(lambda: WORLD.lease("GET", f"/v1/leases/{lease}", bearer("all")).json["state"] == "free", "it is over")
        WORLD.lease_daemon.send(signal.SIGSTOP)  # its heartbeat would raise the ceiling, as may the other one's
        try:
            counter = WORLD.redis("HGET", stripe_key(lease), "counter").decode()
            stripe_do(WORLD.redis, "HSET", stripe_key(lease), "ceiling", counter)
            call.go()
            if waits.get().status != 201:
                refused(waits.answer, 403, "forbidden", identity="right", verb="acquire", lease=lease)
            return waits.answer.status != 201
        finally:
            WORLD.lease_daemon.send(signal.SIGCONT)


@test
def who_waits_for_a_higher_floor_is_judged_before_it_is_granted():
    wait_until(waits_for_a_higher_floor, "it waits, and is refused")


@test
def a_force_release_stops_when_its_credential_is_taken_out():
    may, lease = {"who": ["right"], "may": ["force-release"], "on": ["job:*"]}, WORLD.name()
    for _ in range(251):
        acquire("all", lease, mode="shared", ttl_ms=600000)
    outcome_unknown(judged_in_the_midst(function_of("force_release"), "POST", f"/v1/leases/{lease}/force-release", rules(may), without_its_credential(may)))
    check_equal(len(WORLD.lease("GET", f"/v1/leases/{lease}", bearer("all")).json["holders"]), 1)


@test
def a_resolve_by_force_closes_nothing_when_its_right_is_taken_away():
    lease, go = WORLD.name("orders"), threading.Event()
    grant, path = acquire("all", lease), f"/orders/{lease.partition(':')[2]}/x"

    def intents():
        return WORLD.gateway("GET", f"/v1/intents/{lease}", bearer("all")).json["items"]
    UPSTREAM.act = lambda upstream, request: check(go.wait(20), "nobody let it go on")
    write = Later(WORLD.gateway, "PUT", path, {**bearer("all"), **header(grant)}, body=b"x")
    [intent] = wait_until(intents, "it is being sent")
    outcome_unknown(judged_in_the_midst(
        function_of("intent_resolve"), "POST", f"/v1/intents/{lease}/resolve?id={intent['id']}&force=true",
        rules({"who": ["right"], "may": ["resolve"], "on": ["orders:*"]}), rules(), "--routes", TABLE, program="pawl-gateway"))
    check_equal(write.get().status, 504)
    wait_until(lambda: [one["state"] for one in intents()] == ["unknown"], "it was given up, and is open")
    go.set()
    UPSTREAM.act = Upstream.obey


def said_to_be_dead(called):
    return judged_in_the_midst(called, "POST", f"/v1/gateways/{'g' * 16}/dead?settled=true", rules({"who": ["right"], "may": ["operate"]}), rules(),
                               "--routes", TABLE, program="pawl-gateway")


@test
def a_gateway_is_not_settled_any_more_by_whom_that_right_is_taken_away():
    grant = acquire("all", WORLD.name("orders"))
    stripe = stripe_key(grant["lease"])
    text = f"{grant['lease']} {grant['epoch']:015d} {grant['token']:015d} {1:016d} s o {'g' * 16} {'i' * 16} 0.1 h 1700000000000"
    WORLD.redis("ZADD", stripe + ":i", 0, text)
    outcome_unknown(said_to_be_dead(function_of("intent_takeover")))
    check_equal(WORLD.redis("ZRANGE", stripe + ":i", 0, -1), [text.encode()], "nor is more of what it had open said to be dead")
    WORLD.redis("ZREM", stripe + ":i", text)


@test
def of_several_that_are_in_doubt_no_more_are_settled_by_whom_that_right_is_taken_away():
    doubt, entries = "pawl:{store}:doubt", [f"{'g' * 16} {letter * 16}" for letter in "ij"]
    for entry in entries:
        WORLD.redis("HSET", doubt, entry, "dead 1700000000000 0 1")
    its_own = b"\r\n$1\r\n1\r\n$9\r\npawl:{00}\r\n$16\r\n" + b"g" * 16  # and not the service's
    outcome_unknown(said_to_be_dead(function_of("unreported_leave") + its_own))
    check_equal([entry.decode() for entry in WORLD.redis("HKEYS", doubt)], entries[1:])
    WORLD.redis("DEL", doubt)


# -- lists and streams


@test
def a_list_that_is_under_way_shows_what_may_be_seen_now():
    may = {"who": ["right"], "may": ["look"], "on": ["*"]}
    leases = [acquire("all", WORLD.name("listed"))["lease"] for _ in range(3)]
    asked = (function_of("list"), "GET", "/v1/leases?prefix=listed&limit=1000", rules(may))
    got = judged_in_the_midst(*asked, rules({**may, "on": leases[:1]})).json
    check_equal(([one["lease"] for one in got["items"]], got["filtered"]), (leases[:1], True))
    refused(judged_in_the_midst(*asked, without_its_credential(may)), 403, "forbidden", lease=None, verb="look")
    other = WORLD.lease("POST", "/v1/sessions", bearer("all")).json["session"]
    asked = (function_of("session_list"), "GET", "/v1/sessions?limit=1000", rules({**may, "may": ["look", "operate"]}))
    got = judged_in_the_midst(*asked, rules(may)).json
    check_equal((other in [one["session"] for one in got["items"]], got["filtered"]), (False, True))


@test
def lists_show_what_may_be_seen_and_say_so_by_the_rules_alone():
    mine, other = WORLD.name("app"), WORLD.name("hidden")
    for lease in (mine, other):
        grant = acquire("all", lease)
        WORLD.gateway("PUT", f"/v1/resources/{lease}/a", {**bearer("all"), "Fencing-Token": grant["fencing_token"]}, body=b"x")
    for client, path, member in ((WORLD.lease, "/v1/leases?limit=1000", "lease"), (WORLD.gateway, "/v1/resources?limit=1000", "lease")):
        whole = client("GET", path, bearer("all")).json
        check_equal((whole["filtered"], {mine, other} <= {one[member] for one in whole["items"]}), (False, True))
        part = client("GET", path, bearer("app")).json
        check_equal((part["filtered"], [one for one in part["items"] if not one[member].startswith("app:")]), (True, []))
        check_in(mine, [one[member] for one in part["items"]])
        own = client("GET", path + "&prefix=app:", bearer("app")).json
        check_equal(own["filtered"], False)
        nothing = client("GET", path + "&prefix=hidden", bearer("app")).json
        check_equal((nothing["filtered"], nothing["items"], nothing["next_cursor"]), (True, [], None))
    for path in ("/v1/leases", "/v1/events"):
        refused(WORLD.lease("GET", path, bearer("none")), 403, "forbidden", lease=None, verb="look")
    refused(WORLD.gateway("GET", "/v1/intents", bearer("app")), 403, "forbidden", lease=None, verb="resolve")
    check_equal(WORLD.gateway("GET", "/v1/intents", bearer("all")).json["filtered"], False)


@test
def each_sees_its_own_sessions_and_who_may_operate_sees_and_ends_all():
    mine, other = (WORLD.lease("POST", "/v1/sessions", bearer(who)).json["session"] for who in ("app", "all"))
    listed = lambda who: WORLD.lease("GET", "/v1/sessions?limit=1000", bearer(who)).json
    whole, part = listed("all"), listed("app")
    check_equal((whole["filtered"], part["filtered"]), (False, True))
    check({mine, other} <= {one["session"] for one in whole["items"]}, whole)
    check_equal({one["identity"] for one in part["items"]}, {"app"})
    check_in(mine, [one["session"] for one in part["items"]])
    refused(WORLD.lease("GET", "/v1/sessions", bearer("none")), 403, "forbidden", lease=None, verb="look")
    refused(WORLD.lease("POST", f"/v1/sessions/{mine}/end", bearer("app")), 403, "forbidden", verb="operate")
    check_equal(WORLD.lease("POST", f"/v1/sessions/{mine}/end", bearer("all")).json, {"session": mine, "leases": 0})
    check(mine not in [one["session"] for one in listed("app")["items"]], "it is over")
    page = WORLD.lease("GET", "/v1/sessions?limit=1", bearer("all")).json
    refused(WORLD.lease("GET", f"/v1/sessions?cursor={page['next_cursor']}", bearer("app")), 400, "invalid-request")


@test
def a_session_that_nobody_opened_names_what_its_caller_may_look_at():
    reload(rules({"who": ["nobody"], "may": ["acquire", "session"], "on": ["*"]}))
    opened = WORLD.lease("POST", "/v1/sessions").json
    path, secret = "/v1/sessions/" + opened["session"], {"Session-Secret": opened["session_secret"]}
    held, lost = ([WORLD.name(begin) for begin in ("app", "hidden")] for _ in range(2))
    for lease in held + lost:
        check_equal(WORLD.lease("POST", f"/v1/leases/{lease}", secret, body={"session": opened["session"]}).status, 201)
    for lease in lost:
        WORLD.lease("POST", f"/v1/leases/{lease}/force-release", bearer("all"))
    told = lambda method, who, **more: [sorted(WORLD.lease(method, path, {**bearer(who), **more}).json[part]) for part in ("leases", "lost")]
    check_equal([told("GET", who) for who in ("all", "app", "none")], [[held, lost], [held[:1], lost[:1]], [[], []]])
    check_equal(told("PUT", "none", **secret), [held, lost])
    reload(rules())


@test
def a_cursor_tells_nothing_and_is_good_for_its_identity_only():
    for length in range(3):
        lease = WORLD.name("cursor-" + "x" * length)
        written = {**bearer("all"), **header(acquire("all", lease))}
        check_equal(WORLD.gateway("PUT", f"/v1/resources/{lease}/a", written, body=b"x").status, 201)
    for client, path in ((WORLD.lease, "/v1/leases"), (WORLD.gateway, "/v1/resources")):
        got = client("GET", f"{path}?limit=1&prefix=", bearer("all")).json
        lengths, seen = set(), []
        while got["next_cursor"]:
            cursor = got["next_cursor"]
            lengths.add(len(cursor))
            seen += got["items"]
            plain = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            check(not any(one["lease"].encode() in plain for one in got["items"]), cursor)
            for other, wanted in (("app", 400), ("all", 200)):
                check_equal(client("GET", f"{path}?limit=1&prefix=&cursor={cursor}", bearer(other)).status, wanted)
            changed = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
            check_equal(client("GET", f"{path}?limit=1&prefix=&cursor={changed}", bearer("all")).status, 400)
            got = client("GET", f"{path}?limit=1&prefix=&cursor={cursor}", bearer("all")).json
        check_equal((len(lengths), len(seen) > 1), (1, True))
        keys = [json.dumps(one) for one in seen]
        check_equal(len(keys), len({one.get("resource") or one["lease"] for one in seen}), "each once")


def time_by_turns(took, daemon, requests, pairs=1000):
    """What each of the two takes goes into its list of these."""
    end = time.monotonic() + 3
    with socket.create_connection((daemon.host, daemon.port), 20) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for turn in itertools.takewhile(lambda _: time.monotonic() < end, range(2 * pairs)):
            begun = time.perf_counter()
            one.sendall(requests[turn % 4 in (1, 2)])
            one.recv(65536)
            took[turn % 4 in (1, 2)].append(time.perf_counter() - begun)


@test
def how_long_an_answer_takes_does_not_tell_whether_there_is_what_may_not_be_seen():
    """Compared are lower quartiles, which a busy machine moves least, of more and more requests; who looks before he judges shows it in each."""
    there, nowhere = WORLD.name("hidden"), WORLD.name("hidden")
    grant = WORLD.lease("POST", "/v1/leases", bearer("all"), body={"names": [f"{there}:{i}" for i in range(40)], "ttl_ms": 600000}).json
    Later(WORLD.lease, "POST", f"/v1/leases/{there}:1", bearer("all"), body={"wait_ms": 600000})
    wait_until(lambda: WORLD.lease("GET", f"/v1/leases/{there}:1", bearer("all")).json["waiting"] == 1, "it waits")
    acquire("all", f"{there}:shared", mode="shared", ttl_ms=600000)
    for lease in grant["grants"]:
        WORLD.gateway("PUT", f"/v1/resources/{lease['lease']}/a", {**bearer("all"), **header(lease)}, body=b"x")
    for daemon, method, target in (
            (WORLD.lease_daemon, "GET", "/v1/leases/{}:1"), (WORLD.lease_daemon, "GET", "/v1/leases/{}:1/history"),
            (WORLD.lease_daemon, "POST", "/v1/leases/{}:1"), (WORLD.lease_daemon, "DELETE", "/v1/leases/{}:1"),
            (WORLD.lease_daemon, "DELETE", "/v1/leases/{}:2"), (WORLD.lease_daemon, "DELETE", "/v1/leases/{}:shared"),
            (WORLD.lease_daemon, "GET", "/v1/events?lease={}:1"), (WORLD.lease_daemon, "GET", "/v1/leases?limit=1&prefix={}"),
            (WORLD.gateway_daemon, "GET", "/v1/marks/{}:1"), (WORLD.gateway_daemon, "GET", "/v1/resources/{}:1/a"),
            (WORLD.gateway_daemon, "PUT", "/v1/resources/{}:1/a"), (WORLD.gateway_daemon, "GET", "/v1/resources?limit=1&prefix={}"),
            (WORLD.gateway_daemon, "GET", "/v1/resources?limit=1&prefix={}:1/")):
        requests = [f"{method} {target.format(one)} HTTP/1.1\r\nHost: localhost\r\nLease-Id: {'A' * 24}\r\nContent-Length: 0\r\n"
                    f"Authorization: Bearer {TOKENS['app']}\r\n\r\n".encode() for one in (there, nowhere)]
        took, tries = ([], []), []
        while len(tries) < (1 if SANITIZED else 5) and (not tries or not 0.97 < tries[-1][0] / tries[-1][1] < 1.03):
            time_by_turns(took, daemon, requests)
            tries.append([statistics.quantiles(one)[0] * 1e6 for one in took])
        check(SANITIZED or 0.97 < tries[-1][0] / tries[-1][1] < 1.03, f"{method} {target}: {tries}")


def run_daemon_until_ready(name_, *flags):
    daemon = Daemon(name_, *flags)
    return daemon.end()


class Stream:
    def __init__(self, who, target="/v1/events", accept="text/event-stream"):
        self.raw = WORLD.raw()
        self.raw.send(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nAuthorization: Bearer {TOKENS[who]}\r\n\r\n")
        check_in(" 200 ", self.raw.head()[0])

    def until(self, text):
        return self.raw.until(text.encode()).decode()


@test
def a_stream_of_all_leases_tells_of_those_that_may_be_looked_at():
    streams = [Stream("app"), Stream("app", accept="application/x-ndjson"), Stream("all")]
    for stream, first in zip(streams, (", filtered: true", ',"filtered":true}', ", filtered: false")):
        stream.until(first)
    hidden, mine = WORLD.name("hidden"), WORLD.name("app")
    acquire("all", hidden)
    acquire("all", mine)
    for stream in streams[:2]:
        check(hidden not in stream.until(mine), "it tells of what is hidden")
    check_in(hidden, streams[2].until(mine))
    refused(WORLD.lease("GET", f"/v1/events?lease={hidden}", bearer("app")), 403, "forbidden", lease=hidden)


@test
def an_overview_tells_of_no_lease_that_may_not_be_looked_at_and_counts_none():
    hidden, mine = WORLD.name("hidden"), WORLD.name("app")
    for lease in (hidden, mine):
        acquire("all", lease, ttl_ms=100, lock_delay_ms=600000)
    overview = lambda who: WORLD.lease("GET", "/v1/overview", bearer(who)).json  # noqa: E731
    leases = lambda who: {one["lease"] for one in overview(who)["look"]}  # noqa: E731
    wait_until(lambda: {hidden, mine} <= leases("all"), "who may look at all sees both")
    check_equal({one.partition(":")[0] for one in leases("app")}, {"app"})
    theirs, ours = overview("app"), overview("all")
    check_equal((set(theirs["counts"].values()), theirs["bars"], theirs["filtered"]), ({None}, None, True))
    check_equal([*map(theirs["store"].get, ("top_token", "ceiling", "used_bytes")), theirs["service"]["id"], theirs["service"]["name"]], [None] * 5)
    check_equal([(one["id"], one["name"], one["version"]) for one in theirs["members"]], [(str(place + 1), None, None) for place in range(len(ours["members"]))])
    check(all(len(one["id"]) == 16 and one["name"] and one["version"] for one in ours["members"]) and ours["store"]["top_token"], f"{ours}")
    check_equal((None in ours["counts"].values(), len(ours["bars"]["grants"]), ours["filtered"]), (False, 120, False))
    refused(WORLD.lease("GET", "/v1/overview", bearer("right")), 403, "forbidden", verb="look", lease=None)


@test
def what_a_token_is_worth_is_told_to_those_who_may_look_at_its_lease():
    hidden, uuid = WORLD.name("hidden"), "urn:uuid:01234567-89ab-4cde-8f01-23456789abcd"
    token = acquire("all", hidden)["fencing_token"]
    for client in (WORLD.lease, WORLD.gateway):
        for body in ({"fencing_token": token}, {"instance": uuid, "lease": hidden}):
            check_equal(client("POST", "/v1/tokens/inspect", bearer("all"), body).status, 200)
            refused(client("POST", "/v1/tokens/inspect", bearer("app"), body), 403, "forbidden", verb="look", lease=hidden)


@test
def a_stream_that_is_not_allowed_any_more_ends():
    before = rules({"who": ["right"], "may": ["look"], "on": ["one:*"]})
    reload(before)
    streams = [Stream("app"), Stream("right", "/v1/events?lease=one:1"), Stream("app", "/v1/overview"), Stream("all")]
    less = rules()
    less["rules"] = [rule for rule in less["rules"] if rule["who"] != ["app"]]
    less["rules"][0] = {**less["rules"][0], "on": ["some:*"]}
    reload(less)
    for stream in streams:
        stream.until("event: forbidden")
    reload(rules())
    check_equal(WORLD.lease("GET", "/v1/leases", bearer("app")).status, 200)


@test
def an_overview_that_waits_for_the_store_is_judged_when_it_begins():
    reload(rules({"who": ["right"], "may": ["look"], "on": ["one:*"]}))
    with at_a_relay() as (relay, client, judge_by):
        raws = {who: WORLD.raw(relay.daemon) for who in ("all", "app", "right")}

        def begin(who):
            raws[who].send(f"GET /v1/overview HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer {TOKENS[who]}\r\n\r\n")
        for who in ("all", "app"):
            begin(who)
            check_in(" 200 ", raws[who].head()[0])
        call = relay.hold(TO_REDIS, function_of("overview") + b"\r\n")
        begin("right")
        call.wait_met()
        check_equal([client("GET", "/livez").status for _ in range(3)], [200] * 3)  # it has been read
        less = rules()
        judge_by(less | {"rules": [rule for rule in less["rules"] if rule["who"] != ["app"]]})
        raws["app"].until(b"event: forbidden")  # all that stream are judged
        call.go()
        answer = raws["right"].answer("GET", "/v1/overview")
        refused(answer, 403, "forbidden", identity="right", verb="look", lease=None)


# -- what is forwarded


@test
def what_is_forwarded_is_judged_by_the_lease_of_its_route():
    lease = WORLD.name("orders")
    grant = acquire("all", lease)
    path, key = f"/orders/{lease.partition(':')[2]}/x", {"Fencing-Token": grant["fencing_token"]}
    unauthenticated(WORLD.gateway("PUT", path, key, body=b"x"), "none")
    refused(WORLD.gateway("PUT", path, {**bearer("app"), **key}, body=b"x"), 403, "forbidden", verb="write", lease=lease)
    refused(WORLD.gateway("GET", path, bearer("app")), 403, "forbidden", verb="read", lease=lease)
    count = len(UPSTREAM.requests)
    answer = WORLD.gateway("PUT", path, {**bearer("all"), **key, "Pawl-Identity": "forged", "X-Pawl-Identity": "forged"}, body=b"x")
    check_equal(answer.status, 200, f"{answer}")
    sent = UPSTREAM.requests[count]
    check_equal((sent.header("Pawl-Identity"), sent.header("Authorization")), ("all", None))
    check("forged" not in str(sent.headers), "a caller's own is dropped")


@test
def what_began_before_the_rules_changed_is_judged_by_the_new_ones():
    """Its body is still coming, or it waits behind an older write."""
    lease = WORLD.name("orders")
    may = {"who": ["right"], "may": ["acquire", "write", "read"], "on": ["orders:*", "job:*"]}
    reload(rules(may))
    grant = acquire("right", lease)
    raws = []
    for daemon, method, path, body in ((WORLD.lease_daemon, "POST", f"/v1/leases/{WORLD.name()}", b"{}"), (WORLD.gateway_daemon, "PUT", f"/v1/resources/{lease}/a", b"xx")):
        raw = WORLD.raw(daemon)
        raw.send(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKENS['right']}\r\nContent-Type: application/json\r\n"
                 f"Fencing-Token: {grant['fencing_token']}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:-1])
        raws.append((raw, body))
    go, path = threading.Event(), f"/orders/{lease.partition(':')[2]}/x"

    def act(upstream, request):
        if request.body == b"first":
            check(go.wait(20), "nobody let it go on")
        Upstream.obey(upstream, request)
    UPSTREAM.act = act
    first = Later(WORLD.gateway, "PUT", path, {**bearer("all"), **header(grant)}, body=b"first")
    wait_until(lambda: WORLD.gateway("GET", f"/v1/intents/{lease}", bearer("all")).json["items"], "it is being sent")
    WORLD.lease("POST", f"/v1/leases/{lease}/force-release", bearer("all"))
    grant = acquire("right", lease)
    second = Later(WORLD.gateway, "PUT", path, {**bearer("right"), **header(grant)}, body=b"second")
    wait_until(lambda: [one["state"] for one in WORLD.gateway("GET", f"/v1/intents/{lease}", bearer("all")).json["items"]] == ["sending", "queued"], "it waits")
    reload(rules())
    for raw, body in raws:
        raw.send(body[-1:])
        check_in(" 403 ", raw.head()[0])
        raw.close()
    go.set()
    check_equal(first.get().status, 200)
    refused(second.get(), 403, "forbidden", identity="right", verb="write", lease=lease)
    check(not any(request.body == b"second" for request in UPSTREAM.requests), "it was sent")
    UPSTREAM.act = Upstream.obey


@test
def the_upstreams_credential_is_passed_on_and_pawls_never():
    lease = WORLD.name("orders")
    path, count = f"/theirs/{lease.partition(':')[2]}/x", len(UPSTREAM.requests)
    unauthenticated(WORLD.gateway("GET", path, {"Authorization": "Basic YTpi"}), "none")
    answer = WORLD.gateway("GET", path, {"Authorization": "Basic YTpi", **bearer("all", "Pawl-Authorization")})
    sent = UPSTREAM.requests[count]
    check_equal((answer.status, sent.header("Authorization"), sent.header("Pawl-Authorization"), sent.header("Pawl-Identity")),
                (200, "Basic YTpi", None, "all"))
    answer = WORLD.gateway("GET", path, {**bearer("all"), **bearer("all", "Pawl-Authorization")})
    check_equal((answer.status, answer.code, len(UPSTREAM.requests)), (400, "invalid-request", count + 1))
    twice = [("Authorization", "Basic YTpi"), ("Authorization", f"Bearer {TOKENS['all']}")]
    for headers in (twice, [*twice, ("Pawl-Authorization", f"Bearer {TOKENS['all']}")]):
        check_equal((WORLD.gateway("GET", path, headers).status, len(UPSTREAM.requests)), (400, count + 1))
    token = TOKENS["all"]
    basic = ["Basic " + base64.b64encode(f"{before}{token}{behind}".encode()).decode() for before, behind in ((":", ""), ("a:", ""), ("ab:", ""), ("", ":x"))]
    for sent in (token, f"Token {token}", f'Digest realm="pawl", opaque={token}', *basic, basic[0].lower()[:6] + basic[0][6:]):
        headers = {"Authorization": sent, **bearer("all", "Pawl-Authorization")}
        check_equal((WORLD.gateway("GET", path, headers).status, len(UPSTREAM.requests)), (400, count + 1), sent)


# -- the log


def lines(daemon, event):
    return [line for line in map(json.loads, filter(lambda text: text.startswith("{"), daemon.log().splitlines())) if line["event"] == event]


@test
def deeds_are_always_logged_and_denials_are_summed_up():
    daemon = Daemon("pawl-lease", *WORLD.flags, "--log-level", "error")
    client, lease = WORLD.client(daemon), WORLD.name("app")
    acquire("all", lease)
    check_equal(client("POST", f"/v1/leases/{lease}/force-release", bearer("all"), body={"reason": "it hangs"}).status, 200)
    check_equal(client("POST", f"/v1/leases/%61{lease[1:]}/force-release", bearer("all"), body={"expect_token": 1}).status, 412)
    session = client("POST", "/v1/sessions", bearer("app")).json["session"]
    check_equal(client("POST", f"/v1/sessions/{session}/end", bearer("all"), body={"reason": "gone"}).status, 200)
    for _ in range(25):
        refused(client("POST", f"/v1/leases/{lease}/force-release", bearer("app")), 403, "forbidden")
    for _ in range(12):
        unauthenticated(client("GET", "/v1/leases", {"Authorization": "Bearer " + new_token()}), "unknown")
    refused(client("GET", "/v1/leases/other", bearer("none")), 403, "forbidden")
    check_equal(daemon.end(), 0)
    deeds = [{key: one[key] for key in ("deed", "identity", "lease", "session", "reason", "outcome")} for one in lines(daemon, "deed")]
    done = {"deed": "forceReleaseLease", "identity": "all", "lease": lease, "session": "", "reason": "it hangs", "outcome": "done"}
    ended = {"deed": "forceEndSession", "identity": "all", "lease": "", "session": session, "reason": "gone", "outcome": "done"}
    check_equal(deeds, [done, {**done, "reason": "", "outcome": "token-moved-on"}, ended])
    denied = [(one["identity"], one["verb"], one["lease"], one["why"]) for one in lines(daemon, "denied")]
    check_equal(denied, [("app", "force-release", lease, "forbidden")] * 10 + [("", "look", "", "unknown")] * 10 + [("none", "look", "other", "forbidden")])
    check_equal([(one["caller"], one["more"]) for one in lines(daemon, "denied-more")], [("identity app", 15), ("address 127.0.0.1", 2)])
    check_equal(len({one["instance"] for one in lines(daemon, "denied")}), 21)
    check(not any(secret in daemon.log() for secret in [*TOKENS.values(), "pawl_"]), "a secret is in the log")


@test
def what_is_refused_before_its_caller_is_asked_for_is_logged_as_its_own_address():
    daemon = Daemon("pawl-lease", *WORLD.flags, "--log-level", "debug")
    raw = WORLD.raw(daemon)
    for i, line in enumerate(("X: y", "Origin: http://other.example", "Host: two")):
        raw.send(f"POST /v1/leases/x HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.{i}\r\nContent-Length: 0\r\n{line}\r\n\r\n")
        check_equal(raw.answer("POST", "/v1/leases/x", before_routing=True).status, [401, 403, 400][i])
    check_equal(daemon.end(), 0)
    check_equal([one["peer"] for one in lines(daemon, "request")], ["192.0.2.0", "192.0.2.1", "127.0.0.1"])


@test
def more_callers_than_are_told_apart_are_summed_up():
    daemon = Daemon("pawl-lease", *WORLD.flags)
    client = WORLD.client(daemon)
    for number in range(400):
        client("GET", "/v1/leases", {"X-Forwarded-For": f"10.1.{number // 200}.{number % 200}"})
    for _ in range(12):
        refused(client("GET", "/v1/leases/other", bearer("none")), 403, "forbidden")
    check_equal(daemon.end(), 0)
    check_equal(len(lines(daemon, "denied")), 275)
    check_equal([(one["caller"], one["more"]) for one in lines(daemon, "denied-more")], [("identity none", 2), ("", 135)])


@test
def of_ipv6_a_whole_64_is_one_caller_and_who_comes_over_a_unix_socket_has_no_address():
    path = os.path.join(FOLDER, "denied.sock")
    daemon = Daemon("pawl-lease", *WORLD.flags, "--listen-unix", path)
    client = WORLD.client(daemon)
    for number in range(12):
        client("GET", "/v1/leases", {"X-Forwarded-For": f"2001:db8:1:2:{number:x}::1"})
    client("GET", "/v1/leases", {"X-Forwarded-For": "2001:db8:1:3::1"})
    for _ in range(15):
        check_equal(over_socket("GET", "/v1/leases", "Authorization: Bearer " + new_token(), path=path)[0], 401)
    check_equal(over_socket("POST", f"/v1/leases/{WORLD.name('other')}", path=path)[0], 403)
    check_equal(daemon.end(), 0)
    wanted = [f"2001:db8:1:2:{number:x}::1".replace(":0::", "::") for number in range(10)] + ["2001:db8:1:3::1"] + [""] * 10
    check_equal([(one["identity"], one["peer"]) for one in lines(daemon, "denied")], [("", peer) for peer in wanted] + [("socket", "")])
    check_equal(sorted((one["caller"], one["more"]) for one in lines(daemon, "denied-more")), [("address ", 5), ("address 2001:db8:1:2::/64", 2)])


LOGS_TO_64_KIB = 'mount -t tmpfs -o size=64k tmpfs "$0" && head -c 32768 /dev/zero > "$0/other" && exec "$@" 2>> "$0/log"'


@test
def denials_that_fill_the_disk_of_the_log_hold_nobody_up_and_are_summed_up_when_there_is_room():
    place, port = pathlib.Path(tempfile.mkdtemp(dir=FOLDER)), own_port()
    alone = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    process = subprocess.Popen([*alone, "sh", "-c", LOGS_TO_64_KIB, str(place), str(BUILD / "pawl-lease"), *WORLD.flags[:4], "--listen", f"127.0.0.1:{port}", *WORLD.flags[6:]],
                               env={**os.environ, "STATE_DIRECTORY": str(place) + "-state"}, preexec_fn=die_with_parent)
    seen, client = pathlib.Path(f"/proc/{process.pid}/root{place}"), Client("lease", f"http://127.0.0.1:{port}", WORLD.contract)
    wait_until(lambda: not socket.socket().connect_ex(("127.0.0.1", port)) and client.is_ready(), "it is ready")
    addresses = itertools.count(1)

    def good_ms(denied=1000):
        """The median of a good request after each of so many that are refused, of an identity and of an address by turns."""
        took = []
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as one:
            def ask(headers):
                begun = time.perf_counter()
                one.request("GET", "/v1/access?lease=none:1", headers=headers)
                one.getresponse().read()
                return time.perf_counter() - begun
            for number in range(denied):
                ask({"X-Forwarded-For": f"10.2.{number // 250}.{next(addresses) % 250}"})
                took.append(ask(bearer("app")))
        return statistics.median(took) * 1e3
    before, size = good_ms(100), (seen / "log").stat().st_size
    check(size < 32768, "there is room yet")
    for _ in range(300):
        refused(client("GET", "/v1/leases/none:1", bearer("app")), 403, "forbidden")
    good_ms()
    wait_until(lambda: os.statvfs(seen).f_bfree == 0, "the disk is full")
    kib = memory_kib(process)
    keeps_within(2 * before, good_ms, "a good request on a full disk")
    check(SANITIZED or memory_kib(process) < kib + 512, "its memory grows")  # what is freed is kept for a while
    (seen / "other").unlink()
    log = os.open(seen / "log", os.O_RDONLY)
    process.terminate()
    check_equal(process.wait(20), 0)
    with open(log, encoding="utf-8") as file:
        text = file.read()
    said = [line for line in text.splitlines() if line.startswith("{")]
    check_equal([line for line in said if line.count('{"time"') != 1], [], "a line goes on behind one that was cut")
    more = {told["caller"]: told["more"] for told in map(json.loads, filter(lambda line: '"denied-more"' in line, said))}
    check_equal(more.get("identity app"), 290, text[-600:])
    check(more.get("", 0) > 1000, f"{more}")


# -- SIGHUP, start


@test
def a_file_that_is_wrong_is_refused_whole_and_the_one_of_before_stays():
    for wrong, place in (("{", "line 1"), (json.dumps({**rules(), "extra": 1}), "extra"),
                         (json.dumps(rules({"who": ["nobody"], "may": ["look"], "on": ["orders*"]})), "rules[3].on[0]")):
        write_private(FILE, wrong)
        for daemon in DAEMONS:
            begin = len(daemon.lines)
            daemon.send(signal.SIGHUP)
            line = daemon.line(lambda line: "access-refused" in line, "that it was refused", begin)
            check_in(place, line)
        check_equal(WORLD.lease("GET", "/v1/leases/app:1", bearer("app")).status, 200)
        check_in("access", WORLD.lease("GET", "/readyz", bearer("all")).json["checks"])
    reload(rules())
    check("access" not in WORLD.lease("GET", "/readyz", bearer("all")).json["checks"], "it lacks nothing any more")


@test
def a_place_that_is_kept_goes_with_the_right_to_the_lease():
    lease, only = WORLD.name(), {"who": ["app", "other"], "may": ["acquire"], "on": ["job:*"]}
    reload(rules(only))
    held = acquire("all", lease)
    for who in ("app", "other", *["app"] * 257):  # one more than leave at once
        asked = {"lease_id": secrets.token_hex(16), "wait_ms": 1, "keep_place_ms": 60000}
        answer = WORLD.lease("POST", f"/v1/leases/{lease}", bearer(who), body=asked)
        check_equal(answer.json.get("place_kept_ms"), 60000, f"{answer}")
    waits = Later(WORLD.lease, "POST", f"/v1/leases/{lease}", bearer("all"), body={"wait_ms": 20000})

    def waiting():
        return WORLD.lease("GET", f"/v1/leases/{lease}", bearer("all")).json["waiting"]

    wait_until(lambda: waiting() == 260, "they stand in line")
    reload(rules({**only, "who": ["other"]}))
    wait_until(lambda: waiting() == 2, "app is out of it")
    reload(rules())
    wait_until(lambda: waiting() == 1, "nobody stands in front of it")
    check_equal(WORLD.lease("DELETE", f"/v1/leases/{lease}", {**bearer("all"), "Lease-Id": held["lease_id"]}).status, 204)
    check_equal(waits.get().status, 201)


@test
def the_details_of_readiness_are_for_who_may_observe():
    check_equal(WORLD.lease("GET", "/readyz").json, {"status": "ready"})
    check_in("store_memory", WORLD.lease("GET", "/readyz", bearer("all")).json)


@test
def a_service_does_not_start_with_a_file_that_is_wrong_or_with_everybody_allowed():
    flags = ["--redis", WORLD.redis.url, "--keys", WORLD.keys_file, "--listen", "127.0.0.1:0"]
    wrong = pathlib.Path(FOLDER, "wrong.json")
    write_private(wrong, {"identities": {}, "rules": [{"who": ["ghost"], "may": ["look"], "on": ["*"]}]})
    done = run_daemon("pawl-lease", *flags, "--access", str(wrong))
    check_equal(done.returncode, 78)
    check_in("rules[0].who[0]", done.stderr)
    done = run_daemon("pawl-gateway", *flags, "--access", str(FILE), "--allow-anonymous")
    check_equal(done.returncode, 78)
    wrong.chmod(0o666)
    for flag in ("--access", "--redis-password-file", "--sentinel-password-file"):
        done = run_daemon("pawl-lease", "--redis", "sentinel://127.0.0.1/main", *flags[2:], flag, str(wrong))
        check_equal(done.returncode, 78)
        check_in("can change it", done.stderr)


@test_in(World)
def a_service_without_access_does_not_serve_a_store_that_one_with_it_has_used(world):
    flags = world.flags
    for name_ in ("pawl-lease", "pawl-gateway"):
        check_equal(run_daemon_until_ready(name_, *flags), 0)  # nobody with --access has used it
    judging = Daemon("pawl-lease", *flags, "--access", str(FILE), environment={"STATE_DIRECTORY": os.path.join(FOLDER, "first")})
    wait_until(lambda: world.redis("HGET", "pawl:{store}", "access") == b"1", "the store knows")
    for client in (world.lease, world.gateway):
        wait_until(lambda: client("GET", "/readyz", held=False).status == 503, "it stops")  # pylint: disable=cell-var-from-loop
        check_in("--access", client("GET", "/readyz", held=False).json["detail"])
    refused_503 = world.lease("POST", f"/v1/leases/{world.name()}")
    check_equal((refused_503.status, refused_503.code), (503, "store-not-ours"))
    for name_ in ("pawl-lease", "pawl-gateway"):
        done = run_daemon(name_, *flags)
        check_equal(done.returncode, 78, done.stderr)
        check_in("--access", done.stderr)
    check_equal(run_daemon_until_ready("pawl-lease", *flags, "--allow-anonymous"), 0)
    state = os.path.join(FOLDER, "judging")
    again = Daemon("pawl-lease", *flags, "--access", str(FILE), environment={"STATE_DIRECTORY": state})
    wait_until(lambda: os.path.exists(os.path.join(state, "access")), "it has noted it")
    check_equal((again.end(), judging.end()), (0, 0))
    world.redis("HDEL", "pawl:{store}", "access")  # as after a loss; what has judged remembers it itself
    check_equal(run_daemon_until_ready("pawl-lease", *flags), 0)
    done = run_daemon("pawl-lease", *flags, environment={"STATE_DIRECTORY": state})
    check_equal(done.returncode, 78, done.stderr)
    check_in("--access", done.stderr)


main(WORLD.close)
