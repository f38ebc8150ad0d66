#!/usr/bin/python3
"""Every reply of every script in gateway/scripts."""

from lua_test import EPOCH, REMEMBER_MS, Holder, Lease, Resource, Store, check, check_equal, main, test, text
from several import desk_says
from world.record import record_field

STORE = Store()
NOW = 1000000
ADA = Holder(1)


def begin(rest="/a"):
    """A lease that ada holds with token 1, and a resource under it."""
    STORE.begin(NOW)
    lease = Lease(STORE, "orders:42")
    check_equal(lease.acquire()[0], "granted")
    return Resource(lease, rest)


def bob_takes_over(resource):
    STORE.at(NOW + 1000)
    check_equal(resource.lease.acquire("id-b", "hold-bbbbbbb", "bob")[0], "granted")
    return Holder(2, hold="hold-bbbbbbb")


def deeds(resource):
    """Every script that asks the fence, by name."""
    return {"write": resource.write, "remove": resource.remove, "read_fenced": resource.read_fenced,
            "check": resource.check}


def refused(resource, deed, wanted, what=None):
    """It gives this refusal (without the sequence number), and nothing is changed but that it may be noted in the history."""
    reply, changes = STORE.changed_by(deed)
    check_equal([reply[0]] + reply[2:], ["refused"] + wanted, what)
    check(not changes.keys() - {noted_in(resource.lease)}, f"{what}: {changes}")


def refused_everywhere(resource, holder, wanted):
    """Every fenced script gives this refusal."""
    for name, deed in deeds(resource).items():
        refused(resource, lambda deed=deed: deed(holder), wanted, name)


def noted_in(lease):
    return f"{lease.stripe}:f:{lease.name}"


def noted(lease):
    """(token, reason, when) of the refusals in the lease's history."""
    items = [item.split("\t") for item in text(STORE.redis("LRANGE", noted_in(lease), 0, -1)) if not item.startswith("-")]
    check(all(item[1] == "refused" for item in items), f"{items}")
    return [(int(item[2]), item[5].split("\x1f")[0], int(item[4])) for item in items]


# -- the fence

@test
def the_fence_refuses_each_token_that_is_not_of_the_live_hold_with_its_reason():
    def granted_elsewhere(resource):
        STORE.redis("HSET", resource.lease.stripe, "counter", 50)

    def forgotten(resource):
        granted_elsewhere(resource)
        STORE.redis("HDEL", resource.lease.stripe, record_field(resource.lease.name))

    def bobs(resource):
        bob_takes_over(resource)
        resource.lease.release("id-b")

    def expired(resource):
        STORE.at(NOW + 1000)
        resource.lease.look()  # ends it

    bob, of_ada, of_nobody = Holder(2, hold="hold-bbbbbbb"), [1, EPOCH, 0, "ada"], [0, 0, 0, ""]
    for happened, holder, *wanted in (
            (None, Holder(2), "unissued-token", *of_ada),  # above what the stripe ever granted
            (None, Holder(1, EPOCH + 1), "unissued-token", *of_ada),
            (granted_elsewhere, Holder(2), "unissued-token", *of_ada),  # above what the lease was ever granted
            (None, Holder(1, hold="hold-xxxxxxx"), "unissued-token", *of_ada),
            (forgotten, Holder(40), "lease-expired", *of_nobody), (forgotten, Holder(51), "unissued-token", *of_nobody),
            (bob_takes_over, ADA, "stale-token", 2, EPOCH, 0, "bob"), (bobs, ADA, "stale-token", 2, EPOCH, 0, ""),
            (bobs, bob, "lease-expired", 2, EPOCH, 0, ""), (None, Holder(900, EPOCH - 1), "stale-token", *of_ada),
            (bob_takes_over, Holder(1, hold="hold-xxxxxxx"), "stale-token", 2, EPOCH, 0, "bob"),
            (lambda resource: resource.lease.release(), ADA, "lease-expired", 1, EPOCH, 0, ""),
            (expired, ADA, "lease-expired", 1, EPOCH, 0, "")):
        resource = begin()
        if happened:
            happened(resource)
        refused_everywhere(resource, holder, wanted)


