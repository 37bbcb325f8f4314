"""Printers: what they write, and each reason for which they give up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from kraftwire.limits import ELEMENT_FREE_COUNT, STRING_SIZE_MAX
from kraftwire.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
)
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.wire.functions.printing import build
from kraftwire.wire.json_plans import describe_json, printer
from kraftwire.wire.message import Message
from kraftwire.wire.varint import uvarint


def write(cls: type[Message], version: int, data: bytes) -> str | None:
    """What a printer makes of bytes, records left out; None if it gave up or stopped early."""
    plan = printer(cls.facts(), version)
    assert plan is not None
    written = plan.write(data, 0, ELEMENT_FREE_COUNT)
    return None if written is None or written[1] != len(data) else written[0].decode("ascii")


def text_of(message: Message, version: int) -> str:
    """The text of the message's JSON form."""
    return json.dumps(message.to_json(version), separators=(",", ":"))


def check(message: Message, version: int) -> bytes:
    """The message's bytes, which are printed as its JSON form."""
    data = message.encode(version)
    assert write(message.__class__, version, data) == text_of(message, version)
    return data


def lengthened(value: int) -> bytes:
    """A varint in one byte more than it needs."""
    *first, last = uvarint(value)
    return bytes((*first, last | 0x80, 0))


# A version with compact lengths, and one without.
STRINGS = [(VoteRequest, 2), (VoteRequest, 0)]


def test_texts_are_escaped_as_everywhere() -> None:
    """They come from peers."""
    for cluster_id in ('a"\\/\n\t\0', "ключ 𝄞", "", None, "x" * 5000):
        check(VoteRequest(cluster_id=cluster_id), 2)
    data = VoteRequest(cluster_id="\x7f").encode(2)
    assert "\\u007f" in str(write(VoteRequest, 2, data))


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_382, 16_383, STRING_SIZE_MAX])
def test_lengths_of_any_size_are_read(size: int) -> None:
    """They take one byte to three."""
    check(VoteRequest(cluster_id="x" * size), 2)
    check(VoteRequest(cluster_id="x" * size), 0)


@pytest.mark.parametrize("size", [0, 5, 127, 128, 20_000])
def test_a_length_in_more_bytes_than_it_needs_is_left_to_the_decoder(size: int) -> None:
    """Kafka writes none, so there is a finding to report."""
    data = VoteRequest(cluster_id="x" * size).encode(2)
    short = uvarint(size + 1)
    assert data.startswith(short)
    assert write(VoteRequest, 2, lengthened(size + 1) + data[len(short) :]) is None


@pytest.mark.parametrize("extra", [1, 2, 3])
def test_a_long_length_with_zeros_is_left_to_the_decoder(extra: int) -> None:
    """In three bytes and more it is read by other code."""
    data = VoteRequest(cluster_id="x" * 300).encode(2)
    low, high = uvarint(301)
    padded = bytes((low, high | 0x80)) + b"\x80" * (extra - 1) + b"\0"
    assert write(VoteRequest, 2, padded + data[2:]) is None


def test_a_string_beyond_kafkas_limit_is_left_to_the_decoder() -> None:
    """The decoder refuses it."""
    data = VoteRequest(cluster_id="").encode(2)
    long = uvarint(STRING_SIZE_MAX + 2) + b"x" * (STRING_SIZE_MAX + 1)
    assert write(VoteRequest, 2, long + data[1:]) is None


@pytest.mark.parametrize("raw", [b"\xff", b"\xc3", b"\xed\xa0\x80"])
def test_a_string_that_is_not_utf8_is_left_to_the_decoder(raw: bytes) -> None:
    """A byte that is never used, half a character, half a surrogate pair."""
    for cls, version in STRINGS:
        data = cls(cluster_id="x" * len(raw)).encode(version)
        assert write(cls, version, data.replace(b"x" * len(raw), raw, 1)) is None


def test_a_null_that_is_not_allowed_is_left_to_the_decoder() -> None:
    """In compact form and in the other one, for strings and arrays; and other negative lengths."""
    for version, null in ((9, b"\0"), (5, b"\xff\xff")):
        response = MetadataResponse(topics=[MetadataResponseTopic(name="name")]).encode(version)
        name = b"\x05name" if version == 9 else b"\0\x04name"
        assert write(MetadataResponse, version, response) is not None
        assert write(MetadataResponse, version, response.replace(name, null)) is None
    request = CreateTopicsRequest().encode(5)
    assert write(CreateTopicsRequest, 5, b"\0" + request[1:]) is None
    request = CreateTopicsRequest().encode(2)
    assert write(CreateTopicsRequest, 2, b"\xff" * 4 + request[4:]) is None


