"""Accidents of three Redis that Sentinel watches: whoever dies, stands still or comes back, what was acknowledged is there, and
nobody else is served."""

import itertools
import os
import queue
import shutil
import socket
import threading

from history import ALL_OVER, CLOSED, NOT_DONE, OK, OPENED, UNKNOWN, now_ms
from load import LONG, SPARE, SPARES
from of_services import restart_under_shims
from stage import ADMIT_MS, GRANT_MS, Wrong, delete, wait_for, wait_ms
from three import BACK_MS, JOIN_MS, Three, ask, copies, is_copied, role
from world.listening import Listening
from world.relay import pump
from world.shim import FULL
from world.trio import Line

HOLD_MS = 600000
NOTICED_MS = 3500  # until the sentinels have noticed and elected: the first grant comes after at most 5.5 s
UNHEARD_MS = 3300  # that are waited for who is not heard (docs/decisions/0050)
KEEP_MS = 1000     # --keep-wait


# -- what all have in common

def rounds(drill, **plan):
    """Of each a number, which says which way it goes, and the primary, when all three are in the set; the last round ends so, too."""
    drill.begin(stage=Three, **plan)
    for number in drill.rounds():
        yield drill.seed + number, drill.stage.settled()
    drill.stage.settled()
    if drill.stage.survived:
        drill.note(f"{drill.stage.survived} holds survived, all that there were")


def insist(do, *given):
    """Until it is known what comes of it: that end."""
    ends = []

    def is_known():
        ends.append(do(*given))
        return ends[-1] not in (NOT_DONE, UNKNOWN)
    wait_for(is_known, GRANT_MS, lambda: f"{do.__name__} has had no known end for {GRANT_MS} ms", again_ms=20)
    return ends[-1]


def held(client, lease):
    hold = client.new_hold(lease, HOLD_MS)
    if insist(client.acquire, hold) != OK or insist(client.write, hold) != OK:
        raise Wrong(f"a lease that nobody else wants was not granted, or its write refused: {client.code}")
    return hold


def survives(drill, client, hold):
    if OK != insist(client.read, hold.lease) or OK != insist(client.write, hold) or OK != insist(client.renew, hold):
        raise Wrong(f"a hold of {HOLD_MS // 1000} s did not survive round {drill.played + 1}: {client.code}")
    drill.stage.survived += 1
    insist(client.release, hold)


def plays(drill, accident, more_ms=0, then=None):
    """A grant must come in time: from now, or from what accident() returns; then() is done when it has. Holds survive."""
    client = drill.client(gateway=drill.stage.gateway)
    holds = [held(client, lease) for lease in SPARES]
    drill.let_work(6)
    drill.pause_a_moment()
    holds.append(held(client, SPARE))  # the last that is acknowledged
    from_ms = now_ms()
    from_ms = accident() or from_ms
    drill.wait_grant(drill.history.place(), from_ms, drill.return_ms + more_ms)
    if then is not None:
        then()
    drill.stage.wait_all_ready(ADMIT_MS)
    for hold in holds:
        survives(drill, client, hold)


def closed(drill, code, do):
    """From do() on everybody must be refused, with this code; "": with any, for some seconds."""
    drill.load.pause()
    do()
    drill.history.mark(CLOSED)
    drill.load.resume()
    if code:
        drill.all_refuse(code)
    drill.pause_a_moment(250 if code else 5000)
    drill.history.mark(OPENED)


# -- the primary

def primary_killed(drill):
    """In every second round what it has done in the moment before does not come to the replicas."""
    for number, primary in rounds(drill):
        stage, lines = drill.stage, [Line(primary.port) for _ in range(2)] if number % 2 else []
        for node, line in zip(stage.others(primary), lines):
            copies(node, line)
        stage.settled()

        def killed():
            for line in lines:
                line.flows.clear()
            wait_ms(300 if lines else 0)
            stage.kill(primary)
            for line in lines:
                line.lead_to(primary.port)
        plays(drill, killed, NOTICED_MS)
        stage.start(primary, stage.primary() if number % 4 else None)  # now and then as one that has heard of nothing
        for line in lines:
            line.close()


