#!/usr/bin/python3
"""Sessions: one keep-alive for many leases, with the real binaries; how they end, and what becomes of their leases."""

from world import World, check, check_equal, check_in, main, of_time, test, test_in, wait_until
from world.asking import path, refused
from world.record import stripe_key
from world.waiting import Waiter

WORLD = World()
SESSIONS = "/v1/sessions"
NEVER = "x" * 22


class Session:
    """One that was opened: its id, its secret, and what one does with it."""

    def __init__(self, client=None, world=WORLD, **ask):
        self.world = world
        answer = (client or world.lease)("POST", SESSIONS, body=ask)
        check_equal(answer.status, 201, repr(answer))
        self.opened = answer.json
        self.id, self.secret = self.opened["session"], self.opened["session_secret"]
        self.path = f"{SESSIONS}/{self.id}"
        self.header = {"Session-Secret": self.secret}

    def renew(self, client=None):
        return (client or self.world.lease)("PUT", self.path, self.header)

    def end(self, client=None):
        return (client or self.world.lease)("DELETE", self.path, self.header)

    def look(self):
        return self.world.lease("GET", self.path)

    def ask(self, name, client=None, header=None, **ask):
        headers = self.header if header is None else header
        return (client or self.world.lease)("POST", path(name), headers, {"session": self.id, **ask})

    def acquire(self, name, client=None, **ask):
        answer = self.ask(name, client, **ask)
        check_equal(answer.status, 201, repr(answer))
        return answer.json


    def names(self):
        """(held, lost) as a renewal tells them, sorted."""
        told = self.renew().json
        return sorted(told["leases"]), sorted(told["lost"])


def state(name, world=WORLD):
    looked = world.look(name)
    return looked["state"], [one["holder"] for one in looked["holders"]]


def wait_over(session):
    return wait_until(lambda: (answer := session.look()).status == 410 and answer, "the session is over")


def in_line(name, client=None, session=None):
    """One who waits, perhaps with a session."""
    return Waiter(WORLD, client or WORLD.lease, name, "bob", session.header if session else (), **({"session": session.id} if session else {}))


# -- the session by itself

@test
def all_that_live_are_listed_page_by_page_and_never_a_secret():
    opened = [Session(holder=f"node-{number}", ttl_ms=60000 + number, meta={"n": number}) for number in range(7)]
    opened[1].acquire(WORLD.name()), opened[1].acquire(WORLD.name())
    opened[0].end()
    due, others = stripe_key(opened[1].id) + ":due", [f"job:{number}" for number in range(3000)]
    WORLD.redis("ZADD", due, *(word for name in others for word in (9 * 10**12, name)))  # it takes some steps there
    found, cursor = [], ""
    while cursor is not None:
        answer = WORLD.lease("GET", f"{SESSIONS}?limit=2{cursor and '&cursor='}{cursor}")
        check(not any(one.secret in answer.body.decode() for one in opened), "a secret is listed")
        check(len(answer.json["items"]) <= 2 and answer.json["now_ms"] > 0, answer)
        found, cursor = found + answer.json["items"], answer.json["next_cursor"]
    told = {one["session"]: (one["holder"], one["ttl_ms"], one["meta"], one["leases"], one["lost"]) for one in found}
    check_equal(len(told), len(found), "each once")
    check_equal({one.id: told.get(one.id) for one in opened},
                {one.id: number and (f"node-{number}", 60000 + number, {"n": number}, 2 * (number == 1), 0) or None
                 for number, one in enumerate(opened)})
    WORLD.redis("ZREM", due, *others)
    for query in ("?limit=0", "?limit=x", "?x=1", "?cursor=x", "?prefix=a"):
        check_in(WORLD.lease("GET", SESSIONS + query).status, (400, 422), query)


@test
def an_operator_ends_a_session_without_its_secret():
    session, names = Session(), [WORLD.name() for _ in range(130)]
    for name in names:
        session.acquire(name)
    waiter = Waiter(WORLD, WORLD.lease, names[129], "bob")
    answer = WORLD.lease("POST", session.path + "/end", body={"reason": "its host is gone"})
    check_equal((answer.status, answer.json), (200, {"session": session.id, "leases": 130}))
    check_equal(waiter.told()["holder"], "bob")
    check_equal({state(name)[0] for name in names[:129]}, {"free"})
    refused(session.renew(), 410, "session-lost", ended="released")
    check_equal(WORLD.lease("POST", session.path + "/end").json, {"session": session.id, "leases": 0})
    refused(WORLD.lease("POST", f"{SESSIONS}/{NEVER}/end"), 410, "session-lost", ended="unknown")
    for body in ({"reason": ""}, {"reason": "x" * 257}, {"expect_token": 1}):
        check_in(WORLD.lease("POST", session.path + "/end", body=body).status, (400, 422), body)
    check_equal(WORLD.lease("POST", session.path + "/end", {"Content-Type": "text/plain"}, b"{}").status, 415)