def test_null_has_one_form() -> None:
    """Kafka reads any negative length as null, and writes -1."""
    request = MetadataRequest(topics=None).encode(1)
    assert write(MetadataRequest, 1, request) == '{"topics":null}'
    assert write(MetadataRequest, 1, b"\xff\xff\xff\xfe") is None
    assert write(VoteRequest, 0, VoteRequest().encode(0)) is not None
    assert write(VoteRequest, 0, b"\xff\xfe" + VoteRequest().encode(0)[2:]) is None


def test_a_bool_that_is_neither_0_nor_1_is_left_to_the_decoder() -> None:
    """Kafka reads any other number as true."""
    data = check(CreateTopicsRequest(validate_only=True), 5)
    assert data.endswith(b"\1\0")
    assert write(CreateTopicsRequest, 5, data[:-2] + b"\2\0") is None
    check(CreateTopicsRequest(validate_only=False), 5)


def test_a_marker_of_a_struct_is_1_or_that_of_null() -> None:
    """Of a struct that may be null; anything else counts as one or the other."""
    cls = ConsumerGroupHeartbeatResponse
    null = check(cls(assignment=None), 0)
    there = check(cls(assignment=Assignment()), 0)
    assert null.endswith(b"\xff\0")
    for marker in (0, 2, 0x7F, 0x80, 0xFE):
        assert write(cls, 0, null[:-2] + bytes((marker, 0))) is None
        at = len(null) - 2
        assert write(cls, 0, there[:at] + bytes((marker,)) + there[at + 1 :]) is None


def _tagged(*tags: bytes) -> bytes:
    data = FetchRequest().encode(15)
    assert data.endswith(b"\0")
    return data[:-1] + bytes((len(tags),)) + b"".join(tags)


_CLUSTER = b"\0\x02\x02c"
_REPLICA = b"\1\x0d" + bytes(12) + b"\0"


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param((_REPLICA, _CLUSTER), id="not in order"),
        pytest.param((_CLUSTER, _CLUSTER), id="the same twice"),
        pytest.param((_CLUSTER, b"\x09\0"), id="unknown"),
        pytest.param((b"\xff\x01\0",), id="unknown, in two bytes"),
        pytest.param((b"\0\x01\0",), id="at its default"),
        pytest.param((b"\1\x0d" + b"\xff" * 12 + b"\0",), id="a struct at its default"),
        pytest.param((b"\0\x03\x02c",), id="longer than its value"),
        pytest.param((b"\0\x01\x02c",), id="shorter than its value"),
        pytest.param((b"\0\x82\0\x02c",), id="with a long size"),
        pytest.param((b"\x80\0\x02\x02c",), id="with a long tag"),
        pytest.param((b"\0",), id="without a size"),
    ],
)
def test_tagged_fields_that_kafka_would_not_write_are_left_to_the_decoder(
    tags: tuple[bytes, ...],
) -> None:
    """Each of them is a finding, or is refused."""
    assert write(FetchRequest, 15, _tagged(*tags)) is None


def test_tagged_fields_are_written_unless_they_are_at_their_defaults() -> None:
    """Alone and together, and in a struct without other fields."""
    assert write(FetchRequest, 15, _tagged(_CLUSTER, _REPLICA)) is not None
    for fields in (
        {"cluster_id": "c"},
        {"replica_state": ReplicaState(replica_id=3)},
        {"cluster_id": "x" * 200, "replica_state": ReplicaState(replica_id=3)},
    ):
        check(FetchRequest(**fields), 15)
    only = VoteRequest().encode(2)
    assert write(VoteRequest, 2, only[:-1] + b"\1\x63\0") is None
    assert write(VoteRequest, 2, only[:-1] + b"\x80\0") is None


def test_numbers_and_ids_are_written_as_they_are() -> None:
    """Negative ones, arrays of them, and ids that repeat."""
    partitions = [
        MetadataResponsePartition(
            partition_index=at - 1, replica_nodes=[-1, at, 2**31 - 1], isr_nodes=[at] * at
        )
        for at in range(40)
    ]
    topics = [
        MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions)
        for name, topic_id in ((None, bytes(range(16))), ("t", b"\xff" * 16), ("t", b"\xff" * 16))
    ]
    check(MetadataResponse(topics=topics[1:]), 9)
    check(MetadataResponse(topics=topics), 12)


def test_an_array_that_cannot_be_there_is_not_begun() -> None:
    """Its count is compared with the bytes that are left before the first element is read."""
    data = b"\xff\xff\xff\xff\x07" + bytes(30)
    assert write(MetadataRequest, 12, data) is None
    assert write(MetadataRequest, 1, b"\x7f\xff\xff\xff" + bytes(30)) is None
    response = MetadataResponse(
        topics=[MetadataResponseTopic(name="t", partitions=[MetadataResponsePartition()])]
    ).encode(5)
    assert response[-26:-22] == b"\0\0\0\1"
    huge = response[:-26] + b"\x7f\xff\xff\xff" + response[-22:]
    assert write(MetadataResponse, 5, huge) is None


