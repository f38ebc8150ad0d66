"""forwarding.py - the gateway in front of an upstream that knows nothing of tokens, beside nginx and HAProxy."""

import contextlib
import json
import os
import statistics
import subprocess

import bench_world as world

RESOURCES = 512
BODY_BYTES = 1 << 30

HAPROXY_CONF = """
global
    maxconn 4096
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 600s
    timeout server 600s
    http-reuse always
    option http-keep-alive
frontend in
    bind 127.0.0.1:{port}
    default_backend up
backend up
    server idle {upstream}
"""


class HAProxy(world.Process):
    def __init__(self, directory, upstream):
        place = os.path.join(directory, "haproxy")
        os.mkdir(place)
        port = world.own_port()
        conf = os.path.join(place, "haproxy.cfg")
        with open(conf, "w", encoding="ascii") as file:
            file.write(HAPROXY_CONF.format(port=port, upstream=upstream))
        super().__init__("haproxy", ["haproxy", "-db", "-f", conf], place)
        self.to = f"127.0.0.1:{port}"
        world.until("haproxy answering", lambda: world.answers(port))


def routes_of(place, upstream):
    path = os.path.join(place, "routes.json")
    with open(path, "w", encoding="ascii") as file:
        json.dump({"routes": [{"match": "/w/{id}/**", "lease": "{id}", "upstream": f"http://{upstream}",
                               "guarantee": "ordered", "check": "live"}]}, file)
    return path


def sides(run, plan, s, proxies, upstream, connections, job, path, **more):
    """run(processes, plan, connections, to, speak, job, ...): as tests/bench/run measures."""
    def side(processes, to):
        return lambda: run(processes + [upstream], plan, connections, to, "http", job, holds=s.holds, path=path, **more)
    kinds = {"pawl": side([s.redis, s.gateway], s.gateway.to)}
    for proxy in proxies:
        kinds[proxy.name] = side([proxy], proxy.to)
    return kinds


def curl(*args):
    """Bytes a second, of one transfer."""
    done = subprocess.run(["curl", "-sS", "-o", "/dev/null", "--noproxy", "*", "-w",
                           "%{http_code} %{size_upload} %{size_download} %{time_total}", *args],
                          capture_output=True, text=True, preexec_fn=world.die_with_parent, check=False)
    words = done.stdout.split()
    if done.returncode != 0 or words[0] not in ("200", "204"):
        raise world.Broken(f"curl {args}: {done.stdout} {done.stderr}")
    return (float(words[1]) + float(words[2])) / float(words[3])


def largest_rss(process, transfer):
    """What a transfer moves a second, and the most memory that a process had meanwhile."""
    import threading
    most, over = [process.rss_bytes()], threading.Event()

    def look():
        while not over.wait(0.02):
            most[0] = max(most[0], process.rss_bytes())
    looker = threading.Thread(target=look)
    looker.start()
    try:
        rate = transfer()
    finally:
        over.set()
        looker.join()
    return rate, most[0]


def bench_bodies(plan, s, nginx, out):
    """1 GiB up and down, one after the other, by turns."""
    size = BODY_BYTES if plan.rounds > 1 else BODY_BYTES >> 4
    with open(s.holds, encoding="ascii") as file:
        name, token = file.readline().strip().split(" ", 1)
    body = os.path.join(s.place, "body")
    with open(body, "wb") as file:
        file.truncate(size)
    up = ["-X", "PUT", "-H", f"Fencing-Token: {token}", "-H", "Expect:", "-T", body]
    rates, most = {"up": [], "down": []}, 0
    for _ in range(min(plan.rounds, 3)):
        for way, args, path in (("up", up, f"/w/{name}/x"), ("down", [], f"/w/{name}/bytes/{size}")):
            ours, rss = largest_rss(s.gateway, lambda args=args, path=path: curl(*args, f"http://{s.gateway.to}{path}"))
            theirs = curl(*args, f"http://{nginx.to}{path}")
            rates[way].append((ours, theirs))
            most = max(most, rss)
    for way, pairs in rates.items():
        out.figure(f"MB/s of {size >> 20} MiB {way}", statistics.median(ours for ours, _ in pairs) / 1e6)
        out.figure(f"{size >> 20} MiB {way}, ratio to nginx", statistics.median(ours / theirs for ours, theirs in pairs),
                   "at least", 0.7)
    out.figure("MiB of pawl-gateway at the most, meanwhile", most / (1 << 20), "at most", 32)


@contextlib.contextmanager
def served(s, upstream_program, fsync):
    """A store, both services, an upstream, the proxies; and holds."""
    with contextlib.ExitStack() as ends:
        upstream = ends.enter_context(world.running(world.Upstream(upstream_program, s.place)))
        nginx = ends.enter_context(world.running(world.Nginx(s.place, upstream.to)))
        haproxy = ends.enter_context(world.running(HAProxy(s.place, upstream.to)))
        s.serve("lease", more=() if fsync == "always" else ("--allow-unsafe-redis",))
        s.serve("gateway", more=("--routes", routes_of(s.place, upstream.to)))
        s.hold(RESOURCES)
        # A switch for benchmarks only: the services read the settings every ten seconds.
        s.redis.ask("CONFIG", "SET", "appendfsync", fsync)
        yield upstream, nginx, haproxy


