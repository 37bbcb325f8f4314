"""One Raft core alone, whose peers, disk and clock are a test: it sees every effect by itself.

Owns the messages of peers, made from the few values that tests care about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

from kraftwire.messages import begin_quorum_epoch_request as begin_message
from kraftwire.messages import end_quorum_epoch_request as end_message
from kraftwire.messages import fetch_request as fetch_message
from kraftwire.messages import fetch_response as fetched_message
from kraftwire.messages import vote_request as vote_message
from kraftwire.messages import vote_response as voted_message
from kraftwire.raft import effects, events
from kraftwire.raft.batches import data_batch
from kraftwire.raft.config import METADATA_TOPIC, METADATA_TOPIC_ID, RaftConfig, RaftTimers
from kraftwire.raft.core import RaftCore
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.ports import LogImage, StoredSnapshot, StoredState
from kraftwire.raft.voters import ReplicaKey, VoterSet
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.message import Message
from tests.support.raft_cluster import LISTENER, Disk, directory_id, endpoint, voter_set

__all__ = [
    "CLUSTER_ID",
    "Lone",
    "begin",
    "end",
    "fetch",
    "fetched",
    "stored_log",
    "vote",
    "voted",
]

CLUSTER_ID = "cluster"

_E = TypeVar("_E")


def stored_log(*epochs: tuple[int, int]) -> list[bytes]:
    """Batches of one record each. Shape: (epoch, how many) one after the other, from offset 0."""
    batches: list[bytes] = []
    for epoch, count in epochs:
        for _ in range(count):
            batches.append(data_batch(len(batches), epoch, 0, [b"%d" % len(batches)]))
    return batches


class Lone:
    """A core and what it asked for. Shape: `effects` has all effects, `asked` the requests.

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
        **config: Any,
    ) -> None:
        """Start the core from this disk.

        Shape: with `log_start` what is before that offset is in a snapshot only.
        """
        self.id = node_id
        self.now = 1_000_000
        self.disk = Disk(list(log), len(log), election or ElectionState())
        self.effects: list[effects.Effect] = []
        self.is_slow = False
        self._token = 0
        self._seed = seed
        self._log_start = log_start
        self.config = replace(
            RaftConfig(
                key=ReplicaKey(node_id, directory_id(node_id)),
                cluster_id=CLUSTER_ID,
                voters=voters if isinstance(voters, VoterSet) else voter_set(list(voters)),
                endpoints=(endpoint(node_id),),
                timers=RaftTimers(),
                handover="never",
            ),
            **config,
        )
        self._boot()

    def _boot(self) -> None:
        stored = StoredState(self.disk.election, self._image())
        self.core = RaftCore(self.config, stored, Random(self._seed))
        self._carry_out(self.core.start(self.now))

    def _image(self) -> LogImage:
        image, start = self.disk.image(), self._log_start
        if not start:
            return image
        kept = [one for one in image.batches if one[0] >= start]
        epoch = next(epoch for base, epoch in image.batches if base == start - 1)
        snapshot = StoredSnapshot(OffsetAndEpoch(start, epoch), 1000)
        return replace(image, start_offset=start, batches=kept, control=(), snapshots=[snapshot])

    def restart(self) -> None:
        """Kill the core and start another on what is durable."""
        self.disk.crash()
        self.effects.clear()
        self._boot()

    # ---- what happens

    def handle(self, event: events.Event) -> list[effects.Effect]:
        """Hand over an event; returns all that came of it."""
        before = len(self.effects)
        self._carry_out(self.core.handle(event, self.now))
        return self.effects[before:]

    def wait(self, duration_ms: int) -> None:
        """Let time pass, with a look at every deadline."""
        end = self.now + duration_ms
        most = duration_ms + 100
        while (due := self.core.deadline_ms) is not None and due <= end:
            self.now = max(self.now, due)
            self.handle(events.TimerExpired())
            most -= 1
            assert most, f"too many timers until {self.now}: a busy loop"
        self.now = end

    def request(self, message: Message, version: int | None = None, software: str = "") -> Any:
        """Let a peer ask; returns the answer, None if it has to wait for it."""
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

    # ---- what came of it

    def all_of(self, kind: type[_E]) -> list[_E]:
        """The effects of a kind so far."""
        return [one for one in self.effects if isinstance(one, kind)]

    @property
    def asked(self) -> list[effects.SendRequest]:
        """Every request so far."""
        return self.all_of(effects.SendRequest)

    @property
    def last_asked(self) -> effects.SendRequest:
        """The newest request."""
        return self.asked[-1]

    # ---- ways to get somewhere

    def follow(self, leader_id: int, epoch: int) -> None:
        """Let a leader announce itself, and leave the core's first fetch unanswered."""
        self.request(begin(leader_id, epoch))
        assert self.core.role == "follower", self.core.role

    def fetch_gets(self, message: Message) -> list[effects.Effect]:
        """Answer the fetch that is under way."""
        sent = self.last_asked
        assert sent.message.NAME == "FetchRequest", sent
        return self.answer(sent, message)

    def lead(self) -> None:
        """Let everybody vote for this core until it leads."""
        while self.core.role != "leader":
            before = len(self.asked)
            due = self.core.deadline_ms
            assert due is not None, "this core does not stand for election"
            self.now = max(self.now, due)
            self.handle(events.TimerExpired())
            while before < len(self.asked):
                sent = self.asked[before]
                before += 1
                if sent.message.NAME == "VoteRequest":
                    self.answer(sent, voted(self.core.epoch, is_granted=True))

    # ---- effects

    def _carry_out(self, found: list[effects.Effect]) -> None:
        self.effects += found
        for effect in found:
            match effect:
                case effects.PersistQuorumState(state=state):
                    self.disk.election = state
                case effects.AppendToLog(_, _, data):
                    self.disk.append(bytes(data))
                case effects.TruncateLog(end_offset):
                    self.disk.truncate(end_offset)
        flushes = [one for one in found if isinstance(one, effects.FlushLog)]
        if flushes and not self.is_slow:
            self.flush(flushes[-1])

    def flush(self, flush: effects.FlushLog) -> None:
        """Carry out a flush and say so."""
        self.disk.flush(flush.end_offset)
        self.handle(events.LogFlushed(flush.end_offset, flush.generation))


