#!/usr/bin/python3
"""test_driver.py - tests/run tells of every way in which a test program can go wrong, and .ci/run adds up what it tells."""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

from tap import Tap  # noqa: E402

HEAD = "#!/usr/bin/python3\nimport os, signal, subprocess, sys, time\n"

# (what the program does, its text, what is told, the last line, in words of a pattern)
PROGRAMS = (
    ("two tests that pass", 'print("ok 1 - a\\nok 2 - b\\n1..2")', "", "2 passed, 0 failed"),
    ("a plan in front", 'print("1..2\\nok 1 - a\\nok 2 - b")', "", "2 passed, 0 failed"),
    ("a test that fails", 'print("ok 1 - a\\n# why\\nnot ok 2 - b\\n1..2"); sys.exit(1)', "not ok - b", "1 passed, 1 failed"),
    ("a failure under exit status 0", 'print("not ok 1 - b\\n1..1")', "not ok - b", "0 passed, 1 failed"),
    ("what it says of a failure", 'print("not ok 1 - b\\n# the reason\\n1..1"); sys.exit(1)', "# the reason",
     "0 passed, 1 failed"),
    ("a test that is skipped", 'print("ok 1 - a # SKIP no disk\\n1..1")', "not run - a - no disk", "0 passed, 1 failed"),
    ("no plan", 'print("ok 1 - a")', "gave no plan", "1 passed, 1 failed"),
    ("two plans", 'print("ok 1 - a\\n1..1\\n1..1")', "gave 2 plans", "1 passed, 1 failed"),
    ("fewer tests than planned", 'print("ok 1 - a\\n1..2")', "planned 2 tests and ran 1", "1 passed, 1 failed"),
    ("more tests than planned", 'print("ok 1 - a\\nok 2 - b\\n1..1")', "planned 1 tests and ran 2", "2 passed, 1 failed"),
    ("a number twice", 'print("ok 1 - a\\nok 1 - b\\n1..2")', "does not count its tests", "2 passed, 1 failed"),
    ("an empty plan", 'print("1..0")', "ran no test", "0 passed, 1 failed"),
    ("silence", "", "gave no plan", "0 passed, 1 failed"),
    ("an exit status without a failure", 'print("ok 1 - a\\n1..1"); sys.exit(3)', "ended with status 3",
     "1 passed, 1 failed"),
    ("what it wrote to stderr before it died", 'print("broken pipe dream", file=sys.stderr); sys.exit(3)', "broken pipe dream",
     "0 passed, 2 failed"),
    ("a signal", 'print("ok 1 - a\\n1..1", flush=True); os.kill(os.getpid(), signal.SIGSEGV)', "was ended by SIGSEGV",
     "1 passed, 1 failed"),
    ("a process left behind", 'subprocess.Popen(["sleep", "60"], start_new_session=True)\nprint("ok 1 - a\\n1..1")',
     "left processes behind", "1 passed, 1 failed"),
    ("its temporary directory", 'open(os.environ["TMPDIR"] + "/x", "w")\nassert os.environ["TMPDIR"].startswith("/tmp/pawl-")\n'
     'assert os.path.isabs(os.environ["PAWL_BUILD"])\nprint("ok 1 - a\\n1..1")', "", "1 passed, 0 failed"),
)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def tree(place):
    os.makedirs(os.path.join(place, "tests/world"))
    for path in ("tests/run", "tests/world/wait.py"):
        shutil.copy(os.path.join(ROOT, path), os.path.join(place, path))
    return place


