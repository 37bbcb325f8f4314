"""Gives memory back to the system after batches that became very long.

Allocators keep what was freed for the next time. That makes usual batches fast, but after one of
many megabytes it doubles what a process takes.
"""

from __future__ import annotations

import contextlib
import ctypes

import pyarrow as pa

__all__ = ["LONG_BYTES", "give_back"]

# What an allocator keeps of shorter ones does not count.
LONG_BYTES = 4 * 1024 * 1024


def give_back() -> None:
    """Give back what the C library (glibc only) and Arrow have no use for."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
