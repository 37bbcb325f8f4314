"""Which offsets of a metadata log have been read, in which leader epochs, and when it was silent.

An active controller writes a NoOpRecord every `metadata.max.idle.interval.ms`, whether or not it
writes other records, so a log that stays silent for much longer had no leader that was alive. How
long the interval is shows the log itself. Source: Kafka's `QuorumController`, `PeriodicTask`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from kraftwire.capture.recorded import Recorded
from kraftwire.limits import RAFT_EVENT_COUNT_MAX

_SECOND_NS = 1_000_000_000

# A log is silent if nothing is written for so many of its idle intervals, but not for less than
# the seconds in which a quorum replaces a leader, or a busy controller catches up.
_SILENT_INTERVALS = 6
_SILENT_S_MIN = 3.0
# The clocks of the controllers of a quorum differ by less.
_BACKWARDS_S = 5.0
# Intervals from which the usual one is taken.
_INTERVAL_COUNT_MIN, _INTERVAL_COUNT_MAX = 4, 1_000


@dataclass(frozen=True, slots=True)
class Extent:
    """The offsets and the epoch of a batch, and when its first and last record were written.

    `is_valid` is whether its checksum is right. Units: seconds since the epoch; None where the
    batch is not from a file, or has no times.
    """

    base_offset: int
    last_offset: int
    epoch: int
    first_time: float | None = None
    last_time: float | None = None
    is_valid: bool = True


@dataclass(slots=True)
class Span:
    """Batches of one leader epoch without a gap between their offsets; `end` is exclusive.

    A span `is_cut` if a later epoch replaced its end; `last_time` is still that of its last record.
    `known_from` is the first time that is known of it, if its first batch has none.
    """

    base: int
    end: int
    epoch: int
    first_time: float | None = None
    last_time: float | None = None
    is_cut: bool = False
    known_from: float | None = None


@dataclass(frozen=True, slots=True)
class LogSilence:
    """A time in which nothing was written to the log, between two records of these epochs.

    `offset` is that of the first record after it. The record before it `is_replaced` if it is no
    longer in the log, because a later epoch began below it.
    """

    start: float
    end: float
    epoch: int
    next_epoch: int
    offset: int
    is_replaced: bool = False


@dataclass(frozen=True, slots=True)
class Backwards:
    """A record, the first of its batch, that is older than the record before it."""

    offset: int
    epoch: int
    time: float
    before: float


class Coverage:
    """The spans of a log. Order: batches may come in any order, and from several replicas."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        # The spans that later epochs replaced, in the order in which they were read.
        self.replaced: list[Span] = []
        self._backwards: list[Backwards] = []
        self._pauses: list[LogSilence] = []
        self._last_idle: float | None = None
        self._intervals: list[float] = []

    def has(self, extent: Extent) -> bool:
        """Whether a batch brings nothing new: it was read, or a later epoch comes before it.

        What comes after a later epoch is noted as replaced.
        """
        at = self._index(extent.base_offset)
        if at < 0:
            return False
        span = self.spans[at]
        if span.epoch > extent.epoch:
            self._note_replaced(_span_of(extent))
            return True
        return span.epoch == extent.epoch and span.end > extent.base_offset

    def cut(self, extent: Extent) -> bool:
        """Remove what a batch of a later epoch replaces; return whether there was anything."""
        last = self.spans[-1] if self.spans else None
        if last is None or last.end <= extent.base_offset:
            return False
        kept = []
        is_cut = False
        for span in self.spans:
            if span.epoch >= extent.epoch or span.end <= extent.base_offset:
                kept.append(span)
                continue
            is_cut = True
            self._note_replaced(replace(span, base=max(span.base, extent.base_offset)))
            if span.base < extent.base_offset:
                span.end, span.is_cut = extent.base_offset, True
                kept.append(span)
        self.spans = kept
        return is_cut

    def add(self, extent: Extent) -> None:
        """Add a batch. Order: `has` is false, and `cut` was called."""
        at = self._index(extent.base_offset)
        before = self.spans[at] if at >= 0 else None
        end = extent.last_offset + 1
        if before and before.end == extent.base_offset and before.epoch == extent.epoch:
            self._note_pause(before, extent.first_time, extent.epoch, extent.base_offset)
            before.end = end
            before.last_time = extent.last_time if extent.last_time else before.last_time
            if before.known_from is None:
                before.known_from = extent.first_time
        else:
            at += 1
            self.spans.insert(at, _span_of(extent))
        self._join_next(at)

    def forget_from(self, offset: int) -> None:
        """Remove the offsets from one on: a start truncates them."""
        while self.spans and self.spans[-1].base >= offset:
            self.spans.pop()
        if self.spans:
            self.spans[-1].end = min(self.spans[-1].end, offset)

    def note_idle(self, time: float) -> None:
        """Note when a NoOpRecord was written."""
        before, self._last_idle = self._last_idle, time
        if before is not None and time > before and len(self._intervals) < _INTERVAL_COUNT_MAX:
            self._intervals.append(time - before)

    @property
    def missing(self) -> list[tuple[int, int]]:
        """The offsets between spans that no batch has, as [first, end)."""
        return [(a.end, b.base) for a, b in pairwise(self.spans) if a.end < b.base]

    def recorded(self) -> Recorded:
        """Return the times that the records of a log cover; missing offsets cover none."""
        made = Recorded()
        for before, span in pairwise([None, *self.spans]):
            first = None if span is None else span.known_from
            if span is None or first is None or span.last_time is None:
                continue
            follows = before is not None and before.end == span.base and span.first_time is not None
            if before is not None and follows and before.last_time is not None:
                first = min(first, before.last_time)
            first_ns, last_ns = (round(each * _SECOND_NS) for each in (first, span.last_time))
            made.note_run(first_ns, max(first_ns, last_ns))
        return made

    def silences(self) -> Iterator[LogSilence]:
        """Yield the times in which the log was silent, in the order of its offsets.

        None without NoOpRecords: before metadata.version 3.3-IV1, or if they are switched off, a
        controller may have nothing to write. None across missing offsets.
        """
        if len(self._intervals) < _INTERVAL_COUNT_MIN:
            return
        limit = max(_SILENT_S_MIN, _SILENT_INTERVALS * median(self._intervals))
        found = list(self._pauses)
        for before, after in pairwise(self.spans):
            pause = _pause(before, after.first_time, after.epoch, after.base)
            if before.end == after.base and pause:
                found.append(pause)
        found = [self._without_replaced(each) for each in found]
        found = [each for each in found if each.end - each.start > limit]
        yield from sorted(found, key=lambda each: each.offset)

    def _without_replaced(self, pause: LogSilence) -> LogSilence:
        """Return the part of a pause after the last record in it that was replaced later."""
        found = [
            (each.last_time, each.epoch)
            for each in self.replaced
            if each.last_time is not None and pause.start < each.last_time < pause.end
        ]
        if not found:
            return pause
        start, epoch = max(found)
        return replace(pause, start=start, epoch=epoch, is_replaced=True)

    def _note_replaced(self, span: Span) -> None:
        last = self.replaced[-1] if self.replaced else None
        if last and last.epoch == span.epoch and last.end == span.base:
            last.end, last.last_time = span.end, span.last_time or last.last_time
        elif len(self.replaced) < RAFT_EVENT_COUNT_MAX:
            self.replaced.append(span)

    def _index(self, offset: int) -> int:
        """Return the index of the last span that begins at an offset or before it, or -1."""
        if self.spans and self.spans[-1].base <= offset:  # nearly always
            return len(self.spans) - 1
        return bisect_right(self.spans, offset, key=lambda span: span.base) - 1

    def _join_next(self, at: int) -> None:
        if at + 1 == len(self.spans):
            return
        span, after = self.spans[at], self.spans[at + 1]
        span.end = min(span.end, after.base)
        if span.end == after.base and span.epoch == after.epoch:
            self._note_pause(span, after.first_time, after.epoch, after.base)
            span.end, span.last_time = after.end, after.last_time or span.last_time
            if span.known_from is None:
                span.known_from = after.known_from
            del self.spans[at + 1]

    def backwards(self) -> Iterator[Backwards]:
        """Yield the records that are older than those before them, in the order of offsets."""
        found = list(self._backwards)
        for before, after in pairwise(self.spans):
            step = _step_back(before, after.first_time, after.epoch, after.base)
            if step:
                found.append(step)
        yield from sorted(found, key=lambda each: each.offset)

    def _note_pause(self, before: Span, time: float | None, epoch: int, offset: int) -> None:
        step = _step_back(before, time, epoch, offset)
        if step and len(self._backwards) < RAFT_EVENT_COUNT_MAX:
            self._backwards.append(step)
        pause = _pause(before, time, epoch, offset)
        if pause and len(self._pauses) < RAFT_EVENT_COUNT_MAX:
            self._pauses.append(pause)


def _step_back(
    before: Span, time: float | None, epoch: int, offset: int
) -> Backwards | None:
    last = before.last_time
    if before.is_cut or time is None or last is None or last - time <= _BACKWARDS_S:
        return None
    return Backwards(offset, epoch, time, last)


def _span_of(extent: Extent) -> Span:
    end = extent.last_offset + 1
    first, last = extent.first_time, extent.last_time
    return Span(extent.base_offset, end, extent.epoch, first, last, known_from=first)


def _pause(before: Span, time: float | None, epoch: int, offset: int) -> LogSilence | None:
    last = before.last_time
    if last is None or time is None or time - last < _SILENT_S_MIN:
        return None
    return LogSilence(last, time, before.epoch, epoch, offset)
