"""The quorum-state file is renamed, and the rename not made durable (D1)."""

from __future__ import annotations

import pytest

from kraftwire.sim.disk import SimFiles

FOUND_BY = {"S2", "S3", "S12", "S9"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Let flushes of directories do nothing."""
    patch.setattr(SimFiles, "fsync_dir", lambda *_: None)
