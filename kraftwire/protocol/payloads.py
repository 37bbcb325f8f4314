"""The payloads of requests and responses: their headers, both parts, or a response's whole frame.

A payload is a frame without its 4-byte length: a header, then a body.

API key and version select the generated classes. The versions that a node offers are the caller's
business: a server has to answer ApiVersions requests of a version that is too new in version 0 with
UNSUPPORTED_VERSION (KIP-511).

A Fetch is answered with up to a few MiB of records. Its frame is a few buffers, so that the records
in it are hardly copied: encoding it as one message, putting the header before that and the length
before both would copy them three times.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, cast

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.versions import (
    answered_version,
    request_header_version,
    response_header_version,
)
from kraftwire.wire.frame import frame, length_prefix
from kraftwire.wire.message import Message
from kraftwire.wire.varint import uvarint

if TYPE_CHECKING:
    from kraftwire.messages.fetch_response import FetchResponse, PartitionData

_KEY_AND_VERSION = struct.Struct(">hh")


def peek_request(payload: bytes | memoryview) -> tuple[int, int]:
    """Return API key and API version of a request, which decide how its header is read.

    Raises: WireError if the payload is too short for both.
    """
    if len(payload) < _KEY_AND_VERSION.size:
        raise WireError(
            "the payload is too short for a request",
            message="RequestHeader",
            offset=0,
            expected=f"at least {_KEY_AND_VERSION.size} bytes",
            found=str(len(payload)),
        )
    api_key, api_version = _KEY_AND_VERSION.unpack_from(payload)
    return api_key, api_version


def decode_request_header(payload: bytes) -> tuple[RequestHeader, int]:
    """Read a request's header; returns it and the position of the body.

    API and version need not be known. Raises: WireError on bad bytes.
    """
    return RequestHeader.decode(payload, request_header_version(*peek_request(payload)))


def decode_response_header(
    payload: bytes, api_key: int, api_version: int
) -> tuple[ResponseHeader, int]:
    """Read the header of the response to a request; returns it and the position of the body.

    Raises: WireError on bad bytes.
    """
    return ResponseHeader.decode(payload, response_header_version(api_key, api_version))


def encode_request_header(header: RequestHeader) -> bytes:
    """Write a request's header in the version that its API key and version require.

    Raises: WireError on values that do not fit.
    """
    version = request_header_version(header.request_api_key, header.request_api_version)
    return header.encode(version)


def encode_response_header(header: ResponseHeader, api_key: int, api_version: int) -> bytes:
    """Write the header of the response to a request of that API and version.

    Raises: WireError on values that do not fit.
    """
    return header.encode(response_header_version(api_key, api_version))


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
    is read as such; its error code shows that.
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


Buffers = list[bytes | memoryview]
"""Bytes that follow one another on a connection."""

# The length of records is a varint from this version on.
_FLEXIBLE_VERSION = 12

# Shorter records are copied: a separate buffer costs a system call.
_CARRIED_BYTES_MIN = 64 * 1024
# This much of the records is copied into the buffers before and after them.
_EDGE_BYTES = 16 * 1024


def response_buffers(header: ResponseHeader, body: Message, api_version: int) -> Buffers:
    """Return the frame of a response, as `frame` and `encode_response` make it, in a few buffers.

    Raises: as `encode_response`.
    """
    carrier = _carrier(body) if api_version >= _FLEXIBLE_VERSION else None
    if carrier is None:
        return [frame(encode_response(header, body, api_version))]
    assert carrier.records is not None
    records = memoryview(carrier.records)
    before, after = _around_records(header, body, carrier, api_version)
    before += uvarint(len(records) + 1)
    prefix = length_prefix(len(before) + len(records) + len(after))
    return [
        b"".join((prefix, before, records[:_EDGE_BYTES])),
        records[_EDGE_BYTES:-_EDGE_BYTES],
        b"".join((records[-_EDGE_BYTES:], after)),
    ]


def _carrier(body: Message) -> PartitionData | None:
    """Return the only partition of a Fetch if its records are long, else None."""
    if body.NAME != "FetchResponse":
        return None
    responses = cast("FetchResponse", body).responses
    if len(responses) != 1:
        return None
    partitions = responses[0].partitions
    if len(partitions) != 1 or not partitions[0].records:
        return None
    return partitions[0] if len(partitions[0].records) >= _CARRIED_BYTES_MIN else None


def _around_records(
    header: ResponseHeader, body: Message, carrier: PartitionData, api_version: int
) -> tuple[bytes, bytes]:
    """Return the bytes before the length of the records, and those after the records.

    Found by comparing the message without records to that with one byte of them: the first
    difference is their length.
    """
    records = carrier.records
    try:
        carrier.records = b""
        without = encode_response(header, body, api_version)
        carrier.records = b"\0"
        with_one = encode_response(header, body, api_version)
    finally:
        carrier.records = records
    at = next(
        i for i, (one, other) in enumerate(zip(without, with_one, strict=False)) if one != other
    )
    return without[:at], without[at + 1 :]
