"""secure.py - what TLS and access control cost: neighbours in time are compared, with and without."""

import os
import pathlib
import socket
import ssl
import statistics

import bench_world as world  # finds the tests' own package
from world.access import identities, new_token, write_private
from world.certificate import certificate

IDLE, RULES = 400, 20


def access_file(folder):
    """(its path, an access token): the last of 20 rules allows everything on b*."""
    path, token = pathlib.Path(folder, "access.json"), new_token()
    rules = [{"who": ["known"], "may": ["acquire", "look"], "on": [f"team-{number}:*"]} for number in range(1, RULES)]
    rules.append({"who": ["me"], "may": ["acquire", "look", "read", "write-own", "check"], "on": ["*"]})
    write_private(path, {"identities": identities({"me": token}), "rules": rules})
    return str(path), token


class Kept:
    """So many connections that have had one answer to /livez, and are silent since."""

    def __init__(self, to, trust, count):
        host, port = to.split(":")
        self.open = []
        for _ in range(count):
            line = socket.create_connection((host, int(port)))
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else 40 ms of the service's idle time are in it, too
            line = trust.wrap_socket(line, server_hostname=host) if trust else line
            line.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            if not line.recv(4096).startswith(b"HTTP/1.1 200"):
                raise world.Broken("/livez was not answered 200")
            self.open.append(line)

    def close(self):
        for line in self.open:
            line.close()


def bench_connections(plan, plain, tls, trust, out):
    """For each of many that come after each other: memory, and CPU beyond that of a plain one."""
    got = {}
    for _ in range(plan.rounds):
        for name, of, how in (("plain", plain, None), ("TLS", tls, trust)):
            cpu_s, rss = of.cpu_s(), of.rss_bytes()
            kept = Kept(of.to, how, IDLE)
            got.setdefault(name, []).append((1000 * (of.cpu_s() - cpu_s) / IDLE, (of.rss_bytes() - rss) / IDLE))
            kept.close()
    cpu_ms = statistics.median(one[0] - other[0] for one, other in zip(got["TLS"], got["plain"]))
    out.figure("ms of CPU of pawl-lease for a P-256 handshake (TLS 1.3)", cpu_ms, "at most", 0.5)
    # What was freed stays with the process: the first round is the one that tells.
    out.figure(f"bytes of pawl-lease for each of {IDLE:,} idle connections over TLS", got["TLS"][0][1], "at most", 20480)


def bench_tls(plan, s, measured, rounds, ratio, out):
    pem, key = certificate(s.place, "server", "IP:127.0.0.1")
    s.serve("lease")
    tls = world.Service(s.programs["lease"], "pawl-lease", os.path.join(s.place, "tls"), s.redis, s.keys,
                        ("--tls-cert", pem, "--tls-key", key))
    s.processes.append(tls)
    holds = os.path.join(s.place, "livez")
    with open(holds, "w", encoding="ascii") as file:
        file.writelines(f"{number:016} none\n" for number in range(64))
    bench_connections(plan, s.lease, tls, ssl.create_default_context(cafile=pem), out)
    for job, more, least in (("read", {"holds": holds, "path": "/livez"}, 0.5), ("lease", {"names": 2048}, 0.7)):
        title = {"read": "GET /livez at 64", "lease": "acquire+release at 64, always"}[job] + ", TLS"
        part = rounds(plan, title, {
            "plain": lambda job=job, more=more: measured([s.redis, s.lease], plan, 64, s.lease.to, "http", job, **more),
            "tls": lambda job=job, more=more: measured([s.redis, tls], plan, 64, tls.to, "http", job, cacert=pem, **more)})
        out.part(part)
        out.figure(f"{title}, ratio to plain", ratio(part, "tls", "plain"), "at least", least)


def bench_access(plan, open_, judged, measured, rounds, ratio, out):
    """open_, judged: two stores, the second with an access file."""
    path, token = access_file(judged.place)
    open_.serve("lease")
    judged.serve("lease", more=("--access", path))
    part = rounds(plan, "acquire+release at 64, always, access", {
        "open": lambda: measured([open_.redis, open_.lease], plan, 64, open_.lease.to, "http", "lease", names=2048),
        "judged": lambda: measured([judged.redis, judged.lease], plan, 64, judged.lease.to, "http", "lease", names=2048, token=token)})
    out.part(part)
    out.figure(f"acquire and release at 64, an access token and {RULES} rules, ratio to without --access", ratio(part, "judged", "open"))
