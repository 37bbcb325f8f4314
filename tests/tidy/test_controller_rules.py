"""Rules of the controller that code and tests cite stand in their list."""

from __future__ import annotations

import re

from tests.tidy.sources import ROOT, project_files, show

LIST = ROOT / "docs" / "controller-rules.md"
# Its examples are made up.
RECIPES = ROOT / "CONTRIBUTING.md"
_ROW = re.compile(r"^\| (C-[A-Z]+(?:-\d+)?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
_CITED = re.compile(r"\bC-[A-Z]{2,}(?:-\d+)?\b")


def _known() -> set[str]:
    """The rules of the list, and their families: C-HB is all of C-HB-1, C-HB-6 and so on."""
    names = [name for name, _, _ in _ROW.findall(LIST.read_text("utf-8"))]
    assert len(names) == len(set(names)) == LIST.read_text("utf-8").count("\n| C-")
    assert len(names) > 50
    return {*names, *(re.sub(r"-\d+$", "", name) for name in names)}


def test_every_rule_that_is_cited_stands_in_the_list_once() -> None:
    """A reader who meets C-PCB-5 in the code can look it up."""
    known = _known()
    unknown = [
        f"{show(path)}: {name}"
        for path in project_files()
        if path.suffix in (".py", ".md", ".java", ".txt") and "messages" not in path.parts
        and path != RECIPES
        for name in sorted(set(_CITED.findall(path.read_text("utf-8"))) - known)
    ]
    assert unknown == []
