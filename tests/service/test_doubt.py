#!/usr/bin/python3
"""A store that has lost something: who is in doubt after it, what is closed once more, and who is told of it."""

import contextlib
import json
import pathlib
import re
import time

from world import check, check_equal, check_in, main, staged, test, test_in, wait_until
from world.process import with_proc
from world.record import stripe_key
from world.relay import FROM_REDIS
from world.upstream import route, routes_file

DOUBT = "pawl:{store}:doubt"
FORMER, ELSEWHERE = "former-of-this-b", "former-elsewhere"  # incarnations: of this boot, and of another
OTHER_BOOT = "00000000-0000-4000-8000-000000000000"
LOST = "whichever_it_was"
PATIENT_S = 60  # of a client whose write hangs until the test has done the rest


def routes(upstream):
    return [route(upstream, "/w/{id}", "job:{id}", timeout_ms=60_000),
            route(upstream, "/a/{id}", "note:{id}", guarantee="admitted", timeout_ms=60_000)]


class Stage(staged.Stage):
    def __init__(self, former=(), threads=1, damaged=False, starts=True):
        super().__init__(routes, threads, PATIENT_S)
        boot, place = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"), self.state_dir.stat()
        lines = [f"{FORMER} {boot[:18]}-{place.st_ino ^ place.st_dev << 32:017x}\n" if one == FORMER else f"{one} {OTHER_BOOT}\n" for one in former]
        if lines or damaged:
            self.incarnations = "".join(lines) + ("damaged" if damaged else "")
            (self.state_dir / "incarnations").write_text(self.incarnations, encoding="ascii")
        if starts:
            self.start()

    def start(self, *flags, before=()):
        super().start("--store-timeout", "60s", *flags, before=before)

    def keep(self):
        """What Redis' file has now."""
        kept = self.redis.keep()
        self.relay.cut()
        self.ready()
        return kept

    def set_back(self, kept):
        self.redis.set_back(kept)
        self.relay.cut()
        self.ready()
        check_equal(self.redis("HGET", "pawl:{store}", "how"), b"incomplete")

    def lives(self):
        """This gateway's id and its incarnation."""
        lines = (self.state_dir / "incarnations").read_text(encoding="ascii").splitlines()
        text = (self.state_dir / "high-water").read_text(encoding="ascii")
        member = re.search(r"^id (\S+)$", text, re.M)
        return member.group(1), lines[-1].split(" ")[0]

    def doubts(self):
        flat = [one.decode() for one in self.redis("HGETALL", DOUBT)]
        return {who: state.split(" ")[0] for who, state in zip(flat[::2], flat[1::2])}

    def own_doubts(self):
        """Of this gateway's incarnations: which, and how."""
        gateway, _ = self.lives()
        return {who.split(" ")[1]: state for who, state in self.doubts().items() if who.startswith(gateway + " ")}


def is_flushed(stage, *words):
    store = stage.redis("HGET", "pawl:{store}", "id").decode().split(":", 1)[1]
    stage.redis("FLUSHALL")
    stage.pawl("store", "recover", "--store-id", store, *words)
    stage.ready()


def lost_before_the_takeover(stage):
    """The store is set back while the gateway's first takeover is under way."""
    stage.ready()
    kept = stage.keep()
    stage.daemon.kill()
    if hasattr(stage, "incarnations"):
        (stage.state_dir / "incarnations").write_text(stage.incarnations, encoding="ascii")
    held = stage.relay.hold(FROM_REDIS, b"$5\r\ntaken")
    stage.start()
    held.wait_met()
    stage.set_back(kept)
    own = stage.lives()[1]
    wait_until(lambda: own not in stage.own_doubts(), "this one has said what it has open")


