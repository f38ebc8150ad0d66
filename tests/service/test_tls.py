#!/usr/bin/python3
"""test_tls.py - the daemons over TLS, asked by OpenSSL, curl, Python and sslscan; certificates made here by openssl."""

import http.client
import json
import os
import re
import signal
import socket
import ssl
import statistics
import subprocess
import threading
import time

from world import DURABLE, Daemon, World, check, check_equal, check_in, main, of_time, run_daemon, test, test_in, wait_until
from world.asking import Later
from world.certificate import Certificates
from world.listening import Listening
from world.ports import own_port
from world.wait import keeps_within

PLAIN = World()
FOLDER = PLAIN.folder
MADE = Certificates(FOLDER)
path, authority, certified = MADE.path, MADE.authority, MADE.certified
SERVER = "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n"
authority("ca")
authority("other")
certified("server", "ca", SERVER)
certified("client", "ca", "subjectAltName=DNS:ops.example.org\nextendedKeyUsage=clientAuth\n")
PAIR = ("--tls-cert", path("server.pem"), "--tls-key", path("server.key"))
ASKS = ("--tls-client-ca", path("ca.pem"))
LEASE = PLAIN.daemon("pawl-lease", *PAIR, *ASKS, "--threads", "2", "--header-timeout", "4s")
GATEWAY = PLAIN.daemon("pawl-gateway", *PAIR)


def context(ca="ca", **more):
    made = ssl.create_default_context(cafile=path(f"{ca}.pem"))
    for name, value in more.items():
        setattr(made, name, value)
    return made


def connect(daemon=LEASE, trusts=None):
    return http.client.HTTPSConnection(daemon.host, daemon.port, timeout=15, context=trusts or context())


def get(connection, target):
    connection.request("GET", target)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def ask(daemon, target, trusts=None):
    connection = connect(daemon, trusts)
    found = get(connection, target)
    connection.close()
    return found


@test
def both_services_speak_https_and_do_what_they_do_over_http():
    for daemon, target in ((LEASE, "/readyz"), (GATEWAY, "/readyz")):
        check_equal(daemon.url[:8], "https://")
        wait_until(lambda daemon=daemon, target=target: ask(daemon, target)[0] == 200, "it is ready")
    connection = connect()
    connection.request("POST", "/v1/leases/tls:1", "{}", {"Content-Type": "application/json"})
    grant = connection.getresponse()
    check_equal(grant.status, 201, grant.read())
    check_equal(get(connection, "/v1/leases/tls:1")[0], 200)  # on the same connection
    check_equal(PLAIN.lease("GET", "/v1/leases/tls:1").json["holders"][0]["mode"], "exclusive")


@test
def curl_verifies_it_and_shows_a_certificate():
    for words, status in (((), 60), (("--cacert", path("ca.pem")), 0), (("--cacert", path("other.pem")), 60),
                          (("--cacert", path("ca.pem"), "--cert", path("client.pem"), "--key", path("client.key")), 0),
                          (("--cacert", path("ca.pem"), "--tls-max", "1.2", "--http1.1"), 0), (("--cacert", path("ca.pem"), "--tls-max", "1.1"), 35)):
        done = subprocess.run(["curl", "-sS", *words, f"https://localhost:{LEASE.port}/livez", "-4"], capture_output=True, text=True,
                              timeout=30, check=False)
        check_equal(done.returncode, status, f"{words}: {done.stderr}")
        check_equal(done.stdout, "" if status else '{"status":"alive"}')


@test
def sslscan_finds_only_what_is_meant_to_be_there():
    for daemon in (LEASE, GATEWAY):
        done = subprocess.run(["sslscan", "--no-colour", f"127.0.0.1:{daemon.port}"], capture_output=True, text=True, timeout=120, check=False)
        check_equal(sorted(re.findall(r"^(\S+v\S+) +enabled", done.stdout, re.M)), ["TLSv1.2", "TLSv1.3"])
        ciphers = re.findall(r"^(?:Preferred|Accepted) +\S+ +\d+ bits +(\S+)", done.stdout, re.M)
        check(len(ciphers) >= 6, done.stdout)
        for cipher in ciphers:
            check(re.fullmatch(r"(TLS_|ECDHE-ECDSA-)(AES[_-]?(128|256)[_-]GCM[_-]\w+|CHACHA20[_-]POLY1305\w*)", cipher), cipher)
        check_in("Session renegotiation not supported", done.stdout)
        check(not re.search(r"^TLSv\S+ +vulnerable", done.stdout, re.M), done.stdout)


