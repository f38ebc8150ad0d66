#!/usr/bin/python3
"""A lease service whose state directory is taken away under it grants nothing any more, and hands nothing on."""

import os
import shutil
import signal
import tempfile
import threading

from world import Daemon, World, check_equal, main, of_time, test, wait_until

WORLD = World()
FOLDER = tempfile.mkdtemp(prefix="pawl-floor-")


@test
@of_time
def whoever_has_lost_its_floor_neither_grants_nor_hands_on():
    state = os.path.join(tempfile.mkdtemp(dir=FOLDER), "state")
    lost = Daemon("pawl-lease", *WORLD.flags, environment={"STATE_DIRECTORY": state})
    WORLD.daemons.append(lost)
    client = WORLD.client(lost)
    WORLD.wait_ready(client)
    name = WORLD.name()
    grant = WORLD.acquire(name)
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(WORLD.client(lost)(
        "POST", f"/v1/leases/{name}", body={"holder": "waiter", "wait_ms": 20000})), daemon=True)
    waiter.start()
    wait_until(lambda: WORLD.look(name)["waiting"] == 1, "somebody waits")
    shutil.rmtree(state)
    wait_until(lambda: client("GET", "/readyz").status == 503, "it has noticed")
    WORLD.lease_daemon.send(signal.SIGSTOP)  # it would hand on, as it should
    try:
        refused = client("POST", f"/v1/leases/{WORLD.name()}")
        check_equal((refused.status, refused.code), (503, "floor-reached"))
        check_equal(client("DELETE", f"/v1/leases/{name}", {"Lease-Id": grant["lease_id"]}).status, 204)
        history = client("GET", f"/v1/leases/{name}/history").json["items"]
        check_equal([item["type"] for item in history], ["granted", "released"])
        look = client("GET", f"/v1/leases/{name}").json
        check_equal((look["state"], look["waiting"]), ("free", 1))
    finally:
        WORLD.lease_daemon.send(signal.SIGCONT)
    waiter.join(15)
    check_equal((answers[0].status, answers[0].json["holder"]), (201, "waiter"))


main(WORLD.close)
