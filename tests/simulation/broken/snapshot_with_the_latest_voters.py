"""A snapshot carries the voters of the log's end, not those of its own (R-SNAP-2)."""

from __future__ import annotations

import pytest

from kraftwire.raft.histories import VoterHistory

FOUND_BY = {"S16"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Take what is in force now."""
    at = VoterHistory.control_at
    patch.setattr(VoterHistory, "control_at", lambda self, _: at(self, 1 << 62))

