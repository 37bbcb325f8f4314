"""A timeline fed with the requests and responses of KRaft that a test prescribes."""

from __future__ import annotations

from kraftwire.messages import begin_quorum_epoch_request as begin_request
from kraftwire.messages import begin_quorum_epoch_response as begin_response
from kraftwire.messages import end_quorum_epoch_request as end_request
from kraftwire.messages import end_quorum_epoch_response as end_response
from kraftwire.messages import fetch_request, fetch_response, vote_request, vote_response
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.builder import BatchBuilder, BatchHeader
from kraftwire.records.control import ControlType, control_key, control_value
from kraftwire.records.metadata import encode_metadata
from kraftwire.story.raft.timeline import Timeline
from kraftwire.wire.message import Message
from tests.support.captures.frames import frame_at

_RTT_S = 0.01


class ScriptedQuorum:
    """Nodes on ports 9000 + id that send what a test says; only the test advances the clock."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.now = 1000.0
        self._correlation_id = 0

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def go_on(self, seconds: float) -> None:
        """Let time pass in which a client speaks to nodes, so that it counts as recorded."""
        end = self.now + seconds
        while self.now < end:
            for server in (1, 2, 3):
                place = f"10.0.0.7:50000-10.0.0.{server}:{9000 + server}"
                self.timeline.on_frame(frame_at(self.now, place, 18, is_request=True))
            self.wait(min(0.5, end - self.now))

    def send(
        self, client: int | str, server: int, request: Message, response: Message | None
    ) -> None:
        """A request, and its response a little later unless there is none."""
        self._correlation_id += 1
        connection = f"10.0.0.{client}:50000-10.0.0.{server}:{9000 + server}"
        self._on_frame(connection, request, is_request=True)
        if response is None:
            return
        self.now += _RTT_S
        self._on_frame(connection, response, request, is_request=False)

    def _on_frame(
        self, connection: str, body: Message, request: Message | None = None, *, is_request: bool
    ) -> None:
        frame = frame_at(
            self.now, connection, body.API_KEY, is_request=is_request,
            correlation_id=self._correlation_id,
        )
        self.timeline.on_frame(frame, body, request)

    def vote(
        self, candidate: int, voter: int, *, epoch: int, granted: bool | None = True,
        pre_vote: bool = False, error: int = 0, leader: int = -1, known_epoch: int | None = None,
        is_named: bool = True,
    ) -> None:
        """A candidate asks a voter; `granted` None stands for no answer."""
        requested = vote_request.PartitionData(
            replica_id=candidate, replica_epoch=epoch, last_offset=7, last_offset_epoch=1,
            pre_vote=pre_vote,
        )
        request = vote_request.VoteRequest(
            voter_id=voter if is_named else -1,
            topics=[vote_request.TopicData(topic_name=METADATA_TOPIC, partitions=[requested])],
        )
        if granted is None:
            self.send(candidate, voter, request, None)
            return
        answered = vote_response.PartitionData(
            vote_granted=granted, error_code=error, leader_id=leader,
            leader_epoch=epoch if known_epoch is None else known_epoch,
        )
        response = vote_response.VoteResponse(
            topics=[vote_response.TopicData(topic_name=METADATA_TOPIC, partitions=[answered])]
        )
        self.send(candidate, voter, request, response)

    def begin(self, leader: int, voter: int, *, epoch: int) -> None:
        """A leader tells a voter that it leads, and the voter accepts."""
        announced = begin_request.PartitionData(leader_id=leader, leader_epoch=epoch)
        request = begin_request.BeginQuorumEpochRequest(
            voter_id=voter,
            topics=[begin_request.TopicData(topic_name=METADATA_TOPIC, partitions=[announced])],
        )
        accepted = begin_response.PartitionData(leader_id=leader, leader_epoch=epoch)
        response = begin_response.BeginQuorumEpochResponse(
            topics=[begin_response.TopicData(topic_name=METADATA_TOPIC, partitions=[accepted])]
        )
        self.send(leader, voter, request, response)

    def end(
        self, leader: int, voter: int, *, epoch: int, preferred: list[int],
        error: int = ErrorCode.NONE, newer: tuple[int, int] | None = None,
    ) -> None:
        """A leader tells a voter that its epoch ends; `newer`: leader and epoch in the answer."""
        ended = end_request.PartitionData(
            leader_id=leader, leader_epoch=epoch,
            preferred_candidates=[end_request.ReplicaInfo(candidate_id=n) for n in preferred],
        )
        request = end_request.EndQuorumEpochRequest(
            topics=[end_request.TopicData(topic_name=METADATA_TOPIC, partitions=[ended])]
        )
        known_leader, known_epoch = newer or (leader, epoch)
        answered = end_response.PartitionData(
            error_code=error, leader_id=known_leader, leader_epoch=known_epoch
        )
        response = end_response.EndQuorumEpochResponse(
            topics=[end_response.TopicData(topic_name=METADATA_TOPIC, partitions=[answered])]
        )
        self.send(leader, voter, request, response)

    def fetch(
        self, replica: int, leader: int, *, offset: int, epoch: int, high_watermark: int = 0,
        records: bytes = b"", is_answered: bool = True, **more: object,
    ) -> None:
        """A replica fetches from the leader; `more` are fields of the partition's answer."""
        requested = fetch_request.FetchPartition(fetch_offset=offset, current_leader_epoch=epoch)
        request = fetch_request.FetchRequest(
            replica_state=fetch_request.ReplicaState(replica_id=replica),
            topics=[fetch_request.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[requested])],
        )
        if not is_answered:
            self.send(replica, leader, request, None)
            return
        answered = fetch_response.PartitionData(
            high_watermark=high_watermark,
            current_leader=fetch_response.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
            records=memoryview(records),
            **more,  # type: ignore[arg-type]
        )
        topic = fetch_response.FetchableTopicResponse(
            topic_id=METADATA_TOPIC_ID, partitions=[answered]
        )
        response = fetch_response.FetchResponse(responses=[topic])
        self.send(replica, leader, request, response)


def batch(offset: int, epoch: int, messages: list[Message], *, time: float = 1000.0) -> bytes:
    """A batch of metadata records, or of control records if the first message is one."""
    is_control = messages[0].NAME in _CONTROL_TYPES
    header = BatchHeader(
        base_offset=offset, partition_leader_epoch=epoch, is_control=is_control
    )
    builder = BatchBuilder(header)
    for message in messages:
        if is_control:
            key = control_key(_CONTROL_TYPES[message.NAME])
            builder.append(round(time * 1000), key, control_value(message))
        else:
            builder.append(round(time * 1000), None, encode_metadata(message, 0))
    return builder.build()


_CONTROL_TYPES = {
    "KRaftVersionRecord": ControlType.KRAFT_VERSION,
    "LeaderChangeMessage": ControlType.LEADER_CHANGE,
    "VotersRecord": ControlType.KRAFT_VOTERS,
}
