"""Segments in ranges of bytes: several workers find what one finds in the whole file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.decode.files import FileFinding, FileOptions, FileReport, open_source
from kraftwire.decode.files.scan import HEADER_SIZE, Scanner, read_header
from kraftwire.decode.files.segment import SegmentLines
from kraftwire.records.batch import RecordBatch
from kraftwire.records.builder import BatchHeader, build_batch
from kraftwire.records.reader import read_batches
from kraftwire.records.record import Record
from tests.support.captures.decoded import ROOT
from tests.support.logs.bytes import batch

SEGMENTS = sorted((ROOT / "tests" / "golden" / "logs").rglob("*.log"))

# Lines as JSON, and findings.
Seen = tuple[list[dict[str, object]], list[tuple[str, int]]]


def _seen(path: Path, ranges: list[tuple[int, int | None, int | None]]) -> Seen:
    """The lines of ranges of a file; each range says where it and the batch before it begin."""
    findings: list[FileFinding] = []
    report = FileReport(findings.append)
    lines = []
    with open_source(path) as source:
        for start, end, previous in ranges:
            before = None
            if previous is not None:
                before = read_header(source.read(previous, HEADER_SIZE))
            sink = report.sink(str(path))
            scanner = Scanner(source, sink, start, end, before=before)
            made = SegmentLines(source, FileOptions(), sink)
            lines += [line.json for line in made.lines(scanner)]
    return lines, [(each.id, each.position) for each in findings]


def _borders(path: Path) -> list[int]:
    with open_source(path) as source:
        scanner = Scanner(source, FileReport().sink(str(path)))
        return [found.position for found in scanner.batches()]


def _ranges(borders: list[int]) -> list[tuple[int, int | None, int | None]]:
    ends = [*borders[1:], None]
    return list(zip(borders, ends, [None, *borders[:-1]], strict=True))


@pytest.mark.parametrize("path", SEGMENTS, ids=lambda path: path.parent.name)
def test_one_range_for_each_batch_gives_what_the_whole_file_gives(path: Path) -> None:
    """Every line once, and the order of batches checked across borders."""
    borders = _borders(path)
    assert _seen(path, _ranges(borders)) == _seen(path, [(0, None, None)])


def test_order_is_checked_across_the_border_of_ranges(tmp_path: Path) -> None:
    """An offset that goes back must not hide between two workers."""
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.parent.mkdir()
    first, second = batch(10, [b"a", b"b"]), batch(5, [b"c"])
    path.write_bytes(first + second)
    whole = _seen(path, [(0, None, None)])
    assert whole[1] == [("not-monotonic", len(first))]
    assert _seen(path, [(0, len(first), None), (len(first), None, 0)]) == whole
    assert _seen(path, [(len(first), None, None)])[1] == []


def test_damage_across_a_border_is_reported_in_two_pieces(tmp_path: Path) -> None:
    """Each byte is reported by the range that holds it, and no batch is read twice."""
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.parent.mkdir()
    parts = [batch(0, [b"a"]), b"\xfe" * 200, batch(1, [b"b"])]
    path.write_bytes(b"".join(parts))
    border = len(parts[0]) + 80
    findings: list[FileFinding] = []
    report = FileReport(findings.append)
    positions = []
    with open_source(path) as source:
        for start, end in ((0, border), (border, source.size)):
            scanner = Scanner(source, report.sink(str(path)), start, end)
            positions += [found.position for found in scanner.batches()]
            assert not scanner.is_whole_file
    assert positions == [0, len(parts[0]) + 200]
    assert [(each.id, each.position, each.size) for each in findings] == [
        ("garbage", len(parts[0]), 80),
        ("garbage", border, 120),
    ]


def test_a_batch_that_begins_in_a_range_is_read_whole(tmp_path: Path) -> None:
    """A border inside a batch leaves it to the range in which it begins."""
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.parent.mkdir()
    first = batch(0, [b"a" * 50])
    path.write_bytes(first + batch(1, [b"b"]))
    with open_source(path) as source:
        scanner = Scanner(source, FileReport().sink(str(path)), 0, 20)
        assert [found.header.size for found in scanner.batches()] == [len(first)]
        assert scanner.before is not None
        assert scanner.before.last_offset == 0


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_section_of_a_batch_holds_its_records_unpacked(codec: str) -> None:
    """Readers by columns need the bytes, not the records."""
    rows = [Record(100 + n, 1000 + n, b"key", b"value %d" % n) for n in range(20)]
    plain = _section_bytes(rows, "none")
    assert _section_bytes(rows, codec) == plain
    assert b"value 19" in plain


def _section_bytes(rows: list[Record], codec: str) -> bytes:
    (made,) = read_batches(build_batch(rows, BatchHeader(compression=codec)))
    assert isinstance(made, RecordBatch)
    section = made.section()
    assert (section.base_offset, section.base_timestamp) == (100, 1000)
    return section.data[section.start : section.end]
