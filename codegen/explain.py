"""Show a plan to a person: layouts, the versions that share them, and what each function does."""

from __future__ import annotations

import difflib

from codegen.errors import SchemaError
from codegen.functions import plan_functions
from codegen.hot import HOT
from codegen.schema import Message
from kraftwire.wire.functions.steps import Function, Step

__all__ = ["explain"]


def explain(messages: list[Message], name: str) -> str:
    """The plan of one message as text. Raises: SchemaError if there is no such message."""
    by_name = {message.name: message for message in messages}
    if name not in by_name:
        near = ", ".join(difflib.get_close_matches(name, by_name)) or "none alike"
        raise SchemaError(f"there is no message {name!r} (near: {near})")
    message = by_name[name]
    plan = plan_functions(message)
    place = "generated" if name in HOT else "built at run time"
    lines = [
        f"{message.name}: {message.kind}, API key {message.api_key}, versions {message.versions}, "
        f"flexible {message.flexible}",
        f"from schemas/{message.file} to kraftwire/messages/{message.module}.py, functions {place}",
        "",
        "decoders",
    ]
    for decoder in plan.decoders:
        lines += _function(decoder)
    lines += ["", "encoders"]
    for encoder in plan.encoders:
        lines += _function(encoder)
    return "\n".join(lines)


def _function(function: Function) -> list[str]:
    """A function in words: what it is for, and its steps in order."""
    head = f"  {function.name}: {function.struct} in versions {function.versions}"
    return [head + function.remarks, *_steps(function.inner, "    ")]


def _steps(steps: tuple[Step, ...], pad: str) -> list[str]:
    lines = []
    for step in steps:
        lines += [pad + _step(step), *_steps(step.inner, pad + "  ")]
    return lines


def _step(step: Step) -> str:
    """A step's kind and its expressions."""
    values = (getattr(step, name) for name in step.NAMES)
    texts = (value for value in values if isinstance(value, str) and value)
    return " ".join([step.kind.replace("_", " "), *texts])
