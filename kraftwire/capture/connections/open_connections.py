"""The connections of a capture between two packets: the state that decoding continues from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter

from kraftwire.capture.connections.connection import Connection, Direction
from kraftwire.capture.connections.frame_queue import Outbox
from kraftwire.capture.connections.share import NotShared
from kraftwire.capture.framing.health import Health

__all__ = ["OpenConnections"]


@dataclass(slots=True)
class OpenConnections:
    """The state of decoding between two packets, from which a reader can continue; picklable.

    `outbox` and `health` have the totals so far, `flows` both directions of each connection
    by their keys.
    """

    outbox: Outbox
    flows: dict[bytes, Direction] = field(default_factory=dict)
    open: dict[Connection, None] = field(default_factory=dict)
    closed: dict[Connection, None] = field(default_factory=dict)
    # Connections with something open -> when they were reviewed last.
    troubled: dict[Connection, int] = field(default_factory=dict)

    @property
    def health(self) -> Health:
        """The totals so far."""
        return self.outbox.health

    def add_troubled(
        self, found: Iterable[tuple[Connection, int, int]], places: dict[Connection, int]
    ) -> None:
        """Add connections in trouble, with places and times of their last reviews, in their order.

        `places` are those of the reviews of all others, and will be of these. Raises: NotShared.
        """
        rows = [(places[each], each, time_ns) for each, time_ns in self.troubled.items()]
        taken = {place for place, _, _ in rows}
        for connection, place, time_ns in found:
            if place in taken:
                raise NotShared("connections of several readers were reviewed at once")
            rows.append((place, connection, time_ns))
            places[connection] = place
        self.troubled.clear()
        for _, connection, time_ns in sorted(rows, key=itemgetter(0)):
            self.troubled[connection] = time_ns
