"""Secrets in record batches: metadata records that hold keys and passwords, wherever they are.

A segment that was copied elsewhere, or a frame with the id of a topic without a known name, holds
the records of the metadata log without saying so. Such records are known by their shape.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from kraftwire import messages
from kraftwire.capture.limits import JSON_ROWS_FREE
from kraftwire.decode.body.redact import REDACTED, holds_secrets, redact
from kraftwire.errors import WireError
from kraftwire.records.json_form import batch_to_json, decode_record
from kraftwire.records.reader import Batch
from kraftwire.records.record import Record
from kraftwire.records.rows import RecordRows

__all__ = ["SECRET_HEADS", "has_secret_records", "is_secret_record", "redact_batch"]

_METADATA = "metadata"
_FRAME_VERSIONS = (0, 1)
# The version that Kafka writes. Values of a schema registry may begin with the other one.
_FRAME_VERSION = 1
_SECRET_TYPES = [
    number for number, name in messages.METADATA_RECORDS.items() if holds_secrets(name)
]

# How the values of metadata records begin that may be secret: frame version and type.
SECRET_HEADS = tuple(
    bytes([frame_version, number]) for frame_version in _FRAME_VERSIONS for number in _SECRET_TYPES
)
# The same in base64, whose third character has two bits of the next byte.
_SECRET_TEXTS = tuple(
    base64.b64encode(head + bytes([bits << 6])).decode()[:3]
    for head in SECRET_HEADS
    for bits in range(4)
)
# Versions that a schema may have some day.
_VERSION_MAX = 3


def is_secret_record(value: bytes | memoryview | None, *, is_metadata: bool) -> bool:
    """Whether the value of a record is a metadata record with secrets in it.

    A value that cannot be decoded counts as such a record if it begins like one; outside the
    metadata log only if Kafka may write its frame version and its version.
    """
    if value is None or not bytes(value[:2]).startswith(SECRET_HEADS):
        return False
    try:
        decoded = decode_record(Record(0, 0, None, bytes(value)), _METADATA, is_control=False)
    except WireError:
        is_likely = value[0] == _FRAME_VERSION and len(value) > 2 and value[2] <= _VERSION_MAX
        return is_metadata or is_likely
    if decoded is None:
        return False
    data = decoded.to_json()["data"]
    return isinstance(data, dict) and bool(redact(decoded.type, data))


def has_secret_records(batch: Batch, family: str | None, *, is_metadata: bool) -> bool:
    """Whether a batch holds secrets, or may, as not all of it can be read.

    `family` as of `family_of_topic`. With `is_metadata` what cannot be read may be a secret.
    """
    if family == _METADATA:
        json, problems = batch_to_json(batch, family=family, rows_max=JSON_ROWS_FREE)
        return redact_batch(json, is_metadata=True) or bool(problems)
    rows = batch.iter_salvage()
    if any(is_secret_record(row.value, is_metadata=is_metadata) for row in rows):
        return True
    return rows.damage is not None and is_metadata


def redact_batch(batch: dict[str, Any], *, is_metadata: bool) -> bool:
    """Replace the secrets in the records of a batch's JSON object; returns whether there were any.

    The value of such a record is replaced as a whole, because it is the same bytes again.
    """
    records = batch.get("records") or ()
    if isinstance(records, RecordRows):
        records.change(lambda record: _hide(record, is_metadata))
        return any(record.get("value") == REDACTED for record in records)
    found = False
    for record in records:
        found |= _hide(record, is_metadata)
    return found


def _hide(record: dict[str, Any], is_metadata: bool) -> bool:
    is_found = _redact_record(record, is_metadata)
    if is_found:
        record["value"] = REDACTED
    return is_found


def _redact_record(record: dict[str, Any], is_metadata: bool) -> bool:
    value, decoded = record.get("value"), record.get("decoded")
    is_found = False
    if decoded is not None:
        data = decoded.get("data")
        is_found = isinstance(data, dict) and bool(redact(str(decoded.get("type")), data))
        if is_metadata:
            return is_found
    if not isinstance(value, str) or not value.startswith(_SECRET_TEXTS):
        return is_found
    if not is_secret_record(_bytes(value), is_metadata=is_metadata):
        return is_found
    # Read as another family's, it may have the same bytes in other fields.
    record["decoded"] = None
    return True


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return None
