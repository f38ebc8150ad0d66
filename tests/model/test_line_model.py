#!/usr/bin/python3
"""test_line_model.py - Spin searches line.pml: a lease that is handed on in one step, and places that are kept."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, holds_always, is_violated  # noqa: E402

MODEL = "line.pml"
NO_FAULT = "-DFAULTS=0"
CLOSE, LINK, KILL, REDIS = "-DONLY=1", "-DONLY=2", "-DONLY=4", "-DONLY=8"
FIRST_KEEPS, SECOND_KEEPS = "-DKEEPER=0", "-DKEEPER=1"
ALWAYS = (
    ("without accidents", (NO_FAULT,)),
    ("and the one who asks twice keeps its place", (NO_FAULT, FIRST_KEEPS)),
    ("and the other one keeps its place", (NO_FAULT, SECOND_KEEPS)),
    ("when a desk closes", (CLOSE,)),
    ("when a link breaks", (LINK,)),
    ("when a worker is killed, and a place is kept", (KILL, FIRST_KEEPS)),
    ("when Redis is killed, and nobody waits for a release's outcome before it leaves", (REDIS, "-DWITHOUT_WAITING")),
)
MUTANTS = (
    ("503_WHILE_PERHAPS_GRANTED", "who is perhaps granted gets 503 when the desk closes", CLOSE),
    ("LOST_REPLY_IS_A_NO", "a release without a reply is taken to have granted nothing", LINK),
    ("NO_ANSWER_IS_A_NO", "who is asked for, without an answer, gets 503", LINK),
    ("AGAIN_ONLY_LOOKS", "who is perhaps granted is looked for, and its place stays as it is", LINK),
    ("RELEASE_NAMES_THE_WORKER", "a release names its worker, and not the desk's id", LINK),
    ("KEPT_PLACE_IS_GRANTED", "a release grants to a kept place without a connection", NO_FAULT, FIRST_KEEPS),
    ("GRANTED_AS_TOLD", "the grant is not written as untold", NO_FAULT),
    ("GONE_ONE_IS_NOT_GIVEN_BACK", "the grant of a client that has gone is not given back", NO_FAULT),
    ("CLAIM_KNOWS_ONLY_OFFERS", "after a late leave the claim does not know a grant that is claimed", NO_FAULT),
    ("CLAIM_KNOWS_ONLY_THE_UNTOLD", "the claim does not know a grant that a late duplicate was told of", LINK),
    ("REPLAY_IS_NOT_TOLD", "a replay does not make the grant a told one", NO_FAULT),
    ("PLACE_GOES_WITH_ITS_DESK", "a kept place goes with its desk", KILL, FIRST_KEEPS),
    ("REJOINS_AT_THE_END", "who comes back stands at the end of the line", NO_FAULT, FIRST_KEEPS),
    ("KEPT_PLACE_IS_PASSED_OVER", "a kept place without a connection is passed over", NO_FAULT, FIRST_KEEPS),
)
REACHABLE = (
    ("MERGED", "a waiter is told of what the release has granted", NO_FAULT),
    ("KEPT", "a kept place gets the lease", NO_FAULT, FIRST_KEEPS),
    ("AGAIN", "a waiter is asked for after a lost reply, and told", LINK),
)


def main():
    tap = Tap()
    for sentence, flags in ALWAYS:
        tap.run(f"the lease goes on in the order of the line, and no one is told wrongly, {sentence}", holds_always, MODEL,
                *flags)
    for name, sentence, *flags in REACHABLE:
        tap.run(f"the model gets there: {sentence}", is_violated, MODEL, f"-DREACH_{name}", *flags)
    for name, sentence, *flags in MUTANTS:
        tap.run(f"the line goes wrong if {sentence}", is_violated, MODEL, f"-DMUTANT_{name}", *flags)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
