"""A snapshot gets its name, and the directory is not flushed (R-SNAP-5)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.sim.disk import SimFiles

FOUND_BY = {"S14", "S12", "D11"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Flush no directory while a snapshot is published."""
    publish = SnapshotStore._publish

    def careless(self: Any, *arguments: Any) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(SimFiles, "fsync_dir", lambda *_: None)
            publish(self, *arguments)

    patch.setattr(SnapshotStore, "_publish", careless)
