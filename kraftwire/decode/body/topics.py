"""Names of topics by their ids, learned from the frames that tell both."""

from __future__ import annotations

from kraftwire.decode.body.scan import topics
from kraftwire.wire.message import Message

__all__ = ["METADATA_TOPIC", "METADATA_TOPIC_ID", "TopicNames"]

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = bytes(15) + b"\x01"

# Messages that carry a topic's name beside its id.
_TELLING = frozenset(
    {
        "CreateTopicsResponse",
        "DeleteTopicsResponse",
        "DescribeTopicPartitionsResponse",
        "MetadataResponse",
    }
)


class TopicNames:
    """What is known of topic ids so far in a run; grows by one entry for each topic."""

    def __init__(self) -> None:
        self._names = {METADATA_TOPIC_ID: METADATA_TOPIC}

    def learn(self, message: Message, version: int) -> None:
        """Note the topics of a message that carries both names and ids."""
        if message.NAME in _TELLING:
            for topic in topics(message, version):
                if topic.name and topic.id:
                    self._names[topic.id] = topic.name

    def note(self, name: str, topic_id: bytes) -> None:
        """Note a topic that something other than a frame has told."""
        self._names.setdefault(topic_id, name)

    def merge(self, other: TopicNames) -> None:
        """Learn the names that another one knows; those that are known here stay."""
        self._names = other._names | self._names

    def by_id(self) -> dict[bytes, str]:
        """All names by the ids of their topics, those of the metadata log among them."""
        return dict(self._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicNames) and self._names == other._names

    __hash__ = None  # type: ignore[assignment]

    def name(self, name: str | None, topic_id: bytes | None) -> str | None:
        """The name itself, or the one that belongs to the id; None if nobody has told it."""
        if name or topic_id is None:
            return name
        return self._names.get(topic_id)
