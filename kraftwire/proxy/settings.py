"""What a proxy is told: where the cluster is, where it listens, how both sides are secured."""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.errors import UsageError
from kraftwire.properties import Properties
from kraftwire.protocol.endpoint import Address, is_loopback, parse_endpoint
from kraftwire.security.credentials import GSSAPI
from kraftwire.security.settings import PLAINTEXT, PROTOCOLS, SSL, SecuritySettings, client_settings
from kraftwire.security.tls import TlsContext, server_tls
from kraftwire.transport.client_security import ClientSecurity

_PROTOCOL = "security.protocol"
_CLIENT_AUTH = "ssl.client.auth"
_KEYSTORES = ("ssl.keystore.location", "ssl.keystore.key")
WILDCARDS = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """A proxy before it starts. Port 0 of `listen` lets the system choose.

    `advertised_host` is the host by which clients reach the proxy, None for that of `listen`.
    `upstream_security` secures its connections to nodes, `listener_tls` its own listeners; None for
    connections in clear. `capture` is a file.
    """

    upstream: tuple[Address, ...]
    listen: Address = ("127.0.0.1", 0)
    advertised_host: str | None = None
    upstream_security: ClientSecurity | None = None
    listener_tls: TlsContext | None = None
    capture: str | None = None
    control: Address | None = None
    control_token: str | None = None

    def __post_init__(self) -> None:
        for option, address in (("--listen", self.listen), ("--control", self.control)):
            if address is not None and address[0] in WILDCARDS and not self.advertised_host:
                problem = "every address is listened to, so clients need --advertised-host"
                raise UsageError(f"{option} {address[0]}: {problem}")
        if self.control is None and self.control_token is not None:
            raise UsageError("--control-token-file is for --control, which is not there")
        if self.control and self.control_token is None and not is_loopback(self.control[0]):
            problem = "others than this machine may reach it, so it needs --control-token-file"
            raise UsageError(f"--control {self.control[0]}: {problem}")


def listen_address(text: str, option: str = "--listen") -> Address:
    """Read where to listen, a host and a port. Raises: UsageError."""
    endpoint = parse_endpoint(f"LISTEN://{text}")
    if endpoint is None:
        raise UsageError(f"{option}: expected host:port, found {text!r}")
    return endpoint.host, endpoint.port


def upstream_security(properties: Properties) -> ClientSecurity | None:
    """Return what a client's properties say about connections; None for those in clear.

    Raises: UsageError, with file, line and key, for what cannot be used or passed on.
    """
    settings = client_settings(properties)
    if settings.protocol == PLAINTEXT:
        return None
    if settings.mechanism == GSSAPI:
        problem = "GSSAPI is not for a proxy: a ticket is for one host, and nodes have several"
        raise properties.error(settings.mechanism_key, problem)
    for key in _KEYSTORES:
        if settings.is_tls and properties.get(key):
            problem = "mutual TLS is not for a proxy: nodes would take each client for this one"
            raise properties.error(key, problem)
    return ClientSecurity(settings)


def listener_tls(properties: Properties) -> TlsContext | None:
    """Return what properties say about the proxy's own listeners; None for those in clear.

    Raises: UsageError, with file, line and key, for what cannot be used.
    """
    protocol = (properties.get(_PROTOCOL) or SSL).upper()
    if protocol not in PROTOCOLS:
        raise properties.error(_PROTOCOL, f"expected {SSL} or {PLAINTEXT}, found {protocol!r}")
    if protocol not in (PLAINTEXT, SSL):
        problem = f"{protocol} is not for a proxy: it has no users; logins pass to the nodes"
        raise properties.error(_PROTOCOL, problem)
    if protocol == PLAINTEXT:
        return None
    if (properties.get(_CLIENT_AUTH) or "none").lower() != "none":
        problem = "mutual TLS is not for a proxy: it cannot show a client's certificate to nodes"
        raise properties.error(_CLIENT_AUTH, problem)
    return server_tls(SecuritySettings(SSL, properties))
