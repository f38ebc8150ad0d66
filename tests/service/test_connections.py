#!/usr/bin/python3
"""Nobody has all connections: a limit for each address, a reserve for what keeps and gives back, and who is behind a proxy."""

import os
import re
import resource
import socket
import subprocess
import tempfile
import time

from world import World, check, check_equal, main, test, wait_until
from world.client import Closed, Raw
from world.process import memory_kib
from world.upstream import Upstream, route, routes_file
from world.wait import DEADLINE_S
from world.world import Daemon, run_daemon

FOLDER = tempfile.mkdtemp(dir=os.environ["TMPDIR"])
UPSTREAM = Upstream()
PATIENT = ["--header-timeout", "60s"]  # on a busy machine those that are not asked yet stay open, too
MANY = World("--max-connections", "40", *PATIENT, lease_flags=["--threads", "2"])
RESERVE = World("--max-connections", "40", "--max-connections-per-address", "40", *PATIENT)
PROXIED = World("--max-connections-per-address", "2", *PATIENT, "--trusted-proxy", "127.0.0.9", "--trusted-proxy", "10.0.0.0/8", gateway_flags=[
    "--routes", routes_file(FOLDER, [route(UPSTREAM, "/orders/{id}/**", "orders:{id}")])])
World.contract.forwards = True


class From(Raw):
    """A connection from an address of its own: all of 127.0.0.0/8 is this machine's."""

    def __init__(self, daemon, address):  # pylint: disable=super-init-not-called
        self.service, self.contract, self.buffer = daemon.name.removeprefix("pawl-"), World.contract, b""
        self.socket = socket.create_connection(("127.0.0.1", daemon.port), timeout=DEADLINE_S, source_address=(address, 0))

    def ask(self, method, target, *headers, body=""):
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
        self.send("\r\n".join(lines) + "\r\n\r\n" + body)

    def get(self, method, target, *headers):
        self.ask(method, target, *headers)
        return self.answer(method, target, [header.split(": ", 1) for header in headers], before_routing=True)


def lives(raw):
    try:
        return raw.get("GET", "/livez").status == 200
    except Closed:
        return False


def opened(daemon, address, count):
    """Those of so many connections that are served."""
    raws = [From(daemon, address) for _ in range(count)]
    return [raw for raw in raws if lives(raw)]


def close(raws):
    for raw in raws:
        raw.close()


@test
def one_address_has_half_of_the_connections_at_most_and_the_rest_goes_on():
    daemon = MANY.lease_daemon
    name = MANY.name()
    bystander = From(daemon, "127.0.0.3")
    grant = bystander.get("POST", f"/v1/leases/{name}").json
    begun = time.monotonic()
    greedy = opened(daemon, "127.0.0.2", 60)
    # A thread has half of all and one; the limit is of both. Each looks whether there is room before it counts.
    check(20 <= len(greedy) <= 21, len(greedy))
    # Where one thread was slow the other is full: each of these comes to it or not.
    again = opened(daemon, "127.0.0.3", 16)
    check(again, "another address is not served")
    check_equal(again[0].get("PUT", f"/v1/leases/{name}", f"Lease-Id: {grant['lease_id']}").status, 200)
    closed = dict(re.findall(r'^pawl_http_connections_closed_total\{reason="(.*)"\} (\d+)$', bystander.get("GET", "/metrics").body.decode(), re.M))
    check(0 <= sum(map(int, closed.values())) - 60 + len(greedy) <= 16 - len(again), closed)
    check(int(closed["max-connections-per-address"]) > 0, closed)
    daemon.line(lambda line: '"limit":"--max-connections-per-address","peer":"127.0.0.2"' in line, "whom it has closed")
    told = [line for line in daemon.log().splitlines() if '"connection-closed"' in line]
    seconds = int(time.monotonic() - begun) + 2  # that have begun, at most
    check(0 < len(told) <= 2 * seconds, (seconds, told))  # one a second of each thread
    close(greedy)
    wait_until(lambda: len(opened(daemon, "127.0.0.2", 1)) == 1, "who has closed some may have new ones")
    close(again + [bystander])


