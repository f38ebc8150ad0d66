#!/usr/bin/python3
"""How much a caller may use, with --access: the limits of the access file, what is never held up, and the order of refusals."""

import concurrent.futures
import contextlib
import os
import pathlib
import secrets
import subprocess
import tempfile
import time

from world import World, check, check_equal, main, of_time, test, test_in, wait_until
from world.access import identities, new_token, reloaded, write_private
from world.asking import Later
from world.asking import path as lease_path
from world.client import Client
from world.jwt import Key, b64, jwt
from world.redis import Connection

FOLDER = pathlib.Path(tempfile.mkdtemp(dir=os.environ["TMPDIR"]))
FILE, JWKS = FOLDER / "access.json", FOLDER / "jwks.json"
VERBS = ["acquire", "look", "force-release", "read", "write-own", "write", "check", "resolve", "session", "observe", "operate"]
PROXY = "127.0.0.1"


LIMITS = {"slow": {"requests_per_s": 10}, "holder": {"held": 3}, "sharer": {"held": 3}, "several": {"held": 3}, "liner": {"held": 2},
          "waiter": {"waiting": 2}, "keeper": {"waiting": 1}, "stayer": {"waiting": 1}, "opener": {"sessions": 2}, "streamer": {"streams": 2}, "writer": {"stored_bytes": 1000}, "storer": {"stored_bytes": 1000}}
WHO = ["free", "other", *LIMITS]
TOKENS = {name: new_token() for name in WHO}
KEY = Key(FOLDER, "EdDSA", "1", "-algorithm", "ed25519")
write_private(JWKS, {"keys": [KEY.jwk()]})
RULES = {
    "identities": identities(TOKENS) | {"pod": {"subjects": {"k8s": ["pod"]}}},
    "issuers": {"k8s": {"iss": "https://k8s.example", "aud": "pawl", "jwks": str(JWKS), "algs": ["EdDSA"]}},
    "rules": [{"who": ["known"], "may": VERBS, "on": ["*"]}]}
write_private(FILE, RULES | {"limits": LIMITS})
SOCKET = str(FOLDER / "lease.sock")
WORLD = World("--access", str(FILE), "--trusted-proxy", PROXY, "--threads", "2", lease_flags=["--listen-unix", SOCKET])
FRESH = Client("lease", WORLD.lease_daemon.url, World.contract, fresh=True)


def of_pod(**more):
    return jwt(KEY, **{"sub": "pod", **more})


def bearer(token):
    return {"Authorization": f"Bearer {TOKENS.get(token, token)}"}


def rate_limited(answer, policy):
    check_equal((answer.status, answer.code, answer.json["retryable"]), (429, "rate-limited", True), f"{answer}")
    check_equal([answer.header(field) for field in ("Retry-After", "RateLimit-Policy", "RateLimit")],
                ["1", f'"{policy[0]}";q={policy[1]};w=1', f'"{policy[0]}";r=0;t=1'])


def until_limited(ask, policy, at_once=1):
    """What was answered until it was 429, and how many seconds that took."""
    begun, answers, limited = time.monotonic(), [], []
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        while not limited:
            for answer in pool.map(lambda _: ask(), range(at_once)):
                (limited if answer.status == 429 else answers).append(answer)
            check(time.monotonic() - begun < 20, "it is never limited")
    rate_limited(limited[0], policy)
    return answers, time.monotonic() - begun


def taken(ask):
    """Its answer, when it is not limited any more."""
    begun = time.monotonic()
    while (answer := ask()).status == 429:
        check(time.monotonic() - begun < 20, f"{answer}")
    return answer


# -- requests_per_s

SLOW = ("requests", 10)
JSON = {"Content-Type": "application/json"}


def slow_is_limited():
    return until_limited(lambda: FRESH("GET", lease_path("job:x"), bearer("slow")), SLOW, 4)


@test
def so_many_requests_a_second_are_taken_by_all_threads_together():
    answers, took = slow_is_limited()
    check(10 <= len(answers) <= 10 + 10 * took + 1, f"{len(answers)} in {took} s")
    check_equal({answer.status for answer in answers}, {200})
    check_equal(FRESH("GET", lease_path("job:x"), bearer("free")).status, 200, "each identity by itself")
    check_equal(taken(lambda: FRESH("GET", lease_path("job:x"), bearer("slow"))).status, 200)


