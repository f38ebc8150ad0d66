#!/usr/bin/python3
"""What a web page makes a browser send: it does nothing at Pawl's own addresses, and what is no browser is not touched."""

import os
import tempfile

import yaml

from world import ROOT, Daemon, World, check, check_equal, check_in, main, test
from world.client import Client
from world.upstream import Upstream, route, routes_file
from world.world import run_daemon

FOLDER = tempfile.mkdtemp(dir=os.environ["TMPDIR"])
UPSTREAM = Upstream()
WORLD = World("--allow-host", "pawl.example", "--allow-host=10.0.0.7", "--allow-origin", "https://ops.example", gateway_flags=[
    "--ui-listen", "127.0.0.1:0", "--routes", routes_file(FOLDER, [route(UPSTREAM, "/orders/{id}/**", "orders:{id}")])])
PAGES = Client("gateway", WORLD.gateway_daemon.pages_url, WORLD.contract)
WORLD.contract.forwards = True
EVIL = {"origin": {"Origin": "https://evil.example"}, "site": {"Sec-Fetch-Site": "cross-site"}, "host": {"Host": "evil.example"}}


def deeds(name):
    """(client, method, target): what changes something, by whoever can reach it."""
    return [(WORLD.lease, "POST", f"/v1/leases/{name}"), (WORLD.lease, "POST", f"/v1/leases/{name}/force-release"),
            (WORLD.lease, "POST", "/v1/leases"), (WORLD.lease, "POST", "/v1/sessions"),
            (WORLD.lease, "POST", f"/v1/sessions/{'s' * 22}/end"),
            (WORLD.gateway, "POST", f"/v1/intents/{name}/resolve"), (WORLD.gateway, "POST", "/v1/gateways/0123456789abcdef/dead?force=true"),
            (WORLD.gateway, "POST", "/v1/routes/adopt"), (WORLD.gateway, "PUT", f"/v1/resources/{name}"),
            (WORLD.lease, "POST", "/v1/nothing")]


def refused(answer, why):
    check_equal((answer.status, answer.code, answer.json.get("why"), answer.json["retryable"]), (403, "foreign-origin", why, False), f"{answer}")


@test
def what_changes_something_is_refused_for_a_page_of_another_site():
    name = WORLD.name("web")
    held = WORLD.acquire(name)
    for client, method, target in deeds(name):
        for why, headers in EVIL.items():
            refused(client(method, target, headers), why)
            refused(client(method, target, {**headers, "Content-Type": "text/plain"}, body=b'{"names":["a"]}'), why)
    check_equal(WORLD.look(name)["token"], held["token"])
    check_equal(WORLD.look(name)["state"], "held")


@test
def services_of_the_compose_file_answer_by_their_names_and_none_that_leads_to_this_machine():
    """Their ports are on its loopback, as they see it they are not."""
    services = {}
    for path in ("compose.yaml", "compose-sentinel.yaml"):
        for name, one in yaml.safe_load((ROOT / "deploy" / path).read_text(encoding="utf-8"))["services"].items():
            services.setdefault(name, {}).update(one.get("environment", {}))
    own = {"PAWL_REDIS": WORLD.redis.url, "PAWL_KEYS": WORLD.keys_file, "PAWL_LISTEN": "0.0.0.0:0"}
    for name in ("lease-1", "lease-2", "lease-3", "gateway-1", "gateway-2"):
        check(set(own) < set(services[name]), name)
        place = os.path.join(FOLDER, f"compose-{name}")
        kind = name[:-2]
        daemon = Daemon(f"pawl-{kind}", environment={**services[name], **own, "PAWL_STATE_DIR": place})
        client = WORLD.client(daemon)
        target = "/v1/leases" if kind == "lease" else "/v1/marks/a"
        refused(client("GET", target, {"Host": "evil.example"}), "host")
        for host in ("localhost:8700", "127.0.0.1:8702", name, f"{name}:8700", "pawl.example"):
            check(client("GET", target, {"Host": host}).status != 403, f"{name} {host}")
        check_equal(daemon.end(), 0)


