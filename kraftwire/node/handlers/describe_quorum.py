"""DescribeQuorum: the leader's view of the quorum.

A listener for clients passes the request on to the leader, as Kafka's brokers do. A controller's
listener answers directly; a node that does not lead answers NOT_LEADER_OR_FOLLOWER with what it
knows.

Source: KIP-595, KIP-836, KIP-853; Kafka's `KafkaApis.handleDescribeQuorumRequest`.
"""

from __future__ import annotations

from kraftwire.errors import ApiError
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body, must_forward
from kraftwire.wire.message import Message

_WITH_MESSAGE = 2

# Bytes of an answer for each replica. It may be a long one, as anybody can be an observer.
_REPLICA_BYTES = 45


async def handle(request: Request, context: Context) -> Message | None:
    """Describe the quorum, or forward the request to the leader."""
    message = body(request, DescribeQuorumRequest)
    leader_id = context.raft.leader_id
    if not must_forward(request) or leader_id in (-1, context.key.id):
        await request.admit(context.raft.replica_count * _REPLICA_BYTES)
        return await context.raft_request(request)
    try:
        return await context.forward(message, request.version)
    except ApiError as error:
        text = error.detail if request.version >= _WITH_MESSAGE else None
        return DescribeQuorumResponse(error_code=error.code, error_message=text)
