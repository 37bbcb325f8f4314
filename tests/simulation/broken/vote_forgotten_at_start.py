"""A start does not look at the vote in the quorum-state file (KAFKA-16526)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraftwire.raft import core, startup

FOUND_BY = {"S1", "S3"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Start without a vote."""
    first = startup.first_role

    def forgetful(state: Any, stored: Any) -> Any:
        election = replace(stored.election, voted=None)
        return first(state, replace(stored, election=election))

    patch.setattr(core, "first_role", forgetful)
