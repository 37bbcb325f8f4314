"""A log that begins at a snapshot keeps the voters that it had (R-ID-6)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft.histories import VoterHistory

FOUND_BY = {"S16"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Read a snapshot's voters when the node starts, never later."""
    reset = VoterHistory.reset

    def once(self: Any, end_offset: int, control: bytes) -> bool:
        return False if self.has_own_voters else reset(self, end_offset, control)

    patch.setattr(VoterHistory, "reset", once)
