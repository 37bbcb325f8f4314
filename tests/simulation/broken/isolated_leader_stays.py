"""A leader without fetches keeps leading (KAFKA-15489)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft.progress import LeaderProgress

FOUND_BY = {"L7"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Never let the time of a quorum run out."""
    begin = LeaderProgress.__init__

    def patient(self: Any, *arguments: Any) -> None:
        begin(self, *arguments)
        self.quorum_deadline_ms = None

    patch.setattr(LeaderProgress, "__init__", patient)
