"""A run that begins while Spark starts: the same results, wherever a task is done."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.spark.captures.selection import Selection
from kraftwire.spark.run import spark_runner
from kraftwire.spark.run.failure import JobError
from kraftwire.spark.run.starting import DeferredSparkRunner, StartingSparkRunner
from kraftwire.spark.run.tasks import JobSettings, Unit


class _Spark:
    """The part of a session that a runner uses; it records its work."""

    def __init__(self) -> None:
        self.sparkContext = SimpleNamespace(defaultParallelism=2, parallelize=self._parallelize)
        self.done: list[Any] = []
        self.is_asked = Event()
        self.is_stopped = False

    def _parallelize(self, items: Iterable[Any], _slices: int) -> Any:
        def collect(each: Callable[[Any], list[Any]]) -> list[Any]:
            found = [one for item in items for one in each(item)]
            self.done += found
            self.is_asked.set()
            return found

        def flat_map(each: Callable[[Any], list[Any]]) -> Any:
            return SimpleNamespace(collect=lambda: collect(each))

        return SimpleNamespace(count=lambda: len(list(items)), flatMap=flat_map)

    def stop(self) -> None:
        """Spark ends."""
        self.is_stopped = True


def _work(count: int) -> list[tuple[JobSettings, Unit]]:
    job = JobSettings("", Selection(), frozenset())
    return [(job, Unit(f"unit {at}", size=1)) for at in range(count)]


def _name(work: tuple[JobSettings, Unit]) -> str:
    return work[1].name


def _blocked(spark: Any, may_start: Event) -> Callable[[], Any]:
    def start() -> Any:
        assert may_start.wait(60)
        return spark

    return start


def test_what_is_ready_is_done_while_spark_starts() -> None:
    """All of it, if Spark takes long enough; Spark is still stopped."""
    spark, may_start = _Spark(), Event()
    with StartingSparkRunner(_blocked(spark, may_start), "local[2]") as runner:
        assert runner.cores == 2
        assert runner.map(_name, _work(3)) == ["unit 0", "unit 1", "unit 2"]
        assert runner.map(_name, _work(2)) == ["unit 0", "unit 1"]
        assert spark.done == []
        may_start.set()
    assert spark.is_stopped


def test_spark_takes_what_has_not_begun() -> None:
    """As soon as it is ready, even during a task here; everything later is left to Spark."""
    spark, may_start = _Spark(), Event()

    def task(work: tuple[JobSettings, Unit]) -> str:
        if work[1].name == "unit 2":
            may_start.set()
            assert spark.is_asked.wait(60)
        return _name(work)

    with StartingSparkRunner(_blocked(spark, may_start), "local[2]") as runner:
        assert runner.map(task, _work(4)) == ["unit 0", "unit 1", "unit 2", "unit 3"]
        assert spark.done == ["unit 0", "unit 1"]
        assert runner.map(_name, _work(2)) == ["unit 0", "unit 1"]
    assert spark.done == ["unit 0", "unit 1"] * 2


def test_spark_starts_when_there_will_be_work() -> None:
    """A run that is refused ends at once."""
    started = Event()

    def start() -> Any:
        started.set()
        return spark

    spark = _Spark()
    with StartingSparkRunner(start, "local[2]"):
        pass
    assert not started.is_set()
    with StartingSparkRunner(start, "local[2]") as runner:
        runner.begin()
        assert started.wait(60)
        runner.begin()
    assert spark.is_stopped


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[3]", 3), ("local[4, 2]", 4), ("local[*]", 9), ("local[*,2]", 9)],
)
def test_cores_are_those_of_the_master(
    master: str, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work is divided before Spark can report how many it has."""
    monkeypatch.setattr("os.cpu_count", lambda: 9)
    with StartingSparkRunner(lambda: cast(Any, _Spark()), master) as runner:
        assert runner.cores == cores


def _fails(*_: Any) -> Any:
    raise ValueError("there is none")


def test_a_failed_start_is_reported_where_spark_is_needed(tmp_path: Path) -> None:
    """In Spark's words, and not a second time at the end."""
    with StartingSparkRunner(_fails, "local") as runner:  # noqa: SIM117
        with pytest.raises(JobError, match="the start of Spark failed: ValueError: there is none"):
            runner.derive(tmp_path, None, {})
    may_fail = Event()

    def start() -> Any:
        assert may_fail.wait(60)
        raise ValueError("there is none")

    def task(_work: Any) -> None:
        may_fail.set()
        with suppress(ValueError):
            runner._session.result(60)

    with StartingSparkRunner(start, "local") as runner:  # noqa: SIM117
        with pytest.raises(JobError, match="the start of Spark failed: ValueError: there is none"):
            runner.map(task, _work(1000))
    with pytest.raises(JobError, match="the start of Spark failed"):  # noqa: SIM117
        with spark_runner(_fails, "spark://none:1") as late:
            late.begin()


def test_a_task_that_fails_here_is_reported_like_one_of_spark() -> None:
    """A line without a traceback."""
    spark, may_start = _Spark(), Event()
    with StartingSparkRunner(_blocked(spark, may_start), "local") as runner:
        with pytest.raises(JobError, match="a task failed: ValueError"):
            runner.map(_fails, _work(2))
        may_start.set()
    assert spark.is_stopped


def test_ctrl_c_is_still_ours_after_a_late_start() -> None:
    """Spark sets a handler of its own, and a tail is to end its round first."""
    spark = _Spark()

    def start() -> Any:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return spark

    before = signal.getsignal(signal.SIGINT)
    with DeferredSparkRunner(start) as runner:
        assert runner.map(_name, _work(2)) == ["unit 0", "unit 1"]
        assert runner.cores == 2
        assert signal.getsignal(signal.SIGINT) is before
    assert spark.is_stopped


@pytest.mark.parametrize("master", ["local", "spark://host:7077"])
def test_an_interrupted_run_does_not_wait_for_spark(master: str) -> None:
    """Java ends with this process; the connection to it may be of no use."""
    spark = _Spark()
    with suppress(KeyboardInterrupt), spark_runner(lambda: cast(Any, spark), master) as runner:
        runner.begin()
        raise KeyboardInterrupt
    assert not spark.is_stopped


def test_on_a_cluster_nothing_is_done_here() -> None:
    """Its executors may see other files than this machine."""
    spark = _Spark()
    with spark_runner(lambda: cast(Any, spark), "spark://host:7077") as runner:
        assert runner.map(_name, _work(2)) == ["unit 0", "unit 1"]
    assert spark.done == ["unit 0", "unit 1"]
    assert spark.is_stopped
