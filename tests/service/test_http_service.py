#!/usr/bin/python3
"""HTTP as no client should speak it, and as few do: both daemons on raw sockets."""

import gzip
import re

from world import Daemon, World, check, check_equal, check_in, main, test, wait_until
from world.client import Client, Closed

WORLD = World()
QUICK = World("--header-max", "2KiB", "--header-timeout", "300ms", "--body-timeout", "400ms", "--suspend-always")
NAMES = (f"smuggled:{i}" for i in range(10 ** 6))
CRLF = "\r\n"


def request(method, target, *headers, body="", host="Host: localhost"):
    lines = [f"{method} {target} HTTP/1.1"] + ([host] if host else []) + list(headers)
    return CRLF.join(lines) + CRLF * 2 + body


def answers_are_done(raw):
    """The server has closed, and nothing more came."""
    check(raw.is_closed(), f"something more came: {raw.buffer[:300]!r}")
    raw.close()


# -- the rules are in tests/component/test_http*.c; here is what a daemon's flags and routes make of them


@test
def the_limit_of_a_head_is_that_of_the_flag():
    for daemon, most in ((WORLD.lease_daemon, 8192), (WORLD.gateway_daemon, 32768), (QUICK.lease_daemon, 2048)):
        for line in ("GET /" + "a" * most + " HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /" + "a" * 200_000):
            raw = WORLD.raw(daemon)
            raw.send(line)
            answer = raw.answer("GET", "/livez")
            check_equal((answer.status, answer.code), (431, "header-too-large"))
            check_in(f"together may have {most} bytes (--header-max)", answer.json["detail"])
            answers_are_done(raw)
        raw = WORLD.raw(daemon)
        raw.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n" + "X: y\r\n" * 127 + "\r\n")
        check_equal(raw.answer("GET", "/livez").status, 200)
        raw.close()


# -- which address, which method

PAGES = ["/livez", "/readyz", "/metrics", "/version", "/openapi.json", "/problems/lease-held", "/ui/", "/ui/pawl.css"]
OWN = {"lease": ["/v1/leases/a", "/v1/leases"], "gateway": ["/v1/resources/a/b", "/v1/marks/a"]}


@test
def head_is_get_without_the_body():
    for client in (WORLD.lease, WORLD.gateway):
        for page in PAGES + OWN[client.service]:
            get, head = client("GET", page), client("HEAD", page)
            check_equal((head.status, head.body), (get.status, b""), page)
            check_equal(head.header("Content-Type"), get.header("Content-Type"), page)
            if page not in ("/metrics", "/readyz", "/v1/leases"):  # what changes between two looks
                check_equal(head.header("Content-Length"), get.header("Content-Length"), page)


@test
def a_method_that_an_address_does_not_take_is_405_with_those_that_it_takes_and_options_tell_them():
    for client in (WORLD.lease, WORLD.gateway):
        for page in PAGES + OWN[client.service]:
            taken = World.contract.allowed(client.service, page)
            for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "BREW", "get"):
                if method not in taken:
                    answer = client(method, page)
                    check_equal((answer.status, answer.code), (405, "method-not-allowed"), f"{method} {page}")
                    check_equal(set(answer.header("Allow").split(", ")), taken, f"{method} {page}")
            answer = client("OPTIONS", page)
            check_equal((answer.status, answer.body), (204, b""), page)
            check_equal(client("OPTIONS", page, body=b"x").code, "invalid-request", page)


@test
def an_unknown_address_is_404_whatever_the_method():
    for client in (WORLD.lease, WORLD.gateway):
        for page in ("/v1/", "/v2/leases/a", "//livez", "/livez/", "/LIVEZ", "/%6civez", "/v1/leases/a/b/c", "/problems/",
                     "/openapi.yaml", "/v1/leases/a/histories", "/../livez", "/v1/session"):
            for method in ("GET", "HEAD", "POST", "DELETE", "BREW"):
                check_equal(client(method, page).status, 404, f"{client.service}: {method} {page}")
    check_equal(WORLD.lease("GET", "/v1/marks/a").status, 404)
    check_equal(WORLD.gateway("GET", "/v1/leases").status, 404)


@test
def the_root_lists_the_addresses():
    for client in (WORLD.lease, WORLD.gateway):
        index, head = client("GET", "/"), client("HEAD", "/")
        check_equal((index.status, head.status, head.body), (200, 200, b""))
        check_equal((index.json["name"], index.json["openapi"]), (f"pawl-{client.service}", "/openapi.json"))
        listed = [re.sub(r"\{.*", "", path) for path in index.json["paths"]]
        for page in PAGES + OWN[client.service]:
            check(any(page.startswith(path) for path in listed if path != "/"), page)
        check_equal(len(set(index.json["paths"])), len(index.json["paths"]), "each once")
        check_equal(client("OPTIONS", "/").header("Allow"), "GET, HEAD, OPTIONS")
        posted = client("POST", "/")
        check_equal((posted.status, set(posted.header("Allow").split(", "))), (405, {"GET", "HEAD", "OPTIONS"}))
        check_equal(client("GET", "/?x=1").code, "invalid-request")


@test
def a_query_or_a_body_where_none_is_taken_is_refused():
    for client in (WORLD.lease, WORLD.gateway):
        for page in PAGES[:-2]:
            check_equal(client("GET", page + "?x=1").code, "invalid-request", page)
            check_equal(client("GET", page, {}, b"x").code, "invalid-request", page)


