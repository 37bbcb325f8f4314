"""Admin clients: describe a cluster and its quorum, and change its voters and features.

`Admin` is for plain Python, `AsyncAdmin` for programs that run trio.
"""

from __future__ import annotations

from kraftwire.client.admin import AsyncAdmin
from kraftwire.client.results import (
    ClusterInfo,
    FeatureInfo,
    LogInfo,
    NodeInfo,
    PartitionInfo,
    QuorumInfo,
    ReplicaInfo,
    TopicInfo,
    VersionRange,
)
from kraftwire.client.sync import Admin
from kraftwire.protocol.endpoint import Endpoint

__all__ = [
    "Admin",
    "AsyncAdmin",
    "ClusterInfo",
    "Endpoint",
    "FeatureInfo",
    "LogInfo",
    "NodeInfo",
    "PartitionInfo",
    "QuorumInfo",
    "ReplicaInfo",
    "TopicInfo",
    "VersionRange",
]
