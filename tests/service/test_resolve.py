#!/usr/bin/python3
"""test_resolve.py - what an operator does about writes that have no known end: pawl resolve, pawl routes, and the
requests that they send."""

import json
import re
import tempfile
import threading
import zlib

from world import (TO_REDIS, Daemon, Relay, World, check, check_equal, check_in, function_of, main, test,
                       wait_until)
from world.asking import Later, pages, refused
from world.cli import Cli, Server, response, typed
from world.ports import nobody
from world.upstream import Upstream, routes_file
from world.wait import DEADLINE_S

GHOST, ONE, OTHER = "GhostGatewayIdXX", "Incarnation-of-1", "Incarnation_of_2"
HASH = re.compile(r"[A-Za-z0-9_-]{43}")


def act(upstream, request):
    """Whatever ends in /hang is never answered, in /break the connection is cut, in /busy a proxy says 503."""
    end = request.target.rpartition("/")[2]
    if request.method == "GET":
        upstream.obey(request)
    elif end == "hang":
        release.wait(DEADLINE_S)
        request.connection.close()
    elif end == "break":
        request.connection.reset()
    elif end == "busy":
        request.connection.answer(503)
    else:
        upstream.obey(request)


def route(match, lease, url=None, **more):
    return {"match": match, "lease": lease, "upstream": url or upstream.url, "guarantee": "ordered", **more}


release = threading.Event()
upstream = Upstream(act)
folder = tempfile.mkdtemp(prefix="pawl-resolve-")
ROUTES = [route("/job/{id}/**", "job:{id}", timeout_ms=300),
          route("/patient/{id}/**", "patient:{id}", timeout_ms=10000),
          route("/nobody/{id}", "nobody:{id}", nobody(), timeout_ms=300)]
TABLE = routes_file(folder, ROUTES)
OTHER_TABLE = routes_file(folder, [*ROUTES, route("/more/{id}", "more:{id}")], "other.json")
world = World(gateway_flags=["--routes", TABLE])
World.contract.forwards = True
pawl = Cli(world)
# A table that was never in force is adopted only while nothing is open.
check_equal(world.gateway("POST", "/v1/routes/adopt").status, 200)


# -- what is open


class Holder:
    def __init__(self, stem="job"):
        self.name = world.name(stem)
        self.path = "/" + self.name.replace(":", "/")
        self.grant = world.acquire(self.name)

    def succeed(self):
        """The next holder, with a greater token."""
        world.release(self.name, self.grant)
        self.grant = world.acquire(self.name)
        return self

    def send(self, what="", client=None):
        return (client or world.gateway)("PUT", f"{self.path}/{what}" if what else f"{self.path}/x",
                                         {"Fencing-Token": self.grant["fencing_token"]}, b"x")

    def is_let_through(self):
        return self.send().status == 200

    def stays_in_doubt(self):
        refused(self.send(), 503, "in-doubt")


def intents(name):
    return world.gateway("GET", f"/v1/intents/{name}").json["items"]


def wait_states(name, *states):
    """The intents of the lease, once they are in these states."""
    def fits():
        items = intents(name)
        return [item["state"] for item in items] == list(states) and (items or True)
    return wait_until(fits, f"{name} has {states}: {intents(name)}")


def unknown(stem="job"):
    """A lease for which something was sent whose end nobody will tell, and its next holder."""
    one = Holder(stem)
    refused(one.send("break"), 504, "outcome-unknown")
    wait_states(one.name, "unknown")
    return one.succeed()


def sending():
    """A lease for which something is still being sent, and its next holder."""
    one = Holder("patient")
    Later(one.send, "hang")
    wait_states(one.name, "sending")
    return one.succeed()


def let_go(name, *states):
    """The upstream closes the connection on which it was silent."""
    release.set()
    wait_states(name, *(states or ("unknown",)))
    release.clear()


def stripe(name):
    return f"pawl:{{{zlib.crc32(name.encode()) & 0xff:02x}}}"


def left_behind(name, seq, state="s", kind="o", gateway=GHOST, incarnation=ONE):
    """What a gateway that is not here any more had recorded."""
    epoch, token = world.look(name)["epoch"], world.look(name)["token"]
    text = f"{name} {epoch:015d} {token:015d} {seq:016d} {state} {kind} {gateway} {incarnation} 0.{seq} h 1700000000000"
    world.redis("ZADD", stripe(name) + ":i", 0, text)


def ghost(below=0x100):
    """A lease for which the gateway that is not here any more has left something, in a stripe below this one."""
    name = world.name()
    while int(stripe(name)[6:8], 16) >= below:
        name = world.name()
    world.acquire(name)
    left_behind(name, 1)
    return name


# -- what is typed


def says(status, body=b""):
    """In the place of a gateway."""
    return Server(lambda _: response(status, body))


