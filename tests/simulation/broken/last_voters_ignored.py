"""A voter set counts only once the next one is written."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft.histories import VoterHistory

FOUND_BY = {"S16"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Take the last set but one."""
    settle = VoterHistory._settle

    def late(self: Any, before: Any) -> bool:
        changed = settle(self, before)
        if len(self._voters) > 1:
            self.last_voters_offset, self.current = self._voters[-2]
        return changed

    patch.setattr(VoterHistory, "_settle", late)
