"""Envelope: a broker forwards a client's request, header and body in one payload.

Only requests that Kafka's brokers forward are unwrapped; they are answered as if they had come from
the broker itself. NOT_CONTROLLER, for the envelope, unless this node leads the quorum; other
contents are INVALID_REQUEST.

Source: KIP-590; Kafka's `EnvelopeUtils`.
"""

from __future__ import annotations

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.node.admission import has_too_many_elements
from kraftwire.node.context import Context, Handler, Request
from kraftwire.node.handlers.shared import body
from kraftwire.node.handlers.versions import CONTROLLER_VERSIONS
from kraftwire.protocol.envelope import decode_request, encode_response
from kraftwire.protocol.error_codes import ErrorCode

# The APIs that brokers forward and this node answers. Source: `ApiKeys.forwardable`.
FORWARDED = frozenset(
    key
    for key in CONTROLLER_VERSIONS
    if messages.API_NAMES[key]
    in {
        "AddRaftVoter",
        "AlterConfigs",
        "AlterPartitionReassignments",
        "CreateAcls",
        "CreatePartitions",
        "CreateTopics",
        "DeleteAcls",
        "DeleteTopics",
        "DescribeQuorum",
        "ElectLeaders",
        "IncrementalAlterConfigs",
        "ListPartitionReassignments",
        "RemoveRaftVoter",
        "UnregisterBroker",
        "UpdateFeatures",
    }
)


def handler_of(table: dict[int, Handler]) -> Handler:
    """Return the handler of envelopes, which dispatches their contents by a table of handlers."""

    async def handle(request: Request, context: Context) -> EnvelopeResponse:
        return await _handle(request, context, table)

    return handle


async def _handle(
    request: Request, context: Context, table: dict[int, Handler]
) -> EnvelopeResponse:
    data = body(request, EnvelopeRequest).request_data
    if context.raft.leader_id != context.key.id:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        header, message, end = decode_request(data)
    except WireError:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    key, version = header.request_api_key, header.request_api_version
    low, high = CONTROLLER_VERSIONS.get(key, (0, -1))
    is_offered = key in FORWARDED and low <= version <= high
    if not is_offered or end != len(data) or has_too_many_elements(message, len(data)):
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    inner = Request(
        key,
        version,
        message,
        client_id=header.client_id,
        listener=request.listener,
        software=request.software,
        from_controller_listener=True,
        from_client_listener=False,
    )
    answer = await table[key](inner, context)
    if answer is None:
        return EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    answered = ResponseHeader(correlation_id=header.correlation_id)
    return EnvelopeResponse(response_data=encode_response(answered, answer, version))
