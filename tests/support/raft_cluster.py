"""A few Raft cores in one process, on virtual time: a test controls every message and effect.

The simulator of the package searches with random faults on real files; this is a small one for
scenarios that people read. Disks are plain Python values; what was not flushed is lost in a
crash.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.raft import effects, events
from kraftwire.raft.config import Handover, RaftConfig, RaftTimers
from kraftwire.raft.core import RaftCore
from kraftwire.raft.voters import ReplicaKey, VoterSet
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT
from kraftwire.wire.message import Message
from tests.support.raft_disk import Disk, Machine, snapshot_bytes
from tests.support.raft_nodes import (
    FEATURES,
    JAVA_FEATURES,
    LISTENER,
    SOFTWARE,
    directory_id,
    dynamic_set,
    endpoint,
    features,
    voter_set,
    voters_control,
)

__all__ = ["Cluster", "Replica"]


@dataclass
class Replica:
    """A running node. `machines` are its state machines, by listener id."""

    id: int
    core: RaftCore
    disk: Disk
    high_watermark: int = -1
    machines: dict[int, Machine] = field(default_factory=dict)


@dataclass(frozen=True)
class _Asked:
    """A request in flight: sender, addressee, and what handles the answer."""

    sender: int
    target: int
    timeout_ms: int
    answer: Callable[[Message | None], None]


class Cluster:
    """Nodes, the messages between them, and virtual time. Units: milliseconds.

    `trace` collects a line for every change of role or voters and, with `verbose`, every message.
    With `dynamic` a bootstrap checkpoint states the voters, at kraft.version 1;
    nodes of a class with `joins` become voters by themselves.
    """

    joins = False

    def __init__(
        self,
        voters: list[int],
        observers: list[int] | None = None,
        *,
        seed: int = 1,
        timers: RaftTimers | None = None,
        dynamic: bool = False,
    ) -> None:
        """Create nodes that are not running yet."""
        self.dynamic = dynamic
        self.voters = voters
        self.observers = observers or []
        self.timers = timers or RaftTimers()
        self.random = Random(seed)
        self.now = 0
        self.latency_ms = 1
        self.trace: list[str] = []
        self.verbose = False
        self.disks = {one: Disk() for one in voters + self.observers}
        self.keys = {one: ReplicaKey(one, directory_id(one)) for one in self.disks}
        if dynamic:
            bootstrap = snapshot_bytes(BOOTSTRAP_SNAPSHOT, voters_control(dynamic_set(voters)))
            for one in voters:
                self.disks[one].snapshots[BOOTSTRAP_SNAPSHOT] = bootstrap
        self.replicas: dict[int, Replica] = {}
        self.software = dict.fromkeys(voters + self.observers, SOFTWARE)
        self.blocked: set[tuple[int, int]] = set()
        self.without_pre_votes: set[int] = set()
        self.drop: Callable[[int, int, Message], bool] = lambda *_: False
        self.results: dict[int, effects.Effect] = {}
        self.notes: list[tuple[int, str]] = []
        self.flush_delay_ms = 0
        self.work_ms = 0
        self.chunk = 1 << 20
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        self._runs: dict[int, int] = {}
        self._asked: dict[int, _Asked] = {}
        self.replies: dict[int, Message] = {}

    # ---- nodes

    def start(self, *ids: int) -> None:
        """Start nodes from what is on their disks."""
        for node_id in ids:
            disk = self.disks[node_id]
            self._runs[node_id] = self._runs.get(node_id, 0) + 1
            config = self.config(node_id)
            core = RaftCore(config, disk.stored(), Random(self.random.random()))
            self.replicas[node_id] = Replica(node_id, core, disk)
            self._say(node_id, "starts")
            self._carry_out(node_id, core.start(self.now))

    def config(self, node_id: int) -> RaftConfig:
        """The configuration of a node."""
        is_ours = self.software[node_id] == SOFTWARE
        servers = tuple(map(endpoint, self.voters)) if self.dynamic else ()
        return RaftConfig(
            key=self.keys[node_id],
            cluster_id="cluster",
            voters=VoterSet() if self.dynamic else voter_set(self.voters),
            bootstrap_servers=servers,
            auto_join=self.joins,
            fetch_snapshot_max_bytes=self.chunk,
            endpoints=(endpoint(node_id),),
            timers=self.timers,
            handover=Handover.AUTO if is_ours else Handover.NEVER,
        )

    def kill(self, node_id: int) -> None:
        """End a node without warning; what it did not flush is lost."""
        del self.replicas[node_id]
        self.disks[node_id].crash()
        self._say(node_id, "is killed")

    def wipe(self, node_id: int) -> None:
        """Replace the disk of a stopped node: everything is lost, including its directory id."""
        self.disks[node_id] = Disk()
        old = self.keys[node_id].directory_id
        self.keys[node_id] = ReplicaKey(node_id, bytes((old[0] + 1,)) + old[1:])

    def stop(self, node_id: int) -> None:
        """Ask a node to shut down gracefully."""
        self.handle(node_id, events.ShutdownRequested())

    def append(self, node_id: int, *values: bytes, expected: int | None = None) -> int:
        """Have a node's state machine append records; returns the token of its result."""
        self._serial += 1
        token, epoch = self._serial, self.core(node_id).epoch
        self.handle(node_id, events.AppendRequested(token, epoch, values, expected))
        return token

    def core(self, node_id: int) -> RaftCore:
        """The core of a running node."""
        return self.replicas[node_id].core

    def leaders(self) -> list[int]:
        """The nodes that believe they lead now."""
        return [one for one, replica in self.replicas.items() if replica.core.role == "leader"]

    # ---- network

    def cut(self, first: list[int], second: list[int]) -> None:
        """Let nothing pass between two groups."""
        for one in first:
            for other in second:
                self.blocked |= {(one, other), (other, one)}

    def heal(self) -> None:
        """Let everything pass again."""
        self.blocked.clear()
        self.drop = lambda *_: False

    # ---- time

    def handle(self, node_id: int, event: events.Event) -> None:
        """Give an event to a node now and carry out its effects."""
        self._carry_out(node_id, self.core(node_id).handle(event, self.now))

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        self.run_until(lambda: False, duration_ms)

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 60_000) -> bool:
        """Let time pass until a condition holds; returns whether it does."""
        end = self.now + limit_ms
        while not condition():
            at = self._next_time()
            if at is None or at > end:
                self.now = end
                return condition()
            self.now = max(self.now, at)
            self._step()
        return True

    def _next_time(self) -> int | None:
        due = [replica.core.deadline_ms for replica in self.replicas.values()]
        times = [at for at in due if at is not None]
        if self._events:
            times.append(self._events[0][0])
        return min(times, default=None)

    def _step(self) -> None:
        if self._events and self._events[0][0] <= self.now:
            heapq.heappop(self._events)[2]()
            return
        for node_id, replica in list(self.replicas.items()):
            due = replica.core.deadline_ms
            if due is not None and due <= self.now:
                self.handle(node_id, events.TimerExpired())
                return

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (self.now + delay_ms, self._serial, action))

    # ---- effects

    def _carry_out(self, node_id: int, found: list[effects.Effect]) -> None:
        for effect in found:
            self._carry_out_one(node_id, effect)

    def _carry_out_one(self, node_id: int, effect: effects.Effect) -> None:
        replica, disk = self.replicas.get(node_id), self.disks[node_id]
        if replica is None:
            return
        disk.perform(effect)
        match effect:
            case effects.FlushLog(end_offset, generation):
                self._flush_later(node_id, end_offset, generation)
            case effects.SendRequest():
                self._send(node_id, effect)
            case effects.SendReply():
                self._reply(effect)
            case effects.HighWatermarkAdvanced(offset):
                replica.high_watermark = offset
            case effects.AppendAccepted(token) | effects.AppendRefused(token):
                self.results[token] = effect
            case effects.UpgradeDecided(token):
                self.results[token] = effect
            case effects.FinishSnapshot(snapshot):
                self._answer_later(node_id, lambda: disk.finish(snapshot))
            case effects.DeliverCommitted() | effects.LoadSnapshot() | effects.WriteSnapshot():
                self._run_machine(replica, effect)
            case effects.Note(text=text):
                self.notes.append((node_id, text))
        self._tell(node_id, effect)
        if isinstance(effect, effects.ShutdownFinished):
            del self.replicas[node_id]

    def _tell(self, node_id: int, effect: effects.Effect) -> None:
        """Add the lines of an effect to the trace."""
        match effect:
            case effects.RoleChanged(old, new, epoch, leader_id, reason):
                leader = f" of {leader_id}" if new == "follower" else ""
                self._say(node_id, f"{old} -> {new}{leader}, epoch {epoch}: {reason}")
            case effects.VotersChanged(voters, version, offset):
                ids = " ".join(str(one.key.id) for one in voters)
                self._say(node_id, f"voters {ids} at offset {offset}, kraft.version {version}")
            case effects.Note(text=text) if self.verbose:
                self._say(node_id, text)
            case effects.ShutdownFinished(graceful):
                self._say(node_id, "stopped" if graceful else "stopped late")

    def _run_machine(
        self,
        replica: Replica,
        effect: effects.DeliverCommitted | effects.LoadSnapshot | effects.WriteSnapshot,
    ) -> None:
        """Let a state machine do its work, and report that."""
        disk = replica.disk
        machine = replica.machines.setdefault(effect.listener_id, Machine())
        match effect:
            case effects.DeliverCommitted():
                self._answer_later(replica.id, lambda: machine.deliver(disk, effect))
            case effects.LoadSnapshot():
                self._answer_later(replica.id, lambda: machine.load(disk, effect))
            case effects.WriteSnapshot():
                data = machine.freeze(effect)
                self._answer_later(replica.id, lambda: disk.keep(effect.id, data))

    def _answer_later(self, node_id: int, work: Callable[[], events.Event]) -> None:
        """Do something that takes time, then give the event that reports it to the node."""
        run = self._runs[node_id]

        def finish() -> None:
            if node_id in self.replicas and self._runs[node_id] == run:
                self.handle(node_id, work())

        self._later(self.work_ms, finish)

    def _flush_later(self, node_id: int, end_offset: int, generation: int) -> None:
        run = self._runs[node_id]

        def flushed() -> None:
            if node_id in self.replicas and self._runs[node_id] == run:
                self.disks[node_id].flush(end_offset)
                self.handle(node_id, events.LogFlushed(end_offset, generation))

        self._later(self.flush_delay_ms, flushed)

    def _send(self, sender: int, effect: effects.SendRequest) -> None:
        target = effect.destination.port - 9000
        run = self._runs[sender]

        def answer(response: Message | None) -> None:
            if sender not in self.replicas or self._runs[sender] != run:
                return
            if response is None:
                error = 35 if self._is_unknown(target, effect.message) else 8
                self.handle(sender, events.RequestFailed(effect.request_id, error))
            else:
                self.handle(sender, events.ResponseReceived(effect.request_id, response))

        if not self._passes(sender, target, effect.message):
            self._later(effect.timeout_ms, lambda: answer(None))
            return
        if target not in self.replicas or self._is_unknown(target, effect.message):
            self._later(self.latency_ms, lambda: answer(None))
            return
        self._later(self.latency_ms, lambda: self._deliver(sender, target, effect, answer))

    def _is_unknown(self, target: int, message: Message) -> bool:
        if target not in self.without_pre_votes or not isinstance(message, VoteRequest):
            return False
        return message.topics[0].partitions[0].pre_vote

    def _passes(self, sender: int, target: int, message: Message) -> bool:
        return (sender, target) not in self.blocked and not self.drop(sender, target, message)

    def _deliver(
        self,
        sender: int,
        target: int,
        effect: effects.SendRequest,
        answer: Callable[[Message | None], None],
    ) -> None:
        if target not in self.replicas:
            answer(None)
            return
        if self.verbose:
            self._say(sender, f"{effect.message.NAME} to {target}")
        if isinstance(effect.message, ApiVersionsRequest):
            # The shell of a node answers this request by itself.
            is_java = self.software[target] != SOFTWARE
            found = features(JAVA_FEATURES if is_java else FEATURES)
            self._carry_back(_Asked(sender, target, effect.timeout_ms, answer), found)
            return
        self._serial += 1
        token = self._serial
        version = type(effect.message).VERSIONS.high
        event = events.RequestReceived(
            token, version, effect.message, LISTENER, self.software[sender]
        )
        self._asked[token] = _Asked(sender, target, effect.timeout_ms, answer)
        self.handle(target, event)

    def _reply(self, effect: effects.SendReply) -> None:
        """Deliver an answer, with the records that it refers to as they are now."""
        message = effect.message
        asked = self._asked.pop(effect.token, None)
        if asked is None:
            # A request that a test made itself.
            self.replies[effect.token] = message
            return
        if effect.part is not None:
            effect.part.put(message, self.disks[asked.target].read(effect.part))
        self._carry_back(asked, message)

    def _carry_back(self, asked: _Asked, message: Message) -> None:
        if self._passes(asked.target, asked.sender, message):
            self._later(self.latency_ms, lambda: asked.answer(message))
        else:
            self._later(asked.timeout_ms, lambda: asked.answer(None))

    def ask(self, node_id: int, message: Message, version: int | None = None) -> Message:
        """Send a request to a node as a stranger; returns the answer, which must come at once."""
        self._serial += 1
        token = self._serial
        chosen = type(message).VERSIONS.high if version is None else version
        self.handle(node_id, events.RequestReceived(token, chosen, message, LISTENER))
        return self.replies.pop(token)

    def _say(self, node_id: int, text: str) -> None:
        self.trace.append(f"{self.now:>6} {node_id}: {text}")

    def log_of(self, node_id: int) -> list[tuple[int, int, str]]:
        """(Base offset, epoch, what) of every batch of a node's log."""
        return self.disks[node_id].described()
