"""The progress of a run, on standard error.

Shown only if standard error is a terminal, standard output is not (its lines show the progress),
and the run takes longer than a second.
"""

from __future__ import annotations

import sys

from kraftwire.cli.background import Shown
from kraftwire.inspect.run.run import Totals

_QUIET_S = 1.0
_INTERVAL_S = 0.2


class Progress(Shown):
    """A context that shows a run's counts as they grow."""

    def __init__(self, totals: Totals, *, is_wanted: bool) -> None:
        self._totals = totals
        is_seen = sys.stderr.isatty() and not sys.stdout.isatty()
        super().__init__(is_wanted=is_wanted and is_seen)

    def show(self) -> None:
        """Show the counts on standard error until the run is over."""
        if self.is_over.wait(_QUIET_S):
            return
        from rich.console import Console
        from rich.progress import Progress as Bars
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task("")
            while not self.is_over.wait(_INTERVAL_S):
                bars.update(task, description=self._text())

    def _text(self) -> str:
        totals = self._totals
        parts = []
        if totals.frames:
            parts.append(f"{totals.frames:,} frames")
        if totals.files.line_count:
            parts.append(f"{totals.files.line_count:,} lines of files")
        return ", ".join(parts) or "reading"
