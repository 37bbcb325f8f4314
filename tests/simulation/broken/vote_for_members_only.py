"""A vote is refused to candidates outside of the own voter set, which may be an old one."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import elections

FOUND_BY = {"L1", "L4", "L5"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Believe in the own set."""
    decide = elections._decide

    def strict(state: Any, partition: Any) -> bool:
        return partition.replica_id in state.voters.voters and decide(state, partition)

    patch.setattr(elections, "_decide", strict)
