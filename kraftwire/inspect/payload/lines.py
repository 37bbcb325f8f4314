"""A record as a line: for people, by a template, or as JSON."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

from kraftwire.decode.text import utc_text
from kraftwire.inspect.payload.rows import Row
from kraftwire.inspect.payload.text import payload_of

__all__ = ["decoded_text", "json_line", "place_text", "plain_text", "quoted_text", "row_line"]

_STEP = re.compile(r"\w+")
_VERBS = {"Produce": "produced", "Fetch": "fetched", "ShareFetch": "acquired"}

Value = bytes | str | None


def quoted_text(value: Value) -> str:
    """Return a payload, with text in quotes, or the word that stands for a secret."""
    return value if isinstance(value, str) else payload_of(value).quoted()


def plain_text(value: Value) -> str:
    """Return a payload without quotes, or the word that stands for a secret; empty for null."""
    return value if isinstance(value, str) else payload_of(value).plain()


def decoded_text(decoded: dict[str, Any]) -> str:
    """Return type and JSON data of a record that Kafka wrote itself.

    What is inside fields of type bytes takes their place, as far as it was decoded.
    """
    version = "" if decoded["version"] is None else f" v{decoded['version']}"
    data = decoded["data"]
    if "nested" in decoded:
        data = {**data, "value": _opened(data["value"], decoded["nested"])}
    shown = "" if data is None else " " + json.dumps(data, ensure_ascii=False)
    return f"{decoded['type']}{version}{shown}"


def _opened(value: dict[str, Any], nested: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a record's value with other values at the paths of some fields."""
    opened: dict[str, Any] = deepcopy(value)
    for path, inside in nested.items():
        # Such as "members[0].subscription".
        *steps, last = [int(each) if each.isdecimal() else each for each in _STEP.findall(path)]
        holder: Any = opened
        for step in steps:
            holder = holder[step]
        holder[last] = inside["data"]
    return opened


def place_text(row: Row) -> str:
    """Return topic and partition, with a dash for unknown ones."""
    return f"{row.topic or '-'}-{'-' if row.partition is None else row.partition}"


def row_line(row: Row) -> str:
    """Return a record's line for people: direction, place, time and content."""
    parts = [_VERBS.get(row.api, row.api)] if row.api else []
    parts += [place_text(row), "offset", "-" if row.offset is None else str(row.offset)]
    parts.append("-" if row.timestamp < 0 else utc_text(row.timestamp))
    if row.error:
        parts.append(row.error)
    if row.decoded is not None:
        return " ".join([*parts, decoded_text(row.decoded)])
    parts += ["key", quoted_text(row.key), "value", quoted_text(row.value)]
    if row.headers:
        pairs = ", ".join(f"{name}={quoted_text(value)}" for name, value in row.headers)
        parts += ["headers", pairs]
    return " ".join(parts)


def json_line(row: Row) -> str:
    """Return a record as a JSON object."""
    data: dict[str, Any] = {
        "topic": row.topic,
        "partition": row.partition,
        "offset": row.offset,
        "timestamp": row.timestamp if row.timestamp >= 0 else None,
        "api": row.api or None,
        "error": row.error or None,
        "key": _json(row.key),
        "value": _json(row.value),
        "headers": [{"key": name, "value": _json(value)} for name, value in row.headers],
        "decoded": row.decoded,
    }
    return json.dumps(data)


def _json(value: Value) -> dict[str, Any]:
    if isinstance(value, str):
        return {"format": "redacted", "data": None}
    found = payload_of(value).to_json()
    if found["format"] != "json":
        return found
    try:
        json.dumps([[[found]]])
    except RecursionError:
        found = {**found, "format": "text", "data": payload_of(value).text}
    return found
