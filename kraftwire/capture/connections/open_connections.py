"""The connections of a capture between two packets: the state that decoding continues from."""

from __future__ import annotations

from dataclasses import dataclass, field

from kraftwire.capture.connections.connection import Connection, Direction
from kraftwire.capture.connections.frame_queue import FrameQueue
from kraftwire.capture.framing.health import Health

__all__ = ["OpenConnections"]


@dataclass(slots=True)
class OpenConnections:
    """The state of decoding between two packets, from which a reader can continue; picklable.

    `frame_queue` and `health` have the totals so far, `flows` both directions of each connection
    by their keys.
    """

    frame_queue: FrameQueue
    flows: dict[bytes, Direction] = field(default_factory=dict)
    open: dict[Connection, None] = field(default_factory=dict)
    closed: dict[Connection, None] = field(default_factory=dict)
    # Connections with something open -> when they were reviewed last.
    troubled: dict[Connection, int] = field(default_factory=dict)

    @property
    def health(self) -> Health:
        """The totals so far."""
        return self.frame_queue.health
