"""Tags of a run as a column: the last one of every table that a run writes.

Owns the column `tags`, so that tables of several runs can be read with one pattern and told apart,
even where rows name no file. A constant column costs a few bytes per part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["TAGS", "shared_tags", "spark_tags", "tag_array", "with_tags"]

TAGS = "tags"
_TYPE = pa.map_(pa.string(), pa.string())
_SPARK_TYPE = "map<string,string>"


def with_tags(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a table as a run writes it."""
    return schema.append(pa.field(TAGS, _TYPE))


def tag_array(tags: Mapping[str, str], count: int) -> Any:
    """Return the same tags `count` times; null if there are none."""
    if not tags:
        return pa.nulls(count, _TYPE)
    places = pa.array(np.tile(np.arange(len(tags)), count))
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * len(tags))
    keys, values = pa.array(list(tags)), pa.array(list(tags.values()))
    return pa.MapArray.from_arrays(offsets, keys.take(places), values.take(places))


def spark_tags(tags: Mapping[str, str]) -> Column:
    """Return the same as a Spark column."""
    from pyspark.sql import functions as F

    if not tags:
        return F.lit(None).cast(_SPARK_TYPE)
    return F.create_map(*(F.lit(word) for entry in tags.items() for word in entry))


def shared_tags(every: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the tags that all have in common: those of a table made from all inputs."""
    several = list(every)
    first = several[0] if several else {}
    return {
        key: value
        for key, value in first.items()
        if all(each.get(key) == value for each in several)
    }
