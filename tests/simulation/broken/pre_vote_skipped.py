"""Nobody asks for pre-votes: a node that was cut off comes back with a new epoch."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import elections
from kraftwire.raft.transitions import to_candidate

FOUND_BY = {"L6", "L8"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Go from prospective to candidate at once."""

    def impatient(state: Any, role: Any) -> None:  # noqa: ARG001
        to_candidate(state, "impatient")

    patch.setattr(elections, "poll_prospective", impatient)
