#!/usr/bin/python3
"""pawl-lease as its users see it: acquire, replay, renew, release, look, list, what may be asked, and how a hold ends."""

import json
import urllib.parse

from world import World, check, check_equal, check_in, gives, main, read_token, signed_token, test, test_in, wait_until
from world.asking import fresh_id, pages, path, refused
from world.record import record_of, stripe_key, stripe_of

WORLD = World()
gives["grant"] = WORLD.acquire
NEVER = "x" * 22  # a lease_id that holds nothing


def renew(name, lease_id, ttl_ms=None, token=None):
    headers = [("Lease-Id", lease_id)] + ([("Fencing-Token", token)] if token is not None else [])
    return WORLD.lease("PUT", path(name), headers, None if ttl_ms is None else {"ttl_ms": ttl_ms})


def release(name, lease_id, token=None, query="", **headers):
    pairs = [("Lease-Id", lease_id)] + ([("Fencing-Token", token)] if token is not None else [])
    return WORLD.lease("DELETE", path(name) + query, pairs + [(n.replace("_", "-"), v) for n, v in headers.items()])


# -- acquire

@test
def an_acquire_without_a_body_is_granted_with_the_defaults_and_its_header_says_what_the_body_says():
    name = WORLD.name("a.B_c-d:e")
    answer = WORLD.lease("POST", path(name))
    check_equal(answer.status, 201)
    grant = answer.json
    wanted = {"lease": name, "holder": "anonymous", "mode": "exclusive", "holds": 1, "ttl_ms": 30000,
              "renew_in_ms": 10000, "waited_ms": 0, "meta": {}}
    check_equal({member: grant[member] for member in wanted}, wanted)
    check(0 < grant["expires_in_ms"] <= 30000, grant)
    check(len(grant["lease_id"]) >= 22, grant)
    check_equal(answer.header("Fencing-Token"), grant["fencing_token"])
    read = read_token(grant["fencing_token"])
    check_equal((int(read["token"]), read["lease"], read["mode"], int(read["epoch"]), read["kid"]),
                (grant["token"], name, "exclusive", grant["epoch"], "k1"))
    check(WORLD.keys.verifies(grant["fencing_token"]), grant["fencing_token"])
    check(grant["lease_id"] not in grant["fencing_token"], "the secret is in the header")


@test
def a_second_acquire_is_told_who_holds_and_for_how_long(name):
    grant = WORLD.acquire(name, holder="ada", ttl_ms=20000)
    answer = WORLD.lease("POST", path(name), body={"holder": "bob"})
    refused(answer, 409, "lease-held", lease=name, token=grant["token"], holder="ada", retryable=True)
    check(0 < answer.json["expires_in_ms"] <= 20000, answer)
    check_equal(answer.header("Retry-After"), None)
    check_equal(WORLD.look(name)["holders"][0]["holder"], "ada")


@test
def the_same_acquire_again_is_a_replay_that_does_not_extend_the_hold():
    name, lease_id = WORLD.name(), fresh_id()
    first = WORLD.acquire(name, holder="ada", ttl_ms=20000, lease_id=lease_id, meta={"a": 1})
    wait_until(lambda: WORLD.look(name)["holders"][0]["held_for_ms"] > 0, "time passes")
    again = WORLD.acquire(name, 200, holder="other", ttl_ms=80000, lease_id=lease_id)
    check(again["expires_in_ms"] < 20000, again)
    for member in ("token", "fencing_token", "lease_id", "holder", "ttl_ms", "meta", "holds", "epoch", "renew_in_ms"):
        check_equal(again[member], first[member], member)


@test
def an_acquire_with_an_idempotency_key_needs_a_lease_id_of_the_clients_own(name):
    refused(WORLD.lease("POST", path(name), {"Idempotency-Key": "k"}, {}), 400, "invalid-request")
    refused(WORLD.lease("POST", path(name), {"Idempotency-Key": "k"}), 400, "invalid-request")
    check_equal(WORLD.look(name)["token"], 0)
    headers = {"Idempotency-Key": "k"}
    check_equal(WORLD.lease("POST", path(name), headers, {"lease_id": fresh_id()}).status, 201)


# -- renew, release

