"""Records by columns are those of the reader, cell for cell, on sound and on damaged buffers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from hypothesis import given, settings
from hypothesis import strategies as st

from kraftwire.errors import WireError
from kraftwire.messages.end_txn_marker import EndTxnMarker
from kraftwire.records import BatchHeader, Record, build_batch, read_batches
from kraftwire.records.control import ControlType, control_batch
from kraftwire.spark.columns import cut, read_columns, read_cut
from tests.spark.logs.columns_cells import cells_by_columns, cells_by_reader
from tests.unit.records.test_damage import batch_of, body
from tests.unit.records.test_legacy import message, wrapper
from tests.unit.records.test_properties import even_rows, mixed_rows

GOLDEN = Path(__file__).parents[2] / "golden" / "logs"
SEED = 9_17
CODECS = ["none", "none", "gzip", "snappy", "lz4", "zstd"]


@st.composite
def buffers(draw: st.DrawFn) -> bytes:
    """Batches of all kinds, one after the other."""
    parts = []
    for _ in range(draw(st.integers(1, 5))):
        header = BatchHeader(
            compression=draw(st.sampled_from(CODECS)),
            base_sequence=draw(st.just(-1) | st.integers(0, 2**31 - 1)),
            producer_id=draw(st.integers(-1, 5)),
            append_time=draw(st.none() | st.integers(0, 2**41)),
        )
        parts.append(build_batch(draw(mixed_rows() | even_rows()), header))
    return b"".join(parts)


def assert_same(buffer: bytes) -> None:
    """Compare both ways of reading."""
    rows, errors = cells_by_reader(buffer)
    found, problems = cells_by_columns(buffer)
    assert found == rows
    assert sorted(problems) == sorted(errors)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(buffer=buffers())
def test_columns_are_the_readers(buffer: bytes) -> None:
    """Any buffer."""
    assert_same(buffer)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    buffer=buffers(),
    places=st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), max_size=3),
    mends_crc=st.booleans(),
)
def test_the_reader_judges_damage(
    buffer: bytes, places: list[tuple[int, int]], mends_crc: bool
) -> None:
    """With bytes changed after the headers, and the CRC corrected or left wrong."""
    damaged = bytearray(buffer)
    spans = [(batch.position, batch.end) for batch in read_batches(buffer)]
    for place, byte in places:
        start, end = spans[place % len(spans)]
        damaged[start + 61 + place % (end - start - 61)] = byte
    if mends_crc:
        for batch in read_batches(bytes(damaged)):
            damaged[batch.position + 17 : batch.position + 21] = batch.computed_crc.to_bytes(4)
    assert_same(bytes(damaged))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(buffer=buffers(), at=st.integers(1, 2**20))
def test_a_torn_tail_ends_the_columns(buffer: bytes, at: int) -> None:
    """Whole batches before the cut are there, and nothing else."""
    assert_same(buffer[: at % len(buffer)])


@pytest.mark.parametrize("path", sorted(GOLDEN.rglob("*.log")), ids=lambda path: path.parent.name)
def test_real_segments(path: Path) -> None:
    """All codecs, headers, transactions, control batches, as Kafka wrote them."""
    buffer = path.read_bytes().rstrip(b"\x00")
    rows, errors = cells_by_reader(buffer)
    assert cells_by_columns(buffer) == (rows, errors)


@pytest.mark.parametrize(
    "records",
    [
        body(key=b"\x03"),  # a null of another length
        body(value=b"\x05"),
        body(time=b"\x80\x80\x80\x80\x80\x01"),
        body(offset=b"\x80\x00"),
        body(headers=b"\x02\x04\xff\xfe\x01"),  # a name that is not UTF-8
        body(headers=b"\x04\x02a\x02b\x02c\x01"),
        body(headers=b"\x02\x01\x01"),  # a name that is null
        body(headers=b"\x7e"),
        body(headers=b"\x01"),
        body(key=b"\x80\x80\x01" + b"k" * 8192, value=b"\x80\x80\x80\x01" + b"v" * (1 << 20)),
        body()[:-1],
        body() + b"\x00",
        b"\x00",
        b"\xff\xff\xff\xff\x0f" + body(),
    ],
)
@pytest.mark.parametrize("count", [1, 2, 3, -1, 0, 2**31 - 1])
def test_odd_records(records: bytes, count: int) -> None:
    """What Java accepts is accepted; what it refuses does not affect other batches."""
    sound = build_batch([Record(7, 1000, b"k", b"v"), Record(8, 1001, None, b"w")])
    assert_same(sound + batch_of(records, count) + sound)


def test_sums_wrap_around_as_in_java() -> None:
    """Offsets and timestamps at the edge of 64 bits."""
    raw = bytearray(build_batch([Record(0, 0, None, b"a"), Record(1, 90, None, b"b")]))
    raw[:8] = (2**63 - 1).to_bytes(8)
    raw[27:35] = (2**63 - 1).to_bytes(8)
    (batch,) = read_batches(bytes(raw))
    raw[17:21] = batch.computed_crc.to_bytes(4)
    assert_same(bytes(raw))
    assert cells_by_columns(bytes(raw))[0][1]["offset"] == -(2**63)


def test_old_magics_between_new_batches() -> None:
    """Messages of magic 0 and 1, plain and in a wrapper."""
    new = build_batch([Record(20, 5, b"k", b"v")])
    old = message(3, b"v", key=b"k") + message(4, None, magic=0)
    packed = wrapper(6, message(0, b"a"), message(1, b"b"))
    assert_same(new + old + packed + new)


def test_control_batches_and_append_time() -> None:
    """Control records are records; a stamped batch has one timestamp."""
    marker = control_batch(5, 1, 1000, [(ControlType.COMMIT, EndTxnMarker())])
    stamped = build_batch(
        [Record(6, 10, None, b"a"), Record(7, 20, None, b"b")], BatchHeader(append_time=99)
    )
    assert_same(marker + stamped)
    table, _ = next(read_columns(stamped))
    assert table["timestamp"].to_pylist() == [99, 99]


def test_a_wrong_crc_spoils_only_its_batch() -> None:
    """The reader's own words, and the index of the batch."""
    sound = [build_batch([Record(index, 0, None, b"%d" % index)]) for index in range(5)]
    broken = bytearray(sound[2])
    broken[-2] ^= 1
    buffer = b"".join([*sound[:2], bytes(broken), *sound[3:]])
    told, columns = read_cut(cut(buffer))
    assert columns.table["batch"].to_pylist() == [0, 1, 3, 4]
    (problem,) = told.problems
    assert problem.batch == 2
    assert "CRC" in str(problem.error)


