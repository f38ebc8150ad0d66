#!/usr/bin/python3
"""The Python client, api/python/pawl.py: every scenario, and what only Python has."""

import os
import signal
import subprocess
import sys
import threading

import clients_test  # finds the service tests' own package
import scenarios
from clients_test import AFTER, ROOT, Say, check, check_equal, wait_until
from scenarios import force, holders, scenario

sys.path.insert(0, str(ROOT / "api/python"))
import pawl  # noqa: E402 pylint: disable=wrong-import-position

scenarios.begin(["/usr/bin/python3", str(clients_test.HERE / "agent.py")])

def services(lease, gateway):
    return pawl.Pawl(lease.url, gateway.url, timeout=2)


@scenario
def a_forked_child_holds_nothing_and_releases_nothing(world, _agent, lease, gateway):
    name = world.name()
    with services(lease, gateway).acquire(name) as hold:
        child = os.fork()
        if child == 0:
            good = hold.remaining() == 0
            for call in (hold.check, hold.release, hold.enter, hold.renew, lambda: hold.put(name, b"x")):
                try:
                    call()
                    good = False
                except pawl.PawlNotDone as error:
                    good = good and error.code == "other-process"
            hold.__exit__(None, None, None)
            os._exit(0 if good else 1)
        check_equal(os.waitpid(child, 0)[1], 0, "the child's status")
        check_equal(world.look(name)["state"], "held")
        check(hold.remaining() > 0, "the parent's goes on")


@scenario
def who_waits_for_ever_asks_again_and_an_interrupt_gives_up(world, _agent, lease, _gateway):
    name = world.name()
    other = world.acquire(name)
    lease.begin(Say(409, b'{"code":"wait-timeout","retryable":true,"detail":"d"}'))
    code = (f"import sys; sys.path.insert(0, {str(ROOT / 'api/python')!r}); import pawl\n"
            f"pawl.Pawl({lease.url!r}).acquire({name!r}, wait=None)")
    child = subprocess.Popen([sys.executable, "-c", code], env=clients_test.environment(), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
    check_equal(lease.methods(), ["POST", "POST"])
    child.send_signal(signal.SIGINT)
    check(child.wait(15) != 0, "interrupted")
    wait_until(lambda: world.look(name)["waiting"] == 0, "it has left the line")
    check_equal(lease.methods(), ["POST", "POST", "DELETE"])
    world.release(name, other)
    check_equal(world.look(name)["state"], "free")


@scenario
def the_lease_id_is_shown_nowhere(world, _agent, lease, gateway):
    hold = services(lease, gateway).acquire(world.name())
    secret = hold._lease_id  # pylint: disable=protected-access
    check(secret not in repr(hold) + str(hold), "in the hold's text")
    force(world, hold.name)
    try:
        hold.release()
        raise AssertionError("the loss was not told")
    except pawl.PawlLost as error:
        check(secret not in repr(error) + str(error) + str(error.problem), "in the error's text")


@scenario
def leaving_keeps_why_it_could_not_release(world, _agent, lease, gateway):
    with services(lease, gateway).acquire(world.name(), ttl=60) as hold:
        lease.begin(AFTER, AFTER, AFTER)
    check(isinstance(hold.release_problem, pawl.PawlUnknown), f"{hold.release_problem}")
    check_equal(hold.remaining(), 0)


@scenario
def of_many_threads_one_at_a_time_holds(world, _agent, lease, gateway):
    name, inside, most, tokens = world.name(), [], [], []

    def work():
        with services(lease, gateway).acquire(name, ttl=5, wait=14) as hold:
            inside.append(1)
            most.append(len(inside))
            tokens.append(hold.token)
            hold.put(name, str(hold.token).encode())
            inside.pop()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(15)
    check_equal((max(most), len(tokens)), (1, 8))
    check_equal(tokens, sorted(tokens), "tokens rise")
    check_equal(holders(world, name), [])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    clients_test.main(scenarios.end)