@test
def a_hold_is_void_from_its_deadline_in_the_very_step_that_finds_it_and_never_lives_again():
    for name in deeds(begin()):
        resource = begin()
        STORE.at(NOW + 999)
        check(deeds(resource)[name](ADA)[0] != "refused", f"{name} just before the deadline")
        STORE.at(NOW + 1000)
        resource.notes = False
        reply, changes = STORE.changed_by(lambda name=name, resource=resource: deeds(resource)[name](ADA))
        check_equal(reply[0::2], ["refused", "lease-expired", EPOCH, ""], name)
        check_equal(list(changes), [resource.lease.key], name)
        before, after = changes[resource.lease.key]
        check_equal(after, {**before, "v": "expired"}, name)
        STORE.at(NOW)
        check_equal(deeds(resource)[name](ADA)[2], "lease-expired", f"{name} after the clock went back")
        check_equal(STORE.unchanged_by(lambda name=name, resource=resource: deeds(resource)[name](ADA))[2], "lease-expired")
        check_equal(resource.lease.renew()[::2], ["lost", "expired"], f"{name}: the lease service frees it")
        check_equal(resource.lease.acquire("id-b", "hold-bbbbbbb", "bob")[2], 2, name)


# -- shared holds and permits

MANY = {"shared": {"mode": "shared"}, "permits": {"mode": "permits", "permits": 3}}


def join(lease, name, ttl=1000, **terms):
    """The holder of one of many: ann, ben, ..."""
    reply = lease.acquire(f"id-{name}", f"hold-{name}".ljust(12, "-"), name, ttl, **terms)
    check_equal(reply[0], "granted", name)
    return Holder(reply[2], EPOCH, f"hold-{name}".ljust(12, "-"), terms["mode"])


def begin_many(kind="shared", **terms):
    """A lease that ann holds with token 1 and ben with token 2, and a resource under it."""
    STORE.begin(NOW)
    lease = Lease(STORE, "orders:42")
    ann, ben = (join(lease, name, **MANY[kind], **terms) for name in ("ann", "ben"))
    return Resource(lease, "/a"), ann, ben


def as_if(holder, **changes):
    """The same with a header that says something else."""
    return Holder(**{"token": holder.token, "epoch": holder.epoch, "hold": holder.hold, "mode": holder.mode, **changes})


@test
def one_of_many_may_read_and_do_nothing_else_whatever_mode_its_header_states():
    for kind in MANY:
        resource, ann, ben = begin_many(kind)
        for holder in (ann, ben, as_if(ann, mode="exclusive"), as_if(ben, mode="exclusive")):
            for name in ("write", "remove", "check"):
                refused(resource, lambda name=name, holder=holder, resource=resource: deeds(resource)[name](holder),
                        ["wrong-mode", 2, EPOCH, 0, ""], f"{kind} {name}")
        for holder in (ann, ben, as_if(ann, mode="exclusive")):
            check_equal(resource.read_fenced(holder)[0], "missing", kind)


@test
def an_exclusive_hold_writes_whatever_mode_its_header_states():
    for mode in ("exclusive", *MANY):
        resource = begin()
        check_equal([deed(as_if(ADA, mode=mode))[0] for deed in deeds(resource).values()],
                    ["written", "removed", "missing", "accepted"], mode)


@test
def a_read_of_one_of_many_raises_the_mark_and_never_lowers_it():
    for kind in MANY:
        resource, ann, ben = begin_many(kind)
        check_equal(resource.read_fenced(ann)[2], 1)
        check_equal(resource.mark()[2:5], [1, EPOCH, 2])
        check_equal(resource.read_fenced(ben)[2], 2)
        reply = STORE.unchanged_by(lambda resource=resource, ann=ann: resource.read_fenced(ann))
        check_equal((reply[2], resource.mark()[2:5]), (2, [2, EPOCH, 2]), "a later one fences nobody who shares with it")


@test
def one_of_many_whose_hold_is_over_is_stale_though_nobody_came_after_it():
    ways = {"released, and another holds": lambda lease: [lease.release("id-ben")],
            "released, and nobody holds": lambda lease: [lease.release("id-ann"), lease.release("id-ben")],
            "expired, and nobody has seen it": lambda _: [STORE.at(NOW + 1000)],
            "expired": lambda lease: [STORE.at(NOW + 1000), lease.look()],
            "forgotten": lambda lease: [STORE.at(NOW + 5000), *(lease.sweep() for _ in range(3)), STORE.at(NOW + 9000), lease.sweep()]}
    for kind in MANY:
        for way, end in ways.items():
            resource, _, ben = begin_many(kind)
            end(resource.lease)
            for name in deeds(resource):
                check_equal(deeds(resource)[name](ben)[::2][:2], ["refused", "stale-token"], f"{kind} {way}: {name}")
        check_equal(resource.lease.field("s"), None, "it was not forgotten")


