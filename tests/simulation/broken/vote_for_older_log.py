"""A vote is granted without comparing the logs."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import elections

FOUND_BY = {"S4", "S5"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Take every log for up to date."""
    decide = elections._decide_standard

    def trusting(state: Any, candidate: Any, is_up_to_date: bool) -> bool:  # noqa: ARG001
        return decide(state, candidate, True)

    patch.setattr(elections, "_decide_standard", trusting)
