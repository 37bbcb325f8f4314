"""Tables of very many small parts, each made one file for the stages.

A capture of a few kilobytes leaves a part in every table. Each stage that reads a table opens all
of its parts, which takes the JVM some milliseconds a part, and this process one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kraftwire.spark.run.parts import GROUP_BYTES, TASKS, parts_of
from kraftwire.spark.tables import find_table

__all__ = ["merge_small"]

_ASIDE = "merged"

# The fewest parts that are worth merging, and the most bytes: one process copies them in seconds.
_PARTS_MIN = 24
_PART_BYTES_MAX = 256 * 1024
_BYTES_MAX = 256 * 1024 * 1024


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
    target.mkdir(parents=True)
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
