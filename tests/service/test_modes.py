#!/usr/bin/python3
"""Every kind of lock but waiting: shared, permits, re-entry and its Idempotency-Keys, lock delay, force-release, states."""

import time
import zlib

from world import World, check, check_equal, main, read_token, test, wait_until
from world.asking import fresh_id, path, refused
from world.waiting import Waiter

WORLD = World()


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
def any_number_hold_together_when_all_of_them_share():
    name = WORLD.name()
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


@test
def a_shared_hold_is_renewed_and_released_by_its_own_lease_id():
    name = WORLD.name()
    one, two = WORLD.acquire(name, mode="shared", ttl_ms=20000), WORLD.acquire(name, mode="shared", ttl_ms=20000)
    answer = WORLD.lease("PUT", path(name), {"Lease-Id": one["lease_id"]}, {"ttl_ms": 40000})
    granted(answer, 200, token=one["token"], mode="shared", ttl_ms=40000, fencing_token=one["fencing_token"])
    check_equal(release(name, one["lease_id"]).status, 204)
    check_equal(release(name, one["lease_id"]).status, 204)
    refused(WORLD.lease("PUT", path(name), {"Lease-Id": one["lease_id"]}), 410, "lease-lost", ended="released")
    check_equal([holder["token"] for holder in WORLD.look(name)["holders"]], [two["token"]])


# -- permits

@test
def so_many_hold_as_there_are_permits_and_no_more():
    name = WORLD.name()
    grants = [WORLD.acquire(name, permits=3) for _ in range(3)]
    check_equal([(grant["mode"], read_token(grant["fencing_token"])["mode"]) for grant in grants],
                [("permits", "permits")] * 3)
    refused(ask(name, permits=3), 409, "lease-held")
    check_equal((WORLD.look(name)["mode"], len(WORLD.look(name)["holders"])), ("permits", 3))
    WORLD.release(name, grants[1])
    check(granted(ask(name, permits=3))["token"] > grants[2]["token"], "the token did not rise")
    refused(ask(name, permits=3), 409, "lease-held")


@test
def all_who_hold_permits_state_the_same_number():
    name = WORLD.name()
    first = WORLD.acquire(name, permits=3)
    for permits in (2, 4):
        refused(ask(name, permits=permits), 409, "permits-mismatch", permits=3, lease=name, retryable=False)
    for body in ({}, {"mode": "shared"}, {"permits": 1}):
        refused(ask(name, **body), 409, "lease-held")
    WORLD.release(name, first)
    granted(ask(name, permits=2), mode="permits")


# -- the same lease_id in another way


@test
def a_shared_or_permit_acquire_that_is_sent_again_is_a_replay():
    for mode in ({"mode": "shared"}, {"permits": 4}):
        name, lease_id = WORLD.name(), fresh_id()
        first = WORLD.acquire(name, lease_id=lease_id, holder="ada", meta={"a": 1}, **mode)
        WORLD.acquire(name, **mode)
        again = granted(ask(name, lease_id=lease_id, **mode), 200)
        for member in ("token", "fencing_token", "lease_id", "holder", "meta", "mode", "holds", "ttl_ms", "epoch"):
            check_equal(again[member], first[member], member)
        check_equal(len(WORLD.look(name)["holders"]), 2)
        release(name, lease_id)
        refused(ask(name, lease_id=lease_id, **mode), 409, "hold-over", ended="released")


# -- re-entry

@test
def a_re_entry_counts_and_sets_the_ttl_anew_and_keeps_the_token():
    for mode in ({}, {"mode": "shared"}, {"permits": 2}):
        name, lease_id = WORLD.name(), fresh_id()
        first = granted(ask(name, lease_id=lease_id, reentrant=True, ttl_ms=20000, **mode), 201, holds=1)
        for holds in (2, 3):
            again = granted(ask(name, lease_id=lease_id, reentrant=True, ttl_ms=40000, **mode), 200, holds=holds, ttl_ms=40000,
                            token=first["token"], fencing_token=first["fencing_token"])
            check(39000 < again["expires_in_ms"] <= 40000, again)
        kept = granted(ask(name, lease_id=lease_id, reentrant=True, **mode), 200, holds=4, ttl_ms=40000)
        check(39000 < kept["expires_in_ms"] <= 40000, "without a ttl_ms the one of before")
        granted(ask(name, lease_id=lease_id, **mode), 200, holds=4)
        check_equal(WORLD.look(name)["holders"][0]["holds"], 4)
        granted(WORLD.lease("PUT", path(name), {"Lease-Id": lease_id}), 200, holds=4)


