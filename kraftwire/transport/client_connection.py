"""One connection to one node: TLS and login if wanted, version negotiation, then requests.

Each problem of a connection is an ApiError NETWORK_EXCEPTION or REQUEST_TIMED_OUT, a SecurityError
where trying again is of no use, or a WireError for bytes that are not Kafka's. Its text names the
address, and the connection is closed by then. What secures connections is imported only for those
that want it, and to explain failures.

Source: R-NET-2; Kafka's `NetworkClient`.
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Self

import trio

from kraftwire.errors import ApiError, SecurityError, WireError
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.protocol.endpoint import Address, address_text
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.session import Aim, ClientSession
from kraftwire.transport.streams import TLS_ALERT, Stream, Tap, TapFactory, close_now
from kraftwire.wire.message import Message

if TYPE_CHECKING:
    from kraftwire.transport.client_security import ClientSecurity
    from kraftwire.transport.secured_stream import SecuredStream

# Half of the maximum that a Fetch asks for: smaller reads cost more turns of the loop.
_READ_BYTES = 512 * 1024
# How other kinds of server answer a request that they cannot read.
_OTHER_SERVERS = (
    (b"HTTP/", "an HTTP server"),
    (b"<!DOCTYPE", "an HTTP server"),
    (b"<html", "an HTTP server"),
    (b"SSH-", "an SSH server"),
)

# The system's errors for a name without an address; its other errors may be transient.
_NO_ADDRESS = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))

_CLOSED = "the connection is closed"

OpenStream = Callable[[str, int], Awaitable[Stream]]
"""Connects to a host and a port. Raises: OSError, UnicodeError."""


class UnknownHostError(ApiError):
    """The name of a host has no address."""

    def __init__(self, host: str, detail: str) -> None:
        self.host = host
        super().__init__(ErrorCode.NETWORK_EXCEPTION, detail)


class _Lock:
    """A lock, which costs no round of the event loop while nobody else holds it."""

    def __init__(self) -> None:
        self._lock = trio.Lock()

    async def __aenter__(self) -> None:
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class ClientConnection:
    """A connection whose versions have been negotiated.

    Order: made by `connect`; call `close` at the end. Several tasks may call `request` at a time:
    requests are sent in the order of the calls, and each call gets the response with its
    correlation id.
    """

    def __init__(
        self,
        address: Address,
        stream: Stream,
        session: ClientSession,
        *,
        secured: SecuredStream | None = None,
        tap: Tap | None = None,
        explains: bool = False,
    ) -> None:
        self.address = address
        self.is_closed = False
        self._stream = stream
        self._session = session
        self._secured = secured
        self._tap = tap
        self._explains = explains
        self._sending = _Lock()
        # The task that holds it reads for all. Nodes answer in order, so the task that has waited
        # for longest reads its own response first.
        self._receiving = _Lock()
        self._responses: dict[int, Message] = {}
        # A response that cannot be read. Those that came with it are still returned.
        self._unreadable: WireError | None = None
        # Whether a request has been answered: a listener with a login never does, without one.
        self._is_served = False

    @classmethod
    async def connect(
        cls,
        address: Address,
        *,
        client_id: str,
        timeout_s: float = math.inf,
        security: ClientSecurity | None = None,
        aim: Aim | None = None,
        own_versions: Mapping[int, tuple[int, int]] | None = None,
        open_stream: OpenStream | None = None,
        make_tap: TapFactory | None = None,
        explains: bool = False,
    ) -> Self:
        """Connect, verify and log in with `security`, and negotiate with the node that is meant.

        `aim` and `own_versions` are those of `ClientSession`. With `explains`, a connection that
        ends before its first response is followed by probes of the port, and the error says which
        protocol that speaks.

        Raises: ApiError NETWORK_EXCEPTION if the node cannot be reached or closes the connection,
        REQUEST_TIMED_OUT if it does not answer in time, another code if it refuses; SecurityError
        if its port speaks another protocol, or certificates or the login are refused; WireError if
        it does not speak Kafka's protocol.
        """
        session = ClientSession(client_id, own_versions=own_versions, aim=aim)
        awaited = "connection"
        with trio.move_on_after(timeout_s):
            stream = await opened(address, open_stream or trio.open_tcp_stream)
            secured = None
            if security is not None:
                from kraftwire.transport.secured_stream import secure

                awaited = f"end of the {security.settings.protocol} handshake"
                assert isinstance(stream, trio.SocketStream)
                stream = secured = await secure(security, stream, *address, client_id=client_id)
            awaited = "answer to ApiVersions"
            tap = None if make_tap is None else make_tap(stream, False)
            connection = cls(
                address, stream, session, secured=secured, tap=tap, explains=explains
            )
            await connection._negotiate()
            return connection
        raise _timed_out(address, awaited, timeout_s)

    @property
    def api_versions(self) -> ApiVersionsResponse:
        """The node's response to ApiVersions."""
        assert self._session.api_versions is not None
        return self._session.api_versions

    async def request(
        self, message: Message, *, version_max: int | None = None, timeout_s: float = math.inf
    ) -> Message:
        """Send a request and return its response; error codes in it are left to the caller.

        It has the highest common version, or `version_max` if that is lower. Raises: ApiError
        UNSUPPORTED_VERSION without sending anything; otherwise as `connect`. Cancelling closes the
        connection, because the position in the stream is no longer known.
        """
        correlation_id = None
        try:
            with trio.move_on_after(timeout_s):
                async with self._sending:
                    if self.is_closed:
                        raise self._lost(_CLOSED)
                    version = self._session.version_of(message.API_KEY)
                    if version_max is not None:
                        version = min(version, version_max)
                    correlation_id, data = self._session.request(message, version=version)
                    await self._renew_login()
                    await self._send(data)
                return await self._receive(correlation_id)
            raise _timed_out(self.address, "answer", timeout_s)
        except BaseException as error:
            if correlation_id is not None:
                self.close()
            if isinstance(error, trio.ClosedResourceError):
                raise self._lost(_CLOSED) from None
            raise

    def close(self) -> None:
        """Close at once, from any task and in a cancelled scope; requests in flight are lost."""
        if not self.is_closed:
            self.is_closed = True
            close_now(self._stream)
            if self._tap is not None:
                self._tap.closed()

    async def _negotiate(self) -> None:
        try:
            await self._send(self._session.open())
            while not self._session.is_ready:
                await self._read()
        except WireError as error:
            # It may not be a node of Kafka at all.
            self.close()
            where, text = address_text(self.address), str(error)
            if text.startswith(where):
                raise
            raise WireError(f"{where}: not Kafka's protocol: {text}") from None
        except BaseException:
            self.close()
            raise

    async def _renew_login(self) -> None:
        """Log in again if the session ends soon (SEC-S13), once nothing is in flight."""
        if self._secured is not None and self._secured.is_renewal_due:
            async with self._receiving:
                await self._secured.renew()

    async def _receive(self, correlation_id: int) -> Message:
        async with self._receiving:
            while correlation_id not in self._responses:
                await self._read()
        return self._responses.pop(correlation_id)

    async def _read(self) -> None:
        """Read some bytes, and keep the responses that they complete."""
        if self._unreadable is not None:
            unreadable, self._unreadable = self._unreadable, None
            raise unreadable
        try:
            data = bytes(await self._stream.receive_some(_READ_BYTES))
        except trio.BrokenResourceError:
            raise await self._ended("the node reset the connection") from None
        if not data:
            raise await self._ended("the node closed the connection")
        if self._tap is not None:
            self._tap.received(data)
        if not self._session.is_ready:
            await self._ensure_kafka(data)
        for correlation_id, response in self._session.receive(data):
            if isinstance(response, WireError):
                self._unreadable = response
                break
            self._responses[correlation_id] = response
            self._is_served = True
        if output := self._session.take_output():
            await self._send(output)

    async def _send(self, data: bytes) -> None:
        try:
            await self._stream.send_all(data)
        except trio.BrokenResourceError:
            raise await self._ended("the node closed the connection") from None
        if self._tap is not None:
            self._tap.sent(data)

    async def _ensure_kafka(self, data: bytes) -> None:
        """Check the first bytes of a node. Raises: SecurityError, WireError if another kind of
        server sent them."""
        where = address_text(self.address)
        if self._explains and self._secured is None and data.startswith(TLS_ALERT):
            from kraftwire.transport.explain import not_plaintext

            raise await not_plaintext(self.address, "PLAINTEXT")
        for start, name in _OTHER_SERVERS:
            if data[: len(start)].upper() == start.upper():
                size = int.from_bytes(data[:4], "big")
                text = f"this is {name}, not Kafka (its answer, read as a frame length, is {size})"
                raise WireError(f"{where}: {text}")

    async def _ended(self, problem: str) -> ApiError | SecurityError:
        """Return why the node ended the connection: without any answer, the protocol may be wrong.
        """
        if self._is_served or not self._explains:
            return self._lost(problem)
        if self._secured is not None:
            return await self._secured.closed_early(problem)
        from kraftwire.transport.explain import closed_early

        return await closed_early(self.address, "PLAINTEXT", problem=problem)

    def _lost(self, problem: str) -> ApiError:
        return ApiError(ErrorCode.NETWORK_EXCEPTION, f"{address_text(self.address)}: {problem}")


