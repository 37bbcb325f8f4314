"""The files that READMEs name exist, so that a reader finds what a sentence is about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

_FILE = re.compile(r"`([\w./-]+\.(?:py|c|h|j2))`")
_READMES = sorted(
    path
    for top in ("kraftwire", "codegen", "tools", "tests")
    for path in (ROOT / top).rglob("*.md")
    if "node_modules" not in path.parts
)


_CELL = re.compile(r"^\| *([^|]*?) *\|")
_CODE = re.compile(r"`([\w./]+)`")


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


@pytest.mark.parametrize("readme", _READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_named_in_a_readme_exist(readme: Path) -> None:
    """A path is that from the README's folder, from the package or from the root."""
    package = ROOT / readme.relative_to(ROOT).parts[0]
    places = (readme.parent, package, ROOT, *readme.parent.rglob("*/"))
    missing = [
        name
        for name in _FILE.findall(readme.read_text())
        if not any((place / name).exists() for place in places)
    ]
    assert not missing
