#!/usr/bin/python3
"""test_cli_watch.py - pawl watch: nothing is skipped in silence, whatever happens to the connection."""

import json
import os
import pty
import queue
import select
import signal
import subprocess
import threading

from world import World, check, check_equal, check_in, main, test, wait_until
from world.cli import PAWL, Cli, Server, response
from world.ports import nobody
from world.process import die_with_parent
from world.running import Network
from world.wait import DEADLINE_S

world = World()
pawl = Cli(world)


class Watch:
    """pawl watch under way, its lines as they come."""

    def __init__(self, *words, **variables):
        self.process = pawl.start("watch", *words, **variables)
        self.out, self.err = queue.Queue(), []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._complain, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.out.put(line.rstrip("\n"))
        self.out.put(None)

    def _complain(self):
        for line in self.process.stderr:
            self.err.append(line)

    def line(self):
        found = self.out.get(timeout=DEADLINE_S)
        check(found is not None, f"it has ended: {self.err}")
        return found

    def item(self):
        return json.loads(self.line())

    def say(self, text):
        wait_until(lambda: any(text in line for line in list(self.err)), f"it says {text!r}; it said {self.err}")

    def end(self, status=0, number=signal.SIGINT):
        self.process.send_signal(number)
        check_equal(self.process.wait(DEADLINE_S), status, "".join(self.err))
        while self.out.get(timeout=DEADLINE_S) is not None:
            pass


def begun(front, count=1):
    """So many streams have begun: what happens from now on is told."""
    wait_until(lambda: b"".join(front.answers).count(b": listening") >= count, f"{count} streams begin")


def kept(name):
    """A lease that has a history, so that the stream begins with an id."""
    world.release(name, world.acquire(name))
    return world.lease("GET", f"/v1/leases/{name}/history").json["items"]


def item_of(number):
    """A stream with one item, which is cut then."""
    item = {"id": f"1.{number}.1", "type": "granted", "lease": "a", "token": number, "holder": "h", "at_ms": number}
    return response(200, b"").replace(b"Content-Length: 0", b"Content-Type: text/event-stream") + \
        f": listening\n\nid: 1.{number}.1\ndata: {json.dumps(item)}\n\n".encode()


# -- while all is well


@test
def in_the_background_of_a_script_ctrl_c_ends_neither_watch_nor_top():
    """There the shell has it ignored."""
    name, before = world.name(), signal.signal(signal.SIGINT, signal.SIG_IGN)
    item = kept(name)[0]
    watch, top = Watch(name, "--since", item["id"]), pawl.start("top")
    signal.signal(signal.SIGINT, before)
    watch.line()
    top.stdout.readline()
    for process in (watch.process, top):
        process.send_signal(signal.SIGINT)
    watch.end(-signal.SIGTERM, signal.SIGTERM)
    top.terminate()
    check_equal(top.wait(DEADLINE_S), -signal.SIGTERM)


@test
def items_come_as_they_happen_and_ctrl_c_is_0(name):
    since = kept(name)[-1]["id"]
    watch = Watch(name, "-o", "json", "--since", since)
    grant = world.acquire(name, holder="Zoë")
    check_equal({key: value for key, value in watch.item().items() if key in ("type", "lease", "token", "holder")},
                {"type": "granted", "lease": name, "token": 2, "holder": "Zoë"})
    world.release(name, grant)
    check_equal(watch.item()["type"], "released")
    watch.end()


@test
def as_text_it_is_a_row_an_item_and_for_eval_a_line(name):
    items = kept(name)
    watch = Watch(name, "--since", items[0]["id"])
    check_equal(watch.line().split("\t")[1:], ["released", name, "1", "anonymous", "-"])
    watch.end()
    watch = Watch(name, "--since", items[0]["id"], "-o", "env")
    check_in("EVENT_TYPE='released' ", watch.line())
    watch.end()


@test
def without_a_name_it_is_all_leases():
    names = [world.name(), world.name()]
    watch = Watch("-o", "json")
    seen = []

    def both():
        for name in names:
            world.release(name, world.acquire(name))
        while not watch.out.empty():
            seen.append(watch.item()["lease"])
        return set(names) <= set(seen)
    wait_until(both, "items of both come")
    watch.end()


@test
def a_wrong_word_is_64_and_a_service_that_is_not_there_69():
    pawl("watch", "a/b", status=64)
    pawl("watch", "a", "b", status=64)
    pawl("watch", "a", "--since", "x\ny", status=64)
    check_in("cannot be reached", pawl("watch", "a", "--lease-url", nobody(), status=69).stderr)
    check_in("invalid-request", pawl("watch", "a", "--since", "what?", status=64).stderr)


@test
def what_is_no_stream_of_events_is_69():
    for status, kind, body in ((200, "text/html", b"<html>data: x\n\n"), (200, "application/json", b"{}"), (404, "text/event-stream", b"")):
        server = Server(lambda _, answer=response(status, body, f"Content-Type: {kind}"): answer)
        done = pawl("watch", "a", "--lease-url", server.url, status=69)
        check_equal(done.stdout, "")
        check_in("not as Pawl does", done.stderr)


def said_on_a_terminal(words, until):
    """What pawl watch says on standard error, if that is a terminal, before it is interrupted."""
    parent, child = pty.openpty()
    process = subprocess.Popen([PAWL, "watch", *words], env=pawl.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=child, preexec_fn=die_with_parent)
    os.close(child)
    text = ""
    while until not in text:
        check(select.select([parent], [], [], DEADLINE_S)[0], f"it says {until!r}; it said {text!r}")
        text += os.read(parent, 65536).decode()
    process.send_signal(signal.SIGINT)
    check_equal(process.wait(DEADLINE_S), 0)
    os.close(parent)
    return text


