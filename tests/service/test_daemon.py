#!/usr/bin/python3
"""How the daemons are started, told, asked and ended: flags, environment, file, keys, signals, log, metrics."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from world import BUILD, ROOT, Client, Daemon, Keys, PrivateRedis, World, check, check_equal, check_in, main, of_time, read_token, \
    run_daemon, test, test_in, wait_until
from world.certificate import certificate
from world.client import Closed
from world.ports import own_port
from world.process import die_with_parent
from world.record import record_of
from world.shim import preloaded
from world.waiting import Waiter

WORLD = World()
BOTH = ("pawl-lease", "pawl-gateway")
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
CONFIG, UNREACHABLE = 78, 69


def file_with(text, name="file"):
    path = os.path.join(WORLD.folder, f"{name}-{time.monotonic_ns()}")
    with open(path, "w", encoding="utf-8") as file:
        os.chmod(path, 0o600)
        file.write(text)
    return path


def check_config(name, *flags, environment=None):
    return run_daemon(name, "--keys", WORLD.keys_file, "--check-config", *flags, environment=environment)


def fails(done, status, *said):
    check_equal(done.returncode, status, f"{done.args} {done.stderr}")
    for part in said:
        check_in(part, done.stderr)
    check_equal(done.stdout, "")
    check(done.stderr.count("\n") == 1, f"not one sentence: {done.stderr!r}")


def passes(done):
    check_equal((done.returncode, done.stderr), (0, ""), repr(done))


@test
def who_may_not_open_what_its_threads_need_does_not_start():
    for name in BOTH:
        fails(run_daemon(name, *WORLD.flags, "--threads", "2", before=["prlimit", "--nofile=26:26", "--"]), CONFIG, "26 descriptors", "needs 44")


# -- what it is

@test
def version_is_told_by_the_flag_and_by_the_page():
    for name, client in zip(BOTH, (WORLD.lease, WORLD.gateway)):
        done = run_daemon(name, "--version")
        check_equal((done.returncode, done.stdout.strip()), (0, f"{name} {VERSION}"))
        check_equal(client("GET", "/version").json, {"name": name, "version": VERSION})


@test
def check_config_checks_and_exits_and_variables_of_the_other_programs_are_no_error():
    others = {"PAWL_LEASE_URL": "x", "PAWL_GATEWAY_URL": "x", "PAWL_LEASE_ID": "x", "PAWL_FENCING_TOKEN": "x", "PAWL_TOKEN": "1",
              "PAWL_LEASE": "a"}
    for name in BOTH:
        done = check_config(name)
        check_equal((done.returncode, done.stderr), (0, ""))
        check_in("good", done.stdout)
        fails(check_config(name, "--threads", "0"), CONFIG, "threads")
        passes(check_config(name, environment=others))


# -- where settings come from

@test
def a_value_that_does_not_fit_is_an_error_that_names_the_flag():
    table = [("listen", ["", "x", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:80a", ":8700", "localhost"]),
             ("threads", ["0", "65", "x", "", "1.5", "-1"]), ("store-timeout", ["9ms", "61s", "x", "-1s", "1 s", ""]),
             ("remember", ["999ms", "2d", "x"]), ("log-format", ["xml", ""]), ("log-level", ["loud", "DEBUG"]),
             ("max-connections", ["0", "x"]), ("redis", ["http://x", "redis://", "unix://", "x", "redis://h:99999", ""]),
             ("max-body-memory", ["1", "x", "-5"]), ("header-max", ["1023", "33KiB", "x"])]
    for flag, values in table:
        for value in values:
            done = check_config("pawl-lease", "--" + flag, value)
            check_equal(done.returncode, CONFIG, f"--{flag} {value!r}: {done}")
            check_in(flag if flag != "redis" else "", done.stderr, f"--{flag} {value!r}")
    for flag, value in (("store-timeout", "250ms"), ("store-timeout", "2500"), ("remember", "10m"), ("remember", "1d"),
                        ("max-body-memory", "64KiB"), ("header-max", "1KiB"), ("redis", "redis://localhost:6379/3"), ("listen", "[::1]:0")):
        passes(check_config("pawl-lease", "--" + flag, value))


# -- secrets, and who may come

@test
def beyond_loopback_it_must_be_told_that_anybody_may_come():
    for name in BOTH:
        for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:80"):
            fails(check_config(name, "--listen", address), CONFIG, "--allow-anonymous")
            passes(check_config(name, "--listen", address, "--allow-anonymous"))
        for address in ("127.0.0.1:0", "127.9.9.9:0", "[::1]:0"):
            passes(check_config(name, "--listen", address))


@test
def beyond_loopback_an_access_token_is_not_taken_in_plain_text_unless_that_is_meant():
    access = ("--access", file_with('{"identities": {"me": {"uids": [1]}}, "rules": [{"who": ["me"], "may": ["observe"]}]}'))
    pair = [word for flag, path in zip(("--tls-cert", "--tls-key"), certificate(WORLD.folder, "beyond", "IP:192.0.2.1")) for word in (flag, path)]
    for name in BOTH:
        for flag in ("--listen", "--ui-listen"):
            fails(check_config(name, flag, "192.0.2.1:80", *access), CONFIG, flag, "--tls-cert", "--allow-plaintext")
            passes(check_config(name, flag, "192.0.2.1:80", *access, *pair))
            passes(check_config(name, flag, "192.0.2.1:80", *access, "--allow-plaintext"))
        fails(check_config(name, "--listen", "192.0.2.1:80", *pair), CONFIG, "--access")
        fails(check_config(name, "--listen", "192.0.2.1:80", "--allow-plaintext"), CONFIG, "--access")


# -- listening

@test
def port_0_is_one_that_the_kernel_picks_and_a_taken_one_is_an_error():
    check(WORLD.lease_daemon.port != WORLD.gateway_daemon.port, "the same port")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for address, why in ((f"127.0.0.1:{taken.getsockname()[1]}", "in use"), ("192.0.2.1:80", "does not have")):
            flags = [flag if flag != "127.0.0.1:0" else address for flag in WORLD.flags]
            fails(run_daemon("pawl-lease", *flags, "--allow-anonymous"), UNREACHABLE, address, why)
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(path := os.path.join(WORLD.folder, "taken.sock"))
        taken.listen()
        fails(run_daemon("pawl-lease", *WORLD.flags, "--listen-unix", path), UNREACHABLE, path, "in use")


@test
def ipv6_threads_and_the_documented_way_to_wait_work():
    flags = [flag if flag != "127.0.0.1:0" else "[::1]:0" for flag in WORLD.flags]
    six = Daemon("pawl-lease", *flags, "--threads", "4", "--suspend-always")
    # It has said that it listens: then every thread can do its work, whichever gets the connection.
    for _ in range(20):
        client = Client("lease", six.url, World.contract)
        answer = client("POST", f"/v1/leases/{WORLD.name()}")
        check_equal(answer.status, 201, repr(answer))
    check_equal(six.end(), 0)


@test
def what_it_inherits_from_a_parent_that_closes_streams_and_blocks_signals_is_made_good():
    """What is logged would go to what takes the place of a stream: to a socket, or into a file."""
    def block():
        die_with_parent()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
    port = own_port()
    flags = [flag if flag != "127.0.0.1:0" else f"127.0.0.1:{port}" for flag in WORLD.flags]
    process = subprocess.Popen(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", BUILD / "pawl-gateway", *flags], preexec_fn=block)
    client = Client("gateway", f"http://127.0.0.1:{port}", World.contract)
    wait_until(lambda: not socket.socket().connect_ex(("127.0.0.1", port)) and client.is_ready(), "it serves")
    check_equal([os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)], [os.devnull] * 3)
    process.terminate()
    check_equal(process.wait(20), 0)


# -- the end

@test
@of_time
def sigterm_and_sigint_end_it_with_0_and_holds_stay():
    for name in BOTH:
        for number in (signal.SIGTERM, signal.SIGINT):
            daemon = Daemon(name, *WORLD.flags)
            client = WORLD.client(daemon)
            if name == "pawl-lease":
                lease = WORLD.name()
                grant = WORLD.acquire(lease, client=client)
            check_equal(client("GET", "/readyz").status, 200)
            begun = time.monotonic()
            check_equal(daemon.end(number), 0)
            check(time.monotonic() - begun < 5, f"it took {time.monotonic() - begun} s")
            if name == "pawl-lease":
                check_equal(WORLD.look(lease)["token"], grant["token"])
                check_equal(WORLD.lease("PUT", f"/v1/leases/{lease}", {"Lease-Id": grant["lease_id"]}).status, 200)


@test
def who_is_asked_to_end_while_it_looks_at_the_store_leaves_it_and_a_hangup_ends_nobody():
    """A newcomer looks for as long as nobody lets it in: the one that could stands still."""
    world = World()
    members = lambda: {one.decode() for one in world.redis("SMEMBERS", "pawl:{store}:members")}  # noqa: E731
    before = members()
    world.lease_daemon.send(signal.SIGSTOP)
    for number in (signal.SIGTERM, signal.SIGINT):
        with subprocess.Popen([str(BUILD / "pawl-lease"), *world.flags, "--store-timeout", "60s", "--state-dir", os.path.join(world.folder, str(number))],
                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent) as newcomer:
            wait_until(lambda: members() > before, "it stands in the list")
            newcomer.send_signal(signal.SIGHUP)
            newcomer.send_signal(number)
            check_equal(newcomer.wait(30), 0)
        check_equal(members(), before)
    world.lease_daemon.send(signal.SIGCONT)
    world.close()


@test
def a_hangup_in_its_first_moment_ends_nobody():
    def block():
        die_with_parent()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # so that it comes when the daemon wants it
    for name in BOTH:
        with subprocess.Popen([str(BUILD / name), *WORLD.flags, "--state-dir", os.path.join(WORLD.folder, f"{name}.state")], stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, preexec_fn=block) as daemon:
            daemon.send_signal(signal.SIGHUP)
            wait_until(lambda daemon=daemon: b"listening on" in daemon.stderr.readline() or daemon.poll() is not None, "it serves")
            daemon.terminate()
            check_equal(daemon.wait(20), 0)


RESOLVER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(host, "slow.example") == 0 && (hints->ai_flags & AI_NUMERICHOST) == 0) {
        poll(NULL, 0, 60000);
        return EAI_AGAIN;
    }
    return next(host, port, hints, list);
}
"""


