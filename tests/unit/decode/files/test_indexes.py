"""Index files: entries, padding, order, and whether they fit the segment next to them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

from kraftwire.decode.files.entries import IndexEntry, read_entries
from kraftwire.decode.files.index_check import index_checker
from kraftwire.decode.files.kinds import parse_file_name
from kraftwire.decode.files.report import FileFinding, FindingSink
from kraftwire.decode.files.source import open_source
from kraftwire.messages.aborted_txn import AbortedTxn
from tests.support.logs.bytes import segment

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "logs"
PADDING = bytes(8 * 1000)


@dataclass
class Index:
    """What reading an index gave."""

    entries: list[IndexEntry] = field(default_factory=list)
    findings: list[FileFinding] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [finding.id for finding in self.findings]


def read(path: Path) -> Index:
    result = Index()
    sink = FindingSink(str(path), result.findings.append)
    base_offset = parse_file_name(path.name).base_offset or 0
    with open_source(path) as source, index_checker(source.kind, path, sink) as check:
        for entry in read_entries(source.kind, source, base_offset, sink):
            result.entries.append(entry)
            if check is not None:
                check(entry)
    return result


def write(folder: Path, suffix: str, layout: str, *entries: tuple[int, ...]) -> Path:
    path = folder / f"{100:020d}.{suffix}"
    path.write_bytes(b"".join(struct.pack(layout, *entry) for entry in entries))
    return path


def positions(folder: Path) -> list[int]:
    """Write a segment of five batches at offset 100; returns where they begin."""
    parts = segment(100, 5)
    (folder / f"{100:020d}.log").write_bytes(b"".join(parts))
    return [sum(map(len, parts[:index])) for index in range(len(parts))]


def test_offsets_of_an_index_count_from_the_name(tmp_path: Path) -> None:
    """An entry holds 32 bits; the rest of the offset is the file's name."""
    where = positions(tmp_path)
    path = write(tmp_path, "index", ">ii", (5, where[1]), (14, where[4]))
    result = read(path)
    assert [entry.fields for entry in result.entries] == [
        {"offset": 105, "position": where[1]},
        {"offset": 114, "position": where[4]},
    ]
    assert result.findings == []


def test_padding_of_a_preallocated_index_is_not_an_entry(tmp_path: Path) -> None:
    """An active index is 10 MiB of zeros after its entries."""
    where = positions(tmp_path)
    path = write(tmp_path, "index", ">ii", (5, where[1]))
    path.write_bytes(path.read_bytes() + PADDING)
    assert len(read(path).entries) == 1
    path.write_bytes(PADDING)
    assert read(path).entries == []
    assert read(path).findings == []


def test_entries_after_padding_are_read_and_reported(tmp_path: Path) -> None:
    """A hole in an index is damage; Kafka would stop there."""
    where = positions(tmp_path)
    path = write(tmp_path, "index", ">ii", (2, where[0]), (0, 0), (0, 0), (8, where[2]))
    result = read(path)
    assert [entry.offset for entry in result.entries] == [102, 108]
    assert [(f.id, f.position, f.size) for f in result.findings] == [("index-hole", 8, 16)]


def test_an_entry_that_points_at_no_batch_is_reported(tmp_path: Path) -> None:
    """Such an index sends a consumer into the middle of a record."""
    where = positions(tmp_path)
    entries = ((2, where[0] + 1), (5, where[1]), (9, where[2]), (14, 10_000_000))
    result = read(write(tmp_path, "index", ">ii", *entries))
    assert result.ids == ["index-mismatch"] * 3
    assert [finding.position for finding in result.findings] == [0, 16, 24]


def test_entries_out_of_order_are_reported(tmp_path: Path) -> None:
    """Lookups are binary searches, so an index depends on its order."""
    where = positions(tmp_path)
    path = write(tmp_path, "index", ">ii", (8, where[2]), (5, where[1]), (-1, where[3]))
    assert read(path).ids.count("not-monotonic") == 2