@test
def a_release_leaves_once_and_the_last_one_frees():
    for mode in ({}, {"mode": "shared"}):
        name, lease_id = WORLD.name(), fresh_id()
        for _ in range(3):
            ask(name, lease_id=lease_id, reentrant=True, **mode)
        for left in (2, 1):
            answer = release(name, lease_id)
            check_equal((answer.status, answer.json), (200, {"holds": left}))
            check_equal(state_of(name), "held")
        check_equal(release(name, lease_id).status, 204)
        check_equal(state_of(name), "free")


@test
def all_true_ends_every_hold_of_the_lease_id():
    name, lease_id = WORLD.name(), fresh_id()
    for _ in range(3):
        ask(name, lease_id=lease_id, reentrant=True)
    check_equal(release(name, lease_id, "?all=true").status, 204)
    check_equal(state_of(name), "free")
    check_equal(release(name, lease_id, "?all=true").status, 204)


# -- Idempotency-Key

@test
def a_re_entry_that_is_sent_again_with_its_key_counts_once_and_gets_its_answer():
    name, lease_id = WORLD.name(), fresh_id()

    def enter(key):
        return ask(name, key, lease_id=lease_id, reentrant=True)
    granted(enter("k1"), 201, holds=1)
    granted(enter("k1"), 200, holds=1)
    granted(enter("k2"), 200, holds=2)
    granted(enter("k3"), 200, holds=3)
    for key, holds in (("k2", 2), ("k1", 1), ("k3", 3)):
        granted(enter(key), 200, holds=holds)
    check_equal(WORLD.look(name)["holders"][0]["holds"], 3)


@test
def a_key_with_another_request_is_refused_and_changes_nothing():
    name, lease_id = WORLD.name(), fresh_id()
    ask(name, "k1", lease_id=lease_id)
    granted(ask(name, "k2", lease_id=lease_id, reentrant=True), 200, holds=2)
    for key, body in (("k2", {"reentrant": True, "ttl_ms": 5000}), ("k2", {}), ("k1", {"reentrant": True})):
        refused(ask(name, key, lease_id=lease_id, **body), 422, "key-reused", retryable=False)
    refused(release(name, lease_id, key="k2"), 422, "key-reused")
    looked = WORLD.look(name)["holders"][0]
    check_equal(looked["holds"], 2)
    check(looked["expires_in_ms"] > 25000, looked)


@test
def a_release_that_is_sent_again_with_its_key_leaves_once():
    name, lease_id = WORLD.name(), fresh_id()
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
def a_hold_remembers_a_thousand_keys_and_takes_no_more():
    name, lease_id = WORLD.name(), fresh_id()
    granted(ask(name, "first", lease_id=lease_id))
    stripe = f"pawl:{{{zlib.crc32(name.encode()) & 0xFF:02x}}}"
    keys = f"{stripe}:k:{name}/{WORLD.digest(lease_id)}"
    check_equal(WORLD.redis("HLEN", keys), 1)
    WORLD.redis("HSET", keys, *[part for i in range(998) for part in (f"other-{i}", "1 x")])
    granted(ask(name, "last", lease_id=lease_id, reentrant=True), 200, holds=2)
    refused(ask(name, "more", lease_id=lease_id, reentrant=True), 422, "out-of-range")
    refused(release(name, lease_id, key="more"), 422, "out-of-range")
    granted(ask(name, "last", lease_id=lease_id, reentrant=True), 200, holds=2)
    check_equal(release(name, lease_id).json, {"holds": 1})


# -- lock delay

@test
def after_a_loss_nobody_is_granted_for_as_long_as_the_holder_asked():
    name = WORLD.name("delay-a")
    asked = time.monotonic()
    grant = WORLD.acquire(name, ttl_ms=100, lock_delay_ms=1000)
    looked = wait_until(lambda: state_of(name) == "delayed" and WORLD.look(name), "it is delayed")
    check_equal((looked["token"], looked["mode"], looked["holders"]), (grant["token"], None, []))
    answer = wait_until(lambda: (one := ask(name)).status == 201 and one, "it is granted again")
    check(time.monotonic() - asked >= 1.1 - 0.01, "granted before the delay was over")
    check(answer.json["token"] > grant["token"], answer)


