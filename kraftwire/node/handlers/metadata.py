"""Metadata: the registered brokers and the quorum's topic.

Differs from Kafka: the quorum's topic is listed, as an internal topic with one partition whose
leader and leader epoch are those of the quorum, so that ordinary consumers can read it. Topics are
never created. The brokers are the unfenced ones of the committed records.

Source: Kafka's `KRaftMetadataCache.getTopicMetadata`; KIP-516 for topics named by id.
"""

from __future__ import annotations

from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import (
    body,
    broker_as_controller,
    cluster_operations,
    leader_of_topic,
    replicas_of_topic,
    topic_operations,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import is_topic_name
from kraftwire.security.acls import OPERATIONS_UNKNOWN
from kraftwire.wire.fast import ZERO_UUID

# Version 0 has no null: an empty list asks for all topics.
_WITH_NULL_TOPICS = 1
# Clients of lower versions do not know LISTENER_NOT_FOUND.
_WITH_LISTENER_NOT_FOUND = 6
_WITH_NULL_NAMES = 12
_CLUSTER_OPERATIONS = range(8, 11)


async def handle(request: Request, context: Context) -> MetadataResponse:
    """List brokers, cluster id and topics."""
    message = body(request, MetadataRequest)
    brokers = [
        MetadataResponseBroker(
            node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
        )
        for broker in context.image.alive_brokers
        if (endpoint := broker.endpoint(request.listener))
    ]
    response = MetadataResponse(
        brokers=brokers,
        cluster_id=context.raft.cluster_id,
        controller_id=broker_as_controller(request, context),
        topics=_topics(request, context, message),
    )
    if request.version in _CLUSTER_OPERATIONS:
        response.cluster_authorized_operations = cluster_operations(
            message.include_cluster_authorized_operations
        )
    return response


def _topics(
    request: Request, context: Context, message: MetadataRequest
) -> list[MetadataResponseTopic]:
    requested = message.topics
    with_operations = message.include_topic_authorized_operations
    if requested is None or (not requested and request.version < _WITH_NULL_TOPICS):
        return [_quorum_topic(request, context, with_operations)]
    topics = []
    # As in Kafka, if any topic in a request has an id, only ids count.
    if any(topic.topic_id != ZERO_UUID for topic in requested):
        requested = [topic for topic in requested if topic.topic_id != ZERO_UUID]
    for topic in requested:
        if _is_quorum_topic(context, topic):
            topics.append(_quorum_topic(request, context, with_operations))
        else:
            topics.append(_unknown(request, topic))
    return topics


def _is_quorum_topic(context: Context, topic: MetadataRequestTopic) -> bool:
    known = context.config.topic
    if topic.topic_id != ZERO_UUID:
        return topic.topic_id == known.topic_id
    return topic.name == known.name


def _unknown(request: Request, topic: MetadataRequestTopic) -> MetadataResponseTopic:
    name: str | None
    if topic.topic_id != ZERO_UUID:
        code = ErrorCode.UNKNOWN_TOPIC_ID
        name = None if request.version >= _WITH_NULL_NAMES else ""
    else:
        name = topic.name or ""
        is_name = is_topic_name(name)
        code = (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_name else ErrorCode.INVALID_TOPIC_EXCEPTION
        )
    return MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic.topic_id,
        topic_authorized_operations=OPERATIONS_UNKNOWN,
    )


def _quorum_topic(
    request: Request, context: Context, with_operations: bool
) -> MetadataResponseTopic:
    topic = context.config.topic
    replicas, offline = replicas_of_topic(context)
    partition = MetadataResponsePartition(
        error_code=_partition_error(request, context),
        leader_id=-1,
        leader_epoch=context.raft.epoch,
        replica_nodes=replicas,
        isr_nodes=[replica for replica in replicas if replica not in offline],
        offline_replicas=offline,
    )
    if not partition.error_code:
        partition.leader_id = context.raft.leader_id
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=True,
        partitions=[partition],
        topic_authorized_operations=topic_operations(with_operations),
    )


def _partition_error(request: Request, context: Context) -> int:
    if leader_of_topic(request, context) is not None:
        return ErrorCode.NONE
    broker = context.image.brokers.get(context.raft.leader_id)
    is_reachable_elsewhere = broker is not None and not broker.is_fenced
    if is_reachable_elsewhere and request.version >= _WITH_LISTENER_NOT_FOUND:
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.LEADER_NOT_AVAILABLE
