#!/usr/bin/python3
"""What happened to a lease, and what happens to it: the history, and streams of events without a gap."""

import json
import re
import socket
import time

from world import BUILD, Daemon, World, check, check_equal, check_in, main, of_time, run_daemon, test, test_in, wait_until
from world.asking import path
from world.client import Answer
from world.wait import DEADLINE_S
from world.waiting import Waiter

WORLD = World("--log-format", "json")
TOLD_MS = 100  # a loss is told to a holder that listens within this
FLOOD = "for n = ARGV[2], ARGV[3] do redis.call('PUBLISH', ARGV[1], '00 1.' .. n .. '.1\trefused\t1\t\t5\t' .. ARGV[4]) end"


# -- clients

class Ended(Exception):
    """The stream has ended."""


class Stream:
    """A client of GET /v1/events; head: its answer, held against the contract (without the body)."""

    def __init__(self, query="", daemon=None, receive_bytes=None, **headers):
        port = (daemon or WORLD.lease_daemon).port
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(DEADLINE_S)
        self.socket.connect(("127.0.0.1", port))
        self.file, self.text, self.pieces = self.socket.makefile("rb"), b"", 0
        fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
        target = "/v1/events" + query
        self.socket.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n".encode()
                            + b"".join(f"{name}: {value}\r\n".encode() for name, value in fields) + b"\r\n")
        status = int(self.file.readline().split()[1])
        lines = iter(lambda: self.file.readline().decode().rstrip("\r\n"), "")
        pairs = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        self.chunked = ("Transfer-Encoding", "chunked") in pairs
        length = int(dict(pairs).get("Content-Length", 0))
        self.head = Answer(status, [one for one in pairs if one[0] != "Transfer-Encoding"], self.file.read(length))
        World.contract.hold("lease", "GET", target, fields, self.head)
        self.ndjson = (self.head.header("Content-Type") or "") == "application/x-ndjson"
        self.last, self.lines = None, []  # as a client of SSE keeps it; who waits
        if status == 200:
            check(self.chunked, self.head)
            self.first = self.block()  # the first bytes: it listens

    def _more(self):
        size = self.file.readline()
        if size in (b"", b"0\r\n"):
            raise Ended
        self.text += self.file.read(int(size, 16) + 2)[:-2]
        self.pieces += 1

    def block(self):
        """The next block of SSE, or line of NDJSON, without its end."""
        end = b"\n" if self.ndjson else b"\n\n"
        while end not in self.text:
            self._more()
        block, self.text = self.text.split(end, 1)
        for line in block.decode().split("\n"):
            if line.startswith("id: "):
                self.last = line[4:]
        return block.decode()

    def item(self):
        """The next event."""
        while True:
            block = self.block()
            if self.ndjson and block:
                return held(json.loads(block))
            if block.startswith("event: line\n"):
                self.lines.append(held_line(json.loads(block.split("\ndata: ")[1])))
            elif not self.ndjson and "data: " in block:
                lines = re.fullmatch(r"id: ([^\n]*)\nevent: ([^\n]*)\ndata: ([^\n]*)", block)
                item = held(json.loads(lines[3]))
                check_equal((item["id"], item["type"]), (lines[1], lines[2]))
                return item

    def line(self):
        """The next time it is told who waits: their holders; and when, by the store's time."""
        while not self.lines:
            block = self.block()
            if self.ndjson and '"type":"line"' in block:
                self.lines.append(held_line(json.loads(block)))
            elif block.startswith("event: line\n"):
                self.lines.append(held_line(json.loads(block.split("\ndata: ")[1])))
        told = self.lines.pop(0)
        check_equal(told["waiting"], len(told["line"]))
        return [one["holder"] for one in told["line"]], told["at_ms"]

    def items(self, count):
        return [self.item() for _ in range(count)]

    def wait_end(self):
        """Whatever else comes is thrown away; the last of it."""
        block = None
        try:
            while True:
                block = self.block()
        except Ended:
            return block

    def close(self):
        self.file.close()
        self.socket.close()


def held(item):
    """Against the contract."""
    schema = World.contract.document["components"]["schemas"]["history-item"]
    World.contract._hold_schema("event", schema, item)  # pylint: disable=protected-access
    return item


