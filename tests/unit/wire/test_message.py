"""The front of every generated class: buffers, offsets, versions, tagged fields, equality."""

from __future__ import annotations

import gc
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import pytest

from kraftwire.errors import UsageError, WireError
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftwire.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.messages.vote_request import TopicData, VoteRequest
from kraftwire.wire.reader import _Reader
from kraftwire.wire.varint import uvarint

VOTE = VoteRequest(cluster_id="kraft", voter_id=3, topics=[TopicData(topic_name="t")])


def test_a_message_is_read_from_any_bytes() -> None:
    """Buffers of sockets are bytearrays, records and mapped files are views."""
    data = VOTE.encode(1)
    for buffer in (data, bytearray(data), memoryview(data), memoryview(bytearray(data))):
        assert VoteRequest.decode(buffer, 1) == (VOTE, len(data))
    every_second = bytes(byte for value in data for byte in (value, 0))
    assert VoteRequest.decode(memoryview(every_second)[::2], 1) == (VOTE, len(data))


def test_a_message_is_read_from_the_middle_of_a_buffer() -> None:
    """The body of a frame follows its header, and more bytes may follow."""
    data = b"header" + VOTE.encode(1) + b"rest"
    assert VoteRequest.decode(data, 1, 6) == (VOTE, len(data) - 4)
    assert VoteRequest.decode(memoryview(data), 1, offset=6) == (VOTE, len(data) - 4)


@pytest.mark.parametrize("version", [-1, VoteRequest.VERSIONS.high + 1, 32767])
def test_an_unknown_version_is_a_usage_error(version: int) -> None:
    """The caller chose it; the bytes are not to blame."""
    text = f"VoteRequest has versions {VoteRequest.VERSIONS}, not {version}"
    with pytest.raises(UsageError, match=text):
        VoteRequest.decode(b"", version)
    with pytest.raises(UsageError, match=text):
        VOTE.encode(version)
    with pytest.raises(UsageError, match=text):
        VOTE.to_json(version)
    with pytest.raises(UsageError, match=text):
        VoteRequest.from_json({}, version)


@pytest.mark.parametrize("version", [True, 2.0, "2", None, []])
def test_a_version_is_an_int(version: Any) -> None:
    """True and 2.0 equal a version and would find its decoder."""
    calls: list[Callable[[], object]] = [
        lambda: VoteRequest.decode(b"", version),
        lambda: VOTE.encode(version),
        lambda: VOTE.to_json(version),
        lambda: VoteRequest.from_json({}, version),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="expected an int, found"):
            call()


@pytest.mark.parametrize("offset", [True, 0.0, 1.0, None, []])
def test_an_offset_is_an_int(offset: Any) -> None:
    """A false value was taken for 0 and failed deep inside."""
    with pytest.raises(UsageError, match="an offset is an int"):
        VoteRequest.decode(VOTE.encode(1), 1, offset)


@pytest.mark.parametrize("offset", [-1, -11, 12, 100])
def test_an_offset_outside_the_buffer_is_a_usage_error(offset: int) -> None:
    """Counted from the end, as in Python, it would read a message that does not exist."""
    data = VOTE.encode(1)[:11]
    with pytest.raises(UsageError, match=f"offset {offset} is outside the buffer of 11 bytes"):
        VoteRequest.decode(data, 1, offset)


def test_fields_that_a_version_lacks_hold_their_defaults() -> None:
    """Code that reads them need not check the version."""
    decoded, _ = VoteRequest.decode(VoteRequest(cluster_id="kraft").encode(0), 0)
    assert decoded.voter_id == -1
    assert decoded.unknown_tagged_fields is None


def test_every_message_has_its_own_lists() -> None:
    """A list shared between two messages would let one change the other."""
    first, second = VoteRequest(), VoteRequest()
    first.topics.append(TopicData())
    assert second.topics == []
    assert VoteRequest().topics == []


def test_messages_are_equal_by_value() -> None:
    """Tests and caches compare them."""
    again, _ = VoteRequest.decode(VOTE.encode(1), 1)
    assert again == VOTE
    again.topics[0].topic_name = "other"
    assert again != VOTE
    assert TopicData() != VOTE
    with pytest.raises(TypeError):
        hash(VOTE)


@pytest.mark.parametrize("copied", [copy, deepcopy])
def test_a_copy_has_everything(copied: Callable[[VoteRequest], VoteRequest]) -> None:
    """Unknown tagged fields too; the lists of a shallow one are those of the original."""
    message = VoteRequest(cluster_id="kraft", topics=[TopicData(topic_name="t")])
    message.unknown_tagged_fields = {9: b"new"}
    found = copied(message)
    assert found == message
    assert (found.topics is message.topics) == (copied is copy)
    found.voter_id = 7
    assert message.voter_id == -1


def test_a_message_prints_what_it_holds() -> None:
    """Unknown tagged fields are shown only where there are some."""
    assert repr(TopicData(topic_name="t")) == "TopicData(topic_name='t', partitions=[])"
    topic = TopicData()
    topic.unknown_tagged_fields = {9: b"x"}
    assert "unknown_tagged_fields={9: b'x'}" in repr(topic)


