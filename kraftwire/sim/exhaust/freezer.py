"""Keeps replicas as bytes, from which any number of copies can be made.

Immutable values are kept once and not copied: configurations, batches, voters, messages. Values
that a replica can compute again are not kept.
"""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Callable
from io import BytesIO
from typing import Any

from kraftwire.raft.addresses import Addresses
from kraftwire.raft.config import RaftConfig
from kraftwire.raft.effects import Destination, ElectionState
from kraftwire.raft.state import LastMessage
from kraftwire.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.exhaust.replica import Replica
from kraftwire.sim.timeless.entries import Entry
from kraftwire.sim.timeless.members import Members

__all__ = ["freeze", "thaw"]

_BY_VALUE = (Destination, ElectionState, Endpoint, Entry, OffsetAndEpoch, ReplicaKey, Voter)
_BY_IDENTITY = (Members, RaftConfig, VoterSet)

_shared: list[Any] = []
_places: dict[Any, int] = {}


def _shared_at(place: int) -> Any:
    return _shared[place]


def _place(what: Any, key: Any) -> tuple[Callable[[int], Any], tuple[int]]:
    place = _places.get(key)
    if place is None:
        place = _places[key] = len(_shared)
        _shared.append(what)
    return _shared_at, (place,)


def _share(what: Any) -> Any:
    return _place(what, what)


def _share_this(what: Any) -> Any:
    # The list keeps it alive, so that its id stays its own.
    return _place(what, (type(what), id(what)))


def _addresses(what: Addresses) -> tuple[type, tuple[RaftConfig]]:
    return Addresses, (what.config,)


def _last(_: LastMessage[Any]) -> tuple[type, tuple[()]]:
    return LastMessage, ()


_TABLE: dict[type, Callable[[Any], Any]] = {
    **copyreg.dispatch_table,
    **dict.fromkeys(_BY_VALUE, _share),
    **dict.fromkeys(_BY_IDENTITY, _share_this),
    Addresses: _addresses,
    LastMessage: _last,
}


def freeze(replica: Replica) -> bytes:
    """Convert a replica to bytes. Order: between steps."""
    out = BytesIO()
    pickler = pickle.Pickler(out, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _TABLE
    pickler.dump(replica)
    return out.getvalue()


def thaw(data: bytes) -> Replica:
    """Return a copy of a frozen replica."""
    return pickle.loads(data)  # type: ignore[no-any-return]
