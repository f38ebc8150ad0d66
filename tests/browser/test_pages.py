#!/usr/bin/python3
"""The web pages in a real browser, on the real services: each page, each deed, what strangers write, who may, the keyboard.

With PAWL_PICTURES=DIR each page's picture, light and dark, is put there (docs/ui is made so)."""

import os
import pathlib
import tempfile

from browser_test import Browser
from world import World, check, check_equal, check_in, main, test, wait_until
from world.contract import Contract
from world.upstream import Upstream, route, routes_file
from world.waiting import Waiter
from world.world import ROOT

FOLDER = tempfile.mkdtemp(dir=os.environ["TMPDIR"])
PICTURES = os.environ.get("PAWL_PICTURES")
UPSTREAM = Upstream(lambda upstream, request: request.connection.reset())  # nobody learns how a write has ended
World.contract = Contract()
World.contract.forwards = True
WORLD = World(gateway_flags=["--ui-listen", "127.0.0.1:0", "--routes", routes_file(FOLDER, [route(UPSTREAM, "/orders/{id}/**", "orders:{id}", timeout_ms=300)])])
BROWSER = Browser()
LEASE, GATEWAY = WORLD.lease_daemon.url, WORLD.gateway_daemon.pages_url
OWN = [one.removeprefix("http://") for one in (LEASE, GATEWAY)]
SHOWN = ("story", "overview", "leases", "permits", "sessions", "session")
HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "a\u202eb\u2066c", "\U0001f469\u200d\U0001f469\u200d\U0001f467" * 5, "\U0001f600" * 32,
           "'\"&amp;<b>", "javascript:alert(1)", "${alert(1)}"]


def post(client, path, body=None, status=200):
    answer = client("POST", path, body=body)
    check_equal(answer.status, status, f"{path} {answer}")
    return answer.json


def of_session(name, opened):
    answer = WORLD.lease("POST", f"/v1/leases/{name}", {"Session-Secret": opened["session_secret"]}, body={"session": opened["session"]})
    check_equal(answer.status, 201, f"{answer}")