def primary_stops(drill):
    """Nothing may be answered by it, when another one is primary, also not to a gateway that hears of nobody else."""
    for number, primary in rounds(drill):
        stage, client = drill.stage, drill.client(gateway=drill.stage.gateway)
        stage.leave(primary)
        goes_on = threading.Timer((2.5, 30)[number % 2], primary.go_on)
        old = held(client, LONG)

        def stops():
            primary.stop()
            goes_on.start()
        plays(drill, stops, NOTICED_MS + UNHEARD_MS)
        insist(client.release, old)
        newer = held(client, LONG)
        left = drill.client(gateway=stage.left)

        def is_over():
            if left.write(old) == OK:
                raise Wrong(f"a hold that was released wrote through the gateway that was left in round {drill.played + 1}")
            return not goes_on.is_alive() and (role(primary) == b"slave" or stage.primary() is primary)
        wait_for(is_over, 30000 + BACK_MS, lambda: "the former primary did not become a replica", again_ms=20)
        insist(client.release, newer)
        stage.leave_no_more()


def machine_dies(drill):
    """The primary and a lease service at once."""
    for number, primary in rounds(drill):
        stage, service = drill.stage, drill.stage.leases[number % 3]

        def dies():
            stage.kill(primary)
            service.kill()
        plays(drill, dies, NOTICED_MS + UNHEARD_MS)
        stage.start(primary, stage.primary())
        service.start()
        service.wait_ready()


def promoted_twice(drill):
    """Another node before the one before it can be admitted: too few registrars are heard, or all of them in every second round."""
    for number, primary in rounds(drill):
        stage, (second, third) = drill.stage, drill.stage.others(primary)
        away = stage.leases[:2] if number % 2 else []

        def has_asked():
            stream = (ask(second, "INFO", "replication") or b"").split(b"master_replid:")[-1][:40]
            return (ask(third, "HGET", "pawl:{store}", "led") or b"").startswith(stream)

        def promoted():
            for service in away:
                service.kill()
            stage.prefer(second, primary)
            stage.kill(primary)
            wait_for(has_asked, BACK_MS, lambda: "nobody has asked the node that was promoted first", again_ms=2)
            stage.end_watch()
            stage.kill(second)
            from_ms = now_ms()
            ask(third, "REPLICAOF", "NO", "ONE")
            stage.watch(third)
            stage.start(primary, third)
            for service in away:
                service.start()
            return from_ms
        plays(drill, promoted, UNHEARD_MS + JOIN_MS)
        stage.start(second, third)


# -- replicas

def replica_killed(drill):
    for _, primary in rounds(drill):
        stage, (victim, other) = drill.stage, drill.stage.others(primary)
        plays(drill, lambda: stage.kill(victim), KEEP_MS)
        stage.wait_kept(primary, other)
        stage.start(victim, primary)
        wait_for(lambda: is_copied(victim), BACK_MS, lambda: "the replica did not come to copy the primary")
        stage.wait_kept(*stage.nodes, limit_ms=JOIN_MS + drill.return_ms)


class Late(Listening):
    """In front of a node: whatever passes is late by so much."""

    def __init__(self, port, late_ms):
        self.to, self.late_ms = port, late_ms
        self.listen()

    def _serve(self, near):
        far = socket.create_connection(("127.0.0.1", self.to))
        for source, sink in ((near, far), (far, near)):
            pieces = queue.SimpleQueue()
            threading.Thread(target=self._carry, args=(pieces, sink), daemon=True).start()
            threading.Thread(target=pump, args=(source, sink, lambda piece, pieces=pieces: self._meet(pieces, piece)),
                             daemon=True).start()

    def _meet(self, pieces, piece):
        pieces.put((now_ms() + self.late_ms, piece))
        return False

    @staticmethod
    def _carry(pieces, sink):
        try:
            while True:
                due_ms, piece = pieces.get()
                wait_ms(max(0, due_ms - now_ms()))
                sink.sendall(piece)
        except OSError:
            pass


