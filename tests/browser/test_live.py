#!/usr/bin/python3
"""The web pages while things happen: the story of make demo as it is seen, services that are killed and come back, and much
going on at once. In a real browser, on the real services."""

import os
import pathlib
import signal
import tempfile
import threading
import time

from browser_test import Browser
from world import Daemon, World, check, check_equal, check_in, main, test, wait_until
from world.ports import own_port
from world.servers import Server
from world.waiting import Waiter

SEEN_MS, LONG_TASK_MS, FRAME_MS, BUSY_S, EVENTS_A_S, LEASES, TRIES = 300, 50, 33.4, 30, 200, 10000, 3
FOLDER = pathlib.Path(tempfile.mkdtemp(dir=os.environ["TMPDIR"]))
WORLD = World()
BROWSER = Browser("--enable-precise-memory-info", "--js-flags=--expose-gc")
LEASE, GATEWAY = WORLD.lease_daemon.url, WORLD.gateway_daemon.url
OWN = [one.removeprefix("http://") for one in (LEASE, GATEWAY)]
# When what a selector means is there first, by the clock of this machine; looked at in each frame.
WATCH = """await page.evaluate(arg => { window.firstSeen = {}; (function look() { for (const [name, selector, least] of arg)
    if (!window.firstSeen[name] && document.querySelectorAll(selector).length >= least) window.firstSeen[name] = Date.now(); requestAnimationFrame(look); })(); }, arg)"""


def seen(name):
    return BROWSER("await page.waitForFunction(name => window.firstSeen[name], arg); return await page.evaluate(name => window.firstSeen[name], arg)", name)


@test
def the_story_of_the_demo_is_seen_as_it_happens():
    name = WORLD.name("orders")
    BROWSER.visit(f"{LEASE}/ui/lease?name={name}", "Free.")
    BROWSER(WATCH, [["A", ".chart .stair.current", 1], ["waits", ".chart .waits", 1], ["step", ".chart path.stair", 2], ["mark", ".chart .up", 1]])
    a = WORLD.acquire(name, holder="A", ttl_ms=2000)
    granted = time.time() * 1000
    check(seen("A") - granted < SEEN_MS, f"A's step came after {seen('A') - granted} ms")
    b = Waiter(WORLD, WORLD.lease_daemon, name, "B", ttl_ms=30000)
    BROWSER.sees("B", ".card:has(h2:text('In line'))")
    seen("waits")
    b.told()
    granted = time.time() * 1000
    check(seen("step") - granted < SEEN_MS, f"B's step came after {seen('step') - granted} ms")
    late = WORLD.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": a["fencing_token"]}, b"late")
    refused = time.time() * 1000
    check_equal(late.code, "stale-token")
    check(seen("mark") - refused < SEEN_MS, f"the mark came after {seen('mark') - refused} ms")
    BROWSER.sees("A’s write at")
    BROWSER.sees("refused", ".words tr:first-child")
    check_in("with the greater token", BROWSER("return await page.locator('.chart svg').getAttribute('aria-label')"))
    BROWSER.kept_the_rules(*OWN)


def daemon_at(port, world=WORLD):
    return Daemon("pawl-lease", *[f"127.0.0.1:{port}" if one == "127.0.0.1:0" else one for one in world.flags])


