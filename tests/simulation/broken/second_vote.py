"""A voter forgets, when it is asked again, that it has voted in the epoch."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import elections, transitions

FOUND_BY = {"S1", "S3"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Drop the vote before every decision."""
    decide = elections._decide_standard

    def forgetful(state: Any, candidate: Any, is_up_to_date: bool) -> bool:
        if isinstance(state.role, transitions.Unattached | transitions.Prospective):
            state.role.voted = None
        return decide(state, candidate, is_up_to_date)

    patch.setattr(elections, "_decide_standard", forgetful)
