"""Recognizes a key, value or header as JSON, text, bytes after a schema id, or bytes.

Owns the distinction. Nothing else is guessed: without its schema, Avro or Protobuf is bytes.

Source: Confluent's wire format of serializers: a zero byte, the schema's id in four bytes.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Kind", "Payload", "payload_of"]

Kind = Literal["null", "json", "text", "bytes"]

_SCHEMA_PREFIX = 5
# Text may hold line ends and tabs; bytes with any other control character are not text.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_JSON_STARTS = ("{", "[")
# Longer text is not parsed as JSON.
_JSON_SIZE_MAX = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload and its kind.

    `text` is JSON on one line, or text; for bytes it is hex. `data` are the bytes after the prefix
    with the `schema_id`, if there is one.
    """

    kind: Kind
    text: str = ""
    data: bytes = b""
    schema_id: int | None = None

    def quoted(self) -> str:
        """Return the payload in a form that distinguishes text from all other kinds.

        Text is in quotes, JSON as it is, and bytes are their number and their hex.
        """
        shown = self._quoted()
        return shown if self.schema_id is None else f"schema {self.schema_id} {shown}"

    def _quoted(self) -> str:
        if self.kind == "text":
            return json.dumps(self.text, ensure_ascii=False)
        if self.kind == "bytes":
            noun = "byte" if len(self.data) == 1 else "bytes"
            return f"{len(self.data)} {noun} {self.text}"
        return self.text or self.kind

    def plain(self) -> str:
        """Return the payload alone: text without quotes, an empty string for null."""
        return self.text if self.schema_id is None else f"schema {self.schema_id} {self.text}"

    def to_json(self) -> dict[str, Any]:
        """Return kind and data: JSON as JSON, text as a string, bytes in base64."""
        found: dict[str, Any] = {"format": self.kind}
        if self.schema_id is not None:
            found["schemaId"] = self.schema_id
        if self.kind == "bytes":
            found["data"] = b64encode(self.data).decode()
        elif self.kind == "json":
            found["data"] = json.loads(self.text)
        else:
            found["data"] = self.text if self.kind == "text" else None
        return found


_NULL = Payload("null")


def payload_of(data: bytes | None) -> Payload:
    """Return the content of a record's bytes. None stands for null."""
    if data is None:
        return _NULL
    if len(data) > _SCHEMA_PREFIX and not data[0]:
        schema_id = int.from_bytes(data[1:_SCHEMA_PREFIX], "big", signed=True)
        if schema_id > 0:
            return _plain(data[_SCHEMA_PREFIX:], schema_id)
    return _plain(data, None)


def _plain(data: bytes, schema_id: int | None) -> Payload:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Payload("bytes", data.hex(" "), data, schema_id)
    if _CONTROLS.search(text):
        return Payload("bytes", data.hex(" "), data, schema_id)
    if text.lstrip().startswith(_JSON_STARTS) and _is_json(text):
        return Payload("json", _on_one_line(text), data, schema_id)
    return Payload("text", text, data, schema_id)


def _is_json(text: str) -> bool:
    if len(text) > _JSON_SIZE_MAX:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _on_one_line(text: str) -> str:
    """Return JSON without its line ends, which never occur inside strings."""
    if "\n" not in text:
        return text.strip()
    return " ".join(line.strip() for line in text.split("\n")).strip()
