"""Children that never outlive the test."""

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    """For preexec_fn. prctl(2): the signal comes when the *thread* that forked ends, so only the main thread starts
    children."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
