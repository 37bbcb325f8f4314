"""The untimed world on a clock, for scenarios that people read: a test controls what is lost, and
when; everything else arrives and finishes after a fixed time. All checks of the world hold."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random

from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.raft import effects, events
from kraftwire.raft.batches import control_records
from kraftwire.raft.config import Handover, RaftConfig, RaftTimers
from kraftwire.raft.core import RaftCore
from kraftwire.raft.voters import ReplicaKey, VoterSet
from kraftwire.sim.checks.entries import Entry, record_values
from kraftwire.sim.untimed.calls import Calls, UntimedCall
from kraftwire.sim.untimed.disk import Disk
from kraftwire.sim.untimed.members import UntimedMembers
from kraftwire.sim.untimed.node import Node, Work
from kraftwire.sim.untimed.plan import UntimedPlan
from kraftwire.sim.untimed.world import NETWORK_ERROR, UntimedWorld
from kraftwire.wire.message import Message
from tests.support.raft.messages import (
    CLUSTER_ID,
    FEATURES,
    JAVA_FEATURES,
    LISTENER,
    SOFTWARE,
    directory_id,
    endpoint,
    features,
    voter_set,
)

_UNSUPPORTED_VERSION = 35

# The sender of requests that a test makes itself.
_TEST = 0


class _Members(UntimedMembers):
    """The nodes of a cluster, with the names and keys that all tests of the core use."""

    def __init__(self, plan: UntimedPlan, cluster: Cluster) -> None:
        self._cluster = cluster
        super().__init__(plan)

    def directory_id(self, node: int, generation: int) -> bytes:
        """Return the directory id of a node that has lost this many disks."""
        first = directory_id(node)
        return bytes((first[0] + generation,)) + first[1:]

    def software(self, node: int) -> str:
        """Return the name with which a node's client introduces itself."""
        return self._cluster.software.get(node, "")

    def random(self, _node: int, _run: int) -> Random:
        """Return the random numbers of the next run."""
        return Random(self._cluster.random.random())

    def config(self, node: int) -> RaftConfig:
        """Return a node's configuration."""
        return self._cluster.config(node)

    def api_versions(self, node: int) -> ApiVersionsResponse:
        """Return the answer of a node to ApiVersions."""
        is_java = self._cluster.software[node] != SOFTWARE
        return features(JAVA_FEATURES if is_java else FEATURES)


