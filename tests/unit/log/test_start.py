"""A log that begins above offset 0: a dropped prefix, a reset to a snapshot, and how it opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.errors import InvariantError, StorageError, UsageError
from kraftwire.log.files import LocalFiles
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.settings import LogSettings
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.logs.batches import TOPIC, TOPIC_ID, append, put_snapshot

_SETTINGS = LogSettings(segment_bytes=1000, index_interval_bytes=200, index_bytes=2400)
_FIRST = "0" * 20


def _open(folder: Path) -> MetadataLog:
    return MetadataLog.open(LocalFiles(), str(folder), _SETTINGS, TOPIC, TOPIC_ID)


def _bases(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in (folder / f"{TOPIC}-0").glob("*.log"))


def _all(log: MetadataLog, offset: int) -> bytes:
    parts = []
    while data := log.read(offset, 1, log.end_offset):
        parts.append(data)
        offset = int.from_bytes(data[:8], "big") + int.from_bytes(data[23:27], "big") + 1
    return b"".join(parts)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """A log of 40 batches of two records, epochs 1 to 4, in several segments; closed."""
    log = _open(tmp_path)
    for number in range(40):
        append(log, 2, epoch=1 + number // 10)
    log.close()
    return tmp_path / f"{TOPIC}-0"


def test_a_prefix_goes_in_whole_segments(partition: Path) -> None:
    """The start may be inside a segment, whose records below it stay until it goes (R-SNAP-6)."""
    folder = partition.parent
    bases = _bases(folder)
    log = _open(folder)
    whole, size = _all(log, 0), log.size_bytes
    start = bases[2] + 2
    put_snapshot(partition, start, 1)
    log.drop_prefix(start)
    assert (log.start_offset, log.end_offset) == (start, 80)
    assert _bases(folder) == bases[2:]
    assert size > log.size_bytes == sum(path.stat().st_size for path in partition.glob("*.log"))
    assert whole.endswith(_all(log, start))
    assert log.epochs()[0] == (1 + start // 20, start)
    with pytest.raises(UsageError, match=f"below the log's start {start}"):
        log.read(start - 1, 100, 80)
    kept = _all(log, start)
    append(log, 2, epoch=4)
    log.close()
    again = _open(folder)
    assert (again.start_offset, again.end_offset) == (bases[2], 82)
    assert _all(again, start).startswith(kept)
    again.close()


def test_the_segment_that_is_written_to_stays(partition: Path) -> None:
    """Even if everything is below the start: the log continues in it."""
    log = _open(partition.parent)
    put_snapshot(partition, 80, 4)
    log.drop_prefix(80)
    assert (log.start_offset, log.end_offset, log.epochs()) == (80, 80, [(4, 80)])
    assert len(_bases(partition.parent)) == 1
    append(log, 1, epoch=4)
    assert log.flush() == 81
    log.close()


@pytest.mark.parametrize("epoch", [4, 5])
def test_an_epoch_that_begins_where_the_dropped_prefix_ends(partition: Path, epoch: int) -> None:
    """It takes the place of the one before it: no two epochs begin at one offset, and the next
    start finds the epochs that the mark covers."""
    log = _open(partition.parent)
    put_snapshot(partition, 80, 4)
    log.drop_prefix(80)
    append(log, 2, epoch=epoch)
    assert log.epochs() == [(epoch, 80)]
    log.flush()
    again = _open(partition.parent)
    assert (again.end_offset, again.epochs()[-1][0]) == (82, epoch)
    again.close()


def test_producer_snapshots_go_with_their_segments(partition: Path) -> None:
    """They would remain for ever."""
    bases = _bases(partition.parent)
    log = _open(partition.parent)
    put_snapshot(partition, bases[3], 1)
    log.drop_prefix(bases[3])
    left = sorted(int(path.stem) for path in partition.glob("*.snapshot"))
    assert left[0] == bases[3]
    log.close()


def test_a_start_outside_the_log_is_our_own_mistake(partition: Path) -> None:
    """The core proposes only what it has; the start never goes back."""
    log = _open(partition.parent)
    put_snapshot(partition, 40, 2)
    log.drop_prefix(40)
    for offset in (39, 81):
        with pytest.raises(InvariantError, match=f"the log from 40 to 80 cannot start at {offset}"):
            log.drop_prefix(offset)
    with pytest.raises(InvariantError, match="below the log's start 40"):
        log.truncate(39)
    assert log.truncate(42) == 42
    log.close()


def test_a_flush_after_a_dropped_prefix_touches_no_closed_file(partition: Path) -> None:
    """A segment may be gone before the flush that was to sync it."""
    log = _open(partition.parent)
    for _ in range(40):
        append(log, 2, epoch=5)
    put_snapshot(partition, 150, 5)
    log.drop_prefix(150)
    assert log.flush() == 160
    log.close()


def test_a_reset_log_begins_where_the_snapshot_ends(partition: Path) -> None:
    """Nothing of the old log is left; what is appended follows the snapshot (R-FSN-4)."""
    snapshot = put_snapshot(partition, 500, 7)
    log = _open(partition.parent)
    assert (log.start_offset, log.end_offset, log.flushed_offset) == (500, 500, 500)
    log.reset(OffsetAndEpoch(600, 7))
    assert (log.epochs(), list(log.batches()), log.size_bytes) == ([], [], 0)
    assert _bases(partition.parent) == [600]
    put_snapshot(partition, 600, 7)
    data = append(log, 2, epoch=7)
    log.close()
    again = _open(partition.parent)
    assert (again.start_offset, again.end_offset, again.epochs()) == (600, 602, [(7, 600)])
    assert again.read(600, 1, 602) == data
    assert SnapshotStore(LocalFiles(), str(partition)).newest == (600, 7)
    assert not (partition / f"{snapshot.offset:020d}-{7:010d}.checkpoint").exists()
    again.close()


def test_a_reset_to_an_offset_inside_the_log_forgets_other_records(partition: Path) -> None:
    """A log that diverged may be longer than the snapshot that replaces it."""
    log = _open(partition.parent)
    put_snapshot(partition, 60, 9)
    log.reset(OffsetAndEpoch(60, 9))
    assert (log.start_offset, log.end_offset) == (60, 60)
    log.close()
    assert _open(partition.parent).end_offset == 60


@pytest.mark.parametrize(
    ("end_offset", "epoch", "is_ahead"),
    [(80, 4, False), (40, 2, False), (82, 4, True), (81, 3, False), (40, 5, True), (82, 5, True)],
)
def test_a_snapshot_ahead_of_the_log_replaces_it(
    partition: Path, end_offset: int, epoch: int, is_ahead: bool
) -> None:
    """A crash came between the download and the reset; the epoch decides first (R-START-2)."""
    put_snapshot(partition, end_offset, epoch)
    log = _open(partition.parent)
    if is_ahead:
        assert (log.start_offset, log.end_offset) == (end_offset, end_offset)
    else:
        assert (log.start_offset, log.end_offset) == (0, 80)
    log.close()


def test_a_log_that_begins_above_its_snapshots_is_refused(partition: Path) -> None:
    """Records are missing that nothing replaces (KAFKA-14240)."""
    bases = _bases(partition.parent)
    for suffix in ("log", "index", "timeindex"):
        (partition / f"{_FIRST}.{suffix}").unlink()
    with pytest.raises(StorageError, match=f"begins at offset {bases[1]}, but no .* there is none"):
        _open(partition.parent)
    put_snapshot(partition, bases[1] - 2)
    with pytest.raises(StorageError, match=f"newest sound snapshot ends at {bases[1] - 2}"):
        _open(partition.parent)
    put_snapshot(partition, bases[1])
    log = _open(partition.parent)
    assert (log.start_offset, log.end_offset) == (bases[1], 80)
    assert log.epochs()[0] == (2, bases[1])
    assert [one.id.offset for one in SnapshotStore(LocalFiles(), str(partition)).stored()] == [
        bases[1]
    ]
    log.close()


def test_a_directory_with_only_a_snapshot_begins_after_it(tmp_path: Path) -> None:
    """A replica that stopped right after it had fetched one; 0-0 is not such a snapshot."""
    partition = tmp_path / f"{TOPIC}-0"
    partition.mkdir()
    put_snapshot(partition, 0, 0)
    log = _open(tmp_path)
    assert (log.start_offset, log.end_offset) == (0, 0)
    log.close()
    for path in partition.glob(f"{_FIRST}.*"):
        path.unlink()
    put_snapshot(partition, 70, 4)
    log = _open(tmp_path)
    assert (log.start_offset, log.end_offset) == (70, 70)
    log.close()


def test_a_log_that_starts_at_its_end_continues_in_a_new_epoch(partition: Path) -> None:
    """A snapshot of everything, then another leader: no two epochs begin at one offset, and the
    flush mark of a log in which they did would refuse it at the next start."""
    folder = partition.parent
    log = _open(folder)
    put_snapshot(partition, 80, 4)
    log.drop_prefix(80)
    append(log, 2, epoch=6)
    log.flush()
    assert log.epochs() == [(6, 80)]
    # Killed: nothing is closed cleanly.
    again = _open(folder)
    assert (again.end_offset, again.epochs()[-1]) == (82, (6, 80))
    again.close()


def test_a_batch_larger_than_a_segment_gets_a_separate_one(tmp_path: Path) -> None:
    """Also in an empty log: a second segment of the same name would be deleted with the first."""
    log = _open(tmp_path)
    large = append(log, 3, epoch=1, size=2 * _SETTINGS.segment_bytes)
    assert _bases(tmp_path) == [0]
    more = append(log, 3, epoch=1, size=2 * _SETTINGS.segment_bytes)
    assert _bases(tmp_path) == [0, 3]
    log.flush()
    put_snapshot(tmp_path / f"{TOPIC}-0", 2, 1)
    log.drop_prefix(2)
    assert _all(log, 2) == large + more
    log.close()
    again = _open(tmp_path)
    assert _all(again, 2) == large + more
    again.close()
