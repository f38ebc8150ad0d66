#!/usr/bin/python3
"""test_cli_files.py - pawl keygen, pawl verify and pawl access, which ask no service."""

import json
import os
import re
import resource
import signal
import stat
import subprocess
import tempfile

from world import BUILD, ROOT, check, check_equal, check_in, main, test
from world.jwt import b64
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


def written(name, text, mode=0o600):
    with open(path(name), "w", encoding="utf-8") as file:
        os.chmod(path(name), mode)
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
def keygen_prints_one_line_of_a_key_file_named_after_the_day_or_as_it_is_said():
    first, second = pawl("keygen"), pawl("keygen")
    check_equal((first.stderr, len(first.stdout), first.stdout[:3], first.stdout.find(":"), first.stdout.index("\n")),
                ("", len("k20261121-abcd:") + 45, "k20", 14, len(first.stdout) - 1))
    check(signs(first.stdout + second.stdout) and first.stdout[15:] != second.stdout[15:], first.stdout + second.stdout)
    good = pawl("keygen", "--kid", "eu-1").stdout
    check(good.startswith("eu-1:") and signs(good), good)
    check_in("1 to 32 characters", pawl("keygen", "--kid", "eu 1", status=64).stderr)
    pawl("keygen", "--kid=", status=64)


@test
def keygen_makes_a_file_that_only_its_owner_reads_shows_no_key_and_overwrites_none():
    done = pawl("keygen", "--out", "made", "--kid", "new")
    check("new:" not in done.stdout + done.stderr, done)
    check_equal(stat.S_IMODE(os.stat(path("made")).st_mode), 0o600)
    with open(path("made"), encoding="ascii") as file:
        check(signs(file.read()), "it is no key file")
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
def verify_says_77_of_a_bad_signature_and_of_an_unknown_key_and_loudly_that_nothing_was_checked():
    forged = pawl("verify", FORGED, "--keys", K1, "-o", "json", status=77)
    check_in('"signature":"bad"', forged.stdout)
    check_in("THE SIGNATURE IS WRONG", forged.stderr)
    check_in("signature  bad\n", pawl("verify", HEADER, "--keys", written("k2", "k2:MDEyMzQ1Njc4OWFiY2RlZg==\n"), status=77).stdout)
    done = pawl("verify", FORGED)
    check_in("signature  unchecked\n", done.stdout)
    check_in("THE SIGNATURE WAS NOT CHECKED", done.stderr)


@test
def verify_takes_one_token_without_its_line_end_and_keys_that_can_be_used():
    for text, status in ((HEADER, 0), (HEADER + "\n", 0), (HEADER + "\r\n", 0), (HEADER + "\n\n", 1), (HEADER + " ", 1), ("", 1), ("\n", 1)):
        pawl("verify", "-", "--keys", K1, stdin=text, status=status)
    for token in ("", "34", "0" + HEADER, SPARE_BIT, "Fencing-Token: " + HEADER):
        check_in("this is no fencing token", pawl("verify", token, "--keys", K1, status=1).stderr)
    for keys, said in ((NOWHERE, "/nowhere/keys cannot be read"), (written("bad", "nonsense\n"), "line 1: has no colon")):
        check_in(said, pawl("verify", HEADER, "--keys", keys, status=78).stderr)


@test
def what_a_command_does_not_understand_is_64():
    for words in (["verify"], ["verify", HEADER, HEADER], ["verify", HEADER, "-o", "yaml"], ["verify", HEADER, "--key", "x", "--nonsense"],
                  ["keygen", "extra"], ["keygen", "--nonsense"]):
        pawl(*words, status=64)
    for words in ([], ["new"], ["hash"], ["check"], ["explain"]):
        check(pawl("access", *words, "--help").stdout.startswith("Examples:\n  pawl access "), words)
    check_in("did you mean pawl access check?", pawl("access", "chekc", status=64).stderr)
    check_in("missing argument: COMMAND", pawl("access", status=64).stderr)


# -- access, and docs/access.md: every file in it is good, every line of explain says what stands there


