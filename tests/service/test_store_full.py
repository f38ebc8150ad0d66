#!/usr/bin/python3
"""Redis lives, and refuses: it is full, or it takes no writes at all, or it was put back to before a change of routes. Each
service, doctor and status say what is the case, and what can go on goes on."""

import concurrent.futures
import json
import pathlib
import re
import signal
import tempfile

from world import Client, World, check, check_equal, check_in, main, run_daemon, test, wait_until
from world.asking import path
from world.cli import Cli
from world.record import stripe_key
from world.upstream import Upstream, route, routes_file

UPSTREAM = Upstream()
ROUTES = routes_file(tempfile.mkdtemp(prefix="pawl-full-"), [route(UPSTREAM, "/w/{id}", "job:{id}")])
WORLD = World(gateway_flags=["--routes", ROUTES])
PAWL = Cli(WORLD)
BOTH = (WORLD.lease, WORLD.gateway)
MIB = 1 << 20


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


def logged(daemon, event):
    return daemon.log().count(f'"event":"{event}"')


def wait_logged(daemon, fits, *events):
    """A line comes behind what it tells of."""
    wait_until(lambda: fits([logged(daemon, event) for event in events]), f"{daemon.name} says {events}")


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
def who_waits_is_handed_the_lease_when_there_is_room_again(name):
    grant = WORLD.acquire(name, ttl_ms=600000)

    # The tests above cut links, which a desk sees 250 ms later: who waits there then is sent away, and has its place still.
    ask = {"lease_id": "waits".ljust(22, "-")}
    wait_until(lambda: WORLD.lease("POST", path(name), body=ask | {"wait_ms": 500}).code == "wait-timeout", "its desk stays open")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        def waits():
            waiter = pool.submit(lambda: WORLD.lease("POST", path(name), body=ask | {"wait_ms": 60000}))
            wait_until(lambda: waiter.done() or WORLD.redis("ZCARD", f"{stripe_key(name)}:q:{name}") == 1, "it waits")
            return None if waiter.done() else waiter

        waiter = wait_until(waits, "it waits")
        fill(95)
        try:
            WORLD.release(name, grant)
            check_equal(WORLD.look(name)["state"], "free")
            check(not waiter.done(), "handed on")
        finally:
            empty()
        check_equal(waiter.result().status, 201)


@test
def a_full_store_takes_nothing_new_and_everything_that_keeps_or_gives_back():
    for percent, can_load in ((95, True), (120, True), (120, False)):
        table, sent = requests(), len(UPSTREAM.requests)
        fill(percent)
        if not can_load:
            WORLD.redis("FUNCTION", "FLUSH")  # each call carries the whole text from now on
        try:
            for what, status, code, request in table:
                answer = request()
                told = (answer.status, answer.json.get("code") if answer.status >= 400 else None)
                check_equal(told, (status, code), f"{what} at {percent} %")
                check(code is None or answer.json["retryable"], what)
            check_equal(len(UPSTREAM.requests), sent + 1, "sent on: the read alone")
            for client in BOTH:
                told = ready(client)
                checks = {"store": "store-full", **({} if can_load else {"functions": "not-loaded"})}
                check_equal((told.status, told.json["checks"]), (200, checks))
                check_in("no new grants", told.json["detail"])
                check_equal(told.json["store_memory"]["allowed_bytes"], memory("maxmemory"))
                check(told.json["store_memory"]["used_bytes"] * 10 >= memory("maxmemory") * 9, told.json)
            late = [WORLD.daemon(name) for name in ("pawl-lease", "pawl-gateway") if percent > 100]  # they join a full store
            wait_until(lambda: all(ready(WORLD.client(one)).status == 200 for one in late), "newcomers are let in")
            check_equal({one.end() for one in late} - {0}, set())
        finally:
            WORLD.redis("CONFIG", "SET", "maxmemory", "0")
            if not can_load:
                WORLD.redis("CLIENT", "KILL", "TYPE", "normal")  # a new link loads at once, an old one within 10 s
            empty()
        check_equal(WORLD.look(WORLD.name())["state"], "free")
        WORLD.acquire(WORLD.name())
    for daemon in (WORLD.lease_daemon, WORLD.gateway_daemon):
        wait_logged(daemon, lambda times: times == [3, 3], "store-full", "store-full-no-more")


