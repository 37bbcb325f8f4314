"""The claim on a folder: one run at a time, and nothing but tables in it."""

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
    """Claim a folder, so that no other run writes to it; create it if necessary.

    A killed run holds no claim. Raises: UsageError if it is a file, or if another run is using it.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file; tables need a folder")
    path = folder / _LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock = LocalFiles().lock(str(path))
    except StorageError as error:
        if isinstance(error.__cause__, BlockingIOError) or error.__cause__ is None:
            raise UsageError(f"{folder}: another run is using this folder") from error
        raise
    try:
        yield
    finally:
        lock.close()


def refuse_strangers(folder: Path) -> None:
    """Raises: UsageError if a folder without a manifest has files that would be taken for tables.
    """
    for path in sorted(folder.glob("[!_.]*/*.parquet")):
        stranger = path.relative_to(folder)
        problem = f"holds {stranger}, which no run of the pipeline wrote"
        raise UsageError(f"{folder}: {problem}; use another folder")
