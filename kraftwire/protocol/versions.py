"""The versions of each API: those with a schema, their headers, their exceptions.

The rules are "flexible body, flexible header" and "a response is in the version of its request";
the exceptions to both are here. What a node or a peer offers is decided elsewhere.

Source: Kafka's `ApiMessageType.requestHeaderVersion` and `responseHeaderVersion`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from kraftwire import messages
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from kraftwire.messages.fetch_request import FetchRequest

# The newest version of ApiVersions that clients send.
API_VERSIONS_MAX = 5

# The start of an ApiVersions answer in version 0: error code, number of APIs; each takes six bytes.
_ANSWER_START = struct.Struct(">hi")
_ANSWER_API_SIZE = 6


def request_header_version(api_key: int, api_version: int) -> int:
    """Version of the header before a request: 2 if the body is flexible, else 1.

    An unknown version of a known API is flexible if it is not below the first flexible one; an
    unknown API is assumed to be new and therefore flexible.
    """
    if api_version >= messages.API_FLEXIBLE.get(api_key, 0):
        return 2
    # The oldest request of all is sent without a client id.
    return 0 if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0 else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """Version of the header before a response: 1 if the body is flexible, else 0.

    Always 0 for ApiVersions, because a client must be able to read the answer of a server
    that is older than the client (KIP-511).
    """
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return int(api_version >= messages.API_FLEXIBLE.get(api_key, 0))


def nearest_version(api_key: int, api_version: int) -> int | None:
    """Return the version if the schemas know it, else the nearest one; None for an unknown API."""
    known = messages.API_VERSIONS.get(api_key)
    if known is None:
        return None
    low, high = known
    return min(max(api_version, low), high)


def answered_version(
    payload: bytes | memoryview, position: int, api_key: int, api_version: int
) -> int:
    """Return the version in which a response is written: the request's, with one exception.

    `position` is that of the body. A server that lacks the requested version of ApiVersions
    answers in version 0 with UNSUPPORTED_VERSION (KIP-511). In all later versions the bytes after
    that error code cannot be those of version 0: a compact array would be null there, and a
    throttle time would make the answer longer.
    """
    if api_key != ApiKey.API_VERSIONS or not api_version:
        return api_version
    if len(payload) < position + _ANSWER_START.size:
        return api_version
    error, count = _ANSWER_START.unpack_from(payload, position)
    size = position + _ANSWER_START.size + count * _ANSWER_API_SIZE
    is_oldest = error == ErrorCode.UNSUPPORTED_VERSION and size == len(payload)
    return 0 if is_oldest else api_version


def fetching_replica(request: FetchRequest) -> int:
    """Return the id of the replica that fetches, -1 for a consumer.

    Version 15 moved the id into a tagged struct; of the two fields, the one that a version lacks
    holds its default (KIP-903).
    """
    state = request.replica_state
    return request.replica_id if state is None else state.replica_id
