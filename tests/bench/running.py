"""running.py - what `pawl run NAME -- true` takes, beside what it cannot do without: `flock FILE true` (a command is
started under a lock) and the two requests, acquire and release, each on a connection of its own."""

import http.client
import json
import os
import statistics
import subprocess
import time
import uuid

EACH = 100  # of everything in one round


def took_ms(what):
    begun = time.perf_counter()
    what()
    return 1000 * (time.perf_counter() - begun)


def two_trips(to):
    lease_id = uuid.uuid4().hex
    for method, body, headers in (("POST", json.dumps({"lease_id": lease_id}), {"Content-Type": "application/json"}),
                                  ("DELETE", None, {"Lease-Id": lease_id})):
        line = http.client.HTTPConnection(to)
        line.request(method, "/v1/leases/bench:trips", body, headers)
        answer = line.getresponse()
        answer.read()
        line.close()
        if answer.status not in (201, 204):
            raise OSError(f"{method} was answered {answer.status}")


def bench_run(plan, stack, pawl, out):
    """Neighbours in time are compared: the three take turns."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}
    environment = {**clean, "PAWL_LEASE_URL": f"http://{stack.lease.to}"}
    lock = os.path.join(stack.place, "lock")
    sides = {
        "pawl run NAME -- true": lambda: subprocess.run([pawl, "run", "bench:run", "--", "true"], env=environment, check=True),
        "flock FILE true": lambda: subprocess.run(["flock", lock, "true"], check=True),
        "acquire and release": lambda: two_trips(stack.lease.to),
        "pawl --version": lambda: subprocess.run([pawl, "--version"], env=environment, check=True, stdout=subprocess.DEVNULL)}
    kept = {side: [] for side in sides}
    for _ in range(plan.rounds):
        got = {side: [] for side in sides}
        for _ in range(EACH):
            for side, run in sides.items():
                got[side].append(took_ms(run))
        for side, times in got.items():
            kept[side].append(statistics.median(times))
    ratios = [run / (flock + trips) for run, flock, trips in zip(*(kept[side] for side in list(sides)[:3]))]
    out.figure("pawl run NAME -- true, ratio to flock FILE true and two round trips", statistics.median(ratios), "at most", 1.5)
    for side, times in kept.items():
        out.figure(f"ms of {side}", statistics.median(times))
