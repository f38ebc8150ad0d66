#!/usr/bin/python3
"""The web pages say nothing that is false: old data, credentials that are gone, answers that do not come, other people's names."""

import os
import signal
import subprocess

from browser_test import Browser
from world import World, check, check_equal, check_in, main, test, wait_until
from world.world import BUILD

WORLD = World()
BROWSER = Browser()
LEASE, GATEWAY = WORLD.lease_daemon.url, WORLD.gateway_daemon.url
SESSION = WORLD.lease("POST", "/v1/sessions", body={"holder": "worker-7", "ttl_ms": 600000}).json["session"]
NAME = "told:1"
WORLD.acquire(NAME, holder="A", ttl_ms=600000)
# page: its address, what it asks for, and what is seen of it
PAGES = {"lease": (f"{LEASE}/ui/lease?name={NAME}", "**/v1/leases/told*", "A holds it"), "leases": (f"{LEASE}/ui/leases", "**/v1/leases?*", NAME),
         "sessions": (f"{LEASE}/ui/sessions", "**/v1/sessions?*", "worker-7"), "session": (f"{LEASE}/ui/session?id={SESSION}", "**/v1/sessions/*", "worker-7 holds"),
         "doubt": (f"{GATEWAY}/ui/doubt", "**/v1/intents?*", "Nothing is in doubt")}
ALONE = "await page.addInitScript(() => { delete window.SharedWorker; });"
# The answers in place of the service's, without a code as of a proxy; and its overview, changed, which does not stream.
ANSWER = """await page.route(arg.url, route => (arg.status ? route.fulfill({status: arg.status, contentType: 'application/json',
    body: JSON.stringify(arg.status < 300 ? arg.body : arg.code && {type: '/problems/' + arg.code, code: arg.code, title: 'Said by the test', detail: 'as a test'})}) : undefined));"""
CHANGED = ALONE + """state.change = arg; await page.route('**/v1/overview', async route => { if (/event-stream/.test(route.request().headers().accept)) return route.fulfill({json: {}});
    const answer = await route.fetch(), said = await answer.json(); return route.fulfill({json: {...said, ...state.change, service: {...said.service, ...state.change.service}}}); });"""


def is_lost():
    BROWSER("await page.waitForFunction(() => document.documentElement.classList.contains('lost'))")
    check(BROWSER("return await page.evaluate(() => getComputedStyle(document.querySelector('main')).filter)").startswith("grayscale"), "it looks old")
    BROWSER.sees("as of", "#strip")


def is_live():
    BROWSER("await page.waitForFunction(() => !document.documentElement.classList.contains('lost') && /live/.test(document.querySelector('.live').textContent))")


def opened_all(pages):
    """A tab for each, all at once; their numbers."""
    BROWSER.fresh()
    BROWSER("""state.tabs = []; for (const [address, , sees] of arg) { const tab = await context.newPage(); tab.setDefaultTimeout(15000); state.tabs.push(tab);
        await tab.goto(address); await tab.locator('main').filter({hasText: sees}).first().waitFor(); }""", pages)
    return range(len(pages))


def use(tab):
    BROWSER("state.use(state.tabs[arg])", tab)


@test
def a_page_whose_own_answers_do_not_come_is_old_and_asks_again():
    cases = [("lease", 429, "rate-limited"), ("lease", 404, ""), ("leases", 200, ""), ("lease", 0, ""), *((page, 503, "store-down") for page in PAGES)]
    tabs = opened_all([PAGES[page] for page, _, _ in cases])
    for tab, (page, status, code) in zip(tabs, cases):
        use(tab)
        is_live()
        BROWSER(ANSWER, {"url": PAGES[page][1], "status": status, "code": code, "body": {}})
    for tab, (page, status, code) in zip(tabs, cases):
        use(tab)
        BROWSER.sees("No answer for this page", "#strip")
        is_lost()
        if page == "lease":
            check(BROWSER("return await page.getByRole('button', {name: 'Force-release'}).isDisabled()"), "no deeds with old data")
            BROWSER.sees("As of")
    for tab in tabs:
        use(tab)
        BROWSER("await page.unrouteAll({behavior: 'ignoreErrors'})")
    for tab in tabs:
        use(tab)
        is_live()
    BROWSER(ANSWER, {"url": PAGES["doubt"][1], "status": 403, "code": "forbidden"})
    BROWSER.sees("Said by the test")
    check("Open writes" not in BROWSER.text(), "what may not be seen any more is gone")


