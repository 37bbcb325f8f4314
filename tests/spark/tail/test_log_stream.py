"""`readStream.format("kafka-log")` without a session: what comes, what waits, what is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql.streaming.datasource import ReadMaxRows

from kraftwire.errors import LogMovedError, UsageError
from kraftwire.spark.sources.log import LogDataSource
from tests.spark.logs.log_files import GOLDEN
from tests.spark.tail.growing import Partition, Stream, batch


def read_whole(path: Path, **options: str) -> list[dict[str, Any]]:
    """The rows of a batch read."""
    source = LogDataSource({"path": str(path), **options})
    reader = source.reader(source.schema())
    return [
        row
        for partition in reader.partitions()
        for one in reader.read(partition)
        for row in one.to_pylist()
    ]


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as texts that can be compared."""
    return sorted(map(repr, rows))


def test_batches_segments_and_partitions_come_once(tmp_path: Path) -> None:
    """In the columns of the batch reader, and with the same cells."""
    first = Partition(tmp_path)
    stream = Stream(tmp_path)
    assert stream.trigger() == 0
    first.append()
    assert stream.trigger() == 10
    first.append()
    first.roll()
    first.append()
    second = Partition(tmp_path, "orders-1", first=500)
    second.append(3)
    assert stream.trigger() == 23
    assert stream.trigger() == 0
    assert in_order(stream.rows) == in_order(read_whole(tmp_path))


@pytest.mark.parametrize("table", ["records", "batches", "metadata_records", "bad_input"])
def test_real_logs_give_what_a_batch_read_gives(table: str) -> None:
    """The metadata log and its snapshots as well."""
    stream = Stream(GOLDEN, table=table, maxOffsetsPerTrigger="50", splitBytes="5000")
    stream.drain()
    whole = [row for row in read_whole(GOLDEN, table=table) if row.get("is_valid") is not False]
    assert in_order(stream.rows) == in_order(whole)
    assert table == "bad_input" or len(stream.log) > 3


def test_a_batch_that_is_half_written_waits(tmp_path: Path) -> None:
    """It is read once it is whole, however often the reader looks."""
    log = Partition(tmp_path)
    log.append()
    data = batch(10)
    stream = Stream(tmp_path)
    assert stream.trigger() == 10
    for at in range(0, len(data), 7):
        log.write(data[at : at + 7])
        if at + 7 < len(data):
            assert stream.trigger() == 0
    assert stream.trigger() == 10
    assert stream.offsets == list(range(20))
    preallocated = Partition(tmp_path, "orders-1")
    preallocated.write(data + bytes(4096))
    assert stream.trigger() == 10
    assert stream.trigger() == 0


def test_damage_is_skipped_and_reported(tmp_path: Path) -> None:
    """As in a batch read: what follows it is read, and `bad_input` has the damage."""
    log = Partition(tmp_path)
    log.append()
    log.write(b"\xff" * 100)
    log.next_offset = 20
    log.append()
    log.write(b"\xff" * 50)
    log.next_offset = 40
    log.roll()
    log.append()
    for table in ("records", "bad_input"):
        stream = Stream(tmp_path, table=table)
        stream.drain()
        assert in_order(stream.rows) == in_order(read_whole(tmp_path, table=table))
        assert stream.rows


def test_a_batch_with_a_wrong_length_is_not_a_place_to_resume_from(tmp_path: Path) -> None:
    """Its CRC is correct, so it is read, together with the sound one that follows."""
    log = Partition(tmp_path)
    log.append()
    wrong = bytearray(batch(10))
    wrong[10] += 1
    log.write(bytes(wrong))
    stream = Stream(tmp_path)
    assert stream.trigger() == 10
    log.next_offset = 20
    log.append()
    assert stream.trigger() == 20
    assert stream.trigger() == 0
    assert stream.offsets == list(range(30))


def test_a_snapshot_is_read_when_it_appears(tmp_path: Path) -> None:
    """Once, and only when its name says that it is complete."""
    log = Partition(tmp_path, "__cluster_metadata-0")
    log.append()
    snapshot = min(GOLDEN.rglob("*-*.checkpoint"))
    stream = Stream(tmp_path, table="batches")
    assert stream.trigger() == 1
    part = log.folder / f"{8:020}-{1:010}.checkpoint.part"
    part.write_bytes(snapshot.read_bytes())
    assert stream.trigger() == 0
    final = part.rename(part.with_suffix(""))
    assert stream.plan()
    rows = stream.read()
    assert {row["file"] for row in rows} == {str(final)}
    stream.restart()
    assert in_order(stream.read()) == in_order(rows)
    stream.commit(rows)
    assert stream.trigger() == 0
    without = Stream(tmp_path, table="batches", snapshots="false")
    assert without.trigger() == 1
    newer = final.with_name(f"{9:020}-{1:010}.checkpoint")
    newer.write_bytes(snapshot.read_bytes())
    assert stream.plan()
    newer.unlink()
    with pytest.raises(LogMovedError, match="gone before it was read"):
        stream.read()


