#!/usr/bin/python3
"""test_insync.py - Spin searches insync.pml: nothing that was acknowledged is lost when a node is promoted."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, holds_always, is_violated  # noqa: E402

SMALL = ("insync.pml", "-DEPOCHS=2", "-DCHANGES=1")
BACK = SMALL + ("-DREGISTRARS=3", "-DONE_IS_SET_BACK", "-DWITHOUT_GROWTH", "-DSTREAMS_STAY")
LINEAGE = ("insync.pml", "-DWITH_LINEAGE", "-DCHANGES=1", "-DWITHOUT_GROWTH")
COPIES = ("insync.pml", "-DCOPIES=2")
HOLDS = (
    ("nothing acknowledged is lost with two nodes and one registrar", ("insync.pml",)),
    ("nothing acknowledged is lost when two of three registrars decide", SMALL + ("-DREGISTRARS=3", "-DWITHOUT_GROWTH")),
    ("nothing acknowledged is lost when nodes have it in memory only, since a full resync", SMALL + ("-DWITH_DISKS",)),
    ("nothing acknowledged is lost when a registrar is set back of which both others have recorded more", BACK),
    ("nothing acknowledged is lost when it is set back with no primary deposed, and services report what they acted by",
     BACK + ("-DSERVICES_LIVE",)),
    ("nothing acknowledged is lost when a node is promoted before the one before it was admitted", LINEAGE),
    ("what is told has so many copies as the record says, while the set grows", COPIES + ("-DFIRST_SET=1",)),
    ("what is told has so many copies as the record says, while the set changes", COPIES + SMALL[1:] + (
        "-DNODES=3", "-DFIRST_SET=3", "-DONE_IS_NEVER_PROMOTED", "-DSTREAMS_STAY")),
)
REACHABLE = (
    ("an operation is acknowledged, another node takes over, and the next one has seen it", SMALL + ("-DREACH_FAILOVER",)),
    ("the same after the set has shrunk", SMALL + ("-DREACH_SHRINK_AND_FAILOVER",)),
    ("the same after the set has grown", ("insync.pml", "-DREACH_GROWTH_AND_FAILOVER")),
    ("the same after the set has grown to the number of copies", COPIES + SMALL[1:] + ("-DFIRST_SET=1", "-DREACH_GROWTH_AND_FAILOVER")),
    ("the same at the second of two nodes that are promoted", LINEAGE + ("-DREACH_TWO_PROMOTIONS",)),
    ("the same after a full resync", SMALL + ("-DWITH_DISKS", "-DREACH_DISK")),
    ("a registrar that was set back is left out", BACK + ("-DREACH_SET_BACK_IS_LEFT_OUT",)),
)


def main():
    tap = Tap()
    for sentence, flags in HOLDS:
        tap.run(sentence, holds_always, *flags)
    for sentence, flags in REACHABLE:
        tap.run(f"the model gets there: {sentence}", is_violated, *flags)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
