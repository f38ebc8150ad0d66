#!/usr/bin/python3
"""man.py - the manual pages: docs/man/NAME.SECTION.md as roff.

    man.py [--programs build] [--version 0.1.0] docs/man/pawl.1.md build/man/pawl.1

What is taken: headings ("## DESCRIPTION", "### below it"), paragraphs, lists, "term" and ": what it is", ``` blocks, tables
(each row a term and what it is), `code`, **strong**, *emphasis*, [links](to). A comment on a line of its own fetches what
stands elsewhere, so that it stands nowhere twice:

    <!-- commands: pawl -->               every command of pawl, as its --help says
    <!-- flags: pawl-lease -->            the flags, as --help says
    <!-- examples: pawl-lease -->         the examples that --help begins with
    <!-- include: docs/routes.md "Members" [without "a heading below it", ...] -->    a section of another page
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROW = re.compile(r"^ {2,6}((?:-\w, )?--[\w-]+(?: [^ ]+(?: [^ ]+)*)?)(?: {2,}(\S.*))?$")
COMMAND = re.compile(r"^  ([a-z][a-z-]*)  +(\S.*)$")
DIRECTIVE = re.compile(r"^<!-- (\w+): (.*?) -->$")
LONG_WORD = 36


class Wrong(Exception):
    pass


# -- what the programs say of themselves


class Help:
    """What PROGRAM [COMMAND] --help says, in its parts."""

    def __init__(self, programs, words):
        path = os.path.join(programs, words[0])
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}
        done = subprocess.run([path, *words[1:], "--help"], capture_output=True, text=True, check=False, env=clean, timeout=60)
        if done.returncode != 0 or not done.stdout.startswith("Examples:\n"):
            raise Wrong(f"{' '.join(words)} --help: {done.returncode} {done.stderr[-500:]}")
        head, _, tail = done.stdout.partition("\nFlags:\n")
        examples, _, rest = head.partition("\n\n")
        self.examples = examples.split("\n")[1:]
        usage = re.search(r"^Usage: (.*)$", rest, re.M)
        self.usage = usage.group(1) if usage else words[0]
        rest = rest.split(usage.group(0), 1)[1] if usage else rest
        before, _, commands = rest.partition("\nCommands (")
        self.summary = before.strip("\n").split("\n")
        self.commands = [COMMAND.match(line).groups() for line in commands.split("\n")[1:] if COMMAND.match(line)]
        self.flags, self.after = [], []
        for line in tail.split("\n"):
            row = ROW.match(line)
            if row and not self.after:
                self.flags.append([row.group(1), row.group(2) or ""])
            elif line.startswith("     ") and self.flags and not self.after:
                self.flags[-1][1] = (self.flags[-1][1] + " " + line.strip()).strip()
            elif line.strip() or self.after:
                self.after.append(line)


# -- text


def escaped(text):
    """Of a text, so that roff shows it as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    text = text.replace("'", "\\(aq")
    return "".join(one if ord(one) < 128 else f"\\[u{ord(one):04X}]" for one in text)


def breakable(text):
    """A long word may be broken behind what parts it."""
    def part(word):
        return word.group(0) if len(word.group(0)) < LONG_WORD else re.sub(r"([/,;=|:&?])", "\\1\\\\:", word.group(0))
    return re.sub(r"[^ ]+", part, text)


def inline(text):
    """`code`, **strong**, *emphasis* and links."""
    pieces = re.split(r"(`+)(.+?)\1", text)
    out = []
    for i in range(0, len(pieces), 3):
        plain = pieces[i]
        plain = re.sub(r"\[([^\]]*)\]\((https?://[^)]*)\)", r"\1 (\2)", plain)
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
        plain = re.sub(r"<(https?://[^>]*)>", r"\1", plain)
        plain = re.sub(r"\\([\\`*_{}\[\]()#+.!|<>-])", lambda found: "\0" + found.group(1), plain)
        marks = re.split(r"(?<!\0)(\*\*(?=\S).+?(?<=\S)\*\*|\*(?=\S)[^*]+?(?<=\S)\*|(?<!\w)_(?=\S)[^_]+?(?<=\S)_(?!\w))", plain)
        for mark in marks:
            mark, font = (mark[2:-2], "B") if re.fullmatch(r"\*\*.+\*\*", mark) else (mark, "")
            if not font and re.fullmatch(r"\*[^*]+\*|_[^_]+_", mark):
                mark, font = mark[1:-1], "I"
            mark = breakable(escaped(mark.replace("\0", "")))
            out.append(f"\\f{font}{mark}\\fR" if font else mark)
        if i + 2 < len(pieces):
            out.append("\\fB" + breakable(escaped(pieces[i + 2].strip())) + "\\fR")
    return guarded("".join(out))


