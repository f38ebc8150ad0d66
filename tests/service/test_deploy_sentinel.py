#!/usr/bin/python3
"""deploy/compose-sentinel.yaml, kubernetes/redis-sentinel.yaml and redis/node: each process is started as the file says, in a network
where its name is an address of its own, and goes on when the first primary is killed. No container runtime is run."""

import fcntl
import os
import pathlib
import subprocess
import sys
import tempfile

import yaml

from world import BUILD, ROOT, Client, Contract, Keys, check, check_equal, check_in, die_with_parent, main, test, wait_until

DEPLOY, APART, PATIENCE_S, AGAIN_MS = ROOT / "deploy", "PAWL_TEST_APART", 40, 100
IN_IT = "ip link set lo up && mount --bind \"$0\" /etc/hosts && exec \"$@\""


class Site:
    """{name: command, environment, whose state it has}; a name's state outlives its process. A name with "/sentinel" shares the other's address."""

    def __init__(self, services, net):
        self.folder, self.services, self.running = pathlib.Path(tempfile.mkdtemp()), services, {}
        Keys().write(str(self.folder / "keys"))
        self.addresses = {name: f"127.0.{net}.{number}" for number, name in enumerate(services, 1)}
        self.addresses.update({name: self.addresses[name.removesuffix("/sentinel")] for name in services})
        with open("/etc/hosts", "r+", encoding="ascii") as hosts:
            fcntl.flock(hosts, fcntl.LOCK_EX)
            others = [line for line in hosts if line.split()[1] not in services]
            hosts.seek(0)
            hosts.truncate()
            hosts.writelines([*others, *(f"{address} {name}\n" for name, address in {**self.addresses, "localhost": "127.0.0.1"}.items())])

    def place(self, name):
        return self.folder / (self.services[name][2:] or [name])[0]

    def start(self, name):
        command, environment = self.services[name][:2]
        own = self.place(name)
        own.mkdir(parents=True, exist_ok=True)
        here = {"/etc/redis/node": str(DEPLOY / "redis/node"), "pawl-lease": f"{BUILD}/pawl-lease", "pawl-gateway": f"{BUILD}/pawl-gateway"}
        moved = {"PAWL_KEYS": str(self.folder / "keys"), "PAWL_STATE_DIR": str(own), "PAWL_LISTEN": f"{self.addresses[name]}:8700"}
        variables = {**{one: moved.get(one, value) for one, value in environment.items()}, "PATH": os.environ["PATH"],
                     "DATA": str(own), "SETTINGS": str(DEPLOY / "redis"), "MORE": f"bind {self.addresses[name]}\n"}
        with open(own / "log", "ab") as log:
            process = self.running[name] = subprocess.Popen([here.get(word, word) for word in command], env=variables, stdout=log,
                                                            stderr=log, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        return process

    def client(self, name):
        return Client(name.split("-")[-2], f"http://{self.addresses[name]}:8700", Contract())

    def ask(self, name, port, *words):
        return subprocess.run(["redis-cli", "-h", self.addresses[name], "-p", port, *words], capture_output=True, check=False).stdout

    def said(self, name):
        return (self.place(name) / "log").read_text(encoding="utf-8")[-1500:]

    def close(self):
        for process in self.running.values():
            process.kill()
            process.wait()


def survives(site, nodes, leases, gateways):
    """The first primary is killed: who held goes on. False: on a busy machine a node had just been taken out, and was promoted."""
    lease, gateway = site.client(leases[-1]), site.client(gateways[-1])
    wait_until(lambda: {len(one.ready().get("kept", ())) for one in (lease, gateway)} == {3}, "all may take over",
               PATIENCE_S, AGAIN_MS)
    wait_until(lambda: lease("GET", "/readyz").json.get("registrars") == {"heard": 3, "of": 3}, "all registrars are heard", PATIENCE_S, AGAIN_MS)
    grant = lease("POST", "/v1/leases/orders:42", body={"ttl_ms": 600000}).json
    token = {"Fencing-Token": grant["fencing_token"]}
    check_in(gateway("PUT", "/v1/resources/orders:42", token, b"before").status, (201, 204))
    site.running[nodes[0]].kill()
    site.running[nodes[0]].wait()
    after = wait_until(lambda: (lambda answer: answer if answer.status in (201, 204) or answer.code == "store-behind" else None)(
        gateway("PUT", "/v1/resources/orders:42", token, b"after")), "who held goes on", PATIENCE_S, AGAIN_MS)
    if after.code == "store-behind":
        return False
    wait_until(lambda: lease("PUT", "/v1/leases/orders:42", {"Lease-Id": grant["lease_id"]}, {"ttl_ms": 600000}).status == 200,
               "and renews", PATIENCE_S, AGAIN_MS)
    check_equal(lease("DELETE", "/v1/leases/orders:42", {"Lease-Id": grant["lease_id"]}).status, 204)
    check_equal(gateway("PUT", "/v1/resources/orders:42", token, b"late").code, "lease-expired")
    return True


def plays(services, net, nodes, sentinels, leases, gateways, init):
    check(any(play(Site(services, net + more), nodes, sentinels, leases, gateways, init) for more in (0, 1)), "twice a node was promoted that is behind")


def play(site, nodes, sentinels, leases, gateways, init):
    for names, port in ((nodes, "6379"), (sentinels, "26379")):
        for name in names:
            site.start(name)
        wait_until(lambda names=names, port=port: all(site.ask(name, port, "PING") == b"PONG\n" for name in names), f"{names} answer")
    check_equal(site.start(init).wait(), 0, site.said(init))
    for name in (*leases, *gateways):
        site.start(name)
    wait_until(lambda: all(site.ask(name, "26379", "SENTINEL", "REPLICAS", "pawl").count(b"runid") == 2 for name in sentinels),
               "the sentinels know of both replicas: they ask every 10 s", PATIENCE_S, AGAIN_MS)
    survived = survives(site, nodes, leases, gateways)
    site.close()
    return survived


@test
def compose_goes_on_with_another_redis():
    one, more = (yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))["services"] for name in ("compose.yaml", "compose-sentinel.yaml"))
    services = {}
    for name in {**one, **more}:
        both = [file.get(name, {}) for file in (one, more)]
        services[name] = (both[1].get("command") or both[0]["command"],
                          {key: value for each in both for key, value in each.get("environment", {}).items()})
    init = next(line.split("run --rm ")[1].split("#")[0].split() for line in
                (DEPLOY / "compose-sentinel.yaml").read_text(encoding="utf-8").splitlines() if "--init-store" in line)
    services["init"] = (init[1:], services[init[0]][1], init[0])
    plays(services, 1, ["redis", "redis-2", "redis-3"], [f"sentinel-{number}" for number in (1, 2, 3)],
          [f"lease-{number}" for number in (1, 2, 3)], ["gateway-1", "gateway-2"], "init")