@test
@of_time
def a_session_is_opened_with_an_id_for_everybody_and_a_secret():
    session = Session(holder="node-3", ttl_ms=15000, meta={"rack": 7})
    check_equal((session.opened["ttl_ms"], session.opened["expires_in_ms"]), (15000, 15000))
    check(session.id != session.secret and len(session.id) == len(session.secret) == 22, session.opened)
    looked = session.look()
    check_equal(looked.status, 200)
    wanted = {"session": session.id, "holder": "node-3", "ttl_ms": 15000, "meta": {"rack": 7}, "leases": [], "lost": []}
    check_equal({member: looked.json[member] for member in wanted}, wanted)
    check(14000 < looked.json["expires_in_ms"] <= 15000, looked)
    check_equal(WORLD.lease("HEAD", session.path).status, 200)


@test
def a_renewal_and_an_end_need_the_secret_once_and_well_formed():
    session = Session()
    for method in ("PUT", "DELETE"):
        for headers in ([], [("Session-Secret", session.secret)] * 2, [("Session-Secret", "short")],
                        [("Session-Secret", "x" * 65)], [("Session-Secret", session.secret[:-1] + "!")]):
            refused(WORLD.lease(method, session.path, headers), 400, "invalid-request")
        refused(WORLD.lease(method, session.path, session.header, {"ttl_ms": 1000}), 400, "invalid-request")
    for one in ("short", "x" * 65, "a.b-c-d-e-f-g-h-i-j-k", "%41" * 16):
        refused(WORLD.lease("GET", f"{SESSIONS}/{one}"), 400, "invalid-request")
        refused(WORLD.lease("PUT", f"{SESSIONS}/{one}", session.header), 400, "invalid-request")
    check_equal(session.renew().status, 200)
    refused(WORLD.lease("POST", SESSIONS, body={"ttl_ms": 99}), 422, "out-of-range")
    refused(WORLD.lease("POST", SESSIONS, body={"wait_ms": 1}), 400, "invalid-request")


@test
def another_secret_is_not_yours_and_a_session_that_was_never_opened_is_lost_for_reasons_unknown():
    session, name, other, wrong = Session(), WORLD.name(), WORLD.name(), {"Session-Secret": NEVER}
    session.acquire(name)
    for method in ("PUT", "DELETE"):
        refused(WORLD.lease(method, session.path, wrong), 403, "not-yours")
    refused(session.ask(other, header=wrong), 403, "not-yours")
    check_equal((state(name)[0], state(other)[0]), ("held", "free"))
    check(not any(session.secret in answer.body.decode() for answer in (session.look(), session.renew())), "the secret is shown again")
    for method in ("PUT", "DELETE", "GET"):
        refused(WORLD.lease(method, f"{SESSIONS}/{NEVER}", wrong), 410, "session-lost", ended="unknown", session=NEVER)
    answer = WORLD.lease("POST", path(WORLD.name()), wrong, {"session": NEVER})
    refused(answer, 410, "session-lost", retryable=False)


@test
def a_session_that_was_not_renewed_is_over_and_so_are_its_leases():
    session, name, other = Session(ttl_ms=1000), WORLD.name(), WORLD.name()
    grant, released = session.acquire(name), session.acquire(other)
    token = {"Fencing-Token": grant["fencing_token"]}
    check_equal(WORLD.gateway("PUT", f"/v1/resources/{name}", token, b"x").status, 201)
    refused(wait_over(session), 410, "session-lost", ended="expired", session=session.id)
    refused(session.renew(), 410, "session-lost", ended="expired")
    refused(session.end(), 410, "session-lost", ended="expired")
    refused(session.ask(WORLD.name()), 410, "session-lost")
    refused(WORLD.gateway("PUT", f"/v1/resources/{name}", token, b"y"), 412, "lease-expired")
    refused(WORLD.lease("PUT", path(name), {"Lease-Id": grant["lease_id"]}), 410, "lease-lost", ended="session")
    refused(WORLD.lease("DELETE", path(other), {"Lease-Id": released["lease_id"]}), 410, "lease-lost", ended="session")
    check(WORLD.acquire(name)["token"] > grant["token"], "a token came again")


# -- those who wait


@test
def a_waiter_gets_its_lease_through_the_session_and_the_session_names_it():
    session, name = Session(ttl_ms=5000), WORLD.name()
    grant = WORLD.acquire(name)
    answer = in_line(name, session=session)
    WORLD.release(name, grant)
    got = answer.answered()
    check_equal((got.status, got.json["ttl_ms"]), (201, 5000))
    check(got.json["expires_in_ms"] <= 5000, got)
    check_equal(session.names(), ([name], []))
    session.end()
    check_equal(state(name)[0], "free")


# -- two instances

@test
def any_instance_renews_uses_and_ends_a_session_also_after_the_one_that_opened_it():
    dying = WORLD.daemon("pawl-lease")
    session, names = Session(WORLD.client(dying)), [WORLD.name(), WORLD.name()]
    session.acquire(names[0], WORLD.client(dying))
    session.acquire(names[1])
    dying.kill()
    check_equal(session.names(), (sorted(names), []))
    answer = in_line(names[0])
    check_equal(session.end().status, 204)
    check_equal(answer.answered().status, 201)
    refused(session.renew(), 410, "session-lost", ended="released")



main(WORLD.close)
