"""A follower fetches on before what it has is durable (D2, KAFKA-17332)."""

from __future__ import annotations

import pytest

from kraftwire.raft import following

FOUND_BY = {"S9"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Do not wait for the flush."""
    patch.setattr(following, "_may_fetch", lambda _: True)
