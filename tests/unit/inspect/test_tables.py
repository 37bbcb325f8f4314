"""Tables: aligned and plain for programs, fitting for terminals; and the lines of files."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.files import FileOptions, FileReport, decode_file
from kraftwire.decode.text import count_text, duration_text, size_text, utc_text
from kraftwire.inspect.lines.line import LineWriter
from kraftwire.inspect.tables import Table, fitted_lines

LOGS = Path(__file__).resolve().parents[2] / "golden" / "logs"


def _table(name: str = "long name") -> Table:
    rows = [("a", "5", "x " * 15, "y" * 30), (name, "12,000", "", "")]
    head = ("name", "count", "list", "remarks")
    return Table("Things", head, rows, (1,), names=(0,), lists=(2,), optional=(3,))


def test_a_table_is_aligned_text() -> None:
    """Heads and cells share columns, numbers are right-aligned, and no spaces trail."""
    assert list(fitted_lines(_table(), 90)) == [
        "Things",
        "name        count  list                            remarks",
        "a               5  x x x x x x x x x x x x x x x   " + "y" * 30,
        "long name  12,000",
    ]


def test_a_narrow_table_wraps_lists_and_leaves_columns_out() -> None:
    """A row is one line unless it has a list, and what is not shown is named."""
    assert list(fitted_lines(_table(), 40)) == [
        "Things",
        "name        count  list",
        "a               5  x x x x x x x x",
        "                   x x x x x x x",
        "long name  12,000",
        "not shown in 40 columns: remarks",
    ]


@pytest.mark.parametrize("width", [80, 60])
def test_names_are_cut_in_the_middle_only_if_they_must_be(width: int) -> None:
    """Both ends of a name tell partitions and clients apart."""
    lines = list(fitted_lines(_table("consumer-of-" + "o" * 12 + "-7"), width))
    assert any(line.startswith("consumer-of-oooooooooooo-7  12,000") for line in lines)
    lines = list(fitted_lines(_table("consumer-of-" + "o" * 99 + "-7"), width))
    (row,) = (line for line in lines if line.startswith("consumer-of-ooo"))
    assert "oooo-7  12,000" in row
    assert "…" in row
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (duration_text(0.0000032), "3 us"),
        (duration_text(0.0454), "45.4 ms"),
        (duration_text(8.04), "8.04 s"),
        (duration_text(512), "8 min 32 s"),
        (size_text(999), "999 B"),
        (size_text(5 * 1024 * 1024), "5.0 MiB"),
        (count_text(1, "batch"), "1 batch"),
        (count_text(12000, "batch"), "12,000 batches"),
        (utc_text(1795206061885), "2026-11-20T20:21:01.885Z"),
        (utc_text(-1), "1969-12-31T23:59:59.999Z"),
        (utc_text(2**63 - 1), "9223372036854775807"),
    ],
)
def test_values_have_units_that_suit_them(found: str, text: str) -> None:
    """Any 64-bit number may be in place of a time."""
    assert found == text


@pytest.mark.parametrize(
    ("file", "parts"),
    [
        (
            "controller/__cluster_metadata-0/00000000000000000000.log",
            ["offsets", "0-2        3     1", "control, LeaderChangeMessage, KRaftVersionRecord"],
        ),
        ("controller/__cluster_metadata-0/quorum-state", ['"leaderId"']),
        ("broker/__consumer_offsets-1/00000000000000000000.timeindex", ["timestamp"]),
        ("broker/txn-out-0/00000000000000000000.log", ["transactional, producer"]),
    ],
)
def test_files_have_a_line_per_batch_entry_or_state(file: str, parts: list[str]) -> None:
    """What a segment holds, at a glance; the file's name precedes its lines once."""
    stream = io.StringIO()
    writer = LineWriter(stream, topics=TopicNames())
    path = LOGS / file
    for line in decode_file(path, FileOptions(records="summary"), FileReport()):
        writer.file_line(line)
    writer.finish()
    text = stream.getvalue()
    assert text.startswith(f"# {path}\n")
    for part in parts:
        assert part in text
