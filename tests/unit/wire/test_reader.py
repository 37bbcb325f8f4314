"""What the slow reader reports about bad bytes, and how it annotates good ones."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.errors import UsageError, WireError
from kraftwire.messages import find
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.delete_topics_request import DeleteTopicsRequest
from kraftwire.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
)
from kraftwire.messages.fetch_request import (
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraftwire.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftwire.wire.message import Message
from kraftwire.wire.reader import Annotation, annotate, read_message
from kraftwire.wire.varint import uvarint
from tests.support.messages.vectors import vectors

VOTE = VoteRequest(
    cluster_id="kraft",
    voter_id=1,
    topics=[
        TopicData(
            topic_name="__cluster_metadata",
            partitions=[PartitionData(replica_epoch=7, replica_id=2, last_offset=99)],
        )
    ],
)

PARTITION = PartitionRecord(replicas=[1, 2, 300], isr=[1], directories=[bytes(16)] * 2)
UNKNOWN_TAGS = VoteRequest(cluster_id=None)
UNKNOWN_TAGS.unknown_tagged_fields = {5: b"", 300: b"abc", 70_000: b"d" * 200}


def failure(message: type[Message], data: bytes, version: int) -> WireError:
    """The error that decoding ends with."""
    with pytest.raises(WireError) as caught:
        message.decode(data, version)
    return caught.value


def test_a_cut_message_names_the_field_the_offset_and_what_is_left() -> None:
    """A person who has to find out why a peer was refused sees this line."""
    error = failure(VoteRequest, VOTE.encode(1)[:82], 1)
    assert str(error) == (
        "VoteRequest v1 topics[0].partitions[0].lastOffset at offset 79: "
        "need 8 bytes for int64 at offset 79, have 3 (expected 8 bytes, found 3)"
    )
    assert (error.message, error.version, error.offset) == ("VoteRequest", 1, 79)
    assert error.path == "topics[0].partitions[0].lastOffset"
    assert (error.expected, error.found) == ("8 bytes", "3")


def test_every_cut_of_a_message_is_an_error_inside_it() -> None:
    """Whatever is missing, the reader says so, and never points outside the present bytes."""
    data = VOTE.encode(2)
    for size in range(len(data)):
        error = failure(VoteRequest, data[:size], 2)
        assert error.offset is not None
        assert error.offset <= size
        assert error.expected
        assert error.found


def test_an_absurd_count_is_refused_before_anything_is_read() -> None:
    """Two billion claimed elements must not cost two billion objects."""
    error = failure(VoteRequest, bytes.fromhex("00ffffffff0f") + bytes(20), 0)
    assert error.path == "topics"
    assert error.offset == 1
    assert error.expected == "at most 6 elements"
    assert error.found == str(2**32 - 2)


@pytest.mark.parametrize(
    ("message", "version", "before", "count_of"),
    [
        (VoteRequest, 0, b"\0", lambda count: uvarint(count + 1)),
        (MetadataRequest, 0, b"", lambda count: count.to_bytes(4, "big")),
    ],
)
def test_an_array_may_have_as_many_elements_as_bytes_are_left(
    message: type[Message], version: int, before: bytes, count_of: Any
) -> None:
    """One more is refused at its count, as many are read up to the field where they end."""
    left = 50
    for count in (left, left + 1):
        data = before + count_of(count) + bytes(left)
        found = [
            str(_error_of(read, message, data, version)) for read in (read_message, annotate)
        ]
        assert found[0] == found[1] == str(failure(message, data, version))
        assert (f"array of {count} elements" in found[0]) == (count > left), found[0]


def _error_of(read: Any, message: type[Message], data: bytes, version: int) -> WireError:
    with pytest.raises(WireError) as caught:
        read(message.facts(), data, version)
    return caught.value


def test_an_array_of_null_is_none_for_the_slow_reader_too() -> None:
    """In a plain and in a compact array: no element, but not an empty array either."""
    for version in (1, 12):
        data = MetadataRequest(topics=None).encode(version)
        message, _ = read_message(MetadataRequest.facts(), data, version)
        assert message == MetadataRequest.decode(data, version)[0]
        assert message.topics is None


def test_arrays_of_small_elements_share_one_bound() -> None:
    """Each of them would be within it."""
    count = 20_100
    topics = [FetchTopic(topic="", partitions=[]) for _ in range(count)]
    forgotten = [ForgottenTopic(topic="", partitions=[]) for _ in range(count)]
    # The second array is at the end, its count before it.
    first = FetchRequest(topics=topics, forgotten_topics_data=[]).encode(7)
    second = FetchRequest(topics=[], forgotten_topics_data=forgotten).encode(7)
    both = first[:-4] + second[-4 - 6 * count :]
    error = failure(FetchRequest, both, 7)
    assert "too many small elements" in error.problem
    assert error.path == "forgottenTopicsData"
    assert read_message(FetchRequest.facts(), second, 7)[1] == len(second)


def test_an_absurd_string_length_is_refused() -> None:
    """Kafka limits a string to 32767 bytes, also where the varint could say more."""
    data = bytes.fromhex("818002") + b"a" * 32768
    error = failure(VoteRequest, data, 0)
    assert error.path == "clusterId"
    assert error.expected == "at most 32767 bytes"
    assert error.found == "32768"


def test_null_is_refused_where_the_version_has_none() -> None:
    """Such a null would surface far away, as None in a list that cannot be None."""
    error = failure(VoteRequest, bytes.fromhex("0000"), 0)
    assert (error.path, error.offset, error.found) == ("topics", 1, "-1")
    error = failure(MetadataRequest, bytes.fromhex("ffffffff"), 0)
    assert (error.path, error.offset, error.found) == ("topics", 0, "-1")
    assert MetadataRequest.decode(bytes.fromhex("ffffffff"), 1)[0].topics is None


def test_text_that_is_not_utf_8_is_located_to_the_byte() -> None:
    """A wrong length before the string is the usual cause: the offset shows where it drifted."""
    error = failure(VoteRequest, bytes.fromhex("046162ff") + b"\x01\x00", 0)
    assert (error.path, error.offset) == ("clusterId", 3)
    assert (error.expected, error.found) == ("UTF-8", "0xff")


def test_a_tagged_field_must_be_as_long_as_it_says() -> None:
    """Tag and size are redundant for a known field; when they disagree one of them is wrong."""
    request = FetchRequest(replica_state=ReplicaState(replica_id=1, replica_epoch=2))
    data = bytearray(request.encode(15))
    at = data.index(bytes.fromhex("010d00000001"))
    data[at + 1] = 12
    error = failure(FetchRequest, bytes(data), 15)
    assert error.path == "replicaState"
    assert error.problem == "a tagged field is not as long as it says"
    assert (error.expected, error.found) == ("12 bytes", "13")


def test_a_tagged_field_must_not_reach_beyond_the_message() -> None:
    """For an unknown tag only the size can be checked."""
    error = failure(VoteRequest, bytes.fromhex("000101090501"), 0)
    assert error.path == "tag 9"
    assert "need 5 bytes for a tagged field" in error.problem


def test_more_tagged_fields_than_bytes_are_refused() -> None:
    """Tags without a value still cost a dictionary entry each."""
    error = failure(VoteRequest, bytes.fromhex("0001ffffff7f") + bytes(40), 0)
    assert "too many tagged fields" in error.problem


def test_an_unknown_version_is_a_usage_error() -> None:
    """Which versions exist is not a property of the bytes."""
    new = VoteRequest.VERSIONS.high + 1
    with pytest.raises(UsageError, match=f"has versions {VoteRequest.VERSIONS}, not {new}"):
        annotate(VoteRequest.facts(), b"", new)


def leaves(tree: Annotation) -> list[Annotation]:
    """The innermost annotations, in order."""
    if not tree.children:
        return [tree]
    return [leaf for child in tree.children for leaf in leaves(child)]


def check_tiling(tree: Annotation) -> None:
    """Children are end to end; after the length of a string or bytes comes its content."""
    position = tree.start
    for child in tree.children:
        assert child.start == position, child
        check_tiling(child)
        position = child.end
    if tree.children and tree.type not in ("string", "bytes", "records"):
        assert position == tree.end, tree


@pytest.mark.parametrize("name", ["FetchResponse", "VoteRequest", "ApiVersionsResponse"])
def test_annotations_cover_every_byte_once(name: str) -> None:
    """An annotated hexdump with a hole or an overlap would be worse than none."""
    for vector in vectors()[name]:
        tree, end = annotate(find(name).facts(), vector.data, vector.version)
        assert (tree.start, tree.end, end) == (0, len(vector.data), len(vector.data))
        check_tiling(tree)


def test_annotations_tell_path_type_range_and_value() -> None:
    """They are what the byte view prints."""
    tree, _ = annotate(VoteRequest.facts(), VOTE.encode(0), 0)
    by_path = {leaf.path: leaf for leaf in leaves(tree)}
    epoch = by_path["topics[0].partitions[0].replicaEpoch"]
    assert (epoch.name, epoch.type, epoch.start, epoch.end, epoch.value) == (
        "replicaEpoch", "int32", 31, 35, 7,
    )  # fmt: skip
    assert tree.children[0].value == "kraft"


def test_annotating_bad_bytes_keeps_what_was_read_so_far() -> None:
    """A damaged frame is shown up to the damage."""
    with pytest.raises(WireError) as caught:
        annotate(VoteRequest.facts(), VOTE.encode(1)[:82], 1)
    partial: Annotation = caught.value.partial
    assert partial.children[0].value == "kraft"
    assert leaves(partial)[-1].path == "topics[0].partitions[0].lastOffset"


def test_annotations_start_where_the_caller_says() -> None:
    """Offsets count from the start of the buffer, not of the message."""
    data = b"header" + VOTE.encode(2)
    tree, end = annotate(VoteRequest.facts(), memoryview(data), 2, 6)
    assert (tree.start, tree.end) == (6, end) == (6, len(data))


@pytest.mark.parametrize("name", ["DescribeQuorumResponse", "FetchRequest", "CreateTopicsRequest"])
def test_the_slow_reader_reads_what_the_fast_one_reads(name: str) -> None:
    """Errors come from the slow one, so the two have to agree."""
    for vector in vectors()[name]:
        cls = find(name)
        assert read_message(cls.facts(), vector.data, vector.version) == cls.decode(
            vector.data, vector.version
        )


MANY = (
    (DeleteTopicsRequest(topic_names=["a", "", "ü" * 70, "b" * 200], timeout_ms=5), (3, 4)),
    (PARTITION, (1, 2)),
    (VOTE, (0, 2)),
    (UNKNOWN_TAGS, (0,)),
)


@pytest.mark.parametrize(("message", "versions"), MANY, ids=lambda value: type(value).__name__)
def test_elements_read_at_once_fail_as_those_read_one_by_one(
    message: Message, versions: tuple[int, ...]
) -> None:
    """Annotating reads every element; the error path must report the same for each."""
    for version in versions:
        data = message.encode(version)
        damaged = [data[:size] for size in range(len(data))]
        for at in range(len(data)):
            damaged += [data[:at] + bytes((byte,)) + data[at + 1 :] for byte in (0, 127, 128, 255)]
        for each in damaged:
            assert _outcome(read_message, message, each, version) == _outcome(
                annotate, message, each, version
            )


def _outcome(read: Any, message: Message, data: bytes, version: int) -> object:
    try:
        return read(message.facts(), data, version)[1]
    except WireError as error:
        return str(error)


def test_a_nullable_struct_is_there_or_not() -> None:
    """A byte before it decides: below 0 is null."""
    request = DescribeTopicPartitionsRequest(cursor=Cursor(topic_name="t", partition_index=3))
    decoded, _ = DescribeTopicPartitionsRequest.decode(request.encode(0), 0)
    assert decoded.cursor == Cursor(topic_name="t", partition_index=3)
    none, _ = DescribeTopicPartitionsRequest.decode(
        DescribeTopicPartitionsRequest(cursor=None).encode(0), 0
    )
    assert none.cursor is None


def test_small_elements_are_bounded_by_the_size_of_the_message() -> None:
    """An object costs fifty times the two bytes of the smallest struct on the wire."""
    count = 60_000
    empty_topic = bytes.fromhex("010100")
    data = b"\0" + uvarint(count + 1) + empty_topic * count + b"\0"
    error = failure(VoteRequest, data, 0)
    assert "too many small elements" in error.problem
    assert error.path == "topics"


def test_records_are_views_of_the_input() -> None:
    """A Fetch response of a megabyte is not copied in order to be read."""
    partition = PartitionProduceData(records=b"record batches")
    request = ProduceRequest(topic_data=[TopicProduceData(partition_data=[partition])])
    data = request.encode(9)
    decoded, _ = ProduceRequest.decode(data, 9)
    view = decoded.topic_data[0].partition_data[0].records
    assert isinstance(view, memoryview)
    assert view == b"record batches"
    assert view.obj is data


def test_a_version_without_fields_has_nothing_to_read() -> None:
    """ApiVersions v0 is empty; what follows it is left alone."""
    assert ApiVersionsRequest.decode(b"rest", 0)[1] == 0
