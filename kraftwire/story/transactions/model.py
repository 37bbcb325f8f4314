"""The values that the story of transactions consists of.

Owns plain values only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Ending", "Transaction", "TransactionalId"]

Ending = Literal["committed", "aborted", "aborted by the coordinator", "open"]


@dataclass(slots=True)
class Transaction:
    """A transaction.

    It begins with the first request that belongs to it, and ends with the answer to EndTxn, or with
    the markers of a coordinator that aborts it by itself. The number of `partitions` that are kept
    is limited. Units: times in seconds since the epoch, `size` bytes of batches.
    """

    id: str
    producer_id: int
    epoch: int
    start: float
    client: str = ""
    end: float | None = None
    ending: Ending = "open"
    partitions: set[tuple[str, int]] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    records: int = 0
    size: int = 0
    wants_commit: bool | None = None

    def seconds(self, now: float) -> float:
        """Return how long it took, or how long it has been open, in seconds."""
        return max(0.0, (now if self.end is None else self.end) - self.start)


@dataclass(slots=True)
class TransactionalId:
    """A transactional id and its transactions."""

    id: str
    producer_id: int = -1
    epoch: int = -1
    clients: set[str] = field(default_factory=set)
    current: Transaction | None = None
    ended: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    longest: float = 0.0
    total: float = 0.0
    records: int = 0
    size: int = 0
    commits: list[Transaction] = field(default_factory=list)
    commit_count: int = 0
    commit_end: float = 0.0