@test
def a_renewal_sets_the_ttl_anew_longer_or_shorter_and_keeps_the_token(name):
    grant = WORLD.acquire(name, holder="ada", ttl_ms=10000, meta={"a": 1})
    for ttl_ms in (20000, 5000, 86400000):
        answer = renew(name, grant["lease_id"], ttl_ms)
        check_equal(answer.status, 200, repr(answer))
        check_equal((answer.json["ttl_ms"], answer.json["expires_in_ms"], answer.json["renew_in_ms"]),
                    (ttl_ms, ttl_ms, ttl_ms // 3))
        for member in ("token", "fencing_token", "lease_id", "holder", "meta", "epoch", "holds", "lease"):
            check_equal(answer.json[member], grant[member], member)
        check_equal(answer.header("Fencing-Token"), grant["fencing_token"])
    check_equal(renew(name, grant["lease_id"]).json["ttl_ms"], 86400000, "without a body it is the ttl of before")


# -- release

def free(name):
    """What a look tells of a free lease beside what it always does."""
    looked = WORLD.look(name)
    check(looked.pop("now_ms") > 0, "no time")
    wanted = {"lease": name, "state": "free", "mode": None, "holders": [], "waiting": 0, "delayed_for_ms": 0, "permits": 0,
              "refused": 0, "line": []}
    check_equal({member: looked.pop(member, None) for member in wanted}, wanted)
    return looked


@test
def a_release_makes_the_lease_as_free_at_once_as_one_that_never_was(name):
    never = free(name)
    check_equal((never.pop("epoch") > 0, never), (True, {"token": 0}))
    grant = WORLD.acquire(name)
    for query, headers in (("", {}), ("", {}), ("?all=true", {"Idempotency_Key": "a-key"})):
        answer = release(name, grant["lease_id"], query=query, **headers)
        check_equal((answer.status, answer.body), (204, b""))
    check_equal(free(name), {"token": grant["token"], "epoch": grant["epoch"]})
    check(WORLD.acquire(name)["token"] > grant["token"], "the token did not rise")
    refused(renew(name, grant["lease_id"]), 410, "lease-lost", ended="unknown", lease=name)


# -- with a token along


@test
def a_token_given_along_must_be_a_good_one_of_this_lease_and_hold():
    name, other = WORLD.name(), WORLD.name()
    older = WORLD.acquire(name)
    WORLD.release(name, older)
    grant = WORLD.acquire(name)
    token = grant["fencing_token"]
    elsewhere = WORLD.acquire(other)["fencing_token"]
    table = [(token + " ", None), ("", (400, "malformed-token")), ("1", (400, "malformed-token")),
             (token.replace(";mode", "; mode"), (400, "malformed-token")),
             ("9" + token, (403, "bad-signature")), (token.replace('kid="k1"', 'kid="k2"'), (403, "bad-signature")),
             (elsewhere, (403, "wrong-lease")), (older["fencing_token"], (410, "lease-lost")),
             (signed_token(WORLD.keys, name, grant["token"], grant["epoch"], read_token(token)["hold"], store="B" * 24), (403, "wrong-store"))]
    for given, wanted in table:
        for act in (renew, release):
            if wanted is not None:
                refused(act(name, grant["lease_id"], token=given), *wanted)
    for method in ("PUT", "DELETE"):
        twice = [("Lease-Id", grant["lease_id"]), ("Fencing-Token", token), ("Fencing-Token", token)]
        refused(WORLD.lease(method, path(name), twice), 400, "malformed-token")
    check_equal(WORLD.look(name)["token"], grant["token"])


@test
def the_lease_id_header_must_come_once_and_be_one(name, grant):
    wrong = [[], [("Lease-Id", "")], [("Lease-Id", "x" * 21)], [("Lease-Id", "x" * 65)], [("Lease-Id", "x" * 21 + "=")],
             [("Lease-Id", grant["lease_id"])] * 2]
    for headers in wrong:
        for method in ("PUT", "DELETE"):
            refused(WORLD.lease(method, path(name), headers), 400, "invalid-request")
    for lease_id in ("x" * 22, "x" * 64):
        refused(renew(name, lease_id), 410, "lease-lost")
    check_equal(WORLD.look(name)["state"], "held")


# -- look

@test
def a_look_tells_what_anybody_may_know_and_no_secret(name):
    grant = WORLD.acquire(name, holder="ada", ttl_ms=20000, meta={"a": [1]})
    answer = WORLD.lease("GET", path(name))
    looked = answer.json
    check_equal((looked["state"], looked["token"], looked["epoch"], looked["mode"]),
                ("held", grant["token"], grant["epoch"], "exclusive"))
    holder = looked["holders"][0]
    check_equal((holder["holder"], holder["token"], holder["meta"]), ("ada", grant["token"], {"a": [1]}))
    check(19000 < holder["expires_in_ms"] + holder["held_for_ms"] <= 20000, holder)
    text = answer.body.decode() + str(answer.headers)
    for secret in (grant["lease_id"], read_token(grant["fencing_token"])["sig"], "fencing"):
        check(secret not in text, f"{secret} is in {text}")


# -- list

@test
def a_list_has_every_held_lease_exactly_once_page_by_page():
    names = sorted(f"list-a:{i}" for i in range(23))
    grants = {name: WORLD.acquire(name, holder="h-" + name) for name in names}
    gone = WORLD.acquire("list-a:gone")
    WORLD.release("list-a:gone", gone)
    for limit in (1, 5, 23, 1000):
        found = pages(WORLD.lease, f"/v1/leases?prefix=list-a:&limit={limit}")
        items = [item for page in found for item in page]
        check_equal(sorted(item["lease"] for item in items), names, f"limit {limit}")
        check(all(len(page) <= limit for page in found), f"limit {limit}: {found}")
    check_equal({item["lease"]: (item["token"], item["holders"][0]["holder"]) for item in items},
                {name: (grants[name]["token"], "h-" + name) for name in names})
    text = json.dumps(items)
    for grant in grants.values():
        check(grant["lease_id"] not in text and read_token(grant["fencing_token"])["sig"] not in text, "a secret is listed")


@test
def a_list_has_every_lease_of_a_long_stripe_exactly_once():
    first = "list-l:0"
    names = [first] + [name for name in (f"list-l:{i}" for i in range(1, 700_000)) if stripe_of(name) == stripe_of(first)]
    WORLD.acquire(first, ttl_ms=600000)
    WORLD.redis("EVAL", """local text, at = redis.call('HGET', KEYS[1], 'l:' .. ARGV[1]), redis.call('ZSCORE', KEYS[1] .. ':due', ARGV[1])
        for i = 2, #ARGV do
            redis.call('HSET', KEYS[1], 'l:' .. ARGV[i], text)
            redis.call('ZADD', KEYS[1] .. ':due', at, ARGV[i]) end""", 1, stripe_key(first), *names)
    for limit in (101, 1000):
        found = pages(WORLD.lease, f"/v1/leases?prefix=list-l:&limit={limit}")
        check_equal([item["lease"] for page in found for item in page], sorted(names), f"{limit}")
        check(all(len(page) == limit for page in found[:-1]), f"{limit}")
    check_equal(len(WORLD.lease("GET", "/v1/leases?prefix=list-l:").json["items"]), 100, "unless more are asked for")


@test
def a_list_item_is_what_a_look_gives():
    WORLD.acquire("list-b:1", meta={"a": 1})
    [[item]], looked = pages(WORLD.lease, "/v1/leases?prefix=list-b:"), WORLD.look("list-b:1")
    for one in (item, looked):
        for member in ("expires_in_ms", "held_for_ms", "renewed_ms_ago"):
            del one["holders"][0][member]
    check_equal({**item, "now_ms": looked["now_ms"], "line": []}, looked)
    check_equal(sorted(looked["holders"][0]), ["hold", "holder", "holds", "meta", "mode", "session", "token", "ttl_ms", "waited_ms"])


@test
def a_list_may_be_of_who_holds():
    for name, holder in (("list-h:1", "ada"), ("list-h:2", "b/ o\u00e9"), ("list-h:3", "ada")):
        WORLD.acquire(name, holder=holder)
    listed = lambda query: [[item["lease"] for item in page] for page in pages(WORLD.lease, f"/v1/leases?prefix=list-h:&{query}")]
    check_equal(sorted(sum(listed("holder=ada&limit=1"), [])), ["list-h:1", "list-h:3"])
    check_equal((listed("holder=b%2F%20o%C3%A9"), listed("holder=nobody")), ([["list-h:2"]], [[]]))


@test
def a_query_that_is_not_one_is_refused():
    for query in ("?state=free", "?state=", "?limit=", "?limit=x", "?limit=1.5", "?limit=-1", "?limit=+1", "?limit=0x1",
                  "?limit=5&limit=5", "?holder=", "?holder=" + "x" * 129, "?holder=a%00b", "?prefix=-", "?prefix=a%2Fb", "?prefix=a%00", "?prefix=%", "?prefix=" + "x" * 129,
                  "?x=1", "?Prefix=a", "?&", "?limit=99999999999999999999"):
        answer = WORLD.lease("GET", "/v1/leases" + query)
        wanted = (422, "out-of-range") if "9999" in query else (400, "invalid-request")
        check_equal((answer.status, answer.code), wanted, query)
    for limit in (0, 1001):
        refused(WORLD.lease("GET", f"/v1/leases?limit={limit}"), 422, "out-of-range")


@test
def a_cursor_that_this_service_did_not_give_for_this_list_is_refused():
    cursor = WORLD.lease("GET", "/v1/leases?prefix=list-a:&limit=2").json["next_cursor"]
    check_equal(WORLD.lease("GET", f"/v1/leases?prefix=list-a:&limit=3&cursor={cursor}").status, 200)
    made_up = ["", "x", "0", cursor[:-1], cursor + "x", "00" + cursor[2:], cursor.upper(), "0" * 40, "%00", "a%0d%0a"]
    for wrong in made_up:
        if wrong != cursor:
            refused(WORLD.lease("GET", f"/v1/leases?prefix=list-a:&limit=2&cursor={wrong}"), 400, "invalid-request")
    for query in ("prefix=list-b:", "prefix=list-a:&state=waiting", "prefix=list-a:&holder=ada", "limit=2"):
        refused(WORLD.lease("GET", f"/v1/leases?{query}&cursor={cursor}"), 400, "invalid-request")


# -- what may be asked: each limit is in tests/unit/test_request.c, test_name.c and test_json.c; here is what an answer says of it

def post(body, name=None, **headers):
    pairs = {"Content-Type": "application/json", **{header.replace("_", "-"): value for header, value in headers.items()}}
    return WORLD.lease("POST", path(name or WORLD.name()), pairs, body.encode() if isinstance(body, str) else body)


@test
def a_name_is_decoded_and_has_1_to_128_characters_of_its_alphabet():
    for name in ("a", "a" * 128, "a._:-Z9", "a%41", "query:1"):
        check_equal(post({}, name).status, 201, name)
    check_equal(WORLD.look("aA")["state"], "held", "%41 is A")
    for name in ("a" * 129, "-a", "a%2Fb", "a%00", "a%zz", "a~b"):
        for method in ("POST", "PUT", "DELETE", "GET", "HEAD"):
            headers = {"Lease-Id": NEVER} if method in ("PUT", "DELETE") else {}
            check_equal(WORLD.lease(method, path(name), headers).status, 400, f"{method} {name}")
    for prefix in ("query:", urllib.parse.quote("query:", safe=""), "q%75ery"):
        check_equal([item["lease"] for item in WORLD.lease("GET", f"/v1/leases?prefix={prefix}").json["items"]], ["query:1"])


@test
def a_query_or_a_body_is_refused_where_none_is_known_and_a_wrong_one_where_one_is(name, grant):
    for method, more, body, status, code in (
            ("POST", "?x=1", None, 400, "invalid-request"), ("PUT", "?all=true", None, 400, "invalid-request"),
            ("GET", "?wait_ms=5", None, 400, "invalid-request"), ("GET", "", {}, 400, "invalid-request"),
            ("DELETE", "", {}, 400, "invalid-request"),
            *(("DELETE", query, None, 400, "invalid-request") for query in (
                "?all=false", "?all=1", "?all", "?all=", "?al=true", "?all=true&all=true", "?all=true&x=1", "?x=1")),
            ("PUT", "", {"ttl_ms": 99}, 422, "out-of-range"),
            ("PUT", "", [], 400, "invalid-request"), ("POST", "/force-release", {"reason": ""}, 422, "out-of-range"),
            ("POST", "/force-release", {"token": 1}, 400, "invalid-request")):
        headers = {"Lease-Id": grant["lease_id"]} if method in ("PUT", "DELETE") else {}
        refused(WORLD.lease(method, path(name) + more, headers, body), status, code)
    check_equal(WORLD.look(name)["token"], grant["token"])


@test
def what_is_outside_of_its_limits_or_malformed_is_told_and_nothing_is_granted(name):
    for body, status, code, detail in (
            ({"ttl_ms": 99}, 422, "out-of-range", "ttl_ms"), ({"holder": "a\0b"}, 422, "out-of-range", "holder"),
            ({"meta": {"a": "x" * 2041}}, 422, "out-of-range", "meta"), ({"mode": "exclusiv"}, 400, "invalid-request", "mode"),
            ({"TTL_MS": 1}, 400, "invalid-request", "TTL_MS"), ('{"ttl_ms":1e3}', 400, "invalid-request", "ttl_ms"),
            ('{"ttl_ms":100,"ttl\\u005fms":100}', 400, "invalid-request", "ttl_ms stands there twice"),
            (b'{"holder":"a\xff"}', 400, "invalid-request", "at the member holder"),
            ('{"meta":' + '{"a":' * 8, 400, "invalid-request", "8 levels, at the member meta"),
            ("[" * 8000, 400, "invalid-request", "."), ("{}\x00", 400, "invalid-request", "."), (" ", 400, "invalid-request", "."),
            (b" " * 16385, 413, "too-large", "16384 bytes")):
        told = refused(post(body, name), status, code).json["detail"]
        check_in(detail, told, str(body)[:60])
        check(told.endswith(".") and len(told) > 25, told)
    check_equal(WORLD.look(name)["token"], 0, "something was granted")


@test
def what_is_at_its_limit_is_granted_and_comes_back_as_it_was_meant():
    meta = {"zero": 0, "neg": -1, "big": 123456789012345, "float": 0.5, "exp": 1e300, "t": True, "n": None,
            "list": [1, [2, {"three": 3}]], "text": "a\"b\\c/\u0001\u2028", "": "empty name"}
    for body in ({"ttl_ms": 86400000}, {"holder": "🔒" * 32}, {"holder": '"quoted\\"'}, {"lease_id": "-_09AZaz" * 8}, {"meta": meta},
                 {"meta": {"a": "x" * 2040}}, {"permits": 1000000}, {"wait_ms": 600000}, {"lock_delay_ms": 600000}):
        name, (member, value) = WORLD.name(), list(body.items())[0]
        grant = WORLD.acquire(name, **body)
        check_equal((grant.get(member, value), grant["waited_ms"]), (value, 0), member)
        if member in ("holder", "meta"):
            check_equal(WORLD.look(name)["holders"][0][member], value)
    padded = ' \t\r\n{ "ttl_ms" : 1000 , "holder" : "\\u00e4\\/" } \r\n'
    check_equal(post(padded + " " * (16384 - len(padded))).json["holder"], "ä/")


@test
def a_session_comes_with_its_secret_and_a_secret_with_its_session():
    name, body = WORLD.name(), {"session": "s" * 22}
    table = [(body, [], "Session-Secret is missing"), (body, [""], "22 to 64"), (body, ["x" * 21], "22 to 64"),
             (body, ["x" * 65], "22 to 64"), (body, ["x" * 21 + "="], "22 to 64"), (body, ["x" * 22, "x" * 22], "once"),
             ({}, ["x" * 22], "without the member session")]
    for ask, secrets, detail in table:
        answer = WORLD.lease("POST", path(name), [("Session-Secret", secret) for secret in secrets], ask)
        check_in(detail, refused(answer, 400, "invalid-request").json["detail"])
    check_equal(WORLD.look(name)["token"], 0, "something was granted")


@test
def a_body_must_be_application_json():
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"):
        check_equal(post(b"{}", Content_Type=kind).status, 201, kind)
    for kind in ("text/plain", "application/jsonx", "application/problem+json", "json"):
        refused(post(b"{}", Content_Type=kind), 415, "unsupported-media-type")
    check_equal(WORLD.lease("POST", path(WORLD.name()), {}, b"{}").status, 415, "no Content-Type")
    check_equal(post(b"", Content_Type="text/plain").status, 201, "an empty body has no type")


# -- the end of a hold


def in_stripe(number):
    """A name that lives there. The sweep begins with stripe 0 and takes one every 20 ms."""
    return next(name for name in (f"gone:{i}" for i in range(10 ** 6)) if stripe_of(name) == number)


@test_in(lambda: World(lease_flags=["--remember", "1s"]))
def the_sweep_ends_what_expired_and_nothing_of_a_lease_stays_after_it_was_remembered(world):
    expiring, leaving = in_stripe(30), in_stripe(80)
    world.acquire(expiring, ttl_ms=100)
    grant = world.acquire(leaving)
    world.release(leaving, grant)
    wait_until(lambda: record_of(world.redis, expiring).get("s") == "expired", "the sweep has ended it, though nobody looked")
    check_equal(record_of(world.redis, expiring).get("o"), None, "its holder")
    wait_until(lambda: not record_of(world.redis, leaving) and not world.redis("KEYS", f"*{leaving}*"), "the sweep has forgotten the other")
    check_equal(world.redis("ZSCORE", stripe_key(leaving) + ":due", leaving), None)
    check_equal(world.look(leaving)["token"], 0)
    check(world.acquire(leaving)["token"] > grant["token"], "a token came again")


main(WORLD.close)
