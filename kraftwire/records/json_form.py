"""Batches and records as JSON, as `kraftwire decode` prints them.

Damage never stops it: what cannot be read is null, and every reason is returned beside the JSON.
"""

from __future__ import annotations

from binascii import b2a_base64
from typing import Any, Literal

from kraftwire.errors import WireError
from kraftwire.records.control import decode_control
from kraftwire.records.coordinator import decode_coordinator
from kraftwire.records.decoded import Decoded
from kraftwire.records.metadata import REMOTE_LOG_RECORDS, decode_metadata
from kraftwire.records.reader import Batch
from kraftwire.records.record import Record

__all__ = ["Detail", "RecordError", "batch_to_json", "decode_record"]

Detail = Literal["none", "summary", "full"]


class RecordError(WireError):
    """One record, of a batch that can be read, does not follow the schema of its topic."""


def decode_record(record: Record, family: str | None, *, is_control: bool) -> Decoded | None:
    """What a record means; None if only its users know.

    Shape: `family` as of `family_of_topic`. Raises: WireError if it cannot be read.
    """
    if is_control:
        return decode_control(record.key, record.value)
    if family is None:
        return None
    if family == "metadata":
        return decode_metadata(record.value)
    if family == "remote-log":
        return decode_metadata(record.value, REMOTE_LOG_RECORDS)
    return decode_coordinator(family, record.key, record.value)


def batch_to_json(
    batch: Batch, *, family: str | None = None, records: Detail = "full"
) -> tuple[dict[str, Any], list[WireError]]:
    """A batch as JSON, and everything in it that is wrong or unknown.

    Shape: `records` of the JSON is null with ``none``; with ``summary`` a list of offset,
    timestamp, sizes, header keys and type; with ``full`` of offset, timestamp, key, value,
    headers and the decoded message. Damaged records end the list in front of the damage.
    """
    problems: list[WireError] = []
    rows: list[Record] | None = None
    if records != "none" or batch.magic < 2:
        rows, damage = batch.salvage()
        if damage:
            problems.append(damage)
    is_valid = batch.is_valid
    if not is_valid:
        problems.insert(0, _crc_error(batch))
    json = _header(batch, rows)
    json["isValid"] = is_valid
    json["records"] = None
    if rows is not None and records != "none":
        form = _full if records == "full" else _summary
        if family is None and not batch.is_control:
            json["records"] = [form(row, None) for row in rows]
        else:
            json["records"] = [form(row, _decoded(row, family, batch, problems)) for row in rows]
    return json, problems


def _header(batch: Batch, rows: list[Record] | None) -> dict[str, Any]:
    base_offset: int | None
    count: int | None
    if batch.magic == 2:
        base_offset, count = batch.base_offset, batch.count
    else:
        # A wrapper does not say what it holds; one that cannot be read tells nothing.
        base_offset, count = (rows[0].offset, len(rows)) if rows else (None, None)
    return {
        "position": batch.position,
        "baseOffset": base_offset,
        "lastOffset": batch.last_offset,
        "count": count,
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
    }


def _decoded(
    record: Record, family: str | None, batch: Batch, problems: list[WireError]
) -> dict[str, Any] | None:
    try:
        decoded = decode_record(record, family, is_control=batch.is_control)
        return decoded.to_json() if decoded else None
    except WireError as error:
        problems.append(_at_record(error, record, batch))
        return None


def _summary(record: Record, decoded: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "headerKeys": [key for key, _ in record.headers],
        "type": decoded["type"] if decoded else None,
    }


def _full(record: Record, decoded: dict[str, Any] | None) -> dict[str, Any]:
    offset, timestamp, key, value, headers, _ = record
    return {
        "offset": offset,
        "timestamp": timestamp,
        "key": None if key is None else b2a_base64(key, newline=False).decode(),
        "value": None if value is None else b2a_base64(value, newline=False).decode(),
        "headers": [
            {
                "key": name,
                "value": None if data is None else b2a_base64(data, newline=False).decode(),
            }
            for name, data in headers
        ],
        "decoded": decoded,
    }


def _crc_error(batch: Batch) -> WireError:
    try:
        batch.ensure_valid()
    except WireError as error:
        return error
    return WireError("the CRC of a batch is wrong", offset=batch.position)


def _at_record(error: WireError, record: Record, batch: Batch) -> RecordError:
    """The same error with the place of the batch, as offsets inside a value lead nowhere."""
    inside = "" if error.offset is None else f" (byte {error.offset} of its bytes)"
    return RecordError(
        f"record at offset {record.offset}: {error.problem}{inside}",
        message=error.message,
        version=error.version,
        path=error.path,
        offset=batch.position,
        expected=error.expected,
        found=error.found,
    )
