#!/usr/bin/python3
"""libpawl's guard: it renews, it is lost once and stays lost, and it tells the time that is left also after a pause."""

import os
import signal

from client_world import CUT_BEFORE_ANSWER, CUT_IN_REQUEST, Line, Plan, World, now_ms, problem, program, until_ms, wait_until
from world import check, check_equal, check_in, main, of_time, test, test_in

WORLD = World()
LEASE = Line(WORLD.lease_daemon.port)
LATE_MS = 700  # a callback on a busy machine


def guarded(**how):
    LEASE.go_on()
    LEASE.plan()
    return program(LEASE.url, WORLD.gateway_daemon.url, **how)


def open_guard(run, name, ttl=600):
    answer = run(f"guard {name} ttl={ttl}")
    check_equal(answer["outcome"], "OK", repr(answer))
    return answer


def state_of(run):
    """Numbers as numbers."""
    return {name: int(value) if value.lstrip("-").isdigit() else value for name, value in run("state").items()}


def wait_lost(run):
    return wait_until(lambda: (one := state_of(run))["lost"] and one, "the guard is lost")


def force(name):
    WORLD.lease("POST", f"/v1/leases/{name}/force-release", body={})


def is_over(state):
    check_equal((state["remaining"], state["readable"], state["lost"]), (0, 1, 1), repr(state))


def check_over_for_good(run, name):
    """Also when the service can be reached again; and all are told what the callback was told."""
    LEASE.go_on()
    LEASE.plan()
    state = state_of(run)
    is_over(state)
    for command in ("enter", "leave", "leave", "enter", "close"):
        answer = run(command)
        check_equal((answer["outcome"], answer["code"]), ("LOST", state["code"]), command)
        if command != "close":
            is_over(state_of(run))
    wait_until(lambda: WORLD.look(name)["state"] == "free", "it is given back")


# -- held

@test
@of_time
def it_renews_for_longer_than_its_ttl_and_tells_each_deadline(name):
    with guarded() as run:
        grant = open_guard(run, name)
        state = wait_until(lambda: (one := state_of(run))["renewed"] >= 6 and one, "it renewed")
        check(now_ms() > int(grant["deadline"]), "longer than the ttl")
        check(0 < state["remaining"] <= 600 and state["readable"] == 0 and state["lost"] == 0, state)
        check(int(grant["deadline"]) < state["told"] <= now_ms() + 600, state)
        check_equal(str(WORLD.look(name)["token"]), grant["token"])
        check_in(b"Fencing-Token: ", LEASE.requests[-1])
        check_equal(state["tried"], "NOT_DONE/NOT_DONE")  # leave and close, in the callback
        check_equal(run("close")["outcome"], "OK")
    check_equal(WORLD.look(name)["state"], "free")


@test
@of_time
def it_renews_at_a_third_of_its_ttl_or_somewhat_earlier():
    name, times = WORLD.name(), []
    with guarded() as run:
        LEASE.plan(Plan(), *(Plan(before=lambda: times.append(now_ms())) for _ in range(9)))
        began = now_ms()
        open_guard(run, name, 3000)
        wait_until(lambda: len(times) >= 4, "it renews")
        steps = [later - sooner for sooner, later in zip([began] + times, times)]
        check(all(780 <= step <= 1000 + 300 for step in steps[:4]), steps)
        check_equal(run("close")["outcome"], "OK")


@test_in(guarded)
@of_time
def a_renewal_that_fails_is_tried_again_and_is_no_loss(run, name):
    # The first is the acquire; what follows is refused, cut, cut, and then goes through.
    LEASE.plan(Plan(), problem(503, "store-unavailable", retryable="true"), CUT_IN_REQUEST, CUT_BEFORE_ANSWER,
               problem(504, "outcome-unknown"), problem(403, "forbidden"))
    open_guard(run, name, 2000)
    state = wait_until(lambda: (one := state_of(run))["renewed"] >= 2 and one, "it renewed")
    check_equal((state["lost"], state["readable"]), (0, 0))
    check(len(LEASE.requests) >= 7, len(LEASE.requests))
    check_equal(run("close")["outcome"], "OK")


