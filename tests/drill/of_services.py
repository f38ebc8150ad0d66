"""Accidents of services, disks, clocks and counters."""

import errno
import os

from history import ACQUIRE, ALL_OVER, CLOSED, OK, OPENED, UNKNOWN, now_ms
from load import LEASES, LOADED, LONG
from stage import GRANT_MS, READY_MS, Wrong, delete, wait_for, wait_ms
from world.record import stripe_key, stripe_of
from world.shim import FULL, NO_SYNC, READ_ONLY, Shim

NOTICE_MS = 5000


def returns(service):
    service.start()
    service.wait_ready()


# -- a lease service is killed between reserving and granting

def kill_service(drill):
    drill.begin(token_block=4)  # small enough that a block is used up more than once between two kills
    client, stage, epoch = drill.client(), drill.stage, drill.epoch()
    hold = client.new_hold(LONG, 120000)
    if client.acquire(hold) != OK:
        raise Wrong(f"a spare lease was not granted: {client.code}")
    for _ in drill.rounds():
        victims = stage.leases if drill.random.randrange(4) == 0 else [drill.random.choice(stage.leases)]
        drill.pause_a_moment(120)
        for service in victims:
            service.kill()
        for service in stage.leases:
            drill.check_reserved(service)
        since, from_ms = drill.history.place(), now_ms()
        for service in victims:
            service.start()
        drill.goes_on(since, from_ms)
        if client.renew(hold) != OK:  # it has nothing to do with the service that dies
            raise Wrong(f"a hold of 120 s did not survive the death of a lease service: {client.code}")
        drill.let_work(3)
    if drill.epoch() != epoch:
        raise Wrong(f"the epoch rose from {epoch} to {drill.epoch()} though Redis ran all the while")


# -- an instance that was silent for long

BLOCK = 50


def idle_instance(drill):
    """One is silent, the other grants past several blocks and dies; the store is put back to before all that. The silent one
    knows of no token of that time: if it admitted the store alone, they would come a second time."""
    drill.begin(token_block=BLOCK)
    stage = drill.stage
    for number in drill.rounds():
        silence, wake = [("stop", "go_on"), ("end", "start"), (None, None)][number % 3]
        idle, active = drill.random.sample(stage.leases, 2)
        client = drill.client(active)
        drill.let_work(60)
        stage.copy_data("before")
        if silence:
            getattr(idle, silence)()
        use_tokens(client, LONG, idle.read_state().floor + 4 * BLOCK, 40000)
        active.kill()
        stage.kill_redis()
        drill.mark_while_nobody_asks(ALL_OVER, CLOSED)
        stage.put_back("before")
        stage.return_redis()
        known = active.read_state()
        if wake:
            getattr(idle, wake)()
        stays_out(drill, idle, known.member)
        drill.history.mark(OPENED)
        since = drill.history.place()
        active.start()
        drill.goes_on(since, now_ms())
        use_tokens(client, LONG, known.floor, GRANT_MS)


def stays_out(drill, idle, missing):
    """It must wait for the other, by name, as long as the other is away."""
    epoch = drill.epoch()
    idle.wait_unready(missing, READY_MS)
    wait_ms(3000)
    drill.expect_refusal(idle, "store-not-admitted")
    if drill.epoch() != epoch:
        raise Wrong(f"{idle.name} admitted the store alone: epoch {epoch} to {drill.epoch()}")


def use_tokens(client, lease, above, limit_ms):
    """Grants and releases a spare lease as fast as one client can, until a token is above this."""
    until_ms, token = now_ms() + limit_ms, 0
    while token <= above:
        hold = client.new_hold(lease, 1000)
        if client.acquire(hold) == OK:
            token = hold.token
            client.release(hold)
        else:
            wait_ms(20)
        if now_ms() >= until_ms:
            raise Wrong(f"no token above {above} was granted within {limit_ms} ms: {token} {client.code}")


# -- a state directory is deleted

def lost_directory(drill):
    """Of one, while it runs; of one, while it is down; of all, while they are down; of all, while they run."""
    drill.begin(token_block=40)
    for number in drill.rounds():
        drill.let_work(50)
        [lost_running, lost_killed, all_killed, all_running][number % 4](drill)


def goes_on(drill):
    drill.goes_on(drill.history.place(), now_ms(), READY_MS)
    drill.let_work(50)


def comes_as_newcomer(service, old):
    returns(service)
    if service.read_state().member == old.member:
        raise Wrong(f"{service.name} came back as the member {old.member}, whose directory is lost")


