#!/usr/bin/python3
"""deploy/redis/pawl.conf, included by one line, is all that a Redis needs."""

import re
import subprocess
import tempfile

from world import ROOT, PrivateRedis, World, check_equal, main, run_daemon, test, wait_until

CONF = ROOT / "deploy" / "redis" / "pawl.conf"
WORLD = World(redis_settings=["--include", str(CONF)])


@test
def the_services_start_on_it_and_the_doctor_has_nothing_against_it():
    done = run_daemon("pawl", "doctor", *WORLD.flags[:4], "--lease-url", WORLD.lease.url, "--gateway-url", WORLD.gateway.url)
    check_equal((done.returncode, done.stderr), (0, ""), done.stdout)


@test
def it_has_what_the_operators_table_wants():
    table = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").split("| in `redis.conf` | why |")[1].split("\n\n")[0]
    wanted = re.findall(r"^\| `([a-z-]+(?: \S+)?)` \|", table, re.M)
    lines = CONF.read_text(encoding="utf-8").splitlines()
    check_equal([row for row in wanted if not any(line == row or line.startswith(row + " ") for line in lines)], [])
    check_equal(len(wanted), 7)


@test
def a_redis_that_has_data_keeps_it_when_it_is_changed_over_as_told():
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").split("**A Redis that has data already**")[1].split("\n\n")[0]
    [change], [look], wanted = (re.findall(rf"`{form}`", text) for form in ("redis-cli (CONFIG SET [^`]*)", "redis-cli (INFO [^`]*)", r"(\w+:\d)"))
    with tempfile.TemporaryDirectory() as folder:
        redis = PrivateRedis(folder, ["--save", "3600 1"])
        redis("SET", "a", "1")

        def typed(words):
            return subprocess.run(["redis-cli", "-s", redis.path, *words.split()], capture_output=True, text=True, timeout=30, check=True).stdout

        check_equal(typed(change).strip(), "OK")
        check_equal(len(wanted), 2)
        wait_until(lambda: all(one in typed(look) for one in wanted), str(wanted))
        redis("SET", "b", "2")
        redis.kill()
        redis.start(["--include", str(CONF)])
        check_equal((redis("GET", "a"), redis("GET", "b")), (b"1", b"2"))
        redis.close()


main(WORLD.close)