def held_line(item):
    check_equal([item[member] for member in ("id", "type", "token", "holder", "reason")], ["", "line", 0, "", ""])
    check(item["lease"] and item["at_ms"] > 0, item)
    schema = World.contract.document["components"]["schemas"]["line"]
    World.contract._hold_schema("event", schema, item["line"])  # pylint: disable=protected-access
    return item


def history(name, client=None):
    return (client or WORLD.lease)("GET", path(name) + "/history").json["items"]


def history_now(name):
    return WORLD.lease("GET", path(name) + "/history").json["now_ms"]


def kinds(items):
    return [item["type"] for item in items]


def refused(stream, status, code):
    check_equal((stream.head.status, stream.head.code), (status, code), repr(stream.head))


def force(name, **ask):
    check_equal(WORLD.lease("POST", path(name) + "/force-release", body=ask).status, 200)


def in_and_out(name, times=1, **ask):
    for _ in range(times):
        WORLD.release(name, WORLD.acquire(name, **ask))


def listeners(name):
    """How many connections of Redis listen to this lease."""
    return WORLD.redis("PUBSUB", "NUMSUB", f"pawl:e:{name}")[1]


def listening():
    """How many streams the service has, as it says itself."""
    return WORLD.lease.metric("pawl_lease_listening")


def wait_alone():
    """Until the streams of the tests before have gone."""
    return wait_until(lambda: listening() <= len(SILENT), "the others have gone")


def silent_streams():
    return [Stream("?lease=nobody:1"), Stream("?lease=nobody:1", Accept="application/x-ndjson")]


SILENT = silent_streams()  # a later test looks for their sign of life


# -- the history

@test
def what_the_gateway_refuses_stands_in_the_history_and_in_the_stream(name):
    old = WORLD.acquire(name, holder="ann")
    WORLD.release(name, old)
    new = WORLD.acquire(name, holder="bob")
    stream = Stream(f"?lease={name}")
    answer = WORLD.gateway("PUT", f"/v1/resources/{name}", {"Fencing-Token": old["fencing_token"]}, body=b"late")
    check_equal((answer.status, answer.code), (412, "stale-token"))
    item = stream.item()
    check_equal((item["type"], item["token"], item["reason"]), ("refused", old["token"], "stale-token"))
    check_equal({member: item.get(member) for member in ("holder", "code", "current_token", "instance", "resource")},
                {"holder": "ann", "code": "stale-token", "current_token": new["token"], "instance": answer.json["instance"],
                 "resource": name})
    check(WORLD.redis("EXISTS", "pawl:{store}:m:" + item["gateway"]), item["gateway"])
    check(0 <= history_now(name) - item["at_ms"] < 60000, item["at_ms"])
    WORLD.release(name, new)
    check_equal(kinds(history(name)), ["granted", "released", "granted", "refused", "released"])
    check_equal(history(name)[3], item)
    stream.close()


# -- streams of one lease

@test
def the_end_of_a_lost_hold_says_which_lock_delay_began_and_when(name):
    WORLD.release(name, WORLD.acquire(name, lock_delay_ms=600000))
    stream = Stream(f"?lease={name}")
    WORLD.acquire(name, ttl_ms=100, lock_delay_ms=600000)
    granted, ended = stream.items(2)
    look, items = WORLD.look(name), history(name)
    check_equal((look["state"], ended["type"], ended["lock_delay_ms"]), ("delayed", "expired", 600000))
    lost_ms = ended.get("lost_at_ms", ended["at_ms"])
    check_equal((lost_ms, lost_ms + 600000), (granted["at_ms"] + 100, look["now_ms"] + look["delayed_for_ms"]))
    check_equal(("lost_at_ms" in ended, items[2:]), (lost_ms < ended["at_ms"], [granted, ended]))
    check("lock_delay_ms" not in items[1], "released")
    stream.close()


@test
def a_stream_tells_what_happens_from_now_on(name):
    stream = Stream(f"?lease={name}")
    check(re.fullmatch(r": listening, now_ms: \d{13}", stream.first) and stream.last is None, "without a history")
    stream.close()
    in_and_out(name)
    stream = Stream(f"?lease={name}")
    check_equal(stream.head.header("Content-Type"), "text/event-stream")
    check_equal(re.sub(r"\d{13}", "N", stream.first, count=1), f": listening, now_ms: N\nid: {history(name)[-1]['id']}")
    in_and_out(name, holder="ada")
    items = stream.items(2)
    check_equal([(item["type"], item["lease"], item["holder"]) for item in items],
                [("granted", name, "ada"), ("released", name, "ada")])
    check_equal(items, history(name)[-2:])
    other = WORLD.name()
    in_and_out(other)
    in_and_out(name)
    check_equal({item["lease"] for item in stream.items(2)}, {name})
    stream.close()


