"""Children that never outlive the test, and how large one is."""

import ctypes
import os
import pathlib
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    """For preexec_fn. prctl(2): the signal comes when the *thread* that forked ends, so only the main thread starts
    children. What is waited for at once, as by subprocess.run(), needs it not, and begins in a third of the time."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def memory_kib(process):
    """What it has of the machine's memory."""
    return int(pathlib.Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def with_proc(subset):
    """The words in front of a command's own with which it sees as much of /proc as under systemd's ProcSubset=."""
    alone = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    return () if subset == "all" else (*alone, "sh", "-c", 'mount -t tmpfs none /proc/sys && exec "$@"', "sh")
