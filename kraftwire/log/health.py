"""Whether a log's disk still works: nothing is changed after the first error (D9)."""

from __future__ import annotations

from kraftwire.errors import StorageError

__all__ = ["Health"]


class Health:
    """The first disk error of a log, or None; as a context manager, it watches for it.

    One object for all operations: every append and every flush enters it.
    """

    __slots__ = ("error",)

    def __init__(self) -> None:
        """Begin without an error."""
        self.error: StorageError | None = None

    def ensure(self) -> None:
        """Raise the error, if there was one."""
        if self.error is not None:
            raise self.error

    def __enter__(self) -> None:
        """Begin an operation."""

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, StorageError):
            self.error = error
