"""Inputs that are deleted while a run reads them, by a ring buffer of captures or by retention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.spark.run import LocalRunner, RunOptions, run
from kraftwire.spark.run.pipeline import TailInputs
from kraftwire.spark.run.tasks import Work
from tests.spark.logs.log_files import GOLDEN
from tests.spark.run.folders import captures, rows_of, tables_of
from tests.support.captures.decoded import rotated


class _Deleting(LocalRunner):
    """Deletes files before the first task of a name."""

    def __init__(self, paths: Sequence[Path], before: str) -> None:
        super().__init__()
        self._paths, self._before = paths, before

    def map(self, task: Callable[[Work], Any], work: Sequence[Work]) -> list[Any]:
        """Run the task here."""
        if getattr(task, "__name__", "") == self._before:
            for path in self._paths:
                path.unlink(missing_ok=True)
        return super().map(task, work)


def _run(source: Path, out: Path, *gone: Path, before: str = "decode_unit", **more: Any) -> Any:
    told: list[str] = []
    runner = _Deleting(gone, before)
    outcome = run([str(source)], RunOptions(out), runner, warn=told.append, **more)
    return outcome, told


def _without(tables: dict[str, list[str]], path: Path) -> dict[str, list[str]]:
    return {
        name: [row for row in rows if f"'file': '{path}'" not in row]
        for name, rows in tables.items()
    }


@pytest.mark.parametrize("before", ["index_unit", "decode_unit"])
def test_a_deleted_capture_is_counted_as_bad(before: str, tmp_path: Path) -> None:
    """The others are read, and every byte of it is accounted for."""
    source = captures(tmp_path / "in", "sasl", "clients")
    gone = source / "clients.pcap"
    size = gone.stat().st_size
    outcome, told = _run(source, tmp_path / "out", gone, before=before)
    assert (outcome.files, outcome.unbalanced) == (2, [])
    assert told == [f"{gone}: was deleted before it was read"]
    (row,) = rows_of(tmp_path / "out", "bad_input")
    assert (row["file"], row["length"], row["id"]) == (str(gone), size, "unreadable-file")
    assert "No such file" in row["detail"]
    _run(source, tmp_path / "only")
    found = _without(tables_of(tmp_path / "out"), gone)
    assert {name: rows for name, rows in found.items() if rows} == {
        name: rows for name, rows in tables_of(tmp_path / "only").items() if rows
    }


def test_a_recording_is_read_without_its_deleted_file(tmp_path: Path) -> None:
    """A ring buffer deletes its oldest file; nothing of a first attempt may be left."""
    parts = rotated(tmp_path / "in", 4)
    outcome, told = _run(tmp_path / "in", tmp_path / "out", *parts[:2])
    assert (outcome.files, outcome.unbalanced, len(told)) == (4, [], 2)
    _run(tmp_path / "in", tmp_path / "only")
    found = _without(_without(tables_of(tmp_path / "out"), parts[0]), parts[1])
    assert {name: rows for name, rows in found.items() if rows} == {
        name: rows for name, rows in tables_of(tmp_path / "only").items() if rows
    }


@pytest.mark.parametrize("before", ["index_unit", "decode_unit"])
def test_rows_of_a_deleted_file_stay(before: str, tmp_path: Path) -> None:
    """In a later round of a tail it is read again with a new file, if it is still there."""
    parts = rotated(tmp_path / "in", 3)
    new, rest = parts[2].read_bytes(), parts[2]
    rest.unlink()
    tail: dict[str, Any] = {"resume": True, "following": TailInputs()}
    _run(tmp_path / "in", tmp_path / "out", **tail)
    read = {row["file"]: row for row in rows_of(tmp_path / "out", "files")}
    rest.write_bytes(new)
    outcome, _ = _run(tmp_path / "in", tmp_path / "out", parts[0], before=before, **tail)
    assert (outcome.files, outcome.again, outcome.unbalanced) == (1, 0, [])
    rows = rows_of(tmp_path / "out", "files")
    assert sorted(row["file"] for row in rows) == [str(path) for path in parts]
    assert [row for row in rows if row["file"] == str(parts[0])] == [read[str(parts[0])]]
    assert not [row for row in rows_of(tmp_path / "out", "bad_input") if row["stage"] == "file"]
    outcome, told = _run(tmp_path / "in", tmp_path / "out", **tail)
    assert (outcome.files, told) == (0, [])


def _segment(folder: Path) -> Path:
    given = next(path for path in sorted(GOLDEN.rglob("*.log")) if path.stat().st_size)
    folder.mkdir(parents=True)
    made = folder / "00000000000000000000.log"
    made.write_bytes(given.read_bytes())
    return made


def test_a_deleted_segment_is_counted_as_bad(tmp_path: Path) -> None:
    """Retention may delete it between the listing and the reading."""
    source = captures(tmp_path / "in", "sasl")
    gone = _segment(source / "orders-0")
    size = gone.stat().st_size
    outcome, told = _run(source, tmp_path / "out", gone)
    assert outcome.unbalanced == []
    assert told == [f"{gone}: was deleted before it was read"]
    (row,) = [row for row in rows_of(tmp_path / "out", "files") if row["file"] == str(gone)]
    assert (row["size"], row["bad_bytes"]) == (size, size)
    (bad,) = rows_of(tmp_path / "out", "bad_input")
    assert (bad["length"], bad["id"]) == (size, "unreadable-file")


def test_a_tail_goes_on_without_a_deleted_segment(tmp_path: Path) -> None:
    """It reports the file and leaves no row: what was read of it before stays."""
    source = captures(tmp_path / "in", "sasl")
    gone = _segment(source / "orders-0")
    tail: dict[str, Any] = {"resume": True, "following": TailInputs()}
    outcome, told = _run(source, tmp_path / "out", gone, **tail)
    assert outcome.unbalanced == []
    assert told == [f"{gone}: was deleted before it was read"]
    assert str(gone) not in {row["file"] for row in rows_of(tmp_path / "out", "files")}
