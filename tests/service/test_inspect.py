#!/usr/bin/python3
"""POST /v1/tokens/inspect of both daemons: what the fence would say is what it says, and asking changes nothing."""

from world import World, check_equal, main, test, wait_until
from world.asking import refused
from world.record import stripe_key

WORLD = World()
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
def what_is_forged_foreign_or_no_token_is_told_in_the_order_of_the_fence():
    name = WORLD.name()
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
def a_refusal_is_found_by_its_instance_beside_its_lease():
    name = WORLD.name()
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


main()
