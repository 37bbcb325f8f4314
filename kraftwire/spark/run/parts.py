"""Parquet parts: tasks write them aside, the commit moves them into their tables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kraftwire.spark.run.manifest import Manifest, Part
from kraftwire.spark.run.tags import TAGS, tag_array, with_tags
from kraftwire.spark.tables import find_table

__all__ = [
    "GROUP_BYTES", "TASKS", "PartWriter", "commit", "fill_up", "parts_of", "remove", "sweep",
]  # fmt: skip

TASKS = "_tasks"

# Spark names its own files differently, so derived tables are left alone.
_PREFIX = "unit-"
_EMPTY = "empty.parquet"

# Rows are collected until they take this much memory, and then written as a row group.
GROUP_BYTES = 8 * 1024 * 1024


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
        self.parts: list[Part] = []
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
            target = self._folder / table
            target.mkdir(parents=True, exist_ok=True)
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            for table in list(self._waiting):
                self._flush(table)
        for table, writer in self._writers.items():
            writer.close()
            path = self._folder / table / f"{_PREFIX}{self._unit}.parquet"
            if kind is None:
                size, name = path.stat().st_size, str(path)
                self.parts.append(Part(self._unit, table, name, self._rows[table], size))


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


def commit(folder: Path, parts: Iterable[Part]) -> list[Part]:
    """Move parts into the folders of their tables; return them with their new paths."""
    moved = []
    for part in parts:
        target = folder / part.table
        target.mkdir(parents=True, exist_ok=True)
        name = Path(part.path).name
        os.replace(part.path, target / name)
        moved.append(Part(part.unit, part.table, name, part.rows, part.bytes))
    return moved


def remove(folder: Path, parts: Iterable[Part]) -> None:
    """Remove parts that no longer count."""
    for part in parts:
        (folder / part.table / part.path).unlink(missing_ok=True)


def parts_of(folder: Path, table: str) -> list[Path]:
    """The parts of a table that come from inputs."""
    return sorted((folder / table).glob(f"{_PREFIX}*.parquet"))


def fill_up(folder: Path, tables: Collection[str]) -> None:
    """Create any of these tables that is missing, without rows."""
    for name in tables:
        table = folder / name
        if not any(table.glob("*.parquet")):
            table.mkdir(parents=True, exist_ok=True)
            pq.write_table(with_tags(find_table(name).arrow).empty_table(), table / _EMPTY)


def sweep(folder: Path, manifest: Manifest) -> None:
    """Remove what a killed run left: everything that tasks wrote, and parts that do not count."""
    shutil.rmtree(folder / TASKS, ignore_errors=True)
    known = manifest.parts()
    for path in folder.glob(f"*/{_PREFIX}*.parquet"):
        if (path.parent.name, path.name) not in known:
            path.unlink()
