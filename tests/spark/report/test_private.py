"""What a report and its files do to whoever opens them, and who may."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

import pyarrow as pa

from kraftwire.printable import spreadsheet_cell
from kraftwire.spark.report.page import _flat, _save
from kraftwire.spark.run.manifest import claimed
from kraftwire.spark.run.parts import _cell

FORMULAS = ["=1+1", "+1", "-1+1", "@SUM(A1)", " =1", "\t=1", "\r=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_from_a_capture_is_no_formula(text: str) -> None:
    """A client id may be anything, and a spreadsheet runs what begins like a formula."""
    assert spreadsheet_cell(text).startswith(("'", "\\u"))
    assert str(_cell(text)).startswith(("'", "\\u"))
    column = _flat(pa.table({"client": [text, None, "a"], "n": [-1, 2, 3]}))
    assert column["client"].to_pylist()[0] == spreadsheet_cell(text)
    assert column["client"].to_pylist()[1:] == [None, "a"]
    assert column["n"].to_pylist() == [-1, 2, 3]


def test_control_characters_are_escaped() -> None:
    """A file that is shown on a terminal must not control it."""
    assert "\x1b" not in spreadsheet_cell("a\x1b[2J")


def test_folders_and_reports_are_for_their_owner(tmp_path: Path) -> None:
    """They may hold payloads; a folder that was there keeps its mode."""
    with claimed(tmp_path / "new"):
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    shared = tmp_path / "shared"
    shared.mkdir(0o755)
    shared.chmod(0o755)
    with claimed(shared):
        assert stat.S_IMODE(shared.stat().st_mode) == 0o755
    page = _save(tmp_path / "report.html", "<html>")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
