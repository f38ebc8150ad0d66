#!/usr/bin/python3
"""Every reply of every script in gateway/scripts."""

from lua_test import EPOCH, REMEMBER_MS, STRIPE_FIELDS, Holder, Lease, Resource, Store, check, check_equal, main, test

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


def refused_everywhere(resource, holder, wanted):
    """Every fenced script gives this refusal (without the sequence number) and changes nothing."""
    for name, deed in deeds(resource).items():
        reply = STORE.unchanged_by(lambda deed=deed: deed(holder))
        check_equal([reply[0]] + reply[2:], ["refused"] + wanted, name)


@test
def every_script_refuses_a_stripe_with_a_missing_field_and_creates_nothing():
    for field in STRIPE_FIELDS + ["all of it"]:
        resource = begin()
        resource.write(ADA)
        if field == "all of it":
            STORE.redis("DEL", resource.lease.stripe)
        else:
            STORE.redis("HDEL", resource.lease.stripe, field)
        before = STORE.dump()
        actions = {name: (lambda deed=deed: deed(ADA)) for name, deed in deeds(resource).items()}
        actions |= {"read": resource.read, "mark": resource.mark, "forget": resource.forget,
                    "ready": lambda: STORE.call("shared/record/scripts/ready.lua", [resource.lease.stripe])}
        for name, action in actions.items():
            check_equal(action(), ["not-ours"], f"{name} without {field}")
            check_equal(STORE.dump(), before, f"{name} without {field}")


@test
def ready_knows_our_store():
    resource = begin()
    check_equal(STORE.unchanged_by(lambda: STORE.call("shared/record/scripts/ready.lua", [resource.lease.stripe])), ["ours", 1])


# -- the fence

@test
def a_token_above_what_the_stripe_ever_granted_was_never_issued():
    resource = begin()
    refused_everywhere(resource, Holder(2), ["unissued-token", 1, EPOCH, 0, "ada"])
    refused_everywhere(resource, Holder(1, EPOCH + 1), ["unissued-token", 1, EPOCH, 0, "ada"])


@test
def a_token_above_what_the_lease_was_ever_granted_was_never_issued():
    resource = begin()
    STORE.redis("HSET", resource.lease.stripe, "counter", 50)
    refused_everywhere(resource, Holder(2), ["unissued-token", 1, EPOCH, 0, "ada"])


@test
def the_right_number_under_another_holds_name_was_never_issued():
    resource = begin()
    refused_everywhere(resource, Holder(1, hold="hold-xxxxxxx"), ["unissued-token", 1, EPOCH, 0, "ada"])


@test
def a_token_that_is_not_of_a_lease_that_was_ever_granted_is_of_no_live_hold():
    resource = begin()
    STORE.redis("HSET", resource.lease.stripe, "counter", 50)
    other = Resource(Lease(STORE, "orders:42"), "/a")
    STORE.redis("DEL", other.lease.key)
    refused_everywhere(other, Holder(40), ["lease-expired", 0, 0, 0, ""])
    refused_everywhere(other, Holder(51), ["unissued-token", 0, 0, 0, ""])


@test
def an_older_token_is_stale_while_the_newer_hold_lives_and_after_it():
    resource = begin()
    bob = bob_takes_over(resource)
    refused_everywhere(resource, ADA, ["stale-token", 2, EPOCH, 0, "bob"])
    resource.lease.release("id-b")
    refused_everywhere(resource, ADA, ["stale-token", 2, EPOCH, 0, ""])
    refused_everywhere(resource, bob, ["lease-expired", 2, EPOCH, 0, ""])


@test
def an_older_epoch_is_stale_whatever_its_number():
    resource = begin()
    refused_everywhere(resource, Holder(900, EPOCH - 1), ["stale-token", 1, EPOCH, 0, "ada"])


@test
def stale_comes_before_a_wrong_holds_name():
    resource = begin()
    bob_takes_over(resource)
    refused_everywhere(resource, Holder(1, hold="hold-xxxxxxx"), ["stale-token", 2, EPOCH, 0, "bob"])


@test
def the_last_token_of_a_hold_that_is_over_is_expired():
    for how in ("released", "expired"):
        resource = begin()
        if how == "released":
            resource.lease.release()
        else:
            STORE.at(NOW + 1000)
            resource.lease.look()  # ends it
        refused_everywhere(resource, ADA, ["lease-expired", 1, EPOCH, 0, ""])


