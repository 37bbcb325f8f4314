"""Runs of records of varied keys and values are read as the reader that explains would."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kraftwire.errors import WireError
from kraftwire.records import BatchHeader, Record, build_batch, read_batches
from kraftwire.records.cursor import RecordCursor
from kraftwire.records.explain import read_records
from kraftwire.records.record import Section
from kraftwire.records.varied import read_varied
from kraftwire.records.words import NULL_LENGTH, length_words, size_words, words
from kraftwire.wire.varint import read_varint

COUNT = 90
KEY_SIZES = {"one": (10, 10), "some": (0, 63), "most": (0, 70), "none": None}
STAMPS = (None, 1_760_000_000_777)


def section_of(rows: list[Record], sequence: int = -1) -> Section:
    (batch,) = read_batches(build_batch(rows, BatchHeader(base_sequence=sequence)))
    return batch.section()  # type: ignore[union-attr]


def rows_of(source: random.Random, keys: str, step: int) -> list[Record]:
    """Records with timestamps and offsets that are `step` apart, and a few nulls."""
    sizes = KEY_SIZES[keys]
    rows = []
    for index in range(COUNT):
        key = None if sizes is None else source.randbytes(source.randint(*sizes))
        value = source.randbytes(source.choice((0, 1, 30, 63, 64, 65, 200)))
        time = 1_760_000_000_000 + index * step
        rows.append(Record(index * step, time, key, source.choice((value, None))))
    return rows


@pytest.mark.parametrize("keys", KEY_SIZES)
@pytest.mark.parametrize("step", [1, 3, 500])
@pytest.mark.parametrize("sequence", [-1, 2**31 - 40])
def test_a_run_is_read_as_far_as_it_goes(keys: str, step: int, sequence: int) -> None:
    """It ends where the deltas become longer, which with small steps leaves most of it."""
    whole = section_of(rows_of(random.Random(1), keys, step), sequence)
    for section in (replace(whole, append_time=stamp) for stamp in STAMPS):
        taken, position = 0, section.start
        for _ in range(COUNT):
            run, end = read_varied(section, position, COUNT - taken)
            # One that is left out, for its long key, is read by others.
            count = len(run) or 1
            expected, after = read_records(section, position, taken, count)
            assert (run, end) == ((expected, after) if run else ([], position))
            taken, position = taken + count, after
            if taken == COUNT:
                break
        assert position == section.end


def test_most_records_are_in_few_runs() -> None:
    """What a run leaves out is read at half the speed."""
    section = section_of(rows_of(random.Random(2), "some", 1))
    first, position = read_varied(section, section.start, COUNT)
    second, end = read_varied(section, position, COUNT - len(first))
    # A delta of 64 is the first of two bytes.
    assert (len(first), len(first + second), end) == (64, COUNT, section.end)


@pytest.mark.parametrize("keys", ["one", "some", "none"])
def test_damage_ends_a_run(keys: str) -> None:
    """Whatever a run has is what the reader that explains finds there, too."""
    source = random.Random(3)
    whole = section_of(rows_of(source, keys, 1))
    ends = set()
    for _ in range(3_000):
        data = bytearray(whole.data)
        for _ in range(source.randint(1, 2)):
            data[source.randrange(whole.start, whole.end)] = source.choice(
                (0, 1, 2, 0x7F, 0x80, 0x81, 0xFF, source.randrange(256))
            )
        stamp = source.choice(STAMPS)
        section = replace(whole, data=bytes(data), append_time=stamp)
        run, end = read_varied(section, section.start, COUNT)
        expected, after = read_records(section, section.start, 0, len(run))
        assert (run, end) == (expected, after)
        ends.add(len(run))
    assert len(ends) > 30


def test_bytes_that_end_early_end_a_run() -> None:
    """Wherever they end: `struct` refuses to read beyond them, and a slice would be short."""
    whole = section_of(rows_of(random.Random(4), "some", 1))
    for size in range(whole.start, whole.end):
        section = replace(whole, data=whole.data[:size])
        run, end = read_varied(section, section.start, COUNT)
        assert end <= size
        assert read_records(section, section.start, 0, len(run)) == (run, end)
        with pytest.raises(WireError):
            read_records(section, end, len(run), COUNT - len(run))


def test_tables_hold_every_varint_of_two_bytes() -> None:
    """A wrong entry would show in one record of thousands."""
    bytes_, pairs, sizes, lengths = words(1), words(2), size_words(), length_words()
    for word in range(0x1_0000):
        data = word.to_bytes(2)
        if data[0] >= 0x80 and data[1] >= 0x80:
            assert pairs[word] is sizes[word] is lengths[word] is None
            continue
        value, end = read_varint(data, 0)
        is_usual_null = value == -1 and end == 1
        assert lengths[word] == (value if value >= 0 else NULL_LENGTH if is_usual_null else None)
        assert pairs[word] == (value if end == 2 else None)
        if word >= 0x80:
            assert sizes[word] == pairs[word]
    singles = [read_varint(bytes([byte]), 0)[0] for byte in range(0x80)]
    assert bytes_ == singles + [None] * 0x80
    assert sizes[:0x80] == singles


def test_a_delta_of_one_byte_is_not_one_of_two() -> None:
    """A zero before it would pass for the first half of a word, and all fields shift by one."""
    # Length, attributes, time 75 in two bytes, offset 1, empty key, empty value, no headers.
    wide = bytes.fromhex("0e 00 9601 02 00 00 00")
    # Time 0, offset 2, empty key, empty value, one header without name and value.
    narrow = bytes.fromhex("10 00 00 04 00 00 02 00 00")
    data = wide + narrow
    whole = section_of(rows_of(random.Random(5), "one", 1))
    section = replace(whole, data=data, start=0, end=len(data))
    read, _ = read_records(section, 0, 0, 2)
    assert read[1].headers == (("", b""),)
    assert RecordCursor(section).take(2) == read
    assert read_varied(section, 0, 2) == (read[:1], len(wide))
