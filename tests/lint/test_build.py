#!/usr/bin/python3
"""test_build.py - the build builds what changed and nothing else, and scripts become C without losing a byte."""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from tap import Tap  # noqa: E402
from test_rules import good_tree, plant  # noqa: E402

MAIN = "/* main.c - a program. */\n#include <stdio.h>\n\n#include \"shared/good.h\"\n\nint main(void)\n{\n" \
       "    printf(\"%d %s\\n\", good(1), PAWL_VERSION);\n    return 0;\n}\n"
DUMP = """/* main.c - prints a script and the document. */
#include <stdio.h>

#include "build/gen/lease_scripts.h"
#include "build/gen/openapi.h"

int main(void)
{
    for (unsigned i = 0; lease_scripts[i] != NULL; i++) {
        if (lease_scripts[i]->index == i) {
            printf("<%s %zu>", lease_scripts[i]->name, lease_scripts[i]->len);
            fwrite(lease_scripts[i]->source, 1, lease_scripts[i]->len, stdout);
        }
    }
    fwrite(openapi_json, 1, openapi_json_len, stdout);
    return 0;
}
"""
PROGRAMS = {"lease/main.c": MAIN, "gateway/main.c": MAIN, "api/cli/main.c": MAIN}


def run(place, *argv):
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(argv, cwd=place, capture_output=True, text=True, env=env, check=False)


