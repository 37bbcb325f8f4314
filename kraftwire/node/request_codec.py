"""Requests decoded and responses encoded, long ones in a thread: one at a time of all connections.

Source: Kafka's `SocketServer.Processor` and `ApiVersionsRequest`; KIP-511.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import trio

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.limits import REQUEST_ELEMENTS_MAX
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.node.admission import has_more_elements, has_too_many_elements
from kraftwire.node.connection_end import ConnectionEnded
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.payloads import Buffers, response_buffers
from kraftwire.wire.message import Message

# A node decodes longer requests in a thread. Those of replicas and of ordinary clients are shorter;
# decoding one of this size takes milliseconds, or a fifth of a second if it is a hostile one.
DECODE_INLINE_BYTES = 64 * 1024

# Responses of more elements are encoded in a thread, too: one of this size takes some milliseconds.
ENCODE_INLINE_ELEMENTS = 2_000

# A hostile body takes half a second.
_LARGE_BODIES = trio.CapacityLimiter(1)


async def decode_body(
    header: RequestHeader,
    payload: bytes,
    position: int,
    offered: Mapping[int, tuple[int, int]],
) -> Message | None:
    """Return a request's body; None for an ApiVersions request of an unknown version.

    `offered` has the versions by API key. Raises: ConnectionEnded.
    """
    api_key, version = header.request_api_key, header.request_api_version
    name, size = messages.API_NAMES.get(api_key, "unknown"), len(payload)
    low, high = offered.get(api_key, (0, -1))
    if not low <= version <= high:
        if api_key == ApiKey.API_VERSIONS:
            return None
        problem = f"API key {api_key} ({name}) version {version} is not offered here"
        raise ConnectionEnded("not-offered", problem)
    try:
        decode = partial(messages.request_class(api_key).decode, payload, version, position)
        if size <= DECODE_INLINE_BYTES:
            body, _ = decode()
        else:
            body, _ = await trio.to_thread.run_sync(decode, limiter=_LARGE_BODIES)
    except WireError as error:
        raise ConnectionEnded("bad-request", str(error)) from error
    if has_too_many_elements(body, size):
        problem = f"{name} of more than {REQUEST_ELEMENTS_MAX} elements"
        raise ConnectionEnded("too-many-elements", problem)
    return body


async def encode_in_turn(header: RequestHeader, response: Message) -> Buffers:
    """Return the frame of a response; a long one is encoded in a thread, one at a time."""
    if not has_more_elements(response, ENCODE_INLINE_ELEMENTS):
        return encode(header, response)
    return await trio.to_thread.run_sync(partial(encode, header, response), limiter=_LARGE_BODIES)


def encode(header: RequestHeader, response: Message, version: int | None = None) -> Buffers:
    """Return the frame of a response, in the request's version unless another is given."""
    answered = ResponseHeader(correlation_id=header.correlation_id)
    if version is None:
        version = header.request_api_version
    return response_buffers(answered, response, version)
