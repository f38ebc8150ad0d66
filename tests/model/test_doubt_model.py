#!/usr/bin/python3
"""test_doubt_model.py - Spin searches doubt.pml: who is in doubt stays so however often the store is lost."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, holds_always, is_violated  # noqa: E402

MUTANTS = (
    ("UNION_LEFT_OUT", "an admission does not ask the directories who was in doubt before"),
    ("WRITTEN_AFTER_THE_GATE_OPENS", "the gate opens before the directories have it"),
    ("ONE_DIRECTORY_IS_ENOUGH", "the gate opens when one directory has it"),
    ("REMOVAL_WITHOUT_THE_LIFE", "what ended a doubt ends the one of a later life"),
    ("OLD_DOUBT_KEEPS_ITS_LIFE", "a doubt of before is not begun anew by a life that lost something"),
    ("NEWCOMER_COUNTS_AT_ONCE", "a lease service counts before it has recorded the list"),
)
OF_A_MAJORITY = (
    ("UNION_LEFT_OUT", "an admission does not ask the directories who was in doubt before"),
    ("REMOVAL_WITHOUT_THE_LIFE", "what ended a doubt ends the one of a later life"),
    ("ONE_LIST_IS_ENOUGH", "a gateway is in when one registrar has recorded it"),
)
REACHABLE = (
    ("SETTLED", "after three losses an operator settles it, and a newer write is sent"),
    ("KNOWN_BY_A_DIRECTORY_ONLY", "at the third loss only the directories know of it"),
)


def main():
    tap = Tap()
    tap.run("no newer write is sent while an older one is on its way", holds_always, "doubt.pml")
    tap.run("no newer write is sent while an older one is on its way, when two of three registrars are enough", holds_always,
            "doubt.pml", "-DMAJORITY", "-DLIVES=3")
    for name, sentence in REACHABLE:
        tap.run(f"the model gets there: {sentence}", is_violated, "doubt.pml", f"-DREACH_{name}")
    for mutant, sentence in MUTANTS:
        tap.run(f"a stale write lands if {sentence}", is_violated, "doubt.pml", f"-DMUTANT_{mutant}")
    for mutant, sentence in OF_A_MAJORITY:
        tap.run(f"a stale write lands with a majority if {sentence}", is_violated, "doubt.pml", "-DMAJORITY", f"-DMUTANT_{mutant}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
