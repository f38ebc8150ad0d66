#!/usr/bin/python3
"""Every kind of lock but waiting: shared, permits, re-entry and its Idempotency-Keys, lock delay, force-release, states."""

from world import World, check, check_equal, gives, main, read_token, test, wait_until
from world.asking import fresh_id, path, refused
from world.record import stripe_key
from world.waiting import Waiter

WORLD = World()
gives["lease_id"] = fresh_id


def ask(name, key=None, **body):
    return WORLD.lease("POST", path(name), {"Idempotency-Key": key} if key else {}, body)


def release(name, lease_id, query="", key=None):
    headers = {"Lease-Id": lease_id, **({"Idempotency-Key": key} if key else {})}
    return WORLD.lease("DELETE", path(name) + query, headers)


def force(name, **body):
    return WORLD.lease("POST", path(name) + "/force-release", body=body or None)


def granted(answer, status=201, **members):
    check_equal(answer.status, status, repr(answer))
    for member, value in members.items():
        check_equal(answer.json[member], value, member)
    return answer.json


def state_of(name):
    return WORLD.look(name)["state"]


def listed(prefix, state):
    answer = WORLD.lease("GET", f"/v1/leases?prefix={prefix}&state={state}")
    check_equal(answer.status, 200, repr(answer))
    return {item["lease"]: item for item in answer.json["items"]}


# -- shared

@test
def any_number_hold_together_when_all_of_them_share(name):
    grants = [WORLD.acquire(name, mode="shared", holder=f"reader-{i}", meta={"n": i}) for i in range(5)]
    check_equal([grant["mode"] for grant in grants], ["shared"] * 5)
    check_equal([read_token(grant["fencing_token"])["mode"] for grant in grants], ["shared"] * 5)
    tokens = [grant["token"] for grant in grants]
    check_equal(tokens, sorted(set(tokens)), "each has a token of its own")
    check_equal(len({read_token(grant["fencing_token"])["hold"] for grant in grants}), 5)
    looked = WORLD.look(name)
    check_equal((looked["state"], looked["mode"], looked["token"]), ("held", "shared", tokens[-1]))
    check_equal({(one["holder"], one["token"], one["mode"], one["meta"]["n"]) for one in looked["holders"]},
                {(f"reader-{i}", tokens[i], "shared", i) for i in range(5)})
    for method, ask, status in (("PUT", {"ttl_ms": 40000}, 200), ("POST", {"lease_id": grants[1]["lease_id"], "mode": "shared"}, 200)):
        answer = WORLD.lease(method, path(name), {"Lease-Id": grants[1]["lease_id"]} if method == "PUT" else {}, ask)
        granted(answer, status, token=tokens[1], mode="shared", ttl_ms=40000, fencing_token=grants[1]["fencing_token"])
    check_equal(release(name, grants[1]["lease_id"]).status, 204)
    check_equal([holder["holder"] for holder in WORLD.look(name)["holders"]].count("reader-1"), 0)


# -- permits

@test
def so_many_hold_as_there_are_permits_and_all_state_the_same_number(name):
    grants = [WORLD.acquire(name, permits=3) for _ in range(3)]
    check_equal([(grant["mode"], read_token(grant["fencing_token"])["mode"]) for grant in grants],
                [("permits", "permits")] * 3)
    for body in ({"permits": 3}, {}, {"mode": "shared"}, {"permits": 1}):
        refused(ask(name, **body), 409, "lease-held")
    refused(ask(name, permits=2), 409, "permits-mismatch", permits=3, lease=name, retryable=False)
    check_equal((WORLD.look(name)["mode"], len(WORLD.look(name)["holders"])), ("permits", 3))
    WORLD.release(name, grants[1])
    check(granted(ask(name, permits=3))["token"] > grants[2]["token"], "the token did not rise")


# -- re-entry

@test
def a_release_leaves_once_and_the_last_one_or_all_true_frees(name, lease_id):
    for _ in range(3):
        ask(name, lease_id=lease_id, reentrant=True)
    for left in (2, 1):
        answer = release(name, lease_id)
        check_equal((answer.status, answer.json, state_of(name)), (200, {"holds": left}, "held"))
    check_equal((release(name, lease_id).status, state_of(name)), (204, "free"))
    for _ in range(3):
        ask(name, lease_id=(other := lease_id[::-1]), reentrant=True)
    check_equal([release(name, other, "?all=true").status for _ in range(2)], [204, 204])
    check_equal(state_of(name), "free")


# -- Idempotency-Key

@test
def a_key_with_another_request_is_refused_and_changes_nothing(name, lease_id):
    ask(name, "k1", lease_id=lease_id)
    for _ in range(2):  # it counts once
        granted(ask(name, "k2", lease_id=lease_id, reentrant=True), 200, holds=2)
    for key, body in (("k2", {"reentrant": True, "ttl_ms": 5000}), ("k2", {}), ("k1", {"reentrant": True})):
        refused(ask(name, key, lease_id=lease_id, **body), 422, "key-reused", retryable=False)
    refused(release(name, lease_id, key="k2"), 422, "key-reused")
    looked = WORLD.look(name)["holders"][0]
    check_equal(looked["holds"], 2)
    check(looked["expires_in_ms"] > 25000, looked)


@test
def a_release_that_is_sent_again_with_its_key_leaves_once(name, lease_id):
    for _ in range(4):
        ask(name, lease_id=lease_id, reentrant=True)
    for _ in range(3):
        check_equal(release(name, lease_id, key="r1").json, {"holds": 3})
    refused(release(name, lease_id, "?all=true", key="r1"), 422, "key-reused")
    check_equal(release(name, lease_id, key="r2").json, {"holds": 2})
    check_equal(release(name, lease_id, key="r1").json, {"holds": 3}, "the first answer")
    check_equal(WORLD.look(name)["holders"][0]["holds"], 2)
    for _ in range(2):
        check_equal(release(name, lease_id, "?all=true", key="r3").status, 204)
    check_equal(state_of(name), "free")


