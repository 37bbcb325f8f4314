"""Reads the records of a magic 2 batch slowly, with every check, and names the wrong byte.

This module accepts what Java accepts: any negative length of a key or value is a null, sums wrap
around at 64 bits, varints may be longer than necessary.

Source: Kafka's `DefaultRecord` and `ByteUtils`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.errors import WireError
from kraftwire.records.decompression_limit import BombError
from kraftwire.records.record import (
    NO_HEADERS,
    NO_SEQUENCE,
    SEQUENCE_MASK,
    Headers,
    Record,
    Section,
)
from kraftwire.wire.varint import read_varint

__all__ = ["batch_error", "iter_records", "read_records"]

# A header has at least the length of its name and the length of its value.
_HEADER_SIZE_MIN = 2


def read_records(
    section: Section, position: int, index: int, count: int
) -> tuple[list[Record], int]:
    """Read `count` records, the first of which has this index; return them and where they end.

    Raises: WireError naming record, field and byte.
    """
    rows = []
    for record, end in iter_records(section, position, index, count):
        rows.append(record)
        position = end
    return rows, position


def iter_records(
    section: Section, position: int, index: int, count: int
) -> Iterator[tuple[Record, int]]:
    """Yield the records one by one, each with the position after it.

    Raises: WireError at the first damaged one; those before it are good.
    """
    for number in range(index, index + count):
        record, position = _Reader(section, position, f"records[{number}]").record()
        yield record, position


def batch_error(
    section: Section,
    problem: str,
    *,
    at: int,
    path: str = "",
    kind: type[WireError] = WireError,
    **found: str,
) -> WireError:
    """Return an error at a place of a section, with a text that also fits decompressed data."""
    if section.origin is None:
        problem = f"byte {at} of the decompressed records: {problem}"
        offset = section.position
    else:
        offset = section.origin + at
    return kind(problem, message="RecordBatch", version=2, path=path, offset=offset, **found)


class _Reader:
    """Reads the fields of one record, in order."""

    def __init__(self, section: Section, position: int, path: str) -> None:
        self._section = section
        self._data = section.data
        self._position = position
        self._end = section.end
        self._path = path

    def record(self) -> tuple[Record, int]:
        section = self._section
        start = self._position
        size = self._varint("length")
        if not 0 <= size <= self._end - self._position:
            have = f"0 to {self._end - self._position}"
            raise self._error("record length out of range", "length", start, have, size)
        self._end = self._position + size
        self._take(1, "attributes")
        time_delta = self._varint("timestamp_delta", 64)
        offset_delta = self._varint("offset_delta")
        key = self._bytes("key")
        value = self._bytes("value")
        headers = self._headers()
        if self._position != self._end:
            left = f"{self._end - self._position} bytes left"
            raise self._error(
                "a record is longer than its fields", "", self._position, "its end", left
            )
        timestamp = section.append_time
        if timestamp is None:
            timestamp = _int64(section.base_timestamp + time_delta)
        sequence = NO_SEQUENCE
        if section.base_sequence >= 0:
            sequence = section.base_sequence + offset_delta & SEQUENCE_MASK
        offset = _int64(section.base_offset + offset_delta)
        return Record(offset, timestamp, key, value, headers, sequence), self._position

    def _varint(self, name: str, bits: int = 32) -> int:
        start = self._position
        try:
            value, end = read_varint(self._data, start, bits)
        except WireError as error:
            raise self._error(
                error.problem, name, start, error.expected, error.found
            ) from None
        if end > self._end:
            raise self._error("the varint leads outside", name, start, *self._room(end - start))
        self._position = end
        return value

    def _take(self, size: int, name: str) -> bytes:
        start = self._position
        if size > self._end - start:
            raise self._error("the field leads outside", name, start, *self._room(size))
        self._position += size
        return self._data[start : start + size]

    def _bytes(self, name: str) -> bytes | None:
        size = self._varint(f"{name}_length")
        return None if size < 0 else self._take(size, name)

    def _headers(self) -> Headers:
        start = self._position
        count = self._varint("headers_count")
        count_max = (self._end - self._position) // _HEADER_SIZE_MIN
        if not 0 <= count <= count_max:
            raise self._error(
                "number of headers out of range", "headers_count", start, f"0 to {count_max}", count
            )
        if count > self._section.headers_max:
            raise batch_error(
                self._section,
                "the headers of a record are too many for the bytes of its batch",
                path=f"{self._path}.headers_count",
                at=start,
                kind=BombError,
                expected=f"at most {self._section.headers_max}",
                found=str(count),
            )
        headers = tuple(self._header(f"headers[{index}]") for index in range(count))
        return headers or NO_HEADERS

    def _header(self, path: str) -> tuple[str, bytes | None]:
        start = self._position
        size = self._varint(f"{path}.key_length")
        if size < 0:
            raise self._error("a header has no key", f"{path}.key_length", start, "0 or more", size)
        # As in Java, invalid UTF-8 becomes replacement characters.
        key = self._take(size, f"{path}.key").decode("utf-8", "replace")
        return key, self._bytes(f"{path}.value")

    def _room(self, need: int) -> tuple[str, str]:
        return f"{need} bytes", f"{max(0, self._end - self._position)} left of the record"

    def _error(
        self, problem: str, name: str, at: int, expected: str, found: object
    ) -> WireError:
        path = f"{self._path}.{name}" if name else self._path
        return batch_error(
            self._section, problem, path=path, at=at, expected=expected, found=str(found)
        )


def _int64(value: int) -> int:
    """Wrap a sum as a Java long does."""
    return (value + 2**63) % 2**64 - 2**63
