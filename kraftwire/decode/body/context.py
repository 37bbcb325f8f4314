"""What earlier frames reveal about later ones: topics, SASL mechanisms, protocol types, APIs.

A `Memory` keeps what lasts. `ResponseContexts` keep what requests reveal about their responses; of
requests that are never answered they forget the oldest first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kraftwire.decode.body.bodies import Payload
from kraftwire.decode.body.scan import topics
from kraftwire.errors import WireError
from kraftwire.limits import CONTEXTS_MAX
from kraftwire.protocol.headers import peek_request
from kraftwire.wire.message import Message

K = TypeVar("K")
V = TypeVar("V")

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = bytes(15) + b"\x01"

# Messages that carry a topic's name next to its id.
_NAMING = frozenset(
    {
        "CreateTopicsResponse",
        "DeleteTopicsResponse",
        "DescribeTopicPartitionsResponse",
        "MetadataResponse",
    }
)

_JOIN_GROUP = 11
_SYNC_GROUP = 14
_SASL_HANDSHAKE = 17
_API_VERSIONS = 18
_SASL_AUTHENTICATE = 36
_ENVELOPE = 58

# Metadata, CreateTopics, DeleteTopics and DescribeTopicPartitions carry the names of topics.
_TOPICS = frozenset({3, 19, 20, 75})
TELLING = _TOPICS | {
    _JOIN_GROUP, _SYNC_GROUP, _SASL_HANDSHAKE, _API_VERSIONS, _SASL_AUTHENTICATE, _ENVELOPE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FrameContext:
    """What earlier frames reveal about the inside of this one; see `nested.MessageContext`."""

    mechanism: str | None = None
    protocol_type: str | None = None
    embedded_api: tuple[int, int] | None = None


NO_CONTEXT = FrameContext()


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
        if message.NAME in _NAMING:
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


def names_topics(api_key: int) -> bool:
    """Whether responses of an API carry names of topics; its requests explain nothing."""
    return api_key in _TOPICS


def needs_learning(api_key: int | None) -> bool:
    """Whether frames of an API reveal something about others, or depend on others."""
    return api_key in TELLING


class ResponseContexts:
    """Learns from frames, in order of completion; `memory` is what lasts."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._waiting: dict[tuple[str, int], FrameContext] = {}

    def of_request(self, connection: str, payload: Payload) -> FrameContext:
        """Return the context of a request, and note what it reveals about its response."""
        if payload.api_key == _SASL_AUTHENTICATE:
            return FrameContext(mechanism=self.memory.mechanisms.get(connection))
        context = self._context_of(connection, payload.api_key, payload.body)
        if context is not NO_CONTEXT and payload.header is not None:
            if len(self._waiting) >= CONTEXTS_MAX:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[connection, payload.header.correlation_id] = context
        return context

    def of_response(self, connection: str, payload: Payload) -> FrameContext:
        """Return the context of a response."""
        if payload.api_key == _SASL_AUTHENTICATE:
            return FrameContext(mechanism=self.memory.mechanisms.get(connection))
        if payload.body is not None:
            if payload.api_key in _TOPICS:
                self.memory.topics.learn(payload.body, payload.body_version)
            elif payload.api_key == _API_VERSIONS:
                self.memory.note_server(connection, payload.body)
        if not self._waiting or payload.header is None:
            return NO_CONTEXT
        return self._waiting.pop((connection, payload.header.correlation_id), NO_CONTEXT)

    def mechanism(self, connection: str) -> str | None:
        """The SASL mechanism that a connection has agreed on."""
        return self.memory.mechanisms.get(connection)

    def _context_of(self, connection: str, api_key: int | None, body: Any) -> FrameContext:
        if body is None:
            return NO_CONTEXT
        if api_key == _SASL_HANDSHAKE:
            note(self.memory.mechanisms, connection, body.mechanism)
        elif api_key == _API_VERSIONS:
            self.memory.note_client(connection, body)
        elif api_key == _JOIN_GROUP:
            note(self.memory.protocol_types, body.group_id, body.protocol_type)
            return FrameContext(protocol_type=body.protocol_type)
        elif api_key == _SYNC_GROUP:
            return FrameContext(protocol_type=self.memory.protocol_types.get(body.group_id))
        elif api_key == _ENVELOPE:
            try:
                return FrameContext(embedded_api=peek_request(body.request_data))
            except WireError:
                return NO_CONTEXT
        return NO_CONTEXT
