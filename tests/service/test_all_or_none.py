#!/usr/bin/python3
"""Several leases at once, all or none, with the real binaries and two instances on one store."""


from world import World, check, check_equal, gives, main, read_token, test, test_in, wait_until
from world.asking import refused
from world.record import stripe_key
from world.waiting import Waiter, lease_id_of, nothing_is_left_of_the_line

WORLD = World()
BESIDE = WORLD.daemon("pawl-lease")
CLIENTS = [WORLD.lease, WORLD.client(BESIDE)]


def names(count=2):
    """So many leases that no other test uses."""
    return [WORLD.name() for _ in range(count)]


gives["wanted"] = lambda: names(3)


def acquire(wanted, client=None, headers=(), **ask):
    return (client or WORLD.lease)("POST", "/v1/leases", headers, {"names": wanted, **ask})


def granted(wanted, status=201, **ask):
    answer = acquire(wanted, **ask)
    check_equal(answer.status, status, repr(answer))
    check_equal([grant["lease"] for grant in answer.json["grants"]], wanted)
    return answer.json["grants"]


def release(name, who, client=None):
    answer = (client or WORLD.lease)("DELETE", f"/v1/leases/{name}", {"Lease-Id": lease_id_of(who)})
    check_equal(answer.status, 204, repr(answer))


def in_line(wanted, who, client=None, **ask):
    """Wants all of these, or the one."""
    return Waiter(WORLD, client or WORLD.lease, wanted, who, **ask)


# -- at once

@test
def all_are_granted_in_the_order_of_names_each_with_a_token_that_the_gateway_takes(wanted):
    WORLD.release(wanted[1], WORLD.acquire(wanted[1]))
    answer = acquire(wanted, holder="ada", ttl_ms=9000, meta={"a": 1})
    check_equal(answer.status, 201)
    check_equal(answer.header("Fencing-Token"), None)
    grants = answer.json["grants"]
    check_equal([grant["lease"] for grant in grants], wanted)
    check_equal(len({grant["lease_id"] for grant in grants}), 1)
    for grant in grants:
        check_equal([grant[one] for one in ("holder", "ttl_ms", "mode", "holds", "waited_ms", "meta")],
                    ["ada", 9000, "exclusive", 1, 0, {"a": 1}])
        token = read_token(grant["fencing_token"])
        check_equal((int(token["token"]), token["lease"]), (grant["token"], grant["lease"]))
        written = WORLD.gateway("PUT", f"/v1/resources/{grant['lease']}", {"Fencing-Token": grant["fencing_token"]}, b"x")
        check_equal(written.status, 201, repr(written))


@test
def those_that_are_held_are_named_and_nothing_is_granted(wanted):
    grants = {name: WORLD.acquire(name, holder="bob") for name in wanted[1:]}
    told = refused(acquire(wanted), 409, "lease-held", lease=wanted[1], holder="bob").json
    check_equal([(one["lease"], one["token"], one["holder"]) for one in told["leases"]],
                [(name, grants[name]["token"], "bob") for name in wanted[1:]])
    check_equal(WORLD.look(wanted[0])["state"], "free")
    check_equal(WORLD.look(wanted[0])["token"], 0)


@test
def a_lease_id_that_holds_them_gets_the_same_tokens_in_the_order_that_it_asks_for_and_who_holds_some_or_did_is_told_so(wanted):
    first = granted(wanted[:2], lease_id=lease_id_of("ada"))
    again = granted(wanted[1::-1], 200, lease_id=lease_id_of("ada"), client=CLIENTS[1])
    check_equal([one["fencing_token"] for one in again], [one["fencing_token"] for one in reversed(first)])
    refused(acquire(wanted, lease_id=lease_id_of("ada")), 409, "hold-differs", lease=wanted[0])
    refused(acquire(wanted[:2], lease_id=lease_id_of("ada"), mode="shared"), 409, "hold-differs", lease=wanted[0])
    release(wanted[1], "ada")
    refused(acquire(wanted[:2], lease_id=lease_id_of("ada")), 409, "hold-over", lease=wanted[1], ended="released")
    WORLD.acquire(wanted[2], permits=3)
    refused(acquire(wanted[1:], permits=2), 409, "permits-mismatch", lease=wanted[2], permits=3)


