"""A replica answers a request that is meant for another disk of its id (R-VOTE-4)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import elections

FOUND_BY = {"S17", "L1", "L4", "L5"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Look at the id alone."""

    def is_addressee(state: Any, voter_id: int, _directory_id: bytes) -> bool:
        return voter_id < 0 or voter_id == state.config.key.id

    patch.setattr(elections, "is_addressee", is_addressee)
