#!/usr/bin/python3
"""pawl-gateway as its users see it: the fence in its whole order, ETags, preconditions, repeats, reads, marks, check, inspect."""

import os
import re
import urllib.parse

from world import Keys, World, check, check_equal, gives, main, read_token, signed_token, test, wait_until
from world.asking import pages, refused
from world.record import record_of, stripe_key

# Waits the documented way; the second gateway polls as by default (docs/decisions/0007).
WORLD = World(gateway_flags=["--suspend-always"])
ETAG = re.compile(r'^"[A-Za-z0-9_-]{16}"$')


class Holder:
    """A hold on a lease, and its token at the gate."""

    def __init__(self, name=None, **ask):
        self.name = name or WORLD.name("r")
        self.grant = WORLD.acquire(self.name, **ask)
        self.token, self.header = self.grant["token"], self.grant["fencing_token"]
        self.epoch = self.grant["epoch"]

    def successor(self, **ask):
        WORLD.release(self.name, self.grant)
        return Holder(self.name, **ask)


    def forged(self, **changes):
        """Signed with the right key, but granted by nobody."""
        read = read_token(self.header)
        wanted = {"lease": self.name, "token": self.token, "epoch": self.epoch, "hold": read["hold"], **changes}
        return signed_token(WORLD.keys, **wanted)


gives["ada"] = Holder


def path(key):
    return f"/v1/resources/{key}"


def with_token(token, *more):
    return ([("Fencing-Token", token)] if token is not None else []) + list(more)


def put(key, token, body=b"value", *headers):
    return WORLD.gateway("PUT", path(key), with_token(token, *headers), body)


def delete(key, token, *headers):
    return WORLD.gateway("DELETE", path(key), with_token(token, *headers))


def get(key, token=None, *headers):
    return WORLD.gateway("GET", path(key), with_token(token, *headers))


def mark(name):
    return WORLD.gateway("GET", f"/v1/marks/{name}").json


def checked(name, token, query="", method="GET"):
    return WORLD.gateway(method, f"/v1/check/{name}{query}", with_token(token))


def state(name):
    """Everything that a refusal must not change."""
    whole = {b":l:" + name.encode(): record} if (record := record_of(WORLD.redis, name)) else {}
    for key in WORLD.redis("KEYS", f"pawl:*:r:{name}*"):
        flat = WORLD.redis("HGETALL", key)
        whole[key] = dict(zip(flat[::2], flat[1::2]))
    return whole


def status_of(answer):
    return answer.header("Fencing-Status")


# -- a write

@test
def a_write_creates_with_201_and_replaces_with_204_and_a_new_etag(ada):
    first = put(ada.name, ada.header, b"one")
    check_equal((first.status, first.body), (201, b""))
    second = put(ada.name, ada.header, b"two")
    check_equal((second.status, second.body), (204, b""))
    check(ETAG.match(first.header("ETag")) and first.header("ETag") != second.header("ETag"), f"{first} {second}")
    read = get(ada.name)
    check_equal((read.body, read.header("ETag")), (b"two", second.header("ETag")))
    check_equal(status_of(first), f"pawl; verdict=accepted; token={ada.token}; mark={ada.token}; guarantee=committed")


@test
def every_body_of_up_to_1_mib_comes_back_byte_for_byte(ada):
    for body in (None, b"\0", bytes(range(256)) * 10, b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"", os.urandom(1 << 20)):
        check(put(ada.name, ada.header, body).status in (201, 204), repr(body)[:40])
        read = get(ada.name)
        check(read.body == (body or b""), repr(body)[:40])
        check_equal(read.header("Content-Length"), str(len(read.body)))
    refused(put(ada.name, ada.header, read.body + b"x"), 413, "too-large")
    check(get(ada.name).body == read.body, "a byte more was taken")


