"""The packets of a connection in memory as arrays, and which of them are in order.

Owns the test of the fast lane in `decode.pairing.conversations`, for all packets at once.
"""

from __future__ import annotations

import struct

import numpy as np

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.packet import Packet
from kraftwire.capture.packets.pcap import read_packets
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.spark.captures.headers import (
    FILE_HEADER_SIZE,
    RECORD_HEADER_SIZE,
    Flags,
    Headers,
    Ints,
    Records,
    fraction_of,
    link_of,
    record_places,
)
from kraftwire.spark.captures.reading import Held

__all__ = ["Ints", "Packets", "Segments"]

_RECORD = struct.Struct("<IIII").unpack_from
_SECOND_NS = 1_000_000_000
_MASK = 0xFFFFFFFF


class Packets:
    """The packets of a connection.

    `data` holds them all; `starts` are the indexes of the packets in it, `captured` how many
    bytes of each are there; `begins` and `ends` are the positions of their records in the
    recording. Units: `times` nanoseconds since the epoch.
    """

    def __init__(self, held: Held, health: Health) -> None:
        self.data = held.data
        self._rows: list[Packet] = []
        fraction_ns = fraction_of(held.data)
        if fraction_ns is None:
            self._read(held, health)
        else:
            self._walk(held, fraction_ns, health)

    def __len__(self) -> int:
        return len(self.starts)

    def _read(self, held: Held, health: Health) -> None:
        """Read any capture packet by packet."""
        with CaptureSource([(0, self.data)]) as source:
            rows = list(read_packets(source, health))
        # There is one piece, and so one buffer; a reader may have removed its start.
        base = rows[0][6] if rows else 0
        if rows:
            self.data = rows[0][2]
        columns = np.array([(r[0], r[3], r[4], r[7], r[8]) for r in rows], np.int64)
        self.times, self.starts, self.captured, begins, ends = columns.reshape(-1, 5).T
        bases = base + held.shifts(begins + base)
        self.begins, self.ends = begins + bases, ends + bases
        self._rows = [
            (*row[:6], each, *row[7:]) for row, each in zip(rows, bases.tolist(), strict=True)
        ]

    def _walk(self, held: Held, fraction_ns: int, health: Health) -> None:
        """Walk the records of a classic capture."""
        found = record_places(self.data, FILE_HEADER_SIZE)
        records = Records(self.data, found, fraction_ns)
        self.times, self.starts = records.times, records.starts
        self.captured = records.captured
        self._bases = held.shifts(found)
        self.begins, self.ends = records.begins + self._bases, records.ends + self._bases
        self._fraction_ns = fraction_ns
        self._link = link_of(self.data)
        health.packets += len(found)

    def row(self, at: int) -> Packet:
        """Return a packet as readers of captures do."""
        if self._rows:
            return self._rows[at]
        data, base = self.data, int(self._bases[at])
        begin = int(self.begins[at]) - base
        seconds, fraction, captured, wire = _RECORD(data, begin)
        start = begin + RECORD_HEADER_SIZE
        time_ns = seconds * _SECOND_NS + fraction * self._fraction_ns
        return time_ns, self._link, data, start, captured, wire, base, begin, start + captured


class Segments:
    """The TCP segments in the packets of one connection.

    `ways` is the direction, 1 for packets with the reverse key. `begins` is the index of the
    payload in the data, `counts` its size. `breaks` are the packets that do not carry the next
    bytes (or none) of their direction; the first packets after a break have to be compared with
    what their direction expects.
    """

    def __init__(self, packets: Packets, key: bytes, reverse: bytes) -> None:
        self.packets = packets
        heads = Headers(packets.data, packets.starts, packets.captured)
        self.ways = (heads.keys == np.frombuffer(reverse, np.uint8)).all(axis=1)
        self.seqs, self.counts, self.begins = heads.seqs, heads.counts, heads.begins
        is_known = self.ways | (heads.keys == np.frombuffer(key, np.uint8)).all(axis=1)
        is_plain = is_known & heads.is_plain & (self.counts >= 0)
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
        """Return the next break at or after a packet, or the number of packets."""
        at = int(np.searchsorted(self.breaks, start))
        return int(self.breaks[at]) if at < len(self.breaks) else len(self.ways)

    def first(self, way: int, start: int, end: int) -> int | None:
        """Return the sequence number of a direction's first packet in a run; None without one."""
        mine = self.indexes[way]
        at = int(np.searchsorted(mine, start))
        return int(self.seqs[mine[at]]) if at < len(mine) and mine[at] < end else None
