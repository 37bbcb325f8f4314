"""Where the tasks of a run are done: in Spark's workers, or in this process."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kraftwire.spark.run.derive import derive
from kraftwire.spark.run.failure import told
from kraftwire.spark.run.small import settled
from kraftwire.spark.run.tasks import ForEach, Work, bundled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["InProcess", "OnSpark", "Runner"]


class Runner(Protocol):
    """Does the work of a run."""

    @property
    def cores(self) -> int:
        """How many tasks are done at the same time, as far as that is known by now."""

    def map(self, task: Callable[[Work], Any], work: Sequence[Work]) -> list[Any]:
        """What a task returns for each piece of work, in their order."""

    def derive(
        self, folder: Path, wanted: Container[str] | None, tags: Mapping[str, str]
    ) -> None:
        """Make the derived tables of a folder that are wanted, None for all, with tags."""


class OnSpark:
    """One task of a Spark job for each piece of work, or for some small ones."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def cores(self) -> int:
        """The cores of all executors; on a cluster they join one after the other."""
        return int(self._spark.sparkContext.defaultParallelism)

    def map(self, task: Callable[[Work], Any], work: Sequence[Work]) -> list[Any]:
        """What the tasks return; only that comes to the driver."""
        bundles = list(bundled(work, self.cores))
        with told("a task of Spark"):
            tasks = self._spark.sparkContext.parallelize(bundles, len(bundles))
            return list(tasks.flatMap(ForEach(task)).collect())

    def derive(
        self, folder: Path, wanted: Container[str] | None, tags: Mapping[str, str]
    ) -> None:
        """Run their stages."""
        with settled(self._spark, folder):
            derive(self._spark, folder, wanted, tags)


class InProcess:
    """One piece of work after the other, without Spark, and thus without derived tables."""

    def __init__(self, cores: int = 1) -> None:
        self.cores = cores

    def map(self, task: Callable[[Work], Any], work: Sequence[Work]) -> list[Any]:
        """Do it here."""
        return [task(each) for each in work]

    def derive(
        self, folder: Path, wanted: Container[str] | None, tags: Mapping[str, str]
    ) -> None:
        """Stages need Spark."""