def lost_running(drill):
    """It is restarted; then the old member is forgotten, then Redis restarts."""
    stage, loser = drill.stage, drill.stage.leases[1]
    old = loser.read_state()
    delete(loser.state)
    loser.wait_unready("state-dir", NOTICE_MS)
    # What it had recorded is all that may be granted, though nobody can read it any more.
    drill.wait_refusal(loser, 0, "floor-reached")
    floor = int(stage.redis("HGET", f"pawl:{{store}}:m:{old.member}", "floor"))
    if drill.history.highest_token > floor:
        raise Wrong(f"token {drill.history.highest_token} was granted, above the lost floor {floor}")
    loser.kill()
    comes_as_newcomer(loser, old)
    goes_on(drill)
    stage.leases[0].insist("forget", old.member)
    # As long as a state directory lists it a restart of Redis would still wait for it.
    wait_for(lambda: all(old.member not in one.read_state().members for one in stage.leases), NOTICE_MS,
             lambda: f"the member {old.member} is still listed in a state directory {NOTICE_MS} ms after it was forgotten")
    stage.kill_redis()
    stage.return_redis()
    goes_on(drill)


def lost_killed(drill):
    """Redis restarts first, and waits for the old member until somebody recovers: its floor may be above all others."""
    stage, loser = drill.stage, drill.stage.leases[1]
    host, old = stage.leases[0], loser.read_state()
    loser.kill()
    delete(loser.state)
    comes_as_newcomer(loser, old)
    goes_on(drill)
    stage.kill_redis()
    drill.mark_while_nobody_asks(CLOSED)
    stage.return_redis()
    host.wait_unready(old.member, READY_MS)
    wait_ms(2000)
    drill.expect_refusal(host, "store-not-admitted")
    done, said = host.run_store("forget", old.member)
    if done:  # what it knows may be needed now
        raise Wrong(f"the member {old.member} was forgotten though the store waits for it: {said[:200]}")
    recover(drill)
    goes_on(drill)


