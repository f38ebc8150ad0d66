#!/usr/bin/python3
"""deploy/proxies: TLS and authentication in front of both services, each file run by the proxy that it is for. PAWL_WAIT_S: how
long a wait in line and a stream of events have to last there (by default short)."""

import contextlib
import gzip
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile
import threading
import time

from world import BUILD, World, check, check_equal, check_in, gives, main, of_time, skip, test, test_in, wait_until
from world.certificate import certificate
from world.ports import own_port
from world.proxies import App, Proxy, behind_each, shipped
from world.servers import program
from world.upstream import Upstream, route, routes_file

NAMES = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg", "caddy": "Caddyfile", "apache2": "apache.conf", "lighttpd": "lighttpd.conf",
         "varnishd": "varnish.vcl"}
WAIT_S = float(os.environ.get("PAWL_WAIT_S", "2"))
TRUSTS = ("--allow-host", "pawl.example", "--trusted-proxy", "127.0.0.1")
WORLD = World(lease_flags=TRUSTS, gateway_flags=TRUSTS)
LEASES = [WORLD.lease_daemon.port, WORLD.daemon("pawl-lease", *TRUSTS).port]
GATEWAYS = [WORLD.gateway_daemon.port, WORLD.daemon("pawl-gateway", *TRUSTS).port]
CLIENT, OPERATOR = "c" * 64, "0" * 64
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="pawl-front-"))
subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=pawl.example",
                "-addext", "subjectAltName=DNS:pawl.example", "-keyout", FOLDER / "pawl.key", "-out", FOLDER / "pawl.crt"],
               check=True, capture_output=True)
(FOLDER / "pawl.pem").write_bytes((FOLDER / "pawl.crt").read_bytes() + (FOLDER / "pawl.key").read_bytes())
TRUSTED = ssl.create_default_context(cafile=str(FOLDER / "pawl.crt"))