@test
def a_link_with_a_window_of_any_size_is_drawn():
    for window, says in (("from=1&to=8e15", "Paused at"), ("from=1&to=1e300", "each grant is a step"), ("from=-1e300&to=1", "each grant is a step")):
        BROWSER.visit(f"{LEASE}/ui/lease?name={NAME}&{window}", says)
        BROWSER.sees("A holds it")


@test
def what_a_link_calls_a_lease_is_no_command_before_the_service_knows_it():
    BROWSER.visit(f"{LEASE}/ui/lease?name=x%3Bshutdown", before=(ANSWER, {"url": "**/v1/leases/**", "status": 503, "code": "store-down"}))
    BROWSER.sees("No answer for this page", "#strip")
    for by in ("curl", "pawl"):
        BROWSER("await page.getByRole('button', {name: arg, exact: true}).click()", by)
        BROWSER("await page.locator(`button[aria-pressed=true]:text-is('${arg}')`).waitFor()", by)
        check("shutdown" not in BROWSER.text(".cmd"), BROWSER.text(".cmd"))
    BROWSER("await page.unrouteAll({behavior: 'ignoreErrors'})")
    BROWSER.sees("a lease name is")


@test
def a_command_that_is_copied_asks_the_service_of_the_page():
    BROWSER.visit(f"{LEASE}/ui/lease?name={NAME}", "A holds it")
    said = BROWSER.text(".cmd").replace("pawl watch", "#")
    done = subprocess.run(["sh", "-ec", said.partition("pawl force")[0]], env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}, capture_output=True, text=True, check=False)
    check_equal((done.returncode, f"{NAME} is held" in done.stdout), (0, True), f"{done}")


@test
def every_page_is_old_when_the_store_does_not_answer():
    tabs = opened_all([*PAGES.values(), (f"{LEASE}/ui/", "", "All is well")])
    WORLD.redis.process.send_signal(signal.SIGSTOP)
    try:
        for tab in tabs:
            use(tab)
            is_lost()
            check("live" not in BROWSER.text(".live"), "it says that it is live")
    finally:
        WORLD.redis.process.send_signal(signal.SIGCONT)
    for tab in tabs:
        use(tab)
        is_live()


@test
def a_store_that_does_not_answer_is_not_well_although_nobody_knows_why():
    for page, says in (("", "The store has not answered just now."), (f"lease?name={NAME}", "A holds it")):
        BROWSER.visit(f"{LEASE}/ui/{page}", before=(CHANGED, {"now_ms": None, "condition": None, "store": None, "services": {"lease": None, "gateway": None}, "members": [], "bars": None}))
        BROWSER.sees(says)
        BROWSER.sees("The store cannot be used.", "#strip")
        check("All is well" not in BROWSER.text() and "no lease service" not in BROWSER.text(), "nobody knows")


@test
def while_only_grants_are_refused_the_pages_are_live():
    for setting, is_unsafe in (("everysec", True), ("always", False)):
        WORLD.redis("CONFIG", "SET", "appendfsync", setting)
        WORLD.redis("CLIENT", "KILL", "TYPE", "normal")  # who connects anew reads the settings
        wait_until(lambda: (WORLD.lease("GET", "/readyz").code == "store-unsafe") == is_unsafe, "it is noticed")  # noqa: B023
        for page in ("", f"lease?name={NAME}") if is_unsafe else ():
            BROWSER.visit(f"{LEASE}/ui/{page}")
            is_live()
        check(not BROWSER("return await page.getByRole('button', {name: 'Force-release'}).isDisabled()"), "what is held can be taken away")