@test
def each_instance_counts_by_itself():
    client = WORLD.another("pawl-lease")
    slow_is_limited()
    check_equal([client("GET", lease_path("job:x"), bearer("slow")).status for _ in range(10)], [200] * 10)


@test
def what_keeps_and_gives_back_is_never_held_up():
    held, gone = (taken(lambda: WORLD.lease("POST", lease_path(WORLD.name()), bearer("slow"), body={})).json for _ in range(2))
    session = taken(lambda: WORLD.lease("POST", "/v1/sessions", bearer("slow"), body={})).json
    secret = {**bearer("slow"), "Session-Secret": session["session_secret"]}
    slow_is_limited()
    for _ in range(20):
        check_equal(FRESH("PUT", lease_path(held["lease"]), {**bearer("slow"), "Lease-Id": held["lease_id"]}).status, 200)
        check_equal(FRESH("PUT", f"/v1/sessions/{session['session']}", secret).status, 200)
    slow_is_limited()
    check_equal(FRESH("DELETE", lease_path(gone["lease"]), {**bearer("slow"), "Lease-Id": gone["lease_id"]}).status, 204)
    check_equal(FRESH("DELETE", f"/v1/sessions/{session['session']}", secret).status, 204)
    check_equal(FRESH("GET", "/readyz", bearer("slow")).status, 200)
    until_limited(lambda: WORLD.gateway("GET", "/v1/intents/job:1", bearer("slow")), SLOW)
    for _ in range(20):
        answer = WORLD.gateway("POST", "/v1/intents/job:1/resolve?as=applied", bearer("slow"))
        check(answer.status != 429, f"{answer}")


@test
def what_is_open_to_all_is_so_for_who_shows_a_credential_too():
    slow_is_limited()
    for _ in range(4):
        for path in ("/", "/version", "/openapi.json", "/problems/forbidden", "/ui/", "/ui/app.js"):
            answer = FRESH("GET", path, bearer("slow"))
            check_equal(answer.status, 200, f"{path}: {answer}")


@test
def it_comes_after_401_and_before_everything_else():
    for status, *asked in ((404, "GET", "/v1/nothing", bearer("slow")), (405, "PATCH", lease_path("x"), bearer("slow")),
                           (400, "GET", lease_path("%00"), bearer("slow")), (400, "POST", lease_path("a"), {**bearer("slow"), **JSON}, b"{")):
        answers, _ = until_limited(lambda: FRESH(*asked), SLOW, 4)  # pylint: disable=cell-var-from-loop
        check({answer.status for answer in answers} <= {status}, f"{answers}")
    check_equal(FRESH("GET", lease_path("job:x"), bearer(new_token())).status, 401)


# -- failures

FAILURES = ("failures", 20)


def behind(address):
    return {"X-Forwarded-For": address}


def failing_at(address, shown=None):
    return until_limited(lambda: WORLD.lease("GET", lease_path("job:x"), {**(bearer(new_token()) if shown is None else shown), **behind(address)}), FAILURES)


def still_limited(ask, address, shown=None):
    """The answer while what fails from this address is 429: asked again if its second was over."""
    while True:
        failing_at(address, shown)
        answer = ask()
        if WORLD.lease("GET", lease_path("job:x"), behind(address)).status == 429:
            return answer


