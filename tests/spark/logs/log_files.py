"""Real files of log directories, and segments made and damaged for a test."""

from __future__ import annotations

import random
from pathlib import Path

__all__ = ["FILES", "GOLDEN", "damaged", "user_segment"]

GOLDEN = Path(__file__).parents[2] / "golden" / "logs"
FILES = sorted([*GOLDEN.rglob("*.log"), *GOLDEN.rglob("*.checkpoint")])


def user_segment(folder: Path, data: bytes) -> Path:
    """A segment of partition 1 of a user's topic."""
    partition = folder / "orders-1"
    partition.mkdir(exist_ok=True)
    path = partition / f"{0:020}.log"
    path.write_bytes(data)
    return path


def damaged(source: random.Random, data: bytes) -> bytes:
    """The bytes with one to four kinds of damage."""
    raw = bytearray(data)
    for _ in range(source.randrange(1, 5)):
        at = source.randrange(len(raw))
        kind = source.randrange(5)
        if kind == 0:
            raw[at] ^= 1 << source.randrange(8)
        elif kind == 1:
            raw[at : at + 300] = bytes(len(raw[at : at + 300]))
        elif kind == 2:
            raw[at:at] = source.randbytes(source.randrange(1, 200))
        elif kind == 3:
            del raw[at : at + source.randrange(1, 200)]
        else:
            del raw[max(100, at) :]
    return bytes(raw)