@test_in(lambda: Stage(former=(ELSEWHERE, FORMER)))
def former_incarnations_are_in_doubt_when_the_store_is_lost_before_they_were_seen_to(stage):
    lost_before_the_takeover(stage)
    gateway, _ = stage.lives()
    wait_until(lambda: stage.doubts().keys() == {f"{gateway} {who}" for who in stage.own_doubts()},
               "the other gateway has said what it has open")
    found = stage.own_doubts()
    check_equal((found.get(FORMER), found.get(ELSEWHERE)), ("dead", "open"))
    grant = stage.world.acquire("job:one", ttl_ms=600_000)
    told = stage.near("PUT", "/w/one", [("Fencing-Token", grant["fencing_token"])], b"new", held=False)
    check_equal((told.status, told.json["code"]), (503, "in-doubt"))
    check_in(f"pawl resolve --gateway {gateway} --incarnation ", told.json["detail"])
    for who in stage.own_doubts():
        stage.pawl("resolve", "--gateway", gateway, "--incarnation", who, "--dead", "--settled", "--yes")
    wait_until(lambda: stage.doubts() == {}, "nobody is in doubt")
    stage.ended(stage.later("/w/one", grant, b"new"), 200)


@test_in(lambda: Stage(former=(ELSEWHERE, FORMER), starts=False))
def a_restart_that_lost_nothing_before_they_were_seen_to_puts_nobody_in_doubt(stage):
    held = stage.relay.hold(FROM_REDIS, b"$5\r\ntaken")
    stage.start()
    held.wait_met()
    before = stage.redis("HGET", "pawl:{store}", "epoch")
    stage.redis.kill()
    stage.relay.cut()
    left = stage.relay.hold(FROM_REDIS, b"$4\r\nleft")
    stage.redis.start()
    left.wait_met()  # now it has said all that it will say of them
    check_equal(stage.doubts(), {})
    left.go()
    stage.ready()
    check(stage.redis("HGET", "pawl:{store}", "epoch") != before, "another life has begun")
    check_equal(stage.redis("HGET", "pawl:{store}", "how"), b"complete")
    grant = stage.world.acquire("job:kept", ttl_ms=600_000)
    stage.ended(stage.later("/w/kept", grant, b"new"), 200)


@test_in(lambda: Stage(damaged=True))
def who_stood_in_a_damaged_file_is_in_doubt_whichever_it_was(stage):
    lost_before_the_takeover(stage)
    check_equal(stage.own_doubts().get(LOST), "open")
    check("-" not in stage.own_doubts(), "there are no others")
    lines = (stage.state_dir / "incarnations").read_text(encoding="ascii").splitlines()
    check_equal([one.split(" ")[0] for one in lines[:-1]], [LOST], "the next one knows of it, too")


@test_in(lambda: Stage(former=(FORMER,), starts=False))
def who_could_not_be_written_down_is_so_when_there_is_room(stage):
    place = stage.state_dir / "incarnations.new"
    place.mkdir()  # no file can be made of it, as on a full disk
    stage.start()
    stage.daemon.line(lambda line: "incarnations-not-written" in line, "that it could not be written")
    stage.ready()
    check_equal(stage.lives()[1], FORMER)
    place.rmdir()
    wait_until(lambda: stage.lives()[1] != FORMER, "it is written down")
    lines = (stage.state_dir / "incarnations").read_text(encoding="ascii").splitlines()
    check_equal([one.split(" ")[0] == FORMER for one in lines], [True, False])


@test
def who_ended_in_order_with_nothing_open_is_not_in_doubt_and_all_others_are():
    for ends, body, status, proc, wanted in (("kill", b"new", 200, "all", "dead"), ("end", b"reset:one", 504, "all", "dead"),
                                             ("end", b"new", 200, "all", None), ("kill", b"new", 200, "pid", "open"),
                                             ("end", b"new", 200, "pid", None)):
        stage = Stage(starts=False)
        stage.ready()
        kept = stage.keep()  # which knows nothing of it
        stage.start(before=with_proc(proc))  # of "pid" the kernel does not tell its boot_id
        stage.ready()
        grant = stage.world.acquire("job:one", ttl_ms=600_000)
        stage.ended(stage.later("/w/one", grant, body), status)
        wait_until(lambda stage=stage, status=status: stage.states("job:one") == (["u"] if status == 504 else []), "it has ended")
        _, life = stage.lives()
        getattr(stage.daemon, ends)()
        held = stage.relay.hold(FROM_REDIS, b"$5\r\ntaken")
        stage.start(before=with_proc(proc))
        held.wait_met()
        stage.set_back(kept)
        own = stage.lives()[1]
        wait_until(lambda own=own, stage=stage: own not in stage.own_doubts(), "this one has said what it has open")
        check_equal(stage.own_doubts().get(life), wanted, f"{ends} {body} {proc}")
        stage.close()


