"""Values as the cells of tables hold them."""

from __future__ import annotations

from functools import lru_cache

from kraftwire.protocol.error_codes import error_name
from kraftwire.wire.json_form import uuid_to_text

__all__ = [
    "client_of", "ends", "error_text", "error_texts", "known", "micros", "server_of", "uuid_text",
]  # fmt: skip

_ZERO = bytes(16)


def micros(time_ns: int | None) -> int | None:
    """Convert a time to the microseconds of Spark's timestamps; None if unknown."""
    return None if time_ns is None or time_ns < 0 else time_ns // 1000


def known(number: int | None) -> int | None:
    """Return a number that is not negative; None for others, which mean that it is unknown."""
    return None if number is None or number < 0 else number


@lru_cache(maxsize=4096)
def ends(connection: str) -> tuple[str, str]:
    """Return client and server of a connection by its name."""
    client, _, server = connection.partition("-")
    return client, server


def client_of(connection: str) -> str:
    """Return the client of a connection by its name."""
    return ends(connection)[0]


def server_of(connection: str) -> str:
    """Return the server of a connection by its name."""
    return ends(connection)[1]


@lru_cache(maxsize=4096)
def uuid_text(value: bytes | None) -> str | None:
    """Return a topic id as Kafka prints it; None for none."""
    return None if value is None or value == _ZERO else uuid_to_text(value)


def error_text(code: int) -> str | None:
    """Return the name of an error; None for no error."""
    return error_name(code) if code else None


def error_texts(codes: list[int]) -> list[str | None]:
    """Return the names of errors."""
    return [error_text(code) for code in codes]
