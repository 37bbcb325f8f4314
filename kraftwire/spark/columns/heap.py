"""Returns memory to the system after very long batches.

Allocators keep freed memory for reuse. That makes ordinary batches fast, but after one of many
megabytes it doubles the memory of the process.
"""

from __future__ import annotations

import contextlib
import ctypes

import pyarrow as pa

__all__ = ["LONG_BYTES", "give_back"]

# The memory that an allocator keeps after shorter ones does not matter.
LONG_BYTES = 4 * 1024 * 1024


def give_back() -> None:
    """Release unused memory of the C library (glibc only) and Arrow."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
