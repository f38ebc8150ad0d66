#!/usr/bin/python3
"""test_sticky.py - Spin searches sticky.pml: an intent that stays open lets no older write through."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, holds_always, is_violated  # noqa: E402

MODEL = "sticky.pml"
WRITES = "-DNO_READS"
LOST = ("-DSTORE_IS_LOST", WRITES, "-DNO_FORCE")
ALWAYS = (
    ("with fenced reads", ()),
    ("if only the mark is checked", ("-DBY_MARK",)),
    ("if a check looks at nothing but the intent", ("-DWITHOUT_THE_REST",)),
    ("with two writes of each token", ("-DTOKENS_1_1_2_2", WRITES, "-DNO_FORCE")),
    ("when the store loses intents, or has again one that was removed", LOST),
)
MUTANTS = (
    ("INTENT_OF_THE_PROCESS", "all workers use an intent, and the one that opened it counts its own writes"),
    ("CHECK_IN_FLIGHT_IS_NOT_COUNTED", "an intent is closed while a check by it is under way"),
    ("CHECK_WITHOUT_THE_INTENT", "the check does not name the intent"),
    ("CHECK_DOES_NOT_LOOK_AT_THE_STATE", "the check passes by an intent that is dead"),
    ("USED_AFTER_UNKNOWN", "an intent is used again after an unknown end"),
    ("USED_AFTER_THE_CLOSE", "an intent is used again after its close was sent"),
    ("UNKNOWN_WHILE_OTHERS_ARE_UNDER_WAY", "an intent becomes unknown while other writes go by it"),
    ("UNKNOWN_CLOSES", "an intent of which one end is unknown is closed"),
    ("UNKNOWN_IS_NOT_TOLD_AGAIN", "one that was told to be unknown is not told again to a store that lost it", *LOST),
)
REACHABLE = (
    ("USED", "a newer write is sent after one went by an older intent"),
    ("NOT_FOUND", "a check does not find its intent, and the write is admitted"),
    ("SETTLED", "an intent is settled while its worker takes it to be open"),
)


def main():
    tap = Tap()
    for sentence, flags in ALWAYS:
        tap.run(f"no older write is sent or lands after a newer one was sent, {sentence}", holds_always, MODEL, *flags)
    for name, sentence in REACHABLE:
        tap.run(f"the model gets there: {sentence}", is_violated, MODEL, f"-DREACH_{name}", WRITES)
    for name, sentence, *flags in MUTANTS:
        tap.run(f"a stale write lands if {sentence}", is_violated, MODEL, f"-DMUTANT_{name}", *(flags or (WRITES,)))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
