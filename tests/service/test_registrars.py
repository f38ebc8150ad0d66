#!/usr/bin/python3
"""test_registrars.py - three lease services of which any two admit the store, with real processes."""

import json
import signal
import time

from world import World, check, check_equal, check_in, main, run_daemon, test, test_in, wait_until


class Board(World):
    init_flags = ("--registrars", "3")

    def __init__(self):
        super().__init__()
        self.others = [self.daemon("pawl-lease") for _ in range(2)]
        wait_until(lambda: self.status()["majority"] == 2, "a majority counts")

    def pawl(self, *words):
        return run_daemon("pawl", "store", *words, "--redis", self.redis.url)

    def status(self, output="json"):
        done = self.pawl("status", "-o", output)
        return json.loads(done.stdout) if output == "json" else done.stdout

    def members_in(self, role="lease", registrar=False):
        return [one["id"] for one in self.status()["members"] if (one["role"], one["registrar"], one["state"]) == (role, registrar, "in")]

    def rolls(self):
        return [one["roll"] for one in self.status()["members"] if one["role"] == "lease"]

    def id_of(self, daemon):
        return wait_until(lambda: [one["id"] for one in self.status()["members"] if f" pid {daemon.process.pid} " in one["who"]], "it is known")[0]

    def gone(self):
        return " ".join(one["id"] for one in self.status()["registrars"] if not one["live"])

    def logged(self, event):
        lines = [json.loads(line) for line in self.lease_daemon.log().splitlines() if f'"event":"{event}"' in line]
        return [(one["missing"], one["heard"], one["of"]) for one in lines]

    def registrar(self, status, says, *words):
        done = self.pawl("registrar", *words)
        check_equal(done.returncode, status, f"exit status of {words}: {done.stdout}{done.stderr}")
        check_in(says, done.stdout + done.stderr)


@test
def how_many_there_are_to_be_is_said_when_the_store_is_made():
    for words in (["--init-store", "--registrars", "2"], ["--registrars", "3"], ["--init-store", "--registrars", "7"]):
        done = run_daemon("pawl-lease", "--redis", "unix:///nowhere", *words)
        check_equal(done.returncode in (64, 78), True, done)
        check_in("--registrars", done.stderr)


@test_in(Board)
def a_lease_service_may_be_dead_when_redis_restarts_and_two_may_not(world):
    wait_until(lambda: world.lease("GET", "/readyz").json.get("registrars") == {"heard": 3, "of": 3}, "three are heard")
    check_equal([world.lease.metric(f'pawl_store_registrars{{what="{what}"}}') for what in ("heard", "of")], [3, 3])
    check("registrars" not in world.gateway("GET", "/readyz").json, "a gateway has none")
    first = world.acquire("job")
    lost = world.id_of(world.others[0])
    world.kill(world.others[0])
    world.redis("HSET", f"pawl:{{store}}:m:{lost}", "at", 1)
    for client in (world.lease, world.gateway):
        said = client("GET", "/v1/overview").json["condition"]
        check_equal((said["code"], said["command"]), ("member-silent", f"pawl store registrar replace {lost} OTHER"), "forget would be refused")
        check_in("all holds end", said["detail"])
    world.redis.restart()
    world.granted("other")
    check_equal(world.lease("GET", "/readyz").json["registrars"], {"heard": 2, "of": 3})
    wait_until(lambda: (world.gone(), 2, 3) in world.logged("registrar-missing"), "the log says which")
    check_in("registrars 2 of 3 live, 2 must be heard", world.status("text"))
    world.others[1].send(signal.SIGSTOP)
    world.redis.restart()
    wait_until(lambda: "1 of 2 are" in world.lease("GET", "/readyz").json.get("detail", ""), "it says what it waits for")
    check_in("Waiting until 2 of 3 registrars are heard", world.status("text"))
    world.others[1].send(signal.SIGCONT)
    world.granted("third")
    again = world.lease("POST", "/v1/leases/job", body={})
    check_equal(again.status, 201)
    check(again.json["token"] > first["token"], (again.json, first))
    world.daemon("pawl-lease")  # finds the directory of the one that was killed
    wait_until(lambda: world.logged("registrar-missing-no-more"), "all are heard")
    wait_until(lambda: world.status()["epoch"] < int(time.time()), "an epoch that begins now is a later one")
    world.redis("FLUSHALL")
    check_equal(world.pawl("recover", "--store-id", world.keys.store).returncode, 0)
    wait_until(lambda: world.status()["majority"] == 2, "a majority counts in the store that was made anew")


