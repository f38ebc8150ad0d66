#!/usr/bin/python3
"""Whose tokens a gateway takes: a token names its store; a route by `mark` stays within what its store can have granted, and
after a loss lets nothing of before through. Real processes; the rules one by one are in tests/scripts/test_mark_scripts.py."""

import os
import pathlib
import re
import shutil
import signal
import tempfile

from world import World, check, check_equal, check_in, main, read_token, signed_token, test, test_in, wait_until
from world.asking import refused
from world.cli import Cli
from world.record import stripe_key
from world.upstream import Upstream, route, routes_file

OTHER = "another-store".ljust(24, "-")
ABSURD = 999999999999999
FOLDER = tempfile.mkdtemp(prefix="pawl-marks-")
UPSTREAM, ELSEWHERE = Upstream(), Upstream()
TABLE = routes_file(FOLDER, [
    route(UPSTREAM, "/own/{id}", "own:{id}", guarantee="admitted", check="mark"),
    route(UPSTREAM, "/other/{id}", "other:{id}", guarantee="admitted", check="mark", store=OTHER),
    route(UPSTREAM, "/live/{id}", "live:{id}", guarantee="admitted"),
    route(ELSEWHERE, "/elsewhere/{id}", "own:{id}", guarantee="admitted"),
])


def begin(*flags, **more):
    world = World(gateway_flags=["--routes", TABLE, *flags], **more)
    world.pawl = Cli(world)
    return world


def state_directories(world):
    return list(pathlib.Path(os.path.dirname(world.redis.path)).glob("state-pawl-*"))


def store(world, *words, **more):
    """pawl store on the machine of the lease service."""
    folder = os.path.join(os.path.dirname(world.redis.path), "state-pawl-lease-0")
    return world.pawl("store", *words, "--redis", world.redis.url, "--state-dir", folder, **more)


def send(world, target, token):
    return world.gateway("PUT", target, {"Fencing-Token": token}, b"x", held=False)


def of_other(world, token, epoch=100, lease="other:1"):
    return signed_token(world.keys, lease, token, epoch, store=OTHER)


def ready(world):
    answer = world.gateway("GET", "/readyz")
    check_equal(answer.status, 200, repr(answer))
    return answer.json


def doctor(world, status):
    return world.pawl("doctor", "--redis", world.redis.url, "--keys", world.keys_file, status=status).stdout


def write_goes_through(world, target, token):
    wait_until(lambda: send(world, target, token).status == 200, f"{target} goes on")


def granted(world, name):
    """A grant, as soon as there is one; never is it said that no tokens are left."""
    def one():
        answer = world.lease("POST", f"/v1/leases/{name}", body={})
        check(answer.code != "token-exhausted", repr(answer))
        return answer.status == 201 and answer.json
    return wait_until(one, f"{name} is granted")


def lose_content(world):
    """FLUSHALL and pawl store recover."""
    world.redis("FLUSHALL")
    store(world, "recover")


@test_in(begin)
def one_absurd_number_neither_passes_for_its_own_store_nor_exhausts_the_tokens(world):
    grant = world.acquire("own:1")
    refused(send(world, "/own/1", signed_token(world.keys, "own:1", ABSURD, grant["epoch"])), 412, "unissued-token")
    refused(send(world, "/own/1", signed_token(world.keys, "own:1", 1, grant["epoch"] + 1)), 412, "unissued-token")
    check_equal(send(world, "/own/1", grant["fencing_token"]).status, 200)
    check_equal(send(world, "/other/1", of_other(world, ABSURD, ABSURD)).status, 200)
    world.lease_daemon.kill()
    world.redis.restart()
    gateway = wait_until(lambda: [one for one in world.redis("KEYS", "pawl:{store}:m:*") if world.redis("HGET", one, "rpassed") is not None],
                         "the gateway has reported")[0]
    check_equal(world.redis("HGET", gateway, "rpassed"), b"0")  # what passes by mark says nothing of what was granted
    world.lease_daemon = world.daemon("pawl-lease")
    world.lease = world.client(world.lease_daemon)
    after = granted(world, "own:2")
    check(after["epoch"] > grant["epoch"] and after["token"] < ABSURD / 2, repr(after))


