"""AddRaftVoter: makes a controller a voter, if kraft.version allows it.

A listener for clients passes the request on to the leader, as Kafka's brokers do; a controller's
listener passes it to the Raft core: UNSUPPORTED_VERSION while kraft.version is 0.

Source: KIP-853.
"""

from __future__ import annotations

from kraftwire.errors import ApiError
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body, must_forward
from kraftwire.wire.message import Message


async def handle(request: Request, context: Context) -> Message | None:
    """Change the voters, or forward the request to the leader."""
    message = body(request, AddRaftVoterRequest)
    if not must_forward(request) or context.raft.leader_id in (-1, context.key.id):
        return await context.raft_request(request)
    try:
        return await context.forward(message, request.version)
    except ApiError as error:
        return AddRaftVoterResponse(error_code=error.code, error_message=error.detail)
