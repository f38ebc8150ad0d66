#!/usr/bin/python3
"""Every reply of the scripts that say what may be sent to an upstream, and keep what is being sent."""

from intent_model import STEP_MS
from intents import DOUBT, ROUTES, Gateway, close, grant, open_of, parse, same_stripe, script, texts_of
from lua_test import EPOCH, MEMBERS, RECORD, Connection, Holder, Lease, Store, check, check_equal, main, stripe_do, test, text

STORE = Store()
NOW, OPEN_MAX = 1000000, 1000
UNORDERED = ("c", "k", "a")


def begin(tokens=1):
    """A gateway, a lease, and those who held it one after the other; the last one does."""
    STORE.begin(NOW)
    STORE.redis("HSET", RECORD, "routes", ROUTES)
    lease = Lease(STORE, "orders:42")
    return Gateway(STORE), lease, *[grant(lease, number) for number in range(1, tokens + 1)]


def sending(reply):
    """The text of what is being sent."""
    check_equal(reply[0], "sending", f"{reply}")
    check_equal(parse(reply[3]).state, "s")
    return reply[3]


def queued(reply, behind=None):
    check_equal(reply[0], "queued", f"{reply}")
    check(behind is None or reply[4] == behind, f"it waits for {reply[4]}, not for {behind}")
    check_equal(parse(reply[3]).state, "q")
    return reply[3]


def states(lease):
    return [(one.token, one.state) for one in open_of(STORE, lease)]


def overtaken(unknown="h", kind="o"):
    """Ada's write is being sent; bob holds the lease now."""
    gate, lease, ada = begin()
    first = sending(gate.admit(lease, ada, kind, unknown))
    return gate, lease, ada, grant(lease, 2), first


def dead(unknown):
    """The same, and the gateway that sent it is dead; its successor."""
    gate, lease, _, bob, _ = overtaken(unknown)
    heir = Gateway(STORE, gate.name, "life-2")
    [first] = heir.takeover(lease.stripe)[2]
    return heir, lease, bob, first


# -- admission

@test
def the_first_write_of_a_token_is_sent_recorded_and_raises_the_mark():
    gate, lease, ada = begin()
    reply, changes = STORE.changed_by(lambda: gate.admit(lease, ada))
    wanted = (f"orders:42 {EPOCH:015} {1:015} {2:016} s o gate-a life-1 w0.1 h {NOW}")
    check_equal(reply, ["sending", 2, 1, wanted])
    check_equal(changes.pop(lease.stripe + ":i"), (None, {wanted: 0}))
    [(key, (before, after))] = changes.items()
    check_equal((key, after), (lease.key, {**before, "k": "1", "p": str(EPOCH)}))
    reply, changes = STORE.changed_by(lambda: gate.admit(lease, ada))
    check_equal((reply[0], list(changes)), ("sending", [lease.stripe + ":i"]))


@test
def a_write_waits_for_every_older_one_that_is_open_whatever_its_kind_and_its_state():
    for kind in ("o", "o+", *UNORDERED):
        for state in "sud":
            gate, lease, _, bob, first = overtaken(kind=kind)
            if state == "u":
                close(STORE, ("unknown", lease, first))
            elif state == "d":
                STORE.redis("ZREM", lease.stripe + ":i", first)
                STORE.redis("ZADD", lease.stripe + ":i", 0, first.replace(" s ", " d ") + " 0")
            [first] = texts_of(STORE, lease)
            check_equal(parse(first).state, state)
            queued(gate.admit(lease, bob), first)
            check_equal(states(lease), [(1, state), (2, "q")], f"{kind} {state}")


@test
def writes_with_one_token_wait_for_each_other_only_when_the_route_is_serial():
    gate, lease, ada = begin()
    first = sending(gate.admit(lease, ada, "o+"))
    second = queued(gate.admit(lease, ada, "o+"), first)
    third = queued(gate.admit(lease, ada, "o+"), first)
    sending(gate.admit(lease, ada, "o"))
    queued(gate.promote(lease, ada, second), first)
    close(STORE, ("close", lease, first))
    queued(gate.promote(lease, ada, third), second)
    second = sending(gate.promote(lease, ada, second))  # what came behind it is not in front, sent or not
    queued(gate.promote(lease, ada, third), second)


@test
def a_lease_whose_name_goes_on_is_another_and_an_older_epoch_is_in_front():
    gate, lease, _ = begin()
    longer = Lease(STORE, same_stripe(lease.name, 1, lease.name + ".{}")[0])
    ann = grant(longer, 8)
    sending(gate.admit(longer, ann))
    bob = grant(lease, 9)
    check(bob.token > ann.token, "the other one is not older")
    sending(gate.admit(lease, bob))
    sending(gate.admit(longer, grant(longer, 10), "a"))
    gate, lease, ada = begin()
    STORE.redis("HSET", lease.stripe, "counter", 900)
    carol = grant(lease, 9)
    old = parse(sending(gate.admit(lease, carol)))
    gate.store.redis("DEL", lease.stripe + ":i")
    again = gate.again(lease, " ".join([old.name, f"{EPOCH - 1:015}", f"{999:015}", f"{5:016}", "s", "o", "g", "i", "w", "h", "1"]))
    check_equal((again[0], again[2], ada.token), ("recorded", 1, 1))
    queued(gate.admit(lease, carol), texts_of(STORE, lease)[0])


@test
def what_the_fence_refuses_is_not_recorded():
    gate, lease, ada, bob = begin(tokens=2)
    stripe_do(STORE.redis, "HSET", lease.stripe, "alive", EPOCH - 1)  # an earlier epoch is not void by itself
    others = (("stale-token", ada), ("stale-token", Holder(1, hold=bob.hold)), ("stale-token", Holder(2, EPOCH - 1, bob.hold)),
              ("unissued-token", Holder(2, hold="hold-xxxxxxx")), ("unissued-token", Holder(2, EPOCH + 1, bob.hold)),
              ("lease-expired", bob))
    for reason, holder in others:
        if reason == "lease-expired":
            lease.release("id-2")
        for kind in ("o", *UNORDERED):
            check_equal(gate.admit(lease, holder, kind)[::2][:2], ["refused", reason], f"{reason} {kind}")
        check_equal(gate.read(lease, holder)[::2][:2], ["refused", reason])
    check_equal((texts_of(STORE, lease), lease.field("k")), ([], None))


