#!/usr/bin/python3
"""Everything works under deploy/redis.acl, nothing else is allowed by it, and it allows no more than is used."""

import atexit
import http.client
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import threading

from world import ROOT, Client, Contract, Daemon, Keys, PrivateRedis, RedisError, check, check_equal, check_in, main, \
    run_daemon, test, wait_until
from world.ports import own_port
from world.record import record_of
from world.redis import DURABLE, Connection
from world.sentinel import FAILOVER_S, Sentinel, replica_of
from world.wait import DEADLINE_S

FILE = ROOT / "deploy" / "redis.acl"
USERS = ("pawl", "pawl-operator")
NODES = ("pawl-replica", "pawl-sentinel")
DATABASE = 3  # another than 0, so that SELECT is needed
# What the link itself sends (shared/store/handshake.c, store/wire.c); AUTH needs no leave.
OF_THE_LINK = {"config|get", "info", "eval", "select"}
OF_THE_LIBRARY = {"fcall", "function|list", "function|load"}
# What the second connection of a lease service sends, on which it hears messages (shared/store/subscriber.c).
OF_THE_EAR = {"ping", "subscribe", "unsubscribe", "psubscribe", "punsubscribe"}
# What is sent while answers wait for more than one node (shared/store/keep.c).
OF_THE_SET = {"role", "wait"}
SENT = {"pawl": OF_THE_LINK | OF_THE_LIBRARY | OF_THE_EAR | OF_THE_SET, "pawl-operator": OF_THE_LINK}
# Of a lease's history, and of desks. The first is also a pattern that is subscribed to: Redis wants it literally.
CHANNELS = {"pawl": ["&pawl:e:*", "&pawl:{*"], "pawl-operator": []}
SCRIPTS = {"pawl": ("shared/member/**/*.lua", "lease/scripts/**/*.lua", "lease/quorum/scripts/**/*.lua", "gateway/scripts/**/*.lua"),
           "pawl-operator": ("api/cli/scripts/*.lua", "shared/member/scripts/lib/store.lua", "shared/member/scripts/lib/call.lua")}


