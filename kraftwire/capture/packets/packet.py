"""The types of packets, and of what is kept of the packet that bytes came in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple


class Packet(NamedTuple):
    """A packet in a buffer of the capture: `data[start : start + captured]`.

    `wire` is its size on the network. Its record in the capture is `data[begin:stop]`, and `base`
    the position of the buffer's first byte. Units: `time_ns` nanoseconds since the epoch.
    """

    time_ns: int
    link: int
    data: bytes
    start: int
    captured: int
    wire: int
    base: int
    begin: int
    stop: int


# The values of a packet as a plain tuple: the form in which the hottest loop makes them.
PacketValues = tuple[int, int, bytes, int, int, int, int, int, int]

# Calling the class with the values takes three times as long.
new_packet: Callable[[PacketValues], Packet] = partial(tuple.__new__, Packet)

# Comes in place of packets that were taken by `Follow`, and before more bytes are awaited: what was
# complete by then can be returned.
PAUSE = Packet(-1, 0, b"", 0, 0, 0, 0, 0, 0)

# Takes packets that need no further check from a buffer of records in little endian: the buffer, a
# position in it, that of its first byte in the capture, nanoseconds in a tick of time stamps, the
# link type, and the number of the pcapng interface, -1 for classic pcap. Returns the position after
# them, their number, and the time of the last one in nanoseconds.
Follow = Callable[[bytes, int, int, int, int, int], tuple[int, int, int]]

# When bytes came, the position at which the record of their first packet begins, and the one
# after the record of their last packet.
Stamp = tuple[int, int, int]

NO_STAMP: Stamp = (0, 0, 0)
