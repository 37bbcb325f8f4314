"""What peers and administrators send to a Raft core, made from the few values that matter."""

from __future__ import annotations

from collections.abc import Sequence

from kraftwire.messages import add_raft_voter_request as add_message
from kraftwire.messages import begin_quorum_epoch_request as begin_message
from kraftwire.messages import end_quorum_epoch_request as end_message
from kraftwire.messages import fetch_request as fetch_message
from kraftwire.messages import fetch_response as fetched_message
from kraftwire.messages import fetch_snapshot_request as ask_message
from kraftwire.messages import fetch_snapshot_response as part_message
from kraftwire.messages import update_raft_voter_request as update_message
from kraftwire.messages import vote_request as vote_message
from kraftwire.messages import vote_response as voted_message
from kraftwire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.raft.histories import voters_record
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.control import ControlType
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.raft.disk import Control

LISTENER = "CONTROLLER"
SOFTWARE = "kraftwire"
JAVA_FEATURES = ("kraft.version", "metadata.version", "group.version", "transaction.version")
FEATURES = (*JAVA_FEATURES, "kraftwire.version")


def directory_id(node_id: int) -> bytes:
    """The directory id of a node in these clusters."""
    return bytes(14) + bytes((1, node_id))


def endpoint(node_id: int) -> Endpoint:
    """Where a node of these clusters can be reached."""
    return Endpoint(LISTENER, f"node{node_id}", 9000 + node_id)


def voter_set(ids: Sequence[int]) -> VoterSet:
    """A static voter set: no directory ids."""
    return VoterSet.of(*(Voter(ReplicaKey(one), (endpoint(one),)) for one in ids))


def voter(node_id: int, directory: bytes | None = None) -> Voter:
    """A voter as the log holds it from kraft.version 1 on."""
    key = ReplicaKey(node_id, directory_id(node_id) if directory is None else directory)
    return Voter(key, (endpoint(node_id),), 0, 1)


def dynamic_set(ids: Sequence[int]) -> VoterSet:
    """The set of such voters."""
    return VoterSet.of(*map(voter, ids))


def voters_control(voters: VoterSet) -> Control:
    """The control records that state kraft.version 1 and these voters."""
    version = KRaftVersionRecord(version=0, kraft_version=1)
    return [
        (ControlType.KRAFT_VERSION, version),
        (ControlType.KRAFT_VOTERS, voters_record(voters)),
    ]


def features(
    names: Sequence[str] = FEATURES, kraft: tuple[int, int] = (0, 1)
) -> ApiVersionsResponse:
    """The answer to ApiVersions of a node with these features and this range of kraft.version."""
    ranges = {"kraft.version": kraft, "kraftwire.version": (1, 1)}
    found = []
    for name in names:
        low, high = ranges.get(name, (7, 30))
        found.append(SupportedFeatureKey(name=name, min_version=low, max_version=high))
    return ApiVersionsResponse(supported_features=found)

CLUSTER_ID = "cluster"


def vote(
    candidate: int,
    epoch: int,
    last: tuple[int, int] = (0, 0),
    *,
    pre_vote: bool = False,
    directory: bytes | None = None,
    cluster_id: str | None = CLUSTER_ID,
) -> vote_message.VoteRequest:
    """A Vote request. `last` is (epoch, end offset) of the candidate's log."""
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
    directory: bytes | None = None,
) -> fetch_message.FetchRequest:
    """A follower fetches."""
    own = directory_id(replica) if replica >= 0 else bytes(16)
    partition = fetch_message.FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        replica_directory_id=own if directory is None else directory,
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
    snapshot: OffsetAndEpoch | None = None,
    error: int = 0,
) -> fetched_message.FetchResponse:
    """A leader's answer. `diverging` is (epoch, end offset); `snapshot` sends to a snapshot."""
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
    if snapshot is not None:
        data.snapshot_id = fetched_message.SnapshotId(
            end_offset=snapshot.offset, epoch=snapshot.epoch
        )
    topic = fetched_message.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[data])
    return fetched_message.FetchResponse(responses=[topic])


def fetch_snapshot(
    replica: int,
    snapshot: OffsetAndEpoch,
    epoch: int,
    *,
    position: int = 0,
    max_bytes: int = 1 << 20,
    cluster_id: str | None = CLUSTER_ID,
    topic: str = METADATA_TOPIC,
) -> ask_message.FetchSnapshotRequest:
    """A follower fetches a part of a snapshot."""
    partition = ask_message.PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=ask_message.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        position=position,
        replica_directory_id=directory_id(replica),
    )
    return ask_message.FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=replica,
        max_bytes=max_bytes,
        topics=[ask_message.TopicSnapshot(name=topic, partitions=[partition])],
    )


def snapshot_part(
    leader: int,
    epoch: int,
    snapshot: OffsetAndEpoch,
    *,
    data: bytes = b"",
    position: int = 0,
    size: int = 0,
    error: int = 0,
) -> part_message.FetchSnapshotResponse:
    """A leader's answer to it."""
    partition = part_message.PartitionSnapshot(
        error_code=error,
        snapshot_id=part_message.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        current_leader=part_message.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
        size=size,
        position=position,
        unaligned_records=data,
    )
    topic = part_message.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    return part_message.FetchSnapshotResponse(topics=[topic])


def add_voter(
    node_id: int,
    *,
    directory: bytes | None = None,
    listeners: Sequence[str] = (LISTENER,),
    cluster_id: str | None = CLUSTER_ID,
    waits: bool = True,
    port: int | None = None,
) -> add_message.AddRaftVoterRequest:
    """An administrator adds a voter, which listens under these names."""
    number = 9000 + node_id if port is None else port
    return add_message.AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=1000,
        voter_id=node_id,
        voter_directory_id=directory_id(node_id) if directory is None else directory,
        listeners=[
            add_message.Listener(name=name, host=f"node{node_id}", port=number)
            for name in listeners
        ],
        ack_when_committed=waits,
    )


def remove_voter(
    node_id: int, *, directory: bytes | None = None, cluster_id: str | None = CLUSTER_ID
) -> RemoveRaftVoterRequest:
    """An administrator removes a voter."""
    return RemoveRaftVoterRequest(
        cluster_id=cluster_id,
        voter_id=node_id,
        voter_directory_id=directory_id(node_id) if directory is None else directory,
    )


def update_voter(
    node_id: int,
    epoch: int,
    *,
    directory: bytes | None = None,
    listeners: Sequence[str] = (LISTENER,),
    versions: tuple[int, int] = (0, 1),
    cluster_id: str | None = CLUSTER_ID,
) -> update_message.UpdateRaftVoterRequest:
    """A voter reports its versions and listeners."""
    return update_message.UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=epoch,
        voter_id=node_id,
        voter_directory_id=directory_id(node_id) if directory is None else directory,
        listeners=[
            update_message.Listener(name=name, host=f"node{node_id}", port=9000 + node_id)
            for name in listeners
        ],
        kraft_version_feature=update_message.KRaftVersionFeature(
            min_supported_version=versions[0], max_supported_version=versions[1]
        ),
    )


def updated(leader: int, epoch: int, error: int = 0) -> UpdateRaftVoterResponse:
    """A leader's answer to it."""
    known = CurrentLeader(
        leader_id=leader, leader_epoch=epoch, host=f"node{leader}", port=9000 + leader
    )
    return UpdateRaftVoterResponse(error_code=error, current_leader=known)
