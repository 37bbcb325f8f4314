"""Records of plain values: the same bytes as the general builder's, in less time."""

from __future__ import annotations

import random

import pytest

from kraftwire.records.builder import build_columns
from kraftwire.records.header import HEADER_SIZE
from kraftwire.records.plain import plain_records, plain_size


def _built(values: list[bytes]) -> bytes:
    return build_columns([0] * len(values), [None] * len(values), values)[HEADER_SIZE:]


@pytest.mark.parametrize("count", [1, 7, 8, 63, 64, 65, 8191, 8192, 8193])
def test_records_are_those_of_the_general_builder(count: int) -> None:
    """Offset deltas grow by a byte at 64 and at 8192, and many records are made in columns."""
    source = random.Random(count)
    values = [source.randbytes(source.randint(1, 200)) for _ in range(count)]
    assert plain_records(values) == _built(values)


@pytest.mark.parametrize("size", [1, 56, 57, 63, 64, 8183, 8192, 70_000])
def test_lengths_of_every_width_are_right(size: int) -> None:
    """The record's length counts the bytes of the value's length too."""
    for values in ([bytes(size)], [bytes(size)] * 70, [bytes(size), b"x"] * 35):
        assert plain_records(values) == _built(values)


@pytest.mark.parametrize("before", [0, 1, 60, 64, 8190, 8192, 9000])
def test_sizes_are_known_without_making_the_bytes(before: int) -> None:
    """A batch can then be filled to the byte; a record's size depends on those before it."""
    values = [bytes([1 + number % 200]) * (1 + number % 90) for number in range(9100)]
    rest = len(plain_records(values)) - len(plain_records(values[:before]))
    assert plain_size(values[before:], before) == rest


def test_more_deltas_than_are_kept_are_still_written() -> None:
    """The cache for the next batch is bounded; a batch of short values has more."""
    values = [b"v"] * 135_000
    assert plain_records(values) == _built(values)
