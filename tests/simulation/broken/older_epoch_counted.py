"""A leader commits batches of older epochs because a majority has them (figure 8 of the paper)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft.progress import LeaderProgress

FOUND_BY = {"S8", "S10"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Forget where the epoch began."""
    mark = LeaderProgress.high_watermark

    def counting(self: Any, current: int) -> int:
        self._start_offset = -1
        return mark(self, current)

    patch.setattr(LeaderProgress, "high_watermark", counting)
