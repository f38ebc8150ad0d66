#!/usr/bin/python3
"""test_intents.py - Spin searches intents.pml and conditional.pml: writes land in the order of their tokens."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, holds_always, is_violated  # noqa: E402

CORE = "intents.pml"
CONDITIONAL = "conditional.pml"
LOST = "-DSTORE_IS_LOST"
ROUTES = "-DROUTES_CHANGE"
ANSWERS = "-DONLY_ANSWERS_CLOSE"
CHECKS = "-DUPSTREAM_CHECKS"
ORDERED = (
    ("if only an answer closes an intent", CORE, (ANSWERS,)),
    ("if a grace after the sender's death, a probe that finds the write, and an operator close intents too", CORE,
     ("-DTOKENS_1_2_2_3",)),
    ("with two writes of each token", CORE, ("-DTOKENS_1_1_2_2",)),
    ("if only the mark is checked", CORE, ("-DTOKENS_1_2_2_3", "-DBY_MARK")),
    ("if what is still queued is sent without a second look at the hold", CORE, ("-DWITHOUT_SECOND_LOOK",)),
    ("if nobody cancels, and the second look at the hold refuses", CORE, ("-DWITHOUT_CANCELLING",)),
    ("when the store loses intents, and all gateways tell theirs", CORE, (LOST,)),
    ("when the store loses intents, and only the mark is checked", CORE, (LOST, "-DBY_MARK")),
    ("when an operator adopts other routes, and the store loses intents", CORE, (LOST, ROUTES)),
    ("at an upstream that honours If-Match: read, admit, write", CONDITIONAL, ()),
    ("at an upstream that checks tokens", CONDITIONAL, (CHECKS,)),
    ("at an upstream that checks tokens and counts those of reads, which then need not wait", CONDITIONAL,
     (CHECKS, "-DREADS_ARE_SEEN")),
)
REACHABLE = (
    ("a newer write lands after the older one's answer", CORE, ("-DREACH=ANSWERED", ANSWERS)),
    ("a queued write is promoted, and lands", CORE, ("-DREACH=PROMOTED", ANSWERS)),
    ("a newer write lands after the grace of a dead gateway", CORE, ("-DREACH=GRACE",)),
    ("a newer write lands after a probe has found the older one", CORE, ("-DREACH=PROBED",)),
    ("a newer write lands after an operator's word", CORE, ("-DREACH=RESOLVED",)),
    ("a newer write lands after it has cancelled one that was queued", CORE, ("-DREACH=CANCELLED", ANSWERS)),
    ("a fenced read waits for an older write, and is answered", CORE, ("-DREACH=WAITED", ANSWERS)),
    ("a newer write lands after the store has lost the intent of an older one", CORE, ("-DREACH=LOST", LOST)),
    ("a write lands under the routes that were adopted", CORE, ("-DREACH=ADOPTED", ROUTES)),
    ("a write with If-Match lands while older ones are open", CONDITIONAL, ("-DREACH_PAST_AN_OPEN_ONE",)),
    ("a write with If-Match that was refused lands at the second attempt", CONDITIONAL, ("-DREACH_SECOND_ATTEMPT",)),
    ("If-Match refuses an older write that comes late", CONDITIONAL, ("-DREACH_REFUSED_BY_THE_UPSTREAM",)),
    ("an upstream that checks refuses an older write that comes late", CONDITIONAL,
     ("-DREACH_REFUSED_BY_THE_UPSTREAM", CHECKS)),
)


def main():
    tap = Tap()
    for sentence, model, flags in ORDERED:
        tap.run(f"writes land in the order of their tokens {sentence}", holds_always, model, *flags)
    for sentence, model, flags in REACHABLE:
        tap.run(f"the model gets there: {sentence}", is_violated, model, *flags)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
