#!/usr/bin/python3
"""libpawl's calls, each with the network as it should be, and cut before, during and after the request."""

import os
import re
import signal
import socket
import threading

from client_world import (CUT_AT_ONCE, CUT_BEFORE_ANSWER, CUT_IN_ANSWER, CUT_IN_REQUEST, Line, Plan, World, canned,
                          now_ms, problem, program, until_ms, wait_until)
from world import check, check_equal, check_in, main, test, test_in
from world.ports import nobody as nobody_there

WORLD = World()
LEASE, GATEWAY = Line(WORLD.lease_daemon.port), Line(WORLD.gateway_daemon.port)
CUTS = {"at once": CUT_AT_ONCE, "in the request": CUT_IN_REQUEST, "before the answer": CUT_BEFORE_ANSWER,
        "in the answer": CUT_IN_ANSWER}
REACHED = ("before the answer", "in the answer")  # the service had the whole request


def client(**how):
    LEASE.plan()
    GATEWAY.plan()
    return program(LEASE.url, GATEWAY.url, **how)


def is_outcome(answer, outcome, code=""):
    check_equal((answer["outcome"], answer["code"]), (outcome, code), repr(answer))


def state(name):
    return WORLD.look(name)["state"]


def grants(name):
    items = WORLD.lease("GET", f"/v1/leases/{name}/history").json["items"]
    return sum(one["type"] == "granted" for one in items)


def body(key):
    answer = WORLD.gateway("GET", f"/v1/resources/{key}")
    return answer.body.decode() if answer.status == 200 else None


# -- the network as it should be

@test
def a_lease_is_acquired_renewed_looked_at_and_released(name):
    with client() as run:
        grant = run(f"acquire {name} holder=me ttl=5000")
        is_outcome(grant, "OK")
        look = WORLD.look(name)
        check_equal((look["holders"][0]["holder"], str(look["token"])), ("me", grant["token"]))
        renewed = run("renew ttl=60000")
        is_outcome(renewed, "OK")
        check_equal((renewed["ttl"], renewed["token"]), ("60000", grant["token"]))
        check(int(renewed["deadline"]) > int(grant["deadline"]) + 50000, renewed)
        view = run(f"look {name}")
        check_equal((view["state"], view["holders"], view["who"], view["token"]), ("1", "1", "me", grant["token"]))
        released = run("release")
        is_outcome(released, "OK")
        check_equal((released["holds"], released["deadline"]), ("0", "0"))
        is_outcome(run("release"), "OK")
        is_outcome(run("renew"), "LOST", "lease-lost")
    check_equal(state(name), "free")


@test_in(client)
def renew_and_release_send_the_fencing_token_of_the_hold(run, name):
    token = run(f"acquire {name}")["fencing_token"]
    for command in ("renew", "release"):
        LEASE.plan()
        is_outcome(run(command), "OK")
        check_in(f"Fencing-Token: {token}".encode(), LEASE.requests[0])


@test
def a_held_lease_is_told_with_who_holds_it(name):
    held = WORLD.acquire(name, holder="other", ttl_ms=20000)
    with client() as run:
        answer = run(f"acquire {name}")
        is_outcome(answer, "HELD", "lease-held")
        check_equal((answer["holder"], answer["holder_token"], answer["status"], answer["retryable"]),
                    ("other", str(held["token"]), "409", "1"))
        check(0 < int(answer["left"]) <= 20000, answer)
        is_outcome(run(f"acquire {name} wait=100"), "HELD", "wait-timeout")
        check_equal(WORLD.look(name)["waiting"], 0)


@test
def who_waits_is_granted_and_his_deadline_counts_what_he_waited(name):
    held = WORLD.acquire(name)
    with client() as run:
        began = now_ms()
        run.send(f"acquire {name} wait=20000 ttl=10000")
        wait_until(lambda: WORLD.look(name)["waiting"] == 1, "he waits")
        until_ms(began + 400)
        WORLD.release(name, held)
        grant = run.answer()
        ended = now_ms()
        is_outcome(grant, "OK")
        check(300 <= int(grant["waited"]) <= ended - began, grant)
        check(began + 10000 + int(grant["waited"]) - 5 <= int(grant["deadline"]) <= ended + 10000, (grant, began, ended))


