"""How far a search goes: replicas, epochs, accidents."""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.sim.timeless.plan import Plan

__all__ = ["Bounds"]

# A peer that failed is left alone until the role changes: what comes next is an election.
_TIMERS = {"append_linger_ms": 0, "retry_backoff_ms": 3_000, "retry_backoff_max_ms": 3_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What may happen at most.

    `elections` is the highest epoch; `restarts` are crashes, with a start at once, that lose
    a part of what was not flushed; `values` are appended by clients, one a batch; `changes` are
    removals of a voter; `losses` are requests whose sender gives up; `copies` are requests that
    arrive once more. `asking` replicas ask for pre-votes at a time. A Fetch answer holds
    `fetch_max_bytes`, at least one batch.
    """

    voters: int = 3
    elections: int = 2
    restarts: int = 1
    values: int = 2
    changes: int = 1
    losses: int = 0
    copies: int = 0
    asking: int = 1
    fetch_max_bytes: int = 1

    @property
    def plan(self) -> Plan:
        """The cluster, as `timeless` describes one."""
        return Plan(
            seed=0,
            voters=self.voters,
            is_dynamic=True,
            fetch_max_bytes=self.fetch_max_bytes,
            timers=_TIMERS,
        )

    @property
    def budget(self) -> tuple[int, ...]:
        """What is left at the beginning. Order: restarts, values, changes, losses, copies."""
        return self.restarts, self.values, self.changes, self.losses, self.copies
