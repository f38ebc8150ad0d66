#!/usr/bin/python3
"""test_floor_mutants.py - without any one part of the protocol, Spin finds a token in floor.pml that comes twice."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, is_violated  # noqa: E402

TWO = ("-DMAX=1", "-DSERVICES=2")
THREE = ("-DMAX=1", "-DSERVICES=3", "-DNOTHING_IS_DELETED")
MUTANTS = (
    ("NO_GATE", "grants go on after the store was put back", TWO),
    ("NO_FLOOR", "an admission ignores the floors", TWO),
    ("NO_CEILING", "grants pass the ceiling", TWO),
    ("TOLD_BEFORE_DURABLE", "a floor is told to the store before it is durable", TWO),
    ("OWN_FILE_ONLY", "who admits does not ask those in its list", TWO),
    ("JOINS_UNRECORDED", "a newcomer is in before another one has recorded it", TWO),
    ("OLD_DIRECTORY_IS_A_VOUCHER", "one with an old directory is in without anybody else", TWO),
    ("LIST_WITHOUT_FLOOR", "a list is recorded without a floor that is not below the ceiling", TWO),
    ("STATES_OF_THE_STORE", "an admission believes the store who is in", TWO),
    ("ALL_NEEDED_ARE_IN", "all who have reported are in after an admission, also those that one has not recorded", TWO),
    ("REPORTS_COME_BACK", "what was reported to a gating on another Redis counts", TWO),
    ("REPORT_WHILE_WRITING", "one reports while its state directory is being written", TWO),
    ("ROLL_OF_ANOTHER_LIFE", "one joins while a write of another life is under way", TWO),
    ("THE_FIRST_GOES", "the first after recover is forgotten before anybody is in", TWO),
    ("LEAVES_THE_WAY_IN_AS_OUT", "one that leaves on its way in is out, and so in when it comes back", TWO),
    ("RECOVERED_WITH_ANOTHER_LEFT", "a directory that did not report comes back after recover", TWO),
    ("RECOVERED_THOUGH_ADMISSIBLE", "recover while somebody may admit", TWO),
    ("FORGOTTEN_ARE_SKIPPED", "an admission does not follow a list to one that was forgotten", THREE),
)


def main():
    tap = Tap()
    for mutant, sentence, flags in MUTANTS:
        tap.run(f"a token comes twice if {sentence}", is_violated, "floor.pml", f"-DMUTANT_{mutant}", *flags)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
