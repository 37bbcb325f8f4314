"""The files that the house rules apply to."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

__all__ = [
    "GENERATED",
    "PACKAGES",
    "ROOT",
    "nodes",
    "parse",
    "project_files",
    "python_files",
    "show",
]

Node = TypeVar("Node", bound=ast.AST)

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("kraftwire", "codegen", "tools", "examples")
GENERATED = ROOT / "kraftwire" / "messages"

_NOT_OURS = {".git", ".venv", ".cache", "__pycache__", "build", "dist", ".hypothesis"}


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that belongs to the project, sorted: what git tracks or would offer to add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        paths = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    else:  # an unpacked source archive
        paths = _unpacked()
    return tuple(sorted(path for path in paths if path.is_file()))


def _unpacked() -> Iterator[Path]:
    """Every file below the root, without going into environments and caches."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in _NOT_OURS]
        yield from (Path(folder) / name for name in names)


def python_files(*folders: str) -> list[Path]:
    """The Python files under some folders of the project, all of them by default."""
    files = (path for path in project_files() if path.suffix == ".py")
    if not folders:
        return list(files)
    return [path for path in files if path.relative_to(ROOT).parts[0] in folders]


@cache
def parse(path: Path) -> ast.Module:
    """The syntax tree of a Python file, which no later collection of garbage goes through."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"), str(path))
    finally:
        gc.enable()
        gc.freeze()


def nodes(path: Path, *kinds: type[Node]) -> list[Node]:
    """All nodes of some kinds in a Python file of the project, at any depth."""
    return [node for kind in kinds for node in _by_kind(path)[kind]]  # type: ignore[misc]


@cache
def _by_kind(path: Path) -> defaultdict[type[ast.AST], list[ast.AST]]:
    """The nodes of a tree by kind: one walk serves all rules."""
    found: defaultdict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    for node in ast.walk(parse(path)):
        found[type(node)].append(node)
    return found


def show(path: Path, line: int | None = None) -> str:
    """A place as a person would look for it."""
    return f"{path.relative_to(ROOT)}:{line}" if line else str(path.relative_to(ROOT))
