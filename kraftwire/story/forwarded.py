"""Requests that brokers pass on to the leader, and their responses, in envelopes (KIP-590)."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from kraftwire.decode.body.bodies import decode_payload
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.wire.message import Message

__all__ = ["Api", "Inside", "request_inside", "response_inside"]

# API key and version.
Api = tuple[int, int]


class Inside(NamedTuple):
    """The request in an envelope; its client is the one that the broker has it from."""

    body: Message
    api: Api
    client_id: str | None


def request_inside(envelope: EnvelopeRequest, keys: Container[int]) -> Inside | None:
    """Return the request in an envelope; None if it is damaged or of another API than `keys`."""
    data = envelope.request_data
    if int.from_bytes(data[:2], "big", signed=True) not in keys:
        return None
    found = decode_payload(data, is_request=True)
    header = found.header
    if found.body is None or not isinstance(header, RequestHeader):
        return None
    api = header.request_api_key, header.request_api_version
    return Inside(found.body, api, header.client_id)


def response_inside(envelope: EnvelopeResponse, api: Api) -> Message | None:
    """Return the response in an envelope, or None if it is missing or damaged."""
    if envelope.response_data is None:
        return None
    return decode_payload(envelope.response_data, is_request=False, api=api).body
