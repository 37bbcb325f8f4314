"""The request for topics, and the reading of its response."""

from __future__ import annotations

from collections.abc import Iterable

from kraftwire.client.cluster import refusal
from kraftwire.client.results import PartitionInfo, TopicInfo
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.json_form import uuid_to_text


def topics_request(names: Iterable[str] | None) -> MetadataRequest:
    """Build the request for topics by name, or for all; it never creates topics."""
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def topic_infos(response: MetadataResponse, include_internal: bool) -> list[TopicInfo]:
    """Return the topics of an answer, sorted by name. Raises: ApiError if it has an error."""
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, None)
    topics = [topic for topic in response.topics if include_internal or not topic.is_internal]
    for topic in topics:
        if topic.error_code != ErrorCode.NONE:
            raise refusal(topic.error_code, f"topic {topic.name}")
    return sorted(map(_topic, topics), key=lambda topic: topic.name)


def _topic(topic: MetadataResponseTopic) -> TopicInfo:
    partitions = sorted(map(_partition, topic.partitions), key=lambda partition: partition.index)
    return TopicInfo(
        name=topic.name or "",
        topic_id=uuid_to_text(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=tuple(partitions),
    )


def _partition(partition: MetadataResponsePartition) -> PartitionInfo:
    return PartitionInfo(
        index=partition.partition_index,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replica_nodes),
        in_sync=tuple(partition.isr_nodes),
    )
