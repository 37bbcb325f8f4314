"""A snapshot does not carry the voters (R-SNAP-2)."""

from __future__ import annotations

import pytest

from kraftwire.raft.histories import VoterHistory

FOUND_BY = {"S16"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Write nothing after the header."""
    patch.setattr(VoterHistory, "control_at", lambda *_: ())
