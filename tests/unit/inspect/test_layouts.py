"""The construct layouts agree, byte for byte, with the readers that do the work."""

from __future__ import annotations

import random
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from kraftwire.decode.body.layouts import LAYOUTS, parse, spans
from kraftwire.decode.files.scan import read_header
from kraftwire.errors import WireError
from kraftwire.messages.control_record_type_schema import ControlRecordTypeSchema
from kraftwire.messages.end_txn_marker import EndTxnMarker
from kraftwire.messages.producer_snapshot import ProducerSnapshot
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.records.batch import RecordBatch
from kraftwire.records.header import HEADER_SIZE

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "logs"
SEGMENT = (GOLDEN / "controller/__cluster_metadata-0/00000000000000000000.log").read_bytes()
HEADERS = (GOLDEN / "broker/headers-0/00000000000000000000.log").read_bytes()


def test_the_batch_layout_equals_the_batch_reader() -> None:
    """Two descriptions of 61 bytes, written independently, on real batches."""
    position = 0
    while position < len(SEGMENT):
        fields = parse("record batch", SEGMENT, position)
        batch = RecordBatch(SEGMENT, position)
        header = read_header(memoryview(SEGMENT)[position : position + HEADER_SIZE])
        assert header is not None
        assert fields["baseOffset"] == batch.base_offset == header.base_offset
        assert fields["batchLength"] == batch.size - 12 == header.size - 12
        assert fields["partitionLeaderEpoch"] == batch.partition_leader_epoch
        assert fields["crc"] == batch.crc == header.crc
        assert fields["attributes"] == batch.attributes == header.attributes
        assert fields["baseOffset"] + fields["lastOffsetDelta"] == header.last_offset
        assert fields["baseTimestamp"] == batch.base_timestamp
        assert fields["maxTimestamp"] == batch.max_timestamp == header.max_timestamp
        assert fields["producerId"] == batch.producer_id
        assert fields["producerEpoch"] == batch.producer_epoch
        assert fields["baseSequence"] == batch.base_sequence
        assert fields["recordCount"] == batch.count
        position += batch.size


@pytest.mark.parametrize("attributes", range(0x80))
def test_attribute_bits_equal_the_batch_reader(attributes: int) -> None:
    """Each bit has one meaning; the reader handles unknown codecs."""
    bits = LAYOUTS["batch attributes"].parse(struct.pack(">h", attributes))
    batch = RecordBatch(SEGMENT)
    batch.attributes = attributes
    assert bits.compression == batch.codec
    assert bits.isLogAppendTime == (batch.timestamp_type == "LogAppendTime")
    assert bits.isTransactional == batch.is_transactional
    assert bits.isControl == batch.is_control
    assert bits.hasDeleteHorizon == (batch.delete_horizon_ms is not None)


def test_the_record_layout_equals_the_record_reader() -> None:
    """Keys, values and headers of real records, with nulls and empty ones among them."""
    batch = RecordBatch(HEADERS)
    position = HEADER_SIZE
    for record in batch.records():
        fields = parse("record", HEADERS, position)
        ranges = spans("record", HEADERS, position)
        assert batch.base_offset + fields["offsetDelta"] == record.offset
        assert batch.base_timestamp + fields["timestampDelta"] == record.timestamp
        assert (fields["key"], fields["value"]) == (record.key, record.value)
        headers = tuple((header["key"], header["value"]) for header in fields["headers"])
        assert headers == record.headers
        assert ranges[-1].end - ranges[0].end == fields["length"]
        position = ranges[-1].end
    assert position == batch.size