@test
def what_is_asked_wrongly_is_refused():
    """What names may be: tests/unit/test_request.c."""
    one = WORLD.name()
    for more, status, code in (({"names": [one, one]}, 422, "out-of-range"), ({"reentrant": True}, 400, "invalid-request"), ({"name": one}, 400, "invalid-request"),
                               ({"session": "s" * 22}, 400, "invalid-request")):
        refused(WORLD.lease("POST", "/v1/leases", body={"names": [one], **more}), status, code)
    refused(WORLD.lease("POST", "/v1/leases", body=b""), 400, "invalid-request")
    refused(acquire([one], headers={"Idempotency-Key": "k"}), 400, "invalid-request")
    check_equal(WORLD.look(one)["token"], 0)


# -- in line

@test
def whoever_waits_holds_nothing_until_all_are_free_and_is_then_told_at_whichever_instance(wanted):
    for name in wanted[:2]:
        WORLD.acquire(name, lease_id=lease_id_of("x"))
    waiter = in_line(wanted, "ada", CLIENTS[1])
    check_equal([WORLD.waiting(name) for name in wanted], [1, 1, 1])
    release(wanted[0], "x")
    check_equal([WORLD.holder(name) for name in wanted], [None, "anonymous", None])
    refused(WORLD.lease("POST", f"/v1/leases/{wanted[2]}"), 409, "lease-held", holder=None)
    release(wanted[1], "x")
    grants = waiter.told()["grants"]
    check_equal([grant["lease"] for grant in grants], wanted)
    check(all(grant["waited_ms"] > 0 and grant["expires_in_ms"] > 59000 for grant in grants), grants)
    check_equal([WORLD.holder(name) for name in wanted], ["ada", "ada", "ada"])
    nothing_is_left_of_the_line(WORLD, *wanted)


@test
def one_who_waited_long_enough_is_told_who_holds_and_stands_in_no_line(wanted):
    WORLD.acquire(wanted[1], holder="bob", lease_id=lease_id_of("x"))
    told = in_line(wanted, "ada", wait_ms=300).told(409, "wait-timeout")
    check_equal((told["lease"], told["holder"]), (wanted[1], "bob"))
    nothing_is_left_of_the_line(WORLD, *wanted)
    release(wanted[1], "x")
    granted(wanted)


@test
def a_hundred_long_names_are_waited_for_and_granted():
    wanted = [WORLD.name().ljust(128, "x") for _ in range(100)]
    grants = granted(wanted, lease_id=lease_id_of("x"), meta={"a": "b" * 1000})
    check_equal(len(grants), 100)
    waiter = in_line(wanted[::-1], "ada", CLIENTS[1])
    for name in wanted:
        release(name, "x")
    check_equal([grant["lease"] for grant in waiter.told()["grants"]], wanted[::-1])
    nothing_is_left_of_the_line(WORLD, *wanted)


# -- what breaks

@test_in(World)
def a_counter_that_somebody_has_set_back_hands_out_no_number_again(world):
    wanted, most = ["pay:1", "pay:2"], {}
    for turn in range(10):
        for grant in granted(wanted, client=world.lease, lease_id=lease_id_of(f"t{turn}")):
            most[grant["lease"]] = grant["token"]
            release(grant["lease"], f"t{turn}", world.lease)
    world.redis("HSET", stripe_key("pay:2"), "counter", 0)
    world.redis("HDEL", stripe_key("pay:2"), "l:pay:2")  # the record would tell
    answers = []

    def again():
        answers.append(acquire(wanted, world.lease))
        return answers[-1].status == 201

    wait_until(again, "they are granted again")
    for grant in answers[-1].json["grants"]:
        check(grant["token"] > most[grant["lease"]], f"{grant} after {most}")


main(WORLD.close)
