"""spin.py - has Spin search a model, and says what it found."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/lint"))

from tap import Tap  # noqa: E402,F401

DEPTH_MAX = 2000000
MEMORY_MAX_MB = 3000


class Search:
    """A search of all states that can be reached, or for the shortest way to a violation."""

    def __init__(self, model, flags, shortest=False):
        self.model, self.flags = os.path.join(HERE, model), flags
        self.place = tempfile.mkdtemp(dir=os.environ.get("TMPDIR"))
        try:
            self._build(shortest)
            self.told = self._run("./pan", f"-m{DEPTH_MAX}", "-w24")
            self.violated = int(self._number(r"errors: (\d+)")) > 0
            self.trail = self._trail() if self.violated and shortest else ""
        finally:
            shutil.rmtree(self.place)
        self.states = int(float(self._number(r"([\d.e+]+) states, stored")))
        self.is_complete = not re.search(r"Search not completed|search depth too small|out of memory|reached -DMEMLIM",
                                         self.told)

    def _run(self, *command):
        done = subprocess.run(command, cwd=self.place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _build(self, shortest):
        """Breadth first finds the shortest way; depth first searches all in less memory."""
        self._run("spin", "-a", *self.flags, self.model)
        how = ("-O0", "-DBFS") if shortest else ("-O2",)
        self._run(os.environ.get("CC", "cc"), "-w", *how, "-DSAFETY", "-DNOCOMP", f"-DMEMLIM={MEMORY_MAX_MB}", "-o", "pan",
                  "pan.c")

    def _trail(self):
        """The names of the steps on the way to the violation, each with what it changed."""
        trail = next(name for name in os.listdir(self.place) if name.endswith(".trail"))
        with open(self.model, encoding="utf-8") as file:
            lines = file.read().splitlines()
        steps, values = {}, {}
        for line in self._run("spin", "-k", trail, "-t", "-p", "-g", *self.flags, self.model).splitlines():
            at, value = re.match(r"\s*(\d+):\s+proc.*?\.pml:(\d+) ", line), re.match(r"\s+(\w+(?:\[\d\])?) = (\d+)", line)
            if at:
                name = next((above[7:].split("(")[0] for above in lines[int(at[2]) - 1::-1] if above.startswith("inline ")), "")
                steps.setdefault(at[1], [name])
            elif value and steps and values.get(value[1], "0") != value[2]:
                values[value[1]] = value[2]
                steps[list(steps)[-1]].append(f"{value[1]}={value[2]}")
        return "\n".join(" ".join([number, *step]) for number, step in steps.items())

    def _number(self, pattern):
        found = re.search(pattern, self.told)
        assert found, f"Spin did not say {pattern}\n{self.told}"
        return found.group(1)


def holds_always(model, *flags):
    search = Search(model, flags)
    print(f"# {search.states} states")
    if search.violated:
        # Spin cannot follow a trail through the C of floor_symmetry.pml
        plain = [flag for flag in flags if flag != "-DSYMMETRY"]
        raise AssertionError(f"a violation, by this way:\n{Search(model, plain, shortest=True).trail}")
    assert search.is_complete, f"not every state was searched:\n{search.told}"


def is_violated_anyhow(model, *flags):
    """Depth first: where the shortest way is too far."""
    is_violated(model, *flags, shortest=False)


def is_violated(model, *flags, shortest=True):
    search = Search(model, flags, shortest)
    assert search.violated, f"no violation in {search.states} states"
    assert "assertion violated" in search.told, search.told
