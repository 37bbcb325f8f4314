"""What happens to a proxied connection, and what its layer wants to be done about it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeAlias

Data: TypeAlias = bytes | memoryview


class Side(Enum):
    """An end of a proxied connection: who connected to the proxy, and the node behind it."""

    CLIENT = "client"
    UPSTREAM = "upstream"


class Received(NamedTuple):
    """An event: bytes of one side."""

    side: Side
    data: bytes


class Ended(NamedTuple):
    """An event: one side sends no more; it may still read."""

    side: Side


class Broken(NamedTuple):
    """An event: one side has gone."""

    side: Side


class Resumed(NamedTuple):
    """An event: the time that was asked for has come, or the rules have changed."""


class Send(NamedTuple):
    """A command: send bytes to one side. A capture gets `recorded` in their place, if not None."""

    side: Side
    data: Data
    recorded: bytes | None = None


class Record(NamedTuple):
    """A command for captures: these bytes came from one side."""

    side: Side
    data: Data


class End(NamedTuple):
    """A command: send no more to one side, once what was to be sent has been."""

    side: Side


class Close(NamedTuple):
    """A command: end both sides, once what was to be sent has been."""


class WakeAt(NamedTuple):
    """A command: `Resumed` is due then. Units: seconds of the clock that `handle` is given."""

    time: float


class Say(NamedTuple):
    """A command: a line for the person who runs the proxy."""

    text: str


Event: TypeAlias = Received | Ended | Broken | Resumed
Command: TypeAlias = Send | Record | End | Close | WakeAt | Say
