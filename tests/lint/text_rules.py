"""text_rules.py - rules that only need to read the files. Each yields "path:line: what is wrong"."""

import ast
import os
import re
import subprocess

from tree import C_ASIDE, c_functions, lua_functions

FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 800
COLUMNS_MAX = 110
C = ("*.c", "*.h")
PRODUCT_C = ("shared/*.c", "shared/*.h", "lease/*.c", "lease/*.h", "gateway/*.c", "gateway/*.h", "api/*.c", "api/*.h")
BANNED = re.compile(r"\b(strcpy|stpcpy|strcat|strncpy|strncat|sprintf|vsprintf|gets|strtok|atoi|atol|atoll|atof|alloca|"
                    r"v?[fs]?scanf|tmpnam|mktemp)\s*\(")
BANNED_IN_PRODUCTS = re.compile(r"\b(system|popen)\s*\(")
SLEEPS_C = re.compile(r"\b(sleep|usleep|nanosleep|clock_nanosleep|uv_sleep|thrd_sleep)\s*\(")
SLEEPS_SH = re.compile(r"^[^#]*\b(sleep)\s+[0-9.]")
MARKER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
OUR_WORDS, LUA_COMMENT = re.compile(r"\b(told(?!\()|who(m)?ever|pulses?|farewell|strays?)\b"), re.compile(r"--[^\n]*")
RETURNING_MACRO = re.compile(r"^[ \t]*#[ \t]*define\b(?:[^\n]*\\\n)*[^\n]*\b(return|goto)\b", re.MULTILINE)
HEAD = {".c": r"/\* {name} - \S", ".h": r"/\* {name} - \S", ".lua": r"-- {name} - \S"}
FILE_NAME = re.compile(r"(?<![\w/.%\"'-])((?:[a-z][\w-]*/)*[a-zA-Z][\w-]*\.(?:c|h|lua))\b(?!\w)")
# Of libraries, the kernel, Redis and curl.
THEIR_FILES = frozenset("""aof.c cJSON.c cjson/cJSON.h connection.c ctype.h evict.c functions.c hiredis.c lib/asyn-thread.c lib/easy.c
    multi.c net.c net/ipv4/af_inet.c net/ipv4/tcp.c net/ipv4/tcp_timer.c replication.c response.c script.c script_lua.c transfer.c
    unix/core.c unix/poll.c url.c""".split())
OPENAPI = "api/openapi.yaml"
OPERATION = re.compile(r"    (get|put|post|delete|head|options|patch|trace):$")
SIZES, SIZE_SLACK = "tests/lint/size.txt", 200
PROGRAMS = ("*.py", "*/run", "deploy/*", ".ci/*", "tests/*", "*.sh")


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def function_length(tree):
    """no function is longer than 60 lines"""
    for path in tree.files(*C, "*.lua"):
        found = lua_functions(tree.read(path)) if path.endswith(".lua") else c_functions(tree.code(path))
        for name, line, length in found:
            if length > FUNCTION_LINES_MAX:
                yield f"{path}:{line}: {name} has {length} lines, more than {FUNCTION_LINES_MAX}"


def file_length(tree):
    """no file of code is longer than 800 lines"""
    for path in tree.files(*C, "*.lua"):
        length = len(tree.read(path).splitlines())
        if length > FILE_LINES_MAX and not os.path.basename(path).startswith("test_"):
            yield f"{path}:1: {length} lines, more than {FILE_LINES_MAX}"


def columns(tree):
    """no line of C is wider than 110 columns"""
    for path in tree.files(*C):
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            if len(line) > COLUMNS_MAX:
                yield f"{path}:{number}: {len(line)} columns, more than {COLUMNS_MAX}"


def head_comment(tree):
    """every source file begins with its name and what it is"""
    for path in tree.files(*C, "*.lua"):
        name = os.path.basename(path)
        if not re.match(HEAD[os.path.splitext(path)[1]].format(name=re.escape(name)), tree.read(path)):
            yield f"{path}:1: does not begin with a comment '{name} - what it is'"


