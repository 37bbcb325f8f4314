"""Opening damaged directories: a torn end is cut off, lost records are refused loudly.

The mark says what was flushed; in a directory without one, the other files do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kraftwire.errors import StorageError
from kraftwire.log.files import LocalFiles
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.settings import LogSettings
from tests.support.logs.batches import TOPIC, TOPIC_ID, append, batch

_SETTINGS = LogSettings(segment_bytes=4000, index_interval_bytes=500, index_bytes=2400)
_FIRST = "0" * 20


def _open(folder: Path) -> MetadataLog:
    return MetadataLog.open(LocalFiles(), str(folder), _SETTINGS, TOPIC, TOPIC_ID)


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """A log of twenty batches of 88 bytes in one segment, of epochs 1 and 2, closed."""
    log = _open(tmp_path)
    for number in range(20):
        append(log, 1, epoch=1 + number // 10, size=20)
    log.close()
    return tmp_path / f"{TOPIC}-0"


@pytest.fixture
def partition(marked: Path) -> Path:
    """The same log without a mark, as another implementation leaves it."""
    (marked / "flushed-offset").unlink()
    return marked


def _segment(partition: Path, base: int = 0) -> Path:
    return partition / f"{base:020d}.log"


def _forget(partition: Path) -> None:
    """Remove what shows that the end was flushed."""
    for pattern in ("*.snapshot", "*.index", "*.timeindex", "leader-epoch-checkpoint"):
        for path in partition.glob(pattern):
            path.unlink()


def _size(partition: Path) -> int:
    return _segment(partition).stat().st_size // 20


def _edit(path: Path, change: Callable[[bytearray], object]) -> None:
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


_TAILS = {
    "half a batch": batch(20)[:40],
    "half a header": batch(20)[:11],
    "zeros": bytes(3000),
    "a batch with a hole": batch(20, size=2000)[:600] + bytes(1500),
    "a header without its records": batch(20, size=1000)[:61] + bytes(1000),
    "an impossible length": batch(20)[:8] + b"\x7f\xff\xff\xff" + batch(20)[12:],
    "noise": bytes(range(256)) * 3,
    "a good batch of an earlier life": b"\x01" * 40 + batch(3),
}


@pytest.mark.parametrize("is_marked", [True, False])
@pytest.mark.parametrize("tail", _TAILS, ids=str)
def test_a_torn_end_is_cut_off(marked: Path, tail: str, is_marked: bool) -> None:
    """What was being written when the power failed was never acknowledged."""
    partition = marked
    if not is_marked:
        (partition / "flushed-offset").unlink()
    segment = _segment(partition)
    good = segment.read_bytes()
    segment.write_bytes(good + _TAILS[tail])
    log = _open(partition.parent)
    assert log.end_offset == 20
    append(log)
    log.close()
    assert segment.read_bytes() == good + batch(20)


@pytest.mark.parametrize("cut", [1, 50, 88])
def test_the_loss_of_a_flushed_end_is_noticed(partition: Path, cut: int) -> None:
    """The closing producer snapshot says how far the log went."""
    _edit(_segment(partition), lambda data: data.__delitem__(slice(-cut, None)))
    with pytest.raises(StorageError) as caught:
        _open(partition.parent)
    text = str(caught.value)
    assert f"{_FIRST}.log at byte {19 * 88}: " in text
    assert "the log ends at offset 19" in text
    assert f"{20:020d}.snapshot was written at offset 20" in text
    assert "let the replica rejoin the quorum" in text


def test_an_epoch_beyond_the_end_is_noticed(partition: Path) -> None:
    """Epochs are written only after a flush."""
    (partition / f"{20:020d}.snapshot").unlink()
    size = _size(partition)
    _edit(_segment(partition), lambda data: data.__delitem__(slice(9 * size, None)))
    with pytest.raises(StorageError, match="epoch 2 began at offset 10"):
        _open(partition.parent)


def test_an_index_entry_beyond_the_end_is_noticed(partition: Path) -> None:
    """Entries are written only after a flush."""
    for path in (partition / f"{20:020d}.snapshot", partition / "leader-epoch-checkpoint"):
        path.unlink()
    size = _size(partition)
    _edit(_segment(partition), lambda data: data.__delitem__(slice(9 * size, None)))
    with pytest.raises(StorageError, match="the index has a record at offset 19"):
        _open(partition.parent)


def test_a_corrupt_index_entry_is_rebuilt(partition: Path) -> None:
    """An index is only a copy; one wrong bit in it must not keep a node from starting."""
    index = partition / f"{_FIRST}.index"
    before = index.read_bytes()
    for position in range(len(before)):
        _edit(index, lambda data, at=position: data.__setitem__(at, data[at] ^ 0x40))  # type: ignore[misc]
        log = _open(partition.parent)
        log.close()
        assert index.read_bytes() == before


def test_an_index_without_any_record_is_rebuilt(partition: Path) -> None:
    """Kafka may have written its entries before records that a power failure took."""
    _segment(partition).write_bytes(b"")
    for pattern in ("*.snapshot", "*.index", "leader-epoch-checkpoint"):
        for path in partition.glob(pattern):
            path.unlink()
    assert (partition / f"{_FIRST}.timeindex").stat().st_size
    log = _open(partition.parent)
    assert log.end_offset == 0
    log.close()
    assert not (partition / f"{_FIRST}.timeindex").stat().st_size


@pytest.mark.parametrize("position", [0, 7, 9, 16, 17, 25, 60, 80])
@pytest.mark.parametrize("number", [0, 7, 18])
def test_a_flipped_bit_among_the_records_is_refused(
    partition: Path, number: int, position: int
) -> None:
    """Good batches follow, so it was not a torn write; this covers every field of a batch, whatever
    else there is to compare."""
    _forget(partition)
    at = number * _size(partition) + position
    _edit(_segment(partition), lambda data: data.__setitem__(at, data[at] ^ 0x10))
    with pytest.raises(StorageError, match=f"where offset {number} should begin") as caught:
        _open(partition.parent)
    assert caught.value.position == number * _size(partition)
    assert "restore the file" in str(caught.value)


def test_an_epoch_that_goes_back_is_refused(partition: Path) -> None:
    """The checksum does not cover the epoch; a wrong one shows at the next batch."""
    _forget(partition)
    at = 7 * _size(partition) + 12
    _edit(_segment(partition), lambda data: data.__setitem__(at, 0x10))
    with pytest.raises(StorageError, match="claims offset 8 of epoch 1, after epoch 268435457"):
        _open(partition.parent)


def test_a_batch_of_another_place_is_refused(partition: Path) -> None:
    """A misdirected write has a correct checksum, so it was not torn."""
    _forget(partition)
    size = _size(partition)
    _edit(_segment(partition), lambda data: data.__setitem__(slice(-size, None), batch(5, size=20)))
    with pytest.raises(StorageError, match="claims offset 5 of epoch 1, after epoch 2 "):
        _open(partition.parent)


def test_sectors_that_were_never_written_are_not_damage(tmp_path: Path) -> None:
    """A power failure may let the later sectors of a write through and not the earlier ones."""
    log = _open(tmp_path)
    append(log, size=20)
    log.flush()
    start = len(batch(0, size=20))
    log.append(b"".join(batch(n, size=700) for n in (1, 2, 3)), 1, 4)
    segment = _segment(tmp_path / f"{TOPIC}-0")
    _edit(segment, lambda data: data.__setitem__(slice(512, 1024), bytes(512)))
    again = _open(tmp_path)
    assert again.end_offset == 1
    assert segment.stat().st_size == start


@pytest.fixture
def segments(tmp_path: Path) -> Path:
    """A log of three segments, closed, without a mark."""
    log = _open(tmp_path)
    for _ in range(100):
        append(log, size=20)
    log.close()
    partition = tmp_path / f"{TOPIC}-0"
    assert len(list(partition.glob("*.log"))) == 3
    (partition / "flushed-offset").unlink()
    return partition


def test_a_missing_segment_is_refused(segments: Path) -> None:
    """In the middle it leaves a gap; at the front nothing covers its records."""
    names = sorted(segments.glob("*.log"))
    middle = names[1].read_bytes()
    names[1].unlink()
    with pytest.raises(StorageError, match=f"the next segment begins at {int(names[2].stem)}"):
        _open(segments.parent)
    names[1].write_bytes(middle)
    names[0].unlink()
    remedy = "restore one that does, or let the replica rejoin the quorum"
    with pytest.raises(StorageError, match=f"no snapshot covers what is before: .*; {remedy}"):
        _open(segments.parent)


def test_a_torn_end_before_another_segment_is_refused(segments: Path) -> None:
    """A segment is flushed before the next one begins."""
    _forget(segments)
    first = _segment(segments)
    first.write_bytes(first.read_bytes()[:-5])
    with pytest.raises(StorageError, match="a segment from offset 45 follows"):
        _open(segments.parent)


def test_leftovers_of_a_crash_are_removed(partition: Path) -> None:
    """Unfinished snapshots, deletions and temporary files, and indexes without a log
    (KAFKA-13098)."""
    gone = [
        f"{50:020d}-{2:010d}-123.checkpoint.part",
        f"{_FIRST}.log.deleted",
        "quorum-state.tmp",
        "leader-epoch-checkpoint.tmp",
        f"{77:020d}.index",
        f"{77:020d}.timeindex",
    ]
    for name in gone:
        (partition / name).write_bytes(b"x")
    (partition / "unknown").write_bytes(b"x")
    _open(partition.parent).close()
    assert not [name for name in gone if (partition / name).exists()]
    assert (partition / "unknown").exists()


@pytest.mark.parametrize(
    "content",
    [b"0\n1\n1 0\n", b"0\n3\n1 0\n2 10\n3 20\n", b"", b"0\n9\n1 0\n", b"\xff", b"0\n1\n1 x\n"],
)
def test_epochs_come_from_the_log(partition: Path, content: bytes) -> None:
    """The file may be older than the log after a crash, or name an epoch without records
    (KAFKA-16541, KAFKA-10706)."""
    path = partition / "leader-epoch-checkpoint"
    assert path.read_bytes() == b"0\n2\n1 0\n2 10\n"
    path.write_bytes(content)
    log = _open(partition.parent)
    assert log.epochs() == [(1, 0), (2, 10)]
    log.close()
    assert path.read_bytes() == b"0\n2\n1 0\n2 10\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg", "belongs to topic id"),
        (b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", "expected version 0"),
        (b"", "expected version 0"),
    ],
)
def test_a_directory_of_another_topic_is_refused(
    partition: Path, content: bytes, problem: str
) -> None:
    """The raft test server's log is not a metadata log."""
    (partition / "partition.metadata").write_bytes(content)
    with pytest.raises(StorageError, match=problem):
        _open(partition.parent)


def test_a_log_as_a_killed_java_leaves_it_opens(partition: Path) -> None:
    """Indexes have their full size then, and no producer snapshot was written."""
    for suffix, size in (("index", 10485760), ("timeindex", 10485756)):
        path = partition / f"{_FIRST}.{suffix}"
        path.write_bytes(path.read_bytes().ljust(size, b"\0"))
    (partition / f"{20:020d}.snapshot").unlink()
    log = _open(partition.parent)
    assert log.end_offset == 20
    log.close()
    assert (partition / f"{_FIRST}.index").stat().st_size < 100