@test
def on_a_terminal_it_says_what_it_watches_once_it_is_connected_and_on_a_pipe_nothing(name):
    check_equal(said_on_a_terminal([name], "\n"),
                f"pawl: watch: connected; what happens to {name} is shown here until Ctrl-C\r\n")
    check_in("what happens to any lease", said_on_a_terminal([], "\n"))
    watch = Watch(name, "--since", kept(name)[0]["id"])
    watch.line()
    watch.end()
    check_equal(watch.err, [])


@test
def what_a_stranger_wrote_cannot_look_like_something_else(name):
    since = kept(name)[-1]["id"]
    world.acquire(name, holder="a\u202eb\u200bc")
    for kind, wanted in (("text", "\ta?b?c\t"), ("env", "EVENT_HOLDER='a?b?c' "), ("json", '"a\u202eb\u200bc"')):
        watch = Watch(name, "--since", since, "-o", kind)
        check_in(wanted, watch.line())
        watch.end()


# -- when it is not


@test
def after_a_cut_it_goes_on_where_it_was_and_misses_nothing():
    name, front = world.name(), Network(world.lease_daemon)
    kept(name)
    watch = Watch(name, "-o", "json", PAWL_LEASE_URL=front.url)
    begun(front)
    seen = []
    for _ in range(3):
        grant = world.acquire(name)
        seen.append(watch.item())
        front.fail("refuse")
        world.release(name, grant)
        world.release(name, world.acquire(name))
        front.mode = "pass"
        seen += [watch.item(), watch.item(), watch.item()]
        watch.say("nothing was missed")
    check_equal(seen, world.lease("GET", f"/v1/leases/{name}/history").json["items"][2:])
    check_in(f"Last-Event-ID: {seen[0]['id']}".encode(), b"".join(front.requests))
    watch.end()


@test
def cut_before_anything_happened_it_goes_on_from_where_the_stream_began():
    name, front = world.name(), Network(world.lease_daemon)
    last = kept(name)[-1]["id"]
    watch = Watch(name, "-o", "json", PAWL_LEASE_URL=front.url)
    begun(front)
    front.fail("refuse")
    watch.say("connecting again")
    world.acquire(name)
    front.mode = "pass"
    check_equal(watch.item()["type"], "granted")
    check_in(f"Last-Event-ID: {last}".encode(), b"".join(front.requests))
    watch.end()


@test
def what_cannot_be_made_up_for_is_told():
    front = Network(world.lease_daemon)
    watch = Watch(world.name(), "-o", "json", PAWL_LEASE_URL=front.url)  # nothing has ever happened to it: no id
    begun(front)
    front.fail("refuse")
    watch.say("connecting again")
    front.mode = "pass"
    item = watch.item()
    check_equal((item["type"], item["id"], item["token"]), ("missed", "", 0))
    check_in("lost", item["reason"])
    watch.end()


@test
def an_id_that_is_not_kept_any_more_is_told_and_then_it_goes_on_from_now():
    name, other = world.name(), world.name()
    strange = kept(other)[-1]["id"]
    watch = Watch(name, "-o", "json", "--since", strange)
    item = watch.item()
    check_equal((item["type"], item["lease"]), ("missed", name))
    check_in("does not keep", item["reason"])
    found = []

    def comes():
        world.release(name, world.acquire(name))
        while not watch.out.empty():
            found.append(watch.item()["type"])
        return found
    wait_until(comes, "it goes on from now")
    check("missed" not in found, found)
    watch.end()


@test
def what_is_missed_is_told_when_it_listens_again_for_who_looks_then_misses_nothing():
    refused = json.dumps({"type": "/problems/cursor-expired", "title": "t", "status": 410, "code": "cursor-expired", "detail": "d",
                          "instance": "urn:x", "retryable": False}).encode()
    streams = [item_of(1), response(410, refused, "Content-Type: application/problem+json"), None, item_of(2)]
    told, begins = [], threading.Event()

    def answer(_):
        begins.wait(DEADLINE_S)
        told.append(watch.out.qsize())
        return streams[len(told) - 1] if len(told) <= len(streams) else None
    server = Server(answer)
    watch = Watch("-o", "json", PAWL_LEASE_URL=server.url)
    begins.set()
    items = [watch.item() for _ in range(3)]
    check_equal([item["type"] for item in items], ["granted", "missed", "granted"])
    check_in("does not keep", items[1]["reason"])
    check(max(told[:4]) <= 1, f"lines that were there before each stream: {told}")
    watch.end()


@test
def silence_longer_than_the_signs_of_life_means_that_nobody_is_there():
    name, front = world.name(), Network(world.lease_daemon)
    kept(name)
    watch = Watch(name, "-o", "json", "--idle", "300ms", PAWL_LEASE_URL=front.url)
    begun(front)
    front.mode = "mute"
    world.acquire(name)
    watch.say("no sign of life")
    front.fail("pass")
    check_equal(watch.item()["type"], "granted")
    watch.end()


@test
def output_that_cannot_be_written_ends_it(name):
    since = kept(name)[0]["id"]
    pawl.unread("watch", name, "--since", since)


main(world.close)
