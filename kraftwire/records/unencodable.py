"""Finds the value of a batch that does not fit its field, after building the batch has failed.

Building checks each value once; this module is slow and thorough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftwire.records.content import BatchHeader, Columns

__all__ = ["misfit"]

_INT16, _INT32, _INT64 = (range(-(2**bits), 2**bits) for bits in (15, 31, 63))
_POSITIVE_INT32 = range(2**31)
_BYTES = bytes | bytearray | memoryview


def misfit(columns: Columns, header: BatchHeader) -> str | None:
    """Describe the first value that does not fit; None if all do."""
    return next(_misfits(columns, header), None)


def _misfits(columns: Columns, header: BatchHeader) -> Iterator[str]:
    yield from _of_header(header)
    if columns.offsets is not None:
        yield from _of_numbers("offset", columns.offsets, header.base_offset, _POSITIVE_INT32)
    base = header.delete_horizon_ms
    yield from _of_numbers("timestamp", columns.timestamps, base, _INT64)
    last, first = header.last_offset, header.base_offset
    if last is not None and first is not None:
        yield from _of_number("distance of the last from the base offset", last - first, _INT32)
    for name, column in (("key", columns.keys), ("value", columns.values)):
        for number, value in enumerate(column):
            yield from _of_bytes(f"{name} of record {number}", value)
    for number, headers in enumerate(columns.headers or ()):
        yield from _of_headers(f"record {number}", headers)


def _of_header(header: BatchHeader) -> Iterator[str]:
    for name, value, numbers in (
        ("base offset", header.base_offset, _INT64),
        ("last offset", header.last_offset, _INT64),
        ("partition leader epoch", header.partition_leader_epoch, _INT32),
        ("append time", header.append_time, _INT64),
        ("largest timestamp", header.max_timestamp, _INT64),
        ("delete horizon", header.delete_horizon_ms, _INT64),
        ("producer id", header.producer_id, _INT64),
        ("producer epoch", header.producer_epoch, _INT16),
        ("base sequence", header.base_sequence, _INT32),
    ):
        # None stands for a value that is derived from the records.
        if value is not None:
            yield from _of_number(name, value, numbers)


def _of_numbers(name: str, column: Any, base: Any, distances: range) -> Iterator[str]:
    """Check the numbers of a column, and their distances from the base: by default the first."""
    for number, value in enumerate(column):
        place = f"{name} of record {number}"
        yield from _of_number(place, value, _INT64)
        base = value if base is None else base
        yield from _of_number(f"distance of the {place} from the base", value - base, distances)


def _of_number(name: str, value: Any, numbers: range) -> Iterator[str]:
    if not isinstance(value, int):
        yield f"the {name} is {value!r:.60}, not an int"
    elif not numbers.start <= value < numbers.stop:
        yield f"the {name} is {value}, not from {numbers.start} to {numbers.stop - 1}"


def _of_bytes(name: str, value: Any) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, _BYTES):
        yield f"the {name} is {value!r:.60}, not bytes"
    elif memoryview(value).nbytes not in _POSITIVE_INT32 or memoryview(value).itemsize != 1:
        yield f"the {name} has {len(value)} elements of {memoryview(value).itemsize} bytes"


def _of_headers(place: str, headers: Any) -> Iterator[str]:
    if not isinstance(headers, tuple | list):
        yield f"the headers of {place} are {headers!r:.60}, not pairs of key and value"
        return
    for header in headers:
        if not isinstance(header, tuple | list) or len(header) != 2:
            yield f"a header of {place} is {header!r:.60}, not a pair of key and value"
            return
        key, value = header
        if not isinstance(key, str):
            yield f"a header's key of {place} is {key!r:.60}, not text"
        elif any("\ud800" <= letter <= "\udfff" for letter in key):
            yield f"a header's key of {place} is {key!r:.60}, which UTF-8 cannot encode"
        yield from _of_bytes(f"value of a header of {place}", value)
