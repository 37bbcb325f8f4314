"""The options of a run, and its tags as a column: the last one of every table that a run writes.

With tags, tables of several runs can be read with one pattern and distinguished, even where rows
name no file. A constant column costs a few bytes per part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import Column
from dataclasses import dataclass, field
from pathlib import Path

from kraftwire.spark.captures import CAPTURE_TABLES
from kraftwire.spark.captures.plan import CUT_BYTES
from kraftwire.spark.captures.selection import Selection
from kraftwire.spark.tables import TABLES, matching
from kraftwire.spark.tables.apis import TYPED_TABLES

TAGS = "tags"
_TYPE = pa.map_(pa.string(), pa.string())
_SPARK_TYPE = "map<string,string>"

_RECORDS = "records"

# Tables that show that every byte is accounted for.
_ALWAYS = ("bad_input", "files")
_BASE = frozenset({*CAPTURE_TABLES, _RECORDS, *TYPED_TABLES})


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


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Where tables go and what they hold; can be pickled.

    `tables` are names of tables, as of `choose_tables`; None stands for all untyped ones except
    `records`, which `with_records` adds. `tags` describe the run, in a column of every table. A
    connection of more than `cut_bytes` is cut into parts if that saves time; the tables do not
    depend on it.
    """

    folder: Path
    selection: Selection = field(default_factory=Selection)
    with_records: bool = False
    tags: tuple[tuple[str, str], ...] = ()
    tables: tuple[str, ...] | None = None
    cut_bytes: int = CUT_BYTES

    @property
    def base(self) -> frozenset[str]:
        """Return the tables that come from inputs: those requested, and those that stages read."""
        more = {*_ALWAYS, _RECORDS} if self.with_records else set(_ALWAYS)
        if self.tables is None:
            return frozenset({*CAPTURE_TABLES, *more})
        return frozenset(more | (_with_inputs(self.tables) & _BASE))

    @property
    def derived(self) -> frozenset[str] | None:
        """Return the tables that stages make; None for those of all stages."""
        return None if self.tables is None else frozenset(_with_inputs(self.tables) - _BASE)

    def fingerprint(self) -> dict[str, object]:
        """Return the options that must be the same when adding to tables."""
        chosen = self.selection
        return {
            "since": chosen.since,
            "until": chosen.until,
            "apis": None if chosen.apis is None else sorted(chosen.apis),
            "records": self.with_records,
            "tables": None if self.tables is None else sorted(self.tables),
        }


def choose_tables(patterns: Iterable[str]) -> tuple[str, ...]:
    """Expand names, patterns such as ``*_response`` and ``all`` to tables.

    Raises: UsageError with the known tables, if one matches none.
    """
    from kraftwire.spark.stages import STAGES

    return tuple(matching(patterns, [name for name in STAGES if name not in TABLES]))


def _with_inputs(names: Iterable[str]) -> set[str]:
    """Return tables and all tables that they are made from."""
    chosen = set(names)
    if chosen <= _BASE:
        return chosen
    from kraftwire.spark.stages import STAGES

    # A stage comes after those that make its inputs.
    for name, stage in reversed(list(STAGES.items())):
        if name in chosen:
            chosen.update(stage.inputs)
    return chosen
