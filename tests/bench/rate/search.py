"""The search for the highest rate that is held: up in large steps, then between two rates.

Knows nothing of quorums: it proposes a rate, and is told whether that was held.
"""

from __future__ import annotations

__all__ = ["Search"]

# Up by half each time, while a rate is held.
_GROWTH = 1.5

# A rate that is not held is tried once more: other programs may have been the reason.
_TRIES = 2


class Search:
    """Order: try `rate` and call `note`, until `rate` is None. Units: records per second.

    `held` is the highest rate that was held, 0 for none; `missed` the lowest that was not, None
    while all were held.
    """

    def __init__(self, start: int, steps: int) -> None:
        """Begin at a rate. `steps` halve the distance between what was held and what was not."""
        self.rate: int | None = start
        self.held = 0
        self.missed: int | None = None
        self._steps = steps
        self._tries = 0

    def note(self, is_held: bool) -> None:
        """Record the outcome of trying `rate`, and set the next one."""
        rate = self.rate
        assert rate is not None, "nothing was to be tried"
        self._tries += 1
        if is_held:
            self.held = rate
        elif self._tries < _TRIES:
            return
        else:
            self.missed = rate
        self._tries = 0
        self.rate = self._next()

    def _next(self) -> int | None:
        if self.missed is None:
            return int(self.held * _GROWTH)
        if not self.held:
            return int(self.missed / _GROWTH) or None
        if not self._steps:
            return None
        self._steps -= 1
        # Ratios count, so the geometric mean is the middle.
        return round((self.held * self.missed) ** 0.5)
