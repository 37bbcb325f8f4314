"""Every codec in both directions: forms that other clients write, damage, bombs."""

from __future__ import annotations

import gzip
import random
import struct
import tracemalloc
import zlib
from contextlib import suppress

import cramjam
import pytest

from kraftwire.errors import UsageError, WireError
from kraftwire.records.compression import codec_id, compress, decompress, size_limit
from kraftwire.records.limits import RECORDS_SIZE_FREE

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
CODECS = {"gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}

every_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)

NOISE = random.Random(7).randbytes(200_000)
TEXT = b"all work and no play " * 20_000


@every_codec
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE, TEXT + NOISE], ids=len)
def test_compressed_data_comes_back(codec: int, data: bytes) -> None:
    """This includes what does not shrink, and what spans several blocks."""
    assert decompress(codec, compress(codec, data)) == data
    assert decompress(codec, memoryview(compress(codec, memoryview(data)))) == data


@every_codec
def test_compressed_data_is_smaller(codec: int) -> None:
    """A codec that stores everything as is would pass every other test."""
    assert len(compress(codec, TEXT)) < len(TEXT) // 10


def test_levels_reach_the_codecs_that_have_them() -> None:
    """A higher level must give fewer bytes."""
    data = bytes(random.Random(3).choices(b"abcdef", k=100_000))
    assert len(compress(GZIP, data, level=9)) < len(compress(GZIP, data, level=1))
    assert len(compress(ZSTD, data, level=19)) < len(compress(ZSTD, data, level=1))


def test_gzip_members_in_a_row_are_one_stream() -> None:
    """As Java reads them; trailing bytes that are not a member are ignored."""
    data = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two")
    assert decompress(GZIP, data) == b"one two"
    assert decompress(GZIP, data + b"rest") == b"one two"


def test_many_gzip_members_take_linear_time() -> None:
    """Handing all the rest to zlib for each member would copy gigabytes here."""
    member = gzip.compress(b"")
    assert decompress(GZIP, member * 20_000) == b""


def test_zstd_frames_in_a_row_are_one_stream() -> None:
    """As Java reads them."""
    data = bytes(cramjam.zstd.compress(b"one ")) + bytes(cramjam.zstd.compress(b"two"))
    assert decompress(ZSTD, data) == b"one two"


def test_raw_snappy_without_framing_is_read() -> None:
    """Clients other than Java's write one raw block."""
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_snappy_streams_in_a_row_are_one_stream() -> None:
    """xerial's reader takes a header between blocks for a new stream."""
    assert decompress(SNAPPY, compress(SNAPPY, b"one ") + compress(SNAPPY, b"two")) == b"one two"


def test_snappy_has_the_framing_of_javas_client() -> None:
    """Its reader requires the magic and both versions."""
    assert compress(SNAPPY, b"x").hex().startswith("82534e41505059000000000100000001")


def lz4_frame(flags: int, *blocks: bytes, content_size: bytes = b"") -> bytes:
    """A frame with blocks of 64 KiB, a wrong header checksum, and words between the blocks."""
    return b"\x04\x22\x4d\x18" + bytes([flags, 0x40]) + content_size + b"?" + b"".join(blocks)


def lz4_block(data: bytes, *, trailer: bytes = b"", stored: bool = False) -> bytes:
    """A block with its size in front."""
    packed = data if stored else bytes(cramjam.lz4.compress_block(data, store_size=False))
    return struct.pack("<I", len(packed) | (0x80000000 if stored else 0)) + packed + trailer


def test_lz4_has_the_frame_of_javas_client() -> None:
    """Its reader refuses blocks that depend on each other, which cramjam's frames have."""
    frame = compress(LZ4, b"x" * 70_000)
    assert frame.hex().startswith("04224d18604082")
    assert frame.endswith(bytes(4))


def test_lz4_header_checksums_are_ignored() -> None:
    """Clients of magic 0 computed them over the wrong bytes."""
    assert decompress(LZ4, lz4_frame(0x60, lz4_block(TEXT[:1000]), bytes(4))) == TEXT[:1000]


def test_lz4_options_of_other_clients_are_read() -> None:
    """Content size, checksums of blocks and contents, and stored blocks."""
    packed = lz4_block(TEXT[:99], trailer=b"sum!")
    stored = lz4_block(b"raw", trailer=b"sum!", stored=True)
    frame = lz4_frame(0x7C, packed, stored, bytes(4), b"sum!", content_size=bytes(8))
    assert decompress(LZ4, frame) == TEXT[:99] + b"raw"