@test
def the_last_leave_releases_and_no_earlier_one(name):
    with guarded() as run:
        open_guard(run, name, 5000)
        check_equal([run("enter")["outcome"] for _ in range(2)], ["OK", "OK"])
        check_equal([run("leave")["outcome"] for _ in range(2)], ["OK", "OK"])
        check_equal(WORLD.look(name)["state"], "held")
        check(state_of(run)["remaining"] > 0, "it is held")
        check_equal(run("leave")["outcome"], "OK")
        check_equal(WORLD.look(name)["state"], "free")
        WORLD.acquire(name)
        state = state_of(run)
        check_equal((state["remaining"], state["readable"], state["lost"]), (0, 0, 0), repr(state))
        for command in ("enter", "leave"):
            answer = run(command)
            check_equal((answer["outcome"], answer["code"]), ("NOT_DONE", "ended"), command)
        check_equal(run("close")["outcome"], "OK")
    check_equal(WORLD.look(name)["state"], "held")


@test_in(guarded)
@of_time
def closing_releases_whatever_the_count_and_ends_at_once(run, name):
    open_guard(run, name, 60000)
    run("enter")
    began = now_ms()
    check_equal(run("close")["outcome"], "OK")
    check(now_ms() - began < 2000, now_ms() - began)
    check_equal(WORLD.look(name)["state"], "free")


@test
@of_time
def closing_does_not_wait_for_a_renewal_that_hangs():
    name, met = WORLD.name(), []
    with guarded(timeout=20000) as run:
        LEASE.plan(Plan(), Plan(before=lambda: (met.append(1), LEASE.lock.acquire(), LEASE.lock.wait(20), LEASE.lock.release())))
        open_guard(run, name, 30000 // 10)
        wait_until(lambda: met, "it renews")
        began = now_ms()
        check_equal(run("close")["outcome"], "OK")
        check(now_ms() - began < 2000, now_ms() - began)
        with LEASE.lock:
            LEASE.lock.notify_all()


@test
@of_time
def a_guard_waits_in_line_and_is_refused_as_an_acquire_is(name):
    held = WORLD.acquire(name)
    with guarded() as run:
        answer = run(f"guard {name}")
        check_equal((answer["outcome"], answer["code"]), ("HELD", "lease-held"))
        run.send(f"guard {name} wait=20000 ttl=2000")
        wait_until(lambda: WORLD.look(name)["waiting"] == 1, "he waits")
        WORLD.release(name, held)
        check_equal(run.answer()["outcome"], "OK")
        wait_until(lambda: state_of(run)["renewed"] > 0, "it renews")
        check_equal(run("close")["outcome"], "OK")


@test_in(guarded)
def the_guards_thread_takes_no_signals(run, name):
    open_guard(run, name, 5000)
    pid = run.process.pid
    others = [one for one in os.listdir(f"/proc/{pid}/task") if int(one) != pid]
    check(others, "there is a thread")
    for one in others:
        with open(f"/proc/{pid}/task/{one}/status", encoding="utf-8") as file:
            blocked = int(next(line for line in file if line.startswith("SigBlk:")).split()[1], 16)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD, signal.SIGALRM):
            if not os.environ.get("TSAN_OPTIONS") or blocked:
                check(blocked >> (number - 1) & 1, f"{number} is blocked in {one}: {blocked:x}")
    check_equal(run("close")["outcome"], "OK")


# -- lost