@test
def where_nothing_streams_the_pages_ask():
    # Of the events, of the overview; what is answered in their place: 0 nothing, as by a proxy that keeps it all.
    for events, overview, code in ((404, None, "history-off"), (410, None, ""), (429, None, "rate-limited"), (0, 0, ""), (429, 429, "rate-limited")):
        name = WORLD.name("mute")
        BROWSER.fresh()
        BROWSER(ALONE)
        BROWSER(ANSWER, {"url": "**/v1/events?*", "status": events, "code": code})
        if events == 404:
            BROWSER(ANSWER, {"url": "**/history", "status": events, "code": code})
        if overview is not None:
            BROWSER("await page.route('**/v1/overview', route => (/event-stream/.test(route.request().headers().accept) ? arg && route.fulfill({status: arg, json: {}}) : route.continue()))", overview)
        BROWSER("state.asked = 0; page.on('request', one => { state.asked += /v1.events/.test(one.url()); })")
        BROWSER.open(f"{LEASE}/ui/lease?name={name}")
        BROWSER.sees("Free.")
        BROWSER("await page.locator('.live').filter({hasText: arg}).waitFor({timeout: 30000})", "live" if overview is None else "live, each 2 s")
        grant = WORLD.acquire(name, holder="B", ttl_ms=600000)
        BROWSER.sees("held by B", ".chip")
        if events == 404:
            check("ten minutes" not in BROWSER.text(), "nothing is known of ten minutes")
        else:
            BROWSER.sees("granted", ".words")
        WORLD.release(name, grant)
        BROWSER.sees("Free.")
        check(BROWSER("return state.asked") < 20, "it asks for the stream without a pause")
        if events == 404:
            check("ten minutes" not in BROWSER.text(), "nothing is known of ten minutes")


@test
def what_comes_later_and_later_is_asked_for_in_place_of_its_stream():
    BROWSER.visit(f"{LEASE}/ui/", "All is well", before=(ALONE + """await page.addInitScript(() => { const real = fetch; window.fetch = async (url, asks) => { const answer = await real(url, asks); let at = 0;
        return /event-stream/.test(asks.headers.Accept) ? new Response(answer.body.pipeThrough(new TransformStream({ transform(chunk, to) { at = Math.max(at + 1800, performance.now()); setTimeout(() => to.enqueue(chunk), at - performance.now()); } })), answer) : answer; }; })""",))
    is_live()
    BROWSER.sees("live, each 2 s", ".live")


@test
def that_events_are_not_known_is_said_once():
    BROWSER.fresh()
    BROWSER(ALONE + ANSWER, {"url": "**/v1/events?*", "status": 429, "code": "rate-limited"})
    BROWSER.open(f"{LEASE}/ui/lease?name={NAME}")
    BROWSER.sees("granted", ".words")
    BROWSER(ANSWER, {"url": "**/history", "status": 200, "body": {"items": []}})
    BROWSER.sees("are not known", ".say")
    said = BROWSER.text(".say")
    BROWSER("for (let n = 0; n < 3; n++) await page.waitForResponse(/history/)")
    check_equal(BROWSER.text(".say"), said)


@test
def of_a_quorum_what_there_is_is_seen():
    for page, says in (("", "Said by the test"), (f"lease?name={NAME}", "A holds it"), ("leases", "Said by the test")):
        BROWSER.fresh()
        for url in ("overview", "events?*", "leases?*", "leases/*/history"):
            BROWSER(ALONE + ANSWER, {"url": f"**/v1/{url}", "status": 501, "code": "not-in-quorum-mode"})
        BROWSER.open(f"{LEASE}/ui/{page}")
        BROWSER.sees(says)
        is_live()


@test
def what_an_overview_does_not_know_it_does_not_say():
    tiles = "return await page.evaluate(() => [...document.querySelectorAll('.tile b')].map(one => one.textContent))"
    gone = {"code": "store-connecting", "for_ms": 5000, "detail": None, "remedy": "Mend it.", "command": None}
    for change, sees, unknown in (({"counted_ms_ago": 16000}, "All is well", (0, 1, 2, 4)), ({"bars": None}, "All is well", (3,)), ({"condition": gone, "store": None, "bars": None}, "Redis is not reached.", (3,))):
        BROWSER.visit(f"{LEASE}/ui/", sees, "h1", before=(CHANGED, change))
        check_equal([i for i in unknown if BROWSER(tiles)[i] != "–"], [], sees)
        check(4 not in unknown or "What is in doubt is not counted now" in BROWSER.text(), "it was not counted")


