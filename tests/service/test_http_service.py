#!/usr/bin/python3
"""HTTP as no client should speak it, and as few do: both daemons on raw sockets."""

import re
import time

from world import World, check, check_equal, check_in, main, test, wait_until
from world.client import Closed

WORLD = World()
QUICK = World("--header-max", "2KiB", "--header-timeout", "300ms", "--body-timeout", "400ms", "--suspend-always", gateway_flags=["--max-body-memory", "64KiB"])
NAMES = (f"smuggled:{i}" for i in range(10 ** 6))
CRLF = "\r\n"


def request(method, target, *headers, body="", host="Host: localhost"):
    lines = [f"{method} {target} HTTP/1.1"] + ([host] if host else []) + list(headers)
    return CRLF.join(lines) + CRLF * 2 + body


def both(world=WORLD):
    return (world.lease_daemon, world.gateway_daemon)


def head_max():
    return ((WORLD.lease_daemon, 8192), (WORLD.gateway_daemon, 32768))


def answers_are_done(raw):
    """The server has closed, and nothing more came."""
    check(raw.is_closed(), f"something more came: {raw.buffer[:300]!r}")
    raw.close()


def nothing_is_granted_until_closed(raw):
    """A Content-Length that is no number is refused by libmicrohttpd 0.9.75 itself, which sends the head of that 400 twice,
    the second time inside of the body: what comes behind the length of the first is its rest, never an answer."""
    rest = b""
    while not raw.is_closed():
        rest, raw.buffer = rest + raw.buffer, b""
    check(b"HTTP/1.1 2" not in rest, rest)
    raw.close()


# -- smuggling

def hidden(name):
    return request("POST", f"/v1/leases/{name}")


def is_untouched(name):
    return WORLD.look(name)["token"] == 0


def refused_and_closed(first, hides="", status=("400",), ends=answers_are_done):
    """first is ambiguous: one answer, 400; then the connection is closed and what hides behind it is never done."""
    for daemon in both():
        name = next(NAMES)
        raw = WORLD.raw(daemon)
        raw.send(first.replace("VICTIM", "victim:" + name) + (hides or hidden(name)).replace("HIDDEN", name))
        try:
            answer = raw.answer("POST", "/v1/leases/victim:" + name, before_routing=True)
            check_in(str(answer.status), status, f"{daemon.name}: {first!r}")
            check_equal((answer.header("Connection") or "").lower(), "close", f"{daemon.name}: {first!r} {answer}")
        except Closed as error:
            check(raw.buffer == b"", f"{first!r}: {error}")
        ends(raw)
        check(is_untouched(name) and is_untouched("victim:" + name), f"{first!r}: something was done")


POST = "POST /v1/leases/VICTIM HTTP/1.1\r\nHost: localhost\r\n"


@test
def two_lengths_are_refused():
    refused_and_closed(POST + "Content-Length: 0\r\nContent-Length: 5\r\n\r\n")
    refused_and_closed(POST + "Content-Length: 0\r\nContent-Length: 0\r\n\r\n")
    refused_and_closed(POST + "Content-Length: 0, 0\r\n\r\n", ends=nothing_is_granted_until_closed)
    refused_and_closed(POST + "Content-Length: 0\r\ncontent-length: 99\r\n\r\n")


