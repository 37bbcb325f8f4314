"""Which process of pytest-xdist takes which test files, so that the processors are always busy.

Tests with real Kafka mostly wait, tests with Spark and most others compute. So each process begins
with files of one kind, and those that wait run next to those that compute. One process alone begins
with Spark: a session takes seconds to start, and the longer it runs the faster it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

# The folder that the first process begins with, the second, and so on, again and again; an empty
# name stands for all other folders.
BEGINS_WITH = ("tests/interop/", "tests/spark/", "tests/interop/", "")

# What a process runs, in this order, once none of its own files are left: no second session of
# Spark starts while there is anything else to do.
LEFT_FOR_LAST = ("", "tests/interop/", "tests/spark/")


def chosen(waiting: Iterable[str], process: int) -> str:
    """The file that a process, counted from 0, takes next of those that wait, in their order."""
    begins = BEGINS_WITH[process % len(BEGINS_WITH)]
    order = [begins, *(kind for kind in LEFT_FOR_LAST if kind != begins)]
    return min(waiting, key=lambda file: order.index(_kind(file)))


def _kind(file: str) -> str:
    return next((kind for kind in BEGINS_WITH if kind and file.startswith(kind)), "")


class Shifts(LoadFileScheduling):  # type: ignore[misc]
    """Assigns whole files, as ``--dist loadfile`` does, in the order of `chosen`."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        super().__init__(config, log)

    def schedule(self) -> None:
        """Assign work once a process has joined.

        A process runs a test when it knows the next one, or that there is none: it gets two files,
        also one that joins in place of another.
        """
        is_begun = self.collection is not None
        super().schedule()
        for node in self.nodes if is_begun else ():
            self._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Give the tests of a process that ended to others, but for the one that ended it.

        pytest-xdist would run that one again, in ever more processes, and give away files that are
        done, with which nobody goes on. Returns the test, None without one.
        """
        ended: str | None = None
        for file, unit in list(self.assigned_work[node].items()):
            for test, is_done in unit.items():
                if not is_done and ended is None:
                    ended, unit[test] = test, True
            if all(unit.values()):
                del self.assigned_work[node][file]
        super().remove_node(node)
        return ended

    def _assign_work_unit(self, node: WorkerController) -> None:
        process = int(node.gateway.id.removeprefix("gw"))
        self.workqueue.move_to_end(chosen(self.workqueue, process), last=False)
        # A process may have ended before that is known here: `remove_node` then gives it to others.
        with suppress(OSError):
            super()._assign_work_unit(node)