def replica_slow(drill):
    """Its link has a delay of a second, until the sentinels lead it past that."""
    for _, primary in rounds(drill):
        victim, late = drill.stage.others(primary)[0], Late(primary.port, 1000)
        plays(drill, lambda: copies(victim, late), KEEP_MS, lambda: drill.let_work(60))
        wait_for(lambda: f"master_port:{primary.port}\r".encode() in (ask(victim, "INFO", "replication") or b""), BACK_MS,
                 lambda: "the sentinels left the replica where it was")
        late.close()


def replicas_gone(drill):
    """Both: nothing is answered until one is back."""
    for number, primary in rounds(drill):
        stage, others = drill.stage, drill.stage.others(primary)

        def gone():
            closed(drill, "store-not-kept", lambda: [stage.kill(node) for node in others])
            from_ms = now_ms()
            for node in others[number % 2:]:
                stage.start(node, primary)
            return from_ms
        plays(drill, gone, JOIN_MS)
        for node in others[:number % 2]:
            stage.start(node, primary)


# -- nodes outside of the set

def put_outside(stage, node, primary):
    """It copies the primary, but nobody waits for it, for it may lose what it says that it has."""
    stage.kill(node)
    stage.start(node, primary, "--appendfsync", "everysec")
    stage.wait_kept(*[one for one in stage.nodes if one is not node])
    wait_for(lambda: is_copied(node), BACK_MS, lambda: "the replica did not come to copy the primary")


def promote_outside(stage, outside, primary):
    """By Sentinel, which has the other one copy it."""
    stage.prefer(outside, primary)
    stage.kill(primary)
    wait_for(lambda: role(outside) == b"master", BACK_MS, lambda: "the node outside of the set was not promoted")
    stage.end_watch()


def outsider(drill):
    """Sentinel promotes it, and has the other one copy it; an operator makes the former primary the primary again."""
    for _, primary in rounds(drill):
        stage, (outside, member) = drill.stage, drill.stage.others(primary)
        put_outside(stage, outside, primary)

        def promoted():
            closed(drill, "store-behind", lambda: promote_outside(stage, outside, primary))
            stage.kill(outside)
            from_ms = now_ms()
            stage.start(primary)
            copies(member, primary)
            return from_ms
        plays(drill, promoted, JOIN_MS)
        stage.watch(primary)
        stage.start(outside, primary)


def loss_accepted(drill):
    """Such a node is promoted, and the set does not come back: an operator takes what there is. All holds have ended then."""
    for _, primary in rounds(drill):
        stage, (outside, member) = drill.stage, drill.stage.others(primary)
        put_outside(stage, outside, primary)
        drill.let_work(6)

        def promoted():
            promote_outside(stage, outside, primary)
            stage.kill(member)
            ask(outside, "CONFIG", "SET", "appendfsync", "always")  # else no service serves from it
            drill.history.mark(ALL_OVER)
        closed(drill, "store-behind", promoted)
        from_ms = now_ms()
        for node in (primary, member):
            delete(stage.data_of(node))
            stage.start(node, outside)
        stage.redis = outside
        stage.watch(outside)
        stage.leases[0].insist("accept-loss", f"127.0.0.1:{outside.port}", "--yes")
        drill.goes_on(drill.history.place(), from_ms, ADMIT_MS + JOIN_MS + drill.return_ms)


