#!/usr/bin/python3
"""JWTs of named issuers: each algorithm, whatever is wrong with one, clocks, keys that change. Signed by openssl."""

import hashlib
import http.client
import json
import os
import pathlib
import ssl
import tempfile
import time

from world import BUILD, Daemon, World, check, check_equal, check_in, main, run_daemon, test, wait_until
from world.access import reloaded, write_private
from world.certificate import certificate
from world.jwt import Key, b64, jwt, openssl
from world.shim import Shim, Suspension

FOLDER = pathlib.Path(tempfile.mkdtemp(dir=os.environ["TMPDIR"]))
FILE = FOLDER / "access.json"

KEYS = {"RS256": Key(FOLDER, "RS256", "rsa", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
        "ES256": Key(FOLDER, "ES256", "ec", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
        "EdDSA": Key(FOLDER, "EdDSA", "ed", "-algorithm", "ED25519")}
OTHER = Key(FOLDER, "ES256", "ec", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")  # the same kid, in the file of another issuer
KEYS["ES256"] = Key(FOLDER, "ES256", "ec2", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
WEAK = Key(FOLDER, "RS256", "weak", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024")


def document(subjects=("system:worker",)):
    return {"issuers": {"k8s": {"iss": "https://k8s.example", "aud": "pawl", "jwks": str(FOLDER / "k8s.json"), "algs": ["RS256", "ES256", "EdDSA"]},
                        "one": {"iss": "https://one.example", "aud": "pawl", "jwks": str(FOLDER / "one.json"), "algs": ["ES256"]}},
            "identities": {"worker": {"subjects": {"k8s": list(subjects)}}, "single": {"subjects": {"one": ["s"]}}},
            "rules": [{"who": ["known"], "may": ["acquire", "look", "observe"], "on": ["*"]}]}


write_private(FOLDER / "k8s.json", {"keys": [*(key.jwk() for key in KEYS.values()), WEAK.jwk(), {"kty": "oct", "k": "AAAA"}, {"kty": "EC", "crv": "P-384"}], "x": 1})
write_private(FOLDER / "one.json", {"keys": [OTHER.jwk()]})
write_private(FILE, document())
WORLD = World("--access", str(FILE), "--trusted-proxy", "127.0.0.1")
WORLD.lease, WORLD.gateway = WORLD.lease.roaming(), WORLD.gateway.roaming()


def ask(token, client=None, method="GET", path="/v1/access", headers=()):
    return (client or WORLD.lease)(method, path, {"Authorization": f"Bearer {token}", **dict(headers)})


def refused(token, why, **how):
    answer = ask(token, **how)
    check_equal((answer.status, answer.code, answer.json.get("why")), (401, "unauthenticated", why), f"{answer}")


def reload(digest=None):
    line = reloaded(WORLD.lease_daemon)
    check_in("access-refused" if digest else "access-loaded", line)
    return line


@test
def each_algorithm_is_taken_from_its_own_issuer():
    for key in KEYS.values():
        for client in (WORLD.lease, WORLD.gateway):
            told = ask(jwt(key), client).json
            check_equal((told["identity"], told["by"], told["may"]), ("worker", "jwt", ["acquire", "look", "observe"]), key.alg)
    check_equal(ask(jwt(KEYS["RS256"], aud=["other", "pawl"])).status, 200)
    check_equal(ask(jwt(OTHER, iss="https://one.example", sub="s")).json["identity"], "single")
    check_equal(ask(jwt(OTHER, {"kid": None}, iss="https://one.example", sub="s")).status, 200, "of one key a kid need not be said")


@test
def whatever_is_wrong_with_one_is_401_and_says_what():
    now, key, rsa = int(time.time()), KEYS["ES256"], KEYS["RS256"]
    for token, why in (
            (jwt(key, iss="https://evil.example"), "issuer"), (jwt(key, iss=None), "malformed"), (jwt(key, iss=1), "malformed"),
            (jwt(key, aud="other"), "audience"), (jwt(key, aud=["a", "b"]), "audience"), (jwt(key, aud=None), "audience"), (jwt(key, aud=[]), "audience"),
            (jwt(key, sub="system:other"), "unknown"), (jwt(key, sub=None), "malformed"),
            (jwt(key, exp=None), "malformed"), (jwt(key, iat=None), "malformed"), (jwt(key, exp=now + 86401, iat=now), "malformed"),
            (jwt(key, exp=2 ** 63 - 1, iat=2 ** 63 - 1), "malformed"), (jwt(key, exp=2 ** 62, iat=2 ** 62), "not-yet"),
            (jwt(key, exp=now - 1, iat=now), "malformed"), (jwt(key, exp=1e3), "malformed"), (jwt(key, nbf="x"), "malformed"),
            (jwt(key, exp=now - 61, iat=now - 600), "expired"), (jwt(key, nbf=now + 400), "not-yet"), (jwt(key, iat=now + 400, exp=now + 600), "not-yet"),
            (jwt(key, {"crit": ["x"]}), "malformed"), (jwt(key, {"alg": "none"}), "malformed"), (jwt(key, {"alg": "HS256"}), "malformed"),
            (jwt(key, {"alg": "RS256"}), "malformed"), (jwt(key, {"alg": "ES256", "kid": "rsa"}), "malformed"), (jwt(key, {"kid": None}), "malformed"),
            (jwt(key, {"kid": "nobody"}), "malformed"), (jwt(key, {"kid": 1}), "malformed"), (jwt(WEAK), "malformed"),
            (jwt(OTHER), "malformed"), (jwt(OTHER, {"kid": "ec2"}), "signature"),
            (jwt(key, iss="https://one.example", sub="s"), "malformed"), (jwt(key, {"kid": "ec"}, iss="https://one.example", sub="s"), "signature"),
            (jwt(key)[:-4] + "AAAA", "signature"), (jwt(rsa)[:-4] + "AAAA", "signature"), (jwt(rsa) + "=", "malformed"), (jwt(rsa) + ".x", "malformed"),
            ("a.b.c", "malformed"), ("..", "malformed"), (jwt(key, pad="x" * 2000), "malformed"),
            (jwt(key, cnf={"x5t#S256": b64(bytes(32))}), "certificate"), (jwt(key, cnf={}), "malformed"), (jwt(key, cnf="x"), "malformed")):
        refused(token, why)
    for token, said in ((jwt(key, sub="x"), "no identity of the access file has its sub"), (jwt(key, exp=None), "at most 24 h apart"), ("a.b.c", "JWT")):
        check_in(said, ask(token).json["detail"])
    check_equal(ask(jwt(key, exp=int(time.time()) - 10, iat=now - 600)).status, 200, "60 s of leeway")
    head, _, signature = jwt(key).split(".")
    body = b64(json.dumps({"iss": "https://k8s.example", "aud": "pawl", "sub": "system:worker", "iat": now, "exp": now + 601}).encode())
    twice = b64(b'{"alg":"ES256","alg":"none","kid":"ec2"}')
    refused(f"{head}.{body}.{signature}", "signature")
    refused(f"{twice}.{body}.{signature}", "malformed")


@test
def expiry_ends_beginnings_and_revocation_everything():
    """One that was good here and has expired still keeps what its identity holds; one that was never seen gets nothing."""
    now, name = int(time.time()), WORLD.name()
    token = jwt(KEYS["ES256"], iat=now - 600, exp=now - 57)
    grant = ask(token, method="POST", path=f"/v1/leases/{name}").json
    check_equal(grant["identity"], "worker")
    mine = {"Lease-Id": grant["lease_id"]}
    wait_until(lambda: ask(token).status == 401, "it has expired")
    refused(token, "expired", method="POST", path=f"/v1/leases/{WORLD.name()}")
    check_equal(ask(token, method="PUT", path=f"/v1/leases/{name}", headers=mine).status, 200)
    refused(jwt(KEYS["ES256"], iat=now - 601, exp=now - 61), "expired", method="PUT", path=f"/v1/leases/{name}", headers=mine)
    write_private(FILE, document(["system:new"]))
    reload()
    wait_until(lambda: ask(token, method="PUT", path=f"/v1/leases/{name}", headers=mine).status == 401, "it is revoked")
    refused(token, "unknown", method="PUT", path=f"/v1/leases/{name}", headers=mine)
    write_private(FILE, document())
    reload()
    wait_until(lambda: ask(token, method="PUT", path=f"/v1/leases/{name}", headers=mine).status == 200, "it is back")
    check_equal(ask(token, method="DELETE", path=f"/v1/leases/{name}", headers=mine).status, 204)


class Caller:
    """Somebody at a service over TLS, each time on a connection of its own and on one that stays."""

    def __init__(self, daemon, headers, shown=()):
        self.headers, self.connections, self.held, self.session = headers, [], None, None
        for _ in range(2):
            trusts = ssl.create_default_context(cafile=str(FOLDER / "server.pem"))
            if shown:
                trusts.load_cert_chain(*shown)
            self.connections.append(http.client.HTTPSConnection("127.0.0.1", daemon.port, timeout=15, context=trusts))

    def __call__(self, method, path, **headers):
        answers = []
        for one in self.connections if method == "PUT" else self.connections[:1]:
            one.request(method, path, headers={**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}})
            answer = one.getresponse()
            answers.append((answer.status, answer.read()))
        self.connections[1].close()
        check_equal(len({status for status, _ in answers}), 1, f"{answers}")
        return answers[0][0], json.loads(answers[0][1] or b"{}")

    def begins(self):
        (status, self.held), (also, self.session) = self("POST", f"/v1/leases/{WORLD.name()}"), self("POST", "/v1/sessions")
        check_equal((status, also), (201, 201), f"{self.held} {self.session}")

    def keeps(self):
        return [self("PUT", f"/v1/leases/{self.held['lease']}", Lease_Id=self.held["lease_id"])[0],
                self("PUT", f"/v1/sessions/{self.session['session']}", Session_Secret=self.session["session_secret"])[0]]

    def releases(self):
        return [self("DELETE", f"/v1/leases/{self.held['lease']}", Lease_Id=self.held["lease_id"])[0],
                self("DELETE", f"/v1/sessions/{self.session['session']}", Session_Secret=self.session["session_secret"])[0]]


@test
def a_clock_that_jumps_an_hour_ends_beginnings_and_no_hold():
    """What each shows begins or ends within the hour that is jumped over; the certificates are good for two days."""
    certificate(FOLDER, "server", "IP:127.0.0.1")
    shown, fresh, third = (certificate(FOLDER, name, "DNS:shown.example", "clientAuth") for name in ("shown", "fresh", "third"))
    (FOLDER / "ca.pem").write_bytes(b"".join(pathlib.Path(pem).read_bytes() for pem, _ in (shown, fresh, third)))
    rules = document()
    rules["identities"]["shown"] = {"certs": ["dns:shown.example"], "subjects": {"k8s": ["shown"]}}
    rules["rules"][0]["may"].append("session")
    write_private(FOLDER / "clock.json", rules)
    bound = {"sub": "shown", "cnf": {"x5t#S256": b64(hashlib.sha256(openssl("x509", "-in", shown[0], "-outform", "DER")).digest())}}
    for jump_s, now_s in ((3600, 2 * 86400 - 1800), (-3600, 1800)):
        shim = Shim(BUILD / "torture" / "shim.so", str(FOLDER / "shim"))
        shim.set(clock_s=now_s)
        daemon = Daemon("pawl-lease", *WORLD.flags[:6], "--access", str(FOLDER / "clock.json"), "--tls-cert", str(FOLDER / "server.pem"), "--tls-key",
                        str(FOLDER / "server.key"), "--tls-client-ca", str(FOLDER / "ca.pem"), environment=shim.environment)
        dates = {"iat": int(time.time()) + now_s, "exp": int(time.time()) + now_s + 1800}

        def bearer(**body):
            return {"Authorization": f"Bearer {jwt(KEYS['ES256'], **dates, **body)}"}  # pylint: disable=cell-var-from-loop
        callers = [Caller(daemon, bearer()), Caller(daemon, {}, shown), Caller(daemon, bearer(**bound), shown)]
        strangers = [Caller(daemon, bearer(jti="1")), Caller(daemon, {}, fresh), Caller(daemon, bearer(**bound, jti="1"), shown)]
        wait_until(lambda: callers[0]("GET", "/readyz")[0] == 200, "it is ready")  # pylint: disable=cell-var-from-loop
        stolen = Caller(daemon, callers[2].headers, third)  # with a certificate that is as good, and not the one that it is bound to
        check_equal(stolen("GET", "/v1/leases/a")[1].get("why"), "certificate")
        for one in callers:
            one.begins()
        check_equal(stolen("GET", "/v1/leases/a")[1].get("why"), "certificate", "also when it is known")
        shim.set(clock_s=now_s + jump_s)
        for one, stranger in zip(callers, strangers):
            check_equal([one("POST", f"/v1/leases/{WORLD.name()}")[0], one("GET", "/v1/leases/a")[0], *one.keeps()], [401, 401, 200, 200], f"{jump_s} {callers.index(one)}")
            stranger.held, stranger.session = one.held, one.session
            check_equal(stranger.keeps(), [401, 401], "what was not good here before")
        shim.set(clock_s=now_s)
        callers[0].keeps()
        check_equal(callers[0]("POST", f"/v1/leases/{WORLD.name()}")[0], 201, "as before")
        shim.set(clock_s=now_s + jump_s)
        check_equal([one.releases() for one in callers], [[204, 204]] * 3)
        check(shim.counts()[1] > 0, "the clock was never asked for")
        check_equal(daemon.end(), 0)


@test
def what_has_ended_while_the_machine_was_suspended_ended_then():
    """CLOCK_MONOTONIC stands still meanwhile: by that the ten minutes would only begin."""
    suspension = Suspension(3600)
    daemon = Daemon("pawl-lease", *WORLD.flags[:6], "--access", str(FILE), environment=suspension.environment)
    client, now, held = WORLD.client(daemon), int(time.time()), []
    wait_until(client.is_ready, "it is ready")
    for ends_s in (600, 3000):
        token = jwt(KEYS["ES256"], exp=now + ends_s)
        path = f"/v1/leases/{WORLD.name()}"
        held.append((token, path, {"Lease-Id": ask(token, client, "POST", path).json["lease_id"]}))
    suspension.is_over()
    for (token, path, mine), status in zip(held, (401, 200)):
        refused(token, "expired", client=client, method="POST", path=path)
        check_equal(ask(token, client, "PUT", path, mine).status, status, "49 minutes ago, and 9")
    check_equal(daemon.end(), 0)


@test
def the_keys_are_read_again_with_the_file():
    old = jwt(KEYS["EdDSA"])
    check_equal(ask(old).status, 200)
    write_private(FOLDER / "k8s.json", {"keys": [KEYS["RS256"].jwk()]})
    reload()
    wait_until(lambda: ask(old).status == 401, "the key is gone")
    refused(old, "malformed")
    check_equal(ask(jwt(KEYS["RS256"])).status, 200)
    for wrong, place in (({"keys": []}, "has no key"), ([], "has no key"), ({"keys": [WEAK.jwk()]}, "has no key")):
        write_private(FOLDER / "k8s.json", wrong)
        check_in(place, reload("refused"))
        check_equal(ask(jwt(KEYS["RS256"])).status, 200, "the one of before stays")
    (FOLDER / "k8s.json").chmod(0o666)
    check_in("chmod go-w", reload("refused"))
    done = run_daemon("pawl-lease", *WORLD.flags)
    check_equal(done.returncode, 78)
    check_in("issuers.k8s.jwks", done.stderr)
    write_private(FOLDER / "k8s.json", {"keys": [key.jwk() for key in KEYS.values()]})
    reload()


@test
def a_jwt_is_never_in_the_log():
    text = WORLD.lease_daemon.log()
    heads = [word for word in ("eyJhbG", "eyJ0eX", "eyJraW") if word in text]  # {"alg, {"typ, {"kid; "eyJ" is in one of 1,000 logs
    check_equal((hashlib.sha256(b"").hexdigest() in text, heads), (False, []))


main(WORLD.close)
