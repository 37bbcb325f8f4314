"""A leader counts its own log before it is durable (D3)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft.progress import LeaderProgress

FOUND_BY = {"S9", "L4"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Take what is written for flushed."""
    note = LeaderProgress.note_log_end

    def hasty(self: Any, end_offset: int) -> None:
        note(self, end_offset)
        self.note_durable_end(end_offset)

    patch.setattr(LeaderProgress, "note_log_end", hasty)