def users():
    """{name: its rules}, of the file as it is shipped."""
    lines = [shlex.split(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    check(all(line[0] == "user" for line in lines), "a line that Redis would refuse")
    return {line[1]: line[2:] for line in lines}


def made_as_told(folder):
    """What docs/operations.md tells an operator to type, with folder instead of /etc/pawl and /etc/redis; the passwords."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "operations.md").read_text(encoding="utf-8"), re.S)
    [block] = [block for block in blocks if "deploy/redis.acl" in block]
    typed = block.replace("/etc/pawl", folder).replace("/etc/redis", folder)
    done = subprocess.run(["sh", "-e"], input=typed, cwd=ROOT, capture_output=True, text=True, check=False)
    check_equal((done.returncode, done.stdout, done.stderr), (0, "", ""), typed)
    check("/etc/" not in typed, "a path that this test does not know")
    return {user: pathlib.Path(folder, f"redis-{user}").read_text(encoding="utf-8").strip() for user in USERS + NODES}


# -- a Redis under the file, on a port

class GuardedRedis(PrivateRedis):
    """Its connection is an administrator's."""

    def __init__(self, folder, port, *more):
        self.own = [*DURABLE, "--port", str(port), "--bind", "127.0.0.1", "--aclfile", os.path.join(FOLDER, "users.acl"), *more]
        super().__init__(folder)

    def start(self, settings=None):
        super().start(self.own)
        self.connection = self.session("admin", "")

    def _answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"redis-server ended with {self.process.returncode}")
        try:
            connection = self.session("admin", "")
            pending = b"aof_rewrite_in_progress:1" in connection("INFO", "persistence")
            connection.close()
            return not pending
        except (OSError, RedisError):
            return False

    def session(self, user, password):
        connection = Connection(self.path)
        connection("AUTH", user, password)
        connection("SELECT", DATABASE)
        return connection


# -- everything of ours

FOLDER = tempfile.mkdtemp(prefix="pawl-acl-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
PASSWORDS = made_as_told(FOLDER)
NODES_PASSWORDS = {user: PASSWORDS.pop(user) for user in NODES}
with open(os.path.join(FOLDER, "users.acl"), "a", encoding="utf-8") as users_file:
    users_file.write("user admin on nopass ~* &* +@all\n")
PORT = own_port()  # a url of a socket cannot name a user
REDIS = GuardedRedis(FOLDER, PORT, "--enable-debug-command", "yes", "--enable-module-command", "yes")
REDIS_LOG = pathlib.Path(FOLDER, "redis.log")
atexit.register(REDIS.close)
KEYS_FILE = os.path.join(FOLDER, "keys")
Keys().write(KEYS_FILE)
CONTRACT = Contract()


def place(user):
    return ["--redis", f"redis://{user}@127.0.0.1:{PORT}/{DATABASE}",
            "--redis-password-file", os.path.join(FOLDER, f"redis-{user}")]


FLAGS = [*place("pawl"), "--keys", KEYS_FILE, "--listen", "127.0.0.1:0", "--remember", "1s"]
STATE = {"STATE_DIRECTORY": os.path.join(FOLDER, "state")}


def pawl_store(*words, user="pawl-operator"):
    """pawl store, by the operator."""
    return run_daemon("pawl", "store", *words, *place(user), environment=STATE)


WRONG = run_daemon("pawl-lease", *place("pawl-operator"), "--init-store", environment=STATE)
DONE = run_daemon("pawl-lease", *place("pawl"), "--init-store", environment=STATE)
check_equal((DONE.returncode, DONE.stderr), (0, ""))
DAEMONS = [Daemon("pawl-lease", *FLAGS, environment=STATE), Daemon("pawl-gateway", *FLAGS, environment={"STATE_DIRECTORY": ""})]
LEASE, GATEWAY = (Client(daemon.name.removeprefix("pawl-"), daemon.url, CONTRACT) for daemon in DAEMONS)


def is_ready():
    return all(client("GET", "/readyz").status == 200 for client in (LEASE, GATEWAY))


def acquire(name, **ask):
    answer = LEASE("POST", f"/v1/leases/{name}", body=ask)
    check_equal(answer.status, 201, repr(answer))
    return answer.json


def acquire_in_a_new_life(name, epoch):
    """A service notices a life that an operator began within a second."""
    def granted():
        answer = LEASE("POST", f"/v1/leases/{name}")
        return answer.status == 201 and answer.json["epoch"] > epoch and answer.json
    return wait_until(lambda: is_ready() and granted(), "a lease is granted in a new life")


def keys(pattern):
    return REDIS("KEYS", pattern)


def refusal(connection, *words):
    """What Redis says against it; "" when it was done."""
    try:
        connection(*words)
        return ""
    except RedisError as error:
        return str(error)


# -- it is enough

@test
def both_services_do_all_their_work_under_it():
    wait_until(is_ready, "both services are ready")
    grant = acquire("job", ttl_ms=600000, meta={"a": 1}, lease_id="i" * 22)
    holds, token = {"Lease-Id": grant["lease_id"]}, [("Fencing-Token", grant["fencing_token"])]
    check_equal(LEASE("POST", "/v1/leases/job", body={"lease_id": "i" * 22}).status, 200)
    check_equal(LEASE("PUT", "/v1/leases/job", holds).status, 200)
    check_equal([item["lease"] for item in LEASE("GET", "/v1/leases").json["items"]], ["job"])
    for method, target, status in (("PUT", "/v1/resources/job", 201), ("GET", "/v1/resources/job", 200),
                                   ("GET", "/v1/check/job", 200), ("GET", "/v1/marks/job", 200),
                                   ("DELETE", "/v1/resources/job", 204)):
        headers = [] if "marks" in target else token
        check_equal(GATEWAY(method, target, headers, b"x" if method == "PUT" else None).status, status, f"{method} {target}")
    check_equal(LEASE("DELETE", "/v1/leases/job", holds).status, 204)
    again = acquire("job")
    check(again["token"] > grant["token"], "a token came again")
    check_equal(GATEWAY("PUT", "/v1/resources/job", token, b"x").code, "stale-token")


@test
def they_share_wait_and_keep_sessions_under_it():
    readers = [acquire("shelf", mode="shared", lease_id=letter * 22, reentrant=True) for letter in "ab"]
    token = [("Fencing-Token", readers[0]["fencing_token"])]
    check_equal((GATEWAY("GET", "/v1/resources/shelf", token).status, GATEWAY("PUT", "/v1/resources/shelf", token, b"x").code),
                (404, "wrong-mode"))
    waiting = threading.Thread(target=lambda: readers.append(acquire("shelf", wait_ms=10000, lease_id="c" * 22)))
    waiting.start()
    wait_until(lambda: LEASE("GET", "/v1/leases/shelf").json["waiting"] == 1, "somebody waits")
    for reader in readers[:2]:
        check_equal(LEASE("DELETE", "/v1/leases/shelf", {"Lease-Id": reader["lease_id"]}).status, 204)
    waiting.join(DEADLINE_S)
    check_equal(readers[2]["mode"], "exclusive")
    check_equal(LEASE("POST", "/v1/leases/shelf/force-release", body={"reason": "test"}).json, {"released_token": readers[2]["token"]})
    session = LEASE("POST", "/v1/sessions", body={}).json
    secret = {"Session-Secret": session["session_secret"]}
    check_equal(LEASE("POST", "/v1/leases/seat", secret, {"session": session["session"], "permits": 2}).status, 201)
    check_equal(LEASE("POST", "/v1/leases", secret, {"names": ["one", "two"], "session": session["session"]}).status, 201)
    target = f"/v1/sessions/{session['session']}"
    check_equal([LEASE(method, target, secret).status for method in ("PUT", "GET", "DELETE")], [200, 200, 204])
    for state in ("held", "waiting", "delayed"):
        check_equal(LEASE("GET", f"/v1/leases?prefix=s&state={state}").json["items"], [], state)


@test
def they_tell_what_happens_to_those_who_listen_under_it():
    for i, target in enumerate(("/v1/events", "/v1/events?lease=watched1")):
        line = http.client.HTTPConnection(DAEMONS[0].host, DAEMONS[0].port, timeout=DEADLINE_S)
        line.request("GET", target, headers={"Accept": "application/x-ndjson"})
        stream = line.getresponse()
        check_equal(stream.status, 200, target)
        grant = acquire(f"watched{i}", ttl_ms=100)
        items = (json.loads(text) for text in stream if text.strip())
        item = next(item for item in items if item["lease"] == f"watched{i}")
        check_equal((item["type"], item["token"]), ("granted", grant["token"]), target)
        line.close()
    check_equal(LEASE("GET", "/v1/leases/watched1/history").json["items"][0]["type"], "granted")


@test
def the_sweeps_end_and_forget_under_it():
    acquire("short", ttl_ms=100)
    wait_until(lambda: not record_of(REDIS, "short") and not keys("pawl:*:r:job"), "the hold and the deletion are forgotten")
    check_equal([key for key in keys("pawl:*:due") if b"short" in REDIS("ZRANGE", key, 0, -1)], [], "done by half")
    check_equal(keys("pawl:*:gone"), [], "done by half")


@test
def a_restarted_redis_is_admitted_under_it_and_a_hold_survives():
    grant = acquire("kept", ttl_ms=600000)
    REDIS.kill()
    wait_until(lambda: not is_ready(), "readyz fails")
    REDIS.start()
    wait_until(is_ready, "both services are ready")
    token = [("Fencing-Token", grant["fencing_token"])]
    check_equal(GATEWAY("PUT", "/v1/resources/kept", token, b"x").status, 201)
    check(acquire("next")["epoch"] > grant["epoch"], "the epoch did not rise")


@test
def services_come_and_leave_under_it():
    second = Daemon("pawl-lease", *FLAGS, environment={"STATE_DIRECTORY": os.path.join(FOLDER, "second")})
    client = Client("lease", second.url, CONTRACT)
    wait_until(lambda: client("GET", "/readyz").status == 200, "the newcomer is let in")
    check_equal(len(REDIS("SMEMBERS", "pawl:{store}:members")), 3)
    check_equal(second.end(), 0)
    check_equal(len(REDIS("SMEMBERS", "pawl:{store}:members")), 2, "it did not leave")


@test
def a_store_is_not_made_halfway_by_one_who_may_not_make_it():
    check_equal(WRONG.returncode, 78, WRONG.stderr)
    check_in("may not SADD; nothing was created", WRONG.stderr)
    check_equal(DONE.returncode, 0, "after that, in the same directory")


@test
def an_operator_looks_forgets_and_recovers_under_it():
    told = pawl_store("status", "-o", "json")
    check_equal((told.returncode, told.stderr), (0, ""), told.stdout)
    check_equal(json.loads(told.stdout)["state"], "admitted")
    gone = Daemon("pawl-gateway", *FLAGS, environment={"STATE_DIRECTORY": ""})
    client = Client("gateway", gone.url, CONTRACT)
    wait_until(lambda: client("GET", "/readyz").status == 200, "the gateway is let in")
    gone.kill()
    [lost] = [member["id"] for member in json.loads(pawl_store("status", "-o", "json").stdout)["members"]
              if f" {gone.process.pid} " in member["who"]]
    REDIS("HSET", f"pawl:{{store}}:m:{lost}", "at", 0)  # as if that were long ago
    done = pawl_store("forget", lost)
    check_equal((done.returncode, done.stderr), (0, ""))
    first = acquire_in_a_new_life("first", 0)  # forgetting begins a new epoch
    REDIS("FLUSHALL")
    done = pawl_store("recover")
    check_equal((done.returncode, done.stderr), (0, ""), done.stdout)
    second = acquire_in_a_new_life("second", first["epoch"])
    check(second["token"] > first["token"], "a token came again")
    done = pawl_store("recover", "--floor", "50000000", "--force", "--yes")
    check_equal((done.returncode, done.stderr), (0, ""), done.stdout)
    third = acquire_in_a_new_life("third", second["epoch"])
    check(third["token"] > 50000000, "it does not go on above the floor")


@test
def redis_has_refused_nothing_so_far():
    check_equal(REDIS("ACL", "LOG"), [])


@test
def a_services_user_who_looks_at_the_store_is_told_of_the_operators():
    told = pawl_store("status", user="pawl")
    check_equal((told.returncode, told.stdout), (69, ""), told.stderr)
    check_in("SCAN", told.stderr)
    check_in("pawl-operator", told.stderr)
    check("pawl store status" not in told.stderr, told.stderr)


def is_primary(redis):
    try:
        return redis.session("admin", "")("ROLE")[0] == b"master"
    except OSError:  # a sentinel ends the connections to the node that it promotes, this one with them
        return False


@test
def replicas_copy_and_sentinels_promote_under_it():
    copying = ["--masteruser", NODES[0], "--masterauth", NODES_PASSWORDS[NODES[0]], "--repl-diskless-sync-delay", "0"]
    ports = [own_port(), own_port()]
    folders = [tempfile.mkdtemp(dir=FOLDER) for _ in ports]
    primary = GuardedRedis(folders[0], ports[0], *copying)
    replica = GuardedRedis(folders[1], ports[1], *copying, *replica_of(ports[0]))
    wait_until(lambda: b"master_link_status:up" in replica("INFO", "replication"), "the replica copies")
    sentinel = Sentinel(FOLDER, ports[0], f"sentinel auth-user main {NODES[1]}", f"sentinel auth-pass main {NODES_PASSWORDS[NODES[1]]}")
    wait_until(lambda: b"cmdstat_publish" in replica("INFO", "commandstats"), "the sentinel greets others at the replica")
    primary.kill()
    wait_until(lambda: is_primary(replica), "the replica is promoted", FAILOVER_S)
    check_equal(replica.session("admin", "")("ACL", "LOG"), [])
    for user in NODES:
        check_in(b"no permissions", replica.session("admin", "")("ACL", "DRYRUN", user, "HGET", "pawl:{00}", "id"), user)
    sentinel.kill()
    replica.close()
    primary.close()


# -- and it allows nothing more

FORBIDDEN = """
flushall|flushdb|swapdb 0 1|debug sleep 0|shutdown nosave|save|bgsave|bgrewriteaof|keys *|module list|monitor
config set maxmemory-policy allkeys-lru|config rewrite|config resetstat|replicaof no one|slaveof no one|failover|lastsave
replconf capa eof|psync ? -1|sync|acl whoami|acl setuser pawl +@all|acl list|acl load|client kill 1.2.3.4:5|client pause 1
rename KEY pawl:x|renamenx KEY pawl:x|copy KEY pawl:x|move KEY 0|migrate 127.0.0.1 1 KEY 0 9|dump KEY|unlink KEY|sort KEY
restore pawl:x 0 x|expire KEY 1|pexpire KEY 1|expireat KEY 1|pexpireat KEY 1|getex pawl:x px 1|setex pawl:x 1 x|set pawl:x 1
psetex pawl:x 1 x|getdel pawl:x|getset pawl:x 1|incr pawl:x|append pawl:x 1|hsetnx KEY a 1|hincrbyfloat KEY seq 1|lpush pawl:x 1
script flush|script kill|script exists 0|script load x|evalsha x 0|function flush|function delete x|function dump|function restore x|function kill
fcall_ro f 0|eval_ro return(1) 0|object encoding KEY
subscribe pawl:x|subscribe others|psubscribe *|psubscribe pawl:*|publish pawl:x 1|publish others 1|lrem pawl:x 0 1|xadd pawl:x * a 1|multi|watch KEY|latency reset|slowlog reset|memory usage KEY
command count|cluster info|randomkey|dbsize
"""
OF_SERVICES_ONLY = {"hincrby KEY seq 1", "hdel KEY id", "zadd pawl:x 1 a", "sadd pawl:x a", "zcount pawl:x 0 1",
                    "rpush pawl:x 1", "ltrim pawl:x 0 1", "publish pawl:e:x 1", "subscribe pawl:e:x", "psubscribe pawl:e:*", "ping",
                    "fcall f 0", "function list", "function load x", "role", "wait 0 1"}
OF_OPERATORS_ONLY = {"scan 0", "type KEY"}


def forbidden_to(user):
    common = set(FORBIDDEN.replace("\n", "|").strip("|").split("|"))
    return sorted(common | (OF_OPERATORS_ONLY if user == "pawl" else OF_SERVICES_ONLY))


def with_key(command):
    return [word.replace("KEY", "pawl:{store}") for word in command.split(" ")]


@test
def whatever_is_not_needed_is_refused_one_by_one():
    wait_until(is_ready, "the services are used to the new life")
    stripe = lambda: REDIS("HMGET", "pawl:{00}", "life", "counter")  # noqa: E731  a desk may raise seq
    before = stripe()
    for user, password in PASSWORDS.items():
        session = REDIS.session(user, password)
        for command in forbidden_to(user):
            check_in("NOPERM", refusal(session, *with_key(command)), f"{user}: {command}")
    check_equal(stripe(), before)
    wait_until(is_ready, "the services go on as if nothing had been")


@test
def a_script_may_no_more_than_its_user():
    wait_until(is_ready, "the services are ready")
    for user, password in PASSWORDS.items():
        session = REDIS.session(user, password)
        check_equal(session("EVAL", "return redis.call('HGET', KEYS[1], 'life')", 1, "pawl:{00}")[:3], b"11:")
        for words in ("'FLUSHALL'", "'FLUSHDB'", "'SWAPDB', 0, 1", "'RENAME', 'pawl:{00}', 'pawl:x'", "'EXPIRE', 'pawl:{00}', 1",
                      "'SET', 'pawl:x', 1", "'KEYS', '*'", "'CONFIG', 'SET', 'appendonly', 'no'", "'REPLICAOF', 'NO', 'ONE'"):
            said = refusal(session, "EVAL", f"return redis.call({words})", 0)
            check(re.search("can't run this command|has no permissions to run|not allowed from script", said), f"{user}: {words}: {said}")
    wait_until(is_ready, "the services go on as if nothing had been")


@test
def a_key_of_others_cannot_be_touched():
    REDIS("HSET", "others", "a", 1)
    for user, password in PASSWORDS.items():
        session = REDIS.session(user, password)
        for words in (("HGET", "others", "a"), ("HSET", "others", "a", 2), ("DEL", "others"), ("DEL", "pawl:x", "others"),
                      ("EXISTS", "others"), ("PERSIST", "others"), ("EVAL", "return 1", 1, "others")):
            check_in("NOPERM", refusal(session, *words), f"{user}: {words}")
        said = refusal(session, "EVAL", "return redis.call('DEL', 'others')", 0)
        check(re.search("can't access at least one of the keys|No permissions to access a key", said), f"{user}: {said}")
    check_equal(REDIS("HGETALL", "others"), [b"a", b"1"])
    REDIS("DEL", "others")


@test
def nobody_comes_in_without_a_name_or_with_the_passwords_as_shipped():
    check_in("NOAUTH", refusal(Connection(REDIS.path), "HGET", "pawl:{00}", "id"))
    for user in USERS + NODES:
        check_equal(users()[user][:2], ["on", "#" + "0" * 64])
        for password in ("", "0" * 64, "#" + "0" * 64):
            check_in("WRONGPASS", refusal(REDIS, "AUTH", user, password), user)


@test
def the_default_user_is_off_but_may_all_or_redis_would_drop_transactions_from_its_file():
    # Redis 7.0 reads its append-only file as the user "default", and looks at EXEC whether that one may (multi.c).
    check_equal(users()["default"], ["off", "~*", "&*", "+@all"])
    check(not [line for line in REDIS_LOG.read_text(encoding="utf-8").splitlines() if "AOF-loading-client" in line],
          "Redis has dropped something from its file")


# -- it allows what is used, no more and no less

def used_by_scripts(user):
    """The commands in the operations that it calls, and in what these share."""
    found = set()
    for path in sorted(path for pattern in SCRIPTS[user] for path in ROOT.glob(pattern)):
        calls = re.findall(r"redis\.p?call\b(.{0,40})", path.read_text(encoding="utf-8"))
        named = [re.match(r"\('([A-Za-z]+)'", call) for call in calls]
        check(all(named), f"{path}: a command that is not named where it is called: {calls}")
        found |= {match.group(1).lower() for match in named}
    check(len(found) > 10, found)
    return found


@test
def the_commands_of_the_file_are_exactly_those_that_are_used():
    for user in USERS:
        allowed = {rule.lstrip("(+") for rule in users()[user] if rule.startswith(("+", "(+"))}  # (: for some keys only
        check_equal(sorted(allowed), sorted(SENT[user] | used_by_scripts(user)), user)


def allowed_by(words):
    """The commands that these rules allow, one after the other; Redis tells some of ours as a category without others."""
    allowed = set()
    for word in words:
        names = {word[1:]}
        if word.startswith("@", 1):
            names = {name.decode() for name in REDIS("ACL", "CAT", word[2:])} if word != "-@all" else set(allowed)
        allowed = allowed | names if word[0] == "+" else allowed - names
    return allowed


@test
def redis_understands_the_file_as_it_is_meant():
    for user in USERS:
        rules = users()[user]
        told = REDIS("ACL", "GETUSER", user)
        told = {key.decode(): value for key, value in zip(told[::2], told[1::2])}
        check_equal((told["keys"], told["channels"].decode().split()), (b"~pawl:*", CHANNELS[user]), user)
        given = allowed_by(told["commands"].decode().split())
        check_equal(sorted(given), sorted(rule[1:] for rule in rules if rule.startswith("+")), user)
        check("-@all" in rules and "resetchannels" in rules, user)


@test
def the_settings_of_the_packages_are_let_in_when_they_are_changed_as_told():
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    told = json.loads("{" + re.search(r'in `/etc/pawl/lease.conf` and `/etc/pawl/gateway.conf`, `("redis": "[^`]*")`', text).group(1) + "}")
    for name in ("lease", "gateway"):
        as_shipped = json.loads((ROOT / "deploy" / "systemd" / f"{name}.conf").read_text(encoding="utf-8"))
        check_equal({"listen", *told}, set(as_shipped))
        settings = {**as_shipped, **told, "listen": "127.0.0.1:0"}
        check_in("127.0.0.1:6379", settings["redis"])
        settings["redis"] = settings["redis"].replace(":6379", f":{PORT}/{DATABASE}")
        path = pathlib.Path(FOLDER, f"{name}.conf")
        path.write_text(json.dumps(settings), encoding="utf-8")
        daemon = Daemon(f"pawl-{name}", "--config", str(path), environment={  # as the unit says it
            "STATE_DIRECTORY": os.path.join(FOLDER, f"unit-{name}"), "PAWL_KEYS": KEYS_FILE,
            "PAWL_REDIS_PASSWORD_FILE": os.path.join(FOLDER, "redis-pawl")})
        client = Client(name, daemon.url, CONTRACT)
        wait_until(lambda client=client: client("GET", "/readyz").status == 200, f"pawl-{name} is let in")
        check_equal(daemon.end(), 0)


@test
def a_right_that_is_taken_away_while_they_run_is_named_by_readyz():
    for taken, given, refused, says in ((["resetchannels"], CHANNELS["pawl"], "store-subscriber", "NOPERM"), (["-hset"], ["+hset"], "store-refused", "ACL LOG")):
        wait_until(is_ready, "both services are ready")
        REDIS("ACL", "SETUSER", "pawl", *taken)
        wait_until(lambda refused=refused, says=says: (ready := LEASE("GET", "/readyz").json).get("check") == refused and says in ready["detail"],
                   f"it says {refused} and {says}")
        REDIS("ACL", "SETUSER", "pawl", *given)
    wait_until(is_ready, "both services are ready again")


@test
def every_daemon_ended_cleanly_under_it():
    for daemon in DAEMONS:
        check_equal(daemon.end(), 0, daemon.log()[-2000:])


main(REDIS.close)
