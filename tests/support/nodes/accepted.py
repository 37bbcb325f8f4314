"""A connection that a node has accepted: `accepted` makes it as a node does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio

from kraftwire.node.config import ConnectionLimits
from kraftwire.node.config_listeners import Listener
from kraftwire.node.connection import AcceptedConnection, Service
from kraftwire.node.connection_end import ConnectionStats
from kraftwire.node.context import Request
from kraftwire.node.guard import Guard
from kraftwire.node.logs import RateLimit
from kraftwire.wire.message import Message

Handle = Callable[[Request], Awaitable[Message | None]]

# For peers and clients.
LISTENER = Listener("CONTROLLER", "here", 9093, True, True)


def accepted(
    stream: Any,
    versions: Mapping[int, tuple[int, int]],
    answer: Handle,
    *,
    listener: Listener = LISTENER,
    guard: Guard | None = None,
    limits: ConnectionLimits | None = None,
    stats: ConnectionStats | None = None,
    **options: Any,
) -> AcceptedConnection:
    """A connection on a stream whose requests of these versions are answered; serve it."""
    return AcceptedConnection(
        stream,
        Service(listener, versions, answer, guard),
        limits or ConnectionLimits(),
        stats=stats or ConnectionStats(),
        refusals=RateLimit(trio.current_time),
        **options,
    )