@test
def that_nothing_stands_out_is_said_when_it_was_counted():
    BROWSER.visit(f"{LEASE}/ui/", before=(CHANGED, {"look": [], "counted_ms_ago": None}))
    for counted_ms_ago, says in ((None, "Counting"), (100, "Nothing stands out"), (16000, "It was not counted lately")):
        BROWSER("state.change.counted_ms_ago = arg", counted_ms_ago)
        BROWSER.sees(says, ".look")


@test
def an_empty_list_says_no_more_than_it_knows():
    for page, none, some in (("leases", "Nothing is held", "Nothing is held of what you may look at."), ("sessions", "No session is open", "No session that you may see is open")):
        for more, says in (({}, none), ({"filtered": True}, some), ({"filtered": True, "next_cursor": "next"}, "on this page")):
            BROWSER.visit(f"{LEASE}/ui/{page}", says, before=(ANSWER, {"url": PAGES[page][1], "status": 200, "body": {"items": [], "next_cursor": None, **more}}))
            check(says != "on this page" or none not in BROWSER.text(), "it is not known")


@test
def a_row_that_stays_under_the_pointer_says_that_nothing_is_known_of_it():
    name = WORLD.name("under")
    grant = WORLD.acquire(name, holder="A", ttl_ms=600000)
    BROWSER.visit(f"{LEASE}/ui/leases?prefix={name}", "9 min", "tbody tr")
    BROWSER("await page.locator('tbody tr').hover()")
    WORLD.release(name, grant)
    BROWSER.sees("not listed", "tbody tr")
    BROWSER("for (let n = 0; n < 2; n++) await page.waitForResponse(/v1.leases/)")
    check("min" not in BROWSER.text("tbody") and "A" not in BROWSER.text("tbody td:nth-child(4)"), BROWSER.text("tbody"))
    WORLD.acquire(name, holder="B", ttl_ms=600000)
    BROWSER.sees("B", "tbody td:nth-child(4)")
    BROWSER.sees("9 min", "tbody tr")


@test
def of_many_holders_a_list_says_that_it_names_only_some():
    for holders, says in ((3, ("shared, 3", "and 2 more")), (20, ("shared, 16 or more", "and 15 or more"))):
        name = WORLD.name("crowd")
        grants = [WORLD.acquire(name, holder=f"node-{i}", ttl_ms=600000, mode="shared") for i in range(holders)]
        BROWSER.visit(f"{LEASE}/ui/leases?prefix={name}")
        for text in says:
            BROWSER.sees(text, "tbody tr")
        BROWSER.open(f"{LEASE}/ui/lease?name={name}")
        BROWSER.sees(f"node-0 and {holders - 1} others hold it, the first since", ".say")
        for grant in grants:
            WORLD.release(name, grant)


@test
def the_strip_of_another_version_stays_as_it_is():
    BROWSER.visit(f"{LEASE}/ui/", "99.9.9", "#strip", before=(CHANGED, {"service": {"version": "99.9.9"}}))
    BROWSER("await page.getByRole('button', {name: 'Reload'}).focus(); const at = await page.evaluate(() => performance.now()); "
            "for (let n = 0; n < 2; n++) await page.waitForResponse(/overview/)")
    check_equal(BROWSER("return await page.evaluate(() => document.activeElement.textContent)"), "Reload")


@test
def a_force_release_ends_those_that_were_seen():
    for holders, comes, says, where in ((2, True, "Nothing was done: innocent holds it now.", "body"), (2, False, "1 of 2 holds have ended; the others had ended before", "body"),
                                        (1, False, "Nothing was done: nobody holds it any more.", "dialog")):
        name = WORLD.name("pool")
        grants = [WORLD.acquire(name, holder=f"node-{i}", ttl_ms=600000, mode="shared" if holders > 1 else "exclusive") for i in range(holders)]
        BROWSER.visit(f"{LEASE}/ui/lease?name={name}")
        BROWSER("await page.getByRole('button', {name: 'Force-release'}).click(); await page.getByLabel(/^Reason/).fill('stuck'); await page.getByLabel(/^Type the/).fill(arg)", name)
        for grant in grants[:2 if comes else 1]:
            WORLD.release(name, grant)
        if comes:
            WORLD.acquire(name, holder="innocent", ttl_ms=600000)
        BROWSER("await page.locator('dialog').getByRole('button', {name: 'Force-release'}).click()")
        BROWSER.sees(says, where)
        check_equal(WORLD.holder(name), "innocent" if comes else None)


