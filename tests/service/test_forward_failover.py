#!/usr/bin/python3
"""Forwarded writes and a store that fails over: a primary, its replica, a sentinel, an upstream whose answers wait."""

import tempfile

from world import check_equal, check_in, main, test_in, wait_until
from world.asking import Later, refused
from world.cli import Cli
from world.record import stripe_key
from world.sentinel import FAILOVER_S, Watched, fresh
from world.staged import Hanging
from world.upstream import route, routes_file

NAME, PATH = "job:one", "/w/one"
SILENT_S = 0.5  # what waits for nobody arrives sooner


class Scene(Watched):
    def __init__(self, *flags, copies=1):
        self.upstream = Hanging()
        self.routes = ["--routes", routes_file(tempfile.mkdtemp(prefix="pawl-routes-"), [route(self.upstream, "/w/{id}", "job:{id}", timeout_ms=60_000)])]
        super().__init__(*flags, copies=copies, gateway_flags=self.routes)
        self.gateway.deadline_s = 60
        self.grant = self.acquire(NAME, ttl_ms=600_000)

    def send(self, body):
        return self.gateway("PUT", PATH, {"Fencing-Token": self.grant["fencing_token"]}, body, held=False)

    def succeed(self):
        """The next holder, with a greater token."""
        self.release(NAME, self.grant)
        self.grant = self.acquire(NAME, ttl_ms=600_000)

    def hangs(self, body):
        """A write that the upstream has, and does not answer."""
        write = Later(self.send, body)
        wait_until(lambda: body in self.upstream.hanging, f"{body} has come")
        return write

    def recorded(self):
        """The intents, as the primary has them."""
        return fresh(self.primary(), "ZRANGE", stripe_key(NAME) + ":i", 0, -1)

    def fail_over(self):
        self.redis.kill()
        wait_until(lambda: self.seen(self.lease_daemon), "another one is the primary", FAILOVER_S)
        self.wait_ready()

    def close(self):
        super().close()
        self.upstream.close()


@test_in(lambda: Scene("--store-timeout", "20s", copies=2))
def an_ordered_write_leaves_for_its_upstream_when_the_replica_has_its_intent(scene):
    for count, body in enumerate((b"by its own", b"by one that stays open", b"by the same"), 1):
        scene.replica.stop()
        write = Later(scene.send, body)
        wait_until(scene.recorded, "the primary has its intent")
        with scene.upstream.lock:
            scene.upstream.lock.wait_for(lambda count=count: len(scene.upstream.requests) >= count, SILENT_S)
        check_equal(len(scene.upstream.requests), count - 1, f"what the upstream has before the replica: {body}")
        scene.replica.go_on()
        answer = write.get()
        check_equal(answer.status, 200, repr(answer))
        check_in("guarantee=ordered", answer.header("Fencing-Status"))
    check_equal([body for _, body in scene.upstream.applied], [b"by its own", b"by one that stays open", b"by the same"])


@test_in(Scene)
def a_write_under_way_is_under_way_after_a_failover_and_what_comes_later_waits_for_it(scene):
    first = scene.hangs(b"hang")
    before = scene.recorded()
    scene.fail_over()
    check_equal(scene.recorded(), before, "incarnation and all")
    scene.succeed()
    later = Later(scene.send, b"later")
    wait_until(lambda: [one["state"] for one in scene.gateway("GET", f"/v1/intents/{NAME}").json["items"]] == ["sending", "queued"], "it waits")
    scene.upstream.hanging[b"hang"].set()
    check_equal((first.get().status, later.get().status), (200, 200))
    check_equal([body for _, body in scene.upstream.applied], [b"hang", b"later"])


@test_in(Scene)
def a_write_of_a_gateway_that_dies_with_the_primary_is_in_doubt_after_the_failover_until_it_is_resolved(scene):
    scene.hangs(b"hang")
    scene.kill(scene.gateway_daemon)
    scene.redis.kill()
    scene.gateway_daemon = scene.daemon("pawl-gateway", *scene.routes)
    scene.gateway = scene.client(scene.gateway_daemon)
    scene.gateway.deadline_s = 60
    scene.wait_ready()
    scene.succeed()
    refused(scene.send(b"newer"), 503, "in-doubt")
    check_equal([one["state"] for one in scene.gateway("GET", f"/v1/intents/{NAME}").json["items"]], ["dead"])
    Cli(scene)("resolve", NAME, "--all", "--yes")
    check_equal(scene.send(b"newer").status, 200)
    scene.upstream.hanging[b"hang"].set()


main()
