#!/usr/bin/python3
"""libpawl and the command line over https: a process of ours takes TLS off in front of the real services, or breaks it."""

import json
import os
import ssl
import subprocess
import tempfile
from pathlib import Path

from client_world import Line, Plan, World, program
from world import check, check_equal, check_in, main, run_daemon, test, test_in
from world.certificate import certificate

WORLD = World()
FOLDER = Path(tempfile.mkdtemp(prefix="pawl-https-"))


certificate(FOLDER, "ours", "DNS:localhost,IP:127.0.0.1")
certificate(FOLDER, "other", "DNS:elsewhere.example")
certificate(FOLDER, "client", "DNS:localhost,IP:127.0.0.1", "clientAuth")


def line_of(daemon, name="ours", client=None):
    """https in front of a service; client: whose certificate is wanted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(FOLDER / f"{name}.pem", FOLDER / f"{name}.key")
    if client:
        context.load_verify_locations(FOLDER / f"{client}.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    return Line(daemon.port, tls=context)


def methods(line):
    return [request.split(b" ")[0].decode() for request in line.requests]


def pawl(*words, url, trusted="ours", **more):
    trusts = {} if trusted is None else {"SSL_CERT_FILE": str(FOLDER / f"{trusted}.pem")}
    return run_daemon("pawl", *words, environment={"PAWL_LEASE_URL": url, "PAWL_GATEWAY_URL": url, **trusts, **more}, deadline_s=30)


def state(name):
    return WORLD.look(name)["state"]


@test
def a_lease_is_acquired_renewed_and_released_over_https(name):
    lease, gateway = line_of(WORLD.lease_daemon), line_of(WORLD.gateway_daemon)
    os.environ["SSL_CERT_FILE"] = str(FOLDER / "ours.pem")
    with program(lease.url, gateway.url) as run:
        grant = run(f"acquire {name}")
        check_equal(grant["outcome"], "OK", repr(grant))
        check_equal(state(name), "held")
        check_equal(run("renew")["outcome"], "OK")
        check_equal(run("release")["outcome"], "OK")
    del os.environ["SSL_CERT_FILE"]
    check_equal(state(name), "free")
    check_equal(methods(lease), ["POST", "PUT", "DELETE"])
    for one in (lease, gateway):
        one.close()


@test
def a_body_of_many_records_is_stored_and_read_back_whole():
    lease, gateway = line_of(WORLD.lease_daemon), line_of(WORLD.gateway_daemon)
    name, text = WORLD.name(), "".join(f"{i:07d}\n" for i in range(60000))
    (FOLDER / "body").write_text(text)
    grant = pawl("acquire", name, "-o", "env", url=lease.url)
    check_equal(grant.returncode, 0, grant.stderr)
    token = next(line.split("=", 1)[1].strip("'\"") for line in grant.stdout.replace("export ", "").splitlines()
                 if line.startswith("PAWL_FENCING_TOKEN="))
    put = pawl("put", name, str(FOLDER / "body"), url=gateway.url, PAWL_FENCING_TOKEN=token)
    check_equal(put.returncode, 0, put.stderr)
    cat = pawl("cat", name, url=gateway.url)
    check_equal((cat.returncode, cat.stdout == text), (0, True), cat.stderr)
    for one in (lease, gateway):
        one.close()


@test
def who_is_not_who_the_url_says_is_sent_nothing():
    plain = f"https://127.0.0.1:{WORLD.lease_daemon.port}"
    wrong, ours, client = (line_of(WORLD.lease_daemon, name) for name in ("other", "ours", "client"))
    for url, trusted in ((wrong.url, "other"), (wrong.url, "ours"), (ours.url, None), (ours.url, "other"), (ours.url, "missing"),
                         (client.url, "client"), (plain, "ours")):
        name = WORLD.name()
        told = pawl("acquire", name, url=url, trusted=trusted)
        check_equal(told.returncode, 69, f"{url} {trusted}: {told.stdout}")
        check_in("certainly", told.stderr)
        check_equal(state(name), "free")
    check_equal(wrong.requests + ours.requests + client.requests, [])
    for one in (wrong, ours, client):
        one.close()


@test_in(lambda: line_of(WORLD.lease_daemon, client="client"))
def a_certificate_is_shown_to_who_asks_for_one(lease):
    ours, other = ({"PAWL_CERT": f"{FOLDER}/{name}.pem", "PAWL_CERT_KEY": f"{FOLDER}/{name}.key"} for name in ("client", "other"))
    flags = ["--cacert", f"{FOLDER}/ours.pem", "--cert", ours["PAWL_CERT"], "--cert-key", ours["PAWL_CERT_KEY"]]
    for words, trusted, env, status in (([], "ours", ours, 0), (flags, "other", other, 0), ([], None, {"PAWL_CACERT": f"{FOLDER}/ours.pem", **ours}, 0),
                                        ([], "ours", {}, 69), ([], "ours", other, 69), ([], "other", ours, 69),
                                        ([], "ours", {**ours, "PAWL_CERT_KEY": other["PAWL_CERT_KEY"]}, 69),
                                        ([], "ours", {**ours, "PAWL_CERT": f"{FOLDER}/none.pem"}, 69),
                                        ([], "ours", {"PAWL_CERT": ours["PAWL_CERT"]}, 64)):
        lease.plan()
        told = pawl("get", WORLD.name(), *words, url=lease.url, trusted=trusted, **env)
        check_equal((told.returncode, methods(lease)), (status, [] if status else ["GET"]), f"{words} {trusted} {env}: {told.stderr}")
    with program(lease.url, lease.url, ca=f"{FOLDER}/ours.pem", cert=ours["PAWL_CERT"], cert_key=ours["PAWL_CERT_KEY"]) as run:
        check_equal(run(f"look {WORLD.name()}")["outcome"], "OK")


@test
def a_certificate_is_shown_also_when_another_authority_was_asked_for():
    argv = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-naccept", "1", "-www", "-verify", "1", "-CAfile", f"{FOLDER}/client.pem",
            "-cert", f"{FOLDER}/ours.pem", "-key", f"{FOLDER}/ours.key"]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        port = next(line.rsplit(":", 1)[1].strip() for line in server.stdout if line.startswith("ACCEPT "))
        pawl("get", WORLD.name(), url=f"https://127.0.0.1:{port}", PAWL_CERT=f"{FOLDER}/other.pem", PAWL_CERT_KEY=f"{FOLDER}/other.key")
        check_in("pawl test other", server.communicate(timeout=30)[0])


@test
def an_answer_without_a_length_needs_the_word_of_tls_for_its_end():
    name, line = WORLD.name(), line_of(WORLD.lease_daemon)
    body = json.dumps(WORLD.look(name)).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    length = b"Content-Length: %d\r\n" % len(body)
    for fields, cut, status in ((length, None, 0), (b"", None, 0), (length, 10000, 0), (b"", 10000, 69)):
        line.plan(Plan(canned=head + fields + b"\r\n" + body, answer=cut))
        told = pawl("get", name, url=line.url)
        check_equal(told.returncode, status, f"{fields} {cut}: {told.stderr}")
        check(status == 0 or "without TLS' word" in told.stderr, told.stderr)
    line.close()


main(WORLD.close)
