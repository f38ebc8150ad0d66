"""waiting.py - leases that many wait for: hand-offs, thousands of waiting connections, a long line."""

import json
import re
import socket
import statistics
import subprocess
import threading
import time

import bench_world as world

HANDOFF_ROUNDS = 1000
LONG_LINE, SHORT_LINE, LEAVERS = 10_000, 10, 2000


def line(program, to, job, **more):
    argv = [program, "--to", to, "--job", job]
    for name, value in more.items():
        argv += [f"--{name}", str(value)]
    done = subprocess.run(argv, capture_output=True, text=True, preexec_fn=world.die_with_parent, check=False)
    if done.returncode != 0:
        raise world.Broken(done.stderr)
    return json.loads(done.stdout)


class Listener:
    """Counts what Redis tells the desks."""

    def __init__(self, redis):
        self.socket = socket.create_connection(("127.0.0.1", redis.port))
        self.socket.sendall(b"*2\r\n$10\r\nPSUBSCRIBE\r\n$12\r\npawl:{*}:d:*\r\n")
        self.text = b""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        while True:
            got = self.socket.recv(65536)
            if not got:
                return
            self.text += got

    def granted(self):
        return self.text.count(b"granted ")

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.reader.join()


class Waiting:
    """So many clients that wait until this is closed."""

    def __init__(self, program, to, count):
        self.child = subprocess.Popen([program, "--to", to, "--job", "wait", "--waiters", str(count)], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=world.die_with_parent)
        if self.child.stdout.readline().strip() != "ready":
            raise world.Broken("they do not wait")

    def still(self):
        """How many waited to the end."""
        told, _ = self.child.communicate("")
        return json.loads(told)["waiting"]


