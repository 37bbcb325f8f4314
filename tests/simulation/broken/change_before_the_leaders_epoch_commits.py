"""A new leader changes voters before anything of its own epoch is committed (KIP-853)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import changes

FOUND_BY = {"S16"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Take the set for committed while the high watermark is unknown."""
    refusal = changes.change_refusal

    def hasty(state: Any) -> Any:
        is_new = state.high_watermark < 0 and state.history.kraft_version > 0
        return None if is_new and state.leader and not state.leader.change else refusal(state)

    patch.setattr(changes, "change_refusal", hasty)
