"""One replica of the search: the shipped core over a small disk, with the model of its checks.

Owns how an event is carried out, and what the rest of the cluster sees of it: messages by small
numbers for requests and answers, and claims that are checked against the whole cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, cast

from kraftwire.raft import effects as do
from kraftwire.raft import events
from kraftwire.raft.roles import Follower
from kraftwire.sim.checks import replica_events as did
from kraftwire.sim.checks.checkers import Checkers
from kraftwire.sim.checks.cluster_history import ClusterHistory
from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.checks.voters import Key, Voters
from kraftwire.sim.exhaust.bounds import Bounds
from kraftwire.sim.exhaust.canon import MOMENTS, REQUESTS, TOKENS, Canon, labels
from kraftwire.sim.replicas import LISTENER_NAME, node_of
from kraftwire.sim.untimed.members import UntimedMembers
from kraftwire.sim.untimed.node import Node
from kraftwire.wire.message import Message

# The name of a method of `ClusterHistory`, and its arguments.
Claim = tuple[Any, ...]

# The id of a leader that has committed batches, and the voters that it counted.
Commit = tuple[int, Voters]

# Logs are compared as they are, not as they were; only replicas send requests for votes.
_UNUSED = ("writes", "campaigned", "stores_vote")


class _Claims:
    """Stands for a history, and keeps what it is told."""

    def __init__(self) -> None:
        self.made: list[Claim] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return partial(self._keep, name)

    def advances(self, *claim: Any) -> bool:
        """Keep the claim; a leader's high watermark may commit batches."""
        self._keep("advances", *claim)
        _, _, leader_epoch, entries = claim
        return leader_epoch >= 0 and bool(entries)

    def _keep(self, *claim: Any) -> None:
        if claim[0] not in _UNUSED and claim not in self.made:
            self.made.append(claim)


def claims_of(own: int, model: ReplicaModel, seen: list[did.ReplicaEvent]) -> tuple[Claim, ...]:
    """Check the events of a step, and update the replica's model; return the claims.

    Raises: Violation.
    """
    claims = _Claims()
    checkers = Checkers(cast("ClusterHistory", claims))
    checkers.models[own] = model
    checkers.on(own, seen)
    return tuple(claims.made)


def check_claims(
    known: ClusterHistory, claims: tuple[Claim, ...]
) -> tuple[ClusterHistory, Commit | None]:
    """Return the history after a step, and what was committed by it. Raises: Violation.

    Whether a commit is durable on a majority depends on the other replicas, and is not checked.
    """
    history, commit = known.copy(), None
    is_new = False
    for name, *claim in claims:
        if name == "commits_on":
            own, voters, _ = cast("tuple[int, Voters, tuple[Key, ...]]", tuple(claim))
            commit = (own, voters) if is_new else commit
        else:
            is_new = getattr(history, name)(*claim)
    history.forget_decided_votes()
    return history, commit


# An event of a replica; the first element is its name.
Event = tuple[Any, ...]

# The label of a request whose sender does not wait for the answer; also the token of no request.
NOBODY = 0
_NEW = -1

# How long followers have heard nothing from their leader when they are asked for votes.
_SILENCE_MS = 1_900


class _Still(Random):
    """Always draws the largest number: the search itself chooses what comes first."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _Still, ()

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Return the largest number below `stop`."""
        return start - 1 if stop is None else stop - step


@dataclass(slots=True)
class StepResult:
    """The result of a step, as other replicas see it.

    `sends` are (addressee, label, message); `replies` (place of the request among those open
    before, -1 for the one that came, message); `opened` has the same place for each request that is
    open now; `moved` maps old labels to new ones, `NOBODY` where the sender no longer waits.
    """

    sends: list[tuple[int, int, Message]] = field(default_factory=list)
    replies: list[tuple[int, Message]] = field(default_factory=list)
    opened: tuple[int, ...] = ()
    moved: dict[int, int] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()


