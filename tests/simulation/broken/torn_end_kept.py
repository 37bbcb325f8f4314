"""Recovery leaves a torn end in the log, and batches are written after it."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.log.segment import Segment

FOUND_BY = {"S12", "S13", "D11", "BUG"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Continue where the file ends, not where its last whole batch does."""
    load = Segment.load

    def careless(self: Any, last_epoch: int) -> Any:
        scan = load(self, last_epoch)
        self.size = scan.size = self.file.size()
        return scan

    patch.setattr(Segment, "load", careless)