@test_in(Stage)
def who_ended_in_order_after_the_last_lease_service_is_not_in_doubt_when_its_successor_comes(stage):
    """The lease service's state directory still names it."""
    stage.ready()
    life = stage.lives()[1]
    stage.world.daemons.remove(stage.world.lease_daemon)
    check_equal((stage.world.lease_daemon.end(), stage.daemon.end()), (0, 0))
    stage.redis.kill()
    stage.redis.start()
    stage.world.lease = stage.world.client(stage.world.daemon("pawl-lease"))
    stage.daemon = None
    stage.ready()
    check_equal(stage.own_doubts(), {life: "open"})
    stage.start()
    wait_until(lambda: stage.doubts() == {}, "nobody is in doubt")


@test_in(lambda: Stage(former=(ELSEWHERE, FORMER), starts=False))
def who_ends_before_directories_have_those_it_brought_into_doubt_has_not_ended_in_order(stage):
    stage.ready()
    kept = stage.keep()
    held = stage.relay.hold(FROM_REDIS, b"$5\r\ntaken")
    stage.start()
    held.wait_met()
    stage.redis.set_back(kept)
    stage.relay.cut()
    held = stage.relay.hold(FROM_REDIS, b"$5\r\ntaken")
    held.wait_met()
    place = pathlib.Path(stage.redis.path).parent / "state-pawl-lease-0" / "high-water.new"
    place.mkdir()  # the lease service writes nothing
    held.go()
    wait_until(lambda: stage.own_doubts().get(FORMER) == "dead", "it has named those before it")
    gateway, life = stage.lives()
    check_equal(stage.daemon.end(), 0)
    place.rmdir()
    stage.start()
    stage.ready()
    wait_until(lambda: stage.doubts().get(f"{gateway} {life}") == "dead", "its successor knows that it is dead, and no more")


@test_in(lambda: Stage(former=(ELSEWHERE, FORMER), starts=False))
def former_incarnations_that_were_seen_to_do_not_come_into_doubt(stage):
    left = stage.relay.hold(FROM_REDIS, b"$4\r\nleft")
    stage.start()
    left.wait_met()
    left.go()
    stage.ready()
    stage.set_back(stage.keep())
    wait_until(lambda: stage.doubts() == {}, "all have said what they have open")


@test_in(Stage)
def a_text_that_a_hand_made_too_long_stops_nobody_and_is_in_doubt_after_a_loss(stage):
    stage.ready()
    gateway, life = stage.lives()
    key = stripe_key("job:one") + ":i"
    for number in range(1, 103):  # the 100th is the last of a page
        kind = "o" * 900 if number == 100 else "o"
        stage.redis("ZADD", key, "0", f"job:one {1:015} {1:015} {number:016} s {kind} {gateway} {life} 0.{number} h 1")
    stage.daemon.kill()
    stage.start()
    wait_until(lambda: stage.states("job:one") == ["d"] * 102, "all of the dead one's are taken over")
    stage.daemon.line(lambda line: "intents-of-the-dead" in line, "and that is recorded")
    stage.set_back(stage.keep())
    wait_until(lambda: stage.own_doubts() == {life: "dead"}, "of one of them nobody could record it again")
    stage.daemon.line(lambda line: "intent-damaged" in line, "which it is")
    check_equal(stage.daemon.log().count("intent-damaged"), 1)


