"""Voters change again before the last change is committed (R-VC-1)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import changes

FOUND_BY = {"S16"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Ask only whether voters can change at all."""

    def hasty(state: Any) -> Any:
        if state.history.kraft_version == 0:
            return ErrorCode.UNSUPPORTED_VERSION, "it is 0"
        return None

    patch.setattr(changes, "change_refusal", hasty)