@test
def a_resolver_that_does_not_answer_does_not_hold_up_the_end():
    environment = preloaded(RESOLVER)
    for name in BOTH:
        daemon = Daemon(name, *WORLD.flags[2:], "--redis", "redis://slow.example", "--store-timeout", "1s", "--threads", "3", environment=environment)
        client = WORLD.client(daemon)
        wait_until(lambda: b"its name is not found" in client("GET", "/readyz").body, "it looks for its Redis", 30)  # noqa: B023
        check_equal(daemon.end(deadline_s=30), 0)


@test
@of_time
def what_is_open_is_answered_within_five_seconds_and_what_comes_after_is_told_to_go_elsewhere():
    for comes_back, status in ((True, 201), (False, 504)):
        with tempfile.TemporaryDirectory(prefix="pawl-drain-") as folder:
            redis = PrivateRedis(folder)
            check_equal(run_daemon("pawl-lease", "--redis", redis.url, "--init-store").returncode, 0)
            daemon = Daemon("pawl-lease", "--redis", redis.url, "--keys", WORLD.keys_file, "--listen", "127.0.0.1:0",
                            *([] if comes_back else ["--store-timeout", "1s"]))
            first, second = WORLD.raw(daemon), WORLD.raw(daemon)
            for raw in (first, second):  # both are known to the daemon
                raw.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                raw.answer("GET", "/livez")
            redis.stop()
            begun = time.monotonic()
            first.send("POST /v1/leases/a HTTP/1.1\r\nHost: localhost\r\n\r\n")
            wait_until(lambda: open_calls(second) > 0, "the call to the store is open")
            daemon.send(signal.SIGTERM)
            daemon.line(lambda line: "draining" in line, "that it drains")
            wait_until(lambda: refuses_work(second), "new requests are refused")
            if comes_back:
                redis.go_on()
            check_equal(first.answer("POST", "/v1/leases/a").status, status)
            check_equal(daemon.end(), 0)
            check(time.monotonic() - begun < 5, f"it took {time.monotonic() - begun} s")
            if comes_back:
                check_equal(record_of(redis, "a")["s"], "held")
            redis.close()


