"""The bounds of a search: replicas, epochs, accidents."""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.sim.untimed.plan import UntimedPlan

# A peer that failed is not retried until the role changes, that is, until an election.
_TIMERS = {"append_linger_ms": 0, "retry_backoff_ms": 3_000, "retry_backoff_max_ms": 3_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The maximum number of each kind of accident.

    `elections` is the highest epoch; `restarts` are crashes followed by an immediate start, which
    lose some of what was not flushed; `values` are appended by clients, one per batch; `changes`
    are removals of a voter; `losses` are requests whose sender gives up; `copies` are requests that
    arrive twice. At most `asking` replicas ask for pre-votes at a time. A Fetch answer holds up to
    `fetch_max_bytes`, but at least one batch.
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
    def plan(self) -> UntimedPlan:
        """The cluster, as a plan of `untimed`."""
        return UntimedPlan(
            seed=0,
            voters=self.voters,
            is_dynamic=True,
            fetch_max_bytes=self.fetch_max_bytes,
            timers=_TIMERS,
        )

    @property
    def budget(self) -> tuple[int, ...]:
        """The numbers that are left at the beginning.

        Order: restarts, values, changes, losses, copies.
        """
        return self.restarts, self.values, self.changes, self.losses, self.copies