@test
def content_type_and_encoding_are_kept_as_sent(ada):
    for kind, encoding in (("text/plain; charset=utf-8", None), ("application/x.y+z", "gzip"), ("a/b", "br, gzip")):
        headers = [("Content-Type", kind)] + ([("Content-Encoding", encoding)] if encoding else [])
        put(ada.name, ada.header, b"x", *headers)
        for read in (get(ada.name), WORLD.gateway("HEAD", path(ada.name))):
            check_equal((read.header("Content-Type"), read.header("Content-Encoding")), (kind, encoding))
    put(ada.name, ada.header, b"x")
    check_equal((get(ada.name).header("Content-Type"), get(ada.name).header("Content-Encoding")),
                ("application/octet-stream", None))
    put(ada.name, ada.header, b"<script>", ("Content-Type", "text/html"))
    for answer in (get(ada.name), get(ada.name, ada.header), WORLD.gateway("HEAD", path(ada.name))):  # it is no page of this origin
        check_equal((answer.header("X-Content-Type-Options"), answer.header("Content-Security-Policy")), ("nosniff", "sandbox"))


@test
def a_lease_guards_its_own_name_and_everything_below(ada):
    for key in ("", "/a", "/a/b/c", "/%C3%A4", "/a%20b", "/%41", "/%2541", "/!$&'()*+,;=:@~"):
        check_equal(put(ada.name + key, ada.header, key.encode()).status, 201, key)
    check_equal(get(ada.name + "/A").body, b"/%41")
    check_equal(get(ada.name + "/%c3%a4").body, b"/%C3%A4")
    check_equal(get(ada.name + "/a").body, b"/a")
    check_equal((get(ada.name + "%2Fa").body, get(ada.name + "/a%2fb/c").body), (b"/a", b"/a/b/c"), "one key, whatever the spelling")
    refused(put(ada.name + "x", ada.header), 403, "wrong-lease")


# -- a deletion

@test
def a_deletion_is_for_the_live_holder_too(ada):
    put(ada.name, ada.header)
    refused(delete(ada.name, None), 428, "token-required")
    answer = delete(ada.name, ada.header)
    check_equal((answer.status, status_of(answer)),
                (204, f"pawl; verdict=accepted; token={ada.token}; mark={ada.token}; guarantee=committed"))
    check_equal(get(ada.name).status, 404)
    refused(delete(ada.name, ada.header), 404, "not-found")
    check_equal(put(ada.name, ada.header).status, 201)


# -- the fence, in its order

def ladder():
    """Each way to be refused by the fence, in the order of the contract: (code, status, lease, token, members)."""
    ada = Holder(holder="ada")
    put(ada.name, ada.header)
    bob = ada.successor(holder="bob")
    carl = Holder(holder="carl")
    name, never = bob.name, WORLD.name("never")
    WORLD.release(carl.name, carl.grant)
    known = {"lease": name, "resource": name, "current_token": bob.token, "current_epoch": bob.epoch, "mark": ada.token}
    gone = {"lease": carl.name, "resource": carl.name, "current_token": carl.token, "mark": 0, "holder": None}
    other_key = signed_token(Keys("k1"), name, bob.token, bob.epoch)
    return [
        ("token-required", 428, name, None, {"lease": name, "resource": name}),
        ("malformed-token", 400, name, bob.header + "x", {"lease": name, "resource": name}),
        ("bad-signature", 403, name, other_key, {"presented_token": bob.token}),
        ("bad-signature", 403, name, bob.header.replace('kid="k1"', 'kid="k9"'), {"presented_token": bob.token}),
        ("wrong-lease", 403, name, Holder().header, {"lease": name}),
        ("unissued-token", 412, name, bob.forged(token=bob.token + 10 ** 9), {**known, "presented_token": bob.token + 10 ** 9}),
        ("unissued-token", 412, name, bob.forged(epoch=bob.epoch + 1), {**known, "presented_epoch": bob.epoch + 1}),
        ("unissued-token", 412, name, bob.forged(hold="A" * 12), {**known, "presented_token": bob.token}),
        ("stale-token", 412, name, ada.header, {**known, "presented_token": ada.token, "holder": "bob"}),
        ("stale-token", 412, name, bob.forged(epoch=bob.epoch - 1), {**known, "presented_epoch": bob.epoch - 1}),
        ("lease-expired", 412, carl.name, carl.header, {**gone, "presented_token": carl.token}),
        ("lease-expired", 412, never, signed_token(WORLD.keys, never, 1, bob.epoch - 1), {"mark": 0, "current_token": None}),
    ]