class Replica:
    """A replica that can take steps. Everything in it is copied by pickling."""

    __slots__ = ("_members", "node", "model")

    def __init__(self, members: UntimedMembers, node: Node, model: ReplicaModel) -> None:
        self._members = members
        self.node = node
        self.model = model

    @staticmethod
    def first(bounds: Bounds, at: int) -> tuple[Replica, StepResult]:
        """Return a replica that starts from a formatted disk. Raises: Violation."""
        members = UntimedMembers(bounds.plan)
        disk = members.format(at)
        node = Node.boot(at, disk, members.config(at), _Still(), MOMENTS)
        one = Replica(members, node, members.model(at))
        return one, one.take(("start",))

    def canonical(self) -> Hashable:
        """Return the canonical form of its state. Order: between steps."""
        return Canon(self.node).of(self.node, self.model)

    # ---- steps

    def take(self, event: Event) -> StepResult:
        """Carry out an event and check the result.

        Raises: Violation, and any error of a broken core.
        """
        did, node = StepResult(), self.node
        open_before = {token: place for place, token in enumerate(node.requests)}
        before = {} if event[0] in ("start", "restart") else labels(node.core)
        gone = tuple(labels(node.core).values()) if event[0] == "restart" else ()
        _EVENTS[event[0]](self, *event[1:])
        node = self.node
        after = labels(node.core)
        did.moved = dict.fromkeys(gone, NOBODY)
        for request_id, label in before.items():
            now = after.get(request_id, NOBODY)
            if now != label:
                did.moved[label] = now
        if event[0] in ("start", "restart"):
            open_before = {}
        for sent in node.outbox:
            self._sends(did, sent, after.get(sent.request_id, NOBODY))
        did.replies = [(open_before.get(token, _NEW), message) for token, message in node.replies]
        did.opened = tuple(open_before.get(token, _NEW) for token in node.requests)
        did.claims = claims_of(node.id, self.model, node.reported)
        self._settle()
        return did

    def _sends(self, did: StepResult, sent: do.SendRequest, label: int) -> None:
        # Requests to bootstrap servers are lost: the leader announces itself anyway.
        if sent.destination.id >= 0:
            did.sends.append((node_of(sent.destination.port), label, sent.message))

    def _settle(self) -> None:
        """Discard the notes of this step, and let a follower's leader be silent for a while.

        Otherwise the follower would refuse pre-votes because of its leader.
        """
        node = self.node
        node.outbox, node.replies, node.reported = [], [], []
        node.reset_at = -1
        role = node.core._state.role
        if type(role) is Follower:
            heard = role.fetch_deadline_ms - role.fetch_timeout_ms
            node.now = max(node.now, heard + _SILENCE_MS)

    def _start(self) -> None:
        node = self.node
        node.core._state.next_request_id = REQUESTS
        node.reported.append(node.found())
        node.start(with_listener=False)

    def _restart(self, survivors: int) -> None:
        """Crash and start at once; of the unflushed batches the first `survivors` remain."""
        old = self.node
        old.disk.crash(survivors)
        config = self._members.config(old.id)
        self.node = Node.boot(old.id, old.disk, config, _Still(), old.now + 1)
        self._start()

    def _request(self, message: Message) -> None:
        self.node.handle(events.RequestReceived(
            self._token(), type(message).VERSIONS.high, message, LISTENER_NAME
        ))

    def _token(self) -> int:
        return max(self.node.requests, default=TOKENS) + 1

    def _answer(self, label: int, message: Message) -> None:
        self.node.handle(events.ResponseReceived(self._request_id(label), message))

    def _fail(self, label: int) -> None:
        self.node.handle(events.RequestFailed(self._request_id(label), 8))

    def _request_id(self, label: int) -> int:
        return next(one for one, known in labels(self.node.core).items() if known == label)

    def _timer(self) -> None:
        node = self.node
        node.now = max(node.now, node.due or node.now)
        node.handle(events.TimerExpired())

    def _flush(self) -> None:
        """Finish the oldest pending flush."""
        self.node.finish(self.node.work[0])

    def _append(self, number: int) -> None:
        self.node.append(TOKENS, self.node.epoch, (b"v%d" % number,))

    def _remove(self, member: int) -> None:
        request = self._members.remove_request(self._members.key(member))
        self.node.handle(events.RequestReceived(self._token(), 0, request, LISTENER_NAME))

    # ---- what may happen

    @property
    def epoch(self) -> int:
        """The replica's current epoch."""
        return self.node.core.epoch

    @property
    def unflushed(self) -> int:
        """The number of batches that a crash can lose."""
        return len(self.node.disk.log) - self.node.disk.flushed

    def has_timer(self, epoch_max: int) -> bool:
        """Whether a time-out leads to an election within bounds.

        Here leaders are replaced only by other replicas, and a replica that asks for pre-votes
        waits for all answers.
        """
        node, role = self.node, self.node.role
        if role == "leader" or node.due is None or node.core.epoch >= epoch_max:
            return False
        return role != "prospective" or not node.core._state.in_flight


_EVENTS: dict[str, Callable[..., None]] = {
    "start": Replica._start,
    "restart": Replica._restart,
    "request": Replica._request,
    "answer": Replica._answer,
    "fail": Replica._fail,
    "timer": Replica._timer,
    "flush": Replica._flush,
    "append": Replica._append,
    "remove": Replica._remove,
}
