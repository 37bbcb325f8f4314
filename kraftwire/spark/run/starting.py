"""Spark that starts when it is needed; on this machine, the first tasks are done here meanwhile.

Owns the thread that starts a session. Java needs seconds until it takes a first task, and more
until Python workers are there; indexing and decoding captures need neither.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kraftwire.spark.run.failure import as_job_error
from kraftwire.spark.run.runner import Runner, SparkRunner
from kraftwire.spark.run.tasks import Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CORES = re.compile(r"local\[(\d+)")


class StartingSparkRunner:
    """A runner that starts in this process and continues on Spark; leaving its context stops Spark.

    Needs a local `master`, whose workers see the same files as this process.
    """

    def __init__(self, start: Callable[[], SparkSession], master: str) -> None:
        self._thread = ThreadPoolExecutor(1, "spark")
        self._start = start
        self._begun: Future[SparkSession] | None = None
        self._has_workers = threading.Event()
        self._master = master

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._begun is not None and not _is_signal(kind):
            # A failed start was reported where the session was needed.
            with suppress(Exception):
                self._begun.result().stop()

    def begin(self) -> None:
        """Start Spark without waiting for it."""
        if self._begun is None:
            self._begun = self._thread.submit(self._start)

    @property
    def _session(self) -> Future[SparkSession]:
        """The session, which may still be starting."""
        self.begin()
        assert self._begun is not None
        return self._begun

    @property
    def cores(self) -> int:
        """The number of cores of the session, from its master URL."""
        if self._master == "local":
            return 1
        named = _CORES.match(self._master)
        return int(named[1]) if named else os.cpu_count() or 1

    def map(self, task: Callable[[Work], Any], work: Sequence[Work]) -> list[Any]:
        """Return the results of the tasks; they are done here, last first, until Spark takes over.
        """
        left = deque(enumerate(work))
        self.begin()
        # The thread runs this once Spark has started.
        rest = self._thread.submit(self._rest, task, left)
        done = dict(self._here(task, left, rest))
        if len(done) < len(work):
            done.update(rest.result())
        return [done[at] for at in range(len(work))]

    def _here(
        self, task: Callable[[Work], Any], left: deque[tuple[int, Work]], rest: Future[Any]
    ) -> Iterator[tuple[int, Any]]:
        """Yield places and results of tasks done here, last work first, until Spark is ready for
        the rest, or cannot start.
        """
        while not (self._has_workers.is_set() or rest.done()):
            try:
                at, each = left.pop()
            except IndexError:
                return
            with as_job_error("a task"):
                result = task(each)
            yield at, result

    def _rest(
        self, task: Callable[[Work], Any], left: deque[tuple[int, Work]]
    ) -> list[tuple[int, Any]]:
        """Return the results of Spark's tasks for all work not yet begun, with their places."""
        spark = self._spark
        if left and not self._has_workers.is_set():
            # Work goes on here until the workers have loaded what they need.
            spark.start_workers()
            self._has_workers.set()
        mine = list(_taken(left))
        found = spark.map(task, [work for _, work in mine]) if mine else []
        return [(at, each) for (at, _), each in zip(mine, found, strict=True)]

    def derive(
        self, folder: Path, wanted: Container[str] | None, tags: Mapping[str, str]
    ) -> None:
        """Make the derived tables on Spark."""
        self._spark.derive(folder, wanted, tags)

    @property
    def _spark(self) -> SparkRunner:
        """A runner on the session, once it has started. Raises: JobError if it cannot start."""
        with as_job_error("the start of Spark"):
            return SparkRunner(self._session.result())


def _is_signal(kind: type[BaseException] | None) -> bool:
    """Whether a signal ends a context: then the process ends, and Java with it."""
    return kind is not None and not issubclass(kind, Exception)


def _taken(left: deque[tuple[int, Work]]) -> Iterator[tuple[int, Work]]:
    """Yield the remaining items from the front while another thread takes them from the back."""
    with suppress(IndexError):
        while True:
            yield left.popleft()


class DeferredSparkRunner:
    """A runner that starts its session when there are tasks; leaving its context stops it.

    Errors in the arguments are thus reported before Spark takes its seconds, or its executors.
    """

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._session: SparkSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._session is not None and not _is_signal(kind):
            with suppress(*([] if kind is None else [Exception])):
                self._session.stop()

    def begin(self) -> None:
        """Start Spark. Raises: JobError if it cannot start."""
        if self._session is None:
            # Spark replaces the handler of Ctrl-C.
            handler = signal.getsignal(signal.SIGINT)
            with as_job_error("the start of Spark"):
                self._session = self._start()
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, handler)

    @property
    def _spark(self) -> SparkRunner:
        self.begin()
        assert self._session is not None
        return SparkRunner(self._session)

    @property
    def cores(self) -> int:
        """Return the cores of the executors that have joined."""
        return self._spark.cores

    def map(self, task: Callable[[Work], Any], work: Sequence[Work]) -> list[Any]:
        """Return what the tasks return."""
        return self._spark.map(task, work)

    def derive(
        self, folder: Path, wanted: Container[str] | None, tags: Mapping[str, str]
    ) -> None:
        """Run the stages of these tables."""
        self._spark.derive(folder, wanted, tags)


def spark_runner(
    start: Callable[[], SparkSession], master: str
) -> AbstractContextManager[Runner]:
    """A runner on a session of a master that is started when it is needed, and stopped at the end.

    On this machine, the first tasks are done here meanwhile.
    """
    if master.startswith("local"):
        return StartingSparkRunner(start, master)
    return DeferredSparkRunner(start)
