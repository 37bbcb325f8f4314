"""Random batches, whole and damaged, through both engines."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from kraftwire import engine
from kraftwire.errors import WireError
from kraftwire.records import BatchHeader, Record, build_batch, read_batches
from kraftwire.records.batch import RecordBatch
from kraftwire.records.cursor import _read_natively, read_all
from kraftwire.records.record import Section
from tests.engine.columns import search_columns
from tests.support.messages.mutations import mutated

_DAMAGED = 40
# Longer ones take too long to read by columns with many bounds.
_COLUMNS_BYTES = 20_000
_ODD_VALUES: tuple[Any, ...] = (
    "text", 1.5, -1, 2**63, True, bytearray(b"x"), memoryview(b"xyz"), [("name", b"")], [],
    (("name", None, 1),), ((b"name", b""),), (("\udc80", b""),), ("ab",),
)  # fmt: skip
_NAMES = ("", "name", "ключ", "x" * 70)


def search_batches(source: random.Random) -> Counter[str]:
    """Compare the engines on a batch, on damaged copies, on rows with an odd value, and by columns.

    Returns counts as `search_messages` does. Raises: AssertionError at the first difference.
    """
    counts: Counter[str] = Counter()
    rows, header = _rows(source), _header(source)
    data = _same_built(rows, header)
    counts["batches"] += 1
    if not isinstance(data, bytes):
        return counts  # refused by both
    counts["whole batches"] += 1
    (batch,) = read_batches(data)
    assert isinstance(batch, RecordBatch)
    section = batch.section()
    assert _same_read(section, batch.count), "the engine leaves a whole batch to Python"
    payload = section.data[section.start : section.end]
    for _ in range(_DAMAGED if len(payload) < 4000 else 1):
        damaged = mutated(payload, source)
        section.data, section.start, section.end = damaged, 0, len(damaged)
        count = max(0, batch.count + source.choice((0, 0, 0, 1, -1)))
        counts["damaged batches"] += 1
        try:
            counts["damaged batches kept"] += _same_read(section, count)
        except BaseException as error:
            error.add_note(f"{count} records in {damaged.hex()} of {section}")
            raise
    if rows:
        at, field = source.randrange(len(rows)), source.randrange(5)
        values: list[Any] = list(rows[at])
        values[field] = source.choice(_ODD_VALUES)
        _same_built([*rows[:at], Record(*values), *rows[at + 1 :]], header)
        counts["odd batches"] += 1
    if len(data) < _COLUMNS_BYTES:
        counts += search_columns(source, [data, *_neighbours(source)])
    return counts


def _neighbours(source: random.Random) -> list[bytes]:
    """Small batches, to be read after one another."""
    return [
        build_batch(
            [_row(source, at, source.choice((0, 70, -5)), source.choice((0, 5))) for at in range(3)]
        )
        for _ in range(source.choice((0, 1, 2)))
    ]


def _rows(source: random.Random) -> list[Record]:
    """Deltas, sizes and headers of all lengths; mostly few, so that many batches are tried."""
    offset = source.choice((0, 0, 5, 2**31, 2**62, -(2**40)))
    timestamp = source.choice((0, -1, 1_760_000_000_000, -(2**61)))
    is_alike = source.random() < 0.3
    size = source.choice((0, 1, 8, 40, 63, 64, 100))
    rows = []
    for _ in range(source.choice((0, 1, 2, 3, 5, 8, 30, 70))):
        if not is_alike:
            size = source.choice((0, 1, 2, 7, 20, 60, 61, 62, 63, 64, 130, 8192))
        timestamp += source.choice((0, 1, 63, 64, -5, 2**20, 2**33, 2**50))
        rows.append(_row(source, offset, timestamp, size))
        offset += source.choice((1, 1, 1, 1, 2, 200))
    return rows


def _row(source: random.Random, offset: int, timestamp: int, size: int) -> Record:
    key = source.choice((None, b"", b"key", source.randbytes(size % 100)))
    value = None if source.random() < 0.1 else source.randbytes(size)
    headers = tuple(
        (source.choice(_NAMES), source.choice((None, b"", b"value")))
        for _ in range(source.choice((0, 0, 0, 1, 2, 5)))
    )
    return Record(offset, timestamp, key, value, headers)


def _header(source: random.Random) -> BatchHeader:
    return BatchHeader(
        base_offset=source.choice((None, None, -(2**41), 0)),
        last_offset=source.choice((None, None, 2**62)) if source.random() < 0.1 else None,
        append_time=source.choice((None, None, None, 77, -1)),
        base_sequence=source.choice((-1, -1, 0, 5, 2**31 - 2)),
    )


def _same_built(rows: list[Record], header: BatchHeader) -> object:
    """What both engines build from rows: the bytes, or the class and the text of the error."""
    made = []
    before = engine.name()
    try:
        for name in (engine.C, engine.PYTHON):
            engine.use(name)
            try:
                made.append(build_batch(rows, header))
            except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same
                made.append((type(error), str(error)))
    finally:
        engine.use(before)
    assert made[0] == made[1], f"{made[0]!r} and {made[1]!r} of {rows!r:.2000} {header}"
    return made[0]


def _same_read(section: Section, count: int) -> bool:
    """Whether the engine keeps the records. Raises: AssertionError if Python reads others."""
    before = engine.name()
    try:
        engine.use(engine.C)
        native = _read_natively(section, section.start, count)
        if native is None or native[1] != section.end:
            return False
        engine.use(engine.PYTHON)
        try:
            rows = read_all(section, count)
        except WireError as error:
            raise AssertionError(f"only the engine reads it: {error}") from None
    finally:
        engine.use(before)
    assert native[0] == rows, f"{native[0]}\nnot {rows}"
    assert [list(map(type, row)) for row in native[0]] == [list(map(type, row)) for row in rows]
    return True
