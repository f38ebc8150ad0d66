#!/usr/bin/python3
"""overview_walk.lua: what it counts page by page, and that it changes nothing."""

from intents import Gateway, close, grant, same_stripe, texts_of
from lua_test import Lease, Resource, Store, check, check_equal, main, test

STORE = Store()
NOW = 1000000
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


main()
