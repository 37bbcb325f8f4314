"""Builds the project's distributions, for the tests of what is in them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["build", "built_wheel"]


def build(folder: Path, project: Path, *kinds: str, **variables: str) -> None:
    """Build a project into a folder without the network, with further variables."""
    options = [*kinds, "--no-isolation", "--outdir", folder]
    command = [sys.executable, "-m", "build", *options, project]
    environment = {**os.environ, "KRAFTWIRE_REPOSITORY": "", **variables}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def built_wheel(folder: Path, project: Path, **variables: str) -> Path:
    """A project's wheel."""
    build(folder, project, "--wheel", **variables)
    (built,) = folder.glob("*.whl")
    return built
