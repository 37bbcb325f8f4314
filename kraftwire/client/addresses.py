"""Lists of addresses as people write them: ``host:port,host:port``."""

from __future__ import annotations

from collections.abc import Iterable

from kraftwire.errors import UsageError
from kraftwire.protocol.endpoint import Address, parse_address, parse_endpoint


def parse_addresses(text: str | Iterable[str], option: str) -> tuple[Address, ...]:
    """Parse one or more comma-separated lists of addresses; duplicates are dropped.

    `option` names their origin in messages. IPv6 hosts are in brackets. Raises: UsageError for an
    empty list or an invalid address.
    """
    texts = [text] if isinstance(text, str) else list(text)
    parts = [part.strip() for each in texts for part in each.split(",")]
    found = dict.fromkeys(_parse(part, option) for part in parts if part)
    if not found:
        raise UsageError(f"{option}: expected host:port, found an empty list")
    return tuple(found)


def _parse(text: str, option: str) -> Address:
    # Kafka takes a listener's name before the address as well: CONTROLLER://host:port.
    endpoint = parse_endpoint(text)
    if endpoint is not None and endpoint.is_usable:
        return endpoint.host, endpoint.port
    address = parse_address(text)
    if address is None:
        raise UsageError(f"{option}: expected host:port, found {text!r}")
    return address
