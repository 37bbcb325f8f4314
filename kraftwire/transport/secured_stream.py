"""One secured connection of a client: TLS, a login, or both; errors say what failed."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from kraftwire.errors import ApiError, SecurityError, WireError
from kraftwire.protocol.endpoint import address_text
from kraftwire.security.errors import LISTENER, PROTOCOL, SaslError
from kraftwire.security.sasl_client import SaslClient
from kraftwire.security.tls import TlsContext
from kraftwire.transport.client_security import ClientSecurity
from kraftwire.transport.explain import (
    closed_early,
    network_error,
    not_plaintext,
    sasl_failure,
    tls_failure,
)
from kraftwire.transport.login import Login
from kraftwire.transport.streams import TLS_ALERT
from kraftwire.wire.frame import LENGTH_SIZE, frame, frame_size

_Result = TypeVar("_Result")

_READ_BYTES = 64 * 1024
# The largest answer that a login takes: a list of APIs, of mechanisms, or a token.
_ANSWER_BYTES_MAX = 512 * 1024


async def secure(
    security: ClientSecurity, stream: trio.SocketStream, host: str, port: int, *, client_id: str
) -> SecuredStream:
    """Verify the peer, and log in; the stream is closed if that fails.

    Raises: SecurityError for what fails again, ApiError NETWORK_EXCEPTION otherwise.
    """
    secured = SecuredStream(security, stream, host, port, client_id)
    try:
        await secured.open()
    except BaseException:
        await secured.aclose()
        raise
    return secured


class SecuredStream:
    """A stream with TLS, a login, or both; errors say what failed.

    Order: made by `secure`. One task sends and one receives at a time; nobody does during `renew`.
    """

    def __init__(
        self,
        security: ClientSecurity,
        stream: trio.SocketStream,
        host: str,
        port: int,
        client_id: str,
    ) -> None:
        self._security = security
        self._address = (host, port)
        self._client_id = client_id
        self._stream: trio.SocketStream | trio.SSLStream[trio.SocketStream] = stream
        self._rest = bytearray()
        self._versions: dict[int, tuple[int, int]] | None = None
        # On the system's monotonic clock; None for a session without end.
        self._renew_at: float | None = None

    async def open(self) -> None:
        """Do the handshake and log in. Raises: as `secure`."""
        if self._security.tls is not None:
            await self._shake_hands(self._security.tls)
        await self._log_in()

    @property
    def is_renewal_due(self) -> bool:
        """Whether the session ends soon."""
        return self._renew_at is not None and time.monotonic() >= self._renew_at

    async def renew(self) -> None:
        """Log in again. Order: with no request in flight. Raises: as `secure`."""
        await self._log_in()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write everything. Raises: trio.BrokenResourceError, or SecurityError for an alert."""
        await self._explained(lambda: self._stream.send_all(data))

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Read at least one byte; nothing at the end. Raises: as `send_all`."""
        if self._rest:
            found, self._rest = bytes(self._rest), bytearray()
            return found
        return bytes(await self._explained(lambda: self._stream.receive_some(max_bytes)))

    async def aclose(self) -> None:
        """Close at once."""
        await trio.aclose_forcefully(self._stream)

    @property
    def transport_stream(self) -> trio.SocketStream | trio.SSLStream[trio.SocketStream]:
        """The stream below, for whoever has to close it without waiting."""
        return self._stream

    async def closed_early(self, problem: str) -> SecurityError | ApiError:
        """Explain why the node closed this connection without any answer."""
        own = self._security.settings.protocol
        return await closed_early(self._address, own, problem=problem)

    async def _explained(self, act: Callable[[], Awaitable[_Result]]) -> _Result:
        try:
            return await act()
        except trio.BrokenResourceError as error:
            # The node judges a client's certificate after the handshake, as the client sees it.
            if isinstance(error.__cause__, ssl.SSLError) and "ALERT" in str(error.__cause__):
                raise await self._tls_failure(error) from None
            raise

    async def _shake_hands(self, tls: TlsContext) -> None:
        assert isinstance(self._stream, trio.SocketStream)
        # Names in DNS may end with a dot, those in certificates do not.
        host = self._address[0].removesuffix(".")
        secured = trio.SSLStream(
            self._stream, tls.context, server_hostname=host, https_compatible=True
        )
        self._stream = secured
        try:
            await secured.do_handshake()
        except (trio.BrokenResourceError, ssl.SSLError) as error:
            raise await self._tls_failure(error) from None
        cipher = secured.cipher()
        if cipher is not None and not tls.allows(cipher[0]):
            place = self._security.settings.properties.place("ssl.cipher.suites")
            text = f"the node chose the cipher suite {cipher[0]}, which {place} does not allow"
            raise SecurityError(f"{address_text(self._address)}: {text}", is_usage=True)

    async def _tls_failure(self, error: Exception) -> SecurityError | ApiError:
        return await tls_failure(self._address, error, self._security)

    async def _log_in(self) -> None:
        login = self._security.login
        if login is None:
            return
        machine = await self._begin(login)
        try:
            request = await self._step(login, machine, None)
            while request is not None:
                await self.send_all(frame(request))
                answer = await self._answer(machine)
                request = await self._step(login, machine, answer)
        except SaslError as error:
            if error.check == LISTENER and self._versions is not None:
                # Nodes renew a session once a second at most (SEC-S11); a new connection is served.
                raise network_error(self._address, "the node does not renew the session") from None
            raise sasl_failure(self._address, error, self._security) from None
        except WireError as error:
            # The node would give the same answer again.
            unreadable = SaslError(PROTOCOL, f"an answer cannot be read: {error}")
            raise sasl_failure(self._address, unreadable, self._security) from None
        except trio.BrokenResourceError:
            problem = "the node reset the connection during the login"
            raise await self.closed_early(problem) from None
        self._versions = machine.versions
        after_ms = machine.renew_after_ms(random.random())
        self._renew_at = None if after_ms is None else time.monotonic() + after_ms / 1000

    async def _begin(self, login: Login) -> SaslClient:
        if login.is_slow:
            return await trio.to_thread.run_sync(
                login.begin, self._address[0], self._client_id, self._versions,
                abandon_on_cancel=True,
            )  # fmt: skip
        return login.begin(self._address[0], self._client_id, self._versions)

    async def _step(
        self, login: Login, machine: SaslClient, answer: bytes | None
    ) -> bytes | None:
        if login.is_slow:
            return await trio.to_thread.run_sync(machine.next_request, answer)
        return machine.next_request(answer)

    async def _answer(self, machine: SaslClient) -> bytes:
        """Read one frame; what follows it stays for `receive_some`."""
        while True:
            if len(self._rest) >= LENGTH_SIZE:
                if self._security.tls is None and self._rest.startswith(TLS_ALERT):
                    own = self._security.settings.protocol
                    raise await not_plaintext(self._address, own)
                end = LENGTH_SIZE + frame_size(self._rest, limit=_ANSWER_BYTES_MAX)
                if len(self._rest) >= end:
                    payload = bytes(self._rest[LENGTH_SIZE:end])
                    del self._rest[:end]
                    return payload
            data = await self._explained(lambda: self._stream.receive_some(_READ_BYTES))
            if not data:
                problem = f"the node closed the connection instead of answering {machine.waits_for}"
                raise await self.closed_early(problem)
            self._rest += data
