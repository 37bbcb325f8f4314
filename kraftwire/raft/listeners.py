"""What the state machines on top of a Raft core are told, and in which order.

Each gets snapshots and committed batches one delivery at a time, from where it is, and the changes
of leader. A leader's own state machine hears that it leads only once it has everything that was
written before it may write.

Source: Kafka's `KafkaRaftClient.ListenerContext`; R-LIS-1 to R-LIS-6; KAFKA-15345.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kraftwire.raft.effects import DeliverCommitted, Effect, LeaderChanged, LoadSnapshot
from kraftwire.raft.log_picture import LogPicture

__all__ = ["Listeners"]


class _Leadership(NamedTuple):
    """Who leads. `end_offset` is the log's end if another node leads; if this node does, what must
    be consumed first: its epoch's first records."""

    leader_id: int
    epoch: int
    end_offset: int
    is_mine: bool


class _Listener:
    """One state machine.

    `promised` is the end of the delivery in flight, -1 for none. `leads_from` is what it must have
    consumed before it hears that this node leads, because it was registered after the epoch began.
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
        """Add a state machine that has everything below an offset; a second time does nothing.

        `leader_end` is the end of what this node has given offsets to as a leader.
        """
        if listener_id not in self._listeners:
            self._listeners[listener_id] = _Listener(listener_id, next_offset, leader_end)
            self._is_changed = True

    def may_be_at(self, listener_id: int, offset: int) -> bool:
        """Whether a state machine can have applied exactly what is below an offset.

        It says itself how far it is; here is known what it has at least, and what it was given
        and has not answered for yet.
        """
        listener = self._listeners.get(listener_id)
        if listener is None:
            return False
        return listener.next_offset <= offset <= max(listener.next_offset, listener.promised)

    def lowest_offset(self) -> int:
        """The end of what all state machines have applied; huge without any."""
        return min((one.next_offset for one in self._listeners.values()), default=1 << 63)

    def consumed(self, listener_id: int, next_offset: int) -> None:
        """Note that a delivery has finished, up to an offset within it."""
        listener = self._listeners.get(listener_id)
        if listener is None or listener.promised < 0:
            return
        end = min(next_offset, listener.promised)
        listener.next_offset = max(listener.next_offset, end)
        listener.promised = -1
        self._is_changed = True

    def wake(self) -> None:
        """Look at everybody again: the log has another start."""
        self._is_changed = True

    def leader_changed(self, leader_id: int, epoch: int, end_offset: int, is_mine: bool) -> None:
        """Note who leads, -1 for nobody.

        `end_offset` is the log's end, of this node's own leadership that of its first records.
        """
        self._leadership = _Leadership(leader_id, epoch, end_offset, is_mine)
        self._is_changed = True
        for listener in self._listeners.values():
            listener.leads_from = 0

    def resigned(self) -> None:
        """Forget a leadership that was not told yet: nobody is told of it any more (R-LIS-6)."""
        if self._leadership is not None and self._leadership.is_mine:
            self._leadership = None

    def has_news(self, high_watermark: int) -> bool:
        """Whether `serve` has anything to look at; it is asked in every step."""
        return self._is_changed or high_watermark != self._served_mark

    def serve(
        self, high_watermark: int, log: LogPicture, leader_end: int = -1
    ) -> Sequence[Effect]:
        """What is to be told now. Order: for each listener the log first, then the leader.

        A listener that needs what is before the log's start gets the newest snapshot (R-LIS-2).
        `leader_end` is the end of what this node has given offsets to, if it leads.
        """
        if not self.has_news(high_watermark):
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
    listener: _Listener, high_watermark: int, log: LogPicture
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
    """The call that a listener has not had yet: at most two in an epoch (R-LIS-6)."""
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
