"""Which files a run reads, under which names, and what it says of those that it cannot read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.spark.run import InProcess, RunOptions, run
from tests.spark.run.folders import captures, everything, rows_of


def _silent(_text: str) -> None:
    """Say nothing."""


def _odd(path: Path, mark: bytes) -> Path:
    """The path with bytes in its name that are no UTF-8."""
    return Path(os.fsdecode(os.fsencode(path) + mark))


def test_names_that_are_not_utf_8_are_escaped(tmp_path: Path) -> None:
    """One file with an old name, whole, damaged or of a log, must not end the run of a folder."""
    source = everything(tmp_path / "in")
    for path in [path for path in source.rglob("*") if path.is_file()]:
        path.rename(_odd(path, b"\xff"))
    log = source / "odd" / "orders-0"
    log.rename(_odd(log.parent / "caf", b"\xe9-0"))
    outcome = run([str(source)], RunOptions(tmp_path / "out"), InProcess(), tell=_silent)
    assert outcome.unbalanced == []
    names = {row["file"] for row in rows_of(tmp_path / "out", "files")}
    assert f"{source}/captures/quorum.pcap\\xff" in names
    assert f"{source}/odd/caf\\xe9-0/00000000000000000000.log\\xff" in names
    assert {row["file"] for row in rows_of(tmp_path / "out", "frames")} <= names
    told = {row["file"] for row in rows_of(tmp_path / "out", "bad_input")}
    assert f"{source}/odd/cut.pcap\\xff" in told


def test_a_file_with_such_a_name_is_known_again(tmp_path: Path) -> None:
    """The manifest is JSON, and a run that goes on must not read the file twice."""
    whole = captures(tmp_path / "in", "sasl") / "sasl.pcap"
    whole.rename(_odd(whole.with_suffix(""), b"\xff0.pcap"))
    out = tmp_path / "out"
    run([str(tmp_path / "in")], RunOptions(out), InProcess(), tell=_silent)
    again = run([str(tmp_path / "in")], RunOptions(out), InProcess(), tell=_silent, resume=True)
    assert (again.files, again.known) == (0, 1)
    assert {row["file"] for row in rows_of(out, "exchanges")} == {
        f"{tmp_path}/in/sasl\\xff0.pcap"
    }
