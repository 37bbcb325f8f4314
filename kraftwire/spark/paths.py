"""Paths of input files: URIs as paths, and paths as text that tables can hold; own folders."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from kraftwire.errors import UsageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_FILE = re.compile(r"file:(?://([^/]*))?(/.*)?", re.IGNORECASE | re.DOTALL)
# A file of another host is not read from here, as Hadoop does not.
_HERE = (None, "", "localhost")


def local_path(text: str) -> str:
    """Return the path that a URI of a file names; any other text is one already.

    Patterns in it stay as they are. Raises: UsageError for a URI of another host or file system:
    its files would have to be read by Java.
    """
    scheme = _SCHEME.match(text)
    if scheme is None or Path(text).exists():
        return text
    file = _FILE.fullmatch(text)
    if file is not None:
        return _path_of(text, host=file[1], path=file[2] or "/")
    raise UsageError(
        f"{text}: only files that every executor sees under the same path can be read: mount "
        f"{scheme[1]}:// as a folder, or copy the files to one, and name that"
    )


def _path_of(text: str, *, host: str | None, path: str) -> str:
    if host not in _HERE:
        raise UsageError(
            f"{text}: a URI of a file that names the host {host}: write file:///PATH for a file of "
            "this host"
        )
    # Hadoop takes the name as it stands, Java's own URIs have it quoted.
    return path if Path(path).exists() else unquote(path)


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
