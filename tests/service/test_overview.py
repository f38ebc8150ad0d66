#!/usr/bin/python3
"""GET /v1/overview of both daemons: what is the matter, the store, its members, what has happened in the last ten minutes."""

import json
import os
import re
import signal
import tempfile
import time

from world import World, check, check_equal, main, of_time, test, test_in, wait_until
from world.cli import Cli
from world.client import Closed
from world.upstream import Upstream, route, routes_file
from world.wait import DEADLINE_S
from world.waiting import Waiter
from world.world import run_daemon

PEERS = {"lease": "https://gate.example/ui/", "gateway": "http://[::1]:8700/ui/"}
WORLD = World(lease_flags=["--ui-peer", PEERS["lease"]], gateway_flags=["--ui-peer", PEERS["gateway"]])
PAWL = Cli(WORLD)
UPSTREAM = Upstream()
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
        check_equal({one["kind"]: one["ui"] for one in said["members"]},
                    {"lease": None, "gateway": None} | {kind: PEERS[client.service] for kind in PEERS if kind != client.service})
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


def counted(client=WORLD.lease):
    """Counts of a walk that began after now: of the second one that ends."""
    ages = [0]

    def look():
        said = overview(client)
        ages.append(said["counted_ms_ago"] or 0)
        return sum(age < before for before, age in zip(ages, ages[1:])) >= 2 and said
    return wait_until(look, "it was counted twice")


@test
def what_there_is_is_counted_and_what_is_worth_a_look_is_named():
    before = counted()["counts"]
    held, lost, shared, free = (WORLD.name(stem) for stem in ("held", "lost", "shared", "free"))
    grants = {name: WORLD.acquire(name, holder="ada", **more) for name, more in (
        (held, {}), (lost, {"ttl_ms": 100, "lock_delay_ms": 600000}), (shared, {"mode": "shared"}), (free, {}))}
    WORLD.release(free, grants[free])
    WORLD.lease("POST", "/v1/sessions", body={})
    waiters = [Waiter(WORLD, WORLD.lease, held, name) for name in ("bob", "eve")]
    wait_until(lambda: WORLD.look(lost)["state"] == "delayed", "the loss is noted")
    WORLD.gateway("PUT", f"/v1/resources/{free}", {"Fencing-Token": grants[free]["fencing_token"]}, b"late")
    for client in BOTH:
        wanted = {name: before[name] + more for name, more in
                  {"held": 2, "waiting": 2, "delayed": 1, "sessions": 1, "in_doubt": 0}.items()}
        said = wait_until(lambda: (said := overview(client))["counts"] == wanted and said, f"{wanted} is counted", 10)  # noqa: B023
        check(said["store"]["top_token"] >= max(grant["token"] for grant in grants.values()), said["store"])
        seen = {(one["kind"], one["lease"]): one for one in said["look"]}
        check_equal(seen[("waiting", held)]["holder"], "bob")
        check(590000 < seen[("delayed", lost)]["for_ms"] <= 600000, said["look"])
        check_equal((seen[("refused", free)]["code"], seen[("refused", free)]["for_ms"] < 60000), ("lease-expired", True))
    WORLD.release(held, grants[held])
    WORLD.release(held, waiters[0].told(201))
    waiters[1].told(201)


def stream(world, daemon, accept):
    """Its raw connection; what has come is in the buffer."""
    raw = world.raw(daemon)
    raw.send(f"GET {OVERVIEW} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n")
    check_equal(raw.head()[0].split()[1], "200")
    return raw


def objects(raw, count):
    """The first of them, as they come."""
    while len(found := re.findall(rb'\{"now_ms".*\}(?=\n)', raw.buffer)) < count:
        raw._more()  # pylint: disable=protected-access
    return [json.loads(one) for one in found]


@test_in(World)
@of_time
def a_stream_has_one_at_once_and_each_second_until_the_service_stops(world):
    extra = world.daemon("pawl-gateway")
    check_equal(set(overview(world.client(extra))["counts"].values()), {None}, "nobody has looked yet")
    for daemon in (world.lease_daemon, extra):
        began = time.monotonic()
        sse, lines = (stream(world, daemon, accept) for accept in ("text/event-stream", "text/html, Application/X-NDJSON;q=0.5"))
        for raw in (sse, lines):
            objects(raw, 1)
        check(time.monotonic() - began < 0.9, "the first comes at once")
        for raw in (sse, lines):
            times = [one["now_ms"] for one in objects(raw, 3)]
            check(900 <= times[2] - times[1] < 2500, times)
        check_equal((sse.buffer.count(b"event: overview\ndata: {"), lines.buffer.count(b"event")), (sse.buffer.count(b'{"now_ms"'), 0))
    raw = stream(world, extra, "text/event-stream")
    check_equal(extra.end(), 0)
    try:
        objects(raw, 100)
    except Closed:
        return
    check(False, "it has not ended")


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
def a_link_that_is_no_web_page_is_refused():
    for url in ("javascript:alert(1)", "https://", "gate.example/ui/", 'https://a/"x', "https://a/\u00e9", "https://a/?b=c", "https://a/#b", "https://" + "a" * 510):
        done = run_daemon("pawl-lease", *WORLD.flags, "--check-config", "--ui-peer", url)
        check_equal((done.returncode, "--ui-peer" in done.stderr), (78, True), url)


