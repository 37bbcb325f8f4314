"""A truncation does not take voters back (R-ID-8)."""

from __future__ import annotations

import pytest

from kraftwire.raft.histories import VoterHistory

FOUND_BY = {"S16"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Cut the log, and believe in its voters on."""
    patch.setattr(VoterHistory, "truncate", lambda *_: False)
