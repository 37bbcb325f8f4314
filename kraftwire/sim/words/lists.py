"""Several things in a sentence, or one below the other."""

from __future__ import annotations

from collections.abc import Sequence


def listed(nodes: Sequence[int]) -> str:
    """Join ids for a sentence."""
    names = [str(node) for node in nodes]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the columns of rows with equally many cells."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
