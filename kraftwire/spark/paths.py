"""Paths of input files: URIs as paths, and paths as text that tables can hold; own folders."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kraftwire.errors import UsageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")


def local_path(text: str) -> str:
    """Return the path that a URI of a file names; any other text is one already.

    Raises: UsageError for a URI of another file system: its files would have to be read by Java.
    """
    scheme = _SCHEME.match(text)
    if scheme is None or Path(text).exists():
        return text
    if scheme[1].lower() == "file":
        return unquote(urlsplit(text).path)
    raise UsageError(
        f"{text}: only files that every executor sees under the same path can be read: mount "
        f"{scheme[1]}:// as a folder, or copy the files to one, and name that"
    )


OWN_FOLDER = 0o700
"""Tables may hold payloads and names, which are no business of the machine's other users."""


def own_folder(path: Path) -> Path:
    """Make a folder and its parents, unless they exist, that only their owner can enter; return
    the folder."""
    if not path.is_dir():
        own_folder(path.parent)
        path.mkdir(OWN_FOLDER, exist_ok=True)
    return path


def readable(path: str | os.PathLike[str]) -> str:
    """Return a path as UTF-8: invalid bytes of a name are written as `\\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
