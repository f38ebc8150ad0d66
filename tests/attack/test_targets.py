#!/usr/bin/python3
"""A write lands where it was checked: names of headers that mean another target, and URIs in them, tried on real servers
behind the gateway, directly and with other people's proxies in front of the gateway or behind it."""

import os
import re
import tempfile

from world import Client, World, check, check_equal, main, test
from world.proxies import client_claims
from world.servers import apache_dav, gunicorn, lighttpd, nginx_dav, php, plain_caddy, plain_haproxy, plain_nginx
from world.upstream import routes_file

ECHOES = {"gunicorn": gunicorn(), "lighttpd": lighttpd(), "php": php()}
FILES = {"nginx": nginx_dav(), "apache": apache_dav()}
SERVERS = {**ECHOES, **FILES}
BEHIND = {name: make([f"127.0.0.1:{server.port}" for server in SERVERS.values()])
          for name, make in (("nginx", plain_nginx), ("haproxy", plain_haproxy), ("caddy", plain_caddy))}
# (server, the proxy between the gateway and it) -> the URL that the gateway has of it
UPSTREAMS = {(server, None): at.url for server, at in SERVERS.items()} | {
    (server, proxy): f"http://127.0.0.1:{at.ports[i]}" for proxy, at in BEHIND.items() for i, server in enumerate(SERVERS)}


def base(server, behind):
    return f"{server}-{behind or 'direct'}"


ROUTES = [{"match": f"/{base(*which)}/{{id}}/**", "lease": f"{base(*which)}:{{id}}", "upstream": url, "guarantee": "ordered"}
          for which, url in UPSTREAMS.items()]
WORLD = World(gateway_flags=["--routes", routes_file(tempfile.mkdtemp(prefix="pawl-targets-"), ROUTES)])
FRONTS = {name: make([f"127.0.0.1:{WORLD.gateway_daemon.port}"])
          for name, make in (("nginx", plain_nginx), ("haproxy", plain_haproxy), ("caddy", plain_caddy))}
for one in (*SERVERS.values(), *BEHIND.values(), *FRONTS.values()):
    one.wait_listening()

CLAIMS = client_claims()
AT_ONCE = 20
CHANGING = re.compile(r"^(HTTP_PAWL_REQUEST_ID|HTTP_FORWARDED|HTTP_X_FORWARDED_(FOR|HOST|PROTO)|REMOTE_PORT|REQUEST_TIME.*|_)=")


class Way:
    """To one server: (the proxy in front of the gateway, the server, the proxy behind the gateway)."""

    def __init__(self, front, server, behind):
        self.base, self.server = base(server, behind), SERVERS[server]
        self.authority = f"127.0.0.1:{FRONTS[front].port if front else WORLD.gateway_daemon.port}"
        self.client = Client("gateway", f"http://{self.authority}", World.contract)
        self.upstream = UPSTREAMS[server, behind].removeprefix("http://")
        self.name = WORLD.name("x").replace(":", "")
        self.grant = WORLD.acquire(f"{self.base}:{self.name}")
        self.mine, self.other = f"/{self.base}/{self.name}", f"/{self.base}/{self.name}-other"

    def __call__(self, method, target, headers=(), body=b""):
        return self.client(method, target, [("Fencing-Token", self.grant["fencing_token"]), *headers], body, held=False)


def each_way(servers):
    """One test for each way to each of these servers."""
    def over(function):
        for server in servers:
            for front, behind in [(None, None)] + [(proxy, None) for proxy in FRONTS] + [(None, proxy) for proxy in BEHIND]:
                def one(front=front, server=server, behind=behind):
                    function(Way(front, server, behind))
                one.__name__ = "_".join(filter(None, [front and f"{front}_in_front", server, behind and f"behind_{behind}",
                                                      function.__name__]))
                test(one)
        return function
    return over


@each_way(ECHOES)
def is_told_the_same_whatever_else_a_client_says(way):
    """SCRIPT_NAME moves gunicorn's PATH_INFO, a dot or a plus becomes the underscore of a variable of CGI."""
    plain = way("POST", f"{way.mine}{way.other}")
    check_equal(plain.status, 200, repr(plain))
    wanted = {line for line in plain.body.decode().splitlines() if not CHANGING.match(line)}
    for begin in range(0, len(CLAIMS), AT_ONCE):
        said = [(name, way.mine) for name in CLAIMS[begin:begin + AT_ONCE]]
        answer = way("POST", f"{way.mine}{way.other}", said)
        check_equal(answer.status, 200, f"{said}: {answer}")
        got = answer.body.decode().splitlines()
        check_equal({line for line in got if not CHANGING.match(line)}, wanted, str(said))
        check(not [line for line in got if CHANGING.match(line) and way.mine in line], f"{said}: {got}")


