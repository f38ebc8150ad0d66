"""Accidents of Redis: emptied, killed, its files cut, old ones put back, another store's put in place."""

import os
import shutil

from history import ALL_OVER, CLOSED, NOT_DONE, OK, OPENED, OVER, now_ms
from load import LEASES, LONG, SPARE
from stage import ADMIT_MS, READY_MS, Wrong, wait_ms
from world import read_token
from world.record import record_of

LONG_TTL_MS, REVIVED_TTL_MS, LAST_TTL_MS = 3600000, 120000, 30000
TAIL_BYTES = 16384
BACKUPS = 4  # "0" is from before the first grant


def took(client, lease, ttl_ms):
    """A hold of a lease that nobody else wants, and a write with it."""
    hold = client.new_hold(lease, ttl_ms)
    if client.acquire(hold) != OK or client.write(hold) != OK:
        raise Wrong(f"a lease that nobody else wants was not granted, or its write refused: {client.code}")
    return hold


def survived(drill, client, hold, then, what):
    """The read first: what was written before the accident must be there."""
    if client.read(hold.lease) != OK or client.write(hold) != OK or then(hold) != OK:
        raise Wrong(f"{what} did not survive round {drill.played + 1}: {client.code}")


# -- emptied, killed

def flushall(drill):
    drill.begin()
    for _ in drill.rounds():
        drill.let_work(6)
        from_ms = now_ms()
        drill.stage.redis("FLUSHALL")
        drill.history.mark(ALL_OVER)
        drill.history.mark(CLOSED)
        drill.all_refuse("store-not-ours")
        drill.pause_a_moment()
        since = drill.history.mark(OPENED)
        drill.stage.leases[0].recover()
        drill.goes_on(since, from_ms)


def kill_always(drill):
    drill.begin()
    client = drill.client()
    long = took(client, LONG, LONG_TTL_MS)
    for _ in drill.rounds():
        drill.let_work(6)
        drill.pause_a_moment()
        last = took(client, SPARE, LAST_TTL_MS)  # the last that is acknowledged before the kill
        drill.stage.kill_redis()
        since = drill.history.place()
        drill.stage.return_redis()
        drill.goes_on(since, now_ms(), drill.return_ms)
        survived(drill, client, last, client.release, "the last grant before the kill")
        survived(drill, client, long, client.renew, "a hold of an hour")


def kill_everysec(drill):
    """A killed process loses nothing that it has written: the kernel has it. So the file is cut back to what it was right before
    a release, as if the machine had died: up to a second of acknowledged writes is gone with it."""
    drill.begin(appendfsync="everysec", flags=["--allow-unsafe-redis"])
    client, revived, stage = drill.client(), 0, drill.stage
    for number in drill.rounds():
        drill.let_work(6)
        hold = lose_a_release(drill, client)
        since, from_ms = drill.history.place(), now_ms()
        stage.return_redis()
        known = record_of(stage.redis, LEASES[hold.lease])
        revived += (known.get("s"), known.get("t")) == ("held", str(hold.token))
        client.write(hold)  # at once; the judge sees what came of it
        drill.goes_on(since, from_ms)
        if client.write(hold) != OVER:
            raise Wrong(f"a released hold that came back from the dead was not refused: {client.code}")
        if number % 10 == 0:
            stage.rewrite_aof()
    drill.note(f"a released hold came back in {revived} of {drill.played} rounds, and could not write")
    if not revived:
        raise Wrong("no released hold came back: nothing was shown")


def lose_a_release(drill, client):
    """Released, acknowledged, and then the release is lost."""
    hold = took(client, SPARE, REVIVED_TTL_MS)
    before = drill.stage.wait_aof(read_token(hold.fencing_token)["hold"])
    if client.release(hold) != OK:
        raise Wrong(f"a release was refused: {client.code}")
    drill.stage.kill_redis()
    if drill.stage.aof()[0] != before[0]:
        raise Wrong("Redis rewrote its file in between")
    drill.stage.cut_aof(*before)
    return hold


# -- its file is cut