def copied_another(drill):
    """The primary copies a node outside of the set and is promoted again, under the same run_id; then the other member is."""
    for _, primary in rounds(drill):
        stage, (outside, member) = drill.stage, drill.stage.others(primary)
        put_outside(stage, outside, primary)

        def copies_it():
            ask(member, "REPLICAOF", "NO", "ONE")
            member.stop()
            ask(outside, "REPLICAOF", "NO", "ONE")
            copies(primary, outside)
            wait_for(lambda: is_copied(primary), BACK_MS, lambda: "the primary did not copy the other node")
            ask(primary, "REPLICAOF", "NO", "ONE")
            stage.kill(outside)

        def copied():
            stage.end_watch()
            closed(drill, "store-behind", copies_it)
            stage.kill(primary)
            from_ms = now_ms()
            member.go_on()
            stage.start(primary, member)
            return from_ms
        plays(drill, copied, JOIN_MS)
        stage.watch(member)
        stage.start(outside, member)


# -- disks

ORDERS = list(itertools.permutations(range(3)))


def nodes_killed(drill):
    """And the sentinels, at once; started in each order. In every second round one has just been emptied, and what it has
    acknowledged is not on its disk yet."""
    for number, primary in rounds(drill):
        stage, nodes = drill.stage, [primary, *drill.stage.others(primary)]

        def killed():
            stage.end_watch()
            if number % 2:
                resyncs(stage, nodes[1], primary)
            for node in nodes:
                stage.kill(node)
            from_ms = now_ms()
            for at in ORDERS[number % 6]:
                stage.start(nodes[at], primary if at else None)
            return from_ms
        plays(drill, killed, JOIN_MS)
        stage.watch(primary)


def resyncs(stage, node, primary):
    """Until it has copied all, and writes its file anew, slowly."""
    stage.kill(node)
    delete(stage.data_of(node))
    stage.start(node, primary, "--rdb-key-save-delay", "5000")
    wait_for(lambda: b"aof_rewrite_in_progress:1" in (ask(node, "INFO", "persistence") or b""), BACK_MS,
             lambda: "the replica did not write its file anew", again_ms=2)


def replaced(drill, change):
    """What a former primary has on its disk, which comes back as one, and in every second round what a replica has."""
    for number, primary in rounds(drill):
        stage, replica = drill.stage, drill.stage.others(primary)[0]
        node, yesterday = (replica if number % 2 else primary), stage.copy("yesterday")
        stage.kill(replica)
        stage.wait_kept(*[one for one in stage.nodes if one is not replica])
        shutil.rmtree(yesterday, ignore_errors=True)
        shutil.copytree(stage.data_of(replica), yesterday)
        stage.start(replica, primary)
        stage.settled()
        drill.let_work(30)
        plays(drill, lambda: stage.kill(node), KEEP_MS if number % 2 else NOTICED_MS)
        delete(stage.data_of(node))
        change(yesterday, stage.data_of(node))
        stage.start(node, primary if number % 2 else None)


def node_emptied(drill):
    replaced(drill, lambda _yesterday, _data: None)


def old_disk(drill):
    replaced(drill, shutil.copytree)


# -- the disk of a registrar

def replace_registrar(drill, service, old):
    """With an empty directory it is another one, and takes its own place by an operator's word."""
    stage = drill.stage
    service.start()
    service.wait_ready()
    stage.settled()
    host, new = next(one for one in stage.leases if one is not service), service.read_state().member
    host.insist("registrar", "add", new)
    host.insist("registrar", "remove", old)


def registrar_lost(drill):
    for number, primary in rounds(drill):
        stage, service = drill.stage, drill.stage.leases[number % 3]
        old = service.read_state().member
        service.kill()
        delete(service.state)
        plays(drill, lambda: stage.kill(primary), NOTICED_MS + UNHEARD_MS)
        stage.start(primary, stage.primary())
        replace_registrar(drill, service, old)


