"""What a key, a value or a header holds: JSON, text, bytes after a schema id, or bytes.

Owns telling them apart. Nothing is guessed beyond these: without its schema, Avro or Protobuf is
bytes.

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
# Line ends and tabs stand in text; with any other control, bytes are not text.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_JSON_STARTS = ("{", "[")
# Longer text is not looked into for JSON.
_JSON_SIZE_MAX = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload and what it is.

    Shape: `text` is that of JSON, on one line, and of text; of bytes it is their hex. `data` are
    the bytes without a prefix that names a `schema_id`.
    """

    kind: Kind
    text: str = ""
    data: bytes = b""
    schema_id: int | None = None

    def quoted(self) -> str:
        """The payload in words that tell text from everything else.

        Shape: text in quotes; JSON as it is; bytes as their number and their hex.
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
        """The payload alone: text without quotes, nothing for null."""
        return self.text if self.schema_id is None else f"schema {self.schema_id} {self.text}"

    def to_json(self) -> dict[str, Any]:
        """What it is, and its data: JSON as such, text as a string, bytes in base64."""
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
    """What bytes of a record hold; None is null."""
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
    """JSON without its line ends, which never stand inside strings."""
    if "\n" not in text:
        return text.strip()
    return " ".join(line.strip() for line in text.split("\n")).strip()
