#!/usr/bin/python3
"""test_cli_admin.py - pawl history, force-release, --trace and -o env against the real services."""

import json
import os
import re
import shlex

from world import World, check, check_equal, check_in, main, test
from world.cli import PAWL, Cli, Server, response
from world.waiting import Waiter

world = World()
pawl = Cli(world)


def kinds(name):
    return [item["type"] for item in world.lease("GET", f"/v1/leases/{name}/history").json["items"]]


def shell(text, **variables):
    """What sh says when it reads this."""
    status, said, error = pawl.shell(text, **variables)
    check_equal(status, 0, f"{text}: {said}{error}")
    return said


# -- history


@test
def history_tells_who_held_it_and_how_each_hold_ended(name):
    world.release(name, world.acquire(name, holder="Zoë"))
    world.acquire(name, holder="second")
    pawl("force-release", name, "--yes", "--reason", "it's gone")
    rows = [line.split("\t") for line in pawl("history", name).stdout.splitlines()]
    check_equal([row[1:] for row in rows], [["granted", name, "1", "Zoë", "-"], ["released", name, "1", "Zoë", "-"],
                                           ["granted", name, "2", "second", "-"], ["forced", name, "2", "second", "it's gone"]])
    check(all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row[0]) for row in rows), rows)
    check_equal(json.loads(pawl("history", name, "-o", "json").stdout)["items"],
                world.lease("GET", f"/v1/leases/{name}/history").json["items"])
    lines = pawl.on_terminal("history", name).splitlines()
    check_equal(lines[0].split(), ["TIME", "WHAT", "LEASE", "TOKEN", "HOLDER", "REASON"])
    check_equal(len({line.index(name) for line in lines[1:]}), 1, lines)
    check_equal(pawl("history", world.name()).stdout, "", "nobody ever took it")
    check_in("NAME", pawl("history", status=64).stderr)
    check_in("not the name of a lease", pawl("history", "a/b", status=64).stderr)


@test
def get_tells_who_is_in_line_and_ls_whose_leases_it_lists(name):
    world.acquire(name, holder="held by\x20me"), world.acquire(name + "-b", holder="another")
    for number in range(12):
        Waiter(world, world.lease, name, f"w{number:02}", wait_ms=3000)
    said = pawl("get", name).stdout.splitlines()
    check_equal([re.sub(r", for .*", "", line) for line in said[2:]], [f"  in line: w{number:02}" for number in range(10)])
    check_equal([line.split("\t")[0] for line in pawl("ls", "--held-by", "held by me").stdout.splitlines()], [name])


@test
def sessions_lists_those_that_live():
    opened = world.lease("POST", "/v1/sessions", body={"holder": "node-3"}).json
    headers = {"Session-Secret": opened["session_secret"]}
    check_equal(world.lease("POST", f"/v1/leases/{world.name()}", headers, {"session": opened["session"]}).status, 201)
    [row] = [line.split("\t") for line in pawl("sessions").stdout.splitlines() if line.startswith(opened["session"])]
    check_equal(row[1:4], ["node-3", "1", "0"])
    check_in(f"SESSION='{opened['session']}' SESSION_HOLDER='node-3' SESSION_LEASES='1' ", pawl("sessions", "-o", "env").stdout)
    check_equal([one["session"] for one in json.loads(pawl("sessions", "-o", "json").stdout)["items"]], [opened["session"]])


# -- force-release


@test
def force_release_without_a_terminal_needs_yes(name):
    world.acquire(name)
    check_in("--yes", pawl("force-release", name, "--reason", "x", status=64, stdin=name + "\n").stderr)
    check_equal(kinds(name), ["granted"])
    check_in("token 1 has ended", pawl("force-release", name, "--yes").stdout)
    check_equal(kinds(name), ["granted", "forced"])


