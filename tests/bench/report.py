"""What the benchmarks print: tables of figures, and bars with the measurements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

__all__ = ["Bar", "console", "microseconds", "print_bars", "print_table", "ratio"]

# A fixed width, so that a table in a file looks as in a terminal.
console = Console(width=200, highlight=False)


@dataclass(frozen=True, slots=True)
class Bar:
    """One measured figure and its floor.

    Figures are "times as fast" unless `is_ceiling`, which reverses the comparison; `unit`
    follows the numbers.
    """

    name: str
    value: float
    floor: float
    unit: str = "x"
    is_ceiling: bool = False

    @property
    def verdict(self) -> str:
        """Whether the figure reaches the floor."""
        is_held = self.value <= self.floor if self.is_ceiling else self.value >= self.floor
        return "held" if is_held else "MISSED"

    def show(self, figure: float) -> str:
        """A figure with the bar's unit."""
        return f"{figure:.3g} {self.unit}"


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table: the first column to the left, figures to the right."""
    columns = tuple(columns)
    table = Table(title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_bars(title: str, bars: list[Bar]) -> list[Bar]:
    """Print the bars of one benchmark and return those that were missed."""
    rows = [(b.name, b.show(b.value), b.show(b.floor), b.verdict) for b in bars]
    print_table(title, ("", "measured", "floor", ""), rows)
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
