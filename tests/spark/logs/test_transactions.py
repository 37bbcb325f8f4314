"""Committed reading of a log: what was aborted or is open is left out, whatever the split."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from kraftwire.messages.end_txn_marker import EndTxnMarker
from kraftwire.records import BatchHeader, Record, build_batch
from kraftwire.records.control import ControlType, control_key, control_value
from kraftwire.spark.logs.transactions import transactions_of
from kraftwire.spark.sources.log import LogDataSource
from tests.spark.logs.log_files import GOLDEN

SEED = 7_31


class TransactionalLog:
    """Makes segments with transactions of several producers, and knows what is committed."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self.offset = 0
        self.segments: list[tuple[int, list[bytes]]] = [(0, [])]
        # Producer -> offsets of its open transaction.
        self.open: dict[int, list[int]] = {}
        self.committed: list[int] = []
        self.aborted: list[tuple[int, int, int]] = []

    def fill(self, count: int) -> None:
        """Add batches of data and markers."""
        for _ in range(count):
            producer = self._source.randrange(1, 4)
            kind = self._source.randrange(8)
            if kind == 0:
                self.committed += self._data(-1, is_transactional=False)
            elif kind < 5:
                offsets = self._data(producer, is_transactional=True)
                self.open.setdefault(producer, []).extend(offsets)
            elif kind < 7:
                self._end(producer, is_commit=self._source.random() < 0.5)
            else:
                self.segments.append((self.offset, []))

    @property
    def visible(self) -> list[int]:
        """Offsets that a `read_committed` consumer gets."""
        stable = min((offsets[0] for offsets in self.open.values()), default=self.offset)
        return sorted(offset for offset in self.committed if offset < stable)

    def write(self, folder: Path, *, with_index: bool = False) -> Path:
        """Write the segments and, if requested, an index of the aborted transactions."""
        partition = folder / "out-0"
        partition.mkdir()
        for base, batches in self.segments:
            (partition / f"{base:020}.log").write_bytes(b"".join(batches))
        if with_index:
            entries = [struct.pack(">hqqqq", 0, *entry, entry[1]) for entry in self.aborted]
            (partition / f"{0:020}.txnindex").write_bytes(b"".join(entries))
        return partition

    def _data(self, producer: int, *, is_transactional: bool) -> list[int]:
        offsets = list(range(self.offset, self.offset + self._source.randrange(1, 5)))
        header = BatchHeader(
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=0 if producer >= 0 else -1,
            is_transactional=is_transactional,
            compression=self._source.choice(["none", "lz4"]),
        )
        self._add(build_batch([Record(each, 0, None, b"%d" % each) for each in offsets], header))
        self.offset = offsets[-1] + 1
        return offsets

    def _end(self, producer: int, *, is_commit: bool) -> None:
        kind = ControlType.COMMIT if is_commit else ControlType.ABORT
        record = Record(self.offset, 0, control_key(kind), control_value(EndTxnMarker()))
        header = BatchHeader(
            producer_id=producer, producer_epoch=0, is_transactional=True, is_control=True
        )
        self._add(build_batch([record], header))
        offsets = self.open.pop(producer, [])
        if is_commit:
            self.committed += offsets
        elif offsets:
            self.aborted.append((producer, offsets[0], self.offset))
        self.offset += 1

    def _add(self, batch: bytes) -> None:
        self.segments[-1][1].append(batch)


def offsets(path: Path | str, **options: str) -> list[int]:
    """Offsets that the source reads, without a session."""
    source = LogDataSource({"path": str(path), **options})
    reader = source.reader(source.schema())
    found: list[int] = []
    for partition in reader.partitions():
        for batch in reader.read(partition):
            found += batch.column("offset").to_pylist()
    return found


@pytest.mark.parametrize("seed", range(25))
def test_only_what_is_committed_is_read(tmp_path: Path, seed: int) -> None:
    """Across segments, in any split, from the whole folder or one segment of it."""
    source = random.Random(SEED + seed)
    log = TransactionalLog(source)
    log.fill(source.randrange(5, 90))
    partition = log.write(tmp_path)
    split = str(source.choice([200, 1000, 10**6]))
    assert offsets(partition, isolation="committed", splitBytes=split) == log.visible
    assert offsets(partition, splitBytes=split) == list(range(log.offset))
    base, _ = source.choice(log.segments)
    following = min((one for one, _ in log.segments if one > base), default=log.offset)
    one = partition / f"{base:020}.log"
    assert offsets(one, isolation="committed", splitBytes=split) == [
        offset for offset in log.visible if base <= offset < following
    ]


@pytest.mark.parametrize("seed", range(10))
def test_the_index_replaces_damaged_abort_markers(tmp_path: Path, seed: int) -> None:
    """A marker with a wrong CRC does not make aborted data visible."""
    source = random.Random(SEED + seed)
    log = TransactionalLog(source)
    while not log.aborted:
        log.fill(20)
    partition = log.write(tmp_path, with_index=True)
    expected = transactions_of(partition)
    for path in partition.glob("*.log"):
        data = bytearray(path.read_bytes())
        for marker in (control_key(ControlType.ABORT),):
            at = -1
            while (at := data.find(b"\x08" + marker, at + 1)) >= 0:
                data[at + len(marker)] ^= 0x40
        path.write_bytes(data)
    assert transactions_of(partition) == expected


def test_kafkas_own_index_and_markers_agree(tmp_path: Path) -> None:
    """The transactions of a real log, with and without the index."""
    folder = GOLDEN / "broker" / "txn-out-0"
    with_index = transactions_of(folder)
    copy = tmp_path / folder.name
    copy.mkdir()
    for path in folder.glob("*.log"):
        (copy / path.name).write_bytes(path.read_bytes())
    assert transactions_of(copy) == with_index
    assert with_index.aborted
    rows: list[Any] = offsets(folder, isolation="committed")
    assert 0 < len(rows) < len(offsets(folder))
