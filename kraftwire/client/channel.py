"""One connection to one node: security, version negotiation, then one request after the other.

Every problem of the connection is an ApiError NETWORK_EXCEPTION or REQUEST_TIMED_OUT, or a
SecurityError where trying again is of no use; its text names the address. The connection is closed
by then. What secures it is imported for connections that want it, and to explain failures.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Self

import trio

from kraftwire.client.addresses import Address, address_text
from kraftwire.errors import ApiError, SecurityError, WireError
from kraftwire.limits import FRAME_SIZE_MAX
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.session import Aim, ClientSession
from kraftwire.wire.message import Message

if TYPE_CHECKING:
    from kraftwire.transport.client_security import ClientSecurity
    from kraftwire.transport.secured_stream import SecuredStream

_READ_BYTES = 64 * 1024
# How other kinds of server answer a request that they cannot read.
_OTHERS = (
    (b"HTTP/", "an HTTP server"),
    (b"<!DOCTYPE", "an HTTP server"),
    (b"<html", "an HTTP server"),
    (b"SSH-", "an SSH server"),
)
# A TLS listener answers plaintext with an alert, whose first bytes these are.
_TLS_ALERT = b"\x15\x03"

# What the system says of a name without an address; all else about it may pass.
_NO_ADDRESS = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
# Names that have had an address: whoever watches for long outlasts a moment without.
_known_hosts = set[str]()


class UnknownHostError(ApiError):
    """The name of a host has no address, and has had none in this process."""


class Channel:
    """A connection whose versions have been negotiated.

    Order: make it with `Channel.connect`, close it with `aclose`. Several tasks may call `request`;
    they are served one at a time.
    """

    def __init__(
        self,
        address: Address,
        stream: trio.SocketStream | SecuredStream,
        session: ClientSession,
    ) -> None:
        self.address = address
        self.session = session
        self._stream = stream
        self._turn = trio.Lock()
        self._is_closed = False
        # Whether a request has been answered: a listener with a login never does, without one.
        self._is_served = False

    @classmethod
    async def connect(
        cls,
        address: Address,
        *,
        client_id: str,
        timeout_s: float,
        frame_size_max: int = FRAME_SIZE_MAX,
        security: ClientSecurity | None = None,
        aim: Aim | None = None,
    ) -> Self:
        """Connect, verify and log in with `security`, and negotiate with the node that is meant.

        Raises: ApiError NETWORK_EXCEPTION if the node cannot be reached or closes the connection,
        REQUEST_TIMED_OUT if it does not answer in time, another code if it refuses; SecurityError
        if its port speaks another protocol, or certificates or the login are refused; WireError if
        it does not speak Kafka's protocol.
        """
        session = ClientSession(client_id, frame_size_max=frame_size_max, aim=aim)
        what = "connection"
        with trio.move_on_after(timeout_s):
            plain = await _open_stream(address)
            stream: trio.SocketStream | SecuredStream = plain
            if security is not None:
                what = f"end of the {security.settings.protocol} handshake"
                from kraftwire.transport.secured_stream import secure

                stream = await secure(security, plain, *address, client_id=client_id)
            what = "answer to ApiVersions"
            channel = cls(address, stream, session)
            try:
                await channel._negotiate()
            except WireError as error:
                await channel.aclose()
                raise _with_address(error, address) from None
            except BaseException:
                await channel.aclose()
                raise
            return channel
        problem = f"{address_text(address)}: no {what} in {timeout_s:.3g} s"
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, problem)

    @property
    def is_closed(self) -> bool:
        """Whether the connection can no longer be used."""
        return self._is_closed

    async def request(
        self, message: Message, *, timeout_s: float, version: int | None = None
    ) -> Message:
        """Send a request and wait for its answer.

        Raises: ApiError UNSUPPORTED_VERSION without sending anything; NETWORK_EXCEPTION or
        REQUEST_TIMED_OUT, after which the connection is closed; WireError for an answer that cannot
        be read. Error codes inside the answer are left to the caller.
        """
        async with self._turn:
            if self._is_closed:
                raise self._lost("the connection is closed")
            correlation_id, data = self.session.request(message, version=version)
            try:
                with trio.move_on_after(timeout_s):
                    if not isinstance(self._stream, trio.SocketStream):
                        await self._stream.renew()
                    await self._send(data)
                    answer = await self._answer_to(correlation_id)
                    self._is_served = True
                    return answer
            except BaseException:
                # Cancelled or failed halfway: the position in the stream is unknown.
                await self.aclose()
                raise
            await self.aclose()
            detail = f"{address_text(self.address)}: no answer in {timeout_s:.3g} s"
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, detail)

    async def aclose(self) -> None:
        """Close the connection at once; requests in flight are lost."""
        self._is_closed = True
        if isinstance(self._stream, trio.SocketStream):
            await trio.aclose_forcefully(self._stream)
        else:
            await self._stream.aclose()

    async def _negotiate(self) -> None:
        output = self.session.open()
        while not self.session.is_ready:
            await self._send(output)
            for _, answer in self.session.receive(await self._read()):
                raise _unexpected(answer)
            output = self.session.take_output()

    async def _answer_to(self, correlation_id: int) -> Message:
        while True:
            for found_id, answer in self.session.receive(await self._read()):
                if isinstance(answer, WireError):
                    raise answer
                if found_id != correlation_id:
                    raise _unexpected(answer)
                return answer

    async def _send(self, data: bytes) -> None:
        try:
            if data:
                await self._stream.send_all(data)
        except trio.BrokenResourceError:
            raise await self._ended("the node closed the connection") from None

    async def _read(self) -> bytes:
        try:
            data = bytes(await self._stream.receive_some(_READ_BYTES))
        except trio.BrokenResourceError:
            raise await self._ended("the node reset the connection") from None
        if not data:
            raise await self._ended("the node closed the connection")
        is_plain = isinstance(self._stream, trio.SocketStream)
        if is_plain and not self.session.is_ready and data.startswith(_TLS_ALERT):
            from kraftwire.transport.explain import not_plaintext

            raise await not_plaintext(address_text(self.address), *self.address, "PLAINTEXT")
        if not self.session.is_ready:
            self._ensure_kafka(data)
        return data

    def _ensure_kafka(self, data: bytes) -> None:
        """Check the first bytes of an answer. Raises: WireError if another kind of server sent
        them."""
        for start, name in _OTHERS:
            if data[: len(start)].upper() == start.upper():
                size = int.from_bytes(data[:4], "big")
                text = f"this is {name}, not Kafka (its answer, read as a frame length, is {size})"
                raise WireError(f"{address_text(self.address)}: {text}")

    async def _ended(self, problem: str) -> ApiError | SecurityError:
        """Explain the end of the connection: without any answer, the protocol may be wrong."""
        if self._is_served:
            return self._lost(problem)
        if not isinstance(self._stream, trio.SocketStream):
            return await self._stream.closed_early(problem)
        from kraftwire.transport.explain import closed_early

        where = address_text(self.address)
        return await closed_early(where, *self.address, "PLAINTEXT", problem=problem)

    def _lost(self, problem: str) -> ApiError:
        return ApiError(ErrorCode.NETWORK_EXCEPTION, f"{address_text(self.address)}: {problem}")


async def _open_stream(address: Address) -> trio.SocketStream:
    host, port = address
    try:
        stream = await trio.open_tcp_stream(host, port)
    except (socket.gaierror, UnicodeError) as error:
        # A UnicodeError: the name is not one that a host can have.
        has_none = isinstance(error, UnicodeError) or error.errno in _NO_ADDRESS
        kind = UnknownHostError if has_none and host not in _known_hosts else ApiError
        raise _unreachable(address, error, kind) from error
    except OSError as error:
        _known_hosts.add(host)
        raise _unreachable(address, error) from error
    _known_hosts.add(host)
    return stream


def _unreachable(
    address: Address, error: OSError | UnicodeError, kind: type[ApiError] = ApiError
) -> ApiError:
    if isinstance(error, OSError):
        reason = _reason(error)
    else:
        # The error's own text depends on the version of Python.
        reason = "not a valid host name: a label is empty, too long or not encodable"
    return kind(ErrorCode.NETWORK_EXCEPTION, f"{address_text(address)}: {reason}")


def _with_address(error: WireError, address: Address) -> WireError:
    """Add the address to an error in a node's first answer, which may not be Kafka's at all."""
    place, text = address_text(address), str(error)
    return error if text.startswith(place) else WireError(f"{place}: not Kafka's protocol: {text}")


def _reason(error: OSError) -> str:
    """Return the system's error, for the last address if a name has several."""
    cause: BaseException | None = error.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[-1]
    reported = cause if isinstance(cause, OSError) else error
    if reported.errno is not None and reported.errno > 0:
        return os.strerror(reported.errno)  # reported.strerror repeats the address
    return reported.strerror or str(reported)


def _unexpected(answer: Message | WireError) -> WireError:
    if isinstance(answer, WireError):
        return answer
    return WireError("an answer out of turn", message=answer.NAME)
