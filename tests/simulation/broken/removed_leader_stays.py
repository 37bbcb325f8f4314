"""A leader whose removal is committed keeps leading (R-REM-5)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import serving
from kraftwire.raft.state import RaftState

FOUND_BY = {"L1", "L4"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Answer the request, and stay."""
    settle = serving.settle_change

    def stay(state: RaftState, leader: Any) -> None:
        before = state.resign_reason
        settle(state, leader)
        state.resign_reason = before

    patch.setattr(serving, "settle_change", stay)
