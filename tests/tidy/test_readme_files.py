"""The files that READMEs name exist, so that a reader finds what a sentence is about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

_FILE = re.compile(r"`([\w./-]+\.(?:py|c|h|j2))`")
_READMES = sorted(
    path
    for top in ("kraftwire", "codegen", "examples", "packages", "tools", "tests")
    for path in (ROOT / top).rglob("*.md")
    if "node_modules" not in path.parts
)
_DOCS = sorted((ROOT / "docs").rglob("*.md"))
_OF_PACKAGES = [path for path in _READMES if path.is_relative_to(ROOT / "kraftwire")]
_CELL = re.compile(r"^\| *([^|]*?) *\|")
_CODE = re.compile(r"`([\w./]+)`")
# A line of a block of modules: names, then what they own.
_LINE = re.compile(r"^([a-z_][\w/., ]*?)  +\S", re.MULTILINE)
_CLASS = re.compile(r"`(?:[\w.]*\.)?([A-Z][a-z]+(?:[A-Z][a-z]+)+)[\w.()]*`")


def _endings(name: str) -> tuple[str, ...]:
    """The ends of the paths that a name in such a table may stand for."""
    if name.endswith((".py", "/")):
        return (f"/{name}",)
    path = name.replace(".", "/")
    return f"/{path}.py", f"/{path}/"


def _modules(text: str) -> list[str]:
    """The names in the first column of tables of modules."""
    found, is_inside = [], False
    for line in text.splitlines():
        cell = _CELL.match(line)
        is_inside = cell is not None and (is_inside or cell[1] == "module")
        if is_inside and cell is not None:
            found += _CODE.findall(cell[1])
    return found


@pytest.mark.parametrize("readme", _READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_in_the_table_of_a_readme_exist(readme: Path) -> None:
    """They are named from the README's folder or from one below it, with dots or slashes."""
    inside = [
        f"/{path.relative_to(readme.parent)}{'/' if path.is_dir() else ''}"
        for path in readme.parent.rglob("*")
    ]
    missing = [
        name
        for name in _modules(readme.read_text())
        if not any(one.endswith(_endings(name)) for one in inside)
    ]
    assert not missing


@pytest.mark.parametrize(
    "readme", [*_READMES, *_DOCS], ids=lambda path: str(path.relative_to(ROOT))
)
def test_files_named_in_a_readme_exist(readme: Path) -> None:
    """A path is that from the README's folder, from the package or from the root."""
    package = ROOT / ("kraftwire" if readme in _DOCS else readme.relative_to(ROOT).parts[0])
    below = package if readme in _DOCS else readme.parent
    places = (readme.parent, package, ROOT, *below.rglob("*/"))
    missing = [
        name
        for name in _FILE.findall(readme.read_text())
        if not any((place / name).exists() for place in places)
    ]
    assert not missing


def _is_source(path: Path) -> bool:
    return path.suffix in (".py", ".c", ".h") and not path.stem.startswith("__")


@pytest.mark.parametrize("readme", _OF_PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_readme_that_names_most_modules_of_its_folder_names_all(readme: Path) -> None:
    """A new module would be missing from a table that looks complete."""
    text = readme.read_text()
    cells = [*_CODE.findall(text), *_LINE.findall(text)]
    named = {name for cell in cells for name in re.split(r"[./, ]+", cell)}
    modules = {path.stem for path in readme.parent.iterdir() if _is_source(path)}
    missing = modules - named
    assert not missing or len(missing) >= len(modules) / 2


@pytest.fixture(scope="module")
def words() -> set[str]:
    """The words in the sources of the package, its tests and its schemas."""
    kinds = {".py", ".pyi", ".c", ".h", ".json"}
    paths = [
        path
        for top in ("kraftwire", "tests", "packages", "schemas")
        for path in (ROOT / top).rglob("*")
        if path.suffix in kinds and "node_modules" not in path.parts
    ]
    texts = (path.read_text("utf-8", "ignore") for path in paths)
    return {word for text in texts for word in re.findall(r"\w+", text)}


@pytest.mark.parametrize("readme", _OF_PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_classes_named_in_a_readme_exist(readme: Path, words: set[str]) -> None:
    """A class that was renamed or merged is not looked for in vain."""
    assert set(_CLASS.findall(readme.read_text())) - words == set()
