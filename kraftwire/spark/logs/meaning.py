"""What records of Kafka's own topics mean: rows of the table `metadata_records`, and secrets."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire import messages
from kraftwire.decode.body.redact import REDACTED, holds_secrets, redact
from kraftwire.errors import WireError
from kraftwire.records.decoded import Decoded
from kraftwire.records.json_form import decode_record
from kraftwire.records.record import Record
from kraftwire.spark.logs.batch_rows import constant, timestamps
from kraftwire.spark.logs.place import Place
from kraftwire.spark.tables import TABLES

__all__ = ["Meaning", "data_of", "meaning_of", "without_secrets"]

_SCHEMA = TABLES["metadata_records"].arrow
_HIDDEN = REDACTED.encode()
_SECRET_TYPES = frozenset(
    number for number, name in messages.METADATA_RECORDS.items() if holds_secrets(name)
)


class Meaning:
    """Rows of `metadata_records`, and what no schema fits: (index of the batch, error)."""

    __slots__ = ("problems", "table")

    def __init__(self, table: Any, problems: list[tuple[int, WireError]]) -> None:
        self.table = table
        self.problems = problems


def data_of(decoded: Decoded, *, show_secrets: bool = False) -> str:
    """The JSON text of a decoded record, without secrets.

    Shape: as Kafka's converters print it; of the end of a transaction with `controlType`, since
    commit and abort have one schema.
    """
    data = decoded.to_json()["data"]
    if isinstance(data, dict):
        if not show_secrets:
            redact(decoded.type, data)
        if decoded.control_type in ("COMMIT", "ABORT"):
            data = {"controlType": decoded.control_type, **data}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def meaning_of(place: Place, table: Any, facts: Any, *, show_secrets: bool) -> Meaning:
    """The rows of records by columns, in a topic of Kafka's own."""
    lanes = np.asarray(table["batch"])
    control = facts.attributes & 0x20 != 0
    rows: list[int] = []
    types: list[str] = []
    versions: list[int | None] = []
    texts: list[str] = []
    problems = []
    cells = zip(
        lanes.tolist(), table["offset"].to_pylist(), table["key"].to_pylist(),
        table["value"].to_pylist(), strict=True,
    )  # fmt: skip
    for row, (lane, offset, key, value) in enumerate(cells):
        record = Record(offset, 0, key, value)
        try:
            decoded = decode_record(record, place.family, is_control=bool(control[lane]))
        except WireError as error:
            problems.append((lane, error))
            continue
        if decoded is None:
            continue
        rows.append(row)
        types.append(decoded.type)
        versions.append(decoded.version)
        texts.append(data_of(decoded, show_secrets=show_secrets))
    count = len(rows)
    chosen = table.take(pa.array(rows, pa.int32()))
    lane = lanes[rows] if rows else lanes[:0]
    columns = {
        "file": constant(place.file, pa.string(), count),
        "position": pa.array(facts.position[lane], pa.int64()),
        "topic": constant(place.topic, pa.string(), count),
        "topic_id": constant(place.topic_id, pa.string(), count),
        "partition": constant(place.partition, pa.int32(), count),
        "offset": chosen["offset"],
        "epoch": pa.array(facts.leader_epoch[lane], pa.int32()),
        "time": timestamps(np.asarray(chosen["timestamp"])),
        "type": pa.array(types, pa.string()),
        "version": pa.array(versions, pa.int16()),
        "data": pa.array(texts, pa.string()),
    }
    return Meaning(pa.table([columns[name] for name in _SCHEMA.names], _SCHEMA), problems)


def without_secrets(values: Any) -> Any:
    """The values of metadata records, with a mark in place of those that hold secrets.

    Shape: a value that looks like such a record but cannot be decoded is taken for one.
    """
    cells = values.to_pylist()
    is_changed = False
    for row, value in enumerate(cells):
        if value is None or len(value) < 2 or value[0] > 1 or value[1] not in _SECRET_TYPES:
            continue
        if _is_secret(value):
            cells[row] = _HIDDEN
            is_changed = True
    return pa.array(cells, pa.binary()) if is_changed else values


def _is_secret(value: bytes) -> bool:
    try:
        decoded = decode_record(Record(0, 0, None, value), "metadata", is_control=False)
    except WireError:
        return True
    return decoded is not None and bool(redact(decoded.type, decoded.to_json()["data"]))
