#!/usr/bin/python3
"""Redis is full: what keeps, gives back, admits, gates or sweeps runs all the same; what takes more is refused, whole."""

from intents import Gateway, close, grant, script
from lua_test import (EPOCH, RECORD, REMEMBER_MS, Holder, Lease, RedisError, Resource, Store, check, check_equal,
                      check_in, main, test)
from members import Life, alone
from several import DESK, SECRET, SESSION_ID, All, Session, desk_lives, desk_says, hold_of, line_of, ring, wait

STORE, LIFE = Store(), Life()
NOW, ROOM = 1000000, 3 << 20
OTHER_ID = "t" * 22


class Full:
    """Of a store: a plain key of junk takes all that there is above what is there."""

    def __init__(self, store):
        self.store = store

    def __enter__(self):
        self.store.redis("SETRANGE", "test:junk", ROOM, "x")
        self.store.redis("CONFIG", "SET", "maxmemory", ROOM)

    def __exit__(self, *_):
        self.store.redis("CONFIG", "SET", "maxmemory", 0)
        self.store.redis("DEL", "test:junk")


def on_full(store, deed):
    """The first word of the reply; "OOM" when it was refused, and then nothing has changed."""
    before = store.dump()
    with Full(store):
        try:
            return deed()[0]
        except RedisError as error:
            told = str(error).split()[0]
    check_equal((told, store.dump()), ("OOM", before))
    return told


class Scene:
    """Holders, a session, somebody in line, a resource, open intents: one of each that the scripts are about."""

    def __init__(self):
        STORE.begin(NOW)
        desk_lives(STORE)
        self.plain, self.waited, self.guarded = Lease(STORE, "plain"), Lease(STORE, "waited"), Lease(STORE, "guarded")
        self.free, self.pair = Lease(STORE, "free"), All(STORE, "one", "two")
        self.writer = Holder(self.plain.acquire()[2])
        self.waited.acquire("id-x")
        wait(self.waited, "id-w")
        self.resource = Resource(self.plain, "/r")
        check_equal(self.resource.write(self.writer, key="key-1", digest="d")[0], "written")
        self.gateway, self.sender = Gateway(STORE), grant(self.guarded, 1)
        self.told = self.gateway.admit(self.guarded, self.sender)[3]
        check_equal(self.session("open", SECRET, "ada", 5000, "")[0], "opened")

    @staticmethod
    def session(what, *args, name=SESSION_ID):
        return Session(STORE, name).run(what, *args)

    def again(self):
        """An open intent that the store has lost."""
        STORE.redis("DEL", self.guarded.stripe + ":i")
        return self.gateway.again(self.guarded, self.told)

    def claim(self):
        self.waited.release("id-x")
        return self.waited.run("claim", "id-w", hold_of("id-w"), "grant")

    def beat(self):
        return [desk_says(STORE, self.plain.stripe + ":d:D9", "open")]

    def swept(self):
        STORE.redis("CONFIG", "SET", "maxmemory", 0)
        STORE.at(NOW + 2000)
        STORE.redis("CONFIG", "SET", "maxmemory", ROOM)
        return STORE.call("lease/scripts/sweep.lua", self.plain.keys, 100, REMEMBER_MS,
                          "hold-off")

    def zero(self, name, *args):
        return STORE.call(script(name), ["pawl:{00}"], *args)


