#!/usr/bin/python3
"""test_cli_access.py - pawl access; and docs/access.md: every file in it is good, every line of explain says what stands there."""

import json
import os
import re
import stat
import subprocess
import tempfile

from world import BUILD, ROOT, check, check_equal, check_in, main, test
from world.jwt import b64
from world.wait import DEADLINE_S

PAWL = str(BUILD / "pawl")
FOLDER = tempfile.TemporaryDirectory()
PAGE = (ROOT / "docs/access.md").read_text(encoding="utf-8")
TOKEN = re.compile(r"pawl_[\w-]{43}_[0-9a-f]{6}")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}


def pawl(*words, status=0, stdin=""):
    done = subprocess.run([PAWL, "access", *words], input=stdin, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
                          env=CLEAN, cwd=FOLDER.name)
    check_equal(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
    return done


def path(name):
    return os.path.join(FOLDER.name, name)


def write(name, text):
    with open(path(name), "w", encoding="utf-8") as file:
        file.write(text if isinstance(text, str) else json.dumps(text))
    os.chmod(path(name), 0o644)
    return name


# -- the commands


@test
def a_new_access_token_is_shown_once_with_its_line():
    token, line = pawl("new", "billing").stdout.splitlines()
    check(TOKEN.fullmatch(token), token)
    identities = json.loads("{" + line + "}")
    check_equal(list(identities), ["billing"])
    check_equal(pawl("hash", stdin=token + "\n").stdout, json.dumps(identities["billing"]["access_tokens"][0]) + "\n")
    check_equal(pawl("hash", stdin=token).stdout, pawl("hash", stdin=token + "\r\n").stdout)
    check(pawl("new", "billing").stdout.splitlines()[0] != token)
    pawl("check", write("new.json", {"identities": identities}))


@test
def a_file_for_it_is_only_its_owners_and_never_overwritten():
    done = pawl("new", "billing", "--out", "token")
    check(not TOKEN.search(done.stdout + done.stderr), done.stdout)
    check_equal(stat.S_IMODE(os.stat(path("token")).st_mode), 0o600)
    with open(path("token"), encoding="ascii") as file:
        token = file.read()
    check(TOKEN.fullmatch(token.removesuffix("\n")) and token.endswith("\n"), token)
    check_in(json.loads(pawl("hash", stdin=token).stdout), done.stdout)
    check_in("is there already and is not overwritten", pawl("new", "billing", "--out", "token", status=1).stderr)
    os.symlink(path("nowhere"), path("link"))
    pawl("new", "billing", "--out", "link", status=1)
    check(not os.path.exists(path("nowhere")))
    with open(path("token"), encoding="ascii") as file:
        check_equal(file.read(), token)


@test
def what_is_no_identity_and_no_access_token_is_refused_and_not_repeated():
    for name in ("", "a:b", "-a", "x" * 65, "nobody", "known"):
        check(not TOKEN.search(pawl("new", "--", name, status=64).stdout), name)
    token = pawl("new", "a").stdout.splitlines()[0]
    for wrong in ("", "\n", token[:-1], token + "x", token + "\n\n", token[:20] + ("A" if token[20] != "A" else "B") + token[21:], "pawl_"):
        done = pawl("hash", stdin=wrong, status=1)
        check_equal(done.stdout, "")
        check(token[5:20] not in done.stderr, done.stderr)
    check(token not in pawl("hash", token, status=64).stdout)


@test
def check_says_the_place_or_what_to_think_about():
    good = pawl("check", write("good.json", {"identities": {"a": {}}, "rules": [
        {"who": ["nobody"], "may": ["observe"]}, {"who": ["a"], "may": ["force-release"], "on": ["*"]}]}))
    check(re.fullmatch(r"good: sha256 [0-9a-f]{64}\n", good.stdout), good.stdout)
    check_equal(good.stderr, "pawl: warning: rules[0]: names nobody: everybody who reaches the service may do this\n"
                             "pawl: warning: rules[1]: gives force-release on *, on every lease there is\n")
    overlaps = {"identities": {name: {} for name in ("app", "app-2", "app.x", "apple", "other-a")}, "groups": {"apps": ["app", "app-2"]}}
    for who, pattern, said in (("known", "{me}-*", "app-2"), ("apps", "{me}-a:*", "app-2"), ("known", "{me}.*", "app.x"), ("known", "{me}:*", ""),
                               ("known", "{me}", ""), ("app-2", "{me}-*", ""), ("known", "{me}_*", "")):
        write("me.json", {**overlaps, "rules": [{"who": [who], "may": ["look"], "on": [pattern]}]})
        check_equal(pawl("check", "me.json").stderr, said and f"pawl: warning: rules[0]: {{me}}{pattern[4]} of app is also how the names of {said} "
                    "begin: take {me}:\n", pattern)
    issuer = {"issuers": {"k8s": {"iss": "https://k", "aud": "pawl", "jwks": path("k8s.json"), "algs": ["RS256"]}}}
    check_in("issuers.k8s.jwks: ", pawl("check", write("issuer.json", issuer), status=78).stderr)
    bad = write("bad.json", {"rules": [{"who": ["known"], "may": ["look"], "on": ["orders*"]}]})
    check_in("pawl: the access file bad.json is refused: rules[0].on[0]: in front of * stands", pawl("check", bad, status=78).stderr)
    check_in("line 1: ", pawl("check", write("bad.json", '{"rules":[,]}'), status=78).stderr)
    check_in("No such file", pawl("check", "nowhere.json", status=78).stderr)
    os.chmod(path("good.json"), 0o664)
    check_in("others than its owner can change it", pawl("check", "good.json", status=78).stderr)


@test
def explain_says_the_rule_or_what_is_missing():
    write("x.json", {"identities": {"a": {}, "b": {}}, "rules": [
        {"who": ["b"], "may": ["look"], "on": ["*"]}, {"who": ["a"], "may": ["look", "session"], "on": ["a:*"]}]})
    check_equal(pawl("explain", "a", "look", "a:1", "--access", "x.json").stdout, "rules[1]: a may look a:1\n")
    check_equal(pawl("explain", "a", "session", "--access", "x.json").stdout, "rules[1]: a may session\n")
    for words, said in ((["a", "look", "b:1"], "on other names, not on b:1"), (["a", "read", "a:1"], "no rule gives a the verb read"),
                        (["c", "look", "a:1"], "no identity c"), (["nobody", "look", "a:1"], "no rule gives nobody"),
                        (["known", "look", "a:1"], "no identity known")):
        check_in(said, pawl("explain", *words, "--access", "x.json", status=77).stderr)
    for words in (["a", "look"], ["a", "session", "a:1"], ["a", "lok", "a:1"], ["a", "look", "a/1"], ["a"], ["a", "look", "a:1", "x"]):
        pawl("explain", *words, "--access", "x.json", status=64)
    pawl("explain", "a", "look", "a:1", status=64)
    pawl("explain", "a", "look", "a:1", "--access", "nowhere.json", status=78)


@test
def a_file_that_cannot_be_read_is_what_the_advice_is_about():
    said = pawl("whoami", "--access-token-file", path("none"), status=69).stderr
    check_in("Is --access-token-file (PAWL_ACCESS_TOKEN_FILE) right?", said)


@test
def help_begins_with_examples():
    for words in ([], ["new"], ["hash"], ["check"], ["explain"]):
        check(pawl(*words, "--help").stdout.startswith("Examples:\n  pawl access "), words)
    check_in("did you mean pawl access check?", pawl("chekc", status=64).stderr)
    check_in("missing argument: COMMAND", pawl(status=64).stderr)


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
        done = pawl("check", write("access.json", text.replace("/etc/pawl/k8s.json", path("k8s.json"))))
        check("begin: take" not in done.stderr, done.stderr)
        for line in lines.splitlines():
            words, _, wanted = line.partition("#")
            program, command, *words = words.split()
            check_equal((program, command, words[0]), ("pawl", "access", "explain"))
            wanted = wanted.strip()
            done = pawl(*words, status=77 if wanted == "77" else 0)
            check(wanted == "77" or done.stdout.startswith(f"{wanted}: "), f"{line}: {done.stdout}")


@test
def the_page_names_every_verb():
    table = PAGE.split("## Verbs")[1].split("\n## ")[0]
    said = pawl("explain", "a", "x", "--access", "x", status=64).stderr
    verbs = re.split(r", | or ", said.split(": it is ")[1].strip())
    check_equal(re.findall(r"^\| `([\w-]+)`", table, re.M), verbs)


main(FOLDER.cleanup)
