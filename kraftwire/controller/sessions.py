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
    """The last heartbeats of brokers: `last_ms` by id and epoch, as a process that starts anew has
    sent none; the rest by id.

    Order of `last_ms`: the oldest first, so that expiry looks at no others. `offsets` are the
    offsets of the metadata log that brokers have applied; `shutdown_offsets` where the records of a
    controlled shutdown end. Units: milliseconds.
    """

    timeout_ms: int
    last_ms: dict[tuple[int, int], int] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    shutdown_offsets: dict[int, int] = field(default_factory=dict)

    def renew_all(self, image: MetadataImage, now_ms: int) -> None:
        """Renew the session of every unfenced broker: a change of controller must not fence a
        cluster."""
        self.last_ms = {(broker.id, broker.epoch): now_ms for broker in image.alive_brokers}
        self.offsets.clear()
        self.shutdown_offsets.clear()

    def touch(self, broker: BrokerImage, now_ms: int) -> None:
        """Record a broker's heartbeat."""
        self.end(broker)
        self.last_ms[broker.id, broker.epoch] = now_ms

    def end(self, broker: BrokerImage) -> None:
        """End a broker's session: it has fallen silent, or may stop."""
        self.last_ms.pop((broker.id, broker.epoch), None)

    def is_live(self, broker: BrokerImage, now_ms: int) -> bool:
        """Return whether a broker has a session that has not expired (C-REG-8)."""
        last = self.last_ms.get((broker.id, broker.epoch))
        return last is not None and now_ms - last < self.timeout_ms

    def next_expiry_ms(self) -> int | None:
        """Return when the first session expires."""
        oldest = next(iter(self.last_ms.values()), None)
        return None if oldest is None else oldest + self.timeout_ms

    def have_expired(self, now_ms: int) -> bool:
        """Return whether a session has expired."""
        expiry_ms = self.next_expiry_ms()
        return expiry_ms is not None and now_ms >= expiry_ms

    def expired(self, image: MetadataImage, now_ms: int) -> list[BrokerImage]:
        """Return the unfenced brokers whose sessions have expired; forget all other such
        sessions. Order: by id."""
        before = now_ms - self.timeout_ms
        due = list(takewhile(lambda item: item[1] <= before, self.last_ms.items()))
        found = []
        for key, _ in due:
            broker = image.brokers.get(key[0])
            if broker is None or broker.epoch != key[1] or broker.is_fenced:
                del self.last_ms[key]
            else:
                found.append(broker)
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
