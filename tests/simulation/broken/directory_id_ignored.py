"""A replica with a voter's id takes itself for the voter, whatever its directory id (R-ID-2)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft.voters import Voter

FOUND_BY = {"S9", "S17", "S18"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Look at the id alone."""

    def same_id(self: Any, key: Any) -> bool:
        return bool(self.key.id == key.id)

    patch.setattr(Voter, "matches", same_id)
