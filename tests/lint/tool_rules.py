"""tool_rules.py - rules that other programs check: formatter, luacheck, two compilers, clang-tidy, objdump."""

import collections
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


def luacheck(tree):
    """luacheck finds nothing in any script, assembled with what it uses

    A function of a used file that this one script does not need is fine, one that no script needs is not."""
    found, unused, users = {}, collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as place:
        for path in tree.files("*/scripts/*.lua"):
            if "/lib/" in path:
                continue
            try:
                parts = scripts.pieces(path, {}, tree.root)
            except scripts.Wrong as wrong:
                yield f"{path}:1: {wrong}"
                continue
            lines = [(name, n) for name, text in parts for n, _ in enumerate(text.splitlines(), 1)]
            whole = os.path.join(place, os.path.basename(path))
            with open(whole, "w", encoding="utf-8") as file:
                file.write("".join(text if text.endswith("\n") else text + "\n" for _, text in parts))
            users.update(name for name, _ in parts)
            done = tool(["luacheck", "--config", ".luacheckrc", "--codes", "--ranges", "--formatter", "plain", whole],
                        tree)
            if done.returncode > 2:  # 0 clean, 1 warnings, 2 errors (luacheck's manual, exit codes)
                yield f"{path}:1: {told(done, 'luacheck failed')[0]}"
            for line in done.stdout.splitlines():
                match = re.match(re.escape(whole) + r":(\d+):([\d-]+): \((\w)(\d+)\) (.*)", line)
                if match:
                    name, number = lines[min(int(match.group(1)), len(lines)) - 1]  # the end may be missing
                    one = (name, number, match.group(4), match.group(5))
                    found[one] = path
                    unused[one] += 1
    for (name, number, code, what), path in sorted(found.items()):
        needed_by_some = name != path and code.startswith("2") and unused[(name, number, code, what)] < users[name]
        if not needed_by_some:
            yield f"{name}:{number}: {what} ({code})"


def compiled(tree, compiler):
    files = list(tree.files("*.c"))
    if not files:
        return
    argv = ["make", "--no-print-directory", "-k", "-j2", f"BUILD=build/lint/{compiler}", f"CC={compiler}", "WERROR=1",
            "objects"]
    done = tool(argv, tree)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if re.search(r"(error|warning): ", line)]
        yield from lines or told(done, "make failed")


def gcc(tree):
    """gcc has nothing to warn of"""
    yield from compiled(tree, "gcc")


def clang(tree):
    """clang has nothing to warn of"""
    yield from compiled(tree, "clang")


def tidy(tree):
    """clang-tidy finds nothing"""
    if not list(tree.files("*.c")):
        return
    argv = ["make", "--no-print-directory", "-k", "-j2", "BUILD=build/lint/clang", "CC=clang", "WERROR=1", "tidy"]
    done = tool(argv, tree)
    if done.returncode:
        text = done.stdout + done.stderr
        lines = [line for line in text.splitlines() if re.search(r": (error|warning): ", line)]
        yield from lines or told(done, "make failed")


# A library calls recv() without an argument that leads to anything of ours.
THREADS_OWN = {("shared/http_chunks.c", "reading")}


def globals_(tree):
    """nothing outlives a call in a variable of the process: no data that can be written, but in main.c"""
    for path in tree.files("shared/*.c", "lease/*.c", "gateway/*.c", "api/*.c"):
        made = os.path.join("build/lint/gcc/obj", path[:-2] + ".o")
        if os.path.basename(path) == "main.c" or not os.path.exists(tree.full(made)):
            continue  # what does not compile, the rule gcc tells
        done = tool(["objdump", "--syms", made], tree)
        if done.returncode:
            yield f"{path}:1: {told(done, 'objdump failed')[0]}"
        for line in done.stdout.splitlines():
            match = re.search(r"\bO?\s+(\.data|\.bss|\.tbss|\.tdata|\*COM\*)\S*\s+0*([0-9a-f]+)\s+(?:\.hidden )?(\S+)$", line)
            writable = match and not re.search(r"\.data\.rel\.ro", line)
            if (path, match and match.group(3)) in THREADS_OWN:
                continue
            if writable and int(match.group(2), 16) > 0 and not match.group(3).startswith("."):
                yield f"{path}:1: {match.group(3)} is a variable of the whole process"


RULES = (layout, luacheck, gcc, clang, tidy, globals_)
