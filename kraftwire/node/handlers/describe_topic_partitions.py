"""DescribeTopicPartitions: the quorum's topic for tools that page through topics.

Topics are sorted by name; a cursor skips those before it. Unknown topics are
UNKNOWN_TOPIC_OR_PARTITION.

Source: KIP-966; Kafka's `DescribeTopicPartitionsRequestHandler`.
"""

from __future__ import annotations

from kraftwire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from kraftwire.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import (
    body,
    leader_of_topic,
    replicas_of_topic,
    topic_operations,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import is_topic_name
from kraftwire.security.acls import OPERATIONS_UNKNOWN


async def handle(request: Request, context: Context) -> DescribeTopicPartitionsResponse:
    """Describe the named topics, or all of them if none is named."""
    message = body(request, DescribeTopicPartitionsRequest)
    known = context.config.topic.name
    names = {topic.name for topic in message.topics} or {known}
    cursor = message.cursor
    if cursor is not None:
        names = {name for name in names if name >= cursor.topic_name}
    topics = [
        _quorum_topic(request, context) if name == known else _unknown(name)
        for name in sorted(names)
    ]
    if cursor is not None and cursor.topic_name == known and cursor.partition_index > 0:
        for topic in topics:
            topic.partitions = []
    return DescribeTopicPartitionsResponse(topics=topics)


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not is_topic_name(name):
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code=code, name=name, topic_authorized_operations=OPERATIONS_UNKNOWN
    )


def _quorum_topic(request: Request, context: Context) -> DescribeTopicPartitionsResponseTopic:
    topic = context.config.topic
    replicas, offline = replicas_of_topic(context)
    has_leader = leader_of_topic(request, context) is not None
    partition = DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        leader_id=context.raft.leader_id if has_leader else -1,
        leader_epoch=context.raft.epoch,
        replica_nodes=replicas,
        isr_nodes=[replica for replica in replicas if replica not in offline],
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=offline,
    )
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=True,
        partitions=[partition],
        topic_authorized_operations=topic_operations(True),
    )
