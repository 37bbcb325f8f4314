"""Packets of classic captures as arrays: their records, and the headers of those with plain TCP.

Owns the layout that the fast lane of `decode.pairing.conversations` reads, for many packets at
once: TCP in plain IPv4 over Ethernet.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kraftwire import engine
from kraftwire.capture.packets.links import FAST, FAST_MASK, FAST_MIX, FIN, RST, SYN
from kraftwire.limits import PACKET_BYTES_MAX

__all__ = [
    "ETHERNET",
    "FILE_HEADER_SIZE",
    "RECORD_HEADER_SIZE",
    "Bytes",
    "Flags",
    "Headers",
    "Ints",
    "Records",
    "fraction_of",
    "join_ranges",
    "link_of",
    "record_places",
    "windows",
]

Ints: TypeAlias = "npt.NDArray[np.int64]"
Flags: TypeAlias = "npt.NDArray[np.bool_]"
Bytes: TypeAlias = "npt.NDArray[np.uint8]"

FILE_HEADER_SIZE = 24
RECORD_HEADER_SIZE = 16
ETHERNET = 1

# Magic number of classic captures -> nanoseconds per unit of a timestamp's second half.
_LITTLE = {b"\xd4\xc3\xb2\xa1": 1000, b"\x4d\x3c\xb2\xa1": 1}
_CAPTURED = struct.Struct("<8xI").unpack_from
_SECOND_NS = 1_000_000_000

_ETHERNET_SIZE = 14
_TCP_AT = 34
_IPV4 = 0x0800

# The fields of `FAST`, and Ethernet's type for IPv4.
_FIELDS = np.dtype(
    {
        "names": ["kind", "total", "mix", "key", "seq", "header"],
        "formats": [">u2", ">u2", ">u4", ("u1", 12), ">u4", ">u2"],
        "offsets": [12, 16, 20, 26, 38, 46],
        "itemsize": FAST.size,
    }
)


def fraction_of(head: bytes) -> int | None:
    """Return the nanoseconds per unit of a timestamp's second half, by the file header.

    None unless it is a classic capture with numbers in little-endian order.
    """
    return _LITTLE.get(head[:4]) if len(head) >= FILE_HEADER_SIZE else None


def link_of(head: bytes) -> int:
    """The link type in the header of such a file."""
    return int.from_bytes(head[20:22], "little")


def record_places(data: bytes, at: int) -> Ints:
    """Return where whole records begin, from the one at `at` on.

    The list ends before a record of impossible size, and before one that is cut off.
    """
    if engine.core is not None:
        found = engine.core.packet_places(data, at, PACKET_BYTES_MAX)
        return np.frombuffer(found, np.int64)
    end = len(data)
    last = end - RECORD_HEADER_SIZE
    places = []
    while at <= last:
        (captured,) = _CAPTURED(data, at)
        stop = at + RECORD_HEADER_SIZE + captured
        if stop > end or captured > PACKET_BYTES_MAX:
            break
        places.append(at)
        at = stop
    return np.array(places, np.int64)


def join_ranges(data: bytes, starts: Ints, sizes: Ints) -> bytes:
    """Return ranges of the data, all of which exist, one after the other."""
    if engine.core is not None:
        joined: bytes = engine.core.join_ranges(
            data, np.ascontiguousarray(starts), np.ascontiguousarray(sizes)
        )
        return joined
    stops = starts + sizes
    return b"".join([data[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)])


def windows(data: bytes, starts: Ints, size: int) -> Bytes:
    """Return `size` bytes from each start; other bytes where the data ends before."""
    last = len(data) - size
    if not len(starts) or last < 0:
        return np.zeros((len(starts), size), np.uint8)
    every = np.ndarray((last + 1, size), np.uint8, data, 0, (1, 1))
    rows: Bytes = every[np.minimum(starts, last)]
    return rows


class Records:
    """The records of packets.

    `begins` and `ends` are indexes in the data, `starts` those of the packets themselves,
    `captured` how many bytes of each are there. Units: `times` nanoseconds since the epoch.
    """

    def __init__(self, data: bytes, places: Ints, fraction_ns: int) -> None:
        self.begins = places
        heads = windows(data, self.begins, RECORD_HEADER_SIZE).view("<u4").astype(np.int64)
        self.starts: Ints = self.begins + RECORD_HEADER_SIZE
        self.times: Ints = heads[:, 0] * _SECOND_NS + heads[:, 1] * fraction_ns
        self.captured: Ints = heads[:, 2]
        self.ends: Ints = self.starts + self.captured


class Headers:
    """The headers of packets, read as if they were plain TCP.

    `begins` is the index of the payload in the data, `counts` its size; `keys` has a row
    for each packet. `is_plain` tells which are whole packets of TCP without SYN, FIN and RST,
    provided that they are IPv4, and `is_ipv4` which are.
    """

    def __init__(self, data: bytes, starts: Ints, captured: Ints) -> None:
        fields = windows(data, starts, FAST.size).view(_FIELDS)[:, 0]
        header = fields["header"].astype(np.int64)
        words = header >> 12
        total = fields["total"].astype(np.int64)
        payload = _TCP_AT + 4 * words
        self.keys: Bytes = fields["key"]
        self.seqs: Ints = fields["seq"].astype(np.int64)
        self.counts: Ints = total + _ETHERNET_SIZE - payload
        self.begins: Ints = starts + payload
        self.is_ipv4: Flags = fields["kind"] == _IPV4
        self.is_plain: Flags = (
            (captured >= FAST.size)
            & (fields["mix"] & FAST_MASK == FAST_MIX)
            & (total <= captured - _ETHERNET_SIZE)
            & (words >= 5)
            & (header & (FIN | SYN | RST) == 0)
        )
