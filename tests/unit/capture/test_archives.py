"""Bzip2 and zip, as people attach captures to reports."""

from __future__ import annotations

import bz2
import contextlib
import io
import lzma
import random
import zipfile
import zlib
from collections.abc import Callable

import pytest

from kraftwire.capture.packets.unpacking import PACKED, Unpacked, _Feed, unpack, zstd

_DATA = random.Random(7).randbytes(40_000) * 3


class _Sink(io.RawIOBase):
    """A stream that cannot go back, for which sizes come after the bytes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        self.parts.append(bytes(data))  # type: ignore[call-overload]
        return len(self.parts[-1])


def _zip(
    *files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED, can_seek: bool = True
) -> bytes:
    sink = io.BytesIO() if can_seek else _Sink()
    with zipfile.ZipFile(sink, "w", method) as archive:  # type: ignore[arg-type]
        for name, data in files:
            archive.writestr(name, data)
    return sink.getvalue() if isinstance(sink, io.BytesIO) else b"".join(sink.parts)


def _reader(packed: bytes) -> Unpacked:
    return unpack(packed[:6], io.BytesIO(packed), len(packed))


def _all(packed: bytes, size: int = 7919) -> bytes:
    reader = _reader(packed)
    parts = []
    while part := reader.read(size):
        assert len(part) <= size
        parts.append(part)
    return b"".join(parts)


SOUND: dict[str, bytes] = {
    "bzip2": bz2.compress(_DATA),
    "bzip2 in two streams": bz2.compress(_DATA[:100_000]) + bz2.compress(_DATA[100_000:]),
    "bzip2 and other bytes": bz2.compress(_DATA) + b"and more",
    "zip": _zip(("a.pcap", _DATA)),
    "zip without compression": _zip(("a.pcap", _DATA), method=zipfile.ZIP_STORED),
    "zip made in a pipe": _zip(("a.pcap", _DATA), can_seek=False),
    "zip with a folder": _zip(("logs/", b""), ("logs/a.pcap", _DATA)),
    "zip of macOS with its files beside": _zip(
        ("x/.DS_Store", b"icons"), ("x/a.pcap", _DATA), ("x/._a.pcap", b"attributes")
    ),
    "zstd after a frame to skip": b"\x50\x2a\x4d\x18\4\0\0\0abcd" + zstd.compress(_DATA),
    "zip of macOS": _zip(("a.pcap", _DATA), ("__MACOSX/._a.pcap", b"attributes")),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_was_packed_comes_out(name: str) -> None:
    """In reads of any size, none of which is longer than wanted."""
    assert SOUND[name].startswith(PACKED)
    assert _all(SOUND[name]) == _DATA
    assert _all(SOUND[name], 10_000_000) == _DATA


def _with_flag(packed: bytes, at: int, value: int) -> bytes:
    return packed[:at] + bytes([value]) + packed[at + 1 :]


BAD: dict[str, tuple[bytes, type[Exception], str]] = {
    "two files": (_zip(("a", _DATA), ("b", b"x")), OSError, "more than one file"),
    "two files in a pipe": (
        _zip(("a", _DATA), ("b", b"x"), can_seek=False), OSError, "more than one file"
    ),
    "encrypted": (_with_flag(_zip(("a", _DATA)), 6, 1), OSError, "encrypted"),
    "another method": (
        _zip(("a", _DATA), method=zipfile.ZIP_LZMA), OSError, "compression method 14"
    ),
    "a wrong checksum": (
        _with_flag(_zip(("a", _DATA)), 14, _zip(("a", _DATA))[14] ^ 1), OSError, "checksum"
    ),
    "a cut zip": (_zip(("a", _DATA))[:9000], EOFError, "ended"),
    "a cut header": (_zip(("a", _DATA))[:20], EOFError, "ended"),
    "a cut bzip2": (bz2.compress(_DATA)[:9000], EOFError, "ended"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_unpacked_says_so(name: str) -> None:
    """By one of the errors that callers expect, with the reason."""
    packed, kind, text = BAD[name]
    with pytest.raises(kind, match=text):
        _all(packed)


@pytest.mark.parametrize("name", SOUND)
def test_damage_ends_in_the_expected_errors(name: str) -> None:
    """Any byte may be wrong."""
    rng = random.Random(len(name))
    for _ in range(40):
        packed = bytearray(SOUND[name])
        packed[rng.randrange(6, len(packed))] ^= 1 << rng.randrange(8)
        _expect(lambda packed=bytes(packed): _all(packed, 1_000_000))


def _expect(read: Callable[[], object]) -> None:
    with contextlib.suppress(OSError, EOFError, zlib.error):
        read()


def test_a_file_that_claims_much_is_read_in_pieces() -> None:
    """A gigabyte of zeros is a kilobyte packed: a read returns no more than it was asked for."""
    reader = _reader(_zip(("a", bytes(50_000_000))))
    assert len(reader.read(4096)) <= 4096


_EMPTY = {
    "xz": lzma.compress(b""),
    "bzip2": bz2.compress(b""),
    "zstd": zstd.compress(b""),
    "zstd to skip": b"\x50\x2a\x4d\x18\0\0\0\0",
}


@pytest.mark.parametrize("name", _EMPTY)
def test_thousands_of_empty_streams_cost_what_they_take(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is given little more than itself, and what is behind them comes out."""
    full = lzma.compress(_DATA) if name == "xz" else bz2.compress(_DATA)
    full = zstd.compress(_DATA) if name.startswith("zstd") else full
    fed = 0

    def counted(feed: _Feed) -> bytes:
        nonlocal fed
        fed += len(piece := take(feed))
        return piece

    take = _Feed.next_piece
    monkeypatch.setattr(_Feed, "next_piece", counted)
    packed = _EMPTY[name] * 3000 + full
    reader = unpack(packed[:6], io.BytesIO(packed), len(packed))
    parts = []
    while part := reader.read(100_000):
        parts.append(part)
    assert b"".join(parts) == _DATA
    assert fed <= 3000 * 1024 + 2 * len(packed)
    assert len(getattr(reader, "_start", b"")) <= len(full)