@test
def memory_is_told_before_it_is_full():
    fill(80)
    try:
        for client, what in ((WORLD.lease, "lease memory"), (WORLD.gateway, "gateway memory")):
            wait_until(lambda client=client: client.metric('pawl_store_memory_bytes{what="allowed"}') == memory("maxmemory"), "the metric")
            check(client.metric('pawl_store_memory_bytes{what="used"}') * 4 >= memory("maxmemory") * 3, "used")
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
        wait_until(lambda: ready(client).json.get("checks") == {"store": "store-full"}, "it is seen")
        wait_until(lambda: client("POST", path(WORLD.name())).code == "store-full", "it grants nothing")
        wait_until(lambda: ready(WORLD.lease).json.get("checks") == {"store": "ok"}, "another has its own bound")
    finally:
        WORLD.redis("DEL", "junk")
    wait_until(lambda: ready(client).json.get("checks") == {"store": "ok"}, "there is room")
    check_equal(bounded.end(), 0)
    done = run_daemon("pawl-lease", *WORLD.flags, "--store-memory-max", "1", "--check-config")
    check_equal(done.returncode, 78)


# -- too much to remember

OVER = """for i = 1, tonumber(ARGV[1]) do
    local name, over_ms = string.format('%s%05d', ARGV[2], i), ARGV[3] + ARGV[4] * i
    local stripe = string.format('pawl:{%02x}', i % 256)
    local t = redis.call('TIME')
    local forget_at = string.format('%d', t[1] * 1000 + 600000 - over_ms)
    local record = cmsgpack.pack('released', 0, 0, 'h', string.rep('x', 1000), forget_at + 0, 0, 0, 0, '', '', 0, 0, 0, '', '')
    redis.call('HSET', stripe, 'l:' .. name, record)
    redis.call('ZADD', stripe .. ':due', forget_at, name)
end"""
KEPT = """local kept = {}
for i = 1, tonumber(ARGV[2]) do
    kept[i] = redis.call('HEXISTS', string.format('pawl:{%02x}', i % 256), string.format('l:%s%05d', ARGV[1], i))
end
return kept"""


def over(count, word, from_ms, step_ms):
    """So many leases, 1.2 KB each, which are over for from_ms and longer; they stand in whichever stripe."""
    WORLD.redis("EVAL", OVER, 0, count, word, from_ms, step_ms)


def kept(word):
    """Of 2000 leases that are over, in their order: 1 where it is remembered."""
    return WORLD.redis("EVAL", KEPT, 0, word, 2000)


def few_are_left():
    """Those that are over for the shortest time. 870 fit into the bound; which go is judged by samples."""
    left = kept("old")
    return 400 < sum(left) < 1000 and sum(left[:sum(left)]) > sum(left) * 9 // 10


@test
def above_remember_max_the_oldest_that_is_over_is_forgotten_and_what_must_be_remembered_stops_new_grants():
    bounded = WORLD.daemon("pawl-lease", "--remember-max", str(MIB))
    lease = Client("lease", bounded.url, World.contract)
    name, free, waited = WORLD.name(), WORLD.name(), WORLD.name()
    grant, first = WORLD.acquire(name, ttl_ms=600000), WORLD.acquire(waited, ttl_ms=600000)
    over(2000, "old", 70000, 100)  # 2.4 MB
    wait_until(few_are_left, "as many are left as there is room for, and the right ones")
    wait_until(lambda: lease.metric('pawl_lease_operations_total{what="forgotten-early"}') == 2000 - sum(kept("old")), "counted")
    check_equal(lease("POST", path(free)).status, 201)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiter = pool.submit(lambda: lease("POST", path(waited), body={"wait_ms": 60000}))
        wait_until(lambda: WORLD.redis("ZCARD", f"{stripe_key(waited)}:q:{waited}") == 1, "it waits")
        over(2000, "new", 0, 1)
        wait_until(lambda: lease("POST", path(WORLD.name())).code == "store-full", "nothing new")
        check_equal(sum(kept("new")), 2000)
        check_equal(ready(lease).json["checks"], {"store": "store-full"})
        check_equal(lease("POST", "/v1/leases", body={"names": [free + "a", free + "b"]}).code, "store-full")
        check_equal(lease("PUT", path(name), {"Lease-Id": grant["lease_id"]}).status, 200)
        check_equal(lease("DELETE", path(waited), {"Lease-Id": first["lease_id"]}).status, 204)
        check_equal(waiter.result().status, 201, "who waited is handed it")
    wait_logged(bounded, lambda times: times == [1, 0], "remember-full", "remember-full-no-more")
    WORLD.redis("EVAL", OVER.replace("'HSET', stripe, 'l:' .. name, record", "'HDEL', stripe, 'l:' .. name")
                .replace("'ZADD', stripe .. ':due', forget_at, name", "'ZREM', stripe .. ':due', name"), 0, 2000, "new", 0, 1)
    wait_until(lambda: lease("POST", path(WORLD.name())).status == 201, "there is room")
    check_equal(bounded.end(), 0)
    check_equal(run_daemon("pawl-lease", *WORLD.flags, "--remember-max", "1", "--check-config").returncode, 78)


