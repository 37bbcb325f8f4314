"""Generated code is what the generator writes today."""

from __future__ import annotations

import subprocess
import sys

from tests.tidy.sources import GENERATED, ROOT

GENERATED_LINES_MAX = 50_000


def test_generated_modules_are_current() -> None:
    """An edited schema without a new module, or an edit of a module by hand, shows here."""
    done = subprocess.run(
        [sys.executable, "-m", "codegen", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_generated_modules_stay_few_lines() -> None:
    """A struct has one reader and one writer for all its versions, not one for each."""
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in GENERATED.glob("*.py"))
    assert lines <= GENERATED_LINES_MAX
