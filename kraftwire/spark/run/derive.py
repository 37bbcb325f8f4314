"""The derived tables: stages over the tables in a folder, each written aside and renamed."""

from __future__ import annotations

import shutil
from collections.abc import Container, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from kraftwire.spark.run.failure import told
from kraftwire.spark.run.merged import merge_small
from kraftwire.spark.run.small import count_rows
from kraftwire.spark.run.tags import TAGS, spark_tags
from kraftwire.spark.tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["derive", "read_table"]

_ASIDE = "_tasks/stages"
_REMOVED = "_tasks/removed"


def derive(
    spark: SparkSession,
    folder: Path,
    wanted: Container[str] | None = None,
    tags: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Run the requested stages (all for None) in order.

    Their tables replace those of an earlier run.
    """
    from kraftwire.spark.stages import STAGES

    chosen = {n: stage for n, stage in STAGES.items() if wanted is None or n in wanted}
    inputs = {each for stage in chosen.values() for each in stage.inputs}
    merged = merge_small(folder, sorted(inputs & TABLES.keys()))
    for name, stage in chosen.items():
        aside = folder / _ASIDE / name
        with told(f"the stage {name}"):
            tables = {
                each: read_table(spark, merged.get(each, folder), each) for each in stage.inputs
            }
            made = stage.make(tables).withColumn(TAGS, spark_tags(tags))
            made.write.mode("overwrite").option("compression", "zstd").parquet(str(aside))
        _replace(folder, aside, folder / name)
    shutil.rmtree(folder / "_tasks", ignore_errors=True)


def _replace(folder: Path, aside: Path, target: Path) -> None:
    """Replace the present table; between the two steps there is none."""
    removed = folder / _REMOVED / target.name
    shutil.rmtree(removed, ignore_errors=True)
    if target.exists():
        removed.parent.mkdir(parents=True, exist_ok=True)
        target.rename(removed)
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
