#!/usr/bin/python3
"""Every limit of an acquire and a renew at its bound, inside and outside; and every kind of wrong JSON."""

import urllib.parse

from world import World, check, check_equal, check_in, main, test

WORLD = World()


def post(body, name=None, **headers):
    """name: as path text."""
    pairs = [(header.replace("_", "-"), value) for header, value in headers.items()]
    if isinstance(body, (bytes, str)) and not any(header == "Content-Type" for header, _ in pairs):
        pairs.append(("Content-Type", "application/json"))
    return WORLD.lease("POST", f"/v1/leases/{name or WORLD.name()}", pairs, body.encode() if isinstance(body, str) else body)


def granted(body, name=None):
    answer = post(body, name)
    check_equal(answer.status, 201, f"{str(body)[:200]} {answer}")
    return answer.json


def refused(body, status, code, detail="", name=None):
    """And nothing was granted."""
    name = name or WORLD.name()
    answer = post(body, name)
    check_equal((answer.status, answer.code), (status, code), f"{str(body)[:200]} {answer}")
    check_in(detail, answer.json["detail"], str(body)[:200])
    return answer


def bad(body, detail=""):
    name = WORLD.name()
    refused(body, 400, "invalid-request", detail, name)
    check_equal(WORLD.look(name)["token"], 0, "something was granted")


def outside(body, detail):
    name = WORLD.name()
    refused(body, 422, "out-of-range", detail, name)
    check_equal(WORLD.look(name)["token"], 0, "something was granted")


# -- addresses

@test
def a_name_has_1_to_128_characters_of_its_alphabet():
    for name in ("a", "a" * 128, "a._:-Z9", "a%41"):
        granted({}, name)
    check_equal(WORLD.look("aA")["state"], "held", "%41 is A")
    for name in ("a" * 129, "-a", "a%2Fb", "a%00", "a%zz", "a%0a", "a~b", "."):
        for method in ("POST", "PUT", "DELETE", "GET", "HEAD"):
            headers = {"Lease-Id": "x" * 22} if method in ("PUT", "DELETE") else {}
            check_equal(WORLD.lease(method, f"/v1/leases/{name}", headers).status, 400, f"{method} {name}")


@test
def a_query_or_a_body_is_refused_where_none_is_known():
    name = WORLD.name()
    grant = granted({}, name)
    for method, query, body in (("POST", "?x=1", None), ("PUT", "?all=true", None), ("GET", "?wait_ms=5", None),
                                ("GET", "", {}), ("DELETE", "", {})):
        headers = {"Lease-Id": grant["lease_id"]} if method in ("PUT", "DELETE") else {}
        answer = WORLD.lease(method, f"/v1/leases/{name}{query}", headers, body)
        check_equal((answer.status, answer.code), (400, "invalid-request"), f"{method} {query}")
    check_equal(WORLD.look(name)["state"], "held")


@test
def a_name_in_a_query_is_decoded_like_one_in_a_path():
    granted({}, "query:1")
    for prefix in ("query:", urllib.parse.quote("query:", safe=""), "q%75ery"):
        items = WORLD.lease("GET", f"/v1/leases?prefix={prefix}").json["items"]
        check_equal([item["lease"] for item in items], ["query:1"])


# -- members: each limit is in tests/unit/test_ask.c, test_name.c and test_json.c; here is what an answer says of it

@test
def what_is_outside_of_its_limits_or_malformed_is_told_and_nothing_is_granted():
    for member, value in (("ttl_ms", 99), ("ttl_ms", 86400001), ("ttl_ms", -10 ** 15), ("holder", "a\u0085b"), ("holder", "ä" * 65),
                          ("lease_id", "a" * 21), ("meta", {"a": "x" * 2041}), ("permits", 1000001), ("wait_ms", 600001),
                          ("lock_delay_ms", -1), ("session", "s" * 15), ("holder", "a\0b")):
        outside({member: value}, member)
    for body, detail in (('{"ttl_ms":1e3}', "ttl_ms"), ({"holder": 1}, "holder"), ({"meta": None}, "meta"), ({"mode": "exclusiv"}, "mode"),
                         ({"mode": "shared", "permits": 3}, "not both"), ({"TTL_MS": 1}, "TTL_MS"), ('{"ttl_ms":100,"ttl\\u005fms":100}', "ttl_ms stands there twice"),
                         ('{"meta":{"b":[{"a":1,"a":2}]}}', "a stands there twice"), (b'{"holder":"a\xff"}', "at the member holder"),
                         (r'{"holder":"\ud83d"}', "at the member holder"), ('{"meta":' + '{"a":' * 8, "8 levels, at the member meta"), ("[" * 8000, ""),
                         ("{}{}", ""), ("{}\x00", ""), (" ", "")):
        bad(body, detail)
    for body in ({"ttl_ms": 1}, {"x": 1}, "{"):
        detail = post(body).json["detail"]
        check(detail.endswith(".") and len(detail) > 25, detail)


