#!/usr/bin/python3
"""Redis lives, and refuses: it is full, or it takes no writes at all, or it was put back to before a change of routes. Each
service, doctor and status say what is the case, and what can go on goes on."""

import concurrent.futures
import json
import re
import tempfile

from world import Client, World, check, check_equal, check_in, main, run_daemon, test, wait_until
from world.cli import Cli
from world.upstream import Upstream, route, routes_file

UPSTREAM = Upstream()
ROUTES = routes_file(tempfile.mkdtemp(prefix="pawl-full-"), [route(UPSTREAM, "/w/{id}", "job:{id}")])
WORLD = World(gateway_flags=["--routes", ROUTES])
PAWL = Cli(WORLD)
BOTH = (WORLD.lease, WORLD.gateway)
MIB = 1 << 20


def path(name):
    return f"/v1/leases/{name}"


def ready(client):
    return client("GET", "/readyz")


def fill(percent):
    """So much of what Redis may use is used, for the most part by a plain key of junk; the services have seen it."""
    WORLD.redis("SETRANGE", "junk", 64 * MIB, "x")
    WORLD.redis("CONFIG", "SET", "maxmemory", memory("used_memory") * 100 // percent)
    wait_both("store-full" if percent >= 90 else "ok")
    if percent < 90:
        wait_until(lambda: all(ready(client).json["store_memory"]["allowed_bytes"] for client in BOTH), "both have looked")


def wait_both(wanted):
    wait_until(lambda: all(ready(client).json.get("checks") == {"store": wanted} for client in BOTH), f"both see {wanted}")


def empty():
    WORLD.redis("CONFIG", "SET", "maxmemory", "0")
    WORLD.redis("DEL", "junk")
    wait_both("ok")


def memory(field):
    return int(re.search(rb"\n%s:(\d+)" % field.encode(), WORLD.redis("INFO", "memory")).group(1))


def metric(client, what):
    text = client("GET", "/metrics").body.decode()
    return int(re.search(rf'^pawl_store_memory_bytes{{what="{what}"}} (\d+)', text, re.M).group(1))


def logged(daemon, event):
    return daemon.log().count(f'"event":"{event}"')


# -- full

def requests():
    """What is asked of a full store: [(what, status, code or None, request)]; what they need is there."""
    held, gone, keyed, forwarded, short = (WORLD.name() for _ in range(5))
    grants = {name: WORLD.acquire(name, ttl_ms=600000) for name in (held, gone, keyed, forwarded)}
    token = {name: {"Fencing-Token": grant["fencing_token"]} for name, grant in grants.items()}
    lease_id = {name: {"Lease-Id": grant["lease_id"]} for name, grant in grants.items()}
    key = {**token[keyed], "Idempotency-Key": '"k1"'}
    session = WORLD.lease("POST", "/v1/sessions", body={"ttl_ms": 600000}).json
    secret = {"Session-Secret": session["session_secret"]}
    for one in (held, keyed):
        WORLD.gateway("PUT", f"/v1/resources/{one}", key if one == keyed else token[one], b"x")
    lease, gateway, at_session = WORLD.lease, WORLD.gateway, f"/v1/sessions/{session['session']}"
    return [
        ("acquire", 503, "store-full", lambda: lease("POST", path(short))),
        ("acquire, and wait", 503, "store-full", lambda: lease("POST", path(short), body={"wait_ms": 1000})),
        ("acquire what is held, and wait", 503, "store-full", lambda: lease("POST", path(gone), body={"wait_ms": 60000})),
        ("acquire what is held", 409, "lease-held", lambda: lease("POST", path(gone))),
        ("acquire all", 503, "store-full", lambda: lease("POST", "/v1/leases", body={"names": [short, short + "b"]})),
        ("acquire once more", 200, None, lambda: lease("POST", path(held), body={"lease_id": grants[held]["lease_id"]})),
        ("session", 503, "store-full", lambda: lease("POST", "/v1/sessions", body={})),
        ("write", 503, "store-full", lambda: gateway("PUT", f"/v1/resources/{held}", token[held], b"y")),
        ("a write that was done", 201, None, lambda: gateway("PUT", f"/v1/resources/{keyed}", key, b"x")),
        ("forwarded write", 503, "store-full", lambda: gateway("POST", f"/w/{forwarded[4:]}", token[forwarded], b"y", held=False)),
        ("look", 200, None, lambda: lease("GET", path(held))),
        ("fenced read", 200, None, lambda: gateway("GET", f"/v1/resources/{held}", token[held])),
        ("check", 200, None, lambda: gateway("GET", f"/v1/check/{held}", token[held])),
        ("forwarded read", 200, None, lambda: gateway("GET", f"/w/{forwarded[4:]}", token[forwarded], held=False)),
        ("renew", 200, None, lambda: lease("PUT", path(held), lease_id[held])),
        ("session renew", 200, None, lambda: lease("PUT", at_session, secret)),
        ("delete", 204, None, lambda: gateway("DELETE", f"/v1/resources/{held}", token[held])),
        ("release", 204, None, lambda: lease("DELETE", path(held), lease_id[held])),
        ("force-release", 200, None, lambda: lease("POST", path(gone) + "/force-release", body={"reason": "test"})),
        ("session end", 204, None, lambda: lease("DELETE", at_session, secret)),
    ]


@test
def a_full_store_takes_nothing_new_and_everything_that_keeps_or_gives_back():
    for percent in (95, 120):
        table, sent = requests(), len(UPSTREAM.requests)
        fill(percent)
        try:
            for what, status, code, request in table:
                answer = request()
                told = (answer.status, answer.json.get("code") if answer.status >= 400 else None)
                check_equal(told, (status, code), f"{what} at {percent} %")
                check(code is None or answer.json["retryable"], what)
            check_equal(len(UPSTREAM.requests), sent + 1, "sent on: the read alone")
            for client in BOTH:
                told = ready(client)
                check_equal((told.status, told.json["checks"]), (200, {"store": "store-full"}))
                check_in("no new grants", told.json["detail"])
                check_equal(told.json["store_memory"]["allowed_bytes"], memory("maxmemory"))
                check(told.json["store_memory"]["used_bytes"] * 10 >= memory("maxmemory") * 9, told.json)
            late = [WORLD.daemon(name) for name in ("pawl-lease", "pawl-gateway") if percent > 100]  # they join a full store
            wait_until(lambda: all(ready(WORLD.client(one)).status == 200 for one in late), "newcomers are let in")
            check_equal({one.end() for one in late} - {0}, set())
        finally:
            empty()
        check_equal(WORLD.look(WORLD.name())["state"], "free")
        WORLD.acquire(WORLD.name())
    for daemon in (WORLD.lease_daemon, WORLD.gateway_daemon):
        check_equal((logged(daemon, "store-full"), logged(daemon, "store-full-no-more")), (2, 2), daemon.name)


@test
def who_waits_is_handed_the_lease_when_there_is_room_again():
    name = WORLD.name()
    grant = WORLD.acquire(name, ttl_ms=600000)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiter = pool.submit(WORLD.lease, "POST", path(name), body={"wait_ms": 60000})
        wait_until(lambda: WORLD.redis("ZCARD", f"{stripe(name)}:q:{name}") == 1, "it waits")
        fill(95)
        try:
            WORLD.release(name, grant)
            check_equal(WORLD.look(name)["state"], "free")
            check(not waiter.done(), "handed on")
        finally:
            empty()
        check_equal(waiter.result().status, 201)


def stripe(name):
    found = [key.decode() for key in WORLD.redis("KEYS", f"pawl:{{??}}:l:{name}")]
    return found[0][:9]


@test
def memory_is_told_before_it_is_full():
    fill(80)
    try:
        for client, what in ((WORLD.lease, "lease memory"), (WORLD.gateway, "gateway memory")):
            wait_until(lambda client=client: metric(client, "allowed") == memory("maxmemory"), "the metric")
            check(metric(client, "used") * 4 >= memory("maxmemory") * 3, "used")
            found = {one["check"]: one for one in doctor(1)}
            check_equal(found[what]["status"], "problem")
            check_in("90 %", found[what]["remedy"])
        found = status(0)
        check_equal([one["refused"] for one in found["findings"]], [False])
        check_in("not far from", found["findings"][0]["what"])
        check_equal(found["redis"]["maxmemory_bytes"], memory("maxmemory"))
        WORLD.acquire(WORLD.name())
    finally:
        empty()


def doctor(wanted):
    return json.loads(PAWL("doctor", "-o", "json", "--redis", WORLD.redis.url, status=wanted).stdout)["findings"]


def status(wanted):
    return json.loads(PAWL("store", "status", "-o", "json", "--redis", WORLD.redis.url, status=wanted).stdout)


@test
def store_memory_max_counts_where_redis_has_no_bound_or_a_higher_one():
    bounded = WORLD.daemon("pawl-lease", "--store-memory-max", str(16 * MIB))
    client = Client("lease", bounded.url, World.contract)
    check_equal(ready(client).json["store_memory"]["allowed_bytes"], 16 * MIB)
    WORLD.redis("SETRANGE", "junk", 17 * MIB, "x")
    try:
        wait_until(lambda: ready(client).json["checks"] == {"store": "store-full"}, "it is seen")
        check_equal((client("POST", path(WORLD.name())).code, ready(WORLD.lease).json["checks"]), ("store-full", {"store": "ok"}))
    finally:
        WORLD.redis("DEL", "junk")
    wait_until(lambda: ready(client).json["checks"] == {"store": "ok"}, "there is room")
    check_equal(bounded.end(), 0)
    done = run_daemon("pawl-lease", *WORLD.flags, "--store-memory-max", "1", "--check-config")
    check_equal(done.returncode, 78)


# -- it takes no writes

@test
def a_redis_that_takes_no_writes_is_told_as_what_it_is_by_everybody():
    WORLD.redis("CONFIG", "SET", "min-replicas-to-write", "1")
    try:
        for client in BOTH:
            told = wait_refused(client)
            check_equal((told.status, told.code), (503, "store-unavailable"))
            check_in("min-replicas-to-write", told.json["detail"])
        refused = WORLD.lease("POST", path(WORLD.name()))
        check_equal((refused.status, refused.code), (503, "store-unavailable"))
        check_in("refuses", refused.json["title"])
        done = run_daemon("pawl-lease", "--redis", WORLD.redis.url + "?db=1", "--init-store", "--state-dir",
                          tempfile.mkdtemp(prefix="pawl-full-"))
        check_equal(done.returncode, 69)
        check_in("nothing was created: Redis lives and takes no writes", done.stderr)
        late = WORLD.daemon("pawl-gateway", "--store-timeout", "300ms")  # one that starts now says it, too
        wait_refused(WORLD.client(late))
        late.kill()
        long_ago = PAST.format(WORLD.redis("TIME")[0].decode())
        WORLD.redis("CONFIG", "SET", "min-replicas-to-write", "0")
        WORLD.redis("EVAL", long_ago, 0)  # as if it had lasted for a minute; the next pulse may come before the next line
        WORLD.redis("CONFIG", "SET", "min-replicas-to-write", "1")
        findings = status(1)["findings"]
        check_equal((len(findings), findings[0]["refused"]), (1, True), str(findings))
        check_in("min-replicas-to-write", findings[0]["what"])
        said = json.dumps(doctor(1) + findings)
        check("recover" not in said and "clock is" not in said and "ahead" not in said and "behind" not in said, said)
    finally:
        WORLD.redis("CONFIG", "SET", "min-replicas-to-write", "0")
    wait_until(lambda: all(ready(client).status == 200 for client in BOTH), "both are ready")
    for daemon in (WORLD.lease_daemon, WORLD.gateway_daemon):
        check(logged(daemon, "store-refuses") >= 1 and logged(daemon, "store-refuses-no-more") >= 1, daemon.name)


def wait_refused(client):
    wait_until(lambda: ready(client).json.get("check") == "store-refuses-writes", "readyz says it")
    return ready(client)


PAST = """for _, id in ipairs(redis.call('SMEMBERS', 'pawl:{{store}}:members')) do
    redis.call('HSET', 'pawl:{{store}}:m:' .. id, 'at', ({} - 60) * 1000)
end"""


# -- put back to before a change of routes

@test
def a_table_that_is_not_the_one_that_is_served_is_told():
    name = WORLD.name()
    token = {"Fencing-Token": WORLD.acquire(name)["fencing_token"]}
    check_equal(WORLD.gateway("POST", f"/w/{name[4:]}", token, b"x", held=False).status, 200)
    served = WORLD.redis("HGET", "pawl:{store}", "routes")
    WORLD.redis("HSET", "pawl:{store}", "routes", served[::-1])
    check_equal(WORLD.gateway("POST", f"/w/{name[4:]}", token, b"x", held=False).code, "routes-differ")
    wait_until(lambda: ready(WORLD.gateway).json["checks"] == {"store": "ok", "ordered": "routes-differ"}, "it is seen")
    told = [ready(WORLD.gateway).json["detail"], *(one["what"] + one["remedy"] for one in doctor(1) if one["status"] == "problem")]
    finding, = status(1)["findings"]
    for text in (told[0], " ".join(told[1:]), finding["what"] + finding["todo"]):
        check_in("routes-differ", text)
        check_in("pawl routes adopt", text)
    PAWL("routes", "adopt")
    wait_until(lambda: ready(WORLD.gateway).json["checks"] == {"store": "ok"}, "it is over")
    check_equal(WORLD.gateway("POST", f"/w/{name[4:]}", token, b"x", held=False).status, 200)
    check_equal(status(0)["findings"], [])
    check(logged(WORLD.gateway_daemon, "routes-differ") == 1 and logged(WORLD.gateway_daemon, "routes-differ-no-more") == 1,
          "the log")


main()
