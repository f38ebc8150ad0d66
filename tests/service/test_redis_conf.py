#!/usr/bin/python3
"""deploy/redis/pawl.conf, included by one line, is all that a Redis needs."""

import re

from world import ROOT, World, check_equal, main, run_daemon, test

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


main(WORLD.close)
