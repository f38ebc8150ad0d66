"""What stands in front of the C library of a process: tests/torture/shim.c, a clock of the day that is shifted and a disk that
fails below one directory; a machine that was suspended; functions of a test's own."""

import mmap
import os
import pathlib
import struct
import subprocess
import tempfile

FULL, READ_ONLY, NO_SYNC = 1, 2, 4
PAGE_BYTES = 32


def _in_front(library):
    """It stands before a sanitizer, too, and hands on to it (api/cli/demo/stage.c)."""
    return {"LD_PRELOAD": " ".join(filter(None, [os.environ.get("LD_PRELOAD"), os.path.realpath(library)])),
            "ASAN_OPTIONS": f"verify_asan_link_order=0:{os.environ.get('ASAN_OPTIONS', '')}"}


def preloaded(source):
    """The environment of who runs with these functions, in C, in the place of the library's."""
    library = os.path.join(tempfile.mkdtemp(prefix="pawl-preload-"), "own.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-xc", "-"], input=source, text=True, check=True, timeout=30)
    return _in_front(library)


class Suspension:
    """What a machine that is suspended for so long does to clocks when it goes on: only CLOCK_MONOTONIC has stood still."""

    SOURCE = r"""
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *at)
{
    int status = (int)syscall(SYS_clock_gettime, clock, at);
    at->tv_sec += clock != CLOCK_MONOTONIC && access(getenv("SUSPENDED"), F_OK) == 0 ? atoi(getenv("SUSPENDED_S")) : 0;
    return status;
}
time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return at != NULL ? *at = now.tv_sec : now.tv_sec;
}
"""

    def __init__(self, seconds):
        self.environment = preloaded(self.SOURCE) | {"SUSPENDED_S": str(seconds)}
        self.flag = pathlib.Path(self.environment["LD_PRELOAD"].split(" ")[-1]).parent / "suspended"
        self.environment["SUSPENDED"] = str(self.flag)

    def is_over(self):
        self.flag.touch()


class Shim:
    """The page of memory by which the shim is told what goes wrong (api/cli/demo/shim.h), in a file, and the environment of who
    runs under it. below: the directory where disks fail; None: the clock alone."""

    def __init__(self, shim, page, below=None):
        with open(page, "w+b") as file:
            file.truncate(PAGE_BYTES)
            self.memory = mmap.mmap(file.fileno(), PAGE_BYTES)
        self.environment = _in_front(shim) | {"SHIM_FILE": page}
        if below:
            self.environment["SHIM_BELOW"] = os.path.realpath(below)

    def set(self, clock_s=0.0, fault=0):
        self.memory[0:12] = struct.pack("=qI", round(clock_s * 1e9), fault)

    def counts(self):
        """(processes that began with it, clocks that were shifted, calls that failed)"""
        return struct.unpack("=IQQ", self.memory[12:PAGE_BYTES])
