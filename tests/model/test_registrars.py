#!/usr/bin/python3
"""test_registrars.py - Spin searches registrars.pml and asked.pml: what a majority of the registrars may decide."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, holds_always, is_violated  # noqa: E402

THREE = "-DSERVICES=3"
HOLDS = (
    ("no token comes twice with three registrars, of which one may lose its state directory",
     ("registrars.pml", "-DMAX=2", THREE)),
    ("no token comes twice while the set of registrars is being filled, also without the checks that others make spare",
     ("registrars.pml", "-DMAX=1", THREE, "-DFILLING", "-DWITHOUT_SPARE_CHECKS")),
    ("no token comes twice when the state directory of one registrar may be put back from a copy",
     ("registrars.pml", "-DMAX=1", THREE, "-DONE_IS_OLD")),
    ("what is said to be complete has lost nothing, and who has sent something is in doubt, by two of three lists",
     ("asked.pml",)),
)
REACHABLE = (
    ("one registrar has lost its state directory, the others admit the store and grant on",
     ("registrars.pml", "-DMAX=2", THREE, "-DREACH_TWO_GO_ON")),
    ("a majority counts, and a fourth lease service is in", ("registrars.pml", "-DMAX=2", "-DREACH_SWITCHED")),
    ("a registrar that was set back reports, and does not count",
     ("registrars.pml", "-DMAX=1", THREE, "-DONE_IS_OLD", "-DREACH_OLD_ONE_IS_LEFT_OUT")),
    ("a store is complete by the word of two registrars, one of which was away in the life before",
     ("asked.pml", "-DREACH_COMPLETE_WITHOUT_ONE")),
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