@test_in(client)
def the_deadline_counts_from_when_the_request_was_sent(run, name):
    for command in (f"acquire {name} ttl=10000", "renew"):
        began = now_ms()
        LEASE.plan(Plan(behind=lambda: until_ms(began + 500)))  # pylint: disable=cell-var-from-loop
        answer = run(command)
        is_outcome(answer, "OK")
        check(now_ms() >= began + 500, "the answer was held back")
        check(int(answer["deadline"]) <= began + 10000 + 100, (answer, began))


@test
def shared_permits_and_meta_are_asked_for():
    name, other = WORLD.name(), WORLD.name()
    with client() as run:
        check_equal(run(f'acquire {name} shared=1 meta={{"a":1}}')["mode"], "1")
        check_equal(WORLD.look(name)["holders"][0]["meta"], {"a": 1})
        check_equal(run(f"acquire {other} permits=3")["mode"], "2")


@test
def a_lease_of_a_session_is_acquired(name):
    session = WORLD.lease("POST", "/v1/sessions", body={"ttl_ms": 30000}).json
    with client() as run:
        is_outcome(run(f"acquire {name} session={session['session']} secret={session['session_secret']}"), "OK")
        is_outcome(run(f"acquire {name} session={session['session']}"), "NOT_DONE", "bad-argument")


@test_in(client)
def a_resource_is_written_read_and_deleted_with_the_token(run, name):
    is_outcome(run(f"acquire {name}"), "OK")
    first = run(f"put {name}/a%b body=one type=text/plain")
    is_outcome(first, "OK")
    check_equal(first["created"], "1")
    got = run(f"get {name}/a%b fenced=1")
    check_equal((got["body"], got["len"], got["etag"], got["type"]), ("one", "3", first["etag"], "text/plain"))
    is_outcome(run(f"put {name}/a%b body=two match=\"no\""), "NOT_DONE", "etag-mismatch")
    is_outcome(run(f"put {name}/a%b body=two match={first['etag']}"), "OK")
    is_outcome(run(f"delete {name}/a%b"), "OK")
    is_outcome(run(f"delete {name}/a%b"), "NOT_DONE", "not-found")
    is_outcome(run(f"get {name}/a%b"), "NOT_DONE", "not-found")
    check_equal(run(f"put {name} body=")["created"], "1")


@test
def a_stale_token_is_fenced_off(name):
    with client() as run:
        run(f"acquire {name}")
        WORLD.lease("POST", f"/v1/leases/{name}/force-release", body={})
        is_outcome(run(f"put {name} body=x"), "LOST", "lease-expired")
        lost = run("renew")
        is_outcome(lost, "LOST", "lease-lost")
        check_equal(lost["ended"], "forced")
        newer = WORLD.acquire(name)
        answer = run(f"put {name} body=x")
        is_outcome(answer, "LOST", "stale-token")
        check_equal(answer["holder_token"], str(newer["token"]))
        is_outcome(run("renew"), "LOST", "lease-lost")
        is_outcome(run("release"), "LOST", "lease-lost")
    check_equal(body(name), None)


@test
def what_cannot_be_right_is_not_sent():
    with client() as run:
        for command in ("acquire a/b", "acquire " + "x" * 129, "acquire job id=short", "acquire job keep=1", "look -x", "renew", "release",
                        "put job body=x", "guard job session=a secret=b"):
            is_outcome(run(command), "NOT_DONE", "bad-argument")
        is_outcome(run("put job body=x token=\x01"), "NOT_DONE", "not-sent")
        is_outcome(run("open lease=ftp://x"), "NOT_DONE", "bad-argument")
        run(f"open lease={LEASE.url}")
    check_equal(LEASE.requests + GATEWAY.requests, [])


# -- nobody is there

