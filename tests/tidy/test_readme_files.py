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
