"""A machine with disk and clock, whose node can be started, paused, killed and restarted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from kraftwire.errors import StorageError
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.raft.core import RaftCore
from kraftwire.raft.events import Event, ShutdownRequested
from kraftwire.replica.storage import Storage
from kraftwire.sim.checks.replica_events import Persisted, ReplicaEvent
from kraftwire.sim.clock import MS, Clock
from kraftwire.sim.disk import PowerCut, SimFiles
from kraftwire.sim.environment import Environment, Quorum
from kraftwire.sim.invariants import Violation
from kraftwire.sim.network import Call
from kraftwire.sim.process import Process
from kraftwire.sim.storage import started, stored_snapshot
from kraftwire.wire.message import Message

# The delay before a process that ended by itself is restarted.
_RESTART_MS = 2_000


class Machine:
    """One node of a cluster, over all its runs.

    `is_foreign` is True if it belongs to another cluster; `run` counts process starts and ends;
    `vote_before` is the node's vote, before the
    latest Vote request came, in the epoch of that request; -1 for none.
    """

    def __init__(self, cluster: Environment, node: int, clock: Clock, quorum: Quorum) -> None:
        self.cluster = cluster
        self.quorum = quorum
        self.is_foreign = quorum is not cluster.quorum
        self.checkers = quorum.checkers
        self.id = node
        self.clock = clock
        self.files = SimFiles()
        self.process: Process | None = None
        self.run = 0
        self.is_paused = False
        self.down_until = 0
        self.vote_before = -1
        self._backlog: list[tuple[int, Call | None, Message | Event]] = []
        self._random = Random(f"machine {cluster.plan.seed} {node}")
        quorum.members.format(node, self.files)

    @property
    def is_up(self) -> bool:
        """Whether a process runs, paused or not."""
        return self.process is not None

    # Lifecycle

    def start(self) -> None:
        """Start the node, unless it is running."""
        if self.process is not None:
            return
        cluster = self.cluster
        self.run += 1
        self.clock.restart(cluster.queue.now, self._random.choice(cluster.plan.skew_ms))
        cluster.note(f"{self.id} starts")
        try:
            storage = self._open()
            self._report_start(storage)
            core = RaftCore(
                self.quorum.members.config(self.id, storage.directory_id),
                storage.stored_state(),
                Random(f"core {cluster.plan.seed} {self.id} {self.run}"),
            )
            self.process = Process(self, storage, core)
            self.process.start()
        except PowerCut:
            self._cut_short()
        except StorageError as error:
            self.fail(error)

    def _report_start(self, storage: Storage) -> None:
        """Tell the checks what the start has found."""
        model = self.checkers.models[self.id]
        found = started(storage, self.files)
        if storage.log.end_offset < model.end:
            self.cluster.coverage.hit("start lost what was not flushed")
        events: list[ReplicaEvent] = [found, *stored_snapshot(storage)]
        if found.election != model.stored:
            # The power failed while it was stored.
            events.insert(0, Persisted(found.election, in_pre_vote=False))
        self.checkers.on(self.id, events)

    def _open(self) -> Storage:
        try:
            return Storage.open(self.quorum.members.directories(self.id), self.files)
        except StorageError as error:
            if error.fatal or self.files.is_full:
                raise
            # A crash is not a reason to refuse: what it damages was never acknowledged.
            raise Violation("D11", f"{self.id} refuses its own log: {error}") from error

    def kill(self) -> None:
        """End the process; what it wrote stays, durable or not."""
        self.cluster.coverage.hit("killed")
        self._end()
        self.files.kill()

    def lose_power(self) -> None:
        """Stop the machine; the disk keeps what is durable, and perhaps some pending writes."""
        policy = self._random.choice(self.cluster.plan.crash_policies)
        self.cluster.coverage.hit(f"power lost: {policy}")
        self._end()
        self.files.lose_power(self._random, policy)

    def _cut_short(self) -> None:
        """The power failed during an operation, or between two effects."""
        self.cluster.coverage.hit("power lost within an operation")
        self.lose_power()

    def fail(self, error: StorageError) -> None:
        """End the process, as a node must after a failed disk operation."""
        self.cluster.coverage.hit("stopped by its disk")
        self.cluster.note(f"{self.id} fails: {error}")
        self._end()
        self.files.kill()
        self.start_later(_RESTART_MS)

    def stop(self) -> None:
        """Ask the node to shut down gracefully."""
        if self.process is not None:
            self.take(ShutdownRequested())

    def later_stop(self) -> None:
        """End the process after the current event."""
        self.cluster.queue.after(0, self._stopped, self.run)

    def _stopped(self, run: int) -> None:
        if self.run == run and self.process is not None:
            self.guard(self._close, self.process)

    def _close(self, process: Process) -> None:
        process.storage.close()
        self._end()
        self.files.kill()

    def _end(self) -> None:
        self.cluster.note(f"{self.id} ends")
        self.cluster.crashes += 1
        process, self.process = self.process, None
        self.run += 1
        self.is_paused = False
        self._backlog.clear()
        if process is not None:
            for call in process.requests.values():
                if self._random.random() < 0.5:
                    self.cluster.network.drop_connections(call)
        if not self.down_until:
            self.start_later(_RESTART_MS)

    def start_later(self, delay_ms: int) -> None:
        """Start the node after a delay."""
        queue = self.cluster.queue
        self.down_until = queue.now + delay_ms * MS
        queue.at(self.down_until, self._start_due, self.down_until)

    def _start_due(self, planned: int) -> None:
        if planned == self.down_until:
            self.down_until = 0
            self.start()

    def wipe(self) -> None:
        """Give the node an empty disk; its process has ended."""
        self.quorum.members.wipe(self.id, self.files)
        self.checkers.replace(self.quorum.members.model(self.id))

    # Input

    def pause(self) -> None:
        """Suspend the process: its input waits."""
        self.is_paused = self.process is not None

    def resume(self) -> None:
        """Resume the process, with all waiting input."""
        if not self.is_paused:
            return
        self.is_paused = False
        backlog, self._backlog = self._backlog, []
        if backlog:
            self.cluster.coverage.hit("suspended with work")
        for run, call, item in backlog:
            if run != self.run:
                return
            if call is not None:
                self.receive(call, item)  # type: ignore[arg-type]
            else:
                self.take(item)  # type: ignore[arg-type]

    def take(self, event: Event) -> None:
        """Pass an event to the process, if it is running."""
        process = self.process
        if process is None:
            return
        if self.is_paused:
            self._backlog.append((self.run, None, event))
            return
        try:
            process.handle(event)
        except PowerCut:
            self._cut_short()
        except StorageError as error:
            self.fail(error)

    def receive(self, call: Call, message: Message) -> None:
        """Pass a request to the process."""
        process = self.process
        if process is None:
            return
        if self.is_paused:
            self._backlog.append((self.run, call, message))
            return
        if type(message) is VoteRequest:
            epoch = message.topics[0].partitions[0].replica_epoch
            stored = self.checkers.models[self.id].stored
            is_known = stored.epoch == epoch and stored.voted is not None
            self.vote_before = stored.voted.id if is_known and stored.voted else -1
        try:
            process.receive(call, message)
        except PowerCut:
            self._cut_short()
        except StorageError as error:
            self.fail(error)

    def append(self, token: int, values: tuple[bytes, ...], expected: int | None) -> None:
        """Let a client append records."""
        process = self.process
        if process is None or self.is_paused:
            return
        self.guard(process.append, token, values, expected)

    def guard(self, action: Callable[..., None], *arguments: Any) -> None:
        """Call something that may end the process."""
        try:
            action(*arguments)
        except PowerCut:
            self._cut_short()
        except StorageError as error:
            self.fail(error)

    def later(self, delay: int, event: Event) -> None:
        """Pass an event to this run of the process after a delay."""
        self.cluster.queue.after(delay, self._late, self.run, event)

    def _late(self, run: int, event: Event) -> None:
        if run == self.run:
            self.take(event)

    def timeout_at(self, timeout_ms: int) -> int:
        """Return when this node's clock will have advanced by this many milliseconds."""
        now = self.cluster.queue.now
        return self.clock.when(self.clock.read(now) + timeout_ms)


def leading(machines: Mapping[int, Machine]) -> list[Machine]:
    """The machines whose processes lead. Order: by epoch."""
    found = [one for one in machines.values() if one.process and one.process.role == "leader"]
    return sorted(found, key=_epoch)


def _epoch(machine: Machine) -> int:
    return machine.process.epoch if machine.process else -1