@test
def what_nobody_knows_of_a_deed_is_not_said_to_be_undone():
    for status, code, says in ((502, "", "It may have been done"), (403, "", "It may have been done"), (500, "internal", "It may have been done"), (504, "outcome-unknown", "It may have been done"), (404, "not-found", "It may have been done"),
                               (503, "store-unavailable", "Nothing was done: as a test")):
        BROWSER.visit(f"{LEASE}/ui/lease?name={NAME}", "A holds it", before=(ANSWER, {"url": "**/force-release", "status": status, "code": code}))
        is_live()
        BROWSER("await page.getByRole('button', {name: 'Force-release'}).click(); await page.getByLabel(/^Reason/).fill('stuck'); await page.getByLabel(/^Type the/).fill(arg); await page.keyboard.press('Enter')", NAME)
        BROWSER.sees(says, "dialog .refused")


@test
def a_deed_that_the_browser_sends_twice_is_not_refused_for_what_it_has_done():
    for history, says in ((None, "’s hold has ended."), (404, "It may have been done")):
        name = WORLD.name("twice")
        WORLD.acquire(name, holder="A", ttl_ms=600000)
        # As Chromium does when a connection that it has used before ends under a request.
        BROWSER.visit(f"{LEASE}/ui/lease?name={name}", "A holds it", before=("await page.route('**/force-release', async route => { await route.fetch(); await route.continue(); })",))
        is_live()
        if history:
            BROWSER(ANSWER, {"url": "**/history", "status": history, "code": "history-off"})
        BROWSER("await page.getByRole('button', {name: 'Force-release'}).click(); await page.getByLabel(/^Reason/).fill('stuck'); await page.getByLabel(/^Type the/).fill(arg); await page.keyboard.press('Enter')", name)
        BROWSER.sees(says, "body")
        check("Nothing was done" not in BROWSER.text("body"), "it has ended the hold")


def intent(number, state, gateway="gone-1", token=1):
    return {"lease": f"orders:{number}", "id": f"1.{number}", "state": state, "guarantee": "ordered", "token": token, "epoch": 1, "gateway": gateway, "incarnation": "i1", "request": 1, "at_ms": number, "probe": None}


@test
def doubt_is_seen_wherever_it_stands_in_the_list():
    here = WORLD.gateway("GET", "/v1/overview").json["members"]
    here = next(one["id"] for one in here if one["kind"] == "gateway")
    for items, sees, deeds in (([intent(i, "sending", here) for i in range(300)] + [intent(999, "unknown", here)], "1 write with no known end", "Resolve…"),
                               ([intent(1, "sending")], "in doubt: its gateway is silent", "It is dead…"), ([intent(1, "sending", here)], "Nothing is in doubt", "Cut off…")):
        BROWSER.fresh()
        BROWSER("await page.route('**/v1/intents?*', route => { const more = !/cursor/.test(route.request().url()) && arg.length > 1; "
                "return route.fulfill({json: {items: more ? arg.slice(0, -1) : arg.slice(-1), next_cursor: more ? 'next' : null}}); })", items)
        BROWSER.open(f"{GATEWAY}/ui/doubt")
        is_live()
        BROWSER.sees(sees)
        BROWSER("await page.getByRole('button', {name: arg}).first().waitFor()", deeds)
        check(deeds != "It is dead…" or "Cut off" not in BROWSER.text(), "who is not heard cuts nothing off")


