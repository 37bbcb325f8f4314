"""An untimed cluster: its nodes and what may happen to them next.

Owns what can apply (`apply`), never when. Every event is a plain tuple that can be replayed; one
that no longer applies, because others were left out, has no effect. Nothing but events changes a
cluster: a path has all that happened, so replaying it leads to the same state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from kraftwire.raft import events
from kraftwire.raft.effects import SendRequest
from kraftwire.sim.checks.liveness import Link
from kraftwire.sim.invariants import Violation
from kraftwire.sim.replicas import LISTENER_NAME, node_of
from kraftwire.sim.untimed.calls import Calls, Name, UntimedCall
from kraftwire.sim.untimed.disk import Disk
from kraftwire.sim.untimed.members import UntimedMembers
from kraftwire.sim.untimed.node import LISTENER, Crash, Node
from kraftwire.sim.untimed.plan import UntimedPlan
from kraftwire.wire.message import Message

Action = tuple[Any, ...]

# The error of a request whose connection is closed.
NETWORK_ERROR = 8

# Actions that no step of a node shows.
_NOTES = {
    "part": "no messages",
    "heal": "all messages pass again",
    "crash": "crashes",
    "cut": "will crash between two effects",
    "cancel_cut": "will not crash between two effects",
    "wipe": "gets an empty disk",
    "again": "gets a request once more",
    "oversleep": "has slept",
}

_OVERSLEEP_MS = 20_000
_SPINS_MAX = 50
_TOKENS = 1 << 40  # of operators and clients, far from those of requests


class UntimedWorld:
    """A cluster.

    `history` has the actions so far; `clocks` those of stopped nodes; `on_step` is called with the
    node that took a step, before the step is checked: for the failure report.
    """

    def __init__(self, plan: UntimedPlan, members: UntimedMembers | None = None) -> None:
        self.plan = plan
        self.members = members or UntimedMembers(plan)
        self.checkers = self.members.checkers()
        self.calls = Calls()
        self.disks: dict[int, Disk] = {}
        self.nodes: dict[int, Node] = {}
        self.history: list[Action] = []
        self.coverage: Counter[str] = Counter()
        self.cut_links: frozenset[Link] = frozenset()
        self.on_step: Callable[[Node], None] | None = None
        self._runs: dict[int, int] = {}
        self.clocks: dict[int, int] = {}
        self._values = 0
        self._dying: dict[int, int] = {}
        self._spins: dict[int, int] = {}
        for node in plan.nodes:
            self.disks[node] = self.members.format(node)
            self.clocks[node] = 1_000_000

    @property
    def elections(self) -> int:
        """In how many epochs there was a leader."""
        return len(self.checkers.history.leaders)

    @property
    def commits(self) -> int:
        """How much is committed."""
        return self.checkers.history.frontier

    def describe(self, what: Action) -> str:
        """Describe an action that is next, unless a step of a node shows it."""
        kind, *rest = what
        note = _NOTES.get(kind, "")
        if kind == "part":
            note += " from " + ", ".join(f"{sender} to {target}" for sender, target in rest[0])
        elif note and rest:
            note = f"{rest[0][1] if kind == 'again' else rest[0]} {note}"
        return note

    def begin(self) -> None:
        """Start all nodes. Raises: Violation."""
        for node in self.plan.nodes:
            self._start(node)

    def apply(self, *what: Any) -> bool:
        """Carry out an event if it is still possible; returns whether it was. Raises: Violation."""
        self.history.append(what)
        if _ACTIONS[what[0]](self, *what[1:]):
            self.cover(what[0])
            return True
        self.history.pop()
        return False

    def cover(self, situation: str) -> None:
        """Count a situation that was reached."""
        self.coverage[situation] += 1

    def passes(self, call: UntimedCall) -> bool:
        """Whether the message of a call may arrive now."""
        return call.link not in self.cut_links

    # Messages

    def _deliver(self, name: Name) -> bool:
        """A request reaches its addressee, or an answer the sender of its request."""
        call = self.calls.on_its_way(name)
        if call is None or not self.passes(call):
            return False
        self.calls.pending.remove(call)
        if call.answer is None:
            self._receive(call, call)
        else:
            self._returns(call, call.answer)
        return True

    def _again(self, name: Name) -> bool:
        """A request reaches its addressee, and stays in flight to arrive once more."""
        call = self.calls.on_its_way(name)
        if call is None or call.answer is not None or not self.passes(call):
            return False
        self._receive(call, None)
        return True

    def _fail(self, name: Name, error: int = NETWORK_ERROR) -> bool:
        """A sender gives up its request; a message in flight may still arrive."""
        call = self.calls.waited_for(name)
        node = self.nodes.get(name[0])
        if call is None or node is None:
            return False
        call.is_awaited = False
        self.step(node, lambda: node.handle(events.RequestFailed(call.request_id, error)))
        return True

    def _expire(self, name: Name) -> bool:
        """A sender gives up its request, and a message in flight never arrives."""
        call = self.calls.on_its_way(name)
        if call is None:
            return False
        self._fail(call.name)
        if call in self.calls.pending:
            self.calls.pending.remove(call)
        return True

    def _part(self, links: tuple[Link, ...]) -> bool:
        """Messages on these links no longer arrive."""
        self.cut_links = frozenset(links)
        return True

    def _heal(self) -> bool:
        """All messages may arrive again."""
        had, self.cut_links = bool(self.cut_links), frozenset()
        return had

    # Time and work

    def _timer(self, at: int) -> bool:
        """The next timer of a node is due."""
        node = self.nodes.get(at)
        due = node.due if node is not None else None
        if node is None or due is None:
            return False
        self._spins[at] = self._spins.get(at, 0) + 1 if due <= node.now else 0
        if self._spins[at] > _SPINS_MAX:
            raise Violation("L9", f"{at} is busy without end")
        node.now = max(node.now, due)
        self.step(node, lambda: node.handle(events.TimerExpired()))
        return True

    def _oversleep(self, at: int) -> bool:
        """A node slept for long, and everything is due."""
        node = self.nodes.get(at)
        if node is None or node.due is None:
            return False
        node.now += _OVERSLEEP_MS
        self.step(node, lambda: node.handle(events.TimerExpired()))
        return True

    def _clock(self, at: int, now_ms: int) -> bool:
        """A node's clock advances, and nothing is due."""
        node = self.nodes.get(at)
        if node is None or node.now >= now_ms:
            return False
        node.now = now_ms
        return True

    def _work(self, at: int, kind: str) -> bool:
        """Something that takes time has finished."""
        return self._finish(at, kind, is_well=True)

    def _fail_work(self, at: int, kind: str) -> bool:
        """Something that takes time has failed."""
        return kind in ("write", "finish") and self._finish(at, kind, is_well=False)

    def _finish(self, at: int, kind: str, *, is_well: bool) -> bool:
        node = self.nodes.get(at)
        work = next((one for one in node.work if one.kind == kind), None) if node else None
        if node is None or work is None:
            return False
        self.step(node, lambda: node.finish(work, is_well=is_well))
        return True

    # State machines and operators

    def _append(self, at: int, count: int) -> bool:
        """A client appends records at a node that believes it leads."""
        node = self._leading(at)
        if node is None:
            return False
        values = []
        for _ in range(count):
            self._values += 1
            values.append(b"v%d" % self._values)
        token = _TOKENS + self._values
        after = self.checkers.history.acknowledged
        self.step(node, lambda: node.append(token, node.epoch, tuple(values), after=after))
        return True

    def _leading(self, at: int) -> Node | None:
        node = self.nodes.get(at)
        return node if node is not None and node.role == "leader" else None

    def _resign(self, at: int) -> bool:
        """A state machine resigns its leadership."""
        node = self._leading(at)
        return node is not None and self._handle(at, events.ResignRequested(node.epoch))

    def _stop(self, at: int) -> bool:
        """A node is asked to shut down gracefully."""
        node = self.nodes.get(at)
        if node is None:
            return False
        node.is_leaving = True
        return self._handle(at, events.ShutdownRequested())

    def _snapshot(self, at: int) -> bool:
        """A state machine wants a snapshot of what it has."""
        node = self.nodes.get(at)
        if node is None or not node.applied.offset:
            return False
        return self._handle(at, events.SnapshotWanted(LISTENER, node.applied.offset, 1))

    def _retain(self, at: int, place: int) -> bool:
        """A log may start at one of its snapshots."""
        stored = sorted(one for one in self.disks[at].snapshots if one.offset)
        if not stored:
            return False
        return self._handle(at, events.LogStartProposed(stored[place % len(stored)]))

    def _add(self, at: int, newcomer: int) -> bool:
        """An operator asks a node to add a voter."""
        return self._ask(at, self.members.request_to_add(newcomer), 1)

    def _remove(self, at: int, member: int, age: int) -> bool:
        """An operator asks a node to remove a voter, as it was so many disks ago."""
        key = self.members.earlier_key(member, age)
        return key is not None and self._ask(at, self.members.remove_request(key), 0)

    def _upgrade(self, at: int) -> bool:
        """An operator asks a leader to raise kraft.version."""
        node = self._leading(at)
        if node is None:
            return False
        return self._handle(at, events.UpgradeRequested(_TOKENS, node.epoch, 1))

    def _read(self, at: int, beyond: int) -> bool:
        """A client asks a node for a part of its newest snapshot, from near the end of the file."""
        node, newest = self.nodes.get(at), max(self.disks[at].snapshots, default=None)
        if node is None or newest is None:
            return False
        position = len(self.disks[at].snapshots[newest]) + beyond
        return self._ask(at, self.members.read_request(newest, position, node.epoch), 1)

    def _ask(self, at: int, message: Message, version: int) -> bool:
        if at not in self.nodes:
            return False
        token = self.calls.arrives(None)
        return self._handle(at, events.RequestReceived(token, version, message, LISTENER_NAME))

    def _handle(self, at: int, event: events.Event) -> bool:
        node = self.nodes.get(at)
        if node is None:
            return False
        self.step(node, lambda: node.handle(event))
        return True

    # Lifecycle

    def _start(self, at: int) -> bool:
        """A dead node starts."""
        if at in self.nodes:
            return False
        run = self._runs[at] = self._runs.get(at, 0) + 1
        self.clocks[at] += 1
        config, random = self.members.config(at), self.members.random(at, run)
        voted = self.disks[at].election.voted
        if voted is not None and not voted.has_directory_id:
            self.cover("a vote without its directory id")
        node = Node.boot(at, self.disks[at], config, random, self.clocks[at])
        self.nodes[at] = node
        self.checkers.on(at, [node.found()])
        self.step(node, lambda: node.start(with_listener=self.plan.with_state))
        return True

    def _crash(self, at: int, survivors: int) -> bool:
        """A node dies; of the batches that were not flushed the first `survivors` stay."""
        if at not in self.nodes:
            return False
        self._end(at, survivors)
        return True

    def _cut(self, at: int, effects: int, survivors: int) -> bool:
        """A node will die once it has carried out this number of further effects."""
        node = self.nodes.get(at)
        if node is None or node.left is not None:
            return False
        node.left = effects
        self._dying[at] = survivors
        return True

    def _cancel_cut(self, at: int) -> bool:
        """A node that would die between two effects does not."""
        node = self.nodes.get(at)
        if node is None or node.left is None:
            return False
        node.left = None
        del self._dying[at]
        return True

    def _wipe(self, at: int) -> bool:
        """A stopped node gets an empty disk, if the quorum can do without its old one."""
        if at in self.nodes or not self.members.may_wipe(at, self.checkers):
            return False
        self.disks[at] = self.members.wipe(at)
        self.checkers.replace(self.members.model(at))
        return True

    # Consequences

    def step(self, node: Node, action: Callable[[], None]) -> None:
        """Let a node take a step, check what it did, and send its messages."""
        try:
            action()
            has_crashed = False
        except Crash:
            has_crashed = True
        seen, node.reported = node.reported, []
        if self.on_step is not None:
            self.on_step(node)
        self.checkers.on(node.id, seen)
        self._post(node)
        if has_crashed:
            self.cover("died between two effects")
            self._end(node.id, self._dying.pop(node.id, 0))
        elif node.is_stopped:
            self._end(node.id, 0)

    def _post(self, node: Node) -> None:
        if node.reset_at >= 0:
            self.calls.disown(node.id)
        for place, sent in enumerate(node.outbox):
            self._send(node, sent, is_awaited=place >= node.reset_at)
        node.outbox.clear()
        node.reset_at = -1
        for token, message in node.replies:
            self.calls.answered(token, message)
        node.replies.clear()

    def _send(self, node: Node, sent: SendRequest, *, is_awaited: bool) -> None:
        target, message = node_of(sent.destination.port), sent.message
        name, deadline = self.calls.number(node.id, target, message), node.now + sent.timeout_ms
        version = type(message).VERSIONS.high
        call = UntimedCall(name, self._runs[node.id], sent.request_id, message, version, deadline)
        call.is_awaited = is_awaited
        if message.NAME == "ApiVersionsRequest":
            call.answer = self.members.api_versions(target)
        self.calls.post(call)

    def _receive(self, call: UntimedCall, answered: UntimedCall | None) -> None:
        """Pass a request to its addressee; a dead one refuses the connection."""
        node = self.nodes.get(call.name[1])
        if node is None:
            if answered is not None and call.is_awaited:
                self.calls.lost.append(call)
                self._fail(call.name)
            return
        token = self.calls.arrives(answered)
        software = self.members.software(call.name[0])
        event = events.RequestReceived(
            token, call.version, call.message, LISTENER_NAME, software
        )
        self.step(node, lambda: node.handle(event))

    def _returns(self, call: UntimedCall, answer: Message) -> None:
        """Pass an answer to the sender of its request, even if the sender no longer waits."""
        sender = call.name[0]
        node = self.nodes.get(sender)
        if node is None or self._runs[sender] != call.run:
            return
        call.is_awaited = False
        self.step(node, lambda: node.handle(events.ResponseReceived(call.request_id, answer)))

    def _end(self, at: int, survivors: int) -> None:
        node = self.nodes.pop(at)
        self.clocks[at] = node.now
        self._dying.pop(at, None)
        self.disks[at].crash(survivors)
        self.calls.dies(at, list(node.requests))


_ACTIONS: dict[str, Callable[..., bool]] = {
    "deliver": UntimedWorld._deliver,
    "again": UntimedWorld._again,
    "fail": UntimedWorld._fail,
    "expire": UntimedWorld._expire,
    "part": UntimedWorld._part,
    "heal": UntimedWorld._heal,
    "timer": UntimedWorld._timer,
    "oversleep": UntimedWorld._oversleep,
    "clock": UntimedWorld._clock,
    "work": UntimedWorld._work,
    "fail_work": UntimedWorld._fail_work,
    "append": UntimedWorld._append,
    "resign": UntimedWorld._resign,
    "stop": UntimedWorld._stop,
    "snapshot": UntimedWorld._snapshot,
    "retain": UntimedWorld._retain,
    "add": UntimedWorld._add,
    "remove": UntimedWorld._remove,
    "upgrade": UntimedWorld._upgrade,
    "read": UntimedWorld._read,
    "start": UntimedWorld._start,
    "crash": UntimedWorld._crash,
    "cut": UntimedWorld._cut,
    "cancel_cut": UntimedWorld._cancel_cut,
    "wipe": UntimedWorld._wipe,
}
