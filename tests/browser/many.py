#!/usr/bin/python3
"""100,000 leases by pages, in a real browser: by hand, PAWL_LEASES=100000 tests/browser/many.py; its figures are in docs/ui.md."""

import itertools
import os
import threading
import time

from browser_test import Browser
from world import World, check, check_equal, main, test, wait_until

MANY = int(os.environ.get("PAWL_LEASES", 100000))
PAGES = min(100, MANY // 200)
WORLD = World()
BROWSER = Browser("--enable-precise-memory-info", "--js-flags=--expose-gc")
LEASE = WORLD.lease_daemon.url
LONG = "addInitScript(() => { window.long = []; new PerformanceObserver(list => list.getEntries().forEach(one => window.long.push(Math.round(one.duration)))).observe({type: 'longtask', buffered: true}); })"
# The names on a page, and how long they took, in ms: since the document was asked for, or since "Next 100".
NAMES = "const names = () => [...document.querySelectorAll('.leases tbody tr td:first-child')].map(one => one.textContent);"
SHOWN = f"return await page.waitForFunction(least => {{ {NAMES} return names().length >= least && [names(), Math.round(performance.now())]; }}, arg).then(it => it.jsonValue())"
NEXT = f"""return await page.evaluate(least => new Promise(done => {{ {NAMES} const before = names()[0], begun = performance.now();
    [...document.querySelectorAll('a')].find(one => one.textContent === 'Next 100').click();
    (function look() {{ if (names().length >= least && names()[0] !== before) done([names(), Math.round(performance.now() - begun)]); else requestAnimationFrame(look); }})(); }}), arg)"""


def fill():
    at = itertools.count(0, 100)

    def some():
        client = WORLD.client(WORLD.lease_daemon)
        while (begin := next(at)) < MANY:
            answer = client("POST", "/v1/leases", body={"names": [f"many:{i:06}" for i in range(begin, begin + 100)], "holder": f"node-{begin % 7}", "ttl_ms": 86400000}, held=False)
            check_equal(answer.status, 201)

    threads = [threading.Thread(target=some) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def long_tasks():
    """Since it was last asked."""
    return BROWSER("return await page.evaluate(() => window.long.splice(0))")


def heap():
    return BROWSER("return await page.evaluate(() => { gc(); return performance.memory.usedJSHeapSize >> 10; })")


@test
def it_can_be_paged_through_and_filtered():
    begun = time.monotonic()
    fill()
    print(f"# {MANY} leases in {time.monotonic() - begun:.0f} s", flush=True)
    BROWSER.fresh()
    BROWSER(f"await page.{LONG}")
    BROWSER.open(f"{LEASE}/ui/leases?prefix=many:")
    begun = time.monotonic()
    BROWSER("await page.waitForFunction(arg => document.querySelector('.head').textContent.replace(/\\s/g, '').includes(arg + 'held'), arg, {timeout: 120000})", MANY)
    print(f"# counted after {time.monotonic() - begun:.1f} s", flush=True)
    seen, took, first = set(BROWSER(SHOWN, 100)[0]), [], heap()
    print(f"# long tasks of the first page {long_tasks()}", flush=True)
    for _ in range(PAGES - 1):
        names, ms = BROWSER(NEXT, 100)
        check(not seen & set(names), "a lease stands on two pages")
        seen |= set(names)
        took.append(ms)
    took.sort()
    print(f"# {PAGES} pages, {len(seen)} leases: rows after {took[len(took) // 2]} ms, at most {took[-1]}; long tasks {long_tasks()}; heap {first} KiB, at last {heap()}", flush=True)
    BROWSER("await page.waitForTimeout(20000)")
    print(f"# after 20 s more {heap()} KiB, long tasks {long_tasks()}", flush=True)
    BROWSER.open(f"{LEASE}/ui/leases?prefix=many:0099")
    names, ms = BROWSER(SHOWN, 100)
    print(f"# by the prefix many:0099 {len(names)} after {ms} ms, long tasks {long_tasks()}", flush=True)
    check(all(one.startswith("many:0099") for one in names), names)
    walked, cursor = set(), ""
    while cursor is not None:
        page = WORLD.lease("GET", f"/v1/leases?prefix=many:&limit=1000{cursor and '&cursor=' + cursor}", held=False).json
        walked |= {one["lease"] for one in page["items"]}
        cursor = page["next_cursor"]
    check_equal(len(walked), MANY)
    wait_until(lambda: WORLD.lease("GET", "/v1/overview").json["counts"]["held"] == MANY, "the overview counts all")


main(BROWSER.close, WORLD.close)