def late_write(name, holder="A", then="B"):
    """A's hold is over, then's is there, and A's write is refused; A's grant."""
    grant = WORLD.acquire(name, holder=holder, ttl_ms=60000)
    WORLD.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": grant["fencing_token"]}, b"good")
    post(WORLD.lease, f"/v1/leases/{name}/force-release", {"reason": "stuck since the deploy"})
    WORLD.acquire(name, holder=then, ttl_ms=600000)
    check_equal(WORLD.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": grant["fencing_token"]}, b"late").code, "stale-token")
    return grant


def doubtful_write(number):
    """A forwarded write whose upstream broke off: unknown."""
    grant = WORLD.acquire(f"orders:{number}", holder="billing", ttl_ms=600000)
    answer = WORLD.gateway("PUT", f"/orders/{number}/a", {"Fencing-Token": grant["fencing_token"]}, b"x")
    check_equal(answer.code, "outcome-unknown", answer)
    return grant


def typed(name, reason=None):
    """What the dialog wants."""
    if reason:
        BROWSER("await page.getByLabel(/^Reason/).fill(arg)", reason)
    BROWSER("await page.getByLabel(/^Type the/).fill(arg)", name)


def pictures(name, schemes=("dark", "light")):
    """Of the page as it is now."""
    for scheme in schemes if PICTURES else ():
        BROWSER("await page.emulateMedia({colorScheme: arg})", scheme)
        BROWSER.picture(pathlib.Path(PICTURES) / f"{name}-{scheme}.png")


def button(name, within="body"):
    BROWSER("await page.locator(arg.within).getByRole('button', {name: arg.name, exact: true}).first().click()", {"name": name, "within": within})


def pages():
    """(name, address) of each page, with something on it."""
    a = WORLD.acquire("orders:42", holder="A", ttl_ms=2000)
    Waiter(WORLD, WORLD.lease_daemon, "orders:42", "B", ttl_ms=20000).told()
    wait_until(lambda: WORLD.look("orders:42")["holders"][0]["held_for_ms"] > 1300, "A wakes up")
    check_equal(WORLD.gateway("PUT", "/v1/resources/orders:42", {"Fencing-Token": a["fencing_token"]}, b"late").code, "stale-token")
    late_write("payments:eu", "billing-2", "billing-9")
    for one in ("billing-7", "night-export"):
        Waiter(WORLD, WORLD.lease_daemon, "payments:eu", one, wait_ms=600000)
    for i in range(12):
        WORLD.acquire(f"shard:{i}", holder=f"node-{i % 4}", ttl_ms=600000 + i * 1000)
    for i in range(3):
        WORLD.acquire("printers", holder=f"node-{i}", ttl_ms=100000, permits=5)
    session = post(WORLD.lease, "/v1/sessions", {"holder": "worker-7", "ttl_ms": 600000}, 201)
    for i in range(3):
        of_session(f"batch:{i}", session)
    return [("story", f"{LEASE}/ui/lease?name=orders:42"), ("overview", f"{LEASE}/ui/"), ("leases", f"{LEASE}/ui/leases"), ("lease", f"{LEASE}/ui/lease?name=payments:eu"), ("permits", f"{LEASE}/ui/lease?name=printers"),
            ("free", f"{LEASE}/ui/lease?name=nobody:1"), ("why", f"{LEASE}/ui/why"), ("sessions", f"{LEASE}/ui/sessions"), ("session", f"{LEASE}/ui/session?id={session['session']}"),
            ("doubt", f"{GATEWAY}/ui/doubt"), ("gateway", f"{GATEWAY}/ui/"), ("elsewhere", f"{GATEWAY}/ui/leases")]


def settled(name):
    """The page shows what it is about."""
    wanted = {"overview": "All is well", "gateway": "All is well", "leases": "payments:eu", "lease": "refused", "story": "A’s write at", "permits": "held by 3", "free": "Free.", "sessions": "worker-7",
              "session": "batch:1", "doubt": "Nothing is in doubt", "elsewhere": "This is pawl-gateway"}
    if name in wanted:
        BROWSER.sees(wanted[name])
    BROWSER("await page.locator('.live').filter({hasText: 'live'}).waitFor()")
    if name == "overview":
        BROWSER("await page.waitForFunction(() => /^\\d/.test(document.querySelector('.tile b').textContent))")


def axe(name):
    found = BROWSER("""await page.evaluate(state.axe);
        const said = await page.evaluate(() => axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}));
        return said.violations.map(one => one.id + ': ' + one.nodes.slice(0, 3).map(node => node.html.slice(0, 160) + ' ' + node.failureSummary).join(' | '))""")
    check_equal(found, [], name)


@test
def each_page_is_good_in_light_and_dark_from_360_to_2560_pixels_for_axe_and_for_its_policy():
    for scheme in ("light", "dark"):
        for name, url in PAGES:
            BROWSER.fresh(colorScheme=scheme, bypassCSP=False)
            BROWSER.open(url)
            settled(name)
            if name in SHOWN:
                pictures(name, (scheme,))
            BROWSER.kept_the_rules(*OWN)
            axe(f"{name} {scheme}")
            BROWSER("state.wrong = []")
            for width in (360, 640, 1021, 2560) if scheme == "light" else ():
                BROWSER("await page.setViewportSize({width: arg, height: 800})", width)
                over = BROWSER("return await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)")
                check(over <= 0, f"{name} is {over} px wider than {width}")
                if PICTURES and width == 360 and name in ("overview", "story", "leases"):
                    BROWSER("await page.waitForTimeout(1500)")  # drawn anew
                    BROWSER.picture(pathlib.Path(PICTURES) / f"{name}-phone.png")


# What is drawn: each with a stroke or a filling that is not the canvas; texts without an outline of their own colour.
FORCED = """return await page.evaluate(() => { const canvas = getComputedStyle(document.body).backgroundColor, seen = {}, unseen = [];
    for (const what of ['.stair', '.stair.current', '.x', '.up', '.waits', '.hold', '.past', '.endmark', '.now', '.pill', '.ghost', '.mini-stair', '.strip .window', '.chart text:not(.inpill)', '.chip', '.dot', '.left i', 'nav a[aria-current]', '[aria-pressed=true]'])
      for (const one of document.querySelectorAll(what)) {
        const style = getComputedStyle(one), is = color => color !== 'none' && color !== canvas && !/^rgba.*, 0\\)$/.test(color);
        seen[what] = true;
        if (one.matches('text') ? !is(style.fill) || style.stroke === style.fill : one instanceof SVGElement ? !is(style.stroke) && !is(style.fill) : !is(style.backgroundColor) && (!is(style.borderBottomColor) || style.borderBottomStyle === 'none')) unseen.push(what + ' ' + style.fill + ' ' + style.stroke);
      }
    const pill = document.querySelector('.inpill');
    if (getComputedStyle(pill).fill === getComputedStyle(document.querySelector('.pill')).fill) unseen.push('now');
    if (getComputedStyle(document.querySelector('nav a:not([aria-current])')).borderBottomColor !== canvas) unseen.push('every link is the current one');
    return [Object.keys(seen).length, [...new Set(unseen)]]; })"""


@test
def with_forced_colours_everything_is_still_seen():
    name = WORLD.name("forced")
    late_write(name)
    Waiter(WORLD, WORLD.lease_daemon, name, "C", wait_ms=600000)
    for scheme in ("light", "dark"):
        BROWSER.fresh(forcedColors="active", colorScheme=scheme)
        BROWSER.open(f"{LEASE}/ui/lease?name={name}", ".chart .up")
        BROWSER("await page.locator('.chart .waits').first().waitFor({state: 'attached'})")
        check_equal(BROWSER(FORCED), [19, []], scheme)
        axe(f"forced colours, {scheme}")


@test
def the_first_load_is_small_and_the_first_staircase_is_there_within_300_ms():
    BROWSER.visit(f"{LEASE}/ui/lease?name=payments:eu", wait=".chart .stair")  # warm: the process of the tab
    BROWSER.visit(f"{LEASE}/ui/lease?name=payments:eu", wait=".chart .stair")
    bytes_ = BROWSER("""return await page.evaluate(() => [...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')]
        .filter(one => /\\/ui\\//.test(one.name)).reduce((all, one) => all + one.encodedBodySize, 0))""")
    check(0 < bytes_ <= 60 * 1024, f"{bytes_} bytes")
    took = min(BROWSER("""await page.goto('about:blank'); await page.addInitScript(() => { const begun = performance.now(); (function look() {
        if (document.querySelector('.chart .stair')) window.stairAt = performance.now(); else requestAnimationFrame(look); })(); });
        const took = []; for (let i = 0; i < 3; i++) { await page.goto(arg); await page.waitForFunction(() => window.stairAt); took.push(await page.evaluate(() => window.stairAt)); } return took""",
                       f"{LEASE}/ui/lease?name=payments:eu"))
    check(took <= 300, f"the first staircase after {took} ms")


@test
def force_release_wants_a_reason_and_the_name_and_does_nothing_when_another_holds_it_meanwhile():
    name = WORLD.name("forced")
    grant = WORLD.acquire(name, holder="billing-2", ttl_ms=600000)
    BROWSER.visit(f"{LEASE}/ui/lease?name={name}")
    button("Force-release…")
    BROWSER.sees("may be in the middle of its work", "dialog")
    axe("dialog")
    state = lambda: BROWSER("return await page.locator('dialog button.solid').isDisabled()")  # noqa: E731
    for typing, reason, disabled in (("", None, True), (name, None, True), (name + "x", "stuck", True), (name, "stuck", False)):
        typed(typing, reason)
        check_equal(state(), disabled, (typing, reason))
    BROWSER("await page.keyboard.press('Escape'); await page.locator('dialog').waitFor({state: 'detached'})")
    check_in("Force-release", BROWSER("return await page.evaluate(() => document.activeElement.textContent)"), "the focus returns")
    check_equal(WORLD.holder(name), "billing-2")
    button("Force-release…")
    typed(name, "stuck")
    WORLD.release(name, grant)
    newer = WORLD.acquire(name, holder="billing-9", ttl_ms=600000)
    button("Force-release", "dialog")
    BROWSER.sees("Nothing was done: billing-9 holds it now.", "dialog")
    check_equal(WORLD.holder(name), "billing-9")
    BROWSER("await page.keyboard.press('Escape')")
    BROWSER.sees("held by billing-9")
    button("Force-release…")
    typed(name, "stuck since <b>the deploy</b>")
    button("Force-release", "dialog")
    BROWSER.sees("billing-9’s hold has ended")
    check_equal(WORLD.look(name)["state"], "free")
    BROWSER.sees("stuck since <b>the deploy</b>", ".words")
    last = WORLD.lease("GET", f"/v1/leases/{name}/history").json["items"][-1]
    check_equal((last["type"], last["token"]), ("forced", newer["token"]))
    BROWSER.kept_the_rules(*OWN)


@test
def a_session_is_ended_with_a_reason():
    opened = post(WORLD.lease, "/v1/sessions", {"holder": "worker-9", "ttl_ms": 600000}, 201)
    session = opened["session"]
    held = WORLD.name("of-session")
    of_session(held, opened)
    BROWSER.visit(f"{LEASE}/ui/session?id={session}", held)
    button("End it…")
    typed(session, "its machine is gone")
    button("End it", "dialog")
    BROWSER.sees("has ended")
    BROWSER.sees("It is over")
    check("released" not in BROWSER.text(), "it was not given back")
    check_equal(WORLD.look(held)["state"], "free")
    BROWSER.kept_the_rules(*OWN)


@test
def a_write_in_doubt_is_resolved_and_a_gateway_said_to_be_dead():
    doubtful_write(71)
    BROWSER.visit(f"{GATEWAY}/ui/doubt", "Look at the upstream first")
    pictures("doubt")
    button("Resolve…")
    BROWSER.sees("it lands after newer ones, and nothing notices", "dialog")
    typed("orders:7")
    check(BROWSER("return await page.locator('dialog button.solid').isDisabled()"), "another name")
    typed("orders:71")
    button("Close it", "dialog")
    BROWSER.sees("is closed")
    check_equal(WORLD.gateway("GET", "/v1/intents/orders:71").json["items"], [])
    other = WORLD.daemon("pawl-gateway")
    other.kill()
    WORLD.daemons.remove(other)
    wait_until(lambda: any(one["heard_ms"] > 10000 for one in WORLD.gateway("GET", "/v1/overview").json["members"]), "it is not heard for 10 s", 20)
    BROWSER.sees("not heard")
    BROWSER.open(f"{LEASE}/ui/")
    BROWSER.sees("pawl store forget", "[role=alert] .cmd")
    BROWSER.sees("since", "[role=alert]")
    pictures("trouble")
    axe("an overview that is not well")
    BROWSER.open(f"{GATEWAY}/ui/doubt")
    button("It is dead…")
    BROWSER.sees("it may still be sending", "dialog")
    typed(BROWSER("return await page.locator('#to-type').textContent()"))
    button("It is dead", "dialog")
    BROWSER.sees("0 writes to close")
    BROWSER.kept_the_rules(*OWN)


@test
def why_explains_a_token_and_an_instance_without_putting_them_into_the_address():
    name = WORLD.name("why")
    grant = late_write(name)
    BROWSER.visit(f"{LEASE}/ui/why")
    BROWSER("await page.getByLabel('Token or instance').fill(arg)", grant["fencing_token"])
    button("Explain")
    BROWSER.sees("stale-token", ".chip")
    BROWSER.sees("good, key")
    BROWSER("await page.locator('.chart .stair.marked').first().waitFor({state: 'attached'})")
    pictures("why")
    axe("why, answered")
    answer = WORLD.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": grant["fencing_token"]}, b"later")
    wait_until(lambda: any(one.get("instance") for one in WORLD.lease("GET", f"/v1/leases/{name}/history").json["items"]), "a refusal's instance is kept")
    kept = [one["instance"] for one in WORLD.lease("GET", f"/v1/leases/{name}/history").json["items"] if one.get("instance")]
    check(answer.json["instance"] in kept or kept, answer)
    BROWSER("await page.getByLabel('Token or instance').fill(arg.instance); await page.getByLabel(/^Lease/).fill(arg.name)", {"instance": kept[-1], "name": name})
    button("Explain")
    BROWSER.sees("was refused at")
    check_equal(BROWSER("return page.url()"), f"{LEASE}/ui/why")
    BROWSER("await page.getByLabel('Token or instance').fill('nonsense')")
    button("Explain")
    BROWSER.sees("malformed-token")
    BROWSER("state.wrong = []")


@test
def what_others_have_written_is_shown_as_text():
    BROWSER.fresh()
    BROWSER("page.on('dialog', dialog => state.wrong.push('a dialog: ' + dialog.message()))")
    for i, text in enumerate(HOSTILE):
        name = f"hostile:{i}"
        grant = WORLD.acquire(name, holder=text, ttl_ms=600000, meta={text[:100]: text})
        BROWSER.open(f"{LEASE}/ui/lease?name={name}")
        BROWSER.sees("held by", ".chip")
        seen = BROWSER.text()
        check("\u202e" not in seen and "\u2066" not in seen, "controls are shown as such")
        if "\u202e" in text:
            check_in("⟨U+202E⟩", seen)
        check_equal(BROWSER("return await page.evaluate(() => document.querySelectorAll('main img, main script, main b b').length)"), 0, text)
        post(WORLD.lease, f"/v1/leases/{name}/force-release", {"reason": text, "expect_token": grant["token"]})
        BROWSER.sees("forced", ".words")
    for i, text in enumerate(HOSTILE):
        WORLD.acquire(f"hostile:{i}", holder=text, ttl_ms=600000)
    for page in ("leases?prefix=hostile:", "", "leases?prefix=%3Cimg%20src=x%20onerror=alert(1)%3E&holder=%22%3E", "lease?name=%3Cimg%20src%3Dx%3E", "session?id=%3Cb%3E"):
        BROWSER.open(f"{LEASE}/ui/{page}")
        BROWSER("await page.locator('.live').filter({hasText: 'live'}).waitFor()")
        check_equal(BROWSER("return await page.evaluate(() => document.querySelectorAll('main img, main script').length)"), 0, page)
    BROWSER.kept_the_rules(*OWN)


@test
def everything_can_be_done_from_the_keyboard():
    BROWSER.visit(f"{LEASE}/ui/lease?name=payments:eu", wait=".chart .stair")
    walked = BROWSER("""const seen = []; for (let i = 0; i < 60; i++) { await page.keyboard.press('Tab');
        const at = await page.evaluate(() => { const e = document.activeElement, style = getComputedStyle(e); return e === document.body ? null :
            {what: (e.getAttribute('aria-label') || e.textContent).trim().slice(0, 24), ring: style.outlineStyle !== 'none' || e.classList.contains('skip')}; });
        if (!at) break; seen.push(at); } return seen""")
    names = [one["what"] for one in walked]
    for wanted in ("To the content", "Pawl", "Overview", "Light or dark", "Force-release…", "10 s", "Copy link", "Staircase. Plus and minus", "curl"):
        check(any(wanted.startswith(name) or name.startswith(wanted) for name in names if name), f"{wanted} is not among {names}")
    check(all(one["ring"] for one in walked), f"no ring: {[one['what'] for one in walked if not one['ring']]}")
    BROWSER("await page.locator('.chart').focus(); for (const key of ['-', 'p', 'ArrowLeft']) await page.keyboard.press(key)")
    BROWSER.sees("Paused at")
    BROWSER("await page.keyboard.press('0')")
    BROWSER.sees("each grant is a step")


@test
def a_lock_delay_is_drawn_while_it_runs_and_when_it_is_over_from_the_loss_to_the_next_grant():
    name, hatched = WORLD.name("delay"), ".chart rect[fill='url(#delay)']"
    WORLD.acquire(name, holder="A", ttl_ms=500, lock_delay_ms=3000)
    waiter = Waiter(WORLD, WORLD.lease_daemon, name, "B", ttl_ms=600000)
    BROWSER.visit(f"{LEASE}/ui/lease?name={name}", "Nobody may have it yet.")
    BROWSER.sees("lock delay", ".chart")
    waiter.told()
    BROWSER.sees("held by B", ".chip")
    BROWSER.sees("lock delay 3.0 s", ".words")
    for _ in range(2):  # also for who comes after it
        # In one step: between two the chart may be drawn anew.
        x, end, bars = BROWSER("return (await page.waitForFunction(arg => { const all = [arg, '.chart path[fill*=overpast]', '.chart rect.hold'].map(what => document.querySelector(what)); "
                               "const [of, before, after] = all.map(one => { const box = one?.getBBox(); return box && [box.x, box.x + box.width]; }); "
                               "return of && before && after && [...of, [before[1], after[0]]]; }, arg)).jsonValue()", hatched)
        check(abs(x - bars[0]) < 2 and 0 <= bars[1] - end < (end - x) / 4, f"from {x} to {end}, between bars at {bars}")
        BROWSER.sees("lock delay", ".chart")
        pictures("delay")
        BROWSER.visit(f"{LEASE}/ui/lease?name={name}", wait=hatched)
    BROWSER.kept_the_rules(*OWN)


@test
def that_nobody_may_have_it_is_said_only_while_the_lock_delay_runs():
    name, card = WORLD.name("delay"), ".card:has(h2:text-is('Holder'))"
    WORLD.acquire(name, holder="A", ttl_ms=500, lock_delay_ms=3000)
    BROWSER.visit(f"{LEASE}/ui/lease?name={name}", "Nobody, until the lock delay is over.", card)
    BROWSER.sees("Free.")
    BROWSER("await page.waitForFunction(arg => !document.querySelector('main').textContent.includes(arg), 'until the lock delay is over')")


@test
def a_link_to_a_window_is_paused_there():
    BROWSER.fresh()
    items = WORLD.lease("GET", "/v1/leases/payments:eu/history").json["items"]
    BROWSER.open(f"{LEASE}/ui/lease?name=payments:eu&from={items[0]['at_ms'] - 2000}&to={items[0]['at_ms'] + 1}", ".chart .stair")
    BROWSER.sees("newer")
    BROWSER("await page.getByRole('button', {name: 'Live'}).click()")
    BROWSER.sees("each grant is a step")


@test
def a_long_list_is_paged_inside_the_document_and_its_pages_are_links():
    post(WORLD.lease, "/v1/leases", {"names": [f"turn:{i}" for i in range(100)], "holder": "crowd", "ttl_ms": 600000}, 201)
    post(WORLD.lease, "/v1/leases", {"names": [f"turn:{i}" for i in range(100, 150)], "holder": "crowd", "ttl_ms": 600000}, 201)
    for _ in range(100):
        post(WORLD.lease, "/v1/sessions", {"holder": "crowd", "ttl_ms": 600000}, 201)
    for address, all_ in (("leases?prefix=turn:", 150), ("sessions", len(WORLD.lease("GET", "/v1/sessions?limit=1000").json["items"]))):
        def shown(rows):
            BROWSER("await page.waitForFunction(arg => document.querySelectorAll('tbody tr').length === arg, arg)", rows)
            return BROWSER("return await page.locator('tbody td:first-child a').evaluateAll(all => all.map(one => one.href))")

        BROWSER.visit(f"{LEASE}/ui/{address}")
        first = shown(100)
        if all_ == 150:
            button("❚❚ Pause")  # of this page alone
        BROWSER("await page.evaluate(() => { window.isSame = true; }); await page.getByRole('link', {name: 'Next 100'}).click()")
        second = shown(all_ - 100)
        check_equal(len({*first, *second}), all_, address)
        check_in("cursor=", BROWSER("return page.url()"))
        for go, names in (("goBack", first), ("goForward", second)):
            BROWSER(f"await page.{go}()")
            check_equal(shown(len(names)), names, f"{address}, {go}")
        check(BROWSER("return await page.evaluate(() => window.isSame)"), "no other document was loaded")
        BROWSER("await page.reload()")
        check_equal(shown(all_ - 100), second, f"{address}, by its link")
        BROWSER("await page.locator('.live').filter({hasText: 'live'}).waitFor()")
        BROWSER.kept_the_rules(*OWN)


PAGES = pages()


main(BROWSER.close, WORLD.close, UPSTREAM.close)