# What a script answers on a full Redis. Where it is "OOM" the service says store-full.
RUNS = {
    "renew": (lambda s: s.plain.renew(), "renewed"),
    "release": (lambda s: s.plain.release(), "released"),
    "release, handing on held off": (lambda s: s.waited.release("id-x", may="hold-off"), "released"),
    "release with a key": (lambda s: s.plain.release(key="key-2", digest="d"), "released"),
    "force_release": (lambda s: s.plain.run("force_release", "grant", "", "why"), "forced"),
    "claim": (lambda s: s.claim(), "claimed"),
    "handoff": (lambda s: s.waited.run("handoff", "hold-off"), "handed-on"),
    "leave": (lambda s: s.waited.run("leave", "id-w", hold_of("id-w"), "grant", "gone", 0), "left"),
    "inbox_heartbeat": (lambda s: s.beat(), "beats"),
    "look": (lambda s: s.plain.look(), "looked"),
    "session_renew": (lambda s: s.session("renew", SECRET), "renewed"),
    "session_end": (lambda s: s.session("end", SECRET, "grant", 100), "ended"),
    "sweep": (lambda s: s.swept(), "swept"),
    "refusal_note": (lambda s: s.resource.note(s.writer, ["refused", 1, "stale-token", 9]), "noted"),
    "remove": (lambda s: s.resource.remove(s.writer, key="key-3", digest="d"), "removed"),
    "read_fenced": (lambda s: s.resource.read_fenced(s.writer), "found"),
    "check": (lambda s: STORE.call(script("check"), [s.guarded.stripe, s.guarded.key], "guarded", s.sender.token,
                                   s.sender.epoch, s.sender.hold, "exclusive"), "accepted"),
    "a write of before, once more": (lambda s: s.resource.write(s.writer, key="key-1", digest="d"), "repeated"),
    "intent_close": (lambda s: close(STORE, ("close", s.guarded, s.told)), "closed"),
    "intent_close: unknown": (lambda s: close(STORE, ("unknown", s.guarded, s.told)), "closed"),
    "intent_promote": (lambda s: s.gateway.promote(s.guarded, s.sender, s.told), "sending"),
    "intent_check": (lambda s: s.gateway.check(s.guarded, s.sender, s.told), "sending"),
    "intent_read": (lambda s: s.gateway.read(s.guarded, s.sender), "accepted"),
    "intent_again": (lambda s: s.again(), "recorded"),
    "intent_takeover": (lambda s: Gateway(STORE, incarnation="life-2").takeover(s.guarded.stripe), "taken"),
    "unreported_dead": (lambda s: s.zero("unreported_dead", "gate-a", "", "lost", "life-0"), "dead"),
    "unreported_leave": (lambda s: s.zero("unreported_leave", "gate-a", "life-1", "", EPOCH, 0), "left"),
    "forget": (lambda s: STORE.call(script("forget"), [s.plain.stripe, s.plain.gone, s.plain.resources], 100), "forgot"),
    "acquire": (lambda s: s.free.acquire(), "OOM"),
    "acquire, and wait": (lambda s: s.plain.acquire("id-z", "hold-zzzzzzz", desk="d", wid="9"), "desk-gone"),
    "acquire once more": (lambda s: s.plain.acquire(), "replayed"),
    "acquire_all": (lambda s: s.pair.acquire(), "OOM"),
    "session_open": (lambda s: s.session("open", SECRET, "ada", 5000, "", name=OTHER_ID), "OOM"),
    "write": (lambda s: s.resource.write(s.writer, etag="tag-2"), "OOM"),
    "intent_admit": (lambda s: s.gateway.admit(s.guarded, s.sender), "OOM"),
}


@test
def what_keeps_and_gives_back_runs_on_a_full_redis_and_what_takes_more_is_refused_whole():
    for name, (deed, wanted) in RUNS.items():
        scene = Scene()
        check_equal(on_full(STORE, lambda: deed(scene)), wanted, name)  # noqa: B023 - called at once


# Those that have no flags: they take more, or show, and change nothing but by the way.
UNFLAGGED = {"acquire", "acquire_all", "session_open", "write", "intent_admit", "init_store",
             "line", "alarm", "due", "remembered", "ready", "read", "resource_list", "mark",
             "unreported_look", "gateway_look", "intent_given_up", "intent_list", "scan", "status",
             "use_look", "use_again", "stored_again", "overview", "overview_walk", "inspect", "refusal_find"}


@test
def of_every_script_it_was_decided_whether_it_runs_on_a_full_redis():
    check_equal(sorted(name for name, flags in STORE.flags.items() if flags is None), sorted(UNFLAGGED))


@test
def a_full_redis_is_gated_admitted_and_left():
    a = alone(LIFE)
    LIFE.restart()
    with Full(LIFE):
        check_equal((a.pulse(), a.admit()[0], a.pulse(), a.pulse()), ("gated", "admitted", "in", "in"))
        check(int(a.reply[11]) > ROOM and a.reply[12] == str(ROOM), f"{a.reply[11:]}")
        check_equal(a.leave(), "out")


@test
def renewals_and_refusals_do_not_fill_it_further():
    scene = Scene()
    stale = Holder(scene.writer.token, hold=scene.writer.hold)
    scene.plain.release()
    grant(scene.plain, 7)
    held = Holder(int(scene.plain.field("t")), hold=scene.plain.field("h"))
    check_equal(scene.resource.remove(stale)[0], "refused")
    sizes = lambda: [STORE.redis("MEMORY", "USAGE", key) for key in (scene.plain.key, scene.plain.due)]  # noqa: E731
    before = sizes()
    with Full(STORE):
        for _ in range(200):
            check_equal(scene.plain.renew("id-7")[0], "renewed")
            check_equal((scene.resource.remove(stale)[0], scene.resource.read_fenced(held)[0]), ("refused", "found"))
    check_equal((sizes(), STORE.redis("LLEN", scene.plain.refusals)), (before, 1))


@test
def a_list_notes_what_is_over_and_where_nothing_can_be_written_is_refused_and_not_told_without_the_lease():
    STORE.begin(NOW)
    lease = Lease(STORE, "shared")
    for lease_id, ttl in (("id-a", 500), ("id-b", 5000)):
        lease.acquire(lease_id, hold_of(lease_id), ttl=ttl, mode="shared")
    check_equal(on_full(STORE, lease.list), "listed")
    STORE.at(NOW + 500)
    STORE.redis("CONFIG", "SET", "min-replicas-to-write", 1)
    try:
        check(False, str(lease.list()))
    except RedisError as error:
        check_equal(str(error).split()[0], "NOREPLICAS")
    STORE.redis("CONFIG", "SET", "min-replicas-to-write", 0)
    with Full(STORE):
        check_equal([one[0] for one in lease.list()[3]], ["shared"])


