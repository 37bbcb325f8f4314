"""Requests that brokers pass on to the leader, and their responses, in envelopes (KIP-590)."""

from __future__ import annotations

from kraftwire.decode.render.raft.sighting import QUORUM_APIS
from kraftwire.errors import WireError
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.protocol.envelope import decode_request, decode_response
from kraftwire.wire.message import Message

__all__ = ["Api", "request_inside", "response_inside"]

# API key and version.
Api = tuple[int, int]


def request_inside(envelope: EnvelopeRequest) -> tuple[Message, Api] | None:
    """Return the request in an envelope, or None if it is damaged or not about the quorum."""
    data = envelope.request_data
    if int.from_bytes(data[:2], "big", signed=True) not in QUORUM_APIS:
        return None
    try:
        header, body, _ = decode_request(data)
    except WireError:
        return None
    return body, (header.request_api_key, header.request_api_version)


def response_inside(envelope: EnvelopeResponse, api: Api) -> Message | None:
    """Return the response in an envelope, or None if it is missing or damaged."""
    if envelope.response_data is None:
        return None
    try:
        return decode_response(envelope.response_data, *api)[1]
    except WireError:
        return None
