"""The types of packets, and of what is kept of the packet that bytes came in."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["NO_STAMP", "PAUSE", "Follow", "Packet", "Stamp"]

# Time in nanoseconds since the epoch; link type; a buffer, the packet's start in it and how many
# of its bytes are there; how many it had on the wire; the position of the buffer's first byte in
# the capture, and where in the buffer the packet's record begins and ends.
Packet = tuple[int, int, bytes, int, int, int, int, int, int]

# Comes in place of packets that were taken by `Follow`, and before more bytes are awaited: what was
# complete by then can be returned.
PAUSE: Packet = (-1, 0, b"", 0, 0, 0, 0, 0, 0)

# Takes packets that need no further check from a buffer of records: the buffer, a position in it,
# that of its first byte in the capture, nanoseconds in a unit of the second half of time stamps,
# and the link type. Returns the position after them and their number.
Follow = Callable[[bytes, int, int, int, int], tuple[int, int]]

# When bytes came, the position at which the record of their first packet begins, and the one
# after the record of their last packet.
Stamp = tuple[int, int, int]

NO_STAMP: Stamp = (0, 0, 0)
