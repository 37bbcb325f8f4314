"""Java programs of the tests as a release can compile them: Kafka moves classes between packages.

An import names a class where some release has it. A release that has it elsewhere gets a copy of
the program with that place instead, so a move needs no second program.
``python -m tests.support.kafka.java_sources`` lists what the current release has elsewhere.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from kraftwire.testing.cluster import kafka
from tests.support.kafka.maven import CACHE, KAFKA

# A class that is called by its name, in the text of a program.
_NAME = re.compile(r'"((?:org\.apache\.kafka|kafka)\.[\w.]*\.?[A-Z]\w*)"')
_IMPORT = re.compile(r"^import ((?:org\.apache\.kafka|kafka)\.[\w.]+);$", re.MULTILINE)

SOURCES = Path(__file__).with_name("java_programs")

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


def imported_classes() -> list[str]:
    """The classes of Kafka that the programs import."""
    texts = (path.read_text("utf-8") for path in SOURCES.rglob("*.java"))
    return sorted({name for text in texts for name in _IMPORT.findall(text)})


def with_moved_imports(text: str, places: Places) -> str:
    """The program with every import of a class that moved naming its place in a release.

    So does every string that is the name of a class; not every release has those. Raises:
    AssertionError for an import that the release does not have, or has in several places.
    """
    text = _IMPORT.sub(lambda found: f"import {place_of(found[1], places)};", text)
    return _NAME.sub(lambda found: f'"{called_place(found[1], places)}"', text)


def called_place(name: str, places: Places) -> str:
    """Where a release has a class that is called by its name; the name if it has none."""
    found = places.get(name.rpartition(".")[2], [])
    return found[0] if name not in found and len(found) == 1 else name


def place_of(name: str, places: Places) -> str:
    """Where a release has a class. Raises: AssertionError as `with_moved_imports`."""
    found = places.get(name.rpartition(".")[2], [])
    if name in found:
        return name
    assert len(found) == 1, f"import of {name}: the release has {found or 'no such class'}"
    return found[0]


def main() -> None:
    """Print the classes that moved, each with its place in the current release."""
    places = places_of_classes(kafka.fetch(KAFKA, CACHE).glob("kafka*.jar"))
    for name in imported_classes():
        place = place_of(name, places)
        if place != name:
            print(f"{name} is {place}")


if __name__ == "__main__":
    main()
