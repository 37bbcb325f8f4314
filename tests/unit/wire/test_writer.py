"""What encoding refuses, and how it names the field that is wrong."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from kraftwire.errors import UsageError, WireError
from kraftwire.messages import find
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.fetch_request import FetchRequest, ReplicaState
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.metadata_response import MetadataResponse
from kraftwire.messages.offset_fetch_request import OffsetFetchRequest
from kraftwire.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftwire.wire.message import Message
from kraftwire.wire.writer import write_message
from tests.support.messages.vectors import vectors

PATHS = {
    "replica_epoch": "replicaEpoch",
    "last_offset": "lastOffset",
    "replica_directory_id": "replicaDirectoryId",
}


def vote(**values: Any) -> VoteRequest:
    """A vote request whose one partition holds the given values."""
    return VoteRequest(topics=[TopicData(topic_name="t", partitions=[PartitionData(**values)])])


def refusal(message: Message, version: int) -> WireError:
    """The error that encoding ends with."""
    with pytest.raises(WireError) as caught:
        message.encode(version)
    return caught.value


@pytest.mark.parametrize(
    ("attribute", "value", "expected", "found"),
    [
        ("replica_epoch", "7", "int32", "str '7'"),
        ("replica_epoch", 1.0, "int32", "float 1.0"),
        ("replica_epoch", None, "int32", "NoneType None"),
        ("replica_epoch", 2**31, "int32", "int 2147483648"),
        ("replica_epoch", -(2**31) - 1, "int32", "int -2147483649"),
        ("last_offset", 2**63, "int64", "int 9223372036854775808"),
        ("replica_directory_id", bytes(15), "16 bytes", "bytes of length 15"),
        ("replica_directory_id", bytearray(17), "16 bytes", "bytearray of length 17"),
        ("replica_directory_id", "0123456789abcdef", "16 bytes", "str '0123456789abcdef'"),
        ("replica_directory_id", None, "16 bytes", "NoneType None"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_its_path(
    attribute: str, value: Any, expected: str, found: str
) -> None:
    """If it were silently cut or padded, the peer would receive another value."""
    error = refusal(vote(**{attribute: value}), 2)
    assert error.path == f"topics[0].partitions[0].{PATHS[attribute]}"
    assert error.expected == expected
    assert error.found == found
    assert (error.message, error.version, error.offset) == ("VoteRequest", 2, None)


@pytest.mark.parametrize("value", [5, b"bytes", ["list"], PartitionData()])
def test_only_text_is_written_as_a_string(value: Any) -> None:
    """Bytes have a length too, and would pass unnoticed."""
    error = refusal(VoteRequest(cluster_id=value), 2)
    assert (error.path, error.expected) == ("clusterId", "str")


def test_a_string_may_have_32767_bytes_and_no_more() -> None:
    """The limit is Kafka's, and counts bytes of UTF-8 rather than characters."""
    assert len(VoteRequest(cluster_id="x" * 32767).encode(0)) == 3 + 32767 + 2
    for text in ("x" * 32768, "é" * 16384):
        error = refusal(VoteRequest(cluster_id=text), 0)
        assert error.problem == "string of 32768 bytes"
        assert error.expected == "at most 32767 bytes"


def test_a_string_in_an_old_version_has_the_same_limit() -> None:
    """Lengths of 16 bits would wrap around."""
    request = OffsetFetchRequest(group_id="x" * 32768)
    assert refusal(request, 1).problem == "string of 32768 bytes"


def test_half_a_surrogate_pair_is_not_text() -> None:
    """It comes from broken JSON, and UTF-8 cannot encode it."""
    error = refusal(VoteRequest(cluster_id="\ud800"), 2)
    assert (error.path, error.expected) == ("clusterId", "UTF-8 text")


@pytest.mark.parametrize("value", [5, None, "abc", {1: 2}, TopicData()])
def test_only_a_list_is_written_as_an_array(value: Any) -> None:
    """A string would be taken for a list of characters."""
    error = refusal(VoteRequest(topics=value), 2)
    assert (error.path, error.expected) == ("topics", "a list of TopicData")


@pytest.mark.parametrize("value", [None, 5, PartitionData(), VoteRequest()])
def test_an_element_must_be_of_the_arrays_struct(value: Any) -> None:
    """Another struct with equal attributes would be written as if it were right."""
    error = refusal(VoteRequest(topics=[TopicData(), value]), 2)
    assert (error.path, error.expected) == ("topics[1]", "TopicData")


def test_null_is_refused_where_the_version_has_none() -> None:
    """A nullable field is nullable in its nullable versions only."""
    response = DescribeQuorumResponse(error_message=None)
    assert response.encode(2)
    metadata = MetadataResponse(cluster_id=None)
    assert metadata.encode(2)
    error = refusal(EnvelopeRequest(request_data=None), 0)  # type: ignore[arg-type]
    assert error.path == "requestData"


def test_a_version_refuses_what_it_cannot_carry() -> None:
    """A pre-vote that turned into a real vote on the way would elect a leader."""
    error = refusal(vote(pre_vote=True), 1)
    assert error.path == "topics[0].partitions[0].preVote"
    assert error.problem == "version 1 cannot carry the field (it has 2+)"
    assert error.expected == "the default False"
    assert error.found == "bool True"
    assert vote(pre_vote=False).encode(1) == vote().encode(1)


def test_what_the_schema_calls_ignorable_is_left_out() -> None:
    """Kafka sets such fields without looking at the version."""
    request = vote(replica_directory_id=bytes(range(16)))
    request.voter_id = 5
    assert request.encode(0) == vote().encode(0)
    assert request.encode(1) != vote().encode(1)


