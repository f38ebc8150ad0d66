#!/usr/bin/python3
"""test_rules.py - every rule of lint bites: a fault is planted for each in a small tree, and the rule tells of it."""

import importlib.machinery
import importlib.util
import os
import shutil
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
            "deploy/build/scripts.py", "deploy/build/openapi.py")

GOOD_C = """/* good.c - a function. */
#include "shared/good.h"

int good(int n)
{
    return n + 1; /* sprintf( and return are only words here */
}
"""
GOOD = {
    "shared/good.h": "/* good.h - a function. */\n#ifndef GOOD_H\n#define GOOD_H\n\nint good(int n);\n\n#endif\n",
    "shared/good.c": GOOD_C,
    "shared/store.h": """/* store.h - what a script is. */
#ifndef STORE_H
#define STORE_H

#include <stddef.h>

struct store_script {
    const char *name;
    const char *source;
    size_t len;
    unsigned index;
};

#endif
""",
    "api/openapi.yaml": "openapi: 3.1.0\n",
    "shared/record/time.lua": "-- time.lua - the clock.\nlocal function clock()\n    return redis.call('TIME')\nend\n\n"
                              "local function spare()\n    return clock()\nend\n",
    "lease/scripts/go.lua": "-- go.lua - tells the time.\n-- use: shared/record/time.lua\nreturn clock()\n",
    "gateway/scripts/come.lua": "-- come.lua - tells the time.\n-- use: shared/record/time.lua\nreturn spare()\n",
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
    ("function-length", "a function of 61 lines or more", {"shared/bad.c": LONG_FUNCTION}, "bad.c:4: bad has 62 lines"),
    ("function-length", "a long function of a script", {"lease/scripts/long.lua": LONG_SCRIPT}, "long has 61 lines"),
    ("file-length", "a file of 801 lines", {"shared/bad.c": c(*["int bad;"] * 800)}, "bad.c:1: 801 lines"),
    ("columns", "a line of 111 columns", {"shared/bad.c": c("/* " + "x" * 105 + " */")}, "bad.c:2: 111 columns"),
    ("head-comment", "a file that does not say what it is", {"shared/bad.c": "/* A file. */\n"}, "bad.c:1: does not begin"),
    ("head-comment", "a head with another name", {"shared/bad.h": h("good.h")}, "shared/bad.h:1: does not begin"),
    ("head-comment", "a script without a head", {"lease/scripts/bad.lua": "return 1\n"}, "bad.lua:1: does not begin"),
    ("banned", "sprintf", {"shared/bad.c": c("void f(char *p)", "{", '    sprintf(p, "x");', "}")}, "bad.c:4: sprintf"),
    ("banned", "strncpy in a test", {"tests/unit/test_bad.c": c("f = strncpy(a, b, 3);")}, "test_bad.c:2: strncpy"),
    ("banned", "sscanf", {"api/cli/bad.c": c('n = sscanf(a, "%d", &b);')}, "bad.c:2: sscanf is banned"),
    ("banned", "system in a product", {"api/cli/bad.c": c('system ("ls");')}, "bad.c:2: system is banned"),
    ("returning-macro", "a macro that returns", {"shared/bad.h": h("bad.h", "#define TRY(x) \\", "    if (x) \\",
                                                                   "        return 1")}, "bad.h:2: a macro"),
    ("sleeps", "a test in C that sleeps", {"tests/unit/test_bad.c": c("f(usleep(100));")}, "test_bad.c:2: sleeps"),
    ("sleeps", "a test in Python that sleeps", {"tests/service/test_bad.py": "import time\ntime.sleep(1)\n"},
     "test_bad.py:2: sleeps"),
    ("sleeps", "a test in shell that sleeps", {"tests/bad.sh": "#!/bin/sh\ntrue; sleep 1\n"}, "tests/bad.sh:2: sleeps"),
    ("used-scripts", "a use of a file that is not there", {"lease/scripts/bad.lua": "-- bad.lua - x.\n-- use: no.lua\n"},
     "bad.lua:2: uses no.lua"),
    ("used-scripts", "a use line below the head", {"lease/scripts/bad.lua": "-- bad.lua - x.\n\n-- use: no.lua\n"},
     "bad.lua:3: a 'use' line below"),
    ("used-scripts", "a used file that no script uses", {"shared/record/alone.lua": "-- alone.lua - x.\n"},
     "alone.lua:1: no script uses it"),
    ("shell", "a shell script with a loose end", {"deploy/bad": "#!/bin/sh\nif true; then\n"}, "deploy/bad:1: "),
    ("python", "Python that cannot be read", {"tests/bad.py": "def f(:\n"}, "tests/bad.py:1: "),
    ("markers", "a mark that something is left for later", {"docs/bad.md": "later\nTO" + "DO: this\n"}, "docs/bad.md:2: "),
    ("arrows", "lease that includes gateway", {"gateway/x.h": h("x.h"), "lease/bad.c": c('#include "gateway/x.h"')},
     "bad.c:2: lease may not include gateway/x.h"),
    ("arrows", "gateway that includes lease", {"lease/x.h": h("x.h"), "gateway/bad.c": c('#include "lease/x.h"')},
     "bad.c:2: gateway may not include lease/x.h"),
    ("arrows", "shared that knows of leases", {"shared/record/x.h": h("x.h"),
                                               "shared/bad.c": c('#include "shared/record/x.h"')},
     "bad.c:2: shared may not include shared/record/x.h"),
    ("arrows", "the client that includes the command", {"api/cli/x.h": h("x.h"),
                                                        "api/client/bad.c": c('#include "api/cli/x.h"')},
     "bad.c:2: api/client may not include api/cli/x.h"),
    ("arrows", "a product that includes a test", {"tests/x.h": h("x.h"), "lease/bad.c": c('# include "tests/x.h"')},
     "bad.c:2: lease may not include tests/x.h"),
    ("arrows", "gateway with the scripts of lease", {"gateway/bad.c": c('#include "build/gen/lease_scripts.h"')},
     "bad.c:2: gateway may not include build/gen/lease_scripts.h"),
    ("arrows", "an include of nothing", {"lease/bad.c": c('#include "shared/no.h"')}, '"shared/no.h" is not there'),
    ("arrows", "an include that is not named from the root", {"shared/bad.c": c('#include "good.h"')}, "from the root"),
    ("arrows", "a file in no room", {"attic/bad.c": c("int bad;")}, "attic/bad.c:1: lies in no room"),
    ("cycles", "headers in a circle", {"shared/a.h": h("a.h", '#include "shared/b.h"'),
                                       "shared/b.h": h("b.h", '#include "shared/c.h"'),
                                       "shared/c.h": h("c.h", '#include "shared/a.h"')}, "shared/a.h -> shared/b.h"),
    ("libraries", "hiredis elsewhere", {"lease/bad.c": c("#include <hiredis/hiredis.h>")}, "bad.c:2: hiredis/hiredis.h"),
    ("libraries", "microhttpd elsewhere", {"shared/bad.c": c("#include <microhttpd.h>")}, "bad.c:2: microhttpd.h"),
    ("libraries", "cJSON elsewhere", {"shared/bad.c": c("#include <cjson/cJSON.h>")}, "bad.c:2: cjson/cJSON.h"),
    ("libraries", "libuv elsewhere", {"shared/bad.c": c("#include <uv.h>")}, "bad.c:2: uv.h"),
    ("libraries", "sodium elsewhere", {"gateway/bad.c": c("#include <sodium.h>")}, "bad.c:2: sodium.h"),
    ("libraries", "curl elsewhere", {"api/cli/bad.c": c("#include <curl/curl.h>")}, "bad.c:2: curl/curl.h"),
    ("layout", "a layout of one's own", {"shared/bad.c": c("int   bad;")}, "bad.c:2"),
    ("luacheck", "a variable that nobody reads", {"lease/scripts/bad.lua": "-- bad.lua - x.\nlocal x = 1\n"},
     "bad.lua:2: unused variable 'x'"),
    ("luacheck", "a name that nobody defined", {"lease/scripts/bad.lua": "-- bad.lua - x.\nreturn clock()\n"},
     "bad.lua:2: accessing undefined variable 'clock'"),
    ("luacheck", "a used function that no script needs", {"gateway/scripts/come.lua": GOOD["lease/scripts/go.lua"]
                                                          .replace("go.lua", "come.lua")},
     "shared/record/time.lua:6: unused function 'spare'"),
    ("luacheck", "a script that cannot be read", {"lease/scripts/bad.lua": "-- bad.lua - x.\nreturn (\n"}, "bad.lua:"),
    ("gcc", "a conversion that loses bits", {"shared/bad.c": c("char bad(int n);", "char bad(int n)", "{",
                                                               "    return n;", "}")}, "bad.c:5:"),
    ("gcc", "a switch that forgets one", {"shared/bad.c": c(
        "enum e { A, B };", "int bad(enum e e);", "int bad(enum e e)", "{", "    switch (e) {", "    case A: return 1;",
        "    default: return 2;", "    }", "}")}, "bad.c:6:"),
    ("clang", "a missing prototype", {"shared/bad.c": c("int bad(void)", "{", "    return 1;", "}")}, "bad.c:2:"),
    ("clang", "a test that does not compile", {"tests/unit/test_bad.c": c("int bad(void) { return; }")}, "test_bad.c:2:"),
    ("tidy", "a size that is the pointer's", {"shared/bad.c": c(
        "#include <string.h>", "int bad(const char *p);", "int bad(const char *p)", "{",
        '    return memcmp(p, "12345678", sizeof(p));', "}")}, "bad.c:6:"),
    ("tidy", "a null pointer that is followed", {"shared/bad.c": c(
        "int bad(int n);", "int bad(int n)", "{", "    int *p = n > 3 ? &n : 0;", "    return *p;", "}")}, "bad.c:6:"),
    ("globals", "a variable of the process", {"shared/bad.c": c(
        "int bad(void);", "int bad(void)", "{", "    static int count;", "    return ++count;", "}")}, "count"),
    ("globals", "a table that can be written", {"shared/bad.c": c(
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
        for rule in lint.RULES:
            tap.run(f"{rule} finds nothing again when the faults are gone", passes, place, rule)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
