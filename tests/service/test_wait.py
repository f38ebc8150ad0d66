#!/usr/bin/python3
"""Waiting in line: first come, first served, over all instances; what a waiter is told, and when. What breaks is in
test_wait_faults.py."""

import json
import signal
import time

from world import World, check, check_equal, check_in, keeps_within, main, of_time, test, wait_until
from world.asking import path
from world.record import record_of
from world.waiting import Waiter, lease_id_of, line_key, nothing_is_left_of_the_line

WORLD = World()
BESIDE = WORLD.daemon("pawl-lease")  # another instance on the same store
CLIENTS = [WORLD.lease, WORLD.client(BESIDE)]
SOON_MS = 50  # docs/contract.md: so long after a deadline a lease has gone on


def waiting(name, client=None):
    return (client or WORLD.lease)("GET", path(name)).json["waiting"]


def renew(name, grant, ttl_ms):
    answer = WORLD.lease("PUT", path(name), {"Lease-Id": grant["lease_id"]}, {"ttl_ms": ttl_ms})
    check_equal(answer.status, 200)
    return answer.json


# -- first come, first served

@test
def who_waits_at_whichever_instance_is_served_in_the_order_of_coming(name):
    grant = WORLD.acquire(name)
    waiters = [Waiter(WORLD, CLIENTS[i % 2], name, f"w{i:02}") for i in range(10)]
    check_equal(waiting(name), 10)
    line = WORLD.look(name)["line"]
    check_equal([(one["holder"], one["mode"]) for one in line], [(f"w{i:02}", "exclusive") for i in range(10)])
    check(all(0 <= one["waits_ms"] < 60000 and 0 < one["gives_up_in_ms"] <= 60000 for one in line), line)
    tokens = [grant["token"]]
    for waiter in waiters:
        check(all(one.answer is None for one in waiters[waiters.index(waiter):]), "somebody was told too early")
        WORLD.release(name, grant)
        grant = waiter.told()
        tokens.append(grant["token"])
        check_equal((grant["lease"], grant["holder"], grant["expires_in_ms"], grant["lease_id"]),
                    (name, waiter.body["holder"], 60000, waiter.body["lease_id"]))
    check_equal(tokens, sorted(set(tokens)), "each is higher than the one before")
    WORLD.release(name, grant)
    nothing_is_left_of_the_line(WORLD, name)


# -- nobody calls

