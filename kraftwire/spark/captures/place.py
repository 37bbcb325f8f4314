"""File, position and time of a frame: the first cells of every table."""

from __future__ import annotations

from functools import lru_cache

from kraftwire.wire.json_form import uuid_to_text

__all__ = ["ends", "micros", "uuid_text"]

_ZERO = bytes(16)


def micros(time_ns: int | None) -> int | None:
    """Convert a time to the microseconds of Spark's timestamps; None if unknown."""
    return None if time_ns is None or time_ns < 0 else time_ns // 1000


def ends(connection: str) -> tuple[str, str]:
    """Return client and server of a connection by its name."""
    client, _, server = connection.partition("-")
    return client, server


@lru_cache(maxsize=4096)
def uuid_text(value: bytes | None) -> str | None:
    """Return a topic id as Kafka prints it; None for none."""
    return None if value is None or value == _ZERO else uuid_to_text(value)
