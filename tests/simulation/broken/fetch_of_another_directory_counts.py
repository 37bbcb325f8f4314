"""What another disk with a voter's id fetches counts as the voter's (R-REP-4)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import progress

FOUND_BY = {"S9"}
SEED = 20


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Look at the id alone."""

    def same_id(entry: Any, key: Any) -> bool:
        return bool(entry.id == key.id)

    patch.setattr(progress, "_matches", same_id)