@test
def every_refusal_of_the_fence_says_why_changes_nothing_and_comes_before_preconditions_and_before_not_found():
    for code, status, name, token, members in ladder():
        before = state(name)
        for act in (put, delete):
            answer = refused(act(name, token), status, code, **members)
            wanted = f"pawl; verdict=refused; reason={code}"
            if "presented_token" in answer.json:
                wanted += f"; token={answer.json['presented_token']}"
            if "mark" in answer.json:
                wanted += f"; mark={answer.json['mark']}"
            check_equal(status_of(answer), wanted)
            check_equal(answer.json["retryable"], False)
        if token is not None:
            refused(get(name, token), status, code, **members)
            refused(get(name + "/none", token), status, code)
            refused(get(name, token, ("If-None-Match", "*")), status, code)
        refused(put(name, token, b"x", ("If-Match", '"nope"')), status, code)
        refused(delete(name + "/none", token, ("If-Match", '"nope"')), status, code)
        check_equal(state(name), before, code)


@test
def what_is_wrong_with_the_request_itself_comes_before_the_fence():
    for code, _, name, token, _ in ladder():
        for headers in ([("If-Match", "x")], [("If-None-Match", '"')], [("Idempotency-Key", "a b")], [("If-Match", '"a"')] * 2,
                        [("Content-Type", "a/b")] * 2, [("Content-Encoding", "a")] * 2, [("Content-Type", "a/" + "b" * 255)],
                        [("Content-Encoding", "a" * 257)]):
            answer = refused(put(name, token, b"x", *headers), 400, "invalid-request")
            check_equal(status_of(answer), None, code)
        refused(put(name + "/..", token), 400, "invalid-request")
        refused(put(name + "?x", token), 400, "invalid-request")
        refused(put(name, token, b"x" * ((1 << 20) + 1)), 413, "too-large")
        refused(WORLD.gateway("DELETE", path(name), with_token(token), b"x"), 400, "invalid-request")


@test
def of_two_faults_of_a_token_the_first_in_the_order_is_told(ada):
    bob = ada.successor()
    other, strange = Holder(), Keys("k1")
    table = [
        ("malformed-token", ada.header.replace("mode=exclusive", "mode=x").replace("sig=:", "sig=:A")),
        ("bad-signature", signed_token(strange, other.name, ada.token, ada.epoch)),
        ("bad-signature", signed_token(strange, ada.name, ada.token, ada.epoch)),
        ("wrong-lease", signed_token(WORLD.keys, other.name, bob.token + 10 ** 9, bob.epoch)),
        ("wrong-lease", signed_token(WORLD.keys, other.name, 1, 1)),
        ("unissued-token", bob.forged(token=bob.token + 10 ** 9, hold="A" * 12)),
        ("stale-token", ada.forged(hold="A" * 12)),
    ]
    WORLD.release(bob.name, bob.grant)
    table += [("unissued-token", bob.forged(hold="A" * 12)), ("stale-token", ada.header), ("lease-expired", bob.header)]
    for code, token in table:
        check_equal(put(bob.name, token).code, code, token)


@test
def a_token_comes_once_and_is_the_canonical_text(ada):
    good = ada.header
    for token in ("", good + ", " + good, "x" * 2000):
        refused(put(ada.name, token), 400, "malformed-token")
    for twice in ([("Fencing-Token", good)] * 2, [("Fencing-Token", good), ("fencing-token", "")]):
        refused(WORLD.gateway("PUT", path(ada.name), twice, b"x"), 400, "malformed-token")
    check_equal(put(ada.name, good).status, 201)


