#!/usr/bin/python3
"""overview_walk.lua: what it counts page by page, and that it changes nothing."""

from intents import Gateway, close, grant, same_stripe, texts_of
from lua_test import RECORD, Lease, Resource, Store, check, check_equal, main, test

STORE = Store()
NOW, FRESH_MS = 1000000, 10000
WALK = "shared/member/scripts/overview_walk.lua"


def walked(stripe):
    """The sums of all pages, how many there were, and {(kind, name): (holder, ms, code)}."""
    behind, sums, pages, seen = "", [0] * 5, 0, {}
    while behind or not pages:
        reply = STORE.call(WALK, [stripe], behind)
        check_equal(reply[0], "walked")
        behind, pages = reply[2], pages + 1
        sums = [one + more for one, more in zip(sums, reply[3:8])]
        seen |= {tuple(reply[9][at:at + 2]): tuple(reply[9][at + 2:at + 5]) for at in range(0, len(reply[9]), 5)}
    return sums, pages, seen


@test
def a_small_stripe_is_counted_by_name():
    STORE.begin(NOW)
    leases = [Lease(STORE, name) for name in same_stripe("orders:42", 100)]
    for number, lease in enumerate(leases):
        grant(lease, number)
    check_equal(walked(leases[0].stripe), ([100, 0, 0, 0, 0], 4, {}))


@test
def a_stripe_is_counted_page_by_page_and_nothing_is_changed():
    STORE.begin(NOW)
    leases, gateway = [Lease(STORE, name) for name in same_stripe("orders:42", 380)], Gateway(STORE)
    stripe = leases[0].stripe
    STORE.redis("HSET", f"{RECORD}:m:gate-a", "incarnation", "life-1", "at", NOW)
    check_equal(walked(stripe), ([0, 0, 0, 0, 0], 1, {}))
    holders = [grant(lease, number) for number, lease in enumerate(leases)]
    for number in range(130):
        check_equal(gateway.admit(leases[number], holders[number])[0], "sending")
        if number % 2:
            text = next(one for one in texts_of(STORE, leases[number]) if one.startswith(leases[number].name + " "))
            check_equal(close(STORE, ("unknown", leases[number], text))[0], "closed")
    STORE.at(NOW + 700)
    grant(leases[1], 1000)
    Resource(leases[1]).write(holders[1])
    STORE.redis("HSET", stripe, f"l:{leases[2].name}", "damaged")
    before = STORE.dump()
    sums, pages, seen = walked(stripe)
    check_equal((sums, STORE.dump()), ([379, 0, 0, 0, 65], before))
    check(pages >= 6, f"{pages} pages")
    check_equal(seen.pop(("refused", leases[1].name)), ("ada", 0, "stale-token"))
    check_equal(set(seen.values()), {("", 700, "")})
    check_equal({name for _, name in seen}, {lease.name for lease in leases[1:130:2]})


@test
def what_a_gateway_had_under_way_that_is_not_heard_is_in_doubt():
    STORE.begin(NOW)
    lease = Lease(STORE, "orders:42")
    gateway, key = Gateway(STORE), f"{RECORD}:m:gate-a"
    first = grant(lease, 1)
    check_equal(gateway.admit(lease, first)[0], "sending")
    for fields, doubts in (({}, 1), ({"incarnation": "life-1", "state": "in", "at": NOW}, 0), ({"at": NOW - FRESH_MS}, 0), ({"at": NOW - FRESH_MS - 1}, 1),
                           ({"at": NOW, "state": "forgotten"}, 1), ({"state": "in", "incarnation": "life-2"}, 1)):
        for field, value in fields.items():
            STORE.redis("HSET", key, field, value)
        sums, _, seen = walked(lease.stripe)
        check_equal((sums[4], seen), (doubts, {("in-doubt", lease.name): ("", 0, "gate-a")} if doubts else {}), str(fields))
    text = texts_of(STORE, lease)[0]
    check_equal(close(STORE, ("unknown", lease, text))[0], "closed")
    check_equal(walked(lease.stripe)[2], {("in-doubt", lease.name): ("", 0, "")})


main()
