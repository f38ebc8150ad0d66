#!/usr/bin/python3
"""test_completion.py - what the shells complete is what --help says: bash, zsh and fish are really asked."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

from world import World, check, check_equal, check_in, main, skip, test
from world.cli import PAWL, Cli
from world.wait import DEADLINE_S

world = World()
pawl = Cli(world)
FLAG = re.compile(r"^  (?:-(\w), |    )--([\w-]+)", re.M)
HOME = os.path.join(world.folder, "home")
os.makedirs(HOME)


def commands():
    text = pawl("--help").stdout.split("Commands (")[1].split("\nFlags:")[0]
    return re.findall(r"^  ([a-z-]+) ", text, re.M)


def flags_of(*words):
    return {"--" + name for _, name in FLAG.findall(pawl(*words, "--help").stdout)}


def words(*typed):
    """What the program says may come next."""
    return [line.split("\t")[0] for line in pawl("--complete-words", *typed).stdout.splitlines()]


def environment(**more):
    return pawl.environment(PATH=os.path.dirname(PAWL) + ":" + os.environ["PATH"], HOME=HOME, **more)


def ran(shell, *argv, text="", **variables):
    if shutil.which(shell) is None:
        skip(f"there is no {shell} on this machine")
    done = subprocess.run([shell, *argv], input=text, env=environment(**variables), capture_output=True, text=True, cwd=HOME,
                          timeout=DEADLINE_S, check=False)
    check_equal((done.returncode, done.stderr), (0, ""), f"{shell} {argv}")
    return done.stdout


def bash(line, setup=""):
    """What bash would offer at the end of the line, split as readline does."""
    script = f"""{setup}
