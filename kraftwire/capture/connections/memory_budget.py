"""One budget for all that a capture keeps: bytes after holes, unfinished frames, connections.

Owns when it is added up, and which connections are cleared. Adding up takes a walk over all
connections, so it is done when as much has been read since the last time as might fill what was
left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kraftwire.capture.connections.connection import Connection
from kraftwire.capture.limits import CONNECTION_OBJECT_BYTES, PIECE_OBJECT_BYTES

# All that the connections of a capture hold together: bytes after holes, unfinished frames, bytes
# that are searched, responses and requests that wait, and the connections themselves. It may be
# CAPTURE_HELD_FREE, and CAPTURE_HELD_RATIO for each byte read so far (compressed, if the capture
# is), but never more than CAPTURE_HELD_BYTES_MAX. Uncompressed captures rarely reach that.
CAPTURE_HELD_FREE = 20 * 1024 * 1024
CAPTURE_HELD_RATIO = 4
CAPTURE_HELD_BYTES_MAX = 256 * 1024 * 1024

# Connections that hold less than this, themselves included, are dropped last, and as a whole.
RELIEVED_BYTES_MIN = 16 * 1024

# The shortest request, and thus what may be remembered for the fewest bytes.
_REQUEST_BYTES_MIN = 24
_GROWTH = 1 + PIECE_OBJECT_BYTES // _REQUEST_BYTES_MIN


class MemoryBudget:
    """Watches what the open connections hold.

    `read` are the bytes of the capture so far, as they are unpacked, and `packed` as they
    lie in the file. The budget grows with the second, so that little input never takes much.
    """

    def __init__(self, connections: Iterable[Connection]) -> None:
        self._connections = connections
        self._read = self._opened = 0
        self._room = CAPTURE_HELD_FREE

    def see(self, opened: int, read: int, packed: int) -> bool:
        """Whether it is time to `review`; `opened` counts the connections of the capture."""
        grown = (read - self._read) * _GROWTH
        grown += (opened - self._opened) * CONNECTION_OBJECT_BYTES
        if grown < self._room:
            return False
        self._read, self._opened = read, opened
        self._room = _limit(packed) - self._sum()
        return self._room < _limit(packed) // 16

    def review(self, packed: int, close: Callable[[Connection], None]) -> Iterator[Connection]:
        """The connections that have to give up what they hold, the one opened first before others.

        Those that hold little are left alone, unless all of them together are too many;
        then the oldest are closed. Order: each has released its memory before the next is asked
        for.
        """
        wanted = _limit(packed) // 2
        held = self._sum()
        for connection in list(self._connections):
            if held <= wanted:
                break
            size = connection.held_bytes
            if size >= RELIEVED_BYTES_MIN:
                yield connection
                held -= size - connection.held_bytes
        # A connection that is closed loses what is still to come, so that has to be worth it.
        wanted = _limit(packed) // 8 * 7
        if held > wanted:
            for connection in list(self._connections):
                if held <= wanted:
                    break
                held -= connection.held_bytes
                close(connection)
        self._room = _limit(packed) - held

    def _sum(self) -> int:
        return sum(connection.held_bytes for connection in self._connections)


def _limit(packed: int) -> int:
    return min(CAPTURE_HELD_BYTES_MAX, CAPTURE_HELD_FREE + CAPTURE_HELD_RATIO * packed)
