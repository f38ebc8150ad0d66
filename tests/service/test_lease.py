#!/usr/bin/python3
"""pawl-lease as its users see it: acquire, replay, renew, release, look, list, and how a hold ends."""

import json
import zlib

from world import World, check, check_equal, check_in, main, read_token, test, wait_until
from world.asking import fresh_id, path, refused
from world.record import record_of

WORLD = World("--log-level", "debug", "--log-format", "json")
NEVER = "x" * 22  # a lease_id that holds nothing


def expires(name):
    """Waits until the hold has run out."""
    return wait_until(lambda: WORLD.look(name)["state"] == "free", f"{name} expires")


def expired_hold(**ask):
    name = WORLD.name()
    grant = WORLD.acquire(name, ttl_ms=100, **ask)
    expires(name)
    return name, grant


def renew(name, lease_id, ttl_ms=None, token=None):
    headers = [("Lease-Id", lease_id)] + ([("Fencing-Token", token)] if token is not None else [])
    return WORLD.lease("PUT", path(name), headers, None if ttl_ms is None else {"ttl_ms": ttl_ms})


def release(name, lease_id, token=None, query="", **headers):
    pairs = [("Lease-Id", lease_id)] + ([("Fencing-Token", token)] if token is not None else [])
    return WORLD.lease("DELETE", path(name) + query, pairs + [(n.replace("_", "-"), v) for n, v in headers.items()])


# -- acquire

@test
def an_acquire_without_a_body_is_granted_with_the_defaults():
    name = WORLD.name()
    answer = WORLD.lease("POST", path(name))
    check_equal(answer.status, 201)
    grant = answer.json
    wanted = {"lease": name, "holder": "anonymous", "mode": "exclusive", "holds": 1, "ttl_ms": 30000,
              "renew_in_ms": 10000, "waited_ms": 0, "meta": {}}
    check_equal({member: grant[member] for member in wanted}, wanted)
    check(0 < grant["expires_in_ms"] <= 30000, grant)
    check(len(grant["lease_id"]) >= 22, grant)
    check_equal(answer.header("Fencing-Token"), grant["fencing_token"])


@test
def an_acquire_gets_what_it_asked_for():
    name, lease_id = WORLD.name(), fresh_id()
    meta = {"ticket": 7, "wer": "Käthe", "deep": [[{"a": None}]], "n": 1.5e3}
    grant = WORLD.acquire(name, holder="billing-7@höst3", ttl_ms=1000, lease_id=lease_id, meta=meta)
    check_equal((grant["holder"], grant["ttl_ms"], grant["lease_id"], grant["meta"], grant["renew_in_ms"]),
                ("billing-7@höst3", 1000, lease_id, meta, 333))


@test
def a_second_acquire_is_told_who_holds_and_for_how_long():
    name = WORLD.name()
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
def an_acquire_with_an_idempotency_key_needs_a_lease_id_of_the_clients_own():
    name = WORLD.name()
    refused(WORLD.lease("POST", path(name), {"Idempotency-Key": "k"}, {}), 400, "invalid-request")
    refused(WORLD.lease("POST", path(name), {"Idempotency-Key": "k"}), 400, "invalid-request")
    check_equal(WORLD.look(name)["token"], 0)
    headers = {"Idempotency-Key": "k"}
    check_equal(WORLD.lease("POST", path(name), headers, {"lease_id": fresh_id()}).status, 201)


@test
def a_lease_id_is_for_one_hold():
    name, lease_id = WORLD.name(), fresh_id()
    grant = WORLD.acquire(name, lease_id=lease_id)
    WORLD.release(name, grant)
    refused(WORLD.lease("POST", path(name), body={"lease_id": lease_id}), 409, "hold-over", ended="released", lease=name)
    name, grant = expired_hold(lease_id=lease_id)
    refused(WORLD.lease("POST", path(name), body={"lease_id": lease_id}), 409, "hold-over", ended="expired", lease=name)
    check_equal(WORLD.look(name)["state"], "free")
    check_equal(WORLD.acquire(name, lease_id=fresh_id())["lease"], name)


# -- the token


@test
def the_header_says_what_the_body_says_and_its_signature_is_right():
    name = WORLD.name("a.B_c-d:e")
    grant = WORLD.acquire(name)
    read = read_token(grant["fencing_token"])
    check_equal((int(read["token"]), read["lease"], read["mode"], int(read["epoch"]), read["kid"]),
                (grant["token"], name, "exclusive", grant["epoch"], "k1"))
    check(WORLD.keys.verifies(grant["fencing_token"]), grant["fencing_token"])
    check(grant["lease_id"] not in grant["fencing_token"], "the secret is in the header")


@test
def each_hold_has_a_name_of_its_own_which_renewal_and_replay_keep():
    name, lease_id = WORLD.name(), fresh_id()
    first = WORLD.acquire(name, lease_id=lease_id)
    hold = read_token(first["fencing_token"])["hold"]
    check_equal(read_token(WORLD.acquire(name, 200, lease_id=lease_id)["fencing_token"])["hold"], hold)
    check_equal(read_token(renew(name, lease_id).json["fencing_token"])["hold"], hold)
    release(name, lease_id)
    check(read_token(WORLD.acquire(name)["fencing_token"])["hold"] != hold, "a hold's name came again")