@test
def what_does_not_go_together_is_an_error_and_nothing_is_sent():
    server = says(500)
    for words in (["--all"], ["--id", "1"], ["--force"], ["a", "--force"], ["a", "--all", "--force"], ["a", "--id", "1", "--all"], ["a", "--gateway", GHOST, "--dead"], ["--gateway", GHOST],
                  ["--gateway", GHOST, "--dead", "--all"], ["a", "--dead"], ["a", "--settled"], ["a", "--incarnation", ONE],
                  ["--gateway", GHOST, "--dead", "--id", "1"], ["a", "--id", ""], ["a", "--id", "-1"], ["a", "--id", "1x"],
                  ["a", "--id", "12345678901234567"], ["--gateway", GHOST[1:], "--dead"], ["--gateway", "", "--dead"],
                  ["--gateway", GHOST[1:] + "/", "--dead"], ["--gateway", GHOST, "--dead", "--incarnation", "x"],
                  ["a", "b", "--all"], ["a b", "--all"], ["", "--all"], ["a/b"]):
        error = pawl("resolve", *words, *(["--yes"] if len(words) > 1 else []), status=64, PAWL_GATEWAY_URL=server.url).stderr
        check(error.startswith("pawl: "), f"{words}: {error}")
    check_in("--yes goes with", pawl("resolve", "a", "--yes", status=64, PAWL_GATEWAY_URL=server.url).stderr)
    check_in("did you mean pawl routes adopt?", pawl("routes", "adpot", status=64, PAWL_GATEWAY_URL=server.url).stderr)
    pawl("routes", "adopt", "x", status=64, PAWL_GATEWAY_URL=server.url)
    check_equal(server.requests, [])


@test
def without_a_terminal_nothing_is_sent_before_yes_is_said():
    server = says(500)
    for words in (["a", "--all"], ["a", "--id", "1"], ["--gateway", GHOST, "--dead"], ["a", "--all", "-o", "json"]):
        check_in("--yes", pawl("resolve", *words, status=64, PAWL_GATEWAY_URL=server.url).stderr)
    check_equal(server.requests, [])


@test
def what_a_gateway_says_cannot_reach_the_terminal_as_a_command():
    item = {"id": "1\x1b[2J", "state": "unknown\n", "guarantee": "\u009b", "token": 1, "gateway": "\t", "at_ms": -1}
    server = says(200, json.dumps({"lease": "a", "items": [item, 5], "next_cursor": None}).encode())
    row = pawl("resolve", "a", PAWL_GATEWAY_URL=server.url).stdout
    check_equal(len(row.splitlines()), 1, row)
    check("\x1b" not in row and "\u009b" not in row, row)
    check_equal(pawl("resolve", "a", PAWL_GATEWAY_URL=says(200, b"{").url, status=69).stdout, "")


@test
def what_is_not_a_gateways_answer_is_no_success():
    """What another server says with 200 is not what was asked, and a word that was sent may have been taken."""
    bodies = (b"", b"{}", b"<html>", b'{"items":[]}', b'{"status":"ok","hash":"x"}', b'{"lease":"b","items":[],"next_cursor":null}')
    for body in bodies:
        url = says(200, body).url
        for words in (["resolve"], ["resolve", "a"], ["routes"], ["routes", "show"]):
            done = pawl(*words, status=69, PAWL_GATEWAY_URL=url)
            check(done.stderr.startswith("pawl: certainly not done: "), f"{words} {body}: {done.stderr}")
            check_equal((done.stdout, "not as Pawl does" in done.stderr), ("", True), f"{words} {body}")
        for words in (["resolve", "a", "--all", "--yes"], ["resolve", "--gateway", GHOST, "--dead", "--yes"], ["routes", "adopt"]):
            done = pawl(*words, status=69, PAWL_GATEWAY_URL=url)
            check(done.stderr.startswith("pawl: may have been done: "), f"{words} {body}: {done.stderr}")
            check_equal(done.stdout, "", f"{words} {body}")
            told = json.loads(pawl(*words, "-o", "json", status=69, PAWL_GATEWAY_URL=url).stdout)
            check_equal(told["outcome"], "unknown", f"{words} {body}")


# -- what is open


@test
def an_id_that_several_have_names_none_of_them():
    one = unknown()
    [text] = [text.decode() for text in world.redis("ZRANGE", stripe(one.name) + ":i", 0, -1) if text.decode().startswith(one.name + " ")]
    world.redis("ZADD", stripe(one.name) + ":i", 0, text.replace(intents(one.name)[0]["gateway"], GHOST))  # as after a set back
    number = intents(one.name)[0]["id"]
    answer = world.gateway("POST", f"/v1/intents/{one.name}/resolve?id={number}")
    refused(answer, 400, "invalid-request")
    check_in("Several open intents", answer.json["detail"])
    check_in("Several open intents", pawl("resolve", one.name, "--id", number, "--yes", status=64).stderr)
    one.stays_in_doubt()
    check_in("2 closed", pawl.on_terminal("resolve", one.name, "--all", answers=[("Type ", lambda: one.name)]))
    wait_until(one.is_let_through, "it is sent")


