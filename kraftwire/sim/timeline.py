"""Keeps what happened in a cluster, so that its end can be described if it fails."""

from __future__ import annotations

from collections import deque
from functools import partial

from kraftwire.raft import effects as do
from kraftwire.raft.events import Event, RequestFailed, ResponseReceived
from kraftwire.sim import describe
from kraftwire.sim.failure_lines import (
    LINES_MAX,
    Line,
    Weight,
    kind_of,
    peer_of,
    select_lines,
    weight_of,
)

_KEPT = 20_000

# Effects that explain nothing: every append is flushed, every commit is delivered.
_SILENT = (
    do.AppendRefused,
    do.DeliverCommitted,
    do.FlushLog,
    do.LeaderChanged,
    do.ResetConnections,
    do.VotersChanged,
)


class Timeline:
    """The lines of a run, one for each event that led to anything.

    `size` bounds the lines that are shown; `last` is the node that took the last step, -1 for none.
    """

    def __init__(self, size: int = LINES_MAX) -> None:
        self.size = size
        self.last = -1
        self._lines: deque[Line] = deque(maxlen=_KEPT)
        self._count = 0
        self._requests: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        """How many lines there were."""
        return self._count

    def select(self, involved: frozenset[int]) -> list[str]:
        """Return an excerpt of at most `size` lines, mainly about these nodes."""
        return select_lines(self._lines, self.size, involved, self._count - len(self._lines))

    def note(self, head: str, text: str) -> None:
        """Add a line, which begins with the time or the number of the step."""
        node = text.partition(" ")[0]
        nodes = (int(node),) if node.isdigit() else ()
        self._add(Line(nodes, Weight.ELECTION, "other event", head, text.strip))

    def step(
        self, head: str, node: int, event: Event | None, effects: list[do.Effect]
    ) -> None:
        """Add a node's event and its effects; an event that changes nothing is left out."""
        self.last = node
        peers = peer_of(event)
        if isinstance(event, ResponseReceived | RequestFailed):
            sender = self._requests.pop((node, event.request_id), -1)
            peers = (sender,) if sender >= 0 else ()
        for effect in effects:
            if isinstance(effect, do.SendRequest):
                self._requests[node, effect.request_id] = effect.destination.id
        if any(not isinstance(effect, _SILENT) for effect in effects):
            text = partial(_step, node, event, effects, peers)
            self._add(Line((node, *peers), weight_of(effects), kind_of(event), head, text))

    def _add(self, line: Line) -> None:
        self._lines.append(line)
        self._count += 1


def _step(
    node: int, event: Event | None, effects: list[do.Effect], peers: tuple[int, ...]
) -> str:
    found = describe.effects((one for one in effects if not isinstance(one, _SILENT)), event)
    results = "; ".join(found) or "nothing else"
    is_from = peers and isinstance(event, ResponseReceived | RequestFailed)
    sender = f"{peers[0]}: " if is_from else ""
    return f"{node} < {sender}{describe.event(event)} > {results}"
