"""Sizes of frames: their sum, quantiles, and the number of frames up to each of a few bounds."""

from __future__ import annotations

from typing import Any

from kraftwire.inspect.stats.histogram import Histogram

__all__ = ["BOUNDS", "LEGEND", "Sizes"]

# Upper bounds of the bars; one more bar counts larger sizes.
BOUNDS = (64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)
_BARS = "▁▂▃▄▅▆▇█"
_NONE = "·"

LEGEND = (
    f"(sizes: how many have up to 64 B, 256 B, 1, 4, 16, 64, 256 KiB, 1 MiB, or more; "
    f"{_BARS[0]} few to {_BARS[-1]} most, {_NONE} none)"
)


class Sizes:
    """A distribution of sizes. Units: bytes."""

    __slots__ = ("_counts", "histogram", "total")

    def __init__(self) -> None:
        self.histogram = Histogram()
        self.total = 0
        self._counts = [0] * (len(BOUNDS) + 1)

    def add(self, size: int) -> None:
        """Add a size."""
        self.histogram.add(size)
        self.total += size
        self._counts[_place(size)] += 1

    def merge(self, other: Sizes) -> None:
        """Add the sizes of another distribution."""
        self.histogram.merge(other.histogram)
        self.total += other.total
        self._counts = [a + b for a, b in zip(self._counts, other._counts, strict=True)]

    def bars(self) -> str:
        """Draw a bar for each bound and one for larger sizes; the tallest is the most frequent."""
        peak = max(self._counts)
        if not peak:
            return ""
        top = len(_BARS)
        return "".join(
            _BARS[-(-count * top // peak) - 1] if count else _NONE for count in self._counts
        )

    def to_json(self) -> dict[str, Any]:
        """Return quantiles, and counts with their upper bounds, null for none, as a JSON object."""
        bounds = [*BOUNDS, None]
        counts = [
            {"upTo": bound, "count": count}
            for bound, count in zip(bounds, self._counts, strict=True)
            if count
        ]
        return {**self.histogram.to_json(), "total": self.total, "counts": counts}


def _place(size: int) -> int:
    return next((at for at, bound in enumerate(BOUNDS) if size <= bound), len(BOUNDS))