def pods(name, documents):
    """{name: command, environment} of the containers of a workload."""
    spec = next(one["spec"] for one in documents if one["metadata"]["name"] == name and "template" in one["spec"])
    for number in range(spec.get("replicas", 1)):
        pod = f"{name}-{number}"
        for container in spec["template"]["spec"]["containers"]:
            own = f"{pod}.{name}" if name == "pawl-redis" else pod
            command = [word.replace("$(POD)", pod) for word in container.get("command", []) + container.get("args", [])]
            yield (f"{own}/sentinel" if container["name"] == "sentinel" else own,
                   (command, {one["name"]: one.get("value", pod) for one in container["env"]}))


@test
def kubernetes_goes_on_with_another_redis():
    nodes = DEPLOY / "kubernetes" / "redis-sentinel.yaml"
    lines = [line[1:] for line in nodes.read_text(encoding="utf-8").splitlines() if line.startswith("#   ")]
    shell = "kubectl() { [ \"$1$3\" != apply- ] || { cat; echo ---; }; }\n" + "\n".join(lines)
    done = subprocess.run(["sh", "-euc", shell], cwd=ROOT, capture_output=True, text=True, check=True)
    documents = [*yaml.safe_load_all(nodes.read_text(encoding="utf-8")), *(one for one in yaml.safe_load_all(done.stdout) if one)]
    named = {name: dict(pods(name, documents)) for name in ("pawl-redis", "pawl-lease", "pawl-gateway", "pawl-init-store")}
    services = {name: pod for each in named.values() for name, pod in each.items()}
    services["init"] = (*services.pop("pawl-init-store-0"), "pawl-lease-0")
    check_equal([len(each) for each in named.values()], [6, 3, 2, 1])
    redis = [name for name in named["pawl-redis"] if "/" not in name]
    plays(services, 3, redis, [f"{name}/sentinel" for name in redis], list(named["pawl-lease"]), list(named["pawl-gateway"]), "init")


@test
def the_first_node_without_its_volume_is_the_replica_of_who_has_the_store():
    names = ["first", "second", "third"]
    site = Site({name: (["sh", "/etc/redis/node", "redis", name, *names], {}) for name in names}, 5)
    ask = lambda name, *words: site.ask(name, "6379", *words)  # noqa: E731
    for name in names:
        site.start(name)
    wait_until(lambda: ask("first", "SET", "pawl:{store}", "1") == b"OK\n", "it begins when all say that they are empty", PATIENCE_S, AGAIN_MS)
    wait_until(lambda: all(ask(name, "GET", "pawl:{store}") == b"1\n" for name in names), "they copy it", PATIENCE_S, AGAIN_MS)
    site.running["first"].kill()
    site.running["first"].wait()
    site.place("first").rename(site.folder / "lost")
    site.start("first")
    wait_until(lambda: site.said("first").count("waits until another node is primary") > 1, "it waits", PATIENCE_S, AGAIN_MS)
    check_equal([ask(name, "GET", "pawl:{store}") for name in names[1:]], [b"1\n"] * 2)
    check_equal([ask("second", "REPLICAOF", "NO", "ONE"), ask("third", "REPLICAOF", "second", "6379")], [b"OK\n"] * 2)
    wait_until(lambda: ask("first", "GET", "pawl:{store}") == b"1\n", "it copies, too", PATIENCE_S, AGAIN_MS)
    check_in(b"slave", ask("first", "ROLE"))
    priority = lambda name: ask(name, "CONFIG", "GET", "replica-priority").split()  # noqa: E731
    wait_until(lambda: priority("third") == [b"replica-priority", b"100"], "who has copied a primary may be promoted", PATIENCE_S, AGAIN_MS)
    for name in names:
        site.running[name].kill()
        site.running[name].wait()
    site.start("third")
    wait_until(lambda: priority("third") == [b"replica-priority", b"0"], "who is up first may not", PATIENCE_S, AGAIN_MS)
    site.close()


if APART not in os.environ:
    with tempfile.NamedTemporaryFile() as names:
        os.environ[APART] = "1"
        sys.exit(subprocess.run(["unshare", "--net", "--mount", "sh", "-c", IN_IT, names.name, *sys.orig_argv], check=False).returncode)
main(parts=2)