@test
def a_length_together_with_a_transfer_encoding_is_refused():
    chunks = "2\r\n{}\r\n0\r\n\r\n"
    refused_and_closed(POST + "Content-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    refused_and_closed(POST + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + chunks)


@test
def a_transfer_encoding_that_is_not_plainly_chunked_is_refused():
    for value in ("identity", "xchunked", "chunked, identity", "gzip, chunked", "chunked, chunked", "chunked;x=1", "\x0bchunked",
                  "chunke", "", "gzip", "'chunked'", '"chunked"'):
        refused_and_closed(POST + f"Transfer-Encoding: {value}\r\n\r\n0\r\n\r\n", status=("400", "501"))
    refused_and_closed(POST + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    refused_and_closed(POST + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n")


@test
def a_length_that_is_no_plain_number_is_refused():
    for value in ("+0", "-1", "0x0", "1 1", "0;", "", "١", "0.0", "1e1", "18446744073709551616", "99999999999999999999999"):
        text = value.encode().decode("latin-1")
        refused_and_closed(POST + f"Content-Length: {text}\r\n\r\n", status=("400", "413"),
                           ends=nothing_is_granted_until_closed)


@test
def a_header_that_is_folded_nameless_or_has_control_characters_is_refused():
    for line in ("X: a\r\n b: c", "X: a\r\n\tb", " X: a", ": a", "X : a", "X\t: a", "X", "X Y: a", "X: a\x00b", "X: a\x01b",
                 "X: a\x7fb", "X: a\rb", "X\x00: a", "Content-Length : 5", "Host : y", "X(: a", "X\x80: a"):
        refused_and_closed(POST + line + "\r\nContent-Length: 0\r\n\r\n")
    refused_and_closed("POST /v1/leases/VICTIM HTTP/1.1\r\n Host: localhost\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")


@test
def a_second_host_and_no_host_are_refused():
    refused_and_closed(POST + "Host: localhost\r\nContent-Length: 0\r\n\r\n")
    refused_and_closed("POST /v1/leases/VICTIM HTTP/1.1\r\nHost: localhost\r\nhost: y\r\nContent-Length: 0\r\n\r\n")
    refused_and_closed("POST /v1/leases/VICTIM HTTP/1.1\r\nContent-Length: 0\r\n\r\n")


@test
def chunks_that_are_not_well_formed_are_refused():
    for body in ("x\r\n", "-1\r\n", "+2\r\n{}\r\n0\r\n\r\n", "0x2\r\n{}\r\n0\r\n\r\n", "2 \r\n{}\r\n0\r\n\r\n",
                 "2\r\n{}x\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\n{}", "10000000000000002\r\n{}\r\n0\r\n\r\n",
                 "\r\n2\r\n{}\r\n0\r\n\r\n", "2\r{}\r\n0\r\n\r\n"):
        head = POST + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        # the gateway has no such address. libmicrohttpd 0.9.75 takes a bare LF behind a chunk's data, and any byte in an
        # extension: what is framed is not changed by either
        refused_and_closed(head + body, status=("400", "404", "413"))


@test
def the_detail_of_431_says_which_limit_it_was():
    for daemon, most in head_max():
        begin, fields = "GET /livez HTTP/1.1\r\nHost: localhost\r\n", "X: y\r\n" * 128
        of_bytes = f"together may have {most} bytes (--header-max)"
        for text, word in (("GET /" + "a" * most + " HTTP/1.1\r\nHost: localhost\r\n\r\n", of_bytes), (begin + "X: " + "a" * most + "\r\n\r\n", of_bytes),
                           (begin + "X: y\r\n" * most, of_bytes), ("GET /" + "a" * 200_000, of_bytes), (begin + fields + "\r\n", "may have 128 header fields")):
            raw = WORLD.raw(daemon)
            raw.send(text)
            answer = raw.answer("GET", "/livez")
            check_equal((answer.status, answer.code), (431, "header-too-large"))
            check_in(word, answer.json["detail"])
            answers_are_done(raw)
        raw = WORLD.raw(daemon)
        for more in (fields[6:], "X-Y: z\r\n" * 100, "Cookie: a=b" + "; a=b" * 99 + "\r\n", "Cookie: a=b\r\n" * 100):
            raw.send(begin + more + "\r\n")
            check_equal(raw.answer("GET", "/livez").status, 200)
        raw.close()


@test
def a_request_line_that_is_none_is_refused():
    for line in ("POST /v1/leases/VICTIM", "POST  /v1/leases/VICTIM HTTP/1.1", "POST /v1/leases/VICTIM  HTTP/1.1",
                 "POST /v1/leases/VICTIM HTTP/1.1 x", "POST /v1/leases/VI CTIM HTTP/1.1", "POST\t/v1/leases/VICTIM\tHTTP/1.1",
                 "POST /v1/leases/VICTIM http/1.1", "POST /v1/leases/VICTIM HTTP/1", "POST /v1/leases/VICTIM HTTP/11",
                 "POST /v1/leases/VICTIM HTTP/2.0", "POST /v1/leases/VICTIM HTTP/1.1\x00", "POST /v1/leases/VIC\x00TIM HTTP/1.1",
                 "POST /v1/leases/VIC\x01TIM HTTP/1.1", "POST /v1/leases/VICTIM\x7f HTTP/1.1", "P(ST /v1/leases/VICTIM HTTP/1.1",
                 "POST v1/leases/VICTIM HTTP/1.1", "POST /v1/leases/VICTIM#x HTTP/1.1", "PRI * HTTP/2.0", "\x16\x03\x01\x02\x00",
                 "POST /v1/leases/VICTIM HTTP/0.9", "POST /v1/leases/VIC\x80TIM HTTP/1.1"):
        refused_and_closed(line + "\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", status=("400", "404", "405", "501", "505"))


@test
def what_hides_in_a_body_is_body():
    for daemon in both():
        name = next(NAMES)
        body = hidden(name)
        raw = WORLD.raw(daemon)
        target = "/v1/check/x" if daemon is WORLD.gateway_daemon else "/v1/leases/victim"
        raw.send(request("POST", target, f"Content-Length: {len(body)}", "Content-Type: application/json", body=body)
                 + request("GET", "/version"))
        check_in(raw.answer("POST", target).status, (400, 401))
        check_equal(raw.answer("GET", "/version").status, 200)
        raw.close()
        check(is_untouched(name), "a body was taken for a request")


# -- what few clients do, and may

@test
def requests_in_one_write_are_answered_in_their_order():
    raw = WORLD.raw()
    names = [WORLD.name("pipe") for _ in range(30)]
    text = "".join(request("POST", f"/v1/leases/{name}", "Content-Type: application/json", "Content-Length: 2", body="{}")
                   + request("GET", "/livez") + request("GET", f"/v1/leases/{name}") + request("HEAD", "/version")
                   for name in names)
    raw.send(text)
    for name in names:
        check_equal(raw.answer("POST", f"/v1/leases/{name}").json["lease"], name)
        check_equal(raw.answer("GET", "/livez").json, {"status": "alive"})
        looked = raw.answer("GET", f"/v1/leases/{name}").json
        check_equal((looked["lease"], looked["state"]), (name, "held"))
        check_equal(raw.answer("HEAD", "/version").status, 200)
    raw.close()


@test
def requests_byte_by_byte_and_cut_anywhere_are_the_same_requests():
    name = WORLD.name("cut")
    text = request("POST", f"/v1/leases/{name}", "Content-Type: application/json", "Content-Length: 16", body='{"holder": "ada"}'[:16])
    text = text.replace('{"holder": "ada"', '{"holder":"ada"}')
    raw = WORLD.raw()
    for byte in text:
        raw.send(byte)
    check_equal(raw.answer("POST", f"/v1/leases/{name}").json["holder"], "ada")
    for at in range(1, len(text), 7):
        raw.send(text[:at])
        raw.send(text[at:] + request("GET", "/livez"))
        check_equal(raw.answer("POST", f"/v1/leases/{name}").code, "lease-held")
        check_equal(raw.answer("GET", "/livez").status, 200)
    raw.close()


@test
def a_body_in_chunks_is_a_body():
    raw = WORLD.raw()
    name = WORLD.name("chunks")
    body = '7\r\n{"holde\r\n1;ext=1\r\nr\r\n8\r\n":"ada"}\r\n0\r\nTrailer: x\r\n\r\n'
    raw.send(request("POST", f"/v1/leases/{name}", "Content-Type: application/json", "Transfer-Encoding: chunked", body=body)
             + request("GET", "/livez"))
    grant = raw.answer("POST", f"/v1/leases/{name}").json
    check_equal(grant["holder"], "ada")
    check_equal(raw.answer("GET", "/livez").status, 200)
    gateway = WORLD.raw(WORLD.gateway_daemon)
    token = f"Fencing-Token: {grant['fencing_token']}"
    gateway.send(request("PUT", f"/v1/resources/{name}", token, "Transfer-Encoding: Chunked",
                         body="5\r\n\0\1\2\r\n\r\n3\r\nabc\r\n0\r\n\r\n"))
    check_equal(gateway.answer("PUT", f"/v1/resources/{name}").status, 201)
    check_equal(WORLD.gateway("GET", f"/v1/resources/{name}").body, b"\0\1\2\r\nabc")


@test
def expect_100_continue_is_answered_before_the_body_or_with_the_refusal():
    name = WORLD.name("expect")
    raw = WORLD.raw()
    raw.send(request("POST", f"/v1/leases/{name}", "Content-Type: application/json", "Content-Length: 2", "Expect: 100-continue"))
    check_in("100", raw.head()[0])
    raw.send("{}")
    grant = raw.answer("POST", f"/v1/leases/{name}").json
    gateway = WORLD.raw(WORLD.gateway_daemon)
    gateway.send(request("PUT", f"/v1/resources/{name}", f"Fencing-Token: {grant['fencing_token']}", "Content-Length: 99999999",
                         "Expect: 100-continue"))
    answer = gateway.head()
    check_in("413", answer[0])
    raw.close()
    gateway.close()


@test
def a_body_that_is_announced_too_large_is_refused_without_being_read():
    for daemon, method, target in ((WORLD.lease_daemon, "POST", "/v1/leases/a"), (WORLD.gateway_daemon, "PUT", "/v1/resources/a"),
                                   (WORLD.gateway_daemon, "POST", "/v1/check/a")):
        raw = WORLD.raw(daemon)
        raw.send(request(method, target, "Content-Length: 99999999999", "Content-Type: application/json"))
        check_equal(raw.answer(method, target).code, "too-large")
        answers_are_done(raw)


@test
def a_body_in_chunks_that_grows_too_large_is_refused():
    raw = WORLD.raw()
    raw.send(request("POST", "/v1/leases/a", "Content-Type: application/json", "Transfer-Encoding: chunked"))
    for _ in range(100):
        if not raw.send("400\r\n" + " " * 1024 + CRLF):
            break
    check_equal(raw.answer("POST", "/v1/leases/a").code, "too-large")
    raw.close()
    check_equal(WORLD.look("a")["token"], 0)


@test
def a_client_that_has_said_all_still_gets_its_answer():
    for daemon in both():
        raw = WORLD.raw(daemon)
        target = "/v1/leases/half" if daemon is WORLD.lease_daemon else "/v1/marks/half"
        raw.send(request("GET", target))
        raw.end_sending()
        check_equal(raw.answer("GET", target).status, 200)
        raw.socket.settimeout(3)
        answers_are_done(raw)


@test
def connection_close_and_http_1_0_are_honoured():
    for daemon in both():
        raw = WORLD.raw(daemon)
        raw.send(request("GET", "/livez", "Connection: close") + request("GET", "/version"))
        check_equal(raw.answer("GET", "/livez").header("Connection").lower(), "close")
        answers_are_done(raw)
        raw = WORLD.raw(daemon)
        raw.send("GET /livez HTTP/1.0\r\n\r\n")
        check_equal(raw.answer("GET", "/livez").status, 200)
        answers_are_done(raw)


@test
def an_empty_line_before_a_request_is_no_request():
    raw = WORLD.raw()
    raw.send(CRLF + request("GET", "/livez"))
    check_equal(raw.answer("GET", "/livez").status, 200)
    raw.close()


# -- which address, which method

PAGES = ["/livez", "/readyz", "/metrics", "/version", "/openapi.json", "/problems/lease-held"]
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
def options_tell_what_an_address_takes():
    for client in (WORLD.lease, WORLD.gateway):
        for page in PAGES + OWN[client.service]:
            answer = client("OPTIONS", page)
            check_equal((answer.status, answer.body), (204, b""), page)


@test
def a_method_that_an_address_does_not_take_is_405_with_those_that_it_takes():
    for client in (WORLD.lease, WORLD.gateway):
        for page in PAGES + OWN[client.service]:
            taken = World.contract.allowed(client.service, page)
            for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "BREW", "get"):
                if method not in taken:
                    answer = client(method, page)
                    check_equal((answer.status, answer.code), (405, "method-not-allowed"), f"{method} {page}")
                    check_equal(set(answer.header("Allow").split(", ")), taken, f"{method} {page}")


@test
def an_unknown_address_is_404_whatever_the_method():
    for client in (WORLD.lease, WORLD.gateway):
        for page in ("/", "/v1", "/v1/", "/v2/leases/a", "//livez", "/livez/", "/livez/x", "/LIVEZ", "/%6civez", "/v1/leases/a/b/c",
                     "/problems/", "/problems/no-such", "/openapi.yaml", "/favicon.ico", "/v1/leases/a/histories", "/../livez",
                     "/v1/session", "/v1/event"):
            for method in ("GET", "HEAD", "POST", "DELETE", "BREW"):
                answer = client(method, page)
                if page == "/problems/no-such" and method not in ("GET", "HEAD"):
                    check_equal(answer.status, 405, f"{method} {page}")
                else:
                    check_equal(answer.status, 404, f"{client.service}: {method} {page}")
    check_equal(WORLD.lease("GET", "/v1/marks/a").status, 404)
    check_equal(WORLD.gateway("GET", "/v1/leases").status, 404)


@test
def a_query_or_a_body_where_none_is_taken_is_refused():
    for client in (WORLD.lease, WORLD.gateway):
        for page in PAGES:
            check_equal(client("GET", page + "?x=1").code, "invalid-request", page)
            check_equal(client("GET", page, {}, b"x").code, "invalid-request", page)


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
def each_answer_has_a_request_id_of_its_own():
    ids = [WORLD.lease("GET", "/nowhere").json["instance"] for _ in range(50)]
    check_equal(len(set(ids)), 50)


# -- how much

def padded(size, lines=1):
    """A whole head of so many bytes."""
    begin = "GET /livez HTTP/1.1\r\nHost: localhost\r\n"
    room = size - len(begin) - 2
    each = [room // lines + (1 if i < room % lines else 0) for i in range(lines)]
    return begin + "".join("X-Pad: " + "p" * (n - 9) + CRLF for n in each) + CRLF


@test
def request_line_and_headers_may_have_what_header_max_says_and_one_byte_more_not():
    for daemon, most in (*head_max(), (QUICK.lease_daemon, 2048)):
        for lines in (1, 20):
            raw = WORLD.raw(daemon)
            check_equal(len(padded(most, lines)), most)
            raw.send(padded(most, lines) * 2)
            for _ in range(2):
                check_equal(raw.answer("GET", "/livez").status, 200)
            raw.send(padded(most + 1, lines))
            check_equal(raw.answer("GET", "/livez", before_routing=True).status, 431)
            answers_are_done(raw)


@test
def a_long_address_is_431_and_endless_headers_end():
    for daemon, most in head_max():
        raw = WORLD.raw(daemon)
        raw.send(request("GET", "/v1/leases/" + "a" * most))
        check_equal(raw.answer("GET", "/", before_routing=True).status, 431)
        answers_are_done(raw)
        raw = WORLD.raw(daemon)
        raw.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n")
        # More than any socket buffer takes, and than is read after an answer.
        block = "X-Y: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\r\n" * 2000
        sent = sum(1 for _ in range(1000) if raw.send(block))
        check(sent < 1000, "all of 100 MB of headers were taken")
        raw.close()


@test
def bodies_beyond_the_memory_for_bodies_are_503_and_not_sent_to_the_store():
    grant = QUICK.acquire("memory")
    token = f"Fencing-Token: {grant['fencing_token']}"
    first, second = QUICK.raw(QUICK.gateway_daemon), QUICK.raw(QUICK.gateway_daemon)
    first.send(request("PUT", "/v1/resources/memory", token, "Content-Length: 40000", body="a" * 39999))
    wait_until(lambda: QUICK.gateway("GET", "/livez"), "the first has come in")
    second.send(request("PUT", "/v1/resources/memory", token, "Content-Length: 40000", body="b" * 40000))
    check_equal(second.answer("PUT", "/v1/resources/memory").code, "overloaded")
    first.send("a")
    check_equal(first.answer("PUT", "/v1/resources/memory").status, 201)
    check_equal(QUICK.gateway("PUT", "/v1/resources/memory", {"Fencing-Token": grant["fencing_token"]}, b"c" * 40000).status, 204)
    check_equal(QUICK.gateway("GET", "/v1/resources/memory").body, b"c" * 40000)


@test
def more_connections_than_allowed_wait_or_are_closed_and_the_rest_goes_on():
    world = World(lease_flags=["--max-connections", "8", "--max-connections-per-address", "8"])
    raws = [world.raw(deadline_s=1) for _ in range(30)]
    raws[0].send(request("GET", "/livez"))
    check_equal(raws[0].answer("GET", "/livez").status, 200)
    for raw in raws:
        raw.close()
    wait_until(lambda: answers(world), "the service answers again")
    world.close()


def answers(world):
    raw = world.raw()
    try:
        raw.send(request("GET", "/livez"))
        return raw.answer("GET", "/livez").status == 200
    except Closed:
        return False
    finally:
        raw.close()


@test
def absolute_form_is_what_its_path_is_when_its_host_is_the_same():
    name = next(NAMES)
    for target, host, status in ((f"http://localhost/v1/leases/{name}", "localhost", 201), (f"HTTP://LocalHost:80/v1/leases/{name}", "localhost:80", 409),
                                 ("http://localhost/v1/leases?state=held", "localhost", 200), ("http://localhost", "localhost", 404), ("http://localhost?a=b", "localhost", 404),
                                 (f"http://localhost/v1/leases/{name}", "localhost:80", 400), (f"http://evil.example/v1/leases/{name}", "localhost", 400),
                                 (f"http://a@localhost/v1/leases/{name}", "localhost", 400), (f"http:///v1/leases/{name}", "localhost", 400), ("http://", "localhost", 400),
                                 (f"https://localhost/v1/leases/{name}", "localhost", 400), (f"ftp://localhost/v1/leases/{name}", "localhost", 400),
                                 (f"http://localhost/v1/leases/{name}#x", "localhost", 400), (f"http://localhost?%zz{name}", "localhost", 400),
                                 (f"http://evil.example/v1/leases/{name}", "evil.example", 403), (f"localhost/v1/leases/{name}", "localhost", 400)):
        method = "GET" if status in (200, 404) else "POST"
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


# -- how slow

def cut_off(raw, begun, drip, allowed_s, method="GET", target="/livez"):
    """408, or just closed, within allowed_s although drip comes every few milliseconds. begun: before its time began."""
    raw.socket.settimeout(0.01)
    while time.monotonic() - begun < allowed_s + 4:
        try:
            answer = raw.answer(method, target, before_routing=True)
            check_equal(answer.status, 408)
            raw.socket.settimeout(5)
            answers_are_done(raw)
            break
        except TimeoutError:
            if drip:
                raw.send(drip)
        except Closed:
            break
    took = time.monotonic() - begun
    check(allowed_s - 0.01 < took < allowed_s + 3, f"after {took:.2f} s")


@test
def a_header_that_comes_too_slowly_is_cut_off_however_it_drips():
    for daemon in both(QUICK):
        for begin, drip in (("", ""), ("GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", ""), ("GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", "a"),
                            ("G", "")):
            begun = time.monotonic()
            raw = QUICK.raw(daemon)
            raw.send(begin)
            cut_off(raw, begun, drip, 0.3)


@test
def a_connection_that_idles_after_an_answer_is_closed():
    for daemon in both(QUICK):
        raw = QUICK.raw(daemon)
        begun = time.monotonic()
        raw.send(request("GET", "/livez"))
        check_equal(raw.answer("GET", "/livez").status, 200)
        cut_off(raw, begun, "", 0.3)


@test
def a_body_that_comes_too_slowly_is_cut_off_however_it_drips():
    for daemon, method, target in ((QUICK.lease_daemon, "POST", "/v1/leases/slow"), (QUICK.gateway_daemon, "PUT", "/v1/resources/slow")):
        for drip in ("", " "):
            begun = time.monotonic()
            raw = QUICK.raw(daemon)
            raw.send(request(method, target, "Content-Length: 9000", "Content-Type: application/json", body="{"))
            cut_off(raw, begun, drip, 0.4, method, target)
    check_equal(QUICK.look("slow")["token"], 0)


@test
def a_request_that_is_told_to_have_timed_out_gets_408_with_what_to_do():
    raw = QUICK.raw()
    raw.send(request("POST", "/v1/leases/slow", "Content-Length: 9", "Content-Type: application/json", body="{"))
    answer = raw.answer("POST", "/v1/leases/slow", before_routing=True)
    check_equal((answer.status, (answer.header("Connection") or "").lower()), (408, "close"))
    answers_are_done(raw)


# -- gone

def connections(client):
    text = client("GET", "/metrics").body.decode()
    return int(re.search(r"^pawl_http_connections(?:\{[^}]*\})? (\d+)$", text, re.M).group(1))


@test
def clients_that_vanish_at_any_point_leave_nothing_behind():
    text = request("POST", "/v1/leases/vanish", "Content-Type: application/json", "Content-Length: 16", body='{"holder":"ada"}')
    put = request("PUT", "/v1/resources/vanish", "Fencing-Token: x", "Content-Length: 200000", body="x" * 100000)
    for daemon, whole in ((WORLD.lease_daemon, text), (WORLD.gateway_daemon, put)):
        client = WORLD.client(daemon)
        for i in range(60):
            raw = WORLD.raw(daemon)
            raw.send(whole[:(i * 53) % (len(whole) + 1)] if i % 3 else whole * (1 + i % 2))
            if i % 2:
                raw.vanish()
            else:
                raw.close()
        wait_until(lambda client=client: connections(client) == 1, "only the one who asks is connected")
        check_equal(client("GET", "/readyz").status, 200)


@test
def a_client_that_asks_much_and_reads_nothing_stops_nobody():
    name = WORLD.name("big")
    grant = WORLD.acquire(name)
    WORLD.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": grant["fencing_token"]}, b"x" * 1000000)
    raw = WORLD.raw(WORLD.gateway_daemon)
    raw.send(request("GET", f"/v1/resources/{name}") * 20)
    for _ in range(5):
        check_equal(WORLD.gateway("GET", f"/v1/marks/{name}").status, 200)
    raw.vanish()


def close():
    WORLD.close()
    QUICK.close()


main(close)
