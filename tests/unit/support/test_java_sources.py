"""Java programs of the tests import a class from where a release has it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.support.kafka.java_sources import places_of_classes, with_moved_imports

PROGRAM = """package kraftwire;

import java.util.List;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.Time;
"""


def _jar(folder: Path, *classes: str) -> Path:
    with zipfile.ZipFile(folder / "kafka-clients-9.9.9.jar", "w") as archive:
        for name in classes:
            archive.writestr(f"{name.replace('.', '/')}.class", "")
    return folder / "kafka-clients-9.9.9.jar"


def test_a_class_that_moved_is_imported_from_its_place(tmp_path: Path) -> None:
    """Everything else stays, Java's own classes included."""
    jar = _jar(tmp_path, "org.apache.kafka.moved.Exit", "org.apache.kafka.common.utils.Time")
    moved = with_moved_imports(PROGRAM, places_of_classes([jar]))
    assert moved == PROGRAM.replace("common.utils.Exit", "moved.Exit")


def test_a_class_that_stays_is_not_taken_for_one_of_its_name(tmp_path: Path) -> None:
    """Kafka has several classes of some names."""
    names = ("common.utils.Exit", "moved.Exit", "common.utils.Time")
    jar = _jar(tmp_path, *(f"org.apache.kafka.{name}" for name in names))
    assert with_moved_imports(PROGRAM, places_of_classes([jar])) == PROGRAM


@pytest.mark.parametrize("places", [(), ("org.apache.kafka.a.Exit", "org.apache.kafka.b.Exit")])
def test_a_class_without_one_place_is_named(tmp_path: Path, places: tuple[str, ...]) -> None:
    """Someone has to look what became of it."""
    jar = _jar(tmp_path, "org.apache.kafka.common.utils.Time", *places)
    with pytest.raises(AssertionError, match=r"import of org.apache.kafka.common.utils.Exit: the"):
        with_moved_imports(PROGRAM, places_of_classes([jar]))
