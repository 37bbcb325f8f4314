"""`readStream.format("kafka-log")` refuses logs that are not what was read before."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.errors import LogMovedError

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.spark.tail.growing import Partition, Stream


def test_retention_of_what_was_read_changes_nothing(tmp_path: Path) -> None:
    """A segment that is deleted after it was read is not a loss."""
    log = Partition(tmp_path)
    log.append()
    old = log.segment
    stream = Stream(tmp_path)
    stream.trigger()
    log.roll()
    old.unlink()
    assert stream.trigger() == 0
    log.append()
    assert stream.trigger() == 10
    assert stream.offsets == list(range(20))


def test_retention_of_what_was_not_read_is_refused(tmp_path: Path) -> None:
    """The log start moved past us; with `failOnDataLoss` false it continues with what is left."""
    log = Partition(tmp_path)
    log.append()
    old = log.segment
    stream = Stream(tmp_path)
    careless = Stream(tmp_path, failOnDataLoss="false")
    for each in (stream, careless):
        each.trigger()
    log.append()
    log.roll()
    old.unlink()
    with pytest.raises(LogMovedError, match="now begins at 20, so records from offset 10 on"):
        stream.plan()
    log.append()
    assert careless.trigger() == 10
    assert careless.offsets == [*range(10), *range(20, 30)]
    log.segment.unlink()
    with pytest.raises(LogMovedError, match="no longer has a segment"):
        stream.plan()


def test_a_folder_that_is_gone_is_refused(tmp_path: Path) -> None:
    """A deleted topic loses what was not read."""
    log = Partition(tmp_path)
    log.append()
    Partition(tmp_path, "other-0").append()
    stream = Stream(tmp_path)
    careless = Stream(tmp_path, failOnDataLoss="false")
    stream.trigger()
    careless.trigger()
    log.folder.rename(tmp_path / f"orders-0.{'a' * 32}-delete")
    with pytest.raises(LogMovedError, match="orders-0: this folder was read and is gone"):
        stream.plan()
    assert careless.trigger() == 0


@pytest.mark.parametrize("is_longer", [False, True])
def test_a_truncated_log_is_refused(is_longer: bool, tmp_path: Path) -> None:
    """Even after it has grown again: the error names file, offset, the old and the new batch."""
    log = Partition(tmp_path)
    log.append()
    first = log.segment.stat().st_size
    log.append(value=b"old")
    stream = Stream(tmp_path)
    stream.trigger()
    log.truncate(first)
    log.next_offset = 10
    if is_longer:
        log.append(epoch=2, value=b"new")
        log.append(epoch=2)
    with pytest.raises(LogMovedError) as caught:
        stream.plan()
    text = str(caught.value)
    assert f"{log.segment} at byte {first}" in text
    assert "up to offset 20, and its last batch had epoch 1, CRC" in text
    expected = "ends before offset 20 and had epoch 2, CRC" if is_longer else f"has {first} bytes"
    assert expected in text


def test_a_log_that_was_truncated_to_an_earlier_segment_is_refused(tmp_path: Path) -> None:
    """The segment that was read last is gone, but not by retention."""
    log = Partition(tmp_path)
    log.append()
    log.roll()
    log.append()
    stream = Stream(tmp_path)
    stream.trigger()
    log.segment.unlink()
    with pytest.raises(LogMovedError, match="is no longer in any segment"):
        stream.plan()


def test_segments_that_were_joined_are_not_a_loss(tmp_path: Path) -> None:
    """The cleaner makes one segment of several, and leaves batches without old keys as they are."""
    log = Partition(tmp_path)
    log.append()
    earlier = log.segment
    log.roll()
    log.append()
    joined = log.segment
    stream = Stream(tmp_path)
    stream.trigger()
    log.roll()
    log.append()
    earlier.write_bytes(earlier.read_bytes() + joined.read_bytes())
    joined.unlink()
    assert stream.trigger() == 10
    assert stream.offsets == list(range(30))


def test_a_trigger_that_was_planned_is_read_again_or_refused(tmp_path: Path) -> None:
    """After a restart the same offsets mean the same rows, whatever has happened since."""
    log = Partition(tmp_path)
    log.append()
    old = log.segment
    log.roll()
    log.append()
    stream = Stream(tmp_path)
    stream.plan()
    rows = stream.read()
    log.append()
    Partition(tmp_path, "orders-1").append()
    stream.restart()
    assert stream.read() == rows
    old.unlink()
    with pytest.raises(LogMovedError, match="its unread records are lost"):
        stream.read()


@pytest.mark.parametrize("what", ["truncated", "rewritten", "gone"])
def test_what_changes_while_a_task_reads_is_refused(what: str, tmp_path: Path) -> None:
    """The rows of a task count only if its files are still what was planned."""
    log = Partition(tmp_path)
    log.append(100)
    old = log.segment
    log.roll()
    log.append(100)
    stream = Stream(tmp_path, batchRows="10")
    stream.plan()
    start, end = {"folders": {}}, stream.reader.latestOffset({"folders": {}}, ReadAllAvailable())
    (partition,) = stream.reader.partitions(start, end)
    reading = stream.reader.read(partition)
    next(reading)
    if what == "truncated":
        log.truncate(0)
    elif what == "rewritten":
        old.write_bytes(old.read_bytes()[:50])
    else:
        log.segment.rename(log.segment.with_suffix(".log.deleted"))
    with pytest.raises(LogMovedError):
        list(reading)
