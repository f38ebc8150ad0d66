#!/usr/bin/python3
"""The store killed, stopped, empty, out of memory, unsafe: 503 when it certainly did not happen, 504 when nobody knows,
and never a refusal that is not true."""

import concurrent.futures
import os
import shutil
import signal
import tempfile
import time

from world import Client, Daemon, Keys, PrivateRedis, World, check, check_equal, check_in, keeps_within, main, of_time, \
    run_daemon, test, test_in, wait_until
from world.asking import path

TIMEOUT_MS = 300
# The lease service waits the documented way, the gateway polls (docs/decisions/0007).
WORLD = World("--store-timeout", f"{TIMEOUT_MS}ms", lease_flags=["--suspend-always"])


def resource(name):
    return f"/v1/resources/{name}"


def readyz(client):
    return client("GET", "/readyz")


def all_requests(name, grant):
    """One of each that asks the store: [(what, its answer)]."""
    lease, gateway, token = WORLD.lease, WORLD.gateway, [("Fencing-Token", grant["fencing_token"])]
    holds = {"Lease-Id": grant["lease_id"]}
    return [
        ("acquire", lambda: lease("POST", path(name), body={})),
        ("replay", lambda: lease("POST", path(name), body={"lease_id": grant["lease_id"]})),
        ("renew", lambda: lease("PUT", path(name), holds)),
        ("release", lambda: lease("DELETE", path(name), {"Lease-Id": "x" * 22})),
        ("look", lambda: lease("GET", path(name))),
        ("list", lambda: lease("GET", "/v1/leases")),
        ("put", lambda: gateway("PUT", resource(name), token, b"x")),
        ("delete", lambda: gateway("DELETE", resource(name + "/none"), token)),
        ("read", lambda: gateway("GET", resource(name))),
        ("fenced read", lambda: gateway("GET", resource(name), token)),
        ("mark", lambda: gateway("GET", f"/v1/marks/{name}")),
        ("check", lambda: gateway("GET", f"/v1/check/{name}", token)),
        ("native check", lambda: gateway("GET", f"/v1/check/{name}?deny=native", token)),
        ("intents", lambda: gateway("GET", "/v1/intents")),
        ("intents of one", lambda: gateway("GET", f"/v1/intents/{name}")),
        ("resolve", lambda: gateway("POST", f"/v1/intents/{name}/resolve")),
        ("in doubt", lambda: gateway("GET", "/v1/gateways/doubt")),
        ("dead", lambda: gateway("POST", f"/v1/gateways/{'g' * 16}/dead")),
    ]


# -- killed

@test
def with_the_store_killed_everything_is_503_at_once_and_readyz_fails(name):
    grant = WORLD.acquire(name, ttl_ms=600000)
    WORLD.redis.kill()
    for client in (WORLD.lease, WORLD.gateway):
        wait_until(lambda client=client: readyz(client).status == 503, "readyz fails")
    for what, request in all_requests(name, grant):
        def took_ms(what=what, request=request):
            answer = request()
            check_equal((answer.status, answer.code), (503, "store-unavailable"), what)
            check(answer.json["retryable"], what)
            return answer.took_s * 1000
        keeps_within(TIMEOUT_MS, took_ms, what)
    for client in (WORLD.lease, WORLD.gateway):
        answer = readyz(client)
        check_in("store", answer.json["check"])
        check(client("GET", "/livez").status == client("GET", "/metrics").status == 200, "it is not alive")
    put = WORLD.gateway("PUT", resource(name), {"Fencing-Token": grant["fencing_token"]}, b"x")
    check_equal(put.header("Fencing-Status"), f"pawl; verdict=refused; reason=store-unavailable; token={grant['token']}")


@test
def after_a_restart_on_the_same_data_both_are_back_within_two_seconds():
    def took_ms():
        WORLD.redis.kill()  # also when it is dead already
        for client in (WORLD.lease, WORLD.gateway):
            wait_until(lambda client=client: readyz(client).status == 503, "readyz fails")
        WORLD.redis.start()
        begun = time.monotonic()
        WORLD.wait_ready()
        return (time.monotonic() - begun) * 1000
    keeps_within(2000, took_ms, "from the store's return until both are ready")
    check_equal(WORLD.lease("POST", path(WORLD.name())).status, 201)


