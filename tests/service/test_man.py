#!/usr/bin/python3
"""test_man.py - the manual pages: no warning of groff or man, every flag and command in them, nothing that is not."""

import os
import re
import shutil
import subprocess
import tempfile

from world import BUILD, ROOT, check, check_equal, check_in, main, skip, test
from world.wait import DEADLINE_S

SOURCES = ROOT / "docs/man"
PAGES = sorted(path.name[:-len(".md")] for path in SOURCES.glob("*.md"))
WANTED = {"pawl.1", "pawl-lease.8", "pawl-gateway.8", "pawl-routes.5", "pawl-protocol.7"}
GROUPS = ("store", "access")
FLAG = re.compile(r"^ {2,6}(?:-\w, )?--([\w-]+)", re.M)


def environment():
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}
    return {**clean, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANROFFSEQ": "", "GROFF_NO_SGR": "1"}


def run(*argv, status=0):
    if shutil.which(argv[0]) is None:
        skip(f"there is no {argv[0]} on this machine")
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S, check=False, env=environment())
    check_equal(done.returncode, status, f"{argv}: {done.stderr}")
    return done


def page(name):
    return str(BUILD / "man" / name)


def shown(name):
    """The page as a person reads it, in one line."""
    text = run("groff", "-Tutf8", "-man", "-rLL=100000n", "-P-c", "-P-b", "-P-o", "-P-u", page(name)).stdout
    return re.sub(r"\s+", " ", text)


def help_of(*words):
    return run(str(BUILD / words[0]), *words[1:], "--help").stdout


def commands(*words):
    return re.findall(r"^  ([a-z][a-z-]*)  +\S", help_of(*words).split("\nCommands (")[1].split("\nFlags:")[0], re.M)


def flags(*words):
    return FLAG.findall(help_of(*words).partition("\nFlags:\n")[2])


def section(text, title, *ends):
    """Of a page: what stands between a heading and the next."""
    check_in(title, text)
    rest = text.split(title, 1)[1]
    return rest[:min([rest.index(end) for end in ends if end in rest] or [len(rest)])]


@test
def every_page_is_there_and_was_made_from_its_source():
    check(WANTED <= set(PAGES), PAGES)
    for name in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, name)
            with open(page(name), encoding="ascii") as file:
                made = file.read()
            version = re.search(r'"Pawl ([\d.]+)"', made).group(1)
            run(str(ROOT / "deploy/build/man.py"), "--programs", str(BUILD), "--version", version,
                str(SOURCES / (name + ".md")), out)
            with open(out, encoding="ascii") as file:
                check_equal(made, file.read(), name)


@test
def man_and_groff_have_nothing_to_say_against_them():
    for name in PAGES:
        check_equal(run("groff", "-ww", "-z", "-man", "-Tutf8", page(name)).stderr, "", name)
        check_equal(run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page(name)).stderr, "", name)
    if shutil.which("mandoc"):
        for name in PAGES:
            run("mandoc", "-T", "lint", "-W", "error", page(name))


@test
def every_page_has_a_name_that_whatis_finds():
    for name in PAGES:
        program = name.rsplit(".", 1)[0]
        check_in(f"NAME {program} - ", shown(name).replace("\u2010", "-").replace("\u2212", "-"))


@test
def every_command_and_every_flag_is_in_its_page():
    text = shown("pawl.1")
    names = [["pawl", name] for name in commands("pawl")] + [["pawl", group, name] for group in GROUPS for name in commands("pawl", group)]
    for words in names:
        if words[1:] in [[group] for group in GROUPS]:
            continue
        usage = re.search(r"^Usage: (.*)$", help_of(*words), re.M).group(1)
        part = section(text, f" {re.sub(r' +', ' ', usage)} ", " Examples: ")
        for flag in flags(*words):
            check(re.search(rf"(?<![\w-])--{flag}(?![\w-])", part), f"--{flag} of {words} is not in the manual")
    for program in ("pawl-lease", "pawl-gateway"):
        text = shown(program + ".8")
        check("(default 0)" not in text, f"{program}: 0 stands for something else")
        for flag in flags(program):
            check(re.search(rf"(?<![\w-])--{flag}(?![\w-])", text), f"--{flag} of {program} is not in the manual")


