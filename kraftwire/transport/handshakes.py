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
from kraftwire.transport.accepted_stream import AcceptedStream
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


class _Handshake:
    """One handshake: `received_bytes` so far, and the scope in which it may be given up."""

    def __init__(self, stream: PacedStream, received_bytes: int) -> None:
        self.stream = stream
        self.received_bytes = received_bytes
        self.scope = trio.CancelScope()


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
        # Handshakes that wait for their peers, the longest wait first.
        self._waiting: dict[_Handshake, None] = {}

    async def accept(
        self, stream: PacedStream, tls: TlsContext
    ) -> tuple[AcceptedStream, bytes | None]:
        """Do the handshake; returns the stream to use, and the client's certificate in DER, if any.

        A missing close_notify is just the end of the stream (SEC-T20). The caller limits the time,
        and closes the stream. Raises: SecurityError if the peer does not pass, closes, or has to
        give way.
        """
        first = await _first_bytes(stream)
        handshake = _Handshake(stream, len(first))
        await self._next_turn()
        accepted = AcceptedStream(stream, tls.context)
        accepted.feed(first)
        try:
            await self._shake_hands(accepted, handshake)
        except (trio.BrokenResourceError, ssl.SSLError) as error:
            is_tls = first[0] == _HANDSHAKE_RECORD
            await _send_alert(stream, accepted.take_outgoing(), is_tls=is_tls)
            raise _refused(_problem(error)) from None
        if handshake.scope.cancelled_caught:
            raise _refused("given up, because too many others have begun")
        suite = accepted.cipher_suite
        if suite is not None and not tls.allows(suite):
            raise _refused(f"the cipher suite {suite} is not allowed")
        return accepted, accepted.peer_certificate

    async def _shake_hands(self, accepted: AcceptedStream, handshake: _Handshake) -> None:
        self.unfinished += 1
        try:
            self._make_room()
            with handshake.scope:
                while not accepted.step():
                    self.end_step()
                    await accepted.flush()
                    accepted.feed(await self.receive(handshake))
                self.end_step()
                await accepted.flush()
        finally:
            self.end_step()
            self.unfinished -= 1

    async def receive(self, handshake: _Handshake) -> bytes | bytearray:
        """Read for an unfinished handshake, then wait for a turn to take the next step."""
        # Requests may follow the handshake at once: what is beyond the limit stays in the socket.
        left = HANDSHAKE_BYTES_MAX - handshake.received_bytes
        if left == 0:
            raise _refused(f"the peer sent more than {HANDSHAKE_BYTES_MAX} bytes")
        self._waiting[handshake] = None
        try:
            data = await handshake.stream.receive_some(left)
        finally:
            self._waiting.pop(handshake, None)
        handshake.received_bytes += len(data)
        await self._next_turn()
        return data

    async def _next_turn(self) -> None:
        """Return when the next step may be taken, which then follows in the same round."""
        # The lock passes to one task in a round of the loop.
        async with self._turn:
            await trio.sleep_until(self._next_step_at)
            self._step_began = self._clock()

    def end_step(self) -> None:
        """Delay the next step in proportion to the last one; no effect between steps."""
        if self._step_began is not None:
            took = self._clock() - self._step_began
            self._step_began = None
            self._next_step_at = trio.current_time() + _PAUSE_FACTOR * took

    def _make_room(self) -> None:
        excess = self.unfinished - self._unfinished_max
        for handshake in list(self._waiting)[: max(0, excess)]:
            del self._waiting[handshake]
            handshake.scope.cancel()


async def _send_alert(stream: PacedStream, alert: bytes, *, is_tls: bool) -> None:
    """Send the client the reason, as Kafka does where it can (SEC-T16).

    OpenSSL has no alert for bytes that are not TLS at all. The client may still be sending: to
    close before it has stopped would reset the connection, and the alert would be lost.
    """
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