# -- stopped

@test_in(World)
def a_service_that_stood_still_itself_waits_for_who_did_so_too(world):
    name = world.name()
    world.acquire(name, ttl_ms=600000)
    world.redis.kill()
    world.gateway_daemon.send(signal.SIGSTOP)
    world.redis.start()
    wait_until(lambda: world.lease("GET", "/readyz").code == "store-not-admitted", "it waits for the gateway")
    for daemon, number, after_s in ((world.lease_daemon, signal.SIGSTOP, 0.15), (world.lease_daemon, signal.SIGCONT, 1.6),
                                    (world.gateway_daemon, signal.SIGCONT, 0.1)):
        at = time.monotonic() + after_s
        wait_until(lambda: time.monotonic() > at, "time passes")  # noqa: B023
        daemon.send(number)
    world.wait_ready()
    check_equal(world.look(name)["state"], "held")


@test
@of_time
def with_the_store_stopped_in_mid_call_the_outcome_is_unknown_and_never_a_refusal(name):
    grant = WORLD.acquire(name, ttl_ms=600000)
    WORLD.wait_ready()
    stopping = time.monotonic()

    def timed(request):
        answer = request()
        return answer, (time.monotonic() - stopping) * 1000
    WORLD.redis.stop()
    try:
        with concurrent.futures.ThreadPoolExecutor(len(all_requests(name, grant))) as pool:
            asked = [(what, pool.submit(timed, request)) for what, request in all_requests(name, grant)]
            answers = [(what, *one.result()) for what, one in asked]
            later = [(what, pool.submit(request)) for what, request in all_requests(name, grant)]
            for what, one in later:  # on a link that was given up, or one that is being opened
                check_in(one.result().status, (503, 504), what)
        for client in (WORLD.lease, WORLD.gateway):
            check_equal(readyz(client).status, 503)
    finally:
        WORLD.redis.go_on()
    for what, answer, ended_ms in answers:
        check_equal((answer.status, answer.code), (504, "outcome-unknown"), what)
        # The oldest call on a link takes the younger ones along: it may have been sent just before the store stopped.
        check(ended_ms >= TIMEOUT_MS - 50, f"{what} was answered {ended_ms} ms after the store stopped")
        check(answer.took_s * 1000 < TIMEOUT_MS + 1000, f"{what} took {answer.took_s} s")
        if "check" in what or what in ("put", "delete", "fenced read"):
            check_equal(answer.header("Fencing-Status"),
                        f"pawl; verdict=unknown; reason=outcome-unknown; token={grant['token']}", what)


@test
def after_a_504_the_same_acquire_renew_and_write_are_safe():
    name, lease_id = WORLD.name(), "safe-" + "x" * 22
    WORLD.wait_ready()
    WORLD.redis.stop()
    first = WORLD.lease("POST", path(name), body={"lease_id": lease_id})
    WORLD.redis.go_on()
    check_equal(first.status, 504)
    WORLD.wait_ready()
    again = WORLD.lease("POST", path(name), body={"lease_id": lease_id})
    check(again.status in (200, 201), again)
    grant = again.json
    key = [("Fencing-Token", grant["fencing_token"]), ("Idempotency-Key", "k"), ("If-None-Match", "*")]
    WORLD.redis.stop()
    first = WORLD.gateway("PUT", resource(name), key, b"x")
    WORLD.redis.go_on()
    check_equal(first.status, 504)
    WORLD.wait_ready()
    check_equal(WORLD.gateway("PUT", resource(name), key, b"x").status, 201)
    check_equal(WORLD.gateway("PUT", resource(name), key, b"x").status, 201)
    check_equal(WORLD.lease("PUT", path(name), {"Lease-Id": lease_id}).status, 200)


# -- not ours