@test_in(lambda: begin(lease_flags=["--remember", "1s"]))
def what_went_by_live_at_one_gateway_fences_what_goes_by_mark_at_another_though_the_lease_is_forgotten(world):
    marking = world.another("pawl-gateway", "--check", "mark")
    late = world.acquire("live:1")
    for method, target in (("PUT", "/v1/resources/live:1"), ("GET", "/v1/check/live:1"), ("PUT", "/live/1"), ("PUT", "/v1/resources/live:1")):
        world.release("live:1", late)
        newer = world.acquire("live:1")
        answer = world.gateway(method, target, {"Fencing-Token": newer["fencing_token"]}, b"x" if method == "PUT" else None, held=False)
        check(answer.status in (200, 201, 204), repr(answer))
        world.release("live:1", newer)
        wait_until(lambda: world.lease("GET", "/v1/leases/live:1").json["token"] == 0, "nothing is known of the lease")
        refused(marking("PUT", "/v1/resources/live:1", {"Fencing-Token": late["fencing_token"]}, b"late", held=False), 412, "stale-token")
        late = world.acquire("live:1")
        check_equal(marking("PUT", "/v1/resources/live:1", {"Fencing-Token": late["fencing_token"]}, b"x", held=False).status, 204)


@test_in(begin)
def after_a_loss_no_token_of_before_passes_by_mark(world):
    old = world.acquire("own:1")
    world.release("own:1", old)
    new = world.acquire("own:1")
    check_equal(send(world, "/own/1", new["fencing_token"]).status, 200)
    check_equal(send(world, "/other/1", of_other(world, 40)).status, 200)
    refused(send(world, "/own/1", old["fencing_token"]), 412, "stale-token")
    kept = world.another("pawl-gateway", "--check", "mark", "--check-store", OTHER)
    lose_content(world)
    later = granted(world, "own:1")
    write_goes_through(world, "/own/1", later["fencing_token"])
    for before in (old, new):
        refused(send(world, "/own/1", before["fencing_token"]), 412, "stale-token")
    elsewhere = signed_token(world.keys, "own:7", 1, old["epoch"])  # a lease of which nothing at all is known
    refused(send(world, "/own/7", elsewhere), 412, "lease-expired")
    told = wait_until(lambda: ready(world)["checks"].get("mark") and ready(world), "it is told before anybody is refused")
    check_equal(told["checks"], {"store": "ok", "mark": "marks-lost"})
    remedy = f"pawl store marks --of {OTHER} --at EPOCH.TOKEN"
    for text in (told["detail"], doctor(world, 1), store(world, "status").stdout):
        check_in(remedy, text)
    wait_until(lambda: kept("GET", "/readyz").json["checks"].get("mark") == "marks-lost", "it is told where nothing is forwarded, too")
    refused(kept("PUT", "/v1/resources/other:1", {"Fencing-Token": of_other(world, 39)}, b"x"), 503, "marks-lost")
    refused(send(world, "/other/1", of_other(world, 39)), 503, "marks-lost")
    answer = send(world, "/other/1", of_other(world, 900, ABSURD))
    refused(answer, 503, "marks-lost")
    check_in("pawl store marks --of STORE --at EPOCH.TOKEN", answer.json["detail"])
    check_in("verdict=refused; reason=marks-lost; token=900", answer.header("Fencing-Status"))
    check_in("nothing below token 41 of epoch 100", store(world, "marks", "--of", OTHER, "--at", "100.41").stdout)
    wait_until(lambda: ready(world)["checks"] == {"store": "ok"}, "it is over")
    for text in (doctor(world, 0), store(world, "status").stdout):
        check("marks" not in text, text)
    refused(send(world, "/other/1", of_other(world, 40)), 412, "stale-token")
    check_equal(send(world, "/other/1", of_other(world, 41)).status, 200)
    check_in("was named before", store(world, "marks", "--of", OTHER, "--at", "100.40", status=1).stderr)
    check_in("is this very store", store(world, "marks", "--of", read_token(old["fencing_token"])["store"], "--at", "1.1",
                                         status=1).stderr)
    store(world, "marks", "--of", OTHER, "--at", "100.40", "--force")


@test_in(begin)
def what_is_mistyped_names_no_mark(world):
    for words in (["--of", OTHER], ["--at", "1.1"], ["--of", "short", "--at", "1.1"],
                  *(["--of", OTHER, "--at", at] for at in ("1", "1.", ".1", "0.1", "1.0", "1.1.1", "x.1", "1.1000000000000000"))):
        store(world, "marks", *words, status=64)
    check_in("has lost no marks", store(world, "marks", "--of", OTHER, "--at", "1.1", status=1).stderr)