@test
def a_hold_takes_no_more_than_a_thousand_keys(name, lease_id):
    granted(ask(name, "first", lease_id=lease_id))
    keys = f"{stripe_key(name)}:k:{name}/{WORLD.digest(lease_id)}"
    WORLD.redis("HSET", keys, *[part for i in range(999) for part in (f"other-{i}", "1 x")])
    refused(ask(name, "more", lease_id=lease_id, reentrant=True), 422, "out-of-range")
    refused(release(name, lease_id, key="more"), 422, "out-of-range")


# -- lock delay

@test
def a_delayed_lease_is_held_by_nobody_and_says_for_how_long():
    name = WORLD.name("delay-b")
    grant = WORLD.acquire(name, ttl_ms=100, lock_delay_ms=600000)
    looked = wait_until(lambda: state_of(name) == "delayed" and WORLD.look(name), "it is delayed")
    check_equal((looked["token"], looked["mode"], looked["holders"]), (grant["token"], None, []))
    answer = refused(ask(name), 409, "lease-held", holder=None, token=grant["token"])
    check(590000 < answer.json["expires_in_ms"] <= 600000, answer)
    check(590 < int(answer.header("Retry-After")) <= 601, "its end is known")
    check_equal(set(listed("delay-b", "delayed")), {name})
    check_equal(listed("delay-b", "held"), {})
    refused(WORLD.lease("PUT", path(name), {"Lease-Id": grant["lease_id"]}), 410, "lease-lost", ended="expired")


# -- force-release

@test
def an_administrator_ends_the_hold_and_its_holder_is_told():
    def forced():
        return WORLD.lease.metric('pawl_lease_operations_total{what="force-released"}')
    name, lease_id, before = WORLD.name(), fresh_id(), forced()
    grant = WORLD.acquire(name, lease_id=lease_id)
    answer = force(name, reason="it hangs; ärgerlich")
    check_equal((answer.status, answer.json), (200, {"released_token": grant["token"]}))
    check_equal(forced(), before + 1)
    check_equal((state_of(name), WORLD.look(name)["token"]), ("free", grant["token"]))
    refused(WORLD.lease("PUT", path(name), {"Lease-Id": lease_id}), 410, "lease-lost", ended="forced")
    refused(release(name, lease_id), 410, "lease-lost", ended="forced")
    refused(ask(name, lease_id=lease_id), 409, "hold-over", ended="forced")
    check_equal(state_of(name), "free")
    write = WORLD.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": grant["fencing_token"]}, b"late")
    check_equal((write.status, write.code), (412, "lease-expired"), repr(write))


@test
def a_token_that_is_expected_must_be_that_of_a_hold(name):
    refused(force(name, expect_token=1), 412, "token-moved-on", token=0, lease=name)
    old = WORLD.acquire(name)
    WORLD.release(name, old)
    refused(force(name, expect_token=old["token"]), 412, "token-moved-on", token=old["token"])
    grant = WORLD.acquire(name)
    for token in (old["token"], grant["token"] + 1):
        refused(force(name, expect_token=token), 412, "token-moved-on", token=grant["token"], retryable=False)
    check_equal(state_of(name), "held")
    check_equal(force(name, expect_token=grant["token"]).json, {"released_token": grant["token"]})
    check_equal(state_of(name), "free")


@test
def more_holders_than_one_step_takes_are_all_ended(name):
    for _ in range(600):
        WORLD.acquire(name, mode="shared", ttl_ms=600000)
    last = WORLD.acquire(name, mode="shared", ttl_ms=60000)  # ends first, and so stands in front
    check_equal(len(WORLD.look(name)["holders"]), 601)
    check_equal(force(name).json, {"released_token": last["token"]})
    looked = WORLD.look(name)
    check_equal((looked["state"], looked["token"], looked["holders"]), ("free", last["token"], []))


# -- by state, and with somebody in line

@test
def who_waits_is_seen_and_gets_what_is_released():
    name = WORLD.name("waited")
    first = WORLD.acquire(name)
    waiter = Waiter(WORLD, WORLD.client(WORLD.lease_daemon), name, "bob", meta={"b": 2}, ttl_ms=20000)
    item = listed("waited", "waiting")[name]
    check_equal((item["state"], item["waiting"], item["holders"][0]["token"]), ("held", 1, first["token"]))
    check_equal(listed("waited", "held")[name]["waiting"], 1)
    WORLD.release(name, first)
    grant = granted(waiter.answered(), 201, holder="bob", meta={"b": 2}, ttl_ms=20000, lease=name, holds=1)
    check(grant["token"] > first["token"] and grant["waited_ms"] > 0, grant)
    check_equal(read_token(grant["fencing_token"])["lease"], name)
    check_equal(listed("waited", "waiting"), {})


@test
def what_cannot_wait_is_answered_at_once(name, lease_id):
    granted(ask(name, lease_id=lease_id, wait_ms=60000), 201, waited_ms=0)
    granted(ask(name, lease_id=lease_id, wait_ms=60000), 200)
    refused(ask(name, lease_id=lease_id, wait_ms=60000, mode="shared"), 409, "hold-differs")
    release(name, lease_id)
    refused(ask(name, lease_id=lease_id, wait_ms=60000), 409, "hold-over")
    name = WORLD.name()
    WORLD.acquire(name, permits=2)
    refused(ask(name, permits=3, wait_ms=60000), 409, "permits-mismatch")
    check_equal(WORLD.look(name)["waiting"], 0)


main(WORLD.close)
