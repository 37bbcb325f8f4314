"""The JSON form is that of Kafka's converters, and wrong JSON is refused with its path."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse,
    EntryData,
    ValueData,
)
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse, Listener, Node
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.fetch_request import FetchRequest, ReplicaState
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.find_coordinator_request import FindCoordinatorRequest
from kraftwire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraftwire.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftwire.wire.json_form import uuid_from_text, uuid_to_text
from kraftwire.wire.message import Message

UUID = bytes(range(240, 256))
VOTE_JSON: dict[str, Any] = {
    "clusterId": None,
    "voterId": -1,
    "topics": [
        {
            "topicName": "t",
            "partitions": [
                {
                    "partitionIndex": 0,
                    "replicaEpoch": 7,
                    "replicaId": 2,
                    "replicaDirectoryId": "8PHy8_T19vf4-fr7_P3-_w",
                    "voterDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
                    "lastOffsetEpoch": 0,
                    "lastOffset": 2**63 - 1,
                    "preVote": True,
                }
            ],
        }
    ],
}
VOTE = VoteRequest(
    topics=[
        TopicData(
            topic_name="t",
            partitions=[
                PartitionData(
                    replica_epoch=7,
                    replica_id=2,
                    replica_directory_id=UUID,
                    last_offset=2**63 - 1,
                    pre_vote=True,
                )
            ],
        )
    ]
)


def refusal(message: type[Message], data: Any, version: int) -> WireError:
    """The error that reading the JSON ends with."""
    with pytest.raises(WireError) as caught:
        message.from_json(data, version)
    return caught.value


def test_a_message_is_printed_as_kafka_prints_it() -> None:
    """Keys are camelCase and in wire order, uuids url-safe without padding."""
    printed = VOTE.to_json(2)
    assert printed == VOTE_JSON
    assert list(printed) == ["clusterId", "voterId", "topics"]
    assert VoteRequest.from_json(VOTE_JSON, 2) == VOTE


def test_bytes_and_records_are_base64() -> None:
    """Records too, where Kafka's converter prints an empty string and loses them."""
    envelope = EnvelopeRequest(request_data=b"\xff\xfe", request_principal=None)
    assert envelope.to_json(0)["requestData"] == "//4="
    assert envelope.to_json(0)["requestPrincipal"] is None
    partition = PartitionProduceData(records=memoryview(b"batches"))
    produce = ProduceRequest(topic_data=[TopicProduceData(partition_data=[partition])])
    printed = produce.to_json(9)
    assert printed["topicData"][0]["partitionData"][0]["records"] == "YmF0Y2hlcw=="
    assert ProduceRequest.from_json(printed, 9) == produce


def test_tagged_fields_at_their_default_are_left_out() -> None:
    """That is how Kafka prints them; if spelled out, they are still read."""
    assert "replicaState" not in FetchRequest().to_json(15)
    assert FetchRequest(replica_state=ReplicaState(replica_id=-1, replica_epoch=-1)).to_json(
        15
    ) == FetchRequest().to_json(15)
    shown = FetchRequest(replica_state=ReplicaState(replica_id=3)).to_json(15)
    assert shown["replicaState"] == {"replicaId": 3, "replicaEpoch": -1}
    spelled_out = FetchRequest().to_json(15) | {
        "replicaState": {"replicaId": -1, "replicaEpoch": -1}
    }
    assert FetchRequest.from_json(spelled_out, 15).encode(15) == FetchRequest().encode(15)


@pytest.mark.parametrize("value", [0.0, 1.5, -1e300, math.inf, -math.inf])
def test_floats_come_back(value: float) -> None:
    """JSON has no infinity; Kafka prints the word."""
    quotas = DescribeClientQuotasResponse(
        entries=[EntryData(values=[ValueData(key="k", value=value)])]
    )
    printed = quotas.to_json(1)
    assert printed["entries"][0]["values"][0]["value"] in (value, "Infinity", "-Infinity")
    assert DescribeClientQuotasResponse.from_json(printed, 1) == quotas


def test_what_is_not_a_number_comes_back() -> None:
    """It equals nothing, not even itself, so it has a separate test."""
    quotas = DescribeClientQuotasResponse(
        entries=[EntryData(values=[ValueData(key="k", value=math.nan)])]
    )
    printed = quotas.to_json(1)
    assert printed["entries"][0]["values"][0]["value"] == "NaN"
    again = DescribeClientQuotasResponse.from_json(printed, 1)
    assert again.entries is not None
    assert math.isnan(again.entries[0].values[0].value)


def test_uuids_have_22_characters() -> None:
    """The form is that of meta.properties and of every Kafka tool."""
    assert uuid_to_text(bytes(16)) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_from_text(uuid_to_text(UUID)) == UUID
    for text in ("", "AAAA", "A" * 21, "A" * 23, "A" * 21 + "*", "A" * 21 + "é", "A" * 20 + "==="):
        with pytest.raises(WireError, match="bad uuid"):
            uuid_from_text(text)


def test_a_missing_key_is_named_with_its_path() -> None:
    """Kafka's converter asks for every mandatory field too."""
    data = {"clusterId": None, "topics": [{"topicName": "t"}]}
    error = refusal(VoteRequest, data, 0)
    assert error.path == "topics[0].partitions"
    assert error.problem == "the key is missing"


