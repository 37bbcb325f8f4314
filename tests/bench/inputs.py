"""Captures of any size: a real recording repeated with other addresses and later times.

Each copy is traffic of another network at another time, so its connections are separate ones.
Files are made once and kept in `.cache/bench`.
"""

from __future__ import annotations

import lzma
import struct
import sys
from pathlib import Path

import numpy as np

from tests.bench.capture import CAPTURE
from tests.support.maven import CACHE

__all__ = ["grown", "kraft", "load"]

_GOLDEN = Path(__file__).parents[1] / "golden" / "captures" / "kraft_quorum.pcapng.xz"
_KRAFT_BYTES = 18_000_000

_FILE_HEADER = 24
_PACKET_HEADER = 16
# The third bytes of both addresses of IPv4 over Ethernet, after the header of a packet.
_NETWORKS = (28, 32)
_COPIES_MAX = 250
_PAUSE_S = 60


def load(size: int) -> Path | None:
    """A capture of at least this size of a real Kafka under load, None if none was recorded.

    It is the recording itself if that is large enough.
    """
    if not CAPTURE.exists():
        return None
    return CAPTURE if CAPTURE.stat().st_size >= size else grown(CAPTURE, size)


def kraft(size: int = _KRAFT_BYTES) -> Path:
    """A capture of three controllers that elect and replicate, of at least this size."""
    one = CACHE / "bench" / "kraft-one.pcap"
    if not one.exists():
        one.parent.mkdir(parents=True, exist_ok=True)
        fresh = one.with_suffix(".new")
        _write_plain(fresh, lzma.decompress(_GOLDEN.read_bytes()))
        fresh.rename(one)
    return grown(one, size)


def grown(path: Path, size: int) -> Path:
    """A pcap file of at least this size from a recording of Ethernet and IPv4, made once.

    It needs a recording: copies of a grown file would get the same addresses.
    """
    target = path.with_name(f"{path.stem}-{size // 1_000_000}{path.suffix}")
    if target.exists():
        return target
    data = np.fromfile(path, np.uint8)
    order = "<" if bytes(data[:4]) in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    starts = _packets(data.tobytes(), order)
    seconds = _seconds(data, starts, order)
    length = int(seconds.max() - seconds.min()) + _PAUSE_S
    fresh = target.with_suffix(".new")
    with open(fresh, "wb") as file:
        file.write(data[:_FILE_HEADER].tobytes())
        body = len(data) - _FILE_HEADER
        copies = -(-(size - _FILE_HEADER) // body)
        if copies > _COPIES_MAX:
            raise ValueError(f"{path} is too small to be made {size:,} bytes of")
        for copy in range(copies):
            times = (seconds + copy * length).astype(f"{order}u4")
            _write_copy(file, data, starts, times, copy)
    fresh.rename(target)
    return target


def _packets(data: bytes, order: str) -> np.ndarray:
    """Where packets begin, their headers first."""
    starts = []
    at = _FILE_HEADER
    unpack = struct.Struct(f"{order}I").unpack_from
    while at + _PACKET_HEADER <= len(data):
        starts.append(at)
        at += _PACKET_HEADER + unpack(data, at + 8)[0]
    return np.array(starts, np.int64)


def _seconds(data: np.ndarray, starts: np.ndarray, order: str) -> np.ndarray:
    words = data[starts[:, None] + np.arange(4)]
    return words.view(f"{order}u4")[:, 0].astype(np.int64)


def _write_copy(
    file: object, data: np.ndarray, starts: np.ndarray, times: np.ndarray, copy: int
) -> None:
    changed = data.copy()
    changed[starts[:, None] + np.arange(4)] = times.view(np.uint8).reshape(-1, 4)
    for at in _NETWORKS:
        changed[starts + _PACKET_HEADER + at] = copy
    changed[_FILE_HEADER:].tofile(file)


def _write_plain(path: Path, raw: bytes) -> None:
    """The IPv4 packets of a capture of any format as a pcap file with nanoseconds."""
    from kraftwire.capture.framing.health import Health
    from kraftwire.capture.packets.pcap import read_packets
    from kraftwire.capture.packets.source import CaptureSource

    with open(path, "wb") as file, CaptureSource(raw, "golden") as source:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        for time_ns, _, data, start, captured, *_ in read_packets(source, Health()):
            packet = bytes(data[start : start + captured])
            if packet[12:14] == b"\x08\x00":
                seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
                head = (seconds, nanoseconds, len(packet), len(packet))
                file.write(struct.pack("<IIII", *head) + packet)


if __name__ == "__main__":
    makers = {"load": load, "kraft": kraft}
    print(makers[sys.argv[1]](int(float(sys.argv[2]) * 1e9)))
