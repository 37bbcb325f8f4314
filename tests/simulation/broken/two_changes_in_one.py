"""A new disk takes the place of an old one in one record: two sets without a common majority."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import changes

FOUND_BY = {"S16"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Let a voter be added although its id is in the set."""
    judge = changes._judge_add

    def generous(state: Any, request: Any, voter: Any) -> Any:
        error, text = judge(state, request, voter)
        if error == changes.ErrorCode.DUPLICATE_VOTER:
            return changes._ACCEPTED
        return error, text

    patch.setattr(changes, "_judge_add", generous)
