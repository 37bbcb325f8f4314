"""Show a plan to a person: what is read for each struct, and in which versions."""

from __future__ import annotations

import difflib

from codegen.branches import Step
from codegen.codec import CodecPlan, plan_codecs
from codegen.errors import SchemaError
from codegen.schema import Message


def explain(messages: list[Message], name: str) -> str:
    """The plan of one message as text. Raises: SchemaError if there is no such message."""
    by_name = {message.name: message for message in messages}
    if name not in by_name:
        near = ", ".join(difflib.get_close_matches(name, by_name)) or "none alike"
        raise SchemaError(f"there is no message {name!r} (near: {near})")
    message = by_name[name]
    lines = [
        f"{message.name}: {message.kind}, API key {message.api_key}, versions {message.versions}, "
        f"flexible {message.flexible}",
        f"from schemas/{message.file} to kraftwire/messages/{message.module}.py",
    ]
    for plan in plan_codecs(message):
        lines += ["", *_codec(plan)]
    return "\n".join(lines)


def _codec(plan: CodecPlan) -> list[str]:
    """A struct: its encoding, the steps that read it, and what its writer refuses."""
    low, high = plan.versions[0], plan.versions[-1]
    versions = f"versions {low}-{high}" if low < high else f"version {low}"
    wire = plan.wire
    if plan.compact_test:
        wire = f"Compact if {plan.compact_test} else Classic"
    lines = [f"{plan.struct}, {versions}, {wire}"]
    for block in plan.reads:
        for branch in block.branches:
            pad = "    " if branch.head else "  "
            lines += [f"  {branch.head}"] if branch.head else []
            lines += [pad + _step(step) for step in branch.steps]
    for tag in plan.tags:
        lines.append(f"  {tag.read_head}")
        lines += ["    " + _step(step) for step in tag.reads]
    return lines + [f"  refused: {test}" for test in plan.refusals]


def _step(step: Step) -> str:
    """A step's kind and its parts."""
    parts = (step.attribute, step.wire, step.value, step.packer, step.struct)
    size = [str(step.size)] if step.size else []
    return " ".join([step.kind, *filter(None, parts), *size])
