"""TLS handshakes of the connections that a node accepts: paced, and bounded in number.

A step of a handshake takes the thread that also carries votes: half a millisecond, or several with
a long chain of certificates. So in a round of the event loop one connection takes one step, and the
next one comes after twice the time that it took; a peer may send only so many bytes. A connection
that sends nothing costs nothing but itself, and those that stop in the middle give way to others:
when too many are unfinished, the one that has made the node wait for longest is closed.

Source: SEC-T16 to SEC-T20.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable

import trio

from kraftwire.errors import SecurityError
from kraftwire.security.tls import TlsContext
from kraftwire.transport.paced_stream import PacedStream

# An honest peer answers within a round trip. In that time a thread takes fewer steps than this, so
# it is not the one that has kept the node waiting for longest.
UNFINISHED_MAX = 256

# A ClientHello and a chain of eight certificates, which is as many as Java's server takes. Each
# certificate costs the node a fifth of a millisecond, whether it is trusted or not.
HANDSHAKE_BYTES_MAX = 16 * 1024

# Handshakes get at most a third of the thread.
_PAUSE_FACTOR = 2.0

# A client that has heard an alert closes; one that has not is not waited for.
_ALERT_SECONDS = 1.0
_READ_BYTES = 16 * 1024

# The type of the record that a handshake begins with, and what Java's server answers to others: a
# fatal alert, internal_error.
_HANDSHAKE_RECORD = 22
_INTERNAL_ERROR = bytes.fromhex("15030300020250")

# OpenSSL's buffers between a stream and its socket keep the size that they once had, so little is
# read and encrypted at a time.
_ENCRYPTED_READ_BYTES = 16 * 1024
PIECE_BYTES = 32 * 1024


class Handshakes:
    """The handshakes of all listeners of a node. `unfinished` counts those that have begun.

    `clock` measures how long a step takes, in seconds.
    """

    def __init__(
        self,
        unfinished_max: int = UNFINISHED_MAX,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.unfinished = 0
        self._clock = clock
        self._step_began: float | None = None
        self._next_step_at = 0.0
        self._unfinished_max = unfinished_max
        self._turn = trio.Lock()
        # Those that wait for their peers, the longest wait first.
        self._waiting: dict[_Transport, None] = {}

    async def accept(
        self, stream: PacedStream, tls: TlsContext
    ) -> tuple[AcceptedStream, bytes | None]:
        """Do the handshake; returns the stream to use, and the client's certificate in DER, if any.

        A missing close_notify is just the end of the stream (SEC-T20). The caller limits the time,
        and closes the stream. Raises: SecurityError if the peer does not pass, closes, or has to
        give way.
        """
        first = await _first_bytes(stream)
        transport = _Transport(stream, self, first)
        await self._next_turn()
        secured = trio.SSLStream[trio.abc.Stream](
            transport, tls.context, server_side=True, https_compatible=True
        )
        accepted = AcceptedStream(secured, transport)
        try:
            await self._shake_hands(secured, transport)
        except (trio.BrokenResourceError, ssl.SSLError) as error:
            await _send_alert(stream, secured, is_tls=first[0] == _HANDSHAKE_RECORD)
            raise _refused(_problem(error)) from None
        if transport.scope.cancelled_caught:
            raise _refused("given up, because too many others have begun")
        cipher = secured.cipher()
        if cipher is not None and not tls.allows(cipher[0]):
            raise _refused(f"the cipher suite {cipher[0]} is not allowed")
        return accepted, secured.getpeercert(binary_form=True)

    async def _shake_hands(
        self, secured: trio.SSLStream[trio.abc.Stream], transport: _Transport
    ) -> None:
        self.unfinished += 1
        try:
            self._make_room()
            with transport.scope:
                await secured.do_handshake()
        finally:
            self.end_step()
            transport.is_paced = False
            self.unfinished -= 1

    async def receive(self, transport: _Transport, max_bytes: int | None) -> bytes | bytearray:
        """Read for an unfinished handshake, then wait for a turn to take the next step."""
        # Requests may follow the handshake at once: what is beyond the limit stays in the socket.
        left = HANDSHAKE_BYTES_MAX - transport.received
        if left == 0:
            raise _refused(f"the peer sent more than {HANDSHAKE_BYTES_MAX} bytes")
        self._waiting[transport] = None
        try:
            data = await transport.transport_stream.receive_some(min(max_bytes or left, left))
        finally:
            self._waiting.pop(transport, None)
        transport.received += len(data)
        await self._next_turn()
        return data

    async def _next_turn(self) -> None:
        """Return when the next step may be taken, which then follows in the same round."""
        # The lock passes to one task in a round of the loop.
        async with self._turn:
            await trio.sleep_until(self._next_step_at)
            self._step_began = self._clock()

    def end_step(self) -> None:
        """Let the next step wait in proportion to the last one; no effect between steps."""
        if self._step_began is not None:
            took = self._clock() - self._step_began
            self._step_began = None
            self._next_step_at = trio.current_time() + _PAUSE_FACTOR * took

    def _make_room(self) -> None:
        excess = self.unfinished - self._unfinished_max
        for transport in list(self._waiting)[: max(0, excess)]:
            del self._waiting[transport]
            transport.scope.cancel()


class AcceptedStream(trio.abc.Stream):
    """A stream with TLS, which keeps 64 KiB at most of what is sent."""

    def __init__(self, secured: trio.SSLStream[trio.abc.Stream], transport: _Transport) -> None:
        self.transport_stream = secured
        self._transport = transport

    def __del__(self) -> None:
        """Free TLS with the last use: trio's stream refers to itself, so it would stay for long.

        A node collects garbage rarely, and each handshake that fails leaves 50 KiB.
        """
        vars(self.transport_stream).clear()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt it piece by piece, in one round of the event loop as ever, then send it."""
        if len(data) <= PIECE_BYTES:
            await self.transport_stream.send_all(data)
            return
        view = memoryview(data)
        self._transport.held = []
        for at in range(0, len(view), PIECE_BYTES):
            await self.transport_stream.send_all(view[at : at + PIECE_BYTES])
        await self._transport.release()

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until there is room."""
        await self.transport_stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Read at least one byte; nothing at the end."""
        return await self.transport_stream.receive_some(max_bytes)

    async def aclose(self) -> None:
        """Close it."""
        await self.transport_stream.aclose()