@test_in(lambda: World(init_store=False))
def on_an_empty_store_nothing_is_done_and_readyz_says_so(world):
    for client in (world.lease, world.gateway):
        answer = wait_until(lambda client=client: readyz(client), "readyz")
        check_equal((answer.status, answer.code, answer.json["check"]), (503, "store-not-ours", "store-not-ours"))
    for method, headers in (("POST", {}), ("PUT", {"Lease-Id": "x" * 22}), ("DELETE", {"Lease-Id": "x" * 22}), ("GET", {})):
        answer = world.lease(method, path("a"), headers)
        check_equal((answer.status, answer.code), (503, "store-not-ours"), method)
    for target, ask in ((path("a"), {}), ("/v1/leases", {"names": ["a", "b"]})):  # who would wait hears no "try again" either
        answer = world.lease("POST", target, body={**ask, "wait_ms": 5000})
        check_equal((answer.status, answer.code), (503, "store-not-ours"), target)
    check_equal(world.lease("GET", "/v1/leases").code, "store-not-ours")
    check_equal(world.gateway("GET", "/v1/marks/a").code, "store-not-ours")
    check_equal(world.redis("DBSIZE"), 0)
    world.init_store()
    world.wait_ready()
    grant = world.acquire("a")
    check_equal((readyz(world.lease).status, readyz(world.gateway).status), (200, 200))
    world.redis("FLUSHALL")
    answer = world.gateway("PUT", resource("a"), {"Fencing-Token": grant["fencing_token"]}, b"x")
    check_equal((answer.status, answer.code), (503, "store-not-ours"))
    check_equal(answer.header("Fencing-Status"), f"pawl; verdict=refused; reason=store-not-ours; token={grant['token']}")
    check_equal(world.redis("DBSIZE"), 0)


# -- not there yet

@test
@of_time
def a_daemon_that_starts_before_its_redis_finds_it_later():
    with tempfile.TemporaryDirectory(prefix="pawl-late-") as folder:
        keys = os.path.join(folder, "keys")
        Keys().write(keys)
        daemon = Daemon("pawl-lease", "--redis", f"unix://{folder}/r.sock", "--keys", keys, "--listen", "127.0.0.1:0",
                        "--store-timeout", "200ms")
        lease = Client("lease", daemon.url, World.contract)
        check_equal((readyz(lease).status, lease("POST", path("a")).status), (503, 503))
        check_equal(run_daemon("pawl-lease", *daemon.flags[:2], "--init-store", "--store-timeout", "200ms").returncode, 69)
        redis = PrivateRedis(folder)
        begun = time.monotonic()
        answer = wait_until(lambda: (a := readyz(lease)).code == "store-not-ours" and a, "it finds its Redis")
        check(time.monotonic() - begun < 2, f"it took {time.monotonic() - begun:.1f} s")
        check_equal(answer.status, 503)
        check_equal(run_daemon("pawl-lease", "--redis", redis.url, "--init-store").returncode, 0)
        wait_until(lambda: readyz(lease).status == 200, "it takes the place of the directory that never began")
        check_equal(lease("POST", path("a")).status, 201)
        check_equal(daemon.end(), 0)
        redis.close()


# -- unsafe

UNSAFE = [("maxmemory-policy", "allkeys-lru"), ("maxmemory-policy", "volatile-ttl"), ("appendonly", "no"), ("appendfsync", "everysec"),
          ("appendfsync", "no"), ("no-appendfsync-on-rewrite", "yes"), ("aof-load-truncated", "yes")]