# ---- what peers say ------------------------------------------------------------------------------


def vote(
    candidate: int,
    epoch: int,
    last: tuple[int, int] = (0, 0),
    *,
    pre_vote: bool = False,
    directory: bytes | None = None,
    cluster_id: str | None = CLUSTER_ID,
) -> vote_message.VoteRequest:
    """Somebody asks for a vote. Shape: `last` is (epoch, end offset) of the candidate's log."""
    partition = vote_message.PartitionData(
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=directory_id(candidate) if directory is None else directory,
        last_offset_epoch=last[0],
        last_offset=last[1],
        pre_vote=pre_vote,
    )
    topic = vote_message.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return vote_message.VoteRequest(cluster_id=cluster_id, voter_id=-1, topics=[topic])


def voted(
    epoch: int, *, is_granted: bool = False, leader: int = -1, error: int = 0
) -> voted_message.VoteResponse:
    """A voter's answer."""
    partition = voted_message.PartitionData(
        error_code=error, leader_id=leader, leader_epoch=epoch, vote_granted=is_granted
    )
    topic = voted_message.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return voted_message.VoteResponse(topics=[topic])


def begin(
    leader: int,
    epoch: int,
    *,
    listeners: Sequence[str] = (LISTENER,),
    cluster_id: str | None = CLUSTER_ID,
) -> begin_message.BeginQuorumEpochRequest:
    """A leader announces itself, with an address under each of these names."""
    partition = begin_message.PartitionData(leader_id=leader, leader_epoch=epoch)
    addresses = [
        begin_message.LeaderEndpoint(name=name, host=f"node{leader}", port=9000 + leader)
        for name in listeners
    ]
    return begin_message.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[begin_message.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=addresses,
    )


def end(
    leader: int, epoch: int, *successors: int, cluster_id: str | None = CLUSTER_ID
) -> end_message.EndQuorumEpochRequest:
    """A leader resigns and names who should lead next."""
    candidates = [
        end_message.ReplicaInfo(candidate_id=one, candidate_directory_id=directory_id(one))
        for one in successors
    ]
    partition = end_message.PartitionData(
        leader_id=leader, leader_epoch=epoch, preferred_candidates=candidates
    )
    return end_message.EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[end_message.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
    )


def fetch(
    replica: int,
    offset: int,
    last_epoch: int,
    epoch: int,
    *,
    high_watermark: int = -1,
    max_wait_ms: int = 500,
) -> fetch_message.FetchRequest:
    """A follower fetches."""
    partition = fetch_message.FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        replica_directory_id=directory_id(replica) if replica >= 0 else bytes(16),
        high_watermark=high_watermark,
    )
    topic = fetch_message.FetchTopic(
        topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    return fetch_message.FetchRequest(
        cluster_id=CLUSTER_ID,
        replica_state=fetch_message.ReplicaState(replica_id=replica),
        max_wait_ms=max_wait_ms,
        max_bytes=1 << 20,
        topics=[topic],
    )


def fetched(
    leader: int,
    epoch: int,
    records: bytes = b"",
    *,
    high_watermark: int = -1,
    diverging: tuple[int, int] | None = None,
    error: int = 0,
) -> fetched_message.FetchResponse:
    """A leader's answer. Shape: `diverging` is (epoch, end offset)."""
    data = fetched_message.PartitionData(
        error_code=error,
        high_watermark=high_watermark,
        current_leader=fetched_message.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
        records=records,
    )
    if diverging is not None:
        data.diverging_epoch = fetched_message.EpochEndOffset(
            epoch=diverging[0], end_offset=diverging[1]
        )
    topic = fetched_message.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[data])
    return fetched_message.FetchResponse(responses=[topic])