@test
def the_hold_ends_at_its_deadline_in_the_very_step_that_finds_it_and_never_lives_again():
    for name in deeds(begin()):
        resource = begin()
        STORE.at(NOW + 999)
        check(deeds(resource)[name](ADA)[0] != "refused", f"{name} just before the deadline")
        STORE.at(NOW + 1000)
        reply, changes = STORE.changed_by(lambda name=name, resource=resource: deeds(resource)[name](ADA))
        check_equal(reply[0::2], ["refused", "lease-expired", EPOCH, ""], name)
        check_equal(sorted(changes), sorted([resource.lease.key, resource.lease.due]), name)
        check_equal(resource.lease.field("s"), "expired", name)
        STORE.at(NOW)
        check_equal(deeds(resource)[name](ADA)[2], "lease-expired", f"{name} after the clock went back")


@test
def the_stripes_clock_offset_counts_at_the_gate_too():
    resource = begin()
    STORE.redis("HSET", resource.lease.stripe, "clock", 1000)
    check_equal(resource.write(ADA)[2], "lease-expired")


# -- the mark

@test
def the_mark_moves_with_what_is_let_through_and_with_nothing_else():
    resource = begin()
    check_equal(STORE.unchanged_by(resource.mark), ["mark", 1, 0, 0, 1])
    resource.read()
    resource.write(Holder(2))
    check_equal(resource.mark()[2:], [0, 0, 1])
    check_equal(resource.remove(ADA)[0], "missing")
    check_equal(resource.write(ADA, if_match='"x"')[0], "mismatch")
    check_equal(resource.mark()[2:], [0, 0, 1])
    resource.write(ADA)
    check_equal(resource.mark()[2:], [1, EPOCH, 1])
    bob = bob_takes_over(resource)
    check_equal(resource.mark()[2:], [1, EPOCH, 2])
    resource.write(ADA)
    check_equal(resource.mark()[2:], [1, EPOCH, 2])
    resource.check(bob)
    check_equal(resource.mark()[2:], [2, EPOCH, 2])


@test
def each_deed_moves_the_mark_in_its_own_step():
    for name in deeds(begin()):
        resource = begin()
        if name == "remove":
            resource.write(ADA)
            resource = Resource(resource.lease, "/a")
            STORE.redis("HDEL", resource.lease.key, "k", "p")
        reply, changes = STORE.changed_by(lambda name=name, resource=resource: deeds(resource)[name](ADA))
        check(reply[0] != "refused", f"{name}: {reply}")
        after = changes[resource.lease.key][1]
        check_equal((after["k"], after["p"]), ("1", str(EPOCH)), name)


@test
def the_mark_of_a_lease_that_is_not_known_is_nothing():
    STORE.begin(NOW)
    check_equal(Resource(Lease(STORE, "nobody")).mark(), ["mark", 0, 0, 0, 0])


@test
def check_lets_the_live_holder_pass_and_changes_only_the_mark():
    resource = begin()
    check_equal(resource.check(ADA), ["accepted", 2, 1])
    check_equal(STORE.unchanged_by(lambda: resource.check(ADA)), ["accepted", 2, 1])


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


@test
def every_byte_is_kept_as_it_came():
    resource = begin()
    body = bytes(range(256)) * 4096
    resource.write(ADA, body=body)
    check_equal(STORE.redis("HGET", resource.key, "v"), body)
    check_equal(resource.read()[6], body)


@test
def remove_deletes_and_leaves_nothing_behind():
    resource = begin()
    resource.write(ADA)
    reply, changes = STORE.changed_by(lambda: resource.remove(ADA))
    check_equal(reply, ["removed", 3, 1])
    check_equal(changes, {resource.key: (changes[resource.key][0], None)})
    check_equal(STORE.unchanged_by(lambda: resource.remove(ADA)), ["missing", 3, 1])


@test
def resources_of_one_lease_are_apart():
    resource = begin()
    other, whole = Resource(resource.lease, "/b"), Resource(resource.lease, "")
    resource.write(ADA, "tag-a", b"a")
    whole.write(ADA, "tag-w", b"w")
    check_equal(other.read()[0], "missing")
    check_equal([resource.read()[6], whole.read()[6]], ["a", "w"])


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
def a_write_with_a_key_is_remembered_with_the_version():
    resource = begin()
    _, changes = STORE.changed_by(lambda: resource.write(ADA, "tag-1", key="key-1", digest="digest-1"))
    after = changes[resource.key][1]
    check_equal({name: after[name] for name in "kqatph"},
                {"k": "key-1", "q": "digest-1", "a": "201", "t": "1", "p": str(EPOCH), "h": "hold-aaaaaaa"})