@test
def what_fails_too_often_from_one_address_is_429_and_nobody_else_is_held_up():
    answers, took = failing_at("192.0.2.1")
    check(20 <= len(answers) <= 20 * (took + 2), f"{len(answers)} in {took} s")
    check_equal({answer.code for answer in answers}, {"unauthenticated"})
    answer = still_limited(lambda: WORLD.lease("GET", lease_path("job:x"), {**bearer("free"), **behind("192.0.2.1")}), "192.0.2.1")
    check_equal(answer.status, 200, "who is known goes on")
    check_equal(WORLD.lease("GET", lease_path("job:x"), behind("192.0.2.2")).status, 401, "another address")
    wait_until(lambda: WORLD.lease("GET", lease_path("job:x"), behind("192.0.2.1")).status == 401, "it is over")
    failing_at("2001:db8:1:2::1")
    answer = still_limited(lambda: WORLD.lease("GET", lease_path("job:x"), behind("2001:db8:1:2:ffff::9")), "2001:db8:1:2::1")
    rate_limited(answer, FAILURES)
    check_equal(WORLD.lease("GET", lease_path("job:x"), behind("2001:db8:1:3::1")).status, 401, "a client of IPv6 has a whole /64")


def over_socket(count, *before):
    """The statuses of so many that are refused."""
    words = ["curl", "-sS", "-w", "%{http_code} ", "--unix-socket", SOCKET, "-H", "Authorization: Bearer x"]
    more = [word for _ in range(count) for word in ("-o", "/dev/null", "http://localhost/v1/access")]
    return subprocess.run([*before, *words, *more], capture_output=True, text=True, timeout=20, check=True).stdout.split()


