#!/usr/bin/python3
"""test_upstream_proofs.py - what proves the gateway to an upstream, and the upstream to the gateway: certificates, Authorization."""

import os
import signal
import ssl
import tempfile

from world import World, check, check_equal, check_in, main, test, wait_until
from world.certificate import certificate
from world.upstream import Upstream, route, routes_file

FOLDER = tempfile.mkdtemp(prefix="pawl-proofs-")
SECRETS = ["Bearer first-of-the-gateway", "Bearer second-of-the-gateway"]


def path(name):
    return os.path.join(FOLDER, name)


def write(name, text):
    with open(path(name), "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path(name), 0o600)
    return path(name)


for name_, subject, usage in (("server", "DNS:localhost,IP:127.0.0.1", "serverAuth"), ("elsewhere", "DNS:elsewhere.example", "serverAuth"),
                              ("first", "DNS:gateway", "clientAuth"), ("second", "DNS:gateway", "clientAuth"), ("stranger", "DNS:gateway", "clientAuth")):
    certificate(FOLDER, name_, subject, usage)
write("known.pem", "".join(open(path(f"{one}.pem"), encoding="ascii").read() for one in ("first", "second")))
AUTHORIZATION = write("authorization", SECRETS[0] + "\n")


def shows(name):
    """The files that the routes name have this pair."""
    for kind in ("pem", "key"):
        with open(path(f"{name}.{kind}"), encoding="ascii") as file:
            write(f"gateway.{kind}.new", file.read())
        os.rename(path(f"gateway.{kind}.new"), path(f"gateway.{kind}"))


def upstream(shown, version):
    """One that asks for a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path(f"{shown}.pem"), path(f"{shown}.key"))
    context.load_verify_locations(path("known.pem"))
    context.verify_mode, context.maximum_version = ssl.CERT_REQUIRED, version
    return Upstream(tls=context)


def proofs(ca="server", shown="gateway"):
    return {"ca_file": path(f"{ca}.pem"), **({"cert_file": path(f"{shown}.pem"), "key_file": path(f"{shown}.key")} if shown else {})}


shows("first")
OLD, NEW, ELSEWHERE = (upstream("server", ssl.TLSVersion.TLSv1_2), upstream("server", ssl.TLSVersion.TLSv1_3), upstream("elsewhere", ssl.TLSVersion.TLSv1_3))
HIDES = {"upstream_authorization_file": AUTHORIZATION}
ROUTES = [
    route(OLD, "/old/{id}", "old:{id}", upstream_tls=proofs(), **HIDES),
    route(NEW, "/new/{id}", "new:{id}", upstream_tls=proofs(), **HIDES),
    route(NEW, "/plain/{id}", "plain:{id}", upstream_tls=proofs()),
    route(NEW, "/probed/{id}", "probed:{id}", upstream_tls=proofs(), unknown={"probe": "GET /applied/{id}"}, timeout_ms=1000, **HIDES),
    route(NEW, "/matched/{id}", "matched:{id}", guarantee="committed", upstream_tls=proofs(), if_match=True, **HIDES),
    route(NEW, "/checked/{id}", "checked:{id}", guarantee="committed", upstream_tls=proofs(), upstream_checks=True, **HIDES),
    route(OLD, "/old-none/{id}", "a:{id}", guarantee="admitted", upstream_tls=proofs(shown=None), **HIDES),
    route(OLD, "/old-stranger/{id}", "b:{id}", guarantee="admitted", upstream_tls=proofs(shown="stranger"), **HIDES),
    route(NEW, "/new-none/{id}", "c:{id}", guarantee="admitted", upstream_tls=proofs(shown=None), **HIDES),
    route(NEW, "/wrong-ca/{id}", "d:{id}", guarantee="admitted", upstream_tls=proofs(ca="elsewhere"), **HIDES),
    {**route(NEW, "/no-ca/{id}", "e:{id}", guarantee="admitted", **HIDES)},
    route(ELSEWHERE, "/name/{id}", "f:{id}", guarantee="admitted", upstream_tls=proofs(ca="elsewhere"), **HIDES),
]
TABLE = routes_file(FOLDER, ROUTES)
WORLD = World(gateway_flags=["--routes", TABLE, "--threads", "1", "--log-level", "debug"])


def send(method, target, grant=None, body=None, headers=()):
    fence = [("Fencing-Token", grant["fencing_token"])] if grant else []
    return WORLD.gateway(method, target, [*fence, *headers], body, held=False)


def write_to(stem, body=b"x", headers=(), lease=None):
    """A holder's write: the answer, and the requests that have come with it."""
    name = WORLD.name(lease or stem)
    begin = len(OLD.requests), len(NEW.requests)
    answer = send("PUT", f"/{stem}/{name.split(':', 1)[1]}", WORLD.acquire(name), body, headers)
    return answer, OLD.requests[begin[0]:] + NEW.requests[begin[1]:]


def shown_to(request):
    return request.connection.certificate["serialNumber"]


@test
def the_upstream_gets_the_gateways_certificate_and_authorization_and_no_caller_s():
    callers = [("Authorization", "Basic Y2FsbGVyOnM="), ("Proxy-Authorization", "Basic x"), ("X-Kept", "yes")]
    for stem in ("old", "new", "checked"):
        answer, came = write_to(stem, headers=callers)
        check_equal((answer.status, len(came)), (200, 1), f"{stem}: {answer!r}")
        check_equal((came[0].values("Authorization"), came[0].header("X-Kept")), ([SECRETS[0]], "yes"), stem)
    check_equal(write_to("plain", headers=callers)[1][0].values("Authorization"), [callers[0][1]], "a route without a file")


@test
def a_read_before_a_conditional_write_and_a_probe_carry_it_too():
    def act(server, request):
        if request.target.startswith("/applied/"):
            request.connection.answer(200, [("Pawl-Applied", request.header("Pawl-Request-Id"))], b"")
        elif request.body == b"old":
            request.connection.close()
        else:
            request.connection.answer(200, [("ETag", '"1"')], b"")
    NEW.act = act
    callers = [("Authorization", "Basic Y2FsbGVyOnM=")]
    answer, came = write_to("matched", headers=callers)
    check_equal((answer.status, [one.method for one in came]), (200, ["HEAD", "PUT"]), repr(answer))
    name = WORLD.name("probed")
    target, grant, begin = f"/probed/{name.split(':', 1)[1]}", WORLD.acquire(name), len(NEW.requests)
    check_equal(send("PUT", target, grant, b"old", callers).status, 504)
    WORLD.release(name, grant)
    check_equal(send("PUT", target, WORLD.acquire(name), b"new", callers).status, 200)
    came += NEW.requests[begin:]
    check_in("/applied", " ".join(one.target for one in came))
    for one in came:
        check_equal(one.values("Authorization"), SECRETS[:1], repr(one))
    NEW.act = Upstream.obey


@test
def who_cannot_prove_itself_to_the_other_gets_and_sends_nothing():
    for stem, lease, status in (("old-none", "a", [502]), ("old-stranger", "b", [502]), ("wrong-ca", "d", [502]), ("no-ca", "e", [502]),
                                ("name", "f", [502]), ("new-none", "c", [502, 504])):  # TLS 1.3: its word comes before or behind the request
        answer, came = write_to(stem, lease=lease)
        check((answer.status in status, came, ELSEWHERE.requests) == (True, [], []), f"{stem}: {answer!r}")


def hang_up(word):
    begin = len(WORLD.gateway_daemon.lines)
    WORLD.gateway_daemon.send(signal.SIGHUP)
    return WORLD.gateway_daemon.line(lambda line: word in line, word, begin)


def reads(stem="new"):
    """What the upstream has seen of a read: the connection, whose certificate, the authorization."""
    begin = len(NEW.requests)
    check_equal(send("GET", f"/{stem}/1").status, 200)
    request = NEW.requests[begin]
    return request.connection, shown_to(request), request.header("Authorization")


@test
def sighup_takes_what_is_new_and_no_connection_of_before_is_used_again():
    before = reads()
    check_equal(reads(), before, "a connection that is kept")
    digest = WORLD.gateway("GET", "/v1/routes", held=False).json["hash"]
    shows("second")
    write("authorization", SECRETS[1])
    check_equal(reads(), before, "nothing is read by itself")
    hang_up("routes-reloaded")
    wait_until(lambda: reads()[2] == SECRETS[1], "the new authorization is sent")
    connection, serial, _ = reads()
    check(connection is not before[0] and serial != before[1], "neither the connection nor the certificate of before")
    check_equal(WORLD.gateway("GET", "/v1/routes", held=False).json["hash"], digest, "the table is the same: it needs no adoption")
    check_equal(write_to("new")[0].status, 200)


@test
def what_is_wrong_at_a_sighup_changes_nothing_and_is_told_with_its_place():
    before = reads()
    write("authorization", "Bearer a third")
    os.rename(path("gateway.key"), path("kept.key"))
    os.link(path("stranger.key"), path("gateway.key"))
    check_in("routes[0] (/old/{id}): upstream_tls.key_file: the file " + path("gateway.key") + " is not the key of the certificate", hang_up("routes-not-reloaded"))
    ready = WORLD.gateway("GET", "/readyz", held=False)
    check_equal((ready.status, ready.json["checks"]["routes"]), (200, "not-reloaded"))
    check_equal(reads(), before, "not even a part of it")
    os.rename(path("kept.key"), path("gateway.key"))
    write("authorization", "Bearer a\nX-Third: line")
    check("third" not in hang_up("routes-not-reloaded").lower(), "a secret is in the log")
    write("authorization", SECRETS[0])
    shows("first")
    hang_up("routes-reloaded")
    wait_until(lambda: reads()[2] == SECRETS[0], "the first authorization is sent again")
    check("routes" not in WORLD.gateway("GET", "/readyz", held=False).json["checks"], "it is told no more")


@test
def a_new_certificate_of_the_upstream_needs_a_new_ca_file_and_sighup():
    certificate(FOLDER, "renewed", "DNS:localhost,IP:127.0.0.1")
    NEW.tls.load_cert_chain(path("renewed.pem"), path("renewed.key"))
    hang_up("routes-reloaded")
    wait_until(lambda: send("GET", "/new/1").status == 502, "the upstream has another certificate")
    os.rename(path("renewed.pem"), path("server.pem"))
    hang_up("routes-reloaded")
    wait_until(lambda: send("GET", "/new/1").status == 200, "and it is trusted")


@test
def nothing_that_is_secret_is_in_the_log():
    check_equal([line for line in WORLD.gateway_daemon.lines if "of-the-gateway" in line or "PRIVATE KEY" in line], [])
    check_equal((OLD.wrong, NEW.wrong), ([], []))


main(WORLD.close)