@test
def a_lease_with_too_many_open_is_full_and_another_is_not():
    gate, lease, ada = begin()
    open_now = 0
    while (reply := gate.admit(lease, ada, "a"))[0] == "sending":
        open_now += 1
        check(open_now <= OPEN_MAX, "it is never full")
    check_equal((reply, open_now), (["full", lease.seq(), 1], OPEN_MAX))
    STORE.unchanged_by(lambda: gate.admit(lease, ada))
    other = Lease(STORE, same_stripe(lease.name, 1)[0])
    sending(gate.admit(other, grant(other, 5)))


# -- the route table

@test
def the_first_gateway_says_which_routes_are_served_and_another_table_is_refused():
    for deed in ("admit", "read"):
        gate, lease, ada = begin()
        STORE.redis("HDEL", RECORD, "routes")
        reply = gate.read(lease, ada) if deed == "read" else gate.admit(lease, ada)
        check(reply[0] in ("sending", "accepted"), f"{reply}")
        check_equal(STORE.redis("HGET", RECORD, "routes").decode(), ROUTES, deed)
        other = Gateway(STORE, "gate-b", routes="other")
        for action in (lambda: other.admit(lease, ada), lambda: other.admit(lease, ada, "a"), lambda: other.read(lease, ada)):
            check_equal(STORE.unchanged_by(action), ["routes-differ", lease.seq(), ROUTES])
    gate, lease, _ = begin()
    STORE.redis("HDEL", RECORD, "routes")
    check_equal(gate.admit(lease, Holder(1, hold="hold-xxxxxxx"))[0], "refused")
    check_equal(STORE.redis("HGET", RECORD, "routes"), None)
    gate, lease, _, bob, first = overtaken()
    second = queued(gate.admit(lease, bob), first)
    STORE.redis("HSET", RECORD, "routes", "new")
    check_equal(STORE.unchanged_by(lambda: gate.promote(lease, bob, second))[0::2], ["routes-differ", "new"])


@test
def another_table_is_adopted_only_while_nothing_is_open_and_nobody_is_in_doubt():
    gate, lease, ada = begin()
    first = sending(gate.admit(lease, ada))
    adopt = lambda routes="new": STORE.call(script("routes_adopt"), ["pawl:{00}"], routes)
    check_equal(adopt(), ["open", 0, 1, 0])
    check_equal(adopt(ROUTES), ["adopted", 0, ROUTES])
    close(STORE, ("close", lease, first))
    STORE.redis("HSET", DOUBT, "gate-a life-0", "open 3")
    check_equal(adopt(), ["open", 0, 0, 1])
    STORE.redis("DEL", DOUBT)
    check_equal(adopt(), ["adopted", 1, ROUTES])
    check_equal(gate.admit(lease, ada), ["routes-differ", lease.seq(), "new"])
    STORE.redis("HDEL", RECORD, "routes")
    check_equal(adopt(), ["adopted", 2, ""])


# -- intents that stay open

def doubted(state):
    return lambda gate, lease, told: STORE.redis("HSET", DOUBT, "gate-b life-1", state)


# What becomes of the intent, or of the lease, before a later write asks.
GONE = {
    "closed": lambda gate, lease, told: close(STORE, ("close", lease, told)),
    "unknown": lambda gate, lease, told: close(STORE, ("unknown", lease, told)),
    "of a gateway that is said to be dead": lambda gate, lease, told: gate.takeover(lease.stripe, living=""),
    "resolved": lambda gate, lease, told: [gate.takeover(lease.stripe, living=""),
                                           STORE.call(script("intent_resolve"), [lease.stripe], lease.name, "", "")],
    "of other routes": lambda gate, lease, told: STORE.redis("HSET", RECORD, "routes", "new"),
    "of routes that nobody knows": lambda gate, lease, told: STORE.redis("HDEL", RECORD, "routes"),
    "in doubt": doubted("open 3"),
    "in doubt, and dead for long": doubted(f"dead {NOW - 100000} 0 3"),
    "of an older token": lambda gate, lease, told: grant(lease, 2),
    "of a hold that is over": lambda gate, lease, told: lease.release("id-1"),
}


@test
def a_later_write_goes_by_an_open_intent_and_by_none_that_is_gone_or_whose_token_is_over():
    for check_by in ("live", "mark"):
        gate, lease, ada = begin()
        told = sending(gate.admit(lease, ada, "o~", "g500", check_by))
        check_equal(STORE.unchanged_by(lambda: gate.check(lease, ada, told, check_by)), ["sending", lease.seq(), ada.token])
    for what, becomes in GONE.items():
        gate, lease, ada = begin()
        told = sending(gate.admit(lease, ada, "o~", "g500"))
        other = sending(gate.admit(lease, ada, "o~", "g500"))
        becomes(gate, lease, told)
        reply = STORE.unchanged_by(lambda: gate.check(lease, ada, told))
        check_equal(reply, ["missing", lease.seq()], what)
        if what == "closed":
            check_equal(gate.check(lease, ada, other)[0], "sending")
    gate, lease, ada = begin()
    told = sending(gate.admit(lease, ada, "o~", check="mark"))
    STORE.redis("HDEL", lease.stripe + ":marks", lease.name)
    reply = gate.check(lease, ada, told, "mark")
    check_equal(reply, ["sending", lease.seq(), ada.token])
    gate, lease, ada, bob = begin(2)
    STORE.redis("HSET", lease.stripe + ":marks", "", "0 0")  # some went by mark before
    told = sending(gate.admit(lease, ada, "o~", check="mark"))
    queued(gate.admit(lease, bob, check="mark"), told)
    check_equal(STORE.unchanged_by(lambda: gate.check(lease, ada, told, "mark"))[0], "missing")


