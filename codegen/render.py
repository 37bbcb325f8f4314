"""Turn plans into source text; the only place that knows Jinja2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from codegen.plan import ModulePlan

_TEMPLATES = Path(__file__).parent / "templates"


class Renderer:
    """Renders modules; one instance compiles the templates once."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )

    def module(self, plan: ModulePlan) -> str:
        """Source of one message module."""
        return self._environment.get_template("module.py.j2").render(plan=plan, m=plan.message)

    def manifest(self, **values: Any) -> str:
        """Source of the registry's tables."""
        return self._environment.get_template("manifest.py.j2").render(**values)
