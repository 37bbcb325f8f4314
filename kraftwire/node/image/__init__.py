"""What the committed metadata records say, and a snapshot of all of it.

`MetadataImage` is the way in; see its module for what is looked at, `kept` for what is only kept.
"""

from __future__ import annotations

from kraftwire.node.image.cluster import BrokerImage, ControllerImage
from kraftwire.node.image.metadata import CLUSTER_ID_CONFIG, METADATA_VERSION, MetadataImage
from kraftwire.node.image.state import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    IncompleteImageError,
)

__all__ = [
    "BROKER_RESOURCE",
    "CLUSTER_ID_CONFIG",
    "METADATA_VERSION",
    "TOPIC_RESOURCE",
    "BrokerImage",
    "ControllerImage",
    "IncompleteImageError",
    "MetadataImage",
]
