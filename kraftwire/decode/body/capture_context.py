"""What frames reveal about other frames, also those of other connections, as one value.

Owns what is remembered and its bounds. A memory can be sent to another process, merged with that
of another part of the same traffic, and be what a run starts from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from kraftwire.decode.body.topics import TopicNames
from kraftwire.limits import CONTEXTS_MAX

__all__ = ["Memory", "note"]

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class Memory:
    """The knowledge that a run has gained; picklable.

    `topics` are names by topic id, `protocol_types` by group id, `mechanisms` those of SASL
    by connection. `software` is what clients call themselves ("name version") by connection, and
    `versions` what servers offer by their end ("host:port"): API key -> lowest and highest version.
    Each of them but `topics` is bounded; the oldest entries are dropped.
    """

    topics: TopicNames = field(default_factory=TopicNames)
    protocol_types: dict[str, str] = field(default_factory=dict)
    mechanisms: dict[str, str] = field(default_factory=dict)
    software: dict[str, str] = field(default_factory=dict)
    versions: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)

    def merge(self, other: Memory) -> None:
        """Add what another memory knows; entries that are here already stay."""
        self.topics.merge(other.topics)
        _merge(self.protocol_types, other.protocol_types)
        _merge(self.mechanisms, other.mechanisms)
        _merge(self.software, other.software)
        _merge(self.versions, other.versions)

    def copy(self) -> Memory:
        """Return a memory that knows the same and learns independently."""
        made = Memory()
        made.merge(self)
        return made

    def note_client(self, connection: str, body: Any) -> None:
        """Note the client software that an ApiVersions request names."""
        text = f"{body.client_software_name} {body.client_software_version}".strip()
        if text:
            note(self.software, connection, text)

    def note_server(self, connection: str, body: Any) -> None:
        """Note the versions that an ApiVersions response offers."""
        offered = {key.api_key: (key.min_version, key.max_version) for key in body.api_keys}
        if offered:
            note(self.versions, connection.rpartition("-")[2], offered)


def note(table: dict[K, V], key: K, value: V) -> None:
    """Remember a value; drop the oldest when there are too many."""
    if len(table) >= CONTEXTS_MAX and key not in table:
        del table[next(iter(table))]
    table[key] = value


def _merge(table: dict[K, V], other: dict[K, V]) -> None:
    for key, value in other.items():
        if key not in table and len(table) < CONTEXTS_MAX:
            table[key] = value
