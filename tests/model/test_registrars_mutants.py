#!/usr/bin/python3
"""test_registrars_mutants.py - without any one part of the protocol a majority of the registrars decides wrongly."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, is_violated  # noqa: E402

THREE = ("registrars.pml", "-DMAX=1", "-DSERVICES=3")
FOUR = ("registrars.pml", "-DMAX=1", "-DNOTHING_IS_LOST")
FILLING = THREE + ("-DFILLING",)
OLD = THREE + ("-DONE_IS_OLD",)
ASKED = ("asked.pml",)
TWICE, LOST = "a token comes twice", "something is lost unnoticed"
MUTANTS = (
    ("NO_GATE", TWICE, "grants go on after the store was put back", THREE),
    ("TOLD_BEFORE_DURABLE", TWICE, "a floor is told to the store before it is durable", THREE),
    ("CEILING_OF_A_MINORITY", TWICE, "the ceiling is the floor of fewer than a majority", THREE),
    ("FLOOR_OF_AN_OUTSIDER", TWICE, "the floor of one that is no registrar counts for the ceiling", FOUR),
    ("ONE_LESS_IS_HEARD", TWICE, "one registrar less than a majority is heard", THREE),
    ("SWITCH_WHILE_FILLING", TWICE, "a majority of those that are there counts while the set is being filled", FILLING),
    ("LIST_WITHOUT_FLOOR", TWICE, "a list is recorded without a floor that is not below the ceiling", FILLING),
    ("MARK_BEFORE_THE_STORE", TWICE, "directories have the mark before it is in force in the store", THREE),
    ("MARK_OF_THE_STORE", TWICE, "the mark of a store that came back counts, which no registrar has", THREE),
    ("MARK_OF_AN_OUTSIDER", TWICE, "the mark of one that is no registrar counts", FOUR),
    ("NOBODY_NEEDS_THE_MARK", TWICE, "a majority admits though none of it has the mark", THREE),
    ("NEW_LIFE_FORGETS", TWICE, "a life that a majority has admitted waits for whoever lives", THREE),
    ("REPORT_WHILE_WRITING", TWICE, "one reports while its state directory is being written", THREE),
    ("LOST_ONE_KEEPS_ITS_ID", TWICE, "an empty state directory has the id of the one that was lost", THREE),
    ("OLD_ONE_COUNTS", TWICE, "a registrar that was set back counts", OLD),
    ("STORE_BELIEVES_THE_HIGHER", TWICE, "the store keeps the floor of one that tells a lower one", OLD),
    ("LISTS_ARE_NOT_ASKED", LOST, "only those are asked whom the store lists", ASKED),
    ("ONE_IS_HEARD", LOST, "one registrar is enough", ASKED),
    ("NEWCOMER_OF_A_MINORITY", LOST, "a newcomer is in when one registrar has recorded it", ASKED),
    ("ROLL_OF_ANOTHER_LIFE", LOST, "the roll of a registrar on the way in counts, of another life", ASKED),
    ("ONE_ON_THE_WAY_IN_COUNTS", LOST, "another newcomer's list counts, which comes without numbers", ASKED),
    ("FIRM_BY_ITS_OWN_LIST", LOST, "a registrar is in at once when no other list names it", ASKED),
    ("GATEWAY_OF_ONE_LIST", LOST, "a gateway is in at once when one list names it", ASKED),
    ("DOUBTS_OF_THE_STORE", LOST, "the directories are not asked who was in doubt", ASKED),
)


def main():
    tap = Tap()
    for mutant, what, sentence, flags in MUTANTS:
        tap.run(f"{what} if {sentence}", is_violated, *flags, f"-DMUTANT_{mutant}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
