"""Facts of `kraftwire decode`: the point of every message in a few words."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kraftwire import messages
from kraftwire.decode.body.context import TopicNames
from kraftwire.inspect.facts import REQUEST_FACTS, RESPONSE_FACTS
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kraftwire.wire.facts import StructFacts
from kraftwire.wire.message import Message
from tests.support.messages.vectors import Vector, vectors

_TOPIC = "AAECAwQFBgcICQoLDA0ODw"


def test_a_topic_id_is_shown_by_its_name_once_that_is_known() -> None:
    """Since version 13 a Fetch has only ids, which nobody remembers."""
    names = TopicNames()
    topic_id = bytes(range(16))
    fetch = FetchRequest(
        topics=[FetchTopic(topic_id=topic_id, partitions=[FetchPartition(fetch_offset=1)])]
    )
    assert REQUEST_FACTS[1](fetch, names).startswith("AAECAwQFBgcICQoLDA0ODw-0 @1")
    topic = MetadataResponseTopic(name="orders", topic_id=topic_id)
    names.learn(MetadataResponse(topics=[topic]), 12)
    assert REQUEST_FACTS[1](fetch, names).startswith("orders-0 @1")


def _rpc_vectors() -> list[str]:
    return [f"{name}{side}" for name in messages.API_NAMES.values() for side in
            ("Request", "Response")]


@pytest.mark.parametrize("name", _rpc_vectors())
def test_every_message_of_kafka_has_facts(name: str) -> None:
    """No API, version or value may stop a run; facts are one line of bounded length."""
    names = TopicNames()
    make = REQUEST_FACTS if name.endswith("Request") else RESPONSE_FACTS
    for vector in vectors().get(name, []):
        body = _decoded(vector)
        text = make[body.API_KEY](body, names)
        assert "\n" not in text
        assert len(text) < 2000


def _sparse(facts: StructFacts) -> Any:
    """A struct with its defaults, null where it may be, and one element in each list of structs."""
    made = facts.cls()
    for each in facts.fields:
        if each.is_array and each.struct:
            setattr(made, each.attribute, [_sparse(each.struct)])
        elif each.nullable.high >= each.nullable.low and each.type == "string":
            setattr(made, each.attribute, None)
    return made


@pytest.mark.parametrize("name", _rpc_vectors())
def test_missing_values_are_not_shown(name: str) -> None:
    """Messages with little content must not be shown as ``results , ,`` or ``groups null``."""
    make = REQUEST_FACTS if name.endswith("Request") else RESPONSE_FACTS
    cls = messages.find(name)
    for body in (cls(), _sparse(cls.facts().root)):
        text = make[body.API_KEY](body, TopicNames())
        assert not re.search(r"\bnull\b|\bNone\b|  |, ,|,$|^,|: ?$|:$| $", text), text


def _decoded(vector: Vector) -> Message:
    body, _ = messages.find(vector.name).decode(vector.data, vector.version)
    return body


@pytest.mark.parametrize(
    ("name", "version", "fields", "facts"),
    [
        (
            "VoteRequest",
            2,
            {
                "voterId": 1,
                "topics": [
                    {
                        "topicName": "__cluster_metadata",
                        "partitions": [
                            {
                                "partitionIndex": 0,
                                "replicaEpoch": 4,
                                "replicaId": 3,
                                "replicaDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
                                "voterDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
                                "lastOffsetEpoch": 3,
                                "lastOffset": 878,
                                "preVote": True,
                            }
                        ],
                    }
                ],
                "clusterId": None,
            },
            "pre-vote for 3 epoch 4, log end 878/3, voter 1",
        ),
        ("FindCoordinatorRequest", 1, {"key": "g1", "keyType": 0}, "group g1"),
        ("SaslHandshakeRequest", 1, {"mechanism": "PLAIN"}, "PLAIN"),
        (
            "SaslAuthenticateRequest",
            0,
            {"authBytes": "AGFsaWNlAHNlY3JldA=="},
            "token of 13 B",
        ),
        (
            "HeartbeatRequest",
            3,
            {"groupId": "g", "generationId": 7, "memberId": "m", "groupInstanceId": None},
            "group g generation 7 member m",
        ),
        (
            "BrokerHeartbeatRequest",
            0,
            {
                "brokerId": 10,
                "brokerEpoch": 5,
                "currentMetadataOffset": 33,
                "wantFence": True,
                "wantShutDown": False,
            },
            "broker 10 metadata offset 33, wants fence",
        ),
        (
            "AlterPartitionRequest",
            3,
            {
                "brokerId": 2,
                "brokerEpoch": 9,
                "topics": [
                    {
                        "topicId": _TOPIC,
                        "partitions": [
                            {
                                "partitionIndex": 4,
                                "leaderEpoch": 7,
                                "newIsrWithEpochs": [
                                    {"brokerId": 2, "brokerEpoch": 9},
                                    {"brokerId": 3, "brokerEpoch": 8},
                                ],
                                "leaderRecoveryState": 0,
                                "partitionEpoch": 11,
                            }
                        ],
                    }
                ],
            },
            f"broker 2 {_TOPIC}-4 ISR [2, 3] epoch 7/11",
        ),
        (
            "AssignReplicasToDirsRequest",
            0,
            {
                "brokerId": 2,
                "brokerEpoch": 9,
                "directories": [
                    {
                        "id": _TOPIC,
                        "topics": [
                            {
                                "topicId": _TOPIC,
                                "partitions": [{"partitionIndex": 0}, {"partitionIndex": 1}],
                            }
                        ],
                    }
                ],
            },
            f"broker 2 {_TOPIC}-0 +1 in {_TOPIC}",
        ),
        (
            "ShareAcknowledgeRequest",
            1,
            {
                "groupId": "g",
                "memberId": "m",
                "shareSessionEpoch": 3,
                "topics": [
                    {
                        "topicId": _TOPIC,
                        "partitions": [
                            {
                                "partitionIndex": 0,
                                "acknowledgementBatches": [
                                    {"firstOffset": 5, "lastOffset": 9, "acknowledgeTypes": [1]},
                                    {"firstOffset": 10, "lastOffset": 11,
                                     "acknowledgeTypes": [2, 3]},
                                ],
                            }
                        ],
                    }
                ],
            },
            f"group g session epoch 3, {_TOPIC}-0 5-9 accept, {_TOPIC}-0 10-11 release/reject",
        ),
        (
            "WriteShareGroupStateRequest",
            0,
            {
                "groupId": "g",
                "topics": [
                    {
                        "topicId": _TOPIC,
                        "partitions": [
                            {
                                "partition": 1,
                                "stateEpoch": 2,
                                "leaderEpoch": 0,
                                "startOffset": 5,
                                "stateBatches": [
                                    {"firstOffset": 5, "lastOffset": 7, "deliveryState": 0,
                                     "deliveryCount": 1},
                                    {"firstOffset": 8, "lastOffset": 9, "deliveryState": 2,
                                     "deliveryCount": 1},
                                ],
                            }
                        ],
                    }
                ],
            },
            f"group g {_TOPIC}-1 @5 2 batches 5-9 epoch 2",
        ),
        ("DeleteGroupsRequest", 2, {"groupsNames": []}, "no names"),
        (
            "ListPartitionReassignmentsRequest", 0, {"timeoutMs": 1, "topics": None}, "all topics"
        ),
    ],
)
def test_facts_are_the_point_of_a_message(
    name: str, version: int, fields: dict[str, object], facts: str
) -> None:
    """The words are the tool's interface to people; tokens are never among them."""
    body = messages.find(name).from_json(fields, version)
    assert REQUEST_FACTS[body.API_KEY](body, TopicNames()) == facts


