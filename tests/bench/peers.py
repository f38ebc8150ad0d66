"""peers.py - what else one takes to lock something durably, on this machine: etcd, PostgreSQL, ZooKeeper.

Each is installed when it is not there, without being started as a service; when it cannot be installed, that is said,
and it is left out. Each is one node, private, and as durable as it is by itself: every change is on the disk before
it is answered. What is asked of them: job_peers.c, and for PostgreSQL the script below, played by pgbench."""

import contextlib
import glob
import json
import os
import re
import resource
import subprocess
import sys
import urllib.request

import bench_world as world

TARGETS = {"etcd": 5, "postgres": 2, "zookeeper": 1.1}  # rate of Pawl to theirs, at least
LEASE = {"TTL": 86400, "ID": 7}
PGBENCH = """\\set name :client_id * 32 + random(0, 31)
\\set holder random(1, 1000000000)
INSERT INTO lock VALUES (:name, :holder, nextval('fence'), now() + interval '30 s')
 ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, token = excluded.token, expires = excluded.expires
 WHERE lock.expires < now() RETURNING token \\gset
UPDATE lock SET expires = '-infinity' WHERE name = :name AND holder = :holder RETURNING expires \\gset
"""
TABLE = ("CREATE SEQUENCE fence; CREATE TABLE lock (name int PRIMARY KEY, holder int, token bigint, expires timestamptz) "
         "WITH (fillfactor = 50)")


class Etcd(world.Process):
    package, program = "etcd-server", "/usr/bin/etcd"

    def __init__(self, directory):
        port, peer = world.free_port(), f"http://127.0.0.1:{world.free_port()}"
        self.to = f"127.0.0.1:{port}"
        super().__init__("etcd", [self.program, "--data-dir", os.path.join(directory, "etcd"), "--log-level", "error",
                                  "--listen-client-urls", f"http://{self.to}", "--advertise-client-urls", f"http://{self.to}",
                                  "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                                  "--initial-cluster", f"default={peer}"], directory)
        world.until("etcd answering", lambda: world.status_of(f"http://{self.to}/health") == 200)
        with urllib.request.urlopen(f"http://{self.to}/v3/lease/grant", json.dumps(LEASE).encode(), timeout=10) as answer:
            answer.read()


class ZooKeeper(world.Process):
    package, program = "libzookeeper-java", "/usr/share/java/zookeeper.jar"

    def __init__(self, directory):
        port, conf = world.free_port(), os.path.join(directory, "zoo.cfg")
        self.to = f"127.0.0.1:{port}"
        with open(conf, "w", encoding="ascii") as file:
            file.write(f"dataDir={directory}/zookeeper\nclientPort={port}\nclientPortAddress=127.0.0.1\ntickTime=2000\n"
                       "maxClientCnxns=0\nadmin.enableServer=false\n")
        super().__init__("zookeeper", ["java", "-cp", f"{self.program}:/usr/share/java/*",
                                       "org.apache.zookeeper.server.ZooKeeperServerMain", conf], directory)
        world.until("ZooKeeper answering", lambda: world.answers(port), patience_s=60)


class Postgres(world.Process):
    package, program = "postgresql", "/usr/lib/postgresql/*/bin/postgres"

    def __init__(self, directory):
        self.place, self.port = os.path.join(directory, "postgres"), world.free_port()
        self.programs = os.path.dirname(sorted(glob.glob(self.program))[-1])
        # It refuses to be root: root by another name.
        alias = [] if os.geteuid() else ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
        self.run([*alias, self.tool("initdb"), "-D", self.place, "-U", "postgres", "-A", "trust", "-N"])
        super().__init__("postgres", [*alias, self.tool("postgres"), "-D", self.place, "-p", str(self.port), "-c",
                                      "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.place}"], directory)
        world.until("PostgreSQL answering", lambda: subprocess.run([self.tool("pg_isready"), "-q", *self.there()],
                                                                   check=False).returncode == 0)
        self.run([self.tool("psql"), *self.there(), "-c", TABLE])

    def tool(self, name):
        return os.path.join(self.programs, name)

    def there(self):
        return ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]

    def run(self, argv):
        done = subprocess.run(argv, capture_output=True, text=True, preexec_fn=world.die_with_parent, check=False)
        if done.returncode != 0:
            raise world.Broken(done.stdout + done.stderr)
        return done.stdout

    def cpu_s(self):
        """Its sessions are children that have ended by then."""
        with open(f"/proc/{self.child.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return super().cpu_s() + (int(fields[13]) + int(fields[14])) / world.TICKS


def pgbench(server, plan):
    """What the load generator says of the others."""
    script, log = os.path.join(server.place, "pair.sql"), os.path.join(server.place, "pgbench")
    with open(script, "w", encoding="ascii") as file:
        file.write(PGBENCH)
    for old in glob.glob(f"{log}.*"):
        os.remove(old)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = server.run([server.tool("pgbench"), *server.there(), "-n", "-c", "64", "-M", "prepared", "-l", "--log-prefix", log,
                       "-T", str(max(1, round(plan.measure_s))), "-f", script, "postgres"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(glob.glob(f"{log}.*")[0], encoding="ascii") as file:
        us = sorted(float(line.split()[2]) for line in file)
    times = {share: us[min(len(us) - 1, int(len(us) * part))] for share, part in (("p50", .5), ("p99", .99), ("p999", .999), ("max", 1))}
    return {"tasks_per_s": float(re.search(r"tps = ([\d.]+)", told)[1]), "tasks_all": len(us), "requests_all": 2 * len(us),
            "task_us": times, "request_us": {share: us / 2 for share, us in times.items()},
            "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def installed(root, peer):
    return glob.glob(peer.program) or (subprocess.run([os.path.join(root, "deploy/install-deps"), "named", peer.package],
                                                      check=False).returncode == 0 and glob.glob(peer.program))


@contextlib.contextmanager
def running(root, directory):
    """Those of them that can be had."""
    with contextlib.ExitStack() as ends:
        found = []
        for peer in (Etcd, Postgres, ZooKeeper):
            try:
                if not installed(root, peer):
                    raise world.Broken(f"{peer.package} cannot be installed")
                found.append(ends.enter_context(world.running(peer(directory))))
            except (world.Broken, OSError) as why:
                print(f"{peer.__name__}: not run: {why}", file=sys.stderr)
        yield found