# -- renew, release

@test
def a_renewal_sets_the_ttl_anew_longer_or_shorter_and_keeps_the_token():
    name = WORLD.name()
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

@test
def a_renewal_or_release_of_what_is_not_held_says_how_it_ended():
    free, other, released = WORLD.name(), WORLD.name(), WORLD.name()
    WORLD.acquire(other)
    expired, over = expired_hold()
    gone = WORLD.acquire(released)
    WORLD.release(released, gone)
    for name, lease_id, ended in ((free, NEVER, "unknown"), (other, NEVER, "unknown"), (expired, over["lease_id"], "expired"),
                                  (released, gone["lease_id"], "released")):
        refused(renew(name, lease_id), 410, "lease-lost", ended=ended, lease=name)
        if ended != "released":
            refused(release(name, lease_id), 410, "lease-lost", ended=ended, lease=name)
    check_equal(WORLD.look(other)["state"], "held")


@test
def a_release_makes_the_lease_free_at_once():
    name = WORLD.name()
    grant = WORLD.acquire(name)
    answer = release(name, grant["lease_id"])
    check_equal((answer.status, answer.body), (204, b""))
    check_equal(WORLD.look(name), {"lease": name, "state": "free", "token": grant["token"], "epoch": grant["epoch"],
                                   "mode": None, "holders": [], "waiting": 0})
    check(WORLD.acquire(name)["token"] > grant["token"], "the token did not rise")


@test
def a_release_that_comes_again_has_the_same_answer_until_somebody_else_came():
    name = WORLD.name()
    grant = WORLD.acquire(name)
    for _ in range(3):
        check_equal(release(name, grant["lease_id"]).status, 204)
    check_equal(release(name, grant["lease_id"], query="?all=true", Idempotency_Key="a-key").status, 204)
    WORLD.acquire(name)
    refused(release(name, grant["lease_id"]), 410, "lease-lost", ended="unknown")
    check_equal(WORLD.look(name)["state"], "held")


@test
def all_true_is_the_only_query_of_a_release():
    name = WORLD.name()
    grant = WORLD.acquire(name)
    for query in ("?all=false", "?all=1", "?all", "?all=", "?al=true", "?all=true&all=true", "?all=true&x=1", "?x=1"):
        refused(release(name, grant["lease_id"], query=query), 400, "invalid-request")
    check_equal(WORLD.look(name)["state"], "held")
    check_equal(release(name, grant["lease_id"], query="?all=true").status, 204)


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
             (elsewhere, (403, "wrong-lease")), (older["fencing_token"], (410, "lease-lost"))]
    for given, wanted in table:
        for act in (renew, release):
            if wanted is not None:
                refused(act(name, grant["lease_id"], token=given), *wanted)
    for method in ("PUT", "DELETE"):
        twice = [("Lease-Id", grant["lease_id"]), ("Fencing-Token", token), ("Fencing-Token", token)]
        refused(WORLD.lease(method, path(name), twice), 400, "malformed-token")
    check_equal(WORLD.look(name)["token"], grant["token"])


@test
def the_lease_id_header_must_come_once_and_be_one():
    name = WORLD.name()
    grant = WORLD.acquire(name)
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
def a_look_at_a_lease_that_never_was_says_free():
    name = WORLD.name()
    looked = WORLD.look(name)
    check(looked.pop("epoch") > 0, "no epoch")
    check_equal(looked, {"lease": name, "state": "free", "token": 0, "mode": None, "holders": [], "waiting": 0})


@test
def a_look_tells_what_anybody_may_know_and_no_secret():
    name = WORLD.name()
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


@test
def head_tells_the_same_without_the_body():
    name = WORLD.name()
    get, head = WORLD.lease("GET", path(name)), WORLD.lease("HEAD", path(name))
    check_equal((head.status, head.body, head.header("Content-Length")), (200, b"", get.header("Content-Length")))


# -- list

def listed(query):
    """All pages: [[names of a page], ...] and the items."""
    pages, items, cursor = [], [], None
    while True:
        more = f"&cursor={cursor}" if cursor else ""
        answer = WORLD.lease("GET", f"/v1/leases?{query}{more}")
        check_equal(answer.status, 200, repr(answer))
        pages.append([item["lease"] for item in answer.json["items"]])
        items += answer.json["items"]
        cursor = answer.json["next_cursor"]
        if cursor is None:
            return pages, items


@test
def a_list_has_every_held_lease_exactly_once_page_by_page():
    names = sorted(f"list-a:{i}" for i in range(23))
    grants = {name: WORLD.acquire(name, holder="h-" + name) for name in names}
    gone = WORLD.acquire("list-a:gone")
    WORLD.release("list-a:gone", gone)
    for limit in (1, 5, 23, 1000):
        pages, items = listed(f"prefix=list-a:&limit={limit}")
        check_equal(sorted(name for page in pages for name in page), names, f"limit {limit}")
        check(all(len(page) <= limit for page in pages), f"limit {limit}: {pages}")
    check_equal({item["lease"]: (item["token"], item["holders"][0]["holder"]) for item in items},
                {name: (grants[name]["token"], "h-" + name) for name in names})
    text = json.dumps(items)
    for grant in grants.values():
        check(grant["lease_id"] not in text and read_token(grant["fencing_token"])["sig"] not in text, "a secret is listed")


