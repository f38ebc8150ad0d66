"""recovery.py - Redis is killed and comes back: how long until the first grant, and did every hold survive?"""

import http.client
import json
import os
import time

import bench_world as world

SAMPLE = 500
PATIENCE_S = 30
# What the scripts of a restart say that no other says: their one key is the store's record.
OF_THE_STORE = ["1", "pawl:{store}"]


class Client:
    """One connection to a service."""

    def __init__(self, to):
        self.connection = http.client.HTTPConnection(to, timeout=PATIENCE_S)

    def __call__(self, method, path, headers=None, body=None):
        """The status, and the answer as JSON."""
        text = json.dumps(body) if body is not None else None
        headers = {**(headers or {}), **({"Content-Type": "application/json"} if text else {})}
        self.connection.request(method, path, body=text, headers=headers)
        answer = self.connection.getresponse()
        told = answer.read()
        return answer.status, json.loads(told) if told else None


def sample_taken(client):
    """{name: (lease_id, token, epoch)} of some leases more. The store has only digests of lease_ids."""
    taken = {}
    for i in range(SAMPLE):
        status, told = client("POST", f"/v1/leases/sample:{i}", body={"ttl_ms": 3600000})
        if status != 201:
            raise world.Broken(f"a lease more: {status} {told}")
        taken[told["lease"]] = told["lease_id"], told["token"], told["epoch"]
    return taken


def wait_for_grant(client, name):
    """Asks again and again, as clients do; 503 is all that it may hear meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    status, told = client("POST", f"/v1/leases/{name}", body={"ttl_ms": 60000})
    while status != 201:
        if status != 503 or time.monotonic() > deadline:
            raise world.Broken(f"acquiring {name} after a restart: {status} {told}")
        time.sleep(0.001)
        status, told = client("POST", f"/v1/leases/{name}", body={"ttl_ms": 60000})
    return told


def held(client):
    """How many leases are held, by the list."""
    count, cursor = 0, ""
    while cursor is not None:
        status, page = client("GET", f"/v1/leases?state=held&limit=1000{cursor and '&cursor=' + cursor}")
        if status != 200:
            raise world.Broken(f"listing: {status} {page}")
        count += len(page["items"])
        cursor = page["next_cursor"]
    return count


def all_survived(client, count, before):
    """Every lease is still held, and the sample can still be renewed, under the token and the epoch of before; it is
    released then."""
    found = held(client)
    if found != count + len(before):
        raise world.Broken(f"{found} of {count + len(before)} holds survived")
    for name, (lease_id, token, epoch) in before.items():
        status, told = client("PUT", f"/v1/leases/{name}", headers={"Lease-Id": lease_id})
        if status != 200 or (told["token"], told["epoch"]) != (token, epoch):
            raise world.Broken(f"renewing {name}, token {token} of epoch {epoch}, after a restart: {status} {told}")
        client("DELETE", f"/v1/leases/{name}", headers={"Lease-Id": lease_id})


def of_the_store(slow):
    """(milliseconds of the admission that counted, of all) scripts on the store's record. Admission: its fifth argument is one of these."""
    mine = [(us, argv) for us, argv in slow if argv[2:4] == OF_THE_STORE]
    admissions = [us for us, argv in mine if argv[8:9] in (["wait"], ["now"])]
    if not admissions:
        raise world.Broken("no admission is in Redis' slow log")
    return max(admissions) / 1000, sum(us for us, _ in mine) / 1000


def once(stack, count, number):
    """Kills Redis and starts it again. s: how many leases are held."""
    client, name = Client(stack.lease.to), f"first:{number}"
    before = sample_taken(client)
    busy = world.busy_of_machine_s()
    stack.redis.kill()
    killed = time.monotonic()
    stack.redis.start()
    world.until("Redis serving again", stack.redis.serves, pause_s=0.001)
    serving = time.monotonic()
    grant = wait_for_grant(client, name)
    granted = time.monotonic()
    used = world.busy_of_machine_s() - busy
    admit_ms, scripts_ms = of_the_store(stack.redis.slow_scripts())
    client("DELETE", f"/v1/leases/{name}", headers={"Lease-Id": grant["lease_id"]})
    all_survived(client, count, before)
    for service in (stack.lease, stack.gateway):
        world.until("ready again", lambda service=service: world.status_of(f"http://{service.to}/readyz") == 200)
    return {"load_ms": 1000 * (serving - killed), "grant_ms": 1000 * (granted - serving),
            "outage_ms": 1000 * (granted - killed), "admit_ms": admit_ms, "scripts_ms": scripts_ms,
            "machine_percent": round(100 * used / (granted - killed) / os.cpu_count(), 1)}
