"""AlterPartitionReassignments, versions 0 and 1: refused for every partition. Source: KIP-455."""

from __future__ import annotations

from kraftwire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from kraftwire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body, refusal, topic_refusal
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> AlterPartitionReassignmentsResponse:
    """Refuse each partition."""
    message = body(request, AlterPartitionReassignmentsRequest)
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=message.allow_replication_factor_change
    )
    code, text = refusal(request, context)
    if code == ErrorCode.NOT_CONTROLLER:
        response.error_code, response.error_message = code, text
        return response
    for topic in message.topics:
        code, text = topic_refusal(request, context, topic.name)
        partitions = [
            ReassignablePartitionResponse(
                partition_index=partition.partition_index, error_code=code, error_message=text
            )
            for partition in topic.partitions
        ]
        response.responses.append(
            ReassignableTopicResponse(name=topic.name, partitions=partitions)
        )
    return response