eval "$(pawl completion bash)"
line=$1
COMP_LINE=$line COMP_POINT=${{#line}} COMP_WORDS=()
rest=$line
while [[ $rest =~ ^[[:space:]]*([:=]|[^:=[:space:]]+) ]]; do
    COMP_WORDS+=("${{BASH_REMATCH[1]}}")
    rest=${{rest:${{#BASH_REMATCH}}}}
done
[[ $line == *' ' || $line == *[:=] ]] && COMP_WORDS+=('')
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
complete -p pawl >/dev/null || exit 9
_pawl pawl "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return [one for one in ran("bash", "--norc", "-c", script, "bash", line).splitlines() if one]


# -- the program


@test
def every_command_and_every_flag_of_it_is_offered_and_nothing_else():
    check_equal(words(""), commands())
    for command in commands():
        if command in ("store", "access"):
            continue
        check_equal(set(words(command, "--")), flags_of(command), command)
    check_equal(words("store", ""), ["init", "status", "recover", "accept-loss", "failover", "forget", "registrar", "node", "marks", "history"])
    check_equal(words("access", ""), ["new", "hash", "check", "explain", "whoami"])
    for group in ("store", "access"):
        for command in words(group, ""):
            check_equal(set(words(group, command, "--")), flags_of(group, command), command)
    check_equal(set(words("--")), {"--lease-url", "--gateway-url", "--access-token-file", "--cacert", "--cert", "--cert-key",
                                   "--allow-plaintext", "--help"})


@test
def values_and_arguments_are_offered_as_their_names_say():
    check_equal(words("acquire", "a", "-o", ""), ["text", "json", "env"])
    check_equal(words("acquire", "--output", "j"), ["json"])
    check_equal(words("acquire", "--output=e"), ["--output=env"])
    check_equal(words("acquire", "--holder", ""), [])
    check_equal(words("acquire", "--holder", "-o", ""), [":leases"])  # -o is the holder's name
    check_equal(words("acquire", ""), [":leases"])
    check_equal(words("acquire", "a", ""), [])
    check_equal(words("put", "k", ""), [":files"])
    check_equal(words("dev", "--data", ""), [":directories"])
    check_equal(words("routes", "a"), ["adopt"])
    check_equal(words("completion", ""), ["bash", "zsh", "fish"])
    check_equal(words("--lease-url", "http://x", "ge"), ["get"])
    check_equal(words("get", "--", "--"), [":leases"])
    for typed, behind in ((["--", "ls", "-l", ""], 3), (["-n", "ls", "--ttl", ""], 3), (["--ttl", "5s", ""], 1), (["--", ""], 1)):
        check_equal(words("run", "a", *typed), [f":command {behind}"], str(typed))
    check_in("--ttl", words("run", "a", "--"))
    check_in("bash, zsh or fish", pawl("completion", "tcsh", status=64).stderr)


@test
def what_was_given_is_not_offered_again_and_nothing_is_done(name):
    check("--ttl" not in words("acquire", "--ttl", "3s", "--"))
    check("--ttl" not in words("acquire", "--ttl=3s", "--"))
    words("acquire", name, "")
    words("force-release", name, "--yes", "")
    check_equal(world.look(name)["token"], 0)
    check_equal(pawl("--complete-words", "frobnicate", "", status=64).stdout, "")
    check_equal(pawl("--complete-words", "acquire", "--", PAWL_TTL="soon").stderr, "")


# -- bash


@test
def bash_offers_commands_flags_and_values():
    check_equal(bash("pawl "), commands())
    check_equal(bash("pawl acq"), ["acquire"])
    check_equal(set(bash("pawl acquire --")), flags_of("acquire"))
    check_equal(bash("pawl get -o j"), ["json"])
    check_equal(bash("pawl get --output="), ["text", "json", "env"])
    check_equal(bash("pawl get --output=e"), ["env"])
    check_equal(bash("pawl store rec"), ["recover"])


@test
def bash_offers_the_names_of_leases_whatever_their_colons():
    stem = world.name("bash")
    for end in ("one", "two:x"):
        world.acquire(f"{stem}:{end}")
    kind, number = stem.split(":")
    check_equal(sorted(bash(f"pawl get {stem}:")), ["one", "two:x"])
    check_equal(bash(f"pawl get {stem}:two:"), ["x"])
    check_equal(sorted(bash(f"pawl get {kind[:2]}")), [f"{kind}:{number}:one", f"{kind}:{number}:two:x"])
    whole = bash(f"pawl get {stem}:t", "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}")
    check_equal(whole, [f"{stem}:two:x"])


@test
def bash_offers_files_and_directories():
    os.makedirs(os.path.join(HOME, "some dir"), exist_ok=True)
    with open(os.path.join(HOME, "some file"), "w", encoding="utf-8"):
        pass
    check_equal(sorted(bash("pawl put k so")), ["some dir", "some file"])
    check_equal(bash("pawl dev --data so"), ["some dir"])


@test
def bash_and_zsh_complete_on_a_terminal():
    """With readline itself, and with what zsh has."""
    for shell, argv, setup in (("bash", ["bash", "--norc", "--noprofile", "-i"], ""), ("zsh", ["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u -D; ")):
        if shutil.which(shell) is None:
            skip(f"there is no {shell} on this machine")
        check_in("pawl force-release", typed(shell, argv, setup + f'eval "$(pawl completion {shell})"', "pawl forc\t"))


def typed(shell, argv, setup, line):
    """What the terminal shows when this is typed into the shell."""
    parent, child = pty.openpty()
    process = subprocess.Popen(argv, stdin=child, stdout=child, stderr=child, cwd=HOME, start_new_session=True,
                               env=environment(PS1="READY> ", TERM="xterm"))
    os.close(child)
    text, step, end = "", 0, time.monotonic() + DEADLINE_S
    steps = [("", setup + "; echo SET''UP\n"), ("SETUP", line), (line.rstrip("\t").split(" ")[0], None)]
    try:
        while time.monotonic() < end:
            if step < 2 and steps[step][0] in text:
                os.write(parent, steps[step][1].encode())
                step += 1
                text = "" if step == 2 else text
            elif step == 2 and "force-release" in text:
                return text
            if select.select([parent], [], [], 0.05)[0]:
                text += os.read(parent, 65536).decode(errors="replace")
    finally:
        process.kill()
        process.wait()
        os.close(parent)
    raise TimeoutError(f"{shell} showed {text!r}")


# -- zsh and fish


@test
def zsh_takes_it():
    path = os.path.join(HOME, "_pawl")
    with open(path, "w", encoding="utf-8") as file:
        file.write(pawl("completion", "zsh").stdout)
    ran("zsh", "-n", path)
    out = ran("zsh", "-f", "-c", 'autoload -Uz compinit; compinit -u -D; eval "$(pawl completion zsh)"; print ${_comps[pawl]}')
    check_equal(out, "_pawl\n")


def fish(line):
    return [one.split("\t")[0] for one in
            ran("fish", "--no-config", "-c", f"pawl completion fish | source; complete -C '{line}'").splitlines()]


@test
def fish_offers_the_same():
    path = os.path.join(HOME, "pawl.fish")
    with open(path, "w", encoding="utf-8") as file:
        file.write(pawl("completion", "fish").stdout)
    ran("fish", "--no-execute", path)
    check_equal(sorted(fish("pawl ")), sorted(commands()))
    for command in ("acquire", "watch", "doctor"):
        check_equal(set(fish(f"pawl {command} --")), flags_of(command), command)
    stem = world.name("fish")
    world.acquire(f"{stem}:one")
    check_equal(fish(f"pawl get {stem}:"), [f"{stem}:one"])


main(world.close)
