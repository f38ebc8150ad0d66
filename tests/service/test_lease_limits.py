#!/usr/bin/python3
"""Every limit of an acquire and a renew at its bound, inside and outside; and every kind of wrong JSON."""

import json
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


# -- the name

@test
def a_name_has_1_to_128_characters_of_its_alphabet():
    for name in ("a", "Z", "0", "a" * 128, "a._:-Z9", "a..b", "a%41", "%61b", "a%2Eb"):
        granted({}, name)
    check_equal(WORLD.look("aA")["state"], "held", "%41 is A")
    wrong = ["a" * 129, "-a", ".a", "_a", ":a", "a%20b", "a%2Fb", "a%00", "a%00b", "%2e%2e", "a~b", "a!b", "a%C3%A4", "a%",
             "a%4", "a%zz", "a%0a", "a%7f", "a*b", "a@b", "a+b", "a%25b", "a;b", "a,b", "."]
    for name in wrong:
        for method in ("POST", "PUT", "DELETE", "GET", "HEAD"):
            headers = {"Lease-Id": "x" * 22} if method in ("PUT", "DELETE") else {}
            answer = WORLD.lease(method, f"/v1/leases/{name}", headers)
            check_equal(answer.status, 400, f"{method} {name}: {answer}")


@test
def a_name_is_one_segment():
    for path in ("/v1/leases/a/b", "/v1/leases/a/", "/v1/leases//a", "/v1/leases/", "/v1/leases/a/../b"):
        check(WORLD.lease("GET", path).status in (400, 404), path)


@test
def a_query_is_refused_where_none_is_known():
    name = WORLD.name()
    for query in ("?x=1", "?all=true", "?wait_ms=5"):
        for method in ("POST", "PUT", "GET"):
            headers = {"Lease-Id": "x" * 22} if method == "PUT" else {}
            answer = WORLD.lease(method, f"/v1/leases/{name}{query}", headers)
            check_equal((answer.status, answer.code), (400, "invalid-request"), f"{method} {query}")


# -- the members

@test
def ttl_ms_is_100_to_86400000():
    for ttl_ms in (100, 101, 86399999, 86400000):
        check_equal(granted({"ttl_ms": ttl_ms})["ttl_ms"], ttl_ms)
    for ttl_ms in (99, 1, 0, -1, 86400001, 10 ** 12, -10 ** 15):
        outside({"ttl_ms": ttl_ms}, "ttl_ms")


@test
def a_number_that_is_no_integer_is_mistyped():
    for text in ("1.5", "1e3", "1000.0", "1E3", '"1000"', "true", "null", "[]", "{}", "1000000000000000000000"):
        bad(f'{{"ttl_ms":{text}}}', "ttl_ms")


@test
def a_renewal_has_the_same_limits():
    name = WORLD.name()
    grant = granted({"ttl_ms": 30000}, name)

    def renew(body):
        headers = {"Lease-Id": grant["lease_id"], "Content-Type": "application/json"}
        return WORLD.lease("PUT", f"/v1/leases/{name}", headers, body.encode())
    for ttl_ms in (100, 86400000):
        check_equal(renew(f'{{"ttl_ms":{ttl_ms}}}').status, 200)
        check_equal(renew('{"ttl_ms":86400000}').status, 200)
    for ttl_ms in (99, 0, -5, 86400001):
        answer = renew(f'{{"ttl_ms":{ttl_ms}}}')
        check_equal((answer.status, answer.code), (422, "out-of-range"))
    for body in ('{"ttl_ms":1.5}', '{"ttl_ms":null}', '{"x":1}', '{"holder":"a"}', "[]", "{", '{"ttl_ms":100,"ttl_ms":100}',
                 "null", "1", '{"ttl_ms":0100}'):
        answer = renew(body)
        check_equal((answer.status, answer.code), (400, "invalid-request"), body)
    check_equal(WORLD.look(name)["token"], grant["token"])


@test
def a_holder_is_1_to_128_bytes_of_printable_utf_8():
    for holder in ("a", "a" * 128, "ä" * 64, "🔒" * 32, "a b", "~!@#", "日本", '"quoted\\"'):
        check_equal(granted({"holder": holder})["holder"], holder)
        looked = [item for item in WORLD.lease("GET", "/v1/leases?limit=1000").json["items"]
                  if item["holders"][0]["holder"] == holder]
        check(looked, f"{holder} is not listed")
    for holder in ("", "a" * 129, "ä" * 65, "🔒" * 33, "a\tb", "a\nb", "a\x7fb", "a\u0085b", "\u009f"):
        outside({"holder": holder}, "holder")
    for holder in (1, None, True, [], {}):
        bad({"holder": holder}, "holder")