@test
def what_may_not_be_seen_is_not_said_to_be_free_of_doubt():
    for url, status, body, says in (("**/v1/gateways/doubt", 403, None, "for who may observe"), ("**/v1/intents?*", 200, {"items": [], "next_cursor": None, "filtered": True}, "left out")):
        BROWSER.visit(f"{GATEWAY}/ui/doubt", says, before=(ANSWER, {"url": url, "status": status, "code": "forbidden", "body": body}))
        check("Nothing is in doubt" not in BROWSER.text(), "nobody knows")
    for condition, says_nothing in ((None, True), ({"code": "member-silent", "for_ms": 20000, "detail": None, "remedy": None, "command": None}, False)):
        BROWSER.visit(f"{LEASE}/ui/doubt", before=(CHANGED, {"condition": condition, "counts": {"in_doubt": 0}, "counted_ms_ago": 10}))
        is_live()
        BROWSER.sees("Writes are resolved at a gateway")
        check_equal("Nothing is in doubt" in BROWSER.text(), says_nothing, condition)


@test
def a_deed_names_each_write_that_it_closes():
    for more, says in (({}, "its Pawl-Request-Id is gone-1-i1-1."), ({"sticky": True, "requests": ["3", "5"]}, "their Pawl-Request-Ids are gone-1-i1-3, gone-1-i1-5."),
                       ({"sticky": True, "requests": ["3", "more"]}, "gone-1-i1-3, and more: any write of this token through this gateway."),
                       ({"sticky": True, "requests": ["any write of this token through this gateway"]}, "through gone-1; any write of this token through this gateway.")):
        item = {**intent(1, "unknown"), **more}
        if more:
            del item["request"]
        BROWSER.visit(f"{GATEWAY}/ui/doubt", before=(ANSWER, {"url": "**/v1/intents?*", "status": 200, "body": {"items": [item], "next_cursor": None}}))
        BROWSER("await page.getByRole('button', {name: 'Resolve…'}).click()")
        BROWSER.sees(says, "dialog")
        BROWSER.sees("these writes are over" if more else "this write is over", "dialog")


@test
def a_gateway_whose_id_may_not_be_known_is_not_said_to_be_silent():
    here = next(one for one in WORLD.gateway("GET", "/v1/overview").json["members"] if one["kind"] == "gateway")
    BROWSER.fresh()
    BROWSER(ANSWER, {"url": "**/v1/gateways/doubt", "status": 403, "code": "forbidden"})
    BROWSER(ANSWER, {"url": "**/v1/intents?*", "status": 200, "body": {"items": [intent(1, "sending", here["id"])], "next_cursor": None}})
    BROWSER(CHANGED, {"service": {"id": None, "name": None}, "members": [{**here, "id": "1", "name": None}]})
    BROWSER.open(f"{GATEWAY}/ui/doubt")
    is_live()
    BROWSER.sees("Of what you may see nothing is in doubt")
    BROWSER("await page.getByRole('button', {name: 'Cut off…'}).waitFor()")
    check("silent" not in BROWSER.text(), "it is not known to be")


# What story() gives for a hold granted at 0 with a ttl of 3 s: (end, due), by the items and the look.
@test
def a_hold_ends_when_its_ttl_did_and_is_overdue_only_as_far_as_it_was_looked_at():
    grant = {"id": "e.1.1.1", "type": "granted", "token": 1, "holder": "A", "at_ms": 1000, "ttl_ms": 3000}
    over = {"id": "e.1.2.1", "type": "expired", "token": 1, "at_ms": 9000}
    held = {"token": 1, "holder": "A", "held_for_ms": 500, "expires_in_ms": 2500, "ttl_ms": 3000, "renewed_ms_ago": 500}
    BROWSER.visit(f"{LEASE}/ui/lease?name={NAME}")
    for items, seen, ended, due in (([grant, over], None, 4000, 2000), ([grant, {**over, "renewed_at_ms": 3000}], None, 6000, 4000), ([grant, {**over, "renewed_at_ms": 3000, "ttl_ms": 4500}], None, 7500, 4500), ([grant, {**over, "at_ms": 3900}], None, 3900, 2000),
                                    ([grant], 1500, None, None), ([grant], 2500, None, 2000)):
        look = seen and {"seen": seen, "holders": [{**held, "held_for_ms": seen - 1000, "renewed_ms_ago": seen - 1000}]}
        check_equal(BROWSER("return await page.evaluate(async ({items, look}) => { const {story} = await import('./stairs.js'), one = story(items, look, 9500).holds[0]; return [one.end, one.due]; }, arg)",
                            {"items": items, "look": look}), [ended, due], f"{items}, {seen}")