@test
def a_number_under_the_name_of_another_of_many_was_never_issued():
    resource, ann, ben = begin_many()
    for holder in (as_if(ann, token=2), as_if(ben, token=1), as_if(ann, epoch=EPOCH - 1), as_if(ben, hold="hold-xxxxxxx"),
                   as_if(ann, token=3), as_if(ann, epoch=EPOCH + 1)):
        refused(resource, lambda holder=holder: resource.read_fenced(holder), ["unissued-token", 2, EPOCH, 0, ""])
    refused(resource, lambda: resource.write(as_if(ann, token=3)), ["wrong-mode", 2, EPOCH, 0, ""], "that comes first")
    STORE.redis("HSET", resource.lease.stripe, "counter", 50)
    refused(resource, lambda: resource.read_fenced(as_if(ann, token=40)), ["unissued-token", 2, EPOCH, 0, ""])


@test
def one_of_many_is_void_from_its_deadline_in_the_very_step_that_finds_it():
    for name in deeds(begin()):
        resource, ann, _ = begin_many()
        resource.notes = False
        resource.lease.renew("id-ben", 5000)
        STORE.at(NOW + 1000)
        hold = f"{resource.lease.stripe}:h:{resource.lease.name}/id-ann"
        reply, changes = STORE.changed_by(lambda name=name, resource=resource, ann=ann: deeds(resource)[name](ann))
        check_equal(reply[2], "stale-token", name)
        check_equal(list(changes), [hold], name)
        check_equal(changes[hold][1], {**changes[hold][0], "v": "expired"}, name)
        STORE.at(NOW)
        check_equal(resource.read_fenced(ann)[2], "stale-token", f"{name}: after the clock went back")
        check_equal(resource.lease.renew("id-ann")[0], "lost", name)


@test
def a_name_that_leads_to_no_hold_or_to_another_lets_nobody_in():
    for field, value in ((None, None), ("h", "hold-xxxxxxx")):
        resource, ann, _ = begin_many()
        if field:
            resource.lease.set("id-ann", **{field: value})
        else:
            STORE.redis("HDEL", resource.lease.stripe, record_field(resource.lease.name, "id-ann"))
        refused_everywhere(resource, ann, ["stale-token", 2, EPOCH, 0, ""])


# -- those who wait

def queue_up(lease, lease_id, hold="hold-bbbbbbb"):
    """A waiter at a desk that lives; the holder that it will be when it is granted token 2."""
    desk = f"{lease.stripe}:d:D1"
    desk_says(STORE, desk, "open")
    check_equal(lease.acquire(lease_id, hold, lease_id, desk=desk, wid="1")[0], "queued", lease_id)
    return Holder(2, hold=hold)


@test
def a_lease_that_somebody_waits_for_but_nobody_ever_held_is_like_one_that_is_not_known():
    for mode, wanted in (("exclusive", "lease-expired"), ("shared", "stale-token")):
        STORE.begin(NOW)
        resource = Resource(Lease(STORE, "orders:42"), "/a")
        resource.lease.set(s="none", t=0, e=EPOCH, d=NOW + 5000, w=1)
        STORE.redis("HSET", resource.lease.stripe, "counter", 50)
        for name, deed in deeds(resource).items():
            reply = STORE.unchanged_by(lambda deed=deed, mode=mode: deed(Holder(40, mode=mode)))
            check_equal([reply[0]] + reply[2:], ["refused", wanted, 0, 0, 0, ""], name)
        refused_everywhere(resource, Holder(51), ["unissued-token", 0, 0, 0, ""])


