"""What the benchmarks print: tables of figures, and bars with the measurements."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from tests.bench.figures import FIGURES

__all__ = ["Bar", "console", "keep", "microseconds", "print_bars", "print_table", "ratio"]

# A fixed width, so that a table in a file looks as in a terminal.
console = Console(width=200, highlight=False)



# Tables that this process has printed, to be kept.
_printed: list[dict[str, object]] = []


@dataclass(frozen=True, slots=True)
class Bar:
    """One measured figure, its floor and its goal.

    Figures are "times as fast" unless `is_ceiling`, which reverses the comparison; `unit`
    follows the numbers.
    """

    name: str
    value: float
    floor: float
    goal: float | None = None
    unit: str = "x"
    is_ceiling: bool = False

    @property
    def verdict(self) -> str:
        """What the figure reaches: the goal, the floor, or neither."""
        if self.goal is not None and self._reaches(self.goal):
            return "goal reached"
        return "floor held" if self._reaches(self.floor) else "MISSED"

    def _reaches(self, mark: float) -> bool:
        return self.value <= mark if self.is_ceiling else self.value >= mark

    def show(self, figure: float | None) -> str:
        """A figure with the bar's unit."""
        return "" if figure is None else f"{figure:.3g} {self.unit}"


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table: the first column to the left, figures to the right."""
    columns, rows = tuple(columns), [tuple(row) for row in rows]
    _printed.append({"title": title, "columns": columns, "rows": rows})
    table = Table(title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def keep(section: str, machine: str) -> None:
    """Write all printed tables as JSON, replacing those kept before."""
    FIGURES.mkdir(exist_ok=True)
    day = datetime.now(UTC).date().isoformat()
    kept = {"section": section, "day": day, "machine": machine, "tables": _printed}
    path = FIGURES / f"{section}.json"
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def print_bars(title: str, bars: list[Bar]) -> list[Bar]:
    """Print the bars of one benchmark and return those that were missed."""
    rows = [(b.name, b.show(b.value), b.show(b.floor), b.show(b.goal), b.verdict) for b in bars]
    print_table(title, ("", "measured", "floor", "goal", ""), rows)
    return [bar for bar in bars if bar.verdict == "MISSED"]


def microseconds(seconds: float | None) -> str:
    """A time in microseconds with three significant digits, a dash if there is none."""
    if seconds is None:
        return "-"
    value = seconds * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(value: float | None) -> str:
    """A ratio as text, a dash if there is no peer."""
    return "-" if value is None else f"{value:.2f}"
