#!/usr/bin/python3
"""One client asks for more than its share: what the others notice of it, with the real binaries."""

import json
import multiprocessing
import re
import selectors
import socket
import statistics
import time

from world import World, check, check_equal, keeps_within, main, test, wait_until

WORLD = World()
ASKS_PER_S, ATTACK_S = 540, 2


def request(method, path, fields, body):
    data = json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    return (head + "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n").encode() + data


def a_hundred(asked):
    return request("POST", "/v1/leases", [], {"names": [f"all:{asked}:{i}" for i in range(100)], "ttl_ms": 1000})


def attack(port, told, ask=a_hundred, asks_per_s=ASKS_PER_S, seconds=ATTACK_S):
    """Asks so many times a second, whatever is answered; tells the statuses."""
    poll, free, statuses, asked, begun = selectors.DefaultSelector(), [], {}, 0, time.monotonic()
    while time.monotonic() < begun + seconds or (len(poll.get_map()) > len(free) and time.monotonic() < begun + seconds + 10):
        while time.monotonic() < begun + seconds and asked < (time.monotonic() - begun) * asks_per_s:
            one = free.pop() if free else socket.create_connection(("127.0.0.1", port))
            if one not in poll.get_map():
                poll.register(one, selectors.EVENT_READ)
            one.sendall(ask(asked))
            asked += 1
        for key, _ in poll.select(0.001):
            data = key.fileobj.recv(1 << 20)
            if data.startswith(b"HTTP/1.1 "):  # an answer's first piece; the rest of it is of no interest
                status = int(data[9:12])
                statuses[status] = statuses.get(status, 0) + 1
                free.append(key.fileobj)
            if not data:
                poll.unregister(key.fileobj)
    told.put(statuses)


def renewals(name, grant, goes_on):
    """(status, milliseconds) of each; one after the other, as a holder does."""
    answers = []
    while goes_on(answers):
        answer = WORLD.lease("PUT", f"/v1/leases/{name}", {"Lease-Id": grant["lease_id"]})
        answers.append((answer.status, answer.took_s * 1000))
    return answers


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


@test
def a_bystander_renews_as_ever_while_somebody_asks_for_a_hundred_leases_at_a_time(name):
    grant = WORLD.acquire(name, ttl_ms=60000)

    def median_ms():
        alone = statistics.median(took for _, took in renewals(name, grant, lambda answers: len(answers) < 50))
        told = multiprocessing.Queue()
        process = multiprocessing.Process(target=attack, args=(WORLD.lease_daemon.port, told), daemon=True)
        process.start()
        answers = renewals(name, grant, lambda _: process.is_alive())
        statuses, took = told.get(timeout=10), [took for _, took in answers]
        print(f"# the attack was answered {statuses}; {len(took)} renewals: p50 {statistics.median(took):.2f} ms, {alone:.2f} alone, "
              f"p99 {percentile(took, 99):.2f} ms, the longest {max(took):.0f} ms")
        check_equal({status for status, _ in answers}, {200})
        check_equal(set(statuses) - {201, 503}, set())
        check(statuses.get(201, 0) > 10, "all-or-none is still lent")
        # 99 of 100 renewals are not held up. On a machine on which one takes longer by itself it may take three times that.
        return max(statistics.median(took), percentile(took, 99) / 15) * min(1, 10 / (3 * alone))
    keeps_within(10, median_ms, "a renewal")


@test
def renewals_go_on_while_many_look_at_a_lease_that_a_thousand_share(name):
    shared, grant, told = WORLD.name(), WORLD.acquire(name, ttl_ms=60000), multiprocessing.Queue()
    for _ in range(1000):
        WORLD.acquire(shared, mode="shared", ttl_ms=60000)
    look = f"GET /v1/leases/{shared} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    process = multiprocessing.Process(target=attack, args=(WORLD.lease_daemon.port, told, lambda _: look), daemon=True)
    process.start()
    answers = renewals(name, grant, lambda _: process.is_alive())
    statuses = told.get(timeout=10)
    print(f"# the looks were answered {statuses}; {len(answers)} renewals, the longest {max(took for _, took in answers):.0f} ms")
    check_equal({status for status, _ in answers}, {200})
    check(set(statuses) <= {200, 503}, statuses)  # overloaded, unless Redis is faster than they are
    check("pawl_store_reconnects_total 0\n" in WORLD.lease("GET", "/metrics", held=False).body.decode(), "Redis was heard all the time")


def subscribe(port, count, told, listens, over):
    poll, items, chunks = selectors.DefaultSelector(), 0, 0
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", port))
        one.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        poll.register(one, selectors.EVENT_READ)
    listens.set()
    while not over.is_set():
        for key, _ in poll.select(0.05):
            text = key.fileobj.recv(1 << 18)
            items, chunks = items + text.count(b"event: granted"), chunks + len(re.findall(rb"(?m)^[0-9a-fA-F]+\r\n", text))
    told.put((items // count, chunks // count))


def grants(seconds, pause_s=0.0):
    """Milliseconds of each; pause_s: from one's beginning to the next one's."""
    took, begun = [], time.monotonic()
    while time.monotonic() < begun + seconds:
        if time.monotonic() >= begun + len(took) * pause_s:
            answer = WORLD.lease("POST", f"/v1/leases/{WORLD.name()}", body={"ttl_ms": 60000}, held=False)
            check_equal(answer.status, 201)
            took.append(answer.took_s * 1000)
    return took


@test
def a_thousand_subscribers_do_not_hold_up_who_acquires():
    told, listens, over, count = multiprocessing.Queue(), multiprocessing.Event(), multiprocessing.Event(), 1000
    alone, alone_fast = grants(1, 0.05), grants(1)
    process = multiprocessing.Process(target=subscribe, args=(WORLD.lease_daemon.port, count, told, listens, over), daemon=True)
    process.start()
    check(listens.wait(20), "all of them have asked")
    wait_until(lambda: f"pawl_lease_listening {count}\n" in WORLD.lease("GET", "/metrics", held=False).body.decode(), "all listen")
    among, among_fast = grants(1, 0.05), grants(2)
    over.set()
    items, chunks = told.get(timeout=20)
    print(f"# a grant, p50: {statistics.median(alone):.2f} ms alone, {statistics.median(among):.2f} ms among {count}; at full speed "
          f"{len(alone_fast)} a second alone, {len(among_fast) / 2:.0f} among them; each was told {items} items in {chunks} pieces")
    check(0 < chunks < 100, "what comes quickly is told together")


main()
