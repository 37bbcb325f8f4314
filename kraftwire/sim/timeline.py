"""Writes down what happened in a cluster, for whoever has to understand a failure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from kraftwire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftwire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.raft.effects import Effect
from kraftwire.raft.events import Event
from kraftwire.wire.message import Message

if TYPE_CHECKING:
    from kraftwire.sim.process import Process

__all__ = ["Timeline"]

_BYTES_SHOWN = 24


class Timeline:
    """The last lines of a run. Units: seconds with six digits."""

    def __init__(self, size: int = 400) -> None:
        self.lines: deque[str] = deque(maxlen=size)

    def say(self, now: int, text: str) -> None:
        """Add a line."""
        self.lines.append(f"{now / 1e6:11.6f}      {text}")

    def step(self, now: int, process: Process, event: Event | None, effects: list[Effect]) -> None:
        """Add what a node got and what it asked for."""
        core = process.core
        state = f"{core.role} of {core.epoch}, log {core.end_offset}, hw {core.high_watermark}"
        got = show(event) if event is not None else "start"
        self.lines.append(f"{now / 1e6:11.6f}  {process.id} < {got}")
        for effect in effects:
            self.lines.append(f"{'':11}  {process.id} > {show(effect)}")
        self.lines.append(f"{'':11}  {process.id} = {state}")


def show(thing: Any) -> str:
    """An event, an effect or a message in one line."""
    if isinstance(thing, Message):
        return _show_message(thing)
    if isinstance(thing, bytes | memoryview):
        shown = bytes(thing[:_BYTES_SHOWN])
        return f"{len(thing)} bytes {shown!r}"
    if is_dataclass(thing) and not isinstance(thing, type):
        inside = (f"{f.name}={show(getattr(thing, f.name))}" for f in fields(thing))
        return f"{type(thing).__name__}({', '.join(inside)})"
    if isinstance(thing, tuple | list):
        return f"[{', '.join(map(show, thing))}]"
    return repr(thing)


def _show_message(message: Message) -> str:
    shower = _SHOWERS.get(message.__class__)
    return shower(message) if shower else repr(message)


def _vote_request(message: VoteRequest) -> str:
    p = message.topics[0].partitions[0]
    kind = "PreVote" if p.pre_vote else "Vote"
    log = f"{p.last_offset_epoch}/{p.last_offset}"
    return f"{kind}(epoch {p.replica_epoch} of {p.replica_id}, log {log})"


def _vote_response(message: VoteResponse) -> str:
    if not message.topics:
        return f"VoteResponse(error {message.error_code})"
    p = message.topics[0].partitions[0]
    leader = f"leader {p.leader_id} of {p.leader_epoch}"
    return f"VoteResponse(error {p.error_code}, {leader}, granted {p.vote_granted})"


def _fetch_request(message: FetchRequest) -> str:
    p = message.topics[0].partitions[0]
    who = message.replica_state.replica_id if message.replica_state else message.replica_id
    position = f"{p.last_fetched_epoch}/{p.fetch_offset}"
    return f"Fetch(of {who}, epoch {p.current_leader_epoch}, at {position}, hw {p.high_watermark})"


def _fetch_response(message: FetchResponse) -> str:
    if not message.responses:
        return f"FetchResponse(error {message.error_code})"
    p = message.responses[0].partitions[0]
    parts = [f"error {p.error_code}", f"hw {p.high_watermark}", f"{len(p.records or b'')} bytes"]
    if p.current_leader is not None:
        parts.append(f"leader {p.current_leader.leader_id} of {p.current_leader.leader_epoch}")
    if p.diverging_epoch is not None and p.diverging_epoch.epoch >= 0:
        parts.append(f"diverging {p.diverging_epoch.epoch}/{p.diverging_epoch.end_offset}")
    return f"FetchResponse({', '.join(parts)})"


def _quorum_epoch(message: BeginQuorumEpochRequest | EndQuorumEpochRequest) -> str:
    p = message.topics[0].partitions[0]
    return f"{message.NAME.removesuffix('Request')}(leader {p.leader_id} of {p.leader_epoch})"


_SHOWERS: dict[type, Callable[[Any], str]] = {
    VoteRequest: _vote_request,
    VoteResponse: _vote_response,
    FetchRequest: _fetch_request,
    FetchResponse: _fetch_response,
    BeginQuorumEpochRequest: _quorum_epoch,
    EndQuorumEpochRequest: _quorum_epoch,
}
