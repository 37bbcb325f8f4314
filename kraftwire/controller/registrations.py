"""Bounds of the registrations of brokers and controllers, and the parts that their records repeat.

Every node keeps a registration for as long as its node is registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from kraftwire.records.metadata import encode_metadata
from kraftwire.wire.message import Message, Struct

S = TypeVar("S", bound=Struct)

# Log directories, listeners and features, of each at most this many in one registration or
# heartbeat. Kafka has no bound, but a log directory is a disk and a listener a port: the largest
# servers have about a hundred disks.
REGISTRATION_ENTRIES_MAX = 256

# The longest record of a registration, in bytes: every node keeps it for as long as it is
# registered. With REGISTRATION_ENTRIES_MAX of everything Kafka's have about half of it.
REGISTRATION_BYTES_MAX = 64 * 1024


def is_excessive(*entries: Sequence[object] | None) -> bool:
    """Return whether a request names more directories, listeners or features than any node has."""
    return any(len(one or ()) > REGISTRATION_ENTRIES_MAX for one in entries)


def is_too_long(record: Message, version: int) -> bool:
    """Return whether the record of a registration would take too much memory for good."""
    return len(encode_metadata(record, version)) > REGISTRATION_BYTES_MAX


def repeated(cls: type[S], elements: Iterable[Struct]) -> list[S]:
    """Return listeners or features of a request as those of its record, which has their fields."""
    names = [name for name in cls.__slots__ if name != "unknown_tagged_fields"]
    return [cls(**{name: getattr(each, name) for name in names}) for each in elements]
