#!/usr/bin/python3
"""The Python client, api/clients/python/pawl: every scenario, and what only Python has."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile

import clients_test  # finds the service tests' own package
import scenarios
from clients_test import AFTER, MUTE, ROOT, Say, check, check_equal, skip, test, wait_until
from scenarios import force, holders, scenario
from world.ports import swallowing

sys.path.insert(0, str(ROOT / "api/clients/python"))
import pawl  # noqa: E402 pylint: disable=wrong-import-position

scenarios.begin(["/usr/bin/python3", str(clients_test.HERE / "agent.py")])

USES = """
import pawl

services = pawl.Pawl()
with services.acquire("job", ttl=5, wait=None) as hold, services.session() as session:
    etag: str = hold.put("job", b"x")
    body: bytes = hold.get("job").body
    left: float = session.remaining()
    both: list[pawl.Hold] = services.acquire_all(["a", "b"])
    services.acquire("job", ttl="5")  # a mistake
"""


@test
def its_wheel_has_types_and_they_are_true():
    if not shutil.which("mypy"):
        skip("there is no mypy")
    with tempfile.TemporaryDirectory() as folder:
        source, uses = os.path.join(folder, "source"), os.path.join(folder, "uses.py")
        shutil.copytree(ROOT / "api/clients/python", source, ignore=shutil.ignore_patterns("__pycache__"))
        built = subprocess.run(["/usr/bin/python3", "-c", f"from setuptools import build_meta; build_meta.build_wheel({folder!r})"],
                               cwd=source, capture_output=True, text=True, timeout=60, check=False)
        check_equal(built.returncode, 0, built.stderr)
        version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
        with zipfile.ZipFile(os.path.join(folder, f"pawl-{version}-py3-none-any.whl")) as wheel:
            check_equal([name for name in wheel.namelist() if "dist-info" not in name], ["pawl/__init__.py", "pawl/py.typed"])
            wheel.extractall(os.path.join(folder, "site"))
        with open(uses, "w", encoding="utf-8") as file:
            file.write(USES)
        told = subprocess.run(["mypy", "--strict", "--no-error-summary", "--cache-dir", os.devnull, "site/pawl", uses], cwd=folder,
                              env={**os.environ, "MYPYPATH": "site"}, capture_output=True, text=True, timeout=60, check=False)
        check_equal([line.split(":")[1] for line in told.stdout.splitlines() if ": error:" in line], ["10"], told.stdout + told.stderr)


def services(lease, gateway):
    return pawl.Pawl(lease.url, gateway.url, timeout=2)


def raised(kind, call, *given, **more):
    """By this call: what it raises, which is of this kind."""
    try:
        call(*given, **more)
    except kind as error:
        return error
    raise AssertionError(f"{given} {more}: nothing was raised")


@scenario
def a_forked_child_holds_nothing_and_releases_nothing(world, lease, gateway, name):
    with services(lease, gateway).acquire(name) as hold:
        taken, over = threading.Event(), threading.Event()

        def work():  # of the parent's: the thread is not in the child, but its locks are
            with hold._renewing, hold._changed:  # pylint: disable=protected-access
                taken.set()
                over.wait(15)
        busy = threading.Thread(target=work)
        busy.start()
        taken.wait(15)
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            good = hold.remaining() == 0 and hold.lost.code == "other-process"
            for call in (hold.check, hold.release, hold.enter, hold.renew, lambda: hold.put(name, b"x")):
                try:
                    call()
                    good = False
                except pawl.PawlNotDone as error:
                    good = good and error.code == "other-process"
            hold.__exit__(None, None, None)
            os._exit(0 if good else 1)
        status = os.waitpid(child, 0)[1]
        over.set()
        busy.join()
        check_equal(status, 0, "the child's status")
        check_equal(world.look(name)["state"], "held")
        check(hold.remaining() > 0, "the parent's goes on")


@scenario
def who_waits_for_ever_asks_again_and_an_interrupt_gives_up(world, lease, name):
    other = world.acquire(name)
    lease.begin(Say(409, b'{"code":"wait-timeout","retryable":true,"detail":"d"}'))
    code = (f"import sys; sys.path.insert(0, {str(ROOT / 'api/clients/python')!r}); import pawl\n"
            f"pawl.Pawl({lease.url!r}).acquire({name!r}, wait=None)")
    child = subprocess.Popen([sys.executable, "-c", code], env=clients_test.environment(), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    wait_until(lambda: world.look(name)["waiting"] == 1, "it waits")
    check_equal(lease.methods(), ["POST", "POST"])
    child.send_signal(signal.SIGINT)
    check(child.wait(15) != 0, "interrupted")
    wait_until(lambda: world.look(name)["waiting"] == 0, "it has left the line")
    check_equal(lease.methods(), ["POST", "POST", "POST", "DELETE"])
    world.release(name, other)
    check_equal(world.look(name)["state"], "free")


@scenario
def the_lease_id_is_shown_nowhere(world, lease, gateway):
    hold = services(lease, gateway).acquire(world.name())
    secret = hold._lease_id  # pylint: disable=protected-access
    check(secret not in repr(hold) + str(hold), "in the hold's text")
    force(world, hold.name)
    error = raised(pawl.PawlLost, hold.release)
    check(secret not in repr(error) + str(error) + str(error.problem), "in the error's text")


@scenario
def leaving_keeps_why_it_could_not_release(world, lease, gateway):
    with services(lease, gateway).acquire(world.name(), ttl=60) as hold:
        lease.begin(AFTER, AFTER, AFTER)
    check(isinstance(hold.release_problem, pawl.PawlUnknown), f"{hold.release_problem}")
    check_equal(hold.remaining(), 0)


@scenario
def of_many_threads_one_at_a_time_holds(world, lease, gateway):
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


scenarios.short_sliced("api/clients/python/pawl", "agent.py", lambda folder: ["/usr/bin/python3", f"{folder}/tests/clients/agent.py"])
scenarios.one_after_the_other()


def program(lease, text, **more):
    """Of a user: its stdout is read, and it is interrupted and ends as any other."""
    code = f"import sys, threading; sys.path.insert(0, {str(ROOT / 'api/clients/python')!r}); import pawl\n" \
           f"services = pawl.Pawl({lease.url!r}, timeout=2)\n{text}"
    return subprocess.Popen([sys.executable, "-c", code], env=clients_test.environment(), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, preexec_fn=clients_test.die_with_parent, **more)


@scenario
def an_interrupt_inside_of_the_block_releases(world, lease, name):
    child = program(lease, f"with services.acquire({name!r}, ttl=60):\n    print('in', flush=True); threading.Event().wait()\n")
    check_equal(child.stdout.readline(), b"in\n")
    child.send_signal(signal.SIGINT)
    check(b"KeyboardInterrupt" in child.communicate(timeout=15)[1], "it is told")
    check_equal(world.look(name)["state"], "free")


@scenario
def an_interrupt_of_the_release_of_several_leaves_none_that_is_renewed(world, lease):
    names = [world.name() for _ in range(2)]
    lease.begin(None, MUTE)
    child = program(lease, f"try:\n    with services.acquire_all({names!r}, ttl=1.5): pass\n"
                           "except KeyboardInterrupt:\n    print('out', flush=True); sys.stdin.read()\n", stdin=subprocess.PIPE)
    wait_until(lambda: "DELETE" in lease.methods(), "it releases the first")
    child.send_signal(signal.SIGINT)
    check_equal(child.stdout.readline(), b"out\n")
    for name in names:
        wait_until(lambda: world.look(name)["state"] == "free", "its ttl is over")  # pylint: disable=cell-var-from-loop
    check_equal(child.communicate(timeout=15)[1], b"")


@scenario
def an_interrupt_of_a_shorter_renewal_brings_the_end_nearer(world, lease):
    lease.begin(None, MUTE)
    child = program(lease, f"hold = services.acquire({world.name()!r}, ttl=60)\ntry:\n    hold.renew(3)\n"
                           "except KeyboardInterrupt:\n    hold.renew(60)\n    print(hold.remaining() <= 3)\n")
    wait_until(lambda: "PUT" in lease.methods(), "it renews")
    child.send_signal(signal.SIGINT)
    check_equal(child.communicate(timeout=15), (b"True\n", b""))


@scenario
def a_signal_handler_that_renews_interrupts_a_renewal_and_the_sooner_end_counts(world, lease):
    child = program(lease, f"import signal\nhold, ask = services.acquire({world.name()!r}, ttl=60, renew=False), pawl.Hold._ask\n"
                           "def asks(*args):\n    told = ask(*args); signal.raise_signal(signal.SIGALRM); return told\n"
                           "def on_alarm(*_):\n    pawl.Hold._ask = ask; hold.renew(2)\n"
                           "signal.signal(signal.SIGALRM, on_alarm); pawl.Hold._ask = asks\n"
                           "hold.renew(60); print(0 < hold.remaining() <= 2)\n")
    check_equal(child.communicate(timeout=15), (b"True\n", b""))


@scenario
def who_ends_without_a_release_ends_at_once_and_the_ttl_ends_the_hold(world, lease, name):
    child = program(lease, f"hold = services.acquire({name!r}, ttl=1.5); print('in', flush=True)\n")
    check_equal((child.communicate(timeout=15), child.returncode), ((b"in\n", b""), 0))
    wait_until(lambda: world.look(name)["state"] == "free", "its ttl is over")
    check_equal(lease.methods(), ["POST"])


@scenario
def where_no_thread_can_be_had_it_is_given_back(world, lease, gateway):
    name, begin = world.name(), pawl.Hold._begin  # pylint: disable=protected-access

    def none(_hold):
        raise RuntimeError("can't start new thread")
    pawl.Hold._begin = none  # pylint: disable=protected-access
    try:
        raised(RuntimeError, services(lease, gateway).acquire, name, ttl=60)
        check_equal(world.look(name)["state"], "free")
    finally:
        pawl.Hold._begin = begin  # pylint: disable=protected-access


@scenario
def what_nobody_expected_of_a_renewal_does_not_hide_the_loss(world, lease, gateway):
    told, ours = threading.Event(), services(lease, gateway)

    def broken(*_):
        raise ArithmeticError("nobody expected this")
    ours._renew = broken  # pylint: disable=protected-access
    hold = ours.acquire(world.name(), ttl=0.6, on_lost=lambda _hold, _error: told.set())
    check(told.wait(15), "the loss was told")
    check_equal(hold.lost.code, "deadline-passed")


@scenario
def an_address_that_swallows_everything_leaves_time_for_the_next_and_is_tried_once(lease, name):
    with swallowing() as deaf:
        child = program(lease, "found, connect, tried = pawl.socket.getaddrinfo, pawl.socket.socket.connect, []\n"
                               "pawl.socket.socket.connect = lambda sock, at: tried.append(at[1]) or connect(sock, at)\n"
                               f"pawl.socket.getaddrinfo = lambda *to, **more: found('127.0.0.1', {deaf}, **more) + found(*to, **more)\n"
                               f"services.acquire({name!r}).release()\nprint(*[at == {deaf} for at in tried])\n")
        check_equal(child.communicate(timeout=15), (b"True False False\n", b""))


@scenario
def it_is_used_from_asyncio_in_threads(world, lease, gateway):
    async def work(name):
        hold = await asyncio.to_thread(services(lease, gateway).acquire, name, ttl=5, wait=14)
        token = hold.token
        await asyncio.to_thread(hold.put, name, b"x")
        await asyncio.to_thread(hold.release)
        return token

    async def all_of(name):
        return await asyncio.gather(*(work(name) for _ in range(4)))
    check_equal(len(set(asyncio.run(all_of(world.name())))), 4)


@scenario
def a_mistake_of_the_callers_is_one_before_anything_is_sent(lease, gateway, name):
    for more in ({"ttl": float("nan")}, {"ttl": float("inf")}, {"wait": float("inf")}, {"lock_delay": float("inf")}):
        raised(ValueError, services(lease, gateway).acquire, name, **more)
    check_equal(lease.methods(), [])
    with services(lease, gateway).acquire(name) as hold:
        for body in ("text", None, 5, iter([b"x"])):
            raised(ValueError, hold.put, name, body)
    check_equal(gateway.methods(), [])


if __name__ == "__main__":
    clients_test.main(scenarios.end, parts=2)
