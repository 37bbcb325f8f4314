"""What a report and its files do to whoever opens them, and who may."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

import pyarrow as pa

from kraftwire.printable import spreadsheet_cell
from kraftwire.spark.report.page import _flat, _save, _write_data
from kraftwire.spark.run.derive import _replace
from kraftwire.spark.run.manifest import claimed
from kraftwire.spark.run.parts import _cell, create_missing, export

FORMULAS = [
    *("=1+1", "+1", "-1+1", "@SUM(A1)", " =1", "\t=1", "\r=1", "\xa0=1", "\u3000=1"),
    *("\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)"),  # as East Asian keyboards write them
    *("a;=1", 'a;"=1', "a; +1", ";;@A1", '";=1'),  # a semicolon separates cells in half of Europe
]


def _are_no_formulas(text: str) -> bool:
    formula = re.compile(r'[\s"]*[=+@\uff1d\uff0b\uff0d\uff20-]')
    return not any(formula.match(cell) for cell in text.split(";"))


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_from_a_capture_is_no_formula(text: str) -> None:
    """A client id may be anything, and a spreadsheet runs what begins like a formula."""
    assert not _are_no_formulas(text)
    for cell in (spreadsheet_cell(text), str(_cell(text)), str(_cell([text]))):
        assert _are_no_formulas(cell)
    column = _flat(pa.table({"client": [text, None, "a"], "n": [-1, 2, 3]}))
    assert column["client"].to_pylist()[0] == spreadsheet_cell(text)
    assert column["client"].to_pylist()[1:] == [None, "a"]
    assert column["n"].to_pylist() == [-1, 2, 3]


def test_control_characters_are_escaped() -> None:
    """A file that is shown on a terminal must not control it."""
    assert "\x1b" not in spreadsheet_cell("a\x1b[2J")


def test_folders_and_reports_are_for_their_owner(tmp_path: Path) -> None:
    """They may hold payloads; a folder that was there keeps its mode, and nobody else enters what
    is put into it."""
    with claimed(tmp_path / "new"):
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    shared = tmp_path / "shared"
    shared.mkdir(0o755)
    shared.chmod(0o755)
    with claimed(shared):
        assert stat.S_IMODE(shared.stat().st_mode) == 0o755
        create_missing(shared, ["frames"])
        export(shared, "csv")
        _write_data(shared / "report", [])
        _replace(shared, shared / "frames", shared / "moved")
    inner = [stat.S_IMODE(path.stat().st_mode) for path in shared.iterdir()]
    assert inner == [0o700] * 4
    page = _save(tmp_path / "report.html", "<html>")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
