"""A connection to another node: made when needed, after a pause if it failed, and counted.

Each exchange ends with a message, `LinkDown` or an ApiError UNSUPPORTED_VERSION. Addresses and
bytes come from peers: whatever is wrong with them is one of these, and a line in the log.

Source: R-NET-1 to R-NET-3; Kafka's `ClusterConnectionStates`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from kraftwire.errors import ApiError, SecurityError, WireError
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.node.logs import RateLimit, log
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.endpoint import Address, address_text
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.transport.client_connection import ClientConnection, OpenStream
from kraftwire.transport.streams import TapFactory
from kraftwire.wire.message import Message

if TYPE_CHECKING:
    from kraftwire.transport.client_security import ClientSecurity

RECONNECT_BACKOFF_MS = (50, 500)

# The lowest versions that the raft client may use: a Fetch below 13 has the topic's name in place
# of its id, which every quorum refuses.
OWN_VERSIONS = {ApiKey.FETCH: (13, 18)}


class LinkDown(Exception):
    """The connection could not be made, broke, or was closed by the other side."""


@dataclass(slots=True)
class LinkStats:
    """Counters over all outgoing connections."""

    connects: int = 0
    connect_failures: int = 0
    disconnects: int = 0
    timeouts: int = 0
    bad_answers: int = 0


class Link:
    """The connection to one address. `open_stream` connects sockets, for tests to replace."""

    def __init__(
        self,
        client_id: str,
        *,
        stats: LinkStats,
        refusals: RateLimit,
        make_tap: TapFactory | None = None,
        open_stream: OpenStream | None = None,
        security: ClientSecurity | None = None,
    ) -> None:
        self.address: Address = ("", 0)
        self._client_id = client_id
        self._stats = stats
        self._refusals = refusals
        self._make_tap = make_tap
        self._open_stream = open_stream
        self._security = security
        self._connection: ClientConnection | None = None
        self._failures = 0
        self._retry_at = 0.0

    @property
    def api_versions(self) -> ApiVersionsResponse | None:
        """The ApiVersions response of the current connection."""
        return None if self._connection is None else self._connection.api_versions

    def retarget(self, host: str, port: int) -> None:
        """Use this address from now on; a connection to another one is closed."""
        if (host, port) != self.address:
            self.close()
            self.address = (host, port)
            self._failures = 0
            self._retry_at = 0.0

    async def exchange(self, message: Message, *, version_max: int | None = None) -> Message:
        """Send a request and wait for its response, after connecting if necessary.

        Raises: LinkDown; ApiError UNSUPPORTED_VERSION if the two sides have no version in common.
        Cancelling closes the connection, because a response may still come.
        """
        connection = await self._connected()
        try:
            return await connection.request(message, version_max=version_max)
        except (ApiError, SecurityError, WireError) as error:
            if isinstance(error, ApiError) and error.code == ErrorCode.UNSUPPORTED_VERSION:
                raise
            self._stats.disconnects += not isinstance(error, WireError)
            raise self._down(error) from error
        finally:
            if connection.is_closed:
                self._connection = None

    async def probe(self) -> ApiVersionsResponse:
        """Return the other side's ApiVersions response, from a new connection.

        Raises: LinkDown.
        """
        self.close()
        try:
            return (await self._connected()).api_versions
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _connected(self) -> ClientConnection:
        """Return the connection, made anew if necessary; not within the back-off (R-NET-1)."""
        if self._connection is not None:
            return self._connection
        if trio.current_time() < self._retry_at:
            raise LinkDown("waiting before connecting again")
        self._stats.connects += 1
        try:
            connection = await ClientConnection.connect(
                self.address,
                client_id=self._client_id,
                security=self._security,
                own_versions=OWN_VERSIONS,
                open_stream=self._open_stream,
                make_tap=self._make_tap,
            )
        except (ApiError, SecurityError, WireError) as error:
            self._stats.connect_failures += 1
            down = self._down(error)
            if isinstance(error, ApiError):
                level = "debug" if self._failures else "info"  # log the first failure only
                peer = address_text(self.address)
                problem = error.detail.removeprefix(f"{peer}: ")
                log(level, "peer-unreachable", peer=peer, problem=problem)
            self._back_off()
            raise down from error
        except BaseException:
            self._back_off()
            raise
        # Only now: with TLS 1.3 a node refuses a certificate when it is asked something.
        level = "info" if self._failures else "debug"
        log(level, "peer-connected", peer=address_text(self.address))
        self._failures = 0
        self._connection = connection
        return connection

    def _down(self, error: ApiError | SecurityError | WireError) -> LinkDown:
        """Log what the other side did wrong; returns the error for callers."""
        if isinstance(error, WireError):
            self._stats.bad_answers += 1
            peer = address_text(self.address)
            self._refusals.log("answer", "bad-answer", peer=peer, problem=error)
        elif isinstance(error, SecurityError):
            self._refusals.log("unsecured", "peer-refused", problem=error)
        return LinkDown(error.detail if isinstance(error, ApiError) else str(error))

    def _back_off(self) -> None:
        """Wait longer after each consecutive failure, from 50 to 500 ms."""
        low, high = RECONNECT_BACKOFF_MS
        backoff_ms = min(high, low << min(self._failures, 10))
        self._failures += 1
        self._retry_at = trio.current_time() + backoff_ms / 1000
