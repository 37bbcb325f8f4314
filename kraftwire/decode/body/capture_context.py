"""Names of topics by their ids, learned from the frames that carry both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kraftwire.decode.body.scan import topics
from kraftwire.limits import CONTEXTS_MAX
from kraftwire.wire.message import Message

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = bytes(15) + b"\x01"

# Messages that carry a topic's name next to its id.
_TELLING = frozenset(
    {
        "CreateTopicsResponse",
        "DeleteTopicsResponse",
        "DescribeTopicPartitionsResponse",
        "MetadataResponse",
    }
)


class TopicNames:
    """The names of topics by id, as known so far in a run; grows by one entry for each topic."""

    def __init__(self) -> None:
        self._names = {METADATA_TOPIC_ID: METADATA_TOPIC}
        # The number of changes so far: a text with names in it is valid until it changes.
        self.changes = 0
        # Called before a message changes the names, so that texts with the old ones can be made.
        self.before_change: Callable[[], None] | None = None

    def learn(self, message: Message, version: int) -> None:
        """Note the topics of a message that carries both names and ids."""
        if message.NAME in _TELLING:
            for topic in topics(message, version):
                if topic.name and topic.id and self._names.get(topic.id) != topic.name:
                    if self.before_change is not None:
                        self.before_change()
                    self.changes += 1
                    self._names[topic.id] = topic.name

    def note(self, name: str, topic_id: bytes) -> None:
        """Note a topic that was learned from something other than a frame."""
        self.changes += topic_id not in self._names
        self._names.setdefault(topic_id, name)

    def merge(self, other: TopicNames) -> None:
        """Add the names that another object knows; those that are known here stay."""
        self._names = other._names | self._names
        self.changes += 1

    def by_id(self) -> dict[bytes, str]:
        """All names by the ids of their topics, those of the metadata log among them."""
        return dict(self._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicNames) and self._names == other._names

    __hash__ = None  # type: ignore[assignment]

    def name(self, name: str | None, topic_id: bytes | None) -> str | None:
        """Return the name itself, or the one that belongs to the id; None if it is unknown."""
        if name or topic_id is None:
            return name
        return self._names.get(topic_id)


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
