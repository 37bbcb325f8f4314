"""The folder of tables, for one run at a time and for nothing but tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kraftwire.errors import StorageError, UsageError
from kraftwire.log.files import LocalFiles

__all__ = ["claimed", "refuse_strangers"]

_LOCK = "_manifest/lock"


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """A folder that no other run writes to meanwhile; made if it is not there.

    Shape: a run that was killed holds it no more. Raises: UsageError if it is a file, or if
    another run is at work in it.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file, and tables need a folder")
    path = folder / _LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock = LocalFiles().lock(str(path))
    except StorageError as error:
        if isinstance(error.__cause__, BlockingIOError) or error.__cause__ is None:
            raise UsageError(f"{folder}: another run is at work in this folder") from error
        raise
    try:
        yield
    finally:
        lock.close()


def refuse_strangers(folder: Path) -> None:
    """Raises: UsageError if a folder without a manifest has what would be taken for tables."""
    for path in sorted(folder.glob("[!_.]*/*.parquet")):
        stranger = path.relative_to(folder)
        problem = f"holds {stranger}, which no run of the pipeline wrote"
        raise UsageError(f"{folder}: {problem}; take another folder")