# -- preconditions

@test
def preconditions_let_only_the_version_through_that_was_read(ada):
    """Which tags match: tests/scripts/test_gateway_scripts.py, preconditions_are_kept."""
    etag = put(ada.name, ada.header, b"1", ("If-None-Match", "*")).header("ETag")
    for headers in (("If-Match", '"AAAAAAAAAAAAAAAA"'), ("If-None-Match", "*"), ("If-None-Match", f'"x", W/{etag}')):
        answer = refused(put(ada.name, ada.header, b"2", headers), 412, "etag-mismatch", mark=ada.token, presented_token=ada.token)
        check_equal(status_of(answer), f"pawl; verdict=refused; reason=etag-mismatch; token={ada.token}; mark={ada.token}")
        refused(delete(ada.name, ada.header, headers), 412, "etag-mismatch")
    check_equal(put(ada.name, ada.header, b"2", ("If-Match", f'"x" ,\t{etag},"y"')).status, 204)
    refused(put(ada.name, ada.header, b"3", ("If-Match", etag)), 412, "etag-mismatch")
    check_equal(delete(ada.name, ada.header, ("If-Match", get(ada.name).header("ETag"))).status, 204)


@test
def a_precondition_that_cannot_be_read_is_refused(ada):
    put(ada.name, ada.header, b"1")
    for tags in ("", "x", '"x', 'x"', '"a" "b"', '"a",,"b"', ",", '"a",', "**", '*, "a"', '"a", *', 'w/"a"', 'W/ "a"', "W/", '"a b"',
                 "W/*"):
        for name in ("If-Match", "If-None-Match"):
            refused(put(ada.name, ada.header, b"2", (name, tags)), 400, "invalid-request")
            if name == "If-None-Match":
                refused(get(ada.name, None, (name, tags)), 400, "invalid-request")
    for name in ("If-Match", "If-None-Match"):
        refused(put(ada.name, ada.header, b"2", (name, '"a"'), (name, '"b"')), 400, "invalid-request")
    check_equal(get(ada.name).body, b"1")


# -- the same request again

@test
def what_comes_again_with_its_key_gets_its_first_answer(ada):
    key = ("Idempotency-Key", "k-1")
    first = put(ada.name, ada.header, b"one", key, ("If-None-Match", "*"))
    bob = ada.successor()
    again = put(ada.name, ada.header, b"one", key, ("If-None-Match", "*"))
    check_equal((again.status, again.header("ETag")), (201, first.header("ETag")), "it was done in time")
    check_equal(get(ada.name).header("ETag"), first.header("ETag"))
    key = ("Idempotency-Key", "k-2")
    check_equal([delete(ada.name, bob.header, key).status for _ in range(2)], [204, 204])
    refused(delete(ada.name, bob.header), 404, "not-found")


@test
def a_key_that_comes_with_another_request_is_refused(ada):
    key = ("Idempotency-Key", "k-1")
    put(ada.name, ada.header, b"one", key, ("Content-Type", "a/b"))
    before = state(ada.name)
    for body, headers in ((b"two", [("Content-Type", "a/b")]), (b"one", []), (b"one", [("Content-Type", "a/b"), ("Content-Encoding", "x")])):
        answer = refused(put(ada.name, ada.header, body, key, *headers), 422, "key-reused", mark=ada.token)
        check_equal(status_of(answer), f"pawl; verdict=refused; reason=key-reused; token={ada.token}; mark={ada.token}")
    refused(delete(ada.name, ada.header, key), 422, "key-reused")
    check_equal(state(ada.name), before)
    check_equal(put(ada.name + "/other", ada.header, b"x", key).status, 201, "a key belongs to its resource")


