#!/usr/bin/python3
"""test_rules.py - every rule of lint bites: a fault is planted for each in a small tree, and the rule tells of it."""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

from tap import Tap  # noqa: E402
from tree import Tree  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("lint", os.path.join(HERE, "run"))
lint = importlib.util.module_from_spec(importlib.util.spec_from_loader("lint", LOADER))
LOADER.exec_module(lint)

BORROWED = (".clang-format", ".clang-tidy", ".luacheckrc", "Makefile", "VERSION", "deploy/install-deps", "deploy/build/install.mk",
            "deploy/build/scripts.py", "deploy/build/openapi.py", "deploy/build/ui.py", "api/ui/page.html")

GOOD_C = """/* good.c - a function. */
#include "shared/text/good.h"

int good(int n)
{
    return n + 1; /* sprintf( and return are only words here */
}
"""
OPENAPI = """openapi: 3.1.0
info:
  license: {name: x}
security: []
paths:
  /v1/a:
    servers: []
    get:
      operationId: look
      x-needs: open
    put:
      operationId: renew
      x-needs: open
components:
  schema:
    anyOf:
      - one
      - two
x-elsewhere:
"""
HOLD = """-- hold.lua - the record.
local function hold_table()
    return { held = 0, more = 0, text = 0 }
end
local HOLD_MORE = { 'held', 'more' }
local function hold_pack(one)
    return one.held or one.more or HOLD_MORE
end
local function hold_parts(one, text)
    one.held, one.text = false, text
    one.more = false
    return one
end
local function hold_new(one)
    return one
end
local function hold_judge(record)
    return record
end
hold_judge(hold_new(hold_parts(hold_table(), 'x')))
hold_pack(hold_table())
"""

GOOD = {
    "shared/text/good.h": "/* good.h - a function. */\n#ifndef GOOD_H\n#define GOOD_H\n\nint good(int n);\n\n#endif\n",
    "shared/text/good.c": GOOD_C,
    "shared/store/store.h": """/* store.h - what a script is. */
#ifndef STORE_H
#define STORE_H

#include <stdbool.h>
#include <stddef.h>

struct store_library {
    const char *name;
    const char *text;
    size_t len;
    const char *batch;
};

struct store_script {
    const char *name;
    const char *function;
    const char *head;
    const struct store_library *library;
    bool batch;
    bool twice, reads;
};

#endif
""",
    "api/openapi.yaml": OPENAPI,
    "tests/lint/size.txt": "# room lines\nshared 199\nlease 9\ngateway 9\ndeploy 199\ntests 19\n",
    "deploy/build/library.txt": "shared/member/scripts/lib/call.lua\nshared/member/scripts/lib/hold.lua\nshared/member/scripts/lib/time.lua\nlease/scripts/*.lua\ndo\n"
                                "gateway/scripts/*.lua\nend\n",
    "shared/member/scripts/lib/call.lua": "-- call.lua - what a call knows.\nlocal KEYS, ARGV, calls\n\nlocal function call_begins(keys, argv)\n"
                              "    KEYS, ARGV, calls = keys, argv, 0\nend\n\nlocal function stripe_begins()\n"
                              "    calls = calls + #KEYS + #ARGV\nend\n\nlocal function stripe_runs(run)\n    return run()\nend\n",
    "shared/member/scripts/lib/hold.lua": HOLD,
    "shared/member/scripts/lib/time.lua": "-- time.lua - the clock.\nlocal function clock()\n    return redis.call('TIME')\nend\n\n"
                              "local function spare()\n    return clock()\nend\n",
    "lease/scripts/go.lua": "-- go.lua - tells the time.\nreturn clock()\n",
    "gateway/scripts/come.lua": "-- come.lua - tells the time.\n-- on: store\nreturn spare()\n",
    "tests/wait.py": "import time\n\n\ndef wait_for(event):\n    while not event():\n        time.sleep(0.01)\n",
    "tests/start.sh": "#!/bin/sh\n# sleep 5 would be wrong here\necho started\n",
}

