"""Switches engines at run time, for tests and measurements."""

from __future__ import annotations

from kraftwire import engine
from kraftwire.wire.message import Message


def use(name: str) -> None:
    """Switch engines for all messages and records. Raises: UsageError for an unknown engine."""
    engine.use(name)
    # Classes cache the functions of the versions used so far.
    for cls in Message.__subclasses__():
        cls._DECODE.clear()
        cls._ENCODE.clear()
