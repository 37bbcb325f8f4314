"""A change of the voters is acknowledged when it is written (R-ADD-9, R-REM-5)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import changes

FOUND_BY = {"S12"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Answer before the commit."""
    append = changes.append_voters

    def early(state: Any, leader: Any, change: Any, voters: Any) -> None:
        append(state, leader, change, voters)
        changes._answer_change(state, change, ErrorCode.NONE, "")

    patch.setattr(changes, "append_voters", early)
