#!/usr/bin/python3
"""test_registrars.py - three lease services of which any two admit the store, with real processes."""

import json
import signal
import subprocess
import sys

sys.dont_write_bytecode = True

from world import BUILD, World, check, check_equal, check_in, main, run_daemon, test, wait_until  # noqa: E402
from world.process import die_with_parent  # noqa: E402
from world.wait import DEADLINE_S  # noqa: E402


class Board(World):
    def __init__(self):
        super().__init__()
        self.others = [self.daemon("pawl-lease") for _ in range(2)]
        wait_until(lambda: self.status()["majority"] == 2, "a majority counts")

    def init_store(self):
        done = run_daemon("pawl-lease", "--redis", self.redis.url, "--init-store", "--registrars", "3", "--allow-unsafe-redis")
        check_equal(done.returncode, 0, done)
        self.keys.store = self.redis("HGET", "pawl:{store}", "id").decode().split(":", 1)[1]

    def status(self, output="json"):
        done = subprocess.run([str(BUILD / "pawl"), "store", "status", "-o", output, "--redis", self.redis.url],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
                              preexec_fn=die_with_parent)
        return json.loads(done.stdout) if output == "json" else done.stdout

    def restart_redis(self):
        self.redis.kill()
        self.redis.start()

    def kill(self, daemon):
        daemon.kill()
        self.daemons.remove(daemon)

    def granted(self, name):
        return wait_until(lambda: self.lease("POST", f"/v1/leases/{name}", body={}).status == 201, f"{name} is granted")


@test
def how_many_there_are_to_be_is_said_when_the_store_is_made():
    for words in (["--init-store", "--registrars", "2"], ["--registrars", "3"], ["--init-store", "--registrars", "7"]):
        done = run_daemon("pawl-lease", "--redis", "unix:///nowhere", *words)
        check_equal(done.returncode in (64, 78), True, done)
        check_in("--registrars", done.stderr)


@test
def a_lease_service_may_be_dead_when_redis_restarts_and_two_may_not():
    world = Board()
    wait_until(lambda: world.lease("GET", "/readyz").json.get("registrars") == {"heard": 3, "of": 3}, "three are heard")
    check("registrars" not in world.gateway("GET", "/readyz").json, "a gateway has none")
    first = world.acquire("job")
    world.kill(world.others[0])
    world.restart_redis()
    world.granted("other")
    check_equal(world.lease("GET", "/readyz").json["registrars"], {"heard": 2, "of": 3})
    check_in("registrars 2 of 3 live, 2 must be heard", world.status("text"))
    world.others[1].send(signal.SIGSTOP)
    world.restart_redis()
    wait_until(lambda: "1 of 2 are" in world.lease("GET", "/readyz").json.get("detail", ""), "it says what it waits for")
    check_in("Waiting until 2 of 3 registrars are heard", world.status("text"))
    world.others[1].send(signal.SIGCONT)
    world.granted("third")
    again = world.lease("POST", "/v1/leases/job", body={})
    check_equal(again.status, 201)
    check(again.json["token"] > first["token"], (again.json, first))
    world.close()


main()