@pytest.mark.parametrize(
    ("name", "version", "fields", "facts"),
    [
        (
            "OffsetFetchResponse",
            8,
            {
                "throttleTimeMs": 0,
                "groups": [
                    {
                        "groupId": "g",
                        "errorCode": 0,
                        "topics": [
                            {
                                "name": "t",
                                "partitions": [
                                    {"partitionIndex": n, "committedOffset": offset,
                                     "committedLeaderEpoch": -1, "metadata": "", "errorCode": 0}
                                    for n, offset in enumerate((7, -1))
                                ],
                            }
                        ],
                    }
                ],
            },
            "t-0 @7, t-1 no offset",
        ),
        (
            "JoinGroupResponse",
            5,
            {"throttleTimeMs": 0, "errorCode": 79, "generationId": -1, "protocolName": "",
             "leader": "", "memberId": "m-1", "members": []},
            "member m-1",
        ),
        ("ListGroupsResponse", 4, {"throttleTimeMs": 0, "errorCode": 0, "groups": []},
         "no groups"),
        (
            "CreateAclsResponse",
            2,
            {"throttleTimeMs": 0, "results": [{"errorCode": 0, "errorMessage": None}] * 2},
            "2 results",
        ),
        (
            "ConsumerGroupDescribeResponse",
            0,
            {
                "throttleTimeMs": 0,
                "groups": [
                    {
                        "errorCode": 0, "errorMessage": None, "groupId": "g",
                        "groupState": "Empty", "groupEpoch": 1, "assignmentEpoch": 1,
                        "assignorName": "uniform", "members": [], "authorizedOperations": 0,
                    }
                ],
            },
            "g (Empty, no members)",
        ),
    ],
)
def test_facts_of_responses(
    name: str, version: int, fields: dict[str, object], facts: str
) -> None:
    """Null error messages and empty names are not shown."""
    body = messages.find(name).from_json(fields, version)
    assert RESPONSE_FACTS[body.API_KEY](body, TopicNames()) == facts
