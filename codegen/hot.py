"""The messages whose decoders and encoders are generated into their modules.

They make up nearly all traffic of a node, or are read from logs by the million: requests and
responses of KRaft and of the data path, the start of every connection, and the most frequent
records. In their modules the functions can be read, are checked by mypy, and load as byte code. All
other messages get the same functions from `kraftwire.wire.functions` when a version is first used.
"""

from __future__ import annotations

__all__ = ["HOT"]

_KRAFT = (
    "AddRaftVoterRequest", "AddRaftVoterResponse", "BeginQuorumEpochRequest",
    "BeginQuorumEpochResponse", "DescribeQuorumRequest", "DescribeQuorumResponse",
    "EndQuorumEpochRequest", "EndQuorumEpochResponse", "FetchSnapshotRequest",
    "FetchSnapshotResponse", "QuorumStateData", "RemoveRaftVoterRequest",
    "RemoveRaftVoterResponse", "UpdateRaftVoterRequest", "UpdateRaftVoterResponse", "VoteRequest",
    "VoteResponse",
)  # fmt: skip
_DATA_PATH = (
    "FetchRequest", "FetchResponse", "ListOffsetsRequest", "ListOffsetsResponse",
    "MetadataRequest", "MetadataResponse", "ProduceRequest", "ProduceResponse",
)  # fmt: skip
_CONNECTIONS = (
    "ApiVersionsRequest", "ApiVersionsResponse", "BrokerHeartbeatRequest",
    "BrokerHeartbeatResponse", "RequestHeader", "ResponseHeader",
)  # fmt: skip
_CONTROL_RECORDS = (
    "KRaftVersionRecord", "LeaderChangeMessage", "SnapshotFooterRecord", "SnapshotHeaderRecord",
    "VotersRecord",
)  # fmt: skip
_RECORDS = (
    "ConfigRecord", "FeatureLevelRecord", "NoOpRecord", "OffsetCommitKey", "OffsetCommitValue",
    "PartitionChangeRecord", "PartitionRecord", "RegisterBrokerRecord", "TopicRecord",
)  # fmt: skip

HOT = frozenset({*_KRAFT, *_DATA_PATH, *_CONNECTIONS, *_CONTROL_RECORDS, *_RECORDS})
