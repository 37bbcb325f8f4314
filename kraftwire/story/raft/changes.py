"""Requests to change the voters or kraft.version: the sender, the receiver and the outcome.

Owns the folding of repeated requests, such as those of a controller that joins automatically, and
of requests that a broker passes on to the leader.

Source: KIP-853.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kraftwire.decode.text import count_text, duration_text, listed, words
from kraftwire.limits import RAFT_EVENT_COUNT_MAX, RAFT_PENDING_COUNT_MAX
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.update_features_request import UpdateFeaturesRequest
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.protocol.error_codes import error_name
from kraftwire.story.raft.model import Event
from kraftwire.story.raft.nodes import Nodes
from kraftwire.story.raft.observation import NodeId, Sighting

__all__ = ["CHANGES", "ChangeRequest", "Changes"]

_KINDS = {
    "AddRaftVoter": "add-voter",
    "RemoveRaftVoter": "remove-voter",
    "UpdateFeatures": "upgrade",
    "UpdateRaftVoter": "update-voter",
}
CHANGES = frozenset(_KINDS)
_KRAFT_VERSION = "kraft.version"

ChangeRequest = (
    AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest | UpdateFeaturesRequest
)


@dataclass(slots=True)
class _Change:
    """A request; `end` is None until it is answered.

    `leader` is the node that received it, `passed_to` the node to which a broker passed it on;
    `count` requests in a row had the same outcome, the last one at `end`.
    """

    start: float
    kind: str
    voter: int | None
    text: str
    leader: NodeId
    is_own: bool = False
    is_waiting: bool = True
    passed_to: NodeId | None = None
    end: float | None = None
    error: int = 0
    message: str = ""
    count: int = 1
    last_start: float = 0.0


class Changes:
    """Gathers requests for changes and their answers."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._open: dict[tuple[str, int], _Change] = {}
        self._all: list[_Change] = []

    def see_request(self, seen: Sighting, body: ChangeRequest) -> None:
        """Add a request for a change."""
        kind = body.NAME.removesuffix("Request")
        if isinstance(body, UpdateFeaturesRequest):
            levels = [
                each.max_version_level
                for each in body.feature_updates
                if each.feature == _KRAFT_VERSION
            ]
            if not levels:
                return
            voter, text = None, f"UpdateFeatures {_KRAFT_VERSION}={levels[-1]}"
            text += " to try it" * body.validate_only
        else:
            voter, text = body.voter_id, kind
            if not isinstance(body, RemoveRaftVoterRequest) and body.listeners:
                text += f" at {listed(f'{e.host}:{e.port}' for e in body.listeners)}"
        server = self._nodes.server(seen)
        if seen.is_forwarded and self._pass_on(kind, voter, server):
            return
        change = _Change(seen.time, kind, voter, text, server, last_start=seen.time)
        change.is_own = voter is not None and self._nodes.client(seen) == voter
        if isinstance(body, AddRaftVoterRequest):
            change.is_waiting = body.ack_when_committed
        if len(self._open) < RAFT_PENDING_COUNT_MAX:
            self._open[seen.connection, seen.correlation_id] = change
        if len(self._all) < RAFT_EVENT_COUNT_MAX:
            self._all.append(change)

    def see_response(self, seen: Sighting, body: Any) -> None:
        """Add the answer to a request for a change."""
        change = self._open.pop((seen.connection, seen.correlation_id), None)
        if change is None:
            return
        change.end, change.error = seen.time, body.error_code
        change.message = getattr(body, "error_message", None) or ""
        for result in getattr(body, "results", ()):
            if result.feature == _KRAFT_VERSION and not change.error:
                change.error = result.error_code
                change.message = result.error_message or ""
        change.leader = self._nodes.server(seen)

    def _pass_on(self, kind: str, voter: int | None, server: NodeId) -> bool:
        """Note that the leader receives a request that was seen before; return whether it was."""
        for change in self._open.values():
            if (change.kind, change.voter) == (kind, voter):
                change.passed_to = server
                return True
        return False

    def events(self) -> Iterator[Event]:
        """Yield an event for each request; repeated requests with the same outcome share one."""
        latest: dict[tuple[str, int | None], _Change] = {}
        folded: list[_Change] = []
        for change in self._all:
            before = latest.get((change.kind, change.voter))
            if before is not None and change.error and _is_like(before, change):
                before.count += 1
                before.end, before.last_start = change.end, change.start
                continue
            latest[change.kind, change.voter] = change
            folded.append(change)
        yield from map(_event, folded)


def _is_like(before: _Change, change: _Change) -> bool:
    return (before.text, before.leader, before.error, before.message) == (
        change.text,
        change.leader,
        change.error,
        change.message,
    )


def _event(change: _Change) -> Event:
    asked = f"asked of {change.leader}"
    if change.is_own:
        asked += " by itself"
    if change.passed_to is not None:
        asked += f", which passes it on to {change.passed_to}"
    outcome, details = _outcome(change)
    details |= {
        "leader": change.passed_to if change.passed_to is not None else change.leader,
        "byItself": change.is_own,
        "count": change.count,
    }
    text = f"{change.text}, {asked}: {outcome}"
    if change.count > 1:
        lasted = duration_text(change.last_start - change.start)
        text = words(text, [f"{count_text(change.count, 'time')} in {lasted}"])
    return Event(change.start, _KINDS[change.kind], text, None, change.voter, details)


def _outcome(change: _Change) -> tuple[str, dict[str, Any]]:
    if change.end is None:
        return "no answer", {"error": None, "message": None, "latencyMs": None}
    took = change.end - change.last_start
    details: dict[str, Any] = {
        "error": error_name(change.error),
        "message": change.message or None,
        "latencyMs": took * 1000,
    }
    text = "done" if change.is_waiting else "in the log"
    if change.error:
        text = words(error_name(change.error), [change.message] if change.message else [])
    return f"{text} after {duration_text(took)}", details
