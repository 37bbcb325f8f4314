"""What earlier frames reveal about later ones: topics, SASL mechanisms, protocol types, APIs.

A `Memory` keeps what lasts. `ResponseContexts` keep what requests reveal about their responses; of
requests that are never answered they forget the oldest first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from sys import getsizeof, intern
from typing import Any, TypeVar

from kraftwire.capture.framing.headers import shortened
from kraftwire.decode.body.bodies import Payload
from kraftwire.decode.body.ordinary import NAMING_APIS
from kraftwire.decode.body.sasl_tokens import principal_of
from kraftwire.decode.body.scan import topics
from kraftwire.errors import WireError
from kraftwire.limits import CONTEXTS_MAX, RENDER_PENDING_COUNT_MAX
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.payloads import peek_request
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.wire.message import Message

# The memory of all names of topics that a run keeps. A broker has at most some ten thousand topics,
# each with about 250 bytes here.
TOPIC_NAMES_BYTES_MAX = 20 * 1024 * 1024
# The place of a name in a dict that grows.
_ENTRY_BYTES = 100

K = TypeVar("K")
V = TypeVar("V")


# Messages that carry a topic's name next to its id.
_NAMING = frozenset(
    {
        "CreateTopicsResponse",
        "DeleteTopicsResponse",
        "DescribeTopicPartitionsResponse",
        "MetadataResponse",
    }
)

@dataclass(frozen=True, slots=True)
class FrameContext:
    """What earlier frames reveal about the inside of this one; see `nested.MessageContext`."""

    mechanism: str | None = None
    principal: str | None = None
    protocol_type: str | None = None
    embedded_api: tuple[int, int] | None = None


NO_CONTEXT = FrameContext()


class TopicNames:
    """The names of topics by id, as known so far in a run, within `TOPIC_NAMES_BYTES_MAX`."""

    def __init__(self) -> None:
        self._names = {METADATA_TOPIC_ID: METADATA_TOPIC}
        self._bytes = 0
        # The number of changes so far: a text with names in it is valid until it changes.
        self.changes = 0

    def learn(self, message: Message, version: int) -> None:
        """Note the topics of a message that carries both names and ids."""
        if message.NAME in _NAMING:
            for topic in topics(message, version):
                if not topic.name or not topic.id or self._names.get(topic.id) == topic.name:
                    continue
                if self._has_room(topic.id, topic.name):
                    self.changes += 1
                    self._names[topic.id] = topic.name

    def _has_room(self, topic_id: bytes, name: str) -> bool:
        """Whether one more name may be kept, which is counted then."""
        size = getsizeof(topic_id) + getsizeof(name) + _ENTRY_BYTES
        if self._bytes + size > TOPIC_NAMES_BYTES_MAX:
            return False
        self._bytes += size
        return True

    def note(self, name: str, topic_id: bytes) -> None:
        """Note a topic that was learned from something other than a frame."""
        if topic_id not in self._names and self._has_room(topic_id, name):
            self.changes += 1
            self._names[topic_id] = name

    def merge(self, other: TopicNames) -> None:
        """Add the names that another object knows; those that are known here stay."""
        for topic_id, name in other._names.items():
            self.note(name, topic_id)
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
    by connection, `principals` who logs in by them, unless refused. Each of them is bounded: the
    oldest entries are dropped, but of topics the latest are not noted.
    """

    topics: TopicNames = field(default_factory=TopicNames)
    protocol_types: dict[str, str] = field(default_factory=dict)
    mechanisms: dict[str, str] = field(default_factory=dict)
    principals: dict[str, str] = field(default_factory=dict)

    def merge(self, other: Memory) -> None:
        """Add what another memory knows; entries that are here already stay."""
        self.topics.merge(other.topics)
        _merge(self.protocol_types, other.protocol_types)
        _merge(self.mechanisms, other.mechanisms)
        _merge(self.principals, other.principals)

    def copy(self) -> Memory:
        """Return a memory that knows the same and learns independently."""
        made = Memory()
        made.merge(self)
        return made


def note(table: dict[K, V], key: K, value: V) -> None:
    """Remember a value; drop the oldest when there are too many."""
    if len(table) >= CONTEXTS_MAX and key not in table:
        del table[next(iter(table))]
    table[key] = value


def _merge(table: dict[K, V], other: dict[K, V]) -> None:
    for key, value in other.items():
        if key not in table and len(table) < CONTEXTS_MAX:
            table[key] = value


class ResponseContexts:
    """Learns from frames, in order of completion; `memory` is what lasts."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._waiting: dict[tuple[str, int], FrameContext] = {}

    def of_request(self, connection: str, payload: Payload) -> FrameContext:
        """Return the context of a request, and note what it reveals about its response."""
        if payload.api_key == ApiKey.SASL_AUTHENTICATE:
            body: Any = payload.body
            return self.of_token(connection, b"" if body is None else body.auth_bytes)
        context = self._context_of(connection, payload.api_key, payload.body)
        if context is not NO_CONTEXT and payload.header is not None:
            if len(self._waiting) >= RENDER_PENDING_COUNT_MAX:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[connection, payload.header.correlation_id] = context
        return context

    def of_response(self, connection: str, payload: Payload) -> FrameContext:
        """Return the context of a response."""
        body: Any = payload.body
        if payload.api_key == ApiKey.SASL_AUTHENTICATE:
            if body is not None and body.error_code:
                self.memory.principals.pop(connection, None)
            return self.of_token(connection, b"")
        if body is not None:
            if payload.api_key in NAMING_APIS:
                self.memory.topics.learn(body, payload.body_version)
            elif payload.api_key == ApiKey.SASL_HANDSHAKE and body.error_code:
                self.memory.mechanisms.pop(connection, None)
        if not self._waiting or payload.header is None:
            return NO_CONTEXT
        return self._waiting.pop((connection, payload.header.correlation_id), NO_CONTEXT)

    def of_token(self, connection: str, token: bytes) -> FrameContext:
        """Return the context of a SASL token, and note whom it logs in; only a client's tells."""
        mechanism = self.memory.mechanisms.get(connection)
        if mechanism is None:
            return NO_CONTEXT
        principal = principal_of(mechanism, token)
        if principal is not None:
            note(self.memory.principals, connection, shortened(principal))
        return FrameContext(mechanism, self.memory.principals.get(connection))

    def mechanism(self, connection: str) -> str | None:
        """The SASL mechanism that a connection has agreed on."""
        return self.memory.mechanisms.get(connection)

    def _context_of(self, connection: str, api_key: int | None, body: Any) -> FrameContext:
        if body is None:
            return NO_CONTEXT
        if api_key == ApiKey.SASL_HANDSHAKE:
            note(self.memory.mechanisms, connection, shortened(body.mechanism))
        elif api_key == ApiKey.JOIN_GROUP:
            # There are a handful, and as many groups as somebody likes.
            protocol_type = intern(shortened(body.protocol_type))
            note(self.memory.protocol_types, shortened(body.group_id), protocol_type)
            return FrameContext(protocol_type=protocol_type)
        elif api_key == ApiKey.SYNC_GROUP:
            group = shortened(body.group_id)
            return FrameContext(protocol_type=self.memory.protocol_types.get(group))
        elif api_key == ApiKey.ENVELOPE:
            try:
                return FrameContext(embedded_api=peek_request(body.request_data))
            except WireError:
                return NO_CONTEXT
        return NO_CONTEXT
