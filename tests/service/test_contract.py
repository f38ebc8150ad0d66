#!/usr/bin/python3
"""api/openapi.yaml: agrees with problems.def, is what both services serve; and the check of answers bites."""

import copy
import json
import re

from world import BUILD, ROOT, World, Wrong, check, check_equal, check_in, main, test

WORLD = World()
PROBLEM = re.compile(r'^PROBLEM\((\w+), "([a-z-]+)", (\d+), ([01]), (\d+), "([^"]*)",', re.M)


def references(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for one in node.values():
            yield from references(one)
    elif isinstance(node, list):
        for one in node:
            yield from references(one)


@test
def every_problem_is_described_with_its_code_title_and_whether_to_retry():
    rows = PROBLEM.findall((ROOT / "api/problems.def").read_text(encoding="utf-8"))
    check(len(rows) > 25, f"only {len(rows)} rows were read")
    described = {}
    for name, schema in World.contract.document["components"]["schemas"].items():
        if name.startswith(("problem.", "gate.")) and "const" in schema["properties"]["code"]:
            own = schema["properties"]
            described.setdefault(own["code"]["const"], []).append((own["title"]["const"], own["retryable"]["const"]))
            check_equal(own["type"]["const"], "/problems/" + own["code"]["const"])
            check_equal(name.partition(".")[2], own["code"]["const"])
    for _, code, _, retryable, _, title in rows:
        for one in described.get(code, []):
            check_equal(one, (title, retryable == "1"), code)
    check_equal(set(described), {row[1] for row in rows})


@test
def every_problem_comes_with_its_own_status():
    rows = {row[1]: row[2] for row in PROBLEM.findall((ROOT / "api/problems.def").read_text(encoding="utf-8"))}
    contract = World.contract
    for template, item in contract.document["paths"].items():
        for method, operation in item.items():
            if not isinstance(operation, dict) or "/v1/check" in template:
                continue
            for status, response in operation["responses"].items():
                content = contract._at(response).get("content", {}).get("application/problem+json")
                for one in content["schema"].get("anyOf", []) if content else []:
                    code = one["$ref"].rpartition(".")[2]
                    if code != "not-ready":
                        check_equal(rows[code], status, f"{method} {template}: {code}")


@test
def nothing_in_the_description_is_unused_or_missing():
    document = World.contract.document
    named = set(references(document))
    for reference in named:
        node = document
        for part in reference.removeprefix("#/").split("/"):
            check(part in node, f"{reference} is not there")
            node = node[part]
    there = {f"#/components/{kind}/{name}" for kind, all_of in document["components"].items() for name in all_of
             if kind != "securitySchemes"}
    check_equal(there - named, set())


@test
def every_operation_lists_head_where_there_is_get_and_options_everywhere():
    for template, item in World.contract.document["paths"].items():
        check_in("options", item, template)
        if "get" in item:
            check_equal(item["head"]["responses"], item["get"]["responses"], template)


@test
def the_contract_for_people_names_every_address_and_every_code():
    text = (ROOT / "docs/contract.md").read_text(encoding="utf-8")
    for template in World.contract.document["paths"]:
        check_in(template, text)
    for _, code, status, *_ in PROBLEM.findall((ROOT / "api/problems.def").read_text(encoding="utf-8")):
        check_in(f"`{code}`", text)
        row = next((line for line in text.splitlines() if line.startswith("|") and f"`{code}`" in line and "| no |" in line), None)
        if row is not None:
            check_in(status, row)


@test
def both_services_serve_the_description():
    for client in (WORLD.lease, WORLD.gateway):
        served = client("GET", "/openapi.json").json
        check(served == json.loads(json.dumps(World.contract.document)), f"{client.service} serves another: run make in {BUILD}")


# -- the check bites

def good_answers():
    grant = WORLD.lease("POST", "/v1/leases/planted", body={})
    held = WORLD.lease("POST", "/v1/leases/planted", body={})
    token = grant.json["fencing_token"]
    put = ("PUT", "/v1/resources/planted", [("Fencing-Token", token)])
    written = WORLD.gateway(*put, body=b"x")
    stale = WORLD.gateway(put[0], put[1], [("Fencing-Token", token.replace("1;", "2;", 1))], body=b"x")
    options = WORLD.gateway("OPTIONS", "/livez")
    return {"grant": ("lease", "POST", "/v1/leases/planted", [], grant), "held": ("lease", "POST", "/v1/leases/planted", [], held),
            "written": ("gateway", *put, written), "refused": ("gateway", *put, stale),
            "options": ("gateway", "OPTIONS", "/livez", [], options)}


GOOD = {}


def planted(which, change, says, what):
    """The check accepts the answer as it came, and refuses it after change(answer)."""
    if not GOOD:
        GOOD.update(good_answers())
    service, method, target, headers, answer = GOOD[which]
    World.contract.hold(service, method, target, headers, answer)
    wrong = copy.deepcopy(answer)
    change(wrong)
    try:
        World.contract.hold(service, method, target, headers, wrong)
    except Wrong as error:
        check_in(says, str(error), what)
        return
    check(False, f"{what}: a wrong answer went through: {wrong}")


def with_member(answer, name, value):
    body = answer.json
    if value is None:
        del body[name]
    else:
        body[name] = value
    answer.body = json.dumps(body).encode()


def with_header(answer, name, value):
    answer.headers = [pair for pair in answer.headers if pair[0].lower() != name.lower()]
    if value is not None:
        answer.headers.append((name, value))


def member(name, value=None):
    """None: it is taken away."""
    return lambda answer: with_member(answer, name, value)


def header(name, value=None):
    return lambda answer: with_header(answer, name, value)


def other(attribute, change):
    return lambda answer: setattr(answer, attribute, change(getattr(answer, attribute)))


HELD = "/v1/leases/planted -> 409: $: "
PLANTED = {
    "a status that is not listed, or not that of the code": [
        ("grant", other("status", lambda _: 202), "not listed"), ("held", other("status", lambda _: 503), "none of")],
    "a missing member": [
        *(("grant", member(name), name) for name in ("token", "lease_id", "meta", "waited_ms")),
        *(("held", member(name), HELD) for name in ("detail", "instance", "retryable", "holder", "expires_in_ms")),
        ("refused", member("lease"), "/v1/resources/planted -> 403: $: ")],
    "an additional member": [
        *((which, member("lease_ids", "x"), "lease_ids") for which in ("grant", "held", "refused")),
        ("held", member("lease_id", "x" * 22), "lease_id")],
    "a member of the wrong type or value": [
        ("grant", member("token", "34"), "token"), ("grant", member("token", 10 ** 15), "token"),
        ("held", member("retryable", False), "retryable"), ("held", member("type", "/problems/lease-lost"), "type"),
        ("held", member("status", 400), "status")],
    "a missing header": [
        *((which, header(name), f"{name} is missing") for which, name in (
            ("grant", "Fencing-Token"), ("held", "Cache-Control"), ("written", "ETag"), ("written", "Fencing-Status"),
            ("refused", "Fencing-Status")))],
    "a wrong or unlisted header": [
        ("written", header("ETag", 'W/"abcdefghijklmnop"'), "ETag"),
        ("written", header("Fencing-Status", "pawl;verdict=accepted"), "Fencing-Status"),
        ("held", header("Fencing-Token", "34"), "Fencing-Token is not listed"), ("held", header("Lease-Id", "34"), "Lease-Id is not listed"),
        ("grant", lambda answer: answer.headers.append(("Cache-Control", "no-store")), "came 2 times"),
        ("options", header("Allow", "GET, HEAD"), "Allow")],
    "a wrong body": [
        ("grant", other("body", lambda body: body[:-1]), "not JSON"), ("grant", other("body", lambda body: b'{"token":1,' + body[1:]), "comes twice"),
        ("written", other("body", lambda _: b"x"), "no body is listed"), ("held", header("Content-Type", "application/json"), "is not listed")],
}


@test
def whatever_is_wrong_with_an_answer_is_noticed():
    for what, faults in PLANTED.items():
        for which, change, says in faults:
            planted(which, change, says, what)


main(WORLD.close)
