"""Writes down what happened in a cluster, for whoever has to understand a failure."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kraftwire.raft.effects import (
    AppendRefused,
    DeliverCommitted,
    Effect,
    FlushLog,
    Note,
    ResetConnections,
    VotersChanged,
)
from kraftwire.raft.events import Event
from kraftwire.sim import words

if TYPE_CHECKING:
    from kraftwire.sim.process import Process

__all__ = ["Timeline"]

_WIDTH = 160

# What explains nothing: every append is flushed, every commit is delivered, clients ask anybody.
_SILENT = (AppendRefused, FlushLog, ResetConnections, DeliverCommitted, VotersChanged)


class Timeline:
    """The last lines of a run, one for each event that led to anything. Units: seconds with six
    digits."""

    def __init__(self, size: int = 60) -> None:
        self.lines: deque[str] = deque(maxlen=size)

    def say(self, now: int, text: str) -> None:
        """Add a line."""
        self.lines.append(f"{now / 1e6:11.6f}      {text}")

    def step(self, now: int, process: Process, event: Event | None, effects: list[Effect]) -> None:
        """Add what a node got and what it asked for; an event that changes nothing is left out."""
        told = [
            text
            for effect in effects
            if not isinstance(effect, _SILENT) and (text := words.effect(effect))
        ]
        if not told and not any(isinstance(effect, Note) for effect in effects):
            return
        line = f"{now / 1e6:11.6f}  {process.id} < {words.event(event)} > {'; '.join(told)}"
        self.lines.append(line if len(line) <= _WIDTH else f"{line[: _WIDTH - 4]} ...")
