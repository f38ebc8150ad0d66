"""tool_rules.py - rules that other programs check: formatter, luacheck, two compilers, clang-tidy, objdump."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/build"))

import scripts  # noqa: E402

C = ("*.c", "*.h")


def told(done, otherwise):
    """What a tool that failed said, line by line."""
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines or [otherwise]


def tool(argv, tree):
    """Runs it as if nothing had called us: a make around us would hand its flags on."""
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(argv, capture_output=True, text=True, cwd=tree.root, env=env, check=False)


def layout(tree):
    """every C file is as clang-format leaves it"""
    files = list(tree.files(*C))
    if files:
        done = tool(["clang-format", "--dry-run", "-Werror", "--style=file", *files], tree)
        if done.returncode:
            places = re.findall(r"^(\S+?):(\d+):\d+: error: ", done.stderr, re.MULTILINE)
            first = {path: number for path, number in reversed(places)}
            yield from (f"{path}:{number}: clang-format -i would change this" for path, number in sorted(first.items()))
            if not first:
                yield from told(done, "clang-format failed")


def lists(tree):
    quorum = [scripts.QUORUM] if os.path.exists(os.path.join(tree.root, scripts.QUORUM)) else []
    return [scripts.LIST, *quorum]


def library(tree):
    """every script is in the library, and no local of a file but call.lua's is set by a call: it would outlive it"""
    try:
        there = {path for which in lists(tree) for path in scripts.listed(tree.root, which)}
    except scripts.Wrong as wrong:
        yield f"{scripts.LIST}:1: {wrong}"
        return
    for path in tree.files("*/scripts/*.lua"):
        if path not in there:
            yield f"{path}:1: it is not in {scripts.LIST}"
        is_operation = os.path.basename(os.path.dirname(path)) == "scripts"
        if is_operation or path.endswith("/scripts/lib/call.lua"):
            continue
        text = tree.read(path)
        kept = {name for names in re.findall(r"^local (?!function)([\w, ]+)", text, re.MULTILINE) for name in names.strip().split(", ")}
        for number, line in enumerate(text.splitlines(), 1):
            targets = re.findall(r"(?:^ +|; )(?!local )((?:[\w.\[\]]+, )*[\w.\[\]]+) = ", line)
            for name in re.findall(r"(?:^|, )(\w+)", ", ".join(targets)):
                if name in kept:
                    yield f"{path}:{number}: sets {name}, which outlives the call: what a call knows is in call.lua"


def records(tree):
    """every member that a script gives a record has its place, is emptied and is written in shared/member/scripts/lib/hold.lua"""
    path = "shared/member/scripts/lib/hold.lua"
    if not list(tree.files(path)):
        return
    bodies = dict(re.findall(r"^local function (hold_\w+)\(.*?\)\n(.*?)^end", tree.read(path), re.MULTILINE | re.DOTALL))
    places = set(re.findall(r"(\w+) = 0", bodies["hold_table"]))
    always = "".join(re.findall(r"^ {4}\S.* = .*\n", bodies["hold_parts"] + bodies["hold_new"] + bodies["hold_judge"], re.MULTILINE))
    for name in sorted(places - set(re.findall(r"\b(?:one|record)\.(\w+)(?=[^=\n]* = )", always))):
        yield f"{path}:1: {name} is not set anew for each call"
    letters = re.search(r"^local HOLD_MORE = \{(.*?)\}", tree.read(path), re.MULTILINE | re.DOTALL).group(1)
    for name in re.findall(r"'(\w+)'", letters):
        if not re.search(rf"\bone\.{name}\b", bodies["hold_pack"]):
            yield f"{path}:1: {name} is not written when a record has nothing else of HOLD_MORE"
    for path in tree.files("shared/member/scripts/lib/*.lua", "lease/scripts/*.lua", "gateway/scripts/lib/fence.lua"):
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            targets = " ".join(re.findall(r"(?:^|; ) *((?:[\w.]+, )*[\w.]+) = ", line))
            for name in re.findall(r"\b(?:record|hold)\.(\w+)\b", targets):
                if name not in places:
                    yield f"{path}:{number}: {name} has no place in hold_table()"


def luacheck(tree):
    """luacheck finds nothing in the library of scripts"""
    list(tree.files("*/scripts/*.lua"))
    for which in lists(tree):
        yield from luacheck_one(tree, which)


