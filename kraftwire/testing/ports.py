"""Loopback ports for processes that are started later."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from random import SystemRandom

_HOST = "127.0.0.1"

# Below the ephemeral ports of every system (Linux begins at 32768): an outgoing connection could
# take one of those before its process listens on it.
_PORTS = range(10240, 32768)

_TRIES_MAX = 1000


def free_ports(count: int) -> list[int]:
    """Return different loopback ports that are free, in random order.

    Raises: OSError if there are not enough.
    """
    choice = SystemRandom()
    found: list[int] = []
    with ExitStack() as held:
        for _ in range(_TRIES_MAX):
            if len(found) == count:
                return found
            port = choice.choice(_PORTS)
            try:
                held.enter_context(socket.socket()).bind((_HOST, port))
            except OSError:
                continue
            found.append(port)
    raise OSError(f"only {len(found)} of {count} free ports found in {_TRIES_MAX} tries")
