"""Decodes records of Kafka's own topics: rows of the table `metadata_records`, and secrets."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftwire.decode.body.secrets import REDACTED, SECRET_HEADS, is_secret_record, redact
from kraftwire.errors import WireError
from kraftwire.records.json_form import decode_record
from kraftwire.records.messages import Decoded
from kraftwire.records.record import Record
from kraftwire.spark.logs.place import LogPlace
from kraftwire.spark.logs.rows import constant, timestamps
from kraftwire.spark.tables import TABLES

_SCHEMA = TABLES["metadata_records"].arrow
_HIDDEN = REDACTED.encode()
_FIRST_BYTE_MAX = max(head[0] for head in SECRET_HEADS)


class MetadataRows(NamedTuple):
    """Rows of `metadata_records`, and records that fit no schema: (index of the batch, error)."""

    table: Any
    problems: list[tuple[int, WireError]]


def json_text(decoded: Decoded, *, show_secrets: bool = False) -> str:
    """Return the JSON text of a decoded record, without secrets.

    The text is that of Kafka's converters; the end of a transaction also has `controlType`, since
    commit and abort share a schema.
    """
    data = decoded.to_json()["data"]
    if isinstance(data, dict):
        if not show_secrets:
            redact(decoded.type, data)
        if decoded.control_type in ("COMMIT", "ABORT"):
            data = {"controlType": decoded.control_type, **data}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def metadata_rows(place: LogPlace, table: Any, facts: Any, *, show_secrets: bool) -> MetadataRows:
    """Return the rows of records by columns, in one of Kafka's own topics."""
    batch_indexes = np.asarray(table["batch"])
    control = facts.attributes & 0x20 != 0
    rows: list[int] = []
    types: list[str] = []
    versions: list[int | None] = []
    texts: list[str] = []
    problems = []
    cells = zip(
        batch_indexes.tolist(), table["offset"].to_pylist(), table["key"].to_pylist(),
        table["value"].to_pylist(), strict=True,
    )  # fmt: skip
    for row, (batch_index, offset, key, value) in enumerate(cells):
        record = Record(offset, 0, key, value)
        try:
            decoded = decode_record(record, place.family, is_control=bool(control[batch_index]))
        except WireError as error:
            problems.append((batch_index, error))
            continue
        if decoded is None:
            continue
        rows.append(row)
        types.append(decoded.type)
        versions.append(decoded.version)
        texts.append(json_text(decoded, show_secrets=show_secrets))
    count = len(rows)
    chosen = table.take(pa.array(rows, pa.int32()))
    batch_index = batch_indexes[rows] if rows else batch_indexes[:0]
    columns = {
        "file": constant(place.file, pa.string(), count),
        "position": pa.array(facts.position[batch_index], pa.int64()),
        "topic": constant(place.topic, pa.string(), count),
        "topic_id": constant(place.topic_id, pa.string(), count),
        "partition": constant(place.partition, pa.int32(), count),
        "offset": chosen["offset"],
        "epoch": pa.array(facts.leader_epoch[batch_index], pa.int32()),
        "time": timestamps(np.asarray(chosen["timestamp"])),
        "type": pa.array(types, pa.string()),
        "version": pa.array(versions, pa.int16()),
        "data": pa.array(texts, pa.string()),
    }
    return MetadataRows(pa.table([columns[name] for name in _SCHEMA.names], _SCHEMA), problems)


def without_secrets(values: Any, *, is_metadata: bool) -> Any:
    """Return the values of records, with a mark in place of metadata records with secrets.

    With `is_metadata`, a value that looks like such a record but cannot be decoded is treated as
    one. Other values are not touched.
    """
    if not any(_may_begin(part) for part in values.chunks):
        return values
    looks = [np.asarray(pc.fill_null(pc.starts_with(values, head), fill_value=False))
             for head in SECRET_HEADS]  # fmt: skip
    rows = np.flatnonzero(np.any(looks, axis=0)).tolist()
    found = [row for row in rows if is_secret_record(values[row].as_py(), is_metadata=is_metadata)]
    if not found:
        return values
    cells = values.to_pylist()
    for row in found:
        cells[row] = _HIDDEN
    return pa.array(cells, pa.binary())


def _may_begin(values: Any) -> bool:
    """Whether a value may begin like a metadata record with secrets, by its first byte alone."""
    _, ends, data = values.buffers()
    if data is None or not data.size:
        return False
    starts = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values)]
    # For an empty value at the end, any other byte will do.
    firsts = np.frombuffer(data, np.uint8)[np.minimum(starts, data.size - 1)]
    return bool((firsts <= _FIRST_BYTE_MAX).any())
