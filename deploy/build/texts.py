#!/usr/bin/python3
"""texts.py - what pawl says at length, as C: api/cli/help.txt, and what completes a command line in each shell.

    texts.py api/cli build/gen/texts.c
"""

import os
import sys


def literal(text):
    """Cut at the line feeds."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?").replace("\n", "\\n\n")
    return "\n     ".join(f'"{line}"' for line in text.splitlines() or [""])


def usages(text):
    for block in text.split("\n= ")[1:]:
        head, _, rest = block.partition("\n")
        name, _, arguments = head.partition(":")
        examples, _, summary = rest.partition("\n\n")
        yield name.strip(), arguments.strip(), examples + "\n", summary.rstrip("\n")


def read(*path):
    with open(os.path.join(*path), encoding="ascii") as file:
        return file.read()


def main():
    source, out = sys.argv[1:]
    shells = os.path.join(source, "completion")
    rows = [f"    {{{', '.join(map(literal, usage))}, NULL}},\n" for usage in usages(read(source, "help.txt"))]
    texts = [f'    {{"{name}", {literal(read(shells, name))}}},\n' for name in sorted(os.listdir(shells))]
    with open(out + ".new", "w", encoding="ascii") as file:
        file.write(f'/* texts.c: made from {source} by deploy/build/texts.py; do not edit. */\n#include "api/cli/flags.h"\n\n'
                   f"const struct usage usages[] = {{\n{''.join(rows)}    {{0}},\n}};\n\n"
                   f"const struct completion completions[] = {{\n{''.join(texts)}    {{0}},\n}};\n")
    os.replace(out + ".new", out)


main()
