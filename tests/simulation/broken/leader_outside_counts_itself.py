"""A leader that is not in the voter set counts its own log (R-HW-4)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft.progress import LeaderProgress

FOUND_BY = {"S9"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Let the leader stand in for the slowest voter."""

    def with_own(self: Any, current: int) -> int:
        ends = [state.end_offset for state in self.voters.values()]
        others = [self.own.end_offset] if self.own not in self.voters.values() else []
        ends = sorted([*ends, *others], reverse=True)[: len(ends)]
        mark = ends[len(ends) // 2]
        return mark if mark > current and mark > self._start_offset else current

    patch.setattr(LeaderProgress, "high_watermark", with_own)