@test
def a_redis_that_can_lose_locks_is_refused_at_start_with_the_setting_named():
    with tempfile.TemporaryDirectory(prefix="pawl-unsafe-") as folder:
        redis = PrivateRedis(folder)
        keys = os.path.join(folder, "keys")
        Keys().write(keys)
        flags = ["--redis", redis.url, "--keys", keys, "--listen", "127.0.0.1:0"]
        for i, (name, value) in enumerate(UNSAFE):
            good = redis("CONFIG", "GET", name)[1]
            redis("CONFIG", "SET", name, value)
            runs = [("pawl-gateway" if i % 2 else "pawl-lease", flags), ("pawl-lease", [*flags[:2], "--init-store"])]
            for program, given in runs:
                done = run_daemon(program, *given)
                check_equal(done.returncode, 78, f"{name} {value}: {done}")
                check_in(name, done.stderr)
                check_in("--allow-unsafe-redis", done.stderr)
            check_equal(redis("DBSIZE"), 0)
            redis("CONFIG", "SET", name, good)
            wait_until(lambda: b"aof_rewrite_in_progress:0" in redis("INFO", "persistence"), "the first rewrite is over")
        redis("CONFIG", "SET", "appendfsync", "everysec")
        daemon = Daemon("pawl-lease", *flags, "--allow-unsafe-redis")
        check_equal(run_daemon("pawl-lease", *flags[:2], "--init-store", "--allow-unsafe-redis").returncode, 0)
        lease = Client("lease", daemon.url, World.contract)
        wait_until(lambda: readyz(lease).status == 200, "it is ready")
        check_equal(lease("POST", path("a")).status, 201)
        check_equal(daemon.end(), 0)
        redis.close()


@test_in(World)
def a_store_that_comes_back_unsafe_gets_no_new_grants_until_it_is_safe_again(world):
    settings = ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--aof-load-truncated", "no"]
    held = world.acquire("held", ttl_ms=600000)
    world.redis.kill()
    world.redis.start(settings)
    for client in (world.lease, world.gateway):
        wait_until(lambda client=client: readyz(client).code == "store-unsafe", "the settings were looked at")
    lease, gateway = world.lease, world.gateway
    for client in (lease, gateway):  # only new grants are stopped
        answer = readyz(client)
        check_equal((answer.status, answer.code, answer.json["check"]), (503, "store-unsafe", "store-unsafe"))
        check_in("appendfsync", answer.json["detail"])
    answer = lease("POST", path("fresh"))
    check_equal((answer.status, answer.code), (503, "store-unsafe"))
    check_equal(world.look("fresh")["token"], 0)
    check_equal(lease("POST", path("held")).code, "lease-held")
    check_equal(world.acquire("held", 200, lease_id=held["lease_id"])["token"], held["token"])
    check_equal(lease("PUT", path("held"), {"Lease-Id": held["lease_id"]}).status, 200)
    check_equal(gateway("PUT", resource("held"), {"Fencing-Token": held["fencing_token"]}, b"x").status, 201)
    check_equal(lease("DELETE", path("held"), {"Lease-Id": held["lease_id"]}).status, 204)
    world.redis.restart()
    world.wait_ready()
    world.acquire("fresh")


@test_in(World)
def whose_place_a_copy_of_its_state_directory_has_taken_admits_nothing(world):
    kept = world.redis.keep()
    world.wait_ready()
    shutil.copytree(world.redis.folder + "/state-pawl-lease-0", world.folder + "/copy")
    copy = Daemon("pawl-lease", *world.flags, environment={"STATE_DIRECTORY": world.folder + "/copy"})
    world.daemons.append(copy)
    world.wait_ready(world.client(copy))
    wait_until(lambda: readyz(world.lease).code == "store-not-ours", "it knows of the copy")
    granted = world.acquire("job", client=world.client(copy))
    copy.send(signal.SIGSTOP)
    world.redis.set_back(kept)
    end = time.monotonic() + 2
    wait_until(lambda: time.monotonic() > end, "others had the time to admit it")
    check_equal(readyz(world.gateway).code, "store-not-admitted")
    copy.send(signal.SIGCONT)
    world.wait_ready(world.gateway, world.client(copy))
    check(world.acquire("job", client=world.client(copy))["token"] > granted["token"], granted)
    check_equal(readyz(world.lease).code, "store-not-ours")


@test
def a_store_that_is_gone_does_not_fill_the_log():
    lines = WORLD.lease_daemon.log().count("\n") + WORLD.gateway_daemon.log().count("\n")
    check(lines < 2000, f"{lines} lines")
    for daemon in (WORLD.lease_daemon, WORLD.gateway_daemon):
        check_in("store", daemon.log())


main(WORLD.wait_ready, WORLD.close)
