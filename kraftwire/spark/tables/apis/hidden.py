"""Copies of messages without their secrets, by the rules of `kraftwire decode`."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

from kraftwire.decode.body.secrets import (
    REDACTED,
    holds_secrets,
    may_carry_secrets,
    secret_paths,
)
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message

__all__ = ["without_secrets"]

_STEP = re.compile(r"(\w+)(?:\[(\d+)\])?")


def without_secrets(message: Message, version: int) -> Message:
    """Return the message itself if it holds no secrets, else a copy with a mark in their place."""
    name = message.NAME
    if not may_carry_secrets(name):
        return message
    root = message.facts().root
    if not holds_secrets(name):
        # It contains another message as bytes.
        paths = [each.name for each in root.fields if each.type == "bytes"]
    else:
        paths = secret_paths(name, message.to_json(version))
    if not paths:
        return message
    copy = deepcopy(message)
    for path in paths:
        _hide(copy, root, path.split("."))
    return copy


def _hide(value: Any, facts: StructFacts, path: list[str]) -> None:
    """Put the mark at the end of a path such as ``resources[0].configs[1].value``."""
    for step in path:
        match = _STEP.fullmatch(step)
        assert match is not None
        field = _field(facts, match[1])
        if field.struct is None:
            held = getattr(value, field.attribute)
            if held is not None:
                mark: str | bytes = REDACTED if field.type == "string" else REDACTED.encode()
                setattr(value, field.attribute, mark)
            return
        value = getattr(value, field.attribute)
        if match[2] is not None:
            value = value[int(match[2])]
        facts = field.struct


def _field(facts: StructFacts, name: str) -> FieldFacts:
    return next(each for each in facts.fields if each.name == name)
