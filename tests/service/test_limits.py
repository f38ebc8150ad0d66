#!/usr/bin/python3
"""How much a caller may use, with --access: the limits of the access file, what is never held up, and the order of refusals."""

import base64
import hashlib
import itertools
import json
import os
import pathlib
import secrets
import subprocess
import tempfile
import time

from world import World, check, check_equal, main, test, wait_until
from world.client import Client

FOLDER = tempfile.mkdtemp(dir=os.environ["TMPDIR"])
FILE, KEY, JWKS = (pathlib.Path(FOLDER, name) for name in ("access.json", "key.pem", "jwks.json"))
NAMES, ADDRESSES = itertools.count(1), itertools.count(1)
VERBS = ["acquire", "look", "force-release", "read", "write-own", "write", "check", "resolve", "session", "observe", "operate"]
PROXY = "127.0.0.1"


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def new_token():
    text = "pawl_" + base64url(secrets.token_bytes(32))
    return f"{text}_{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def openssl(*words, given=None):
    return subprocess.run(["openssl", *words], input=given, capture_output=True, check=True).stdout


LIMITS = {"slow": {"requests_per_s": 10}, "steady": {"requests_per_s": 200}}
WHO = ["free", "other", *LIMITS]
TOKENS = {name: new_token() for name in WHO}
openssl("genpkey", "-algorithm", "ed25519", "-out", str(KEY))
public = openssl("pkey", "-in", str(KEY), "-pubout", "-outform", "DER")[-32:]
JWKS.write_text(json.dumps({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": base64url(public), "kid": "1"}]}), encoding="utf-8")
JWKS.chmod(0o600)
FILE.write_text(json.dumps({
    "identities": {**{name: {"access_tokens": ["sha256:" + hashlib.sha256(token.encode()).hexdigest()]} for name, token in TOKENS.items()},
                   "pod": {"subjects": {"k8s": ["pod"]}}},
    "issuers": {"k8s": {"iss": "https://k8s", "aud": "pawl", "jwks": str(JWKS), "algs": ["EdDSA"]}},
    "rules": [{"who": ["known"], "may": VERBS, "on": ["*"]}], "limits": LIMITS}), encoding="utf-8")
FILE.chmod(0o600)
WORLD = World("--access", str(FILE), "--trusted-proxy", PROXY, "--threads", "2")
FRESH = Client("lease", WORLD.lease_daemon.url, World.contract, fresh=True)


def jwt(**more):
    now = int(time.time())
    parts = ({"alg": "EdDSA", "kid": "1"}, {"iss": "https://k8s", "aud": "pawl", "sub": "pod", "iat": now, "exp": now + 600, **more})
    signed = ".".join(base64url(json.dumps(part).encode()) for part in parts)
    file = pathlib.Path(FOLDER, "signed")
    file.write_text(signed, encoding="ascii")
    return f"{signed}.{base64url(openssl('pkeyutl', '-sign', '-inkey', str(KEY), '-rawin', '-in', str(file)))}"


def bearer(token):
    return {"Authorization": f"Bearer {TOKENS.get(token, token)}"}


def name(stem="job"):
    return f"{stem}:{next(NAMES)}"


def lease_path(lease):
    return f"/v1/leases/{lease}"


def rate_limited(answer, policy):
    check_equal((answer.status, answer.code, answer.json["retryable"]), (429, "rate-limited", True), f"{answer}")
    check_equal([answer.header(field) for field in ("Retry-After", "RateLimit-Policy", "RateLimit")],
                ["1", f'"{policy[0]}";q={policy[1]};w=1', f'"{policy[0]}";r=0;t=1'])


def until_limited(ask, policy):
    """What was answered until it was 429, and how many seconds that took."""
    begun, answers = time.monotonic(), []
    while not answers or answers[-1].status != 429:
        answers.append(ask())
        check(time.monotonic() - begun < 20, "it is never limited")
    rate_limited(answers[-1], policy)
    return answers[:-1], time.monotonic() - begun


def taken(ask):
    """Its answer, when it is not limited any more."""
    begun = time.monotonic()
    while (answer := ask()).status == 429:
        check(time.monotonic() - begun < 20, f"{answer}")
    return answer


# -- requests_per_s

SLOW = ("requests", 10)


def slow_is_limited():
    return until_limited(lambda: FRESH("GET", lease_path("job:x"), bearer("slow")), SLOW)


@test
def so_many_requests_a_second_are_taken_by_all_threads_together():
    answers, took = slow_is_limited()
    check(10 <= len(answers) <= 10 + 10 * took + 1, f"{len(answers)} in {took} s")
    check_equal({answer.status for answer in answers}, {200})
    check_equal(FRESH("GET", lease_path("job:x"), bearer("free")).status, 200, "each identity by itself")
    check_equal(taken(lambda: FRESH("GET", lease_path("job:x"), bearer("slow"))).status, 200)


@test
def each_instance_counts_by_itself():
    client = WORLD.client(WORLD.daemon("pawl-lease"))
    wait_until(client.is_ready, "it is ready")
    slow_is_limited()
    check_equal([client("GET", lease_path("job:x"), bearer("slow")).status for _ in range(10)], [200] * 10)


@test
def what_keeps_and_gives_back_is_never_held_up():
    held, gone = (taken(lambda: WORLD.lease("POST", lease_path(name()), bearer("slow"), body={})).json for _ in range(2))
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
def it_comes_after_401_and_before_everything_else():
    slow_is_limited()
    asked = [FRESH(*one) for one in (("GET", "/v1/nothing", bearer("slow")), ("PATCH", lease_path("x"), bearer("slow")),
                                     ("GET", lease_path("%00"), bearer("slow")), ("POST", lease_path("a"), bearer("slow"), b"{"))]
    check([answer.status for answer in asked].count(429) >= 3, f"{asked}")
    check_equal(FRESH("GET", lease_path("job:x"), bearer(new_token())).status, 401)


# -- failures

FAILURES = ("failures", 20)


def behind(address):
    return {"X-Forwarded-For": address}


def failing_at(address):
    return until_limited(lambda: WORLD.lease("GET", lease_path("job:x"), {**bearer(new_token()), **behind(address)}), FAILURES)


def still_limited(ask, address):
    """The answer while what fails from this address is 429: asked again if its second was over."""
    while True:
        failing_at(address)
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


@test
def a_client_of_ipv6_has_a_whole_64():
    failing_at("2001:db8:1:2::1")
    answer = still_limited(lambda: WORLD.lease("GET", lease_path("job:x"), behind("2001:db8:1:2:ffff::9")), "2001:db8:1:2::1")
    rate_limited(answer, FAILURES)
    check_equal(WORLD.lease("GET", lease_path("job:x"), behind("2001:db8:1:3::1")).status, 401)


@test
def a_jwt_that_was_not_seen_before_is_not_verified_then():
    known, address = jwt(), behind("192.0.2.3")
    check_equal(WORLD.lease("GET", lease_path("job:x"), {**bearer(known), **address}).status, 200)
    fresh = jwt(jti="fresh")
    rate_limited(still_limited(lambda: WORLD.lease("GET", lease_path("job:x"), {**bearer(fresh), **address}), "192.0.2.3"), FAILURES)
    answer = still_limited(lambda: WORLD.lease("GET", lease_path("job:x"), {**bearer(known), **address}), "192.0.2.3")
    check_equal(answer.status, 200)
    check_equal(WORLD.lease("GET", lease_path("job:x"), {**bearer(fresh), **behind("192.0.2.4")}).status, 200, "it was good all the time")


@test
def everything_ends_well():
    WORLD.close()


if __name__ == "__main__":
    main()