class Front(Proxy):
    """A proxy with its file from deploy/proxies. leases, gateways: the ports of two each; extra: more to change in the file."""

    open, named = {}, NAMES

    def __init__(self, name, leases=None, gateways=None, extra=None):
        if program(name) is None:
            skip(f"{name} is not installed")
        self.tls = name != "varnishd"
        super().__init__(name, (leases or LEASES) + (gateways or GATEWAYS), None, extra)

    @classmethod
    def of(cls, name):
        if name not in cls.open:
            cls.open[name] = cls(name)
        return cls.open[name]

    def _prepare(self, gateway, app, extra):
        path = f"proxies/{self.named[self.name]}"
        own = shipped(path, {})
        for place, port in zip((8700, 8702, 8701, 8703, 8443), (*gateway, self.port)):
            own = own.replace(f"127.0.0.1:{place}", f"127.0.0.1:{port}").replace(f":{place} {{", f":{port} {{")
            for form in ('"port" => {}', '.port = "{}"', "server.port = {}"):
                own = own.replace(form.format(place), form.format(port))
        own = own.replace("CLIENT-SECRET", CLIENT).replace("OPERATOR-SECRET", OPERATOR).replace("/etc/pawl/tls", str(FOLDER))
        for old, new in extra.items():
            check_in(old, own)
            own = own.replace(old, new)
        return getattr(self, f"_begin_{self.name}")(self.write(NAMES[self.name], own)), {
            "HOME": self.folder, "XDG_DATA_HOME": self.folder, "XDG_CONFIG_HOME": self.folder}

    def _begin_nginx(self, path):
        places = "".join(f"{kind}_temp_path {self.folder}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        main_file = self.write("main.conf", "daemon off; master_process off; pid pid; events {} http { access_log off; gzip on; " + places +
                                f"include {path}; }}")
        return ["-p", self.folder, "-c", main_file, "-e", "stderr"]

    def _begin_haproxy(self, path):
        return ["-db", "-f", path]

    def _begin_caddy(self, path):
        return ["run", "--config", path, "--adapter", "caddyfile"]

    def _begin_apache2(self, path):
        wanted = "mpm_event authz_core ssl socache_shmcb rewrite headers proxy proxy_http proxy_balancer slotmem_shm lbmethod_byrequests filter deflate"
        modules = "".join(f"LoadModule {one}_module /usr/lib/apache2/modules/mod_{one}.so\n" for one in wanted.split())
        main_file = self.write("main.conf", f"{modules}ServerName localhost\nPidFile {self.folder}/pid\nErrorLog /dev/stderr\n"
                                f"DefaultRuntimeDir {self.folder}\nUser www-data\nGroup www-data\nAddOutputFilterByType DEFLATE text/html\nInclude {path}\n")
        return ["-d", self.folder, "-f", main_file, "-DFOREGROUND"]

    def _begin_lighttpd(self, path):
        return ["-D", "-f", path]

    def _begin_varnishd(self, path):
        return ["-F", "-p", "send_timeout=1", "-a", f"127.0.0.1:{self.port}", "-f", path, "-n", self.folder + "/v", "-s", "malloc,16m", "-j", "none"]

    def connect(self, deadline_s=15):
        line = socket.create_connection(("127.0.0.1", self.port), timeout=deadline_s)
        return TRUSTED.wrap_socket(line, server_hostname="pawl.example") if self.tls else line

    def send(self, line, method, target, secret=CLIENT, headers=(), body=b""):
        own = [("Host", "pawl.example"), ("Content-Length", len(body))] + ([("Authorization", f"Bearer {secret}")] if secret else [])
        head = "".join(f"{name}: {value}\r\n" for name, value in own + list(headers))
        line.sendall(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body)

    def __call__(self, method, target, secret=CLIENT, headers=(), body=b"", deadline_s=15):
        """(status, headers, body)."""
        if isinstance(body, dict):
            body, headers = json.dumps(body).encode(), [*headers, ("Content-Type", "application/json")]
        with self.connect(deadline_s) as line:
            self.send(line, method, target, secret, headers, body)
            answer = http.client.HTTPResponse(line, method=method)
            answer.begin()
            return answer.status, answer.headers, answer.read()


each = behind_each(NAMES)
gives.update(front=Front.of, lease=WORLD.name)


@each
def a_lease_is_acquired_written_under_and_released_and_a_late_write_is_refused(front, lease):
    for _ in range(4):
        status, _, body = front("POST", f"/v1/leases/{lease}", body={"ttl_ms": 60000})
        check_equal(status, 201, body)
        grant = json.loads(body)
        token = [("Fencing-Token", grant["fencing_token"])]
        check_equal(front("PUT", f"/v1/leases/{lease}", headers=[("Lease-Id", grant["lease_id"])])[0], 200)
        check_equal(front("PUT", f"/v1/resources/{lease}", headers=token, body=b"x" * 300_000)[0] // 100, 2)
        status, headers, body = front("GET", f"/v1/resources/{lease}")
        check_equal((status, body), (200, b"x" * 300_000))
        check_equal(front("DELETE", f"/v1/leases/{lease}", headers=[("Lease-Id", grant["lease_id"])])[0], 204)
        status, headers, body = front("PUT", f"/v1/resources/{lease}", headers=token, body=b"late")
        check_equal((status, json.loads(body)["code"]), (412, "lease-expired"))
        check_in("verdict=refused", headers["Fencing-Status"])


# -- who may call

OPERATORS = ("/v1/leases/{}/force-release", "/v1/sessions/{}/end", "/v1/intents", "/v1/intents/{}", "/v1/intents/{}/resolve", "/v1/gateways/doubt", "/v1/gateways/{}/dead",
             "/v1/routes", "/v1/routes/adopt", "/metrics", "/readyz")
CROOKED = ("/v1/leases/{}/force%2Drelease", "/v1/leases/{}%2Fforce-release", "/v1//leases/{}/force-release", "//v1/leases/{}/force-release",
           "/v1/leases/{}/./force-release", "/v1/leases/x/../{}/force-release", "/x/../v1/leases/{}/force-release", "/%761/leases/{}/force-release",
           "/v1/%6ceases/{}/force-release", "/v1/leases/{}/force-release/", "/v1/leases/{}/force-release#x", "/v1/leases/{}/force-release%20",
           "/v1/leases/{}/force-release;x", "/v1/leases/{}/Force-Release", "/V1/leases/{}/force-release", "http://pawl.example/v1/leases/{}/force-release",
           "HTTP://pawl.example/v1/leases/{}/force-release", "http://x/y/../v1/leases/{}/force-release", "/v1/sessions/../leases/{}/force-release",
           "/v1/resources/../leases/{}/force-release", "/v1/resources/..%2fleases/{}/force-release", "\\v1\\leases\\{}\\force-release",
           "/v1/leases/{}/%66orce-release", "/v1/leases/{}/force-release%00", "x/v1/leases/{}/force-release", "/%2e/v1/leases/{}/force-release")
OF_SESSIONS = {"%6ceases": "%73essions", "leases": "sessions", "force%2Drelease": "en%64", "%66orce-release": "%65nd", "force-release": "end",
               "Force-Release": "End"}


@each
def who_has_no_secret_gets_nowhere(name, front, lease):
    denied = 403 if name == "lighttpd" else 401
    for secret in (None, "", "x", CLIENT[:-1], CLIENT + "c", CLIENT.upper(), " " + CLIENT[1:], f"{CLIENT} {OPERATOR}", "CLIENT-SECRET"):
        status, headers, body = front("POST", f"/v1/leases/{lease}", secret)
        check_equal((status, b"fencing_token" in body), (denied, False), f"{secret!r} {body[:200]}")
        check_equal(headers["WWW-Authenticate"], None if name == "lighttpd" else 'Bearer realm="pawl"')
    for target in ("/", "/livez", "/v1/check/a", "/v1/events", "/openapi.json"):
        check_equal(front("GET", target, None)[0], denied, target)
    check_equal(WORLD.look(lease)["token"], 0, "nothing was granted")


@each
def what_is_an_operators_a_client_cannot_do_however_it_spells_the_path(front, lease):
    grant = WORLD.acquire(lease, ttl_ms=60000)
    for target in OPERATORS:
        for method in ("GET", "POST"):
            check_equal(front(method, target.format(lease))[0], 403, target)
    for shape in CROOKED + OPERATORS[:1]:
        status, _, body = front("POST", shape.format(lease))
        check(status >= 400, f"{shape}: {status} {body[:100]}")
        check_equal(WORLD.look(lease)["token"], grant["token"], shape)
        check_equal(len(WORLD.look(lease)["holders"]), 1, shape)
    session = WORLD.lease("POST", "/v1/sessions", body={"ttl_ms": 60000}).json["session"]
    for shape in CROOKED + OPERATORS[:1]:
        for old, new in OF_SESSIONS.items():
            shape = shape.replace(old, new)
        status, _, body = front("POST", shape.format(session))
        check(status >= 400, f"{shape}: {status} {body[:100]}")
        check_equal(WORLD.lease("GET", f"/v1/sessions/{session}").status, 200, shape)
    check_equal([front("GET", target.format(lease), OPERATOR)[0] for target in ("/metrics", "/readyz", "/v1/intents", "/v1/gateways/doubt")], [200, 200, 200, 200])
    status, _, body = front("POST", f"/v1/leases/{lease}/force-release", OPERATOR)
    check_equal((status, json.loads(body)), (200, {"released_token": grant["token"]}))
    check_equal(front("POST", f"/v1/sessions/{session}/end", OPERATOR)[0], 200)


# -- what is passed on

class Behind:
    """One application in the place of all four services."""

    def __init__(self, name):
        self.app = App()
        port = int(self.app.address.split(":")[1])
        # It says 201 to everything, Varnish's probe wants 200; and it knows HTTP/1.1 alone.
        extra = {"varnishd": {".interval = 1s;": ".interval = 1s; .expected_response = 201;"}, "haproxy": {"GET /readyz": "GET /readyz HTTP/1.1"}}
        self.front = Front(name, [port, port], [port, port], extra.get(name))

    def take(self):
        return [one for one in self.app.take() if one.target != "/readyz"]

    def close(self):
        self.front.close()
        self.app.close()


@each
def a_request_comes_as_it_was_sent_without_the_secret_and_with_the_clients_address(name):
    site = Behind(name)
    said = [("X-Forwarded-For", "10.1.2.3"), ("Fencing-Token", "1:x"), ("Idempotency-Key", "k"), ("Content-Type", "text/x")]
    for target in ("/v1/leases/a", "/v1/resources/a:b/c?x=%7B", "/orders/42/lines/7?q=1&q=2"):
        for method in ("PUT", "PATCH", "DELETE", "POST"):
            body = bytes(range(256)) * 100 if method in ("PUT", "POST") else b""
            check_equal(site.front(method, target, headers=said, body=body)[0], 201)
            [landed] = site.take()
            check_equal((landed.method, landed.target, landed.body), (method, target, body))
            # lighttpd keeps the name of a header that it empties.
            check_equal([one for one in landed.values("Authorization") if one], [])
            check_equal(landed.values("X-Forwarded-For")[-1].split(",")[-1].strip(), "127.0.0.1")
            check_equal((landed.values("Host"), landed.values("Fencing-Token")), (["pawl.example"], ["1:x"]))
    site.close()


@each
def a_body_comes_as_it_was_stored(front, lease):
    """Whatever it says of its encoding, whatever the client takes, and with its ETag, which the next If-Match needs."""
    said = [("Fencing-Token", WORLD.acquire(lease)["fencing_token"]), ("Content-Type", "text/html")]
    for body, more in ((gzip.compress(b"a" * 3000), [("Content-Encoding", "gzip")]), (b"no gzip", [("Content-Encoding", "gzip")]), (b"a" * 3000, [])):
        version = front("PUT", f"/v1/resources/{lease}", headers=said + more, body=body)[1]["ETag"]
        for takes in ([], [("Accept-Encoding", "gzip, br")], [("Range", "bytes=0-1")]):
            status, headers, came = front("GET", f"/v1/resources/{lease}", headers=takes)
            check_equal((status, headers["ETag"], headers["Content-Encoding"], came), (200, version, more[0][1] if more else None, body))
        check_equal(front("GET", f"/v1/resources/{lease}", headers=[("If-None-Match", version)])[0], 304)


@each
def a_body_that_is_broken_off_is_not_stored_as_a_whole_one(front, lease):
    token = [("Fencing-Token", WORLD.acquire(lease)["fencing_token"])]
    check_equal(front("PUT", f"/v1/resources/{lease}", headers=token, body=b"whole")[0], 201)
    for rest in (b"no chunk\r\n", b""):
        with front.connect() as line:
            head = f"PUT /v1/resources/{lease} HTTP/1.1\r\nHost: pawl.example\r\nAuthorization: Bearer {CLIENT}\r\nTransfer-Encoding: chunked\r\n{': '.join(token[0])}\r\n\r\n"
            line.sendall(head.encode() + b"4\r\nhalf\r\n" + rest)
            socket.socket.shutdown(line, socket.SHUT_WR)
            with contextlib.suppress(OSError):
                line.recv(100)  # whatever Caddy says to who has closed its side: an empty 200
        check_equal(front("GET", f"/v1/resources/{lease}")[2], b"whole")


@each
def what_was_sent_is_sent_once(name):
    """Also when the connection breaks before the answer, and on one that had served another request. Nobody says 503 then: it certainly did not happen."""
    site = Behind(name)
    for method, more in (("PUT", []), ("DELETE", []), ("POST", [("Idempotency-Key", "k")]), ("PUT", [("Idempotency-Key", "k")]), ("GET", [])):
        for target in ("/v1/leases/a", "/orders/42"):
            site.app.breaks = False
            wait_until(lambda target=target: site.front("GET", target)[0] == 201, "it is not left out any more")
            site.take()
            with site.front.connect() as line:
                for breaks in (False, True):
                    site.app.breaks = breaks
                    site.front.send(line, method, target, headers=more)
                    answer = http.client.HTTPResponse(line, method=method)
                    try:
                        answer.begin()
                        answer.read()
                        status = answer.status
                    except (http.client.HTTPException, ConnectionError):
                        status = None
                    check(status == 201 if not breaks else status in (None, 500, 502, 504), f"{method} {target}: {status}")
                    check_equal(len(site.take()), 1, f"{method} {target}")
    site.close()


# -- waiting and listening

HTTP2 = ("nginx", "haproxy", "caddy", "lighttpd")
# They do not notice that a client has gone before they have something to send.
DEAF = ("apache2", "lighttpd", "varnishd")


def listeners(lease):
    return WORLD.redis("PUBSUB", "NUMSUB", f"pawl:e:{lease}")[1]


@each
@of_time
def events_come_at_once_and_who_hangs_up_is_not_listened_for(name, front):
    for accept, wanted in (("text/event-stream", b"\nevent: granted\n"), ("application/x-ndjson", b'"type":"granted"')):
        lease = WORLD.name()
        with front.connect() as line:
            front.send(line, "GET", f"/v1/events?lease={lease}", headers=[("Accept", accept)])
            answer = http.client.HTTPResponse(line)
            answer.begin()
            check_equal(answer.status, 200)
            first = answer.readline()
            check_in(first.split(b" now_ms")[0], (b": listening,", b"\n"))
            began = time.monotonic()
            WORLD.acquire(lease)
            text = b""
            while wanted not in text:
                text += answer.read1()
            check(time.monotonic() - began < 1, f"an event took {time.monotonic() - began:.1f} s")
            answer.close()
        if name not in DEAF:
            wait_until(lambda lease=lease: listeners(lease) == 0, "nobody listens")


@test
def a_default_nginx_passes_events_on():
    if program("nginx") is None:
        skip("nginx is not installed")
    plain = "server {{ listen 127.0.0.1:{}; location / {{ proxy_pass http://127.0.0.1:%d; }} }}" % LEASES[0]

    class Default(Front):
        def _prepare(self, gateway, app, extra):
            return self._begin_nginx(self.write("plain.conf", plain.format(self.port))), {}
    front, lease = Default("nginx"), WORLD.name()
    with socket.create_connection(("127.0.0.1", front.port), timeout=10) as line:
        line.sendall(f"GET /v1/events?lease={lease} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        answer = http.client.HTTPResponse(line)
        answer.begin()
        check_equal((answer.status, answer.readline()[:12]), (200, b": listening,"))
    front.close()


@test
def where_a_client_sends_no_secret_the_nginx_of_the_document_adds_it():
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/deploy.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```nginx\n(.*?)```", page, re.DOTALL)
    front, second = Front.of("nginx"), own_port()

    class Local(Front):
        def _prepare(self, gateway, app, extra):
            text = block.replace("https://pawl.example:8443", f"https://127.0.0.1:{front.port}").replace("CLIENT-SECRET", CLIENT)
            text = text.replace("8700", str(self.port)).replace("8701", str(second)).replace("/etc/ssl/certs/ca-certificates.crt", str(FOLDER / "pawl.crt"))
            return self._begin_nginx(self.write("local.conf", text)), {}
    local, lease = Local("nginx"), WORLD.name()
    environment = {**os.environ, "PAWL_LEASE_URL": f"http://127.0.0.1:{local.port}", "PAWL_GATEWAY_URL": f"http://127.0.0.1:{second}"}
    for text, status, *words in (("", 0, "acquire", lease, "-o", "env"), ("y" * (2 ** 20 + 1), 64, "put", lease), ("x", 0, "put", lease), ("", 0, "cat", lease)):
        told = subprocess.run([BUILD / "pawl", *words], env=environment, input=text, capture_output=True, text=True, check=False)
        check_equal(told.returncode, status, f"{words}: {told.stdout}{told.stderr}")
        environment.update(re.findall(r"(PAWL_\w+)='?([^'\n]*)", told.stdout))
    check_equal(told.stdout, "x")
    local.close()


class Verified(Front):
    """With the file that speaks TLS to the services; the client sends its access token."""

    open, named, token = {}, {"nginx": "nginx-tls.conf", "haproxy": "haproxy-tls.cfg"}, None

    def send(self, line, method, target, secret=CLIENT, headers=(), body=b""):
        super().send(line, method, target, self.token if secret == CLIENT else secret, headers, body)


def services_over_tls(upstream):
    """Their world, and the ports of two of each."""
    made = subprocess.run([BUILD / "pawl", "access", "new", "app"], capture_output=True, text=True, check=True).stdout.splitlines()
    Verified.token = made[0]
    (FOLDER / "access.json").write_text(f'{{"identities": {{{made[1]}}}, "rules": [{{"who": ["app"], "may": ["acquire", "look", "read", "write-own"], "on": ["*"]}}]}}')
    (FOLDER / "access.json").chmod(0o600)
    for name, subject, usage in (("ca", "DNS:pawl.internal", "serverAuth"), ("proxy", "DNS:proxy.internal", "clientAuth")):
        pem, key = map(pathlib.Path, certificate(FOLDER, name, subject, usage))
        (FOLDER / f"{name}.crt").write_bytes(pem.read_bytes())
        pem.write_bytes(pem.read_bytes() + key.read_bytes())
    table = routes_file(FOLDER, [route(upstream, "/orders/{id}/**", "orders:{id}")])
    world = World("--access", str(FOLDER / "access.json"), "--tls-cert", str(FOLDER / "ca.crt"), "--tls-key", str(FOLDER / "ca.key"),
                  "--tls-client-ca", str(FOLDER / "proxy.crt"), *TRUSTS, gateway_flags=["--routes", table])
    return world, [world.lease_daemon.port, world.daemon("pawl-lease").port], [world.gateway_daemon.port, world.daemon("pawl-gateway", "--routes", table).port]


@test_in(Upstream)
def services_over_tls_are_verified_and_know_who_calls(upstream):
    world, leases, gateways = services_over_tls(upstream)
    for name, away in (("nginx", 502), ("haproxy", 503)):
        front, lease = Verified(name, leases, gateways), f"orders:{name}"
        wait_until(lambda front=front: all(front("GET", target)[0] == 200 for target in ("/v1/leases", "/v1/resources") for _ in "12"), "it leads there")
        check_equal(front("GET", "/v1/access", None)[0], 401, "the certificate of the proxy is nobody's")
        with front.connect() as line:
            front.send(line, "GET", f"/v1/events?lease={lease}")
            events = http.client.HTTPResponse(line)
            events.begin()
            status, _, body = front("POST", f"/v1/leases/{lease}", body={"ttl_ms": 60000})
            check_equal(status, 201, body)
            text = b""
            while b"\nevent: granted\n" not in text:
                text += events.read1()
            events.close()
        grant, waiter = json.loads(body), Waiter(front, lease, 10)
        check_equal(front("PUT", f"/orders/{name}/x", headers=[("Fencing-Token", grant["fencing_token"])], body=b"x")[0], 200)
        check_equal((upstream.requests[-1].header("Pawl-Identity"), upstream.requests[-1].body), ("app", b"x"))
        wait_until(lambda front=front, lease=lease: json.loads(front("GET", f"/v1/leases/{lease}")[2])["waiting"] == 1, "one waits")
        check_equal(front("DELETE", f"/v1/leases/{lease}", headers=[("Lease-Id", grant["lease_id"])])[0], 204)
        check_equal(waiter.wait()[0], 201)
        for extra in ({"/ca.pem": "/pawl.crt"}, {"pawl.internal": "pawl.example"}):
            wrong, count = Verified(name, leases, gateways, extra), len(upstream.requests)
            for method, target in (("POST", "/v1/leases/wrong"), ("GET", f"/v1/leases/{lease}"), ("PUT", f"/orders/{name}/x"), ("GET", "/v1/events")):
                wait_until(lambda wrong=wrong, method=method, target=target: wrong(method, target)[0] == away, f"{extra}: {method} {target}")
            check_equal((json.loads(front("GET", "/v1/leases/wrong")[2])["token"], len(upstream.requests)), (0, count), "nothing else came of it")
            wrong.close()
        front.close()
    world.close()


class Waiter:
    """A client that stands in line, on a thread."""

    def __init__(self, front, lease, wait_s):
        self.line, self.result = front.connect(wait_s + 15), None
        body = json.dumps({"wait_ms": int(wait_s * 1000), "ttl_ms": 60000}).encode()
        front.send(self.line, "POST", f"/v1/leases/{lease}", headers=[("Content-Type", "application/json")], body=body)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        answer = http.client.HTTPResponse(self.line)
        try:
            answer.begin()
            self.result = answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.result = None, error

    def wait(self):
        self.thread.join(self.line.gettimeout())
        return self.result


class Http2Waiter(Waiter):
    """The same over HTTP/2, which curl speaks; without an answer the status is 0."""

    def __init__(self, front, lease, wait_s):
        self.result, self.line = None, socket.socket()
        self.line.settimeout(wait_s + 15)
        self.thread = threading.Thread(target=self._run, args=(front, lease, wait_s), daemon=True)
        self.thread.start()

    def _run(self, front, lease, wait_s):
        said = subprocess.run(["curl", "-s", "--http2", "--cacert", FOLDER / "pawl.crt", "--connect-to", f"::127.0.0.1:{front.port}", "-o", os.devnull,
                               "-w", "%{http_version} %{http_code}", "-H", f"Authorization: Bearer {CLIENT}", "--json", f'{{"wait_ms":{int(wait_s * 1000)}}}',
                               f"https://pawl.example/v1/leases/{lease}"], capture_output=True, text=True, timeout=wait_s + 15, check=False).stdout
        self.result = int(said.split()[1]), said


@test
def a_wait_in_line_and_a_stream_last_behind_each_of_them():
    held = []
    for name, kind in [(name, Waiter) for name in NAMES] + [(name, Http2Waiter) for name in HTTP2]:
        front, lease = Front.of(name), WORLD.name()
        grant = WORLD.acquire(lease, ttl_ms=int(WAIT_S * 1000) + 60000)
        stream = front.connect(20)
        front.send(stream, "GET", f"/v1/events?lease={lease}")
        events = http.client.HTTPResponse(stream)
        events.begin()
        held.append((name, lease, grant, kind(front, lease, WAIT_S + 30), events))
        wait_until(lambda lease=lease: WORLD.look(lease)["waiting"] == 1, f"one waits behind {name}")
    end = time.monotonic() + WAIT_S
    wait_until(lambda: time.monotonic() > end or not all(waiter.thread.is_alive() for _, _, _, waiter, _ in held), "the wait", WAIT_S + 5)
    for name, lease, grant, waiter, events in held:
        check(waiter.thread.is_alive(), f"{name} did not wait: {waiter.result}")
        WORLD.release(lease, grant)
        check_equal(waiter.wait()[0], 201, name)
        check(any(line == b"event: granted\n" for line in iter(events.readline, b"")), f"{name} cut the stream")
        events.close()


# The line that says how long an answer may be waited for; nothing else is shorter. Caddy has none, lighttpd over HTTP/2 alone.
LIMITS = {"nginx": ("proxy_read_timeout 630s", "proxy_read_timeout 1s"), "haproxy": ("timeout server 630s", "timeout server 1s"),
          "apache2": ("ProxyTimeout 630", "ProxyTimeout 1"),
          "lighttpd": ("server.max-write-idle = 660", "server.max-write-idle = 1"),
          "varnishd": (".first_byte_timeout = 630s", ".first_byte_timeout = 1s")}


@each
def the_limit_of_a_wait_is_the_line_of_the_file_that_says_so(name):
    text = shipped(f"proxies/{NAMES[name]}", {})
    if name not in LIMITS:
        check("timeout" not in text.replace("dial_timeout", "").replace("connect-timeout", ""), "it has a limit")
        return
    front, lease = Front(name, extra=dict([LIMITS[name]])), WORLD.name()
    WORLD.acquire(lease, ttl_ms=60000)
    check_in((Http2Waiter if name == "lighttpd" else Waiter)(front, lease, 10).wait()[0], (None, 0, 502, 504))
    front.close()


@each
@of_time
def who_hangs_up_leaves_the_line(name, front, lease):
    """Not behind Apache, lighttpd and Varnish, as their files say: what is granted to who has gone is nobody's until its ttl is over."""
    grant = WORLD.acquire(lease, ttl_ms=60000)
    waiter = Waiter(front, lease, 3)
    wait_until(lambda: WORLD.look(lease)["waiting"] == 1, "one waits")
    waiter.line.shutdown(socket.SHUT_RDWR)
    waiter.line.close()
    if name in DEAF:
        WORLD.release(lease, grant)
        check_equal(WORLD.look(lease)["state"], "held", "given to who has gone")
    else:
        wait_until(lambda: WORLD.look(lease)["waiting"] == 0, "nobody waits", 2)
        WORLD.release(lease, grant)
        check_equal(WORLD.look(lease)["state"], "free")


@each
def one_of_two_services_is_enough(name):
    front = Front(name, [LEASES[0], own_port()], [own_port(), GATEWAYS[0]])
    lease = WORLD.name()
    grant = WORLD.acquire(lease, ttl_ms=60000)

    def all_well():
        lines = [("PUT", f"/v1/leases/{lease}", [("Lease-Id", grant["lease_id"])]), ("GET", f"/v1/resources/{lease}", [])]
        return all(front(method, target, headers=headers)[0] in (200, 404) for method, target, headers in lines * 5)
    wait_until(all_well, "what is away is left out", 20)
    front.close()


def close():
    for front in Front.open.values():
        front.close()
    WORLD.close()


main(close)
