#!/usr/bin/python3
"""test_quorum.py - Spin searches quorum.pml: tokens of a majority of independent nodes, with each safeguard and without."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, holds_always, is_violated, is_violated_anyhow  # noqa: E402

WIPED = ("-DWIPES=2",)
RAISED = (*WIPED, "-DRAISES")  # more may happen then: looks and renewals bring numbers along
FIVE = ("-DNODES=5", "-DWIPES=2", "-DNO_MORE_THAN_A_MAJORITY")
HOLDS = (
    ("of three nodes, of which two lose everything, one after the other, or one twice", RAISED),
    ("of three nodes, one of which loses everything, with two healers at work", ("-DWIPES=1", "-DHEALERS=2", "-DRAISES")),
    ("of three nodes and three attempts", ("-DWIPES=0", "-DATTEMPTS=3", "-DRAISES")),
    ("of five nodes, of which two lose everything", FIVE),
    ("of three nodes without the check that others make spare", (*RAISED, "-DWITHOUT_SPARE_CHECKS")),
)
MUTANTS = (
    ("VOTE_WITHOUT_LOCK", "a node votes for an attempt whose lock it does not have", WIPED),
    ("VOTES_BY_LEASE_ID", "a node votes for another attempt of the same lease_id", WIPED),
    ("VOTES_OF_A_MINORITY", "fewer than a majority of votes are enough", WIPED),
    ("COMMIT_TO_LATE_ONES", "a node votes whose answer to the lock was not waited for", WIPED),
    ("NO_QUARANTINE", "a node that has lost everything answers at once", WIPED),
    ("BARRIER_SPARES_LOCKS", "a node that was read for another one votes for what was locked before", WIPED),
    ("READ_BEFORE_THE_BARRIER", "a node is read for another one before it ends what was locked", WIPED),
    ("HEALED_BY_A_MINORITY", "fewer than a majority of nodes heal another one", WIPED),
    ("HEAL_OF_AN_EARLIER_QUARANTINE", "what a healer sent arrives in a later quarantine",
     (*WIPED, "-DHEALERS=2", "-DNO_MORE_THAN_A_MAJORITY")),
    ("HEALED_BY_THE_ILL", "a node in quarantine heals another one", FIVE),
)


def main():
    tap = Tap()
    for sentence, flags in HOLDS:
        tap.run(f"tokens rise and none comes twice: {sentence}", holds_always, "quorum.pml", *flags)
    tap.run("the model gets there: a lease is granted anew by nodes that were healed", is_violated, "quorum.pml", *WIPED,
            "-DREACH_GRANTED_AFTER_HEALING")
    for mutant, sentence, flags in MUTANTS:
        tap.run(f"a token comes twice, or does not rise, if {sentence}",
                is_violated_anyhow if flags == FIVE else is_violated, "quorum.pml", *flags, f"-DMUTANT_{mutant}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
