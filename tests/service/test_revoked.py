#!/usr/bin/python3
"""A credential that is taken out, of whatever kind, while its identity stays: what was begun with it ends within a second of SIGHUP."""

import copy
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import tempfile
import threading
import time
from functools import partial

from world import World, check, check_equal, check_in, main, of_time, test, wait_until
from world.access import new_token, sha256, write_private
from world.certificate import Certificates
from world.jwt import Key, b64, jwt
from world.upstream import Upstream, route, routes_file

FOLDER = pathlib.Path(tempfile.mkdtemp(dir=os.environ["TMPDIR"]))
FILE = FOLDER / "access.json"
MADE = Certificates(str(FOLDER))
MADE.authority("ca")
MADE.authority("other")
MADE.certified("server", "ca", "subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth\n")
MADE.certified("job", "ca", "subjectAltName=DNS:job.example.org\nextendedKeyUsage=clientAuth\n")
(FOLDER / "new").mkdir()
KEY, NEW_KEY = (Key(folder, "ES256", "one", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256") for folder in (FOLDER, FOLDER / "new"))


def bound_to(certificate):
    """A JWT that only who shows this certificate may show."""
    der = ssl.PEM_cert_to_DER_cert((FOLDER / f"{certificate}.pem").read_text("ascii"))
    return jwt(KEY, cnf={"x5t#S256": b64(hashlib.sha256(der).digest())})


class Caller:
    """Who shows this much, over this."""

    def __init__(self, bearer=None, certificate=None, unix=False):
        self.bearer, self.unix = bearer, unix
        self.trusts = ssl.create_default_context(cafile=MADE.path("ca.pem"))
        if certificate:
            self.trusts.load_cert_chain(MADE.path(f"{certificate}.pem"), MADE.path(f"{certificate}.key"))

    def begin(self, daemon, method, target, *lines, body=b"", left=b""):
        """Sends it but for what is left of its body: a socket."""
        if self.unix:
            one = socket.socket(socket.AF_UNIX)
            one.connect(SOCKETS[daemon.name])
        else:
            one = self.trusts.wrap_socket(socket.create_connection(("127.0.0.1", daemon.port)), server_hostname="localhost")
        one.settimeout(20)
        shown = [f"Authorization: Bearer {self.bearer}"] if self.bearer else []
        size = [f"Content-Length: {len(body + left)}"] if body + left else []
        one.sendall("\r\n".join([f"{method} {target} HTTP/1.1", "Host: localhost", *shown, *size, *lines, "", ""]).encode() + body)
        return one

    def __call__(self, daemon, method, target, *lines, body=b""):
        """(status, what it says)"""
        with self.begin(daemon, method, target, *lines, body=body) as one:
            return answer(one)


def answer(one):
    got = http.client.HTTPResponse(one)
    got.begin()
    text = got.read()
    return got.status, json.loads(text) if text[:1] == b"{" else text


TOKEN, STAYS, OPS = (Caller(new_token(stem)) for stem in ("one", "stays", "ops"))
UID, CERTIFICATE = Caller(unix=True), Caller(certificate="job")
SOCKETS = {name: str(FOLDER / f"{name}.sock") for name in ("pawl-lease", "pawl-gateway")}
DOCUMENT = {
    "issuers": {"k8s": {"iss": "https://k8s.example", "aud": "pawl", "jwks": str(FOLDER / "keys.json"), "algs": ["ES256"]}},
    "identities": {"job": {"access_tokens": [sha256(TOKEN.bearer), sha256(STAYS.bearer)], "uids": [os.getuid()], "certs": ["dns:job.example.org"],
                           "subjects": {"k8s": ["system:worker"]}},
                   "other": {"access_tokens": []}, "ops": {"access_tokens": [sha256(OPS.bearer)]}},
    "rules": [{"who": ["known"], "may": ["acquire", "look", "read", "write", "resolve"], "on": ["*"]},
              {"who": ["ops"], "may": ["force-release"], "on": ["*"]}, {"who": ["ops"], "may": ["observe"]}]}


def write(changed, key=KEY, authority="ca", revoked=()):
    """All files anew."""
    for name, document in (("keys.json", {"keys": [key.jwk()]}), ("access.json", changed)):
        write_private(FOLDER / name, document)
    shutil.copy(MADE.path(f"{authority}.pem"), MADE.path("clients.pem"))
    MADE.revoke(authority, *revoked)
    shutil.copy(MADE.path(f"{authority}.crl"), MADE.path("clients.crl"))


write(DOCUMENT)
UPSTREAM = Upstream()
WORLD = World("--access", str(FILE), "--tls-cert", MADE.path("server.pem"), "--tls-key", MADE.path("server.key"),
              "--tls-client-ca", MADE.path("clients.pem"), "--tls-crl", MADE.path("clients.crl"),
              lease_flags=["--listen-unix", SOCKETS["pawl-lease"]],
              gateway_flags=["--listen-unix", SOCKETS["pawl-gateway"], "--routes", routes_file(str(FOLDER), [
                  route(UPSTREAM, "/orders/{id}", "orders:{id}"), route(UPSTREAM, "/sent/{id}", "orders:{id}", body="stream", incomplete="in-doubt"),
                  route(UPSTREAM, "/looked/{id}", "looked:{id}", "committed", if_match=True)])])
LEASE, GATEWAY = WORLD.lease_daemon, WORLD.gateway_daemon


def hang_up():
    for daemon in (LEASE, GATEWAY):
        daemon.send(signal.SIGHUP)


def states(lease):
    return [one["state"] for one in OPS(GATEWAY, "GET", f"/v1/intents/{lease}")[1]["items"]]


def is_cut(told):
    try:
        told.read()
    except (http.client.IncompleteRead, ConnectionError):
        return True
    return False


PART = 20000
LONG = [b"%x\r\n%s\r\n" % (PART, b"x" * PART), b"x" * PART]


class Begun:
    """All that a caller can have begun: it waits for a lease and for one of several, listens, sends a body, a write of it waits, and the answers
    to a read and a write of it have begun."""

    def __init__(self, caller):
        self.lease, self.go = WORLD.name("orders"), threading.Event()
        self.path = f"/orders/{self.lease.partition(':')[2]}"
        UPSTREAM.act = self.act
        _, held = OPS(LEASE, "POST", f"/v1/leases/{self.lease}")
        self.first = OPS.begin(GATEWAY, "PUT", self.path, f"Fencing-Token: {held['fencing_token']}", body=b"first")
        wait_until(lambda: states(self.lease) == ["sending"], "it is sent")
        OPS(LEASE, "POST", f"/v1/leases/{self.lease}/force-release")
        status, self.own = caller(LEASE, "POST", f"/v1/leases/{self.lease}")
        check_equal(status, 201, self.own)
        self.write = caller.begin(GATEWAY, "PUT", self.path, f"Fencing-Token: {self.own['fencing_token']}", body=b"second")
        json_type = "Content-Type: application/json"
        self.waits = []
        for target, more in ((f"/v1/leases/{self.lease}", {}), ("/v1/leases", {"names": [self.lease]})):
            self.waits.append(caller.begin(LEASE, "POST", target, json_type, body=json.dumps({"wait_ms": 60000, **more}).encode()))
            wait_until(lambda: OPS(LEASE, "GET", f"/v1/leases/{self.lease}")[1]["waiting"] == len(self.waits), "it waits")
        _, other = caller(LEASE, "POST", f"/v1/leases/{WORLD.name('orders')}")
        self.other, token = other["lease"], f"Fencing-Token: {other['fencing_token']}"
        self.told = [http.client.HTTPResponse(caller.begin(GATEWAY, method, f"/orders/{self.other.partition(':')[2]}", *lines, body=body))
                     for method, lines, body in (("GET", (), b""), ("PUT", (token,), b"long"))]
        for told in self.told:
            told.begin()
            check_equal((told.status, told.read(7)), (200, b"x" * 7))
        [scheme], [forwarded] = (UPSTREAM.requests[-1].values(name) for name in ("X-Forwarded-Proto", "Forwarded"))
        check_equal([scheme, forwarded.rpartition(";proto=")[2]], ["http" if caller.unix else "https"] * 2)
        self.sends = caller.begin(LEASE, "POST", f"/v1/leases/{WORLD.name()}", json_type, body=b"{", left=b"}")
        self.streams = [caller.begin(LEASE, "GET", target, "Accept: text/event-stream")
                        for target in ("/v1/events", f"/v1/events?lease={self.lease}", "/v1/overview")]
        self.heads = [http.client.HTTPResponse(one) for one in self.streams]
        for head in self.heads:
            head.begin()
            check_equal(head.status, 200)
        wait_until(lambda: states(self.lease) == ["sending", "queued"], "it is queued")

    def act(self, upstream, request):
        is_long = request.method == "GET" or request.body == b"long"
        if is_long:  # of a write with a length, of a read in chunks
            request.connection.send(b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: %d" % (2 * PART) if request.body else b"Transfer-Encoding: chunked")
                                    + b"\r\n\r\n" + LONG[bool(request.body)])
        if request.body == b"first" or is_long:
            check(self.go.wait(20), "nobody let it go on")
        if is_long:
            request.connection.send(LONG[bool(request.body)] + (b"" if request.body else b"0\r\n\r\n"))
        else:
            Upstream.obey(upstream, request)

    def hears(self, text, of_overview=None):
        since = time.monotonic()
        for head, text in zip(self.heads, (text, text, of_overview or text)):
            while text not in (line := head.readline().decode()):
                check("forbidden" not in line and line and time.monotonic() - since < 20, f"{line!r} comes before {text}")

    def has_ended(self, sends):
        since = time.monotonic()
        self.hears("event: forbidden")
        for one in (*self.waits, self.write):
            status, body = answer(one)
            check_equal((status, body["code"], body["identity"], body["lease"]), (403, "forbidden", "job", self.lease))
            check_in("credential", body["detail"])
        for told in self.told:
            check(is_cut(told), "it ends well")
        check(time.monotonic() - since < 3, f"it took {time.monotonic() - since} s")  # a second, and a machine that is busy
        check_equal(states(self.other), ["sending"])
        self.sends.sendall(b"}")
        check_equal(answer(self.sends)[0], sends)
        self.go.set()
        check_equal(answer(self.first)[0], 200)
        check_equal([one.body for one in UPSTREAM.requests if one.target == self.path], [b"first"])
        wait_until(lambda: states(self.other) == [], "the write's end is known")
        check_equal(OPS(LEASE, "GET", f"/v1/leases/{self.lease}")[1]["waiting"], 0)

    def goes_on(self, sends=201):
        self.sends.sendall(b"}")
        self.go.set()
        answers = [answer(one) for one in (self.sends, self.first, self.write)]
        check_equal([status for status, _ in answers], [sends, 200, 200], f"{answers}")
        check_equal([len(told.read()) for told in self.told], [2 * PART - 7] * 2)
        for wait in self.waits:
            OPS(LEASE, "POST", f"/v1/leases/{self.lease}/force-release")
            check_equal(answer(wait)[0], 201)
        self.hears("event: granted", "event: overview")


def changed(change):
    document = copy.deepcopy(DOCUMENT)
    change(document)
    return document


def moved(document):
    document["identities"]["other"]["access_tokens"] = [document["identities"]["job"]["access_tokens"].pop(0)]


def job(member):
    return partial(write, changed(lambda document: document["identities"]["job"].pop(member)))


def issuer(**members):
    return partial(write, changed(lambda document: document["issuers"]["k8s"].update(members)))


MOVED = partial(write, changed(moved))
JWT, BOUND = Caller(jwt(KEY)), Caller(bound_to("job"), "job")
ENDS = (("the hash of an access token", TOKEN, partial(write, changed(lambda document: document["identities"]["job"]["access_tokens"].pop(0)))),
        ("an access token that is another's now", TOKEN, MOVED),
        ("a uid", UID, job("uids")), ("the name of a certificate", CERTIFICATE, job("certs")),
        ("a certificate that is revoked", CERTIFICATE, partial(write, DOCUMENT, revoked=["job"])),
        ("that, beside an access file that is refused", CERTIFICATE, partial(write, [], revoked=["job"])),
        ("the authority of a certificate", CERTIFICATE, partial(write, DOCUMENT, authority="other")),
        ("the key of a JWT", JWT, partial(write, DOCUMENT, key=NEW_KEY)), ("the issuer of a JWT", JWT, issuer(iss="https://other.example")),
        ("the audience of a JWT", JWT, issuer(aud="another")), ("the subject of a JWT", JWT, job("subjects")),
        ("the certificate that a JWT is bound to", BOUND, partial(write, DOCUMENT, revoked=["job"])))


def wait_known(caller):
    for daemon in (LEASE, GATEWAY):
        wait_until(lambda: caller(daemon, "GET", "/v1/access")[1].get("identity") == "job", "it is known")  # pylint: disable=cell-var-from-loop


@test
@of_time
def what_was_begun_with_it_ends_and_with_others_of_its_identity_goes_on():
    for what, caller, take_out in ENDS:
        write(DOCUMENT)
        hang_up()
        wait_known(caller)
        stays, begun = Begun(STAYS), Begun(caller)
        take_out()
        hang_up()
        try:
            begun.has_ended(201 if take_out is MOVED else 401)  # another may send it
            stays.goes_on()
        except (AssertionError, OSError) as error:
            raise AssertionError(f"{what}: {error}") from error
    write(DOCUMENT)
    hang_up()


@test
@of_time
def what_has_not_left_is_refused_and_of_what_has_a_write_alone_learns_its_end():
    for take_out in (ENDS[0][2], partial(write, changed(lambda document: document["rules"][0].update(who=["ops"])))):
        write(DOCUMENT)
        hang_up()
        wait_known(TOKEN)
        go, came = threading.Event(), []

        def act(upstream, request):
            came.append(request.body or request.method.encode())  # pylint: disable=cell-var-from-loop
            if request.target.endswith("?begun"):
                request.connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + LONG[1])
            check(go.wait(20), "nobody let it go on")  # pylint: disable=cell-var-from-loop
            if request.body == b"long":
                request.connection.answer(body=2 * LONG[1])
            else:
                Upstream.obey(upstream, request)

        UPSTREAM.act = act
        held = [TOKEN(LEASE, "POST", f"/v1/leases/{WORLD.name(stem)}")[1] for stem in ("orders", "orders", "looked")]
        path, streamed, looked = (f"/{first}/{one['lease'].partition(':')[2]}" for first, one in zip(("orders", "sent", "looked"), held))
        tokens = [f"Fencing-Token: {one['fencing_token']}" for one in held]
        read, begun = (TOKEN.begin(GATEWAY, "GET", path + query) for query in ("", "?begun"))
        short, long = (TOKEN.begin(GATEWAY, "PUT", path, tokens[0], body=body) for body in (b"short", b"long"))
        comes = TOKEN.begin(GATEWAY, "PUT", path, tokens[0], body=b"c" * 100000, left=b"c")
        streams = TOKEN.begin(GATEWAY, "PUT", streamed, tokens[1], body=b"s" * 100000, left=b"s")
        looks = TOKEN.begin(GATEWAY, "PUT", looked, tokens[2], body=b"looks")
        begun = http.client.HTTPResponse(begun)
        begun.begin()
        sent = [b"GET", b"GET", b"HEAD", b"long", b"short"]
        wait_until(lambda: sorted(came) == sent and states(held[1]["lease"]) == ["sending"], "they are sent")  # pylint: disable=cell-var-from-loop
        take_out()
        WORLD.redis.stop()
        asks = TOKEN.begin(GATEWAY, "PUT", path, tokens[0], body=b"asks")
        wait_until(lambda: b"pawl_gateway_forwarding 8\n" in OPS(GATEWAY, "GET", "/metrics")[1], "it is asked for")
        hang_up()
        check_equal([answer(one)[0] for one in (read, comes, looks, streams)], [403, 403, 403, 504])
        check(is_cut(begun), "it ends well")
        WORLD.redis.go_on()
        check_equal(answer(asks)[0], 403)
        check_equal(states(held[1]["lease"]), ["unknown"])
        go.set()
        check_equal(answer(short), (200, b"done"))
        told = http.client.HTTPResponse(long)
        told.begin()
        check(told.status == 200 and is_cut(told), "its end is told, and no more")
        wait_until(lambda: states(held[0]["lease"]) == [], "both ends are known")  # pylint: disable=cell-var-from-loop
        check_equal(sorted(came), sent)


@test
def who_may_write_with_its_own_holds_only_from_now_on_sends_nothing_more_with_anothers():
    """Neither what the store was asked for before, nor the end of a body that is streamed."""
    write(DOCUMENT)
    hang_up()
    wait_known(TOKEN)
    UPSTREAM.act = Upstream.obey
    holds = [caller(LEASE, "POST", f"/v1/leases/{WORLD.name('orders')}")[1] for caller in (OPS, OPS, TOKEN)]
    tokens = [f"Fencing-Token: {one['fencing_token']}" for one in holds]
    paths = [f"/{first}/{one['lease'].partition(':')[2]}" for first, one in zip(("orders", "sent", "orders"), holds)]
    streams = TOKEN.begin(GATEWAY, "PUT", paths[1], tokens[1], body=b"s" * 100000, left=b"s")
    wait_until(lambda: states(holds[1]["lease"]) == ["sending"], "it is sent")
    write(changed(lambda document: document["rules"][0].update(may=["acquire", "look", "read", "write-own", "resolve"])))
    WORLD.redis.stop()
    asks, own = (TOKEN.begin(GATEWAY, "PUT", paths[i], tokens[i], body=body) for i, body in ((0, b"anothers"), (2, b"its own")))
    wait_until(lambda: b"pawl_gateway_forwarding 3\n" in OPS(GATEWAY, "GET", "/metrics")[1], "they are asked for")
    hang_up()
    check_equal(answer(streams)[0], 504)
    WORLD.redis.go_on()
    status, body = answer(asks)
    check_equal((status, body["code"], body["verb"], body["lease"]), (403, "forbidden", "write", holds[0]["lease"]))
    check_equal(answer(own), (200, b"done"))
    check(not any(one.body == b"anothers" for one in UPSTREAM.requests), "it was sent")
    check_equal(states(holds[1]["lease"]), ["unknown"])
    wait_until(lambda: states(holds[0]["lease"]) == [], "its intent is closed")
    write(DOCUMENT)
    hang_up()


@test
@of_time
def a_credential_that_stays_goes_on_also_when_its_time_is_over():
    """Expiry ends beginnings; revocation ends everything."""
    write(DOCUMENT)
    hang_up()
    now = int(time.time())
    MADE.certified("old", "ca", "subjectAltName=DNS:job.example.org\nextendedKeyUsage=clientAuth\n")
    MADE.ends_at("old", "ca", now + 14)
    old = Caller(jwt(KEY, iat=now - 600, exp=now - 46)), Caller(certificate="old"), Caller(bound_to("old"), "old")
    for caller in (TOKEN, UID, CERTIFICATE, JWT, BOUND, *old):
        wait_known(caller)
    begun = [(caller, Begun(caller)) for caller in (TOKEN, UID, CERTIFICATE, JWT, BOUND, *old)]
    for caller in old:
        wait_until(lambda: caller(LEASE, "GET", "/v1/access")[0] == 401, "it is over")  # pylint: disable=cell-var-from-loop
    write(changed(lambda document: document["identities"].update(more={})))
    hang_up()
    digest = hashlib.sha256(FILE.read_bytes()).hexdigest()
    for daemon in (LEASE, GATEWAY):
        wait_until(lambda: OPS(daemon, "GET", "/v1/access")[1]["hash"] == digest, "it judges")  # pylint: disable=cell-var-from-loop
    for caller, one in begun:
        one.goes_on(401 if caller in old else 201)  # what is not whole has not begun


main(WORLD.close, parts=2)
