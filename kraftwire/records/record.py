"""One record, with the same fields for every batch format, and the records part of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat, starmap
from typing import NamedTuple

NO_SEQUENCE = -1

# Sequences wrap around to 0 after the largest 32-bit integer.
SEQUENCE_MASK = 0x7FFFFFFF

# Length, attributes, two deltas, null key, null value, no headers: one byte each.
RECORD_SIZE_MIN = 7

Headers = tuple[tuple[str, bytes | None], ...]
NO_HEADERS: Headers = ()


class Record(NamedTuple):
    """A record of a batch.

    Units: `timestamp` in milliseconds; it is the batch's own with LogAppendTime, and -1 in the
    oldest format. `sequence` is -1 unless a producer numbered the batch.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = NO_HEADERS
    sequence: int = NO_SEQUENCE


Row = tuple[int, int, bytes | None, bytes | None, Headers, int]


def to_records(rows: Iterable[Row]) -> Iterator[Record]:
    """Make records of rows, at the speed of C."""
    # `map` would make a tuple of the arguments for each row, where this uses one for all.
    return starmap(tuple.__new__, zip(repeat(Record), rows))  # noqa: RUF058


@dataclass(slots=True)
class Section:
    """The records part of a magic 2 batch, decompressed, and the header's facts about all records.

    The records are `data[start:end]`; `append_time` is the timestamp of all of them if the
    broker stamped the batch, else None; `base_sequence` is -1 without sequences. `origin` is
    where `data[0]` lies in the caller's buffer, or None if the data was decompressed; `position`
    is where the batch lies there. A record may have `headers_max` headers.
    """

    data: bytes
    start: int
    end: int
    base_offset: int
    base_timestamp: int
    append_time: int | None
    base_sequence: int
    origin: int | None
    position: int
    headers_max: int