# -- reading

@test
def anybody_may_read_and_a_read_of_the_version_that_one_has_is_304(ada):
    missing = refused(get(ada.name), 404, "not-found")
    check_equal((missing.header("Fencing-Mark"), status_of(missing)), ("0", None))
    etag = put(ada.name, ada.header, b"one").header("ETag")
    read = get(ada.name)
    check_equal((read.status, read.body, read.header("ETag"), read.header("Fencing-Mark"), status_of(read)),
                (200, b"one", etag, str(ada.token), None))
    head = WORLD.gateway("HEAD", path(ada.name))
    check_equal((head.status, head.header("ETag"), head.header("Content-Length"), head.body), (200, etag, "3", b""))
    check_equal(WORLD.gateway("HEAD", path(ada.name + "/none")).status, 404)
    ranged = get(ada.name, None, ("Range", "bytes=0-0"))
    check_equal((ranged.status, ranged.body), (200, b"one"))
    for method in ("GET", "HEAD"):
        answer = WORLD.gateway(method, path(ada.name), [("If-None-Match", f'"x", W/{etag}')])
        check_equal((answer.status, answer.body, answer.header("ETag")), (304, b"", etag))
    check_equal(get(ada.name + "/none", None, ("If-None-Match", "*")).status, 404)
    fenced = get(ada.name, ada.header, ("If-None-Match", etag))
    check_equal((fenced.status, status_of(fenced)),
                (304, f"pawl; verdict=accepted; token={ada.token}; mark={ada.token}; guarantee=committed"))


@test
def after_a_fenced_read_no_older_write_lands(ada):
    put(ada.name, ada.header, b"one")
    bob = ada.successor()
    read = get(ada.name, bob.header)
    check_equal((read.status, read.body, read.header("Fencing-Mark"), status_of(read)),
                (200, b"one", str(bob.token),
                 f"pawl; verdict=accepted; token={bob.token}; mark={bob.token}; guarantee=committed"))
    missing = refused(get(ada.name + "/none", bob.header), 404, "not-found")
    check(status_of(missing).startswith("pawl; verdict=accepted"), status_of(missing))
    head = WORLD.gateway("HEAD", path(ada.name), with_token(ada.header))
    check_equal((head.status, head.body, status_of(head)),
                (412, b"", f"pawl; verdict=refused; reason=stale-token; token={ada.token}; mark={bob.token}"))


# -- what is stored

def listed(prefix="", limit=100):
    found = pages(WORLD.gateway, f"/v1/resources?prefix={urllib.parse.quote(prefix)}&limit={limit}")
    check(all(len(page) <= limit for page in found), found)
    return [item for page in found for item in page]


@test
def what_a_hand_has_stored_that_can_be_no_header_is_not_told_and_ends_no_gateway():
    ada = Holder()
    put(ada.name, ada.header)
    key = WORLD.redis("KEYS", f"pawl:*:r:{ada.name}")[0]
    for parts in ((b"e" * 70, b"", b"text/x"), (b"e-1", b"\0", b"text/x"), (b"e-1", b"", b"text/x\rA: b")):
        WORLD.redis("HSET", key, "z", b"\n".join((b"here", parts[0], b"5", *parts[1:])))
        refused(get(ada.name), 503, "store-not-ours")
    WORLD.redis("HSET", key, "z", b"here\n" + b"e" * 70 + b"\n5\n\ntext/x")
    refused(get(ada.name, None, ("If-None-Match", f'"{"e" * 70}"')), 503, "store-not-ours")
    check_equal(put(ada.name, ada.header, b"whole").status, 204)
    check_equal(get(ada.name).body, b"whole")