def waiting_now(to, name):
    with socket.create_connection(to.split(":"), timeout=10) as sock:
        sock.sendall(f"GET /v1/leases/{name} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        text = b""
        while got := sock.recv(65536):
            text += got
    found = re.search(rb'"waiting":(\d+)', text)
    if not found:
        raise world.Broken(f"a look is answered with {text.decode()[:500]}")
    return int(found[1])


def handoffs(program, s, baseline, rounds):
    """One round: each of the kinds, side by side in time."""
    listener = Listener(s.redis)
    got = {
        "baseline": line(program, baseline.lease.to, "alone", rounds=rounds),
        "alone": line(program, s.lease.to, "alone", rounds=rounds),
        "rested": line(program, baseline.lease.to, "rested", rounds=rounds),
        "16": line(program, s.lease.to, "handoff", rounds=rounds, waiters=16),
    }
    told = listener.granted()
    listener.close()
    got["woken"] = told / (rounds + 16)
    got["1000"] = line(program, s.lease.to, "handoff", rounds=rounds, waiters=1000)
    got["poll"] = line(program, s.lease.to, "poll", rounds=max(10, rounds // 50))
    return got


def bench_handoff(plan, s, baseline, program, out):
    rounds = HANDOFF_ROUNDS if plan.rounds > 1 else 300
    kept = [handoffs(program, s, baseline, rounds) for _ in range(plan.rounds)]
    names = {"baseline": "an acquire alone, baseline", "alone": "an acquire alone", "rested": "an acquire after 2 ms of rest, baseline", "16": "a hand-off, 16 wait",
             "1000": "a hand-off, 1000 wait", "poll": "polling"}

    def median(what):
        return statistics.median(what(one) for one in kept)
    for side, name in names.items():
        for share in ("p50", "p99"):
            out.figure(f"us of {name}, {s.fsync}, {share}", median(lambda one, side=side, share=share: one[side][f"{share}_us"]))
    for base, most in (("baseline", (1.8, 5)), ("alone", (None, None)), ("rested", (None, None))):
        for share, target in zip(("p50", "p99"), most):
            out.figure(f"hand-off with 16 waiting, {s.fsync}, {share}, ratio to the median of {names[base]}", median(
                lambda one, base=base, share=share: one["16"][f"{share}_us"] / one[base]["p50_us"]), "at most", target)
    out.figure(f"hand-off with 1,000 waiting, {s.fsync}, ratio to 16, medians",
               median(lambda one: one["1000"]["p50_us"] / one["16"]["p50_us"]), "at most", 1.2)
    out.figure(f"polling every 100 ms, {s.fsync}, ratio to the hand-off with 16 waiting, medians",
               median(lambda one: one["poll"]["p50_us"] / one["16"]["p50_us"]), "at least", 50)
    out.figure(f"wake-ups for each hand-off, {s.fsync}", median(lambda one: one["woken"]), "at most", 1)


def bench_waiting_connections(plan, s, program, out, rate):
    """rate(): acquire and release of others beside them, a second of its own."""
    without = [rate() for _ in range(plan.rounds)]
    before = s.lease.rss_bytes()
    waiting = Waiting(program, s.lease.to, plan.idle)
    world.until("all of them waiting", lambda: waiting_now(s.lease.to, "waited-for") == plan.idle, patience_s=60)
    after = s.lease.rss_bytes()
    cpu = s.lease.cpu_s()
    time.sleep(plan.background_s)
    cpu = s.lease.cpu_s() - cpu
    beside = [rate() for _ in range(plan.rounds)]
    if waiting.still() != plan.idle:
        raise world.Broken("some were answered")
    world.until("nobody waiting", lambda: waiting_now(s.lease.to, "waited-for") == 0, patience_s=60)
    again = [rate() for _ in range(plan.rounds)]
    out.figure(f"bytes of pawl-lease for each of {plan.idle:,} waiting connections", (after - before) / plan.idle,
               "at most", 8192)
    out.figure(f"% of a core that pawl-lease takes while {plan.idle:,} wait and nothing happens",
               100 * cpu / plan.background_s)
    out.figure(f"acquire and release of others beside {plan.idle:,} who wait, ratio to without",
               statistics.median(beside) / statistics.median(without + again), "at least", 0.95)


# -- a long line, by its scripts

class LongLine:
    """Waiters in the line of one lease, in a Redis without an append-only file: what the scripts cost inside Redis."""

    def __init__(self, lua_test, name):
        self.store, self.name, self.joined = lua_test.Store(), name, 0
        self.store.begin()
        stripe, desk = (f"pawl:{{{lua_test.stripe_of(one):02x}}}" for one in (name, "DESK"))
        self.keys = [stripe, stripe + ":due"]
        self.desk = desk + ":d:DESK"
        self.beat = [desk, desk + ":due", self.desk]
        self.run("inbox_heartbeat", "DESK", "open", keys=self.beat)
        self.run("acquire", name, 1000, "holder" * 4, "hold-0123456", "h", 86400000, "", "grant", "")

    def run(self, script, *args, keys=None):
        return self.store.call(f"lease/scripts/{script}.lua", keys or self.keys, *args)

    def join(self):
        self.joined += 1
        more = json.dumps({"desk": self.desk, "wid": str(self.joined)})
        got = self.run("acquire", self.name, 1000, f"waiter-{self.joined:015}", f"hold-{self.joined:07}", "h", 30000, "",
                       "grant", more)
        if got[0] != "queued":
            raise world.Broken(f"a waiter is told {got}")

    def leave(self, number):
        got = self.run("leave", self.name, 1000, f"waiter-{number:015}", f"hold-{number:07}", "grant", "gone")
        if got[0] != "left":
            raise world.Broken(f"a waiter who leaves is told {got}")

    def spend_us(self, action, numbers):
        """The median over ten batches of what an action takes in Redis."""
        took = []
        for batch in range(10):
            before = self._usec()
            chosen = numbers[batch::10]
            for number in chosen:
                action(number)
            took.append((self._usec() - before) / len(chosen))
        return statistics.median(took)

    def _usec(self):
        told = self.store.redis("INFO", "commandstats").decode()
        return sum(int(usec) for usec in re.findall(r"^cmdstat_fcall:calls=\d+,usec=(\d+)", told, re.M))


def bench_long_line(lua_test, out):
    """Leaving and joining again, at random places of a long line and of a short one; then handing on."""
    us = {}
    for length in (SHORT_LINE, LONG_LINE):
        long_line = LongLine(lua_test, f"line-of-{length}")
        for _ in range(length):
            long_line.join()
        places = list(range(1, length + 1))

        def leave_and_join(_, line=long_line, places=places):
            at = (line.joined * 7919) % len(places)
            line.leave(places[at])
            line.join()
            places[at] = line.joined
        us[length] = long_line.spend_us(leave_and_join, list(range(LEAVERS)))
        out.figure(f"us of leaving the line and joining it, {length:,} in it", us[length])
    out.figure(f"leaving and joining among {LONG_LINE:,}, ratio to {SHORT_LINE}", us[LONG_LINE] / us[SHORT_LINE], "at most",
               1.25)
