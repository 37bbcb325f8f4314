"""One replica of an untimed cluster: the shipped core with a separate disk.

Carries out effects one after another, and reports what was done. Longer work (flushes, deliveries,
snapshots) waits in `work` until the scheduler lets it finish.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

from kraftwire.messages.vote_request import VoteRequest
from kraftwire.raft import effects as do
from kraftwire.raft import events
from kraftwire.raft.config import RaftConfig
from kraftwire.raft.core import RaftCore
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.checks import replica_events as did
from kraftwire.sim.checks.entries import Applied, Entry, control_of
from kraftwire.sim.untimed.disk import Disk, content_of, snapshot_bytes
from kraftwire.wire.message import Message

LISTENER = 1
_WALL_MS = 1


class Crash(Exception):
    """The process ends between two effects."""


@dataclass(slots=True)
class Work:
    """Work in progress, which ends when the scheduler decides.

    `effect` requested it. `frozen` are the bytes with which it began; a flush covers the batches
    that existed when it began.
    """

    kind: str
    effect: do.Effect
    frozen: bytes = b""
    covers: tuple[Entry, ...] = ()


@dataclass(slots=True)
class _Append:
    """Records of a client that wait for the high watermark; `after` is the end of what had been
    acknowledged when it sent them."""

    base: int
    last: int
    epoch: int
    values: tuple[bytes, ...]
    after: int


@dataclass(slots=True)
class Node:
    """A running replica.

    `outbox` and `replies` have to be sent; `reported` says what was done. `event` and `trace` are
    the last event and its effects. The node no longer waits for answers to requests before index
    `reset_at` of `outbox`, or to older ones. `left` counts the effects until the process crashes,
    None for never.
    """

    id: int
    disk: Disk
    core: RaftCore
    now: int
    work: list[Work] = field(default_factory=list)
    outbox: list[do.SendRequest] = field(default_factory=list)
    replies: list[tuple[int, Message]] = field(default_factory=list)
    reported: list[did.ReplicaEvent] = field(default_factory=list)
    trace: list[do.Effect] = field(default_factory=list)
    requests: dict[int, Message] = field(default_factory=dict)
    applied: Applied = field(default_factory=Applied)
    waiting: dict[int, tuple[tuple[bytes, ...], int]] = field(default_factory=dict)
    appends: list[_Append] = field(default_factory=list)
    reset_at: int = -1
    is_stopped: bool = False
    is_leaving: bool = False
    left: int | None = None
    role: str = ""
    epoch: int = 0
    event: events.Event | None = None
    _voted: int = -1
    _in_pre_vote: bool = False
    _was_due: bool = False

    @staticmethod
    def boot(node_id: int, disk: Disk, config: RaftConfig, random: Random, now: int) -> Node:
        """Return a replica that starts from its disk. Order: call `start` next."""
        return Node(node_id, disk, RaftCore(config, disk.open(), random), now)

    def start(self, *, with_listener: bool) -> None:
        """Start the core, and register a state machine with an empty state."""
        self.role, self.epoch = self.core.role, self.core.epoch
        self._carry_out(self.core.start(self.now, _WALL_MS))
        self._settle()
        if with_listener:
            self.handle(events.ListenerRegistered(LISTENER, 0))

    def found(self) -> did.Started:
        """Return what a start finds on this disk, for the checks."""
        disk = self.disk
        newest = max(disk.snapshots, default=None)
        content = content_of(disk.snapshots[newest]) if newest is not None else None
        voters, version, _ = control_of(content[0]) if content is not None else (None, None, -1)
        return did.Started(
            OffsetAndEpoch(disk.start, disk.epoch_at_start()),
            tuple(disk.log),
            disk.election,
            newest.offset if newest is not None else 0,
            voters,
            version,
        )

    def handle(self, event: events.Event) -> None:
        """Let the core decide on an event, and carry out the effects."""
        self.event = event
        if type(event) is events.RequestReceived:
            self._note_request(event)
        self._carry_out(self.core.handle(event, self.now, _WALL_MS))
        self._settle()
        self._in_pre_vote = False

    def append(
        self,
        token: int,
        epoch: int,
        values: tuple[bytes, ...],
        expected: int | None = None,
        *,
        after: int = 0,
    ) -> None:
        """Ask the core to append records, at the offset `expected` if there is one; `after` is the
        end of what has been acknowledged so far."""
        self.waiting[token] = values, after
        self.handle(events.AppendRequested(token, epoch, values, expected))

    @property
    def due(self) -> int | None:
        """Return when the next timer is due."""
        return None if self.is_stopped else self.core.deadline_ms

    def _note_request(self, event: events.RequestReceived) -> None:
        self.requests[event.token] = event.message
        election = self.disk.election
        if type(event.message) is not VoteRequest:
            return
        request = event.message.topics[0].partitions[0]
        is_same = election.epoch == request.replica_epoch and election.voted is not None
        self._voted = election.voted.id if is_same and election.voted else -1
        self._in_pre_vote = request.pre_vote and request.replica_epoch <= election.epoch
        deadline = self.core.deadline_ms
        self._was_due = deadline is not None and deadline <= self.now

    def _carry_out(self, effects: list[do.Effect]) -> None:
        self.trace = effects
        for effect in effects:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    self.trace = effects[: effects.index(effect)]
                    raise Crash
            action = _ACTIONS.get(type(effect))
            if action is not None:
                action(self, effect)

    def _settle(self) -> None:
        core = self.core
        voters = tuple((one.key.id, one.key.directory_id) for one in core.voters)
        self.reported.append(
            did.StepEnded(
                core.epoch,
                core.end_offset,
                core.high_watermark,
                voters,
                core.kraft_version,
                core.role,
            )
        )

    # Quorum state and log

    def _persist(self, effect: do.PersistQuorumState) -> None:
        self.disk.persist(effect.state, effect.kraft_version)
        self.reported.append(did.Persisted(self.disk.election, self._in_pre_vote, self._was_due))

    def _append(self, effect: do.AppendToLog) -> None:
        entries = self.disk.append(effect.data)
        is_leader = self.role == "leader"
        self.reported.append(did.Appended(entries, self.epoch, is_leader))

    def _truncate(self, effect: do.TruncateLog) -> None:
        end, ordered = effect.end_offset, did.ordered_by(self.event)
        self.disk.truncate(end)
        self.reported += (did.Truncating(end, self.epoch, ordered), did.Truncated(end))

    def _reset(self, effect: do.ResetLog) -> None:
        start = effect.start
        data = self.disk.snapshots.get(start)
        content = content_of(data) if data is not None else None
        self.disk.reset(start)
        state = voters = version = None
        if content is not None:
            state = (content[1], content[2])
            voters, version, _ = control_of(content[0])
        self.reported.append(did.Reset(start, state, voters, version, self.epoch))

    def _drop_prefix(self, effect: do.DropLogPrefix) -> None:
        at = next((one for one in self.disk.snapshots if one.offset == effect.start_offset), None)
        self.disk.drop_prefix(effect.start_offset)
        self.disk.delete(list(effect.snapshots))
        start = at or OffsetAndEpoch(effect.start_offset, -1)
        self.reported.append(did.PrefixDropped(start, start in self.disk.snapshots))

    # Effects that take time

    def _flush(self, effect: do.FlushLog) -> None:
        self.work.append(Work("flush", effect, covers=tuple(self.disk.log)))

    def _deliver(self, effect: do.DeliverCommitted) -> None:
        self.work.append(Work("deliver", effect))

    def _load(self, effect: do.LoadSnapshot) -> None:
        # The file stays open, even if it is deleted meanwhile.
        self.work.append(Work("load", effect, self.disk.snapshots.get(effect.id, b"")))

    def _write(self, effect: do.WriteSnapshot) -> None:
        self.work.append(Work("write", effect, snapshot_bytes(effect, self.applied)))

    def _finish(self, effect: do.FinishSnapshot) -> None:
        self.work.append(Work("finish", effect))

    def _piece(self, effect: do.AppendToSnapshot) -> None:
        self.disk.download(effect.id, effect.position, bytes(effect.data))

    def _discard(self, effect: do.DiscardSnapshot) -> None:
        self.disk.discard(effect.id)
        self.work = [one for one in self.work if one.effect != do.FinishSnapshot(effect.id)]

    def finish(self, work: Work, *, is_well: bool = True) -> None:
        """Finish a piece of work, successfully or not, and tell the core."""
        if work.kind == "flush":
            self._flushed(work)
            return
        self.work.remove(work)
        effect = work.effect
        if isinstance(effect, do.DeliverCommitted):
            self._delivered(effect)
        elif isinstance(effect, do.LoadSnapshot):
            self._loaded(effect, work.frozen)
        elif isinstance(effect, do.WriteSnapshot):
            self._written(effect, work.frozen, is_well=is_well)
        elif isinstance(effect, do.FinishSnapshot):
            self._downloaded(effect, is_well=is_well)

    def _flushed(self, work: Work) -> None:
        """End a flush and all requested before it; only the newest is reported to the core."""
        place = self.work.index(work)
        self.work = [
            one for at, one in enumerate(self.work) if at > place or one.kind != "flush"
        ]
        effect = cast("do.FlushLog", work.effect)
        self.reported.append(did.Flushed(self.disk.flush(work.covers)))
        self.handle(events.LogFlushed(effect.end_offset, effect.generation))

    def _delivered(self, effect: do.DeliverCommitted) -> None:
        start = self.applied.offset
        found: list[Entry] = []
        for entry in self.disk.log:
            if effect.start_offset <= entry.base and entry.end <= effect.end_offset:
                found.append(entry)
                self.applied.apply(entry)
        if found or self.disk.start <= effect.start_offset:
            # Otherwise the log was replaced meanwhile: there is nothing to read any more.
            self.reported.append(did.Delivered(start, tuple(found)))
        self.handle(events.ListenerConsumed(effect.listener_id, self.applied.offset))

    def _loaded(self, effect: do.LoadSnapshot, data: bytes) -> None:
        content = content_of(data)
        state = (content[1], content[2]) if content else (-1, -1)
        self.reported.append(did.Loaded(effect.id, state, self.applied.offset, self.role))
        self.applied = Applied(*state)
        self.handle(events.ListenerConsumed(effect.listener_id, effect.id.offset))

    def _written(self, effect: do.WriteSnapshot, data: bytes, *, is_well: bool) -> None:
        if not is_well:
            self.handle(events.SnapshotFailed(effect.id, "the disk is full"))
            return
        self.disk.snapshots[effect.id] = data
        self._store(effect.id, data)
        self.handle(events.SnapshotWritten(effect.id, len(data)))

    def _store(self, snapshot: OffsetAndEpoch, data: bytes) -> None:
        content = content_of(data)
        if content is not None:
            control, offset, total = content
            voters, version, _ = control_of(control)
            self.reported.append(did.SnapshotStored(snapshot, (offset, total), voters, version))

    def _downloaded(self, effect: do.FinishSnapshot, *, is_well: bool) -> None:
        part = self.disk.part
        data = part[1] if part is not None and part[0] == effect.id else b""
        content = content_of(data) if is_well else None
        self.disk.discard(effect.id)
        if content is None:
            self.handle(events.SnapshotRejected(effect.id, "a checksum is wrong"))
            return
        self.disk.snapshots[effect.id] = data
        self._store(effect.id, data)
        self.handle(events.SnapshotFinished(effect.id, len(data), content[0]))

    # Network

    def _send(self, effect: do.SendRequest) -> None:
        self.reported.append(did.RequestSent(effect.message))
        self.outbox.append(effect)

    def _reply(self, effect: do.SendReply) -> None:
        message, part = effect.message, effect.part
        if isinstance(part, do.LogSlice):
            part.put(message, self.disk.read(part))
        elif isinstance(part, do.SnapshotSlice):
            part.put(message, self.disk.read_snapshot(part))
        request = self.requests.pop(effect.token)
        self.reported.append(did.ResponseSent(request, message, self._voted))
        self.replies.append((effect.token, message))

    def _forget(self, _: do.ResetConnections) -> None:
        self.reset_at = len(self.outbox)

    # Reports of the core

    def _advance(self, effect: do.HighWatermarkAdvanced) -> None:
        leads = self.role == "leader"
        self.reported.append(did.HighWatermarkAdvanced(effect.offset, self.epoch if leads else -1))
        while leads and self.appends and self.appends[0].last < effect.offset:
            one = self.appends.pop(0)
            self.reported.append(did.Acknowledged(one.base, one.epoch, one.values, one.after))

    def _leader_changed(self, effect: do.LeaderChanged) -> None:
        leader = effect.leader_id, effect.epoch, effect.end_offset
        self.reported.append(did.LeaderReported(*leader, self.applied.offset))

    def _accepted(self, effect: do.AppendAccepted) -> None:
        values, after = self.waiting.pop(effect.token)
        self.appends.append(
            _Append(effect.base_offset, effect.last_offset, effect.epoch, values, after)
        )

    def _refused(self, effect: do.AppendRefused) -> None:
        del self.waiting[effect.token]

    def _role_changed(self, effect: do.RoleChanged) -> None:
        self.role, self.epoch = effect.new, effect.epoch
        self.appends.clear()
        if effect.new == "leader":
            self.reported.append(did.Elected(effect.epoch))

    def _stop(self, _: do.ShutdownFinished) -> None:
        self.is_stopped = True


_ACTIONS: dict[type, Callable[[Node, Any], None]] = {
    do.PersistQuorumState: Node._persist,
    do.AppendToLog: Node._append,
    do.TruncateLog: Node._truncate,
    do.FlushLog: Node._flush,
    do.ResetLog: Node._reset,
    do.DropLogPrefix: Node._drop_prefix,
    do.AppendToSnapshot: Node._piece,
    do.FinishSnapshot: Node._finish,
    do.DiscardSnapshot: Node._discard,
    do.WriteSnapshot: Node._write,
    do.LoadSnapshot: Node._load,
    do.DeliverCommitted: Node._deliver,
    do.SendRequest: Node._send,
    do.SendReply: Node._reply,
    do.ResetConnections: Node._forget,
    do.HighWatermarkAdvanced: Node._advance,
    do.LeaderChanged: Node._leader_changed,
    do.AppendAccepted: Node._accepted,
    do.AppendRefused: Node._refused,
    do.RoleChanged: Node._role_changed,
    do.ShutdownFinished: Node._stop,
}