def test_legacy_layouts_equal_the_header_reader() -> None:
    """No present Kafka writes these, so the bytes are made here."""
    for magic, timestamp in ((0, b""), (1, struct.pack(">q", 1234))):
        body = struct.pack(">bb", magic, 0) + timestamp + struct.pack(">i", -1)
        body += struct.pack(">i3s", 3, b"abc")
        message = struct.pack(">qiI", 7, len(body) + 4, 99) + body
        fields = parse(f"message v{magic}", message)
        header = read_header(memoryview(message))
        assert header is not None
        assert (fields["baseOffset"], fields["crc"]) == (header.base_offset, header.crc) == (7, 99)
        assert (fields["key"], fields["value"]) == (None, b"abc")
        assert fields.get("timestamp", -1) == header.max_timestamp
        assert spans(f"message v{magic}", message)[-1].end == header.size


@pytest.mark.parametrize("version", [1, 2])
def test_the_request_header_layout_equals_the_generated_class(version: int) -> None:
    """Client ids of every kind; unknown tagged fields only where the version is flexible."""
    for client_id in (None, "", "client", "ż\x00"):
        tagged = {3: b"", 200: b"xy"} if version == 2 else None
        header = RequestHeader(
            request_api_key=18,
            request_api_version=4,
            correlation_id=-7,
            client_id=client_id,
        )
        header.unknown_tagged_fields = tagged
        fields = parse(f"request header v{version}", header.encode(version))
        assert (fields["apiKey"], fields["apiVersion"], fields["correlationId"]) == (18, 4, -7)
        assert fields["clientId"] == client_id
        if tagged:
            found = {field["tag"]: field["data"] for field in fields["taggedFields"]["fields"]}
            assert found == tagged


@pytest.mark.parametrize("version", [0, 1])
def test_the_response_header_layout_equals_the_generated_class(version: int) -> None:
    """Version 1 is version 0 with tagged fields after it."""
    encoded = ResponseHeader(correlation_id=41).encode(version)
    fields = parse(f"response header v{version}", encoded)
    assert fields["correlationId"] == 41
    assert spans(f"response header v{version}", encoded)[-1].end == len(encoded)


def test_control_record_layouts_equal_the_generated_classes() -> None:
    """The key gives the type; the oldest control record is the end of a transaction."""
    key = struct.pack(">hh", 0, 2)
    schema, _ = ControlRecordTypeSchema.decode(key, 0, 2)
    assert parse("control record key", key) == {"version": 0, "type": schema.type}
    marker = struct.pack(">hi", 0, 5)
    decoded, _ = EndTxnMarker.decode(marker, 0, 2)
    expected = {"version": 0, "coordinatorEpoch": decoded.coordinator_epoch}
    assert parse("end transaction marker", marker) == expected


def test_producer_snapshot_layouts_equal_the_generated_class() -> None:
    """Header and entries, with their converter's names."""
    content = (GOLDEN / "broker/txn-out-0/00000000000000000653.snapshot").read_bytes()
    snapshot, end = ProducerSnapshot.decode(content, 1, 2)
    head = parse("producer snapshot", content)
    assert (head["version"], head["crc"]) == (1, snapshot.crc)
    position = spans("producer snapshot", content)[-1].end
    entries = []
    for _ in range(head["count"]):
        entries.append(parse("producer snapshot entry", content, position))
        position = spans("producer snapshot entry", content, position)[-1].end
    assert entries == snapshot.to_json(1)["producerEntries"]
    assert position == end == len(content)


def test_spans_cover_what_the_layout_reads_without_a_gap() -> None:
    """The byte view prints every byte once, under the name of its field."""
    ranges = spans("record", HEADERS, HEADER_SIZE)
    assert ranges[0].start == HEADER_SIZE
    for before, after in pairwise(ranges):
        assert before.end == after.start
    assert [span.path for span in ranges[:3]] == ["length", "attributes", "timestampDelta"]


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_every_layout_names_itself_when_bytes_run_out(name: str) -> None:
    """Cut at every length, a layout raises WireError and nothing else."""
    for size in range(8):
        data = random.Random(size).randbytes(size)
        try:
            parse(name, data)
        except WireError as error:
            found = error
        else:
            continue
        assert found.message == name
