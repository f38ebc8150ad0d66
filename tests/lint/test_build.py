#!/usr/bin/python3
"""test_build.py - the build builds what changed and nothing else, and scripts become C without losing a byte."""

import functools
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from tap import Tap  # noqa: E402
from test_rules import good_tree, plant  # noqa: E402

MAIN = "/* main.c - a program. */\n#include <stdio.h>\n\n#include \"shared/text/good.h\"\n\nint main(void)\n{\n" \
       "    printf(\"%d %s\\n\", good(1), PAWL_VERSION);\n    return 0;\n}\n"
DUMP = """/* main.c - prints the library and the document. */
#include <stdio.h>

#include "build/gen/openapi.h"
#include "build/gen/scripts.h"

int main(void)
{
    printf("<%s %s %s>", script_tricky.name, script_tricky.function, script_tricky.head);
    fwrite(pawl_library.text, 1, pawl_library.len, stdout);
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


@functools.cache
def built_once():
    place = tempfile.TemporaryDirectory()
    plant(good_tree(place.name), PROGRAMS)
    make(place.name)
    return place


def built(files=None):
    """A directory with a small tree that has been built."""
    place = tempfile.TemporaryDirectory()
    shutil.copytree(built_once().name, place.name, symlinks=True, dirs_exist_ok=True)
    if files:
        plant(place.name, files)
        make(place.name)
    return place


def same_again():
    with built() as place:
        assert "Nothing to be done for 'all'" in make(place), make(place)


def header_changes():
    with built() as place:
        plant(place, {"shared/text/good.h": "/* good.h - changed. */\nint good(int n);\n"})
        told = make(place, "V=1")
        assert "obj/shared/text/good.o" in told and "obj/lease/main.o" in told and "obj/gateway/main.o" in told, told
        assert "build/scripts.py" not in told, told


def flags_change():
    with built() as place:
        told = make(place, "CFLAGS=-DMORE", "V=1")
        assert "obj/shared/text/good.o" in told and "build/pawl-gateway" in told, told
        assert "Nothing to be done" in make(place, "CFLAGS=-DMORE")


def version_changes():
    with built() as place:
        plant(place, {"VERSION": "9.8.7\n"})
        make(place)
        assert run(place, "build/pawl").stdout == "2 9.8.7\n", run(place, "build/pawl").stdout


def source_goes():
    with built({"shared/text/more.c": "/* more.c - more. */\nint more(void);\n\nint more(void)\n{\n    return 1;\n}\n"}) as place:
        assert "more.o" in run(place, "ar", "t", "build/libshared.a").stdout
        os.remove(os.path.join(place, "shared/text/more.c"))
        make(place)
        assert "more.o" not in run(place, "ar", "t", "build/libshared.a").stdout


def script_goes():
    with built({"lease/scripts/more.lua": "-- more.lua - more.\nreturn 1\n"}) as place:
        with open(os.path.join(place, "build/gen/scripts.h"), encoding="utf-8") as file:
            assert "script_more" in file.read()
        os.remove(os.path.join(place, "lease/scripts/more.lua"))
        make(place)
        with open(os.path.join(place, "build/gen/scripts.h"), encoding="utf-8") as file:
            assert "script_more" not in file.read()


def used_script_changes():
    with built() as place:
        plant(place, {"shared/member/scripts/lib/time.lua": "local function clock()\n    return 1\nend\n\nlocal spare = clock\n"})
        told = make(place)
        assert "gen/scripts" in told and "build/pawl-lease" in told and "build/pawl-gateway" in told, told


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
        plant(place, {"shared/text/bad.c": "/* bad.c - x. */\nint bad(void)\n{\n    return 1;\n}\n"})
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
        library = subprocess.run(["deploy/build/scripts.py", "library"], cwd=place, capture_output=True, check=True).stdout
        for name, text in (("tricky", TRICKY_EMBEDDED), ("long", LONG + "\n")):
            text = f"function operations.{name}()\n{text}end\n".encode()
            assert text in library, f"{name}: {library!r}"
        name = library.split(b"\n")[0].split(b"pawl_")[1]
        assert told.startswith(b"<tricky " + name + b"_tricky >" + library), told
        assert told.endswith('{"openapi":"3.1.0","info":{"title":"a \\"b\\" \\u00e9 ??/"}}'.encode()), told[-80:]


def replaces_a_file():
    with built({"fake.lua": "local function clock()\n    return 42\nend\n"}) as place:
        done = run(place, "deploy/build/scripts.py", "library", "--replace", "shared/member/scripts/lib/time.lua=" + os.path.join(place, "fake.lua"))
        assert "local function clock()\n    return 42\nend\n" in done.stdout, done.stdout + done.stderr
        assert "TIME" not in done.stdout, done.stdout
        done = run(place, "deploy/build/scripts.py", "library", "--replace", "other.lua=fake.lua")
        assert done.returncode == 1 and "does not have other.lua" in done.stderr, done.stderr


def lines_lead_to_their_files():
    with built() as place:
        lines = run(place, "deploy/build/scripts.py", "lines").stdout.splitlines()
        text = run(place, "deploy/build/scripts.py", "library").stdout.splitlines()
        assert len(lines) == len(text), (lines, text)
        assert text[lines.index("shared/member/scripts/lib/time.lua:3")] == "    return redis.call('TIME')", (lines, text)


def refuses_scripts():
    for path, head, told in (("lease/scripts/Go.lua", "", "a script's name is"),
                             ("gateway/scripts/go.lua", "", "there is lease/scripts/go.lua"),
                             ("lease/scripts/x.lua", "-- on: store\n-- batch: yes\n", "the stripe's prelude can be in a batch")):
        with tempfile.TemporaryDirectory() as place:
            good_tree(place)
            plant(place, {path: "-- x.lua - x.\n" + head})
            done = run(place, "deploy/build/scripts.py", "library")
            assert done.returncode == 1 and told in done.stderr, done.stderr


def main():
    tap = Tap()
    tap.run("make with nothing changed does nothing", same_again)
    tap.run("a changed header compiles what includes it, and only that", header_changes)
    tap.run("other flags compile everything once", flags_change)
    tap.run("another version is in the programs", version_changes)
    tap.run("a source that is gone leaves the library", source_goes)
    tap.run("a script that is gone leaves the library", script_goes)
    tap.run("a changed file that scripts use reaches both services", used_script_changes)
    tap.run("sanitizer and clang builds lie beside the default one", variants_apart)
    tap.run("the programs are position independent and bound at once", hardened)
    tap.run("a warning stops the build when it is asked to", warnings_stop)
    tap.run("install puts the programs where it is told", installs)
    tap.run("clean leaves nothing", cleans)
    tap.run("neither compiler nor pkg-config is called before the dependencies are there", dependencies_first)
    tap.run("a script and the document are embedded byte by byte", embeds_every_byte)
    tap.run("a test can put its own file in the place of another", replaces_a_file)
    tap.run("each line of the library leads to the file that it is from", lines_lead_to_their_files)
    tap.run("a script with no good name, or with that of another, or that cannot be in a batch, is refused", refuses_scripts)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
