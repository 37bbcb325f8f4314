"""The state of the committed metadata records, and its snapshots.

`MetadataImage` is the entry point: `state` holds what the node uses, `record_store` all records.
"""

from __future__ import annotations

from kraftwire.node.image.cluster import BrokerImage, ControllerImage
from kraftwire.node.image.metadata import CLUSTER_ID_CONFIG, MetadataImage
from kraftwire.node.image.state import (
    BROKER_RESOURCE,
    METADATA_VERSION,
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