@test
def what_is_stored_is_listed_page_by_page():
    ada, bob = Holder(), Holder()
    names = [ada.name, *(f"{ada.name}/{rest}" for rest in ("a", "a/b", "a~b", "a&b=c d", "caf\u00e9", "\U0001F600", "x" * 300)), bob.name]
    for number, name in enumerate(names):
        check_equal(put(urllib.parse.quote(name), (bob if name == bob.name else ada).header, b"x" * number, ("Content-Type", "a/b")).status, 201)
    for limit in (100, 1, 3):
        items = {item["resource"]: item for item in listed(limit=limit) if item["lease"] in (ada.name, bob.name)}
        check_equal(set(items), set(names), limit)
        check_equal([items[name]["bytes"] for name in names], list(range(len(names))))
    one = items[names[1]]
    check_equal(one, {"resource": names[1], "lease": ada.name, "bytes": 1, "etag": get(names[1]).header("ETag"), "content_type": "a/b"})
    for prefix in (f"{ada.name}/a", f"{ada.name}/", names[5], ada.name):
        check_equal([item["resource"] for item in listed(prefix, 2)], sorted((name for name in names if name.startswith(prefix)), key=str.encode))
    delete(urllib.parse.quote(names[1]), ada.header, ("Idempotency-Key", "k"))
    check_equal([item["resource"] for item in listed(f"{ada.name}/a")], sorted(names[2:5], key=str.encode))


@test
def a_list_of_what_is_stored_refuses_what_it_cannot_read(ada):
    for rest in "ab":
        put(f"{ada.name}/{rest}", ada.header)
    cursor = WORLD.gateway("GET", "/v1/resources?limit=1").json["next_cursor"]
    for query, status in (("limit=0", 422), ("limit=1001", 422), ("limit=x", 400), ("prefix=a&prefix=b", 400), ("what=x", 400),
                          ("prefix=" + "x" * 513, 400), ("prefix=a%00b", 400), ("cursor=" + cursor + "61", 400),
                          ("prefix=other&cursor=" + cursor, 400), ("cursor=00.x.", 400)):
        check_equal(WORLD.gateway("GET", "/v1/resources?" + query).status, status, query)
    check_equal(WORLD.gateway("HEAD", "/v1/resources").status, 200)
    check_equal(WORLD.gateway("POST", "/v1/resources", body=b"").status, 405)


# -- marks

@test
def a_mark_is_the_highest_token_that_was_let_through():
    name = WORLD.name("m")
    check_equal(mark(name), {"lease": name, "mark": 0, "epoch": 0, "token": 0, "resources": 0, "bytes": 0})
    ada = Holder(name)
    check_equal(mark(name), {"lease": name, "mark": 0, "epoch": 0, "token": ada.token, "resources": 0, "bytes": 0})
    put(name, ada.header)
    stored = {"resources": 1, "bytes": len(b"value")}
    check_equal(mark(name), {"lease": name, "mark": ada.token, "epoch": ada.epoch, "token": ada.token, **stored})
    bob = ada.successor()
    check_equal(mark(name), {"lease": name, "mark": ada.token, "epoch": ada.epoch, "token": bob.token, **stored})
    check_equal(WORLD.gateway("HEAD", f"/v1/marks/{name}").status, 200)
    for wrong in ("-a", "a%2Fb", "a" * 129, "a?x=1"):
        check_equal(WORLD.gateway("GET", f"/v1/marks/{wrong}").status, 400, wrong)


# -- the check for other proxies

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND", "BREW")


@test
def the_check_lets_the_live_holder_pass_whatever_the_method_and_the_rest(ada):
    for method in METHODS:
        for rest in ("", "/orders/7", "/%2F/../x?a=b", "?deny=native", "?x=y"):
            answer = checked(ada.name, ada.header, rest, method)
            check_equal((answer.status, answer.body, answer.header("Fencing-Token-Verified"), status_of(answer)),
                        (200, b"", str(ada.token),
                         f"pawl; verdict=accepted; token={ada.token}; mark={ada.token}; guarantee=admitted"), method + rest)
    for method in ("POST", "GET", "DELETE"):  # a body is read and forgotten
        check_equal(WORLD.gateway(method, f"/v1/check/{ada.name}", with_token(ada.header), os.urandom(50000)).status, 200, method)
    for name, status in (("-a", 400), ("a%2Fb", 400), ("a" * 129, 400), ("%00", 400), ("a%20b", 400), ("", 404)):
        check_equal(checked(name, ada.header).status, status, name)
    refused(WORLD.gateway("GET", "/v1/check", with_token(ada.header)), 404, "not-found")


