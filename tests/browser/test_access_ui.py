#!/usr/bin/python3
"""The web pages of a service with --access: the field for an access token, what is shown to whom, and where the token is kept."""

import os
import pathlib
import signal
import tempfile

from browser_test import Browser
from world import World, check, check_equal, main, test, wait_until
from world.access import identities, new_token, write_private

FOLDER = pathlib.Path(tempfile.mkdtemp(dir=os.environ["TMPDIR"]))


TOKENS = {name: new_token() for name in ("ops", "reader", "nothing")}
ACCESS = FOLDER / "access.json"
RULES = {
    "identities": identities(TOKENS),
    "rules": [{"who": ["ops"], "may": ["acquire", "look", "force-release", "operate", "session", "resolve", "observe"], "on": ["*"]}, {"who": ["reader"], "may": ["look"], "on": ["orders:*"]}]}
write_private(ACCESS, RULES)
WORLD = World("--access", str(ACCESS))
BROWSER = Browser()
LEASE = WORLD.lease_daemon.url
OPS = {"Authorization": f"Bearer {TOKENS['ops']}"}


def visit(page, who):
    """By somebody who was never here, with the token of this one."""
    BROWSER.fresh()
    BROWSER("await page.goto(arg)", f"{LEASE}/ui/{page}")
    enter(TOKENS[who])


def enter(token):
    BROWSER("await page.getByLabel(/Kept in this tab/).fill(arg); await page.getByRole('button', {name: 'Use it'}).click()", token)


@test
def without_an_access_token_the_page_asks_for_one_and_keeps_it_in_this_tab_only():
    for name in ("orders:1", "secret:1"):
        check_equal(WORLD.lease("POST", f"/v1/leases/{name}", OPS, body={"holder": "A", "ttl_ms": 600000}).status, 201)
    BROWSER.fresh()
    BROWSER("await page.goto(arg)", f"{LEASE}/ui/leases")
    BROWSER.sees("This service asks who you are")
    check_equal(BROWSER("const asked = []; while (asked.length < 2) asked.push((await page.waitForResponse(/(version|v1.access)$/)).status()); return asked"), [200, 200], "nobody is refused again and again")
    enter(TOKENS["ops"][:-1] + "\u0436")
    check_equal(BROWSER("return await page.evaluate(() => [sessionStorage.length, document.querySelector('#access input').validity.patternMismatch])"), [0, True])
    enter(TOKENS["ops"][:-1] + "x")
    BROWSER.sees("That is no access token")
    enter(f" {TOKENS['ops']} ")
    BROWSER.sees("You are ops")
    BROWSER.sees("secret:1")
    check_equal(BROWSER("return [page.url(), await page.evaluate(() => [localStorage.length, document.cookie, sessionStorage.length])]"), [f"{LEASE}/ui/leases", [0, "", 1]])
    BROWSER("await page.goto(arg)", f"{LEASE}/ui/lease?name=orders:1")
    BROWSER("await page.getByRole('button', {name: 'Force-release'}).waitFor()")
    check(not BROWSER("return await page.getByRole('button', {name: 'Force-release'}).isDisabled()"), "it may")
    BROWSER.sees("$PAWL_ACCESS_TOKEN", "main") if BROWSER("await page.getByRole('button', {name: 'curl'}).click(); return true") else None
    check(TOKENS["ops"] not in BROWSER("return await page.content()"), "it stands nowhere in the page")
    BROWSER("await page.getByRole('button', {name: 'Forget the access token'}).click()")
    BROWSER.sees("This service asks who you are")
    check_equal(BROWSER("return await page.evaluate(() => sessionStorage.length)"), 0)
    BROWSER("state.wrong = []")


@test
def what_is_not_allowed_is_not_shown_and_says_which_verb_it_needs():
    visit("leases", "reader")
    BROWSER.sees("orders:1")
    check("secret:1" not in BROWSER.text(), "a name that it may not look at")
    BROWSER("await page.goto(arg)", f"{LEASE}/ui/lease?name=orders:1")
    BROWSER.sees("A holds it")
    check_equal(BROWSER("const b = page.getByRole('button', {name: 'Force-release'}); return [await b.isDisabled(), await b.getAttribute('title')]"), [True, "needs force-release"])
    BROWSER("await page.goto(arg)", f"{LEASE}/ui/lease?name=secret:1")
    BROWSER.sees("look")
    BROWSER("await page.goto(arg)", f"{LEASE}/ui/")
    BROWSER.sees("You are reader")
    visit("", "nothing")
    BROWSER.sees("You are nothing. No rule lets this identity do anything here")
    BROWSER.sees("for those who may look at some lease")
    BROWSER("await page.locator('.live').filter({hasText: 'live'}).waitFor()")


@test
def tabs_with_two_access_tokens_have_nothing_in_common():
    BROWSER.fresh()
    for who in ("ops", "reader"):
        BROWSER("state.use(await context.newPage())")
        BROWSER("await page.goto(arg)", f"{LEASE}/ui/")
        enter(TOKENS[who])
        BROWSER.sees(f"You are {who}")
        BROWSER.sees("All is well")
    BROWSER.sees("What you may not look at is left out")


def rules_are_there():
    write_private(ACCESS, RULES)
    WORLD.lease_daemon.send(signal.SIGHUP)
    wait_until(lambda: WORLD.lease("GET", "/v1/access", OPS).status == 200, "it is there")


@test
def nothing_stays_of_what_an_access_token_saw_that_is_taken_out():
    WORLD.lease("POST", "/v1/leases/secret:2", OPS, body={"holder": "A", "ttl_ms": 600000})
    for page, sees in (("", "All is well"), ("lease?name=secret:2", "A holds it")):
        rules_are_there()
        visit(page, "ops")
        BROWSER.sees(sees)
        BROWSER("await page.locator('.live').filter({hasText: 'live'}).waitFor()")
        write_private(ACCESS, {"identities": {"reader": RULES["identities"]["reader"]}, "rules": RULES["rules"][1:]})
        WORLD.lease_daemon.send(signal.SIGHUP)
        BROWSER.sees("The access token is not in the access file")
        BROWSER("await page.getByLabel(/Kept in this tab/).waitFor()")
        check(sees not in BROWSER.text(), "it is still seen")


@test
def a_page_that_the_browser_had_kept_is_asked_for_anew():
    rules_are_there()
    visit("lease?name=secret:1", "ops")
    BROWSER.sees("A holds it")
    BROWSER("await page.evaluate(() => { sessionStorage.clear(); dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true})); })")
    BROWSER.sees("This service asks who you are")
    check("A holds it" not in BROWSER.text(), "what an access token saw that was forgotten")


main(BROWSER.close, WORLD.close)