@test
def force_release_on_a_terminal_ends_nobody_when_it_shows_nobody(name):

    def comes():
        world.acquire(name)
        return name
    check_in(f"{name}: nobody held it\n", pawl.on_terminal("force-release", name, answers=[("to go on: ", comes)]))
    check("forced" not in kinds(name), kinds(name))


@test
def force_release_on_a_terminal_shows_the_holder_and_asks_for_the_name_again(name):
    world.acquire(name, holder="billing-7")
    for wrong in ("", "y", "yes", name[:-1], name + "x", "x" * len(name)):
        text = pawl.on_terminal("force-release", name, "--reason", "x", answers=[("to go on: ", wrong)], status=1)
        check_in("billing-7", text)
        check_in("nothing was changed", text)
        check_equal(kinds(name), ["granted"], wrong)
    text = pawl.on_terminal("force-release", name, "--reason", "host3 is gone", answers=[("to go on: ", name)])
    check_in("token 1 has ended", text)
    check_equal(kinds(name), ["granted", "forced"])


@test
def who_came_while_the_name_was_typed_is_not_ended(name):
    first = world.acquire(name, holder="first")

    def answer():
        world.release(name, first)
        world.acquire(name, holder="second")
        return name

    check_in("token-moved-on", pawl.on_terminal("force-release", name, answers=[("to go on: ", answer)], status=1))
    check_equal([one["holder"] for one in world.look(name)["holders"]], ["second"])


@test
def force_release_of_a_token_that_is_over_ends_nothing(name):
    world.release(name, world.acquire(name))
    world.acquire(name)
    check_in("token-moved-on", pawl("force-release", name, "--expect-token", "1", "--yes", status=1).stderr)
    check_equal(kinds(name)[-1], "granted")
    check_equal(json.loads(pawl("force-release", name, "--expect-token", "2", "--yes", "-o", "json").stdout),
                {"released_token": 2})
    check_in("nobody held it", pawl("force-release", name, "--yes").stdout)
    for wrong in ("0", "x", "-1", "1" * 16, ""):
        pawl("force-release", name, "--expect-token", wrong, "--yes", status=64)
    pawl("force-release", name, "--reason", "a\nb", "--yes", status=64)
    pawl("force-release", name, "--reason", "", "--yes", status=64)


# -- --trace


def traced(*words, **more):
    """The curl commands that were told."""
    return [line for line in pawl(*words, "--trace", **more).stderr.splitlines() if line.startswith("curl ")]


@test
def trace_shows_no_secret_and_names_the_variable():
    name, folder = world.name(), world.folder
    line, = traced("acquire", name, "--ttl", "1m", "--holder", "it's me", "-o", "json")
    grant = json.loads(pawl("acquire", name + ":b", "-o", "json").stdout)
    own = "A" * 22
    variables = {"PAWL_LEASE_ID": grant["lease_id"], "PAWL_FENCING_TOKEN": grant["fencing_token"]}
    lines = [line, *traced("acquire", name + ":c", "--meta", json.dumps({"note": own, "lease_id": "x"}), PAWL_LEASE_ID=own)]
    lines += traced("renew", name + ":b", **variables)
    with open(os.path.join(folder, "body"), "w", encoding="utf-8") as file:
        file.write("body")
    lines += traced("put", name + ":b", os.path.join(folder, "body"), "--idempotency-key", "k'1", **variables)
    lines += traced("put", name + ":b", stdin="more", **variables)
    lines += traced("cat", name + ":b", "--fenced", **variables)
    lines += traced("rm", name + ":b", **variables)
    lines += traced("release", name + ":b", **variables)
    text = "\n".join(lines)
    check_equal(len(lines), 8, text)
    signature = grant["fencing_token"].split("sig=")[1]
    for secret in (own, grant["lease_id"], grant["fencing_token"], signature):
        check(secret not in text, text)
    check_equal(text.count("$PAWL_LEASE_ID"), 5, text)
    check_equal(text.count("$PAWL_FENCING_TOKEN"), 4, text)