@test
def a_registrar_is_added_and_removed_and_each_refusal_says_why():
    world = Board()
    leases = [world.lease_daemon, *world.others, world.daemon("pawl-lease")]
    wait_until(lambda: world.members_in() and world.rolls() == [world.status()["roll"]] * 4, "all have recorded the fourth")
    first, second, third = world.members_in(registrar=True)
    fourth, = world.members_in()
    world.registrar(64, "neither add nor remove", "drop", first)
    world.registrar(64, "missing argument", "add")
    check_in("pawl store registrar replace", world.pawl("forget", first).stderr)
    for words in (("replace", first), ("replace", first, first), ("add", fourth, first)):
        world.registrar(64, "", *words)
    for deed, member in (("add", first), ("remove", fourth)):
        world.registrar(1, f"{member} was not changed: it is a registrar already, or none", deed, member)
    world.registrar(1, "no lease service with this id is in", "add", *world.members_in("gateway"))
    for one in leases:
        one.send(signal.SIGSTOP)
    world.registrar(0, "there are 4 registrars now, of which 3 must be heard", "add", fourth)
    world.registrar(1, "too few of those that would be registrars live and have recorded all that counts", "remove", first)
    for one in leases:
        one.send(signal.SIGCONT)
    for member, warns in ((first, False), (second, True), (third, True)):
        done = wait_until(lambda member=member: (lambda one: one.returncode == 0 and one)(world.pawl("registrar", "remove", member)),
                          "all is recorded")
        check_equal("None of them may be away" in done.stderr, warns, done.stdout)
    check_in("registrars 1 of 1 live, 1 must be heard", world.status("text"))
    world.registrar(1, "it is the only one", "remove", fourth)
    for one in list(world.daemons):
        world.kill(one)
    world.redis("HSET", "pawl:{store}", "registrars", "6 " + " ".join(f"gone-{number}" for number in range(6)))
    world.registrar(1, "there are 6 already", "add", first)
    world.redis.restart()
    world.registrar(1, "the store is gated", "add", first)
    world.redis("FLUSHALL")
    world.registrar(78, "this Redis has no store", "add", first)
    run_daemon("pawl-lease", "--redis", world.redis.url, "--init-store", "--allow-unsafe-redis", "--state-dir", world.folder + "/new")
    world.registrar(1, "no majority of registrars counts in this store", "add", first)
    world.redis("HSET", "pawl:{store}", "id", "5:another")
    world.registrar(78, "no store that this release knows", "add", first)
    world.redis.kill()
    world.registrar(69, "cannot", "add", first)


@test
def a_lost_registrar_is_replaced_in_one_command_or_it_says_what_is_left_to_do():
    world = Board()
    fourth = world.daemon("pawl-lease")
    lost, new = (world.id_of(daemon) for daemon in (world.others[0], fourth))
    wait_until(lambda: world.rolls() == [world.status()["roll"]] * 4, "all have recorded the fourth")
    world.kill(world.others[0])
    world.registrar(0, "there are 3 registrars now, of which 2 must be heard", "replace", lost, new)
    check_equal((new in world.members_in(registrar=True), world.members_in()), (True, [lost]))
    other = world.id_of(world.others[1])
    for told in (f"{other} was not changed: it is a registrar already", f"what is left to do: pawl store registrar remove {new}"):
        world.registrar(1, told, "replace", new, other)
    world.registrar(1, f"{new} was not changed: the one whose place it is to take is no registrar", "replace", lost, new)
    world.daemon("pawl-lease")  # with the directory of the lost one
    leases = [one for one in world.daemons if one.name == "pawl-lease"]
    wait_until(lambda: world.rolls() == [world.status()["roll"]] * 4, "all have recorded that")
    for one in leases:
        one.send(signal.SIGSTOP)
    world.registrar(1, f"what is left to do: pawl store registrar remove {new}", "replace", new, lost, "--wait", "200ms")
    for one in leases:
        one.send(signal.SIGCONT)
    wait_until(lambda: world.pawl("registrar", "remove", new).returncode == 0, "all is recorded")
    check_equal(world.members_in(), [new])


main()
