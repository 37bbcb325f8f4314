"""Names of topics by id, as answers tell them: rules name topics, requests often only ids."""

from __future__ import annotations

from typing import Any

# Later topics are not known by id: as many as a large cluster has.
_TOPICS_MAX = 200_000


class TopicNames:
    """The names that answers have told."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}

    def name(self, topic_id: bytes) -> str | None:
        """Return the name of a topic, None for an unknown one."""
        return self._names.get(topic_id)

    def learn(self, message: Any) -> None:
        """Note the topics of an answer to Metadata."""
        for topic in message.topics:
            if topic.name and any(topic.topic_id) and len(self._names) < _TOPICS_MAX:
                self._names[topic.topic_id] = topic.name