@test
def who_waits_for_one_that_stays_open_asks_its_gateway_to_close_it():
    asked = Connection(STORE.redis.path)
    asked("PSUBSCRIBE", "pawl:{store}:i:*")

    def heard():
        parts = [asked.file.readline() for _ in range(9)]
        return parts[6].decode().strip(), parts[8].decode().strip()

    gate, lease, ada = begin()
    told = sending(gate.admit(lease, ada, "o~"))
    queued(gate.admit(lease, ada, "o+"), told)
    check_equal(heard(), ("pawl:{store}:i:gate-a", lease.name), "a serial write of the same token")
    bob = grant(lease, 2)
    second = queued(Gateway(STORE, "gate-b").admit(lease, bob), told)
    check_equal(heard(), ("pawl:{store}:i:gate-a", lease.name), "a newer write")
    Gateway(STORE, "gate-b").promote(lease, bob, second)
    check_equal(heard(), ("pawl:{store}:i:gate-a", lease.name), "when it looks again")
    Gateway(STORE, "gate-b").read(lease, bob)
    check_equal(heard(), ("pawl:{store}:i:gate-a", lease.name), "a fenced read")
    STORE.call(script("intent_resolve"), [lease.stripe], lease.name, str(parse(told).seq), "force")
    check_equal(heard(), ("pawl:{store}:i:gate-a", lease.name), "an operator who gives it up")
    STORE.redis("DEL", MEMBERS)
    STORE.redis("SADD", MEMBERS, "gate-a")
    STORE.call(script("routes_adopt"), ["pawl:{00}"], "new")
    check_equal(heard(), ("pawl:{store}:i:gate-a", ""), "other routes")
    asked.close()


@test
def one_of_many_requests_keeps_the_numbers_of_those_whose_end_is_unknown():
    gate, lease, ada = begin()
    told = sending(gate.admit(lease, ada, "o~"))
    noted = told.replace(" o~ ", " o~0.7,0.9,more ")
    close(STORE, ("unknown", lease, noted))
    check_equal([(one.state, one.kind) for one in open_of(STORE, lease)], [("u", "o~0.7,0.9,more")])
    queued(gate.admit(lease, grant(lease, 2)))
    [taken] = gate.takeover(lease.stripe, living="")[2]
    check_equal((parse(taken).state, parse(taken).kind), ("d", "o~0.7,0.9,more"))
    check_equal(STORE.unchanged_by(lambda: gate.again(lease, noted))[2], 0)
    close(STORE, ("close", lease, told))
    check_equal(open_of(STORE, lease), [])


# -- the turn of what waits

@test
def a_queued_write_is_sent_when_the_older_one_is_closed_and_its_token_is_looked_at_again():
    gate, lease, _, bob, first = overtaken()
    second = queued(gate.admit(lease, bob), first)
    check_equal(STORE.unchanged_by(lambda: gate.promote(lease, bob, second)), ["queued", lease.seq(), 2, second, first])
    close(STORE, ("close", lease, first))
    STORE.at(NOW + 7)
    reply, changes = STORE.changed_by(lambda: gate.promote(lease, bob, second))
    check_equal(parse(sending(reply)), parse(second)._replace(state="s", at=NOW + 7))
    check_equal((list(changes), reply[2]), ([lease.stripe + ":i"], 2))
    gate, lease, _, bob, first = overtaken()
    second = queued(gate.admit(lease, bob), first)
    close(STORE, ("close", lease, first))
    lease.release("id-2")
    check_equal(gate.promote(lease, bob, second)[::2][:2], ["refused", "lease-expired"])
    check_equal(states(lease), [])
    check_equal(gate.promote(lease, bob, second)[::2][:2], ["cancelled", "lease-expired"])


@test
def a_newer_token_cancels_whatever_older_ones_have_queued():
    gate, lease, _, bob, first = overtaken()
    seconds = [queued(gate.admit(lease, bob), first) for _ in range(70)]
    carol = grant(lease, 3)
    third = queued(gate.admit(lease, carol), first)
    sixty_three = 63  # as many as one look shows behind the first
    check_equal(len(states(lease)), 2 + 70 - sixty_three)
    queued(gate.promote(lease, carol, third), first)
    check_equal(states(lease), [(1, "s"), (3, "q")])
    for second in (seconds[0], seconds[-1]):
        reply, changes = STORE.changed_by(lambda second=second: gate.promote(lease, bob, second))
        check_equal([reply[0], *reply[2:]], ["cancelled", "stale-token", 3, EPOCH, 3, "ada", "note"])
        check_equal(changes, {})
    gate, lease, _, bob, first = overtaken()
    for _ in range(200):
        queued(gate.admit(lease, bob), first)
    close(STORE, ("close", lease, first))
    sending(gate.admit(lease, grant(lease, 3)))
    check_equal(states(lease), [(3, "s")])


