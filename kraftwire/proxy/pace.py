"""A response that is sent slowly: so many bytes a second, in pieces."""

from __future__ import annotations

from kraftwire.proxy.events import Data

# How long a piece takes, in seconds; at least one byte is sent at a time.
_PIECE_S = 0.1


class Pace:
    """Keeps bytes back. Units: bytes, and seconds of the clock that `take` is given."""

    def __init__(self, bytes_per_s: float, now: float) -> None:
        self.next_at = now
        self._bytes_per_s = bytes_per_s
        self._waiting = bytearray()

    @property
    def is_waiting(self) -> bool:
        """Whether bytes are left."""
        return bool(self._waiting)

    def add(self, data: Data) -> None:
        """Add bytes behind those that wait."""
        self._waiting += data

    def take(self, now: float) -> bytes:
        """Return the next piece if its time has come, else nothing."""
        if now < self.next_at:
            return b""
        piece = bytes(self._waiting[: max(1, int(self._bytes_per_s * _PIECE_S))])
        del self._waiting[: len(piece)]
        self.next_at = now + len(piece) / self._bytes_per_s
        return piece
