"""The packets of a connection in memory as arrays, and which of them are simply the next ones.

Owns the test that the fast lane of `decode.pairing.conversations` makes, for all packets at once.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kraftwire.decode.capture.links import FAST, FAST_MASK, FAST_MIX, FIN, RST, SYN
from kraftwire.decode.capture.packets import Packet
from kraftwire.decode.capture.pcap import read_packets
from kraftwire.decode.capture.source import CaptureSource
from kraftwire.decode.framing.health import Health
from kraftwire.limits import PACKET_BYTES_MAX

__all__ = ["Ints", "Packets", "Segments"]

Ints: TypeAlias = "npt.NDArray[np.int64]"
Flags: TypeAlias = "npt.NDArray[np.bool_]"

# What classic captures begin with -> nanoseconds of the second half of a timestamp.
_LITTLE = {b"\xd4\xc3\xb2\xa1": 1000, b"\x4d\x3c\xb2\xa1": 1}
_FILE_HEADER_SIZE = 24
_RECORD_HEADER_SIZE = 16
_RECORD = struct.Struct("<IIII").unpack_from
_SECOND_NS = 1_000_000_000
_MASK = 0xFFFFFFFF

_ETHERNET_SIZE = 14
_TCP_AT = 34

# The fields of `FAST`.
_FIELDS = np.dtype(
    {
        "names": ["total", "mix", "key", "seq", "header"],
        "formats": [">u2", ">u4", ("u1", 12), ">u4", ">u2"],
        "offsets": [16, 20, 26, 38, 46],
        "itemsize": FAST.size,
    }
)


class Packets:
    """The packets of a connection.

    Shape: `data` holds them all, its first byte at the position `base`; `starts` are the indexes
    of the packets in it, `captured` how many bytes of each are there; `begins` and `ends` are the
    positions of their records. Units: `times` nanoseconds since the epoch.
    """

    def __init__(self, data: bytes, health: Health) -> None:
        self.data = data
        self.base = 0
        self._rows: list[Packet] = []
        fraction_ns = _LITTLE.get(data[:4])
        if fraction_ns is None or len(data) < _FILE_HEADER_SIZE:
            self._read(health)
        else:
            self._walk(fraction_ns, health)

    def __len__(self) -> int:
        return len(self.starts)

    def _read(self, health: Health) -> None:
        """Read any capture packet by packet."""
        with CaptureSource([(0, self.data)]) as source:
            self._rows = rows = list(read_packets(source, health))
        # There is one piece, and so one buffer; a reader may have taken its start off.
        if rows:
            self.data, self.base = rows[0][2], rows[0][6]
        columns = np.array([(r[0], r[3], r[4], r[7], r[8]) for r in rows], np.int64)
        self.times, self.starts, self.captured, begins, ends = columns.reshape(-1, 5).T
        self.begins, self.ends = begins + self.base, ends + self.base

    def _walk(self, fraction_ns: int, health: Health) -> None:
        """Step from record to record of a classic capture."""
        data, at = self.data, _FILE_HEADER_SIZE
        last = len(data) - _RECORD_HEADER_SIZE
        unpack = struct.Struct("<8xI").unpack_from
        found = []
        while at <= last:
            found.append(at)
            (captured,) = unpack(data, at)
            if captured > PACKET_BYTES_MAX:
                break
            at += _RECORD_HEADER_SIZE + captured
        if found and (found[-1] + _RECORD_HEADER_SIZE > len(data) or at > len(data)):
            found.pop()
        begins = np.array(found, np.int64)
        heads = _windows(data, begins, _RECORD_HEADER_SIZE).view("<u4").astype(np.int64)
        self.begins = begins
        self.starts = begins + _RECORD_HEADER_SIZE
        self.times = heads[:, 0] * _SECOND_NS + heads[:, 1] * fraction_ns
        self.captured = heads[:, 2]
        self.ends = self.starts + self.captured
        self._places = found
        self._fraction_ns = fraction_ns
        self._link = int.from_bytes(data[20:22], "little")
        health.packets += len(found)

    def row(self, at: int) -> Packet:
        """A packet as readers of captures hand it out."""
        if self._rows:
            return self._rows[at]
        data, begin = self.data, self._places[at]
        seconds, fraction, captured, wire = _RECORD(data, begin)
        start = begin + _RECORD_HEADER_SIZE
        time_ns = seconds * _SECOND_NS + fraction * self._fraction_ns
        return time_ns, self._link, data, start, captured, wire, 0, begin, start + captured


def _windows(data: bytes, starts: Ints, size: int) -> npt.NDArray[np.uint8]:
    """So many bytes from each start on; other bytes where these are not all there."""
    last = len(data) - size
    if not len(starts) or last < 0:
        return np.zeros((len(starts), size), np.uint8)
    windows = np.ndarray((last + 1, size), np.uint8, data, 0, (1, 1))
    rows: npt.NDArray[np.uint8] = windows[np.minimum(starts, last)]
    return rows


class Segments:
    """What TCP carries in the packets of one connection.

    Shape: `ways` tells the direction, 1 for packets with the reverse key. `begins` is the index of
    the payload in the data, `counts` its size. `breaks` are the packets, in order, that are
    anything but the next bytes (or none) of their direction after the packet before; the first
    packets after a break have to be compared with what their direction awaits.
    """

    def __init__(self, packets: Packets, key: bytes, reverse: bytes) -> None:
        self.packets = packets
        fields = _windows(packets.data, packets.starts, FAST.size).view(_FIELDS)[:, 0]
        header = fields["header"].astype(np.int64)
        words = header >> 12
        total = fields["total"].astype(np.int64)
        starts = _TCP_AT + 4 * words
        self.ways = (fields["key"] == np.frombuffer(reverse, np.uint8)).all(axis=1)
        self.seqs = fields["seq"].astype(np.int64)
        self.counts = total + _ETHERNET_SIZE - starts
        self.begins = packets.starts + starts
        is_known = self.ways | (fields["key"] == np.frombuffer(key, np.uint8)).all(axis=1)
        is_plain = (
            is_known
            & (packets.captured >= FAST.size)
            & (fields["mix"] & FAST_MASK == FAST_MIX)
            & (total <= packets.captured - _ETHERNET_SIZE)
            & (words >= 5)
            & (header & (FIN | SYN | RST) == 0)
            & (self.counts >= 0)
        )
        self._mark_breaks(is_plain)

    def _mark_breaks(self, is_plain: Flags) -> None:
        is_next = is_plain.copy()
        self.indexes: list[Ints] = []
        for way in (False, True):
            mine = np.flatnonzero(is_plain & (self.ways == way))
            seqs = self.seqs[mine]
            is_next[mine[1:]] = seqs[1:] == (seqs[:-1] + self.counts[mine[:-1]]) & _MASK
            self.indexes.append(mine)
        self.breaks = np.flatnonzero(~is_next)

    def end_of_run(self, start: int) -> int:
        """The next break at or after a packet, or the number of packets."""
        at = int(np.searchsorted(self.breaks, start))
        return int(self.breaks[at]) if at < len(self.breaks) else len(self.ways)

    def first(self, way: int, start: int, end: int) -> int | None:
        """The sequence number of the first packet of a direction in a run; None if it has none."""
        mine = self.indexes[way]
        at = int(np.searchsorted(mine, start))
        return int(self.seqs[mine[at]]) if at < len(mine) and mine[at] < end else None