@test
def the_flags_of_pawl_run_are_the_same_wherever_they_stand():
    wanted = sorted({*flags("pawl", "run")} - {"help"})
    check(len(wanted) > 5, wanted)
    text = shown("pawl-run.1")
    options = section(text, " OPTIONS ", " ENVIRONMENT OF ")
    synopsis = section(text, " SYNOPSIS ", " DESCRIPTION ")
    source = (ROOT / "docs/run.md").read_text(encoding="utf-8")
    table = section(source, "\n## The flags\n", "\n## ")
    check_equal(sorted(re.findall(r"^\|[^|]*`--([\w-]+)", table, re.M)), wanted, "docs/run.md")
    for flag in wanted:
        check(re.search(rf"(?<![\w-])--{flag}(?![\w-])", options), f"--{flag} is not among the options of pawl-run(1)")
        # A switch with a letter stands there by its letter.
        short = re.search(rf"-(\w), --{flag}(?![\w-])", help_of("pawl", "run"))
        check(re.search(rf"(?<![\w-])(?:--{flag}{'|-' + short.group(1) if short else ''})(?![\w-])", synopsis), f"--{flag} is not in the synopsis")
    for what, said in (("docs/run.md", source), ("pawl-run.1", text)):
        for flag in re.findall(r"(?<![\w-])--([a-z][\w-]+)", said):
            check(flag in {*wanted, "help"}, f"{what}: --{flag} is no flag of pawl run")


@test
def no_page_tells_of_a_flag_that_is_not_there():
    known = {flag for words in (["pawl-lease"], ["pawl-gateway"], *(["pawl", name] for name in commands("pawl") if name not in GROUPS),
                                *(["pawl", group, name] for group in GROUPS for name in commands("pawl", group)))
             for flag in flags(*words)} | {"help", "version", "lease-url", "gateway-url"}
    foreign = {"data-binary", "query-gpg"}  # of curl, in examples
    for name in PAGES:
        for flag in re.findall(r"(?<![\w-])--([a-z][\w-]+)", shown(name)):
            check(flag in known | foreign, f"{name}: --{flag} is no flag of anything")


@test
def what_a_source_may_not_have_is_an_error():
    for text in ("no title\n", "# x(1) - y\n\n<!-- flags: pawl frobnicate -->\n", "# x(1) - y\n\n```\nopen\n",
                 "# x(1) - y\n\n<!-- include: docs/routes.md \"No such heading\" -->\n", "# x(1) - y\n\n<!-- what: ever -->\n"):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "x.1.md")
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            out = os.path.join(folder, "x.1")
            done = run(str(ROOT / "deploy/build/man.py"), "--programs", str(BUILD), source, out, status=1)
            check(done.stderr.startswith("man.py: ") and not os.path.exists(out), done.stderr)


@test
def text_that_roff_would_obey_is_shown():
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "x.1.md"), os.path.join(folder, "x.1")
        with open(source, "w", encoding="utf-8") as file:
            file.write("# x(1) - y\n\n## DESCRIPTION\n\n.so /etc/passwd\n\n'\\\" \\n `a\\b` é --x **.b** a_b_c\n\n```\n.so /etc/passwd\n```\n")
        run(str(ROOT / "deploy/build/man.py"), "--programs", str(BUILD), source, out)
        text = run("groff", "-ww", "-Tutf8", "-man", "-P-c", "-P-b", "-P-o", "-P-u", out).stdout
        check_equal(text.count(".so /etc/passwd"), 2, text)
        check_in("'\\\" \\n a\\b é --x .b a_b_c", text)


main()
