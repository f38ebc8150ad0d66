#!/usr/bin/python3
"""The lines that the README tells a newcomer to type do what it says."""

import concurrent.futures
import re
import subprocess

from world import ROOT, World, check_equal, check_in, main, test, wait_until

WORLD = World()


def curl_lines(there="/v1/leases/"):
    """The first block of the README with this in it, with the ports of this test."""
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.S):
        if there in block:
            block = block.replace("http://127.0.0.1:8700", WORLD.lease_daemon.url)
            return [line for line in block.replace("http://127.0.0.1:8701", WORLD.gateway_daemon.url).splitlines() if line]
    raise AssertionError(f"the README has no block with {there}")


def typed(lines):
    """What a shell says when the lines are pasted into it."""
    done = subprocess.run(["sh", "-e"], input="\necho\n".join(lines), capture_output=True, text=True, timeout=10,
                          check=False)
    check_equal(done.returncode, 0, done.stderr)
    return done.stdout


@test
def the_four_lines_of_the_readme_acquire_and_write():
    lines = curl_lines()
    check_equal(len(lines), 4)
    said = typed(lines)
    check_in("201 Created", said)
    check_in("verdict=accepted", said)
    check_in("\npacked\n", said)
    check_in('"state":"held"', said)


@test
def once_the_hold_is_over_and_another_has_it_the_same_line_is_refused():
    lines = [line.replace("600000", "100").replace("orders:42", "orders:43") for line in curl_lines()]
    token = typed([lines[0], 'echo "$TOKEN"']).strip()
    wait_until(lambda: WORLD.look("orders:43")["state"] == "free", "the hold runs out")
    WORLD.acquire("orders:43")
    said = typed([f"TOKEN='{token}'", lines[1]])
    check_in("412 Precondition Failed", said)
    check_in("reason=stale-token", said)


@test
def the_line_of_the_readme_that_waits_is_granted_when_the_lease_is_free():
    before = WORLD.acquire("report")
    lines = curl_lines("wait_ms")
    check_equal(len(lines), 1)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        said = pool.submit(typed, lines)
        wait_until(lambda: WORLD.look("report")["waiting"] == 1, "it waits")
        WORLD.release("report", before)
        check_in('"holder":"worker-7"', said.result())


main(close=WORLD.close)
