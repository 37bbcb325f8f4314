"""The frames of captures that tables are to hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kraftwire.capture.framing.frames import Frame
from kraftwire.spark.captures.headers import Flags, Ints

__all__ = ["ALL", "Selection"]


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

    def passes(self, frame: Frame) -> bool:
        """Whether a frame is selected."""
        if self.apis is not None and frame.api_key not in self.apis:
            return False
        request = frame.request
        asked = request is not None and request.time_ns >= 0
        time_ns = request.time_ns if request is not None and asked else frame.time_ns
        return not (
            (self.since is not None and time_ns < self.since)
            or (self.until is not None and time_ns >= self.until)
        )

    def pass_all(self, apis: Ints, times: Ints) -> Flags:
        """Return which frames are selected, by their APIs and the times by which they are judged.
        """
        found = np.ones(len(apis), np.bool_)
        if self.apis is not None:
            found &= np.isin(apis, list(self.apis))
        if self.since is not None:
            found &= times >= self.since
        if self.until is not None:
            found &= times < self.until
        return found


ALL = Selection()