async def opened(
    address: Address, open_stream: OpenStream = trio.open_tcp_stream
) -> Stream:
    """Connect, trying every address of the host.

    Raises: ApiError NETWORK_EXCEPTION from the OSError, UnknownHostError.
    """
    host, port = address
    where = address_text(address)
    try:
        return await open_stream(host, port)
    except UnicodeError as error:
        # The error's own text depends on the version of Python.
        problem = "not a valid host name: a label is empty, too long or not encodable"
        raise UnknownHostError(host, f"{where}: {problem}") from error
    except OSError as error:
        text = f"{where}: {_reason(error)}"
        if isinstance(error, socket.gaierror) and error.errno in _NO_ADDRESS:
            raise UnknownHostError(host, text) from error
        raise ApiError(ErrorCode.NETWORK_EXCEPTION, text) from error


def _reason(error: OSError) -> str:
    """Return the system's error, for the last address if a name has several."""
    cause: BaseException | None = error.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[-1]
    reported = cause if isinstance(cause, OSError) else error
    if reported.errno is not None and reported.errno > 0:
        return os.strerror(reported.errno)  # reported.strerror repeats the address
    return reported.strerror or str(reported)


def _timed_out(address: Address, awaited: str, timeout_s: float) -> ApiError:
    text = f"{address_text(address)}: no {awaited} in {timeout_s:.3g} s"
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, text)