@test
def a_promotion_is_told_again_and_one_that_was_taken_out_is_cancelled_though_its_token_is_good():
    gate, lease, _, bob, first = overtaken()
    second = queued(gate.admit(lease, bob), first)
    close(STORE, ("close", lease, first))
    told = sending(gate.promote(lease, bob, second))
    lease.release("id-2")  # it may have been sent: it must stay
    check_equal(STORE.unchanged_by(lambda: gate.promote(lease, bob, second)), ["sending", lease.seq(), 2, told])
    close(STORE, ("unknown", lease, told))
    check_equal((gate.promote(lease, bob, second)[0], states(lease)), ("cancelled", [(2, "u")]))
    gate, lease, _, bob, first = overtaken()
    second = queued(gate.admit(lease, bob), first)
    close(STORE, ("close", lease, second))
    check_equal(STORE.unchanged_by(lambda: gate.promote(lease, bob, second))[2:], ["", 2, EPOCH, 2, "ada"])
    check_equal(len(text(STORE.redis("LRANGE", f"{lease.stripe}:f:{lease.name}", 0, -1))), 0)
    gate, lease, ada = begin()
    told = sending(gate.admit(lease, ada))
    mine = told.replace("gate-a", "gate-b")
    check_equal(Gateway(STORE, "gate-b").promote(lease, ada, mine.replace(" s ", " q "))[0], "cancelled")
    check_equal(STORE.unchanged_by(lambda: close(STORE, ("close", lease, mine)))[2], 0)
    check_equal(gate.again(lease, mine)[2], 1)
    check_equal(close(STORE, ("close", lease, mine.replace(" s ", " u ")))[2], 1)
    check_equal(texts_of(STORE, lease), [told])


# -- fenced reads

@test
def a_fenced_read_waits_for_every_older_write_but_those_that_the_upstream_checks():
    for kind in ("o", "o+", "c", "a"):
        gate, lease, _, bob, first = overtaken(kind=kind)
        check_equal(gate.read(lease, bob), ["wait", lease.seq(), 2, first], kind)
        check_equal(lease.field("k"), "2", "the mark is raised at once")
        close(STORE, ("close", lease, first))
        check_equal(STORE.unchanged_by(lambda gate=gate, lease=lease, bob=bob: gate.read(lease, bob)),
                    ["accepted", lease.seq(), 2])
    gate, lease, _, bob, first = overtaken(kind="k")
    check_equal(gate.read(lease, bob)[::2], ["accepted", 2])
    for _ in range(70):
        close(STORE, ("forget", lease, "orders:42 nobody no none"))
        gate.again(lease, first.replace("w0.1", f"w1.{_}"))
    blocker = first.replace(" k ", " o ").replace(f"{2:016}", f"{3:016}")
    gate.again(lease, blocker)
    check_equal(gate.read(lease, bob)[3], blocker)


# -- what is closed

@test
def what_is_closed_is_gone_and_what_has_changed_its_state_is_closed_by_the_text_of_before():
    gate, lease, ada = begin()
    first, second = (sending(gate.admit(lease, ada)) for _ in range(2))
    reply, changes = STORE.changed_by(lambda: close(STORE, ("close", lease, first)))
    check_equal((reply[0], reply[2], list(changes)), ("closed", 1, [lease.stripe + ":i"]))
    check_equal(texts_of(STORE, lease), [second])
    check_equal(STORE.unchanged_by(lambda: close(STORE, ("close", lease, first)))[2], 0)
    check_equal(close(STORE, ("close", lease, first), ("close", lease, second))[2], 1)
    check_equal(texts_of(STORE, lease), [])
    for change in ("unknown", "takeover"):
        gate, lease, _, bob, first = overtaken()
        if change == "unknown":
            check_equal(close(STORE, ("unknown", lease, first))[2], 1)
        else:
            Gateway(STORE, gate.name, "life-2").takeover(lease.stripe)
        second = queued(gate.admit(lease, bob))
        check_equal(close(STORE, ("close", lease, first))[2], 1, change)
        sending(gate.promote(lease, bob, second))


@test
def an_unknown_end_is_noted_once_and_only_of_what_is_being_sent():
    gate, lease, _, bob, first = overtaken()
    second = queued(gate.admit(lease, bob))
    STORE.at(NOW + 5)
    check_equal(close(STORE, ("unknown", lease, first), ("unknown", lease, second))[2], 1)
    check_equal([(one.state, one.at) for one in open_of(STORE, lease)], [("u", NOW + 5), ("q", NOW)])
    check_equal(STORE.unchanged_by(lambda: close(STORE, ("unknown", lease, first)))[2], 0)
    Gateway(STORE, gate.name, "life-2").takeover(lease.stripe)
    check_equal(STORE.unchanged_by(lambda: close(STORE, ("unknown", lease, first)))[2], 0)


@test
def an_applied_conditional_write_settles_older_conditional_ones_and_nothing_else():
    gate, lease, ada = begin()
    firsts = [sending(gate.admit(lease, ada, kind)) for kind in ("c", "a", "c", "k")]
    bob = grant(lease, 2)
    check_equal(close(STORE, ("settle", lease, sending(gate.admit(lease, bob, "a"))))[2], 1)  # not conditional: as close
    equal, second = (sending(gate.admit(lease, bob, "c")) for _ in range(2))
    newer = sending(gate.admit(lease, grant(lease, 3), "c"))
    check_equal(close(STORE, ("settle", lease, second))[2], 3)
    check_equal(texts_of(STORE, lease), [firsts[1], firsts[3], equal, newer])
    check_equal(STORE.unchanged_by(lambda: close(STORE, ("settle", lease, second)))[2], 0)
    gate.again(lease, firsts[0])
    check_equal(close(STORE, ("settle", lease, second))[2], 1, "it holds though it was closed before")


@test
def intents_of_several_stripes_are_closed_in_one_step_or_none_is():
    gate, _, _ = begin()
    leases = [Lease(STORE, f"job-{i}") for i in range(32)]
    told = [sending(gate.admit(lease, grant(lease, i))) for i, lease in enumerate(leases)]
    seqs = {lease.stripe: lease.seq() for lease in leases}
    items = [("close", lease, one) for lease, one in zip(leases, told)]
    last = leases[-1].stripe
    for field in ("id", "epoch"):
        life = STORE.redis("HGET", last, "life")
        stripe_do(STORE.redis, "HSET", last, field, "other")
        before = STORE.dump()
        check_equal((close(STORE, *items), STORE.dump()), (["not-ours"], before), field)
        STORE.redis("HSET", last, "life", life)
    reply = close(STORE, *items, *items[:0])
    check_equal((reply[0], reply[2]), ("closed", 32))
    check_equal({lease.stripe: lease.seq() for lease in leases}, {stripe: seq + 1 for stripe, seq in seqs.items()})
    check_equal([key for key in STORE.dump("pawl:{*:i")], [])