@test
def what_trace_tells_does_the_same(name):
    line, = traced("acquire", name, "--ttl", "1m", "--holder", "it's $(me) `x` \\ \"q\"", "-o", "json", PAWL_LEASE_ID="b" * 30)
    again = json.loads(shell(line, PAWL_LEASE_ID="b" * 30))
    check_equal((again["token"], again["holder"], again["lease_id"]), (1, "it's $(me) `x` \\ \"q\"", "b" * 30))
    variables = {"PAWL_LEASE_ID": "b" * 30, "PAWL_FENCING_TOKEN": again["fencing_token"]}
    line, = traced("put", name + "/é x", stdin="v1", **variables)
    check_in("@-", line)
    shell(f"printf v2 | {line}", **variables)
    check_equal(pawl("cat", name + "/é x").stdout, "v2")
    for words in (("get", name), ("ls", "--prefix", name), ("history", name)):
        line, = traced(*words)
        check_in(name, shell(line))
    line, = traced("release", name, **variables)
    line, = traced("force-release", name, "--yes", "--reason", "it's \"over\"")
    world.acquire(name)
    check_equal(json.loads(shell(line)), {"released_token": 2})
    check_equal(kinds(name)[-1], "forced")


# -- -o env


@test
def env_output_of_every_command_is_for_eval(name):
    hostile = "x' $(touch /tmp/never) `id` \\"
    world.acquire(name, holder=hostile)
    pawl_path = shlex.quote(os.path.dirname(PAWL))
    run = f"PATH={pawl_path}:$PATH; "
    check_equal(shell(run + f'eval "$(pawl get {name} -o env)"; printf %s "$LEASE_STATE|$LEASE_TOKEN|$LEASE_HOLDER"'),
                f"held|1|{hostile}")
    check_equal(shell(run + f'pawl ls --prefix {name} -o env | while read -r line; do eval "$line"; '
                            'printf %s "$LEASE|$LEASE_HOLDER"; done'), f"{name}|{hostile}")
    check_equal(shell(run + f'eval "$(pawl force-release {name} --yes -o env)"; printf %s "$LEASE_RELEASED_TOKEN"'), "1")
    check_equal(shell(run + f'pawl history {name} -o env | while read -r line; do eval "$line"; '
                            'printf %s "$EVENT_TYPE|$EVENT_TOKEN|$EVENT_HOLDER/"; done'),
                f"granted|1|{hostile}/forced|1|{hostile}/")
    check_equal(shell(run + f'eval "$(pawl acquire {name} -o env)"; eval "$(printf v | pawl put {name} -o env)"; '
                            f'pawl cat {name} >&2; eval "$(pawl release {name} -o env)"; '
                            'printf %s "$RESOURCE_KEY|${PAWL_LEASE_ID-unset}|${PAWL_TOKEN-unset}"'), f"{name}|unset|unset")


@test
def a_hostile_holder_stays_on_its_line():
    """Else "while read line; do eval" would run what stands behind the line feed."""
    holder = json.dumps("x'\n touch /tmp/pawl-was-here #\u009b")
    items = {"ls": f'{{"items":[{{"lease":"a","state":"held","token":1,"holders":[{{"holder":{holder}}}]}}],"next_cursor":null}}',
             "history": f'{{"items":[{{"id":"1","type":"granted","lease":"a","token":1,"holder":{holder},"at_ms":1,"reason":""}}]}}'}
    for command, body in items.items():
        server = Server(lambda request, body=body: response(200, body.encode()))
        text = pawl(command, "-o", "env", *(["a"] if command == "history" else []), PAWL_LEASE_URL=server.url).stdout
        check_equal(text.count("\n"), 1, text)
        check_equal([word for word in shlex.split(text) if "touch" in word],
                    [("LEASE" if command == "ls" else "EVENT") + "_HOLDER=x'? touch /tmp/pawl-was-here #?"])


main(world.close)
