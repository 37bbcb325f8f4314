"""A leader accepts every position as part of its log, so followers keep what it never had."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft.log_view import LogView, Position, PositionKind

FOUND_BY = {"S6", "S7", "S8", "S9", "S13"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Look at the offset alone."""
    check = LogView.check_position

    def lax(self: Any, offset: int, epoch: int) -> Position:
        if offset <= self.end_offset:
            return Position(PositionKind.VALID)
        return check(self, offset, epoch)

    patch.setattr(LogView, "check_position", lax)