def guarded(line):
    """A line of text, not of commands."""
    return "\\&" + line if line[:1] in (".", "'") else line


def quoted(text):
    """As an argument of a macro."""
    return '"' + text.replace('"', "\\(dq") + '"'


# -- the page


class Page:
    """Roff, line by line."""

    def __init__(self, programs):
        self.programs, self.lines, self.sections = programs, [], []

    def say(self, *lines):
        self.lines += lines

    def code(self, lines):
        self.say(".PP", ".in +4n", ".nf", *(guarded(escaped(line.expandtabs(4))) for line in lines), ".fi", ".in", ".PP")

    def term(self, term, lines):
        self.say(".TP", term)
        self.say(*(lines or ["\\&"]))

    # what is fetched

    def flags(self, found):
        for name, text in found.flags:
            self.term(flag_name(name), [guarded(breakable(escaped(text)))])

    def summary(self, lines):
        """Paragraphs; what is set in is shown as it is."""
        block = []
        for line in [*lines, ""]:
            shown = line.startswith("  ")
            if block and (not line or shown != block[0].startswith("  ")):
                if block[0].startswith("  "):
                    self.code([one[2:] for one in block])
                else:
                    self.say(".PP", guarded(breakable(escaped(" ".join(block)))))
                block = []
            if line:
                block.append(line)

    def commands(self, words):
        for name, _ in Help(self.programs, words).commands:
            self.command([*words, name])

    def command(self, words):
        found = Help(self.programs, words)
        if found.commands:
            self.say(f".SS {quoted(escaped(found.usage))}")
            self.summary(found.summary)
            self.commands(words)
            return
        self.say(f".SS {quoted(escaped(found.usage))}")
        self.summary(found.summary)
        self.flags(found)
        self.say(".PP", "Examples:")
        self.code([line[2:] for line in found.examples])

    def include(self, words):
        found = re.fullmatch(r'(\S+) "([^"]+)"(?: without (.*))?', words)
        if not found:
            raise Wrong(f"include: {words}")
        without = set(re.findall(r'"([^"]+)"', found.group(3) or ""))
        with open(os.path.join(ROOT, found.group(1)), encoding="utf-8") as file:
            self.body(list(section(file.read().split("\n"), found.group(2), without)), found.group(1))

    def directive(self, what, words):
        if what == "commands":
            self.commands(words.split())
        elif what == "flags":
            self.flags(Help(self.programs, words.split()))
        elif what == "examples":
            self.code([line[2:] for line in Help(self.programs, words.split()).examples])
        elif what == "include":
            self.include(words)
        else:
            raise Wrong(f"there is no directive {what}")

    # markdown

    def heading(self, line):
        level, text = len(line) - len(line.lstrip("#")), line.lstrip("#").strip()
        if level == 2:
            self.sections.append(text.upper())
            self.say(f".SH {quoted(inline(text.upper()))}")
        elif level > 2:
            self.say(f".SS {quoted(inline(text))}")

    def body(self, lines, name):
        at = 0
        while at < len(lines):
            at = self.block(lines, at, name)

    def block(self, lines, at, name):
        """One block; where the next begins."""
        line = lines[at]
        directive = DIRECTIVE.match(line)
        if not line.strip() or line.startswith("<!--") and not directive and "-->" in line:
            return at + 1
        if directive:
            self.directive(*directive.groups())
            return at + 1
        if line.startswith("#"):
            self.heading(line)
            return at + 1
        if line.startswith("```"):
            end = next((i for i in range(at + 1, len(lines)) if lines[i].startswith("```")), None)
            if end is None:
                raise Wrong(f"{name}: a block has no end")
            self.code(lines[at + 1:end])
            return end + 1
        if line.startswith("    "):
            end = next((i for i in range(at, len(lines)) if lines[i].strip() and not lines[i].startswith("    ")), len(lines))
            self.code([one[4:] for one in "\n".join(lines[at:end]).rstrip("\n").split("\n")])
            return end
        if line.startswith("|"):
            end = next((i for i in range(at, len(lines)) if not lines[i].startswith("|")), len(lines))
            self.table(lines[at:end])
            return end
        return self.text(lines, at)

    def table(self, lines):
        rows = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines]
        head, rows = rows[0], rows[2:]
        for row in rows:
            said = [f"{inline(title)}: {inline(cell)}" if title and len(head) > 2 else inline(cell)
                    for title, cell in zip(head[1:], row[1:]) if cell]
            self.term(inline(row[0]) or "\\&", [guarded(said[0])] if said else [])
            for more in said[1:]:
                self.say(".br", guarded(more))

    def text(self, lines, at):
        """A paragraph, an item of a list, or a term and what it is."""
        item = re.match(r"^( *)([-*]|\d+\.) +(.*)$", lines[at])
        end = at + 1
        while end < len(lines) and lines[end].strip() and not re.match(r"^(#|```|\||: |<!--| *[-*] | *\d+\. )", lines[end]):
            end += 1
        if item:
            words = [item.group(3)] + [one.strip() for one in lines[at + 1:end]]
            mark = "\\(bu" if item.group(2) in "-*" else item.group(2)
            self.say(f".IP {mark} 3", inline(" ".join(words)))
            if end < len(lines) and lines[end].startswith("   ") and lines[end].strip().startswith("```"):
                return end
            return end
        term = end < len(lines) and lines[end].startswith(": ")
        text = " ".join(one.strip() for one in lines[at:end])
        if not term:
            self.say(".PP", inline(text))
            return end
        stop = end + 1
        while stop < len(lines) and lines[stop].startswith("  ") and lines[stop].strip():
            stop += 1
        self.term(inline(text), [inline(" ".join([lines[end][2:], *(one.strip() for one in lines[end + 1:stop])]))])
        return stop