@test
def a_grant_that_is_handed_on_fences_the_one_before_also_when_nobody_claims_it():
    resource = begin()
    bob = queue_up(resource.lease, "bob")
    check_equal(resource.lease.release()[0], "released")
    check(resource.lease.field("c"), "it was not handed on")
    refused_everywhere(resource, ADA, ["stale-token", 2, EPOCH, 0, "bob"])
    refused_everywhere(resource, as_if(bob, hold="hold-aaaaaaa"), ["unissued-token", 2, EPOCH, 0, "bob"])
    check_equal(resource.lease.run("claim", "bob", bob.hold, "grant")[:3:2], ["claimed", 2])
    check_equal(resource.write(bob)[0], "written")
    resource = begin()
    bob = queue_up(resource.lease, "bob")
    resource.lease.release()
    STORE.at(NOW + 3000)
    for name, deed in deeds(resource).items():
        check_equal((deed(bob)[2], deed(ADA)[2]), ("lease-expired", "stale-token"), name)
    check_equal(resource.lease.field("v"), "returned")
    check_equal(resource.lease.run("claim", "bob", bob.hold, "grant")[0], "lost")


# -- refusals in the history

@test
def a_refusal_is_noted_once_a_second_with_its_reason_and_changes_nothing_else():
    for name in deeds(begin()):
        resource = begin()
        resource.lease.renew(ttl=60000)

        def deed(name=name, resource=resource):
            return deeds(resource)[name](Holder(9))
        _, changes = STORE.changed_by(deed)
        check_equal(list(changes), [noted_in(resource.lease)], name)
        for moment in (0, 1, 999):
            STORE.at(NOW + moment)
            STORE.unchanged_by(deed)
        STORE.at(NOW + 1000)
        check_equal(list(STORE.changed_by(deed)[1]), [noted_in(resource.lease)], name)
        check_equal(noted(resource.lease), [(9, "unissued-token", NOW), (9, "unissued-token", NOW + 1000)], name)
    resource, ann, ben = begin_many()
    for step, (deed, holder) in enumerate(((resource.write, ann), (resource.read_fenced, as_if(ann, token=2)), (resource.check, ben))):
        STORE.at(NOW + step * 1000)
        resource.lease.renew("id-ann", 60000), resource.lease.renew("id-ben", 60000)
        deed(holder)
    check_equal([item[:2] for item in noted(resource.lease)], [(1, "wrong-mode"), (2, "unissued-token"), (2, "wrong-mode")])
    STORE.begin(NOW)
    STORE.redis("HSET", Lease(STORE, "orders:42").stripe, "counter", 50)
    for name, deed in deeds(Resource(Lease(STORE, "orders:42"), "/a")).items():
        for token in (40, 60):
            check_equal(STORE.unchanged_by(lambda deed=deed, token=token: deed(Holder(token)))[0], "refused", name)


@test
def a_refusal_is_noted_with_whose_token_it_was_and_what_was_asked_of_whom():
    def said(deed, token):
        deed()
        item = text(STORE.redis("LINDEX", noted_in(resource.lease), -1)).split("\t")
        check_equal(item[2], str(token))
        return item[3], item[5]
    behind = "\x1fggate-1\x1fi0a-1\x1fporders:42/a"
    resource = begin()
    resource.lease.renew(ttl=5000)
    check_equal(said(lambda: resource.check(as_if(ADA, hold="hold-bbbbbbb")), 1), ("", f"unissued-token\x1fc1{behind}"))
    STORE.at(NOW + 5000)
    check_equal(said(lambda: resource.check(ADA), 1), ("ada", f"lease-expired\x1fc1{behind}"), "nobody has ended it yet")
    with STORE.asking("ann"):
        resource.lease.acquire("id-b", "hold-bbbbbbb", "bob")
    resource.lease.release("id-b")
    resource.lease.acquire("id-c", "hold-ccccccc", "cyd")
    for second, (holder, token) in enumerate(((ADA, 1), (Holder(2, hold="hold-bbbbbbb"), 2)), 6):
        STORE.at(NOW + second * 1000)
        check_equal(said(lambda holder=holder: resource.write(holder), token),
                    (("ada", "bob\x1fann")[token - 1], f"stale-token\x1fc3{behind}"), "from the list")
    resource, ann, _ = begin_many()
    check_equal(said(lambda: resource.write(ann), 1)[0], "ann", "one of many")
    resource.notes = False
    STORE.at(NOW + 1500)
    reply = resource.write(ann)
    check_equal([STORE.changed_by(lambda: resource.note(ann, reply, asked=""))[0][0] for _ in range(1)], ["noted"])
    check(text(STORE.redis("LINDEX", noted_in(resource.lease), -1)).endswith("\x1fi0a-1"), "nothing was asked for by name")
    STORE.unchanged_by(lambda: resource.note(ann, reply))
    check_equal(resource.write(ann)[7:], [], "not within a second")


