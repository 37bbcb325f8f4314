"""A snapshot changes along with the state machine while it is being written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kraftwire.sim.state_machine import Digest

FOUND_BY = {"S14"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Freeze the state when it is read, not when it is asked for."""
    freeze = Digest.freeze

    def late(self: Any) -> Iterator[bytes]:
        yield from freeze(self)

    patch.setattr(Digest, "freeze", late)
