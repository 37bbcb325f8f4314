"""A follower whose leader names an epoch that it does not know empties its log."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import following
from kraftwire.raft.log_view import LogView

FOUND_BY = {"S11"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Cut everything, without a look at what is committed."""
    truncate = following._truncate

    def bold(state: Any, diverging: Any, sent: Any) -> bool:
        committed, state.committed = state.committed, -1
        try:
            return truncate(state, diverging, sent)
        finally:
            state.committed = committed

    patch.setattr(following, "_truncate", bold)
    patch.setattr(LogView, "truncation_offset", lambda *_: 0)
