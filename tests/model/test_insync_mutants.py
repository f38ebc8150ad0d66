#!/usr/bin/python3
"""test_insync_mutants.py - without any one part of the protocol something acknowledged is lost at a failover."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, is_violated  # noqa: E402

FORM = ("insync.pml",)
SMALL = FORM + ("-DEPOCHS=2", "-DCHANGES=1")
BACK = SMALL + ("-DREGISTRARS=3", "-DONE_IS_SET_BACK", "-DWITHOUT_GROWTH", "-DSTREAMS_STAY")
LINEAGE = FORM + ("-DWITH_LINEAGE", "-DCHANGES=1", "-DWITHOUT_GROWTH")
MUTANTS = (
    ("WITHOUT_ACKNOWLEDGEMENTS", "nobody waits for the replicas", SMALL),
    ("ONE_REPLICA_IS_ENOUGH", "one replica of two is enough",
     SMALL + ("-DNODES=3", "-DWITHOUT_GROWTH", "-DSTREAMS_STAY")),
    ("OLD_ACKNOWLEDGEMENTS_COVER", "an acknowledgement of before covers a read", SMALL),
    ("WITNESS_OF_ANOTHER_STREAM", "offsets of another stream are taken for acknowledgements", FORM + ("-DCHANGES=1",)),
    ("DISK_IS_NOT_ASKED", "a node counts that has it in memory only", SMALL + ("-DWITH_DISKS",)),
    ("ANY_NODE_IS_ADMITTED", "a node outside the set is admitted", SMALL),
    ("ADMITTED_BY_NAME", "a node of the set is admitted that has copied one outside it", SMALL),
    ("SAME_RUN_IS_ENOUGH", "a node that was demoted and promoted is taken for the same, by its run_id", SMALL),
    ("SHRINK_BEFORE_RECORD", "a smaller set is in force before it is recorded", SMALL),
    ("GROW_BEFORE_CAUGHT_UP", "a larger set is recorded before the node has caught up", FORM),
    ("GROW_IN_THE_SAME_EPOCH", "the set grows without a new epoch", FORM),
    ("REPORT_IS_NO_PROMISE", "a registrar that has reported acts in the epoch of before", SMALL),
    ("OPEN_BEFORE_RECORD", "a gate opens before a majority has recorded it", FORM),
    ("NO_LEASE_ON_THE_EPOCH", "services of an older epoch go on after a newer one has opened", SMALL),
    ("ONE_REPORT_IS_ENOUGH", "one report of three is enough", SMALL + ("-DREGISTRARS=3", "-DWITHOUT_GROWTH")),
    ("SET_BACK_COUNTS", "a registrar that was set back counts", BACK),
    ("NEWEST_AMONG_A_MAJORITY", "the newest record is that of the registrars that were heard", BACK + ("-DSERVICES_LIVE",)),
    ("GROWN_EPOCH_IS_A_NUMBER", "the epoch of a set that has grown orders records and promises",
     FORM + ("-DNODES=3", "-DFIRST_SET=3", "-DONE_IS_NEVER_PROMOTED", "-DSTREAMS_STAY")),
    ("LINEAGE_OF_ANY_RECORD", "a stream goes on with a later record than the one it was judged by", LINEAGE),
    ("LINEAGE_OF_ANY_NODE", "a node outside the set leads on its stream", LINEAGE),
    ("LINEAGE_BY_NAME", "a node of the set leads on whichever stream it has copied", LINEAGE),
    ("COPY_BEFORE_ITS_RECORD", "a node that joins is a copy before its record is", SMALL + ("-DCOPIES=2", "-DFIRST_SET=1")),
)


def main():
    tap = Tap()
    for mutant, sentence, flags in MUTANTS:
        tap.run(f"something acknowledged is lost if {sentence}", is_violated, *flags, f"-DMUTANT_{mutant}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
