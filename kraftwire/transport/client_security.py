"""How a client secures its connections: one context and one login, made once from properties."""

from __future__ import annotations

from kraftwire.security.reloading import ReloadedTls
from kraftwire.security.settings import SecuritySettings
from kraftwire.security.tls import TlsContext, client_tls
from kraftwire.transport.login import Login, login_of


class ClientSecurity:
    """The context and the login of all connections of a client.

    `warnings` are for people, a line each. `stores` is what follows the stores' files, None without
    TLS. Raises: UsageError, with file, line and key, for
    settings that cannot be used; no connection is made.
    """

    def __init__(self, settings: SecuritySettings) -> None:
        self.settings = settings
        self.stores = ReloadedTls(settings, client_tls) if settings.is_tls else None
        self.login: Login | None = login_of(settings)
        self.warnings = settings.warnings + (self.tls.warnings if self.tls else ())

    @property
    def tls(self) -> TlsContext | None:
        """The context of new connections; None without TLS."""
        return self.stores.tls if self.stores is not None else None

    def __repr__(self) -> str:
        return f"ClientSecurity({self.settings.protocol})"
