"""People who change the voters: they ask, ask again, and remember what they were told.

Each piece of work is a few steps, one after the other. A step asks a node, mostly the leader, over
the network that all use; who hears nothing, or "not now", asks again after a while.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import Destination, SendRequest
from kraftwire.raft.events import Event, ResponseReceived, UpgradeRequested
from kraftwire.sim.changes import check_added, check_removed
from kraftwire.sim.clock import MS
from kraftwire.sim.environment import Environment
from kraftwire.sim.machine import Machine, leading
from kraftwire.sim.marks import SITUATIONS
from kraftwire.sim.members import PORT
from kraftwire.sim.network import Call
from kraftwire.sim.voters import Key
from kraftwire.wire.message import Message

__all__ = ["Operators", "Step"]

# Where their requests come from; no node has this id.
_ID = 0

_TRIES_MAX = 12
_PAUSE_MS = (200, 2_000)
_UPGRADE_MS = 800

# How often somebody asks another node than the leader.
_MISTAKES = 0.1

# What ends a step although nothing was done: it is done already, or cannot be done.
_SETTLED = {
    ErrorCode.DUPLICATE_VOTER,
    ErrorCode.VOTER_NOT_FOUND,
    ErrorCode.UNSUPPORTED_VERSION,
}


@dataclass(frozen=True, slots=True)
class Step:
    """Something that somebody wants: `kind` is add, remove or upgrade; `key` the voter concerned.

    Who does not wait for the commit of an addition learns nothing by the answer.
    """

    kind: str
    key: Key
    is_awaited: bool = True


@dataclass(slots=True, eq=False)
class _Work:
    """Steps that somebody has begun, and how often the first of them was tried."""

    steps: deque[Step]
    tries: int = 0
    request_id: int = 0
    calls: list[Call] = field(default_factory=list)


class Operators:
    """The operators of a cluster; a peer in its network."""

    id = _ID
    run = 0
    is_up = True
    is_foreign = False

    def __init__(self, cluster: Environment, machines: Mapping[int, Machine]) -> None:
        self._cluster = cluster
        self._machines = machines
        self._random = Random(f"operators {cluster.plan.seed}")
        self._works: list[_Work] = []
        self._is_patient = False

    @property
    def left(self) -> int:
        """How many steps somebody still wants."""
        return sum(len(work.steps) for work in self._works)

    @property
    def is_idle(self) -> bool:
        """Whether nobody wants anything."""
        return not self._works

    def concerns(self, node: int) -> bool:
        """Whether a node's replica is to be added or removed, so that its disk has to stay."""
        return any(step.key[0] == node for work in self._works for step in work.steps)

    @property
    def is_removing(self) -> bool:
        """Whether some voter is to be removed."""
        return any(step.kind == "remove" for work in self._works for step in work.steps)

    def begin(self, *steps: Step) -> None:
        """Want something, one step after the other."""
        work = _Work(deque(steps))
        self._works.append(work)
        self._try(work)

    def insist(self) -> None:
        """From now on nobody gives up."""
        self._is_patient = True

    # One step

    def _try(self, work: _Work) -> None:
        """Ask for the first step, or end the work."""
        cluster = self._cluster
        if work not in self._works:
            return
        while work.steps and not self._makes_sense(work.steps[0]):
            cluster.marks.hit("change dropped")
            work.steps.popleft()
        if not work.steps:
            self._works.remove(work)
            return
        work.tries += 1
        step = work.steps[0]
        if work.tries > _TRIES_MAX and step.kind != "upgrade" and not self._is_patient:
            cluster.marks.hit("change given up")
            self._works.remove(work)
            return
        if step.kind == "upgrade":
            self._upgrade(work)
        else:
            self._ask(work, step)

    def _makes_sense(self, step: Step) -> bool:
        """Nobody adds a disk that is gone, or removes a voter without whom there is no majority."""
        cluster = self._cluster
        if step.kind == "upgrade":
            return True
        if step.kind == "add":
            return cluster.members.is_alive(step.key)
        sets = [log.force.voters for log in cluster.histories.logs.values()]
        left = [tuple(one for one in voters if one != step.key) for voters in sets]
        return all(cluster.members.keeps_majority(voters) for voters in left if voters)

    def _upgrade(self, work: _Work) -> None:
        leaders = leading(self._machines)
        if self._cluster.histories.force.version:
            self._next(work)
            return
        if leaders and leaders[-1].process is not None:
            token = self._cluster.next_token()
            leaders[-1].take(UpgradeRequested(token, leaders[-1].process.epoch, 1))
        self._again(work, _UPGRADE_MS)

    def _ask(self, work: _Work, step: Step) -> None:
        cluster = self._cluster
        message: Message
        if step.kind == "add":
            message = cluster.members.add_request(step.key, is_awaited=step.is_awaited)
        else:
            message = cluster.members.remove_request(step.key)
        target = self._whom_to_ask()
        cluster.say(f"an operator asks {target.id} to {step.kind} voter {step.key[0]}")
        timeout = cluster.timers.request_timeout_ms + 1_000
        work.request_id = cluster.next_token()
        destination = Destination(target.id, f"node{target.id}", PORT)
        call = cluster.network.send(
            self, SendRequest(work.request_id, destination, message, timeout)
        )
        cluster.scheduler.at(call.deadline, cluster.network.expire, call)

    def _whom_to_ask(self) -> Machine:
        leaders = leading(self._machines)
        if leaders and self._random.random() >= _MISTAKES:
            return leaders[-1]
        return self._random.choice(list(self._machines.values()))

    # What comes of it

    def take(self, event: Event) -> None:
        """An answer came, or none."""
        request_id = getattr(event, "request_id", 0)
        work = next((one for one in self._works if one.request_id == request_id), None)
        if work is None:
            return
        work.request_id = 0
        if not isinstance(event, ResponseReceived):
            self._cluster.marks.hit("change unanswered")
            self._again(work)
            return
        self._answered(work, event.message)

    def _answered(self, work: _Work, message: Any) -> None:
        step, error = work.steps[0], message.error_code
        marks = self._cluster.marks
        if error == ErrorCode.NONE:
            marks.hit(f"change done: {step.kind}")
            self._told(step)
            self._next(work)
        elif error in _SETTLED:
            marks.hit(f"change settled: {ErrorCode(error).name}")
            self._next(work)
        else:
            name = f"change refused: {ErrorCode(error).name}"
            marks.hit(name if name in SITUATIONS else "change refused")
            self._again(work)

    def _told(self, step: Step) -> None:
        """What is acknowledged as committed is. S12."""
        committed = self._cluster.histories.force
        if step.kind == "remove":
            check_removed(committed, step.key)
        elif step.is_awaited:
            check_added(committed, step.key)

    def _next(self, work: _Work) -> None:
        work.steps.popleft()
        work.tries = 0
        self._again(work, 100)

    def _again(self, work: _Work, pause_ms: int = 0) -> None:
        pause = pause_ms or self._random.randint(*_PAUSE_MS)
        self._cluster.scheduler.after(pause * MS, self._try, work)

    # The network's view

    def receive(self, call: Call, message: Message) -> None:
        """Nobody asks people."""

    def timeout_at(self, timeout_ms: int) -> int:
        """When a person will have waited so long."""
        return self._cluster.scheduler.now + timeout_ms * MS
