#!/usr/bin/python3
"""agent.py - does with the module pawl what it is told, for tests/clients/scenarios.py."""

import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../api/clients/python"))

import pawl  # noqa: E402 pylint: disable=wrong-import-position

OUTCOMES = {pawl.PawlHeld: "held", pawl.PawlLost: "lost", pawl.PawlNotDone: "not-done", pawl.PawlUnknown: "unknown"}
HOLDS = {}


def say(kind, told):
    os.write(1, "\t".join([kind, *(f"{key}={value}" for key, value in told.items())]).encode() + b"\n")


def failed(error):
    return {"outcome": OUTCOMES[type(error)], "code": error.code, "retryable": int(error.retryable),
            "holder": error.holder or "", "ended": error.ended or ""}


def tells(given):
    return lambda _, error: say("!", {"hold": given["hold"], "code": error.code})


def acquire(services, verb, given):
    more = {"ttl": int(given.get("ttl_ms", 30000)) / 1000, "on_lost": tells(given),
            "wait": None if given.get("wait_ms") == "forever" else int(given.get("wait_ms", 0)) / 1000,
            "holder": given.get("holder"), "mode": given.get("mode", "exclusive"), "lease_id": given.get("lease_id")}
    if verb == "acquire_all":
        holds = HOLDS[given["hold"]] = services.acquire_all(given["names"].split(" "), **more)
        return {"tokens": " ".join(str(hold.token) for hold in holds)}
    hold = HOLDS[given["hold"]] = HOLDS.get(given.get("session"), services).acquire(given["name"], **more)
    return {"token": hold.token, "fencing": hold.fencing_token, "remaining_ms": int(hold.remaining() * 1000)}


def listen(services, given):
    try:
        for item in services.events(given["name"], given.get("since")):
            say("!", {"hold": given["hold"], "code": item["type"]})
    except pawl.PawlError as error:
        say("!", {"hold": given["hold"], "code": error.code})


def inside(services, given):
    """What a `with` does: body is "well" or "badly"."""
    try:
        with services.acquire(given["name"], ttl=int(given["ttl_ms"]) / 1000) as hold:
            with hold:
                pass
            still = hold.remaining() > 0
            say("=", {"outcome": "ok", "still": int(still)})
            sys.stdin.readline()
            if given["body"] == "badly":
                raise KeyError("body")
    except KeyError:
        return {"raised": "body"}
    return {"raised": "nothing"}


def do(services, verb, given):
    hold = HOLDS.get(given.get("hold"))
    if verb in ("acquire", "acquire_all"):
        return acquire(services, verb, given)
    if verb == "session":
        HOLDS[given["hold"]] = services.session(int(given["ttl_ms"]) / 1000, on_lost=tells(given))
        return {}
    if verb == "events":
        threading.Thread(target=listen, args=(services, given), daemon=True).start()
        return {}
    if verb == "inside":
        return inside(services, given)
    if verb == "remaining":
        return {"remaining_ms": int(hold.remaining() * 1000)}
    if verb == "renew":
        hold.renew(int(given["ttl_ms"]) / 1000 if "ttl_ms" in given else None)
        return {"remaining_ms": int(hold.remaining() * 1000)}
    if verb in ("enter", "release", "check"):
        getattr(hold, verb)()
        return {}
    if verb == "put":
        return {"etag": hold.put(given["key"].replace("NO-UTF-8", "\ud800"), given["body"].encode(), idempotency_key=given.get("idempotency_key"))}
    if verb == "get":
        return {"body": hold.get(given["key"]).body.decode()}
    if verb == "delete":
        hold.delete(given["key"])
        return {}
    raise AssertionError(verb)


def main():
    services = None
    while line := sys.stdin.readline():
        verb, *pairs = line.rstrip("\n").split("\t")
        given = dict(pair.split("=", 1) for pair in pairs)
        try:
            services = services or pawl.Pawl(sys.argv[1], sys.argv[2], timeout=int(sys.argv[3]) / 1000,
                                             allow_plaintext="ALLOW_PLAINTEXT" in os.environ)
            say("=", {"outcome": "ok", **do(services, verb, given)})
        except pawl.PawlError as error:
            say("=", failed(error))
        except ValueError as error:
            say("=", {"outcome": "mistake", "code": str(error)})


main()