@test
def the_first_stripe_rises_with_another_one_and_an_unchanged_one_does_not():
    gate, lease, ada = begin()
    others = [Lease(STORE, name) for name in ("job-1", "job-2")]
    one = sending(gate.admit(others[0], grant(others[0], 1)))
    gone = sending(gate.admit(others[1], grant(others[1], 1)))
    close(STORE, ("close", others[1], gone))
    told = sending(gate.admit(lease, ada))
    close(STORE, ("close", lease, told))
    seqs = [each.seq() for each in (lease, *others)]
    reply = close(STORE, ("close", lease, told), ("close", others[0], one), ("close", others[1], gone))
    check_equal(reply[1:], [seqs[0] + 1, 1])
    check_equal([each.seq() for each in (lease, *others)], [seqs[0] + 1, seqs[1] + 1, seqs[2]])


# -- gateways that are dead

@test
def a_successor_takes_over_what_was_sent_and_removes_what_was_not():
    gate, lease, ada = begin()
    kept = [sending(gate.admit(lease, ada, kind)) for kind in ("o", "c", "o")]
    for kind in ("k", "a"):
        sending(gate.admit(lease, ada, kind))
    close(STORE, ("unknown", lease, kept[2]))
    foreign = sending(Gateway(STORE, "gate-b").admit(lease, ada))
    queued(gate.admit(lease, grant(lease, 2)))
    heir = Gateway(STORE, gate.name, "life-2")
    own = sending(heir.admit(lease, grant(lease, 3), "a"))
    STORE.at(NOW + 9)
    reply, changes = STORE.changed_by(lambda: heir.takeover(lease.stripe))
    check_equal((reply[0], *reply[3:], list(changes)), ("taken", "", 3, [lease.stripe + ":i"]))
    check_equal([parse(one) for one in reply[2]], [parse(one)._replace(state="d", at=NOW + 9, leaps=0) for one in kept])
    check_equal(texts_of(STORE, lease), sorted([*reply[2], foreign, own]))
    STORE.at(NOW + 20)
    check_equal(STORE.unchanged_by(lambda: heir.takeover(lease.stripe))[2:], [reply[2], "", 0])
    undecided = sending(Gateway(STORE, gate.name, "life-0").admit(lease, grant(lease, 4), "a"))
    for others in (("life-3",), ("life-2",)):
        check_equal(STORE.unchanged_by(lambda others=others: heir.takeover(lease.stripe, dead=others))[2],
                    sorted([*reply[2], undecided]), f"{others}: who is not known to be dead is told of, and left as it is")
    close(STORE, ("close", lease, undecided))
    check_equal(heir.takeover(lease.stripe, dead=("life-3", "life-1"))[2], reply[2])
    check_equal(len(heir.takeover(lease.stripe, living="")[2]), 3)
    check_equal(texts_of(STORE, lease), sorted([*reply[2], foreign]), "an operator says that no incarnation lives")


def taken_over(gate, lease, most=1):
    """What a successor of this gateway takes over, a few at a time; in how many steps; how many it removes."""
    heir, behind, taken, calls, removed = Gateway(STORE, gate.name, "life-2"), "", [], 0, 0
    while calls == 0 or behind:
        reply = heir.takeover(lease.stripe, behind=behind, most=most)
        taken, behind, calls, removed = taken + reply[2], reply[3], calls + 1, removed + reply[4]
        check(len(behind) <= 776, "what to go on behind is longer than a gateway has room for")
    return taken, calls, removed


@test
def a_takeover_goes_on_where_it_ended_and_passes_over_nobody_of_those_with_one_number():
    gate, lease, ada = begin()
    told = [sending(gate.admit(lease, ada, "oa"[i % 2])) for i in range(25)]
    taken, calls, removed = taken_over(gate, lease, 4)
    check_equal(([parse(one).id for one in taken], removed), ([parse(one).id for one in told[::2]], 12))
    check_equal((texts_of(STORE, lease), calls), (taken, 7))
    """One that a hand made too long is no place to go on behind; it is taken over as all others are."""
    for place in (0, 1, 5):
        gate, lease, ada = begin()
        told = [sending(gate.admit(lease, ada)) for i in range(6)]
        STORE.redis("ZREM", lease.stripe + ":i", told[place])
        STORE.redis("ZADD", lease.stripe + ":i", 0, told[place].replace(" o ", " o" + "o" * 900 + " "))
        check_equal([parse(one).id for one in taken_over(gate, lease)[0]], [parse(one).id for one in told])
    """A store that was set back gives a number again."""
    gate, lease, ada = begin()
    first = sending(gate.admit(lease, ada))
    parts = first.split(" ")
    parts[8] += "9"
    gate.again(lease, " ".join(parts))
    check_equal({parse(one).id for one in taken_over(gate, lease)[0]}, {parts[8], parts[8][:-1]})


@test
def an_incarnation_that_has_joined_since_an_operator_looked_is_left_alone():
    gate, lease, ada = begin()
    told = {life: sending(Gateway(STORE, gate.name, life).admit(lease, ada)) for life in ("life-1", "life-2")}
    for member, seen, taken in (("life-2", "life-1", ["life-1"]), ("life-2", "life-2", ["life-1", "life-2"])):
        STORE.redis("HSET", f"pawl:{{store}}:m:{gate.name}", "incarnation", member)
        reply = gate.takeover(lease.stripe, living="", dead=("seen", seen))
        check_equal(sorted(parse(one).incarnation for one in reply[2]), taken)
    check_equal(len(told), 2)


