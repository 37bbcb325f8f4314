"""Walking over batches: boundaries, cuts, damage, and continuing after it."""

from __future__ import annotations

import pytest

from kraftwire.errors import WireError
from kraftwire.records import BatchHeader, Record, RecordBatch, build_batch, read_batches

ONE = build_batch([Record(7, 1000, b"k", b"v")])
TWO = build_batch([Record(8, 1001, b"k", b"v"), Record(9, 1002, None, None)])
THREE = build_batch([Record(10, 1003, None, b"third")], BatchHeader(compression="zstd"))
ALL = ONE + TWO + THREE


def test_batches_follow_each_other_without_a_gap() -> None:
    """The log layer and the indexes are built on positions and sizes."""
    batches = list(read_batches(ALL))
    assert [batch.position for batch in batches] == [0, len(ONE), len(ONE) + len(TWO)]
    assert [batch.end for batch in batches][-1] == len(ALL)
    assert [batch.base_offset for batch in batches] == [7, 8, 10]
    assert [bytes(batch.raw) for batch in batches] == [ONE, TWO, THREE]


def test_a_walk_can_start_in_the_middle() -> None:
    """An index points to a position, not to the start of a file."""
    (batch, _) = read_batches(ALL, len(ONE))
    assert batch.base_offset == 8
    assert batch.position == len(ONE)


def test_a_cut_at_any_byte_ends_the_walk_without_an_error() -> None:
    """Fetch responses end in the middle of a batch; the rest is counted, not an error."""
    for size in range(len(ALL) + 1):
        reader = read_batches(ALL[:size])
        whole = sum(batch.size for batch in reader)
        assert whole in (0, len(ONE), len(ONE) + len(TWO), len(ALL))
        assert reader.remaining == size - whole
        assert reader.position == whole


def test_reading_the_header_touches_no_record() -> None:
    """A fetch of megabytes serves offsets without decoding anything."""
    damaged = bytearray(TWO)
    damaged[-1] ^= 0xFF
    (batch,) = read_batches(damaged)
    assert batch.last_offset == 9
    assert not batch.is_valid


def test_a_wrong_crc_names_both_values_and_the_place() -> None:
    """A user who looks for the damage needs to see what was expected."""
    damaged = bytearray(ONE + TWO)
    damaged[len(ONE) + 17] ^= 0x01
    batch = list(read_batches(damaged))[1]
    with pytest.raises(WireError) as caught:
        batch.ensure_valid()
    assert caught.value.offset == len(ONE) + 17
    assert caught.value.expected == str(batch.computed_crc)
    assert caught.value.found == str(batch.crc)
    assert caught.value.path == "crc"


@pytest.mark.parametrize(
    ("place", "byte", "path", "found"),
    [(16, 3, "magic", "3"), (16, 0xFF, "magic", "255"), (8, 0x80, "batch_length", "-")],
)
def test_an_impossible_header_names_the_field(
    place: int, byte: int, path: str, found: str
) -> None:
    """A walk cannot skip a batch whose length is impossible."""
    damaged = bytearray(ONE + TWO)
    damaged[len(ONE) + place] = byte
    reader = read_batches(damaged)
    next(reader)
    with pytest.raises(WireError) as caught:
        next(reader)
    assert (caught.value.path, caught.value.offset) == (path, len(ONE))
    assert caught.value.found.startswith(found)


@pytest.mark.parametrize("size", [0, 13, 48])
def test_a_length_below_the_header_is_impossible(size: int) -> None:
    """Such a length would make a walk step inside the header, or nowhere at all."""
    damaged = bytearray(TWO)
    damaged[8:12] = size.to_bytes(4)
    with pytest.raises(WireError, match="49 or more"):
        next(read_batches(damaged))


def test_a_walk_continues_after_damage() -> None:
    """One bad block must not hide the rest of a log."""
    damaged = bytearray(ALL)
    damaged[len(ONE) + 16] = 9
    reader = read_batches(damaged)
    assert next(reader).base_offset == 7
    with pytest.raises(WireError):
        next(reader)
    assert reader.resume() == len(TWO)
    assert next(reader).base_offset == 10
    assert reader.remaining == 0


def test_continuing_where_nothing_follows_ends_the_walk() -> None:
    """The last bytes of a damaged log hold no batch."""
    reader = read_batches(bytes(range(256)) * 4)
    with pytest.raises(WireError):
        next(reader)
    assert reader.resume() == 1024
    assert reader.remaining == 0
    assert list(reader) == []


def test_planted_headers_do_not_make_the_search_quadratic() -> None:
    """Each of these headers claims all the rest, whose CRC would be computed each time."""
    count = 20_000
    size = count * 61
    planted = bytearray()
    for index in range(count):
        header = bytearray(ONE[:61])
        header[8:12] = (size - index * 61 - 12).to_bytes(4)
        planted += header
    reader = read_batches(planted)
    assert reader.resume() == size


def test_a_batch_after_a_cut_one_is_found() -> None:
    """A crash can leave half a batch with a new one after it."""
    reader = read_batches(TWO[:70] + ONE)
    first = next(reader)
    assert not first.is_valid
    reader.position = 0
    assert reader.resume() == 70
    assert next(reader).base_offset == 7


def test_an_empty_buffer_has_no_batches() -> None:
    """Responses without records are the most frequent ones."""
    reader = read_batches(b"")
    assert list(reader) == []
    assert reader.remaining == 0


def test_the_last_sequence_wraps_around() -> None:
    """Sequences are positive 32-bit integers; a producer that reaches the end starts over."""
    rows = [Record(offset, 0, None, None) for offset in range(3)]
    (batch,) = read_batches(build_batch(rows, BatchHeader(base_sequence=2**31 - 2, producer_id=1)))
    assert batch.last_sequence == 0
    assert [row.sequence for row in batch.records()] == [2**31 - 2, 2**31 - 1, 0]


def test_unknown_codecs_leave_the_header_readable() -> None:
    """What a later Kafka compresses can still be counted, copied and checked."""
    raw = bytearray(ONE)
    raw[22] = 5
    batch = RecordBatch(bytes(raw))
    assert batch.compression == "unknown(5)"
    with pytest.raises(WireError) as caught:
        batch.records()
    assert "unknown compression codec" in str(caught.value)
    assert caught.value.offset == 61
