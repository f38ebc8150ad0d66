#!/usr/bin/python3
"""The lines that the README and docs/leases.md tell a newcomer to type do what they say, and so does docs/access-tour.sh."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import tempfile

from world import BUILD, ROOT, World, check, check_equal, check_in, main, of_time, test, wait_until
from world.running import group_lives

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
    check_equal(WORLD.lease("POST", "/v1/leases/report/force-release").status, 200)  # who comes next asks for it, too


@test
def the_programs_write_under_a_lease():
    run("sh", "-e", text=block("sh", "nightly-report"))
    run("python3", "-c", block("python", "orders:43"))
    run("node", "-e", block("js", "orders:44"))
    for key in ("nightly-report", "orders:43", "orders:44"):
        check_equal(WORLD.gateway("GET", f"/v1/resources/{key}").status, 200, key)
        wait_until(lambda key=key: WORLD.look(key)["state"] == "free", "it is given back")


@test
def every_request_of_the_page_of_leases_is_taken():
    page = (ROOT / "docs/leases.md").read_text(encoding="utf-8")
    lines = "\n".join(block for block in re.findall(r"```sh\n(.*?)```", page, re.S))
    run("sh", "-e", text=re.sub(r"curl -N .*", "", lines).replace("http://127.0.0.1:8700", WORLD.lease_daemon.url).replace("curl ", "curl -sSf "))


@test
def the_route_is_one():
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"readme-routes-{os.getpid()}.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(block("json", "routes"))
    run(str(BUILD / "pawl-gateway"), "--keys", WORLD.keys_file, "--routes", path, "--check-config")
    os.remove(path)


@test
def every_command_that_a_page_shows_has_flags_that_are_there_and_what_it_cannot_do_without():
    shown = [line for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
             for line in re.findall(r"^(?: {4,}|runuser .*-- )?(?:build/)?(pawl-(?:gateway|lease) -.*)", page.read_text(encoding="utf-8").replace("\\\n", ""), re.M)]
    check(len(shown) > 8, shown)
    for line in shown:
        flags = re.findall(r" (--[a-z-]+)", line)
        help_of = run(str(BUILD / line.split()[0]), "--help")
        check("--keys" in flags or "--init-store" in flags, line)
        check_equal([flag for flag in flags if not re.search(rf"{flag}\b", help_of)], [], line)


# -- docs/access-tour.sh: it notices an answer that is not as it says, and leaves nothing behind

SCRIPT = (ROOT / "docs/access-tour.sh").read_text(encoding="utf-8")


def tour(*change):
    """(exit status, what it shows) of the script with this change."""
    if change:
        check_equal(SCRIPT.count(change[0]), 1, f"{change[0]} in the script")
    with tempfile.TemporaryDirectory(prefix="pawl-tour-") as folder:
        path = pathlib.Path(folder, "tour.sh")
        path.write_text(SCRIPT.replace(*change) if change else SCRIPT, encoding="utf-8")
        with subprocess.Popen(["sh", path], env={**os.environ, "PAWL_BUILD": str(BUILD), "TMPDIR": folder}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, start_new_session=True) as process:
            said = process.communicate(timeout=240)[0]
        check_equal(os.listdir(folder), ["tour.sh"], "its directory is gone")
        wait_until(lambda: not group_lives(process.pid), "nothing of it is left")
        return process.returncode, said


@test
@of_time
def every_answer_of_the_tour_is_as_it_says():
    status, said = tour()
    check_equal(status, 0, said)
    check("left out" not in said, said)
    check_in("every answer was as it should be", said)


@test
def an_answer_that_is_another_ends_it():
    for old, new, words in (
            ("try 77 'not-yours' 'PAWL_ACCESS_TOKEN_FILE=crm.token pawl release", "try 77 'not-mine' 'PAWL_ACCESS_TOKEN_FILE=crm.token pawl release",
             "exit status 77, and it should be 77, with: not-mine"),
            ('rules "$old, $(hash_of shop.new)"   # both of them count now\'\nhang_up\njudged',
             'rules "$(hash_of shop.new)"\'\nhang_up\njudged\ngoes_on', "WRONG: a request failed")):
        status, said = tour(old, new)
        check_equal(status, 1, said)
        check_in(words, said)


main(WORLD.close)
