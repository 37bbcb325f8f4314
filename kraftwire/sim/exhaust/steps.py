"""The steps of replicas, each executed once by the shipped core and remembered.

Replicas with the same canonical form are one local state; a step leads from one local state to
another. Messages, events and sets of claims are numbers, so that a cluster is a few numbers.
"""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Callable, Hashable
from contextlib import suppress
from io import BytesIO
from typing import Any, Generic, TypeVar

from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.addresses import Addresses
from kraftwire.raft.config import RaftConfig
from kraftwire.raft.effects import Destination, ElectionState
from kraftwire.raft.state import LastMessage
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.checks.entries import Entry
from kraftwire.sim.exhaust.bounds import Bounds
from kraftwire.sim.exhaust.canon import labels
from kraftwire.sim.exhaust.replica import Claim, Event, Replica, StepResult
from kraftwire.sim.invariants import BUGS, Violation
from kraftwire.sim.untimed.members import UntimedMembers
from kraftwire.sim.untimed.node import Node
from kraftwire.wire.message import Message, Struct

_BY_VALUE = (Destination, ElectionState, Endpoint, Entry, OffsetAndEpoch, ReplicaKey, Voter)
_BY_IDENTITY = (UntimedMembers, RaftConfig, VoterSet)

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


Log = tuple[Entry, ...]

_Value = TypeVar("_Value")


class Numbers(Generic[_Value]):
    """Numbers distinct values from 0 on."""

    __slots__ = ("_numbers", "values")

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.values: list[_Value] = []

    def of(self, value: _Value, key: Hashable = None) -> int:
        """Return the number of a value; `key` stands for a value that cannot be hashed."""
        key = value if key is None else key
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.values)
            self.values.append(value)
        return number


class Step:
    """The result of an event. `local` is None for an event that is out of bounds or refused.

    `sends` are (addressee, label, message); `replies` are (place of the request among those open
    before, -1 for the new one; message); `opened` and `moved` are as in `StepResult`; `claims` is
    the number of the claims. `sent` and `again` are caches of `Packets`: the packets of `sends`,
    and the packets that `moved` changes.
    """

    __slots__ = (
        "again", "local", "moved", "opened", "replies", "claims", "sends", "sent", "violation",
    )  # fmt: skip

    def __init__(self) -> None:
        self.local: Local | None = None
        self.sends: tuple[tuple[int, int, int], ...] = ()
        self.replies: tuple[tuple[int, int], ...] = ()
        self.opened: tuple[int, ...] = ()
        self.moved: dict[int, int] = {}
        self.claims = 0
        self.violation: Violation | None = None
        self.sent: tuple[int, ...] | None = None
        self.again: dict[int, int] = {}


class Local:
    """A local state of replica `at`, as the cluster needs it.

    `form` is the number of the canonical form; `steps` are those known so far, by the number of the
    event.
    """

    __slots__ = (
        "at", "durable", "epoch", "form", "frozen", "has_flush", "has_timer", "key", "leads",
        "log", "number", "steps", "unflushed", "waits",
    )  # fmt: skip

    def __init__(self, number: int, form: int, replica: Replica, bounds: Bounds) -> None:
        node = replica.node
        disk = node.disk
        self.number = number
        self.form = form
        self.at = node.id
        self.key = replica.model.key
        self.epoch = replica.epoch
        self.frozen = freeze(replica)
        self.log: Log = tuple(disk.log)
        self.durable: Log = tuple(disk.log[: disk.flushed])
        self.unflushed = replica.unflushed
        self.has_flush = bool(node.work)
        self.has_timer = replica.has_timer(bounds.elections)
        self.leads = node.role == "leader"
        self.waits = tuple(labels(node.core).values())
        self.steps: dict[int, Step] = {}


class Steps:
    """All steps of all replicas within bounds.

    Without `merges` equal states stay separate. `merged` is called for each replica that equals a
    known one, with the known one's number and a copy of the other.
    """

    def __init__(self, bounds: Bounds, *, merges: bool = True) -> None:
        self.bounds = bounds
        self.events: Numbers[Event] = Numbers()
        self.messages: Numbers[Message] = Numbers()
        self.claims: Numbers[tuple[Claim, ...]] = Numbers()
        self.claims.of(())
        self.locals: list[Local] = []
        self.taken = 0
        self.merged: Callable[[int, Replica], None] | None = None
        self._merges = merges
        self._forms: Numbers[int] = Numbers()

    def first(self, at: int) -> Local:
        """Return the local state of a replica that has started. Raises: Violation."""
        replica, _ = Replica.first(self.bounds, at)
        return self._local(replica)

    def message(self, message: Message) -> int:
        """Return the number of a message."""
        return self.messages.of(message, _value(message))

    def step(self, local: Local, event: int) -> Step:
        """Return the result of an event, from memory if it is known."""
        found = local.steps.get(event)
        if found is None:
            found = local.steps[event] = self.take(thaw(local.frozen), event)
        return found

    def take(self, replica: Replica, event: int) -> Step:
        """Let the core handle an event."""
        self.taken += 1
        step = Step()
        before = replica.node.core.end_offset
        what = self.events.values[event]
        try:
            did = replica.take(self.concrete(what))
        except Violation as violation:
            step.violation = violation
            return step
        except BUGS as error:
            step.violation = Violation("BUG", f"{type(error).__name__}: {error}")
            return step
        is_refused = what[0] in _APPENDING and replica.node.core.end_offset == before
        if replica.epoch <= self.bounds.elections and not is_refused:
            self._fill(step, did, replica)
        return step

    def concrete(self, event: Event) -> Event:
        """Return the event with its message instead of the message's number."""
        if event[0] in ("request", "answer"):
            return (*event[:-1], self.messages.values[event[-1]])
        return event

    def node_after(self, local: Local, event: int) -> Node:
        """Return the node of a replica after a step, which is taken again for the failure report.
        """
        replica = thaw(local.frozen)
        with suppress(*BUGS):
            replica.take(self.concrete(self.events.values[event]))
        return replica.node

    def _fill(self, step: Step, did: StepResult, replica: Replica) -> None:
        step.sends = tuple((to, label, self.message(one)) for to, label, one in did.sends)
        step.replies = tuple((place, self.message(one)) for place, one in did.replies)
        step.opened = did.opened
        step.moved = did.moved
        step.claims = self.claims.of(did.claims)
        step.local = self._local(replica)

    def _local(self, replica: Replica) -> Local:
        form = self._forms.of(len(self._forms.values), replica.canonical())
        number = form if self._merges else len(self.locals)
        if number == len(self.locals):
            self.locals.append(Local(number, form, replica, self.bounds))
        elif self.merged is not None:
            self.merged(number, replica)
        return self.locals[number]


# Requests that change nothing if the replica refuses them: then no step is needed.
_APPENDING = ("append", "remove")


def _value(what: Any) -> Hashable:
    """Convert a message to a hashable value."""
    if isinstance(what, Struct):
        kind = type(what)
        return kind.__name__, *(_value(getattr(what, name)) for name in kind.__slots__)
    if isinstance(what, list | tuple):
        return tuple(_value(one) for one in what)
    if isinstance(what, memoryview):
        return bytes(what)
    return what  # type: ignore[no-any-return]