@test
def what_had_ended_is_closed_once_more_in_a_store_that_was_set_back_and_nothing_else():
    for threads in (1, 2):
        stage = Stage(threads=threads)
        stage.ready()
        names = [f"{what}{n}" for what in ("done", "open", "lost", "theirs") for n in range(6)]
        grants = {name: stage.world.acquire(f"job:{name}", ttl_ms=600_000) for name in names}
        writes = {}
        for name in names:
            body = (b"reset:" if name.startswith("lost") else b"hang:") + name.encode()
            client = stage.world.gateway if name.startswith("theirs") else stage.near
            writes[name] = stage.later("/w/" + name, grants[name], body, client)
            if not name.startswith("lost"):
                stage.hangs(body)
        for name in names:
            if name.startswith("lost"):
                stage.ended(writes[name], 504)
                wait_until(lambda name=name: stage.states("job:" + name) == ["u"], "its end is unknown")
        kept = stage.keep()
        for name in names:
            if name.startswith("done"):
                stage.go(b"hang:" + name.encode())
                stage.ended(writes[name], 200)
                wait_until(lambda name=name: stage.states("job:" + name) == [], "it is closed")
        stage.set_back(kept)
        wait_until(lambda: stage.doubts() == {}, "all have said what they have open")
        for name in names:
            wanted = {"d": [], "o": ["s"], "l": ["u"], "t": ["s"]}[name[0]]
            wait_until(lambda name=name, wanted=wanted: stage.states("job:" + name) == wanted, f"{name}: {wanted}")
        newer = stage.world.acquire("job:done0", ttl_ms=600_000)
        stage.ended(stage.later("/w/done0", newer, b"new", stage.world.gateway), 200)
        stage.daemon.line(lambda line: "intents-closed-again" in line, "that it has closed them")
        for told in stage.upstream.hanging.values():
            told.set()
        for name in names:
            if name.startswith(("open", "theirs")):
                stage.ended(writes[name], 200)
        stage.close()


@test
def what_an_operator_has_resolved_does_not_come_back_in_a_store_that_is_lost():
    stage = Stage()
    stage.ready()
    kept = stage.keep()
    for name in ("resolved", "unknown"):
        stage.ended(stage.later("/w/" + name, stage.world.acquire("job:" + name), b"reset:" + name.encode()), 504)
        wait_until(lambda name=name: stage.states("job:" + name) == ["u"], "its end is unknown")
    stage.pawl("resolve", "job:resolved", "--all", "--yes")
    stage.redis.restart()
    stage.relay.cut()
    wait_until(lambda: stage.near.metric("pawl_gateway_intents") == 1, "the gateway has seen it")
    stage.set_back(kept)
    wait_until(lambda: stage.doubts() == {}, "all have said what they have open")
    check_equal((stage.states("job:resolved"), stage.states("job:unknown")), ([], ["u"]))
    stage.close()


@test
def what_becomes_unknown_while_its_stripe_is_being_listed_is_not_forgotten():
    stage = Stage(threads=2)
    stage.ready()
    names = [name for name in map(str, range(6000)) if stripe_key("job:" + name) == "pawl:{00}"]
    grants = {name: stage.world.acquire("job:" + name, ttl_ms=600_000) for name in ("other", *names)}
    stage.ended(stage.later("/w/other", grants["other"], b"reset:other"), 504)
    wait_until(lambda: stage.states("job:other") == ["u"], "its end is unknown")
    stage.redis.restart()
    stage.relay.cut()
    listed = stage.relay.hold(FROM_REDIS, b"$6\r\nlisted")
    listed.wait_met()  # the first stripe, by the first worker's link
    for name in names:  # until one goes by the other worker's
        told = stage.later("/w/" + name, grants[name], b"reset:" + name.encode())
        with contextlib.suppress(TimeoutError):
            wait_until(lambda name=name: stage.states("job:" + name) == ["u"], "its end is unknown", 0.3)
            stage.ended(told, 504)
            break
    second = stage.relay.hold(FROM_REDIS, b"$6\r\nlisted")
    listed.go()
    second.wait_met()
    second.go()
    check_equal(stage.states("job:" + name), ["u"])
    wait_until(lambda: stage.near.metric("pawl_gateway_intents") == 1 + len(stage.states(*("job:" + one for one in names))), "all are in the list")
    stage.close()


