"""Tables of very many small parts are read from one file each, with the same rows."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

import pyarrow as pa
import pyarrow.parquet as pq

from kraftwire.spark.run import LocalRunner, RunOptions, run
from kraftwire.spark.run import derive as derived
from kraftwire.spark.run import parts as merged
from kraftwire.spark.run.derive import derive
from kraftwire.spark.run.parts import PartWriter, commit, merge_small
from kraftwire.spark.tables import find_table
from tests.spark.run.folders import captures, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLE = "bad_input"
_MANY = 30


def _rows(first: int, count: int) -> pa.RecordBatch:
    """Rows with only a position each."""
    schema = find_table(_TABLE).arrow
    rows = [{"file": "a", "position": at} for at in range(first, first + count)]
    return pa.RecordBatch.from_pylist(rows, schema)


def _parts(folder: Path, count: int, rows: int = 2) -> None:
    for number in range(count):
        with PartWriter(folder, f"unit-{number:04}", 0, {"a": "b"}) as writer:
            writer.write(_TABLE, _rows(rows * number, rows))
        commit(folder, writer.parts)


def _positions(folder: Path) -> list[int]:
    table = pq.read_table(folder / _TABLE)
    assert table.schema == find_table(_TABLE).arrow
    found: list[int] = table["position"].to_pylist()
    return found


def test_every_row_is_in_the_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the parts, whether they make one row group or many."""
    _parts(tmp_path, _MANY)
    assert _positions(merge_small(tmp_path, [_TABLE])[_TABLE]) == list(range(2 * _MANY))
    monkeypatch.setattr(merged, "GROUP_BYTES", 100)
    made = merge_small(tmp_path, [_TABLE])[_TABLE]
    assert _positions(made) == list(range(2 * _MANY))
    (path,) = (made / _TABLE).iterdir()
    assert 1 < pq.read_metadata(path).num_row_groups < _MANY


def test_few_parts_and_large_ones_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copying them would take longer than to open them."""
    _parts(tmp_path, _MANY)
    for name, bound in (("_PARTS_MIN", _MANY + 1), ("_BYTES_MAX", 100), ("_PART_BYTES_MAX", 100)):
        with monkeypatch.context() as changed:
            changed.setattr(merged, name, bound)
            assert merge_small(tmp_path, [_TABLE, "frames"]) == {}
    assert set(merge_small(tmp_path, [_TABLE, "frames"])) == {_TABLE}


def test_derived_tables_are_the_same(
    spark: SparkSession,
    spark_for_many_rows: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stages must not see how many parts a table had, nor for how many rows they were planned."""
    source = captures(tmp_path / "in", "quorum", "clients")
    one, other = tmp_path / "one", tmp_path / "other"
    run([str(source)], RunOptions(one), LocalRunner(), warn=print)
    shutil.copytree(one, other)
    names = ["clusters", "partitions"]
    derive(spark, one, names, in_one_task=True)
    copied: list[str] = []

    def noted(folder: Path, tables: Iterable[str]) -> dict[str, Path]:
        found = merge_small(folder, tables)
        copied.extend(found)
        return found

    monkeypatch.setattr(merged, "_PARTS_MIN", 1)
    monkeypatch.setattr(derived, "merge_small", noted)
    derive(spark_for_many_rows, other, names)
    assert {"connections", "exchanges", "files", "batches"} <= set(copied)
    for name in names:
        rows = [sorted(map(repr, rows_of(folder, name))) for folder in (one, other)]
        assert rows[0]
        assert rows[0] == rows[1]
    assert not (other / "_tasks").exists()