def test_what_follows_an_lz4_frame_is_ignored() -> None:
    """Java's reader stops at the end mark."""
    assert decompress(LZ4, compress(LZ4, b"one") + compress(LZ4, b"two")) == b"one"


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (lz4_frame(0x40, bytes(4)), "of a kind that Kafka does not read"),
        (lz4_frame(0xA0, bytes(4)), "of a kind that Kafka does not read"),
        (b"\x04\x22\x4d\x18\x60\x10?" + bytes(4), "block size"),
        (b"\x05" + lz4_frame(0x60, bytes(4))[1:], "no frame"),
        (lz4_frame(0x60, b"\x01\x00"), "the frame is cut"),
        (lz4_frame(0x60, b"\x09\x00\x00\x00abc"), "a block leads outside"),
        (lz4_frame(0x60, b"\x03\x00\x00\x00abc", bytes(4)), "damaged lz4 data"),
        (lz4_frame(0x60, lz4_block(b"x" * 65_537), bytes(4)), "damaged lz4 data"),
        (lz4_frame(0x60, lz4_block(b"x" * 65_537, stored=True), bytes(4)), "expands too far"),
    ],
)
def test_damaged_lz4_frames_are_refused(frame: bytes, problem: str) -> None:
    """Each error says what is wrong."""
    with pytest.raises(WireError, match=problem):
        decompress(LZ4, frame)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "no size of a block"),
        (b"\xff\xff\xff\xff\x0f", "announces more than it can hold"),
        (b"\x05", "damaged snappy data"),
        (b"\x82SNAPPY\x00" + bytes(8) + b"\xff\xff\xff\xff", "a block leads outside"),
        (b"\x82SNAPPY\x00" + bytes(8) + b"\x00\x00", "a block leads outside"),
        (b"\x82SNAPPY\x00" + bytes(8) + b"\x00\x00\x00\x09abc", "a block leads outside"),
    ],
)
def test_damaged_snappy_data_is_refused(data: bytes, problem: str) -> None:
    """Above all a false size, before a buffer of that size is made."""
    with pytest.raises(WireError, match=problem):
        decompress(SNAPPY, data)


@every_codec
def test_a_cut_is_an_error(codec: int) -> None:
    """Half of the records without an error would be silent loss."""
    data = compress(codec, NOISE[:50_000])
    for size in (0, 1, 10, len(data) // 2, len(data) - 1):
        with pytest.raises(WireError):
            decompress(codec, data[:size])


@every_codec
def test_random_damage_gives_data_or_a_wire_error(codec: int) -> None:
    """The libraries' own exceptions stay inside."""
    rng = random.Random(11)
    good = compress(codec, TEXT[:3000] + NOISE[:500])
    for _ in range(500):
        bad = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        with suppress(WireError):
            assert len(decompress(codec, bytes(bad))) < RECORDS_SIZE_FREE


BOMB_SIZE = 300_000_000


def bomb(codec: int) -> bytes:
    """Three hundred megabytes of zeros, compressed."""
    if codec == LZ4:
        block = lz4_block(bytes(65_536))
        return lz4_frame(0x60, block * (BOMB_SIZE // 65_536), bytes(4))
    if codec == SNAPPY:
        packed = bytes(cramjam.snappy.compress_raw(bytes(65_536)))
        block = struct.pack(">i", len(packed)) + packed
        return b"\x82SNAPPY\x00" + bytes(8) + block * (BOMB_SIZE // 65_536)
    if codec == GZIP:
        return zlib.compress(bytes(BOMB_SIZE // 100), 9, 31) * 100
    # Blocks that say "128 KiB of this byte", four bytes each.
    block = (131_072 << 3 | 2).to_bytes(3, "little") + b"\x00"
    last = (131_072 << 3 | 3).to_bytes(3, "little") + b"\x00"
    return bytes.fromhex("28b52ffd0058") + block * (BOMB_SIZE // 131_072) + last


@every_codec
def test_a_bomb_stops_at_a_limit(codec: int) -> None:
    """Memory is bounded by the limit, whatever the data says."""
    data = bomb(codec)
    limit = 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match="expands too far"):
            decompress(codec, data, limit=limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * limit


def test_a_small_bomb_has_a_small_limit() -> None:
    """Ten kilobytes on the wire must not cost a quarter of a gigabyte."""
    assert len(bomb(ZSTD)) < 10_000
    assert size_limit(10_000) < 30_000_000
    with pytest.raises(WireError, match="expands too far"):
        decompress(ZSTD, bomb(ZSTD))


@every_codec
def test_a_limit_that_fits_exactly_is_not_an_error(codec: int) -> None:
    """The limit is a size that is allowed."""
    data = compress(codec, TEXT)
    assert decompress(codec, data, limit=len(TEXT)) == TEXT
    with pytest.raises(WireError, match="expands too far"):
        decompress(codec, data, limit=len(TEXT) - 1)


@pytest.mark.parametrize("codec", [5, 6, 7, 8, -1])
def test_unknown_codecs_are_refused(codec: int) -> None:
    """The three bits leave room for codecs that do not exist."""
    with pytest.raises(WireError, match="unknown compression codec"):
        decompress(codec, b"x")
    with pytest.raises(UsageError):
        compress(codec, b"x")


def test_codecs_have_kafkas_names() -> None:
    """Names are what people write into configurations."""
    assert {name: codec_id(name) for name in ("none", *CODECS)} == {"none": 0, **CODECS}
    for name in ("brotli", "unknown(5)", ""):
        with pytest.raises(UsageError, match="none, gzip, snappy, lz4, zstd"):
            codec_id(name)
