"""Clients of a cluster: operators who change the voters, and clients that append records.

Operators send requests, retry, and check the answers. Both sometimes ask the wrong node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import Destination, SendRequest
from kraftwire.raft.events import Event, ResponseReceived, UpgradeRequested
from kraftwire.sim.checks.voters import Key
from kraftwire.sim.clock import MS, SECOND
from kraftwire.sim.coverage import SITUATIONS
from kraftwire.sim.environment import Environment
from kraftwire.sim.machine import Machine, leading
from kraftwire.sim.network import Call
from kraftwire.sim.replicas import endpoint
from kraftwire.wire.message import Message

# The sender of their requests; no node has this id.
_ID = 0

_TRIES_MAX = 12
_PAUSE_MS = (200, 2_000)
_UPGRADE_MS = 800

# The share of requests that go to a random node, not to the leader.
_CHANGE_MISTAKES = 0.1

# Errors that end a step: the change has already been made, or cannot be.
_SETTLED = {
    ErrorCode.DUPLICATE_VOTER,
    ErrorCode.VOTER_NOT_FOUND,
    ErrorCode.UNSUPPORTED_VERSION,
}


@dataclass(frozen=True, slots=True)
class VoterChange:
    """A change that an operator wants: `kind` is add, remove or upgrade, `key` the voter concerned.

    Without `is_awaited` an addition is answered before its commit, so the answer proves nothing.
    """

    kind: str
    key: Key
    is_awaited: bool = True


@dataclass(slots=True, eq=False)
class _Job:
    """The remaining steps of a job, how often the first was tried, and its open request."""

    steps: deque[VoterChange]
    tries: int = 0
    request_id: int = 0


class Operators:
    """The operators of a cluster, as a peer in its network."""

    id = _ID
    run = 0
    is_up = True
    is_foreign = False

    def __init__(self, cluster: Environment, machines: Mapping[int, Machine]) -> None:
        self._cluster = cluster
        self._machines = machines
        self._random = Random(f"operators {cluster.plan.seed}")
        self._jobs: list[_Job] = []
        self._is_patient = False

    @property
    def left(self) -> int:
        """The number of remaining steps of all jobs."""
        return sum(len(job.steps) for job in self._jobs)

    @property
    def is_idle(self) -> bool:
        """Whether no job is left."""
        return not self._jobs

    def concerns(self, node: int) -> bool:
        """Return whether a remaining step concerns this node; its disk must then not be
        replaced."""
        return any(step.key[0] == node for job in self._jobs for step in job.steps)

    @property
    def is_removing(self) -> bool:
        """Whether some job still has a removal."""
        return any(step.kind == "remove" for job in self._jobs for step in job.steps)

    def begin(self, *steps: VoterChange) -> None:
        """Begin a job of these steps, in this order."""
        job = _Job(deque(steps))
        self._jobs.append(job)
        self._try(job)

    def insist(self) -> None:
        """From now on retry forever, instead of giving a job up after a few attempts."""
        self._is_patient = True

    # One step

    def _try(self, job: _Job) -> None:
        """Send the request of the first sensible step, or end the job if all is done or given
        up."""
        cluster = self._cluster
        if job not in self._jobs:
            return
        while job.steps and not self._makes_sense(job.steps[0]):
            cluster.coverage.hit("change dropped")
            job.steps.popleft()
        if not job.steps:
            self._jobs.remove(job)
            return
        job.tries += 1
        step = job.steps[0]
        if job.tries > _TRIES_MAX and step.kind != "upgrade" and not self._is_patient:
            cluster.coverage.hit("change given up")
            self._jobs.remove(job)
            return
        if step.kind == "upgrade":
            self._upgrade(job)
        else:
            self._ask(job, step)

    def _makes_sense(self, step: VoterChange) -> bool:
        """Return False for adding a lost disk, and for removing a voter that a majority needs.

        A set before the committed one does not count: a replica that still has it is catching up.
        """
        cluster = self._cluster
        if step.kind == "upgrade":
            return True
        if step.kind == "add":
            return cluster.members.is_alive(step.key)
        models, (committed, newest) = cluster.checkers.models, cluster.history.sets[-1]
        present = [model.sets[-1] for model in models.values()]
        sets = [newest, *(voters for offset, voters in present if offset >= committed)]
        left = [tuple(one for one in voters if one != step.key) for voters in sets]
        return all(cluster.members.keeps_majority(voters) for voters in left if voters)

    def _upgrade(self, job: _Job) -> None:
        leaders = leading(self._machines)
        if self._cluster.history.version:
            self._next(job)
            return
        if leaders and leaders[-1].process is not None:
            token = self._cluster.next_token()
            leaders[-1].take(UpgradeRequested(token, leaders[-1].process.epoch, 1))
        self._again(job, _UPGRADE_MS)

    def _ask(self, job: _Job, step: VoterChange) -> None:
        cluster = self._cluster
        message: Message
        if step.kind == "add":
            message = cluster.members.add_request(
                step.key, cluster.timers.request_timeout_ms, is_awaited=step.is_awaited
            )
        else:
            message = cluster.members.remove_request(step.key)
        target = self._whom_to_ask()
        cluster.note(f"an operator asks {target.id} to {step.kind} voter {step.key[0]}")
        timeout = cluster.timers.request_timeout_ms + 1_000
        job.request_id = cluster.next_token()
        at = endpoint(target.id)
        destination = Destination(target.id, at.host, at.port)
        call = cluster.network.send(
            self, SendRequest(job.request_id, destination, message, timeout)
        )
        cluster.queue.at(call.deadline, cluster.network.expire, call)

    def _whom_to_ask(self) -> Machine:
        leaders = leading(self._machines)
        if leaders and self._random.random() >= _CHANGE_MISTAKES:
            return leaders[-1]
        return self._random.choice(list(self._machines.values()))

    # Outcomes

    def take(self, event: Event) -> None:
        """A request was answered, or has failed."""
        request_id = getattr(event, "request_id", 0)
        job = next((one for one in self._jobs if one.request_id == request_id), None)
        if job is None:
            return
        job.request_id = 0
        if not isinstance(event, ResponseReceived):
            self._cluster.coverage.hit("change unanswered")
            self._again(job)
            return
        self._answered(job, event.message)

    def _answered(self, job: _Job, message: Any) -> None:
        step, error = job.steps[0], message.error_code
        coverage = self._cluster.coverage
        if error == ErrorCode.NONE:
            coverage.hit(f"change done: {step.kind}")
            self._check_acknowledged(step)
            self._next(job)
        elif error in _SETTLED:
            coverage.hit(f"change settled: {ErrorCode(error).name}")
            self._next(job)
        else:
            name = f"change refused: {ErrorCode(error).name}"
            coverage.hit(name if name in SITUATIONS else "change refused")
            self._again(job)

    def _check_acknowledged(self, step: VoterChange) -> None:
        """Check that a change acknowledged as committed is committed. S12."""
        if step.is_awaited or step.kind == "remove":
            self._cluster.history.acknowledges_voter(step.key, is_added=step.kind == "add")

    def _next(self, job: _Job) -> None:
        job.steps.popleft()
        job.tries = 0
        self._again(job, 100)

    def _again(self, job: _Job, pause_ms: int = 0) -> None:
        pause = pause_ms or self._random.randint(*_PAUSE_MS)
        self._cluster.queue.after(pause * MS, self._try, job)

    # The network's view

    def receive(self, call: Call, message: Message) -> None:
        """Nodes send no requests to operators."""

    def timeout_at(self, timeout_ms: int) -> int:
        """Return when a time-out ends: operators use the queue's clock."""
        return self._cluster.queue.now + timeout_ms * MS


