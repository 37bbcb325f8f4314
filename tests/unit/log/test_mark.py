"""The flush mark: nothing that was flushed is lost silently, and nothing else is expected."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kraftwire.errors import StorageError
from kraftwire.log.files import LocalFiles
from kraftwire.log.flush_mark import COPY_BYTES, FlushMark, Mark, parse_mark, read_copies
from kraftwire.log.meta_properties import MetaProperties, write_meta_properties
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.log.settings import LogSettings
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.disk import PowerCut, SimFiles
from tests.support.logs.batches import TOPIC, TOPIC_ID, append, batch, put_snapshot

_SETTINGS = LogSettings(segment_bytes=4000, index_interval_bytes=500, index_bytes=2400)
_FIRST = "0" * 20
_REFUSED = "the log was flushed up to offset 91; this replica may have acknowledged"


def _open(folder: Path) -> MetadataLog:
    return MetadataLog.open(LocalFiles(), str(folder), _SETTINGS, TOPIC, TOPIC_ID)


def _edit(path: Path, change: Callable[[bytearray], object]) -> None:
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


def _flip(path: Path, position: int, bit: int = 1) -> None:
    _edit(path, lambda data: data.__setitem__(position, data[position] ^ bit))


def _state(partition: Path) -> QuorumStateFile:
    return QuorumStateFile(LocalFiles(), str(partition / "quorum-state"))


def _forget_checksum(partition: Path) -> None:
    """Rewrite quorum-state as Java does at each start."""
    path = partition / "quorum-state"
    path.write_bytes(path.read_bytes().split(b"\n")[0])


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The partition of a node that was killed: 91 flushed batches, epochs 1 to 3, two segments."""
    log = _open(tmp_path)
    partition = tmp_path / f"{TOPIC}-0"
    _state(partition).write(QuorumState(3, 2), 1, [])
    for number in range(91):
        append(log, epoch=1 + number // 40)
    log.flush()
    assert len(list(partition.glob("*.log"))) == 2
    return partition


def _size(partition: Path) -> int:
    return sum(path.stat().st_size for path in partition.glob("*.log")) // 91


@pytest.mark.parametrize("field", [0, 3, 7, 8, 12, 15, 16, 17, 21, 23, 26, 57, 60, 63, 70])
@pytest.mark.parametrize("from_end", [1, 10])
def test_a_flipped_bit_among_flushed_batches_is_refused(
    killed: Path, field: int, from_end: int
) -> None:
    """Fields that are always zero made such a batch look torn: it was cut, with all after it."""
    last = max(killed.glob("*.log"))
    _flip(last, last.stat().st_size - from_end * _size(killed) + field)
    with pytest.raises(StorageError, match=_REFUSED):
        _open(killed.parent)


def test_a_deleted_segment_is_noticed(killed: Path) -> None:
    """Its index and producer snapshot may still be there, or not."""
    last = max(killed.glob("*.log"))
    last.unlink()
    problem = f"the log ends at offset {int(last.stem)}, but {_REFUSED}"
    with pytest.raises(StorageError, match=problem):
        _open(killed.parent)


def test_a_cut_between_batches_is_noticed(killed: Path) -> None:
    """What is left is a perfect log, only shorter."""
    last = max(killed.glob("*.log"))
    _edit(last, lambda data: data.__delitem__(slice(-_size(killed), None)))
    with pytest.raises(StorageError, match=f"the log ends at offset 90, but {_REFUSED}"):
        _open(killed.parent)


def test_another_log_of_the_same_length_is_refused(killed: Path, tmp_path: Path) -> None:
    """Its last epochs, or the end of its last batch, are not the flushed ones."""
    (tmp_path / "other").mkdir()
    for problem, epoch, count in (("the leader epochs of", 2, 1), ("no batch ends", 3, 2)):
        last = max(killed.glob("*.log"))
        good = last.read_bytes()
        start = len(good) - _size(killed)
        last.write_bytes(good[:start] + batch(90, count, epoch=epoch + (count == 1) * 2))
        with pytest.raises(StorageError, match=problem):
            _open(killed.parent)
        last.write_bytes(good)
    _open(killed.parent).close()


def test_what_was_never_flushed_is_cut_without_a_refusal(
    killed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """This holds whatever it looks like, even if good batches or a segment follow the damage."""
    log = _open(killed.parent)
    for _ in range(60):
        append(log, epoch=3)
    names = sorted(killed.glob("*.log"))
    assert len(names) == 3
    _flip(names[1], names[1].stat().st_size - 2 * _size(killed))
    with caplog.at_level(logging.WARNING):
        again = _open(killed.parent)
    assert 91 <= again.end_offset < int(names[2].stem)
    assert not names[2].exists()
    assert "and 1 segments are cut off: none of them was acknowledged" in caplog.text
    append(again, epoch=3)
    again.close()
    _open(killed.parent).close()


@pytest.mark.parametrize("policy", ["none", "prefix", "sectors", "zeros"])
def test_a_power_loss_during_a_flush_is_not_damage(policy: str) -> None:
    """At each of its steps: the mark is written after the log, so it never claims too much."""
    for steps in range(1, 8):
        for seed in range(20):
            files = SimFiles()
            files.mkdir("/d")
            log = MetadataLog.open(files, "/d", _SETTINGS, TOPIC, TOPIC_ID)
            append(log, 3, size=300)
            log.flush()
            data = b"".join(batch(3 + n, size=700) for n in range(3))
            log.append(data, 3, 6)
            files.plan_cut(steps)
            flushed = 3
            with contextlib.suppress(PowerCut):
                flushed = log.flush()
            files.lose_power(Random(seed), policy)
            again = MetadataLog.open(files, "/d", _SETTINGS, TOPIC, TOPIC_ID)
            assert flushed <= again.end_offset <= 6


def test_a_directory_that_java_had_is_judged_without_the_mark(killed: Path) -> None:
    """It may have cut records below our mark; it has rewritten quorum-state then (R-START-7)."""
    last = max(killed.glob("*.log"))
    _edit(last, lambda data: data.__delitem__(slice(-5 * _size(killed), None)))
    for path in (killed / "leader-epoch-checkpoint", *killed.glob("*index")):
        path.unlink()
    _forget_checksum(killed)
    log = _open(killed.parent)
    assert log.end_offset == 86
    assert not _state(killed).is_foreign
    log.close()
    mark = FlushMark(LocalFiles(), str(killed)).mark
    assert mark is not None
    assert mark.end == OffsetAndEpoch(86, 3)
    _edit(last, lambda data: data.__delitem__(slice(-_size(killed), None)))
    with pytest.raises(StorageError, match="flushed up to offset 86"):
        _open(killed.parent)


def test_a_missing_mark_is_noticed(killed: Path) -> None:
    """A file of votes with a checksum is written only where there is a mark."""
    mark = killed / "flushed-offset"
    content = mark.read_bytes()
    mark.unlink()
    with pytest.raises(StorageError, match="flushed-offset: the file is missing, so it is unknown"):
        _open(killed.parent)
    mark.write_bytes(bytes(len(content)))
    with pytest.raises(StorageError, match="flushed-offset: both copies are damaged"):
        _open(killed.parent)
    _forget_checksum(killed)
    _open(killed.parent).close()
    assert parse_mark(mark.read_bytes()) is not None


@pytest.mark.parametrize("copy", [0, 1])
def test_one_copy_of_the_mark_is_enough(killed: Path, copy: int) -> None:
    """A torn write leaves the other one."""
    _edit(
        killed / "flushed-offset",
        lambda data: data.__setitem__(slice(4096 * copy, 4096 * copy + 50), bytes(50)),
    )
    log = _open(killed.parent)
    assert log.end_offset == 91
    log.close()


@pytest.mark.parametrize("copy", [0, 1])
def test_no_copy_claims_what_a_truncation_cut(killed: Path, copy: int) -> None:
    """This holds whichever of them is damaged afterwards."""
    log = _open(killed.parent)
    log.truncate(70)
    _flip(killed / "flushed-offset", 4096 * copy + 20)
    again = _open(killed.parent)
    assert again.end_offset == 70
    again.close()


def test_a_snapshot_makes_up_for_a_damaged_log(
    killed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If it is not older than the mark, it holds everything that was acknowledged."""
    _flip(min(killed.glob("*.log")), 200)
    put_snapshot(killed, 90, 3)
    with pytest.raises(StorageError, match=_REFUSED):
        _open(killed.parent)
    put_snapshot(killed, 91, 3)
    with caplog.at_level(logging.ERROR):
        log = _open(killed.parent)
    assert (log.start_offset, log.end_offset) == (91, 91)
    assert "the checksum of a batch is wrong; a snapshot has it" in caplog.text
    log.close()


def test_a_log_whose_beginning_was_deleted_opens_after_its_snapshot(
    killed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is lost, and it is logged."""
    put_snapshot(killed, 91, 3)
    for path in killed.glob(f"{_FIRST}.*"):
        path.unlink()
    with caplog.at_level(logging.WARNING):
        log = _open(killed.parent)
    assert log.end_offset == 91
    assert "what was before, from offset 0 on, is in a snapshot" in caplog.text
    log.close()


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (MetaProperties("cluster", 2, bytes([7]) * 16), "node.id is 2, but .* under 1:"),
        (MetaProperties("cluster", 1, bytes([6]) * 16), "directory.id is Bg.* under Bw"),
        (MetaProperties("clustes", 1, bytes([7]) * 16), "CRC-32C of .* under [0-9a-f]{8}:"),
        (MetaProperties(None, 1, bytes([7]) * 16), "CRC-32C of cluster.id is 00000000"),
    ],
)
def test_a_log_knows_whose_it_is(tmp_path: Path, changed: MetaProperties, problem: str) -> None:
    """A wrong bit in meta.properties would make it another replica, or one of another cluster."""
    path = str(tmp_path / "meta.properties")
    write_meta_properties(LocalFiles(), path, MetaProperties(None, 1, bytes([7]) * 16))
    _open(tmp_path).close()
    # The cluster's id may come later, and is known from then on.
    write_meta_properties(LocalFiles(), path, MetaProperties("cluster", 1, bytes([7]) * 16))
    _open(tmp_path).close()
    write_meta_properties(LocalFiles(), path, changed)
    with pytest.raises(StorageError, match=problem):
        _open(tmp_path)


def test_a_start_and_a_stop_without_records_leave_the_mark_alone(killed: Path) -> None:
    """It is written only when it changes."""
    _open(killed.parent).close()
    before = (killed / "flushed-offset").read_bytes()
    _open(killed.parent).close()
    assert (killed / "flushed-offset").read_bytes() == before


def test_a_dropped_prefix_moves_the_marks_beginning(killed: Path) -> None:
    """The first segments are deleted, and no start misses them or the epochs that began in them."""
    log = _open(killed.parent)
    append(log, 60, epoch=4, size=70)
    put_snapshot(killed, 100, 4)
    log.drop_prefix(100)
    mark = FlushMark(LocalFiles(), str(killed)).mark
    assert mark is not None
    assert (mark.start_offset, mark.end) == (100, OffsetAndEpoch(151, 4))
    again = _open(killed.parent)
    assert again.end_offset == 151
    again.close()


def _mark(end: int) -> Mark:
    return Mark(OffsetAndEpoch(end, 1), 0, end)


def _newest(content: bytes) -> Mark | None:
    found = parse_mark(content)
    return found[1] if found else None


@pytest.mark.parametrize("is_reopened", [False, True], ids=["running", "started again"])
def test_a_torn_write_of_a_copy_leaves_the_mark_before(is_reopened: bool) -> None:
    """A raise writes over the older copy, whatever was written before: one mark, both, or the
    marks of an earlier run."""
    files = SimFiles()
    files.mkdir("/d")
    kept = FlushMark(files, "/d")
    kept.open(_mark(0))
    last = 0
    for number in range(1, 8):
        if is_reopened:
            kept = FlushMark(files, "/d")
            kept.open(_mark(last))
        if number == 4:
            kept.set(_mark(2))
            last = 2
            both = read_copies(files.read_bytes(kept.path))
            assert [copy and copy[1] for copy in both] == [_mark(2)] * 2
        before = files.read_bytes(kept.path)
        kept.raise_to(_mark(number))
        after = files.read_bytes(kept.path)
        assert _newest(after) == kept.mark == _mark(number)
        changed = [place for place, byte in enumerate(after) if before[place] != byte]
        first = changed[0] // COPY_BYTES * COPY_BYTES
        assert changed[-1] < first + COPY_BYTES
        for tear in range(changed[0], changed[-1] + 2):
            found = _newest(after[:tear] + before[tear:])
            assert found in (_mark(last), _mark(number)), (number, tear)
        gone = after[:first] + bytes(COPY_BYTES) + after[first + COPY_BYTES :]
        assert _newest(gone) == _mark(last), number
        last = number