def banned(tree):
    """no function is called that cannot be used safely"""
    for path in tree.files(*C):
        code = tree.code(path)
        for match in BANNED.finditer(code):
            yield f"{path}:{line_of(code, match.start())}: {match.group(1)} is banned"
    for path in tree.files(*PRODUCT_C):
        code = tree.code(path)
        for match in BANNED_IN_PRODUCTS.finditer(code):
            yield f"{path}:{line_of(code, match.start())}: {match.group(1)} is banned"


def returning_macro(tree):
    """no macro returns or jumps"""
    for path in tree.files(*C, "*.def"):
        code = tree.code(path)
        for match in RETURNING_MACRO.finditer(code):
            yield f"{path}:{line_of(code, match.start())}: a macro that leaves the function"


def python_sleeps(text):
    """Lines of time.sleep() outside of a function wait_...(), which looks again and again until a deadline."""
    def walk(node, waiting):
        if isinstance(node, ast.FunctionDef):
            waiting = node.name.lstrip("_").startswith("wait")
        if isinstance(node, ast.Call) and not waiting:
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name == "sleep":
                yield node.lineno
        for child in ast.iter_child_nodes(node):
            yield from walk(child, waiting)
    return walk(ast.parse(text), False)


def is_python(tree, path):
    return path.endswith(".py") or tree.read(path)[:80].startswith(("#!/usr/bin/python3", "#!/usr/bin/env python"))


def is_shell(tree, path):
    return path.endswith(".sh") or tree.read(path)[:40].startswith(("#!/bin/sh", "#!/bin/bash"))


def sleeps(tree):
    """no test sleeps: it waits for the event, with a deadline"""
    for path in tree.files("tests/*"):
        if path.startswith(("tests/bench/", "tests/fuzz/corpus/")):
            continue
        if path.endswith((".c", ".h")):
            code = tree.code(path)
            found = [line_of(code, match.start()) for match in SLEEPS_C.finditer(code)]
        elif is_python(tree, path):
            try:
                found = list(python_sleeps(tree.read(path)))
            except SyntaxError:
                continue  # the rule python says so
        elif is_shell(tree, path):
            found = [n for n, line in enumerate(tree.read(path).splitlines(), 1) if SLEEPS_SH.search(line)]
        else:
            continue
        for line in found:
            yield f"{path}:{line}: sleeps; wait for the event in a function wait_...() that has a deadline"


def shell(tree):
    """every shell script can be read by sh"""
    for path in tree.files(*PROGRAMS):
        if is_shell(tree, path):
            done = subprocess.run(["sh", "-n", tree.full(path)], capture_output=True, text=True, check=False)
            if done.returncode:
                yield f"{path}:1: {done.stderr.strip()}"


def python(tree):
    """every Python file compiles"""
    for path in tree.files(*PROGRAMS):
        if is_python(tree, path):
            try:
                compile(tree.read(path), path, "exec")
            except SyntaxError as error:
                yield f"{path}:{error.lineno}: {error.msg}"


def markers(tree):
    """nothing is marked as left for later"""
    for path in tree.files("*"):
        if path.startswith(("tests/fuzz/corpus/", "docs/ui/")):
            continue
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            match = MARKER.search(line)
            if match:
                yield f"{path}:{number}: {match.group(1)}"


def words(tree):
    """no comment of the product has a word of ours that nobody would search for"""
    for path in tree.files(*PRODUCT_C, *(one.replace("*.c", "*.lua") for one in PRODUCT_C)):
        text = tree.read(path)
        for comment in (LUA_COMMENT if path.endswith(".lua") else C_ASIDE).finditer(text):
            match = OUR_WORDS.search(comment.group()) if comment.group()[0] in "/-" else None
            if match:
                yield f"{path}:{line_of(text, comment.start() + match.start())}: {match.group()}"