_APPEND_MISTAKES = 0.03
_EXACT = 0.1
_WRONG = 0.02


class Workload:
    """The clients of a cluster. `appended` counts the records that they sent."""

    def __init__(self, cluster: Environment, machines: Mapping[int, Machine]) -> None:
        self._cluster = cluster
        self._machines = machines
        self._random = Random(f"workload {cluster.plan.seed}")
        self._is_over = False
        self.appended = 0

    def begin(self) -> None:
        """Let clients append, at random moments from now on."""
        if self._cluster.plan.appends_per_second:
            self._next()

    def end(self) -> None:
        """Let no more clients append."""
        self._is_over = True

    def append(self) -> bool:
        """Append something at the newest leader; False if no node leads."""
        leaders = leading(self._machines)
        if leaders:
            self._append(leaders[-1])
        return bool(leaders)

    def _next(self) -> None:
        delay = self._random.expovariate(self._cluster.plan.appends_per_second)
        self._cluster.queue.after(int(delay * SECOND), self._come)

    def _come(self) -> None:
        if self._is_over:
            return
        machines = list(self._machines.values())
        leaders = leading(self._machines)
        if leaders and self._random.random() >= _APPEND_MISTAKES:
            self._append(self._random.choice(leaders))
        else:
            self._append(self._random.choice(machines))
        self._next()

    def _append(self, machine: Machine) -> None:
        process = machine.process
        if process is None:
            return
        count = self._random.choice((1, 1, 1, 2, 5))
        size = self._cluster.plan.record_bytes
        values = tuple(self._value(size) for _ in range(count))
        expected = None
        if not self._is_over and self._random.random() < _EXACT:
            expected = process.append_end
            if self._random.random() < _WRONG:
                expected += 1
        self.appended += count
        machine.append(self._cluster.next_token(), values, expected)

    def _value(self, size: int) -> bytes:
        return b"record %d." % self._cluster.next_token() + bytes(size)
