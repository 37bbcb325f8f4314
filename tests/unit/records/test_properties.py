"""Whatever is built is read back, by every way of reading."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftwire.records import BatchHeader, Record, build_batch, read_batches
from kraftwire.records.columns import Unusual
from kraftwire.records.cursor import RecordCursor, _read_rows, read_records

pytestmark = pytest.mark.slow

payloads = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3)
times = st.integers(0, 2**62) | st.integers(1_700_000_000_000, 1_700_000_010_000)
gaps = st.integers(1, 3) | st.integers(1, 20_000)


@st.composite
def mixed_rows(draw: st.DrawFn) -> list[Record]:
    """Records of all sizes with gaps between them."""
    offset = draw(st.integers(0, 2**62))
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        fields = draw(st.tuples(times, payloads, payloads, headers.map(tuple)))
        rows.append(Record(offset, *fields))
        offset += draw(gaps)
    return rows


@st.composite
def even_rows(draw: st.DrawFn) -> list[Record]:
    """Long runs of records of equal lengths, with something else between them."""
    base = draw(st.integers(0, 2**40))
    rows: list[Record] = []
    for _ in range(draw(st.integers(1, 3))):
        time = draw(st.integers(0, 2**41))
        step = draw(st.sampled_from([0, 1, 40, 9000]))
        key = draw(st.none() | st.binary(max_size=80))
        value = draw(st.none() | st.binary(max_size=150))
        for index in range(draw(st.integers(1, 150))):
            rows.append(Record(base + len(rows), time + index * step, key, value))
        if draw(st.booleans()):
            rows.append(Record(base + len(rows), 0, None, b"between", (("h", None),)))
    return rows


@st.composite
def varied_rows(draw: st.DrawFn) -> list[Record]:
    """Many records of which each has its own key, value and, now and then, headers."""
    source = draw(st.randoms(use_true_random=False))
    keys, odd = draw(st.sampled_from([8, 40, 90])), draw(st.sampled_from([0.0, 0.02, 0.5]))
    time, offset, rows = draw(st.integers(0, 2**41)), draw(st.integers(0, 2**40)), []
    for _ in range(draw(st.integers(20, 250))):
        key = source.randbytes(source.randint(keys // 4, keys))
        value = None if source.random() < odd else source.randbytes(source.randint(0, 200))
        headers = (("h", None), ("g", b"1")) if source.random() < odd else ()
        rows.append(Record(offset, time, key, value, headers))
        time, offset = time + source.randint(-5, 100), offset + source.choice((1, 1, 2, 70))
    return rows


def with_sequences(rows: list[Record], header: BatchHeader) -> list[Record]:
    """The records as they come back from a batch with this header."""
    if header.base_sequence < 0:
        return rows
    base = rows[0].offset
    return [
        row._replace(sequence=(header.base_sequence + row.offset - base) % 2**31) for row in rows
    ]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    rows=mixed_rows() | even_rows() | varied_rows(),
    compression=st.sampled_from(["none", "none", "gzip", "snappy", "lz4", "zstd"]),
    sequence=st.just(-1) | st.integers(0, 2**31 - 1),
)
def test_what_is_built_is_read_back(rows: list[Record], compression: str, sequence: int) -> None:
    """With all codecs, whether the records are alike or not."""
    header = BatchHeader(compression=compression, base_sequence=sequence)
    (batch,) = read_batches(build_batch(rows, header))
    assert batch.is_valid
    assert batch.records() == with_sequences(rows, header)
    assert list(batch.iter_records()) == batch.records()
    assert batch.last_offset == rows[-1].offset


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    rows=mixed_rows() | even_rows() | varied_rows(),
    sequence=st.just(-1) | st.integers(0, 2**31 - 1),
)
def test_all_readers_agree(rows: list[Record], sequence: int) -> None:
    """Columns, one by one, and the slow reader that explains; only that may not give up."""
    (batch,) = read_batches(build_batch(rows, BatchHeader(base_sequence=sequence)))
    section = batch.section()  # type: ignore[union-attr]
    slow = read_records(section, section.start, 0, len(rows))
    assert RecordCursor(section).take(len(rows)) == slow[0]
    with suppress(Unusual):
        assert _read_rows(section, section.start, len(rows)) == slow


@settings(max_examples=60, deadline=None, derandomize=True)
@given(rows=even_rows() | varied_rows(), sizes=st.lists(st.integers(1, 90), min_size=1, max_size=9))
def test_a_cursor_may_take_any_number_at_a_time(rows: list[Record], sizes: list[int]) -> None:
    """Chunks must not depend on where runs begin and end."""
    (batch,) = read_batches(build_batch(rows))
    cursor = RecordCursor(batch.section())  # type: ignore[union-attr]
    taken: list[Record] = []
    while len(taken) < len(rows):
        size = sizes[len(taken) % len(sizes)]
        taken += cursor.take(min(size, len(rows) - len(taken)))
        assert cursor.index == len(taken)
    assert taken == rows
