"""Half of the votes elect a leader."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft.roles import Votes

FOUND_BY = {"S1", "S17"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Round down, and do not add one."""
    begin = Votes.__init__

    def half(self: Any, voters: Any, own_id: int) -> None:
        begin(self, voters, own_id)
        self.majority = max(1, (len(self._answers) + 1) // 2)

    patch.setattr(Votes, "__init__", half)
