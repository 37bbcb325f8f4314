"""The workflows take nothing on trust: what they run is fixed, and no secret stays behind."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
USES = re.compile(
    r"^ *(?:- )?uses: (?P<action>[^@\s]+)(?:@(?P<what>\S+))?(?: # (?P<comment>.*))?$", re.M
)


def _program(name: str) -> str:
    """A program of the environment, or of the machine; the test is skipped where it is missing."""
    found = shutil.which(name, path=Path(sys.executable).parent) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def test_actions_are_fixed_by_their_commit() -> None:
    """A tag can be moved to other code. One version of each is used, which a comment names."""
    fixed: dict[str, set[tuple[str, str]]] = {}
    for path in WORKFLOWS:
        for use in USES.finditer(path.read_text("utf-8")):
            if not use["action"].startswith("./"):
                fixed.setdefault(use["action"], set()).add((use["what"], use["comment"]))
    assert "actions/checkout" in fixed
    for action, versions in fixed.items():
        assert len(versions) == 1, f"{action}: {versions}"
        ((commit, version),) = versions
        assert re.fullmatch(r"[0-9a-f]{40}", commit), action
        assert re.fullmatch(r"v\d+\.\d+\.\d+", version or ""), action


def test_no_cache_reaches_a_release() -> None:
    """What a branch without review left in a cache would be built into it."""
    texts = {path.name: path.read_text("utf-8") for path in WORKFLOWS}
    called = re.findall(r"\./\.github/workflows/(\S+)", texts["release.yml"])
    assert called == ["gate.yml"]
    for name in ("release.yml", *called):
        assert not re.search(r"^ *cache:|actions/cache", texts[name], re.M), name


def test_zizmor_finds_nothing() -> None:
    """Permissions, credentials that are kept, expressions that others can fill."""
    command = [_program("zizmor"), "--offline", "--no-progress", *WORKFLOWS]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_actionlint_finds_nothing() -> None:
    """Form, expressions and scripts. It comes as a program of its own."""
    command = [_program("actionlint"), *WORKFLOWS]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