@test
def a_grace_begins_when_the_gateway_is_known_to_be_dead_and_is_that_of_the_older_write():
    for unknown, is_over in (("g500", True), ("h", False), ("p", False), ("g90000", False)):
        heir, lease, bob, first = dead(unknown)
        STORE.at(NOW + STEP_MS + 499)
        second = queued(heir.admit(lease, bob, unknown="g500"), first)
        check_equal(heir.read(lease, bob, "g500")[3], first)
        STORE.at(NOW + STEP_MS + 500)
        reply = heir.promote(lease, bob, second, "g500")
        check_equal((reply[0], reply[4:]), ("sending", []) if is_over else ("queued", [first]), unknown)
        check_equal(states(lease), [(2, "s")] if is_over else [(1, "d"), (2, "q")])


@test
def a_leap_of_the_clock_is_no_grace():
    heir, lease, bob, first = dead("g500")
    STORE.redis("HSET", RECORD, "leaps", 360000)
    STORE.at(NOW + STEP_MS + 360000 + 499)
    second = queued(heir.admit(lease, bob), first)
    STORE.at(NOW + STEP_MS + 360000 + 500)
    sending(heir.promote(lease, bob, second))
    STORE.redis("HSET", RECORD, "leaps", 7000)
    gate, lease, _, bob, _ = overtaken("g500")
    STORE.redis("HSET", RECORD, "leaps", 7000)
    [first] = Gateway(STORE, gate.name, "life-2").takeover(lease.stripe)[2]
    check_equal(parse(first).leaps, 7000)
    STORE.redis("HDEL", RECORD, "leaps")  # the record was made anew, and has leapt 300 ms since
    STORE.redis("HSET", RECORD, "leaps", 300)
    STORE.at(NOW + STEP_MS + 799)
    second = queued(gate.admit(lease, bob), first)
    STORE.at(NOW + STEP_MS + 800)
    sending(gate.promote(lease, bob, second))


# -- a store that has lost something

@test
def while_somebody_is_in_doubt_no_ordered_write_is_sent_and_no_fenced_read_answered():
    gate, lease, ada = begin()
    STORE.redis("HSET", DOUBT, "gate-b life-7", "open 3")
    for kind in ("o", "o+", "c"):
        check_equal(STORE.unchanged_by(lambda kind=kind: gate.admit(lease, ada, kind)),
                    ["in-doubt", lease.seq(), 0, "store", "gate-b life-7"])
    check_equal(gate.read(lease, ada), ["wait", lease.seq(), 1, "store", "gate-b life-7"])
    for kind in "ka":
        sending(gate.admit(lease, ada, kind))
    leave = lambda *who: STORE.call(script("unreported_leave"), ["pawl:{00}"], *who, ROUTES, EPOCH, 0)
    check_equal((leave("gate-b", "life-8"), leave("gate-b", "life-7")), (["left", 0, 1], ["left", 1, 0]))
    sending(gate.admit(lease, ada))
    check_equal(gate.read(lease, ada)[0], "accepted")


@test
def what_ended_a_doubt_does_not_end_a_later_one_and_what_waits_stays_queued_in_doubt():
    begin()
    leave = lambda epoch: STORE.call(script("unreported_leave"), ["pawl:{00}"], "gate-b", "life-7", ROUTES, epoch, 0)
    for state in (f"open {EPOCH}", f"dead 5 0 {EPOCH}"):
        STORE.redis("HSET", DOUBT, "gate-b life-7", state)
        check_equal(STORE.unchanged_by(lambda: leave(EPOCH - 1))[2], 1)
        check_equal(leave(EPOCH)[2], 0, state)
    gate, lease, _, bob, first = overtaken()
    second = queued(gate.admit(lease, bob), first)
    close(STORE, ("close", lease, first))
    STORE.redis("HSET", DOUBT, "gate-b life-7", "open 3")
    check_equal(STORE.unchanged_by(lambda: gate.promote(lease, bob, second)),
                ["queued", lease.seq(), 2, second, "store", "gate-b life-7"])
    STORE.redis("DEL", DOUBT)
    sending(gate.promote(lease, bob, second))


@test
def a_gateway_learns_whether_the_store_may_have_lost_what_it_has_open():
    begin()
    look = lambda who: STORE.unchanged_by(lambda: STORE.call(script("unreported_look"), ["pawl:{00}"], *who.split(" ")))[2]
    check_equal(look("gate-b life-7"), 0)
    STORE.redis("HSET", DOUBT, "gate-b life-7", "open 3")
    check_equal((look("gate-b life-7"), look("gate-b life-8"), look("gate-c life-7")), (1, 0, 0))
    STORE.redis("HSET", DOUBT, "whichever_it_was whichever_it_was", "open 3")
    check_equal(look("gate-b life-8"), 1)


@test
def who_leaves_doubt_with_another_table_than_the_store_has_makes_it_nobodys():
    gate, lease, ada = begin()
    leave = lambda who, routes: STORE.call(script("unreported_leave"), ["pawl:{00}"], *who.split(" "), routes, EPOCH, 0)
    for stored, told, left in (("", ROUTES, ROUTES), (ROUTES, ROUTES, ROUTES), (ROUTES, "", ROUTES), (ROUTES, "s" * 43, "?"),
                               ("?", ROUTES, "?")):
        STORE.redis("HSET", RECORD, "routes", stored)
        STORE.redis("HSET", DOUBT, "gate-b life-7", "open 3")
        leave("gate-b life-8", "t" * 43)  # who is not in doubt changes nothing
        leave("gate-b life-7", told)
        check_equal(STORE.redis("HGET", RECORD, "routes").decode(), left, f"{stored} {told}")
    check_equal(gate.admit(lease, ada)[0], "routes-differ")


