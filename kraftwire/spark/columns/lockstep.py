"""The records of several batches as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire.records.header import STAMPED
from kraftwire.records.record import NO_SEQUENCE, SEQUENCE_MASK
from kraftwire.spark.columns.arrays import HEADERS, header_array, key_value_arrays
from kraftwire.spark.columns.batches import Batches
from kraftwire.spark.columns.fields import Fields, fields_of
from kraftwire.spark.columns.heap import LONG_BYTES, give_back
from kraftwire.spark.columns.lanes import Lanes, lanes_of
from kraftwire.spark.columns.odd import read_odd
from kraftwire.spark.columns.result import SCHEMA, Columns
from kraftwire.spark.columns.walk import starts_of
from kraftwire.spark.columns.words import Words

__all__ = ["read_in_lockstep"]


def read_in_lockstep(batches: Batches, indexes: Any) -> Iterator[Columns]:
    """Yield the records of the batches with these indexes; odd batches are read one by one."""
    for group in lanes_of(batches, indexes):
        parts: list[Any] = []
        odd: list[int] = []
        # The bytes of lanes are released as soon as they are read.
        while group:
            is_long = group[0].data is not batches.buffer and len(group[0].data) >= LONG_BYTES
            tables, judged = _read_lanes(group.pop(0))
            parts += tables
            odd += judged
            del tables
            if is_long and not group:
                give_back()
        yield from _in_order(batches, parts, sorted(odd))


def _in_order(batches: Batches, parts: list[Any], odd: list[int]) -> Iterator[Columns]:
    """Yield tables of parts by batch, with the odd batches in their places."""
    if not odd and len(parts) == 1:
        yield Columns(parts.pop(), ())
        return
    table = pa.concat_tables(parts) if parts else SCHEMA.empty_table()
    if len(parts) > 1:
        order = np.argsort(np.asarray(table["batch"]), kind="stable")
        table = table.take(pa.array(order)).combine_chunks()
    parts.clear()
    numbers = np.asarray(table["batch"])
    begin = 0
    for number, end in zip(odd, np.searchsorted(numbers, odd).tolist(), strict=True):
        if end > begin:
            yield Columns(table.slice(begin, end - begin), ())
        yield from read_odd(batches, number)
        begin = end
    if begin < len(table):
        yield Columns(table.slice(begin), ())


def _read_lanes(lanes: Lanes) -> tuple[list[Any], list[int]]:
    """Return a list of one table or none, and the indexes of batches that only the reader can
    judge.
    """
    odd = list(lanes.odd)
    if not len(lanes.indexes):
        return [], odd
    words = Words(lanes.data)
    counts = lanes.batches.header["count"][lanes.indexes].astype(np.int64)
    starts, reached = starts_of(lanes.data, words, lanes.begins, counts)
    firsts = np.cumsum(counts) - counts
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    ends[firsts + counts - 1] = reached
    fields = fields_of(words, starts, ends)
    is_wrong = np.logical_or.reduceat(fields.is_wrong, firsts) | (reached != lanes.ends)
    odd += lanes.indexes[is_wrong].tolist()
    lane = np.repeat(np.arange(len(counts)), counts)
    rows = None
    if is_wrong.any():
        rows = ~is_wrong[lane]
        if not rows.any():
            return [], odd
    return [_table(lanes, fields, lane, rows)], odd


def _table(lanes: Lanes, fields: Fields, lane: Any, rows: Any) -> Any:
    """Return the table of the rows that a mask selects, or of all."""
    data = pa.py_buffer(lanes.data)
    headers = _headers(data, fields, rows)
    columns = [fields.time_delta, fields.offset_delta, fields.edges, fields.has_key]
    columns += [fields.has_value, lane]
    if rows is not None:
        columns = [column[rows] for column in columns]
    time_delta, offset_delta, edges, has_key, has_value, lane = columns
    header = lanes.batches.header[lanes.indexes]
    keys, values = key_value_arrays(data, edges, has_key, has_value)
    return pa.table(
        {
            "batch": lanes.indexes.astype(np.int32)[lane],
            "offset": header["base_offset"][lane] + offset_delta,
            "timestamp": _timestamps(header, lane, time_delta),
            "sequence": _sequences(header, lane, offset_delta),
            "key": keys,
            "value": values,
            "headers": headers,
        }
    )


def _timestamps(header: Any, lane: Any, deltas: Any) -> Any:
    is_stamped = header["attributes"] & STAMPED != 0
    if not is_stamped.any():
        return header["base_timestamp"][lane] + deltas
    base = np.where(is_stamped, header["max_timestamp"], header["base_timestamp"])
    return base[lane] + np.where(is_stamped[lane], 0, deltas)


def _sequences(header: Any, lane: Any, deltas: Any) -> Any:
    base = header["base_sequence"]
    if (base < 0).all():
        return np.full(len(lane), NO_SEQUENCE, np.int32)
    base = base[lane].astype(np.int64)
    return np.where(base < 0, NO_SEQUENCE, base + deltas & SEQUENCE_MASK).astype(np.int32)


def _headers(data: Any, fields: Fields, rows: Any) -> Any:
    counts, spans = fields.header_count, fields.headers
    if rows is not None:
        counts = counts[rows]
    if spans is None:
        zeros = np.zeros(len(counts) + 1, np.int32)
        return pa.ListArray.from_arrays(pa.array(zeros), pa.array([], HEADERS.value_type))
    edges, has_value = spans.edges, spans.has_value
    if rows is not None:
        chosen = rows[spans.row]
        edges, has_value = edges[chosen], has_value[chosen]
    return header_array(data, counts, edges, has_value)
