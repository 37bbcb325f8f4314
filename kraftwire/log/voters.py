"""The voters that a directory is formatted with: `id@host:port:directory`, comma-separated.

Source: Kafka's `DynamicVoters` and `DynamicVoter`.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from kraftwire.errors import UsageError, WireError
from kraftwire.wire.fast import ZERO_UUID
from kraftwire.wire.json_form import uuid_from_text

__all__ = ["InitialVoter", "parse_initial_voters"]

_VOTER = re.compile(r"([^@]*)@(\[[^\]]*\]|[^:\[\]]*):([^:]*):(.*)")
_PORT_MAX = 0xFFFF
_ID_MAX = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class InitialVoter:
    """A voter of a new quorum, with the endpoint of its first controller listener."""

    id: int
    directory_id: bytes
    host: str
    port: int


def parse_initial_voters(text: str) -> tuple[InitialVoter, ...]:
    """The voters in a text. Order: by id. Raises: UsageError with the part that is wrong."""
    voters: dict[int, InitialVoter] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        voter = _parse(part)
        if voter.id in voters:
            raise UsageError(f"Node id {voter.id} was specified more than once.")
        voters[voter.id] = voter
    if not voters:
        raise UsageError("No voters given.")
    return tuple(voters[id] for id in sorted(voters))


def _parse(text: str) -> InitialVoter:
    match = _VOTER.fullmatch(text)
    if match is None:
        raise UsageError(f"expected id@host:port:directory, found {text!r}")
    try:
        directory_id = uuid_from_text(match[4])
    except WireError:
        directory_id = ZERO_UUID
    # Kafka takes the zero uuid here, but no node starts with it (R-ID-1).
    if directory_id == ZERO_UUID:
        raise UsageError(f"expected a directory id of 22 characters, found {match[4]!r}")
    return InitialVoter(
        id=_number(match[1], 0, _ID_MAX, "node id", text),
        directory_id=directory_id,
        host=_host(match[2], text),
        port=_number(match[3], 1, _PORT_MAX, "port", text),
    )


def _number(text: str, low: int, high: int, what: str, voter: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and low <= int(text) <= high):
        raise UsageError(f"expected a {what} from {low} to {high}, found {text!r} in {voter!r}")
    return int(text)


def _host(text: str, voter: str) -> str:
    """The host as Java writes it: an IPv6 address without brackets and with all its zeros."""
    if not text.startswith("["):
        if not text:
            raise UsageError(f"expected a host, found none in {voter!r}")
        return text
    try:
        groups = ipaddress.IPv6Address(text[1:-1]).exploded.split(":")
    except ValueError:
        raise UsageError(f"expected an IPv6 address, found {text!r} in {voter!r}") from None
    return ":".join(f"{int(group, 16):x}" for group in groups)