@test
def web_pages_are_there_for_browsers_packed_and_asked_for_again_by_their_etag():
    for client in (WORLD.lease, WORLD.gateway):
        to = client("GET", "/", {"Accept": "text/html,application/xhtml+xml"})
        check_equal((to.status, to.header("Location")), (303, "ui/"))
        to = client("GET", "/ui")
        check_equal((to.status, to.header("Location")), (303, "ui/"))
        for name in ("", "leases", "lease?name=a", "why", "sessions", "session?id=a", "doubt"):
            page = client("GET", "/ui/" + name)
            check_in(b"<script type=\"module\" src=\"./app.js\">", page.body)
        plain, packed = client("GET", "/ui/app.js"), client("GET", "/ui/app.js", {"Accept-Encoding": "br, gzip;q=0.5"})
        check_equal(gzip.decompress(packed.body), plain.body)
        check_equal((plain.header("ETag")[:3], packed.header("Vary")), ('W/"', "Accept-Encoding"))
        check_equal(client("GET", "/ui/app.js", {"Accept-Encoding": "gzip;q=0"}).header("Content-Encoding"), None)
        for tag, status in ((plain.header("ETag"), 304), ('"x", ' + plain.header("ETag"), 304), (plain.header("ETag").removeprefix("W/"), 304), ('"x"', 200)):
            check_equal(client("GET", "/ui/app.js", {"If-None-Match": tag}).status, status, tag)
        for name in ("page", "lease/", "overview", "../v1", "app.js/", "%61pp.js"):
            check_equal(client("GET", "/ui/" + name).status, 404, name)


@test
def web_pages_are_served_beyond_loopback_only_when_asked_for():
    for flags, status in (((), 404), (("--ui",), 200)):
        others = [one for one in WORLD.flags if one not in ("--listen", "127.0.0.1:0")]
        daemon = Daemon("pawl-lease", *others, "--listen", "0.0.0.0:0", "--allow-anonymous", *flags)
        client = Client("lease", f"http://127.0.0.1:{daemon.port}", World.contract)
        check_equal((client("GET", "/ui/").status, client("GET", "/", {"Accept": "text/html"}).status), (status, 303 if status == 200 else 200))
        check_equal(daemon.end(), 0)


@test
def every_problem_has_a_page_that_explains_it():
    for client in (WORLD.lease, WORLD.gateway):
        schemas = World.contract.document["components"]["schemas"]
        for name, schema in schemas.items():
            if name.startswith("problem.") and name != "problem.not-ready":
                page = client("GET", schema["properties"]["type"]["const"])
                check_equal(page.status, 200, name)
                check_in(schema["properties"]["title"]["const"], page.body.decode().replace("&#39;", "'"), name)
                check_in(name.partition(".")[2], page.body.decode())


@test
def absolute_form_is_what_its_path_is_when_its_host_is_the_same():
    name = next(NAMES)
    for target, host, status in ((f"http://localhost/v1/leases/{name}", "localhost", 201), (f"HTTP://LocalHost:80/v1/leases/{name}", "localhost:80", 409),
                                 ("http://localhost/v1/leases?state=held", "localhost", 200), ("http://localhost", "localhost", 200), ("http://localhost?a=b", "localhost", 400),
                                 (f"http://localhost/v1/leases/{name}", "localhost:80", 400), (f"http://evil.example/v1/leases/{name}", "localhost", 400),
                                 (f"http://a@localhost/v1/leases/{name}", "localhost", 400), (f"http:///v1/leases/{name}", "localhost", 400), ("http://", "localhost", 400),
                                 (f"https://localhost/v1/leases/{name}", "localhost", 400), (f"ftp://localhost/v1/leases/{name}", "localhost", 400),
                                 (f"http://localhost/v1/leases/{name}#x", "localhost", 400), (f"http://localhost?%zz{name}", "localhost", 400),
                                 (f"http://evil.example/v1/leases/{name}", "evil.example", 403), (f"localhost/v1/leases/{name}", "localhost", 400)):
        method = "GET" if status == 200 or "?a" in target else "POST"
        raw = WORLD.raw()
        raw.send(request(method, target, host=f"Host: {host}"))
        path = "/" + target.split("://")[-1].partition("/")[2]
        answer = raw.answer(method, path if status in (200, 201, 409) else "/nothing", before_routing=True)
        check_equal(answer.status, status, f"{target} {host} {answer}")
        raw.close()
    check_equal(WORLD.look(name)["token"], 1)
    raw = WORLD.raw()
    raw.send(f"GET http://localhost/livez HTTP/1.0\r\n\r\n")
    check_equal(raw.answer("GET", "/nothing", before_routing=True).status, 400)


@test
def a_request_that_is_told_to_have_timed_out_gets_408_with_what_to_do():
    raw = QUICK.raw()
    raw.send(request("POST", "/v1/leases/slow", "Content-Length: 9", "Content-Type: application/json", body="{"))
    answer = raw.answer("POST", "/v1/leases/slow", before_routing=True)
    check_equal((answer.status, (answer.header("Connection") or "").lower()), (408, "close"))
    answers_are_done(raw)
    for begin in ("", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: "):  # --header-timeout
        raw = QUICK.raw(QUICK.gateway_daemon, deadline_s=5)
        raw.send(begin)
        try:
            check_equal(raw.answer("GET", "/livez", before_routing=True).status, 408)
        except Closed:
            pass


main(WORLD.close, QUICK.close)
