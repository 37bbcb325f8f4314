"""The log on disk: what is appended is read back, now and after reopening."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.errors import InvariantError, StorageError, UsageError
from kraftwire.log.files import LocalFiles
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.settings import LogSettings
from kraftwire.sim.disk import SimFiles
from tests.support.logs.batches import TOPIC, TOPIC_ID, append, batch

SMALL = LogSettings(segment_bytes=1000, index_interval_bytes=200, index_bytes=2400)


def _open(folder: Path, settings: LogSettings = SMALL) -> MetadataLog:
    return MetadataLog.open(LocalFiles(), str(folder), settings, TOPIC, TOPIC_ID)


def test_a_new_log_is_empty(tmp_path: Path) -> None:
    """A first start finds nothing, and creates the files that Kafka's does."""
    log = _open(tmp_path)
    assert (log.start_offset, log.end_offset, log.flushed_offset) == (0, 0, 0)
    assert list(log.batches()) == []
    assert log.control() == []
    assert log.size_bytes == 0
    log.close()
    names = sorted(path.name for path in (tmp_path / f"{TOPIC}-0").iterdir())
    zero = "0" * 20
    logs = [f"{zero}.index", f"{zero}.log", f"{zero}.timeindex"]
    assert names == [*logs, "flushed-offset", "partition.metadata"]
    content = (tmp_path / f"{TOPIC}-0/partition.metadata").read_bytes()
    assert content == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"


def test_batches_survive_reopening(tmp_path: Path) -> None:
    """Over several segments: bytes, offsets and epochs are those that were appended."""
    log = _open(tmp_path)
    written = [append(log, 1 + i % 3, epoch=1 + i // 20) for i in range(50)]
    assert log.flushed_offset == 0
    assert log.flush() == log.end_offset == log.flushed_offset
    listed = list(log.batches())
    log.close()
    again = _open(tmp_path)
    assert list(again.batches()) == listed
    assert again.end_offset == log.end_offset
    assert again.epochs() == [(1, 0), (2, listed[20][0]), (3, listed[40][0])]
    read, offset = b"", 0
    while data := again.read(offset, 1, again.end_offset):
        assert data == written[[base for base, _ in listed].index(offset)]
        read += data
        offset = int.from_bytes(data[:8], "big") + int.from_bytes(data[23:27], "big") + 1
    assert read == b"".join(written)
    again.close()


def test_a_read_ends_at_the_limit_the_offset_or_the_segment(tmp_path: Path) -> None:
    """The rules of a log slice, of which Fetch answers consist (R-FET-10)."""
    log = _open(tmp_path)
    written = [append(log, 2) for _ in range(12)]
    size = len(written[0])
    per_segment = 1000 // size
    assert log.read(3, 1, 24) == written[1]
    assert log.read(2, 2 * size, 24) == written[1] + written[2]
    assert log.read(2, 3 * size - 1, 24) == written[1] + written[2]
    assert log.read(0, 10**6, 4) == written[0] + written[1]
    assert log.read(0, 10**6, 24) == b"".join(written[:per_segment])
    assert log.read(24, 10**6, 24) == log.read(6, 10**6, 6) == b""
    log.close()


def test_offsets_that_do_not_follow_are_our_own_mistake(tmp_path: Path) -> None:
    """The caller has checked a peer's batches; this is the last check before the disk."""
    log = _open(tmp_path)
    append(log, 2)
    for data, base, end in [
        (batch(3), 3, 4),
        (batch(2), 2, 4),
        (batch(2) + batch(4), 2, 5),
        (batch(2)[:-1], 2, 3),
    ]:
        with pytest.raises(InvariantError):
            log.append(data, base, end)
    assert log.end_offset == 2
    log.close()


def test_control_batches_are_returned(tmp_path: Path) -> None:
    """A replica builds its voter sets from them at the start (R-ID-6)."""
    log = _open(tmp_path)
    append(log)
    control = batch(1, is_control=True)
    log.append(control, 1, 2)
    log.close()
    again = _open(tmp_path)
    assert again.control() == [(1, control)]
    again.close()


@pytest.mark.parametrize("end", range(40))
def test_a_truncation_leaves_whole_batches_in_front(tmp_path: Path, end: int) -> None:
    """At every offset, over segments; batches hold two records, so half are inside one."""
    log = _open(tmp_path)
    written = [append(log, 2, epoch=1 + i // 7) for i in range(20)]
    log.flush()
    assert log.truncate(end) == log.end_offset == log.flushed_offset == end // 2 * 2
    append(log, 1, epoch=9)
    log.close()
    again = _open(tmp_path)
    kept = end // 2
    assert again.end_offset == kept * 2 + 1
    expected = [(number * 2, 1 + number // 7) for number in range(kept)]
    assert list(again.batches()) == [*expected, (kept * 2, 9)]
    if kept:
        assert again.read(0, 10**6, kept * 2)[: len(written[0])] == written[0]
    again.close()


def test_a_truncation_beyond_the_end_has_no_effect(tmp_path: Path) -> None:
    """A follower may be told to truncate at its end, or later (R-FET-20)."""
    log = _open(tmp_path)
    append(log, 3)
    assert log.truncate(3) == log.truncate(5) == 3
    log.close()


def test_reading_below_the_start_is_refused(tmp_path: Path) -> None:
    """It is never an empty answer: records were there."""
    log = _open(tmp_path)
    append(log)
    with pytest.raises(UsageError, match="below the log's start"):
        log.read(-1, 100, 1)
    log.close()


def test_a_closed_log_cannot_be_changed(tmp_path: Path) -> None:
    """A late effect must not reopen files that another process may hold by now."""
    log = _open(tmp_path)
    log.close()
    with pytest.raises(StorageError, match="closed"):
        log.append(batch(0), 0, 1)


@pytest.mark.parametrize("kind", ["sync", "write"])
def test_an_error_of_the_disk_is_never_tried_again(kind: str) -> None:
    """After a failed sync the kernel may have dropped the pages: a second one would lie (D9)."""
    files = SimFiles()
    files.mkdir("/d")
    log = MetadataLog.open(files, "/d", SMALL, TOPIC, TOPIC_ID)

    def use() -> None:
        append(log)
        log.flush()

    if kind == "sync":
        files.break_next_sync()
    else:
        files.fill(True)
    with pytest.raises(StorageError, match="failed: ") as first:
        use()
    files.mend()
    for action in (log.flush, use, lambda: log.truncate(0), lambda: log.drop_prefix(0)):
        with pytest.raises(StorageError) as again:
            action()
        assert again.value is first.value
    assert log.flushed_offset == 0
    log.close()
