"""The deliveries to the state machines on top of a Raft core, and their order.

Each gets snapshots and committed batches from its position on, one delivery at a time, and the
changes of leader. A leader's own state machine learns that it leads only once it has applied
everything written before.

Source: Kafka's `KafkaRaftClient.ListenerContext`; R-LIS-1 to R-LIS-6; KAFKA-15345.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kraftwire.raft.effects import DeliverCommitted, Effect, LeaderChanged, LoadSnapshot
from kraftwire.raft.log_view import LogView


class _Leadership(NamedTuple):
    """The leader. `end_offset` is the log's end if another node leads; if this node does, it is the
    end of its epoch's first records, which must be consumed first."""

    leader_id: int
    epoch: int
    end_offset: int
    is_mine: bool


class _Listener:
    """One state machine.

    `promised` is the end of the delivery in flight, -1 for none. `leads_from` is what it must have
    consumed before it learns that this node leads, because it was registered after the epoch
    began.
    """

    __slots__ = ("fired_epoch", "fired_leader", "id", "leads_from", "next_offset", "promised")

    def __init__(self, listener_id: int, next_offset: int, leads_from: int) -> None:
        self.id = listener_id
        self.next_offset = next_offset
        self.leads_from = leads_from
        self.promised = -1
        self.fired_leader = -1
        self.fired_epoch = 0


class Listeners:
    """The registered state machines. Order: served in the order of registration."""

    __slots__ = ("_is_changed", "_leadership", "_listeners", "_served_mark")

    def __init__(self) -> None:
        self._listeners: dict[int, _Listener] = {}
        self._leadership: _Leadership | None = None
        self._is_changed = False
        self._served_mark = -1

    def register(self, listener_id: int, next_offset: int, leader_end: int = 0) -> None:
        """Add a state machine that has everything below an offset; a second call has no effect.

        `leader_end` is the next offset that this node will assign as leader.
        """
        if listener_id not in self._listeners:
            self._listeners[listener_id] = _Listener(listener_id, next_offset, leader_end)
            self._is_changed = True

    def may_be_at(self, listener_id: int, offset: int) -> bool:
        """Return whether a state machine can have applied exactly what is below an offset.

        It reports its own position; known here are a lower bound and the delivery in flight.
        """
        listener = self._listeners.get(listener_id)
        if listener is None:
            return False
        return listener.next_offset <= offset <= max(listener.next_offset, listener.promised)

    def lowest_offset(self) -> int:
        """Return the end of what all state machines have applied; a huge number if there are
        none."""
        return min((one.next_offset for one in self._listeners.values()), default=1 << 63)

    def consumed(self, listener_id: int, next_offset: int) -> None:
        """Record that a delivery has finished, up to an offset within it."""
        listener = self._listeners.get(listener_id)
        if listener is None or listener.promised < 0:
            return
        end = min(next_offset, listener.promised)
        listener.next_offset = max(listener.next_offset, end)
        listener.promised = -1
        self._is_changed = True

    def wake(self) -> None:
        """Check all state machines again: the log has another start."""
        self._is_changed = True

    def leader_changed(self, leader_id: int, epoch: int, end_offset: int, is_mine: bool) -> None:
        """Record who leads, -1 for nobody.

        `end_offset` is the log's end or, if this node leads, that of its epoch's first records.
        """
        self._leadership = _Leadership(leader_id, epoch, end_offset, is_mine)
        self._is_changed = True
        for listener in self._listeners.values():
            listener.leads_from = 0

    def resigned(self) -> None:
        """Forget a leadership that has not been reported yet (R-LIS-6)."""
        if self._leadership is not None and self._leadership.is_mine:
            self._leadership = None

    def has_changes(self, high_watermark: int) -> bool:
        """Return whether `serve` has anything to do; called in every step."""
        return self._is_changed or high_watermark != self._served_mark

    def serve(
        self, high_watermark: int, log: LogView, leader_end: int = -1
    ) -> Sequence[Effect]:
        """Return the deliveries that are due. Order: for each listener the log first, then the
        leader.

        A listener that needs records before the log's start gets the newest snapshot (R-LIS-2).
        `leader_end` is the next offset that this node will assign, if it leads.
        """
        if not self.has_changes(high_watermark):
            return ()
        self._is_changed = False
        self._served_mark = high_watermark
        effects: list[Effect] = []
        for listener in self._listeners.values():
            if listener.promised < 0 and listener.next_offset < high_watermark:
                effects += _next_delivery(listener, high_watermark, log)
            if self._leadership is not None:
                change = _leader_change(listener, self._leadership, leader_end)
                if change is not None:
                    effects.append(change)
        return effects


def _next_delivery(
    listener: _Listener, high_watermark: int, log: LogView
) -> Sequence[Effect]:
    if listener.next_offset >= log.start_offset:
        listener.promised = high_watermark
        return [DeliverCommitted(listener.id, listener.next_offset, high_watermark)]
    committed = [one for one in log.snapshots if one.offset <= high_watermark]
    if not committed:
        return ()
    listener.promised = committed[-1].offset
    return [LoadSnapshot(listener.id, committed[-1])]


def _leader_change(
    listener: _Listener, leadership: _Leadership, leader_end: int
) -> LeaderChanged | None:
    """Return the change of leader that a listener has not had yet: at most two in an epoch
    (R-LIS-6)."""
    leader_id, epoch, end_offset, is_mine = leadership
    is_known_now = leader_id >= 0 and listener.fired_leader < 0
    if epoch < listener.fired_epoch or (epoch == listener.fired_epoch and not is_known_now):
        return None
    if is_mine:
        # The epoch's first records must be consumed, so that everything older is.
        if listener.next_offset < max(end_offset, listener.leads_from):
            return None
        end_offset = leader_end
    listener.fired_leader = leader_id
    listener.fired_epoch = epoch
    return LeaderChanged(listener.id, leader_id, epoch, end_offset)
