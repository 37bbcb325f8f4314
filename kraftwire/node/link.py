"""A connection to another node: made when needed, negotiated, one request at a time.

Holds one TCP stream and its `ClientSession`. Every exchange ends with a message, `LinkDown` or
`ApiError`; bytes that cannot be read close the connection and are counted.

Source: R-NET-1 to R-NET-3; Kafka's `NetworkClient`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import trio

from kraftwire.errors import ApiError, SecurityError, WireError
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.node.logs import RateLimit, log
from kraftwire.protocol.session import ClientSession
from kraftwire.wire.message import Message

if TYPE_CHECKING:
    from kraftwire.transport.client_security import ClientSecurity
    from kraftwire.transport.secured_stream import SecuredStream

RECONNECT_BACKOFF_MS = (50, 500)
# Half of the maximum that a Fetch asks for: smaller reads cost more turns of the loop.
READ_SIZE = 512 * 1024

# The lowest versions that the raft client may use: a Fetch below 13 has the topic's name in place
# of its id, which every quorum refuses.
OWN_VERSIONS = {1: (13, 18)}


_BROKEN = (
    WireError,
    SecurityError,
    OSError,
    trio.BrokenResourceError,
    trio.ClosedResourceError,
)


class LinkDown(Exception):
    """The connection could not be made, broke, or was closed by the other side."""


class Stream(Protocol):
    """The part of `trio.SocketStream` that a link uses."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write everything."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Read at least one byte; returns nothing at the end of the stream."""


class Tap(Protocol):
    """Sees the bytes of one connection."""

    def sent(self, data: bytes) -> None:
        """Record bytes that this node has written."""

    def received(self, data: bytes) -> None:
        """Record bytes that this node has read."""

    def closed(self) -> None:
        """Record the end of the connection."""


TapFactory = Callable[[Stream, bool], Tap | None]
"""Makes the tap of a new connection. The flag is true if this node accepted it."""


@dataclass(slots=True)
class LinkStats:
    """Counters over all outgoing connections."""

    connects: int = 0
    connect_failures: int = 0
    disconnects: int = 0
    timeouts: int = 0
    bad_answers: int = 0


async def open_stream(host: str, port: int) -> Stream:
    """Connect, trying every address of the host. Raises: OSError."""
    try:
        return await trio.open_tcp_stream(host, port)
    except UnicodeError as error:
        # The name came from a peer: it must not end this node.
        raise OSError(f"{host!r} is not a valid host name: {error}") from error


class Link:
    """The connection to one address.

    `connect` opens streams, for tests to replace. Order: one `exchange` or `probe` at a time.
    """

    def __init__(
        self,
        client_id: str,
        *,
        stats: LinkStats,
        garbage: RateLimit,
        tap: TapFactory | None = None,
        connect: Callable[[str, int], Awaitable[Stream]] | None = None,
        security: ClientSecurity | None = None,
    ) -> None:
        self.address = ("", 0)
        self._client_id = client_id
        self._stats = stats
        self._garbage = garbage
        self._make_tap = tap
        self._connect = connect or open_stream
        self._security = security
        self._secured: SecuredStream | None = None
        self._stream: Stream | None = None
        self._session: ClientSession | None = None
        self._tap: Tap | None = None
        self._failures = 0
        self._retry_at = 0.0

    @property
    def api_versions(self) -> ApiVersionsResponse | None:
        """The ApiVersions answer of the current connection."""
        return None if self._session is None else self._session.api_versions

    def retarget(self, host: str, port: int) -> None:
        """Use this address from now on; a connection to another one is closed."""
        if (host, port) != self.address:
            self._drop()
            self.address = (host, port)
            self._failures = 0
            self._retry_at = 0.0

    async def exchange(self, message: Message, *, version: int | None = None) -> Message:
        """Send a request and wait for its answer, in the highest common version, or in `version` if
        that is lower: the other side may be older than who asked.

        Raises: LinkDown; ApiError UNSUPPORTED_VERSION if the two sides have no version in common.
        Cancelling closes the connection, because an answer may still come.
        """
        is_usable = False
        try:
            session, stream = await self._ready()
            if self._secured is not None:
                await self._renew(self._secured)
            common = session.version_of(message.API_KEY)
            if version is not None:
                common = min(version, common)
            correlation_id, data = session.request(message, version=common)
            await self._send(stream, data)
            answer = await self._receive(session, stream, correlation_id)
            is_usable = True
            return answer
        except ApiError:
            is_usable = self._session is not None and self._session.is_ready
            raise
        except _BROKEN as error:
            raise self._lost(error) from error
        finally:
            if not is_usable:
                self._drop()

    async def probe(self) -> ApiVersionsResponse:
        """Return the other side's ApiVersions answer, from a new connection.

        Raises: as `exchange`.
        """
        self._drop()
        try:
            session, _ = await self._ready()
        except _BROKEN as error:
            raise self._lost(error) from error
        finally:
            self._drop()
        assert session.api_versions is not None
        return session.api_versions

    def close(self) -> None:
        """Close the connection."""
        self._drop()

    async def _ready(self) -> tuple[ClientSession, Stream]:
        """Return the session and stream, after connecting and negotiating if necessary.

        Within the reconnect back-off no attempt is made (R-NET-1).
        """
        if self._session is not None and self._stream is not None:
            return self._session, self._stream
        if trio.current_time() < self._retry_at:
            raise LinkDown("waiting before connecting again")
        try:
            stream = await self._open()
            session = ClientSession(self._client_id, own_versions=OWN_VERSIONS)
            self._session, self._stream = session, stream
            await self._send(stream, session.open())
            while not session.is_ready:
                await self._read(session, stream)
        except ApiError as error:
            self._back_off()
            raise LinkDown(str(error)) from error
        except BaseException:
            self._back_off()
            raise
        # Only now: with TLS 1.3 a node refuses a certificate when it is asked something.
        host, port = self.address
        log("info" if self._failures else "debug", "peer-connected", peer=f"{host}:{port}")
        self._failures = 0
        return session, stream

    async def _open(self) -> Stream:
        host, port = self.address
        self._stats.connects += 1
        try:
            stream = await self._connect(host, port)
        except OSError as error:
            self._stats.connect_failures += 1
            level = "debug" if self._failures else "info"  # log the first failure only
            log(level, "peer-unreachable", peer=f"{host}:{port}", problem=_problem(error))
            raise
        if self._security is not None:
            stream = await self._secure(stream, self._security)
        self._tap = self._make_tap(stream, False) if self._make_tap else None
        return stream

    async def _secure(self, stream: Stream, security: ClientSecurity) -> Stream:
        """Verify the other side and log in (SEC-T4). Raises: SecurityError, ApiError."""
        # A plaintext node need not load what secures streams.
        from kraftwire.transport.secured_stream import secure

        assert isinstance(stream, trio.SocketStream)
        host, port = self.address
        try:
            secured = await secure(security, stream, host, port, client_id=self._client_id)
        except (SecurityError, ApiError) as error:
            self._stats.connect_failures += 1
            self._log_refusal(error)
            raise
        self._secured = secured
        return secured

    def _log_refusal(self, error: SecurityError | ApiError) -> None:
        self._garbage.log("unsecured", "peer-refused", problem=error)

    async def _renew(self, secured: SecuredStream) -> None:
        """Log in again if the session ends soon (SEC-S13). Raises: LinkDown, SecurityError."""
        try:
            await secured.renew()
        except ApiError as error:
            self._drop()
            raise self._lost(error) from error

    async def _send(self, stream: Stream, data: bytes) -> None:
        await stream.send_all(data)
        if self._tap:
            self._tap.sent(data)

    async def _receive(
        self, session: ClientSession, stream: Stream, correlation_id: int
    ) -> Message:
        """Read until the answer with this id arrives; no other request is in flight."""
        while True:
            for answered_id, answer in await self._read(session, stream):
                if isinstance(answer, WireError):
                    raise answer
                if answered_id == correlation_id:
                    return answer

    async def _read(
        self, session: ClientSession, stream: Stream
    ) -> list[tuple[int, Message | WireError]]:
        data = bytes(await stream.receive_some(READ_SIZE))
        if not data:
            raise trio.BrokenResourceError("closed by the other side")
        if self._tap:
            self._tap.received(data)
        answers = session.receive(data)
        output = session.take_output()
        if output:
            await self._send(stream, output)
        return answers

    def _lost(self, error: Exception) -> LinkDown:
        """Count how a connection ended."""
        if isinstance(error, WireError):
            self._stats.bad_answers += 1
            host, port = self.address
            self._garbage.log("answer", "bad-answer", peer=f"{host}:{port}", problem=error)
        else:
            self._stats.disconnects += 1
        if isinstance(error, SecurityError):
            self._log_refusal(error)
        return LinkDown(str(error))

    def _back_off(self) -> None:
        """Wait longer after each consecutive failure, from 50 to 500 ms."""
        low, high = RECONNECT_BACKOFF_MS
        backoff_ms = min(high, low << min(self._failures, 10))
        self._failures += 1
        self._retry_at = trio.current_time() + backoff_ms / 1000

    def _drop(self) -> None:
        """Close without waiting, so that it works in a cancelled scope and from any task."""
        stream, self._stream, self._session = self._stream, None, None
        self._secured = None
        if self._tap:
            self._tap.closed()
            self._tap = None
        if stream is not None:
            close_now(stream)


def _problem(error: OSError) -> str:
    """Return the system's error, which trio wraps in a group of attempts."""
    cause = error.__cause__
    if isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    return str(cause or error)


def close_now(stream: Stream) -> None:
    """Close a stream without waiting, which is all that closing a socket takes."""
    while (below := getattr(stream, "transport_stream", None)) is not None:
        stream = below
    if isinstance(stream, trio.SocketStream):
        stream.socket.close()
    elif isinstance(stream, trio.StapledStream):
        for half in (stream.send_stream, stream.receive_stream):
            half.close()
