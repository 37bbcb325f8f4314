"""Progress shown by a separate thread while something runs."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self


class Shown:
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.is_over.set()
        if self._thread is not None:
            self._thread.join()