@test
def what_is_not_noted_asks_for_no_note():
    for mode, wanted in (("all", ["note"]), ("ends", []), ("off", [])):
        resource = begin()
        resource.notes = False
        STORE.redis("HSET", resource.lease.stripe, "listen", f"0 {mode} {EPOCH}.1")
        check_equal(resource.check(Holder(9))[7:], wanted, mode)


# -- the mark

@test
def the_mark_moves_with_what_is_let_through_and_with_nothing_else():
    resource = begin()
    check_equal(STORE.unchanged_by(resource.mark), ["mark", 1, 0, 0, 1, 0, 0])
    check_equal(Resource(Lease(STORE, "nobody")).mark()[2:], [0, 0, 0, 0, 0])
    resource.read()
    resource.write(Holder(2))
    check_equal(resource.mark()[2:5], [0, 0, 1])
    check_equal(resource.remove(ADA)[0], "missing")
    check_equal(resource.write(ADA, if_match='"x"')[0], "mismatch")
    check_equal(resource.mark()[2:5], [0, 0, 1])
    resource.write(ADA)
    check_equal(resource.mark()[2:5], [1, EPOCH, 1])
    bob = bob_takes_over(resource)
    check_equal(resource.mark()[2:5], [1, EPOCH, 2])
    resource.write(ADA)
    check_equal(resource.mark()[2:5], [1, EPOCH, 2])
    accepted = ["accepted", resource.lease.seq() + 1, 2]
    check_equal((resource.check(bob), STORE.unchanged_by(lambda: resource.check(bob))), (accepted, accepted))
    check_equal(resource.mark()[2:5], [2, EPOCH, 2])


# -- write and remove

@test
def write_creates_and_then_replaces_with_a_new_etag():
    resource = begin()
    reply, changes = STORE.changed_by(lambda: resource.write(ADA, "tag-1", b"one", kind="text/plain", encoding="gzip"))
    check_equal(reply, ["written", 2, 201, "tag-1", 1])
    check_equal(changes[resource.key][1], {"z": "here", "e": "tag-1", "v": "one", "c": "text/plain", "n": "gzip"})
    reply, changes = STORE.changed_by(lambda: resource.write(ADA, "tag-2", b"", kind="a/b"))
    check_equal(reply, ["written", 3, 204, "tag-2", 1])
    check_equal(changes[resource.key][1], {"z": "here", "e": "tag-2", "v": "", "c": "a/b"})
    _, changes = STORE.changed_by(lambda: resource.write(ADA, "tag-3", b""))
    check_equal(set(changes) & {resource.lease.stripe + ":g", resource.lease.stripe + ":u"}, set(), "of the same size: no count")
    body, whole = bytes(range(256)) * 4096, Resource(resource.lease, "")
    resource.write(ADA, body=body), whole.write(ADA, "tag-w", b"w")
    check_equal((STORE.redis("HGET", resource.key, "v"), resource.read()[6]), (body, body), "every byte is kept as it came")
    check_equal((whole.read()[6], Resource(resource.lease, "/b").read()[0]), ("w", "missing"), "resources of one lease are apart")


@test
def a_version_that_another_release_wrote_is_not_read_and_not_written_over():
    resource = begin()
    resource.write(ADA)
    STORE.redis("HSET", resource.key, "z", STORE.redis("HGET", resource.key, "z") + b"\nmore")
    version = STORE.redis("HGETALL", resource.key)
    for deed in (resource.write, resource.remove, resource.read_fenced):
        check_equal(deed(ADA), ["not-ours"])
    check_equal((resource.read(), STORE.redis("HGETALL", resource.key)), (["not-ours"], version))


