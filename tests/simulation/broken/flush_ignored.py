"""The log is never flushed: the calls are made and do nothing."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.sim.disk import SimFile

FOUND_BY = {"S9", "S11", "S12"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Let flushes of log files do nothing."""
    sync = SimFile.fdatasync

    def idle(self: Any) -> None:
        if not self._path.endswith(".log"):
            sync(self)

    patch.setattr(SimFile, "fdatasync", idle)