# What story() gives: lock delays, by the items and the look.
@test
def a_lock_delay_of_the_past_is_where_it_was_and_one_that_runs_is_drawn_once():
    grant = {"id": "e.1.1.1", "type": "granted", "token": 1, "holder": "A", "at_ms": 1000, "ttl_ms": 3000}
    over = {"id": "e.1.2.1", "type": "expired", "token": 1, "at_ms": 4000}
    late, of_session = {**over, "at_ms": 9000, "lost_at_ms": 5000, "renewed_at_ms": 3000}, {**over, "type": "session", "at_ms": 8000, "lost_at_ms": 2500}
    other = [{**grant, "id": "e.1.3.1", "token": 2}, {**over, "id": "e.1.4.1", "token": 2, "at_ms": 4500, "lock_delay_ms": 100}]
    looked = {"seen": 4200, "delayed_for_ms": 1800}
    BROWSER.visit(f"{LEASE}/ui/lease?name={NAME}")
    for items, look, delays in (([grant, {**over, "lock_delay_ms": 2000}], None, [[4000, 6000]]), ([grant, {**late, "lock_delay_ms": 2000}], None, [[5000, 7000]]),
                                ([grant, {**of_session, "lock_delay_ms": 2000}], None, [[2500, 4500]]), ([grant, over], None, []), ([grant, over], looked, [[4000, 6000]]), ([], looked, [[4200, 6000]]),
                                ([grant, {**over, "lock_delay_ms": 2000}], looked, [[4000, 6000]]), ([grant, {**over, "lock_delay_ms": 2000}, *other], None, [[4000, 6000]]),
                                ([grant, {**over, "lock_delay_ms": 200}, *other], None, [[4000, 4200], [4500, 4600]])):
        check_equal(BROWSER("return await page.evaluate(async ({items, look}) => { const {story} = await import('./stairs.js'); return story(items, look, 9500).delays.map(one => [one.from, one.to]); }, arg)",
                            {"items": items, "look": look}), delays, f"{items}, {look}")


@test
def why_says_pass_only_as_far_as_it_knows():
    grant = WORLD.acquire(WORLD.name("orders"), holder="A", ttl_ms=600000)
    lost = {"in_doubt": 1, "gateways": [{"gateway": "gone-1", "incarnation": "i1", "state": "open", "since_ms": None}]}
    for url, items, gateways, sees in ((LEASE, None, None, "would pass now, if nothing is in doubt"), (GATEWAY, None, None, "would pass now; nothing is in doubt"),
                                       (GATEWAY, [intent(1, "unknown")], None, "in-doubt"), (GATEWAY, None, (200, lost), "would pass now, if nothing is in doubt"),
                                       (GATEWAY, None, (403, None), "would pass now, if nothing is in doubt")):
        BROWSER.fresh()
        if gateways:
            BROWSER(ANSWER, {"url": "**/v1/gateways/doubt", "status": gateways[0], "code": "forbidden", "body": gateways[1]})
        if items:
            BROWSER(ANSWER, {"url": "**/v1/intents/*", "status": 200, "body": {"items": items, "next_cursor": None}})
        BROWSER.open(f"{url}/ui/why")
        BROWSER("await page.getByLabel('Token or instance').fill(arg); await page.getByRole('button', {name: 'Explain'}).click()", grant["fencing_token"])
        BROWSER.sees(sees)