def test_misspelled_fields_are_refused() -> None:
    """A request with the wrong attribute set is hard to notice."""
    with pytest.raises(TypeError, match="unexpected keyword"):
        VoteRequest(voter=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        VOTE.voter = 3  # type: ignore[attr-defined]


def test_unknown_tagged_fields_survive_at_every_level() -> None:
    """A newer peer's fields must not be lost when a message is stored or forwarded."""
    request = FetchRequest(
        topics=[FetchTopic(partitions=[FetchPartition(replica_directory_id=bytes(range(16)))])],
        replica_state=ReplicaState(replica_id=1, replica_epoch=2),
    )
    request.unknown_tagged_fields = {9: b"top", 7: b""}
    request.topics[0].unknown_tagged_fields = {100_000: b"topic"}
    request.topics[0].partitions[0].unknown_tagged_fields = {4: b"x" * 300}
    assert request.replica_state is not None
    request.replica_state.unknown_tagged_fields = {0: b"inside a tagged field"}
    data = request.encode(17)
    again, end = FetchRequest.decode(data, 17)
    assert (again, end) == (request, len(data))
    assert again.encode(17) == data


def test_tagged_fields_are_written_in_ascending_order() -> None:
    """Kafka refuses any other order, and known and unknown ones mix."""
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(
                partitions=[
                    PartitionData(
                        diverging_epoch=EpochEndOffset(epoch=1, end_offset=2), records=None
                    )
                ]
            )
        ]
    )
    partition = response.responses[0].partitions[0]
    partition.unknown_tagged_fields = {8: b"late", 3: b"early"}
    data = partition_tags(response.encode(12))
    assert [tag for tag, _ in data] == [0, 3, 8]
    assert data[1:] == [(3, b"early"), (8, b"late")]


def partition_tags(data: bytes) -> list[tuple[int, bytes]]:
    """Tags and values of the first section with three tagged fields."""
    at = data.index(b"\x03\x00\x0d") + 1
    tags = []
    for _ in range(3):
        tag, size = data[at], data[at + 1]
        tags.append((tag, data[at + 2 : at + 2 + size]))
        at += 2 + size
    return tags


def test_a_tagged_struct_may_be_none() -> None:
    """None stands for all defaults and saves an object for every partition of a Fetch."""
    with_none, with_defaults = PartitionData(), PartitionData(diverging_epoch=EpochEndOffset())
    assert with_none.diverging_epoch is None
    topics = [[FetchableTopicResponse(partitions=[each])] for each in (with_none, with_defaults)]
    first, second = (FetchResponse(responses=each).encode(12) for each in topics)
    assert first == second
    decoded, _ = FetchResponse.decode(first, 12)
    assert decoded.responses[0].partitions[0].diverging_epoch is None


def test_decoding_leaves_the_collector_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to the whole process: if one thread switches it off, it stops for all."""
    response = ApiVersionsResponse()
    response.unknown_tagged_fields = {9: bytes(10_000)}
    data = response.encode(3)
    ApiVersionsResponse.decode(data, 3)
    seen: list[bool] = []

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def look(*arguments: Any, **keywords: Any) -> Any:
            seen.append(gc.isenabled())
            return call(*arguments, **keywords)

        return look

    monkeypatch.setitem(
        ApiVersionsResponse._DECODE, 3, watched(ApiVersionsResponse._DECODE[3])
    )
    monkeypatch.setattr(_Reader, "struct", watched(_Reader.struct))
    ApiVersionsResponse.decode(data, 3)
    with pytest.raises(WireError, match="ApiVersionsResponse v3"):
        ApiVersionsResponse.decode(data[:-1], 3)
    assert len(seen) >= 3
    assert all(seen)


def test_a_decoded_message_is_of_its_own_class() -> None:
    """Pickling, dispatch and debuggers rely on `type`."""
    partition = PartitionData(partition_index=1)
    message = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition] * 6)])
    decoded, _ = FetchResponse.decode(message.encode(12), 12)
    assert type(decoded) is FetchResponse
    assert type(decoded.responses[0]) is FetchableTopicResponse
    assert {type(each) for each in decoded.responses[0].partitions} == {PartitionData}
    assert FetchResponse.__subclasses__() == []


def test_our_own_mistake_is_not_reported_as_bad_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """People would blame the peer, and the slow reader would hide the mistake."""

    def broken(*_: object) -> tuple[VoteRequest, int]:
        raise AttributeError("no such attribute")

    monkeypatch.setitem(VoteRequest._DECODE, 0, broken)
    with pytest.raises(AttributeError, match="no such attribute"):
        VoteRequest.decode(b"", 0)


def test_lengths_may_take_more_bytes_than_they_need() -> None:
    """Kafka reads them; a frame that it accepts must not be refused here."""
    name = b"\x86\x80\x00" + b"kraft"
    decoded, end = VoteRequest.decode(name + b"\x81\x00" + b"\x80\x80\x00", 0)
    assert (decoded.cluster_id, decoded.topics, end) == ("kraft", [], len(name) + 5)
    assert uvarint(len("kraft") + 1) == b"\x06"


def test_a_null_that_takes_more_bytes_than_it_needs_is_still_null() -> None:
    """Read as a length of -1 it would move the reader backwards."""
    decoded, _ = VoteRequest.decode(bytes.fromhex("800001") + b"\0", 0)
    assert decoded.cluster_id is None
    with pytest.raises(Exception, match="null where the version allows none"):
        VoteRequest.decode(bytes.fromhex("00800000"), 0)