@test
@of_time
def a_client_that_does_not_read_its_answer_keeps_nobody_from_leaving_the_store():
    members = lambda: sorted(WORLD.redis("SMEMBERS", "pawl:{store}:members"))  # noqa: E731
    before, name, path = members(), WORLD.name(), os.path.join(WORLD.folder, "unread.sock")
    daemon = Daemon("pawl-gateway", *WORLD.flags, "--listen-unix", path)
    check_equal(len(members()), len(before) + 1)
    resource = f"/v1/resources/{name}"
    check_equal(WORLD.client(daemon)("PUT", resource, {"Fencing-Token": WORLD.acquire(name)["fencing_token"]}, b"x" * (1 << 20)).status, 201)
    with socket.socket(socket.AF_UNIX) as unread:  # it takes some 200 KiB, whoever reads
        unread.connect(path)
        unread.sendall(f"GET {resource} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        check(unread.recv(1, socket.MSG_PEEK) == b"H", "it begins")
        begun = time.monotonic()
        check_equal(daemon.end(), 0)
        check(time.monotonic() - begun < 5, f"it took {time.monotonic() - begun} s")
        check_equal(members(), before)


def open_calls(raw):
    raw.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    text = raw.answer("GET", "/metrics").body.decode()
    return int(re.search(r"^pawl_store_calls_in_flight(?:\{[^}]*\})? (\d+)$", text, re.M).group(1))


def refuses_work(raw):
    """By 503 draining, or by having closed a connection on which nothing was open."""
    try:
        raw.send("GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = raw.answer("GET", "/version")
    except Closed:
        return True
    if answer.status == 200:
        return False
    check_equal((answer.status, answer.code, answer.header("Connection").lower()), (503, "draining", "close"))
    return True


# -- keys

def rotated(keys, path, daemons):
    begin = [len(daemon.lines) for daemon in daemons]
    keys.write(path)
    for daemon, at in zip(daemons, begin):
        daemon.send(signal.SIGHUP)
        daemon.line(lambda line: "keys-reloaded" in line, "that the keys were read again", at)


@test_in(World)
def keys_are_rotated_without_a_pause(world):
    daemons = (world.lease_daemon, world.gateway_daemon)
    old_name, new_name = "old", "new"
    old = world.acquire(old_name)
    fresh = Keys("k2")
    world.keys.keys = world.keys.keys + fresh.keys  # known first, signs later
    rotated(world.keys, world.keys_file, daemons)
    check_equal(read_token(world.acquire("between")["fencing_token"])["kid"], "k1")
    world.keys.keys = world.keys.keys[::-1]
    rotated(world.keys, world.keys_file, daemons)
    # The workers take the keys up between two turns.
    new = wait_until(lambda: (g := world.acquire(world.name())) and read_token(g["fencing_token"])["kid"] == "k2" and g, "k2 signs")
    check(world.keys.verifies(new["fencing_token"]), new)
    new_name = new["lease"]
    for name, grant in ((old_name, old), (new_name, new)):
        check_equal(world.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": grant["fencing_token"]}, b"x").status, 201)
    renewed = world.lease("PUT", f"/v1/leases/{old_name}", {"Lease-Id": old["lease_id"]}).json
    check_equal((read_token(renewed["fencing_token"])["kid"], renewed["token"]), ("k2", old["token"]))
    world.keys.keys = fresh.keys
    rotated(world.keys, world.keys_file, daemons)

    def put(grant):
        return world.gateway("PUT", f"/v1/resources/{old_name}", {"Fencing-Token": grant["fencing_token"]}, b"y")
    wait_until(lambda: put(old).code == "bad-signature", "the removed key is refused")
    check_equal(put(renewed).status, 204)


@test
def a_key_file_that_is_bad_is_refused_at_start_and_ignored_later():
    good = "k1:" + "A" * 43 + "="
    for name in BOTH:
        done = run_daemon(name, "--keys", file_with(f"{good}\n{good}\n"), "--check-config")
        check_equal(done.returncode, CONFIG, repr(done))
        check("A" * 20 not in done.stderr, "a key is told")
        fails(run_daemon(name, "--check-config"), CONFIG, "--keys")
        fails(run_daemon(name, "--check-config", "--keys", "/nonexistent/keys"), CONFIG, "/nonexistent/keys")
        passes(run_daemon(name, "--check-config", "--keys", file_with(f"\n# a comment\n{good}\n\n")))
    grant = WORLD.acquire(WORLD.name())
    for text, mode, why in (("k1:AAAA\n", 0o600, "16 to"), (good, 0o644, "others can read or change it")):
        begin = len(WORLD.lease_daemon.lines)
        with open(WORLD.keys_file, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(WORLD.keys_file, mode)
        WORLD.lease_daemon.send(signal.SIGHUP)
        check_in(why, WORLD.lease_daemon.line(lambda line: "keys-not-reloaded" in line, "that the keys are bad", begin))
    for name in BOTH:  # at start, and when the configuration is checked
        fails(run_daemon(name, "--check-config", "--keys", WORLD.keys_file), CONFIG, "others can read or change it")
        fails(run_daemon(name, *WORLD.flags), CONFIG, "others can read or change it")
    WORLD.keys.write(WORLD.keys_file)
    check_equal(WORLD.gateway("PUT", f"/v1/resources/{grant['lease']}", {"Fencing-Token": grant["fencing_token"]}, b"x").status, 201)


@test
def a_key_file_that_became_a_fifo_is_not_waited_for():
    for daemon in (WORLD.lease_daemon, WORLD.gateway_daemon):
        begin = len(daemon.lines)
        os.unlink(WORLD.keys_file)
        os.mkfifo(WORLD.keys_file, 0o600)
        try:
            daemon.send(signal.SIGHUP)
            daemon.line(lambda line: "keys-not-reloaded" in line, "that there are no keys", begin)
        finally:
            os.unlink(WORLD.keys_file)
            WORLD.keys.write(WORLD.keys_file)
        check_equal(WORLD.client(daemon)("GET", "/livez").status, 200)


# -- the log

@test
def a_log_that_goes_to_no_terminal_is_lines_of_json_or_text_when_that_is_asked_for():
    for name in BOTH:
        daemon = Daemon(name, *WORLD.flags, "--log-level", "debug")
        client = WORLD.client(daemon)
        client("GET", "/nowhere/%0a%22/x")
        instance = client("GET", "/nowhere").json["instance"]
        line = daemon.line(lambda line: instance in line, "the request")
        entry = json.loads(line)
        check_equal((entry["path"], entry["status"], entry["code"], entry["instance"]), ("/nowhere", 404, "not-found", instance))
        check_equal(daemon.end(), 0)
        for line in daemon.log().splitlines():
            if not line.startswith("listening on "):
                check(isinstance(json.loads(line), dict), line)
    daemon = Daemon("pawl-lease", *WORLD.flags, "--log-level", "debug", "--log-format", "text")
    WORLD.client(daemon)("GET", "/nowhere")
    line = daemon.line(lambda line: "/nowhere" in line, "the request")
    check(not line.startswith("{") and "404" in line, line)
    check_equal(daemon.end(), 0)


@test
def a_request_without_a_method_is_refused_and_logged():
    """A line that is none; a head that has not come whole when there is no memory for more of it."""
    for name in BOTH:
        daemon = Daemon(name, *WORLD.flags, "--log-level", "debug", "--max-body-memory", "64KiB", "--threads", "1")
        raw = WORLD.raw(daemon)
        raw.send(f"{'X' * 40} / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        entry = json.loads(daemon.line(lambda line: '"status":400' in line, "the bad line"))
        check_equal((entry["method"], entry["code"]), ("", "invalid-request"))
        raw.close()
        raws = [WORLD.raw(daemon) for _ in range(20)]
        for raw in raws:
            raw.send("GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: " + 7000 * "x")
        entry = json.loads(daemon.line(lambda line: '"status":503' in line, "that there is no memory"))
        check_equal((entry["method"], entry["path"], entry["code"]), ("", "", "overloaded"))
        for raw in raws:
            raw.close()
        check_equal(daemon.end(), 0)


@test
def heads_that_never_come_whole_leave_memory_for_bodies():
    daemon = Daemon("pawl-gateway", *WORLD.flags, "--log-level", "debug", "--max-body-memory", "1MiB")
    grant = WORLD.acquire(WORLD.name())
    raws = [WORLD.raw(daemon) for _ in range(60)]
    for raw in raws:
        raw.send("GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: " + 30000 * "x")
    daemon.line(lambda line: '"status":503' in line, "that there is no memory for more of them")
    answer = WORLD.client(daemon)("PUT", f"/v1/resources/{grant['lease']}", {"Fencing-Token": grant["fencing_token"]}, 100_000 * b"x")
    check_equal(answer.status, 201, f"{answer}")
    for raw in raws:
        raw.close()
    check_equal(daemon.end(), 0)


@test
def long_answers_that_are_not_taken_are_refused_when_there_are_too_many():
    daemon = Daemon("pawl-gateway", *WORLD.flags, "--max-body-memory", "4MiB")
    grant = WORLD.acquire(WORLD.name())
    target, readers = f"/v1/resources/{grant['lease']}", []
    client = WORLD.client(daemon)
    check_equal(client("PUT", target, {"Fencing-Token": grant["fencing_token"]}, 1_000_000 * b"x").status, 201)
    for _ in range(6):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)  # else the kernel takes all of it at once
        one.connect(("127.0.0.1", daemon.port))
        one.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        readers.append(one)
    check_equal(sorted(one.recv(12)[-3:] for one in readers), 4 * [b"200"] + 2 * [b"503"])
    check_equal(client("GET", target).json["code"], "overloaded")
    check_equal(client("GET", f"/v1/marks/{grant['lease']}").status, 200)
    for one in readers:
        one.close()
    wait_until(lambda: client("GET", target).status == 200, "it is answered again")
    check_equal(daemon.end(), 0)


@test
def a_body_may_take_all_the_memory_of_bodies_whatever_the_number_of_threads_and_a_longer_one_is_too_large():
    daemon = Daemon("pawl-gateway", *WORLD.flags, "--max-body-memory", "64KiB", "--threads", "8")
    grant = WORLD.acquire(WORLD.name())
    put = lambda body: WORLD.client(daemon)("PUT", f"/v1/resources/{grant['lease']}", {"Fencing-Token": grant["fencing_token"]}, body)  # noqa: E731
    check_equal(put(60000 * b"x").status, 201)
    answer = put(((64 << 10) + 1) * b"x")
    check_equal((answer.status, answer.code, answer.json["retryable"]), (413, "too-large", False))
    check_in("65536 bytes (--max-body-memory)", answer.json["detail"])
    check_equal(daemon.end(), 0)


# -- metrics

SAMPLE = re.compile(r'^([a-z_:][a-z0-9_:]*)(\{[a-z_]+="[^"\\]*"(?:,[a-z_]+="[^"\\]*")*\})? ([0-9.e+-]+|\+Inf)$')


def samples(client):
    """{series: value}; each line is a sample, or says what follows."""
    answer = client("GET", "/metrics")
    check_equal(answer.header("Content-Type"), "text/plain; version=0.0.4")
    lines = [line for line in answer.body.decode().splitlines() if not line.startswith(("# TYPE ", "# HELP "))]
    found = {match[1] + (match[2] or ""): float(match[3]) for match in map(SAMPLE.match, lines)}
    check_equal(len(found), len(lines), "a series twice")
    return found


def rise(before, after, series):
    return after[series] - before[series]


@test
def metrics_count_what_happens(name):
    before = samples(WORLD.lease)
    grant = WORLD.acquire(name)
    WORLD.acquire(name, 200, lease_id=grant["lease_id"])
    for _ in range(3):
        WORLD.lease("POST", f"/v1/leases/{name}")
    WORLD.lease("PUT", f"/v1/leases/{name}", {"Lease-Id": grant["lease_id"]})
    WORLD.release(name, grant)
    after = samples(WORLD.lease)
    wanted = {'pawl_lease_operations_total{what="granted"}': 1, 'pawl_lease_operations_total{what="replayed"}': 1,
              'pawl_lease_operations_total{what="renewed"}': 1, 'pawl_lease_operations_total{what="released"}': 1,
              'pawl_problems_total{code="lease-held"}': 3,
              'pawl_http_requests_total{operation="acquireLease",status="2xx"}': 2,
              'pawl_http_requests_total{operation="acquireLease",status="4xx"}': 3,
              'pawl_http_request_seconds_count{operation="acquireLease"}': 5,
              'pawl_http_request_seconds_count{operation="renewLease"}': 1}
    check_equal({series: rise(before, after, series) for series in wanted}, wanted)
    check(rise(before, after, "pawl_store_call_seconds_count") >= 7, "calls of the store were not timed")


@test
def an_operation_is_called_in_the_metrics_as_in_openapi_and_the_process_as_by_prometheus_clients():
    ids = {operation["operationId"] for path in WORLD.lease("GET", "/openapi.json").json["paths"].values()
           for operation in path.values() if isinstance(operation, dict)}
    for client, name in ((WORLD.lease, "pawl-lease"), (WORLD.gateway, "pawl-gateway")):
        found = samples(client)
        used = {re.search('operation="([^"]*)"', series)[1] for series in found if "operation=" in series}
        check_equal(used - ids, {"none"} if name == "pawl-lease" else {"none", "forward"}, name)
        check_equal(found[f'pawl_build_info{{service="{name}",version="{client("GET", "/version").json["version"]}"}}'], 1)
        check(0 < found["process_cpu_seconds_total"] < 1e4 and found["process_resident_memory_bytes"] > 1e6
              and found["process_virtual_memory_bytes"] > found["process_resident_memory_bytes"]
              and 5 < found["process_open_fds"] < found["process_max_fds"]
              and 0 <= time.time() - found["process_start_time_seconds"] < 3600, "what the process uses")


@test
def the_gateway_counts_too(name):
    before = samples(WORLD.gateway)
    grant = WORLD.acquire(name)
    token = {"Fencing-Token": grant["fencing_token"]}
    WORLD.gateway("PUT", f"/v1/resources/{name}", token, b"x")
    WORLD.gateway("GET", f"/v1/resources/{name}")
    WORLD.gateway("GET", f"/v1/resources/{name}", token)
    WORLD.gateway("GET", f"/v1/check/{name}", token)
    WORLD.gateway("DELETE", f"/v1/resources/{name}", token)
    WORLD.gateway("PUT", f"/v1/resources/{name}", {}, b"x")
    after = samples(WORLD.gateway)
    for what in ("written", "read", "read-fenced", "checked", "removed"):
        check_equal(rise(before, after, f'pawl_gateway_operations_total{{what="{what}"}}'), 1, what)
    check_equal(rise(before, after, 'pawl_problems_total{code="token-required"}'), 1)


@test
def no_label_comes_from_a_client():
    samples(WORLD.lease)
    for i in range(20):
        WORLD.lease("GET", f"/no-such-{i}")
    text = WORLD.lease("GET", "/metrics").body.decode()
    check("no-such" not in text, "a path is in the metrics")
    check(len(text) < 64000, "the metrics grow")


@test
@of_time
def services_that_nobody_asks_run_25_scripts_a_second_at_most_and_write_only_heartbeats():
    world = World()

    def counted():
        told = world.redis("INFO", "commandstats").decode()
        return {name: int(count) for name, count in re.findall(r"^cmdstat_(\S+):calls=(\d+)", told, re.M)}

    def scripts_a_second():
        begun, before = time.monotonic(), counted()
        wait_until(lambda: time.monotonic() >= begun + 2, "two seconds are over")
        calls = {name: count - before.get(name, 0) for name, count in counted().items()}
        check(not any(calls.get(name) for name in ("persist", "zadd", "zrem", "del")), f"written: {calls}")
        return sum(count for name, count in calls.items() if name.startswith("fcall")) / (time.monotonic() - begun)

    both = scripts_a_second()
    world.gateway_daemon.end()
    lease = scripts_a_second()
    print(f"# scripts a second: a lease service {lease:.1f}, a gateway beside it {both - lease:.1f}", flush=True)
    world.close()
    check(lease <= 25 and both - lease <= 25, f"{lease} and {both - lease}")


@test
def neither_daemon_starts_in_a_state_directory_of_the_other():
    for name, other, whose in zip(BOTH, BOTH[::-1], ("gateway", "lease service")):
        place = {"STATE_DIRECTORY": os.path.join(WORLD.folder, "of-" + other)}
        daemon = Daemon(other, *WORLD.flags, environment=place)
        WORLD.wait_ready(WORLD.client(daemon))
        check_equal(daemon.end(), 0)
        fails(run_daemon(name, *WORLD.flags, environment=place), CONFIG, f"this --state-dir is that of a {whose}")


# -- a lease service whose state directory is taken away under it grants nothing any more, and hands nothing on

@test_in(World)
@of_time
def whoever_has_lost_its_floor_neither_grants_nor_hands_on(world, name):
    state = os.path.join(world.folder, "lost")
    lost = Daemon("pawl-lease", *world.flags, environment={"STATE_DIRECTORY": state})
    world.daemons.append(lost)
    client = world.client(lost)
    world.wait_ready(client)
    grant = world.acquire(name)
    waiter = Waiter(world, lost, name, "waiter")
    shutil.rmtree(state)
    wait_until(lambda: client("GET", "/readyz").status == 503, "it has noticed")
    world.lease_daemon.send(signal.SIGSTOP)  # it would hand on, as it should
    try:
        refused = client("POST", f"/v1/leases/{world.name()}")
        check_equal((refused.status, refused.code), (503, "floor-reached"))
        check_equal(client("DELETE", f"/v1/leases/{name}", {"Lease-Id": grant["lease_id"]}).status, 204)
        history = client("GET", f"/v1/leases/{name}/history").json["items"]
        check_equal([item["type"] for item in history], ["granted", "released"])
        look = client("GET", f"/v1/leases/{name}").json
        check_equal((look["state"], look["waiting"]), ("free", 1))
    finally:
        world.lease_daemon.send(signal.SIGCONT)
    check_equal(waiter.told()["holder"], "waiter")


main(WORLD.close, parts=2)
