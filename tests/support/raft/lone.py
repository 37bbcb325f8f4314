"""One Raft core alone; a test is its peers, disk and clocks, and sees every effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft import effects, events
from kraftwire.raft.config import Handover, RaftConfig, RaftTimers
from kraftwire.raft.core import RaftCore
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.voters import ReplicaKey, VoterSet
from kraftwire.records import RecordBatch
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch
from kraftwire.records.plain import data_batch
from kraftwire.wire.message import Message
from tests.support.raft.disk import Disk, snapshot_bytes
from tests.support.raft.messages import (
    CLUSTER_ID,
    LISTENER,
    begin,
    directory_id,
    dynamic_set,
    endpoint,
    fetch,
    voted,
    voter_set,
    voters_control,
)

_E = TypeVar("_E")


def stored_log(*epochs: tuple[int, int]) -> list[bytes]:
    """Batches of one record each. (epoch, how many) one after the other, from offset 0."""
    batches: list[bytes] = []
    for epoch, count in epochs:
        for _ in range(count):
            batches.append(data_batch(len(batches), epoch, 0, [b"%d" % len(batches)]))
    return batches


class Lone:
    """A core and what it did. `effects` has all effects, `requests` the requests sent.

    Flushes are carried out and answered at once, unless `is_slow` holds them back.
    """

    def __init__(
        self,
        node_id: int = 1,
        voters: Sequence[int] | VoterSet = (1, 2, 3),
        *,
        election: ElectionState | None = None,
        log: Sequence[bytes] = (),
        seed: int = 1,
        log_start: int = 0,
        is_dynamic: bool = False,
        is_slow: bool = False,
        **config: Any,
    ) -> None:
        """Start the core from this disk.

        With `log_start`, what precedes that offset is only in a snapshot. With `is_dynamic` a
        bootstrap checkpoint states the voters, at kraft.version 1. With `is_slow` flushes are left
        to the test.
        """
        self.id = node_id
        self.now = 1_000_000
        self.wall_offset_ms: int | None = None
        self.disk = Disk(list(log), len(log), election or ElectionState())
        self.effects: list[effects.Effect] = []
        self.is_slow = is_slow
        self._token = 0
        self._seed = seed
        if log_start:
            self._trim(log_start)
        named = voters if isinstance(voters, VoterSet) else voter_set(voters)
        servers: tuple[Endpoint, ...] = ()
        if is_dynamic:
            chosen = voters if isinstance(voters, VoterSet) else dynamic_set(voters)
            bootstrap = snapshot_bytes(BOOTSTRAP_SNAPSHOT, voters_control(chosen))
            self.disk.snapshots[BOOTSTRAP_SNAPSHOT] = bootstrap
            named, servers = VoterSet(), tuple(endpoint(one.key.id) for one in chosen)
        self.config = replace(
            RaftConfig(
                key=ReplicaKey(node_id, directory_id(node_id)),
                cluster_id=CLUSTER_ID,
                voters=named,
                bootstrap_servers=servers,
                endpoints=(endpoint(node_id),),
                timers=RaftTimers(),
                handover=Handover.NEVER,
            ),
            **config,
        )
        self._boot()

    def _trim(self, start: int) -> None:
        """Replace what is before an offset by a snapshot."""
        last = next(b for b in map(RecordBatch, self.disk.batches) if b.last_offset == start - 1)
        snapshot = OffsetAndEpoch(start, last.partition_leader_epoch)
        self.disk.snapshots[snapshot] = snapshot_bytes(snapshot, (), self.disk.values(0, start))
        self.disk.drop_prefix(start)

    def _boot(self) -> None:
        self.core = RaftCore(self.config, self.disk.stored(), Random(self._seed))
        self._carry_out(self.core.start(self.now, self._wall))

    @property
    def _wall(self) -> int | None:
        return None if self.wall_offset_ms is None else self.now + self.wall_offset_ms

    def restart(self) -> None:
        """Kill the core and start another on what is durable."""
        self.disk.crash()
        self.effects.clear()
        self._boot()

    # ---- what happens

    def handle(self, event: events.Event) -> list[effects.Effect]:
        """Handle an event; returns all its effects."""
        before = len(self.effects)
        self._carry_out(self.core.handle(event, self.now, self._wall))
        return self.effects[before:]

    def wait(self, duration_ms: int) -> None:
        """Let time pass, stopping at every deadline."""
        end = self.now + duration_ms
        most = duration_ms + 100
        while (due := self.core.deadline_ms) is not None and due <= end:
            self.now = max(self.now, due)
            self.handle(events.TimerExpired())
            most -= 1
            assert most, f"too many timers until {self.now}: a busy loop"
        self.now = end

    def request(self, message: Message, version: int | None = None, software: str = "") -> Any:
        """Let a peer send a request; returns the answer, None if the peer has to wait for it."""
        self._token += 1
        token = self._token
        chosen = type(message).VERSIONS.high if version is None else version
        found = self.handle(events.RequestReceived(token, chosen, message, LISTENER, software))
        answers = [one for one in found if isinstance(one, effects.SendReply)]
        return next((one.message for one in answers if one.token == token), None)

    def answer(self, sent: effects.SendRequest, message: Message) -> list[effects.Effect]:
        """Answer a request of this core."""
        return self.handle(events.ResponseReceived(sent.request_id, message))

    def fail(self, sent: effects.SendRequest, error: int = 8) -> list[effects.Effect]:
        """Let a request of this core fail."""
        return self.handle(events.RequestFailed(sent.request_id, error))

    # ---- results

    def all_of(self, kind: type[_E]) -> list[_E]:
        """The effects of a kind so far."""
        return [one for one in self.effects if isinstance(one, kind)]

    @property
    def requests(self) -> list[effects.SendRequest]:
        """Every request so far."""
        return self.all_of(effects.SendRequest)

    @property
    def last_request(self) -> effects.SendRequest:
        """The newest request."""
        return self.requests[-1]

    def epoch_before(self, offset: int) -> int:
        """The epoch of the record before an offset of the log, 0 if there is none."""
        batches = (RecordBatch(one) for one in reversed(self.disk.batches))
        epochs = [one.partition_leader_epoch for one in batches if one.base_offset < offset]
        epochs += [one.epoch for one in sorted(self.disk.snapshots) if one.offset == offset]
        return next(iter(epochs), 0)

    # ---- reaching a state

    def follow(self, leader_id: int, epoch: int) -> None:
        """Let a leader announce itself, and leave the core's first fetch unanswered."""
        self.request(begin(leader_id, epoch))
        assert self.core.role == "follower", self.core.role

    def fetch_gets(self, message: Message) -> list[effects.Effect]:
        """Answer the fetch in flight."""
        sent = self.last_request
        assert sent.message.NAME == "FetchRequest", sent
        return self.answer(sent, message)

    def lead(self) -> None:
        """Let all voters vote for this core until it leads."""
        while self.core.role != "leader":
            before = len(self.requests)
            due = self.core.deadline_ms
            assert due is not None, "this core does not stand for election"
            self.now = max(self.now, due)
            self.handle(events.TimerExpired())
            while before < len(self.requests):
                sent = self.requests[before]
                before += 1
                if sent.message.NAME == "VoteRequest":
                    self.answer(sent, voted(self.core.epoch, is_granted=True))

    # ---- effects

    def _carry_out(self, found: list[effects.Effect]) -> None:
        self.effects += found
        for effect in found:
            self.disk.perform(effect)
        flushes = [one for one in found if isinstance(one, effects.FlushLog)]
        if flushes and not self.is_slow:
            self.flush(flushes[-1])

    def finish_snapshot(self) -> list[effects.Effect]:
        """Check the downloaded snapshot, and report the result."""
        return self.handle(self.disk.finish(self.all_of(effects.FinishSnapshot)[-1].id))

    def flush(self, flush: effects.FlushLog) -> None:
        """Carry out a flush and report it."""
        self.disk.flush(flush.end_offset)
        self.handle(events.LogFlushed(flush.end_offset, flush.generation))



