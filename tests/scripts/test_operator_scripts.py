#!/usr/bin/python3
"""Every reply of the scripts by which an operator sees what is open, and says that a gateway is dead."""

import re

from intents import DOUBT, parse, script, texts_of
from lua_test import EPOCH, RECORD, ROOT, Lease, Store, check, check_equal, main, test, text

STORE = Store()
NOW, FRESH_MS = 1000000, 10000


def begin():
    STORE.begin(NOW)
    return Lease(STORE, "orders:42")


def left(lease, seq, gateway="gate-a", incarnation="life-1", state="s", number="w0.1"):
    """An intent as it stands in the store."""
    text = f"{lease.name} {EPOCH:015} {1:015} {seq:016} {state} o {gateway} {incarnation} {number} h {NOW}" + \
        (" 0" if state == "d" else "")
    STORE.redis("ZADD", lease.stripe + ":i", 0, text)
    return text


def unchanged(name, lease, *args):
    return STORE.unchanged_by(lambda: STORE.call(script(name), [lease.stripe], *args))


def owner(text):
    one = parse(text)
    return one.seq, one.gateway, one.incarnation, one.id


# -- the list

@test
def those_with_one_number_are_listed_once_each_whatever_becomes_of_their_state_between_two_pages():
    lease = begin()
    for seq in (2, 3, 4):
        for gateway in ("gate-c", "gate-a", "gate-b"):
            for incarnation in ("life-1", "life-2"):
                left(lease, seq, gateway, incarnation)
    wanted, state = sorted(owner(one) for one in texts_of(STORE, lease)), "s"
    for most in range(1, 20):
        for name in ("", lease.name):
            behind, got = "", []
            while not got or behind:
                behind, page = unchanged("intent_list", lease, name, behind, most)[2:]
                check(len(page) == most or not behind, f"{len(page)} of {most}")
                got += map(owner, page)
                check(len(got) <= len(wanted), f"{most} at a time: {got}")
                now, state = state, "usdq"["squd".index(state)]
                for text in texts_of(STORE, lease):
                    STORE.redis("ZREM", lease.stripe + ":i", text)
                    changed = text.removesuffix(" 0").replace(f" {now} o ", f" {state} o ")
                    STORE.redis("ZADD", lease.stripe + ":i", 0, changed + (" 0" if state == "d" else ""))
            check_equal(got, wanted, f"{most} at a time")


@test
def one_that_was_closed_between_two_pages_does_not_stop_the_list():
    lease = begin()
    texts = [left(lease, seq) for seq in (2, 3, 4)]
    behind, page = unchanged("intent_list", lease, "", "", 1)[2:]
    check_equal(page, texts[:1])
    STORE.redis("ZREM", lease.stripe + ":i", *texts[:2])
    check_equal(unchanged("intent_list", lease, "", behind, 1)[2:], ["", texts[2:]])
    STORE.redis("DEL", lease.stripe + ":i")
    check_equal(unchanged("intent_list", lease, "", behind, 1)[2:], ["", []])


@test
def what_a_hand_made_too_long_is_listed_with_others_and_no_place_where_a_list_goes_on():
    for longs in ((1,), (2, 3), (1, 2, 3, 4)):
        lease = begin()
        texts = [left(lease, seq, gateway="g" * 900 if seq in longs else "gate-a") for seq in range(1, 6)]
        for most in (1, 2, 3):
            behind, got, calls = "", [], 0
            while not calls or behind:
                behind, page = unchanged("intent_list", lease, lease.name, behind, most)[2:]
                got, calls = got + page, calls + 1
                check(len(behind) <= 256 and calls < 9, f"{longs} {most}: {len(behind)}")
            check_equal(got, texts, f"{longs} {most}")


# -- what is known of a gateway

def look(lease, gateway="gate-a", incarnation="", but=""):
    return unchanged("gateway_look", lease, gateway, incarnation, but)


def known(lease, *fields, name="gate-a"):
    STORE.redis("DEL", f"{RECORD}:m:{name}")
    STORE.redis("HSET", f"{RECORD}:m:{name}", *fields)


@test
def a_gateway_lives_as_long_as_its_last_pulse_is_fresh_as_for_pawl_store_forget():
    lease = begin()
    fields = ["role", "gateway", "incarnation", "life-1", "state", "in", "at"]
    for at, word in ((NOW, "fresh"), (NOW - FRESH_MS, "fresh"), (NOW - FRESH_MS - 1, "known"), (NOW + FRESH_MS, "fresh"),
                     (NOW + FRESH_MS + 1, "known"), (0, "known")):
        known(lease, *fields, at)
        check_equal(look(lease)[0], word, f"{at}")
    limit = re.search(r"FRESH_MS = .*\b(\d+)$", (ROOT / "shared/member/scripts/lib/call.lua").read_text(), re.MULTILINE)
    check_equal(int(limit.group(1)), FRESH_MS, "what pawl store forget goes by")
    known(lease, *fields, NOW - 7)
    check_equal(look(lease)[2:], [7, "life-1"])
    check_equal(look(lease, incarnation="life-1")[2:], [7, "life-1"])
    check_equal(look(lease, incarnation="life-0")[0], "unknown")
    check_equal(look(lease, but="life-1")[0], "known")
    check_equal(look(lease, but="life-0")[0], "fresh")
    for state in ("out", "forgotten"):
        known(lease, "role", "gateway", "incarnation", "life-1", "state", state, "at", NOW)
        check_equal(look(lease)[0], "known", state)
    known(lease, "role", "gateway", "incarnation", "life-1", "state", "pending", "at", NOW)
    check_equal(look(lease)[0], "fresh")


