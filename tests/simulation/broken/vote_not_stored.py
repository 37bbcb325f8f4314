"""A vote is granted before it is on disk."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import transitions

FOUND_BY = {"S2", "S3"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Write no quorum state while a vote is granted."""
    grant = transitions.grant_vote

    def careless(state: Any, candidate: Any) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(transitions, "persist", lambda *_: None)
            grant(state, candidate)

    from kraftwire.raft import elections

    patch.setattr(elections, "grant_vote", careless)
