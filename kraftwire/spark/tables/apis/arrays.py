"""Decoded messages to Arrow arrays, column by column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire.spark.tables.apis.types import column_name, field_type, message_type, struct_type
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message
from kraftwire.wire.sizes import is_at_default

__all__ = ["message_array"]

# Conversions of values for Arrow; types that are not listed need none.
_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "bytes": bytes,
    "uuid": uuid_to_text,
    "records": len,
}


def message_array(name: str, held: Sequence[tuple[Message, int] | None]) -> Any:
    """Return an array of messages of one schema, each with its version, or None for a null.

    Its type is `message_type(name)`; fields that a version lacks are null.
    """
    kind = message_type(name)
    by_version: dict[int, list[int]] = {}
    for row, one in enumerate(held):
        by_version.setdefault(-1 if one is None else one[1], []).append(row)
    parts, order = [], []
    for version, rows in by_version.items():
        order += rows
        chosen = [one[0] for row in rows if (one := held[row]) is not None]
        parts.append(
            _structs(chosen[0].facts().root, chosen, version)
            if chosen
            else pa.nulls(len(rows), kind)
        )
    if not parts:
        return pa.array([], kind)
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts).take(pa.array(np.argsort(order, kind="stable")))


def _structs(facts: StructFacts, values: Sequence[Any], version: int) -> Any:
    """Return an array of structs; a value may be None."""
    kind = struct_type(facts)
    is_null = [value is None for value in values]
    has_null = any(is_null)
    arrays = []
    for each in facts.fields:
        if version not in each.versions:
            arrays.append(pa.nulls(len(values), field_type(each)))
            continue
        get = attrgetter(each.attribute)
        if has_null:
            column = [None if value is None else get(value) for value in values]
        else:
            column = list(map(get, values))
        if each.struct and not each.is_array and version in each.tagged:
            # A tagged field at its default is not sent; a struct of defaults would claim that it
            # was.
            column = [None if is_at_default(each, value) else value for value in column]
        arrays.append(_column(each, column, version))
    names = [column_name(each) for each in facts.fields]
    if not names:
        return pa.array([None if value is None else {} for value in values], kind)
    mask = pa.array(is_null) if has_null else None
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask)


def _column(facts: FieldFacts, values: list[Any], version: int) -> Any:
    if not facts.is_array:
        return _plain(facts, values, version)
    sizes = np.fromiter((0 if value is None else len(value) for value in values), np.int32)
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    flat = list(chain.from_iterable(value for value in values if value is not None))
    is_null = [value is None for value in values]
    return pa.ListArray.from_arrays(
        pa.array(offsets),
        _plain(facts, flat, version),
        type=field_type(facts),
        mask=pa.array(is_null) if any(is_null) else None,
    )


def _plain(facts: FieldFacts, values: list[Any], version: int) -> Any:
    """Return the values of a field that is not an array, or the elements of an array."""
    if facts.struct:
        return _structs(facts.struct, values, version)
    convert = _CONVERSIONS.get(facts.type)
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    kind = field_type(facts)
    return pa.array(values, kind.value_type if facts.is_array else kind)