def a_look_overtakes_an_admission():
    """False: the machine was too slow for it. A reply that is older than 2 s (GIVEN_UP_SEND_MS) lets nothing out."""
    stage = Stage(threads=2, starts=False)
    stage.redis("HSET", DOUBT, f"{LOST} {LOST}", "open 1")
    listed = stage.relay.hold(FROM_REDIS, b"$6\r\nlisted")
    stage.start()
    listed.wait_met()  # the first worker has begun to look; all stripes but one are to come
    gateway, own = stage.lives()
    stage.redis("HSET", DOUBT, f"{gateway} {own}", "open 1")
    sent = {}
    grants = {f"in{number}": stage.world.acquire(f"note:in{number}", ttl_ms=600_000) for number in range(20)}
    begun = time.monotonic()
    for name, grant in grants.items():  # until one is admitted on the other worker's link
        reply = stage.relay.hold(FROM_REDIS, f"note:{name} ".encode())
        sent[name] = stage.later("/a/" + name, grant, b"hang:" + name.encode())
        wait_until(lambda name=name: stage.states("note:" + name) == ["s"], "it is recorded")
        with contextlib.suppress(TimeoutError):
            reply.wait_met(0.2)
            break
        reply.go()  # it is behind the other one
    else:
        check(False, "no write came by the other link")
    listed.go()
    wait_until(lambda: f"{gateway} {own}" not in stage.doubts(), "all stripes were looked at")
    state = stage.states("note:" + name)
    reply.go()
    in_time = time.monotonic() - begun < 1.5
    if in_time:
        check_equal(state, ["s"], "nobody knows yet that it is to be sent")
        for one, told in sent.items():
            stage.hangs(b"hang:" + one.encode())
            check_equal(stage.states("note:" + one), ["s"])
            stage.go(b"hang:" + one.encode())
            stage.ended(told, 200)
            wait_until(lambda one=one: stage.states("note:" + one) == [], "it is closed")
        check("intents-closed-again" not in stage.daemon.log(), "nothing had ended")
    stage.close()
    return in_time


@test
def an_admission_whose_reply_is_under_way_is_not_closed():
    check(any(a_look_overtakes_an_admission() for _ in range(12)), "it took more than 1.5 s twelve times")


@test_in(Stage)
def who_is_in_doubt_is_told_by_readyz_the_metrics_the_log_the_answers_and_pawl_store_status(stage):
    stage.ready()
    check_equal(stage.near("GET", "/readyz", held=False).json["checks"], {"store": "ok"})
    check_equal(stage.near.metric("pawl_gateway_in_doubt"), 0)
    stage.redis("HSET", DOUBT, "gateway-has-died incarnation-two-", "open 1", "gateway-has-died incarnation-one-", "dead 1 0 1")
    stage.daemon.kill()
    stage.start()
    stage.ready()
    told = lambda: stage.near("GET", "/readyz", held=False)
    wait_until(lambda: "ordered" in told().json["checks"], "readyz says it")
    check_equal((told().status, told().json["checks"]), (200, {"store": "ok", "ordered": "in-doubt"}))
    command = "pawl resolve --gateway gateway-has-died --incarnation incarnation-"
    for part in (command, "2: pawl store status", "--settled"):
        check_in(part, told().json["detail"])
    wait_until(lambda: stage.near.metric("pawl_gateway_in_doubt") == 2, "the metrics say it")
    stage.daemon.line(lambda line: "in-doubt" in line and "gateway-has-died incarnation-one- dead" in line
                      and "gateway-has-died incarnation-two- open" in line, "who is in doubt")
    grant = stage.world.acquire("job:told", ttl_ms=600_000)
    for method in ("PUT", "GET"):
        answer = stage.near(method, "/w/told", [("Fencing-Token", grant["fencing_token"])], b"x" if method == "PUT" else None,
                               held=False)
        check_equal((answer.status, answer.json["code"], answer.json["retryable"]), (503, "in-doubt", True))
        for part in (command, "--settled", "Nothing was sent on", "incarnation-"):
            check_in(part, answer.json["detail"])
        check("older token" not in answer.json["detail"], "that is not what it waits for")
    shown = stage.pawl("store", "status")
    for part in ("incarnation-one-", "incarnation-two-", "in-doubt", command):
        check_in(part, shown)
    rows = json.loads(stage.pawl("store", "status", "-o", "json"))["in_doubt"]
    check_equal([(one["gateway"], one["incarnation"], one["state"], one["dead_ms"] is None) for one in rows],
                [("gateway-has-died", "incarnation-one-", "dead", False), ("gateway-has-died", "incarnation-two-", "open", True)])
    stage.redis("DEL", DOUBT)
    wait_until(lambda: told().json["checks"] == {"store": "ok"} and stage.near.metric("pawl_gateway_in_doubt") == 0, "it is over")
    log = stage.daemon.log()
    check_equal([log.count(f'"event":"{event}"') for event in ("in-doubt", "in-doubt-no-more")], [1, 1], log)
    stage.ended(stage.later("/w/told", grant, b"new"), 200)


