"""Sockets that listen: one port on each address of a host."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Sequence

import trio

# Family and numeric address.
Interface = tuple[int, str]

# No such address on this machine: normal for one of the addresses of localhost.
_NO_ADDRESS = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


async def interfaces(host: str) -> tuple[Interface, ...]:
    """Return the addresses of a host to listen on. Raises: OSError."""
    found = await trio.socket.getaddrinfo(
        host or None, None, type=trio.socket.SOCK_STREAM, flags=trio.socket.AI_PASSIVE
    )
    return tuple(dict.fromkeys((int(entry[0]), str(entry[4][0])) for entry in found))


def listen(
    addresses: Sequence[Interface],
    port: int,
    backlog: int,
    *,
    on_absent: Callable[[str, OSError], object] = lambda *_: None,
) -> list[socket.socket]:
    """Listen on one port of all addresses; 0 lets the system choose it. Raises: OSError.

    `on_absent` is called with each address that this machine does not have, and the reason.
    """
    bound: list[socket.socket] = []
    problem: OSError = OSError(errno.EADDRNOTAVAIL, "no address")
    try:
        for family, host in addresses:
            try:
                bound.append(_listen(family, host, port, backlog))
            except OSError as error:
                if error.errno not in _NO_ADDRESS:
                    raise
                problem = error
                on_absent(host, error)
            else:
                port = bound[-1].getsockname()[1]
    except BaseException:
        for one in bound:
            one.close()
        raise
    if not bound:
        raise problem
    return bound


def _listen(family: int, host: str, port: int, backlog: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
        made.listen(backlog)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made
