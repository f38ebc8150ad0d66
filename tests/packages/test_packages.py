#!/usr/bin/python3
"""make deb: what lintian says, and what the packages do to a Debian that has nothing of Pawl. No service is started there.

The root is made by mmdebstrap with the mirror that apt has here; without root's rights, or where the mirror cannot be
reached, this is not run. Building takes a minute or two, making the root half a minute."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from world import ROOT, check, check_equal, check_in, main, skip, test
from world.process import die_with_parent

MADE = ROOT / "build/deb"
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
PACKAGES = ("libpawl-dev", "libpawl0", "pawl", "pawl-gateway", "pawl-lab", "pawl-lease")
DAEMONS = ("lease", "gateway")
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="pawl-packages-"))
DEBIAN = FOLDER / "debian"
# What an installation writes at every turn, whatever is installed.
CHANGES_ANYWAY = re.compile(r"^(var/(lib/dpkg|cache|log|lib/apt|lib/systemd/deb-systemd)(/|$)|etc/ld\.so\.cache$|(dev|proc|sys|run|tmp)/)")
# The user stays; see debian/*.postrm.
ACCOUNTS = {f"etc/{name}{end}" for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid") for end in ("", "-")}
done = {}


def run(*command, limit_s=400, **more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PAWL_", "MAKE", "MFLAGS"))}
    env = {**clean, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", **more}
    return subprocess.run([str(one) for one in command], env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit_s, check=False,
                          preexec_fn=die_with_parent)


def succeeds(*command, **more):
    told = run(*command, **more)
    check_equal(told.returncode, 0, f"{command}: {told.stdout[-3000:]}")
    return told.stdout


def inside(*command):
    """In the root, with as much of the world as dpkg needs."""
    return succeeds("chroot", DEBIAN, *command, PATH="/usr/sbin:/usr/bin:/sbin:/bin", TMPDIR="/tmp")


def with_proc(*command):
    """In the root, and in a namespace of its own, where there is /proc for who looks for what is beside it."""
    return succeeds("unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', DEBIAN, *command,
                    PATH="/usr/sbin:/usr/bin:/sbin:/bin", TMPDIR="/tmp")


def file_of(package):
    found = list(MADE.glob(f"{package}_*.deb"))
    check_equal(len(found), 1, f"{package}: {found}")
    return found[0]


def field(package, name):
    return succeeds("dpkg-deb", "-f", file_of(package), name).strip()


def needed():
    """What our packages need of Debian: the first of each choice."""
    names = set()
    for package in PACKAGES:
        for choice in filter(None, (one.strip() for one in field(package, "Depends").split(","))):
            names.add(choice.split("|")[0].split("(")[0].strip())
    return sorted(names - set(PACKAGES))


def mirror_of_apt():
    """Where apt has this release of Debian from, and the release's name."""
    release = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(encoding="utf-8"), re.MULTILINE)
    told = run("apt-get", "indextargets", "--format", "$(SITE) $(CODENAME) $(ORIGIN) $(COMPONENT)", "Created-By: Packages").stdout
    sites = [line.split()[0] for line in told.splitlines() if line.split()[1:] == [release.group(1), "Debian", "main"]]
    return sites[0] if sites else skip("apt knows no mirror of this release of Debian"), release.group(1)


def state():
    """Every path of the root, and what is there."""
    seen = {}
    for folder, folders, names in os.walk(DEBIAN):
        for name in folders + names:
            path = os.path.join(folder, name)
            short = os.path.relpath(path, DEBIAN)
            if CHANGES_ANYWAY.match(short + ("/" if os.path.isdir(path) else "")) or CHANGES_ANYWAY.match(short):
                continue
            about = os.lstat(path)
            if os.path.islink(path):
                what = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    what = hashlib.sha256(file.read()).hexdigest()
            else:
                what = ""
            seen[short] = (about.st_mode, about.st_uid, about.st_gid, what)
    return seen


@test
def the_packages_are_built_and_lintian_has_nothing_to_say():
    told = succeeds("deploy/build/deb.py", "--lint", MADE, limit_s=600)
    check(not re.search(r"^[EW]: ", told, re.MULTILINE), told[-3000:])
    done["built"] = True
    for package in PACKAGES:
        check_equal(field(package, "Version"), VERSION, package)


