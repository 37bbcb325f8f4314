"""The mark of tests whose time passes at once when all their tasks wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing


def _run(function: Callable[[], Awaitable[Any]], *, clock: Any = None, **options: Any) -> Any:
    clock = clock or trio.testing.MockClock(autojump_threshold=0)
    return trio.run(function, clock=clock, **options)


# For a test or a module, in place of `pytest.mark.trio`; a test that looks at its clock has the
# fixture `autojump_clock` instead.
autojump = pytest.mark.trio(run=_run)
