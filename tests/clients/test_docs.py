#!/usr/bin/python3
"""The examples in docs/clients.md: each is run as it stands there."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import clients_test
from clients_test import ROOT, World, check_equal, main, skip, test

WORLD = World()
SETTINGS = {"PAWL_LEASE_URL": WORLD.lease_daemon.url, "PAWL_GATEWAY_URL": WORLD.gateway_daemon.url}
TEXT = (ROOT / "docs/clients.md").read_text(encoding="utf-8")


def example(language):
    found = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    check_equal(len(found), 1, f"examples in {language}")
    return found[0]


def run(argv, files, needs, name):
    """What it prints, and that it has released."""
    if not shutil.which(needs):
        skip(f"there is no {needs}")
    with tempfile.TemporaryDirectory(prefix="pawl-docs-") as folder:
        for path, text in files.items():
            shutil.copy(text, folder) if path is None else (pathlib.Path(folder) / path).write_text(text, encoding="utf-8")
        env = clients_test.environment(**SETTINGS, PATH=f"{ROOT}/api/clients/shell:{os.environ['PATH']}",
                                       PYTHONPATH=str(ROOT / "api/clients/python"))
        done = None
        for words in argv:
            done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
            check_equal((done.returncode, done.stderr), (0, ""), str(words))
    token = WORLD.look(name)["token"]
    check_equal(done.stdout, f"token {token} written: packed\n")
    check_equal(WORLD.look(name)["state"], "free")


@test
def the_example_in_python_runs():
    run([["/usr/bin/python3", "example.py"]], {"example.py": example("python")}, "python3", "orders:42")


@test
def the_example_in_javascript_runs():
    run([["node", "example.mjs"]], {"example.mjs": example("js"), None: ROOT / "api/clients/node/pawl.cjs"}, "node", "orders:43")


@test
def the_example_in_java_runs():
    compiler = ["javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-d", ".", str(ROOT / "api/clients/java/Pawl.java"), "Example.java"]
    run([compiler, ["java", "-XX:TieredStopAtLevel=1", "-cp", ".", "Example"]], {"Example.java": example("java")}, "javac", "orders:44")


@test
def the_example_in_go_runs():
    module = f"module example\n\ngo 1.19\n\nrequire pawl v0.0.0\n\nreplace pawl => {ROOT}/api/clients/go\n"
    run([["go", "run", "."]], {"example.go": example("go"), "go.mod": module}, "go", "orders:46")


@test
def the_example_in_shell_runs():
    run([["sh", "-e", "example"]], {"example": example("sh")}, "jq", "orders:45")


if __name__ == "__main__":
    main(WORLD.close)
