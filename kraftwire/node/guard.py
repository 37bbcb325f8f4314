"""The checks of a connection before its first request: TLS, a login, or both.

Source: Kafka's `SslChannelBuilder` and `SaslChannelBuilder`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kraftwire.errors import SecurityError, UsageError
from kraftwire.security.mapping import PrincipalMapper
from kraftwire.security.principal import ANONYMOUS, Principal, host_text
from kraftwire.security.sasl_server import LoginSettings, SaslServer
from kraftwire.transport.paced_stream import PacedStream
from kraftwire.transport.streams import Stream

Accept = Callable[[PacedStream], Awaitable[tuple[Stream, bytes | None]]]
"""Shakes hands; returns the stream to use, and the client's certificate in DER, if any."""


class Guard:
    """The guard of one listener; each connection passes it once.

    `accept` shakes hands; it and `logins` are None where the listener has no TLS, or no logins.
    With TLS alone the certificate's name, which `subject_of` reads and `mapper` maps, is the
    principal.
    """

    def __init__(
        self,
        accept: Accept | None,
        logins: LoginSettings | None,
        mapper: PrincipalMapper,
        subject_of: Callable[[bytes], str],
    ) -> None:
        self._accept = accept
        self._logins = logins
        self._mapper = mapper
        self._subject_of = subject_of

    @property
    def has_tls(self) -> bool:
        """Whether the listener has TLS."""
        return self._accept is not None

    @property
    def receive_max_bytes(self) -> int:
        """The longest frame before the end of a login (SEC-S7)."""
        return 0 if self._logins is None else self._logins.receive_max_bytes

    def login(self) -> SaslServer | None:
        """Return a connection's side of a login; None if the listener has none."""
        return None if self._logins is None else SaslServer(self._logins)

    async def enter(self, stream: Stream) -> tuple[Stream, Principal]:
        """Shake hands if the listener has TLS; returns the stream to use, and who the peer is.

        Raises: SecurityError if the handshake fails or no mapping rule applies.
        """
        if self._accept is None:
            return stream, ANONYMOUS
        assert isinstance(stream, PacedStream)
        secured, certificate = await self._accept(stream)
        if certificate is None or self._logins is not None:
            return secured, ANONYMOUS
        try:
            return secured, Principal("User", self._mapper.name(self._subject_of(certificate)))
        except UsageError as error:
            raise SecurityError(str(error), is_usage=False) from None


def host_of(peer: str) -> str:
    """Return the address in ``address:port`` as ACLs have it; empty for what is no address."""
    try:
        return host_text(peer.rpartition(":")[0])
    except UsageError:
        return ""
