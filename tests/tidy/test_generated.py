"""Generated code is what the generator writes today."""

from __future__ import annotations

import subprocess
import sys

from tests.tidy.sources import ROOT


def test_generated_modules_are_current() -> None:
    """An edited schema without a new module, or an edit of a module by hand, shows here."""
    done = subprocess.run(
        [sys.executable, "-m", "codegen", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