@test
def the_last_connections_are_for_what_keeps_and_gives_back():
    daemon = RESERVE.lease_daemon
    name, other = RESERVE.name(), RESERVE.name()
    crowd = opened(daemon, "127.0.0.2", 38)
    check_equal(len(crowd), 38)
    first = crowd.pop()
    grant = first.get("POST", f"/v1/leases/{name}").json
    session = first.get("POST", "/v1/sessions").json
    crowd.append(first)
    wait_until(lambda: gone_but(daemon, 38), "no other connection is open")
    crowd.append(From(daemon, "127.0.0.2"))
    check(lives(crowd[-1]))
    for method, target in (("POST", f"/v1/leases/{other}"), ("POST", f"/v1/leases/{name}/force-release"), ("GET", f"/v1/leases/{name}"),
                           ("POST", "/v1/sessions"), ("GET", "/v1/events"), ("GET", "/nothing"), ("PATCH", f"/v1/leases/{name}")):
        late = From(daemon, "127.0.0.3")
        answer = late.get(method, target)
        check_equal((answer.status, answer.code, answer.header("Connection")), (503, "overloaded", "close"), f"{method} {target}")
        check(late.is_closed())
        late.close()
        wait_until(lambda: gone_but(daemon, 39), "it is closed")
    late = From(daemon, "127.0.0.3")
    mine = f"Lease-Id: {grant['lease_id']}"
    for method, target, header, status in (("PUT", f"/v1/leases/{name}", mine, 200), ("GET", "/readyz", "X: y", 200),
                                           ("PUT", f"/v1/sessions/{session['session']}", f"Session-Secret: {session['session_secret']}", 200),
                                           ("DELETE", f"/v1/sessions/{session['session']}", f"Session-Secret: {session['session_secret']}", 204),
                                           ("DELETE", f"/v1/leases/{name}", mine, 204), ("GET", "/livez", "X: y", 200)):
        check_equal(late.get(method, target, header).status, status, f"{method} {target}")
    check_equal(late.get("POST", f"/v1/leases/{other}").code, "overloaded")
    close([late] + crowd)
    wait_until(lambda: RESERVE.look(other).get("token") == 0, "nothing was granted")


@test
def who_has_few_descriptors_keeps_some_for_the_store_and_accepts_again_when_there_are_more():
    daemon = RESERVE.daemon("pawl-lease")
    folder = f"/proc/{daemon.process.pid}/fd"
    most = len(os.listdir(folder)) + 20
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (most, resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)[1]))
    crowd = opened(daemon, "127.0.0.2", 60)  # the others are closed, and none is left waiting
    check(15 < len(crowd) < 20, len(crowd))
    check(len(os.listdir(folder)) < most, "none is left for the store")
    close(crowd)
    wait_until(lambda: len(opened(daemon, "127.0.0.3", 1)) == 1, "there is room again")


