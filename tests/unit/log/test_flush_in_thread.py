"""A flush that runs in a thread, during appends."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest

from kraftwire.log.files import LocalFiles
from kraftwire.log.flush_mark import FlushMark
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.segment import BatchFacts, Segment
from kraftwire.log.settings import LogSettings
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.disk import SimFiles
from tests.support.logs.batches import TOPIC, TOPIC_ID, append

_MODULES = ("metadata_log", "flush_mark", "partition_files", "segment")
# Two small batches in a segment.
_SMALL = LogSettings(segment_bytes=200, index_interval_bytes=100, index_bytes=240)


@pytest.mark.parametrize("before", [True, False], ids=["before the write", "after the write"])
def test_what_is_reported_durable_was_synced_after_its_write(
    before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D2, D3: a flush that begins in the middle of an append must not swallow the append's mark."""
    log = MetadataLog.open(LocalFiles(), str(tmp_path), LogSettings(), TOPIC, TOPIC_ID)
    story: list[str] = []
    write, sync = Segment.append, Segment.sync

    def interrupted(
        segment: Segment, data: bytes | memoryview, batches: Sequence[BatchFacts]
    ) -> None:
        if before:
            log.flush()
        write(segment, data, batches)
        story.append("write")
        if not before:
            log.flush()

    def synced(segment: Segment) -> None:
        sync(segment)
        story.append("sync")

    monkeypatch.setattr(Segment, "append", interrupted)
    monkeypatch.setattr(Segment, "sync", synced)
    append(log, 1, epoch=1)
    assert log.flush() == log.flushed_offset == 1
    assert "sync" in story[story.index("write") :]
    log.close()


def _interrupted(number: int, call: Callable[[], Any], other: Callable[[], Any]) -> bool:
    """Run something before the line of that number that a call executes in the log; returns
    whether there is one."""
    left = number

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_globals["__name__"].removeprefix("kraftwire.log.") not in _MODULES:
            return None
        if event == "line" and left:
            left -= 1
            if not left:
                other()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return not left


def _opened(files: SimFiles) -> MetadataLog:
    return MetadataLog.open(files, "/d", _SMALL, TOPIC, TOPIC_ID)


def _started() -> tuple[SimFiles, MetadataLog]:
    """A log of five records of epoch 1, of which three are durable."""
    files = SimFiles()
    files.mkdir("/d")
    log = _opened(files)
    append(log, 3)
    log.flush()
    append(log, 2)
    return files, log


def _after_power_loss(files: SimFiles) -> int:
    """The end of what a start finds; nothing survives that was not synced."""
    files.lose_power(Random(1), "none")
    log = _opened(files)
    end = log.end_offset
    append(log, 1, epoch=9)
    log.flush()
    files.kill()
    assert _opened(files).end_offset == end + 1
    return end


def _epoch_starts(files: SimFiles, log: MetadataLog) -> list[int]:
    """Where epochs begin, as the checkpoint of the log has it."""
    lines = files.read_bytes(f"{log.directory}/leader-epoch-checkpoint").split(b"\n")
    return [int(line.split()[1]) for line in lines[2:] if line]


@pytest.mark.parametrize("epoch", [1, 2])
@pytest.mark.parametrize("count", [2, 6], ids=["in the segment", "in the next one"])
def test_an_append_at_any_moment_of_a_flush_is_left_to_the_next_one(
    count: int, epoch: int
) -> None:
    """D3, D11: the mark, the epochs and what is reported cover what was there when it began, and
    nothing that the append brought."""
    for number in itertools.count(1):
        reported: list[int] = []
        files, log = _started()

        def flush(log: MetadataLog = log, reported: list[int] = reported) -> None:
            reported.append(log.flush())

        if not _interrupted(number, flush, lambda log=log: append(log, count, epoch=epoch)):
            assert number > 20
            break
        end = reported[0]
        assert end == log.flushed_offset
        assert end in (5, 5 + count)
        assert all(start < end for start in _epoch_starts(files, log))
        mark = FlushMark(files, log.directory).mark
        assert mark is not None
        assert mark.end == OffsetAndEpoch(end, epoch if end > 5 else 1)
        assert end <= _after_power_loss(files) <= 5 + count, number
        files, log = _started()
        _interrupted(number, log.flush, lambda log=log: append(log, count, epoch=epoch))
        assert log.flush() == log.flushed_offset == 5 + count
        assert _after_power_loss(files) == 5 + count, number


@pytest.mark.slow
@pytest.mark.parametrize("epoch", [1, 2])
@pytest.mark.parametrize("count", [2, 6], ids=["in the segment", "in the next one"])
def test_a_flush_at_any_moment_of_an_append_covers_what_it_reports(
    count: int, epoch: int
) -> None:
    """D2, D3: the append is found by that flush as a whole, or by the next one."""
    for number in itertools.count(1):
        reported: list[int] = []
        files, log = _started()

        def flush(log: MetadataLog = log, reported: list[int] = reported) -> None:
            reported.append(log.flush())

        if not _interrupted(number, lambda log=log: append(log, count, epoch=epoch), flush):
            assert number > 20
            break
        assert reported[0] in (5, 5 + count)
        assert reported[0] == log.flushed_offset
        assert reported[0] <= _after_power_loss(files) <= 5 + count, number
        files, log = _started()
        _interrupted(number, lambda log=log: append(log, count, epoch=epoch), log.flush)
        assert log.flush() == log.flushed_offset == 5 + count
        assert _after_power_loss(files) == 5 + count, number


def test_a_flush_syncs_only_what_was_written_since_the_last_one() -> None:
    """Old segments, and those that the last flush has synced, cost nothing."""
    files = SimFiles()
    files.mkdir("/d")
    log = MetadataLog.open(files, "/d", LogSettings(), TOPIC, TOPIC_ID)
    append(log, 7)
    assert log.flush() == 7
    before = files.sync_count
    assert log.flush() == 7
    assert files.sync_count == before
    append(log, 1)
    log.flush()
    assert files.sync_count == before + 2, "the segment and the mark"
