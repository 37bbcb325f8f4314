"""Reading the quorum's topic: Fetch, ListOffsets, OffsetForLeaderEpoch."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from kraftwire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraftwire.messages.no_op_record import NoOpRecord
from kraftwire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.reader import read_batches
from tests.support.nodes.stub import (
    StubNode,
    answer_of,
    control_batch,
    request_of,
    with_brokers,
)

pytestmark = pytest.mark.trio

NO_OP = (NoOpRecord(), 0)


def reader_node() -> StubNode:
    """A leader of epoch 1 with four batches at offsets 0, 1, 2 and 3."""
    node = StubNode()
    node.commit(control_batch(0, timestamp=500))
    with_brokers(node)
    node.commit_records(NO_OP, timestamp=3000)
    node.commit_records(NO_OP, timestamp=2000)
    return node


def fetch(offset: int = 0, **more: Any) -> FetchRequest:
    """A consumer's fetch of the quorum's topic; `partition` and other fields may be overridden."""
    partition = FetchPartition(
        partition=more.pop("partition", 0),
        fetch_offset=offset,
        partition_max_bytes=more.pop("partition_max_bytes", 1_000_000),
        current_leader_epoch=more.pop("current_leader_epoch", -1),
        last_fetched_epoch=more.pop("last_fetched_epoch", -1),
    )
    topic = FetchTopic(
        topic=more.pop("topic", METADATA_TOPIC),
        topic_id=more.pop("topic_id", METADATA_TOPIC_ID),
        partitions=[partition],
    )
    values = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1_000_000, "topics": [topic]}
    return FetchRequest(**(values | more))


async def fetched(node: StubNode, request: FetchRequest, version: int = 12) -> Any:
    """The only partition of the answer."""
    answer = await answer_of(node, request_of(request, version))
    assert answer.error_code == 0
    return answer.responses[0].partitions[0]


def offsets(partition: Any) -> list[int]:
    """The base offsets of the batches in an answer."""
    return [batch.base_offset for batch in read_batches(partition.records)]


async def test_consumers_get_committed_batches_from_their_offset_on() -> None:
    """By name below version 13, by id from there on."""
    node = reader_node()
    for version in (4, 12, 13, 18):
        partition = await fetched(node, fetch(2), version)
        assert (partition.error_code, offsets(partition)) == (0, [2, 3])
        assert partition.high_watermark == partition.last_stable_offset == 4


async def test_a_fetch_is_kept_within_its_limits_but_for_the_first_batch() -> None:
    """A consumer with a small buffer must not be stuck at a large batch (KIP-74)."""
    node = reader_node()
    assert offsets(await fetched(node, fetch(0, partition_max_bytes=1))) == [0]
    assert offsets(await fetched(node, fetch(0, max_bytes=0))) == [0]


async def test_a_partition_that_is_named_twice_is_refused() -> None:
    """250,000 times in one request, it kept a node busy for seconds."""
    node = reader_node()
    request = fetch(0, max_bytes=1)
    request.topics *= 2
    answer = await answer_of(node, request_of(request, 12))
    assert (answer.error_code, answer.responses) == (ErrorCode.INVALID_REQUEST, [])
    assert await answer_of(node, request_of(request, 6)) is None


async def test_offsets_outside_the_log_are_refused_with_its_bounds() -> None:
    """A consumer then resets to one of them."""
    node = reader_node()
    partition = await fetched(node, fetch(5))
    assert partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (partition.log_start_offset, partition.high_watermark) == (0, 4)


async def test_a_fetch_at_the_end_waits_for_more() -> None:
    """Otherwise every consumer would ask as fast as it can."""
    node = reader_node()
    before = node.clock_ms
    partition = await fetched(node, fetch(4, max_wait_ms=500))
    assert (partition.error_code, partition.records) == (0, b"")
    assert node.clock_ms == before + 500


async def test_an_error_does_not_wait() -> None:
    """Waiting would not change anything."""
    node = reader_node()
    before = node.clock_ms
    await fetched(node, fetch(9, max_wait_ms=500))
    assert node.clock_ms == before


async def test_other_topics_and_partitions_are_unknown() -> None:
    """The code is the one for names or for ids."""
    node = reader_node()
    cases = [
        (fetch(topic="x"), 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (fetch(topic_id=bytes(15) + b"\x09"), 13, ErrorCode.UNKNOWN_TOPIC_ID),
        (fetch(partition=1), 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    for request, version, code in cases:
        assert (await fetched(node, request, version)).error_code == code


async def test_a_fetch_elsewhere_names_the_leader() -> None:
    """KIP-951: the client goes there without asking for metadata first."""
    node = with_brokers(StubNode(), 1, 2)
    node.raft.leader_id, node.raft.role = 2, "follower"
    answer = await answer_of(node, request_of(fetch(), 16))
    partition = answer.responses[0].partitions[0]
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (2, 1)
    assert [(n.node_id, n.port) for n in answer.node_endpoints] == [(2, 9092)]


async def test_a_clients_leader_epoch_must_be_the_quorums() -> None:
    """KIP-320: a client with an old picture must refresh it, one with a newer picture must wait."""
    node = reader_node()
    node.raft.epoch = 5
    for epoch, code in (
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (5, ErrorCode.NONE),
    ):
        partition = await fetched(node, fetch(current_leader_epoch=epoch))
        assert partition.error_code == code


async def test_a_new_leader_without_high_watermark_has_nothing_to_give() -> None:
    """It does not yet know what is committed."""
    node = reader_node()
    node.raft.high_watermark = -1
    assert (await fetched(node, fetch())).error_code == ErrorCode.OFFSET_NOT_AVAILABLE


async def test_a_consumer_whose_epoch_diverges_learns_where() -> None:
    """The last batch that it read was never committed."""
    node = reader_node()
    node.raft.epoch = 3
    node.commit(control_batch(4, epoch=3))
    partition = await fetched(node, fetch(5, last_fetched_epoch=1))
    assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == (1, 4)
    assert offsets(await fetched(node, fetch(4, last_fetched_epoch=1))) == [4]


async def test_sessions_are_never_opened_or_continued() -> None:
    """Session id 0 tells a client to name its partitions each time (KIP-227)."""
    node = reader_node()
    answer = await answer_of(node, request_of(fetch(session_epoch=0), 12))
    assert answer.session_id == 0
    answer = await answer_of(node, request_of(fetch(session_id=7, session_epoch=3), 12))
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_replica_is_not_a_consumer() -> None:
    """It would take uncommitted records for committed ones."""
    node = reader_node()
    old = fetch(replica_id=2)
    assert (await fetched(node, old)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    new = fetch(replica_state=ReplicaState(replica_id=2))
    assert (await fetched(node, new, 17)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_a_replica_on_a_listener_for_all_is_the_cores() -> None:
    """Without process.roles, peers use the same listener as consumers."""
    node = reader_node()
    node.core_answer = object()  # type: ignore[assignment]
    request = fetch(replica_state=ReplicaState(replica_id=2))
    assert await answer_of(node, request_of(request, 17, to="both")) is node.core_answer
    answer = await answer_of(node, request_of(fetch(), 17, to="both"))
    assert offsets(answer.responses[0].partitions[0]) == [0, 1, 2, 3]


async def test_old_fetches_of_peers_are_invalid() -> None:
    """They do not name the topic by id, so no present replica sends them."""
    answer = await answer_of(reader_node(), request_of(fetch(), 12, to="peer"))
    assert answer.error_code == ErrorCode.INVALID_REQUEST


async def listed(node: StubNode, timestamp: int, version: int = 11, **more: int) -> Any:
    """The only partition of a ListOffsets answer."""
    partition = ListOffsetsPartition(timestamp=timestamp, **more)
    topic = ListOffsetsTopic(name=METADATA_TOPIC, partitions=[partition])
    answer = await answer_of(node, request_of(ListOffsetsRequest(topics=[topic]), version))
    return answer.topics[0].partitions[0]


async def test_offsets_are_found_by_kind() -> None:
    """Latest is what is committed, earliest where the log starts."""
    node = reader_node()
    found = {kind: (await listed(node, kind)).offset for kind in (-1, -2, -4, -5, -6)}
    assert found == {-1: 4, -2: 0, -4: 0, -5: -1, -6: -1}


async def test_offsets_are_found_by_time() -> None:
    """The first record that is not older; timestamps of two leaders need not grow."""
    node = reader_node()
    cases = {0: (0, 500), 501: (1, 1000), 1001: (2, 3000), 3001: (-1, -1)}
    for timestamp, expected in cases.items():
        partition = await listed(node, timestamp)
        assert (partition.offset, partition.timestamp) == expected
    partition = await listed(node, -3)
    assert (partition.offset, partition.timestamp, partition.leader_epoch) == (2, 3000, 1)


async def test_kinds_that_a_version_does_not_know_are_refused() -> None:
    """As Kafka does, per partition."""
    for kind, version in ((-3, 6), (-4, 7), (-5, 8), (-6, 10), (-9, 11)):
        partition = await listed(reader_node(), kind, version)
        assert partition.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_only_the_leader_answers_for_offsets() -> None:
    """Any other node may be behind."""
    node = reader_node()
    node.raft.role = "resigned"
    assert (await listed(node, -1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    node.raft.role, node.raft.high_watermark = "leader", -1
    assert (await listed(node, -1)).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert (await listed(node, -1, 4)).error_code == ErrorCode.LEADER_NOT_AVAILABLE


async def test_a_partition_named_twice_is_refused() -> None:
    """Two answers for one partition would confuse every client."""
    twice = [ListOffsetsPartition(timestamp=-1), ListOffsetsPartition(timestamp=-2)]
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=METADATA_TOPIC, partitions=twice)]
    )
    answer = await answer_of(reader_node(), request_of(request, 5))
    codes = [partition.error_code for partition in answer.topics[0].partitions]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2


async def test_the_end_of_an_epoch_is_reported() -> None:
    """A consumer compares it with what it has read (KIP-320)."""
    node = reader_node()
    node.raft.epoch = 3
    node.commit(control_batch(4, epoch=3))
    ends = {}
    for epoch in (0, 1, 2, 3, 4):
        partition = OffsetForLeaderPartition(leader_epoch=epoch)
        topic = OffsetForLeaderTopic(topic=METADATA_TOPIC, partitions=[partition])
        request = OffsetForLeaderEpochRequest(topics=[topic])
        answer = await answer_of(node, request_of(request, 4))
        found = answer.topics[0].partitions[0]
        ends[epoch] = (found.leader_epoch, found.end_offset)
    assert ends == {0: (-1, -1), 1: (1, 4), 2: (1, 4), 3: (3, 5), 4: (-1, -1)}
