#!/usr/bin/python3
"""scripts.py - the Lua scripts as one library of Redis functions, and as C.

    scripts.py library [--replace shared/member/scripts/lib/call.lua=FILE]...
        prints the library as FUNCTION LOAD takes it
    scripts.py embed build/gen/scripts [--replace ...]
        writes build/gen/scripts.c and .h: the library, and each script's name
    scripts.py lines
        prints for each line of the library the file and the line that it came from

The files and their order stand in deploy/build/library.txt. Each file of a folder "scripts" is an operation, the body
of a function; the others are what operations share. An operation's first block of comment lines may hold
"-- on: store": it begins without the stripe's prelude (shared/member/scripts/lib/stripe.lua), or "-- on: node": with
that of a quorum's node (lease/quorum/scripts/lib/node.lua); and "-- flags: WORDS", the function's flags: allow-oom for
one that must run on a full Redis, too; "-- reads: yes": it shows something, and writes only by the way: it waits while Redis answers late; and
"-- batch: yes": it may run in HASH_batch (shared/member/scripts/lib/batch.lua).

The library is called pawl_HASH and its functions HASH_NAME, by the hash of its text: two releases can stand side by
side. One that has no flags line, or reads, is there twice: Redis refuses it before it begins when no write would be taken, and
HASH_NAME_ro is refused at its first write.

Lines that are only a comment, and blank lines, are left out (Redis keeps the text in memory). Nothing else is touched.
"""

import argparse
import collections
import glob
import hashlib
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIST, QUORUM = "deploy/build/library.txt", "deploy/build/library_quorum.txt"
ON = re.compile(r"^--\s*on:\s*(\S+)\s*$")
READS = re.compile(r"^--\s*reads:\s*(yes)\s*$")
BATCH = re.compile(r"^--\s*batch:\s*(yes)\s*$")
FLAGS = re.compile(r"^--\s*flags:\s*([a-z,-]*)\s*$")
COMMENT_OR_BLANK = re.compile(r"^\s*(--(?!\[).*)?$")
LONG_BRACKET = re.compile(r"\[=*\[")
NAME = re.compile(r"^[a-z][a-z0-9_]*$")
HASH_DIGITS, HASH = 12, "@HASH@"
# The first two lines are those of a library; a script that is sent whole has others (shared/store/wire.c).
HEAD = "#!lua name=pawl_" + HASH + "\nlocal register = redis.register_function\n"
PACKED = """local function on_packed(run)
    return function(keys, argv)
        call_begins(keys, argv)
        call_takes(cmsgpack.unpack(argv[1]))
        return stripe_begins() or stripe_runs(run)
    end
end
"""
ON_STRIPE = """local function on_stripe(run)
    return function(keys, argv)
        call_begins(keys, argv)
        return stripe_begins() or stripe_runs(run)
    end
end
"""
ON_STORE = """local function on_store(run)
    return function(keys, argv)
        call_begins(keys, argv)
        return run()
    end
end
"""

Operation = collections.namedtuple("Operation", "name path on flags batch twice reads")  # flags: None when its head has no such line


class Wrong(Exception):
    pass


def read(path):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as error:
        raise Wrong(f"{path}: {error.strerror}") from error


def named(text, what):
    """What the first block of comment lines says in lines of this kind, in order."""
    found = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        match = what.match(line)
        if match:
            found.append(match.group(1))
    return found


def stripped(text):
    """[(number, line)] without comment lines and blank lines, where that cannot change a string: a file with a long
    bracket, and a line after one that ends in a backslash, stay as they are."""
    whole, kept, before = bool(LONG_BRACKET.search(text)), [], ""
    for number, line in enumerate(text.splitlines(), 1):
        if whole or before.endswith("\\") or not COMMENT_OR_BLANK.match(line):
            kept.append((number, line))
        before = line
    return kept