def gone_but(daemon, count):
    """Whether so many connections to it are established, by the kernel's own list."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        local = f"0100007F:{daemon.port:04X}"
        return sum(1 for line in file if line.split()[1] == local and line.split()[3] == "01") == count


@test
def over_a_unix_socket_each_user_has_as_many_as_one_address():
    path = os.path.join(FOLDER, "lease.sock")
    daemon = Daemon("pawl-lease", *PROXIED.flags, "--listen-unix", path)

    def opened_here():
        one = socket.socket(socket.AF_UNIX)
        one.settimeout(DEADLINE_S)
        one.connect(path)
        try:
            one.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return one if one.recv(100) else None
        except ConnectionError:
            return None
    mine = [opened_here() for _ in range(3)]
    check_equal([one is not None for one in mine], [True, True, False])
    other = [*(["sudo", "-n"] if os.geteuid() else []), "setpriv", "--reuid=65533", "--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    got = subprocess.run([*other, "curl", "-sS", "--unix-socket", path, "http://localhost/livez"], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    check_equal((got.returncode, got.stdout[:9]), (0, '{"status"'), got.stderr)
    mine[0].close()
    wait_until(opened_here, "there is room again")
    mine[1].close()
    check_equal(daemon.end(), 0)


@test
def behind_a_trusted_proxy_the_address_that_it_names_last_counts():
    name = PROXIED.name("orders")
    holder = PROXIED.acquire(name)
    daemon = PROXIED.lease_daemon
    proxy = opened(daemon, "127.0.0.9", 7)
    check_equal(len(proxy), 7)  # its own connections are not counted
    waits = []
    for raw in proxy[:4]:  # two of each client wait
        raw.ask("POST", f"/v1/leases/{name}", "Content-Type: application/json", f"X-Forwarded-For: 10.1.1.{1 + len(waits) // 2}", body='{"wait_ms":60000}')
        waits.append(raw)
    wait_until(lambda: PROXIED.look(name)["waiting"] == 4, "they stand in line")
    for spelled in ("10.1.1.1", "9.9.9.9, 10.1.1.1", "9.9.9.9\r\nX-Forwarded-For: 8.8.8.8,10.1.1.1:4711", "::ffff:10.1.1.1", "[::ffff:10.1.1.1]:80"):
        answer = proxy[4].get("GET", f"/v1/leases/{name}", f"X-Forwarded-For: {spelled}")
        check_equal((answer.status, answer.code), (503, "overloaded"), spelled)
    for spelled in ("10.1.1.3", "10.1.1.1, 10.1.1.3", "10.1.1.1, unknown", "10.1.1.1.1"):
        check_equal(proxy[4].get("GET", f"/v1/leases/{name}", f"X-Forwarded-For: {spelled}").status, 200, spelled)
    stranger = From(daemon, "127.0.0.2")
    check_equal(stranger.get("GET", f"/v1/leases/{name}", "X-Forwarded-For: 10.1.1.1").status, 200)  # nobody believes it
    close(waits)
    wait_until(lambda: PROXIED.look(name)["waiting"] == 0, "they have left")
    check_equal(proxy[5].get("GET", f"/v1/leases/{name}", "X-Forwarded-For: 10.1.1.1").status, 200)
    close(proxy[4:] + [stranger])
    PROXIED.release(name, holder)


@test
def what_is_sent_on_names_the_client_that_a_trusted_proxy_names():
    grant = PROXIED.acquire(PROXIED.name("orders"))
    path = f"/orders/{grant['lease'].partition(':')[2]}/x"
    for address, last in (("127.0.0.9", "192.0.2.7"), ("127.0.0.2", "127.0.0.2")):
        raw = From(PROXIED.gateway_daemon, address)
        answer = raw.get("PUT", path, f"Fencing-Token: {grant['fencing_token']}", "X-Forwarded-For: 192.0.2.7")
        check_equal(answer.status, 200)
        check_equal(UPSTREAM.requests[-1].header("X-Forwarded-For").rpartition(",")[2].strip(), last)
        raw.close()


@test
def what_is_no_network_is_refused_at_the_start():
    for value in ("10.0.0.0/33", "::/129", "10.0.0", "example", "10.0.0.0/", "10.0.0.0/x", "1.2.3.4,", ",1.2.3.4", ",".join(["1.2.3.4"] * 65)):
        done = run_daemon("pawl-lease", "--check-config", "--keys", PROXIED.keys_file, "--trusted-proxy", value)
        check_equal(done.returncode, 78 if value != "1.2.3.4," else 0, value)


@test
def what_everybody_may_have_takes_no_memory_for_each_who_reads_it_slowly():
    kib, sockets = memory_kib(PROXIED.lease_daemon.process), []
    for i in range(30):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)  # else the kernel takes all of it at once
        one.bind((f"127.0.1.{i + 1}", 0))
        one.connect(("127.0.0.1", PROXIED.lease_daemon.port))
        one.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        sockets.append(one)
    check_equal({one.recv(12) for one in sockets}, {b"HTTP/1.1 200"})
    more = memory_kib(PROXIED.lease_daemon.process) - kib
    check(more < 3000, f"{more} KiB more")
    close(sockets)


main(MANY.close, RESERVE.close, PROXIED.close)
