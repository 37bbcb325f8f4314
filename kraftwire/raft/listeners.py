"""What the state machines on top of a Raft core are told, and in which order.

Each gets committed batches one delivery at a time, from where it is, and the changes of leader. A
leader's own state machine hears that it leads only once it has everything of older epochs.

Source: Kafka's `KafkaRaftClient.ListenerContext`; R-LIS-1 to R-LIS-6; KAFKA-15345.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kraftwire.raft.effects import DeliverCommitted, Effect, LeaderChanged

__all__ = ["Listeners"]


class _Leadership(NamedTuple):
    """Who leads. Shape: `end_offset` is the epoch's start if this node does, else its log's end."""

    leader_id: int
    epoch: int
    end_offset: int
    is_mine: bool


class _Listener:
    """One state machine. Shape: `promised` is the end of the delivery at work, -1 for none."""

    __slots__ = ("fired_epoch", "fired_leader", "id", "next_offset", "promised")

    def __init__(self, listener_id: int, next_offset: int) -> None:
        self.id = listener_id
        self.next_offset = next_offset
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

    def register(self, listener_id: int, next_offset: int) -> None:
        """Add a state machine that has everything below an offset; a second time does nothing."""
        if listener_id not in self._listeners:
            self._listeners[listener_id] = _Listener(listener_id, next_offset)
            self._is_changed = True

    def consumed(self, listener_id: int, next_offset: int) -> None:
        """Note that a delivery is through, up to an offset within it."""
        listener = self._listeners.get(listener_id)
        if listener is None or listener.promised < 0:
            return
        end = min(next_offset, listener.promised)
        listener.next_offset = max(listener.next_offset, end)
        listener.promised = -1
        self._is_changed = True

    def leader_changed(self, leader_id: int, epoch: int, end_offset: int, is_mine: bool) -> None:
        """Note who leads, -1 for nobody; with the epoch's start offset if this node does."""
        self._leadership = _Leadership(leader_id, epoch, end_offset, is_mine)
        self._is_changed = True

    def resigned(self) -> None:
        """Forget a leadership that was not told yet: nobody is told of it any more (R-LIS-6)."""
        if self._leadership is not None and self._leadership.is_mine:
            self._leadership = None

    def serve(self, high_watermark: int, log_start: int = 0) -> Sequence[Effect]:
        """What is to be told now. Order: for each listener batches first, then the leader.

        Shape: nothing is delivered to who needs what is before the log's start, in a snapshot.
        """
        if not self._is_changed and high_watermark == self._served_mark:
            return ()
        self._is_changed = False
        self._served_mark = high_watermark
        effects: list[Effect] = []
        for listener in self._listeners.values():
            start = listener.next_offset
            if listener.promised < 0 and log_start <= start < high_watermark:
                listener.promised = high_watermark
                effects.append(DeliverCommitted(listener.id, start, high_watermark))
            if self._leadership is not None:
                change = _leader_change(listener, self._leadership)
                if change is not None:
                    effects.append(change)
        return effects


def _leader_change(listener: _Listener, leadership: _Leadership) -> LeaderChanged | None:
    """The call that a listener has not had yet: at most two in an epoch (R-LIS-6)."""
    leader_id, epoch, end_offset, is_mine = leadership
    is_known_now = leader_id >= 0 and listener.fired_leader < 0
    if epoch < listener.fired_epoch or (epoch == listener.fired_epoch and not is_known_now):
        return None
    if is_mine:
        # Its first record, the LeaderChange, must be consumed, so that everything older is.
        if listener.next_offset <= end_offset:
            return None
        end_offset += 1
    listener.fired_leader = leader_id
    listener.fired_epoch = epoch
    return LeaderChanged(listener.id, leader_id, epoch, end_offset)
