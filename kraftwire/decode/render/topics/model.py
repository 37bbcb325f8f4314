"""What is known of topics and their partitions.

Owns plain values only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Partition", "Topic"]


@dataclass(slots=True)
class Partition:
    """A partition.

    Shape: `start` and `end` are the offsets where it begins and ends as far as any frame has told,
    `leader` and `epoch` those of the last Metadata answer.
    """

    start: int | None = None
    end: int | None = None
    leader: int = -1
    epoch: int = -1


@dataclass(slots=True)
class Topic:
    """A topic.

    Shape: records of users that were acknowledged, and those in answers to consumers; a consumer
    may get records twice, and records before the offset that it wants. `produced_by` and
    `fetched_by` count the bytes of each client. Units: sizes are bytes of batches.
    """

    name: str
    partitions: dict[int, Partition] = field(default_factory=dict)
    produced_records: int = 0
    produced_size: int = 0
    fetched_records: int = 0
    fetched_size: int = 0
    batches: int = 0
    produced_by: Counter[str] = field(default_factory=Counter)
    fetched_by: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    compression: Counter[str] = field(default_factory=Counter)
