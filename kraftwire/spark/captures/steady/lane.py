"""The lane of a connection for many in-order packets at once.

Owns when packets may take it, the state that it leaves for those that may not, and the order of
frames that have to be read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kraftwire.capture.capture import Capture
from kraftwire.capture.connections.connection import Direction, reverse_key
from kraftwire.capture.connections.kafka_connection import Conversation
from kraftwire.capture.packets.packet import PAUSE, Packet
from kraftwire.spark.captures.reading import Held
from kraftwire.spark.captures.steady.cutting import Run, cut
from kraftwire.spark.captures.steady.harvest import Harvest, Known
from kraftwire.spark.captures.steady.holed import HoledPatterns
from kraftwire.spark.captures.steady.host import FilePlaces, Host
from kraftwire.spark.captures.steady.packets import Packets, Segments
from kraftwire.spark.captures.steady.patterns import Patterns

__all__ = ["PACKETS_MIN", "Lane", "SteadyCapture"]

# Fewer packets are read faster one by one.
PACKETS_MIN = 48

# Packets to take at once: at first, and at most, which bounds memory.
_PACKETS_FIRST = 4_000
_PACKETS_MAX = 20_000

# Packets to skip after something unusual, and where the lane could not be taken.
_BREATH = 4
_PAUSE = 16


class SteadyCapture(Capture):
    """The frames of a connection in memory, a portion at a time, except those that a lane took.
    """

    def __init__(self, portions: Iterator[Held], lane: Lane, **options: Any) -> None:
        super().__init__([], **options)
        self._portions = portions
        self._lane = lane

    def direction(self, key: bytes) -> Direction | None:
        """A direction of the connection, as it is now."""
        return self._flows.get(key)

    def _files(self) -> Iterator[Iterator[Packet]]:
        self._outbox.begin_file(self._source.path, 0)
        for portion in self._portions:
            yield self._lane.packets(self, Packets(portion, self.health))


class Lanes:
    """The directions of a connection in the state that the lane needs.

    `way` is the direction of requests.
    """

    def __init__(self, capture: SteadyCapture, keys: tuple[bytes, bytes]) -> None:
        self.flows = [capture.direction(key) for key in keys]
        self.conversation: Conversation | None = None
        self.way = 0
        first, second = self.flows
        if first is None or second is None or first.connection is not second.connection:
            return
        stage = first.connection.stage
        if isinstance(stage, Conversation) and self._is_clear(stage):
            self.way = 0 if stage.is_client(first) else 1
            self.conversation = stage

    def _is_clear(self, stage: Conversation) -> bool:
        """Whether both directions are between two frames and nothing is open."""
        if stage.parked or not all(request.time_ns >= 0 for request in stage.pending):
            return False
        return stage.requests.is_clear and stage.responses.is_clear


class Lane:
    """Takes runs of packets of one connection."""

    def __init__(
        self,
        key: bytes,
        places: FilePlaces,
        patterns: tuple[Patterns, HoledPatterns],
        host: Host,
    ) -> None:
        self._keys = key, reverse_key(key)
        self._known = Known(host, places, *patterns)
        self._window = _PACKETS_FIRST

    def packets(self, capture: SteadyCapture, packets: Packets) -> Iterator[Packet]:
        """Yield the packets that have to be read one by one; take the others in between."""
        self._segments = Segments(packets, *self._keys)
        at = barred = 0
        count = len(packets)
        row = packets.row
        while at < count:
            if at >= barred:
                yield PAUSE  # frames before those that are taken here
                end = self._take(capture, at)
                if end > at:
                    at = end
                    continue
                later = self._later(at)
                barred = max(later, at + (_BREATH if later > at else _PAUSE))
            yield row(at)
            at += 1

    def _later(self, at: int) -> int:
        """Return the first packet, from `at` on, that begins a sufficiently long run."""
        while at < len(self._segments.packets):
            end = self._segments.end_of_run(at)
            if end - at >= PACKETS_MIN:
                return at
            at = end + 1
        return at

    def _take(self, capture: SteadyCapture, start: int) -> int:
        """Take a run of packets; return the packet after it, or the first one if there is no run.
        """
        end = min(self._segments.end_of_run(start), start + self._window)
        if end - start < PACKETS_MIN:
            return start
        lanes = Lanes(capture, self._keys)
        conversation = lanes.conversation
        if conversation is None:
            return start
        for way, flow in enumerate(lanes.flows):
            first = self._segments.first(way, start, end)
            if first is not None and (flow is None or first != flow.fast_seq):
                return start
        raw = conversation.requests.raw_client
        if raw is None:
            return start
        before = [request.correlation_id for request in conversation.pending]
        run = cut(self._segments, (start, end), (lanes.way, raw), before)
        taken = 0 if run is None else run.end - start
        # Cutting too far has to be repeated, so the next attempt after a surprise is smaller.
        is_whole = taken > (end - start) // 2
        self._window = min(4 * self._window, _PACKETS_MAX) if is_whole else _PACKETS_FIRST
        if run is None or taken < PACKETS_MIN // 2:
            return start
        self._account(run, lanes, conversation)
        return run.end

    def _account(self, run: Run, lanes: Lanes, conversation: Conversation) -> None:
        """Update the state as if the packets had come one by one."""
        for way, flow in enumerate(lanes.flows):
            if flow is not None:
                count = run.counts[0 if way == lanes.way else 1]
                flow.fast_seq = (flow.fast_seq + count) & 0xFFFFFFFF
        counts = conversation.health.bytes
        counts.payload += sum(run.counts)
        counts.frames += int(run.sizes.sum()) + 4 * len(run.sizes)
        conversation.outbox.count += len(run.sizes)
        asked = np.flatnonzero(~run.is_response)
        if len(asked):
            conversation.requests.pass_by(int(run.ids[asked[-1]]))
        pending = list(conversation.pending)
        left = Harvest(self._known, run, self._segments.packets, conversation).take(pending)
        conversation.pending.clear()
        conversation.pending.extend(left)
