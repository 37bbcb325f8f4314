"""The derived tables: stages over the tables in a folder, each written aside and then renamed.

Also chooses the most important findings for the end of a run.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Container, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraftwire.decode.files import FileKind
from kraftwire.spark.logs.place import SNAPSHOT
from kraftwire.spark.logs.plan import UNREAD_PACKINGS
from kraftwire.spark.paths import OWN_FOLDER, own_folder
from kraftwire.spark.run.failure import as_job_error
from kraftwire.spark.run.options import TAGS, spark_tags
from kraftwire.spark.run.parts import merge_small
from kraftwire.spark.run.small import count_rows
from kraftwire.spark.tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Kinds of files that are read, or known to hold nothing to read.
UNDERSTOOD = frozenset(
    {"capture", SNAPSHOT, *(str(kind) for kind in FileKind if not kind.is_unknown)}
)

_ASIDE = "_tasks/stages"
_REMOVED = "_tasks/removed"

_LINES_MAX = 10
_OF_A_KIND_MAX = 3
_SEVERITIES = ("error", "warning", "info")


def derive(
    spark: SparkSession,
    folder: Path,
    wanted: Container[str] | None = None,
    tags: Mapping[str, str] = MappingProxyType({}),
    *,
    in_one_task: bool = False,
) -> None:
    """Run the requested stages (all for None) in order.

    Their tables replace those of an earlier run. With `in_one_task`, each input is read by one
    task, which saves exchanging rows between tasks.
    """
    from kraftwire.spark.stages import STAGES

    chosen = {n: stage for n, stage in STAGES.items() if wanted is None or n in wanted}
    inputs = {each for stage in chosen.values() for each in stage.inputs}
    merged = merge_small(folder, sorted(inputs & TABLES.keys()))
    for name, stage in chosen.items():
        aside = folder / _ASIDE / name
        with as_job_error(f"the stage {name}"):
            tables = {
                each: read_table(spark, merged.get(each, folder), each) for each in stage.inputs
            }
            if in_one_task:
                tables = {each: rows.coalesce(1) for each, rows in tables.items()}
            made = stage.make(tables).withColumn(TAGS, spark_tags(tags))
            made.write.mode("overwrite").option("compression", "zstd").parquet(str(aside))
        _replace(folder, aside, folder / name)
    shutil.rmtree(folder / "_tasks", ignore_errors=True)


def _replace(folder: Path, aside: Path, target: Path) -> None:
    """Replace the present table; between the two steps there is none."""
    removed = folder / _REMOVED / target.name
    shutil.rmtree(removed, ignore_errors=True)
    if target.exists():
        own_folder(removed.parent)
        target.rename(removed)
    aside.chmod(OWN_FOLDER)
    aside.rename(target)
    shutil.rmtree(removed, ignore_errors=True)


def read_table(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    """Return a table of a folder without its tags, and without rows if it does not exist."""
    path = folder / name
    known = TABLES.get(name)
    if not path.is_dir() or not any(path.glob("*.parquet")):
        if known is None:
            raise FileNotFoundError(f"{folder} has no table {name}")
        return spark.createDataFrame([], known.spark)
    # Characters of patterns in the name of the folder stand for themselves.
    reader = spark.read.option("__globPaths__", "false")
    if known is None:
        return reader.parquet(str(path)).drop(TAGS)
    made = reader.schema(known.spark).parquet(str(path))
    # Spark plans nothing for input that it knows to be empty.
    return made if count_rows(path) else made.limit(0)


def highlights(folder: Path) -> list[str]:
    """Return the most important findings in the tables as a few lines, worst first."""
    lines = [
        *_anomalies(folder), *_bad_input(folder), *_packed(folder), *_undecoded(folder),
        *_errors(folder),
    ]  # fmt: skip
    return lines[:_LINES_MAX]


def _rows(folder: Path, table: str, columns: list[str]) -> list[dict[str, Any]]:
    """Return some columns of a table, without rows if it does not exist."""
    path = folder / table
    if not any(path.glob("*.parquet")):
        return []
    rows: list[dict[str, Any]] = ds.dataset(path).to_table(columns=columns).to_pylist()
    return rows


def _anomalies(folder: Path) -> list[str]:
    rows = _rows(folder, "anomalies", ["rule", "severity", "node", "detail", "time"])
    order = {name: at for at, name in enumerate(_SEVERITIES)}
    rows.sort(key=lambda row: (order.get(row["severity"], 9), str(row["time"])))
    counts = Counter((row["severity"], row["rule"]) for row in rows)
    lines = []
    for row in rows:
        count = counts.pop((row["severity"], row["rule"]), 0)
        if count:
            more = f" ({count:,} times)" if count > 1 else ""
            lines.append(f"{row['severity']}: {row['rule']}{more}: {row['detail']}")
    return lines


def _bad_input(folder: Path) -> list[str]:
    counts = _counts(folder, "bad_input", "id")
    return [
        f"bad input: {id}, {count:,} row{'' if count == 1 else 's'}"
        for id, count in counts[:_OF_A_KIND_MAX]
    ]


def _undecoded(folder: Path) -> list[str]:
    """Count inputs that were read without an error and not decoded."""
    rows = _rows(folder, "connections", ["protocol", "gap_bytes"])
    gaps = sum(row["protocol"] == "kafka" and bool(row["gap_bytes"]) for row in rows)
    encrypted = sum(row["protocol"] == "tls" for row in rows)
    unknown = sum(
        count
        for kind, count in _counts(folder, "files", "kind")
        if kind not in UNDERSTOOD and kind not in UNREAD_PACKINGS
    )
    found = [
        ("connections with bytes that were never captured", gaps),
        ("connections that are encrypted", encrypted),
        ("files of no kind that is known", unknown),
    ]
    return [f"{what}: {count:,}" for what, count in found if count]


def _packed(folder: Path) -> list[str]:
    """Name compressions of which captures and logs are not read."""
    found = [each for each in _counts(folder, "files", "kind") if each[0] in UNREAD_PACKINGS]
    return [
        f"compressed with {kind}, which is not read: {count:,} file{'' if count == 1 else 's'}"
        for kind, count in found
    ]


def _errors(folder: Path) -> list[str]:
    counts = _counts(folder, "exchanges", "errors")
    return [f"responses with {name}: {count:,}" for name, count in counts[:_OF_A_KIND_MAX]]


def _counts(folder: Path, table: str, column: str) -> list[tuple[str, int]]:
    """Count the values of a column of strings, or of lists of them; most frequent first."""
    path = folder / table
    counts: Counter[str] = Counter()
    if any(path.glob("*.parquet")):
        for batch in ds.dataset(path).to_batches(columns=[column]):
            values = batch.column(0)
            if values.type.num_fields:
                values = pc.list_flatten(values)
            for each in pc.value_counts(values).to_pylist():
                counts[each["values"]] += each["counts"]
    return counts.most_common()