@test
def who_is_no_gateway_and_not_in_doubt_is_unknown():
    lease = begin()
    check_equal(look(lease)[0], "unknown")
    known(lease, "role", "lease", "incarnation", "life-1", "state", "in", "at", NOW)
    check_equal(look(lease)[0], "unknown")
    STORE.redis("HSET", DOUBT, "gate-a life-7", "open 3", "gate-b life-8", f"dead {NOW} 0 3")
    for gateway, incarnation, word in (("gate-a", "", "known"), ("gate-a", "life-7", "known"), ("gate-a", "life-8", "unknown"),
                                       ("gate-b", "life-8", "known"), ("gate", "", "unknown"), ("life-7", "", "unknown")):
        check_equal(look(lease, gateway, incarnation)[0], word, f"{gateway} {incarnation}")


@test
def an_incarnation_that_joins_after_the_look_is_not_taken_for_dead():
    lease = begin()
    known(lease, "role", "gateway", "incarnation", "life-1", "state", "in", "at", 0)
    check_equal(look(lease)[0::3], ["known", "life-1"])
    STORE.redis("HSET", DOUBT, "gate-a life-1", "open 3", "gate-a life-2", "open 3", "gate-a life-0", "open 3")
    for member, taken in (("life-2", ["life-0", "life-1"]), ("life-1", ["life-0", "life-1", "life-2"])):
        STORE.redis("HSET", f"{RECORD}:m:gate-a", "incarnation", member)
        check_equal(STORE.call(script("unreported_dead"), ["pawl:{00}"], "gate-a", "", "all", "life-1")[2], taken)
    check_equal(look(lease, "gate-z")[0::3], ["unknown", ""])


# -- who is in doubt

@test
def who_is_in_doubt_is_told_in_the_order_of_names_and_counted_to_the_last():
    lease = begin()
    me = ("gate-a", "life-2", "hash", "")
    check_equal(unchanged("gateways_in_doubt", lease, 9, *me)[2:], [0, [], "", ""])
    STORE.redis("HSET", DOUBT, "gate-b life-1", "open 3", "gate-a life-2", f"dead {NOW} 5 3", "gate-a life-1", "open 3")
    all_of = [["gate-a", "life-1", "open", ""], ["gate-a", "life-2", "dead", str(NOW)], ["gate-b", "life-1", "open", ""]]
    check_equal(unchanged("gateways_in_doubt", lease, 9, *me)[2:], [3, all_of, "", ""])
    check_equal(unchanged("gateways_in_doubt", lease, 2, *me)[2:], [3, all_of[:2], "", ""])


@test
def which_routes_are_served_is_told_and_which_ones_a_gateway_has_is_kept_for_those_who_look():
    lease, member = begin(), "pawl:{store}:m:gate-a"
    ask = lambda *me: STORE.call(script("gateways_in_doubt"), [lease.stripe], 9, *me, "")  # noqa: E731
    STORE.redis("HSET", "pawl:{store}", "routes", "served")
    STORE.redis("HSET", member, "incarnation", "life-2")
    for incarnation, table, wanted in (("life-1", "old", None), ("life-2", "", None), ("life-2", "one", "one"),
                                       ("life-1", "old", "one"), ("life-2", "two", "two"), ("life-2", "", "")):
        check_equal(ask("gate-a", incarnation, table), ["doubt", 0, 0, [], "served", ""])
        check_equal(text(STORE.redis("HGET", member, "routes")), wanted, f"{incarnation} {table}")
    ask("gate-b", "life-1", "one")
    check_equal(STORE.redis("EXISTS", "pawl:{store}:m:gate-b"), 0)


@test
def of_the_stores_of_a_gateways_routes_the_first_is_told_whose_marks_are_lost():
    lease, own, one, two = begin(), text(STORE.redis("HGET", RECORD, "id")).split(":")[1], "A" * 24, "B" * 24
    ask = lambda: STORE.call(script("gateways_in_doubt"), [lease.stripe], 9, "gate-a", "life-1", "", f"{own} {one} {two}")[5]  # noqa: E731
    named, word = "pawl:{store}:marks", lambda of: text(STORE.redis("HGET", "pawl:{store}:marks", of))
    check_equal((ask(), STORE.redis("EXISTS", named)), ("", 0))
    STORE.redis("HSET", "pawl:{store}", "lost", "7")
    STORE.redis("HSET", named, one, "6 3 3")  # at a loss of before
    check_equal((ask(), word(one), word(two), word(own)), (one, "6 3 3", "0 0 0", None))
    STORE.redis("HSET", named, one, "7 3 3")
    check_equal((ask(), word(two)), (two, "0 0 0"))
    STORE.redis("HSET", named, two, "7 1 1")
    check_equal((ask(), word(one), word(two)), ("", "7 3 3", "7 1 1"))


main()
