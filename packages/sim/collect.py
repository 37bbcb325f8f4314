"""Collects the simulator's modules, which are those of the checkout around this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS = ("kraftwire/sim", "kraftwire/cli/sim")


class SimulatorHook(BuildHookInterface[Any]):
    """Adds Python files, and nothing else, to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name them before the files are collected."""
        del version
        root = Path(self.root).parents[1]
        found = [path for folder in FOLDERS for path in (root / folder).rglob("*.py")]
        build_data["force_include"] |= {
            str(path): path.relative_to(root).as_posix() for path in found
        }