@test
def the_check_refuses_with_403_and_without_a_token_with_401():
    for code, native, name, token, members in ladder():
        members = {**members, "resource": None}
        before = state(name)
        for query, status in (("", 401 if native == 428 else 403), ("?deny=native", native), ("/x?deny=native", native),
                              ("?deny=nativ", 401 if native == 428 else 403), ("?x=1&deny=native", 401 if native == 428 else 403)):
            answer = refused(checked(name, token, query), status, code, **members)
            check(status_of(answer).startswith(f"pawl; verdict=refused; reason={code}"), answer)
            for method in ("HEAD", "POST", "OPTIONS", "BREW"):
                other = checked(name, token, query, method)
                check_equal((other.status, status_of(other)), (status, status_of(answer)), f"{method} {query}")
        check_equal(state(name), before, code)


# -- shared holds and permits

@test
def one_of_many_may_read_and_not_write():
    for way in ({"mode": "shared"}, {"permits": 3}):
        writer = Holder()
        put(writer.name, writer.header, b"one")
        WORLD.release(writer.name, writer.grant)
        ann, ben = (Holder(writer.name, **way) for _ in range(2))
        before = state(ann.name)
        for holder in (ann, ben):
            for act in (put, delete, checked):
                answer = refused(act(ann.name, holder.header), 403, "wrong-mode", lease=ann.name, presented_token=holder.token,
                                 current_token=ben.token)
                check(status_of(answer).startswith(f"pawl; verdict=refused; reason=wrong-mode; token={holder.token}; mark="), answer)
        check_equal(state(ann.name), before)
        for holder in (ann, ben):
            read = get(ann.name, holder.header)
            check_equal((read.status, read.body, status_of(read)),
                        (200, b"one", f"pawl; verdict=accepted; token={holder.token}; mark={holder.token}; guarantee=committed"))
        WORLD.release(ben.name, ben.grant)
        answer = refused(get(ann.name, ben.header), 412, "stale-token", current_token=ben.token, presented_token=ben.token)
        check("newer" not in answer.json["detail"] and "granted since" not in answer.json["detail"], answer.json["detail"])
        check_equal(get(ann.name, ann.header).status, 200, "another's end is not its own")


# -- what is asked of a token

BOTH = (WORLD.lease, WORLD.gateway)
INSPECT = "/v1/tokens/inspect"
UUID = "urn:uuid:01234567-89ab-4cde-8f01-23456789abcd"


def inspect(client, **body):
    answer = client("POST", INSPECT, body=body)
    check_equal(answer.status, 200, repr(answer))
    return answer.json


def write(name, header):
    """None, or the code of the refusal."""
    answer = WORLD.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": header}, body=b"x")
    return answer.code if answer.status >= 300 else None


def holds():
    """Each kind of token that the fence may see: {what it is: (lease, header)}."""
    held, late, over, shared, free = (WORLD.name(stem) for stem in ("held", "late", "over", "shared", "free"))
    grants = {name: WORLD.acquire(name, holder="ada") for name in (held, late, free)}
    grants |= {over: WORLD.acquire(over, holder="ada", ttl_ms=100), shared: WORLD.acquire(shared, holder="ada", mode="shared")}
    for name in (late, free):
        WORLD.release(name, grants[name])
    for number in range(3):
        grant = WORLD.acquire(late, holder=f"bob-{number}")
        WORLD.release(late, grant) if number < 2 else None
    wait_until(lambda: WORLD.look(over)["state"] == "free", "it is over")
    return {"held": (held, grants[held]), "late": (late, grants[late]), "over": (over, grants[over]), "free": (free, grants[free]),
            "shared": (shared, grants[shared])}


