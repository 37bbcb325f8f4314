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
    """Parse the voters in a text; returns them by id.

    Raises: UsageError with kafka-storage's message and the invalid part.
    """
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
    try:
        return _voter(text)
    except UsageError as error:
        raise UsageError(
            f"{error} Expected id@host:port:directory, found {text!r}."
        ) from error


def _voter(text: str) -> InitialVoter:
    id_text, at, rest = text.partition("@")
    if not at:
        raise UsageError("No @ found in dynamic voter string.")
    if not id_text:
        raise UsageError("Invalid @ at beginning of dynamic voter string.")
    node_id = _number(id_text, "node id")
    if not 0 <= node_id <= _ID_MAX:
        raise UsageError(f"Invalid node id {node_id} in dynamic voter string.")
    host, rest = _split_host(rest)
    port_text, colon, directory = rest.partition(":")
    if not colon:
        raise UsageError("No colon following port could be found.")
    port = _number(port_text, "port")
    # Kafka accepts port 0 here, with which no peer can reach the voter.
    if not 1 <= port <= _PORT_MAX:
        raise UsageError(f"Invalid port {port} in dynamic voter string.")
    return InitialVoter(node_id, _directory_id(directory), host, port)


def _number(text: str, what: str) -> int:
    if re.fullmatch(r"-?[0-9]{1,10}", text) is None:
        raise UsageError(f"Failed to parse {what} in dynamic voter string.")
    return int(text)


def _directory_id(text: str) -> bytes:
    try:
        directory_id = uuid_from_text(text)
    except WireError:
        directory_id = ZERO_UUID
    # Kafka accepts the zero uuid here, but no node starts with it (R-ID-1).
    if directory_id == ZERO_UUID:
        raise UsageError("Failed to parse directory ID in dynamic voter string.")
    return directory_id


def _split_host(text: str) -> tuple[str, str]:
    """Return the host and what follows the colon after it."""
    if not text:
        raise UsageError("No hostname found after node id.")
    if text.startswith("["):
        address, bracket, rest = text[1:].partition("]")
        if not bracket:
            raise UsageError("Hostname began with left bracket, but no right bracket was found.")
        if not rest.startswith(":"):
            raise UsageError("Port section must start with a colon.")
        return _ipv6(address), rest[1:]
    host, colon, rest = text.partition(":")
    if not colon:
        raise UsageError("No colon following hostname could be found.")
    if not host:
        raise UsageError("No hostname found after node id.")
    return host, rest


def _ipv6(text: str) -> str:
    """Return an IPv6 address as Java writes it, without shortening zeros."""
    try:
        groups = ipaddress.IPv6Address(text).exploded.split(":")
    except ValueError:
        raise UsageError(f"{text!r} is not an IPv6 address.") from None
    return ":".join(f"{int(group, 16):x}" for group in groups)