@test
def when_nobody_is_reached_nothing_is_done_and_that_is_certain(name):
    nobody = nobody_there()
    with client() as run:
        run(f"acquire {name}")
        run(f"open lease={nobody} gateway={nobody}")
        for command in ("renew", "release", f"look {name}", f"put {name} body=x", f"put {name} body=x key=k",
                        f"delete {name}", f"get {name}", f"acquire {name}", f"guard {name}"):
            answer = run(command)
            is_outcome(answer, "NOT_DONE", "not-sent")
            check_equal((answer["retryable"], answer["status"], answer["detail"]), ("1", "0", "1"))


# -- one attempt, cut

def each_cut(act):
    """A test for which each cut of CUTS is made in turn."""
    def run_all():
        for where, plan in CUTS.items():
            with client(attempts=1) as run:
                act(run, where, plan, WORLD.name())
    run_all.__name__ = act.__name__
    return test(run_all)


@each_cut
def an_acquire_that_is_cut_is_unknown_and_what_was_granted_is_given_back(run, where, plan, name):
    LEASE.plan(plan)
    answer = run(f"acquire {name}")
    is_outcome(answer, "UNKNOWN", "no-answer")
    check_equal(len(answer["lease_id"]), 22)
    check_equal(grants(name), int(where in REACHED), where)
    check_equal(state(name), "free", where)


@test_in(lambda: client(attempts=1))
def an_acquire_with_a_lease_id_of_the_callers_is_not_given_back(run, name):
    LEASE.plan(CUT_BEFORE_ANSWER)
    is_outcome(run(f"acquire {name} id={'y' * 30}"), "UNKNOWN", "no-answer")
    check_equal(state(name), "held")
    is_outcome(run(f"acquire {name} id={'y' * 30}"), "OK")


@each_cut
def a_renewal_that_is_cut_is_unknown_and_a_shorter_one_brings_the_deadline_nearer(run, where, plan, name):
    deadline = int(run(f"acquire {name} ttl=20000")["deadline"])
    LEASE.plan(plan)
    answer = run("renew")
    is_outcome(answer, "UNKNOWN", "no-answer")
    check_equal(int(answer["deadline"]), deadline, where)
    LEASE.plan(plan)
    began = now_ms()
    answer = run("renew ttl=3000")
    is_outcome(answer, "UNKNOWN", "no-answer")
    check(began + 3000 <= int(answer["deadline"]) <= now_ms() + 3000, answer)
    answer = run("renew ttl=20000")
    is_outcome(answer, "OK")
    check(int(answer["deadline"]) <= now_ms() + 3000, f"the one of 3 s may yet arrive: {answer}")


@each_cut
def a_release_that_is_cut_is_unknown(run, where, plan, name):
    run(f"acquire {name}")
    LEASE.plan(plan)
    answer = run("release")
    is_outcome(answer, "UNKNOWN", "no-answer")
    check(int(answer["deadline"]) > 0, answer)
    check_equal(state(name), "free" if where in REACHED else "held", where)
    is_outcome(run("release"), "OK")


@each_cut
def a_look_and_a_read_that_are_cut_are_unknown(run, _where, plan, name):
    run(f"acquire {name}")
    LEASE.plan(plan)
    is_outcome(run(f"look {name}"), "UNKNOWN", "no-answer")
    GATEWAY.plan(plan)
    is_outcome(run(f"get {name}"), "UNKNOWN", "no-answer")


@each_cut
def a_write_that_is_cut_is_unknown(run, where, plan, name):
    run(f"acquire {name}")
    for extra in ("", " key=k1"):
        GATEWAY.plan(plan)
        is_outcome(run(f"put {name} body=w{len(extra)}{extra}"), "UNKNOWN", "no-answer")
        check_equal(body(name), f"w{len(extra)}" if where in REACHED else None, where)
    GATEWAY.plan(plan)
    is_outcome(run(f"delete {name}"), "UNKNOWN", "no-answer")
    check_equal(body(name), None, where)


# -- several attempts

