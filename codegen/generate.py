"""Compile a folder of schemas into a package of modules, or compare it with what is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from codegen.errors import SchemaError
from codegen.load import load_folder
from codegen.manifest import manifest_values
from codegen.plan import plan_module
from codegen.render import Renderer
from codegen.schema import Message
from codegen.validate import validate

__all__ = ["Difference", "compare", "generate", "load_valid"]

@dataclass
class Difference:
    """How a folder of generated modules differs from what the schemas give."""

    missing: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    surplus: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or self.surplus)

    def __str__(self) -> str:
        rows = (("missing", self.missing), ("changed", self.changed), ("surplus", self.surplus))
        return "\n".join(f"{word}: {name}" for word, names in rows for name in names)


def load_valid(schemas: Path) -> list[Message]:
    """Load and validate all schemas. Raises: SchemaError."""
    messages = load_folder(schemas)
    if not messages:
        raise SchemaError("there are no schemas in this folder", file=str(schemas))
    for message in messages:
        validate(message)
    return messages


def texts(schemas: Path) -> dict[str, str]:
    """File name -> source text of every generated file. Raises: SchemaError."""
    messages = load_valid(schemas)
    renderer = Renderer()
    result = {"__init__.py": renderer.manifest(**manifest_values(messages))}
    for message in messages:
        result[f"{message.module}.py"] = renderer.module(plan_module(message))
    return result


def compare(schemas: Path, target: Path) -> Difference:
    """What `generate` would change in the target folder."""
    return _difference(texts(schemas), target)


def generate(schemas: Path, target: Path) -> Difference:
    """Write the modules, touching only files that change; returns what was different."""
    wanted = texts(schemas)
    difference = _difference(wanted, target)
    for name in difference.missing + difference.changed:
        _check_syntax(name, wanted[name])
    target.mkdir(parents=True, exist_ok=True)
    for name in difference.missing + difference.changed:
        (target / name).write_text(wanted[name], "utf-8")
    for name in difference.surplus:
        (target / name).unlink()
    return difference


def _check_syntax(name: str, text: str) -> None:
    """Refuse to write a module that Python cannot read: a rule of the validator is missing."""
    try:
        compile(text, name, "exec")
    except SyntaxError as error:
        problem = f"the schema gives a module with bad syntax: {error.msg}: {error.text}"
        raise SchemaError(problem, file=name, line=error.lineno or 0) from None


def _difference(wanted: dict[str, str], target: Path) -> Difference:
    there = {
        path.name: path.read_text("utf-8")
        for path in (target.iterdir() if target.is_dir() else ())
        if path.is_file() and path.suffix == ".py"
    }
    return Difference(
        missing=sorted(wanted.keys() - there.keys()),
        changed=sorted(
            name for name, text in wanted.items() if name in there and text != there[name]
        ),
        surplus=sorted(there.keys() - wanted.keys()),
    )
