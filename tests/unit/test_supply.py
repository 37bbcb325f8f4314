"""What CI installs is pinned, and a check that could not be made says so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tools.supply.__main__ import FOUND, NONE_KNOWN, NOT_CHECKED, verdict

_ROOT = Path(__file__).resolve().parents[2]
_PINNED = {
    ".ci/requirements.txt": ("codegen", "dev", "interop"),
    ".ci/requirements-spark.txt": ("spark",),
}


def _name(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    assert match is not None, requirement
    return match[0].lower().replace("_", "-")


@pytest.mark.parametrize("path", _PINNED)
def test_everything_is_pinned_by_version_and_hash(path: str) -> None:
    """And no index is named: which one is asked is the installer's business."""
    text = (_ROOT / path).read_text()
    requirements = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", text, flags=re.M)).splitlines()
    assert len(requirements) > 10
    for line in requirements:
        assert re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line
    assert "://" not in text


@pytest.mark.parametrize("path", _PINNED)
def test_all_that_the_extras_need_is_pinned(path: str) -> None:
    """A new dependency has to come with `make pins`, or CI does not have it."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    wanted = list(project["dependencies"])
    for extra in _PINNED[path]:
        wanted += project["optional-dependencies"][extra]
    pinned = {_name(line) for line in (_ROOT / path).read_text().splitlines() if "==" in line}
    assert {_name(one) for one in wanted} - {"kraftwire"} <= pinned


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (0, "No known vulnerabilities found\n", NONE_KNOWN),
        (1, "Found 2 known vulnerabilities in 1 package\n", FOUND),
        (1, "ERROR:pip_audit._cli:trio: Dependency not found on PyPI\n", NOT_CHECKED),
        (1, "", NOT_CHECKED),
    ],
)
def test_what_was_not_checked_is_not_called_sound(code: int, said: str, expected: int) -> None:
    """An index without the service lets pip-audit skip every package."""
    assert verdict(code, said)[0] == expected
