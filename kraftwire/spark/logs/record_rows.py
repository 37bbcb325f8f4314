"""Rows of the table `records`: the columns of Spark's own Kafka source, then ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire.records.header import CONTROL, STAMPED
from kraftwire.spark.logs.batch_rows import constant, timestamps
from kraftwire.spark.logs.place import Place
from kraftwire.spark.tables import TABLES

__all__ = ["BatchFacts", "record_rows"]

_SCHEMA = TABLES["records"].arrow


class BatchFacts:
    """The columns that rows of records take from their batches, by batch index."""

    __slots__ = ("attributes", "leader_epoch", "position", "producer_id")

    def __init__(
        self, attributes: Any, leader_epoch: Any, producer_id: Any, position: Any
    ) -> None:
        self.attributes = attributes
        self.leader_epoch = leader_epoch
        self.producer_id = producer_id
        self.position = position


def record_rows(
    place: Place,
    table: Any,
    facts: BatchFacts,
    names: frozenset[str] | None = None,
    values: Any = None,
) -> Any:
    """Return rows of records by columns; `values` replace the records' own where secrets are
    hidden.

    `names` are the requested columns, None for all; the order is the table's.
    """
    made = _Columns(place, table, facts, values)
    fields = [field for field in _SCHEMA if names is None or field.name in names]
    return pa.table([made.column(field.name) for field in fields], pa.schema(fields))


class _Columns:
    """Makes columns of the rows, one at a time."""

    def __init__(self, place: Place, table: Any, facts: BatchFacts, values: Any) -> None:
        self._table = table
        self._facts = facts
        self._lane = np.asarray(table["batch"])
        self._values = values
        self._same = {
            "topic": (place.topic, pa.string()),
            "partition": (place.partition, pa.int32()),
            "file": (place.file, pa.string()),
        }

    def column(self, name: str) -> Any:
        """Return a column by its name."""
        if name in self._same:
            return constant(*self._same[name], len(self._lane))
        if name == "value" and self._values is not None:
            return self._values
        if name == "timestamp":
            return timestamps(np.asarray(self._table[name]))
        if name in ("timestampType", "is_control"):
            is_stamped = name == "timestampType"
            bit = STAMPED if is_stamped else CONTROL
            has = (self._facts.attributes & bit != 0)[self._lane]
            return pa.array(has.astype(np.int32) if is_stamped else has)
        if name in ("leader_epoch", "producer_id", "position"):
            kind = _SCHEMA.field(name).type
            return pa.array(getattr(self._facts, name)[self._lane], kind)
        return self._table[name]