# -- a table that was read again, and not adopted, when the store is lost

@test
def what_was_sent_by_a_table_of_before_lets_no_other_one_be_served_in_a_store_that_was_lost():
    """By the new table another lease guards what the write that is open goes to."""
    for is_killed, words in ((False, ()), (True, ()), (False, ("--floor", "50000000", "--yes"))):
        stage = Stage()
        stage.ready()
        stage.later("/w/one", stage.world.acquire("job:one", ttl_ms=600_000), b"hang:old")
        stage.hangs(b"hang:old")
        routes_file(stage.folder, [route(stage.upstream, "/w/{id}", "other:{id}", timeout_ms=60_000)])
        if is_killed:
            stage.daemon.kill()
            stage.start()
            wait_until(lambda stage=stage: stage.states("job:one") == ["d"], "it is that of a dead one")
        for daemon in [stage.world.gateway_daemon] + [stage.daemon] * (not is_killed):
            begin = len(daemon.lines)
            daemon.send(1)
            daemon.line(lambda line: "routes-reloaded" in line, "that the routes are new", begin)
        stage.ready()
        is_flushed(stage, *words)
        lost = {f"{LOST} {LOST}"} if words else set()
        wait_until(lambda stage=stage, lost=lost: {who for who, state in stage.doubts().items() if state != "dead"} == lost,
                   "those that live have said what they have open")
        wait_until(lambda stage=stage: stage.redis("HGET", "pawl:{store}", "routes"), "and by which table")
        grant = stage.world.acquire("other:one", ttl_ms=600_000)
        told = stage.send("/w/one", grant, b"new")
        check_equal(told.status, 503, f"killed: {is_killed} {words}")
        check_equal(told.json["code"], "routes-differ")
        check_equal(stage.near("POST", "/v1/routes/adopt", held=False).status, 409)
        stage.go(b"hang:old")
        wait_until(lambda stage=stage: [body for _, body in stage.upstream.applied] == [b"hang:old"], "the old one has landed")
        for gateway, incarnation in (who.split(" ") for who in stage.doubts()):
            stage.pawl("resolve", "--gateway", gateway, "--incarnation", incarnation, "--dead", "--settled", "--yes")
        if is_killed:
            stage.pawl("resolve", "job:one", "--all", "--yes")
        wait_until(lambda stage=stage: stage.near("POST", "/v1/routes/adopt", held=False).status == 200, "the new table is adopted")
        stage.ended(stage.later("/w/one", grant, b"new"), 200)
        stage.close()


# -- a store that has lost something, and then once more

