"""The log's prefix is dropped together with the snapshot that holds it (R-SNAP-6)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import snapshots
from kraftwire.raft.effects import DropLogPrefix
from kraftwire.records.offsets import OffsetAndEpoch

FOUND_BY = {"S14"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Delete one snapshot too many."""

    def greedy(start_offset: int, older: tuple[OffsetAndEpoch, ...]) -> Any:
        return DropLogPrefix(start_offset, (*older, *_ending_at(start_offset)))

    patch.setattr(snapshots, "DropLogPrefix", greedy)


def _ending_at(offset: int) -> list[OffsetAndEpoch]:
    return [OffsetAndEpoch(offset, epoch) for epoch in range(1000)]
