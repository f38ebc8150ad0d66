#!/usr/bin/python3
"""GET /v1/overview of both daemons: what is the matter, the store, its members, what has happened in the last ten minutes."""

from world import World, check, check_equal, main, test, wait_until
from world.waiting import Waiter

WORLD = World()
BOTH = (WORLD.lease, WORLD.gateway)
OVERVIEW = "/v1/overview"


def overview(client, headers=()):
    answer = client("GET", OVERVIEW, headers)
    check_equal(answer.status, 200, repr(answer))
    return answer.json


@test
def both_say_who_they_are_on_which_store_with_whom():
    for client in BOTH:
        said = overview(client)
        kinds = sorted(one["kind"] for one in said["members"])
        check_equal((said["condition"], said["filtered"], kinds), (None, False, ["gateway", "lease"]))
        own = [one for one in said["members"] if one["id"] == said["service"]["id"]]
        check_equal([{name: own[0][name] for name in said["service"]}], [said["service"]])
        check(all(one["state"] == "in" and 0 <= one["heard_ms"] < 5000 and 0 < one["up_ms"] < 600000 for one in said["members"]), said)
        check(said["store"]["epoch"] > 0 and said["store"]["ceiling"] > 0 and said["store"]["used_bytes"] > 0, said)


def bars(kind):
    """The sum of ten minutes."""
    said = overview(WORLD.lease)["bars"]
    check_equal(len(said[kind]), 120)
    return sum(said[kind])


@test
def what_happened_is_in_the_bars_after_the_next_heartbeat():
    name, before = WORLD.name(), {kind: bars(kind) for kind in ("grants", "refused", "waiting")}
    grant = WORLD.acquire(name)
    waiter = Waiter(WORLD, WORLD.lease, name, "bob")
    wait_until(lambda: bars("waiting") > before["waiting"], "who waits is in the bars")
    WORLD.release(name, grant)
    waiter.told(201)
    check_equal(WORLD.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": grant["fencing_token"]}, b"late").status, 412)
    wait_until(lambda: (bars("grants"), bars("refused")) == (before["grants"] + 2, before["refused"] + 1), "grants and the refusal are in the bars")


@test
def what_is_the_matter_is_told_with_a_remedy_and_since_when():
    WORLD.redis.kill()
    said = wait_until(lambda: (one := overview(WORLD.lease))["condition"] and one, "the store is missed")
    check_equal([said[name] for name in ("now_ms", "store", "members", "bars")], [None, None, [], None])
    first = said["condition"]
    check_equal((first["code"][:6], bool(first["remedy"]), first["command"]), ("store-", True, "pawl store status"))
    wait_until(lambda: overview(WORLD.lease)["condition"]["for_ms"] >= first["for_ms"] + 300, "its time goes on")
    WORLD.redis.start()
    WORLD.wait_ready()
    check_equal(overview(WORLD.lease)["condition"], None)


@test
def who_was_killed_is_not_heard():
    member = overview(WORLD.gateway)["service"]
    WORLD.gateway_daemon.kill()
    WORLD.redis("HSET", f"pawl:{{store}}:m:{member['id']}", "at", 1)
    said = overview(WORLD.lease)["condition"]
    check_equal((said["code"], "pawl-gateway pid" in said["detail"]), ("member-silent", True))


main()
