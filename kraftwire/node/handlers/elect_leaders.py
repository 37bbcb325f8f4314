"""ElectLeaders, versions 0 to 2: refused, as elections cannot be requested. Source: KIP-183,
KIP-460."""

from __future__ import annotations

from kraftwire.messages.elect_leaders_request import ElectLeadersRequest
from kraftwire.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body, refusal, topic_refusal
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]

_WITH_TOP_LEVEL_ERROR = 1


async def handle(request: Request, context: Context) -> ElectLeadersResponse:
    """Refuse each partition; an empty request succeeds."""
    response = ElectLeadersResponse()
    code, _ = refusal(request, context)
    if code == ErrorCode.NOT_CONTROLLER and request.version >= _WITH_TOP_LEVEL_ERROR:
        response.error_code = code
        return response
    for topic in body(request, ElectLeadersRequest).topic_partitions or ():
        code, text = topic_refusal(request, context, topic.topic)
        results = [
            PartitionResult(partition_id=partition, error_code=code, error_message=text)
            for partition in topic.partitions
        ]
        response.replica_election_results.append(
            ReplicaElectionResult(topic=topic.topic, partition_result=results)
        )
    return response
