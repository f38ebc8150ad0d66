#!/usr/bin/python3
"""make install and make uninstall: what goes where, that it works there, and that nothing stays."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from client_world import BUILD, ROOT, World
from world import check, check_equal, check_in, main, test
from world.process import die_with_parent

WORLD = World()
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="pawl-install-"))
# A copy of what was built: other paths are other flags, and other tests use the library there now.
COPY = FOLDER / "build"
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
LIBDIR = "/usr/lib/somewhere-linux-gnu"
LAB = ["pawl-drill", "shim.so", *(one.name for one in (ROOT / "tests/drill").glob("*.py") if not one.name.startswith("test_")),
       *(f"world/{name}.py" for name in ("__init__", "asking", "client", "contract", "listening", "ports", "process", "record", "redis", "relay",
                                         "schema", "sentinel", "shim", "signature", "tap", "trio", "wait", "world"))]
UNITS = [unit.name for unit in (ROOT / "deploy/systemd").glob("pawl-*")]


def run(*command, **variables):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith("PAWL_") and name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run([str(one) for one in command], env={**clean, **variables}, cwd=ROOT, capture_output=True, text=True,
                          check=False, timeout=120, preexec_fn=die_with_parent)


def make(goal, place, prefix, *more):
    done = run("make", "--no-print-directory", f"BUILD={COPY}", goal, f"DESTDIR={place}", f"PREFIX={prefix}", *more)
    check_equal(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])


def files(place):
    """What is no directory, without DESTDIR."""
    return {"/" + os.path.relpath(os.path.join(folder, name), place)
            for folder, _, names in os.walk(place) for name in names}


def copy_build():
    names = [name for name in os.listdir(BUILD) if os.path.isfile(BUILD / name) and not os.path.islink(BUILD / name)]
    COPY.mkdir()
    for name in names:
        shutil.copy2(BUILD / name, COPY / name)
    for name in ("obj", "pic", "man", "torture"):
        shutil.copytree(BUILD / name, COPY / name, symlinks=True,
                        ignore=lambda folder, _: ["tests", "bench"] if folder == str(BUILD / "obj") else [])


def wanted(prefix, libdir, zsh):
    """What must be there, documents aside."""
    pages = {page.stem for page in (ROOT / "docs/man").glob("*.md")}
    return {*(f"{prefix}/bin/{name}" for name in ("pawl", "pawl-lease", "pawl-gateway")),
            *(f"{libdir}/{name}" for name in ("libpawl.so", "libpawl.so.0", f"libpawl.so.{VERSION}", "libpawl.a", "pkgconfig/pawl.pc")),
            f"{prefix}/include/pawl.h",
            *(f"{prefix}/share/man/man{page[-1]}/{page}" for page in pages),
            *(f"{prefix}/lib/pawl/{name}" for name in LAB),
            f"{prefix}/share/bash-completion/completions/pawl", f"{prefix}/share/zsh/{zsh}/_pawl",
            f"{prefix}/share/fish/vendor_completions.d/pawl.fish",
            *(f"{prefix}/lib/systemd/system/{unit}" for unit in UNITS), f"{prefix}/lib/sysusers.d/pawl.conf",
            f"{prefix}/share/pawl/routes.schema.json", f"{prefix}/share/pawl/openapi.yaml",
            "/etc/pawl/lease.conf", "/etc/pawl/gateway.conf"}


@test
def everything_is_where_it_belongs_and_nothing_elsewhere():
    copy_build()
    check_equal(len(UNITS), 4, UNITS)
    for prefix, more, libdir, zsh in (("/usr/local", (), "/usr/local/lib", "site-functions"),
                                      ("/usr", (f"LIBDIR={LIBDIR}",), LIBDIR, "vendor-completions")):
        place = FOLDER / f"root{prefix.replace('/', '-')}"
        make("install", place, prefix, *more)
        there = files(place)
        check_equal(sorted(wanted(prefix, libdir, zsh) - there), [], "missing")
        documents = {one for one in there if one.startswith(f"{prefix}/share/doc/pawl/")}
        check_equal(sorted(there - wanted(prefix, libdir, zsh) - documents), [], "not asked for")
        for name in ("README.md", "LICENSE", "CHANGELOG.md", "docs/operations.md", "examples/deploy/redis.acl"):
            check_in(f"{prefix}/share/doc/pawl/{name}", documents)
        for one in there:
            mode = os.stat(f"{place}{one}").st_mode & 0o7777
            runs = one.startswith(f"{prefix}/bin/") or one.endswith(("/pawl-drill", ".sh"))
            check_equal(oct(mode), oct(0o755 if runs else 0o644), one)
        for unit in UNITS:
            text = pathlib.Path(f"{place}{prefix}/lib/systemd/system/{unit}").read_text(encoding="utf-8")
            check("@" not in re.sub(r"(?m)^(#.*|SystemCallFilter=.*)$", "", text), unit)
            check(unit.endswith(".socket") or f"ExecStart={prefix}/bin/pawl-" in text, unit)


@test
def no_document_links_to_what_is_not_installed():
    links = []
    for page in (FOLDER / "root-usr/usr/share/doc/pawl").rglob("*.md"):
        text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
        links += [page.parent / link for link in re.findall(r"\]\(([^):#]+)[#)]", text)]
    check(len(links) > 100, f"only {len(links)} links were found")
    check_equal([str(link) for link in links if not link.exists()], [])


@test
def links_lead_from_the_name_for_the_linker_to_the_library():
    place = f"{FOLDER}/root-usr{LIBDIR}"
    check_equal(os.readlink(f"{place}/libpawl.so"), "libpawl.so.0")
    check_equal(os.readlink(f"{place}/libpawl.so.0"), f"libpawl.so.{VERSION}")


@test
def a_program_built_with_what_pkg_config_says_runs_with_the_installed_library():
    example = re.search(r"```c\n(.*?)```", (ROOT / "docs/libpawl.md").read_text(encoding="utf-8"), re.DOTALL).group(1)
    source, binary = FOLDER / "example.c", FOLDER / "example"
    source.write_text(example, encoding="utf-8")
    for prefix, libdir in (("/usr/local", "/usr/local/lib"), ("/usr", LIBDIR)):
        place = FOLDER / f"root{prefix.replace('/', '-')}"
        where = {"PKG_CONFIG_LIBDIR": f"{place}{libdir}/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": str(place),
                 "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1", "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"}
        asked = run("pkg-config", "--cflags", "--libs", "pawl", **where)
        check_equal(asked.returncode, 0, asked.stderr)
        check_in(f"-L{place}{libdir}", asked.stdout)
        check_in(f"-I{place}{prefix}/include", asked.stdout)
        built = run("gcc", "-std=c11", "-o", binary, source, *asked.stdout.split())
        check_equal(built.returncode, 0, built.stderr)
        loaded = run("ldd", binary, LD_LIBRARY_PATH=f"{place}{libdir}").stdout
        check_in(f"libpawl.so.0 => {place}{libdir}/libpawl.so.0", loaded)
        done = run(binary, LD_LIBRARY_PATH=f"{place}{libdir}", PAWL_LEASE_URL=WORLD.lease_daemon.url,
                   PAWL_GATEWAY_URL=WORLD.gateway_daemon.url)
        check_equal(done.returncode, 0, done.stdout + done.stderr)
        check_equal(run("pkg-config", "--modversion", "pawl", **where).stdout.strip(), VERSION)
        more = (place / f"{libdir}/pkgconfig/pawl.pc".lstrip("/")).read_text(encoding="utf-8")
        check("@" not in more and str(COPY) not in more and "rpath" not in more, more)
        page = re.search(r"(?m)^URL: file://(/.*)$", more).group(1)
        check((place / page.lstrip("/") / "docs/libpawl.md").is_file(), page)


@test
def the_installed_programs_run():
    for name in ("pawl", "pawl-lease", "pawl-gateway"):
        check_equal(run(f"{FOLDER}/root-usr/usr/bin/{name}", "--version").stdout.strip(), f"{name} {VERSION}")
    played = run(f"{FOLDER}/root-usr/usr/bin/pawl", "drill", "clock-jump", "--rounds", "1")
    check_equal(played.returncode, 0, played.stdout + played.stderr)
    check_equal(played.stdout.splitlines()[4].split()[:2], ["clock-jump", "1/1"])
    check_equal(played.stderr.splitlines(), ["pawl drill: 1 accident, about 2 s", "clock-jump begins: 1 round, about 2 s"])


@test
def settings_that_are_there_stay_and_those_that_were_changed_outlive_uninstall():
    place = FOLDER / "root-usr-local"
    settings = place / "etc/pawl/lease.conf"
    settings.write_text('{"threads": 3}\n', encoding="utf-8")
    make("install", place, "/usr/local")
    check_equal(settings.read_text(encoding="utf-8"), '{"threads": 3}\n')
    make("uninstall", place, "/usr/local")
    check_equal(files(place), {"/etc/pawl/lease.conf"})


@test
def uninstall_leaves_nothing_and_takes_nothing_else():
    place = FOLDER / "root-usr"
    others = place / "usr/bin/other"
    others.write_text("mine\n", encoding="utf-8")
    make("uninstall", place, "/usr", f"LIBDIR={LIBDIR}")
    check_equal(files(place), {"/usr/bin/other"})
    for folder in ("usr/share/doc/pawl", "usr/share/pawl", "usr/lib/pawl", "etc/pawl"):
        check(not (place / folder).exists(), f"{folder} is still there")


main(WORLD.close)
