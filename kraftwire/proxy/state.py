"""What both directions of a proxied connection share."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from kraftwire.control.request_log import RequestLog
from kraftwire.decode.body.context import TopicNames
from kraftwire.faults.rules import FaultRules
from kraftwire.proxy.addresses import BROKER, FindHere
from kraftwire.proxy.events import Close, Command
from kraftwire.proxy.exchange import Exchange
from kraftwire.proxy.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the connections of a proxy share. `records` says that a capture is written.

    `requests` is where requests are noted, if anybody can see it.
    """

    find_here: FindHere
    rules: FaultRules = field(default_factory=FaultRules)
    traffic: Traffic = field(default_factory=Traffic)
    topics: TopicNames = field(default_factory=TopicNames)
    records: bool = False
    requests: RequestLog | None = None


@dataclass(slots=True, kw_only=True)
class ConnectionState:
    """A proxied connection between its two directions.

    `role` and `node` are those of the node behind it; nobody knows the node of a bootstrap address.
    `in_flight` has the requests that wait for responses, in order; `tokens` is how many bare SASL
    tokens the client sends next. `is_closed`: the connection ends. Units: `now` is in seconds.
    """

    shared: Shared
    role: str = BROKER
    node: int | None = None
    now: float = 0.0
    commands: list[Command] = field(default_factory=list)
    in_flight: deque[Exchange] = field(default_factory=deque)
    tokens: int = 0
    is_closed: bool = False

    def take_commands(self) -> list[Command]:
        """Return what is to be done; the end of the connection comes last."""
        if self.is_closed:
            self.commands.append(Close())
        commands = self.commands[:]
        self.commands.clear()
        return commands
