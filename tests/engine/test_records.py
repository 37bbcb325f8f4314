"""What the engine makes of batches is what Python makes of them."""

from __future__ import annotations

import gc
import random
from collections import Counter

import pytest

from kraftwire import engine
from kraftwire.records import Record
from kraftwire.records.cursor import _count_within
from kraftwire.wire.varint import varint
from tests.engine.batches import search_batches
from tests.fuzz.outcome import seed

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

# `make proof` searches on.
CASES = 5_000


def _read(data: bytes, count: int, *, end: int | None = None, row: type = Record) -> list[Record]:
    end = len(data) if end is None else end
    rows, _ = engine.core.read_records(row, data, 0, end, count, 0, 0, None, -1)
    return list(rows)


def test_both_engines_agree_on_random_batches() -> None:
    """Whole, damaged or with odd values: the engine may fall back, but never decide differently."""
    counts: Counter[str] = Counter()
    number = seed()
    while counts["damaged batches"] < CASES:
        counts += search_batches(random.Random(number))
        number += 1
    assert counts["whole batches"] > 0.3 * counts["batches"]
    assert counts["damaged batches kept"] > 0.05 * counts["damaged batches"]
    # Of the damaged batches the engine keeps those that can still be read.
    assert counts["whole columns"] < counts["columns kept"] < 2 * counts["whole columns"]


@pytest.mark.parametrize("count", [-1, 2, 2**31, 2**60])
def test_a_count_that_the_bytes_cannot_hold_takes_no_memory(count: int) -> None:
    """Eight bytes are taken for each of `count` before the first record is read."""
    with pytest.raises(ValueError, match="Python has to read"):
        _read(bytes.fromhex("0c000000010100"), count)


@pytest.mark.parametrize("end", [-1, 8, 2**62])
def test_records_outside_the_data_are_not_looked_at(end: int) -> None:
    """The caller's numbers come from a header that anybody may have written."""
    with pytest.raises(ValueError, match="Python has to read"):
        _read(bytes.fromhex("0c000000010100"), 1, end=end)


def test_rows_of_a_class_with_room_for_more_are_refused() -> None:
    """The garbage collector does not track rows, so they must not hold anything that can change."""

    class Loose(tuple[object, ...]):
        """Its objects have a dictionary."""

    with pytest.raises(TypeError, match="with no slots"):
        _read(bytes.fromhex("0c000000010100"), 1, row=Loose)
    with pytest.raises(TypeError, match="derived from tuple"):
        _read(bytes.fromhex("0c000000010100"), 1, row=dict)


def test_rows_are_not_tracked() -> None:
    """A collection that looks at each of a million rows takes longer than reading them."""
    (row,) = _read(bytes.fromhex("0c000000010100"), 1)
    assert row == Record(0, 0, None, None)
    assert not gc.is_tracked(row)


def test_columns_of_different_lengths_are_not_written() -> None:
    """The engine reads each column by the length of the first."""
    with pytest.raises(ValueError, match="Python has to write"):
        engine.core.write_records(2, [0, 0], [None, None], [None], None, None, 0, 0)
    with pytest.raises(ValueError, match="Python has to split"):
        engine.core.split_records([(1, 2)])


def test_both_engines_count_the_records_within_so_many_bytes() -> None:
    """For any bytes: they decide how many records are held, never what is read."""
    random_ = random.Random(seed())
    for _ in range(500):
        sizes = [random_.choice((6, 6, 70, 300)) for _ in range(random_.randrange(1, 12))]
        data = b"".join(varint(size) + bytes(size) for size in sizes)
        if random_.random() < 0.5:
            data = data[: random_.randrange(len(data))] + random_.randbytes(9)
        for size in (0, 1, 50, 400, 1 << 20):
            arguments = data, 0, len(data), 8, size
            assert engine.core.count_within(*arguments) == _count_within(*arguments)