PAGE = (ROOT / "docs/access.md").read_text(encoding="utf-8")
TOKEN = re.compile(r"pawl_[\w-]{43}_[0-9a-f]{6}")


def access(*words, **how):
    return pawl("access", *words, **how)


def write(name, text):
    return written(name, text if isinstance(text, str) else json.dumps(text), 0o644)


# -- the commands


@test
def a_new_access_token_is_shown_once_with_its_line():
    token, line = access("new", "billing").stdout.splitlines()
    check(TOKEN.fullmatch(token), token)
    identities = json.loads("{" + line + "}")
    check_equal(list(identities), ["billing"])
    check_equal(access("hash", stdin=token + "\n").stdout, json.dumps(identities["billing"]["access_tokens"][0]) + "\n")
    check_equal(access("hash", stdin=token).stdout, access("hash", stdin=token + "\r\n").stdout)
    check(access("new", "billing").stdout.splitlines()[0] != token)
    access("check", write("new.json", {"identities": identities}))


@test
def a_file_for_it_is_only_its_owners_and_never_overwritten():
    done = access("new", "billing", "--out", "token")
    check(not TOKEN.search(done.stdout + done.stderr), done.stdout)
    check_equal(stat.S_IMODE(os.stat(path("token")).st_mode), 0o600)
    with open(path("token"), encoding="ascii") as file:
        token = file.read()
    check(TOKEN.fullmatch(token.removesuffix("\n")) and token.endswith("\n"), token)
    check_in(json.loads(access("hash", stdin=token).stdout), done.stdout)
    check_in("is there already and is not overwritten", access("new", "billing", "--out", "token", status=1).stderr)
    os.symlink(path("nowhere"), path("link"))
    access("new", "billing", "--out", "link", status=1)
    check(not os.path.exists(path("nowhere")))
    with open(path("token"), encoding="ascii") as file:
        check_equal(file.read(), token)


@test
def what_is_no_identity_and_no_access_token_is_refused_and_not_repeated():
    for name in ("", "a:b", "-a", "x" * 65, "nobody", "known"):
        check(not TOKEN.search(access("new", "--", name, status=64).stdout), name)
    token = access("new", "a").stdout.splitlines()[0]
    for wrong in ("", "\n", token[:-1], token + "x", token + "\n\n", token[:20] + ("A" if token[20] != "A" else "B") + token[21:], "pawl_"):
        done = access("hash", stdin=wrong, status=1)
        check_equal(done.stdout, "")
        check(token[5:20] not in done.stderr, done.stderr)
    check(token not in access("hash", token, status=64).stdout)


@test
def check_says_the_place_or_what_to_think_about():
    good = access("check", write("good.json", {"identities": {"a": {}}, "rules": [
        {"who": ["nobody"], "may": ["observe"]}, {"who": ["a"], "may": ["force-release"], "on": ["*"]}]}))
    check(re.fullmatch(r"good: sha256 [0-9a-f]{64}\n", good.stdout), good.stdout)
    check_equal(good.stderr, "pawl: warning: rules[0]: names nobody: everybody who reaches the service may do this\n"
                             "pawl: warning: rules[1]: gives force-release on *, on every lease there is\n")
    overlaps = {"identities": {name: {} for name in ("app", "app-2", "app.x", "apple", "other-a")}, "groups": {"apps": ["app", "app-2"]}}
    for who, pattern, said in (("known", "{me}-*", "app-2"), ("apps", "{me}-a:*", "app-2"), ("known", "{me}.*", "app.x"), ("known", "{me}:*", ""),
                               ("known", "{me}", ""), ("app-2", "{me}-*", ""), ("known", "{me}_*", "")):
        write("me.json", {**overlaps, "rules": [{"who": [who], "may": ["look"], "on": [pattern]}]})
        check_equal(access("check", "me.json").stderr, said and f"pawl: warning: rules[0]: {{me}}{pattern[4]} of app is also how the names of {said} "
                    "begin: take {me}:\n", pattern)
    issuer = {"issuers": {"k8s": {"iss": "https://k", "aud": "pawl", "jwks": path("k8s.json"), "algs": ["RS256"]}}}
    check_in("issuers.k8s.jwks: ", access("check", write("issuer.json", issuer), status=78).stderr)
    bad = write("bad.json", {"rules": [{"who": ["known"], "may": ["look"], "on": ["orders*"]}]})
    check_in("pawl: the access file bad.json is refused: rules[0].on[0]: in front of * stands", access("check", bad, status=78).stderr)
    check_in("line 1: ", access("check", write("bad.json", '{"rules":[,]}'), status=78).stderr)
    check_in("No such file", access("check", "nowhere.json", status=78).stderr)
    os.chmod(path("good.json"), 0o664)
    check_in("others than its owner can change it", access("check", "good.json", status=78).stderr)


