"""The progress of a run of the pipeline: bytes, rate and time left, on a terminal."""

from __future__ import annotations

import sys
from pathlib import Path

from kraftwire.cli.background import BackgroundDisplay

_INTERVAL_S = 0.3


class PipelineProgress(BackgroundDisplay):
    """A context that shows the present phase; tasks leave marks with the bytes they have read."""

    def __init__(self, folder: Path, *, is_wanted: bool) -> None:
        self._marks = folder / "_tasks" / "done"
        self._phase = ("start", 0)
        super().__init__(is_wanted=is_wanted and sys.stderr.isatty())

    def begin(self, name: str, size: int) -> None:
        """Begin a phase that will read `size` bytes, 0 if unknown."""
        self._phase = name, size

    def _done(self) -> int:
        """Return the bytes of the finished units."""
        try:
            return sum(int(path.name.rpartition(".")[2]) for path in self._marks.iterdir())
        except (OSError, ValueError):
            return 0

    def show(self) -> None:
        """Show the phase on standard error until it ends."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as Bars

        columns = (
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
            TimeRemainingColumn(),
        )  # fmt: skip
        with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
            phase, task = self._phase, bars.add_task(self._phase[0], total=None)
            while not self.is_over.wait(_INTERVAL_S):
                if phase is not self._phase:
                    phase = self._phase
                    bars.reset(task, description=phase[0], total=phase[1] or None)
                if phase[0] == "decode":
                    bars.update(task, completed=self._done())