@test
def what_is_over_is_noted_by_who_looks_and_read_also_where_nothing_can_be_written():
    looks = {"look": (lambda s: s.plain.look(), 2, "free"), "history": (lambda s: s.plain.run("history", "full"), 0, "history"),
             "session_look": (lambda s: s.session("look"), 2, "expired"), "list": (lambda s: s.plain.list(), 3, []),
             "session_list": (lambda s: STORE.call(script("session_list"), Session(STORE).keys[:2], "", REMEMBER_MS, 10, ""), 3, [])}
    for name, (deed, place, over) in looks.items():
        scene = Scene()
        said = deed(scene)
        STORE.redis("CONFIG", "SET", "min-replicas-to-write", 1)
        check_equal(deed(scene), said, name)
        STORE.redis("CONFIG", "SET", "min-replicas-to-write", 0)
        STORE.at(NOW + 600000)
        with Full(STORE):
            check_equal(deed(scene)[place], over, name)


@test
def on_a_full_store_nobody_new_gets_in_line_and_nobody_is_handed_a_lease():
    scene = Scene()
    check_equal(scene.plain.acquire("id-z", "hold-zzzzzzz", desk=DESK, wid="9", may="hold-off")[0], "queued", "not full")
    before = STORE.dump()
    for what, deed in (("held", lambda: scene.waited.acquire("id-y", "hold-yyyyyyy", desk=DESK, wid="8", may="full")),
                       ("free", lambda: scene.free.acquire(may="full")), ("all", lambda: scene.pair.acquire(may="full")),
                       ("one of all held", lambda: All(STORE, "free", "plain").acquire("id-y", desk=DESK, wid="7", may="full"))):
        check_equal((deed()[0], STORE.dump()), ("held-off", before), what)
    check_equal(scene.waited.acquire("id-w", "hold-again--", desk=DESK, wid="6", may="full")[0], "queued", "it waits already")
    pair = All(STORE, "plain", "waited")
    check_equal([pair.acquire("id-y", desk=DESK, wid=wid, may=may)[0] for wid, may in (("4", "grant"), ("5", "full"))], ["queued"] * 2)
    pair.leave("gone", "id-y")
    check_equal(scene.waited.release("id-x", may="full")[0], "released")
    check_equal((scene.waited.look(may="full")[2], line_of(scene.waited)), ("free", ["id-w"]))
    check_equal([scene.waited.acquire("id-w", "hold-again--", desk=DESK, wid="8", may="full")[0], scene.waited.acquire("id-w", may="full")[0],
                 scene.waited.acquire("id-z", desk=DESK, wid="9", may="full")[0]], ["queued", "held-off", "held-off"])
    STORE.at(NOW + 1000)
    desk_lives(STORE)
    check_in("waited", ring(STORE))
    check_equal(scene.waited.field("i"), "id-w", "there is room again")


@test
def who_finds_no_room_puts_off_nobody_who_is_about_to_be_handed_the_lease():
    scene = Scene()
    STORE.at(NOW + 1000)  # that of id-x is over
    desk_lives(STORE)
    check_equal(scene.waited.acquire("id-z", desk=DESK, wid="9", may="full")[0], "held-off")
    check_in("waited", ring(STORE))
    check_equal(scene.waited.field("i"), "id-w")


@test
def a_full_store_refuses_what_is_new_after_everything_else_was_said():
    scene = Scene()
    stale = Holder(scene.writer.token, hold="hold-other--")

    def write(holder, key="", full="full"):
        return STORE.call(script("write"), scene.resource.keys, *scene.resource.fence(holder), scene.resource.name, "", "", key,
                          "d" if key else "", "tag-9", "text/x", "", b"new", *([full] if full else []))[0]

    def admit(holder, kind, full="full"):
        return STORE.call(script("intent_admit"), [scene.guarded.stripe, scene.guarded.key],
                          *scene.gateway.arguments(scene.guarded, holder, kind, "h", "live", "w0.99"),
                          *([full] if full else []))[0]

    check_equal(STORE.unchanged_by(lambda: [write(scene.writer), 0]), ["full", 0])
    check_equal((write(stale), write(scene.writer, "key-1"), write(scene.writer, full="")), ("refused", "repeated", "written"))
    STORE.redis("HSET", RECORD, "routes", scene.gateway.routes)
    before = STORE.dump()
    check_equal([admit(scene.sender, kind) for kind in ("o", "o+", "c", "k", "a")], ["store-full"] * 5)
    check_equal(STORE.dump(), before)
    check_equal((admit(stale, "o"), admit(scene.sender, "o", full="")), ("refused", "sending"))


main()
