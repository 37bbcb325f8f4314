"""Values as the cells of tables hold them."""

from __future__ import annotations

from functools import lru_cache

from kraftwire.capture.framing.frames import Frame
from kraftwire.messages import API_NAMES
from kraftwire.protocol.error_codes import error_name
from kraftwire.wire.json_form import uuid_to_text

__all__ = ["api_name", "client_id", "ends", "error_text", "known", "micros", "uuid_text"]

_ZERO = bytes(16)


def micros(time_ns: int | None) -> int | None:
    """Convert a time to the microseconds of Spark's timestamps; None if unknown."""
    return None if time_ns is None or time_ns < 0 else time_ns // 1000


def known(number: int | None) -> int | None:
    """Return a number that is not negative; None for others, which mean that it is unknown."""
    return None if number is None or number < 0 else number


def ends(connection: str) -> tuple[str, str]:
    """Return client and server of a connection by its name."""
    client, _, server = connection.partition("-")
    return client, server


@lru_cache(maxsize=4096)
def uuid_text(value: bytes | None) -> str | None:
    """Return a topic id as Kafka prints it; None for none."""
    return None if value is None or value == _ZERO else uuid_to_text(value)


def api_name(api_key: int | None) -> str | None:
    """Return the name of an API; None if it is unknown."""
    return None if api_key is None else API_NAMES.get(api_key)


def client_id(frame: Frame) -> str | None:
    """Return the client id of a frame's request; None if there is none."""
    return None if frame.request is None else frame.request.client_id


def error_text(code: int | None) -> str | None:
    """Return the name of an error; None for no error."""
    return error_name(code) if code else None