@test
def text_that_is_not_utf_8_is_not_json():
    for raw in (b"\xff", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"):
        bad(b'{"holder":"a' + raw + b'"}')


@test
def escapes_mean_what_they_say_and_nul_and_lone_surrogates_are_refused():
    check_equal(granted(r'{"holder":"\u00e4\ud83d\udd12\/"}')["holder"], "ä🔒/")
    name = WORLD.name()
    check(post(r'{"holder":"a\u0000b"}', name).status in (400, 422), "NUL")
    for text in (r'"\ud83d"', r'"\udd12"', r'"\ud83dx"', r'"\x41"', r'"\u12"', '"\\"', '"a\nb"', '"a\x01b"', "'a'"):
        bad(f'{{"holder":{text}}}')


@test
def a_proposed_lease_id_has_22_to_64_characters_of_its_alphabet():
    for i, lease_id in enumerate(("a" * 22, "b" * 64, "-_09AZaz" * 4)):
        check_equal(granted({"lease_id": lease_id}, f"ids:{i}")["lease_id"], lease_id)
    for lease_id in ("a" * 21, "a" * 65, "", "a" * 21 + "=", "a" * 21 + "+", "a" * 21 + " ", "a" * 21 + "ä"):
        outside({"lease_id": lease_id}, "lease_id")
    for lease_id in (1, None, ["a" * 22]):
        bad({"lease_id": lease_id}, "lease_id")


def meta_of(size):
    return {"a": "x" * (size - len('{"a":""}'))}


@test
def meta_is_an_object_of_at_most_2048_bytes_as_minified_text():
    check_equal(granted({"meta": meta_of(2048)})["meta"], meta_of(2048))
    outside({"meta": meta_of(2049)}, "meta")
    spaced = json.dumps({"meta": meta_of(2048)}).replace("{", "{  \n\t")
    check_equal(granted(spaced)["meta"], meta_of(2048))
    check_equal(granted({"meta": {}})["meta"], {})
    check_equal(granted('{"meta":{"ä":"%s"}}' % ("ä" * 1019))["meta"], {"ä": "ä" * 1019})
    outside('{"meta":{"ä":"%s"}}' % ("ä" * 1020), "meta")
    for meta in ([], "x", 1, None, True):
        bad({"meta": meta}, "meta")


@test
def meta_comes_back_as_it_was_meant():
    meta = {"zero": 0, "neg": -1, "big": 123456789012345, "float": 0.5, "exp": 1e300, "t": True, "n": None,
            "list": [1, [2, {"three": 3}]], "text": "a\"b\\c/\u0001\u2028", "": "empty name"}
    name = WORLD.name()
    check_equal(granted({"meta": meta}, name)["meta"], meta)
    check_equal(WORLD.look(name)["holders"][0]["meta"], meta)


@test
def a_member_twice_is_refused_wherever_it_is():
    bad('{"ttl_ms":100,"ttl_ms":100}')
    bad('{"ttl_ms":100,"ttl\\u005fms":100}')
    bad('{"meta":{"a":1,"a":1}}')
    bad('{"meta":{"b":[{"a":1,"a":2}]}}')


@test
def json_has_at_most_8_levels():
    def nested(levels):
        inner = levels - 2  # the body and meta are the first two
        return '{"meta":{"a":' + "[" * inner + "]" * inner + "}}"
    granted(nested(8))
    bad(nested(9))
    bad('{"meta":{"a":' + "[" * 5000 + "]" * 5000 + "}}")
    bad("[" * 8000)
    bad('{"a":' * 2000)


@test
def a_body_has_at_most_16_kib():
    body = b'{"ttl_ms":1000}'
    granted(body + b" " * (16384 - len(body)))
    for size in (16385, 100000):
        answer = post(body + b" " * (size - len(body)))
        check_equal((answer.status, answer.code), (413, "too-large"))


# -- wrong JSON

@test
def what_is_not_one_json_object_is_refused():
    for body in ("{", "}", "[]", "null", "true", "1", '"x"', "x", "{}{}", "{} x", "{},", "\ufeff{}", "{'a':1}", "{a:1}",
                 '{"ttl_ms":100,}', '{"ttl_ms" 100}', '{"ttl_ms":}', '{,"ttl_ms":100}', "// c\n{}", "{/**/}", "\x00", "{}\x00",
                 '{"ttl_ms":100}\x00x', '{"ttl_ms":NaN}', '{"ttl_ms":Infinity}', '{"ttl_ms":-}', '{"ttl_ms":+100}',
                 '{"ttl_ms":0100}', '{"ttl_ms":.5}', '{"ttl_ms":100.}', '{"ttl_ms":0x64}', '{"ttl_ms":1e}', " ", "\n",
                 '{"ttl_ms":tru}', '{"holder":"a}', '{"":1}', '{"ttl_ms":100\x0b}', '{"meta":{"a":01}}'):
        bad(body)


@test
def white_space_is_where_json_has_it():
    granted(' \t\r\n{ "ttl_ms" : 1000 , "holder" : "a" } \r\n')


@test
def an_unknown_member_is_named():
    for member in ("ttl", "TTL_MS", "leaseId", "wait", "x", "permit", "ttl_ms ", "names"):
        bad({member: 1}, member.strip())


@test
def the_detail_says_what_to_do():
    for body in ({"ttl_ms": 1}, {"x": 1}, {"permits": 0}, "{"):
        detail = post(body).json["detail"]
        check(detail.endswith(".") and len(detail) > 25, detail)


@test
def what_is_asked_of_a_free_lease_is_granted_up_to_its_limits():
    for body in ({"mode": "shared"}, {"mode": "exclusive"}, {"permits": 1}, {"permits": 2}, {"permits": 1000000}, {"wait_ms": 1},
                 {"wait_ms": 600000}, {"lock_delay_ms": 1}, {"lock_delay_ms": 600000}, {"reentrant": True}):
        check_equal(granted(body)["waited_ms"], 0)


@test
def numbers_outside_their_limits_and_members_of_the_wrong_type_are_named():
    for body in ({"permits": 0}, {"permits": 1000001}, {"wait_ms": -1}, {"wait_ms": 600001}, {"lock_delay_ms": -1},
                 {"lock_delay_ms": 600001}, {"session": "s" * 15}, {"session": "s" * 65}, {"session": "s" * 21 + "/"}):
        outside(body, list(body)[0])
    for body in ({"mode": 1}, {"mode": "exclusiv"}, {"mode": "permits"}, {"mode": None}, {"permits": "3"}, {"wait_ms": "0"},
                 {"wait_ms": 0.5}, {"reentrant": 0}, {"reentrant": "false"}, {"session": 1}, {"lock_delay_ms": None}):
        bad(body, list(body)[0])


@test
def mode_and_permits_exclude_each_other():
    for mode in ("exclusive", "shared"):
        for permits in (1, 3):
            bad({"mode": mode, "permits": permits}, "not both")


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


@test
def a_session_that_nobody_opened_is_lost():
    name = WORLD.name()
    answer = WORLD.lease("POST", f"/v1/leases/{name}", {"Session-Secret": "x" * 22}, {"session": "s" * 22})
    check_equal((answer.status, answer.code), (410, "session-lost"), repr(answer))
    check_equal(WORLD.look(name)["token"], 0, "something was granted")


@test
def a_reason_is_1_to_256_bytes_of_printable_utf_8_and_a_token_one():
    name = WORLD.name()
    grant = granted({}, name)

    def force(**body):
        return WORLD.lease("POST", f"/v1/leases/{name}/force-release", body=body)
    for reason in ("", "a" * 257, "ä" * 129, "a\tb", "a\nb", "\x7f", "\u0085"):
        answer = force(reason=reason)
        check_equal((answer.status, answer.code), (422, "out-of-range"), repr(reason))
        check_in("reason", answer.json["detail"])
    for token in (0, -1, 10 ** 15):
        check_equal((force(expect_token=token).status, force(expect_token=token).code), (422, "out-of-range"), token)
    for body in ({"reason": 1}, {"reason": None}, {"expect_token": "1"}, {"expect_token": None}, {"token": 1}):
        check_equal(force(**body).code, "invalid-request", body)
    check_equal(WORLD.look(name)["token"], grant["token"])
    for reason in ("a", "a" * 256, "ä" * 128):
        check_equal(force(reason=reason).status, 200, reason)


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


@test
def a_body_where_none_is_taken_is_refused():
    name = WORLD.name()
    grant = granted({}, name)
    answer = WORLD.lease("DELETE", f"/v1/leases/{name}", {"Lease-Id": grant["lease_id"]}, {})
    check_equal((answer.status, answer.code), (400, "invalid-request"))
    answer = WORLD.lease("GET", f"/v1/leases/{name}", {}, {})
    check_equal((answer.status, answer.code), (400, "invalid-request"))
    check_equal(WORLD.look(name)["state"], "held")


@test
def a_name_in_a_query_is_decoded_like_one_in_a_path():
    granted({}, "query:1")
    for prefix in ("query:", urllib.parse.quote("query:", safe=""), "q%75ery"):
        items = WORLD.lease("GET", f"/v1/leases?prefix={prefix}").json["items"]
        check_equal([item["lease"] for item in items], ["query:1"])


main(WORLD.close)
