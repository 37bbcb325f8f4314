"""Switches engines at run time, and names the tests that run once for each available one."""

from __future__ import annotations

from kraftwire import engine
from kraftwire.wire.message import Message

# Path prefixes, under `tests`, of the tests of what the engine in C does as well.
FOR_EACH_ENGINE = (
    "engine/test_choice",
    "unit/decode/files/test_contradictions",
    "unit/records/",
    "unit/wire/test_",
    "fuzz/test_damage",
    "fuzz/test_memory",
    "spark/logs/test_columns",
    "spark/logs/test_log_tables",
)


def use(name: str) -> None:
    """Switch engines for all messages and records. Raises: UsageError for an unknown engine."""
    engine.use(name)
    # Classes cache the functions of the versions used so far.
    for cls in Message.__subclasses__():
        cls._DECODE.clear()
        cls._ENCODE.clear()
