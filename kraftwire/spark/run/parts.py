"""Parquet parts: tasks write them aside, the commit moves them into their tables.

Also merges very many small parts of a table for the stages, since each stage that reads a table
opens all of its parts, and exports tables as CSV or JSON lines next to the Parquet files.
"""

from __future__ import annotations

import base64
import csv
import json
import os
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from kraftwire.printable import spreadsheet_cell
from kraftwire.spark.paths import own_folder
from kraftwire.spark.run.manifest import Manifest, TablePart
from kraftwire.spark.run.options import TAGS, tag_array, with_tags
from kraftwire.spark.tables import find_table

TASKS = "_tasks"

# Spark names its own files differently, so derived tables are left alone.
_PREFIX = "unit-"
_EMPTY = "empty.parquet"

# Rows are collected until they take this much memory, and then written as a row group.
GROUP_BYTES = 8 * 1024 * 1024

_ASIDE = "merged"

# The fewest parts that are worth merging, and the most bytes: one process copies them in seconds.
_PARTS_MIN = 24
_PART_BYTES_MAX = 256 * 1024
_BYTES_MAX = 256 * 1024 * 1024


class PartWriter:
    """Writes the parts of one unit of work; after closing without an error, `parts` has them all.
    """

    def __init__(
        self, folder: Path, unit: str, attempt: int, tags: Mapping[str, str]
    ) -> None:
        self._folder = folder / TASKS / f"{unit}-{attempt}"
        self._unit = unit
        self._tags = tags
        self._writers: dict[str, Any] = {}
        self._rows: dict[str, int] = {}
        self._waiting: dict[str, list[Any]] = {}
        self.parts: list[TablePart] = []
        shutil.rmtree(self._folder, ignore_errors=True)

    def write(self, table: str, batch: pa.RecordBatch | pa.Table) -> None:
        """Add rows to a table."""
        if not batch.num_rows:
            return
        rows = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        rows = rows.append_column(TAGS, tag_array(self._tags, rows.num_rows))
        waiting = self._waiting.setdefault(table, [])
        waiting.append(rows)
        del batch, rows
        if sum(each.nbytes for each in waiting) >= GROUP_BYTES:
            self._flush(table)

    def _flush(self, table: str) -> None:
        """Write the collected rows of a table."""
        rows = pa.concat_tables(self._waiting.pop(table))
        writer = self._writers.get(table)
        if writer is None:
            target = own_folder(self._folder / table)
            path = target / f"{_PREFIX}{self._unit}.parquet"
            schema = with_tags(find_table(table).arrow)
            writer = pq.ParquetWriter(
                path, schema, compression="zstd", write_statistics=_with_statistics(schema)
            )
            self._writers[table], self._rows[table] = writer, 0
        writer.write_table(rows)
        self._rows[table] += rows.num_rows

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(self, kind: object, _error: object, _trace: object) -> None:
        if kind is None:
            for table in list(self._waiting):
                self._flush(table)
        for table, writer in self._writers.items():
            writer.close()
            path = self._folder / table / f"{_PREFIX}{self._unit}.parquet"
            if kind is None:
                size, name = path.stat().st_size, str(path)
                self.parts.append(TablePart(self._unit, table, name, self._rows[table], size))


def _with_statistics(schema: pa.Schema) -> bool | list[str]:
    """Return the columns with minimum and maximum statistics. Keys and values of records are not
    searched that way, and their statistics take several times their memory.
    """
    if not any(pa.types.is_binary(kind) for kind in schema.types):
        return True
    return [
        field.name
        for field in schema
        if not pa.types.is_binary(field.type) and not pa.types.is_nested(field.type)
    ]


def commit(folder: Path, parts: Iterable[TablePart]) -> list[TablePart]:
    """Move parts into the folders of their tables; return them with their new paths."""
    moved = []
    for part in parts:
        target = own_folder(folder / part.table)
        name = Path(part.path).name
        os.replace(part.path, target / name)
        moved.append(TablePart(part.unit, part.table, name, part.rows, part.bytes))
    return moved


