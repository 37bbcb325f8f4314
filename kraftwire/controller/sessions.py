"""The sessions of brokers: what their heartbeats told since this controller became active.

Nothing of it is in the log. Rules: C-HB-1 to C-HB-10. Source: Kafka's `BrokerHeartbeatManager` and
`BrokerHeartbeatTracker`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile

from kraftwire.controller.image import BrokerImage, MetadataImage


@dataclass(slots=True)
class Sessions:
    """The last heartbeats of brokers, by id.

    Order of `last_ms`: the oldest first, so that expiry looks at no others. `offsets` are the
    offsets of the metadata log that brokers have applied; `shutdown_offsets` where the records of a
    controlled shutdown end. Units: milliseconds.
    """

    timeout_ms: int
    last_ms: dict[int, int] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    shutdown_offsets: dict[int, int] = field(default_factory=dict)

    def renew_all(self, image: MetadataImage, now_ms: int) -> None:
        """Give every unfenced broker a fresh session: a change of controller must not fence a
        cluster."""
        self.last_ms = {broker.id: now_ms for broker in image.alive_brokers}
        self.offsets.clear()
        self.shutdown_offsets.clear()

    def touch(self, broker_id: int, now_ms: int) -> None:
        """Record a broker's heartbeat."""
        self.last_ms.pop(broker_id, None)
        self.last_ms[broker_id] = now_ms

    def is_live(self, broker: BrokerImage, now_ms: int) -> bool:
        """Return whether a broker is unfenced and its session has not expired."""
        last = self.last_ms.get(broker.id)
        return not broker.is_fenced and last is not None and now_ms - last < self.timeout_ms

    def next_expiry_ms(self) -> int | None:
        """Return when the first session expires."""
        oldest = next(iter(self.last_ms.values()), None)
        return None if oldest is None else oldest + self.timeout_ms

    def expired(self, image: MetadataImage, now_ms: int) -> list[BrokerImage]:
        """Return the unfenced brokers whose sessions have expired; forget all other such
        sessions. Order: by id."""
        before = now_ms - self.timeout_ms
        due = list(takewhile(lambda item: item[1] <= before, self.last_ms.items()))
        brokers = [image.brokers.get(broker_id) for broker_id, _ in due]
        found = [broker for broker in brokers if broker is not None and not broker.is_fenced]
        for broker_id in {broker_id for broker_id, _ in due} - {broker.id for broker in found}:
            del self.last_ms[broker_id]
        return sorted(found, key=lambda broker: broker.id)

    def forget_shutdown(self, broker_id: int) -> None:
        """Forget what a broker's heartbeats told; its next ones count from the beginning."""
        self.offsets.pop(broker_id, None)
        self.shutdown_offsets.pop(broker_id, None)

    def lowest_offset(self, image: MetadataImage) -> int | None:
        """Return the offset that all brokers that are not fenced and do not shut down have applied,
        None without such brokers.

        A registration says for good that its broker began to shut down; here only counts what its
        heartbeats told (C-HB-6, C-FEN-4).
        """
        return min(
            (
                self.offsets.get(broker.id, -1)
                for broker in image.alive_brokers
                if broker.id not in self.shutdown_offsets
            ),
            default=None,
        )
