"""What brokers pass on to the leader: requests and responses in envelopes (KIP-590)."""

from __future__ import annotations

from kraftwire.decode.render.raft.sighting import QUORUM_APIS
from kraftwire.errors import WireError
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.protocol.envelope import decode_request, decode_response
from kraftwire.wire.message import Message

__all__ = ["Api", "request_inside", "response_inside"]

# Key and version.
Api = tuple[int, int]


def request_inside(envelope: EnvelopeRequest) -> tuple[Message, Api] | None:
    """The request in an envelope, if it is about the quorum and can be read."""
    data = envelope.request_data
    if int.from_bytes(data[:2], "big", signed=True) not in QUORUM_APIS:
        return None
    try:
        header, body, _ = decode_request(data)
    except WireError:
        return None
    return body, (header.request_api_key, header.request_api_version)


def response_inside(envelope: EnvelopeResponse, api: Api) -> Message | None:
    """The response in an envelope, if there is one that can be read."""
    if envelope.response_data is None:
        return None
    try:
        return decode_response(envelope.response_data, *api)[1]
    except WireError:
        return None