@test
def what_expires_is_handed_on_within_50_ms_and_nobody_has_to_call():
    def late_ms():
        """The store's own times; of twenty the seventeenth, and none is early."""
        names = [WORLD.name("soon") for _ in range(20)]
        grants = [WORLD.acquire(name) for name in names]
        waiters = [Waiter(WORLD, CLIENTS[i % 2], name, f"w{i}") for i, name in enumerate(names)]
        deadlines = []
        for i, (name, grant) in enumerate(zip(names, grants)):  # now that all are in line, however long that took
            renewed = renew(name, grant, 700 + 13 * i)
            record = record_of(WORLD.redis, name)
            deadlines.append(int(record["d"]) if record["t"] == str(renewed["token"]) else None)  # None: it has gone on already
        for waiter in waiters:
            waiter.told()
        late = sorted(int(record_of(WORLD.redis, name)["g"]) - deadline for name, deadline in zip(names, deadlines) if deadline)
        print(f"# handed on so many ms after the deadline: {late}", flush=True)
        check(not late or late[0] >= 0, f"handed on before the deadline: {late}")
        return late[len(late) * 8 // 10] if len(late) > 10 else float("inf")
    keeps_within(SOON_MS, late_ms, "from the deadline to the hand-off")


# -- what ends the waiting

@test
def what_became_of_those_who_waited_is_counted():
    def counts():
        return [sum(client.metric(f'pawl_lease_waits_total{{what="{what}"}}') for client in CLIENTS)
                for what in ("queued", "granted", "timed-out", "superseded")]
    before, name = counts(), WORLD.name()
    grant = WORLD.acquire(name)
    Waiter(WORLD, CLIENTS[0], name, "late", wait_ms=50, in_line=False).told(409, "wait-timeout")
    first = Waiter(WORLD, CLIENTS[0], name, "one")
    wait_until(lambda: CLIENTS[0].metric("pawl_lease_waiting") == 1, "the gauge shows who waits")
    second = Waiter(WORLD, CLIENTS[1], name, "one", in_line=False)
    first.told(409, "superseded")
    WORLD.release(name, grant)
    second.told()
    check_equal([now - was for now, was in zip(counts(), before)], [3, 1, 1, 1])


# -- places that outlive their connection

KEEP_MS = 30000


def leaves_by_time(client, name):
    """wait_ms is over; the answer says for how long the place is kept."""
    told = Waiter(WORLD, client, name, "kept", wait_ms=100, keep_place_ms=KEEP_MS).told(409, "wait-timeout")
    check_equal(told["place_kept_ms"], KEEP_MS)


def leaves_by_closing(client, name):
    raw = WORLD.raw(next(one for one in WORLD.daemons if one.url == client.url))
    body = json.dumps({"holder": "kept", "lease_id": lease_id_of("kept"), "wait_ms": 60000, "keep_place_ms": KEEP_MS})
    raw.send(f"POST {path(name)} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             f"Content-Length: {len(body)}\r\n\r\n{body}")
    wait_until(lambda: waiting(name) == 1, "it is in line")
    raw.close()
    wait_until(lambda: WORLD.redis("ZCARD", line_key(name, "p")) == 1, "its place is kept")


def leaves_by_stopping(number):
    def leaves(_, name):
        daemon = WORLD.daemon("pawl-lease")
        waiter = Waiter(WORLD, WORLD.client(daemon), name, "kept", keep_place_ms=KEEP_MS)
        if number == signal.SIGTERM:
            check_equal(daemon.end(), 0)
            waiter.told(503, "draining")
        else:
            daemon.kill()
    return leaves


@test
def a_place_is_kept_for_its_lease_id_at_any_instance_and_over_the_end_of_the_one_where_it_stood():
    for leaves in (leaves_by_time, leaves_by_closing, leaves_by_stopping(signal.SIGTERM), leaves_by_stopping(signal.SIGKILL)):
        name = WORLD.name()
        grant = WORLD.acquire(name)
        leaves(CLIENTS[0], name)
        other = Waiter(WORLD, CLIENTS[0], name, "other")
        again = Waiter(WORLD, CLIENTS[1], name, "kept", in_line=False, keep_place_ms=KEEP_MS)
        wait_until(lambda: CLIENTS[1].metric("pawl_lease_waiting") == 1, "it waits again")
        check_equal(waiting(name, CLIENTS[1]), 2)
        WORLD.release(name, grant)
        WORLD.release(name, again.told())
        WORLD.release(name, other.told())
        nothing_is_left_of_the_line(WORLD, name)
        check_equal(WORLD.redis("EXISTS", line_key(name, "p")), 0)


@test
def a_place_is_kept_only_for_a_lease_id_of_the_clients_own_and_of_one_lease(name):
    WORLD.acquire(name)
    for ask, where in (({"keep_place_ms": 5}, path(name)), ({"keep_place_ms": 5, "names": [name]}, "/v1/leases")):
        answer = WORLD.lease("POST", where, body={"wait_ms": 50, **ask})
        check_equal((answer.status, answer.code), (400, "invalid-request"), ask)
        check_in("keep_place_ms", answer.json["detail"])
    told = Waiter(WORLD, CLIENTS[0], name, "plain", wait_ms=50, in_line=False).told(409, "wait-timeout")
    check("place_kept_ms" not in told, told)


# -- instances

@test
def every_thread_of_an_instance_has_its_own_desk(name):
    daemon = WORLD.daemon("pawl-lease", "--threads", "3", "--suspend-always")
    grant = WORLD.acquire(name)
    waiters = [Waiter(WORLD, WORLD.client(daemon), name, f"w{i}") for i in range(9)]
    desks = {json.loads(terms)["more"]["desk"] for terms in WORLD.redis("HVALS", line_key(name, "w"))}
    check(len(desks) > 1, f"all wait at {desks}")
    for waiter in waiters:
        WORLD.release(name, grant)
        grant = waiter.told()
    check_equal(daemon.end(), 0)


# -- a new life

@test
@of_time
def who_waits_when_a_new_life_begins_while_the_link_stands_is_told_soon_and_has_the_lease_when_he_asks_again(name):
    WORLD.acquire(name, ttl_ms=600000)
    waiters = [Waiter(WORLD, client, name, f"w{i}") for i, client in enumerate(CLIENTS)]
    epoch = int(WORLD.redis("HGET", "pawl:{store}", "epoch"))
    begun = time.monotonic()
    WORLD.redis("EVAL", "for _, id in ipairs(redis.call('SMEMBERS', KEYS[1] .. ':members')) do "
                "redis.call('HDEL', KEYS[1] .. ':m:' .. id, 'beats') end", 1, "pawl:{store}")
    for waiter in waiters:
        waiter.told(503, "store-unavailable")
        check(waiter.ended - begun < 10, f"told after {waiter.ended - begun:.1f} s")
    check(int(WORLD.redis("HGET", "pawl:{store}", "epoch")) > epoch, "no new life began")
    WORLD.wait_ready(*CLIENTS)
    again = Waiter(WORLD, CLIENTS[1], name, "again", in_line=False)
    check_equal(again.told()["lease"], name)
    check_equal(WORLD.look(name)["holders"][0]["holder"], "again")


main(WORLD.close, parts=2)
