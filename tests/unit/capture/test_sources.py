"""What a capture may be read from: paths, streams, pieces of bytes, several files in a row."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.packets.series import in_time_order
from kraftwire.capture.packets.source import CaptureInput
from kraftwire.errors import StorageError, UsageError
from tests.support.captures.builder import pcap
from tests.support.captures.decoded import golden

PACKED = golden("quorum").read_bytes()
PLAIN = lzma.decompress(PACKED)
_HEAD = 24


def _seen(frames: Iterable[RawFrame]) -> list[tuple[object, ...]]:
    return [(f.connection, f.direction, f.time_ns, f.size, f.data, f.latency_ms) for f in frames]


EXPECTED = _seen(Capture(str(golden("quorum"))))


def _in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


class _Unseekable(io.RawIOBase):
    """A raw stream that gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._inner.read(min(len(buffer), 1000))
        buffer[: len(data)] = data
        return len(data)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize(
    "source",
    [
        io.BytesIO,
        _Unseekable,
        lambda data: io.BufferedReader(_Unseekable(data)),
        lambda data: _in_pieces(data, 777),
        lambda data: [b"", *_in_pieces(data, 100_000), b""],
        lambda data: data,
    ],
)
def test_frames_do_not_depend_on_where_the_bytes_come_from(
    source: Callable[[bytes], CaptureInput], pack: Callable[[bytes], bytes]
) -> None:
    """Callers with bytes need no temporary file, and lose nothing."""
    capture = Capture(source(pack(PLAIN)))
    assert _seen(capture) == EXPECTED
    assert not capture.health.problem


def test_zstd_in_a_stream() -> None:
    """A stream cannot be read twice, so the frame header is read with the rest."""
    import cramjam

    packed = bytes(cramjam.zstd.compress(PLAIN))
    assert _seen(Capture(io.BytesIO(packed))) == EXPECTED


def test_a_path_may_be_a_path_object() -> None:
    """Paths are objects in most programs, and text in frames."""
    frames = list(Capture(golden("quorum")))
    assert frames[0].file == str(golden("quorum"))


def test_a_pipe_is_read_as_it_comes() -> None:
    """A live capture has no position to go back to."""
    source, target = os.pipe()

    def write() -> None:
        with open(target, "wb") as stream:
            stream.write(PLAIN)

    writer = threading.Thread(target=write)
    writer.start()
    with open(source, "rb") as stream:
        assert _seen(Capture(stream)) == EXPECTED
    writer.join()


def test_a_callers_stream_stays_open_and_has_its_own_name() -> None:
    """The caller that opened a stream closes it; frames still say where they are from."""
    with golden("quorum").open("rb") as stream:
        frames = list(Capture(stream))
        assert not stream.closed
    assert frames[0].file == str(golden("quorum"))
    assert next(iter(Capture(io.BytesIO(PLAIN)))).file == "(stream)"
    assert next(iter(Capture(io.BytesIO(PLAIN), name="mine"))).file == "mine"


def _rotated(folder: Path, count: int) -> list[Path]:
    """The packets of the golden capture in several files, as written by a rotating writer."""
    packets = []
    at = _HEAD
    while at < len(PLAIN):
        end = at + 16 + int.from_bytes(PLAIN[at + 8 : at + 12], "little")
        packets.append(PLAIN[at:end])
        at = end
    size = len(packets) // count + 1
    paths = []
    for number in range(count):
        path = folder / f"{number}.pcap"
        path.write_bytes(PLAIN[:_HEAD] + b"".join(packets[number * size : (number + 1) * size]))
        paths.append(path)
    return paths


def test_files_of_a_series_share_their_connections(tmp_path: Path) -> None:
    """Taken one by one, rotated files orphan the responses after each border."""
    paths = _rotated(tmp_path, 5)
    capture = Capture(*paths)
    frames = list(capture)
    assert _seen(frames) == EXPECTED
    assert {frame.file for frame in frames} == {str(path) for path in paths}
    alone = [frame for path in paths for frame in Capture(path)]
    assert any(frame.request is None for frame in alone)
    assert all(frame.request is not None for frame in frames)


def test_a_series_is_put_in_order_of_time(tmp_path: Path) -> None:
    """Names of rotated files rarely sort in the order of writing."""
    paths = _rotated(tmp_path, 3)
    (tmp_path / "empty.pcap").write_bytes(pcap([]))
    mixed = [tmp_path / "empty.pcap", paths[2], paths[0], paths[1]]
    ordered = [*map(str, paths), str(tmp_path / "empty.pcap")]
    assert in_time_order(mixed) == ordered


def test_a_damaged_file_of_a_series_does_not_end_it(tmp_path: Path) -> None:
    """The last packet of a rotated file is often cut; the next file continues."""
    first, second = _rotated(tmp_path, 2)
    first.write_bytes(first.read_bytes()[:-7])
    capture = Capture(first, second)
    assert {frame.file for frame in capture} == {str(first), str(second)}
    assert "ends inside a packet" in capture.health.problem


@pytest.mark.parametrize("source", [7, io.StringIO("text"), None])
def test_what_holds_no_bytes_is_refused(source: CaptureInput) -> None:
    """The caller gets the error at once, not at the first frame."""
    with pytest.raises(UsageError):
        Capture(source)


def test_nothing_to_read_is_refused() -> None:
    """An empty call is a mistake, and an empty file is not a capture."""
    with pytest.raises(UsageError):
        Capture()
    with pytest.raises(UsageError):
        Capture("a", "b", name="c")
    with pytest.raises(StorageError):
        list(Capture(b""))