def test_unknown_tagged_fields_need_a_flexible_version() -> None:
    """They were read from one, and an old version has no place for them."""
    response = ApiVersionsResponse()
    response.unknown_tagged_fields = {9: b"value"}
    assert response.encode(3).endswith(bytes.fromhex("01090576616c7565"))
    error = refusal(response, 2)
    assert "cannot carry unknown ones" in error.problem


@pytest.mark.parametrize(
    "tags", [{1: b"x"}, {-1: b""}, {2**32: b""}, {"7": b""}, {7: "text"}, {7: None}]
)
def test_an_unknown_tagged_field_needs_a_free_tag_and_bytes(tags: Any) -> None:
    """Tag 1 of a fetch request is known: written twice, the peer would read one of the two."""
    request = FetchRequest(replica_state=ReplicaState(replica_id=1, replica_epoch=2))
    request.unknown_tagged_fields = tags
    assert refusal(request, 15).problem == "bad unknown tagged field"


def test_unknown_tagged_fields_are_a_dictionary() -> None:
    """Anything else is refused where the mistake can be seen."""
    request = VoteRequest()
    request.unknown_tagged_fields = [(9, b"x")]  # type: ignore[assignment]
    assert refusal(request, 2).problem == "bad unknown tagged fields"


def test_a_deleted_attribute_is_named() -> None:
    """Nothing else explains an AttributeError deep inside a generated function."""
    request = VoteRequest()
    del request.cluster_id
    assert refusal(request, 2).path == "clusterId"


@pytest.mark.parametrize("version", [-1, VoteRequest.VERSIONS.high + 1, None, "2", True, 2.0, []])
def test_an_unknown_version_is_a_usage_error(version: Any) -> None:
    """The schema defines which versions exist; callers need not try."""
    with pytest.raises(UsageError, match=f"VoteRequest has versions {VoteRequest.VERSIONS}, not"):
        VoteRequest().encode(version)


@pytest.mark.parametrize(
    "name", ["DescribeQuorumResponse", "FetchResponse", "MetadataResponse", "ProduceRequest"]
)
def test_the_slow_writer_writes_what_the_fast_one_writes(name: str) -> None:
    """A value that only the fast one cannot handle is written by the slow one."""
    cls = find(name)
    for vector in vectors()[name]:
        message, _ = cls.decode(vector.data, vector.version)
        assert write_message(cls.facts(), message, vector.version) == vector.data


@pytest.mark.parametrize("value", [1, 0, None, "no", [], 0.5])
def test_only_true_and_false_are_written_as_a_bool(value: Any) -> None:
    """The text "no" would be written as true, and 2 as 1."""
    error = refusal(vote(pre_vote=value), 2)
    assert error.path == "topics[0].partitions[0].preVote"
    assert error.expected == "bool"


def envelope(data: Any) -> EnvelopeRequest:
    """A request with a field of bytes."""
    return EnvelopeRequest(request_data=data)


def test_a_view_is_written_by_its_bytes_not_its_elements() -> None:
    """A view of wider numbers, or one with gaps, has a length that does not count bytes."""
    wide = memoryview(bytes(range(16))).cast("I")
    table = memoryview(bytes(range(16))).cast("B", (4, 4))
    gaps = memoryview(bytes(range(32)))[::2]
    for view in (wide, table, gaps):
        assert envelope(view).encode(0) == envelope(bytes(view)).encode(0)
        assert envelope(view).to_json(0) == envelope(bytes(view)).to_json(0)
    request = VoteRequest()
    request.unknown_tagged_fields = {9: wide}  # type: ignore[dict-item]
    assert request.encode(2).endswith(bytes.fromhex("010910") + bytes(wide))


@pytest.mark.parametrize("value", [array("i", [1, 2]), array("B", [1]), "text", [1], 5])
def test_only_bytes_and_views_are_written_as_bytes(value: Any) -> None:
    """An array of numbers has a length too, which does not count bytes."""
    assert refusal(envelope(value), 0).path == "requestData"


def test_more_unknown_tags_than_decoders_take_are_refused() -> None:
    """8,000 of them were written, and no decoder of ours read them again."""
    message = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    message.unknown_tagged_fields = dict.fromkeys(range(8000), b"")
    with pytest.raises(WireError, match=r"too many tagged fields .*at most \d+, found 8000"):
        message.encode(3)


@pytest.mark.parametrize("count", [64, 127, 128, 200, 8000])
def test_what_is_encoded_is_decoded_whatever_the_number_of_tags(count: int) -> None:
    """Long values make room for many tags; around the limits both sides have to agree."""
    for size in (0, 1, 5, 6, 7, 20):
        message = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        message.unknown_tagged_fields = {tag: bytes(size) for tag in range(count)}
        try:
            data = message.encode(3)
        except WireError:
            assert size < 8
            continue
        read = ApiVersionsRequest.decode(data, 3)[0]
        assert read.unknown_tagged_fields == message.unknown_tagged_fields


def test_more_small_structs_than_decoders_take_are_refused() -> None:
    """Decoders allow a limited number for the bytes of a message."""
    topics = [MetadataRequestTopic(name="") for _ in range(30_000)]
    with pytest.raises(WireError, match="topics: decoders refuse this message: too many small"):
        MetadataRequest(topics=topics).encode(8)
    few = MetadataRequest(topics=topics[:10_000])
    assert len(MetadataRequest.decode(few.encode(8), 8)[0].topics or ()) == 10_000
    long = MetadataRequest(topics=[MetadataRequestTopic(name="topic-1") for _ in range(30_000)])
    assert len(MetadataRequest.decode(long.encode(8), 8)[0].topics or ()) == 30_000
