"""Show a plan to a person: layouts, the versions that share them, and what each function does."""

from __future__ import annotations

import difflib

from codegen.errors import SchemaError
from codegen.plan import plan_module
from codegen.schema import Message
from codegen.steps import Step

__all__ = ["explain"]


def explain(messages: list[Message], name: str) -> str:
    """The plan of one message as text. Raises: SchemaError if there is no such message."""
    by_name = {message.name: message for message in messages}
    if name not in by_name:
        near = ", ".join(difflib.get_close_matches(name, by_name)) or "none alike"
        raise SchemaError(f"there is no message {name!r} (near: {near})")
    message = by_name[name]
    plan = plan_module(message)
    lines = [
        f"{message.name}: {message.kind}, API key {message.api_key}, versions {message.versions}, "
        f"flexible {message.flexible}",
        f"from schemas/{message.file} to kraftwire/messages/{message.module}.py",
        "",
        "decoders",
    ]
    for decoder in plan.decoders:
        budget = ", budgeted" if decoder.is_small else ""
        lines.append(
            f"  {decoder.name}: {decoder.struct} in versions {decoder.versions}, "
            f"at least {decoder.min_size} bytes{budget}"
        )
        lines += [f"    {_step(step)}" for step in decoder.steps]
    lines += ["", "encoders"]
    for encoder in plan.encoders:
        lines.append(f"  {encoder.name}: {encoder.struct} in versions {encoder.versions}")
        if encoder.refuse:
            lines.append(f"    refuse if {encoder.refuse}")
        lines += [f"    {_step(step)}" for step in encoder.steps]
    return "\n".join(lines)


def _step(step: Step) -> str:
    words = [step.kind]
    if step.compact:
        words.append("compact")
    if step.nullable:
        words.append("nullable")
    words += [part for part in (step.target, step.arguments, step.packer, step.function) if part]
    return " ".join(words)
