#!/usr/bin/python3
"""The lines that the README tells a newcomer to type do what it says."""

import concurrent.futures
import os
import re
import subprocess

from world import BUILD, ROOT, World, check_equal, check_in, main, of_time, test, wait_until

WORLD = World()
README = (ROOT / "README.md").read_text(encoding="utf-8")
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PAWL_LEASE_URL": WORLD.lease_daemon.url, "PAWL_GATEWAY_URL": WORLD.gateway_daemon.url}


def block(language, word):
    """The first block of the README with this in it, with the ports of this test and times that do not take long."""
    [text, *_] = [one for one in re.findall(rf"```{language}\n(.*?)```", README, re.S) if word in one]
    for old, new in (("http://127.0.0.1:8700", WORLD.lease_daemon.url), ("http://127.0.0.1:8701", WORLD.gateway_daemon.url),
                     ("build/pawl", f"{BUILD}/pawl"), ('"ttl_ms":3000', '"ttl_ms":300')):
        text = text.replace(old, new)
    return text


def run(*words, text=None):
    done = subprocess.run(words, input=text, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    check_equal(done.returncode, 0, done.stderr)
    return done.stdout


@test
@of_time
def the_four_lines_end_in_a_refusal_as_often_as_they_are_typed():
    lines = [line for line in block("sh", "take()").splitlines() if line]
    check_equal(len(lines), 4)
    for _ in range(2):
        said = run("sh", "-e", text="\n".join(lines)).replace("\r", "")
        late = said.index("412 Precondition Failed")
        check_in("verdict=accepted", said[:late])
        check_in("reason=stale-token", said[late:])
    check_equal(WORLD.gateway("GET", "/v1/resources/orders:42").body, b"by B")


@test
def the_line_that_waits_is_granted_when_the_lease_is_free():
    before = WORLD.acquire("report")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        said = pool.submit(run, "sh", "-e", text=block("sh", '"holder":"worker-7"'))
        wait_until(lambda: WORLD.look("report")["waiting"] == 1, "it waits")
        WORLD.release("report", before)
        check_in('"holder":"worker-7"', said.result())


@test
def the_programs_write_under_a_lease():
    run("sh", "-e", text=block("sh", "nightly-report"))
    run("python3", "-c", block("python", "orders:43"))
    run("node", "-e", block("js", "orders:44"))
    for key in ("nightly-report", "orders:43", "orders:44"):
        check_equal(WORLD.gateway("GET", f"/v1/resources/{key}").status, 200, key)
        wait_until(lambda key=key: WORLD.look(key)["state"] == "free", "it is given back")


@test
def the_route_is_one():
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"readme-routes-{os.getpid()}.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(block("json", "routes"))
    run(str(BUILD / "pawl-gateway"), "--keys", WORLD.keys_file, "--routes", path, "--check-config")
    os.remove(path)


main(WORLD.close)