class _Calls(Calls):
    """Calls that report when one is sent or lost."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    def post(self, call: UntimedCall) -> None:
        """Send a request or an answer."""
        super().post(call)
        self._cluster.posted(call)

    def dies(self, node: int, tokens: list[int]) -> None:
        """Handle a crash: connections to the node are closed."""
        known = list(self.lost)
        super().dies(node, tokens)
        for call in self.lost:
            if call not in known:
                self._cluster.give_up_later(call, self._cluster.latency_ms)


class Cluster:
    """Nodes, the messages between them, and virtual time. Units: milliseconds.

    `trace` collects a line for every change of role or voters and, with `verbose`, every message.
    With `dynamic` a bootstrap checkpoint states the voters, at kraft.version 1;
    nodes of a class with `joins` become voters by themselves, those of a class with `has_machines`
    have a state machine. `handled` counts steps of nodes, `loads` snapshots loaded by state
    machines.
    """

    joins = False
    has_machines = False

    def __init__(
        self,
        voters: list[int],
        observers: list[int] | None = None,
        *,
        seed: int = 1,
        timers: RaftTimers | None = None,
        dynamic: bool = False,
    ) -> None:
        """Create nodes that are not running yet; voters have the first ids, observers the next."""
        self.voters = voters
        self.timers = timers or RaftTimers()
        self.random = Random(seed)
        self.now = 0
        self.latency_ms = 1
        self.flush_delay_ms = 0
        self.chunk = 1 << 20
        self.trace: list[str] = []
        self.verbose = False
        self.software = dict.fromkeys(voters + (observers or []), SOFTWARE)
        self.blocked: set[tuple[int, int]] = set()
        self.without_pre_votes: set[int] = set()
        self.drop: Callable[[int, int, Message], bool] = lambda *_: False
        self.results: dict[int, effects.Effect] = {}
        self.handled = 0
        self.loads: dict[int, int] = dict.fromkeys(self.software, 0)
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        self._known_work: dict[int, list[Work]] = {}
        counts = len(voters), len(observers or [])
        plan = UntimedPlan(seed, *counts, is_dynamic=dynamic, with_state=self.has_machines)
        assert list(plan.nodes) == list(self.software), "ids are from 1 on"
        self.world = UntimedWorld(plan, _Members(plan, self))
        self.world.calls = _Calls(self)
        self.world.on_step = self._on_step

    # ---- nodes

    def start(self, *ids: int) -> None:
        """Start nodes from what is on their disks."""
        for node_id in ids:
            self._say(node_id, "starts")
            self.world.clocks[node_id] = self.now - 1
            self._known_work[node_id] = []
            self.world.apply("start", node_id)

    def config(self, node_id: int) -> RaftConfig:
        """The configuration of a node."""
        is_ours = self.software[node_id] == SOFTWARE
        dynamic = self.world.plan.is_dynamic
        return RaftConfig(
            key=self.key(node_id),
            cluster_id=CLUSTER_ID,
            voters=VoterSet() if dynamic else voter_set(self.voters),
            bootstrap_servers=tuple(map(endpoint, self.voters)) if dynamic else (),
            auto_join=self.joins,
            fetch_snapshot_max_bytes=self.chunk,
            endpoints=(endpoint(node_id),),
            timers=self.timers,
            handover=Handover.AUTO if is_ours else Handover.NEVER,
        )

    def kill(self, node_id: int) -> None:
        """End a node without warning; what it did not flush is lost."""
        self.world.apply("crash", node_id, 0)
        self._say(node_id, "is killed")

    def wipe(self, node_id: int) -> None:
        """Replace the disk of a stopped node: everything is lost, including its directory id."""
        self.world.disks[node_id] = self.world.members.wipe(node_id)
        self.world.checkers.replace(self.world.members.model(node_id))

    def stop(self, node_id: int) -> None:
        """Ask a node to shut down gracefully."""
        self.handle(node_id, events.ShutdownRequested())

    def append(self, node_id: int, *values: bytes, expected: int | None = None) -> int:
        """Have a node's state machine append records; returns the token of its result."""
        self._serial += 1
        token, node = self._serial, self._awake(node_id)
        self.world.step(node, lambda: node.append(token, node.core.epoch, values, expected))
        return token

    @property
    def nodes(self) -> dict[int, Node]:
        """The running nodes."""
        return self.world.nodes

    @property
    def disks(self) -> dict[int, Disk]:
        """The disks of all nodes."""
        return self.world.disks

    def core(self, node_id: int) -> RaftCore:
        """The core of a running node."""
        return self.nodes[node_id].core

    def key(self, node_id: int) -> ReplicaKey:
        """The present replica of a node."""
        return ReplicaKey(*self.world.members.key(node_id))

    def leaders(self) -> list[int]:
        """The nodes that believe they lead now."""
        return [one for one, node in self.nodes.items() if node.core.role == "leader"]

    def log_of(self, node_id: int) -> list[tuple[int, int, str]]:
        """(Base offset, epoch, what) of every batch of a node's log."""
        return [(one.base, one.epoch, _described(one)) for one in self.disks[node_id].log]

    def values(self, node_id: int) -> list[bytes]:
        """The records that a node's state machine has applied."""
        history, applied = self.world.checkers.history, self.nodes[node_id].applied
        assert history.sums[applied.offset] == applied.sum
        batches = [one for one in history.committed if one.end <= applied.offset]
        return [value for one in batches for value in record_values(one)]

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

    def ask(self, node_id: int, message: Message, version: int | None = None) -> UntimedCall:
        """Send a request to a node as a stranger; its answer will be in the returned call."""
        chosen = type(message).VERSIONS.high if version is None else version
        number = self.world.calls.number(_TEST, node_id, message)
        call = UntimedCall(number, 0, 0, message, chosen, 0)
        token = self.world.calls.arrives(call)
        self.handle(node_id, events.RequestReceived(token, chosen, message, LISTENER))
        return call

    def posted(self, call: UntimedCall) -> None:
        """Let a request or an answer arrive, if it is not lost."""
        sender, target = call.link
        if target == _TEST:
            self.world.calls.pending.remove(call)
            return
        message = call.message if call.answer is None else call.answer
        # An answer to ApiVersions is there as soon as it is requested.
        is_first = call.answer is None or call.message.NAME == "ApiVersionsRequest"
        if (sender, target) in self.blocked or self.drop(sender, target, message):
            self.give_up_later(call, call.deadline_ms - self.now)
        elif is_first and self._is_unknown(call):
            self.give_up_later(call, self.latency_ms, _UNSUPPORTED_VERSION)
        elif is_first and call.name[1] not in self.nodes:
            self.give_up_later(call, self.latency_ms)
        elif is_first and call.answer is not None:
            self._later(self.latency_ms, lambda: self._ask_versions(call))
        else:
            self._later(self.latency_ms, lambda: self._deliver(call))

    def _ask_versions(self, call: UntimedCall) -> None:
        sender, target = call.name[:2]
        if target not in self.nodes:
            self.give_up_later(call, 0)
            return
        if self.verbose:
            self._say(sender, f"{call.message.NAME} to {target}")
        self._later(self.latency_ms, lambda: self._deliver(call))

    def _is_unknown(self, call: UntimedCall) -> bool:
        message = call.message
        if call.name[1] not in self.without_pre_votes or not isinstance(message, VoteRequest):
            return False
        return message.topics[0].partitions[0].pre_vote

    def _deliver(self, call: UntimedCall) -> None:
        target = call.link[1]
        if call not in self.world.calls.pending:
            return
        if target in self.nodes:
            self._awake(target)
            if self.verbose and call.answer is None:
                self._say(call.name[0], f"{call.message.NAME} to {target}")
        self.world.apply("deliver", call.name)

    def give_up_later(self, call: UntimedCall, delay_ms: int, error: int = NETWORK_ERROR) -> None:
        """Let the sender of a request give it up after a while."""

        def give_up() -> None:
            if call in self.world.calls.pending:
                self.world.calls.pending.remove(call)
                self.world.calls.lost.append(call)
            # A call that is not awaited must not be mistaken for the newest of its kind.
            if call.is_awaited and call.name[0] in self.nodes:
                self._awake(call.name[0])
                self.world.apply("fail", call.name, error)

        self._later(delay_ms, give_up)

    # ---- time

    def handle(self, node_id: int, event: events.Event) -> None:
        """Give an event to a node now and carry out its effects."""
        node = self._awake(node_id)
        self.world.step(node, lambda: node.handle(event))

    def _awake(self, node_id: int) -> Node:
        """A running node, whose clock shows the present time."""
        self.world.apply("clock", node_id, self.now)
        return self.nodes[node_id]

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        self.run_until(lambda: False, duration_ms)

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 60_000) -> bool:
        """Let time pass until a condition holds; returns whether it does."""
        end = self.now + limit_ms
        while not condition():
            due = [node.due for node in self.nodes.values()]
            times = [at for at in due if at is not None] + [at for at, _, _ in self._events[:1]]
            if not times or min(times) > end:
                self.now = end
                return condition()
            self.now = max(self.now, min(times))
            self._next()
        return True

    def _next(self) -> None:
        if self._events and self._events[0][0] <= self.now:
            heapq.heappop(self._events)[2]()
            return
        for node_id, node in self.nodes.items():
            if node.due is not None and node.due <= self.now:
                self.world.apply("timer", node_id)
                return

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (self.now + delay_ms, self._serial, action))

    # ---- what nodes do

    def _on_step(self, node: Node) -> None:
        self.handled += 1
        for effect in node.trace:
            self._on_effect(node.id, effect)
        known = self._known_work[node.id]
        for work in node.work:
            if not any(work is one for one in known):
                delay = self.flush_delay_ms if work.kind == "flush" else 0
                self._later(delay, lambda work=work: self._finish(node, work))  # type: ignore[misc]
        self._known_work[node.id] = list(node.work)

    def _finish(self, node: Node, work: Work) -> None:
        if self.nodes.get(node.id) is node and any(work is one for one in node.work):
            self._awake(node.id)
            self.world.step(node, lambda: node.finish(work))

    def _on_effect(self, node_id: int, effect: effects.Effect) -> None:
        match effect:
            case effects.AppendAccepted(token) | effects.AppendRefused(token):
                self.results[token] = effect
            case effects.UpgradeDecided(token):
                self.results[token] = effect
            case effects.LoadSnapshot():
                self.loads[node_id] += 1
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

    def _say(self, node_id: int, text: str) -> None:
        self.trace.append(f"{self.now:>6} {node_id}: {text}")


def _described(entry: Entry) -> str:
    """A batch in a few words: the values of its records, or their kinds."""
    if not entry.is_control:
        return ",".join(value.decode() for value in record_values(entry))
    kinds = [kind for _, kind, _ in control_records(entry.data)]
    return ",".join(getattr(kind, "name", str(kind)) for kind in kinds)
