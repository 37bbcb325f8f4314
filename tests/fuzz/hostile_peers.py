"""Peers that say anything: messages that fit the wire and make no sense, and what must hold.

Owns the choice of what a hostile peer says, near enough to what the core knows to get past its
first checks, and the invariants that no such peer may break.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.limits import EPOCH_MAX
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.raft import effects, events
from kraftwire.raft.batches import data_batch
from kraftwire.raft.config import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message
from tests.support import raft_lone as peer
from tests.support.raft_cluster import LISTENER, directory_id
from tests.support.raft_lone import Lone
from tests.support.random_messages import random_message

__all__ = ["REQUESTS", "RESPONSES", "Hostile"]

REQUESTS = (
    "VoteRequest",
    "BeginQuorumEpochRequest",
    "EndQuorumEpochRequest",
    "FetchRequest",
    "FetchSnapshotRequest",
    "DescribeQuorumRequest",
    "AddRaftVoterRequest",
    "RemoveRaftVoterRequest",
    "UpdateRaftVoterRequest",
)
RESPONSES = (
    "VoteResponse",
    "BeginQuorumEpochResponse",
    "EndQuorumEpochResponse",
    "FetchResponse",
    "UpdateRaftVoterResponse",
)

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_ERRORS = [0, 0, 0, 6, 8, 13, 31, 35, 42, 74, 75, 94, 98, 99, 104, 125, -1, 999, 32767, -32768]
_SOFTWARE = ["", "kraftwire", "apache-kafka-java", "\0"]
# More timers in a row than any honest chain of roles needs.
_TIMERS_MAX = 20


class Hostile:
    """A core among hostile peers. Shape: `said` is what happened, for whoever has to mend it."""

    def __init__(self, lone: Lone, source: Random) -> None:
        self.lone = lone
        self.source = source
        self.said: list[str] = []
        self.waiting: dict[int, int] = {}
        self.leaders: dict[int, int] = {}
        self.votes: dict[int, int] = {}
        self.stored = effects.ElectionState()
        # What was stored when the newest answer left.
        self.stored_then = self.stored
        self.committed = -1
        self._token = 1_000_000
        self._seen = 0
        for one in lone.effects:
            self._look(one, None)
        self._seen = len(lone.effects)
        self._settle()

    # ---- what happens

    def step(self) -> None:
        """Let something happen, and check what came of it."""
        choice = self.source.random()
        if choice < 0.45:
            self.request(self._some_request())
        elif choice < 0.8 and self.lone.asked:
            self._answer()
        elif choice < 0.9:
            self.lone.now += self.source.choice([0, 1, 20, 300, 3000, 60_000])
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
            assert message.NAME == "FetchRequest", f"no answer to {message.NAME}"

    def _answer(self) -> None:
        """Answer one of the newest requests, or something that nobody asked for."""
        sent = self.source.choice(self.lone.asked[-4:])
        request_id = sent.request_id
        if self.source.random() < 0.05:
            request_id = self.source.choice([0, -1, 1 << 40])
        if self.source.random() < 0.15:
            self._handle(events.RequestFailed(request_id, self.source.choice(_ERRORS)), None)
            return
        name = sent.message.NAME.replace("Request", "Response")
        if self.source.random() < 0.05:
            name = self.source.choice(RESPONSES)
        found = self._some_response(name)
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
        ]
        if source.random() < 0.02:
            return events.ShutdownRequested()
        return source.choice(made)()

    def _handle(self, event: events.Event, message: Message | None) -> None:
        lone = self.lone
        core = lone.core
        self.said.append(f"{lone.now} {core.role} {core.epoch}: {event}")
        before = self.stored
        # The log as a candidate's is compared with it, before anything changes.
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
            case effects.PersistQuorumState(state):
                self._check_stored(state)
            case effects.HighWatermarkAdvanced(offset):
                assert offset >= self.committed, f"S8: {offset} after {self.committed}"
                self.committed = offset
            case effects.TruncateLog(end_offset):
                assert end_offset >= self.committed, f"S11: cut to {end_offset}"
                assert message is not None, "S11: cut by order of nobody"
                assert message.NAME == "FetchResponse", "S11: cut by order of nobody"

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
        asked = message.topics[0].partitions[0]
        if asked.pre_vote and asked.replica_epoch <= before.epoch:
            assert self.stored == before, "S19: a pre-vote changed what is stored"
        if not reply.topics[0].partitions[0].vote_granted:
            return
        offered = (asked.last_offset_epoch, asked.last_offset)
        epoch, candidate = asked.replica_epoch, asked.replica_id
        known = self.votes.get(epoch)
        if asked.pre_vote:
            assert offered >= last, f"S4: a pre-vote for {offered} with {last}"
            return
        voted = self.stored_then.voted
        assert voted is not None, "S3: a vote that is not stored"
        assert voted.id == candidate, f"S3: {candidate} got the vote of {voted}"
        assert known in (None, candidate), f"S3: voted for {known} and {candidate}"
        if known is None and before.voted is None:
            assert offered >= last, f"S4: a vote for {offered} with {last}"
        self.votes[epoch] = candidate

    def _settle(self) -> None:
        """What must hold whenever the core is at rest."""
        lone, core = self.lone, self.lone.core
        assert core.epoch == self.stored.epoch, "S2: the epoch is not stored"
        if core.leader_id >= 0:
            known = self.leaders.setdefault(core.epoch, core.leader_id)
            assert known == core.leader_id, f"S1: {known} and {core.leader_id} in {core.epoch}"
        assert core.high_watermark <= core.end_offset, "S8: behind the log's end"
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

    # ---- what is said

    def _some_request(self) -> tuple[Message, int] | None:
        source, core = self.source, self.lone.core
        name = source.choice(REQUESTS)
        who, epoch = source.choice([-1, 1, 2, 2, 3, 4, 9]), self._epoch()
        last = (core.last_epoch + source.choice([-1, 0, 0, 1]), self._offset())
        made: dict[str, Callable[[], Message]] = {
            "VoteRequest": lambda: peer.vote(
                who,
                epoch,
                last,
                pre_vote=source.random() < 0.5,
                directory=directory_id(max(who, 0)),
            ),
            "BeginQuorumEpochRequest": lambda: peer.begin(who, epoch),
            "EndQuorumEpochRequest": lambda: peer.end(who, epoch, *source.sample(range(5), 3)),
            "FetchRequest": lambda: peer.fetch(who, last[1], last[0], epoch),
        }
        kind = messages.find(name)
        version = source.randint(kind.VERSIONS.low, kind.VERSIONS.high)
        if name in made and source.random() < 0.9:
            return self._mutated(made[name](), version)
        message = random_message(kind, version, source)
        self._aim(message)
        return self._mutated(message, version)

    def _some_response(self, name: str) -> tuple[Message, int] | None:
        source, core = self.source, self.lone.core
        who, epoch = source.choice([-1, 1, 2, 2, 3, 9]), self._epoch()
        error = source.choice(_ERRORS)
        kind = messages.find(name)
        message: Message
        if name == "FetchResponse" and source.random() < 0.9:
            base = core.end_offset + source.choice([0, 0, 0, 1, -1])
            values = [b"r"] * source.randint(1, 3)
            records = data_batch(max(base, 0), min(max(epoch, 0), EPOCH_MAX), 0, values)
            ahead = source.choice([-1, 0, core.end_offset, self._offset()])
            diverging = (self._epoch(), self._offset()) if source.random() < 0.3 else None
            message = peer.fetched(
                who,
                epoch,
                source.choice([b"", records, records, records[:-1], source.randbytes(80)]),
                high_watermark=ahead,
                diverging=diverging,
                error=error,
            )
        elif name == "VoteResponse" and source.random() < 0.9:
            granted = source.random() < 0.6
            message = peer.voted(epoch, is_granted=granted, leader=who, error=error)
        else:
            message = random_message(kind, kind.VERSIONS.high, source)
            self._aim(message)
        return self._mutated(message, kind.VERSIONS.high)

    def _epoch(self) -> int:
        epoch = self.lone.core.epoch
        far = [0, -1, epoch + 1000] if self.source.random() < 0.2 else [epoch]
        if self.source.random() < 0.002:
            far = [EPOCH_MAX, EPOCH_MAX - 1]
        return self.source.choice([epoch, epoch, epoch + 1, epoch - 1, *far])

    def _offset(self) -> int:
        end = self.lone.core.end_offset
        return self.source.choice([end, end, end + 1, end - 1, 0, -1, end // 2, (1 << 63) - 1])

    def _aim(self, message: Any) -> None:
        """Make a random message one about this log, of about this epoch."""
        if self.source.random() < 0.3:
            return
        for holder in ("topics", "responses"):
            topics = getattr(message, holder, None)
            if not topics:
                continue
            del topics[1:]
            for attribute, value in (
                ("topic_name", METADATA_TOPIC),
                ("name", METADATA_TOPIC),
                ("topic_id", METADATA_TOPIC_ID),
            ):
                if hasattr(topics[0], attribute):
                    setattr(topics[0], attribute, value)
            del topics[0].partitions[1:]
            for partition in topics[0].partitions:
                self._aim_at(partition)
        if hasattr(message, "cluster_id"):
            message.cluster_id = peer.CLUSTER_ID
        self._aim_at(message)
        self._aim_at(getattr(message, "current_leader", None))

    def _aim_at(self, struct: Any) -> None:
        values = {
            "partition_index": 0,
            "partition": 0,
            "index": 0,
            "leader_epoch": self._epoch(),
            "current_leader_epoch": self._epoch(),
            "replica_epoch": self._epoch(),
            "leader_id": self.source.choice([-1, 1, 2, 3]),
            "voter_id": self.source.choice([-1, 1, 2, 3]),
            "voter_directory_id": directory_id(2),
        }
        for attribute, value in values.items():
            if struct is not None and hasattr(struct, attribute):
                setattr(struct, attribute, value)

    def _mutated(self, message: Message, version: int) -> tuple[Message, int] | None:
        """A message with some values changed, as it comes out of its bytes; None without bytes."""
        source = self.source
        changed: Any = copy.deepcopy(message)
        for _ in range(source.choice([0, 0, 1, 1, 2, 4])):
            places = _places(changed, type(message).facts().root)
            struct, field = source.choice(places)
            setattr(struct, field.attribute, self._value(field, getattr(struct, field.attribute)))
        try:
            data = changed.encode(version)
        except WireError:
            return None
        return type(message).decode(data, version)[0], version

    def _value(self, field: FieldFacts, old: Any) -> Any:
        source = self.source
        if field.nullable and source.random() < 0.2:
            return None
        if field.is_array:
            return source.choice([[], list(old or []) * 2, list(old or [])[:1] * 5])
        if field.attribute == "error_code":
            return source.choice(_ERRORS)
        if field.type in _BITS:
            low = -1 << (_BITS[field.type] - 1)
            near = [old + 1, old - 1, -1, 0, 1, 2] if isinstance(old, int) else [0]
            rare = [low, -low - 1] if "epoch" not in field.attribute else []
            return source.choice([*near, *near, *rare])
        values: dict[str, list[Any]] = {
            "uint16": [0, 1, 65535],
            "bool": [True, False],
            "string": ["", "x", METADATA_TOPIC, LISTENER, "x" * 300],
            "uuid": [bytes(16), directory_id(1), directory_id(2), b"\xff" * 16],
        }
        return source.choice(values.get(field.type, [old]))


def _places(struct: Any, facts: StructFacts) -> list[tuple[Any, FieldFacts]]:
    """Every field of a struct and of those inside it."""
    found = []
    for field in facts.fields:
        found.append((struct, field))
        value = getattr(struct, field.attribute)
        if field.struct is not None and value is not None:
            for inner in value if field.is_array else [value]:
                found += _places(inner, field.struct)
    return found