def test_an_unknown_key_is_named_with_its_path() -> None:
    """A misspelled key would otherwise be a field silently left at its default."""
    error = refusal(VoteRequest, {"clusterId": None, "topics": [], "clusterID": "x"}, 0)
    assert error.path == "clusterID"
    assert error.expected == "a field of VoteRequest in version 0"


def test_a_key_of_another_version_is_ignored_if_the_schema_says_so() -> None:
    """In bytes such a field is silently left out, so JSON is not stricter."""
    data = {"clusterId": None, "topics": [], "voterId": 3}
    assert VoteRequest.from_json(data, 0) == VoteRequest()
    assert VoteRequest.from_json(data, 1) == VoteRequest(voter_id=3)


def test_a_key_that_the_version_cannot_carry_is_refused() -> None:
    """Dropping it would change the meaning."""
    data = {"key": "a", "keyType": 0, "coordinatorKeys": ["b"]}
    error = refusal(FindCoordinatorRequest, data, 3)
    assert error.path == "coordinatorKeys"
    assert error.problem == "version 3 cannot carry the field (it has 4+)"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("clusterId", 5, "a string"),
        ("voterId", "5", "int32"),
        ("voterId", 5.0, "int32"),
        ("voterId", True, "int32"),
        ("voterId", 2**31, "int32"),
        ("voterId", None, "int32"),
        ("topics", {}, "a JSON array"),
        ("topics", None, "[]TopicData"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(path: str, value: Any, expected: str) -> None:
    """JSON has one kind of number and no bytes; the schema says what was meant."""
    error = refusal(VoteRequest, VOTE_JSON | {path: value}, 2)
    assert (error.path, error.expected) == (path, expected)
    assert error.found == repr(value)


@pytest.mark.parametrize("value", [[], "text", 5, None])
def test_a_message_is_a_json_object(value: Any) -> None:
    """The path is empty, so the text has to say what was expected."""
    error = refusal(VoteRequest, value, 2)
    assert (error.path, error.expected) == ("", "a JSON object")


@pytest.mark.parametrize("text", ["AAA", "A*==", "é", "=AAA"])
def test_bad_base64_is_refused(text: str) -> None:
    """A decoder that skips what it does not know would produce other bytes."""
    data = {"requestData": text, "requestPrincipal": None, "clientHostAddress": ""}
    error = refusal(EnvelopeRequest, data, 0)
    assert (error.path, error.problem) == ("requestData", "bad base64")


def test_unsigned_numbers_have_their_own_range() -> None:
    """Ports are unsigned."""
    node = Node(node_id=1, listeners=[Listener(name="C", host="h", port=65535)])
    printed = DescribeQuorumResponse(nodes=[node]).to_json(2)
    assert DescribeQuorumResponse.from_json(printed, 2).nodes == [node]
    printed["nodes"][0]["listeners"][0]["port"] = 65536
    assert refusal(DescribeQuorumResponse, printed, 2).path == "nodes[0].listeners[0].port"
    printed["nodes"][0]["listeners"][0]["port"] = -1
    assert refusal(DescribeQuorumResponse, printed, 2).expected == "uint16"


def test_what_a_version_cannot_carry_is_not_printed_silently() -> None:
    """JSON of version 1 that lacks a pre-vote would be read as a vote."""
    with pytest.raises(WireError, match=r"preVote: version 1 cannot carry the field"):
        VOTE.to_json(1)


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (VoteRequest(topics=[5]), "topics[0]"),  # type: ignore[list-item]
        (VoteRequest(topics=5), "topics"),  # type: ignore[arg-type]
        (VoteRequest(cluster_id=5), "clusterId"),  # type: ignore[arg-type]
        (VoteRequest(topics={}), "topics"),  # type: ignore[arg-type]
        (VoteRequest(topics=[TopicData(topic_name=None)]), "topics[0].topicName"),  # type: ignore[arg-type]
        (VoteRequest(topics=[PartitionData()]), "topics[0]"),  # type: ignore[list-item]
        (EnvelopeRequest(request_data="text"), "requestData"),  # type: ignore[arg-type]
    ],
)
def test_a_value_of_the_wrong_type_is_not_printed(message: Message, path: str) -> None:
    """The error is the same as in encoding, not an internal one."""
    with pytest.raises(WireError) as caught:
        message.to_json(0)
    assert caught.value.path == path


def test_numbers_print_as_what_is_written() -> None:
    """True is written as 1 in an integer field, and a whole number as a float."""
    assert VoteRequest(voter_id=True).to_json(1)["voterId"] == 1
    assert VoteRequest(voter_id=True).to_json(1)["voterId"] is not True
    with pytest.raises(WireError, match="preVote"):
        VoteRequest(topics=[TopicData(partitions=[PartitionData(pre_vote=1)])]).to_json(2)  # type: ignore[arg-type]


def test_a_tagged_struct_of_none_prints_as_nothing() -> None:
    """None stands for its defaults."""
    assert FetchResponse.from_json(FetchResponse().to_json(12), 12) == FetchResponse()


def test_a_number_too_large_for_a_float_is_an_error() -> None:
    """JSON integers are unbounded, and Python cannot convert all of them to floats."""
    data = {
        "entries": [{"entity": [], "ops": [{"key": "k", "value": 10**400, "remove": False}]}],
        "validateOnly": False,
    }
    with pytest.raises(WireError, match="value"):
        messages.find("AlterClientQuotasRequest").from_json(data, 1)