class Loss(Stage):
    """A write is at the upstream, and its gateway has been killed. self.before: the store when it had not come yet."""

    def __init__(self):
        super().__init__(starts=False)
        self.ready()
        self.before = self.keep()
        self.start()
        self.ready()
        self.later("/w/lost", self.world.acquire("job:lost", ttl_ms=600_000), b"hang:old")
        self.hangs(b"hang:old")
        self.gone = " ".join(self.lives())
        self.daemon.kill()
        self.near = self.far
        self.file = pathlib.Path(self.redis.path).parent / "state-pawl-lease-0" / "high-water"

    def recorded(self, word):
        """The members, or the doubts, that the lease service's directory has."""
        lines = self.file.read_text(encoding="ascii").splitlines()
        return {" ".join(line.split(" ")[-2:] if word == "member" else line.split(" ")[1:3]) for line in lines
                if line.startswith(word + " ")}

    def is_flushed(self, *words):
        is_flushed(self, *words)

    def is_put_back(self):
        self.set_back(self.before)

    def stays_in_doubt(self, who):
        """All that 20 seconds bring about has come about: no list has the dead one as a member, the living ones have said
        what they have open, and the directory knows that, too."""
        wait_until(lambda: self.gone not in self.recorded("member"), "it is no member any more")
        wait_until(lambda: self.doubts().keys() <= {who, self.gone}, "nobody else is in doubt")
        wait_until(lambda: self.recorded("doubt") == self.doubts().keys(), "the directory says so")
        wait_until(lambda: who in [f"{one['gateway']} {one['incarnation']}" for one in self.told_in_doubt()], "it is told")

    def told_in_doubt(self):
        return self.world.gateway("GET", "/v1/gateways/doubt", held=False).json.get("gateways", [])

    def newer_comes_last(self):
        """The newer write waits until the old one has landed and an operator has said so."""
        grant = self.world.acquire("job:lost", ttl_ms=600_000)
        answer = self.world.gateway("PUT", "/w/lost", [("Fencing-Token", grant["fencing_token"])], b"new", held=False)
        check_equal((answer.status, answer.json["code"]), (503, "in-doubt"))
        self.go(b"hang:old")
        wait_until(lambda: [body for _, body in self.upstream.applied] == [b"hang:old"], "the old one has landed")
        for gateway, incarnation in (who.split(" ") for who in self.doubts()):
            self.pawl("resolve", "--gateway", gateway, "--incarnation", incarnation, "--dead", "--settled", "--yes")
        self.ended(self.later("/w/lost", grant, b"new", self.world.gateway), 200)
        check_equal([body for _, body in self.upstream.applied], [b"hang:old", b"new"])


@test_in(Loss)
def who_was_in_doubt_when_the_store_was_lost_is_so_when_it_is_lost_again_and_again(stage):
    for is_lost in (stage.is_flushed, stage.is_flushed, stage.is_put_back, stage.is_put_back):
        is_lost()
        stage.stays_in_doubt(stage.gone)
    stage.newer_comes_last()
    wait_until(lambda: stage.recorded("doubt") == set(), "the directory knows that it is settled")
    stage.is_flushed()
    wait_until(lambda: stage.doubts() == {}, "what was settled does not come back")


@test_in(Loss)
def what_nobody_knows_whose_it_was_stays_in_doubt_when_the_store_is_lost_again(stage):
    stage.is_flushed("--floor", "50000000", "--yes")
    stage.stays_in_doubt(f"{LOST} {LOST}")
    stage.is_flushed()
    stage.stays_in_doubt(f"{LOST} {LOST}")
    stage.newer_comes_last()


@test_in(Loss)
def each_lease_service_that_was_there_knows_by_itself_who_is_in_doubt(stage):
    other = stage.world.daemon("pawl-lease")
    stage.world.lease, first = stage.world.client(other), stage.world.lease_daemon
    stage.ready()
    stage.is_flushed()
    stage.stays_in_doubt(stage.gone)
    check_equal(first.end(), 0)
    stage.file.unlink()  # and its disk goes
    stage.file = pathlib.Path(stage.redis.path).parent / "state-pawl-lease-1" / "high-water"
    wait_until(lambda: len(stage.recorded("member")) == 2, "it has left")
    stage.is_flushed()
    stage.stays_in_doubt(stage.gone)
    stage.newer_comes_last()


main(parts=3)
