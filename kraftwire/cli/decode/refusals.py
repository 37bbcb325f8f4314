"""Refuses options of `kraftwire decode` that would have no effect on the inputs.

Owns which options are for captures and which for log files; filters have a check of their own for
each input, in `decode.run.line_filter`. The others may be for one of several inputs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kraftwire.decode.files.walk import walk
from kraftwire.errors import UsageError
from kraftwire.inspect.run.inputs import STDIN, kind_of
from kraftwire.inspect.run.run import Totals

__all__ = ["ensure_of_use", "ensure_was_of_use", "given"]

# Option -> its name among the values that the command gets.
_OF_CAPTURES = {"--columns": "columns", "--keylog": "keylog"}
_OF_FILES = {"--family": "family", "--offset": "offset", "--key": "key"}


def given(options: dict[str, Any], names: dict[str, str]) -> str:
    """Return those of some options that are given, as one text."""
    # Version 0 is one, so it must not be taken for nothing.
    asked = [name for name, key in names.items() if options[key] not in (None, (), "")]
    return ", ".join(name for name in asked if options[names[name]] is not False)


def ensure_of_use(options: dict[str, Any], paths: Iterable[str]) -> None:
    """Refuse options that none of the inputs can use. Raises: UsageError.

    Order: before the inputs are read. What cannot be read twice is left to `ensure_was_of_use`.
    """
    named = list(paths)
    if (asked := given(options, _OF_CAPTURES)) and (file := _of_one_kind(named, is_capture=False)):
        raise UsageError(f"{asked}: {file} is not a capture and holds no requests")
    if (asked := given(options, _OF_FILES)) and (file := _of_one_kind(named, is_capture=True)):
        raise UsageError(f"{asked}: {file} is a capture, not a file of records")


def ensure_was_of_use(options: dict[str, Any], totals: Totals) -> None:
    """Refuse options that nothing has used. Raises: UsageError. Order: at the end of a run."""
    if totals.files.line_count and not totals.captures and (asked := given(options, _OF_CAPTURES)):
        raise UsageError(f"{asked}: no input is a capture")
    if totals.captures and not totals.files.files and (asked := given(options, _OF_FILES)):
        raise UsageError(f"{asked}: all inputs are captures")


def _of_one_kind(paths: list[str], *, is_capture: bool) -> Path | None:
    """Return the first file if all known ones are captures, or if none is; else None."""
    if STDIN in paths:
        return None
    first = None
    for path in walk(map(Path, paths), _ignore):
        if not path.is_file():
            return None  # a pipe, whose bytes are still needed
        kind = kind_of(path)
        if kind.is_unknown:
            continue
        if kind.is_capture is not is_capture:
            return None
        first = first or path
    return first


def _ignore(_error: object) -> None:
    """Ignore it: it is reported where the path is read."""
