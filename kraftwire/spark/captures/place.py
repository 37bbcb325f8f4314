"""Where and when a frame was: the cells that every table begins with."""

from __future__ import annotations

from base64 import urlsafe_b64encode

from kraftwire.decode.framing.frames import Frame

__all__ = ["end_of", "ends", "micros", "start_of", "uuid_text"]

_ZERO = bytes(16)


def start_of(frame: Frame) -> int:
    """Position of the packet that holds the frame's first byte."""
    return frame.position


def end_of(frame: Frame) -> int:
    """Position after the packet that completed the frame."""
    return frame.end_position


def micros(time_ns: int | None) -> int | None:
    """A time as Spark's timestamps count it; None if unknown."""
    return None if time_ns is None or time_ns < 0 else time_ns // 1000


def ends(connection: str) -> tuple[str, str]:
    """Client and server of a connection by its name."""
    client, _, server = connection.partition("-")
    return client, server


def uuid_text(value: bytes | None) -> str | None:
    """A topic id as Kafka prints it; None for none."""
    if value is None or value == _ZERO:
        return None
    return urlsafe_b64encode(value).decode().rstrip("=")
