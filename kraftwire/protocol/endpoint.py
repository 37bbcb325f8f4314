"""Addresses: of a node, and of a listener as registrations, voter sets and responses carry it.

Source: Kafka's `Endpoint`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

# Host, without brackets, and port.
Address = tuple[str, int]

# The kinds of nodes that DescribeCluster describes. Source: Kafka's `EndpointType`.
ENDPOINT_BROKER, ENDPOINT_CONTROLLER = 1, 2

_PORT_MAX = 0xFFFF
_ADDRESS = r"(?:\[([0-9a-fA-F:.%\w]+)\]|([^:/\[\]@\s]*)):([0-9]{1,5})"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a listener, and its name in upper case."""

    listener: str
    host: str
    port: int

    @property
    def is_usable(self) -> bool:
        """Whether host and port can be those of a node; peers may send addresses without."""
        return bool(self.listener and self.host) and 0 < self.port < 65536


def parse_address(text: str) -> Address | None:
    """Read `host:port`, with an IPv6 address in brackets; None for any other text."""
    match = re.fullmatch(_ADDRESS, text.strip())
    host, port = (match[1] or match[2], int(match[3])) if match else ("", 0)
    return (host, port) if host and 0 < port <= _PORT_MAX else None


def parse_endpoint(text: str) -> Endpoint | None:
    """Read `NAME://host:port`; None for any other text. The host may be empty, the port 0."""
    name, _, rest = text.partition("://")
    match = re.fullmatch(_ADDRESS, rest) if re.fullmatch(r"[\w.-]+", name) else None
    if match is None or int(match[3]) > _PORT_MAX:
        return None
    return Endpoint(name.upper(), match[1] or match[2], int(match[3]))


def address_text(address: Address) -> str:
    """Format an address."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host, by its name or address."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