LONG_FUNCTION = "/* bad.c - a function. */\nint bad(int n);\n\nint bad(int n)\n{\n" + "    n++;\n" * 58 + "    return n;\n}\n"
LONG_SCRIPT = "-- long.lua - a function.\nlocal function long()\n" + "    redis.call('PING')\n" * 59 + "end\nlong()\n"


def c(*lines):
    return "/* bad.c - a fault. */\n" + "\n".join(lines) + "\n"


def h(name, *lines):
    return f"/* {name} - a fault. */\n" + "\n".join(lines) + "\n"


# (rule, what is planted, the files with the fault, what is told)
FAULTS = (
    ("function-length", "a function of 61 lines or more", {"shared/text/bad.c": LONG_FUNCTION}, "bad.c:4: bad has 62 lines"),
    ("function-length", "a long function of a script", {"lease/scripts/long.lua": LONG_SCRIPT}, "long has 61 lines"),
    ("file-length", "a file of 801 lines", {"shared/text/bad.c": c(*["int bad;"] * 800)}, "bad.c:1: 801 lines"),
    ("columns", "a line of 111 columns", {"shared/text/bad.c": c("/* " + "x" * 105 + " */")}, "bad.c:2: 111 columns"),
    ("head-comment", "a file that does not say what it is", {"shared/text/bad.c": "/* A file. */\n"}, "bad.c:1: does not begin"),
    ("head-comment", "a head with another name", {"shared/text/bad.h": h("good.h")}, "shared/text/bad.h:1: does not begin"),
    ("head-comment", "a script without a head", {"lease/scripts/bad.lua": "return 1\n"}, "bad.lua:1: does not begin"),
    ("banned", "sprintf", {"shared/text/bad.c": c("void f(char *p)", "{", '    sprintf(p, "x");', "}")}, "bad.c:4: sprintf"),
    ("banned", "strncpy in a test", {"tests/unit/test_bad.c": c("f = strncpy(a, b, 3);")}, "test_bad.c:2: strncpy"),
    ("banned", "sscanf", {"api/cli/bad.c": c('n = sscanf(a, "%d", &b);')}, "bad.c:2: sscanf is banned"),
    ("banned", "system in a product", {"api/cli/bad.c": c('system ("ls");')}, "bad.c:2: system is banned"),
    ("returning-macro", "a macro that returns", {"shared/text/bad.h": h("bad.h", "#define TRY(x) \\", "    if (x) \\",
                                                                   "        return 1")}, "bad.h:2: a macro"),
    ("sleeps", "a test in C that sleeps", {"tests/unit/test_bad.c": c("f(usleep(100));")}, "test_bad.c:2: sleeps"),
    ("sleeps", "a test in Python that sleeps", {"tests/service/test_bad.py": "import time\ntime.sleep(1)\n"},
     "test_bad.py:2: sleeps"),
    ("sleeps", "a test in shell that sleeps", {"tests/bad.sh": "#!/bin/sh\ntrue; sleep 1\n"}, "tests/bad.sh:2: sleeps"),
    ("library", "a file that the library does not have", {"shared/member/scripts/lib/alone.lua": "-- alone.lua - x.\n"},
     "alone.lua:1: it is not in deploy/build/library.txt"),
    ("library", "a number that outlives the call", {"shared/member/scripts/lib/time.lua": "-- time.lua - x.\nlocal a, b = 0, 0\n\n"
                                                    "local function more()\n    a, b = a + b, 1\nend\nmore()\n"},
     "time.lua:5: sets b, which outlives the call"),
    ("library", "a table that outlives the call", {"shared/member/scripts/lib/time.lua": "-- time.lua - x.\nlocal known = {}\n\n"
                                                   "local function more(a)\n    known[a] = 1\nend\nmore(1)\n"},
     "time.lua:5: sets known, which outlives the call"),
    ("records", "a member of a record that keeps what the call before gave it", {"shared/member/scripts/lib/hold.lua": HOLD.replace("    one.more = false\n", "")},
     "hold.lua:1: more is not set anew"),
    ("records", "a member of a record that is not written", {"shared/member/scripts/lib/hold.lua": HOLD.replace("one.held or one.more or", "one.held or")},
     "hold.lua:1: more is not written"),
    ("records", "a member of a record without a place", {"lease/scripts/go.lua": "-- go.lua - x.\nrecord.held, record.more = 1, 2; record.odd = 3\n"},
     "go.lua:2: odd has no place"),
    ("shell", "a shell script with a loose end", {"deploy/bad": "#!/bin/sh\nif true; then\n"}, "deploy/bad:1: "),
    ("python", "Python that cannot be read", {"tests/bad.py": "def f(:\n"}, "tests/bad.py:1: "),
    ("markers", "a mark that something is left for later", {"docs/bad.md": "later\nTO" + "DO: this\n"}, "docs/bad.md:2: "),
    ("words", "a word of ours, in C", {"shared/text/bad.c": c("/* The client is\n * told. */")}, "bad.c:3: told"),
    ("words", "a word of ours, in a script", {"lease/scripts/go.lua": "-- go.lua - x.\nlocal told = 1 -- whoever asks\nreturn told\n"}, "go.lua:2: whoever"),
    ("named-files", "a file that has gone, in C", {"shared/text/bad.c": c("/* As nobody.c does. */")}, "bad.c:2: nobody.c is not there"),
    ("named-files", "a file that has gone, in a script", {"lease/scripts/go.lua": "-- go.lua - tells the time (gone/clock.lua).\nreturn clock()\n"},
     "go.lua:1: gone/clock.lua is not there"),
    ("named-files", "a file that has gone, in CONTRIBUTING", {"CONTRIBUTING.md": "See `lease/go.lua` and `gone.c`.\n"}, "CONTRIBUTING.md:1: gone.c is not there"),
    ("size", "a room that grew", {"lease/scripts/long.lua": "-- long.lua - x.\n" + "redis.call('PING')\n" * 9}, "size.txt:2: lease has 12 lines, not 9"),
    ("size", "a room that shrank, and nobody wrote it down", {"tests/lint/size.txt": "shared 199\nlease 900\ngateway 9\ndeploy 199\ntests 19\n"},
     "size.txt:2: lease has 2 lines, not 900"),
    ("size", "a file in no room", {"attic/bad.c": c("int bad;")}, "attic/bad.c:1: lies in no room"),
    ("openapi", "an operation without an id", {"api/openapi.yaml": OPENAPI.replace("      operationId: renew\n", "")}, "put /v1/a has no operationId"),
    ("openapi", "two operations with one id", {"api/openapi.yaml": OPENAPI.replace("Id: renew", "Id: look")}, "put /v1/a has no operationId"),
    ("openapi", "a path of nobody's", {"api/openapi.yaml": OPENAPI.replace("    servers: []\n", "")}, "/v1/a does not say"),
    ("openapi", "an anyOf of one", {"api/openapi.yaml": OPENAPI.replace("      - two\n", "")}, "an anyOf of one"),
    ("openapi", "a default", {"api/openapi.yaml": OPENAPI + "  requestBodies:\n    a: {type: integer, default: 1}\n"}, "a member with a default"),
    ("openapi", "nothing of security", {"api/openapi.yaml": OPENAPI.replace("security: []\n", "")}, "says nothing of security"),
    ("arrows", "lease that includes gateway", {"gateway/x.h": h("x.h"), "lease/bad.c": c('#include "gateway/x.h"')},
     "bad.c:2: lease may not include gateway/x.h"),
    ("arrows", "gateway that includes lease", {"lease/x.h": h("x.h"), "gateway/bad.c": c('#include "lease/x.h"')},
     "bad.c:2: gateway may not include lease/x.h"),
    ("arrows", "shared that knows of leases", {"shared/member/x.h": h("x.h"),
                                               "shared/text/bad.c": c('#include "shared/member/x.h"')},
     "bad.c:2: shared/text may not include shared/member/x.h"),
    ("arrows", "the client that includes the command", {"api/cli/x.h": h("x.h"),
                                                        "api/client/bad.c": c('#include "api/cli/x.h"')},
     "bad.c:2: api/client may not include api/cli/x.h"),
    ("arrows", "a product that includes a test", {"tests/x.h": h("x.h"), "lease/bad.c": c('# include "tests/x.h"')},
     "bad.c:2: lease may not include tests/x.h"),
    ("arrows", "the client with the scripts", {"api/client/bad.c": c('#include "build/gen/scripts.h"')},
     "bad.c:2: api/client may not include build/gen/scripts.h"),
    ("arrows", "an include of nothing", {"lease/bad.c": c('#include "shared/text/no.h"')}, '"shared/text/no.h" is not there'),
    ("arrows", "an include that is not named from the root", {"shared/text/bad.c": c('#include "good.h"')}, "from the root"),
    ("arrows", "a file in no room", {"attic/bad.c": c("int bad;")}, "attic/bad.c:1: lies in no room"),
    ("cycles", "headers in a circle", {"shared/text/a.h": h("a.h", '#include "shared/text/b.h"'),
                                       "shared/text/b.h": h("b.h", '#include "shared/text/c.h"'),
                                       "shared/text/c.h": h("c.h", '#include "shared/text/a.h"')}, "shared/text/a -> shared/text/b"),
    ("cycles", "a file that includes who includes its header", {
        "shared/text/a.h": h("a.h"), "shared/text/a.c": h("a.c", '#include "shared/text/b.h"'),
        "shared/text/b.h": h("b.h", '#include "shared/text/a.h"')}, "shared/text/a -> shared/text/b -> shared/text/a"),
    ("libraries", "hiredis elsewhere", {"lease/bad.c": c("#include <hiredis/hiredis.h>")}, "bad.c:2: hiredis/hiredis.h"),
    ("libraries", "microhttpd elsewhere", {"shared/text/bad.c": c("#include <microhttpd.h>")}, "bad.c:2: microhttpd.h"),
    ("libraries", "cJSON elsewhere", {"shared/text/bad.c": c("#include <cjson/cJSON.h>")}, "bad.c:2: cjson/cJSON.h"),
    ("libraries", "libuv elsewhere", {"shared/text/bad.c": c("#include <uv.h>")}, "bad.c:2: uv.h"),
    ("libraries", "sodium elsewhere", {"gateway/bad.c": c("#include <sodium.h>")}, "bad.c:2: sodium.h"),
    ("libraries", "GnuTLS elsewhere", {"api/client/bad.c": c("#include <gnutls/gnutls.h>")}, "bad.c:2: gnutls/gnutls.h"),
    ("libraries", "curl elsewhere", {"api/cli/bad.c": c("#include <curl/curl.h>")}, "bad.c:2: curl/curl.h"),
    ("layout", "a layout of one's own", {"shared/text/bad.c": c("int   bad;")}, "bad.c:2"),
    ("luacheck", "a variable that nobody reads", {"lease/scripts/bad.lua": "-- bad.lua - x.\nlocal x = 1\n"},
     "bad.lua:2: unused variable 'x'"),
    ("luacheck", "a name that nobody defined", {"lease/scripts/bad.lua": "-- bad.lua - x.\nreturn watch()\n"},
     "bad.lua:2: accessing undefined variable 'watch'"),
    ("luacheck", "a function that no script needs", {"gateway/scripts/come.lua": "-- come.lua - x.\nreturn 1\n"},
     "shared/member/scripts/lib/time.lua:6: unused function 'spare'"),
    ("luacheck", "a script that cannot be read", {"lease/scripts/bad.lua": "-- bad.lua - x.\nreturn (\n"}, "bad.lua:"),
    ("gcc", "a conversion that loses bits", {"shared/text/bad.c": c("char bad(int n);", "char bad(int n)", "{",
                                                               "    return n;", "}")}, "bad.c:5:"),
    ("gcc", "a switch that forgets one", {"shared/text/bad.c": c(
        "enum e { A, B };", "int bad(enum e e);", "int bad(enum e e)", "{", "    switch (e) {", "    case A: return 1;",
        "    default: return 2;", "    }", "}")}, "bad.c:6:"),
    ("clang", "a missing prototype", {"shared/text/bad.c": c("int bad(void)", "{", "    return 1;", "}")}, "bad.c:2:"),
    ("clang", "a test that does not compile", {"tests/unit/test_bad.c": c("int bad(void) { return; }")}, "test_bad.c:2:"),
    ("tidy", "the same question twice", {"shared/text/bad.c": c(
        "int bad(int n);", "int bad(int n)", "{", "    return n > 1 && n > 1;", "}")}, "bad.c:5:"),
    ("analyzer", "a null pointer that is followed", {"shared/text/bad.c": c(
        "int bad(int n);", "int bad(int n)", "{", "    int *p = n > 3 ? &n : 0;", "    return *p;", "}")}, "bad.c:6:"),
    ("globals", "a variable of the process", {"shared/text/bad.c": c(
        "int bad(void);", "int bad(void)", "{", "    static int count;", "    return ++count;", "}")}, "count"),
    ("globals", "a table that can be written", {"shared/text/bad.c": c(
        "int *bad(void);", "static int table[3] = {1, 2, 3};", "int *bad(void)", "{", "    return table;", "}")}, "table"),
)


