"""Other people's proxies with the configurations that are shipped in deploy/, and the application behind them."""

import http.client
import pathlib
import re
import socket
import threading

from .servers import Server
from .tap import given, test
from .upstream import Upstream
from .wait import DEADLINE_S

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"


class App(Upstream):
    """The application behind a proxy. breaks: it takes a request and closes the connection without an answer, but not one by
    which a proxy looks whether it is there."""

    def __init__(self):
        super().__init__(App.land)
        self.breaks, self.address, self.answers = False, f"127.0.0.1:{self.port}", threading.Event()
        self.answers.set()

    def land(self, request):
        if self.breaks and request.target != "/readyz":
            raise ConnectionError
        self.answers.wait(DEADLINE_S)
        # What an application says of a fence that it does not have, and of an encoding that nobody is to look into.
        request.connection.answer(201, [("Fencing-Status", "app; verdict=accepted"), ("Content-Encoding", "gzip")], b"" if request.method == "HEAD" else b"landed")

    def take(self):
        """What landed since the last time."""
        with self.lock:
            landed, self.requests = self.requests, []
        return landed


def shipped(name, changes):
    """The text of a file in deploy/, with what a user would change; each thing to change stands there once."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    for old, new in changes.items():
        if text.count(old) != 1:
            raise AssertionError(f"deploy/{name}: {old!r} stands there {text.count(old)} times")
        text = text.replace(old, new)
    return text


class Proxy(Server):
    """A running proxy. name: nginx, haproxy or caddy; extra: more that a user would change in the shipped file."""

    def __init__(self, name, gateway, app, extra=None):
        super().__init__(name)
        command, environment = self._prepare(gateway, app, extra or {})
        self.start(*command, environment=environment)
        self.wait_listening()

    def _prepare(self, gateway, app, extra):
        return getattr(self, f"_prepare_{self.name}")(f"127.0.0.1:{gateway}", app.address, extra)

    def _prepare_nginx(self, gateway, app, extra):
        conf = shipped("nginx/pawl.conf", {"127.0.0.1:8701": gateway, "127.0.0.1:9000": app,
                                           "listen 127.0.0.1:8080": f"listen 127.0.0.1:{self.port}", **extra})
        self.write("pawl.conf", conf)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = "".join(f"    {kind}_temp_path {self.folder}/{kind};\n" for kind in kinds)
        # A frame with what could make a verdict outlive its request, or make a yes of a no, if it were inherited.
        main = self.write("nginx.conf", f"""daemon off;
master_process off;
pid {self.folder}/pid;
events {{ worker_connections 256; }}
http {{
    access_log off;
{places}    proxy_cache_path {self.folder}/cache keys_zone=outer:1m;
    proxy_cache outer;
    proxy_cache_key "$uri $request_uri";
    proxy_cache_valid any 1h;
    proxy_cache_convert_head off;
    proxy_ignore_headers Cache-Control Expires;
    satisfy any;
    allow 127.0.0.1;
    proxy_intercept_errors on;
    error_page 401 403 404 =200 /any;
    include {self.folder}/pawl.conf;
}}
""")
        return ["-p", self.folder, "-c", main, "-e", "stderr"], {}

    def _prepare_haproxy(self, gateway, app, extra):
        script = self.write("pawl_check.lua", shipped("haproxy/pawl_check.lua", extra.pop("pawl_check.lua", {})))
        path = self.write("haproxy.cfg", shipped("haproxy/haproxy.cfg", {
            "127.0.0.1:8701": gateway, "127.0.0.1:9000": app, "127.0.0.1:8080": f"127.0.0.1:{self.port}",
            "/etc/haproxy/pawl_check.lua": script, **extra}))
        return ["-db", "-f", path], {}

    def _prepare_caddy(self, gateway, app, extra):
        path = self.write("Caddyfile", shipped("caddy/Caddyfile", {
            "127.0.0.1:8701": gateway, "127.0.0.1:9000": app, "\n:8080 {": f"\n:{self.port} {{", **extra}))
        homes = {"HOME": self.folder, "XDG_DATA_HOME": self.folder, "XDG_CONFIG_HOME": self.folder}
        return ["run", "--config", path, "--adapter", "caddyfile"], homes


def behind_each(names):
    """Decorates what is a test for each of these; of one that is not there, "not run"."""
    def each(function):
        for name in names:
            def one(name=name):
                given(function, name=name)
            one.__name__ = f"behind_{name}_{function.__name__}"
            test(one)
        return function
    return each


class Line:
    """A connection to a proxy; what is sent is exactly what the test says."""

    def __init__(self, proxy):
        self.socket = socket.create_connection(("127.0.0.1", proxy.port), timeout=DEADLINE_S)
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))

    def status_or_end(self):
        """Of the next answer that is not an interim one; its body is read and forgotten. None: closed instead."""
        while True:
            first = self.file.readline()
            headers = http.client.parse_headers(self.file)
            if not first.startswith(b"HTTP/1.1 100"):
                break
        self.file.read(int(headers.get("Content-Length", 0)))
        return int(first.split()[1]) if first else None

    def status(self):
        status = self.status_or_end()
        if status is None:
            raise AssertionError("closed instead of an answer")
        return status


def fields(*kinds):
    """The rows of gateway/fields.def of these kinds: (form, text, the names that are known)."""
    text = (DEPLOY.parent / "gateway" / "fields.def").read_text(encoding="utf-8")
    rows = re.findall(r'^FIELD\((\w+), (\w+), "([^"]+)",((?:\s*"[^"]*")+)\)', text, re.MULTILINE)
    return [(form, name, "".join(re.findall(r'"([^"]*)"', known)).split() or [name])
            for kind, form, name, known in rows if kind in kinds]


def client_claims(patterns=True):
    """Names that no client may say, as one would try: those that are known, of each the forms that become the same variable
    of CGI, and for each pattern one that nobody knows."""
    rows = fields("OWN")
    known = [name for _, _, names in rows for name in names]
    odd = [name.replace("-", mark, 1) for name in known for mark in "_.+~*`" if "-" in name]
    return known + odd + [{"BEGIN": f"{x}{text}Zz", "END": f"{x}Zz{text}"}[form] for form, text, _ in rows for x in ("", "X-")
                          if patterns and form != "EXACT"]