@test
def no_session_is_resumed_and_no_ticket_given():
    for version in ("-tls1_2", "-tls1_3"):
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{LEASE.port}", "-CAfile", path("ca.pem"), version, "-reconnect"],
                              input="", capture_output=True, text=True, timeout=60, check=False)
        check_in("Verify return code: 0 (ok)", done.stdout)
        check("TLS session ticket" not in done.stdout and "Reused," not in done.stdout, done.stdout)


@test
def alpn_is_http_1_1_and_another_protocol_is_refused():
    for names, agreed in ((["http/1.1"], "http/1.1"), (["h2", "http/1.1"], "http/1.1"), ([], None)):
        trusts = context()
        if names:
            trusts.set_alpn_protocols(names)
        with trusts.wrap_socket(socket.create_connection((LEASE.host, LEASE.port), 15), server_hostname="localhost") as spoken:
            check_equal(spoken.selected_alpn_protocol(), agreed)
    trusts.set_alpn_protocols(["h2"])
    try:
        trusts.wrap_socket(socket.create_connection((LEASE.host, LEASE.port), 15), server_hostname="localhost")
        check(False, "h2 was agreed upon")
    except ssl.SSLError as error:
        check_in("NO APPLICATION PROTOCOL", str(error).upper().replace("_", " "))


def readyz():
    return ask(LEASE, "/readyz")[1]


def hang_up(word):
    begin = len(LEASE.lines)
    LEASE.send(signal.SIGHUP)
    return LEASE.line(lambda line: word in line and path("server.") in line, word, begin)


def serial(trusts=None):
    with (trusts or context()).wrap_socket(socket.create_connection((LEASE.host, LEASE.port), 15), server_hostname="localhost") as spoken:
        return spoken.getpeercert()["serialNumber"]


@test
def sighup_changes_the_certificate_under_load_and_no_request_fails():
    stop, done, failed = threading.Event(), [0] * 6, []

    def load(number):
        try:
            while not stop.is_set():
                connection = connect()
                for _ in range(20):
                    status, _ = get(connection, "/livez")
                    done[number] += 1
                    if status != 200:
                        failed.append(status)
                connection.close()
        except Exception as error:  # pylint: disable=broad-except # told below
            failed.append(error)

    threads = [threading.Thread(target=load, args=(number,)) for number in range(len(done))]
    for thread in threads:
        thread.start()
    seen = {serial()}
    for _ in range(5):
        certified("server", "ca", SERVER)
        hang_up("access-loaded")
        seen.add(serial())
        before = list(done)
        wait_until(lambda before=before: all(now > then for now, then in zip(done, before)) or failed, "each goes on")
    stop.set()
    for thread in threads:
        thread.join(30)
    check_equal((failed, len(seen)), ([], 6))


@test
def what_is_wrong_at_a_sighup_is_told_and_all_stays_as_before():
    before = serial()
    os.rename(path("server.key"), path("kept.key"))
    certified("stranger", "other", SERVER)
    for wrong, why in ((path("stranger.key"), "is not the key of the certificate"), (None, "cannot be read")):
        if wrong:
            os.rename(wrong, path("server.key"))
        else:
            os.unlink(path("server.key"))
        told = hang_up("access-refused")
        check_in(why, told)
        check_in(f'"file":"{path("server.key")}"', told)
        check_in('"tls":"not-reloaded"', readyz())
        check_equal(serial(), before)
    os.rename(path("kept.key"), path("server.key"))
    hang_up("access-loaded")
    check("not-reloaded" not in readyz(), readyz())


@test
def the_metrics_say_how_long_the_certificates_last():
    found = dict(re.findall(r'^pawl_tls_ends_seconds\{file="(.*)"\} (\S+)$', ask(LEASE, "/metrics")[1], re.M))
    check_equal(sorted(found), ["tls-cert", "tls-client-ca"])
    for file, seconds in found.items():
        check(86400 < int(seconds) <= 2 * 86400, f"{file}: {seconds}")
    check("pawl_tls_ends" not in PLAIN.lease("GET", "/metrics").body.decode(), "a plain service has none")


