"""Observers count when the high watermark is computed."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft.progress import LeaderProgress

FOUND_BY = {"S9"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Let the furthest observer stand in for the slowest voter."""

    def generous(self: Any, current: int) -> int:
        ends = [state.end_offset for state in self.voters.values()]
        others = [s.end_offset for s in self.observers.values() if s is not self.own]
        ends = sorted([*ends, *others], reverse=True)[: len(ends)]
        mark = ends[len(ends) // 2]
        return mark if mark > current and mark > self._start_offset else current

    patch.setattr(LeaderProgress, "high_watermark", generous)