def registrar_old(drill):
    """Two record that a node was taken out of the set; of one the directory is set back to before that, the other is away, and the
    third has not heard of it: a majority that says that this node may take over. A gateway knows better."""
    for _, primary in rounds(drill):
        stage, (outside, member) = drill.stage, drill.stage.others(primary)
        set_back, witness, unaware = drill.random.sample(stage.leases, 3)
        unaware.kill()
        shutil.copytree(set_back.state, stage.copy("state"), ignore=shutil.ignore_patterns("*.new"))  # it is being written
        put_outside(stage, outside, primary)

        def is_promoted():
            member.stop()
            for service in (set_back, witness):
                service.kill()
            stage.kill(primary)
            ask(outside, "CONFIG", "SET", "appendfsync", "always")  # else none would start with it
            delete(set_back.state)
            os.rename(stage.copy("state"), set_back.state)
            for service in (set_back, unaware):
                service.start()
            wait_for(lambda: role(outside) == b"master", BACK_MS, lambda: "the node outside of the set was not promoted")

        def promoted():
            closed(drill, "", is_promoted)
            stage.end_watch()
            stage.kill(outside)
            from_ms = now_ms()
            member.go_on()
            ask(member, "REPLICAOF", "NO", "ONE")
            stage.watch(member)
            witness.start()
            stage.start(primary, member)
            return from_ms
        plays(drill, promoted, JOIN_MS + UNHEARD_MS)
        stage.start(outside, member)


def registrar_full(drill):
    """Of one: the two others are a majority."""
    drill.needs_shim()
    shims = []
    for number, primary in rounds(drill, first=lambda _: shims.extend(restart_under_shims(drill))):
        stage, shim = drill.stage, shims[number % 3]
        shim.set(fault=FULL)
        plays(drill, lambda: stage.kill(primary), NOTICED_MS, shim.set)
        stage.start(primary, stage.primary())


def registrar_late(drill):
    """It stands still from some moment of the failover on, for instance when it has promised and has not reported."""
    for number, primary in rounds(drill):
        stage, service = drill.stage, drill.stage.leases[number % 3]

        def dies():
            stage.kill(primary)
            wait_ms(drill.random.randint(0, NOTICED_MS))
            service.stop()
        plays(drill, dies, 2 * NOTICED_MS + UNHEARD_MS, service.go_on)
        stage.start(primary, stage.primary())


# -- sentinels, clocks

def sentinels_gone(drill):
    """One, and then the primary; or all, and then the primary, and then they come back."""
    for number, primary in rounds(drill):
        stage, gone = drill.stage, drill.stage.sentinels[:3 if number % 2 else 1]
        for sentinel in gone:
            sentinel.kill()
        drill.let_work(30)

        def dies():
            stage.kill(primary)
            if number % 2:
                drill.all_refuse("store-unavailable")
            from_ms = now_ms()
            for sentinel in gone:
                sentinel.start()
            return from_ms
        plays(drill, dies, 2 * NOTICED_MS)
        stage.start(primary, stage.primary())


def clock_behind(drill):
    """Of the new primary, by an hour; then one with the right time takes over from it, an hour ahead."""
    drill.needs_shim()
    for _, primary in rounds(drill, shim=drill.shim):
        stage, late = drill.stage, drill.stage.others(primary)[0]
        clock = stage.clocks[stage.nodes.index(late)]
        stage.kill(late)
        stage.wait_kept(*[node for node in stage.nodes if node is not late])
        clock.set(clock_s=-3600)
        stage.start(late, primary)
        stage.settled()
        stage.prefer(late, primary)
        plays(drill, lambda: stage.kill(primary), NOTICED_MS)
        if role(late) != b"master" or clock.counts()[1] == 0:
            raise Wrong("the node whose clock is behind did not become primary")
        stage.start(primary, late)
        stage.settled()
        stage.kill(late)
        since, from_ms = drill.history.place(), now_ms()
        drill.goes_on(since, from_ms, NOTICED_MS + drill.return_ms)
        clock.set()
        stage.start(late, stage.primary())
