"""A leader that restarts leads its epoch again, and writes other records there (KAFKA-10527)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraftwire.raft import core, startup
from kraftwire.raft.effects import ElectionState

FOUND_BY = {"L1", "S3", "S5", "S9", "S13"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Start a stored leader as a candidate of its epoch, which gets the same votes again."""
    first = startup.first_role

    def again(state: Any, stored: Any) -> Any:
        key = state.config.key
        if stored.election.leader_id == key.id:
            stored = replace(stored, election=ElectionState(stored.election.epoch, -1, key))
        return first(state, stored)

    patch.setattr(core, "first_role", again)
