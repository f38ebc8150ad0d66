#!/usr/bin/python3
"""deb.py - the Debian packages, built in a copy of the tree.

    deploy/build/deb.py [--lint] build/deb

Copies what git knows, or would know, to build/deb/pawl, but only what differs: a second build is a short one. The packages
are in build/deb afterwards. --lint: lintian looks at them; an error or a warning of its is ours, too.
"""

import argparse
import filecmp
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MADE = ("build", "debian/tmp", "debian/.debhelper", "debian/files", "debian/debhelper-build-stamp")
BUILDER = ("debhelper", "dpkg-dev")


def names():
    told = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                          capture_output=True).stdout
    return {name for name in told.decode().split("\0") if name and (ROOT / name).is_file()}


def copy(to):
    wanted = names()
    for folder, folders, found in os.walk(to):
        folders[:] = [one for one in folders if os.path.relpath(os.path.join(folder, one), to) not in MADE]
        for one in found:
            path = os.path.relpath(os.path.join(folder, one), to)
            if path not in wanted and path not in MADE:
                os.unlink(os.path.join(to, path))
    for name in wanted:
        source, target = ROOT / name, to / name
        if not target.is_file() or not filecmp.cmp(source, target, shallow=False) or \
                source.stat().st_mode != target.stat().st_mode:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def environment():
    """As if nothing had called us: a make around us would hand its flags on."""
    return {name: value for name, value in os.environ.items()
            if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PREFIX", "DESTDIR", "BUILD") and not name.startswith("PAWL_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lint", action="store_true")
    parser.add_argument("place", type=pathlib.Path)
    given = parser.parse_args()
    missing = [one for one, tool in zip(BUILDER, ("dh", "dpkg-buildpackage")) if shutil.which(tool) is None]
    if missing:
        sys.exit(f"deb.py: missing, install as root: {' '.join(missing)}")
    place = given.place.resolve()
    tree = place / "pawl"
    tree.mkdir(parents=True, exist_ok=True)
    for old in [*place.glob("*.deb"), *place.glob("*.changes"), *place.glob("*.buildinfo")]:
        old.unlink()
    copy(tree)
    jobs = f"-j{min(os.cpu_count() or 1, 4)}"
    subprocess.run(["dpkg-buildpackage", "--build=binary", "--no-sign", "--no-pre-clean", jobs], cwd=tree, env=environment(),
                   check=True, stdout=sys.stderr)
    if given.lint:
        changes = next(place.glob("*.changes"))
        subprocess.run(["lintian", "--fail-on", "error,warning", "--allow-root", "--tag-display-limit", "0", str(changes)],
                       check=True)
    for one in sorted(place.glob("*.deb")):
        print(one.relative_to(ROOT) if one.is_relative_to(ROOT) else one)


if __name__ == "__main__":
    main()
