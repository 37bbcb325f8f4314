"""A timeless cluster: its nodes, the messages between them, and what may happen next.

Owns what can happen (`happen`), never when. Every happening is a plain tuple that can be played
again: one that does not apply any more, as when others were left out, does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from kraftwire.raft import events
from kraftwire.raft.effects import SendRequest
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.timeless import facts
from kraftwire.sim.timeless.book import Book
from kraftwire.sim.timeless.disk import Disk, content_of
from kraftwire.sim.timeless.entries import read_control
from kraftwire.sim.timeless.members import LISTENER_NAME, Members, node_of
from kraftwire.sim.timeless.node import LISTENER, Crash, Node
from kraftwire.sim.timeless.plan import Plan
from kraftwire.sim.violation import Violation
from kraftwire.wire.message import Message

__all__ = ["Call", "Happening", "World"]

Happening = tuple[Any, ...]

_LATE_MS = 20_000
_PENDING_MAX = 60
_SPINS_MAX = 50


@dataclass(slots=True, eq=False)
class Call:
    """A request and its answer. Shape: `name` is sender, addressee, message and how many of these
    there were before; `answer` is None while the request is on its way. Nobody waits for the
    answer if not `is_awaited`."""

    name: tuple[int, int, str, int]
    run: int
    request_id: int
    message: Message
    version: int
    answer: Message | None = None
    is_awaited: bool = True


class World:
    """A cluster.

    `pending` is on its way, `lost` are requests that their addressee had when it died. `told` hears
    what a node did, before it is checked: for the story.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.members = Members(plan)
        self.book = Book(self.members.static)
        self.disks: dict[int, Disk] = {}
        self.nodes: dict[int, Node] = {}
        self.runs: dict[int, int] = {}
        self.clocks: dict[int, int] = {}
        self.pending: list[Call] = []
        self.lost: list[Call] = []
        self.parts: frozenset[tuple[int, int]] = frozenset()
        self.counts: dict[tuple[int, int, str], int] = {}
        self.marks: dict[str, int] = {}
        self.steps = 0
        self.told: Callable[[int, list[facts.Fact]], None] | None = None
        self._asked: dict[int, Call | None] = {}
        self._token = 0
        self._value = 0
        self._dying: dict[int, int] = {}
        self._spins: dict[int, int] = {}
        for node in plan.nodes:
            self.disks[node] = self.members.format(node)
            self.clocks[node] = 1_000_000

    def begin(self) -> None:
        """Start all nodes. Raises: Violation."""
        for node in self.plan.nodes:
            self.start(node)

    # Happenings

    def happen(self, what: Happening) -> bool:
        """Let this happen, if it still can; returns whether it did. Raises: Violation."""
        done: bool = getattr(self, what[0])(*what[1:])
        if done:
            self.steps += 1
            self.mark(what[0])
        return done

    def mark(self, situation: str) -> None:
        """Count a situation that was reached."""
        self.marks[situation] = self.marks.get(situation, 0) + 1

    def find(self, name: tuple[int, int, str, int]) -> Call | None:
        """The call of this name, if it is on its way."""
        return next((call for call in self.pending if call.name == name), None)

    def passes(self, call: Call) -> bool:
        """Whether the message of a call may arrive now."""
        sender, target = call.name[:2]
        way = (sender, target) if call.answer is None else (target, sender)
        return way not in self.parts

    def deliver(self, name: tuple[int, int, str, int]) -> bool:
        """A request reaches its addressee, or its answer whoever asked."""
        call = self.find(name)
        if call is None or not self.passes(call):
            return False
        self.pending.remove(call)
        if call.answer is None:
            self._receive(call, call)
        else:
            self._returns(call)
        return True

    def again(self, name: tuple[int, int, str, int]) -> bool:
        """A request reaches its addressee, and stays on its way to arrive once more."""
        call = self.find(name)
        if call is None or call.answer is not None or not self.passes(call):
            return False
        self._receive(call, None)
        return True

    def fail(self, name: tuple[int, int, str, int]) -> bool:
        """Whoever asked gives up waiting; what is on its way may still arrive."""
        call = next((one for one in self.awaited() if one.name == name), None)
        node = self.nodes.get(name[0])
        if call is None or node is None:
            return False
        call.is_awaited = False
        self._step(node, lambda: node.handle(events.RequestFailed(call.request_id, 8)))
        return True

    def timer(self, at: int) -> bool:
        """The next timer of a node is due."""
        node = self.nodes.get(at)
        due = node.due if node is not None else None
        if node is None or due is None:
            return False
        self._spins[at] = self._spins.get(at, 0) + 1 if due <= node.now else 0
        if self._spins[at] > _SPINS_MAX:
            raise Violation("L9", f"{at} is busy without end")
        node.now = max(node.now, due)
        self._step(node, lambda: node.handle(events.TimerExpired()))
        return True

    def late(self, at: int) -> bool:
        """A node slept for long, and everything is due."""
        node = self.nodes.get(at)
        if node is None or node.due is None:
            return False
        node.now += _LATE_MS
        self._step(node, lambda: node.handle(events.TimerExpired()))
        return True

    def work(self, at: int, kind: str) -> bool:
        """Something that takes time has finished."""
        return self._finish(at, kind, is_well=True)

    def spoil(self, at: int, kind: str) -> bool:
        """Something that takes time has failed."""
        return kind in ("write", "finish") and self._finish(at, kind, is_well=False)

    def _finish(self, at: int, kind: str, *, is_well: bool) -> bool:
        node = self.nodes.get(at)
        work = next((one for one in node.work if one.kind == kind), None) if node else None
        if node is None or work is None:
            return False
        self._step(node, lambda: node.finish(work, is_well=is_well))
        return True

    def append(self, at: int, count: int) -> bool:
        """A client appends records at a node that thinks to lead."""
        node = self.nodes.get(at)
        if node is None or node.role != "leader":
            return False
        values = []
        for _ in range(count):
            self._value += 1
            values.append(b"v%d" % self._value)
        self._token += 1
        token = self._token
        self._step(node, lambda: node.append(token, node.epoch, tuple(values)))
        return True

    def resign(self, at: int) -> bool:
        """A state machine gives up its leadership."""
        node = self.nodes.get(at)
        if node is None or node.role != "leader":
            return False
        self._step(node, lambda: node.handle(events.ResignRequested(node.epoch)))
        return True

    def stop(self, at: int) -> bool:
        """A node is asked to leave in good order."""
        node = self.nodes.get(at)
        if node is None:
            return False
        self._step(node, lambda: node.handle(events.ShutdownRequested()))
        return True

    def snapshot(self, at: int) -> bool:
        """A state machine wants a snapshot of what it has."""
        node = self.nodes.get(at)
        if node is None or not node.applied.offset:
            return False
        wanted = events.SnapshotWanted(LISTENER, node.applied.offset, 1)
        self._step(node, lambda: node.handle(wanted))
        return True

    def retain(self, at: int, place: int) -> bool:
        """A log may start at one of its snapshots."""
        node = self.nodes.get(at)
        stored = sorted(one for one in self.disks[at].snapshots if one.offset)
        if node is None or not stored:
            return False
        proposed = events.LogStartProposed(stored[place % len(stored)])
        self._step(node, lambda: node.handle(proposed))
        return True

    def ask(self, at: int, message: Message, version: int) -> bool:
        """An operator asks a node something."""
        node = self.nodes.get(at)
        if node is None:
            return False
        self._token += 1
        self._asked[self._token] = None
        event = events.RequestReceived(self._token, version, message, LISTENER_NAME)
        self._step(node, lambda: node.handle(event))
        return True

    def add(self, at: int, newcomer: int) -> bool:
        """An operator asks a node to add a voter."""
        return self.ask(at, self.members.add_request(newcomer), 1)

    def remove(self, at: int, member: int, *, is_old: bool = False) -> bool:
        """An operator asks a node to remove a voter; an old one has lost its disk."""
        key = self.members.old_key(member) if is_old else self.members.key(member)
        return key is not None and self.ask(at, self.members.remove_request(key), 0)

    def upgrade(self, at: int) -> bool:
        """An operator asks a leader to raise kraft.version."""
        node = self.nodes.get(at)
        if node is None or node.role != "leader":
            return False
        self._token += 1
        event = events.UpgradeRequested(self._token, node.epoch, 1)
        self._step(node, lambda: node.handle(event))
        return True

    def crash(self, at: int, survivors: int) -> bool:
        """A node dies; of the batches that were not flushed so many survive."""
        if at not in self.nodes:
            return False
        self._end(at, survivors)
        return True

    def cut(self, at: int, effects: int, survivors: int) -> bool:
        """A node will die once it has carried out so many more effects."""
        node = self.nodes.get(at)
        if node is None or node.left is not None:
            return False
        node.left = effects
        self._dying[at] = survivors
        return True

    def start(self, at: int) -> bool:
        """A dead node starts."""
        if at in self.nodes:
            return False
        run = self.runs[at] = self.runs.get(at, 0) + 1
        random = Random(f"{self.plan.seed} {at} {run}")
        self.clocks[at] += 1
        config = self.members.config(at)
        node = Node.boot(at, self.disks[at], config, random, self.clocks[at])
        self.nodes[at] = node
        self.book.see(at, [_started(self.disks[at])])
        self._step(node, lambda: node.start(with_listener=self.plan.with_state))
        return True

    def wipe(self, at: int) -> bool:
        """A dead node gets an empty disk, if the quorum can lose it."""
        if at in self.nodes or not self.members.may_wipe(at, self.book):
            return False
        self.disks[at] = self.members.wipe(at)
        return True

    def part(self, ways: tuple[tuple[int, int], ...]) -> bool:
        """Messages of these ways do not arrive any more."""
        self.parts = frozenset(ways)
        return True

    def heal(self) -> bool:
        """All messages may arrive again."""
        if not self.parts:
            return False
        self.parts = frozenset()
        return True

    # What follows

    def _step(self, node: Node, action: Callable[[], None]) -> None:
        """Let a node take a step, look at what it did, and send what it sends."""
        try:
            action()
            has_crashed = False
        except Crash:
            has_crashed = True
        seen, node.facts = node.facts, []
        if self.told is not None:
            self.told(node.id, seen)
        self.book.see(node.id, seen)
        self._post(node)
        if has_crashed:
            self.mark("died between two effects")
            self._end(node.id, self._dying.pop(node.id, 0))
        elif node.is_stopped:
            self._end(node.id, 0)

    def _post(self, node: Node) -> None:
        if node.reset_at >= 0:
            self._disown(node.id)
        for place, sent in enumerate(node.outbox):
            self._send(node, sent, is_awaited=place >= node.reset_at)
        node.outbox.clear()
        node.reset_at = -1
        for token, message in node.replies:
            asked = self._asked.pop(token)
            if asked is not None:
                asked.answer = message
                self._pend(asked)
        node.replies.clear()

    def _disown(self, at: int) -> None:
        """Let a node wait for nothing any more."""
        for call in self.awaited():
            if call.name[0] == at:
                call.is_awaited = False
        self.lost = [one for one in self.lost if one.is_awaited]

    def _send(self, node: Node, sent: SendRequest, *, is_awaited: bool) -> None:
        target, message = node_of(sent.destination.port), sent.message
        kind = (node.id, target, message.NAME)
        count = self.counts[kind] = self.counts.get(kind, 0) + 1
        version = type(message).VERSIONS.high
        call = Call((*kind, count), self.runs[node.id], sent.request_id, message, version)
        call.is_awaited = is_awaited
        if message.NAME == "ApiVersionsRequest":
            call.answer = self.members.api_versions(target)
        self._pend(call)

    def _pend(self, call: Call) -> None:
        self.pending.append(call)
        if len(self.pending) > _PENDING_MAX:
            stale = next((one for one in self.pending if not one.is_awaited), None)
            if stale is not None:
                self.pending.remove(stale)

    def awaited(self) -> list[Call]:
        """The calls that somebody waits for, wherever they are."""
        calls = (*self.pending, *self._asked.values(), *self.lost)
        return [one for one in calls if one is not None and one.is_awaited]

    def _receive(self, call: Call, answered: Call | None) -> None:
        """Hand a request to its addressee; a dead one refuses the connection."""
        node = self.nodes.get(call.name[1])
        if node is None:
            if answered is not None and call.is_awaited:
                self.lost.append(call)
                self.fail(call.name)
            return
        self._token += 1
        token = self._token
        self._asked[token] = answered
        event = events.RequestReceived(token, call.version, call.message, LISTENER_NAME)
        self._step(node, lambda: node.handle(event))

    def _returns(self, call: Call) -> None:
        """Hand an answer to whoever asked, also if it does not wait any more."""
        sender, answer = call.name[0], call.answer
        node = self.nodes.get(sender)
        if node is None or self.runs[sender] != call.run or answer is None:
            return
        call.is_awaited = False
        self._step(node, lambda: node.handle(events.ResponseReceived(call.request_id, answer)))

    def _end(self, at: int, survivors: int) -> None:
        node = self.nodes.pop(at)
        self.clocks[at] = node.now
        self._dying.pop(at, None)
        self.disks[at].crash(survivors)
        for token in list(node.requests):
            # The connection is gone with the process: whoever asked learns of it in time.
            parked = self._asked.pop(token, None)
            if parked is not None and parked.is_awaited:
                self.lost.append(parked)
        self._disown(at)
        self.pending = [
            one for one in self.pending if one.name[0] != at or one.answer is None
        ]


def _started(disk: Disk) -> facts.Started:
    newest = max(disk.snapshots, default=None)
    voters = version = None
    if newest is not None:
        content = content_of(disk.snapshots[newest])
        if content is not None:
            voters, version, _ = read_control(content[0])
    epoch = next((one.epoch for one in disk.snapshots if one.offset == disk.start), 0)
    return facts.Started(
        disk.directory_id,
        OffsetAndEpoch(disk.start, epoch),
        tuple(disk.log),
        disk.election,
        newest.offset if newest is not None else 0,
        voters,
        version,
    )
