"""A new disk takes the place of an old one in one record: two sets without a common majority."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import changes

FOUND_BY = {"S16"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Let a voter be added although its id is in the set."""
    judge = changes._check_add

    def generous(state: Any, request: Any, voter: Any) -> Any:
        error, text = judge(state, request, voter)
        present = state.voters.get(voter.key.id)
        if error == ErrorCode.DUPLICATE_VOTER and present.key != voter.key:
            return ErrorCode.NONE, ""
        return error, text

    patch.setattr(changes, "_check_add", generous)
