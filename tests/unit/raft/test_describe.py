"""DescribeQuorum as the leader and as others answer it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kraftwire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.raft.accumulator import Accumulator
from kraftwire.raft.config import RaftConfig
from kraftwire.raft.describe import handle_describe_quorum
from kraftwire.raft.effects import SendReply
from kraftwire.raft.events import RequestReceived
from kraftwire.raft.ports import StoredState
from kraftwire.raft.progress import LeaderProgress
from kraftwire.raft.roles import Leader, Resigned, Unattached
from kraftwire.raft.state import RaftState
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet

OWN = (Endpoint("CONTROLLER", "one", 1), Endpoint("SECOND", "one", 11))
VOTERS = VoterSet.of(
    *(Voter(ReplicaKey(n), (Endpoint("CONTROLLER", "host", n),)) for n in (1, 2, 3))
)
CONFIG = RaftConfig(key=ReplicaKey(1, b"a" * 16), cluster_id="c", voters=VOTERS, endpoints=OWN)
BROKER = ReplicaKey(9, b"z" * 16)
NOW = 900_000


def leading(config: RaftConfig = CONFIG) -> RaftState:
    """Node 1 leads epoch 5 with a log of 20; 2 is caught up, 3 has never fetched, 9 observes."""
    state = RaftState(config, StoredState(), random.Random(0))
    state.now = NOW
    progress = LeaderProgress(config.key, VOTERS, 10, 0, 2000)
    progress.note_log_end(20)
    progress.note_durable_end(15)
    progress.record_fetch(ReplicaKey(2, b"b" * 16), 20, NOW - 100)
    progress.record_fetch(BROKER, 12, NOW - 200)
    progress.record_fetch(ReplicaKey(8), 12, NOW - 300_000)
    collected = Accumulator(20, 5, linger_ms=25, batch_max_bytes=1000)
    state.role = Leader(5, 10, 1, OWN, progress, collected, 0)
    state.high_watermark = 15
    return state


def ask(
    state: RaftState,
    version: int = 2,
    topic: str = METADATA_TOPIC,
    partitions: tuple[int, ...] = (0,),
) -> DescribeQuorumResponse:
    """The answer, as it arrives through its bytes."""
    asked = [PartitionData(partition_index=index) for index in partitions]
    request = DescribeQuorumRequest(topics=[TopicData(topic_name=topic, partitions=asked)])
    handle_describe_quorum(state, RequestReceived(4, version, request))
    (effect,) = state.effects
    assert isinstance(effect, SendReply)
    assert effect.token == 4
    response, _ = DescribeQuorumResponse.decode(effect.message.encode(version), version)
    assert isinstance(response, DescribeQuorumResponse)
    return response


def test_the_leader_reports_the_progress_of_all_replicas() -> None:
    """R-DQ-2: voters and observers; unknown values are -1."""
    partition = ask(leading()).topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 5)
    assert partition.high_watermark == 15
    found = [
        (r.replica_id, r.log_end_offset, r.last_fetch_timestamp, r.last_caught_up_timestamp)
        for r in partition.current_voters
    ]
    assert found == [(1, 20, NOW, NOW), (2, 20, NOW - 100, NOW - 100), (3, -1, -1, -1)]
    (observer,) = partition.observers
    assert (observer.replica_id, observer.replica_directory_id) == (9, BROKER.directory_id)
    assert (observer.log_end_offset, observer.last_fetch_timestamp) == (12, NOW - 200)


def test_the_leaders_own_fetch_time_can_be_that_of_the_proposal() -> None:
    """According to KIP-836 a leader does not fetch, so there is no such time."""
    config = replace(CONFIG, describe_leader_last_fetch="-1")
    own = ask(leading(config)).topics[0].partitions[0].current_voters[0]
    assert (own.last_fetch_timestamp, own.last_caught_up_timestamp) == (-1, NOW)


def test_the_voters_addresses_come_with_version_2() -> None:
    """The leader names all of its own listeners."""
    nodes = ask(leading()).nodes
    assert [(n.node_id, [(a.name, a.host, a.port) for a in n.listeners]) for n in nodes] == [
        (1, [("CONTROLLER", "one", 1), ("SECOND", "one", 11)]),
        (2, [("CONTROLLER", "host", 2)]),
        (3, [("CONTROLLER", "host", 3)]),
    ]
    assert ask(leading(), version=1).nodes == []


def test_the_oldest_version_has_offsets_only() -> None:
    """What a version cannot carry must not make it fail."""
    partition = ask(leading(), version=0).topics[0].partitions[0]
    assert [r.log_end_offset for r in partition.current_voters] == [20, 20, -1]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_others_name_the_leader_they_know(version: int) -> None:
    """R-DQ-1: the error makes the client ask the leader."""
    state = leading()
    state.role = Unattached(6, leader_id=3, leader_endpoints=OWN)
    response = ask(state, version)
    partition = response.topics[0].partitions[0]
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (3, 6, -1)
    assert partition.current_voters == response.nodes == []
    if version == 2:
        text = "this node does not lead the quorum; the leader is 3 in epoch 6"
        assert partition.error_message == text


def test_a_resigned_leader_does_not_name_itself() -> None:
    """Its epoch is unchanged, but no longer has a leader."""
    state = leading()
    state.role = Resigned(epoch=5, leader_id=1, leader_endpoints=OWN, deadline_ms=0)
    partition = ask(state).topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


@pytest.mark.parametrize(
    ("topic", "partitions"), [("other", (0,)), (METADATA_TOPIC, (1,)), (METADATA_TOPIC, (0, 1))]
)
def test_another_topic_or_partition_is_unknown(topic: str, partitions: tuple[int, ...]) -> None:
    """R-DQ-1: every partition asked for gets its error."""
    response = ask(leading(), topic=topic, partitions=partitions)
    found = [(p.partition_index, p.error_code) for p in response.topics[0].partitions]
    assert found == [(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for index in partitions]