@test
def a_service_that_is_killed_and_comes_back_is_told_of_and_nothing_is_missed():
    port = own_port()
    daemon = daemon_at(port)
    name = WORLD.name("killed")
    WORLD.acquire(name, holder="A", ttl_ms=600000)
    BROWSER.visit(f"{daemon.url}/ui/lease?name={name}", "A holds it")
    BROWSER("await page.locator('.live').filter({hasText: 'live'}).waitFor()")
    daemon.kill()
    BROWSER.sees("No connection to pawl-lease", "#strip")
    BROWSER.sees("As of")
    BROWSER.sees("last news", ".chart")
    check(BROWSER("return await page.getByRole('button', {name: 'Force-release'}).isDisabled()"), "no deed without a connection")
    check(BROWSER("return await page.evaluate(() => getComputedStyle(document.querySelector('main')).filter)").startswith("grayscale"), "old data look old")
    for holder in ("B", "C"):  # by another instance meanwhile
        WORLD.lease("POST", f"/v1/leases/{name}/force-release", body={"reason": f"for {holder}"})
        WORLD.acquire(name, holder=holder, ttl_ms=600000)
    daemon = daemon_at(port)
    BROWSER("await page.locator('#strip .told').waitFor({state: 'detached', timeout: 20000})")
    BROWSER.sees("held by C", ".chip")
    BROWSER("await page.waitForFunction(() => document.querySelectorAll('.words tbody tr').length === 5)")
    check_equal(BROWSER("return await page.evaluate(() => [...document.querySelectorAll('.words tbody tr')].map(row => row.children[1].textContent + ' ' + row.children[2].textContent))"),
                ["granted 3", "forced 2", "granted 2", "forced 1", "granted 1"])
    check(not BROWSER("return await page.getByRole('button', {name: 'Force-release'}).isDisabled()"), "and again with one")
    check_equal(daemon.end(), 0)


ALONE = "await page.addInitScript(() => { delete window.SharedWorker; })"
HIDE = """await page.evaluate(arg => { Object.defineProperty(document, 'hidden', {value: arg, configurable: true});
    document.dispatchEvent(new Event('visibilitychange')); }, arg)"""


@test
def a_service_that_stands_still_is_told_of():
    daemon = WORLD.daemon("pawl-lease")
    for way in ("", ALONE):
        BROWSER.visit(f"{daemon.url}/ui/", "All is well", before=way and (way,))
        daemon.send(signal.SIGSTOP)
        BROWSER.sees("No connection to pawl-lease", "#strip")
        daemon.send(signal.SIGCONT)
        BROWSER("await page.locator('#strip .told').waitFor({state: 'detached', timeout: 20000})")


@test
def what_was_seen_an_hour_ago_does_not_look_live_when_the_tab_is_seen_again():
    daemon, name = WORLD.daemon("pawl-lease"), WORLD.name("hour")
    WORLD.acquire(name, holder="A", ttl_ms=600000)
    for page, sees in (("", "All is well"), (f"lease?name={name}", "A holds it")):
        BROWSER.visit(f"{daemon.url}/ui/{page}", sees)
        BROWSER(HIDE, True)
        daemon.send(signal.SIGSTOP)
        BROWSER("await page.evaluate(() => { const real = performance.now.bind(performance); performance.now = () => real() + 3600000; })")
        BROWSER(HIDE, False)
        BROWSER("await page.waitForFunction(() => document.documentElement.classList.contains('lost'), null, {timeout: 2500})")
        daemon.send(signal.SIGCONT)
        BROWSER("await page.locator('#strip .told').waitFor({state: 'detached', timeout: 20000})")


@test
def what_was_seen_of_another_store_is_not_shown_beside_this_one():
    other, name, port = World(), WORLD.name("store"), own_port()
    for world, holder in ((WORLD, "ours"), (other, "theirs")):
        world.acquire(name, holder=holder, ttl_ms=600000)
    for world, holder, gone in ((WORLD, "ours", "theirs"), (other, "theirs", "ours")):
        daemon = daemon_at(port, world)
        if world is WORLD:
            BROWSER.visit(f"{daemon.url}/ui/lease?name={name}", "granted", ".words")
        BROWSER.sees(f"held by {holder}", ".chip")
        BROWSER("await page.waitForFunction(([is, isNot]) => { const said = document.querySelector('.words tbody').textContent; return said.includes(is) && !said.includes(isNot); }, arg)", [holder, gone])
        check_equal(daemon.end(), 0)
    other.close()


