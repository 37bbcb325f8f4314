"""Carries out a recipe of CONTRIBUTING.md: its edits and its commands, in a copy of the project.

A recipe is a section whose title begins with a digit. Blocks fenced as ``diff`` are edits, those
fenced as ``sh`` are commands. A hunk has no line numbers: the lines that it keeps and removes must
stand in the file exactly once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.sources import PACKAGES, ROOT, project_files

__all__ = ["NOT_RUN", "Recipe", "apply", "copy_project", "recipes", "run"]

NOT_RUN = re.compile(r"<!-- not run: (?P<reason>\S.*?) -->")
_SECTION = re.compile(
    r"^### (?P<title>\d+\. .+?)\n(?P<text>.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE
)
_BLOCK = re.compile(
    r"(?P<before>[^\n]*\n)```(?P<kind>diff|sh)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One section: its blocks in order, each with its kind."""

    title: str
    blocks: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return self.title


def recipes(page: Path = ROOT / "CONTRIBUTING.md") -> list[Recipe]:
    """All recipes of the page; blocks that give a reason not to be run are left out."""
    return [
        Recipe(
            section["title"],
            tuple(
                (block["kind"], block["body"])
                for block in _BLOCK.finditer(section["text"])
                if not NOT_RUN.search(block["before"])
            ),
        )
        for section in _SECTION.finditer(page.read_text("utf-8"))
    ]


def copy_project(root: Path) -> None:
    """Copy what belongs to the project, and what was compiled of it: the engine, bytecode.

    A copied file keeps its time, so its bytecode stays valid until the file is edited.
    """
    inside = (file for name in (*PACKAGES, "tests") for file in (ROOT / name).rglob("*"))
    compiled = (file for file in inside if file.suffix in (".so", ".pyc"))
    for path in (*project_files(), *compiled):
        target = root / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    (root / ".venv").symlink_to(sys.prefix)


def apply(diff: str, root: Path) -> None:
    """Edit the files that a diff names."""
    for part in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
        head, *hunks = re.split(r"^@@.*\n", part, flags=re.MULTILINE)
        before, after = re.findall(r"^(?:\+\+\+ )?(\S+)$", head, re.MULTILINE)
        path = root / after.removeprefix("b/")
        text = "" if before == "/dev/null" else path.read_text("utf-8")
        for hunk in hunks:
            lines = [line or " " for line in hunk.splitlines()]
            old = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
            new = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
            assert not old or text.count(old) == 1, f"{after}: {text.count(old)} times:\n{old}"
            text = text.replace(old, new) if old else text + new
        path.write_text(text, "utf-8")


def run(script: str, root: Path) -> str:
    """Standard output of commands, of which none may fail."""
    path = f"{root / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=root,
        env=os.environ | {"PATH": path, "PYTHONPATH": str(root)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout
