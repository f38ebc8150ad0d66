"""Other people's proxies with the configurations that are shipped in deploy/, and the application behind them."""

import atexit
import http.client
import http.server
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading

from .ports import reserved_port
from .process import die_with_parent
from .wait import DEADLINE_S, wait_until

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"


class _Landing(http.server.BaseHTTPRequestHandler):
    """Takes every request, of every method, and says what landed."""

    protocol_version = "HTTP/1.1"

    def _body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def _land(self):
        app = self.server.app
        body = self._body()
        with app.lock:
            app.landed.append(Landed(self.command, self.path, list(self.headers.items()), body))
        if app.breaks:
            self.close_connection = True
            return
        self.send_response(201)
        # What an application says of a fence that it does not have.
        self.send_header("Fencing-Status", "app; verdict=accepted")
        self.send_header("Content-Length", "6")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(b"landed")

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self._land
        raise AttributeError(name)

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # some proxies leave with a reset

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin # the name that it has there
        pass


class Landed:
    """A request as it reached the application."""

    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body

    def values(self, name):
        """As an application sees them that takes "_" for "-"."""
        return [value for one, value in self.headers if one.lower().replace("_", "-") == name.lower()]

    def __repr__(self):
        return f"{self.method} {self.target} {self.headers}"


class App:
    """The application behind a proxy. breaks: it takes a request and closes the connection without an answer."""

    def __init__(self):
        self.landed, self.lock, self.breaks = [], threading.Lock(), False
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Landing)
        self.server.daemon_threads = True
        self.server.app = self
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def take(self):
        """What landed since the last time."""
        with self.lock:
            landed, self.landed = self.landed, []
        return landed

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def shipped(name, changes):
    """The text of a file in deploy/, with what a user would change; each thing to change stands there once."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    for old, new in changes.items():
        if text.count(old) != 1:
            raise AssertionError(f"deploy/{name}: {old!r} stands there {text.count(old)} times")
        text = text.replace(old, new)
    return text


class Proxy:
    """A running proxy. name: nginx, haproxy or caddy; extra: more that a user would change in the shipped file."""

    def __init__(self, name, gateway, app, extra=None):
        self.name, self.holder = name, reserved_port()
        self.port = self.holder.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = tempfile.mkdtemp(prefix=f"pawl-{name}-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.log = os.path.join(self.folder, "log")
        command, environment = self._prepare(gateway, app, extra or {})
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program(name), *command], cwd=self.folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, preexec_fn=die_with_parent, start_new_session=True)
        atexit.register(self.close)
        wait_until(self._listens, f"{name} listens (see {self.log})")

    def _prepare(self, gateway, app, extra):
        return getattr(self, f"_prepare_{self.name}")(f"127.0.0.1:{gateway}", app.address, extra)

    def _write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def _prepare_nginx(self, gateway, app, extra):
        conf = shipped("nginx/pawl.conf", {"127.0.0.1:8701": gateway, "127.0.0.1:9000": app,
                                           "listen 127.0.0.1:8080": f"listen 127.0.0.1:{self.port}", **extra})
        self._write("pawl.conf", conf)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = "".join(f"    {kind}_temp_path {self.folder}/{kind};\n" for kind in kinds)
        # A frame with what could make a verdict outlive its request, or make a yes of a no, if it were inherited.
        main = self._write("nginx.conf", f"""daemon off;
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
        script = self._write("pawl_check.lua", shipped("haproxy/pawl_check.lua", extra.pop("pawl_check.lua", {})))
        path = self._write("haproxy.cfg", shipped("haproxy/haproxy.cfg", {
            "127.0.0.1:8701": gateway, "127.0.0.1:9000": app, "127.0.0.1:8080": f"127.0.0.1:{self.port}",
            "/etc/haproxy/pawl_check.lua": script, **extra}))
        return ["-db", "-f", path], {}

    def _prepare_caddy(self, gateway, app, extra):
        path = self._write("Caddyfile", shipped("caddy/Caddyfile", {
            "127.0.0.1:8701": gateway, "127.0.0.1:9000": app, "\n:8080 {": f"\n:{self.port} {{", **extra}))
        homes = {"HOME": self.folder, "XDG_DATA_HOME": self.folder, "XDG_CONFIG_HOME": self.folder}
        return ["run", "--config", path, "--adapter", "caddyfile"], homes

    def _listens(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self.process.returncode}: {self.said()}")
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S).close()
            return True
        except ConnectionRefusedError:
            return False

    def said(self):
        return pathlib.Path(self.log).read_text(encoding="utf-8", errors="replace")[-3000:]

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(DEADLINE_S)
        self.holder.close()


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


def program(name):
    """Where it is, or None. Debian keeps some in /usr/sbin, which is not on everybody's PATH."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin")


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
