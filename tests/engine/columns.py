"""Random batches, whole and damaged, through the engine's columns and Python's reader."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from itertools import pairwise
from typing import Any

from kraftwire import engine
from kraftwire.records import read_batches
from kraftwire.records.batch import RecordBatch
from kraftwire.records.compression import CODEC_MASK
from kraftwire.records.header import COUNT_FIELD, CRC_START, HEADER_SIZE, LOG_OVERHEAD, SIZE_FIELD
from tests.support.messages.mutations import mutated

_BYTES_MAX = 1 << 20
_DAMAGED = 12

LogPlace = tuple[int, int, int]


def search_columns(source: random.Random, batches: list[bytes]) -> Counter[str]:
    """Compare the columns of batches, with damaged ones among them, with the reader's rows.

    Returns counts as `search_messages` does. Raises: AssertionError at the first difference.
    """
    counts: Counter[str] = Counter()
    for _ in range(_DAMAGED):
        given = [_given(source, data, counts) for data in batches]
        rows_max = source.choice((1, 2, 3, 7, 100))
        bytes_max = source.choice((1, 50, 1000, _BYTES_MAX))
        try:
            counts["columns kept"] += _compare(given, rows_max, bytes_max)
        except BaseException as error:
            shown = [(header.hex(), section.hex()[:4000]) for header, section, _ in given]
            error.add_note(f"{rows_max} rows, {bytes_max} bytes of {shown}")
            raise
    return counts


_Given = tuple[bytes, bytes, bool]


def _given(source: random.Random, data: bytes, counts: Counter[str]) -> _Given:
    """Header and records of a batch, perhaps damaged, and whether the records are separate."""
    (batch,) = read_batches(data)
    assert isinstance(batch, RecordBatch)
    section = batch.section()
    payload, count = section.data[section.start : section.end], batch.count
    if source.random() < 0.6:
        payload = mutated(payload[:4000], source)
        count = max(-1, count + source.choice((0, 0, 0, 1, -1)))
        counts["damaged columns"] += 1
    else:
        counts["whole columns"] += 1
    header = bytearray(data[:HEADER_SIZE])
    is_apart = source.random() < 0.3
    attributes = int.from_bytes(header[CRC_START : CRC_START + 2]) & ~CODEC_MASK
    header[CRC_START : CRC_START + 2] = attributes.to_bytes(2)
    header[COUNT_FIELD : COUNT_FIELD + 4] = count.to_bytes(4, signed=True)
    size = HEADER_SIZE - LOG_OVERHEAD + (0 if is_apart else len(payload))
    header[SIZE_FIELD : SIZE_FIELD + 4] = size.to_bytes(4)
    return bytes(header), payload, is_apart


def _compare(given: list[_Given], rows_max: int, bytes_max: int) -> int:
    """How many batches the engine has read itself."""
    parts, positions = [], []
    sections: list[bytes | None] = []
    for header, payload, is_apart in given:
        positions.append(sum(map(len, parts)))
        parts.append(header if is_apart else header + payload)
        sections.append(payload if is_apart else None)
    buffer = b"".join(parts)
    found: list[list[Any]] = [[] for _ in given]
    odd: set[int] = set()
    place: LogPlace = (0, 0, 0)
    while place[0] < len(given):
        before = place
        place, is_odd, rows = columns_of(
            buffer, positions, sections, place, rows_max=rows_max, bytes_max=bytes_max
        )
        for number, *row in rows:
            found[number].append(tuple(row))
        assert len(rows) <= rows_max
        if is_odd:
            odd.add(place[0])
            place = (place[0] + 1, 0, 0)
        assert place > before, "no end"
    for number, batch in enumerate(given):
        _same(batch, found[number], is_odd=number in odd)
    return len(given) - len(odd)


def _same(given: _Given, found: list[Any], *, is_odd: bool) -> None:
    """Compare the rows of a batch with the reader's; an odd batch has only the first of them."""
    header, payload, _ = given
    size = HEADER_SIZE - LOG_OVERHEAD + len(payload)
    whole = header[:SIZE_FIELD] + size.to_bytes(4) + header[LOG_OVERHEAD:] + payload
    batch = RecordBatch(whole)
    before = engine.name()
    try:
        engine.use(engine.PYTHON)
        rows, damage = batch.salvage()
    finally:
        engine.use(before)
    read = [(*row[:4], row.headers, row.sequence) for row in rows]
    if is_odd:
        assert found == read[: len(found)]
    else:
        assert damage is None, f"only the engine reads it: {damage}"
        assert found == read
    native = engine.core.check_records(whole, HEADER_SIZE, len(whole), batch.count)
    # Without a count nothing reads the bytes, and the function is not called.
    assert not native or damage is None, f"only the engine takes it: {damage}"
    assert native or is_odd or not batch.count, "what makes columns can be read"


def columns_of(
    buffer: bytes,
    positions: list[int],
    sections: list[bytes | None],
    place: LogPlace = (0, 0, 0),
    *,
    rows_max: int = 1000,
    bytes_max: int = _BYTES_MAX,
) -> tuple[LogPlace, bool, list[Any]]:
    """Where reading has ended, whether Python has to continue, and rows: number, then the cells."""
    place, is_odd, rows, columns = engine.core.read_columns(
        buffer, array("q", positions), array("i", range(len(positions))), sections, place,
        rows_max, bytes_max,
    )  # fmt: skip
    number, offset, timestamp, sequence, key, value, headers = columns
    fixed = zip(("i", "q", "q", "i"), (number, offset, timestamp, sequence), strict=True)
    numbers = [memoryview(data).cast(code).tolist() for code, data in fixed]
    assert {len(column) for column in numbers} == {rows}
    lists: list[Any] = [()] * rows
    if headers is not None:
        ends, names, values, count = headers
        pairs = list(zip(_texts(names, count), cells(values, count), strict=True))
        stops = memoryview(ends).cast("i").tolist()
        assert len(stops) == rows + 1
        assert stops[-1] == count
        lists = [tuple(pairs[a:b]) for a, b in pairwise(stops)]
    made = zip(*numbers[:3], cells(key, rows), cells(value, rows), lists, numbers[3], strict=True)
    return place, is_odd, list(made)


def cells(parts: tuple[bytes | None, bytes, bytes], count: int) -> list[bytes | None]:
    """The cells of a column of bytes, as Arrow's format has them."""
    present, ends, data = parts
    stops = memoryview(ends).cast("i").tolist()
    assert len(stops) == count + 1
    assert stops[0] == 0
    assert stops[-1] == len(data)
    assert present is None or len(present) == (count + 7) // 8
    return [
        data[stops[at] : stops[at + 1]]
        if present is None or present[at // 8] >> at % 8 & 1
        else None
        for at in range(count)
    ]


def _texts(parts: tuple[bytes | None, bytes, bytes], count: int) -> list[str]:
    found = cells(parts, count)
    assert None not in found
    return [cell.decode() for cell in found if cell is not None]

