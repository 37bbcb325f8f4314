"""Requests of another cluster are answered like those of this cluster (R-VOTE-4, R-FET-1)."""

from __future__ import annotations

import pytest

from kraftwire.raft import answers, serving

FOUND_BY = {"S17"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Compare no cluster ids."""
    patch.setattr(answers, "cluster_id_differs", lambda *_: False)
    patch.setattr(serving, "cluster_id_differs", lambda *_: False)
