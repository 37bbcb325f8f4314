"""Where the tasks of a run are executed: by Spark's workers, or in this process."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kraftwire.spark.run.derive import derive
from kraftwire.spark.run.failure import as_job_error
from kraftwire.spark.run.small import configured_for_few_rows
from kraftwire.spark.run.tasks import ForEach, Work, bundled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Runner(Protocol):
    """Executes the tasks of a run."""

    @property
    def cores(self) -> int:
        """Return how many tasks run at the same time, as far as that is known yet."""

    def begin(self) -> None:
        """Announce that tasks will follow, so that the runner can prepare."""

    def map(self, task: Callable[[Work], Any], work: Sequence[Work]) -> list[Any]:
        """Return the result of a task for each piece of work, in order."""

    def derive(
        self, folder: Path, wanted: Container[str] | None, tags: Mapping[str, str]
    ) -> None:
        """Make the requested derived tables of a folder, None for all, with tags."""


class SparkRunner:
    """Runs each piece of work, or some small ones together, as a task of a Spark job."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def cores(self) -> int:
        """Return the cores of all executors; on a cluster they join one after the other."""
        return int(self._spark.sparkContext.defaultParallelism)

    def begin(self) -> None:
        """Do nothing: the session is there."""

    def start_workers(self) -> None:
        """Start a Python worker for each core, and wait for them."""
        with as_job_error("the start of Python workers"):
            self._spark.sparkContext.parallelize(range(self.cores), self.cores).count()

    def map(self, task: Callable[[Work], Any], work: Sequence[Work]) -> list[Any]:
        """Return the results of the tasks; only these come to the driver."""
        bundles = list(bundled(work, self.cores))
        with as_job_error("a task of Spark"):
            tasks = self._spark.sparkContext.parallelize(bundles, len(bundles))
            return list(tasks.flatMap(ForEach(task)).collect())

    def derive(
        self, folder: Path, wanted: Container[str] | None, tags: Mapping[str, str]
    ) -> None:
        """Run the stages of these tables."""
        with configured_for_few_rows(self._spark, folder) as has_few:
            derive(self._spark, folder, wanted, tags, in_one_task=has_few)


class LocalRunner:
    """Does one piece of work after the other, without Spark, and thus without derived tables."""

    def __init__(self, cores: int = 1) -> None:
        self.cores = cores

    def begin(self) -> None:
        """Do nothing."""

    def map(self, task: Callable[[Work], Any], work: Sequence[Work]) -> list[Any]:
        """Run the task here."""
        return [task(each) for each in work]

    def derive(
        self, folder: Path, wanted: Container[str] | None, tags: Mapping[str, str]
    ) -> None:
        """Do nothing: stages need Spark."""
