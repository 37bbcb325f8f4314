"""Switches engines while the program runs: for tests and measurements."""

from __future__ import annotations

from kraftwire import engine
from kraftwire.wire.message import Message

__all__ = ["use"]


def use(name: str) -> None:
    """Switch engines for all messages and records. Raises: UsageError if there is no such one."""
    engine.use(name)
    # Classes keep the functions of the versions that they have met.
    for cls in Message.__subclasses__():
        cls._DECODE.clear()
        cls._ENCODE.clear()
