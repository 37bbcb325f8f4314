"""Polling until a condition holds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

# Generous, because many processes may share the machine.
SECONDS_MAX = 120.0
_LOOK_SECONDS = 0.1

_T = TypeVar("_T")


def wait_until(
    look: Callable[[], _T | None],
    what: str,
    warn: Callable[[], str] = str,
    seconds: float = SECONDS_MAX,
) -> _T:
    """Call `look` until it returns something true; returns that.

    Raises: AssertionError if it takes too long, with what `tell` returns.
    """
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited in vain for {what}\n{warn()}"
        pause.wait(_LOOK_SECONDS)
    return found
