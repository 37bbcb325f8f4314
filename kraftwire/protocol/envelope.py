"""A whole request or response: header and body in one payload.

Owns the dispatch from API key and version to the generated classes. It neither frames nor knows
which versions a node offers; `API_VERSIONS_KEY` requests of a version that is too new have to be
answered in version 0 with UNSUPPORTED_VERSION by the server (KIP-511).
"""

from __future__ import annotations

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.headers import (
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    peek_request,
)
from kraftwire.protocol.versions import answered_version
from kraftwire.wire.message import Message

__all__ = ["decode_request", "decode_response", "encode_request", "encode_response"]


def decode_request(
    payload: bytes | memoryview,
) -> tuple[RequestHeader, Message, int]:
    """Read a request; returns header, body and the position after the body.

    Bytes may be left after the body; whether that is an error is the caller's decision.
    Raises: WireError on bad bytes and on an API or version that no schema knows (its `offset` is
    then 0, so that a caller can tell it from bad bytes by reading the header alone).
    """
    data = payload if type(payload) is bytes else bytes(payload)
    api_key, api_version = peek_request(data)
    _check_known(api_key, api_version)
    header, position = decode_request_header(data)
    body, end = messages.request_class(api_key).decode(data, api_version, position)
    return header, body, end


def decode_response(
    payload: bytes | memoryview, api_key: int, api_version: int
) -> tuple[ResponseHeader, Message, int]:
    """Read the response to a request; returns header, body and the position after the body.

    An ApiVersions answer in version 0, from a server that lacks the version of the request,
    is read as such; its error code tells.
    Raises: WireError on bad bytes and on an API or version that no schema knows.
    """
    data = payload if type(payload) is bytes else bytes(payload)
    _check_known(api_key, api_version)
    header, position = decode_response_header(data, api_key, api_version)
    version = answered_version(data, position, api_key, api_version)
    body, end = messages.response_class(api_key).decode(data, version, position)
    return header, body, end


def encode_request(header: RequestHeader, body: Message) -> bytes:
    """Write header and body of a request; the header names the body's version.

    Raises: WireError on values that do not fit; UsageError for an unknown version.
    """
    return encode_request_header(header) + body.encode(header.request_api_version)


def encode_response(header: ResponseHeader, body: Message, api_version: int) -> bytes:
    """Write header and body of the response to a request of that version.

    Raises: WireError on values that do not fit; UsageError for an unknown version.
    """
    return encode_response_header(header, body.API_KEY, api_version) + body.encode(api_version)


def _check_known(api_key: int, api_version: int) -> None:
    low, high = messages.API_VERSIONS.get(api_key, (0, -1))
    if not low <= api_version <= high:
        known = f"API key {api_key} in versions {low}-{high}" if low <= high else "a known API key"
        raise WireError(
            "no schema for this request",
            message=messages.API_NAMES.get(api_key, "unknown API"),
            version=api_version,
            offset=0,
            expected=known,
            found=f"API key {api_key} version {api_version}",
        )