@test
def a_refusal_is_told_so_that_it_can_be_asked_about_and_is_late_only_after_its_hold():
    name = WORLD.name("shared")
    grant = WORLD.acquire(name, holder="A", ttl_ms=600000, mode="shared")
    check_equal(WORLD.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": grant["fencing_token"]}, b"x").code, "wrong-mode")
    BROWSER.visit(f"{LEASE}/ui/lease?name={name}", "urn:uuid:", ".words")
    instance = BROWSER("return await page.locator('.words tbody tr').filter({hasText: 'refused'}).first().locator('td').last().innerText()")
    BROWSER.open(f"{LEASE}/ui/why")
    BROWSER("await page.getByLabel('Token or instance').fill(arg.instance); await page.getByLabel(/^Lease/).fill(arg.name); await page.getByRole('button', {name: 'Explain'}).click()",
            {"instance": instance, "name": name})
    BROWSER.sees("was refused at")
    BROWSER.open(f"{LEASE}/ui/")
    BROWSER.sees("One write was refused in the last ten minutes")


@test
def names_that_are_not_seen_are_shown_as_codes_and_wide_ones_do_not_widen_a_phone():
    for holder, code in (("a\u3164b", "⟨U+3164⟩"), ("a\u00adb", "⟨U+AD⟩"), ("a\U000e0041b", "⟨U+E0041⟩"), ("W" * 128, "W")):
        name = WORLD.name("unseen")
        WORLD.acquire(name, holder=holder, ttl_ms=600000)
        BROWSER.fresh(viewport={"width": 360, "height": 800})
        BROWSER.open(f"{LEASE}/ui/lease?name={name}")
        BROWSER.sees("holds it")
        check_in(code.replace("⟨U+AD⟩", "⟨U+00AD⟩"), BROWSER.text())
        for page in (f"lease?name={name}", "leases", ""):
            BROWSER.open(f"{LEASE}/ui/{page}")
            is_live()
            over = BROWSER("return await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)")
            check(over <= 0, f"{page or 'overview'} is {over} px wider with {holder[:8]!r}")
    name = WORLD.name("x" * 99)
    WORLD.acquire(name, ttl_ms=600000)
    BROWSER.open(f"{LEASE}/ui/lease?name={name}")
    is_live()
    BROWSER("await page.getByRole('button', {name: 'Force-release'}).click()")
    check_equal(BROWSER("return await page.evaluate(() => { const it = document.querySelector('dialog'); return it.scrollWidth - it.clientWidth; })"), 0, "the dialog is as wide as a phone")


@test
def of_a_hold_whose_grant_is_not_noted_is_not_said_what_happened_in_it():
    over = {"id": "e.1.2.1", "type": "expired", "lease": NAME, "token": 7, "holder": "A", "at_ms": 9000, "reason": ""}
    for before, says in ((("",), "; nothing was refused since."), ((ANSWER, {"url": "**/history", "status": 200, "body": {"items": [over]}}), "A holds it since")):
        BROWSER.visit(f"{LEASE}/ui/lease?name={NAME}", says, before=before)
        BROWSER.sees("expired" if len(before) > 1 else "granted", ".words")
        check_equal("nothing was refused" in BROWSER.text(), len(before) == 1)
        check("not renewed for" not in BROWSER.text(".words"), "nobody knows for how long it was held")


@test
def a_tab_that_slept_goes_on_with_the_streams_of_all():
    BROWSER.visit(f"{LEASE}/ui/lease?name={NAME}", "A holds it")
    is_live()
    check_equal(BROWSER("""const own = [], looks = /leases.told%3A1$/; page.on('request', one => /event-stream/.test(one.headers().accept) && own.push(one.url()));
        await page.evaluate(() => { const real = performance.now.bind(performance); performance.now = () => real() + 60000; });
        for (let n = 0; n < 3; n++) await page.waitForResponse(looks); return own"""), [])
    is_live()


@test
def three_windows_at_one_lease_all_move():
    name = WORLD.name("window")
    tabs = opened_all([(f"{LEASE}/ui/lease?name={name}", "", "Free.")] * 3)
    for holder in ("C", "D"):
        grant = WORLD.acquire(name, holder=holder, ttl_ms=600000)
        for tab in tabs:
            use(tab)
            BROWSER.sees(f"held by {holder}", ".chip")
        WORLD.release(name, grant)


@test
def what_no_service_does_is_not_said_to_be_possible():
    for lease, gateway, says in ((1, 0, "no gateway is heard"), (0, 1, "nothing is granted"), (1, 1, "grants and writes are possible")):
        BROWSER.visit(f"{LEASE}/ui/", says, before=(CHANGED, {"services": {"lease": lease, "gateway": gateway}, "condition": None}))


main(BROWSER.close, WORLD.close)
