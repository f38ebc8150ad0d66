#!/usr/bin/python3
"""What of lease_ids and secrets of sessions reaches the store, digests alone, and what a log: nothing, whatever is asked."""

import pathlib
import threading

from world import World, check, check_equal, check_in, main, read_token, test, wait_until
from world.redis import Connection

WORLD = World("--log-level", "debug")
WORDS = []  # each lease_id and secret that was used


def secret(word):
    """One that the client made."""
    WORDS.append(f"secret-{word}-".ljust(30, "x"))
    return WORDS[-1]


def ask(status, method, path, headers=(), body=None):
    answer = WORLD.lease(method, "/v1/" + path, headers, body)
    check_equal(answer.status, status, repr(answer))
    return answer.json if answer.body else None


def in_line(path, body, waits_at):
    """Asks in a thread of its own, and is in line when this returns."""
    thread = threading.Thread(target=WORLD.lease, args=("POST", "/v1/" + path, (), body), daemon=True)
    thread.start()
    wait_until(lambda: WORLD.look(waits_at)["waiting"] == 1, "it waits")
    return thread


def exclusive():
    mine, name = secret("own"), WORLD.name()
    lease = f"leases/{name}"
    ask(201, "POST", lease, {"Idempotency-Key": "k1"}, {"lease_id": mine, "reentrant": True})
    ask(200, "POST", lease, {"Idempotency-Key": "k1"}, {"lease_id": mine, "reentrant": True})
    ask(200, "POST", lease, (), {"lease_id": mine, "reentrant": True})
    ask(409, "POST", lease, (), {"lease_id": secret("another")})
    ask(410, "PUT", lease, {"Lease-Id": secret("wrong")})
    grant = ask(200, "PUT", lease, {"Lease-Id": mine}, {"ttl_ms": 60000})
    check_equal(grant["lease_id"], mine)
    for body in ({"ttl_ms": 5}, b"{"):
        WORLD.lease("PUT", "/v1/" + lease, {"Lease-Id": mine, "Fencing-Token": grant["fencing_token"]}, body)
    for token in (grant["fencing_token"], grant["fencing_token"] + "x", grant["fencing_token"].replace("k1", "k7")):
        WORLD.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": token}, b"the-body-itself")
        WORLD.gateway("GET", f"/v1/check/{name}", {"Fencing-Token": token})
    waiting = in_line(lease, {"lease_id": secret("late"), "wait_ms": 300}, name)
    waiting.join(20)
    waiting = in_line(lease, {"lease_id": secret("next"), "wait_ms": 20000}, name)
    ask(204, "DELETE", lease + "?all=true", {"Lease-Id": mine, "Idempotency-Key": "k2"})
    waiting.join(20)
    ask(409, "POST", lease, (), {"lease_id": mine})
    ask(200, "POST", lease + "/force-release", (), {})
    WORDS.append(ask(201, "POST", lease)["lease_id"])
    return [read_token(grant["fencing_token"])["sig"], "the-body-itself", WORLD.keys.text().strip().partition(":")[2]]


def several():
    names = [WORLD.name(), WORLD.name()]
    mine = secret("several")
    check_equal(ask(201, "POST", "leases", (), {"names": names, "lease_id": mine})["grants"][1]["lease_id"], mine)
    waiting = in_line("leases", {"names": names, "lease_id": secret("behind"), "wait_ms": 20000}, names[0])
    for name in names:
        ask(204, "DELETE", f"leases/{name}", {"Lease-Id": mine})
    waiting.join(20)


def sessions():
    opened = ask(201, "POST", "sessions", (), {"holder": "node"})
    path, own = f"sessions/{opened['session']}", {"Session-Secret": opened["session_secret"]}
    WORDS.append(opened["session_secret"])
    body = {"session": opened["session"]}
    for more in ({}, {"mode": "shared"}, {"permits": 3}):
        ask(201, "POST", f"leases/{WORLD.name()}", own, body | more | {"lease_id": secret(f"through-{len(WORDS)}")})
    ask(403, "POST", f"leases/{WORLD.name()}", {"Session-Secret": secret("wrong")}, body)
    check_equal(len(ask(200, "PUT", path, own)["leases"]), 3)
    ask(403, "PUT", path, {"Session-Secret": secret("other")})
    ask(403, "DELETE", path, {"Session-Secret": WORLD.digest(opened["session_secret"])})
    ask(204, "DELETE", path, own)


@test
def no_lease_id_and_no_secret_of_a_session_reaches_the_store_or_a_log():
    WORLD.redis("CONFIG", "SET", "slowlog-log-slower-than", 0)
    WORLD.redis("CONFIG", "SET", "slowlog-max-len", 10000)
    monitor = Connection(WORLD.redis.path)
    monitor("MONITOR")
    not_logged = exclusive()
    several()
    sessions()
    WORLD.redis("ECHO", "that-was-all")
    seen = b""
    while b"that-was-all" not in seen:
        seen += monitor.file.readline()
    slow = repr(WORLD.redis("SLOWLOG", "GET", -1)).encode()
    written = b"".join(one.read_bytes() for one in pathlib.Path(WORLD.redis.folder).rglob("*.aof"))
    check(len(WORDS) == 14, WORDS)
    for what, text in (("MONITOR", seen), ("SLOWLOG", slow), ("the append-only file", written)):
        for word in WORDS:
            check(word.encode() not in text, f"{what} has {word}")
        check(WORLD.digest(WORDS[0]).encode() in text, f"{what} has no digest of {WORDS[0]}")
    for client, daemon in ((WORLD.lease, WORLD.lease_daemon), (WORLD.gateway, WORLD.gateway_daemon)):
        instance = client("GET", "/nowhere").json["instance"]
        daemon.line(lambda line, instance=instance: instance in line, "the last request")
        log = daemon.log()
        check_in("/v1/", log, "nothing was logged")
        check_equal([word for word in WORDS + not_logged if word in log], [], f"{daemon.name} has logged")


@test
def a_digest_out_of_a_backup_opens_nothing():
    name, mine = WORLD.name(), secret("kept")
    ask(201, "POST", f"leases/{name}", (), {"lease_id": mine})
    ask(410, "PUT", f"leases/{name}", {"Lease-Id": WORLD.digest(mine)})
    ask(410, "DELETE", f"leases/{name}", {"Lease-Id": WORLD.digest(mine)})
    ask(409, "POST", f"leases/{name}", (), {"lease_id": WORLD.digest(mine)})
    ask(204, "DELETE", f"leases/{name}", {"Lease-Id": mine})


main(WORLD.close)