@test
def one_who_comes_back_gets_what_was_missed_and_nothing_twice(name):
    in_and_out(name, 2)
    items = history(name)
    for header, query in ((None, items[0]["id"]), (items[0]["id"], None), (items[0]["id"], items[2]["id"])):
        fields = {"Last-Event-ID": header} if header else {}
        stream = Stream(f"?lease={name}" + (f"&since={query}" if query else ""), **fields)
        check_equal(stream.items(3), items[1:4])
        stream.close()
    stream = Stream(f"?lease={name}&since={items[3]['id']}")
    in_and_out(name)
    check_equal(stream.items(2), history(name)[4:])
    stream.close()


@test
def an_id_that_cannot_be_proven_is_too_old():
    name, other = WORLD.name(), WORLD.name()
    in_and_out(name)
    in_and_out(other)
    first, kept = history(name)
    epoch, seq = first["id"].split(".")[1:3]
    stripe = first["id"][:2]
    for since in (history(other)[0]["id"], f"{stripe}.{epoch}.{int(seq) - 1}.1", f"{stripe}.{epoch}.{int(seq) + 1000}.1",
                  f"{int(stripe, 16) ^ 1:02x}{first['id'][2:]}", f"{first['id']}1"):
        refused(Stream(f"?lease={name}&since={since}"), 410, "cursor-expired")
        refused(Stream(f"?lease={name}&since={kept['id']}", Last_Event_ID=since), 410, "cursor-expired")
    refused(Stream(f"?lease={WORLD.name()}&since={kept['id']}"), 410, "cursor-expired")


@test
def an_id_from_before_a_refusal_that_was_dropped_is_too_old(name):
    """Two lists, each with an end of its own."""
    WORLD.acquire(name)
    before = history(name)[0]["id"]
    key = f"pawl:{{{before[:2]}}}:f:{name}"
    epoch, seq = (int(part) for part in before.split(".")[1:3])
    WORLD.redis("RPUSH", key, f"{epoch}.{seq + 1}.1\trefused\t7\t\t5\tstale-token")
    stream = Stream(f"?lease={name}&since={before}")
    check_equal(kinds(stream.items(1)), ["refused"])
    stream.close()
    WORLD.redis("LSET", key, 0, f"-{epoch}.{seq + 1}.1\trefused\t7\t\t5\tstale-token")
    refused(Stream(f"?lease={name}&since={before}"), 410, "cursor-expired")
    stream = Stream(f"?lease={name}&since={before[:2]}.{epoch}.{seq + 1}.1")
    check_equal(stream.head.status, 200)
    stream.close()


@test
def who_listens_to_a_lease_learns_who_waits_for_it(name):
    grant = WORLD.acquire(name, holder="ada")
    first = Stream(f"?lease={name}")
    waiters = [Waiter(WORLD, WORLD.lease, name, "bob")]
    told, at_ms = first.line()
    check_equal(told, ["bob"])
    waiters.append(Waiter(WORLD, WORLD.lease, name, "cyd"))
    told, again_ms = first.line()
    check_equal(told, ["bob", "cyd"])
    check(again_ms - at_ms >= 450, f"after {again_ms - at_ms} ms")
    later = [Stream(f"?lease={name}"), Stream(f"?lease={name}", Accept="application/x-ndjson")]
    check_equal([stream.line()[0] for stream in later], [["bob", "cyd"]] * 2, "what is so at its beginning")
    other = Stream(f"?lease={WORLD.name()}")
    WORLD.release(name, grant)
    check_equal([(stream.item()["type"], stream.item()["holder"]) for stream in (first, later[0])], [("released", "bob")] * 2)
    check_equal([stream.line()[0] for stream in (first, *later)], [["cyd"]] * 3)
    for number in range(10):
        Waiter(WORLD, WORLD.lease, name, f"w{number}", wait_ms=4000)
    told, seen = [], 0
    while "w9" not in told:
        told, seen = first.line()[0], seen + 1
    check(seen < 10, f"{seen} events for 10 who came")
    while told != ["cyd"]:
        told = first.line()[0]
    WORLD.release(name, waiters[0].told())
    waiters[1].told()
    while told:
        told = first.line()[0]
    check_equal(other.lines, [])
    for stream in (first, *later, other):
        stream.close()


