#!/usr/bin/python3
"""deploy/redis/pawl.conf, included by one line, is all that a Redis needs."""

import os
import re
import subprocess

from world import BUILD, ROOT, World, check_equal, main, test

CONF = ROOT / "deploy" / "redis" / "pawl.conf"
WORLD = World(redis_settings=["--include", str(CONF)])


@test
def the_services_start_on_it_and_the_doctor_has_nothing_against_it():
    environment = {**os.environ, "PAWL_LEASE_URL": WORLD.lease.url, "PAWL_GATEWAY_URL": WORLD.gateway.url}
    done = subprocess.run([f"{BUILD}/pawl", "doctor", "--redis", WORLD.redis.url, "--keys", WORLD.keys_file], env=environment,
                          capture_output=True, text=True, check=False)
    check_equal((done.returncode, done.stderr), (0, ""), done.stdout)


@test
def it_has_what_the_operators_table_wants():
    table = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").split("| in `redis.conf` | why |")[1].split("\n\n")[0]
    wanted = re.findall(r"^\| `([a-z-]+(?: \S+)?)` \|", table, re.M)
    lines = CONF.read_text(encoding="utf-8").splitlines()
    check_equal([row for row in wanted if not any(line == row or line.startswith(row + " ") for line in lines)], [])
    check_equal(len(wanted), 7)


main(WORLD.close)