@test
def every_origin_and_site_but_the_hosts_own_is_foreign():
    port = WORLD.lease.url.rpartition(":")[2]
    foreign = [("Origin", value) for value in ("null", f"http://127.0.0.1:{port}0", "http://127.0.0.1", f"127.0.0.1:{port}",
                                               f"http://127.0.0.1:{port}@evil.example", f"ftp://127.0.0.1:{port}", "http://", "")]
    foreign += [("Sec-Fetch-Site", value) for value in ("same-site", "cross-site", "", "same-origin, cross-site")]
    for field in foreign:
        refused(WORLD.lease("POST", f"/v1/leases/{WORLD.name()}", [field]), "origin" if field[0] == "Origin" else "site")
    twice = [("Origin", f"http://127.0.0.1:{port}"), ("Origin", "https://evil.example")]
    refused(WORLD.lease("POST", f"/v1/leases/{WORLD.name()}", twice), "origin")
    own = [[("Origin", f"http://127.0.0.1:{port}"), ("Sec-Fetch-Site", "same-origin")], [("Sec-Fetch-Site", "none")],
           [("Origin", "https://ops.example"), ("Sec-Fetch-Site", "cross-site")], [("Origin", f"HTTPS://127.0.0.1:{port}")],
           [("Host", "pawl.example"), ("Origin", "https://pawl.example:443")], [("Host", "pawl.example:80"), ("Origin", "http://pawl.example")]]
    for headers in own:
        WORLD.acquire(WORLD.name(), client=lambda method, target, body, headers=headers: WORLD.lease(method, target, headers, body=body))


@test
def a_host_that_is_not_loopbacks_reads_nothing_either():
    paths = [(WORLD.lease, path) for path in ("/v1/leases", "/v1/leases/a", "/v1/events", "/metrics", "/version", "/nothing", "/")]
    paths += [(WORLD.gateway, path) for path in ("/v1/intents", "/v1/resources/a", "/v1/routes", "/v1/gateways/doubt", "/metrics", "/")]
    for client, path in paths:
        for host in ("evil.example", "evil.example:8700", "127.0.0.1.evil.example", "localhost.evil.example", "xlocalhost", "128.0.0.1",
                     "[::2]", "pawl.example.evil.example", "0.0.0.0", "2130706433", "127.1", "localhost:evil.example"):
            refused(client("GET", path, {"Host": host}), "host")
    for host in ("localhost", "LOCALHOST:8700", "localhost.", "app.localhost", "127.0.0.1", "127.9.9.9:1", "[::1]", "[::1]:8700",
                 "[::ffff:127.0.0.1]", "pawl.example", "Pawl.Example:443", "10.0.0.7:8700"):
        check_equal(WORLD.lease("GET", "/v1/leases", {"Host": host}).status, 200, host)


@test
def what_only_reads_may_be_linked_and_what_streams_may_not():
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for client, path in ((WORLD.lease, "/v1/leases"), (WORLD.lease, "/metrics"), (WORLD.lease, "/problems/lease-held"), (WORLD.gateway, "/v1/intents")):
        check_equal(client("GET", path, link).status, 200, path)
    for why in ("origin", "site"):
        refused(WORLD.lease("GET", "/v1/events", EVIL[why]), why)
    check_equal(WORLD.lease("OPTIONS", "/v1/leases/a", EVIL["origin"]).status, 204)  # without a word of CORS: no page may go on