@test_in(guarded)
@of_time
def it_is_lost_when_it_is_ended_by_force(run, name):
    deadline = int(open_guard(run, name, 6000)["deadline"])
    force(name)
    WORLD.acquire(name, ttl_ms=100)
    polled = run("poll ms=10000")
    check_equal(polled["readable"], "1")
    check(int(polled["at"]) < deadline - 1000, (polled, deadline))  # not only by the clock
    state = wait_lost(run)
    is_over(state)
    check_equal(state["code"], "lease-lost")
    check_equal(state["tried"], "NOT_DONE/0")  # close, and what remains, in the callback
    answer = run("leave")
    check_equal((answer["outcome"], answer["code"]), ("LOST", "lease-lost"))
    check_over_for_good(run, name)


@test
@of_time
def it_is_lost_at_its_deadline_when_the_service_is_gone():
    for how in ("dark", "cut"):
        name = WORLD.name()
        with guarded() as run:
            open_guard(run, name, 600)
            wait_until(lambda: state_of(run)["renewed"] > 0, "it renewed")  # pylint: disable=cell-var-from-loop
            if how == "dark":
                LEASE.go_dark()
            else:
                LEASE.plan(*[CUT_IN_REQUEST] * 500)
            polled = run("poll ms=10000")
            told = state_of(run)["told"]
            check_equal(polled["readable"], "1")
            check(told <= int(polled["at"]) <= told + LATE_MS, (polled, told))
            state = wait_lost(run)
            is_over(state)
            check_equal(state["code"], "deadline-passed")
            check(told <= state["lost_at"] <= told + LATE_MS, state)
            check_over_for_good(run, name)


@test
@of_time
def an_answer_that_comes_after_the_deadline_saves_nothing():
    name, late = WORLD.name(), []
    with guarded() as run:
        def hold_back():
            until_ms(late[0] + 300)
        LEASE.plan(Plan(), *[Plan(behind=hold_back)] * 30)
        late.append(int(open_guard(run, name, 600)["deadline"]))
        until_ms(late[0] + 400)
        state = wait_lost(run)
        is_over(state)
        check_equal((state["code"], state["renewed"]), ("deadline-passed", 0))
        check_over_for_good(run, name)


@test
@of_time
def after_a_pause_nothing_remains_at_once_and_the_loss_is_told_once(name):
    for first_call in ("state", "poll ms=0", "enter"):
        with guarded() as run:
            open_guard(run, name, 500)
            wait_until(lambda: state_of(run)["renewed"] > 0, "it renewed")  # pylint: disable=cell-var-from-loop
            told = state_of(run)["told"]
            run.process.send_signal(signal.SIGSTOP)
            WORLD.acquire(name, wait_ms=5000, ttl_ms=1000)  # another holds it now
            until_ms(told + 100)
            run.send(first_call)
            run.process.send_signal(signal.SIGCONT)
            first = run.answer()
            if first_call == "enter":
                check_equal((first["outcome"], first["code"]), ("LOST", "deadline-passed"))
            else:
                check_equal((first["remaining"], first["readable"]), ("0", "1"), repr(first))
            wait_lost(run)
            check_equal(run("leave")["outcome"], "LOST")
            check_equal(state_of(run)["code"], "deadline-passed")
            check_over_for_good(run, name)


@test_in(guarded)
@of_time
def what_is_lost_here_may_live_on_there_and_is_given_back_at_the_end(run, name):
    # Each renewal is done, and its answer never comes.
    LEASE.plan(Plan(), *[CUT_BEFORE_ANSWER] * 200)
    open_guard(run, name, 1000)
    is_over(wait_lost(run))
    check_equal(WORLD.look(name)["state"], "held")
    LEASE.plan()
    check_equal(run("close")["outcome"], "LOST")
    check_equal(WORLD.look(name)["state"], "free")


@test_in(guarded)
def a_release_that_does_not_get_through_is_told(run, name):
    open_guard(run, name, 5000)
    LEASE.plan(*[CUT_IN_REQUEST] * 20)
    check_equal(run("leave")["outcome"], "UNKNOWN")
    check_equal(state_of(run)["remaining"], 0)
    check_equal(run("close")["outcome"], "UNKNOWN")
    check_equal(state_of(run)["lost"], 0)


main(LEASE.close, WORLD.close, parts=2)