@test
def an_acquire_renews_and_releases_through_cut_lines_and_is_granted_once():
    for where, plan in CUTS.items():
        name = WORLD.name()
        with client() as run:
            LEASE.plan(plan, plan)
            is_outcome(run(f"acquire {name}"), "OK")
            check_equal(grants(name), 1, where)
            LEASE.plan(plan, plan)
            is_outcome(run("renew"), "OK")
            LEASE.plan(plan)
            is_outcome(run(f"look {name}"), "OK")
            LEASE.plan(plan, plan)
            is_outcome(run("release"), "OK")
        check_equal(state(name), "free", where)


@test_in(client)
def a_repeated_release_leaves_once_what_was_entered_twice(run, name):
    grant = run(f"acquire {name}")
    WORLD.acquire(name, status=200, lease_id=grant["lease_id"], reentrant=True)
    LEASE.plan(CUT_BEFORE_ANSWER)
    answer = run("release")
    is_outcome(answer, "OK")
    check_equal(answer["holds"], "1")
    check_equal(WORLD.look(name)["holders"][0]["holds"], 1)
    check(int(answer["deadline"]) > 0, answer)


@test_in(client)
def a_write_is_sent_once_unless_it_has_an_idempotency_key(run, name):
    run(f"acquire {name}")
    for command, times, outcome in ((f"put {name} body=a", 1, "UNKNOWN"), (f"put {name} body=b key=k2", 2, "OK"),
                                    (f"put {name} body=c none=\"x\"", 1, "UNKNOWN"), (f"delete {name}", 1, "UNKNOWN"),
                                    (f"put {name} body=d key=k3", 2, "OK"), (f"delete {name} key=k4", 2, "OK")):
        GATEWAY.plan(CUT_BEFORE_ANSWER)
        answer = run(command)
        check_equal((len(GATEWAY.requests), answer["outcome"]), (times, outcome), command)


@test
def a_waiting_acquire_that_is_cut_asks_again_for_the_rest_of_its_wait(name):
    held = WORLD.acquire(name)
    with client() as run:
        began = now_ms()
        LEASE.plan(Plan(answer=0, before=lambda: until_ms(began + 200), request=60), Plan())
        run.send(f"acquire {name} wait=5000")
        wait_until(lambda: WORLD.look(name)["waiting"] == 1, "he waits again")
        WORLD.release(name, held)
        is_outcome(run.answer(), "OK")
        wait = int(LEASE.requests[1].partition(b'"wait_ms":')[2].split(b",")[0].rstrip(b"}"))
        check(4000 <= wait <= 4800, LEASE.requests)


@test
def a_repeat_that_is_refused_says_nothing_about_the_attempt_before_it():
    name, other = WORLD.name(), WORLD.name()
    with client() as run:
        # The first attempt may yet arrive.
        LEASE.plan(Plan(request=0, before=lambda: WORLD.acquire(name)))
        answer = run(f"acquire {name}")
        is_outcome(answer, "UNKNOWN", "lease-held")
        # It was written, and then somebody else came and wrote.
        run(f"acquire {other}")

        def take_over():
            check_equal(body(other), "there")
            WORLD.lease("POST", f"/v1/leases/{other}/force-release", body={})
            token = WORLD.acquire(other)["fencing_token"]
            WORLD.gateway("PUT", f"/v1/resources/{other}", {"Fencing-Token": token}, b"newer")
        GATEWAY.plan(CUT_BEFORE_ANSWER, Plan(before=take_over))
        is_outcome(run(f"put {other} body=there key=k5"), "UNKNOWN", "stale-token")
        check_equal(body(other), "newer")


@test_in(client)
def a_lost_hold_is_certain_also_after_an_attempt_of_unknown_end(run, name):
    for command in ("renew", "release"):
        is_outcome(run(f"acquire {name}"), "OK")

        def force():
            WORLD.lease("POST", f"/v1/leases/{name}/force-release", body={})
        LEASE.plan(CUT_IN_REQUEST, Plan(before=force))
        is_outcome(run(command), "LOST", "lease-lost")


@test_in(lambda: client(attempts=2, timeout=200))
def who_is_silent_is_given_up_after_the_time_limit(run, name):
    LEASE.go_dark()
    began = now_ms()
    is_outcome(run(f"acquire {name}"), "UNKNOWN", "no-answer")
    LEASE.go_on()
    check(400 <= now_ms() - began <= 5000, now_ms() - began)


