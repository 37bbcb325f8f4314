"""Files of the log are closed during a flush."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.replica.runner import Runner

FOUND_BY = {"FLUSH"}
SEED = 25


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Drop the log's prefix without waiting for the flush in progress."""

    def hasty(self: Any, effect: Any) -> None:
        self._log.drop_prefix(effect.start_offset)
        self._disk.snapshots.delete(effect.snapshots, self.machines.now_ms)

    patch.setattr(Runner, "_drop_log_prefix", hasty)