@test
def a_write_with_no_known_end_is_a_row_that_says_what_to_look_for_at_the_upstream():
    one = Holder()
    token, before = one.grant["token"], len(upstream.requests)
    refused(one.send("break"), 504, "outcome-unknown")
    item = wait_states(one.name, "unknown")[0]
    request_id = upstream.got(before + 1).header("Pawl-Request-Id")
    check_equal(f"{item['gateway']}-{item['incarnation']}-{item['request']}", request_id)
    check_equal((item["token"], item["epoch"], item["guarantee"]), (token, one.grant["epoch"], "ordered"))
    columns = pawl("resolve", one.name).stdout.rstrip("\n").split("\t")
    check_equal(columns[:4], [item["id"], "unknown", "ordered", str(token)])
    check(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", columns[4]), columns[4])
    check_equal(columns[5:], [item["gateway"], item["incarnation"], item["request"]])
    check_equal(json.loads(pawl("resolve", one.name, "-o", "json").stdout)["items"], [item])
    status, shown = typed(["resolve", one.name], b"", pawl.environment())
    check_equal((status, shown.split("\t")[0]), (0, item["id"]))
    check_equal(intents(one.name), [item], "it was only shown")
    pawl("resolve", one.name, "--all", "--yes")


@test
def all_open_intents_are_listed_page_by_page_and_each_of_them_once():
    names = [world.name() for _ in range(9)]
    for i, name in enumerate(names):
        world.acquire(name)
        for seq in range(1, 2 + i % 3):
            left_behind(name, seq, "sqdu"[i % 4])
    wanted = sorted((name, str(seq)) for i, name in enumerate(names) for seq in range(1, 2 + i % 3))
    whole = world.gateway("GET", "/v1/intents").json
    check_equal(whole["next_cursor"], None)
    stripes = [stripe(item["lease"]) for item in whole["items"]]
    check_equal(stripes, sorted(stripes))
    check_equal(sorted((item["lease"], item["id"]) for item in whole["items"]), wanted)
    for limit in (1, 2, 5, 18, 1000):
        check_equal(sum(pages(world.gateway, f"/v1/intents?limit={limit}"), []), whole["items"], f"limit {limit}")
    for name in names:
        items = [{key: value for key, value in item.items() if key != "lease"} for item in whole["items"] if item["lease"] == name]
        check_equal(sum(pages(world.gateway, f"/v1/intents/{name}?limit=1"), []), items)
        check_equal(intents(name), items)
        world.redis("DEL", stripe(name) + ":i")


@test
def more_than_a_thousand_intents_of_one_lease_are_told_and_shown(name):
    epoch = world.acquire(name)["epoch"]
    for seq in range(1, 1203):
        world.redis("ZADD", stripe(name) + ":i", 0,
                    f"{name} {epoch:015d} {1:015d} {seq:016d} u a {GHOST} {ONE} 0.{seq} h 1700000000000")
    for target in ("/v1/intents", f"/v1/intents/{name}"):
        ids = [item["id"] for page in pages(world.gateway, f"{target}?limit=1000") for item in page]
        check_equal(ids, [str(seq) for seq in range(1, 1203)])
    check_equal(len(world.gateway("GET", f"/v1/intents/{name}").json["items"]), 100)
    for words in (["resolve"], ["resolve", name]):
        check_equal(len(pawl(*words).stdout.splitlines()), 1202)
    documents = [json.loads(line) for line in pawl("resolve", name, "-o", "json").stdout.splitlines()]
    check_equal([len(one["items"]) for one in documents], [1000, 202])
    world.redis("DEL", stripe(name) + ":i")


@test
def a_cursor_is_good_for_the_list_that_gave_it_only_and_a_limit_has_limits():
    name, other = world.name(), world.name()
    for one in (name, other):
        world.acquire(one)
        left_behind(one, 1)
        left_behind(one, 2)
    cursors = {target: world.gateway("GET", target + "?limit=1").json["next_cursor"]
               for target in ("/v1/intents", f"/v1/intents/{name}", f"/v1/intents/{other}")}
    for target in cursors:
        for owner, cursor in cursors.items():
            answer = world.gateway("GET", f"{target}?limit=1&cursor={cursor}")
            if owner == target:
                check_equal((answer.status, len(answer.json["items"])), (200, 1))
            else:
                refused(answer, 400, "invalid-request")
        for made_up in ("x", "00.0123456789abcdef.", cursors[target] + "0", "zz" + cursors[target][2:], ""):
            refused(world.gateway("GET", f"{target}?cursor={made_up}"), 400, "invalid-request")
        for limit in (0, 1001, 10 ** 30):
            refused(world.gateway("GET", f"{target}?limit={limit}"), 422, "out-of-range")
    for one in (name, other):
        world.redis("DEL", stripe(one) + ":i")


@test
def without_a_name_all_that_is_open_and_who_is_in_doubt_is_shown():
    done = pawl("resolve")
    check_equal((done.stdout, done.stderr), ("", "Nothing is open, and no gateway is in doubt.\n"))
    check_equal([json.loads(line) for line in pawl("resolve", "-o", "json").stdout.splitlines()],
                [{"items": [], "next_cursor": None}, {"in_doubt": 0, "gateways": []}])
    none = world.name()
    check_equal((pawl("resolve", none).stdout, pawl("resolve", none).stderr), ("", f"{none}: nothing is open\n"))
    check_equal(json.loads(pawl("resolve", none, "-o", "json").stdout), {"lease": none, "items": [], "next_cursor": None})
    name = ghost()
    since = 1700000000000
    world.redis("HSET", "pawl:{store}:doubt", f"{GHOST} {OTHER}", f"dead {since} 0 1", f"{GHOST} {ONE}", "open 1")
    listed = [{"gateway": GHOST, "incarnation": ONE, "state": "open", "since_ms": None},
              {"gateway": GHOST, "incarnation": OTHER, "state": "dead", "since_ms": since}]
    doubt = {"in_doubt": 2, "gateways": listed}
    check_equal(world.gateway("GET", "/v1/gateways/doubt").json, doubt)
    rows = [line.split("\t") for line in pawl("resolve").stdout.splitlines()]
    check_equal([rows[0][:4], rows[0][6:8], rows[1]], [[name, "1", "sending", "ordered"], [GHOST, ONE], [""]])
    check_equal(rows[2:], [[GHOST, ONE, "open", "-"], [GHOST, OTHER, "dead", "2023-11-14T22:13:20Z"]])
    check_in("--settled", pawl("resolve").stderr)
    check_equal(json.loads(pawl("resolve", "-o", "json").stdout.splitlines()[1]), doubt)
    table_of_all, table_of_one = (pawl.shown("resolve", *words)[0].splitlines() for words in ([], [name]))
    check(table_of_all[0].startswith("LEASE ") and table_of_all[1].startswith(name + " "), str(table_of_all))
    check(table_of_all[3].startswith("GATEWAY "), str(table_of_all))
    check(table_of_one[0].startswith("ID ") and len(table_of_one) == 2, str(table_of_one))
    column = table_of_one[0].index("STATE")
    check_equal(table_of_one[1][column:column + 8], "sending ")
    pawl("resolve", "--gateway", GHOST, "--dead", "--settled", "--yes")
    pawl("resolve", name, "--all", "--yes")


# -- an operator has looked


@test
def an_id_that_is_not_open_is_exit_status_1_and_closes_nothing():
    one = unknown()
    number = int(intents(one.name)[0]["id"])
    for wrong in (number + 1, number * 10, 0):
        check_in("not-found", pawl("resolve", one.name, "--id", str(wrong), "--yes", status=1).stderr)
    check_in("not-found", pawl("resolve", world.name(), "--id", str(number), "--yes", status=1).stderr)
    one.stays_in_doubt()
    pawl("resolve", one.name, "--id", f"{number:016d}", "--yes")
    check_in("not-found", pawl("resolve", one.name, "--id", str(number), "--yes", status=1).stderr)


@test
def what_nobody_will_tell_is_closed_and_what_is_being_sent_is_left():
    one = sending()
    left_behind(one.name, 1, "u")
    left_behind(one.name, 2, "d")
    done = pawl("resolve", one.name, "--all", "--yes")
    check_equal(done.stdout, f"{one.name}: 2 closed\n")
    check_in("1 still being sent", done.stderr)
    number = wait_states(one.name, "sending")[0]["id"]
    check_equal(json.loads(pawl("resolve", one.name, "--all", "--yes", "-o", "json").stdout), {"resolved": 0, "sending": 1})
    error = pawl("resolve", one.name, "--id", number, "--yes", status=1).stderr
    check_in(f"intent {number} was not closed", error)
    check_in("1 still being sent", error)
    check_equal(json.loads(pawl("resolve", one.name, "--id", number, "--yes", "-o", "json", status=1).stdout),
                {"resolved": 0, "sending": 1})
    wait_states(one.name, "sending")
    check_in("intent", pawl("resolve", one.name, "--id", number, "--force", "--yes").stdout)
    check(one.is_let_through(), "it is still in doubt")
    one = sending()
    let_go(one.name)
    number = intents(one.name)[0]["id"]
    check_equal(json.loads(pawl("resolve", one.name, "--id", number, "--yes", "-o", "json").stdout),
                {"resolved": 1, "sending": 0})
    check(one.is_let_through(), "it is still in doubt")


@test
def a_queued_write_that_is_resolved_is_never_sent():
    one = Holder("patient")
    first = Later(one.send, "hang")
    wait_states(one.name, "sending")
    second = Later(one.succeed().send, "never")
    queued = wait_states(one.name, "sending", "queued")[1]
    pawl("resolve", one.name, "--id", queued["id"], "--yes")
    answer = second.get()
    refused(answer, 503, "in-doubt")
    check(not answer.json["retryable"] and "an operator took it out" in answer.json["detail"], repr(answer))
    wait_states(one.name, "sending")
    check(not any(request.target.endswith("never") for request in upstream.requests), "it was sent")
    let_go(one.name)
    refused(first.get(), 504, "outcome-unknown")
    check_in("1 closed", pawl("resolve", one.name, "--all", "--yes").stdout)
    check(one.is_let_through(), "it is still in doubt")


@test
def in_a_terminal_the_name_of_the_lease_must_be_typed():
    one = unknown()
    number = intents(one.name)[0]["id"]
    for words in (["--all"], ["--id", number]):
        for wrong in (b"yes\n", b"\n", one.name[:-1].encode() + b"\n", one.name.encode() + b"0\n", b"\x04"):
            status, said = typed(["resolve", one.name, *words], wrong, pawl.environment())
            check_equal(status, 1, said)
            check_in("nothing was changed", said)
            check_in(f"{number}\tunknown", said)
    one.stays_in_doubt()
    status, said = typed(["resolve", one.name, "--all"], one.name.encode() + b"\n", pawl.environment())
    check_equal(status, 0, said)
    check_in(f"{one.name}: 1 closed", said)
    check(one.is_let_through(), "it is still in doubt")


@test
def in_a_terminal_all_are_those_that_were_shown():
    """Not one whose end has become unknown while somebody looked at the upstream for the others."""
    one = sending()
    shown = intents(one.name)[0]["id"]
    left_behind(one.name, 101, "u")
    left_behind(one.name, 102, "d")

    def later():
        left_behind(one.name, 103, "u")
        left_behind(one.name, 104, "d")
        pawl("resolve", one.name, "--id", "102", "--yes")  # by somebody else
        let_go(one.name, "unknown", "unknown", "unknown", "dead")
        return one.name
    said = pawl.on_terminal("resolve", one.name, "--all", answers=[("Type ", later)])
    check_in(f"{one.name}: 1 closed\n", said)
    check_equal([item["id"] for item in intents(one.name)], [shown, "103", "104"])
    check_in("3 closed", pawl("resolve", one.name, "--all", "--yes").stdout)


# -- a gateway is dead


@test
def what_a_killed_gateway_was_sending_is_closed_after_it_was_said_to_be_dead():
    daemon = world.daemon("pawl-gateway", "--routes", TABLE)
    one = Holder()
    refused(one.send("hang", world.client(daemon)), 504, "outcome-unknown")
    item = wait_states(one.name, "sending")[0]
    world.kill(daemon)
    one.succeed().stays_in_doubt()
    check_in("0 closed", pawl("resolve", one.name, "--all", "--yes").stdout)
    check_equal(typed(["resolve", "--gateway", item["gateway"], "--dead"], one.name.encode() + b"\n", pawl.environment())[0], 1)
    check_in("gateway-lives", pawl("resolve", "--gateway", item["gateway"], "--dead", "--yes", status=1).stderr)
    wait_states(one.name, "sending")
    status, said = typed(["resolve", "--gateway", item["gateway"], "--dead", "--force"], item["gateway"].encode() + b"\n", pawl.environment())
    check_equal(status, 0, said)
    check_in(f"{item['gateway']} is dead: 1 of its writes", said)
    wait_states(one.name, "dead")
    one.stays_in_doubt()
    pawl("resolve", one.name, "--all", "--yes")
    check(one.is_let_through(), "it is still in doubt")


@test
def an_id_that_nobody_knows_is_exit_status_1_and_says_where_the_ids_are():
    name = ghost()
    lease_service = next(one.decode() for one in world.redis("SMEMBERS", "pawl:{store}:members")
                         if world.redis("HGET", "pawl:{store}:m:" + one.decode(), "role") == b"lease")
    for words in (["--gateway", GHOST[::-1]], ["--gateway", GHOST, "--incarnation", OTHER], ["--gateway", lease_service],
                  ["--gateway", GHOST[::-1], "--settled", "--force"]):
        error = pawl("resolve", *words, "--dead", "--yes", status=1).stderr
        check_in("not-found", error)
        check_in("pawl store status", error)
    wait_states(name, "sending")
    for seq, state in ((2, "q"), (3, "u")):  # whatever state it is in, and in any stripe: it is known by what it has open
        other = world.name()
        world.acquire(other)
        left_behind(other, seq, state, gateway=f"Ghost{state}-GatewayId")
        pawl("resolve", "--gateway", f"Ghost{state}-GatewayId", "--dead", "--yes")
        pawl("resolve", other, "--all", "--yes")
    world.redis("HSET", "pawl:{store}:doubt", f"OnlyInDoubt-XXXX {ONE}", "open 1")
    refused(world.gateway("POST", f"/v1/gateways/OnlyInDoubt-XXXX/dead?incarnation={OTHER}"), 404, "not-found")
    pawl("resolve", "--gateway", "OnlyInDoubt-XXXX", "--dead", "--settled", "--yes")
    refused(world.gateway("POST", "/v1/gateways/OnlyInDoubt-XXXX/dead"), 404, "not-found")
    pawl("resolve", "--gateway", GHOST, "--dead", "--yes")
    pawl("resolve", name, "--all", "--yes")


@test
def a_gateway_whose_pulse_is_fresh_is_not_dead_unless_it_is_forced():
    one = sending()
    gateway, incarnation = (intents(one.name)[0][part] for part in ("gateway", "incarnation"))
    other = world.daemon("pawl-gateway", "--routes", TABLE)
    client = world.client(other)
    wait_until(lambda: client("GET", "/readyz").status == 200, "another gateway is ready")
    left_behind(one.name, 1, gateway=gateway, incarnation=ONE)
    url = f"/v1/gateways/{gateway}/dead"
    for query in ("", f"?incarnation={incarnation}", "?settled=true"):
        answer = client("POST", url + query)
        refused(answer, 409, "gateway-lives")
        check_equal(answer.json["incarnation"], incarnation)
        check(answer.json["pulse_ms"] <= 10000, repr(answer))
    check_equal([item["state"] for item in intents(one.name)], ["sending", "sending"])
    check_equal(client("POST", f"{url}?incarnation={ONE}").json, {"intents": 1, "in_doubt": 0})
    check_equal({item["incarnation"]: item["state"] for item in intents(one.name)}, {incarnation: "sending", ONE: "dead"})
    answer = pawl("resolve", "--gateway", gateway, "--dead", "--force", "--yes", "-o", "json", PAWL_GATEWAY_URL=other.url)
    check_equal(json.loads(answer.stdout), {"intents": 2, "in_doubt": 0})
    check_equal({item["state"] for item in intents(one.name)}, {"dead"})
    release.set()
    pawl("resolve", one.name, "--all", "--yes")
    release.clear()
    world.kill(other)


@test
def who_asks_which_gateways_are_in_doubt_names_no_store_whose_marks_are_lost():
    world.redis("HSET", "pawl:{store}", "lost", "1")
    check_equal(world.gateway("GET", "/v1/gateways/doubt").status, 200)
    check_equal(world.redis("HGETALL", "pawl:{store}:marks"), [])
    world.redis("HDEL", "pawl:{store}", "lost")


@test
def however_many_are_to_be_settled_none_is_left_out_or_uncounted():
    entries = [f"{GHOST} Incarnation-{i:04}" for i in range(150)]
    for count, settled, left in ((150, "", 150), (150, "?settled=true", 0), (64, "?settled=true", 0), (65, "?settled=true", 0),
                                 (65, "", 65)):
        world.redis("HSET", "pawl:{store}:doubt", *[part for entry in entries[:count] for part in (entry, "open 1")])
        check_equal(world.gateway("GET", "/v1/gateways/doubt").json["in_doubt"], count)
        answer = world.gateway("POST", f"/v1/gateways/{GHOST}/dead{settled}").json
        check_equal(answer, {"intents": 0, "in_doubt": left}, f"{count} {settled}")
        check_equal(world.redis("HLEN", "pawl:{store}:doubt"), left)
    world.redis("DEL", "pawl:{store}:doubt")


@test
def only_the_incarnation_that_was_named_is_said_to_be_dead(name):
    world.acquire(name)
    left_behind(name, 1, incarnation=ONE)
    left_behind(name, 2, incarnation=OTHER)
    world.redis("HSET", "pawl:{store}:doubt", f"{GHOST} {ONE}", "open 1", f"{GHOST} {OTHER}", "open 1")
    said = pawl("resolve", "--gateway", GHOST, "--incarnation", OTHER, "--dead", "--settled", "--yes", "-o", "json").stdout
    check_equal(json.loads(said), {"intents": 1, "in_doubt": 0})
    check_equal([item["state"] for item in intents(name)], ["sending", "dead"])
    check_equal(world.redis("HGETALL", "pawl:{store}:doubt"), [f"{GHOST} {ONE}".encode(), b"open 1"])
    pawl("resolve", "--gateway", GHOST, "--dead", "--settled", "--yes")
    check_equal(world.redis("EXISTS", "pawl:{store}:doubt"), 0)
    check_in("2 closed", pawl("resolve", name, "--all", "--yes").stdout)


@test
def what_a_store_may_have_lost_of_a_dead_gateway_is_waited_for_until_it_is_said_to_be_settled():
    one = Holder()
    world.redis("HSET", "pawl:{store}:doubt", f"{GHOST} {ONE}", "open 1")
    one.stays_in_doubt()
    done = pawl("resolve", "--gateway", GHOST, "--dead", "--yes")
    check_in("--settled", done.stderr)
    entries = world.redis("HGETALL", "pawl:{store}:doubt")
    check_equal(entries[0::2], [f"{GHOST} {ONE}".encode()], "no other entry was made")
    check(entries[1].startswith(b"dead "), entries[1])
    one.stays_in_doubt()
    status, said = typed(["resolve", "--gateway", GHOST, "--dead", "--settled"], GHOST.encode() + b"\n", pawl.environment())
    check_equal(status, 0, said)
    check_in("still on its way", said)
    check(one.is_let_through(), "it is still in doubt")


@test
def the_process_that_is_asked_is_not_taken_for_dead():
    one = sending()
    own = intents(one.name)[0]
    left_behind(one.name, 1, gateway=own["gateway"], incarnation=ONE)
    pawl("resolve", "--gateway", own["gateway"], "--dead", "--yes")
    states = {item["incarnation"]: item["state"] for item in intents(one.name)}
    check_equal(states, {own["incarnation"]: "sending", ONE: "dead"})
    for more in ([], ["--force"]):
        check_in("the very process", pawl("resolve", "--gateway", own["gateway"], "--incarnation", own["incarnation"], "--dead",
                                          "--yes", *more, status=1).stderr)
    check_in("sending", [item["state"] for item in intents(one.name)])
    check_in("1 closed", pawl("resolve", one.name, "--all", "--yes").stdout)
    let_go(one.name)
    check_in("1 closed", pawl("resolve", one.name, "--all", "--yes").stdout)


# -- which routes


@test
def the_hash_of_a_gateways_routes_is_told_and_one_without_has_none_to_show_or_to_adopt():
    for words in (["routes"], ["routes", "show"]):
        digest, count = pawl(*words).stdout.rstrip("\n").split("\t")
        check(HASH.fullmatch(digest), digest)
        check_equal(count, str(len(ROUTES)))
    check_equal(json.loads(pawl("routes", "-o", "json").stdout), {"hash": digest, "routes": len(ROUTES)})
    plain = world.daemon("pawl-gateway")
    for words in (["routes"], ["routes", "adopt"]):
        check_in("--routes", pawl(*words, status=1, PAWL_GATEWAY_URL=plain.url).stderr)
    for method, target in (("GET", "/v1/routes"), ("POST", "/v1/routes/adopt"), ("PUT", "/job/1/x")):
        refused(world.client(plain)(method, target), 404, "not-found")


@test
def other_routes_are_adopted_when_nothing_is_open_and_then_the_others_forward_nothing():
    one = Holder()
    check(one.is_let_through(), "no write goes through")
    other = world.daemon("pawl-gateway", "--routes", OTHER_TABLE)
    client = world.client(other)
    refused(one.send(client=client), 503, "routes-differ")
    digest = {url: pawl("routes", PAWL_GATEWAY_URL=url).stdout.split("\t")[0] for url in (world.gateway.url, other.url)}
    check_equal(len(set(digest.values())), 2)

    open_one = unknown()
    left_behind(open_one.name, 1)
    world.redis("HSET", "pawl:{store}:doubt", f"{GHOST} {ONE}", "open 1")
    error = pawl("routes", "adopt", status=1, PAWL_GATEWAY_URL=other.url).stderr
    for part in ("intents-open", "writes that are open: 2", "yet to say what they have sent: 1", "pawl resolve LEASE --all",
                 "pawl resolve --gateway ID --dead"):
        check_in(part, error)
    check_in("is served already", pawl("routes", "adopt").stdout)
    pawl("resolve", "--gateway", GHOST, "--dead", "--settled", "--yes")
    error = pawl("routes", "adopt", status=1, PAWL_GATEWAY_URL=other.url).stderr
    check_in("writes that are open: 2", error)
    check_in("yet to say what they have sent: 0", error)
    pawl("resolve", open_one.name, "--all", "--yes")
    world.redis("HSET", "pawl:{store}:doubt", f"{GHOST} {ONE}", "open 1")
    check_in("writes that are open: 0", pawl("routes", "adopt", status=1, PAWL_GATEWAY_URL=other.url).stderr)
    pawl("resolve", "--gateway", GHOST, "--dead", "--settled", "--yes")
    refused(one.send(client=client), 503, "routes-differ")

    answer = json.loads(pawl("routes", "adopt", "-o", "json", PAWL_GATEWAY_URL=other.url).stdout)
    check_equal(answer, {"hash": digest[other.url], "before": digest[world.gateway.url]})
    check_equal(one.send(client=client).status, 200)
    refused(one.send(), 503, "routes-differ")
    wait_states(one.name)  # its intent stays open for a moment
    done = pawl("routes", "adopt")
    check_equal(done.stdout, f"{digest[world.gateway.url]} is served from now on\n")
    check_in("routes-differ", done.stderr)
    check(one.is_let_through(), "its own routes are not served")
    refused(one.send(client=client), 503, "routes-differ")


# -- the requests themselves


@test
def what_is_malformed_is_400_and_changes_nothing():
    one = unknown()
    for target in (f"/v1/intents/{one.name}?x", "/v1/intents?x=1", "/v1/intents?limit=1&limit=1", "/v1/intents?limit=x",
                   f"/v1/intents/{one.name}?limit=", "/v1/gateways/doubt?x=1", "/v1/intents/a%2Fb", "/v1/intents/-a"):
        refused(world.gateway("GET", target), 400, "invalid-request")
    for query in ("?id=", "?id=x", "?id=-1", "?id=1&id=1", "?id=12345678901234567", "?all=true", "?id=1&all=true"):
        refused(world.gateway("POST", f"/v1/intents/{one.name}/resolve{query}"), 400, "invalid-request")
    refused(world.gateway("POST", "/v1/intents/-a/resolve"), 400, "invalid-request")
    for target in (GHOST[1:], GHOST + "X", GHOST[1:] + ".", GHOST + "?settled=false", GHOST + "?settled", GHOST + "?x=1",
                   GHOST + "?force=false", GHOST + "?force", GHOST + "?force=true&force=true",
                   GHOST + "?incarnation=", GHOST + "?incarnation=x", GHOST + f"?incarnation={ONE}&incarnation={ONE}",
                   GHOST + f"?incarnation={ONE}&x=1", GHOST + "?settled=true&settled=true"):
        path, mark, query = target.partition("?")
        refused(world.gateway("POST", f"/v1/gateways/{path}/dead{mark}{query}"), 400, "invalid-request")
    for method, target in (("GET", "/v1/routes?x=1"), ("POST", "/v1/routes/adopt?x=1")):
        refused(world.gateway(method, target), 400, "invalid-request")
    wait_states(one.name, "unknown")
    pawl("resolve", one.name, "--all", "--yes")


@test
def only_the_listed_methods_are_taken_and_head_and_options_are_among_them():
    name = ghost()
    for target, methods in (("/v1/intents", ("GET", "HEAD")), ("/v1/intents/a", ("GET", "HEAD")),
                            ("/v1/gateways/doubt", ("GET", "HEAD")), ("/v1/intents/a/resolve", ("POST",)),
                            (f"/v1/gateways/{GHOST}/dead", ("POST",)), ("/v1/routes", ("GET", "HEAD")),
                            ("/v1/routes/adopt", ("POST",))):
        check_equal(world.gateway("OPTIONS", target).status, 204, target)
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "MAKE"):
            status = world.gateway(method, target).status
            check_equal(status, 200 if method in methods else 405, f"{method} {target}")
    pawl("resolve", name, "--all", "--yes")


