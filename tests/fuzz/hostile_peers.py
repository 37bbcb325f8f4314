"""A Raft core among hostile peers: what they do, and what must hold regardless."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.raft import effects, events
from kraftwire.raft.epochs import EPOCH_MAX
from kraftwire.raft.voters import VoterSet
from kraftwire.wire.message import Message
from tests.fuzz.hostile_messages import ERRORS, Speech
from tests.support.raft.disk import snapshot_bytes
from tests.support.raft.lone import Lone
from tests.support.raft.messages import LISTENER

_SOFTWARE = ["", "kraftwire", "apache-kafka-java", "\0"]
# Units: milliseconds. Long ones end most roles, and so are rare.
_PAUSES = [0, 1, 1, 1, 5, 5, 20, 20, 100, 100, 300, 300, 1000, 3000, 60_000]
# Requests whose answer may wait for records or for a commit.
_MAY_WAIT = ("FetchRequest", "AddRaftVoterRequest", "RemoveRaftVoterRequest")
# More timers in a row than any honest chain of roles needs.
_TIMERS_MAX = 20


class Hostile:
    """A core among hostile peers. `said` is what happened, for the person who has to fix it."""

    def __init__(self, lone: Lone, source: Random) -> None:
        self.lone = lone
        self.source = source
        self._speech = Speech(lone, source)
        self.said: list[str] = []
        self.waiting: dict[int, int] = {}
        self.leaders: dict[int, int] = {}
        self.votes: dict[int, int] = {}
        self.stored = effects.ElectionState()
        # What was stored when the newest answer left.
        self.stored_then = self.stored
        self.committed = -1
        self._token = 1_000_000
        self._done: list[effects.WriteSnapshot] = []
        self._voters = lone.core.voters
        self._voters_offset = -1
        self._start = lone.core.start_offset
        self._seen = 0
        for one in lone.effects:
            self._look(one, None)
        self._seen = len(lone.effects)
        self._settle()

    # ---- what happens

    def step(self) -> None:
        """Let something happen, and check the result."""
        choice = self.source.random()
        if choice < 0.45:
            self.request(self._speech.request())
        elif choice < 0.8 and self.lone.requests:
            self._answer()
        elif choice < 0.9:
            self.lone.now += self.source.choice(_PAUSES)
            self._handle(events.TimerExpired(), None)
        else:
            self._handle(self._own_event(), None)

    def request(self, found: tuple[Message, int] | None) -> None:
        """Let a peer ask."""
        if found is None:
            return
        message, version = found
        self._token += 1
        listener = self.source.choice([LISTENER, "OTHER", ""])
        software = self.source.choice(_SOFTWARE)
        event = events.RequestReceived(self._token, version, message, listener, software)
        self.waiting[self._token] = version
        self._handle(event, message)
        if self._token in self.waiting:
            assert message.NAME in _MAY_WAIT, f"no answer to {message.NAME}"

    def _answer(self) -> None:
        """Answer one of the newest requests, or send an answer without a request."""
        newest = 1 if self._speech.is_careful and self.source.random() < 0.8 else 4
        sent = self.source.choice(self.lone.requests[-newest:])
        request_id = sent.request_id
        if self.source.random() < 0.05:
            request_id = self.source.choice([0, -1, 1 << 40])
        if self.source.random() < 0.15:
            self._handle(events.RequestFailed(request_id, self.source.choice(ERRORS)), None)
            return
        found = self._speech.response(sent.message)
        if found is not None:
            self._handle(events.ResponseReceived(request_id, found[0]), found[0])

    def _own_event(self) -> events.Event:
        """What the node itself may do at any time."""
        source, core = self.source, self.lone.core
        epoch = core.epoch + source.choice([-1, 0, 0, 1])
        made: list[Callable[[], events.Event]] = [
            lambda: events.AppendRequested(1, epoch, [b"value"] * source.randint(1, 3)),
            lambda: events.AppendRequested(2, epoch, [b"x"], core.end_offset + 1),
            lambda: events.ListenerRegistered(source.randrange(3), source.randrange(5)),
            lambda: events.ListenerConsumed(source.randrange(3), source.randrange(40)),
            lambda: events.ResignRequested(epoch),
            lambda: events.LogFlushed(source.randrange(40), -1),
            lambda: events.UpgradeRequested(3, epoch, source.choice([0, 1, 1, 2])),
            *self._snapshot_events(),
        ]
        if source.random() < 0.02:
            return events.ShutdownRequested()
        return source.choice(made)()

    def _snapshot_events(self) -> list[Callable[[], events.Event]]:
        """Events of snapshots: a request for one, and what became of files."""
        source, lone = self.source, self.lone
        core, disk = lone.core, lone.disk
        made: list[Callable[[], events.Event]] = [
            lambda: events.SnapshotWanted(source.randrange(3), source.randrange(20), 0),
            lambda: events.SnapshotWanted(source.randrange(3), core.high_watermark, 0),
        ]
        if core.snapshots:
            made.append(lambda: events.LogStartProposed(source.choice(core.snapshots)))
        writing = [one for one in lone.all_of(effects.WriteSnapshot) if one not in self._done]
        if writing:
            made += [partial(self._written, writing[-1])] * 2
        checking = [one.id for one in lone.all_of(effects.FinishSnapshot) if one.id in disk.parts]
        if checking:
            made += [partial(disk.finish, checking[-1])] * 6
        return made

    def _written(self, effect: effects.WriteSnapshot) -> events.Event:
        self._done.append(effect)
        if self.source.random() < 0.2:
            return events.SnapshotFailed(effect.id, "no space left")
        return self.lone.disk.keep(effect.id, snapshot_bytes(effect.id, effect.control))

    def _handle(self, event: events.Event, message: Message | None) -> None:
        lone = self.lone
        core = lone.core
        self.said.append(f"{lone.now} {core.role} {core.epoch}: {event}")
        before = self.stored
        # The log that a candidate's is compared with, before anything changes.
        last = (core.last_epoch, core.end_offset)
        lone.handle(event)
        fresh = lone.effects[self._seen :]
        self._seen = len(lone.effects)
        for one in fresh:
            self._look(one, message)
        if isinstance(message, VoteRequest):
            self._check_vote(message, fresh, before, last)
        self._settle()

    # ---- what must hold

    def _look(self, one: effects.Effect, message: Message | None) -> None:
        match one:
            case effects.SendReply(token, reply):
                self.stored_then = self.stored
                self._check_reply(token, reply)
            case effects.SendRequest(_, destination, request):
                request.encode(type(request).VERSIONS.high)
                assert 0 < destination.port < 65536, f"port {destination.port}"
                if isinstance(request, FetchSnapshotRequest):
                    end = request.topics[0].partitions[0].snapshot_id.end_offset
                    assert end > self.committed, f"S11: fetches what is committed, up to {end}"
            case effects.PersistQuorumState(state=state):
                self._check_stored(state)
            case effects.HighWatermarkAdvanced(offset):
                assert offset >= self.committed, f"S8: {offset} after {self.committed}"
                self.committed = offset
            case effects.TruncateLog(end_offset):
                assert end_offset >= self.committed, f"S11: cut to {end_offset}"
                assert message is not None, "S11: cut without an order"
                assert message.NAME == "FetchResponse", "S11: cut without an order"
            case effects.ResetLog(start):
                assert start.offset > self.committed, f"S11: begins at {start}, {self.committed}"
                assert self.lone.core.role != "leader", "S15: a leader took a snapshot"
                self._start = start.offset
            case effects.DropLogPrefix(start_offset):
                held = start_offset in {one.offset for one in self.lone.core.snapshots}
                assert held or start_offset == self._start, f"S14: no snapshot at {start_offset}"
                assert start_offset >= self._start, "S14: the log's start fell"
                self._start = start_offset
            case effects.VotersChanged(voters, _, offset):
                self._check_voters(voters, offset)

    def _check_voters(self, voters: VoterSet, offset: int) -> None:
        """A leader changes one voter at a time, and none while a change is not committed."""
        old, where, core = self._voters, self._voters_offset, self.lone.core
        self._voters, self._voters_offset = voters, offset
        # The first batch of an epoch states the present voters.
        is_opening = offset < core.epoch_start_offset + 3
        if core.role != "leader" or is_opening or any(not v.key.has_directory_id for v in old):
            return
        before, after = {one.key for one in old}, {one.key for one in voters}
        assert len(before ^ after) <= 1, f"S16: {before ^ after} changed at once"
        assert where < self.committed, f"S16: voters at {where} and {offset}, neither committed"

    def _check_reply(self, token: int, reply: Message) -> None:
        if token not in self.waiting:
            assert token < 1_000_000, f"answered {token} twice, or unasked"
            return
        version = self.waiting.pop(token)
        data = reply.encode(version)
        type(reply).decode(data, version)

    def _check_stored(self, now: effects.ElectionState) -> None:
        old = self.stored
        assert 0 <= now.epoch <= EPOCH_MAX, f"epoch {now.epoch} cannot be stored"
        assert now.epoch >= old.epoch, f"S2: epoch {now.epoch} after {old.epoch}"
        if now.epoch == old.epoch and old.voted is not None and now.leader_id != self.lone.id:
            assert now.voted == old.voted, f"S3: {now} after {old}"
        self.stored = now

    def _check_vote(
        self,
        message: VoteRequest,
        fresh: list[effects.Effect],
        before: effects.ElectionState,
        last: tuple[int, int],
    ) -> None:
        replies = [one.message for one in fresh if isinstance(one, effects.SendReply)]
        reply: Any = next((one for one in replies if one.NAME == "VoteResponse"), None)
        if reply is None or not reply.topics or not message.topics:
            return
        vote = message.topics[0].partitions[0]
        if vote.pre_vote and vote.replica_epoch <= before.epoch:
            assert self.stored == before, "S19: a pre-vote changed what is stored"
        if not reply.topics[0].partitions[0].vote_granted:
            return
        offered = (vote.last_offset_epoch, vote.last_offset)
        epoch, candidate = vote.replica_epoch, vote.replica_id
        known = self.votes.get(epoch)
        if vote.pre_vote:
            assert offered >= last, f"S4: a pre-vote for {offered} with {last}"
            return
        kept = self.stored_then
        # With a higher epoch stored there is no second vote in this one either.
        if kept.epoch <= epoch:
            assert kept.epoch == epoch, "S3: a vote in an epoch that is not stored"
            assert kept.voted is not None, "S3: a vote that is not stored"
            assert kept.voted.id == candidate, f"S3: {candidate} got the vote of {kept.voted}"
        assert known in (None, candidate), f"S3: voted for {known} and {candidate}"
        if known is None and before.voted is None:
            assert offered >= last, f"S4: a vote for {offered} with {last}"
        self.votes[epoch] = candidate

    def _settle(self) -> None:
        """What must hold between events."""
        lone, core = self.lone, self.lone.core
        assert core.epoch == self.stored.epoch, "S2: the epoch is not stored"
        if core.leader_id >= 0:
            known = self.leaders.setdefault(core.epoch, core.leader_id)
            assert known == core.leader_id, f"S1: {known} and {core.leader_id} in {core.epoch}"
        assert core.high_watermark <= core.end_offset, "S8: beyond the log's end"
        if core.role == "leader" and core.high_watermark >= 0:
            assert core.high_watermark > core.epoch_start_offset, "S10: committed by counting"
        assert lone.disk.end_offset == core.end_offset, "S13: another end than the log's"
        for _ in range(_TIMERS_MAX):
            due = core.deadline_ms
            if due is None or due > lone.now:
                return
            lone.handle(events.TimerExpired())
            fresh = lone.effects[self._seen :]
            self._seen = len(lone.effects)
            for one in fresh:
                self._look(one, None)
        raise AssertionError(f"a busy loop as {core.role}: {core.deadline_ms} at {lone.now}")