@test
def what_is_at_its_limit_is_granted_and_comes_back_as_it_was_meant():
    meta = {"zero": 0, "neg": -1, "big": 123456789012345, "float": 0.5, "exp": 1e300, "t": True, "n": None,
            "list": [1, [2, {"three": 3}]], "text": "a\"b\\c/\u0001\u2028", "": "empty name"}
    for body in ({"ttl_ms": 100}, {"ttl_ms": 86400000}, {"holder": "🔒" * 32}, {"holder": '"quoted\\"'}, {"lease_id": "-_09AZaz" * 8}, {"meta": meta},
                 {"meta": {"a": "x" * 2040}}, {"mode": "shared"}, {"permits": 2}, {"permits": 1000000}, {"wait_ms": 600000}, {"lock_delay_ms": 600000}):
        name, (member, value) = WORLD.name(), list(body.items())[0]
        grant = granted(body, name)
        check_equal((grant.get(member, value), grant["waited_ms"]), (value, 0), member)
        if member in ("holder", "meta"):
            check_equal(WORLD.look(name)["holders"][0][member], value)
    check_equal(granted(' \t\r\n{ "ttl_ms" : 1000 , "holder" : "\\u00e4\\/" } \r\n')["holder"], "ä/")


@test
def a_body_has_at_most_16_kib():
    body = b'{"ttl_ms":1000}'
    granted(body + b" " * (16384 - len(body)))
    for size in (16385, 100000):
        answer = post(body + b" " * (size - len(body)))
        check_equal((answer.status, answer.code), (413, "too-large"))


@test
def a_renewal_and_a_force_release_have_limits_too():
    name = WORLD.name()
    grant = granted({}, name)
    for method, where, body, status, code in (
            ("PUT", "", {"ttl_ms": 99}, 422, "out-of-range"), ("PUT", "", {"holder": "a"}, 400, "invalid-request"),
            ("PUT", "", [], 400, "invalid-request"), ("POST", "/force-release", {"reason": ""}, 422, "out-of-range"),
            ("POST", "/force-release", {"expect_token": 0}, 422, "out-of-range"),
            ("POST", "/force-release", {"token": 1}, 400, "invalid-request")):
        headers = {"Lease-Id": grant["lease_id"]} if method == "PUT" else {}
        answer = WORLD.lease(method, f"/v1/leases/{name}{where}", headers, body)
        check_equal((answer.status, answer.code), (status, code), f"{method} {body}")
    check_equal(WORLD.look(name)["token"], grant["token"])
    check_equal(WORLD.lease("POST", f"/v1/leases/{name}/force-release", body={"reason": "ä" * 128}).status, 200)


@test
def a_session_comes_with_its_secret_and_a_secret_with_its_session():
    name, body = WORLD.name(), {"session": "s" * 22}
    table = [(body, [], "Session-Secret is missing"), (body, [""], "22 to 64"), (body, ["x" * 21], "22 to 64"),
             (body, ["x" * 65], "22 to 64"), (body, ["x" * 21 + "="], "22 to 64"), (body, ["x" * 22, "x" * 22], "once"),
             ({}, ["x" * 22], "without the member session")]
    for ask, secrets, detail in table:
        answer = WORLD.lease("POST", f"/v1/leases/{name}", [("Session-Secret", secret) for secret in secrets], ask)
        check_equal((answer.status, answer.code), (400, "invalid-request"), f"{ask} {secrets} {answer}")
        check_in(detail, answer.json["detail"])
    check_equal(WORLD.look(name)["token"], 0, "something was granted")


# -- headers

@test
def an_idempotency_key_is_1_to_128_visible_ascii_characters():
    def ask(*keys):
        pairs = [("Idempotency-Key", key) for key in keys]
        return WORLD.lease("POST", f"/v1/leases/{WORLD.name()}", pairs, {"lease_id": "k" * 22})
    for key in ("a", "a" * 128, "!~\"\\", "0"):
        check_equal(ask(key).status, 201, key)
    for keys in (("",), ("a" * 129,), ("a b",), ("a", "a"), ("\u00e4",)):
        check_equal(ask(*keys).code, "invalid-request", keys)
    name = WORLD.name()
    granted({"lease_id": "r" * 22}, name)
    for key, status in (("a" * 129, 400), ("a b", 400), ("a", 204)):
        answer = WORLD.lease("DELETE", f"/v1/leases/{name}", {"Lease-Id": "r" * 22, "Idempotency-Key": key})
        check_equal(answer.status, status, key)


@test
def a_body_must_be_application_json():
    for kind in ("application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"):
        check_equal(post(b"{}", Content_Type=kind).status, 201, kind)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", "application/problem+json", "json",
                 "multipart/form-data"):
        answer = post(b"{}", Content_Type=kind)
        check_equal((answer.status, answer.code), (415, "unsupported-media-type"), kind)
    check_equal(WORLD.lease("POST", f"/v1/leases/{WORLD.name()}", {}, b"{}").status, 415, "no Content-Type")
    check_equal(post(b"", Content_Type="text/plain").status, 201, "an empty body has no type")


main(WORLD.close)
