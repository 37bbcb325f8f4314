"""Tasks of the active controller at intervals, and when each is due again (C-PER-1).

Source: Kafka's `PeriodicTaskControlManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kraftwire.controller import elections
from kraftwire.controller.cluster import Cluster
from kraftwire.controller.step import VersionedRecord
from kraftwire.controller.tokens import remove_expired
from kraftwire.messages.no_op_record import NoOpRecord
from kraftwire.node.config import NodeConfig
from kraftwire.security.tokens import DelegationTokens

# Elections at intervals go on after this time where there is more to elect.
_MORE_ELECTIONS_MS = 10

# A task that failed by a bug is tried again after this time.
_AFTER_FAULT_MS = 5 * 60_000


@dataclass(slots=True)
class Task:
    """A task: what it writes, and when it is next due.

    The intervals of a steady task begin when it was due, those of another one when it was done.
    """

    interval_ms: int
    records: Callable[[Cluster], Sequence[VersionedRecord]]
    is_steady: bool = False
    due_ms: int = 0

    def schedule_next(self, now_ms: int, count: int) -> None:
        """Choose the next time, soon if there may be more to do."""
        if self.is_steady:
            self.due_ms = max(self.due_ms + self.interval_ms, now_ms)
        elif count >= elections.PERIODIC_RECORDS_MAX:
            self.due_ms = now_ms + _MORE_ELECTIONS_MS
        else:
            self.due_ms = now_ms + self.interval_ms

    def schedule_after_fault(self, now_ms: int) -> None:
        """Choose the next time after a bug."""
        self.due_ms = now_ms + _AFTER_FAULT_MS


def tasks_of(config: NodeConfig, tokens: DelegationTokens | None, now_ms: int) -> list[Task]:
    """Return the tasks of a controller that has just become active."""
    tasks = [
        Task(config.idle_interval_ms, lambda _: [(NoOpRecord(), 0)], is_steady=True),
        Task(config.rebalance_interval_ms, elections.elect_preferred),
        Task(config.unclean_interval_ms, elections.elect_unclean),
    ]
    if tokens is not None:
        tasks.append(Task(tokens.settings.check_interval_ms, remove_expired))
    for task in tasks:
        task.due_ms = now_ms + task.interval_ms
    return [task for task in tasks if task.interval_ms]