@test
def routes_the_check_and_health_answer_whoever_asks():
    web = {"Host": "shop.example", "Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    one = WORLD.acquire(WORLD.name("orders"))
    identity = one["lease"].partition(":")[2]
    token = {"Fencing-Token": one["fencing_token"]}
    check_equal(WORLD.gateway("PUT", f"/orders/{identity}/x", {**web, **token}, body=b"x").status, 200)
    check_equal(WORLD.gateway("POST", f"/v1/check/{one['lease']}", {**web, **token}).status, 200)
    for client in (WORLD.lease, WORLD.gateway):
        for path in ("/livez", "/readyz"):
            check_equal([client(method, path, web).status for method in ("GET", "OPTIONS")], [200, 204])


@test
def what_routes_forward_shares_no_origin_with_the_pages_nor_gives_commands():
    dead, html = "/v1/gateways/0123456789abcdef/dead", {"Accept": "text/html"}
    own = {client: {"Origin": client.url, "Sec-Fetch-Site": "same-origin"} for client in (WORLD.gateway, PAGES)}
    for target in ("/ui/", "/ui/doubt", "/ui/app.js"):
        check_equal([client("GET", target).status for client in (WORLD.gateway, PAGES)], [404, 200], target)
    check("--ui-listen" in WORLD.gateway("GET", "/ui/").json["detail"])
    check_equal([client("GET", "/", html).status for client in (WORLD.gateway, PAGES)], [200, 303])
    check_equal([client("GET", "/orders/7/x").status for client in (WORLD.gateway, PAGES)], [200, 404])
    check_equal([client("GET", "/v1/overview", own[client]).status for client in (WORLD.gateway, PAGES)], [200, 200])
    check_equal([client("POST", dead, own[client]).status for client in (WORLD.gateway, PAGES)], [403, 404])
    for field, why in (({"Origin": WORLD.gateway.url}, "origin"), ({"Sec-Fetch-Site": "same-origin"}, "site"), ({"Origin": "https://ops.example"}, "origin")):
        refused(WORLD.gateway("POST", dead, field), why)
    for client in (WORLD.gateway, PAGES):
        check_equal(client("POST", dead).status, 404)  # curl, pawl
    for why, field in EVIL.items():
        refused(PAGES("POST", dead, field), why)


@test
def pages_have_an_address_that_may_be_listened_at():
    routes, port = ("--routes", routes_file(FOLDER, [], "none.json")), WORLD.gateway_daemon.port
    common = [one for one in WORLD.flags if one not in ("--listen", "127.0.0.1:0")]
    for flags, said, status in ((("--ui", *routes), "--ui-listen", 78), (("--ui-listen", "0.0.0.0:0"), "not a loopback address", 78),
                                (("--ui-listen", "x"), "ADDR:PORT", 78), (("--ui-listen", f"127.0.0.1:{port}"), "cannot listen", 69),
                                (("--ui-listen", f"127.0.0.3:{port}"), "its port", 78)):
        done = run_daemon("pawl-gateway", *common, "--listen", f"127.0.0.2:{port}", *flags)
        check_equal((done.returncode, said in done.stderr), (status, True), done.stderr)


@test
def an_operators_command_takes_json_or_nothing(name):
    for client, method, target in deeds(name)[1:2] + deeds(name)[4:8]:
        for headers, body in (({"Content-Type": "text/plain"}, b"{}"), ({}, b"{}"), ({"Content-Type": "text/plain"}, None),
                              ({"Content-Type": "application/x-www-form-urlencoded"}, b"a=b")):
            check_equal((client(method, target, headers, body=body)).code, "unsupported-media-type", f"{target} {headers} {body}")
        for headers, body in (({}, None), ({"Content-Type": "application/json"}, None), ({}, {})):
            check_in(client(method, target, headers, body=body).status, (200, 404, 410), target)


@test
def lists_that_cannot_be_meant_are_refused_at_the_start():
    for flag, value in (("--allow-host", "pawl.example:80"), ("--allow-host", "a,,b"), ("--allow-host", "http://a"), ("--allow-origin", "ops.example"),
                        ("--allow-origin", "https://"), ("--allow-origin", "https://a/"), ("--allow-origin", "https://a, https://b")):
        done = run_daemon("pawl-lease", "--check-config", "--keys", WORLD.keys_file, flag, value)
        check_equal(done.returncode, 78, f"{flag} {value}")
        check(f"{flag} takes" in done.stderr, done.stderr)


main(WORLD.close)
