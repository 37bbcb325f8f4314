"""Longer work of a node, done after some virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from kraftwire.replica.ports import WorkKind
from kraftwire.sim.clock import EventQueue

T = TypeVar("T")


class Job:
    """Work in progress. `mark` is opaque; only its owner knows its meaning."""

    __slots__ = ("done", "is_over", "kind", "mark", "work")

    def __init__(
        self, kind: WorkKind, work: Callable[[], Any], done: Callable[[Any], None], mark: int
    ) -> None:
        self.kind = kind
        self.work = work
        self.done = done
        self.mark = mark
        self.is_over = False


class JobOwner(Protocol):
    """The process that the work is done for."""

    @property
    def is_running(self) -> bool:
        """Whether the process is still running."""

    def duration(self, kind: WorkKind) -> int:
        """Return how long a piece of work takes. Units: microseconds."""

    def begin(self, kind: WorkKind) -> int:
        """Work begins; returns a mark that comes back at its end."""

    def finish(self, job: Job) -> None:
        """Do the work now, and tell the runner."""

    def guard(self, action: Callable[[Job], None], job: Job) -> None:
        """Call something that may end the process."""


class VirtualWorkers:
    """The worker threads of one process; as a context manager, the lock of its log's files.

    Work takes effect at its end. Taking the lock waits for the flush in progress, as in a node;
    here the flush finishes at once.
    """

    def __init__(self, owner: JobOwner, queue: EventQueue) -> None:
        self._owner = owner
        self._queue = queue
        self._jobs: list[Job] = []

    @property
    def lock(self) -> VirtualWorkers:
        """The lock of the log's files."""
        return self

    @property
    def is_flushing(self) -> bool:
        """Whether a flush is in progress."""
        return any(job.kind is WorkKind.FLUSH for job in self._jobs)

    def start(self, kind: WorkKind, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Do some work after a delay."""
        owner = self._owner
        job = Job(kind, work, done, owner.begin(kind))
        self._jobs.append(job)
        self._queue.after(owner.duration(kind), self._due, job)

    def __enter__(self) -> None:
        for job in [job for job in self._jobs if job.kind is WorkKind.FLUSH]:
            self._finish(job)

    def __exit__(self, *_: object) -> None:
        """Release the lock; there is only one thread, so nothing waits for it."""

    def _due(self, job: Job) -> None:
        if not job.is_over and self._owner.is_running:
            self._owner.guard(self._finish, job)

    def _finish(self, job: Job) -> None:
        job.is_over = True
        self._jobs.remove(job)
        self._owner.finish(job)