# -- answers

@test_in(lambda: client(attempts=1))
def each_answer_is_told_as_what_it_is(run, name):
    run(f"acquire {name}")
    for plan, outcome, code in (
            (problem(503, "store-unavailable", retryable="true"), "NOT_DONE", "store-unavailable"),
            (problem(503, "draining", retryable="true"), "NOT_DONE", "draining"),
            (problem(504, "outcome-unknown", retryable="true"), "UNKNOWN", "outcome-unknown"),
            (problem(500, "internal"), "UNKNOWN", "internal"),
            (problem(410, "lease-lost"), "LOST", "lease-lost"),
            (problem(401, "unauthenticated"), "NOT_DONE", "unauthenticated"),
            (problem(409, "of-a-later-version"), "NOT_DONE", "of-a-later-version"),
            (problem(502, "of-a-later-version"), "UNKNOWN", "of-a-later-version"),
            (problem(503, "of-a-later-version"), "NOT_DONE", "of-a-later-version"),
            (problem(502, "upstream-unavailable"), "NOT_DONE", "upstream-unavailable"),
            (problem(500, "lease-lost"), "UNKNOWN", "lease-lost"),
            (canned(502, b"<html>Bad Gateway", "text/html"), "UNKNOWN", "bad-answer"),
            (canned(504, b"<html>", "text/html"), "UNKNOWN", "bad-answer"),
            (canned(503, b"<html>", "text/html"), "UNKNOWN", "bad-answer"),
            (canned(408, b"", "text/html"), "UNKNOWN", "bad-answer"),
            (canned(302, b"", "text/html", "Location: http://127.0.0.1:1/"), "UNKNOWN", "bad-answer"),
            (canned(400, b"", "text/html"), "UNKNOWN", "bad-answer"),
            (canned(431, b"", "text/html"), "UNKNOWN", "bad-answer"),
            (canned(404, b"<html>", "text/html"), "UNKNOWN", "bad-answer"),
            (canned(409, b'{"code":"lease-held","status":409}'), "UNKNOWN", "bad-answer"),
            (canned(410, b'{"code":"lease-lost","status":410}', "application/problem+json"), "UNKNOWN", "bad-answer"),
            (canned(200, b"hello", "text/html"), "UNKNOWN", "bad-answer"),
            (canned(200, b"{}"), "UNKNOWN", "bad-answer"),
            (canned(200), "UNKNOWN", "bad-answer")):
        LEASE.plan(plan)
        answer = run("renew")
        check_equal((answer["outcome"], answer["code"]), (outcome, code), plan.canned)
    LEASE.plan(canned(429, b'{"type":"/problems/rate-limited","code":"rate-limited","status":429,"retryable":true}', "application/problem+json", "Retry-After: 7"))
    answer = run("renew")
    check_equal((answer["code"], answer["after"], answer["retryable"]), ("rate-limited", "7000", "1"))


@test_in(lambda: client(attempts=1))
def what_somebody_between_answers_to_a_write_is_no_end(run, name):
    run(f"acquire {name}")
    for command in (f"put {name} body=x", f"delete {name}", f"get {name}"):
        for plan in (canned(200, b"<html>", "text/html"), canned(200, b"x", "text/plain", 'ETag: "e"'), canned(204),
                     canned(201, b"", "text/html", 'ETag: "e"'), canned(202), canned(404, b"<html>", "text/html")):
            GATEWAY.plan(plan)
            is_outcome(run(command), "UNKNOWN", "bad-answer")
    GATEWAY.plan(canned(201, b"", "text/html", "Fencing-Status: pawl; verdict=accepted"))
    is_outcome(run(f"put {name} body=x"), "UNKNOWN", "bad-answer")
    LEASE.plan(canned(202, b'{"holds":1}'))
    is_outcome(run("release"), "UNKNOWN", "bad-answer")
    check_equal(body(name), None)


