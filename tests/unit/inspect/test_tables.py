"""Tables: aligned and plain for programs, fitting for terminals; and the lines of files."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.files import FileOptions, FileReport, decode_file
from kraftwire.decode.text import count_text, duration_text, size_text, utc_text
from kraftwire.inspect.lines.line import LineWriter
from kraftwire.inspect.tables import Table, write_table

LOGS = Path(__file__).resolve().parents[2] / "golden" / "logs"


class _Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def _table() -> Table:
    head = ("name", "count", "remarks")
    return Table("Things", head, [("a", "5", "x" * 30), ("long name", "12,000", "")], (1,), (2,))


def test_a_table_is_aligned_text() -> None:
    """Heads and cells share columns, numbers are right-aligned, and no spaces trail."""
    assert _table().lines() == [
        "Things",
        "name        count  remarks",
        "a               5  " + "x" * 30,
        "long name  12,000",
    ]


@pytest.mark.parametrize(("columns", "has_remarks"), [(80, True), (30, False)])
def test_a_narrow_terminal_gets_fewer_columns(
    columns: int, has_remarks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells broken in the middle of words are worse than one column less."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = _Terminal()
    write_table(_table(), stream)
    text = stream.getvalue()
    assert "long name" in text
    assert "12,000" in text
    assert ("remarks" in text) is has_remarks


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
