"""Waiting for an event, with a deadline; never for a length of time."""

import select
import time

# Under the sanitizers, on a machine that does much else, everything takes longer; what works does not wait.
DEADLINE_S = 15
_LOOK_AGAIN_MS = 3


def wait_until(event, what, deadline_s=DEADLINE_S, again_ms=_LOOK_AGAIN_MS):
    """What event() gives, as soon as that is true. Looks again every few milliseconds."""
    end = time.monotonic() + deadline_s
    pause = select.poll()
    while True:
        found = event()
        if found:
            return found
        if time.monotonic() > end:
            raise TimeoutError(f"waited {deadline_s} s in vain: {what}")
        pause.poll(again_ms)


def keeps_within(promised_ms, measure, what, tries=3):
    """A promise in milliseconds; measure() does once what it is about, and tells how long that took. A machine that does
    much else may stand still in the midst of it; a service that breaks its promise breaks it each time."""
    took = []
    while len(took) < tries:
        took.append(measure())
        if took[-1] < promised_ms:
            return
    raise AssertionError(f"{what}: promised are {promised_ms} ms, it took {', '.join(f'{one:.0f}' for one in took)} ms")