@test_in(lambda: client(attempts=1))
def a_grant_that_was_not_asked_for_is_not_believed(run, name):
    good = run(f"acquire {name}")
    epoch = re.search(r";epoch=(\d+);", good["fencing_token"]).group(1)
    fields = {"lease": f'"{name}"', "lease_id": f'"{good["lease_id"]}"', "token": good["token"], "epoch": epoch,
              "mode": '"exclusive"', "ttl_ms": "30000", "expires_in_ms": "30000", "renew_in_ms": "10000",
              "holds": "1", "waited_ms": "0", "fencing_token": '"1;x"'}

    def answered(**other):
        return canned(200, ("{" + ",".join(f'"{k}":{v}' for k, v in {**fields, **other}.items()) + "}").encode())
    LEASE.plan(answered())
    is_outcome(run("renew"), "OK")
    for other in ({"lease": '"else"'}, {"lease_id": '"' + "z" * 22 + '"'}, {"token": str(int(good["token"]) + 1)},
                  {"token": "0"}, {"mode": '"odd"'}, {"fencing_token": '"a\\nb"'}, {"fencing_token": '""'},
                  {"expires_in_ms": "86400001"}, {"expires_in_ms": "-1"}, {"epoch": epoch + "0"}):
        LEASE.plan(answered(**other))
        is_outcome(run("renew"), "UNKNOWN", "bad-answer")


@test
def what_was_waited_lies_between_question_and_answer_whatever_is_said(name):
    lease_id = "w" * 30
    fields = (f'"lease":"{name}","lease_id":"{lease_id}","token":5,"epoch":1,"mode":"exclusive","ttl_ms":10000,'
              '"expires_in_ms":10000,"renew_in_ms":3333,"holds":1,"waited_ms":50000,"fencing_token":"5;x"')
    with client(attempts=1) as run:
        for status in (201, 200):
            began = now_ms()
            plan = canned(status, f"{{{fields}}}".encode())
            plan.before = lambda: until_ms(began + 300)  # pylint: disable=cell-var-from-loop
            LEASE.plan(plan)
            answer = run(f"acquire {name} id={lease_id}")
            is_outcome(answer, "OK")
            # A replay has waited for nothing.
            check(int(answer["deadline"]) <= (now_ms() if status == 201 else began + 100) + 10000, (answer, began))
            check(int(answer["deadline"]) >= began + 9999 + (300 if status == 201 else 0), (answer, began))


# -- given up

@test
def who_gives_up_waiting_leaves_the_line(name):
    WORLD.acquire(name)
    with client(cancel=True) as run:
        run.send(f"acquire {name} wait=-1 cancel=1")
        wait_until(lambda: WORLD.look(name)["waiting"] == 1, "he waits")
        os.write(run.cancel[1], b"x")
        is_outcome(run.answer(), "UNKNOWN", "cancelled")
        wait_until(lambda: WORLD.look(name)["waiting"] == 0, "he has left")
        LEASE.plan()
        is_outcome(run(f"acquire {name} wait=-1 cancel=1"), "NOT_DONE", "cancelled")
        check_equal(LEASE.requests, [])


@test
def what_a_cancelled_wait_is_granted_while_it_leaves_the_line_is_given_back_unless_it_was_held_before():
    for held, then in ((False, "free"), (True, "held")):
        name, own = WORLD.name(), "y" * 30
        if held:
            WORLD.acquire(name, lease_id=own)
        with client(cancel=True) as run:
            LEASE.plan(Plan(canned=problem(409, "wait-timeout").canned, before=lambda fd=run.cancel[1]: os.write(fd, b"x")))
            is_outcome(run(f"acquire {name} wait=-1 cancel=1 id={own}"), "UNKNOWN", "cancelled")
            check_equal((grants(name), state(name)), (1, then))


