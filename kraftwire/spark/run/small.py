"""Settings for small inputs, of which starting and planning would take most of the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kraftwire.decode.files.folders import walk
from kraftwire.spark.paths import expanded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Below this, the stages finish before the JVM would have compiled anything well.
_BYTES_MAX = 256 * 1024 * 1024
_ROWS_MAX = 300_000

# Compiling a query takes longer than reading a few rows uncompiled; so does adaptive planning
# between its parts.
FEW_ROWS: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    # Each broadcast is a job of its own; joins inside one task need none.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Tables have a file for each unit of work. Spark assumes that opening one takes as long as
    # reading 4 MB, and would make a task of every 32 of them.
    "spark.sql.files.openCostInBytes": "65536",
}


def is_small(inputs: Iterable[str]) -> bool:
    """Whether the inputs are so small that a run takes seconds."""
    size = 0
    for path in walk(expanded(inputs), lambda _error: None):
        size += path.stat().st_size
        if size > _BYTES_MAX:
            return False
    return True


@contextmanager
def configured_for_few_rows(spark: SparkSession, folder: Path) -> Iterator[bool]:
    """Inside the context, configure a session for few rows if the tables of a folder have few, and
    return whether they do.
    """
    tables = (table for table in folder.iterdir() if not table.name.startswith("_"))
    chosen = FEW_ROWS if sum(map(count_rows, tables)) <= _ROWS_MAX else {}
    before = {name: spark.conf.get(name) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    try:
        yield bool(chosen)
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def count_rows(table: Path) -> int:
    """Return the number of rows in a table's folder, from the footers of its Parquet files."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in table.glob("*.parquet"))
