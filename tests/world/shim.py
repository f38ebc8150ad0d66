"""tests/torture/shim.c in front of a process: a clock of the day that is shifted, and a disk that fails below one directory."""

import mmap
import os
import struct

FULL, READ_ONLY, NO_SYNC = 1, 2, 4
PAGE_BYTES = 32


class Shim:
    """The page of memory by which the shim is told what goes wrong (api/cli/demo/shim.h), in a file, and the environment of who
    runs under it. below: the directory where disks fail; None: the clock alone."""

    def __init__(self, shim, page, below=None):
        with open(page, "w+b") as file:
            file.truncate(PAGE_BYTES)
            self.memory = mmap.mmap(file.fileno(), PAGE_BYTES)
        self.environment = {"LD_PRELOAD": " ".join(filter(None, [os.environ.get("LD_PRELOAD"), os.path.realpath(shim)])),
                            "SHIM_FILE": page,
                            # The shim stands before a sanitizer, and hands on to it (api/cli/demo/stage.c).
                            "ASAN_OPTIONS": f"verify_asan_link_order=0:{os.environ.get('ASAN_OPTIONS', '')}"}
        if below:
            self.environment["SHIM_BELOW"] = os.path.realpath(below)

    def set(self, clock_s=0.0, fault=0):
        self.memory[0:12] = struct.pack("=qI", round(clock_s * 1e9), fault)

    def counts(self):
        """(processes that began with it, clocks that were shifted, calls that failed)"""
        return struct.unpack("=IQQ", self.memory[12:PAGE_BYTES])
