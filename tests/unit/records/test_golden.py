"""Batches that Kafka's own client wrote, read and written again."""

from __future__ import annotations

import functools
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from kraftwire.records import Batch, BatchHeader, Record, build_batch, read_batches

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "records" / "batches.jsonl"

# Kafka prints longer keys and values as size and checksum.
PRINTED_BYTES_MAX = 9000


@functools.cache
def cases() -> dict[str, dict[str, Any]]:
    """The golden cases by name."""
    with GOLDEN.open(encoding="utf-8") as lines:
        return {case["name"]: case for case in map(json.loads, lines)}


def payload(data: bytes | None) -> str | None:
    """A key or value in the form of the golden file."""
    if data is not None and len(data) > PRINTED_BYTES_MAX:
        return f"{len(data)} bytes, CRC-32 {zlib.crc32(data)}"
    return None if data is None else data.hex()


def as_kafka_prints(batch: Batch) -> dict[str, Any]:
    """A batch in the form of the golden file."""
    return {
        "lastOffset": batch.last_offset,
        "baseOffset": batch.base_offset,
        "count": batch.count if batch.magic == 2 else None,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": batch.delete_horizon_ms,
        "timestampType": batch.timestamp_type,
        "maxTimestamp": batch.max_timestamp,
        "size": batch.size,
        "magic": batch.magic,
        "compression": batch.compression,
        "crc": batch.crc,
        "records": [
            {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "sequence": record.sequence,
                "key": payload(record.key),
                "value": payload(record.value),
                "headers": [
                    [key, None if value is None else value.hex()] for key, value in record.headers
                ],
            }
            for record in batch.records()
        ],
    }


def header_of(batch: Batch) -> BatchHeader:
    """The header that rebuilds a batch."""
    is_stamped = batch.timestamp_type == "LogAppendTime"
    return BatchHeader(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
        compression=batch.compression,
        append_time=batch.max_timestamp if is_stamped else None,
        max_timestamp=batch.max_timestamp,
        delete_horizon_ms=batch.delete_horizon_ms,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
    )


def rows_as_created(batch: Batch, created: list[int]) -> list[Record]:
    """The records with the timestamps that the builder was given."""
    rows = batch.records()
    return [row._replace(timestamp=time) for row, time in zip(rows, created, strict=True)]


MAGIC_2 = [name for name, case in cases().items() if case["batches"][0]["magic"] == 2]


@pytest.mark.parametrize("name", cases())
def test_kafkas_batches_read_as_kafka_reads_them(name: str) -> None:
    """Every field of every batch and record, in all formats, codecs and kinds."""
    case = cases()[name]
    data = bytes.fromhex(case["hex"])
    reader = read_batches(data)
    batches = list(reader)
    assert [as_kafka_prints(batch) for batch in batches] == case["batches"]
    assert all(batch.is_valid for batch in batches)
    assert reader.remaining == 0


@pytest.mark.parametrize("name", cases())
def test_where_the_bytes_are_makes_no_difference(name: str) -> None:
    """A view into something longer, such as a mapped file, reads like separate bytes."""
    data = bytes.fromhex(cases()[name]["hex"])
    here = [as_kafka_prints(batch) for batch in read_batches(data)]
    there = read_batches(memoryview(bytearray(b"before" + data)), 6)
    assert [as_kafka_prints(batch) for batch in there] == here


@pytest.mark.parametrize("name", cases())
def test_records_one_by_one_are_the_records(name: str) -> None:
    """The iterator for large batches must not differ from the list."""
    for batch in read_batches(bytes.fromhex(cases()[name]["hex"])):
        assert list(batch.iter_records()) == batch.records()
        assert batch.salvage() == (batch.records(), None)


@pytest.mark.parametrize("name", MAGIC_2)
def test_building_gives_kafkas_bytes(name: str) -> None:
    """Uncompressed batches are equal to the byte, others once decompressed."""
    case = cases()[name]
    (batch,) = read_batches(bytes.fromhex(case["hex"]))
    rows = rows_as_created(batch, case["created"])
    built = build_batch(rows, header_of(batch))
    if batch.compression == "none":
        assert built.hex() == case["hex"]
    else:
        (again,) = read_batches(built)
        ignored = {"crc": 0, "size": 0}
        assert as_kafka_prints(again) | ignored == as_kafka_prints(batch) | ignored
        assert again.is_valid
