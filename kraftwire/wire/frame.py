"""The frame of Kafka's RPC: a signed 32-bit length, then that many bytes.

Source: Kafka's `NetworkReceive` and `NetworkSend`.
"""

from __future__ import annotations

import struct

from kraftwire.errors import WireError
from kraftwire.limits import FRAME_SIZE_MAX

LENGTH_SIZE = 4
_LENGTH = struct.Struct(">i")


def frame(payload: bytes) -> bytes:
    """Put the length before a payload (header and body of one request or response)."""
    return _LENGTH.pack(len(payload)) + payload


def length_prefix(size: int) -> bytes:
    """Return the length that precedes a payload of this size."""
    return _LENGTH.pack(size)


def frame_size(prefix: bytes | bytearray | memoryview, *, limit: int = FRAME_SIZE_MAX) -> int:
    """Return the payload size that a length prefix announces.

    `prefix` has at least four bytes. Raises: WireError if negative or above the limit.
    """
    (size,) = _LENGTH.unpack_from(prefix)
    if not 0 <= size <= limit:
        raise WireError(
            "frame length out of range", offset=0, expected=f"0 to {limit}", found=str(size)
        )
    return int(size)


class FrameBuffer:
    """Cuts a byte stream into frames; holds at most one unfinished frame.

    Order: `feed` the bytes as they arrive; `limit` may change between two calls.
    """

    def __init__(self, *, limit: int = FRAME_SIZE_MAX) -> None:
        self.limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes and return the payloads that are now complete, in order.

        Raises: WireError on an impossible length; the stream cannot be used after that.
        """
        self._buffer += data
        done: list[bytes] = []
        start = 0
        # A view, because a slice of a bytearray is a copy already.
        with memoryview(self._buffer) as view:
            while len(view) - start >= LENGTH_SIZE:
                end = start + LENGTH_SIZE
                size = frame_size(view[start:end], limit=self.limit)
                if len(view) - end < size:
                    break
                done.append(bytes(view[end : end + size]))
                start = end + size
        del self._buffer[:start]
        return done

    @property
    def pending_size(self) -> int:
        """The number of bytes held of a frame that is not complete yet."""
        return len(self._buffer)
