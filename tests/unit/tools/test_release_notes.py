"""A tag without its version or its changelog ends a release before anything is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.supply.__main__ import release_notes

_CHANGELOG = """# Changelog

## Unreleased

## 1.2.0 - 2027-01-02

### Added

- A door.

## 1.2.0rc1

## 1.1.0

- A wall.
"""


def _project(folder: Path, version: str, of_simulator: str) -> Path:
    for place, name, number in (
        (folder, "kraftwire", version),
        (folder / "packages" / "sim", "kraftwire-sim", of_simulator),
    ):
        place.mkdir(parents=True, exist_ok=True)
        text = f'[project]\nname = "{name}"\nversion = "{number}"\n'
        (place / "pyproject.toml").write_text(text, encoding="utf-8")
    (folder / "CHANGELOG.md").write_text(_CHANGELOG, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("version", "notes"), [("1.2.0", "### Added\n\n- A door."), ("1.1.0", "- A wall.")]
)
def test_the_notes_are_the_section_of_the_version(version: str, notes: str, tmp_path: Path) -> None:
    """Neither the heading nor what other releases changed."""
    assert release_notes(_project(tmp_path, version, version), f"v{version}") == notes


@pytest.mark.parametrize(
    ("version", "of_simulator", "tag", "problem"),
    [
        ("1.2.0", "1.2.0", "v1.2.1", "the tag is v1.2.1, but kraftwire has version 1.2.0"),
        ("1.2.0", "1.2.0", "1.2.0", "the tag is 1.2.0, but kraftwire has version 1.2.0"),
        ("1.2.0", "1.1.0", "v1.2.0", "the tag is v1.2.0, but kraftwire-sim has version 1.1.0"),
        ("1.2.0rc1", "1.2.0rc1", "v1.2.0rc1", "CHANGELOG.md says nothing under '## 1.2.0rc1'"),
        ("1.20", "1.20", "v1.20", "CHANGELOG.md says nothing under '## 1.20'"),
    ],
)
def test_a_release_that_does_not_fit_together_ends(
    version: str, of_simulator: str, tag: str, problem: str, tmp_path: Path
) -> None:
    """The reason is the message of the job that failed."""
    with pytest.raises(SystemExit) as ended:
        release_notes(_project(tmp_path, version, of_simulator), tag)
    assert str(ended.value) == problem