@test
def events_that_stand_still_without_a_word_are_begun_anew():
    BROWSER.visit(f"{LEASE}/ui/lease?name={WORLD.name('still')}", "Free.", before=(ALONE,))
    said = BROWSER("""return await page.evaluate(async () => { const {Stream} = await import('./wire.js'), real = performance.now.bind(performance), said = [];
        let ahead = 0, heard;
        performance.now = () => real() + ahead;
        const stream = new Stream('v1/events?lease=still', {item() {}, open() { said.push('open'); heard(); }, down(error) { said.push(error.code); }});
        for (const ms of [0, 30000, 11000, 0]) { await new Promise(done => { heard = done; setTimeout(done, 2500); }); said.push(ms); ahead += ms; }
        stream.close();
        return said; })""")
    check_equal(said, ["open", 0, 30000, 11000, "mute", "open", 0])


@test
def what_cannot_be_made_up_for_is_said():
    # Alone; with the streams of the worker; beside a tab at the same lease, and at another one.
    for way, other in (("alone", None), ("worker", None), ("same", "same"), ("other", "other")):
        name = WORLD.name(f"gap-{way}")
        WORLD.acquire(name, holder="A", ttl_ms=600000)
        BROWSER.fresh()
        if way == "alone":
            BROWSER("state.sent = []; page.on('request', one => state.sent.push(one.headers()['last-event-id'])); " + ALONE)
        BROWSER.open(f"{LEASE}/ui/lease?name={name}")
        BROWSER.sees("A holds it")
        BROWSER("await page.locator('.live').filter({hasText: 'live'}).waitFor()")
        if other:
            BROWSER("state.other = await context.newPage(); await state.other.goto(arg); await state.other.locator('.live').filter({hasText: 'live'}).waitFor()",
                    f"{LEASE}/ui/lease?name={name if other == 'same' else 'elsewhere'}")
        for times, told in ((1, False), (40, True)):
            WORLD.lease("POST", f"/v1/leases/{name}/force-release", body={"reason": "seen"})
            BROWSER.sees("Free.")
            BROWSER(HIDE, True)
            for i in range(times):
                grant = WORLD.acquire(name, holder=f"B{i}", ttl_ms=600000)
                if i < times - 1:
                    WORLD.release(name, grant)
            BROWSER(HIDE, False)
            BROWSER.sees(f"held by B{times - 1}", ".chip")
            BROWSER("await page.waitForFunction(arg => document.querySelector('.words').textContent.includes(arg), arg)", f"B{times - 1}")
            if told:
                BROWSER.sees("are not known")
            check_equal("are not known" in BROWSER.text(), told, f"{way}, {times}")
    check(any(BROWSER("return state.sent")), "a stream goes on behind what it gave last")


