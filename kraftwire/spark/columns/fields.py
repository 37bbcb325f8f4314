"""The fields of records at known positions, in a few vector steps for all of them.

Accepts only ordinary records; any other is marked, and the reader of `kraftwire.records` decides.

Source: Kafka's `DefaultRecord`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kraftwire.spark.columns.words import Words, shift, split, unzigzag

__all__ = ["Fields", "HeaderSpans", "fields_of"]

# Records at a time, so that the vectors of a step stay in the processor's cache.
_BLOCK_COUNT = 16_384

_ONE = np.uint64(1)
# Records with more headers are left to the reader: a vector step per header costs too much.
_HEADERS_MAX = 256
# The most headers of records that are read together; the records after these are left to the reader
# as well, which reads them in portions. A header needs a hundred bytes in the vectors of a step.
_HEADERS_TOTAL_MAX = 512 * 1024

# The longest accepted varints: times within 400 days of the batch's, lengths up to 128 MiB.
_TIME_BYTES = 5
_DELTA_BYTES = 4
_WORD_BYTES = np.uint64(8)


@dataclass(frozen=True)
class Fields:
    """Columns of records.

    Deltas are as in the batch; `edges` has begin and end of key and value of each record, four
    numbers per row; begin and end of a null are equal. `is_wrong` marks records that the caller
    must not use. `headers` is None where no record has any.
    """

    time_delta: Any
    offset_delta: Any
    edges: Any
    has_key: Any
    has_value: Any
    header_count: Any
    headers: HeaderSpans | None
    is_wrong: Any


@dataclass(frozen=True)
class HeaderSpans:
    """Headers of records, in the order of the records.

    `row` is the record of each; `edges` has begin and end of name and value.
    """

    row: Any
    edges: Any
    has_value: Any


def fields_of(words: Words, starts: Any, ends: Any) -> Fields:
    """Return the fields of the records between `starts` and `ends`."""
    count = len(starts)
    fields = Fields(
        time_delta=np.empty(count, np.int64),
        offset_delta=np.empty(count, np.int64),
        edges=np.empty((count, 4), np.int64),
        has_key=np.empty(count, bool),
        has_value=np.empty(count, bool),
        header_count=np.empty(count, np.int64),
        headers=None,
        is_wrong=np.empty(count, bool),
    )
    places = np.empty(count, np.int64)
    for begin in range(0, count, _BLOCK_COUNT):
        block = slice(begin, min(count, begin + _BLOCK_COUNT))
        places[block] = _read_block(words, starts[block], ends[block], fields, block)
    return _with_headers(words, fields, places, ends)


def _read_block(words: Words, starts: Any, ends: Any, fields: Fields, block: slice) -> Any:
    """Fill a block of the columns; return where the headers of each record begin."""
    length, size, wrong = split(words.at(starts), _DELTA_BYTES)
    wrong = wrong | length & _ONE
    # Attributes are an unused byte.
    position = starts + size.view(np.int64) + 1
    word = words.at(position)
    time, size, long = split(word, _TIME_BYTES)
    wrong |= long
    word = shift(word, size)
    delta, delta_size, long = split(word, _DELTA_BYTES)
    wrong |= long
    used = size + delta_size
    word = shift(word, delta_size)
    key_length, key_size, long = split(word, _DELTA_BYTES)
    used += key_size
    # Whatever does not fit in a word is read from its own start.
    beyond = np.flatnonzero(used > _WORD_BYTES)
    if len(beyond):
        at = position[beyond] + size[beyond].view(np.int64)
        delta[beyond], delta_size[beyond], _ = split(words.at(at), _DELTA_BYTES)
        at += delta_size[beyond].view(np.int64)
        key_length[beyond], key_size[beyond], long[beyond] = split(words.at(at), _DELTA_BYTES)
        used[beyond] = size[beyond] + delta_size[beyond] + key_size[beyond]
    wrong |= long
    fields.time_delta[block] = unzigzag(time)
    fields.offset_delta[block] = unzigzag(delta)
    position += used.view(np.int64)
    edges = fields.edges[block]
    edges[:, 0] = position
    position += _bytes_of(key_length, fields.has_key[block])
    edges[:, 1] = position
    value_length, size, long = split(words.at(position), _DELTA_BYTES)
    position += size.view(np.int64)
    edges[:, 2] = position
    position += _bytes_of(value_length, fields.has_value[block])
    edges[:, 3] = position
    headers, size, more = split(words.at(position), _DELTA_BYTES)
    wrong |= long | more | headers & _ONE
    position += size.view(np.int64)
    count = headers.view(np.int64) >> 1
    fields.header_count[block] = count
    is_off = np.where(count > 0, position > ends, position != ends)
    fields.is_wrong[block] = wrong.astype(bool) | is_off
    return position


def _bytes_of(length: Any, is_there: Any) -> Any:
    """Return how many bytes follow a raw length; fill `is_there`: a negative length is a null."""
    is_null = length & _ONE
    is_there[:] = is_null == 0
    return (length >> _ONE).view(np.int64) * is_there


def _with_headers(words: Words, fields: Fields, positions: Any, ends: Any) -> Fields:
    """Read header j of every record that has one, for all j."""
    counts = fields.header_count
    # Each takes at least two bytes, so a count that the record cannot hold is wrong.
    fields.is_wrong[:] |= counts * 2 > np.maximum(ends - positions, 0)
    fields.is_wrong[:] |= counts > _HEADERS_MAX
    usual = np.where(fields.is_wrong, 0, counts)
    fields.is_wrong[:] |= np.cumsum(usual) > _HEADERS_TOTAL_MAX
    rows = np.flatnonzero((counts > 0) & ~fields.is_wrong)
    if not len(rows):
        return fields
    parts = []
    position, stops, left = positions[rows], ends[rows], counts[rows]
    while len(rows):
        edges, has_value, position, wrong = _header(words, position)
        wrong |= position > stops
        wrong |= (left == 1) & (position != stops)
        fields.is_wrong[rows[wrong]] = True
        parts.append((rows, edges, has_value))
        goes_on = np.flatnonzero((left > 1) & ~wrong)
        rows, position = rows[goes_on], position[goes_on]
        stops, left = stops[goes_on], left[goes_on] - 1
    row, edges, has_value = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(row, kind="stable")
    spans = HeaderSpans(row[order], edges[order], has_value[order])
    return replace(fields, headers=spans)


def _header(words: Words, position: Any) -> tuple[Any, Any, Any, Any]:
    """Return a header of each record: edges, whether it has a value, its end, and errors."""
    edges = np.empty((len(position), 4), np.int64)
    has_value = np.empty(len(position), bool)
    length, size, long = split(words.at(position), _DELTA_BYTES)
    wrong = long | length & _ONE
    begin = position + size.view(np.int64)
    edges[:, 0] = begin
    edges[:, 1] = begin = begin + (length >> _ONE).view(np.int64)
    length, size, long = split(words.at(begin), _DELTA_BYTES)
    begin = begin + size.view(np.int64)
    edges[:, 2] = begin
    edges[:, 3] = end = begin + _bytes_of(length, has_value)
    return edges, has_value, end, (wrong | long).astype(bool)