def test_a_time_index_names_the_largest_timestamp_of_the_batch(tmp_path: Path) -> None:
    """That is what a lookup by time relies on."""
    positions(tmp_path)
    start = 1_700_000_000_000
    path = write(tmp_path, "timeindex", ">qi", (start + 12, 5), (start + 42, 14))
    result = read(path)
    assert [entry.fields for entry in result.entries] == [
        {"offset": 105, "timestamp": start + 12},
        {"offset": 114, "timestamp": start + 42},
    ]
    assert result.findings == []
    path = write(tmp_path, "timeindex", ">qi", (start + 11, 5), (start + 42, 99))
    assert read(path).ids == ["index-mismatch", "index-mismatch"]
    path = write(tmp_path, "timeindex", ">qi", (start + 12, 5), (start + 12, 5))
    assert read(path).ids == ["not-monotonic"]


def test_damage_of_the_segment_is_not_blamed_on_its_time_index(tmp_path: Path) -> None:
    """If the segment cannot be walked, nothing is known about the entry."""
    where = positions(tmp_path)
    log = tmp_path / f"{100:020d}.log"
    content = bytearray(log.read_bytes())
    content[where[2] : where[2] + 61] = bytes(61)
    log.write_bytes(bytes(content))
    path = write(tmp_path, "timeindex", ">qi", (1_700_000_000_042, 14))
    assert read(path).findings == []


def test_an_index_without_its_segment_is_read_unchecked(tmp_path: Path) -> None:
    """Tiered storage keeps indexes in separate folders."""
    path = write(tmp_path, "index", ">ii", (5, 777))
    assert len(read(path).entries) == 1
    assert read(path).findings == []


def test_a_cut_index_has_trailing_bytes(tmp_path: Path) -> None:
    """Half an entry is not an entry."""
    path = write(tmp_path, "index", ">ii", (5, 777), (6, 888))
    path.write_bytes(path.read_bytes()[:-3])
    result = read(path)
    assert len(result.entries) == 1
    assert [(f.id, f.size, f.is_loss) for f in result.findings] == [("trailing-bytes", 5, False)]


def test_aborted_transactions_have_kafkas_fields() -> None:
    """Read-committed consumers skip these ranges."""
    result = read(GOLDEN / "broker/txn-out-0/00000000000000000000.txnindex")
    assert result.findings == []
    assert result.entries[0].fields == {
        "version": 0,
        "producerId": 1,
        "firstOffset": 38,
        "lastOffset": 56,
        "lastStableOffset": 57,
    }
    assert len(result.entries) == 6
    for entry in result.entries:
        message, end = AbortedTxn.decode(entry.data, 0, offset=2)
        assert {"version": 0, **message.to_json(0)} == entry.fields
        assert end == len(entry.data)


def test_an_unknown_version_of_a_transaction_index_ends_it(tmp_path: Path) -> None:
    """The meaning of fields of a version that does not exist yet is unknown."""
    path = write(tmp_path, "txnindex", ">hqqqq", (0, 1, 2, 3, 4), (1, 1, 5, 6, 7))
    result = read(path)
    assert len(result.entries) == 1
    assert [(f.id, f.is_loss) for f in result.findings] == [("unknown-version", True)]


def test_a_transaction_index_out_of_order_is_reported(tmp_path: Path) -> None:
    """Kafka appends a transaction when it ends, so last offsets grow."""
    path = write(tmp_path, "txnindex", ">hqqqq", (0, 1, 9, 8, 9), (0, 1, 2, 3, 4))
    assert read(path).ids == ["not-monotonic", "not-monotonic"]


def test_the_indexes_of_a_real_cluster_have_no_findings() -> None:
    """No false alarm on what Kafka itself wrote."""
    paths = [path for path in GOLDEN.rglob("*index") if path.is_file()]
    assert len(paths) >= 10
    for path in paths:
        result = read(path)
        assert result.findings == [], path
