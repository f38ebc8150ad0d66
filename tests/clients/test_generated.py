#!/usr/bin/python3
"""Others' tools on api/openapi.yaml: redocly and spectral find no error, and the clients that openapi-typescript with
openapi-fetch and @hey-api/openapi-ts make of it acquire, write, see an expiry and a stale write refused. And TypeScript uses the
package of api/clients/node, in both kinds of modules. The tools are those of npm/package-lock.json: installed once, and kept in
~/.cache/pawl, as is what they say and make, which is the same for the same files."""

import atexit
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import clients_test  # finds the service tests' own package
from clients_test import ROOT, World, check_equal, check_in, main, skip, test
from world.npm import installed

HERE, API, NODE = clients_test.HERE / "npm", ROOT / "api/openapi.yaml", ROOT / "api/clients/node"
PACKAGE = json.loads((NODE / "package.json").read_text(encoding="utf-8"))
MISSING = None if shutil.which("npm") and shutil.which("node") else "there is no npm"
TOOL_S = 120
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="pawl-npm-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def tool(name, *argv):
    """Begun now; finish() waits for it."""
    env = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}
    return subprocess.Popen(["node", str(FOLDER / "node_modules/.bin" / name), *argv], cwd=FOLDER, env=env, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            preexec_fn=clients_test.die_with_parent)


def finish(process):
    told = process.communicate(timeout=TOOL_S)[0]
    check_equal(process.returncode, 0, told[-3000:])
    return told


def made():
    """What stands in FOLDER before the tests: sources, tools, and what they generate."""
    for path in HERE.iterdir():
        shutil.copy(path, FOLDER)
    modules = installed(HERE)
    (FOLDER / "node_modules").mkdir()
    for path in modules.iterdir():
        (FOLDER / "node_modules" / path.name).symlink_to(path)
    (FOLDER / "node_modules/pawl").mkdir()  # what npm would publish
    for name in ("package.json", *PACKAGE["files"]):
        shutil.copy(NODE / name, FOLDER / "node_modules/pawl")
    (FOLDER / "generate.mjs").write_text(f'export default {{ input: "{API}", output: "{FOLDER}/hey", logs: {{ level: "silent" }}, '
                                    'plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"] };\n')
    (FOLDER / "spectral.yaml").write_text('extends: ["spectral:oas"]\n')


if not MISSING:
    made()
    WORLD = World()


def needs_npm():
    if MISSING:
        skip(MISSING)


def once(make, *of):
    """FOLDER/out as make() leaves it, kept for the same files: what all tools do takes a minute of a processor."""
    files = [pathlib.Path(__file__), *sorted(HERE.iterdir()), *of]
    kept = installed(HERE).with_name(f"{make.__name__}-{hashlib.sha256(b''.join(path.read_bytes() for path in files)).hexdigest()[:16]}")
    out = FOLDER / "out"
    shutil.rmtree(out, ignore_errors=True)
    if kept.is_dir():
        shutil.copytree(kept, out)
        return
    out.mkdir()
    make()
    made = shutil.copytree(out, tempfile.mkdtemp(dir=kept.parent), dirs_exist_ok=True)
    try:
        os.rename(made, kept)
    except OSError:  # somebody else was faster
        shutil.rmtree(made)


def linted():
    # The pages' own address ends with a slash: all that they name is below it.
    both = [tool("redocly", "lint", "--extends=recommended", "--skip-rule=no-path-trailing-slash", str(API)),
            tool("spectral", "lint", "--ruleset", "spectral.yaml", "--fail-severity", "error", str(API))]
    told = [finish(one) for one in both]
    check_in("description is valid", told[0])
    check_in("(0 errors,", told[1])


def generated():
    for one in [tool("openapi-typescript", str(API), "-o", "schema.d.ts"), tool("openapi-ts", "-f", "generate.mjs")]:
        finish(one)
    finish(tool("tsc", "-p", "tsconfig.json"))


def used():
    finish(tool("tsc", "-p", "tsconfig.uses.json"))


@test
def redocly_and_spectral_find_no_error():
    needs_npm()
    once(linted, API)


@test
def generated_clients_acquire_write_expire_and_are_refused_a_stale_write():
    needs_npm()
    once(generated, API)
    for program in ("fetch", "hey"):
        told = subprocess.run(["node", f"out/{program}.js", WORLD.lease_daemon.url, WORLD.gateway_daemon.url, f"made:{program}"],
                              cwd=FOLDER, capture_output=True, text=True, timeout=TOOL_S, check=False)
        check_equal((told.stdout, told.stderr), ("201, 412 lease-expired, 412 stale-token, 204\n", ""), program)
        check_equal(WORLD.gateway("GET", f"/v1/resources/made:{program}").body, b"second")


@test
def typescript_imports_and_requires_the_small_client():
    needs_npm()
    check_equal(PACKAGE["version"], (ROOT / "VERSION").read_text(encoding="utf-8").strip())
    once(used, NODE / "package.json", *(NODE / name for name in PACKAGE["files"]))
    for program, wanted in (("uses.mjs", "true true true 2 true false typed\n"), ("uses.cjs", "true\n")):
        told = subprocess.run(["node", f"out/{program}", WORLD.lease_daemon.url, WORLD.gateway_daemon.url, f"typed:{program}"],
                              cwd=FOLDER, capture_output=True, text=True, timeout=TOOL_S, check=False)
        check_equal((told.stdout, told.stderr), (wanted, ""), program)


if __name__ == "__main__":
    main(None if MISSING else WORLD.close)
