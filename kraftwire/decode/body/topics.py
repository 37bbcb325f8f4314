"""Names of topics by their ids, learned from the frames that carry both."""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.decode.body.scan import topics
from kraftwire.wire.message import Message

__all__ = ["METADATA_TOPIC", "METADATA_TOPIC_ID", "TopicNames"]

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
