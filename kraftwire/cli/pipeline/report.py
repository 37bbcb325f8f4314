"""`kraftwire pipeline report`: one HTML file from the tables of a folder, without Spark."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from kraftwire.cli.output import put
from kraftwire.decode.filters.values import parse_time
from kraftwire.errors import UsageError

_NEEDED = ("pyarrow", "numpy", "bokeh")


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--since", metavar="TIME", help="ISO 8601 (UTC) or seconds since the epoch.")
@click.option("--until", metavar="TIME", help="As --since; end of the report.")
def report(folder: Path, since: str | None, until: str | None) -> None:
    """Write report.html from the tables of DIR.

    Each of its plots has a CSV beside it. The page is self-contained and loads nothing from the
    network. Prints its path.

    \b
      kraftwire pipeline report tables
      kraftwire pipeline report tables --since 2026-11-20T20:27
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        names = ", ".join(missing)
        raise click.ClickException(f"{names} not installed: pip install 'kraftwire[report]'")
    from kraftwire.spark.report import Interval, write

    put(str(write(folder, Interval(*interval(since, until)))))


def interval(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """Return both times in nanoseconds since the epoch. Raises: UsageError for an empty interval.
    """
    start = None if since is None else parse_time(since)
    end = None if until is None else parse_time(until)
    if start is not None and end is not None and start >= end:
        raise UsageError(f"--since {since} is not before --until {until}")
    return start, end
