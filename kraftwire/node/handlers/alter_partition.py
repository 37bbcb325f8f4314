"""AlterPartition, versions 2 and 3: refused, as there are no topics.

NOT_CONTROLLER unless this node is the active controller, STALE_BROKER_EPOCH for a broker that is
not registered with that epoch, else UNKNOWN_TOPIC_ID for every partition.

Source: KIP-497; Kafka's `ReplicationControlManager.alterPartition`.
"""

from __future__ import annotations

from kraftwire.messages.alter_partition_request import AlterPartitionRequest
from kraftwire.messages.alter_partition_response import (
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body, broker_error
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> AlterPartitionResponse:
    """Refuse each partition."""
    message = body(request, AlterPartitionRequest)
    error = broker_error(context, message.broker_id, message.broker_epoch)
    if error:
        return AlterPartitionResponse(error_code=error)
    return AlterPartitionResponse(
        topics=[
            TopicData(
                topic_id=topic.topic_id,
                partitions=[
                    PartitionData(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in message.topics
        ]
    )