@test
def a_list_item_is_what_a_look_gives():
    WORLD.acquire("list-b:1", meta={"a": 1})
    item, looked = listed("prefix=list-b:")[1][0], WORLD.look("list-b:1")
    for one in (item, looked):
        for member in ("expires_in_ms", "held_for_ms"):
            del one["holders"][0][member]
    check_equal(item, looked)


@test
def a_list_gives_100_unless_told():
    for i in range(101):
        WORLD.acquire(f"list-d:{i}")
    answer = WORLD.lease("GET", "/v1/leases?prefix=list-d:").json
    check_equal((len(answer["items"]), answer["next_cursor"] is None), (100, False))


@test
def a_query_that_is_not_one_is_refused():
    for query in ("?state=free", "?state=", "?limit=", "?limit=x", "?limit=1.5", "?limit=-1", "?limit=+1", "?limit=0x1",
                  "?limit=5&limit=5", "?prefix=-", "?prefix=a%2Fb", "?prefix=a%00", "?prefix=%", "?prefix=" + "x" * 129,
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
    for query in ("prefix=list-b:", "prefix=list-a:&state=waiting", "limit=2"):
        refused(WORLD.lease("GET", f"/v1/leases?{query}&cursor={cursor}"), 400, "invalid-request")


@test
def a_cursor_outlives_the_lease_that_it_points_at():
    for i in range(4):
        WORLD.acquire(f"list-e:{i}", lease_id=f"list-e-{i}" + "x" * 20)
    page = WORLD.lease("GET", "/v1/leases?prefix=list-e:&limit=2").json
    for item in page["items"]:
        release(item["lease"], f"list-e-{item['lease'][-1]}" + "x" * 20)
    rest = WORLD.lease("GET", f"/v1/leases?prefix=list-e:&limit=2&cursor={page['next_cursor']}").json
    both = sorted(item["lease"] for item in page["items"] + rest["items"])
    check_equal(both, [f"list-e:{i}" for i in range(4)])


# -- the end of a hold


def in_stripe(number):
    """A name that lives there. The sweep begins with stripe 0 and takes one every 20 ms."""
    return next(name for name in (f"gone:{i}" for i in range(10 ** 6)) if zlib.crc32(name.encode()) & 0xFF == number)


@test
def the_sweep_ends_what_expired_and_nothing_of_a_lease_stays_after_it_was_remembered():
    world = World(lease_flags=["--remember", "1s"])
    expiring, leaving = in_stripe(40), in_stripe(100)
    world.acquire(expiring, ttl_ms=100)
    grant = world.acquire(leaving)
    world.release(leaving, grant)
    wait_until(lambda: record_of(world.redis, expiring).get("s") == "expired", "the sweep has ended it, though nobody looked")
    check_equal(record_of(world.redis, expiring).get("o"), None, "its holder")
    wait_until(lambda: not (record_of(world.redis, expiring) or record_of(world.redis, leaving) or world.redis("KEYS", "*gone:*")),
               "the sweep has forgotten both, with all that was kept of them")
    indexes = world.redis("KEYS", "*:due")
    members = [member for key in indexes for member in world.redis("ZRANGE", key, 0, -1) if not member.startswith(b":d:")]
    check_equal(members, [])
    check_equal(world.look(leaving)["token"], 0)
    check(world.acquire(leaving)["token"] > grant["token"], "a token came again")
    world.close()


# -- secrets

@test
def no_secret_is_ever_logged():
    name, lease_id = WORLD.name(), "secret-" + fresh_id()
    grant = WORLD.acquire(name, lease_id=lease_id)
    for headers in ({"Lease-Id": lease_id}, {"Lease-Id": lease_id, "Fencing-Token": grant["fencing_token"]}):
        WORLD.lease("PUT", path(name), headers, {"ttl_ms": 5})
        WORLD.lease("PUT", path(name), headers, b"{")
        WORLD.lease("PUT", path(name), headers)
    WORLD.lease("POST", path(name), body={"lease_id": lease_id, "x": 1})
    answer = WORLD.lease("DELETE", path(name), {"Lease-Id": lease_id})
    last = WORLD.lease("GET", path(name) + "?last")
    WORLD.lease_daemon.line(lambda line: last.json["instance"] in line, "the last request")
    log = WORLD.lease_daemon.log()
    check_equal(answer.status, 204)
    check_in(f"/v1/leases/{name}", log, "nothing was logged")
    for secret in (lease_id, read_token(grant["fencing_token"])["sig"], WORLD.keys.text().strip().partition(":")[2]):
        check(secret not in log, f"{secret} was logged")


main(WORLD.close)
