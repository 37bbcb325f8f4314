"""What a packet is, and what is remembered of the one that bytes came in."""

from __future__ import annotations

__all__ = ["NO_STAMP", "Packet", "Stamp"]

# Time in nanoseconds since the epoch; link type; a buffer, the packet's start in it and how many
# of its bytes are there; how many it had on the wire; the position of the buffer's first byte in
# the capture, and where in the buffer the packet's record begins and ends.
Packet = tuple[int, int, bytes, int, int, int, int, int, int]

# When bytes came, the position at which the record of their first packet begins, and the one
# after the record of their last packet.
Stamp = tuple[int, int, int]

NO_STAMP: Stamp = (0, 0, 0)