@test
def who_asks_over_a_unix_socket_is_one_for_each_uid():
    root = ["sudo", "-n"] if os.geteuid() else []
    for uid in (65533, 65533, 65534):  # a second may be over in between
        other = [*root, "setpriv", f"--reuid={uid}", "--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
        check_equal(over_socket(60, *other)[-1], "429")
        check_equal(over_socket(1), ["401"], "another uid")


@test
def a_jwt_that_was_not_seen_before_is_not_verified_then():
    def asked(token, address):
        return WORLD.lease("GET", lease_path("job:x"), {**bearer(token), **behind(address)})

    known, fresh = of_pod(), of_pod(jti="fresh")
    check_equal(asked(known, "192.0.2.3").status, 200)
    for index, vain in enumerate((known[:-8] + "AAAAAAAA", of_pod(aud="other"), of_pod(sub="nobody"))):
        address = f"192.0.3.{index}"
        check_equal({answer.code for answer in failing_at(address, bearer(vain))[0]}, {"unauthenticated"})
        rate_limited(still_limited(lambda: asked(fresh, address), address, bearer(vain)), FAILURES)  # pylint: disable=cell-var-from-loop
        check_equal(still_limited(lambda: asked(known, address), address, bearer(vain)).status, 200)  # pylint: disable=cell-var-from-loop
        for path in ("/livez", "/readyz"):
            shown = {**bearer(of_pod(jti=f"{path}{index}")), **behind(address)}
            answer = still_limited(lambda: WORLD.lease("GET", path, shown), address, bearer(vain))  # pylint: disable=cell-var-from-loop
            check_equal(answer.status, 200, f"{path} is open to all: {answer}")
    for index, cheap in enumerate(({}, None, bearer("x"), bearer("a.b.c"))):  # no signature was verified
        answer = still_limited(lambda: asked(of_pod(jti=f"{index}"), "192.0.2.5"), "192.0.2.5", cheap)  # pylint: disable=cell-var-from-loop
        check_equal(answer.status, 200, f"{cheap}")
    check_equal(WORLD.lease("GET", lease_path("job:x"), {**bearer(fresh), **behind("192.0.2.4")}).status, 200, "it was good all the time")


# -- quotas


def over(answer, quota, limit, used=None):
    check_equal((answer.status, answer.code, answer.json["retryable"]), (429, "quota-exceeded", True), f"{answer}")
    check_equal((answer.json["quota"], answer.json["limit"]), (quota, limit), f"{answer}")
    check(answer.json["used"] >= limit if used is None else answer.json["used"] == used, f"{answer}")
    check_equal(answer.header("RateLimit"), None)


def until_over(ask, most_s=10):
    """The first answer that is quota-exceeded: what is granted before is counted within 3 s, on a machine with nothing else."""
    return wait_until(lambda: (answer := ask()).status == 429 and answer, "it is over", most_s)


def acquire(who, lease=None, status=201, client=None, **asked):
    answer = (client or WORLD.lease)("POST", lease_path(lease or WORLD.name()), bearer(who), body=asked)
    check_equal(answer.status, status, f"{answer}")
    return answer.json


def release(who, grant, client=None):
    check_equal((client or WORLD.lease)("DELETE", lease_path(grant["lease"]), {**bearer(who), "Lease-Id": grant["lease_id"]}).status, 204)


def until_full(who, limit, client=None, lease=None, most_s=10, **asked):
    """Nothing is left: what is granted meanwhile is given back."""
    def ask():
        answer = (client or WORLD.lease)("POST", lease_path(lease or WORLD.name()), bearer(who), body=asked)
        if answer.status == 201:
            release(who, answer.json, client)
        return answer
    over(until_over(ask, most_s), "held", limit)


def lease_id():
    return b64(secrets.token_bytes(18))


@test
def so_much_may_be_held_in_the_whole_store_and_what_is_held_is_kept():
    other = WORLD.another("pawl-lease")
    theirs, mine = acquire("free"), lease_id()
    held, over_already = [acquire("holder", lease_id=mine), acquire("holder")], acquire("holder")
    release("holder", over_already)
    held.append(acquire("holder"))
    for client in (WORLD.lease, other):
        until_full("holder", 3, client)
    first = held[0]
    check_equal(acquire("holder", first["lease"], 200, lease_id=mine)["token"], first["token"], "a replay")
    check_equal(acquire("holder", first["lease"], 200, lease_id=mine, reentrant=True)["holds"], 2, "it is entered again")
    check_equal(WORLD.lease("PUT", lease_path(first["lease"]), {**bearer("holder"), "Lease-Id": mine}).status, 200)
    refusals = (("lease-held", theirs["lease"], {}), ("hold-over", over_already["lease"], {"lease_id": over_already["lease_id"]}),
                ("out-of-range", WORLD.name(), {"ttl_ms": 1}), ("quota-exceeded", theirs["lease"], {"wait_ms": 1000}), ("quota-exceeded", WORLD.name(), {"mode": "shared"}))
    for code, lease, asked in refusals:
        check_equal(WORLD.lease("POST", lease_path(lease), bearer("holder"), body=asked).code, code, f"{lease} {asked}")
    acquire("free", WORLD.name())
    for one in held:
        for _ in range(2 if one is first else 1):
            WORLD.lease("DELETE", lease_path(one["lease"]), {**bearer("holder"), "Lease-Id": one["lease_id"]})
    wait_until(lambda: WORLD.lease("POST", lease_path("again"), bearer("holder"), body={}).status == 201, "there is room again")


@test
def each_of_many_holds_and_each_of_several_leases_counts():
    lease = WORLD.name()
    for _ in range(3):
        acquire("sharer", lease, mode="shared")
    until_full("sharer", 3, lease=lease, mode="shared")
    names = [WORLD.name() for _ in range(2)]
    check_equal(WORLD.lease("POST", "/v1/leases", bearer("several"), body={"names": names}).status, 201)
    wait_until(lambda: WORLD.lease("POST", "/v1/leases", bearer("several"), body={"names": [WORLD.name() for _ in range(2)], "ttl_ms": 100}).status == 429, "two are one too many")
    wait_until(lambda: WORLD.lease("POST", "/v1/leases", bearer("several"), body={"names": [WORLD.name()], "ttl_ms": 100}).status == 201, "one is not")


@test
@of_time
def who_stands_in_line_is_served_though_that_passes_held():
    theirs = acquire("free")
    waiting = Later(WORLD.client(WORLD.lease_daemon), "POST", lease_path(theirs["lease"]), bearer("liner"), body={"wait_ms": 60000})
    wait_until(lambda: WORLD.lease("GET", lease_path(theirs["lease"]), bearer("free")).json["waiting"] == 1, "it waits")
    own = [acquire("liner") for _ in range(2)]
    until_full("liner", 2)
    release("free", theirs)
    told = waiting.get()
    for one in own:
        release("liner", one)
    if told.status == 201:
        release("liner", told.json)
    check_equal(told.status, 201)


def wait_for(who, lease, **asked):
    client = WORLD.client(WORLD.lease_daemon)
    return Later(client, "POST", lease_path(lease), bearer(who), body={"wait_ms": 60000, **asked})


def is_waiting(lease, count):
    wait_until(lambda: WORLD.lease("GET", lease_path(lease), bearer("free")).json["waiting"] == count, f"{count} wait")


@test
def so_many_wait_here_and_the_next_is_refused_unless_it_is_free_or_its_own_place():
    leases, ids = [acquire("free") for _ in range(3)], [lease_id() for _ in range(3)]
    calls = []
    for i in range(2):
        calls.append(wait_for("waiter", leases[i]["lease"], lease_id=ids[i]))
        is_waiting(leases[i]["lease"], 1)
    refused = WORLD.lease("POST", lease_path(leases[2]["lease"]), bearer("waiter"), body={"wait_ms": 60000, "lease_id": ids[2]})
    over(refused, "waiting", 2, 2)
    is_waiting(leases[2]["lease"], 0)
    check_equal(WORLD.lease("POST", lease_path(WORLD.name()), bearer("waiter"), body={"wait_ms": 60000}).status, 201, "what is free")
    check_equal(WORLD.lease("POST", lease_path(leases[2]["lease"]), bearer("waiter"), body={}).code, "lease-held")
    again = wait_for("waiter", leases[0]["lease"], lease_id=ids[0])
    check_equal(calls[0].get().code, "superseded", "its own place")
    # The place of before is given back a moment before the new one is counted.
    over(until_over(lambda: WORLD.lease("POST", lease_path(leases[2]["lease"]), bearer("waiter"), body={"wait_ms": 1})), "waiting", 2, 2)
    release("free", leases[0])
    check_equal(again.get().status, 201)
    third = wait_for("waiter", leases[2]["lease"])
    is_waiting(leases[2]["lease"], 1)
    for i, call in ((1, calls[1]), (2, third)):
        release("free", leases[i])
        check_equal(call.get().status, 201)


@test
@of_time
def a_place_that_outlives_its_connection_counts_and_not_twice():
    theirs, other, mine = acquire("free"), acquire("free"), lease_id()
    asked, elsewhere = {"lease_id": mine, "wait_ms": 50, "keep_place_ms": 3000}, {"wait_ms": 50}

    def wait_no_place():
        wait_until(lambda: WORLD.lease("POST", lease_path(other["lease"]), bearer("keeper"), body=elsewhere).code == "wait-timeout", "it is kept no more")
    wait_no_place()  # of a try before
    for _ in range(3):
        answer = WORLD.lease("POST", lease_path(theirs["lease"]), bearer("keeper"), body=asked)
        check_equal((answer.code, answer.json["place_kept_ms"]), ("wait-timeout", 3000))
    for body in (elsewhere, asked):  # a lease_id of its place in another line is none here
        over(WORLD.lease("POST", lease_path(other["lease"]), bearer("keeper"), body=body), "waiting", 1, 1)
    wait_no_place()


@test
def a_place_that_is_kept_counts_on_when_its_lease_id_is_refused():
    theirs, other = acquire("free"), acquire("free")
    asked, elsewhere = {"lease_id": lease_id(), "wait_ms": 50, "keep_place_ms": 60000}, {"wait_ms": 50}
    check_equal(WORLD.lease("POST", lease_path(theirs["lease"]), bearer("stayer"), body=asked).code, "wait-timeout")
    nobodys = {**bearer("stayer"), "Session-Secret": "s" * 22}
    check_equal(WORLD.lease("POST", lease_path(theirs["lease"]), nobodys, body=asked | {"session": "s" * 22}).code, "session-lost")
    check_equal(WORLD.lease("GET", lease_path(theirs["lease"]), bearer("stayer")).json["waiting"], 1)
    over(WORLD.lease("POST", lease_path(other["lease"]), bearer("stayer"), body=elsewhere), "waiting", 1, 1)
    WORLD.lease("DELETE", lease_path(theirs["lease"]), bearer("free") | {"Lease-Id": theirs["lease_id"]})
    granted = WORLD.lease("POST", lease_path(theirs["lease"]), bearer("stayer"), body=asked)
    check_equal(granted.status, 201, f"{granted}")
    check_equal(WORLD.lease("POST", lease_path(other["lease"]), bearer("stayer"), body=elsewhere).code, "wait-timeout")


@test
def so_many_sessions_may_be_open():
    sessions = [WORLD.lease("POST", "/v1/sessions", bearer("opener"), body={}) for _ in range(2)]
    check_equal([answer.status for answer in sessions], [201, 201])
    over(until_over(lambda: WORLD.lease("POST", "/v1/sessions", bearer("opener"), body={"ttl_ms": 2000})), "sessions", 2)
    one = sessions[0].json
    secret = {**bearer("opener"), "Session-Secret": one["session_secret"]}
    check_equal(WORLD.lease("PUT", f"/v1/sessions/{one['session']}", secret).status, 200)
    check_equal(WORLD.lease("POST", "/v1/sessions", bearer("opener"), body={"ttl_ms": 1}).code, "out-of-range")
    check_equal(WORLD.lease("DELETE", f"/v1/sessions/{one['session']}", secret).status, 204)
    wait_until(lambda: WORLD.lease("POST", "/v1/sessions", bearer("opener"), body={}).status == 201, "there is room again, also of what expired")


def stream(who):
    raw = WORLD.raw()
    raw.send(f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKENS[who]}\r\n\r\n")
    return raw, raw.head()[0].split(" ")[1]


@test
def so_many_streams_are_open_here():
    streams = [stream("streamer") for _ in range(2)]
    check_equal([status for _, status in streams], ["200", "200"])
    over(WORLD.lease("GET", "/v1/events", bearer("streamer")), "streams", 2, 2)
    check_equal(WORLD.lease("GET", "/v1/events?lease=%00", bearer("streamer")).status, 400, "a quota comes last")
    check_equal(stream("free")[1], "200")
    streams[0][0].close()
    wait_until(lambda: stream("streamer")[1] == "200", "there is room again")


@test
def so_many_bytes_are_stored_of_who_wrote_last():
    lease = acquire("writer")
    header = {**bearer("writer"), "Fencing-Token": lease["fencing_token"]}
    path = f"/v1/resources/{lease['lease']}"

    def put(key, size, headers=None, first=False):
        if first:
            WORLD.gateway("DELETE", f"{path}/{key}", header)
        return WORLD.gateway("PUT", f"{path}/{key}", headers or header, body=b"x" * size)
    check_equal(put("a", 600).status, 201)
    check_equal(put("b", 300).status, 201)
    full = until_over(lambda: put("c", 101, first=True))
    over(full, "stored_bytes", 1000, full.json["used"])
    check(900 <= full.json["used"] <= 1001, f"{full}")
    check("verdict=refused; reason=quota-exceeded" in full.header("Fencing-Status"), f"{full}")
    check_equal(WORLD.gateway("GET", f"{path}/c", header).status, 404)
    wait_until(lambda: put("a", 700).status == 204, "as much as there is room")
    check_equal([put("a", 599).status, put("b", 100).status], [204, 204], "or less")
    check_equal(put("a", 600, {**header, "If-None-Match": "*"}).code, "etag-mismatch", "a quota comes last")
    wait_until(lambda: put("c", 300).status == 201, "what was taken back is room again")
    until_over(lambda: put("d", 400, first=True))
    theirs = {**bearer("free"), "Fencing-Token": lease["fencing_token"]}
    check_equal(put("a", 599, theirs).status, 204, "now it is another's")
    wait_until(lambda: put("d", 400).status == 201, "and not its own any more")
    until_over(lambda: put("e", 400, first=True))
    check_equal(WORLD.gateway("DELETE", f"{path}/d", header).status, 204)
    wait_until(lambda: put("e", 400).status == 201, "nor what was deleted")


@test
def what_one_gateway_stored_counts_at_the_other():
    other = WORLD.another("pawl-gateway")
    lease = acquire("storer")
    header = {**bearer("storer"), "Fencing-Token": lease["fencing_token"]}

    def put(client, key, size):
        client("DELETE", f"/v1/resources/{lease['lease']}/{key}", header)
        return client("PUT", f"/v1/resources/{lease['lease']}/{key}", header, body=b"x" * size)
    check_equal([put(WORLD.gateway, "a", 500).status, put(other, "b", 400).status], [201, 201])
    for client in (WORLD.gateway, other):
        full = until_over(lambda: put(client, "c", 101))  # pylint: disable=cell-var-from-loop
        check_equal((full.json["quota"], 900 <= full.json["used"] <= 1001), ("stored_bytes", True), f"{full}")
    wait_until(lambda: put(other, "a", 10).status == 201, "there is room")
    wait_until(lambda: put(WORLD.gateway, "c", 500).status == 201, "there too")


@test
@of_time
def what_began_before_anybody_had_a_quota_counts_within_3_s():
    file = FOLDER / "later.json"
    write_private(file, RULES)
    with contextlib.closing(World("--access", str(file))) as world:
        lease = [acquire("holder", client=world.lease) for _ in range(3)][0]
        header = {**bearer("writer"), "Fencing-Token": lease["fencing_token"]}

        def put(key, size):
            world.gateway("DELETE", f"/v1/resources/{lease['lease']}/{key}", header)
            return world.gateway("PUT", f"/v1/resources/{lease['lease']}/{key}", header, body=b"x" * size)
        check_equal(put("a", 900).status, 201)
        check_equal(world.redis("KEYS", "pawl:*:o"), [])
        write_private(file, RULES | {"limits": LIMITS})
        for daemon in (world.lease_daemon, world.gateway_daemon):
            check("access-loaded" in reloaded(daemon))
        until_full("holder", 3, world.lease)
        full = until_over(lambda: put("b", 101), 3)
        check_equal((full.json["quota"], 900 <= full.json["used"] <= 1001), ("stored_bytes", True), f"{full}")


@test
def what_began_while_nobody_had_a_quota_any_more_counts_too():
    file = FOLDER / "again.json"
    write_private(file, RULES | {"limits": LIMITS})
    with contextlib.closing(World("--access", str(file))) as world:
        def counted():
            return sum(int(world.redis("HGET", key, "hholder") or 0) for key in world.redis("KEYS", "pawl:*:o"))
        for _ in range(3):
            acquire("holder", client=world.lease)
        wait_until(lambda: counted() == 3, "all are counted")
        write_private(file, RULES)
        check("access-loaded" in reloaded(world.lease_daemon))
        wait_until(lambda: world.lease("POST", lease_path(WORLD.name()), bearer("holder"), held=False).status == 201, "nobody looks any more")
        world.redis("FUNCTION", "FLUSH")  # as a minute would, it forgets that somebody has looked
        acquire("holder", client=world.lease)
        check(counted() < 5, "nobody counts")
        write_private(file, RULES | {"limits": LIMITS})
        check("access-loaded" in reloaded(world.lease_daemon))
        wait_until(lambda: counted() == 5, "it is counted, too")


@test_in(lambda: World("--access", str(FILE)))
@of_time
def what_a_loss_has_ended_is_room_again_within_3_s(world):
    for _ in range(3):
        acquire("holder", client=world.lease)
    until_full("holder", 3, world.lease)
    before = world.lease_daemon.log().count("store-admitted")
    world.redis("DEL", "pawl:{07}")
    wait_until(lambda: world.lease_daemon.log().count("store-admitted") > before, "all holds have ended")
    ask = lambda: world.lease("POST", lease_path(WORLD.name()), bearer("holder"), held=False)  # noqa: E731
    for _ in range(3):
        wait_until(lambda: ask().status == 201, "there is room, though nobody has looked at what was held", 3)


@test_in(lambda: World("--access", str(FILE)))
def a_redis_that_may_not_load_the_library_counts_too(world):
    admin = Connection(world.redis.path)
    for words in (("MULTI",), ("FUNCTION", "FLUSH"), ("ACL", "SETUSER", "default", "-function|load"), ("EXEC",)):
        admin(*words)
    for _ in range(3):
        acquire("holder", client=world.lease)
    until_full("holder", 3, world.lease, most_s=60)  # each of some 300 calls brings all scripts along


main(WORLD.close, parts=3)
