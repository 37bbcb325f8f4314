"""The entities that the records so far created, as far as a check of the next record needs them.

A metadata transaction changes them at once, and an aborted one is undone (KIP-866).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from kraftwire.controller.record_effects import Family

# Where the single values are: under these names in `singles`.
NEXT_PRODUCER_ID = "next producer id"


class Broker(NamedTuple):
    """A registered broker: its epoch and the ids of its log directories."""

    epoch: int
    log_dirs: tuple[bytes, ...]


class Entities:
    """Brokers by id, topics by id and by name, and so on; each value is never changed in place.

    `partitions` holds the number of replicas by topic id and index, `directories` the broker by the
    id of a log directory, `keys` the keys of entities of which only the existence counts.
    `transaction_offset` is where the open transaction began, else -1.
    """

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.directories: dict[bytes, int] = {}
        self.topic_names: dict[bytes, str] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.partitions: dict[bytes, dict[int, int]] = {}
        self.keys: dict[Family, dict[Hashable, None]] = {
            family: {} for family in (Family.CONTROLLERS, Family.ACLS, Family.SCRAM)
        }
        self.singles: dict[str, int] = {}
        self.transaction_offset = -1
        self._undo: list[tuple[dict[Any, Any], Hashable, Any]] = []

    def put(self, into: dict[Any, Any], key: Hashable, value: Any) -> None:
        """Set a value in one of the tables."""
        if self.transaction_offset >= 0:
            self._undo.append((into, key, into.get(key, _ABSENT)))
        into[key] = value

    def drop(self, from_: dict[Any, Any], key: Hashable) -> bool:
        """Remove a value from one of the tables; returns whether it was there."""
        value = from_.pop(key, _ABSENT)
        if value is _ABSENT:
            return False
        if self.transaction_offset >= 0:
            self._undo.append((from_, key, value))
        return True

    def begin(self, offset: int) -> None:
        """Begin a transaction."""
        self.transaction_offset = offset
        self._undo = []

    def end(self, *, is_aborted: bool) -> None:
        """End the transaction; an aborted one is undone."""
        for table, key, value in reversed(self._undo) if is_aborted else ():
            if value is _ABSENT:
                del table[key]
            else:
                table[key] = value
        self.transaction_offset = -1
        self._undo = []

    def tables(self) -> Iterator[dict[Any, Any]]:
        """Yield the tables, for tests that compare two states."""
        yield from (self.brokers, self.directories, self.topic_names, self.topic_ids)
        yield from (self.partitions, self.singles)
        yield from self.keys.values()


_ABSENT: Any = object()
