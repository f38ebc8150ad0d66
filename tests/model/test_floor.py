#!/usr/bin/python3
"""test_floor.py - Spin searches floor.pml: no token comes twice, whatever becomes of the store."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, holds_always, is_violated  # noqa: E402

TWO = "-DSERVICES=2"
THREE = "-DSERVICES=3"
REACHABLE = (
    ("three lease services admit a store together, and grant on", ("-DREACH_ADMITTED_BY_ALL", "-DMAX=2", THREE)),
    ("two lives begin one after the other, with grants in both", ("-DREACH_TWO_ADMISSIONS", "-DMAX=3", TWO)),
    ("one with an old floor is alone with a store that was put back, and refused",
     ("-DREACH_REFUSED_ALONE", "-DMAX=2", TWO)),
    ("an operator recovers a store, and it grants again", ("-DREACH_RECOVERED", "-DMAX=2", TWO)),
)


def main():
    tap = Tap()
    tap.run("no token comes twice with three lease services, and one write of a state directory at a time", holds_always,
            "floor.pml", "-DMAX=2", "-DSYMMETRY")
    tap.run("no token comes twice with two lease services, and writes of both at a time", holds_always, "floor.pml",
            "-DMAX=4", TWO, "-DMANY_WRITES")
    tap.run("no token comes twice with two lease services without the checks that others make spare", holds_always,
            "floor.pml", "-DMAX=3", TWO, "-DMANY_WRITES", "-DWITHOUT_SPARE_CHECKS")
    for sentence, flags in REACHABLE:
        tap.run(f"the model gets there: {sentence}", is_violated, "floor.pml", *flags)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