@test
def a_wrong_set_of_files_is_78():
    os.chmod(path("other.key"), 0o644)
    rows = ((("--tls-cert", path("server.pem")), "--tls-cert and --tls-key go together"),
            (("--tls-key", path("server.key")), "--tls-cert and --tls-key go together"), (ASKS, "--tls-client-ca is of use with"),
            ((*PAIR, "--tls-crl", path("ca.pem")), "--tls-crl is of use with"),
            (("--tls-cert", path("server.pem"), "--tls-key", path("client.key")), "is not the key"),
            (("--tls-cert", path("other.pem"), "--tls-key", path("other.key")), "others can change it, or read it"),
            ((*PAIR, *ASKS, "--tls-crl", path("ca.pem")), "has no list of revoked certificates"))
    for name in ("pawl-lease", "pawl-gateway"):
        for flags, why in rows:
            done = run_daemon(name, "--check-config", "--keys", PLAIN.keys_file, *flags)
            check_equal(done.returncode, 78, f"{flags}: {done.stderr}")
            check_in(why, done.stderr)
        done = run_daemon(name, "--check-config", "--keys", PLAIN.keys_file, *PAIR, *ASKS)
        check_equal((done.returncode, done.stderr), (0, ""))


def used_s(daemon):
    with open(f"/proc/{daemon.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def hello():
    """What a client says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    made = context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        made.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


@test
def a_message_in_several_records_that_come_together_is_read_at_once():
    text = hello()[5:]
    for count in (2, 60, 200):
        size = -(-len(text) // count)
        parts = [text[at:at + size] for at in range(0, len(text), size)]
        with begun(LEASE, b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)) as spoken:
            spoken.settimeout(2)
            check_equal(spoken.recv(1), b"\x16" if count < 100 else b"\x15", f"{count} records")


def livez_ms(connection):
    """The median of 300."""
    took = []
    for _ in range(300):
        begun = time.perf_counter()
        check_equal(get(connection, "/livez")[0], 200)
        took.append(time.perf_counter() - begun)
    return statistics.median(took) * 1000


@test
@of_time
def five_hundred_handshakes_that_do_not_go_on_cost_others_nothing_and_end_in_time():
    connection = connect()
    alone_ms = min(livez_ms(connection) for _ in range(3))
    ended = lambda: int(failures(LEASE)["timeout"])  # noqa: E731
    began, ended_before = time.monotonic(), ended()
    stalled = [socket.create_connection((LEASE.host, LEASE.port), 15) for _ in range(500)]
    for number, one in enumerate(stalled):
        text = hello() if number % 2 else b"\x16\x03\x01"  # behind the ClientHello, or in the middle of it
        one.sendall(text)
    wait_until(lambda: int(re.search(r"^pawl_http_connections (\d+)", ask(LEASE, "/metrics")[1], re.M)[1]) + ended() - ended_before > 500,
               "they are there, or were: the machine may take longer than they may")
    keeps_within(1.5 * alone_ms + 0.5, lambda: livez_ms(connection), "an answer beside them")
    before, from_s = used_s(LEASE), time.monotonic()
    wait_until(lambda: get(connection, "/livez")[0] == 200 and time.monotonic() > from_s + 1.5, "a client that asks now and then",
               again_ms=50)
    used = used_s(LEASE) - before
    check(used < 0.4, f"{used} s of processor in 1.5 s")
    for one in stalled:
        one.settimeout(15)
        while one.recv(65536):
            pass
        one.close()
    check(3 < time.monotonic() - began < 15, f"closed after {time.monotonic() - began} s, not some 4")
    check_equal(get(connection, "/livez")[0], 200)


def failures(daemon):
    return dict(re.findall(r'^pawl_tls_handshake_failures_total\{reason="(.*)"\} (\d+)$', ask(daemon, "/metrics")[1], re.M))


def begun(daemon, text):
    """A connection on which so much has been sent."""
    spoken = socket.create_connection((daemon.host, daemon.port), 15)
    spoken.sendall(text)
    return spoken


def closed(spoken):
    """By the other side."""
    with spoken:
        while spoken.recv(4096):
            pass


def refused(daemon, ca="ca", **more):
    try:
        context(ca, **more).wrap_socket(begun(daemon, b""), server_hostname="localhost")
        check(False, "there is TLS")
    except (ssl.SSLError, ConnectionError):
        pass


@test_in(World)
def a_handshake_that_fails_is_counted_by_reason_and_logged_ten_times_a_minute(world):
    daemon = Daemon("pawl-lease", *world.flags, *PAIR, *ASKS, "--threads", "1", "--header-timeout", "1s")
    begun(daemon, b"").close()  # somebody looks whether the port is open
    late = [begun(daemon, b""), begun(daemon, hello()[:100])]
    for _ in range(9):
        closed(begun(daemon, b"GET /secret HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n"))
    refused(daemon, minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        refused(daemon, "other", maximum_version=version)
    begun(daemon, hello()[:50]).close()
    for one in late:
        closed(one)
    wanted = {"protocol": "10", "certificate": "2", "timeout": "1", "closed": "1", "other": "0"}
    wait_until(lambda: failures(daemon) == wanted, f"{wanted}, not {failures(daemon)}")
    check_equal(daemon.end(), 0)
    told = [json.loads(line) for line in daemon.log().splitlines() if line.startswith("{")]
    failed = [one for one in told if one["event"] == "handshake-failed"]
    check_equal([(one["peer"], one["reason"]) for one in failed[:1]] + [len(failed)], [("127.0.0.1", "protocol"), 10])
    check_equal([(one["caller"], one["more"]) for one in told if one["event"] == "denied-more"], [("handshake 127.0.0.1", 4)])
    check("secret" not in daemon.log(), "what came is in the log")


# p and q, by the exponents of Mersenne's primes, and e: what costs a thread more than it may before anybody has vouched for it
HEAVY = {"long": (4253, 4423, 65537), "raised": (1279, 2203, (1 << 32) + 15)}
for heavy, (first, second, exponent) in {**HEAVY, "usual": (1279, 2203, 65537)}.items():
    MADE.rsa(heavy, (1 << first) - 1, (1 << second) - 1, exponent)
    certified(heavy, "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1\n", makes=("-key",))


@test_in(World)
def a_certificate_whose_key_takes_long_is_not_used(world):
    daemon = Daemon("pawl-lease", *world.flags, *PAIR, *ASKS)
    for name in (*HEAVY, "usual"):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            before = int(failures(daemon)["certificate"])
            trusts = context(maximum_version=version)
            trusts.load_cert_chain(path(f"{name}.pem"), path(f"{name}.key"))
            try:
                told = ask(daemon, "/livez", trusts)[0]
            except (ssl.SSLError, ConnectionError):
                told = None
            check_equal(told, None if name in HEAVY else 200, f"{name} {version}")
            check_equal(int(failures(daemon)["certificate"]) - before, 1 if name in HEAVY else 0, f"{name} {version}")


# -- the store over TLS

certified("redis", "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
SAFE_PORT = own_port()
SAFE = World(redis_settings=[*DURABLE, "--tls-port", str(SAFE_PORT), "--tls-cert-file", path("redis.pem"), "--tls-key-file", path("redis.key"),
                             "--tls-ca-cert-file", path("ca.pem"), "--tls-auth-clients", "yes", "--user", "pawl", "on", ">first", "~*", "&*", "+@all"])
URL = f"rediss://pawl@localhost:{SAFE_PORT}"
SHOWS = ("--redis-ca", path("ca.pem"), "--redis-cert", path("client.pem"), "--redis-key", path("client.key"))


def password(text):
    with open(path("password"), "w", encoding="ascii") as file:
        file.write(text + "\n")


@test
def both_services_reach_a_redis_over_tls_that_asks_for_a_certificate():
    password("first")
    flags = ("--redis", URL, *SHOWS, "--redis-password-file", path("password"))
    for name in ("pawl-lease", "pawl-gateway"):
        daemon = Daemon(name, *flags, "--keys", SAFE.keys_file, "--listen", "127.0.0.1:0", "--store-timeout", "1s")
        client = SAFE.client(daemon)
        SAFE.wait_ready(client)
        if name == "pawl-lease":
            grant = client("POST", "/v1/leases/safe:1", body={})
            check_equal(grant.status, 201, repr(grant))
            waiter = Later(client, "POST", "/v1/leases/safe:1", body={"wait_ms": 10000})  # a hand-off comes by the subscriber's link
            wait_until(lambda: SAFE.waiting("safe:1") == 1, "one waits")
            SAFE.release("safe:1", grant.json)
            check_equal(waiter.get().status, 201)
            large = client("POST", "/v1/leases/safe:2", body={"meta": {"text": "x" * 1900}})
            check_equal(large.status, 201, repr(large))
        # the password changes, and the connection is cut: the next one has the new one
        SAFE.redis("ACL", "SETUSER", "pawl", "resetpass", ">second")
        password("second")
        SAFE.redis("CLIENT", "KILL", "USER", "pawl")
        SAFE.wait_ready(client)
        SAFE.redis("ACL", "SETUSER", "pawl", "resetpass", ">first")
        password("first")
        check_equal(daemon.end(), 0)


@test
def a_redis_that_does_not_take_our_certificate_any_more_is_told_with_its_alert():
    password("first")
    certified("soon", "ca", "subjectAltName=DNS:ops.example.org\nextendedKeyUsage=clientAuth\n", days=-1)
    done = run_daemon("pawl", "store", "status", "--redis", URL, *SHOWS[:2], "--redis-cert", path("soon.pem"), "--redis-key", path("soon.key"),
                      "--redis-password-file", path("password"), "--store-timeout", "1s")
    check_equal(done.returncode, 69, done.stderr)
    check(re.search(r"refuses TLS with this side: [^.]*[Cc]ertificate [^.]*expired\.\n", done.stderr), done.stderr)


@test
def a_redis_that_cannot_show_who_it_is_is_told_nothing():
    password("first")
    for flags, why in ((("--redis-ca", path("other.pem"), *SHOWS[2:]), "no authority that is trusted"), (SHOWS[:2], "")):
        done = run_daemon("pawl", "store", "status", "--redis", URL, *flags, "--redis-password-file", path("password"), "--store-timeout", "500ms")
        check_equal(done.returncode, 69, done.stderr)
        check_in(why, done.stderr)
    check_equal([line for line in SAFE.redis("ACL", "LOG") if b"pawl" in line], [])


class Shows(Listening):
    """A server that speaks TLS, and hangs up."""

    def __init__(self, name):
        self.trusts = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.trusts.load_cert_chain(path(f"{name}.pem"), path(f"{name}.key"))
        self.listen()

    def _serve(self, connection):
        try:
            with self.trusts.wrap_socket(connection, server_side=True) as spoken:
                spoken.recv(4096)
        except OSError:
            pass


@test
def a_server_whose_key_takes_long_is_not_asked():
    for name in (*HEAVY, "usual"):
        server = Shows(name)
        done = run_daemon("pawl", "store", "status", "--redis", f"rediss://localhost:{server.port}", *SHOWS[:2], "--store-timeout", "2s")
        server.close()
        check_equal("Error in the certificate" in done.stderr, name in HEAVY, f"{name}: {done.stderr}")


@test
def operators_ask_over_tls_too_and_wrong_files_are_78():
    for words in (("store", "status"), ("doctor",)):
        done = run_daemon("pawl", *words, "--redis", URL, *SHOWS, "--redis-password-file", path("password"), deadline_s=60)
        check("cannot be reached" not in done.stderr and done.returncode in (0, 1), f"{words}: {done.returncode} {done.stderr}")
    for flags, why in ((("--redis", URL, "--redis-cert", path("client.pem")), "go together"),
                       (("--redis", URL, "--redis-ca", "/nowhere"), "has no certificate"),
                       (("--redis", "redis://localhost", *SHOWS[:2]), "are of use with rediss:// and sentinels:// only")):
        done = run_daemon("pawl-lease", "--check-config", "--keys", PLAIN.keys_file, *flags)
        check_equal(done.returncode, 78, done.stderr)
        check_in(why, done.stderr)

# -- a certificate is an identity


def whoami(daemon, name=None, version=ssl.TLSVersion.TLSv1_3):
    """(status, identity or why), and the detail, of who shows this certificate."""
    trusts = context(maximum_version=version)
    if name:
        trusts.load_cert_chain(path(f"{name}.pem"), path(f"{name}.key"))
    status, body = ask(daemon, "/v1/access", trusts)
    told = json.loads(body)
    return (status, told.get("identity") or told["why"]), told.get("detail", "")


@test
def who_shows_a_good_certificate_is_who_the_access_file_says():
    client = "extendedKeyUsage=clientAuth\n"
    certified("nightly", "ca", "subjectAltName=URI:spiffe://example.org/sa/nightly\n" + client)
    certified("both", "ca", "subjectAltName=DNS:ops.example.org,DNS:dba.example.org\n" + client)
    certified("plain", "ca", client)
    certified("nobodys", "ca", "subjectAltName=DNS:nobody.example.org\n" + client)
    certified("serving", "ca", "subjectAltName=DNS:ops.example.org\nextendedKeyUsage=serverAuth\n")
    certified("unsigning", "ca", "subjectAltName=DNS:ops.example.org\nkeyUsage=critical,keyAgreement\n" + client)
    certified("foreign", "other", "subjectAltName=DNS:ops.example.org\n" + client)
    certified("old", "ca", "subjectAltName=DNS:ops.example.org\n" + client, days=-1)
    certified("gone", "ca", "subjectAltName=DNS:ops.example.org\n" + client)
    certified("between", "ca", "basicConstraints=critical,CA:true\n")
    certified("below", "between", "subjectAltName=DNS:ops.example.org\n" + client)
    os.mkdir(path("before"))
    before = Certificates(path("before"))  # another key under the same name
    before.authority("ca")
    before.certified("client", "ca", "subjectAltName=DNS:ops.example.org\n" + client)
    os.rename(before.path("client.key"), path("before-client.key"))
    os.rename(before.path("client.pem"), path("before-client.pem"))
    MADE.write("trusted.pem", "".join(open(path(one), encoding="ascii").read() for one in ("before/ca.pem", "ca.pem", "between.pem")))
    MADE.revoke("ca", "gone", "between")
    file = path("access.json")
    with open(file, "w", encoding="ascii") as out:
        json.dump({"identities": {"ops": {"certs": ["dns:ops.example.org"]}, "dba": {"certs": ["dns:dba.example.org"]}, "plain": {"certs": ["cn:plain"]},
                                  "nightly": {"certs": ["uri:spiffe://example.org/sa/nightly"]}, "local": {"uids": [os.getuid()]}},
                   "rules": [{"who": ["known"], "may": ["acquire", "observe"], "on": ["*"]}, {"who": ["nobody"], "may": ["look"], "on": ["*"]}]}, out)
    os.chmod(file, 0o600)
    world = World("--access", file, *PAIR, "--tls-client-ca", path("trusted.pem"), "--tls-crl", path("ca.crl"))
    daemon = world.lease_daemon
    for name, *wanted, detail in (
            ("client", 200, "ops", ""), ("nightly", 200, "nightly", ""), ("plain", 200, "plain", ""), ("both", 401, "unknown", ""),
            ("nobodys", 401, "unknown", ""), ("serving", 401, "certificate", "not for clients (extended key usage)"),
            ("unsigning", 401, "certificate", "not for signatures (key usage)"), ("foreign", 401, "certificate", "from no authority"),
            ("before-client", 200, "ops", ""), ("below", 401, "certificate", "from no authority"),
            ("old", 401, "certificate", "has expired"), ("gone", 401, "certificate", "revoked"), (None, 401, "none", "")):
        for one, version in ((daemon, ssl.TLSVersion.TLSv1_2), (daemon, ssl.TLSVersion.TLSv1_3), (world.gateway_daemon, ssl.TLSVersion.TLSv1_3)):
            said, told = whoami(one, name, version)
            check_equal(said, tuple(wanted), f"{name} {version}")
            check_in(detail, told)
        shown = ("-cert", path(f"{name}.pem"), "-key", path(f"{name}.key")) if name else ()
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{world.gateway_daemon.port}", "-CAfile", path("ca.pem"), "-verify_return_error",
                               "-quiet", *shown], input="GET /v1/access HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                              capture_output=True, text=True, timeout=60, check=False)
        check_in(f"HTTP/1.1 {wanted[0]} ", done.stdout, f"{name}: {done.stderr}")
    check_equal(ask(daemon, "/v1/leases/a")[0], 200, "nobody may look")
    trusts = context()
    trusts.load_cert_chain(path("foreign.pem"), path("foreign.key"))
    check_equal(ask(daemon, "/v1/leases/a", trusts)[0], 401, "who shows a bad one is not nobody")
    local = Daemon("pawl-lease", *world.flags, "--listen-unix", path("lease.sock"))
    done = subprocess.run(["curl", "-sS", "--unix-socket", path("lease.sock"), "http://localhost/v1/access"], capture_output=True, text=True,
                          timeout=20, check=False)
    check_in('"identity":"local","by":"socket"', done.stdout + done.stderr, "a unix socket speaks no TLS")
    check_equal(local.end(), 0)
    world.close()


main()