def make(place, *more):
    done = run(place, "make", *more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(files=None):
    """A directory with a small tree that has been built."""
    place = tempfile.TemporaryDirectory()
    good_tree(place.name)
    plant(place.name, {**PROGRAMS, **(files or {})})
    make(place.name)
    return place


def same_again():
    with built() as place:
        assert "Nothing to be done for 'all'" in make(place), make(place)


def header_changes():
    with built() as place:
        plant(place, {"shared/good.h": "/* good.h - changed. */\nint good(int n);\n"})
        told = make(place)
        assert "obj/shared/good.o" in told and "obj/lease/main.o" in told and "obj/gateway/main.o" in told, told
        assert "lease_scripts" not in told, told


def flags_change():
    with built() as place:
        told = make(place, "CFLAGS=-DMORE")
        assert "obj/shared/good.o" in told and "build/pawl-gateway" in told, told
        assert "Nothing to be done" in make(place, "CFLAGS=-DMORE")


def version_changes():
    with built() as place:
        plant(place, {"VERSION": "9.8.7\n"})
        make(place)
        assert run(place, "build/pawl").stdout == "2 9.8.7\n", run(place, "build/pawl").stdout


def source_goes():
    with built({"shared/more.c": "/* more.c - more. */\nint more(void);\n\nint more(void)\n{\n    return 1;\n}\n"}) as place:
        assert "more.o" in run(place, "ar", "t", "build/libshared.a").stdout
        os.remove(os.path.join(place, "shared/more.c"))
        make(place)
        assert "more.o" not in run(place, "ar", "t", "build/libshared.a").stdout


def script_goes():
    with built({"lease/scripts/more.lua": "-- more.lua - more.\nreturn 1\n"}) as place:
        with open(os.path.join(place, "build/gen/lease_scripts.h"), encoding="utf-8") as file:
            assert "script_more" in file.read()
        os.remove(os.path.join(place, "lease/scripts/more.lua"))
        make(place)
        with open(os.path.join(place, "build/gen/lease_scripts.h"), encoding="utf-8") as file:
            assert "script_more" not in file.read()


def used_script_changes():
    with built() as place:
        plant(place, {"shared/record/time.lua": "local function clock()\n    return 1\nend\n\nlocal spare = clock\n"})
        told = make(place)
        assert "lease_scripts" in told and "gateway_scripts" in told and "build/pawl-lease" in told, told


def variants_apart():
    with built() as place:
        make(place, "SANITIZE=address,undefined")
        make(place, "CC=clang")
        for program in ("build/pawl", "build/asan/pawl", "build/clang/pawl"):
            assert run(place, program).stdout.startswith("2 "), program
        assert "Nothing to be done" in make(place)
        assert "__asan_init" in run(place, "nm", "build/asan/pawl").stdout
        assert "__asan_init" not in run(place, "nm", "build/pawl").stdout


def hardened():
    with built() as place:
        told = run(place, "readelf", "-hldW", "build/pawl-lease").stdout
        for sign in ("DYN (", "GNU_RELRO", "BIND_NOW", "PIE"):
            assert sign in told, f"no {sign} in\n{told}"


def warnings_stop():
    with built() as place:
        plant(place, {"shared/bad.c": "/* bad.c - x. */\nint bad(void)\n{\n    return 1;\n}\n"})
        make(place)
        assert run(place, "make", "WERROR=1").returncode != 0


def installs():
    with built() as place:
        make(place, "install", "DESTDIR=out", "PREFIX=/opt/pawl")
        assert sorted(os.listdir(os.path.join(place, "out/opt/pawl/bin"))) == ["pawl", "pawl-gateway", "pawl-lease"]


def cleans():
    with built() as place:
        make(place, "clean")
        assert not os.path.exists(os.path.join(place, "build"))


def dependencies_first():
    """Neither compiler nor pkg-config is called before install-deps has run."""
    with tempfile.TemporaryDirectory() as place:
        good_tree(place)
        plant(place, {**PROGRAMS, "deploy/install-deps": "#!/bin/sh\necho deps >> order\nexit 3\n"})
        for tool in ("gcc", "cc", "pkg-config", "python3"):
            plant(place, {f"bin/{tool}": f"#!/bin/sh\necho {tool} >> order\n"})
            os.chmod(os.path.join(place, "bin", tool), 0o755)
        os.chmod(os.path.join(place, "deploy/install-deps"), 0o755)
        env = dict(os.environ, PATH=f"{place}/bin:{os.environ['PATH']}")
        done = subprocess.run(["make"], cwd=place, capture_output=True, text=True, env=env, check=False)
        assert done.returncode != 0, done.stdout
        with open(os.path.join(place, "order"), encoding="utf-8") as file:
            assert file.read() == "deps\n", "something was called beside install-deps"


TRICKY = ("-- tricky.lua - texts that could be mangled.\n"
          "\n"
          "local a = 'what??/ \"this\" \\\\ \\n %s' -- a trailing comment stays\n"
          "    -- an indented comment goes\n"
          "local b = 'one\\\n"
          "-- not a comment: the text goes on here\n"
          "'\n"
          "local c = 'é 1\\0012'\n"
          "return { a, b, c }\n")
TRICKY_EMBEDDED = "".join(line for number, line in enumerate(TRICKY.splitlines(keepends=True), 1) if number not in (1, 2, 4))
LONG = "-- long.lua - a long bracket.\nlocal a = [[\n-- not a comment\n\n]]\nreturn a"


def embeds_every_byte():
    with built({"lease/main.c": DUMP, "lease/scripts/tricky.lua": TRICKY, "lease/scripts/long.lua": LONG,
                "api/openapi.yaml": "openapi: 3.1.0\ninfo: {title: \"a \\\"b\\\" é ??/\"}\n"}) as place:
        told = subprocess.run([os.path.join(place, "build/pawl-lease")], capture_output=True, check=True).stdout
        for name, text in (("tricky", TRICKY_EMBEDDED), ("long", LONG + "\n")):
            text = text.encode()
            assert f"<{name} {len(text)}>".encode() + text in told, f"{name}: {told!r}"
            printed = subprocess.run(["deploy/build/scripts.py", "assemble", f"lease/scripts/{name}.lua"], cwd=place,
                                     capture_output=True, check=True).stdout
            assert printed == text, f"assemble prints {printed!r}"
        assert told.endswith('{"openapi":"3.1.0","info":{"title":"a \\"b\\" \\u00e9 ??/"}}'.encode()), told[-80:]


def replaces_a_used_file():
    with built({"fake.lua": "local function clock()\n    return 42\nend\n"}) as place:
        done = run(place, "deploy/build/scripts.py", "assemble", "lease/scripts/go.lua", "--replace",
                   "shared/record/time.lua=" + os.path.join(place, "fake.lua"))
        assert done.stdout == "local function clock()\n    return 42\nend\nreturn clock()\n", done.stdout + done.stderr
        done = run(place, "deploy/build/scripts.py", "assemble", "lease/scripts/go.lua", "--replace", "other.lua=fake.lua")
        assert done.returncode == 1 and "does not use other.lua" in done.stderr, done.stderr


def refuses_scripts():
    for text, told in (("-- a.lua - x.\n-- use: no.lua\n", "no.lua: No such file"),
                       ("-- a.lua - x.\n-- use: gateway/scripts/come.lua\n", "a used file must not use others")):
        with tempfile.TemporaryDirectory() as place:
            good_tree(place)
            plant(place, {"lease/scripts/a.lua": text})
            done = run(place, "deploy/build/scripts.py", "embed", "build/gen/lease_scripts", "lease/scripts")
            assert done.returncode == 1 and told in done.stderr, done.stderr


def main():
    tap = Tap()
    tap.run("make with nothing changed does nothing", same_again)
    tap.run("a changed header compiles what includes it, and only that", header_changes)
    tap.run("other flags compile everything once", flags_change)
    tap.run("another version is in the programs", version_changes)
    tap.run("a source that is gone leaves the library", source_goes)
    tap.run("a script that is gone leaves the table", script_goes)
    tap.run("a changed file that scripts use reaches both services", used_script_changes)
    tap.run("sanitizer and clang builds lie beside the default one", variants_apart)
    tap.run("the programs are position independent and bound at once", hardened)
    tap.run("a warning stops the build when it is asked to", warnings_stop)
    tap.run("install puts the programs where it is told", installs)
    tap.run("clean leaves nothing", cleans)
    tap.run("neither compiler nor pkg-config is called before the dependencies are there", dependencies_first)
    tap.run("a script and the document are embedded byte by byte", embeds_every_byte)
    tap.run("a test can put its own file in the place of a used one", replaces_a_used_file)
    tap.run("a script that uses what is not there, or what uses others, is refused", refuses_scripts)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
