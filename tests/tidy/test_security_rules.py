"""Rules of security that code and tests cite stand in their list."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.tidy.sources import ROOT, project_files, show

LIST = ROOT / "docs" / "security-rules.md"
_ROW = re.compile(r"^\| (SEC-[A-Z]\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
_CITED = re.compile(r"\bSEC-([A-Z])(\d+)\b(?: to (?:SEC-\1)?(\d+)\b)?")


def _cited(text: str) -> Iterator[str]:
    """The rules that a text names; of a range its ends, since numbers have gaps."""
    for letter, first, last in _CITED.findall(text):
        yield from (f"SEC-{letter}{number}" for number in (first, last) if number)


def test_every_rule_stands_once() -> None:
    """A citation leads to one sentence, and that to its source."""
    names = [name for name, _, _ in _ROW.findall(LIST.read_text("utf-8"))]
    assert len(names) == len(set(names)) == LIST.read_text("utf-8").count("\n| SEC-")
    assert len(names) > 20


def test_every_rule_that_is_cited_stands_in_the_list() -> None:
    """A reader who meets SEC-S9 in the code can look it up."""
    known = {name for name, _, _ in _ROW.findall(LIST.read_text("utf-8"))}
    unknown = [
        f"{show(path)}: {name}"
        for path in project_files()
        if path.suffix in (".py", ".md", ".java") and "messages" not in path.parts
        for name in sorted(set(_cited(path.read_text("utf-8"))) - known)
    ]
    assert unknown == []
