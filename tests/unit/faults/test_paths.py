"""Values for fields of responses, by path."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.errors import UsageError
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.unit.faults.test_rules import Server


def metadata() -> MetadataResponse:
    """Return two topics of two partitions."""
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="a", port=9092)],
        topics=[
            MetadataResponseTopic(
                name=name,
                partitions=[
                    MetadataResponsePartition(partition_index=i, leader_id=1, isr_nodes=[1, 2])
                    for i in (0, 1)
                ],
            )
            for name in ("a", "b")
        ],
    )


def falsified(values: dict[str, Any], version: int = 12) -> Any:
    """Return the response in which values are set."""
    server = Server()
    server.add(api="Metadata", falsify=values)
    return server.decide(MetadataRequest(), version).changed_response(metadata())


def test_fields_at_any_depth() -> None:
    """All elements of an array, one of them, a whole array, or an element of it."""
    found = falsified(
        {
            "topics[*].partitions[1].errorCode": "LEADER_NOT_AVAILABLE",
            "topics[0].name": "c",
            "topics[1].topicId": "BwcHBwcHBwcHBwcHBwcHBw",
            "topics[7].name": "nobody",
            "topics[*].partitions[0].isrNodes": [3],
            "topics[*].partitions[1].isrNodes[*]": 4,
            "brokers": [],
        }
    )
    partitions = [p for t in found.topics for p in t.partitions]
    assert [p.error_code for p in partitions] == [0, 5, 0, 5]
    assert [p.isr_nodes for p in partitions] == [[3], [4, 4], [3], [4, 4]]
    assert [(t.name, t.topic_id[0]) for t in found.topics] == [("c", 0), ("b", 7)]
    assert found.brokers == []
    partitions[0].isr_nodes.append(9)
    assert partitions[2].isr_nodes == [3]
    found.encode(12)


def test_a_version_without_the_field_is_not_met() -> None:
    """The rule is for those that have all of its fields."""
    server = Server()
    rule = server.add(api="Metadata", falsify={"topics[*].topicId": "AAAAAAAAAAAAAAAAAAAAAA"})
    assert rule.selector.versions == {3: range(10, 14)}
    for version in (9, 10):
        server.decide(MetadataRequest(topics=[]), version)
    assert rule.count == 1


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({}, "expected paths and values"),
        ({"topics[*].x": 1}, r"topics\[\*\] in version 13 has no x; it has errorCode, name"),
        ({"x": 1}, "MetadataResponse in version 13 has no x; it has throttleTimeMs"),
        ({"topics.name": "a"}, r"an array: write topics\[\*\]"),
        ({"clusterId[0]": "a"}, "clusterId of MetadataResponse is no array"),
        ({"topics[-1].name": "a"}, "is no path such as"),
        ({"clusterId.x": "a"}, "clusterId in version 13 has no x; it has no fields"),
        ({"controllerId": "a"}, "controllerId: wrong value .expected int32, found 'a'"),
        ({"controllerId": None}, "null is not allowed"),
        ({"errorCode": "NOBODY"}, "errorCode: there is no error 'NOBODY'"),
        ({"brokers[*].host": "\ud800"}, r"brokers\[0\].host: not encodable"),
        ({"brokers[*].host": "x" * 40_000}, r"brokers\[0\].host: string of 40000 bytes"),
    ],
)
def test_a_path_or_a_value_that_no_response_has(values: dict[str, Any], problem: str) -> None:
    """Found when the rule is made."""
    with pytest.raises(UsageError, match=f"falsify: .*{problem}"):
        falsified(values)