def keys(voters: VoterSet) -> list[ReplicaKey]:
    """The replicas in a set."""
    return [one.key for one in voters]


def fetches(lone: Lone, replica: int, offset: int | None = None, **fields: Any) -> Any:
    """Let a replica fetch at an offset, by default the leader's log end: it has everything before.

    Returns: the answer, which comes at once unless `fields` say otherwise.
    """
    core = lone.core
    at = core.end_offset if offset is None else offset
    fields = {"max_wait_ms": 0, **fields}
    return lone.request(fetch(replica, at, lone.epoch_before(at), core.epoch, **fields))


def follow_up(lone: Lone, *replicas: int) -> None:
    """Let these replicas have everything; with a majority of voters, all is then committed."""
    for one in replicas:
        fetches(lone, one)


def leading(
    voters: Sequence[int] | VoterSet = (1, 2, 3), *, is_dynamic: bool = True, **config: Any
) -> Lone:
    """Node 1 leads, and the first batch of its epoch is committed."""
    lone = Lone(voters=voters, is_dynamic=is_dynamic, **config)
    lone.lead()
    follow_up(lone, *(one.key.id for one in lone.core.voters if one.key.id != lone.id))
    assert lone.core.high_watermark == lone.core.end_offset
    return lone


def caught_up(lone: Lone, replica: int) -> None:
    """Let an observer have everything that the leader has."""
    fetches(lone, replica)


def append(lone: Lone, *values: bytes) -> list[effects.Effect]:
    """Have the leader's state machine append, and let the linger time pass."""
    before = len(lone.effects)
    lone.handle(events.AppendRequested(1, lone.core.epoch, values or (b"x",)))
    lone.wait(lone.config.timers.append_linger_ms)
    return lone.effects[before:]


def replies(found: Sequence[effects.Effect]) -> list[Any]:
    """The answers among effects."""
    return [one.message for one in found if isinstance(one, effects.SendReply)]
