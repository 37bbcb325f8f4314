"""The frames of captures that tables are to hold."""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.capture.framing.frames import RawFrame


@dataclass(frozen=True, slots=True)
class Selection:
    """Bounds of time and a choice of APIs; None for no bound.

    Units: nanoseconds since the epoch, `since` included and `until` excluded. `apis` are API keys.
    A response is judged by the time of its request, so that exchanges stay whole.
    """

    since: int | None = None
    until: int | None = None
    apis: frozenset[int] | None = None

    @property
    def is_all(self) -> bool:
        """Whether every frame is selected."""
        return self.since is None and self.until is None and self.apis is None

    def passes(self, frame: RawFrame) -> bool:
        """Whether a frame is selected."""
        if self.apis is not None and frame.api_key not in self.apis:
            return False
        request = frame.request
        is_known = request is not None and request.time_ns >= 0
        time_ns = request.time_ns if request is not None and is_known else frame.time_ns
        return not (
            (self.since is not None and time_ns < self.since)
            or (self.until is not None and time_ns >= self.until)
        )


ALL = Selection()
