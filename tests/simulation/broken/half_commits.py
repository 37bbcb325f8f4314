"""Half of the voters commit."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft.progress import LeaderProgress

FOUND_BY = {"S9"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Take the offset that half of the voters have, not a majority."""

    def half(self: Any, current: int) -> int:
        ends = sorted((state.end_offset for state in self.voters.values()), reverse=True)
        mark = ends[(len(ends) - 1) // 2]
        return mark if mark > current and mark > self._start_offset else current

    patch.setattr(LeaderProgress, "high_watermark", half)