@test_in(lambda: client(cancel=True))
def who_gives_up_between_two_slices_is_told_unknown_and_what_it_is_granted_while_it_leaves_is_given_back(run, name):
    def stop():
        run.process.send_signal(signal.SIGSTOP)
        until_ms(now_ms() + 1000)

    def give_up():
        os.write(run.cancel[1], b"x")
        run.process.send_signal(signal.SIGCONT)
    LEASE.plan(Plan(canned=problem(409, "wait-timeout").canned, before=stop, behind=give_up))
    is_outcome(run(f"acquire {name} wait=-1 cancel=1"), "UNKNOWN", "cancelled")
    check_equal((grants(name), state(name)), (1, "free"))


@test
def who_is_superseded_leaves_the_line_to_the_newer_request_unless_that_is_an_attempt_of_its_own():
    for own, first, told, requests in ((f"id={'y' * 30}", problem(409, "wait-timeout"), ("NOT_DONE", "superseded"), 2),
                                       (f"id={'y' * 30}", CUT_AT_ONCE, ("UNKNOWN", "superseded"), 2),
                                       ("", CUT_AT_ONCE, ("OK", ""), 3)):
        with client() as run:
            LEASE.plan(first, Plan(canned=problem(409, "superseded").canned, before=lambda: until_ms(now_ms() + 300)))
            is_outcome(run(f"acquire {WORLD.name()} wait=250 {own}"), *told)
            check_equal(len(LEASE.requests), requests, own)


@test
def a_repeat_that_was_not_sent_does_not_make_the_one_before_certain():
    line = Line(WORLD.lease_daemon.port)
    with program(line.url, GATEWAY.url, attempts=2) as run:
        line.plan(Plan(answer=0, before=line.close))
        is_outcome(run(f"acquire {WORLD.name()}"), "UNKNOWN", "no-answer")


@test
def who_waits_is_granted_though_his_wait_is_longer_than_an_answer_may_take(name):
    held = WORLD.acquire(name)
    with client(timeout=1000) as run:
        LEASE.plan()
        run.send(f"acquire {name} wait=5000")
        wait_until(lambda: WORLD.look(name)["waiting"] == 1, "he waits")
        until_ms(now_ms() + 1300)
        WORLD.release(name, held)
        is_outcome(run.answer(), "OK")
        check_equal(len(LEASE.requests), 1)


@test
def a_wait_whose_end_gets_no_answer_is_unknown_and_a_grant_at_its_end_counts():
    for last, told in ((CUT_BEFORE_ANSWER, ("UNKNOWN", "no-answer")), (Plan(), ("OK", "")), (problem(409, "wait-timeout"), ("HELD", "wait-timeout"))):
        with client() as run:
            LEASE.plan(Plan(canned=problem(409, "wait-timeout").canned, before=lambda: until_ms(now_ms() + 120)), last)
            is_outcome(run(f"acquire {WORLD.name()} wait=100"), *told)
            check_in(b'"wait_ms":1}', LEASE.requests[1])


@test_in(client)
def who_waits_for_ever_asks_again_when_a_wait_is_over(run, name):
    LEASE.plan(problem(409, "wait-timeout"), Plan())
    is_outcome(run(f"acquire {name} wait=-1"), "OK")
    check_in(b'"keep_place_ms":30000', LEASE.requests[0])
    check(15000 <= int(LEASE.requests[0].partition(b'"wait_ms":')[2].split(b",")[0]) <= 20000, LEASE.requests)
    check_equal(len(LEASE.requests), 2)


def hang_up(listener):
    """Takes each connection, and closes it a while later, before anything of a request has come through its TLS."""
    while True:
        with listener.accept()[0]:
            until_ms(now_ms() + 100)


@test
def who_waits_sits_out_thirty_seconds_in_which_nobody_is_reached_however_long_each_attempt_takes():
    with socket.create_server(("127.0.0.1", 0)) as listener, client() as run:
        threading.Thread(target=hang_up, args=(listener,), daemon=True).start()
        run(f"open lease=https://127.0.0.1:{listener.getsockname()[1]}")
        run("speed times=20")
        began = now_ms()
        is_outcome(run(f"acquire {WORLD.name()} wait=400000"), "NOT_DONE", "not-sent")
        check(1500 <= now_ms() - began < 10000, now_ms() - began)


main(LEASE.close, GATEWAY.close, WORLD.close)
