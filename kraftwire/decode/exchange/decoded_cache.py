"""The objects of decoded requests that wait for responses: bounded, the oldest dropped first."""

from __future__ import annotations

from kraftwire.capture.limits import PENDING_OBJECTS_MAX
from kraftwire.decode.body.frame import DecodedFrame

__all__ = ["Fresh"]

# The most that the objects of a request may take for each of its bytes, before they are measured.
_OBJECTS_RATIO = 24


class Fresh:
    """Decoded requests that still have their objects, and an estimate of the memory of these."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[DecodedFrame, int]] = {}
        self._bytes = 0

    def hold(self, decoded: DecodedFrame) -> None:
        """Add a request; the oldest keep only their bytes if there are too many objects."""
        size = decoded.frame.size * _OBJECTS_RATIO
        self._held[decoded.number] = decoded, size
        self._bytes += size
        while self._bytes > PENDING_OBJECTS_MAX:
            self._remove(next(iter(self._held))).let_go()

    def release(self, decoded: DecodedFrame) -> None:
        """Remove a request that is about to be shown; its objects stay."""
        if decoded.number in self._held:
            self._remove(decoded.number)

    def _remove(self, number: int) -> DecodedFrame:
        decoded, size = self._held.pop(number)
        self._bytes -= size
        return decoded
