"""Ends of connections between nodes: who closed or reset them.

The end of an idle connection has no consequence, so only connections that were in use are reported,
and all that were reset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kraftwire.capture.connections.frame_queue import Ending
from kraftwire.decode.text import ids_text
from kraftwire.limits import RAFT_EVENT_COUNT_MAX
from kraftwire.story.raft.model import Event
from kraftwire.story.raft.nodes import Nodes
from kraftwire.story.raft.observation import NodeId, Sighting

__all__ = ["Endings"]

_SECOND_NS = 1_000_000_000

# Ends within this time are one event: a process that stops closes all its connections at once.
_TOGETHER_S = 1.0

# Replicas use a connection at least every half second. After this pause it is idle.
_IDLE_S = 30.0

_LAST = 1 << 32


@dataclass(slots=True)
class _Group:
    """Connections that one node ends within a short time."""

    time: float
    is_reset: bool
    peers: set[NodeId] = field(default_factory=set)
    count: int = 0


class Endings:
    """Gathers the ends of connections between nodes."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._groups: dict[NodeId, list[_Group]] = {}
        self._count = 0
        # Connection -> time of its last frame about the quorum.
        self._used: dict[str, float] = {}

    def see_use(self, seen: Sighting) -> None:
        """Note a frame about the quorum."""
        self._used[seen.connection] = seen.time

    def see(self, ending: Ending) -> None:
        """Add the end of a connection.

        Order: after the frames before it, which show the nodes at both ends.
        """
        time = ending.time_ns / _SECOND_NS
        used = self._used.pop(ending.connection, None)
        is_idle = used is None or time - used > _IDLE_S
        client, server = self._nodes.ends(ending.connection)
        if client is None or client == server or (is_idle and not ending.is_reset):
            return
        if self._count >= RAFT_EVENT_COUNT_MAX:
            return
        node, peer = (client, server) if ending.is_by_client else (server, client)
        groups = self._groups.setdefault(node, [])
        if not groups or time - groups[-1].time > _TOGETHER_S:
            groups.append(_Group(time, ending.is_reset))
            self._count += 1
        groups[-1].peers.add(peer)
        groups[-1].count += 1
        groups[-1].is_reset |= ending.is_reset

    def events(self) -> Iterator[Event]:
        """Yield an event for each group of connections that a node ended at once."""
        for node, groups in self._groups.items():
            for group in groups:
                peers = sorted(group.peers, key=_order)
                count = "its connection" if group.count == 1 else f"{group.count} connections"
                verb = "resets" if group.is_reset else "closes"
                details = {"peers": peers, "count": group.count, "isReset": group.is_reset}
                text = f"{verb} {count} with {ids_text(peers)}"
                yield Event(group.time, "disconnect", text, None, node, details)


def _order(node: NodeId) -> tuple[int, str]:
    return (node, "") if isinstance(node, int) else (_LAST, node)