class _Transport(trio.abc.Stream):
    """A socket whose reads are paced until the handshake is done.

    While `held` is a list, what is sent is collected there, until `release`.
    """

    held: list[bytes] | None = None

    def __init__(self, stream: PacedStream, handshakes: Handshakes, first: bytes) -> None:
        """`first` was read of it already."""
        self.transport_stream = stream
        self.scope = trio.CancelScope()
        self.is_paced = True
        self.received = len(first)
        self._first = first
        self._handshakes = handshakes

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self.is_paced:
            self._handshakes.end_step()
        if self.held is not None:
            self.held.append(bytes(data))
            return
        await self.transport_stream.send_all(data)

    async def release(self) -> None:
        data, self.held = b"".join(self.held or ()), None
        await self.transport_stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self.transport_stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if self._first:
            first, self._first = self._first, b""
            return first
        if self.is_paced:
            self._handshakes.end_step()
            return await self._handshakes.receive(self, max_bytes)
        return await self.transport_stream.receive_some(_ENCRYPTED_READ_BYTES)

    async def aclose(self) -> None:
        await self.transport_stream.aclose()


async def _send_alert(
    stream: PacedStream, secured: trio.SSLStream[trio.abc.Stream], *, is_tls: bool
) -> None:
    """Tell the client why, as Kafka does where it can (SEC-T16).

    OpenSSL has no alert for bytes that are not TLS at all, and trio keeps that of a failed
    handshake to itself. The client may still be sending: to close before it has stopped would reset
    the connection, and the alert would be lost.
    """
    pending = getattr(secured, "_outgoing", None)
    alert = pending.read() if isinstance(pending, ssl.MemoryBIO) else b""
    if not alert and not is_tls:
        alert = _INTERNAL_ERROR
    with trio.move_on_after(_ALERT_SECONDS):
        try:
            await stream.send_all(alert)
            await stream.send_eof()
            while await stream.receive_some(_READ_BYTES):
                pass
        except trio.BrokenResourceError:
            pass


async def _first_bytes(stream: PacedStream) -> bytes:
    """Read what comes first. Raises: SecurityError if nothing does."""
    try:
        data = bytes(await stream.receive_some(HANDSHAKE_BYTES_MAX))
    except trio.BrokenResourceError:
        data = b""
    if not data:
        raise _refused("the peer closed the connection")
    return data


def _refused(problem: str) -> SecurityError:
    return SecurityError(f"TLS handshake: {problem}", is_usage=False)


def _problem(error: Exception) -> str:
    cause = error if isinstance(error, ssl.SSLError) else error.__cause__
    if not isinstance(cause, ssl.SSLError) or "EOF" in str(cause):
        return "the peer closed the connection"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the peer's certificate does not pass: {cause.verify_message}"
    reason = (cause.reason or str(cause)).replace("_", " ").lower()
    return f"{reason}: is this a client without TLS?" if "version number" in reason else reason