def flag_name(name):
    """"-o, --output text|json": flags strong, values emphasised."""
    words = []
    for word in name.split(" "):
        comma = word.endswith(",")
        word = word.rstrip(",")
        font = "B" if word.startswith("-") else "I"
        words.append(f"\\f{font}{escaped(word)}\\fR{',' if comma else ''}")
    return " ".join(words)


def section(lines, title, without):
    """The lines below a heading, up to the next of its level; without what stands below some of them."""
    level, skipping = 0, 0
    for line in lines:
        if re.match(r"^#+ ", line):
            this, text = len(line) - len(line.lstrip("#")), line.lstrip("#").strip()
            if level and this <= level:
                return
            skipping = 0 if skipping and this <= skipping else skipping
            if level and text in without and not skipping:
                skipping = this
            if not level and text == title:
                level = this
                continue
            if level and not skipping:
                yield "#" * max(3, this) + " " + text
            continue
        if level and not skipping:
            yield line
    if not level:
        raise Wrong(f'there is no section "{title}"')


def make(source, out, programs, version):
    name, number = os.path.basename(source)[:-len(".md")].rsplit(".", 1)
    with open(source, encoding="utf-8") as file:
        lines = file.read().split("\n")
    page = Page(programs)
    page.say(f'.\\" Made from {os.path.relpath(source, ROOT)} by deploy/build/man.py; do not edit.',
             f'.TH {quoted(escaped(name.upper()))} {number} "" {quoted("Pawl " + escaped(version))} "Pawl"', ".nh", ".ad l")
    title = re.sub(r"^# *\S+ *(?:--|\u2014|-|:)? *", "", lines[0]) if lines[0].startswith("# ") else ""
    if not any(re.match(r"^## *NAME *$", line, re.I) for line in lines):
        if not title:
            raise Wrong(f"{source}: its first line must be '# {name}({number}) - what it is'")
        page.say(".SH NAME", f"{escaped(name)} \\- {inline(title)}")
    page.body(lines[1:] if lines[0].startswith("# ") else lines, source)
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    with open(out + ".new", "w", encoding="ascii") as file:
        file.write("\n".join(page.lines) + "\n")
    os.replace(out + ".new", out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=os.path.join(ROOT, "build"))
    parser.add_argument("--version", default="")
    parser.add_argument("source")
    parser.add_argument("out")
    given = parser.parse_args()
    try:
        make(given.source, given.out, given.programs, given.version)
    except (Wrong, OSError, subprocess.SubprocessError) as error:
        print(f"man.py: {given.source}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
