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
    """What the rows of records take from their batches, by the batch's index."""

    __slots__ = ("attributes", "leader_epoch", "position", "producer_id")

    def __init__(
        self, attributes: Any, leader_epoch: Any, producer_id: Any, position: Any
    ) -> None:
        self.attributes = attributes
        self.leader_epoch = leader_epoch
        self.producer_id = producer_id
        self.position = position


def record_rows(place: Place, table: Any, facts: BatchFacts, values: Any = None) -> Any:
    """Rows of records by columns; `values` stand for the records' own where secrets are hidden."""
    lane = np.asarray(table["batch"])
    count = len(lane)
    attributes = facts.attributes[lane]
    columns = {
        "key": table["key"],
        "value": table["value"] if values is None else values,
        "topic": constant(place.topic, pa.string(), count),
        "partition": constant(place.partition, pa.int32(), count),
        "offset": table["offset"],
        "timestamp": timestamps(np.asarray(table["timestamp"])),
        "timestampType": pa.array((attributes & STAMPED != 0).astype(np.int32)),
        "headers": table["headers"],
        "leader_epoch": pa.array(facts.leader_epoch[lane], pa.int32()),
        "producer_id": pa.array(facts.producer_id[lane], pa.int64()),
        "is_control": pa.array(attributes & CONTROL != 0),
        "file": constant(place.file, pa.string(), count),
        "position": pa.array(facts.position[lane], pa.int64()),
    }
    return pa.table([columns[name] for name in _SCHEMA.names], _SCHEMA)
