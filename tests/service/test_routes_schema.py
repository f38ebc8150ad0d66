#!/usr/bin/python3
"""api/routes.schema.json, docs/routes.md and the parser agree: on every example, and on what is wrong."""

import json
import os
import re
import subprocess
import tempfile

import jsonschema

from world import ROOT, Keys, check, check_equal, check_in, main, run_daemon, test

CONFIG = 78
FOLDER = tempfile.TemporaryDirectory(prefix="pawl-routes-")
KEYS = os.path.join(FOLDER.name, "keys")
Keys().write(KEYS)
SCHEMA = json.loads((ROOT / "api/routes.schema.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs/routes.md").read_text(encoding="utf-8")
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
MEMBERS = SCHEMA["$defs"]["route"]["properties"]

ORDERED = {"match": "/orders/{id}/**", "lease": "order:{id}", "upstream": "http://127.0.0.1:9000", "guarantee": "ordered"}
ONE_URL = {**ORDERED, "match": "/orders/{id}", "guarantee": "committed", "if_match": True}
CHECKS = {**ORDERED, "guarantee": "committed", "upstream_checks": True}
ADMITTED = {**ORDERED, "guarantee": "admitted"}


def with_(base, **members):
    return {**base, **members}


def without(base, *names):
    return {name: value for name, value in base.items() if name not in names}


def table(*routes):
    return {"routes": list(routes)}


def parser(document, *flags):
    """(whether it is taken, what was said)"""
    path = os.path.join(FOLDER.name, "routes.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(document if isinstance(document, str) else json.dumps(document))
    done = run_daemon("pawl-gateway", "--keys", KEYS, "--check-config", "--routes", path, *flags)
    check_in(done.returncode, (0, CONFIG), repr(done))
    check_equal(done.stderr.count("\n"), 0 if done.returncode == 0 else 1, done.stderr)
    return done.returncode == 0, done.stderr


def certificate(name):
    """The path of a certificate of its own, and of its key."""
    cert, key = (os.path.join(FOLDER.name, name + end) for end in (".pem", ".key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", f"/CN={name}",
                    "-keyout", key, "-out", cert], check=True, capture_output=True, timeout=60)
    return cert, key


def file_of(name, text, mode=0o600):
    path = os.path.join(FOLDER.name, name)
    with open(path, "w", encoding="latin-1") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


CA_FILE, CA_KEY = certificate("ca")
AUTHORIZATION = file_of("authorization", "Bearer what-the-upstream-knows\n")


def on_this_machine(document):
    """The same with files that are there."""
    there = {"ca_file": CA_FILE, "cert_file": CA_FILE, "key_file": CA_KEY}
    return table(*({**route, **({"upstream_tls": {name: there[name] for name in route["upstream_tls"]}} if "upstream_tls" in route else {}),
                    **({"upstream_authorization_file": AUTHORIZATION} if "upstream_authorization_file" in route else {})}
                   for route in document["routes"]))


def schema(document):
    return VALIDATOR.is_valid(document)


def both_take(document, where):
    errors = [f"{list(error.absolute_path)}: {error.message}" for error in VALIDATOR.iter_errors(document)]
    check_equal(errors, [], where)
    taken, said = parser(on_this_machine(document))
    check(taken, f"{where}: {said}")


# -- examples

@test
def every_example_of_the_page_is_taken_by_the_schema_and_by_the_gateway():
    blocks = re.findall(r"^```json\n(.*?)^```$", PAGE, re.M | re.S)
    check(len(blocks) >= 4, f"only {len(blocks)} examples were found")
    for block in blocks:
        both_take(json.loads(block), block)


@test
def every_whole_example_of_the_schema_is_taken():
    check(len(SCHEMA["examples"]) >= 3, "too few")
    for document in SCHEMA["examples"]:
        both_take(document, json.dumps(document))


def surroundings(member, example):
    """A route that this example of a member makes sense in."""
    if member == "match":
        return with_(ORDERED, lease="x")
    if member == "lease":
        return with_(ORDERED, match="/{id}")
    if member == "upstream_tls":
        return with_(ORDERED, upstream="https://h")
    if member == "store":
        return with_(ADMITTED, check="mark")
    if member in ("upstream_checks", "if_match"):
        return without(ONE_URL, "if_match")
    if member == "guarantee":
        check_equal(example, "ordered")
    if member in ("body", "incomplete"):
        return with_(ORDERED, body="stream", incomplete="in-doubt")
    return ORDERED


@test
def every_example_of_a_member_is_taken_and_its_default_changes_nothing():
    for member, described in MEMBERS.items():
        check(described.get("examples"), f"{member} has no example")
        for example in described["examples"]:
            both_take(table(with_(surroundings(member, example), **{member: example})), f"{member}: {example}")
        if "default" in described:
            base = CHECKS if member == "if_match" else ORDERED
            both_take(table(with_(base, **{member: described["default"]})), member)


@test
def every_example_inside_of_a_member_is_taken():
    unknown = {"grace_ms": None, "probe": None}
    for choice in MEMBERS["unknown"]["oneOf"]:
        for name, described in choice.get("properties", {}).items():
            unknown[name] = [{name: example} for example in described["examples"]]
    definitions = SCHEMA["$defs"]
    headers = [{side: one} for side in ("request", "answer") for one in definitions["passing"]["examples"]]
    headers += [{"answer": {"allow": one}} for one in definitions["names"]["examples"]]
    for member, examples in (("unknown", unknown["grace_ms"] + unknown["probe"]), ("headers", headers)):
        for example in examples:
            both_take(table(with_(ORDERED, **{member: example})), f"{member}: {example}")


@test
def every_member_is_described_in_the_schema_and_on_the_page():
    def properties(node):
        if isinstance(node, dict):
            yield from node.get("properties", {}).items() if "$defs" in node or "description" in node else ()
            for name, one in node.items():
                if name not in ("allOf", "examples"):
                    yield from properties(one)
        elif isinstance(node, list):
            for one in node:
                yield from properties(one)

    found = dict(properties(SCHEMA))
    check(set(MEMBERS) | {"routes", "request", "answer", "allow", "deny", "grace_ms", "probe"} <= set(found), f"only {sorted(found)}")
    for name, described in found.items():
        check(len(described.get("description", "")) > 10, f"{name} is not described")
        check(re.search(rf'[`"]{name}["`]', PAGE), f"{name} is not on the page")
    rows = set(re.findall(r"^\| `(\w+)` \|.*\|.*\|.*\|$", PAGE, re.M))
    check_equal(rows, set(MEMBERS))


@test
def the_schema_has_the_members_that_the_gateway_takes_and_no_others():
    """Its sentence about a member that is there, but of a wrong kind, is another than about one that it does not know."""
    for member in [*MEMBERS, "method", "$schema", "Match", "comment"]:
        route = with_(ORDERED, **{member: {"no": "such"}})
        taken, said = parser(table(route))
        check(not taken and not schema(table(route)), member)
        check_equal("is not known here" in said, member not in MEMBERS, said)


@test
def defaults_and_limits_on_the_page_are_those_of_the_schema():
    rows = {row[0]: row for row in re.findall(r"^\| `(\w+)` \|(.*)\|(.*)\|(.*)\|$", PAGE, re.M)}
    for member, described in MEMBERS.items():
        if "default" in described:
            check_in(f"`{json.dumps(described['default'])}`", rows[member][2], member)
        if "minimum" in described:
            check_in(f"{described['minimum']:,} to {described['maximum']:,}", rows[member][3], member)
    check_in("1,000 to 86,400,000", PAGE)


# -- what is wrong

STORE = "Zk3v9a1BQ2x8_-3v9a1BQ2x8"
WRONG = [
    *(without(ORDERED, member) for member in ("match", "lease", "upstream", "guarantee")),
    *(with_(ORDERED, match=match) for match in (
        "", "a", "/a//b", "/a/../b", "/.", "/..;x", "/**/a", "/a**", "/*", "/{X}", "/{}", "/a{x}", "/a b", "/a?b", "/a#b", "/a\\b",
        "/%c3%a9", "/v1/a", "/v1", "/livez", "/readyz", "/metrics", "/version", "/openapi.json", "/problems/a", "/ui/a", "/" + 1024 * "a", 7, None)),
    *(with_(ORDERED, lease=lease) for lease in ("", ":a", "-", "a/b", "a b", "é", "a}", "{id", "{ID}", 7)),
    *(with_(ORDERED, upstream=upstream) for upstream in (
        "", "h:1", "ftp://h", "http://", "http:///a", "http://u:p@h", "http://h?a", "http://h#a", "http://h:0", "http://h:x", "http://h/{id}", "http://h/ a",
        "unix:", "unix:a", "unix:/", 7)),
    *(with_(ORDERED, guarantee=guarantee) for guarantee in ("", "safe", "Ordered", None, True)),
    *(with_(ORDERED, check=one) for one in ("", "none", True)),
    *(with_(ORDERED, reads=one) for one in ("", "closed", False)),
    *(with_(ORDERED, serial=one) for one in ("true", 1, None)),
    *(with_(ORDERED, timeout_ms=one) for one in (99, 600001, -1, "30s", 100.5)),
    *(with_(ORDERED, max_body=one) for one in (-1, 1099511627777, "1MiB")),
    *(with_(ORDERED, read_methods=one) for one in ("GET", ["PUT"], ["get"], ["CONNECT"], ["TRACE"], ["GET", "GET"], [""], ["G T"], [1])),
    *(with_(ORDERED, unknown=one) for one in (
        "", "grace", None, {}, {"grace_ms": 999}, {"grace_ms": 86400001}, {"grace_ms": "1s"}, {"probe": "POST /a"}, {"probe": "/a"}, {"probe": "GET /a?b"},
        {"probe": "GET a"}, {"grace_ms": 1000, "probe": "GET /a"}, {"hold": True})),
    *(with_(ORDERED, headers=one) for one in (
        [], {"response": {}}, {"request": []}, {"request": {"drop": []}}, {"request": {"allow": ["a"], "deny": ["b"]}}, {"answer": {"deny": "a"}},
        {"answer": {"deny": ["a b"]}}, {"answer": {"deny": [""]}}, {"answer": {"deny": [1]}}, {"answer": {"deny": ["a", "a"]}})),
    *(with_(ORDERED, unsure_statuses=one) for one in (502, ["502"], [199], [600], [502, 502])),
    *(with_(ORDERED, upstream="https://h", upstream_tls=one) for one in (
        {}, "/ca.pem", {"ca_file": ""}, {"ca_file": "ca.pem"}, {"ca_file": 7}, {"cert_file": "/c.pem"}, {"ca_file": "/ca.pem", "key_file": "/c.key"},
        {"cert_file": "c.pem", "key_file": "/c.key"}, {"ca_file": "/ca.pem", "more": "/m"})),
    *(with_(ORDERED, upstream_authorization_file=one) for one in ("", "token", 7)), *(with_(ORDERED, credential=one) for one in ("", "theirs", True)),
    with_(ORDERED, credential="upstream", upstream_authorization_file="/t"), with_(ORDERED, upstream="https://h", ca_file="/ca.pem"),
    *(with_(ADMITTED, check="mark", store=one) for one in ("", "s" * 23, "s" * 25, "s" * 23 + ".", 7)), with_(ADMITTED, store=STORE),
    with_(ADMITTED, check="live", store=STORE), with_(ORDERED, upstream_tls={"ca_file": "/ca.pem"}), with_(ORDERED, upstream="unix:/a", upstream_tls={"ca_file": "/ca.pem"}),
    with_(ORDERED, upstream_checks=True), with_(ORDERED, if_match=True), with_(ORDERED, guarantee="committed"),
    with_(ORDERED, guarantee="committed", upstream_checks=False), with_(CHECKS, if_match=True), with_(CHECKS, upstream_checks="yes"),
    with_(ADMITTED, serial=True), with_(ADMITTED, unknown="hold"), with_(CHECKS, unknown={"grace_ms": 1000}), with_(ADMITTED, reads="fenced"),
    *(with_(ORDERED, **members) for members in ({"body": "stream"}, {"incomplete": "in-doubt"}, {"body": "whole", "incomplete": "in-doubt"},
                                                {"body": "held", "incomplete": "in-doubt"}, {"body": "stream", "incomplete": "no"})),
    with_(ONE_URL, match="/orders/{id}/**"), 7, None, [],
]
RIGHT = [
    ORDERED, ONE_URL, CHECKS, ADMITTED, with_(ADMITTED, serial=False, upstream_checks=False, if_match=False, reads="open"),
    with_(ADMITTED, check="mark", store=STORE), with_(CHECKS, reads="fenced", check="mark"), with_(ORDERED, serial=True, reads="fenced", check="mark", unknown="hold"),
    with_(ORDERED, unknown={"grace_ms": 1000}), with_(ORDERED, unknown={"grace_ms": 86400000}), with_(ORDERED, unknown={"probe": "HEAD /a/{id}"}),
    with_(ORDERED, body="stream", incomplete="never-applied"), with_(ORDERED, timeout_ms=100, max_body=1099511627776), with_(ORDERED, timeout_ms=600000), with_(ORDERED, read_methods=["QUERY", "POST", "X-1"]),
    with_(ORDERED, headers={}), with_(ORDERED, headers={"request": {}, "answer": {"deny": ["X-A"]}}), with_(ORDERED, unsure_statuses=[200, 599]),
    *(with_(ORDERED, match=match, lease="x") for match in ("/", "/a/", "/**", "/{x}", "/caf%C3%A9/a:b;c", "/...", "/v1x", "/a/v1", "/.well-known/x")),
    with_(ORDERED, credential="own", upstream_authorization_file="/t"),
    *(with_(ORDERED, upstream=upstream) for upstream in ("https://h.example:8443/a/b", "http://[::1]:80", "unix:///run/a.sock", "http://h/")),
]


@test
def what_the_schema_refuses_the_gateway_refuses_too_and_names_the_route():
    for route in WRONG:
        document = table(ADMITTED | {"match": "/first", "lease": "first"}, route)
        check(not schema(document), f"the schema takes {route}")
        taken, said = parser(document)
        check(not taken, f"the gateway takes {route}")
        check_in("routes[1]", said, str(route))


@test
def what_the_schema_takes_the_gateway_takes_too():
    for route in RIGHT:
        both_take(table(route), json.dumps(route))


@test
def what_no_schema_can_say_the_gateway_does():
    """What it says of each: tests/unit/test_route.c."""
    other = with_(ADMITTED, match="/notes/{id}", lease="order:{id}")
    for document in (
            table(with_(ORDERED, lease="order:{x}")), table(with_(ORDERED, match="/{id}/{id}")), table(with_(ORDERED, match="/%41", lease="a")),
            table(with_(ORDERED, upstream="http://h:65536")), table(with_(ORDERED, unknown={"probe": "GET /{other}"})),
            table(with_(ORDERED, headers={"request": {"deny": ["If-Match"]}})), table(with_(ONE_URL, lease="all")), table(ONE_URL, other),
            table(ORDERED, with_(ORDERED, match="/orders/7", lease="order:7")), table(ORDERED, other), table(ADMITTED, with_(other, check="mark")),
            table(with_(ADMITTED, check="mark", store=STORE), with_(other, check="mark")), table(with_(CHECKS, reads="fenced"), other)):
        check(schema(document), f"the schema refuses {document}")
        taken, said = parser(document)
        check(not taken, f"the gateway takes {document}")
        check_in("routes[", said)


@test
def the_file_is_strict_json():
    for text, word in (("[]", "JSON"), ("{}", "routes"), ('{"routes":[],"more":1}', "more"), ('{"routes":[],}', "JSON"), (" " * 1048577, "")):
        taken, said = parser(text)
        check(not taken, text[:40])
        check_in("routes.json", said)
        check_in(word, said)
    check(not schema({}) and not schema([]) and not schema({"routes": [], "more": 1}) and not schema({"routes": 1001 * [ORDERED]}), "taken")


# -- where the file is named

@test
def a_bad_table_is_a_bad_configuration_wherever_it_is_named():
    path, config = os.path.join(FOLDER.name, "bad.json"), os.path.join(FOLDER.name, "config.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(table(with_(ORDERED, guarantee="committed")), file)
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"routes": path}, file)
    ways = ([["--routes", path], {}], [["--config", config], {}], [[], {"PAWL_ROUTES": path}])
    for flags, environment in ways:
        for check_only in ([], ["--check-config"]):
            done = run_daemon("pawl-gateway", "--keys", KEYS, *flags, *check_only, environment=environment)
            check_equal(done.returncode, CONFIG, repr(done))
            check_in("bad.json: routes[0] (/orders/{id}/**): guarantee committed needs", done.stderr)
            check_equal(done.stderr.count("\n"), 1, done.stderr)
    missing = run_daemon("pawl-gateway", "--keys", KEYS, "--routes", os.path.join(FOLDER.name, "none"), "--check-config")
    check_equal(missing.returncode, CONFIG)
    check_in("none", missing.stderr)
    check_equal(run_daemon("pawl-lease", "--keys", KEYS, "--routes", path, "--check-config").returncode, CONFIG)


def text_of(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def proven(ca=CA_FILE, cert=CA_FILE, key=CA_KEY):
    return with_(ADMITTED, upstream="https://h.example", upstream_tls={"ca_file": ca, "cert_file": cert, "key_file": key})


@test
def a_file_of_upstream_tls_that_is_no_good_is_a_bad_configuration_that_names_route_and_file():
    cert = text_of(CA_FILE)
    lines = cert.splitlines(keepends=True)
    long = file_of("long.pem", cert)
    os.truncate(long, (64 << 20) + 1)
    bad = [
        (os.path.join(FOLDER.name, "gone.pem"), "cannot be read"),
        (FOLDER.name, "cannot be read"),
        (file_of("empty.pem", ""), "no certificate"),
        (file_of("words.pem", "not a certificate\n"), "no certificate"),
        (CA_KEY, "no certificate"),
        (file_of("der.pem", "".join(chr(byte) for byte in subprocess.run(["openssl", "x509", "-in", CA_FILE, "-outform", "DER"], check=True,
                                                                         capture_output=True, timeout=60).stdout)), "no certificate"),
        (file_of("cut.pem", cert[:len(cert) // 2]), "damaged or cut short"),
        (file_of("line.pem", "".join(lines[:3] + lines[4:])), "damaged or cut short"),
        (file_of("letter.pem", cert.replace(lines[2][:4], "!!!!")), "damaged or cut short"),
        (file_of("hollow.pem", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), "damaged or cut short"),
        (file_of("second.pem", cert + cert[:len(cert) // 2]), "damaged or cut short"),
        (long, "more than"),
        (file_of("shared.pem", cert, 0o660), "others can change it"),
    ]
    key, other_key = text_of(CA_KEY), certificate("another")[1]
    rows = [("ca_file", path, word, proven(ca=path)) for path, word in bad] + [("cert_file", path, word, proven(cert=path)) for path, word in bad]
    rows += [("key_file", path, word, proven(key=path)) for path, word in (
        (os.path.join(FOLDER.name, "gone.key"), "cannot be read"), (CA_FILE, "is refused: others can change it, or read it"),
        (file_of("words.key", "no key\n"), "has no key in it"), (other_key, "is not the key of the certificate of upstream_tls.cert_file"),
        *((file_of(f"{mode:o}.key", key, mode), "is refused: others can change it, or read it") for mode in (0o602, 0o604, 0o620)))]
    for name, path, word, route in rows:
        taken, said = parser(table(with_(ADMITTED, match="/first", lease="first"), route))
        check(not taken, f"{name} {path} is taken")
        check_in(f"routes[1] ({ADMITTED['match']}): upstream_tls.{name}: the file {path} ", said)
        check_in(word, said)
    plain = run_daemon("pawl-gateway", "--keys", KEYS, "--routes", os.path.join(FOLDER.name, "routes.json"))  # without --check-config
    check_equal(plain.returncode, CONFIG, repr(plain))
    check_in("upstream_tls.key_file: ", plain.stderr)
    second = text_of(certificate("other")[0])
    for name, text in (("two", cert + second), ("words", "Ada's authority\n" + cert + "and another's:\n" + second + "\n"), ("crlf", cert.replace("\n", "\r\n")),
                       ("x509", cert.replace(" CERTIFICATE", " X509 CERTIFICATE")), ("key", key + cert)):
        taken, said = parser(table(proven(ca=file_of(name + ".pem", text))))
        check(taken, f"{name}: {said}")
    check(parser(table(proven(key=file_of("group.key", key, 0o640))))[0], "a key that a group reads is refused")


@test
def an_authorization_file_that_is_no_good_is_too_and_nothing_of_it_is_told():
    gone, secret = os.path.join(FOLDER.name, "gone"), "Bearer s3cret"
    for path, word in (
            (gone, "cannot be read"), (FOLDER.name, "cannot be read"), *((file_of("none", text), "one line") for text in ("", "\n")),
            *((file_of(f"mode{mode:o}", secret, mode), "others can change it, or read it") for mode in (0o602, 0o604, 0o620)),
            *((file_of(f"text{number}", text), "one line of at most 4096 visible ASCII") for number, text in enumerate((
                secret + "\r\n", secret + "\n\n", secret + "\nX: y", secret + "\x00", "\t" + secret, " " + secret, secret + " \n", secret + "\x7f", secret + "\xe9",
                secret + 4096 * "x")))):
        taken, said = parser(table(with_(ADMITTED, match="/first", lease="first"), with_(ADMITTED, upstream_authorization_file=path)))
        check(not taken, f"{path} is taken")
        check_in(f"routes[1] ({ADMITTED['match']}): upstream_authorization_file: the file {path} ", said)
        check_in(word, said)
        check("s3cret" not in said, said)
    for text in (secret, secret + "\n", 4096 * "x"):
        check(parser(table(with_(ADMITTED, upstream_authorization_file=file_of("good", text, 0o640))))[0], text)


@test
def the_first_route_of_an_upstream_is_named_and_each_file_is_looked_at():
    secure = [with_(ADMITTED, match=f"/{name}/{{id}}", lease=f"{name}:{{id}}", upstream=f"https://{name[0]}.example", upstream_tls={"ca_file": path})
              for name, path in (("a1", CA_FILE), ("a2", CA_FILE), ("b1", "/nonexistent/b.pem"), ("b2", "/nonexistent/b.pem"))]
    taken, said = parser(table(*secure))
    check(not taken, "taken")
    check_in("routes[2] (/b1/{id}): upstream_tls.ca_file: the file /nonexistent/b.pem", said)
    check(parser(table(*secure[:2]))[0], "those that are there are refused")


@test
def ordered_is_not_to_be_had_on_a_store_that_can_lose():
    taken, said = parser(table(with_(ADMITTED, match="/a", lease="a"), ORDERED), "--allow-unsafe-redis")
    check(not taken, "taken")
    check_in("routes[1] (/orders/{id}/**)", said)
    check_in("--allow-unsafe-redis", said)
    check(parser(table(ADMITTED), "--allow-unsafe-redis")[0], "admitted is refused")


main()
