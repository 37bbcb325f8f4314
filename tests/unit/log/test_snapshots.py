"""Snapshots on disk: written, downloaded, checked, read, served, deleted, found at a start."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftwire.errors import InvariantError, StorageError, UsageError, WireError
from kraftwire.log.files import LocalFiles
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.records.control import ControlType, decode_control
from kraftwire.records.header import CRC_FIELD, LOG_OVERHEAD
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch
from kraftwire.records.reader import read_batches

ID = OffsetAndEpoch(1200, 3)
NOW = 1_700_000_000_000
LAST = NOW - 5000
CONTROL = (
    (ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, kraft_version=1)),
    (ControlType.KRAFT_VOTERS, VotersRecord(version=0, voters=[])),
)
VALUES = [b"value %d" % number for number in range(100)]


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    """A store in an empty directory."""
    return SnapshotStore(LocalFiles(), str(tmp_path))


def write(store: SnapshotStore, snapshot: OffsetAndEpoch = ID, count: int = 100) -> bytes:
    """Write a snapshot of some values; returns its bytes."""
    writer = store.writer(snapshot, CONTROL, LAST, NOW)
    for value in VALUES[:count]:
        writer.append([value])
    size = writer.freeze()
    return store.read(snapshot, 0, size)


def names(folder: Path) -> list[str]:
    """The files of a directory."""
    return sorted(os.listdir(folder))


def test_a_snapshot_is_laid_out_as_kafka_does(store: SnapshotStore, tmp_path: Path) -> None:
    """Header, kraft.version and voters in one control batch, data, footer (R-SNAP-3)."""
    data = write(store)
    first, middle, last = read_batches(data)
    assert [(b.base_offset, b.count, b.is_control) for b in (first, middle, last)] == [
        (0, 3, True),
        (3, 100, False),
        (103, 1, True),
    ]
    assert {batch.partition_leader_epoch for batch in (first, middle, last)} == {3}  # type: ignore[union-attr]
    kinds = [decode_control(r.key, r.value).control_type for r in first.records() + last.records()]
    assert kinds == ["SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS", "SNAPSHOT_FOOTER"]
    assert [record.value for record in middle.records()] == VALUES
    assert names(tmp_path) == [f"{1200:020d}-{3:010d}.checkpoint"]
    mode = stat.S_IMODE((tmp_path / names(tmp_path)[0]).stat().st_mode)
    assert not mode & 0o222


def test_a_stored_snapshot_is_described(store: SnapshotStore) -> None:
    """It has all that a core and the retention rules need; also from a store opened later."""
    data = write(store)
    write(store, BOOTSTRAP_SNAPSHOT, 0)
    (bootstrap, found) = store.stored()
    assert bootstrap.id == BOOTSTRAP_SNAPSHOT
    assert (found.id, found.size, found.timestamp) == (ID, len(data), LAST)
    assert data.startswith(found.control)
    assert [b.is_control for b in read_batches(found.control)] == [True]
    assert store.newest == ID


def test_a_store_finds_what_was_written(store: SnapshotStore, tmp_path: Path) -> None:
    """Over a restart; leftovers of a crash are removed (R-START-2, KAFKA-13098)."""
    write(store)
    write(store, OffsetAndEpoch(900, 2))
    store.writer(OffsetAndEpoch(1500, 3), (), LAST, NOW)
    store.append(OffsetAndEpoch(1600, 3), 0, b"begun")
    (tmp_path / f"{100:020d}-{1:010d}.checkpoint.deleted").touch()
    assert len(names(tmp_path)) == 5
    again = SnapshotStore(LocalFiles(), str(tmp_path))
    assert again.stored() == store.stored()
    assert len(names(tmp_path)) == 2


def test_a_missing_directory_holds_no_snapshot(tmp_path: Path) -> None:
    """A node looks before it makes the directory of its log."""
    store = SnapshotStore(LocalFiles(), str(tmp_path / "none"))
    assert (store.stored(), store.newest) == ([], None)


def test_values_fill_batches_to_the_byte(store: SnapshotStore, tmp_path: Path) -> None:
    """A list is in one batch; a value too large for any is refused, and nothing is left."""
    writer = store.writer(ID, (), LAST, NOW)
    value = b"x" * 1_000_000
    for _ in range(10):
        writer.append([value, b"y"])
    with pytest.raises(UsageError, match="does not fit into a batch of 8388608"):
        writer.append([b"z" * (8 << 20)])
    writer.discard()
    writer.discard()
    assert names(tmp_path) == []
    writer = store.writer(ID, (), LAST, NOW)
    most = (8 << 20) - 61 - 13  # the batch's header, and what a record has in addition to its value
    writer.append([b"x" * most])
    writer.append([b"y"])
    writer.append([value] * 20)
    data = store.read(ID, 0, writer.freeze())
    sizes = [(batch.size, batch.count) for batch in read_batches(data)]
    assert max(size for size, _ in sizes) <= 8 << 20
    assert sizes[1][1] == 1
    assert sum(count for _, count in sizes) == 1 + 1 + 1 + 20 + 1


def test_an_empty_value_is_refused(store: SnapshotStore) -> None:
    """No reader of Kafka takes one (R-FET-25)."""
    with pytest.raises(UsageError, match="not empty"):
        store.writer(ID, (), LAST, NOW).append([b"x", b""])


def test_nothing_is_added_to_a_complete_snapshot(store: SnapshotStore) -> None:
    """Its name promises that it is whole (KAFKA-13078)."""
    writer = store.writer(ID, (), LAST, NOW)
    writer.freeze()
    with pytest.raises(UsageError, match="complete or discarded"):
        writer.append([b"x"])
    writer.discard()
    assert store.newest == ID
    with pytest.raises(UsageError, match="already exists"):
        store.writer(ID, (), LAST, NOW)


@pytest.mark.parametrize("step", [1, 7, 100, 10_000])
def test_a_download_in_pieces_equals_the_original(
    store: SnapshotStore, tmp_path: Path, step: int
) -> None:
    """Pieces end anywhere, also inside of batches (R-FSN-2)."""
    data = write(store)
    (tmp_path / "other").mkdir()
    other = SnapshotStore(LocalFiles(), str(tmp_path / "other"))
    for position in range(0, len(data), step):
        other.append(ID, position, data[position : position + step])
    assert other.finish(ID) == store.stored()[0]
    assert other.read(ID, 0, len(data) + 1) == data
    with other.reader(ID) as reader:
        values = [record.value for batch in reader for record in batch.records()]
    assert values == VALUES


class _SmallDisk(LocalFiles):
    """A disk of 1,000 bytes, of which 60 are free."""

    def space(self, path: str) -> tuple[int, int]:
        """What it tells of itself."""
        del path
        return 60, 1000


def test_a_download_leaves_room_for_the_log(tmp_path: Path) -> None:
    """A log that cannot grow ends its node; a snapshot can wait."""
    store = SnapshotStore(_SmallDisk(), str(tmp_path))
    store.append(ID, 0, bytes(1000 // 20 - 40))
    with pytest.raises(StorageError, match="60 of 1000 bytes are free, and 50 are kept") as found:
        store.append(ID, 10, bytes(11))
    assert not found.value.fatal
    store.discard(ID)
    assert names(tmp_path) == []


def test_the_space_of_a_real_disk_is_known(tmp_path: Path) -> None:
    """In bytes: files of a MiB fit into it."""
    free, total = LocalFiles().space(str(tmp_path))
    assert 1 << 20 < free <= total


def test_a_download_resumes_only_where_it_stopped(store: SnapshotStore, tmp_path: Path) -> None:
    """Position 0 begins a new one, whatever was there."""
    data = write(store)
    newer = OffsetAndEpoch(1300, 3)
    store.append(newer, 0, data[:100])
    with pytest.raises(InvariantError, match="for position 50, have 100"):
        store.append(newer, 50, data)
    store.append(newer, 0, b"x")
    with pytest.raises(InvariantError, match="for position 100, have 1"):
        store.append(newer, 100, data)
    store.append(OffsetAndEpoch(1400, 3), 0, b"x")
    with pytest.raises(InvariantError, match="have no download"):
        store.append(newer, 1, data)
    assert len(names(tmp_path)) == 2
    store.discard(newer)
    store.discard(OffsetAndEpoch(1400, 3))
    assert len(names(tmp_path)) == 1
    with pytest.raises(WireError, match="was discarded"):
        store.finish(newer)


def _damages(data: bytes) -> Iterator[tuple[str, bytes, str]]:
    first, middle, last = (bytes(batch.raw) for batch in read_batches(data))  # type: ignore[union-attr]
    flipped = bytearray(data)
    flipped[len(first) + CRC_FIELD] ^= 1
    yield "a wrong checksum", bytes(flipped), "checksum of a batch is wrong"
    yield "no end", first + middle, "ends without a footer"
    yield "half a batch", data[:-5], "a batch of 75 bytes ends after 70"
    yield "half a header", data[:-60], "15 bytes are not a batch"
    yield "nothing", b"", "ends without a footer"
    yield "no beginning", middle + last, "begins at offset 3, expected 0"
    yield "a batch left out", first + last, "begins at offset 103, expected 3"
    yield "more after the end", data + bytes(last[:7]) + b"\x68" + last[8:], "follows the footer"
    yield "noise after the end", data + bytes(99), "no batch: magic 0"
    epoch = bytearray(data)
    epoch[LOG_OVERHEAD + 3] = 4
    yield "another epoch", bytes(epoch), "a batch has epoch 4, expected 3"
    yield "another snapshot's end", first + first, "begins at offset 0, expected 3"


def test_a_bad_download_is_reported(store: SnapshotStore, tmp_path: Path) -> None:
    """Damage of every kind is noticed before the snapshot gets its name, and nothing is left."""
    data = write(store)
    other = OffsetAndEpoch(1300, 3)
    for kind, damaged, problem in _damages(data):
        store.append(other, 0, damaged)
        with pytest.raises(WireError, match=problem):
            store.finish(other)
        assert len(names(tmp_path)) == 1, kind
    store.append(OffsetAndEpoch(1200, 4), 0, data)
    with pytest.raises(WireError, match="has epoch 3, expected 4"):
        store.finish(OffsetAndEpoch(1200, 4))


def test_a_snapshot_is_served_in_pieces(store: SnapshotStore) -> None:
    """Never beyond its end; a snapshot that was deleted meanwhile is an error that says so."""
    data = write(store)
    assert store.read(ID, 10, 20) == data[10:30]
    assert store.read(ID, len(data) - 3, 20) == data[-3:]
    for position in (-1, len(data)):
        with pytest.raises(UsageError, match=f"position {position} of snapshot 1200-3"):
            store.read(ID, position, 1)
    store.delete([ID], NOW + 60_000)
    with pytest.raises(UsageError, match="there is no snapshot 1200-3"):
        store.read(ID, 0, 1)


def test_a_deleted_snapshot_stays_readable_for_a_minute(
    store: SnapshotStore, tmp_path: Path
) -> None:
    """A reader may finish (KAFKA-12205)."""
    write(store)
    reader = store.reader(ID)
    store.delete([ID, OffsetAndEpoch(1, 1)], NOW + 60_000)
    assert (store.stored(), store.newest) == ([], None)
    assert names(tmp_path) == [f"{1200:020d}-{3:010d}.checkpoint.deleted"]
    store.purge(NOW + 60_000 - 1)
    assert names(tmp_path)
    store.purge(NOW + 60_000)
    assert names(tmp_path) == []
    assert sum(batch.count for batch in reader) == 100
    reader.close()
    with pytest.raises(UsageError, match="there is no snapshot"):
        store.reader(ID)


def test_a_removed_file_is_a_clear_error(
    store: SnapshotStore, tmp_path: Path
) -> None:
    """It is served and loaded by name."""
    write(store)
    (tmp_path / names(tmp_path)[0]).unlink()
    with pytest.raises(StorageError, match=r"0000001200-0000000003.checkpoint: opening failed"):
        store.read(ID, 0, 1)


def test_a_damaged_snapshot_is_noticed_at_a_start(store: SnapshotStore, tmp_path: Path) -> None:
    """It is removed if the log can do without it; otherwise the start is refused with its name."""
    write(store, OffsetAndEpoch(900, 2))
    data = bytearray(write(store))
    data[200] ^= 4
    path = tmp_path / f"{1200:020d}-{3:010d}.checkpoint"
    path.chmod(0o600)
    path.write_bytes(data)
    again = SnapshotStore(LocalFiles(), str(tmp_path))
    assert again.newest == (900, 2)
    with pytest.raises(StorageError, match=r"newest sound snapshot ends at 900; .*-0000000003"):
        again.check_start(1200, "log")
    again.check_start(900, "log")
    again.settle(900)
    assert not path.exists()


def test_the_first_voters_are_not_given_up(store: SnapshotStore, tmp_path: Path) -> None:
    """A damaged 0-0 may go only once another snapshot has the voters."""
    write(store, BOOTSTRAP_SNAPSHOT)
    path = tmp_path / names(tmp_path)[0]
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])
    again = SnapshotStore(LocalFiles(), str(tmp_path))
    with pytest.raises(StorageError, match="this file holds the first voters"):
        again.settle(0)
    assert path.exists()
    write(again)
    again.settle(0)
    assert not path.exists()


def test_snapshots_below_the_log_are_removed(store: SnapshotStore, tmp_path: Path) -> None:
    """A crash came between raising the log's start and deleting them (R-START-2)."""
    for offset in (300, 900, 1200):
        write(store, OffsetAndEpoch(offset, 3), 1)
    store.settle(900)
    assert [one.id.offset for one in store.stored()] == [900, 1200]
    assert len(names(tmp_path)) == 2
