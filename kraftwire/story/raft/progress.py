"""The growth of the log and the progress of each replica, Fetch by Fetch.

A replica's lag is the number of records between its fetch offset and the largest end of the log
that any frame has shown so far. A follower's fetch offset shows how much it has; the leader's
answers bring the high watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kraftwire.capture.recorded import Recordings
from kraftwire.decode.text import duration_text, with_remarks
from kraftwire.limits import RAFT_EVENT_COUNT_MAX
from kraftwire.story.raft.model import LEADS, NOT_RECORDED, NodeId, RaftEvent, Replica
from kraftwire.story.raft.nodes import SILENCE_S

# The number of columns of the lag over time; spans double when they are used up.
SPAN_COUNT = 40

# Records that stay uncommitted for longer than this get a line.
_STUCK_S = 1.0


class Spans:
    """Maxima of a value over equal spans of time, in bounded memory.

    The span starts at one second and doubles until the number of spans suffices.
    """

    def __init__(self, start: float) -> None:
        self._start = start
        self._span = 1.0
        self._maxima: dict[int, int] = {}

    def add(self, time: float, value: int) -> None:
        """Add a value at a time."""
        index = int((time - self._start) / self._span)
        while index >= SPAN_COUNT:
            self._span *= 2
            folded: dict[int, int] = {}
            for old, each in self._maxima.items():
                folded[old // 2] = max(each, folded.get(old // 2, each))
            self._maxima = folded
            index = int((time - self._start) / self._span)
        self._maxima[index] = max(value, self._maxima.get(index, value))

    def values(self, end: float, recordings: Recordings) -> list[int | None]:
        """Return the maximum of each span up to a time, None for spans without a value, and
        `NOT_RECORDED` for those of which nothing was recorded.
        """
        count = min(int((end - self._start) / self._span) + 1, SPAN_COUNT)
        return [
            self._maxima.get(index, None if self._has_packets(index, recordings) else NOT_RECORDED)
            for index in range(count)
        ]

    def _has_packets(self, index: int, recordings: Recordings) -> bool:
        start = self._start + index * self._span
        return recordings.has_packets(start, start + self._span)


class ReplicaProgress:
    """Gathers the high watermark, the end of the log, and the fetch offsets of replicas."""

    def __init__(self, recordings: Recordings) -> None:
        self._recordings = recordings
        # The time of the last frame.
        self._latest = 0.0
        self.replicas: dict[NodeId, Replica] = {}
        self.high_watermark = -1
        self.log_end = -1
        self._leader: NodeId | None = None
        self._start: float | None = None
        self._spans: dict[NodeId, Spans] = {}
        # Node -> time of its last fetch, or the last time it was seen as leader.
        self._at_work: dict[NodeId, float] = {}
        self._uncommitted_since: float | None = None
        self._events: list[RaftEvent] = []

    def on_fetch(self, node: NodeId, offset: int, time: float) -> None:
        """Add a Fetch of a replica from an offset."""
        known = self.replicas.get(node)
        if known is None:
            known = self._add(node, offset, time)
        known.fetch_count += 1
        known.first_fetch = min(known.first_fetch, time)
        if time < known.last_fetch:
            return  # the frame waited for a missing packet, and later ones came first
        gap = time - self._at_work.get(node, time)
        if gap > known.gap_max:
            known.gap_max = max(known.gap_max, self._recordings.longest(time - gap, time))
        self._at_work[node] = max(time, self._at_work.get(node, time))
        known.last_fetch = time
        known.offset = offset
        self._on_end(offset, time)
        lag = max(0, self.log_end - offset)
        known.lag_max = max(known.lag_max, lag)
        self._spans[node].add(time, lag)

    def on_leader(self, leader: NodeId, high_watermark: int, time: float, epoch: int) -> None:
        """Add a high watermark that the leader sent."""
        self._leader = leader
        self._forget_after_pause(time)
        known = self.replicas.get(leader)
        if known is not None:
            self._at_work[leader] = time
            known.offset = self.log_end
            self._spans[leader].add(time, LEADS)
        if high_watermark <= self.high_watermark:
            if self._uncommitted_since is None and self.log_end > self.high_watermark:
                self._uncommitted_since = time
            return
        since = self._uncommitted_since
        if since is not None and time - since > _STUCK_S and self.high_watermark >= 0:
            self._note_stuck(since, time, epoch)
        self.high_watermark = high_watermark
        self._on_end(high_watermark, time)
        self._uncommitted_since = time if self.log_end > high_watermark else None

    def on_records(self, end_offset: int, time: float) -> None:
        """Note that the log has records up to an offset."""
        self._on_end(end_offset, time)

    def events(self) -> Iterator[RaftEvent]:
        """Yield the events of a high watermark that stood still below the end of the log."""
        yield from self._events

    def arrivals(
        self,
        kinds: Mapping[NodeId, str],
        voters_at: Callable[[float], frozenset[int]],
        first_frame: float,
    ) -> Iterator[RaftEvent]:
        """Yield the first Fetch of each replica. `kinds` are known, and so are voters by time."""
        for each in self.replicas.values():
            kind = "broker" if kinds.get(each.node) == "broker" else "observer"
            if each.node in voters_at(each.first_fetch):
                kind = "voter"
            # Where the time before is not recorded, it may have fetched all along.
            before = each.first_fetch - SILENCE_S
            begins = each.first_offset == 0 or (
                before > first_frame
                and not self._recordings.pauses(before, each.first_fetch)
            )
            verb = "begins to fetch" if begins else "fetches"
            text = with_remarks(f"{verb} at offset {each.first_offset}", [kind])
            details = {"offset": each.first_offset, "kind": kind, "begins": begins}
            yield RaftEvent(each.first_fetch, "fetch", text, None, each.node, details)

    def finish(self, end: float) -> None:
        """Complete the lags over time, up to the last frame."""
        for node, known in self.replicas.items():
            known.lags = self._spans[node].values(end, self._recordings)

    def _forget_after_pause(self, time: float) -> None:
        """Forget since when records wait, if they may have been committed unseen."""
        if self._recordings.pauses(self._latest, time):
            self._uncommitted_since = None
        self._latest = max(time, self._latest)

    def _add(self, node: NodeId, offset: int, time: float) -> Replica:
        if self._start is None:
            self._start = self._latest = time
        self._spans[node] = Spans(self._start)
        known = self.replicas[node] = Replica(node, time, offset, time)
        return known

    def _on_end(self, offset: int, time: float) -> None:
        if offset > self.log_end:
            self.log_end = offset
            if self._uncommitted_since is None and offset > self.high_watermark:
                self._uncommitted_since = time

    def _note_stuck(self, since: float, time: float, epoch: int) -> None:
        if len(self._events) >= RAFT_EVENT_COUNT_MAX:
            return
        text = f"high watermark was stuck at {self.high_watermark}"
        text += f" for {duration_text(time - since)}"
        details = {"highWatermark": self.high_watermark, "seconds": time - since}
        self._events.append(RaftEvent(since, "stuck", text, epoch, None, details))