@test
def where_nobody_knows_who_was_in_doubt_the_table_of_each_that_has_said_what_it_has_open_counts():
    gate, lease, ada = begin()
    everybody = "whichever_it_was whichever_it_was"
    leave = lambda *told: STORE.call(script("unreported_leave"), ["pawl:{00}"], "gate-b", "life-7", told[0], EPOCH, 0, *told[1:])
    for begun, stored, told, left in ((3, "", (ROUTES, "open"), ROUTES), (3, "", (ROUTES, ""), ""), (3, "", ("", "open"), ""),
                                      (3, ROUTES, (ROUTES, "open"), ROUTES), (3, ROUTES, ("s" * 43, "open"), "?"),
                                      (3, ROUTES, ("s" * 43, ""), ROUTES), (EPOCH + 1, "", (ROUTES, "open"), "")):
        STORE.redis("HSET", RECORD, "routes", stored)
        STORE.redis("HSET", DOUBT, everybody, f"open {begun}")
        check_equal(leave(*told)[2], 1, "whoever that was is in doubt")
        check_equal(STORE.redis("HGET", RECORD, "routes").decode(), left, f"{begun} {stored} {told}")
    STORE.redis("HSET", RECORD, "routes", "")
    STORE.redis("HSET", DOUBT, everybody, "open 3")
    leave("s" * 43, "open")
    STORE.redis("DEL", DOUBT)
    check_equal(gate.admit(lease, ada)[0], "routes-differ")


@test
def one_in_doubt_that_is_dead_counts_no_more_when_the_routes_grace_is_over():
    gate, lease, ada = begin()
    STORE.redis("HSET", DOUBT, "gate-b life-7", "open 3", "gate-b life-8", "open 3", "gate-c life-7", "open 3")
    mark_dead = lambda *args: STORE.call(script("unreported_dead"), ["pawl:{00}"], *args)[:3]
    check_equal(mark_dead("gate-b", "life-9", "these", "life-6", "life-9"), ["dead", 0, []])
    check_equal(mark_dead("gate-b", "life-9", "these", "life-6", "life-7"), ["dead", 1, ["life-7"]])
    check_equal(mark_dead("gate-b", "life-8", "all"), ["dead", 1, ["life-7"]])
    check_equal(mark_dead("gate-c", "", "all"), ["dead", 2, ["life-7"]])
    STORE.at(NOW + 100)
    check_equal(mark_dead("gate-c", "", "all"), ["dead", 2, ["life-7"]], "it was known before")
    STORE.at(NOW + STEP_MS + 500)
    check_equal(gate.admit(lease, ada, unknown="g500")[4], "gate-b life-8")
    STORE.call(script("unreported_leave"), ["pawl:{00}"], "gate-b", "life-8", "", EPOCH, 0)
    STORE.at(NOW + STEP_MS + 499)
    check_equal(gate.admit(lease, ada, unknown="g500")[0], "in-doubt")
    STORE.at(NOW + STEP_MS + 500)
    for unknown in ("h", "p", "g501"):
        check_equal(gate.admit(lease, ada, unknown=unknown)[0], "in-doubt", unknown)
    sending(gate.admit(lease, ada, unknown="g500"))
    check_equal((gate.read(lease, ada, "g500")[0], gate.read(lease, ada, "h")[0]), ("accepted", "wait"))
    STORE.redis("HSET", RECORD, "leaps", 1)
    check_equal(gate.admit(lease, ada, unknown="g500")[0], "in-doubt")


@test
def one_that_was_in_doubt_before_is_brought_back_to_a_store_that_lost_that_too():
    begin()
    check_equal(STORE.call(script("unreported_dead"), ["pawl:{00}"], "gate-b", "life-9", "lost", "life-3", "life-5", "life-9"),
                ["dead", 1, ["life-3", "life-5"], int(STORE.redis("HGET", RECORD, "roll"))])
    check_equal(sorted(text(STORE.redis("HKEYS", DOUBT))), ["gate-b life-3", "gate-b life-5"])


@test
def of_whom_nobody_knows_whether_they_are_dead_are_brought_back_as_living_ones_are():
    begin()
    STORE.redis("HSET", DOUBT, "gate-b life-6", "dead 5 0 3")
    dead = lambda *words: STORE.call(script("unreported_dead"), ["pawl:{00}"], "gate-b", "life-9", *words)[:3]
    lost = ("lost", "life-3", "open", "life-6", "life-7", "life-9")
    check_equal(dead(*lost), ["dead", 1, ["life-3"]])
    told = text(STORE.redis("HGETALL", DOUBT))
    states = {who: state.split(" ")[0] for who, state in zip(told[::2], told[1::2])}
    check_equal(states, {"gate-b life-3": "dead", "gate-b life-6": "dead", "gate-b life-7": "open"})
    check_equal(STORE.redis("HGET", DOUBT, "gate-b life-6"), b"dead 5 0 3", "what was known stays")
    check_equal(STORE.unchanged_by(lambda: dead(*lost)), ["dead", 1, ["life-3"]])
    check_equal(dead("lost", "life-3", "ended", "life-2", "life-7", "open", "life-6"), ["dead", 2, ["life-3"]])
    check_equal(dead("these", "life-3", "ended", "life-6"), ["dead", 3, ["life-3"]])
    check_equal(text(STORE.redis("HKEYS", DOUBT)), ["gate-b life-3"], "who ended in order is in no doubt")


@test
def who_has_brought_others_back_stays_in_doubt_until_the_state_directories_have_them():
    begin()
    STORE.redis("HSET", DOUBT, "gate-b life-9", f"open {EPOCH}")
    dead = lambda: STORE.call(script("unreported_dead"), ["pawl:{00}"], "gate-b", "life-9", "lost", "life-3", "open", "life-5")[3]
    roll = dead()
    check_equal((roll, dead()), (int(STORE.redis("HGET", RECORD, "roll")),) * 2, "as when the first reply was lost")
    leave = lambda: STORE.call(script("unreported_leave"), ["pawl:{00}"], "gate-b", "life-9", "", EPOCH, roll)
    check_equal(STORE.unchanged_by(leave)[0], "unrecorded", "no lease service lives")
    for member, at, recorded, told in (("lease-a", NOW, roll - 1, "unrecorded"), ("lease-b", NOW, roll, "unrecorded"),
                                       ("lease-a", NOW - 60000, roll - 1, "left")):
        STORE.redis("SADD", MEMBERS, member)
        STORE.redis("HSET", f"{RECORD}:m:{member}", "role", "lease", "state", "in", "at", at, "roll", recorded)
        check_equal(leave()[0], told, f"{member} {recorded}")