def nginx(location, http=""):
    server = Server("nginx")
    temporary = "".join(f"{kind}_temp_path {server.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    conf = server.write("nginx.conf", f"""daemon off; pid {server.folder}/pid; events {{}}
http {{ access_log off; {temporary} {http} server {{ listen 127.0.0.1:{server.port}; {location} }} }}""")
    server.start("-p", server.folder, "-c", conf, "-e", "stderr")
    server.wait_listening()
    return server


def grant_is_seen_at_once(name):
    BROWSER(WATCH, [["step", ".chart .stair.current", 1]])
    grant, granted = WORLD.acquire(name, holder="A", ttl_ms=600000), time.time() * 1000
    took = seen("step") - granted
    WORLD.release(name, grant)
    BROWSER("await page.locator('.chart .stair.current').waitFor({state: 'detached'})")
    return took < SEEN_MS


@test
def what_is_seen_live_is_what_is_seen_of_it_later():
    name, rows = WORLD.name("words"), "return await page.locator('.words tbody').innerText()"
    BROWSER.visit(f"{LEASE}/ui/lease?name={name}", "Free.")
    for i in range(15):
        WORLD.granted(name, holder=f"node-{i}", ttl_ms=100)
    wait_until(lambda: WORLD.look(name)["state"] == "free", "the last one is over")
    BROWSER("await page.waitForFunction(() => document.querySelectorAll('.words tbody tr').length === 30)")
    live = BROWSER(rows)
    BROWSER.visit(f"{LEASE}/ui/lease?name={name}", "node-0", ".words")
    check_equal(live, BROWSER(rows))


@test
def all_tabs_have_two_streams_in_common():
    names = [WORLD.name("tab") for _ in range(3)]
    # Two, and one that gives way to another; more are refused. A line of the log is written when its request ends.
    proxy = nginx(f"""location / {{ proxy_pass {LEASE}; proxy_set_header Host $http_host; proxy_http_version 1.1; limit_conn streams 3; access_log {FOLDER}/tabs.log tabs; }}""",
                  'map $http_accept $stream { ~event-stream s; } limit_conn_zone $stream zone=streams:1m; log_format tabs "$status $http_accept $uri";')
    ended = lambda path: [line.split()[0] for line in (FOLDER / "tabs.log").read_text().splitlines() if line.endswith(f"event-stream {path}")]  # noqa: E731
    listening = lambda: WORLD.lease.metric("pawl_lease_listening")  # noqa: E731
    BROWSER.fresh()
    BROWSER("state.tabs = []; for (const at of arg) { const tab = await context.newPage(); state.tabs.push(tab); await tab.goto(at); "
            "await tab.locator('.live').filter({hasText: 'live'}).waitFor(); }", [f"{proxy.url}/ui/lease?name={one}" for one in names] + [f"{proxy.url}/ui/"])
    for i, name in enumerate(names):
        BROWSER("state.use(state.tabs[arg])", i)
        check(any(grant_is_seen_at_once(name) for _ in range(9)), f"tab {i} has its news too late, each time")
    check_equal(listening(), 1)
    BROWSER("for (const tab of state.tabs.slice(1, 3)) await tab.close(); state.use(state.tabs[3])")
    wait_until(lambda: len(ended("/v1/events")) >= 2, "the stream of all ends, and there is one of a lease")
    wait_until(lambda: listening() == 1, "it begins when the other has ended")
    # Without a word, as one that has crashed.
    BROWSER("await state.tabs[0].evaluate(() => addEventListener('visibilitychange', event => event.stopImmediatePropagation(), true)); await state.tabs[0].close()")
    wait_until(lambda: listening() == 0, "the events of nobody end")
    check_equal(ended("/v1/overview"), [])
    BROWSER("await page.goto('about:blank')")
    wait_until(lambda: len(ended("/v1/overview")) == 1, "the overview of nobody ends")
    check_equal([one for path in ("/v1/events", "/v1/overview") for one in ended(path) if one != "200"], [])
    proxy.close()


@test
def beside_a_worker_that_is_silent_a_tab_has_streams_of_its_own():
    silent = "await page.addInitScript(() => { window.SharedWorker = class { port = { postMessage() {} }; }; })"
    BROWSER.visit(f"{LEASE}/ui/", "All is well", before=(silent,))


@test
def it_works_behind_a_proxy_and_a_path_of_its_own():
    name = WORLD.name("proxied")
    WORLD.acquire(name, holder="A", ttl_ms=600000)
    proxy = nginx(f"location /ops/pawl/ {{ proxy_pass {LEASE}/; proxy_set_header Host $http_host; proxy_http_version 1.1; }}")
    BROWSER.fresh()
    BROWSER("await page.goto(arg)", f"{proxy.url}/ops/pawl/")
    BROWSER.sees("All is well")
    check_equal(BROWSER("return page.url()"), f"{proxy.url}/ops/pawl/ui/")
    BROWSER("await page.getByRole('link', {name: 'Leases'}).click()")
    BROWSER("await page.getByRole('link', {name: arg}).click()", name)
    BROWSER.sees("A holds it")
    WORLD.lease("POST", f"/v1/leases/{name}/force-release", body={"reason": "through a proxy"})
    BROWSER.sees("through a proxy", ".words")
    BROWSER.kept_the_rules(proxy.url.removeprefix("http://"), *OWN)
    proxy.close()


@test
def of_a_row_that_is_gone_nothing_is_kept():
    opened = WORLD.lease("POST", "/v1/sessions", body={"holder": "worker-7", "ttl_ms": 600000}).json
    BROWSER.visit(f"{LEASE}/ui/sessions")
    BROWSER("await page.locator('tbody button').waitFor(); await page.locator('.live').filter({hasText: 'live'}).waitFor(); await page.evaluate(() => { window.gone = new WeakRef(document.querySelector('tbody button')); })")
    check_equal(WORLD.lease("POST", f"/v1/sessions/{opened['session']}/end", body={"reason": "over"}).status, 200)
    BROWSER.sees("No session is open")
    BROWSER("await page.waitForFunction(() => { gc(); return !window.gone.deref(); })")


def hammer(until, counted):
    """Grants and releases on some leases, 200 events a second: each grant and each end is one."""
    client, i = WORLD.client(WORLD.lease_daemon), 0
    begun = time.monotonic()
    while time.monotonic() < until:
        name = ("busy:0", "busy:1", "busy:2")[i % 3]
        grant = client("POST", f"/v1/leases/{name}", body={"holder": f"node-{i % 9}", "ttl_ms": 60000}).json
        client("DELETE", f"/v1/leases/{name}", {"Lease-Id": grant["lease_id"]})
        i += 1
        threading.Event().wait(max(0, begun + 2 * i / EVENTS_A_S - time.monotonic()))
    counted.append(2 * i)


def is_smooth(page):
    """Half of the time in which much goes on, with this page open."""
    counted, seconds = [], BUSY_S / 2
    BROWSER.visit(f"{LEASE}/ui/{page}")
    thread = threading.Thread(target=hammer, args=(time.monotonic() + seconds + 8, counted))
    thread.start()
    said = BROWSER("""await page.waitForTimeout(4000);
        return await page.evaluate(async ms => { gc(); const heap = performance.memory.usedJSHeapSize, long = [], frames = [];
            new PerformanceObserver(list => list.getEntries().forEach(one => long.push(one.duration))).observe({type: 'longtask'});
            await new Promise(done => { let last, begun; (function frame(at) { if (last) frames.push(at - last); begun ??= at; last = at;
                if (at === undefined || at - begun < ms || isNaN(begun)) requestAnimationFrame(frame); else done(); })(performance.now()); });
            gc(); return {long, frames, grew: performance.memory.usedJSHeapSize / heap - 1, heap}; }, arg)""", seconds * 1000)
    thread.join()
    rate, slow = counted[0] / (seconds + 8), sum(1 for one in said["frames"] if one > FRAME_MS) / len(said["frames"])
    print(f"# {page}: {rate:.0f} events/s, {len(said['frames'])} frames, {100 * slow:.1f} % slow, long tasks {said['long']}, heap {said['heap'] >> 10} KiB {100 * said['grew']:+.1f} %", flush=True)
    check(rate > 0.9 * EVENTS_A_S, f"only {rate} events a second")
    return not [one for one in said["long"] if one > LONG_TASK_MS] and slow <= 0.05 and said["grew"] <= 0.1


@test
def it_stays_smooth_with_10000_leases_and_200_events_a_second():
    for at in range(0, LEASES, 100):
        WORLD.lease("POST", "/v1/leases", body={"names": [f"many:{i}" for i in range(at, at + 100)], "holder": "crowd", "ttl_ms": 600000})
    for page in ("leases", "lease?name=busy:0"):
        # A machine that does much else may stand still in the midst of it; a page that is slow is so each time.
        check(any(is_smooth(page) for _ in range(TRIES)), f"{page} is not smooth, {TRIES} times")


main(BROWSER.close, WORLD.close)