def seed(way):
    """A file of the lease that is held, and one of another."""
    way.server.make_folder(f"{way.server.files}/{way.base}")
    for folder, name, text in ((way.mine, "x", "mine"), (way.other, "y", "theirs")):
        way.server.make_folder(way.server.files + folder)
        with open(f"{way.server.files}{folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(file.name, 0o666)


def files(way, folder):
    found = {}
    for entry in os.scandir(way.server.files + folder):
        if entry.is_file():
            with open(entry.path, encoding="utf-8") as file:
                found[entry.name] = file.read()
    return found


def tagged(uri):
    return [("If", f"<{uri}> ([\"x\"])")]


# Where a Destination may lead that is not the lease's own; {at}: the address that the client has of the gateway, {up}: of the server.
ELSEWHERE = ["{other}/y", "http://{at}{other}/y", "https://{at}{other}/y", "http://{up}{other}/y", "http://{up}{mine}/y", "{mine}/../{other}/y",
             "{mine}/%2e%2e/{name}-other/y", "//{up}{other}/y", "http://{at}@{up}{other}/y", "http://{at}.{up}{other}/y", "{mine}%2f..%2f{name}-other/y",
             "{mine}/y?/../{other}", "{mine}/y#x", "y", "../{name}-other/y", "", "/", "/nowhere/y", "http://{at}", "{mine}\\y"]


@each_way(FILES)
def moves_nothing_to_where_the_token_does_not_reach(way):
    seed(way)
    known = {"at": way.authority, "up": way.upstream, "mine": way.mine, "other": way.other, "name": way.name}
    for method in ("MOVE", "COPY"):
        for shape in ELSEWHERE:
            where = shape.format(**known)
            for headers in ([("Destination", where)], [("Destination", f"{way.mine}/y"), ("Destination", where)]):
                answer = way(method, f"{way.mine}/x", [*headers, ("Overwrite", "T")])
                check_equal((answer.status, answer.code), (400, "invalid-request"), f"{method} {headers}: {answer}")
    for uri in (f"{way.other}/y", f"http://{way.authority}{way.other}/y", f"{way.mine}/x> (<a:b>) <{way.other}/y"):
        check_equal(way("PUT", f"{way.mine}/x", tagged(uri), b"new").code, "invalid-request", uri)
    check_equal(way("UNLOCK", f"{way.mine}/x", [("Lock-Token", "<opaquelocktoken:5e38-11de>")]).code, "invalid-request")
    check_equal((files(way, way.mine), files(way, way.other)), ({"x": "mine"}, {"y": "theirs"}))


@each_way(FILES)
def moves_and_copies_within_the_lease(way):
    seed(way)
    at = f"http://{way.authority}"
    for method, where in (("COPY", f"{'' if way.server is FILES['nginx'] else at}{way.mine}/c"),  # mod_dav wants a whole address
                          ("COPY", f"{at}{way.mine}/%64"), ("MOVE", f"{at.upper()}{way.mine}/m")):
        answer = way(method, f"{way.mine}/x", [("Destination", where)])
        check(answer.status in (201, 204), f"{method} {where}: {answer}")
    check_equal((files(way, way.mine), files(way, way.other)), ({"c": "mine", "d": "mine", "m": "mine"}, {"y": "theirs"}))


@test
def a_tagged_condition_of_the_lease_itself_is_asked_of_the_server():
    way = Way(None, "apache", None)
    seed(way)
    for uri in (f"{way.mine}/%78", f"http://{way.authority}{way.mine}/x"):
        check_equal(way("PUT", f"{way.mine}/x", tagged(uri), b"new").status, 412, uri)
        etag = way("HEAD", f"{way.mine}/x").header("ETag")
        check_equal(way("PUT", f"{way.mine}/x", [("If", f"<{uri}> ([{etag}]) (Not <a:b>)")], b"new").status, 204, uri)


main()