def drive(place, *more):
    done = subprocess.run([os.path.join(place, "tests/run"), *more], capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines() or [""]
    assert re.match(r"\d+ passed, \d+ failed$", lines[-1]), f"the last line is {lines[-1]!r}\n{done.stdout}{done.stderr}"
    assert (done.returncode == 0) == lines[-1].endswith(", 0 failed"), f"exit status {done.returncode} for {lines[-1]!r}"
    return lines[-1], done.stdout


def tells(text, told, last):
    with tempfile.TemporaryDirectory() as place:
        write(os.path.join(tree(place), "tests/service/test_one.py"), HEAD + text + "\n")
        got, output = drive(place, "--layers", "service")
        assert got == last, f"{got!r}, not {last!r}\n{output}"
        assert told in output, f"does not tell {told!r}\n{output}"


def tells_of_too_long():
    with tempfile.TemporaryDirectory() as place:
        driver = os.path.join(tree(place), "tests/run")
        with open(driver, encoding="utf-8") as file:
            text = file.read()
        assert "120 * slow" in text
        write(driver, text.replace("120 * slow", "0.5"))
        write(os.path.join(place, "tests/service/test_one.py"),
              HEAD + 'print("ok 1 - a", flush=True)\nsubprocess.run(["sleep", "60"])\n')
        last, output = drive(place, "--layers", "service")
        assert last == "1 passed, 1 failed" and "was not done after" in output, output


def tells_of_empty_layer():
    with tempfile.TemporaryDirectory() as place:
        write(os.path.join(tree(place), "tests/service/test_one.py"), HEAD + 'print("ok 1 - a\\n1..1")\n')
        last, output = drive(place, "--layers", "service,scripts")
        assert last == "1 passed, 1 failed" and "scripts: there is no program in this layer" in output, output


def tells_when_nothing_was_chosen():
    with tempfile.TemporaryDirectory() as place:
        write(os.path.join(tree(place), "tests/service/test_one.py"), HEAD + 'print("ok 1 - a\\n1..1")\n')
        last, output = drive(place, "--layers", "service", "no-such-program")
        assert last == "0 passed, 1 failed" and "nothing was run" in output, output


def longest_first():
    with tempfile.TemporaryDirectory() as place:
        tree(place)
        for name in ("a_new_one", "demo", "resolve"):
            write(os.path.join(place, f"tests/service/test_{name}.py"),
                  HEAD + f'open("{place}/order", "a").write("{name} ")\nprint("ok 1 - a\\n1..1")\n')
        last, output = drive(place, "--layers", "service", "--at-once", "1")
        with open(os.path.join(place, "order"), encoding="utf-8") as file:
            order = file.read()
        assert (last, order) == ("3 passed, 0 failed", "demo resolve a_new_one "), f"{order}\n{output}"


def takes_turns():
    """Each program has one turn, and a layer that is not named has no turns."""
    with tempfile.TemporaryDirectory() as place:
        tree(place)
        for name in ("service/test_a", "service/test_demo", "service/test_c", "scripts/test_d", "model/test_m"):
            write(os.path.join(place, f"tests/{name}.py"), HEAD + f'open("{place}/ran", "a").write("{name[-1]}")\nprint("ok 1 - a\\n1..1")\n')
        for turn in (1, 2):
            drive(place, "--layers", "service,scripts,model", "--turn", f"{turn}/2:service,torture", "--turn", "1/12:model")
        with open(os.path.join(place, "ran"), encoding="utf-8") as file:
            assert sorted(file.read()) == list("acddmmo")


def one_that_computes():
    """Those that compute would meet if they were begun at once; the others go on until one of them has ended."""
    model = ('os.mkdir("{0}/one")\ntime.sleep(0.3)\nos.rmdir("{0}/one")\nopen("{0}/done", "a").write("x")\n'
             'print("ok 1 - a\\n1..1")\n')
    waits = ('end = time.monotonic() + 30\nwhile not os.path.exists("{0}/done"):\n'
             '    assert time.monotonic() < end\n    time.sleep(0.01)\nprint("ok 1 - a\\n1..1")\n')
    with tempfile.TemporaryDirectory() as place:
        tree(place)
        for path, text in (("model/test_a", model), ("model/test_b", model), ("service/test_c", waits),
                           ("service/test_d", waits)):
            write(os.path.join(place, f"tests/{path}.py"), HEAD + text.format(place))
        last, output = drive(place, "--layers", "service,model", "--at-once", "3")
        assert last == "4 passed, 0 failed", output


def component_again():
    """A failure while the machine stood still is no verdict; without that, or when the program died, it is."""
    fails_once = ('first = not os.path.exists("{0}/ran")\nopen("{0}/ran", "a").write("x")\n{1}\n'
                  'print("not ok 1 - a\\n# why\\n1..1" if first else "ok 1 - a\\n1..1")\nsys.exit(first)\n')
    stops = 'os.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(0.6)\nos.kill(os.getppid(), signal.SIGCONT)\ntime.sleep(0.2)'
    for before, wanted, ran in ((stops, "1 passed, 0 failed", "xx"), ("", "0 passed, 1 failed", "x"),
                                (stops + "\nos.abort()", "0 passed, 2 failed", "x")):
        with tempfile.TemporaryDirectory() as place:
            write(os.path.join(tree(place), "tests/component/test_x.c"), "")
            write(os.path.join(place, "build/tests/test_x"), HEAD + fails_once.format(place, before))
            last, output = drive(place, "--layers", "component")
            with open(os.path.join(place, "ran"), encoding="utf-8") as file:
                assert (last, file.read()) == (wanted, ran), output
            assert ("once more: not ok - a\n# why" in output) == (ran == "xx"), output


def slowest_are_told():
    with tempfile.TemporaryDirectory() as place:
        write(os.path.join(tree(place), "tests/service/test_one.py"), HEAD + 'print("ok 1 - a\\n1..1")\n')
        last, output = drive(place, "--layers", "service")
        assert last == "1 passed, 0 failed" and re.search(r"^( +\d+\.\d s){2}  tests/service/test_one\.py$", output, re.M), output


def fuzzer(place, text, corpus=True):
    write(os.path.join(tree(place), "tests/fuzz/fuzz_x.c"), "")
    write(os.path.join(place, "build/fuzzing/fuzz/fuzz_x"), "#!/bin/sh\n" + text)
    if corpus:
        write(os.path.join(place, "tests/fuzz/corpus/x/one"), "1")
    return drive(place, "--layers", "fuzz")


def tells_of_fuzzer_that_finds():
    with tempfile.TemporaryDirectory() as place:
        last, output = fuzzer(place, "echo 'stat::number_of_executed_units: 9' >&2\necho crash-1 >&2\nexit 77\n")
        assert last == "0 passed, 1 failed" and "crash-1" in output, output


def tells_of_fuzzer_that_tries_nothing():
    with tempfile.TemporaryDirectory() as place:
        last, output = fuzzer(place, "exit 0\n")
        assert last == "0 passed, 1 failed", output


def tells_of_fuzzer_without_corpus():
    with tempfile.TemporaryDirectory() as place:
        last, output = fuzzer(place, "echo 'stat::number_of_executed_units: 9' >&2\n", corpus=False)
        assert last == "0 passed, 1 failed" and "has no corpus" in output, output


def counts_fuzzer_that_finds_nothing():
    with tempfile.TemporaryDirectory() as place:
        last, output = fuzzer(place, "echo 'stat::number_of_executed_units: 9' >&2\n")
        assert last == "1 passed, 0 failed", output


# What make does for each part of .ci/run, and what comes of it.
CI = (
    ("adds up its parts", {}, "41 passed, 0 failed", 0),
    ("tells of a part that failed", {"lint": "echo '4 passed, 1 failed'; exit 1"}, "40 passed, 1 failed", 1),
    ("reads past what make says of a failure", {"lint": "echo '4 passed, 1 failed'; echo 'make: *** [lint] Error 1' >&2; exit 2"},
     "40 passed, 1 failed", 1),
    ("tells of a part without a last line", {"test": "echo 'all is well'"}, "36 passed, 1 failed", 1),
    ("tells of a part that ran nothing", {"test": "echo '0 passed, 0 failed'"}, "36 passed, 1 failed", 1),
    ("tells of a part that passed and yet failed", {"lint": "echo '5 passed, 0 failed'; exit 2"}, "41 passed, 1 failed", 1),
    ("tells of a Valkey that cannot be had", {"install-valkey": "exit 1"}, "35 passed, 1 failed", 1),
    ("tells of a sanitizer build that does not compile", {"SANITIZE=thread": "exit 2"}, "35 passed, 1 failed", 1),
)


def ci(changed, last, status, commits=5):
    parts = {"lint": "echo '5 passed, 0 failed'", "test": "echo '5 passed, 0 failed'", "SANITIZE=thread": ":", **changed}
    valkey = parts.pop("install-valkey", "echo /nowhere")
    cases = "".join(f"*' {word} '*) {does} ;;\n" for word, does in parts.items())
    with tempfile.TemporaryDirectory() as place:
        write(os.path.join(place, ".ci/run"), open(os.path.join(ROOT, ".ci/run"), encoding="utf-8").read())
        write(os.path.join(place, "deploy/install-deps"), "#!/bin/sh\n")
        write(os.path.join(place, "deploy/install-valkey"), f"#!/bin/sh\n{valkey}\n")
        write(os.path.join(place, "tests/run"), "#!/bin/sh\ncase $* in *'layers browser'*) echo '3 passed, 0 failed' ;; *) echo '6 passed, 0 failed' ;; esac\n")
        write(os.path.join(place, "tests/mutants/run"), "#!/bin/sh\necho '7 passed, 0 failed'\n")
        write(os.path.join(place, "bin/make"), f'#!/bin/sh\ncase " $* " in\n{cases}esac\n')
        write(os.path.join(place, "bin/git"), f"#!/bin/sh\necho {commits}\n")
        env = dict(os.environ, PATH=f"{place}/bin:{os.environ['PATH']}")
        done = subprocess.run([os.path.join(place, ".ci/run")], capture_output=True, text=True, env=env, check=False)
        assert done.stdout.strip().splitlines()[-1] == last, done.stdout + done.stderr
        assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}"


