"""The content of the metadata log: each batch once, however many replicas fetched it.

Owns the order of the log (a batch of a newer epoch replaces earlier ones at its offset) and the
choice of records that get a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kraftwire.errors import WireError
from kraftwire.limits import RAFT_EVENT_COUNT_MAX, RAFT_HIGHLIGHT_COUNT_MAX
from kraftwire.records.decoded import Decoded
from kraftwire.records.json_form import decode_record
from kraftwire.records.reader import Batch, read_batches
from kraftwire.records.record import Record
from kraftwire.story.raft.highlights import Topics, highlight
from kraftwire.story.raft.model import Event, Highlight, LogSummary

__all__ = ["Extent", "MetadataLog", "Place"]

_FAMILY = "metadata"
_PROBLEM_COUNT_MAX = 20

# New records reach the first follower at once; records fetched later than this are history.
_HISTORY_S = 5.0


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a record in the log, and the time when it was written."""

    offset: int
    epoch: int
    time: float


@dataclass(frozen=True, slots=True)
class Extent:
    """The offsets and the epoch of a batch."""

    base_offset: int
    last_offset: int
    epoch: int


class MetadataLog:
    """Reads batches in the order in which they are seen, and passes control records on.

    `on_control` gets every control record in the order of the log, `on_truncation` the offset,
    epoch and time at which a newer epoch overwrote the log. With `show_secrets`, values of secret
    configuration keys are shown.
    """

    def __init__(
        self,
        on_control: Callable[[Decoded, Place], None],
        on_truncation: Callable[[int, int, float], None] | None = None,
        *,
        show_secrets: bool = False,
    ) -> None:
        self.events: list[Event] = []
        self._on_control = on_control
        self._on_truncation = on_truncation
        self._show_secrets = show_secrets
        self._counts: Counter[str] = Counter()
        self._summary = LogSummary()
        self._topics = Topics()
        self._next_offset = -1
        self._epoch = -1

    @property
    def is_empty(self) -> bool:
        """Whether no batch has been read yet."""
        return self._summary.first_offset is None

    def see_bytes(self, data: bytes | memoryview, time: float) -> int:
        """Read the records field of a Fetch response; return its end offset, -1 if it is empty."""
        end = -1
        try:
            for batch in read_batches(data):
                self.see_batch(batch, time)
                end = batch.last_offset + 1
        except WireError as error:
            self._note_problem(str(error))
        return end

    def see_batch(self, batch: Batch, time: float | None = None) -> None:
        """Read a batch, unless it was read before; `time` is when a frame brought it."""
        epoch = batch.partition_leader_epoch
        extent = Extent(getattr(batch, "base_offset", -1), batch.last_offset, epoch)
        if not self._goes_on(extent, time or batch.max_timestamp / 1000):
            return
        found = batch.iter_salvage()
        for row in found:
            at = _time_of(row.timestamp / 1000, time)
            self._record(row, Place(row.offset, epoch, at), is_control=batch.is_control)
        if found.damage is not None:
            self._note_problem(str(found.damage))

    def see_control_records(
        self, extent: Extent, records: Iterable[tuple[Decoded, int, float]], time: float | None
    ) -> None:
        """Add the control records of a batch that was decoded elsewhere.

        `records` are (record, offset, seconds since the epoch when it was written), and `time` is
        when a frame brought the batch.
        """
        rows = list(records)
        written = rows[0][2] if rows else 0.0
        if not self._goes_on(extent, time or written):
            return
        for decoded, offset, at in rows:
            self._counts[decoded.type] += 1
            self._on_control(decoded, Place(offset, extent.epoch, _time_of(at, time)))

    def _goes_on(self, extent: Extent, time: float) -> bool:
        """Return whether a batch is new; if so, the log now ends after it."""
        if extent.base_offset < self._next_offset:
            if extent.epoch <= self._epoch:
                return False
            self._note_truncation(extent.base_offset, extent.epoch, time)
        if self._summary.first_offset is None:
            self._summary.first_offset = extent.base_offset
        self._next_offset, self._epoch = extent.last_offset + 1, extent.epoch
        self._summary.end_offset = self._next_offset
        self._summary.batches += 1
        return True

    def summary(self) -> LogSummary:
        """Return a summary of all batches read so far."""
        self._summary.counts = dict(self._counts.most_common())
        self._summary.highlights = [
            replace(each, text=self._topics.complete(each.text)) if each.kind == "topic" else each
            for each in self._summary.highlights
        ]
        return self._summary

    def _record(self, row: Record, place: Place, *, is_control: bool) -> None:
        try:
            decoded = decode_record(row, _FAMILY, is_control=is_control)
        except WireError as error:
            self._note_problem(f"record at offset {row.offset}: {error}")
            return
        if decoded is None:
            return
        self._counts[decoded.type] += 1
        if is_control:
            self._on_control(decoded, place)
        if decoded.message is None:
            return
        message, topics = decoded.message, self._topics
        topics.see(message, place.time)
        found = highlight(message, place.time, topics, show_secrets=self._show_secrets)
        if found is None:
            return
        if len(self._summary.highlights) < RAFT_HIGHLIGHT_COUNT_MAX:
            self._summary.highlights.append(Highlight(place.offset, place.time, *found))
        else:
            self._summary.hidden += 1

    def _note_truncation(self, offset: int, epoch: int, time: float) -> None:
        text = f"log is overwritten from offset {offset}: records before that were lost"
        details = {"offset": offset, "end": self._next_offset}
        if len(self.events) < RAFT_EVENT_COUNT_MAX:
            self.events.append(Event(time, "truncation", text, epoch, None, details))
        if self._on_truncation is not None:
            self._on_truncation(offset, epoch, time)

    def _note_problem(self, text: str) -> None:
        if len(self._summary.problems) < _PROBLEM_COUNT_MAX:
            self._summary.problems.append(text)


def _time_of(written: float, seen: float | None) -> float:
    """Return when a record was written: by the frames' clock, unless it is clearly older."""
    return written if seen is None or seen - written > _HISTORY_S else seen