@test
def pawl_top_shows_it_once_or_each_second():
    name = WORLD.name("shown")
    WORLD.acquire(name, holder="ada")
    lines = PAWL("top", "--once").stdout.splitlines()
    check_equal(lines[0], "All is well.")
    check_equal([line.split("\t")[1] for line in lines if line.startswith(name + "\t")], ["ada"])
    check_equal(json.loads(PAWL("top", "--once", "-o", "json").stdout)["service"], overview(WORLD.lease)["service"])
    live = PAWL.start("top")
    until = lambda begin: next(line for line in live.stdout if line.startswith(begin))  # noqa: E731
    until(name)
    WORLD.redis.kill()
    until("store-")
    check_equal("Command: pawl store status" in live.stdout.readline(), True)
    WORLD.redis.start()
    until("All is well.")
    live.send_signal(signal.SIGINT)
    check_equal((live.wait(DEADLINE_S), live.stderr.read()), (0, ""))
    WORLD.wait_ready()
    done = PAWL("top", "--once", status=69, PAWL_LEASE_URL="http://127.0.0.1:1")
    check("cannot be reached" in done.stderr, done.stderr)


@test
def what_is_the_matter_with_one_the_others_tell():
    folder = tempfile.mkdtemp(dir=os.environ["TMPDIR"])
    table = lambda name: routes_file(folder, [route(UPSTREAM, f"/{name}/{{id}}", f"{name}:{{id}}")], name)  # noqa: E731
    one = WORLD.daemon("pawl-gateway", "--routes", table("a"))
    WORLD.wait_ready(WORLD.client(one))
    token = WORLD.acquire("a:1")["fencing_token"]
    check_equal(WORLD.client(one)("PUT", "/a/1", {"Fencing-Token": token}, b"x", held=False).status, 200)  # now the store has its table
    other = WORLD.daemon("pawl-gateway", "--routes", table("b"))
    client = WORLD.client(other)
    mine = wait_until(lambda: (one := overview(client))["condition"] and one, "its routes are others")
    check_equal((mine["condition"]["code"], mine["services"]), ("routes-differ", {"lease": 1, "gateway": 3}))
    for teller in (WORLD.lease, WORLD.client(one)):
        said = wait_until(lambda: (one := overview(teller))["condition"] and one, "the others hear of it")  # noqa: B023
        check_equal([said["condition"][name] for name in ("code", "for_ms", "command")], ["member-condition", None, "pawl routes adopt"])
        check("routes-differ" in said["condition"]["detail"] and mine["service"]["id"] in said["condition"]["detail"], said["condition"])
        check_equal({one["id"]: one["condition"] for one in said["members"] if one["condition"]}, {mine["service"]["id"]: "routes-differ"})
    check_equal((other.end(), one.end()), (0, 0))
    wait_until(lambda: overview(WORLD.lease)["condition"] is None, "who has left is not told of")


@test
def who_was_killed_is_not_heard():
    member = overview(WORLD.gateway)["service"]
    WORLD.gateway_daemon.kill()
    WORLD.redis("HSET", f"pawl:{{store}}:m:{member['id']}", "at", 1)
    said = overview(WORLD.lease)["condition"]
    check_equal(overview(WORLD.lease)["services"], {"lease": 1, "gateway": 0})
    check_equal((said["code"], "pawl-gateway pid" in said["detail"], said["command"]),
                ("member-silent", True, f"pawl store forget {member['id']}"))
    WORLD.redis("ZADD", "pawl:{00}:i", 0, f"dead:1 {1:015d} {1:015d} {1:016d} s o {member['id']} gone w0.1 h 1")
    said = wait_until(lambda: (one := overview(WORLD.lease))["counts"]["in_doubt"] and one, "what it had under way is counted", 10)
    check_equal((said["condition"]["code"], said["condition"]["command"]), ("member-silent", f"pawl resolve --gateway {member['id']} --dead"))


@test
def while_a_write_is_in_doubt_not_all_is_well():
    member = overview(WORLD.lease)["service"]["id"]
    WORLD.redis("EVAL", "for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do if id ~= ARGV[1] then redis.call('HSET', 'pawl:{store}:m:' .. id, 'state', 'out') end end",
                1, "pawl:{store}:members", member)
    said = overview(WORLD.lease)["condition"]
    check_equal((said["code"], "dead:1" in said["detail"], said["command"], said["for_ms"] > 1000), ("in-doubt", True, "pawl resolve", True))
    check(PAWL("top", "--once").stdout.startswith("in-doubt for "))
    WORLD.redis("DEL", "pawl:{00}:i")
    check_equal(counted()["counts"]["in_doubt"], 0)
    check_equal(overview(WORLD.lease)["condition"], None)
    WORLD.redis("HSET", "pawl:{store}:doubt", "gate life", "open 1")
    said = overview(WORLD.lease)["condition"]
    check_equal((said["code"], said["for_ms"]), ("in-doubt", None))
    check(PAWL("top", "--once").stdout.startswith("in-doubt: "))
    fresh = WORLD.daemon("pawl-lease")
    WORLD.redis("HDEL", "pawl:{store}:doubt", "gate life")
    WORLD.wait_ready(WORLD.client(fresh))
    check_equal(PAWL("top", "--once", "--lease-url", fresh.url).stdout.splitlines()[0], "Nothing is known to be wrong.", "nobody has counted")


main()
