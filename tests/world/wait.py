"""Waiting for an event, with a deadline; never for a length of time."""

import select
import threading
import time

# Under the sanitizers, on a machine that does much else, everything takes longer; what works does not wait.
DEADLINE_S = 15
_LOOK_AGAIN_MS = 3
_SELDOM_MS = 40  # each look is a request: tests that wait side by side would keep the machine busy with them
_TICK_S, _STILL_S = 0.05, 0.25


class _Still(threading.Thread):
    """How long this process has not run when it should have: the machine stood still, or did much else."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seconds, self.never, self.looked = 0.0, threading.Event(), threading.Event()
        self.start()

    def run(self):
        before = time.monotonic()
        while not self.never.wait(_TICK_S):
            now = time.monotonic()
            late_s, before = now - before - _TICK_S, now
            if late_s > _STILL_S:
                self.seconds += late_s
            self.looked.set()


_STILL = _Still()


def stood_still_s():
    """So far; what is not noticed yet is noticed within a twentieth of a second."""
    return _STILL.seconds


def wait_noticed_s():
    """The same, when that has been looked at."""
    _STILL.looked.clear()
    _STILL.looked.wait(1)
    return _STILL.seconds


def wait_until(event, what, deadline_s=DEADLINE_S, again_ms=None):
    """What event() gives, as soon as that is true. Looks again every few milliseconds, the more seldom the longer it has waited:
    what is there for a moment only is looked for every again_ms."""
    begun, still_s = time.monotonic(), stood_still_s()
    pause = select.poll()
    while True:
        found = event()
        if found:
            return found
        waited_s = time.monotonic() - begun
        if waited_s - (stood_still_s() - still_s) > deadline_s:  # what stands still cannot do what is waited for
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
