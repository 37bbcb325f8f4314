"""The canonical form of a replica: its whole state as a value without clocks and counters.

Two replicas with the same canonical form behave alike. The state of a core is walked slot by slot,
so that a field that is added later is included automatically; an unknown type is an error.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Mapping
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any

from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft import roles, state
from kraftwire.raft.accumulator import Accumulator, DrainedBatch
from kraftwire.raft.core import RaftCore
from kraftwire.raft.effects import Destination, ElectionState, FlushLog
from kraftwire.raft.epoch_rate_limit import EpochRateLimit
from kraftwire.raft.events import RequestReceived
from kraftwire.raft.histories import VoterHistory
from kraftwire.raft.listeners import Listeners
from kraftwire.raft.log_view import LogView
from kraftwire.raft.parked import ParkedFetch, ParkedFetches
from kraftwire.raft.peers import Peers
from kraftwire.raft.progress import LeaderProgress, ReplicaProgress
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.checks.entries import Applied, Entry
from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.untimed.disk import Disk
from kraftwire.sim.untimed.node import Node, Work, _Append
from kraftwire.wire.message import Struct

# Clocks, tokens and request ids begin here: no other number of a core is this large.
MOMENTS, TOKENS, REQUESTS = 1 << 40, 1 << 44, 1 << 48
_ROOM = 1 << 32

_PLAIN = (int, bool, str, bytes, float, NoneType)

# Immutable values without a clock or counter.
_VALUES = (Destination, ElectionState, Endpoint, Entry, OffsetAndEpoch, ReplicaKey, Voter)

_OBJECTS = (
    Accumulator,
    Applied,
    Disk,
    DrainedBatch,
    EpochRateLimit,
    FlushLog,
    LeaderProgress,
    Listeners,
    LogView,
    Node,
    ParkedFetch,
    ParkedFetches,
    Peers,
    RaftCore,
    ReplicaProgress,
    RequestReceived,
    ReplicaModel,
    VoterHistory,
    VoterSet,
    Work,
    _Append,
    roles.Candidate,
    roles.Follower,
    roles.Leader,
    roles.PendingChange,
    roles.Prospective,
    roles.Resigned,
    roles.Unattached,
    roles.Votes,
    state.Download,
    state.RaftState,
    state.SentRequest,
)
_PEER = "_Peer"

# Fields that do not outlive a step, are the same in every state of a replica, or are computed again
# from other fields when the voter set is another object.
_OF_A_STEP = (
    "outbox", "replies", "reported", "trace", "reset_at", "event", "_voted", "_in_pre_vote",
    "_was_due",
)  # fmt: skip
_CACHES = ("_membership_of", "_is_voter", "_is_only_voter", "addresses", "fetch", "empty_answer")
_LEFT_OUT: Mapping[type, frozenset[str]] = {
    Node: frozenset({"now", "left", *_OF_A_STEP}),
    RaftCore: frozenset({"_stored", "deadline_ms"}),
    # Epochs in the thousands exceed the bounds of any search.
    EpochRateLimit: frozenset({"spent", "since_ms"}),
    state.RaftState: frozenset(
        {"config", "random", "now", "wall_offset_ms", "effects", "_persist", *_CACHES}
    ),
}


def labels(core: RaftCore) -> dict[int, int]:
    """Return a small number for every request that a core waits for, by its addressee.

    Several requests to one addressee are distinguished by their order.
    """
    found: dict[int, int] = {}
    counts: dict[int, int] = {}
    for request_id, sent in core._state.in_flight.items():
        target = sent.destination.id
        count = counts[target] = counts.get(target, -1) + 1
        found[request_id] = 10 + target + 100 * count
    return found


@cache
def _fields(kind: type) -> tuple[str, ...]:
    """Return the slots of a class, except those that are listed above."""
    names: list[str] = []
    for one in reversed(kind.__mro__):
        slots = one.__dict__.get("__slots__", ())
        names += (slots,) if isinstance(slots, str) else slots
    gone = _LEFT_OUT.get(kind, frozenset())
    return tuple(name for name in names if name not in gone)


class Canon:
    """Builds canonical forms of one replica at one moment."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._labels = labels(node.core)
        self._tokens = {token: place for place, token in enumerate(node.requests)}

    def of(self, *parts: Any) -> Hashable:
        """Return the canonical form of these values. Raises: TypeError for an unknown type."""
        return tuple(self._walk(part) for part in parts)

    def _walk(self, what: Any) -> Hashable:
        kind = type(what)
        if kind is int:
            return what if what < MOMENTS else self._number(what)
        if kind in _PLAIN or kind in _VALUES or isinstance(what, Enum):
            return what  # type: ignore[no-any-return]
        if kind is list or kind is tuple or kind is array:
            return tuple([self._walk(one) for one in what])
        if isinstance(what, tuple):
            return kind.__name__, *[self._walk(one) for one in what]
        if kind is dict:
            return tuple([(self._walk(key), self._walk(one)) for key, one in what.items()])
        if kind is set or kind is frozenset:
            return frozenset([self._walk(one) for one in what])
        if kind is memoryview:
            return bytes(what)
        if kind is Peers:
            return self._peers(what)
        if kind in _OBJECTS or isinstance(what, Struct) or kind.__name__ == _PEER:
            return self._object(kind, what)
        raise TypeError(f"the canonical form of {kind.__name__} is not known: {what!r:.80}")

    def _object(self, kind: type, what: Any) -> Hashable:
        fields = _fields(kind)
        values = [self._walk(getattr(what, name)) for name in fields]
        rest = getattr(what, "__dict__", None)
        if rest:
            gone = _LEFT_OUT.get(kind, frozenset())
            values += [(name, self._walk(one)) for name, one in rest.items() if name not in gone]
        return kind.__name__, *values

    def _number(self, number: int) -> Hashable:
        """Return a moment, a token or a request id relative to the replica's present state."""
        if number < MOMENTS + _ROOM:
            # It does not matter for how long a timer has been due.
            return "ms", max(number - self._node.now, 0)
        if TOKENS <= number < TOKENS + _ROOM:
            return "token", self._tokens.get(number, -1)
        if REQUESTS <= number < REQUESTS + _ROOM:
            return "request", self._labels.get(number, 0)
        return number

    def _peers(self, peers: Peers) -> Hashable:
        """Treat a peer that has answered like one that was never asked: both are ready."""
        busy = [
            (key, self._object(type(one), one))
            for key, one in peers._peers.items()
            if one.request_id >= 0 or not one.is_settled
        ]
        waits = {key: self._walk(at) for key, at in peers._backing_off.items()}
        owners = sorted(self._labels.get(one, 0) for one in peers._owners)
        return (
            tuple(sorted(busy, key=lambda entry: entry[0])),
            tuple(sorted((key, at) for key, at in waits.items() if at != ("ms", 0))),
            tuple(owners),
        )