@test
def a_body_is_json_and_forgotten_or_too_large():
    name = ghost()
    for target in ("/v1/intents/a/resolve", f"/v1/gateways/{GHOST}/dead", "/v1/routes/adopt"):
        check_equal(world.gateway("POST", target, body={"any": "thing"}).status, 200)
        refused(world.gateway("POST", target, {"Content-Type": "application/json"}, b"1" * (1 << 21)), 413, "too-large")
        refused(world.gateway("POST", target, body=b"{}"), 415, "unsupported-media-type")
    for target in ("/v1/routes", "/v1/intents", "/v1/gateways/doubt"):
        refused(world.gateway("GET", target, body=b"x"), 400, "invalid-request")
    pawl("resolve", name, "--all", "--yes")


@test
def what_the_gateway_says_of_forwarded_requests_is_as_described():
    one, nobody = Holder(), Holder("nobody")
    check_equal(one.send().status, 200)
    check_equal(world.gateway("GET", f"{one.path}/x").body, b"done")
    refused(world.gateway("PUT", f"{one.path}/x", body=b"x"), 428, "token-required")
    refused(world.gateway("PUT", f"{one.path}/x", {"Fencing-Token": "1"}, b"x"), 400, "malformed-token")
    refused(world.gateway("PUT", f"{nobody.path}", {"Fencing-Token": one.grant["fencing_token"]}, b"x"), 403, "wrong-lease")
    refused(world.gateway("PUT", nobody.path, {"Fencing-Token": nobody.grant["fencing_token"]}, b"x"), 502,
            "upstream-unavailable")
    refused(world.gateway("GET", nobody.path), 502, "upstream-unavailable")
    refused(world.gateway("GET", f"{one.path}/%2F"), 400, "invalid-request")
    refused(world.gateway("GET", "/not/a/route"), 404, "not-found")
    before = dict(one.grant)
    one.succeed()
    refused(world.gateway("PUT", f"{one.path}/x", {"Fencing-Token": before["fencing_token"]}, b"x"), 412, "stale-token")
    refused(one.send("busy"), 504, "outcome-unknown")
    one.succeed().stays_in_doubt()
    pawl("resolve", one.name, "--all", "--yes")


@test
def a_death_that_is_recorded_in_part_is_not_told_as_one_that_certainly_is_not():
    name = ghost(0x80)
    relay = Relay(world.redis)
    daemon = Daemon("pawl-gateway", "--redis", relay.url, "--keys", world.keys_file, "--listen", "127.0.0.1:0")
    world.daemons.append(daemon)
    client = world.client(daemon)
    wait_until(lambda: client("GET", "/readyz").status == 200, "the gateway behind the relay is ready")
    hold = relay.hold(TO_REDIS, function_of("intent_takeover") + b"\r\n$1\r\n1\r\n$9\r\npawl:{80}")
    told = Later(client, "POST", f"/v1/gateways/{GHOST}/dead")
    hold.wait_met()
    world.redis("ACL", "SETUSER", "default", "-fcall")
    hold.go()
    answer = told.get()
    world.redis("ACL", "SETUSER", "default", "+fcall")
    refused(answer, 504, "outcome-unknown")
    check_equal(client("POST", f"/v1/gateways/{GHOST}/dead").status, 200)
    pawl("resolve", name, "--all", "--yes")


def close():
    release.set()
    upstream.close()
    check_equal(upstream.wrong, [])
    world.close()


main(close)
