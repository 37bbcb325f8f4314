"""Paths of input files: URIs and patterns as paths, and paths as text that tables can hold; own
folders.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from glob import glob
from pathlib import Path
from urllib.parse import unquote

from kraftwire.errors import UsageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_FILE = re.compile(r"file:(?://([^/]*))?(/.*)?", re.IGNORECASE | re.DOTALL)
# A file of another host is not read from here, as Hadoop does not.
_HERE = (None, "", "localhost")
# The innermost braces of a pattern.
_BRACES = re.compile(r"\{([^{}]*)\}")


def expanded(names: Iterable[str]) -> Iterator[Path]:
    """Return the paths that names and patterns lead to; a name that leads to nothing as it is."""
    for name in names:
        yield from matches(name) or [Path(local_path(name))]


def require(names: Iterable[str]) -> None:
    """Raises: UsageError for a name or pattern that leads to no file or folder."""
    for name in names:
        if not matches(name):
            raise UsageError(f"{name}: no such file or folder")


def matches(name: str) -> list[Path]:
    """Return the files and folders of a path, a URI or a pattern, in order.

    A pattern is one of Hadoop, as Spark's own sources take it (``*``, ``?``, ``[a-c]``, ``[^a]``,
    ``{a,b}``), and ``**`` is any number of folders.
    """
    path = local_path(name)
    if Path(path).exists():
        return [Path(path)]
    found = {Path(each) for one in _alternatives(path) for each in glob(one, recursive=True)}
    return sorted(found, key=str)


def has_name(path: Path, pattern: str) -> bool:
    """Whether the name of a file, without its folder, matches a pattern."""
    return any(fnmatchcase(path.name, one) for one in _alternatives(pattern))


def _alternatives(pattern: str) -> list[str]:
    """Return the patterns without braces that a pattern of Hadoop stands for, as Python's."""
    braces = _BRACES.search(pattern)
    if braces is None:
        return [pattern.replace("[^", "[!")]
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    each = (before + choice + after for choice in braces[1].split(","))
    return [one for several in each for one in _alternatives(several)]


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


def top_paths(names: Iterable[str]) -> list[Path]:
    """Return the absolute paths that names and patterns lead to; what is above them says nothing
    about their files.
    """
    return [Path(os.path.abspath(path)) for path in expanded(names)]


def folder_values(path: str | Path, tops: Iterable[Path]) -> dict[str, str]:
    """Return what the folders between some top paths and a file say: `day` is 20 in ``day=20/``."""
    file = Path(os.path.abspath(path))
    above = [len(top.parts) for top in tops if top in file.parents]
    folders = file.parts[min(above) : -1] if above else ()
    named = (readable(each).partition("=") for each in folders)
    return {unquote(name): unquote(value) for name, sign, value in named if name and sign}


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
