#!/usr/bin/python3
"""test_copies.py - what waits for the in-sync set beside answers: events, and what ends a wait in line; three real Redises."""

import re
import select

from world import World, check, check_equal, check_in, main, test, test_in, wait_until
from world.asking import Later, path
from world.redis import Connection
from world.trio import Trio
from world.waiting import Waiter

SILENT_S = 0.5  # what waits for nobody comes sooner
FLOOD = "for n = 1, 4500 do redis.call('PUBLISH', 'pawl:e:flood', '00 1.' .. n .. '.1\trefused\t1\t\t5\t' .. string.rep('x', 1000)) end"


def is_silent(raw):
    check_equal(select.select([raw.socket], [], [], SILENT_S)[0], [], "nothing has come")


class Ear:
    """Hears what the primary publishes when it does."""

    def __init__(self, world, pattern):
        self.connection = Connection(world.redis.path)
        self.connection("PSUBSCRIBE", pattern)

    def hears(self, what):
        while what not in self.connection._reply()[3]:  # pylint: disable=protected-access
            pass


@test_in(lambda: Trio(copies=3))
def an_event_and_one_of_before_are_told_when_every_node_of_the_set_has_what_they_tell_of(world):
    stream, ear = world.listening(), Ear(world, "pawl:e:*")
    stream.until(b"\n\n")
    world.acquire("x")
    first = re.search(rb"id: (\S+)", stream.until(b'"x"'))[1].decode()
    world.nodes[2].stop()
    granted = Later(world.lease, "POST", path("early"), body={})
    ear.hears(b"granted")
    is_silent(stream)
    replayed = world.listening(f"?lease=x&since={first}")
    is_silent(replayed)
    world.nodes[2].go_on()
    stream.until(b'"early"')
    check_equal(granted.get().status, 201)
    check_in(b" 200 ", replayed.until(b"\n\n"))


@test
def with_one_node_an_event_is_told_at_once_and_costs_no_command():
    def asked():
        said = world.redis("INFO", "commandstats").decode()
        return sum(int(calls) for calls in re.findall(r"cmdstat_(?:ping|role|wait):calls=(\d+)", said))

    world = World()
    stream, count = world.listening(), 60
    stream.until(b"\n\n")
    before = asked()
    for number in range(1, 1 + count):
        world.redis("PUBLISH", "pawl:e:flood", f"00 1.{number}.1\trefused\t1\t\t5\tnumber-{number}.")
        stream.until(f"number-{number}.".encode())
    check(asked() - before < count / 2, "that of the subscribers, each second")
    world.close()


@test_in(lambda: Trio(copies=3))
def a_stream_ends_without_the_event_that_has_no_copies_in_time(world):
    stream, ear = world.listening(), Ear(world, "pawl:e:*")
    stream.until(b"\n\n")
    world.nodes[2].stop()
    granted = Later(world.lease, "POST", path("late"), body={})
    ear.hears(b"granted")
    check(b"late" not in stream.rest(), "it was told")
    check_equal(granted.get().status, 504)
    world.nodes[2].go_on()
    wait_until(lambda: world.lease("GET", path("late")).status == 200, "it goes on")
    stream = world.listening()
    stream.until(b"\n\n")
    world.acquire("x")
    stream.until(b'"x"')


@test_in(lambda: Trio(copies=3, store_timeout="60s"))
def a_stream_ends_when_more_than_its_bound_waits_for_copies(world):
    stream = world.listening()
    stream.until(b"\n\n")
    world.nodes[2].stop()
    world.redis("EVAL", FLOOD, 0)
    told = stream.rest()
    check(b"flood" not in told and b"alive" not in told, f"it was told, or waited for its deadline: {told}")
    world.nodes[2].go_on()


@test_in(lambda: Trio(copies=3))
def a_waiter_that_is_superseded_hears_so_when_every_node_of_the_set_has_that(world):
    world.acquire("job", ttl_ms=600000)
    first, ear = Waiter(world, world.lease, "job", "ada"), Ear(world, "pawl:{*")
    world.nodes[2].stop()
    second = Waiter(world, world.lease, "job", "ada", in_line=False)
    ear.hears(b"superseded")
    first.join(SILENT_S)
    check(first.answer is None, repr(first.answer))
    world.nodes[2].go_on()
    first.told(409, "superseded")
    check(second.answer is None, repr(second.answer))


main()