@test
def each_package_has_what_belongs_into_it():
    check(done.get("built"), "there are no packages")
    triplet = succeeds("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
    wanted = {
        "pawl": ["usr/bin/pawl", "usr/share/man/man1/pawl.1.gz", "usr/share/man/man7/pawl-protocol.7.gz",
                 "usr/share/bash-completion/completions/pawl", "usr/share/zsh/vendor-completions/_pawl",
                 "usr/share/fish/vendor_completions.d/pawl.fish", "usr/share/pawl/openapi.yaml",
                 *(f"usr/share/doc/pawl/{name}" for name in ("CHANGELOG.md", "docs/operations.md", "deploy", "examples/docs"))],
        "pawl-gateway": ["usr/share/pawl/routes.schema.json", "usr/share/man/man5/pawl-routes.5.gz"],
        "pawl-lab": [f"usr/lib/pawl/{name}" for name in ("pawl-drill", "judge.py", "world/redis.py", "shim.so")],
        "libpawl0": [f"usr/lib/{triplet}/libpawl.so.{VERSION}", f"usr/lib/{triplet}/libpawl.so.0"],
        "libpawl-dev": ["usr/include/pawl.h", f"usr/lib/{triplet}/libpawl.so", f"usr/lib/{triplet}/libpawl.a",
                        f"usr/lib/{triplet}/pkgconfig/pawl.pc"]}
    for name in DAEMONS:
        wanted.setdefault(f"pawl-{name}", []).extend([f"usr/bin/pawl-{name}", f"usr/share/man/man8/pawl-{name}.8.gz",
                                                     f"etc/pawl/{name}.conf"])
    for package, paths in wanted.items():
        listed = set(re.findall(r" \./(\S+)(?: -> .*)?$", succeeds("dpkg-deb", "-c", file_of(package)), re.MULTILINE))
        check_equal(set(paths) - listed, set(), package)
        if package.removeprefix("pawl-") in DAEMONS:
            units = {os.path.basename(one) for one in listed if "/systemd/system/" in one and not one.endswith("/")}
            check_equal(units, {f"{package}.service", f"{package}.socket"})
            check_equal(succeeds("dpkg-deb", "-I", file_of(package), "conffiles").split(), [f"/etc/pawl/{package[5:]}.conf"])


@test
def who_is_removed_stops_its_socket_first_or_who_connects_would_start_it_again():
    check(done.get("built"), "there are no packages")
    for name in DAEMONS:
        place = FOLDER / f"control-{name}"
        succeeds("dpkg-deb", "-e", file_of(f"pawl-{name}"), place)
        (place / "system").mkdir()
        said = place / "said"
        invoke = place / "deb-systemd-invoke"
        invoke.write_text(f'#!/bin/sh\necho "$@" >> {said}\n', encoding="utf-8")
        invoke.chmod(0o755)
        script = (place / "prerm").read_text(encoding="utf-8").replace("/run/systemd/system", str(place / "system"))
        for act, stopped in (("upgrade", ""), ("remove", f"stop pawl-{name}.socket\nstop pawl-{name}.service\n")):
            said.write_text("", encoding="utf-8")
            succeeds("sh", "-c", script, "prerm", act, PATH=f"{place}:/usr/bin:/bin")
            check_equal(said.read_text(encoding="utf-8"), stopped, act)


@test
def they_install_in_a_clean_debian():
    check(done.get("built"), "there are no packages")
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        skip("making a root needs root's rights and mmdebstrap")
    mirror, release = mirror_of_apt()
    if run("/usr/lib/apt/apt-helper", "download-file", f"{mirror}/dists/{release}/Release", FOLDER / "Release",
           limit_s=60).returncode:
        skip(f"{mirror} cannot be reached")
    succeeds("mmdebstrap", "--mode=root", "--variant=essential", f"--include={','.join(needed())}", release, DEBIAN, mirror)
    policy = DEBIAN / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
    policy.chmod(0o755)
    done["before"] = state()
    (DEBIAN / "tmp/debs").mkdir()
    for package in PACKAGES:
        shutil.copy(file_of(package), DEBIAN / "tmp/debs" / f"{package}.deb")
    inside("dpkg", "--install", *[f"/tmp/debs/{package}.deb" for package in PACKAGES])
    done["installed"] = True
    status = inside("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *PACKAGES)
    check_equal(status.split(), [word for package in PACKAGES for word in (package, "installed")])


@test
def there_the_programs_run_and_the_daemons_have_a_user_and_a_place():
    check(done.get("installed"), "they are not installed")
    for program in ("pawl", "pawl-lease", "pawl-gateway"):
        check_equal(inside(program, "--version").strip(), f"{program} {VERSION}")
    check_in("clock-jump ", with_proc("pawl", "drill", "--list"))
    check_in("1 of 1 good", with_proc("pawl", "drill", "clock-jump", "--rounds", "1"))
    inside("pawl", "keygen", "--out", "/tmp/keys")
    for name in DAEMONS:
        check_in("good", inside(f"pawl-{name}", "--config", f"/etc/pawl/{name}.conf", "--keys", "/tmp/keys", "--check-config"))
        check_equal(inside("stat", "-c", "%U %G %a", f"/var/lib/pawl/{name}").strip(), "pawl pawl 700")
        check((DEBIAN / f"etc/systemd/system/multi-user.target.wants/pawl-{name}.service").is_symlink() or
              not (DEBIAN / "usr/bin/deb-systemd-helper").exists(), f"pawl-{name}.service is not enabled")
        check(not (DEBIAN / f"etc/systemd/system/sockets.target.wants/pawl-{name}.socket").is_symlink(), "the socket is enabled")
    check_in("/nonexistent:/usr/sbin/nologin", inside("getent", "passwd", "pawl"))
    inside("dpkg", "--verify", *PACKAGES)


@test
def nothing_that_is_installed_tells_to_build_it():
    check(done.get("installed"), "they are not installed")
    for path in ("usr/bin/pawl", "usr/bin/pawl-lease", "usr/bin/pawl-gateway", "usr/lib/pawl/pawl-drill", "usr/lib/pawl/play.py"):
        said = re.findall(rb"(?:\bmake (?:shim|all|test|install|run|demo|deb)\b|: make\.|where make\b)[^\n\0]*", (DEBIAN / path).read_bytes())
        check_equal(said, [], path)
    (DEBIAN / "usr/bin/redis-server").rename(DEBIAN / "tmp/redis-server")
    told = run("chroot", DEBIAN, "pawl", "dev", "--listen-lease", "127.0.0.1:0", "--listen-gateway", "127.0.0.1:0",
               PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/tmp", TMPDIR="/tmp")
    (DEBIAN / "tmp/redis-server").rename(DEBIAN / "usr/bin/redis-server")
    check_equal((told.returncode, told.stdout.splitlines()[-1:]), (78, ["  Install the package: apt-get install redis-server."]), told.stdout)


@test
def installed_once_more_they_leave_settings_and_state_alone():
    check(done.get("installed"), "they are not installed")
    settings, floor = DEBIAN / "etc/pawl/lease.conf", DEBIAN / "var/lib/pawl/lease/high-water"
    settings.write_text('{ "threads": 2 }\n', encoding="utf-8")
    floor.write_text("a floor\n", encoding="utf-8")
    inside("dpkg", "--force-confold", "--install", "/tmp/debs/pawl-lease.deb")
    check_equal(settings.read_text(encoding="utf-8"), '{ "threads": 2 }\n')
    inside("dpkg", "--purge", "pawl-lab")  # it needs the services
    inside("dpkg", "--remove", "pawl-lease")
    check_equal((settings.exists(), floor.read_text(encoding="utf-8")), (True, "a floor\n"), "remove is not purge")


@test
def purge_leaves_nothing_behind_but_the_user():
    check(done.get("installed"), "they are not installed")
    on_a_disk = 'cd "$0/var/lib/pawl" && mount -t tmpfs none lease && touch lease/lock && chroot "$0" dpkg --purge pawl-lease && [ ! -e lease/lock ]'
    succeeds("unshare", "--mount", "sh", "-c", on_a_disk, DEBIAN, PATH="/usr/sbin:/usr/bin:/sbin:/bin")
    shutil.rmtree(DEBIAN / "var/lib/pawl/lease")  # what the disk had covered
    check((DEBIAN / "var/lib/pawl/gateway").is_dir() and (DEBIAN / "etc/pawl/gateway.conf").is_file(), "it took the other's")
    inside("dpkg", "--purge", *[one for one in PACKAGES if one not in ("pawl-lab", "pawl-lease")])
    after = state()
    check_equal(sorted(set(after) - set(done["before"]) - ACCOUNTS), [], "left behind")
    check_equal(sorted(set(done["before"]) - set(after) - ACCOUNTS), [], "taken away")
    changed = [path for path in after if after[path] != done["before"].get(path) and path not in ACCOUNTS]
    check_equal(changed, [], "changed")


def close():
    shutil.rmtree(FOLDER, ignore_errors=True)


main(close)
