"""Columns of the engine in C: what callers may request, and what the engine must not trust."""

from __future__ import annotations

import random
import tracemalloc
from array import array

import pytest

from kraftwire import engine
from kraftwire.records import BatchHeader, Record, build_batch
from kraftwire.records.header import COUNT_FIELD, HEADER_SIZE, MAGIC_FIELD, SIZE_FIELD
from tests.engine.columns import columns_of
from tests.fuzz.outcome import seed

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

ROWS = [
    Record(5, 100, b"k", None, (("a", b"1"), ("ключ", None))),
    Record(6, 90, None, b"", ()),
    Record(9, 101, b"", b"v" * 300, (("", b""),)),
]
BATCH = build_batch(ROWS, BatchHeader(base_sequence=7, producer_id=1))


def _rows(found: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [tuple(row[1:]) for row in found]


def test_cells_are_those_of_the_records() -> None:
    """Nulls, no bytes, headers, sequences, offsets with a gap, a timestamp that goes back."""
    place, is_odd, rows = columns_of(BATCH, [0], [None])
    assert (place, is_odd) == ((1, 0, 0), False)
    sequences = (7, 8, 11)
    expected = [(*row[:5], number) for row, number in zip(ROWS, sequences, strict=True)]
    assert _rows(rows) == expected


def test_reading_stops_at_a_bound_and_goes_on() -> None:
    """Also inside a batch; a record that is longer than the bound is still read."""
    whole = columns_of(BATCH, [0], [None])[2]
    for rows_max, bytes_max in ((1, 1 << 20), (1000, 1)):
        place, found = (0, 0, 0), []
        for _ in ROWS:
            place, is_odd, rows = columns_of(
                BATCH, [0], [None], place, rows_max=rows_max, bytes_max=bytes_max
            )
            assert (len(rows), is_odd) == (1, False)
            found += rows
        assert (place, found) == ((1, 0, 0), whole)


def test_a_damaged_batch_leaves_no_trace() -> None:
    """The cells read from it are removed, including the bits of its nulls."""
    source = random.Random(seed())
    for _ in range(50):
        good = [
            build_batch([Record(n, 0, source.choice((None, b"k")), b"v") for n in range(count)])
            for count in (source.randrange(1, 20), source.randrange(1, 20))
        ]
        bad = bytearray(build_batch([Record(n, 0, b"key", None) for n in range(9)]))
        bad[-2] ^= 0x7F
        buffer = good[0] + bytes(bad) + good[1]
        positions = [0, len(good[0]), len(good[0]) + len(bad)]
        place, is_odd, before = columns_of(buffer, positions, [None] * 3)
        assert (place, is_odd) == ((1, 0, 0), True)
        assert before == columns_of(good[0], [0], [None])[2]
        _, is_odd, after = columns_of(buffer, positions, [None] * 3, (2, 0, 0))
        assert not is_odd
        assert _rows(after) == _rows(columns_of(good[1], [0], [None])[2])


@pytest.mark.parametrize("position", [-1, -(2**63), 1, len(BATCH) - 60, len(BATCH), 2**62])
def test_a_header_outside_of_the_buffer_is_not_looked_at(position: int) -> None:
    """The same holds for a place without a header."""
    assert columns_of(BATCH, [position], [None])[1:] == (True, [])


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (SIZE_FIELD, b"\x7f\xff\xff\xff"),
        (SIZE_FIELD, b"\xff\xff\xff\xff"),
        (SIZE_FIELD, b"\x00\x00\x00\x30"),
        (MAGIC_FIELD, b"\x01"),
        (COUNT_FIELD, b"\x7f\xff\xff\xff"),
        (COUNT_FIELD, b"\xff\xff\xff\xff"),
        (22, b"\x04"),
        (0, b"\x7f\xff\xff\xff\xff\xff\xff\xff"),
        (27, b"\x80\x00\x00\x00\x00\x00\x00\x00"),
    ],
)
def test_a_header_that_cannot_be_right_is_left_to_python(at: int, value: bytes) -> None:
    """Lengths and counts that the bytes cannot hold, another magic, a codec, bases at the edge."""
    changed = bytearray(BATCH)
    changed[at : at + len(value)] = value
    assert columns_of(bytes(changed), [0], [None])[1:] == (True, [])


def test_a_count_of_zero_gives_no_rows() -> None:
    """As in Python, even if bytes follow the header."""
    changed = bytearray(BATCH)
    changed[COUNT_FIELD : COUNT_FIELD + 4] = bytes(4)
    assert columns_of(bytes(changed), [0], [None]) == ((1, 0, 0), False, [])


@pytest.mark.parametrize(
    ("place", "rows_max", "bytes_max"),
    [
        ((-1, 0, 0), 1, 1),
        ((2, 0, 0), 1, 1),
        ((0, -1, 0), 1, 1),
        ((0, 0, -1), 1, 1),
        ((0, 0, 0), 0, 1),
        ((0, 0, 0), 1, 0),
        ((0, 0, 0), 2**40, 1),
        ((0, 0, 0), 1, 2**40),
    ],
)
def test_numbers_that_do_not_fit_together_are_refused(
    place: tuple[int, int, int], rows_max: int, bytes_max: int
) -> None:
    """They are our own, so this is an error and not a case for Python."""
    with pytest.raises(ValueError, match="do not fit together"):
        columns_of(BATCH, [0], [None], place, rows_max=rows_max, bytes_max=bytes_max)


def test_arrays_of_different_lengths_are_refused() -> None:
    """Positions, numbers and sections have one element for each batch."""
    for positions, numbers, sections in (([0], [0, 1], [None]), ([0], [0], []), ([], [0], [None])):
        with pytest.raises(ValueError, match="do not fit together"):
            engine.core.read_columns(
                BATCH, array("q", positions), array("i", numbers), sections, (0, 0, 0), 1, 1
            )


@pytest.mark.parametrize("place", [(0, 4, 0), (0, 0, 2**40), (0, 2, 9)])
def test_a_place_where_no_record_begins_is_left_to_python(place: tuple[int, int, int]) -> None:
    """A place comes from an earlier call; any other is noticed at the end at the latest."""
    assert columns_of(BATCH, [0], [None], place)[1:] == (True, [])


@pytest.mark.parametrize("count", [-1, 4, 2**31 - 1])
def test_a_section_is_checked_by_its_count(count: int) -> None:
    """Python explains the bytes that are left over or missing."""
    check = engine.core.check_records
    end = len(BATCH)
    assert check(BATCH, HEADER_SIZE, end, 3) is True
    assert check(BATCH, HEADER_SIZE, end, count) is False
    assert check(BATCH, HEADER_SIZE, end - 1, 3) is False
    assert check(BATCH, -1, end, 3) is False
    assert check(BATCH, HEADER_SIZE, end + 1, 3) is False


def test_columns_are_not_made_before_there_are_rows() -> None:
    """A header may announce anything; space is reserved by the caller's bounds and the bytes."""
    changed = bytearray(BATCH)
    changed[COUNT_FIELD : COUNT_FIELD + 4] = (2**31 - 1).to_bytes(4)
    tracemalloc.start()
    try:
        columns_of(bytes(changed), [0], [None], rows_max=1000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
