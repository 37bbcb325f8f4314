"""Which topics, partitions, groups and transactional ids a request is about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraftwire import messages
from kraftwire.protocol.entities import (
    GROUP,
    KINDS,
    PARTITION,
    TOPIC,
    TRANSACTIONAL_ID,
    request_level,
)
from kraftwire.wire.facts import FieldFacts, StructFacts

# APIs that name partitions of topics, as their schemas say in words alone.
WITH_PARTITIONS = {
    *("Produce", "Fetch", "ListOffsets", "LeaderAndIsr", "StopReplica", "UpdateMetadata"),
    *("OffsetCommit", "OffsetFetch", "CreateTopics", "DeleteRecords", "OffsetForLeaderEpoch"),
    *("AddPartitionsToTxn", "WriteTxnMarkers", "TxnOffsetCommit", "AlterReplicaLogDirs"),
    *("DescribeLogDirs", "ElectLeaders", "AlterPartitionReassignments", "OffsetDelete", "Vote"),
    *("ListPartitionReassignments", "BeginQuorumEpoch", "EndQuorumEpoch", "DescribeQuorum"),
    *("AlterPartition", "FetchSnapshot", "DescribeProducers", "ConsumerGroupHeartbeat"),
    *("AssignReplicasToDirs", "DescribeTopicPartitions", "ShareFetch", "ShareAcknowledge"),
    *("InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState"),
    *("DeleteShareGroupState", "ReadShareGroupStateSummary", "DescribeShareGroupOffsets"),
    "AlterShareGroupOffsets",
}
# What the type of a resource or of a key says.
BY_TYPE = {
    "FindCoordinator": {GROUP, TRANSACTIONAL_ID},
    "AlterConfigs": {GROUP, TOPIC},
    "CreateAcls": {GROUP, TOPIC},
    "DescribeConfigs": {GROUP, TOPIC},
    "IncrementalAlterConfigs": {GROUP, TOPIC},
}


def fields(facts: StructFacts, version: int) -> Iterator[FieldFacts]:
    """Yield all fields of a version, at any depth."""
    for field in facts.fields:
        if version in field.versions and field.name != "forgottenTopicsData":
            yield field
            if field.struct is not None:
                yield from fields(field.struct, version)


def expected(key: int, version: int) -> set[str]:
    """Return the kinds that the entity types and names of fields say, and the tables here."""
    name, found = messages.API_NAMES[key], set[str]()
    for field in fields(messages.request_class(key).facts().root, version):
        if field.names_topic:
            found.add(TOPIC)
        if field.entity_type == "groupId" or field.name == "groupId":
            found.add(GROUP)
        if field.entity_type == "transactionalId":
            found.add(TRANSACTIONAL_ID)
    return found | BY_TYPE.get(name, set()) | ({PARTITION} if name in WITH_PARTITIONS else set())


@pytest.mark.parametrize("key", sorted(messages.API_NAMES), ids=messages.API_NAMES.get)
def test_every_kind_is_found_in_every_version(key: int) -> None:
    """A rule for a topic that misses a request would make a test pass."""
    low, high = messages.API_VERSIONS[key]
    found = [request_level(key, version).kinds for version in range(low, high + 1)]
    assert found == [expected(key, version) for version in range(low, high + 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_versions_that_name_a_kind_have_no_gap(kind: str) -> None:
    """A rule keeps them as a range."""
    for key, (low, high) in messages.API_VERSIONS.items():
        found = [v for v in range(low, high + 1) if kind in request_level(key, v).kinds]
        assert not found or found == list(range(found[0], found[-1] + 1)), messages.API_NAMES[key]
