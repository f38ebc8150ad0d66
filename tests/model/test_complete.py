#!/usr/bin/python3
"""test_complete.py - Spin searches complete.pml: what is said to be complete has lost nothing."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, holds_always, is_violated  # noqa: E402

MUTANTS = (
    ("NUMBERS_ARE_NOT_COMPARED", "the numbers of changes are not compared"),
    ("EPOCHS_ARE_NOT_COMPARED", "the epochs are not compared"),
    ("INCARNATIONS_ARE_NOT_COMPARED", "a process that has started again speaks for the one before"),
    ("ONLY_THE_STORE_IS_ASKED", "only those are asked whom the store lists"),
    ("LIST_WITHOUT_NUMBERS", "a list is recorded from an answer without the numbers"),
    ("PENDING_WRITES", "a gateway is in before a state directory has recorded it"),
    ("FORGOTTEN_ONE_GOES_ON", "one that was forgotten may still change something"),
)
REACHABLE = (
    ("COMPLETE", "a store that Redis has restarted is complete"),
    ("COMPLETE_AFTER_A_RESTART", "a store is complete with a gateway that has started again"),
    ("LOST", "a store that has lost something is not complete, though everybody was asked"),
)


def main():
    tap = Tap()
    tap.run("what is said to be complete has lost nothing", holds_always, "complete.pml")
    for name, sentence in REACHABLE:
        tap.run(f"the model gets there: {sentence}", is_violated, "complete.pml", f"-DREACH_{name}")
    for mutant, sentence in MUTANTS:
        tap.run(f"something is lost unnoticed if {sentence}", is_violated, "complete.pml", f"-DMUTANT_{mutant}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
