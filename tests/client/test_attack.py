#!/usr/bin/python3
"""libpawl treated badly: callbacks that call back, many threads, signals, little stacks, no descriptors, fork() and what a
stopped service does to a guard. attack_*.c are the programs."""

import os
import pathlib
import signal
import subprocess
import tempfile

from client_world import ROOT, Line, Plan, World, compile_c, now_ms
from world import check, check_equal, main, skip, test
from world.process import die_with_parent

WORLD = World()
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="pawl-attack-"))
CALLS = compile_c(ROOT / "tests/client/attack_calls.c", "-std=c11", "-D_GNU_SOURCE")
GUARD = compile_c(ROOT / "tests/client/attack_guard.c", "-std=c11", "-D_GNU_SOURCE")


def start(binary, attack, *before, name=None, **variables):
    clean = {one: value for one, value in os.environ.items() if not one.startswith("PAWL_")}
    clean |= {"PAWL_LEASE_URL": WORLD.lease_daemon.url, "PAWL_GATEWAY_URL": WORLD.gateway_daemon.url, **variables}
    return subprocess.Popen([*before, binary, attack, name or WORLD.name()], env=clean, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)


def ends_well(process):
    out, errors = process.communicate(timeout=120)
    check_equal((process.returncode, out), (0, ""), errors[-3000:])


def attacked(binary, attack, sentence):
    """Afterwards nothing of it is held."""
    def run(name):
        ends_well(start(binary, attack, name=name))
        check_equal(WORLD.look(name)["state"], "free")
    run.__name__ = sentence
    test(run)


for words in ((CALLS, "null", "no_argument_that_is_missing_does_any_harm"),
              (CALLS, "callbacks", "callbacks_call_the_guard_and_open_others"),
              (CALLS, "signals", "calls_that_signals_interrupt_end_as_others_do"),
              (CALLS, "threads", "many_threads_use_one_client"),
              (CALLS, "closed", "what_is_printed_or_opened_where_nothing_is_open_disturbs_no_request_and_no_guard"),
              (GUARD, "storm", "eight_threads_are_told_the_same_loss_and_the_descriptor_stays_readable"),
              (GUARD, "many", "hundreds_of_guards_renew_and_give_all_back"),
              (GUARD, "descriptors", "without_descriptors_nothing_is_done_and_a_guard_goes_on_when_there_are_some"),
              (GUARD, "fork", "a_child_waits_for_no_lock_is_told_that_it_is_another_process_and_neither_renews_nor_releases")):
    attacked(*words)


@test
def the_same_as_in_eight_threads_at_the_deadline_while_the_service_stands_still(name):
    process = start(GUARD, "deadline", name=name)
    try:
        check_equal(process.stdout.readline(), "go\n")
        WORLD.lease_daemon.process.send_signal(signal.SIGSTOP)
        ends_well(process)
    finally:
        WORLD.lease_daemon.process.send_signal(signal.SIGCONT)


@test
def signals_do_not_shorten_the_pause_before_a_repeat():
    line, times = Line(WORLD.lease_daemon.port), []
    line.plan(*[Plan(request=40, before=lambda: times.append(now_ms())) for _ in range(2)], Plan(before=lambda: times.append(now_ms())))
    ends_well(start(CALLS, "pauses", PAWL_LEASE_URL=line.url))
    check(times[1] - times[0] >= 25 - 1 and times[2] - times[1] >= 50 - 1, times)
    line.close()


@test
def a_stack_of_64_kib_is_enough_also_where_a_name_is_looked_up():
    for host in ("127.0.0.1", "localhost"):
        ends_well(start(CALLS, "stacks", PAWL_LEASE_URL=f"http://{host}:{WORLD.lease_daemon.port}",
                        PAWL_GATEWAY_URL=f"http://{host}:{WORLD.gateway_daemon.port}"))


@test
def a_child_of_the_same_number_is_another_process_too():
    if subprocess.run(["unshare", "--pid", "--fork", "true"], check=False, capture_output=True).returncode != 0:
        skip("no namespaces for this user")
    # What looks for leaks starts a thread, which nobody can who has left a namespace.
    ends_well(start(GUARD, "namespace", "unshare", "--pid", "--fork", "--kill-child",
                    ASAN_OPTIONS=f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"))


@test
def a_comma_in_the_numbers_of_the_users_language_changes_nothing():
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(FOLDER / "de_DE.UTF-8")], check=False,
                          capture_output=True)
    if not (FOLDER / "de_DE.UTF-8").is_dir():
        skip(f"no such language here: {made.stderr[-200:]}")
    # With LOCPATH the newlocale() of libp11-kit, which GnuTLS brings along, loses some bytes when it is loaded.
    ends_well(start(CALLS, "locale", LOCPATH=str(FOLDER), LC_ALL="de_DE.UTF-8",
                    ASAN_OPTIONS=f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"))


main(WORLD.close)
