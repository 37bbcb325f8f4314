"""The state of the committed metadata records, and its snapshots.

`MetadataImage` is the entry point: `state` holds what the node uses, `record_store` all records.
"""

from __future__ import annotations

from kraftwire.controller.image.cluster import BrokerImage, ControllerImage
from kraftwire.controller.image.metadata import (
    CLUSTER_ID_CONFIG,
    DECOY_SECRET_CONFIG,
    MetadataImage,
)
from kraftwire.controller.image.state import IncompleteImageError
from kraftwire.controller.versions import METADATA_VERSION

__all__ = [
    "CLUSTER_ID_CONFIG",
    "DECOY_SECRET_CONFIG",
    "METADATA_VERSION",
    "BrokerImage",
    "ControllerImage",
    "IncompleteImageError",
    "MetadataImage",
]
