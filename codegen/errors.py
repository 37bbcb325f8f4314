"""The generator's only error, which always names the place to fix."""

from __future__ import annotations


class SchemaError(Exception):
    """A schema cannot be compiled; names file, line, field path and the broken rule."""

    def __init__(
        self, problem: str, *, file: str = "", line: int = 0, path: str = "", rule: str = ""
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.path = path
        self.rule = rule
        where = f"{file}:{line}" if line else file
        parts = [part for part in (where, path) if part]
        suffix = f" [{rule}]" if rule else ""
        super().__init__(": ".join([*parts, problem]) + suffix)
