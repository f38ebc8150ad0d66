#!/usr/bin/python3
"""test_intents_mutants.py - without any one part of the design, Spin finds a stale write that lands."""

import sys

sys.dont_write_bytecode = True

from spin import Tap, is_violated  # noqa: E402

ANSWERS = "-DONLY_ANSWERS_CLOSE"
WRITES = "-DNO_READS"
LOST = "-DSTORE_IS_LOST"
ROUTES = "-DROUTES_CHANGE"
ORDERED = (
    ("NO_INTENT", "the gateway checks, then forwards", ANSWERS, WRITES),
    ("MARKS_IN_EACH_GATEWAY", "each gateway has the marks in its memory", ANSWERS, WRITES),
    ("WAITS_IN_MEMORY", "writes wait in their gateway's memory only", ANSWERS, WRITES),
    ("TIME_OUT_CLOSES", "a time-out closes an intent", ANSWERS, WRITES),
    ("EARLY_ANSWER_CLOSES", "a 202, half an answer, or a 502 of a proxy in between closes an intent", ANSWERS, WRITES),
    ("GRACE_ALONE", "a grace closes an intent though its sender is not known to be dead", WRITES),
    ("HEARTBEAT_IS_PROOF", "a heartbeat that is missing is taken for a death", WRITES),
    ("APPLIED_AFTER_THE_GRACE", "a request is applied later than the grace after its sender's death", WRITES),
    ("NEGATIVE_PROBE", "a probe that does not find the write closes its intent", WRITES),
    ("RESOLVED_WHILE_SENDING", "an operator resolves what its gateway may not have sent yet", WRITES),
    ("SENDING_GOES_WITH_ITS_GATEWAY", "the next incarnation removes also what its former one was sending", ANSWERS,
     WRITES),
    ("INTENT_IN_A_SECOND_SCRIPT", "a second script records the intent", ANSWERS, WRITES),
    ("INTENT_WITHOUT_REQUEST", "two writes of one gateway with one token have one intent", "-DTOKENS_1_1_2_2", ANSWERS,
     WRITES),
    ("QUEUED_IS_SENT_UNCHECKED", "what was queued is sent without a second check", ANSWERS, WRITES),
    ("CANCELLED_IS_SENT", "what was cancelled is sent all the same", ANSWERS, WRITES),
    ("PROMOTED_PAST_AN_OLDER_ONE", "what was queued is promoted while an older one is open", ANSWERS, WRITES),
    ("SILENT_REPEAT", "a library repeats a request on another connection", ANSWERS, WRITES),
    ("READ_DOES_NOT_WAIT", "a fenced read is answered while an older write is open", ANSWERS),
    ("INTENTS_GO_WITH_THE_STORE", "a store that has lost intents is not in doubt", LOST, WRITES),
    ("THE_FIRST_TO_TELL_SPEAKS_FOR_ALL", "the doubt ends before all gateways have told", LOST, WRITES),
    ("FORMER_ONES_ARE_FORGOTTEN", "the doubt ends though nobody has dealt with former incarnations", LOST, WRITES),
    ("ONLY_WHAT_IS_SENT_IS_TOLD", "a gateway does not tell what it may send and has not sent yet", LOST, WRITES),
    ("REPLY_OF_ANOTHER_LIFE", "a gateway that has told acts on a reply of the former life", LOST, WRITES),
    ("PROMOTED_IN_DOUBT", "what was queued is promoted without a second look in a store that was put back", LOST,
     WRITES),
    ("MARK_GOES_WITH_THE_STORE", "only the mark is checked, and the store has lost it", LOST, "-DBY_MARK", WRITES),
    ("ROUTES_DIFFER", "two gateways have different routes", ROUTES, WRITES),
    ("ROUTES_ARE_CHECKED_BEFORE", "the routes are compared before the admission script, and not in it", ROUTES, WRITES),
    ("ADOPTED_WITH_OPEN_INTENTS", "routes are adopted while intents are open", ROUTES, WRITES),
    ("ADOPTED_IN_DOUBT", "routes are adopted while the store is in doubt", ROUTES, LOST, WRITES),
    ("ROUTES_GO_WITH_THE_STORE", "a store that was put back has the former routes", ROUTES, LOST, WRITES),
)
CONDITIONAL = (
    ("ADMIT_READ_WRITE", "the version for If-Match is read after the admission", "-DNOTHING_IS_DELETED", WRITES),
    ("SENT_AGAIN_WITHOUT_ADMISSION", "a gateway that got 412 reads and writes again without a new admission", WRITES),
    ("VERSIONS_REPEAT", "versions come back", "-DNOTHING_IS_DELETED", WRITES),
    ("ABSENCE_IS_A_VERSION", "nothing waits for a request to create what is not there", WRITES),
    ("SEVERAL_URLS", "one lease covers two URLs", WRITES),
    ("READ_DOES_NOT_WAIT", "a fenced read with If-Match does not wait"),
    ("READ_DOES_NOT_WAIT", "a fenced read does not wait, and the upstream compares tokens at writes only",
     "-DUPSTREAM_CHECKS"),
)


def main():
    tap = Tap()
    for model, mutants in (("intents.pml", ORDERED), ("conditional.pml", CONDITIONAL)):
        for mutant, sentence, *flags in mutants:
            tap.run(f"a stale write lands if {sentence}", is_violated, model, f"-DMUTANT_{mutant}", *flags)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
