"""What tests need of npm: installed once for each package-lock.json, and kept outside of the tree."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

INSTALL_S = 600


def installed(folder):
    """The folder of node_modules. Made beside its place, so that a part of one is never found there."""
    lock = (folder / "package-lock.json").read_bytes()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pawl"
    place = cache / f"npm-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not place.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        made = tempfile.mkdtemp(prefix="npm-", dir=cache)
        try:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(folder / name, made)
            subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"], cwd=made, check=True,
                           stdout=subprocess.DEVNULL, stderr=sys.stderr, timeout=INSTALL_S)
            os.rename(made, place)
        except OSError:
            if not place.is_dir():  # else somebody else was faster
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return place / "node_modules"