def test_what_is_beyond_the_budget_is_left_to_the_decoder() -> None:
    """A struct takes one for itself and one for each value, and each element of an array one."""
    plan = printer(MetadataRequest.facts(), 12)
    assert plan is not None
    shapes = describe_json(MetadataRequest.facts(), 12)
    assert shapes is not None
    (_, _, topic_weight, *_), (_, _, weight, *_) = shapes
    data = MetadataRequest(topics=[MetadataRequestTopic(name="t")] * 7).encode(12)
    enough = weight + 7 * (1 + topic_weight)
    assert plan.write(data, 0, enough) is not None
    assert plan.write(data, 0, enough - 1) is None
    assert plan.write(data, 0, 0) is None


def test_records_become_gaps_with_their_topic() -> None:
    """The id or the name around them; of null and of nothing there are no batches."""
    partitions = [PartitionData(records=each) for each in (b"one", None, b"", b"two" * 100)]
    for version, told in ((12, ("t", None)), (13, (None, b"i" * 16))):
        topic = FetchableTopicResponse(topic="t", topic_id=b"i" * 16, partitions=partitions)
        if version == 13:
            topic.topic = ""
        else:
            topic.topic_id = bytes(16)
        data = FetchResponse(responses=[topic]).encode(version)
        plan = printer(FetchResponse.facts(), version)
        assert plan is not None
        written = plan.write(b"ab" + data, 2, ELEMENT_FREE_COUNT)
        assert written is not None
        text, end, gaps = written
        assert end == len(data) + 2
        assert gaps is not None
        assert [((b"ab" + data)[start:stop], *topic) for _, start, stop, *topic in gaps] == [
            (b"one", *told),
            (b"two" * 100, *told),
        ]
        for at, *_ in gaps:
            assert text[:at].endswith(b'"records":')
        assert text.count(b'"records":null') == text.count(b'"records":[]') == 1


def test_bytes_after_a_message_are_left_alone() -> None:
    """A printer returns where the message ends."""
    plan = printer(VoteRequest.facts(), 2)
    assert plan is not None
    data = VoteRequest().encode(2)
    written = plan.write(data + b"more", 0, 100)
    assert written is not None
    assert written[1:] == (len(data), None)
    assert plan.write(data, len(data), 100) is None
    assert plan.write(data, len(data) + 1, 100) is None


def test_every_beginning_of_a_message_is_refused() -> None:
    """A slice may end early without an error, so the end is checked last."""
    partition = FetchPartition(partition=1, fetch_offset=7)
    topics = [FetchTopic(topic="topic", partitions=[partition])]
    for version in (4, 12):
        data = check(FetchRequest(topics=topics, rack_id="rack" * (version > 10)), version)
        plan = printer(FetchRequest.facts(), version)
        assert plan is not None
        assert not any(plan.write(data[:end], 0, 10_000) for end in range(len(data)))


def test_versions_of_equal_layout_share_a_printer(monkeypatch: pytest.MonkeyPatch) -> None:
    """And each is built once, when it is first used."""
    monkeypatch.setattr(build, "_builders", {})
    facts = CreateTopicsRequest.facts()
    first = printer(facts, 2)
    assert printer(facts, 2) is first is printer(facts, 3)
    assert printer(facts, 5) is not first


def test_a_traceback_shows_the_source_of_a_printer() -> None:
    """As of decoders and encoders that are built at run time."""
    plan = printer(VoteRequest.facts(), 2)
    assert plan is not None
    wrong: Any = "text"
    with pytest.raises(TypeError) as caught:
        plan.write(wrong, 0, 100)
    told = "".join(traceback.format_exception(caught.value))
    assert "kraftwire.messages.vote_request.VoteRequest print_vote_request_2" in told
    assert "if n > 127:" in told


def test_threads_may_print_a_new_version_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread sees a printer that calls one that does not exist yet."""
    monkeypatch.setattr(build, "_builders", {})
    message = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=3)])
    start = Barrier(8)

    def use(number: int) -> None:
        start.wait()
        check(message, 4 + number % 4)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))


def test_printers_are_loaded_by_those_who_print() -> None:
    """A program that decodes and encodes does not pay for them."""
    code = (
        "import sys; from kraftwire import messages; "
        "cls = messages.find('CreateTopicsRequest'); cls.decode(cls().encode(5), 5); "
        "print(*[name for name in sys.modules if name.startswith('kraftwire.wire.functions')])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KRAFTWIRE_PURE": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "kraftwire.wire.functions.build" in loaded
    assert not [name for name in loaded if "printing" in name]