@test
def explain_says_the_rule_or_what_is_missing():
    write("x.json", {"identities": {"a": {}, "b": {}}, "rules": [
        {"who": ["b"], "may": ["look"], "on": ["*"]}, {"who": ["a"], "may": ["look", "session"], "on": ["a:*"]}]})
    check_equal(access("explain", "a", "look", "a:1", "--access", "x.json").stdout, "rules[1]: a may look a:1\n")
    check_equal(access("explain", "a", "session", "--access", "x.json").stdout, "rules[1]: a may session\n")
    for words, said in ((["a", "look", "b:1"], "on other names, not on b:1"), (["a", "read", "a:1"], "no rule gives a the verb read"),
                        (["c", "look", "a:1"], "no identity c"), (["nobody", "look", "a:1"], "no rule gives nobody"),
                        (["known", "look", "a:1"], "no identity known")):
        check_in(said, access("explain", *words, "--access", "x.json", status=77).stderr)
    for words in (["a", "look"], ["a", "session", "a:1"], ["a", "lok", "a:1"], ["a", "look", "a/1"], ["a"], ["a", "look", "a:1", "x"]):
        access("explain", *words, "--access", "x.json", status=64)
    access("explain", "a", "look", "a:1", status=64)
    access("explain", "a", "look", "a:1", "--access", "nowhere.json", status=78)


@test
def a_file_that_cannot_be_read_is_what_the_advice_is_about():
    said = access("whoami", "--access-token-file", path("none"), status=69).stderr
    check_in("Is --access-token-file (PAWL_ACCESS_TOKEN_FILE) right?", said)


# -- the page


@test
def every_example_of_the_page_is_good_and_judges_as_it_says():
    examples = re.findall(r"```json\n(.*?)```\n\n```sh\n(.*?)```", PAGE, re.S)
    check_equal(len(examples), 5)
    check_equal(len(re.findall(r"```json", PAGE)), 5)
    rsa = subprocess.run(["openssl", "genrsa", "2048"], capture_output=True, check=True).stdout
    modulus = subprocess.run(["openssl", "rsa", "-noout", "-modulus"], input=rsa, capture_output=True, check=True).stdout.decode().strip().partition("=")[2]
    write("k8s.json", {"keys": [{"kty": "RSA", "n": b64(bytes.fromhex(modulus)), "e": "AQAB"}]})
    for text, lines in examples:
        done = access("check", write("access.json", text.replace("/etc/pawl/k8s.json", path("k8s.json"))))
        check("begin: take" not in done.stderr, done.stderr)
        for line in lines.splitlines():
            words, _, wanted = line.partition("#")
            program, command, *words = words.split()
            check_equal((program, command, words[0]), ("pawl", "access", "explain"))
            wanted = wanted.strip()
            done = access(*words, status=77 if wanted == "77" else 0)
            check(wanted == "77" or done.stdout.startswith(f"{wanted}: "), f"{line}: {done.stdout}")


@test
def the_page_names_every_verb():
    table = PAGE.split("## Verbs")[1].split("\n## ")[0]
    said = access("explain", "a", "x", "--access", "x", status=64).stderr
    verbs = re.split(r", | or ", said.split(": it is ")[1].strip())
    check_equal(re.findall(r"^\| `([\w-]+)`", table, re.M), verbs)


main(FOLDER.cleanup)
