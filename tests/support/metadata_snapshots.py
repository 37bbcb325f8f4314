"""Snapshots of metadata compared by what they say, whoever wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from kraftwire.records.metadata import decode_metadata

__all__ = ["meaning", "type_order"]

# Lists that Kafka keeps as sets or maps.
_SETS = ("endPoints", "features", "logDirs", "cordonedLogDirs", "entity")


def meaning(values: Iterable[bytes]) -> list[str]:
    """The records in an order of their own, a line of JSON each.

    Shape: what Kafka writes in any order is sorted; who took the last block of producer ids is
    left out, as Kafka leaves it out.
    """
    return sorted(json.dumps(_normal(value), sort_keys=True) for value in values)


def _normal(value: bytes) -> dict[str, Any]:
    record = decode_metadata(value).to_json()
    data = record["data"]
    for name in _SETS:
        if data.get(name):
            data[name] = sorted(data[name], key=json.dumps)
    if record["type"] == "ProducerIdsRecord":
        data["brokerId"] = data["brokerEpoch"] = -1
    return record


def type_order(values: Iterable[bytes]) -> list[str]:
    """The types of the records as they follow each other, topics and partitions as one."""
    types = (decode_metadata(value).type.replace("Partition", "Topic") for value in values)
    return [name for name, _ in groupby(types)]
