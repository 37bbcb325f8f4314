"""The header of a request or a response: reading it, and writing it in the right version.

A payload is a frame without its 4-byte length.
"""

from __future__ import annotations

import struct

from kraftwire.errors import WireError
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.versions import request_header_version, response_header_version

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
