#!/usr/bin/python3
"""scripts.py - Lua scripts as the store runs them, and as C.

    scripts.py assemble lease/scripts/acquire.lua [--replace shared/record/clock.lua=FILE]... [--whole]
        prints one script with the files named by its "-- use: FILE" lines in front of it
    scripts.py embed build/gen/lease_scripts lease/scripts shared/record/scripts
        writes build/gen/lease_scripts.c and .h: each script of the folders, and the table of all of them
    scripts.py lines lease/scripts/acquire.lua
        prints for each line of the whole text the file and the line that it came from

A script's first block of comment lines may hold "-- use: FILE" lines, FILE from the root of the tree; a used file has
no "use" lines of its own. A "-- flags: WORDS" line there becomes the first line of what Redis is given,
"#!lua flags=WORDS" (Redis 7 and Valkey): allow-oom for one that must run on a full Redis, too. Lines that are only a comment, and blank lines, are left out of what is embedded (Redis
keeps every script in memory); --whole keeps them. Nothing else is touched.
"""

import argparse
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
USE = re.compile(r"^--\s*use:\s*(\S+)\s*$")
FLAGS = re.compile(r"^--\s*flags:\s*([a-z,-]*)\s*$")
COMMENT_OR_BLANK = re.compile(r"^\s*(--(?!\[).*)?$")
LONG_BRACKET = re.compile(r"\[=*\[")
NAME = re.compile(r"^[a-z][a-z0-9_]*$")


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


def uses(text):
    return named(text, USE)


def shebang(text):
    """What tells Redis of the script's flags; "" without a "flags" line: then it asks at each command."""
    return "".join(f"#!lua flags={words}\n" if words else "#!lua\n" for words in named(text, FLAGS)[:1])


def pieces(path, replace, root=ROOT):
    """[(file, its text)]: what the script uses, then the script."""
    text = read(os.path.join(root, path))
    found = []
    for used in uses(text):
        used_text = read(replace.get(used, os.path.join(root, used)))
        if uses(used_text):
            raise Wrong(f"{used}: a used file must not use others; name them in {path}")
        found.append((used, used_text))
    unused = set(replace) - {name for name, _ in found}
    if unused:
        raise Wrong(f"{path} does not use {', '.join(sorted(unused))}")
    return found + [(path, text)]


def stripped(text):
    """Without comment lines and blank lines, where that cannot change a string: a file with a long bracket, and a
    line after one that ends in a backslash, stay as they are."""
    if LONG_BRACKET.search(text):
        return text
    kept, before = [], ""
    for line in text.splitlines(keepends=True):
        if before.rstrip("\r\n").endswith("\\") or not COMMENT_OR_BLANK.match(line.rstrip("\r\n")):
            kept.append(line)
        before = line
    return "".join(kept)


def assembled(path, replace, whole, root=ROOT):
    parts = pieces(path, replace, root)
    out = [] if whole else [shebang(parts[-1][1])]
    for _, text in parts:
        text = text if whole else stripped(text)
        out.append(text if text.endswith("\n") or not text else text + "\n")
    return "".join(out)


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


def embed(out, folders, replace):
    table = os.path.basename(out)
    guard = f"PAWL_GEN_{table.upper()}_H"
    there = [folder for folder in folders if os.path.isdir(os.path.join(ROOT, folder))]
    paths = {}
    for folder in there:
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            if name.endswith(".lua") and paths.setdefault(name[:-4], f"{folder}/{name}") != f"{folder}/{name}":
                raise Wrong(f"{folder}/{name}: there is {paths[name[:-4]]} already, and one would take the other's name")
    names = sorted(paths)
    made_from = f"/* {table}: made from {' and '.join(folders)} by deploy/build/scripts.py; do not edit. */\n"
    header = [made_from, f"#ifndef {guard}\n#define {guard}\n\n", '#include "shared/store.h"\n\n']
    # Longer than the 4,095 characters that C11 5.2.4.1 promises; gcc and clang take any length.
    source = [made_from, f'#include "build/gen/{table}.h"\n\n',
              '#pragma GCC diagnostic ignored "-Woverlength-strings"\n\n']
    for index, name in enumerate(names):
        if not NAME.match(name):
            raise Wrong(f"{paths[name]}: a script's name is lower case letters, digits and _")
        used = uses(read(os.path.join(ROOT, paths[name])))
        text = assembled(paths[name], {one: file for one, file in replace.items() if one in used}, whole=False)
        header.append(f"extern const struct store_script script_{name};\n")
        source.append(f"static const char source_{name}[] =\n{c_literal(text)};\n\n"
                      f"const struct store_script script_{name} = {{\n"
                      f'    .name = "{name}", .source = source_{name}, .len = sizeof(source_{name}) - 1, '
                      f".index = {index}}};\n\n")
    rows = "".join(f"    &script_{name},\n" for name in names)
    header.append(f"\n/* All of them, in the order of their index; ends with NULL. */\n"
                  f"extern const struct store_script *const {table}[];\n\n#endif\n")
    source.append(f"const struct store_script *const {table}[] = {{\n{rows}    NULL,\n}};\n")
    write(out + ".h", "".join(header))
    write(out + ".c", "".join(source))


def lines(path):
    for name, text in pieces(path, {}):
        for number, _ in enumerate(text.splitlines(), 1):
            print(f"{name}:{number}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("assemble")
    command.add_argument("script")
    command.add_argument("--replace", action="append", default=[], metavar="USED=FILE")
    command.add_argument("--whole", action="store_true")
    command = commands.add_parser("embed")
    command.add_argument("out")
    command.add_argument("folders", nargs="+")
    command.add_argument("--replace", action="append", default=[], metavar="USED=FILE")
    command = commands.add_parser("lines")
    command.add_argument("script")
    given = parser.parse_args()
    if given.command == "assemble":
        replace = dict(one.split("=", 1) for one in given.replace)
        sys.stdout.write(assembled(given.script, replace, given.whole))
    elif given.command == "embed":
        embed(given.out, given.folders, dict(one.split("=", 1) for one in given.replace))
    else:
        lines(given.script)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as wrong:
        print(f"scripts.py: {wrong}", file=sys.stderr)
        sys.exit(1)