@pytest.mark.parametrize("most", [1, 10, 25, 1000])
def test_a_limit_is_kept_and_shared(most: int, tmp_path: Path) -> None:
    """Whole batches within the limit, at least one, and no partition waits for another to end."""
    for name in ("orders-0", "orders-1", "orders-2"):
        log = Partition(tmp_path, name)
        for _ in range(5):
            log.append()
        log.roll()
        log.append(4)
    stream = Stream(tmp_path, maxOffsetsPerTrigger=str(most))
    limit = stream.reader.getDefaultReadLimit()
    assert isinstance(limit, ReadMaxRows)
    served = []
    while stream.plan():
        rows = stream.read()
        assert 0 < len(rows) <= max(most, 10)
        served.append({row["partition"] for row in rows})
        stream.commit(rows)
    assert set().union(*served[:3]) == {0, 1, 2}
    for partition in range(3):
        mine = [row["offset"] for row in stream.rows if row["partition"] == partition]
        assert mine == list(range(54))


def test_available_now_ends_where_the_folders_ended(tmp_path: Path) -> None:
    """Whatever is written, rolled, created or completed afterwards."""
    log = Partition(tmp_path)
    log.append()
    data = batch(10)
    log.write(data[:30])
    stream = Stream(tmp_path)
    stream.reader.prepareForTriggerAvailableNow()
    log.write(data[30:])
    log.next_offset = 20
    log.append()
    log.roll()
    log.append()
    Partition(tmp_path, "orders-1").append()
    stream.drain()
    assert stream.offsets == list(range(10))
    stream.restart()
    stream.drain()
    assert len(stream.rows) == 50


def test_a_stream_can_begin_at_the_end(tmp_path: Path) -> None:
    """This concerns existing folders; later ones are read as a whole."""
    log = Partition(tmp_path)
    log.append()
    log.roll()
    Partition(tmp_path, "orders-1")
    stream = Stream(tmp_path, startingOffsets="latest")
    assert stream.trigger() == 0
    log.append()
    Partition(tmp_path, "orders-2").append(2)
    assert stream.trigger() == 12
    assert sorted(stream.offsets) == [0, 1, *range(10, 20)]


def test_options_and_paths_are_checked(tmp_path: Path) -> None:
    """The error is clear, and comes before anything is read."""
    with pytest.raises(UsageError, match="a stream has none"):
        Stream(tmp_path, table="files")
    with pytest.raises(UsageError, match="use a batch read for committed"):
        Stream(tmp_path, isolation="committed")
    with pytest.raises(UsageError, match="pathGlobFilter: a stream follows folders"):
        Stream(tmp_path, pathGlobFilter="*1.log")
    with pytest.raises(UsageError, match="maxOffsetsPerTrigger: expected 1 or more, found '0'"):
        Stream(tmp_path, maxOffsetsPerTrigger="0")
    with pytest.raises(UsageError, match="no such folder"):
        Stream(tmp_path / "nowhere").plan()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="only folders can be followed"):
        Stream(tmp_path / "file").plan()
    pattern = Stream(f"{tmp_path}/{{orders,others}}-*")
    assert pattern.trigger() == 0
    Partition(tmp_path).append()
    Partition(tmp_path, "other-0").append()
    assert pattern.trigger() == 10


@pytest.mark.parametrize("seed", range(12))
def test_any_order_of_events_gives_every_record_once(seed: int, tmp_path: Path) -> None:
    """Writes in pieces, rolls, new partitions, restarts in the middle of a trigger, retention."""
    print("seed", seed)
    chance = random.Random(seed)
    most = chance.choice(["1", "7", "30", "100000"])
    stream = Stream(tmp_path, maxOffsetsPerTrigger=most, splitBytes="300")
    logs = [Partition(tmp_path)]
    halves: dict[int, bytes] = {}
    for _ in range(120):
        which = chance.randrange(len(logs))
        log = logs[which]
        kind = chance.randrange(10)
        if which in halves:
            log.write(halves.pop(which))
        elif kind < 4:
            count = chance.randrange(1, 12)
            data = batch(log.next_offset, count)
            log.next_offset += count
            cut = chance.choice([len(data), chance.randrange(len(data))])
            log.write(data[:cut])
            halves |= {which: data[cut:]} if cut < len(data) else {}
        elif kind == 4 and log.segment.stat().st_size:
            log.roll()
        elif kind == 5 and len(logs) < 4:
            logs.append(Partition(tmp_path, f"orders-{len(logs)}", chance.choice([0, 77])))
        elif kind == 6 and stream.plan():
            stream.read()
            stream.restart()
            stream.commit(stream.read())
        else:
            stream.trigger()
    for which, rest in halves.items():
        logs[which].write(rest)
    stream.drain()
    assert in_order(stream.rows) == in_order(read_whole(tmp_path))
