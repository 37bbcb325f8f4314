"""Java programs of the tests as a release can compile them: Kafka moves classes between packages.

An import names a class where the current release has it. A release that has it elsewhere gets a
copy of the program with that place instead, so a move needs no second program.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

_IMPORT = re.compile(r"^import ((?:org\.apache\.kafka|kafka)\.[\w.]+);$", re.MULTILINE)

Places = Mapping[str, list[str]]


def places_of_classes(jars: Iterable[Path]) -> Places:
    """Where the classes of Kafka's jars are: full names by the class's own name."""
    places: dict[str, list[str]] = {}
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if entry.endswith(".class"):
                    name = entry.removesuffix(".class").replace("/", ".").replace("$", ".")
                    places.setdefault(name.rpartition(".")[2], []).append(name)
    return places


def with_moved_imports(text: str, places: Places) -> str:
    """The program with every import of a class that moved naming its place in a release.

    Raises: AssertionError for a class that the release does not have, or has in several places.
    """
    return _IMPORT.sub(lambda found: f"import {_place(found[1], places)};", text)


def _place(name: str, places: Places) -> str:
    found = places.get(name.rpartition(".")[2], [])
    if name in found:
        return name
    assert len(found) == 1, f"import of {name}: the release has {found or 'no such class'}"
    return found[0]