def test_only_wanted_batches_are_read() -> None:
    """The others are ignored, whatever their state."""
    buffer = b"".join(build_batch([Record(index, 0, b"k", b"v")]) for index in range(4))
    broken = bytearray(buffer)
    broken[-2] ^= 1
    (columns,) = read_cut(cut(bytes(broken)), [False, True, True, False])
    assert columns.table["offset"].to_pylist() == [1, 2]
    assert not columns.problems


def test_an_impossible_header_is_an_error() -> None:
    """As `read_batches` has it, and after the batches before it."""
    good = build_batch([Record(0, 0, None, b"v")])
    found = read_columns(good + b"\xff" * 100)
    assert next(found)[0]["value"].to_pylist() == [b"v"]
    with pytest.raises(WireError, match="no batch begins here"):
        next(found)


def test_many_batches_of_random_shape() -> None:
    """Many batches of very different lengths."""
    source = random.Random(SEED)
    parts, offset = [], 0
    for _ in range(400):
        count = source.choice([1, 2, 3, 20, 300])
        rows = [
            Record(
                offset + index,
                source.choice([1_760_000_000_000, 1_760_000_000_000 + source.randrange(10**7)]),
                source.choice([None, b"", b"key", source.randbytes(70)]),
                source.choice([None, b"", source.randbytes(source.choice([5, 63, 64, 9000]))]),
                source.choice([(), (), (("a", b"1"), ("b", None))]),
            )
            for index in range(count)
        ]
        codec = source.choice(["none"] * 8 + ["zstd", "lz4"])
        parts.append(build_batch(rows, BatchHeader(compression=codec)))
        offset += count
    assert_same(b"".join(parts))
