"""A truncation does not revert the voters (R-ID-8)."""

from __future__ import annotations

import pytest

from kraftwire.raft.histories import VoterHistory

FOUND_BY = {"S16"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Cut the log, and keep its voters."""
    patch.setattr(VoterHistory, "truncate", lambda *_: False)