def named_files(tree):
    """every file of ours that a comment or CONTRIBUTING.md names is there"""
    names = {os.path.basename(path) for path in tree.paths}
    for path in tree.files(*C, "*.lua", "*.def"):
        text, code = tree.read(path), tree.code(path) if not path.endswith((".lua", ".def")) else ""
        for match in FILE_NAME.finditer(text):
            is_comment = path.endswith((".lua", ".def")) or code[match.start():match.end()].isspace()
            named = match.group(1)
            if not is_comment or named in THEIR_FILES or named.startswith("build/") or text[text.rfind("\n", 0, match.start()) + 1:].startswith("#include"):
                continue
            if named not in tree.paths and (not any(one.endswith("/" + named) for one in tree.paths) if "/" in named else named not in names):
                yield f"{path}:{line_of(text, match.start())}: {named} is not there"
    for path in tree.files("CONTRIBUTING.md"):
        for match in re.finditer(r"`([a-z0-9_/]+\.(?:c|h|lua|py|def))`", tree.read(path)):
            if not any(one == match.group(1) or one.endswith("/" + match.group(1)) for one in tree.paths):
                yield f"{path}:{line_of(tree.read(path), match.start())}: {match.group(1)} is not there"


def size(tree):
    """no room has more lines than tests/lint/size.txt says, or 200 fewer: a commit that changes a number says why"""
    if SIZES not in tree.paths:
        yield f"{SIZES}:1: is not there"
        return
    rooms = [line.split() for line in tree.read(SIZES).splitlines() if not line.startswith("#")]
    found = dict.fromkeys((room for room, _ in rooms), 0)
    for path in tree.files(*C, "*.lua", "*.py"):
        room = max((room for room in found if path.startswith(room + "/")), key=len, default=None)
        if room is None:
            yield f"{path}:1: lies in no room of {SIZES}"
        else:
            found[room] += len(tree.read(path).splitlines())
    for number, (room, most) in enumerate(rooms, 1):
        if not int(most) - SIZE_SLACK < found[room] <= int(most):
            yield f"{SIZES}:{number}: {room} has {found[room]} lines, not {most}"


def openapi(tree):
    """every operation of api/openapi.yaml has an id of its own, every path of one service says which, no anyOf has one member and no member of a body a default: generated clients take it as always there"""
    ids, path, text = {}, "", "".join(tree.read(one) for one in tree.files(OPENAPI))
    if "\nsecurity:" not in text or "\n  license:" not in text:
        yield f"{OPENAPI}:1: says nothing of security, or of a license"
    lines = text[:text.find("\nx-elsewhere:")].splitlines()
    for number, (line, following) in enumerate(zip(lines, lines[1:] + [""]), 1):
        if match := re.match(r"  (/\S*):$", line):
            path = match.group(1)
            if path.startswith("/v1/") and not following.startswith("    servers:"):
                yield f"{OPENAPI}:{number}: {path} does not say which service has it"
        elif match := OPERATION.match(line):
            name = following.removeprefix("      operationId: ")
            if name == following or ids.setdefault(name, number) != number:
                yield f"{OPENAPI}:{number}: {match.group(1)} {path} has no operationId, or that of another"
    for match in re.finditer(r"\n( +)anyOf:\n\1  - [^\n]*\n(?!\1  [- ])", text):
        yield f"{OPENAPI}:{line_of(text, match.start()) + 1}: an anyOf of one"
    bodies = max(text.find("\n  requestBodies:"), 0)
    for match in re.finditer(r"[ {]default: ", text[bodies:]):
        yield f"{OPENAPI}:{line_of(text, bodies + match.start())}: a member with a default"


RULES = (function_length, file_length, columns, head_comment, banned, returning_macro, sleeps, shell,
         python, markers, words, named_files, size, openapi)
