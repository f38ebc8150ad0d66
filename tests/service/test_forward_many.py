#!/usr/bin/python3
"""pawl-gateway in front of an HTTP upstream with many writes at once."""

import concurrent.futures
import tempfile
import threading

from world import World, check, check_equal, main, test, wait_until
from world.upstream import Upstream, route, routes_file

MANY = 384  # more calls than the gateway has under way by itself, looks and heartbeats
OF_A_CALL = 32  # CLOSE_MAX in gateway/intent/intent.h
UPSTREAM = Upstream()
TABLE = routes_file(tempfile.mkdtemp(prefix="pawl-routes-"), [route(UPSTREAM, "/orders/{id}", "order:{id}", timeout_ms=10000)])
WORLD = World("--store-timeout", "10s", gateway_flags=["--routes", TABLE])


@test
def what_has_ended_is_closed_in_as_many_calls_at_once_as_it_takes():
    go_on = threading.Event()

    def act(upstream, request):
        go_on.wait(20)
        upstream.obey(request)

    UPSTREAM.act = act
    grants = [WORLD.acquire(f"order:many{i}") for i in range(MANY)]
    with concurrent.futures.ThreadPoolExecutor(MANY) as threads:
        answers = [threads.submit(WORLD.gateway, "PUT", f"/orders/many{i}", [("Fencing-Token", grant["fencing_token"])],
                                  b"x", held=False) for i, grant in enumerate(grants)]
        UPSTREAM.got(MANY)
        wait_until(lambda: WORLD.gateway.metric("pawl_store_calls_in_flight") <= 2, "all are admitted")
        WORLD.redis.stop()
        try:
            go_on.set()
            check_equal({answer.result(20).status for answer in answers}, {200}, "nobody waits for the closing")
            wait_until(lambda: WORLD.gateway.metric("pawl_store_calls_in_flight") >= MANY / OF_A_CALL,
                       "one call waits for no other: else what is open grows for as long as there are many writes")
        finally:
            WORLD.redis.go_on()
    wait_until(lambda: WORLD.gateway.metric("pawl_gateway_intents") == 0, "all are closed")
    check_equal(len(UPSTREAM.applied), MANY)
    check(not UPSTREAM.wrong, UPSTREAM.wrong)


main()
