"""A follower takes over the high watermark of its leader beyond its own log."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import following
from kraftwire.raft.effects import HighWatermarkAdvanced

FOUND_BY = {"S8"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Do not look at the log's end."""

    def blind(state: Any, offered: int) -> None:
        if offered > state.committed:
            state.high_watermark = state.committed = offered
            state.emit(HighWatermarkAdvanced(offered))

    patch.setattr(following, "_follow_high_watermark", blind)
