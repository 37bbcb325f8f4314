"""Accepting connections: binding, accepting, counting.

There are caps on connections in total and per address, and a reserve of file descriptors: elections
write files, so a node whose connections used up all descriptors could no longer vote. `connection`
handles the traffic.

Source: Kafka's `SocketServer.Acceptor` and `ConnectionQuotas`.
"""

from __future__ import annotations

import errno
import os
import resource
import socket
from collections import Counter
from collections.abc import Awaitable, Callable

import trio

from kraftwire.errors import UsageError
from kraftwire.limits import CONNECTION_BYTES_MAX, DESCRIPTORS_RESERVED
from kraftwire.node.admission import OPEN_CONNECTION_BYTES
from kraftwire.node.config import ConnectionLimits
from kraftwire.node.config_listeners import Listener
from kraftwire.node.logs import RateLimit, log
from kraftwire.transport.listening import interfaces, listen

Serve = Callable[[trio.SocketStream, str], Awaitable[None]]

# Out of file descriptors or memory: retrying helps only after a pause.
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}
_EXHAUSTED_WAIT = 0.1
# The system holds as many that are not accepted yet as `socket.listen.backlog.size` says, 50 by
# default as in Kafka. Beyond that a client tries again after a second, so all of them are accepted
# in one round of the event loop.
ACCEPTED_AT_ONCE = 64

# TCP probes a silent peer after this many seconds, and then this many times at this interval.
# Unacknowledged data times out after the same total time.
PEER_PROBE_AFTER_SECONDS = 10
PEER_PROBE_SECONDS = 5
PEER_PROBES = 4

# TCP options and their values: macOS has another name for the first, and not all systems have the
# last.
_PATIENCE_SECONDS = PEER_PROBE_AFTER_SECONDS + PEER_PROBES * PEER_PROBE_SECONDS
_OPTIONS = {
    "TCP_KEEPIDLE": PEER_PROBE_AFTER_SECONDS,
    "TCP_KEEPALIVE": PEER_PROBE_AFTER_SECONDS,
    "TCP_KEEPINTVL": PEER_PROBE_SECONDS,
    "TCP_KEEPCNT": PEER_PROBES,
    "TCP_USER_TIMEOUT": _PATIENCE_SECONDS * 1000,
}


class Acceptor:
    """Accepts connections on all listeners of a node within common limits."""

    def __init__(
        self, limits: ConnectionLimits, *, on_refused: Callable[[], None], refusals: RateLimit
    ) -> None:
        self._limits = limits
        self._overrides = dict(limits.overrides)
        self._on_refused = on_refused
        self._refusals = refusals
        self._by_address: Counter[str] = Counter()

    @property
    def connection_count(self) -> int:
        """The number of open connections."""
        return self._by_address.total()

    async def run(self, sockets: list[trio.SocketListener], serve: Serve) -> None:
        """Accept until cancelled. `serve` gets each stream and `address:port` of its peer, and
        closes it."""
        async with trio.open_nursery() as nursery:
            for listening in sockets:
                nursery.start_soon(self._accept, listening, serve, nursery)

    async def _accept(
        self, listening: trio.SocketListener, serve: Serve, nursery: trio.Nursery
    ) -> None:
        async with listening:
            # trio accepts one in a round of its loop; this is the same socket.
            with socket.socket(fileno=os.dup(listening.socket.fileno())) as waiting:
                waiting.setblocking(False)
                while True:
                    await trio.lowlevel.wait_readable(listening.socket)
                    try:
                        for _ in range(ACCEPTED_AT_ONCE):
                            self._admit(waiting.accept()[0], serve, nursery)
                    except BlockingIOError:
                        pass
                    except OSError as error:
                        if error.errno in _EXHAUSTED:
                            self._refusals.log("exhausted", "accept-failed", problem=error)
                            await trio.sleep(_EXHAUSTED_WAIT)

    def _admit(self, accepted: socket.socket, serve: Serve, nursery: trio.Nursery) -> None:
        """Serve a connection, or refuse it. Raises: OSError if it has ended."""
        try:
            address, port = accepted.getpeername()[:2]
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(accepted))
            probe_peer(stream.socket)
        except BaseException:
            accepted.close()
            raise
        if self._has_room(address):
            self._by_address[address] += 1
            nursery.start_soon(self._serve, serve, stream, address, port)
        else:
            self._on_refused()
            stream.socket.close()

    async def _serve(
        self, serve: Serve, stream: trio.SocketStream, address: str, port: int
    ) -> None:
        try:
            await serve(stream, f"{address}:{port}")
        finally:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def _has_room(self, address: str) -> bool:
        limits = self._limits
        most = self._overrides.get(address, limits.connections_per_address)
        if self._by_address[address] >= most:
            self._refusals.log("address", "refused", address=address, most=most)
            return False
        if self.connection_count >= limits.connections:
            self._refusals.log("total", "refused", address=address, most=limits.connections)
            return False
        return True


def probe_peer(sock: trio.socket.SocketType) -> None:
    """Make TCP detect a peer that vanishes without closing, for example in a power cut.

    Reading from the connection or waiting for its end then fails.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


async def bind(listener: Listener, backlog: int) -> list[trio.SocketListener]:
    """Open the sockets of a listener, one for each address of its host, all with one port.

    Raises: UsageError naming listener and address if it cannot be done.
    """
    place = f"{listener.name}://{listener.host}:{listener.port}"
    try:
        addresses = await interfaces(listener.host)
    except OSError as error:
        raise UsageError(f"listener {place}: {error.strerror or error}") from error
    try:
        bound = listen(
            addresses, listener.port, backlog,
            on_absent=lambda address, problem: log(
                "debug", "bind-failed", listener=place, address=address, problem=problem
            ),
        )  # fmt: skip
    except OSError as error:
        raise UsageError(f"listener {place}: cannot listen: {error.strerror or error}") from error
    return [trio.SocketListener(trio.socket.from_stdlib_socket(one)) for one in bound]


def raise_descriptor_limit() -> int:
    """Raise the soft limit of this process to the hard one; returns how many may be open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # the real limit may be lower than reported
            return soft
        return hard
    return soft


def connections_max(
    descriptors: int, open_bytes: int = OPEN_CONNECTION_BYTES, *, sockets: int = 1
) -> int:
    """Return how many connections a process with this many descriptors may accept.

    The reserve is for the log, its snapshots and the connections to other nodes; a process that has
    very few keeps half of them. Each connection takes so many `sockets`. In any case idle
    connections take at most half of the memory that all connections may take.
    """
    most = CONNECTION_BYTES_MAX // open_bytes // 2
    if descriptors == resource.RLIM_INFINITY:
        return most
    return min(most, max(descriptors - DESCRIPTORS_RESERVED, descriptors // 2) // sockets)
