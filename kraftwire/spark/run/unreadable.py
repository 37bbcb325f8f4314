"""Folders and files that could not even be listed or opened: sources with nothing but a finding."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kraftwire.errors import StorageError
from kraftwire.spark.captures.findings import BadBytes
from kraftwire.spark.paths import readable
from kraftwire.spark.run.inputs import expanded
from kraftwire.spark.run.manifest import Source

__all__ = ["outdated", "unread_rows", "unread_source"]

_STATE = "unread"


def unread_source(error: StorageError) -> Source:
    """Return the source of a folder or file that cannot be read; its path is in the state."""
    path = os.path.abspath(error.file)
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return Source(f"unread-{name}", [], state={_STATE: path})


def unread_rows(error: StorageError) -> Iterator[tuple[str, BadBytes]]:
    """Return its row of bad_input; the length is unknown."""
    path = os.path.abspath(error.file)
    id = "unreadable-folder" if os.path.isdir(path) else "unreadable-file"
    problem = readable(error.problem)
    yield "bad_input", BadBytes(readable(path), 0, 0, "file", id, problem)


def outdated(sources: Mapping[str, Source], inputs: Iterable[str], now: Iterable[str]) -> list[str]:
    """Return the names of such sources under some inputs, except those that are still unread."""
    tops = {Path(os.path.abspath(path)) for path in expanded(inputs)}
    found = []
    for name, source in sources.items():
        if _STATE in source.state and name not in now:
            path = Path(source.state[_STATE])
            if not tops.isdisjoint((path, *path.parents)):
                found.append(name)
    return found