def recover(drill):
    """What an operator would try: first a floor that is too low, then one above everything that was seen."""
    host, highest = drill.stage.leases[0], drill.history.highest_token
    done, said = host.run_store("recover", "--yes", "--floor", str(highest // 2))
    if done:
        raise Wrong(f"pawl store recover took floor {highest // 2} though token {highest} was granted: {said[:200]}")
    drill.history.mark(OPENED)
    host.insist("recover", "--yes", "--floor", str(highest + 1000000))


def all_killed(drill):
    for service in drill.stage.leases:
        service.kill()
    for service in drill.stage.leases:
        delete(service.state)
    close_and_start_all(drill)


def all_running(drill):
    for service in drill.stage.leases:
        delete(service.state)
    for service in drill.stage.leases:
        service.wait_unready("state-dir", NOTICE_MS)
    for service in drill.stage.leases:
        service.kill()
    close_and_start_all(drill)


def close_and_start_all(drill):
    """Nobody may act before pawl store recover."""
    drill.load.pause()
    wait_ms(2500)  # Redis has lost nothing: under a hold that is still live the gateway rightly writes
    drill.history.mark(CLOSED)
    drill.load.resume()
    for service in drill.stage.leases:
        service.start()
    for service in drill.stage.leases:
        service.wait_unready("store-not-admitted", READY_MS)
        drill.expect_refusal(service, "store-not-admitted")
    wait_ms(2000)
    recover(drill)
    goes_on(drill)


# -- the disk of a state directory fails

DISK_NOTICE_MS = 15000
FAULTS = [(FULL, errno.ENOSPC), (READ_ONLY, errno.EROFS), (NO_SYNC, errno.EIO)]
# In a mount namespace of its own: gone with the process, and nobody else sees it.
TMPFS = 'mount -t tmpfs -o size=16k,mode=700 tmpfs "$0" && exec "$@"'


def full_disk(drill):
    """By the shim, of one lease service or of both; where we are root, also a real file system of 16 KiB that is full."""
    drill.needs_shim()
    drill.begin(token_block=30)
    shims = restart_under_shims(drill)
    for number in drill.rounds():
        (fault, error), failing = FAULTS[number % 3], shims[:number // 3 % 2 + 1]
        service, failed = drill.stage.leases[0], shims[0].counts()[2]
        drill.let_work(150)
        for shim in failing:
            shim.set(fault=fault)
        grants_stop(drill, service, os.strerror(error))
        if shims[0].counts()[2] == failed:
            raise Wrong("the disk did not fail even once")
        if number // 6 % 2 == 1:
            kill_while_it_fails(drill, service, shims[0])
        for shim in failing:
            shim.set()
        disk_is_back(drill)
    if os.geteuid() == 0:
        tmpfs_fills(drill)
        drill.note("a real tmpfs of 16 KiB was filled up, too")
    else:
        drill.note("not as root: no real tmpfs was filled up")


def restart_under_shims(drill):
    """Each is told its directory, which is there only now."""
    shims = []
    for service in drill.stage.leases:
        shims.append(Shim(drill.shim, service.state + ".shim", service.state))
        service.environment = shims[-1].environment
        service.end()
        returns(service)
        if shims[-1].counts()[0] == 0:
            raise Wrong(f"{service.name} runs without the shim")
    return shims


def grants_stop(drill, service, told):
    """For the reason that is true; none is above what is on the disk."""
    service.wait_unready("state-dir", DISK_NOTICE_MS)
    drill.wait_refusal(service, 0, "floor-reached", 4 * DISK_NOTICE_MS)
    highest, (_, body) = drill.history.highest_token, service.readyz()
    if told not in body or service.state not in body:
        raise Wrong(f'readyz of {service.name} does not name the directory and "{told}": {body[:400]}')
    wait_ms(400)
    drill.check_reserved(service)
    if drill.history.highest_token != highest:
        raise Wrong(f"grants went on after floor-reached: {highest} to {drill.history.highest_token}")


def disk_is_back(drill):
    highest = drill.history.highest_token
    drill.stage.wait_all_ready()
    wait_for(lambda: drill.history.highest_token > highest, GRANT_MS, lambda: f"no token above {highest} was granted")
    drill.let_work(150)


def kill_while_it_fails(drill, service, shim):
    """Started again it may refuse as long as the disk fails."""
    service.kill()
    try:
        service.start()
    except TimeoutError:
        pass
    wait_ms(400)
    drill.check_reserved(service)
    shim.set()
    if not service.runs():
        service.start()


def tmpfs_fills(drill):
    service = drill.stage.leases[1]
    place = service.state
    service.before = ["unshare", "--mount", "sh", "-c", TMPFS, place]
    service.end()
    returns(service)
    service.seen_at = f"/proc/{service.daemon.process.pid}/root{place}"
    filler = os.open(service.seen_at + "/filler", os.O_WRONLY | os.O_CREAT, 0o600)

    def notices():
        """Filled again and again, because the file that is replaced gives its own page back."""
        try:
            while os.write(filler, bytes(4096)):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        status, body = service.readyz()
        return status == 503 and "state-dir" in body
    drill.let_work(150)
    wait_for(notices, DISK_NOTICE_MS, lambda: "the real disk could not be filled, or nobody noticed", again_ms=20)
    grants_stop(drill, service, os.strerror(errno.ENOSPC))
    os.close(filler)
    os.unlink(service.seen_at + "/filler")
    disk_is_back(drill)


# -- Redis' clock of the day jumps, while the machine's monotonic one runs on

DAY_S = 86400
OUTLIVES_MS, RESTART_TTL_MS, TAKEN_TTL_MS = 3000, 5000, 600000
OLD = 8  # holds that are over and are tried again and again


class Clocks:
    """A hold is taken; the clock jumps; then another client asks for the same lease until it has it: never before the store says
    that the first is over, and never later than the first's ttl and a little; what the first is told then, and after later jumps,
    is that it is over, for ever."""

    def __init__(self, drill, shim):
        self.drill, self.shim, self.clock_s = drill, shim, 0
        self.one, self.two, self.old, self.slowest_ms = drill.client(), drill.client(), [], 0

    def jump(self, seconds):
        self.clock_s += seconds
        self.shim.set(clock_s=self.clock_s)

    def take(self, lease, ttl_ms):
        """A time that nobody has noted yet is refused: a pulse comes within a tick."""
        for _ in range(40):
            hold = self.one.new_hold(lease, ttl_ms)
            if self.one.acquire(hold) == OK:
                return hold
            wait_ms(50)
        raise Wrong(f"a free lease was not granted: {self.one.code}")

    def take_and_jump(self, number, lease):
        drill, ttl_ms = self.drill, self.drill.random.randint(200, 1500)
        if number % 10 == 5:
            hold = self.take(lease, RESTART_TTL_MS)
            self.jump(-DAY_S)
            wait_ms(RESTART_TTL_MS)
            for service in [*drill.stage.leases, drill.stage.gateway]:
                service.kill()
            for service in [*drill.stage.leases, drill.stage.gateway]:
                service.start()
            drill.stage.wait_all_ready()
        elif number % 4 == 3:  # and back
            self.jump(DAY_S)
            hold = self.take(lease, ttl_ms)
            drill.pause_a_moment(50)
            self.jump(-DAY_S)
        else:
            hold = self.take(lease, ttl_ms)
            drill.pause_a_moment(200)
            self.jump(drill.random.choice([DAY_S, -DAY_S, 1, -1]))
        return hold

    def take_over(self, lease, until_ms):
        """Another client, until it has the lease."""
        hold = self.two.new_hold(lease, TAKEN_TTL_MS)
        while (end := self.two.acquire(hold)) != OK:
            if now_ms() > until_ms:
                raise Wrong(f"the lease was not free {OUTLIVES_MS} ms after the end of its ttl, after a jump: {self.two.code}")
            if end != UNKNOWN:  # else it may be ours already
                hold = self.two.new_hold(lease, TAKEN_TTL_MS)
            wait_ms(20)
        return hold

    def round(self, number):
        lease = self.drill.random.randrange(LOADED, len(LEASES))
        first = self.take_and_jump(number, lease)
        over_ms = now_ms() if first.until_ms + OUTLIVES_MS < now_ms() else first.until_ms
        second = self.take_over(lease, over_ms + OUTLIVES_MS)
        self.slowest_ms = max(self.slowest_ms, now_ms() - over_ms)
        self.old = [*self.old, first][-OLD:]
        for hold in self.old:  # the judge sees it, too; here it is asked for on purpose
            if OK in (self.one.write(hold), self.one.renew(hold)):
                raise Wrong(f"the hold with token {hold.token} lives again after a jump of the clock")
        self.drill.let_work(10)
        if self.two.release(second) != OK:
            raise Wrong(f"a hold of {TAKEN_TTL_MS // 1000} s could not be released: {self.two.code}")


def clock_jump(drill):
    drill.needs_shim()
    shim = Shim(drill.shim, os.path.join(drill.folder, "shim"))
    drill.begin(redis_environment=shim.environment)
    clocks = Clocks(drill, shim)
    for number in drill.rounds():
        clocks.round(number)
    if shim.counts()[1] == 0:
        raise Wrong("Redis never read a clock that had jumped")
    drill.note(f"the longest that a hold kept another waiting beyond its ttl: {clocks.slowest_ms} ms")


# -- the counter of a stripe comes to its end

TOKEN_LAST = 999999999999999
ENDS = [(LOADED, 0), (LOADED + 1, 1), (LOADED + 2, 2), (0, 7)]  # each in another stripe; the last is one of the load's


def counter_end(drill):
    """So many tokens are left: exactly as many grants, then token-exhausted for ever; other stripes go on."""
    if drill.wanted > len(ENDS):  # what was used up once cannot be preset again: that would be a duplicate of ours
        drill.wanted = len(ENDS)
        drill.note(f"there are no more than {len(ENDS)} rounds")
    drill.begin()
    client = drill.client()
    for number in drill.rounds():
        lease, left = ENDS[number]
        drill.stage.redis("HSET", stripe_key(LEASES[lease]), "counter", TOKEN_LAST - left)
        last = range(TOKEN_LAST - left + 1, TOKEN_LAST + 1)
        if lease < LOADED:
            load_uses_up(drill, lease, last)
        else:
            for token in last:
                grant_one(client, lease, token)
        for service in drill.stage.leases:
            body = drill.wait_refusal(service, lease, "token-exhausted")
            if '"retryable":false' not in body:
                raise Wrong(f"token-exhausted is not told as it should: {body[:400]}")
        drill.let_work(60)


def grant_one(client, lease, token):
    """And its release. The services first record that they reserve so high a token."""
    def is_granted():
        hold[0] = client.new_hold(lease, 10000)
        end = client.acquire(hold[0])
        if end != OK and client.code != "floor-reached":
            raise Wrong(f"token {token} of the range was not granted: {client.code}")
        return end == OK
    hold = [None]
    wait_for(is_granted, GRANT_MS, lambda: f"token {token} of the range was not granted: {client.code}", again_ms=20)
    if hold[0].token != token:
        raise Wrong(f"token {hold[0].token} was granted where {token} was next")
    if client.release(hold[0]) != OK:
        raise Wrong(f"token {token} could not be released: {client.code}")


def load_uses_up(drill, lease, last):
    """Each of the last tokens of the stripe is granted to a client of the load."""
    def missing():
        with drill.history.changed:
            told = {one.token for one in drill.history.events if one.kind == ACQUIRE and one.end == OK and
                    stripe_of(LEASES[one.lease]) == stripe_of(LEASES[lease])}
        return set(last) - told
    wait_for(lambda: not missing(), GRANT_MS, lambda: f"of the last tokens of a stripe these were not granted: {missing()}", 20)