def listed(root, which=LIST):
    """The lines of the list, patterns replaced by what they stand for."""
    lines = [line.strip() for line in read(os.path.join(root, which)).splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    for line in lines:
        if "*" not in line:
            yield line
            continue
        found = (os.path.relpath(path, root) for path in glob.glob(os.path.join(root, line)))
        yield from sorted(path for path in found if path not in lines)


class Library:
    def __init__(self, replace, root=ROOT, which=LIST):
        self.root, self.replace, self.operations = root, dict(replace), []
        self.lines = [(None, 0, line) for line in (HEAD + "local operations = {}").splitlines()]
        for path in listed(root, which):
            self.take(path)
        if self.replace:
            raise Wrong(f"the library does not have {', '.join(sorted(self.replace))}")
        is_batched = any(one.batch for one in self.operations)
        self.add((ON_STRIPE if any(one.on == "stripe" for one in self.operations) else "") + ON_STORE
                 + (PACKED if is_batched else ""))
        for one in self.operations:
            self.register(one)
        if is_batched:
            self.register_batch()
        text = "".join(line + "\n" for _, _, line in self.lines)
        self.hash = hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
        self.text = text.replace(HASH, self.hash)
        self.name = "pawl_" + self.hash

    def add(self, text):
        self.lines += [(None, 0, line) for line in text.splitlines()]

    def take(self, path):
        if path in ("do", "end"):
            self.add(path)
            return
        text = read(self.replace.pop(path, os.path.join(self.root, path)))
        is_operation = os.path.basename(os.path.dirname(path)) == "scripts"
        if is_operation:
            self.operations.append(self.operation(path, text))
            self.add(f"function operations.{self.operations[-1].name}()")
        self.lines += [(path, number, line) for number, line in stripped(text)]
        if is_operation:
            self.add("end")

    def operation(self, path, text):
        name = os.path.basename(path)[:-4]
        if not NAME.match(name):
            raise Wrong(f"{path}: a script's name is lower case letters, digits and _")
        for one in self.operations:
            if one.name == name:
                raise Wrong(f"{path}: there is {one.path} already, and one would take the other's name")
        on, batch = (named(text, ON) or ["stripe"])[0], bool(named(text, BATCH))
        if batch and on != "stripe":
            raise Wrong(f"{path}: only what begins with the stripe's prelude can be in a batch")
        flags = (named(text, FLAGS) or [None])[0]
        reads = bool(named(text, READS))
        return Operation(name, path, on, flags, batch, flags is None or reads, reads)

    def register(self, one):
        flags = ", ".join(f"'{word}'" for word in (one.flags or "").split(",") if word)
        for suffix, its in (("", flags), ("_ro", "'no-writes'"))[:2 if one.twice else 1]:
            self.add(f"register({{\n    function_name = '{HASH}_{one.name}{suffix}', flags = {{ {its} }},\n"
                     f"    callback = on_{'packed' if one.batch else one.on}(operations.{one.name}) }})")

    def register_batch(self):
        names = "".join(f"    {one.name} = operations.{one.name},\n" for one in self.operations if one.batch)
        self.add(f"register({{ function_name = '{HASH}_batch', flags = {{}}, callback = batch_of({{\n{names}}}) }})")


def c_literal(text):
    """One C string for each line. Octal escapes have exactly three digits, so that nothing can run into them."""
    lines = []
    for line in text.encode().splitlines(keepends=True):
        parts = []
        for byte in line:
            char = chr(byte)
            if char == "\n":
                parts.append("\\n")
            elif char in '"\\?':
                parts.append("\\" + char)
            elif 0x20 <= byte < 0x7F:
                parts.append(char)
            else:
                parts.append(f"\\{byte:03o}")
        lines.append('    "' + "".join(parts) + '"')
    return "\n".join(lines) or '    ""'


def write(path, text):
    """At once: a build that is stopped leaves no half a file."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def embed_one(library, name, prefix, header, source):
    """A library, and each of its scripts, as C."""
    batch = f'"{library.hash}_batch"' if any(one.batch for one in library.operations) else "NULL"
    header.append(f"extern const struct store_library {name}_library;\n")
    source.append(f"static const char {name}_text[] =\n{c_literal(library.text)};\n\nconst struct store_library {name}_library = {{"
                  f'"{library.name}", {name}_text, sizeof({name}_text) - 1, {batch}}};\n\n')
    for one in library.operations:
        head = "" if one.flags is None else f"#!lua flags={one.flags}\\n" if one.flags else "#!lua\\n"
        header.append(f"extern const struct store_script {prefix}_{one.name};\n")
        source.append(f'const struct store_script {prefix}_{one.name} = {{"{one.name}", "{library.hash}_{one.name}", "{head}", '
                      f"&{name}_library, {str(one.batch).lower()}, {str(one.twice).lower()}, {str(one.reads).lower()}}};\n")


def embed(out, replace):
    made_from = f"/* Made from {LIST} and {QUORUM} by deploy/build/scripts.py; do not edit. */\n"
    header = [made_from, "#ifndef PAWL_GEN_SCRIPTS_H\n#define PAWL_GEN_SCRIPTS_H\n\n", '#include "shared/store/store.h"\n\n']
    # Longer than the 4,095 characters that C11 5.2.4.1 promises; gcc and clang take any length.
    source = [made_from, '#include "build/gen/scripts.h"\n\n', '#pragma GCC diagnostic ignored "-Woverlength-strings"\n\n']
    embed_one(Library(replace), "pawl", "script", header, source)
    if os.path.exists(os.path.join(ROOT, QUORUM)):
        embed_one(Library({}, which=QUORUM), "node", "node", header, source)
    write(out + ".h", "".join(header) + "\n#endif\n")
    write(out + ".c", "".join(source))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("library", "embed", "lines"):
        command = commands.add_parser(name)
        if name == "embed":
            command.add_argument("out")
        command.add_argument("--replace", action="append", default=[], metavar="FILE=OTHER")
    given = parser.parse_args()
    replace = dict(one.split("=", 1) for one in given.replace)
    if given.command == "embed":
        embed(given.out, replace)
    elif given.command == "library":
        sys.stdout.write(Library(replace).text)
    else:
        for path, number, _ in Library(replace).lines:
            print(f"{path}:{number}" if path else "-")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as wrong:
        print(f"scripts.py: {wrong}", file=sys.stderr)
        sys.exit(1)