@test
@of_time
def a_holder_that_listens_learns_of_a_loss_at_once():
    took_ms = []
    for round_number in range(10):
        name = WORLD.name()
        WORLD.acquire(name)
        stream = Stream(f"?lease={name}")
        sent = time.monotonic()
        force(name, reason=str(round_number))
        item = stream.item()
        took_ms.append((time.monotonic() - sent) * 1000)  # from before the store records it
        check_equal((item["type"], item["reason"]), ("forced", str(round_number)))
        stream.close()
    check(sorted(took_ms)[5] < TOLD_MS, took_ms)


@test
def many_listen_over_one_subscription_and_it_ends_with_the_last(name):
    streams = [Stream(f"?lease={name}") for _ in range(20)]
    check_equal(listeners(name), 1)
    in_and_out(name)
    first = streams[0].items(2)
    for stream in streams[1:]:
        check_equal(stream.items(2), first)
    for stream in streams[:-1]:
        stream.close()
    in_and_out(name)
    check_equal(len(streams[-1].items(2)), 2)
    check_equal(listeners(name), 1)
    streams[-1].close()
    wait_until(lambda: listeners(name) == 0, "nobody listens any more")


@test
def what_many_hear_is_gathered_when_it_is_much_and_comes_at_once_when_it_is_not():
    name, count = WORLD.name(), 120
    streams = [Stream(f"?lease={name}", Accept=kind) for kind in ("text/event-stream", "application/x-ndjson") * 10]

    def publish(number):
        WORLD.redis("PUBLISH", f"pawl:e:{name}", f"00 1.{number}.1\tgranted\t{number}\tme\t5\t\x1ft100")
    publish(1)
    first = streams[0].item()
    check_equal([stream.item() for stream in streams[1:]], [first] * 19)
    pieces = [stream.pieces for stream in streams]
    began = time.monotonic()
    for number in range(2, count):
        publish(number)
        due = time.monotonic() + 0.004  # an item behind the one before, not with it
        while time.monotonic() < due:
            WORLD.look(name)
    most = 30 + 30 * (time.monotonic() - began)  # 20 at once, 20 a second, and one each 100 ms
    wanted = [f"{first['id'].split('.')[0]}.1.{number}.1" for number in range(2, count)]
    for stream, before in zip(streams, pieces):
        check_equal([item["id"] for item in stream.items(count - 2)], wanted)
        check(stream.pieces - before < most, f"{stream.pieces - before} pieces, more than {most}")
    late = Stream(f"?lease={name}")  # between them: what it hears begins where it came
    publish(count)
    publish(count + 1)
    check_equal([item["token"] for item in late.items(2)], [count, count + 1])
    for stream in [*streams, late]:
        stream.close()