@test
def preconditions_are_kept():
    some, missing = '"tag-1"', '"tag-9"'
    table = [  # is there one, If-Match, If-None-Match, is it let through
        (True, some, "", True), (True, missing, "", False), (True, "*", "", True),
        (True, '"a", "tag-1" , "b"', "", True), (True, 'W/"tag-1"', "", False), (True, 'W/"tag-1", "tag-1"', "", True),
        (True, '"tag-1x", "xtag-1"', "", False),
        (True, "", some, False), (True, "", missing, True), (True, "", "*", False), (True, "", 'W/"tag-1"', False),
        (True, some, missing, True), (True, some, some, False), (True, missing, missing, False),
        (False, some, "", False), (False, "*", "", False), (False, "", "*", True), (False, "", some, True),
    ]
    for there, if_match, if_none_match, passes in table:
        for name in ("write", "remove"):
            resource = begin()
            if there:
                resource.write(ADA, "tag-1")
            deed = getattr(resource, name)
            what = f"{name} there={there} If-Match={if_match} If-None-Match={if_none_match}"
            if passes:
                wanted = "written" if name == "write" else "removed" if there else "missing"
                check_equal(deed(ADA, if_match=if_match, if_none_match=if_none_match)[0], wanted, what)
            else:
                reply = STORE.unchanged_by(lambda deed=deed, m=if_match, n=if_none_match:
                                           deed(ADA, if_match=m, if_none_match=n))
                check_equal([reply[0]] + reply[2:], ["mismatch", "tag-1" if there else "", 1 if there else 0], what)


# -- the same request again

@test
def a_deletion_with_a_key_is_remembered_for_a_while_and_a_write_after_it_is_not_forgotten():
    resource = begin()
    resource.write(ADA, "tag-1")
    check_equal(resource.remove(ADA, key="key-1", digest="digest-1"), ["removed", 3, 1])
    check_equal(STORE.dump()[resource.lease.gone], {resource.name: NOW + REMEMBER_MS})
    check_equal(resource.read(), ["missing", 3, 1])

    def again():
        return resource.remove(ADA, key="key-1", digest="digest-1")
    check_equal(STORE.unchanged_by(again), ["repeated", 3, 204, "", 1])
    check_equal(STORE.unchanged_by(lambda: resource.remove(ADA)), ["missing", 3, 1])
    STORE.at(NOW + REMEMBER_MS - 1)
    check_equal(STORE.unchanged_by(resource.forget), ["forgot", 3, 0])
    resource.lease.renew(ttl=5000)
    STORE.at(NOW + REMEMBER_MS)
    check_equal(resource.forget(), ["forgot", 5, 1])
    check(not STORE.redis("EXISTS", resource.key, resource.lease.gone), "something is left")
    check_equal(again()[0], "missing")
    resource = begin()
    resource.write(ADA, "tag-1")
    resource.remove(ADA, key="key-1", digest="digest-1")
    check_equal(resource.write(ADA, "tag-2", if_none_match="*")[2:], [201, "tag-2", 1])
    check(not STORE.redis("EXISTS", resource.lease.gone), "its deletion is still in the index")
    STORE.at(NOW + REMEMBER_MS)
    resource.forget()
    check_equal(resource.read()[0], "found")


@test
def forget_takes_no_more_than_it_was_told_and_leaves_what_is_there():
    resource = begin()
    for rest in "abcde":
        one = Resource(resource.lease, "/" + rest)
        one.write(ADA)
        one.remove(ADA, key="key-" + rest, digest="d")
    STORE.redis("ZADD", resource.lease.gone, NOW, resource.lease.name + "/z")
    Resource(resource.lease, "/z").write(ADA)
    STORE.redis("ZADD", resource.lease.gone, NOW, resource.lease.name + "/z")
    STORE.at(NOW + REMEMBER_MS)
    check_equal([resource.forget(4)[2], resource.forget(4)[2], resource.forget(4)[2]], [4, 2, 0])
    check_equal(Resource(resource.lease, "/z").read()[0], "found")


# -- reading

@test
def a_read_that_has_this_version_already_is_told_so():
    resource = begin()
    resource.write(ADA, "tag-1")
    for tags in ('"tag-1"', "*", '"a", "tag-1"', 'W/"tag-1"'):
        check_equal(resource.read(tags), ["unchanged", 2, 1, "tag-1"], tags)
        check_equal(resource.read_fenced(ADA, tags), ["unchanged", 2, 1, "tag-1"], tags)
    for tags in ('"tag-2"', '"tag-1x"', '""'):
        check_equal(resource.read(tags)[0], "found", tags)
    resource.remove(ADA)
    check_equal(resource.read("*")[0], "missing")


main()
