"""A test is a function whose name is a sentence; the tests of a file run in the order in which they stand there. What its
parameters name is made for it by gives; `name`: that of a lease that no other test uses."""

import contextlib
import faulthandler
import functools
import inspect
import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import traceback

from .process import die_with_parent
from .wait import stood_still_s, wait_noticed_s

_TRIES = 3
_numbers = itertools.count(1)
_tests = []
witnesses = []  # what they give is told with a test that fails


class Failed(AssertionError):
    pass


class Skipped(Exception):
    pass


class Hangs(BaseException):
    """Past the handlers of a test, which expect what may go wrong with what it tests."""


def lease_name(stem="job"):
    return f"{stem}:{next(_numbers)}"


gives = {"name": lease_name}


def given(function, *args, **things):
    """Called with those of the things that its parameters name; what is not there is made, for this call."""
    return _given(function, args, things)


def _given(function, args, things):
    if hasattr(function, "once"):
        return function(*args, **things)
    parameters = inspect.signature(function).parameters
    wanted = [one for one, parameter in parameters.items() if parameter.default is parameter.empty]
    for one in wanted:
        if one in gives and one not in things:
            things[one] = _given(gives[one], (), things)
    return function(*args, **{one: things[one] for one in wanted if one in things})


def test(function):
    _tests.append(function)
    return function


def test_in(begin):
    """A test with a world of its own, or a stage: what begin() gives, which is closed or left behind it."""
    def decorate(function):
        def run():
            world = begin()
            with world if hasattr(world, "__enter__") else contextlib.nullcontext(world) as entered:
                given(getattr(function, "once", function), entered)
            if entered is world:
                world.close()
        run.__name__ = function.__name__
        return test(of_time(run) if hasattr(function, "once") else run)  # each time in a new one
    return decorate


def of_time(function):
    """What is tested has a deadline itself, as the end of a ttl, or who is silent for 3 s: a machine that stands still in the
    midst of it lets that pass. Then, and only then, a test that failed is run again; a rule that is broken is broken each time."""
    @functools.wraps(function)
    def run(*args, **things):  # made anew for each try
        for tries in range(_TRIES):
            before = stood_still_s()
            try:
                return given(function, *args, **things)
            except Exception as error:  # pylint: disable=broad-except # it is told, or raised
                if wait_noticed_s() == before or tries == _TRIES - 1:
                    raise
                _explain(error)
                _say(f"# the machine stood still for {stood_still_s() - before:.1f} s: once more")
    run.once = function
    return run


def check(held, message="does not hold"):
    if not held:
        raise Failed(message)


def check_equal(got, wanted, message=""):
    if got != wanted:
        raise Failed(f"{message + ': ' if message else ''}got {got!r}, wanted {wanted!r}")


def check_in(part, whole, message=""):
    if part not in whole:
        raise Failed(f"{message + ': ' if message else ''}{part!r} is not in {whole!r}")


def skip(reason):
    """What is tested cannot be tested on this machine: the test counts as not run."""
    raise Skipped(reason)


def _say(text):
    """Told at once, and past Python's own buffer: a test that hangs shows which one it is."""
    os.write(1, (text + "\n").encode(errors="backslashreplace"))


def _explain(error):
    frames = [f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)
              if os.path.basename(frame.filename) not in ("tap.py",)]
    kind = "" if isinstance(error, Failed) else type(error).__name__ + ": "
    for line in f"{' < '.join(reversed(frames[-4:]))}: {kind}{error}"[:4000].splitlines():
        _say("# " + line)


def _say_processes():
    """What runs of this test: its state, and what it waits for in the kernel."""
    mark = f"TEST_MARK={os.environ['TEST_MARK']}".encode()
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark not in (place / "environ").read_bytes().split(b"\0"):
                continue
            words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:160]
            name, _, stat = (place / "stat").read_text(errors="replace").rpartition(")")
            _say(f"# {name}) {' '.join(stat.split()[:4])} {(place / 'wchan').read_text()} {words}")
        except OSError:
            continue


def _hangs(_number, _frame):
    _say_processes()
    faulthandler.dump_traceback()
    raise Hangs("was not done in time")


def _limit(seconds):
    """A test that hangs fails, and the next one runs. TEST_LIMIT_S is given by tests/run."""
    if "TEST_LIMIT_S" in os.environ:
        signal.signal(signal.SIGALRM, _hangs)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _run(number, function, sentence):
    begun = time.monotonic()
    _limit(float(os.environ.get("TEST_LIMIT_S", 0)))
    try:
        given(function)
        result, note = "ok", ""
    except Skipped as reason:
        result, note = "ok", f" # SKIP {reason}"
    except (Exception, Hangs) as error:  # pylint: disable=broad-except # whatever went wrong is told, and the next test runs
        _explain(error)
        for line in [line for witness in witnesses for line in witness()]:
            _say("# " + line)
        result, note = "not ok", ""
    _limit(0)
    took_s = time.monotonic() - begun
    if took_s > 2:
        _say(f"# took {took_s:.1f} s")
    _say(f"{result} {number} - {sentence}{note}")
    return result == "ok"


def _start_part(number, parts):
    """This very program, for its part of the tests."""
    return subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "TEST_PART": f"{number}/{parts}"},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=die_with_parent)


def _finish_part(process, number):
    """Says what it said, its results counted on from number: (the last number, how many failed)."""
    failed, planned = 0, False
    for line in process.communicate()[0].decode(errors="replace").splitlines():
        result = re.match(r"(not )?ok \d+( - .*)", line)
        if result:
            number, failed = number + 1, failed + bool(result[1])
            _say(f"{result[1] or ''}ok {number}{result[2]}")
        elif re.fullmatch(r"1\.\.\d+", line):
            planned = True
        else:
            _say(line)
    if not planned:
        number, failed = number + 1, failed + 1
        _say(f"not ok {number} - a part of the tests comes to its end (status {process.returncode})")
    return number, failed


def main(*closers, parts=1):
    """Runs all tests, or those whose names contain an argument of the command line. closers: called in turn, they are the last
    test. parts: for tests that mostly wait: so many processes at once run each its share of them, with a world of its own."""
    def close():
        for closer in closers:
            closer()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:  # by nohup, or a shell's "&"; it would be handed down
            signal.signal(number, signal.SIG_DFL)
    wanted, own = sys.argv[1:], os.environ.get("TEST_PART")
    part, parts = map(int, own.split("/")) if own else (0, 1 if wanted else parts)
    others = [] if own else [_start_part(other, parts) for other in range(1, parts)]
    chosen = [one for one in _tests if not wanted or any(word in one.__name__ for word in wanted)][part::parts]
    failed = 0
    number = 0
    try:
        for number, function in enumerate(chosen, 1):
            failed += not _run(number, function, function.__name__.replace("_", " "))
    finally:
        if closers:
            number += 1
            failed += not _run(number, close, "every daemon ended cleanly")
    for other in others:
        number, failed_there = _finish_part(other, number)
        failed += failed_there
    _say(f"1..{number}")
    sys.exit(1 if failed or not chosen else 0)