@test
def a_delayed_lease_is_held_by_nobody_and_says_for_how_long():
    name = WORLD.name("delay-b")
    grant = WORLD.acquire(name, ttl_ms=100, lock_delay_ms=600000)
    wait_until(lambda: state_of(name) == "delayed", "it is delayed")
    for mode in ({}, {"mode": "shared"}, {"permits": 2}):
        answer = ask(name, **mode)
        refused(answer, 409, "lease-held", holder=None, token=grant["token"])
        check(590000 < answer.json["expires_in_ms"] <= 600000, answer)
    check_equal(set(listed("delay-b", "delayed")), {name})
    check_equal(listed("delay-b", "held"), {})
    refused(WORLD.lease("PUT", path(name), {"Lease-Id": grant["lease_id"]}), 410, "lease-lost", ended="expired")


# -- force-release

@test
def an_administrator_ends_the_hold_and_its_holder_is_told():
    name, lease_id = WORLD.name(), fresh_id()
    grant = WORLD.acquire(name, lease_id=lease_id)
    answer = force(name, reason="it hangs; ärgerlich")
    check_equal((answer.status, answer.json), (200, {"released_token": grant["token"]}))
    check_equal((state_of(name), WORLD.look(name)["token"]), ("free", grant["token"]))
    refused(WORLD.lease("PUT", path(name), {"Lease-Id": lease_id}), 410, "lease-lost", ended="forced")
    refused(release(name, lease_id), 410, "lease-lost", ended="forced")
    refused(ask(name, lease_id=lease_id), 409, "hold-over", ended="forced")
    check_equal(state_of(name), "free")
    write = WORLD.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": grant["fencing_token"]}, b"late")
    check_equal((write.status, write.code), (412, "lease-expired"), repr(write))


@test
def a_token_that_is_expected_must_be_that_of_a_hold():
    name = WORLD.name()
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
def more_holders_than_one_step_takes_are_all_ended():
    name = WORLD.name()
    for _ in range(600):
        WORLD.acquire(name, mode="shared", ttl_ms=600000)
    last = WORLD.acquire(name, mode="shared", ttl_ms=60000)  # ends first, and so stands in front
    check_equal(len(WORLD.look(name)["holders"]), 601)
    check_equal(force(name).json, {"released_token": last["token"]})
    check_equal(WORLD.look(name), {"lease": name, "state": "free", "token": last["token"], "epoch": last["epoch"],
                                   "mode": None, "holders": [], "waiting": 0})


@test
def a_forced_hold_counts_in_the_metrics():
    def forced():
        text = WORLD.lease("GET", "/metrics").body.decode()
        line = next(line for line in text.splitlines() if 'what="force-released"' in line)
        return int(line.rpartition(" ")[2])
    before = forced()
    name = WORLD.name()
    WORLD.acquire(name)
    force(name)
    check_equal(forced(), before + 1)


# -- by state, and with somebody in line

@test
def a_list_names_the_leases_of_one_state():
    held, shared, delayed = (WORLD.name("by-state") for _ in range(3))
    grants = [WORLD.acquire(held), WORLD.acquire(shared, mode="shared"), WORLD.acquire(shared, mode="shared")]
    WORLD.acquire(delayed, ttl_ms=100, lock_delay_ms=600000)
    free = WORLD.name("by-state")
    WORLD.release(free, WORLD.acquire(free))
    wait_until(lambda: state_of(delayed) == "delayed", "it is delayed")
    in_held = listed("by-state", "held")
    check_equal(set(in_held), {held, shared})
    check_equal({one["token"] for one in in_held[shared]["holders"]}, {grants[1]["token"], grants[2]["token"]})
    check_equal(in_held[shared]["mode"], "shared")
    in_delayed = listed("by-state", "delayed")
    check_equal({name: (item["state"], item["mode"], item["holders"]) for name, item in in_delayed.items()},
                {delayed: ("delayed", None, [])})
    check_equal(listed("by-state", "waiting"), {})


@test
def a_list_item_names_at_most_16_holders():
    name = WORLD.name("sixteen")
    for _ in range(17):
        WORLD.acquire(name, mode="shared")
    check_equal(len(listed("sixteen", "held")[name]["holders"]), 16)
    check_equal(len(WORLD.look(name)["holders"]), 17)


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
def what_cannot_wait_is_answered_at_once():
    name, lease_id = WORLD.name(), fresh_id()
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
