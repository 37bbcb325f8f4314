"""Addresses: of a node, and of a listener as registrations, voter sets and responses carry it.

Source: Kafka's `Endpoint`.
"""

from __future__ import annotations

from dataclasses import dataclass

# Host, without brackets, and port.
Address = tuple[str, int]


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


def address_text(address: Address) -> str:
    """Format an address."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
