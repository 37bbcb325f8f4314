"""Names of topics: the metadata log's, with its id, and which names a topic may have.

Source: Kafka's `Topic`.
"""

from __future__ import annotations

import re

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = bytes(15) + b"\x01"

TOPIC_NAME_RULE = "a topic name: 1 to 249 ASCII letters, digits, . _ -"
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic_name(name: str) -> bool:
    """Return whether a topic may have a name."""
    return name not in (".", "..") and _TOPIC_NAME.fullmatch(name) is not None