@test
def what_a_store_has_lost_is_recorded_again_once_and_stays_as_it_is_where_it_is_known():
    gate, lease, _, bob, first = overtaken()
    second = queued(gate.admit(lease, bob), first)
    STORE.redis("DEL", lease.stripe + ":i")
    reply, changes = STORE.changed_by(lambda: gate.again(lease, first, second))
    check_equal((reply[0], reply[2], list(changes)), ("recorded", 2, [lease.stripe + ":i"]))
    check_equal(texts_of(STORE, lease), [first, second])
    close(STORE, ("unknown", lease, first))
    check_equal(STORE.unchanged_by(lambda: gate.again(lease, first, second))[2], 0)
    check_equal(states(lease), [(1, "u"), (2, "q")])


@test
def the_grace_of_a_dead_one_that_is_recorded_again_begins_anew():
    heir, lease, bob, first = dead("g500")
    STORE.redis("DEL", lease.stripe + ":i")
    STORE.redis("HSET", RECORD, "leaps", 11)
    STORE.at(NOW + 400)
    heir.again(lease, first)
    check_equal(open_of(STORE, lease), [parse(first)._replace(at=NOW + 400, leaps=11)])
    STORE.at(NOW + STEP_MS + 899)
    second = queued(heir.admit(lease, bob))
    STORE.at(NOW + STEP_MS + 900)
    sending(heir.promote(lease, bob, second))


# -- operators

@test
def an_operator_resolves_what_nobody_will_tell_but_nothing_that_a_gateway_may_yet_send():
    gate, lease, _, bob, first = overtaken()
    second = queued(gate.admit(lease, bob), first)
    resolve = lambda seq="": STORE.call(script("intent_resolve"), [lease.stripe], lease.name, seq, "")
    check_equal(STORE.unchanged_by(resolve)[2:], [0, [first]])
    close(STORE, ("unknown", lease, first))
    check_equal(resolve()[2:], [1, []])
    check_equal((resolve(parse(second).seq + 1)[2], resolve(parse(second).seq)[2]), (0, 1))
    check_equal(gate.promote(lease, bob, second)[0], "cancelled")
    told = sending(gate.admit(lease, bob))
    check_equal(STORE.unchanged_by(lambda: resolve(f"{parse(told).seq:016}"))[2:], [0, [told]])
    close(STORE, ("unknown", lease, told))
    check_equal((resolve(f"{parse(told).seq:016}")[2:], texts_of(STORE, lease)), ([1, []], []))
    check_equal(STORE.unchanged_by(lambda: close(STORE, ("close", lease, told)))[2], 0)
    heir, lease, bob, _ = dead("h")
    second = queued(heir.admit(lease, bob))
    check_equal(resolve()[2:], [1, []])
    sending(heir.promote(lease, bob, second))


@test
def an_id_that_several_have_since_the_store_was_set_back_resolves_none_of_them():
    gate, lease, _, _, first = overtaken()
    close(STORE, ("unknown", lease, first))
    parts = first.split(" ")
    twin = " ".join([parts[0], f"{EPOCH + 1:015}", *parts[2:4], "u", parts[5], "gate-x", *parts[7:]])
    check_equal(gate.again(lease, twin)[2], 1)
    resolve = lambda *more: STORE.call(script("intent_resolve"), [lease.stripe], lease.name, *more)
    for force in ("", "force"):
        check_equal(STORE.unchanged_by(lambda force=force: resolve(parse(first).seq, force))[0], "several")
    check_equal((resolve("", "")[2:], texts_of(STORE, lease)), ([2, []], []))


@test
def what_is_being_sent_is_removed_by_force_only_when_its_gateway_is_silent():
    _, lease, _, _, first = overtaken()
    one, other = parse(first), ["gate-x", "life-1"]
    force = lambda: STORE.call(script("intent_resolve"), [lease.stripe], lease.name, one.seq, "force")[2:]
    given_up = lambda *who: STORE.call(script("intent_given_up"), [lease.stripe], *who)[2]
    pulse = lambda now: STORE.redis("HSET", f"{RECORD}:m:{one.gateway}", "incarnation", one.incarnation, "at", now)
    pulse(NOW)
    check_equal(given_up(one.gateway, one.incarnation), [])
    for ms in (0, 2500, 10000):  # it lives: it says itself when the connection is closed
        STORE.at(NOW + ms)
        check_equal((force(), given_up(one.gateway, one.incarnation), given_up(*other)), ([0, [first]], [one.id], []))
    STORE.at(NOW + 20000)
    check_equal(force(), [0, [first]])
    pulse(NOW + 20000)  # that was a leap of the clock
    check_equal(force(), [0, [first]])
    STORE.at(NOW + 40000)
    check_equal((force(), force()), ([0, [first]], [0, [first]]))
    for ms in (42000, 43499):  # it may have lived in between: from the first of these on
        STORE.at(NOW + ms)
        check_equal(force(), [0, [first]])
    STORE.at(NOW + 43500)
    check_equal((force(), texts_of(STORE, lease)), ([1, []], []))
    check_equal(STORE.redis("HGET", RECORD, "given-up"), b"1", "one was given up, however often")
    _, lease, _, _, first = overtaken()  # much later, of another one: what was given up is forgotten
    one = parse(first)
    STORE.at(NOW + 40000 + 600_001)
    check_equal((force(), given_up(one.gateway, one.incarnation)), ([0, [first]], [one.id]))

main()
