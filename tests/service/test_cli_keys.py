#!/usr/bin/python3
"""test_cli_keys.py - pawl keygen, and pawl verify."""

import os
import resource
import signal
import stat
import subprocess
import tempfile

from world import BUILD, check, check_equal, check_in, main, test
from world.wait import DEADLINE_S

PAWL = str(BUILD / "pawl")
FOLDER = tempfile.TemporaryDirectory()
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}
SIGNED = '34;lease="orders:42";store="Q2x8Zk3v9a1BQ2x8Zk3v9a1B";mode=exclusive;epoch=1;hold="Zk3v9a1BQ2x8";kid="k1"'
HEADER = SIGNED + ";sig=:SAr4sVvd9+8DMPXMA+P2/FVCA3d7DKH/u9zXKHlZE/I=:"
SPARE_BIT, FORGED = HEADER.replace("I=:", "J=:"), f"{SIGNED};sig=:{'A' * 43}=:"
NOWHERE = "/nowhere/keys"


def pawl(*words, status=0, stdin="", **how):
    done = subprocess.run([PAWL, *words], input=stdin.encode(), stdout=how.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                          timeout=DEADLINE_S, check=False, env=CLEAN, cwd=FOLDER.name, **how)
    done.stdout, done.stderr = (done.stdout or b"").decode(), done.stderr.decode()
    check_equal(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
    check(status not in (1, 64) or (done.stdout == "" and done.stderr.startswith("pawl: ")), f"{words}: {done.stdout}{done.stderr}")
    return done


def path(name):
    return os.path.join(FOLDER.name, name)


def written(name, text):
    with open(path(name), "w", encoding="ascii") as file:
        os.chmod(path(name), 0o600)
        file.write(text)
    return name


K1 = written("k1", "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")


def signs(line):
    """Whether a service takes this as its key file."""
    done = subprocess.run([BUILD / "pawl-lease", "--check-config", "--keys", written("line", line)], env=CLEAN, cwd=FOLDER.name,
                          capture_output=True, check=False, timeout=DEADLINE_S)
    return done.returncode == 0


# -- keygen


@test
def keygen_prints_one_line_of_a_key_file_named_after_the_day():
    first, second = pawl("keygen"), pawl("keygen")
    check_equal((first.stderr, len(first.stdout), first.stdout[:3], first.stdout.find(":"), first.stdout.index("\n")),
                ("", len("k20261121:") + 45, "k20", 9, len(first.stdout) - 1))
    check(signs(first.stdout) and first.stdout != second.stdout, first.stdout)


@test
def keygen_takes_a_name_and_refuses_one_that_is_none():
    good = pawl("keygen", "--kid", "eu-1").stdout
    check(good.startswith("eu-1:") and signs(good), good)
    check_in("1 to 32 characters", pawl("keygen", "--kid", "eu 1", status=64).stderr)
    pawl("keygen", "--kid=", status=64)


@test
def keygen_makes_a_file_that_only_its_owner_reads_and_shows_no_key():
    done = pawl("keygen", "--out", "made", "--kid", "new")
    check("new:" not in done.stdout + done.stderr, done)
    check_equal(stat.S_IMODE(os.stat(path("made")).st_mode), 0o600)
    with open(path("made"), encoding="ascii") as file:
        check(signs(file.read()), "it is no key file")


@test
def keygen_never_overwrites_a_file():
    check_in("not overwritten", pawl("keygen", "--out", K1, status=1).stderr)
    pawl("verify", HEADER, "--keys", K1)  # the old key is still in it
    check_in("/nowhere/keys could not be made: No such file", pawl("keygen", "--out", NOWHERE, status=1).stderr)


@test
def a_key_that_cannot_be_written_is_a_failure_and_leaves_no_file():
    def fill_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    pawl("keygen", "--out", "full", status=1, preexec_fn=fill_disk)
    check(not os.path.exists(path("full")), "a part of it is there")
    with open("/dev/full", "wb") as full:
        pawl("keygen", status=1, stdout=full)


# -- verify


@test
def verify_tells_what_a_good_token_says():
    said = {"lease": "orders:42", "store": "Q2x8Zk3v9a1BQ2x8Zk3v9a1B", "token": 34, "epoch": 1, "mode": "exclusive", "hold": "Zk3v9a1BQ2x8",
            "kid": "k1", "signature": "good"}
    done = pawl("verify", HEADER, "--keys", K1)
    check_equal((done.stdout, done.stderr), ("".join(f"{name:<10} {value}\n" for name, value in said.items()), ""))
    text = ",".join(f'"{name}":{value}' if isinstance(value, int) else f'"{name}":"{value}"' for name, value in said.items())
    check_equal(pawl("verify", HEADER, "--keys", K1, "-o", "json").stdout, f"{{{text}}}\n")


@test
def verify_says_77_of_a_bad_signature_and_of_an_unknown_key():
    forged = pawl("verify", FORGED, "--keys", K1, "-o", "json", status=77)
    check_in('"signature":"bad"', forged.stdout)
    check_in("THE SIGNATURE IS WRONG", forged.stderr)
    check_in("signature  bad\n", pawl("verify", HEADER, "--keys", written("k2", "k2:MDEyMzQ1Njc4OWFiY2RlZg==\n"), status=77).stdout)


@test
def verify_without_keys_says_loudly_that_nothing_was_checked():
    done = pawl("verify", FORGED)
    check_in("signature  unchecked\n", done.stdout)
    check_in("THE SIGNATURE WAS NOT CHECKED", done.stderr)


@test
def verify_reads_the_token_from_standard_input_without_its_line_end():
    for text, status in ((HEADER, 0), (HEADER + "\n", 0), (HEADER + "\r\n", 0), (HEADER + "\n\n", 1), (HEADER + " ", 1), ("", 1), ("\n", 1)):
        pawl("verify", "-", "--keys", K1, stdin=text, status=status)


@test
def verify_says_1_of_what_is_no_token():
    for token in ("", "34", "0" + HEADER, SPARE_BIT, "Fencing-Token: " + HEADER):
        check_in("this is no fencing token", pawl("verify", token, "--keys", K1, status=1).stderr)


@test
def verify_says_78_of_keys_that_cannot_be_used():
    check_in("/nowhere/keys cannot be read", pawl("verify", HEADER, "--keys", NOWHERE, status=78).stderr)
    check_in("line 1: has no colon", pawl("verify", HEADER, "--keys", written("bad", "nonsense\n"), status=78).stderr)


@test
def what_a_command_does_not_understand_is_64():
    for words in (["verify"], ["verify", HEADER, HEADER], ["verify", HEADER, "-o", "yaml"], ["verify", HEADER, "--key", "x", "--nonsense"],
                  ["keygen", "extra"], ["keygen", "--nonsense"]):
        pawl(*words, status=64)


main()