def main():
    tap = Tap()
    for what, text, told, last in PROGRAMS:
        tap.run(f"the driver sees {what}", tells, text, told, last)
    tap.run("the driver ends a program that takes too long", tells_of_too_long)
    tap.run("the driver tells of a layer without programs", tells_of_empty_layer)
    tap.run("the driver fails when nothing was run", tells_when_nothing_was_chosen)
    tap.run("the driver begins with what takes longest", longest_first)
    tap.run("the driver runs programs by turns", takes_turns)
    tap.run("the driver runs one program that computes beside those that wait", one_that_computes)
    tap.run("the driver runs a component test again when the machine stood still", component_again)
    tap.run("the driver tells of the slowest programs", slowest_are_told)
    tap.run("the driver tells of a fuzzer that finds something", tells_of_fuzzer_that_finds)
    tap.run("the driver tells of a fuzzer that tries nothing", tells_of_fuzzer_that_tries_nothing)
    tap.run("the driver tells of a fuzzer without a corpus", tells_of_fuzzer_without_corpus)
    tap.run("the driver counts a fuzzer that finds nothing", counts_fuzzer_that_finds_nothing)
    for what, changed, last, status in CI:
        tap.run(f".ci/run {what}", ci, changed, last, status)
    tap.run(".ci/run has the packages at every fourth commit", ci, {}, "47 passed, 0 failed", 0, 8)
    tap.run(".ci/run has a browser two commits later", ci, {}, "44 passed, 0 failed", 0, 10)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
