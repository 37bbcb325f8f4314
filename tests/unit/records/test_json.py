"""Batches as JSON: the keys that other programs rely on, and how damage is shown."""

from __future__ import annotations

import json
from base64 import b64encode

from kraftwire.messages.topic_record import TopicRecord
from kraftwire.records import BatchHeader, Record, build_batch, read_batches
from kraftwire.records.control import ControlType, control_key
from kraftwire.records.json_form import batch_to_json
from kraftwire.records.metadata import encode_metadata

KEYS = [
    "position", "baseOffset", "lastOffset", "count", "baseSequence", "lastSequence", "producerId",
    "producerEpoch", "partitionLeaderEpoch", "isTransactional", "isControl", "deleteHorizonMs",
    "timestampType", "maxTimestamp", "size", "magic", "compression", "crc", "isValid", "records",
]
TOPIC = encode_metadata(TopicRecord(name="t", topic_id=bytes(16)), 0)


def test_a_batch_has_the_documented_keys() -> None:
    """Programs read these lines; the order is for people."""
    row = Record(3, 1000, b"\x00k", None, (("h", b"\xff"), ("n", None)))
    header = BatchHeader(producer_id=9, partition_leader_epoch=2)
    (batch,) = read_batches(build_batch([row], header))
    found, problems = batch_to_json(batch)
    assert list(found) == KEYS
    assert problems == []
    assert (found["baseOffset"], found["producerId"], found["partitionLeaderEpoch"]) == (3, 9, 2)
    assert (found["timestampType"], found["compression"]) == ("CreateTime", "none")
    assert found["deleteHorizonMs"] is None
    assert found["isValid"] is True
    assert found["records"] == [
        {
            "offset": 3,
            "timestamp": 1000,
            "key": b64encode(b"\x00k").decode(),
            "value": None,
            "headers": [
                {"key": "h", "value": b64encode(b"\xff").decode()},
                {"key": "n", "value": None},
            ],
            "decoded": None,
        }
    ]
    json.dumps(found)


def test_less_detail_can_be_asked_for() -> None:
    """Headers alone, or records without their payloads."""
    rows = [Record(0, 5, None, TOPIC, (("h", None),)), Record(1, 6, b"k", b"")]
    (batch,) = read_batches(build_batch(rows, BatchHeader(compression="gzip")))
    none, _ = batch_to_json(batch, records="none")
    assert none["records"] is None
    assert none["count"] == 2
    summary, problems = batch_to_json(batch, family="metadata", records="summary")
    assert summary["records"] == [
        {
            "offset": 0,
            "timestamp": 5,
            "keySize": -1,
            "valueSize": len(TOPIC),
            "headerKeys": ["h"],
            "type": "TopicRecord",
        },
        {
            "offset": 1,
            "timestamp": 6,
            "keySize": 1,
            "valueSize": 0,
            "headerKeys": [],
            "type": None,
        },
    ]
    assert [str(problem.problem) for problem in problems] == [
        "record at offset 1: the buffer ends inside a varint (byte 0 of its bytes)"
    ]


def test_headers_alone_need_no_decompression() -> None:
    """A batch of an unknown codec, or a damaged one, is still listed."""
    raw = bytearray(build_batch([Record(0, 5, None, b"v")], BatchHeader(compression="zstd")))
    raw[22] = 7
    (batch,) = read_batches(raw)
    found, problems = batch_to_json(batch, records="none")
    assert found["compression"] == "unknown(7)"
    assert [problem.path for problem in problems] == ["crc"]


def test_records_that_cannot_be_read_are_null_with_a_reason() -> None:
    """The line is still printed, and the exit code can tell."""
    values = [TOPIC, b"\x01\x7f\x00", None]
    rows = [Record(offset, 5, None, value) for offset, value in enumerate(values)]
    (batch,) = read_batches(b"." * 9 + build_batch(rows), 9)
    found, problems = batch_to_json(batch, family="metadata")
    assert [row["decoded"] is None for row in found["records"]] == [False, True, True]
    assert [problem.offset for problem in problems] == [9, 9]
    assert "record at offset 1: unknown type" in problems[0].problem


def test_damage_ends_the_list_of_records() -> None:
    """What precedes it is shown; the CRC is the first reason."""
    rows = [Record(offset, 0, None, b"value") for offset in range(3)]
    raw = bytearray(build_batch(rows))
    raw[-12] = 0x7E
    (batch,) = read_batches(raw)
    found, problems = batch_to_json(batch)
    assert [row["offset"] for row in found["records"]] == [0, 1]
    assert found["isValid"] is False
    assert [problem.path for problem in problems] == ["crc", "records[2].length"]


def test_control_batches_are_decoded_in_any_topic() -> None:
    """Transactions end in any topic."""
    row = Record(0, 5, control_key(ControlType.COMMIT), b"\x00\x00\x00\x00\x00\x03")
    (batch,) = read_batches(build_batch([row], BatchHeader(is_control=True)))
    for family in (None, "group", "metadata"):
        found, problems = batch_to_json(batch, family=family)
        assert found["records"][0]["decoded"]["type"] == "EndTxnMarker"
        assert problems == []