def luacheck_one(tree, which):
    try:
        library = scripts.Library({}, tree.root, which)
    except scripts.Wrong as wrong:
        yield f"{which}:1: {wrong}"
        return
    with tempfile.TemporaryDirectory() as place:
        whole = os.path.join(place, "library.lua")
        with open(whole, "w", encoding="utf-8") as file:
            file.write(library.text)
        done = tool(["luacheck", "--config", ".luacheckrc", "--codes", "--formatter", "plain", whole], tree)
    if done.returncode > 2:  # 0 clean, 1 warnings, 2 errors (luacheck's manual, exit codes)
        yield f"{which}:1: {told(done, 'luacheck failed')[0]}"
    for number, code, what in re.findall(re.escape(whole) + r":(\d+):\d+: \((\w+)\) (.*)", done.stdout):
        before = [one for one in library.lines[:int(number)] if one[0] is not None]  # the end of a file may be missing
        yield f"{before[-1][0]}:{before[-1][1]}: {what} ({code})"


def made(tree, target, *more):
    """What the compiler or clang-tidy says when make is asked for this target."""
    done = tool(["make", "--no-print-directory", "-k", "-j2", target, *more], tree)
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if re.search(r"(error|warning): ", line)]
        yield from lines or told(done, "make failed")


def left_beside_objects(tree):
    """The warnings of an earlier make, of all sources that are still there."""
    top = tree.full("build/obj")
    for folder, _, names in os.walk(top):
        for path in (os.path.join(folder, name) for name in sorted(names) if name.endswith(".warnings")):
            if os.path.exists(tree.full(os.path.relpath(path, top).removesuffix("warnings") + "c")):
                with open(path, encoding="utf-8") as file:
                    yield from (line for line in file.read().splitlines() if "warning: " in line)


def gcc(tree):
    """gcc has nothing to warn of"""
    if list(tree.files("*.c")):
        yield from list(made(tree, "objects")) or left_beside_objects(tree)


def clang(tree):
    """clang has nothing to warn of"""
    if list(tree.files("*.c")):
        yield from made(tree, "clang")


def tidy(tree):
    """clang-tidy finds nothing, without its analyzer"""
    if list(tree.files("*.c")):
        yield from made(tree, "tidy")


def analyzer(tree):
    """clang's analyzer finds nothing

    With --part I/N every Nth file, and what was changed by the last N commits."""
    files = list(tree.files("shared/*.c", "lease/*.c", "gateway/*.c", "api/*.c"))
    if not files:
        return
    part, parts = tree.part
    if parts > 1:
        log = tool(["git", "log", f"-{parts}", "--name-only", "--format="], tree)
        changed = set(log.stdout.split() if log.returncode == 0 else files)
        files = [path for number, path in enumerate(files) if number % parts == part - 1 or path in changed]
    yield from made(tree, "analyzer", f"ANALYZED={' '.join(files)}")


# A library calls recv() and its like without an argument that leads to anything of ours. Identities' names stay as long
# as the process, whichever file named them: what keeps one need not know any file.
ALLOWED = {("shared/http/socket.c", "running"), ("shared/http/socket.c", "in_tls"), ("shared/access/identity.c", "kept"),
           ("shared/access/file.c", "serial"), ("shared/access/jwt.c", "known")}


def globals_(tree):
    """nothing outlives a call in a variable of the process: no data that can be written, but in main.c"""
    for path in tree.files("shared/*.c", "lease/*.c", "gateway/*.c", "api/*.c"):
        compiled = os.path.join("build/obj", path[:-2] + ".o")
        if os.path.basename(path) == "main.c" or not os.path.exists(tree.full(compiled)):
            continue  # what does not compile, the rule gcc tells
        done = tool(["objdump", "--syms", compiled], tree)
        if done.returncode:
            yield f"{path}:1: {told(done, 'objdump failed')[0]}"
        for line in done.stdout.splitlines():
            match = re.search(r"\bO?\s+(\.data|\.bss|\.tbss|\.tdata|\*COM\*)\S*\s+0*([0-9a-f]+)\s+(?:\.hidden )?(\S+)$", line)
            writable = match and not re.search(r"\.data\.rel\.ro", line)
            if (path, match and match.group(3)) in ALLOWED:
                continue
            if writable and int(match.group(2), 16) > 0 and not match.group(3).startswith("."):
                yield f"{path}:1: {match.group(3)} is a variable of the whole process"


RULES = (layout, library, records, luacheck, gcc, clang, tidy, analyzer, globals_)
