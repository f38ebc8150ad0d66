"""Waiting for an event, with a deadline; never for a length of time."""

import select
import time

# Under the sanitizers, on a machine that does much else, everything takes longer; what works does not wait.
DEADLINE_S = 15
_LOOK_AGAIN_MS = 3
_SELDOM_MS = 40  # each look is a request: tests that wait side by side would keep the machine busy with them


def wait_until(event, what, deadline_s=DEADLINE_S, again_ms=None):
    """What event() gives, as soon as that is true. Looks again every few milliseconds, the more seldom the longer it has waited:
    what is there for a moment only is looked for every again_ms."""
    begun = time.monotonic()
    pause = select.poll()
    while True:
        found = event()
        if found:
            return found
        waited_s = time.monotonic() - begun
        if waited_s > deadline_s:
            raise TimeoutError(f"waited {deadline_s} s in vain: {what}")
        pause.poll(again_ms or min(max(_LOOK_AGAIN_MS, waited_s * 1000 / 20), _SELDOM_MS))


def keeps_within(promised_ms, measure, what, tries=3):
    """A promise in milliseconds; measure() does once what it is about, and tells how long that took. A machine that does
    much else may stand still in the midst of it; a service that breaks its promise breaks it each time."""
    took = []
    while len(took) < tries:
        took.append(measure())
        if took[-1] < promised_ms:
            return
    raise AssertionError(f"{what}: promised are {promised_ms} ms, it took {', '.join(f'{one:.0f}' for one in took)} ms")
