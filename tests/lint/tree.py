"""tree.py - the files that lint looks at, and C without its comments and texts."""

import fnmatch
import os
import re

PASSED_OVER = {"build", ".git", "__pycache__"}
# A comment, a text, or a character: whichever begins first.
C_ASIDE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


class Tree:
    """One checkout. It counts what a rule looked at: a rule that looks at nothing checks nothing."""

    def __init__(self, root):
        self.root = os.path.abspath(root)
        self.looked_at = 0
        self.part = (1, 1)
        self.paths = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(set(folders) - PASSED_OVER)
            self.paths += [os.path.relpath(os.path.join(folder, name), self.root) for name in sorted(names)]

    def files(self, *patterns):
        """Paths from the root that match one of the patterns ('*' goes through folders), none of them binary."""
        for path in self.paths:
            if any(fnmatch.fnmatchcase(path, one) for one in patterns):
                self.looked_at += 1
                yield path

    def full(self, path):
        return os.path.join(self.root, path)

    def read(self, path):
        with open(self.full(path), encoding="utf-8", errors="replace") as file:
            return file.read()

    def code(self, path):
        """C as it stands, with every comment and text replaced by blanks of the same length and lines."""
        def blank(match):
            return re.sub(r"[^\n]", " ", match.group(0))
        return C_ASIDE.sub(blank, self.read(path))


def c_functions(code):
    """(name, first line, number of lines) of every function; code is as clang-format leaves it: the brace that opens
    a function is alone in column 0, and so is the one that closes it."""
    lines = code.splitlines()
    start = None
    for number, line in enumerate(lines):
        if line.rstrip() == "{":
            start = number
            while start > 0 and lines[start - 1].strip() and not re.search(r"[;}]\s*$|^#", lines[start - 1]):
                start -= 1
        elif line.rstrip() == "}" and start is not None:
            head = " ".join(lines[start:number])
            name = re.search(r"(\w+)\s*\(", head)
            yield name.group(1) if name else "?", start + 1, number - start + 1
            start = None


def lua_functions(text):
    """(name, first line, number of lines) of the functions of a script that are not inside of another."""
    start = name = None
    for number, line in enumerate(text.splitlines(), 1):
        opened = re.match(r"(?:local )?function\s+([\w.:]+)", line)
        if opened and not re.search(r"\bend\s*$", line):
            start, name = number, opened.group(1)
        elif re.match(r"end\b", line) and start is not None:
            yield name, start, number - start + 1
            start = None
