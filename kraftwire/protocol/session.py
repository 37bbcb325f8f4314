"""The client's side of a connection without its socket: negotiation, correlation ids, framing.

The owner of the socket sends what `open`, `request` and `take_output` return and passes what it
reads to `receive`; it also handles timeouts and errors.

Source: KIP-35, KIP-511, KIP-1242; Kafka's `NetworkClient` and `NodeApiVersions`; R-NET-2.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from kraftwire import __version__, messages
from kraftwire.errors import ApiError, WireError, check
from kraftwire.limits import FRAME_SIZE_MAX
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import ErrorCode, error_name
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.protocol.versions import API_VERSIONS_MAX
from kraftwire.wire.frame import FrameBuffer, frame
from kraftwire.wire.message import Message

if TYPE_CHECKING:
    from kraftwire.messages.fetch_request import FetchRequest


# The client software name of kraftwire's nodes and clients.
SOFTWARE_NAME = "kraftwire"

# Cluster id and node id.
Aim = tuple[str, int]

# Correlation id, and the response or what is wrong with its bytes.
Answer = tuple[int, Message | WireError]

_FETCH_REPLICA_STATE = 15
_CORRELATION_ID = struct.Struct(">i")
_CORRELATION_ID_MAX = 0x7FFFFFFF


class ClientSession:
    """The client's side of one connection.

    `own_versions` limits the versions used, by API key; of all other APIs every version of the
    schemas may be used. `aim` is the cluster id and the node id that are meant: another node may
    refuse the connection (KIP-1242). Order: `open` once; `request` after `is_ready`; after each
    `receive` send what `take_output` returns.
    """

    def __init__(
        self,
        client_id: str,
        *,
        software_name: str = SOFTWARE_NAME,
        software_version: str = __version__,
        own_versions: Mapping[int, tuple[int, int]] | None = None,
        frame_size_max: int = FRAME_SIZE_MAX,
        aim: Aim | None = None,
    ) -> None:
        self.api_versions: ApiVersionsResponse | None = None
        self._client_id = client_id
        cluster_id, node_id = aim or (None, -1)
        self._negotiation = ApiVersionsRequest(
            client_software_name=software_name,
            client_software_version=software_version,
            cluster_id=cluster_id,
            node_id=node_id,
        )
        self._own_versions = own_versions or {}
        self._frames = FrameBuffer(limit=frame_size_max)
        self._versions: dict[int, tuple[int, int]] = {}
        self._next_id = 0
        # Correlation id -> API key and version.
        self._in_flight: dict[int, tuple[int, int]] = {}
        self._negotiation_id = -1
        self._output = b""

    @property
    def is_ready(self) -> bool:
        """Whether the versions are negotiated, so that requests may be made."""
        return self.api_versions is not None

    @property
    def versions(self) -> Mapping[int, tuple[int, int]]:
        """What the peer offers: API key -> lowest and highest version. Empty before `is_ready`."""
        return MappingProxyType(self._versions)

    def open(self) -> bytes:
        """The first request of the connection: ApiVersions.

        Every server answers its version, or names the versions that it supports.
        """
        check(self._negotiation_id < 0, "a session is opened once")
        return self._begin_negotiation(API_VERSIONS_MAX)

    def version_of(self, api_key: int) -> int:
        """Return the highest version of an API that both ends support.

        Raises: ApiError UNSUPPORTED_VERSION if there is none.
        """
        name = messages.API_NAMES.get(api_key, f"API key {api_key}")
        if api_key not in self._versions:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"the node does not support {name}")
        low, high = self._versions[api_key]
        known_low, known_high = messages.API_VERSIONS.get(api_key, (0, -1))
        own_low, own_high = self._own_versions.get(api_key, (known_low, known_high))
        version = min(high, own_high, known_high)
        if version < max(low, own_low, known_low):
            detail = f"the node supports {name} {low}-{high}, this client {own_low}-{own_high}"
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, detail)
        return version

    def request(self, message: Message, *, version: int | None = None) -> tuple[int, bytes]:
        """Return correlation id and frame of a request, by default in the highest common version.

        Raises: ApiError UNSUPPORTED_VERSION, without any effect, if there is no common version or
        the version cannot carry what the message holds.
        """
        check(self.is_ready, "requests come after the negotiation")
        if version is None:
            version = self.version_of(message.API_KEY)
        try:
            return self._frame(_fitted(message, version), version)
        except WireError as error:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error

    def receive(self, data: bytes) -> list[Answer]:
        """Take bytes of the peer; returns the answers that are complete, in order of arrival.

        An answer that cannot be read, or that belongs to no request, is a WireError in its
        place; the connection can still be used. The answer to ApiVersions is not among them.
        Raises: WireError if the stream itself is lost (impossible length, no correlation id, bad
        answer to `open`); ApiError if the peer refuses the negotiation. Either ends the session.
        """
        answers: list[Answer] = []
        for payload in self._frames.feed(data):
            if len(payload) < _CORRELATION_ID.size:
                raise WireError(
                    "the payload is too short for a response",
                    message="ResponseHeader",
                    offset=0,
                    expected=f"at least {_CORRELATION_ID.size} bytes",
                    found=str(len(payload)),
                )
            (correlation_id,) = _CORRELATION_ID.unpack_from(payload)
            if correlation_id == self._negotiation_id and not self.is_ready:
                self._end_negotiation(payload)
            else:
                answers.append((correlation_id, self._answer(correlation_id, payload)))
        return answers

    def take_output(self) -> bytes:
        """Return the bytes to send after `receive`, usually none; each is returned once."""
        output, self._output = self._output, b""
        return output

    def _answer(self, correlation_id: int, payload: bytes) -> Message | WireError:
        """Return the response, or what is wrong with its bytes."""
        if correlation_id not in self._in_flight:
            return WireError(
                "an answer to no request",
                message="ResponseHeader",
                path="correlation_id",
                offset=0,
                expected=_ids_text(self._in_flight),
                found=str(correlation_id),
            )
        requested = self._in_flight.pop(correlation_id)
        try:
            return decode_response(payload, *requested)[1]
        except WireError as error:
            return error

    def _begin_negotiation(self, version: int) -> bytes:
        self._negotiation_id, data = self._frame(self._negotiation, version)
        return data

    def _end_negotiation(self, payload: bytes) -> None:
        requested = self._in_flight.pop(self._negotiation_id)
        _, response, _ = decode_response(payload, *requested)
        assert isinstance(response, ApiVersionsResponse)
        offered = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and requested[1] > 0:
            # KIP-511: the answer names the supported versions; a peer that names none is old.
            _, high = offered.get(ApiKey.API_VERSIONS, (0, 0))
            self._output += self._begin_negotiation(max(0, min(high, requested[1] - 1)))
        elif response.error_code != ErrorCode.NONE:
            name = error_name(response.error_code)
            raise ApiError(response.error_code, f"the node answers ApiVersions with {name}")
        else:
            self._versions = offered
            self.api_versions = response

    def _frame(self, message: Message, version: int) -> tuple[int, bytes]:
        correlation_id = self._next_id
        header = RequestHeader(
            request_api_key=message.API_KEY,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=self._client_id,
        )
        data = frame(encode_request(header, message))
        self._next_id = 0 if correlation_id == _CORRELATION_ID_MAX else correlation_id + 1
        self._in_flight[correlation_id] = (message.API_KEY, version)
        return correlation_id, data


def _ids_text(in_flight: Mapping[int, object]) -> str:
    if not in_flight:
        return "nothing, no request is open"
    first, *others = in_flight
    return f"correlation id {first}" + (f" or {len(others)} others" if others else "")


def _fitted(message: Message, version: int) -> Message:
    """Return a request in the form of a version: up to 14, Fetch has the replica id in a field.

    Source: Kafka's `FetchRequest.SimpleBuilder`.
    """
    if message.API_KEY != ApiKey.FETCH or version >= _FETCH_REPLICA_STATE:
        return message
    fetch = cast("FetchRequest", message)
    if fetch.replica_state is None:
        return fetch
    older = copy(fetch)
    older.replica_id, older.replica_state = fetch.replica_state.replica_id, None
    return older