@test
def a_flood_is_told_while_it_lasts():
    name, reason = WORLD.name(), "x" * 1500
    piece = 45 if BUILD.name == "build" else 20  # with a sanitizer one of 64 KiB can be more than it can tell in time
    count = 1 + piece * (225 // piece)

    def told():  # those that came before the stream was cut off for lagging, which this machine's load may cause, too
        stream, numbers = Stream(f"?lease={name}"), []
        # The first alone: until then 64 KiB may wait, what it has missed is being read. Then two pieces are on their way at most.
        for first, last, read in ((1, 1, 1), (2, 1 + piece, 0), *((n, n + piece - 1, piece) for n in range(2 + piece, count, piece)), (1, 0, piece)):
            WORLD.redis("EVAL", FLOOD, 0, f"pawl:e:{name}", first, last, reason)
            try:
                numbers += [item["id"].split(".")[2] for item in stream.items(read)]
            except TypeError:
                break
        stream.close()
        return numbers
    wanted = [str(n) for n in range(1, count + 1)]  # over 330 KB; 256 KiB may wait
    check(any(told() == wanted for _ in range(15)), "cut off each time")


# -- all leases

@test
def a_stream_of_all_leases_tells_of_all():
    names = [WORLD.name() for _ in range(5)]
    one, every = Stream(f"?lease={names[0]}"), Stream()
    for name in names:
        in_and_out(name)
    items = every.items(10)
    check_equal([(item["lease"], item["type"]) for item in items],
                [(name, kind) for name in names for kind in ("granted", "released")])
    check_equal(one.items(2), items[:2])  # each once, although Redis tells it twice
    one.close()
    every.close()


@test
def an_id_that_the_service_has_not_heard_is_too_old(name):
    stream = Stream()
    in_and_out(name)
    first = stream.item()
    refused(Stream(f"?since={first['id']}0"), 410, "cursor-expired")
    stream.close()
    daemon = Daemon("pawl-lease", *WORLD.flags)  # has not listened
    WORLD.daemons.append(daemon)
    refused(Stream("?since=" + first["id"], daemon), 410, "cursor-expired")
    stream = Stream(f"?lease={name}&since={first['id']}", daemon)  # one lease's items are in the store
    check_equal(kinds(stream.items(1)), ["released"])
    in_and_out(name)  # by the other service
    check_equal(kinds(stream.items(2)), ["granted", "released"])
    stream.close()


# -- forms

@test
def json_lines_are_told_to_those_who_accept_them(name):
    in_and_out(name)
    for accept in ("application/x-ndjson", "text/html, Application/X-NDJSON;q=0.9"):
        stream = Stream(f"?lease={name}&since={history(name)[0]['id']}", Accept=accept)
        check_equal(stream.head.header("Content-Type"), "application/x-ndjson")
        check_equal(stream.first, "")
        check_equal(stream.item(), history(name)[1])
        stream.close()
    for accept in ("text/event-stream", "*/*", "application/json", "application/x-ndjsonl", "x"):
        stream = Stream(f"?lease={name}", Accept=accept)
        check_equal(stream.head.header("Content-Type"), "text/event-stream", accept)
        stream.close()


@test
def what_is_asked_wrongly_is_refused():
    good = "00.1.1.1"
    for query in ("?lease=", "?lease=-x", "?lease=a&lease=b", "?lease=a%00b", "?lease=" + "x" * 129, "?since=", "?since=1",
                  "?since=00.1.1", "?since=00.1.1.1.1", "?since=0.1.1.1", "?since=AA.1.1.1", "?since=00.01.1.1",
                  "?since=00.1.x.1", "?since=00.1.1.-1", f"?since={good}&since={good}", "?since=00.1.1.%00", "?from=1",
                  "?lease=a&x=1", "?since=00.1.1." + "1" * 60):
        refused(Stream(query), 400, "invalid-request")
    for header in ("1", "", "00.1.1.1 00.1.1.1", "x" * 200):
        refused(Stream("?lease=a", Last_Event_ID=header), 400, "invalid-request")
        refused(Stream("?since=" + good, Last_Event_ID=header), 400, "invalid-request")
    refused(Stream("?since=x", Last_Event_ID=good), 400, "invalid-request")
    for target in (path("-x") + "/history", path("a%2Fb") + "/history", path("x" * 129) + "/history", path("x") + "/history?a=1"):
        answer = WORLD.lease("GET", target)
        check_equal((answer.status, answer.code), (400, "invalid-request"), target)


@test
def a_head_request_gets_the_head_and_no_event():
    for query in (f"?lease={WORLD.name()}", ""):
        raw = WORLD.raw()
        raw.send(f"HEAD /v1/events{query} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        line, headers = raw.head()
        check_in(" 200 ", line)
        check_in(("Content-Type", "text/event-stream"), headers)
        if query:
            wait_until(lambda query=query: listeners(query[7:]) == 0, "nobody listens")
        raw.is_closed()
        check(b"listening" not in raw.buffer, raw.buffer)
        raw.close()


# -- accidents

@test
def a_client_that_does_not_read_is_cut_off_and_the_others_are_not(name):
    wait_alone()
    slow, good = Stream(f"?lease={name}", receive_bytes=4096), Stream(f"?lease={name}")
    begun, told = listening(), 0
    while listening() == begun and told < 30000:
        # Quickly: who has not read for some seconds is not waited for when the stream has ended.
        WORLD.redis("EVAL", FLOOD, 0, f"pawl:e:{name}", told, told + 99, "x" * 1000)
        check_equal([(good.block(), good.last)[1].split(".")[2] for _ in range(100)], [str(n) for n in range(told, told + 100)])
        told += 100
    check_equal(listening(), begun - 1, "the one that does not read is cut off")
    lagging = slow.wait_end().split("\ndata: ")  # told in its place, without an id: it comes back with the last one it has
    check_equal(lagging[0], "event: lagging")
    check_equal((json.loads(lagging[1])["type"], json.loads(lagging[1])["id"]), ("lagging", ""))
    check_equal(listeners(name), 1)
    good.close()


@test
@of_time
def a_silent_stream_gives_a_sign_of_life_every_fifteen_seconds():
    if not SILENT:  # they have ended while the machine stood still
        SILENT.extend(silent_streams())
    sse, lines = SILENT.pop(0), SILENT.pop(0)
    for one in (sse, lines):
        one.socket.settimeout(20)
    check_equal(sse.block(), ": alive")
    check_equal(lines.block(), "")
    sse.close()
    lines.close()


@test
def when_it_does_not_hear_any_more_a_stream_ends_and_its_client_goes_on(name):
    WORLD.acquire(name)
    streams = [Stream(f"?lease={name}"), Stream()]
    force(name)
    firsts = [stream.item() for stream in streams]
    check_equal(firsts[0], firsts[1])
    WORLD.redis("CLIENT", "KILL", "TYPE", "pubsub")
    for stream in streams:
        stream.wait_end()
    in_and_out(name)
    stream = Stream(f"?lease={name}", Last_Event_ID=streams[0].last)
    check_equal(kinds(stream.items(2)), ["granted", "released"])
    stream.close()
    refused(Stream(Last_Event_ID=streams[1].last), 410, "cursor-expired")  # what is kept would have a gap


@test
def what_the_store_did_not_publish_ends_the_streams(name):
    WORLD.acquire(name)
    streams = [Stream(f"?lease={name}"), Stream()]
    force(name)
    lasts = [(stream.item(), stream.last)[1] for stream in streams]
    for i in range(256):  # as when a clock leaps or content is lost
        WORLD.redis("HDEL", f"pawl:{{{i:02x}}}", "listen")
    in_and_out(name)  # nobody hears of it
    for stream in streams:
        stream.wait_end()
    stream = Stream(f"?lease={name}", Last_Event_ID=lasts[0])
    check_equal(kinds(stream.items(2)), ["granted", "released"])
    stream.close()
    refused(Stream(Last_Event_ID=lasts[1]), 410, "cursor-expired")


def noted(mode, world):
    """What pawl store history says."""
    return run_daemon("pawl", "store", "history", *mode, "--redis", world.redis.url).stdout


@test_in(World)
def an_operator_may_have_less_noted_or_nothing(world):
    name, lease = "a", world.lease_daemon
    streams = [Stream(f"?lease={name}", lease), Stream(daemon=lease)]
    world.release(name, world.acquire(name))
    lasts = [(stream.items(2), stream.last)[1] for stream in streams]
    check_in("all: ", noted([], world))
    check_in("off: nothing is noted", noted(["off"], world))
    check_equal(world.lease("GET", path(name) + "/history").code, "history-off")
    for stream in streams:
        stream.wait_end()
    for query in ("", f"?lease={name}"):
        refused(Stream(query, lease), 404, "history-off")
        refused(Stream(query, lease), 404, "history-off")  # also where its channel is still listened to
    world.release(name, world.acquire(name))
    check_in("ends: ", noted(["ends"], world))
    for query, last in zip((f"?lease={name}", ""), lasts):
        refused(Stream(query, lease, Last_Event_ID=last), 410, "cursor-expired")
    streams = [Stream(f"?lease={name}", lease), Stream(daemon=lease)]
    world.release(name, world.acquire(name))
    check_equal([kinds(stream.items(1)) for stream in streams], [["released"]] * 2)
    check_equal(kinds(history(name, world.lease)), ["released"])
    for stream in streams:
        stream.close()


@test
@of_time
def a_service_that_ends_ends_its_streams(name):
    daemon = Daemon("pawl-lease", *WORLD.flags)
    streams = [Stream(f"?lease={name}", daemon), Stream("", daemon)]
    in_and_out(name)
    last = streams[0].items(2)[1]["id"]
    begun = time.monotonic()
    check_equal(daemon.end(), 0)
    check(time.monotonic() - begun < 3, "at once: what does not end by itself is cut off after 4.5 s")
    for stream in streams:
        stream.wait_end()
    in_and_out(name)
    stream = Stream(f"?lease={name}", Last_Event_ID=last)
    check_equal(kinds(stream.items(2)), ["granted", "released"])
    stream.close()


main(WORLD.close, parts=4)
