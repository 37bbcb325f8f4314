"""The values that the story of topics consists of: topics and their partitions.

Owns plain values only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Partition", "Topic"]


@dataclass(slots=True)
class Partition:
    """A partition.

    `start` and `end` are its first offset and the offset after its last record, as far as any frame
    has shown; `leader` and `epoch` are those of the last Metadata answer.
    """

    start: int | None = None
    end: int | None = None
    leader: int = -1
    epoch: int = -1


@dataclass(slots=True)
class Topic:
    """A topic.

    Counts the records of acknowledged Produce requests, and those in answers to consumers; a
    consumer may get records twice, and records before the offset that it wants. `produced_by` and
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