def plant(place, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(place, path)), exist_ok=True)
        with open(os.path.join(place, path), "w", encoding="utf-8") as file:
            file.write(text)


def good_tree(place):
    for path in BORROWED:
        os.makedirs(os.path.dirname(os.path.join(place, path)), exist_ok=True)
        shutil.copy(os.path.join(ROOT, path), os.path.join(place, path))
    plant(place, GOOD)
    return place


def findings(place, rule):
    if rule == "globals":
        lint.check("gcc", Tree(place))  # makes the objects
    return lint.check(rule, Tree(place))


def passes(place, rule):
    found = findings(place, rule)
    assert not found, f"{rule} found in a good tree: {found}"


def bites(place, rule, files, told):
    before = {path: GOOD.get(path) for path in files}
    plant(place, files)
    try:
        found = findings(place, rule)
        assert any(told in one for one in found), f"{rule} did not tell of {told!r}, but of {found}"
    finally:
        for path in files:
            os.remove(os.path.join(place, path))
        plant(place, {path: text for path, text in before.items() if text is not None})


def nothing_seen(place, rule):
    found = lint.check(rule, Tree(place))
    assert found, f"{rule} is content with an empty tree"


def analyzed_by_turns():
    """Files that no commit has changed have their turn, and what was changed has it each time."""
    fault = next(files for rule, _, files, _ in FAULTS if rule == "analyzer")
    with tempfile.TemporaryDirectory() as place:
        plant(good_tree(place), {**fault, ".gitignore": "build/\n"})
        git = ["git", "-C", place, "-c", "user.name=x", "-c", "user.email=x", "-c", "init.defaultBranch=main"]
        subprocess.run([*git, "init", "-q"], check=True)
        tree = Tree(place)

        def found_by_turns():
            found = []
            for part in (1, 2):
                tree.part = (part, 2)
                found.append(len(lint.check("analyzer", tree)) > 0)
            return found
        for message in ("add the fault", "something else", "and more"):
            subprocess.run([*git, "add", "."], check=True)
            subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", message], check=True)
            found = found_by_turns()
            wanted = {"and more": [True, False]}.get(message, [True, True])
            assert found == wanted, f"{message}: {found}, not {wanted}"


def every_rule_has_a_fault():
    without = set(lint.RULES) - {rule for rule, *_ in FAULTS}
    assert not without, f"no fault is planted for {', '.join(sorted(without))}"


def main():
    tap = Tap()
    tap.run("every rule has a planted fault", every_rule_has_a_fault)
    with tempfile.TemporaryDirectory() as place:
        for rule in lint.RULES:
            tap.run(f"{rule} fails when there is nothing to look at", nothing_seen, place, rule)
    with tempfile.TemporaryDirectory() as place:
        good_tree(place)
        for rule in lint.RULES:
            tap.run(f"{rule} finds nothing in a good tree", passes, place, rule)
        for rule, what, files, told in FAULTS:
            tap.run(f"{rule} tells of {what}", bites, place, rule, files, told)
        tap.run("the analyzer takes turns, and looks at what was changed each time", analyzed_by_turns)
        for rule in lint.RULES:
            tap.run(f"{rule} finds nothing again when the faults are gone", passes, place, rule)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
