"""What the tests in a browser share: Chromium, and what is asked of every page."""

import json
import os
import pathlib
import subprocess

from world.npm import installed
from world.process import die_with_parent
from world.tap import check_equal, skip

HERE = pathlib.Path(__file__).resolve().parent


class Browser:
    def __init__(self, *flags):
        if not os.path.exists(os.environ.get("CHROMIUM", "/usr/bin/chromium")):
            skip("chromium is not installed: deploy/install-deps")
        self.process = subprocess.Popen(["node", str(HERE / "driver.mjs"), str(installed(HERE / "npm")), *flags], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, preexec_fn=die_with_parent,
                                        env={**os.environ, "FONTCONFIG_FILE": str(HERE / "fonts.conf")})

    def __call__(self, code, arg=None):
        self.process.stdin.write(json.dumps({"code": code, "arg": arg}) + "\n")
        self.process.stdin.flush()
        said = json.loads(self.process.stdout.readline())
        if "error" in said:
            raise AssertionError(said["error"])
        return said["ok"]

    def fresh(self, **options):
        """A new browser context, as of somebody who was never here."""
        self("page = await state.fresh(arg)", options)

    def open(self, url, wait="#page h1"):
        self("await page.goto(arg.url); await page.waitForSelector(arg.wait, {state: 'attached'})", {"url": url, "wait": wait})

    def visit(self, url, *sees, before=(), **wait):
        """By somebody who was never here; before: what is done (code, arg) before the page is asked for; sees: as of sees()."""
        self.fresh()
        if before:
            self(*before)
        self.open(url, **wait)
        if sees:
            self.sees(*sees)

    def text(self, selector="main"):
        return self("return await page.locator(arg).first().innerText()", selector)

    def sees(self, text, selector="main"):
        self("await page.locator(arg.selector).filter({hasText: arg.text}).first().waitFor()", {"selector": selector, "text": text})

    def picture(self, path, **options):
        self("await page.screenshot({path: arg.path, fullPage: true, animations: 'disabled', ...arg.options})", {"path": str(path), "options": options})

    def kept_the_rules(self, *own):
        """Nothing on the console, no report of the policy, and nobody else was asked."""
        said = self("const said = {hosts: [...state.hosts], wrong: state.wrong}; state.hosts.clear(); state.wrong = []; return said")
        check_equal(said["wrong"], [])
        check_equal(set(said["hosts"]) - set(own), set())

    def close(self):
        self.process.stdin.close()
        self.process.wait(15)