@test_in(begin)
def a_token_of_another_store_or_of_none_is_taken_nowhere(world):
    grant = world.acquire("live:1")
    own, target = grant["fencing_token"], "/v1/leases/live:1"
    foreign = signed_token(world.keys, "live:1", grant["token"], grant["epoch"], read_token(own)["hold"], store=OTHER)
    elsewhere = signed_token(world.keys, "live:2", grant["token"], grant["epoch"], store=OTHER)
    text = re.sub(r';store="[^"]*"', "", read_token(own)["signed"])
    old_form = f"{text};sig=:{world.keys.mac('k1', text)}:"
    for token, status, code in ((foreign, 403, "wrong-store"), (elsewhere, 403, "wrong-store"), (old_form, 400, "malformed-token")):
        for method, path in (("PUT", "/v1/resources/live:1"), ("DELETE", "/v1/resources/live:1"), ("GET", "/v1/resources/live:1"),
                             ("PUT", "/live/1"), ("GET", "/live/1")):
            refused(world.gateway(method, path, {"Fencing-Token": token}, b"x" if method == "PUT" else None, held=not path.startswith("/live")),
                    status, code)
        refused(world.gateway("GET", "/v1/check/live:1", {"Fencing-Token": token}), 403, code)
        for method in ("PUT", "DELETE"):
            refused(world.lease(method, target, {"Lease-Id": grant["lease_id"], "Fencing-Token": token}), status, code)
    refused(send(world, "/other/1", signed_token(world.keys, "other:1", 1, 1)), 403, "wrong-store")  # of its own
    check_equal(world.lease("PUT", target, {"Lease-Id": grant["lease_id"], "Fencing-Token": own}).status, 200)
    check_in(f"store      {world.keys.store}\n", world.pawl("verify", own, "--keys", world.keys_file).stdout)


@test_in(lambda: begin(init_store=False))
def a_gateway_that_does_not_know_its_store_calls_no_token_anothers(world):
    for method, path in (("PUT", "/v1/resources/live:1"), ("PUT", "/live/1"), ("PUT", "/own/1")):
        lease = path.removeprefix("/v1/resources/").removeprefix("/").replace("/", ":")
        answer = world.gateway(method, path, {"Fencing-Token": signed_token(world.keys, lease, 1, 1, store=OTHER)}, b"x", held=False)
        check_equal((answer.status, answer.code.split("-")[0]), (503, "store"), repr(answer))
    answer = world.lease("PUT", "/v1/leases/live:1", {"Lease-Id": "A" * 22, "Fencing-Token": signed_token(world.keys, "live:1", 1, 1)})
    check_equal((answer.status, answer.code), (503, "store-not-ours"), repr(answer))


@test
def a_copy_becomes_another_store_whose_tokens_are_refused_by_the_first_and_the_other_way_round():
    world = begin()
    before = world.acquire("own:1")
    check_equal(send(world, "/own/1", before["fencing_token"]).status, 200)
    check_in("services are at work", store(world, "recover", "--new-id", "--yes", status=1).stderr)
    store(world, "recover", "--new-id", "--floor", "5", "--yes", status=64)
    for daemon in (world.lease_daemon, world.gateway_daemon):
        daemon.end(signal.SIGTERM)
    first = world.keys.store
    said = store(world, "recover", "--new-id", "--yes").stdout
    second = re.search(r"^store ([A-Za-z0-9_-]{24}) is recovered", said, re.M)[1]
    check(second != first, said)
    late = world.daemon("pawl-lease")  # with the state directory of before
    check_equal(world.client(late)("POST", "/v1/leases/own:1", body={}).code, "store-not-ours")
    late.end(signal.SIGTERM)
    for folder in state_directories(world):
        shutil.rmtree(folder)
    world.lease_daemon, world.gateway_daemon = world.daemon("pawl-lease"), world.daemon("pawl-gateway", "--routes", TABLE)
    world.lease, world.gateway = world.client(world.lease_daemon), world.client(world.gateway_daemon)
    after = granted(world, "own:1")
    check(after["epoch"] > before["epoch"] and after["token"] > before["token"], repr(after))
    check_equal(read_token(after["fencing_token"])["store"], second)
    write_goes_through(world, "/own/1", after["fencing_token"])
    refused(send(world, "/own/1", before["fencing_token"]), 403, "wrong-store")
    refused(send(world, "/other/1", of_other(world, 1)), 503, "marks-lost")
    check_equal(world.lease("PUT", "/v1/leases/own:1", {"Lease-Id": before["lease_id"]}).code, "lease-lost")
    world.close()
    original = begin()
    refused(send(original, "/own/1", signed_token(original.keys, "own:1", after["token"], after["epoch"], store=second)), 403,
            "wrong-store")
    original.close()


main(parts=2)