@test
def a_write_that_comes_again_gets_its_first_answer_and_changes_nothing():
    resource = begin()
    resource.write(ADA, "tag-0")
    check_equal(resource.write(ADA, "tag-1", key="key-1", digest="digest-1")[2:], [204, "tag-1", 1])

    def again():
        return resource.write(ADA, "tag-2", key="key-1", digest="digest-1", if_none_match="*")
    check_equal(STORE.unchanged_by(again)[:1] + again()[2:], ["repeated", 204, "tag-1", 1])
    resource.lease.release()
    check_equal(STORE.unchanged_by(again)[0], "repeated")
    bob_takes_over(resource)
    check_equal(STORE.unchanged_by(again)[0], "repeated")


@test
def a_write_that_comes_again_after_a_newer_version_meets_the_fence():
    resource = begin()
    resource.write(ADA, "tag-1", key="key-1", digest="digest-1")
    bob = bob_takes_over(resource)
    resource.write(bob, "tag-2")
    check_equal(resource.write(ADA, "tag-3", key="key-1", digest="digest-1")[2], "stale-token")
    check_equal(resource.read()[3], "tag-2")


@test
def the_same_key_from_a_token_that_did_not_write_meets_the_fence_first():
    resource = begin()
    resource.write(ADA, "tag-1", key="key-1", digest="digest-1")
    for holder in (Holder(1, hold="hold-xxxxxxx"), Holder(2), Holder(1, EPOCH - 1)):
        reply = STORE.unchanged_by(lambda holder=holder: resource.write(holder, "tag-2", key="key-1", digest="digest-1"))
        check_equal(reply[0], "refused")


@test
def the_next_holder_with_the_same_key_and_request_is_told_that_it_is_done():
    resource = begin()
    resource.write(ADA, "tag-1", key="key-1", digest="digest-1")
    bob = bob_takes_over(resource)
    reply = STORE.unchanged_by(lambda: resource.write(bob, "tag-2", key="key-1", digest="digest-1"))
    check_equal(reply, ["repeated", 3, 201, "tag-1", 1])


@test
def a_key_that_comes_with_another_request_is_refused_but_not_before_the_fence():
    resource = begin()
    resource.write(ADA, "tag-1", key="key-1", digest="digest-1")
    check_equal(STORE.unchanged_by(lambda: resource.write(ADA, "tag-2", key="key-1", digest="digest-2")),
                ["key-reused", 2, 1])
    check_equal(STORE.unchanged_by(lambda: resource.remove(ADA, key="key-1", digest="digest-2")), ["key-reused", 2, 1])
    check_equal(resource.write(Holder(2), "tag-2", key="key-1", digest="digest-2")[2], "unissued-token")
    check_equal(resource.write(ADA, "tag-2", key="key-2", digest="digest-2", if_match='"tag-1"')[0], "written")


@test
def a_deletion_with_a_key_is_remembered_for_a_while():
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


@test
def a_write_after_a_remembered_deletion_creates_anew_and_is_not_forgotten():
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
def read_shows_a_resource_to_anybody_and_changes_nothing():
    resource = begin()
    check_equal(STORE.unchanged_by(resource.read), ["missing", 1, 0])
    resource.write(ADA, "tag-1", b"one", kind="text/plain", encoding="gzip")
    check_equal(STORE.unchanged_by(resource.read), ["found", 2, 1, "tag-1", "text/plain", "gzip", "one"])
    resource.write(ADA, "tag-2", b"two")
    check_equal(STORE.unchanged_by(resource.read)[5], "")


@test
def read_fenced_shows_it_to_the_live_holder_and_fences_off_older_writes():
    resource = begin()
    resource.write(ADA, "tag-1", b"one")
    bob = bob_takes_over(resource)
    check_equal(resource.read_fenced(bob), ["found", 4, 2, "tag-1", "text/x", "", "one"])
    check_equal(resource.mark()[2], 2)
    check_equal(resource.write(ADA)[2], "stale-token")
    check_equal(Resource(resource.lease, "/none").read_fenced(bob), ["missing", 4, 2])


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
