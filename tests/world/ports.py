"""Ports that no other program gets while this process lives: bound, and not listening. Who listens there later has
SO_REUSEADDR, as each server has; until then whoever connects is refused."""

import contextlib
import socket

_kept = []


def reserved_port():
    """The socket that keeps it."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.bind(("127.0.0.1", 0))
    return holder


def own_port():
    """Its number, at which nobody listens yet; it stays ours until this process ends."""
    _kept.append(reserved_port())
    return _kept[-1].getsockname()[1]


def nobody():
    """The address of one at which nobody will ever listen."""
    return f"http://127.0.0.1:{own_port()}"


@contextlib.contextmanager
def swallowing():
    """The port of one whose backlog is full: who connects there hears nothing (listen(2), tcp_abort_on_overflow)."""
    with contextlib.ExitStack() as opened:
        deaf, *waiting = [opened.enter_context(socket.socket()) for _ in range(4)]
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(deaf.getsockname())
        yield deaf.getsockname()[1]
