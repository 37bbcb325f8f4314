"""Builds the project's distributions, and environments that they are the only strangers in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

__all__ = ["Environment", "build", "built_wheel", "environment"]


def build(folder: Path, project: Path, *kinds: str, **variables: str) -> None:
    """Build a project into a folder without the network, with further variables."""
    options = [*kinds, "--no-isolation", "--outdir", folder]
    command = [sys.executable, "-m", "build", *map(str, options), str(project)]
    variables = {**os.environ, "KRAFTWIRE_REPOSITORY": "", **variables}
    done = subprocess.run(command, capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stdout + done.stderr


def built_wheel(folder: Path, project: Path, **variables: str) -> Path:
    """A project's wheel."""
    build(folder, project, "--wheel", **variables)
    (built,) = folder.glob("*.whl")
    return built


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment far from the checkout."""

    folder: Path

    @property
    def packages(self) -> Path:
        """Where its libraries are."""
        (found,) = (self.folder / "lib").glob("python*/site-packages")
        return found

    def install(self, wheel: Path) -> None:
        """Install a wheel, but not what it needs."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.folder / "bin" / "python")]
        options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", *options, str(wheel)], check=True)

    def run(self, program: str, *arguments: str, stdin: str = "", **variables: str) -> str:
        """Standard output of a program of the environment, with further variables."""
        done = subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=self.folder,
            env={**os.environ, **variables},
            input=stdin,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def environment(folder: Path, wheel: Path, *more: str) -> Environment:
    """A new environment with a wheel, with what it requires, and with more requirements.

    The libraries are links to those of this run's environment, so no network is needed. What the
    metadata does not ask for is not there.
    """
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    made = Environment(folder)
    made.install(wheel)
    (information,) = made.packages.glob("*.dist-info")
    required = [*(PathDistribution(information).requires or ()), *more]
    libraries = Path(sysconfig.get_path("purelib"))
    for top in sorted(_tops(required)):
        (made.packages / top).symlink_to(libraries / top)
    return made


def _tops(requirements: Iterable[str]) -> set[str]:
    """The files and folders of all that some requirements lead to, without extras of the first."""
    waiting = [(requirement, "") for requirement in requirements]
    seen: set[tuple[str, str]] = set()
    tops: set[str] = set()
    while waiting:
        text, extra = waiting.pop()
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        for each in ("", *requirement.extras):
            if (name, each) in seen:
                continue
            seen.add((name, each))
            found = distribution(name)
            waiting += [(further, each) for further in found.requires or ()]
            tops |= {path.parts[0] for path in found.files or ()} - {"..", "__pycache__"}
    return tops
