"""quorum.py - leases on three Redis that know nothing of each other; beside one Redis, and beside what people take for the same:
redlock of npm, and Redlock as it was published, in Python. The nodes have nothing on a disk, as in docs/quorum.md."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import bench_world as world  # finds the tests' own package
from world.npm import installed

HERE = pathlib.Path(__file__).resolve().parent
NODES = 3
IN_MEMORY = ("--appendonly", "no")
SHARES = (("p50", .5), ("p99", .99), ("p999", .999), ("max", 1))


@contextlib.contextmanager
def served(program, directory, keys):
    """(nodes, lease service, the ports of Redis that are nobody's nodes)"""
    with contextlib.ExitStack() as ends:
        both = []
        for number in range(2 * NODES):
            both.append(ends.enter_context(world.running(world.Redis(tempfile.mkdtemp(dir=directory), IN_MEMORY))))
            both[-1].name = f"redis-{number}"
        nodes, others = both[:NODES], both[NODES:]
        more = [word for node in nodes[1:] for word in ("--redis", node.url)]
        made = subprocess.run([program, "--redis", nodes[0].url, *more, "--init-store"], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise world.Broken(f"pawl-lease --init-store: {made.stderr}")
        yield nodes, ends.enter_context(world.running(world.Service(
            program, "pawl-lease-quorum", tempfile.mkdtemp(dir=directory), nodes[0], keys, more))), others


def peers():
    """Those that can be had."""
    try:
        installed(HERE / "redlock")
    except (OSError, subprocess.SubprocessError) as why:
        print(f"redlock of npm: not run: {why}", file=sys.stderr)
        return ("published",)
    return ("redlock", "published")


def pairs(plan, what, clients, nodes):
    """What the load generator says of the others."""
    argv = {"redlock": ["node", "redlock/pairs.mjs"], "published": [sys.executable, "redlock/pairs.py"]}[what]
    done = subprocess.run([*argv, *map(str, (clients, plan.measure_s, plan.warm_s)), *(str(node.port) for node in nodes)], cwd=HERE,
                          env={**os.environ, "NODE_MODULES": str(installed(HERE / "redlock"))}, capture_output=True, text=True,
                          preexec_fn=world.die_with_parent, check=False)
    if done.returncode != 0:
        raise world.Broken(done.stderr)
    told = json.loads(done.stdout)
    us = sorted(told["us"]) or [0]
    times = {share: us[min(len(us) - 1, int(len(us) * part))] for share, part in SHARES}
    return {"tasks_per_s": len(us) / plan.measure_s, "tasks_all": len(us), "requests_all": 2 * len(us), "task_us": times,
            "request_us": {share: one / 2 for share, one in times.items()}, "cpu_s": told["cpu_s"]}
