"""A start takes a log's contents for durable, although a killed process may have left them."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.log import opening

FOUND_BY = {"S9"}


class _Unsynced:
    """A file that is never synced."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def fdatasync(self) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Open a log without flushing it."""
    repair = opening.repair

    def careless(files: Any, directory: str, found: Any, *, is_marked: bool) -> None:
        last = found.segments[-1]
        file, last.file = last.file, _Unsynced(last.file)
        repair(files, directory, found, is_marked=is_marked)
        last.file = file

    patch.setattr(opening, "repair", careless)
