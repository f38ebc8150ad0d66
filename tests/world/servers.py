"""Other people's application servers behind the gateway, and plain reverse proxies on the way: whatever they honour by
their defaults they honour here."""

import atexit
import os
import shutil
import socket
import subprocess

from .ports import reserved_port
from .process import die_with_parent
from .sql import folder_for_server, user_for_server
from .tap import skip
from .wait import DEADLINE_S, wait_until

# What each of the first three tells in its answer: NAME=value, a line for each variable of the request.
_WSGI = """def app(environ, start):
    text = "".join(f"{name}={value}\\n" for name, value in environ.items() if isinstance(value, str))
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text.encode())))])
    return [text.encode()]
"""
_CGI = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nexec /usr/bin/env\n"
_PHP = "<?php header('Content-Type: text/plain'); foreach ($_SERVER as $n => $v) if (is_string($v)) echo \"$n=$v\\n\";\n"


def program(name):
    """Where it is, or None. Debian keeps some in /usr/sbin, which is not on everybody's PATH."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin")


class Server:
    """A process that listens on ports which stay ours until it is closed."""

    def __init__(self, name, ports=1, who=None):
        if program(name) is None:
            skip(f"{name} is not installed")
        self.name, self.who = name, who or {}
        self.holders = [reserved_port() for _ in range(ports)]
        self.ports = [holder.getsockname()[1] for holder in self.holders]
        self.port, self.url = self.ports[0], f"http://127.0.0.1:{self.ports[0]}"
        self.folder = folder_for_server(f"pawl-{name}-", self.who)
        self.log, self.files = os.path.join(self.folder, "log"), os.path.join(self.folder, "files")
        self.make_folder(self.files)

    def make_folder(self, path):
        """One that the server, whoever it runs as, may change."""
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o777)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self, *flags, environment=None):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program(self.name), *flags], cwd=self.folder, env={**os.environ, **(environment or {})},
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent,
                                            start_new_session=True, **self.who)
        atexit.register(self.close)
        return self

    def wait_listening(self):
        for port in self.ports:
            wait_until(lambda port=port: self._listens(port), f"{self.name} listens (see {self.log})")

    def _listens(self, port):
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}: {log.read()[-3000:]}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S).close()
            return True
        except ConnectionRefusedError:
            return False

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(DEADLINE_S)
        for holder in self.holders:
            holder.close()
        shutil.rmtree(self.folder, ignore_errors=True)


# -- applications: what they answer is what they were told

def gunicorn():
    server = Server("gunicorn")
    server.write("application.py", _WSGI)
    return server.start("--workers", "1", "--bind", f"127.0.0.1:{server.port}", "--worker-tmp-dir", server.folder, "application:app",
                        environment={"PYTHONDONTWRITEBYTECODE": "1"})


def lighttpd():
    server = Server("lighttpd")
    script = server.write("script.sh", _CGI)
    conf = server.write("lighttpd.conf", f"""server.bind = "127.0.0.1"
server.port = {server.port}
server.document-root = "{server.folder}"
server.upload-dirs = ( "{server.folder}" )
server.modules = ( "mod_alias", "mod_cgi" )
alias.url = ( "/" => "{script}/" )
cgi.assign = ( ".sh" => "/bin/sh" )
""")
    return server.start("-D", "-f", conf)


def php():
    server = Server("php")
    return server.start("-S", f"127.0.0.1:{server.port}", server.write("script.php", _PHP))


# -- files that can be changed by WebDAV

def nginx_dav():
    server = Server("nginx")
    main = server.write("nginx.conf", _nginx(server.folder, f"""    server {{
        listen 127.0.0.1:{server.port};
        root {server.files};
        dav_methods PUT DELETE MKCOL COPY MOVE;
    }}
"""))
    return server.start("-p", server.folder, "-c", main, "-e", "stderr")


def apache_dav():
    server = Server("apache2", who=user_for_server("www-data"))
    modules = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"
                      for name in ("mpm_event", "authz_core", "dav", "dav_fs"))
    conf = server.write("apache.conf", f"""{modules}ServerRoot {server.folder}
ServerName 127.0.0.1
PidFile {server.folder}/pid
DefaultRuntimeDir {server.folder}
Listen 127.0.0.1:{server.port}
ErrorLog {server.folder}/error
DocumentRoot {server.files}
DavLockDB {server.folder}/locks
<Directory {server.files}>
    Dav On
    Require all granted
</Directory>
""")
    return server.start("-D", "FOREGROUND", "-f", conf)


# -- on the way: each port of the proxy leads to one target; nothing is dropped that need not be

def _nginx(folder, servers):
    places = "".join(f"    {kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return f"""daemon off;
master_process off;
pid {folder}/pid;
events {{ worker_connections 256; }}
http {{
    access_log off;
    underscores_in_headers on;
    ignore_invalid_headers off;
{places}{servers}}}
"""


def plain_nginx(targets):
    server = Server("nginx", ports=len(targets))
    text = "".join(f"    server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{target}; proxy_http_version 1.1; "
                   "proxy_set_header Host $http_host; } }\n" for port, target in zip(server.ports, targets))
    return server.start("-p", server.folder, "-c", server.write("nginx.conf", _nginx(server.folder, text)), "-e", "stderr")


def plain_haproxy(targets):
    server = Server("haproxy", ports=len(targets))
    text = "".join(f"listen to{port}\n    bind 127.0.0.1:{port}\n    server it {target}\n"
                   for port, target in zip(server.ports, targets))
    conf = server.write("haproxy.cfg", "defaults\n    mode http\n    timeout connect 5s\n    timeout client 30s\n"
                        "    timeout server 30s\n" + text)
    return server.start("-db", "-f", conf)


def plain_caddy(targets):
    server = Server("caddy", ports=len(targets))
    text = "".join(f"http://127.0.0.1:{port}, http://:{port} {{\n\tbind 127.0.0.1\n\treverse_proxy {target}\n}}\n"
                   for port, target in zip(server.ports, targets))
    conf = server.write("Caddyfile", "{\n\tadmin off\n\tauto_https off\n}\n" + text)
    homes = {"HOME": server.folder, "XDG_DATA_HOME": server.folder, "XDG_CONFIG_HOME": server.folder}
    return server.start("run", "--config", conf, "--adapter", "caddyfile", environment=homes)
