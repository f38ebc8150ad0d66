#!/usr/bin/python3
"""api/openapi.yaml: agrees with problems.def, is what both services serve; and the check of answers bites."""

import copy
import json
import random
import re

import jsonschema
import yaml

from world import BUILD, ROOT, Client, Contract, World, Wrong, check, check_equal, check_in, main, test

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
def the_addresses_of_health_that_documents_name_are_there():
    for path in sorted((ROOT / "docs").rglob("*.md")):
        for named in re.findall(r"`(?:GET )?(/[a-z]+z)`", path.read_text(encoding="utf-8")):
            check_in(named, World.contract.document["paths"], str(path))


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
    described = yaml.load((ROOT / "api/openapi.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    for served in (World.contract.document, *(client("GET", "/openapi.json").json for client in (WORLD.lease, WORLD.gateway))):
        check(served == described, f"another is served, or held against: run make in {BUILD}")


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


# -- and is right about schemas

class Noting(Contract):
    """Keeps what it held against what."""

    def __init__(self):
        super().__init__()
        self.held = []

    def _hold_schema(self, where, schema, value):
        super()._hold_schema(where, schema, value)
        self.held.append((schema, value))


def changed(chance, value, pool):
    """A copy that is another one, mostly, somewhere in it."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        name = chance.choice([*value, "more"])
        own = {one: value[one] for one in value if one != name}
        return own if name in value and chance.random() < 0.3 else {**own, name: changed(chance, value.get(name), pool)}
    if isinstance(value, list) and chance.random() < 0.9:
        at = chance.randrange(len(value) + 1)
        return [*value[:at], changed(chance, value[at] if at < len(value) else chance.choice(pool), pool), *value[at + 1:]]
    return chance.choice(pool)


@test
def jsonschema_says_the_same_of_answers_that_are_changed_by_chance():
    seed = random.randrange(1 << 32)
    chance, noting = random.Random(seed), Noting()
    lease, gateway = (Client(one.service, one.url, noting) for one in (WORLD.lease, WORLD.gateway))
    for method, path, body in (("POST", "a", {"ttl_ms": 600000}), ("POST", "a", {}), ("POST", "b", {"mode": "permits", "permits": 3, "meta": {"x": "y"}}), ("GET", "a", None),
                               ("GET", "b", None), ("GET", "a/history", None), ("POST", "-", {})):
        lease(method, f"/v1/leases/{path}", body=body)
    for client in (lease, gateway):
        for path in ("/readyz", "/v1/overview", "/v1/leases", "/v1/intents", "/v1/nowhere"):
            client("GET", path)
    lease("POST", "/v1/sessions", body={})
    pool = [None, True, False, 0, 1, -1, 7.5, 10 ** 15, "", "a", "A" * 300, "exclusive", "permits", [], ["a", "a"], {}, {"a": 1}, *(value for _, value in noting.held)]
    kinds = {"right": 0, "wrong": 0}
    root = jsonschema.Draft202012Validator(noting.document)
    for schema, value in noting.held:
        for _ in range(100):
            other = changed(chance, value, pool)
            wrong, is_right = noting.schemas.wrong(schema, other), root.evolve(schema=schema).is_valid(other)
            check((wrong is None) == is_right, f"seed {seed}: {wrong}, while jsonschema says {is_right}, of {json.dumps(other)[:500]} by {json.dumps(schema)[:200]}")
            kinds["right" if is_right else "wrong"] += 1
    check(min(kinds.values()) > 200, f"{kinds}")


main(WORLD.close)
