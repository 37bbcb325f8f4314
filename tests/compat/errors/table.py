"""The page that says what clients make of errors: a row for each API and error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from tests.compat.errors.meeting import Met
from tests.compat.errors.refusals import REFUSALS

PAGE = Path(__file__).parents[3] / "docs" / "client-errors.md"
_NOT_SENT = "-"
# The page's text ends, and its table begins.
_BEGIN = "| API | error | "

Key = tuple[str, str, str]
"""An API, an error, a client."""

Cells = dict[Key, str]
"""What clients make of errors."""


def rows_of(client: str, found: Iterable[Met]) -> Cells:
    """Return the cells of a client by API, error and client."""
    cells: dict[Key, list[Met]] = defaultdict(list)
    for met in found:
        cells[met.api, met.error, client].append(met)
    return {key: _cell(each) for key, each in cells.items()}


def _cell(found: list[Met]) -> str:
    """Return outcomes with their versions: those in a row that are equal are one."""
    parts = []
    for outcome, group in groupby(found, key=lambda met: met.outcome):
        versions = [met.version for met in group]
        low, high = versions[0], versions[-1]
        parts.append(f"v{low} {outcome}" if low == high else f"v{low}-{high} {outcome}")
    return "; ".join(parts)


def read_cells() -> Cells:
    """Return the cells of the page."""
    lines = PAGE.read_text("utf-8").partition(_BEGIN)[2].splitlines()
    if not lines:
        return {}
    clients = _split(lines[0])
    rows = [_split(line.removeprefix("| ")) for line in lines[2:]]
    return {
        (api, error, client): cell
        for api, error, *cells in rows
        for client, cell in zip(clients, cells, strict=True)
        if cell != _NOT_SENT
    }


def _split(line: str) -> list[str]:
    return line.removesuffix(" |").split(" | ")


def page(cells: Cells, clients: Iterable[str]) -> str:
    """Return the page with a table of these cells."""
    names = list(clients)
    lines = [f"{_BEGIN}{' | '.join(names)} |", f"|{'---|' * (2 + len(names))}"]
    for api in sorted(REFUSALS):
        for error in REFUSALS[api]:
            row = [cells.get((api, error, name), _NOT_SENT) for name in names]
            if set(row) != {_NOT_SENT}:
                lines.append(f"| {api} | {error} | {' | '.join(row)} |")
    text = PAGE.read_text("utf-8").partition(_BEGIN)[0]
    return "\n".join([text.rstrip(), "", *lines, ""])