def cut_aof(drill):
    drill.begin(flags=["--allow-unsafe-redis"])
    stage, refused, fixed, recovered = drill.stage, 0, 0, 0
    for number in drill.rounds():
        drill.let_work(3)
        stage.load_truncated = "no" if number % 2 else "yes"
        stage.kill_redis()
        stage.copy_data("whole")
        path, size = stage.aof()
        # Anywhere, or near the end, where the last commands lie.
        stage.cut_aof(path, drill.random.randint(drill.random.choice([0, max(0, size - TAIL_BYTES)]), size))
        since, from_ms = drill.history.place(), now_ms()
        if not stage.start_redis():  # it is repaired, or the whole one is put back, by turns
            if refused % 2 == 0:
                stage.fix_aof()
                fixed += 1
            else:
                stage.put_back("whole")
            refused += 1
            stage.return_redis()
        if stage.redis("DBSIZE") == 0:  # what is left of a store the services admit by themselves; here an operator must act
            recovered += 1
            drill.all_refuse("store-not-ours")
            stage.leases[0].recover()
        drill.goes_on(since, from_ms)
    drill.note(f"Redis refused to start {refused} times: {fixed} repaired with redis-check-aof, {refused - fixed} put back; "
               f"{recovered} times nothing was left and pawl store recover was run")


# -- old ones are put back

def back_up_first(drill):
    """As an operator would: with Redis at rest."""
    drill.stage.kill_redis()
    drill.stage.copy_data("0")
    drill.stage.return_redis()
    drill.stage.wait_all_ready(ADMIT_MS)


def restore_backup(drill):
    drill.begin(first=back_up_first)
    client, backups, stage = drill.client(), 1, drill.stage
    for number in drill.rounds():
        drill.let_work(10)
        hold = took(client, LONG, LONG_TTL_MS)
        stage.kill_redis()
        drill.history.mark(ALL_OVER)
        stage.copy_data("now")  # what there is now becomes a backup, and one of before is put in its place
        stage.put_back(str(drill.random.randrange(backups)))
        newest = stage.copy(str(1 + number % (BACKUPS - 1)))
        shutil.rmtree(newest, ignore_errors=True)
        os.rename(stage.copy("now"), newest)
        backups = min(backups + 1, BACKUPS)
        since, from_ms = drill.history.place(), now_ms()
        stage.return_redis()
        holder_is_refused(client, hold)
        drill.goes_on(since, from_ms)


def holder_is_refused(client, hold):
    """Asks until somebody knows: a holder of before is told that its hold is over, never anything else."""
    renewed, write = client.renew(hold), client.write(hold)
    for _ in range(400):
        if renewed == OK or write != NOT_DONE:
            break
        wait_ms(5)
        write = client.write(hold)
    if renewed == OK or write != OVER:
        raise Wrong(f"a hold of before the backup was {'renewed' if renewed == OK else 'not refused'}")


# -- another store's are put in place

def make_foreign(drill):
    """A store of somebody else's, made beside ours: its files are kept as "foreign"."""
    stage = drill.stage
    stage.kill_redis()
    stage.copy_data("ours")
    shutil.rmtree(stage.data)
    stage.return_redis()
    stage.init_store(os.path.join(stage.folder, "stranger"))
    stage.kill_redis()
    stage.copy_data("foreign")
    stage.put_back("ours")
    stage.return_redis()
    stage.wait_all_ready(READY_MS)


def foreign_store(drill):
    drill.begin(first=make_foreign)
    client, stage = drill.client(), drill.stage
    long = took(client, LONG, LONG_TTL_MS)
    for _ in drill.rounds():
        drill.let_work(3)
        from_ms = now_ms()
        stage.kill_redis()
        stage.copy_data("ours")
        stage.put_back("foreign")
        drill.history.mark(CLOSED)
        stage.return_redis()
        foreign_is_refused(drill, client, long)
        stage.kill_redis()
        stage.put_back("ours")
        since = drill.history.mark(OPENED)
        stage.return_redis()
        drill.goes_on(since, from_ms)
        survived(drill, client, long, client.renew, "a hold of an hour")


def foreign_is_refused(drill, client, hold):
    """Nothing is granted, written or left in it."""
    before = drill.stage.redis("DBSIZE")
    drill.all_refuse("store-not-ours")
    if client.write(hold) != NOT_DONE or client.code != "store-not-ours":
        raise Wrong(f'the gateway was to refuse with store-not-ours; it said "{client.code}"')
    drill.pause_a_moment()
    after = drill.stage.redis("DBSIZE")
    if after != before:
        raise Wrong(f"the other store had {before} keys, and has {after} now")
