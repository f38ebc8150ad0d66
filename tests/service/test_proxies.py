#!/usr/bin/python3
"""/v1/check behind other people's proxies: the shipped configurations, run by nginx, HAProxy and Caddy themselves; for
Traefik and Envoy, which Debian does not have, the requests that they send, replayed at the gateway."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import socket
import tempfile

import yaml

from world import Client, Keys, World, check, check_equal, check_in, gives, main, read_token, signed_token, skip, test, test_in, wait_until
from world.access import write_private
from world.certificate import certificate
from world.ports import own_port
from world.proxies import DEPLOY, App, Line, Proxy, behind_each, client_claims, fields
from world.servers import program

WORLD = World()
NAMES = ("nginx", "haproxy", "caddy")
FILES = ("nginx/pawl.conf", "haproxy/haproxy.cfg", "caddy/Caddyfile", "traefik/pawl.yml", "envoy/envoy.yaml")
WRITES = ("PUT", "POST", "PATCH", "DELETE", "PROPFIND", "BREW")
READS = ("GET", "HEAD", "OPTIONS")


class Site:
    """A proxy, the application behind it, and a client in front."""

    open = {}

    def __init__(self, name, world=WORLD, extra=None, gateway=None, kind=Proxy):
        self.world, self.name, self.app = world, name, App()
        self.proxy = kind(name, gateway or world.gateway_daemon.port, self.app, extra)
        self.client = Client("gateway", self.proxy.url, World.contract)

    @classmethod
    def of(cls, name):
        if name not in cls.open:
            cls.open[name] = cls(name)
        cls.open[name].app.take()
        return cls.open[name]

    def __call__(self, method, target, token=None, body=b"value", more=()):
        headers = ([("Fencing-Token", token)] if token is not None else []) + list(more)
        return self.client(method, target, headers, None if method in READS else body, held=False)

    def close(self):
        self.proxy.close()
        self.app.close()
        check_equal(self.app.wrong, [], "a request that is none")


each = behind_each(NAMES)


class Holder:
    """A hold on the lease of an order, and the path that it guards."""

    def __init__(self, order=None, world=WORLD, name=None, **ask):
        self.world, self.order = world, order or world.name("o").replace(":", "-")
        self.name, self.target = name or f"orders:{self.order}", f"/orders/{self.order}"
        self.grant = world.acquire(self.name, **ask)
        self.token, self.header = self.grant["token"], self.grant["fencing_token"]

    def successor(self, **ask):
        self.world.release(self.name, self.grant)
        return Holder(self.order, self.world, self.name, **ask)

    def forged(self, **changes):
        read = read_token(self.header)
        wanted = {"lease": self.name, "token": self.token, "epoch": self.grant["epoch"], "hold": read["hold"], **changes}
        return signed_token(self.world.keys, **wanted)


gives.update(site=Site.of, ada=Holder)


def verdict(holder):
    return f"pawl; verdict=accepted; token={holder.token}; mark={holder.token}; guarantee=admitted"


def passed(site, answer, holder, method="PUT", target=None, body=b"value"):
    """The request reached the application once, as it was, with the number that was verified."""
    check_equal((answer.status, answer.header("Fencing-Status")), (201, verdict(holder)), repr(answer))
    landed = site.app.take()
    check_equal([(one.method, one.target, one.body) for one in landed], [(method, target or holder.target, body)])
    check_equal((landed[0].values("Fencing-Token"), landed[0].values("Fencing-Token-Verified")),
                ([holder.header], [str(holder.token)]), repr(landed[0]))
    return landed[0]


def refused(site, answer, status, code):
    check_equal((answer.status, answer.code), (status, code), repr(answer))
    check_equal(answer.json["status"], status)
    check((answer.header("Fencing-Status") or "").startswith(f"pawl; verdict=refused; reason={code}"), repr(answer))
    check_equal(site.app.take(), [], "nothing may land")


def ladder():
    """Each way to be refused: (code, status, the order's path, token)."""
    ada = Holder()
    bob = ada.successor()
    gone, shared = Holder(), Holder(mode="shared")
    WORLD.release(gone.name, gone.grant)
    return [
        ("token-required", 428, bob.target, None),
        ("malformed-token", 400, bob.target, bob.header + "x"),
        ("bad-signature", 403, bob.target, signed_token(Keys("k1"), bob.name, bob.token, bob.grant["epoch"])),
        ("wrong-lease", 403, bob.target, Holder().header),
        ("wrong-mode", 403, shared.target, shared.header),
        ("unissued-token", 412, bob.target, bob.forged(token=bob.token + 10 ** 9)),
        ("unissued-token", 412, bob.target, bob.forged(hold="A" * 12)),
        ("stale-token", 412, bob.target, ada.header),
        ("lease-expired", 412, gone.target, gone.header),
    ]


# -- what passes, and what does not

@each
def the_live_holder_writes_and_the_application_is_told_the_number_that_was_verified(site, ada):
    for method in WRITES:
        for rest in ("", "/lines/7", "/lines/7/?deny=native&x=/../y%2F"):
            passed(site, site(method, ada.target + rest, ada.header), ada, method, ada.target + rest)


@each
def a_refusal_has_the_status_and_the_code_that_the_gateway_would_give_and_nothing_lands(site):
    for code, status, target, token in ladder():
        for method in WRITES:
            for rest in ("", "/lines/7?x=y"):
                answer = site(method, target + rest, token)
                refused(site, answer, status, code)
                check_equal((answer.header("Content-Type"), answer.header("Cache-Control")),
                            ("application/problem+json", "no-store"))


@each
def a_read_needs_no_token_and_no_verdict_is_made_up_for_it(site, ada):
    for method in READS:
        for token in (None, "x", ada.header):
            answer = site(method, f"{ada.target}/{method}-{token == 'x'}-{token is None}", token)
            check_equal((answer.status, answer.header("Fencing-Status")), (201, None), repr(answer))
            [landed] = site.app.take()
            check_equal((landed.method, landed.values("Fencing-Token-Verified")), (method, []))


# What the files say that one changes to have reads checked too.
READS_TOO = {
    "nginx": {'        if ($request_method ~ "^(GET|HEAD|OPTIONS)$") {\n            return 204;\n        }\n': ""},
    "haproxy": {"acl unchecked method GET HEAD OPTIONS": "acl unchecked always_false"},
    "caddy": {"\t\t\t\tnot method GET HEAD OPTIONS\n": ""},
}


@each
def reads_are_checked_too_when_the_file_is_changed_as_it_says(name):
    site, ada = Site(name, extra=READS_TOO[name]), Holder()
    bob = ada.successor()
    for method in READS:
        for token, status in ((None, 428), (ada.header, 412)):
            check_equal(site(method, bob.target, token).status, status, method)
            check_equal(site.app.take(), [])
        passed(site, site(method, f"{bob.target}/{method}", bob.header), bob, method, f"{bob.target}/{method}", b"")
    site.close()


@each
def each_request_of_a_connection_is_checked_anew(site, ada):
    for _ in range(2):
        passed(site, site("PUT", ada.target, ada.header), ada)
    bob = ada.successor()
    for _ in range(2):
        refused(site, site("PUT", ada.target, ada.header), 412, "stale-token")
        passed(site, site("PUT", ada.target, bob.header), bob)
        refused(site, site("PUT", ada.target), 428, "token-required")


@each
def what_was_verified_for_a_request_does_not_count_for_the_next_one_in_the_pipe(site, ada):
    one = f"PUT {ada.target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
    line = Line(site.proxy)
    line.send(f"{one}Fencing-Token: {ada.header}\r\n\r\na{one}\r\nb{one}Fencing-Token: {ada.header}\r\n\r\nc")
    check_equal([line.status() for _ in range(3)], [201, 428, 201])
    check_equal([landed.body for landed in site.app.take()], [b"a", b"c"])


@each
def bodies_of_every_kind_reach_the_application_whole(site, ada):
    for body in (b"", b"x", b"\0\r\n\r\n" * 1000, bytes(range(256)) * 2000):
        passed(site, site("PUT", ada.target, ada.header, body), ada, body=body)
    line = Line(site.proxy)
    line.send(f"PUT {ada.target} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
              f"Fencing-Token: {ada.header}\r\n\r\n")
    line.send("3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
    check_equal(line.status(), 201)
    check_equal([landed.body for landed in site.app.take()], [b"onetwo"])


@each
def what_a_browser_sends_along_does_not_hinder_the_check(site, ada):
    """The gateway takes 4 KiB of headers, and these are more."""
    more = [("Cookie", "c=" + "x" * 3000), ("Authorization", "Bearer " + "y" * 2000), ("If-Match", '"z"'), ("Accept", "*/*"),
            ("User-Agent", "z" * 300), ("Content-Type", "text/plain"), ("Sec-Fetch-Mode", "cors")]
    landed = passed(site, site("PUT", ada.target, ada.header, more=more), ada)
    for header, value in more:
        check_equal(landed.values(header), [value])


# -- the path

CROOKED = [
    "/orders/{mine}/../{other}", "/orders/{other}/../{mine}", "/orders/./{other}", "//orders/{other}", "/orders//{other}",
    "/orders/{mine}//x", "/orders/{mine}%2f..%2f{other}", "/orders/{mine}%2F%2e%2e%2F{other}", "/orders/{mine}/%2e%2e/{other}",
    "/orders/{mine}/.%2E/{other}", "/orders/{mine}/..;/{other}", "/orders/{mine};/../{other}", "/orders/{mine}/.hidden",
    "/orders\\{other}", "/orders/{mine}\\..\\{other}", "/orders/{mine}%5c..%5c{other}", "/x/../orders/{other}",
    "/orders/../orders/{other}", "/%6frders/{other}", "/orders/%6f{other_tail}", "/orders/{mine}/%41", "/orders%2f{other}", "/orders/{other}%00",
    "/orders/{mine}%00/../{other}", "/orders/{other}%20", "/orders/{other}%23x", "/orders/{mine}%3f/../{other}",
    "/orders/{mine}%252e%252e", "/Orders/{other}", "/ORDERS/{other}", "/orders;x/{other}", "/orders/-{other}", "/orders/",
    "/orders", "/orders?x=/orders/{mine}", "/", "/orders/{mine}/%C3%A4", "/_pawl_check", "/@pawl_refused",
    "/v1/check/orders:{mine}", "/v1/resources/orders:{mine}",
]


@each
def a_path_that_can_be_read_in_two_ways_is_not_passed_on(name):
    site, mine, other = Site.of(name), Holder(), Holder()
    long = "/orders/" + "a" * 121
    for shape in CROOKED + [long]:
        target = shape.format(mine=mine.order, other=other.order, other_tail=other.order[1:])
        for holder in (mine, other):
            for method in ("PUT", "POST", "GET"):
                answer = site(method, target, holder.header)
                check(answer.status in (400, 404), f"{method} {target}: {answer}")
                check_equal(site.app.take(), [], f"{method} {target}")


@each
def a_fragment_or_a_whole_address_in_the_request_line_leads_nobody_astray(name):
    site, mine, other = Site.of(name), Holder(), Holder()
    for target in (f"{other.target}#/../{mine.order}", f"{mine.target}#/../{other.order}", f"http://x{other.target}",
                   f"http://x{mine.target}/../{other.order}", f"http://x/{mine.order}{other.target}", f"x{other.target}", "*",
                   f"http://x:1@y{other.target}", f"http:{other.target}"):
        line = Line(site.proxy)
        line.send(f"PUT {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nConnection: close\r\n"
                  f"Fencing-Token: {mine.header}\r\n\r\na")
        check_in(line.status(), (400, 403, 404), target)
        check_equal(site.app.take(), [], target)


@each
def the_lease_is_the_name_in_the_path_letter_by_letter(site):
    order = WORLD.name("Case").replace(":", "-")
    for wanted in (order + "._:-x:", order + "9" * (120 - len(order))):
        ada = Holder(wanted)
        passed(site, site("PUT", ada.target, ada.header), ada)
        check_equal(site("PUT", ada.target.replace("Case", "case"), ada.header).code, "wrong-lease")
        check_equal(site("PUT", ada.target[:-1], ada.header).code, "wrong-lease")


# -- clients that cheat

@each
def a_client_cannot_say_what_only_the_gateway_may_say(name, site, ada):
    """Every name of the gateway's own table; nginx has no patterns, and Caddy none that leaves Fencing-Token alone."""
    bob = ada.successor()
    claims = [(claim, "forged") for claim in client_claims(patterns=name != "nginx") if (name, claim) != ("caddy", "Fencing-Zz")]
    for begin in range(0, len(claims), 50):
        said = claims[begin:begin + 50]
        refused(site, site("PUT", bob.target, None, more=said), 428, "token-required")
        refused(site, site("PUT", bob.target, ada.header, more=said), 412, "stale-token")
        told = [passed(site, site("PUT", bob.target, bob.header, more=said), bob)]
        for method in READS:
            check_equal(site(method, f"{bob.target}/{method}/{begin}", None, more=said).status, 201)
            [landed] = site.app.take()
            check_equal(landed.values("Fencing-Token-Verified"), [])
            told.append(landed)
        check_equal([header for landed in told for header, value in landed.headers if "forged" in value], [])


@each
def another_target_than_the_one_in_the_path_is_refused(site, ada):
    for header, value in (("Destination", "/orders/1"), ("If", "</orders/1> ([\"a\"])"), ("Lock-Token", "<urn:a>")):
        for method in ("MOVE", "PUT", "GET"):
            check_equal(site(method, ada.target, ada.header, more=[(header, value)]).status, 400, header)
    check_equal(site.app.take(), [])


@test
def what_has_no_patterns_and_cannot_be_run_here_names_all_that_is_known():
    known = {name.lower() for _, _, names in fields("OWN") for name in names}
    drop = configuration("traefik/pawl.yml")["http"]["middlewares"]["pawl-drop"]["headers"]["customRequestHeaders"]
    check_equal(known - {name.lower() for name in drop}, {"x-real-ip", *(f"x-forwarded-{of}" for of in ("for", "host", "port", "proto", "server"))})
    [chain] = configuration("envoy/envoy.yaml")["static_resources"]["listeners"][0]["filter_chains"]
    [host] = chain["filters"][0]["typed_config"]["route_config"]["virtual_hosts"]
    check_equal(known - set(host["request_headers_to_remove"]), {"fencing-token-verified"})
    # Each makes Envoy send a request again without a retry_policy; what is removed is so before Envoy looks for them.
    check_equal({"x-envoy-retry-on", "x-envoy-retry-grpc-on"} - set(host["request_headers_to_remove"]), set())
    for name in (name for _, _, names in fields("TARGET") for name in names):
        for router in configuration("traefik/pawl.yml")["http"]["routers"].values():
            check_in(f"&& !HeaderRegexp(`{name}`, `.+`)", router["rule"])
        for one in host["routes"]:
            check_in({"name": name.lower(), "present_match": False}, one["match"]["headers"])


@each
def a_client_cannot_have_the_token_or_its_verdict_dropped_on_the_way(site, ada):
    """Connection names headers of this hop; some proxies drop them."""
    bob = ada.successor()
    for dropped in ("Fencing-Token", "Fencing-Token-Verified", "close, Fencing-Token-Verified, Fencing-Token"):
        more = [("Connection", dropped)]
        for token in (None, ada.header):
            check(site("PUT", bob.target, token, more=more).status in (400, 412, 428), dropped)
            check_equal(site.app.take(), [], dropped)
        site("PUT", bob.target, bob.header, more=more)
        for landed in site.app.take():
            check(landed.values("Fencing-Token-Verified") in ([], [str(bob.token)]), repr(landed))


@each
def of_two_tokens_the_one_that_is_passed_on_is_the_one_that_was_checked(name, site, ada):
    bob = ada.successor()
    for first, second in ((bob, ada), (ada, bob), (bob, bob)):
        answer = site("PUT", bob.target, None, more=[("Fencing-Token", first.header), ("fencing-token", second.header)])
        landed = site.app.take()
        if landed:
            check_equal((name, first.token), ("nginx", bob.token), "only nginx before 1.23 takes the first one")
            check_equal((landed[0].values("Fencing-Token"), landed[0].values("Fencing-Token-Verified")),
                        ([bob.header], [str(bob.token)]))
        else:
            check(answer.code in ("malformed-token", "stale-token"), repr(answer))


@each
def no_connection_is_upgraded(site, ada):
    key = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
    for method, token in (("GET", None), ("PUT", ada.header)):
        for protocol in ("websocket", "other"):
            site(method, f"{ada.target}/{method}/{protocol}", token,
                 more=[("Connection", "Upgrade"), ("Upgrade", protocol), ("Sec-WebSocket-Version", "13"), key])
            for landed in site.app.take():
                check_equal(landed.values("Upgrade"), [])
    for method in ("TRACE", "CONNECT"):
        check(site(method, ada.target, ada.header).status in (400, 405), method)
        check_equal(site.app.take(), [])


@each
def what_the_application_says_of_a_fence_is_not_told(site, ada):
    check_equal(site("GET", ada.target + "/told").header("Fencing-Status"), None)
    check_equal(site("PUT", ada.target, ada.header).header("Fencing-Status"), verdict(ada))


# -- what "admitted" means

def begun(site, holder, body=b"onetwo"):
    """A write whose second half is still to come."""
    line = Line(site.proxy)
    line.send(f"PUT {holder.target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
              f"Fencing-Token: {holder.header}\r\n\r\n".encode() + body[:3])
    return line


def mark_of(holder):
    return WORLD.gateway("GET", f"/v1/marks/{holder.name}").json["mark"]


@behind_each(("nginx", "caddy"))
def a_write_that_stalls_lands_after_a_newer_one(name):
    """What the files warn of: the check came first, and nothing looks again."""
    site, ada = Site.of(name), Holder()
    late = begun(site, ada)
    wait_until(lambda: mark_of(ada) == ada.token, "the late write was let through")
    bob = ada.successor()
    check_equal(site("PUT", bob.target, bob.header, b"newer").status, 201)
    late.send("two")
    check_equal(late.status(), 201)
    bodies = [landed.body for landed in site.app.take()]
    check_equal(bodies[-1] if name == "nginx" else sorted(bodies), b"onetwo" if name == "nginx" else [b"newer", b"onetwo"])


class BeforeItself(Proxy):
    """nginx before itself, as docs/proxies.md says."""

    def _prepare_nginx(self, gateway, app, extra):
        page = (DEPLOY.parent / "docs/proxies.md").read_text(encoding="utf-8").replace("/run/nginx-orders.sock", f"{self.folder}/orders.sock")
        [inner] = re.findall(r"`(listen unix:[^`]*;)`", page)
        [outer] = [block for block in re.findall(r"```nginx\n(.*?)```", page, re.S) if "orders.sock" in block]
        return super()._prepare_nginx(gateway, app, {
            f"listen 127.0.0.1:{self.port};": inner, "map $request_uri": outer.replace("127.0.0.1:8080", f"127.0.0.1:{self.port}") + "map $request_uri", **extra})


@test
def behind_haproxy_and_an_nginx_before_itself_a_short_body_is_there_before_the_check():
    for site in (Site.of("haproxy"), Site("nginx", kind=BeforeItself)):
        ada = Holder()
        late = begun(site, ada)
        passed(site, site("PUT", ada.target, ada.header), ada)  # by now the first one has had its turn too
        bob = ada.successor()
        check_equal(site("PUT", bob.target, bob.header, b"newer").status, 201)
        check_equal([landed.values("X-Forwarded-For") for landed in site.app.take()], [["127.0.0.1"]])
        late.send("two")
        check_equal(late.status(), 412)
        check_equal(site.app.take(), [])
    site.close()


# -- what goes wrong

@each
def a_write_is_sent_once_even_if_the_application_breaks_the_connection(name, site, ada):
    """On a connection that was used before. (A client that repeats it itself is checked anew.)"""
    for method in ("PUT", "DELETE", "POST"):
        for length in (0, 1):
            line = Line(site.proxy)
            request = (f"{method} {ada.target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\nIdempotency-Key: k1\r\n"
                       f"Fencing-Token: {ada.header}\r\n\r\n{'a' * length}")
            line.send(request)
            check_equal((line.status(), len(site.app.take())), (201, 1))
            site.app.breaks = True
            try:
                line.send(request)
                # HAProxy closes without an answer.
                check_in(line.status_or_end(), (502, 504) if name != "haproxy" else (502, 504, None), "it may have happened")
            finally:
                site.app.breaks = False
            check_equal(len(site.app.take()), 1, method)


@test
def caddy_says_accepted_only_with_an_answer_of_the_application(ada):
    """A client that closes its sending side gets an empty 200 of it."""
    site = Site("caddy")
    site.app.answers.clear()
    late = begun(site, ada)
    late.send("two")
    wait_until(lambda: site.app.requests, "it is at the application")
    late.socket.shutdown(socket.SHUT_WR)
    said = late.file.read()
    site.app.answers.set()
    check_equal((said[:12], b"Fencing-Status" in said), (b"HTTP/1.1 200", False), repr(said))
    site.close()


def closed(site, holder):
    """Refused with 503, and nothing landed; reads go on."""
    answer = site("PUT", holder.target, holder.header)
    check_equal((answer.status, answer.code, answer.json["retryable"]), (503, "store-unavailable", True), repr(answer))
    check_equal(site.app.take(), [])
    check_equal(site("GET", holder.target).status, 201)
    site.app.take()


class Down:
    """A world that may break, with every proxy that is there in front of it."""

    def __init__(self):
        self.world = World()
        self.holder = Holder(world=self.world)
        self.missing = [name for name in NAMES if program(name) is None]
        self.sites = [Site(name, self.world) for name in NAMES if program(name)]
        self.pass_all()

    def pass_all(self):
        for site in self.sites:
            passed(site, site("PUT", self.holder.target, self.holder.header), self.holder)

    def closed_all(self):
        """At the same time: some of them wait for what does not come."""
        with concurrent.futures.ThreadPoolExecutor(len(NAMES)) as pool:
            for done in [pool.submit(closed, site, self.holder) for site in self.sites]:
                done.result()

    def close(self):
        for site in self.sites:
            site.close()
        self.world.close()
        if self.missing:
            skip(f"not installed: {', '.join(self.missing)}")


@test_in(Down)
def without_the_store_nothing_passes_and_with_it_again_it_does(down):
    down.world.redis.kill()
    down.closed_all()
    down.world.redis.start()
    site = down.sites[0]
    wait_until(lambda: site("PUT", down.holder.target, down.holder.header).status == 201, "the holder writes again")
    site.app.take()
    down.pass_all()


@test_in(Down)
def without_the_gateway_nothing_passes_whether_it_hangs_or_is_gone(down):
    down.world.gateway_daemon.send(signal.SIGSTOP)
    down.closed_all()
    down.world.gateway_daemon.send(signal.SIGCONT)
    down.pass_all()
    down.world.gateway_daemon.end()
    down.closed_all()


@behind_each(("haproxy", "caddy"))
def a_yes_of_somebody_who_is_no_gateway_does_not_count(name):
    """Something that says yes to everything stands where the gateway should be."""
    stranger = App()
    site = Site(name, gateway=int(stranger.address.rpartition(":")[2]))
    answer = site("PUT", "/orders/42", "x")
    check_equal((answer.status, answer.code), (503, "store-unavailable"), repr(answer))
    check_equal((site.app.take(), len(stranger.take())), ([], 1))
    site.close()
    stranger.close()


@test
def behind_haproxy_a_script_that_fails_lets_nothing_pass():
    broken = {"local said = ask(txn, gateway)": "local said = nothing.at_all"}
    site, ada = Site("haproxy", extra={"pawl_check.lua": broken}), Holder()
    check_equal(site("PUT", ada.target, ada.header).status, 503)
    check_equal(site.app.take(), [])
    site.close()


# -- a gateway that judges, over TLS

def changed_for_tls(folder, gateway):
    """What the document says to change, for each."""
    page = (DEPLOY.parent / "docs" / "proxies.md").read_text(encoding="utf-8").replace("/etc/pawl/tls", folder)
    [nginx] = re.findall(r"```nginx\n( +proxy_pass https.*?)```", page, re.DOTALL)
    [caddy] = re.findall(r"```caddy\n(.*?)  ```", page, re.DOTALL)
    [haproxy] = re.findall(r"```\n( +listen pawl_check.*?)```", page, re.DOTALL)
    at = own_port()
    haproxy = haproxy.replace("\n  ", "\n").removeprefix("  ").replace("127.0.0.1:8711", f"127.0.0.1:{at}").replace("127.0.0.1:8701", f"127.0.0.1:{gateway}")
    [old] = re.findall(r"        proxy_pass http://pawl-gateway/.*\n", (DEPLOY / "nginx/pawl.conf").read_text(encoding="utf-8"))
    return {"nginx": {old: nginx, "        proxy_set_header Host pawl-gateway;\n        proxy_set_header Connection": "        proxy_set_header Connection"},
            "caddy": {"\t\t\t\t\tresponse_header_timeout 3s\n": f"\t\t\t\t\tresponse_header_timeout 3s\n{caddy}"},
            "haproxy": {"\nbackend orders_app": "\n" + haproxy + "\nbackend orders_app"}}, at


@test
def a_check_over_tls_is_verified_and_too_many_of_them_are_429():
    """The proxy is known by its certificate, and has ten a second."""
    folder = tempfile.mkdtemp(dir=WORLD.folder)
    for name, subject, usage in (("ca", "DNS:pawl.internal", "serverAuth"), ("proxy", "DNS:proxy.internal", "clientAuth"), ("other", "DNS:pawl.internal", "serverAuth")):
        pem, key = certificate(folder, name, subject, usage)
        shutil.copy(pem, os.path.join(folder, f"{name}.crt"))
        pathlib.Path(pem).write_text(pathlib.Path(pem).read_text() + pathlib.Path(key).read_text())
    file = pathlib.Path(folder, "access.json")
    write_private(file, {"identities": {"proxy": {"certs": ["dns:proxy.internal"]}}, "limits": {"proxy": {"requests_per_s": 10}},
                         "rules": [{"who": ["proxy"], "may": ["check"], "on": ["orders:*"]}, {"who": ["nobody"], "may": ["acquire"], "on": ["*"]}]})
    world = World("--access", str(file), gateway_flags=["--tls-cert", f"{folder}/ca.crt", "--tls-key", f"{folder}/ca.key", "--tls-client-ca", f"{folder}/proxy.crt"])
    world.wait_ready(world.lease)
    ada = Holder(world=world)
    changes, at = changed_for_tls(folder, world.gateway_daemon.port)
    for name, extra in changes.items():
        gateway = at if name == "haproxy" else world.gateway_daemon.port
        site = Site(name, world, dict(extra), gateway)
        wait_until(lambda site=site: site("PUT", ada.target, ada.header).status == 201, "it passes")
        site.app.take()
        limited = wait_until(lambda site=site: next((one for one in [site("PUT", ada.target, ada.header)] if one.status != 201), None), "it is limited")
        check_equal((limited.status, limited.code, limited.header("Retry-After"), limited.json["retryable"]), (429, "rate-limited", "1", True), f"{name}: {limited}")
        site.app.take()
        wait_until(lambda site=site: site("PUT", ada.target, ada.header).status == 201, "it passes again")
        site.close()
        for other in ({"ca.pem": "other.crt"}, {"pawl.internal": "pawl.example"}):
            [(old, new)] = other.items()
            site = Site(name, world, {key: value.replace(old, new) for key, value in extra.items()}, gateway)
            closed(site, ada)
            site.close()
    world.close()


# -- Traefik and Envoy, which are not here: what they send

def configuration(name):
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


def traefik(token, method="PUT", target="/orders/42"):
    """What ForwardAuth sends for a request of that kind: GET, to the address as it stands there."""
    asked = configuration("traefik/pawl.yml")["http"]["middlewares"]["pawl-check"]["forwardAuth"]
    check_equal((asked["authRequestHeaders"], asked["trustForwardHeader"]), (["Fencing-Token"], False))
    address = asked["address"].removeprefix("http://127.0.0.1:8701")
    headers = [("X-Forwarded-Method", method), ("X-Forwarded-Proto", "http"), ("X-Forwarded-Host", "orders.example"),
               ("X-Forwarded-Uri", target), ("X-Forwarded-For", "127.0.0.1")]
    return WORLD.gateway("GET", address, headers + ([("Fencing-Token", token)] if token else []))


@test
def what_traefik_sends_gets_200_for_the_live_holder_and_the_real_status_for_everybody_else():
    ada = Holder(name="orders")  # the one lease of the example
    for method, target in (("PUT", "/orders/42"), ("DELETE", "/orders/1/lines/7?x=y"), ("BREW", "/orders/%2F/../")):
        answer = traefik(ada.header, method=method, target=target)
        check_equal((answer.status, answer.body, answer.header("Fencing-Token-Verified")), (200, b"", str(ada.token)))
    bob = ada.successor()
    for token, status, code in ((None, 428, "token-required"), ("x", 400, "malformed-token"), (ada.header, 412, "stale-token"),
                                (Holder().header, 403, "wrong-lease")):
        answer = traefik(token)
        check_equal((answer.status, answer.code), (status, code), repr(answer))
    WORLD.release(bob.name, bob.grant)
    check_equal(traefik(bob.header).code, "lease-expired")


def parts_of_envoy():
    """(ext_authz, the routes) of the shipped file."""
    [listener] = configuration("envoy/envoy.yaml")["static_resources"]["listeners"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    [asked] = [one["typed_config"] for one in manager["http_filters"] if one["name"] == "envoy.filters.http.ext_authz"]
    return asked, manager["route_config"]["virtual_hosts"][0]["routes"]


def envoy(method, target, token):
    """What ext_authz sends for that request: its method, path_prefix and its path, no body, Host and what is allowed."""
    asked, _ = parts_of_envoy()
    check_equal((asked["failure_mode_allow"], asked["allowed_headers"]), (False, {"patterns": [{"exact": "fencing-token"}]}))
    headers = [("Host", "orders.example"), ("Content-Length", "0")] + ([("fencing-token", token)] if token else [])
    return WORLD.gateway(method, asked["http_service"]["path_prefix"] + target, headers, b"")


@test
def what_envoy_sends_gets_exactly_200_for_the_live_holder_and_never_for_anybody_else(ada):
    for method in WRITES:
        for rest in ("", "/lines/7", "/lines/7/?x=y", "?deny=native"):
            answer = envoy(method, f"/{ada.name}{rest}", ada.header)
            check_equal((answer.status, answer.body, answer.header("Fencing-Token-Verified")), (200, b"", str(ada.token)))
    for code, native, target, token in ladder():
        lease = target.removeprefix("/").replace("/", ":", 1)
        for rest, status in (("", 401 if native == 428 else 403), ("/x?y", 401 if native == 428 else 403), ("?deny=native", native)):
            answer = envoy("PUT", f"/{lease}{rest}", token)
            check_equal((answer.status, answer.code), (status, code), repr(answer))
            check_in(f"reason={code}", answer.header("Fencing-Status"))


@test
def envoy_has_a_route_for_straight_paths_only_and_reads_alone_go_unchecked():
    asked, [read, write] = parts_of_envoy()
    check_equal(read["match"]["safe_regex"], write["match"]["safe_regex"])
    regex = write["match"]["safe_regex"]["regex"]
    for shape in CROOKED:
        target = shape.format(mine="41", other="42", other_tail="42").split("?")[0]
        for one in (target, target.replace("/orders/", "/orders:", 1)):
            check(not re.fullmatch(regex, one) or one in ("/orders:41", "/orders:42"), one)
    for target in ("/orders:42", "/orders:42/", "/orders:a.b:c-d_e/lines/7"):
        check(re.fullmatch(regex, target), target)
    rewrite = write["route"]["regex_rewrite"]
    check_equal(re.sub(rewrite["pattern"]["regex"], rewrite["substitution"], "/orders:42/x"), "/orders/42/x")
    unchecked = [route for route in (read, write) if route.get("typed_per_filter_config")]
    check_equal(unchecked, [read])
    methods = read["match"]["headers"][0]["string_match"]["safe_regex"]["regex"]
    check_equal([method for method in READS + WRITES + ("GETX", "get") if re.fullmatch(methods, method)], list(READS))
    check_equal(asked["status_on_error"], {"code": "ServiceUnavailable"})


@test
def traefik_checks_every_method_that_is_not_a_read_after_the_body_is_there():
    http = configuration("traefik/pawl.yml")["http"]
    read, write = http["routers"]["orders-read"], http["routers"]["orders-write"]
    check_equal(write["middlewares"], ["pawl-drop", "pawl-whole-body", "pawl-check"])
    check_equal((re.findall(r"\bMethod\(`(\w+)`\)", read["rule"]), "Method" in write["rule"]), (list(READS), False))
    check(read["priority"] > write["priority"], "the read's router would never be asked")
    [regex] = re.findall(r"PathRegexp\(`([^`]*)`\)", write["rule"])
    check_in(f"PathRegexp(`{regex}`)", read["rule"])
    for shape in CROOKED:
        target = shape.format(mine="41", other="42", other_tail="42").split("?")[0]
        # The lease is fixed there: which name an order has does not matter.
        check(not re.search(regex, target) or target == "/orders/-42", target)
    check(re.search(regex, "/orders/42/lines/7"), regex)
    asked = http["middlewares"]["pawl-check"]["forwardAuth"]
    check_equal(asked["authResponseHeaders"], ["Fencing-Token-Verified"])


# -- what the files say

@test
def every_file_says_loudly_that_such_a_check_is_admitted_and_not_ordered():
    for name in FILES:
        text = (DEPLOY / name).read_text(encoding="utf-8")
        check_in('WARNING: what this gives is "admitted", not "ordered".', text[:600], name)
        check_in("can land AFTER the write of a newer holder", text[:900], name)
        check_equal("NOT RUN HERE" in text[:1600], name.startswith(("traefik", "envoy")), name)
    page = (DEPLOY.parent / "docs" / "proxies.md").read_text(encoding="utf-8")
    check_in("**admitted, not ordered**", page[:1200])
    for name in FILES:
        check_in(f"../deploy/{name}", page)


def close():
    for site in Site.open.values():
        site.close()
    WORLD.close()


main(close, parts=2)
