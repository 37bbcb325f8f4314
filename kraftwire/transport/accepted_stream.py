"""The node's side of one connection with TLS: OpenSSL works in memory, over a stream of its own.

trio's stream for TLS refers to itself, so that each connection would stay until garbage is
collected, and keeps the alert of a failed handshake to itself.

Source: SEC-T16, SEC-T20.
"""

from __future__ import annotations

import ssl

import trio

from kraftwire.transport.paced_stream import PacedStream

# OpenSSL's buffers keep the size that they once had, so little is read and encrypted at a time.
_ENCRYPTED_READ_BYTES = 16 * 1024
PIECE_BYTES = 32 * 1024

_READ_BYTES = 64 * 1024


class AcceptedStream:
    """A stream with TLS, which keeps 64 KiB at most of what is sent.

    Order: `feed` what the peer sends to `step` and `flush` until the handshake is done, then
    `send_all` and `receive_some`, both in one task.
    """

    def __init__(self, stream: PacedStream, context: ssl.SSLContext) -> None:
        self.transport_stream = stream
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    @property
    def cipher_suite(self) -> str | None:
        """OpenSSL's name of the cipher suite; None before the handshake."""
        cipher = self._tls.cipher()
        return None if cipher is None else cipher[0]

    @property
    def peer_certificate(self) -> bytes | None:
        """The client's certificate in DER, if it has sent one."""
        return self._tls.getpeercert(binary_form=True)

    def feed(self, data: bytes | bytearray) -> None:
        """Add encrypted bytes of the peer; none at the end of the stream."""
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def step(self) -> bool:
        """Take the next step of the handshake; returns whether it is done. Raises: ssl.SSLError."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def take_outgoing(self) -> bytes:
        """Return the encrypted bytes that are to be sent; each is returned once."""
        return self._outgoing.read()

    async def flush(self) -> None:
        """Send the encrypted bytes that there are."""
        if self._outgoing.pending:
            await self.transport_stream.send_all(self.take_outgoing())

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt piece by piece, in one round of the event loop, and send. Raises:
        trio.BrokenResourceError."""
        view = memoryview(data)
        encrypted: list[bytes] = []
        try:
            while view:
                view = view[self._tls.write(view[:PIECE_BYTES]) :]
                encrypted.append(self.take_outgoing())
        except ssl.SSLError as error:
            raise trio.BrokenResourceError from error
        await self.transport_stream.send_all(b"".join(encrypted))

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Read at least one byte; nothing at the end, which need not be announced. Raises:
        trio.BrokenResourceError."""
        has_waited = False
        while True:
            try:
                data = self._tls.read(max_bytes or _READ_BYTES)
            except ssl.SSLWantReadError:
                await self.flush()
                self.feed(await self.transport_stream.receive_some(_ENCRYPTED_READ_BYTES))
                has_waited = True
                continue
            except (ssl.SSLEOFError, ssl.SSLSyscallError):
                data = b""
            except ssl.SSLError as error:
                raise trio.BrokenResourceError from error
            await self.flush()
            if not has_waited:
                # Requests that have been read already must not keep other tasks waiting.
                await trio.lowlevel.checkpoint()
            return data
