"""Principals: who a peer is, from a login, a certificate's name, or an Envelope.

Source: `KafkaPrincipal`, `DefaultKafkaPrincipalBuilder`, `SslPrincipalMapper`; rules SEC-T24,
SEC-A13.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field

from kraftwire.errors import UsageError, WireError
from kraftwire.messages.default_principal_data import DefaultPrincipalData

_VERSION = struct.Struct(">h")
_DATA_VERSION = 0
_GROUPS = struct.Struct(">8H")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a peer is; printed as in `super.users` and ACLs.

    `is_token`: the peer logged in with a delegation token, which says nothing of its rights.
    """

    type: str
    name: str
    is_token: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")
"""A peer of a listener that asks for no login and no certificate."""


def parse_principal(text: str) -> Principal:
    """Read ``Type:name``; the name may contain colons. Raises: UsageError."""
    kind, colon, name = text.partition(":")
    if not colon or not kind or not name:
        raise UsageError(f"{text!r} is no principal: expected Type:name, such as User:alice")
    return Principal(kind, name)


def encode_principal(principal: Principal) -> bytes:
    """Return a principal as an Envelope carries it."""
    data = DefaultPrincipalData(
        type=principal.type, name=principal.name, token_authenticated=principal.is_token
    )
    return _VERSION.pack(_DATA_VERSION) + data.encode(_DATA_VERSION)


def decode_principal(data: bytes) -> Principal:
    """Read the principal of an Envelope. Raises: WireError for another version or bad bytes."""
    if len(data) < _VERSION.size or _VERSION.unpack_from(data)[0] != _DATA_VERSION:
        raise WireError("a principal of an unknown version", message="DefaultPrincipalData")
    found, end = DefaultPrincipalData.decode(data, _DATA_VERSION, _VERSION.size)
    if end != len(data):
        raise WireError("bytes after a principal", message="DefaultPrincipalData", offset=end)
    return Principal(found.type, found.name, found.token_authenticated)


def host_text(address: bytes | str) -> str:
    """Return an address as Java writes it, which is what ACLs are compared with.

    IPv6 is not shortened: ``0:0:0:0:0:0:0:1``. An IPv4 address in IPv6 is one of IPv4. Raises:
    UsageError for what is no address, such as another number of bytes than 4 or 16.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        shown = address if isinstance(address, str) else f"of {len(address)} bytes"
        raise UsageError(f"an address {shown}: expected one of IPv4 or IPv6") from None
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    scope = f"%{found.scope_id}" if found.scope_id else ""
    return ":".join(f"{group:x}" for group in _GROUPS.unpack(found.packed)) + scope
