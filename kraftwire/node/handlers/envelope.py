"""Envelope: a broker forwards a client's request, header and body in one payload.

Only requests that Kafka's brokers forward are unwrapped; they are answered as if the client that
the envelope names had sent them from its own address (SEC-A13). NOT_CONTROLLER, for the envelope,
unless this node leads the quorum, and where the answer says so.
The sender of an envelope can name any client, so it needs CLUSTER_ACTION.

Source: KIP-590; Kafka's `EnvelopeUtils`.
"""

from __future__ import annotations

from kraftwire import messages
from kraftwire.errors import ApiError, UsageError, WireError
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.node.admission import has_too_many_elements
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body
from kraftwire.node.handlers.versions import CONTROLLER_VERSIONS
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_request, encode_response, peek_request
from kraftwire.security.principal import Principal, decode_principal, host_text
from kraftwire.wire.message import Message, Struct

# The APIs that brokers forward and this node answers. Source: `ApiKeys.forwardable`.
FORWARDED = frozenset(
    key
    for key in CONTROLLER_VERSIONS
    if messages.API_NAMES[key]
    in {
        "AddRaftVoter",
        "AlterClientQuotas",
        "AlterConfigs",
        "AlterPartitionReassignments",
        "AlterUserScramCredentials",
        "CreateAcls",
        "CreatePartitions",
        "CreateDelegationToken",
        "CreateTopics",
        "DeleteAcls",
        "DeleteTopics",
        "DescribeQuorum",
        "ElectLeaders",
        "ExpireDelegationToken",
        "IncrementalAlterConfigs",
        "ListPartitionReassignments",
        "RemoveRaftVoter",
        "RenewDelegationToken",
        "UnregisterBroker",
        "UnregisterController",
        "UpdateFeatures",
    }
)


# Errors that say that another node decides.
_MOVED = frozenset((ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER))


async def handle(request: Request, context: Context) -> EnvelopeResponse | None:
    """Answer the request in an envelope; None if that request has no answer."""
    envelope = body(request, EnvelopeRequest)
    if context.raft.leader_id != context.key.id:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        principal, host = _client(envelope)
        header, message = _opened(envelope.request_data)
    except ApiError as error:
        return EnvelopeResponse(error_code=error.code)
    key, version = header.request_api_key, header.request_api_version
    inner = Request(
        key,
        version,
        message,
        client_id=header.client_id,
        listener=request.listener,
        software=request.software,
        from_controller_listener=True,
        from_client_listener=False,
        is_forwarded=True,
        principal=principal,
        host=host,
    )
    answer = await context.answer(inner)
    if answer is None:
        return None
    if _holds(answer, _MOVED):
        # The broker looks for the controller again, and sends it the request (C-ENV-3).
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    answered = ResponseHeader(correlation_id=header.correlation_id)
    return EnvelopeResponse(response_data=encode_response(answered, answer, version))


def _client(envelope: EnvelopeRequest) -> tuple[Principal, str]:
    """Return the client that an envelope names, and its address. Raises: ApiError."""
    try:
        principal = decode_principal(envelope.request_principal or b"")
    except WireError as error:
        raise ApiError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from None
    try:
        return principal, host_text(envelope.client_host_address)
    except UsageError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None


def _opened(data: bytes) -> tuple[RequestHeader, Message]:
    """Return the request in an envelope (C-ENV-1). Raises: ApiError."""
    try:
        key, _ = peek_request(data)
        if key in messages.API_NAMES and key not in FORWARDED:
            raise ApiError(ErrorCode.INVALID_REQUEST, "brokers do not forward this")
        header, message, end = decode_request(data)
    except WireError as error:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from None
    low, high = CONTROLLER_VERSIONS[key]
    if not low <= header.request_api_version <= high:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "a version that is not offered")
    if end != len(data) or has_too_many_elements(message, len(data)):
        raise ApiError(ErrorCode.INVALID_REQUEST, "more than a client sends")
    return header, message


def _holds(answer: Struct, codes: frozenset[ErrorCode]) -> bool:
    """Return whether a response has one of some errors, at the top or in an element."""
    if getattr(answer, "error_code", ErrorCode.NONE) in codes:
        return True
    arrays = (getattr(answer, name) for name in answer.__slots__)
    return any(
        isinstance(element, Struct) and _holds(element, codes)
        for array in arrays
        if isinstance(array, list)
        for element in array
    )
