#!/usr/bin/python3
"""Clients race for one lease while the gateway takes their writes; what happened is written down and checked afterwards.

The store's clock is the judge of who holds; here the histories of the clients are judged on one monotonic clock, that of this
process. A hold is certainly over at the moment its release was sent, or its ttl after the acquire was sent; a grant certainly
began after the acquire was sent. So two holds certainly overlap only if each began (answered) before the other ended (sent)."""

import random
import threading
import time

from world import World, check, check_equal, main, test
from world.wait import DEADLINE_S

WORLD = World("--threads", "2")
CLIENTS, RACE_S = 8, 1.0  # longer on a machine on which too little happens in that time


class History:
    """What one client saw: holds and writes, with the times at which each was asked and answered."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.holds, self.writes, self.wrong = [], [], []


def run(worker, enough=lambda histories: True):
    """One thread for each client, which goes on while races() is true: for RACE_S, and until there is enough to judge;
    what goes wrong in one is told."""
    histories = [History(seed) for seed in range(CLIENTS)]
    begun = time.monotonic()

    def races():
        took_s = time.monotonic() - begun
        return took_s < RACE_S or (took_s < DEADLINE_S and not enough(histories))

    def guarded(history, number):
        try:
            worker(history, number, races)
        except Exception as error:  # pylint: disable=broad-except # told by the main thread
            history.wrong.append(repr(error))
    threads = [threading.Thread(target=guarded, args=(history, number)) for number, history in enumerate(histories)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for history in histories:
        check_equal(history.wrong, [])
    return histories


def acquire(lease, name, **ask):
    """(grant or None, asked at, answered at)"""
    asked = time.monotonic()
    answer = lease("POST", f"/v1/leases/{name}", body=ask)
    if answer.status == 409:
        check_equal(answer.code, "lease-held")
        return None, asked, time.monotonic()
    check_equal(answer.status, 201, repr(answer))
    return answer.json, asked, time.monotonic()


def hold_of(grant, asked, answered):
    return {"token": grant["token"], "epoch": grant["epoch"], "asked": asked, "answered": answered,
            "ends": answered + grant["ttl_ms"] / 1000}


def holds_in(histories):
    return sum(len(history.holds) for history in histories)


def check_holds(histories, at_least):
    """No token twice; tokens rise in the order of the grants; no two holds at once."""
    holds = sorted((hold for history in histories for hold in history.holds), key=lambda hold: hold["token"])
    check(len(holds) >= at_least, f"only {len(holds)} holds")
    tokens = [hold["token"] for hold in holds]
    check_equal(len(set(tokens)), len(tokens), "a token was granted twice")
    for before, after in zip(holds, holds[1:]):
        check(before["asked"] <= after["answered"], f"tokens do not rise in the order of the grants: {before} {after}")
        # The later one was granted (answered) although the earlier one was not given up (asked to end) yet.
        check(after["answered"] >= before["ended"], f"two holds at once: {before} {after}")
    return holds


@test
def eight_clients_that_race_for_one_lease_hold_it_one_after_the_other():
    name = WORLD.name("race")

    def worker(history, _, races):
        lease = WORLD.client(WORLD.lease_daemon)
        while races():
            grant, asked, answered = acquire(lease, name)
            if grant is None:
                continue
            hold = hold_of(grant, asked, answered)
            hold["ended"] = time.monotonic()
            check_equal(lease("DELETE", f"/v1/leases/{name}", {"Lease-Id": grant["lease_id"]}).status, 204)
            history.holds.append(hold)

    def several_had_it(histories):
        return sum(bool(history.holds) for history in histories) > 1
    histories = run(worker, lambda histories: holds_in(histories) >= 20 and several_had_it(histories))
    check_holds(histories, 20)
    check(several_had_it(histories), "only one client ever got it")


@test
def holds_that_are_left_to_expire_do_not_overlap_either():
    name = WORLD.name("expire")

    def worker(history, _, races):
        lease = WORLD.client(WORLD.lease_daemon)
        while races():
            grant, asked, answered = acquire(lease, name, ttl_ms=100)
            if grant is not None:
                # It certainly lives until its ttl after it was asked for.
                history.holds.append({**hold_of(grant, asked, answered), "ended": asked + 0.1})
    check_holds(run(worker, lambda histories: holds_in(histories) >= 8), 8)


@test
def every_acknowledged_write_was_made_under_the_live_hold():
    """Holders write, give up, and go on writing with the old token. A write that was acknowledged must have been made while
    its token's hold could still be live: not asked for after a newer grant was answered, nor after the own release was."""
    name = WORLD.name("write")

    def worker(history, number, races):
        lease, gateway = WORLD.client(WORLD.lease_daemon), WORLD.client(WORLD.gateway_daemon)
        old = []

        def write(grant, hold):
            asked = time.monotonic()
            key = history.random.choice((name, name + "/a"))
            body = f"{grant['token']} by {number}".encode()
            answer = gateway("PUT", f"/v1/resources/{key}", {"Fencing-Token": grant["fencing_token"]}, body)
            check(answer.status in (201, 204) or answer.code in ("stale-token", "lease-expired"), repr(answer))
            history.writes.append({"token": grant["token"], "asked": asked, "answered": time.monotonic(), "key": key,
                                   "done": answer.status < 300, "etag": answer.header("ETag"), "hold": hold, "body": body})
        while races():
            grant, asked, answered = acquire(lease, name)
            if grant is not None:
                hold = hold_of(grant, asked, answered)
                for _ in range(history.random.randrange(3)):
                    write(grant, hold)
                hold["ended"] = time.monotonic()
                check_equal(lease("DELETE", f"/v1/leases/{name}", {"Lease-Id": grant["lease_id"]}).status, 204)
                hold["released"] = time.monotonic()
                history.holds.append(hold)
                old.append((grant, hold))
            if old:
                write(*history.random.choice(old[-3:]))

    def writes_in(histories):
        writes = [write for history in histories for write in list(history.writes)]
        return (writes, [write for write in writes if write["done"]],
                [write for write in writes if write["asked"] > write["hold"].get("released", float("inf"))])

    def enough(histories):
        _, done, late = writes_in(histories)
        return len(done) > 8 and len(late) > 8 and holds_in(histories) >= 8
    histories = run(worker, enough)
    holds = check_holds(histories, 8)
    writes, done, late = writes_in(histories)
    done.sort(key=lambda write: write["token"])
    check(len(done) > 8 and len(late) > 8, f"{len(done)} writes were done, {len(late)} were late: that shows nothing")
    for write in late:
        check(not write["done"], f"a write after the release was acknowledged: {write}")
    for write in done:
        for hold in holds:
            check(hold["token"] <= write["token"] or write["asked"] <= hold["answered"],
                  f"a write was acknowledged after a newer grant: {write} {hold}")
    for before, after in zip(done, done[1:]):
        check(before["token"] == after["token"] or before["asked"] <= after["answered"], f"out of order: {before} {after}")
    etags = [write["etag"] for write in done]
    check_equal(len(set(etags)), len(etags), "an ETag came twice")
    for key in (name, name + "/a"):
        last = max((write["token"] for write in done if write["key"] == key), default=None)
        stored = WORLD.gateway("GET", f"/v1/resources/{key}").body.decode()
        check_equal(int(stored.split()[0]), last, f"what is stored under {key} is not the newest holder's")
    mark = WORLD.gateway("GET", f"/v1/marks/{name}").json
    check_equal(mark["mark"], max(write["token"] for write in done))


@test
def one_lease_id_that_races_with_itself_is_one_hold():
    for _ in range(20):
        name = WORLD.name("self")
        answers = []

        def worker(_history, _number, _races, name=name, answers=answers):
            answers.append(WORLD.client(WORLD.lease_daemon)("POST", f"/v1/leases/{name}", body={"lease_id": "self-" + "x" * 20}))
        run(worker)
        check_equal(sorted(answer.status for answer in answers), [200] * (CLIENTS - 1) + [201])
        check_equal(len({answer.json["fencing_token"] for answer in answers}), 1)


main(WORLD.close)
