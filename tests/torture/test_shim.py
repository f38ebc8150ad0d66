#!/usr/bin/python3
"""test_shim.py - the shim that drills preload: what it is told goes wrong, and nothing else does."""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from world import BUILD, check, check_equal, main, test, wait_until  # noqa: E402
from world.process import die_with_parent  # noqa: E402
from world.redis import DURABLE, Connection  # noqa: E402
from world.shim import FULL, NO_SYNC, READ_ONLY, Shim  # noqa: E402

SHIM = str(BUILD / "torture" / "shim.so")
DAY_S = 86400
JUMPS_S = (DAY_S, -DAY_S, 1, -1, 0.25, -0.25, 0)

# What a process under the shim tries, in the directory where disks fail and in one beside it; errno of each, 0: none.
TRIES = """
import os, sys
def tried(do):
    try:
        do()
        return 0
    except OSError as error:
        return error.errno
for folder in sys.argv[1:]:
    read = os.open(folder, os.O_RDONLY)
    print(tried(lambda: os.close(os.open(folder + "/new", os.O_RDWR | os.O_CREAT, 0o600))),
          tried(lambda: os.close(os.open("new", os.O_WRONLY, dir_fd=read))),
          tried(lambda: os.rename(folder + "/a", folder + "/a")),
          tried(lambda: os.rename("a", "a", src_dir_fd=read, dst_dir_fd=read)),
          tried(lambda: os.fsync(read)))
"""


folder = os.path.realpath(tempfile.mkdtemp(prefix="shim-"))
failing, sound = os.path.join(folder, "failing"), os.path.join(folder, "failing-not")
for one in (failing, sound):
    os.mkdir(one)
    with open(os.path.join(one, "a"), "wb"):
        pass
page = Shim(SHIM, os.path.join(folder, "page"), failing)
ENVIRONMENT = {**os.environ, **page.environment}


class Redis:
    """redis-server under the shim."""

    def __init__(self):
        self.path = os.path.join(folder, "r.sock")
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.path, "--dir", folder, *DURABLE], env=ENVIRONMENT,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=die_with_parent, start_new_session=True)
        wait_until(self._is_reached, "redis-server listens")

    def _is_reached(self):
        """Its socket is there a moment before it listens."""
        try:
            self.run = Connection(self.path)
        except OSError:
            return False
        return True

    def ahead_s(self, *words):
        """How far its TIME is from ours: at least and at most, as it was read at some time between ours."""
        before = time.time()
        seconds, micros = self.run(*words)
        after = time.time()
        read = int(seconds) + int(micros) / 1e6
        return read - after, read - before


def tried(fault):
    """What failed, in the directory of SHIM_BELOW and beside it."""
    page.set(fault=fault)
    done = subprocess.run(["/usr/bin/python3", "-c", TRIES, failing, sound], env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=15, check=True, preexec_fn=die_with_parent)
    page.set()
    return [[int(number) for number in line.split()] for line in done.stdout.splitlines()]


@test
def redis_runs_and_its_time_jumps_by_what_the_page_says_in_commands_and_in_scripts():
    redis = Redis()
    for jump_s in JUMPS_S:
        page.set(clock_s=jump_s)
        for words in (["TIME"], ["EVAL", "return redis.call('TIME')", "0"]):
            least_s, most_s = redis.ahead_s(*words)
            check(least_s - 0.05 < jump_s < most_s + 0.05, f"{words} after a jump of {jump_s} s is {least_s} to {most_s} s ahead")
    check(page.counts()[1] > 0, "no clock was shifted")
    redis.process.terminate()
    check_equal(redis.process.wait(15), 0)


@test
def only_the_clocks_of_the_day_jump_and_the_monotonic_ones_do_not():
    page.set(clock_s=DAY_S)
    before = time.monotonic(), time.time()
    done = subprocess.run(["/usr/bin/python3", "-c", "import time; print(time.monotonic(), time.time())"],
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=15, check=True)
    page.set()
    monotonic, wall = [float(number) for number in done.stdout.split()]
    check(0 <= monotonic - before[0] < 15, f"monotonic: {monotonic - before[0]} s later")
    check(DAY_S <= wall - before[1] < DAY_S + 15, f"of the day: {wall - before[1]} s later")


@test
def nothing_fails_before_the_page_says_so():
    check_equal(tried(0), [[0, 0, 0, 0, 0]] * 2)


@test
def a_read_only_disk_takes_no_open_for_writing_and_no_rename_in_its_directory_only():
    check_equal(tried(READ_ONLY), [[errno.EROFS] * 4 + [0], [0] * 5])


@test
def a_disk_that_does_not_sync_says_so_for_files_and_directories_below_its_directory_only():
    check_equal(tried(NO_SYNC), [[0, 0, 0, 0, errno.EIO], [0] * 5])


@test
def a_full_disk_takes_the_first_half_and_then_no_more():
    page.set(fault=FULL)
    write = ("import os,sys\nfor folder in sys.argv[1:]:\n file = os.open(folder + '/a', os.O_WRONLY)\n taken = 0\n"
             " try:\n  while taken < 1000: taken += os.write(file, bytes(1000 - taken))\n  print(taken, 0)\n"
             " except OSError as error: print(taken, error.errno)")
    done = subprocess.run(["/usr/bin/python3", "-c", write, failing, sound], env=ENVIRONMENT, capture_output=True,
                          text=True, timeout=15, check=True)
    failed = page.counts()[2]
    page.set()
    (taken, error), beside = [[int(number) for number in line.split()] for line in done.stdout.splitlines()]
    check(500 <= taken < 1000 and error == errno.ENOSPC, f"{taken} bytes, errno {error}")
    check_equal(beside, [1000, 0])
    check(failed > 0, "the failed write was not counted")


@test
def a_shim_whose_page_is_missing_lets_nothing_run():
    done = subprocess.run(["/bin/true"], env={**ENVIRONMENT, "SHIM_FILE": os.path.join(folder, "none")}, check=False,
                          capture_output=True, text=True, timeout=15)
    check(done.returncode != 0 and "cannot be mapped" in done.stderr, str(done))


def close():
    shutil.rmtree(folder)


main(close)
