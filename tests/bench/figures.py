"""The kept figures, as a page: ``python -m tests.bench.figures`` rewrites it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["FIGURES", "page"]

FIGURES = Path(__file__).with_name("figures")

_HEAD = """# Figures

What `python -m tests.bench SECTION --keep` has measured, written by
`python -m tests.bench.figures` out of the JSON next to it. The machine did other
work meanwhile: the load is given, 2 would be both of its cores. CPU time also grows with the load,
by a quarter or more; ratios within one run hardly do.
"""


def page() -> str:
    """The page of all sections that have figures."""
    sections = [json.loads(path.read_text()) for path in sorted(FIGURES.glob("*.json"))]
    return "\n".join([_HEAD, *(line for each in sections for line in _section(each))])


def _section(kept: dict[str, Any]) -> Iterator[str]:
    yield f"## {kept['section']}"
    yield ""
    yield f"{kept['day']}; {kept['machine']}."
    yield ""
    for table in kept["tables"]:
        yield f"{table['title']}:"
        yield ""
        yield f"| {' | '.join(table['columns'])} |"
        yield f"|{'---|' * len(table['columns'])}"
        yield from (f"| {' | '.join(row)} |" for row in table["rows"])
        yield ""


if __name__ == "__main__":
    (FIGURES / "README.md").write_text(page(), encoding="utf-8")
