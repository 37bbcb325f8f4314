"""Progress shown by a separate thread while something runs."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


class BackgroundDisplay:
    """A context during which `show` runs in a thread, if it is wanted.

    Order: `is_over` is set when the context ends, which waits for `show` to return.
    """

    def __init__(self, *, is_wanted: bool) -> None:
        self.is_over = threading.Event()
        self._thread = threading.Thread(target=self.show, daemon=True) if is_wanted else None

    def show(self) -> None:
        """Show the progress until `is_over` is set; subclasses implement this."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        if self._thread is not None:
            self._thread.join()


class StatusLine(BackgroundDisplay):
    """A context that shows one line on standard error, if it lasts; the line goes at its end.

    Units: `quiet_s` is how long nothing is shown, `interval_s` how often the text is looked at.
    """

    def __init__(
        self, *, is_wanted: bool = True, quiet_s: float = 1.0, interval_s: float = 0.2
    ) -> None:
        self._quiet_s, self._interval_s = quiet_s, interval_s
        super().__init__(is_wanted=is_wanted and sys.stderr.isatty())

    def text(self) -> str:
        """Return the present text; subclasses implement this."""
        raise NotImplementedError

    def columns(self) -> tuple[ProgressColumn, ...]:
        """Return what the line consists of, columns of rich; the text is its description."""
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        return SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}")

    def show(self) -> None:
        """Show the line until the context ends."""
        if self.is_over.wait(self._quiet_s):
            return
        from rich.console import Console
        from rich.progress import Progress

        line = Progress(*self.columns(), console=Console(stderr=True), transient=True)
        with line:
            task = line.add_task("", total=None)
            while not self.is_over.wait(self._interval_s):
                line.update(task, description=self.text())
