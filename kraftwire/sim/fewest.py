"""Leaving out parts of what fails, as long as the rest fails too: halves, then ever fewer parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Part = TypeVar("_Part")


def fewest(
    parts: list[_Part],
    still_fails: Callable[[list[_Part]], list[_Part] | None],
    is_over: Callable[[], bool],
) -> list[_Part]:
    """Return the fewest parts found.

    `still_fails` tries some of the parts: it returns those that the failure needed at most, None
    without a failure. The search ends when single parts can no longer be left out, or `is_over`.
    """
    size = max(len(parts) // 2, 1)
    while not is_over():
        before = len(parts)
        start = 0
        while start < len(parts) and not is_over():
            needed = still_fails(parts[:start] + parts[start + size :])
            if needed is not None and len(needed) < len(parts):
                parts = needed
            else:
                start += size
        if size == 1 and len(parts) == before:
            break
        size = max(size // 2, 1)
    return parts