@test
def the_verdict_is_what_a_write_is_answered_and_asking_changes_nothing():
    found = holds()
    before = {kind: WORLD.redis("HGET", stripe_key(name), f"l:{name}") for kind, (name, _) in found.items()}
    said = {(kind, client.service): inspect(client, fencing_token=grant["fencing_token"])
            for kind, (_, grant) in found.items() for client in BOTH}
    check_equal({kind: WORLD.redis("HGET", stripe_key(name), f"l:{name}") for kind, (name, _) in found.items()}, before)
    for kind, (name, grant) in found.items():
        code = write(name, grant["fencing_token"])
        for client in BOTH:
            one = said[(kind, client.service)]
            check_equal((one["verdict"]["ok"], one["verdict"]["code"]), (code is None, code), kind)
            check_equal((one["token"], one["lease"], one["hold"], one["store"], one["signature"], one["hold_state"]["holder"]),
                        (grant["token"], name, one["hold"], "ours", "good", "ada"), kind)
    states = {kind: (said[(kind, "lease")]["hold_state"]["ended"], said[(kind, "gateway")]["grants_since"]) for kind in found}
    check_equal(states, {"held": (None, 0), "late": ("released", 3), "over": ("expired", 0), "free": ("released", 0), "shared": (None, 0)})
    late = said[("late", "lease")]
    check_equal(late["hold_state"]["granted_at_ms"] <= late["hold_state"]["ended_at_ms"] <= late["now_ms"], True)
    check_equal(late["current_token"], WORLD.look(found["late"][0])["token"])


@test
def what_is_forged_foreign_or_no_token_is_told_in_the_order_of_the_fence(name):
    header = WORLD.acquire(name)["fencing_token"]
    other = header.replace(f'store="{WORLD.keys.store}"', f'store="{"x" * 24}"')
    for text, shown in ((header[:-8] + "AAAAAA=:", ("bad-signature", "ours", "bad", WORLD.look(name)["token"])),
                        (header.replace('kid="', 'kid="z'), ("bad-signature", "ours", "unknown-key", WORLD.look(name)["token"])),
                        (other, ("bad-signature", "another", "bad", None)), ("34", ("malformed-token", None, None, None)),
                        (header + "x" * 2000, ("malformed-token", None, None, None))):
        for client in BOTH:
            said = inspect(client, fencing_token=text)
            check_equal((said["verdict"]["code"], said["store"], said["signature"], said["current_token"]), shown, text[:60])


@test
def a_refusal_is_found_by_its_instance_beside_its_lease(name):
    grant = WORLD.acquire(name)
    WORLD.redis("RPUSH", f"{stripe_key(name)}:f:{name}", f"7.9.1\trefused\t33\tada\x1fops\t5000\tstale-token\x1fc34\x1fgGW\x1fi{UUID[9:]}\x1fpa/b")
    for client in BOTH:
        said = inspect(client, instance=UUID, lease=name)
        check_equal([said[key] for key in ("found", "lease", "code", "at_ms", "token", "holder", "current_token", "gateway", "resource")],
                    [True, name, "stale-token", 5000, 33, "ada", 34, "GW", "a/b"])
        check_equal(inspect(client, instance=UUID[:-1] + "0", lease=name)["found"], False)
    for body in ({}, {"instance": UUID}, {"instance": "x", "lease": name}, {"instance": UUID, "lease": "/"}, {"fencing_token": 3},
                 {"fencing_token": grant["fencing_token"], "lease": name}, {"fencing_token": "x", "instance": UUID, "lease": name}, {"x": 1}):
        refused(WORLD.gateway("POST", INSPECT, body=body), 400, "invalid-request")


main(WORLD.close)
