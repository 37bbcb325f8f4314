"""AssignReplicasToDirs, version 0: refused, as there are no topics.

NOT_CONTROLLER unless this node is the active controller, STALE_BROKER_EPOCH for a broker that is
not registered with that epoch, else UNKNOWN_TOPIC_ID for every partition.

Source: KIP-858.
"""

from __future__ import annotations

from kraftwire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from kraftwire.messages.assign_replicas_to_dirs_request import TopicData as AssignedTopic
from kraftwire.messages.assign_replicas_to_dirs_response import (
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body, broker_error
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> AssignReplicasToDirsResponse:
    """Refuse each partition."""
    message = body(request, AssignReplicasToDirsRequest)
    error = broker_error(context, message.broker_id, message.broker_epoch)
    if error:
        return AssignReplicasToDirsResponse(error_code=error)
    return AssignReplicasToDirsResponse(
        directories=[
            DirectoryData(id=item.id, topics=[_refused(topic) for topic in item.topics])
            for item in message.directories
        ]
    )


def _refused(topic: AssignedTopic) -> TopicData:
    return TopicData(
        topic_id=topic.topic_id,
        partitions=[
            PartitionData(
                partition_index=partition.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_ID
            )
            for partition in topic.partitions
        ],
    )