def remove(folder: Path, parts: Iterable[TablePart]) -> None:
    """Remove parts that no longer count."""
    for part in parts:
        (folder / part.table / part.path).unlink(missing_ok=True)


def parts_of(folder: Path, table: str) -> list[Path]:
    """The parts of a table that come from inputs."""
    return sorted((folder / table).glob(f"{_PREFIX}*.parquet"))


def create_missing(folder: Path, tables: Collection[str]) -> None:
    """Create any of these tables that is missing, without rows."""
    for name in tables:
        table = folder / name
        if not any(table.glob("*.parquet")):
            empty = with_tags(find_table(name).arrow).empty_table()
            pq.write_table(empty, own_folder(table) / _EMPTY)


def remove_leftovers(folder: Path, manifest: Manifest) -> None:
    """Remove what a killed run left: files of its tasks, and parts not in the manifest."""
    shutil.rmtree(folder / TASKS, ignore_errors=True)
    known = manifest.parts()
    for path in folder.glob(f"*/{_PREFIX}*.parquet"):
        if (path.parent.name, path.name) not in known:
            path.unlink()


def merge_small(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """Copy the tables among these that are in very many small parts; returns in which folder each
    of them is as a single file, without its tags.
    """
    aside = folder / TASKS / _ASIDE
    shutil.rmtree(aside, ignore_errors=True)
    made = {}
    for name in names:
        parts = parts_of(folder, name)
        if _is_worth_it(parts):
            _merge(parts, aside / name, find_table(name).arrow)
            made[name] = aside
    return made


def _is_worth_it(parts: Sequence[Path]) -> bool:
    size = sum(part.stat().st_size for part in parts)
    return len(parts) >= _PARTS_MIN and size <= min(_BYTES_MAX, len(parts) * _PART_BYTES_MAX)


def _merge(parts: Iterable[Path], target: Path, schema: pa.Schema) -> None:
    """Copy the rows of parts into one file; no more of them are held than a row group has."""
    own_folder(target)
    waiting: list[Any] = []
    size = 0
    with pq.ParquetWriter(target / "all.parquet", schema, compression="zstd") as writer:
        for part in parts:
            with pq.ParquetFile(part) as file:
                waiting.append(file.read(columns=schema.names, use_threads=False))
            size += waiting[-1].nbytes
            if size >= GROUP_BYTES:
                writer.write_table(pa.concat_tables(waiting))
                waiting, size = [], 0
        if waiting:
            writer.write_table(pa.concat_tables(waiting))


def export(folder: Path, form: str) -> None:
    """Write every table of a folder as `<form>/<table>.<form>`; the form is csv or jsonl.

    Bytes are base64, times ISO 8601; in CSV lists and tags are JSON.
    """
    target = own_folder(folder / form)
    for path in sorted(folder.iterdir()):
        if path.is_dir() and any(path.glob("*.parquet")):
            fresh = target / f"{path.name}.{form}.new"
            with open(fresh, "w", encoding="utf-8", newline="") as file:
                _write(ds.dataset(path), file, form)
            os.replace(fresh, target / f"{path.name}.{form}")


def _write(dataset: Any, file: Any, form: str) -> None:
    names = dataset.schema.names
    rows = csv.writer(file)
    if form == "csv":
        rows.writerow(names)
    for batch in dataset.to_batches(batch_size=8192):
        for row in batch.to_pylist(maps_as_pydicts="strict"):
            if form == "csv":
                rows.writerow([_cell(row[name]) for name in names])
            else:
                file.write(json.dumps(row, default=_plain, ensure_ascii=False) + "\n")


def _plain(value: object) -> str:
    """Convert values that JSON cannot hold."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"JSON cannot hold {type(value).__name__}")


def _cell(value: object) -> object:
    """Return a cell of CSV; texts are such that no spreadsheet takes them for formulas."""
    if isinstance(value, list | dict):
        value = json.dumps(value, default=_plain, ensure_ascii=False)
    elif isinstance(value, datetime | bytes):
        return _plain(value)
    return spreadsheet_cell(value) if isinstance(value, str) else value