# -- it takes no writes

def refuse(yes):
    WORLD.redis("CONFIG", "SET", "min-replicas-to-write", "1" if yes else "0")


@test
def a_redis_that_takes_no_writes_is_told_as_what_it_is_by_everybody():
    """The other ways in which it takes none: tests/component/test_store_faults.c."""
    reason = "min-replicas-to-write"
    refuse(True)
    try:
        for client in BOTH:
            told = wait_refused(client)
            check_equal((told.status, told.code), (503, "store-unavailable"))
            check_in(reason, told.json["detail"])
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
        refuse(False)
        WORLD.redis("EVAL", long_ago, 0)  # as if it had lasted for a minute; the next pulse may come before the next line
        refuse(True)
        findings = status(1)["findings"]
        check_equal((len(findings), findings[0]["refused"]), (1, True), str(findings))
        check_in(reason, findings[0]["what"])
        said = json.dumps(doctor(1) + findings)
        check_in(reason, said)
        check("recover" not in said and "clock is" not in said and "ahead" not in said and "behind" not in said, said)
    finally:
        refuse(False)
    WORLD.wait_ready()
    for daemon in (WORLD.lease_daemon, WORLD.gateway_daemon):
        wait_logged(daemon, lambda times: min(times) >= 1, "store-refuses", "store-refuses-no-more")


def wait_refused(client):
    wait_until(lambda: ready(client).json.get("check") == "store-refuses-writes", "readyz says it")
    return ready(client)


PAST = """for _, id in ipairs(redis.call('SMEMBERS', 'pawl:{{store}}:members')) do
    redis.call('HSET', 'pawl:{{store}}:m:' .. id, 'at', ({} - 60) * 1000)
end"""


# -- put back to before a change of routes

def wait_back():
    wait_until(lambda: all(client.is_ready() for client in BOTH) and WORLD.redis("HLEN", "pawl:{store}:doubt") == 0, "all are back")


def sent():
    name = WORLD.name()
    token = {"Fencing-Token": WORLD.acquire(name)["fencing_token"]}
    return WORLD.gateway("POST", f"/w/{name[4:]}", token, b"x", held=False)


@test
def a_table_that_was_changed_since_the_backup_that_was_restored_is_told():
    check_equal(sent().status, 200)
    backup = WORLD.redis.keep()
    wait_back()
    routes_file(pathlib.Path(ROUTES).parent, [route(UPSTREAM, "/w/{id}", "job:{id}"), route(UPSTREAM, "/new/{id}", "new:{id}")])
    WORLD.gateway_daemon.send(signal.SIGHUP)
    wait_until(lambda: sent().code == "routes-differ", "the new file is read")
    wait_until(lambda: not WORLD.gateway("GET", "/v1/intents").json["items"], "what was sent is closed")
    PAWL("routes", "adopt")
    check_equal(sent().status, 200)
    wait_until(lambda: ready(WORLD.gateway).json["checks"] == {"store": "ok"}, "all agree")
    before = logged(WORLD.gateway_daemon, "routes-differ")
    WORLD.redis.set_back(backup)
    wait_back()
    check_equal(WORLD.redis("HGET", "pawl:{store}", "how"), b"incomplete")
    wait_until(lambda: ready(WORLD.gateway).json["checks"] == {"store": "ok", "ordered": "routes-differ"}, "told before anybody asks")
    check_equal(sent().code, "routes-differ")
    told = [ready(WORLD.gateway).json["detail"], *(one["what"] + one["remedy"] for one in doctor(1) if one["status"] == "problem")]
    finding, = status(1)["findings"]
    for text in (told[0], " ".join(told[1:]), finding["what"] + finding["todo"]):
        check_in("routes-differ", text)
        check_in("pawl routes adopt", text)
    wait_until(lambda: not WORLD.gateway("GET", "/v1/intents").json["items"], "what was put back as open is closed")
    PAWL("routes", "adopt")
    wait_until(lambda: ready(WORLD.gateway).json["checks"] == {"store": "ok"}, "it is over")
    check_equal(sent().status, 200)
    check_equal(status(0)["findings"], [])
    wait_logged(WORLD.gateway_daemon, lambda times: times == [before + 1] * 2, "routes-differ", "routes-differ-no-more")


main(parts=2)
